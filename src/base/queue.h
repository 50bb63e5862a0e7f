/* queue.h: many threads push, one thread takes. Intrusive, lock-free to push, FIFO, with wake-up.
 *
 * The consumer's loop, if it sleeps in the queue:
 *
 *     while (rv__queue_wait(&queue, RV__NEVER))
 *         for (node = rv__queue_take(&queue); node != NULL; node = next) { next = node->next; … }
 *     -- closed, and everything that was pushed has been taken
 *
 * and if it sleeps in a loop of its own (epoll, with an eventfd that `wake` writes):
 *
 *     if (rv__queue_may_sleep(&queue))
 *         epoll_wait(…);
 *     rv__queue_awake(&queue);
 *     … rv__queue_take(&queue) …
 *
 * The queue does not bound its length: producers are limited elsewhere (a node is part of something that the
 * producer had to get first). */
#ifndef RV_BASE_QUEUE_H
#define RV_BASE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rival/base.h>

#include "base/clock.h"

struct rv__queue_node {
    struct rv__queue_node *next;
};

/* A node with a type. */
struct rv__letter {
    struct rv__queue_node node; /* first */
    int kind;                   /* defined by the consumer */
};

struct rv__queue {
    _Atomic uintptr_t head; /* newest first; lowest bit: closed */
    atomic_bool sleeping;   /* the consumer sleeps or is about to; see queue.c */
    void (*wake)(void *arg);
    void *wake_arg;
    pthread_mutex_t mutex; /* mutex and cond: only if wake is NULL */
    pthread_cond_t cond;
};

/* `wake`, if not NULL, wakes a consumer that sleeps elsewhere. Any producer calls it, at most once per sleep,
 * possibly before the consumer sleeps: so it must leave something behind that ends the sleep, such as a readable
 * eventfd. It may not push to this queue.
 * Errors: RV_ENOMEM, RV_ESYS. */
int rv__queue_init(struct rv__queue *queue, void (*wake)(void *arg), void *arg, rv_error *err);

/* No push may be under way: join the producers first. The queue need not be empty. */
void rv__queue_done(struct rv__queue *queue);

/* Append a node, which then belongs to the consumer. RV_ECLOSED: not appended, and still the caller's. Does not
 * block, except for the moment it takes to wake a sleeping consumer. Thread: any. */
int rv__queue_push(struct rv__queue *queue, struct rv__queue_node *node)
    __attribute__((warn_unused_result));

/* Refuse further pushes, and end all sleeping. Nodes pushed before can still be taken. Closing twice does nothing.
 * Thread: any. */
void rv__queue_close(struct rv__queue *queue);
bool rv__queue_closed(struct rv__queue *queue); /* Thread: any. */

/* Take everything, oldest first, the last `next` NULL; NULL: empty. Thread: consumer. */
struct rv__queue_node *rv__queue_take(struct rv__queue *queue);

/* Sleep until there is something to take (true), or the deadline passes or the queue is closed
 * with nothing left in it (false). Only without a `wake`. Thread: consumer. */
bool rv__queue_wait(struct rv__queue *queue, int64_t deadline_ns);

/* Poll without sleeping, for at most this time. True: there is something to take, or it is closed. For a consumer
 * that expects work very soon and has a processor to spare: sleeping and waking takes longer. Thread: consumer. */
bool rv__queue_watch(struct rv__queue *queue, int64_t for_ns);

/* Announce a sleep. True: every push and close from now on wakes. False: there is something to
 * take or the queue is closed, do not sleep. Thread: consumer. */
bool rv__queue_may_sleep(struct rv__queue *queue);
void rv__queue_awake(struct rv__queue *queue); /* the announced sleep is over. Thread: consumer. */

#endif
