/* worker.c: a pool of host processes, and the conversations with them.
 *
 *   none ──start──▶ busy ◀──────▶ idle ──too long, or its place is needed──▶ none
 *                     └──died, killed, said what it may not──────────────────▶ none
 *
 * A host runs the functions of one module, one at a time. So whoever was in it when it died is to blame,
 * and nobody else is touched. The thread that wants something done speaks with the host itself, and waits:
 * one poll for what the host says, for a cancel, and for its death. Threads that wait are cheap beside
 * the processes they wait for; the road not taken, one thread with an event loop for all hosts, would
 * assemble the values they ask for one after the other.
 *
 * One more thread, the starter, lives as long as the pool: hosts are started by it (see launch.c), and
 * those that were idle for long are ended by it. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "exec/launch.h"
#include "exec/lines.h"

enum {
    LEAST_HOSTS = 4,
    IDLE_MS = 30000,       /* a host without work ends after this */
    PATIENCE_MS = 1000,    /* for one that hung up to end by itself, and tell how */
    PRINTED_BYTES = 65536, /* read at once of what it prints: what a pipe holds */
    SKIP_MOST = 64,        /* who waits for a host of another module is passed over so often */
    DEFAULT_TERM_MS = 1000,
    DEFAULT_KILL_MS = 2000,
};

struct rv__host {
    struct rv__host *next;
    struct rv__hosts *hosts;
    struct rv__child process;
    int wake; /* an eventfd: whoever speaks with it is to look around */
    struct rv__frames frames;
    struct rv__buf out;
    size_t sent;
    int64_t idle_since_ms;
    bool no_memory; /* its last words: memory had been refused */
    struct rv__kept kept;
    char module[]; /* its path */
};

/* Somebody needs a host: on the stack of who waits. */
struct request {
    struct request *next;
    pthread_cond_t served;
    struct rv__host *host; /* made, without a process */
    bool done;
    int rc;
    rv_error err;
};

/* Somebody who wants something done: waits for a host, or speaks with one. On its stack. */
struct waiter {
    struct rv__cancel_watch watch; /* first */
    struct waiter *next;
    struct rv__hosts *hosts;
    const char *module;
    pthread_cond_t look;
    struct rv__host *host;
    bool woken; /* there may be room for a host now */
    bool fired; /* its token */
};

struct rv__hosts {
    struct rv__hosts_opts opts;
    char *program;
    pthread_t starter;
    pthread_mutex_t lock;
    pthread_cond_t wanted;        /* for the starter */
    struct waiter *first, **last; /* who waits for a host, in order */
    int skipped;                  /* times that another than the first was served */
    struct request *requests;
    struct rv__host *idle; /* the last used first */
    int count;             /* busy, idle, or about to be */
    bool closing, stop;
};

/* ------------------------------------------------------------------------------- one host --- */

struct rv__kept *rv__host_kept(struct rv__host *host)
{
    return &host->kept;
}

static void host_free(struct rv__host *host)
{
    rv__kept_forget(&host->kept);
    if (host->wake >= 0)
        close(host->wake);
    rv__frames_done(&host->frames);
    rv__buf_done(&host->out);
    rv__free(host);
}

static struct rv__host *host_new(struct rv__hosts *hosts, const char *module)
{
    size_t len = strlen(module) + 1;
    struct rv__host *host = rv__zalloc(1, sizeof *host + len);
    if (host == NULL)
        return NULL;
    memcpy(host->module, module, len);
    host->hosts = hosts;
    rv__frames_init(&host->frames);
    rv__buf_init(&host->out, SIZE_MAX / 2); /* of frames, which have their own bound */
    host->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host->wake < 0) {
        host_free(host);
        return NULL;
    }
    return host;
}

static void wake_first(struct rv__hosts *hosts);

/* ------------------------------------------------------------------------------ the starter --- */

