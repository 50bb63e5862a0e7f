/* test_files.c: workflows from files, run by the testing kit: expressions of every kind, nested
 * workflows, inputs and descriptions. For src/work/{exprs,sight,builtin}.c and src/engine/register.c. */
#include "unit/test.h"

#include <sys/stat.h>

#include <rival/rival.h>

#include "define/workflow.h"

struct fixture {
    char folder[64];
    rv_engine *engine;
    rv_error err;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    if (fx == NULL)
        return -1;
    snprintf(fx->folder, sizeof fx->folder, "/tmp/rival-test-XXXXXX");
    *state = fx;
    if (mkdtemp(fx->folder) == NULL)
        return -1;
    return rv_test_engine_new(NULL, &fx->engine, &fx->err);
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    char command[200];
    rv_engine_free(fx->engine);
    snprintf(command, sizeof command, "rm -rf '%s'", fx->folder);
    int rc = system(command);
    free(fx);
    return rc;
}

static void write_file(struct fixture *fx, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", fx->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void load(struct fixture *fx, int expected)
{
    int rc = rv_register_dir(fx->engine, fx->folder, NULL, &fx->err);
    if (rc != expected)
        fail_msg("%d: %s", rc, rc < 0 ? fx->err.message : "");
}

/* Run it and compare one part of its results. */
static void expect(struct fixture *fx, const char *workflow, const char *input, const char *part)
{
    rv_run_info info;
    rv_outcome *outcome = NULL;
    if (rv_run(fx->engine, workflow, input, NULL, &info, &fx->err) < 0 ||
        rv_wait(fx->engine, NULL, info.run_id, NULL, &outcome, &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    if (strstr(outcome->results, part) == NULL && strstr(outcome->error, part) == NULL)
        fail_msg("%s\n%s %s", part, outcome->results, outcome->error);
    rv_outcome_free(outcome);
}

static void expressions_see_what_they_may_see(void **state)
{
    struct fixture *fx = *state;
    write_file(
        fx, "a.yaml",
        "name: a\n"
        "input: { type: object, properties: { n: { type: integer, default: 3 } } }\n"
        "steps:\n"
        "  - big: { value: \"${ .input.n }\" }\n"
        "  - sum: { value: { twice: \"${ .steps.big.result * 2 }\", text: \"n is ${ .input.n }\","
        " last: \"${ .lastStep.alias }\" }, description: \"made ${ .result.twice }\" }\n"
        "  - never: { when: \"${ .input.n > 100 }\", value: 1 }\n"
        "  - all: { value: \"${ .steps | keys }\" }\n"
        "  - who: { value: \"${ .run.stepName }\" }\n");
    load(fx, 1);
    expect(fx, "a", NULL, "\"big\":{\"result\":3,");
    expect(fx, "a", "{\"n\":12345678901234567890}", "\"big\":{\"result\":12345678901234567890,");
    expect(fx, "a", "{\"n\":4}",
           "\"sum\":{\"result\":{\"twice\":8,\"text\":\"n is 4\",\"last\":\"big\"},\"state\":{"
           "\"description\":\"made 8\"},\"status\":\"completed\"}");
    expect(fx, "a", NULL, "\"never\":{\"result\":null,\"state\":{},\"status\":\"skipped\"}");
    expect(fx, "a", NULL, "\"all\":{\"result\":[\"big\",\"never\",\"sum\"],");
    expect(fx, "a", NULL, "\"who\":{\"result\":\"who\",");
}

/* As a path, and through jq. */
static void the_first_node_has_a_last_step_without_a_result(void **state)
{
    static const char first[] = "{\"state\":{},\"alias\":null,\"stepName\":null}";
    struct fixture *fx = *state;
    char part[256];
    write_file(fx, "a.yaml",
               "name: a\nsteps:\n"
               "  - first: { value: { whole: \"${ .lastStep }\", jq: \"${ .lastStep | . }\", "
               "all: \"${ .lastStep | keys }\", stepName: \"${ .lastStep.stepName }\" } }\n");
    load(fx, 1);
    snprintf(part, sizeof part,
             "\"first\":{\"result\":{\"whole\":%s,\"jq\":%s,"
             "\"all\":[\"alias\",\"state\",\"stepName\"],\"stepName\":null}",
             first, first);
    expect(fx, "a", NULL, part);
}

static void supervisors_run_on_expressions(void **state)
{
    struct fixture *fx = *state;
    write_file(
        fx, "b.yaml",
        "name: b\n"
        "steps:\n"
        "  - each: { forEach: \"${ [1,2,3] }\", parallel: true, run: [ { double: { value: "
        "\"${ .loop.item * 2 }\" } } ] }\n"
        "  - total: { value: \"${ [.steps.each.result.iterations[].results.double.result] | add "
        "}\" }\n"
        "  - pick: { if: \"${ .steps.total.result > 10 }\", then: [ { yes: { value: big } } ], "
        "else: [ { no: { value: small } } ] }\n"
        "  - count: { loop: [ { up: { value: \"${ (.steps.up.result // 0) + 1 }\" } } ], until: "
        "\"${ .steps.up.result >= 4 }\", keep: last }\n"
        "  - thrice: { loop: [ { x: { value: 1 } } ], until: \"${ .loop.index >= 2 }\", keep: last "
        "}\n"
        "  - twice: { loop: [ { y: { value: 1 } } ], while: \"${ .loop.index < 2 }\", keep: last "
        "}\n"
        "  - both: { concurrent: { l: { value: 1 }, r: { value: \"${ .lastStep.alias }\" } } }\n"
        "  - rest: { delay: \"${ .steps.total.result * 1000 }\" }\n");
    load(fx, 1);
    int64_t begin = rv_test_now(fx->engine);
    expect(fx, "b", NULL, "\"total\":{\"result\":12,");
    assert_int_equal(rv_test_now(fx->engine) - begin, 12000);
    expect(fx, "b", NULL, "\"taken\":\"then\"");
    expect(fx, "b", NULL, "\"count\":{\"result\":{\"iterations\":[{\"index\":3,");
    expect(fx, "b", NULL, "\"thrice\":{\"result\":{\"iterations\":[{\"index\":2,");
    expect(fx, "b", NULL, "\"twice\":{\"result\":{\"iterations\":[{\"index\":1,");
    expect(fx, "b", NULL, "\"r\":{\"result\":\"twice\"");
}

static void nested_inputs_are_evaluated_and_checked(void **state)
{
    struct fixture *fx = *state;
    write_file(fx, "outer.yaml",
               "name: outer\nsteps:\n"
               "  - pay: { workflow: inner, input: { amount: \"${ .input.a }\" } }\n"
               "  - after: { value: \"${ .steps.pay.result }\" }\n");
    write_file(
        fx, "inner.yaml",
        "name: inner\n"
        "input: { type: object, required: [amount], properties: { amount: { type: number }, "
        "currency: { default: EUR } } }\n"
        "steps:\n  - show: { value: \"${ .input.currency + (.input.amount | tostring) }\" }\n");
    load(fx, 2);
    expect(fx, "outer", "{\"a\":5}", "\"after\":{\"result\":\"EUR5\",");
    expect(fx, "outer", "{\"a\":\"x\"}", "the input of workflow 'inner' is refused: /amount");
}

static void loop_is_there_in_an_iteration_only(void **state)
{
    struct fixture *fx = *state;
    write_file(fx, "w.yaml",
               "name: w\n"
               "steps:\n"
               "  - out: { value: \"${ [has(\\\"loop\\\"), .loop, .loop.index, any(keys[]; . == "
               "\\\"loop\\\"), has(\\\"input\\\")] }\" }\n"
               "  - each: { forEach: [7], run: [ { in: { value: \"${ [has(\\\"loop\\\"), "
               ".loop.item] }\" } } ] }\n");
    load(fx, 1);
    expect(fx, "w", NULL, "\"out\":{\"result\":[false,null,null,false,true],");
    expect(fx, "w", NULL, "\"in\":{\"result\":[true,7],");
}

static void a_delay_obeys_its_time_out(void **state)
{
    struct fixture *fx = *state;
    write_file(fx, "w.yaml", "name: constant\nsteps: [ { d: { delay: 5s, timeout: 200ms } } ]\n");
    write_file(fx, "e.yaml",
               "name: computed\nsteps: [ { d: { delay: \"${ 5000 }\", timeout: 200ms } } ]\n");
    write_file(fx, "l.yaml",
               "name: enough\nsteps: [ { d: { delay: \"${ 200 }\", timeout: 200ms } } ]\n");
    load(fx, 3);
    expect(fx, "constant", "null", "step 'd' timed out after 200 ms");
    expect(fx, "computed", "null", "step 'd' timed out after 200 ms");
    expect(fx, "enough", "null", "\"delayedMs\":200");
}

/* Each kind of node, with a description of its result: seen in its state and in its line. */
static void every_kind_of_node_can_be_described(void **state)
{
    static const struct {
        const char *body, *says;
    } kinds[] = {
        { "value: 3, description: \"${ .result + 1 }\"", "4" },
        { "delay: 2s, description: \"${ .result.delayedMs }\"", "2000" },
        { "delay: \"${ 3000 }\", description: \"${ .result.delayedMs }\"", "3000" },
        { "signal: { name: no, timeout: 1s, default: 5 }, description: \"${ .result }\"", "5" },
        { "workflow: inner, description: \"${ .result } after ${ .lastStep.alias }\"",
          "7 after before" },
        { "if: \"${ true }\", then: [ { a: { value: 1 } } ], description: \"${ .result.taken }\"",
          "then" },
        { "loop: [ { a: { value: 1 } } ], until: \"${ true }\", description: \"${ "
          ".result.iterations | length }\"",
          "1" },
        { "forEach: [4, 5], run: [ { a: { value: 1 } } ], description: \"${ "
          "[.result.iterations[].item] }\"",
          "[4,5]" },
        { "concurrent: { a: { value: 8 } }, description: \"${ .result.a.result }\"", "8" },
        { "concurrent: { a: { value: 8 } }, continueOn: detached, description: \"went on\"",
          "went on" },
    };
    struct fixture *fx = *state;
    write_file(fx, "inner.yaml", "name: inner\nsteps: [ { a: { value: 7 } } ]\n");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char file[32], text[500];
        snprintf(file, sizeof file, "k%zu.yaml", i);
        snprintf(
            text, sizeof text,
            "name: k%zu\nsteps: [ { before: { value: 1 } }, { it: { %s } }, { after: { value: "
            "\"${ .steps.it.state.description }\" } }, { never: { when: \"${ false }\", %s } } "
            "]\n",
            i, kinds[i].body, kinds[i].body);
        write_file(fx, file, text);
    }
    load(fx, sizeof kinds / sizeof *kinds + 1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char name[32], after[100];
        rv_outcome *outcome = NULL;
        rv_node_list *nodes = NULL;
        snprintf(name, sizeof name, "k%zu", i);
        assert_int_equal(
            rv_run(fx->engine, name, NULL, RV_RUN_OPTS(.run_id = name), NULL, &fx->err), 0);
        assert_int_equal(rv_wait(fx->engine, NULL, name, NULL, &outcome, &fx->err), 0);
        snprintf(after, sizeof after, "\"after\":{\"result\":\"%s\"", kinds[i].says);
        if (strstr(outcome->results, after) == NULL ||
            strstr(outcome->results, "\"never\":{\"result\":null,\"state\":{},\"status\":"
                                     "\"skipped\"}") == NULL)
            fail_msg("%s: %s %s", kinds[i].body, outcome->results, outcome->error);
        assert_int_equal(rv_nodes(fx->engine, name, NULL, &nodes, &fx->err), 0);
        assert_string_equal(nodes->nodes[1].description, kinds[i].says);
        rv_node_list_free(nodes);
        rv_outcome_free(outcome);
    }
}

static void a_description_that_cannot_be_made_is_left_out(void **state)
{
    struct fixture *fx = *state;
    write_file(
        fx, "w.yaml",
        "name: w\nsteps: [ { it: { delay: 5, description: \"${ error(\\\"no\\\") }\" } } ]\n");
    load(fx, 1);
    expect(fx, "w", NULL, "\"state\":{},\"status\":\"completed\"");
}

static int from_the_program(rv_ctx *c)
{
    return rv_return(c, "s", "from C");
}

static void a_file_may_nest_what_the_program_registered(void **state)
{
    struct fixture *fx = *state;
    rv_workflow *w = rv_workflow_new("inC");
    rv_add_step(rv_workflow_body(w), "work", from_the_program, NULL);
    assert_int_equal(rv_register(fx->engine, w, &fx->err), 0);
    rv_workflow_free(w);
    write_file(fx, "outer.yaml", "name: outer\nsteps:\n  - first: { workflow: inC }\n");
    load(fx, 1);
    expect(fx, "outer", NULL, "\"first\":{\"result\":\"from C\",");
}

static void an_expression_that_fails_fails_its_step(void **state)
{
    struct fixture *fx = *state;
    write_file(
        fx, "c.yaml",
        "name: c\nsteps:\n  - bad: { value: \"${ 1, 2 }\", onError: { value: \"${ .error.message "
        "}\" } }\n");
    write_file(
        fx, "d.yaml",
        "name: d\nsteps:\n  - each: { forEach: \"${ 5 }\", run: [ { a: { value: 1 } } ] }\n");
    load(fx, 2);
    expect(fx, "c", NULL, "yields more than one value");
    expect(fx, "d", NULL, "must return an array");
}

/* One request killed the engine for ever. */
static void data_on_which_jq_aborts_fails_its_step(void **state)
{
    struct fixture *fx = *state;
    write_file(fx, "e.yaml",
               "name: e\nsteps:\n"
               "  - cut: { value: \"${ .input.list[(.input.from | tonumber):] }\" }\n");
    load(fx, 1);
    expect(fx, "e", "{\"from\":\"1\",\"list\":[1,2,3]}", "\"result\":[2,3]");
    expect(fx, "e", "{\"from\":\"nan\",\"list\":[1,2,3]}",
           "the expression crashed the evaluator: it was killed by signal 6");
    expect(fx, "e", "{\"from\":\"2\",\"list\":[1,2,3]}", "\"result\":[3]");
}

static void without_the_program_files_that_need_jq_are_refused(void **state)
{
    struct fixture *fx = *state;
    char *before = strdup(getenv("RIVAL_HOST"));
    setenv("RIVAL_HOST", "/nowhere/rival", 1);
    write_file(fx, "p.yaml", "name: p\nsteps:\n  - a: { value: \"n: ${ .input.n }\" }\n");
    load(fx, 1); /* plain paths need none */
    expect(fx, "p", "{\"n\":5}", "\"n: 5\"");
    write_file(fx, "q.yaml", "name: q\nsteps:\n  - a: { value: \"${ .input.n + 1 }\" }\n");
    int rc = rv_register_dir(fx->engine, fx->folder, NULL, &fx->err);
    setenv("RIVAL_HOST", before, 1);
    free(before);
    assert_int_equal(rc, RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "q.yaml: "));
    assert_non_null(strstr(fx->err.message, "RIVAL_HOST is '/nowhere/rival', which cannot be run"));
}

static void a_bad_file_does_not_keep_the_good_from_being_registered(void **state)
{
    struct fixture *fx = *state;
    rv_report *report = NULL;
    rv_workflow_list *list = NULL;
    write_file(fx, "good.yaml", "name: good\ndescription: fine\nsteps: [ { a: { value: 1 } } ]\n");
    write_file(fx, "bad.yaml", "name: bad\nsteps: [ { a: { valeu: 1 } } ]\n");
    assert_int_equal(
        rv_register_dir(fx->engine, fx->folder, RV_FILE_OPTS(.report = &report), &fx->err), 1);
    assert_int_equal(report->problem_count, 1);
    assert_int_equal(report->problems[0].line, 2);
    rv_report_free(report);
    assert_int_equal(rv_register_dir(fx->engine, fx->folder, NULL, &fx->err), RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "bad.yaml:2:"));
    assert_int_equal(rv_workflows(fx->engine, &list, &fx->err), 0);
    assert_int_equal(list->count, 1);
    assert_string_equal(list->items[0].name, "good");
    assert_string_equal(list->items[0].description, "fine");
    assert_non_null(strstr(list->items[0].source, "good.yaml"));
    assert_int_equal(list->items[0].step_count, 1);
    rv_workflow_list_free(list);
}

