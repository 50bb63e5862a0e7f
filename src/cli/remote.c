/* remote.c: the calls of client.h by HTTP: each is a request, whose document is read into the struct that the
 * engine would have returned.
 *
 * Tables map members of documents to fields of structs; they mirror server/shapes.c. A result is one allocation,
 * like the engine's, so that the same functions free it: the struct, its records, and then the texts, which are
 * never longer than in the document. */
#include "cli/remote.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "cli/text.h"
#include "server/server.h"

#define RUNS "/api/v1/runs"

enum {
    PATH_BYTES = 65536,
    PAGE_POSITION_BYTES = 64, /* `next` of a page of events: two numbers */
    RECORDS_MOST = 100000,    /* of one answer: a record takes more memory than its text */
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

/* ------------------------------------------------------------------------ documents to structs --- */

enum field_kind {
    FIELD_TEXT,
    FIELD_NAME, /* a text that is printed unchanged: control characters are replaced */
    FIELD_JSON,
    FIELD_INT,
    FIELD_INT64,
    FIELD_SIZE,
    FIELD_ITERATIONS,
    FIELD_UINT64,
    FIELD_RUN_ID,
    FIELD_MODULE,
    FIELD_STATUS,
    FIELD_LEVEL,
};

struct field {
    const char *key;
    enum field_kind kind;
    size_t at;
};
#define FIELD(name, field_kind, type, member)    \
    {                                            \
        name, field_kind, offsetof(type, member) \
    }

static const struct field run_fields[] = {
    FIELD("runId", FIELD_RUN_ID, rv_run_state, run_id),
    FIELD("workflow", FIELD_NAME, rv_run_state, workflow),
    FIELD("version", FIELD_NAME, rv_run_state, version),
    FIELD("status", FIELD_STATUS, rv_run_state, status),
    FIELD("createdAt", FIELD_INT64, rv_run_state, created_at),
    FIELD("startedAt", FIELD_INT64, rv_run_state, started_at),
    FIELD("completedAt", FIELD_INT64, rv_run_state, completed_at),
    FIELD("duration", FIELD_INT64, rv_run_state, duration_ms),
    FIELD("input", FIELD_JSON, rv_run_state, input),
    FIELD("results", FIELD_JSON, rv_run_state, results),
    FIELD("resultsTooLarge", FIELD_INT64, rv_run_state, results_too_large),
    FIELD("error", FIELD_JSON, rv_run_state, error),
    FIELD("failedStep", FIELD_NAME, rv_run_state, failed_step),
    FIELD("failedPath", FIELD_NAME, rv_run_state, failed_path),
    FIELD("suspension", FIELD_JSON, rv_run_state, suspension),
    FIELD("waiting", FIELD_NAME, rv_run_state, waiting),
    FIELD("rerunOf", FIELD_NAME, rv_run_state, rerun_of),
    FIELD("suspensions", FIELD_JSON, rv_run_state, suspensions),
    { NULL },
};
static const struct field node_fields[] = {
    FIELD("path", FIELD_NAME, rv_node, path),
    FIELD("alias", FIELD_NAME, rv_node, alias),
    FIELD("kind", FIELD_NAME, rv_node, kind),
    FIELD("status", FIELD_NAME, rv_node, status),
    FIELD("startedAt", FIELD_INT64, rv_node, started_at),
    FIELD("completedAt", FIELD_INT64, rv_node, completed_at),
    FIELD("duration", FIELD_INT64, rv_node, duration_ms),
    FIELD("queueMs", FIELD_INT64, rv_node, queue_ms),
    FIELD("dueAt", FIELD_INT64, rv_node, due_at),
    FIELD("attempt", FIELD_INT, rv_node, attempt),
    FIELD("retryCount", FIELD_INT, rv_node, retry_count),
    FIELD("crashes", FIELD_INT, rv_node, crashes),
    FIELD("module", FIELD_MODULE, rv_node, module),
    FIELD("error", FIELD_JSON, rv_node, error),
    FIELD("errorAttempt", FIELD_INT, rv_node, error_attempt),
    FIELD("errorAt", FIELD_INT64, rv_node, error_at),
    FIELD("description", FIELD_TEXT, rv_node, description),
    FIELD("label", FIELD_TEXT, rv_node, label),
    FIELD("itemSummary", FIELD_TEXT, rv_node, item),
    FIELD("children", FIELD_SIZE, rv_node, children),
    FIELD("iterations", FIELD_ITERATIONS, rv_node, iterations),
    { NULL },
};
static const struct field log_fields[] = {
    FIELD("id", FIELD_UINT64, rv_log_line, id),
    FIELD("timestamp", FIELD_INT64, rv_log_line, at),
    FIELD("level", FIELD_LEVEL, rv_log_line, level),
    FIELD("attempt", FIELD_INT, rv_log_line, attempt),
    FIELD("stepName", FIELD_NAME, rv_log_line, step),
    FIELD("path", FIELD_NAME, rv_log_line, path),
    FIELD("message", FIELD_TEXT, rv_log_line, message),
    FIELD("metadata", FIELD_JSON, rv_log_line, metadata),
    FIELD("kind", FIELD_NAME, rv_log_line, kind),
    { NULL },
};
static const struct field workflow_fields[] = {
    FIELD("name", FIELD_NAME, rv_workflow_info, name),
    FIELD("description", FIELD_TEXT, rv_workflow_info, description),
    FIELD("inputSchema", FIELD_JSON, rv_workflow_info, input_schema),
    FIELD("version", FIELD_NAME, rv_workflow_info, version),
    FIELD("source", FIELD_NAME, rv_workflow_info, source),
    FIELD("stepCount", FIELD_INT, rv_workflow_info, step_count),
    FIELD("cannotStart", FIELD_TEXT, rv_workflow_info, cannot_start),
    { NULL },
};
static const struct field violation_fields[] = {
    FIELD("path", FIELD_NAME, rv_violation, path),
    FIELD("message", FIELD_TEXT, rv_violation, message),
    { NULL },
};

/* Where the records and texts of a result go. */
struct room {
    char *records, *texts;
    struct rv__arena scratch;
    bool no_memory;
};

static const char *put_text(struct room *room, struct rv__str text)
{
    char *at = room->texts;
    memcpy(at, text.at, text.len);
    at[text.len] = '\0';
    room->texts += text.len + 1;
    return at;
}

static const char *put_string(struct room *room, struct rv__str value)
{
    struct rv__str text;
    int rc = rv__json_string(value, &room->scratch, &text);
    room->no_memory |= rc == RV_ENOMEM;
    return rc == RV_OK ? put_text(room, text) : "";
}

static const char *put_name(struct room *room, struct rv__str value)
{
    char *from = room->texts;
    const char *name = put_string(room, value);
    if (room->texts > from)
        rv__text_mask(from);
    return name;
}

/* The number of a word; an unknown word gives the first one. */
static int find_word(struct rv__str value, const char *(*name_of)(int), int first)
{
    for (int i = first; name_of(i) != NULL; i++)
        if (rv__json_string_is(value, rv__str(name_of(i))))
            return i;
    return first;
}

static const char *level_name(int level)
{
    static const char *const names[] = { "debug", "info", "warn", "error" };
    return level < 4 ? names[level] : NULL;
}

static bool is_id(struct rv__str value)
{
    return value.len > 2 && value.at[0] == '"' &&
           rv__id_valid((struct rv__str){ value.at + 1, value.len - 2 });
}

static size_t size_in(struct rv__str object, const char *key)
{
    struct rv__str value;
    int64_t n = 0;
    if (rv__json_get(object, key, &value))
        (void)rv__json_int(value, &n);
    return n > 0 ? (size_t)n : 0;
}

static rv_iterations iterations_of(struct rv__str object)
{
    return (rv_iterations){
        .total = size_in(object, "total"),
        .running = size_in(object, "running"),
        .completed = size_in(object, "completed"),
        .failed = size_in(object, "failed"),
        .cancelled = size_in(object, "cancelled"),
    };
}

/* Store a member's value in its field, if the type is right. */
static void fill_field(struct room *room, const struct field *field, struct rv__str value,
                       char *record)
{
    int64_t n = 0;
    void *at = record + field->at;
    (void)rv__json_int(value, &n); /* 0 if it is not a number */
    switch (field->kind) {
    case FIELD_TEXT: *(const char **)at = put_string(room, value); break;
    case FIELD_NAME: *(const char **)at = put_name(room, value); break;
    case FIELD_JSON: *(const char **)at = put_text(room, value); break;
    case FIELD_INT: *(int *)at = (int)n; break;
    case FIELD_INT64: *(int64_t *)at = n; break;
    case FIELD_SIZE: *(size_t *)at = n > 0 ? (size_t)n : 0; break;
    case FIELD_ITERATIONS: *(rv_iterations *)at = iterations_of(value); break;
    case FIELD_UINT64: *(uint64_t *)at = n > 0 ? (uint64_t)n : 0; break;
    case FIELD_RUN_ID:
        if (!is_id(value)) /* it is printed and used in paths unchanged */
            break;
        (void)snprintf(at, RV_RUN_ID_SIZE, "%s", put_string(room, value)); /* it fits, or is cut */
        break;
    case FIELD_MODULE:
        if (is_id(value))
            (void)snprintf(at, RV_MODULE_SIZE, "%s", put_string(room, value)); /* the same */
        break;
    case FIELD_STATUS: *(int *)at = find_word(value, rv_status_name, RV_RUNNING); break;
    case FIELD_LEVEL: *(int *)at = find_word(value, level_name, RV_DEBUG); break;
    }
}

static void fill(struct room *room, const struct field *fields, struct rv__str object, char *record)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    for (const struct field *f = fields; f->key != NULL; f++)
        if (f->kind == FIELD_TEXT || f->kind == FIELD_NAME || f->kind == FIELD_JSON)
            *(const char **)(void *)(record + f->at) = "";
        else if (f->kind == FIELD_STATUS)
            *(int *)(void *)(record + f->at) = RV_RUNNING;
    if (rv__json_type(object) != RV__JSON_OBJECT)
        return; /* an empty record all the same */
    rv__json_iter_init(&it, object);
    while (rv__json_next(&it, &key, &value))
        for (const struct field *f = fields; f->key != NULL; f++)
            if (rv__json_string_is(key, rv__str(f->key))) {
                fill_field(room, f, value, record);
                break;
            }
}

