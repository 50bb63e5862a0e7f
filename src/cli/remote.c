/* remote.c: the calls of client.h by HTTP: each is a request, whose document is read into the struct that the
 * engine would have returned. */
#include "cli/remote.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/document.h"

#define RUNS "/api/v1/runs"

enum {
    PATH_BYTES = 65536,
    PAGE_POSITION_BYTES = 64, /* `next` of a page of events: two numbers */
    HISTORY_MOST = 20000000,  /* events of one run: a server that has more never ends */
};

/* -------------------------------------------------------------------------------- requests --- */

static void put_encoded(struct rv__buf *out, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:";
    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL)
            rv__buf_char(out, *text);
        else
            rv__buf_fmt(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

/* /api/v1/runs/ID and `rest`. */
static void put_run_path(struct rv__buf *out, const char *run_id, const char *rest)
{
    rv__buf_init(out, PATH_BYTES);
    rv__buf_text(out, RUNS "/");
    put_encoded(out, run_id);
    rv__buf_text(out, rest);
}

/* ?name=text or &name=text, unless it is NULL. */
static void put_param(struct rv__buf *out, const char *name, const char *text)
{
    if (text == NULL)
        return;
    rv__buf_char(out, strchr(rv__buf_view(out).at, '?') != NULL ? '&' : '?');
    rv__buf_text(out, name);
    rv__buf_char(out, '=');
    put_encoded(out, text);
}

static void put_number(struct rv__buf *out, const char *name, int64_t number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lld", (long long)number);
    if (number != 0)
        put_param(out, name, text);
}

/* Replace the answer by an object without members, so that it can be read. */
static void make_empty(struct rv__buf *answer)
{
    rv__buf_reset(answer);
    rv__buf_text(answer, "{}");
}

static bool is_object(const struct rv__buf *answer, rv_error *why)
{
    struct rv__str value;
    if (rv__json_check(rv__buf_view(answer), RV__JSON_MAX_DEPTH, &value, why) < 0)
        return false;
    return rv__json_type(value) == RV__JSON_OBJECT ||
           rv__fail(why, RV_EPARSE, "it is not an object") == RV_OK;
}

/* Send a request. `answer` is freed with rv__buf_done(), and is a JSON object whatever the server sent and whatever
 * this returns. Frees the path. */
static int ask(struct rv__wire *wire, const char *method, struct rv__buf *path, struct rv__str body,
               struct rv__buf *answer, rv_error *err)
{
    rv_error why;
    rv__buf_init(answer, 0);
    int rc = rv__buf_err(path, err);
    if (rc == RV_OK)
        rc = rv__wire_ask(wire, method, rv__buf_view(path).at, body, answer, err);
    rv__buf_done(path);
    bool good = rc >= 0 && is_object(answer, &why);
    int status = rc;
    if (status >= 0 && (status < 200 || status > 299))
        rc = rv__wire_problem(wire, status, good ? rv__buf_view(answer) : rv__str("{}"), err);
    else if (status >= 0)
        rc = good ? RV_OK
                  : rv__fail(err, RV_EPARSE,
                             "the answer of %.80s is not a document of Rival: %.100s",
                             rv__wire_url(wire), why.message);
    if (!good)
        make_empty(answer);
    return answer->rc < 0 && rc == RV_OK ? rv__nomem(err) : rc;
}

static int get(struct rv__wire *wire, struct rv__buf *path, struct rv__buf *answer, rv_error *err)
{
    return ask(wire, "GET", path, (struct rv__str){ NULL, 0 }, answer, err);
}

/* Get a document as the struct that the table describes. */
static int get_document(struct rv__wire *wire, struct rv__buf *path, const struct rv__document *of,
                        size_t head, void **ret, rv_error *err)
{
    struct rv__buf answer;
    int rc = get(wire, path, &answer, err);
    if (rc == RV_OK)
        rc = rv__document_read(of, rv__buf_view(&answer), head, ret, err);
    rv__buf_done(&answer);
    return rc;
}

static struct rv__str array_of(const struct rv__buf *answer, const char *key)
{
    struct rv__str array = { "[]", 2 };
    (void)rv__json_get(rv__buf_view(answer), key, &array);
    return array;
}

/* ----------------------------------------------------------------------------------- looking --- */

static int list_one(struct rv__wire *wire, const char *run_id, rv_run_list **ret, rv_error *err)
{
    struct rv__buf path;
    void *mem = NULL;
    put_run_path(&path, run_id, "?results=0");
    int rc = get_document(wire, &path, &rv__doc_run_detail, sizeof(rv_run_list), &mem, err);
    size_t count = rc == RV_OK;
    if (rc == RV_ENOTFOUND)
        rc = rv__document_read(&rv__doc_run_list, rv__str("{}"), 0, &mem, err);
    if (rc != RV_OK)
        return rc;
    rv_run_list *list = mem;
    *list = (rv_run_list){ .count = count, .next = "" };
    list->runs = (const rv_run_state *)((char *)mem + RV__DOCUMENT_AT(sizeof *list));
    *ret = list;
    return RV_OK;
}

int rv__remote_list(struct rv__wire *wire, const rv_query *query, rv_run_list **ret, rv_error *err)
{
    struct rv__buf path;
    void *list = NULL;
    if (query->run_id != NULL)
        return list_one(wire, query->run_id, ret, err);
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_text(&path, RUNS);
    put_param(&path, "workflow", query->workflow);
    if (query->status > 0)
        put_param(&path, "status", rv_status_name(query->status));
    if (query->waiting)
        put_param(&path, "waiting", "somebody");
    put_param(&path, "rerunOf", query->rerun_of);
    put_number(&path, "since", query->since);
    put_number(&path, "until", query->until);
    put_param(&path, "q", query->text);
    put_number(&path, "limit", (int64_t)query->limit);
    if (query->cursor != NULL && *query->cursor != '\0')
        put_param(&path, "cursor", query->cursor);
    int rc = get_document(wire, &path, &rv__doc_run_list, 0, &list, err);
    if (rc == RV_OK)
        *ret = list;
    return rc;
}

int rv__remote_state(struct rv__wire *wire, const char *run_id, rv_run_state **ret, rv_error *err)
{
    struct rv__buf path;
    void *state = NULL;
    put_run_path(&path, run_id, "");
    int rc = get_document(wire, &path, &rv__doc_run_detail, 0, &state, err);
    if (rc == RV_OK)
        *ret = state;
    return rc;
}

/* A child's path must begin with its parent's, so that a walk down the tree ends. */
static bool are_below(const rv_node_list *list, const char *parent)
{
    size_t len = parent != NULL ? strlen(parent) : 0;
    for (size_t i = 0; len > 0 && i < list->count; i++) {
        const char *path = list->nodes[i].path;
        if (strncmp(path, parent, len) != 0 || path[len] != ':' || path[len + 1] == '\0')
            return false;
    }
    return true;
}

int rv__remote_nodes(struct rv__wire *wire, const char *run_id, const char *parent, size_t offset,
                     size_t limit, rv_node_list **ret, rv_error *err)
{
    struct rv__buf path;
    void *mem = NULL;
    put_run_path(&path, run_id, "/nodes");
    if (parent != NULL && *parent != '\0')
        put_param(&path, "parent", parent);
    put_number(&path, "offset", (int64_t)offset);
    put_number(&path, "limit", (int64_t)limit);
    int rc = get_document(wire, &path, &rv__doc_node_list, 0, &mem, err);
    if (rc != RV_OK)
        return rc;
    rv_node_list *list = mem;
    if (!are_below(list, parent)) {
        rv_node_list_free(list);
        return rv__fail(err, RV_EPARSE, "the answer of %.80s has no nodes below '%.80s'",
                        rv__wire_url(wire), parent);
    }
    *ret = list;
    return RV_OK;
}

int rv__remote_logs(struct rv__wire *wire, const char *run_id, const rv_log_query *query,
                    rv_log_list **ret, rv_error *err)
{
    struct rv__buf path;
    void *list = NULL;
    put_run_path(&path, run_id, "/logs");
    put_param(&path, "step", query->step);
    put_param(&path, "path", query->path);
    put_param(&path, "level", rv__level_names[query->level]);
    put_param(&path, "q", query->text);
    put_number(&path, "attempt", query->attempt);
    put_number(&path, "after", (int64_t)query->after);
    put_number(&path, "limit", (int64_t)query->limit);
    int rc = get_document(wire, &path, &rv__doc_log_list, 0, &list, err);
    if (rc == RV_OK)
        *ret = list;
    return rc;
}

static int get_text(struct rv__wire *wire, struct rv__buf *path, char **ret, rv_error *err)
{
    struct rv__buf answer;
    int rc = get(wire, path, &answer, err);
    if (rc == RV_OK)
        *ret = rv__buf_take(&answer);
    rv__buf_done(&answer);
    return rc;
}

int rv__remote_attachments(struct rv__wire *wire, const char *run_id,
                           const rv_attachment_query *query, rv_attachment_list **ret,
                           rv_error *err)
{
    struct rv__buf path;
    void *list = NULL;
    put_run_path(&path, run_id, "/attachments");
    put_param(&path, "stage", query->stage);
    put_param(&path, "state", query->state);
    put_param(&path, "status", query->status);
    put_number(&path, "latest", query->latest);
    put_number(&path, "last", (int64_t)query->last);
    put_number(&path, "limit", (int64_t)query->limit);
    int rc = get_document(wire, &path, &rv__doc_attachment_list, 0, &list, err);
    if (rc == RV_OK)
        *ret = list;
    return rc;
}

int rv__remote_attachment(struct rv__wire *wire, const char *run_id, const char *id,
                          rv_attachment_list **ret, rv_error *err)
{
    struct rv__buf path;
    void *mem = NULL;
    put_run_path(&path, run_id, "/attachments/");
    put_encoded(&path, id);
    int rc = get_document(wire, &path, &rv__doc_attachment_detail, sizeof(rv_attachment_list), &mem,
                          err);
    if (rc != RV_OK)
        return rc;
    rv_attachment_list *list = mem;
    *list = (rv_attachment_list){ .count = 1, .total = 1 };
    list->attachments = (const rv_attachment *)((char *)mem + RV__DOCUMENT_AT(sizeof *list));
    *ret = list;
    return RV_OK;
}

int rv__remote_plan(struct rv__wire *wire, const char *run_id, char **ret, rv_error *err)
{
    struct rv__buf path;
    put_run_path(&path, run_id, "/plan");
    return get_text(wire, &path, ret, err);
}

int rv__remote_why(struct rv__wire *wire, const char *run_id, char **ret, rv_error *err)
{
    struct rv__buf path;
    put_run_path(&path, run_id, "/why");
    return get_text(wire, &path, ret, err);
}

int rv__remote_history(struct rv__wire *wire, const char *run_id, bool acts,
                       void (*hear)(void *arg, struct rv__str event), void *arg, rv_error *err)
{
    struct rv__buf path, answer;
    struct rv__json_iter it;
    struct rv__str event, next, more;
    char after[PAGE_POSITION_BYTES] = "";
    size_t total = 0;
    int rc;
    do {
        put_run_path(&path, run_id,
                     acts ? "/history?by=1&limit=10000" : "/history?logs=0&limit=10000");
        put_param(&path, "after", after[0] != '\0' ? after : NULL);
        rc = get(wire, &path, &answer, err);
        rv__json_iter_init(&it, array_of(&answer, "events"));
        size_t heard = 0;
        for (; rc == RV_OK && rv__json_next(&it, NULL, &event); heard++)
            hear(arg, event);
        total += heard;
        bool goes_on = heard > 0 && total < HISTORY_MOST &&
                       rv__json_get(rv__buf_view(&answer), "more", &more) &&
                       rv__str_is(more, "true") &&
                       rv__json_get(rv__buf_view(&answer), "next", &next) &&
                       rv__json_type(next) == RV__JSON_STRING && next.len < sizeof after;
        if (goes_on)
            (void)snprintf(after, sizeof after, "%.*s", (int)next.len - 2, next.at + 1);
        else
            after[0] = '\0';
        rv__buf_done(&answer);
    } while (after[0] != '\0');
    return rc;
}

int rv__remote_given(struct rv__wire *wire, const char *run_id, const char *node,
                     struct rv__buf *ret, rv_error *err)
{
    struct rv__buf path, answer;
    struct rv__json_iter it;
    struct rv__str attempt, input, last = { NULL, 0 };
    put_run_path(&path, run_id, "/node");
    put_param(&path, "path", node);
    int rc = get(wire, &path, &answer, err);
    rv__json_iter_init(&it, array_of(&answer, "attempts"));
    while (rc == RV_OK && rv__json_next(&it, NULL, &attempt))
        if (rv__json_get(attempt, "input", &input))
            last = input;
    if (last.len > 0)
        rv__buf_str(ret, last);
    rv__buf_done(&answer);
    return rc;
}

int rv__remote_members(struct rv__wire *wire, char **ret, rv_error *err)
{
    struct rv__buf path;
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_text(&path, "/api/v1/members");
    return get_text(wire, &path, ret, err);
}

int rv__remote_workflows(struct rv__wire *wire, rv_workflow_list **ret, rv_error *err)
{
    struct rv__buf path;
    void *list = NULL;
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_text(&path, "/api/v1/workflows");
    int rc = get_document(wire, &path, &rv__doc_workflow_list, 0, &list, err);
    if (rc == RV_OK)
        *ret = list;
    return rc;
}

/* ---------------------------------------------------------------------------------- telling --- */

static int tell(struct rv__wire *wire, struct rv__buf *path, struct rv__str body, rv_error *err)
{
    struct rv__buf answer;
    int rc = ask(wire, "POST", path, body, &answer, err);
    rv__buf_done(&answer);
    return rc;
}

/* The violations of the input, from the problem document. Without memory, only the message is reported. */
static void take_violations(const struct rv__buf *answer, rv_violations **ret)
{
    void *mem = NULL;
    if (ret == NULL || rv__document_read(&rv__doc_problem, rv__buf_view(answer), 0, &mem, NULL) < 0)
        return;
    struct rv__problem *problem = mem;
    if (strcmp(problem->in, "input") == 0)
        *ret = &problem->violations;
    else
        rv__free(mem);
}

static int take_run(const struct rv__buf *answer, rv_run_info *ret, rv_error *err)
{
    void *mem = NULL;
    int rc = rv__document_read(&rv__doc_run_ref, rv__buf_view(answer), 0, &mem, err);
    if (rc < 0)
        return rc;
    const struct rv__run_ref *ref = mem;
    *ret = ref->info;
    ret->schema_only = strcmp(ref->validated, "schema") == 0;
    rv__free(mem);
    return RV_OK;
}

int rv__remote_run(struct rv__wire *wire, const char *workflow, const char *input,
                   const rv_run_opts *opts, rv_run_info *ret, rv_error *err)
{
    struct rv__buf path, body, answer;
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_text(&path, "/api/v1/workflows/");
    put_encoded(&path, workflow);
    rv__buf_text(&path, "/runs");
    rv__buf_init(&body, RV__JSON_MAX_BYTES);
    rv__buf_text(&body, "{\"runId\":");
    rv__buf_json_str(&body, rv__str(opts->run_id));
    if (opts->rerun_of != NULL)
        rv__put_text(&body, "rerunOf", opts->rerun_of);
    if (opts->max_concurrency != 0)
        rv__buf_fmt(&body, ",\"maxConcurrency\":%lld", (long long)opts->max_concurrency);
    rv__put_json(&body, "input", input);
    rv__buf_char(&body, '}');
    rv__buf_init(&answer, 0);
    int rc = rv__buf_err(&body, err);
    if (rc == RV_OK)
        rc = ask(wire, "POST", &path, rv__buf_view(&body), &answer, err);
    else
        rv__buf_done(&path);
    if (rc == RV_EINVAL)
        take_violations(&answer, opts->violations);
    if (rc == RV_ESTATE) { /* at a start, this can only mean that the run exists */
        rc = RV_EEXIST;
        if (err != NULL)
            err->code = rc;
    }
    if (rc == RV_OK && ret != NULL)
        rc = take_run(&answer, ret, err);
    rv__buf_done(&body);
    rv__buf_done(&answer);
    return rc;
}

int rv__remote_cancel(struct rv__wire *wire, const char *run_id, rv_error *err)
{
    struct rv__buf path;
    put_run_path(&path, run_id, "/cancel");
    return tell(wire, &path, rv__str("{}"), err);
}

int rv__remote_decide(struct rv__wire *wire, const char *run_id, int decision,
                      const rv_decide_opts *opts, rv_error *err)
{
    static const char *const actions[] = { [RV_RESUME] = "resume",
                                           [RV_ABORT] = "abort",
                                           [RV_SKIP] = "skip",
                                           [RV_RESTART_STAGE] = "restart_stage" };
    struct rv__buf path, body;
    put_run_path(&path, run_id, "/decide");
    rv__buf_init(&body, RV__JSON_MAX_BYTES);
    rv__buf_fmt(&body, "{\"action\":\"%s\"", actions[decision]);
    if (opts->path != NULL)
        rv__put_text(&body, "path", opts->path);
    if (opts->reason != NULL)
        rv__put_text(&body, "reason", opts->reason);
    rv__buf_char(&body, '}');
    int rc = rv__buf_err(&body, err);
    if (rc == RV_OK)
        rc = tell(wire, &path, rv__buf_view(&body), err);
    else
        rv__buf_done(&path);
    rv__buf_done(&body);
    return rc;
}

int rv__remote_signal(struct rv__wire *wire, const char *run_id, const char *name,
                      const char *payload, bool force, rv_error *err)
{
    struct rv__buf path, answer;
    struct rv__str code;
    put_run_path(&path, run_id, "/signals/");
    put_encoded(&path, name);
    if (force)
        rv__buf_text(&path, "?force=true");
    int rc = ask(wire, "POST", &path, rv__str(payload), &answer, err);
    if (rc == RV_ESTATE && rv__json_get(rv__buf_view(&answer), "code", &code) &&
        rv__json_string_is(code, rv__str("unwanted")))
        rc = RV_EUNWANTED;
    if (rc == RV_EUNWANTED && err != NULL)
        err->code = rc;
    rv__buf_done(&answer);
    return rc;
}

int rv__remote_complete(struct rv__wire *wire, const char *run_id, const char *handle,
                        const char *result, const char *error, rv_error *err)
{
    struct rv__buf path, body;
    put_run_path(&path, run_id, "/handles/");
    put_encoded(&path, handle);
    rv__buf_init(&body, RV__JSON_MAX_BYTES);
    if (error != NULL) {
        rv__buf_text(&body, "{\"error\":");
        rv__buf_json_str(&body, rv__str(error));
    } else {
        rv__buf_text(&body, "{\"result\":");
        rv__buf_text(&body, result != NULL ? result : "null");
    }
    rv__buf_char(&body, '}');
    int rc = rv__buf_err(&body, err);
    if (rc == RV_OK)
        rc = tell(wire, &path, rv__buf_view(&body), err);
    else
        rv__buf_done(&path);
    rv__buf_done(&body);
    return rc;
}

int rv__remote_events_path(const char *run_id, bool no_logs, bool from_oldest, struct rv__buf *ret,
                           rv_error *err)
{
    put_run_path(ret, run_id, no_logs ? "/events?logs=0&from=" : "/events?from=");
    rv__buf_text(ret, from_oldest ? "oldest" : "now");
    return rv__buf_err(ret, err);
}
