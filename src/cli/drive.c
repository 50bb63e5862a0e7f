/* drive.c: a run driven to its end by this process and shown meanwhile.
 *
 * The engine is open for this run alone. It is followed by its feed: what is shown is on disk. A second
 * call with the same id finds the run and goes on with it, since its id is made here, before it begins. */
#include "cli/drive.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/id.h"
#include "base/json.h"
#include "cli/text.h"
#include "cli/screen.h"

enum {
    GRACE_MS = 5000,   /* for steps to end by themselves after Ctrl-C */
    TOLD_MS = 2000,    /* and then, for those that were told to */
    RESUMES_MAX = 10,  /* --on-suspend resume: then it is left suspended */
    NOBODY_MS = 5000,  /* so long we wait for a function that nobody has, without a terminal */
    ANSWER_BYTES = 64, /* of a decision that is typed */
    INSPECT_LINES = 20,
    REASON_WIDTH = 2000,
    OUTCOME_MS = 60000, /* to read how it ended: it has */
};

/* ------------------------------------------------------------------------------- beginning --- */

const char *const rv__on_suspend_words[] = { "wait", "abort", "resume", NULL }; /* as the enum */

static int read_eval_time(struct rv__drive *d)
{
    if (d->opts.eval_time == NULL ||
        (rv__duration_ms(rv__str(d->opts.eval_time), &d->eval_cpu_ms) == RV_OK &&
         d->eval_cpu_ms > 0))
        return CLI_OK;
    return rv__cli_usage(d->command, "--eval-time '%s' is not a duration like 500ms, 5s",
                         d->opts.eval_time);
}

static int read_on_suspend(struct rv__drive *d)
{
    static const char *const words[] = { "wait", "abort", "resume", "skip", NULL };
    bool asks = isatty(STDIN_FILENO) && rv__terminal_is(stderr) && !d->opts.json;
    d->on_suspend = asks ? ON_SUSPEND_ASK : ON_SUSPEND_LEAVE;
    if (d->opts.on_suspend == NULL)
        return CLI_OK;
    int choice = rv__option_choice(d->command, "--on-suspend", d->opts.on_suspend, words);
    if (choice < 0)
        return CLI_USAGE;
    if (choice == 3)
        return rv__cli_usage(d->command, "--on-suspend skip is not available yet: it is for the "
                                         "states of a manifest");
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

/* A store on a disk that has no sockets can be driven all the same: only, nobody can ask. */
static int open_engine(struct rv__drive *d, enum rv__drive_by by, rv_error *err)
{
    rv_engine_opts opts = *RV_ENGINE_OPTS(.store = d->opts.store, .only_run = d->run_id,
                                          .idle = by == DRIVE_LATER, .control = by != DRIVE_LATER,
                                          .attach = by != DRIVE_HERE, .drain_ms = GRACE_MS,
                                          .grace_ms = TOLD_MS, .allow_env = d->opts.allow_env.at,
                                          .eval_cpu_ms = d->eval_cpu_ms);
    int rc = rv_engine_new(&opts, &d->engine, err);
    if (rc == RV_ESYS && opts.control) {
        fprintf(stderr, "%s: other processes cannot tell this run anything\n", err->message);
        opts.control = false;
        rc = rv_engine_new(&opts, &d->engine, err);
    }
    return rc;
}

/* Is there something in it that goes on by itself? What a run had detached outlives its end; a server that
 * is away may come back and tell. */
static bool is_alive(struct rv__drive *d)
{
    char *text = NULL;
    struct rv__str waits = { NULL, 0 };
    int rc = rv__client_why(d->client, d->run_id, &text, NULL);
    if (rc < 0)
        return rv__client_away(d->client, rc);
    bool alive = rv__json_get(rv__str(text), "waits", &waits) && rv__json_count(waits) > 0;
    rv_free(text);
    return alive;
}

/* Is all that it waits for functions that nobody has? `name`: one of them. */
static bool waits_for_nobody(struct rv__drive *d, struct rv__buf *name)
{
    char *text = NULL;
    struct rv__str waits = { NULL, 0 }, wait, value;
    struct rv__json_iter it;
    size_t others = 0;
    if (rv__client_why(d->client, d->run_id, &text, NULL) < 0)
        return false;
    if (rv__json_get(rv__str(text), "waits", &waits)) {
        rv__json_iter_init(&it, waits);
        while (rv__json_next(&it, NULL, &wait)) {
            bool nobody = rv__json_get(wait, "reason", &value) &&
                          rv__json_string_is(value, (struct rv__str)RV__STR("worker")) &&
                          rv__json_get(wait, "function", &value);
            others += !nobody;
            if (nobody && name->len == 0)
                rv__buf_str(name, value);
        }
    }
    rv_free(text);
    return name->len > 0 && others == 0;
}

/* Is it the input that the run has? None is none to differ. */
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

/* A run that has ended is only read, which needs nobody's leave, nor what it was made of. */
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

/* The server that is meant, if one is: it has the run, and its workflows. Where none was named and the usual
 * one does not answer, the run goes to a store: the usual one, too, if this process is to drive it. */
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
    bool reads = d->client == NULL && by != DRIVE_LATER; /* if that will do */
    if (reads && d->input == NULL)
        (void)open_ended(d);
    int rc = d->client == NULL ? open_engine(d, by, &err) : RV_OK;
    if (rc < 0 && !(reads && open_ended(d)))
        return rv__cli_fail(CLI_USAGE, err.message,
                            rc != RV_EBUSY ? NULL
                            : by == DRIVE_HERE
                                ? "if it serves, `rival run NAME` begins runs there; "
                                  "--store FILE takes another store"
                                : "--store FILE takes another one");
    if (d->client == NULL && (d->client = rv__client_of(d->engine)) == NULL)
        return rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    d->served = d->engine == NULL || (!d->over && rv_engine_driver(d->engine, &driver, NULL) == 1);
    if (d->served && d->opts.on_suspend == NULL)
        d->on_suspend = ON_SUSPEND_WAIT; /* it is not ours alone to decide about */
    d->refusal.engine = d->served || d->over ? NULL : d->engine;
    d->refusal.ends = true; /* until it is followed: nothing has begun */
    rv__refusal_watch(&d->refusal, d->interrupt);
    rv_run_list *row = NULL;
    rc = rv__client_list(d->client, RV_QUERY(.run_id = d->run_id), &row, &err);
    d->exists = rc == RV_OK && row->count == 1;
    rv_run_list_free(row);
    if (d->exists)
        rc = rv__follow_open(d->client, RV_FEED_OPTS(.run_id = d->run_id), &d->feed, &err);
    return rc == RV_OK ? CLI_OK : rv__cli_fail(CLI_FAILED, err.message, NULL);
}

