/* test_draft.c: the builder, for src/plan/draft.c: what it makes, and what it survives. */
#include "unit/plan/plan_test.h"

#include <math.h>
#include <time.h>

#define NONE ((struct rv__expr){ EXPR_NONE, { NULL, 0 } })

static int free_draft(void **state)
{
    rv__draft_free(*state);
    return 0;
}

static struct rv__draft *new_draft(void **state, const char *name)
{
    struct rv__draft *draft = NULL;
    assert_int_equal(rv__draft_new(name, &draft, NULL), RV_OK);
    *state = draft;
    return draft;
}

/* Everything that can be built, once. */
static void build_all(struct rv__draft *draft, const struct rv__draft *nested)
{
    struct rv__draft_body *root = rv__draft_root(draft);
    rv__draft_description(draft, "everything");
    rv__draft_schema(draft, " { } ");
    struct rv__draft_opts opts = {
        .alias = "first",
        .when = rv__expr_json("\"${ .x }\""),
        .description = "Did \"${ .result }\"",
        .config = { .timeout_ms = 10,
                    .on_timeout = ON_TIMEOUT_RETRY,
                    .max_attempts = 3,
                    .backoff = BACKOFF_EXPONENTIAL,
                    .backoff_base_ms = 7,
                    .max_backoff_ms = 8,
                    .jitter = 0.5 },
        .needs = (const char *const[]){ NULL },
    };
    struct rv__draft_node *step = rv__draft_step(root, STEP_FUNCTION, "f", NULL, &opts);
    rv__draft_handler(draft, step, HANDLER_ON_ERROR, STEP_FUNCTION, "overruled", NULL);
    rv__draft_handler(draft, step, HANDLER_ON_ERROR, STEP_COMMAND, NULL, "[\"x\"]");
    rv__draft_step(
        root, STEP_CALL, "f", NULL,
        &(struct rv__draft_opts){ .needs = (const char *const[]){ "first", "first", NULL } });
    rv__draft_step(root, STEP_DELAY, NULL, "5", NULL);
    rv__draft_workflow(root, "named", NONE, NULL);
    rv__draft_inline(root, nested, rv__expr_function("in"), NULL);

    struct rv__draft_node *branch = rv__draft_branch(root, rv__expr_function("cond"), NULL);
    rv__draft_step(rv__draft_body(branch, 1, NULL, false), STEP_FUNCTION, "g", NULL, NULL);
    rv__draft_step(rv__draft_body(branch, 1, NULL, false), STEP_FUNCTION, "g", NULL, NULL);
    rv__draft_branch(root, rv__expr_json("true"), NULL); /* nothing in it at all */

    struct rv__draft_node *loop = rv__draft_loop(root, NONE, rv__expr_json("{\"fn\":\"done\"}"), 7,
                                                 KEEP_LAST, NULL);
    rv__draft_inline(rv__draft_body(loop, 0, NULL, true), nested, NONE, NULL);
    rv__draft_step(rv__draft_body(rv__draft_loop(root, rv__expr_json("1"), NONE, 0, KEEP_ALL, NULL),
                                  0, NULL, false),
                   STEP_FUNCTION, "g", NULL, NULL);
    struct rv__draft_node *each = rv__draft_foreach(root, rv__expr_json("[1]"), NONE, true, 2,
                                                    false, NULL);
    rv__draft_step(rv__draft_body(each, 0, NULL, true), STEP_VALUE, NULL, "1", NULL);

    struct rv__draft_node *block = rv__draft_concurrent(root, false, true, 2, NULL);
    rv__draft_step(rv__draft_body(block, 0, NULL, true), STEP_FUNCTION, "f", NULL, NULL);
    rv__draft_step(rv__draft_body(block, 1, "named", true), STEP_FUNCTION, "f", NULL,
                   &(struct rv__draft_opts){ .alias = "overruled" });
    rv__draft_step(rv__draft_body(block, 2, "list", false), STEP_FUNCTION, "f", NULL, NULL);
    rv__draft_step(rv__draft_body(block, 2, NULL, false), STEP_FUNCTION, "f", NULL, NULL);
    rv__draft_inline(rv__draft_body(block, 3, NULL, true), nested, NONE, NULL);
    rv__draft_handler(draft, NULL, HANDLER_ON_ERROR, STEP_FUNCTION, "h", NULL);
}

struct one_resolver {
    struct rv__resolver base;
    const struct rv__draft *draft;
    const char *name;
    int rc;
};

