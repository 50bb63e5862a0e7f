/* host_process.c: one host process, on the loop of connections.
 *
 *   starting ──▶ running ──asked to stop──▶ SIGTERM ──▶ SIGKILL ──▶ dead: `ended`
 *                   └──connection ended, wrong frame, killed, died────▲
 *
 * The process is started beside the loop, by a thread of libuv's pool: those threads live as long as this process, which the
 * parent-death signal of a host needs (launch.c). It is reaped when its pidfd says that it has ended, so that nothing here
 * waits. Thread: the loop's. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/error.h"
#include "exec/launch.h"
#include "exec/lines.h"

enum {
    PATIENCE_MS = 1000,    /* wait for a host that closed its connection to exit by itself */
    PRINTED_BYTES = 65536, /* read at once from its output: the capacity of a pipe */
};

struct rv__host {
    struct rv__wire_job job; /* first: starts the process */
    struct rv__wire_task task;
    const struct rv__host_opts *opts;
    const struct rv__host_user *user;
    void *arg;
    const char *module;
    struct rv__child process;
    bool spawned;          /* written by the job that starts it, read by was_started() */
    bool started;          /* the loop's */
    rv_error failed;       /* code 0: nothing; else what this process lacked to run it */
    struct rv__conn *conn; /* NULL: not yet, or it has ended */
    struct rv__pid_watch *watch;
    uv_poll_t out; /* its standard output, */
    int out_fd;    /* which is closed with the handle; -1: there is none */
    bool printing; /* it has not closed it */
    uv_timer_t timer;
    unsigned handles; /* of libuv: the last one that is closed frees this */
    struct rv__lines lines;
    bool stopping, termed, killed; /* what was done so far to end it */
    bool no_memory;                /* it reported, before it died, that it had no memory */
    rv_error wrong;                /* code 0: nothing; else what was wrong in what it sent */
};

/* --------------------------------------------------------------------------------- output --- */

/* Read what it has printed so far: at most twice what a pipe holds, even if it keeps printing. */
static void read_printed(struct rv__host *host)
{
    char bytes[PRINTED_BYTES];
    for (int i = 0; i < 2 && host->printing; i++) {
        ssize_t n = read(host->out_fd, bytes, sizeof bytes);
        if (n > 0)
            rv__lines_add(&host->lines, (struct rv__str){ bytes, (size_t)n });
        if (n == 0) { /* it has closed its standard output */
            host->printing = false;
            uv_poll_stop(&host->out);
        }
        if (n < (ssize_t)sizeof bytes)
            break;
    }
}

static void on_printed(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    read_printed(poll->data);
}

static void tell_printed(void *arg, struct rv__str line)
{
    const struct rv__host *host = arg;
    host->user->printed(host->arg, line);
}

/* --------------------------------------------------------------------------------- its end --- */

static void handle_closed(uv_handle_t *handle)
{
    struct rv__host *host = handle->data;
    if (--host->handles > 0)
        return;
    if (host->out_fd >= 0)
        (void)close(host->out_fd); /* only read from */
    rv__free(host);
}

static void ignore_frame(void *arg, struct rv__conn *conn, const struct rv__frame *frame)
{
    (void)arg;
    (void)conn;
    (void)frame;
}

static void ignore_end(void *arg, struct rv__conn *conn, const rv_error *why)
{
    (void)arg;
    (void)conn;
    (void)why;
}

static void leave_connection(struct rv__host *host)
{
    static const struct rv__conn_user nobody = { .heard = ignore_frame, .ended = ignore_end };
    struct rv__conn *conn = host->conn;
    host->conn = NULL; /* it takes no more work */
    if (conn == NULL)
        return;
    rv__conn_drain(conn); /* its last frames count */
    rv__conn_use(conn, &nobody, NULL);
    rv__conn_end(conn, NULL);
}

