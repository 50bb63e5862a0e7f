/* test_workers.c: workers at the socket beside the store, played by the test. For src/work/workers.c and
 * src/engine/workers.c. */
#include "unit/engine/rig.h"

#include <signal.h>
#include <sys/wait.h>

#include "engine/engine.h"
#include "unit/peer.h"
#include "work/session.h"

enum { PEERS = 4 };

struct fixture {
    struct rig *rig;
    struct peer peers[PEERS];
    char session[64];
    pid_t children[2];
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    void *rig = NULL;
    if (fx == NULL || rig_setup(&rig) < 0)
        return -1;
    fx->rig = rig;
    for (int i = 0; i < PEERS; i++)
        peer_init(&fx->peers[i]);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    void *rig = fx->rig;
    for (int i = 0; i < PEERS; i++) {
        peer_hang_up(&fx->peers[i]);
        rv__frames_done(&fx->peers[i].frames);
    }
    for (int i = 0; i < 2; i++)
        if (fx->children[i] > 0) {
            kill(fx->children[i], SIGKILL);
            waitpid(fx->children[i], NULL, 0);
        }
    free(fx);
    return rig_teardown(&rig);
}

#define PLAN(name, steps)                                                                  \
    "{\"type\":\"register\",\"id\":\"r\",\"module\":\"00000000000000ab\",\"workflows\":[{" \
    "\"plan\":{"                                                                           \
    "\"name\":\"" name "\",\"steps\":[" steps "]},\"functions\":[\"f\",\"g\",\"is\"]}]}"
#define STEP(alias, fn) \
    "{\"type\":\"step\",\"kind\":\"function\",\"alias\":\"" alias "\",\"name\":\"" fn "\"}"

static void open_engine(struct fixture *fx)
{
    rig_open(fx->rig, RV_ENGINE_OPTS(.control = true, .workers = 4));
}

/* Connected, with so many credits. */
static struct peer *join(struct fixture *fx, int n, int credits)
{
    struct peer *peer = &fx->peers[n];
    char hello[128];
    peer_dial(peer, fx->rig->store);
    snprintf(hello, sizeof hello,
             "{\"type\":\"hello\",\"protocol\":2,\"role\":\"worker\",\"credits\":%d}", credits);
    peer_send(peer, hello);
    peer_expect(peer, "\"graceMs\":5000");
    peer_member(peer, "session", fx->session, sizeof fx->session);
    return peer;
}

static struct peer *offer(struct fixture *fx, int n, int credits, const char *registration)
{
    struct peer *peer = join(fx, n, credits);
    peer_send(peer, registration);
    peer_expect(peer, "{\"type\":\"result\",\"id\":\"r\",\"workflows\":[{\"name\":");
    return peer;
}

static void start(struct fixture *fx, const char *workflow, const char *run_id, const char *input)
{
    rig_run(fx->rig, workflow, run_id, input);
}

/* The next `invoke`: its id. */
static const char *invoked(struct peer *peer, const char *part, char id[64])
{
    peer_expect_besides(peer, "\"taken\"", "\"type\":\"invoke\"");
    if (strstr(peer->text, part) == NULL)
        fail_msg("got '%s', expected '%s' in it", peer->text, part);
    return peer_member(peer, "id", id, 64);
}

static void answer(struct peer *peer, const char *id, const char *result)
{
    char frame[4200];
    snprintf(frame, sizeof frame, "{\"type\":\"result\",\"id\":\"%s\",\"result\":%s}", id, result);
    peer_send(peer, frame);
}

static void ends(struct fixture *fx, const char *run_id, int status, const char *part)
{
    rv_outcome *outcome = NULL;
    if (rv_wait(fx->rig->engine, NULL, run_id, RV_WAIT_OPTS(.timeout_ms = 20000), &outcome,
                &fx->rig->err) < 0)
        fail_msg("%s", fx->rig->err.message);
    assert_int_equal(outcome->status, status);
    if (strstr(outcome->results, part) == NULL && strstr(outcome->error, part) == NULL)
        fail_msg("'%s' is neither in %s nor in %s", part, outcome->results, outcome->error);
    rv_outcome_free(outcome);
}

