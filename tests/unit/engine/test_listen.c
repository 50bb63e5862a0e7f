/* test_listen.c: listeners are told what happens in schedules; agents from code. For src/engine/listen.c and
 * rv_agent() in register.c. */
#include "unit/engine/rig.h"

#include <pthread.h>

#include "base/json.h"
#include "engine/engine.h"
#include "read/read.h"
#include "store/store.h"

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

/* Fails once listeners have heard of the final state. */
static int late(rv_ctx *c)
{
    wait_for("final one:b#0");
    return rv_fail(c, "too late");
}

static int blocks(rv_ctx *c)
{
    while (!rv_ctx_cancelled(c))
        usleep(500);
    return rv_fail(c, "cancelled");
}

static int setup(void **state)
{
    heard.count = 0;
    atomic_store(&failures, 0);
    return rig_setup(state);
}

/* A file with this manifest, registered in place of what was there. */
static void define_again(struct rig *rig, const char *stages)
{
    char path[120];
    snprintf(path, sizeof path, "%s/m.yaml", rig->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "name: m\nparameters: { prompt: hello }\nstages:\n%s", stages);
    fclose(file);
    if (rv_register_file(rig->engine, path, RV_FILE_OPTS(.replace = true), &rig->err) < 0)
        fail_msg("%s", rig->err.message);
}

