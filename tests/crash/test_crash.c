/* test_crash.c: kill -9, again and again, over one store; then: nothing lost, nothing done twice that was
 * recorded.
 *
 * The program plays two parts. As the child it runs workflows until it is killed; each step writes its
 * idempotency key to a log as it begins. As the parent it kills children at random moments, and after each
 * death reads the committed feed: a key that was recorded as completed before a life began must not appear
 * in what that life wrote to the log; and what it wrote must be recorded as started, for an attempt is on disk
 * before its code runs. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/random.h"
#include "store/store.h"

enum { WORKERS = 8, IN_FLIGHT = 40 };

/* ---------------------------------------------------------------------------------- child --- */

static int log_fd;

static int step(rv_ctx *c)
{
    char line[256];
    const char *key = rv_ctx_idempotency_key(c); /* run/nonce/actor: facts have no nonce */
    int n = snprintf(line, sizeof line, "%s%s\n", rv_ctx_run_id(c), strrchr(key, '/'));
    if (write(log_fd, line, (size_t)n) != n) /* one write: whole lines, also when killed */
        return rv_fail(c, "cannot write the log");
    usleep((useconds_t)(strlen(rv_ctx_path(c)) % 4) * 300);
    return rv_return(c, "{s:s}", "path", rv_ctx_path(c));
}

static int items(rv_ctx *c)
{
    return rv_return_json(c, "[1,2,3,4]");
}

static int kill_process(rv_ctx *c)
{
    (void)c;
    raise(SIGKILL);
    return 0;
}

static void must(int rc, const rv_error *err)
{
    if (rc >= 0)
        return;
    printf("# %s\n", err->message);
    fflush(stdout);
    _exit(3);
}

/* Under load, deaths come from outside: a step that happens to be a suspect is blamed for some, and is not
 * to be suspended for that. The poison pill is tried with the default. */
static rv_engine *open_engine(const char *store, uint32_t max_crashes)
{
    rv_error err = { 0 };
    rv_engine *engine = NULL;
    must(rv_engine_new(
             RV_ENGINE_OPTS(.store = store, .workers = WORKERS, .max_crashes = max_crashes),
             &engine, &err),
         &err);
    rv_workflow *w = rv_workflow_new("order");
    rv_body *body = rv_workflow_body(w);
    rv_add_step(body, "reserve", step, NULL);
    rv_add_step(body, "pay", step, NULL);
    rv_add_step(rv_add_foreach(body, "pack", items, RV_FOREACH_OPTS(.parallel = true)), "wrap",
                step, NULL);
    rv_add_delay(body, "cool", 3);
    rv_add_step(body, "ship", step, NULL);
    must(rv_register(engine, w, &err), &err);
    rv_workflow_free(w);
    w = rv_workflow_new("poison");
    rv_add_step(rv_workflow_body(w), "before", step, NULL);
    rv_add_step(rv_workflow_body(w), "die", kill_process, NULL);
    must(rv_register(engine, w, &err), &err);
    rv_workflow_free(w);
    return engine;
}

/* Start runs, some at once, until killed. Says on stdin, which is a pipe, that the engine is open. */
static void child_grow(const char *store, int first)
{
    rv_error err = { 0 };
    rv_engine *engine = open_engine(store, 1000000);
    (void)!write(STDIN_FILENO, "o", 1);
    for (int i = first;; i++) {
        char id[32], old[32];
        snprintf(id, sizeof id, "run-%d", i);
        must(rv_run(engine, "order", "{\"n\":1}", RV_RUN_OPTS(.run_id = id), NULL, &err), &err);
        if (i >= first + IN_FLIGHT) {
            rv_outcome *outcome = NULL;
            snprintf(old, sizeof old, "run-%d", i - IN_FLIGHT);
            must(rv_wait(engine, NULL, old, NULL, &outcome, &err), &err);
            rv_outcome_free(outcome);
        }
    }
}

/* Wait until every run has ended or is suspended. */
static int child_finish(const char *store, uint32_t max_crashes)
{
    rv_error err = { 0 };
    rv_engine *engine = open_engine(store, max_crashes);
    for (;;) {
        rv_run_list *list = NULL;
        must(rv_list(engine, RV_QUERY(.status = RV_RUNNING, .limit = 1), &list, &err), &err);
        size_t left = list->count;
        rv_run_list_free(list);
        if (left == 0)
            break;
        usleep(5000);
    }
    rv_engine_free(engine);
    return 0;
}

/* --------------------------------------------------------------------------------- parent --- */

/* A set of keys. */
struct set {
    char **slots;
    size_t size, count;
};

static bool set_add(struct set *set, const char *key) /* false: it was there */
{
    if ((set->count + 1) * 2 > set->size) {
        struct set bigger = { calloc(set->size ? set->size * 2 : 1024, sizeof(char *)),
                              set->size ? set->size * 2 : 1024, 0 };
        for (size_t i = 0; i < set->size; i++)
            if (set->slots[i] != NULL) {
                set_add(&bigger, set->slots[i]);
                free(set->slots[i]);
            }
        free(set->slots);
        *set = bigger;
    }
    size_t at = (size_t)rv__str_hash(RV__HASH_START, rv__str(key)) & (set->size - 1);
    while (set->slots[at] != NULL) {
        if (strcmp(set->slots[at], key) == 0)
            return false;
        at = (at + 1) & (set->size - 1);
    }
    set->slots[at] = strdup(key);
    set->count++;
    return true;
}

