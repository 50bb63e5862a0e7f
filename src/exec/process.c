/* process.c: see process.h. */
#include "exec/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "exec/lines.h"
#include "exec/spawn.h"

enum phase { PHASE_RUNNING, PHASE_ASKED, PHASE_FORCED, PHASE_LINGERING, PHASE_OVER };

enum { IN, OUT, ERR, EXIT, FDS };

/* Limit after the last kill: what pipes can hold. A process that left the group may write for ever. */
enum { DRAIN_BYTES = 1 << 20 };

struct rv__process {
    struct rv__processes *all;
    struct rv__command *command; /* NULL: over; only handles are left to close */
    enum phase phase;
    pid_t pid;
    int fds[FDS]; /* -1: closed. EXIT: the pidfd */
    uv_poll_t polls[FDS];
    uv_timer_t timer;
    int handles;           /* not yet closed */
    size_t written;        /* of its input */
    struct rv__buf unsent; /* a service: bytes after its input, */
    size_t sent;           /* of which this many were sent */
    struct rv__buf output;
    struct rv__lines lines;
    struct rv__mask_stream *masking; /* for stderr, before it is split; NULL: no secrets */
    uint64_t control;
    int64_t started_ms;
    struct rv__command_result result;
};

static void finish(struct rv__process *p);

static int64_t now_ms(void)
{
    return rv__mono_ms(rv__clock_real());
}

/* ------------------------------------------------------------------------------- handles --- */

static void on_closed(uv_handle_t *handle)
{
    struct rv__process *p = handle->data;
    if (--p->handles == 0)
        rv__free(p);
}

static void close_fd(struct rv__process *p, int which)
{
    if (p->fds[which] < 0)
        return;
    if (p->polls[which].data != NULL) /* else it was never polled */
        uv_close((uv_handle_t *)&p->polls[which], on_closed);
    close(p->fds[which]);
    p->fds[which] = -1;
}

static bool poll_fd(struct rv__process *p, int which, int events, uv_poll_cb ready)
{
    if (uv_poll_init(p->all->loop, &p->polls[which], p->fds[which]) < 0)
        return false;
    p->polls[which].data = p;
    p->handles++;
    return uv_poll_start(&p->polls[which], events, ready) == 0;
}

static void signal_group(struct rv__process *p, int sig)
{
    kill(-p->pid, sig); /* may fail if no process is left */
}

/* --------------------------------------------------------------------------------- kill --- */

static void on_timer(uv_timer_t *timer);

