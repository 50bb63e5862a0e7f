/* test_listen.c: listeners are told what happens in schedules; agents from code. For src/engine/listen.c and
 * rv_agent() in register.c. */
#include "unit/engine/rig.h"

#include <pthread.h>

enum { HEARD = 200 };

static struct {
    pthread_mutex_t lock;
    char text[HEARD][200];
    size_t count;
} heard = { .lock = PTHREAD_MUTEX_INITIALIZER };
static atomic_int failures;
static char plain[] = "", first[] = "first ", second[] = "second ", once[] = "once ";

static void note(const char *fmt, ...) RV_PRINTF(1, 2);
static void note(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    pthread_mutex_lock(&heard.lock);
    if (heard.count < HEARD)
        vsnprintf(heard.text[heard.count++], sizeof heard.text[0], fmt, args);
    pthread_mutex_unlock(&heard.lock);
    va_end(args);
}

static size_t count_of(const char *text)
{
    size_t count = 0;
    pthread_mutex_lock(&heard.lock);
    for (size_t i = 0; i < heard.count; i++)
        count += strcmp(heard.text[i], text) == 0;
    pthread_mutex_unlock(&heard.lock);
    return count;
}

static void wait_for(const char *text)
{
    for (int i = 0; i < 60000; i++) {
        if (count_of(text) > 0)
            return;
        usleep(1000);
    }
    for (size_t i = 0; i < heard.count; i++)
        print_message("heard: %s\n", heard.text[i]);
    fail_msg("nobody heard '%s'", text);
}

static int tells(const rv_lifecycle *event, void *arg)
{
    note("%s%s %s:%s#%d%s", (const char *)arg, event->type, event->stage, event->state,
         event->attempt,
         strcmp(event->type, "state_completed") != 0 ? ""
         : event->succeed                            ? " good"
                                                     : " bad");
    return 0;
}

static int decides(const rv_lifecycle *event, void *arg)
{
    note("suspend %s %s:%s", event->path, event->stage, event->state);
    return rv_decide(event->engine, event->run_id, *(int *)arg, RV_DECIDE_OPTS(.path = event->path),
                     NULL);
}

static int fails(const rv_lifecycle *event, void *arg)
{
    (void)event;
    (void)arg;
    return -1;
}

static int panics(const rv_lifecycle *event, void *arg)
{
    (void)event;
    (void)arg;
    rv_panic("it cannot bear it");
}

static int leaves(const rv_lifecycle *event, void *arg)
{
    note("leaves");
    (void)arg;
    return rv_off(event->engine, "leaves", NULL);
}

static int asker(rv_ctx *c)
{
    if (atomic_fetch_sub(&failures, 1) > 0)
        return rv_fail(c, "not yet");
    return rv_return(c, "{s:s,s:i}", "said", rv_str(c, ".parameters.prompt"), "attempt",
                     (int)rv_int(c, ".state.attempt", -1));
}

static int reader(rv_ctx *c)
{
    return rv_return_json(c, rv_json(c, ".inputs"));
}

static int setup(void **state)
{
    heard.count = 0;
    atomic_store(&failures, 0);
    return rig_setup(state);
}

