/* test_manifest.c: manifests: both layouts, agents, and every rule with its place, for src/define/manifest.c. */
#include "define_test.h"

#define AGENTS                 \
    "agents:\n"                \
    "  - { id: f, call: f }\n" \
    "  - { id: c, command: [./c, \"x\"] }\n"
#define M(stages) "name: m\n" stages AGENTS

static void expect_manifest(const char *says, const char *yaml, const char *json)
{
    struct rv__definitions *found = define("w.yaml", yaml);
    struct rv__buf got;
    rv__buf_init(&got, 1 << 20);
    problems_text(found, &got);
    if (found->count != 1)
        fail_msg("%s:\n%s", says, got.text);
    rv__buf_reset(&got);
    assert_int_equal(rv__plan_write(found->items[0].plan, &got, NULL), RV_OK);
    if (strcmp(got.text, json) != 0)
        fail_msg("%s:\n%s\ninstead of\n%s", says, got.text, json);
    rv__buf_done(&got);
    rv__definitions_free(found);
}

static void both_layouts_and_both_spellings_are_one_plan(void **state)
{
    static const char plan[] =
        "{\"name\":\"m\",\"description\":\"d\",\"manifestVersion\":\"0.1.0\",\"parameters\":{\"p\":"
        "1},"
        "\"listeners\":[{\"on\":[\"suspend\"],\"command\":[\"./tell\"]}],\"steps\":["
        "{\"type\":\"stage\",\"alias\":\"triage\",\"concurrency\":4,\"states\":["
        "{\"alias\":\"a\",\"priority\":200,\"critical\":true,\"maxRetry\":2,\"timeout\":30000,"
        "\"onFailure\":\"b\",\"access\":\"logs\",\"agentId\":\"f\",\"parameters\":{\"own\":1,\"k\":"
        "2},"
        "\"description\":\"text\",\"resources\":{\"tools\":[]},\"appendErrorsToChat\":false,"
        "\"clearChatOnPass\":false,\"agent\":{\"type\":\"step\",\"alias\":\"a\",\"kind\":\"call\","
        "\"name\":\"fn\"}},"
        "{\"alias\":\"b\",\"agentId\":\"c\",\"agent\":{\"type\":\"step\",\"alias\":\"b\","
        "\"description\":\"did ${ .result "
        "}\",\"kind\":\"command\",\"with\":{\"argv\":[\"./c\"]}}}]},"
        "{\"type\":\"stage\",\"alias\":\"report\",\"concurrency\":4,\"states\":["
        "{\"alias\":\"c\",\"final\":true,\"timeout\":1500,\"access\":\"explicit\",\"agentId\":"
        "\"c\","
        "\"dependsOn\":{\"x\":{\"state\":\"a\",\"field\":\"description\",\"stage\":\"triage\"}},"
        "\"agent\":{\"type\":\"step\",\"alias\":\"c\",\"description\":\"did ${ .result }\","
        "\"kind\":\"command\",\"with\":{\"argv\":[\"./c\"]}}}]}]}";
    static const char head[] =
        "name: m\nversion: 0.1.0\ndescription: d\nparameters: { p: 1 }\nmax_concurrency: 4\n"
        "listeners: [ { on: [suspend], command: [./tell] } ]\n"
        "agents:\n"
        "- { id: f, type: function, call: fn, parameters: { k: 1, own: 1 } }\n"
        "- { id: c, command: [./c], describe: \"did ${ .result }\" }\n";
    static const char *const layouts[] = {
        "stages:\n"
        "  triage:\n"
        "  - { name: a, agent_id: f, priority: 200, accessibility: logs, depends_on: {}, "
        "max_retry: 2,\n"
        "      timeout: 30, critical: true, final: false, on_failure: b, parameters: { k: 2 },\n"
        "      description: text, append_errors_to_chat: false, clear_chat_on_pass: false,\n"
        "      resources: { tools: [] } }\n"
        "  - { name: b, agent_id: c, on_failure: null, timeout: ~ }\n"
        "  report:\n"
        "  - { name: c, agentId: c, final: true, timeout: 1.5, accessibility: explicit,\n"
        "      dependsOn: { x: { state: a, field: description, stage: triage } } }\n",
        "states:\n"
        "  - { name: a, stage: triage, agentId: f, priority: 200, accessibility: logs, maxRetry: "
        "2,\n"
        "      timeout: 30s, critical: true, onFailure: b, parameters: { k: 2 }, description: "
        "text,\n"
        "      appendErrorsToChat: false, clearChatOnPass: false, resources: { tools: [] } }\n"
        "  - { name: c, stage: report, agent_id: c, final: true, timeout: 1500ms,\n"
        "      accessibility: explicit,\n"
        "      depends_on: { x: { state: a, field: description, stage: triage } } }\n"
        "  - { name: b, stage: triage, agent_id: c, x-mine: 5 }\n",
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char yaml[4096];
        (void)snprintf(yaml, sizeof yaml, "%s%s", head, layouts[i]);
        expect_manifest(i == 0 ? "stages" : "states", yaml, plan);
    }
}

