/* remote_ctx.h: one invocation in another process than the engine's: a host (host.c) or a worker (worker.c). rv_ctx
 * is the same as in the engine, and the values that its function reads come in frames. Inside work/ only. Thread:
 * the step's. */
#ifndef RV_WORK_REMOTE_CTX_H
#define RV_WORK_REMOTE_CTX_H

#include "work/work.h"

/* A value that it has received. */
struct rv__shown {
    struct rv__shown *next;
    enum rv__part part;
    struct rv__str alias;
    struct rv__blob *json; /* NULL: it does not exist */
    struct rv__seen seen;
};

/* Cached values, by the numbers that the engine gave them. */
struct rv__slots {
    struct rv__blob *at[RV__KEPT_SLOTS];
};
void rv__slots_forget(struct rv__slots *slots);
/* The text of a value: from its frame, or from the cache; referenced. *ret NULL: there is none. Errors: RV_EPARSE
 * (an engine does not send this), RV_ENOMEM. */
int rv__slots_text(struct rv__slots *slots, struct rv__str json, struct rv__str number,
                   struct rv__blob **ret);

struct rv__remote_ctx {
    struct rv_ctx ctx; /* first */
    const char *id;
    const char *who[WHO_KEY + 1];
    struct rv__str function, workflow, input, item;
    struct rv__blob *slot_input; /* referenced; NULL: it has none */
    struct rv__shown *shown;
    /* Ask the engine for a value, and wait until rv__remote_ctx_value() has filled it in.
     * Negative: nobody will answer. */
    int (*fetch)(struct rv__remote_ctx *remote, struct rv__shown *shown);
};

/* Make it from its frame `invoke`, and keep a copy of that. The caller finds `fn`. Errors: RV_ENOMEM, RV_EPARSE;
 * `done` must be called in any case. */
int rv__remote_ctx_take(struct rv__remote_ctx *remote, const struct rv__frame *invoke,
                        struct rv__slots *slots, const struct rv__source *source);
void rv__remote_ctx_done(struct rv__remote_ctx *remote);

/* `see` and `who` of its source. */
int rv__remote_ctx_see(rv_ctx *ctx, enum rv__part part, struct rv__str alias, struct rv__buf *room,
                       struct rv__seen *ret);
const char *rv__remote_ctx_who(rv_ctx *ctx, enum rv__who who);

void rv__remote_ctx_put_get(const struct rv__remote_ctx *remote, const struct rv__shown *shown,
                            struct rv__buf *out);
/* Take a frame `value`. Errors: as of rv__slots_text(). */
int rv__remote_ctx_value(struct rv__remote_ctx *remote, const struct rv__frame *frame,
                         struct rv__slots *slots, struct rv__shown *shown);
void rv__remote_ctx_put_log(const struct rv__remote_ctx *remote, int level, struct rv__str message,
                            struct rv__str metadata, struct rv__buf *out);
/* Run its function, if it has one. The answer is a frame; if it does not fit into a frame, the step fails. */
void rv__remote_ctx_run(struct rv__remote_ctx *remote);
void rv__remote_ctx_put_answer(struct rv__remote_ctx *remote, struct rv__buf *out);

#endif