/* One block: `head` bytes for the struct, then a record for each of the array, then the texts. *records is
 * the first record, *count how many; `more` bytes of texts are left for the caller (room->texts). */
static void *make(const struct rv__buf *answer, struct rv__str array, size_t head,
                  const struct field *fields, size_t size, size_t *count, struct room *room)
{
    struct rv__json_iter it;
    struct rv__str item;
    size_t n = rv__json_count(array), names = 1;
    if (n > RECORDS_MOST) /* our server sends at most 1,000: this is not a valid answer */
        array = (struct rv__str){ "[]", 2 }, n = 0;
    for (const struct field *f = fields; f->key != NULL; f++)
        names++;
    *room = (struct room){ .no_memory = false };
    char *mem = rv__zalloc(1, head + n * size + answer->len + n * names + names);
    if (mem == NULL)
        return NULL;
    rv__arena_init(&room->scratch, SIZE_MAX); /* bounded by the answer */
    room->records = mem + head;
    room->texts = room->records + n * size;
    rv__json_iter_init(&it, array);
    for (size_t i = 0; rv__json_next(&it, NULL, &item); i++)
        fill(room, fields, item, room->records + i * size);
    rv__arena_done(&room->scratch);
    *count = n;
    if (!room->no_memory)
        return mem;
    rv__free(mem);
    return NULL;
}

