/* test_check.c: what is refused, where, and in which words: for all of src/plan. */
#include "unit/plan/plan_test.h"

/* A step that is right, and documents around some nodes. */
#define F          "{\"type\":\"step\",\"name\":\"f\"}"
#define DOC(nodes) "{\"name\":\"w\",\"steps\":[" nodes "]}"
#define S(fields)  DOC("{\"type\":\"step\",\"alias\":\"s\"," fields "}")
#define LOOP(fields) \
    DOC("{\"type\":\"loop\",\"alias\":\"l\",\"while\":\"${ .x }\",\"body\":[" F "]" fields "}")
#define EACH(fields) \
    DOC("{\"type\":\"forEach\",\"alias\":\"e\",\"items\":[],\"run\":[" F "]" fields "}")
#define CONC(fields) DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[" F "]" fields "}")
#define A50          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A60          A50 "aaaaaaaaaa"
#define A200         A50 A50 A50 A50

struct row {
    const char *says, *json, *expected;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_violations(rows[i].says, rows[i].json, rows[i].expected);
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof *rows)

/* clang-format off */
static void what_a_function_may_make_of_a_step_is_checked(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "some parameters", S("\"kind\":\"http\",\"with\":{\"method\":\"GET\"},\"input\":{\"fn\":\"f\"}"), "" },
        { "all of them", S("\"kind\":\"http\",\"input\":{\"fn\":\"f\"}"), "" },
        { "of a delay", S("\"kind\":\"delay\",\"with\":{},\"input\":{\"fn\":\"f\"}"), "" },
        { "of a signal", S("\"kind\":\"signal\",\"with\":{\"timeout\":5},\"input\":{\"fn\":\"f\"}"), "" },
        { "of nothing else", S("\"name\":\"g\",\"input\":{\"fn\":\"f\"}"),
          "s: a step of kind function takes no 'input'\n" },
        { "no value", S("\"kind\":\"http\",\"input\":{\"url\":\"u\"}"),
          "s: the 'input' of a step must be a function: {\"fn\": \"name\"}\n" },
        { "a good name", S("\"kind\":\"http\",\"input\":{\"fn\":\"\"}"),
          "s: invalid function '' in input: it is empty\n" },
        { "beside an object", S("\"kind\":\"delay\",\"with\":5,\"input\":{\"fn\":\"f\"}"),
          "s: invalid with 5: beside 'input' it must be an object\n" },
        { "constants are checked all the same",
          S("\"kind\":\"signal\",\"with\":{\"timeout\":0,\"nam\":1},\"input\":{\"fn\":\"f\"}"),
          "s: invalid timeout 0 of a signal: must be milliseconds, above 0 and at most a hundred years\n"
          "s: unknown key 'nam' of a signal; did you mean 'name'?\n" },
        { "no handler has one",
          DOC("{\"type\":\"step\",\"name\":\"f\",\"onError\":{\"kind\":\"http\",\"input\":{\"fn\":\"f\"}}}"),
          "f:onError: unknown key 'input' of a handler\n" },
        { "a function may describe", S("\"name\":\"g\",\"description\":{\"fn\":\"f\"}"), "" },
    };
    CHECK_ROWS(rows);
}
/* clang-format on */

/* clang-format off */
static void the_document_is_checked(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "nothing is there", "{}",
          "name: a workflow needs a 'name'\n"
          "steps: a workflow needs 'steps' with at least one node\n" },
        { "no nodes", DOC(""), "steps: a workflow needs 'steps' with at least one node\n" },
        { "empty name", "{\"name\":\"\",\"steps\":[" F "]}",
          "name: invalid name '' of a workflow: it is empty\n" },
        { "name with __", "{\"name\":\"a__b\",\"steps\":[" F "]}",
          "name: invalid name 'a__b' of a workflow: it may not contain '__'\n" },
        { "name with a blank", "{\"name\":\"a b\",\"steps\":[" F "]}",
          "name: invalid name 'a b' of a workflow: it may contain only letters, digits, '_', '.' and '-'\n" },
        { "name that begins with a digit", "{\"name\":\"1a\",\"steps\":[" F "]}",
          "name: invalid name '1a' of a workflow: it must begin with a letter or '_'\n" },
        { "name too long", "{\"name\":\"" A200 "a\",\"steps\":[" F "]}",
          "name: invalid name '" A60 "…' of a workflow: it is longer than 200 bytes\n" },
        { "name that is no text", "{\"name\":5,\"steps\":[" F "]}",
          "name: invalid name 5: must be a text\n" },
        { "good names", "{\"name\":\"_tree-processing.v2\",\"steps\":[" F "]}", "" },
        { "longest name", "{\"name\":\"" A200 "\",\"steps\":[" F "]}", "" },
        { "unknown keys", "{\"name\":\"w\",\"step\":[],\"zzzzzz\":1,\"steps\":[" F "]}",
          "step: unknown key 'step' of a workflow; did you mean 'steps'?\n"
          "zzzzzz: unknown key 'zzzzzz' of a workflow\n" },
        { "a key of something else", "{\"name\":\"w\",\"alias\":\"x\",\"steps\":[" F "]}",
          "alias: unknown key 'alias' of a workflow\n" },
        { "version is made anew", "{\"name\":\"w\",\"version\":7,\"steps\":[" F "]}", "" },
        { "the last of two keys counts", "{\"name\":\"1\",\"name\":\"w\",\"steps\":7,\"steps\":[" F "]}", "" },
        { "also if it is empty", "{\"name\":\"w\",\"steps\":[" F "],\"steps\":[]}",
          "steps: a workflow needs 'steps' with at least one node\n" },
        { "steps are a list", "{\"name\":\"w\",\"steps\":" F "}",
          "steps: invalid steps {\"type\":\"step\",\"name\":\"f\"}: must be a list of nodes\n"
          "steps: a workflow needs 'steps' with at least one node\n" },
        { "description is a text", "{\"name\":\"w\",\"description\":[],\"steps\":[" F "]}",
          "description: invalid description []: must be a text\n" },
        { "schema", "{\"name\":\"w\",\"input\":[1],\"steps\":[" F "]}",
          "input: invalid input schema: a JSON Schema is an object, true or false\n" },
        { "secrets are a list", "{\"name\":\"w\",\"secrets\":\"A\",\"steps\":[" F "]}",
          "secrets: invalid secrets \"A\": must be a list of names\n" },
        { "of names, each once", "{\"name\":\"w\",\"secrets\":[\"A_1\",\"1A\",\"A-B\",\"A_1\",7],\"steps\":[" F "]}",
          "secrets: invalid name 7 in secrets: must be a text\n"
          "secrets: invalid name '1A' in secrets: must be letters, digits and '_', like an environment variable\n"
          "secrets: invalid name 'A-B' in secrets: must be letters, digits and '_', like an environment variable\n"
          "secrets: secrets has 'A_1' twice\n" },
        { "schemas that are", "{\"name\":\"w\",\"input\":false,\"steps\":[" F "]}", "" },
        { "handler that is no step", "{\"name\":\"w\",\"onError\":\"x\",\"steps\":[" F "]}",
          "onError: invalid onError \"x\": must be a step or a list of nodes\n" },
        { "finally that is none", "{\"name\":\"w\",\"finally\":5,\"steps\":[" F "]}",
          "finally: invalid finally 5: must be a step or a list of nodes\n" },
        { "handlers that are lists",
          "{\"name\":\"w\",\"onError\":[],\"finally\":[{\"type\":\"sequence\"}," F "," F "],\"steps\":["
          "{\"type\":\"step\",\"name\":\"f\",\"onError\":[{\"type\":\"step\",\"alias\":\"g\",\"name\":\"g\","
          "\"maxAttempts\":0}]}]}",
          "f:onError:node0:g: invalid maxAttempts 0: must be at least 1\n"
          "onError: a handler that is a list needs at least one node\n"
          "finally:node0:node: unknown type \"sequence\": must be step, workflow, branch, loop, forEach, "
          "concurrent, stage or chat\n" },
        { "what a handler sees",
          "{\"name\":\"w\",\"onError\":[{\"type\":\"step\",\"name\":\"g\",\"needs\":[\"f\",\"z\"]}],"
          "\"finally\":[" F ",{\"type\":\"step\",\"alias\":\"g\",\"name\":\"g\",\"needs\":[\"f\",\"a\"]}],\"steps\":["
          "{\"type\":\"step\",\"name\":\"f\"},"
          "{\"type\":\"step\",\"name\":\"h\",\"onError\":[{\"type\":\"step\",\"name\":\"g\",\"needs\":[\"f\",\"h\"]}]}]}",
          "h:onError:node0:g: needs 'h', which is not the alias of a node before it\n"
          "onError:node0:g: needs 'z', which is not the alias of a node before it\n"
          "finally:node1:g: needs 'a', which is not the alias of a node before it\n" },
        { "nothing in a handler is detached",
          "{\"name\":\"w\",\"finally\":[{\"type\":\"concurrent\",\"continueOn\":\"detached\",\"steps\":[" F "]}],"
          "\"steps\":[" F "]}",
          "finally:node0:concurrent: nothing in a handler can be detached: the run ends after it\n" },
        { "finally of a workflow by name",
          "{\"name\":\"w\",\"steps\":[{\"type\":\"workflow\",\"name\":\"v\",\"finally\":[" F "]}]}",
          "v: 'finally' is only for a workflow with its 'steps'\n"
          "v: there is no workflow 'v'\n" },
        { "handlers are steps without more",
          "{\"name\":\"w\",\"onError\":{\"type\":\"branch\",\"alias\":\"x\",\"name\":\"f\",\"timeout\":5,\"knd\":1},\"steps\":[" F "]}",
          "onError: unknown type \"branch\": must be step\n"
          "onError: unknown key 'alias' of a handler\n"
          "onError: unknown key 'timeout' of a handler\n"
          "onError: unknown key 'knd' of a handler; did you mean 'kind'?\n" },
        { "handlers do something", "{\"name\":\"w\",\"onError\":{\"kind\":\"delay\",\"with\":5},\"steps\":["
          "{\"type\":\"step\",\"name\":\"f\",\"onError\":{\"kind\":\"signal\",\"with\":{\"name\":\"x\"}}}]}",
          "f:onError: a handler must do something: it cannot be a signal\n"
          "onError: a handler must do something: it cannot be a delay\n" },
        { "handler of an unknown kind", "{\"name\":\"w\",\"onError\":{\"kind\":\"fnction\"},\"steps\":[" F "]}",
          "onError: unknown kind \"fnction\": must be function, call, http, command, value, delay, signal, "
          "chat or tool; did you mean 'function'?\n" },
        { "handler without a function", "{\"name\":\"w\",\"onError\":{},\"steps\":[" F "]}",
          "onError: a step of kind function needs the 'name' of a function\n" },
    };
    CHECK_ROWS(rows);
}