/* Write into *ret how it ended. */
static void tell_end(const struct rv__host *host, int status, rv_error *ret)
{
    const struct rv__host_opts *opts = host->opts;
    char how[120], more[100] = "";
    rv__child_tell(status, how, sizeof how);
    if (host->wrong.code != 0) {
        (void)rv__fail(ret, RV_EFAILED,
                       "the host process was stopped, because it sent something wrong: %s",
                       host->wrong.message);
    } else if (host->termed) {
        (void)rv__fail(ret, RV_EFAILED,
                       "the host process %s: it was asked to stop, and did not within %lld ms", how,
                       (long long)opts->term_ms);
    } else {
        if (host->no_memory && opts->memory_bytes > 0)
            snprintf(more, sizeof more, ", after memory was refused: its limit is %llu MB",
                     (unsigned long long)(opts->memory_bytes >> 20));
        else if (host->no_memory)
            snprintf(more, sizeof more, ", after memory was refused");
        (void)rv__fail(ret, RV_EFAILED, "the host process %s%s", how, more);
    }
}

/* The process has ended, or was killed: report how. */
static void over(struct rv__host *host)
{
    host->killed = true;    /* nothing more is done to it */
    leave_connection(host); /* the last frames may be refused */
    rv_error why = host->failed;
    bool died = host->failed.code == 0;
    if (host->started) {
        read_printed(host);
        rv__lines_end(&host->lines);
        rv__pid_watch_free(host->watch);
        int status = rv__child_reap(&host->process, 0);
        if (died)
            tell_end(host, status, &why);
    }
    rv__lines_done(&host->lines);
    host->user->ended(host->arg, died, &why);
    uv_close((uv_handle_t *)&host->timer, handle_closed);
    if (host->handles > 1)
        uv_close((uv_handle_t *)&host->out, handle_closed);
}

static void process_died(void *arg)
{
    over(arg);
}

void rv__host_kill(struct rv__host *host)
{
    if (host->killed)
        return;
    host->killed = true;
    uv_timer_stop(&host->timer);
    if (!host->started)
        return; /* as soon as it is */
    rv__child_signal(&host->process, SIGKILL);
    if (host->watch == NULL) /* nobody will tell that it has ended: a short wait, here */
        over(host);
}

void rv__host_refuse(struct rv__host *host, const rv_error *why)
{
    if (why->code == RV_ENOMEM || why->code == RV_ETOOBIG)
        host->failed = *why; /* our own lack, not its fault */
    else
        host->wrong = *why;
    rv__host_kill(host);
}

/* ------------------------------------------------------------------------------- measures --- */

static void kill_in_time(uv_timer_t *timer)
{
    rv__host_kill(timer->data);
}

static void term_in_time(uv_timer_t *timer)
{
    struct rv__host *host = timer->data;
    rv__child_signal(&host->process, SIGTERM);
    host->termed = true;
    uv_timer_start(timer, kill_in_time, (uint64_t)host->opts->kill_ms, 0);
}

void rv__host_stop(struct rv__host *host)
{
    if (host->killed || host->stopping)
        return;
    host->stopping = true;
    uv_timer_start(&host->timer, term_in_time, (uint64_t)host->opts->term_ms, 0);
}

void rv__host_rest(struct rv__host *host, int64_t most_ms)
{
    host->stopping = false;
    if (!host->killed)
        uv_timer_start(&host->timer, kill_in_time, (uint64_t)most_ms, 0);
}

void rv__host_work(struct rv__host *host)
{
    uv_timer_stop(&host->timer);
    host->lines.line = NULL; /* what an earlier step left over is nobody's */
    read_printed(host);
    rv__lines_end(&host->lines);
    host->lines.line = tell_printed;
}

/* ------------------------------------------------------------------------------- connection --- */

