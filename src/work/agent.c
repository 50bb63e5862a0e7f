/* agent.c: what only the agent of a state sees: the results of the state's dependencies, its parameters, and which
 * state it works for. Steps inside of an agent that is a workflow see the workflow's input instead. */
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

const struct rv__state *rv__ctx_agent(const struct rv_ctx *ctx)
{
    const struct rv__node *node = ctx->view.node;
    return node != NULL && ctx->view.state != NULL ? rv__node_speaks_for(node) : NULL;
}

static int put_inputs(struct rv_ctx *ctx, struct rv__buf *out)
{
    struct rv__stored_rows rows;
    rv__stored_rows_of(&rows, ctx);
    return rv__view_inputs(&ctx->view, &rows.source, out, NULL);
}

/* Later ones override earlier ones: the manifest's parameters, the run's input, the agent's and the state's own. */
static int put_parameters(struct rv_ctx *ctx, const struct rv__state *state, struct rv__buf *out)
{
    struct rv__str own = rv__str_none(state->parameters) ? rv__str("{}") : state->parameters;
    struct rv__stored_rows rows;
    struct rv__blob *input = NULL;
    rv__stored_rows_of(&rows, ctx);
    int rc = rv__blob_get(ctx->view.input, &rows.source, &input, NULL);
    if (rc < 0)
        return rc;
    struct rv__str whole = rv__blob_str(input);
    if (rv__str_none(whole) || rv__json_type(whole) != RV__JSON_OBJECT)
        whole = rv__str("{}");
    rc = rv__json_overlay(whole, own, out, NULL);
    rv__blob_unref(input);
    return rc;
}

static void put_state(const struct rv_ctx *ctx, const struct rv__state *state, struct rv__buf *out)
{
    rv__buf_text(out, "{\"name\":");
    rv__buf_json_str(out, ctx->view.state->alias);
    rv__buf_text(out, ",\"stage\":");
    rv__buf_json_str(out, ctx->view.state->owner->alias);
    rv__buf_fmt(out, ",\"priority\":%d,\"attempt\":%d}", state->priority,
                ctx->view.state_attempt - 1);
}

int rv__agent_see(struct rv_ctx *ctx, enum rv__part part, struct rv__buf *out)
{
    const struct rv__state *state = rv__ctx_agent(ctx);
    int rc = RV_OK;
    if (state == NULL)
        return RV_ENOTFOUND;
    if (part == PART_INPUTS)
        rc = put_inputs(ctx, out);
    else if (part == PART_PARAMETERS)
        rc = put_parameters(ctx, state, out);
    else if (part == PART_STATE)
        put_state(ctx, state, out);
    else
        rc = RV_ENOTFOUND;
    return rc < 0 ? rc : rv__buf_err(out, NULL);
}
