/* test_queue.c: for src/base/queue.c. Also run under the thread sanitizer. */
#include "unit/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/queue.h"

enum { PRODUCERS = 4, EACH = 200000, ROUNDS = 20000, SWEEPS = 200000, PATIENCE_MS = 60000 };

struct item {
    struct rv__queue_node node; /* first: a node is an item */
    int producer;
    int number;
};

/* Stands before libc's, so that a test can have it fail. */
static int condattr_error;
int pthread_condattr_init(pthread_condattr_t *attr)
{
    int (*real)(pthread_condattr_t *);
    if (condattr_error != 0)
        return condattr_error;
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_condattr_init");
    return real(attr);
}

static struct rv__queue queue;

static int setup(void **state)
{
    (void)state;
    return rv__queue_init(&queue, NULL, NULL, NULL);
}

static int teardown(void **state)
{
    (void)state;
    rv__queue_done(&queue);
    return 0;
}

static void everything_comes_out_in_the_order_it_went_in(void **state)
{
    (void)state;
    struct item item[5] = { 0 };
    assert_null(rv__queue_take(&queue));
    for (int i = 0; i < 5; i++)
        assert_int_equal(rv__queue_push(&queue, &item[i].node), RV_OK);
    assert_true(rv__queue_wait(&queue, 0));
    struct rv__queue_node *node = rv__queue_take(&queue);
    for (int i = 0; i < 5; i++, node = node->next)
        assert_ptr_equal(node, &item[i]);
    assert_null(node);
    assert_null(rv__queue_take(&queue));
}

static void waiting_for_nothing_ends_at_the_deadline(void **state)
{
    (void)state;
    int64_t deadline = rv__deadline_ns(20);
    assert_false(rv__queue_wait(&queue, deadline));
    assert_true(rv__mono_ns(rv__clock_real()) >= deadline);
    assert_false(rv__queue_wait(&queue, 0));
    assert_false(rv__queue_closed(&queue));
}

static void watching_ends_with_something_to_take_or_the_time(void **state)
{
    (void)state;
    struct item item = { 0 };
    int64_t from_ns = rv__mono_ns(rv__clock_real());
    assert_false(rv__queue_watch(&queue, 2000000));
    assert_true(rv__mono_ns(rv__clock_real()) - from_ns >= 2000000);
    assert_int_equal(rv__queue_push(&queue, &item.node), RV_OK);
    assert_true(rv__queue_watch(&queue, 0));
    assert_ptr_equal(rv__queue_take(&queue), &item.node);
    rv__queue_close(&queue);
    assert_true(rv__queue_watch(&queue, INT64_MAX / 2));
}

static void a_closed_queue_refuses_and_gives_what_it_has(void **state)
{
    (void)state;
    struct item before = { 0 }, after = { .node.next = &before.node };
    assert_int_equal(rv__queue_push(&queue, &before.node), RV_OK);
    rv__queue_close(&queue);
    rv__queue_close(&queue);
    assert_true(rv__queue_closed(&queue));
    assert_int_equal(rv__queue_push(&queue, &after.node), RV_ECLOSED);
    assert_ptr_equal(after.node.next, &before.node); /* untouched */
    assert_true(rv__queue_wait(&queue, RV__NEVER));
    assert_false(rv__queue_may_sleep(&queue));
    struct rv__queue_node *node = rv__queue_take(&queue);
    assert_ptr_equal(node, &before.node);
    assert_null(node->next);
    assert_false(rv__queue_wait(&queue, RV__NEVER)); /* empty for ever: does not sleep */
    assert_false(rv__queue_may_sleep(&queue));
    assert_null(rv__queue_take(&queue));
    assert_int_equal(rv__queue_push(&queue, &after.node), RV_ECLOSED);
}

static void count_wake(void *arg)
{
    ++*(int *)arg;
}

