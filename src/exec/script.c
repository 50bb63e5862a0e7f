/* script.c: starts, supervises and restarts the Node.js process for the workflow files of one folder.
 *
 *   starting ──hello, register──▶ ready ──it dies, or is silent──▶ waiting (100 ms, then longer) ──▶ starting
 *      │ the first time: no Node.js, no package, a file that ends the process            │ told to stop
 *      └────────────────────────────▶ over ◀────────────────────────────────────────────┘
 *
 * Its own thread reads the `register` frame, hands the connection to the owner, who runs steps through it, and
 * waits for the end of the process. The parent-death signal is tied to that thread, which lives as long as the
 * process. A failure of the first start is an error of the files, and is not tried again; a process that dies later
 * is restarted.
 *
 * Its output goes to our standard error: many steps run in it at once, and lines cannot be assigned to one of them. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "exec/launch.h"

#include <rival-paths.h> /* made by the build: the paths of the sources and of the installation */

enum {
    PATH_BYTES = 4096,
    DESCRIBE_MS = 60000, /* for importing all files */
    TICK_MS = 500,       /* how often `judge` is called */
    PATIENCE_MS = 2000,  /* for a process that was asked to end */
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MOST_MS = 10000,
    STEADY_MS = 10000, /* after this time the pauses start again with the first */
    PRINTED_BYTES = 65536,
};

#define HOST "/dist/host/main.js" /* in the package */

struct rv__script_kept {
    struct rv__child child;
    struct rv__buf hello, text; /* the frames that it sent */
};

struct rv__script {
    struct rv__script_opts opts;  /* the texts are the script's own copies; `kept` is not used */
    struct rv__script_kept *kept; /* its first process; NULL: taken, or there is none */
    char host[PATH_BYTES];
    pthread_t thread;
    int wake; /* an eventfd: something has changed */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock: */
    bool described, over, stop;
    struct rv__buf text;
    rv_error why;
};

/* -------------------------------------------------------------------------- where things are --- */

static bool has_host(const char *folder, char host[PATH_BYTES])
{
    return *folder != '\0' && snprintf(host, PATH_BYTES, "%s" HOST, folder) < PATH_BYTES &&
           access(host, R_OK) == 0;
}

/* node_modules/rival in the folder, or in a parent: as Node searches. */
static bool installed_above(const char *folder, char host[PATH_BYTES])
{
    char at[PATH_BYTES], package[PATH_BYTES + 32];
    if (snprintf(at, sizeof at, "%s", folder) >= (int)sizeof at)
        return false;
    for (;;) {
        snprintf(package, sizeof package, "%s/node_modules/rival", at);
        if (has_host(package, host))
            return true;
        char *slash = strrchr(at, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
    }
}

/* Beside our program or library: <prefix>/bin, <prefix>/lib/<machine>, build/. */
static bool installed_beside(char host[PATH_BYTES])
{
    static const char *const places[] = { "../lib/rival/node", "../rival/node", "rival/node",
                                          "../sdk/node" };
    Dl_info info;
    char package[PATH_BYTES];
    if (dladdr((void *)(uintptr_t)rv__script_host, &info) == 0 || info.dli_fname == NULL)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int len = slash != NULL ? (int)(slash - info.dli_fname) + 1 : 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(package, sizeof package, "%.*s%s", len, info.dli_fname, places[i]);
        if (has_host(package, host))
            return true;
    }
    return false;
}

int rv__script_host(const char *folder, char host[RV__SCRIPT_PATH], rv_error *err)
{
    const char *said = getenv("RIVAL_SDK");
    if (said != NULL && *said != '\0') {
        if (has_host(said, host))
            return RV_OK;
        return rv__fail(
            err, RV_ENOTFOUND,
            "RIVAL_SDK is '%.120s', which is not the npm package 'rival' (it has no " HOST ")",
            said);
    }
    if (installed_above(folder, host) || installed_beside(host) ||
        has_host(RV__INSTALLED_SDK, host) || has_host(RV__SOURCE_SDK, host))
        return RV_OK;
    return rv__fail(err, RV_ENOTFOUND,
                    "workflows in TypeScript and JavaScript need the npm package 'rival', which "
                    "was not found: run `npm install rival` "
                    "beside them, or name its folder in RIVAL_SDK");
}

/* ------------------------------------------------------------------------------- one process --- */

