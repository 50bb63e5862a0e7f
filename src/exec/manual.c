/* manual.c: work that runs only when a test or the simulator says so, one piece at a time.
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
struct manual_executor {
    struct rv__executor executor; /* first */
    struct rv__manual *manual;
    struct manual_executor *next;
};

struct rv__manual {
    rv_group *group;
    struct manual_executor *executors;
    struct piece *waiting;
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

static size_t manual_start(struct rv__executor *self, struct rv__work *const *works, size_t count)
{
    struct rv__manual *manual = ((struct manual_executor *)self)->manual;
    for (size_t i = 0; i < count; i++) {
        if (manual->count == manual->cap) {
            size_t cap = manual->cap ? manual->cap * 2 : 64;
            struct piece *waiting = rv__realloc(manual->waiting, cap * sizeof *waiting);
            if (waiting == NULL)
                return i;
            manual->waiting = waiting;
            manual->cap = cap;
        }
        manual->waiting[manual->count++] = (struct piece){ .work = works[i], .of = self };
    }
    return count;
}

static struct rv__work *manual_inside(const struct rv__executor *self)
{
    return rv__group_inside(((const struct manual_executor *)self)->manual->group) ? at_work : NULL;
}

static void manual_free(struct rv__executor *self)
{
    (void)self; /* the manual owns it */
}

int rv__manual_new(struct rv__manual **ret, rv_error *err)
{
    struct rv__manual *manual = rv__zalloc(1, sizeof *manual);
    if (manual == NULL)
        return rv__nomem(err);
    manual->group = rv_group_new(
        &(rv_group_opts){ .max_concurrency = MOST_NESTED, .keep_going = true });
    if (manual->group == NULL) {
        rv__free(manual);
        return rv__nomem(err);
    }
    rv__group_on_done(manual->group, done);
    *ret = manual;
    return RV_OK;
}

void rv__manual_free(struct rv__manual *manual)
{
    if (manual == NULL)
        return;
    rv_group_free(manual->group);
    while (manual->executors != NULL) {
        struct manual_executor *next = manual->executors->next;
        rv__free(manual->executors);
        manual->executors = next;
    }
    rv__free(manual->waiting);
    rv__free(manual);
}

int rv__manual_executor(struct rv__manual *manual, const struct rv__executor *head,
                        struct rv__executor **ret, rv_error *err)
{
    struct manual_executor *manual_executor = rv__zalloc(1, sizeof *manual_executor);
    if (manual_executor == NULL)
        return rv__nomem(err);
    manual_executor->executor = *head;
    manual_executor->executor.start = manual_start;
    manual_executor->executor.cancel = rv__executor_fire;
    manual_executor->executor.inside = manual_inside;
    manual_executor->executor.free = manual_free;
    manual_executor->manual = manual;
    manual_executor->next = manual->executors;
    manual->executors = manual_executor;
    *ret = &manual_executor->executor;
    return RV_OK;
}

static struct piece take(struct rv__manual *manual, size_t at)
{
    struct piece piece = manual->waiting[at];
    manual->waiting[at] = manual->waiting[--manual->count];
    return piece;
}

bool rv__manual_lies(const struct rv__manual *manual)
{
    return manual->count > 0;
}

bool rv__manual_begin(struct rv__manual *manual, struct rv__random *random)
{
    if (manual->count == 0)
        return false;
    struct piece *piece = &manual->waiting[rv__random_below(random, manual->count)];
    if (piece->begun)
        return false;
    tell_begun(piece);
    return true;
}

/* Run a piece, and wait for it. */
static void run_piece(struct rv__manual *manual, struct piece piece, enum rv__lost how,
                      const rv_error *lost)
{
    struct turn turn = { .piece = piece, .how = how, .lost = lost };
    pthread_mutex_init(&turn.lock, NULL); /* on Linux these two cannot fail */
    pthread_cond_init(&turn.over, NULL);
    int rc = rv_group_go(manual->group, run, &turn);
    if (rc < 0) {
        manual->waiting[manual->count++] = turn.piece; /* no memory: put it back */
    } else {
        pthread_mutex_lock(&turn.lock);
        while (!turn.done)
            pthread_cond_wait(&turn.over, &turn.lock);
        pthread_mutex_unlock(&turn.lock);
    }
    pthread_cond_destroy(&turn.over);
    pthread_mutex_destroy(&turn.lock);
}

bool rv__manual_run(struct rv__manual *manual, struct rv__random *random)
{
    if (manual->count == 0)
        return false;
    run_piece(manual, take(manual, (size_t)rv__random_below(random, manual->count)), RV__LOST_ALONE,
              NULL);
    return true;
}

static void lose_piece(struct rv__manual *manual, size_t at, struct rv__random *random,
                       enum rv__lost how, const rv_error *why)
{
    struct piece piece = take(manual, at);
    if (rv__random_below(random, 2) == 0)
        run_piece(manual, piece, how, why);
    else
        piece.work->lost(piece.work, how, why);
}

bool rv__manual_lose(struct rv__executor *executor, struct rv__random *random, const rv_error *why)
{
    struct rv__manual *manual = ((struct manual_executor *)executor)->manual;
    size_t at = 0;
    while (at < manual->count && manual->waiting[at].of != executor)
        at++;
    if (at == manual->count)
        return false;
    lose_piece(manual, at, random, RV__LOST_ALONE, why);
    return true;
}

void rv__manual_lose_work(struct rv__executor *executor, struct rv__work *work,
                          struct rv__random *random, enum rv__lost how, const rv_error *why)
{
    struct rv__manual *manual = ((struct manual_executor *)executor)->manual;
    for (size_t at = 0; at < manual->count; at++)
        if (manual->waiting[at].work == work) {
            lose_piece(manual, at, random, how, why);
            return;
        }
}

struct rv__work *rv__manual_take(struct rv__manual *manual)
{
    return manual->count > 0 ? take(manual, manual->count - 1).work : NULL;
}
