/* attachment.c: the attachment that each attempt of a state leaves: its id, and its row in the store.
 *
 * The id is decided when the attempt begins and is part of that fact, so replay gives the same. It contains the
 * second, so only attempts of one second can collide: the cell remembers which ids were given in the last second.
 * If the clock is set back, ids keep that last second.
 *
 * The row is written with the fact that ends the attempt, like the row of an iteration (left.c), under a key of
 * its own. The rows of a run are numbered from 1 in the order in which attempts ended, so a page of the list is a
 * range of numbers. It contains the result, so that nobody has to search the journal; long texts are values, as
 * everywhere. ADR 0038, ADR 0047. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/write.h"

enum { FIRST_STAMPS = 16 };

struct rv__stamp {
    uint64_t name; /* the hash of an id without its suffix */
    int64_t count; /* how often it was given in this second */
};

void rv__stamps_done(struct rv__stamps *stamps)
{
    rv__free(stamps->at);
    rv__free(stamps->table);
    *stamps = (struct rv__stamps){ .count = 0 };
}

/* ---------------------------------------------------------------------------------- names --- */

/* The second in the id of an attempt that begins now. */
static int64_t second_of(const struct rv__cell *cell, int64_t at_ms)
{
    int64_t second = at_ms >= 0 ? at_ms / 1000 : -((999 - at_ms) / 1000);
    return second > cell->stamps.second ? second : cell->stamps.second;
}

/* [stage][state][agent]_YYMMDDTHHMMSS_attempt */
static void put_name(const struct rv__actor *sup, int64_t index, int attempt, int64_t second,
                     struct rv__buf *out)
{
    char text[RV__TIME_TEXT_SIZE]; /* 2026-11-17T05:09:41.000Z */
    const struct rv__state *state = &sup->node->stage.states[index];
    struct rv__str name = sup->node->bodies[index].alias;
    struct rv__str agent = rv__str_none(state->agent_id) ? name : state->agent_id;
    rv__time_text(second * 1000, text);
    rv__buf_fmt(out, "[%.*s][%.*s][%.*s]_%.2s%.2s%.2sT%.2s%.2s%.2s_%d", RV__ARG(sup->node->alias),
                RV__ARG(name), RV__ARG(agent), text + 2, text + 5, text + 8, text + 11, text + 14,
                text + 17, attempt - 1);
}

static uint64_t hash_of(struct rv__str name)
{
    return rv__str_hash(RV__HASH_START, name) >> 4; /* a number that snapshots can hold */
}