/* Copy its output to stderr. */
static void pass_on(struct rv__child *child)
{
    char bytes[PRINTED_BYTES];
    ssize_t n = child->out >= 0 ? read(child->out, bytes, sizeof bytes) : 0;
    if (n > 0) {
        (void)!write(STDERR_FILENO, bytes, (size_t)n); /* for people; errors are ignored */
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        if (child->out >= 0)
            close(child->out);
        child->out = -1;
    }
}

static void ask_for(const struct rv__script_opts *opts, struct rv__buf *out)
{
    size_t start = rv__wire_begin(out, FRAME_CALL);
    rv__wire_text(out, "method", rv__str("load"));
    rv__wire_json(out, "files", rv__str(opts->files));
    if (opts->parse)
        rv__wire_json(out, "parse", rv__str("true"));
    rv__wire_end(out, start);
}

/* Take a frame of the process. 1: it was the last one. */
static int take_frame(const struct rv__frame *frame, struct rv__buf *hello, struct rv__buf *text,
                      rv_error *err)
{
    struct rv__str message;
    struct rv__arena arena;
    if (frame->type == FRAME_HELLO) {
        rv__buf_str(hello, frame->json);
        return hello->rc < 0 ? rv__nomem(err) : 0;
    }
    if (frame->type == FRAME_REGISTER && hello->len > 0) {
        rv__buf_str(text, frame->json);
        return text->rc < 0 ? rv__nomem(err) : 1;
    }
    rv__frame_members(frame, (const char *[]){ "message" }, &message, 1);
    rv__arena_init(&arena, RV__JSON_MAX_BYTES);
    if (frame->type != FRAME_ERROR || rv__str_none(message) ||
        rv__json_string(message, &arena, &message) < 0)
        message = rv__str("it sent a frame that it may not send");
    int rc = rv__fail(err, RV_EINVAL, "%.*s", RV__ARG(message));
    rv__arena_done(&arena);
    return rc;
}

static int has_ended(struct rv__child *child, rv_error *err)
{
    char how[100];
    rv__child_tell(rv__child_reap(child, PATIENCE_MS), how, sizeof how);
    child->pid = 0;
    return rv__fail(err, RV_EINVAL,
                    "Node.js %s while it loaded the files: what it printed says why", how);
}

/* Read frames until `register`. `wake`: -1, or a descriptor that is readable when we must stop: RV_ECANCELED. After
 * a failure the process may already be reaped: then pid is 0. */
static int listen_to(struct rv__child *child, int wake, struct rv__buf *hello, struct rv__buf *text,
                     rv_error *err)
{
    struct rv__frames frames;
    struct rv__frame frame;
    int64_t until_ms = rv__mono_ms(rv__clock_real()) + DESCRIBE_MS;
    int rc = 0;
    rv__frames_init(&frames);
    while (rc == 0) {
        struct pollfd at[] = { { .fd = child->fd, .events = POLLIN },
                               { .fd = child->out, .events = POLLIN },
                               { .fd = wake, .events = POLLIN } };
        int64_t left_ms = until_ms - rv__mono_ms(rv__clock_real());
        int n = left_ms > 0 ? poll(at, 3, (int)left_ms) : 0;
        if (n == 0) {
            rc = rv__fail(err, RV_ETIMEDOUT,
                          "the files were not loaded within %d s: does one of them wait for "
                          "something, or start a server, when it is imported?",
                          DESCRIBE_MS / 1000);
            break;
        }
        if (n < 0)
            continue; /* interrupted by a signal */
        if (at[1].revents != 0)
            pass_on(child);
        if (at[2].revents != 0) {
            rc = rv__fail(err, RV_ECANCELED, "it was stopped before its files were loaded");
            break;
        }
        int got = at[0].revents != 0 ? rv__frames_read(&frames, child->fd) : 0;
        while (rc == 0 && (rc = rv__frames_next(&frames, &frame, err)) == 1)
            rc = take_frame(&frame, hello, text, err);
        if (rc == 0 && got < 0)
            rc = got == RV_ENOMEM ? rv__nomem(err) : has_ended(child, err);
    }
    rv__frames_done(&frames);
    return rc == 1 ? RV_OK : rc;
}