static int find_one(struct rv__resolver *self, struct rv__str name, const struct rv__draft **ret)
{
    struct one_resolver *one = (struct one_resolver *)self;
    if (one->rc < 0)
        return one->rc;
    if (!rv__str_is(name, one->name))
        return RV_ENOTFOUND;
    *ret = one->draft;
    return RV_OK;
}

static struct rv__draft *one_step(const char *name)
{
    struct rv__draft *draft = NULL;
    if (rv__draft_new(name, &draft, NULL) == RV_OK)
        rv__draft_step(rv__draft_root(draft), STEP_FUNCTION, "g", NULL, NULL);
    return draft;
}

/* clang-format off */
#define G        "{\"type\":\"step\",\"alias\":\"g\",\"kind\":\"function\",\"name\":\"g\"}"
/* clang-format on */

static void what_is_built_is_what_would_be_read(void **state)
{
    struct rv__draft *draft = new_draft(state, "all");
    struct rv__draft *inner = one_step("inner"), *named = one_step("named");
    struct one_resolver resolver = { { find_one }, named, "named", RV_OK };
    struct rv__plan *plan = NULL, *same;
    struct rv__buf out;
    rv_error err;

    build_all(draft, inner);
    if (rv__plan_compile(draft, &resolver.base, NULL, &plan, &err) < 0)
        fail_msg("%s", err.message);
    /* clang-format off */
    same = must_read(
        "{\"name\":\"all\",\"description\":\"everything\",\"input\":{},\"steps\":["
        "{\"type\":\"step\",\"alias\":\"first\",\"when\":\"${ .x }\",\"description\":\"Did \\\"${ .result }\\\"\",\"name\":\"f\","
          "\"timeout\":10,\"onTimeout\":\"retry\",\"maxAttempts\":3,\"backoff\":\"exponential\",\"backoffBaseMs\":7,\"maxBackoffMs\":8,\"jitter\":0.5,"
          "\"onError\":{\"kind\":\"command\",\"with\":[\"x\"]}},"
        "{\"type\":\"step\",\"kind\":\"call\",\"name\":\"f\",\"needs\":[\"first\",\"first\"]},"
        "{\"type\":\"step\",\"kind\":\"delay\",\"with\":5},"
        "{\"type\":\"workflow\",\"name\":\"named\",\"steps\":[" G "]},"
        "{\"type\":\"workflow\",\"name\":\"inner\",\"input\":{\"fn\":\"in\"},\"steps\":[" G "]},"
        "{\"type\":\"branch\",\"if\":{\"fn\":\"cond\"},\"then\":[],\"else\":[" G ",{\"type\":\"step\",\"name\":\"g\"}]},"
        "{\"type\":\"branch\",\"alias\":\"branch_2\",\"if\":true,\"then\":[]},"
        "{\"type\":\"loop\",\"until\":{\"fn\":\"done\"},\"maxIterations\":7,\"keep\":\"last\",\"body\":{\"type\":\"workflow\",\"name\":\"inner\",\"steps\":[" G "]}},"
        "{\"type\":\"loop\",\"while\":1,\"body\":" G "},"
        "{\"type\":\"forEach\",\"items\":[1],\"parallel\":true,\"concurrency\":2,\"run\":[{\"type\":\"step\",\"kind\":\"value\",\"with\":1}]},"
        "{\"type\":\"concurrent\",\"onFailure\":\"collect\",\"join\":2,\"steps\":[{\"type\":\"step\",\"name\":\"f\"},{\"type\":\"step\",\"alias\":\"named\",\"name\":\"f\"},"
          "{\"alias\":\"list\",\"nodes\":[{\"type\":\"step\",\"name\":\"f\"},{\"type\":\"step\",\"name\":\"f\"}]},"
          "{\"type\":\"workflow\",\"name\":\"inner\",\"steps\":[" G "]}]}],"
        "\"onError\":{\"name\":\"h\"}}");
    /* clang-format on */
    rv__buf_init(&out, RV__PLAN_MAX_BYTES);
    assert_int_equal(rv__plan_write(plan, &out, NULL), RV_OK);
    if (strcmp(plan->version, same->version) != 0)
        fail_msg("%s", out.text);
    rv__buf_done(&out);
    rv__plan_free(plan);
    rv__plan_free(same);
    rv__draft_free(inner);
    rv__draft_free(named);
}