static void nodes_are_checked(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "no type", DOC("{\"alias\":\"a\"}"),
          "a: it needs a 'type': step, workflow, branch, loop, forEach, concurrent, stage or chat\n" },
        { "unknown type", DOC("{\"alias\":\"a\",\"type\":\"foreach\"}"),
          "a: unknown type \"foreach\": must be step, workflow, branch, loop, forEach, concurrent, stage or chat; "
          "did you mean 'forEach'?\n" },
        { "type that is no text", DOC("{\"type\":1}"),
          "node: unknown type 1: must be step, workflow, branch, loop, forEach, concurrent, stage or chat\n" },
        { "no object", DOC("5,null"),
          "node: invalid node 5: must be an object\nnode_2: invalid node null: must be an object\n" },
        { "unknown keys, known elsewhere or not", S("\"name\":\"f\",\"items\":[],\"timeOut\":5"),
          "s: unknown key 'items' of a step\n"
          "s: unknown key 'timeOut' of a step; did you mean 'timeout'?\n" },
        { "a key with an escape is the same key", S("\"n\\u0061me\":\"f\""), "" },
        { "a key that cannot be shown", S("\"name\":\"f\",\"\\u0000\\n\xC3\xA9\":1"),
          "s: unknown key '??\xC3\xA9' of a step\n" },
        { "alias with a blank", DOC("{\"type\":\"step\",\"alias\":\"a b\",\"name\":\"f\"}"),
          "a b: invalid alias 'a b': it may contain only letters, digits, '_', '.' and '-'\n" },
        { "alias with __", DOC("{\"type\":\"step\",\"alias\":\"a__b\",\"name\":\"f\"}"),
          "a__b: invalid alias 'a__b': it may not contain '__'\n" },
        { "alias that begins with -", DOC("{\"type\":\"step\",\"alias\":\"-a\",\"name\":\"f\"}"),
          "-a: invalid alias '-a': it must begin with a letter or '_'\n" },
        { "every character that may be", DOC("{\"type\":\"step\",\"alias\":\"_azAZ09.-_\",\"name\":\"f\"}"), "" },
        { "their neighbours", DOC("{\"type\":\"step\",\"alias\":\"a@\",\"name\":\"f\"},{\"type\":\"step\",\"alias\":\"a[\",\"name\":\"f\"},"
          "{\"type\":\"step\",\"alias\":\"a`\",\"name\":\"f\"},{\"type\":\"step\",\"alias\":\"a{\",\"name\":\"f\"},"
          "{\"type\":\"step\",\"alias\":\"a/\",\"name\":\"f\"},{\"type\":\"step\",\"alias\":\"a:\",\"name\":\"f\"}"),
#define ONLY ": it may contain only letters, digits, '_', '.' and '-'\n"
          "a@: invalid alias 'a@'" ONLY "a[: invalid alias 'a['" ONLY "a`: invalid alias 'a`'" ONLY
          "a{: invalid alias 'a{'" ONLY "a/: invalid alias 'a/'" ONLY "a:: invalid alias 'a:'" ONLY },
        { "what is shown ends with a whole character", DOC("{\"type\":\"step\",\"alias\":\"" A50 "aaaaaaaaa\xE2\x82\xAC\x7F\",\"name\":\"f\"}"),
          A50 "aaaaaaaaa…: invalid alias '" A50 "aaaaaaaaa…'" ONLY },
        { "nor a control character", DOC("{\"type\":\"step\",\"alias\":\"\x7F\",\"name\":\"f\"}"),
          "?: invalid alias '?': it must begin with a letter or '_'\n" },
        { "empty alias", DOC("{\"type\":\"step\",\"alias\":\"\",\"name\":\"f\"}"),
          "?: invalid alias '': it is empty\n" },
        { "alias too long", DOC("{\"type\":\"step\",\"alias\":\"" A200 "a\",\"name\":\"f\"}"),
          A60 "…: invalid alias '" A60 "…': it is longer than 200 bytes\n" },
        { "alias that is no text", DOC("{\"type\":\"step\",\"alias\":5,\"name\":\"f\"}"),
          "f: invalid alias 5: must be a text\n" },
        { "alias taken", DOC(F ",{\"type\":\"step\",\"alias\":\"f\",\"name\":\"g\"}"),
          "f: alias 'f' must be unique in its sequence: node0 has it\n" },
        { "alias taken inside", DOC("{\"type\":\"forEach\",\"alias\":\"e\",\"items\":[],\"run\":[" F ",{\"type\":\"step\",\"alias\":\"f\",\"name\":\"g\"}]}"),
          "e:run:node1:f: alias 'f' must be unique in its sequence: node0 has it\n" },
        { "an alias of an enclosing sequence may be used again",
          DOC(F ",{\"type\":\"forEach\",\"items\":[],\"run\":[" F "]}"), "" },
        { "implied aliases give way", DOC(F "," F ",{\"type\":\"step\",\"alias\":\"f_3\",\"name\":\"f\"}," F), "" },
        { "a function's name that is no alias", DOC("{\"type\":\"step\",\"name\":\"a b\"}"),
          "a b: its name 'a b' cannot be its alias: it may contain only letters, digits, '_', '.' and '-'; give it one\n" },
        { "but with one it may be", S("\"name\":\"lib/a b__\xC3\xA9\""), "" },
        { "when is a function without a name", S("\"name\":\"f\",\"when\":{\"fn\":\"\"}"),
          "s: invalid function '' in when: it is empty\n" },
        { "when is a bad function", S("\"name\":\"f\",\"when\":{\"fn\":\"a\\u0001\"}"),
          "s: invalid function 'a?' in when: it contains a control character\n" },
        { "not even a key", S("\"name\":\"f\\u007f\",\"when\":{},\"description\": {\n\"a\" :\r[\t] }"),
          "s: invalid function 'f?': it contains a control character\n" },
        { "not a function but a value", S("\"name\":\"f\",\"when\":{\"fn\":5},\"description\":{\"fn\":\"x\",\"y\":1}"), "" },
    };
    CHECK_ROWS(rows);
}