/* Take those out of the idle ones that have been so for too long (at the stop: all). Under the lock. */
static struct rv__host *take_old(struct rv__hosts *hosts)
{
    int64_t now_ms = rv__mono_ms(rv__clock_real());
    struct rv__host *old = NULL, **at = &hosts->idle;
    while (*at != NULL) {
        struct rv__host *host = *at;
        if (!hosts->stop && now_ms - host->idle_since_ms < IDLE_MS) {
            at = &host->next;
            continue;
        }
        *at = host->next;
        host->next = old;
        old = host;
        hosts->count--;
    }
    return old;
}

static void end_all(struct rv__host *host)
{
    while (host != NULL) {
        struct rv__host *next = host->next;
        (void)rv__child_reap(&host->process, 0); /* idle: nothing is lost in it */
        host_free(host);
        host = next;
    }
}

static void serve(struct rv__hosts *hosts, struct request *request)
{
    struct rv__host *host = request->host;
    pthread_mutex_unlock(&hosts->lock);
    int rc = rv__child_start(hosts->program, "host", host->module, hosts->opts.memory_bytes,
                             &host->process, &request->err);
    pthread_mutex_lock(&hosts->lock);
    request->rc = rc;
    request->done = true;
    pthread_cond_signal(&request->served);
}

static void *starter_main(void *arg)
{
    struct rv__hosts *hosts = arg;
    pthread_mutex_lock(&hosts->lock);
    while (!hosts->stop || hosts->requests != NULL) {
        struct request *request = hosts->requests;
        if (request != NULL) {
            hosts->requests = request->next;
            serve(hosts, request);
            continue;
        }
        struct rv__host *old = take_old(hosts);
        if (old != NULL) {
            wake_first(hosts);
            pthread_mutex_unlock(&hosts->lock);
            end_all(old);
            pthread_mutex_lock(&hosts->lock);
            continue;
        }
        (void)rv__cond_wait_until(&hosts->wanted, &hosts->lock,
                                  rv__deadline_ns(hosts->idle != NULL ? IDLE_MS / 2 : -1));
    }
    struct rv__host *rest = take_old(hosts);
    pthread_mutex_unlock(&hosts->lock);
    end_all(rest);
    return NULL;
}

/* --------------------------------------------------------------------------------- the pool --- */

static void hosts_destroy(struct rv__hosts *hosts)
{
    pthread_mutex_destroy(&hosts->lock);
    pthread_cond_destroy(&hosts->wanted);
    rv__free(hosts->program);
    rv__free(hosts);
}

int rv__hosts_limit(const struct rv__hosts_opts *opts)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (opts->limit > 0)
        return opts->limit;
    return processors * 2 > LEAST_HOSTS ? (int)processors * 2 : LEAST_HOSTS;
}

int rv__hosts_new(const struct rv__hosts_opts *opts, struct rv__hosts **ret, rv_error *err)
{
    struct rv__buf program;
    struct rv__hosts *hosts = rv__zalloc(1, sizeof *hosts);
    if (hosts == NULL)
        return rv__nomem(err);
    pthread_mutex_init(&hosts->lock, NULL); /* on Linux these cannot fail */
    int rc = rv__cond_init(&hosts->wanted);
    hosts->last = &hosts->first;
    hosts->opts = *opts;
    hosts->opts.limit = rv__hosts_limit(opts);
    if (hosts->opts.term_ms == 0)
        hosts->opts.term_ms = DEFAULT_TERM_MS;
    if (hosts->opts.kill_ms == 0)
        hosts->opts.kill_ms = DEFAULT_KILL_MS;
    rv__buf_init(&program, 8192);
    if (rc == RV_OK && opts->program != NULL)
        rv__buf_text(&program, opts->program);
    else if (rc == RV_OK)
        rc = rv__hosts_program(&program, err);
    if (rc == RV_OK)
        rc = rv__buf_err(&program, err);
    if (rc == RV_OK)
        hosts->program = rv__buf_take(&program);
    if (rc == RV_OK && pthread_create(&hosts->starter, NULL, starter_main, hosts) != 0)
        rc = rv__fail(err, RV_ESYS, "no thread could be made for host processes");
    rv__buf_done(&program);
    if (rc < 0) {
        hosts_destroy(hosts);
        return rc;
    }
    *ret = hosts;
    return RV_OK;
}

