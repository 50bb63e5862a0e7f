/* members.c: `rival members`: the processes that share a store. */
#include "base/clock.h"
#include "cli/document.h"
#include "cli/runs.h"
#include "cli/text.h"

struct members {
    struct rv__where where;
    bool json;
};

static int print_table(const struct rv__store_members *list, int64_t now_ms)
{
    static const char *const head[] = { "MEMBER", "PROCESS", "VERSION", "RUNS", "SINCE", "LEASE" };
    struct rv__table *table = rv__table_new(6);
    if (table == NULL)
        return rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        rv__table_cell(table, DIM, head[i]);
    for (size_t i = 0; i < list->count; i++) {
        const struct rv__store_member *member = &list->items[i];
        char runs[24], when[RV__WHEN_TEXT], left[RV__DURATION_TEXT];
        int64_t left_ms = member->lease_until - now_ms;
        snprintf(runs, sizeof runs, "%lld", (long long)member->runs);
        rv__table_cell(table, PLAIN, member->id);
        rv__table_cell(table, PLAIN, member->process);
        rv__table_cell(table, PLAIN, member->version);
        rv__table_cell(table, PLAIN, runs);
        rv__table_cell(table, PLAIN, rv__text_when(member->since, now_ms, when));
        rv__table_cell(table, left_ms > 0 ? PLAIN : RED,
                       left_ms > 0 ? rv__text_duration(left_ms, left) : "over");
    }
    bool good = rv__table_print(table, stdout);
    rv__table_free(table);
    return good ? CLI_OK : rv__cli_fail(CLI_FAILED, "out of memory", NULL);
}

static int print(const struct members *members, const char *text)
{
    void *list = NULL;
    struct rv__buf json;
    rv_error err;
    if (members->json) {
        rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the members */
        rv__buf_text(&json, text);
        int code = rv__print_json(&json);
        rv__buf_done(&json);
        return code;
    }
    if (rv__document_read(&rv__doc_members, rv__str(text), 0, &list, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    int code = CLI_OK;
    if (((struct rv__store_members *)list)->count == 0)
        fprintf(stderr, "no members: one process at a time drives this store\n");
    else
        code = print_table(list, rv__wall_ms(rv__clock_real()));
    rv_free(list);
    return code;
}

static int run_members(int argc, char **argv)
{
    struct members members = { .json = false };
    char *text = NULL;
    rv_error err;
    int count = rv__options(&rv__cmd_members, argc, argv, &members), code = CLI_OK;
    if (count < 0)
        return -count;
    struct rv__client *client = rv__client_open(&members.where, ACCESS_LOOK, &code);
    if (client == NULL)
        return code;
    code = rv__client_members(client, &text, &err) < 0 ? rv__cli_fail(CLI_FAILED, err.message, NULL)
                                                       : print(&members, text);
    rv_free(text);
    rv__client_close(client);
    return code;
}

static const struct rv__option options[] = {
    RV__OPTIONS_WHERE(struct members, where),
    RV__OPTION_JSON(struct members, json,
                    "{\"members\": [{\"id\", \"process\", \"version\", \"workers\", \"runs\", "
                    "\"since\", \"leaseUntil\"}]}"),
    { NULL },
};

const struct rv__command rv__cmd_members = {
    .name = "members",
    .section = SECTION_LOOK,
    .summary = "list the processes that share a store",
    .options = options,
    .paragraphs = { "Several `rival serve` with the same store in PostgreSQL share its runs. For "
                    "each: its process and machine, how many runs it has in memory, and how long "
                    "its lease lasts unless it is renewed, which happens several times before." },
    .examples = { { "rival members --store postgres://db.example.org/rival" },
                  { "rival members --json | jq '.members[].process'" } },
    .run = run_members,
};
