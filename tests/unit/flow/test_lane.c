/* test_lane.c: where work waits for its place, and what becomes of the place. For src/flow/lane.c. */
#include "unit/flow/script.h"

#define DOC(node)    "{\"name\":\"w\",\"steps\":[" node "]}"
#define HTTP(alias)  "{'type':'step','alias':'" alias "','kind':'http'}"
#define BLOCK(steps) "{'type':'concurrent','alias':'c','onFailure':'collect','steps':[" steps "]}"

static struct rv__plan *plan_of(const char *json)
{
    struct rv__plan *plan = NULL;
    rv_error err = { 0 };
    if (rv__plan_read(rv__str(json), &plan, &err) < 0)
        fail_msg("the plan is refused: %s\n%s", err.message, json);
    return plan;
}

struct asked {
    const struct rv__node *node;
    int eval, times;
};

static enum rv__lane ask(void *arg, const struct rv__node *node, int eval,
                         const struct rv__body *body)
{
    struct asked *asked = arg;
    (void)body;
    asked->node = node;
    asked->eval = eval;
    asked->times++;
    return LANE_HOST;
}

/* A run of the plan waits in this lane and no other; none: it needs nobody. Of a function who does it is
 * asked, and of a command whether its file is there; of nothing else. */
static void work_waits_in_the_lane_of_what_comes_first(void **state)
{
    (void)state;
#undef STEP
#define STEP(fields) "{\"type\":\"step\",\"alias\":\"s\"," fields "}"
    static const struct {
        const char *json;
        enum rv__lane lane;
    } rows[] = {
        { DOC(STEP("\"name\":\"f\"")), LANE_FUNCTION },
        { DOC(STEP("\"kind\":\"call\",\"name\":\"f\"")), LANE_FUNCTION },
        { DOC(STEP("\"kind\":\"http\"")), LANE_HTTP },
        { DOC(STEP("\"kind\":\"command\"")), LANE_IO },
        { DOC("{\"type\":\"chat\",\"alias\":\"s\",\"with\":{}}"), LANE_HTTP },
        { DOC(STEP("\"kind\":\"tool\"")), LANE_HTTP },
        { DOC(STEP("\"kind\":\"value\",\"with\":1")), LANE_EVAL },
        { DOC(STEP("\"kind\":\"delay\",\"with\":1")), LANE_NONE },
        { DOC(STEP("\"kind\":\"delay\",\"with\":\"${ 1 }\"")), LANE_EVAL },
        { DOC(STEP("\"kind\":\"signal\",\"with\":{\"name\":\"x\"}")), LANE_NONE },
        { DOC(STEP("\"kind\":\"signal\",\"with\":{\"name\":\"${ .x }\"}")), LANE_EVAL },
        { DOC(STEP("\"kind\":\"http\",\"when\":\"${ .x }\"")), LANE_EVAL },
        { DOC(STEP("\"kind\":\"http\",\"when\":{\"fn\":\"g\"}")), LANE_FUNCTION },
        { DOC("{\"type\":\"branch\",\"if\":1,\"then\":[]}"), LANE_EVAL },
        { DOC("{\"type\":\"branch\",\"if\":{\"fn\":\"g\"},\"then\":[]}"), LANE_FUNCTION },
        { DOC("{\"type\":\"loop\",\"while\":1,\"body\":[" STEP("\"name\":\"f\"") "]}"), LANE_EVAL },
        { DOC("{\"type\":\"loop\",\"until\":1,\"body\":[" STEP("\"kind\":\"http\"") "]}"),
          LANE_HTTP },
        { DOC("{\"type\":\"forEach\",\"items\":{\"fn\":\"g\"},\"run\":[" STEP(
              "\"kind\":\"http\"") "]}"),
          LANE_FUNCTION },
        { DOC("{\"type\":\"concurrent\",\"steps\":[" STEP("\"kind\":\"http\"") "]}"), LANE_HTTP },
        { DOC("{\"type\":\"concurrent\",\"continueOn\":\"detached\",\"steps\":[" STEP(
              "\"kind\":\"http\"") "]}"),
          LANE_NONE },
        { DOC("{\"type\":\"workflow\",\"name\":\"v\",\"steps\":[" STEP("\"kind\":\"http\"") "]}"),
          LANE_HTTP },
        { DOC("{\"type\":\"workflow\",\"name\":\"v\",\"input\":1,\"steps\":[" STEP(
              "\"kind\":\"http\"") "]}"),
          LANE_EVAL },
        { DOC("{\"type\":\"workflow\",\"name\":\"v\",\"input\":{\"fn\":\"g\"},\"inputSchema\":{},"
              "\"steps\":[" STEP("\"kind\":\"http\"") "]}"),
          LANE_FUNCTION },
        { DOC("{\"type\":\"workflow\",\"name\":\"v\",\"inputSchema\":{},\"steps\":[" STEP(
              "\"kind\":\"http\"") "]}"),
          LANE_EVAL },
        { "{\"name\":\"w\",\"input\":{},\"steps\":[" STEP("\"kind\":\"http\"") "]}", LANE_HTTP },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__plan *plan = plan_of(rows[i].json);
        for (int asks = 0; asks < 2; asks++) {
            struct asked asked = { .times = 0 };
            struct rv__cell_opts opts = { .plan = plan, .lane = asks ? ask : NULL, .arg = &asked };
            struct rv__facts facts;
            struct rv__cell *cell = NULL;
            bool function = rows[i].lane == LANE_FUNCTION;
            bool may_be_other = strstr(rows[i].json, "\"command\"") != NULL ||
                                strstr(rows[i].json, "\"chat\"") != NULL;
            enum rv__lane wanted = function && asks ? LANE_HOST : rows[i].lane;
            rv__facts_init(&facts);
            assert_int_equal(rv__cell_start(&opts, NULL, 1, &facts, &cell, NULL), RV_OK);
            for (int lane = 1; lane < LANES; lane++)
                if (rv__cell_wants(cell, (enum rv__lane)lane) != (lane == (int)wanted))
                    fail_msg("%s: lane %d", rows[i].json, lane);
            if (rv__cell_more(cell) != (wanted == LANE_NONE) ||
                (asked.times > 0) != ((function || may_be_other) && asks))
                fail_msg("%s: asked %d times", rows[i].json, asked.times);
            rv__cell_free(cell);
            rv__facts_done(&facts);
        }
        rv__plan_free(plan);
    }
#undef STEP
}

