/* test_expr.c: templates and expressions: src/expr, from text to value. */
#include "unit/test.h"

#include "base/json.h"
#include "expr/set.h"
#include "unit/expr/loop.h"
#include "unit/expr/scope.h"

struct fixture {
    struct rv__exprs *set;
    struct loop loop;
    struct test_scope scope;
    struct rv__buf out;
    rv_error err;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    *state = fx;
    test_scope_init(&fx->scope);
    rv__buf_init(&fx->out, RV__EXPR_OUTPUT_BYTES);
    test_scope_put(&fx->scope, "input", NULL, NULL,
                   "{\"id\":12345678901234567890,\"one\":1.0,\"name\":\"a\\u0041\\n\",\"n\":3,"
                   "\"list\":[1, 2,3],\"key\":1,\"key\":2, \"deep\":{\"a b\":[{\"c\":true}]}}");
    test_scope_put(&fx->scope, "run", NULL, NULL, "{\"runId\":\"r1\"}");
    test_scope_put(&fx->scope, "steps", "a", "result", "{\"b\":[10,20],\"done\":false}");
    test_scope_put(&fx->scope, "steps", "a", "state", "{}");
    test_scope_put(&fx->scope, "steps", "a", "status", "\"completed\"");
    test_scope_put(&fx->scope, "steps", "my-step", "result", "null");
    test_scope_put(&fx->scope, "steps", "my-step", "state", "{\"description\":\"d\"}");
    test_scope_put(&fx->scope, "steps", "my-step", "status", "\"skipped\"");
    test_scope_put(&fx->scope, "lastStep", "result", NULL, "7");
    test_scope_put(&fx->scope, "lastStep", "state", NULL, "{}");
    test_scope_put(&fx->scope, "loop", "item", NULL, "{\"x\":5}");
    test_scope_put(&fx->scope, "loop", "index", NULL, "1");
    test_scope_put(&fx->scope, "loop", "items", NULL, "[4,{\"x\":5}]");
    test_scope_put(&fx->scope, "env", NULL, NULL, "{\"HOME\":\"/h\"}");
    assert_int_equal(rv__exprs_new(&fx->set, NULL), RV_OK);
    assert_int_equal(loop_init(&fx->loop, 0), RV_OK);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    rv__test_fail_alloc_after(-1);
    rv__exprs_unref(fx->set);
    loop_done(&fx->loop);
    test_scope_done(&fx->scope);
    rv__buf_done(&fx->out);
    free(fx);
    return 0;
}

/* A new set with this one template. */
static int renew(struct fixture *fx, const char *json, uint32_t *ret)
{
    rv__exprs_unref(fx->set);
    fx->set = NULL;
    assert_int_equal(rv__exprs_new(&fx->set, NULL), RV_OK);
    return rv__exprs_add(fx->set, rv__str(json), ret, &fx->err);
}

static int eval(struct fixture *fx, uint32_t number)
{
    rv__buf_reset(&fx->out);
    return loop_eval(&fx->loop, fx->set, number, &fx->scope.scope, &fx->out, &fx->err);
}

/* ------------------------------------------------------------------------ values, by table --- */

