/* demo_resume.c: `rival demo resume`: a run that survives its processes.
 *
 * The processes are this program again (`rival demo resume --process N STORE`), so that each starts with nothing
 * but the store. They report their progress over a pipe. The first is killed during a step, the second while the
 * run sleeps; the third finishes the run. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/cancel.h"
#include "base/clock.h"

enum {
    TELL_FD = 3,     /* where a process reports its progress */
    PACKING = 'p',   /* the step that will be killed has started */
    PACKED = 'd',    /* … and has ended, in the next process */
    STEP_MS = 250,   /* duration of a step */
    PACK_MS = 500,   /* of the step that is killed */
    DRY_MS = 1500,   /* how long the run sleeps */
    NOBODY_MS = 600, /* and how long there is no process meanwhile */
};

/* ---------------------------------------------------------------- inside such a process --- */

static int process; /* the number of this process */

static void line(const char *step, const char *fmt, ...) RV_PRINTF(2, 3);
static void line(const char *step, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("  %sprocess %d%s  %s%-6s%s ", rv__colour(stdout, CYAN), process,
           rv__colour(stdout, PLAIN), rv__colour(stdout, BOLD), step, rv__colour(stdout, PLAIN));
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

static void tell(char event)
{
    ssize_t written = write(TELL_FD, &event, 1);
    (void)written; /* if nobody reads it, we end soon */
}

static int order(rv_ctx *c)
{
    (void)rv__cli_pause(rv_ctx_token(c), STEP_MS);
    line("order", "a kettle, for Ada");
    return rv_return(c, "{s:i}", "price", 60);
}

static int pay(rv_ctx *c)
{
    (void)rv__cli_pause(rv_ctx_token(c), STEP_MS);
    line("pay", "%d charged, under the key %s", (int)rv_int(c, ".steps.order.result.price", 0),
         rv_ctx_idempotency_key(c));
    return 0;
}

static int pack(rv_ctx *c)
{
    line("pack", "%s", process == 1 ? "begins ..." : "begins again: its result was not on disk");
    tell(PACKING);
    (void)rv__cli_pause(rv_ctx_token(c), PACK_MS);
    line("pack", "in a box");
    return 0;
}

static int label(rv_ctx *c)
{
    line("label", "glued on; it dries for %d ms, by a durable timer", DRY_MS);
    tell(PACKED);
    return rv_return(c, "s", "Ada");
}

static int ship(rv_ctx *c)
{
    line("ship", "dry after %d ms, although nobody was there for %d of them",
         (int)rv_int(c, ".steps.dry.result.delayedMs", 0), NOBODY_MS);
    return 0;
}

static int run_it(rv_engine *engine, rv_error *err)
{
    rv_outcome *outcome = NULL;
    rv_workflow *w = rv_workflow_new("parcel");
    rv_body *body = rv_workflow_body(w);
    rv_add_step(body, "order", order, NULL);
    rv_add_step(body, "pay", pay, NULL);
    rv_add_step(body, "pack", pack, NULL);
    rv_add_step(body, "label", label, NULL);
    rv_add_delay(body, "dry", DRY_MS);
    rv_add_step(body, "ship", ship, NULL);

    int rc = rv_register(engine, w, err);
    if (rc == 0)
        rc = rv_run(engine, "parcel", NULL, RV_RUN_OPTS(.run_id = "demo"), NULL, err);
    if (rc == 0)
        rc = rv_wait(engine, NULL, "demo", NULL, &outcome, err);
    if (rc == 0)
        printf("  %s=> %s, in three processes; only the step that was killed ran twice%s\n",
               rv__colour(stdout, DIM), rv_status_name(outcome->status), rv__colour(stdout, PLAIN));
    rv_outcome_free(outcome);
    rv_workflow_free(w);
    return rc;
}

int rv__demo_resume_process(const char *number, const char *store)
{
    rv_error err;
    rv_engine *engine = NULL;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive the demo */
    process = (int)strtol(number, NULL, 10);
    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = store), &engine, &err);
    if (rc == 0)
        rc = run_it(engine, &err);
    if (rc < 0)
        fprintf(stderr, "rival: %s\n", err.message);
    rv_engine_free(engine);
    return rc < 0 ? CLI_FAILED : CLI_OK;
}

/* -------------------------------------------------------------------- the one that shows --- */

/* A running process, killed if the user interrupts the demo. */
struct player {
    struct rv__cancel_watch watch; /* first */
    pid_t pid;
    int events;
};

