/* list.c: `rival list`: the runs of a store, newest first. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

enum { PAGE = 500, DEFAULT_LIMIT = 50, CURSOR_BYTES = 512 };

struct listing {
    struct rv__where where;
    struct rv__client *client;
    const char *since, *limit_text;
    int status, waiting; /* -1: any */
    rv_query query;
    bool json;
    size_t limit, count;
    char cursor[CURSOR_BYTES];
    int64_t now_ms;
    struct rv__table *table;
    struct rv__buf out;
};

static void add_row(struct listing *l, const rv_run_state *run)
{
    char when[RV__WHEN_TEXT], time[RV__DURATION_TEXT];
    struct rv__buf error;
    const char *status = rv_status_name(run->status);
    int64_t ms = run->completed_at != 0 ? run->duration_ms : l->now_ms - run->started_at;
    if (l->count == 0) {
        static const char *const head[] = { "RUN", "WORKFLOW", "STATUS", "STARTED", "TIME", "" };
        for (size_t i = 0; i < sizeof head / sizeof *head; i++)
            rv__table_cell(l->table, DIM, head[i]);
    }
    rv__table_cell(l->table, PLAIN, run->run_id);
    rv__table_cell(l->table, PLAIN, run->workflow);
    rv__table_cell(l->table, rv__status_colour(status), status);
    rv__table_cell(l->table, PLAIN, rv__text_when(run->started_at, l->now_ms, when));
    rv__table_cell(l->table, PLAIN, rv__text_duration(ms, time));
    rv__buf_init(&error, RV__JSON_MAX_BYTES);
    rv__text_failed_at(&error, run->failed_path, run->failed_step);
    rv__text_error(&error, rv__str(*run->error != '\0' ? run->error : run->suspension));
    if (run->status == RV_RUNNING && !rv__client_drives(l->client, run->run_id))
        rv__buf_text(&error, "nobody drives it");
    rv__table_cell(l->table, run->status == RV_FAILED ? RED : DIM, rv__buf_view(&error).at);
    rv__buf_done(&error);
}

static void add_json(struct listing *l, const rv_run_state *run)
{
    if (l->count > 0)
        rv__buf_char(&l->out, ',');
    rv__put_run(&l->out, run);
    if (run->status == RV_RUNNING && !rv__client_drives(l->client, run->run_id))
        rv__put_json(&l->out, "driven", "false");
    rv__buf_char(&l->out, '}');
}

/* Page by page: a page may have fewer rows than requested, and not be the last. */
static int read_all(struct listing *l, struct rv__client *client, rv_error *err)
{
    do {
        rv_run_list *list = NULL;
        size_t left = l->limit - l->count;
        l->query.cursor = l->cursor;
        l->query.limit = left < PAGE ? left : PAGE;
        int rc = rv__client_list(client, &l->query, &list, err);
        if (rc < 0)
            return rc;
        for (size_t i = 0; i < list->count; i++, l->count++) {
            if (l->json)
                add_json(l, &list->runs[i]);
            else
                add_row(l, &list->runs[i]);
        }
        bool stands = list->count == 0 && strcmp(l->cursor, list->next) == 0;
        snprintf(l->cursor, sizeof l->cursor, "%s", stands ? "" : list->next);
        rv_run_list_free(list);
    } while (l->cursor[0] != '\0' && l->count < l->limit);
    return RV_OK;
}

static int print(struct listing *l)
{
    if (l->json) {
        rv__buf_text(&l->out, "],\"nextCursor\":");
        if (l->cursor[0] != '\0')
            rv__buf_json_str(&l->out, rv__str(l->cursor));
        else
            rv__buf_text(&l->out, "null");
        rv__buf_char(&l->out, '}');
        return rv__print_json(&l->out);
    }
    if (l->count == 0)
        fprintf(stderr, "no runs%s\n",
                l->query.workflow != NULL || l->query.status != 0 || l->query.since != 0 ||
                        l->query.text != NULL || l->query.waiting || l->query.rerun_of != NULL
                    ? " match"
                    : "");
    bool good = rv__table_print(l->table, stdout);
    if (l->cursor[0] != '\0')
        fprintf(stderr, "there are more: --limit N, or --cursor %s\n", l->cursor);
    return good ? CLI_OK : rv__cli_fail(CLI_FAILED, "out of memory", NULL);
}