static void steps_are_checked(void **state)
{
    (void)state;
#define BUDGET                                                                                   \
    ": must be {\"tokens\": a whole number of 1 or more}, {\"cost\": a number above 0, at most " \
    "1000000}, or both\n"
#define MS ": must be milliseconds, above 0 and at most a hundred years\n"
#define MS0 ": must be milliseconds, not below 0 and at most a hundred years\n"
    static const struct row rows[] = {
        { "no function", S("\"kind\":\"function\""), "s: a step of kind function needs the 'name' of a function\n" },
        { "no function to call", S("\"kind\":\"call\""), "s: a step of kind call needs the 'name' of a function\n" },
        { "empty function", S("\"name\":\"\""), "s: invalid function '': it is empty\n" },
        { "function too long", S("\"name\":\"" A200 "a\""),
          "s: invalid function '" A60 "…': it is longer than 200 bytes\n" },
        { "name of what has none", S("\"kind\":\"http\",\"name\":\"f\""), "s: a step of kind http takes no 'name'\n" },
        { "parameters of what has none", S("\"name\":\"f\",\"with\":{}"), "s: a step of kind function takes no 'with'\n" },
        { "unknown kind", S("\"kind\":\"htp\",\"timeout\":-1"),
          "s: unknown kind \"htp\": must be function, call, http, command, value, delay, signal, chat or tool; "
          "did you mean 'http'?\n" },
        { "value of nothing", S("\"kind\":\"value\""), "s: a value needs 'with': the value\n" },
        { "kinds that need nothing", DOC("{\"type\":\"step\",\"kind\":\"http\"},{\"type\":\"step\",\"kind\":\"command\"},"
          "{\"type\":\"step\",\"kind\":\"tool\"}"), "" },
        { "chat that is a step", S("\"kind\":\"chat\""), "s: a chat is not a step: its type is 'chat'\n" },
        { "chat", DOC("{\"type\":\"chat\",\"alias\":\"c\",\"with\":{},\"tools\":[{\"type\":\"workflow\",\"name\":\"w.x\",\"steps\":[" F "]},{\"type\":\"branch\",\"if\":1,\"then\":[]},{\"type\":\"step\",\"alias\":\"turn\",\"name\":\"f\",\"when\":\"${ 1 }\"}]}"),
          "c:turn:call:turn: duplicate tool 'turn': it must be unique\n"
          "c:turn:call:w.x: 'w.x' cannot be the name of a tool: at most 64 letters, digits, _ and -\n"
          "c:turn:call:branch: a tool is a step or a workflow, not a branch\n"
          "c:turn:call:turn: a tool takes no 'when'\n" },
        { "bounds of a chat", DOC("{\"type\":\"chat\",\"alias\":\"c\",\"with\":{},\"maxTurns\":0,\"budget\":{\"tokens\":0},\"needs\":[\"x\"],\"onError\":{\"name\":\"f\"}},{\"type\":\"chat\",\"alias\":\"d\",\"maxTurns\":1001,\"budget\":7,\"timeout\":0}"),
          "c: invalid budget {\"tokens\":0}" BUDGET "c: invalid maxTurns 0: must be from 1 to 1000\n"
          "c: a chat takes no 'needs': its prompt says what it reads\n"
          "c: a chat takes no 'onError': 'continueOnError' lets its sequence go on\n"
          "d: invalid budget 7" BUDGET
          "d: invalid timeout 0" MS "d: invalid maxTurns 1001: must be from 1 to 1000\n" },
        { "budget of a workflow", "{\"name\":\"w\",\"steps\":[" F "],\"budget\":{\"tokens\":1,\"cost\":1e-9}}", "" },
        { "budget of nothing", "{\"name\":\"w\",\"steps\":[" F "],\"budget\":{}}", "budget: invalid budget {}" BUDGET },
        { "budget of a cost that is too small", "{\"name\":\"w\",\"steps\":[" F "],\"budget\":{\"cost\":1e-10}}", "budget: invalid budget {\"cost\":1e-10}" BUDGET },
        { "budget of a cost that is too large", "{\"name\":\"w\",\"steps\":[" F "],\"budget\":{\"cost\":1000001}}", "budget: invalid budget {\"cost\":1000001}" BUDGET },
        { "budget of something else", "{\"name\":\"w\",\"steps\":[" F "],\"budget\":{\"tokens\":1,\"money\":1}}", "budget: invalid budget {\"tokens\":1,\"money\":1}" BUDGET },
        { "timeout 0", S("\"name\":\"f\",\"timeout\":0"), "s: invalid timeout 0" MS },
        { "timeout below 0", S("\"name\":\"f\",\"timeout\":-5"), "s: invalid timeout -5" MS },
        { "timeout beyond reason", S("\"name\":\"f\",\"timeout\":3155760000001"), "s: invalid timeout 3155760000001" MS },
        { "longest timeout", S("\"name\":\"f\",\"timeout\":3155760000000"), "" },
        { "timeout that is no number", S("\"name\":\"f\",\"timeout\":\"30s\""),
          "s: invalid timeout \"30s\": must be a whole number\n" },
        { "timeout that is not whole", S("\"name\":\"f\",\"timeout\":1.5"),
          "s: invalid timeout 1.5: must be a whole number\n" },
        { "timeout that is too large for a number", S("\"name\":\"f\",\"timeout\":1e300"),
          "s: invalid timeout 1e300: must be a whole number\n" },
        { "timeout that is no double either", S("\"name\":\"f\",\"timeout\":1e999"),
          "s: invalid timeout 1e999: must be a whole number\n" },
        { "timeout far below", S("\"name\":\"f\",\"timeout\":-1e300"),
          "s: invalid timeout -1e300: must be a whole number\n" },
        { "whole numbers, however written", S("\"name\":\"f\",\"timeout\":2.0,\"maxAttempts\":1e1"), "" },
        { "unknown onTimeout", S("\"name\":\"f\",\"onTimeout\":\"retyr\""),
          "s: unknown onTimeout \"retyr\": must be stop or retry; did you mean 'retry'?\n" },
        { "onTimeout that is no text", S("\"name\":\"f\",\"onTimeout\":true"),
          "s: unknown onTimeout true: must be stop or retry\n" },
        { "maxAttempts 0", S("\"name\":\"f\",\"maxAttempts\":0"), "s: invalid maxAttempts 0: must be at least 1\n" },
        { "maxAttempts far below", S("\"name\":\"f\",\"maxAttempts\":-5000000000"),
          "s: invalid maxAttempts -2147483648: must be at least 1\n" },
        { "maxAttempts far above", S("\"name\":\"f\",\"maxAttempts\":2147483648"),
          "s: invalid maxAttempts 2147483648: it is too large\n" },
        { "unknown backoff", S("\"name\":\"f\",\"backoff\":\"constant\""),
          "s: unknown backoff \"constant\": must be linear or exponential\n" },
        { "negative backoffs", S("\"name\":\"f\",\"backoffBaseMs\":-1,\"maxBackoffMs\":-2"),
          "s: invalid backoffBaseMs -1" MS0 "s: invalid maxBackoffMs -2" MS0 },
        { "no backoff at all", S("\"name\":\"f\",\"backoffBaseMs\":0,\"maxBackoffMs\":0"), "" },
        { "jitter above 1", S("\"name\":\"f\",\"jitter\":1.01"), "s: invalid jitter 1.01: must be from 0 to 1\n" },
        { "jitter below 0", S("\"name\":\"f\",\"jitter\":-0.5"), "s: invalid jitter -0.5: must be from 0 to 1\n" },
        { "jitter that is no number", S("\"name\":\"f\",\"jitter\":\"a\""),
          "s: invalid jitter \"a\": must be a number from 0 to 1\n" },
        { "codes", S("\"name\":\"f\",\"retryOn\":[1,999,\"E.x_1:-\"],\"noRetryOn\":[\"a\"]"), "" },
        { "codes that are no list", S("\"name\":\"f\",\"retryOn\":503,\"noRetryOn\":[]"),
          "s: invalid retryOn 503: must be a list of 1 to 100 exit codes, HTTP statuses or error codes, such as [75, 503, \"timeout\"]\n"
          "s: invalid noRetryOn []: must be a list of 1 to 100 exit codes, HTTP statuses or error codes, such as [75, 503, \"timeout\"]\n" },
        { "codes that are none", S("\"name\":\"f\",\"retryOn\":[0,1000,1.5,\"503\",\"\",\"a b\",null]"),
          "s: invalid code 0 in retryOn: must be a number from 1 to 999 (without quotes), or the name of an error: letters, digits and _ . : -\n"
          "s: invalid code 1000 in retryOn: must be a number from 1 to 999 (without quotes), or the name of an error: letters, digits and _ . : -\n"
          "s: invalid code 1.5 in retryOn: must be a number from 1 to 999 (without quotes), or the name of an error: letters, digits and _ . : -\n"
          "s: invalid code \"503\" in retryOn: must be a number from 1 to 999 (without quotes), or the name of an error: letters, digits and _ . : -\n"
          "s: invalid code \"\" in retryOn: must be a number from 1 to 999 (without quotes), or the name of an error: letters, digits and _ . : -\n"
          "s: invalid code \"a b\" in retryOn: must be a number from 1 to 999 (without quotes), or the name of an error: letters, digits and _ . : -\n"
          "s: invalid code null in retryOn: must be a number from 1 to 999 (without quotes), or the name of an error: letters, digits and _ . : -\n" },
        { "continueOnError", S("\"name\":\"f\",\"continueOnError\":1"),
          "s: invalid continueOnError 1: must be true or false\n" },
        { "what is for steps only", EACH(",\"retryOn\":[1],\"noRetryOn\":[1],\"continueOnError\":true,\"recordInput\":false"),
          "e: step-only config: 'retryOn' is for steps, not for a forEach\n"
          "e: step-only config: 'noRetryOn' is for steps, not for a forEach\n"
          "e: step-only config: 'continueOnError' is for steps, not for a forEach\n"
          "e: step-only config: 'recordInput' is for steps, not for a forEach\n" },
        { "onFailure of a forEach", EACH(",\"onFailure\":\"colect\""),
          "e: unknown onFailure \"colect\": must be fail or collect; did you mean 'collect'?\n" },
        { "jitter at its ends", DOC("{\"type\":\"step\",\"name\":\"f\",\"jitter\":0},{\"type\":\"step\",\"name\":\"f\",\"jitter\":1}"), "" },
        { "needs that are no list", S("\"name\":\"f\",\"needs\":\"a\""),
          "s: invalid needs \"a\": must be a list of aliases\n" },
        { "needs that are no aliases", S("\"name\":\"f\",\"needs\":[1,\"x\"]"),
          "s: invalid alias 1 in needs: must be a text\n"
          "s: needs 'x', which is not the alias of a node before it\n" },
        { "step's handler", S("\"name\":\"f\",\"onError\":[]"), "s:onError: a handler that is a list needs at least one node\n" },
        { "step's handler that is neither", S("\"name\":\"f\",\"onError\":5"), "s: invalid onError 5: must be a step or a list of nodes\n" },
        { "step's handler is a step", S("\"name\":\"f\",\"onError\":{\"kind\":\"http\",\"name\":\"x\"}"),
          "s:onError: a step of kind http takes no 'name'\n" },
    };
    CHECK_ROWS(rows);
}