static void heard(void *arg, struct rv__conn *conn, const struct rv__frame *frame)
{
    struct rv__host *host = arg;
    struct rv__str value;
    (void)conn;
    if (host->wrong.code != 0 || host->failed.code != 0)
        return; /* it was refused */
    if (frame->type == FRAME_DYING) {
        rv__frame_members(frame, (const char *[]){ "noMemory" }, &value, 1);
        host->no_memory = rv__str_is(value, "true");
        return;
    }
    bool last = frame->type == FRAME_RESULT || frame->type == FRAME_ERROR;
    if (last || frame->type == FRAME_LOG)
        read_printed(host); /* it was printed before the frame was sent */
    if (last)
        rv__lines_end(&host->lines);
    host->user->heard(host->arg, frame);
}

static void conn_ended(void *arg, struct rv__conn *conn, const rv_error *why)
{
    struct rv__host *host = arg;
    (void)conn;
    host->conn = NULL;
    host->user->cut(host->arg);
    if (why != NULL)
        rv__host_refuse(host, why);
    else if (host->watch == NULL)
        rv__host_kill(host);
    else if (!host->killed) /* its own exit status says more than our SIGKILL */
        uv_timer_start(&host->timer, kill_in_time, PATIENCE_MS, 0);
}

struct rv__conn *rv__host_conn(const struct rv__host *host)
{
    return host->killed ? NULL : host->conn;
}

bool rv__host_usable(const struct rv__host *host)
{
    if (host->killed || host->termed)
        return false;
    return !host->started ||
           (host->conn != NULL && !rv__conn_ending(host->conn) && !rv__child_ended(&host->process));
}

/* ------------------------------------------------------------------------------- beginning --- */

static void start(struct rv__wire_job *job)
{
    struct rv__host *host = (struct rv__host *)job;
    host->spawned = rv__child_start(host->opts->program, "host", host->module,
                                    host->opts->memory_bytes, &host->process, &host->failed) >= 0;
}

static void was_started(struct rv__wire_job *job)
{
    static const struct rv__conn_user user = { .heard = heard, .ended = conn_ended };
    struct rv__host *host = (struct rv__host *)job;
    struct rv__wires *wires = host->opts->wires;
    host->started = host->spawned;
    if (!host->started) {
        over(host);
        return;
    }
    host->conn = rv__conn_new(wires, host->process.fd, &user, host);
    if (host->conn == NULL ||
        uv_poll_init(rv__wires_loop(wires), &host->out, host->process.out) < 0) {
        (void)rv__nomem(&host->failed);
    } else {
        host->out.data = host;
        host->handles++;
        host->out_fd = host->process.out;
        host->process.out = -1; /* the handle's */
        host->printing = true;
        uv_poll_start(&host->out, UV_READABLE, on_printed);
    }
    if (host->conn != NULL)
        host->process.fd = -1; /* the connection's */
    host->watch = rv__pid_watch_new(wires, host->process.pid, process_died, host);
    if (host->killed || host->failed.code != 0) {
        host->killed = false;
        rv__host_kill(host);
    } else {
        host->user->started(host->arg);
    }
}

static void start_beside(struct rv__wire_task *task)
{
    struct rv__host *host = RV__CONTAINER(task, struct rv__host, task);
    rv__wires_job(host->opts->wires, &host->job);
}

struct rv__host *rv__host_new(const struct rv__host_opts *opts, const char *module,
                              const struct rv__host_user *user, void *arg)
{
    struct rv__host *host = rv__zalloc(1, sizeof *host);
    if (host == NULL)
        return NULL;
    *host = (struct rv__host){ .job = { start, was_started },
                               .opts = opts,
                               .user = user,
                               .arg = arg,
                               .module = module,
                               .process = { .fd = -1, .out = -1, .pidfd = -1 },
                               .out_fd = -1,
                               .task.run = start_beside,
                               .handles = 1 };
    uv_timer_init(rv__wires_loop(opts->wires), &host->timer);
    host->timer.data = host;
    rv__lines_init(&host->lines, tell_printed, host);
    rv__wires_post(opts->wires, &host->task); /* not now: no callback comes before this returns */
    return host;
}