static void sources_that_are_no_workflows_are_left_alone(void **state)
{
    struct fixture *fx = *state;
    write_file(fx, "good.yaml", "name: good\nsteps: [ { a: { value: 1 } } ]\n");
    write_file(fx, "plain.c", "int twice(int n) { return 2 * n; }\n");
    load(fx, 1);
}

static void a_changed_file_replaces_what_new_runs_take(void **state)
{
    struct fixture *fx = *state;
    write_file(fx, "v.yaml",
               "name: v\nsteps: [ { wait: { signal: go } }, { a: { value: old } } ]\n");
    load(fx, 1);
    assert_int_equal(rv_run(fx->engine, "v", NULL, RV_RUN_OPTS(.run_id = "old"), NULL, &fx->err),
                     0);
    write_file(fx, "v.yaml", "name: v\nsteps: [ { a: { value: new } } ]\n");
    assert_int_equal(rv_register_dir(fx->engine, fx->folder, NULL, &fx->err), RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "already registered"));
    assert_int_equal(
        rv_register_dir(fx->engine, fx->folder, RV_FILE_OPTS(.replace = true), &fx->err), 1);
    expect(fx, "v", NULL, "\"a\":{\"result\":\"new\"");
    assert_int_equal(rv_register_dir(fx->engine, fx->folder, NULL, &fx->err), 1); /* as it was */
    rv_outcome *outcome = NULL;
    assert_int_equal(rv_signal(fx->engine, "old", "go", NULL, &fx->err), 0);
    assert_int_equal(rv_wait(fx->engine, NULL, "old", NULL, &outcome, &fx->err), 0);
    assert_non_null(strstr(outcome->results, "\"a\":{\"result\":\"old\""));
    rv_outcome_free(outcome);
}