static void set_timer(struct rv__process *p, int64_t ms)
{
    uv_update_time(p->all->loop); /* the loop's cached time is as old as this turn */
    uv_timer_start(&p->timer, on_timer, (uint64_t)ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct rv__process *p = timer->data;
    switch (p->phase) {
    case PHASE_RUNNING: rv__process_kill(p, RV__KILL_TIMEOUT); break;
    case PHASE_ASKED:
        p->phase = PHASE_FORCED;
        signal_group(p, SIGKILL);
        break;
    case PHASE_LINGERING: finish(p); break;
    case PHASE_FORCED:
    case PHASE_OVER: break;
    }
}

static void ask_to_end(struct rv__process *p)
{
    int64_t grace = p->command->grace_ms;
    p->phase = PHASE_ASKED;
    if (p->command->service)
        close_fd(p, IN);
    signal_group(p, SIGTERM);
    signal_group(p, SIGCONT); /* a stopped process would not get the TERM */
    set_timer(p, grace > 0 ? grace : RV__COMMAND_GRACE_MS);
}

void rv__process_kill(struct rv__process *p, enum rv__kill why)
{
    if (p->phase != PHASE_RUNNING)
        return;
    p->result.killed = why;
    ask_to_end(p);
}

/* The command broke a rule: set its error, and end it. */
static void stop_with_error(struct rv__process *p, int code, const char *message)
{
    if (p->result.error.code != 0)
        return;
    rv__fail(&p->result.error, code, "%s", message);
    if (p->phase == PHASE_RUNNING)
        ask_to_end(p);
}

/* ------------------------------------------------------------------------- input, output --- */

enum fed { FED_ALL, FED_SOME, FED_NO_MORE };

/* Write as much as possible now, from `*from` on. */
static enum fed write_some(struct rv__process *p, struct rv__str text, size_t *from)
{
    while (*from < text.len) {
        ssize_t n = write(p->fds[IN], text.at + *from, text.len - *from);
        if (n >= 0)
            *from += (size_t)n;
        else if (errno == EAGAIN)
            return FED_SOME;
        else if (errno != EINTR)
            return FED_NO_MORE; /* EPIPE: it does not read its input, which is allowed */
    }
    return FED_ALL;
}

/* False: wait until it reads. */
static bool feed(struct rv__process *p)
{
    enum fed fed = write_some(p, p->command->input, &p->written);
    if (fed == FED_ALL && p->command->service) {
        fed = write_some(p, rv__buf_view(&p->unsent), &p->sent);
        if (fed == FED_ALL) {
            rv__buf_reset(&p->unsent);
            p->sent = 0;
            return true;
        }
    }
    if (fed == FED_SOME)
        return false;
    close_fd(p, IN);
    return true;
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct rv__process *p = poll->data;
    (void)status; /* an error shows in the write */
    (void)events;
    if (feed(p) && p->fds[IN] >= 0)
        uv_poll_stop(poll);
}

int rv__process_send(struct rv__process *p, struct rv__str bytes)
{
    if (p->fds[IN] < 0 || p->phase != PHASE_RUNNING)
        return RV_ECLOSED;
    if (p->sent > 0) { /* remove what was sent */
        memmove(p->unsent.text, p->unsent.text + p->sent, p->unsent.len - p->sent);
        rv__buf_cut(&p->unsent, p->unsent.len - p->sent);
        p->sent = 0;
    }
    size_t before = p->unsent.len;
    rv__buf_str(&p->unsent, bytes);
    if (p->unsent.rc != RV_OK) {
        int rc = p->unsent.rc == RV_ETOOBIG ? RV_EBUSY : RV_ENOMEM;
        p->unsent.rc = RV_OK;
        rv__buf_cut(&p->unsent, before);
        return rc;
    }
    if (feed(p))
        return p->fds[IN] >= 0 ? RV_OK : RV_ECLOSED;
    if (p->polls[IN].data == NULL)
        return poll_fd(p, IN, UV_WRITABLE, on_writable) ? RV_OK : RV_ENOMEM;
    return uv_poll_start(&p->polls[IN], UV_WRITABLE, on_writable) == 0 ? RV_OK : RV_ENOMEM;
}

static void take_output(struct rv__process *p, struct rv__str bytes)
{
    char message[96];
    if (p->command->service) {
        if (p->command->heard != NULL)
            p->command->heard(p->command, bytes);
        return;
    }
    rv__buf_str(&p->output, bytes);
    if (p->output.rc == RV_ETOOBIG) {
        snprintf(message, sizeof message, "it wrote more than %zu bytes to stdout and was stopped",
                 p->output.max_bytes);
        stop_with_error(p, RV_ETOOBIG, message);
    } else if (p->output.rc != RV_OK) {
        stop_with_error(p, RV_ENOMEM, "no memory for its stdout");
    }
}

/* `end`: no more will come. */
static void take_words(struct rv__process *p, struct rv__str bytes, bool end)
{
    struct rv__buf masked;
    if (p->masking == NULL) {
        rv__lines_add(&p->lines, bytes);
        return;
    }
    rv__buf_init(&masked, SIZE_MAX / 2);
    rv__mask_stream_add(p->masking, bytes, &masked);
    if (end)
        rv__mask_stream_end(p->masking, &masked);
    rv__lines_add(&p->lines,
                  rv__buf_view(&masked)); /* no memory: lines are lost, but no secret is shown */
    rv__buf_done(&masked);
}

/* One read. False: nothing available, or the end; then the descriptor is closed. */
static bool take(struct rv__process *p, int which)
{
    if (p->fds[which] < 0)
        return false;
    ssize_t n = read(p->fds[which], p->all->scratch, RV__READ_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) {
        close_fd(p, which);
        return false;
    }
    struct rv__str bytes = { p->all->scratch, (size_t)n };
    if (which == OUT)
        take_output(p, bytes);
    else
        take_words(p, bytes, false);
    return true;
}

static void drain(struct rv__process *p)
{
    for (int which = OUT; which <= ERR; which++)
        for (int left = DRAIN_BYTES / RV__READ_BYTES; left > 0 && take(p, which);)
            left--;
}

static bool output_is_closed(const struct rv__process *p)
{
    return p->fds[OUT] < 0 && p->fds[ERR] < 0;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct rv__process *p = poll->data;
    (void)status;
    (void)events;
    take(p, poll == &p->polls[OUT] ? OUT : ERR);
    if (p->phase == PHASE_LINGERING && output_is_closed(p))
        finish(p);
}

static void on_line(void *arg, struct rv__str line)
{
    struct rv__process *p = arg;
    if (p->command->stderr_line != NULL)
        p->command->stderr_line(p->command, line);
}

/* --------------------------------------------------------------------------------- exit --- */

static void on_exit_seen(uv_poll_t *poll, int status, int events)
{
    struct rv__process *p = poll->data;
    siginfo_t info = { 0 };
    (void)status;
    (void)events;
    int rc = waitid(P_PIDFD, (id_t)p->fds[EXIT], &info, WEXITED | WNOHANG | WNOWAIT);
    if (rc == 0 && info.si_pid == 0)
        return; /* not yet */
    if (rc < 0) {
        p->result.end = RV__COMMAND_LOST;
        rv__fail(
            &p->result.error, RV_ESYS,
            "the host program took its exit status: it ignores SIGCHLD or waits for any child");
    } else {
        p->result.end = info.si_code == CLD_EXITED ? RV__COMMAND_EXITED : RV__COMMAND_SIGNAL;
        p->result.status = info.si_status;
    }
    p->result.ran_ms = now_ms() - p->started_ms;
    p->phase = PHASE_LINGERING;
    uv_poll_stop(&p->polls[EXIT]);
    drain(p);
    if (output_is_closed(p))
        finish(p);
    else
        set_timer(p, RV__COMMAND_LINGER_MS);
}

/* The command could write to this path: it may be anything. */
static void read_control(struct rv__process *p, struct rv__buf *control)
{
    char path[RV__CONTROL_PATH];
    struct stat st;
    rv__control_path(p->all->dir, p->control, path);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        if (errno != ENOENT) /* it removed the file: no control data */
            stop_with_error(p, RV_ESYS, "its control file cannot be read");
    } else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        stop_with_error(p, RV_EINVAL,
                        "its control file was replaced by something that is not a file");
    } else {
        ssize_t n = 1;
        while (n > 0 && control->rc == RV_OK) {
            n = read(fd, p->all->scratch, RV__READ_BYTES);
            if (n > 0)
                rv__buf_add(control, p->all->scratch, (size_t)n);
        }
        if (n < 0)
            stop_with_error(p, RV_ESYS, "its control file cannot be read");
        else if (control->rc == RV_ETOOBIG)
            stop_with_error(p, RV_ETOOBIG,
                            "it wrote too much to its control file (1 MiB is the limit)");
        else if (control->rc != RV_OK)
            stop_with_error(p, RV_ENOMEM, "no memory for its control file");
    }
    if (fd >= 0)
        close(fd);
    unlink(path); /* a directory in its place stays, and the temporary directory with it */
}