static void delays_and_signals_are_checked(void **state)
{
    (void)state;
#define DELAY(with) S("\"kind\":\"delay\",\"with\":" with)
#define SIGNAL(with) S("\"kind\":\"signal\",\"with\":" with)
#define RANGE ": must be a number, not below 0 and at most a hundred years\n"
    static const struct row rows[] = {
        { "no time", S("\"kind\":\"delay\""), "s: a delay needs 'with': its duration\n" },
        { "negative", DELAY("-1"), "s: invalid delay -1" RANGE },
        { "too long", DELAY("{\"seconds\":3155760001}"), "s: invalid delay 3155760001" RANGE },
        { "words are not for here", DELAY("\"5s\""), "s: invalid delay \"5s\"" RANGE },
        { "two times", DELAY("{\"seconds\":1,\"ms\":1}"),
          "s: invalid delay: it has one of 'milliseconds', 'seconds', 'ms'\n" },
        { "none of them", DELAY("{}"), "s: invalid delay: it has one of 'milliseconds', 'seconds', 'ms'\n" },
        { "another", DELAY("{\"minutes\":1}"),
          "s: invalid delay: unknown key \"minutes\"; it has 'milliseconds', 'seconds' or 'ms'\n" },
        { "no number", DELAY("{\"ms\":null}"), "s: invalid delay null" RANGE },
        { "templates are for later", DELAY("{\"minutes\":\"${ .x }\"}"), "" },
        { "no signal", S("\"kind\":\"signal\""), "s: a signal needs 'with': an object with its 'name'\n" },
        { "no object", SIGNAL("\"go\""), "s: a signal needs 'with': an object with its 'name'\n" },
        { "no name", SIGNAL("{}"), "s: a signal needs a 'name'\n" },
        { "empty name", SIGNAL("{\"name\":\"\"}"),
          "s: invalid name of a signal \"\": must be a text of 1 to 200 bytes\n" },
        { "long name", SIGNAL("{\"name\":\"" A200 "a\"}"),
          "s: invalid name of a signal \"" A50 "aaaaaaaaa…: must be a text of 1 to 200 bytes\n" },
        { "name that is no text", SIGNAL("{\"name\":5}"),
          "s: invalid name of a signal 5: must be a text of 1 to 200 bytes\ns: a signal needs a 'name'\n" },
        { "timeout 0", SIGNAL("{\"name\":\"x\",\"timeout\":0}"), "s: invalid timeout 0 of a signal" MS },
        { "timeout no number", SIGNAL("{\"name\":\"x\",\"timeout\":\"5s\"}"), "s: invalid timeout \"5s\" of a signal" MS },
        { "unknown key", SIGNAL("{\"name\":\"x\",\"defualt\":0,\"q\\u0071\":1}"),
          "s: unknown key 'defualt' of a signal; did you mean 'default'?\ns: unknown key 'qq' of a signal\n" },
        { "templates everywhere", SIGNAL("{\"name\":\"${ .n }\",\"timeout\":\"${ .t }\"}"), "" },
        { "templates anywhere", SIGNAL("{\"name\":\"x\",\"timeout\":\"${ .t }\"}"), "" },
    };
    CHECK_ROWS(rows);
}