static int one(rv_ctx *c)
{
    return rv_return(c, "i", 1);
}

static int sees_a(rv_ctx *c)
{
    return rv_return(c, "I", (long long)rv_int(c, ".steps.a.result", -1));
}

static int two(rv_ctx *c)
{
    return rv_return(c, "i", 2);
}

static void a_built_workflow_may_nest_a_file(void **state)
{
    struct fixture *fx = *state;
    char path[200];
    write_file(fx, "pay.yaml", "steps:\n  - take: { value: { paid: \"${ .input.sum }\" } }\n");
    for (int i = 0; i < 2; i++) { /* a second one that nests the same */
        rv_workflow *w = rv_workflow_new(i == 0 ? "order" : "again");
        snprintf(path, sizeof path, "%s/pay.yaml", fx->folder);
        rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", two, NULL);
        rv_add_workflow(each, NULL, path); /* at any depth */
        if (rv_register(fx->engine, w, &fx->err) < 0)
            fail_msg("%s", fx->err.message);
        rv_workflow_free(w);
    }
    rv_workflow *w = rv_workflow_new("lost");
    rv_add_workflow(rv_workflow_body(w), NULL, "./no-such-file.yaml");
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "no-such-file.yaml"));
    rv_workflow_free(w);
    w = rv_workflow_new("plain");
    rv_add_workflow(rv_workflow_body(w), NULL, path);
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_OK);
    rv_workflow_free(w);
    expect(fx, "plain", "{\"sum\":7}", "\"pay\":{\"result\":{\"paid\":7}");
}