/* The slot of a hash: where it is, or belongs. */
static uint32_t *slot_of(const struct rv__stamps *s, uint64_t name)
{
    size_t at = (size_t)(name * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (s->table_size - 1);
    while (s->table[at] != 0 && s->at[s->table[at] - 1].name != name)
        at = (at + 1) & (s->table_size - 1);
    return &s->table[at];
}

static int64_t given(const struct rv__stamps *s, uint64_t name)
{
    uint32_t at = s->table_size > 0 ? *slot_of(s, name) : 0;
    return at > 0 ? s->at[at - 1].count : 0;
}

/* Room for one more. RV_ENOMEM: unchanged. */
static int make_room(struct rv__stamps *s)
{
    if (s->count < s->cap)
        return RV_OK;
    uint32_t cap = s->cap > 0 ? s->cap * 2 : FIRST_STAMPS;
    uint32_t *table = rv__zalloc((size_t)cap * 2, sizeof *table);
    struct rv__stamp *at = table != NULL ? rv__realloc(s->at, cap * sizeof *at) : NULL;
    if (at == NULL) {
        rv__free(table);
        return RV_ENOMEM;
    }
    rv__free(s->table);
    s->at = at;
    s->table = table;
    s->cap = cap;
    s->table_size = (size_t)cap * 2;
    for (uint32_t i = 0; i < s->count; i++)
        *slot_of(s, s->at[i].name) = i + 1;
    return RV_OK;
}

static int note(struct rv__stamps *s, uint64_t name, int64_t count)
{
    if (make_room(s) < 0)
        return RV_ENOMEM;
    uint32_t *slot = slot_of(s, name);
    if (*slot == 0) {
        s->at[s->count++] = (struct rv__stamp){ name, 0 };
        *slot = s->count;
    }
    s->at[*slot - 1].count += count;
    return RV_OK;
}

int rv__attachment_name(const struct rv__cell *cell, const struct rv__actor *sup, int64_t index,
                        int attempt, int64_t at_ms, struct rv__blob **ret)
{
    struct rv__buf name;
    int64_t second = second_of(cell, at_ms);
    rv__buf_init(&name, SIZE_MAX / 8); /* three names of a plan at most */
    put_name(sup, index, attempt, second, &name);
    int64_t before = second == cell->stamps.second && rv__buf_err(&name, NULL) == RV_OK
                         ? given(&cell->stamps, hash_of(rv__buf_view(&name)))
                         : 0;
    if (before > 0 && !RV__BUG(220))
        rv__buf_fmt(&name, "-%lld", (long long)before + 1);
    *ret = rv__buf_err(&name, NULL) == RV_OK ? rv__blob_new(rv__buf_view(&name)) : NULL;
    rv__buf_done(&name);
    return *ret != NULL ? RV_OK : RV_ENOMEM;
}

int rv__attachment_begun(struct rv__cell *cell, const struct rv__actor *sup,
                         const struct rv__fact *fact)
{
    struct rv__stamps *s = &cell->stamps;
    struct rv__buf name;
    int64_t second = second_of(cell, fact->at_ms);
    if (make_room(s) < 0)
        return RV_ENOMEM;
    rv__buf_init(&name, SIZE_MAX / 8);
    put_name(sup, fact->index, fact->attempt, second, &name);
    int rc = rv__buf_err(&name, NULL);
    if (rc == RV_OK && second > s->second) {
        s->second = second;
        s->count = 0;
        memset(s->table, 0, s->table_size * sizeof *s->table);
    }
    if (rc == RV_OK)
        (void)note(s, hash_of(rv__buf_view(&name)), 1); /* there is room */
    rv__buf_done(&name);
    return rc;
}

/* [second,name,count,…] */
void rv__stamps_save(const struct rv__stamps *s, struct rv__buf *out)
{
    if (s->count == 0)
        return;
    rv__buf_text(out, ",\"stamps\":[");
    rv__buf_int(out, s->second);
    for (uint32_t i = 0; i < s->count; i++) {
        rv__buf_char(out, ',');
        rv__buf_int(out, (int64_t)s->at[i].name);
        rv__buf_char(out, ',');
        rv__buf_int(out, s->at[i].count);
    }
    rv__buf_char(out, ']');
}

int rv__stamps_load(struct rv__stamps *s, struct rv__str json)
{
    struct rv__json_iter it;
    struct rv__str number;
    int64_t name, count;
    if (rv__json_type(json) != RV__JSON_ARRAY)
        return RV_EINVAL;
    rv__json_iter_init(&it, json);
    if (!rv__json_next(&it, NULL, &number) || rv__json_int(number, &s->second) < 0 ||
        s->second > RV__MAX_NUMBER / 1000 || s->second < -RV__MAX_NUMBER / 1000)
        return RV_EINVAL;
    while (rv__json_next(&it, NULL, &number)) {
        if (rv__json_int(number, &name) < 0 || name < 0 || name > RV__MAX_NUMBER ||
            !rv__json_next(&it, NULL, &number) || rv__json_int(number, &count) < 0 || count < 1 ||
            count > RV__MAX_NUMBER || given(s, (uint64_t)name) > 0)
            return RV_EINVAL;
        if (note(s, (uint64_t)name, count) < 0)
            return RV_ENOMEM;
    }
    return s->count > 0 ? RV_OK : RV_EINVAL;
}

/* ----------------------------------------------------------------------------------- rows --- */

static void put_text(struct rv__buf *out, const char *key, struct rv__str text)
{
    rv__buf_text(out, key);
    rv__buf_json_str(out, text);
}

static void put_number(struct rv__buf *out, const char *key, int64_t number)
{
    rv__buf_text(out, key);
    rv__buf_int(out, number);
}

/* The description by its agent. A state that is a value is not loaded. */
static void put_description(struct rv__writer *w, const struct rv__entry *entry)
{
    struct rv__str text;
    if (entry->description != NULL) {
        rv__writer_put(w, ",");
        rv__writer_put_member(w, "description", entry->description, "null");
    } else if (rv__blob_is_reference(entry->state)) {
        rv__writer_put(w, ",");
        rv__writer_put_member(w, "state", entry->state, "{}");
    } else if (entry->state != NULL &&
               rv__json_type(rv__blob_str(entry->state)) == RV__JSON_OBJECT &&
               rv__json_get(rv__blob_str(entry->state), "description", &text)) {
        rv__writer_put(w, ",\"description\":");
        rv__writer_put_str(w, text);
    }
}

/* Its result if it finished, else its error; and its description. */
static void put_outcome(const struct rv__actor *frame, const struct rv__attachment_end *end,
                        struct rv__buf *out)
{
    struct rv__writer w = { .as_row = true, .out = out };
    const struct rv__entry *newest = frame->frame.scope;
    bool empty = newest == frame->frame.base;
    if (end->status == ATTACHMENT_FINISHED && empty) {
        rv__buf_text(out, ",\"result\":null");
    } else if (end->status == ATTACHMENT_FINISHED) {
        rv__buf_char(out, ',');
        rv__result_member_write(&w, newest);
    } else if (end->error != NULL) {
        rv__buf_text(out, ",\"error\":");
        rv__buf_str(out, rv__blob_str(end->error));
    }
    if (!empty)
        put_description(&w, newest);
    if (w.rc < 0 && out->rc == RV_OK)
        out->rc = w.rc;
}

static const char *const status_names[] = { "init", "running", "finished", "errored", "skipped" };

const char *rv__attachment_status_name(enum rv__attachment_status status)
{
    return status_names[status];
}

void rv__attachment_write(const struct rv__actor *frame, const struct rv__attachment_end *end,
                          struct rv__buf *out)
{
    const struct rv__actor *sup = frame->owner;
    uint32_t index = frame->frame.body->index;
    const struct rv__state *state = &sup->node->stage.states[index];
    struct rv__str name = frame->frame.body->alias;
    int64_t vector[RV__PLAN_MAX_DEPTH];
    struct rv__buf path;
    size_t depth = rv__actor_vector(frame, vector);
    rv__buf_init(&path, SIZE_MAX / 8);
    rv__body_path(frame->frame.body, vector, &path);
    put_text(out, "{\"id\":", rv__blob_str(frame->frame.attachment));
    put_number(out, ",\"a\":", (int64_t)frame->id);
    put_number(out, ",\"o\":", (int64_t)sup->id);
    put_number(out, ",\"n\":", sup->node->id);
    put_number(out, ",\"x\":", index);
    for (size_t i = 0; i < depth; i++)
        put_number(out, i > 0 ? "." : ",\"i\":\"", vector[i]);
    if (depth > 0)
        rv__buf_char(out, '"');
    put_text(out, ",\"stage\":", sup->node->alias);
    put_text(out, ",\"state\":", name);
    put_text(out, ",\"agent\":", rv__str_none(state->agent_id) ? name : state->agent_id);
    put_text(out, ",\"path\":", rv__buf_view(&path));
    put_number(out, ",\"attempt\":", rv__state_attempt(frame) - 1);
    put_text(out, ",\"status\":", rv__str(status_names[end->status]));
    put_number(out, ",\"startedAt\":", frame->frame.started_ms);
    put_number(out, ",\"completedAt\":", end->at_ms);
    put_outcome(frame, end, out);
    rv__buf_char(out, '}');
    if (rv__buf_err(&path, NULL) < 0)
        out->rc = RV_ENOMEM;
    rv__buf_done(&path);
}

/* -------------------------------------------------------------------------------- reading --- */

static struct rv__str member(struct rv__str row, const char *key)
{
    struct rv__str value;
    return rv__json_get(row, key, &value) ? value : (struct rv__str){ NULL, 0 };
}

static bool number_of(struct rv__str row, const char *key, int64_t most, int64_t *ret)
{
    struct rv__str value = member(row, key);
    return !rv__str_none(value) && rv__json_int(value, ret) == RV_OK && *ret >= 0 && *ret < most;
}

static struct rv__str unquoted(struct rv__str json)
{
    return json.len >= 2 ? (struct rv__str){ json.at + 1, json.len - 2 } : rv__str("");
}

static void put_result(struct rv__writer *w, const struct rv__plan *plan, struct rv__str row)
{
    struct rv__str value = member(row, "resultValue");
    int64_t node, index;
    int rc = RV_OK;
    if (!number_of(row, "n", plan->node_count, &node) || plan->nodes[node]->kind != NODE_STAGE ||
        !number_of(row, "x", plan->nodes[node]->body_count, &index)) {
        rc = rv__fail(w->err, RV_ESTORE, "an attachment is of no state of its plan");
    } else if (!rv__str_none(value)) {
        struct rv__blob *reference = NULL;
        rc = rv__reference_read(value, &reference);
        if (rc == RV_EINVAL)
            rc = rv__fail(w->err, RV_ESTORE, "an attachment refers to no value");
        else if (rc == RV_OK)
            rv__writer_put_json(w, reference, "null");
        rv__blob_unref(reference);
    } else if (!rv__str_none(member(row, "result"))) {
        rv__node_expand(w, plan->nodes[node]->bodies[index].nodes[0], member(row, "result"),
                        unquoted(member(row, "i")));
    }
    if (rc < 0)
        rv__writer_fail(w, rc);
}

int rv__attachment_result(const struct rv__plan *plan, struct rv__str row,
                          struct rv__row_source *rows, struct rv__buf *out, rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    put_result(&w, plan, row);
    return rv__writer_end(&w);
}

/* 1: the description by its agent was written; 0: there is none. */
static int put_said(struct rv__writer *w, struct rv__str row)
{
    const char *const keys[] = { "description", "descriptionValue", "stateValue" };
    for (size_t i = 0; i < 3; i++) {
        struct rv__str value = member(row, keys[i]);
        struct rv__blob *blob = NULL;
        if (rv__str_none(value))
            continue;
        int rc = i > 0 ? rv__reference_read(value, &blob) : RV_OK;
        if (rc == RV_EINVAL)
            return rv__fail(w->err, RV_ESTORE, "an attachment refers to no value");
        if (i == 0)
            blob = rv__blob_new(value);
        if (blob == NULL)
            return rv__nomem(w->err);
        bool said = rv__writer_put_description(w, i < 2 ? NULL : blob, i < 2 ? blob : NULL);
        rv__blob_unref(blob);
        return said;
    }
    return 0;
}

int rv__attachment_description(const struct rv__plan *plan, struct rv__str row,
                               struct rv__row_source *rows, struct rv__buf *out, rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    struct rv__str error = member(row, "error");
    int rc = put_said(&w, row);
    if (rc == 0 && !rv__str_none(error)) {
        rv__writer_put_error_summary(&w, error);
    } else if (rc == 0) {
        struct rv__summary s;
        rv__summary_begin(&s, &w);
        put_result(&s.writer, plan, row);
        rv__summary_end(&s, &w);
    }
    return rc < 0 ? rc : rv__writer_end(&w);
}
