/* reads.c: the public calls that only read: each takes the engine's readers and hands on to read/. On
 * the caller's thread; the loop takes no part in them, but for the plan of a workflow by name. */
#include "base/alloc.h"
#include "base/error.h"
#include "engine/call.h"
#include "read/read.h"

static int no_engine(const char *call, rv_error *err)
{
    return rv__fail(err, RV_EINVAL, "%s: no engine given", call);
}

int rv_feed_open(rv_engine *e, const rv_feed_opts *opts, rv_feed **ret, rv_error *err)
{
    if (e == NULL)
        return no_engine("rv_feed_open", err);
    rv__engine_enter(e);
    int rc = rv__feed_open(e->reading, opts, ret, err);
    rv__engine_leave(e);
    return rc;
}

int rv_nodes(rv_engine *e, const char *run_id, const rv_node_query *query, rv_node_list **ret,
             rv_error *err)
{
    if (e == NULL)
        return no_engine("rv_nodes", err);
    rv__engine_enter(e);
    int rc = rv__nodes(e->reading, run_id, query, rv__wall_ms(e->clock), ret, err);
    rv__engine_leave(e);
    return rc;
}

int rv_node_get(rv_engine *e, const char *run_id, const char *path, rv_node_detail **ret,
                rv_error *err)
{
    if (e == NULL)
        return no_engine("rv_node_get", err);
    rv__engine_enter(e);
    int rc = rv__node_get(e->reading, run_id, path, rv__wall_ms(e->clock), ret, err);
    rv__engine_leave(e);
    return rc;
}

int rv_logs(rv_engine *e, const char *run_id, const rv_log_query *query, rv_log_list **ret,
            rv_error *err)
{
    if (e == NULL)
        return no_engine("rv_logs", err);
    rv__engine_enter(e);
    int rc = rv__logs(e->reading, run_id, query, ret, err);
    rv__engine_leave(e);
    return rc;
}

int rv_plan_of_run(rv_engine *e, const char *run_id, char **ret, rv_error *err)
{
    if (e == NULL)
        return no_engine("rv_plan_of_run", err);
    rv__engine_enter(e);
    int rc = rv__plan_of_run(e->reading, run_id, ret, err);
    rv__engine_leave(e);
    return rc;
}

struct plan_ask {
    const char *workflow;
    struct rv__plan_ref *plan; /* held */
};

static int take_plan(struct rv__call *call)
{
    struct plan_ask *ask = call->arg;
    struct rv__registered *found = rv__registry_offered(call->engine, rv__str(ask->workflow));
    if (found == NULL)
        return rv__fail(&call->err, RV_ENOTFOUND, "there is no workflow '%.80s'", ask->workflow);
    ask->plan = rv__plan_ref_ref(found->plan);
    return RV_OK;
}

int rv_plan_of_workflow(rv_engine *e, const char *workflow, char **ret, rv_error *err)
{
    struct plan_ask ask = { .workflow = workflow };
    if (workflow == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL,
                        "rv_plan_of_workflow: no workflow, or nowhere to put the plan");
    int rc = rv__call_ask(e, take_plan, &ask, err);
    if (rc == RV_OK)
        rc = rv__plan_text(ask.plan->plan, ret, err);
    rv__plan_ref_unref(ask.plan);
    return rc;
}

void rv_free(void *text)
{
    rv__free(text);
}
