/* workflows.c: `rival workflows`: the workflows that can be run from here. */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

static int print_list(const rv_workflow_list *list)
{
    struct rv__buf out;
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by the list */
    rv__buf_text(&out, "{\"workflows\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            rv__buf_char(&out, ',');
        rv__put_workflow(&out, &list->items[i]);
        rv__buf_char(&out, '}');
    }
    rv__buf_text(&out, "]}");
    int code = rv__print_json(&out);
    rv__buf_done(&out);
    return code;
}

/* The names that the input schema requires. */
static void put_required(struct rv__buf *out, const char *schema)
{
    struct rv__str required, name;
    struct rv__json_iter it;
    if (*schema == '\0' || !rv__json_get(rv__str(schema), "required", &required))
        return;
    rv__json_iter_init(&it, required);
    while (rv__json_next(&it, NULL, &name)) {
        if (out->len > 0)
            rv__buf_text(out, ", ");
        rv__text_error(out, name);
    }
}

static int print_table(const rv_workflow_list *list)
{
    static const char *const head[] = { "WORKFLOW", "FILE", "NEEDS", "DESCRIPTION" };
    struct rv__table *table = rv__table_new(4);
    if (table == NULL)
        return rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    for (size_t i = 0; i < 4; i++)
        rv__table_cell(table, DIM, head[i]);
    for (size_t i = 0; i < list->count; i++) {
        const rv_workflow_info *w = &list->items[i];
        struct rv__buf needs;
        rv__buf_init(&needs, RV__JSON_MAX_BYTES);
        put_required(&needs, w->input_schema);
        rv__table_cell(table, BOLD, w->name);
        rv__table_cell(table, PLAIN, strncmp(w->source, "./", 2) == 0 ? w->source + 2 : w->source);
        rv__table_cell(table, PLAIN, rv__buf_view(&needs).at);
        rv__table_cell(table, PLAIN, w->description);
        rv__buf_done(&needs);
    }
    bool good = list->count == 0 || rv__table_print(table, stdout);
    rv__table_free(table);
    return good ? CLI_OK : rv__cli_fail(CLI_FAILED, "out of memory", NULL);
}

struct workflows {
    struct rv__where where;
    bool json;
};

static int print(const struct workflows *workflows, const rv_workflow_list *list)
{
    return workflows->json ? print_list(list) : print_table(list);
}

/* ------------------------------------------------------------------------------------ files --- */

static int count_steps(rv_report *report, size_t workflow)
{
    const char *plan;
    struct rv__str steps;
    if (rv_report_plan(report, workflow, RV_PLAN_JSON, &plan, NULL) < 0 ||
        !rv__json_get(rv__str(plan), "steps", &steps))
        return 0;
    return (int)rv__json_count(steps);
}

static int print_files(const struct workflows *workflows, const char *const *paths, size_t count)
{
    rv_report *report = NULL;
    rv_error err;
    if (rv_check_files(paths, count, NULL, &report, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    size_t found = report->workflow_count + report->c_file_count;
    rv_workflow_info *items = rv__zalloc(found + 1, sizeof *items);
    int code = CLI_FAILED;
    for (size_t i = 0; items != NULL && i < report->c_file_count; i++)
        items[report->workflow_count + i] = (rv_workflow_info){ .name = report->c_files[i].name,
                                                                .description = "",
                                                                .input_schema = "",
                                                                .version = "",
                                                                .source = report->c_files[i].file };
    for (size_t i = 0; items != NULL && i < report->workflow_count; i++) {
        const rv_file_workflow *w = &report->workflows[i];
        items[i] = (rv_workflow_info){ .name = w->name,
                                       .description = w->description,
                                       .input_schema = w->input_schema,
                                       .version = w->version,
                                       .source = w->file,
                                       .step_count = count_steps(report, i) };
    }
    if (items != NULL)
        code = print(workflows, &(rv_workflow_list){ .count = found, .items = items });
    else
        (void)rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    if (found == 0 && !workflows->json)
        fprintf(stderr, "no workflows here; `rival new NAME` creates one\n");
    if (report->c_file_count > 0 && !workflows->json)
        fprintf(stderr, "of C files only the name is known here: listing runs no code\n");
    if (report->problem_count > 0 && !workflows->json)
        fprintf(stderr, "some files are broken: rival check\n");
    rv__free(items);
    rv_report_free(report);
    return code;
}

/* ----------------------------------------------------------------------------------- server --- */

static int print_served(const struct workflows *workflows, struct rv__client *client)
{
    rv_workflow_list *list = NULL;
    rv_error err;
    if (rv__client_workflows(client, &list, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    int code = print(workflows, list);
    if (list->count == 0 && !workflows->json)
        fprintf(stderr, "the server at %s has no workflows\n", rv__client_name(client));
    rv_workflow_list_free(list);
    return code;
}

/* Print the workflows of the process that drives the store, if there is one. */
static int ask_driver(const struct workflows *workflows)
{
    rv_driver driver;
    int code = CLI_OK;
    struct rv__client *client = rv__client_open(&workflows->where, ACCESS_ASK, &code);
    if (client == NULL)
        return code;
    code = rv_engine_driver(rv__client_engine(client), &driver, NULL) == 1
               ? print_served(workflows, client)
               : rv__cli_fail(CLI_FAILED, "no process drives this store, so it has no workflows",
                              "`rival serve DIR --store FILE` does");
    rv__client_close(client);
    return code;
}

static int run_workflows(int argc, char **argv)
{
    struct workflows workflows = { .json = false };
    static const char *const here[] = { "." };
    const char *store;
    int code = CLI_OK;
    int count = rv__options(&rv__cmd_workflows, argc, argv, &workflows);
    if (count < 0)
        return -count;
    if (count > 0)
        return print_files(&workflows, (const char *const *)argv, (size_t)count);
    if (workflows.where.store != NULL)
        return ask_driver(&workflows);
    struct rv__client *client = rv__client_server(&workflows.where, &store, &code);
    if (client != NULL)
        code = print_served(&workflows, client);
    else if (code == CLI_OK)
        code = print_files(&workflows, here, 1);
    rv__client_close(client);
    return code;
}

static const struct rv__option options[] = {
    { "--json",
      .meaning = "{\"workflows\": [{\"name\", \"description\", \"version\", \"source\", "
                 "\"stepCount\", \"cannotStart\", \"inputSchema\"}]}",
      RV__INTO(struct workflows, json) },
    RV__OPTIONS_SERVER(struct workflows, where),
    { "--store", "FILE", "workflows of the process that drives this store",
      .completes = COMPLETES_FILE, RV__INTO(struct workflows, where.store) },
    { NULL },
};

const struct rv__command rv__cmd_workflows = {
    .name = "workflows",
    .section = SECTION_FILES,
    .summary = "list workflows that can be run",
    .arguments = { { "DIR|FILE", .many = true, .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Lists the workflows in the given files and folders. Without arguments, lists "
                    "those of the server, or those in this folder if no server answers." },
    .examples = { { "rival workflows" },
                  { "rival workflows --store orders.db", "what `rival run` can start there" },
                  { "rival workflows examples/ --json | jq -r '.workflows[].name'" } },
    .run = run_workflows,
};
