/* test_plan.c: the plan itself: ids, paths, values; and how its making grows. */
#include "unit/plan/plan_test.h"
#include "unit/plan/zoo.h"

#include <time.h>

#include "base/json.h"

static void names_of_kinds_are_those_of_the_json(void **state)
{
    (void)state;
    static const char *const nodes[NODE_KINDS] = { "step",  "workflow", "branch",
                                                   "loop",  "forEach",  "concurrent",
                                                   "stage", "chat",     "sequence" };
    static const char *const steps[STEP_KINDS] = { "function", "call",   "http", "command", "value",
                                                   "delay",    "signal", "chat", "tool" };
    for (int i = 0; i < NODE_KINDS; i++)
        assert_string_equal(rv__node_kind_name((enum rv__node_kind)i), nodes[i]);
    for (int i = 0; i < STEP_KINDS; i++)
        assert_string_equal(rv__step_kind_name((enum rv__step_kind)i), steps[i]);
}

/* What each kind says of its bodies and of what it evaluates. */
static void a_kind_says_what_its_nodes_have(void **state)
{
    static const struct {
        const char *json;
        enum rv__bodies bodies;
        enum rv__use uses[3]; /* until USES */
    } kinds[] = {
        { "{\"type\":\"step\",\"name\":\"f\",\"when\":1}", BODIES_NONE, { USE_WHEN, USES } },
        { "{\"type\":\"workflow\",\"name\":\"v\",\"description\":\"d\",\"steps\":[{\"type\":"
          "\"step\","
          "\"name\":\"f\"}]}",
          BODIES_ITSELF,
          { USE_DESCRIPTION, USES } },
        { "{\"type\":\"branch\",\"if\":1,\"then\":[{\"type\":\"step\",\"name\":\"f\"}]}",
          BODIES_NAMED,
          { USE_IF, USES } },
        { "{\"type\":\"loop\",\"while\":1,\"body\":[{\"type\":\"step\",\"name\":\"f\"}]}",
          BODIES_ITERATED,
          { USE_WHILE, USES } },
        { "{\"type\":\"loop\",\"until\":1,\"body\":[{\"type\":\"step\",\"name\":\"f\"}],\"when\":"
          "1}",
          BODIES_ITERATED,
          { USE_WHEN, USE_UNTIL, USES } },
        { "{\"type\":\"forEach\",\"items\":[1],\"run\":[{\"type\":\"step\",\"name\":\"f\"}]}",
          BODIES_ITERATED,
          { USE_ITEMS, USES } },
        { "{\"type\":\"concurrent\",\"steps\":[{\"type\":\"step\",\"name\":\"f\"}]}",
          BODIES_NAMED,
          { USES } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct fixture fx;
        char json[256];
        snprintf(json, sizeof json, "{\"name\":\"w\",\"steps\":[%s]}", kinds[i].json);
        fixture_compile(&fx, json, NULL);
        if (fx.rc < 0)
            fail_msg("%s: %s", kinds[i].json, fx.err.message);
        const struct rv__node *node = fx.plan->body.nodes[0];
        assert_int_equal(rv__node_bodies(node), kinds[i].bodies);
        size_t next = 0;
        for (int use = 0; use < USES; use++) {
            bool has = kinds[i].uses[next] == (enum rv__use)use;
            if ((rv__node_expr(node, (enum rv__use)use) != NULL) != has)
                fail_msg("%s: use %d", kinds[i].json, use);
            next += has;
        }
        fixture_done(&fx);
    }
}

static void check_handler(const struct rv__plan *plan, const struct rv__node *handler,
                          const struct rv__node *of, const struct rv__body *in, uint32_t loops,
                          uint32_t *seen);

/* What flow/ relies on, for every node of every plan. */
static void check_structure(const struct rv__plan *plan, const struct rv__body *body,
                            uint32_t loops, uint32_t *seen)
{
    for (uint32_t i = 0; i < body->count; i++) {
        const struct rv__node *node = body->nodes[i];
        assert_ptr_equal(plan->nodes[node->id], node);
        assert_int_equal(node->id, (*seen)++); /* pre-order */
        assert_ptr_equal(node->body, body);
        assert_int_equal(node->index, i);
        assert_int_equal(node->loops_around, loops);
        assert_false(node->is_handler);
        assert_ptr_equal(rv__body_find(body, node->alias), node);
        check_handler(plan, node->on_error, node, NULL, loops, seen);
        for (uint32_t k = 0; k < node->body_count; k++) {
            const struct rv__body *inner = &node->bodies[k];
            bool iterated = rv__node_bodies(node) == BODIES_ITERATED;
            assert_int_equal(iterated, node->kind == NODE_LOOP || node->kind == NODE_FOREACH);
            assert_ptr_equal(inner->owner, node);
            assert_int_equal(inner->index, k);
            assert_true(inner->alias.at != NULL);
            assert_true(!inner->bare || inner->count == 1);
            check_structure(plan, inner, loops + rv__node_numbers(node), seen);
        }
    }
    if (body->wrap != NULL) {
        assert_int_equal(body->wrap->version.len, 64);
        check_handler(plan, body->wrap->on_error, NULL, body, loops, seen);
        check_handler(plan, body->wrap->finally, NULL, body, loops, seen);
    }
}

static void check_handler(const struct rv__plan *plan, const struct rv__node *handler,
                          const struct rv__node *of, const struct rv__body *in, uint32_t loops,
                          uint32_t *seen)
{
    if (handler == NULL)
        return;
    assert_int_equal(handler->id, (*seen)++);
    assert_ptr_equal(handler->handler_of, of);
    assert_ptr_equal(handler->handler_in, in);
    assert_true(handler->is_handler);
    assert_null(handler->body);
    assert_ptr_equal(rv__node_handler(handler), handler);
    assert_ptr_equal(rv__node_around(handler), of != NULL ? of->body : in);
    assert_int_equal(handler->loops_around, loops);
    if (handler->kind == NODE_STEP) {
        assert_int_equal(handler->step.config.timeout_ms, RV__HANDLER_TIMEOUT_MS);
        return;
    }
    assert_int_equal(handler->kind, NODE_SEQUENCE);
    assert_int_equal(handler->body_count, 1);
    assert_ptr_equal(rv__node_handler(handler->bodies[0].nodes[0]), handler);
    check_structure(plan, &handler->bodies[0], loops, seen);
}

static void every_node_knows_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZOO; i++) {
        struct rv__plan *plan = must_read(zoo[i]);
        uint32_t seen = 0;
        assert_null(plan->body.owner);
        check_structure(plan, &plan->body, 0, &seen);
        assert_int_equal(seen, plan->node_count);
        assert_null(rv__body_find(&plan->body, rv__str("nobody")));
        assert_null(rv__body_find(&plan->body, rv__str("")));
        assert_null(rv__body_find(&plan->body, rv__str("~")));
        rv__plan_free(plan);
    }
}

