/* gen.c: random plans: every kind of node in every other, mostly small, now and then thousands of
 * nodes or very deep. Everything in it has a number, so that shrink.c can leave it out. */
#include "sim.h"

#include <stdlib.h>

#include "base/error.h"

enum { SIGNAL_NAMES = 3, ALIASES_SHARED = 4, DEEPEST = RV__PLAN_MAX_DEPTH - 3, MOST_STATES = 16 };

struct maker {
    struct gen *gen;
    struct chance chance;
    int64_t left;   /* nodes that may still be made */
    int64_t loops;  /* iterations around us, multiplied: bounds the work */
    uint32_t names; /* given so far */
    bool supervisors_common;
    bool deep;      /* one in the other, and little beside it */
    bool detaches;  /* many blocks are detached */
    bool functions; /* steps and conditions are functions, delays or signals: what an engine runs */
    bool in_handler; /* where nothing can be detached */
    bool stages;     /* many supervisors are stages */
    bool chats;      /* many are chats */
    bool limited;    /* some are chats without tools, whose providers have limits */
    uint64_t
        makes; /* not 0: functions make inputs and descriptions; a seed of its own, so that other plans stay */
    uint64_t bounds; /* not 0: workflows have budgets; the same */
};

static void *take(struct maker *m, size_t size)
{
    void *mem = rv__arena_zalloc(&m->gen->arena, 1, size);
    if (mem == NULL)
        abort();
    return mem;
}

static void make_body(struct maker *m, struct gen_body *body, int depth, int64_t share);

static void make_config(struct maker *m, struct rv__step_config *config)
{
    struct chance *c = &m->chance;
    if (one_in(c, 2)) {
        config->max_attempts = (int)between(c, 1, 5);
        config->backoff = (enum rv__backoff)between(c, 0, 1);
        if (one_in(c, 2))
            config->backoff_base_ms = skewed(c, 1, 100000);
        if (one_in(c, 3))
            config->max_backoff_ms = skewed(c, 1, 1000000);
        if (one_in(c, 3))
            config->jitter = (double)between(c, 0, 100) / 100;
    }
    if (one_in(c, 4)) {
        config->timeout_ms = skewed(c, 4, 100000);
        config->on_timeout = (enum rv__on_timeout)between(c, 0, 1);
    }
    config->continue_on_error = one_in(c, 10);
    if (one_in(c, 12))
        config->retry_on = rv__str(one_in(c, 2) ? "[1,\"later\"]" : "[2,3]");
    if (one_in(c, 12))
        config->no_retry_on = rv__str(one_in(c, 2) ? "[\"later\",2]" : "[1]");
}

static enum rv__step_kind work_kind(const struct maker *m, struct chance *c)
{
    static const enum rv__step_kind kinds[] = { STEP_FUNCTION, STEP_FUNCTION, STEP_FUNCTION,
                                                STEP_CALL,     STEP_HTTP,     STEP_COMMAND,
                                                STEP_VALUE };
    enum rv__step_kind kind = kinds[between(c, 0, 6)];
    return m->functions ? STEP_FUNCTION : kind;
}

/* Does a function make that of the node, body or whatever has this number? */
static bool makes(const struct maker *m, uint32_t ordinal, uint64_t what)
{
    return m->makes != 0 && mix(mix(m->makes, ordinal), what) % 2 == 0;
}

/* What the chats of this workflow may use; in most plans as much as they like. */
static struct rv__budget make_budget(const struct maker *m, uint32_t ordinal)
{
    struct rv__budget budget = { 0 };
    uint64_t h = mix(m->bounds, ordinal);
    if (m->bounds == 0 || h % 3 == 0)
        return budget;
    if (h % 3 == 1 || h % 5 == 0)
        budget.tokens = 1 + (int64_t)(h >> 8) % 150;
    if (h % 3 == 2)
        budget.cost = (1 + (int64_t)(h >> 8) % 1500) * 1000000;
    return budget;
}