static void the_flat_layout_may_list_its_stages(void **state)
{
    (void)state;
    expect_manifest(
        "in another order",
        M("stages: [one, two]\nstates:\n- { name: a, stage: two, agent_id: f }\n"
          "- { name: b, stage: one, agent_id: f }\n"),
        "{\"name\":\"m\",\"steps\":[{\"type\":\"stage\",\"alias\":\"one\",\"states\":["
        "{\"alias\":\"b\",\"agentId\":\"f\",\"agent\":{\"type\":\"step\",\"alias\":\"b\","
        "\"kind\":\"call\",\"name\":\"f\"}}]},{\"type\":\"stage\",\"alias\":\"two\","
        "\"states\":[{\"alias\":\"a\",\"agentId\":\"f\",\"agent\":{\"type\":\"step\","
        "\"alias\":\"a\",\"kind\":\"call\",\"name\":\"f\"}}]}]}");
}

/* ------------------------------------------------------------------------ each rule, SPEC §8 --- */

struct rule {
    const char *says, *yaml, *expected;
};

static void check_rules(const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_problems(rules[i].says, rules[i].yaml, rules[i].expected);
}
#define CHECK_RULES(rules) check_rules(rules, sizeof(rules) / sizeof *(rules))

static void stages_and_states_correspond(void **state)
{
    static const struct rule rules[] = {
        { "a stage without states", M("stages: { one: [ { name: a, agent_id: f } ], two: [] }\n"),
          "2:46: a stage needs at least one state\n" },
        { "a listed stage without states",
          M("stages: [one, two]\nstates: [ { name: a, stage: one, agent_id: f } ]\n"),
          "2:15: a stage needs at least one state\n" },
        { "a state whose stage is not listed",
          M("stages: [triage]\nstates:\n- { name: a, stage: triage, agent_id: f }\n"
            "- { name: b, stage: trage, agent_id: f }\n"),
          "5:21: 'stages' does not list the stage 'trage'; did you mean 'triage'?\n" },
        { "a state without a stage in a flat list", M("states:\n- { name: a, agent_id: f }\n"),
          "3:5: a state in a flat list needs its 'stage'\n" },
        { "a state that says another stage",
          M("stages: { one: [ { name: a, agent_id: f, stage: two } ] }\n"),
          "2:49: this state is in the stage 'one', but says 'two'\n" },
        { "both layouts", M("stages: { one: [] }\nstates: []\n"),
          "3:1: a manifest has either a mapping of 'stages' or a flat list of 'states'\n" },
        { "no list of states", M("stages: { one: { name: a } }\n"),
          "2:11: a stage needs at least one state\n2:16: the stage 'one' must be a list of states "
          "(- name: …), and is a mapping\n" },
        { "a state that is none", M("stages: { one: [ 5, { name: a, agent_id: f } ] }\n"),
          "2:18: a state must be a mapping, { name: …, agent_id: … }, and this is a number\n" },
        { "a list of stages alone", M("stages: [one]\n"),
          "2:1: 'stages' as a list needs a list 'states' beside it; or make 'stages' a mapping of "
          "each stage to its states\n" },
    };
    (void)state;
    CHECK_RULES(rules);
}

