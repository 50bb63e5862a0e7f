/* test_host.c: steps of C files in real host processes: how they live, and how they die. For
 * src/work/hosted.c, src/work/host.c, src/work/session.c, src/exec/host_process.c, src/define/cfile.c. */
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/rival.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

struct fixture {
    char folder[64];
    char store[96];
    char said[8192]; /* by the compiler */
    rv_engine *engine;
    rv_error err;
};

static char cache[64]; /* one for all tests: each file is compiled once */

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    snprintf(fx->folder, sizeof fx->folder, "/tmp/rival-test-XXXXXX");
    if (mkdtemp(fx->folder) == NULL)
        return -1;
    snprintf(fx->store, sizeof fx->store, "%s/rival.db", fx->folder);
    *state = fx;
    return 0;
}

static int remove_folder(const char *folder)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    rv_engine_free(fx->engine);
    int rc = remove_folder(fx->folder);
    free(fx);
    return rc;
}

static int setup_all(void **state)
{
    (void)state;
    snprintf(cache, sizeof cache, "/tmp/rival-test-XXXXXX");
    if (mkdtemp(cache) == NULL)
        return -1;
    return setenv("XDG_CACHE_HOME", cache, 1);
}

static int teardown_all(void **state)
{
    (void)state;
    return remove_folder(cache);
}

/* What a test does not say is small and quick. */
static void open_with(struct fixture *fx, const rv_engine_opts *said)
{
    rv_engine_opts opts = *said;
    opts.size = sizeof opts;
    opts.store = fx->store;
    opts.workers = opts.workers ? opts.workers : 16;
    opts.max_crashes = 1;
    opts.hosts = opts.hosts ? opts.hosts : 4;
    opts.host_grace_ms = opts.host_grace_ms ? opts.host_grace_ms : 100;
    if (rv_engine_new(&opts, &fx->engine, &fx->err) < 0)
        fail_msg("cannot open: %s", fx->err.message);
}
#define OPEN(fx, ...) open_with(fx, &(rv_engine_opts){ __VA_ARGS__ })

static void keep_said(void *arg, const char *text)
{
    struct fixture *fx = arg;
    snprintf(fx->said, sizeof fx->said, "%s", text);
}

static int try_file(struct fixture *fx, const char *name, bool in_process)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/unit/work/files/%s", TESTS, name);
    return rv_register_file(fx->engine, path,
                            RV_FILE_OPTS(.in_process = in_process, .tell = keep_said, .arg = fx),
                            &fx->err);
}

static void put_file(struct fixture *fx, const char *name)
{
    if (try_file(fx, name, false) < 0)
        fail_msg("cannot register %s: %s\n%s", name, fx->err.message, fx->said);
}

static void start(struct fixture *fx, const char *workflow, const char *run_id, const char *what)
{
    char input[256];
    snprintf(input, sizeof input, "{\"do\":\"%s\",\"folder\":\"%s\"}", what, fx->folder);
    if (rv_run(fx->engine, workflow, input, RV_RUN_OPTS(.run_id = run_id), NULL, &fx->err) < 0)
        fail_msg("cannot start: %s", fx->err.message);
}

static rv_outcome *outcome_of(struct fixture *fx, const char *run_id)
{
    rv_outcome *outcome = NULL;
    if (rv_wait(fx->engine, NULL, run_id, RV_WAIT_OPTS(.timeout_ms = 30000), &outcome, &fx->err) <
        0)
        fail_msg("no outcome: %s", fx->err.message);
    return outcome;
}

static void tick(void)
{
    rv_cancel_wait(NULL, 5);
}

static int status_of(struct fixture *fx, const char *run_id, char *why, size_t size)
{
    rv_run_state *state = NULL;
    if (rv_state(fx->engine, run_id, &state, &fx->err) < 0)
        fail_msg("no state: %s", fx->err.message);
    int status = state->status;
    snprintf(why, size, "%s", state->suspension);
    rv_run_state_free(state);
    return status;
}