/* `template` is worth `value`; or its error contains `error`. */
static const struct row {
    const char *template, *value, *error;
} rows[] = {
    /* templates */
    { "5", "5", NULL },
    { "\"no expression\"", "\"no expression\"", NULL },
    { "{ \"a\" : [1, \"x\"] }", "{ \"a\" : [1, \"x\"] }", NULL },
    { "\"$${ .x }\"", "\"${ .x }\"", NULL },
    { "\"$ {\"", "\"$ {\"", NULL },
    { "\"a $${b} ${ .input.n } c\\n\"", "\"a ${b} 3 c\\n\"", NULL },
    { "\"${ .input.n }\"", "3", NULL },
    { "\"${.input.n}${.input.n}\"", "\"33\"", NULL },
    { "\" ${ .input.n }\"", "\" 3\"", NULL },
    { "\"${ .input.n } \"", "\"3 \"", NULL },
    { "\"\\u0024{ .input.n }\"", "3", NULL },
    { "{\"a\":[\"${ .input.list }\",{\"b\":\"<${ .input.list }>\"}],\"${ x }\":1}",
      "{\"a\":[[1, 2,3],{\"b\":\"<[1,2,3]>\"}],\"${ x }\":1}", NULL },
    { "\"say ${ .input.name }\"", "\"say a\\u0041\\n\"", NULL },
    { "\"say ${ .input.name | . }\"", "\"say aA\\n\"", NULL },
    { "\"say ${ {a: \\\"\\\\\\\"\\\"} }\"", "\"say {\\\"a\\\":\\\"\\\\\\\"\\\"}\"", NULL },
    { "\"${ .nothing }-${ .input.no.such }\"", "\"null-null\"", NULL },
    /* plain paths keep their bytes */
    { "\"${ .input.id }\"", "12345678901234567890", NULL },
    { "\"${ .input.one }\"", "1.0", NULL },
    { "\"${ .input.one | . }\"", "1", NULL },
    { "\"${ .input.key }\"", "2", NULL },
    { "\"${ .input.deep[\\\"a b\\\"][0].c }\"", "true", NULL },
    { "\"${ .input.deep.\\\"a b\\\"[-1].c }\"", "true", NULL },
    { "\"${ .input.list[7] }\"", "null", NULL },
    { "\"${ .input.list[-4] }\"", "null", NULL },
    { "\"${ .input[\\\"n\\\"] }\"", "3", NULL },
    { "\"${ .[\\\"input\\\"].n # the number\\n }\"", "3", NULL },
    { "\"${ .input.n.x }\"", NULL, "Cannot index number with \"x\"" },
    { "\"${ .input.list.x }\"", NULL, "Cannot index array with \"x\"" },
    { "\"${ .input[0] }\"", NULL, "Cannot index object with number" },
    { "\"${ .steps.a.result.b[1] }\"", "20", NULL },
    { "\"${ .steps.a }\"",
      "{\"result\":{\"b\":[10,20],\"done\":false},\"state\":{},\"status\":\"completed\"}", NULL },
    { "\"${ .steps[\\\"my-step\\\"].state.description }\"", "\"d\"", NULL },
    { "\"${ .steps.none.result.x }\"", "null", NULL },
    { "\"${ .steps.none }\"", "null", NULL },
    { "\"${ .steps.a.other }\"", "null", NULL },
    { "\"${ .lastStep }\"", "{\"result\":7,\"state\":{}}", NULL },
    { "\"${ .loop.item.x }\"", "5", NULL },
    { "\"${ .loop }\"", "{\"item\":{\"x\":5},\"index\":1,\"items\":[4,{\"x\":5}]}", NULL },
    { "\"${ .error.message }\"", "null", NULL },
    /* jq */
    { "\"${ .input.n + 1 }\"", "4", NULL },
    { "\"${ .steps | keys }\"", "[\"a\",\"my-step\"]", NULL },
    { "\"${ keys }\"", "[\"env\",\"input\",\"lastStep\",\"loop\",\"run\",\"steps\"]", NULL },
    { "\"${ . | .steps.a.result.done }\"", "false", NULL },
    { "\"${ .steps.a.result.b | length }\"", "2", NULL },
    { "\"${ .steps.a.result as {b: [$x, $y]} | .steps.a.status + \\\"\\\\($y)\\\" }\"",
      "\"completed20\"", NULL },
    { "\"${ [.input.list[] as $i | .input.n * $i] }\"", "[3,6,9]", NULL },
    { "\"${ if .input.n > 2 then .run.runId | length else .steps.a end }\"", "2", NULL },
    { "\"${ {run: .run | .runId, n: .input.n} }\"", "{\"run\":\"r1\",\"n\":3}", NULL },
    { "\"${ {input, \\\"run\\\"} | .input.n, .run.runId | select(. == 3) }\"", "3", NULL },
    { "\"${ reduce .input.list[] as $i (0; . + $i) }\"", "6", NULL },
    { "\"${ .loop.item | .x }\"", "5", NULL },
    { "\"${ \\\"}\\\" + \\\"\\\\({a: \\\"}\\\"}.a)\\\" }\"", "\"}}\"", NULL },
    { "\"${ [1, 2] # }\\n | add }\"", "3", NULL },
    { "\"${ def f(x): x * 2; f(.input.n) }\"", "6", NULL },
    { "\"${ .env.HOME | ltrimstr(\\\"/\\\") }\"", "\"h\"", NULL },
    { "\"${ {input: 1, env: 2} | .input + .env }\"", "3", NULL },
    { "\"${ .input.n as $input | $input }\"", "3", NULL },
    { "\"${ (.input | .n) + (.loop | .index) }\"", "4", NULL },
    { "\"${ label $out | .input.n, break $out }\"", "3", NULL },
    { "\"${ .lastStep.result // 0 }\"", "7", NULL },
    { "\"${ 1e1000 }\"", "1e999", NULL },
    { "\"${ .input.list | map(. * 2) | add / 4 }\"", "3", NULL },
    { "\"${ .input |= 5 | .input }\"", "5", NULL },
    { "\"${ .input.list | .[1] = 9 }\"", "[1,9,3]", NULL },
    { "\"${ .input.list | .[] += 1 }\"", "[2,3,4]", NULL },
    { "\"${ [(1,2) * (10,20)] == [10,20,20,40] }\"", "true", NULL },
    { "\"${ \\\"ab\\\" * 3 }\"", "\"ababab\"", NULL },
    { "\"${ \\\"banana\\\" | [index(\\\"an\\\"), rindex(\\\"an\\\"), indices(\\\"n\\\")] }\"",
      "[1,3,[2,4]]", NULL },
    { "\"${ 0 | todate }\"", "\"1970-01-01T00:00:00Z\"", NULL },
    { "\"${ [1,[2]] | fromstream(tostream) }\"", "[1,[2]]", NULL },
    /* what fails, says why */
    { "\"${ empty }\"", NULL, "yields no value" },
    { "\"${ 1, 2 }\"", NULL, "more than one value" },
    { "\"${ range(1000000000) }\"", NULL, "more than one value" },
    { "\"${ 1, error(\\\"late\\\") }\"", NULL, "late" },
    { "\"${ error(\\\"oh no\\\") }\"", NULL, "${ error(\"oh no\") }: oh no" },
    { "\"${ error({a: 1}) }\"", NULL, "{\"a\":1}" },
    { "\"${ .input.n | .x }\"", NULL, "Cannot index number with" },
    { "\"${ reduce range(600) as $i (1; [.]) }\"", NULL, "nested deeper" },
    { "\"${ reduce range(30) as $i ([]; [., .]) }\"", NULL, "the value is too large" },
};