void rv__hosts_close(struct rv__hosts *hosts)
{
    if (hosts == NULL)
        return;
    pthread_mutex_lock(&hosts->lock);
    hosts->closing = true;
    for (struct waiter *waiter = hosts->first; waiter != NULL; waiter = waiter->next)
        pthread_cond_signal(&waiter->look);
    pthread_mutex_unlock(&hosts->lock);
}

void rv__hosts_free(struct rv__hosts *hosts)
{
    if (hosts == NULL)
        return;
    pthread_mutex_lock(&hosts->lock);
    hosts->stop = true;
    pthread_cond_signal(&hosts->wanted);
    pthread_mutex_unlock(&hosts->lock);
    pthread_join(hosts->starter, NULL);
    assert(hosts->count == 0);
    hosts_destroy(hosts);
}

/* -------------------------------------------------------------------------- getting a host --- */

static void on_fired(struct rv__cancel_watch *watch)
{
    struct waiter *waiter = (struct waiter *)watch;
    pthread_mutex_lock(&waiter->hosts->lock);
    waiter->fired = true;
    if (waiter->host != NULL)
        (void)!eventfd_write(waiter->host->wake, 1); /* cannot be full */
    pthread_cond_signal(&waiter->look);
    pthread_mutex_unlock(&waiter->hosts->lock);
}

static void wake_first(struct rv__hosts *hosts)
{
    if (hosts->first == NULL)
        return;
    hosts->first->woken = true;
    pthread_cond_signal(&hosts->first->look);
}

static void stop_waiting(struct rv__hosts *hosts, struct waiter *waiter)
{
    struct waiter **at = &hosts->first;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    if (waiter->next == NULL)
        hosts->last = at;
}

/* In line, until a host is handed over, or there may be room for one. */
static void wait_in_line(struct rv__hosts *hosts, struct waiter *waiter)
{
    waiter->next = NULL;
    waiter->woken = false;
    *hosts->last = waiter;
    hosts->last = &waiter->next;
    while (waiter->host == NULL && !waiter->woken && !waiter->fired && !hosts->closing)
        pthread_cond_wait(&waiter->look, &hosts->lock);
    if (waiter->host == NULL)
        stop_waiting(hosts, waiter);
}

/* The next one in line for a host of this module. Others are passed over, for their sake a process would
 * have to end and another to begin; but not for ever. */
static struct waiter *next_in_line(struct rv__hosts *hosts, const char *module)
{
    struct waiter *waiter = hosts->first;
    if (hosts->skipped >= SKIP_MOST)
        return waiter != NULL && strcmp(waiter->module, module) == 0 ? waiter : NULL;
    while (waiter != NULL && strcmp(waiter->module, module) != 0)
        waiter = waiter->next;
    hosts->skipped = waiter != hosts->first ? hosts->skipped + 1 : 0;
    return waiter;
}

/* An idle host: of that module, or (module NULL) the one that has been so the longest. */
static struct rv__host *take_idle(struct rv__hosts *hosts, const char *module)
{
    struct rv__host **at = &hosts->idle, **found = NULL;
    for (; *at != NULL; at = &(*at)->next) {
        if (module != NULL && strcmp((*at)->module, module) != 0)
            continue;
        found = at;
        if (module != NULL)
            break;
    }
    if (found == NULL)
        return NULL;
    struct rv__host *host = *found;
    *found = host->next;
    host->next = NULL;
    return host;
}

/* A place among the `limit` is ours: a process for it. Under the lock. */
static int start_host(struct rv__hosts *hosts, const char *module, struct rv__host **ret,
                      rv_error *err)
{
    struct request request = { .host = host_new(hosts, module) };
    if (request.host == NULL)
        return rv__nomem(err);
    pthread_cond_init(&request.served, NULL); /* on Linux it cannot fail */
    request.next = hosts->requests;
    /* cppcheck-suppress autoVariables ; it is taken out again before `done` */
    hosts->requests = &request;
    pthread_cond_signal(&hosts->wanted);
    while (!request.done)
        pthread_cond_wait(&request.served, &hosts->lock);
    pthread_cond_destroy(&request.served);
    if (request.rc < 0) {
        host_free(request.host);
        return rv__fail(err, request.rc, "%s", request.err.message);
    }
    *ret = request.host;
    return RV_OK;
}

