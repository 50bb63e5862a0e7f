/* listener.h: a server for tests: on a free port of this machine, with a thread for each connection. */
#ifndef RV_TEST_LISTENER_H
#define RV_TEST_LISTENER_H

#include <pthread.h>
#include <stdatomic.h>

struct listener {
    void (*serve)(int fd); /* one connection, to its end; who called closes it */
    int fd, port;
    pthread_t thread;
    atomic_int connections, under_way; /* so far; and now */
};

int listener_start(struct listener *listener); /* not 0: it cannot */
void listener_stop(struct listener *listener); /* waits for what is under way */

#endif
