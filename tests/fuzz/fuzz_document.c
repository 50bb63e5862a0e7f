/* fuzz_document.c: any JSON as any document that the command line reads (src/cli/document.c).
 *
 * The first byte chooses the document. Beyond "does not crash": every field can be read, lists have as many records as
 * the text, numbers are counts, names and ids can be printed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/json.h"
#include "cli/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static void check_name(const char *text)
{
    for (; *text != '\0'; text++)
        MUST((unsigned char)*text >= ' ' && *text != 0x7f);
}

static size_t check(const struct rv__document *of, const char *record);

static size_t check_field(const struct rv__member *m, const char *record)
{
    const void *at = record + m->at;
    size_t records = 0;
    switch (m->kind) {
    case RV__MEMBER_UNREAD:
    case RV__MEMBER_UINT64:
    case RV__MEMBER_BOOL: break;
    case RV__MEMBER_TEXT:
    case RV__MEMBER_JSON: MUST(strlen(*(const char *const *)at) < SIZE_MAX); break;
    case RV__MEMBER_NAME: check_name(*(const char *const *)at); break;
    case RV__MEMBER_INT: MUST(*(const int *)at >= 0); break;
    case RV__MEMBER_INT64: MUST(*(const int64_t *)at >= 0); break;
    case RV__MEMBER_SIZE: MUST(*(const size_t *)at <= INT64_MAX); break;
    case RV__MEMBER_RUN_ID:
    case RV__MEMBER_MODULE: MUST(*(const char *)at == '\0' || rv__id_valid(rv__str(at))); break;
    case RV__MEMBER_STATUS: MUST(rv_status_name(*(const int *)at) != NULL); break;
    case RV__MEMBER_LEVEL: MUST(rv__level_names[*(const int *)at] != NULL); break;
    case RV__MEMBER_STRUCT: return check(m->of, at);
    case RV__MEMBER_LIST: {
        const char *items = *(const char *const *)at;
        size_t count = *(const size_t *)(const void *)(record + m->count_at);
        for (size_t i = 0; i < count; i++)
            records += 1 + check(m->of, items + i * m->of->size);
    }
    }
    return records;
}

/* Returns the number of records in its lists. */
static size_t check(const struct rv__document *of, const char *record)
{
    size_t records = 0;
    for (int i = 0; i < RV__DOCUMENT_PARTS && of->parts[i] != NULL; i++)
        for (const struct rv__member *m = of->parts[i]; m->key != NULL; m++)
            records += check_field(m, record);
    return records;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rv__document *const documents[] = {
        &rv__doc_run_list,        &rv__doc_run_detail,        &rv__doc_run_ref,
        &rv__doc_node_list,       &rv__doc_log_list,          &rv__doc_workflow_list,
        &rv__doc_attachment_list, &rv__doc_attachment_detail, &rv__doc_why,
        &rv__doc_members,         &rv__doc_problem,
    };
    enum { DOCUMENTS = sizeof documents / sizeof *documents };
    struct rv__str json;
    void *mem = NULL;
    if (size == 0 || rv__json_check((struct rv__str){ (const char *)data + 1, size - 1 },
                                    RV__JSON_MAX_DEPTH, &json, NULL) < 0)
        return 0;
    const struct rv__document *of = documents[(data[0] - 'a' + 256) % DOCUMENTS];
    size_t head = data[0] % 3 * 20;
    MUST(rv__document_read(of, json, head, &mem, NULL) == RV_OK);
    MUST(check(of, (const char *)mem + RV__DOCUMENT_AT(head)) <= json.len);
    rv__free(mem);
    return 0;
}