void rv__drive_close(struct rv__drive *d)
{
    rv__refusal_unwatch(&d->refusal);
    rv__follow_close(d->feed);
    rv__client_close(d->client);
    if (d->engine != NULL &&
        rv_engine_close(d->engine) == 0) /* else steps run that cannot be stopped: we leave them */
        rv_engine_free(d->engine);
    rv__free(d->input);
}

int rv__drive_fail(const struct rv__drive *d, int code, const rv_error *err, const char *hint)
{
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

int rv__drive_start(struct rv__drive *d, const char *workflow)
{
    rv_violations *violations = NULL;
    rv_run_info info = { .status = RV_RUNNING };
    rv_error err;
    if (d->over || (d->exists && d->input == NULL)) /* the run has its input */
        return check_same_workflow(d, workflow);
    int rc = rv__client_run(d->client, workflow, d->input,
                            RV_RUN_OPTS(.run_id = d->run_id, .violations = &violations), &info,
                            &err);
    if (rc == RV_EINVAL) {
        rc = refuse_input(violations, &err);
        rv_violations_free(violations);
        return rc;
    }
    if (rc == RV_EEXIST)
        return rv__cli_fail(CLI_USAGE, err.message,
                            "leave out --input to continue the run with its own input");
    d->status = info.status;
    if (rc == RV_OK && d->feed == NULL)
        rc = rv__follow_open(d->client, RV_FEED_OPTS(.run_id = d->run_id, .from = RV_FROM_OLDEST),
                             &d->feed, &err);
    return rc == RV_OK ? CLI_OK
                       : rv__drive_fail(d, rc == RV_ENOTFOUND ? CLI_USAGE : CLI_FAILED, &err, NULL);
}

/* A store that is the usual one need not be named. */
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
    bool ended, suspended, told;
    int resumes;
    int64_t quiet_ms; /* monotonic: since then nothing has happened */
};