static void make_step(struct maker *m, struct gen_node *node)
{
    struct chance *c = &m->chance;
    node->kind = NODE_STEP;
    node->has_description = one_in(c, 3); /* told of waits only: an attempt makes its own */
    node->step = work_kind(m, c);
    if (one_in(c, 10))
        node->step = one_in(c, 2) ? STEP_DELAY : STEP_SIGNAL;
    if (node->step == STEP_DELAY) {
        node->delay_ms = skewed(c, 0, 100000000);
        make_config(m, &node->config);
    } else if (node->step == STEP_SIGNAL) {
        node->signal = (int)between(c, 0, SIGNAL_NAMES - 1);
        node->signal_timeout_ms = one_in(c, 2) ? skewed(c, 1, 10000000) : 0;
        node->signal_default = one_in(c, 2);
    } else {
        make_config(m, &node->config);
    }
    node->describes = makes(m, node->ordinal, 1);
    node->has_input = node->step == STEP_HTTP && makes(m, node->ordinal, 2);
    if (one_in(c, 8)) {
        node->has_handler = true;
        node->handler = work_kind(m, c);
    }
}

/* A handler as a list of nodes: small, and whatever may stand elsewhere. */
static struct gen_body *make_handler(struct maker *m, int depth)
{
    struct gen_body *body = take(m, sizeof *body);
    bool outer = m->in_handler;
    body->ordinal = m->gen->ordinals++;
    m->in_handler = true;
    make_body(m, body, depth + 1, between(&m->chance, 1, 4));
    m->in_handler = outer;
    return body;
}

static bool may_have_list(const struct maker *m, int depth)
{
    return m->left > 0 && depth < DEEPEST && !m->deep;
}

/* What a workflow runs after its nodes. */
static void make_handlers(struct maker *m, struct gen_body *body, int depth)
{
    if (may_have_list(m, depth) && one_in(&m->chance, 8))
        body->on_error = make_handler(m, depth);
    if (!one_in(&m->chance, 4))
        return;
    body->finally_step = !may_have_list(m, depth) || one_in(&m->chance, 3);
    if (!body->finally_step)
        body->finally = make_handler(m, depth);
}

static struct gen_body *add_body(struct maker *m, struct gen_node *node)
{
    struct gen_body *body = take(m, sizeof *body), **at = &node->bodies;
    while (*at != NULL)
        at = &(*at)->next;
    *at = body;
    body->ordinal = m->gen->ordinals++;
    return body;
}

static void maybe_wrap(struct maker *m, struct gen_body *body, int depth, uint64_t n)
{
    if (!one_in(&m->chance, n))
        return;
    body->wrap = true;
    body->wrap_input = one_in(&m->chance, 2) && !m->functions;
    body->wrap_function = body->wrap_input && makes(m, body->ordinal, 3);
    body->wrap_handler = one_in(&m->chance, 4);
    body->budget = make_budget(m, body->ordinal);
    make_handlers(m, body, depth);
    snprintf(body->wrap_name, sizeof body->wrap_name, "%c%u", m->gen->letter, m->names++);
}

static void make_concurrent(struct maker *m, struct gen_node *node, int depth, int64_t share)
{
    struct chance *c = &m->chance;
    int64_t children = skewed(c, 1, one_in(c, 20) ? 40 : 6);
    if (children > share)
        children = share > 0 ? share : 1;
    node->collect = one_in(c, 3);
    node->detached = one_in(c, m->detaches ? 2 : 6) && !m->in_handler;
    if (!node->detached && one_in(c, 3))
        node->join = between(c, 1, children);
    for (int64_t i = 0; i < children; i++) {
        struct gen_body *body = add_body(m, node);
        snprintf(body->alias, sizeof body->alias, "c%d", (int)i);
        if (one_in(c, 2)) {
            body->bare = true;
            body->first = take(m, sizeof *body->first);
            body->first->ordinal = m->gen->ordinals;
            m->gen->ordinals += 2;
            snprintf(body->first->alias, sizeof body->first->alias, "%s", body->alias);
            make_step(m, body->first);
            m->left--;
            m->gen->nodes++;
            continue;
        }
        maybe_wrap(m, body, depth + 1, 3);
        body->wrap_when = body->wrap && makes(m, body->ordinal, 4);
        body->wrap_describes = body->wrap && makes(m, body->ordinal, 5);
        make_body(m, body, depth + 1, share / children);
    }
}

/* Could `from` wait for `to`, by way of others? */
static bool leads_to(struct gen_body *const *states, int from, int to)
{
    if (from == to)
        return true;
    for (int i = 0; i < MOST_STATES; i++)
        if ((states[from]->state.depends >> i & 1 && leads_to(states, i, to)) ||
            (states[from]->state.on_failure == i && leads_to(states, i, to)))
            return true;
    return false;
}

static bool priority_taken(struct gen_body *const *states, int count, int except, int64_t priority)
{
    for (int i = 0; i < count; i++)
        if (i != except && states[i]->state.opts.priority == priority)
            return true;
    return false;
}