/* Until it is suspended; how the attempts ended is in its log, and the last of them in the reason. */
static void assert_suspended(struct fixture *fx, const char *run_id, const char *log)
{
    char why[512];
    rv_log_list *lines = NULL;
    int status;
    for (int i = 0; (status = status_of(fx, run_id, why, sizeof why)) == RV_RUNNING; i++) {
        if (i > 4000)
            fail_msg("%s is not suspended", run_id);
        tick();
    }
    if (status != RV_SUSPENDED || strstr(why, "died") == NULL || strstr(why, log) == NULL)
        fail_msg("status %s, %s", rv_status_name(status), why);
    assert_int_equal(rv_logs(fx->engine, run_id, NULL, &lines, &fx->err), 0);
    assert_int_equal(lines->count, 2); /* max_crashes is 1: the second death is one too many */
    for (size_t i = 0; i < lines->count; i++)
        if (strstr(lines->lines[i].message, log) == NULL)
            fail_msg("the log says: %s", lines->lines[i].message);
    rv_log_list_free(lines);
}

/* The number in a file that a step has left; 0: it is not there. */
static long note(struct fixture *fx, const char *name)
{
    char path[200];
    long n = 0;
    snprintf(path, sizeof path, "%s/%s", fx->folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld", &n) != 1)
        n = 0; /* being written */
    fclose(file);
    return n;
}

static long await_note(struct fixture *fx, const char *name)
{
    long n;
    for (int i = 0; (n = note(fx, name)) == 0; i++) {
        if (i > 4000)
            fail_msg("the step did not leave '%s'", name);
        tick();
    }
    return n;
}

/* Is it there, and not only as a zombie that nobody has asked about? */
static bool lives(long pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    fclose(file);
    return state != 'Z' && state != 'X';
}

static void await_death(long pid)
{
    for (int i = 0; lives(pid); i++) {
        if (i > 4000)
            fail_msg("process %ld still lives", pid);
        tick();
    }
}

/* ---------------------------------------------------------------------------------- living --- */

static void a_file_runs_in_a_process_of_its_own(void **state)
{
    struct fixture *fx = *state;
    int pid = 0, again = 0;
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "acts.c");
    start(fx, "acts", "a", "work");
    rv_outcome *outcome = outcome_of(fx, "a");
    assert_int_equal(outcome->status, RV_COMPLETED);
    assert_int_equal(sscanf(outcome->results, "{\"act\":{\"result\":{\"pid\":%d", &pid), 1);
    assert_int_not_equal(pid, getpid());
    rv_outcome_free(outcome);

    start(fx, "acts", "b", "work"); /* the same process: they are used again */
    outcome = outcome_of(fx, "b");
    assert_int_equal(sscanf(outcome->results, "{\"act\":{\"result\":{\"pid\":%d", &again), 1);
    assert_int_equal(again, pid);
    rv_outcome_free(outcome);
    rv_engine_free(fx->engine);
    fx->engine = NULL;
    assert_false(lives(pid));
}

static void a_file_runs_in_process_if_so_asked(void **state)
{
    struct fixture *fx = *state;
    char expected[128];
    OPEN(fx, .grace_ms = 10000);
    if (try_file(fx, "acts.c", true) < 0)
        fail_msg("%s", fx->err.message);
    start(fx, "acts", "a", "work");
    rv_outcome *outcome = outcome_of(fx, "a");
    snprintf(expected, sizeof expected,
             "{\"act\":{\"result\":{\"pid\":%d},\"state\":{},\"status\":\"completed\"}}", getpid());
    assert_string_equal(outcome->results, expected);
    rv_outcome_free(outcome);
}