static void a_wake_up_is_paid_for_only_when_somebody_sleeps(void **state)
{
    (void)state;
    struct rv__queue own;
    struct item item[1010] = { 0 };
    int wakes = 0;
    assert_int_equal(rv__queue_init(&own, count_wake, &wakes, NULL), RV_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(rv__queue_push(&own, &item[i].node), RV_OK);
    assert_false(rv__queue_may_sleep(&own)); /* there is something */
    assert_int_equal(rv__queue_push(&own, &item[1000].node), RV_OK);
    assert_int_equal(wakes, 0);

    assert_non_null(rv__queue_take(&own));
    assert_true(rv__queue_may_sleep(&own));
    for (int i = 1001; i < 1004; i++)
        assert_int_equal(rv__queue_push(&own, &item[i].node), RV_OK);
    assert_int_equal(wakes, 1); /* one for all three */
    rv__queue_awake(&own);
    assert_non_null(rv__queue_take(&own));

    assert_true(rv__queue_may_sleep(&own));
    rv__queue_awake(&own); /* it woke by itself */
    assert_int_equal(rv__queue_push(&own, &item[1004].node), RV_OK);
    assert_int_equal(wakes, 1);

    assert_non_null(rv__queue_take(&own));
    assert_true(rv__queue_may_sleep(&own));
    rv__queue_close(&own);
    assert_int_equal(wakes, 2);
    rv__queue_done(&own);
}

struct producer {
    pthread_t thread;
    int number;
    struct item *items;
    int pushed; /* how many the queue accepted */
};

static void *produce(void *arg)
{
    struct producer *p = arg;
    for (int i = 0; i < EACH; i++) {
        p->items[i].producer = p->number;
        p->items[i].number = i;
        if (rv__queue_push(&queue, &p->items[i].node) != RV_OK)
            break;
        p->pushed++;
    }
    return NULL;
}

static void start_producers(struct producer *producers)
{
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){ .number = i };
        producers[i].items = rv__zalloc(EACH, sizeof(struct item));
        assert_non_null(producers[i].items);
    }
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
}

static void check_items(struct rv__queue_node *node, int *seen)
{
    for (; node != NULL; node = node->next) {
        struct item *item = (struct item *)node;
        if (item->number != seen[item->producer])
            fail_msg("producer %d: %d after %d", item->producer, item->number,
                     seen[item->producer] - 1);
        seen[item->producer]++;
    }
}

static void many_producers_lose_nothing_and_keep_their_order(void **state)
{
    (void)state;
    struct producer producers[PRODUCERS];
    int seen[PRODUCERS] = { 0 }, total = 0;
    int64_t deadline = rv__deadline_ns(PATIENCE_MS);
    start_producers(producers);
    while (total < PRODUCERS * EACH) {
        if (!rv__queue_wait(&queue, deadline))
            fail_msg("woken by nobody after %d items", total);
        check_items(rv__queue_take(&queue), seen);
        total = 0;
        for (int i = 0; i < PRODUCERS; i++)
            total += seen[i];
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i].thread, NULL);
        assert_int_equal(seen[i], EACH);
        rv__free(producers[i].items);
    }
    assert_null(rv__queue_take(&queue));
}

static void what_was_accepted_before_the_close_is_taken(void **state)
{
    (void)state;
    struct producer producers[PRODUCERS];
    int seen[PRODUCERS] = { 0 };
    start_producers(producers);
    while (seen[0] < 1000 && rv__queue_wait(&queue, rv__deadline_ns(PATIENCE_MS)))
        check_items(rv__queue_take(&queue), seen);
    rv__queue_close(&queue); /* in the middle of their work */
    while (rv__queue_wait(&queue, RV__NEVER))
        check_items(rv__queue_take(&queue), seen);
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i].thread, NULL);
        assert_int_equal(seen[i], producers[i].pushed);
        rv__free(producers[i].items);
    }
    assert_null(rv__queue_take(&queue));
}

static void *close_it(void *arg)
{
    (void)arg;
    rv__queue_close(&queue);
    return NULL;
}

static void closing_wakes_a_sleeper(void **state)
{
    (void)state;
    pthread_t thread;
    int64_t deadline = rv__deadline_ns(PATIENCE_MS);
    assert_int_equal(pthread_create(&thread, NULL, close_it, NULL), 0);
    assert_false(rv__queue_wait(&queue, deadline));
    assert_true(rv__mono_ns(rv__clock_real()) < deadline);
    pthread_join(thread, NULL);
}

/* Two threads that throw one ball to and fro: each sleeps before nearly every catch, so a wake-up
 * that can be lost is lost soon. */
static struct rv__queue back;

static void *throw_back(void *arg)
{
    (void)arg;
    while (rv__queue_wait(&queue, RV__NEVER))
        if (rv__queue_push(&back, rv__queue_take(&queue)) != RV_OK)
            break;
    return NULL;
}