/* Start the process and ask it. Errors: RV_ENOTFOUND, RV_ESYS. */
static int begin(const struct rv__script_opts *opts, const char *host, struct rv__child *child,
                 rv_error *err)
{
    struct rv__buf program, out;
    rv__buf_init(&program, PATH_BYTES);
    rv__buf_init(&out, RV__FRAME_MAX);
    int rc = rv__hosts_program(&program, err);
    if (rc == RV_OK)
        rc = rv__child_start(program.text, "host", host, 0, child, err);
    if (rc == RV_OK) {
        ask_for(opts, &out);
        if (out.rc == RV_OK)
            (void)rv__frames_send(child->fd, &out); /* a failure shows when we read */
        else
            rc = rv__fail(err, RV_ETOOBIG, "too many files for one folder");
        if (rc < 0)
            (void)rv__child_reap(child, 0);
    }
    rv__buf_done(&program);
    rv__buf_done(&out);
    return rc;
}

void rv__script_kept_free(struct rv__script_kept *kept)
{
    if (kept == NULL)
        return;
    pass_on(&kept->child);
    if (kept->child.pid != 0)
        (void)rv__child_reap(&kept->child, 0);
    rv__buf_done(&kept->hello);
    rv__buf_done(&kept->text);
    rv__free(kept);
}

int rv__script_describe(const struct rv__script_opts *opts, struct rv__buf *text,
                        struct rv__script_kept **kept, rv_error *err)
{
    char host[PATH_BYTES];
    struct rv__script_kept *made = rv__zalloc(1, sizeof *made);
    if (made == NULL)
        return rv__nomem(err);
    int rc = rv__script_host(opts->folder, host, err);
    if (rc == RV_OK)
        rc = begin(opts, host, &made->child, err);
    if (rc < 0) {
        rv__free(made);
        return rc;
    }
    rv__buf_init(&made->hello, RV__FRAME_MAX);
    rv__buf_init(&made->text, RV__FRAME_MAX);
    rc = listen_to(&made->child, -1, &made->hello, &made->text, err);
    if (rc == RV_OK)
        rv__buf_str(text, rv__buf_view(&made->text));
    if (rc == RV_OK && text->rc < 0)
        rc = rv__nomem(err);
    if (rc < 0 || kept == NULL)
        rv__script_kept_free(made);
    else
        *kept = made;
    return rc;
}

/* ------------------------------------------------------------------------------ supervision --- */