/* All kinds of nodes, and what steps see and say, are the same in a host and in process. */
static char *kinds_results(struct fixture *fx, bool in_process)
{
    rv_workflow *inner = rv_workflow_new("inner");
    rv_add_delay(rv_workflow_body(inner), "moment", 0);
    OPEN(fx, .grace_ms = 10000);
    assert_int_equal(rv_register(fx->engine, inner, &fx->err), 0);
    rv_workflow_free(inner);
    if (try_file(fx, "kinds.c", in_process) < 0)
        fail_msg("%s\n%s", fx->err.message, fx->said);
    if (rv_run(fx->engine, "kinds", "{}", RV_RUN_OPTS(.run_id = "k"), NULL, &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    rv_outcome *outcome = outcome_of(fx, "k");
    if (outcome->status != RV_COMPLETED)
        fail_msg("%s: %s", rv_status_name(outcome->status), outcome->error);
    char *results = strdup(strstr(outcome->results, "\"each\""));
    rv_outcome_free(outcome);
    rv_engine_free(fx->engine);
    fx->engine = NULL;
    char store[200];
    snprintf(store, sizeof store, "rm -f '%s'*", fx->store);
    assert_int_equal(system(store), 0);
    return results;
}

/* Texts differ in times. */
static void blank(char *text, const char *after)
{
    for (char *at = text; (at = strstr(at, after)) != NULL;) {
        at += strlen(after);
        size_t digits = strspn(at, "0123456789");
        memmove(at, at + digits, strlen(at + digits) + 1);
    }
}

static void steps_see_the_same_in_a_host(void **state)
{
    struct fixture *fx = *state;
    char *hosted = kinds_results(fx, false), *here = kinds_results(fx, true);
    assert_non_null(strstr(hosted, "{\"item\":8,\"index\":7,\"length\":100000}"));
    assert_non_null(strstr(hosted, "\"last\":\"fails\",\"status\":\"failed\",\"run\":\"k\","
                                   "\"workflow\":\"kinds\",\"step\":\"seen\","
                                   "\"none\":\"absent\",\"context\":1"));
    assert_non_null(strstr(hosted, "\"state\":{\"mine\":{\"a\":[1]}}"));
    const char *const times[] = { "\"startedAt\":", "\"endedAt\":", "\"delayedMs\":" };
    for (size_t i = 0; i < 3; i++) {
        blank(hosted, times[i]);
        blank(here, times[i]);
    }
    assert_string_equal(hosted, here);
    free(hosted);
    free(here);
}

static void errors_say_what_to_do(void **state)
{
    struct fixture *fx = *state;
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "acts.c");
    start(fx, "acts", "a", "fail");
    rv_outcome *outcome = outcome_of(fx, "a");
    assert_int_equal(outcome->status, RV_FAILED);
    assert_non_null(strstr(outcome->error, "attempt 2"));
    rv_outcome_free(outcome);

    start(fx, "acts", "b", "panic"); /* a panic fails the attempt, as it does in process */
    outcome = outcome_of(fx, "b");
    assert_int_equal(outcome->status, RV_FAILED);
    assert_non_null(strstr(outcome->error, "panic: a bug: 42"));
    rv_outcome_free(outcome);
}

/* ----------------------------------------------------------------------------------- dying --- */

/* What the attempt was given that died. */
static void assert_given(struct fixture *fx, const char *run_id)
{
    rv_node_detail *node = NULL;
    char input[300];
    snprintf(input, sizeof input, "{\".input\":{\"do\":\"%s\",\"folder\":\"%s\"}}", run_id,
             fx->folder);
    assert_int_equal(rv_node_get(fx->engine, run_id, "act", &node, &fx->err), RV_OK);
    assert_string_equal(node->attempts[0].outcome, "lost");
    assert_string_equal(node->attempts[0].input, input);
    rv_node_detail_free(node);
}

static void a_host_that_dies_is_to_blame(void **state)
{
    static const struct {
        const char *what, *log;
    } deaths[] = {
        { "segfault", "signal 11 (SIGSEGV" }, { "abort", "signal 6 (SIGABRT" },
        { "exit", "exited with code 3" },     { "garbage", "sent something wrong: not a frame" },
        { "close", "signal 9 (SIGKILL" },     { "raise-SEGV", "signal 11 (SIGSEGV" },
        { "raise-BUS", "signal 7 (SIGBUS" },  { "raise-ILL", "signal 4 (SIGILL" },
        { "raise-FPE", "signal 8 (SIGFPE" },  { "kill-SEGV", "signal 11 (SIGSEGV" },
    };
    struct fixture *fx = *state;
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "acts.c");
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        start(fx, "acts", deaths[i].what, deaths[i].what);
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        assert_suspended(fx, deaths[i].what, deaths[i].log);
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        assert_given(fx, deaths[i].what);
    start(fx, "acts", "fine", "work"); /* and everybody else goes on */
    rv_outcome *outcome = outcome_of(fx, "fine");
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
}