static void waits_for(struct fixture *fx, const char *run_id, const char *part)
{
    for (int tries = 0;; tries++) {
        char *why = NULL;
        if (rv_why(fx->rig->engine, run_id, &why, &fx->rig->err) < 0)
            fail_msg("%s", fx->rig->err.message);
        bool found = strstr(why, part) != NULL;
        if (!found && tries == 500)
            fail_msg("why says %s, not %s", why, part);
        rv_free(why);
        if (found)
            return;
        usleep(10000);
    }
}

/* ---------------------------------------------------------------------------------- tests --- */

static void a_worker_does_the_steps_of_its_workflow(void **state)
{
    struct fixture *fx = *state;
    char id[64];
    open_engine(fx);
    struct peer *w = offer(fx, 0, 4, PLAN("w", STEP("a", "f") "," STEP("b", "g")));
    start(fx, "w", "r1", "{\"n\":7}");
    invoked(w, "\"function\":\"f\"", id);
    assert_non_null(strstr(w->text, "\"workflow\":\"w\",\"version\":\""));
    assert_non_null(strstr(w->text, "\"input\":{\"n\":7}"));
    assert_non_null(strstr(w->text, "\"run\":{\"runId\":\"r1\",\"workflowName\":\"w\""));
    char frame[256];
    snprintf(frame, sizeof frame, "{\"type\":\"log\",\"id\":\"%s\",\"message\":\"at it\"}", id);
    peer_send(w, frame);
    answer(w, id, "{\"x\":1}");
    invoked(w, "\"function\":\"g\"", id);
    snprintf(frame, sizeof frame,
             "{\"type\":\"get\",\"id\":\"%s\",\"part\":\"step\",\"alias\":\"a\",\"seq\":3}", id);
    peer_send(w, frame);
    peer_expect(w, "\"seq\":3,\"alias\":\"a\",\"status\":\"completed\",\"json\":{\"x\":1}");
    snprintf(frame, sizeof frame, "{\"type\":\"get\",\"id\":\"%s\",\"part\":\"steps\"}", id);
    peer_send(w, frame); /* which is read beside the loop */
    peer_expect(w, "\"json\":{\"a\":{\"result\":{\"x\":1}");
    snprintf(frame, sizeof frame,
             "{\"type\":\"get\",\"id\":\"%s\",\"part\":\"step\",\"alias\":\"zz\"}", id);
    peer_send(w, frame);
    const char *none = peer_expect(w, "\"type\":\"value\"");
    assert_null(strstr(none, "json"));
    snprintf(frame, sizeof frame,
             "{\"type\":\"error\",\"id\":\"%s\",\"behavior\":\"continue\",\"error\":{\"message\":"
             "\"no\",\"stack\":\"at x.ts:1\"},\"state\":{\"k\":1}}",
             id);
    peer_send(w, frame);
    ends(fx, "r1", RV_COMPLETED, "\"stack\":\"at x.ts:1\"");
    peer_expect(w, "\"taken\"");
}

static void without_a_worker_or_a_credit_nothing_is_begun(void **state)
{
    struct fixture *fx = *state;
    char id[64];
    open_engine(fx);
    struct peer *w = offer(fx, 0, 0, PLAN("w", STEP("a", "f")));
    start(fx, "w", "r1", NULL);
    waits_for(fx, "r1", "\"reason\":\"place\"");
    assert_null(peer_next(w, 100));
    peer_send(w, "{\"type\":\"credits\",\"credits\":1}");
    invoked(w, "\"function\":\"f\"", id);
    start(fx, "w", "r2", NULL);
    waits_for(fx, "r2", "\"reason\":\"place\"");
    assert_null(peer_next(w, 100)); /* one at a time */
    answer(w, id, "1");
    invoked(w, "\"runId\":\"r2\"", id);
    answer(w, id, "2");
    ends(fx, "r2", RV_COMPLETED, "\"result\":2");
    peer_send(w, "{\"type\":\"bye\"}");
    start(fx, "w", "r3", NULL); /* the workflow is known */
    waits_for(fx, "r3", "\"reason\":\"worker\"");
    waits_for(fx, "r3", "\"function\":\"f\"");
    w = offer(fx, 1, 1, PLAN("w", STEP("a", "f")));
    invoked(w, "\"runId\":\"r3\"", id);
    answer(w, id, "3");
    ends(fx, "r3", RV_COMPLETED, "\"result\":3");
}

