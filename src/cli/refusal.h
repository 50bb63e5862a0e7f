/* refusal.h: a store that refuses to be written (a full disk, a file that another program has locked):
 * nothing goes on until it is mended, and somebody should know. */
#ifndef RV_CLI_REFUSAL_H
#define RV_CLI_REFUSAL_H

#include <pthread.h>

#include <rival/rival.h>

enum {
    RV__REFUSAL_MS = 1000, /* how soon it is told */
    RV__REFUSAL_END_MS =
        3000, /* who has nothing under way does not wait longer for it to be mended */
};

struct rv__refusal {
    rv_engine *engine; /* NULL: there is nothing to look at */
    bool stuck;        /* as it was seen last */
    bool ends; /* while it is watched: a store that stays so ends this process, with the reason */
    int64_t looked_ms;
    rv_cancel *interrupt, *over; /* of the thread; `over` NULL: there is none */
    pthread_t thread;
};

/* Look, if it is time to; that it works again is seen at once. 1: it refuses now, and *ret says why; -1: it works again; 0: as before. */
int rv__refusal_look(struct rv__refusal *refusal, rv_health *ret);
/* The same, and what is new is a line on stderr. Before it `clear` is called, unless it is NULL. */
void rv__refusal_tell(struct rv__refusal *refusal, void (*clear)(void *arg), void *arg);

/* From here on another thread tells: this one may be in calls that wait for as long as the store refuses.
 * If it does when `interrupt` (NULL: never) fires, the engine is closed, and those calls return. */
void rv__refusal_watch(struct rv__refusal *refusal, rv_cancel *interrupt);
void rv__refusal_unwatch(struct rv__refusal *refusal); /* nobody watching is allowed */

#endif