static void an_attempt_that_died_once_is_made_again(void **state)
{
    struct fixture *fx = *state;
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "acts.c");
    start(fx, "acts", "a", "once");
    rv_outcome *outcome = outcome_of(fx, "a");
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
}

/* It is no danger to the engine, so it need not be alone in it. */
static void others_run_beside_one_that_died(void **state)
{
    struct fixture *fx = *state;
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "acts.c");
    start(fx, "acts", "a", "relapse");
    await_note(fx, "pid"); /* of its second attempt, which waits */
    start(fx, "acts", "b", "work");
    rv_outcome *outcome = outcome_of(fx, "b");
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_cancel_run(fx->engine, "a", &fx->err), 0);
}

static void siblings_of_the_dead_live(void **state)
{
    struct fixture *fx = *state;
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "pair.c");
    start(fx, "pair", "a", "");
    rv_outcome *outcome = outcome_of(fx, "a");
    assert_int_equal(outcome->status, RV_COMPLETED);
    if (strstr(outcome->results, "\"lives\":{\"result\":1,") == NULL)
        fail_msg("%s", outcome->results);
    rv_outcome_free(outcome);
}

static void memory_has_a_limit(void **state)
{
#ifdef SANITIZED
    (void)state; /* a sanitizer's shadow is larger than any limit */
#else
    struct fixture *fx = *state;
    OPEN(fx, .host_memory = 256u << 20);
    put_file(fx, "acts.c");
    start(fx, "acts", "a", "eat");
    assert_suspended(fx, "a", "after memory was refused: its limit is 256 MB");
#endif
}

static void an_endless_step_is_killed_at_its_time_out(void **state)
{
    struct fixture *fx = *state;
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "limited.c");
    start(fx, "limited", "a", "loop");
    rv_outcome *outcome = outcome_of(fx, "a");
    assert_int_equal(outcome->status, RV_FAILED);
    assert_non_null(strstr(outcome->error, "1500"));
    rv_outcome_free(outcome);
    await_death(note(fx, "pid"));
    start(fx, "limited", "b", "work");
    outcome = outcome_of(fx, "b");
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
}

static void waiting_for_a_host_is_not_the_attempts_time(void **state)
{
    struct fixture *fx = *state;
    char id[8];
    OPEN(fx, .hosts = 1);
    put_file(fx, "limited.c");
    for (int i = 0; i < 100; i++) { /* 2 s of them one after the other, and each may take 1.5 s */
        snprintf(id, sizeof id, "r%d", i);
        start(fx, "limited", id, "nap");
    }
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "r%d", i);
        rv_outcome *outcome = outcome_of(fx, id);
        assert_int_equal(outcome->status, RV_COMPLETED);
        rv_outcome_free(outcome);
    }
}

static int quick(rv_ctx *c)
{
    return rv_return(c, "i", 1);
}