/* Whichever was found would be the wrong one for one of the nodes. */
static int start_of(struct fixture *fx, const char *workflow)
{
    return rv_run(fx->engine, workflow, NULL, NULL, NULL, &fx->err);
}

static void a_built_workflow_may_need_nodes_around_it(void **state)
{
    struct fixture *fx = *state;
    rv_workflow *inner = rv_workflow_new("inner"), *outer = rv_workflow_new("outer"),
                *bad = rv_workflow_new("bad");
    rv_workflow_needs(inner, RV_NEEDS("a"));
    rv_add_step(rv_workflow_body(inner), "b", sees_a, NULL);
    assert_int_equal(rv_register(fx->engine, inner, &fx->err), RV_OK);
    rv_add_step(rv_workflow_body(outer), "a", one, NULL);
    rv_add_workflow(rv_workflow_body(outer), "in", "inner");
    assert_int_equal(rv_register(fx->engine, outer, &fx->err), RV_OK);
    rv_add_workflow(rv_workflow_body(bad), "in", "inner");
    assert_int_equal(rv_register(fx->engine, bad, &fx->err), RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "'a'"));
    expect(fx, "outer", NULL, "\"result\":1");
    assert_int_equal(start_of(fx, "inner"), RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "cannot be run alone: it needs 'a'"));
    rv_workflow_free(inner);
    rv_workflow_free(outer);
    rv_workflow_free(bad);
}

