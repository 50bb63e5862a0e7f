/* oracle.c: what each piece of work will do. Pure: the same question gets the same answer, in any
 * order, however often it is asked, in whatever process; so reference.c can ask beforehand. */
#include "sim.h"

#include <stdlib.h>

void *sim_alloc(size_t size)
{
    return sim_grow(NULL, size);
}

void *sim_grow(void *old, size_t size)
{
    void *mem = realloc(old, size > 0 ? size : 1);
    if (mem == NULL)
        abort();
    if (old == NULL)
        memset(mem, 0, size);
    return mem;
}

struct rv__blob *sim_blob(struct rv__str text)
{
    struct rv__blob *blob = rv__blob_new(text);
    if (blob == NULL)
        abort();
    return blob;
}

char *sim_copy(struct rv__str text)
{
    char *copy = sim_alloc(text.len + 1);
    if (text.len > 0)
        memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return copy;
}

uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * UINT64_C(0x9e3779b97f4a7c15) ^ b;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void chance_init(struct chance *c, uint64_t seed)
{
    rv__random_init(&c->random, seed);
}

bool one_in(struct chance *c, uint64_t n)
{
    return rv__random_below(&c->random, n) == 0;
}

int64_t between(struct chance *c, int64_t least, int64_t most)
{
    return least + (int64_t)rv__random_below(&c->random, (uint64_t)(most - least) + 1);
}

int64_t skewed(struct chance *c, int64_t least, int64_t most)
{
    int bits = 0;
    while (((most - least) >> bits) > 0)
        bits++;
    int64_t top = (INT64_C(1) << between(c, 0, bits)) - 1;
    return least + between(c, 0, top < most - least ? top : most - least);
}

void oracle_init(struct oracle *oracle, uint64_t seed)
{
    struct chance c;
    chance_init(&c, mix(seed, 0x04ac1e));
    *oracle = (struct oracle){ .seed = mix(seed, 7) };
    static const int fails[] = { 0, 10, 30, 60, 150, 500 };
    oracle->fail_per_mille = fails[between(&c, 0, 5)];
    oracle->soft_per_mille = (int)between(&c, 0, 1000);
    oracle->eval_fail_per_mille = one_in(&c, 4) ? (int)between(&c, 1, 30) : 0;
    oracle->crash_per_mille = one_in(&c, 8) ? (int)between(&c, 1, 100) : 0;
    oracle->slow_ms = skewed(&c, 1, 100000);
}

enum aspect {
    ATTEMPT = 1,
    RESULT,
    STATE,
    ERROR,
    CRASHES,
    EVAL,
    EVAL_MS,
    ITERATIONS,
    ANSWER,
    PANIC
};

static void look(const struct oracle *o, struct spot at, enum aspect aspect, int64_t more,
                 struct chance *ret)
{
    uint64_t h = mix(mix(mix(o->seed, at.key), (uint64_t)aspect), (uint64_t)more);
    for (size_t i = 0; i < at.depth; i++)
        h = mix(h, (uint64_t)at.vector[i] + 1);
    chance_init(ret, h);
}

static bool per_mille(struct chance *c, int n)
{
    return between(c, 0, 999) < n;
}

void oracle_attempt(const struct oracle *o, struct spot at, const struct rv__node *node,
                    int attempt, struct outcome *ret)
{
    struct chance c;
    look(o, at, ATTEMPT, attempt, &c);
    int64_t timeout = node->step.config.timeout_ms;
    bool function = is_function(node) && !node->is_handler;
    *ret = (struct outcome){ .fate = FATE_DONE, .answer_ms = -1 };
    ret->duration_ms = one_in(&c, 3) ? 0 : skewed(&c, 0, o->slow_ms);
    if (timeout > 0 && ret->duration_ms >= timeout)
        ret->duration_ms = timeout / 2;
    if (per_mille(&c, o->fail_per_mille)) {
        ret->fate = FATE_FAILED;
        if (per_mille(&c, o->soft_per_mille)) {
            ret->behavior = one_in(&c, 2)
                                ? BEHAVIOR_RETRY
                                : (enum rv__behavior)between(&c, BEHAVIOR_STOP, BEHAVIOR_CONTINUE);
            if (ret->behavior == BEHAVIOR_RETRY) {
                ret->max_attempts = one_in(&c, 2) ? (int)between(&c, 1, 5) : 0;
                ret->backoff = (int)between(&c, 0, 2);
            }
        }
    } else if (one_in(&c, 20) && node->step.kind != STEP_CHAT) {
        ret->fate = FATE_SKIPPED;
    } else if (function && one_in(&c, 16)) {
        ret->fate = FATE_PARKED;
        ret->answer_ms = skewed(&c, 0, 1000000);
        ret->answer_fails = per_mille(&c, o->fail_per_mille);
        if (timeout > 0) {
            int64_t left = timeout - ret->duration_ms;
            ret->answer_ms = one_in(&c, 3) || left < 3 ? -1 : ret->answer_ms % (left / 2 + 1);
        }
    }
    if (node->step.kind == STEP_CHAT && one_in(&c, 12)) { /* the model is busy */
        ret->fate = FATE_FAILED;
        ret->behavior = BEHAVIOR_LATER;
    }
    if (timeout > 0 && one_in(&c, node->is_handler ? 20 : 4)) {
        ret->fate = FATE_HANGS;
        ret->duration_ms = timeout + skewed(&c, 1, 5000); /* a late result, if any */
    }
}

