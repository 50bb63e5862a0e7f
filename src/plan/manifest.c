/* manifest.c: what only manifests have: default parameters for the input, a version by the author, and
 * listeners for events. Their stages are ordinary nodes: stage.c. */
#include <assert.h>

#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "plan/kinds.h"

static const char *const events[LIFECYCLES] = {
    [LIFE_DISPATCH] = "dispatch",
    [LIFE_STATE_COMPLETED] = "state_completed",
    [LIFE_STAGE_COMPLETED] = "stage_completed",
    [LIFE_SUSPEND] = "suspend",
    [LIFE_REDIRECT] = "redirect",
    [LIFE_EXHAUSTED] = "exhausted",
    [LIFE_FINAL] = "final",
    [LIFE_COMPLETED] = "completed",
    [LIFE_ABORTED] = "aborted",
};

const char *rv__lifecycle_name(enum rv__lifecycle event)
{
    return events[event];
}

int rv__lifecycle_find(struct rv__str name)
{
    for (int i = 0; i < LIFECYCLES; i++)
        if (rv__str_is(name, events[i]))
            return i;
    return -1;
}

void rv__draft_manifest_read(struct rv__draft_workflow *workflow, const struct rv__subject *s)
{
    workflow->parameters = rv__subject_raw(s, KEY_PARAMETERS);
    workflow->manifest_version = rv__subject_text(s, KEY_MANIFEST_VERSION);
    workflow->listeners = rv__subject_raw(s, KEY_LISTENERS);
}

/* ---------------------------------------------------------------------------- listeners --- */

/* One name of `on`. RV_ENOMEM. */
static int take_event(struct rv__compiler *c, struct rv__place place, struct rv__str json,
                      struct rv__listener *ret)
{
    struct rv__str name;
    int rc = rv__json_string(json, &c->plan->arena, &name);
    if (rc == RV_ENOMEM)
        return rv__nomem(c->err);
    int event = rc == RV_OK ? rv__lifecycle_find(name) : -1;
    if (event >= 0) {
        ret->events |= 1u << event;
        return RV_OK;
    }
    const char *meant = rc == RV_OK ? rv__suggest(name, events, LIFECYCLES) : NULL;
    if (meant != NULL)
        rv__compiler_refuse(c, place, "unknown event %s in listeners; did you mean '%s'?",
                            rv__show(json).text, meant);
    else
        rv__compiler_refuse(c, place,
                            "unknown event %s in listeners: must be dispatch, state_completed, "
                            "stage_completed, suspend, redirect, exhausted, final, completed or "
                            "aborted",
                            rv__show(json).text);
    return RV_OK;
}

static int take_events(struct rv__compiler *c, struct rv__place place, struct rv__str json,
                       struct rv__listener *ret)
{
    struct rv__json_iter it;
    struct rv__str item;
    int rc = RV_OK;
    if (*json.at != '[')
        return take_event(c, place, json, ret);
    rv__json_iter_init(&it, json);
    while (rc == RV_OK && rv__json_next(&it, NULL, &item))
        rc = take_event(c, place, item, ret);
    return rc;
}

static bool is_texts(struct rv__str json)
{
    struct rv__json_iter it;
    struct rv__str item;
    if (*json.at != '[' || rv__json_count(json) == 0)
        return false;
    rv__json_iter_init(&it, json);
    while (rv__json_next(&it, NULL, &item))
        if (rv__json_type(item) != RV__JSON_STRING)
            return false;
    return true;
}

static bool begins(struct rv__str text, const char *with)
{
    struct rv__str prefix = rv__str(with);
    return text.len > prefix.len && memcmp(text.at, prefix.at, prefix.len) == 0;
}

static int take_webhook(struct rv__compiler *c, struct rv__place place, struct rv__str json,
                        struct rv__listener *ret)
{
    int rc = rv__json_string(json, &c->plan->arena, &ret->webhook);
    if (rc == RV_ENOMEM)
        return rv__nomem(c->err);
    if (rc < 0 || (!begins(ret->webhook, "http://") && !begins(ret->webhook, "https://")))
        rv__compiler_refuse(c, place,
                            "invalid webhook %s in listeners: must be a URL, http://… or https://…",
                            rv__show(json).text);
    return RV_OK;
}