static void names_are_unique_and_aliases(void **state)
{
    static const struct rule rules[] = {
        { "two states of a stage",
          M("stages:\n  one:\n  - { name: a, agent_id: f }\n  - { name: a, agent_id: f }\n"),
          "5:7: duplicate state 'a': it must be unique\n" },
        { "not in different stages",
          M("stages: { one: [ { name: a, agent_id: f } ], two: [ { name: a, agent_id: f } ] }\n"),
          "" },
        { "a state without a name", M("stages: { one: [ { agent_id: f } ] }\n"),
          "2:20: a state needs a 'name'\n" },
        { "a name that is no alias", M("stages: { one: [ { name: \"a b\", agent_id: f } ] }\n"),
          "2:20: invalid alias 'a b'…" },
        { "a stage that is no alias", M("stages: { a__b: [ { name: a, agent_id: f } ] }\n"),
          "2:11: invalid alias 'a__b'…" },
        { "agents",
          "name: m\nstages: { one: [ { name: a, agent_id: f } ] }\nagents:\n"
          "- { id: f, call: f }\n- { id: f, call: g }\n",
          "5:3: agent 'f' must be unique: there is one of that id before\n" },
    };
    (void)state;
    CHECK_RULES(rules);
}

static void the_agent_of_a_state_exists(void **state)
{
    static const struct rule rules[] = {
        { "a slip of the pen",
          "name: m\nstages: { one: [ { name: a, agent_id: gather_agnet } ] }\n"
          "agents: [ { id: gather_agent, call: f } ]\n",
          "2:39: there is no agent 'gather_agnet'; did you mean 'gather_agent'?\n" },
        { "none at all", M("stages: { one: [ { name: a } ] }\n"),
          "2:20: a state needs an 'agent_id': the id of an agent\n" },
    };
    (void)state;
    CHECK_RULES(rules);
}

#define AGENT(agent) \
    "name: m\nstages: { one: [ { name: a, agent_id: x } ] }\nagents:\n- " agent "\n"

static void agents_are_steps_of_their_type(void **state)
{
    static const struct rule rules[] = {
        { "a function that is called as the agent", AGENT("{ id: x, type: function }"), "" },
        { "a command",
          AGENT("{ id: x, type: command, command: [./x], stdin: none, env: { A: b } }"), "" },
        { "a request", AGENT("{ id: x, http: { url: http://127.0.0.1/ } }"), "" },
        { "nothing", AGENT("{ id: x }"),
          "4:3: this agent does nothing: it needs one of call, command, http, chat, tool or "
          "workflow\n" },
        { "a type without what it does", AGENT("{ id: x, type: http }"),
          "4:3: an agent of the type 'http' needs 'http': what it does\n" },
        { "another type", AGENT("{ id: x, type: http, command: [./x] }"),
          "4:24: the agent's type is 'http', and it has 'command'\n" },
        { "an unknown type", AGENT("{ id: x, type: comand, command: [./x] }"),
          "4:18: unknown type 'comand' of an agent: must be function, command, http, workflow, "
          "chat "
          "or tool; did you mean 'command'?\n" },
        { "two things", AGENT("{ id: x, command: [./x], call: f }"),
          "4:28: an agent does one thing, and this one has 'command' and 'call'\n" },
        { "chats need no prompt", AGENT("{ id: x, type: chat, chat: { provider: p } }"), "" },
        { "but a provider", AGENT("{ id: x, type: chat, chat: { prompt: hi } }"),
          "4:24: a chat needs a 'provider'\n" },
        { "tools", AGENT("{ id: x, tool: { server: s } }"), "4:12: a tool needs a 'name'\n" },
        { "unknown keys", AGENT("{ id: x, command: [./x], descrbe: y }"),
          "4:28: unknown key 'descrbe' of an agent; did you mean 'describe'?\n" },
        { "what is its state's", AGENT("{ id: x, command: [./x], timeout: 5, max_retry: 1 }"),
          "4:28: an agent takes no 'timeout': its states set 'timeout' and 'max_retry'\n"
          "4:40: an agent takes no 'max_retry': its states set 'timeout' and 'max_retry'\n" },
        { "no id",
          "name: m\nstages: { one: [ { name: a, agent_id: x } ] }\nagents:\n- { id: x, call: f "
          "}\n- { call: f }\n- 5\n",
          "5:3: an agent must be a mapping with an 'id': a text without brackets, of at most 200 "
          "bytes\n"
          "6:3: an agent must be a mapping with an 'id': a text without brackets, of at most 200 "
          "bytes\n" },
        { "one that no state has is judged, too",
          M("stages: { one: [ { name: a, agent_id: f } ] }\n") "  - { id: unused, cmmand: [./x] "
                                                               "}\n",
          "6:5: this agent does nothing: it needs one of call, command, http, chat, tool or "
          "workflow\n"
          "6:19: unknown key 'cmmand' of an agent; did you mean 'command'?\n" },
    };
    (void)state;
    CHECK_RULES(rules);
}