#define AGENT      "'agent':{'type':'step','name':'f'}"
#define ST(a, m)   "{'alias':'" a "'," m AGENT "}"
#define STAGE(...) "{'type':'stage','alias':'g','states':[" __VA_ARGS__ "]}"

/* Who is told of a schedule, and the parameters of the whole. */
static void manifests_are_checked(void **state)
{
    static const struct {
        const char *says, *said, *expected;
    } cases[] = {
        { "one event, one webhook", "'listeners':[{'on':'suspend','webhook':'https://x/y'}]", "" },
        { "lists", "'listeners':[{'on':['final','aborted'],'command':['a','b']}]", "" },
        { "no list", "'listeners':{}", "listeners: invalid listeners: must be a list of at most 100\n" },
        { "no object", "'listeners':[1]", "listeners: invalid listener 1: must be an object with 'on' and a 'command' or a 'webhook'\n" },
        { "unknown events", "'listeners':[{'on':['suspended','x'],'command':['a']}]",
          "listeners: unknown event \"suspended\" in listeners; did you mean 'suspend'?\n"
          "listeners: unknown event \"x\" in listeners: must be dispatch, state_completed, stage_completed, suspend, redirect, exhausted, final, completed or aborted\n" },
        { "unknown keys", "'listeners':[{'on':'final','comand':['a'],'webhook':'http://x'}]",
          "listeners: unknown key \"comand\" of a listener; did you mean 'command'?\n" },
        { "two targets, bad ones, and no event", "'listeners':[{'command':'a b','webhook':'ftp://x'}]",
          "listeners: invalid command \"a b\" in listeners: must be a list of texts, the program and its arguments\n"
          "listeners: invalid webhook \"ftp://x\" in listeners: must be a URL, http://… or https://…\n"
          "listeners: a listener needs 'on': the events it is called for\n"
          "listeners: a listener has either a 'command' or a 'webhook'\n" },
        { "parameters", "'parameters':[1]", "parameters: invalid parameters [1]: must be an object\n" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[1000];
        (void)snprintf(json, sizeof json, "{'name':'w','steps':[" STAGE(ST("a", "")) "],%s}", cases[i].said);
        for (char *c = json; *c != '\0'; c++)
            if (*c == '\'')
                *c = '"';
        expect_violations(cases[i].says, json, cases[i].expected);
    }
}

/* Every rule of a schedule that can be judged beforehand, all violations at once. */
static void stages_are_checked(void **state)
{
    static const struct {
        const char *says, *steps, *expected;
    } cases[] = {
        { "a good one", STAGE(ST("a", "'priority':9,") "," ST("b", "'priority':8,'critical':true,'maxRetry':2,'onFailure':'a','timeout':5,'dependsOn':{'x':{'state':'a','field':'description'}},'access':'explicit','agentId':'z','parameters':{'k':[1]},"))
          ",{'type':'stage','alias':'h','concurrency':2,'states':[" ST("a", "'final':true,'priority':7,'dependsOn':{'y':{'state':'b','stage':'g'}},") "]}", "" },
        { "no states", STAGE(""), "g: a stage needs at least one state\n" },
        { "states that are no list", "{'type':'stage','alias':'g','states':1,'concurrency':0}",
          "g: invalid states 1: must be a list\ng: a stage needs at least one state\ng: invalid concurrency 0: must be at least 1\n" },
        { "a state that is no object, one without a name", STAGE("7,{" AGENT "}"),
          "g:child: a state needs an 'alias'\ng:child_2: a state needs an 'alias'\n"
          "g:child: invalid state 7: must be an object\n"
          "g:child: a state needs an 'agent': one step or workflow\n" },
        { "names are unique", STAGE(ST("a", "") "," ST("a", "")), "g:a: duplicate state 'a': it must be unique\n" },
        { "the agent is there", STAGE("{'alias':'a'}"), "g:a: a state needs an 'agent': one step or workflow\n" },
        { "it is a step or a workflow", STAGE("{'alias':'a','agent':{'type':'branch','if':1,'then':[]}},{'alias':'b','agent':[]}"),
          "g:b: invalid agent []: must be a step or a workflow\n"
          "g:a: the agent of a state is a step, a workflow or a chat, not a branch\n"
          "g:b: a state needs an 'agent': one step or workflow\n" },
        { "how often it is tried, its state says", STAGE("{'alias':'a','agent':{'type':'step','name':'f','maxAttempts':2,'when':1}}"),
          "g:a: an agent takes no 'when'\ng:a: an agent has no time-out, attempts or back-off of its own: 'maxRetry' and 'timeout' are its state's\n" },
        { "priority range", STAGE(ST("a", "'priority':-1,") "," ST("b", "'priority':1000,")),
          "g:a: invalid priority -1: must be from 0 to 999\ng:b: invalid priority 1000: must be from 0 to 999\n" },
        { "a critical state has a priority of at least 1", STAGE(ST("a", "'priority':0,'critical':true,")),
          "g:a: a critical state has a priority of at least 1\n" },
        { "critical and final states have their priority to themselves",
          STAGE(ST("a", "'critical':true,") "," ST("b", "") "," ST("c", "'priority':5,") "," ST("d", "'priority':5,'final':true,")),
          "g:a: the priority of a critical state must be unique in its stage: 'b' has 100 too\n"
          "g:d: the priority of a final state must be unique in its stage: 'c' has 5 too\n" },
        { "dependsOn names existing states", STAGE(ST("parser", "") "," ST("b", "'priority':5,'dependsOn':{'x':{'state':'praser'},'y':{},'z':7,'w':{'state':'parser','field':'size','from':1}},")),
          "g:b: dependsOn names 'praser', which is not a state of 'g'; did you mean 'parser'?\n"
          "g:b: dependsOn 'y' needs a 'state'\n"
          "g:b: invalid dependsOn 'z': must be an object with its 'state'\n"
          "g:b: unknown key \"from\" in dependsOn 'w': it has state, field and stage\n"
          "g:b: unknown field 'size' in dependsOn 'w': must be result or description\n" },
        { "same-stage dependencies have strictly higher priority", STAGE(ST("a", "") "," ST("b", "'dependsOn':{'x':{'state':'a'}},")),
          "g:b: it depends on 'a', which must have a higher priority than its own, 100\n" },
        { "other-stage dependencies lie in an earlier stage", STAGE(ST("a", "'dependsOn':{'x':{'state':'b','stage':'h'}},"))
          ",{'type':'stage','alias':'h','states':[" ST("b", "") "]}",
          "g:a: dependsOn 'x' names the stage 'h', which is not an earlier one\n" },
        { "onFailure names another state of the same stage", STAGE(ST("a", "'maxRetry':1,'onFailure':'a',") "," ST("b", "'maxRetry':1,'onFailure':'c',")),
          "g:a: onFailure names the state itself: a retry runs it again anyway\n"
          "g:b: onFailure names 'c', which is not a state of 'g'\n" },
        { "redirects form no cycle", STAGE(ST("a", "'onFailure':'b',") "," ST("b", "'onFailure':'a',")),
          "g:b: onFailure 'a' leads back to this state: it would wait for itself (redirects must not form a cycle)\n" },
        { "nor do redirects and dependencies together", STAGE(ST("a", "'priority':9,'onFailure':'b',") "," ST("b", "'priority':5,'dependsOn':{'x':{'state':'a'}},")),
          "g:b: its dependency 'a' leads back to this state: it would wait for itself\n" },
        { "retries and time-outs", STAGE(ST("a", "'maxRetry':-1,'timeout':0,") "," ST("b", "'maxRetry':1.5,")),
          "g:a: invalid maxRetry -1: must be from 0 to 1000000\n"
          "g:a: invalid timeout 0: must be milliseconds, above 0 and at most a hundred years\n"
          "g:b: invalid maxRetry 1.5: must be a whole number\n" },
        { "parameters and access", STAGE(ST("a", "'parameters':[],'access':'some',")),
          "g:a: unknown access \"some\": must be all, logs, explicit or none\n"
          "g:a: invalid parameters []: must be an object\n" },
        { "unknown keys with a suggestion", STAGE(ST("a", "'prioritie':1,")),
          "g:a: unknown key 'prioritie' of a state; did you mean 'priority'?\n" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[4096];
        int n = snprintf(json, sizeof json, "{'name':'w','steps':[%s]}", cases[i].steps);
        assert_true(n > 0 && (size_t)n < sizeof json);
        for (char *at = json; *at != '\0'; at++)
            if (*at == '\'')
                *at = '"';
        expect_violations(cases[i].says, json, cases[i].expected);
    }
}

static void supervisors_are_checked(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "branch without a condition", DOC("{\"type\":\"branch\",\"alias\":\"b\",\"then\":[]}"), "b: a branch needs 'if'\n" },
        { "branch without a path", DOC("{\"type\":\"branch\",\"alias\":\"b\",\"if\":true,\"else\":[" F "]}"), "b: a branch needs 'then'\n" },
        { "branch without nodes is allowed", DOC("{\"type\":\"branch\",\"if\":true,\"then\":[],\"else\":[]}"), "" },
        { "branch whose paths are no lists", DOC("{\"type\":\"branch\",\"alias\":\"b\",\"if\":true,\"then\":" F ",\"else\":5}"),
          "b: invalid then {\"type\":\"step\",\"name\":\"f\"}: must be a list of nodes\n"
          "b: invalid else 5: must be a list of nodes\n" },
        { "nodes in both paths", DOC("{\"type\":\"branch\",\"alias\":\"b\",\"if\":true,\"then\":[5],\"else\":[" F ",6]}"),
          "b:then:node0:node: invalid node 5: must be an object\n"
          "b:else:node1:node: invalid node 6: must be an object\n" },
        { "loop without a condition", DOC("{\"type\":\"loop\",\"alias\":\"l\",\"body\":[" F "]}"), "l: a loop needs 'while' or 'until'\n" },
        { "loop with two", LOOP(",\"until\":{\"fn\":\"g\"}"), "l: a loop cannot have both 'while' and 'until'\n" },
        { "loop without a body", DOC("{\"type\":\"loop\",\"alias\":\"l\",\"until\":1}"), "l: a loop needs 'body' with at least one node in it\n" },
        { "loop with an empty body", DOC("{\"type\":\"loop\",\"alias\":\"l\",\"until\":1,\"body\":[]}"), "l: a loop needs 'body' with at least one node in it\n" },
        { "loop with a bad body", DOC("{\"type\":\"loop\",\"alias\":\"l\",\"until\":1,\"body\":1}"),
          "l: invalid body 1: must be a list of nodes, a step or a workflow\n"
          "l: a loop needs 'body' with at least one node in it\n" },
        { "maxIterations 0", LOOP(",\"maxIterations\":0"), "l: invalid maxIterations 0: must be at least 1\n" },
        { "maxIterations no number", LOOP(",\"maxIterations\":[]"), "l: invalid maxIterations []: must be a whole number\n" },
        { "unknown keep", LOOP(",\"keep\":\"lst\""), "l: unknown keep \"lst\": must be all, last or none; did you mean 'last'?\n" },
        { "forEach without items", DOC("{\"type\":\"forEach\",\"alias\":\"e\",\"run\":[" F "]}"), "e: a forEach needs 'items'\n" },
        { "forEach without a run", DOC("{\"type\":\"forEach\",\"alias\":\"e\",\"items\":[]}"), "e: a forEach needs 'run' with at least one node in it\n" },
        { "concurrency 0", EACH(",\"parallel\":true,\"concurrency\":0"), "e: invalid concurrency 0: must be at least 1\n" },
        { "concurrency alone", EACH(",\"concurrency\":2"), "e: 'concurrency' is only for a forEach that is 'parallel'\n" },
        { "parallel that is no truth", EACH(",\"parallel\":1"), "e: invalid parallel 1: must be true or false\n" },
        { "concurrent without children", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[]}"), "c: a concurrent needs at least one child\n" },
        { "concurrent without steps", DOC("{\"type\":\"concurrent\",\"alias\":\"c\"}"), "c: a concurrent needs at least one child\n" },
        { "concurrent with bad steps", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":" F "}"),
          "c: invalid steps {\"type\":\"step\",\"name\":\"f\"}: must be a list of children\n"
          "c: a concurrent needs at least one child\n" },
        { "children of the same alias", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"type\":\"step\",\"alias\":\"x\",\"name\":\"f\"},{\"alias\":\"x\",\"nodes\":[" F "]}]}"),
          "c:x: duplicate concurrent child alias 'x': it must be unique\n" },
        { "children of the same implied alias", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[" F "," F "]}"), "" },
        { "a child with a bad alias", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"alias\":\"x y\",\"nodes\":[5]}]}"),
          "c:x y: invalid alias 'x y': it may contain only letters, digits, '_', '.' and '-'\n"
          "c:x y:node0:node: invalid node 5: must be an object\n" },
        { "a child without an alias", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"nodes\":[" F "]}]}"),
          "c:child: a child that is a list of nodes needs an 'alias'\n" },
        { "a child without nodes", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"alias\":\"x\",\"nodes\":[]}]}"), "c:x: it has no nodes\n" },
        { "a child that is nothing", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"alias\":\"x\"},7]}"),
          "c:x: it needs a 'type': step, workflow, branch, loop, forEach, concurrent, stage or chat\n"
          "c:node: invalid node 7: must be an object\n" },
        { "a child with more keys", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"alias\":\"x\",\"nodes\":[" F "],\"when\":1}]}"),
          "c: unknown key 'when' of a child with 'nodes'\n" },
        { "a child that is a supervisor", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"type\":\"branch\",\"alias\":\"x\",\"if\":1,\"then\":[5]}]}"),
          "c:x: a child is a step, a workflow or 'nodes': put a branch in 'nodes'\n"
          "c:x:then:node0:node: invalid node 5: must be an object\n" },
        { "unknown continueOn and onFailure", CONC(",\"continueOn\":\"detachd\",\"onFailure\":\"ignore\""),
          "c: unknown continueOn \"detachd\": must be all or detached; did you mean 'detached'?\n"
          "c: unknown onFailure \"ignore\": must be fail or collect\n" },
        { "join 0", CONC(",\"join\":0"), "c: invalid join 0: must be from 1 to the number of children, 1\n" },
        { "join beyond", CONC(",\"join\":2"), "c: invalid join 2: must be from 1 to the number of children, 1\n" },
        { "join of another word", CONC(",\"join\":\"frist\""), "c: unknown join \"frist\": must be all, first or a number; did you mean 'first'?\n" },
        { "join of another type", CONC(",\"join\":true"), "c: invalid join true: must be a whole number\n" },
        { "join with detached", CONC(",\"join\":\"all\",\"continueOn\":\"detached\""), "c: 'join' cannot be used with 'continueOn' detached\n" },
        { "first with detached", CONC(",\"join\":\"first\",\"continueOn\":\"detached\""), "c: 'join' cannot be used with 'continueOn' detached\n" },
        { "joins that are right", DOC("{\"type\":\"concurrent\",\"steps\":[" F "],\"join\":\"all\"},{\"type\":\"concurrent\",\"steps\":[" F "],\"join\":\"first\"},{\"type\":\"concurrent\",\"steps\":[" F "," F "],\"join\":2}"), "" },
        { "step-only config", LOOP(",\"timeout\":5,\"onTimeout\":\"retry\",\"maxAttempts\":2,\"backoff\":\"linear\",\"backoffBaseMs\":1,\"maxBackoffMs\":1,\"jitter\":0,\"needs\":[],\"onError\":{\"name\":\"h\"}"),
          "l: step-only config: 'timeout' is for steps, not for a loop\n"
          "l: step-only config: 'onTimeout' is for steps, not for a loop\n"
          "l: step-only config: 'maxAttempts' is for steps, not for a loop\n"
          "l: step-only config: 'backoff' is for steps, not for a loop\n"
          "l: step-only config: 'backoffBaseMs' is for steps, not for a loop\n"
          "l: step-only config: 'maxBackoffMs' is for steps, not for a loop\n"
          "l: step-only config: 'jitter' is for steps, not for a loop\n"
          "l: step-only config: 'needs' is for steps, not for a loop\n"
          "l: step-only config: 'onError' is for steps, not for a loop\n" },
        { "step-only config of the others", DOC("{\"type\":\"branch\",\"alias\":\"b\",\"if\":1,\"then\":[],\"timeout\":1},"
          "{\"type\":\"forEach\",\"alias\":\"e\",\"items\":[],\"run\":[" F "],\"timeout\":1},"
          "{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[" F "],\"timeout\":1},"
          "{\"type\":\"workflow\",\"name\":\"v\",\"steps\":[" F "],\"timeout\":1}"),
          "b: step-only config: 'timeout' is for steps, not for a branch\n"
          "e: step-only config: 'timeout' is for steps, not for a forEach\n"
          "c: step-only config: 'timeout' is for steps, not for a concurrent\n"
          "v: step-only config: 'timeout' is for steps, not for a workflow\n" },
    };
    CHECK_ROWS(rows);
}