static int take_listener(struct rv__compiler *c, struct rv__place place, struct rv__str json,
                         struct rv__listener *ret)
{
    static const char *const keys[] = { "on", "command", "webhook" };
    struct rv__json_iter it;
    struct rv__str key, value;
    bool has_on = false;
    int rc = RV_OK, targets = 0;
    rv__json_iter_init(&it, json);
    if (!it.object) {
        rv__compiler_refuse(c, place,
                            "invalid listener %s: must be an object with 'on' and a 'command' or a "
                            "'webhook'",
                            rv__show(json).text);
        return RV_OK;
    }
    while (rc == RV_OK && rv__json_next(&it, &key, &value)) {
        if (rv__json_string_is(key, rv__str("on"))) {
            has_on = true;
            rc = take_events(c, place, value, ret);
        } else if (rv__json_string_is(key, rv__str("command"))) {
            targets++;
            ret->command = value;
            if (!is_texts(value))
                rv__compiler_refuse(c, place,
                                    "invalid command %s in listeners: must be a list of texts, the "
                                    "program and its arguments",
                                    rv__show(value).text);
        } else if (rv__json_string_is(key, rv__str("webhook"))) {
            targets++;
            rc = take_webhook(c, place, value, ret);
        } else {
            struct rv__str name;
            const char *meant = NULL;
            if (rv__json_string(key, &c->plan->arena, &name) == RV_OK)
                meant = rv__suggest(name, keys, sizeof keys / sizeof *keys);
            rv__compiler_refuse(c, place, "unknown key %s of a listener%s%s%s", rv__show(key).text,
                                meant ? "; did you mean '" : "", meant ? meant : "",
                                meant ? "'?" : "");
        }
    }
    if (rc == RV_OK && !has_on)
        rv__compiler_refuse(c, place, "a listener needs 'on': the events it is called for");
    if (rc == RV_OK && targets != 1)
        rv__compiler_refuse(c, place, "a listener has either a 'command' or a 'webhook'");
    return rc;
}

static int take_listeners(struct rv__compiler *c, struct rv__place place, struct rv__str said,
                          struct rv__wrap *wrap)
{
    struct rv__str json = { NULL, 0 }, item;
    struct rv__json_iter it;
    int rc = rv__compiler_json(c, place, "listeners", said, &json);
    if (rc < 0 || rv__str_none(json))
        return rc;
    size_t count = *json.at == '[' ? rv__json_count(json) : 0;
    if (*json.at != '[' || count > RV__PLAN_MAX_LISTENERS) {
        rv__compiler_refuse(c, place, "invalid listeners: must be a list of at most %d",
                            RV__PLAN_MAX_LISTENERS);
        return RV_OK;
    }
    wrap->listeners = rv__arena_zalloc(&c->plan->arena, count, sizeof *wrap->listeners);
    if (wrap->listeners == NULL && count > 0)
        return rv__nomem(c->err);
    rv__json_iter_init(&it, json);
    while (rc == RV_OK && rv__json_next(&it, NULL, &item)) {
        assert(wrap->listeners != NULL); /* there is one to be read */
        rc = take_listener(c, place, item, &wrap->listeners[wrap->listener_count++]);
    }
    return rc;
}

int rv__build_manifest(struct rv__compiler *c, const struct rv__draft_workflow *draft,
                       const struct rv__body *body, struct rv__wrap *wrap)
{
    struct rv__place place = RV__IN(body, "parameters");
    int rc = rv__compiler_json(c, place, "parameters", draft->parameters, &wrap->parameters);
    if (rc < 0)
        return rc;
    if (!rv__str_none(wrap->parameters) && *wrap->parameters.at != '{')
        rv__compiler_refuse(c, place, "invalid parameters %s: must be an object",
                            rv__show(wrap->parameters).text);
    rc = rv__compiler_text(c, draft->manifest_version, &wrap->manifest_version);
    return rc < 0 ? rc : take_listeners(c, RV__IN(body, "listeners"), draft->listeners, wrap);
}

bool rv__plan_listens(const struct rv__plan *plan, bool nested)
{
    if (!nested && plan->body.wrap->listener_count > 0)
        return true;
    for (uint32_t i = 0; i < plan->node_count; i++)
        for (uint32_t b = 0; b < plan->nodes[i]->body_count; b++)
            if (plan->nodes[i]->bodies[b].wrap != NULL &&
                plan->nodes[i]->bodies[b].wrap->listener_count > 0)
                return true;
    return false;
}

/* ------------------------------------------------------------------------------- write --- */

static void write_listener(struct rv__writer *w, const struct rv__listener *one)
{
    bool first = true;
    rv__buf_text(w->out, "{\"on\":[");
    for (int i = 0; i < LIFECYCLES; i++) {
        if (!(one->events & 1u << i))
            continue;
        if (!first)
            rv__buf_char(w->out, ',');
        first = false;
        rv__buf_json_str(w->out, rv__str(events[i]));
    }
    rv__buf_char(w->out, ']');
    rv__write_raw(w, "command", one->command);
    rv__write_text(w, "webhook", one->webhook);
    rv__buf_char(w->out, '}');
}

void rv__write_manifest(struct rv__writer *w, const struct rv__wrap *wrap)
{
    rv__write_text(w, "manifestVersion", wrap->manifest_version);
    rv__write_raw(w, "parameters", wrap->parameters);
    if (wrap->listener_count == 0)
        return;
    rv__write_key(w, "listeners");
    for (uint32_t i = 0; i < wrap->listener_count; i++) {
        rv__buf_char(w->out, i == 0 ? '[' : ',');
        write_listener(w, &wrap->listeners[i]);
    }
    rv__buf_char(w->out, ']');
}
