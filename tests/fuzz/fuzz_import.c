/* fuzz_import.c: any text as the history in an exported run's file, against src/keep/import_file.c.
 *
 * The head is a good one, and the end has the right count and hash, so that what is in between is looked
 * at: turns that are replayed, rows that are made of them, logs. It is refused, or gives writes that a store
 * could take. A text that begins with "{" and "rival" is a file by itself. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "keep/format.h"
#include "keep/keep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static const char plan_text[] =
    "{\"name\":\"t\",\"steps\":[{\"type\":\"step\",\"alias\":\"a\",\"name\":\"a\",\"maxAttempts\":"
    "2},"
    "{\"type\":\"forEach\",\"alias\":\"e\",\"items\":{\"fn\":\"i\"},\"parallel\":true,\"run\":"
    "[{\"type\":\"step\",\"alias\":\"b\",\"name\":\"b\"}]},"
    "{\"type\":\"step\",\"alias\":\"s\",\"kind\":\"signal\",\"with\":{\"name\":\"go\"}}]}";

static void put_head(struct rv__buf *out)
{
    static char version[65];
    if (version[0] == '\0') {
        struct rv__plan *plan = NULL;
        MUST(rv__plan_read(rv__str(plan_text), &plan, NULL) == RV_OK);
        snprintf(version, sizeof version, "%s", plan->version);
        rv__plan_free(plan);
    }
    rv__buf_fmt(out, RV__EXPORT_HEAD "{\"format\":1,\"runId\":\"r\",\"version\":\"%s\"}}\n",
                version);
    rv__buf_fmt(out,
                RV__EXPORT_RUN "{\"createdAt\":1,\"startedAt\":1,\"completedAt\":0,\"inputKey\":"
                               "\"%s\",\"input\":null}}\n",
                version);
    rv__buf_fmt(out, RV__EXPORT_DEFINITION "%s}\n", plan_text);
}

static void put_end(struct rv__buf *out)
{
    char hash[RV__SHA256_HEX];
    long long lines = 0;
    if (out->text[out->len - 1] != '\n')
        rv__buf_char(out, '\n');
    for (size_t i = 0; i < out->len; i++)
        lines += out->text[i] == '\n';
    rv__sha256_hex(rv__buf_view(out), hash);
    rv__buf_fmt(out, RV__EXPORT_END "{\"lines\":%lld,\"sha256\":\"%s\"}}\n", lines, hash);
}

/* What a write is made of can be read, and is what a store asks for. */
static void look(const struct rv__store_write *write, int n)
{
    MUST(rv__str_is(write->run, "r") || n == 0);
    MUST((write->row != NULL) == (n == 0));
    for (size_t i = 0; i < write->result_count; i++)
        MUST(rv__json_check(write->results[i].json, RV__JSON_MAX_DEPTH, NULL, NULL) == RV_OK);
    for (size_t i = 0; i < write->log_count; i++)
        MUST(!rv__str_none(write->logs[i].message));
    if (!rv__str_none(write->snapshot))
        MUST(rv__json_check(write->snapshot, RV__JSON_MAX_DEPTH, NULL, NULL) == RV_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv__import *import = NULL;
    struct rv__store_write write;
    struct rv__buf text;
    rv_error err = { 0, "" };
    bool whole = size >= 9 && memcmp(data, RV__EXPORT_HEAD, 9) == 0;
    rv__buf_init(&text, SIZE_MAX / 8);
    if (!whole)
        put_head(&text);
    rv__buf_add(&text, (const char *)data, size);
    if (!whole)
        put_end(&text);
    MUST(text.rc == RV_OK);
    int file = memfd_create("import", MFD_CLOEXEC);
    MUST(file >= 0 && pwrite(file, text.text, text.len, 0) == (ssize_t)text.len);
    int rc = rv__import_new(file, "fuzz", 0, 1000, &import, &err);
    for (int n = 0; rc >= 0 && (rc = rv__import_next(import, &write, &err)) == 1; n++)
        look(&write, n);
    MUST(rc == RV_OK || (err.message[0] != '\0' && err.code == rc));
    rv__import_free(import);
    rv__buf_done(&text);
    (void)close(file);
    return 0;
}
