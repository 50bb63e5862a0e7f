/* plan.c: `rival plan`: what a workflow will do, as JSON, as a tree, as a flowchart. */
#include "cli/cli.h"

#include <string.h>

#include "base/suggest.h"

/* The workflow that the file itself defines; those it nests are in the report too. */
static size_t find_workflow(const rv_report *report, const char *file)
{
    size_t i = 0;
    while (i < report->workflow_count && strcmp(report->workflows[i].file, file) != 0)
        i++;
    return i;
}

static int print_plan(rv_report *report, const char *file, int format)
{
    const char *text;
    rv_error err;
    for (size_t i = 0; i < report->problem_count; i++)
        rv__cli_problem(stderr, &report->problems[i]);
    size_t index = find_workflow(report, file);
    if (index == report->workflow_count) {
        if (report->problem_count == 0)
            fprintf(stderr, "rival: %s is not a workflow in YAML or JSON\n", file);
        return CLI_FAILED;
    }
    if (rv_report_plan(report, index, format, &text, &err) < 0) {
        fprintf(stderr, "rival: %s\n", err.message);
        return CLI_FAILED;
    }
    printf("%s%s", text, format == RV_PLAN_JSON ? "\n" : "");
    return CLI_OK;
}

static int unknown_format(const char *format)
{
    static const char *const formats[] = { "json", "text", "mermaid" };
    const char *meant = rv__suggest(rv__str(format), formats, 3);
    return rv__cli_usage("plan", "there is no format '%s'; there are: json, text, mermaid%s%s%s",
                         format, meant ? "; did you mean '" : "", meant ? meant : "",
                         meant ? "'?" : "");
}

static int find_format(const char *name)
{
    if (strcmp(name, "json") == 0)
        return RV_PLAN_JSON;
    if (strcmp(name, "text") == 0)
        return RV_PLAN_TEXT;
    return strcmp(name, "mermaid") == 0 ? RV_PLAN_MERMAID : -1;
}

int rv__cmd_plan(int argc, char **argv)
{
    rv_report *report = NULL;
    rv_error err;
    const char *file = NULL, *format = "json";
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--format=", 9) == 0)
            format = argv[i] + 9;
        else if (strcmp(argv[i], "--format") == 0 && i + 1 < argc)
            format = argv[++i];
        else if (strcmp(argv[i], "--format") == 0)
            return rv__cli_usage("plan", "--format needs one of json, text, mermaid");
        else if (strcmp(argv[i], "--json") == 0)
            format = "json";
        else if (argv[i][0] == '-' && argv[i][1] != '\0')
            return rv__cli_usage("plan", "unknown option '%s'", argv[i]);
        else if (file != NULL)
            return rv__cli_usage("plan", "one file at a time: '%s' is one too many", argv[i]);
        else
            file = argv[i];
    }
    if (file == NULL)
        return rv__cli_usage("plan", "which file?");
    if (find_format(format) < 0)
        return unknown_format(format);

    if (rv_check_files(&file, 1, &report, &err) < 0) {
        fprintf(stderr, "rival: %s\n", err.message);
        return CLI_FAILED;
    }
    int code = print_plan(report, file, find_format(format));
    rv_report_free(report);
    return code;
}
