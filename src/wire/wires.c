/* wires.c: the loop of all connections: one thread, from rv__wires_new() to rv__wires_free().
 *
 * Whatever is said in a turn of the loop is sent before the loop sleeps: so frames go out in batches under load,
 * and at once when there is none. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "wire/conn.h"

/* ---------------------------------------------------------------------------------- loop --- */

/* libuv's own descriptors may not be 0, 1 or 2: it aborts. Where the program has closed those, sit there
 * until its loop is made. Which ones, as bits. */
static unsigned occupy_stdio(void)
{
    unsigned held = 0;
    int fd;
    while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
        held |= 1u << fd;
    if (fd >= 0)
        close(fd);
    return held;
}

static void leave_stdio(unsigned held)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (held & 1u << fd)
            close(fd);
}

int rv__uv_loop_init(uv_loop_t *loop)
{
    unsigned held = occupy_stdio();
    int rc = uv_loop_init(loop);
    leave_stdio(held);
    return rc;
}

struct uv_loop_s *rv__wires_loop(struct rv__wires *wires)
{
    return &wires->loop;
}

int64_t rv__wires_now_ms(const struct rv__wires *wires)
{
    return (int64_t)uv_now(&wires->loop);
}

static void wake(void *arg)
{
    uv_async_send(&((struct rv__wires *)arg)->awake);
}

static void run_tasks(struct rv__wires *wires)
{
    struct rv__queue_node *node;
    while ((node = rv__queue_take(&wires->tasks)) != NULL)
        while (node != NULL) {
            struct rv__wire_task *task = (struct rv__wire_task *)node;
            node = node->next; /* the task may be gone when it has run */
            task->run(task);
        }
}

static void on_wake(uv_async_t *awake)
{
    struct rv__wires *wires = awake->data;
    rv__queue_awake(&wires->tasks);
    run_tasks(wires);
}

/* Before the loop sleeps: what was said is sent, and who posts from now on wakes it. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct rv__wires *wires = prepare->data;
    rv__conns_flush(wires);
    if (!rv__queue_may_sleep(&wires->tasks))
        uv_async_send(&wires->awake);
}

void rv__wires_look(struct rv__wires *wires)
{
    if (!wires->closing || wires->count > 0 || wires->watches > 0 || wires->jobs > 0 ||
        uv_is_closing((uv_handle_t *)&wires->awake))
        return;
    uv_close((uv_handle_t *)&wires->before_sleep, NULL);
    uv_close((uv_handle_t *)&wires->awake, NULL); /* the last handle: the loop ends */
}

static void *thread_main(void *arg)
{
    struct rv__wires *wires = arg;
    pthread_setname_np(pthread_self(), "rival-wire");
    uv_run(&wires->loop, UV_RUN_DEFAULT);
    run_tasks(wires); /* of who posted last, and does not wait */
    return NULL;
}

/* ---------------------------------------------------------------------------------- tasks --- */

void rv__wires_post(struct rv__wires *wires, struct rv__wire_task *task)
{
    (void)!rv__queue_push(&wires->tasks, &task->node); /* it is never closed */
}

struct awaited {
    struct rv__wire_task task; /* first */
    void (*run)(void *arg);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
};

static void run_awaited(struct rv__wire_task *task)
{
    struct awaited *awaited = (struct awaited *)task;
    awaited->run(awaited->arg);
    pthread_mutex_lock(&awaited->lock);
    awaited->done = true;
    pthread_cond_signal(&awaited->over); /* under the lock: after it, it may be gone */
    pthread_mutex_unlock(&awaited->lock);
}

void rv__wires_run(struct rv__wires *wires, void (*run)(void *arg), void *arg)
{
    struct awaited awaited = { .task.run = run_awaited,
                               .run = run,
                               .arg = arg,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .over = PTHREAD_COND_INITIALIZER };
    rv__wires_post(wires, &awaited.task);
    pthread_mutex_lock(&awaited.lock);
    while (!awaited.done)
        pthread_cond_wait(&awaited.over, &awaited.lock);
    pthread_mutex_unlock(&awaited.lock);
    pthread_mutex_destroy(&awaited.lock);
    pthread_cond_destroy(&awaited.over);
}

