/* access.c: decides what an execution may read of its run, and records what it has read (access.h). */
#include "work/access.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "read/read.h"
#include "work/work.h"

enum {
    NOTED_MOST = 200
}; /* nodes that are recorded one by one for an attempt; after these, one entry stands for all */

/* ---------------------------------------------------------------------------------- scopes --- */

enum rv__access rv__ctx_access(const struct rv_ctx *ctx, bool *scoped)
{
    bool in_state = false;
    enum rv__access access = ctx->view.node != NULL ? rv__node_access(ctx->view.node, &in_state)
                                                    : ACCESS_ALL;
    if (scoped != NULL)
        *scoped = in_state;
    return access;
}

static bool allows(const struct rv_ctx *ctx, int what, const char *name)
{
    enum rv__access access = rv__ctx_access(ctx, NULL);
    switch ((enum rv_read_what)what) {
    case RV_READ_LOGS:
    case RV_READ_ATTACHMENTS: return access != ACCESS_NONE;
    case RV_READ_ATTACHMENT:
        return access == ACCESS_ALL ||
               (access == ACCESS_EXPLICIT && rv__view_given(&ctx->view, rv__str(name)));
    case RV_READ_RUN: return access == ACCESS_ALL;
    }
    return false;
}

void rv__access_name_read(int what, const char *name, struct rv__buf *out)
{
    static const char *const words[] = { [RV_READ_LOGS] = "logs",
                                         [RV_READ_ATTACHMENTS] = "attachments",
                                         [RV_READ_ATTACHMENT] = "attachments/",
                                         [RV_READ_RUN] = "" };
    rv__buf_text(out, words[what]);
    if (what == RV_READ_ATTACHMENT || what == RV_READ_RUN)
        rv__buf_text(out, name);
}

int rv__access_check(const struct rv_ctx *ctx, int what, const char *name, rv_error *err)
{
    bool named = what == RV_READ_ATTACHMENT || what == RV_READ_RUN;
    if (what < RV_READ_LOGS || what > RV_READ_RUN || named != (name != NULL && *name != '\0') ||
        (named && strlen(name) > RV__READ_NAME_BYTES - 32) ||
        (named && !rv__str_utf8(rv__str(name))))
        return rv__fail(err, RV_EINVAL, "there is no such thing to read");
    if (allows(ctx, what, name))
        return RV_OK;
    struct rv__buf shown;
    rv__buf_init(&shown, RV__READ_NAME_BYTES);
    rv__access_name_read(what, name, &shown);
    int rc = rv__fail(err, RV_EDENIED, "the scope '%s' does not allow to read %.120s",
                      rv__access_name(rv__ctx_access(ctx, NULL)),
                      shown.rc == RV_OK ? shown.text : "that");
    rv__buf_done(&shown);
    return rc;
}

/* ----------------------------------------------------------------------------------- notes --- */

static bool is_noted(const struct rv_ctx *ctx, struct rv__str what)
{
    for (const struct rv__read_note *note = ctx->read_last; note != NULL; note = note->before)
        if (rv__str_eq(note->what, what))
            return true;
    return false;
}

static int note(struct rv_ctx *ctx, struct rv__str what, const char *through)
{
    struct rv__read_note *one = rv__arena_zalloc(&ctx->arena, 1, sizeof *one);
    if (one == NULL || rv__str_copy(&ctx->arena, what, &one->what) < 0)
        return RV_ENOMEM;
    one->through = rv__str(through);
    one->before = ctx->read_last;
    ctx->read_last = one;
    ctx->read_count++;
    one->next = atomic_load_explicit(&ctx->reads, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&ctx->reads, &one->next, one,
                                                  memory_order_release, memory_order_relaxed))
        ; /* the loop has just taken those before */
    return RV_OK;
}

int rv__access_read(struct rv_ctx *ctx, int what, const char *name, const char *through,
                    rv_error *err)
{
    bool scoped;
    struct rv__buf text;
    int rc = rv__access_check(ctx, what, name, err);
    (void)rv__ctx_access(ctx, &scoped);
    if (rc < 0 || !scoped)
        return rc;
    rv__buf_init(&text, RV__READ_NAME_BYTES);
    rv__access_name_read(what, name, &text);
    rc = rv__buf_err(&text, err);
    if (rc == RV_OK && note(ctx, rv__buf_view(&text), through) < 0)
        rc = rv__nomem(err);
    rv__buf_done(&text);
    return rc;
}

