/* exec.c: `rival exec`: runs a workflow file in this process, and shows its progress. */
#include "cli/drive.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/text.h"

struct file {
    const char *path;
    const char *workflow; /* the workflow to run; NULL: the only one */
    char name[256];       /* of its workflow */
    bool needs_c;         /* it calls functions of C files in its folder */
    char **paths;         /* the file, then these C files; ends in NULL */
    size_t count;
    rv_report
        *report; /* with the Node.js process that has loaded it, until that is used; may be NULL */
};

static int add_path(struct file *file, const char *path)
{
    size_t len = strlen(path) + 1;
    char **paths = rv__realloc(file->paths, (file->count + 2) * sizeof *paths);
    if (paths == NULL)
        return RV_ENOMEM;
    file->paths = paths;
    paths[file->count] = rv__alloc(len);
    if (paths[file->count] == NULL)
        return RV_ENOMEM;
    memcpy(paths[file->count++], path, len);
    paths[file->count] = NULL;
    return RV_OK;
}

static void forget_paths(struct file *file)
{
    for (size_t i = 0; i < file->count; i++)
        rv__free(file->paths[i]);
    rv__free(file->paths);
}

static bool is_compiled(const char *file)
{
    const char *dot = strrchr(file, '.');
    return dot != NULL && (strcmp(dot, ".c") == 0 || strcmp(dot, ".so") == 0);
}

/* Does it have a `call` step? A wrong yes only costs a look at the other files. */
static bool needs_c(rv_report *report, size_t index)
{
    const char *plan = "";
    return rv_report_plan(report, index, RV_PLAN_JSON, &plan, NULL) == RV_OK &&
           strstr(plan, "\"kind\":\"call\"") != NULL;
}

/* Check the file before the store is opened: a bad file creates no store. */
static int check_text(struct file *file)
{
    rv_report *report = NULL;
    rv_error err;
    if (rv_check_files(&file->path, 1,
                       RV_CHECK_OPTS(.c_files = RV_C_FILES_LOADED, .keep_process = true), &report,
                       &err) < 0)
        return rv__cli_fail(CLI_USAGE, err.message, NULL);
    rv__drive_problems(report);
    size_t index = rv__cli_workflow_of(report, file->path, file->workflow);
    int code = index < report->workflow_count ? CLI_OK : CLI_USAGE;
    if (code == CLI_OK) {
        snprintf(file->name, sizeof file->name, "%s", report->workflows[index].name);
        file->needs_c = needs_c(report, index);
    } else if (index != SIZE_MAX && report->problem_count == 0) {
        (void)rv__cli_usage("exec", "%s is not a workflow in YAML, JSON, C or TypeScript",
                            file->path);
    } else {
        fprintf(stderr, "nothing was run\n");
    }
    file->report = report;
    return code;
}

/* Print the compiler's output unchanged. */
static void tell(void *told, const char *text)
{
    *(bool *)told = true;
    fputs(text, stderr);
}

/* The name of a compiled workflow is known after it is registered: use an engine that leaves nothing behind. */
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
    bool found = false; /* the report may also have workflows that it nests */
    for (size_t i = 0; rc >= 0 && list != NULL && i < list->count && !found; i++) {
        found = strcmp(list->items[i].source, file->path) == 0;
        if (found)
            snprintf(file->name, sizeof file->name, "%s", list->items[i].name);
    }
    if (!found && rc == 0 && (report == NULL || report->problem_count == 0)) {
        char why[600];
        snprintf(why, sizeof why,
                 "%.400s declares functions (RV_FUNCTIONS), but no workflow to run", file->path);
        (void)rv__cli_fail(CLI_USAGE, why, "run a file that calls them");
    }
    if (!found)
        fprintf(stderr, "nothing was run\n");
    rv_workflow_list_free(list);
    rv_report_free(report);
    rv_engine_free(engine);
    return found ? CLI_OK : CLI_USAGE;
}

/* Find the C files in the same folder, for its calls and nested workflows. */
static int list_beside(struct file *file)
{
    const char *slash = strrchr(file->path, '/');
    int len = slash != NULL ? (int)(slash - file->path) + 1 : 0;
    struct rv__buf path;
    rv__buf_init(&path, 1u << 16);
    rv__buf_fmt(&path, "%.*s.", len, file->path);
    DIR *folder = path.rc == RV_OK ? opendir(path.text) : NULL;
    const struct dirent *entry;
    int rc = path.rc;
    while (rc == RV_OK && folder != NULL && (entry = readdir(folder)) != NULL) {
        if (!is_compiled(entry->d_name) || entry->d_name[0] == '.')
            continue;
        rv__buf_reset(&path);
        rv__buf_fmt(&path, "%.*s%s", len, file->path, entry->d_name);
        rc = path.rc == RV_OK ? add_path(file, path.text) : path.rc;
    }
    if (folder != NULL)
        (void)closedir(folder); /* only read */
    rv__buf_done(&path);
    return rc;
}

