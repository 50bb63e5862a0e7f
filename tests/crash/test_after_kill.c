/* test_after_kill.c: a process dies with 240 steps in flight: the next one is not held up by them.
 *
 * The program plays two parts. As the child it has 256 places, and steps in 240 of them that take ten seconds;
 * the parent kills it. As the next child it opens the same store, where all of these begin again, and has to run a
 * new run of one step to its end, within a second from its start.
 *
 * Then the same with a pill among them: a step that kills its process each time it runs, while other runs come and
 * go. It is found and suspended within a bounded number of deaths: two until it is a suspect, max_crashes more as
 * the only suspect in flight, and one. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"

enum {
    PLACES = 256,
    IN_FLIGHT = 240,
    STEP_MS = 10000,
    SUSPECT_MS =
        10, /* what a slow step takes when it is a suspect: one at a time, they take long enough */
    PILL_MS = 300,   /* until it kills, if by then not all of the others are in flight beside it */
    SOON_MS = 1000,  /* from the start of the process to the end of a new run */
    MAX_CRASHES = 3, /* the default */
    MOST_DEATHS = 2 + MAX_CRASHES + 1,
    GIVE_UP_S = 20, /* a child that does not get there */
};

static int tests, failures;

static void ok(bool good, const char *says)
{
    printf("%sok %d - %s\n", good ? "" : "not ", ++tests, says);
    failures += !good;
}

/* ---------------------------------------------------------------------------------- child --- */

static void must(int rc, const rv_error *err)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "# %s\n", err->message);
    _exit(3);
}

static int begun_fd = -1; /* a byte for each slow step that has begun */
static int slow_ms = STEP_MS, pill_ms = STEP_MS;
static atomic_int begun_here;

static int slow(rv_ctx *c)
{
    (void)!write(begun_fd, "s", 1); /* nobody reads it any more: then nobody counts */
    atomic_fetch_add(&begun_here, 1);
    for (int ms = 0; ms < slow_ms && !rv_ctx_cancelled(c); ms += SUSPECT_MS)
        rv__clock_sleep_ms(SUSPECT_MS);
    return 0;
}

static int quick(rv_ctx *c)
{
    (void)c;
    return 0;
}

static int pill(rv_ctx *c)
{
    (void)c;
    for (int ms = 0; ms < pill_ms && atomic_load(&begun_here) < IN_FLIGHT; ms += SUSPECT_MS)
        rv__clock_sleep_ms(SUSPECT_MS);
    raise(SIGKILL);
    return 0;
}

static void add(rv_engine *engine, const char *name, rv_step_fn fn)
{
    rv_error err;
    rv_workflow *w = rv_workflow_new(name);
    rv_add_step(rv_workflow_body(w), name, fn, NULL);
    must(rv_register(engine, w, &err), &err);
    rv_workflow_free(w);
}

static rv_engine *open_engine(const char *store)
{
    rv_error err;
    rv_engine *engine = NULL;
    must(
        rv_engine_new(RV_ENGINE_OPTS(.store = store, .workers = PLACES, .max_crashes = MAX_CRASHES),
                      &engine, &err),
        &err);
    add(engine, "slow", slow);
    add(engine, "quick", quick);
    add(engine, "pill", pill);
    return engine;
}

static void start(rv_engine *engine, const char *workflow, const char *id)
{
    rv_error err;
    rv_run_info info;
    must(rv_run(engine, workflow, NULL, RV_RUN_OPTS(.run_id = id), &info, &err), &err);
}

static void run_quick(rv_engine *engine)
{
    rv_error err;
    rv_run_info info;
    rv_outcome *outcome;
    must(rv_run(engine, "quick", NULL, NULL, &info, &err), &err);
    must(rv_wait(engine, NULL, info.run_id, NULL, &outcome, &err), &err);
    if (outcome->status != RV_COMPLETED)
        _exit(4);
    rv_outcome_free(outcome);
}