static int build_and_compile(void)
{
    struct rv__draft *draft = NULL, *inner = one_step("inner"), *named = one_step("named");
    struct one_resolver resolver = { { find_one }, named, "named", RV_OK };
    struct rv__plan *plan = NULL;
    int rc = inner == NULL || named == NULL ? RV_ENOMEM : rv__draft_new("all", &draft, NULL);
    if (rc == RV_OK) {
        build_all(draft, inner);
        rc = rv__plan_compile(draft, &resolver.base, NULL, &plan, NULL);
    }
    rv__plan_free(plan);
    rv__draft_free(draft);
    rv__draft_free(inner);
    rv__draft_free(named);
    return rc;
}

static void no_memory_is_remembered_and_told_at_compile(void **state)
{
    (void)state;
    int rc;
    TORTURE(rc, build_and_compile(), (void)0);
    assert_int_equal(rc, RV_OK);
}

/* Violations of a draft that was built, as text. */
static void expect_refused(const struct rv__draft *draft, struct rv__resolver *resolver,
                           const char *expected)
{
    struct rv__arena arena;
    struct rv__violations bad;
    struct rv__plan *plan = NULL;
    struct rv__buf text;
    rv_error err;
    rv__arena_init(&arena, SIZE_MAX);
    rv__violations_init(&bad, &arena);
    rv__buf_init(&text, 1 << 20);
    int rc = rv__plan_compile(draft, resolver, &bad, &plan, &err);
    violations_text(&bad, &text);
    if (rc != RV_EINVAL || strcmp(text.text, expected) != 0)
        fail_msg("rc %d, got\n%s", rc, text.text ? text.text : err.message);
    rv__buf_done(&text);
    rv__arena_done(&arena);
}

static void what_only_a_builder_can_get_wrong_is_told_too(void **state)
{
    struct rv__draft *draft = new_draft(state, NULL);
    struct rv__draft_body *root = rv__draft_root(draft);
    rv__draft_description(draft, "\xFF");
    rv__draft_schema(draft, "{");
    rv__draft_step(root, STEP_KINDS, "a", NULL, NULL);
    rv__draft_step(root, STEP_FUNCTION, "\xFF", NULL, &(struct rv__draft_opts){ .alias = "u" });
    rv__draft_step(root, STEP_DELAY, NULL, "{", NULL);
    rv__draft_step(root, STEP_SIGNAL, NULL, "[,]", NULL);
    struct rv__draft_opts opts = {
        .alias = "c",
        .when = rv__expr_json("nope"),
        .config = { .timeout_ms = -1,
                    .on_timeout = (enum rv__on_timeout)9,
                    .max_attempts = -1,
                    .backoff = (enum rv__backoff)9,
                    .backoff_base_ms = -1,
                    .max_backoff_ms = -1,
                    .jitter = NAN },
    };
    rv__draft_step(root, STEP_FUNCTION, "c", NULL, &opts);
    struct rv__draft_node *loop = rv__draft_loop(
        root, rv__expr_json(NULL), rv__expr_function(NULL), -1, (enum rv__keep)9,
        &(struct rv__draft_opts){ .config = { .timeout_ms = 1 } });
    rv__draft_handler(draft, loop, HANDLER_ON_ERROR, STEP_FUNCTION, "h", NULL);
    struct rv__draft_node *each = rv__draft_foreach(root, NONE, NONE, false, -2, false, NULL);
    rv__draft_step(rv__draft_body(each, 0, NULL, true), STEP_FUNCTION, "f", NULL, NULL);
    rv__draft_step(rv__draft_body(each, 0, NULL, false), STEP_FUNCTION, "f", NULL, NULL);
    struct rv__draft_node *block = rv__draft_concurrent(root, true, false, -1, NULL);
    (void)rv__draft_body(block, 0, NULL, true);
    struct rv__draft_node *step = rv__draft_step(root, STEP_FUNCTION, "s", NULL, NULL);
    rv__draft_step(rv__draft_body(step, 0, NULL, false), STEP_FUNCTION, "lost", NULL, NULL);
    (void)rv__draft_body(loop, 1, NULL, false);
    (void)rv__draft_body(block, 5, NULL, false);
    struct rv__draft_node *nested = rv__draft_workflow(root, "n", NONE, NULL);
    (void)rv__draft_body(nested, 0, NULL, false);
    /* clang-format off */
    expect_refused(draft, NULL,
        "name: a workflow needs a 'name'\n"
        "description: invalid description: it is not UTF-8\n"
        "input: invalid input schema: line 1, column 2: expected a key in quotes, found the end of the text\n"
        "node: unknown kind 9 of a step\n"
        "u: invalid function '?': it is not UTF-8\n"
        "delay: invalid with: line 1, column 2: expected a key in quotes, found the end of the text\n"
        "signal: invalid with: line 1, column 2: expected a value, found ','\n"
        "c: invalid when: line 1, column 1: expected a value, found 'n'\n"
        "c: invalid timeout -1: must be milliseconds, above 0 and at most a hundred years\n"
        "c: invalid backoffBaseMs -1: must be milliseconds, not below 0 and at most a hundred years\n"
        "c: invalid maxBackoffMs -1: must be milliseconds, not below 0 and at most a hundred years\n"
        "c: invalid maxAttempts -1: must be at least 1\n"
        "c: invalid jitter nan: must be from 0 to 1\n"
        "c: unknown onTimeout 9: must be stop or retry\n"
        "c: unknown backoff 9: must be linear or exponential\n"
        "loop: a loop has no body 1\n"
        "loop: step-only config: 'timeout' is for steps, not for a loop\n"
        "loop: step-only config: 'onError' is for steps, not for a loop\n"
        "loop: a loop needs 'while' or 'until'\n"
        "loop: invalid maxIterations -1: must be at least 1\n"
        "loop: unknown keep 9: must be all, last or none\n"
        "loop: a loop needs 'body' with at least one node in it\n"
        "forEach: a forEach needs 'items'\n"
        "forEach: invalid concurrency -2: must be at least 1\n"
        "forEach: 'concurrency' is only for a forEach that is 'parallel'\n"
        "forEach:run: it must be one step or one workflow; there are 2\n"
        "concurrent: a concurrent has no body 5\n"
        "concurrent: invalid join -1: must be from 1 to the number of children, 1\n"
        "concurrent: 'join' cannot be used with 'continueOn' detached\n"
        "concurrent:child: a child that is a list of nodes needs an 'alias'\n"
        "concurrent:child: it has no nodes\n"
        "s: a step has no body 0\n"
        "n: a workflow has no body 0\n"
        "n: there is no workflow 'n'\n");
    /* clang-format on */
}