static void the_least_loaded_gets_it_and_its_own_version_first(void **state)
{
    struct fixture *fx = *state;
    char id[64], other[64];
    open_engine(fx);
    struct peer *a = offer(fx, 0, 4, PLAN("w", STEP("a", "f")));
    struct peer *b = offer(fx, 1, 4, PLAN("w", STEP("a", "f")));
    start(fx, "w", "r1", NULL);
    start(fx, "w", "r2", NULL);
    invoked(a, "\"function\":\"f\"", id);
    invoked(b, "\"function\":\"f\"", other); /* not both to the same */
    answer(a, id, "1");
    answer(b, other, "1");
    ends(fx, "r1", RV_COMPLETED, "");
    ends(fx, "r2", RV_COMPLETED, "");
    struct peer *c = offer(fx, 2, 4, PLAN("w", STEP("a", "f") "," STEP("b", "g")));
    start(fx, "w", "r3", NULL); /* of the new version, which only c has */
    invoked(c, "\"runId\":\"r3\"", id);
    answer(c, id, "1");
    invoked(c, "\"function\":\"g\"", id);
    peer_send(
        c, "{\"type\":\"bye\"}"); /* and nobody else has that version: the others offer g as well */
    struct pollfd in[2] = { { a->fd, POLLIN, 0 }, { b->fd, POLLIN, 0 } };
    struct peer *who = NULL;
    for (int tries = 0; who == NULL && tries < 100; tries++) {
        assert_true(poll(in, 2, PEER_SOON_MS) > 0);
        for (int i = 0; i < 2; i++)
            while (peer_next(i == 0 ? a : b, 0) != NULL)
                if (strstr((i == 0 ? a : b)->text, "\"function\":\"g\"") != NULL)
                    who = i == 0 ? a : b;
    }
    assert_non_null(who);
    peer_member(who, "id", id, sizeof id);
    answer(who, id, "2");
    ends(fx, "r3", RV_COMPLETED, "\"result\":2");
}

static void a_lost_connection_is_waited_for(void **state)
{
    struct fixture *fx = *state;
    char id[64], first[64], hello[512];
    open_engine(fx);
    struct peer *w = offer(fx, 0, 4, PLAN("w", STEP("a", "f")));
    start(fx, "w", "r1", NULL);
    start(fx, "w", "r2", NULL);
    invoked(w, "\"function\":\"f\"", first);
    bool one = strstr(w->text, "\"r1\"") != NULL;
    invoked(w, "\"function\":\"f\"", id);
    peer_dial(w, fx->rig->store); /* the first one is cut; the process is alive */
    snprintf(
        hello, sizeof hello,
        "{\"type\":\"hello\",\"protocol\":2,\"role\":\"worker\",\"credits\":4,\"session\":\"%s\","
        "\"has\":[\"%s\"]}",
        fx->session, first);
    peer_send(w, hello);
    peer_expect(w, "\"resumed\":true");
    answer(w, first, "\"kept\"");
    ends(fx, one ? "r1" : "r2", RV_COMPLETED, "\"kept\"");
    invoked(w, one ? "\"r2\"" : "\"r1\"", id);         /* what it did not get is done again, */
    assert_non_null(strstr(w->text, "\"attempt\":1")); /* and it is the same attempt */
    answer(w, id, "\"again\"");
    ends(fx, one ? "r2" : "r1", RV_COMPLETED, "\"again\"");
}