static void the_outermost_workflow_is_told_in_full(void **state)
{
    (void)state;
    struct rv__plan *plan = must_read(zoo[1]);
    assert_str(plan->body.wrap->name, "steps");
    assert_str(plan->description, "All \"kinds\" \xC3\xA9");
    assert_str(plan->body.wrap->schema,
               "{\"type\":\"object\",\"properties\":{\"z\":{},\"a\":{\"const\":1.50}}}");
    assert_str(plan->body.wrap->version, plan->version);
    assert_int_equal(plan->body.wrap->input.kind, EXPR_NONE);
    assert_str(plan->body.wrap->on_error->step.name, "tell");
    assert_str(plan->body.alias, "");
    rv__plan_free(plan);
}

static void paths_are_those_of_the_spec(void **state)
{
    (void)state;
    /* clang-format off */
    struct rv__plan *plan = must_read(
        "{\"name\":\"w\",\"steps\":["
        "{\"type\":\"step\",\"alias\":\"findTree\",\"name\":\"f\",\"onError\":{\"name\":\"h\"}},"
        "{\"type\":\"forEach\",\"alias\":\"processEach\",\"items\":[],\"run\":[{\"type\":\"step\",\"alias\":\"chargeItem\",\"name\":\"f\",\"onError\":{\"name\":\"h\"}},"
          "{\"type\":\"loop\",\"alias\":\"poll\",\"while\":1,\"body\":{\"type\":\"workflow\",\"name\":\"v\",\"steps\":[{\"type\":\"step\",\"alias\":\"look\",\"name\":\"f\"}],\"onError\":{\"name\":\"h\"}}}]},"
        "{\"type\":\"concurrent\",\"alias\":\"notify\",\"steps\":[{\"type\":\"step\",\"alias\":\"email\",\"name\":\"f\",\"onError\":{\"name\":\"h\"}},{\"alias\":\"sms\",\"nodes\":[{\"type\":\"step\",\"name\":\"f\"}]},"
          "{\"type\":\"workflow\",\"alias\":\"fax\",\"name\":\"v\",\"steps\":[{\"type\":\"step\",\"name\":\"f\"}],\"onError\":{\"name\":\"h\"}},"
          "{\"type\":\"workflow\",\"alias\":\"pager\",\"when\":1,\"name\":\"v\",\"steps\":[{\"type\":\"step\",\"name\":\"f\"}],\"onError\":{\"name\":\"h\"}}]},"
        "{\"type\":\"branch\",\"alias\":\"decide\",\"if\":1,\"then\":[{\"type\":\"step\",\"alias\":\"pay\",\"name\":\"f\"}],\"else\":[{\"type\":\"step\",\"name\":\"f\"}]},"
        "{\"type\":\"workflow\",\"alias\":\"pay\",\"name\":\"payment\",\"steps\":[{\"type\":\"step\",\"alias\":\"charge\",\"name\":\"f\"}],\"onError\":{\"name\":\"h\"}}"
        "],\"onError\":{\"name\":\"h\"}}");
    static const char *const plain[] = {
        "findTree", "findTree:onError",
        "processEach", "processEach:run:node0:chargeItem", "processEach:run:node0:chargeItem:onError",
        "processEach:run:node1:poll", "processEach:run:node1:poll:body:node0:look", "processEach:run:node1:poll:body:onError",
        "notify", "notify:email", "notify:email:onError", "notify:sms:node0:f", "notify:fax:node0:f", "notify:fax:onError",
        "notify:pager", "notify:pager:node0:f", "notify:pager:onError",
        "decide", "decide:then:node0:pay", "decide:else:node0:f",
        "pay", "pay:node0:charge", "pay:onError",
        "onError",
    };
    static const char *const iterated[] = {
        "processEach", "processEach:iter3:node0:chargeItem", "processEach:iter3:node0:chargeItem:onError",
        "processEach:iter3:node1:poll", "processEach:iter3:node1:poll:iter12345:node0:look", "processEach:iter3:node1:poll:iter12345:onError",
    };
    /* clang-format on */
    static const int64_t vector[] = { 3, 12345 };
    struct rv__buf buf;
    rv__buf_init(&buf, 10000);
    assert_int_equal(plan->node_count, sizeof plain / sizeof *plain);
    for (uint32_t i = 0; i < plan->node_count; i++) {
        rv__buf_reset(&buf);
        rv__node_path(plan->nodes[i], NULL, &buf);
        assert_string_equal(buf.text, plain[i]);
    }
    for (uint32_t i = 0; i < sizeof iterated / sizeof *iterated; i++) {
        rv__buf_reset(&buf);
        rv__node_path(plan->nodes[2 + i], vector, &buf);
        assert_string_equal(buf.text, iterated[i]);
    }
    rv__buf_reset(&buf);
    rv__body_path(&plan->body, NULL, &buf);
    rv__body_path(&node_by_path(plan, "pay")->bodies[0], NULL, &buf);
    rv__buf_char(&buf, ' ');
    rv__body_path(&node_by_path(plan, "decide")->bodies[1], NULL, &buf);
    rv__buf_char(&buf, ' ');
    rv__body_path(&node_by_path(plan, "processEach")->bodies[0], vector, &buf);
    assert_string_equal(buf.text, "pay decide:else processEach:iter3");
    rv__buf_done(&buf);
    rv__plan_free(plan);
}