/* Some JSON. */
static void value(struct chance *c, int depth, struct rv__buf *out)
{
    switch (between(c, 0, depth > 0 ? 9 : 6)) {
    case 0: rv__buf_text(out, "null"); break;
    case 1: rv__buf_text(out, one_in(c, 2) ? "true" : "false"); break;
    case 2: rv__buf_int(out, between(c, -5, 1000)); break;
    case 3: rv__buf_text(out, "12345678901234567890.5"); break;
    case 4: rv__buf_text(out, "\"a \\\"quoted\\\" \\u00e9 \\n text\""); break;
    case 5: rv__buf_fmt(out, "\"t%d\"", (int)between(c, 0, 99)); break;
    case 6:
        rv__buf_char(out, '"');
        for (int64_t i = skewed(c, 0, 300); i > 0; i--)
            rv__buf_char(out, (char)('a' + i % 26));
        rv__buf_char(out, '"');
        break;
    case 7:
        rv__buf_char(out, '[');
        for (int64_t i = between(c, 0, 3); i > 0; i--) {
            value(c, depth - 1, out);
            if (i > 1)
                rv__buf_char(out, ',');
        }
        rv__buf_char(out, ']');
        break;
    default:
        /* Keys that flow's own texts have too: they must not be mistaken for them. */
        rv__buf_text(out, "{\"result\":");
        value(c, depth - 1, out);
        rv__buf_text(out, ",\"iterations\":[],\"k\":\"step.completed\"}");
    }
}

void oracle_result(const struct oracle *o, struct spot at, int attempt, bool answer,
                   struct rv__buf *out)
{
    struct chance c;
    look(o, at, answer ? ANSWER : RESULT, attempt, &c);
    value(&c, 2, out);
}

void oracle_state(const struct oracle *o, struct spot at, int attempt, struct rv__buf *out)
{
    struct chance c;
    look(o, at, STATE, attempt, &c);
    if (one_in(&c, 2)) {
        rv__buf_text(out, "{}");
        return;
    }
    rv__buf_text(out, "{\"description\":\"did it\",\"more\":");
    value(&c, 1, out);
    rv__buf_char(out, '}');
}

void oracle_answer(const struct oracle *o, struct spot at, const struct rv__node *node, int attempt,
                   struct rv__buf *out)
{
    static const char *const words[] = { "\"stop\"", "\"tools \\u00e9\"", "null" };
    const struct rv__node *chat = node->body->owner;
    struct chance c;
    look(o, at, STATE, attempt, &c);
    const char *finish = words[between(&c, 0, 2)], *model = words[between(&c, 0, 2)];
    int tokens_out = (int)between(&c, 0, 50), tokens_in = (int)between(&c, 0, 50);
    rv__buf_fmt(out, "{\"usage\":{\"inputTokens\":%d,\"outputTokens\":%d", tokens_in, tokens_out);
    if (tokens_in % 2 == 0) /* at 0.003 and 0.015; others have no prices */
        rv__buf_fmt(out, ",\"cost\":%.3f", 0.003 * tokens_in + 0.015 * tokens_out);
    rv__buf_fmt(out, "},\"model\":%s,\"finishReason\":%s", model, finish);
    int64_t calls = one_in(&c, 3) ? 0 : skewed(&c, 0, one_in(&c, 30) ? 40 : 4);
    for (int64_t i = 0; i < calls; i++) {
        uint32_t tool = (uint32_t)between(&c, 0, chat->body_count - 1);
        rv__buf_text(out, i == 0 ? ",\"calls\":[" : ",");
        rv__buf_fmt(out, "{\"name\":\"%.*s\"}",
                    RV__ARG(tool > 0 ? chat->bodies[tool].alias : rv__str("nobody")));
    }
    rv__buf_text(out, calls > 0 ? "]}" : "}");
}

void oracle_error(const struct oracle *o, struct spot at, int attempt, bool answer,
                  struct rv__buf *out)
{
    struct chance c;
    look(o, at, ERROR, attempt * 2 + answer, &c);
    static const char *const codes[] = { ",\"code\":[1,{\"x\":null}]", ",\"exitCode\":1",
                                         ",\"status\":2", ",\"code\":\"l\\u0061ter\"", "" };
    rv__buf_fmt(out, "{\"message\":\"went wrong %u\"%s}",
                (unsigned)rv__random_below(&c.random, 1000000), codes[between(&c, 0, 4)]);
}