static void a_template_is_worth_its_value(void **state)
{
    struct fixture *fx = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        uint32_t number;
        if (renew(fx, r->template, &number) < 0)
            fail_msg("%s: %s", r->template, fx->err.message);
        int rc = eval(fx, number);
        struct rv__str out = rv__buf_view(&fx->out);
        if (r->value != NULL && (rc < 0 || !rv__str_is(out, r->value)))
            fail_msg("%s: %s", r->template, rc < 0 ? fx->err.message : out.at);
        if (r->value == NULL && (rc == RV_OK || strstr(fx->err.message, r->error) == NULL))
            fail_msg("%s: %s", r->template, rc < 0 ? fx->err.message : out.at);
        if (r->value == NULL)
            assert_int_equal(fx->out.len, 0);
    }
}

/* What an expression is said to use is all it needs: with the whole scope it is worth the same. */
static void a_part_of_the_scope_is_as_good_as_all_of_it(void **state)
{
    struct fixture *fx = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        uint32_t number;
        assert_int_equal(renew(fx, r->template, &number), RV_OK);
        const struct rv__template *tpl = &fx->set->templates[number];
        for (size_t e = 0; e < tpl->expr_count; e++)
            tpl->exprs[e]->whole = true;
        int rc = eval(fx, number);
        if ((rc == RV_OK) != (r->value != NULL) ||
            (rc == RV_OK && !rv__str_is(rv__buf_view(&fx->out), r->value)))
            fail_msg("%s: %s", r->template, rc < 0 ? fx->err.message : fx->out.text);
    }
}

