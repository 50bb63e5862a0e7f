/* zoo.h: plans that between them reach every state a cell can have, and dice that lead runs of them there.
 * And the opposite of a rig: a cell that came from damaged text is made to do whatever it would do. */
#ifndef RV_TESTS_FLOW_ZOO_H
#define RV_TESTS_FLOW_ZOO_H

#include "base/json.h"
#include "unit/flow/script.h"

/* clang-format off */
static const char *const zoo[] = {
    /* steps of every kind */
    S("a") "," STEP("b", "'maxAttempts':3,'timeout':50,'onTimeout':'retry','onError':{'name':'h'}") ","
    DELAY("d", "20") "," SIGNAL("s", "go") ","
    "{'type':'step','alias':'s2','kind':'signal','with':{'name':'${ .n }','timeout':30,'default':[1]},'description':'${ .d }'},"
    DELAY("d2", "'${ .n }'") "," TIMED_DELAY("d3", "20", "'timeout':5,'onTimeout':'retry','maxAttempts':2,'onError':{'name':'h'}") "," STEP("w", "'when':'${ .w }','onError':{'kind':'command','with':['x']}") ","
    STEP("wf", "'when':{'fn':'w'},'maxAttempts':2"),
    /* branches, loops and workflows in each other */
    "{'type':'loop','alias':'lo','until':'${ .u }','keep':'last','maxIterations':3,'description':'${ .d }','body':["
      "{'type':'branch','alias':'br','description':'${ .d }','when':'${ .w }','if':'${ .c }','then':[" S("p") "," DELAY("d", "5") "],'else':["
        "{'type':'workflow','alias':'w','name':'w','input':{'fn':'in'},'steps':[" S("q") "," S("r") "],'onError':{'name':'h'}}]}]},"
    "{'type':'loop','alias':'l2','while':{'fn':'m'},'maxIterations':2,'body':{'type':'workflow','name':'v','inputSchema':{},'steps':[" S("s") "]}},"
    "{'type':'workflow','alias':'w2','when':{'fn':'w'},'name':'v','steps':[" S("t") "]}",
    /* iterations in iterations */
    "{'type':'forEach','alias':'e','items':'${ .i }','parallel':true,'concurrency':2,'run':["
      "{'type':'forEach','alias':'f','description':'${ .d }','items':{'fn':'i'},'run':{'type':'workflow','name':'w','input':'${ .x }','steps':["
        STEP("s", "'maxAttempts':2") "],'onError':{'name':'h'}}}," S("z") "]},"
    "{'type':'loop','alias':'lo','until':'${ .u }','keep':'all','body':["
      "{'type':'forEach','alias':'g','when':'${ .w }','items':[1],'parallel':true,'run':[" S("t") "," DELAY("d", "3") "]}]}",
    /* concurrent blocks of every sort */
    "{'type':'concurrent','alias':'c','steps':[" S("x") "," STEP("y", "'when':'${ .w }','maxAttempts':2") ","
      "{'alias':'n','nodes':[" S("p") "," SIGNAL("s", "go") "]},"
      "{'type':'workflow','alias':'w','name':'w','input':1,'steps':[" S("q") "]}],'onFailure':'collect'},"
    "{'type':'concurrent','alias':'j','description':'${ .d }','when':{'fn':'w'},'steps':[" S("x") "," S("y") "," S("z") "],'join':2},"
    "{'type':'concurrent','alias':'k','steps':[" S("x") "," SIGNAL("s", "go") "," DELAY("d", "9") "]}",
    /* detached blocks */
    "{'type':'forEach','alias':'e','items':'${ .i }','run':["
      "{'type':'concurrent','alias':'d','description':'${ .d }','continueOn':'detached','steps':[" S("x") ",{'alias':'n','nodes':["
        "{'type':'loop','alias':'lo','until':{'fn':'u'},'maxIterations':2,'keep':'none','body':["
          "{'type':'concurrent','alias':'d2','continueOn':'detached','steps':[" STEP("y", "'onError':{'name':'h'}") "]}]}]}]}," S("s") "]},"
    "{'type':'concurrent','alias':'d3','when':'${ .w }','continueOn':'detached','steps':[" SIGNAL("s", "go") "," S("v") "]}",
    /* stages: every way in which a state can go on */
    "{'type':'stage','alias':'g','states':["
      "{'alias':'a','priority':90,'critical':true,'maxRetry':1,'agent':" S("a") "},"
      "{'alias':'b','priority':50,'maxRetry':2,'onFailure':'d','dependsOn':{'x':{'state':'a'}},'agent':" S("b") "},"
      "{'alias':'c','priority':80,'critical':true,'timeout':40,'agent':{'type':'workflow','name':'w','description':'${ .d }','steps':[" S("p") "," DELAY("d", "9") "]}},"
      "{'alias':'d','priority':20,'agent':" SIGNAL("d", "go") "},"
      "{'alias':'e','priority':30,'final':true,'dependsOn':{'x':{'state':'a'},'y':{'state':'c','field':'description'}},'agent':" S("e") "},"
      "{'alias':'f','priority':20,'agent':" DELAY("f", "5") "}],'concurrency':3,'description':'${ .d }'},"
    "{'type':'stage','alias':'h','when':'${ .w }','states':["
      "{'alias':'a','critical':true,'maxRetry':1,'dependsOn':{'x':{'state':'a','stage':'g'},'y':{'state':'e','stage':'g'}},'agent':" STEP("a", "'onError':{'name':'h'}") "},"
      "{'alias':'b','priority':7,'access':'none','timeout':30,'agent':" S("b") "}]},"
    "{'type':'forEach','alias':'each','items':'${ .i }','parallel':true,'run':["
      "{'type':'stage','alias':'s','states':[{'alias':'x','critical':true,'agent':" S("x") "},"
        "{'alias':'y','priority':5,'agent':{'type':'workflow','name':'v','steps':["
          "{'type':'forEach','alias':'in','items':'${ .i }','run':[" S("z") "]}]}}]}]}",
    /* chats: turns, calls, bounds, new conversations */
    "{'type':'chat','alias':'ask','with':{},'maxTurns':3,'maxAttempts':2,'timeout':60,'onTimeout':'retry','description':'${ .d }','tools':["
      S("find") ",{'type':'workflow','alias':'look','name':'look','steps':[" S("p") ",{'type':'forEach','alias':'e','items':'${ .i }','run':[" S("z") "]}]}]},"
    "{'type':'forEach','alias':'each','items':'${ .i }','parallel':true,'run':["
      "{'type':'chat','alias':'c','when':'${ .w }','with':{},'budget':{'tokens':40},'maxAttempts':3,'continueOnError':true,'tools':[" STEP("find", "'maxAttempts':2") "," DELAY("look", "9") "]}]},"
    "{'type':'stage','alias':'g','states':[{'alias':'a','critical':true,'timeout':50,'agent':{'type':'chat','with':{},'tools':[" S("find") "]}}]}",
    /* handlers that are lists, and what runs at the end */
    STEP("a", "'onError':[" STEP("h", "'maxAttempts':2") "," DELAY("d", "5") "]") ","
    "{'type':'forEach','alias':'e','items':'${ .i }','run':{'type':'workflow','name':'w','input':'${ .x }','steps':[" S("s") "],"
      "'onError':[{'type':'concurrent','alias':'c','steps':[" S("x") "," S("y") "]}],'finally':[" S("z") "]}},"
    "{'type':'concurrent','alias':'d','continueOn':'detached','steps':[" S("x") "]}," S("b"),
};
/* clang-format on */
enum { ZOO = sizeof zoo / sizeof *zoo };