static void without_the_program_a_built_workflow_that_needs_jq_is_refused(void **state)
{
    struct fixture *fx = *state;
    char *before = strdup(getenv("RIVAL_HOST"));
    rv_workflow *plain = NULL, *w = NULL;
    setenv("RIVAL_HOST", "/nowhere/rival", 1);
    assert_int_equal(rv__workflow_read(rv__str("{\"name\":\"p\",\"steps\":[{\"type\":\"step\","
                                               "\"alias\":\"v\",\"kind\":\"value\",\"with\":"
                                               "\"${ .input.n }\"}]}"),
                                       &plain, &fx->err),
                     RV_OK);
    assert_int_equal(rv__workflow_read(rv__str("{\"name\":\"q\",\"steps\":[{\"type\":\"step\","
                                               "\"alias\":\"v\",\"kind\":\"value\",\"with\":"
                                               "\"${ .input.n + 1 }\"}]}"),
                                       &w, &fx->err),
                     RV_OK);
    assert_int_equal(rv_register(fx->engine, plain, &fx->err), RV_OK);
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "RIVAL_HOST is '/nowhere/rival', which cannot be run"));
    setenv("RIVAL_HOST", before, 1);
    free(before);
    assert_int_equal(start_of(fx, "q"), RV_ENOTFOUND);
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_OK); /* with it, it is good */
    rv_workflow_free(plain);
    rv_workflow_free(w);
}