static struct rv__str array_of(const struct rv__buf *answer, const char *key)
{
    struct rv__str array = { "[]", 2 };
    (void)rv__json_get(rv__buf_view(answer), key, &array);
    return array;
}

static int64_t number_of(const struct rv__buf *answer, const char *key)
{
    return (int64_t)size_in(rv__buf_view(answer), key);
}

/* ----------------------------------------------------------------------------------- looking --- */

/* The answer's array as a list of runs. */
static int make_runs(const struct rv__buf *answer, struct rv__str array, rv_run_list **ret,
                     rv_error *err)
{
    struct room room;
    struct rv__str next;
    size_t count = 0;
    rv_run_list *list = make(answer, array, sizeof *list, run_fields, sizeof(rv_run_state), &count,
                             &room);
    if (list == NULL)
        return rv__nomem(err);
    list->count = count;
    list->runs = (const rv_run_state *)(const void *)room.records;
    list->next = "";
    if (rv__json_get(rv__buf_view(answer), "nextCursor", &next) &&
        rv__json_type(next) == RV__JSON_STRING)
        list->next = put_text(&room, (struct rv__str){ next.at + 1, next.len - 2 });
    *ret = list;
    return RV_OK;
}

static int list_one(struct rv__wire *wire, const char *run_id, rv_run_list **ret, rv_error *err)
{
    struct rv__buf path, answer, array;
    put_run_path(&path, run_id, "?results=0");
    int rc = get(wire, &path, &answer, err);
    rv__buf_init(&array, SIZE_MAX / 8); /* bounded by the answer */
    rv__buf_char(&array, '[');
    if (rc == RV_OK)
        rv__buf_str(&array, rv__buf_view(&answer));
    rv__buf_char(&array, ']');
    if (rc == RV_OK)
        rc = rv__buf_err(&array, err);
    if (rc == RV_OK || rc == RV_ENOTFOUND)
        rc = make_runs(&answer, rv__buf_view(&array), ret, err);
    rv__buf_done(&array);
    rv__buf_done(&answer);
    return rc;
}