/* Hosts have places of their own: work that fills them, and work that waits for one, takes no thread. */
static void full_hosts_leave_the_threads_alone(void **state)
{
    struct fixture *fx = *state;
    char *why = NULL;
    OPEN(fx, .workers = 1, .hosts = 1, .host_grace_ms = 20000);
    put_file(fx, "acts.c");
    start(fx, "acts", "a", "poll");
    (void)await_note(fx, "pid");
    start(fx, "acts", "b", "poll");
    rv_workflow *w = rv_workflow_new("here");
    rv_add_step(rv_workflow_body(w), "quick", quick, NULL);
    if (rv_register(fx->engine, w, &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    rv_workflow_free(w);
    start(fx, "here", "c", "");
    rv_outcome *outcome = outcome_of(fx, "c");
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_why(fx->engine, "b", &why, &fx->err), 0);
    if (strstr(why, "\"reason\":\"place\"") == NULL ||
        strstr(why, "\"executor\":\"host\"") == NULL ||
        strstr(why, "\"limit\":\"hosts\",\"limitSize\":1") == NULL)
        fail_msg("it waits for something else: %s", why);
    rv_free(why);
    assert_int_equal(rv_cancel_run(fx->engine, "b", &fx->err), 0);
    assert_int_equal(rv_cancel_run(fx->engine, "a", &fx->err), 0);
    (void)await_note(fx, "stopped");
}

static int threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *e; (e = readdir(tasks)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* Hosts are on the loop of connections: twelve that are busy take no more threads than one. */
static void a_busy_host_takes_no_thread(void **state)
{
    enum { HOSTS = 12, ROOM = 4 }; /* room: threads that the engine may make for something else */
    struct fixture *fx = *state;
    char id[8];
    OPEN(fx, .hosts = HOSTS, .host_grace_ms = 20000);
    put_file(fx, "acts.c");
    start(fx, "acts", "r0", "stay");
    (void)await_note(fx, "r0");
    int before = threads();
    for (int i = 1; i < HOSTS; i++) {
        snprintf(id, sizeof id, "r%d", i);
        start(fx, "acts", id, "stay");
        (void)await_note(fx, id);
    }
    assert_in_range(threads(), 1, before + ROOM);
    for (int i = 0; i < HOSTS; i++) {
        snprintf(id, sizeof id, "r%d", i);
        assert_int_equal(rv_cancel_run(fx->engine, id, &fx->err), 0);
    }
}

static void cancel_in(struct fixture *fx, const char *what)
{
    put_file(fx, "acts.c");
    start(fx, "acts", what, what);
    long pid = await_note(fx, "pid");
    assert_int_equal(rv_cancel_run(fx->engine, what, &fx->err), 0);
    assert_int_equal(await_note(fx, "stopped"), pid);
    rv_outcome *outcome = outcome_of(fx, what);
    assert_int_equal(outcome->status, RV_CANCELLED);
    rv_outcome_free(outcome);
    assert_true(lives(pid)); /* it did as it was told, and is used again */
}

static void a_step_that_polls_is_told_to_stop(void **state)
{
    struct fixture *fx = *state;
    OPEN(fx, .host_grace_ms = 20000);
    cancel_in(fx, "poll");
}

static void a_token_that_was_handed_on_fires(void **state)
{
    struct fixture *fx = *state;
    OPEN(fx, .host_grace_ms = 20000);
    cancel_in(fx, "wait");
}

static void log_lines_come_while_it_runs(void **state)
{
    struct fixture *fx = *state;
    rv_log_list *lines = NULL;
    size_t count = 0;
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "acts.c");
    start(fx, "acts", "a", "wait");
    for (int i = 0; count == 0; i++) {
        assert_int_equal(rv_logs(fx->engine, "a", NULL, &lines, &fx->err), 0);
        count = lines->count;
        if (count > 0)
            assert_string_equal(lines->lines[0].message, "waiting");
        rv_log_list_free(lines);
        if (i > 4000)
            fail_msg("no line came");
        tick();
    }
}

/* Line by line, in order, with what its children print; in the log of the step that printed it. */
static void what_a_step_prints_is_in_its_log(void **state)
{
    static const char *const first[] = { "first", "second", NULL, "third", "0123456789" };
    struct fixture *fx = *state;
    rv_log_list *lines = NULL;
    OPEN(fx, .grace_ms = 10000, .hosts = 1);
    put_file(fx, "acts.c");
    for (int i = 0; i < 2; i++) { /* with a host of its own, and one that has closed its output */
        const char *id = i == 0 ? "a" : "b";
        start(fx, "acts", id, i == 0 ? "print" : "nothing");
        rv_outcome *outcome = outcome_of(fx, id);
        assert_int_equal(outcome->status, RV_COMPLETED);
        rv_outcome_free(outcome);
    }
    assert_int_equal(rv_logs(fx->engine, "a", NULL, &lines, &fx->err), 0);
    assert_true(lines->count >= 100);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        assert_string_equal(lines->lines[i].path, "act");
        assert_int_equal(lines->lines[i].level, RV_INFO);
        if (first[i] != NULL) /* the other is no text: it is as it can be shown */
            assert_string_equal(lines->lines[i].message, first[i]);
    }
    rv_log_list_free(lines);
    assert_int_equal(rv_logs(fx->engine, "b", NULL, &lines, &fx->err), 0);
    assert_int_equal(lines->count, 0);
    rv_log_list_free(lines);
}

static void what_it_printed_before_it_died_is_there(void **state)
{
    struct fixture *fx = *state;
    rv_log_list *lines = NULL;
    char why[256];
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "acts.c");
    start(fx, "acts", "a", "print and die");
    while (status_of(fx, "a", why, sizeof why) == RV_RUNNING)
        tick();
    assert_int_equal(rv_logs(fx->engine, "a", NULL, &lines, &fx->err), 0);
    assert_true(lines->count >= 100);
    assert_string_equal(lines->lines[0].message, "first");
    rv_log_list_free(lines);
}