static void make_state(struct maker *m, struct gen_body *const *states, int count, int i,
                       const struct gen_node *earlier)
{
    struct chance *c = &m->chance;
    struct gen_state *state = &states[i]->state;
    bool alone = one_in(c, 3); /* critical and final ones have a priority to themselves */
    state->opts.critical = alone && !one_in(c, 4);
    state->opts.final = alone && one_in(c, state->opts.critical ? 4 : 2);
    while (alone &&
           (state->opts.priority < 1 || priority_taken(states, count, i, state->opts.priority)))
        state->opts.priority = between(c, 1, RV__PRIORITY_MAX);
    state->opts.max_retry = one_in(c, 2) ? between(c, 0, 3) : 0;
    state->opts.access = (enum rv__access)(one_in(c, 3) ? between(c, 0, ACCESSES - 1) : 0);
    state->by_description = one_in(c, 4);
    for (int k = 0; k < count; k++)
        if (states[k]->state.opts.priority > state->opts.priority && one_in(c, 3))
            state->depends |= UINT64_C(1) << k;
    if (earlier != NULL)
        state->depends_earlier = one_in(c, 3) ? rv__random_below(&c->random, 8) : 0;
}

/* One step that a chat may call; many are of MCP servers. */
static struct gen_node *make_tool(struct maker *m, const char *alias)
{
    struct gen_node *tool = take(m, sizeof *tool);
    tool->ordinal = m->gen->ordinals;
    m->gen->ordinals += 2;
    snprintf(tool->alias, sizeof tool->alias, "%s", alias);
    make_step(m, tool);
    if (tool->step != STEP_DELAY && tool->step != STEP_SIGNAL && one_in(&m->chance, 2)) {
        tool->step = STEP_TOOL;
        tool->has_input = false; /* its arguments are the model's */
    }
    return tool;
}

/* The same when a person has said yes: a workflow that waits for that, then the tool. */
static void make_approved(struct maker *m, struct gen_body *body)
{
    struct gen_node *approve = take(m, sizeof *approve);
    approve->ordinal = m->gen->ordinals;
    m->gen->ordinals += 2;
    m->left--;
    m->gen->nodes++;
    snprintf(approve->alias, sizeof approve->alias, "approve");
    approve->kind = NODE_STEP;
    approve->step = STEP_SIGNAL;
    approve->signal = (int)between(&m->chance, 0, SIGNAL_NAMES - 1);
    approve->next = body->first;
    body->first = approve;
    body->bare = false;
    body->wrap = true;
    snprintf(body->wrap_name, sizeof body->wrap_name, RV__APPROVAL);
}

static void make_chat(struct maker *m, struct gen_node *node, int depth, int64_t share)
{
    struct chance *c = &m->chance;
    int64_t count = m->limited ? 0 : between(c, 0, 3);
    make_config(m, &node->config);
    node->chat.max_turns = one_in(c, 2) ? between(c, 1, 6) : 0;
    node->chat.budget.tokens = one_in(c, 3) ? skewed(c, 1, 500) : 0;
    node->chat.budget.cost = make_budget(m, node->ordinal).cost;
    node->chat.says_access = one_in(c, 2);
    node->chat.access = node->chat.says_access && one_in(c, 2)
                            ? (enum rv__access)between(c, 0, ACCESSES - 1)
                            : ACCESS_ALL;
    for (int64_t i = 0; i < count; i++) {
        struct gen_body *body = add_body(m, node);
        snprintf(body->alias, sizeof body->alias, "t%d", (int)i);
        m->left--;
        m->gen->nodes++;
        if (one_in(c, 3) && depth < DEEPEST - 2) {
            maybe_wrap(m, body, depth + 2, 1);
            make_body(m, body, depth + 2, share / count);
            continue;
        }
        body->bare = true;
        body->first = make_tool(m, body->alias);
        if (one_in(c, 4))
            make_approved(m, body);
    }
}