static inline uint64_t zoo_roll(uint64_t *dice, uint64_t sides)
{
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    return (*dice >> 11) % sides;
}

static inline struct rig *zoo_run(size_t which)
{
    char plan[8000];
    static const char *const handlers[] = {
        "'onError':{'name':'team'}",
        "'onError':[" S("team") "," SIGNAL(
            "go", "go") "],'finally':["
                        "{'type':'forEach','alias':'e','items':'${ .i }','run':[" S(
                            "f") "]}," DELAY("d", "5") "]",
    };
    snprintf(plan, sizeof plan, "{'name':'zoo',%s,'steps':[%s]}",
             handlers[which == (size_t)ZOO - 1], zoo[which]);
    return rig_new(J(plan), J("{'in':[1,{}]}"));
}

static inline struct rv__msg zoo_evaluated(uint64_t *dice, int eval, const char **result)
{
    static const char *const truths[] = { "true", "false", "null", "[]" };
    struct rv__msg msg = { .kind = MSG_DONE };
    uint64_t roll = zoo_roll(dice, 20);
    *result = eval == EVAL_ITEMS   ? (roll < 12   ? "[1,{\"k\":2}]"
                                      : roll < 18 ? "[[]]"
                                                  : "{}")
              : eval == EVAL_INPUT ? "{\"own\":1}"
                                   : truths[zoo_roll(dice, 4)];
    if (roll == 0)
        msg.kind = MSG_FAILED;
    if (roll == 1)
        msg.kind = MSG_LOST;
    msg.blame = roll == 1 && zoo_roll(dice, 2);
    return msg;
}

