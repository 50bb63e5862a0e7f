/* copy.c: `rival copy`: copies all runs of a store to another of any kind, like export and import of each. */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/store_name.h"
#include "cli/runs.h"

enum { PAGE = 1000, PROGRESS_MS = 500 };

struct copying {
    bool json;
    rv_engine *from, *to;
    struct rv__buf ids; /* each NUL-terminated, newest first */
    size_t total, copied, there;
    FILE *between; /* a file without a name, for one run at a time */
    bool shows;    /* show progress on a terminal */
    int64_t next_ms;
};

static int list_runs(struct copying *c, rv_error *err)
{
    rv_run_list *page = NULL;
    int rc = RV_OK;
    for (bool more = true; more && rc == RV_OK;) {
        rv_run_list *next = NULL;
        rc = rv_list(c->from, RV_QUERY(.limit = PAGE, .cursor = page != NULL ? page->next : NULL),
                     &next, err);
        rv_run_list_free(page);
        page = next;
        for (size_t i = 0; rc == RV_OK && i < page->count; i++, c->total++) {
            rv__buf_text(&c->ids, page->runs[i].run_id);
            rv__buf_char(&c->ids, '\0');
        }
        if (rc == RV_OK)
            rc = rv__buf_err(&c->ids, err);
        more = rc == RV_OK && page->next[0] != '\0';
    }
    rv_run_list_free(page);
    return rc;
}

static int put(void *arg, const char *bytes, size_t count)
{
    return fwrite(bytes, 1, count, arg) == count ? 0 : 1;
}

static long get(void *arg, char *into, size_t room)
{
    size_t count = fread(into, 1, room, arg);
    return count > 0 || !ferror((FILE *)arg) ? (long)count : -1;
}

static int copy_run(struct copying *c, const char *id, rv_error *err)
{
    rewind(c->between);
    int rc = ftruncate(fileno(c->between), 0) < 0 ? RV_ECANCELED : RV_OK;
    if (rc == RV_OK)
        rc = rv_export(c->from, id, RV_EXPORT_OPTS(.write = put, .arg = c->between), err);
    if (rc == RV_OK && fflush(c->between) != 0)
        rc = RV_ECANCELED;
    if (rc == RV_ECANCELED)
        return rv__fail(err, RV_ESYS, "the temporary file cannot be written: is the disk full?");
    rewind(c->between);
    if (rc == RV_OK)
        rc = rv_import(c->to, RV_IMPORT_OPTS(.read = get, .arg = c->between), NULL, err);
    if (rc == RV_EEXIST) {
        c->there++;
        return RV_OK;
    }
    c->copied += rc == RV_OK;
    return rc;
}

static void show_progress(struct copying *c)
{
    int64_t now = rv__mono_ms(rv__clock_real());
    if (!c->shows || now < c->next_ms)
        return;
    c->next_ms = now + PROGRESS_MS;
    fprintf(stderr, "\r%zu of %zu runs", c->copied + c->there, c->total);
    (void)fflush(stderr); /* for people */
}

static int copy_all(struct copying *c)
{
    char why[sizeof(rv_error) + RV_RUN_ID_SIZE];
    rv_error err = { 0, "" };
    int rc = list_runs(c, &err);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    /* Oldest first: from the end of the list. */
    for (size_t end = c->ids.len; end > 0 && rc == RV_OK;) {
        size_t at = end - 1;
        while (at > 0 && c->ids.text[at - 1] != '\0')
            at--;
        rc = copy_run(c, c->ids.text + at, &err);
        end = at;
        if (rc < 0)
            snprintf(why, sizeof why, "run %s: %s", c->ids.text + at, err.message);
        show_progress(c);
    }
    if (c->shows)
        fprintf(stderr, "\r\033[K");
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, why,
                            "the copied runs stay; run the command again to copy the rest");
    if (c->json)
        printf("{\"runs\":%zu,\"copied\":%zu,\"alreadyThere\":%zu}\n", c->total, c->copied,
               c->there);
    else
        printf("copied %zu of %zu runs; %zu were there already\n", c->copied, c->total, c->there);
    return CLI_OK;
}

static int run_copy(int argc, char **argv)
{
    struct copying c = { .shows = isatty(STDERR_FILENO) };
    int count = rv__options(&rv__cmd_copy, argc, argv, &c);
    if (count < 0)
        return -count;
    if (!rv__store_name_exists(argv[0]))
        return rv__cli_fail(CLI_FAILED, "there is no store to copy from",
                            "rival copy FROM TO: FROM must exist");
    int rc = CLI_FAILED;
    rv__buf_init(&c.ids, SIZE_MAX / 8);
    c.from = rv__store_to_hold(argv[0]); /* not driven: its runs would continue in both stores */
    c.to = c.from != NULL ? rv__store_to_hold(argv[1]) : NULL;
    c.between = c.to != NULL ? tmpfile() : NULL;
    if (c.between != NULL)
        rc = copy_all(&c);
    else if (c.to != NULL)
        (void)rv__cli_fail(CLI_FAILED, "no temporary file can be made", "TMPDIR sets their folder");
    if (c.between != NULL)
        (void)fclose(c.between);
    rv_engine_free(c.to);
    rv_engine_free(c.from);
    rv__buf_done(&c.ids);
    return rc;
}

static const struct rv__option options[] = {
    RV__OPTION_JSON(struct copying, json, "print {\"runs\", \"copied\", \"alreadyThere\"}"),
    { NULL },
};

const struct rv__command rv__cmd_copy = {
    .name = "copy",
    .section = SECTION_STORE,
    .summary = "copy all runs of a store into another one",
    .arguments = { { "FROM", "which store?", .completes = COMPLETES_FILE },
                   { "TO", "into which store?", .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Copies every run with its whole history, as export and import do. Each store "
                    "is a "
                    "file or postgres://…; TO is made if it does not exist. Use it to move from "
                    "SQLite to "
                    "PostgreSQL, or back.",
                    "No process may drive either store meanwhile. Runs that have not ended "
                    "continue in "
                    "whichever store is driven afterwards: drive only one of them.",
                    "Runs that TO has already are left as they are, so a copy that was interrupted "
                    "can "
                    "be repeated." },
    .examples = { { "rival copy rival.db postgres://db.example.org/rival" } },
    .run = run_copy,
};