/* Once its `when` is known to be true, a node waits where its own work is done. */
static void after_its_when_it_waits_for_its_own_work(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'step','alias':'s','kind':'http','when':true}", NULL);
    rig->grants[LANE_HTTP] = false;
    rig_done(rig, "s?when", "true");
    assert_true(rv__cell_wants(rig->cell, LANE_HTTP));
    rig->grants[LANE_HTTP] = true;
    rig_turn(rig, NULL);
    rig_expect_in_flight(rig, "s");
    rig_free(rig);
}

static struct rig *three_wait(void)
{
    struct rig *rig = rig_new(
        J("{'name':'t','steps':[{'type':'step','alias':'x','name':'x'}," BLOCK(
            S("a") "," HTTP("b") "," S("d")) "]}"),
        NULL);
    rig_done(rig, "x", "1"); /* all three begin, and are lost with their process */
    rig_give(rig, false);
    rig_expect_in_flight(rig, "c:a c:b c:d");
    rig_lose(rig, "c:d", false, false);
    rig_lose(rig, "c:b", false, false);
    rig_lose(rig, "c:a", false, false);
    return rig;
}

static void grant_in(struct rig *rig, enum rv__lane lane, const char *path)
{
    assert_int_equal(rig_grant(rig, lane), 1);
    (void)rig_at(rig, path);
}

