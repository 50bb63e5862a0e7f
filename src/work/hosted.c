/* hosted.c: a step in a host process, seen from the engine.
 *
 * The executor of such steps has a thread for each of its credits, which speaks with a host: it asks
 * for the function to be run, shows what the step wants to see, keeps its log lines, and takes its answer
 * into the rv_ctx as if the function had been called here (invoked.c).
 *
 * What a host says is the world's: everything is checked, and what is wrong ends the host. */
#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "group/group.h"
#include "work/invoked.h"
#include "work/work.h"

struct hosted {
    struct rv__invocation invocation; /* first */
    struct rv_ctx *ctx;
};

/* The function to run, and of what it sees what is small: the rest it asks for. */
static void ask(struct rv__invocation *self, struct rv__host *host, struct rv__buf *out)
{
    struct rv_ctx *ctx = ((struct hosted *)self)->ctx;
    struct rv__seen input = { .status = NULL };
    struct rv__buf room;
    (void)host;
    rv__buf_init(&room, RV__JSON_MAX_BYTES);
    size_t start = rv__wire_begin(out, FRAME_INVOKE);
    rv__invoked_ask(ctx, self->id, out);
    if (ctx->source->see(ctx, PART_INPUT, rv__str(NULL), NULL, &input) == RV_OK &&
        input.json.len <= RV__KEPT_SMALL) {
        rv__wire_json(out, "input", input.json);
        rv__invoked_given(ctx, PART_INPUT, rv__str(NULL), input.json);
    }
    rv__invoked_item(ctx, RV__INVOKE_ITEM, &room, out);
    rv__wire_end(out, start);
    rv__buf_done(&room);
}

static int show(struct rv_ctx *ctx, const char *id, struct rv__host *host,
                const struct rv__frame *frame, struct rv__buf *out, rv_error *err)
{
    struct rv__kept *kept = rv__host_kept(host);
    struct rv__seen seen = { .status = NULL };
    struct rv__wanted want;
    struct rv__buf room;
    unsigned slot;
    int rc = rv__invoked_wanted(ctx, frame, &want, err);
    if (rc < 0)
        return rc;
    const struct rv__entry *entry = want.part == PART_STEP ? rv__view_find(&ctx->view, want.alias)
                                                           : ctx->view.last;
    struct rv__shared shared = rv__invoked_shared(ctx, want.part, want.alias, entry);
    bool known = shared.identity != NULL && rv__kept_has(kept, shared.identity, &slot);
    rv__buf_init(&room, RV__JSON_MAX_BYTES);
    if (!known || want.part == PART_STEP || want.part == PART_LAST)
        rc = ctx->source->see(ctx, want.part, want.alias, known ? NULL : &room, &seen);
    if (rc == RV_OK)
        rv__invoked_given(ctx, want.part, want.alias, seen.json);
    const struct rv__value_head head = { .id = id, .seq = want.seq };
    if (rc == RV_OK || rc == RV_ENOTFOUND)
        rc = rv__invoked_value(&head, kept, shared, rc == RV_OK ? &seen : NULL, out);
    rv__buf_done(&room);
    if (rc < 0)
        return rv__fail(err, rc == RV_ENOMEM ? RV_ENOMEM : RV_ETOOBIG,
                        "'%s' cannot be shown to the step: %s", rv__part_names[want.part],
                        rv_strerror(rc));
    return 0;
}

/* Is it about this invocation? A thread that a step left behind may still speak of that one. */
static bool is_about(const struct hosted *hosted, const struct rv__frame *frame)
{
    struct rv__str id;
    rv__frame_members(frame, (const char *[]){ "id" }, &id, 1);
    return rv__str_none(id) || rv__json_string_is(id, rv__str(hosted->invocation.id));
}