/* ------------------------------------------------------------------------ what is refused --- */

static const struct {
    const char *template, *error;
} refused[] = {
    { "\"${ .x\"", "at character 1: '${' without its '}'" },
    { "{\"a\":{\"b/c\":[0,\"xé ${ }\"]}}", "at /a/b~1c/1, character 4: there is no expression" },
    { "\"${ (1] }\"", "at character 6: expected ')' first" },
    { "\"${ 1) }\"", "')' closes nothing" },
    { "\"${ \\\"abc }\"", "a string does not end" },
    { "\"${ [1 }\"", "expected ']' first" },
    { "\"${ ` }\"", "no meaning in jq" },
    { "\"${ env.PATH }\"", "'.env' has the variables" },
    { "\"${ $ENV.PATH }\"", "$ENV is not available" },
    { "\"${ $ ENV }\"", "$ENV is not available" },
    { "\"${ \\\"\\\\(env)\\\" }\"", "env is not available" },
    { "\"${ {a: env} }\"", "env is not available" },
    { "\"${ {(env): 1} }\"", "env is not available" },
    { "\"${ [1, env] }\"", "env is not available" },
    { "\"${ input }\"", "the run's input is '.input'" },
    { "\"${ [inputs] }\"", "not available" },
    { "\"${ 1 | debug }\"", "at character 8: this name of jq is not available" },
    { "\"${ stderr }\"", "not available" },
    { "\"${ input_filename }\"", "not available" },
    { "\"${ input_line_number }\"", "not available" },
    { "\"${ $__loc__ }\"", "not available" },
    { "\"${ halt }\"", "not available" },
    { "\"${ halt_error }\"", "not available" },
    { "\"${ 1 | halt_error(1) }\"", "not available" },
    { "\"${ get_search_list }\"", "not available" },
    { "\"${ \\\"a\\\" | modulemeta }\"", "not available" },
    { "\"${ import \\\"a\\\" as a; 1 }\"", "not available" },
    { "\"${ include \\\"a\\\"; 1 }\"", "not available" },
    { "\"${ a::b }\"", "modules are not available" },
    { "\"${ _strindices(\\\"\\\") }\"", "not available" },
    { "\"${ rv__times(1; 2) }\"", "not available" },
};

static void what_is_not_available_is_refused(void **state)
{
    struct fixture *fx = *state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        uint32_t number;
        fx->err.message[0] = '\0';
        int rc = renew(fx, refused[i].template, &number);
        if (rc != RV_EPARSE || strstr(fx->err.message, refused[i].error) == NULL)
            fail_msg("%s: %d %s", refused[i].template, rc, fx->err.message);
    }
}

static void a_condition_is_one_expression(void **state)
{
    struct fixture *fx = *state;
    static const char *const bad[] = { "\"true\"", "true",         "\"a ${ 1 }\"", "\"${1}${2}\"",
                                       "null",     "[\"${ 1 }\"]", "\"$${ 1 }\"" };
    uint32_t number;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(rv__exprs_add_condition(fx->set, rv__str(bad[i]), &number, &fx->err),
                         RV_EPARSE);
        assert_non_null(strstr(fx->err.message, "${ }"));
    }
    assert_int_equal(
        rv__exprs_add_condition(fx->set, rv__str("\"${ .input.n > 1 }\""), &number, &fx->err),
        RV_OK);
    assert_int_equal(eval(fx, number), RV_OK);
    assert_true(rv__expr_truth(rv__buf_view(&fx->out)));
    assert_true(rv__expr_truth(rv__str("0")));
    assert_true(rv__expr_truth(rv__str("\"\"")));
    assert_false(rv__expr_truth(rv__str("null")));
    assert_false(rv__expr_truth(rv__str("false")));
}