/* Which of two functions runs must not follow from the order in which files came. */
static void a_call_that_becomes_ambiguous_is_refused_when_run(void **state)
{
    struct fixture *fx = *state;
    rv_workflow *a = rv_workflow_new("first"), *b = rv_workflow_new("second");
    rv_workflow_function(a, "save", one);
    rv_add_delay(rv_workflow_body(a), "d", 1);
    rv_workflow_function(b, "save", two);
    rv_add_delay(rv_workflow_body(b), "d", 1);
    assert_int_equal(rv_register(fx->engine, a, &fx->err), RV_OK);
    write_file(fx, "c.yaml", "name: c\nsteps:\n  - wait: { signal: go }\n  - it: { call: save }\n");
    load(fx, 1);
    assert_int_equal(rv_run(fx->engine, "c", NULL, RV_RUN_OPTS(.run_id = "early"), NULL, &fx->err),
                     RV_OK);
    assert_int_equal(rv_register(fx->engine, b, &fx->err), RV_OK);
    assert_int_equal(start_of(fx, "c"), RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "several files have a function 'save'"));
    assert_int_equal(rv_signal(fx->engine, "early", "go", NULL, &fx->err), RV_OK);
    rv_outcome *outcome = NULL;
    assert_int_equal(rv_wait(fx->engine, "c", "early", NULL, &outcome, &fx->err), RV_OK);
    assert_int_equal(outcome->status, RV_FAILED); /* not the wrong one */
    assert_non_null(strstr(outcome->error, "several files have a function 'save'"));
    rv_outcome_free(outcome);
    assert_int_equal(rv_unregister(fx->engine, "second", &fx->err), RV_OK);
    assert_int_equal(start_of(fx, "c"), RV_OK); /* it means one again */
    rv_workflow_free(a);
    rv_workflow_free(b);
}