int rv__remote_list(struct rv__wire *wire, const rv_query *query, rv_run_list **ret, rv_error *err)
{
    struct rv__buf path, answer;
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
    int rc = get(wire, &path, &answer, err);
    if (rc == RV_OK)
        rc = make_runs(&answer, array_of(&answer, "runs"), ret, err);
    rv__buf_done(&answer);
    return rc;
}

int rv__remote_state(struct rv__wire *wire, const char *run_id, rv_run_state **ret, rv_error *err)
{
    struct rv__buf path, answer, array;
    struct room room;
    size_t count = 0;
    put_run_path(&path, run_id, "");
    int rc = get(wire, &path, &answer, err);
    if (rc == RV_OK) {
        rv__buf_init(&array, SIZE_MAX / 8); /* bounded by the answer */
        rv__buf_char(&array, '[');
        rv__buf_str(&array, rv__buf_view(&answer));
        rv__buf_char(&array, ']');
        /* the record is the struct */
        rv_run_state *state = rv__buf_err(&array, NULL) == RV_OK
                                  ? make(&answer, rv__buf_view(&array), 0, run_fields,
                                         sizeof *state, &count, &room)
                                  : NULL;
        rv__buf_done(&array);
        if (state == NULL)
            rc = rv__nomem(err);
        else
            *ret = state;
    }
    rv__buf_done(&answer);
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
    struct rv__buf path, answer;
    struct room room;
    size_t count = 0;
    put_run_path(&path, run_id, "/nodes");
    if (parent != NULL && *parent != '\0')
        put_param(&path, "parent", parent);
    put_number(&path, "offset", (int64_t)offset);
    put_number(&path, "limit", (int64_t)limit);
    int rc = get(wire, &path, &answer, err);
    if (rc == RV_OK) {
        rv_node_list *list = make(&answer, array_of(&answer, "nodes"), sizeof *list, node_fields,
                                  sizeof(rv_node), &count, &room);
        if (list == NULL) {
            rc = rv__nomem(err);
        } else {
            list->count = count;
            list->total = (size_t)number_of(&answer, "total");
            list->nodes = (const rv_node *)(const void *)room.records;
            if (are_below(list, parent)) {
                *ret = list;
            } else {
                rv_node_list_free(list);
                rc = rv__fail(err, RV_EPARSE, "the answer of %.80s has no nodes below '%.80s'",
                              rv__wire_url(wire), parent);
            }
        }
    }
    rv__buf_done(&answer);
    return rc;
}

