/* check.c: `rival check`: checks workflow files and reports problems with their positions. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* file:line:column: message, the line, and a caret below the position: like compilers, so that editors can jump
 * there. */
static void print_problem(FILE *to, const rv_problem *problem, const char *what, const char *colour)
{
    fprintf(to, "%s%s", rv__colour(to, BOLD), problem->file);
    if (problem->line > 0)
        fprintf(to, ":%d:%d", problem->line, problem->column);
    fprintf(to, ":%s %s%s:%s %s\n", rv__colour(to, PLAIN), colour, what, rv__colour(to, PLAIN),
            problem->message);
    if (problem->line == 0)
        return;
    fprintf(to, "%6d | %s\n", problem->line, problem->excerpt);
    fprintf(to, "       | %*s%s^%s\n", problem->caret, "", colour, rv__colour(to, PLAIN));
}

void rv__cli_problem(FILE *to, const rv_problem *problem)
{
    print_problem(to, problem, "error", rv__colour(to, RED));
}

size_t rv__cli_workflow_of(const rv_report *report, const char *file, const char *name)
{
    size_t found = report->workflow_count, count = 0;
    struct rv__buf names;
    rv__buf_init(&names, 4096);
    for (size_t i = 0; i < report->workflow_count; i++) {
        if (strcmp(report->workflows[i].file, file) != 0)
            continue;
        rv__buf_fmt(&names, "%s%s", count++ > 0 ? ", " : "", report->workflows[i].name);
        if (found == report->workflow_count &&
            (name == NULL || strcmp(report->workflows[i].name, name) == 0))
            found = i;
    }
    bool several = name == NULL && count > 1,
         unknown = count > 0 && found == report->workflow_count;
    if (several)
        fprintf(stderr, "rival: %s has several workflows: say which with --workflow NAME (%s)\n",
                file, rv__buf_view(&names).at);
    else if (unknown)
        fprintf(stderr, "rival: %s has no workflow '%s'; it has %s\n", file, name,
                rv__buf_view(&names).at);
    rv__buf_done(&names);
    return several || unknown ? SIZE_MAX : found;
}

static void add_text(struct rv__buf *out, const char *key, const char *text)
{
    rv__buf_fmt(out, ",\"%s\":", key);
    rv__buf_json_str(out, rv__str(text));
}

static void put_problems(struct rv__buf *out, const char *key, const rv_problem *problems,
                         size_t count)
{
    rv__buf_fmt(out, ",\"%s\":[", key);
    for (size_t i = 0; i < count; i++) {
        const rv_problem *p = &problems[i];
        rv__buf_fmt(out, "%s{\"line\":%d,\"column\":%d", i > 0 ? "," : "", p->line, p->column);
        add_text(out, "file", p->file);
        add_text(out, "message", p->message);
        add_text(out, "excerpt", p->excerpt);
        rv__buf_char(out, '}');
    }
    rv__buf_char(out, ']');
}

static int print_json(const rv_report *report)
{
    struct rv__buf out;
    rv__buf_init(&out, 256u << 20); /* bounded by the report: a hundred problems per file */
    rv__buf_fmt(&out, "{\"ok\":%s,\"files\":%zu,\"workflows\":[",
                report->problem_count == 0 ? "true" : "false", report->file_count);
    for (size_t i = 0; i < report->workflow_count; i++) {
        const rv_file_workflow *w = &report->workflows[i];
        rv__buf_fmt(&out, "%s{\"nodes\":%d", i > 0 ? "," : "", w->node_count);
        add_text(&out, "name", w->name);
        add_text(&out, "file", w->file);
        add_text(&out, "version", w->version);
        rv__buf_char(&out, '}');
    }
    rv__buf_char(&out, ']');
    put_problems(&out, "problems", report->problems, report->problem_count);
    put_problems(&out, "warnings", report->warnings, report->warning_count);
    rv__buf_text(&out, ",\"notLoaded\":[");
    for (size_t i = 0; i < report->c_file_count; i++) {
        if (i > 0)
            rv__buf_char(&out, ',');
        rv__buf_json_str(&out, rv__str(report->c_files[i].file));
    }
    rv__buf_text(&out, "]}");
    int rc = out.rc;
    if (rc == RV_OK)
        printf("%s\n", out.text);
    rv__buf_done(&out);
    return rc;
}