static void nested_workflows_are_checked(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "no name", DOC("{\"type\":\"workflow\",\"alias\":\"p\"}"), "p: a workflow needs a 'name'\n" },
        { "bad name", DOC("{\"type\":\"workflow\",\"name\":\"a b\",\"steps\":[" F "]}"),
          "workflow: invalid name 'a b' of a workflow: it may contain only letters, digits, '_', '.' and '-'\n" },
        { "unknown", DOC("{\"type\":\"workflow\",\"name\":\"pay\"}"), "pay: there is no workflow 'pay'\n" },
        { "empty", DOC("{\"type\":\"workflow\",\"name\":\"pay\",\"steps\":[]}"), "pay: a workflow needs 'steps' with at least one node\n" },
        { "by name it has its own", DOC("{\"type\":\"workflow\",\"name\":\"pay\",\"inputSchema\":{},\"workflowDescription\":\"x\",\"onError\":{\"name\":\"h\"}}"),
          "pay: 'inputSchema' is only for a workflow with its 'steps'\n"
          "pay: 'workflowDescription' is only for a workflow with its 'steps'\n"
          "pay: step-only config: 'onError' is for steps, not for a workflow\n"
          "pay: there is no workflow 'pay'\n" },
        { "what is in it", DOC("{\"type\":\"workflow\",\"name\":\"pay\",\"inputSchema\":5,\"workflowDescription\":5,\"onError\":{},\"steps\":[5]}"),
          "pay: invalid workflowDescription 5: must be a text\n"
          "pay: invalid input schema: a JSON Schema is an object, true or false\n"
          "pay:node0:node: invalid node 5: must be an object\n"
          "pay:onError: a step of kind function needs the 'name' of a function\n" },
        { "a workflow that is the run", DOC("{\"type\":\"forEach\",\"alias\":\"e\",\"items\":[],\"run\":{\"type\":\"workflow\",\"name\":\"v\",\"when\":1,\"description\":\"x\",\"jitter\":1,\"foo\":1,\"steps\":[5],\"onError\":{}}}"),
          "e:run: unknown key 'foo' of a workflow\n"
          "e:run: a workflow in this place takes no 'when': put it in a list of nodes\n"
          "e:run: a workflow in this place takes no 'description': put it in a list of nodes\n"
          "e:run: step-only config: 'jitter' is for steps, not for a workflow\n"
          "e:run:node0:node: invalid node 5: must be an object\n"
          "e:run:onError: a step of kind function needs the 'name' of a function\n" },
        { "a workflow that is the body", DOC("{\"type\":\"loop\",\"alias\":\"l\",\"while\":1,\"body\":{\"type\":\"workflow\",\"name\":\"v\",\"steps\":[]}}"),
          "l:body: a workflow needs 'steps' with at least one node\n" },
        { "a workflow that is a child", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"type\":\"workflow\",\"alias\":\"x\",\"name\":\"v\"},{\"type\":\"workflow\",\"name\":\"u\",\"steps\":[7]}]}"),
          "c:x: there is no workflow 'v'\n"
          "c:u:node0:node: invalid node 7: must be an object\n" },
        { "a workflow that is a child with a node of its own", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":["
          "{\"type\":\"workflow\",\"alias\":\"x\",\"name\":\"v\",\"when\":1,\"steps\":[" F "]},{\"type\":\"workflow\",\"name\":\"u\",\"description\":\"x\",\"jitter\":1,\"steps\":[7]}]}"),
          "c:u: step-only config: 'jitter' is for steps, not for a workflow\n"
          "c:u:node0:node: invalid node 7: must be an object\n" },
        { "itself", "{\"name\":\"a\",\"steps\":[{\"type\":\"workflow\",\"alias\":\"x\",\"name\":\"a\"}]}",
          "x: workflow 'a' contains itself: a -> a\n" },
        { "itself through another", "{\"name\":\"a\",\"steps\":[{\"type\":\"workflow\",\"name\":\"b\",\"steps\":[{\"type\":\"workflow\",\"alias\":\"x\",\"name\":\"a\"}]}]}",
          "b:node0:x: workflow 'a' contains itself: a -> b -> a\n" },
        { "not the outermost", "{\"name\":\"a\",\"steps\":[{\"type\":\"workflow\",\"name\":\"b\",\"steps\":[{\"type\":\"workflow\",\"name\":\"c\",\"steps\":[{\"type\":\"workflow\",\"name\":\"b\"}]}]}]}",
          "b:node0:c:node0:b: workflow 'b' contains itself: b -> c -> b\n" },
        { "the same one twice is no circle", DOC("{\"type\":\"workflow\",\"name\":\"b\",\"steps\":[" F "]},{\"type\":\"workflow\",\"name\":\"b\",\"steps\":[" F "]}"), "" },
    };
    CHECK_ROWS(rows);
}