static void constants_of_delays_and_signals_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *with;
        int64_t ms;
    } delays[] = {
        { "0", 0 },
        { "250", 250 },
        { "{\"ms\":7}", 7 },
        { "{\"milliseconds\":8}", 8 },
        { "{\"seconds\":1.5}", 1500 },
        { "{\"seconds\":0.0014}", 1 },
        { "{\"seconds\":0.0016}", 2 },
        { "1e3", 1000 },
        { "3155760000000", 3155760000000 },
        { "\"${ .x }\"", -1 },
        { "{\"seconds\":\"${ .x }\"}", -1 },
    };
    static const struct {
        const char *with, *name, *otherwise;
        int64_t ms;
    } signals[] = {
        { "{\"name\":\"go\"}", "go", NULL, 0 },
        { "{\"name\":\"g\\u006f\",\"timeout\":50,\"default\":{ \"a\" : null }}", "go",
          "{\"a\":null}", 50 },
        { "{\"default\":null,\"name\":\"x y\"}", "x y", "null", 0 },
        { "{\"name\":\"ok-${ .x }\"}", NULL, NULL, 0 },
        { "{\"name\":\"go\",\"timeout\":\"${ .x }\"}", NULL, NULL, 0 },
    };
    char json[300];
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        snprintf(json, sizeof json,
                 "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"kind\":\"delay\",\"with\":%s}]}",
                 delays[i].with);
        struct rv__plan *plan = must_read(json);
        if (plan->nodes[0]->step.delay_ms != delays[i].ms)
            fail_msg("%s: %lld", json, (long long)plan->nodes[0]->step.delay_ms);
        rv__plan_free(plan);
    }
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        snprintf(json, sizeof json,
                 "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"kind\":\"signal\",\"with\":%s}]}",
                 signals[i].with);
        struct rv__plan *plan = must_read(json);
        const struct rv__node *node = plan->nodes[0];
        assert_str(node->step.signal, signals[i].name);
        assert_str(node->step.signal_default, signals[i].otherwise);
        assert_int_equal(rv__str_none(node->step.signal), signals[i].name == NULL);
        assert_int_equal(node->step.signal_timeout_ms, signals[i].ms);
        rv__plan_free(plan);
    }
}