static inline struct rv__msg zoo_attempted(uint64_t *dice, const char **result, const char **more)
{
    struct rv__msg msg = { .kind = MSG_DONE };
    uint64_t roll = zoo_roll(dice, 100);
    *result = zoo_roll(dice, 3) ? "{\"r\":[1]}" : NULL;
    *more = roll % 3 == 0 ? "{\"description\":\"d\"}"
            : roll % 3 == 1
                ? "{\"calls\":[{\"name\":\"find\"},{\"name\":\"no\"},{\"name\":\"look\"}],"
                  "\"usage\":{\"inputTokens\":7,\"outputTokens\":2}}"
                : NULL; /* which a chat takes for an answer */
    if (roll < 60)
        return msg;
    if (roll < 64) {
        msg.skipped = true;
        return msg;
    }
    if (roll < 82) {
        msg.kind = MSG_FAILED;
        msg.behavior = (enum rv__behavior)zoo_roll(dice, BEHAVIOR_LATER + 1);
        msg.wait_ms = (int64_t)zoo_roll(dice, 5);
        msg.max_attempts = (int)zoo_roll(dice, 4);
        msg.backoff = (int)zoo_roll(dice, 3);
        msg.chance = (double)zoo_roll(dice, 10) / 10;
    } else if (roll < 84) { /* for the next attempt: at once, or after the signal */
        msg.kind = MSG_NOTE;
        msg.name = rv__str(roll == 82 ? "go" : "");
    } else if (roll < 90) {
        static const char *const names[] = { "go", "h1", "h2" };
        msg.kind = MSG_PARK;
        msg.name = rv__str(names[zoo_roll(dice, 3)]);
        msg.due_ms = roll < 86 ? 50000 : 0;
    } else if (roll < 98) {
        msg.kind = MSG_LOST;
        msg.blame = roll < 93;
        msg.shared = roll < 96;
    } else {
        msg.kind = MSG_LOST; /* it never began */
    }
    return msg;
}

/* The work in flight whose actor is the n-th oldest: effects come in another order after a crash. */
static inline struct rig_work *zoo_work(struct rig *rig, size_t n)
{
    for (size_t i = 0; i < rig->work_count; i++) {
        size_t older = 0;
        for (size_t k = 0; k < rig->work_count; k++)
            older += rig->work[k].effect.actor < rig->work[i].effect.actor;
        if (older == n)
            return &rig->work[i];
    }
    return NULL;
}

/* The path of something that waits for a decision; none, if it is the only one. */
static inline struct rv__str zoo_suspended(struct rig *rig, uint64_t *dice)
{
    static char path[256];
    struct rv__json_iter it;
    struct rv__buf all;
    struct rv__str one, json = { NULL, 0 };
    size_t count = 0;
    rv__buf_init(&all, 1u << 24);
    if (rv__cell_suspensions(rig->cell, SIZE_MAX, &all, NULL) == RV_OK && all.len > 0) {
        rv__json_iter_init(&it, rv__buf_view(&all));
        while (rv__json_next(&it, NULL, &one)) {
            struct rv__str found;
            if (rv__json_get(one, "path", &found) && zoo_roll(dice, ++count) == 0)
                json = found;
        }
    }
    path[0] = '\0';
    if (!rv__str_none(json) && (count > 1 || zoo_roll(dice, 2)))
        snprintf(path, sizeof path, "%.*s", (int)json.len - 2, json.at + 1);
    rv__buf_done(&all);
    return rv__str(path);
}