static void what_is_needed_must_come_before(void **state)
{
    (void)state;
#define NEEDS(alias, need) "{\"type\":\"step\",\"alias\":\"" alias "\",\"name\":\"f\",\"needs\":[\"" need "\"]}"
#define NOT "', which is not the alias of a node before it\n"
    static const struct row rows[] = {
        { "before it", DOC(NEEDS("a", "b") "," NEEDS("b", "a") "," NEEDS("c", "c")),
          "a: needs 'b" NOT "c: needs 'c" NOT },
        { "before its supervisor", DOC(F ",{\"type\":\"forEach\",\"alias\":\"e\",\"items\":[],\"run\":[" NEEDS("x", "f") "," NEEDS("y", "e") "," NEEDS("z", "g") "]},{\"type\":\"step\",\"name\":\"g\"}"),
          "e:run:node1:y: needs 'e" NOT "e:run:node2:z: needs 'g" NOT },
        { "in a loop also behind it, or itself, but not from inside", DOC("{\"type\":\"loop\",\"alias\":\"l\",\"while\":1,\"body\":[" NEEDS("x", "z") ",{\"type\":\"branch\",\"alias\":\"b\",\"if\":1,\"then\":[" NEEDS("p", "b") "," NEEDS("q", "r") "," NEEDS("r", "z") "]}," NEEDS("z", "z") "," NEEDS("u", "p") "," NEEDS("v", "l") "]}"),
          "l:body:node1:b:then:node1:q: needs 'r" NOT "l:body:node3:u: needs 'p" NOT "l:body:node4:v: needs 'l" NOT },
        { "not beside it", DOC("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"type\":\"step\",\"alias\":\"a\",\"name\":\"f\"}," NEEDS("b", "a") ",{\"alias\":\"d\",\"nodes\":[" F "," NEEDS("x", "f") "," NEEDS("y", "a") "]}]}"),
          "c:b: needs 'a" NOT "c:d:node2:y: needs 'a" NOT },
        { "not from the other path", DOC("{\"type\":\"branch\",\"alias\":\"b\",\"if\":1,\"then\":[" F "],\"else\":[" NEEDS("x", "f") "]}"),
          "b:else:node0:x: needs 'f" NOT },
        { "a nested workflow sees its parent's", DOC(F ",{\"type\":\"workflow\",\"name\":\"v\",\"steps\":[" NEEDS("x", "f") "]}"), "" },
    };
    CHECK_ROWS(rows);
}
/* clang-format on */

