/* invoked.h: the frames of one invocation, for hosts and workers: the request, the values that it reads, its answer. */
#ifndef RV_WORK_INVOKED_H
#define RV_WORK_INVOKED_H

#include "work/context.h"

enum { RV__INVOKE_ITEM = 4096 }; /* limit of an item that is sent with the request */

/* Append the members of `invoke` that every host and worker gets. A small input is included; so is an item of up to
 * `most_item` bytes, if it is in memory (`room` NULL) or can be read. */
void rv__invoked_ask(struct rv_ctx *ctx, const char *id, struct rv__buf *out);
void rv__invoked_item(struct rv_ctx *ctx, size_t most_item, struct rv__buf *room,
                      struct rv__buf *out);

/* The identity of a part that other invocations may see, too. identity NULL: they cannot. It is not referenced yet. */
struct rv__shared rv__invoked_shared(const struct rv_ctx *ctx, enum rv__part part,
                                     struct rv__str alias, const struct rv__entry *entry);
void rv__invoked_hold(struct rv__shared value);

/* A frame `get`: which part, of which node. RV_EPARSE: there is no such part. */
struct rv__wanted {
    enum rv__part part;
    struct rv__str alias;
    struct rv__str seq, number; /* of the frame, as received */
};
int rv__invoked_wanted(struct rv_ctx *ctx, const struct rv__frame *get, struct rv__wanted *ret,
                       rv_error *err);

/* Append the frame `value` with `seen`; it may refer to a cached value. seen NULL: the value does not exist. A frame
 * `forget` may precede it. Errors: RV_ENOMEM, RV_ETOOBIG; then nothing was written. */
struct rv__value_head {
    const char *id;     /* NULL: a value that is sent without a request */
    struct rv__str seq; /* "none": the request had none */
};
int rv__invoked_value(const struct rv__value_head *head, struct rv__kept *kept,
                      struct rv__shared shared, const struct rv__seen *seen, struct rv__buf *out);

/* Record what it is shown as given (given.h). json "none": the other side has it already. */
void rv__invoked_given(struct rv_ctx *ctx, enum rv__part part, struct rv__str alias,
                       struct rv__str json);

/* Take a frame from it. 1: it has ended; 0: more will come; RV_EPARSE: the frame is not allowed. */
int rv__invoked_log(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err);
int rv__invoked_state(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err);
int rv__invoked_result(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err);
int rv__invoked_error(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err);

#endif
