/* attempt.c: work in flight: how it is made, what its executor reports, and its answer to the run. */
#include "engine/attempt.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "engine/engine.h"
#include "engine/metrics.h"

enum {
    QUICK_NS = 10000000
}; /* work that ends within this is quick: its run may get several places at once */

/* ------------------------------------------------------------- what its executor reports --- */

void rv__attempt_post(struct rv_ctx *ctx)
{
    struct rv__attempt *attempt = (struct rv__attempt *)ctx;
    attempt->answer.kind = LETTER_ANSWER;
    ctx->engine->around.answer(attempt);
}

void rv__attempt_post_answer(struct rv__attempt *attempt)
{
    /* If it is closed: the work was handed back meanwhile, and is dropped with its run. */
    (void)!rv__engine_post(attempt->ctx.engine, &attempt->answer);
}

void rv__attempt_post_begins(struct rv__attempt *attempt)
{
    (void)!rv__engine_post(attempt->ctx.engine, &attempt->begins); /* closed: nobody counts */
}

static void on_begun(struct rv__work *work)
{
    struct rv__attempt *attempt = (struct rv__attempt *)work;
    rv_engine *e = attempt->ctx.engine;
    assert(attempt->phase == ATTEMPT_STARTED);
    attempt->phase = ATTEMPT_BEGUN;
    attempt->begun_ns = rv__mono_ns(e->clock);
    if (attempt->ctx.timeout_ms == 0)
        return; /* its end reports it soon enough */
    attempt->begins.kind = LETTER_BEGINS;
    e->around.begins(attempt);
}

static void on_done(struct rv__work *work, const rv_error *err)
{
    struct rv__attempt *attempt = (struct rv__attempt *)work;
    assert(attempt->phase != ATTEMPT_ENDED);
    attempt->phase = ATTEMPT_ENDED;
    if (err != NULL)
        rv__ctx_failed(&attempt->ctx, err);
    rv__work_describe(&attempt->ctx);
}

static void on_lost(struct rv__work *work, enum rv__lost how, const rv_error *why)
{
    struct rv__attempt *attempt = (struct rv__attempt *)work;
    assert(attempt->phase != ATTEMPT_ENDED);
    attempt->phase = ATTEMPT_ENDED;
    rv__ctx_lost(&attempt->ctx, how, why);
    rv__work_describe(&attempt->ctx); /* it has not ended well: it is only posted */
}

/* ------------------------------------------------------------------------------ life time --- */

static void link_attempt(rv_engine *e, struct rv__run *run, struct rv__attempt *a)
{
    a->next = run->work;
    a->link = &run->work;
    if (run->work != NULL)
        run->work->link = &a->next;
    run->work = a;
    a->all_next = e->in_flight;
    a->all_link = &e->in_flight;
    if (e->in_flight != NULL)
        e->in_flight->all_link = &a->all_next;
    e->in_flight = a;
}

static bool is_attempt_of(const struct rv__effect *effect, enum rv__step_kind kind)
{
    const struct rv__node *node = effect->node;
    return node != NULL && effect->eval < 0 && node->kind == NODE_STEP && node->step.kind == kind;
}

/* Does it use paths, which are relative to the file of its workflow? (The tool of a chat may be a skill.) */
static bool uses_paths(const struct rv__effect *effect)
{
    return is_attempt_of(effect, STEP_COMMAND) || is_attempt_of(effect, STEP_HTTP) ||
           is_attempt_of(effect, STEP_CHAT) || is_attempt_of(effect, STEP_TOOL);
}

