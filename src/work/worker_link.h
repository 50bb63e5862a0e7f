/* worker_link.h: one connection of a worker to an engine, made again whenever it is lost. A worker (worker.c) has one to the address
 * that it was given, and one to each other member of that engine's store. */
#ifndef RV_WORK_WORKER_LINK_H
#define RV_WORK_WORKER_LINK_H

#include "work/remote_ctx.h"

struct rv__worker_link;

/* What all links of a worker share. Nothing of it changes while there are links. */
struct rv__worker_link_owner {
    const char *token, *name;    /* may be NULL */
    struct rv__tls_keys *keys;   /* for tls:// */
    struct rv__str registration; /* the frame `register`, with the id RV__WORKER_REGISTER */
    int64_t credits;             /* of the worker as a whole */
    bool follows;                /* it wants to know the members of the engine's store */
    /* NULL: the worker has no such function. */
    rv_step_fn (*find)(void *arg, struct rv__str workflow, struct rv__str name);
    void (*changed)(void *arg); /* the state of a link has changed. Thread: any */
    void *arg;
};
#define RV__WORKER_REGISTER "register"

/* Connect to "tls://HOST:PORT", "tcp://HOST:PORT" or the path of a socket, on a thread of its own, until it is stopped. `first`: a
 * refusal ends it; else it tries again. Errors: RV_EINVAL, RV_ENOMEM, RV_ESYS. */
int rv__worker_link_new(const struct rv__worker_link_owner *owner, const char *address, bool first,
                        int64_t credits, struct rv__worker_link **ret, rv_error *err);
/* Is it an address for rv__worker_link_new()? RV_EINVAL: no. */
int rv__worker_link_check(const char *address, rv_error *err);
void rv__worker_link_stop(struct rv__worker_link *link); /* begin to leave in order. Thread: any */
void rv__worker_link_free(
    struct rv__worker_link *link); /* stopped: wait for its functions. NULL is allowed */

/* Thread of these: any. */
void rv__worker_link_credits(struct rv__worker_link *link,
                             int64_t credits); /* its share of them, from now on */
bool rv__worker_link_is_up(struct rv__worker_link *link,
                           rv_error *ret_why); /* the engine has accepted it */
/* The members of its engine's store, as told last: a JSON array, appended to `out`; *ret_self: which of them the engine is (0: it did
 * not say). False: it is not up, or was told of none. */
bool rv__worker_link_members(struct rv__worker_link *link, struct rv__buf *out, int64_t *ret_self);
bool rv__worker_link_is_leaving(const struct rv__worker_link *link); /* it was stopped */
/* It was stopped or refused, and its functions have ended: rv__worker_link_free() does not wait. */
bool rv__worker_link_is_over(struct rv__worker_link *link);
bool rv__worker_link_refused(struct rv__worker_link *link, rv_error *ret_why); /* for good */
const char *rv__worker_link_address(const struct rv__worker_link *link);

#endif
