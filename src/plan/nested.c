/* nested.c: compiles the outermost workflow and nested ones: finds them, refuses cycles, makes versions. */
#include "plan/compile.h"

#include <assert.h>
#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "plan/write.h"

/* Reports "a -> b -> a", without the middle of a long cycle. */
static void refuse_cycle(struct rv__compiler *c, struct rv__place place, struct rv__str name,
                         const struct rv__frame *within)
{
    enum { SHOWN = 4 }; /* names at each end */
    const struct rv__draft_workflow *chain[RV__PLAN_MAX_DEPTH];
    size_t count = 0;
    char text[(sizeof(struct rv__shown) + 4) * 2 * SHOWN + 1];
    struct rv__str at = { text, 0 };

    for (const struct rv__frame *frame = within;; frame = frame->up) {
        assert(frame != NULL && count < RV__PLAN_MAX_DEPTH); /* each frame is one level deeper */
        chain[count++] = frame->workflow;
        if (rv__str_eq(frame->workflow->name, name))
            break;
    }
    text[0] = '\0';
    for (size_t i = count; i > 0; i--) {
        if (i > SHOWN && i <= count - SHOWN) {
            if (i == SHOWN + 1)
                at.len += (size_t)snprintf(text + at.len, sizeof text - at.len, "… -> ");
            continue;
        }
        at.len += (size_t)snprintf(text + at.len, sizeof text - at.len, "%s -> ",
                                   rv__show(chain[i - 1]->name).text);
    }
    rv__compiler_refuse(c, place, "workflow '%s' contains itself: %s%s", rv__show(name).text, text,
                        rv__show(name).text);
}

/* Find the workflow that the node names. NULL with RV_OK: it was refused. */
static int find_workflow(struct rv__compiler *c, const struct rv__draft_node *draft,
                         struct rv__place place, const struct rv__frame *within,
                         const struct rv__draft_workflow **ret)
{
    const struct rv__draft *found = draft->workflow.draft;
    const struct rv__draft_workflow *workflow = draft->workflow.here;
    struct rv__str name = draft->name;
    const char *fault = rv__alias_fault(name);

    *ret = NULL;
    if (rv__str_none(name)) {
        rv__compiler_refuse(c, place, "a workflow needs a 'name'");
        return RV_OK;
    }
    if (fault != NULL) {
        rv__compiler_refuse(c, place, "invalid name '%s' of a workflow: %s", rv__show(name).text,
                            fault);
        return RV_OK;
    }
    for (const struct rv__frame *frame = within; frame != NULL; frame = frame->up)
        if (rv__str_eq(frame->workflow->name, name)) {
            refuse_cycle(c, place, name, within);
            return RV_OK;
        }
    if (workflow == NULL) {
        int rc = RV_ENOTFOUND;
        if (c->resolver != NULL)
            rc = c->resolver->find(c->resolver, name, &found);
        if (rc == RV_ENOTFOUND) {
            rv__compiler_refuse(c, place, "there is no workflow '%.*s'", RV__ARG(name));
            return RV_OK;
        }
        if (rc < 0)
            return rv__fail(c->err, rc, "workflow '%.*s': %s", RV__ARG(name), rv_strerror(rc));
        assert(rv__str_eq(found->workflow.name, name));
        workflow = &found->workflow;
    }
    if (found != NULL && found->failure.code != RV_OK)
        return rv__fail(c->err, found->failure.code, "workflow '%.*s': %s", RV__ARG(name),
                        found->failure.message);
    *ret = workflow;
    return RV_OK;
}

/* Write the definition into c->text; reports one that is too large. */
int rv__compiler_write(struct rv__compiler *c, const struct rv__body *body, bool shallow)
{
    rv__buf_reset(&c->text);
    rv__definition_write(body, shallow, &c->text);
    if (c->text.rc == RV_ETOOBIG)
        return rv__fail(c->err, RV_ETOOBIG, "the plan's JSON text has more than %d bytes",
                        RV__PLAN_MAX_BYTES);
    return rv__buf_err(&c->text, c->err);
}

/* The version is the hash of the definition; workflows nested in it have theirs already. */
static int make_version(struct rv__compiler *c, const struct rv__body *body, struct rv__str *ret)
{
    char hex[RV__SHA256_HEX];
    int rc = rv__compiler_write(c, body, true);
    if (rc < 0)
        return rc;
    rv__sha256_hex(rv__buf_view(&c->text), hex);
    if (rv__str_copy(&c->plan->arena, rv__str(hex), ret) < 0)
        return rv__nomem(c->err);
    return RV_OK;
}

/* A secret is an environment variable: is this a valid name for one? */
static bool is_variable(struct rv__str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return name.len > 0 && name.len <= RV__PLAN_MAX_NAME;
}

