/* given.h: what an attempt was given, recorded for people who look at it later: argv and stdin, the request, the
 * values that its function or expressions saw. Nothing depends on it, so without memory a part is left out.
 *
 * A part has a name and is JSON. All parts of an attempt have at most RV_GIVEN_BYTES; each part is recorded once, in
 * any order. Secrets are masked before anything is cut. The loop collects parts as it collects log lines: at the end
 * of the attempt, and while it runs within 200 ms. */
#ifndef RV_WORK_GIVEN_H
#define RV_WORK_GIVEN_H

#include "base/str.h"

struct rv_ctx;
struct rv__blob;

enum {
    RV__GIVEN_PARTS = 64, /* of one attempt; more are not recorded */
    RV__GIVEN_NAME_BYTES =
        256, /* a part with a longer name, or one that needs escapes, is not recorded */
    RV__GIVEN_SHARED_BYTES =
        1024 /* limit of a value that is also recorded elsewhere: an input, a result, an item */
};

struct rv__given {
    struct rv__given *next;   /* older; once the loop has it: newer */
    struct rv__given *before; /* older, for the threads that do the work */
    struct rv__str name;
    struct rv__str json; /* {name: value} */
};

/* Record a value that is recorded nowhere else: as much as there is room for. */
void rv__ctx_given(struct rv_ctx *ctx, const char *name, struct rv__str json);
/* Record the beginning of a value that is recorded elsewhere, by its path. */
void rv__ctx_given_shared(struct rv_ctx *ctx, struct rv__str path, struct rv__str json);

/* Record the labels of a forEach's items, a masked JSON array, complete. For an evaluation of items nothing else is
 * recorded. */
void rv__ctx_given_labels(struct rv_ctx *ctx, struct rv__str json);

/* One object with all parts, from the first to the last. *ret NULL: there are none. Errors: RV_ENOMEM. Thread: the
 * loop's. */
int rv__given_blob(const struct rv__given *first, struct rv__blob **ret);

#endif
