/* test_form.c: the YAML form: each kind and key, and what is wrong with it, for src/define/lower.c. */
#include "define_test.h"

#define W(nodes)          "name: w\nsteps:\n" nodes
#define PLAN(nodes)       "{\"name\":\"w\",\"steps\":[" nodes "]}"
#define STEP(alias, rest) "{\"type\":\"step\",\"alias\":\"" alias "\"," rest "}"

static void every_kind_becomes_its_node(void **state)
{
    static const struct {
        const char *says, *yaml, *json;
    } rows[] = {
        { "a command with what belongs to it",
          W("- a: { command: [./x, 5], stdin: none, output: text, cwd: sub, env: { A: b } }\n"),
          PLAN(STEP("a", "\"kind\":\"command\",\"with\":{\"argv\":[\"./x\",5],\"stdin\":\"none\","
                         "\"output\":\"text\",\"cwd\":\"sub\",\"env\":{\"A\":\"b\"}}")) },
        { "a program that YAML reads as a value", W("- a: { command: [true] }\n"),
          PLAN(STEP("a", "\"kind\":\"command\",\"with\":{\"argv\":[true]}")) },
        { "the same inside", W("- a: { command: { argv: [./x], stdin: context } }\n"),
          PLAN(STEP("a",
                    "\"kind\":\"command\",\"with\":{\"argv\":[\"./x\"],\"stdin\":\"context\"}")) },
        { "http by its address", W("- a: { http: \"http://x/\" }\n"),
          PLAN(STEP("a", "\"kind\":\"http\",\"with\":{\"url\":\"http://x/\"}")) },
        { "http, in snake case",
          W("- a: { http: { url: http://u, response_type: text, throw_on_error: false, timeout: 5s "
            "} }\n"),
          PLAN(STEP("a",
                    "\"kind\":\"http\",\"with\":{\"url\":\"http://u\",\"responseType\":\"text\","
                    "\"throwOnError\":false,\"timeout\":5000}")) },
        { "user data keeps its keys",
          W("- a: { http: { url: http://u, body: { max_attempts: 1 } } }\n"),
          PLAN(STEP(
              "a",
              "\"kind\":\"http\",\"with\":{\"url\":\"http://u\",\"body\":{\"max_attempts\":1}}")) },
        { "a delay with a unit", W("- a: { delay: 1h30m }\n"),
          PLAN(STEP("a", "\"kind\":\"delay\",\"with\":5400000")) },
        { "a bare delay", W("- a: { delay: 250 }\n"),
          PLAN(STEP("a", "\"kind\":\"delay\",\"with\":250")) },
        { "a delay as a duration", W("- a: { delay: { duration: 30d } }\n"),
          PLAN(STEP("a", "\"kind\":\"delay\",\"with\":2592000000")) },
        { "a delay in seconds", W("- a: { delay: { seconds: 5 } }\n"),
          PLAN(STEP("a", "\"kind\":\"delay\",\"with\":{\"seconds\":5}")) },
        { "a delay by expression", W("- a: { delay: \"${ .input.ms }\" }\n"),
          PLAN(STEP("a", "\"kind\":\"delay\",\"with\":\"${ .input.ms }\"")) },
        { "a signal by name", W("- a: { signal: go, timeout: 5m }\n"),
          PLAN(STEP("a", "\"kind\":\"signal\",\"with\":{\"name\":\"go\",\"timeout\":300000}")) },
        { "a signal with a default",
          W("- a: { signal: { name: go, timeout: 1s, default: [1] } }\n"),
          PLAN(STEP(
              "a",
              "\"kind\":\"signal\",\"with\":{\"name\":\"go\",\"timeout\":1000,\"default\":[1]}")) },
        { "a call", W("- a: { call: f }\n"), PLAN(STEP("a", "\"kind\":\"call\",\"name\":\"f\"")) },
        { "a value that is a mapping", W("- a: { value: { value: 1 } }\n"),
          PLAN(STEP("a", "\"kind\":\"value\",\"with\":{\"value\":1}")) },
        { "config, in both cases",
          W("- a: { call: f, timeout: 2s, on_timeout: retry, maxAttempts: 3, backoff: "
            "exponential,\n"
            "       backoff_base_ms: 50, max_backoff_ms: 1m, jitter: 0.5, on_error: { call: g } "
            "}\n"),
          PLAN(STEP("a",
                    "\"kind\":\"call\",\"name\":\"f\",\"timeout\":2000,\"onTimeout\":\"retry\","
                    "\"maxAttempts\":3,\"backoff\":\"exponential\",\"backoffBaseMs\":50,"
                    "\"jitter\":0.5,\"onError\":{\"type\":\"step\",\"kind\":\"call\","
                    "\"name\":\"g\"}")) },
        { "what is tried again, and what happens then",
          W("- a: { call: f, maxAttempts: 2, retry_on: [75, timeout], noRetryOn: [2], "
            "continue_on_error: true }\n"),
          PLAN(STEP("a", "\"kind\":\"call\",\"name\":\"f\",\"maxAttempts\":2,\"retryOn\":[75,"
                         "\"timeout\"],\"noRetryOn\":[2],\"continueOnError\":true")) },
        { "handlers as lists, and finally",
          W("- a: { call: f, onError: [ { b: { call: g, maxAttempts: 2 } } ] }\n") "onError:\n  - "
                                                                                   "c: { call: g "
                                                                                   "}\nfinally: { "
                                                                                   "call: h }\n",
          "{\"name\":\"w\",\"steps\":[" STEP(
              "a", "\"kind\":\"call\",\"name\":\"f\",\"onError\":[" STEP(
                       "b", "\"kind\":\"call\",\"name\":\"g\",\"maxAttempts\":"
                            "2") "]") "],"
                                      "\"onError\":[" STEP("c", "\"kind\":\"call\",\"name\":"
                                                                "\"g\"") "],"
                                                                         "\"finally\":{"
                                                                         "\"type\":\"step\","
                                                                         "\"kind\":\"call\","
                                                                         "\"name\":\"h\"}}" },
        { "a body with its alias", W("- alias: a\n  value: 1\n"),
          PLAN(STEP("a", "\"kind\":\"value\",\"with\":1")) },
        { "no alias: it is implied", W("- delay: 5\n- delay: 6\n"),
          PLAN(STEP("delay", "\"kind\":\"delay\",\"with\":5") "," STEP(
              "delay_2", "\"kind\":\"delay\",\"with\":6")) },
        { "an alias that is a kind's name", W("- http: { value: 1 }\n"),
          PLAN(STEP("http", "\"kind\":\"value\",\"with\":1")) },
        { "forEach with one step",
          W("- a: { for_each: [1], run: { s: { value: 1 } }, parallel: true, concurrency: 2, "
            "label: \"n ${ .loop.item }\" }\n"),
          PLAN(
              "{\"type\":\"forEach\",\"alias\":\"a\",\"items\":[1],\"label\":\"n ${ .loop.item "
              "}\",\"run\":[" STEP(
                  "s", "\"kind\":\"value\",\"with\":1") "],\"parallel\":true,\"concurrency\":2}") },
        { "a concurrent of steps and nodes",
          W("- a:\n    concurrent: { x: { value: 1 }, y: [ { z: { value: 2 } } ] }\n    join: 1\n"),
          PLAN("{\"type\":\"concurrent\",\"alias\":\"a\",\"steps\":[" STEP(
              "x",
              "\"kind\":\"value\",\"with\":1") ",{\"alias\":\"y\",\"nodes\":[" STEP("z",
                                                                                    "\"kind\":"
                                                                                    "\"value\","
                                                                                    "\"with\":"
                                                                                    "2") "]}],"
                                                                                         "\"joi"
                                                                                         "n\":"
                                                                                         "\"fir"
                                                                                         "st\""
                                                                                         "}") },
        { "a concurrent as a list", W("- a: { concurrent: [ { x: { value: 1 } } ] }\n"),
          PLAN("{\"type\":\"concurrent\",\"alias\":\"a\",\"steps\":[" STEP(
              "x", "\"kind\":\"value\",\"with\":1") "]}") },
        { "a branch with one node each",
          W("- a: { if: \"${ true }\", then: { x: { value: 1 } }, else: [ { y: { value: 2 } } ] "
            "}\n"),
          PLAN("{\"type\":\"branch\",\"alias\":\"a\",\"if\":\"${ true }\",\"then\":[" STEP(
              "x", "\"kind\":\"value\",\"with\":1") "],\"else\":[" STEP("y", "\"kind\":\"value\","
                                                                             "\"with\":2") "]}") },
        { "a loop",
          W("- a: { loop: [ { x: { value: 1 } } ], while: \"${ false }\", keep: last }\n"),
          PLAN("{\"type\":\"loop\",\"alias\":\"a\",\"body\":[" STEP(
              "x",
              "\"kind\":\"value\",\"with\":1") "],\"while\":\"${ false }\",\"keep\":\"last\"}") },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_plan(rows[i].says, rows[i].yaml, rows[i].json);
}

#define ALL_KINDS                                                                            \
    "http, command, value, call, delay, signal, chat, tool, workflow, if, loop, forEach or " \
    "concurrent"

static void what_is_wrong_is_told_at_its_place(void **state)
{
    static const struct {
        const char *says, *yaml, *problems;
    } rows[] = {
        { "a key nobody knows", W("- a: { value: 1, wen: 2 }\n"),
          "3:18: unknown key 'wen' of a node with 'value'; did you mean 'when'?\n" },
        { "a key of another kind", W("- a: { value: 1, then: [] }\n"),
          "3:18: unknown key 'then' of a node with 'value'; did you mean 'when'?\n" },
        { "a kind misspelt", W("- a: { comand: [x] }\n"),
          "3:8: unknown key 'comand' of a node; did you mean 'command'?\n" },
        { "a kind misspelt, without an alias", W("- comand: [x]\n"),
          "3:3: unknown kind 'comand'; did you mean 'command'?\n" },
        { "a request without time", W("- a: { http: { url: http://u, timeout: 0 } }\n"),
          "3:40: invalid timeout 0: must be a duration above 0 such as 250ms, 30s or 1h30m, "
          "or milliseconds\n" },
        { "nor with less", W("- a: { http: { url: http://u, timeout: -5 } }\n"),
          "3:40: invalid timeout -5: must be a duration above 0 such as 250ms, 30s or 1h30m, "
          "or milliseconds\n" },
        { "nor in words", W("- a: { http: { url: http://u, timeout: 0s } }\n"),
          "3:40: invalid timeout '0s': must be a duration above 0 such as 250ms, 30s or 1h30m, "
          "or milliseconds\n" },
        { "no kind", W("- a: { timeout: 5s }\n"),
          "3:3: this node has no kind: it needs one of " ALL_KINDS "\n" },
        { "no body", W("- a:\n"),
          "3:3: the node 'a' must be a mapping with its kind (" ALL_KINDS "), and is nothing\n" },
        { "two kinds", W("- a: { value: 1, delay: 5 }\n"),
          "3:18: a node has exactly one kind, and this one has 'value' and 'delay'\n" },
        { "a body not indented", W("- a:\n  value: 1\n"),
          "3:3: unknown key 'a' of a node with 'value'; if it is the alias, indent what belongs to "
          "it "
          "deeper\n" },
        { "a number as a node", W("- 7\n"),
          "3:3: a node must be a mapping, { alias: { kind: … } }, and this is a number\n" },
        { "both spellings", W("- a: { value: 1, on_timeout: stop, onTimeout: stop }\n"),
          "3:36: 'on_timeout' and 'onTimeout' are the same key\n" },
        { "a command that is a text", W("- a: { command: ./x }\n"),
          "3:17: a command must be a list, the program and its arguments: [./find, \"${ .input.id "
          "}\"]; "
          "for a shell: [sh, -c, \"…\"]\n" },
        { "a command of nothing", W("- a: { command: [] }\n"),
          "3:17: a command must be a list, …" },
        { "a list as the program", W("- a: { command: [[x]] }\n"),
          "3:18: a command begins with the name of a program, and this is a list\n" },
        { "no name of a program", W("- a: { command: [''] }\n"),
          "3:19: a command begins with the name of a program, and this is an empty text\n" },
        { "a file, and how to read it",
          W("- a: { command: [x], saveTo: f, output: json }\n"
            "- b: { http: { url: 'http://x', saveTo: f, responseType: text }, saveTo: g }\n"
            "- c: { command: [x], saveTo: [] }\n"),
          "3:33: 'output' has no effect with 'saveTo': the bytes are written to the file "
          "unchanged\n4:44: 'responseType' has no effect with 'saveTo': the bytes are written to "
          "the file unchanged\n4:66: http has its 'saveTo' already\n5:30: invalid saveTo a list: "
          "must be a text\n" },
        { "a word that is none", W("- a: { command: [x], stdin: all }\n"),
          "3:29: invalid stdin 'all': must be context, none, or an expression ${ … }\n" },
        { "http without an address", W("- a: { http: { method: GET } }\n"),
          "3:8: http needs a 'url'\n" },
        { "http to something else", W("- a: { http: ftp://x/y }\n"),
          "3:14: invalid url 'ftp://x/y': must be an address that begins with http:// or "
          "https://\n" },
        { "http with bad parameters",
          W("- a: { http: { url: \"${ .input }\", method: \"GET /\", maxBytes: 0, headers: x } "
            "}\n"),
          "3:45: invalid method 'GET /': must be a word such as GET, POST or DELETE\n"
          "3:63: invalid maxBytes 0: must be a number of bytes from 1 to 67108864\n"
          "3:75: invalid headers 'x': must be a mapping\n" },
        { "http with an unknown key", W("- a: { http: { url: http://u, metod: GET } }\n"),
          "3:31: unknown key 'metod' of http; did you mean 'method'?\n" },
        { "a delay of nothing", W("- a: { delay: {} }\n"),
          "3:15: a delay has one of 'duration', 'seconds', 'milliseconds'\n" },
        { "a delay of two times", W("- a: { delay: { seconds: 1, ms: 1 } }\n"),
          "3:15: a delay has one of 'duration', 'seconds', 'milliseconds'\n" },
        { "a delay of another unit", W("- a: { delay: { minutes: 1 } }\n"),
          "3:15: a delay has one of 'duration', 'seconds', 'milliseconds'\n" },
        { "a time that is none", W("- a: { delay: 5 years }\n"),
          "3:15: invalid delay '5 years': must be a duration such as 250ms, 30s, 5m, 1h30m or 30d, "
          "or "
          "a number of milliseconds\n" },
        { "a value that plan/ refuses", W("- a: { value: 1, maxAttempts: 0 }\n"),
          "3:18: invalid maxAttempts 0: must be at least 1\n" },
        { "in snake case too", W("- a: { value: 1, max_attempts: 0 }\n"),
          "3:18: invalid maxAttempts 0: must be at least 1\n" },
        { "below supervisors",
          W("- a: { if: '${ 1 }', then: [ { b: { value: 1, jitter: 2 } } ] }\n"),
          "3:47: invalid jitter 2: must be from 0 to 1\n" },
        { "below an implied alias", W("- forEach: [1]\n  run:\n  - delay: 5\n    jitter: 2\n"),
          "6:5: invalid jitter 2: must be from 0 to 1\n" },
        { "the second of two implied", W("- delay: 5\n- delay: 5\n  jitter: 2\n"),
          "5:3: invalid jitter 2: must be from 0 to 1\n" },
        { "step config elsewhere", W("- a: { forEach: [], run: { value: 1 }, timeout: 5s }\n"),
          "3:40: step-only config: 'timeout' is for steps, not for a forEach\n" },
        { "an alias twice", W("- a: { value: 1 }\n- a: { value: 2 }\n"),
          "4:3: alias 'a' must be unique in its sequence: line 3 has it\n" },
        { "what else is wrong with the second is told there",
          W("- a: { value: 1 }\n- a: { value: '${ .steps.no }' }\n- a: { value: 1, jitter: 2 }\n"),
          "4:3: alias 'a' must be unique in its sequence: line 3 has it\n"
          "4:19: there is no node 'no'\n"
          "5:3: alias 'a' must be unique in its sequence: line 3 has it\n"
          "5:18: invalid jitter 2: must be from 0 to 1\n" },
        { "the words of others", W("- a: { value: 1, name: x, retries: 2 }\n"),
          "3:18: unknown key 'name' of a node with 'value'; did you mean 'alias'?\n"
          "3:27: unknown key 'retries' of a node with 'value'; did you mean 'maxAttempts'?\n" },
        { "an expression without quotes", W("- a: { value: ${ .input.x } }\n"),
          "3:16: missing comma in flow mapping; between { } and [ ] an expression needs quotes: "
          "\"${ … }\"\n" },
        { "no expression there", W("- a: { value: '${ 1 }', b c: { d } x }\n"),
          "3:36: missing comma in flow mapping\n" },
        { "a shell's variable", W("- a: { command: [sh, -c, 'echo ${HOME}'] }\n"),
          "3:34: invalid expression in 'command': HOME/0 is not defined; if it is for the shell, "
          "write $${ instead\n" },
        { "an alias that cannot be", W("- a b: { value: 1 }\n"), "3:3: invalid alias 'a b': …" },
        { "a supervisor as a child",
          W("- a: { concurrent: { x: { forEach: [], run: { value: 1 } } } }\n"),
          "3:22: a child of a concurrent is a step, a workflow or a list of nodes: put the "
          "'forEach' "
          "into a list\n" },
        { "a handler that is no step", W("- a: { value: 1, onError: { forEach: [] } }\n"),
          "3:29: a handler is a step or a list of nodes: put the 'forEach' into a list\n" },
        { "a handler with config", W("- a: { value: 1, onError: { call: f, timeout: 5 } }\n"),
          "3:38: a handler takes no 'timeout': put the step into a list of nodes\n" },
        { "steps that are no list", "name: w\nsteps: { a: 1 }\n",
          "2:8: 'steps' must be a list of nodes (- alias: { kind: … }), and is a mapping\n" },
        { "keys of the document", "nam: w\nname: w\nsteps: [ { a: { value: 1 } } ]\n",
          "1:1: unknown key 'nam' of a workflow; did you mean 'name'?\n" },
        { "a name that is no text", "name: 5\nsteps: [ { a: { value: 1 } } ]\n",
          "1:1: invalid name 5: must be a text\n" },
        { "a schema", "name: w\ninput: { type: obect }\nsteps: [ { a: { value: 1 } } ]\n",
          "2:10: invalid input schema: /type: …" },
        { "a schema that is none", "name: w\ninput: string\nsteps: [ { a: { value: 1 } } ]\n",
          "2:1: invalid input schema: a JSON Schema is an object, true or false\n" },
        { "a reference in it", "name: w\ninput: { $ref: '#/no' }\nsteps: [ { a: { value: 1 } } ]\n",
          "2:10: invalid input schema: /$ref: refers to '#/no', which is not there\n" },
        { "a workflow that is not there", W("- a: { workflow: v }\n"),
          "3:8: there is no workflow 'v'\n" },
        { "itself", W("- a: { workflow: w }\n"), "3:8: workflow 'w' contains itself: w -> w\n" },
        { "a file that is not there", W("- a: { workflow: ./v.yaml }\n"),
          "3:18: there is no workflow file './v.yaml' beside this one\n" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_problems(rows[i].says, rows[i].yaml, rows[i].problems);
}

/* From every stage at once: keys, values, the schema, aliases, expressions. */
static void everything_is_told_at_once(void **state)
{
    (void)state;
    expect_problems(
        "all of it",
        "name: w\n"
        "input: { type: obect }\n"
        "steps:\n"
        "  - a: { value: 1, wen: 2 }\n"
        "  - b: { value: 1, jitter: 7 }\n"
        "  - a: { value: 3 }\n"
        "  - c: { value: '${ .steps.nobody }' }\n"
        "  - d: { value: '${ .steps.b.result }', timeout: soon }\n",
        "2:10: invalid input schema: /type: must be one of null, boolean, integer, number, "
        "string, array, object (or an array of them)\n"
        "4:20: unknown key 'wen' of a node with 'value'; did you mean 'when'?\n"
        "5:20: invalid jitter 7: must be from 0 to 1\n"
        "6:5: alias 'a' must be unique in its sequence: line 4 has it\n"
        "7:21: there is no node 'nobody'\n"
        "8:50: invalid timeout 'soon': must be a duration such as 250ms, 30s, 5m, 1h30m "
        "or 30d, or a number of milliseconds\n");
}

static void problems_of_a_file_are_bounded(void **state)
{
    struct rv__buf text;
    (void)state;
    rv__buf_init(&text, 1 << 20);
    rv__buf_text(&text, "name: w\nsteps:\n");
    for (int i = 0; i < 500; i++)
        rv__buf_fmt(&text, "- a%d: { value: 1, wen: 2 }\n", i);
    struct rv__definitions *found = define("w.yaml", text.text);
    assert_int_equal(found->problem_count, RV__DEFINE_MAX_PROBLEMS);
    assert_int_equal(found->dropped, 400);
    rv__definitions_free(found);
    rv__buf_done(&text);
}

static void a_tool_is_held_to_its_keys(void **state)
{
    (void)state;
    expect_problems("no server", W("- a: { tool: { name: t } }\n"),
                    "3:8: a tool needs a 'server'\n");
    expect_problems("arguments", W("- a: { tool: { server: s, name: t, arguments: 3 } }\n"),
                    "3:47: invalid arguments 3: must be a mapping\n");
    expect_problems("no mapping", W("- a: { tool: search }\n"),
                    "3:14: a tool is a mapping with its 'server', its 'name' and its "
                    "'arguments'\n");
}

/* Shorter ways to say the same: the plans are equal. */
static void short_forms_mean_the_long_ones(void **state)
{
    static const struct {
        const char *says, *is;
    } rows[] = {
        { W("- findTree\n"), W("- findTree: { call: findTree }\n") },
        { W("- pay/charge\n"), W("- charge: { call: pay/charge }\n") },
        { "name: w\nx-team: { any: thing }\nsteps:\n- a: { value: 1, x-note: 2 }\n",
          W("- a: { value: 1 }\n") },
        { "name: w\ndefaults: { timeout: 30s, max_attempts: 3, backoff: exponential }\nsteps:\n"
          "- a: { command: [ls] }\n- b: { command: [ls], timeout: 5s }\n- f\n"
          "- w: { delay: 5m }\n- v: { value: 1 }\n- s: { signal: go }\n",
          W("- a: { command: [ls], timeout: 30s, maxAttempts: 3, backoff: exponential }\n"
            "- b: { command: [ls], timeout: 5s, maxAttempts: 3, backoff: exponential }\n"
            "- f: { call: f, timeout: 30s, maxAttempts: 3, backoff: exponential }\n"
            "- w: { delay: 5m }\n- v: { value: 1 }\n- s: { signal: go }\n") },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__definitions *says = define("w.yaml", rows[i].says);
        struct rv__definitions *is = define("w.yaml", rows[i].is);
        if (says->count != 1 || is->count != 1)
            fail_msg("%s: %s", rows[i].says,
                     says->problem_count > 0 ? says->problems[0].message.at : "");
        assert_string_equal(says->items[0].plan->version, is->items[0].plan->version);
        rv__definitions_free(says);
        rv__definitions_free(is);
    }
    expect_problems("a slip in defaults", "name: w\ndefaults: { timout: 3s }\nsteps: [ f ]\n",
                    "2:13: unknown key 'timout' of defaults; did you mean 'timeout'?\n");
    expect_problems(
        "defaults that are none", "name: w\ndefaults: 3\nsteps: [ f ]\n",
        "2:11: 'defaults' must be a mapping, such as { timeout: 30s, maxAttempts: 3 }\n");
}

/* What is good, and most likely not meant: told, and the workflow is there all the same. */
static void what_is_hardly_meant_is_a_warning(void **state)
{
    static const struct {
        const char *yaml, *warning; /* NULL: none */
    } rows[] = {
        { W("- a: { command: [sh, -c, 'echo ${ .input.name }'] }\n"), "an expression in a shell" },
        { W("- a: { command: [/bin/bash, -e, -uc, 'echo ${ .input.name }'] }\n"), "an expression" },
        { W("- a: { command: { argv: [sh, -c, 'echo ${ .input.name }'] } }\n"), "an expression" },
        { W("- a: { command: [sh, -c, 'echo $1', sh, '${ .input.name }'] }\n"), NULL },
        { W("- a: { command: [sh, -c, 'echo $${HOME}'] }\n"), NULL },
        { W("- a: { command: [sh, ./script, '${ .input.name }'] }\n"), NULL },
        { W("- a: { command: [ls], timeout: 30 }\n"), "write 30ms, or 30s if seconds" },
        { W("- a: { http: { url: 'http://a', timeout: 999 } }\n"), "write 999ms, or 999s" },
        { W("- a: { signal: { name: go, timeout: 5 } }\n"), "write 5ms, or 5s" },
        { W("- a: { command: [ls], timeout: 1000 }\n"), NULL },
        { W("- a: { command: [ls], timeout: 30ms }\n"), NULL },
        { W("- a: { delay: 30 }\n"), NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__definitions *found = define("w.yaml", rows[i].yaml);
        if (found->count != 1 || found->warning_count != (rows[i].warning != NULL) ||
            (rows[i].warning != NULL &&
             strstr(found->warnings[0].message.at, rows[i].warning) == NULL))
            fail_msg("%s: %zu warnings, %zu workflows", rows[i].yaml, found->warning_count,
                     found->count);
        if (rows[i].warning != NULL)
            assert_int_equal(found->warnings[0].line, 3);
        rv__definitions_free(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_becomes_its_node),
        cmocka_unit_test(what_is_wrong_is_told_at_its_place),
        cmocka_unit_test(everything_is_told_at_once),
        cmocka_unit_test(problems_of_a_file_are_bounded),
        cmocka_unit_test(a_tool_is_held_to_its_keys),
        cmocka_unit_test(what_is_hardly_meant_is_a_warning),
        cmocka_unit_test(short_forms_mean_the_long_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