/* Something happens. False: nothing is alive any more. The same dice, the same happening. */
static inline bool zoo_move(struct rig *rig, uint64_t *dice)
{
    struct rv__msg msg = { .kind = MSG_SIGNAL, .name = rv__str("go") };
    const char *result = NULL, *state = NULL;
    if (!rv__cell_active(rig->cell))
        return false;
    uint64_t kept = zoo_roll(dice, 1 << 16); /* a quarter of the lanes gives no places */
    for (int lane = 1; lane < LANES; lane++)
        rig->grants[lane] = rig->work_count == 0 || (kept >> 2 * lane & 3) != 0;
    rig->now_ms += (int64_t)zoo_roll(dice, 10);
    uint64_t roll = zoo_roll(dice, 60);
    if (rv__cell_status(rig->cell) == RUN_SUSPENDED && roll < 30) {
        static const enum rv__msg_kind kinds[] = { MSG_RESUME, MSG_RESUME, MSG_SKIP, MSG_RESTART };
        msg.kind = roll < 27 ? kinds[zoo_roll(dice, 4)] : MSG_ABORT;
        msg.name = zoo_suspended(rig, dice);
    } else if (roll == 0) {
        msg.kind = MSG_CANCEL;
    } else if (roll == 59) {
        msg.kind = MSG_SUSPEND;
    } else if (roll < 4 || (rig->work_count == 0 && roll < 20)) {
        result = roll % 2 ? "{\"go\":1}" : NULL;
    } else if (roll < 8 || rig->work_count == 0) {
        msg.kind = MSG_ANSWER;
        msg.name = rv__str(roll % 2 ? "h1" : "h2");
        result = "\"answer\"";
    } else {
        struct rig_work *work = zoo_work(rig, zoo_roll(dice, rig->work_count));
        if (work->effect.kind == EFFECT_WAIT)
            msg = (struct rv__msg){ .kind = MSG_TIMER };
        else if (work->effect.eval >= 0)
            msg = zoo_evaluated(dice, work->effect.eval, &result);
        else
            msg = zoo_attempted(dice, &result, &state);
        if (work->effect.kind == EFFECT_WAIT && work->effect.due_ms > rig->now_ms)
            rig->now_ms = work->effect.due_ms;
        msg.actor = work->effect.actor;
        msg.token = work->effect.token;
    }
    if (result != NULL && msg.kind != MSG_FAILED)
        msg.result = rv__blob_new(rv__str(result));
    if (state != NULL)
        msg.state = rv__blob_new(rv__str(state));
    if (msg.kind == MSG_FAILED || msg.kind == MSG_SUSPEND)
        msg.error = rv__blob_new(rv__str("{\"message\":\"no\"}"));
    if (msg.kind == MSG_NOTE)
        msg.note = rv__blob_new(rv__str("{\"ask\":{\"message\":\"who?\"}}"));
    /* What an attempt was given is said before its end, or with it; without dice, which tell the story. */
    bool attempt = msg.actor != 0 && msg.kind != MSG_TIMER;
    if (attempt && msg.token % 3 == 0) {
        struct rv__msg given = { .kind = MSG_GIVEN, .actor = msg.actor, .token = msg.token };
        given.given = rv__blob_new(rv__str("{\".input\":1}"));
        (void)rig_turn(rig, &given);
        rv__blob_unref(given.given);
    }
    if (attempt && msg.token % 5 == 0) {
        struct rv__msg reads = { .kind = MSG_READ, .actor = msg.actor, .token = msg.token };
        reads.name = rv__str("steps/a");
        (void)rig_turn(rig, &reads);
    }
    if (attempt && msg.token % 2 == 0)
        msg.given = rv__blob_new(rv__str("{\"argv\":[\"a\"]}"));
    (void)rig_turn(rig, &msg);
    rv__blob_unref(msg.given);
    rv__blob_unref(msg.result);
    rv__blob_unref(msg.state);
    rv__blob_unref(msg.error);
    rv__blob_unref(msg.note);
    return true;
}

/* --------------------------------------------------------------------------- damaged cells --- */

enum { ZOO_OWED = 16 };

struct zoo_owed {
    struct rv__effect effects[ZOO_OWED];
    size_t count;
};

static inline void zoo_take(void *arg, const struct rv__effect *effect)
{
    struct zoo_owed *owed = arg;
    if (owed->count < ZOO_OWED)
        owed->effects[owed->count++] = *effect;
}