static void workflows_are_found_by_name(void **state)
{
    struct rv__draft *draft = new_draft(state, "outer");
    struct rv__draft *inner = one_step("inner");
    struct one_resolver resolver = { { find_one }, inner, "inner", RV_OK };
    struct rv__plan *plan = NULL;
    rv_error err;
    rv__draft_workflow(rv__draft_root(draft), "inner", rv__expr_json("5"), NULL);
    assert_int_equal(rv__plan_compile(draft, &resolver.base, NULL, &plan, &err), RV_OK);
    assert_str(plan->nodes[0]->alias, "inner");
    assert_str(plan->nodes[0]->bodies[0].wrap->name, "inner");
    assert_str(plan->nodes[0]->bodies[0].wrap->input.text, "5");
    rv__plan_free(plan);

    resolver.name = "else";
    expect_refused(draft, &resolver.base, "inner: there is no workflow 'inner'\n");
    resolver.rc = RV_ESTORE;
    assert_int_equal(rv__plan_compile(draft, &resolver.base, NULL, &plan, &err), RV_ESTORE);
    assert_string_equal(err.message, "workflow 'inner': the store failed");
    rv__draft_free(inner);
}

static void a_circle_by_name_or_by_draft_is_refused(void **state)
{
    struct rv__draft *a = new_draft(state, "a");
    struct rv__draft *b = one_step("b");
    struct one_resolver resolver = { { find_one }, a, "a", RV_OK };
    rv__draft_inline(rv__draft_root(a), b, NONE, NULL);
    rv__draft_workflow(rv__draft_root(b), "a", NONE, NULL);
    expect_refused(a, &resolver.base, "b:node1:a: workflow 'a' contains itself: a -> b -> a\n");
    rv__draft_inline(rv__draft_root(b), a, NONE, NULL);
    expect_refused(a, &resolver.base,
                   "b:node1:a: workflow 'a' contains itself: a -> b -> a\n"
                   "b:node2:a_2: workflow 'a' contains itself: a -> b -> a\n");
    rv__draft_free(b);
}

