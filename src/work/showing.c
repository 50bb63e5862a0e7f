/* showing.c: sends to a worker what an invocation sees: values that come with it, and values that it asks for. Nothing
 * here waits for the disk: a job reads from the store, and the work does not end before its jobs. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/invoked.h"
#include "work/session.h"

enum {
    ENTRY_EAGER =
        16
        << 10, /* limit of a result that is sent with the request; longer ones must be asked for */
    SEES_INPUT = 1 << PART_INPUT,
    SEES_STEPS = 1 << PART_STEPS,
    SEES_LAST = 1 << PART_LAST,
    SEES_ITEM = 1 << PART_ITEM,
    SEES_ITEMS = 1 << PART_ITEMS,
};

/* ---------------------------------------------------------------------------- coming along --- */

static void put_slot_value(struct rv__session *s, struct rv__shared shared, struct rv__str json,
                           const char *key, struct rv__buf *out, struct rv__buf *members)
{
    unsigned slot;
    static const struct rv__value_head head = { .id = NULL };
    const struct rv__seen seen = { .json = json };
    if (!rv__kept_has(&s->kept, shared.identity, &slot) &&
        rv__invoked_value(&head, &s->kept, shared, &seen, out) < 0)
        return; /* it can be asked for */
    if (rv__kept_has(&s->kept, shared.identity, &slot))
        rv__wire_int(members, key, slot);
}

static bool at_hand(const struct rv__entry *entry, struct rv__str *json)
{
    struct rv__blob *blob = rv__entry_blob(entry);
    if (rv__entry_assembled(entry) || (blob != NULL && rv__blob_is_reference(blob)))
        return false;
    *json = blob != NULL ? rv__blob_str(blob) : rv__str("null");
    return json->len <= ENTRY_EAGER;
}

static void put_entry(struct rv__session *s, const struct rv__view *view,
                      const struct rv__entry *entry, struct rv__buf *out)
{
    struct rv__str json = { NULL, 0 }, state = { NULL, 0 };
    const struct rv__entry *before = rv__view_before(view, entry);
    bool here = at_hand(entry, &json) && rv__entry_state_here(entry, &state);
    size_t start = rv__wire_begin(out, FRAME_ENTRY);
    uint32_t number = rv__kept_add_entry(&s->kept, rv__entry_serial(entry), here ? json.len : 0);
    rv__wire_int(out, "entry", number);
    if (before != NULL)
        rv__wire_int(out, "before", rv__kept_entry(&s->kept, rv__entry_serial(before)));
    rv__wire_text(out, "alias", rv__entry_alias(entry));
    rv__wire_text(out, "status", rv__str(rv__status_name(rv__entry_status(entry))));
    if (here && !rv__str_none(state))
        rv__wire_json(out, "state", state);
    if (rv__entry_error(entry) != NULL)
        rv__wire_json(out, "error", rv__blob_str(rv__entry_error(entry)));
    if (here)
        rv__wire_json(out, "json", json);
    else
        rv__wire_json(out, "absent", rv__str("true"));
    rv__wire_end(out, start);
}

/* Send all nodes of a scope that the worker does not have, the oldest first. False: no memory. */
static bool put_scope(struct rv__session *s, const struct rv__view *view,
                      const struct rv__entry *scope, struct rv__buf *out)
{
    size_t count = 0, bytes = 0;
    bool no_memory;
    struct rv__str json;
    const struct rv__entry *e = scope;
    for (; e != NULL && rv__kept_entry(&s->kept, rv__entry_serial(e)) == 0;
         e = rv__view_before(view, e))
        count++, bytes += at_hand(e, &json) ? json.len : 0;
    if (count == 0)
        return true;
    if (!rv__kept_room(&s->kept, count, bytes, &no_memory)) {
        if (no_memory)
            return false;
        rv__wire_end(out, rv__wire_begin(out, FRAME_FORGET));
        rv__kept_forget(&s->kept);
        return put_scope(s, view, scope,
                         out); /* again, for all nodes: the worker has none of them now */
    }
    const struct rv__entry **chain = rv__alloc(count * sizeof *chain);
    if (chain == NULL)
        return false;
    e = scope;
    for (size_t i = count; i-- > 0; e = rv__view_before(view, e))
        chain[i] = e;
    for (size_t i = 0; i < count; i++)
        put_entry(s, view, chain[i], out);
    rv__free((void *)chain);
    return true;
}

