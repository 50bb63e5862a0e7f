/* plan.c: `rival plan`: the plan of a workflow, as JSON, a tree or a flowchart. */
#include "cli/cli.h"

#include <string.h>

static int print_plan(rv_report *report, const char *file, const char *name, int format)
{
    const char *text;
    rv_error err;
    for (size_t i = 0; i < report->problem_count; i++)
        rv__cli_problem(stderr, &report->problems[i]);
    size_t index = rv__cli_workflow_of(report, file, name);
    if (index == SIZE_MAX)
        return CLI_USAGE;
    bool unloaded = index < report->workflow_count && report->workflows[index].partial;
    for (size_t i = 0; i < report->c_file_count && !unloaded; i++)
        unloaded = strcmp(report->c_files[i].file, file) == 0;
    if (unloaded)
        return rv__cli_fail(CLI_FAILED,
                            "the plan of a file in C or TypeScript is known only by running its "
                            "code; --load allows that",
                            "--load does it");
    if (index == report->workflow_count) {
        if (report->problem_count == 0)
            fprintf(stderr, "rival: %s is not a workflow\n", file);
        return CLI_FAILED;
    }
    if (rv_report_plan(report, index, format, &text, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    printf("%s%s", text, format == RV_PLAN_JSON ? "\n" : "");
    return CLI_OK;
}

struct plan {
    int format;
    bool json, load;
    const char *workflow;
};

static int run_plan(int argc, char **argv)
{
    rv_report *report = NULL;
    rv_error err;
    struct plan plan = { .format = RV_PLAN_JSON };
    int count = rv__options(&rv__cmd_plan, argc, argv, &plan);
    if (count < 0)
        return -count;

    const char *file = argv[0];
    int c_files = plan.load ? RV_C_FILES_LOADED : RV_C_FILES_NAMED;
    if (rv_check_files(&file, 1, RV_CHECK_OPTS(.c_files = c_files), &report, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    int code = print_plan(report, file, plan.workflow, plan.json ? RV_PLAN_JSON : plan.format);
    rv_report_free(report);
    return code;
}

static const char *const formats[] = { "json", "text", "mermaid", NULL }; /* as the enum */

static const struct rv__option options[] = {
    { "--format", "FORMAT",
      "json: the plan that each run keeps (the default); text: a tree of nodes, "
      "conditions, time-outs, retries; mermaid: a flowchart for Markdown pages and mermaid.live",
      .choices = formats, RV__INTO(struct plan, format) },
    { "--json", .meaning = "the same as --format json", RV__INTO(struct plan, json) },
    { "--load", .meaning = "load C and TypeScript files, which runs their code, to see their plans",
      RV__INTO(struct plan, load) },
    { "--workflow", "NAME", "which workflow, of a file with several manifests",
      RV__INTO(struct plan, workflow) },
    { NULL },
};

const struct rv__command rv__cmd_plan = {
    .name = "plan",
    .section = SECTION_FILES,
    .summary = "show what a workflow will do",
    .arguments = { { "FILE", "which file?", .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Checks the file as `rival check` does, and prints its plan, including "
                    "nested workflows. The plan of a file in C or TypeScript is known only by "
                    "running its code, so these files are refused without --load." },
    .examples = { { "rival plan order.yaml --format text" },
                  { "rival plan order.yaml --format mermaid > order.mmd" },
                  { "rival plan order.yaml | jq '.steps[].alias'" } },
    .run = run_plan,
};