static void what_is_not_delivered_in_time_is_done_again(void **state)
{
    struct fixture *fx = *state;
    char id[64], late[64];
    open_engine(fx);
    struct peer *w = offer(fx, 0, 1, PLAN("w", STEP("a", "f")));
    start(fx, "w", "r1", NULL);
    invoked(w, "\"function\":\"f\"", late);
    peer_hang_up(w); /* this process lives on: nobody knows what became of it */
    w = offer(fx, 1, 1, PLAN("w", STEP("a", "f")));
    assert_null(peer_next(w, 3000)); /* the other one may still come back */
    invoked(w, "\"attempt\":1", id);
    answer(w, late, "\"late\"");
    answer(w, id, "\"now\"");
    ends(fx, "r1", RV_COMPLETED, "\"now\"");
}

/* A process that takes `count` invocations and then kills itself. */
static pid_t killer(struct fixture *fx, int count)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    struct peer *w = offer(fx, 3, count, PLAN("w", STEP("a", "f")));
    for (int n = 0; n < count;)
        if (strstr(peer_next(w, PEER_SOON_MS), "\"invoke\"") != NULL)
            n++;
    raise(SIGKILL);
    _exit(0);
}

static void a_step_that_kills_its_worker_is_to_blame(void **state)
{
    struct fixture *fx = *state;
    open_engine(fx);
    struct peer *w = offer(fx, 0, 0, PLAN("w", STEP("a", "f")));
    start(fx, "w", "r1", NULL);
    for (int i = 0; i <= 3; i++) { /* more than maxCrashes */
        fx->children[0] = killer(fx, 1);
        assert_int_equal(waitpid(fx->children[0], NULL, 0), fx->children[0]);
        fx->children[0] = 0;
    }
    waits_for(fx, "r1", "\"reason\":\"decision\"");
    (void)w;
}

static void several_that_died_together_are_suspects(void **state)
{
    struct fixture *fx = *state;
    char id[64];
    open_engine(fx);
    struct peer *w = offer(fx, 0, 0, PLAN("w", STEP("a", "f")));
    start(fx, "w", "r1", NULL);
    start(fx, "w", "r2", NULL);
    for (int i = 0; i < 2; i++) {
        fx->children[0] = killer(fx, 2);
        assert_int_equal(waitpid(fx->children[0], NULL, 0), fx->children[0]);
        fx->children[0] = 0;
    }
    waits_for(fx, "r1", "\"reason\":\"place\""); /* nobody is suspended */
    peer_send(w, "{\"type\":\"credits\",\"credits\":4}");
    invoked(w, "\"function\":\"f\"", id);
    assert_null(peer_next(w, 200)); /* one suspect at a time */
    answer(w, id, "1");
    invoked(w, "\"function\":\"f\"", id);
    answer(w, id, "1");
    ends(fx, "r1", RV_COMPLETED, "");
    ends(fx, "r2", RV_COMPLETED, "");
}

static void cancel_and_calls_go_over_the_same_connection(void **state)
{
    struct fixture *fx = *state;
    char id[64], frame[128];
    open_engine(fx);
    struct peer *w = offer(fx, 0, 2, PLAN("w", STEP("a", "f")));
    peer_send(w, "{\"type\":\"call\",\"id\":\"c1\",\"method\":\"run\",\"workflow\":\"w\",\"runId\":"
                 "\"r1\"}");
    bool begun = false, called = false;
    while (!begun || !called) {
        const char *got = peer_next(w, PEER_SOON_MS);
        assert_non_null(got);
        called |= strstr(got, "\"id\":\"c1\",\"runId\":\"r1\",\"status\":\"running\"") != NULL;
        if (strstr(got, "\"invoke\"") != NULL) {
            peer_member(w, "id", id, sizeof id);
            begun = true;
        }
    }
    peer_send(w, "{\"type\":\"call\",\"id\":\"c2\",\"method\":\"cancel\",\"runId\":\"r1\"}");
    snprintf(frame, sizeof frame, "{\"type\":\"cancel\",\"id\":\"%s\"}", id);
    bool told = false;
    for (called = false; !told || !called;) {
        const char *got = peer_next(w, PEER_SOON_MS);
        assert_non_null(got);
        told |= strcmp(got, frame) == 0;
        called |= strcmp(got, "{\"type\":\"result\",\"id\":\"c2\"}") == 0;
    }
    answer(w, id, "1");
    ends(fx, "r1", RV_CANCELLED, "");
    peer_expect(w, "\"taken\"");
}