static void a_long_circle_is_told_by_its_ends(void **state)
{
    enum { LENGTH = 20 };
    struct rv__draft *chain[LENGTH];
    char name[16];
    chain[0] = new_draft(state, "w0");
    for (int i = 1; i < LENGTH; i++) {
        snprintf(name, sizeof name, "w%d", i);
        chain[i] = NULL;
        assert_int_equal(rv__draft_new(name, &chain[i], NULL), RV_OK);
        rv__draft_inline(rv__draft_root(chain[i - 1]), chain[i], NONE, NULL);
    }
    rv__draft_inline(rv__draft_root(chain[LENGTH - 1]), chain[0], NONE, NULL);
    expect_refused(
        chain[0], NULL,
        "w1:node0:w2:node0:w3:node0:w4:node0:w5:node0:w6:node0:w7:node0:w8:node0:w9:node0:w10:"
        "node0:w11:node0:w12:node0:w13:node0:w14:node0:w15:node0:w16:node0:w17:node0:w18:node0:w19:"
        "node0:w0: workflow 'w0' contains itself: w0 -> w1 -> w2 -> w3 -> … -> w16 -> w17 -> w18 "
        "-> "
        "w19 -> w0\n");
    for (int i = 1; i < LENGTH; i++)
        rv__draft_free(chain[i]);
}

/* -------------------------------------------------------------------------- beyond bounds --- */

/* Of CPU time: how busy the machine is does not matter. */
static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void expect_too_big(const struct rv__draft *draft, const char *message)
{
    struct rv__plan *plan = NULL;
    rv_error err = { 0, "" };
    int rc = rv__plan_compile(draft, NULL, NULL, &plan, &err);
    if (rc != RV_ETOOBIG || strcmp(err.message, message) != 0)
        fail_msg("rc %d: %s", rc, err.message);
}

static void a_hundred_thousand_levels_are_refused_quickly(void **state)
{
    double begin = seconds();
    struct rv__draft *draft = new_draft(state, "deep");
    struct rv__draft_body *body = rv__draft_root(draft);
    for (int i = 0; i < 100000; i++)
        body = rv__draft_body(
            rv__draft_foreach(body, rv__expr_json("[]"), NONE, false, 0, false, NULL), 0, NULL,
            false);
    rv__draft_step(body, STEP_FUNCTION, "f", NULL, NULL);
    expect_too_big(draft, "the plan is nested deeper than 100 levels, nested workflows included");
    assert_true(seconds() - begin < 1);
}

static void a_branch_too_deep_is_refused_as_well(void **state)
{
    struct rv__draft *draft = new_draft(state, "deep");
    struct rv__draft_body *body = rv__draft_root(draft);
    for (int i = 0; i < 300; i++) {
        struct rv__draft_node *branch = rv__draft_branch(body, rv__expr_json("1"), NULL);
        (void)rv__draft_body(branch, 0, NULL, false);
        body = rv__draft_body(branch, 1, "x", true);
    }
    expect_too_big(draft, "the plan is nested deeper than 100 levels, nested workflows included");
}

static void a_million_nodes_are_refused_quickly(void **state)
{
    double begin = seconds();
    struct rv__draft *draft = new_draft(state, "wide");
    for (int i = 0; i < 1000000; i++)
        rv__draft_step(rv__draft_root(draft), STEP_FUNCTION, "f", NULL, NULL);
    rv__draft_handler(draft, NULL, HANDLER_ON_ERROR, STEP_FUNCTION, "h", NULL);
    expect_too_big(draft, "the workflow has more than 100000 nodes");
    assert_true(seconds() - begin < 3);
}

static void an_alias_of_a_megabyte_is_refused_by_its_beginning(void **state)
{
    struct rv__draft *draft = new_draft(state, "w");
    char *alias = malloc((1 << 20) + 1);
    assert_non_null(alias);
    memset(alias, 'x', 1 << 20);
    alias[1 << 20] = '\0';
    for (int i = 0; i < 10; i++)
        rv__draft_step(rv__draft_root(draft), STEP_FUNCTION, "f", NULL,
                       &(struct rv__draft_opts){ .alias = alias });
    struct rv__plan *plan = NULL;
    rv_error err;
    assert_int_equal(rv__plan_compile(draft, NULL, NULL, &plan, &err), RV_EINVAL);
    assert_non_null(strstr(err.message, "…': it is longer than 200 bytes (and 9 more)"));
    for (int i = 0; i < 10; i++)
        rv__draft_step(rv__draft_root(draft), STEP_FUNCTION, "f", NULL,
                       &(struct rv__draft_opts){ .alias = alias });
    expect_too_big(draft, "the workflow has more than 16777216 bytes of text");
    free(alias);
}

