/* prompts.c: the prompts of a chat. A chat in a workflow has them as parameters. For the agent of a state they are made
 * from its manifest: the system prompt from the state's description and `system_prompt`; the prompt from
 * `user_prompt`, the results of the state's dependencies, and the failure of its last attempt. */
#include "work/prompts.h"

#include <stdio.h>

#include "agent/agent.h"
#include "base/error.h"
#include "base/json.h"
#include "work/builtin.h"
#include "work/work.h"

static bool get_text(struct rv_ctx *ctx, struct rv__str object, const char *key,
                     struct rv__str *ret)
{
    struct rv__str json;
    if (!rv__json_get(object, key, &json) || rv__json_type(json) == RV__JSON_NULL)
        return false;
    *ret = rv__ctx_text(ctx, json);
    return true;
}

/* Append a part of a prompt, with an empty line before it. */
static void put_part(struct rv__buf *out, const char *before, struct rv__str text)
{
    if (text.len == 0)
        return;
    rv__buf_text(out, out->len > 0 ? "\n\n" : "");
    rv__buf_text(out, before);
    rv__buf_str(out, text);
}

/* Write each state that it depends on, with its description. If its scope does not allow them, there are none. */
static int put_dependencies(struct rv_ctx *ctx, struct rv__buf *out, rv_error *err)
{
    struct rv__stored_rows rows;
    struct rv__json_iter it;
    struct rv__buf told;
    struct rv__str key, described;
    char name[RV__PLAN_MAX_NAME + 3];
    rv__stored_rows_of(&rows, ctx);
    rv__buf_init(&told, RV__AGENT_REQUEST_BYTES);
    int rc = rv__view_descriptions(&ctx->view, &rows.source, &told, err);
    rv__json_iter_init(&it, rc == RV_OK ? rv__buf_view(&told) : rv__str("{}"));
    while (rv__json_next(&it, &key, &described)) {
        (void)snprintf(name, sizeof name, "%.*s: ", RV__ARG(rv__ctx_text(ctx, key)));
        put_part(out, name, rv__ctx_text(ctx, described));
    }
    rv__buf_done(&told);
    return rc;
}

static void put_last_error(struct rv_ctx *ctx, const struct rv__state *state, struct rv__buf *out)
{
    struct rv__str message;
    if (state->append_errors_to_chat && ctx->view.state_error != NULL &&
        rv__json_get(rv__blob_str(ctx->view.state_error), "message", &message))
        put_part(out, "The last attempt failed: ", rv__ctx_text(ctx, message));
}

static int keep_text(struct rv_ctx *ctx, const struct rv__buf *text, struct rv__str *ret,
                     rv_error *err)
{
    int rc = rv__buf_err(text, err);
    *ret = (struct rv__str){ NULL, 0 };
    if (rc == RV_OK && text->len > 0 && rv__str_copy(&ctx->arena, rv__buf_view(text), ret) < 0)
        rc = rv__nomem(err);
    return rc;
}

static int take_parameters(struct rv_ctx *ctx, struct rv__str *ret, rv_error *err)
{
    struct rv__buf json;
    rv__buf_init(&json, RV__JSON_MAX_BYTES);
    int rc = rv__agent_see(ctx, PART_PARAMETERS, &json);
    if (rc < 0)
        rc = rv__fail(err, rc, "its parameters cannot be read: %s", rv_strerror(rc));
    else
        rc = keep_text(ctx, &json, ret, err);
    rv__buf_done(&json);
    return rc;
}

static int compose(struct rv_ctx *ctx, const struct rv__state *state, struct rv__str parameters,
                   struct rv__prompts *ret, rv_error *err)
{
    struct rv__str text = ret->prompt;
    struct rv__buf prompt, system;
    rv__buf_init(&prompt, RV__AGENT_REQUEST_BYTES);
    rv__buf_init(&system, RV__AGENT_REQUEST_BYTES);
    put_part(&system, "", ret->system);
    put_part(&system, "", state->description);
    if (!rv__str_none(text) || get_text(ctx, parameters, "user_prompt", &text))
        put_part(&prompt, "", text);
    if (get_text(ctx, parameters, "system_prompt", &text))
        put_part(&system, "", text);
    int rc = put_dependencies(ctx, &prompt, err);
    put_last_error(ctx, state, &prompt);
    if (rc == RV_OK)
        rc = keep_text(ctx, &prompt, &ret->prompt, err);
    if (rc == RV_OK)
        rc = keep_text(ctx, &system, &ret->system, err);
    if (rc == RV_OK && rv__str_none(ret->prompt))
        rc = rv__fail(err, RV_EINVAL,
                      "there is no prompt: 'parameters' have no user_prompt, its agent has no "
                      "'prompt', and it is given nothing that its state depends on");
    rv__buf_done(&prompt);
    rv__buf_done(&system);
    return rc;
}

int rv__prompts_take(struct rv_ctx *ctx, struct rv__str with, struct rv__prompts *ret,
                     rv_error *err)
{
    const struct rv__state *state = rv__ctx_agent(ctx);
    struct rv__str parameters = { NULL, 0 }, value;
    *ret = (struct rv__prompts){ .keeps_turns = false };
    (void)get_text(ctx, with, "prompt", &ret->prompt);
    (void)get_text(ctx, with, "system", &ret->system);
    (void)rv__json_get(with, "returnType", &ret->schema);
    if (state == NULL) {
        ret->prompt = rv__str_none(ret->prompt) ? rv__str("") : ret->prompt;
        return RV_OK;
    }
    int rc = take_parameters(ctx, &parameters, err);
    if (rc < 0)
        return rc;
    if (rv__str_none(ret->schema) && rv__json_get(parameters, "return_type", &value) &&
        rv__json_type(value) == RV__JSON_OBJECT)
        ret->schema = value;
    ret->keeps_turns = rv__json_get(parameters, "keep_turns", &value) &&
                       rv__json_type(value) == RV__JSON_TRUE;
    return compose(ctx, state, parameters, ret, err);
}