#define STATES(states) M("stages:\n  one:\n" states)

static void priorities_follow_their_rules(void **state)
{
    static const struct rule rules[] = {
        { "their range",
          STATES("  - { name: a, agent_id: f, priority: -1 }\n  - { name: b, agent_id: f, "
                 "priority: 1000 }\n"
                 "  - { name: c, agent_id: f, priority: 999 }\n  - { name: d, agent_id: f, "
                 "priority: 0 }\n"),
          "4:29: invalid priority -1: must be from 0 to 999\n5:29: invalid priority 1000: must be "
          "from 0 to 999\n" },
        { "a critical state has one of at least 1",
          STATES("  - { name: a, agent_id: f, priority: 0, critical: true }\n"),
          "4:42: a critical state has a priority of at least 1\n" },
        { "critical and final states have theirs to themselves",
          STATES("  - { name: a, agent_id: f, critical: true }\n  - { name: b, agent_id: f }\n"
                 "  - { name: c, agent_id: f, priority: 5 }\n  - { name: d, agent_id: f, priority: "
                 "5, final: true }\n"),
          "4:29: the priority of a critical state must be unique in its stage: 'b' has 100 too\n"
          "7:29: the priority of a final state must be unique in its stage: 'c' has 5 too\n" },
    };
    (void)state;
    CHECK_RULES(rules);
}

static void dependencies_follow_their_rules(void **state)
{
    static const struct rule rules[] = {
        { "they name existing states",
          STATES("  - { name: parser, agent_id: f }\n  - name: b\n    agent_id: f\n    priority: "
                 "5\n    depends_on:\n"
                 "      good: { state: parser }\n      bad: { state: praser }\n"),
          "9:7: depends_on names 'praser', which is not a state of 'one'; did you mean "
          "'parser'?\n" },
        { "those of the same stage have a strictly higher priority",
          STATES("  - { name: a, agent_id: f }\n  - { name: b, agent_id: f, depends_on: { x: { "
                 "state: a } } }\n"),
          "5:43: it depends on 'a', which must have a higher priority than its own, 100\n" },
        { "those of other stages lie in an earlier one",
          STATES("  - { name: a, agent_id: f, depends_on: { x: { state: b, stage: two } } }\n"
                 "  two:\n  - { name: b, agent_id: f }\n"),
          "4:43: depends_on 'x' names the stage 'two', which is not an earlier one\n" },
        { "no state waits for itself",
          STATES("  - { name: a, agent_id: f, depends_on: { x: { state: a } } }\n"),
          "4:43: it depends on 'a', which must have a higher priority than its own, 100\n" },
        { "they are objects with known keys",
          STATES("  - { name: a, agent_id: f, priority: 200 }\n"
                 "  - { name: b, agent_id: f, depends_on: { x: a, y: { state: a, feild: result }, "
                 "z: { state: a, field: size } } }\n"),
          "5:43: invalid depends_on 'x': must be an object with its 'state'\n"
          "5:49: unknown key \"feild\" in depends_on 'y': it has state, field and stage\n"
          "5:81: unknown field 'size' in depends_on 'z': must be result or description\n" },
    };
    (void)state;
    CHECK_RULES(rules);
}