static void two_functions_of_one_name_are_refused(void **state)
{
    struct fixture *fx = *state;
    rv_workflow *w = rv_workflow_new("twice");
    rv_add_step(rv_workflow_body(w), "save", one, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", one, NULL);
    rv_add_step(each, "save", two, NULL);
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_EINVAL);
    if (strstr(fx->err.message, "the name 'save': one of 'save' and one of 'each:save'") == NULL)
        fail_msg("%s", fx->err.message);
    rv_workflow_free(w);

    w = rv_workflow_new("named"); /* each by a name of its own; and one function twice is one */
    rv_add_step(rv_workflow_body(w), "save", one, NULL);
    each = rv_add_foreach(rv_workflow_body(w), "each", two, NULL);
    rv_add_step(each, "save", two, RV_STEP_OPTS(.name = "saveItem"));
    each = rv_add_foreach(rv_workflow_body(w), "more", two, NULL);
    rv_add_step(each, "save", one, NULL);
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_OK);
    rv_workflow_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_built_workflow_may_nest_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(two_functions_of_one_name_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_built_workflow_may_need_nodes_around_it, setup, teardown),
        cmocka_unit_test_setup_teardown(
            without_the_program_a_built_workflow_that_needs_jq_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_that_becomes_ambiguous_is_refused_when_run, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(expressions_see_what_they_may_see, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_node_has_a_last_step_without_a_result, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(supervisors_run_on_expressions, setup, teardown),
        cmocka_unit_test_setup_teardown(loop_is_there_in_an_iteration_only, setup, teardown),
        cmocka_unit_test_setup_teardown(a_delay_obeys_its_time_out, setup, teardown),
        cmocka_unit_test_setup_teardown(every_kind_of_node_can_be_described, setup, teardown),
        cmocka_unit_test_setup_teardown(a_description_that_cannot_be_made_is_left_out, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nested_inputs_are_evaluated_and_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_may_nest_what_the_program_registered, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_expression_that_fails_fails_its_step, setup, teardown),
        cmocka_unit_test_setup_teardown(data_on_which_jq_aborts_fails_its_step, setup, teardown),
        cmocka_unit_test_setup_teardown(without_the_program_files_that_need_jq_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_bad_file_does_not_keep_the_good_from_being_registered,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(sources_that_are_no_workflows_are_left_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_changed_file_replaces_what_new_runs_take, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
