/* run.c: `rival run`: begin a run of a workflow by its name. */
#include "cli/drive.h"

#include <string.h>
#include <unistd.h>

#include "cli/text.h"

static int register_all(struct rv__drive *d, const char *from, bool *problems)
{
    rv_report *report = NULL;
    rv_error err;
    int rc = rv_register_dir(d->engine, from, RV_FILE_OPTS(.replace = true, .report = &report),
                             &err);
    if (rc < 0)
        return rv__cli_fail(CLI_USAGE, err.message, NULL);
    *problems = report->problem_count > 0;
    rv_report_free(report);
    return CLI_OK;
}

static int say_started(const struct rv__drive *d)
{
    if (d->opts.json) {
        printf("{\"runId\":\"%s\",\"status\":\"running\"}\n", d->run_id);
        return CLI_OK;
    }
    printf("%s\n", d->run_id);
    if (isatty(STDERR_FILENO))
        fprintf(stderr,
                "it is recorded, and goes on when a process drives the store: "
                "rival exec FILE --run-id %s\n",
                d->run_id);
    return CLI_OK;
}

static int begin(struct rv__drive *d, const char *name, const char *from, bool wait)
{
    bool problems = false;
    struct rv__buf resume;
    int code = register_all(d, from, &problems);
    if (code == CLI_OK)
        code = rv__drive_start(d, name);
    if (code == CLI_USAGE && problems)
        fprintf(stderr, "  some files there are broken: rival check %s\n", from);
    if (code != CLI_OK || !wait)
        return code == CLI_OK ? say_started(d) : code;
    rv__buf_init(&resume, 1u << 16);
    rv__buf_text(&resume, "rival run ");
    rv__text_shell(&resume, name);
    rv__buf_text(&resume, " --wait");
    if (strcmp(from, ".") != 0) {
        rv__buf_text(&resume, " --from ");
        rv__text_shell(&resume, from);
    }
    rv__drive_resume(d, &resume);
    code = rv__drive_follow(d, name, rv__buf_view(&resume).at);
    rv__buf_done(&resume);
    return code;
}

int rv__cmd_run(int argc, char **argv)
{
    struct rv__drive_opts opts = { .store = RV__CLI_STORE };
    struct rv__drive drive;
    const char *from = ".";
    bool wait = false;
    const struct rv__option options[] = {
        RV__DRIVE_OPTIONS(opts), { "--from", .text = &from }, { "--wait", .flag = &wait }, { NULL }
    };
    int count = rv__options_args("run", argc, argv, options, 1, 1,
                                 "which workflow? `rival workflows` lists them");
    if (count < 0)
        return -count;
    int code = rv__drive_open(&drive, "run", &opts, !wait);
    if (code == CLI_OK)
        code = begin(&drive, argv[0], from, wait);
    rv__drive_close(&drive);
    return code;
}