static void take_event(struct follow *f, const rv_event *event)
{
    f->quiet_ms = rv__mono_ms(rv__clock_real());
    rv__screen_event(&f->view, event);
    if (strncmp(event->kind, "run.", 4) != 0)
        return;
    f->suspended = strcmp(event->kind, "run.suspended") == 0;
    f->ended = f->ended || strcmp(event->kind, "run.completed") == 0 ||
               strcmp(event->kind, "run.failed") == 0 || strcmp(event->kind, "run.cancelled") == 0;
}

/* What has happened up to now. */
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
    int code = rv__print_json(
        &json); /* first: on a terminal, the record is what remains in sight */
    rv__screen_record(view, rv_status_name(ended->status), ended->duration_ms, ended->error);
    if (code == CLI_OK)
        code = rv__exit_code(ended->status);
    rv__buf_done(&json);
    rv_run_state_free(ended);
    return code;
}

static void say_how_to_go_on(struct follow *f)
{
    fprintf(stderr, "to continue: %s%s%s\n", rv__colour(stderr, BOLD), f->resume,
            rv__colour(stderr, PLAIN));
}

/* It stays as it is, and that is told instead of an outcome. `status`: for people. */
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
    rv__screen_record(&f->view, status, rv__wall_ms(rv__clock_real()) - state->started_at, "");
    if (f->view.kind != VIEW_NONE)
        say_how_to_go_on(f);
    rv__buf_done(&json);
    rv_run_state_free(state);
    return code == CLI_OK ? CLI_SUSPENDED : code;
}

static int leave_suspended(struct follow *f)
{
    return leave(f, "suspended");
}

/* A function is missing, and nobody is there who could bring it. False: it is not that. */
static bool is_given_up(struct follow *f)
{
    struct rv__buf name;
    int64_t now_ms = rv__mono_ms(rv__clock_real());
    if (f->d->on_suspend == ON_SUSPEND_ASK || f->d->on_suspend == ON_SUSPEND_WAIT || f->suspended ||
        now_ms - f->quiet_ms < NOBODY_MS)
        return false;
    f->quiet_ms = now_ms; /* the next look is as far away */
    rv__buf_init(&name, 1u << 12);
    bool nobody = waits_for_nobody(f->d, &name);
    if (nobody) {
        rv__screen_clear(&f->view);
        fprintf(stderr, "nobody here has the function %.*s, and nothing else is left to do\n",
                RV__ARG(rv__buf_view(&name)));
    }
    rv__buf_done(&name);
    return nobody;
}

/* Told with --json as well: there is no outcome, and who stopped it wants to know what became of it. */
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
    if (left > 0)
        fprintf(stderr, "%d step%s did not finish and will be attempted again\n", left,
                left == 1 ? "" : "s");
    show_the_rest(f);
    rv_health health;
    if (rv_engine_health(f->d->engine, &health, NULL) == RV_OK && health.stuck)
        fprintf(stderr, "the last results could not be recorded; those steps will run again: %s\n",
                health.why.message);
    fprintf(stderr, "%s; all completed work is recorded\n",
            f->ended ? "the run has ended" : "stopped");
    say_how_to_go_on(f);
    return CLI_INTERRUPTED;
}

/* -------------------------------------------------------------------------------- suspended --- */

/* A line that is typed; false: there is no more, or Ctrl-C. */
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

