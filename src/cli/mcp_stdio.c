/* mcp_stdio.c: MCP over standard input and output: one message per line.
 *
 * This thread reads. Each request has its own thread until it is answered, because a request that waits for a run
 * must not delay the next one, least of all its cancellation. Their number is limited; further requests are
 * refused. Output is written under the lock. */
#include "cli/mcp.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/cli.h"

enum {
    CALLS_MAX = 64,        /* under way at once */
    LINE_BYTES = 8 << 20,  /* of a message, as for HTTP bodies */
    READ_BYTES = 64 << 10, /* at a time */
    END_MS = 2000,         /* for calls to end, after the end of the input */
    LOOK_MS = 100,         /* until an interruption is noticed */
    REVISION_BYTES = 16,
};

struct stdio_server;

struct request {
    struct request *next, **link;
    struct stdio_server *server;
    char *line;
    struct rv__mcp_request message;
    char revision[REVISION_BYTES]; /* "" = none was agreed upon yet */
    struct rv__str id;             /* points into the line */
    rv_cancel *cancel;
    bool cancelled; /* by the client: it gets no answer */
};

struct stdio_server {
    const struct rv__mcp_place *place;
    int out;
    char revision[REVISION_BYTES]; /* agreed upon; "" = none yet; used by the reader only */
    pthread_mutex_t lock;          /* of the following members */
    pthread_cond_t ended;          /* a request has ended */
    struct request *requests;
    size_t count;
    atomic_bool broken; /* our output is closed */
};

static int64_t now_ms(void)
{
    return rv__mono_ms(rv__clock_real());
}

/* ----------------------------------------------------------------------------------- writing --- */

/* Under the lock, so that lines stay whole. */
static void write_all(struct stdio_server *s, const char *at, size_t len)
{
    while (len > 0 && !s->broken) {
        ssize_t n = write(s->out, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            s->broken = true;
            return;
        }
        at += n;
        len -= (size_t)n;
    }
}

static void write_out(struct request *r, struct rv__mcp_call *call)
{
    struct stdio_server *s = r->server;
    struct rv__buf *out = rv__mcp_out(call);
    pthread_mutex_lock(&s->lock);
    if (!r->cancelled && out->len > 0)
        write_all(s, out->text, out->len);
    pthread_mutex_unlock(&s->lock);
    rv__buf_reset(out);
}

/* ---------------------------------------------------------------------------------- requests --- */

static void request_free(struct request *r)
{
    if (r == NULL)
        return;
    rv_cancel_free(r->cancel);
    rv__free(r->line);
    rv__free(r);
}

static void answer(struct request *r)
{
    const struct rv__mcp_place *place = r->server->place;
    struct rv__mcp_call *call = rv__mcp_begin(&place->via, &r->message);
    const char *run_id;
    int64_t until_ms;
    if (call == NULL)
        return; /* no memory: the client runs into its time-out */
    write_out(r, call);
    while (rv__mcp_waits(call, &run_id, &until_ms)) {
        int64_t left_ms = until_ms - now_ms();
        if (*run_id != '\0')
            place->wait(place->via.arg, run_id, left_ms > 0 ? left_ms : 0, r->cancel);
        else
            (void)rv_cancel_wait(r->cancel, left_ms > 0 ? left_ms : 0);
        if (rv_cancel_fired(r->cancel))
            rv__mcp_give_up(call, "the server is shutting down");
        else
            (void)rv__mcp_look(call);
        write_out(r, call);
    }
    rv__mcp_free(call);
}

static void request_end(struct request *r)
{
    struct stdio_server *s = r->server;
    pthread_mutex_lock(&s->lock);
    *r->link = r->next;
    if (r->next != NULL)
        r->next->link = r->link;
    s->count--;
    pthread_cond_broadcast(&s->ended);
    pthread_mutex_unlock(&s->lock);
    request_free(r); /* the server may already be freed */
}

static void *run_request(void *arg)
{
    struct request *r = arg;
    answer(r);
    request_end(r);
    return NULL;
}

/* Under the lock. */
static void request_link(struct stdio_server *s, struct request *r)
{
    r->link = &s->requests;
    r->next = s->requests;
    if (r->next != NULL)
        r->next->link = &r->next;
    s->requests = r;
    s->count++;
}

/* ----------------------------------------------------------------------------------- reading --- */

/* Requests that never wait are answered on this thread, in order: the agreed revision applies to the next one. */
static void answer_here(struct stdio_server *s, struct request *r, bool agrees)
{
    struct rv__mcp_call *call = rv__mcp_begin(&s->place->via, &r->message);
    if (call != NULL) {
        if (agrees)
            (void)snprintf(s->revision, sizeof s->revision, "%s", rv__mcp_revision(call));
        write_out(r, call);
    }
    rv__mcp_free(call);
    request_free(r);
}

