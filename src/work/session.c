/* session.c: the invocations of a session, on the loop of connections: for workers (workers.c) and for host processes (hosted.c).
 *
 *   begun ──sent──▶ the other side runs it: get/value, log, state ──result, error──▶ over ──no job reads for it──▶ `complete`
 *     └──────────────┴──cancelled before it was sent, cannot be shown what it needs, lost──▶ over
 *
 * A piece of work belongs to this thread from rv__session_begin() to `complete`. Jobs read from the store for it, and it does not
 * end before them. Thread: that of connections, unless stated otherwise. */
#include "work/session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/invoked.h"

enum { FIRST_SLOTS = 16 };

/* ------------------------------------------------------------------------------- sessions --- */

struct rv__session *rv__session_new(uint64_t number)
{
    struct rv__session *s = rv__zalloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    atomic_init(&s->refs, 1);
    pthread_mutex_init(&s->lock, NULL); /* on Linux it cannot fail */
    rv__buf_init(&s->taken, RV__FRAME_MAX / 2);
    s->number = number;
    return s;
}

struct rv__session *rv__session_ref(struct rv__session *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void rv__session_unref(struct rv__session *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    rv__buf_done(&s->taken);
    rv__free(s->slots);
    pthread_mutex_destroy(&s->lock);
    rv__free(s);
}

/* ---------------------------------------------------------------------------- invocations --- */

struct rv_ctx *rv__session_only(const struct rv__session *s)
{
    for (size_t i = 0; i < s->slot_count && s->in_flight > 0; i++)
        if (s->slots[i].ctx != NULL)
            return s->slots[i].ctx;
    return NULL;
}

struct rv_ctx *rv__session_find(const struct rv__session *s, struct rv__str id)
{
    struct rv__arena arena;
    struct rv__str text;
    struct rv_ctx *found = NULL;
    size_t slot = 0, at = 0;
    if (rv__str_none(id) || rv__json_type(id) != RV__JSON_STRING || id.len > 64)
        return NULL;
    rv__arena_init(&arena, 256);
    if (rv__json_string(id, &arena, &text) == RV_OK) {
        for (; at < text.len && text.at[at] >= '0' && text.at[at] <= '9' && slot < UINT32_MAX; at++)
            slot = slot * 10 + (size_t)(text.at[at] - '0');
        if (slot < s->slot_count && s->slots[slot].ctx != NULL &&
            rv__str_is(text, s->slots[slot].ctx->invoked.id))
            found = s->slots[slot].ctx;
    }
    rv__arena_done(&arena);
    return found;
}

static bool more_slots(struct rv__session *s)
{
    size_t count = s->slot_count ? s->slot_count * 2 : FIRST_SLOTS;
    void *slots = rv__realloc(s->slots, count * sizeof *s->slots);
    if (slots == NULL)
        return false;
    s->slots = slots;
    memset(&s->slots[s->slot_count], 0, (count - s->slot_count) * sizeof *s->slots);
    for (; s->slot_count < count; s->first_free = ++s->slot_count)
        s->slots[s->slot_count].next_free = s->first_free;
    return true;
}

/* Give it a slot and an id. RV_ENOMEM. */
static int give_slot(struct rv__session *s, struct rv_ctx *ctx)
{
    if (s->first_free == 0 && !more_slots(s))
        return RV_ENOMEM;
    size_t at = s->first_free - 1;
    s->first_free = s->slots[at].next_free;
    s->slots[at].ctx = ctx;
    s->slots[at].count++;
    s->in_flight++;
    ctx->invoked.slot = (uint32_t)at;
    snprintf(ctx->invoked.id, sizeof ctx->invoked.id, "%zu.%" PRIu64 ".%" PRIu64, at, s->number,
             s->slots[at].count);
    return RV_OK;
}

void rv__invoked_complete(struct rv_ctx *ctx)
{
    struct rv__invoked *inv = &ctx->invoked;
    rv_error why = inv->why;
    enum rv__lost how = ctx->lost;
    if (inv->is_lost)
        ctx->work.lost(&ctx->work, how, &why);
    else
        ctx->work.done(&ctx->work, why.code != 0 ? &why : NULL);
}

void rv__invoked_settle(struct rv_ctx *ctx)
{
    struct rv__invoked *inv = &ctx->invoked;
    if (inv->over && inv->jobs == 0 && (!atomic_load(&inv->told) || inv->told_worker))
        inv->complete(ctx);
}

void rv__session_finish(struct rv__session *s, struct rv_ctx *ctx)
{
    bool is_ready = !ctx->invoked.sent || ctx->invoked.answered;
    assert(s->slots[ctx->invoked.slot].ctx == ctx);
    s->slots[ctx->invoked.slot].ctx = NULL;
    s->slots[ctx->invoked.slot].next_free = s->first_free;
    s->first_free = ctx->invoked.slot + (size_t)1;
    s->in_flight--;
    rv__cancel_unwatch(ctx->work.token, &ctx->watch);
    ctx->invoked.over = true;
    rv__invoked_settle(ctx); /* it may be gone after this */
    if (s->host != NULL)
        rv__hosted_finished(s->host, is_ready);
}

void rv__session_lose(struct rv__session *s, struct rv_ctx *ctx, enum rv__lost how, const char *why)
{
    ctx->invoked.is_lost = true;
    ctx->lost = how;
    (void)rv__fail(&ctx->invoked.why, RV_EFAILED, "%s", why);
    rv__session_finish(s, ctx);
}

void rv__session_say_invoke(struct rv__session *s, struct rv_ctx *ctx)
{
    struct rv__buf *out = rv__conn_out(s->conn), members;
    rv__buf_init(&members, RV__FRAME_MAX);
    bool good = rv__session_put_along(s, ctx, out, &members);
    size_t start = rv__wire_begin(out, FRAME_INVOKE);
    rv__invoked_ask(ctx, ctx->invoked.id, out);
    if (ctx->view.node != NULL) {
        const struct rv__wrap *wrap = rv__node_wrap(ctx->view.node);
        rv__wire_text(out, "workflow", wrap->name);
        rv__wire_text(out, "version", wrap->version);
    }
    rv__session_put_item(s, ctx, &members);
    rv__buf_str(out, rv__buf_view(&members));
    rv__wire_end(out, start);
    if (!good || members.rc != RV_OK)
        out->rc = RV_ENOMEM; /* this closes the connection, and its work is lost */
    rv__buf_done(&members);
    ctx->invoked.sent = true;
    if (!ctx->invoked.begun)
        ctx->work.begun(&ctx->work);
}

void rv__session_say_cancel(struct rv__session *s, const struct rv_ctx *ctx)
{
    struct rv__buf *out = rv__conn_out(s->conn);
    size_t start = rv__wire_begin(out, FRAME_CANCEL);
    rv__wire_text(out, "id", rv__str(ctx->invoked.id));
    rv__wire_end(out, start);
}

static void cancel_arrives(struct rv__wire_task *task)
{
    struct rv_ctx *ctx = RV__CONTAINER(task, struct rv_ctx, invoked.cancel);
    struct rv__session *s = ctx->invoked.session;
    ctx->invoked.told_worker = true;
    if (ctx->invoked.over) {
        rv__invoked_settle(ctx);
    } else if (!ctx->invoked.sent) {
        (void)rv__fail(&ctx->invoked.why, RV_ECANCELED, "it was to stop before it had begun");
        rv__session_finish(s, ctx);
    } else if (s->conn != NULL) {
        rv__session_say_cancel(s, ctx);
        if (s->host != NULL)
            rv__hosted_told(s->host);
    }
}

/* Under the lock of tokens. Thread: any. */
static void token_fired(struct rv__cancel_watch *watch)
{
    struct rv_ctx *ctx = RV__CONTAINER(watch, struct rv_ctx, watch);
    ctx->invoked.cancel.run = cancel_arrives;
    atomic_store(&ctx->invoked.told, true);
    rv__wires_post(ctx->services->wires, &ctx->invoked.cancel);
}

void rv__session_begin(struct rv__session *s, struct rv_ctx *ctx)
{
    ctx->invoked.session = s;
    if (s->state.gone || give_slot(s, ctx) < 0) { /* only this thread writes the state */
        ctx->invoked.is_lost = ctx->invoked.over = true;
        ctx->lost = RV__LOST_BLAMELESS;
        (void)rv__fail(&ctx->invoked.why, RV_EFAILED, "%s",
                       s->state.gone ? "the worker has gone" : rv_strerror(RV_ENOMEM));
        rv__invoked_settle(ctx);
        if (s->host != NULL && !s->state.gone)
            rv__hosted_finished(s->host, true);
        return;
    }
    if (!rv__cancel_watch(ctx->work.token, &ctx->watch)) {
        (void)rv__fail(&ctx->invoked.why, RV_ECANCELED, "it was to stop before it had begun");
        rv__session_finish(s, ctx);
    } else if (s->conn != NULL) {
        rv__session_say_invoke(s, ctx);
    }
}

struct rv_ctx *rv__invoked_chain(struct rv__work *const *works, size_t count,
                                 void (*complete)(struct rv_ctx *ctx))
{
    struct rv_ctx *next = NULL;
    for (size_t i = count; i-- > 0;) {
        struct rv_ctx *ctx = (struct rv_ctx *)works[i];
        memset(&ctx->invoked, 0, sizeof ctx->invoked);
        ctx->watch = (struct rv__cancel_watch){ .fired = token_fired };
        ctx->invoked.complete = complete;
        ctx->invoked.next = next;
        next = ctx;
    }
    return next;
}

/* --------------------------------------------------------------------------------- hearing --- */

int rv__session_hear(struct rv__session *s, struct rv_ctx *ctx, const struct rv__frame *frame,
                     rv_error *err)
{
    static int (*const says[FRAME_TYPES])(struct rv_ctx *, const struct rv__frame *, rv_error *) = {
        [FRAME_LOG] = rv__invoked_log,
        [FRAME_STATE] = rv__invoked_state,
        [FRAME_RESULT] = rv__invoked_result,
        [FRAME_ERROR] = rv__invoked_error,
    };
    int rc = frame->type == FRAME_GET ? rv__session_show(s, ctx, frame, err)
                                      : says[frame->type](ctx, frame, err);
    if (rc == 1) {
        ctx->invoked.answered = true;
        rv__session_finish(s, ctx);
    }
    return rc < 0 ? rc : RV_OK;
}

bool rv__frame_is_about_work(enum rv__frame_type type)
{
    return type == FRAME_LOG || type == FRAME_STATE || type == FRAME_RESULT ||
           type == FRAME_ERROR || type == FRAME_GET;
}
