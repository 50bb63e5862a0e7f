/* io.c: one libuv loop on one thread, which lives from rv__io_new() to rv__io_free(): the kernel ties the
 * parent-death signal of a child to the thread that started it.
 *
 * The thread blocks all signals. So no handler of the host program runs on it, and a write to a command that does
 * not read returns EPIPE instead of raising SIGPIPE. */
#include "exec/io.h"

#include <signal.h>

#include "base/alloc.h"
#include "base/error.h"

void rv__io_wake(struct rv__io *io)
{
    uv_async_send(&io->awake);
}

struct later {
    uv_work_t work; /* first */
    struct rv__later *of;
};

static void run_later(uv_work_t *work)
{
    struct rv__later *of = ((struct later *)work)->of;
    of->run(of);
}

static void later_done(uv_work_t *work, int status)
{
    struct rv__later *of = ((struct later *)work)->of;
    (void)status; /* never cancelled */
    rv__free(work);
    of->done(of);
}

void rv__io_later(struct rv__io *io, struct rv__later *later)
{
    struct later *own = rv__zalloc(1, sizeof *own);
    if (own != NULL) {
        own->of = later;
        if (uv_queue_work(&io->loop, &own->work, run_later, later_done) == 0)
            return; /* the loop does not end before it */
    }
    rv__free(own);
    later->run(later); /* no memory: better to block than to lose it */
    later->done(later);
}

int rv__io_post(struct rv__io *io, struct rv__errand *errand)
{
    pthread_mutex_lock(&io->lock);
    int rc = io->closing || errand->off ? RV_ECLOSED : RV_OK;
    bool first = rc == RV_OK && errand->listed.at == NULL;
    if (first)
        rv__chain_add(&io->errands, &errand->listed);
    pthread_mutex_unlock(&io->lock);
    if (first)
        rv__io_wake(io);
    return rc;
}

void rv__io_take_back(struct rv__io *io, struct rv__errand *errand)
{
    pthread_mutex_lock(&io->lock);
    errand->off = true;
    if (errand->listed.at != NULL)
        rv__chain_remove(&io->errands, &errand->listed);
    pthread_mutex_unlock(&io->lock);
}

void rv__io_at_close(struct rv__io *io, struct rv__errand *errand)
{
    rv__chain_add(&io->at_close, &errand->listed);
}

static void run_at_close(struct rv__io *io)
{
    while (io->at_close.first != NULL) {
        struct rv__errand *errand = RV__CONTAINER(io->at_close.first, struct rv__errand, listed);
        rv__chain_remove(&io->at_close, &errand->listed);
        errand->run(errand);
    }
}

static void run_posted(struct rv__io *io)
{
    for (;;) {
        pthread_mutex_lock(&io->lock);
        struct rv__link *first = io->errands.first;
        if (first != NULL)
            rv__chain_remove(&io->errands, first);
        pthread_mutex_unlock(&io->lock);
        if (first == NULL)
            return;
        struct rv__errand *errand = RV__CONTAINER(first, struct rv__errand, listed);
        errand->run(errand);
    }
}

static void on_alarm(uv_timer_t *alarm_timer);

static void set_alarm_timer(struct rv__io *io)
{
    const struct rv__timer *first = rv__timers_first(&io->alarms);
    if (uv_is_closing((uv_handle_t *)&io->alarm_timer))
        return;
    if (first == NULL) {
        uv_timer_stop(&io->alarm_timer);
        return;
    }
    int64_t wait = first->due - (int64_t)uv_now(&io->loop);
    uv_timer_start(&io->alarm_timer, on_alarm, wait > 0 ? (uint64_t)wait : 0, 0);
}

static void on_alarm(uv_timer_t *alarm_timer)
{
    struct rv__io *io = RV__CONTAINER(alarm_timer, struct rv__io, alarm_timer);
    struct rv__timer *due;
    while ((due = rv__timers_pop_due(&io->alarms, (int64_t)uv_now(&io->loop))) != NULL) {
        struct rv__alarm *alarm = RV__CONTAINER(due, struct rv__alarm, timer);
        alarm->ring(alarm);
    }
    set_alarm_timer(io);
}

int rv__io_alarm(struct rv__io *io, struct rv__alarm *alarm, int64_t ms)
{
    uv_update_time(&io->loop); /* the loop's cached time is as old as this turn */
    int rc = rv__timers_arm(&io->alarms, &alarm->timer, (int64_t)uv_now(&io->loop) + ms);
    set_alarm_timer(io);
    return rc;
}