/* The text of a cell has the order in which things came to wait, and not where. */
static void a_snapshot_names_no_lanes(void **state)
{
    (void)state;
    static const char *const nobody[] = { NULL, "a d", "a", "d" };
    char first[4000] = "";
    for (size_t i = 0; i < sizeof nobody / sizeof *nobody; i++) {
        struct rig *rig = three_wait();
        rv_error err = { 0 };
        rig->nobody = nobody[i];
        rig->hosted = i == 3 ? "a" : NULL;
        rig_relane(rig);
        rv__buf_reset(&rig->text);
        assert_int_equal(rv__cell_save(rig->cell, &rig->text, &err), RV_OK);
        if (i == 0)
            snprintf(first, sizeof first, "%s", rig->text.text);
        assert_string_equal(rig->text.text, first);
        assert_non_null(strstr(first, "\"ready\":["));
        rig_crash(rig, true); /* what is read from it waits where this process says */
        rig_expect_in_flight(rig, "");
        assert_int_equal(rv__cell_wants(rig->cell, LANE_NOBODY), i > 0);
        assert_true(rv__cell_wants(rig->cell, LANE_HTTP));
        rig->nobody = rig->hosted = NULL;
        rig_relane(rig);
        assert_false(rv__cell_wants(rig->cell, LANE_NOBODY));
        grant_in(rig, LANE_FUNCTION, "c:d"); /* in order of arrival, whatever was between */
        rig_expect_in_flight(rig, "c:d");
        grant_in(rig, LANE_FUNCTION, "c:a");
        grant_in(rig, LANE_HTTP, "c:b");
        assert_int_equal(rig_grant(rig, LANE_FUNCTION), 0);
        rig_give(rig, true);
        rig_finish(rig, "true");
        rig_expect(rig, RUN_COMPLETED, NULL);
        rig_free(rig);
    }
}

/* Those that wait change lanes when the answers change, and no place is given where nobody is. */
static void what_waits_follows_the_answers(void **state)
{
    (void)state;
    struct rig *rig = rig_new_where(
        J("{'name':'t','steps':[{'type':'forEach','alias':'e','items':{'fn':'g'},'parallel':true,"
          "'run':[" S("f") "]}]}"),
        NULL, NULL, "f e");
    rig_expect_in_flight(rig, "");
    assert_true(rv__cell_wants(rig->cell, LANE_NOBODY));
    assert_int_equal(rig_grant(rig, LANE_NOBODY), 0);
    rig->nobody = "f";
    rig_relane(rig);
    rig_turn(rig, NULL);
    rig_done(rig, "e?items", "[1,2,3]");
    assert_true(rv__cell_wants(rig->cell, LANE_NOBODY)); /* a range */
    rig->nobody = NULL;
    rig->hosted = "f";
    rig->grants[LANE_HOST] = false;
    rig_relane(rig);
    assert_false(rv__cell_wants(rig->cell, LANE_NOBODY));
    assert_int_equal(rig_grant(rig, LANE_FUNCTION), 0);
    grant_in(rig, LANE_HOST, "e:iter0:node0:f");
    rig->hosted = NULL; /* the rest is in the range of hosts, but who begins it asks again */
    rig->nobody = "f";
    rig_relane(rig);
    assert_int_equal(rig_grant(rig, LANE_HOST), 0);
    rig->nobody = NULL;
    rig_relane(rig);
    grant_in(rig, LANE_FUNCTION, "e:iter1:node0:f");
    rig_turn(rig, NULL);
    rig_expect_in_flight(rig, "e:iter0:node0:f e:iter1:node0:f e:iter2:node0:f");
    rig_finish(rig, "true");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* What is on record is the place it was given, whoever would do it now. */
static void an_attempt_in_a_host_is_on_record(void **state)
{
    (void)state;
    struct rig *rig = rig_new_where(J("{'name':'t','steps':[" BLOCK(S("a") "," S("b")) "]}"), NULL,
                                    "a", NULL);
    assert_true(rig_has_fact(rig, "\"attempt\":1,\"hosted\":true"));
    assert_true(rig_at(rig, "c:a")->effect.hosted);
    assert_int_equal(rig_at(rig, "c:a")->effect.place, LANE_HOST);
    assert_false(rig_at(rig, "c:b")->effect.hosted);
    assert_int_equal(rig_at(rig, "c:b")->effect.place, LANE_FUNCTION);
    rig->hosted = "b";
    rig_crash(rig, true);
    assert_true(rig_at(rig, "c:a")->effect.hosted);
    assert_int_equal(rig_at(rig, "c:a")->effect.place, LANE_NONE); /* it went with the process */
    rig_free(rig);
}

/* --------------------------------------------------------------------------------- places --- */

/* The effects that there are, as "start:1 stop:0", with the places they carry. */
static const char *effects_of(struct rig *rig)
{
    static char text[200];
    static const char *const kinds[] = { "start", "wait", "stop" };
    struct rv__effect effect;
    text[0] = '\0';
    while (rv__cell_effect(rig->cell, &effect))
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s:%d",
                 text[0] != '\0' ? " " : "", kinds[effect.kind], (int)effect.place);
    return text;
}