static void redirects_follow_their_rules(void **state)
{
    static const struct rule rules[] = {
        { "another state of the same stage",
          STATES("  - { name: a, agent_id: f, max_retry: 1, on_failure: a }\n  - { name: b, "
                 "agent_id: f, max_retry: 1, on_failure: bravo }\n"),
          "4:43: on_failure names the state itself: a retry runs it again anyway\n"
          "5:43: on_failure names 'bravo', which is not a state of 'one'\n" },
        { "no cycle",
          STATES("  - { name: a, agent_id: f, max_retry: 1, on_failure: b }\n  - { name: b, "
                 "agent_id: f, max_retry: 1, on_failure: a }\n"),
          "5:43: on_failure 'a' leads back to this state: it would wait for itself (redirects must "
          "not form a cycle)\n" },
        { "nor with a dependency",
          STATES("  - { name: a, agent_id: f, priority: 9, max_retry: 1, on_failure: b }\n"
                 "  - { name: b, agent_id: f, priority: 8, depends_on: { x: { state: a } } }\n"),
          "5:56: its dependency 'a' leads back to this state: it would wait for itself\n" },
    };
    (void)state;
    CHECK_RULES(rules);
}

static void a_redirect_without_retries_is_a_warning(void **state)
{
    (void)state;
    struct rv__definitions *found = define(
        "w.yaml",
        STATES("  - { name: a, agent_id: f, on_failure: b }\n  - { name: b, agent_id: f }\n"
               "  - { name: c, agent_id: f, on_failure: b, max_retry: 1 }\n"));
    assert_int_equal(found->problem_count, 0);
    assert_int_equal(found->warning_count, 1);
    assert_int_equal(found->warnings[0].line, 4);
    assert_true(strstr(found->warnings[0].message.at, "on_failure never runs") != NULL);
    rv__definitions_free(found);
}

static void values_and_keys_are_checked(void **state)
{
    static const struct rule rules[] = {
        { "unknown keys of states",
          STATES("  - { name: a, agent_id: f, prioritie: 1, agent: f, retries: 2, whatever: 1 }\n"),
          "4:29: unknown key 'prioritie' of a state; did you mean 'priority'?\n"
          "4:43: unknown key 'agent' of a state; did you mean 'agent_id'?\n"
          "4:53: unknown key 'retries' of a state; did you mean 'max_retry'?\n"
          "4:65: unknown key 'whatever' of a state\n" },
        { "unknown keys of manifests",
          M("stages: { one: [ { name: a, agent_id: f } ] }\nmaxConcurency: 1\ndefaults: {}\n"),
          "3:1: unknown key 'maxConcurency' of a manifest; did you mean 'max_concurrency'?\n"
          "4:1: unknown key 'defaults' of a manifest\n" },
        { "one key in two spellings",
          STATES("  - { name: a, agent_id: f, max_retry: 1, maxRetry: 2 }\n"),
          "4:43: 'max_retry' and 'maxRetry' are the same key\n" },
        { "concurrency", M("stages: { one: [ { name: a, agent_id: f } ] }\nmax_concurrency: 0\n"),
          "3:18: invalid max_concurrency 0: must be a whole number of 1 or more\n" },
        { "time-outs",
          STATES("  - { name: a, agent_id: f, timeout: 0 }\n  - { name: b, agent_id: f, timeout: "
                 "soon }\n"
                 "  - { name: c, agent_id: f, timeout: [1] }\n  - { name: d, agent_id: f, timeout: "
                 "-5 }\n"),
          "4:38: invalid timeout 0: must be seconds, above 0, or a duration such as 250ms, 30s, 5m "
          "or 1h30m\n"
          "5:38: invalid timeout soon: must be seconds, above 0, or a duration such as 250ms, 30s, "
          "5m or 1h30m\n"
          "6:38: invalid timeout a list: must be seconds, above 0, or a duration such as 250ms, "
          "30s, 5m or 1h30m\n"
          "7:38: invalid timeout -5: must be seconds, above 0, or a duration such as 250ms, 30s, "
          "5m or 1h30m\n" },
        { "retries", STATES("  - { name: a, agent_id: f, max_retry: -1 }\n"),
          "4:29: invalid max_retry -1: must be from 0 to 1000000\n" },
        { "accessibility", STATES("  - { name: a, agent_id: f, accessibility: explict }\n"),
          "4:44: unknown accessibility 'explict': must be all, logs, explicit or none; did you "
          "mean 'explicit'?\n" },
        { "parameters", STATES("  - { name: a, agent_id: f, parameters: [1] }\n"),
          "4:41: invalid parameters: must be a mapping, and is a list\n" },
        { "flags", STATES("  - { name: a, agent_id: f, critical: 1 }\n"),
          "4:29: invalid critical 1: must be true or false\n" },
        { "listeners",
          M("listeners: [ { on: [suspended], command: [x] } ]\nstages: { one: [ { name: a, "
            "agent_id: f } ] }\n"),
          "2:1: unknown event \"suspended\" in listeners; did you mean 'suspend'?\n" },
    };
    (void)state;
    CHECK_RULES(rules);
}

