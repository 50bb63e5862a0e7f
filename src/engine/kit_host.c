/* kit_host.c: `rival kit`: a test engine for a program in another language (`testEngine` of the npm package).
 *
 *   program ──call──▶ engine ──invoke──▶ program ──result──▶ engine ──result──▶ program
 *                                           └──call … result──┘ (a step may ask for something, too)
 *
 * The program listens on a Unix socket, and we connect to it. One thing happens at a time: during a call the program
 * waits, and while the program runs a function the engine waits. So a seed has the same effect here as in C. There are
 * the methods of the control socket (answer.c) and those of the kit: open, register, replace, advance, now, crash. An
 * `invoke` contains the whole `context`, since tests have small ones. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "define/define.h"
#include "engine/control.h"
#include "engine/kit.h"
#include "work/work.h"

struct rv__kit_host {
    rv_engine *engine; /* NULL until it is opened */
    int fd;
    struct rv__frames frames;
    uint64_t asked;     /* functions that were called so far; */
    unsigned asking;    /* calls that have not returned: each is inside the one before */
    atomic_int waiters; /* waits inside one another */
    rv_cancel *gone;
};

enum { WAITERS_MOST = 100 }; /* waits inside one another: each uses some stack */

/* Read the next frame into `text`: a copy, since more is read while it is being answered. If the program ends, so
 * does this process. */
static struct rv__frame next_frame(struct rv__kit_host *host, struct rv__buf *text)
{
    struct rv__frame frame;
    int rc;
    while ((rc = rv__frames_next(&host->frames, &frame, NULL)) == 0) {
        struct pollfd in = { host->fd, POLLIN, 0 };
        (void)poll(&in, 1, -1);
        if (rv__frames_read(&host->frames, host->fd) < 0)
            _exit(0);
    }
    rv__buf_reset(text);
    if (rc > 0)
        rv__buf_str(text, frame.json);
    if (rc < 0 || text->rc < 0)
        _exit(1); /* no frame or no memory: the program sees that the connection ends */
    frame.json = rv__buf_view(text);
    return frame;
}

static void send_frame(const struct rv__kit_host *host, struct rv__buf *out)
{
    if (out->rc < 0 || rv__frames_send(host->fd, out) < 0)
        _exit(out->rc < 0);
    rv__buf_reset(out);
}

static void answer(struct rv__kit_host *host, const struct rv__frame *frame);

/* ------------------------------------------------------------------------------ functions --- */

/* Take frames about the function that was called, and answer calls, until the function has ended. */
static int hear(struct rv__kit_host *host, rv_ctx *ctx, const char *id)
{
    static int (*const says[FRAME_TYPES])(struct rv_ctx *, const struct rv__frame *, rv_error *) = {
        [FRAME_LOG] = rv__invoked_log,
        [FRAME_RESULT] = rv__invoked_result,
        [FRAME_ERROR] = rv__invoked_error,
    };
    struct rv__buf text;
    rv_error err = { .code = RV_EPARSE, .message = "it says something else" };
    int rc = 0;
    rv__buf_init(&text, RV__FRAME_MAX);
    while (rc == 0) {
        struct rv__frame frame = next_frame(host, &text);
        struct rv__str about, takes;
        int64_t ms;
        rv__frame_members(&frame, (const char *[]){ "id" }, &about, 1);
        if (frame.type == FRAME_CALL) {
            answer(host, &frame);
            continue;
        }
        rc = says[frame.type] != NULL && !rv__str_none(about) &&
                     rv__json_string_is(about, rv__str(id))
                 ? says[frame.type](ctx, &frame, &err)
                 : RV_EPARSE;
        rv__frame_members(&frame, (const char *[]){ "takes" }, &takes, 1);
        if (rc == 1 && !rv__str_none(takes) && rv__json_int(takes, &ms) == RV_OK && ms > 0)
            rv_test_takes(ctx, ms);
    }
    rv__buf_done(&text);
    return rc < 0 ? rv_stop(ctx, "%s", err.message) : 0;
}

static int ask(rv_ctx *ctx, bool replaced)
{
    struct rv__kit_host *host = ctx->engine->kit->host;
    struct rv__buf out;
    char id[24];
    const char *context = rv_json(ctx, ".");
    if (context == NULL)
        return rv_fail(ctx, "what it sees cannot be shown");
    snprintf(id, sizeof id, "%llu", (unsigned long long)++host->asked);
    rv__buf_init(&out, RV__FRAME_MAX);
    size_t start = rv__wire_begin(&out, FRAME_INVOKE);
    rv__wire_text(&out, "id", rv__str(id));
    if (replaced)
        rv__wire_text(&out, "replaces", rv__str(rv_ctx_step(ctx)));
    else
        rv__wire_text(&out, "function", ctx->function);
    if (ctx->handles != NULL)
        rv__wire_text(&out, "handles", rv__str(ctx->handles));
    rv__wire_json(&out, "context", rv__str(context));
    rv__wire_end(&out, start);
    bool fits = out.rc == RV_OK;
    if (fits)
        send_frame(host, &out);
    rv__buf_done(&out);
    if (!fits)
        return rv_fail(ctx, "what it sees is too large to be shown");
    host->asking++;
    int rc = hear(host, ctx, id);
    host->asking--;
    return rc;
}

