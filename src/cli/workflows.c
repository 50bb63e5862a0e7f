/* workflows.c: `rival workflows`: what can be run from here. */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

static int print_list(const rv_report *report)
{
    struct rv__buf out;
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by the files */
    rv__buf_text(&out, "{\"workflows\":[");
    for (size_t i = 0; i < report->workflow_count; i++) {
        const rv_file_workflow *w = &report->workflows[i];
        rv__buf_text(&out, i > 0 ? ",{\"name\":" : "{\"name\":");
        rv__buf_json_str(&out, rv__str(w->name));
        rv__put_text(&out, "description", w->description);
        rv__put_text(&out, "version", w->version);
        rv__put_text(&out, "file", w->file);
        rv__put_int(&out, "nodes", w->node_count);
        if (*w->input_schema != '\0')
            rv__buf_fmt(&out, ",\"inputSchema\":%s", w->input_schema);
        rv__buf_char(&out, '}');
    }
    rv__buf_text(&out, "]}");
    int code = rv__print_json(&out);
    rv__buf_done(&out);
    return code;
}

/* What an input has to have: the names that its schema requires. */
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

static int print_table(const rv_report *report)
{
    static const char *const head[] = { "WORKFLOW", "FILE", "NEEDS", "DESCRIPTION" };
    struct rv__table *table = rv__table_new(4);
    if (table == NULL)
        return rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    for (size_t i = 0; i < 4; i++)
        rv__table_cell(table, DIM, head[i]);
    for (size_t i = 0; i < report->workflow_count; i++) {
        const rv_file_workflow *w = &report->workflows[i];
        struct rv__buf needs;
        rv__buf_init(&needs, RV__JSON_MAX_BYTES);
        put_required(&needs, w->input_schema);
        rv__table_cell(table, BOLD, w->name);
        rv__table_cell(table, PLAIN, strncmp(w->file, "./", 2) == 0 ? w->file + 2 : w->file);
        rv__table_cell(table, PLAIN, rv__buf_view(&needs).at);
        rv__table_cell(table, PLAIN, w->description);
        rv__buf_done(&needs);
    }
    bool good = report->workflow_count == 0 || rv__table_print(table, stdout);
    rv__table_free(table);
    if (report->workflow_count == 0)
        fprintf(stderr, "no workflows here; `rival new NAME` makes one to begin with\n");
    if (report->problem_count > 0)
        fprintf(stderr, "some files are broken: rival check\n");
    return good ? CLI_OK : rv__cli_fail(CLI_FAILED, "out of memory", NULL);
}

struct workflows {
    bool json;
    const char *store;
};

/* What the process that drives the store offers, as if it were found in files. */
static int print_served(const struct workflows *w)
{
    rv_workflow_list *list = NULL;
    rv_driver driver;
    rv_error err;
    int code = CLI_FAILED;
    rv_engine *engine = rv__store_to_ask(w->store);
    if (engine == NULL)
        return CLI_FAILED;
    if (rv_engine_driver(engine, &driver, &err) != 1) {
        (void)rv__cli_fail(CLI_FAILED, "nobody drives this store, so nobody has workflows for it",
                           "`rival serve DIR --store FILE` does");
    } else if (rv_workflows(engine, &list, &err) < 0) {
        (void)rv__cli_fail(CLI_FAILED, err.message, NULL);
    } else {
        rv_file_workflow *items = rv__zalloc(list->count + 1, sizeof *items);
        rv_report report = { .workflow_count = items != NULL ? list->count : 0,
                             .workflows = items };
        for (size_t i = 0; i < report.workflow_count; i++)
            items[i] = (rv_file_workflow){ .name = list->items[i].name,
                                           .description = list->items[i].description,
                                           .input_schema = list->items[i].input_schema,
                                           .version = list->items[i].version,
                                           .file = list->items[i].source,
                                           .node_count = list->items[i].step_count };
        code = w->json ? print_list(&report) : print_table(&report);
        rv__free(items);
    }
    rv_workflow_list_free(list);
    rv_engine_free(engine);
    return code;
}

static int run_workflows(int argc, char **argv)
{
    rv_report *report = NULL;
    rv_error err;
    struct workflows workflows = { .json = false };
    static char here[] = ".";
    char *only_here[] = { here };
    int count = rv__options(&rv__cmd_workflows, argc, argv, &workflows);
    if (count < 0)
        return -count;
    if (workflows.store != NULL && count > 0)
        return rv__cli_usage("workflows", "files, or --store: one of the two");
    if (workflows.store != NULL)
        return print_served(&workflows);
    char **paths = count > 0 ? argv : only_here;
    if (rv_check_files((const char *const *)paths, count > 0 ? (size_t)count : 1, &report, &err) <
        0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    int code = workflows.json ? print_list(report) : print_table(report);
    rv_report_free(report);
    return code;
}

static const struct rv__option options[] = {
    { "--store", "FILE", "those of the process that serves this store, instead",
      .completes = COMPLETES_FILE, RV__INTO(struct workflows, store) },
    { "--json",
      .meaning = "{\"workflows\": [{\"name\", \"description\", \"file\", \"version\", "
                 "\"nodes\", \"inputSchema\"}]}",
      RV__INTO(struct workflows, json) },
    { NULL },
};

const struct rv__command rv__cmd_workflows = {
    .name = "workflows",
    .section = SECTION_FILES,
    .summary = "list the workflows of files and folders",
    .arguments = { { "DIR|FILE", .many = true, .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Those of this folder, if none is named." },
    .examples = { { "rival workflows" },
                  { "rival workflows --store orders.db", "what `rival run` can begin there" },
                  { "rival workflows examples/ --json | jq -r '.workflows[].name'" } },
    .run = run_workflows,
};