/* Does the list of codes have one of the error's? */
static bool has_code(struct rv__str codes, const json_t *error)
{
    json_t *list = json_loadb(codes.at, codes.len, 0, NULL), *code;
    size_t i;
    bool has = false;
    json_array_foreach (list, i, code) {
        has |= json_is_string(code) && json_equal(code, json_object_get(error, "code"));
        has |= json_is_integer(code) && (json_equal(code, json_object_get(error, "exitCode")) ||
                                         json_equal(code, json_object_get(error, "status")));
    }
    json_decref(list);
    return has;
}

bool lists_say_retry(const struct rv__step_config *config, struct rv__str error, bool unless)
{
    json_t *whole = rv__str_none(error) ? NULL : json_loadb(error.at, error.len, 0, NULL);
    bool retry = unless;
    if (!rv__str_none(config->retry_on))
        retry = has_code(config->retry_on, whole);
    if (!rv__str_none(config->no_retry_on) && has_code(config->no_retry_on, whole))
        retry = false;
    json_decref(whole);
    return retry;
}

bool oracle_panics(const struct oracle *o, struct spot at, int attempt)
{
    struct chance c;
    look(o, at, PANIC, attempt, &c);
    return one_in(&c, 4);
}

int oracle_crashes(const struct oracle *o, struct spot at, const struct rv__node *node)
{
    struct chance c;
    look(o, at, CRASHES, 0, &c);
    if (!is_function(node) || !per_mille(&c, o->crash_per_mille))
        return 0;
    return one_in(&c, 4) ? 100 : (int)between(&c, 1, 4);
}

static void truth(struct chance *c, bool is, struct rv__buf *out)
{
    static const char *const yes[] = {
        "true", "0", "\"\"", "[]", "{}", "1", "\"false\"", "\"null\""
    };
    static const char *const no[] = { "false", "null" };
    rv__buf_text(out, is ? yes[one_in(c, 2) ? 0 : between(c, 0, 7)] : no[between(c, 0, 1)]);
}

bool oracle_eval(const struct oracle *o, struct spot at, const struct rv__node *node, int eval,
                 int64_t test, struct rv__buf *out)
{
    struct chance c;
    look(o, at, EVAL, eval * 1000003 + test, &c);
    if (per_mille(&c, o->eval_fail_per_mille) && !(eval == EVAL_DESCRIPTION && o->real_exprs)) {
        oracle_error(o, at, (int)test, false, out);
        return false;
    }
    switch ((enum rv__eval)eval) {
    case EVAL_WHEN: truth(&c, !one_in(&c, 4), out); break;
    case EVAL_IF: truth(&c, one_in(&c, 2), out); break;
    case EVAL_WHILE:
    case EVAL_UNTIL: {
        struct chance of_loop; /* the same for all its tests */
        look(o, at, ITERATIONS, 0, &of_loop);
        int64_t most = node->loop.max_iterations;
        /* `while` is tested once more than it runs, `until` as often. */
        bool tries_all = one_in(&of_loop, 12) &&
                         (most < 60 || at.depth == 0); /* many loops of a thousand have no end */
        int64_t rounds = tries_all ? most + 1 : skewed(&of_loop, 0, most < 60 ? most : 60);
        bool go_on = test < (eval == EVAL_WHILE ? rounds : rounds - 1);
        truth(&c, eval == EVAL_WHILE ? go_on : !go_on, out);
        break;
    }
    case EVAL_ITEMS: {
        int64_t count = skewed(&c, 1, 24);
        if (one_in(&c, 8))
            count = 0;
        else if (one_in(&c, 60))
            count = at.depth == 0 && one_in(&c, 8) ? 800 : 100;
        if (one_in(&c, 40)) {
            rv__buf_text(out, one_in(&c, 2) ? "{\"not\":\"an array\"}" : "null");
            break;
        }
        rv__buf_text(out, one_in(&c, 4) ? "[ " : "[");
        for (int64_t i = 0; i < count; i++) {
            if (i > 0)
                rv__buf_text(out, one_in(&c, 20) ? " , " : ",");
            value(&c, 1, out);
        }
        rv__buf_char(out, ']');
        break;
    }
    case EVAL_INPUT: value(&c, 2, out); break;
    case EVAL_DESCRIPTION:
        if (node->description.kind == EXPR_FUNCTION)
            value(&c, 0, out);
        else
            rv__buf_str(out, node->description.text); /* there is no ${ } in it */
        break;
    case EVALS: abort();
    }
    return true;
}

int64_t oracle_eval_ms(const struct oracle *o, struct spot at, int eval, int64_t test)
{
    struct chance c;
    look(o, at, EVAL_MS, eval * 1000003 + test, &c);
    return one_in(&c, 2) ? 0 : skewed(&c, 0, 50);
}