static bool is_told_to_stop(struct rv__script *s)
{
    pthread_mutex_lock(&s->lock);
    bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

static void tell_described(struct rv__script *s, struct rv__buf *text)
{
    pthread_mutex_lock(&s->lock);
    if (!s->described) {
        rv__buf_done(&s->text);
        s->text = *text;
        rv__buf_init(text, RV__FRAME_MAX);
    }
    s->described = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Wait for its end, or until `judge` says so. True: start it again. */
static bool watch(struct rv__script *s, struct rv__child *child)
{
    for (;;) {
        struct pollfd at[] = { { .fd = child->pidfd, .events = POLLIN },
                               { .fd = child->out, .events = POLLIN },
                               { .fd = s->wake, .events = POLLIN } };
        (void)poll(at, 3, TICK_MS); /* a signal counts as a tick */
        if (at[1].revents != 0)
            pass_on(child);
        if (is_told_to_stop(s) || rv__child_ended(child))
            return !is_told_to_stop(s);
        switch (s->opts.judge(s->opts.arg)) {
        case RV__SCRIPT_GOES_ON: break;
        case RV__SCRIPT_HANGS: return true;
        case RV__SCRIPT_IS_OVER: return false;
        }
    }
}

/* One process, from start to end. True: start another one. */
static bool live(struct rv__script *s, bool first, bool *steady)
{
    struct rv__child child;
    struct rv__buf hello, text;
    rv_error err;
    int64_t began_ms = rv__mono_ms(rv__clock_real());
    struct rv__script_kept *kept = s->kept;
    s->kept = NULL;
    int rc = kept != NULL ? RV_OK : begin(&s->opts, s->host, &child, &err);
    bool again = !first;
    if (kept != NULL) { /* it has described its files */
        child = kept->child;
        hello = kept->hello;
        text = kept->text;
        rv__free(kept);
    } else {
        rv__buf_init(&hello, RV__FRAME_MAX);
        rv__buf_init(&text, RV__FRAME_MAX);
    }
    if (rc == RV_OK) {
        rc = text.len > 0 ? RV_OK : listen_to(&child, s->wake, &hello, &text, &err);
        if (rc == RV_OK) {
            struct rv__frame frame = { FRAME_HELLO, rv__buf_view(&hello) };
            tell_described(s, &text);
            int fd = child.fd;
            child.fd = -1; /* the owner's from now on */
            s->opts.ready(s->opts.arg, fd, child.pid, &frame);
            again = watch(s, &child);
        }
        pass_on(&child);
        if (child.pid != 0) {
            if (!rv__child_ended(&child))
                rv__child_signal(&child, SIGTERM);
            (void)rv__child_reap(&child, again ? 0 : PATIENCE_MS);
        }
    }
    if (rc < 0) {
        pthread_mutex_lock(&s->lock);
        s->why = err;
        pthread_mutex_unlock(&s->lock);
    }
    *steady = rv__mono_ms(rv__clock_real()) - began_ms >= STEADY_MS;
    rv__buf_done(&hello);
    rv__buf_done(&text);
    return again && !is_told_to_stop(s);
}

static void *supervise(void *arg)
{
    struct rv__script *s = arg;
    int64_t pause_ms = 0;
    bool steady = false;
    for (bool again = live(s, true, &steady); again; again = live(s, false, &steady)) {
        struct pollfd at = { .fd = s->wake, .events = POLLIN };
        pause_ms = steady || pause_ms == 0 ? BACKOFF_FIRST_MS : pause_ms * 2;
        pause_ms = pause_ms > BACKOFF_MOST_MS ? BACKOFF_MOST_MS : pause_ms;
        (void)poll(&at, 1, (int)pause_ms);
        if (is_told_to_stop(s))
            break;
    }
    pthread_mutex_lock(&s->lock);
    s->over = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *made = rv__alloc(size);
    if (made != NULL)
        memcpy(made, text, size);
    return made;
}

static void script_free(struct rv__script *s)
{
    if (s->wake >= 0)
        close(s->wake);
    rv__buf_done(&s->text);
    rv__free((void *)(uintptr_t)s->opts.folder);
    rv__free((void *)(uintptr_t)s->opts.files);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    rv__free(s);
}

int rv__script_new(const struct rv__script_opts *opts, struct rv__script **ret, rv_error *err)
{
    sigset_t all, before;
    struct rv__script *s = rv__zalloc(1, sizeof *s);
    if (s == NULL)
        return rv__nomem(err);
    pthread_mutex_init(&s->lock, NULL); /* on Linux neither can fail */
    pthread_cond_init(&s->changed, NULL);
    rv__buf_init(&s->text, RV__FRAME_MAX);
    s->opts = *opts;
    s->opts.folder = copy(opts->folder);
    s->opts.files = copy(opts->files);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = s->opts.folder == NULL || s->opts.files == NULL ? rv__nomem(err) : RV_OK;
    if (rc == RV_OK && s->wake < 0)
        rc = rv__fail(err, RV_ESYS, "no descriptor for a Node host: %m");
    if (rc == RV_OK)
        rc = rv__script_host(opts->folder, s->host, err);
    if (rc == RV_OK && opts->kept != NULL) {
        s->kept = *opts->kept;
        *opts->kept = NULL;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (rc == RV_OK && pthread_create(&s->thread, NULL, supervise, s) != 0)
        rc = rv__fail(err, RV_ESYS, "no thread for a Node host");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc < 0) {
        if (opts->kept != NULL && s->kept != NULL) /* it was taken a moment ago */
            *opts->kept = s->kept;
        script_free(s);
        return rc;
    }
    *ret = s;
    return RV_OK;
}

int rv__script_wait(struct rv__script *s, struct rv__str *text, rv_error *err)
{
    pthread_mutex_lock(&s->lock);
    while (!s->described && !s->over)
        pthread_cond_wait(&s->changed, &s->lock);
    int rc = s->described ? RV_OK : s->why.code;
    if (rc < 0 && err != NULL)
        *err = s->why;
    pthread_mutex_unlock(&s->lock);
    if (rc == RV_OK)
        *text = rv__buf_view(&s->text); /* written once, before this */
    return rc;
}

void rv__script_stop(struct rv__script *s)
{
    uint64_t one = 1;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_mutex_unlock(&s->lock);
    (void)!write(s->wake, &one, sizeof one); /* full only if it is already awake */
}

bool rv__script_is_over(struct rv__script *s)
{
    pthread_mutex_lock(&s->lock);
    bool over = s->over;
    pthread_mutex_unlock(&s->lock);
    return over;
}

void rv__script_free(struct rv__script *s)
{
    if (s == NULL)
        return;
    rv__script_stop(s);
    pthread_join(s->thread, NULL);
    script_free(s);
}
