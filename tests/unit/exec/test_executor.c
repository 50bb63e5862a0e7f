/* test_executor.c: what every executor promises of a piece of work: begun at most once and first, one end, its
 * token when it is cancelled. For src/exec/thread.c and hand.c. */
#include "unit/test.h"

#include <pthread.h>

#include "base/random.h"
#include "exec/exec.h"

enum { PIECES = 200, CREDITS = 3 };

struct piece {
    struct rv__work work; /* first */
    int ran, begun, done, lost;
    int ended_as; /* the code of its end */
    bool in_order, panics, waits;
};

static struct piece pieces[PIECES]; /* static: a failed assertion jumps out of the function */
static struct rv__executor *executor;
static struct rv__manual *hand;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ended, running, most;

static void run(struct rv__work *work)
{
    struct piece *p = (struct piece *)work;
    pthread_mutex_lock(&lock);
    p->ran++;
    if (++running > most)
        most = running;
    pthread_mutex_unlock(&lock);
    if (p->waits)
        (void)rv_cancel_wait(work->token, -1);
    pthread_mutex_lock(&lock);
    running--;
    pthread_mutex_unlock(&lock);
    if (p->panics)
        rv_panic("on purpose");
}

static void begun(struct rv__work *work)
{
    struct piece *p = (struct piece *)work;
    p->begun++;
    p->in_order = p->ran == 0 && p->done == 0 && p->lost == 0;
}

static void end(int *count)
{
    pthread_mutex_lock(&lock);
    ++*count;
    ended++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void done(struct rv__work *work, const rv_error *err)
{
    struct piece *p = (struct piece *)work;
    p->ended_as = err != NULL ? err->code : 0;
    end(&p->done);
}

static void lost(struct rv__work *work, enum rv__lost how, const rv_error *why)
{
    struct piece *p = (struct piece *)work;
    assert_int_equal(how, RV__LOST_ALONE);
    p->ended_as = why->code;
    end(&p->lost);
}

static void await(int count)
{
    pthread_mutex_lock(&lock);
    while (ended < count)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void start(int first, int count)
{
    struct rv__work *works[PIECES];
    for (int i = 0; i < count; i++)
        works[i] = &pieces[first + i].work;
    assert_int_equal(executor->start(executor, works, (size_t)count), count);
}

static int setup(void **state)
{
    (void)state;
    ended = running = most = 0;
    for (int i = 0; i < PIECES; i++)
        pieces[i] = (struct piece){ .work = { run, begun, done, lost, rv_cancel_new(NULL) } };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rv__executor_free(executor);
    rv__manual_free(hand);
    executor = NULL;
    hand = NULL;
    for (int i = 0; i < PIECES; i++)
        rv_cancel_free(pieces[i].work.token);
    return 0;
}

static const struct rv__executor head = { .name = "thread", .credits = CREDITS, .lane = 7 };

static void open_threads(void)
{
    assert_int_equal(rv__threads_new(&head, CREDITS, &executor, NULL), RV_OK);
    assert_string_equal(executor->name, "thread");
    assert_int_equal(executor->lane, 7);
}

static void open_hand(void)
{
    assert_int_equal(rv__manual_new(&hand, NULL), RV_OK);
    assert_int_equal(rv__manual_executor(hand, &head, &executor, NULL), RV_OK);
    assert_int_equal(executor->credits, CREDITS);
}

static void threads_begin_and_end_each_once(void **state)
{
    (void)state;
    open_threads();
    for (int i = 0; i < PIECES; i += 7)
        pieces[i].panics = true;
    start(0, PIECES);
    await(PIECES);
    assert_in_range(most, 1, CREDITS); /* whatever its owner starts */
    for (int i = 0; i < PIECES; i++) {
        const struct piece *p = &pieces[i];
        if (p->ran != 1 || p->begun != 1 || !p->in_order || p->done != 1 || p->lost != 0 ||
            p->ended_as != (p->panics ? RV_EPANIC : 0))
            fail_msg("piece %d: ran %d, begun %d, done %d, lost %d, as %d", i, p->ran, p->begun,
                     p->done, p->lost, p->ended_as);
    }
}

static void cancelled_work_is_told_and_still_ends(void **state)
{
    (void)state;
    open_threads();
    pieces[0].waits = pieces[1].waits = true;
    start(0, 2);
    executor->cancel(executor, &pieces[1].work);
    await(1);
    assert_int_equal(pieces[1].done, 1);
    assert_int_equal(pieces[0].done, 0);
    executor->cancel(executor, &pieces[0].work);
    await(2);
    assert_int_equal(pieces[0].done, 1);
}

static void by_hand_it_begins_runs_and_is_lost_when_told(void **state)
{
    static const rv_error died = { .code = RV_EFAILED, .message = "died" };
    struct rv__executor *other = NULL;
    struct rv__random random;
    (void)state;
    rv__random_init(&random, 1);
    open_hand();
    assert_int_equal(rv__manual_executor(hand, &head, &other, NULL), RV_OK);
    start(0, 20);
    assert_int_equal(ended, 0);
    assert_false(rv__manual_lose(other, &random, &died)); /* none of it is that one's */
    int began = 0;
    for (int i = 0; i < 20; i++)
        began += rv__manual_begin(hand, &random);
    assert_in_range(began, 2, 19);
    for (int i = 0; i < 10; i++)
        assert_true(rv__manual_lose(executor, &random, &died));
    while (rv__manual_run(hand, &random))
        ;
    assert_false(rv__manual_lies(hand));
    assert_int_equal(ended, 20);
    int ran_and_lost = 0;
    for (int i = 0; i < 20; i++) {
        const struct piece *p = &pieces[i];
        if (p->done + p->lost != 1 || p->begun > 1 || (p->ran && p->begun != 1) ||
            (p->done && !p->ran))
            fail_msg("piece %d: ran %d, begun %d, done %d, lost %d", i, p->ran, p->begun, p->done,
                     p->lost);
        ran_and_lost += p->lost && p->ran;
    }
    assert_in_range(ran_and_lost, 1, 9); /* a process dies before its work, or in it */
}

static void what_is_taken_from_a_hand_is_forgotten(void **state)
{
    (void)state;
    open_hand();
    start(0, 2);
    assert_non_null(rv__manual_take(hand));
    assert_non_null(rv__manual_take(hand));
    assert_null(rv__manual_take(hand));
    assert_int_equal(ended, 0);
}

static void no_memory_means_no_executor(void **state)
{
    int rc;
    (void)state;
    TORTURE(rc, rv__threads_new(&head, CREDITS, &executor, NULL), assert_null(executor));
    rv__executor_free(executor);
    executor = NULL;
    TORTURE(rc, rv__manual_new(&hand, NULL), assert_null(hand));
    TORTURE(rc, rv__manual_executor(hand, &head, &executor, NULL), assert_null(executor));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_begin_and_end_each_once, setup, teardown),
        cmocka_unit_test_setup_teardown(cancelled_work_is_told_and_still_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(by_hand_it_begins_runs_and_is_lost_when_told, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_taken_from_a_hand_is_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_means_no_executor, setup, teardown),
    };
    return cmocka_run_group_tests_name("executor", tests, NULL, NULL);
}