/* -------------------------------------------------------------------------- what is used --- */

/* The uses of an expression as text: "steps.a input *" */
static const struct {
    const char *expr, *uses;
} uses[] = {
    { ".input.id", "input@4" },
    { ".steps.a.result + .steps[\"b c\"].result", "steps.a@4 steps.b c@22" },
    { ".steps | .a", "steps@4" },
    { ".steps.a.result | .steps.zzz", "steps.a@4" },
    { "(.input | .x) + .run.y", "input@5 run@20" },
    { "if .input | .x then .steps.a else .steps.b end | .c", "input@7 steps.a@24 steps.b@38" },
    { "{a: .input | .x, b: .run.z}", "input@8 run@24" },
    { ".input as [$x] | .run", "input@4 run@21" },
    { ".input as {a: $x} | .run.x", "input@4 run@24" },
    { "reduce .input[] as $x (0; $x) | .zzz", "input@11" },
    { "\"\\(.input | .x) \\(.run)\"", "input@7 run@22" },
    { ". as $all | 1", "*@4" },
    { "keys", "*@4" },
    { "..", "*@4" },
    { ".[\"input\"].x + 1", "input@4" },
    { ".[$x]", "*@4" },
    { "{input}", "*@5" },
    { "{\"input\"}", "*@5" },
    { "{\"a\": \"input\"}", "" },
    { "{a: 1}", "" },
    { ".input = 1", "input@4 *@11" },
    { "@json", "*@4" },
    { "@json \"x\\(.input)\"", "input@14" },
    { "null, true, $x.input", "" },
    { "1 | .steps.a", "" },
    { "(.input.x).steps.a", "input@5" },
    { ".steps?.a", "steps@4" },
    { "label $out | .input", "input@17" },
    { "[.input | .x, .y] | .steps.a", "input@5" },
    { "range(.input.x; .run.y)", "input@10 run@20" },
    { ".secrets.KEY", "secrets.KEY@4" },
    { ".[\"secrets\"][\"KEY\"] | length", "secrets.KEY@4" },
    { ".secrets | .KEY", "secrets@4" },
    { "{secrets}", "*@5" },
    { "getpath([\"secrets\", \"KEY\"])", "*@4" },
    { ". as $x | $x.secrets.KEY", "*@4" },
};

static void uses_are_told_from_the_text(void **state)
{
    struct fixture *fx = *state;
    struct rv__buf json, got;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        struct rv__expr_use use;
        uint32_t number;
        char text[256];
        snprintf(text, sizeof text, "${ %s }", uses[i].expr);
        rv__buf_init(&json, 1024);
        rv__buf_init(&got, 1024);
        rv__buf_json_str(&json, rv__str(text));
        if (renew(fx, json.text, &number) < 0)
            fail_msg("%s: %s", text, fx->err.message);
        rv__buf_text(&got, "");
        for (size_t u = 0; rv__exprs_use(fx->set, number, u, &use); u++) {
            rv__buf_text(&got, u > 0 ? " " : "");
            rv__buf_str(&got, rv__str_none(use.root) ? rv__str("*") : use.root);
            if (!rv__str_none(use.name)) {
                rv__buf_char(&got, '.');
                rv__buf_str(&got, use.name);
            }
            rv__buf_fmt(&got, "@%zu", use.character);
        }
        if (!rv__str_is(rv__buf_view(&got), uses[i].uses))
            fail_msg("%s: %s", uses[i].expr, got.text != NULL ? got.text : "");
        rv__buf_done(&json);
        rv__buf_done(&got);
    }
    assert_true(rv__expr_known_root(rv__str("lastStep")));
    assert_false(rv__expr_known_root(rv__str("inputs")));
}

/* ---------------------------------------------------------------------------- compiling --- */

struct complaints {
    int count;
    struct rv__expr_bad bad[8];
    char messages[8][200];
};

static void complain(void *arg, const struct rv__expr_bad *bad)
{
    struct complaints *all = arg;
    all->bad[all->count] = *bad;
    snprintf(all->messages[all->count++], 200, "%s", bad->message);
}

