/* test_render.c: plans for people, for src/define/render.c. */
#include "define_test.h"

static const char zoo[] =
    "name: zoo\n"
    "description: All kinds\n"
    "steps:\n"
    "  - call1: { call: f, timeout: 90s, onTimeout: retry, maxAttempts: 3, onError: { call: g },\n"
    "             retryOn: [75, dns], noRetryOn: [2], continueOnError: true, recordInput: false }\n"
    "  - rest: { delay: 250, when: '${ .input.slow }' }\n"
    "  - say: { value: \"a \\\"quoted\\\" <b> #1; & `x`\\nnext\" }\n"
    "  - each: { forEach: [1, 2], run: [ { saw: { command: [./saw, '${ .loop.item }'] } } ] }\n"
    "  - both: { concurrent: { x: { signal: go }, y: [ { q: { value: 1 } } ] }, join: 1 }\n"
    "  - pick: { if: '${ true }', then: [ { p: { http: { url: 'http://u', method: PUT } } } ] }\n"
    "  - poll: { loop: [ { look: { value: 1 } } ], until: '${ true }', maxIterations: 5 }\n"
    "onError: [ { tell: { call: g } }, { rest: { delay: 5 } } ]\n"
    "finally: { call: h }\n";

static void expect_rendering(void (*render)(const struct rv__plan *, struct rv__buf *),
                             const char *from, const char *expected)
{
    struct rv__definitions *found = define("zoo.yaml", zoo);
    struct rv__buf out;
    rv__buf_init(&out, 1 << 20);
    assert_int_equal(found->problem_count, 0);
    render(found->items[0].plan, &out);
    assert_int_equal(out.rc, RV_OK);
    const char *at = strstr(out.text, from);
    if (at == NULL || strcmp(at, expected) != 0)
        fail_msg("got\n%s", out.text);
    rv__buf_done(&out);
    rv__definitions_free(found);
}

static void a_plan_can_be_a_tree(void **state)
{
    (void)state;
    expect_rendering(rv__plan_render_text, "All kinds",
                     "All kinds\n"
                     "├─ call1: call f()  [timeout 1m30s, then retry]  [3 attempts, linear backoff "
                     "from 100ms]  [retries on 75, dns]  [no retry on 2]  [goes on after an error] "
                     " [input not recorded]\n"
                     "│  └─ onError: call g()\n"
                     "├─ rest: delay 250ms  [when ${ .input.slow }]\n"
                     "├─ say: value a \"quoted\" <b> #1; & `x` next\n"
                     "├─ each: forEach [1,2]\n"
                     "│  └─ saw: command ./saw ${ .loop.item }\n"
                     "├─ both: concurrent, until 1 complete\n"
                     "│  ├─ x: signal go\n"
                     "│  └─ y\n"
                     "│     └─ q: value 1\n"
                     "├─ pick: if ${ true }\n"
                     "│  └─ then\n"
                     "│     └─ p: http PUT http://u\n"
                     "├─ poll: loop until ${ true }, at most 5\n"
                     "│  └─ look: value 1\n"
                     "├─ onError\n"
                     "│  ├─ tell: call g()\n"
                     "│  └─ rest: delay 5ms\n"
                     "└─ finally: call h()\n");
}

static void a_plan_can_be_a_flowchart(void **state)
{
    (void)state;
    expect_rendering(
        rv__plan_render_mermaid, "flowchart",
        "flowchart TD\n"
        "  begin([\"zoo\"])\n"
        "  n0[\"call1<br/>call f()\"]\n"
        "  n2[\"rest<br/>delay 250ms\"]\n"
        "  n3[\"say<br/>value a #quot;quoted#quot; #lt;b#gt; #35;1; #amp; #96;x#96; next\"]\n"
        "  n4{{\"each<br/>forEach [1,2]\"}}\n"
        "  n6[/\"both<br/>concurrent, until 1 complete\"/]\n"
        "  n9{\"pick<br/>if ${ true }\"}\n"
        "  n11{{\"poll<br/>loop until ${ true }, at most 5\"}}\n"
        "  begin --> n0\n"
        "  n0 --> n2\n"
        "  n2 --> n3\n"
        "  n3 --> n4\n"
        "  subgraph s4_0[\"each\"]\n"
        "    n5[\"saw<br/>command ./saw ${ .loop.item }\"]\n"
        "  end\n"
        "  n4 -->|\"each\"| n5\n"
        "  n5 -.-> n4\n"
        "  n4 --> n6\n"
        "  e0(( ))\n"
        "  n7[\"x<br/>signal go\"]\n"
        "  n6 -->|\"x\"| n7\n"
        "  n7 --> e0\n"
        "  subgraph s6_1[\"both: y\"]\n"
        "    n8[\"q<br/>value 1\"]\n"
        "  end\n"
        "  n6 -->|\"y\"| n8\n"
        "  n8 --> e0\n"
        "  e0 --> n9\n"
        "  e1(( ))\n"
        "  subgraph s9_0[\"pick: then\"]\n"
        "    n10[\"p<br/>http PUT http://u\"]\n"
        "  end\n"
        "  n9 -->|\"then\"| n10\n"
        "  n10 --> e1\n"
        "  n9 -->|\"else\"| e1\n"
        "  e1 --> n11\n"
        "  subgraph s11_0[\"poll\"]\n"
        "    n12[\"look<br/>value 1\"]\n"
        "  end\n"
        "  n11 -->|\"each\"| n12\n"
        "  n12 -.-> n11\n"
        "  finish([\"end\"])\n"
        "  n11 --> finish\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_can_be_a_tree),
        cmocka_unit_test(a_plan_can_be_a_flowchart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