/* What comes along, because the worker said that it sees it: frames before the `invoke`, and members of it. */
bool rv__session_put_along(struct rv__session *s, struct rv_ctx *ctx, struct rv__buf *out,
                           struct rv__buf *members)
{
    const struct rv__view *view = &ctx->view;
    struct rv__seen seen = { .status = NULL };
    if ((s->sees & SEES_STEPS) && view->scope != NULL)
        rv__access_saw_steps(ctx, rv__str(NULL));
    else if ((s->sees & SEES_LAST) && view->last != NULL)
        rv__access_saw_steps(ctx, rv__entry_alias(view->last));
    if ((s->sees & SEES_STEPS) && view->scope != NULL && !put_scope(s, view, view->scope, out))
        return false;
    if ((s->sees & SEES_LAST) && view->last != NULL && !put_scope(s, view, view->last, out))
        return false;
    if ((s->sees & SEES_STEPS) &&
        view->scope != NULL) /* a `forget` of the last one may come between */
        rv__wire_int(members, "scope", rv__kept_entry(&s->kept, rv__entry_serial(view->scope)));
    if ((s->sees & SEES_LAST) && view->last != NULL)
        rv__wire_int(members, "last", rv__kept_entry(&s->kept, rv__entry_serial(view->last)));
    if (ctx->source->see(ctx, PART_INPUT, rv__str(NULL), NULL, &seen) == RV_OK) {
        if (seen.json.len <= RV__KEPT_SMALL || (s->sees & SEES_INPUT))
            rv__invoked_given(ctx, PART_INPUT, rv__str(NULL), seen.json);
        if (seen.json.len <= RV__KEPT_SMALL)
            rv__wire_json(members, "input", seen.json);
        else if (s->sees & SEES_INPUT)
            put_slot_value(s, rv__invoked_shared(ctx, PART_INPUT, rv__str(NULL), NULL), seen.json,
                           "inputSlot", out, members);
    }
    if ((s->sees & SEES_ITEMS) && view->items != NULL && view->pieces == NULL &&
        !rv__blob_is_reference(view->items))
        put_slot_value(s, rv__invoked_shared(ctx, PART_ITEMS, rv__str(NULL), NULL),
                       rv__blob_str(view->items), "itemsSlot", out, members);
    return true;
}

/* Append the item, if it is in memory. */
void rv__session_put_item(struct rv__session *s, struct rv_ctx *ctx, struct rv__buf *members)
{
    struct rv__stored_rows rows;
    struct rv__blob *hold = NULL;
    struct rv__str item = { NULL, 0 };
    size_t most = s->sees & SEES_ITEM ? RV__KEPT_BYTES : RV__INVOKE_ITEM;
    rv__stored_rows_of(&rows, ctx);
    rows.at_hand = true;
    if (rv__view_item(&ctx->view, &rows.source, &hold, &item, NULL) == RV_OK &&
        !rv__str_none(item) && item.len <= most) {
        rv__wire_json(members, "item", item);
        rv__invoked_given(ctx, PART_ITEM, rv__str(NULL), item);
    }
    rv__blob_unref(hold);
}

/* --------------------------------------------------------------------------------- showing --- */

/* A part that has to be read from the store. */
struct showing {
    struct rv__wire_job job; /* first */
    struct rv__session *session;
    struct rv_ctx *ctx; /* does not end before this job */
    struct rv_ctx
        apart; /* a context for this thread: the arena of the other one belongs to another thread */
    struct rv__wanted want;
    struct rv__shared shared;
    struct rv__buf seq, room;
    struct rv__seen seen;
    int rc;
};

static void cannot_show(struct rv__session *s, struct rv_ctx *ctx, enum rv__part part, int rc)
{
    (void)rv__fail(&ctx->invoked.why, rc, "'%s' cannot be shown to the step: %s",
                   rv__part_names[part], rv_strerror(rc));
    if (s->conn != NULL)
        rv__session_say_cancel(s, ctx);
    rv__session_finish(s, ctx);
}

static void read_part(struct rv__wire_job *job)
{
    struct showing *show = (struct showing *)job;
    show->rc = rv__engine_source.see(&show->apart, show->want.part, show->want.alias, &show->room,
                                     &show->seen);
}

static void part_was_read(struct rv__wire_job *job)
{
    struct showing *show = (struct showing *)job;
    struct rv_ctx *ctx = show->ctx;
    struct rv__session *s = show->session;
    ctx->invoked.jobs--;
    if (!ctx->invoked.over && s->conn != NULL) {
        const struct rv__value_head head = { ctx->invoked.id, show->seq.len > 0
                                                                  ? rv__buf_view(&show->seq)
                                                                  : rv__str(NULL) };
        int rc = show->rc;
        if (rc == RV_OK)
            rv__invoked_given(ctx, show->want.part, show->want.alias, show->seen.json);
        if (rc == RV_OK || rc == RV_ENOTFOUND)
            rc = rv__invoked_value(&head, &s->kept, show->shared, rc == RV_OK ? &show->seen : NULL,
                                   rv__conn_out(s->conn));
        if (rc < 0)
            cannot_show(s, ctx, show->want.part,
                        rc); /* it may be freed now: it has no jobs any more */
    } else {
        rv__invoked_settle(ctx);
    }
    rv__arena_done(&show->apart.arena);
    rv__buf_done(&show->seq);
    rv__buf_done(&show->room);
    rv__session_unref(s);
    rv__free(show);
}