static void a_description_may_be_too_long_as_well(void **state)
{
    struct rv__draft *draft = new_draft(state, "w");
    char *text = malloc((16 << 20) + 1);
    assert_non_null(text);
    memset(text, 'x', 16 << 20);
    text[16 << 20] = '\0';
    rv__draft_step(rv__draft_root(draft), STEP_FUNCTION, "f", NULL,
                   &(struct rv__draft_opts){ .description = text });
    expect_too_big(draft, "too big: a node's description");
    free(text);
}

/* Ten levels, each with the next one ten times: ten thousand million nodes. */
static void workflows_that_multiply_are_refused_quickly(void **state)
{
    enum { LEVELS = 10 };
    double begin = seconds();
    struct rv__draft *levels[LEVELS];
    char name[16];
    levels[0] = new_draft(state, "l0");
    for (int i = 1; i < LEVELS; i++) {
        snprintf(name, sizeof name, "l%d", i);
        levels[i] = one_step(name);
        assert_non_null(levels[i]);
        for (int k = 0; k < 10; k++)
            rv__draft_inline(rv__draft_root(levels[i - 1]), levels[i], NONE, NULL);
    }
    expect_too_big(levels[0],
                   "the plan has more than 100000 nodes, nested workflows and handlers included");
    assert_true(seconds() - begin < 2);
    for (int i = 1; i < LEVELS; i++)
        rv__draft_free(levels[i]);
}

/* The same workflow a thousand times, of which each has too much of something. */
static void whatever_multiplies_is_bounded(void **state)
{
    struct rv__draft *outer = new_draft(state, "outer");
    struct rv__draft *text = one_step("text"), *needs = one_step("needs"), *kids = one_step("kids");
    struct rv__draft *handled = one_step("handled");
    char *json = malloc(100003);
    const char **list = malloc(1001 * sizeof *list);
    assert_non_null(json);
    assert_non_null(list);
    memset(json, 'x', 100002);
    json[0] = json[100001] = '"';
    json[100002] = '\0';
    for (int i = 0; i < 1000; i++)
        list[i] = "g";
    list[1000] = NULL;
    rv__draft_step(rv__draft_root(text), STEP_VALUE, NULL, json, NULL);
    rv__draft_step(rv__draft_root(needs), STEP_FUNCTION, "f", NULL,
                   &(struct rv__draft_opts){ .needs = list });
    struct rv__draft_node *block = rv__draft_concurrent(rv__draft_root(kids), false, false, 0,
                                                        NULL);
    for (uint32_t i = 0; i < 1000; i++)
        (void)rv__draft_body(block, i, "kid", false);
    struct rv__draft_node *step = rv__draft_step(rv__draft_root(handled), STEP_FUNCTION, "f", NULL,
                                                 NULL);
    rv__draft_handler(handled, step, HANDLER_ON_ERROR, STEP_FUNCTION, "h", NULL);

    struct {
        struct rv__draft *draft;
        const char *message;
        int times;
    } rows[] = {
        { text, "the plan has more than 16777216 bytes of text, nested workflows included", 200 },
        { needs, "the plan's steps have more than 100000 'needs'", 200 },
        { kids, "the plan's concurrents have more than 100000 children, nested workflows included",
          200 },
        { handled, "the plan has more than 100000 nodes, nested workflows and handlers included",
          33333 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int k = 0; k < rows[i].times; k++)
            rv__draft_inline(rv__draft_root(outer), rows[i].draft, NONE, NULL);
        expect_too_big(outer, rows[i].message);
        rv__draft_free(outer);
        outer = new_draft(state, "outer");
    }
    rv__draft_free(text);
    rv__draft_free(needs);
    rv__draft_free(kids);
    rv__draft_free(handled);
    free(json);
    free(list);
}