static void everything_is_told_at_once(void **state)
{
    (void)state;
    expect_problems(
        "one of each",
        "name: m\n"
        "max_concurrency: none\n"
        "stages:\n"
        "  one:\n"
        "  - { name: a, agent_id: f, priority: 5000 }\n"
        "  - { name: b, agent_id: g, priority: 5, depends_on: { x: { state: nobody } } }\n"
        "  - { name: c, agent_id: e, accessibility: none, color: red }\n"
        "agents:\n"
        "- { id: f, call: f }\n"
        "- { id: e, command: [\"${ .steps.one }\", \"${ .input. }\"] }\n",
        "2:18: invalid max_concurrency none: must be a whole number of 1 or more\n"
        "5:29: invalid priority 5000: must be from 0 to 999\n"
        "6:26: there is no agent 'g'\n"
        "6:56: depends_on names 'nobody', which is not a state of 'one'\n"
        "7:50: unknown key 'color' of a state\n"
        "10:26: '.steps' is only for agents of states with accessibility 'all': that of 'c' is "
        "'none'\n"
        "10:…");
}

#define SEES(access, expr)                                                         \
    "name: m\nstages:\n  one:\n  - { name: a, agent_id: x, accessibility: " access \
    " }\nagents:\n- { id: x, command: [e, \"${ " expr " }\"], describe: \"${ .result }\" }\n"

static void the_expressions_of_an_agent_see_what_its_state_lets_them(void **state)
{
    static const struct rule rules[] = {
        { "what all see",
          SEES("none", "[.input, .inputs.x, .parameters, .state.attempt, .run.runId]"), "" },
        { "and with `all`", SEES("all", "[.steps, .env]"), "" },
        { "not with `explicit`", SEES("explicit", ".steps"),
          "6:29: '.steps' is only for agents of states with accessibility 'all': that of 'a' is "
          "'explicit'\n" },
        { "nor the environment", SEES("logs", ".env.HOME"),
          "6:29: '.env' is only for agents of states with accessibility 'all': that of 'a' is "
          "'logs'\n" },
        { "nobody before them", SEES("all", ".lastStep.result"),
          "6:29: the expression of an agent sees input, inputs, parameters, state, run, steps and "
          "env, and no '.lastStep'\n" },
        { "a slip", SEES("all", ".paramters.x"),
          "6:29: the expression of an agent sees input, inputs, parameters, state, run, steps and "
          "env, and no '.paramters'; did you mean '.parameters'?\n" },
        { "a later stage",
          "name: m\nstages: { one: [ { name: a, agent_id: x } ], two: [ { name: b, agent_id: y } ] "
          "}\nagents:\n"
          "- { id: x, command: [e, \"${ .steps.two.result }\"] }\n- { id: y, command: [e, \"${ "
          ".steps.one.result.a.result }\"] }\n",
          "4:29: 'two' comes later: only nodes before this one have a result\n" },
    };
    (void)state;
    CHECK_RULES(rules);
}