/* An engine with this manifest; the agents are code. */
static void define(struct rig *rig, const char *stages)
{
    rig_open(rig, NULL);
    assert_int_equal(rv_agent(rig->engine, "asker", asker, NULL, &rig->err), RV_OK);
    assert_int_equal(rv_agent(rig->engine, "reader", reader, NULL, &rig->err), RV_OK);
    define_again(rig, stages);
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

/* It has attempts left, and is not tried again: no attempt is used up. One without is. */
static void what_fails_after_a_final_state_is_not_exhausted(void **state)
{
    struct rig *rig = *state;
    static const char *const types[] = { "dispatch",  "state_completed", "final",
                                         "exhausted", "suspend",         "completed" };
    rig_open(rig, NULL);
    assert_int_equal(rv_agent(rig->engine, "late", late, NULL, &rig->err), RV_OK);
    assert_int_equal(rv_agent(rig->engine, "reader", reader, NULL, &rig->err), RV_OK);
    define_again(rig, "  one:\n    - { name: a, agent_id: late, max_retry: 3, critical: true, "
                      "priority: 1 }\n"
                      "    - { name: c, agent_id: late, priority: 900 }\n"
                      "    - { name: b, agent_id: reader, priority: 2, final: true }\n");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        on(rig, types[i], tells, plain, NULL);
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    wait_for("completed :#-1");
    assert_int_equal(count_of("state_completed one:a#0 bad"), count_of("dispatch one:a#0"));
    assert_int_equal(count_of("exhausted one:a#0"), 0);
    assert_int_equal(count_of("state_completed one:c#0 bad"), 1);
    assert_int_equal(count_of("exhausted one:c#0"), 1);
    assert_int_equal(count_of("suspend one:a#0"), 0);
}

static int shows(const rv_lifecycle *event, void *arg)
{
    struct rv__str message;
    char text[100] = "";
    if (event->error[0] != '\0' && rv__json_get(rv__str(event->error), "message", &message))
        snprintf(text, sizeof text, " %.*s", (int)message.len, message.at);
    (void)arg;
    note("%s %s %s:%s#%d%s%s%s%s", event->type, event->path, event->stage, event->state,
         event->attempt, event->attachment_id[0] != '\0' ? " attached" : "",
         event->to[0] != '\0' ? " to " : "", event->to, text);
    return 0;
}

static void each_type_has_its_fields(void **state)
{
    struct rig *rig = *state;
    static const char *const types[] = { "dispatch", "redirect", "exhausted", "suspend",
                                         "final",    "aborted",  "completed" };
    define(rig, "  one:\n    - { name: a, agent_id: asker, priority: 300, critical: true, "
                "max_retry: 1, on_failure: b }\n"
                "    - { name: b, agent_id: reader, priority: 500, final: true }\n");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        on(rig, types[i], shows, NULL, NULL);
    atomic_store(&failures, 9);
    rig_run(rig, "m", "r1", NULL);
    wait_for("dispatch one:b one:b#0 attached");
    wait_for("final one:b one:b#0 attached");
    wait_for("completed  :#-1"); /* a had not begun, or did not count any more */
    define_again(rig, "  one:\n    - { name: a, agent_id: asker, priority: 300, critical: true, "
                      "max_retry: 1, on_failure: b }\n"
                      "    - { name: b, agent_id: reader, priority: 500 }\n");
    atomic_store(&failures, 9);
    rig_run(rig, "m", "r2", NULL);
    wait_for("redirect one:a one:a#0 attached to b \"not yet\"");
    wait_for("exhausted one:a one:a#1 attached \"not yet\"");
    wait_for(
        "suspend one:a one:a#-1 \"the critical state 'a' failed, and its attempts are used up: "
        "not yet\"");
    assert_int_equal(rv_decide(rig->engine, "r2", RV_ABORT, NULL, &rig->err), RV_OK);
    wait_for("aborted  :#-1 \"the critical state 'a' failed, and its attempts are used up: not "
             "yet\"");
}

static void without_listeners_nobody_follows_the_feed(void **state)
{
    struct rig *rig = *state;
    define(rig, TWO);
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    assert_null(rig->engine->listeners);
    assert_null(rig->engine->notify);
    on(rig, "completed", tells, plain, "x");
    assert_non_null(rig->engine->listeners);
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

/* What a listener's command has kept, as "type path;". */
static void expect_told(struct rig *rig, const char *name, const char *expected)
{
    char path[120], line[1000], text[2000] = "";
    snprintf(path, sizeof path, "%s/%s", rig->folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        struct rv__str type, at = { "", 0 };
        assert_true(rv__json_get(rv__str(line), "type", &type));
        (void)rv__json_get(rv__str(line), "path", &at);
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%.*s %.*s;", (int)type.len, type.at, (int)at.len,
                 at.at);
    }
    fclose(file);
    assert_string_equal(text, expected);
}

#define TELLING                                                                      \
    "listeners:\n  - { on: [state_completed, stage_completed, completed, aborted], " \
    "command: [sh, -c, 'cat >>told; echo >>told'] }\n"

/* A workflow in which the manifest is nested. */
static void define_outer(struct rig *rig)
{
    char path[120];
    snprintf(path, sizeof path, "%s/outer.yaml", rig->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "name: outer\nsteps:\n  - first: { value: 1 }\n"
                  "  - each: { forEach: [1], run: [ { inner: { workflow: m } } ] }\n");
    fclose(file);
    if (rv_register_file(rig->engine, path, NULL, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
}

static void listeners_of_a_nested_manifest_are_told_what_happens_in_it(void **state)
{
    struct rig *rig = *state;
    define(rig, TWO TELLING);
    define_outer(rig);
    rig_run(rig, "outer", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    assert_int_equal(rv_listeners_wait(rig->engine, "r1", 60000, &rig->err), RV_OK);
    expect_told(rig, "told",
                "\"state_completed\" \"each:iter0:node0:inner:node0:one:a\";"
                "\"state_completed\" \"each:iter0:node0:inner:node0:one:b\";"
                "\"stage_completed\" \"each:iter0:node0:inner:node0:one\";"
                "\"completed\" \"each:iter0:node0:inner\";");
}

static void listeners_of_a_nested_manifest_are_told_that_it_was_cancelled(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    assert_int_equal(rv_agent(rig->engine, "blocks", blocks, NULL, &rig->err), RV_OK);
    define_again(rig, "  one:\n    - { name: a, agent_id: blocks }\n" TELLING);
    define_outer(rig);
    on(rig, "dispatch", tells, plain, NULL);
    rig_run(rig, "outer", "r1", NULL);
    wait_for("dispatch one:a#0");
    assert_int_equal(rv_cancel_run(rig->engine, "r1", &rig->err), RV_OK);
    assert_int_equal(rig_wait(rig, "r1"), RV_CANCELLED);
    assert_int_equal(rv_listeners_wait(rig->engine, "r1", 60000, &rig->err), RV_OK);
    expect_told(rig, "told", "\"aborted\" \"each:iter0:node0:inner\";");
}

static struct rv__store_ops ops;
static const struct rv__store_ops *real;
static atomic_int refusals;

/* Reads a run, but not at first. */
static int refuses_run(struct rv__store *store, struct rv__str id, rv__store_visit_run *visit,
                       void *arg, rv_error *err)
{
    return atomic_fetch_sub(&refusals, 1) > 0 ? RV_ESTORE : real->run(store, id, visit, arg, err);
}

static void what_happens_while_the_store_fails_is_told(void **state)
{
    struct rig *rig = *state;
    define(rig, TWO TELLING);
    struct rv__reading *reading = rig->engine->reading;
    atomic_store(&refusals, 3);
    pthread_mutex_lock(&reading->lock);
    real = reading->store->ops;
    ops = *real;
    ops.run = refuses_run;
    reading->store->ops = &ops;
    pthread_mutex_unlock(&reading->lock);
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    assert_int_equal(rv_listeners_wait(rig->engine, "r1", 60000, &rig->err), RV_OK);
    assert_true(atomic_load(&refusals) <= 0);
    expect_told(rig, "told",
                "\"state_completed\" \"one:a\";\"state_completed\" \"one:b\";"
                "\"stage_completed\" \"one\";\"completed\" ;");
}

/* A workflow whose listener keeps what it is told in a file of its name, once there is one named "open NAME". */
static void define_named(struct rig *rig, const char *name)
{
    char path[120];
    snprintf(path, sizeof path, "%s/%s.yaml", rig->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(
        file,
        "name: %s\nstages: { one: [ { name: a, agent_id: asker } ] }\nlisteners:\n"
        "  - { on: [completed], command: [sh, -c, 'test -e open-%s && cat >>%s && echo >>%s'] }\n",
        name, name, name, name);
    fclose(file);
    if (rv_register_file(rig->engine, path, NULL, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
}

static void open_listener(struct rig *rig, const char *name)
{
    char path[120];
    snprintf(path, sizeof path, "%s/open-%s", rig->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void open_three(struct rig *rig)
{
    rig_open(rig, NULL);
    assert_int_equal(rv_agent(rig->engine, "asker", asker, NULL, &rig->err), RV_OK);
    define_named(rig, "ahead");
    define_named(rig, "behind");
    define_named(rig, "last");
}

/* Its mark comes between others that are further. */
static void a_workflow_is_told_what_it_missed_though_others_are_further(void **state)
{
    struct rig *rig = *state;
    static const char *const names[] = { "behind", "ahead", "last" };
    open_listener(rig, "ahead");
    open_listener(rig, "last");
    open_three(rig);
    for (size_t i = 0; i < 3; i++) {
        rig_run(rig, names[i], names[i], NULL);
        assert_int_equal(rig_wait(rig, names[i]), RV_COMPLETED);
    }
    assert_int_equal(rv_listeners_wait(rig->engine, "ahead", 60000, &rig->err), RV_OK);
    assert_int_equal(rv_listeners_wait(rig->engine, "last", 60000, &rig->err), RV_OK);
    rig_close(rig);
    open_listener(rig, "behind");
    open_three(rig);
    assert_int_equal(rv_listeners_wait(rig->engine, "behind", 60000, &rig->err), RV_OK);
    for (size_t i = 0; i < 3; i++)
        expect_told(rig, names[i], "\"completed\" ;");
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
        LISTEN_TEST(what_fails_after_a_final_state_is_not_exhausted),
        LISTEN_TEST(each_type_has_its_fields),
        LISTEN_TEST(without_listeners_nobody_follows_the_feed),
        LISTEN_TEST(a_listener_decides),
        LISTEN_TEST(what_is_undecided_is_told_to_who_comes_later),
        LISTEN_TEST(the_same_id_replaces_and_the_same_function_is_there_once),
        LISTEN_TEST(one_that_fails_is_ignored),
        LISTEN_TEST(agents_of_code_have_their_inputs),
        LISTEN_TEST(listeners_of_a_nested_manifest_are_told_what_happens_in_it),
        LISTEN_TEST(listeners_of_a_nested_manifest_are_told_that_it_was_cancelled),
        LISTEN_TEST(what_happens_while_the_store_fails_is_told),
        LISTEN_TEST(a_workflow_is_told_what_it_missed_though_others_are_further),
        LISTEN_TEST(misuse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