/* A clean end blames nobody: the next engine attempts it again. */
static void closing_ends_what_runs_in_hosts(void **state)
{
    struct fixture *fx = *state;
    char why[256];
    OPEN(fx, .grace_ms = 50);
    put_file(fx, "acts.c");
    start(fx, "acts", "a", "loop");
    long pid = await_note(fx, "pid");
    rv_engine_free(fx->engine);
    fx->engine = NULL;
    assert_false(lives(pid));
    OPEN(fx, .grace_ms = 10000);
    assert_int_equal(status_of(fx, "a", why, sizeof why), RV_RUNNING);
    assert_int_equal(rv_cancel_run(fx->engine, "a", &fx->err), 0);
}

/* An engine in a process of its own, with a step in a host, is killed. */
static void kill_an_engine(struct fixture *fx, const char *caller, bool first)
{
    char path[128];
    snprintf(path, sizeof path, "%s/pid", fx->folder);
    (void)unlink(path);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail */
        OPEN(fx, .grace_ms = 10000);
        put_file(fx, "acts.c");
        if (caller != NULL)
            put_file(fx, caller);
        if (first)
            start(fx, caller != NULL ? "calls" : "acts", "a", "loop");
        for (;;)
            pause();
    }
    long pid = await_note(fx, "pid");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    await_death(pid);
}

static void no_host_outlives_a_killed_engine(void **state)
{
    kill_an_engine(*state, NULL, true);
}

/* It cannot have been the engine's death: max_crashes is 1, and that would be three. */
static void a_step_in_a_host_is_not_blamed_for_the_engine(void **state)
{
    struct fixture *fx = *state;
    char why[256];
    for (int i = 0; i < 3; i++)
        kill_an_engine(fx, NULL, i == 0);
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "acts.c");
    assert_int_equal(status_of(fx, "a", why, sizeof why), RV_RUNNING);
    rv_node_list *nodes = NULL;
    assert_int_equal(rv_nodes(fx->engine, "a", NULL, &nodes, &fx->err), 0);
    assert_int_equal(nodes->nodes[0].crashes, 3); /* lost it was, each time */
    rv_node_list_free(nodes);
    assert_int_equal(rv_cancel_run(fx->engine, "a", &fx->err), 0);
}

/* Nor is one that a YAML file calls: where it ran is on record. Its host's death it is to blame for. */
static void a_call_of_a_function_in_a_host_is_not_blamed_for_the_engine(void **state)
{
    struct fixture *fx = *state;
    char why[256];
    for (int i = 0; i < 3; i++)
        kill_an_engine(fx, "calls.yaml", i == 0);
    OPEN(fx, .grace_ms = 10000);
    put_file(fx, "acts.c");
    put_file(fx, "calls.yaml");
    assert_int_equal(status_of(fx, "a", why, sizeof why), RV_RUNNING);
    assert_int_equal(rv_cancel_run(fx->engine, "a", &fx->err), 0);
    start(fx, "calls", "b", "segfault");
    assert_suspended(fx, "b", "SIGSEGV");
}

/* --------------------------------------------------------------------------------- loading --- */

static void compile_errors_are_the_compilers(void **state)
{
    struct fixture *fx = *state;
    OPEN(fx, .grace_ms = 10000);
    assert_int_equal(try_file(fx, "broken.c", false), RV_EINVAL);
    if (strstr(fx->err.message, "broken.c:4:30: ") == NULL ||
        strstr(fx->err.message, "undeclared_thing") == NULL)
        fail_msg("%s", fx->err.message);
    assert_non_null(strstr(fx->said, "broken.c:4:30: error:")); /* as it printed it, */
    assert_non_null(strstr(fx->said, "    4 |"));               /* with the line */
    assert_int_equal(try_file(fx, "empty.c", false), RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "empty.c: "));
    assert_non_null(strstr(fx->err.message, "RV_WORKFLOW"));
    assert_int_equal(try_file(fx, "none.c", false), RV_EINVAL);
}