static void make_stage(struct maker *m, struct gen_node *node, int depth, int64_t share)
{
    struct chance *c = &m->chance;
    struct gen_body *states[MOST_STATES] = { NULL };
    int count = (int)skewed(c, 1, one_in(c, 12) ? MOST_STATES : 6);
    node->concurrency = one_in(c, 3) ? between(c, 1, 4) : 0;
    for (int i = 0; i < count; i++) {
        struct gen_body *body = states[i] = add_body(m, node);
        snprintf(body->alias, sizeof body->alias, "c%d", i);
        body->state.on_failure = -1;
        body->state.opts.priority = between(c, 0, one_in(c, 2) ? 5 : RV__PRIORITY_MAX);
        m->left--;
        m->gen->nodes++;
        if (one_in(c, 3) && depth < DEEPEST - 2) {
            maybe_wrap(m, body, depth + 2, 1);
            make_body(m, body, depth + 2, share / count);
            body->state.opts.timeout_ms = one_in(c, 3) ? skewed(c, 4, 100000) : 0;
            continue;
        }
        body->bare = true;
        body->first = take(m, sizeof *body->first);
        body->first->ordinal = m->gen->ordinals;
        m->gen->ordinals += 2;
        snprintf(body->first->alias, sizeof body->first->alias, "%s", body->alias);
        if (m->chats && depth < DEEPEST - 3 && one_in(c, 3)) {
            body->first->kind = NODE_CHAT;
            make_chat(m, body->first, depth + 1, share / count);
            body->first->config = (struct rv__step_config){ 0 };
            body->state.opts.timeout_ms = one_in(c, 4) ? skewed(c, 4, 100000) : 0;
            body->state.opts.keep_chat_on_pass = one_in(c, 2);
            continue;
        }
        make_step(m, body->first);
        body->first->config = (struct rv__step_config){ 0 };
        body->first->has_description = body->first->describes = false;
        if (body->first->step != STEP_SIGNAL)
            body->state.opts.timeout_ms = one_in(c, 4) ? skewed(c, 4, 100000) : 0;
    }
    for (int i = 0; i < count; i++)
        make_state(m, states, count, i, node->earlier);
    for (int i = 0; i < count; i++) { /* a priority may have changed since */
        for (int k = 0; k < count; k++)
            if (states[k]->state.opts.priority <= states[i]->state.opts.priority)
                states[i]->state.depends &= ~(UINT64_C(1) << k);
    }
    for (int i = 0; i < count; i++) {
        int target = (int)between(c, 0, count - 1);
        if (one_in(c, 2) && !leads_to(states, target, i)) {
            states[i]->state.on_failure = target;
            states[i]->state.opts.max_retry = between(c, 0, 3);
        }
    }
}

static void make_supervisor(struct maker *m, struct gen_node *node, int depth, int64_t share)
{
    struct chance *c = &m->chance;
    node->has_description = one_in(c, 4);
    node->describes = makes(m, node->ordinal, 1);
    node->kind = (enum rv__node_kind)between(c, NODE_WORKFLOW, NODE_CONCURRENT);
    if (m->stages && one_in(c, 2))
        node->kind = NODE_STAGE;
    if (m->bounds != 0 && depth < 2 && one_in(c, 2)) /* many chats at once, under one budget */
        node->kind = one_in(c, 3) ? NODE_CONCURRENT : NODE_FOREACH;
    else if ((m->chats || m->limited) && one_in(c, 2))
        node->kind = NODE_CHAT;
    int64_t loops = m->loops;
    if (node->kind == NODE_CHAT && loops > 100)
        node->kind = NODE_BRANCH;
    if ((node->kind == NODE_LOOP || node->kind == NODE_FOREACH) && loops > 400)
        node->kind = NODE_BRANCH;
    node->by_function |= one_in(c, 5);
    switch (node->kind) {
    case NODE_WORKFLOW: {
        struct gen_body *body = add_body(m, node);
        maybe_wrap(m, body, depth + 1, 1);
        make_body(m, body, depth + 1, share);
        break;
    }
    case NODE_BRANCH: {
        struct gen_body *then = add_body(m, node), *otherwise = add_body(m, node);
        make_body(m, then, depth + 1, share / 2);
        if (one_in(c, 3))
            otherwise->first = NULL;
        else
            make_body(m, otherwise, depth + 1, share / 2);
        break;
    }
    case NODE_LOOP:
        node->is_while = one_in(c, 2);
        node->max_iterations = one_in(c, 8) ? 0 : skewed(c, 1, 40);
        node->keep = (enum rv__keep)between(c, KEEP_ALL, KEEP_NONE);
        m->loops = loops * 8;
        struct gen_body *round = add_body(m, node);
        maybe_wrap(m, round, depth + 1, 6);
        make_body(m, round, depth + 1, share);
        break;
    case NODE_FOREACH:
        node->parallel = one_in(c, 2);
        node->concurrency = node->parallel && one_in(c, 2) ? skewed(c, 1, 10) : 0;
        node->collect = one_in(c, 4);
        m->loops = loops * 10;
        struct gen_body *each = add_body(m, node);
        maybe_wrap(m, each, depth + 1, 4);
        make_body(m, each, depth + 1, share);
        break;
    case NODE_CONCURRENT: make_concurrent(m, node, depth, share); break;
    case NODE_STAGE: {
        m->loops = loops * 2;
        make_stage(m, node, depth, share);
        break;
    }
    case NODE_CHAT:
        m->loops = loops * 6;
        make_chat(m, node, depth, share);
        break;
    case NODE_STEP:
    case NODE_SEQUENCE:
    case NODE_KINDS: abort();
    }
    m->loops = loops;
}

