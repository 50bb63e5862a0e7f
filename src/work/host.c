/* host.c: a host process: loads one workflow file and runs its functions, one at a time.
 *
 *   hello, register ──▶ idle ──invoke──▶ the function runs: get/value, log ──result, error──▶ idle
 *                        └── the engine closes the connection: it exits
 *
 * rv_ctx is the same as in the engine's process; its source is this file: what the function sees comes in frames.
 * Small values come with `invoke`; others are requested when they are first needed. Values that other invocations
 * may need, too, are cached here under the slot number that the engine gave them.
 *
 * A host has one thread. It looks for a cancel only when the step asks (rv_ctx_cancelled); a step that takes its
 * token (rv_ctx_token) gets a second thread that listens for it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "define/define.h"
#include "work/remote_ctx.h"

enum {
    FD = 3, /* the connection to the engine */
    LISTEN_EVERY_NS = 1000000,
    SIGNAL_STACK = 64 << 10,
};

struct host {
    struct rv__remote_ctx remote; /* first: the current invocation */
    struct rv__table table;
    struct rv__frames frames;
    pthread_mutex_t lock; /* for reading: by the step's thread, and by the listener */
    struct rv__buf out;
    struct rv__slots slots;
    int64_t listened_ns;
    bool listening;
    pthread_t listener;
    int wake; /* an eventfd: tells the listener to end */
};

static _Noreturn void leave(int code)
{
    _exit(code); /* does not run what the file has registered with atexit() */
}

static void send_out(struct host *host)
{
    if (rv__buf_err(&host->out, NULL) < 0 || rv__frames_send(FD, &host->out) < 0)
        leave(1);
    rv__buf_reset(&host->out);
}

/* ---------------------------------------------------------------------------------- reading --- */

/* Wait for input and read it. Exits if the engine has ended. */
static void read_more(struct host *host)
{
    struct pollfd p = { .fd = FD, .events = POLLIN };
    (void)poll(&p, 1, -1); /* interrupted: nothing is there, and we are asked again */
    if (rv__frames_read(&host->frames, FD) < 0)
        leave(0);
}

/* 1: a frame; 0: none is complete. */
static int next_frame(struct host *host, struct rv__frame *frame)
{
    int rc = rv__frames_next(&host->frames, frame, NULL);
    if (rc < 0)
        leave(1); /* a protocol error */
    return rc;
}

/* A frame that is not an answer. A cancel of an earlier step may come late: it has crossed the answer. */
static void take_aside(struct host *host, const struct rv__frame *frame)
{
    struct rv__str id;
    if (frame->type == FRAME_FORGET)
        rv__slots_forget(&host->slots);
    if (frame->type != FRAME_CANCEL || host->remote.ctx.work.token == NULL)
        return;
    rv__frame_members(frame, (const char *[]){ "id" }, &id, 1);
    if (!rv__str_none(id) && rv__json_string_is(id, rv__str(host->remote.id)))
        rv_cancel_fire(host->remote.ctx.work.token, RV_ECANCELED, "the engine asked it to stop");
}

static void look(struct host *host) /* under the lock */
{
    struct rv__frame frame;
    int rc;
    while ((rc = rv__frames_read(&host->frames, FD)) == 1)
        while (next_frame(host, &frame) == 1)
            take_aside(host, &frame);
    if (rc < 0)
        leave(0);
}

static void *listen_main(void *arg)
{
    struct host *host = arg;
    struct pollfd p[] = { { .fd = FD, .events = POLLIN }, { .fd = host->wake, .events = POLLIN } };
    for (;;) {
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[1].revents & POLLIN)
            return NULL;
        pthread_mutex_lock(&host->lock); /* the step may be reading its answer */
        look(host);
        pthread_mutex_unlock(&host->lock);
    }
}

static void host_listen(rv_ctx *ctx, bool keep)
{
    struct host *host = (struct host *)ctx;
    if (host->listening)
        return;
    if (keep) {
        host->listening = pthread_create(&host->listener, NULL, listen_main, host) == 0;
        if (host->listening)
            return;
    }
    int64_t now_ns = rv__mono_ns(rv__clock_real());
    if (now_ns - host->listened_ns < LISTEN_EVERY_NS) /* a step may ask in a tight loop */
        return;
    host->listened_ns = now_ns;
    pthread_mutex_lock(&host->lock);
    look(host);
    pthread_mutex_unlock(&host->lock);
}

