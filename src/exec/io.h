/* io.h: the I/O loop, for its own files.
 *
 * Each kind of work (commands, HTTP requests) has its own state, with an inbox that io->lock guards, and three
 * functions that the loop calls: `turn` after every wake-up, `idle` to ask whether any work is under way, `close`
 * to close its handles. */
#ifndef RV_EXEC_IO_H
#define RV_EXEC_IO_H

#include <pthread.h>
#include <uv.h>

#include "exec/exec.h"

struct rv__commands;
struct rv__fetches;

struct rv__io {
    uv_loop_t loop; /* used by its own thread only */
    uv_async_t awake;
    pthread_t thread;
    pthread_mutex_t lock; /* inboxes, and `closing` */
    bool closing;
    struct rv__commands *commands;
    struct rv__fetches *fetches;
    struct rv__chain errands; /* under lock */
    struct rv__chain at_close;
    struct rv__timers alarms; /* by uv_now() */
    uv_timer_t alarm_timer;   /* fires for the first alarm */
};

/* Wake the loop. Thread: any. */
void rv__io_wake(struct rv__io *io);

/* For io.c. new: before the loop's thread starts; free: after it has ended. */
int rv__commands_new(struct rv__io *io, const struct rv__io_opts *opts, struct rv__commands **ret,
                     rv_error *err);
void rv__commands_free(struct rv__commands *commands);
void rv__commands_turn(struct rv__commands *commands, bool closing);
bool rv__commands_idle(const struct rv__commands *commands);
void rv__commands_close(struct rv__commands *commands);

/* The same for requests. libcurl is set up with the first request. */
int rv__fetches_new(struct rv__io *io, bool deny_private, struct rv__fetches **ret, rv_error *err);
void rv__fetches_free(struct rv__fetches *fetches);
void rv__fetches_turn(struct rv__fetches *fetches, bool closing);
bool rv__fetches_idle(const struct rv__fetches *fetches);
void rv__fetches_close(struct rv__fetches *fetches);

#endif