static bool alias_taken(const struct gen_body *body, const struct gen_node *except)
{
    for (const struct gen_node *n = body->first; n != NULL; n = n->next)
        if (n != except && strcmp(n->alias, except->alias) == 0)
            return true;
    return false;
}

/* Some nodes, of a share of what may be made. At least one. */
static void make_body(struct maker *m, struct gen_body *body, int depth, int64_t share)
{
    struct chance *c = &m->chance;
    struct gen_node **end = &body->first, *stage = NULL;
    int64_t count = skewed(c, 1, share < 12 ? (share > 0 ? share : 1) : depth == 0 ? share : 12);
    if (depth > 60 || m->deep)
        count = m->deep && one_in(c, 8) ? 2 : 1;
    for (int64_t i = 0; i < count && (i == 0 || m->left > 0); i++) {
        struct gen_node *node = take(m, sizeof *node);
        *end = node;
        end = &node->next;
        node->ordinal = m->gen->ordinals;
        m->gen->ordinals += 2; /* the node; its `when` and handler */
        m->left--;
        m->gen->nodes++;
        /* A name of its own, or one that others have too, where that is allowed. */
        snprintf(node->alias, sizeof node->alias, "n%u", m->names++);
        if (one_in(c, 4)) {
            snprintf(node->alias, sizeof node->alias, "s%d",
                     (int)between(c, 0, ALIASES_SHARED - 1));
            if (alias_taken(body, node))
                snprintf(node->alias, sizeof node->alias, "n%u", m->names++);
        }
        node->has_when = one_in(c, 6);
        node->by_function = m->functions;
        node->earlier = stage;
        int64_t each = m->left / (count - i);
        bool supervise = m->deep ? i == 0 : one_in(c, m->supervisors_common ? 2 : 4);
        if (m->left > 0 && depth < DEEPEST && each > 0 && supervise)
            make_supervisor(m, node, depth, each);
        else
            make_step(m, node);
        if (node->kind == NODE_STAGE)
            stage = node;
        if (node->has_handler && may_have_list(m, depth) && one_in(c, 3))
            node->on_error = make_handler(m, depth);
    }
}

void gen_init(struct gen *gen, uint64_t seed, int64_t budget, int which, bool functions,
              bool stages)
{
    struct maker m = {
        .gen = gen, .left = budget, .loops = functions ? 6 : 1, .functions = functions
    };
    *gen = (struct gen){ .name = which == 0 ? "main" : "other", .letter = which == 0 ? 'w' : 'v' };
    rv__arena_init(&gen->arena, SIZE_MAX);
    chance_init(&m.chance, seed);
    m.supervisors_common = one_in(&m.chance, 2);
    m.deep = one_in(&m.chance, 40);
    m.detaches = one_in(&m.chance, 6);
    m.stages = stages;
    m.makes = !functions && mix(seed, 0x3a4e) % 6 == 0 ? seed : 0;
    m.chats = stages && !functions && mix(seed, 0xc4a7) % 4 == 0;
    m.limited = functions && mix(seed, 0x11317) % 6 == 0;
    if (stages || m.limited)
        m.supervisors_common = true;
    m.bounds = (m.chats || m.limited) && mix(seed, 0xb4d6) % 2 == 0 ? seed : 0;
    gen->root.ordinal = gen->ordinals++;
    gen->root.budget = make_budget(&m, gen->root.ordinal);
    gen->has_handler = one_in(&m.chance, 4);
    make_body(&m, &gen->root, 0, budget);
    make_handlers(&m, &gen->root, 0);
}

void gen_done(struct gen *gen)
{
    rv__arena_done(&gen->arena);
}

/* ------------------------------------------------------------------------------- compile --- */

struct emitter {
    const struct cut *cut;
    struct gen_drafts *to;
};