static void stop_listening(struct host *host)
{
    eventfd_t ignored;
    if (!host->listening)
        return;
    (void)!eventfd_write(host->wake, 1); /* cannot be full */
    pthread_join(host->listener, NULL);
    (void)!eventfd_read(host->wake, &ignored);
    host->listening = false;
}

/* ---------------------------------------------------------------------------------- seeing --- */

/* Ask the engine. */
static int fetch(struct rv__remote_ctx *remote, struct rv__shown *shown)
{
    struct host *host = (struct host *)remote;
    struct rv__frame frame;
    bool got = false;
    rv__remote_ctx_put_get(remote, shown, &host->out);
    pthread_mutex_lock(&host->lock);
    send_out(host);
    while (!got) {
        while (!got && next_frame(host, &frame) == 1) {
            if (frame.type != FRAME_VALUE) {
                take_aside(host, &frame);
                continue;
            }
            if (rv__remote_ctx_value(remote, &frame, &host->slots, shown) < 0)
                leave(1); /* its engine will say so */
            got = true;
        }
        if (!got)
            read_more(host);
    }
    pthread_mutex_unlock(&host->lock);
    return RV_OK;
}

static void host_log(rv_ctx *ctx, int level, struct rv__str message, struct rv__str metadata)
{
    struct host *host = (struct host *)ctx;
    rv__remote_ctx_put_log(&host->remote, level, message, metadata, &host->out);
    send_out(host);
}

static const struct rv__source host_source = {
    .see = rv__remote_ctx_see, .who = rv__remote_ctx_who, .log = host_log, .listen = host_listen
};

/* ---------------------------------------------------------------------------------- running --- */

static void invoke(struct host *host, const struct rv__frame *frame)
{
    struct rv__remote_ctx *remote = &host->remote;
    if (rv__remote_ctx_take(remote, frame, &host->slots, &host_source) < 0)
        leave(1);
    remote->fetch = fetch;
    host->listened_ns = 0;
    remote->ctx.fn = rv__table_find(&host->table, remote->function);
    rv__remote_ctx_run(remote);
    stop_listening(host);
    (void)fflush(stdout); /* into its log, before its end is reported */
    rv__remote_ctx_put_answer(remote, &host->out);
    send_out(host);
    rv__remote_ctx_done(remote);
}

/* ------------------------------------------------------------------------------- beginning --- */

/* Before a signal ends the process, report whether memory had been refused just before, which
 * nobody can see from outside. Then the signal again, no longer caught: it waits until we return, and
 * ends the process where it was. A fault would come again by itself, but one that a step raises, or
 * somebody sends, would not. Only what may be called in a signal handler. */
static void last_words(int number)
{
    static const char refused[] = "\0\0\0\x22{\"type\":\"dying\",\"noMemory\":true } ";
    if (errno == ENOMEM)
        (void)!write(FD, refused, sizeof refused - 1);
    (void)raise(number);
}