int rv__remote_logs(struct rv__wire *wire, const char *run_id, const rv_log_query *query,
                    rv_log_list **ret, rv_error *err)
{
    struct rv__buf path, answer;
    struct room room;
    size_t count = 0;
    put_run_path(&path, run_id, "/logs");
    put_param(&path, "step", query->step);
    put_param(&path, "path", query->path);
    put_param(&path, "level", level_name(query->level));
    put_param(&path, "q", query->text);
    put_number(&path, "attempt", query->attempt);
    put_number(&path, "after", (int64_t)query->after);
    put_number(&path, "limit", (int64_t)query->limit);
    int rc = get(wire, &path, &answer, err);
    if (rc == RV_OK) {
        rv_log_list *list = make(&answer, array_of(&answer, "logs"), sizeof *list, log_fields,
                                 sizeof(rv_log_line), &count, &room);
        if (list == NULL) {
            rc = rv__nomem(err);
        } else {
            list->count = count;
            list->next = (uint64_t)number_of(&answer, "next");
            list->lines = (const rv_log_line *)(const void *)room.records;
            *ret = list;
        }
    }
    rv__buf_done(&answer);
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
                           const rv_attachment_query *query, char **ret, rv_error *err)
{
    struct rv__buf path;
    put_run_path(&path, run_id, "/attachments");
    put_param(&path, "stage", query->stage);
    put_param(&path, "state", query->state);
    put_param(&path, "status", query->status);
    put_number(&path, "latest", query->latest);
    put_number(&path, "last", (int64_t)query->last);
    put_number(&path, "limit", (int64_t)query->limit);
    return get_text(wire, &path, ret, err);
}

int rv__remote_attachment(struct rv__wire *wire, const char *run_id, const char *id, char **ret,
                          rv_error *err)
{
    struct rv__buf path;
    put_run_path(&path, run_id, "/attachments/");
    put_encoded(&path, id);
    return get_text(wire, &path, ret, err);
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
    int rc;
    do {
        put_run_path(&path, run_id,
                     acts ? "/history?by=1&limit=10000" : "/history?logs=0&limit=10000");
        put_param(&path, "after", after[0] != '\0' ? after : NULL);
        rc = get(wire, &path, &answer, err);
        rv__json_iter_init(&it, array_of(&answer, "events"));
        while (rc == RV_OK && rv__json_next(&it, NULL, &event))
            hear(arg, event);
        bool goes_on = rc == RV_OK && rv__json_get(rv__buf_view(&answer), "more", &more) &&
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
    struct rv__buf path, answer;
    struct room room;
    size_t count = 0;
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_text(&path, "/api/v1/workflows");
    int rc = get(wire, &path, &answer, err);
    if (rc == RV_OK) {
        rv_workflow_list *list = make(&answer, array_of(&answer, "workflows"), sizeof *list,
                                      workflow_fields, sizeof(rv_workflow_info), &count, &room);
        if (list == NULL) {
            rc = rv__nomem(err);
        } else {
            list->count = count;
            list->items = (const rv_workflow_info *)(const void *)room.records;
            *ret = list;
        }
    }
    rv__buf_done(&answer);
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

/* The violations of the input, from the problem document. */
static void take_violations(const struct rv__buf *answer, rv_violations **ret)
{
    struct room room;
    struct rv__str in;
    size_t count = 0;
    if (ret == NULL || !rv__json_get(rv__buf_view(answer), "in", &in) ||
        !rv__json_string_is(in, rv__str("input")))
        return;
    rv_violations *bad = make(answer, array_of(answer, "violations"), sizeof *bad, violation_fields,
                              sizeof(rv_violation), &count, &room);
    if (bad == NULL)
        return; /* only the message is reported then */
    bad->count = count;
    bad->items = (const rv_violation *)(const void *)room.records;
    bad->dropped = (size_t)number_of(answer, "omitted");
    *ret = bad;
}

int rv__remote_run(struct rv__wire *wire, const char *workflow, const char *input,
                   const rv_run_opts *opts, rv_run_info *ret, rv_error *err)
{
    static const struct field info_fields[] = {
        FIELD("runId", FIELD_RUN_ID, rv_run_info, run_id),
        FIELD("status", FIELD_STATUS, rv_run_info, status),
        { NULL },
    };
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
    if (rc == RV_OK && ret != NULL) {
        struct room room = { .texts = rv__zalloc(1, answer.len + 4) };
        char *texts = room.texts;
        rv__arena_init(&room.scratch, SIZE_MAX); /* bounded by the answer */
        if (texts != NULL)
            fill(&room, info_fields, rv__buf_view(&answer), (char *)ret);
        else
            rc = rv__nomem(err);
        struct rv__str validated;
        ret->schema_only = rv__json_get(rv__buf_view(&answer), "validated", &validated) &&
                           rv__json_string_is(validated, rv__str("schema"));
        rv__arena_done(&room.scratch);
        rv__free(texts);
    }
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
