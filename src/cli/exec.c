/* exec.c: `rival exec`: run a workflow file here and now, and show it. */
#include "cli/drive.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "cli/text.h"

struct file {
    const char *path;
    char name[256]; /* of its workflow */
    bool needs_c;   /* it calls functions of C files beside it */
};

static bool is_compiled(const char *file)
{
    const char *dot = strrchr(file, '.');
    return dot != NULL && (strcmp(dot, ".c") == 0 || strcmp(dot, ".so") == 0);
}

/* Does it have a step that is a call? One too many costs a look at the files beside it. */
static bool needs_c(rv_report *report, size_t index)
{
    const char *plan = "";
    return rv_report_plan(report, index, RV_PLAN_JSON, &plan, NULL) == RV_OK &&
           strstr(plan, "\"kind\":\"call\"") != NULL;
}

/* The file before the store: a file that is wrong makes no store. */
static int check_text(struct file *file)
{
    rv_report *report = NULL;
    rv_error err;
    if (rv_check_files(&file->path, 1, RV_CHECK_OPTS(.c_files = RV_C_FILES_LOADED), &report, &err) <
        0)
        return rv__cli_fail(CLI_USAGE, err.message, NULL);
    rv__drive_problems(report);
    size_t index = rv__cli_workflow_of(report, file->path);
    int code = index < report->workflow_count ? CLI_OK : CLI_USAGE;
    if (code == CLI_OK) {
        snprintf(file->name, sizeof file->name, "%s", report->workflows[index].name);
        file->needs_c = needs_c(report, index);
    } else if (report->problem_count == 0) {
        (void)rv__cli_usage("exec", "%s is not a workflow in YAML, JSON or C", file->path);
    } else {
        fprintf(stderr, "nothing was run\n");
    }
    rv_report_free(report);
    return code;
}

/* What the compiler printed, as it is. */
static void tell(void *told, const char *text)
{
    *(bool *)told = true;
    fputs(text, stderr);
}

/* What is compiled says its name when it is registered: with an engine that leaves nothing behind. */
static int check_compiled(struct file *file)
{
    rv_engine *engine = NULL;
    rv_workflow_list *list = NULL;
    rv_report *report = NULL;
    rv_error err;
    bool told = false;
    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:", .idle = true), &engine, &err);
    if (rc == RV_OK)
        rc = rv_register_file(engine, file->path,
                              RV_FILE_OPTS(.tell = tell, .arg = &told, .report = &report), &err);
    if (rc >= 0)
        rc = rv_workflows(engine, &list, &err);
    if (rc < 0)
        (void)rv__cli_fail(CLI_USAGE, err.message, NULL);
    if (report != NULL && !told)
        rv__drive_problems(report);
    bool found = false; /* there may be others, which it nests */
    for (size_t i = 0; rc >= 0 && list != NULL && i < list->count && !found; i++) {
        found = strcmp(list->items[i].source, file->path) == 0;
        if (found)
            snprintf(file->name, sizeof file->name, "%s", list->items[i].name);
    }
    if (!found)
        fprintf(stderr, "nothing was run\n");
    rv_workflow_list_free(list);
    rv_report_free(report);
    rv_engine_free(engine);
    return found ? CLI_OK : CLI_USAGE;
}

/* The C files beside it, for what it calls and nests. One that does not compile is told. */
static void register_beside(struct rv__drive *d, const char *file)
{
    const char *slash = strrchr(file, '/');
    int len = slash != NULL ? (int)(slash - file) + 1 : 0;
    struct rv__buf path;
    bool told = false;
    rv_error err;
    rv__buf_init(&path, 1u << 16);
    rv__buf_fmt(&path, "%.*s.", len, file);
    DIR *folder = path.rc == RV_OK ? opendir(path.text) : NULL;
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        rv__buf_reset(&path);
        rv__buf_fmt(&path, "%.*s%s", len, file, entry->d_name);
        if (!is_compiled(entry->d_name) || entry->d_name[0] == '.' || path.rc < 0)
            continue;
        if (rv_register_file(d->engine, path.text,
                             RV_FILE_OPTS(.replace = true, .tell = tell, .arg = &told), &err) < 0)
            fprintf(stderr, "%s is skipped: %s\n", path.text, err.message);
    }
    if (folder != NULL)
        (void)closedir(folder); /* only read */
    rv__buf_done(&path);
}

static int register_file(struct rv__drive *d, const struct file *file)
{
    rv_error err;
    if (file->needs_c)
        register_beside(d, file->path);
    int rc = rv_register_file(d->engine, file->path, RV_FILE_OPTS(.replace = true), &err);
    return rc < 0 ? rv__drive_fail(d, CLI_USAGE, &err, NULL) : CLI_OK;
}

static int run_file(struct rv__drive *d, const struct file *file)
{
    struct rv__buf resume;
    int code = d->over ? CLI_OK : register_file(d, file);
    if (code == CLI_OK)
        code = rv__drive_start(d, file->name);
    if (code != CLI_OK)
        return code;
    rv__buf_init(&resume, 1u << 16);
    rv__buf_text(&resume, "rival exec ");
    rv__text_shell(&resume, file->path);
    rv__drive_resume(d, &resume);
    code = rv__drive_follow(d, file->name, rv__buf_view(&resume).at);
    rv__buf_done(&resume);
    return code;
}

struct exec {
    struct rv__drive_opts drive;
};

static int run_exec(int argc, char **argv)
{
    struct exec exec = { .drive = { .store = rv__store_default() } };
    struct rv__drive drive;
    int count = rv__options(&rv__cmd_exec, argc, argv, &exec);
    if (count < 0)
        return -count;
    struct file file = { .path = argv[0] };
    if (access(file.path, F_OK) < 0)
        return rv__cli_usage("exec", "there is no file '%s'; `rival new NAME` creates one",
                             file.path);
    int code = is_compiled(file.path) ? check_compiled(&file) : check_text(&file);
    if (code != CLI_OK)
        return code;
    code = rv__drive_open(&drive, "exec", &exec.drive, DRIVE_HERE);
    if (code == CLI_OK)
        code = run_file(&drive, &file);
    rv__drive_close(&drive);
    return code;
}

static const struct rv__option options[] = {
    RV__DRIVE_OPTIONS(struct exec, drive, "nothing but the outcome"),
    { NULL },
};

const struct rv__command rv__cmd_exec = {
    .name = "exec",
    .section = SECTION_DO,
    .summary = "run a workflow file",
    .arguments = { { "FILE", "which file?", .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Runs the workflow in this process and prints the outcome as JSON on stdout: "
                    "{\"runId\", \"status\", \"results\", \"error\", \"failedStep\"}. "
                    "Progress goes to stderr: live on a terminal, otherwise one line for each "
                    "event. No server is needed, and other runs of the store are not touched. "
                    "Nested workflows are found beside the file.",
                    "Ctrl-C stops in order and prints the command that continues the run; a second "
                    "Ctrl-C exits at once." },
    .examples = { { "rival exec order.yaml --input '{\"item\": \"desk\"}'" },
                  { "rival exec order.yaml --input @order.json --run-id order-1" },
                  { "rival exec order.yaml --run-id order-1", "continues that run" },
                  { "rival exec order.yaml --json | jq .results.pay.result" } },
    .exits = { { CLI_OK, "completed" },
               { CLI_FAILED, "failed" },
               { CLI_USAGE, "wrong usage, file or input: nothing was run" },
               { CLI_CANCELLED, "cancelled" },
               { CLI_SUSPENDED, "suspended" },
               { CLI_INTERRUPTED, "stopped by Ctrl-C" } },
    .run = run_exec,
};
