/* hand.c: work that runs only when a test or the simulator says so, one piece at a time.
 *
 * A piece runs on a thread of a group while its caller waits. The group catches panics; and a function that calls
 * back into the engine, and so runs another piece, gets another thread for it instead of its own stack. */
#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/random.h"
#include "exec/exec.h"
#include "group/group.h"

enum { MOST_NESTED = 64 }; /* pieces that wait for other pieces which they started */

struct piece {
    struct rv__work *work;
    const struct rv__executor *of;
    bool begun; /* `begun` was called */
};

/* One of its executors. */
struct finger {
    struct rv__executor executor; /* first */
    struct rv__hand *hand;
    struct finger *next;
};

struct rv__hand {
    rv_group *group;
    struct finger *fingers;
    struct piece *lying;
    size_t count, cap;
};

/* On the stack of the waiting caller. */
struct turn {
    struct piece piece;
    const rv_error *lost; /* its process dies before it answers; NULL: it does not */
    enum rv__lost how;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
};

static _Thread_local struct rv__work *at_work; /* while this thread runs a task */

static void tell_begun(struct piece *piece)
{
    if (piece->work->begun != NULL && !piece->begun)
        piece->work->begun(piece->work);
    piece->begun = true;
}

static int run(rv_task *task, void *arg, void **value)
{
    struct turn *turn = arg;
    (void)task;
    (void)value;
    at_work = turn->piece.work;
    tell_begun(&turn->piece);
    turn->piece.work->run(turn->piece.work);
    return 0;
}

static void done(void *arg, const rv_error *err)
{
    struct turn *turn = arg;
    if (turn->lost != NULL)
        turn->piece.work->lost(turn->piece.work, turn->how, turn->lost);
    else
        turn->piece.work->done(turn->piece.work, err);
    pthread_mutex_lock(&turn->lock);
    turn->done = true;
    pthread_cond_signal(&turn->over); /* under the lock: afterwards the turn may be freed */
    pthread_mutex_unlock(&turn->lock);
}

static size_t finger_start(struct rv__executor *self, struct rv__work *const *works, size_t count)
{
    struct rv__hand *hand = ((struct finger *)self)->hand;
    for (size_t i = 0; i < count; i++) {
        if (hand->count == hand->cap) {
            size_t cap = hand->cap ? hand->cap * 2 : 64;
            struct piece *lying = rv__realloc(hand->lying, cap * sizeof *lying);
            if (lying == NULL)
                return i;
            hand->lying = lying;
            hand->cap = cap;
        }
        hand->lying[hand->count++] = (struct piece){ .work = works[i], .of = self };
    }
    return count;
}

static struct rv__work *finger_inside(const struct rv__executor *self)
{
    return rv__group_inside(((const struct finger *)self)->hand->group) ? at_work : NULL;
}

static void finger_free(struct rv__executor *self)
{
    (void)self; /* the hand owns it */
}

int rv__hand_new(struct rv__hand **ret, rv_error *err)
{
    struct rv__hand *hand = rv__zalloc(1, sizeof *hand);
    if (hand == NULL)
        return rv__nomem(err);
    hand->group = rv_group_new(
        &(rv_group_opts){ .max_concurrency = MOST_NESTED, .keep_going = true });
    if (hand->group == NULL) {
        rv__free(hand);
        return rv__nomem(err);
    }
    rv__group_on_done(hand->group, done);
    *ret = hand;
    return RV_OK;
}

void rv__hand_free(struct rv__hand *hand)
{
    if (hand == NULL)
        return;
    rv_group_free(hand->group);
    while (hand->fingers != NULL) {
        struct finger *next = hand->fingers->next;
        rv__free(hand->fingers);
        hand->fingers = next;
    }
    rv__free(hand->lying);
    rv__free(hand);
}

int rv__hand_executor(struct rv__hand *hand, const struct rv__executor *head,
                      struct rv__executor **ret, rv_error *err)
{
    struct finger *finger = rv__zalloc(1, sizeof *finger);
    if (finger == NULL)
        return rv__nomem(err);
    finger->executor = *head;
    finger->executor.start = finger_start;
    finger->executor.cancel = rv__executor_fire;
    finger->executor.inside = finger_inside;
    finger->executor.free = finger_free;
    finger->hand = hand;
    finger->next = hand->fingers;
    hand->fingers = finger;
    *ret = &finger->executor;
    return RV_OK;
}

static struct piece take(struct rv__hand *hand, size_t at)
{
    struct piece piece = hand->lying[at];
    hand->lying[at] = hand->lying[--hand->count];
    return piece;
}

bool rv__hand_lies(const struct rv__hand *hand)
{
    return hand->count > 0;
}

bool rv__hand_begin(struct rv__hand *hand, struct rv__random *random)
{
    if (hand->count == 0)
        return false;
    struct piece *piece = &hand->lying[rv__random_below(random, hand->count)];
    if (piece->begun)
        return false;
    tell_begun(piece);
    return true;
}

/* Run a piece, and wait for it. */
static void run_piece(struct rv__hand *hand, struct piece piece, enum rv__lost how,
                      const rv_error *lost)
{
    struct turn turn = { .piece = piece, .how = how, .lost = lost };
    pthread_mutex_init(&turn.lock, NULL); /* on Linux these two cannot fail */
    pthread_cond_init(&turn.over, NULL);
    int rc = rv_group_go(hand->group, run, &turn);
    if (rc < 0) {
        hand->lying[hand->count++] = turn.piece; /* no memory: put it back */
    } else {
        pthread_mutex_lock(&turn.lock);
        while (!turn.done)
            pthread_cond_wait(&turn.over, &turn.lock);
        pthread_mutex_unlock(&turn.lock);
    }
    pthread_cond_destroy(&turn.over);
    pthread_mutex_destroy(&turn.lock);
}

bool rv__hand_run(struct rv__hand *hand, struct rv__random *random)
{
    if (hand->count == 0)
        return false;
    run_piece(hand, take(hand, (size_t)rv__random_below(random, hand->count)), RV__LOST_ALONE,
              NULL);
    return true;
}

static void lose_piece(struct rv__hand *hand, size_t at, struct rv__random *random,
                       enum rv__lost how, const rv_error *why)
{
    struct piece piece = take(hand, at);
    if (rv__random_below(random, 2) == 0)
        run_piece(hand, piece, how, why);
    else
        piece.work->lost(piece.work, how, why);
}

bool rv__hand_lose(struct rv__executor *executor, struct rv__random *random, const rv_error *why)
{
    struct rv__hand *hand = ((struct finger *)executor)->hand;
    size_t at = 0;
    while (at < hand->count && hand->lying[at].of != executor)
        at++;
    if (at == hand->count)
        return false;
    lose_piece(hand, at, random, RV__LOST_ALONE, why);
    return true;
}

void rv__hand_lose_work(struct rv__executor *executor, struct rv__work *work,
                        struct rv__random *random, enum rv__lost how, const rv_error *why)
{
    struct rv__hand *hand = ((struct finger *)executor)->hand;
    for (size_t at = 0; at < hand->count; at++)
        if (hand->lying[at].work == work) {
            lose_piece(hand, at, random, how, why);
            return;
        }
}

struct rv__work *rv__hand_take(struct rv__hand *hand)
{
    return hand->count > 0 ? take(hand, hand->count - 1).work : NULL;
}