static void catch_signals(void)
{
    static char stack[SIGNAL_STACK]; /* one that overflowed is of no use */
    static const int caught[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
    stack_t alternative = { .ss_sp = stack, .ss_size = sizeof stack };
    struct sigaction action = { .sa_handler = last_words,
                                .sa_flags = SA_ONSTACK | (int)SA_RESETHAND };
    (void)sigaltstack(&alternative, NULL);
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        (void)sigaction(caught[i], &action, NULL); /* without it only the words are missing */
}

static void say_hello(struct host *host)
{
    size_t start = rv__wire_begin(&host->out, FRAME_HELLO);
    rv__wire_int(&host->out, "protocol", RV__PROTOCOL);
    rv__wire_text(&host->out, "role", rv__str("worker"));
    rv__wire_int(&host->out, "credits", 1);
    rv__wire_int(&host->out, "pid", getpid());
    rv__wire_text(&host->out, "version", rv__str(rv_version()));
    rv__wire_end(&host->out, start);
    send_out(host);
}

static int load(struct host *host, const char *module, rv_error *err)
{
    char opened[40];
    int fd = rv__cfile_open(module, err);
    if (fd < 0)
        return fd;
    snprintf(opened, sizeof opened, "/proc/self/fd/%d", fd);
    void *handle = dlopen(fd > 0 ? opened : module, RTLD_NOW | RTLD_LOCAL);
    if (fd > 0)
        close(fd);
    if (handle == NULL)
        return rv__fail(err, RV_EINVAL, "it cannot be loaded: %s", dlerror());
    return rv__table_load(handle, &host->table, err);
}

static void say_register(struct host *host)
{
    size_t start = rv__wire_begin(&host->out, FRAME_REGISTER);
    if (host->table.plan.len > 0) /* else it is a library */
        rv__wire_json(&host->out, "plan", rv__buf_view(&host->table.plan));
    rv__buf_text(&host->out, ",\"functions\":[");
    for (const struct rv__named_fn *f = host->table.functions; f != NULL; f = f->next) {
        if (f != host->table.functions)
            rv__buf_char(&host->out, ',');
        rv__buf_json_str(&host->out, f->name);
    }
    rv__buf_char(&host->out, ']');
    rv__wire_end(&host->out, start);
    send_out(host);
}

static void say_broken(struct host *host, const rv_error *err)
{
    size_t start = rv__wire_begin(&host->out, FRAME_ERROR);
    rv__buf_text(&host->out, ",\"error\":{\"message\":");
    rv__buf_json_str(&host->out, rv__str(err->message));
    rv__buf_char(&host->out, '}');
    rv__wire_end(&host->out, start);
    send_out(host);
}

static void limit_memory(uint64_t bytes)
{
    struct rlimit limit = { bytes, bytes };
    if (bytes > 0)
        (void)setrlimit(RLIMIT_AS, &limit); /* refused only where a smaller one is set already */
}

/* Workflow files in TypeScript: this process becomes Node.js, which speaks for itself (sdk/node/src/host). It keeps the signal that ends
 * it with the engine. */
static int become_node(const char *script)
{
    const char *node = getenv("RIVAL_NODE");
    struct host *host = rv__zalloc(1, sizeof *host);
    rv_error err;
    if (node == NULL || *node == '\0')
        node = "node";
    (void)execlp(node, "node", "--no-warnings", script, (char *)NULL);
    if (errno == ENOENT && getenv("RIVAL_NODE") == NULL)
        (void)rv__fail(&err, RV_ENOTFOUND,
                       "workflows in TypeScript and JavaScript need Node.js 20.6 or newer, which "
                       "was not found: install it in PATH, or "
                       "name it in RIVAL_NODE");
    else
        (void)rv__fail(&err, RV_ESYS, "Node.js cannot be run as '%.120s': %m", node);
    if (host == NULL)
        return 1;
    rv__buf_init(&host->out, SIZE_MAX / 2);
    size_t start = rv__wire_begin(&host->out, FRAME_ERROR);
    rv__wire_text(&host->out, "message", rv__str(err.message));
    rv__wire_end(&host->out, start);
    send_out(host);
    return 1;
}

static bool is_script(const char *module)
{
    size_t len = strlen(module);
    return len > 3 && strcmp(module + len - 3, ".js") == 0;
}

int rv_host_main(int argc, char **argv)
{
    rv_error err;
    struct rv__frame frame;
    if (argc != 4 || fcntl(FD, F_SETFD, is_script(argv[1]) ? 0 : FD_CLOEXEC) < 0) {
        fprintf(stderr, "rival host: it is started by an engine, to run the steps of a file\n");
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(argv[2], NULL, 10))
        return 1; /* the engine has died already */
    if (is_script(argv[1]))
        return become_node(argv[1]);

    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* its steps' logs: line by line */
    struct host *host = rv__zalloc(1, sizeof *host);
    if (host == NULL)
        return 1;
    pthread_mutex_init(&host->lock, NULL);
    rv__frames_init(&host->frames);
    rv__buf_init(&host->out, SIZE_MAX / 2);
    host->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    say_hello(host);
    if (host->wake < 0 || load(host, argv[1], &err) < 0) {
        say_broken(host, &err);
        leave(1);
    }
    say_register(host);
    catch_signals();
    limit_memory(strtoull(argv[3], NULL, 10));
    for (;;) {
        while (next_frame(host, &frame) == 1) {
            if (frame.type == FRAME_INVOKE)
                invoke(host, &frame);
            else if (frame.type == FRAME_PING) {
                rv__wire_end(&host->out, rv__wire_begin(&host->out, FRAME_PONG));
                send_out(host);
            } else {
                take_aside(host, &frame);
            }
        }
        read_more(host);
    }
}