static void every_bad_expression_is_named_with_its_place(void **state)
{
    struct fixture *fx = *state;
    struct complaints all = { 0 };
    uint32_t good, first, second, third;
    assert_int_equal(rv__exprs_add(fx->set, rv__str("\"${ 1 + 1 }\""), &good, NULL), RV_OK);
    assert_int_equal(
        rv__exprs_add(fx->set, rv__str("{\"x\":\"é ${ .a | foo(1) }\"}"), &first, NULL), RV_OK);
    assert_int_equal(rv__exprs_add(fx->set, rv__str("\"${ 1 + }\""), &second, NULL), RV_OK);
    assert_int_equal(rv__exprs_add(fx->set, rv__str("\"${ \\\"a\\nb\\\" | $x }\""), &third, NULL),
                     RV_OK);
    assert_int_equal(rv__exprs_check(fx->set, &fx->loop.compiler, complain, &all, &fx->err),
                     RV_EPARSE);
    assert_int_equal(all.count, 3);
    assert_int_equal(all.bad[0].number, first);
    assert_str(all.bad[0].pointer, "/x");
    assert_int_equal(all.bad[0].character, 11);
    assert_string_equal(all.messages[0], "foo/1 is not defined");
    assert_string_equal(fx->err.message, "at /x, character 11: foo/1 is not defined");
    assert_int_equal(all.bad[1].number, second);
    assert_int_equal(all.bad[1].character, 8); /* the end */
    assert_string_equal(all.messages[1], "syntax error, the expression ends too early");
    assert_int_equal(all.bad[2].number, third);
    assert_int_equal(all.bad[2].character, 12);
    assert_string_equal(all.messages[2], "$x is not defined");
}

static void many_expressions_are_few_programs(void **state)
{
    struct fixture *fx = *state;
    enum { MANY = 300 }; /* more than one program takes */
    uint32_t numbers[MANY];
    char text[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "\"${ .input.n + %d }\"", i);
        assert_int_equal(rv__exprs_add(fx->set, rv__str(text), &numbers[i], NULL), RV_OK);
    }
    assert_int_equal(rv__exprs_check(fx->set, &fx->loop.compiler, NULL, NULL, &fx->err), RV_OK);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(eval(fx, numbers[i]), RV_OK);
        snprintf(text, sizeof text, "%d", i + 3);
        assert_str(rv__buf_view(&fx->out), text);
    }
}

