/* queue.c: a stack that producers push on; the consumer takes all of it and reverses it.
 *
 * A push is one compare-and-swap of `head`. The ABA problem does not occur, since nobody pops single
 * nodes: if head is the same pointer again, it is again the right `next`. Taking clears `head` except
 * for the closed bit in one atomic step, and closing sets that bit in one. So a push comes either before
 * the close, and is taken, or after it, and is refused.
 *
 * A producer wakes the consumer only if it sleeps. Why no wake-up is lost:
 *
 *     consumer (may_sleep)            producer (push or close)
 *     C1  sleeping = true             P1  head = node
 *     C2  read head; empty: sleep     P2  read sleeping; true: set it false and wake
 *
 * All four are sequentially consistent, so there is one order of them that every thread agrees on.
 * If P1 comes before C2, the consumer sees the node and does not sleep. If not, the order is
 * C1 C2 P1 P2, and P2 reads true, unless another producer has set it false after C1; that one then
 * wakes. So exactly one producer wakes a consumer that must not sleep: the one whose exchange found
 * true. With a weaker memory order, C1 and C2 (or P1 and P2) may be swapped: both sides read before
 * either has written, and the consumer sleeps although there is a node.
 *
 * The wake-up must not come too early either. A `wake` function must leave a mark, as its contract
 * says. With the condition, C1 and C2 happen under the mutex, which the consumer releases by going to
 * sleep. The producer takes the mutex after P2, hence after C1, and so signals either a sleeper or a
 * consumer that has woken since. */
#include "base/queue.h"

#include <assert.h>
#include <stddef.h>

#include "base/error.h"

static const uintptr_t CLOSED = 1; /* nodes are aligned: the bit is free */

static struct rv__queue_node *nodes_of(uintptr_t head)
{
    return (struct rv__queue_node *)(head & ~CLOSED);
}

int rv__queue_init(struct rv__queue *queue, void (*wake)(void *arg), void *arg, rv_error *err)
{
    atomic_init(&queue->head, 0);
    atomic_init(&queue->sleeping, false);
    queue->wake = wake;
    queue->wake_arg = arg;
    if (wake != NULL)
        return RV_OK;

    int rc = rv__cond_init(&queue->cond);
    if (rc < 0)
        return rv__fail(err, rc, "cannot make a queue: %s", rv_strerror(rc));
    if (pthread_mutex_init(&queue->mutex, NULL) != 0) {
        pthread_cond_destroy(&queue->cond);
        return rv__fail(err, RV_ESYS, "cannot make a queue: no mutex");
    }
    return RV_OK;
}

void rv__queue_done(struct rv__queue *queue)
{
    if (queue->wake != NULL)
        return;
    pthread_mutex_destroy(&queue->mutex);
    pthread_cond_destroy(&queue->cond);
}

/* P2. It reads before it exchanges: while the consumer is awake, producers do not write the cache line. */
static void wake_sleeper(struct rv__queue *queue)
{
    if (!atomic_load(&queue->sleeping) || !atomic_exchange(&queue->sleeping, false))
        return;
    if (queue->wake != NULL) {
        queue->wake(queue->wake_arg);
        return;
    }
    pthread_mutex_lock(&queue->mutex); /* waits until the consumer is asleep, see above */
    pthread_mutex_unlock(&queue->mutex);
    pthread_cond_signal(&queue->cond);
}

int rv__queue_push(struct rv__queue *queue, struct rv__queue_node *node)
{
    assert(((uintptr_t)node & CLOSED) == 0);
    uintptr_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    do {
        if (head & CLOSED)
            return RV_ECLOSED;
        node->next = nodes_of(head);
    } while (!atomic_compare_exchange_weak(&queue->head, &head, (uintptr_t)node)); /* P1 */

    wake_sleeper(queue); /* the node may be freed by now */
    return RV_OK;
}

void rv__queue_close(struct rv__queue *queue)
{
    atomic_fetch_or(&queue->head, CLOSED); /* P1 */
    wake_sleeper(queue);
}

bool rv__queue_closed(struct rv__queue *queue)
{
    return atomic_load(&queue->head) & CLOSED;
}

struct rv__queue_node *rv__queue_take(struct rv__queue *queue)
{
    if (nodes_of(atomic_load_explicit(&queue->head, memory_order_relaxed)) == NULL)
        return NULL; /* does not write to the producers' cache line */

    struct rv__queue_node *newest = nodes_of(atomic_fetch_and(&queue->head, CLOSED));
    struct rv__queue_node *oldest = NULL;
    while (newest != NULL) {
        struct rv__queue_node *older = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    return oldest;
}

bool rv__queue_may_sleep(struct rv__queue *queue)
{
    atomic_store(&queue->sleeping, true); /* C1 */
    if (atomic_load(&queue->head) == 0)   /* C2 */
        return true;
    atomic_store(&queue->sleeping, false);
    return false;
}

void rv__queue_awake(struct rv__queue *queue)
{
    atomic_store(&queue->sleeping, false);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

bool rv__queue_watch(struct rv__queue *queue, int64_t for_ns)
{
    struct rv__clock *clock = rv__clock_real();
    int64_t until_ns = rv__mono_ns(clock) + for_ns;
    while (atomic_load_explicit(&queue->head, memory_order_relaxed) == 0) {
        if (rv__mono_ns(clock) >= until_ns)
            return false;
        relax();
    }
    return true;
}

bool rv__queue_wait(struct rv__queue *queue, int64_t deadline_ns)
{
    assert(queue->wake == NULL);
    if (atomic_load(&queue->head) == 0 && deadline_ns > 0) { /* deadline 0: do not wait */
        bool in_time = true;
        pthread_mutex_lock(&queue->mutex);
        while (in_time && rv__queue_may_sleep(queue))
            in_time = rv__cond_wait_until(&queue->cond, &queue->mutex, deadline_ns);
        rv__queue_awake(queue);
        pthread_mutex_unlock(&queue->mutex);
    }
    return nodes_of(atomic_load(&queue->head)) != NULL;
}
