/* drive.c: runs one workflow for `exec` and shows its progress. If another process already drives the store, the run
 * is handed to that process and followed.
 *
 * The engine is opened for this run alone. Progress comes from the engine's feed, so only what is on disk is shown.
 * The run's id is chosen here, before the run starts: a second call with the same id continues the same run. */
#include "cli/drive.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/id.h"
#include "base/json.h"
#include "base/store_name.h"
#include "cli/text.h"
#include "cli/screen.h"

enum {
    GRACE_MS = 5000,      /* after Ctrl-C: for running steps to finish */
    TOLD_MS = 2000,       /* after that: for cancelled steps to return */
    LISTENERS_MS = 60000, /* for a manifest's listeners, before the program exits */
    RESUMES_MAX = 10,     /* of --on-suspend resume; after that the run stays suspended */
    NOBODY_MS = 5000,  /* without a terminal: how long to wait for a function that is not offered */
    ANSWER_BYTES = 64, /* of a typed decision */
    INSPECT_LINES = 20,
    REASON_WIDTH = 2000,
    OUTCOME_MS = 60000,   /* to read the outcome of a run that has ended */
    AGAIN_MS = 100,       /* between attempts to open the store or reach its driver */
    DRAIN_SHORT_MS = 300, /* other runs' steps that end within this time are not mentioned */
};

/* ------------------------------------------------------------------------------- beginning --- */

const char *const rv__on_suspend_words[] = { "wait", "abort", "resume", "skip",
                                             NULL }; /* as the enum */

static int read_eval_time(struct rv__drive *d)
{
    if (d->opts.eval_time == NULL ||
        (rv__duration_ms(rv__str(d->opts.eval_time), &d->eval_cpu_ms) == RV_OK &&
         d->eval_cpu_ms > 0))
        return CLI_OK;
    return rv__cli_usage(d->command, "--eval-time '%s' is not a duration like 500ms, 5s",
                         d->opts.eval_time);
}

static int read_concurrency(struct rv__drive *d)
{
    const char *text = d->opts.max_concurrency;
    if (text == NULL ||
        (rv__json_check(rv__str(text), 1, &(struct rv__str){ NULL, 0 }, NULL) == RV_OK &&
         rv__json_int(rv__str(text), &d->max_concurrency) == RV_OK && d->max_concurrency >= 1 &&
         d->max_concurrency <= INT32_MAX))
        return CLI_OK;
    return rv__cli_usage(d->command, "--max-concurrency '%s' must be a number of 1 or more", text);
}

static int read_on_suspend(struct rv__drive *d)
{
    bool asks = isatty(STDIN_FILENO) && rv__terminal_is(stderr) && !d->opts.json;
    d->on_suspend = asks ? ON_SUSPEND_ASK : ON_SUSPEND_LEAVE;
    if (d->opts.on_suspend == NULL)
        return CLI_OK;
    int choice = rv__option_choice(d->command, "--on-suspend", d->opts.on_suspend,
                                   rv__on_suspend_words);
    if (choice < 0)
        return CLI_USAGE;
    d->on_suspend = (enum rv__on_suspend)choice;
    return CLI_OK;
}

