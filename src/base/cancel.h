/* cancel.h: an addition to the public cancel tokens (rival/base.h): a callback when one fires.
 *
 * Locks: a token's tree has one lock, and `fired` runs under it. So code that takes its own lock in `fired` must
 * never call a token function while it holds that lock. */
#ifndef RV_BASE_CANCEL_H
#define RV_BASE_CANCEL_H

#include <stdbool.h>
#include <rival/base.h>

/* A callback. It is in the waiter's own frame or struct; base/ owns the links. */
struct rv__cancel_watch {
    void (*fired)(struct rv__cancel_watch *watch); /* short; no token functions; any thread */
    struct rv__cancel_watch *next, **link;
};

/* Have `watch->fired` called once when the token fires. Returns false, and does nothing, if it has
 * fired already. Thread: any. */
bool rv__cancel_watch(rv_cancel *c, struct rv__cancel_watch *watch);

/* Remove a callback. On return it is not running and will not run. Allowed after it was called, or if it was never
 * added (all zero). Thread: any. */
void rv__cancel_unwatch(rv_cancel *c, struct rv__cancel_watch *watch);

#endif