static bool set_has(const struct set *set, const char *key)
{
    if (set->size == 0)
        return false;
    size_t at = (size_t)rv__str_hash(RV__HASH_START, rv__str(key)) & (set->size - 1);
    while (set->slots[at] != NULL && strcmp(set->slots[at], key) != 0)
        at = (at + 1) & (set->size - 1);
    return set->slots[at] != NULL;
}

static void set_free(struct set *set)
{
    for (size_t i = 0; i < set->size; i++)
        free(set->slots[i]);
    free(set->slots);
    *set = (struct set){ 0 };
}

struct world {
    char folder[64], store[96], log[96];
    struct set completed, started; /* recorded, as far as the feed was read */
    struct set fresh;              /* executed in the life that ended last */
    uint64_t seq;
    long log_at;
    long executions, again, twice_recorded, broken, unrecorded;
    struct set executed;
    struct rv__random random;
};

static int take_facts(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    struct world *w = arg;
    const char *at = facts.at, *end = facts.at + facts.len;
    w->seq = seq;
    while (at < end) {
        const char *next = rv__json_skip(at, end);
        struct rv__str fact = { at, (size_t)(next - at) }, kind, actor;
        if (rv__json_get(fact, "k", &kind) && rv__json_get(fact, "a", &actor)) {
            char key[300];
            snprintf(key, sizeof key, "%.*s/%.*s", RV__ARG(run), RV__ARG(actor));
            if (rv__str_is(kind, "\"step.started\""))
                (void)set_add(&w->started, key); /* once for each attempt */
            if (rv__str_is(kind, "\"step.completed\""))
                w->twice_recorded += !set_add(&w->completed, key);
        }
        at = next < end ? next + 1 : end;
    }
    return RV_OK;
}

static bool read_feed(struct world *w)
{
    struct rv__store *store = NULL;
    rv_error err = { 0 };
    int rc = rv__store_open(&(struct rv__store_opts){ .path = w->store, .read_only = true }, &store,
                            &err);
    if (rc < 0 && w->seq == 0 &&
        (strstr(err.message, "there is no store") != NULL ||
         strstr(err.message, "there is nothing in the store") != NULL))
        return true; /* the first life was killed before it had made one */
    if (rc == RV_OK)
        rc = rv__store_feed(store, w->seq, SIZE_MAX, take_facts, w, &err);
    rv__store_close(store);
    if (rc < 0)
        printf("# the store cannot be read: %s\n", err.message);
    return rc == RV_OK;
}

/* What the last life executed, against what was recorded before it began. */
static void read_log(struct world *w)
{
    FILE *f = fopen(w->log, "r");
    char line[300];
    if (f == NULL)
        return;
    fseek(f, w->log_at, SEEK_SET);
    while (fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        w->executions++;
        (void)set_add(&w->fresh, line);
        w->again += !set_add(&w->executed, line);
        if (set_has(&w->completed, line)) {
            w->broken++;
            printf("# ran again although recorded: %s\n", line);
        }
    }
    w->log_at = ftell(f);
    fclose(f);
}

/* What the last life executed must be recorded as started. After read_log() and read_feed(). */
static void check_started(struct world *w)
{
    for (size_t i = 0; i < w->fresh.size; i++)
        if (w->fresh.slots[i] != NULL && !set_has(&w->started, w->fresh.slots[i]))
            w->unrecorded++;
    set_free(&w->fresh);
}

static const char *self;

/* `opened`: the child's stdin; -1: as ours. */
static pid_t spawn(struct world *w, const char *part, int number, int opened)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (opened >= 0 && dup2(opened, STDIN_FILENO) < 0)
            _exit(127);
        execl(self, self, part, w->store, w->log, text, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){ .seq = 0 };
    snprintf(w->folder, sizeof w->folder, "/tmp/rival-crash-XXXXXX");
    if (mkdtemp(w->folder) == NULL)
        abort();
    snprintf(w->store, sizeof w->store, "%s/rival.db", w->folder);
    snprintf(w->log, sizeof w->log, "%s/log", w->folder);
    rv__random_init(&w->random, seed);
}

static void world_done(struct world *w)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", w->folder);
    if (system(command) != 0)
        printf("# left behind: %s\n", w->folder);
    set_free(&w->completed);
    set_free(&w->executed);
    set_free(&w->started);
    set_free(&w->fresh);
}

/* Let it live for a while, then kill it: while it opens the store, or, counted from then on, while it works.
 * False: it died by itself with an error. */
