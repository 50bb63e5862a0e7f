/* given.h: what an attempt was given, recorded for people who look at it later: argv and stdin, the request, the
 * values that its function or expressions saw. It decides nothing, so a part that there is no memory for is left out.
 *
 * A part has a name and is JSON. What an attempt was given has at most RV_GIVEN_BYTES; each part is recorded once,
 * in whatever order it comes. Secrets are masked before anything is cut. The loop fetches parts as it fetches log
 * lines: with the attempt's end, of one that goes on within 200 ms. */
#ifndef RV_WORK_GIVEN_H
#define RV_WORK_GIVEN_H

#include "base/str.h"

struct rv_ctx;
struct rv__blob;

enum {
    RV__GIVEN_PARTS = 64, /* of one attempt */
    RV__GIVEN_NAME_BYTES =
        256, /* a part with a longer name, or one that needs escapes, is not recorded */
    RV__GIVEN_SHARED_BYTES =
        1024 /* of a value that is recorded elsewhere: an input, a result, an item */
};

struct rv__given {
    struct rv__given *next;   /* older; once the loop has it: newer */
    struct rv__given *before; /* older, for the threads that do the work */
    struct rv__str name;
    struct rv__str json; /* {name: value} */
};

/* Something of its own: as much as there is room for. */
void rv__ctx_given(struct rv_ctx *ctx, const char *name, struct rv__str json);
/* A value that is recorded elsewhere, by its path. */
void rv__ctx_given_shared(struct rv_ctx *ctx, struct rv__str path, struct rv__str json);

/* The labels of a forEach's items, a JSON array: masked, whole. An evaluation of items is given nothing else. */
void rv__ctx_given_labels(struct rv_ctx *ctx, struct rv__str json);

/* All of them in one object, from the first to the last; *ret is NULL: nothing. RV_ENOMEM. Thread: the loop's. */
int rv__given_blob(const struct rv__given *first, struct rv__blob **ret);

#endif