/* The first life: all of them are started, and the pill, if there is one. Then it waits to be killed. */
static void fill(const char *store, bool with_pill)
{
    rv_engine *engine = open_engine(store);
    char id[32];
    for (int i = 0; i < IN_FLIGHT; i++) {
        snprintf(id, sizeof id, "slow%d", i);
        start(engine, "slow", id);
        if (with_pill && i == IN_FLIGHT / 2)
            start(engine, "pill", "pill");
    }
    for (;;)
        run_quick(engine);
}

/* A later life: does a new run end soon? */
static void time_one(const char *store)
{
    int64_t start_ns = rv__mono_ns(rv__clock_real());
    run_quick(open_engine(store));
    int64_t took_ms = (rv__mono_ns(rv__clock_real()) - start_ns) / 1000000;
    printf("# a new run ended %lld ms after the restart\n", (long long)took_ms);
    fflush(stdout);
    _exit(took_ms <= SOON_MS ? 0 : 1);
}

/* All of them go on, under steady load, until the pill is suspended (exit 0), or kills it. */
static void suffer(const char *store)
{
    rv_engine *engine = open_engine(store);
    rv_error err;
    for (;;) {
        rv_run_state *state;
        run_quick(engine);
        must(rv_state(engine, "pill", &state, &err), &err);
        bool suspended = state->status == RV_SUSPENDED;
        rv_run_state_free(state);
        if (suspended)
            _exit(0);
    }
}

/* --------------------------------------------------------------------------------- parent --- */

static char folder[] = "/tmp/rival-after-kill-XXXXXX", store[64];

static pid_t child(void (*life)(const char *path), int out)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        begun_fd = out;
        alarm(GIVE_UP_S);
        life(store);
        _exit(5);
    }
    return pid;
}

static void fill_slow(const char *path)
{
    fill(path, false);
}

static void fill_with_pill(const char *path)
{
    fill(path, true);
}

/* A life in which all the slow steps begin. It is killed then, unless it does that itself. How many had begun. */
static int live_and_die(void (*life)(const char *path), bool by_itself)
{
    int ends[2], begun = 0, status;
    char byte;
    if (pipe(ends) < 0)
        abort();
    pid_t pid = child(life, ends[1]);
    close(ends[1]);
    while ((by_itself || begun < IN_FLIGHT) && read(ends[0], &byte, 1) == 1)
        begun++;
    if (!by_itself)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    close(ends[0]);
    return begun;
}

static void drop_store(void)
{
    static const char *const ends[] = { "", "-wal", "-shm", ".lock", ".sock" };
    char path[80];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", store, ends[i]);
        (void)unlink(path); /* some of them are not there */
    }
}

static void not_held_up(void)
{
    int status = 0;
    int begun = live_and_die(fill_slow, false), null_fd = open("/dev/null", O_WRONLY);
    pid_t pid = child(time_one, null_fd);
    waitpid(pid, &status, 0);
    close(null_fd);
    ok(begun == IN_FLIGHT, "240 steps are in flight when their process is killed");
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "a new run ends within a second of a restart with 240 steps in flight");
    drop_store();
}

static void pill_is_found(void)
{
    int status = 0, deaths = 1, null_fd = open("/dev/null", O_WRONLY);
    int begun = live_and_die(fill_with_pill, true);
    ok(begun == IN_FLIGHT, "240 steps are in flight when the pill kills their process");
    while (deaths <= MOST_DEATHS) {
        slow_ms = deaths < 2 ? STEP_MS : SUSPECT_MS;
        pill_ms = PILL_MS; /* the others may be held back */
        pid_t pid = child(suffer, null_fd);
        waitpid(pid, &status, 0);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            break;
        deaths++;
    }
    close(null_fd);
    printf("# it was suspended after %d deaths\n", deaths);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0 && deaths <= MOST_DEATHS,
       "a pill among them is suspended within 6 deaths, under steady load");
    drop_store();
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(store, sizeof store, "%s/kill.db", folder);
    not_held_up();
    pill_is_found();
    printf("1..%d\n", tests);
    (void)rmdir(folder);
    return failures > 0;
}
