/* hand.c: work that runs when it is told to, one piece at a time.
 *
 * A piece still runs on a thread of a group while its caller waits: the panic boundary is there, and a
 * function that calls back into the engine, and so makes another piece run, has that one on another
 * thread, not on top of its own stack. */
#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/random.h"
#include "exec/exec.h"
#include "group/group.h"

enum { MOST_NESTED = 64 }; /* pieces that wait for others inside of themselves */

struct hand {
    struct rv__executor executor; /* first */
    rv_group *group;
    struct rv__work **lying;
    size_t count, cap;
};

/* On the stack of the caller that waits. */
struct turn {
    struct rv__work *work;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
};

static int run(rv_task *task, void *arg, void **value)
{
    struct turn *turn = arg;
    (void)task;
    (void)value;
    turn->work->run(turn->work);
    return 0;
}

static void done(void *arg, const rv_error *err)
{
    struct turn *turn = arg;
    turn->work->done(turn->work, err);
    pthread_mutex_lock(&turn->lock);
    turn->done = true;
    pthread_cond_signal(&turn->over); /* under the lock: after it, the turn may be gone */
    pthread_mutex_unlock(&turn->lock);
}

static size_t hand_start(struct rv__executor *self, struct rv__work *const *works, size_t count)
{
    struct hand *hand = (struct hand *)self;
    for (size_t i = 0; i < count; i++) {
        if (hand->count == hand->cap) {
            size_t cap = hand->cap ? hand->cap * 2 : 64;
            struct rv__work **lying = rv__realloc(hand->lying, cap * sizeof *lying);
            if (lying == NULL)
                return i;
            hand->lying = lying;
            hand->cap = cap;
        }
        hand->lying[hand->count++] = works[i];
    }
    return count;
}

static bool hand_inside(const struct rv__executor *self)
{
    return rv__group_inside(((const struct hand *)self)->group);
}

static void hand_free(struct rv__executor *self)
{
    struct hand *hand = (struct hand *)self;
    rv_group_free(hand->group);
    rv__free(hand->lying);
    rv__free(hand);
}

int rv__hand_new(struct rv__executor **ret, rv_error *err)
{
    struct hand *hand = rv__zalloc(1, sizeof *hand);
    if (hand == NULL)
        return rv__nomem(err);
    hand->group = rv_group_new(
        &(rv_group_opts){ .max_concurrency = MOST_NESTED, .keep_going = true });
    if (hand->group == NULL) {
        rv__free(hand);
        return rv__nomem(err);
    }
    rv__group_on_done(hand->group, done);
    hand->executor = (struct rv__executor){ hand_start, hand_inside, hand_free };
    *ret = &hand->executor;
    return RV_OK;
}

static struct rv__work *take(struct hand *hand, size_t at)
{
    struct rv__work *work = hand->lying[at];
    hand->lying[at] = hand->lying[--hand->count];
    return work;
}

bool rv__hand_run(struct rv__executor *self, struct rv__random *random)
{
    struct hand *hand = (struct hand *)self;
    if (hand->count == 0)
        return false;
    struct turn turn = { .work = take(hand, (size_t)rv__random_below(random, hand->count)) };
    pthread_mutex_init(&turn.lock, NULL); /* on Linux these two cannot fail */
    pthread_cond_init(&turn.over, NULL);
    int rc = rv_group_go(hand->group, run, &turn);
    if (rc < 0) {
        hand->lying[hand->count++] = turn.work; /* no memory: where it was, for another time */
    } else {
        pthread_mutex_lock(&turn.lock);
        while (!turn.done)
            pthread_cond_wait(&turn.over, &turn.lock);
        pthread_mutex_unlock(&turn.lock);
    }
    pthread_cond_destroy(&turn.over);
    pthread_mutex_destroy(&turn.lock);
    return true;
}

struct rv__work *rv__hand_take(struct rv__executor *self)
{
    struct hand *hand = (struct hand *)self;
    return hand->count > 0 ? take(hand, hand->count - 1) : NULL;
}