/* Of a chat, the scope of its request and of its tool. */
static void a_chat_has_a_scope(void **state)
{
#define CHAT(more)                                        \
    "{\"type\":\"chat\",\"alias\":\"c\",\"with\":{}" more \
    ",\"tools\":[{\"type\":\"step\",\"alias\":\"t\",\"name\":\"f\"}]}"
#define STATE(access, agent)                                                                \
    "{\"type\":\"stage\",\"alias\":\"g\",\"states\":[{\"alias\":\"s\",\"access\":\"" access \
    "\",\"agent\":" agent "}]}"
#define FLOW(steps) "{\"type\":\"workflow\",\"name\":\"v\",\"steps\":[" steps "]}"
    static const struct {
        const char *json;
        enum rv__access access;
        bool fenced; /* is its tool? */
    } rows[] = {
        { CHAT(""), ACCESS_NONE, true },
        { CHAT(",\"access\":\"logs\""), ACCESS_LOGS, true },
        { CHAT(",\"access\":\"explicit\""), ACCESS_LOGS, true },
        { CHAT(",\"access\":\"all\""), ACCESS_ALL, false },
        { STATE("all", CHAT("")), ACCESS_ALL, false },
        { STATE("logs", CHAT("")), ACCESS_LOGS, true },
        { STATE("explicit", CHAT("")), ACCESS_EXPLICIT, true },
        { STATE("all", CHAT(",\"access\":\"explicit\"")), ACCESS_EXPLICIT, true },
        { STATE("none", CHAT(",\"access\":\"all\"")), ACCESS_NONE, true },
        { STATE("all", FLOW(CHAT(""))), ACCESS_NONE, true },
        { STATE("explicit", FLOW(CHAT(",\"access\":\"all\""))), ACCESS_LOGS, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture fx;
        char json[512];
        snprintf(json, sizeof json, "{\"name\":\"w\",\"steps\":[%s]}", rows[i].json);
        fixture_compile(&fx, json, NULL);
        if (fx.rc < 0)
            fail_msg("%s: %s", rows[i].json, fx.err.message);
        const struct rv__node *chat = fx.plan->body.nodes[0];
        while (chat->kind != NODE_CHAT)
            chat = chat->bodies[0].nodes[0];
        bool turn_scoped = false, tool_scoped = false;
        enum rv__access turn = rv__node_access(chat->bodies[0].nodes[0], &turn_scoped);
        const struct rv__node *tool = chat->bodies[1].nodes[0];
        if (turn != rows[i].access || rv__node_access(tool, &tool_scoped) != rows[i].access ||
            !turn_scoped || !tool_scoped)
            fail_msg("%s: it has the scope %s", rows[i].json, rv__access_name(turn));
        if ((rv__node_fence(tool) != NULL) != rows[i].fenced)
            fail_msg("%s: its tool is not fenced as it should be", rows[i].json);
        if (rv__node_fence(chat->bodies[0].nodes[0]) == &chat->bodies[0])
            fail_msg("%s: what its prompt says is its author's", rows[i].json);
        fixture_done(&fx);
    }
#undef CHAT
#undef STATE
#undef FLOW
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    struct rv__plan *plan = must_read(zoo[2]);
    const struct rv__node *step = node_by_path(plan, "b2:then:node0:f");
    assert_int_equal(step->step.config.timeout_ms, 0);
    assert_int_equal(step->step.config.on_timeout, ON_TIMEOUT_STOP);
    assert_int_equal(step->step.config.max_attempts, 0);
    assert_int_equal(step->step.config.backoff, BACKOFF_LINEAR);
    assert_int_equal(step->step.config.backoff_base_ms, 100);
    assert_int_equal(step->step.config.max_backoff_ms, 60000);
    assert_true(step->step.config.jitter == 0);
    assert_int_equal(node_by_path(plan, "l")->loop.max_iterations, 1000);
    assert_int_equal(node_by_path(plan, "l")->loop.keep, KEEP_ALL);
    assert_int_equal(node_by_path(plan, "e2")->foreach.concurrency, 0);
    assert_int_equal(node_by_path(plan, "c")->concurrent.join, RV__JOIN_ALL);
    rv__plan_free(plan);
}

static void implied_aliases_are_made_unique(void **state)
{
    (void)state;
#define A49  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A196 A49 A49 A49 A49
    struct rv__plan *plan = must_read(
        "{\"name\":\"w\",\"steps\":["
        "{\"type\":\"step\",\"alias\":\"f_2\",\"name\":\"x\"},{\"type\":\"step\",\"name\":\"f\"},"
        "{\"type\":\"step\",\"name\":\"f\"},{\"type\":\"step\",\"name\":\"f_2\"},"
        "{\"type\":\"step\",\"name\":\"f_\"},{\"type\":\"step\",\"name\":\"f_\"},"
        "{\"type\":\"step\",\"kind\":\"http\"},{\"type\":\"step\",\"kind\":\"http\"},"
        "{\"type\":\"step\",\"kind\":\"call\",\"name\":\"f\"},"
        "{\"type\":\"workflow\",\"name\":\"f\",\"steps\":[{\"type\":\"step\",\"kind\":\"tool\"}]},"
        "{\"type\":\"step\",\"name\":\"" A196 "abcd\"},{\"type\":\"step\",\"name\":\"" A196
        "abcd\"},"
        "{\"type\":\"step\",\"name\":\"" A196 "a_cd\"},{\"type\":\"step\",\"name\":\"" A196
        "a_cd\"}"
        "]}");
    static const char *const aliases[] = {
        "f_2",           "f",   "f_3", "f_2_2",     "f_",        "f_4",       "httpRequest",
        "httpRequest_2", "f_5", "f_6", A196 "abcd", A196 "ab_2", A196 "a_cd", A196 "a_2",
    };
    assert_int_equal(plan->body.count, sizeof aliases / sizeof *aliases);
    for (uint32_t i = 0; i < plan->body.count; i++)
        assert_str(plan->body.nodes[i]->alias, aliases[i]);
    rv__plan_free(plan);
}

/* ------------------------------------------------------------------------------- hostile --- */

/* Of CPU time: how busy the machine is does not matter. */
static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void expect_read(struct rv__buf *json, int rc, const char *message)
{
    struct rv__plan *plan = NULL;
    rv_error err = { 0, "" };
    double begin = seconds();
    assert_int_equal(rv__buf_err(json, NULL), RV_OK);
    int got = rv__plan_read(rv__buf_view(json), &plan, &err);
    rv__plan_free(plan);
    if (got != rc || strstr(err.message, message) == NULL)
        fail_msg("rc %d: %s", got, err.message);
    if (seconds() - begin > 5)
        fail_msg("%s took %g s", message, seconds() - begin);
    rv__buf_reset(json);
}

static void hostile_texts_are_refused_quickly(void **state)
{
    (void)state;
    struct rv__buf json;
    rv__buf_init(&json, 64 << 20);

    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[");
    for (int i = 0; i < 100000; i++)
        rv__buf_text(&json, "{\"type\":\"forEach\",\"items\":[],\"run\":[");
    expect_read(&json, RV_ETOOBIG, "deep");

    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[");
    for (int i = 0; i < 120; i++) /* fits JSON, but not a plan */
        rv__buf_text(&json, "{\"type\":\"forEach\",\"items\":[],\"run\":[");
    for (int i = 0; i < 120; i++)
        rv__buf_text(&json, "]}");
    rv__buf_text(&json, "]}");
    expect_read(&json, RV_ETOOBIG,
                "the plan is nested deeper than 100 levels, nested workflows included");

    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[");
    for (int i = 0; i < 120; i++)
        rv__buf_fmt(&json, "{\"type\":\"workflow\",\"name\":\"w%d\",\"steps\":[", i);
    for (int i = 0; i < 120; i++)
        rv__buf_text(&json, "]}");
    rv__buf_text(&json, "]}");
    expect_read(&json, RV_ETOOBIG,
                "the plan is nested deeper than 100 levels, nested workflows included");

    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[{}");
    for (int i = 0; i < 1000000; i++)
        rv__buf_text(&json, ",{}");
    rv__buf_text(&json, "]}");
    expect_read(&json, RV_ETOOBIG, "the workflow has more than 100000 nodes");

    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[{}");
    for (int i = 0; i < 100000; i++)
        rv__buf_text(&json, ",{}");
    rv__buf_text(&json, "]}");
    expect_read(&json, RV_ETOOBIG, "the workflow has more than 100000 nodes");

    rv__buf_text(&json,
                 "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"kind\":\"value\",\"with\":\"");
    while (json.len < RV__PLAN_MAX_BYTES)
        rv__buf_text(&json, "xxxxxxxxxxxxxxxx");
    rv__buf_text(&json, "\"}]}");
    expect_read(&json, RV_ETOOBIG, "the workflow's text has more than 16777216 bytes");

    rv__buf_text(&json,
                 "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"name\":\"f\",\"needs\":[\"a\"");
    for (int i = 0; i < 1000000; i++)
        rv__buf_text(&json, ",\"a\"");
    rv__buf_text(&json, "]}]}");
    expect_read(&json, RV_EINVAL, "invalid needs");

    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"alias\":\"");
    for (int i = 0; i < 1 << 16; i++)
        rv__buf_text(&json, "xxxxxxxxxxxxxxxx");
    rv__buf_text(&json, "\",\"name\":\"f\"}]}");
    expect_read(&json, RV_EINVAL, "it is longer than 200 bytes");

    rv__buf_text(&json, "{\"name\":\"w\"");
    for (int i = 0; i < 500000; i++) /* the same key, and keys of no meaning */
        rv__buf_text(&json, ",\"steps\":[],\"x\":0");
    rv__buf_text(&json, "}");
    expect_read(&json, RV_EINVAL, "x: unknown key 'x' of a workflow");
    rv__buf_done(&json);
}

/* A large value at the greatest depth: read, checked and written a few times, not once a level. */
static void depth_does_not_multiply_size(void **state)
{
    (void)state;
    struct rv__buf json;
    rv__buf_init(&json, 64 << 20);
    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[");
    for (int i = 0; i < 99; i++)
        rv__buf_fmt(&json, "{\"type\":\"workflow\",\"name\":\"w%d\",\"steps\":[", i);
    rv__buf_text(&json, "{\"type\":\"step\",\"kind\":\"value\",\"with\":\"");
    while (json.len < RV__PLAN_MAX_BYTES - 20000)
        rv__buf_text(&json, "xxxxxxxxxxxxxxxx");
    rv__buf_text(&json, "\"}]}");
    for (int i = 0; i < 99; i++)
        rv__buf_text(&json, "]}");
    expect_read(&json, RV_OK, "");
    rv__buf_done(&json);
}

/* The plan alone can be a little larger than the text it came from: aliases, versions. */
static void a_plan_that_would_not_fit_on_disk_is_refused(void **state)
{
    (void)state;
    struct rv__buf json;
    rv__buf_init(&json, 64 << 20);
    rv__buf_text(&json,
                 "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"kind\":\"value\",\"with\":\"");
    while (json.len < RV__PLAN_MAX_BYTES - 10)
        rv__buf_char(&json, 'x');
    rv__buf_text(&json, "\"}]}");
    expect_read(&json, RV_ETOOBIG, "the plan's JSON text has more than 16777216 bytes");
    rv__buf_done(&json);
}

/* -------------------------------------------------------------------------------- growth --- */

static double compile_seconds(uint32_t count, const char *node)
{
    struct rv__buf json;
    double best = 1e9;
    rv__buf_init(&json, RV__PLAN_MAX_BYTES);
    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[");
    for (uint32_t i = 0; i < count; i++) {
        rv__buf_text(&json, i ? "," : "");
        rv__buf_fmt(&json, "%s", node);
    }
    rv__buf_text(&json, "]}");
    for (int i = 0; i < 5; i++) {
        double begin = seconds();
        struct rv__plan *plan = must_read(json.text);
        double took = seconds() - begin;
        assert_int_equal(plan->body.count, count);
        rv__plan_free(plan);
        best = took < best ? took : best;
    }
    rv__buf_done(&json);
    return best;
}

static void a_sequence_ten_times_as_long_takes_ten_times_as_long(void **state)
{
    (void)state;
    const char *node = "{\"type\":\"step\",\"name\":\"f\"}"; /* all want the same alias */
    double few = compile_seconds(5000, node), many = compile_seconds(50000, node);
    print_message("# a node costs %.2f us of 5,000 and %.2f us of 50,000\n", few / 5000 * 1e6,
                  many / 50000 * 1e6);
    if (many >
        few * 10 * 6) /* slack for caches that others use, too; a square would be 10 times more */
        fail_msg("5,000 nodes: %g s, 50,000 nodes: %g s", few, many);
}

static void lookups_in_a_long_sequence_are_quick(void **state)
{
    (void)state;
    struct rv__buf json;
    rv__buf_init(&json, RV__PLAN_MAX_BYTES);
    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[");
    for (int i = 0; i < 50000; i++)
        rv__buf_fmt(&json, "%s{\"type\":\"step\",\"alias\":\"a%d\",\"name\":\"f\"}", i ? "," : "",
                    i * 7919 % 50000);
    rv__buf_text(&json, "]}");
    struct rv__plan *plan = must_read(json.text);
    double begin = seconds();
    for (uint32_t i = 0; i < plan->body.count; i++)
        assert_ptr_equal(rv__body_find(&plan->body, plan->body.nodes[i]->alias),
                         plan->body.nodes[i]);
    assert_true(seconds() - begin < 1);
    rv__plan_free(plan);
    rv__buf_done(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_kinds_are_those_of_the_json),
        cmocka_unit_test(a_kind_says_what_its_nodes_have),
        cmocka_unit_test(every_node_knows_its_place),
        cmocka_unit_test(the_outermost_workflow_is_told_in_full),
        cmocka_unit_test(paths_are_those_of_the_spec),
        cmocka_unit_test(constants_of_delays_and_signals_are_known),
        cmocka_unit_test(a_chat_has_a_scope),
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(implied_aliases_are_made_unique),
        cmocka_unit_test(hostile_texts_are_refused_quickly),
        cmocka_unit_test(depth_does_not_multiply_size),
        cmocka_unit_test(a_plan_that_would_not_fit_on_disk_is_refused),
        cmocka_unit_test(a_sequence_ten_times_as_long_takes_ten_times_as_long),
        cmocka_unit_test(lookups_in_a_long_sequence_are_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