static void the_scope_comes_along_and_each_value_once(void **state)
{
    struct fixture *fx = *state;
    char id[64], result[4000];
    open_engine(fx);
    struct peer *w = offer(fx, 0, 4,
                           "{\"type\":\"register\",\"id\":\"r\",\"sees\":[\"steps\",\"last\","
                           "\"input\"],\"workflows\":[{"
                           "\"plan\":{\"name\":\"w\",\"steps\":[" STEP("a", "f") "," STEP(
                               "b", "f") "," STEP("c", "f") "]},\"functions\":[\"f\"]}]}");
    char input[3000];
    snprintf(input, sizeof input, "{\"long\":\"%0*d\"}", 1000, 1);
    start(fx, "w", "r1", input);
    peer_expect(w, "{\"type\":\"value\",\"slot\":");
    assert_non_null(strstr(w->text, "\"long\""));
    invoked(w, "\"inputSlot\":", id);
    assert_null(strstr(w->text, "\"scope\""));
    snprintf(result, sizeof result, "\"%0*d\"", 400, 5);
    answer(w, id, result);
    peer_expect_besides(w, "\"taken\"",
                        "{\"type\":\"entry\",\"entry\":1,\"alias\":\"a\",\"status\":\"completed\"");
    assert_non_null(strstr(w->text, result));
    invoked(w, "\"scope\":1,\"last\":1,\"inputSlot\":", id);
    answer(w, id, "2");
    peer_expect_besides(w, "\"taken\"",
                        "{\"type\":\"entry\",\"entry\":2,\"before\":1,\"alias\":\"b\"");
    invoked(w, "\"scope\":2,\"last\":2", id);
    answer(w, id, "3");
    ends(fx, "r1", RV_COMPLETED, "\"result\":3");
}

static void a_nested_workflow_in_its_place_has_functions_of_the_outer_one(void **state)
{
    struct fixture *fx = *state;
    char id[64];
    open_engine(fx);
    struct peer *w = offer(
        fx, 0, 4,
        PLAN("w",
             "{\"type\":\"workflow\",\"alias\":\"in\",\"name\":\"inner\",\"input\":{\"fn\":\"g\"},"
             "\"inputSchema\":{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{\"d\":{"
             "\"default\":5}}},\"steps\":[" STEP("a", "f") "]}"));
    start(fx, "w", "r1", "{\"x\":1}");
    invoked(w, "\"function\":\"g\"", id);
    assert_non_null(strstr(w->text, "\"condition\":true"));
    answer(w, id, "{\"n\":7}");
    invoked(w, "\"function\":\"f\"", id);
    assert_non_null(strstr(w->text, "\"input\":{\"n\":7,\"d\":5}"));
    answer(w, id, "1");
    ends(fx, "r1", RV_COMPLETED, "\"result\":1");
    start(fx, "w", "r2", NULL);
    invoked(w, "\"function\":\"g\"", id);
    answer(w, id, "{}");
    ends(fx, "r2", RV_FAILED, "is refused");
}