/* Rows of a store that has lost its own. */
static inline int zoo_rows(struct rv__row_source *self, struct rv__str key, int64_t after,
                           struct rv__buf *out, int64_t *last, rv_error *err)
{
    (void)self;
    (void)key;
    (void)err;
    if (after >= 0)
        return 0;
    *last = 0;
    rv__buf_text(out, "{\"item\":1,\"index\":0,\"results\":{\"x\":{\"result\":{}},\"in\":1}},7");
    rv__buf_text(out, ",{\"itemValue\":[7,3],\"index\":1,\"results\":{\"x\":{\"resultValue\":[7,2],"
                      "\"description\":1,\"stateValue\":[3,2]}},\"refers\":1}");
    return 1;
}

static inline int zoo_value(struct rv__row_source *self, uint64_t number, struct rv__blob **ret,
                            rv_error *err)
{
    (void)self;
    (void)err;
    *ret = rv__blob_new(rv__str(number % 2 ? "[1,2]" : "{}"));
    return *ret != NULL ? RV_OK : RV_ENOMEM;
}

static inline void zoo_look(struct rv__cell *cell, const struct rv__effect *effect,
                            struct rv__buf *out)
{
    struct rv__row_source rows = { zoo_rows, zoo_value };
    struct rv__view view;
    if (rv__cell_view(cell, effect->actor, effect->token, &view) < 0)
        return;
    (void)rv__view_steps(&view, &rows, out, NULL);
    (void)rv__view_last(&view, &rows, out, NULL);
    struct rv__blob *hold = NULL;
    struct rv__str item;
    (void)rv__view_item(&view, &rows, &hold, &item, NULL);
    rv__blob_unref(hold);
    (void)rv__view_items(&view, &rows, out, NULL);
    (void)rv__view_inputs(&view, &rows, out, NULL);
    rv__view_done(&view);
    rv__buf_reset(out);
}

/* Whatever is in it: it takes messages, gives work, can be saved, read and cancelled, and never crashes. */
static inline void zoo_behave(struct rv__cell *cell)
{
    struct rv__row_source rows = { zoo_rows, zoo_value };
    struct rv__blob *json = rv__blob_new(rv__str("[1,2]")), *error = rv__blob_new(rv__str("{}"));
    struct rv__facts facts;
    struct rv__buf out;
    struct rv__effect effect;
    rv_error err;
    rv__facts_init(&facts);
    rv__buf_init(&out, 1u << 28);
    for (int round = 0; round < 6; round++) {
        struct zoo_owed owed = { .count = 0 };
        static const enum rv__msg_kind first[] = { MSG_SIGNAL, MSG_RESUME,  MSG_SIGNAL,
                                                   MSG_SKIP,   MSG_RESTART, MSG_RESUME };
        struct rv__msg msg = { .kind = first[round] };
        if (msg.kind == MSG_SIGNAL)
            msg.name = rv__str("go");
        (void)rv__flow_send(cell, &msg, &facts, &err);
        rv__cell_outstanding(cell, zoo_take, &owed);
        for (size_t i = 0; i < owed.count; i++) {
            static const enum rv__msg_kind kinds[] = { MSG_DONE,   MSG_DONE, MSG_TIMER,
                                                       MSG_FAILED, MSG_LOST, MSG_PARK };
            zoo_look(cell, &owed.effects[i], &out);
            msg = (struct rv__msg){ .kind = kinds[(i + (size_t)round) % 6],
                                    .name = rv__str("h"),
                                    .actor = owed.effects[i].actor,
                                    .token = owed.effects[i].token,
                                    .result = json,
                                    .error = error };
            (void)rv__flow_send(cell, &msg, &facts, &err);
        }
        for (int lane = 1; lane < LANES; lane++)
            for (int n = 0; n < 3; n++)
                (void)rv__flow_grant(cell, (enum rv__lane)lane, 5000, &facts, &err);
        (void)rv__flow_pump(cell, 5000, &facts, &err);
        while (rv__cell_effect(cell, &effect))
            ;
        rv__facts_reset(&facts);
    }
    if (rv__cell_save(cell, &out, &err) < 0)
        fail_msg("cannot be saved: %s", err.message);
    rv__buf_reset(&out);
    (void)rv__cell_results(cell, &rows, &out, NULL, &err);
    struct rv__msg cancel = { .kind = MSG_CANCEL };
    (void)rv__flow_send(cell, &cancel, &facts, &err);
    (void)rv__cell_results(cell, &rows, &out, NULL, &err);
    rv__facts_done(&facts);
    rv__buf_done(&out);
    rv__blob_unref(json);
    rv__blob_unref(error);
}

#endif