static void refuse(struct stdio_server *s, struct rv__str id)
{
    struct rv__buf text;
    rv__buf_init(&text, LINE_BYTES);
    rv__buf_text(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
    rv__buf_str(&text, id);
    rv__buf_fmt(&text,
                ",\"error\":{\"code\":-32603,\"message\":\"more than %d calls are under way: try "
                "again later\"}}\n",
                (int)CALLS_MAX);
    pthread_mutex_lock(&s->lock);
    if (rv__buf_err(&text, NULL) == RV_OK)
        write_all(s, text.text, text.len);
    pthread_mutex_unlock(&s->lock);
    rv__buf_done(&text);
}

/* The client no longer waits for it. The run that it started continues. */
static void cancel(struct stdio_server *s, struct rv__str id)
{
    pthread_mutex_lock(&s->lock);
    for (struct request *r = s->requests; r != NULL; r = r->next)
        if (rv__str_eq(r->id, id)) {
            r->cancelled = true;
            rv_cancel_fire(r->cancel, RV_ECANCELED, "cancelled by the client");
        }
    pthread_mutex_unlock(&s->lock);
}

static struct request *request_new(struct stdio_server *s, const char *line, size_t len)
{
    struct request *r = rv__zalloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->server = s;
    r->line = rv__alloc(len + 1);
    r->cancel = rv_cancel_new(NULL);
    if (r->line == NULL || r->cancel == NULL) {
        request_free(r);
        return NULL;
    }
    memcpy(r->line, line, len);
    r->line[len] = '\0';
    memcpy(r->revision, s->revision, sizeof r->revision);
    r->message = (struct rv__mcp_request){ .body = r->line,
                                           .length = len,
                                           .role = RV__ROLE_ADMIN,
                                           .local = true,
                                           .revision = *r->revision != '\0' ? r->revision : NULL };
    return r;
}

static bool is_method(const struct rv__mcp_peek *peek, const char *name)
{
    struct rv__str m = peek->method;
    return m.len == strlen(name) + 2 && memcmp(m.at + 1, name, m.len - 2) == 0;
}

static void take_line(struct stdio_server *s, const char *line, size_t len)
{
    struct rv__mcp_peek peek;
    pthread_t thread;
    while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == ' '))
        len--;
    if (len == 0)
        return;
    struct request *r = request_new(s, line, len);
    if (r == NULL)
        return;
    bool good = rv__mcp_message((struct rv__str){ r->line, len }, &peek);
    if (good && is_method(&peek, "notifications/cancelled") && !rv__str_none(peek.cancels))
        cancel(s, peek.cancels);
    if (!good || rv__str_none(peek.id) || is_method(&peek, "initialize")) {
        answer_here(s, r, good && is_method(&peek, "initialize"));
        return;
    }
    r->id = peek.id;
    pthread_mutex_lock(&s->lock);
    bool room = s->count < CALLS_MAX;
    if (room)
        request_link(s, r);
    pthread_mutex_unlock(&s->lock);
    if (!room) {
        refuse(s, peek.id);
        request_free(r);
    } else if (pthread_create(&thread, NULL, run_request, r) == 0) {
        (void)pthread_detach(thread);
    } else {
        (void)run_request(r); /* no thread available: run it here */
    }
}

/* Take the complete lines; the rest is the beginning of one. `skip`: ignore the rest of a line that was too long. */
static void take_lines(struct stdio_server *s, struct rv__buf *text, bool *skip)
{
    size_t at = 0;
    const char *end;
    while (at < text->len && (end = memchr(text->text + at, '\n', text->len - at)) != NULL) {
        size_t len = (size_t)(end - (text->text + at));
        if (!*skip)
            take_line(s, text->text + at, len);
        *skip = false;
        at += len + 1;
    }
    if (at > 0) {
        memmove(text->text, text->text + at, text->len - at);
        rv__buf_cut(text, text->len - at);
    }
    if (text->len > LINE_BYTES) {
        if (!*skip)
            take_line(s, "[", 1); /* answered like an invalid message */
        *skip = true;
        rv__buf_reset(text);
    }
}

static void read_all(struct stdio_server *s, int in, rv_cancel *interrupt)
{
    struct rv__buf text;
    char bytes[READ_BYTES];
    bool skip = false;
    rv__buf_init(&text, LINE_BYTES + READ_BYTES + 1);
    while (!rv_cancel_fired(interrupt) && !s->broken) {
        struct pollfd ready = { .fd = in, .events = POLLIN };
        if (poll(&ready, 1, LOOK_MS) == 0)
            continue;
        ssize_t n = read(in, bytes, sizeof bytes);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            break;
        rv__buf_add(&text, bytes, (size_t)n);
        if (text.rc < 0) { /* no memory */
            rv__buf_done(&text);
            rv__buf_init(&text, LINE_BYTES + READ_BYTES + 1);
            skip = true;
            continue;
        }
        take_lines(s, &text, &skip);
    }
    if (text.len > 0 && !skip)
        take_line(s, text.text, text.len); /* the last line may have no end */
    rv__buf_done(&text);
}

/* Give calls under way a moment to end by themselves, then cancel the rest. */
static void drain(struct stdio_server *s, rv_cancel *interrupt)
{
    int64_t until_ms = now_ms() + END_MS;
    pthread_mutex_lock(&s->lock);
    while (s->count > 0 && now_ms() < until_ms && !rv_cancel_fired(interrupt) && !s->broken)
        (void)rv__cond_wait_until(&s->ended, &s->lock, (now_ms() + LOOK_MS) * 1000000);
    for (struct request *r = s->requests; r != NULL; r = r->next)
        rv_cancel_fire(r->cancel, RV_ECANCELED, "the server is shutting down");
    while (s->count > 0)
        (void)rv__cond_wait_until(&s->ended, &s->lock, (now_ms() + LOOK_MS) * 1000000);
    pthread_mutex_unlock(&s->lock);
}

int rv__mcp_serve(const struct rv__mcp_place *place, int in, int out, rv_cancel *interrupt)
{
    struct stdio_server s = { .place = place, .out = out };
    if (rv__cond_init(&s.ended) < 0)
        return rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    pthread_mutex_init(&s.lock, NULL);
    read_all(&s, in, interrupt);
    drain(&s, interrupt);
    pthread_mutex_destroy(&s.lock);
    pthread_cond_destroy(&s.ended);
    return CLI_OK;
}