static void what_a_worker_may_not_say_ends_its_session(void **state)
{
    static const struct {
        const char *says, *part;
    } rows[] = {
        { "{\"type\":\"invoke\"}", "may not say 'invoke'" },
        { "{\"type\":\"credits\",\"credits\":-1}", "'credits' is not a number" },
        { "{\"type\":\"dance\"}", "its type is unknown" },
        { "{\"type\":\"hello\",\"protocol\":2,\"role\":\"worker\"}", "may not say 'hello'" },
    };
    static const struct {
        const char *says, *part;
    } refused[] = {
        { "{\"type\":\"register\",\"id\":\"r\",\"workflows\":7}", "'workflows' is not a list" },
        { "{\"type\":\"register\",\"id\":\"r\",\"workflows\":[{}]}", "a workflow without a plan" },
        { "{\"type\":\"register\",\"id\":\"r\",\"workflows\":[{\"plan\":{\"name\":\"x\",\"steps\":["
          "]},"
          "\"functions\":[7]}]}",
          "a function without a name" },
        { "{\"type\":\"register\",\"id\":\"r\",\"module\":\"xyz\"}", "16 hex digits" },
        { PLAN("c", STEP("a", "f")), "already registered, by the program" },
        { PLAN("w", STEP("a", "f") "," STEP("a", "g")), "must be unique" },
    };
    struct fixture *fx = *state;
    open_engine(fx);
    rv_workflow *c = rv_workflow_new("c");
    rv_add_delay(rv_workflow_body(c), "d", 1);
    rig_put(fx->rig, c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peer *w = join(fx, 0, 1);
        peer_send(w, rows[i].says);
        peer_expect(w, rows[i].part);
        assert_string_equal(peer_next(w, PEER_SOON_MS), "");
    }
    struct peer *w = join(fx, 0, 1);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        peer_send(w, refused[i].says);
        peer_expect(w, "{\"type\":\"error\",\"id\":\"r\",\"code\":-");
        if (strstr(w->text, refused[i].part) == NULL)
            fail_msg("got '%s', expected '%s'", w->text, refused[i].part);
    }
    peer_send(w, "{\"type\":\"result\",\"id\":\"nobody's\"}"); /* late, not wrong */
    peer_expect(w, "{\"type\":\"taken\",\"ids\":[\"nobody's\"]}");
}

#define JUDGED                                                                                   \
    "{\"type\":\"register\",\"id\":\"r\",\"workflows\":[{\"validates\":true,\"plan\":{\"name\":" \
    "\"w\","                                                                                     \
    "\"input\":{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{\"n\":{\"type\":"       \
    "\"integer\"}}},\"steps\":[" STEP("a", "f") "]},\"functions\":[\"f\"]}]}"

/* Somebody starts a run, and the worker is asked: the id of the question. */
static void asked(struct peer *client, struct peer *w, const char *run_id, const char *input,
                  char id[64])
{
    char frame[256];
    snprintf(frame, sizeof frame,
             "{\"type\":\"call\",\"id\":\"c\",\"method\":\"run\",\"workflow\":\"w\",\"runId\":"
             "\"%s\",\"input\":%s}",
             run_id, input);
    peer_send(client, frame);
    peer_expect_besides(w, "\"taken\"", "\"type\":\"validate\"");
    peer_member(w, "id", id, 64);
    if (strstr(w->text, input) == NULL)
        fail_msg("'%s' does not have %s as it was given", w->text, input);
}

static void says(struct peer *w, const char *type, const char *id, const char *more)
{
    char frame[256];
    snprintf(frame, sizeof frame, "{\"type\":\"%s\",\"id\":\"%s\"%s}", type, id, more);
    peer_send(w, frame);
}

