/* attachments.c: `rival attachments`: the attachments of the attempts of a run's states. */
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

enum { PAGE = 1000, TEXT_WIDTH = 100000 };

struct attachments {
    struct rv__look look;
    rv_attachment_query query;
    const char *last; /* a number; NULL: no limit */
};

/* A text of the attachment, made safe for a terminal. */
static void add_cell(struct rv__table *table, enum rv__colour colour, const char *text)
{
    struct rv__buf shown;
    rv__buf_init(&shown, RV__JSON_MAX_BYTES);
    (void)rv__text_fit(&shown, rv__str(text), TEXT_WIDTH);
    rv__table_cell(table, (int)colour, rv__buf_view(&shown).at);
    rv__buf_done(&shown);
}

static enum rv__colour colour_of(const char *status)
{
    if (strcmp(status, "errored") == 0)
        return RED;
    return strcmp(status, "finished") == 0 ? GREEN : DIM;
}

static void add_row(struct rv__table *table, const rv_attachment *one)
{
    char time[RV__DURATION_TEXT];
    add_cell(table, PLAIN, one->id);
    if (one->superseded)
        rv__table_cell(table, DIM, "superseded");
    else
        add_cell(table, colour_of(one->status), one->status);
    rv__table_cell(
        table, DIM,
        one->completed_at != 0 ? rv__text_duration(one->completed_at - one->started_at, time) : "");
    add_cell(table, PLAIN, one->description);
}

static int print_table(const rv_attachment_list *list)
{
    if (list->count == 0) {
        fprintf(stderr, "no attachments: only states of stages have them\n");
        return CLI_OK;
    }
    struct rv__table *table = rv__table_new(4);
    if (table == NULL)
        return rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    static const char *const heads[] = { "ID", "STATUS", "TOOK", "DESCRIPTION" };
    for (size_t i = 0; i < 4; i++)
        rv__table_cell(table, DIM, heads[i]);
    for (size_t i = 0; i < list->count; i++)
        add_row(table, &list->attachments[i]);
    bool printed = rv__table_print(table, stdout);
    rv__table_free(table);
    return printed ? CLI_OK : rv__cli_fail(CLI_FAILED, "out of memory", NULL);
}

static void print_field(const char *name, const char *text)
{
    struct rv__buf shown;
    if (*text == '\0')
        return;
    rv__buf_init(&shown, RV__JSON_MAX_BYTES);
    (void)rv__text_fit(&shown, rv__str(text), TEXT_WIDTH);
    printf("%s%-11s%s %s\n", rv__colour(stdout, DIM), name, rv__colour(stdout, PLAIN),
           rv__buf_view(&shown).at);
    rv__buf_done(&shown);
}

/* Print the value, without the quotes of a string. */
static void print_value(const char *name, const char *json)
{
    struct rv__arena arena;
    struct rv__str text;
    const char *copy = json;
    rv__arena_init(&arena, RV__JSON_MAX_BYTES);
    if (*json == '"' && rv__json_string(rv__str(json), &arena, &text) == RV_OK)
        copy = rv__arena_dup(&arena, text.at, text.len);
    if (copy != NULL && strcmp(copy, "null") != 0)
        print_field(name, copy);
    rv__arena_done(&arena);
}

static int print_one(const rv_attachment *one)
{
    char attempt[16];
    (void)snprintf(attempt, sizeof attempt, "%d", one->attempt);
    print_field("id", one->id);
    print_field("stage", one->stage);
    print_field("state", one->state);
    print_field("agent", one->agent);
    print_field("attempt", attempt);
    print_field("status", one->status);
    print_field("superseded", one->superseded ? "true" : "");
    print_value("error", one->error);
    print_field("description", one->description);
    print_value("result", one->result);
    return CLI_OK;
}

/* The same document as the server's. */
static int print_json(const rv_attachment_list *list, bool one)
{
    struct rv__buf out;
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by the run */
    rv__buf_text(&out, one ? "" : "{\"attachments\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            rv__buf_char(&out, ',');
        rv__put_attachment(&out, &list->attachments[i]);
        if (one) {
            rv__put_json(&out, "result", list->attachments[i].result);
            rv__put_json(&out, "error", list->attachments[i].error);
        }
        rv__buf_char(&out, '}');
    }
    if (!one)
        rv__buf_fmt(&out, "],\"total\":%zu,\"offset\":0}", list->total);
    int code = rv__print_json(&out);
    rv__buf_done(&out);
    return code;
}

static int show(struct rv__look *look)
{
    struct attachments *it = look->arg;
    rv_attachment_list *list = NULL;
    rv_error err;
    bool one = look->argc > 0;
    int rc = one ? rv__client_attachment(look->client, look->run_id, look->argv[0], &list, &err)
                 : rv__client_attachments(look->client, look->run_id, &it->query, &list, &err);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    int code = look->json ? print_json(list, one)
               : one      ? print_one(&list->attachments[0])
                          : print_table(list);
    rv_attachment_list_free(list);
    return code;
}

static int run_attachments(int argc, char **argv)
{
    struct attachments it = { .query = { .size = sizeof it.query, .limit = PAGE } };
    int count = rv__options(&rv__cmd_attachments, argc, argv, &it);
    if (count < 0)
        return -count;
    int64_t last = 0;
    if (it.last != NULL && !rv__count_read(it.last, &last))
        return rv__cli_usage("attachments", "--last '%s' must be 1 or more", it.last);
    it.query.last = (size_t)last;
    it.look.arg = &it;
    return rv__look_at_run(&it.look, count, argv, show);
}

static const struct rv__option options[] = {
    { "--stage", "NAME", "only of this stage", RV__INTO(struct attachments, query.stage) },
    { "--state", "NAME", "only of this state", RV__INTO(struct attachments, query.state) },
    { "--status", "STATUS", "init, running, finished, errored or skipped",
      RV__INTO(struct attachments, query.status) },
    { "--latest", .meaning = "of each state only the last that is not superseded",
      RV__INTO(struct attachments, query.latest) },
    { "--last", "N", "the last N that have ended and are not superseded",
      RV__INTO(struct attachments, last) },
    RV__OPTIONS_WHERE(struct attachments, look.where),
    RV__OPTION_JSON(struct attachments, look.json,
                    "{\"attachments\": [...], \"total\"}; with AID: one, with its result or error"),
    { NULL },
};

const struct rv__command rv__cmd_attachments = {
    .name = "attachments",
    .section = SECTION_LOOK,
    .summary = "list the records of the states of a run, or show one",
    .arguments = { { "ID", "of which run?", .completes = COMPLETES_RUN }, { "AID" } },
    .options = options,
    .paragraphs = { "Each attempt of each state of a stage leaves one attachment: its result or "
                    "its error, with the times. They are listed in the order in which they ended; "
                    "at most 1,000." },
    .examples = { { "rival attachments review-1" },
                  { "rival attachments review-1 --stage triage --latest" },
                  { "rival attachments review-1 '[triage][gather][asker]_261117T081500_0'" } },
    .run = run_attachments,
};