static int took(struct rv__invocation *self, struct rv__host *host, const struct rv__frame *frame,
                struct rv__buf *out, rv_error *err)
{
    static int (*const says[FRAME_TYPES])(struct rv_ctx *, const struct rv__frame *, rv_error *) = {
        [FRAME_LOG] = rv__invoked_log,
        [FRAME_STATE] = rv__invoked_state,
        [FRAME_RESULT] = rv__invoked_result,
        [FRAME_ERROR] = rv__invoked_error,
    };
    const struct hosted *hosted = (struct hosted *)self;
    enum rv__frame_type type = frame->type;
    if (type == FRAME_HELLO || type == FRAME_REGISTER || type == FRAME_PONG)
        return 0; /* of a host that has just begun */
    if (type == FRAME_PING) {
        rv__wire_end(out, rv__wire_begin(out, FRAME_PONG));
        return 0;
    }
    if (type != FRAME_GET && says[type] == NULL)
        return rv__fail(err, RV_EPARSE, "it may not send '%s'", rv__frame_type_name(type));
    if (!is_about(hosted, frame))
        return 0;
    return type == FRAME_GET ? show(hosted->ctx, self->id, host, frame, out, err)
                             : says[type](hosted->ctx, frame, err);
}

/* --------------------------------------------------------------------------------- running --- */

static void begun(struct rv__invocation *self)
{
    struct rv_ctx *ctx = ((struct hosted *)self)->ctx;
    ctx->work.begun(&ctx->work);
}

/* What it prints is for its log. */
static void printed(struct rv__invocation *self, struct rv__str line)
{
    rv_log_info(((struct hosted *)self)->ctx, "%.*s", RV__ARG(line));
}

/* As rv__hosts_invoke(). */
static int run_in_host(struct rv_ctx *ctx, bool tells, rv_error *err)
{
    struct rv__hosts *hosts = NULL;
    struct hosted hosted = { .invocation = { .module = ctx->module,
                                             .id = rv_ctx_execution_id(ctx),
                                             .token = ctx->work.token,
                                             .ask = ask,
                                             .took = took,
                                             .begun = tells ? begun : NULL,
                                             .printed = printed },
                             .ctx = ctx };
    int rc = rv__services_hosts(ctx->services, &hosts, err);
    return rc < 0 ? rc : rv__hosts_invoke(hosts, &hosted.invocation, err);
}

void rv__hosted_run(struct rv__work *work)
{
    struct rv_ctx *ctx = (struct rv_ctx *)work;
    rv_error err = { .code = 0 };
    int rc = run_in_host(ctx, false, &err);
    if (rc == 1)
        rv__ctx_lost(ctx, RV__LOST_ALONE, &err);
    else if (rc < 0)
        rv__ctx_failed(ctx, &err);
}

/* -------------------------------------------------------------------------------- executor --- */

struct hosting {
    struct rv__executor executor; /* first */
    struct rv__services *services;
    rv_group *group; /* made with the first work: most engines never have any */
};

static int run_task(rv_task *task, void *arg, void **value)
{
    struct rv__work *work = arg;
    rv_error err = { .code = 0 };
    (void)task;
    (void)value;
    int rc = run_in_host((struct rv_ctx *)work, true, &err);
    if (rc == 1)
        work->lost(work, RV__LOST_ALONE, &err);
    else
        work->done(work, rc < 0 ? &err : NULL);
    return 0;
}

static void task_done(void *arg, const rv_error *err)
{
    (void)arg; /* gone: its end was told */
    (void)err;
}

static size_t hosting_start(struct rv__executor *self, struct rv__work *const *works, size_t count)
{
    struct hosting *hosting = (struct hosting *)self;
    if (hosting->group == NULL) {
        hosting->group = rv_group_new(
            &(rv_group_opts){ .max_concurrency = (int)self->credits, .keep_going = true });
        if (hosting->group == NULL)
            return 0;
        rv__group_on_done(hosting->group, task_done);
    }
    return rv__group_go_all(hosting->group, run_task, (void *const *)works, count);
}

static void hosting_free(struct rv__executor *self)
{
    struct hosting *hosting = (struct hosting *)self;
    rv__hosts_close(hosting->services->hosts); /* who waits for one does no longer */
    rv_group_free(hosting->group);
    rv__free(self);
}

int rv__hosted_new(struct rv__services *services, const struct rv__executor *head,
                   struct rv__executor **ret, rv_error *err)
{
    struct hosting *hosting = rv__zalloc(1, sizeof *hosting);
    if (hosting == NULL)
        return rv__nomem(err);
    hosting->services = services;
    hosting->executor = *head;
    hosting->executor.start = hosting_start;
    hosting->executor.cancel = rv__executor_fire;
    hosting->executor.inside = rv__executor_outside;
    hosting->executor.free = hosting_free;
    *ret = &hosting->executor;
    return RV_OK;
}