static bool dropped(const struct emitter *e, uint32_t ordinal)
{
    return e->cut != NULL && e->cut->dropped != NULL && ordinal < e->cut->count &&
           e->cut->dropped[ordinal];
}

static struct rv__draft *draft(struct emitter *e, const char *name)
{
    struct gen_drafts *to = e->to;
    to->drafts = sim_grow(to->drafts, (to->count + 1) * sizeof *to->drafts);
    if (rv__draft_new(name, &to->drafts[to->count], NULL) < 0)
        abort();
    return to->drafts[to->count++];
}

static struct rv__expr expr(bool by_function, const char *what)
{
    if (by_function)
        return (struct rv__expr){ EXPR_FUNCTION, rv__str(what) };
    return (struct rv__expr){ EXPR_JSON, rv__str("\"${ .input }\"") };
}

static const struct rv__expr no_expr = { EXPR_NONE, { NULL, 0 } };

static void emit_body(struct emitter *e, struct rv__draft *d, struct rv__draft_body *to,
                      const struct gen_body *body);

static void emit_handler(struct rv__draft *d, struct rv__draft_node *node, enum rv__handler which,
                         enum rv__step_kind kind)
{
    bool named = kind == STEP_FUNCTION || kind == STEP_CALL;
    rv__draft_handler(d, node, which, kind, named ? "tell" : NULL, kind == STEP_VALUE ? "1" : NULL);
}

/* False: there is none, or all of it is left out. */
static bool emit_list(struct emitter *e, struct rv__draft *d, struct rv__draft_node *node,
                      enum rv__handler which, const struct gen_body *list)
{
    bool any = false;
    for (const struct gen_node *n = list != NULL ? list->first : NULL; n != NULL; n = n->next)
        any |= !dropped(e, n->ordinal);
    if (!any || dropped(e, list->ordinal))
        return false;
    emit_body(e, d, rv__draft_handler_body(d, node, which), list);
    return true;
}

static void emit_handlers(struct emitter *e, struct rv__draft *d, const struct gen_body *body,
                          bool on_error)
{
    if (!emit_list(e, d, NULL, HANDLER_ON_ERROR, body->on_error) && on_error)
        emit_handler(d, NULL, HANDLER_ON_ERROR, STEP_FUNCTION);
    if (!emit_list(e, d, NULL, HANDLER_FINALLY, body->finally) && body->finally_step)
        emit_handler(d, NULL, HANDLER_FINALLY, STEP_FUNCTION);
}

static void emit_step(struct emitter *e, struct rv__draft *d, struct rv__draft_body *to,
                      const struct gen_node *node, const struct rv__draft_opts *opts)
{
    char with[128];
    struct rv__draft_node *made = NULL;
    switch (node->step) {
    case STEP_FUNCTION:
    case STEP_CALL: made = rv__draft_step(to, node->step, node->alias, NULL, opts); break;
    case STEP_DELAY:
        snprintf(with, sizeof with, "{\"milliseconds\":%lld}", (long long)node->delay_ms);
        made = rv__draft_step(to, STEP_DELAY, NULL, with, opts);
        break;
    case STEP_SIGNAL: {
        int n = snprintf(with, sizeof with, "{\"name\":\"sig%d\"", node->signal);
        if (node->signal_timeout_ms > 0) {
            n += snprintf(with + n, sizeof with - (size_t)n, ",\"timeout\":%lld",
                          (long long)node->signal_timeout_ms);
            if (node->signal_default)
                n += snprintf(with + n, sizeof with - (size_t)n, ",\"default\":{\"none\":[1]}");
        }
        snprintf(with + n, sizeof with - (size_t)n, "}");
        made = rv__draft_step(to, STEP_SIGNAL, NULL, with, opts);
        break;
    }
    case STEP_HTTP:
    case STEP_COMMAND:
    case STEP_VALUE:
    case STEP_CHAT:
    case STEP_TOOL:
    case STEP_KINDS:
        made = rv__draft_step(to, node->step, NULL, node->has_input ? "{\"x\":1}" : "\"x\"", opts);
        break;
    }
    if (node->has_input)
        rv__draft_step_input(made, "inputFn");
    if (node->has_handler && !dropped(e, node->ordinal + 1) &&
        !emit_list(e, d, made, HANDLER_ON_ERROR, node->on_error))
        emit_handler(d, made, HANDLER_ON_ERROR, node->handler);
}

