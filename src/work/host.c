/* host.c: a host process: it loads one workflow file, and runs the functions in it, one at a time.
 *
 *   hello, register ──▶ idle ──invoke──▶ the function runs: get/value, log ──result, error──▶ idle
 *                        └── the engine hangs up: it ends
 *
 * rv_ctx is the same as in the engine's process; its source is this file: what the function sees comes in
 * frames. Small values come with `invoke`, others are asked for when they are first wanted, and those that
 * other invocations may want too stay here, under the number that the engine gave them (slots).
 *
 * A host is one thread. Word that a step should stop is looked for when the step asks
 * (rv_ctx_cancelled); only a step that hands its token on (rv_ctx_token) costs a thread that listens. */
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
#include "group/group.h"
#include "work/work.h"

enum {
    FD = 3, /* where the engine is */
    LISTEN_EVERY_NS = 1000000,
    SIGNAL_STACK = 64 << 10,
};

/* What was shown to the present invocation. */
struct shown {
    struct shown *next;
    enum rv__part part;
    struct rv__str alias;
    struct rv__blob *json; /* NULL: not there */
    struct rv__seen seen;
};

struct host {
    struct rv__table table;
    struct rv__frames frames;
    pthread_mutex_t lock; /* of reading: the step's thread, and one that listens for it */
    struct rv__buf out;
    struct rv__blob *slots[RV__HOST_SLOTS];

    struct rv_ctx ctx; /* the present invocation */
    const char *id;
    const char *who[WHO_KEY + 1];
    struct rv__str function, input, item;
    struct shown *shown;
    int64_t listened_ns;
    bool listening;
    pthread_t listener;
    int wake; /* an eventfd: the listener is to end */
};

static _Noreturn void leave(int code)
{
    _exit(code); /* whatever the file has registered with atexit() is not ours to wait for */
}

static void send_out(struct host *host)
{
    if (rv__buf_err(&host->out, NULL) < 0 || rv__frames_send(FD, &host->out) < 0)
        leave(1);
    rv__buf_reset(&host->out);
}

/* ---------------------------------------------------------------------------------- reading --- */

/* Wait for something to read, and take it in. The engine's end is ours. */
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
        leave(1); /* an engine does not say that */
    return rc;
}

