/* attachments.c: `rival attachments`: the attachments of the attempts of a run's states. */
#include <string.h>

#include "base/clock.h"
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

static struct rv__str member(struct rv__str object, const char *key)
{
    struct rv__str value;
    return rv__json_get(object, key, &value) ? value : (struct rv__str){ NULL, 0 };
}

static int64_t number_of(struct rv__str object, const char *key)
{
    int64_t number = 0;
    struct rv__str value = member(object, key);
    if (value.len > 0)
        (void)rv__json_int(value, &number); /* null or anything else: 0 */
    return number;
}

/* Append a text of the document, made safe for a terminal. */
static void put_text(struct rv__buf *out, struct rv__str json)
{
    struct rv__arena arena;
    struct rv__str text = json;
    rv__arena_init(&arena, RV__JSON_MAX_BYTES);
    if (rv__json_type(json) != RV__JSON_STRING || rv__json_string(json, &arena, &text) == RV_OK)
        (void)rv__text_fit(out, text, TEXT_WIDTH);
    rv__arena_done(&arena);
}

static void add_cell(struct rv__table *table, enum rv__colour colour, struct rv__str json)
{
    struct rv__buf text;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    if (json.len > 0 && !rv__str_is(json, "null"))
        put_text(&text, json);
    rv__table_cell(table, (int)colour, rv__buf_view(&text).at);
    rv__buf_done(&text);
}

static enum rv__colour colour_of(struct rv__str status)
{
    if (rv__json_string_is(status, rv__str("errored")))
        return RED;
    return rv__json_string_is(status, rv__str("finished")) ? GREEN : DIM;
}

static void add_row(struct rv__table *table, struct rv__str one)
{
    char time[RV__DURATION_TEXT];
    int64_t end = number_of(one, "completedAt");
    struct rv__str status = member(one, "status");
    bool superseded = rv__str_is(member(one, "superseded"), "true");
    add_cell(table, PLAIN, member(one, "id"));
    if (superseded)
        rv__table_cell(table, DIM, "superseded");
    else
        add_cell(table, colour_of(status), status);
    rv__table_cell(table, DIM,
                   end != 0 ? rv__text_duration(end - number_of(one, "startedAt"), time) : "");
    add_cell(table, PLAIN, member(one, "description"));
}

static int print_table(struct rv__str document)
{
    struct rv__json_iter it;
    struct rv__str one, list = member(document, "attachments");
    if (list.len == 0 || rv__json_type(list) != RV__JSON_ARRAY || rv__json_count(list) == 0) {
        fprintf(stderr, "no attachments: only states of stages have them\n");
        return CLI_OK;
    }
    struct rv__table *table = rv__table_new(4);
    if (table == NULL)
        return rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    static const char *const heads[] = { "ID", "STATUS", "TOOK", "DESCRIPTION" };
    for (size_t i = 0; i < 4; i++)
        rv__table_cell(table, DIM, heads[i]);
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &one))
        if (rv__json_type(one) == RV__JSON_OBJECT)
            add_row(table, one);
    bool printed = rv__table_print(table, stdout);
    rv__table_free(table);
    return printed ? CLI_OK : rv__cli_fail(CLI_FAILED, "out of memory", NULL);
}

static void print_field(const char *name, struct rv__str json)
{
    struct rv__buf text;
    if (json.len == 0 || rv__str_is(json, "null") || rv__str_is(json, "\"\""))
        return;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    put_text(&text, json);
    printf("%s%-11s%s %s\n", rv__colour(stdout, DIM), name, rv__colour(stdout, PLAIN),
           rv__buf_view(&text).at);
    rv__buf_done(&text);
}

static int print_one(struct rv__str one)
{
    static const char *const names[] = { "id",     "stage",      "state", "agent",       "attempt",
                                         "status", "superseded", "error", "description", "result" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        print_field(names[i], member(one, names[i]));
    return CLI_OK;
}

static int show(struct rv__look *look)
{
    struct attachments *it = look->arg;
    char *text = NULL;
    struct rv__buf json;
    rv_error err;
    bool one = look->argc > 0;
    int rc = one ? rv__client_attachment(look->client, look->run_id, look->argv[0], &text, &err)
                 : rv__client_attachments(look->client, look->run_id, &it->query, &text, &err);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    int code;
    if (look->json) {
        rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the run */
        rv__buf_text(&json, text);
        code = rv__print_json(&json);
        rv__buf_done(&json);
    } else {
        code = one ? print_one(rv__str(text)) : print_table(rv__str(text));
    }
    rv_free(text);
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