/* Whether the node is outside of the state that the attempt belongs to. */
static bool is_others(const struct rv__view *view, const struct rv__entry *entry)
{
    const struct rv__node *node = rv__entry_node(entry);
    bool own = (view->state != NULL && rv__body_encloses(view->state, node)) ||
               (view->fence != NULL &&
                rv__body_encloses(view->fence, node)); /* inside its own tool */
    return !own;
}

/* Whether it sees such a node of this name; with "none" as the name, of any name. */
static bool sees_others(const struct rv__view *view, struct rv__str alias)
{
    const struct rv__entry *entry = rv__str_none(alias) ? view->scope : rv__view_find(view, alias);
    while (entry != NULL && !is_others(view, entry) && rv__str_none(alias))
        entry = rv__view_before(view, entry);
    return entry != NULL && is_others(view, entry);
}

/* What an attempt sees does not change while it runs, so each node is recorded once. */
void rv__access_saw_steps(struct rv_ctx *ctx, struct rv__str alias)
{
    bool scoped;
    struct rv__buf text;
    if (ctx->services == NULL || ctx->view.node == NULL) /* in a host: the engine's side notes it */
        return;
    (void)rv__ctx_access(ctx, &scoped);
    if (!scoped || !sees_others(&ctx->view, alias))
        return;
    rv__buf_init(&text, RV__READ_NAME_BYTES);
    rv__buf_text(&text, "steps");
    if (!rv__str_none(alias) && ctx->read_count < NOTED_MOST) {
        rv__buf_char(&text, '/');
        rv__buf_str(&text, alias);
    }
    if (text.rc == RV_OK && !is_noted(ctx, rv__buf_view(&text)) && !is_noted(ctx, rv__str("steps")))
        (void)note(ctx, rv__buf_view(&text),
                   "context"); /* without memory its work will soon fail, too */
    rv__buf_done(&text);
}

/* ---------------------------------------------------------------------------------- reading --- */

int rv__access_logs(struct rv_ctx *ctx, const rv_log_query *query, const char *through,
                    rv_log_list **ret, rv_error *err)
{
    rv_log_query known = { .size = sizeof known };
    if (query != NULL)
        known = *query;
    known.for_agents = true;
    int rc = through == NULL ? rv__access_check(ctx, RV_READ_LOGS, NULL, err)
                             : rv__access_read(ctx, RV_READ_LOGS, NULL, through, err);
    return rc < 0 ? rc : rv__logs(ctx->services->reading, ctx->run_id, &known, ret, err);
}

int rv__access_attachments(struct rv_ctx *ctx, const rv_attachment_query *query,
                           const char *through, rv_attachment_list **ret, rv_error *err)
{
    struct rv__stored_rows rows;
    struct rv__reading *reading = ctx->services->reading;
    bool one = query != NULL && query->results;
    int rc = one && query->id == NULL
                 ? rv__fail(err, RV_EINVAL, "results are read one attachment at a time")
                 : rv__access_read(ctx, one ? RV_READ_ATTACHMENT : RV_READ_ATTACHMENTS,
                                   one ? query->id : NULL, through, err);
    if (rc < 0)
        return rc;
    rv__stored_rows_init(&rows, ctx->run_id, &reading->store, &reading->lock);
    return rv__attachments(reading, ctx->run_id, query, rv__wall_ms(ctx->services->clock),
                           &rows.source, ret, err);
}

/* ----------------------------------------------------------------------------------- tokens --- */

/* 256 random bits from the system: they cannot be guessed. */
void rv__pass_make(char ret[RV__PASS_SIZE])
{
    size_t at = sizeof RV_TOKEN_PREFIX - 1;
    memcpy(ret, RV_TOKEN_PREFIX, at);
    for (int i = 0; i < 4; i++, at += 16) {
        uint64_t chance;
        if (rv__random_seed_system(&chance, NULL) < 0) {
            ret[0] = '\0';
            return;
        }
        snprintf(ret + at, 17, "%016llx", (unsigned long long)chance);
    }
}

bool rv__pass_is(const char *pass, const char *given)
{
    size_t len = strlen(given);
    unsigned differs = 0;
    if (*pass == '\0' || len != strlen(pass))
        return false;
    for (size_t i = 0; i < len; i++)
        differs |= (unsigned)(pass[i] ^ given[i]);
    return differs == 0;
}