/* The nodes of `body` as a workflow of their own. */
static void emit_wrapped(struct emitter *e, struct rv__draft_body *to, const struct gen_body *body,
                         const struct rv__draft_opts *opts)
{
    struct rv__draft *nested = draft(e, body->wrap_name);
    rv__draft_budget(nested, body->budget);
    emit_body(e, nested, rv__draft_root(nested), body);
    emit_handlers(e, nested, body, body->wrap_handler);
    rv__draft_inline(to, nested,
                     body->wrap_input ? expr(body->wrap_function, "wrapInputFn") : no_expr, opts);
}

static void emit_child(struct emitter *e, struct rv__draft *d, struct rv__draft_node *node,
                       uint32_t index, const struct gen_body *body)
{
    if (body->wrap) {
        struct rv__draft_opts opts = { .alias = body->alias[0] ? body->alias : NULL };
        struct rv__draft_body *in = rv__draft_body(node, index, NULL, true);
        if (body->wrap_when)
            opts.when = expr(body->wrap_function, "whenFn");
        if (body->wrap_describes)
            opts.describe = "describeFn";
        emit_wrapped(e, in, body, &opts);
        return;
    }
    const char *alias = body->alias[0] && !body->bare ? body->alias : NULL;
    emit_body(e, d, rv__draft_body(node, index, alias, body->bare), body);
}

static const struct gen_body *state_at(const struct emitter *e, const struct gen_node *stage, int n)
{
    const struct gen_body *b = stage->bodies;
    while (b != NULL && n-- > 0)
        b = b->next;
    return b != NULL && !dropped(e, b->ordinal) ? b : NULL;
}

/* As JSON; what was left out is not depended on. */
static void emit_depends(const struct emitter *e, const struct gen_node *stage,
                         const struct gen_state *state, char *text, size_t room)
{
    const struct gen_node *earlier = stage->earlier != NULL && !dropped(e, stage->earlier->ordinal)
                                         ? stage->earlier
                                         : NULL;
    size_t len = (size_t)snprintf(text, room, "{");
    for (int k = 0; k < 2 * MOST_STATES; k++) {
        bool own = k < MOST_STATES;
        int n = k % MOST_STATES;
        const struct gen_node *of = own ? stage : earlier;
        uint64_t bits = own ? state->depends : state->depends_earlier;
        if (!(bits >> n & 1) || of == NULL || state_at(e, of, n) == NULL)
            continue;
        len += (size_t)snprintf(text + len, room - len, "%s\"%s%d\":{\"state\":\"c%d\"%s",
                                len > 1 ? "," : "", own ? "own" : "early", n, n,
                                state->by_description ? ",\"field\":\"description\"" : "");
        len += own ? (size_t)snprintf(text + len, room - len, "}")
                   : (size_t)snprintf(text + len, room - len, ",\"stage\":\"%s\"}", of->alias);
    }
    snprintf(text + len, room - len, "}");
}

static void emit_stage(struct emitter *e, struct rv__draft *d, struct rv__draft_body *to,
                       const struct gen_node *node, const struct rv__draft_opts *opts)
{
    char depends[4096], target[16];
    struct rv__draft_node *made = rv__draft_stage(to, node->concurrency, opts);
    for (const struct gen_body *b = node->bodies; b != NULL; b = b->next) {
        struct rv__state_opts state = b->state.opts;
        if (dropped(e, b->ordinal))
            continue;
        emit_depends(e, node, &b->state, depends, sizeof depends);
        state.depends_on = depends;
        snprintf(target, sizeof target, "c%d", b->state.on_failure);
        if (b->state.on_failure >= 0 && state_at(e, node, b->state.on_failure) != NULL)
            state.on_failure = target;
        struct rv__draft_body *agent = rv__draft_state(made, b->alias, &state);
        struct rv__draft_opts none = { .alias = NULL,
                                       .description = b->state.by_description ? "as it went"
                                                                              : NULL };
        if (b->wrap)
            emit_wrapped(e, agent, b, &none);
        else
            emit_step(e, d, agent, b->first, &(struct rv__draft_opts){ .alias = NULL });
    }
}

static void emit_chat(struct emitter *e, struct rv__draft *d, struct rv__draft_body *to,
                      const struct gen_node *node, const struct rv__draft_opts *opts)
{
    char with[64];
    snprintf(with, sizeof with, "{\"provider\":\"p%u\",\"prompt\":1}",
             (unsigned)node->ordinal % SIM_PROVIDERS);
    struct rv__draft_node *made = rv__draft_chat(to, with, &node->chat, opts);
    for (const struct gen_body *b = node->bodies; b != NULL; b = b->next) {
        struct rv__draft_opts tool = { .alias = b->alias };
        if (dropped(e, b->ordinal))
            continue;
        if (b->wrap)
            emit_wrapped(e, rv__draft_tool(made), b, &tool);
        else
            emit_step(e, d, rv__draft_tool(made), b->first,
                      &(struct rv__draft_opts){ .alias = b->alias, .config = b->first->config });
    }
}

