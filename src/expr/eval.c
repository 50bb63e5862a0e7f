/* eval.c: the value of a template in a scope, put together from its pieces.
 *
 * A plain path is looked up in the texts of the scope. Everything else was evaluated by jq in another
 * process before: its value comes with the answer to the request that ask.c wrote. */
#include <assert.h>

#include "base/error.h"
#include "base/json.h"
#include "expr/eval.h"

enum { SHOWN_BYTES = 60 }; /* of an expression in a message */

const struct rv__str rv__step_fields[RV__STEP_FIELDS] = { RV__STR("result"), RV__STR("state"),
                                                          RV__STR("status"), RV__STR("error") };
const struct rv__str rv__last_names[RV__LAST_NAMES] = { RV__STR("result"), RV__STR("state"),
                                                        RV__STR("alias"), RV__STR("stepName") };

#define UP10  ".parent.parent.parent.parent.parent.parent.parent.parent.parent.parent"
#define UP100 UP10 UP10 UP10 UP10 UP10 UP10 UP10 UP10 UP10 UP10

struct rv__str rv__loop_root(size_t level)
{
    static const char deepest[] = "loop" UP100; /* no plan is deeper */
    size_t len = sizeof "loop" - 1 + level * (sizeof ".parent" - 1);
    return (struct rv__str){ len < sizeof deepest ? deepest : NULL,
                             len < sizeof deepest ? len : 0 };
}

bool rv__expr_truth(struct rv__str json)
{
    enum rv__json_type type = rv__json_type(json);
    return type != RV__JSON_NULL && type != RV__JSON_FALSE;
}

/* -------------------------------------------------------------------------------- failing --- */

int rv__expr_failed(const struct rv__expr *expr, int code, rv_error *err, const char *why)
{
    struct rv__str text = expr->text;
    while (text.len > 0 && (*text.at == ' ' || *text.at == '\n'))
        text = (struct rv__str){ text.at + 1, text.len - 1 };
    while (text.len > 0 && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\n'))
        text.len--;
    bool cut = text.len > SHOWN_BYTES;
    if (cut)
        for (text.len = SHOWN_BYTES; (text.at[text.len] & 0xC0) == 0x80;)
            text.len--;
    return rv__fail(err, code, "${ %.*s%s }: %s", RV__ARG(text), cut ? "…" : "", why);
}

/* ------------------------------------------------------------------------------- templates --- */

/* Write a JSON value into a string that is being written. */
static void put_within_string(struct rv__str json, struct rv__buf *out)
{
    if (*json.at == '"') { /* a string: without its quotes, its escapes stay */
        rv__buf_add(out, json.at + 1, json.len - 2);
        return;
    }
    size_t quote = out->len;
    rv__buf_json_str(out, json);
    if (out->rc == RV_OK) { /* take its quotes away again */
        memmove(out->text + quote, out->text + quote + 1, out->len - quote - 1);
        rv__buf_cut(out, out->len - 2);
    }
}

/* JSON without the white space between its tokens. */
static void put_compact(struct rv__str json, struct rv__buf *out)
{
    const char *at = json.at, *end = json.at + json.len;
    while (at < end) {
        const char *from = at;
        while (at < end && *at != ' ' && *at != '\n' && *at != '\t' && *at != '\r')
            at = *at == '"' ? rv__json_skip(at, end) : at + 1;
        rv__buf_add(out, from, (size_t)(at - from));
        while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
            at++;
    }
}

static int put_path(struct rv__eval_state *e, enum rv__piece_kind kind, struct rv__buf *out)
{
    struct rv__str json;
    struct rv__blob *own = NULL;
    int rc = rv__path_text(e, &json, &own);
    if (rc == RV_ENOTFOUND) {
        rv__buf_text(out, "null");
        rc = RV_OK;
    } else if (rc == RV_OK && kind == PIECE_VALUE) {
        rv__buf_str(out, json);
    } else if (rc == RV_OK) {
        struct rv__buf compact;
        rv__buf_init(&compact, RV__JSON_MAX_BYTES);
        put_compact(json, &compact);
        rc = rv__buf_err(&compact, e->err);
        if (rc == RV_OK)
            put_within_string(rv__buf_view(&compact), out);
        rv__buf_done(&compact);
    }
    rv__blob_unref(own);
    return rc;
}

/* The next value of the answer, which is compact. */
static int put_answered(struct rv__eval_state *e, struct rv__json_iter *values,
                        enum rv__piece_kind kind, struct rv__buf *out)
{
    struct rv__str value;
    if (!rv__json_next(values, NULL, &value))
        return rv__expr_failed(e->expr, RV_EINVAL, e->err, "the evaluator gave no value for it");
    if (kind == PIECE_VALUE)
        rv__buf_str(out, value);
    else
        put_within_string(value, out);
    return RV_OK;
}

int rv__exprs_compose(struct rv__exprs *set, uint32_t number, struct rv__expr_texts *texts,
                      struct rv__scope *scope, struct rv__str values, struct rv__buf *out,
                      rv_error *err)
{
    struct rv__buf work;
    struct rv__eval_state e = { .texts = texts, .scope = scope, .work = &work, .err = err };
    struct rv__json_iter answer;
    size_t start = out->len;
    int rc = RV_OK;
    assert(number < set->template_count && out->rc == RV_OK);
    rv__buf_init(&work, RV__JSON_MAX_BYTES);
    rv__json_iter_init(&answer, rv__str_none(values) ? rv__str("[]") : values);
    for (const struct rv__piece *piece = set->templates[number].pieces;
         piece != NULL && rc == RV_OK; piece = piece->next) {
        e.expr = piece->expr;
        if (piece->kind == PIECE_JSON)
            rv__buf_str(out, piece->json);
        else if (piece->expr->path != NULL)
            rc = put_path(&e, piece->kind, out);
        else
            rc = put_answered(&e, &answer, piece->kind, out);
        if (rc == RV_OK && out->rc == RV_ETOOBIG && piece->expr != NULL)
            rc = rv__expr_failed(piece->expr, RV_ETOOBIG, err, "the value is too large");
    }
    rv__buf_done(&work);
    if (rc == RV_OK)
        rc = rv__buf_err(out, err);
    if (rc < 0) {
        out->rc = RV_OK; /* it was RV_OK before this call */
        rv__buf_cut(out, start);
    }
    return rc;
}

/* jq quotes values in its messages and cuts them, so a mask would not find a secret in them. */
static const char hidden[] = "jq failed; its message is not shown, because a secret is in use";

int rv__exprs_failed(const struct rv__exprs *set, uint32_t number, size_t i, int code,
                     const char *why, rv_error *err)
{
    const struct rv__template *tpl = &set->templates[number];
    assert(number < set->template_count);
    for (size_t e = 0; e < tpl->expr_count; e++)
        if (tpl->exprs[e]->path == NULL && i-- == 0)
            return rv__expr_failed(tpl->exprs[e], code, err,
                                   tpl->secrets && code == RV_EINVAL ? hidden : why);
    return rv__fail(err, code, "%s", why);
}