static void one_file_may_have_several_manifests(void **state)
{
    (void)state;
    struct rv__definitions *found = define(
        "w.yaml", "agents: [ { id: f, call: f } ]\nworkflows:\n"
                  "- name: one\n  stages: { s: [ { name: a, agent_id: f } ] }\n"
                  "- name: two\n  states: [ { name: a, stage: s, agent_id: g } ]\n  agents: [ { "
                  "id: g, workflow: one } ]\n"
                  "- name: bad\n  stages: { s: [ { name: a, agent_id: h } ] }\n");
    assert_int_equal(found->count, 2);
    assert_true(rv__str_is(found->items[0].name, "one"));
    assert_true(rv__str_is(found->items[1].name, "two"));
    assert_int_equal(found->problem_count, 1);
    assert_int_equal(found->problems[0].line, 9);
    assert_int_equal(found->file_count, 1);
    rv__definitions_free(found);

    static const struct rule rules[] = {
        { "names are unique",
          "agents: []\nworkflows:\n- name: one\n  stages: { s: [] }\n- name: one\n  stages: { s: "
          "[] }\n",
          "4:13: a stage needs at least one state\n5:9: workflow 'one' is already registered, by "
          "w.yaml\n6:13: a stage needs at least one state\n" },
        { "each has one", "workflows:\n- stages: { s: [] }\n- 5\n",
          "2:3: each of several manifests must be a mapping with a 'name'\n3:3: each of several "
          "manifests must be a mapping with a 'name'\n" },
        { "nothing else stands beside them", "workflows: 5\nagent: []\n",
          "1:12: 'workflows' must be a list of manifests (- name: …)\n"
          "2:1: unknown key 'agent' beside 'workflows'; did you mean 'agents'?: a file of several "
          "manifests has 'workflows' and 'agents'\n" },
    };
    CHECK_RULES(rules);
}

static void a_json_manifest_is_one(void **state)
{
    (void)state;
    expect_problems_in(
        "w.json", "json",
        "{\"name\": \"m\", \"stages\": {\"one\": [{\"name\": \"a\", \"agentId\": \"x\"}]},\n"
        " \"agents\": [{\"id\": \"x\", \"command\": [\"true\"]}]}",
        "");
}

/* What is written costs the same for each state, however many there are. */
static void ten_thousand_states_are_read(void **state)
{
    enum { STATES = 10000 };
    struct rv__buf yaml;
    (void)state;
    rv__buf_init(&yaml, RV__DEFINE_MAX_BYTES);
    rv__buf_text(&yaml, "name: m\nagents: [ { id: f, call: f } ]\nstages:\n  s:\n");
    for (int i = 0; i < STATES; i++)
        rv__buf_fmt(
            &yaml,
            "  - { name: s%d, agent_id: f, priority: %d, depends_on: { x: { state: s%d } } }\n", i,
            999 - i % 999, i - i % 999);
    struct rv__definitions *found = define("w.yaml", yaml.text);
    assert_true(found->problem_count > 0); /* each 999th waits for itself, which is told */
    assert_true(found->problem_count <= RV__DEFINE_MAX_PROBLEMS);
    rv__definitions_free(found);
    rv__buf_done(&yaml);
}

/* ------------------------------------------------------------------------------ written back --- */

static char *format(const char *text)
{
    struct rv__buf out;
    rv_error err;
    rv__buf_init(&out, 1 << 20);
    if (rv__manifest_format(rv__str(text), &out, &err) < 0)
        fail_msg("%s\n%s", err.message, text);
    char *copy = strdup(rv__buf_view(&out).at);
    rv__buf_done(&out);
    return copy;
}