/* As many nodes as there may be, half of them handlers, inside of one more. */
static void handlers_are_counted(void **state)
{
    struct rv__draft *outer = new_draft(state, "outer");
    struct rv__draft *inner = NULL;
    struct rv__plan *plan = NULL;
    assert_int_equal(rv__draft_new("inner", &inner, NULL), RV_OK);
    for (int i = 0; i < RV__PLAN_MAX_NODES / 2; i++) {
        struct rv__draft_node *step = rv__draft_step(rv__draft_root(inner), STEP_FUNCTION, "f",
                                                     NULL, NULL);
        rv__draft_handler(inner, step, HANDLER_ON_ERROR, STEP_FUNCTION, "h", NULL);
    }
    assert_int_equal(rv__plan_compile(inner, NULL, NULL, &plan, NULL), RV_OK);
    assert_int_equal(plan->node_count, RV__PLAN_MAX_NODES);
    rv__plan_free(plan);
    rv__draft_inline(rv__draft_root(outer), inner, NONE, NULL);
    expect_too_big(outer,
                   "the plan has more than 100000 nodes, nested workflows and handlers included");
    rv__draft_free(inner);
}

/* Each fits; nested in each other they are too deep. */
static void depth_counts_through_nested_workflows(void **state)
{
    enum { LENGTH = 101 };
    struct rv__draft *chain[LENGTH];
    char name[16];
    chain[0] = new_draft(state, "w0");
    for (int i = 1; i < LENGTH; i++) {
        snprintf(name, sizeof name, "w%d", i);
        chain[i] = NULL;
        assert_int_equal(rv__draft_new(name, &chain[i], NULL), RV_OK);
        rv__draft_inline(rv__draft_root(chain[i - 1]), chain[i], NONE, NULL);
    }
    rv__draft_step(rv__draft_root(chain[LENGTH - 1]), STEP_FUNCTION, "f", NULL, NULL);
    expect_too_big(chain[0],
                   "the plan is nested deeper than 100 levels, nested workflows included");

    struct rv__plan *plan = NULL; /* one less is fine, and can be written and read */
    struct rv__buf out;
    assert_int_equal(rv__plan_compile(chain[1], NULL, NULL, &plan, NULL), RV_OK);
    rv__buf_init(&out, RV__PLAN_MAX_BYTES);
    assert_int_equal(rv__plan_write(plan, &out, NULL), RV_OK);
    rv__plan_free(plan);
    plan = must_read(out.text);
    assert_int_equal(plan->node_count, 100);
    rv__plan_free(plan);
    rv__buf_done(&out);
    for (int i = 1; i < LENGTH; i++)
        rv__draft_free(chain[i]);
}

static void a_nested_draft_that_failed_fails_the_outer_one(void **state)
{
    struct rv__draft *outer = new_draft(state, "outer");
    struct rv__draft *inner = one_step("inner");
    struct rv__draft_body *body = rv__draft_root(inner);
    for (int i = 0; i < 2 * RV__PLAN_MAX_DEPTH + 1; i++) /* beyond the bound of the draft itself */
        body = rv__draft_body(
            rv__draft_foreach(body, rv__expr_json("[]"), NONE, false, 0, false, NULL), 0, NULL,
            false);
    rv__draft_inline(rv__draft_root(outer), inner, NONE, NULL);
    expect_too_big(outer, "workflow 'inner': the plan is nested deeper than 100 levels, nested "
                          "workflows included");
    rv__draft_free(inner);
}

/* A workflow given as a body is one level of a plan and two of its text's objects. */
static void the_deepest_workflows_as_bodies_can_be_read_back(void **state)
{
    enum { LEVELS = RV__PLAN_MAX_DEPTH - 1 };
    struct rv__draft *drafts[LEVELS];
    struct rv__plan *plan = NULL;
    struct rv__buf out;
    rv_error err = { 0, "" };
    (void)state;
    drafts[0] = one_step("w0");
    for (int i = 1; i < LEVELS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        assert_int_equal(rv__draft_new(name, &drafts[i], NULL), RV_OK);
        struct rv__draft_node *each = rv__draft_foreach(
            rv__draft_root(drafts[i]), rv__expr_json("[]"), NONE, false, 0, false, NULL);
        rv__draft_inline(rv__draft_body(each, 0, NULL, true), drafts[i - 1], NONE, NULL);
    }
    rv__buf_init(&out, RV__PLAN_MAX_BYTES);
    int rc = rv__plan_compile(drafts[LEVELS - 1], NULL, NULL, &plan, &err);
    if (rc == RV_OK)
        rc = rv__plan_write(plan, &out, &err);
    rv__plan_free(plan);
    plan = NULL;
    if (rc == RV_OK)
        rc = rv__plan_read(rv__buf_view(&out), &plan, &err);
    rv__plan_free(plan);
    rv__buf_done(&out);
    for (int i = 0; i < LEVELS; i++)
        rv__draft_free(drafts[i]);
    if (rc < 0)
        fail_msg("%s", err.message);
}