/* Read it on another thread. False: no memory. */
static bool show_later(struct rv__session *s, struct rv_ctx *ctx, const struct rv__wanted *want,
                       struct rv__shared shared)
{
    struct showing *show = rv__zalloc(1, sizeof *show);
    if (show == NULL)
        return false;
    *show = (struct showing){ .job = { read_part, part_was_read },
                              .session = rv__session_ref(s),
                              .ctx = ctx,
                              .want = *want,
                              .shared = shared };
    show->apart.source = &rv__engine_source;
    show->apart.services = ctx->services;
    show->apart.run_id = ctx->run_id;
    show->apart.pieces = ctx->pieces;
    show->apart.plan = ctx->plan;
    show->apart.eval = ctx->eval;
    show->apart.view = ctx->view; /* borrowed: the other context holds it */
    rv__arena_init(&show->apart.arena, SIZE_MAX);
    rv__buf_init(&show->seq, 64);
    rv__buf_init(&show->room, RV__JSON_MAX_BYTES);
    if (!rv__str_none(want->seq))
        rv__buf_str(&show->seq, want->seq);
    ctx->invoked.jobs++;
    rv__wires_job(ctx->services->wires, &show->job);
    return true;
}

/* The node that was sent under this number. */
static const struct rv__entry *numbered(const struct rv__session *s, const struct rv_ctx *ctx,
                                        struct rv__str number)
{
    int64_t wanted = 0;
    if (rv__json_int(number, &wanted) < 0 || wanted <= 0)
        return NULL;
    const struct rv__entry *e = ctx->view.scope;
    while (e != NULL && (int64_t)rv__kept_entry(&s->kept, rv__entry_serial(e)) != wanted)
        e = rv__view_before(&ctx->view, e);
    const struct rv__entry *last = ctx->view.last;
    if (e == NULL && last != NULL &&
        (int64_t)rv__kept_entry(&s->kept, rv__entry_serial(last)) == wanted)
        e = last;
    return e;
}

/* Look at a part that is in memory. RV_EBUSY: it must be read from the store. */
static int see_at_hand(struct rv_ctx *ctx, enum rv__part part, const struct rv__entry *entry,
                       bool known, struct rv__seen *seen)
{
    struct rv__str json = { NULL, 0 };
    switch (part) {
    case PART_STEP:
    case PART_LAST: {
        if (entry == NULL)
            return RV_ENOTFOUND;
        struct rv__blob *blob = rv__entry_blob(entry);
        bool here = known ||
                    (!rv__entry_assembled(entry) && (blob == NULL || !rv__blob_is_reference(blob)));
        if (!here || !rv__entry_state_here(entry, &seen->state))
            return RV_EBUSY;
        seen->json = blob != NULL && !known ? rv__blob_str(blob) : rv__str("null");
        seen->alias = rv__entry_alias(entry);
        seen->status = rv__status_name(rv__entry_status(entry));
        seen->error = rv__blob_str(rv__entry_error(entry));
        return RV_OK;
    }
    case PART_INPUT:
    case PART_ITEMS:
    case PART_ITEM:
    case PART_ERROR: {
        if (known)
            return RV_OK;
        int rc = ctx->source->see(ctx, part, json, NULL, seen);
        return rc == RV_ETOOBIG ? RV_EBUSY : rc;
    }
    case PART_STEPS:
    case PART_PARENT:
    case PART_FAILED:
    case PART_INPUTS:
    case PART_PARAMETERS:
    case PART_STATE:
    case PARTS: break;
    }
    return known ? RV_OK : RV_EBUSY;
}

int rv__session_show(struct rv__session *s, struct rv_ctx *ctx, const struct rv__frame *frame,
                     rv_error *err)
{
    struct rv__wanted want;
    struct rv__seen seen = { .status = NULL };
    unsigned slot;
    int rc = rv__invoked_wanted(ctx, frame, &want, err);
    if (rc < 0)
        return rc;
    const struct rv__entry *entry = want.part == PART_LAST ? ctx->view.last
                                    : !rv__str_none(want.number)
                                        ? numbered(s, ctx, want.number)
                                        : rv__view_find(&ctx->view, want.alias);
    if (want.part == PART_STEP && entry != NULL)
        want.alias = rv__entry_alias(entry);
    struct rv__shared shared = rv__invoked_shared(ctx, want.part, want.alias, entry);
    bool known = shared.identity != NULL && rv__kept_has(&s->kept, shared.identity, &slot);
    rc = see_at_hand(ctx, want.part, entry, known, &seen);
    if (rc == RV_EBUSY && show_later(s, ctx, &want, shared))
        return 0;
    if (rc == RV_ENOTFOUND && want.part == PART_STEP && rv__str_none(want.number))
        rc = ctx->source->see(ctx, want.part, want.alias, NULL, &seen); /* adds a line to its log */
    const struct rv__value_head head = { ctx->invoked.id, want.seq };
    if (rc == RV_OK)
        rv__invoked_given(ctx, want.part, want.alias, known ? rv__str(NULL) : seen.json);
    if (rc == RV_OK || rc == RV_ENOTFOUND)
        rc = rv__invoked_value(&head, &s->kept, shared, rc == RV_OK ? &seen : NULL,
                               rv__conn_out(s->conn));
    if (rc < 0)
        cannot_show(s, ctx, want.part, rc == RV_EBUSY ? RV_ENOMEM : rc);
    return 0;
}