/* A frame that may come while a step runs, and is no answer. */
static void take_aside(struct host *host, const struct rv__frame *frame)
{
    if (frame->type == FRAME_CANCEL && host->ctx.token != NULL)
        rv_cancel_fire(host->ctx.token, RV_ECANCELED, "the engine wants it to stop");
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
    struct host *host = RV__CONTAINER(ctx, struct host, ctx);
    if (host->listening)
        return;
    if (keep) {
        host->listening = pthread_create(&host->listener, NULL, listen_main, host) == 0;
        if (host->listening)
            return;
    }
    int64_t now_ns = rv__mono_ns(rv__clock_real());
    if (now_ns - host->listened_ns < LISTEN_EVERY_NS) /* a step may ask in an inner loop */
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

static void forget_slots(struct host *host)
{
    for (size_t i = 0; i < RV__HOST_SLOTS; i++) {
        rv__blob_unref(host->slots[i]);
        host->slots[i] = NULL;
    }
}

/* The text of a value: with the frame, or kept from another. NULL: there is none. */
static struct rv__blob *text_of(struct host *host, struct rv__str json, struct rv__str number,
                                bool forget)
{
    int64_t slot = -1;
    if (forget)
        forget_slots(host);
    if (!rv__str_none(number) &&
        (rv__json_int(number, &slot) < 0 || slot < 0 || slot >= RV__HOST_SLOTS))
        leave(1);
    if (rv__str_none(json))
        return slot >= 0 ? rv__blob_ref(host->slots[slot]) : NULL;
    struct rv__blob *text = rv__blob_new(json);
    if (text == NULL)
        leave(1); /* its engine will say so */
    if (slot >= 0) {
        rv__blob_unref(host->slots[slot]);
        host->slots[slot] = rv__blob_ref(text);
    }
    return text;
}

static void take_value(struct host *host, const struct rv__frame *frame, struct shown *shown)
{
    enum { JSON, SLOT, FORGET, ALIAS, STATUS, STATE, KEYS };
    static const char *const keys[] = { "json", "slot", "forget", "alias", "status", "state" };
    struct rv__arena *arena = &host->ctx.arena;
    struct rv__str has[KEYS], status;
    rv__frame_members(frame, keys, has, KEYS);
    shown->json = text_of(host, has[JSON], has[SLOT], !rv__str_none(has[FORGET]));
    if (rv__str_none(has[STATUS]))
        return;
    /* these lie in the frame, which goes */
    if (rv__json_string(has[ALIAS], arena, &shown->seen.alias) < 0 ||
        rv__str_copy(arena, shown->seen.alias, &shown->seen.alias) < 0 ||
        rv__json_string(has[STATUS], arena, &status) < 0 ||
        (shown->seen.status = rv__arena_dup(arena, status.at, status.len)) == NULL ||
        (!rv__str_none(has[STATE]) && rv__str_copy(arena, has[STATE], &shown->seen.state) < 0))
        leave(1);
}

/* Ask the engine. */
static void fetch(struct host *host, struct shown *shown)
{
    struct rv__frame frame;
    bool got = false;
    size_t start = rv__wire_begin(&host->out, FRAME_GET);
    rv__wire_text(&host->out, "id", rv__str(host->id));
    rv__wire_text(&host->out, "part", rv__str(rv__part_names[shown->part]));
    if (shown->part == PART_STEP)
        rv__wire_text(&host->out, "alias", shown->alias);
    rv__wire_end(&host->out, start);
    pthread_mutex_lock(&host->lock);
    send_out(host);
    while (!got) {
        while (!got && next_frame(host, &frame) == 1) {
            if (frame.type == FRAME_VALUE) {
                take_value(host, &frame, shown);
                got = true;
            } else {
                take_aside(host, &frame);
            }
        }
        if (!got)
            read_more(host);
    }
    pthread_mutex_unlock(&host->lock);
}

static int host_see(rv_ctx *ctx, enum rv__part part, struct rv__str alias, struct rv__buf *room,
                    struct rv__seen *ret)
{
    struct host *host = RV__CONTAINER(ctx, struct host, ctx);
    struct rv__str given = part == PART_INPUT  ? host->input
                           : part == PART_ITEM ? host->item
                                               : (struct rv__str){ NULL, 0 };
    (void)room;
    if (!rv__str_none(given)) {
        ret->json = given;
        return RV_OK;
    }
    struct shown *shown = host->shown;
    while (shown != NULL && (shown->part != part || !rv__str_eq(shown->alias, alias)))
        shown = shown->next;
    if (shown == NULL) {
        shown = rv__arena_zalloc(&ctx->arena, 1, sizeof *shown);
        if (shown == NULL || rv__str_copy(&ctx->arena, alias, &shown->alias) < 0)
            return RV_ENOMEM;
        shown->part = part;
        fetch(host, shown);
        shown->next = host->shown;
        host->shown = shown;
    }
    if (shown->json == NULL)
        return RV_ENOTFOUND;
    *ret = shown->seen;
    ret->json = rv__blob_str(shown->json);
    return RV_OK;
}

static const char *host_who(rv_ctx *ctx, enum rv__who who)
{
    const char *text = RV__CONTAINER(ctx, struct host, ctx)->who[who];
    return text != NULL ? text : "";
}

static void host_log(rv_ctx *ctx, int level, struct rv__str message, struct rv__str metadata)
{
    struct host *host = RV__CONTAINER(ctx, struct host, ctx);
    size_t start = rv__wire_begin(&host->out, FRAME_LOG);
    rv__wire_text(&host->out, "id", rv__str(host->id));
    rv__wire_int(&host->out, "at", rv__wall_ms(rv__clock_real()));
    rv__wire_int(&host->out, "level", level);
    rv__wire_text(&host->out, "message", message);
    if (!rv__str_none(metadata))
        rv__wire_json(&host->out, "metadata", metadata);
    rv__wire_end(&host->out, start);
    send_out(host);
}

static const struct rv__source host_source = {
    .see = host_see, .who = host_who, .log = host_log, .listen = host_listen
};

/* ---------------------------------------------------------------------------------- running --- */

static const char *text_member(struct host *host, struct rv__str value)
{
    struct rv__str text;
    if (rv__str_none(value) || rv__json_type(value) != RV__JSON_STRING ||
        rv__json_string(value, &host->ctx.arena, &text) < 0)
        return NULL;
    return rv__arena_dup(&host->ctx.arena, text.at, text.len);
}

static void take_run(struct host *host, struct rv__str run)
{
    static const char *const keys[] = { "runId", "workflowName", "stepName",
                                        "path",  "executionId",  "idempotencyKey" };
    struct rv__str value;
    int64_t attempt = 1;
    for (int who = WHO_RUN; who <= WHO_KEY; who++) {
        bool there = !rv__str_none(run) && rv__json_get(run, keys[who], &value);
        host->who[who] = there ? text_member(host, value) : NULL;
    }
    if (!rv__str_none(run) && rv__json_get(run, "attempt", &value))
        (void)rv__json_int(value, &attempt); /* not one: the first */
    host->ctx.attempt = (int)attempt;
}

static void take_invoke(struct host *host, const struct rv__frame *read)
{
    enum { ID, FUNCTION, RUN, INDEX, CONDITION, OF_STEP, INPUT, ITEM, KEYS };
    static const char *const keys[] = { "id",        "function", "run",   "index",
                                        "condition", "ofStep",   "input", "item" };
    struct rv__str has[KEYS];
    struct rv__frame frame = *read;
    struct rv_ctx *ctx = &host->ctx;
    *ctx = (struct rv_ctx){ .source = &host_source, .loop_index = -1, .outcome = MSG_DONE };
    rv__arena_init(&ctx->arena, SIZE_MAX); /* bounded by what the step asks for */
    rv__buf_init(&ctx->state_members, RV__STATE_MAX_BYTES);
    ctx->token = rv_cancel_new(NULL);
    if (ctx->token == NULL || rv__str_copy(&ctx->arena, read->json, &frame.json) < 0)
        leave(1);
    rv__frame_members(&frame, keys, has, KEYS);
    host->id = text_member(host, has[ID]);
    const char *function = text_member(host, has[FUNCTION]);
    host->function = rv__str(function != NULL ? function : "");
    host->input = has[INPUT];
    host->item = has[ITEM];
    host->shown = NULL;
    host->listened_ns = 0;
    ctx->eval = rv__str_none(has[CONDITION]) ? -1 : 0;
    ctx->of_step = !rv__str_none(has[OF_STEP]);
    if (!rv__str_none(has[INDEX]))
        (void)rv__json_int(has[INDEX], &ctx->loop_index); /* not one: none */
    take_run(host, has[RUN]);
    ctx->fn = rv__table_find(&host->table, host->function);
}

static void put_state(struct host *host)
{
    const struct rv__buf *state = &host->ctx.state_members;
    if (state->len == 0 || state->rc != RV_OK)
        return;
    rv__buf_text(&host->out, ",\"state\":{");
    rv__buf_str(&host->out, rv__buf_view(state));
    rv__buf_char(&host->out, '}');
}

static void put_answer(struct host *host)
{
    static const char *const behaviors[] = { "plain", "stop", "continue", "retry" };
    static const char *const backoffs[] = { "linear", "exponential" };
    struct rv_ctx *ctx = &host->ctx;
    bool failed = ctx->outcome == MSG_FAILED;
    size_t start = rv__wire_begin(&host->out, failed ? FRAME_ERROR : FRAME_RESULT);
    rv__wire_text(&host->out, "id", rv__str(host->id));
    if (failed) {
        struct rv__str error = rv__blob_str(ctx->error);
        rv__wire_json(&host->out, "error",
                      rv__str_none(error) ? rv__str("{\"message\":\"failed\"}") : error);
        rv__wire_text(&host->out, "behavior", rv__str(behaviors[ctx->behavior]));
        if (ctx->max_attempts > 0)
            rv__wire_int(&host->out, "maxAttempts", ctx->max_attempts);
        if (ctx->backoff > 0)
            rv__wire_text(&host->out, "backoff", rv__str(backoffs[ctx->backoff - 1]));
    } else if (ctx->outcome == MSG_PARK) {
        rv__wire_text(&host->out, "pending", ctx->handle);
    } else if (ctx->result != NULL) {
        rv__wire_json(&host->out, "result", rv__blob_str(ctx->result));
    }
    put_state(host);
    rv__wire_end(&host->out, start);
}

/* A result that no frame can carry fails the step, as one that is too long anywhere else. */
static void answer(struct host *host)
{
    put_answer(host);
    if (host->out.rc == RV_ETOOBIG && host->ctx.outcome != MSG_FAILED) {
        size_t bytes = host->ctx.result != NULL ? host->ctx.result->len : 0;
        rv__buf_reset(&host->out);
        rv_fail(&host->ctx,
                "the result has %zu bytes, and with its state more than the %d that are "
                "allowed",
                bytes, RV__FRAME_MAX);
        put_answer(host);
    }
    send_out(host);
}

static int run_fn(void *ctx)
{
    rv__ctx_run(ctx); /* an rv_ctx begins with its rv__work */
    return 0;
}

static void invoke(struct host *host, const struct rv__frame *frame)
{
    rv_error err;
    take_invoke(host, frame);
    if (host->ctx.fn == NULL)
        rv_fail(&host->ctx, "there is no function '%.*s' in the file any more",
                RV__ARG(host->function));
    else if (rv__panic_guard(run_fn, &host->ctx, &err) < 0)
        rv__ctx_failed(&host->ctx, &err);
    stop_listening(host);
    (void)fflush(stdout); /* into its log, before its end is told */
    answer(host);
    for (struct shown *shown = host->shown; shown != NULL; shown = shown->next)
        rv__blob_unref(shown->json);
    host->shown = NULL;
    rv__ctx_done(&host->ctx);
    host->ctx.token = NULL;
}

/* ------------------------------------------------------------------------------- beginning --- */

/* The last words of a process that a signal ends: whether memory had been refused just before, which
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
    rv__wire_int(&host->out, "protocol", 1);
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
    const rv_workflow_def *def = dlsym(handle, "rv_file_table");
    if (def == NULL)
        return rv__fail(err, RV_EINVAL, "it has no workflow: declare one with RV_WORKFLOW");
    return rv__table_read(def, &host->table, err);
}

static void say_register(struct host *host)
{
    size_t start = rv__wire_begin(&host->out, FRAME_REGISTER);
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

int rv_host_main(int argc, char **argv)
{
    rv_error err;
    struct rv__frame frame;
    if (argc != 4 || fcntl(FD, F_SETFD, FD_CLOEXEC) < 0) {
        fprintf(stderr, "rival host: it is started by an engine, to run the steps of a C file\n");
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(argv[2], NULL, 10))
        return 1; /* the engine has died already */

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
            } /* a cancel that came too late: the answer has crossed it */
        }
        read_more(host);
    }
}
