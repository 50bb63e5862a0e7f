/* run.c: `rival run`: starts a run of a workflow by its name. */
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
        return rv__drive_fail(d, CLI_USAGE, &err, NULL);
    *problems = report->problem_count > 0;
    rv_report_free(report);
    return CLI_OK;
}

static int say_started(const struct rv__drive *d)
{
    if (d->opts.json) {
        printf("{\"runId\":\"%s\",\"status\":\"%s\"%s}\n", d->run_id, rv_status_name(d->status),
               d->schema_only ? ",\"validated\":\"schema\"" : "");
        return CLI_OK;
    }
    if (d->schema_only)
        fprintf(
            stderr,
            "its worker is not connected: the input was checked against the JSON Schema only\n");
    printf("%s\n", d->run_id);
    if (!isatty(STDERR_FILENO) || d->served)
        return CLI_OK;
    struct rv__buf resume;
    rv__buf_init(&resume, 1u << 16);
    rv__drive_resume(d, &resume);
    fprintf(stderr, "recorded; it starts when a process drives the store: rival exec FILE%s\n",
            rv__buf_view(&resume).at);
    rv__buf_done(&resume);
    return CLI_OK;
}

static int begin(struct rv__drive *d, const char *name, const char *from, bool wait)
{
    bool problems = false;
    struct rv__buf resume;
    int code = d->served || d->over ? CLI_OK : register_all(d, from, &problems);
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

struct run {
    struct rv__drive_opts drive;
    const char *from;
    bool wait;
};

static int run_run(int argc, char **argv)
{
    struct run run = { .from = "." };
    struct rv__drive drive;
    int count = rv__options(&rv__cmd_run, argc, argv, &run);
    if (count < 0)
        return -count;
    int code = rv__drive_open(&drive, "run", &run.drive, run.wait ? DRIVE_ANYWHERE : DRIVE_LATER);
    if (code == CLI_OK)
        code = begin(&drive, argv[0], run.from, run.wait);
    rv__drive_close(&drive);
    return code;
}

static const struct rv__option options[] = {
    { "--from", "DIR", "the folder with the workflow files (.)", .completes = COMPLETES_FOLDER,
      RV__INTO(struct run, from) },
    { "--wait", .meaning = "wait for its end and print the outcome; without a server, run it here",
      RV__INTO(struct run, wait) },
    RV__OPTIONS_SERVER(struct run, drive),
    RV__DRIVE_OPTIONS(struct run, drive,
                      "print {\"runId\", \"status\"}; with --wait, only the outcome"),
    { NULL },
};

const struct rv__command rv__cmd_run = {
    .name = "run",
    .section = SECTION_DO,
    .summary = "start a run of a workflow by its name",
    .arguments = { { "NAME", "which workflow? `rival workflows` lists them",
                     .completes = COMPLETES_WORKFLOW } },
    .options = options,
    .paragraphs = { "If a server answers, or a process serves the store (`rival serve`), it starts "
                    "the run, from the workflows it has. Otherwise the workflow is looked up among "
                    "the files of a folder and the run is recorded; it starts when a process "
                    "drives the store. With --wait, this process does.",
                    "Prints the id of the run; with --wait, shows it as `rival exec` does and "
                    "prints its outcome." },
    .examples = { { "rival run greet --wait" },
                  { "id=$(rival run order --from workflows --input @order.json)" } },
    .exits = { { CLI_OK, "recorded; with --wait: completed" },
               { CLI_FAILED, "failed" },
               { CLI_USAGE, "wrong usage, file or input: nothing was run" },
               { CLI_CANCELLED, "with --wait: cancelled" },
               { CLI_SUSPENDED, "with --wait: suspended" },
               { CLI_INTERRUPTED, "with --wait: stopped by Ctrl-C" } },
    .run = run_run,
};