void rv__io_alarm_off(struct rv__io *io, struct rv__alarm *alarm)
{
    rv__timers_disarm(&io->alarms, &alarm->timer);
    set_alarm_timer(io);
}

static void on_wake(uv_async_t *awake)
{
    struct rv__io *io = RV__CONTAINER(awake, struct rv__io, awake);
    run_posted(io);
    pthread_mutex_lock(&io->lock);
    bool closing = io->closing;
    bool posted = io->errands.first != NULL;
    pthread_mutex_unlock(&io->lock);
    if (posted) { /* posted just before it was closed */
        rv__io_wake(io);
        return;
    }
    if (closing)
        run_at_close(io);
    rv__commands_turn(io->commands, closing);
    rv__fetches_turn(io->fetches, closing);
    if (closing && rv__commands_idle(io->commands) && rv__fetches_idle(io->fetches) &&
        !uv_is_closing((uv_handle_t *)awake)) {
        rv__fetches_close(io->fetches);
        rv__commands_close(io->commands);
        uv_close((uv_handle_t *)&io->alarm_timer, NULL);
        uv_close((uv_handle_t *)awake, NULL); /* the last handle: the loop ends */
    }
}

static void *thread_main(void *arg)
{
    struct rv__io *io = arg;
    pthread_setname_np(pthread_self(), "rival-io");
    uv_run(&io->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void close_unstarted(struct rv__io *io) /* its thread was never started */
{
    uv_close((uv_handle_t *)&io->alarm_timer, NULL);
    uv_close((uv_handle_t *)&io->awake, NULL);
    uv_run(&io->loop, UV_RUN_DEFAULT);
    uv_loop_close(&io->loop);
}

int rv__io_new(const struct rv__io_opts *opts, struct rv__io **ret, rv_error *err)
{
    static const struct rv__io_opts defaults;
    struct rv__io *io = rv__zalloc(1, sizeof *io);
    sigset_t all, before;
    int rc;

    if (io == NULL)
        return rv__nomem(err);
    rc = rv__uv_loop_init(&io->loop);
    if (rc < 0) {
        rv__free(io);
        return rv__fail(err, rc == UV_ENOMEM ? RV_ENOMEM : RV_ESYS, "cannot make an I/O loop: %s",
                        uv_strerror(rc));
    }
    pthread_mutex_init(&io->lock, NULL); /* on Linux this cannot fail */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* for the thread and the warden */

    rc = uv_async_init(&io->loop, &io->awake, on_wake);
    if (rc < 0) {
        uv_loop_close(&io->loop);
        rc = rv__fail(err, RV_ESYS, "cannot make an I/O loop: %s", uv_strerror(rc));
        goto out;
    }
    uv_timer_init(&io->loop, &io->alarm_timer); /* cannot fail */
    rv__chain_init(&io->errands);
    rv__chain_init(&io->at_close);
    rv__timers_init(&io->alarms);
    rc = rv__fetches_new(io, opts != NULL && opts->deny_private, &io->fetches, err);
    if (rc == RV_OK)
        rc = rv__commands_new(io, opts != NULL ? opts : &defaults, &io->commands, err);
    if (rc < 0) {
        if (io->fetches != NULL)
            rv__fetches_close(io->fetches);
        close_unstarted(io);
        goto out;
    }
    rc = pthread_create(&io->thread, NULL, thread_main, io);
    if (rc != 0) {
        rc = rv__fail(err, RV_ESYS, "cannot make the I/O thread: %s", strerrordesc_np(rc));
        rv__fetches_close(io->fetches);
        rv__commands_close(io->commands);
        close_unstarted(io);
        goto out;
    }
    *ret = io;
    io = NULL;
out:
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (io != NULL) {
        rv__commands_free(io->commands);
        rv__fetches_free(io->fetches);
        rv__timers_done(&io->alarms);
        pthread_mutex_destroy(&io->lock);
        rv__free(io);
    }
    return rc;
}

void rv__io_free(struct rv__io *io)
{
    if (io == NULL)
        return;
    pthread_mutex_lock(&io->lock);
    io->closing = true;
    pthread_mutex_unlock(&io->lock);
    rv__io_wake(io);
    pthread_join(io->thread, NULL);
    uv_loop_close(&io->loop);
    rv__commands_free(io->commands);
    rv__fetches_free(io->fetches);
    rv__timers_done(&io->alarms);
    pthread_mutex_destroy(&io->lock);
    rv__free(io);
}