static void emit_node(struct emitter *e, struct rv__draft *d, struct rv__draft_body *to,
                      const struct gen_node *node)
{
    struct rv__draft_opts opts = { .alias = node->alias };
    struct rv__draft_node *made = NULL;
    if (node->has_when && !dropped(e, node->ordinal + 1))
        opts.when = expr(node->by_function, "whenFn");
    bool waits = node->step == STEP_DELAY || node->step == STEP_SIGNAL;
    if (node->has_description && (node->kind != NODE_STEP || waits))
        opts.description = "as it went";
    if (node->describes)
        opts.describe = "describeFn";
    switch (node->kind) {
    case NODE_STEP:
        opts.config = node->config;
        emit_step(e, d, to, node, &opts);
        return;
    case NODE_WORKFLOW: emit_wrapped(e, to, node->bodies, &opts); return;
    case NODE_BRANCH: made = rv__draft_branch(to, expr(node->by_function, "ifFn"), &opts); break;
    case NODE_LOOP:
        made = rv__draft_loop(to, node->is_while ? expr(node->by_function, "whileFn") : no_expr,
                              node->is_while ? no_expr : expr(node->by_function, "untilFn"),
                              node->max_iterations, node->keep, &opts);
        break;
    case NODE_FOREACH:
        made = rv__draft_foreach(to, expr(node->by_function, "itemsFn"), no_expr, node->parallel,
                                 node->concurrency, node->collect, &opts);
        break;
    case NODE_CONCURRENT: {
        int64_t left = 0;
        for (const struct gen_body *b = node->bodies; b != NULL; b = b->next)
            left += !dropped(e, b->ordinal);
        made = rv__draft_concurrent(to, node->detached, node->collect,
                                    node->join > left ? left : node->join, &opts);
        break;
    }
    case NODE_STAGE: emit_stage(e, d, to, node, &opts); return;
    case NODE_CHAT:
        opts.config = node->config;
        emit_chat(e, d, to, node, &opts);
        return;
    case NODE_SEQUENCE:
    case NODE_KINDS: abort();
    }
    uint32_t index = 0;
    for (const struct gen_body *b = node->bodies; b != NULL; b = b->next)
        if (node->kind != NODE_CONCURRENT || !dropped(e, b->ordinal))
            emit_child(e, d, made, index++, b);
}

static void emit_body(struct emitter *e, struct rv__draft *d, struct rv__draft_body *to,
                      const struct gen_body *body)
{
    for (const struct gen_node *n = body->first; n != NULL; n = n->next)
        if (!dropped(e, n->ordinal))
            emit_node(e, d, to, n);
}

void gen_emit(const struct gen *gen, const struct cut *cut, struct gen_drafts *ret)
{
    struct emitter e = { .cut = cut, .to = ret };
    *ret = (struct gen_drafts){ 0 };
    struct rv__draft *root = draft(&e, gen->name);
    rv__draft_budget(root, gen->root.budget);
    emit_body(&e, root, rv__draft_root(root), &gen->root);
    if (!dropped(&e, gen->root.ordinal))
        emit_handlers(&e, root, &gen->root, gen->has_handler);
}

void gen_drafts_done(struct gen_drafts *drafts)
{
    while (drafts->count > 0) /* the outer ones were made first, and use the inner ones */
        rv__draft_free(drafts->drafts[--drafts->count]);
    free(drafts->drafts);
    drafts->drafts = NULL;
}

int gen_compile(const struct gen *gen, const struct cut *cut, struct rv__plan **ret, rv_error *err)
{
    struct gen_drafts drafts;
    gen_emit(gen, cut, &drafts);
    int rc = rv__plan_compile(drafts.drafts[0], NULL, NULL, ret, err);
    gen_drafts_done(&drafts);
    return rc;
}

uint64_t plan_body_key(const struct sim_plan *p, const struct rv__body *body)
{
    if (body->owner == NULL)
        return 1;
    return mix(p->keys[body->owner->id], rv__str_hash(RV__HASH_START, body->alias) + 3);
}