static int list_runs(struct listing *l)
{
    rv_error err;
    int code, rc;
    struct rv__client *client = l->client = rv__client_open(&l->where, ACCESS_ASK, &code);
    if (client == NULL)
        return code;
    code = CLI_FAILED;
    rv__client_say_refusal(client);
    l->table = rv__table_new(6);
    rv__buf_init(&l->out, SIZE_MAX / 8); /* bounded by the limit */
    rv__buf_text(&l->out, "{\"runs\":[");
    if (l->table == NULL)
        (void)rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    else if ((rc = read_all(l, client, &err)) < 0) /* RV_EINVAL: a bad cursor */
        code = rv__cli_fail(rc == RV_EINVAL ? CLI_USAGE : CLI_FAILED, err.message, NULL);
    else
        code = print(l);
    rv__table_free(l->table);
    rv__buf_done(&l->out);
    rv__client_close(client);
    return code;
}

static int read_query(struct listing *l)
{
    int64_t n = DEFAULT_LIMIT;
    l->query.status = l->status < 0 ? 0 : RV_RUNNING + l->status;
    l->query.waiting = l->waiting >= 0;
    if (l->since != NULL && rv__read_time(l->since, l->now_ms, &l->query.since) < 0)
        return rv__cli_usage(
            "list", "--since '%s' is neither a duration (2h) nor a date (2026-11-15)", l->since);
    if (l->limit_text != NULL && !rv__count_read(l->limit_text, &n))
        return rv__cli_usage("list", "--limit '%s' must be 1 or more", l->limit_text);
    l->limit = (size_t)n;
    snprintf(l->cursor, sizeof l->cursor, "%s", l->query.cursor != NULL ? l->query.cursor : "");
    return CLI_OK;
}

static int run_list(int argc, char **argv)
{
    struct listing l = { .query = { .size = sizeof l.query },
                         .status = -1,
                         .waiting = -1,
                         .now_ms = rv__wall_ms(rv__clock_real()) };
    int count = rv__options(&rv__cmd_list, argc, argv, &l);
    if (count < 0)
        return -count;
    int code = read_query(&l);
    return code == CLI_OK ? list_runs(&l) : code;
}

static const char *const statuses[] = { "running", "suspended", "completed",
                                        "failed",  "cancelled", NULL }; /* as the enum */

static const char *const waiting[] = { "somebody", NULL };

static const struct rv__option options[] = {
    { "--status", "STATUS", "running, suspended, completed, failed or cancelled",
      .choices = statuses, RV__INTO(struct listing, status) },
    { "--waiting", "WHOM", "somebody: only runs that wait for a signal or a decision",
      .choices = waiting, RV__INTO(struct listing, waiting) },
    { "--rerun-of", "ID", "only runs that repeat this run",
      RV__INTO(struct listing, query.rerun_of) },
    { "--workflow", "NAME", "only runs of this workflow", .completes = COMPLETES_RUN_WORKFLOW,
      RV__INTO(struct listing, query.workflow) },
    { "--since", "WHEN", "started since: 2h, 30d, 2026-11-15, \"2026-11-15 12:30\"",
      RV__INTO(struct listing, since) },
    { "--text", "TEXT", "only runs with TEXT in their id, workflow, error or input",
      RV__INTO(struct listing, query.text) },
    { "--limit", "N", "show at most N (50)", .letter = "-n", RV__INTO(struct listing, limit_text) },
    { "--cursor", "CURSOR", "continue after an earlier list",
      RV__INTO(struct listing, query.cursor) },
    RV__OPTIONS_WHERE(struct listing, where),
    RV__OPTION_JSON(struct listing, json, "{\"runs\": [...], \"nextCursor\"}"),
    { NULL },
};

const struct rv__command rv__cmd_list = {
    .name = "list",
    .section = SECTION_LOOK,
    .summary = "list runs, newest first",
    .options = options,
    .examples = { { "rival list --status failed --since 1d" },
                  { "rival list --json | jq -r '.runs[].runId'" } },
    .run = run_list,
};