static void fill_context(struct rv_ctx *ctx, struct rv__run *run, const struct rv__effect *effect,
                         const struct rv__attempt_how *how)
{
    rv_engine *e = run->engine;
    ctx->source = &rv__engine_source;
    ctx->attempt = ctx->view.attempt > 0 ? ctx->view.attempt : 1;
    if (rv__ctx_agent(ctx) != NULL) /* its state's: each is a generation of its own */
        ctx->attempt = ctx->view.state_attempt;
    ctx->loop_index = ctx->view.loop_index;
    ctx->handles = ctx->view.handler != NULL ? rv__run_status_name(ctx->view.outcome) : NULL;
    ctx->work.run = how->run;
    ctx->work.begun = on_begun;
    ctx->work.done = on_done;
    ctx->work.lost = on_lost;
    ctx->services = &e->services;
    ctx->engine = e;
    ctx->run_id = run->id;
    ctx->pieces = &run->pieces;
    ctx->plan = run->plan->plan;
    ctx->exprs = &run->plan->exprs;
    ctx->env = rv__buf_view(&run->plan->registry->env);
    ctx->environment = run->plan->registry->environment;
    if (uses_paths(effect))
        ctx->directory = rv__registry_directory(run->plan->registry, effect->node);
    ctx->secrets = rv__secrets_ref(run->plan->secrets);
    ctx->fn = how->fn;
    if (how->function != NULL) {
        ctx->function = how->function->name;
        ctx->module = how->function->module;
    }
    ctx->session = how->session;
    if (effect->node != NULL)
        ctx->version = rv__node_wrap(effect->node)->version;
    ctx->timeout_ms = effect->timeout_ms;
    ctx->eval = effect->eval;
    ctx->records = effect->eval < 0 && !effect->node->step.config.hide_input;
    ctx->outcome = MSG_DONE;
    bool scoped = false;
    if (is_attempt_of(effect, STEP_COMMAND))
        (void)rv__node_access(effect->node, &scoped);
    if (scoped)
        rv__pass_make(ctx->pass);
    rv__arena_init(&ctx->arena, SIZE_MAX); /* bounded by the results that a step asks for */
    rv__buf_init(&ctx->state_members, RV__STATE_MAX_BYTES);
}

struct rv__attempt *rv__attempt_new(struct rv__run *run, const struct rv__effect *effect,
                                    struct rv__executor *executor,
                                    const struct rv__attempt_how *how)
{
    rv_engine *e = run->engine;
    struct rv__attempt *a = rv__zalloc(1, sizeof *a);
    rv_cancel *token = a != NULL ? rv_cancel_new(e->closing) : NULL;
    if (token == NULL) {
        rv__free(a);
        return NULL;
    }
    a->ctx.work.token = token;
    int rc = rv__cell_view(run->cell, effect->actor, effect->token, &a->ctx.view);
    assert(rc == RV_OK || rc == RV_ENOMEM); /* the cell has just released this effect */
    if (rc < 0) {
        rv_cancel_free(token);
        rv__free(a);
        return NULL;
    }
    fill_context(&a->ctx, run, effect, how);
    a->executor = executor;
    a->place = effect->place;
    a->ticket = effect->ticket;
    a->begun_ns = rv__mono_ns(e->clock);
    a->queued_ns = run->waited_ns;
    a->life = e->life;
    a->run = run;
    rv__run_ref(run);
    link_attempt(e, run, a);
    return a;
}

void rv__attempt_drop(struct rv__attempt *a)
{
    struct rv__run *run = a->run;
    *a->all_link = a->all_next;
    if (a->all_next != NULL)
        a->all_next->all_link = a->all_link;
    *a->link = a->next;
    if (a->next != NULL)
        a->next->link = a->link;
    rv__ctx_done(&a->ctx);
    rv__free(a);
    rv__run_unref(run);
}

void rv__attempt_cancel(struct rv__attempt *a)
{
    a->executor->cancel(a->executor, &a->ctx.work);
}

/* --------------------------------------------------------------------------------- letters --- */

void rv__attempt_begins(rv_engine *e, struct rv__attempt *a)
{
    if (a->life == e->life)
        rv__owed_count_time(a);
}

