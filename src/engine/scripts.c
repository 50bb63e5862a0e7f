/* scripts.c: the functions that Node hosts of workflow files offer, on the loop's side. Their workflows are
 * registered with the files (register.c). Each host is a worker; here its functions are registered as those of that
 * worker. */
#include "base/error.h"
#include "base/json.h"
#include "engine/call.h"
#include "engine/engine.h"

/* A call to the loop. */
struct asked {
    struct rv__registry *registry;
    struct rv__session *session;
    const char *root;
    struct rv__str text; /* a frame `register`; "none": there is none */
    bool idle;
};

/* The text of a member, in the arena. "none": there is none. */
static struct rv__str text_of(struct rv__str json, const char *key, struct rv__arena *arena)
{
    struct rv__str value, text;
    if (rv__json_type(json) != RV__JSON_OBJECT || !rv__json_get(json, key, &value) ||
        rv__json_type(value) != RV__JSON_STRING || rv__json_string(value, arena, &text) < 0)
        return (struct rv__str){ NULL, 0 };
    return text;
}

static int offer_names(struct rv__registry *registry, uint32_t ticket, struct rv__str names,
                       struct rv__str owner, const char *version, struct rv__arena *arena)
{
    struct rv__json_iter it;
    struct rv__str value, name;
    if (rv__json_type(names) != RV__JSON_ARRAY)
        return RV_OK;
    rv__json_iter_init(&it, names);
    while (rv__json_next(&it, NULL, &value)) {
        if (rv__json_type(value) != RV__JSON_STRING)
            continue;
        struct rv__function *f = rv__json_string(value, arena, &name) == RV_OK
                                     ? rv__registry_function(registry, owner, name,
                                                             *version == '\0')
                                     : NULL;
        if (f == NULL || rv__worker_offer(registry, ticket, f, version) < 0)
            return RV_ENOMEM;
    }
    return RV_OK;
}

static int offer_workflow(struct rv__registry *registry, uint32_t ticket, struct rv__str json,
                          struct rv__arena *arena)
{
    struct rv__str plan, names, validates;
    if (rv__json_type(json) != RV__JSON_OBJECT || !rv__json_get(json, "plan", &plan) ||
        !rv__json_get(json, "functions", &names))
        return RV_OK;
    struct rv__str name = text_of(plan, "name", arena);
    struct rv__registered *r = rv__str_none(name) ? NULL : rv__registry_find(registry, name);
    if (r == NULL || r->worker)
        return RV_OK; /* its registration was refused: another file has the name */
    r->validates = rv__json_get(json, "validates", &validates) && rv__str_is(validates, "true");
    int rc = offer_names(registry, ticket, names, name, r->plan->plan->version, arena);
    if (rc == RV_OK && r->validates)
        rc = rv__worker_judge(registry->engine, ticket, r->plan->plan->version);
    return rc;
}

static int offer_all(struct rv__call *call) /* on the loop */
{
    const struct asked *asked = call->arg;
    rv_engine *e = call->engine;
    struct rv__str list, item, module;
    struct rv__json_iter it;
    struct rv__arena arena;
    uint64_t hash = 0;
    int rc = RV_OK;
    uint32_t ticket = rv__worker_ticket(e, asked->session);
    if (ticket == 0)
        return RV_OK; /* the host has ended: the next one is offered when it is ready */
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    rv__worker_withdraw(e, ticket);
    if (rv__json_get(asked->text, "module", &module) && rv__hash_text_read(module, &hash) == RV_OK)
        rv__worker_module(e, ticket, hash);
    if (rv__json_get(asked->text, "workflows", &list) && rv__json_type(list) == RV__JSON_ARRAY) {
        rv__json_iter_init(&it, list);
        while (rc == RV_OK && rv__json_next(&it, NULL, &item))
            rc = offer_workflow(asked->registry, ticket, item, &arena);
    }
    if (rc == RV_OK && rv__json_get(asked->text, "functions", &list))
        rc = offer_names(asked->registry, ticket, list, rv__str(asked->root), "", &arena);
    rv__arena_done(&arena);
    return rc < 0 ? rv__nomem(&call->err) : RV_OK;
}

static void offer(void *engine, void *registry, const char *root, struct rv__session *session,
                  struct rv__str text)
{
    struct asked asked = { .registry = registry, .session = session, .root = root, .text = text };
    (void)rv__call_ask(
        engine, offer_all, &asked,
        NULL); /* closed: nobody needs it; no memory: its steps wait until the host starts again */
}

/* Whether a function belongs to a workflow that is not in the text. */
static bool is_elsewhere(void *arg, const struct rv__function *f)
{
    const struct asked *asked = arg;
    struct rv__str list, item, plan, name;
    struct rv__json_iter it;
    if (rv__str_none(asked->text) || f->library || !rv__json_get(asked->text, "workflows", &list) ||
        rv__json_type(list) != RV__JSON_ARRAY)
        return false;
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &item))
        if (rv__json_type(item) == RV__JSON_OBJECT && rv__json_get(item, "plan", &plan) &&
            rv__json_type(plan) == RV__JSON_OBJECT && rv__json_get(plan, "name", &name) &&
            rv__json_string_is(name, f->workflow))
            return false;
    return true;
}

static int withdraw_all(struct rv__call *call) /* on the loop */
{
    struct asked *asked = call->arg;
    uint32_t ticket = rv__worker_ticket(call->engine, asked->session);
    if (ticket > 0)
        rv__worker_withdraw_if(call->engine, ticket, is_elsewhere, asked);
    return RV_OK;
}

static void withdraw(void *engine, struct rv__session *session, struct rv__str text)
{
    struct asked asked = { .session = session, .text = text };
    (void)rv__call_ask(engine, withdraw_all, &asked,
                       NULL); /* if the engine is closed, it ends anyway */
}

static int look_if_idle(struct rv__call *call) /* on the loop */
{
    struct asked *asked = call->arg;
    uint32_t ticket = rv__worker_ticket(call->engine, asked->session);
    asked->idle = ticket == 0 || rv__worker_is_idle(call->engine, ticket);
    return RV_OK;
}

static bool is_idle(void *engine, struct rv__session *session)
{
    struct asked asked = { .session = session };
    return rv__call_ask(engine, look_if_idle, &asked, NULL) == RV_OK && asked.idle;
}

const struct rv__script_owner rv__script_owner = { .offer = offer,
                                                   .withdraw = withdraw,
                                                   .is_idle = is_idle };
