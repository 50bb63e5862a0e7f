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
void rv__member_part(rv_engine *engine);  /* the same, and no more: what others ask goes on */
void rv__member_close(rv_engine *engine); /* what it has of the store */

void rv__member_tick(rv_engine *engine); /* what is due: the lease, claims, feeds */
int64_t rv__member_until_ns(const rv_engine *engine, int64_t until_ns);

/* Others have our runs: nothing of ours is written any more. All is forgotten, and we join anew. */
void rv__member_fenced(rv_engine *engine);

/* Where workers reach this engine ("tls://HOST:PORT"): other members tell it to theirs. Nothing, where it is no member.
 * Thread: any but the loop's. */
int rv__member_reached_at(rv_engine *engine, const char *address, rv_error *err);
/* The members that workers can reach: [{id, workers}].   Thread: the reading desk's. */
int rv__member_read_peers(struct rv__store *aide, struct rv__buf *out, rv_error *err);
/* Tell them to the workers of this engine, if they have changed. May take the buffer's text. */
void rv__member_tell_peers(rv_engine *engine, struct rv__buf *peers);

/* The run is idle and on disk. Can nothing of it be done here, since what it wants next is offered by nobody here? Then
 * it is given up (run->gives): others may have it. */
void rv__member_consider(struct rv__run *run);
/* Of a run that is being written: may it be given up now, and for want of which function (*lacks)? */
bool rv__member_gives(struct rv__run *run, struct rv__str *lacks);
/* It has been: it is not ours any more. */
void rv__member_gave(struct rv__run *run);

/* Has this member less than its share of the runs that are active? Then the one with the most is asked for some, of
 * the workflows of the claim.   Thread: the reading desk's. */
int rv__member_seek_share(struct rv__store *aide, const struct rv__store_claim *claim,
                          bool *ret_asked, rv_error *err);
bool rv__member_wants_share(rv_engine *engine);        /* is it time to look at that? */
void rv__member_shared(rv_engine *engine, bool asked); /* it was: what others give comes soon */
/* Give another member up to `most` runs of these workflows that wait for a place here: how many are given, in the
 * next commits.   Thread: any but the loop's. */
int rv__member_share(rv_engine *engine, int64_t to, struct rv__str workflows, int64_t most,
                     int64_t *ret_given, rv_error *err);

/* Who has the run: as the store's `owner`.   Thread: any but the loop's. */
int rv__member_owner(rv_engine *engine, const char *run_id, int64_t *ret_owner, bool *ret_lacks,
                     rv_error *err);
/* Ask another member: as rv__ask().   Thread: any but the loop's. */
int rv__member_ask(rv_engine *engine, int64_t to, const struct rv__buf *request, int64_t timeout_ms,
                   struct rv__reply *reply, rv_error *err);
/* A caller waits for what another member does; where callers take the turns, those are taken meanwhile. RV_ECANCELED,
 * RV_ECLOSED: as rv__ask_pause().   Thread: the same. */
int rv__member_pause(rv_engine *engine, int64_t ms, rv_cancel *by, rv_error *err);
/* Answer what others have asked; the number of requests.   Thread: the same, one at a time. */
int rv__member_serve(rv_engine *engine);
/* Is this the thread that answers others? It sends nothing on: who asked looks again.   Thread: any. */
bool rv__member_answers(const rv_engine *engine);

#endif
