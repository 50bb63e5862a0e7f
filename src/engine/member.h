/* member.h: several processes share the work of one store. ADR 0061.
 *
 * A member has a lease in the store, and runs that are its own: those that it has in memory. It claims runs that
 * nobody has, or somebody who is no more, if it has their workflow. A run at rest is nobody's, and comes to whoever
 * wants it: for a timer that is due, or for a message. What is asked here about a run that is another's goes to that
 * one through the store, as the frames of the control socket (attach.c, answer.c).
 *
 *   member ──fenced──▶ fenced ──joined anew──▶ rejoined ──nothing is under way──▶ member, without runs
 *
 * Thread: the loop's, but for what says otherwise. */
#ifndef RV_ENGINE_MEMBER_H
#define RV_ENGINE_MEMBER_H

#include "engine/engine.h"
#include "wire/wire.h"

/* Does this engine share its store? Thread: any. */
static inline bool rv__member_is(const rv_engine *engine)
{
    return engine->member.on;
}
static inline int64_t rv__member_id(const rv_engine *engine) /* Thread: any */
{
    return atomic_load(&engine->member.id);
}

/* The store is open, as a member: its other handles, and the thread that answers others.
 * Errors: RV_ENOMEM, RV_ESTORE, RV_ESYS. */
int rv__member_open(rv_engine *engine, rv_error *err);
int rv__member_start(rv_engine *engine, rv_error *err); /* the thread, once the engine is whole */
void rv__member_stop(rv_engine *engine);  /* the loop has ended: the runs are free for others */
void rv__member_close(rv_engine *engine); /* what it has of the store */

void rv__member_tick(rv_engine *engine); /* what is due: the lease, claims, feeds */
int64_t rv__member_until_ns(const rv_engine *engine, int64_t until_ns);

/* Others have our runs: nothing of ours is written any more. All is forgotten, and we join anew. */
void rv__member_fenced(rv_engine *engine);

/* Ask another member: as rv__ask().   Thread: any but the loop's. */
int rv__member_ask(rv_engine *engine, int64_t to, const struct rv__buf *request, int64_t timeout_ms,
                   rv_cancel *closing, struct rv__reply *reply, rv_error *err);
/* Is this the thread that answers others? It sends nothing on: who asked looks again.   Thread: any. */
bool rv__member_answers(const rv_engine *engine);

#endif