struct job {
    uv_work_t work; /* first */
    struct rv__wires *wires;
    struct rv__wire_job *of;
};

static void run_job(uv_work_t *work)
{
    struct rv__wire_job *of = ((struct job *)work)->of;
    of->run(of);
}

static void job_done(uv_work_t *work, int status)
{
    struct job *job = (struct job *)work;
    struct rv__wires *wires = job->wires;
    struct rv__wire_job *of = job->of;
    (void)status; /* nobody cancels it */
    rv__free(job);
    wires->jobs--;
    of->done(of);
    rv__wires_look(wires);
}

void rv__wires_job(struct rv__wires *wires, struct rv__wire_job *of)
{
    struct job *job = rv__zalloc(1, sizeof *job);
    if (job != NULL) {
        job->wires = wires;
        job->of = of;
        if (uv_queue_work(&wires->loop, &job->work, run_job, job_done) == 0) {
            wires->jobs++;
            return;
        }
    }
    rv__free(job);
    of->run(of); /* rather wait for the disk than lose it */
    of->done(of);
}

/* ------------------------------------------------------------------------------ life time --- */

static int make_handles(struct rv__wires *wires, rv_error *err)
{
    int rc = uv_async_init(&wires->loop, &wires->awake, on_wake);
    if (rc < 0)
        return rv__fail(err, RV_ESYS, "cannot make a loop for connections: %s", uv_strerror(rc));
    uv_prepare_init(&wires->loop, &wires->before_sleep); /* cannot fail, nor can its start */
    wires->awake.data = wires->before_sleep.data = wires;
    uv_prepare_start(&wires->before_sleep, on_prepare);
    return RV_OK;
}

int rv__wires_new(struct rv__wires **ret, rv_error *err)
{
    struct rv__wires *wires = rv__zalloc(1, sizeof *wires);
    sigset_t all, before;
    bool handles = false;
    if (wires == NULL)
        return rv__nomem(err);
    int rc = rv__queue_init(&wires->tasks, wake, wires, err);
    if (rc < 0) {
        rv__free(wires);
        return rc;
    }
    int failed = rv__uv_loop_init(&wires->loop);
    if (failed < 0) {
        rv__queue_done(&wires->tasks);
        rv__free(wires);
        return rv__fail(err, failed == UV_ENOMEM ? RV_ENOMEM : RV_ESYS,
                        "cannot make a loop for connections: %s", uv_strerror(failed));
    }
    rc = make_handles(wires, err);
    handles = rc == RV_OK;
    if (rc == RV_OK) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); /* a guest's thread takes nobody's signals */
        failed = pthread_create(&wires->thread, NULL, thread_main, wires);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (failed != 0)
            rc = rv__fail(err, RV_ESYS, "no thread could be made for connections: %s",
                          strerrordesc_np(failed));
    }
    if (rc < 0) {
        if (handles) {
            wires->closing = true;
            rv__wires_look(wires);
        }
        uv_run(&wires->loop, UV_RUN_DEFAULT);
        uv_loop_close(&wires->loop);
        rv__queue_done(&wires->tasks);
        rv__free(wires);
        return rc;
    }
    *ret = wires;
    return RV_OK;
}

static void begin_close(struct rv__wire_task *task)
{
    struct rv__wires *wires = RV__CONTAINER(task, struct rv__wires, close);
    wires->closing = true;
    for (struct rv__conn *conn = wires->conns; conn != NULL; conn = rv__conn_next(conn))
        rv__conn_end(conn, NULL);
    rv__wires_look(wires);
}

void rv__wires_free(struct rv__wires *wires)
{
    if (wires == NULL)
        return;
    wires->close.run = begin_close;
    rv__wires_post(wires, &wires->close);
    pthread_join(wires->thread, NULL);
    uv_loop_close(&wires->loop);
    rv__queue_done(&wires->tasks);
    rv__free(wires);
}