static void bury_idle(struct rv__hosts *hosts, struct rv__host *host)
{
    pthread_mutex_unlock(&hosts->lock);
    end_all(host);
    pthread_mutex_lock(&hosts->lock);
}

/* A host that is there, or a place for one (*place). Neither: wait. */
static struct rv__host *find_host(struct rv__hosts *hosts, const struct rv__invocation *invocation,
                                  bool *place)
{
    struct rv__host *host = invocation->fresh ? NULL : take_idle(hosts, invocation->module);
    if (host != NULL && !rv__child_ended(&host->process))
        return host;
    if (host == NULL && hosts->count >= hosts->opts.limit)
        host = take_idle(hosts, NULL);
    *place = host != NULL || hosts->count < hosts->opts.limit;
    if (host != NULL) /* dead, or of another module: its place is ours */
        bury_idle(hosts, host);
    else if (*place)
        hosts->count++;
    return NULL;
}

static int acquire(struct rv__hosts *hosts, const struct rv__invocation *invocation,
                   struct waiter *waiter, rv_error *err)
{
    struct rv__host *host = NULL;
    bool place = false;
    int rc = RV_OK;
    pthread_mutex_lock(&hosts->lock);
    while (host == NULL && !place && rc == RV_OK) {
        if (waiter->fired || hosts->closing) {
            rc = rv__fail(err, RV_ECANCELED, "it was to stop before it had begun");
            break;
        }
        host = find_host(hosts, invocation, &place);
        if (host == NULL && !place) {
            wait_in_line(hosts, waiter);
            host = waiter->host;
        }
    }
    if (place) {
        rc = start_host(hosts, invocation->module, &host, err);
        hosts->count -= rc < 0;
    }
    waiter->host = host;
    if (host != NULL && waiter->fired) /* while it was being started, or handed over */
        (void)!eventfd_write(host->wake, 1);
    if (rc < 0)
        wake_first(hosts); /* what was ours is the next one's */
    pthread_mutex_unlock(&hosts->lock);
    return rc;
}

/* To the next in line, to the idle ones, or (dead) away. */
static void release(struct rv__hosts *hosts, struct waiter *waiter, bool alive)
{
    struct rv__host *host = waiter->host;
    assert(host != NULL);
    pthread_mutex_lock(&hosts->lock);
    waiter->host = NULL; /* nobody wakes it any more */
    if (alive) {
        eventfd_t ignored;
        if (waiter->fired)
            (void)!eventfd_read(host->wake, &ignored);
        struct waiter *next = next_in_line(hosts, host->module);
        if (next != NULL) {
            stop_waiting(hosts, next);
            next->host = host;
            pthread_cond_signal(&next->look);
        } else {
            host->idle_since_ms = rv__mono_ms(rv__clock_real());
            host->next = hosts->idle;
            hosts->idle = host;
            hosts->skipped = 0;
            pthread_cond_signal(&hosts->wanted);
            wake_first(hosts);
        }
    } else {
        hosts->count--;
        wake_first(hosts);
    }
    pthread_mutex_unlock(&hosts->lock);
    if (!alive)
        host_free(host);
}

/* ---------------------------------------------------------------------------- conversation --- */

struct talk {
    struct rv__host *host;
    struct rv__invocation *invocation;
    bool asked_to_stop, termed, killed; /* that it should stop */
    struct rv__lines lines;             /* what it prints */
    int64_t due_ms;                     /* of the next such measure */
};

