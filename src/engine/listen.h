/* listen.h: what happens in the life of a schedule, as listeners are told of it: taken from the events of the feed.
 * Those in code are listen.c's, those of manifests notify.c's. */
#ifndef RV_ENGINE_LISTEN_H
#define RV_ENGINE_LISTEN_H

#include "engine/engine.h"

/* An event as it comes from the feed, in flat members. The texts are JSON, or none. */
struct rv__heard {
    const rv_event *event;
    struct rv__str stage, state, attachment, error, to;
    int64_t attempt; /* from 0; -1: it is about none */
    int succeed;     /* -1: the same */
};
typedef void rv__lifecycle_fn(void *arg, enum rv__lifecycle type, const struct rv__heard *heard);

/* What an event of the feed means for listeners: nothing, one thing or several. */
void rv__lifecycle_of_event(const rv_event *event, rv__lifecycle_fn *told, void *arg);
/* All that somebody has to decide about now, as LIFE_SUSPEND, of runs that are in the store. After an error (RV_ESTORE,
 * RV_ENOMEM, RV_ECLOSED) some may not have been told. */
int rv__lifecycle_undecided(rv_engine *engine, rv__lifecycle_fn *told, void *arg);
/* {type, runId, workflow, at, path?, stage?, state?, attempt?, succeed?, attachmentId?, error?, to?} */
void rv__lifecycle_json(struct rv__buf *out, enum rv__lifecycle type,
                        const struct rv__heard *heard);

/* notify.c: listeners of manifests. Tell those of this workflow from now on, unless another member does.
 * Thread: the loop's, or that which opens the engine. Errors: RV_ENOMEM, RV_ESYS, RV_ESTORE. */
int rv__notify_begin(rv_engine *engine, struct rv__str workflow, rv_error *err);
/* Continue what processes before this one have left to be told. */
int rv__notify_reopen(rv_engine *engine, rv_error *err);
void rv__notify_close(
    rv_engine *engine); /* the feed has ended; what is under way has some seconds */
void rv__notify_free(rv_engine *engine); /* nobody waits for it any more */

#endif