static void a_place_is_carried_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new_where(J("{'name':'t','steps':[" BLOCK(S("a") "," S("b")) "]}"), NULL,
                                    NULL, "a b");
    rv_error err = { 0 };
    struct rv__msg cancel = { .kind = MSG_CANCEL };
    char host_and_function[40], back[40];
    snprintf(host_and_function, sizeof host_and_function, "start:%d start:%d", LANE_HOST,
             LANE_FUNCTION);
    snprintf(back, sizeof back, "stop:%d stop:0", LANE_FUNCTION);

    /* One has begun. The other is given its place, and ended in the same turn, before anybody acts. */
    rig->nobody = NULL;
    rig->hosted = "a";
    rig_relane(rig);
    assert_int_equal(rv__flow_grant(rig->cell, LANE_HOST, 5, &rig->facts, &err), 1);
    assert_int_equal(rv__flow_grant(rig->cell, LANE_FUNCTION, 5, &rig->facts, &err), 1);
    assert_string_equal(effects_of(rig), host_and_function);
    assert_string_equal(effects_of(rig), "");
    assert_int_equal(rv__flow_send(rig->cell, &cancel, &rig->facts, &err), RV_OK);
    assert_string_equal(effects_of(rig), "stop:0 stop:0"); /* those places their work has */
    rig_free(rig);

    rig = rig_of(BLOCK(S("a") "," S("b")), NULL);
    rig_give(rig, false);
    rig_lose(rig, "c:b", false, false);
    assert_int_equal(rv__flow_grant(rig->cell, LANE_FUNCTION, 5, &rig->facts, &err), 1);
    assert_int_equal(rv__flow_send(rig->cell, &cancel, &rig->facts, &err), RV_OK);
    const char *got = effects_of(rig);
    char other[40];
    snprintf(other, sizeof other, "stop:0 stop:%d", LANE_FUNCTION);
    if (strcmp(got, back) != 0 && strcmp(got, other) != 0)
        fail_msg("%s", got);
    assert_string_equal(effects_of(rig), "");
    rig_free(rig);
}

/* Who was not told a token cannot have it: such a message changes nothing, and its place is not lost. */
static void before_its_effect_a_message_is_stale(void **state)
{
    (void)state;
    struct rig *rig = rig_new_where(J("{'name':'t','steps':[" S("a") "]}"), NULL, NULL, "a");
    rv_error err = { 0 };
    rig->nobody = NULL;
    rig_relane(rig);
    assert_int_equal(rv__flow_grant(rig->cell, LANE_FUNCTION, 5, &rig->facts, &err), 1);
    struct rv__msg lost = { .kind = MSG_LOST, .actor = 2, .token = 1 };
    uint64_t stale = rv__cell_stale(rig->cell);
    assert_int_equal(rv__flow_send(rig->cell, &lost, &rig->facts, &err), RV_OK);
    assert_int_equal(rv__cell_stale(rig->cell), stale + 1);
    rig_turn(rig, NULL);
    assert_int_equal(rig_at(rig, "a")->effect.place, LANE_FUNCTION);
    assert_int_equal(rig_at(rig, "a")->effect.token, 1);
    rig_lose(rig, "a", false, false);
    rig_done(rig, "a", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_waits_in_the_lane_of_what_comes_first),
        RIG_TEST(after_its_when_it_waits_for_its_own_work),
        RIG_TEST(a_snapshot_names_no_lanes),
        RIG_TEST(what_waits_follows_the_answers),
        RIG_TEST(an_attempt_in_a_host_is_on_record),
        RIG_TEST(a_place_is_carried_once),
        RIG_TEST(before_its_effect_a_message_is_stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