static int build_secrets(struct rv__compiler *c, const struct rv__draft_workflow *draft,
                         const struct rv__body *body, struct rv__wrap *wrap)
{
    int rc = rv__take_needs(c, draft->secrets, draft->secrets_count, &wrap->secrets,
                            &wrap->secrets_count);
    if (rc < 0)
        return rc;
    if (wrap->secrets_count > RV__PLAN_MAX_SECRETS) {
        rv__compiler_refuse(c, RV__IN(body, "secrets"), "invalid secrets: at most %d are allowed",
                            RV__PLAN_MAX_SECRETS);
        wrap->secrets_count = 0;
    }
    for (uint32_t i = 0; i < wrap->secrets_count; i++) {
        struct rv__wrap before = { .secrets = wrap->secrets, .secrets_count = i };
        if (!is_variable(wrap->secrets[i]))
            rv__compiler_refuse(c, RV__IN(body, "secrets"),
                                "invalid name '%s' in secrets: must be letters, digits and '_', "
                                "like an environment variable",
                                rv__show(wrap->secrets[i]).text);
        else if (rv__wrap_has_secret(&before, wrap->secrets[i]))
            rv__compiler_refuse(c, RV__IN(body, "secrets"), "secrets has '%s' twice",
                                rv__show(wrap->secrets[i]).text);
    }
    return RV_OK;
}

/* Build a workflow, the outermost or a nested one. */
int rv__build_workflow(struct rv__compiler *c, const struct rv__draft_workflow *draft,
                       const struct rv__expr *input, struct rv__body *body, unsigned depth,
                       const struct rv__frame *up)
{
    struct rv__frame within = { draft, up };
    struct rv__wrap *wrap = rv__arena_zalloc(&c->plan->arena, 1, sizeof *wrap);
    if (wrap == NULL)
        return rv__nomem(c->err);
    body->wrap = wrap;
    wrap->hosted = draft->hosted;
    wrap->budget = draft->budget;
    rv__compiler_tell(c, &draft->complaints, RV__IN(body, NULL));

    int rc = rv__compiler_text(c, draft->name, &wrap->name);
    if (rc < 0)
        return rc;
    rc = rv__compiler_text(c, draft->description, &wrap->description);
    if (rc < 0)
        return rc;
    if (!rv__str_utf8(wrap->description))
        rv__compiler_refuse(c, RV__IN(body, "description"), "invalid description: it is not UTF-8");

    rc = rv__compiler_json(c, RV__IN(body, "input"), "input schema", draft->schema, &wrap->schema);
    if (rc < 0)
        return rc;
    if (!rv__str_none(wrap->schema) && *wrap->schema.at != '{' && *wrap->schema.at != 't' &&
        *wrap->schema.at != 'f')
        rv__compiler_refuse(c, RV__IN(body, "input"),
                            "invalid input schema: a JSON Schema is an object, true or false");

    rc = rv__take_needs(c, draft->needs, draft->needs_count, &wrap->needs, &wrap->needs_count);
    if (rc < 0)
        return rc;
    rc = build_secrets(c, draft, body, wrap);
    if (rc == RV_OK)
        rc = rv__build_manifest(c, draft, body, wrap);
    if (rc < 0)
        return rc;
    rc = rv__compiler_expr(c, RV__IN(body, NULL), "input", input, &wrap->input);
    if (rc < 0)
        return rc;

    if (draft->body.count == 0)
        rv__compiler_refuse(c, RV__IN(body, "steps"),
                            "a workflow needs 'steps' with at least one node");
    rc = rv__build_body(c, &draft->body, body, depth, &within);
    if (rc < 0)
        return rc;

    rc = rv__build_handler(c, draft->on_error, HANDLER_ON_ERROR, NULL, body, depth, &within,
                           &wrap->on_error);
    if (rc == RV_OK)
        rc = rv__build_handler(c, draft->finally, HANDLER_FINALLY, NULL, body, depth, &within,
                               &wrap->finally);
    if (rc < 0)
        return rc;
    if (c->found > 0) /* there were errors: no plan needs a version */
        return RV_OK;
    return make_version(c, body, &wrap->version);
}

int rv__build_nested(struct rv__compiler *c, const struct rv__draft_node *draft,
                     struct rv__body *body, unsigned depth, const struct rv__frame *within)
{
    const struct rv__draft_workflow *workflow;
    int rc = find_workflow(c, draft, RV__IN(body, NULL), within, &workflow);
    if (rc < 0 || workflow == NULL)
        return rc;
    return rv__build_workflow(c, workflow, &draft->workflow.input, body, depth, within);
}