/* The deepest plan in the form that takes most JSON: a child with nodes in a child with nodes, with
 * the deepest value at its end. */
static void the_deepest_plan_can_be_written_and_read(void **state)
{
    struct rv__draft *draft = new_draft(state, "deep");
    struct rv__draft_body *body = rv__draft_root(draft);
    char value[2 * RV__PLAN_VALUE_DEPTH + 1];
    struct rv__plan *plan = NULL;
    struct rv__buf out;
    for (int i = 1; i < RV__PLAN_MAX_DEPTH; i++)
        body = rv__draft_body(rv__draft_concurrent(body, false, false, 0, NULL), 0, "child", false);
    memset(value, '[', RV__PLAN_VALUE_DEPTH);
    memset(value + RV__PLAN_VALUE_DEPTH, ']', RV__PLAN_VALUE_DEPTH);
    value[sizeof value - 1] = '\0';
    struct rv__draft_node *step = rv__draft_step(body, STEP_FUNCTION, "f", NULL, NULL);
    rv__draft_handler(draft, step, HANDLER_ON_ERROR, STEP_VALUE, NULL, value);
    assert_int_equal(rv__plan_compile(draft, NULL, NULL, &plan, NULL), RV_OK);
    rv__buf_init(&out, RV__PLAN_MAX_BYTES);
    assert_int_equal(rv__plan_write(plan, &out, NULL), RV_OK);
    struct rv__plan *again = must_read(out.text);
    assert_string_equal(plan->version, again->version);
    rv__plan_free(plan);
    rv__plan_free(again);
    rv__buf_done(&out);
}

static void a_value_too_deep_is_a_violation(void **state)
{
    struct rv__draft *draft = new_draft(state, "w");
    char value[2 * (RV__PLAN_VALUE_DEPTH + 1) + 1];
    memset(value, '[', RV__PLAN_VALUE_DEPTH + 1);
    memset(value + RV__PLAN_VALUE_DEPTH + 1, ']', RV__PLAN_VALUE_DEPTH + 1);
    value[sizeof value - 1] = '\0';
    rv__draft_step(rv__draft_root(draft), STEP_VALUE, NULL, value, NULL);
    struct rv__plan *plan = NULL;
    rv_error err;
    assert_int_equal(rv__plan_compile(draft, NULL, NULL, &plan, &err), RV_EINVAL);
    assert_non_null(strstr(err.message, "value: invalid with: line 1, column 101: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_built_is_what_would_be_read, free_draft),
        cmocka_unit_test(no_memory_is_remembered_and_told_at_compile),
        cmocka_unit_test_teardown(what_only_a_builder_can_get_wrong_is_told_too, free_draft),
        cmocka_unit_test_teardown(workflows_are_found_by_name, free_draft),
        cmocka_unit_test_teardown(a_circle_by_name_or_by_draft_is_refused, free_draft),
        cmocka_unit_test_teardown(a_long_circle_is_told_by_its_ends, free_draft),
        cmocka_unit_test_teardown(a_hundred_thousand_levels_are_refused_quickly, free_draft),
        cmocka_unit_test_teardown(a_branch_too_deep_is_refused_as_well, free_draft),
        cmocka_unit_test_teardown(a_million_nodes_are_refused_quickly, free_draft),
        cmocka_unit_test_teardown(an_alias_of_a_megabyte_is_refused_by_its_beginning, free_draft),
        cmocka_unit_test_teardown(a_description_may_be_too_long_as_well, free_draft),
        cmocka_unit_test_teardown(workflows_that_multiply_are_refused_quickly, free_draft),
        cmocka_unit_test_teardown(whatever_multiplies_is_bounded, free_draft),
        cmocka_unit_test_teardown(handlers_are_counted, free_draft),
        cmocka_unit_test_teardown(depth_counts_through_nested_workflows, free_draft),
        cmocka_unit_test_teardown(a_nested_draft_that_failed_fails_the_outer_one, free_draft),
        cmocka_unit_test(the_deepest_workflows_as_bodies_can_be_read_back),
        cmocka_unit_test_teardown(the_deepest_plan_can_be_written_and_read, free_draft),
        cmocka_unit_test_teardown(a_value_too_deep_is_a_violation, free_draft),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