static int state_of(const struct rv_ctx *ctx, struct rv__blob **ret)
{
    struct rv__buf json;
    *ret = NULL;
    if (ctx->state_members.len == 0)
        return RV_OK;
    rv__buf_init(&json, RV__STATE_MAX_BYTES + 2);
    rv__buf_char(&json, '{');
    rv__buf_str(&json, rv__buf_view(&ctx->state_members));
    rv__buf_char(&json, '}');
    if (rv__buf_err(&json, NULL) == RV_OK)
        *ret = rv__blob_new(rv__buf_view(&json));
    rv__buf_done(&json);
    return *ret != NULL ? RV_OK : RV_ENOMEM;
}

int rv__attempt_given(struct rv__attempt *a, struct rv__blob **ret)
{
    struct rv__given *newest = NULL;
    if (atomic_load_explicit(&a->ctx.given, memory_order_relaxed) != NULL)
        newest = atomic_exchange_explicit(&a->ctx.given, NULL, memory_order_acquire);
    struct rv__given *oldest = NULL, **end = &a->unrecorded_given;
    while (newest != NULL) {
        struct rv__given *older = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = oldest;
    return rv__given_blob(a->unrecorded_given, ret);
}

void rv__attempt_told(struct rv__attempt *a)
{
    a->unrecorded_given = NULL;
}

int rv__attempt_tell_reads(struct rv__attempt *a)
{
    struct rv__read_note *newest = NULL, *oldest = NULL, **end = &a->unrecorded;
    if (atomic_load_explicit(&a->ctx.reads, memory_order_relaxed) != NULL)
        newest = atomic_exchange_explicit(&a->ctx.reads, NULL, memory_order_acquire);
    while (newest != NULL) {
        struct rv__read_note *older = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = oldest;
    while (a->unrecorded != NULL) {
        struct rv__msg msg = { .kind = MSG_READ,
                               .actor = a->ctx.view.actor,
                               .token = a->ctx.view.token,
                               .name = a->unrecorded->what,
                               .by = a->unrecorded->through };
        if (rv__run_send(a->run, &msg, NULL) == RV_ENOMEM)
            return RV_ENOMEM;
        a->unrecorded = a->unrecorded->next; /* its call was given up */
    }
    return RV_OK;
}

void rv__attempt_tell_given(struct rv__attempt *a)
{
    struct rv__msg msg = { .kind = MSG_GIVEN,
                           .actor = a->ctx.view.actor,
                           .token = a->ctx.view.token };
    (void)rv__attempt_tell_reads(a); /* no memory: the next time */
    if (a->ctx.eval >= 0)            /* labels, which come with its end */
        return;
    if (rv__attempt_given(a, &msg.given) < 0 || msg.given == NULL)
        return;
    if (rv__run_send(a->run, &msg, NULL) == RV_OK)
        rv__attempt_told(a);
    rv__blob_unref(msg.given);
}

/* RV_ENOMEM: the run has not taken it. */
static int answer(rv_engine *e, struct rv__attempt *a)
{
    struct rv__run *run = a->run;
    const struct rv_ctx *ctx = &a->ctx;
    struct rv__blob *state = NULL, *given = NULL;
    int rc = state_of(ctx, &state);
    if (rc == RV_OK)
        rc = rv__attempt_tell_reads(a);
    if (rc == RV_OK)
        rc = rv__attempt_given(a, &given);
    if (rc == RV_OK)
        rc = RV__BUG(43) ? RV_OK : rv__attempt_keep_logs(a, true);
    if (rc < 0) {
        rv__blob_unref(state);
        rv__blob_unref(given);
        return rc;
    }
    struct rv__msg msg = { .kind = ctx->outcome,
                           .actor = ctx->view.actor,
                           .token = ctx->view.token,
                           .result = ctx->result,
                           .state = state,
                           .error = ctx->error,
                           .given = given,
                           .note = ctx->note,
                           .name = ctx->handle,
                           .due_ms = ctx->due_ms,
                           .skipped = ctx->skipped,
                           .behavior = ctx->behavior,
                           .max_attempts = ctx->max_attempts,
                           .backoff = ctx->backoff,
                           .wait_ms = ctx->wait_ms,
                           .chance = rv__random_double(&e->random) };
    if (ctx->outcome == MSG_LOST) {
        msg.crash = true;
        msg.blame = ctx->lost == RV__LOST_ALONE || RV__BUG(67);
        msg.shared = ctx->lost == RV__LOST_SHARED;
    }
    if (ctx->given_up || ((e->closed || run->parked) && rv_cancel_fired(ctx->work.token) &&
                          (ctx->outcome == MSG_FAILED || ctx->outcome == MSG_LOST)))
        msg = (struct rv__msg){
            .kind = MSG_LOST,
            .actor = msg.actor,
            .token = msg.token,
            .state = msg.state,
            .given = msg.given
        }; /* it stopped because we close, or its run was given back */
    uint32_t completed = run->facts.said[FACT_STEP_COMPLETED];
    uint32_t noted = run->facts.said[FACT_STEP_NOTED];
    rc = rv__run_send(run, &msg, NULL);
    if (rc == RV_OK && msg.kind == MSG_NOTE && run->facts.said[FACT_STEP_NOTED] == noted)
        rv__tool_give_up(&e->services, rv__blob_str(ctx->note)); /* it came too late */
    if (rc == RV_OK)
        rv__attempt_told(a);
    if (rc == RV_OK && ctx->streamed && run->facts.said[FACT_STEP_COMPLETED] != completed)
        rv__attempt_forget_stream(a);
    rv__blob_unref(state);
    rv__blob_unref(given);
    return rc;
}

/* The work has ended: free its place, and give its answer to the run, if the run still wants it. */
void rv__attempt_answered(rv_engine *e, struct rv__attempt *a)
{
    struct rv__run *run = a->run;
    if (a->life != e->life) { /* its run was forgotten since: by a death, or by joining anew */
        rv__workers_free_place(e, a);
        rv__attempt_drop(a);
        return;
    }
    if (rv__lane_is_limit(a->place))
        rv__limit_used(&e->limits.at[a->ticket - 1], a->ctx.tokens, rv__mono_ms(e->clock));
    if (!(RV__BUG(59) && a->ctx.outcome == MSG_LOST))
        rv__place_give(e, a->place, a->ticket);
    if (!RV__BUG(57))
        a->place = LANE_NONE;
    if (run->phase != RV__ABSENT && !rv__run_takes(run, false)) {
        rv__mail_put(&run->mail, &a->answer);
        return;
    }
    if (run->cell != NULL && answer(e, a) == RV_ENOMEM) {
        rv__engine_take_again(e, &a->answer);
        return;
    }
    run->burst = rv__mono_ns(e->clock) - a->begun_ns < QUICK_NS ? e->burst : 1;
    rv__metrics_attempt(e, a);
    rv__owed_answered(a);
    rv__attempt_drop(a);
    if (e->early != NULL)
        rv__calls_early(e, run);
}

/* The work has not ended: the next engine attempts it again. No process died, so nothing is blamed. */
static void hand_back(struct rv__attempt *a)
{
    struct rv__msg msg = { .kind = MSG_LOST,
                           .actor = a->ctx.view.actor,
                           .token = a->ctx.view.token };
    (void)rv__attempt_keep_logs(a, false);  /* no memory: without them, then */
    (void)rv__attempt_tell_reads(a);        /* the same */
    (void)rv__attempt_given(a, &msg.given); /* the same */
    (void)rv__run_send(a->run, &msg, NULL); /* and as after a crash */
    rv__blob_unref(msg.given);
}

void rv__hand_back(rv_engine *e)
{
    for (struct rv__attempt *a = e->in_flight; a != NULL; a = a->all_next)
        if (rv__run_takes(a->run, false))
            hand_back(a);
}

int rv__run_hand_back(struct rv__run *run)
{
    int left = 0;
    for (struct rv__attempt *a = run->work; a != NULL; a = a->next, left++)
        hand_back(a);
    return left;
}
