/* refusal.h: watches a store that refuses writes (a full disk, a file locked by another program). Its runs do not
 * continue until that is repaired, so the user is told. */
#ifndef RV_CLI_REFUSAL_H
#define RV_CLI_REFUSAL_H

#include <pthread.h>

#include <rival/rival.h>

enum {
    RV__REFUSAL_MS = 1000,     /* until it is reported */
    RV__REFUSAL_END_MS = 3000, /* a process with nothing under way waits no longer than this */
};

struct rv__refusal {
    rv_engine *engine; /* NULL: nothing to watch */
    bool stuck;        /* the store refused at the last look */
    bool ends; /* while watched: if the store keeps refusing, end this process with the reason */
    int64_t looked_ms;
    rv_cancel *interrupt, *over; /* of the thread; `over` NULL: no thread */
    pthread_t thread;
};

/* Look, if it is time to; a store that works again is noticed at once. 1: it has begun to refuse, and *ret says
 * why; -1: it works again; 0: no change. */
int rv__refusal_look(struct rv__refusal *refusal, rv_health *ret);
/* The same, and print a change to stderr. `clear` is called before that; may be NULL. */
void rv__refusal_tell(struct rv__refusal *refusal, void (*clear)(void *arg), void *arg);

/* From here on another thread reports, because this one may be in calls that wait as long as the store refuses. If
 * the store refuses when `interrupt` (NULL: never) fires, the engine is closed, and those calls return. */
void rv__refusal_watch(struct rv__refusal *refusal, rv_cancel *interrupt);
void rv__refusal_unwatch(struct rv__refusal *refusal); /* it need not be watched */

#endif
