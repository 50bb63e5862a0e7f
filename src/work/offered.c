/* offered.c: reads what a worker registers from its frame, gives it to the engine, and answers. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/context.h"
#include "work/session.h"

enum { WORKFLOWS_MOST = 10000 }; /* limit of one frame `register`; the same for functions */

static void offered_free(struct rv__offered *offered)
{
    for (size_t i = 0; i < offered->count; i++)
        rv_workflow_free(offered->workflows[i].workflow);
    rv__free(offered->workflows);
    rv_workflow_free(offered->library);
    rv__buf_done(&offered->id);
    rv__buf_done(&offered->answer);
    rv__session_unref(offered->news.session);
    rv__free(offered);
}

/* The answer to a `register`. */
static void answer_register(struct rv__wire_task *task)
{
    struct rv__offered *offered = RV__CONTAINER(task, struct rv__offered, task);
    struct rv__session *s = offered->news.session;
    if (s->conn != NULL) {
        struct rv__buf *out = rv__conn_out(s->conn);
        bool good = offered->rc == RV_OK && offered->answer.rc == RV_OK;
        size_t start = rv__wire_begin(out, good ? FRAME_RESULT : FRAME_ERROR);
        if (offered->id.len > 0)
            rv__wire_json(out, "id", rv__buf_view(&offered->id));
        if (good) {
            rv__buf_str(out, rv__buf_view(&offered->answer));
        } else {
            rv__wire_int(out, "code", offered->rc < 0 ? offered->rc : RV_ENOMEM);
            rv__wire_text(out, "message",
                          rv__str(offered->rc < 0 ? offered->err.message : rv_strerror(RV_ENOMEM)));
        }
        rv__wire_end(out, start);
    }
    offered_free(offered);
}

void rv__news_done(struct rv__news *news)
{
    struct rv__session *s = news->session;
    if (news->offered == NULL) {
        rv__session_unref(s);
        return;
    }
    news->offered->task.run = answer_register;
    rv__wires_post(s->workers->services->wires, &news->offered->task);
}

static int take_names(rv_workflow *w, struct rv__str names, rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str value, name;
    size_t count = 0;
    if (rv__json_type(names) != RV__JSON_ARRAY)
        return rv__fail(err, RV_EINVAL, "'functions' is not a list of names");
    rv__json_iter_init(&it, names);
    while (rv__json_next(&it, NULL, &value)) {
        if (rv__json_type(value) != RV__JSON_STRING ||
            rv__json_string(value, &w->arena, &name) < 0 || name.len == 0)
            return rv__fail(err, RV_EINVAL, "a function without a name");
        if (++count > WORKFLOWS_MOST)
            return rv__fail(err, RV_ETOOBIG, "more than %d functions", WORKFLOWS_MOST);
        rv__workflow_offered(w, name);
    }
    return w->rc == RV_ENOMEM ? rv__nomem(err) : RV_OK;
}

static int take_workflow(struct rv__offered_workflow *ret, struct rv__str item, rv_error *err)
{
    struct rv__str plan = { NULL, 0 }, functions = { NULL, 0 }, validates = { NULL, 0 };
    if (rv__json_type(item) != RV__JSON_OBJECT || !rv__json_get(item, "plan", &plan) ||
        rv__json_type(plan) != RV__JSON_OBJECT)
        return rv__fail(err, RV_EINVAL, "a workflow without a plan");
    int rc = rv__workflow_read(plan, &ret->workflow, err);
    if (rc < 0)
        return rc;
    ret->validates = rv__json_get(item, "validates", &validates) && rv__str_is(validates, "true");
    return rv__json_get(item, "functions", &functions) ? take_names(ret->workflow, functions, err)
                                                       : RV_OK;
}

static int take_workflows(struct rv__offered *offered, struct rv__str list, rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str item;
    if (rv__json_type(list) != RV__JSON_ARRAY || rv__json_count(list) > WORKFLOWS_MOST)
        return rv__fail(err, RV_EINVAL, "'workflows' is not a list of at most %d", WORKFLOWS_MOST);
    offered->workflows = rv__zalloc(rv__json_count(list) + 1, sizeof *offered->workflows);
    if (offered->workflows == NULL)
        return rv__nomem(err);
    int rc = RV_OK;
    rv__json_iter_init(&it, list);
    while (rc == RV_OK && rv__json_next(&it, NULL, &item))
        rc = take_workflow(&offered->workflows[offered->count++], item, err);
    return rc;
}

static int take_module(struct rv__str value, uint64_t *ret, rv_error *err)
{
    return rv__hash_text_read(value, ret) < 0
               ? rv__fail(err, RV_EINVAL, "'module' is not a text of 16 hex digits")
               : RV_OK;
}

int rv__session_sees(struct rv__session *s, struct rv__str list, rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str item;
    unsigned sees = 0;
    if (rv__json_type(list) != RV__JSON_ARRAY)
        return rv__fail(err, RV_EINVAL, "'sees' is not a list");
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &item))
        for (int part = 0; part < PARTS; part++)
            if (rv__json_string_is(item, rv__str(rv__part_names[part])))
                sees |= 1u << part;
    s->sees = sees;
    return RV_OK;
}

void rv__session_register(struct rv__session *s, const struct rv__frame *frame)
{
    enum { WORKFLOWS, FUNCTIONS, MODULE, SEES, ID, KEYS };
    struct rv__str has[KEYS];
    struct rv__offered *offered = rv__zalloc(1, sizeof *offered);
    struct rv__services *services = s->workers->services;
    rv_error err;
    int rc = RV_OK;
    if (offered == NULL) {
        (void)rv__nomem(&err);
        rv__conn_refuse(s->conn, &err);
        return;
    }
    rv__frame_members(frame, (const char *[]){ "workflows", "functions", "module", "sees", "id" },
                      has, KEYS);
    offered->news.session = rv__session_ref(s);
    offered->news.offered = offered;
    rv__buf_init(&offered->id, 4096);
    rv__buf_init(&offered->answer, RV__FRAME_MAX);
    if (!rv__str_none(has[ID]))
        rv__buf_str(&offered->id, has[ID]);
    if (!rv__str_none(has[WORKFLOWS]))
        rc = take_workflows(offered, has[WORKFLOWS], &err);
    if (rc == RV_OK && !rv__str_none(has[FUNCTIONS])) {
        offered->library = rv__workflow_library();
        rc = offered->library != NULL ? take_names(offered->library, has[FUNCTIONS], &err)
                                      : rv__nomem(&err);
    }
    if (rc == RV_OK && !rv__str_none(has[MODULE]))
        rc = take_module(has[MODULE], &offered->module, &err);
    if (rc == RV_OK && !rv__str_none(has[SEES]))
        rc = rv__session_sees(s, has[SEES], &err);
    if (rc < 0) {
        offered->rc = rc;
        offered->err = err;
        answer_register(&offered->task);
    } else if (!services->worker_says(services->owner, &offered->news)) {
        offered_free(offered); /* the engine has closed, and will send `bye` */
    }
}
