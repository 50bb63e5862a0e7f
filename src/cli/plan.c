/* plan.c: `rival plan`: what a workflow will do, as JSON, as a tree, as a flowchart. */
#include "cli/cli.h"

#include "cli/options.h"

static int print_plan(rv_report *report, const char *file, int format)
{
    const char *text;
    rv_error err;
    for (size_t i = 0; i < report->problem_count; i++)
        rv__cli_problem(stderr, &report->problems[i]);
    size_t index = rv__cli_workflow_of(report, file);
    if (index == report->workflow_count) {
        if (report->problem_count == 0)
            fprintf(stderr, "rival: %s is not a workflow in YAML or JSON\n", file);
        return CLI_FAILED;
    }
    if (rv_report_plan(report, index, format, &text, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    printf("%s%s", text, format == RV_PLAN_JSON ? "\n" : "");
    return CLI_OK;
}

int rv__cmd_plan(int argc, char **argv)
{
    static const char *const formats[] = { "json", "text", "mermaid",
                                           NULL }; /* as the enum has them */
    rv_report *report = NULL;
    rv_error err;
    const char *name = "json";
    bool json = false;
    const struct rv__option options[] = { { "--format", .text = &name },
                                          { "--json", .flag = &json },
                                          { NULL } };
    int count = rv__options_args("plan", argc, argv, options, 1, 1, "which file?");
    if (count < 0)
        return -count;
    int format = json ? RV_PLAN_JSON : rv__option_choice("plan", "--format", name, formats);
    if (format < 0)
        return CLI_USAGE;

    const char *file = argv[0];
    if (rv_check_files(&file, 1, &report, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    int code = print_plan(report, file, format);
    rv_report_free(report);
    return code;
}