static size_t count_bad_files(const rv_report *report)
{
    size_t count = 0;
    for (size_t i = 0; i < report->problem_count; i++)
        count += i == 0 || strcmp(report->problems[i].file, report->problems[i - 1].file) != 0;
    return count;
}

/* What was checked in a file that was not loaded. */
static const char *looked_at(const char *file)
{
    const char *dot = strrchr(file, '.');
    return dot == NULL || strcmp(dot, ".so") == 0 ? "an object"
           : strcmp(dot, ".c") == 0               ? "compiles"
                                                  : "parses";
}

static void print_text(const rv_report *report)
{
    for (size_t i = 0; i < report->problem_count; i++)
        rv__cli_problem(stderr, &report->problems[i]);
    for (size_t i = 0; i < report->warning_count; i++)
        print_problem(stderr, &report->warnings[i], "warning", rv__colour(stderr, YELLOW));
    for (size_t i = 0; i < report->workflow_count; i++) {
        const rv_file_workflow *w = &report->workflows[i];
        printf("%sok%s  %s  (%s, ", rv__colour(stdout, GREEN), rv__colour(stdout, PLAIN), w->name,
               w->file);
        if (w->partial)
            printf("without the file that it nests)\n");
        else
            printf("%d node%s)\n", w->node_count, w->node_count == 1 ? "" : "s");
    }
    for (size_t i = 0; i < report->c_file_count; i++)
        printf("%s--%s  %s  (%s; its plan was not checked: --load does that, and runs its code)\n",
               rv__colour(stdout, DIM), rv__colour(stdout, PLAIN), report->c_files[i].file,
               looked_at(report->c_files[i].file));
    if (report->problem_count > 0)
        fprintf(stderr, "%zu problem%s in %zu file%s; %zu workflow%s good\n",
                report->problem_count + report->omitted,
                report->problem_count + report->omitted == 1 ? "" : "s", count_bad_files(report),
                count_bad_files(report) == 1 ? "" : "s", report->workflow_count,
                report->workflow_count == 1 ? " is" : "s are");
    else if (report->workflow_count + report->c_file_count == 0)
        printf("no workflows there\n");
}

struct check {
    bool json, load;
};

static int run_check(int argc, char **argv)
{
    rv_report *report = NULL;
    rv_error err;
    struct check check = { .json = false };
    int count = rv__options(&rv__cmd_check, argc, argv, &check);
    if (count < 0)
        return -count;

    int c_files = check.load ? RV_C_FILES_LOADED : RV_C_FILES_COMPILED;
    int rc = rv_check_files((const char *const *)argv, (size_t)count,
                            RV_CHECK_OPTS(.c_files = c_files), &report, &err);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    if (check.json)
        rc = print_json(report);
    else
        print_text(report);
    int code = rc == RV_OK && report->problem_count == 0 ? CLI_OK : CLI_FAILED;
    rv_report_free(report);
    return code;
}

static const struct rv__option options[] = {
    { "--json",
      .meaning = "a JSON object: {\"ok\", \"files\", \"workflows\", \"problems\": [{\"file\", "
                 "\"line\", \"column\", \"message\", \"excerpt\"}], \"warnings\": […], "
                 "\"notLoaded\"}",
      RV__INTO(struct check, json) },
    { "--load",
      .meaning = "load C and TypeScript files too, which runs their code, and check the plans that "
                 "they declare",
      RV__INTO(struct check, load) },
    { NULL },
};

const struct rv__command rv__cmd_check = {
    .name = "check",
    .section = SECTION_FILES,
    .summary = "find mistakes in workflow files",
    .arguments = { { "FILE|DIR", "which files or folders?", .many = true,
                     .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Checks workflow files in YAML and JSON, and folders of them (without hidden "
                    "files): syntax, keys, durations, the input schema, every expression and the "
                    "nodes it reads, nested workflows. Lists all problems, each as "
                    "FILE:LINE:COLUMN with the line.",
                    "C files are compiled, TypeScript and JavaScript files are parsed, and errors "
                    "are "
                    "listed. Their plans are only known by running their code, which needs --load.",
                    "Other files in a folder are ignored. Warnings point out what is allowed but "
                    "probably a mistake; they do not change the exit code." },
    .examples = { { "rival check order.yaml" },
                  { "rival check workflows/ && echo good" },
                  { "rival check --json . | jq '.problems[].message'" } },
    .exits = { { CLI_OK, "no problems" }, { CLI_FAILED, "there are problems" } },
    .run = run_check,
};