static void finish(struct rv__process *p)
{
    struct rv__processes *all = p->all;
    struct rv__command *command = p->command;
    struct rv__buf control;
    siginfo_t info;

    signal_group(p, SIGKILL); /* its first process is a zombie, so the group still has its number */
    drain(p);
    take_words(p, (struct rv__str){ "", 0 }, true);
    rv__lines_end(&p->lines);
    rv__warden_end(all->warden.socket, p->pid);
    waitid(P_PIDFD, (id_t)p->fds[EXIT], &info, WEXITED | WNOHANG);
    p->phase = PHASE_OVER;
    rv__buf_init(&control, RV__COMMAND_CONTROL);
    read_control(p, &control);
    for (int i = 0; i < FDS; i++)
        close_fd(p, i);
    uv_close((uv_handle_t *)&p->timer, on_closed);

    p->result.output = rv__buf_view(&p->output);
    p->result.tail = rv__lines_tail(&p->lines);
    p->result.control = rv__buf_view(&control);
    p->command = NULL;
    all->over(all->arg, command, &p->result);

    rv__buf_done(&control);
    rv__buf_done(&p->output);
    rv__buf_done(&p->unsent);
    rv__lines_done(&p->lines);
    rv__mask_stream_free(p->masking);
}

/* -------------------------------------------------------------------------------- start --- */