static int ask_function(rv_ctx *ctx)
{
    return ask(ctx, false);
}

static int ask_replacement(rv_ctx *ctx)
{
    return ask(ctx, true);
}

/* ---------------------------------------------------------------------------------- calls --- */

static int64_t number(struct rv__str json, int64_t otherwise)
{
    int64_t value;
    return !rv__str_none(json) && rv__json_int(json, &value) == RV_OK ? value : otherwise;
}

static int open_engine(struct rv__kit_host *host, const struct rv__frame *call, struct rv__buf *out,
                       rv_error *err)
{
    enum { SEED, START, CRASHES, WORKERS, MOST, KEYS };
    struct rv__str has[KEYS];
    (void)out;
    rv__frame_members(call,
                      (const char *[]){ "seed", "startMs", "crashOneIn", "workers", "maxCrashes" },
                      has, KEYS);
    if (host->engine != NULL)
        return rv__fail(err, RV_EEXIST, "it is open already");
    int rc = rv_test_engine_new(RV_TEST_OPTS(.seed = (uint64_t)number(has[SEED], 0),
                                             .start_ms = number(has[START], 0),
                                             .crash_one_in = (uint32_t)number(has[CRASHES], 0),
                                             .workers = (uint32_t)number(has[WORKERS], 0),
                                             .max_crashes = (uint32_t)number(has[MOST], 0)),
                                &host->engine, err);
    if (rc == RV_OK)
        host->engine->kit->host = host;
    return rc;
}

static int register_one(rv_engine *engine, struct rv__str item, rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str plan = { NULL, 0 }, names = { NULL, 0 }, value, name;
    rv_workflow *w = NULL;
    if (rv__json_type(item) != RV__JSON_OBJECT || !rv__json_get(item, "plan", &plan))
        return rv__fail(err, RV_EINVAL, "a workflow without a plan");
    int rc = rv__workflow_read(plan, &w, err);
    if (rc < 0)
        return rc;
    if (rv__json_get(item, "functions", &names) && rv__json_type(names) == RV__JSON_ARRAY) {
        rv__json_iter_init(&it, names);
        while (rv__json_next(&it, NULL, &value))
            if (rv__json_type(value) == RV__JSON_STRING &&
                rv__json_string(value, &w->arena, &name) == RV_OK)
                rv__workflow_offered(w, name);
    }
    for (struct rv__named_fn *named = w->functions; named != NULL; named = named->next)
        named->fn = ask_function;
    rc = rv_register(engine, w, err);
    rv_workflow_free(w);
    return rc;
}

static int register_all(struct rv__kit_host *host, const struct rv__frame *call,
                        struct rv__buf *out, rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str list, item;
    int rc = RV_OK;
    (void)out;
    rv__frame_members(call, (const char *[]){ "workflows" }, &list, 1);
    if (rv__str_none(list) || rv__json_type(list) != RV__JSON_ARRAY)
        return rv__fail(err, RV_EINVAL, "'workflows' is not a list");
    rv__json_iter_init(&it, list);
    while (rc == RV_OK && rv__json_next(&it, NULL, &item))
        rc = register_one(host->engine, item, err);
    return rc;
}

/* {alias, on}: replace this step by a function of the program, or end that. */
static int replace(struct rv__kit_host *host, const struct rv__frame *call, struct rv__buf *out,
                   rv_error *err)
{
    enum { ALIAS, ON, KEYS };
    struct rv__str has[KEYS], alias;
    struct rv__arena arena;
    (void)out;
    rv__frame_members(call, (const char *[]){ "alias", "on" }, has, KEYS);
    if (rv__str_none(has[ALIAS]) || rv__json_type(has[ALIAS]) != RV__JSON_STRING)
        return rv__fail(err, RV_EINVAL, "no alias given");
    rv__arena_init(&arena, RV__FRAME_MAX);
    const char *name = rv__json_string(has[ALIAS], &arena, &alias) == RV_OK
                           ? rv__arena_dup(&arena, alias.at, alias.len)
                           : NULL;
    int rc = name == NULL
                 ? rv__nomem(err)
                 : rv_test_replace(host->engine, name,
                                   rv__str_is(has[ON], "false") ? NULL : ask_replacement, err);
    rv__arena_done(&arena);
    return rc;
}

