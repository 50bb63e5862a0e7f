/* reads.c: the public calls that only read: each uses the engine's readers and calls read/. They run on the caller's
 * thread; only the plan of a workflow by name needs the loop. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/call.h"
#include "engine/member.h"
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

int rv_overview(rv_engine *e, char **ret, rv_error *err)
{
    if (e == NULL || ret == NULL)
        return e == NULL ? no_engine("rv_overview", err)
                         : rv__fail(err, RV_EINVAL, "rv_overview: nowhere to put it");
    rv__engine_enter(e);
    int rc = rv__overview(e->reading, rv__wall_ms(e->clock), ret, err);
    rv__engine_leave(e);
    return rc;
}

struct members {
    struct rv__buf out;
    int64_t self;
};

static int put_member(void *arg, const struct rv__store_member *member)
{
    struct members *members = arg;
    struct rv__buf *out = &members->out;
    rv__buf_fmt(out, "%s{\"id\":\"%lld\",\"process\":", out->text[out->len - 1] == '[' ? "" : ",",
                (long long)member->id);
    rv__buf_json_str(out, member->holder);
    rv__buf_text(out, ",\"version\":");
    rv__buf_json_str(out, member->version);
    if (!rv__str_none(member->workers)) {
        rv__buf_text(out, ",\"workers\":");
        rv__buf_json_str(out, member->workers);
    }
    rv__buf_fmt(out, ",\"runs\":%llu,\"since\":%lld,\"leaseUntil\":%lld%s}",
                (unsigned long long)member->runs, (long long)member->since_ms,
                (long long)member->lease_until_ms,
                member->id == members->self ? ",\"self\":true" : "");
    return rv__buf_err(out, NULL);
}

int rv_members(rv_engine *e, char **ret, rv_error *err)
{
    if (e == NULL || ret == NULL)
        return e == NULL ? no_engine("rv_members", err)
                         : rv__fail(err, RV_EINVAL, "rv_members: nowhere to put it");
    struct members members = { .self = rv__member_id(e) };
    int rc = RV_OK;
    rv__buf_init(&members.out, SIZE_MAX / 8); /* bounded by the members */
    rv__buf_text(&members.out, "{\"members\":[");
    rv__engine_enter(e);
    pthread_mutex_lock(&e->step_reader_lock);
    if (rv__buf_err(&members.out, err) == RV_OK && e->step_reader->ops->members != NULL)
        rc = e->step_reader->ops->members(e->step_reader, false, put_member, &members, err);
    pthread_mutex_unlock(&e->step_reader_lock);
    rv__engine_leave(e);
    rv__buf_text(&members.out, "]}");
    if (rc == RV_OK)
        rc = rv__buf_err(&members.out, err);
    if (rc == RV_OK)
        *ret = rv__buf_take(&members.out);
    rv__buf_done(&members.out);
    return rc;
}

int rv_attachments(rv_engine *e, const char *run_id, const rv_attachment_query *query,
                   rv_attachment_list **ret, rv_error *err)
{
    struct rv__stored_rows rows;
    if (e == NULL)
        return no_engine("rv_attachments", err);
    rv__engine_enter(e);
    rv__stored_rows_init(&rows, run_id, &e->reading->store, &e->reading->lock);
    int rc = rv__attachments(e->reading, run_id, query, rv__wall_ms(e->clock), &rows.source, ret,
                             err);
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
    struct rv__registered *found = rv__registry_offered(call->engine->registry,
                                                        rv__str(ask->workflow));
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

struct source_ask {
    const char *workflow;
    char path[RV__PATH_ROOM];
};

static int take_source(struct rv__call *call)
{
    struct source_ask *ask = call->arg;
    const struct rv__registered *found = rv__registry_offered(call->engine->registry,
                                                              rv__str(ask->workflow));
    if (found == NULL)
        return rv__fail(&call->err, RV_ENOTFOUND, "there is no workflow '%.80s'", ask->workflow);
    if (found->source[0] == '\0')
        return rv__fail(&call->err, RV_ENOTFOUND,
                        "workflow '%.80s' comes from a program, not from a file", ask->workflow);
    snprintf(ask->path, sizeof ask->path, "%s", found->source);
    return RV_OK;
}

/* All of it, if it is a text that is short enough. */
static int read_text(const char *path, struct rv__buf *out, rv_error *err)
{
    char piece[16384];
    struct stat about;
    int rc = RV_OK, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return rv__fail(err, errno == ENOENT ? RV_ENOTFOUND : RV_ESYS, "'%.150s': %s", path,
                        strerrordesc_np(errno));
    if (fstat(fd, &about) < 0 || !S_ISREG(about.st_mode))
        rc = rv__fail(err, RV_ENOTFOUND, "'%.150s' no longer exists as a file", path);
    while (rc == RV_OK && out->rc == RV_OK) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            rc = rv__fail(err, RV_ESYS, "'%.150s': %s", path, strerrordesc_np(errno));
        else if (n > 0)
            rv__buf_add(out, piece, (size_t)n);
    }
    (void)close(fd); /* it was only read */
    if (rc == RV_OK && out->rc == RV_ENOMEM)
        rc = rv__nomem(err);
    else if (rc == RV_OK && out->rc < 0)
        rc = rv__fail(err, RV_ETOOBIG, "'%.150s' has more than %d bytes", path, RV_SOURCE_BYTES);
    struct rv__str text = rv__buf_view(out);
    if (rc == RV_OK && (!rv__str_utf8(text) || memchr(text.at, '\0', text.len) != NULL))
        rc = rv__fail(err, RV_ETOOBIG, "'%.150s' is not a text", path);
    return rc;
}

int rv_workflow_source(rv_engine *e, const char *workflow, char **ret, rv_error *err)
{
    struct source_ask ask = { .workflow = workflow };
    struct rv__buf text;
    if (workflow == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL,
                        "rv_workflow_source: no workflow, or nowhere to put its text");
    int rc = rv__call_ask(e, take_source, &ask, err);
    if (rc < 0)
        return rc;
    rv__buf_init(&text, RV_SOURCE_BYTES);
    rc = read_text(ask.path, &text, err);
    if (rc == RV_OK && (*ret = rv__buf_take(&text)) == NULL)
        rc = rv__nomem(err);
    rv__buf_done(&text);
    return rc;
}

void rv_free(void *text)
{
    rv__free(text);
}