static int make_id(struct rv__drive *d)
{
    struct rv__ids ids;
    uint64_t seed;
    rv_error err;
    if (d->opts.run_id != NULL) {
        if (!rv__id_valid(rv__str(d->opts.run_id)))
            return rv__cli_usage(d->command,
                                 "'%s' is not a run id: 1 to 128 of letters, digits and . _ : -",
                                 d->opts.run_id);
        snprintf(d->run_id, sizeof d->run_id, "%s", d->opts.run_id);
        return CLI_OK;
    }
    if (rv__random_seed_system(&seed, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__ids_init(&ids, seed);
    rv__ids_next(&ids, rv__wall_ms(rv__clock_real()), d->run_id);
    return CLI_OK;
}

/* Where the file system has no sockets, the run is driven all the same; other processes cannot reach it. */
static int open_engine(struct rv__drive *d, enum rv__drive_by by, rv_error *err)
{
    char user[RV__USER_NAME_SIZE];
    bool later = by == DRIVE_LATER, alone = !later && rv__store_name_in_memory(d->opts.store);
    rv_engine_opts opts = *RV_ENGINE_OPTS(.store = d->opts.store, .only_run = d->run_id,
                                          .idle = later, .control = !later && !alone,
                                          .attach = !alone, .drain_ms = GRACE_MS,
                                          .grace_ms = TOLD_MS, .allow_env = d->opts.allow_env.at,
                                          .eval_cpu_ms = d->eval_cpu_ms,
                                          .secrets_file = d->opts.secrets,
                                          .config_file = d->opts.config, .by = rv__cli_user(user));
    int rc = rv_engine_new(&opts, &d->engine, err);
    if (rc == RV_ESYS && opts.control) {
        fprintf(stderr, "%s: other processes cannot send anything to this run\n", err->message);
        opts.control = false;
        rc = rv_engine_new(&opts, &d->engine, err);
    }
    return rc;
}

/* May the run continue without us? Detached work outlives its run, and a server that cannot be reached now may come
 * back. */
static bool is_alive(struct rv__drive *d)
{
    struct rv__why_told *why = NULL;
    int rc = rv__client_why(d->client, d->run_id, &why, NULL);
    if (rc < 0)
        return rv__client_away(d->client, rc);
    bool alive = why->count > 0;
    rv_free(why);
    return alive;
}

/* Does the run wait only for functions that nobody offers, or for secrets without a value? `what`: the first one. */
static bool waits_for_nobody(struct rv__drive *d, struct rv__buf *what)
{
    struct rv__why_told *why = NULL;
    size_t others = 0;
    if (rv__client_why(d->client, d->run_id, &why, NULL) < 0)
        return false;
    for (size_t i = 0; i < why->count; i++) {
        const struct rv__wait_told *wait = &why->waits[i];
        bool nobody = strcmp(wait->reason, "worker") == 0;
        others += !nobody;
        if (!nobody || what->len > 0)
            continue;
        if (*wait->secret != '\0')
            rv__buf_fmt(what, "the secret \"%s\" has no value", wait->secret);
        else if (*wait->function != '\0')
            rv__buf_fmt(what, "no process here has the function \"%s\"", wait->function);
    }
    rv_free(why);
    return what->len > 0 && others == 0;
}

/* Is this the input of the existing run? No input given always matches. */
static bool same_input(const struct rv__drive *d, const char *has)
{
    struct rv__buf given, had;
    if (d->input == NULL)
        return true;
    rv__buf_init(&given, RV__JSON_MAX_BYTES);
    rv__buf_init(&had, RV__JSON_MAX_BYTES);
    bool same = rv__json_canonical(rv__str(d->input), &given, NULL) == RV_OK &&
                rv__json_canonical(rv__str(has), &had, NULL) == RV_OK && given.rc == RV_OK &&
                had.rc == RV_OK && rv__str_eq(rv__buf_view(&given), rv__buf_view(&had));
    rv__buf_done(&given);
    rv__buf_done(&had);
    return same;
}

/* A run that has ended is only read. That needs neither the store's lock nor the workflow's files. */
static bool open_ended(struct rv__drive *d)
{
    rv_engine *engine = NULL;
    rv_run_list *row = NULL;
    if (d->opts.run_id == NULL ||
        rv_engine_new(RV_ENGINE_OPTS(.store = d->opts.store, .read_only = true, .attach = true),
                      &engine, NULL) < 0)
        return false;
    d->client = rv__client_of(engine);
    d->over = d->client != NULL &&
              rv__client_list(d->client, RV_QUERY(.run_id = d->run_id), &row, NULL) == RV_OK &&
              row->count == 1 && row->runs[0].status != RV_RUNNING &&
              row->runs[0].status != RV_SUSPENDED && same_input(d, row->runs[0].input) &&
              !is_alive(d);
    rv_run_list_free(row);
    if (d->over) {
        d->engine = engine;
        return true;
    }
    rv__client_close(d->client);
    d->client = NULL;
    rv_engine_free(engine);
    return false;
}

/* Connect to the server, if one is meant: it has the runs and workflows. If none was named and the default server
 * does not answer, a store is used; the default store, if this process is to drive the run. */
static int find_server(struct rv__drive *d, enum rv__drive_by by)
{
    const struct rv__where where = { .store = d->opts.store,
                                     .server = d->opts.server,
                                     .token_file = d->opts.token_file };
    const char *store = NULL;
    int code;
    d->client = rv__client_server(&where, &store, &code);
    if (code != CLI_OK || d->client != NULL)
        return code;
    if (store == NULL && by == DRIVE_LATER)
        return rv__cli_fail(
            CLI_FAILED, "no server answers at " RV__CLI_SERVER,
            "`rival serve` starts one; --wait runs it here; --store FILE keeps it for "
            "later");
    d->opts.store = store != NULL ? store : RV__CLI_STORE;
    return CLI_OK;
}

/* If the run is in the store, follow it from now on. */
static int find_run(struct rv__drive *d, rv_error *err)
{
    rv_run_list *row = NULL;
    int rc = rv__client_list(d->client, RV_QUERY(.run_id = d->run_id), &row, err);
    d->exists = rc == RV_OK && row->count == 1;
    rv_run_list_free(row);
    return rc;
}

/* Wait until we have the store, or a driver that can be asked has it. RV_ECANCELED: Ctrl-C. */
static int open_or_wait(struct rv__drive *d, enum rv__drive_by by, rv_error *err)
{
    bool said = false;
    for (;;) {
        int rc = open_engine(d, by, err);
        bool waits = rc == RV_EBUSY ||
                     rc == RV_ESTATE; /* its driver does not answer, or has another version */
        if (by != DRIVE_HERE || !waits)
            return rc;
        if (!said)
            fprintf(stderr, "%s; waiting until it is free\n", err->message);
        said = true;
        if (rv_cancel_wait(d->interrupt, AGAIN_MS))
            return RV_ECANCELED;
    }
}

static int stopped_waiting(void)
{
    fprintf(stderr, "stopped: nothing was run\n");
    return CLI_INTERRUPTED;
}

int rv__drive_open(struct rv__drive *d, const char *command, const struct rv__drive_opts *opts,
                   enum rv__drive_by by)
{
    rv_driver driver;
    rv_error err;
    *d = (struct rv__drive){ .command = command, .opts = *opts };
    int code = read_on_suspend(d);
    if (code == CLI_OK)
        code = read_eval_time(d);
    if (code == CLI_OK)
        code = read_concurrency(d);
    if (code == CLI_OK)
        code = make_id(d);
    if (code == CLI_OK && opts->input != NULL)
        code = rv__read_json(command, "the input", "--input", opts->input, &d->input);
    if (code != CLI_OK)
        return code;
    d->interrupt = rv__cli_interrupt(); /* before the engine's threads */
    if (d->interrupt == NULL)
        return CLI_FAILED;
    code = by != DRIVE_HERE ? find_server(d, by) : CLI_OK;
    if (code != CLI_OK)
        return code;
    bool reads = d->client == NULL && by != DRIVE_LATER; /* reading may be enough */
    if (reads && d->input == NULL)
        (void)open_ended(d);
    int rc = d->client == NULL ? open_or_wait(d, by, &err) : RV_OK;
    if (rc == RV_ECANCELED)
        return stopped_waiting();
    if (rc < 0 && !(reads && open_ended(d)))
        return rv__cli_fail(CLI_USAGE, err.message,
                            rc != RV_EBUSY ? NULL : "--store FILE takes another one");
    if (d->client == NULL && (d->client = rv__client_of(d->engine)) == NULL)
        return rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    bool driven = d->engine != NULL && !d->over && rv_engine_driver(d->engine, &driver, NULL) == 1;
    d->served = d->engine == NULL || (driven && by != DRIVE_HERE);
    if (d->served && d->opts.on_suspend == NULL)
        d->on_suspend = ON_SUSPEND_WAIT; /* others may decide as well */
    d->refusal.engine = d->served || driven || d->over ? NULL : d->engine;
    d->refusal.ends = true; /* nothing has started until the run is followed */
    rv__refusal_watch(&d->refusal, d->interrupt);
    rc = find_run(d, &err);
    if (d->exists)
        rc = rv__follow_open(d->client, RV_FEED_OPTS(.run_id = d->run_id), &d->feed, &err);
    return rc == RV_OK ? CLI_OK : rv__cli_fail(CLI_FAILED, err.message, NULL);
}

/* Other processes continue the runs that they handed to us; steps that run now may finish first. */
static void drain(struct rv__drive *d)
{
    if (d->engine == NULL || d->handed || d->over || rv_cancel_fired(d->interrupt) ||
        rv_engine_drain(d->engine, DRAIN_SHORT_MS, d->interrupt, NULL) != RV_ETIMEDOUT)
        return;
    fprintf(stderr, "this process also drives runs of others: waiting for their running steps; "
                    "Ctrl-C leaves these to be attempted again\n");
    (void)rv_engine_drain(d->engine, -1, d->interrupt,
                          NULL); /* Ctrl-C: their runs are handed back */
}

void rv__drive_close(struct rv__drive *d)
{
    rv__refusal_unwatch(&d->refusal);
    drain(d);
    rv__follow_close(d->feed);
    rv__client_close(d->client);
    if (d->engine != NULL && rv_engine_close(d->engine) ==
                                 0) /* else steps are running that cannot be stopped: leave them */
        rv_engine_free(d->engine);
    rv__free(d->input);
}

int rv__drive_fail(const struct rv__drive *d, int code, const rv_error *err, const char *hint)
{
    if (err->code == RV_EGONE)
        return rv__cli_fail(CLI_GONE, err->message, hint);
    if (err->code != RV_ECLOSED || d->served || !rv_cancel_fired(d->interrupt))
        return rv__cli_fail(code, err->message, hint);
    fprintf(stderr, "stopped: nothing was recorded\n");
    return CLI_INTERRUPTED;
}

void rv__drive_problems(const rv_report *report)
{
    for (size_t i = 0; i < report->problem_count; i++)
        rv__cli_problem(stderr, &report->problems[i]);
}

static int refuse_input(const rv_violations *violations, const rv_error *err)
{
    if (violations == NULL || violations->count == 0)
        return rv__cli_fail(CLI_USAGE, err->message, NULL);
    (void)rv__cli_fail(CLI_USAGE, "the workflow refuses this input; nothing was run:", NULL);
    for (size_t i = 0; i < violations->count; i++) {
        struct rv__buf line;
        rv__buf_init(&line, 1u << 16);
        const rv_violation *v = &violations->items[i];
        (void)rv__text_fit(&line, rv__str(*v->path != '\0' ? v->path : "(all of it)"), 300);
        rv__buf_text(&line, ": ");
        (void)rv__text_fit(&line, rv__str(v->message), 600);
        fprintf(stderr, "  %s\n", rv__buf_view(&line).at);
        rv__buf_done(&line);
    }
    if (violations->dropped > 0)
        fprintf(stderr, "  … and %zu more\n", violations->dropped);
    return CLI_USAGE;
}

static int check_same_workflow(struct rv__drive *d, const char *workflow)
{
    rv_run_state *state = NULL;
    rv_error err;
    char message[500];
    if (rv__client_state(d->client, d->run_id, &state, &err) < 0)
        return rv__drive_fail(d, CLI_FAILED, &err, NULL);
    bool same = strcmp(state->workflow, workflow) == 0;
    d->status = state->status;
    snprintf(message, sizeof message, "run '%s' is of workflow '%.100s', not of '%.100s'",
             d->run_id, state->workflow, workflow);
    rv_run_state_free(state);
    return same ? CLI_OK : rv__cli_fail(CLI_USAGE, message, "take another --run-id");
}

/* Report the result of a start. CLI_OK: the run is followed. */
static int started(struct rv__drive *d, int rc, int status, rv_violations *violations,
                   rv_error *err)
{
    if (rc == RV_EINVAL) {
        rc = refuse_input(violations, err);
        rv_violations_free(violations);
        return rc;
    }
    if (rc == RV_EEXIST)
        return rv__cli_fail(CLI_USAGE, err->message,
                            "leave out --input to continue the run with its own input");
    d->status = status;
    if (rc == RV_OK && d->feed == NULL)
        rc = rv__follow_open(d->client, RV_FEED_OPTS(.run_id = d->run_id, .from = RV_FROM_OLDEST),
                             &d->feed, err);
    return rc == RV_OK
               ? CLI_OK
               : rv__drive_fail(d, rc == RV_ENOTFOUND || rc == RV_ESTATE ? CLI_USAGE : CLI_FAILED,
                                err, NULL);
}

int rv__drive_start(struct rv__drive *d, const char *workflow)
{
    rv_violations *violations = NULL;
    rv_run_info info = { .status = RV_RUNNING };
    rv_error err;
    if (d->over || (d->exists && d->input == NULL)) /* the run already has its input */
        return check_same_workflow(d, workflow);
    int rc = rv__client_run(d->client, workflow, d->input,
                            RV_RUN_OPTS(.run_id = d->run_id, .violations = &violations,
                                        .max_concurrency = d->max_concurrency),
                            &info, &err);
    d->schema_only = rc == RV_OK && info.schema_only;
    return started(d, rc, info.status, violations, &err);
}

/* --------------------------------------------------------------------------- handing it over --- */

static bool is_driven(struct rv__drive *d)
{
    rv_driver driver;
    return rv_engine_driver(d->engine, &driver, NULL) == 1;
}

/* Open another engine after the driver has ended. Its feed continues after the last event that was shown. */
static int open_again(struct rv__drive *d)
{
    uint64_t seq = 0, index = 0;
    rv_error err;
    bool followed = d->feed != NULL;
    if (followed)
        rv__follow_position(d->feed, &seq, &index);
    rv__follow_close(d->feed);
    d->feed = NULL;
    d->handed = d->served = false;
    rv_engine_free(d->engine);
    d->engine = NULL;
    int rc = open_or_wait(d, DRIVE_HERE, &err);
    if (rc == RV_ECANCELED)
        return CLI_INTERRUPTED;
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__client_become(d->client, d->engine);
    d->refusal.engine = is_driven(d) ? NULL : d->engine;
    rc = find_run(d, &err);
    if (rc == RV_OK && followed)
        rc = rv__follow_open(d->client,
                             RV_FEED_OPTS(.run_id = d->run_id,
                                          .from = seq > 0 ? RV_FROM_POSITION : RV_FROM_OLDEST,
                                          .seq = seq, .index = index),
                             &d->feed, &err);
    return rc == RV_OK ? CLI_OK : rv__cli_fail(CLI_FAILED, err.message, NULL);
}

/* Must we wait for the driver? It is ending, has died, takes no more runs now, or has another version. */
static bool may_pass(int rc)
{
    return rc == RV_ECLOSED || rc == RV_EFAILED || rc == RV_EBUSY || rc == RV_ESTATE ||
           rc == RV_ETIMEDOUT;
}

static int hand_over(struct rv__drive *d, int *status, rv_violations **violations, rv_error *err)
{
    rv_run_info info = { .status = RV_RUNNING };
    int rc = rv_hand_over(
        d->engine, d->source->workflow,
        RV_HAND_OPTS(.run_id = d->run_id, .input = d->input, .max_concurrency = d->max_concurrency,
                     .files = d->source->files, .allow_env = d->opts.allow_env.at,
                     .secrets_file = d->opts.secrets, .resumes = d->exists && d->input == NULL,
                     .violations = violations, .followed = &d->served),
        &info, err);
    *status = info.status;
    d->handed = rc == RV_OK;
    return rc;
}

/* Start the run here, or in the process that drives the store. Repeat until one of the two works. */
static int get_going(struct rv__drive *d)
{
    int look_rc = RV_OK;
    for (;;) {
        rv_violations *violations = NULL;
        rv_error err;
        int status = RV_RUNNING, code = CLI_OK;
        if (!is_driven(d)) {
            code = d->source->prepare(d, d->source);
            return code == CLI_OK ? rv__drive_start(d, d->source->workflow) : code;
        }
        if (d->exists)
            code = check_same_workflow(d, d->source->workflow);
        if (code != CLI_OK)
            return code;
        if (d->source->look != NULL && look_rc == RV_OK)
            d->source->look(d->source);
        int rc = hand_over(d, &status, &violations, &err);
        if (!may_pass(rc))
            return started(d, rc, status, violations, &err);
        rv_violations_free(violations);
        if (rc != look_rc && (rc == RV_EBUSY || rc == RV_ESTATE))
            fprintf(stderr, "%s; waiting\n", err.message);
        look_rc = rc;
        if (rv_cancel_wait(d->interrupt, AGAIN_MS))
            return stopped_waiting();
        code = open_again(d);
        if (code != CLI_OK)
            return code == CLI_INTERRUPTED ? stopped_waiting() : code;
    }
}

int rv__drive_exec(struct rv__drive *d, const struct rv__drive_source *source)
{
    d->source = source;
    return d->over ? check_same_workflow(d, source->workflow) : get_going(d);
}

/* The default store need not be named. */
static void put_where(const struct rv__drive *d, struct rv__buf *out)
{
    bool named = d->engine != NULL && strcmp(d->opts.store, rv__store_default()) != 0;
    rv__where_again(&(struct rv__where){ .server = d->opts.server,
                                         .token_file = d->opts.token_file,
                                         .store = named ? d->opts.store : NULL },
                    out);
}

void rv__drive_resume(const struct rv__drive *d, struct rv__buf *out)
{
    rv__buf_text(out, " --run-id ");
    rv__text_shell(out, d->run_id);
    put_where(d, out);
    for (size_t i = 0; i < d->opts.allow_env.count; i++) {
        rv__buf_text(out, " --allow-env ");
        rv__text_shell(out, d->opts.allow_env.at[i]);
    }
    if (d->opts.secrets != NULL) {
        rv__buf_text(out, " --secrets ");
        rv__text_shell(out, d->opts.secrets);
    }
    if (d->opts.config != NULL) {
        rv__buf_text(out, " --config ");
        rv__text_shell(out, d->opts.config);
    }
    if (d->opts.eval_time != NULL) {
        rv__buf_text(out, " --eval-time ");
        rv__text_shell(out, d->opts.eval_time);
    }
}

/* ------------------------------------------------------------------------------- following --- */

struct follow {
    struct rv__drive *d;
    struct rv__screen view;
    const char *resume;
    bool ended, suspended, said;
    int resumes;
    int64_t quiet_ms; /* monotonic time of the last event */
};

static void take_event(struct follow *f, const rv_event *event)
{
    f->quiet_ms = rv__mono_ms(rv__clock_real());
    rv__screen_event(&f->view, event);
    if (strncmp(event->kind, "run.", 4) != 0)
        return;
    struct rv__str status;
    f->suspended = strcmp(event->kind, "run.suspended") == 0 ||
                   (strcmp(event->kind, "run.resumed") == 0 && /* others still wait */
                    rv__json_get(rv__str(event->json), "status", &status) &&
                    rv__json_string_is(status, rv__str("suspended")));
    f->ended = f->ended || strcmp(event->kind, "run.completed") == 0 ||
               strcmp(event->kind, "run.failed") == 0 || strcmp(event->kind, "run.cancelled") == 0;
}

/* Show everything that has happened up to now. */
static void show_the_rest(struct follow *f)
{
    rv_event event;
    while (rv__follow_next(f->d->feed, 0, NULL, &event, NULL) == RV_OK)
        take_event(f, &event);
}

static int print_outcome(struct rv__drive *d, struct rv__screen *view)
{
    rv_run_state *ended = NULL;
    struct rv__buf json;
    rv_error err;
    if (rv__client_wait(d->client, d->run_id, OUTCOME_MS, d->interrupt, &ended, &err) < 0) {
        rv__screen_clear(view);
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    }
    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the outcome */
    rv__put_outcome(&json, ended);
    rv__screen_clear(view);
    int code = rv__print_json(&json); /* first: on a terminal the lines after it stay visible */
    rv__screen_record(view, rv_status_name(ended->status), ended->duration_ms, ended->error,
                      ended->failed_path);
    if (code == CLI_OK)
        code = rv__exit_code(ended->status);
    rv__buf_done(&json);
    rv_run_state_free(ended);
    return code;
}

/* `to`: what the command does; `option`: more of it; `note`: what is said after it. */
static void say_how_to_go_on(struct follow *f, const char *to, const char *option, const char *note)
{
    if (rv__store_name_in_memory(f->d->opts.store))
        fprintf(stderr, "the store was in memory: the run cannot be continued\n");
    else
        fprintf(stderr, "to %s: %s%s%s%s%s\n", to, rv__colour(stderr, BOLD), f->resume, option,
                rv__colour(stderr, PLAIN), note);
}

/* The run keeps its state; report that instead of an outcome. `status`: for people. */
static int leave(struct follow *f, const char *status)
{
    struct rv__drive *d = f->d;
    rv_run_state *state = NULL;
    struct rv__buf json;
    rv_error err;
    rv__screen_clear(&f->view);
    if (rv__client_state(d->client, d->run_id, &state, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the run */
    rv__put_run(&json, state);
    rv__put_results(&json, state);
    rv__buf_char(&json, '}');
    int code = rv__print_json(&json);
    rv__screen_record(&f->view, status, rv__wall_ms(rv__clock_real()) - state->started_at, "", "");
    if (f->view.kind != VIEW_NONE && !f->suspended)
        say_how_to_go_on(f, "continue", "", "");
    rv__buf_done(&json);
    rv_run_state_free(state);
    return code == CLI_OK ? CLI_SUSPENDED : code;
}

static int leave_suspended(struct follow *f)
{
    int code = leave(f, "suspended");
    if (f->view.kind != VIEW_NONE)
        say_how_to_go_on(f, "decide and continue", " --on-suspend resume", " (or skip, abort)");
    return code;
}

/* Stop if a function or a secret is missing and nobody can provide it. False: nothing is missing. */
static bool is_given_up(struct follow *f)
{
    struct rv__buf what;
    int64_t now_ms = rv__mono_ms(rv__clock_real());
    if (f->d->on_suspend == ON_SUSPEND_ASK || f->d->on_suspend == ON_SUSPEND_WAIT || f->suspended ||
        now_ms - f->quiet_ms < NOBODY_MS)
        return false;
    f->quiet_ms = now_ms; /* look again after the same time */
    rv__buf_init(&what, 1u << 12);
    bool nobody = waits_for_nobody(f->d, &what);
    if (nobody) {
        rv__screen_clear(&f->view);
        fprintf(stderr, "%.*s, and nothing else is left to do\n", RV__ARG(rv__buf_view(&what)));
    }
    rv__buf_done(&what);
    return nobody;
}

/* With --json as well: there is no outcome, and the user wants to know the state of the interrupted run. */
static int stop_in_order(struct follow *f)
{
    rv_error why = { .code = 0 };
    rv__screen_clear(&f->view);
    (void)rv_cancel_cause(f->d->interrupt, &why);
    if (f->d->served) {
        struct rv__buf where;
        rv__buf_init(&where, 1u << 16);
        put_where(f->d, &where);
        fprintf(stderr, "%s: the run continues where it is served: rival wait %s%s\n", why.message,
                f->d->run_id, rv__buf_view(&where).at);
        rv__buf_done(&where);
        return CLI_INTERRUPTED;
    }
    fprintf(stderr, "%s: running steps have %d s to finish; press Ctrl-C again to exit at once\n",
            why.message, GRACE_MS / 1000);
    int left = rv_engine_close(f->d->engine);
    bool kept = !rv__store_name_in_memory(f->d->opts.store);
    if (left > 0 && kept)
        fprintf(stderr, "%d step%s did not finish and will be attempted again\n", left,
                left == 1 ? "" : "s");
    show_the_rest(f);
    rv_health health;
    if (rv_engine_health(f->d->engine, &health, NULL) == RV_OK && health.stuck)
        fprintf(stderr, "the last results could not be recorded; those steps will run again: %s\n",
                health.why.message);
    fprintf(stderr, "%s%s\n", f->ended ? "the run has ended" : "stopped",
            kept ? "; all completed work is recorded" : "");
    say_how_to_go_on(f, "continue", "", "");
    return CLI_INTERRUPTED;
}

/* -------------------------------------------------------------------------------- suspended --- */

/* Read a typed line. False: end of input, or Ctrl-C. */
static bool read_answer(rv_cancel *interrupt, char ret[ANSWER_BYTES])
{
    size_t len = 0;
    char c = '\0';
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    while (!rv_cancel_fired(interrupt)) {
        if (poll(&in, 1, RV__FRAME_MS) <= 0)
            continue;
        if (read(STDIN_FILENO, &c, 1) != 1)
            return false;
        if (c == '\n') {
            ret[len] = '\0';
            return true;
        }
        if (len + 1 < ANSWER_BYTES)
            ret[len++] = c;
    }
    return false;
}

/* One node that waits for a decision. Its texts are in `text` and end in NUL. */
struct suspension {
    struct rv__buf text;
    const char *path, *why; /* "": the run as a whole */
    bool skip, restart;     /* are these decisions possible? */
};

static bool has_action(struct rv__str actions, const char *word)
{
    struct rv__json_iter it;
    struct rv__str one;
    if (rv__str_none(actions))
        return false;
    rv__json_iter_init(&it, actions);
    while (rv__json_next(&it, NULL, &one))
        if (rv__json_string_is(one, rv__str(word)))
            return true;
    return false;
}

/* Read the n-th suspended node, from 0. False: there is none, or it cannot be read. */
static bool read_suspension(struct rv__drive *d, size_t n, struct suspension *ret)
{
    rv_run_state *state = NULL;
    struct rv__json_iter it;
    struct rv__str one = { NULL, 0 }, path = { NULL, 0 }, reason = { NULL, 0 },
                   actions = { NULL, 0 };
    struct rv__buf why;
    *ret = (struct suspension){ .path = "", .why = "" };
    if (rv__client_state(d->client, d->run_id, &state, NULL) < 0)
        return false;
    bool found = state->status == RV_SUSPENDED;
    rv__buf_init(&ret->text, RV__JSON_MAX_BYTES);
    rv__buf_init(&why, RV__JSON_MAX_BYTES);
    reason = rv__str(state->suspension);
    if (found && *state->suspensions == '[') {
        rv__json_iter_init(&it, rv__str(state->suspensions));
        for (size_t i = 0; found && i <= n; i++)
            found = rv__json_next(&it, NULL, &one);
        if (found) {
            (void)rv__json_get(one, "path", &path);
            (void)rv__json_get(one, "reason", &reason);
            (void)rv__json_get(one, "actions", &actions);
        }
    } else {
        found = found && n == 0;
    }
    if (path.len >= 2) /* no character of a path is escaped */
        rv__buf_str(&ret->text, (struct rv__str){ path.at + 1, path.len - 2 });
    rv__buf_char(&ret->text, '\0');
    size_t begin = ret->text.len;
    rv__text_error(&why, reason);
    (void)rv__text_fit(&ret->text, rv__buf_view(&why), REASON_WIDTH);
    rv__buf_char(&ret->text, '\0');
    ret->skip = has_action(actions, "skip");
    ret->restart = has_action(actions, "restart_stage");
    if (rv__buf_err(&ret->text, NULL) == RV_OK) {
        ret->path = ret->text.text;
        ret->why = ret->text.text + begin;
    }
    rv__buf_done(&why);
    rv_run_state_free(state);
    return found;
}

static void suspension_done(struct suspension *suspension)
{
    rv__buf_done(&suspension->text);
}

/* Print the attachments of its attempts. */
static void show_attachments(struct rv__drive *d, const char *path)
{
    const char *colon = strrchr(path, ':');
    rv_attachment_list *list = NULL;
    struct rv__table *table = rv__table_new(3);
    if (table != NULL && colon != NULL &&
        rv__client_attachments(d->client, d->run_id,
                               RV_ATTACHMENT_QUERY(.state = colon + 1, .limit = 1000), &list,
                               NULL) == RV_OK) {
        for (size_t i = 0; i < list->count; i++) {
            rv__table_cell(table, PLAIN, list->attachments[i].id);
            rv__table_cell(table, PLAIN, list->attachments[i].status);
            rv__table_cell(table, PLAIN, list->attachments[i].description);
        }
        (void)rv__table_print(table, stderr); /* without memory: none */
    }
    rv_attachment_list_free(list);
    rv__table_free(table);
}

/* Print the end of its log and its attachments. */
static void inspect(struct rv__drive *d, const struct suspension *about)
{
    rv_log_list *list = NULL;
    uint64_t after = 0;
    size_t got;
    const char *path = *about->path != '\0' ? about->path : NULL;
    fprintf(stderr, "  %s%s%s\n", about->path, *about->path != '\0' ? ": " : "", about->why);
    do { /* until the last page */
        rv_log_list *page = NULL;
        rv_error err;
        if (rv__client_logs(d->client, d->run_id,
                            RV_LOG_QUERY(.after = after, .limit = 1000, .path = path), &page,
                            &err) < 0)
            break;
        got = page->count;
        after = page->next;
        if (got > 0 || list == NULL) {
            rv_log_list_free(list);
            list = page;
        } else {
            rv_log_list_free(page);
        }
    } while (got == 1000);
    size_t count = list != NULL ? list->count : 0;
    for (size_t i = count > INSPECT_LINES ? count - INSPECT_LINES : 0; i < count; i++) {
        struct rv__buf line;
        rv__buf_init(&line, 1u << 16);
        (void)rv__text_fit(&line, rv__str(list->lines[i].message), 500);
        fprintf(stderr, "  %s: %s\n", list->lines[i].path, rv__buf_view(&line).at);
        rv__buf_done(&line);
    }
    if (count == 0)
        fprintf(stderr, "  nothing was logged\n");
    rv_log_list_free(list);
    show_attachments(d, about->path);
}

enum { ASK_QUIT = -1 };

/* Ask for a decision about one node, by its first letter or in full. Returns enum rv_decision or ASK_QUIT. */
static int ask(struct follow *f, const struct suspension *about)
{
    char answer[ANSWER_BYTES];
    const char *skip = about->skip ? "skip (it counts as failed, and the stage goes on), " : "";
    const char *restart = about->restart ? "restart_stage, " : "";
    for (;;) {
        fprintf(stderr,
                "%s%sresume (with fresh attempts), %sabort, %sinspect, or quit (it stays "
                "suspended)? [r%s/a%s/i/q] ",
                about->path, *about->path != '\0' ? ": " : "", skip, restart,
                about->skip ? "/s" : "", about->restart ? "/t" : "");
        fflush(stderr);
        if (!read_answer(f->d->interrupt, answer) || answer[0] == 'q')
            return ASK_QUIT;
        if (answer[0] == 't' || strncmp(answer, "rest", 4) == 0) {
            if (about->restart)
                return RV_RESTART_STAGE;
        } else if (answer[0] == 'r') {
            return RV_RESUME;
        } else if (answer[0] == 'a') {
            return RV_ABORT;
        } else if (answer[0] == 's' && about->skip) {
            return RV_SKIP;
        } else if (answer[0] == 'i') {
            inspect(f->d, about);
        }
    }
}

static void say_why_suspended(struct follow *f)
{
    struct suspension one;
    if (f->view.kind == VIEW_NONE)
        return;
    rv__screen_clear(&f->view);
    for (size_t n = 0; read_suspension(f->d, n, &one); n++) {
        fprintf(stderr, "%ssuspended:%s %s\n", rv__colour(stderr, YELLOW),
                rv__colour(stderr, PLAIN), one.why);
        suspension_done(&one);
        one = (struct suspension){ .path = "" };
    }
    suspension_done(&one);
}

static int decide_one(struct follow *f, const struct suspension *about, int decision,
                      const char *reason, rv_error *err)
{
    rv_decide_opts opts = { .size = sizeof opts, .reason = reason };
    if (*about->path != '\0')
        opts.path = about->path;
    return rv__client_decide(f->d->client, f->d->run_id, decision, &opts, err);
}

/* Decide every suspended node as --on-suspend says. The recorded reason says that nobody was asked, and why the run
 * was suspended. RV_EBUSY: that decision is not possible for one of them. */
static int decide_all(struct follow *f, rv_error *err)
{
    static const char *const reasons[] = {
        [ON_SUSPEND_ABORT] = "suspended, and aborted: --on-suspend abort",
        [ON_SUSPEND_SKIP] = "suspended, and skipped: --on-suspend skip",
        [ON_SUSPEND_RESUME] = NULL
    };
    enum rv__on_suspend what = f->d->on_suspend;
    int decision = what == ON_SUSPEND_ABORT  ? RV_ABORT
                   : what == ON_SUSPEND_SKIP ? RV_SKIP
                                             : RV_RESUME;
    struct suspension one;
    int rc = RV_OK;
    while (rc == RV_OK && read_suspension(f->d, 0, &one)) { /* a decided node leaves the list */
        rc = decision == RV_SKIP && !one.skip ? RV_EBUSY
                                              : decide_one(f, &one, decision, reasons[what], err);
        suspension_done(&one);
        one = (struct suspension){ .path = "" };
        if (decision == RV_ABORT)
            return rc; /* an abort ends the whole run */
    }
    if (rc == RV_OK)
        suspension_done(&one);
    return rc;
}

/* Ask about the first suspended node. *left: the user decided nothing. */
static int decide_asked(struct follow *f, bool *left, rv_error *err)
{
    struct suspension one;
    int rc = RV_OK;
    *left = false;
    if (!read_suspension(f->d, 0, &one)) { /* somebody else has decided */
        suspension_done(&one);
        return RV_OK;
    }
    if (f->view.kind == VIEW_LIVE)
        rv__terminal_cursor(stderr, true);
    int decision = ask(f, &one);
    if (f->view.kind == VIEW_LIVE)
        rv__terminal_cursor(stderr, false);
    *left = decision == ASK_QUIT;
    if (decision != ASK_QUIT) {
        rv__refusal_watch(&f->d->refusal, f->d->interrupt);
        rc = decide_one(f, &one, decision, NULL, err);
        rv__refusal_unwatch(&f->d->refusal);
    }
    suspension_done(&one);
    return rc;
}

/* Wait until the manifest's listeners have received all events, or their time is over. */
static void wait_for_listeners(const struct rv__drive *d)
{
    int64_t until_ms = rv__mono_ms(rv__clock_real()) + LISTENERS_MS;
    while (d->engine != NULL && !rv_cancel_fired(d->interrupt) &&
           rv__mono_ms(rv__clock_real()) < until_ms &&
           rv_listeners_wait(d->engine, d->run_id, INT64_C(10) * RV__FRAME_MS, NULL) ==
               RV_ETIMEDOUT)
        ;
}

/* Listeners may decide as well: give them time for it. */
static bool listeners_decided(struct follow *f)
{
    rv_run_state *state = NULL;
    rv_error err;
    wait_for_listeners(f->d);
    bool decided = rv__client_state(f->d->client, f->d->run_id, &state, &err) == RV_OK &&
                   state->status != RV_SUSPENDED;
    rv_run_state_free(state);
    if (decided)
        f->suspended = f->said = false;
    return decided;
}

/* Decide, or wait for a decision. CLI_OK: the run continues or is waited for; else the exit code. */
static int settle_suspension(struct follow *f)
{
    rv_error err;
    enum rv__on_suspend what = f->d->on_suspend;
    if (!f->said)
        say_why_suspended(f);
    f->said = true;
    if (what == ON_SUSPEND_WAIT)
        return CLI_OK;
    if (what == ON_SUSPEND_LEAVE)
        return listeners_decided(f) ? CLI_OK : leave_suspended(f);
    if (what == ON_SUSPEND_RESUME && f->resumes++ == RESUMES_MAX)
        return leave_suspended(f);
    rv__screen_clear(&f->view);
    int rc;
    bool left = false;
    if (what == ON_SUSPEND_ASK) {
        rc = decide_asked(f, &left, &err);
    } else {
        rv__refusal_watch(&f->d->refusal, f->d->interrupt);
        rc = decide_all(f, &err);
        rv__refusal_unwatch(&f->d->refusal);
    }
    if (left || rc == RV_EBUSY)
        return leave_suspended(f);
    if (rc == RV_ECLOSED && rv_cancel_fired(f->d->interrupt))
        return stop_in_order(f);
    if (rc < 0 && f->d->handed && may_pass(rc) && rc != RV_ESTATE)
        return CLI_OK;             /* its driver has ended: decide once another has the run */
    if (rc < 0 && rc != RV_ESTATE) /* RV_ESTATE: it has continued meanwhile */
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    f->suspended = f->said = false;
    return CLI_OK;
}

/* ---------------------------------------------------------------------------------- the loop --- */

static void clear(void *view)
{
    rv__screen_clear(view);
}

/* The driver has ended before the run. Continue it here, or follow the next driver. */
static int take_over(struct follow *f)
{
    rv_driver driver;
    int code = open_again(f->d);
    if (code == CLI_OK)
        code = get_going(f->d);
    f->quiet_ms = rv__mono_ms(rv__clock_real());
    if (code == CLI_INTERRUPTED) {
        rv__screen_clear(&f->view);
        say_how_to_go_on(f, "continue", "", "");
    }
    if (code != CLI_OK || f->view.kind == VIEW_NONE)
        return code;
    rv__screen_clear(&f->view);
    if (rv_engine_driver(f->d->engine, &driver, NULL) == 1)
        fprintf(stderr, "the process that drove the run has ended; process %lld now drives it\n",
                (long long)driver.pid);
    else
        fprintf(stderr, "the process that drove the run has ended; this one continues it\n");
    return CLI_OK;
}

static int follow(struct follow *f)
{
    struct rv__drive *d = f->d;
    rv__screen_frame(&f->view, true);
    for (;;) {
        rv_event event;
        rv_error err;
        bool often = f->view.kind == VIEW_LIVE || d->served ||
                     d->handed; /* nobody sends events: look again */
        int64_t pause_ms = often ? RV__FRAME_MS : 10 * RV__FRAME_MS;
        int rc = rv__follow_next(d->feed, pause_ms, d->interrupt, &event, &err);
        rv__refusal_tell(&d->refusal, clear, &f->view);
        if (rc == RV_OK)
            take_event(f, &event);
        else if (rc == RV_ECANCELED)
            return f->suspended ? leave_suspended(f) : stop_in_order(f);
        else if (rc != RV_ETIMEDOUT && rc != RV_ENOMEM && rc != RV_ESTORE)
            return rv__cli_fail(CLI_FAILED, err.message, NULL);
        if (f->suspended && d->on_suspend != ON_SUSPEND_WAIT) {
            int code = settle_suspension(f);
            if (code != CLI_OK)
                return code;
        } else if (f->suspended && !f->said) {
            (void)settle_suspension(f); /* prints why */
        }
        if (f->ended && !is_alive(d))
            break;
        if (rc == RV_ETIMEDOUT && d->handed && !is_driven(d)) {
            int code = take_over(f);
            if (code != CLI_OK)
                return code;
            continue;
        }
        if (rc == RV_ETIMEDOUT && is_given_up(f))
            return leave(f, "waiting");
        f->view.state = f->ended       ? "ended; its detached steps continue"
                        : f->suspended ? "suspended"
                                       : NULL;
        rv__screen_frame(&f->view, false);
    }
    show_the_rest(f); /* events that came while it ended */
    wait_for_listeners(d);
    return print_outcome(d, &f->view);
}

int rv__drive_follow(struct rv__drive *d, const char *workflow, const char *resume)
{
    rv_run_state *state = NULL;
    rv_error err;
    if (rv__client_state(d->client, d->run_id, &state, &err) < 0)
        return rv__drive_fail(d, CLI_FAILED, &err, NULL);
    struct follow f = { .d = d, .resume = resume, .suspended = state->status == RV_SUSPENDED };
    f.quiet_ms = rv__mono_ms(rv__clock_real());
    f.ended = state->status != RV_RUNNING && !f.suspended;
    enum rv__screen_kind kind = d->opts.json              ? VIEW_NONE
                                : rv__terminal_is(stderr) ? VIEW_LIVE
                                                          : VIEW_LINES;
    rv__screen_init(&f.view, kind, d->client, workflow, d->run_id, state->started_at);
    rv_run_state_free(state);
    rv__refusal_unwatch(&d->refusal);
    d->refusal.ends = false;
    bool over = d->over || (f.ended && d->exists && !is_alive(d));
    int code = over ? print_outcome(d, &f.view) : follow(&f);
    if (over && kind != VIEW_NONE) /* the user may have changed the file meanwhile */
        fprintf(stderr, "this run had already ended; nothing was run. For a new run, use another "
                        "--run-id or none\n");
    rv__screen_done(&f.view);
    return code;
}