static void end_player(struct rv__cancel_watch *watch)
{
    (void)kill(((struct player *)watch)->pid, SIGKILL);
}

static int start_player(struct player *player, int number, char *store, rv_cancel *interrupt)
{
    char name[] = "rival", demo[] = "demo", resume[] = "resume", option[] = "--process", text[12];
    char *argv[] = { name, demo, resume, option, text, store, NULL };
    posix_spawn_file_actions_t actions;
    int ends[2];
    snprintf(text, sizeof text, "%d", number);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return RV_ESYS;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(&actions, ends[1], TELL_FD);
        if (rc == 0)
            rc = posix_spawn(&player->pid, "/proc/self/exe", &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (rc != 0) {
        close(ends[0]);
        return RV_ESYS;
    }
    player->events = ends[0];
    player->watch = (struct rv__cancel_watch){ .fired = end_player };
    if (!rv__cancel_watch(interrupt, &player->watch))
        end_player(&player->watch); /* it has already fired */
    return RV_OK;
}

/* Wait for this event, or the end of the process. */
static bool await_event(const struct player *player, char event)
{
    char got = 0;
    ssize_t n;
    do
        n = read(player->events, &got, 1);
    while ((n == 1 && got != event) || (n < 0 && errno == EINTR));
    return n == 1;
}

/* Wait for its end; returns its exit code, or -1 if it was killed. */
static int reap(struct player *player, rv_cancel *interrupt)
{
    int status = 0;
    siginfo_t info;
    /* Its pid is not reused until it is reaped: the watch cannot kill another process. */
    while (waitid(P_PID, (id_t)player->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    rv__cancel_unwatch(interrupt, &player->watch);
    while (waitpid(player->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(player->events);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Run a process until an event and a moment longer, then kill it. */
static int play_and_kill(int number, char *store, char event, int64_t after_ms, const char *when,
                         rv_cancel *interrupt)
{
    struct player player;
    if (start_player(&player, number, store, interrupt) < 0)
        return CLI_FAILED;
    if (await_event(&player, event) && rv__cli_pause(interrupt, after_ms)) {
        printf("  %skill -9    %s%s\n", rv__colour(stdout, RED), when, rv__colour(stdout, PLAIN));
        fflush(stdout);
        (void)kill(player.pid, SIGKILL);
    }
    return reap(&player, interrupt) < 0 ? CLI_OK : CLI_FAILED; /* it should have been killed */
}

static int play_to_the_end(int number, char *store, rv_cancel *interrupt)
{
    struct player player;
    if (start_player(&player, number, store, interrupt) < 0)
        return CLI_FAILED;
    return reap(&player, interrupt) == 0 ? CLI_OK : CLI_FAILED;
}

static void title(const char *text)
{
    printf("\n%s%s%s\n", rv__colour(stdout, BOLD), text, rv__colour(stdout, PLAIN));
    fflush(stdout);
}

static void remove_store(const char *folder, const char *store)
{
    static const char *const ends[] = { "", "-wal", "-shm", ".lock" };
    char path[96];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", store, ends[i]);
        (void)unlink(path); /* some do not exist */
    }
    (void)rmdir(folder);
}

int rv__demo_resume(rv_cancel *interrupt)
{
    char folder[] = "/tmp/rival-demo-XXXXXX", store[64];
    if (mkdtemp(folder) == NULL) {
        fprintf(stderr, "rival: %s: %s\n", folder, strerrordesc_np(errno));
        return CLI_FAILED;
    }
    snprintf(store, sizeof store, "%s/demo.db", folder);
    title("A run of six steps; its process is killed in the midst of the third");
    int rc = play_and_kill(1, store, PACKING, STEP_MS, "while it packs", interrupt);
    if (rc == CLI_OK && !rv_cancel_fired(interrupt)) {
        title("A new process on the same file goes on; it is killed while the run sleeps");
        rc = play_and_kill(2, store, PACKED, STEP_MS,
                           "while it dries; for a while, nobody is there", interrupt);
    }
    if (rc == CLI_OK && rv__cli_pause(interrupt, NOBODY_MS)) {
        title("A third one: what was done stays done, and the timer went on");
        rc = play_to_the_end(3, store, interrupt);
    }
    remove_store(folder, store);
    if (!rv_cancel_fired(interrupt))
        return rc;

    rv_error why = { .code = 0 };
    (void)rv_cancel_cause(interrupt, &why);
    printf("\n%s: the process has ended, its store is removed.\n", why.message);
    return CLI_CANCELLED;
}