static void no_wake_up_is_lost_in_a_game_of_catch(void **state)
{
    (void)state;
    struct item ball = { 0 };
    pthread_t thread;
    assert_int_equal(rv__queue_init(&back, NULL, NULL, NULL), RV_OK);
    assert_int_equal(pthread_create(&thread, NULL, throw_back, NULL), 0);
    int64_t deadline = rv__deadline_ns(PATIENCE_MS);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(rv__queue_push(&queue, &ball.node), RV_OK);
        if (!rv__queue_wait(&back, deadline))
            fail_msg("the ball was lost in round %d", i);
        assert_ptr_equal(rv__queue_take(&back), &ball);
    }
    rv__queue_close(&queue);
    pthread_join(thread, NULL);
    rv__queue_done(&back);
}

/* The producer pushes again as soon as it sees that the consumer has taken, and the consumer goes
 * to sleep a little later each time: so the push sweeps over all of falling asleep. */
static _Atomic int taken;

static void *push_into_sleep(void *arg)
{
    struct item *item = arg;
    for (int i = 0; i < SWEEPS; i++) {
        for (int spins = 0; atomic_load(&taken) < i; spins++)
            if (spins > 2000)
                sched_yield();
        if (rv__queue_push(&queue, &item->node) != RV_OK)
            break;
    }
    return NULL;
}

static void no_wake_up_is_lost_while_falling_asleep(void **state)
{
    (void)state;
    struct item item = { 0 };
    pthread_t thread;
    atomic_store(&taken, 0);
    assert_int_equal(pthread_create(&thread, NULL, push_into_sleep, &item), 0);
    int64_t deadline = rv__deadline_ns(PATIENCE_MS);
    for (int i = 0; i < SWEEPS; i++) {
        if (!rv__queue_wait(&queue, deadline))
            fail_msg("nobody woke it in round %d", i);
        assert_ptr_equal(rv__queue_take(&queue), &item);
        atomic_store(&taken, i + 1);
        for (volatile int delay = i % 500; delay > 0; delay--)
            ; /* until the producer, on its processor, has seen it */
    }
    pthread_join(thread, NULL);
}

static void wake_eventfd(void *arg)
{
    uint64_t one = 1;
    if (write(*(int *)arg, &one, sizeof one) != sizeof one)
        abort(); /* not in cmocka's thread */
}

static void an_owner_may_sleep_in_a_loop_of_its_own(void **state)
{
    (void)state;
    struct producer producers[PRODUCERS];
    int seen[PRODUCERS] = { 0 }, total = 0;
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_true(fd >= 0);
    rv__queue_done(&queue);
    assert_int_equal(rv__queue_init(&queue, wake_eventfd, &fd, NULL), RV_OK);
    start_producers(producers);
    while (total < PRODUCERS * EACH) {
        if (rv__queue_may_sleep(&queue)) {
            struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
            uint64_t count;
            if (poll(&poll_fd, 1, PATIENCE_MS) != 1)
                fail_msg("woken by nobody after %d items", total);
            assert_int_equal(read(fd, &count, sizeof count), sizeof count);
        }
        rv__queue_awake(&queue);
        check_items(rv__queue_take(&queue), seen);
        total = 0;
        for (int i = 0; i < PRODUCERS; i++)
            total += seen[i];
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i].thread, NULL);
        rv__free(producers[i].items);
    }
    close(fd);
}

static void a_queue_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    struct rv__queue none;
    rv_error err = { 0 };
    condattr_error = ENOMEM;
    int rc = rv__queue_init(&none, NULL, NULL, &err);
    condattr_error = 0;
    assert_int_equal(rc, RV_ENOMEM);
    assert_string_equal(err.message, "cannot make a queue: out of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_comes_out_in_the_order_it_went_in, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(waiting_for_nothing_ends_at_the_deadline, setup, teardown),
        cmocka_unit_test_setup_teardown(watching_ends_with_something_to_take_or_the_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_closed_queue_refuses_and_gives_what_it_has, setup,
                                        teardown),
        cmocka_unit_test(a_wake_up_is_paid_for_only_when_somebody_sleeps),
        cmocka_unit_test_setup_teardown(many_producers_lose_nothing_and_keep_their_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_was_accepted_before_the_close_is_taken, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(closing_wakes_a_sleeper, setup, teardown),
        cmocka_unit_test_setup_teardown(no_wake_up_is_lost_in_a_game_of_catch, setup, teardown),
        cmocka_unit_test_setup_teardown(no_wake_up_is_lost_while_falling_asleep, setup, teardown),
        cmocka_unit_test_setup_teardown(an_owner_may_sleep_in_a_loop_of_its_own, setup, teardown),
        cmocka_unit_test(a_queue_that_cannot_be_made_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