static void a_worker_judges_what_a_run_gets(void **state)
{
    struct fixture *fx = *state;
    char id[64], work[64];
    open_engine(fx);
    struct peer *w = offer(fx, 0, 4, JUDGED), *client = &fx->peers[1];
    peer_dial(client, fx->rig->store);
    peer_send(client, "{\"type\":\"hello\",\"protocol\":2,\"role\":\"client\"}");
    peer_expect(client, "\"type\":\"hello\"");
    /* what the schema would refuse is the worker's to judge */
    asked(client, w, "r1", "{\"n\":\"1\"}", id);
    says(w, "valid", "v999", ",\"input\":0"); /* nobody asked that: late, not wrong */
    says(w, "valid", id, ",\"input\":{\"n\":1}");
    peer_expect(client, "\"runId\":\"r1\",\"status\":\"running\"}");
    invoked(w, "\"input\":{\"n\":1}", work);
    answer(w, work, "1");
    ends(fx, "r1", RV_COMPLETED, "\"result\":1");
    says(w, "valid", id, ",\"input\":7"); /* again: nobody waits for it */
    /* refused: there is no run */
    asked(client, w, "r2", "{\"n\":2}", id);
    says(w, "violations", id,
         ",\"violations\":[{\"path\":\"/n\",\"message\":\"too \\u0041\"},7,{},{\"path\":{}}]");
    peer_expect(client, "\"code\":-1");
    assert_non_null(strstr(client->text, "{\"path\":\"/n\",\"message\":\"too A\"}"));
    rv_run_state *run = NULL;
    assert_int_equal(rv_state(fx->rig->engine, "r2", &run, NULL), RV_ENOTFOUND);
    asked(client, w, "r2", "{\"n\":2}", id);
    says(w, "violations", id, ",\"violations\":[]"); /* without a reason */
    peer_expect(client, "the worker refuses it");
    /* as it was given */
    asked(client, w, "r3", "{\"n\":3}", id);
    says(w, "valid", id, "");
    peer_expect(client, "\"runId\":\"r3\",\"status\":\"running\"}");
    invoked(w, "\"input\":{\"n\":3}", work);
    answer(w, work, "1");
    ends(fx, "r3", RV_COMPLETED, "\"result\":1");
    /* the worker hangs up with the question: the schema decides, and that is told */
    asked(client, w, "r4", "{\"n\":4}", id);
    peer_hang_up(w);
    peer_expect(client, "\"runId\":\"r4\",\"status\":\"running\",\"validated\":\"schema\"}");
    peer_send(client, "{\"type\":\"call\",\"id\":\"c\",\"method\":\"run\",\"workflow\":\"w\","
                      "\"runId\":\"r5\",\"input\":{\"n\":\"5\"}}");
    peer_expect(client, "\"code\":-1"); /* by the schema */
    /* what is no verdict ends the session */
    w = offer(fx, 0, 1, JUDGED);
    invoked(w, "\"runId\":\"r4\"", work);
    asked(client, w, "r6", "{\"n\":6}", id);
    says(w, "violations", id, ",\"violations\":7");
    peer_expect_besides(w, "invoke", "'violations' is not a list");
    peer_expect(client, "\"runId\":\"r6\",\"status\":\"running\",\"validated\":\"schema\"}");
}

static void an_engine_that_closes_waits_for_no_verdict(void **state)
{
    struct fixture *fx = *state;
    char id[64];
    open_engine(fx);
    struct peer *w = offer(fx, 0, 4, JUDGED), *client = &fx->peers[1];
    peer_dial(client, fx->rig->store);
    peer_send(client, "{\"type\":\"hello\",\"protocol\":2,\"role\":\"client\"}");
    peer_expect(client, "\"type\":\"hello\"");
    asked(client, w, "r1", "{\"n\":1}", id);
    int64_t before_ms = rv__mono_ms(rv__clock_real());
    rig_close(fx->rig);
    assert_true(rv__mono_ms(rv__clock_real()) - before_ms < 9000); /* nobody's ten seconds */
    peer_expect(client, "\"type\":\"error\"");
}

struct heart {
    struct rv__workers *workers;
    int64_t heartbeat_ms, grace_ms;
};

static void set_heart(void *arg)
{
    const struct heart *heart = arg;
    heart->workers->heartbeat_ms = heart->heartbeat_ms;
    heart->workers->grace_ms = heart->grace_ms;
}

/* On the loop, whose it is. */
static void beat_every(struct fixture *fx, int64_t heartbeat_ms, int64_t grace_ms)
{
    struct rv__services *services = &fx->rig->engine->services;
    struct heart heart = { (struct rv__workers *)services->workers, heartbeat_ms, grace_ms };
    rv__wires_run(services->wires, set_heart, &heart);
}