static void everything_wrong_is_told_at_once(void **state)
{
    (void)state;
    struct rv__buf json;
    struct fixture fx;
    rv__buf_init(&json, 10 << 20);
    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[");
    for (int i = 0; i < 1500; i++)
        rv__buf_fmt(&json, "%s{\"type\":\"step\",\"name\":\"f\",\"timeout\":-1}", i ? "," : "");
    rv__buf_text(&json, "]}");
    fixture_compile(&fx, json.text, NULL);
    assert_int_equal(fx.rc, RV_EINVAL);
    assert_int_equal(fx.bad.count, RV__VIOLATIONS_MAX);
    assert_int_equal(fx.bad.dropped, 500);
    assert_str(fx.bad.items[999].path, "f_1000");
    assert_non_null(strstr(fx.err.message, "(and 1499 more)"));
    fixture_done(&fx);

    rv__buf_reset(&json); /* complaints of the draft are bounded, too */
    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[");
    for (int i = 0; i < 1500; i++)
        rv__buf_fmt(&json, "%s{\"type\":\"step\",\"name\":\"f\",\"timeout\":[]}", i ? "," : "");
    rv__buf_text(&json, "]}");
    fixture_compile(&fx, json.text, NULL);
    assert_int_equal(fx.bad.count, RV__VIOLATIONS_MAX);
    fixture_done(&fx);

    rv__buf_reset(&json); /* and of one object only the first few unknown keys are worth a line */
    rv__buf_text(&json, "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"name\":\"f\"");
    for (int i = 0; i < 1500; i++)
        rv__buf_fmt(&json, ",\"unknown%d\":%d", i, i);
    rv__buf_text(&json, "}]}");
    fixture_compile(&fx, json.text, NULL);
    assert_int_equal(fx.bad.count, 20);
    fixture_done(&fx);
    rv__buf_done(&json);
}

static void a_list_of_violations_can_be_spared(void **state)
{
    (void)state;
    struct rv__draft *draft = NULL;
    struct rv__plan *plan = NULL;
    rv_error err;
    assert_int_equal(rv__draft_read(rv__str("{}"), &draft, &err), RV_OK);
    assert_int_equal(rv__plan_compile(draft, NULL, NULL, &plan, &err), RV_EINVAL);
    assert_string_equal(err.message, "name: a workflow needs a 'name' (and 1 more)");
    assert_int_equal(rv__plan_compile(draft, NULL, NULL, &plan, NULL), RV_EINVAL);
    assert_null(plan);
    rv__draft_free(draft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_function_may_make_of_a_step_is_checked),
        cmocka_unit_test(the_document_is_checked),
        cmocka_unit_test(nodes_are_checked),
        cmocka_unit_test(steps_are_checked),
        cmocka_unit_test(delays_and_signals_are_checked),
        cmocka_unit_test(supervisors_are_checked),
        cmocka_unit_test(stages_are_checked),
        cmocka_unit_test(manifests_are_checked),
        cmocka_unit_test(nested_workflows_are_checked),
        cmocka_unit_test(what_is_needed_must_come_before),
        cmocka_unit_test(everything_wrong_is_told_at_once),
        cmocka_unit_test(a_list_of_violations_can_be_spared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