static void inspect(struct rv__drive *d)
{
    rv_log_list *list = NULL;
    uint64_t after = 0;
    size_t got;
    do { /* the last page is what is wanted */
        rv_log_list *page = NULL;
        rv_error err;
        if (rv__client_logs(d->client, d->run_id, RV_LOG_QUERY(.after = after, .limit = 1000),
                            &page, &err) < 0)
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
}

static enum rv__on_suspend ask(struct follow *f)
{
    char answer[ANSWER_BYTES];
    for (;;) {
        fprintf(stderr,
                "resume (with fresh attempts), abort, inspect, or quit (it stays suspended)? "
                "[r/a/i/q] ");
        fflush(stderr);
        if (!read_answer(f->d->interrupt, answer) || answer[0] == 'q')
            return ON_SUSPEND_ASK;
        if (answer[0] == 'r')
            return ON_SUSPEND_RESUME;
        if (answer[0] == 'a')
            return ON_SUSPEND_ABORT;
        if (answer[0] == 'i')
            inspect(f->d);
    }
}

/* Why it is suspended, as people read it. */
static void read_suspension(struct rv__drive *d, struct rv__buf *out)
{
    rv_run_state *state = NULL;
    struct rv__buf text;
    if (rv__client_state(d->client, d->run_id, &state, NULL) < 0)
        return;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    rv__text_error(&text, rv__str(state->suspension));
    (void)rv__text_fit(out, rv__buf_view(&text), REASON_WIDTH);
    rv__buf_done(&text);
    rv_run_state_free(state);
}

static void say_why_suspended(struct follow *f)
{
    struct rv__buf why;
    if (f->view.kind == VIEW_NONE)
        return;
    rv__buf_init(&why, 1u << 16);
    read_suspension(f->d, &why);
    rv__screen_clear(&f->view);
    fprintf(stderr, "%ssuspended:%s %s\n", rv__colour(stderr, YELLOW), rv__colour(stderr, PLAIN),
            rv__buf_view(&why).at);
    rv__buf_done(&why);
}

/* An abort that nobody was asked about has the reason of the suspension for its own. */
static int decide(struct follow *f, enum rv__on_suspend what, rv_error *err)
{
    struct rv__buf reason;
    bool asked = f->d->on_suspend == ON_SUSPEND_ASK;
    if (what == ON_SUSPEND_RESUME || asked)
        return rv__client_decide(f->d->client, f->d->run_id,
                                 what == ON_SUSPEND_RESUME ? RV_RESUME : RV_ABORT, NULL, err);
    rv__buf_init(&reason, 1u << 16);
    rv__buf_text(&reason, "suspended, and aborted: ");
    read_suspension(f->d, &reason);
    int rc = rv__client_decide(f->d->client, f->d->run_id, RV_ABORT, rv__buf_view(&reason).at, err);
    rv__buf_done(&reason);
    return rc;
}

/* Decide, or wait for a decision. CLI_OK: the run goes on or is waited for; else the exit code. */
static int settle_suspension(struct follow *f)
{
    rv_error err;
    enum rv__on_suspend what = f->d->on_suspend;
    if (!f->told)
        say_why_suspended(f);
    f->told = true;
    if (what == ON_SUSPEND_ASK) {
        if (f->view.kind == VIEW_LIVE)
            rv__terminal_cursor(stderr, true);
        what = ask(f);
        if (f->view.kind == VIEW_LIVE)
            rv__terminal_cursor(stderr, false);
        if (what == ON_SUSPEND_ASK)
            return leave_suspended(f);
    }
    if (what == ON_SUSPEND_WAIT)
        return CLI_OK;
    if (what == ON_SUSPEND_LEAVE)
        return leave_suspended(f);
    if (what == ON_SUSPEND_RESUME && f->d->on_suspend != ON_SUSPEND_ASK &&
        f->resumes++ == RESUMES_MAX)
        return leave_suspended(f);
    rv__screen_clear(&f->view);
    rv__refusal_watch(&f->d->refusal, f->d->interrupt);
    int rc = decide(f, what, &err);
    rv__refusal_unwatch(&f->d->refusal);
    if (rc == RV_ECLOSED && rv_cancel_fired(f->d->interrupt))
        return stop_in_order(f);
    if (rc < 0 && rc != RV_ESTATE) /* it may have gone on by itself meanwhile */
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    f->suspended = f->told = false;
    return CLI_OK;
}

/* ---------------------------------------------------------------------------------- the loop --- */

static void clear(void *view)
{
    rv__screen_clear(view);
}

static int follow(struct follow *f)
{
    struct rv__drive *d = f->d;
    bool often = f->view.kind == VIEW_LIVE || d->served; /* nobody tells us: we look */
    int64_t pause_ms = often ? RV__FRAME_MS : 10 * RV__FRAME_MS;
    rv__screen_frame(&f->view, true);
    for (;;) {
        rv_event event;
        rv_error err;
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
        } else if (f->suspended && !f->told) {
            (void)settle_suspension(f); /* tells why */
        }
        if (f->ended && !is_alive(d))
            break;
        if (rc == RV_ETIMEDOUT && is_given_up(f))
            return leave(f, "waiting");
        f->view.state = f->ended       ? "ended; what it detached goes on"
                        : f->suspended ? "suspended"
                                       : NULL;
        rv__screen_frame(&f->view, false);
    }
    show_the_rest(f); /* what was said while it ended */
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
    if (over && kind != VIEW_NONE) /* who changed the file may have expected otherwise */
        fprintf(stderr, "this run had already ended; nothing was run. For a new run, use another "
                        "--run-id or none\n");
    rv__screen_done(&f.view);
    return code;
}