static void without_a_compiler_it_says_so(void **state)
{
    struct fixture *fx = *state;
    OPEN(fx, .grace_ms = 10000);
    setenv("CC", "/nowhere/cc", 1);
    int rc = try_file(fx, "acts.c", false);
    unsetenv("CC");
    assert_int_equal(rc, RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "/nowhere/cc"));
}

static void without_a_host_program_it_says_so(void **state)
{
    struct fixture *fx = *state;
    char *before = strdup(getenv("RIVAL_HOST"));
    OPEN(fx, .grace_ms = 10000);
    setenv("RIVAL_HOST", "/nowhere/rival", 1);
    int rc = try_file(fx, "acts.c", false);
    setenv("RIVAL_HOST", before, 1);
    free(before);
    assert_int_equal(rc, RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "/nowhere/rival"));
}

static int objects(void)
{
    char path[128];
    int count = 0;
    struct dirent *entry;
    snprintf(path, sizeof path, "%s/rival", cache);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static int write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    return file == NULL || fputs(text, file) < 0 || fclose(file) != 0 ? -1 : 0;
}

/* Its own text, what it includes, and the flags: each makes another object; nothing else does. */
static void a_file_is_compiled_again_when_it_changes(void **state)
{
    struct fixture *fx = *state;
    char file[128], header[128];
    snprintf(file, sizeof file, "%s/own.c", fx->folder);
    snprintf(header, sizeof header, "%s/own.h", fx->folder);
    assert_int_equal(write_file(header, "#define N 1\n"), 0);
    assert_int_equal(write_file(file,
                                "#include <rival/rival.h>\n#include \"own.h\"\n"
                                "static int one(rv_ctx *c) { return rv_return(c, \"i\", N); }\n"
                                "RV_WORKFLOW(\"own\", .steps = RV_STEPS(RV_STEP(one)))\n"),
                     0);
    OPEN(fx, .grace_ms = 10000);
    int before = objects();
    for (int i = 0; i < 2; i++)
        assert_int_equal(rv_register_file(fx->engine, file, NULL, &fx->err), 1);
    assert_int_equal(objects(), before + 1);
    assert_int_equal(write_file(header, "#define N 2\n"), 0);
    assert_int_equal(rv_register_file(fx->engine, file, NULL, &fx->err), 1);
    assert_int_equal(objects(), before + 2);
    if (rv_run(fx->engine, "own", NULL, RV_RUN_OPTS(.run_id = "a"), NULL, &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    rv_outcome *outcome = outcome_of(fx, "a");
    assert_non_null(strstr(outcome->results, "\"result\":2")); /* the new one */
    rv_outcome_free(outcome);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_runs_in_a_process_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_runs_in_process_if_so_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(steps_see_the_same_in_a_host, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_say_what_to_do, setup, teardown),
        cmocka_unit_test_setup_teardown(a_host_that_dies_is_to_blame, setup, teardown),
        cmocka_unit_test_setup_teardown(an_attempt_that_died_once_is_made_again, setup, teardown),
        cmocka_unit_test_setup_teardown(others_run_beside_one_that_died, setup, teardown),
        cmocka_unit_test_setup_teardown(siblings_of_the_dead_live, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_has_a_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(an_endless_step_is_killed_at_its_time_out, setup, teardown),
        cmocka_unit_test_setup_teardown(waiting_for_a_host_is_not_the_attempts_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(full_hosts_leave_the_threads_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_busy_host_takes_no_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_that_polls_is_told_to_stop, setup, teardown),
        cmocka_unit_test_setup_teardown(a_token_that_was_handed_on_fires, setup, teardown),
        cmocka_unit_test_setup_teardown(log_lines_come_while_it_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_step_prints_is_in_its_log, setup, teardown),
        cmocka_unit_test_setup_teardown(what_it_printed_before_it_died_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_ends_what_runs_in_hosts, setup, teardown),
        cmocka_unit_test_setup_teardown(no_host_outlives_a_killed_engine, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_of_a_function_in_a_host_is_not_blamed_for_the_engine,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_in_a_host_is_not_blamed_for_the_engine, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(compile_errors_are_the_compilers, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_compiler_it_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_host_program_it_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_is_compiled_again_when_it_changes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