static void a_set_works_on_after_an_error(void **state)
{
    struct fixture *fx = *state;
    uint32_t bad, good;
    assert_int_equal(rv__exprs_add(fx->set, rv__str("\"${ .input.n | error }\""), &bad, NULL), 0);
    assert_int_equal(rv__exprs_add(fx->set, rv__str("\"${ .input.n - 1 }\""), &good, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(eval(fx, bad), RV_EINVAL);
        assert_int_equal(eval(fx, good), RV_OK);
        assert_str(rv__buf_view(&fx->out), "2");
    }
}

/* ------------------------------------------------------------------------------- keeping --- */

static void big(struct fixture *fx, struct rv__buf *json, int count)
{
    (void)fx;
    rv__buf_init(json, 1 << 24);
    rv__buf_char(json, '[');
    for (int i = 0; i < count; i++)
        rv__buf_fmt(json, "%s{\"n\":%d,\"s\":\"\\u00e9\"}", i > 0 ? "," : "", i);
    rv__buf_char(json, ']');
}

static void a_text_without_blob_is_made_once(void **state)
{
    struct fixture *fx = *state;
    struct rv__buf json;
    uint32_t length, path;
    big(fx, &json, 500);
    test_scope_put(&fx->scope, "steps", "big", "result", json.text);
    fx->scope.pieces[fx->scope.count - 1].key = 77;
    test_scope_put(&fx->scope, "steps", "big", "status", "\"completed\"");
    assert_int_equal(
        rv__exprs_add(fx->set, rv__str("\"${ .steps.big.result | length }\""), &length, NULL), 0);
    assert_int_equal(
        rv__exprs_add(fx->set, rv__str("\"${ .steps.big.result[499].n }\""), &path, NULL), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(eval(fx, length), RV_OK);
        assert_str(rv__buf_view(&fx->out), "500");
        assert_int_equal(eval(fx, path), RV_OK);
        assert_str(rv__buf_view(&fx->out), "499");
    }
    assert_int_equal(fx->scope.texts, 1);
    rv__buf_done(&json);
}

/* Two of them in one question: each is who its blob is, here and in the process. */
static void a_reference_is_known_by_its_blob(void **state)
{
    struct fixture *fx = *state;
    uint32_t jq, path;
    test_scope_put(&fx->scope, "steps", "x", "result", "[1,2,3]");
    fx->scope.pieces[fx->scope.count - 1].reference = true;
    test_scope_put(&fx->scope, "steps", "y", "result", "[1,2,3,4]");
    fx->scope.pieces[fx->scope.count - 1].reference = true;
    assert_int_equal(rv__exprs_add(fx->set,
                                   rv__str("\"${ [.steps.x.result, .steps.y.result | length] }\""),
                                   &jq, NULL),
                     0);
    assert_int_equal(rv__exprs_add(fx->set,
                                   rv__str("\"${ .steps.x.result[2] }${ .steps.y.result[3] }\""),
                                   &path, NULL),
                     0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(eval(fx, jq), RV_OK);
        assert_str(rv__buf_view(&fx->out), "[3,4]");
        assert_int_equal(eval(fx, path), RV_OK);
        assert_str(rv__buf_view(&fx->out), "\"34\"");
    }
    assert_int_equal(fx->scope.texts, 2);
    assert_int_equal(fx->loop.values, 2);
}

static void a_quick_question_waits_for_nothing(void **state)
{
    struct fixture *fx = *state;
    struct rv__buf question;
    uint32_t number;
    test_scope_put(&fx->scope, "steps", "x", "result", "[1,2,3]");
    fx->scope.pieces[fx->scope.count - 1].far = true;
    assert_int_equal(renew(fx, "\"${ .steps.x.result | length }\"", &number), RV_OK);
    assert_int_equal(eval(fx, number), RV_OK); /* its program is there now */
    rv__buf_init(&question, 1 << 16);
    int rc = rv__exprs_ask(fx->set, number, fx->loop.texts, fx->loop.peer, &fx->scope.scope, true,
                           &question, &fx->err);
    rv__buf_done(&question);
    assert_int_equal(rc, RV_EBUSY);
    assert_int_equal(eval(fx, number), RV_OK);
    assert_str(rv__buf_view(&fx->out), "3");
}

static void only_what_is_used_is_fetched(void **state)
{
    struct fixture *fx = *state;
    uint32_t number;
    assert_int_equal(renew(fx, "\"${ .input.n + 1 }\"", &number), RV_OK);
    fx->scope.finds = 0;
    assert_int_equal(eval(fx, number), RV_OK);
    assert_int_equal(fx->scope.finds, 1);
    assert_int_equal(renew(fx, "\"${ .steps.a.result.b | add }\"", &number), RV_OK);
    fx->scope.finds = 0;
    assert_int_equal(eval(fx, number), RV_OK);
    assert_int_equal(fx->scope.finds, 4); /* result, state, status, error */
}

static void a_small_cache_forgets_and_stays_right(void **state)
{
    struct fixture *fx = *state;
    struct rv__buf json[3];
    static const char *const names[] = { "b0", "b1", "b2" };
    uint32_t jq[3], path[3];
    char text[80], expected[16];
    loop_done(&fx->loop);
    assert_int_equal(loop_init(&fx->loop, 100000), RV_OK);
    for (int i = 0; i < 3; i++) {
        big(fx, &json[i], 400 + i);
        test_scope_put(&fx->scope, "steps", names[i], "result", json[i].text);
        fx->scope.pieces[fx->scope.count - 1].key = i == 1 ? 5 : 0;
        snprintf(text, sizeof text, "\"${ .steps.b%d.result | length }\"", i);
        assert_int_equal(rv__exprs_add(fx->set, rv__str(text), &jq[i], NULL), RV_OK);
        snprintf(text, sizeof text, "\"${ .steps.b%d.result[-1].n }\"", i);
        assert_int_equal(rv__exprs_add(fx->set, rv__str(text), &path[i], NULL), RV_OK);
    }
    for (int round = 0; round < 12; round++) {
        int i = round % 3;
        assert_int_equal(eval(fx, jq[i]), RV_OK);
        snprintf(expected, sizeof expected, "%d", 400 + i);
        assert_str(rv__buf_view(&fx->out), expected);
        assert_int_equal(eval(fx, path[i]), RV_OK);
        snprintf(expected, sizeof expected, "%d", 399 + i);
        assert_str(rv__buf_view(&fx->out), expected);
    }
    for (int i = 0; i < 3; i++)
        rv__buf_done(&json[i]);
}

static void the_output_has_a_bound(void **state)
{
    struct fixture *fx = *state;
    uint32_t number;
    struct rv__buf out;
    assert_int_equal(renew(fx, "[\"${ [range(1000)] }\"]", &number), RV_OK);
    rv__buf_init(&out, 100);
    rv__buf_text(&out, "kept");
    assert_int_equal(loop_eval(&fx->loop, fx->set, number, &fx->scope.scope, &out, &fx->err),
                     RV_ETOOBIG);
    assert_str(rv__buf_view(&out), "kept");
    rv__buf_done(&out);
}

/* -------------------------------------------------------------------------------- memory --- */

static int add_and_eval(struct fixture *fx)
{
    struct rv__exprs *set = NULL;
    struct loop loop = { .rc = RV_OK };
    uint32_t number;
    int rc = rv__exprs_new(&set, NULL);
    if (rc == RV_OK)
        rc = loop_init(&loop, 0);
    if (rc == RV_OK)
        rc = rv__exprs_add(set,
                           rv__str("{\"a\":\"x ${ .input.name } $${ ${ .input.list | add }\","
                                   "\"b\":\"${ .steps.big.result[3].n }\",\"c\":\"${ .steps }\"}"),
                           &number, NULL);
    rv__buf_done(&fx->out);
    if (rc == RV_OK)
        rc = loop_eval(&loop, set, number, &fx->scope.scope, &fx->out, NULL);
    rv__exprs_unref(set);
    loop_done(&loop);
    return rc;
}

static void no_memory_is_an_error(void **state)
{
    struct fixture *fx = *state;
    struct rv__buf json;
    int rc;
    big(fx, &json, 60);
    test_scope_put(&fx->scope, "steps", "big", "result", json.text);
    fx->scope.pieces[fx->scope.count - 1].key = 9;
    TORTURE(rc, add_and_eval(fx), (void)0);
    assert_int_equal(rc, RV_OK);
    fx->out.text[38] = '\0';
    assert_string_equal(fx->out.text, "{\"a\":\"x a\\u0041\\n ${ 6\",\"b\":3,\"c\":{\"a\"");
    rv__buf_done(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_template_is_worth_its_value, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_of_the_scope_is_as_good_as_all_of_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_not_available_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_condition_is_one_expression, setup, teardown),
        cmocka_unit_test_setup_teardown(uses_are_told_from_the_text, setup, teardown),
        cmocka_unit_test_setup_teardown(every_bad_expression_is_named_with_its_place, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(many_expressions_are_few_programs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_set_works_on_after_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(a_text_without_blob_is_made_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_reference_is_known_by_its_blob, setup, teardown),
        cmocka_unit_test_setup_teardown(a_quick_question_waits_for_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(only_what_is_used_is_fetched, setup, teardown),
        cmocka_unit_test_setup_teardown(a_small_cache_forgets_and_stays_right, setup, teardown),
        cmocka_unit_test_setup_teardown(the_output_has_a_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_is_an_error, setup, teardown),
    };
    return cmocka_run_group_tests_name("expr", tests, NULL, NULL);
}