static void a_manifest_is_written_back_without_loss(void **state)
{
    static const char *const rows[][2] = {
        { "\n\n# top   \nname:   m   # kept\nmaxConcurrency: 4\nstages:\n    one:  \n    # about "
          "a\n    -   name: a\n"
          "        agentId: f   # why\n\n\n        dependsOn: {}\n        description: |\n         "
          " some   \n            text\n\n          end\n"
          "    - name: b\n      agent_id: f\n      parameters: { long: [1,\n            2],   # in "
          "flow\n         b: \"text\n            on\" }\n"
          "agents:\r\n- id: f\n  command:\n  - ./x\n  - 'y'\n  describe: >-\n     folded\n     "
          "text\n\n",
          "# top\nname:   m   # kept\nmax_concurrency: 4\nstages:\n  one:\n    # about a\n    - "
          "name: a\n"
          "      agent_id: f   # why\n\n      depends_on: {}\n      description: |\n        some   "
          "\n          text\n\n        end\n"
          "    - name: b\n      agent_id: f\n      parameters: { long: [1,\n            2],   # in "
          "flow\n         b: \"text\n            on\" }\n"
          "agents:\n  - id: f\n    command:\n      - ./x\n      - 'y'\n    describe: >-\n       "
          "folded\n       text\n" },
        { "{name: m, stages: {one: [{name: a, agentId: f}]}}",
          "{name: m, stages: {one: [{name: a, agent_id: f}]}}\n" },
        { "workflows:\n- name: m\n  states:\n  - {name: a, onFailure: b}\n- name: n\n",
          "workflows:\n  - name: m\n    states:\n      - {name: a, on_failure: b}\n  - name: n\n" },
        { "parameters:\n   maxRetry: theirs\n   list:\n   -\n      a: 1\n   - - 1\n     - 2\n",
          "parameters:\n  maxRetry: theirs\n  list:\n    -\n      a: 1\n    - - 1\n      - 2\n" },
        { "a: &x\n      b: 1\nc: *x\nd:\n      \"on its own line\"\n",
          "a: &x\n  b: 1\nc: *x\nd:\n      \"on its own line\"\n" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *once = format(rows[i][0]), *twice = format(once);
        assert_string_equal(once, rows[i][1]);
        assert_string_equal(twice, once);
        free(once);
        free(twice);
    }
}

static void what_is_no_yaml_is_not_formatted(void **state)
{
    struct rv__buf out;
    rv_error err;
    (void)state;
    rv__buf_init(&out, 1 << 16);
    assert_int_equal(rv__manifest_format(rv__str("a: [1\nb: 2\n"), &out, &err), RV_EINVAL);
    assert_true(strncmp(err.message, "line ", 5) == 0);
    assert_int_equal(rv__manifest_format(rv__str("- a\n"), &out, &err), RV_EINVAL);
    assert_int_equal(out.len, 0);
    rv__buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_layouts_and_both_spellings_are_one_plan),
        cmocka_unit_test(the_flat_layout_may_list_its_stages),
        cmocka_unit_test(stages_and_states_correspond),
        cmocka_unit_test(names_are_unique_and_aliases),
        cmocka_unit_test(the_agent_of_a_state_exists),
        cmocka_unit_test(agents_are_steps_of_their_type),
        cmocka_unit_test(priorities_follow_their_rules),
        cmocka_unit_test(dependencies_follow_their_rules),
        cmocka_unit_test(redirects_follow_their_rules),
        cmocka_unit_test(a_redirect_without_retries_is_a_warning),
        cmocka_unit_test(values_and_keys_are_checked),
        cmocka_unit_test(everything_is_told_at_once),
        cmocka_unit_test(the_expressions_of_an_agent_see_what_its_state_lets_them),
        cmocka_unit_test(one_file_may_have_several_manifests),
        cmocka_unit_test(a_json_manifest_is_one),
        cmocka_unit_test(ten_thousand_states_are_read),
        cmocka_unit_test(a_manifest_is_written_back_without_loss),
        cmocka_unit_test(what_is_no_yaml_is_not_formatted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