/* Connected, whatever the heart, and offering this; NULL: nothing. */
static struct peer *come(struct fixture *fx, int n, const char *registration)
{
    struct peer *peer = &fx->peers[n];
    peer_dial(peer, fx->rig->store);
    peer_send(peer, "{\"type\":\"hello\",\"protocol\":2,\"role\":\"worker\",\"credits\":1}");
    peer_expect(peer, "\"type\":\"hello\"");
    if (registration != NULL) {
        peer_send(peer, registration);
        peer_expect(peer, "\"type\":\"result\"");
    }
    return peer;
}

/* The engine hangs up; how often it asked before. */
static int hung_up(struct peer *peer)
{
    int pings = 0;
    const char *got;
    while ((got = peer_next(peer, PEER_SOON_MS)) != NULL && got[0] != '\0')
        pings += strstr(got, "\"ping\"") != NULL;
    assert_non_null(got);
    return pings;
}

static void who_does_not_answer_a_ping_is_lost(void **state)
{
    struct fixture *fx = *state;
    char id[64];
    open_engine(fx);
    beat_every(fx, 400, 300);
    assert_true(hung_up(come(fx, 0, NULL)) > 0); /* it was asked, and said nothing */
    beat_every(fx, 60000, 300);
    struct peer *w = come(fx, 1, PLAN("w", STEP("a", "f")));
    start(fx, "w", "r1", NULL);
    invoked(w, "\"attempt\":1", id);
    beat_every(fx, 400, 300); /* it is silent, with work */
    (void)hung_up(w);
    waits_for(fx, "r1", "\"reason\":\"worker\"");
    beat_every(fx, 60000, 300);
    w = come(fx, 2, PLAN("w", STEP("a", "f")));
    invoked(w, "\"attempt\":1", id); /* a lost attempt uses up none */
    answer(w, id, "1");
    ends(fx, "r1", RV_COMPLETED, "\"result\":1");
}

static void closing_says_goodbye_and_the_next_engine_goes_on(void **state)
{
    struct fixture *fx = *state;
    char id[64];
    rig_open(fx->rig, RV_ENGINE_OPTS(.control = true, .workers = 4, .grace_ms = 200));
    struct peer *w = offer(fx, 0, 1, PLAN("w", STEP("a", "f")));
    start(fx, "w", "r1", NULL);
    invoked(w, "\"function\":\"f\"", id);
    rig_close(fx->rig);
    peer_expect(w, "\"type\":\"cancel\"");
    peer_expect(w, "\"type\":\"bye\"");
    open_engine(fx);
    waits_for(fx, "r1", "\"reason\":\"worker\"");
    w = offer(fx, 1, 1, PLAN("w", STEP("a", "f")));
    invoked(w, "\"attempt\":1", id);
    answer(w, id, "1");
    ends(fx, "r1", RV_COMPLETED, "\"result\":1");
}

#define WORKERS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORKERS_TEST(a_worker_does_the_steps_of_its_workflow),
        WORKERS_TEST(without_a_worker_or_a_credit_nothing_is_begun),
        WORKERS_TEST(the_least_loaded_gets_it_and_its_own_version_first),
        WORKERS_TEST(a_lost_connection_is_waited_for),
        WORKERS_TEST(what_is_not_delivered_in_time_is_done_again),
        WORKERS_TEST(a_step_that_kills_its_worker_is_to_blame),
        WORKERS_TEST(several_that_died_together_are_suspects),
        WORKERS_TEST(cancel_and_calls_go_over_the_same_connection),
        WORKERS_TEST(the_scope_comes_along_and_each_value_once),
        WORKERS_TEST(a_nested_workflow_in_its_place_has_functions_of_the_outer_one),
        WORKERS_TEST(what_a_worker_may_not_say_ends_its_session),
        WORKERS_TEST(who_does_not_answer_a_ping_is_lost),
        WORKERS_TEST(a_worker_judges_what_a_run_gets),
        WORKERS_TEST(an_engine_that_closes_waits_for_no_verdict),
        WORKERS_TEST(closing_says_goodbye_and_the_next_engine_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