/* Send what there is to send, as far as it goes. */
static int push_out(struct rv__host *host)
{
    while (host->sent < host->out.len) {
        ssize_t n = send(host->process.fd, host->out.text + host->sent, host->out.len - host->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? RV_OK : RV_ECLOSED;
        host->sent += (size_t)n;
    }
    rv__buf_reset(&host->out);
    host->sent = 0;
    return RV_OK;
}

/* What it has printed by now: all of it, for a pipe holds no more, unless somebody goes on printing. */
static void read_printed(struct rv__host *host, struct rv__lines *lines)
{
    char bytes[PRINTED_BYTES];
    for (int i = 0; i < 2 && host->process.out >= 0; i++) {
        ssize_t n = read(host->process.out, bytes, sizeof bytes);
        if (n == 0) { /* it has closed its standard output: nothing more will come */
            close(host->process.out);
            host->process.out = -1;
        }
        if (n > 0)
            rv__lines_add(lines, (struct rv__str){ bytes, (size_t)n });
        if (n < (ssize_t)sizeof bytes)
            break;
    }
}

static void tell_printed(void *arg, struct rv__str line)
{
    struct rv__invocation *invocation = arg;
    if (invocation->printed != NULL)
        invocation->printed(invocation, line);
}

/* What it said. 1: the answer; 0: more is to come; negative: it may not say that. */
static int hear(struct talk *talk, rv_error *err)
{
    struct rv__host *host = talk->host;
    struct rv__frame frame;
    int rc;
    while ((rc = rv__frames_next(&host->frames, &frame, err)) == 1) {
        if (frame.type == FRAME_DYING) {
            struct rv__str value;
            rv__frame_members(&frame, (const char *[]){ "noMemory" }, &value, 1);
            host->no_memory = rv__str_is(value, "true");
            continue;
        }
        rc = talk->invocation->took(talk->invocation, host, &frame, &host->out, err);
        if (rc != 0)
            return rc;
        if (host->out.rc != RV_OK) /* the frame it was to get could not be made */
            return rv__buf_err(&host->out, err);
        if (push_out(host) < 0)
            return 0; /* it has hung up: the poll will tell */
    }
    return rc;
}

/* The next measure against a host that was told to stop. */
static void escalate(struct talk *talk)
{
    const struct rv__hosts_opts *opts = &talk->host->hosts->opts;
    int64_t now_ms = rv__mono_ms(rv__clock_real());
    if (!talk->asked_to_stop) {
        size_t start = rv__wire_begin(&talk->host->out, FRAME_CANCEL);
        if (talk->invocation->id != NULL)
            rv__wire_text(&talk->host->out, "id", rv__str(talk->invocation->id));
        rv__wire_end(&talk->host->out, start);
        (void)push_out(talk->host); /* it has hung up: the poll will tell */
        talk->asked_to_stop = true;
        talk->due_ms = now_ms + opts->term_ms;
    } else if (now_ms < talk->due_ms) {
        return;
    } else if (!talk->termed) {
        rv__child_signal(&talk->host->process, SIGTERM);
        talk->termed = true;
        talk->due_ms = now_ms + opts->kill_ms;
    } else {
        rv__child_signal(&talk->host->process, SIGKILL);
        talk->killed = true;
        talk->due_ms = INT64_MAX;
    }
}

static int until_due(const struct talk *talk)
{
    if (!talk->asked_to_stop || talk->due_ms == INT64_MAX)
        return -1;
    int64_t left_ms = talk->due_ms - rv__mono_ms(rv__clock_real());
    return left_ms < 0 ? 0 : (int)left_ms + 1;
}

/* Until it has answered (1), hung up (RV_ECLOSED) or said what it may not. */
static int exchange_frames(struct talk *talk, rv_error *err)
{
    struct rv__host *host = talk->host;
    struct pollfd p[] = { { .fd = host->process.fd },
                          { .fd = host->wake, .events = POLLIN },
                          { .fd = host->process.pidfd, .events = POLLIN },
                          { .fd = host->process.out, .events = POLLIN } };
    for (;;) {
        p[3].fd = host->process.out;
        p[0].events = (short)(POLLIN | (host->sent < host->out.len ? POLLOUT : 0));
        int ready = poll(p, 4, until_due(talk));
        if (ready < 0 && errno != EINTR)
            return rv__fail(err, RV_ESYS, "poll: %m");
        if (ready > 0 && (p[1].revents & POLLIN)) {
            eventfd_t ignored;
            (void)!eventfd_read(host->wake, &ignored);
            if (!talk->asked_to_stop)
                escalate(talk);
        }
        if (talk->asked_to_stop)
            escalate(talk);
        if (ready > 0 && (p[0].revents & POLLOUT))
            (void)push_out(host); /* it has hung up: reading tells */
        int rc = rv__frames_read(&host->frames, host->process.fd);
        if (rc == RV_ENOMEM)
            return rv__nomem(err);
        read_printed(host, &talk->lines); /* before what it said after that */
        int heard = rc == 1 ? hear(talk, err) : 0;
        if (heard != 0)
            return heard;
        if (rc == RV_ECLOSED || (rc == 0 && ready > 0 && (p[2].revents & POLLIN)))
            return RV_ECLOSED;
    }
}

/* How it ended, as a sentence. */
static void tell_end(const struct talk *talk, int status, int rc, const rv_error *why,
                     rv_error *err)
{
    const struct rv__hosts_opts *opts = &talk->host->hosts->opts;
    char how[120], more[100] = "";
    rv__child_tell(status, how, sizeof how);
    if (rc != RV_ECLOSED)
        rv__fail(err, RV_EFAILED,
                 "the host process was stopped, because it sent something wrong: %s", why->message);
    else if (talk->termed)
        rv__fail(err, RV_EFAILED,
                 "the host process %s: it was asked to stop, and did not within %lld ms", how,
                 (long long)opts->term_ms);
    else {
        if (talk->host->no_memory && opts->memory_bytes > 0)
            snprintf(more, sizeof more, ", after memory was refused: its limit is %llu MB",
                     (unsigned long long)(opts->memory_bytes >> 20));
        else if (talk->host->no_memory)
            snprintf(more, sizeof more, ", after memory was refused");
        rv__fail(err, RV_EFAILED, "the host process %s%s", how, more);
    }
}

int rv__hosts_invoke(struct rv__hosts *hosts, struct rv__invocation *invocation, rv_error *err)
{
    struct waiter waiter = { .watch = { .fired = on_fired },
                             .hosts = hosts,
                             .module = invocation->module };
    pthread_cond_init(&waiter.look, NULL); /* on Linux it cannot fail */
    if (invocation->token != NULL && !rv__cancel_watch(invocation->token, &waiter.watch))
        waiter.fired = true;
    int rc = acquire(hosts, invocation, &waiter, err);
    if (rc < 0)
        goto out;

    rv_error why = { .code = 0 };
    assert(waiter.host != NULL); /* it was found, or made */
    struct talk talk = { .host = waiter.host, .invocation = invocation };
    rv__lines_init(&talk.lines, NULL, NULL);
    read_printed(talk.host, &talk.lines); /* left by another, who has ended: nobody's */
    rv__lines_done(&talk.lines);
    rv__lines_init(&talk.lines, tell_printed, invocation);
    if (invocation->begun != NULL)
        invocation->begun(invocation);
    invocation->ask(invocation, talk.host, &talk.host->out);
    rc = rv__buf_err(&talk.host->out, &why);
    if (rc == RV_OK) {
        (void)push_out(talk.host); /* it has hung up: reading tells */
        rc = exchange_frames(&talk, &why);
    }
    rv__lines_end(&talk.lines);
    rv__lines_done(&talk.lines);
    if (rc == 1 && talk.host->sent < talk.host->out.len)
        rc = rv__fail(&why, RV_EPARSE, "it answered before it had received everything");
    if (rc == 1) {
        release(hosts, &waiter, true);
        rc = RV_OK;
    } else {
        if (rc != RV_ECLOSED)
            rv__child_signal(&talk.host->process, SIGKILL);
        int status = rv__child_reap(&talk.host->process, PATIENCE_MS);
        bool ours = rc == RV_ENOMEM || rc == RV_ETOOBIG; /* not the host's fault */
        if (ours)
            rv__fail(err, rc, "%s", why.message);
        else
            tell_end(&talk, status, rc, &why, err);
        release(hosts, &waiter, false);
        rc = ours ? rc : 1;
    }
out:
    if (invocation->token != NULL)
        rv__cancel_unwatch(invocation->token, &waiter.watch);
    pthread_cond_destroy(&waiter.look);
    return rc;
}
