/* exec.c: `rival exec`: run a workflow file here and now, and show it. */
#include "cli/drive.h"

#include <string.h>
#include <unistd.h>

#include "cli/text.h"

/* The file before the store: a file that is wrong makes no store. */
static int check_file(const char *file, char *name, size_t room)
{
    rv_report *report = NULL;
    rv_error err;
    if (rv_check_files(&file, 1, &report, &err) < 0)
        return rv__cli_fail(CLI_USAGE, err.message, NULL);
    rv__drive_problems(report);
    size_t index = rv__cli_workflow_of(report, file);
    int code = index < report->workflow_count ? CLI_OK : CLI_USAGE;
    if (code == CLI_OK)
        snprintf(name, room, "%s", report->workflows[index].name);
    else if (report->problem_count == 0)
        (void)rv__cli_usage("exec", "%s is not a workflow in YAML or JSON", file);
    else
        fprintf(stderr, "nothing was run\n");
    rv_report_free(report);
    return code;
}

static int run_file(struct rv__drive *d, const char *file, const char *name)
{
    rv_error err;
    struct rv__buf resume;
    int rc = rv_register_file(d->engine, file, RV_FILE_OPTS(.replace = true), &err);
    if (rc < 0)
        return rv__cli_fail(CLI_USAGE, err.message, NULL);
    int code = rv__drive_start(d, name);
    if (code != CLI_OK)
        return code;
    rv__buf_init(&resume, 1u << 16);
    rv__buf_text(&resume, "rival exec ");
    rv__text_shell(&resume, file);
    rv__drive_resume(d, &resume);
    code = rv__drive_follow(d, name, rv__buf_view(&resume).at);
    rv__buf_done(&resume);
    return code;
}

int rv__cmd_exec(int argc, char **argv)
{
    struct rv__drive_opts opts = { .store = RV__CLI_STORE };
    struct rv__drive drive;
    char name[256];
    const struct rv__option options[] = { RV__DRIVE_OPTIONS(opts), { NULL } };
    int count = rv__options_args("exec", argc, argv, options, 1, 1, "which file?");
    if (count < 0)
        return -count;
    if (access(argv[0], F_OK) < 0)
        return rv__cli_usage(
            "exec", "there is no file '%s'; `rival new NAME` makes one to begin with", argv[0]);
    int code = check_file(argv[0], name, sizeof name);
    if (code != CLI_OK)
        return code;
    code = rv__drive_open(&drive, "exec", &opts, false);
    if (code == CLI_OK)
        code = run_file(&drive, argv[0], name);
    rv__drive_close(&drive);
    return code;
}