static int advance(struct rv__kit_host *host, const struct rv__frame *call, struct rv__buf *out,
                   rv_error *err)
{
    struct rv__str ms;
    (void)out;
    rv__frame_members(call, (const char *[]){ "ms" }, &ms, 1);
    return rv_test_advance(host->engine, number(ms, 0), err);
}

static int crash(struct rv__kit_host *host, const struct rv__frame *call, struct rv__buf *out,
                 rv_error *err)
{
    (void)call;
    (void)out;
    return rv_test_crash(host->engine, err);
}

static int tell_now(struct rv__kit_host *host, const struct rv__frame *call, struct rv__buf *out,
                    rv_error *err)
{
    (void)call;
    (void)err;
    rv__wire_int(out, "now", rv_test_now(host->engine));
    rv__wire_int(out, "crashes", rv_test_crashes(host->engine));
    return RV_OK;
}

static const struct method {
    const char *name;
    int (*answer)(struct rv__kit_host *host, const struct rv__frame *call, struct rv__buf *out,
                  rv_error *err);
    bool within; /* also allowed while a function is being called */
} methods[] = {
    { "open", open_engine, false }, { "register", register_all, true },
    { "replace", replace, true },   { "advance", advance, true },
    { "crash", crash, false },      { "now", tell_now, true },
};

static int answer_own(struct rv__kit_host *host, const struct method *method,
                      const struct rv__frame *call, struct rv__buf *out, rv_error *err)
{
    if ((host->engine == NULL) != (method->answer == open_engine))
        return rv__fail(err, RV_ESTATE, "'%s' %s", method->name,
                        host->engine == NULL ? "needs an engine: open it" : "comes once");
    if (!method->within && host->engine != NULL && host->asking > 0)
        return rv__fail(err, RV_ESTATE, "'%s' cannot be called by a step", method->name);
    return method->answer(host, call, out, err);
}

/* Answer a call of the kit, or one that a control socket offers. */
static void answer(struct rv__kit_host *host, const struct rv__frame *call)
{
    enum { ID, METHOD, KEYS };
    struct rv__str has[KEYS];
    struct rv__buf out;
    rv_error err = { .code = 0 };
    rv__frame_members(call, (const char *[]){ "id", "method" }, has, KEYS);
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by the limit of a frame */
    const struct method *method = NULL;
    for (size_t i = 0; i < sizeof methods / sizeof *methods && !rv__str_none(has[METHOD]); i++)
        if (rv__json_string_is(has[METHOD], rv__str(methods[i].name)))
            method = &methods[i];
    if (method == NULL && host->engine != NULL) {
        const struct rv__asker asker = { .gone = host->gone,
                                         .waiters = &host->waiters,
                                         .most = WAITERS_MOST };
        rv__control_answer(host->engine, call, &asker, &out);
        send_frame(host, &out);
        rv__buf_done(&out);
        return;
    }
    size_t start = rv__wire_begin(&out, FRAME_RESULT);
    if (!rv__str_none(has[ID]))
        rv__wire_json(&out, "id", has[ID]);
    int rc = method != NULL ? answer_own(host, method, call, &out, &err)
                            : rv__fail(&err, RV_ESTATE, "an engine is needed: open it");
    if (rc < 0) {
        rv__buf_cut(&out, start);
        start = rv__wire_begin(&out, FRAME_ERROR);
        if (!rv__str_none(has[ID]))
            rv__wire_json(&out, "id", has[ID]);
        rv__wire_int(&out, "code", err.code);
        rv__wire_text(&out, "message", rv__str(err.message));
    }
    rv__wire_end(&out, start);
    send_frame(host, &out);
    rv__buf_done(&out);
}

int rv_kit_main(int argc, char **argv)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct rv__kit_host host = { .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                 .gone = rv_cancel_new(NULL) };
    struct rv__buf text;
    if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) {
        fprintf(stderr, "usage: rival kit SOCKET (for the npm package)\n");
        return 2;
    }
    memcpy(address.sun_path, argv[1], strlen(argv[1]));
    if (host.fd < 0 || host.gone == NULL ||
        connect(host.fd, (struct sockaddr *)&address, sizeof address) < 0) {
        fprintf(stderr, "rival kit: nobody listens on '%s'\n", argv[1]);
        return 1;
    }
    rv__frames_init(&host.frames);
    rv__buf_init(&text, RV__FRAME_MAX);
    for (;;) {
        struct rv__frame frame = next_frame(&host, &text);
        if (frame.type == FRAME_CALL)
            answer(&host, &frame);
    }
}
