/* invoked.h: one invocation as frames, whoever runs it: a host or a worker. What it is asked, shown and heard. */
#ifndef RV_WORK_INVOKED_H
#define RV_WORK_INVOKED_H

#include "work/context.h"

enum { RV__INVOKE_ITEM = 4096 }; /* bytes of an item that comes along unasked */

/* The members of `invoke` that everybody gets. An input that is small comes along; an item of up to `most_item`
 * bytes, if it is at hand (`room` NULL) or can be read. */
void rv__invoked_ask(struct rv_ctx *ctx, const char *id, struct rv__buf *out);
void rv__invoked_item(struct rv_ctx *ctx, size_t most_item, struct rv__buf *room,
                      struct rv__buf *out);

/* What a part is known by, if others may see it too: identity NULL: they may not. It is not held yet. */
struct rv__shared rv__invoked_shared(const struct rv_ctx *ctx, enum rv__part part,
                                     struct rv__str alias, const struct rv__entry *entry);
void rv__invoked_hold(struct rv__shared value);

/* A `get`: which part, of which node. RV_EPARSE: there is no such part. */
struct rv__wanted {
    enum rv__part part;
    struct rv__str alias;
    struct rv__str seq, number; /* of the frame, as they came */
};
int rv__invoked_wanted(struct rv_ctx *ctx, const struct rv__frame *get, struct rv__wanted *ret,
                       rv_error *err);

/* The frame `value`: it shows `seen`, perhaps by a slot. seen NULL: there is no such thing. A frame `forget` may go
 * before it. Errors: RV_ENOMEM, RV_ETOOBIG, and nothing was written. */
struct rv__value_head {
    const char *id;     /* NULL: a value that comes along */
    struct rv__str seq; /* none: it had none */
};
int rv__invoked_value(const struct rv__value_head *head, struct rv__kept *kept,
                      struct rv__shared shared, const struct rv__seen *seen, struct rv__buf *out);

/* What it is shown is what it was given (given.h). json none: the other side has it already. */
void rv__invoked_given(struct rv_ctx *ctx, enum rv__part part, struct rv__str alias,
                       struct rv__str json);

/* What it says: 1: it is over; 0: there is more to come; RV_EPARSE: it may not say this. */
int rv__invoked_log(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err);
int rv__invoked_state(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err);
int rv__invoked_result(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err);
int rv__invoked_error(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err);

#endif
