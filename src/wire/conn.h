/* conn.h: the inside of a loop of connections. Inside wire/ only. */
#ifndef RV_WIRE_CONN_H
#define RV_WIRE_CONN_H

#include <pthread.h>
#include <uv.h>

#include "wire/wire.h"

struct rv__wires {
    uv_loop_t loop; /* its thread's alone, as is what follows */
    uv_async_t awake;
    uv_prepare_t before_sleep; /* what was said in this turn is sent */
    pthread_t thread;
    struct rv__queue tasks;
    struct rv__wire_task close;
    struct rv__conn *conns; /* all of them */
    struct rv__conn *unsent;
    size_t count, watches, jobs;
    bool closing;
};

/* A connection, or a watch, is gone: the loop may end, if it is to. */
void rv__wires_look(struct rv__wires *wires);
void rv__conns_flush(struct rv__wires *wires);
struct rv__conn *rv__conn_next(const struct rv__conn *conn); /* of all of them */

#endif