int rv__services_hosts(struct rv__services *services, struct rv__hosts **ret, rv_error *err)
{
    int rc = RV_OK;
    pthread_mutex_lock(&services->hosts_lock);
    if (services->hosts == NULL)
        rc = rv__hosts_new(&services->hosts_opts, &services->hosts, err);
    *ret = services->hosts;
    pthread_mutex_unlock(&services->hosts_lock);
    return rc;
}

int rv__services_wires(struct rv__services *services, struct rv__wires **ret, rv_error *err)
{
    int rc = RV_OK;
    pthread_mutex_lock(&services->hosts_lock);
    if (services->wires == NULL)
        rc = rv__wires_new(&services->wires, err);
    *ret = services->wires;
    pthread_mutex_unlock(&services->hosts_lock);
    return rc;
}

/* ------------------------------------------------------------------------------ what it has --- */

struct described {
    struct rv__invocation invocation; /* first */
    rv_workflow *workflow;
};

static void ask_nothing(struct rv__invocation *self, struct rv__host *host, struct rv__buf *out)
{
    (void)self;
    (void)host;
    (void)out;
}

/* {plan?, functions: [name]} as a workflow, or a library. */
static int take_register(struct described *d, const struct rv__frame *frame, rv_error *err)
{
    struct rv__str has[2], value, name;
    struct rv__json_iter it;
    rv__frame_members(frame, (const char *[]){ "plan", "functions" }, has, 2);
    if (rv__str_none(has[1]) || (!rv__str_none(has[0]) && rv__json_type(has[0]) != RV__JSON_OBJECT))
        return rv__fail(err, RV_EPARSE, "it registers no functions, or an invalid plan");
    int rc = RV_OK;
    if (!rv__str_none(has[0]))
        rc = rv__workflow_read(has[0], &d->workflow, err);
    else if ((d->workflow = rv__workflow_library()) == NULL)
        rc = rv__nomem(err);
    if (rc < 0)
        return rc;
    assert(d->workflow != NULL); /* read or made, just now */
    if (!d->workflow->library)
        rv__draft_hosted(d->workflow->draft);
    rv__json_iter_init(&it, has[1]);
    while (rv__json_next(&it, NULL, &value)) {
        if (rv__json_type(value) != RV__JSON_STRING ||
            rv__json_string(value, &d->workflow->arena, &name) < 0)
            return rv__fail(err, RV_EPARSE, "a function without a name");
        rv__workflow_hosted(d->workflow, name, d->invocation.module);
    }
    return 1;
}

/* What the host says is wrong with the file, in its own words. */
static int tell(struct rv__str json, rv_error *err)
{
    struct rv__arena arena;
    struct rv__str text = json;
    rv__arena_init(&arena, RV__JSON_MAX_BYTES);
    if (rv__json_type(json) == RV__JSON_STRING)
        (void)rv__json_string(json, &arena, &text); /* no memory: as it came, then */
    int rc = rv__fail(err, RV_ETOOBIG, "%.*s", RV__ARG(text));
    rv__arena_done(&arena);
    return rc;
}

static int took_description(struct rv__invocation *self, struct rv__host *host,
                            const struct rv__frame *frame, struct rv__buf *out, rv_error *err)
{
    struct rv__str error, message;
    (void)host;
    (void)out;
    if (frame->type == FRAME_HELLO)
        return 0;
    if (frame->type == FRAME_REGISTER)
        return take_register((struct described *)self, frame, err);
    rv__frame_members(frame, (const char *[]){ "error" }, &error, 1);
    if (frame->type == FRAME_ERROR && !rv__str_none(error) &&
        rv__json_get(error, "message", &message))
        return tell(message, err);
    return rv__fail(err, RV_EPARSE, "it sent '%s' before any request",
                    rv__frame_type_name(frame->type));
}

int rv__hosted_workflow(struct rv__hosts *hosts, const char *module, rv_workflow **ret,
                        rv_error *err)
{
    struct described d = { .invocation = { .module = module,
                                           .fresh = true,
                                           .ask = ask_nothing,
                                           .took = took_description } };
    int rc = rv__hosts_invoke(hosts, &d.invocation, err);
    if (rc == RV_OK) {
        *ret = d.workflow;
        return RV_OK;
    }
    rv_workflow_free(d.workflow);
    if (err != NULL)
        err->code = RV_EINVAL;
    return rc > 0 || rc == RV_ETOOBIG ? RV_EINVAL : rc;
}