/* theirs: the child's ends, ours: p->fds. All or nothing. */
static int open_pipes(struct rv__process *p, int theirs[3], rv_error *err)
{
    int pair[2];
    for (int i = IN; i <= ERR; i++) {
        if (i == IN && p->command->input.len == 0 && !p->command->service) {
            theirs[i] = p->all->null_fd;
            continue;
        }
        if (i == OUT && p->command->output_file != NULL) {
            theirs[i] = *p->command->output_file;
            continue;
        }
        if (rv__fd_pipe(pair) < 0)
            return rv__fail(err, errno == EMFILE || errno == ENFILE ? RV_EBUSY : RV_ESYS,
                            "cannot make a pipe for '%s': %s", p->command->argv[0],
                            strerrordesc_np(errno));
        theirs[i] = pair[i == IN ? 0 : 1];
        p->fds[i] = pair[i == IN ? 1 : 0];
        fcntl(p->fds[i], F_SETFL, O_NONBLOCK);
    }
    return RV_OK;
}

static int spawn(struct rv__process *p, rv_error *err)
{
    struct rv__processes *all = p->all;
    struct rv__command *command = p->command;
    char control[RV__CONTROL_PATH];
    int theirs[3] = { -1, -1, -1 };

    int rc = open_pipes(p, theirs, err);
    if (rc == RV_OK) {
        p->control = all->controls++;
        rv__control_path(all->dir, p->control, control);
        struct rv__spawn s = { .argv = command->argv,
                               .env = command->env,
                               .inherited = command->inherited != NULL ? command->inherited
                                                                       : all->env,
                               .cwd = command->cwd,
                               .control = control,
                               .control_number = p->control,
                               .in = theirs[0],
                               .out = theirs[1],
                               .err = theirs[2],
                               .warden = all->warden.socket,
                               .room = all->room };
        rc = rv__spawn(&s, &all->arena, &p->pid, &p->fds[EXIT], err);
        rv__arena_reset(&all->arena);
    }
    for (int i = 0; i < 3; i++)
        if (theirs[i] >= 0 && theirs[i] != all->null_fd &&
            !(i == OUT && command->output_file != NULL))
            close(theirs[i]);
    return rc;
}

/* Watch the descriptors. Most inputs fit into the pipe, which then needs no watching. False: no more descriptors
 * can be watched. */
static bool attach(struct rv__process *p)
{
    if (p->fds[IN] >= 0 && !feed(p) && !poll_fd(p, IN, UV_WRITABLE, on_writable))
        return false;
    return (p->fds[OUT] < 0 || poll_fd(p, OUT, UV_READABLE, on_readable)) &&
           poll_fd(p, ERR, UV_READABLE, on_readable) && poll_fd(p, EXIT, UV_READABLE, on_exit_seen);
}

int rv__process_start(struct rv__processes *all, struct rv__command *command,
                      struct rv__process **ret, rv_error *err)
{
    struct rv__process *p = rv__zalloc(1, sizeof *p);
    if (p == NULL)
        return rv__nomem(err);
    p->all = all;
    p->command = command;
    for (int i = 0; i < FDS; i++)
        p->fds[i] = -1;
    rv__buf_init(&p->output, command->max_output > 0 ? command->max_output : RV__COMMAND_OUTPUT);
    rv__buf_init(&p->unsent, RV__SERVICE_UNREAD);
    rv__lines_init(&p->lines, on_line, p);

    int rc = command->mask != NULL ? rv__mask_stream_new(command->mask, &p->masking, err) : RV_OK;
    if (rc == RV_OK)
        rc = spawn(p, err);
    if (rc < 0) {
        rv__mask_stream_free(p->masking);
        for (int i = 0; i < FDS; i++)
            close_fd(p, i);
        rv__free(p);
        return rc;
    }
    p->started_ms = now_ms();
    uv_timer_init(all->loop, &p->timer); /* cannot fail */
    p->timer.data = p;
    p->handles = 1;
    if (command->timeout_ms > 0)
        set_timer(p, command->timeout_ms);
    if (!attach(p)) {
        /* It runs, but its end could not be seen: kill it now. */
        siginfo_t info;
        signal_group(p, SIGKILL);
        waitid(P_PIDFD, (id_t)p->fds[EXIT], &info, WEXITED | WNOWAIT);
        p->result.end = RV__COMMAND_SIGNAL;
        p->result.status = SIGKILL;
        p->phase = PHASE_LINGERING;
        stop_with_error(p, RV_ESYS, "the I/O loop cannot watch more descriptors");
        set_timer(p, 0);
    }
    *ret = p;
    return RV_OK;
}
