/* labels.c: the labels of the iterations of a forEach: `label`, evaluated once for each item.
 *
 * Labels are only for people: the state of a run does not depend on them. So they are not work of their own. They are
 * made after the items, whether an expression or a function made these, and recorded with them (`labels` of what the
 * evaluation was given; see rv__ctx_given_labels). If a label fails, the item has none, and the log says why, once.
 *
 *   items evaluated ──▶ label of item 0 ──▶ … ──▶ label of item n ──▶ the loop's inbox
 *
 * A label of text and plain paths is made here. One that needs jq goes to the evaluator, one request per item. The
 * answer may come before or after the call that asked returns, on another thread: whichever comes second continues
 * (`met`), so that there is no recursion. */
#include "work/labels.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "work/builtin.h"
#include "work/work.h"

enum { TEXTS_BYTES = 1 << 20 }; /* cached between labels: the texts that their paths lead into */

struct rv__labels {
    uint32_t number; /* 1 + that of the template */
    struct rv__view around;
    struct rv__json_iter it; /* over the items */
    int64_t index;           /* of the label that is being made */
    struct rv__buf json;     /* the labels so far: an array without its end */
    struct rv__expr_texts *texts;
    atomic_bool met;
    bool warned;
};

/* Text as it is, anything else as JSON; no longer than a label may be. */
static void put_label(struct rv_ctx *ctx, struct rv__str json)
{
    struct rv__labels *l = ctx->labels;
    if (rv__json_type(json) == RV__JSON_NULL) {
        rv__buf_text(&l->json, "null");
        return;
    }
    rv__buf_json_str(&l->json, rv__str_begin(rv__ctx_text(ctx, json), RV__LABEL_BYTES));
}

static void take_label(struct rv_ctx *ctx, struct rv__str json, const rv_error *err)
{
    struct rv__labels *l = ctx->labels;
    if (err == NULL) {
        put_label(ctx, json);
        return;
    }
    rv__buf_text(&l->json, "null");
    if (!l->warned)
        rv_log_warn(ctx, "the label of item %lld could not be made: %s", (long long)l->index,
                    err->message);
    l->warned = true;
}

/* Go to the next item, as its iteration sees it. False: all have a label, or the limit is reached. */
static bool next_item(struct rv_ctx *ctx)
{
    struct rv__labels *l = ctx->labels;
    struct rv__str item;
    if (l->index + 1 >= RV__LABELS_MOST || atomic_load(ctx->services->stopped) ||
        !rv__json_next(&l->it, NULL, &item))
        return false;
    l->index++;
    rv__buf_char(&l->json, l->index > 0 ? ',' : '[');
    ctx->view.items = ctx->result;
    ctx->view.item = item;
    ctx->view.pieces = NULL;
    ctx->view.loop_index = l->index;
    ctx->view.parent = l->around.loop_index >= 0 ? &l->around : NULL;
    return true;
}

static void finish(struct rv_ctx *ctx)
{
    struct rv__labels *l = ctx->labels;
    ctx->view.items = l->around.items;
    ctx->view.item = l->around.item;
    ctx->view.pieces = l->around.pieces;
    ctx->view.loop_index = l->around.loop_index;
    ctx->view.parent = l->around.parent;
    rv__buf_char(&l->json, ']');
    if (l->index >= 0 && rv__buf_err(&l->json, NULL) == RV_OK)
        rv__ctx_given_labels(ctx, rv__buf_view(&l->json));
    rv__buf_done(&l->json);
    rv__expr_texts_free(l->texts);
    ctx->labels = NULL;
    rv__work_post(ctx);
}

static void make_plain(struct rv_ctx *ctx)
{
    struct rv__labels *l = ctx->labels;
    struct rv__buf json;
    rv_error err;
    rv__buf_init(&json, RV__EXPR_OUTPUT_BYTES);
    while (next_item(ctx)) {
        rv__sight_done(&ctx->sight);
        rv__sight_init(&ctx->sight, ctx);
        rv__buf_reset(&json);
        int rc = rv__exprs_compose(ctx->exprs->set, l->number - 1, l->texts, &ctx->sight.scope,
                                   (struct rv__str){ NULL, 0 }, &json, &err);
        take_label(ctx, rv__buf_view(&json), rc < 0 ? &err : NULL);
    }
    rv__buf_done(&json);
    finish(ctx);
}

/* Ask for one label after the other, as long as the answers come before the calls return. */
static void make_asking(struct rv_ctx *ctx)
{
    struct rv__labels *l = ctx->labels;
    for (;;) {
        if (!next_item(ctx)) {
            finish(ctx);
            return;
        }
        atomic_store(&l->met, false);
        rv__work_evaluate(ctx, l->number);
        if (!atomic_exchange(&l->met, true))
            return; /* continued when the answer comes */
    }
}

void rv__labels_answer(struct rv_ctx *ctx, struct rv__str json, const rv_error *err)
{
    struct rv__labels *l = ctx->labels;
    take_label(ctx, json, err);
    if (atomic_exchange(&l->met, true))
        make_asking(ctx);
}

bool rv__labels_make(struct rv_ctx *ctx)
{
    uint32_t number = rv__plan_exprs_number(ctx->exprs, ctx->view.node, SLOT_LABEL);
    if (number == 0 || ctx->outcome != MSG_DONE || ctx->result == NULL ||
        rv__json_type(rv__blob_str(ctx->result)) != RV__JSON_ARRAY)
        return false;
    struct rv__labels *l = rv__arena_zalloc(&ctx->arena, 1, sizeof *l);
    bool asks = rv__exprs_jq(ctx->exprs->set, number - 1) > 0;
    if (l == NULL || (!asks && rv__expr_texts_new(TEXTS_BYTES, &l->texts, NULL) < 0))
        return false;  /* without memory there are no labels */
    rv__ctx_hide(ctx); /* masks the items, which labels see */
    l->number = number;
    l->around = ctx->view;
    l->index = -1;
    atomic_init(&l->met, false);
    rv__json_iter_init(&l->it, rv__blob_str(ctx->result));
    rv__buf_init(&l->json, (size_t)RV__LABELS_MOST * (6 * RV__LABEL_BYTES + 4));
    ctx->labels = l;
    if (asks)
        make_asking(ctx);
    else
        make_plain(ctx);
    return true;
}