/* A file that does not compile is reported and skipped. */
static void register_beside(rv_engine *engine, const struct rv__drive_source *source)
{
    bool told = false;
    rv_error err;
    for (const char *const *path = source->files + 1; *path != NULL; path++)
        if (rv_register_file(engine, *path,
                             RV_FILE_OPTS(.replace = true, .tell = tell, .arg = &told), &err) < 0)
            fprintf(stderr, "%s is skipped: %s\n", *path, err.message);
}

static void forget_report(rv_report **report)
{
    rv_report_free(*report);
    *report = NULL;
}

static int prepare(struct rv__drive *d, const struct rv__drive_source *source)
{
    rv_error err;
    register_beside(d->engine, source);
    int rc = rv_register_file(d->engine, source->files[0],
                              RV_FILE_OPTS(.replace = true, .checked = *source->checked), &err);
    forget_report(source->checked);
    return rc < 0 ? rv__drive_fail(d, CLI_USAGE, &err, NULL) : CLI_OK;
}

/* Another process compiles them, but cannot print here: report their problems. */
static void look(const struct rv__drive_source *source)
{
    rv_engine *engine = NULL;
    forget_report(source->checked);
    if (source->files[1] != NULL &&
        rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:", .idle = true), &engine, NULL) == RV_OK)
        register_beside(engine, source);
    rv_engine_free(engine);
}

static int run_file(struct rv__drive *d, struct file *file)
{
    const struct rv__drive_source source = { .workflow = file->name,
                                             .files = (const char *const *)file->paths,
                                             .prepare = prepare,
                                             .look = look,
                                             .checked = &file->report };
    struct rv__buf resume;
    int code = rv__drive_exec(d, &source);
    if (code != CLI_OK)
        return code;
    rv__buf_init(&resume, 1u << 16);
    rv__buf_text(&resume, "rival exec ");
    rv__text_shell(&resume, file->path);
    if (file->workflow != NULL) {
        rv__buf_text(&resume, " --workflow ");
        rv__text_shell(&resume, file->workflow);
    }
    rv__drive_resume(d, &resume);
    code = rv__drive_follow(d, file->name, rv__buf_view(&resume).at);
    rv__buf_done(&resume);
    return code;
}

struct exec {
    struct rv__drive_opts drive;
    const char *workflow;
};

static int run_exec(int argc, char **argv)
{
    struct exec exec = { .drive = { .store = rv__store_default() } };
    struct rv__drive drive;
    int count = rv__options(&rv__cmd_exec, argc, argv, &exec);
    if (count < 0)
        return -count;
    struct file file = { .path = argv[0], .workflow = exec.workflow };
    if (access(file.path, F_OK) < 0)
        return rv__cli_usage("exec", "there is no file '%s'; `rival new NAME` creates one",
                             file.path);
    int code = is_compiled(file.path) ? check_compiled(&file) : check_text(&file);
    if (code != CLI_OK) {
        forget_report(&file.report);
        return code;
    }
    if (add_path(&file, file.path) < 0 || (file.needs_c && list_beside(&file) < 0))
        code = rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    if (code == CLI_OK) {
        code = rv__drive_open(&drive, "exec", &exec.drive, DRIVE_HERE);
        if (code == CLI_OK)
            code = run_file(&drive, &file);
        rv__drive_close(&drive);
    }
    forget_report(&file.report);
    forget_paths(&file);
    return code;
}

static const struct rv__option options[] = {
    RV__DRIVE_OPTIONS(struct exec, drive, "print only the outcome"),
    { "--secrets", "FILE", RV__SECRETS_MEANING, .completes = COMPLETES_FILE,
      RV__INTO(struct exec, drive.secrets) },
    { "--workflow", "NAME", "which workflow, of a file with several manifests",
      RV__INTO(struct exec, workflow) },
    { "--config", "FILE", RV__CONFIG_MEANING, .completes = COMPLETES_FILE,
      RV__INTO(struct exec, drive.config) },
    { NULL },
};

const struct rv__command rv__cmd_exec = {
    .name = "exec",
    .section = SECTION_DO,
    .summary = "run a workflow file",
    .arguments = { { "FILE", "which file?", .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Runs the workflow in this process and prints the outcome as JSON on stdout: "
                    "{\"runId\", \"status\", \"results\", \"error\", \"failedStep\", "
                    "\"failedPath\"}. "
                    "Progress goes to stderr: live on a terminal, otherwise one line for each "
                    "event. No server is needed, and other runs of the store are not touched. "
                    "Nested workflows are found beside the file.",
                    "If another process drives the store, the run is handed to it, with the "
                    "environment of this one, and shown here all the same; when that process "
                    "ends first, this one continues the run.",
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
               { CLI_GONE, "the store was deleted or replaced meanwhile" },
               { CLI_INTERRUPTED, "stopped by Ctrl-C" } },
    .run = run_exec,
};