static bool live_and_die(struct world *w, const char *part, int number, bool opening, int64_t ms)
{
    int opened[2], status = 0;
    char byte;
    if (pipe2(opened, O_CLOEXEC) != 0)
        abort();
    pid_t pid = spawn(w, part, number, opened[1]);
    close(opened[1]);
    if (!opening)
        (void)!read(opened[0], &byte, 1); /* or its death */
    usleep((useconds_t)ms * 1000);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    close(opened[0]);
    read_log(w);
    bool fine = (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!fine)
        printf("# a child ended with status %d\n", status);
    fine &= read_feed(w);
    check_started(w);
    return fine;
}

static int tests, failures;

static void ok(bool good, const char *what)
{
    tests++;
    failures += !good;
    printf("%s %d - %s\n", good ? "ok" : "not ok", tests, what);
}

static int count_one(void *arg, const struct rv__store_run *row)
{
    (void)row;
    ++*(int *)arg;
    return RV_OK;
}

static int count_runs(struct world *w, const char *status)
{
    struct rv__store *store = NULL;
    struct rv__store_query query = { .status = rv__str(status), .limit = 1000 };
    rv_error err = { 0 };
    int count = 0;
    char cursor_text[300] = "";
    if (rv__store_open(&(struct rv__store_opts){ .path = w->store, .read_only = true }, &store,
                       &err) < 0)
        return -1;
    do {
        struct rv__buf cursor;
        rv__buf_init(&cursor, sizeof cursor_text);
        query.cursor = rv__str(cursor_text[0] ? cursor_text : NULL);
        if (rv__store_list(store, &query, count_one, &count, &cursor, &err) < 0)
            count = INT32_MIN;
        snprintf(cursor_text, sizeof cursor_text, "%.*s", RV__ARG(rv__buf_view(&cursor)));
        rv__buf_done(&cursor);
    } while (cursor_text[0] != '\0' && count >= 0);
    rv__store_close(store);
    return count;
}

static void killed_under_load(int kills)
{
    struct world w;
    world_init(&w, 7);
    bool fine = true;
    for (int i = 0; i < kills && fine; i++)
        fine = live_and_die(&w, "grow", i * 10000, i % 5 == 0,
                            (int64_t)rv__random_below(&w.random, 45) + 1);
    pid_t pid = spawn(&w, "finish", 1000000, -1);
    int status = 0;
    waitpid(pid, &status, 0);
    read_log(&w);
    fine &= read_feed(&w) && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    check_started(&w);
    ok(fine, "every life opened the store, and the last one finished every run");
    ok(count_runs(&w, "failed") == 0 && count_runs(&w, "suspended") == 0 &&
           count_runs(&w, "running") == 0,
       "every run completed: a crash uses up no attempts");
    ok(w.executions >= kills, "a life runs a step or more, on average: the kills hit work");
    ok(w.broken == 0, "no step ran again that was recorded");
    ok(w.unrecorded == 0, "no step ran before its attempt was on disk");
    ok(w.twice_recorded == 0, "no result was recorded twice");
    ok(w.again <= (long)WORKERS * kills, "repeats are bounded by what was in flight");
    printf("# => %d kills: %d runs, %ld attempts, %zu recorded, %ld repeated\n", kills,
           count_runs(&w, "completed"), w.executions, w.completed.count, w.again);
    world_done(&w);
}

static void a_poison_pill_is_suspended(void)
{
    struct world w;
    int status = 0, lives = 0;
    world_init(&w, 8);
    waitpid(spawn(&w, "poison", 0, -1), &status, 0); /* starts it, and dies of it */
    do {
        waitpid(spawn(&w, "finish", 0, -1), &status, 0);
        lives++;
    } while (WIFSIGNALED(status) && lives < 20);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the engine stops dying of it");
    ok(count_runs(&w, "suspended") == 1, "its run is suspended");
    ok(count_runs(&w, "completed") == 5 && count_runs(&w, "running") == 0,
       "the others have completed");
    printf("# => a poison pill cost %d lives\n", lives);
    world_done(&w);
}

static void child_poison(const char *store)
{
    rv_error err = { 0 };
    rv_engine *engine = open_engine(store, 0);
    for (int i = 0; i < 5; i++) {
        char id[32];
        snprintf(id, sizeof id, "good-%d", i);
        must(rv_run(engine, "order", NULL, RV_RUN_OPTS(.run_id = id), NULL, &err), &err);
    }
    must(rv_run(engine, "poison", NULL, RV_RUN_OPTS(.run_id = "bad"), NULL, &err), &err);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    self = "/proc/self/exe";
    if (argc == 5) {
        log_fd = open(argv[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (strcmp(argv[1], "grow") == 0)
            child_grow(argv[2], (int)strtol(argv[4], NULL, 10));
        if (strcmp(argv[1], "poison") == 0)
            child_poison(argv[2]);
        return child_finish(argv[2], (uint32_t)strtol(argv[4], NULL, 10));
    }
    const char *kills = getenv("RIVAL_KILLS");
    killed_under_load(kills != NULL ? (int)strtol(kills, NULL, 10) : 200);
    a_poison_pill_is_suspended();
    printf("1..%d\n", tests);
    return failures > 0;
}
