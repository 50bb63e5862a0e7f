/* zoo.h: plans that between them reach every state a cell can have, and dice that lead runs of them there.
 * And the opposite of a rig: a cell that came from damaged text is made to do whatever it would do. */
#ifndef RV_TESTS_FLOW_ZOO_H
#define RV_TESTS_FLOW_ZOO_H

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
    snprintf(plan, sizeof plan, "{'name':'zoo','onError':{'name':'team'},'steps':[%s]}",
             zoo[which]);
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
    *more = roll % 3 == 0 ? "{\"description\":\"d\"}" : NULL;
    if (roll < 60)
        return msg;
    if (roll < 64) {
        msg.skipped = true;
        return msg;
    }
    if (roll < 82) {
        msg.kind = MSG_FAILED;
        msg.behavior = (enum rv__behavior)zoo_roll(dice, 4);
        msg.max_attempts = (int)zoo_roll(dice, 4);
        msg.backoff = (int)zoo_roll(dice, 3);
        msg.chance = (double)zoo_roll(dice, 10) / 10;
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
        msg.kind = roll < 25 ? MSG_RESUME : MSG_ABORT;
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
    (void)rig_turn(rig, &msg);
    rv__blob_unref(msg.result);
    rv__blob_unref(msg.state);
    rv__blob_unref(msg.error);
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
        struct rv__msg msg = { .kind = round % 2 ? MSG_RESUME : MSG_SIGNAL, .name = rv__str("go") };
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