/* A file with this manifest, registered; the agents are code. */
static void define(struct rig *rig, const char *stages)
{
    char path[120];
    rig_open(rig, NULL);
    assert_int_equal(rv_agent(rig->engine, "asker", asker, NULL, &rig->err), RV_OK);
    assert_int_equal(rv_agent(rig->engine, "reader", reader, NULL, &rig->err), RV_OK);
    snprintf(path, sizeof path, "%s/m.yaml", rig->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "name: m\nparameters: { prompt: hello }\nstages:\n%s", stages);
    fclose(file);
    if (rv_register_file(rig->engine, path, NULL, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
}

#define TWO                                                                     \
    "  one:\n    - { name: a, agent_id: asker, priority: 300, max_retry: 1 }\n" \
    "    - { name: b, agent_id: reader, depends_on: { in: { state: a } } }\n"
#define CRITICAL "  one:\n    - { name: a, agent_id: asker, critical: true }\n"

static void on(struct rig *rig, const char *type, rv_listener_fn fn, void *arg, const char *id)
{
    if (rv_on(rig->engine, type, fn, arg, id, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
}

static void each_event_is_told(void **state)
{
    struct rig *rig = *state;
    static const char *const types[] = { "dispatch",  "state_completed", "stage_completed",
                                         "exhausted", "completed",       "aborted" };
    define(rig, TWO);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        on(rig, types[i], tells, plain, NULL);
    atomic_store(&failures, 1);
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    wait_for("completed :#-1");
    assert_int_equal(count_of("dispatch one:a#0"), 1);
    assert_int_equal(count_of("dispatch one:a#1"), 1);
    assert_int_equal(count_of("state_completed one:a#1 good"), 1);
    assert_int_equal(count_of("state_completed one:a#0 bad"), 0); /* it was tried again */
    assert_int_equal(count_of("state_completed one:b#0 good"), 1);
    assert_int_equal(count_of("stage_completed one:#-1"), 1);
    assert_int_equal(count_of("aborted :#-1"), 0);
}

static void a_listener_decides(void **state)
{
    struct rig *rig = *state;
    int skip = RV_SKIP;
    define(rig, CRITICAL);
    on(rig, "suspend", decides, &skip, "decides");
    atomic_store(&failures, 9);
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    assert_int_equal(count_of("suspend one:a one:a"), 1);
}

static void what_is_undecided_is_told_to_who_comes_later(void **state)
{
    struct rig *rig = *state;
    int skip = RV_SKIP;
    define(rig, CRITICAL);
    on(rig, "exhausted", tells, plain, NULL);
    atomic_store(&failures, 9);
    rig_run(rig, "m", "r1", NULL);
    wait_for("exhausted one:a#0");
    rig_close(rig);
    define(rig, CRITICAL);
    on(rig, "suspend", decides, &skip, NULL);
    wait_for("suspend one:a one:a");
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
}

static void the_same_id_replaces_and_the_same_function_is_there_once(void **state)
{
    struct rig *rig = *state;
    define(rig, TWO);
    on(rig, "completed", tells, first, "x");
    on(rig, "completed", tells, second, "x");
    on(rig, "completed", tells, once, NULL);
    on(rig, "completed", tells, once, NULL);
    rig_run(rig, "m", "r1", NULL);
    wait_for("once completed :#-1");
    assert_int_equal(rv_off(rig->engine, "x", &rig->err), RV_OK);
    assert_int_equal(count_of("first completed :#-1"), 0);
    assert_int_equal(count_of("second completed :#-1"), 1);
    assert_int_equal(rv_off(rig->engine, "x", &rig->err), RV_ENOTFOUND);
    rig_run(rig, "m", "r2", NULL);
    for (int i = 0; i < 60000 && count_of("once completed :#-1") < 2; i++)
        usleep(1000);
    assert_int_equal(count_of("once completed :#-1"), 2);
    assert_int_equal(count_of("second completed :#-1"), 1);
}

static void one_that_fails_is_ignored(void **state)
{
    struct rig *rig = *state;
    define(rig, TWO);
    on(rig, "dispatch", fails, NULL, "fails");
    on(rig, "dispatch", panics, NULL, "panics");
    on(rig, "completed", leaves, NULL, "leaves");
    on(rig, "completed", tells, plain, NULL);
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    wait_for("completed :#-1");
    rig_run(rig, "m", "r2", NULL);
    for (int i = 0; i < 60000 && count_of("completed :#-1") < 2; i++)
        usleep(1000);
    assert_int_equal(count_of("completed :#-1"), 2);
    assert_int_equal(count_of("leaves"), 1);
}

static void agents_of_code_have_their_inputs(void **state)
{
    struct rig *rig = *state;
    rv_run_state *run = NULL;
    define(rig, TWO);
    assert_int_equal(rv_agent(rig->engine, "asker", asker, NULL, &rig->err), RV_EEXIST);
    assert_int_equal(
        rv_agent(rig->engine, "asker", asker, RV_AGENT_OPTS(.replace = true), &rig->err), RV_OK);
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    assert_int_equal(rv_state(rig->engine, "r1", &run, &rig->err), RV_OK);
    if (strstr(run->results, "{\"in\":{\"said\":\"hello\",\"attempt\":0}}") == NULL)
        fail_msg("%s", run->results);
    rv_run_state_free(run);
}

static void misuse_is_refused(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    assert_int_equal(rv_on(rig->engine, "done", tells, plain, NULL, &rig->err), RV_EINVAL);
    assert_non_null(strstr(rig->err.message, "state_completed"));
    assert_int_equal(rv_on(rig->engine, "final", NULL, plain, NULL, &rig->err), RV_EINVAL);
    assert_int_equal(rv_on(NULL, "final", tells, plain, NULL, &rig->err), RV_EINVAL);
    assert_int_equal(rv_on(rig->engine, "final", tells, plain, "", &rig->err), RV_EINVAL);
    assert_int_equal(rv_off(rig->engine, "nobody", &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_off(rig->engine, NULL, &rig->err), RV_EINVAL);
    assert_int_equal(rv_agent(rig->engine, "", asker, NULL, &rig->err), RV_EINVAL);
    assert_int_equal(rv_agent(rig->engine, "a/b", asker, NULL, &rig->err), RV_EINVAL);
    assert_int_equal(rv_agent(rig->engine, "a", NULL, NULL, &rig->err), RV_EINVAL);
}

#define LISTEN_TEST(test) cmocka_unit_test_setup_teardown(test, setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LISTEN_TEST(each_event_is_told),
        LISTEN_TEST(a_listener_decides),
        LISTEN_TEST(what_is_undecided_is_told_to_who_comes_later),
        LISTEN_TEST(the_same_id_replaces_and_the_same_function_is_there_once),
        LISTEN_TEST(one_that_fails_is_ignored),
        LISTEN_TEST(agents_of_code_have_their_inputs),
        LISTEN_TEST(misuse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
