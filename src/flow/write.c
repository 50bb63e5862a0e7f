/* write.c: writes the outcomes of finished nodes as JSON.
 *
 * Nested JSON is assembled here, when it is read. Each kind of supervisor writes the contents of its result
 * (write_result). Finished iterations are not in memory: they are rows in the store, in the same form. Iterations
 * nested in them are separate rows (expand.c).
 *
 * Long texts are not in memory either: they are values in the store (value.c). A row has references to them. These
 * have names of their own, so that a user's data cannot be taken for one: in an outcome "resultValue" and
 * "stateValue" instead of "result" and "state"; beside "stateValue" a "description" (or "descriptionValue") that
 * belongs into the state; in an iteration "itemValue" instead of "item". A row with references says so at its end
 * (RV__ROW_REFERS). Most rows have none, and are passed on unchanged. */
#include "flow/write.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"

/* -------------------------------------------------------------------------------- writer --- */

void rv__writer_fail(struct rv__writer *w, int rc)
{
    if (w->rc == RV_OK)
        w->rc = rc;
}

/* Whether there is room for so many more bytes. If not, this text and everything after it is only counted. */
static bool has_room(struct rv__writer *w, size_t len)
{
    if (w->counts && !w->counting && len > w->out->max_bytes - w->out->len)
        w->counting = true;
    return !w->counting;
}

static bool is_full(const struct rv__writer *w)
{
    return w->cuts && w->out->len >= w->out->max_bytes;
}

void rv__writer_put_str(struct rv__writer *w, struct rv__str text)
{
    size_t room = w->out->max_bytes - w->out->len;
    w->bytes += text.len;
    if (w->cuts && text.len > room)
        text.len = room;
    if (has_room(w, text.len))
        rv__buf_str(w->out, text);
}

void rv__writer_put(struct rv__writer *w, const char *text)
{
    rv__writer_put_str(w, rv__str(text));
}

void rv__writer_put_int(struct rv__writer *w, int64_t n)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%lld", (long long)n);
    rv__writer_put_str(w, (struct rv__str){ text, (size_t)len });
}

void rv__writer_put_alias(struct rv__writer *w,
                          struct rv__str alias) /* an alias needs no escapes */
{
    rv__writer_put(w, "\"");
    rv__writer_put_str(w, alias);
    rv__writer_put(w, "\"");
}

void rv__writer_put_key(struct rv__writer *w, struct rv__str key, bool *first)
{
    if (!*first)
        rv__writer_put(w, ",");
    *first = false;
    rv__writer_put_alias(w, key);
    rv__writer_put(w, ":");
}

/* Whether nothing more needs to be done: nothing is read from the store after a failure, or when `out` is full. */
bool rv__writer_failed(const struct rv__writer *w)
{
    return w->rc < 0 || w->out->rc < 0 || is_full(w);
}

/* While bytes are only counted, a reference is not read. */
void rv__writer_put_json(struct rv__writer *w, struct rv__blob *json, const char *none)
{
    struct rv__blob *text = NULL;
    if (json == NULL || rv__writer_failed(w)) {
        rv__writer_put(w, none);
        return;
    }
    if (rv__blob_is_reference(json) && !has_room(w, json->len)) {
        w->bytes += json->len;
        return;
    }
    int rc = rv__blob_get(json, w->rows, &text, w->err);
    if (rc < 0)
        rv__writer_fail(w, rc);
    else
        rv__writer_put_str(w, rv__blob_str(text));
    rv__blob_unref(text);
}

static void put_reference(struct rv__writer *w, const struct rv__blob *json)
{
    w->referred = true;
    rv__reference_write(json, w->out);
}

void rv__writer_put_member(struct rv__writer *w, const char *key, struct rv__blob *json,
                           const char *none)
{
    bool reference = w->as_row && rv__blob_is_reference(json);
    rv__writer_put(w, "\"");
    rv__writer_put(w, key);
    rv__writer_put(w, reference ? "Value\":" : "\":");
    if (reference)
        put_reference(w, json);
    else
        rv__writer_put_json(w, json, none);
}

bool rv__writer_put_description(struct rv__writer *w, struct rv__blob *state,
                                struct rv__blob *description)
{
    struct rv__blob *text = NULL;
    struct rv__str found = RV__STR("null");
    if (description != NULL) {
        bool is_null = !rv__blob_is_reference(description) &&
                       rv__str_is(rv__blob_str(description), "null");
        if (!is_null)
            rv__writer_put_json(w, description, "null");
        return !is_null;
    }
    if (state == NULL || rv__writer_failed(w))
        return false;
    int rc = rv__blob_get(state, w->rows, &text, w->err);
    if (rc < 0)
        rv__writer_fail(w, rc);
    else if (rv__json_type(rv__blob_str(text)) ==
             RV__JSON_OBJECT) /* data from the disk is not trusted */
        (void)rv__json_get(rv__blob_str(text), "description", &found);
    bool has = !rv__str_is(found, "null");
    if (has)
        rv__writer_put_str(w, found);
    rv__blob_unref(text);
    return has;
}

/* Write the state as an object that contains the description. */
static void put_described(struct rv__writer *w, struct rv__blob *state,
                          struct rv__blob *description)
{
    struct rv__blob *text = NULL;
    struct rv__json_iter it;
    struct rv__str key, value;
    int rc = rv__writer_failed(w) ? w->rc : rv__blob_get(state, w->rows, &text, w->err);
    rv__writer_put(w, "{\"description\":");
    rv__writer_put_json(w, description, "null");
    if (rc < 0)
        rv__writer_fail(w, rc);
    bool has = text != NULL && rv__json_type(rv__blob_str(text)) == RV__JSON_OBJECT;
    rv__json_iter_init(&it, has ? rv__blob_str(text)
                                : rv__str("{}")); /* data from the disk is not trusted */
    while (rv__json_next(&it, &key, &value)) {
        rv__writer_put(w, ",");
        rv__writer_put_str(w, key);
        rv__writer_put(w, ":");
        rv__writer_put_str(w, value);
    }
    rv__writer_put(w, "}");
    rv__blob_unref(text);
}

void rv__writer_put_state(struct rv__writer *w, struct rv__blob *state,
                          struct rv__blob *description)
{
    bool refers = rv__blob_is_reference(state) || rv__blob_is_reference(description);
    if (description == NULL) {
        rv__writer_put_member(w, "state", state, "{}");
    } else if (w->as_row && refers) {
        rv__writer_put_member(w, "description", description, "null");
        rv__writer_put(w, ",");
        rv__writer_put_member(w, "state", state, "{}");
    } else {
        rv__writer_put(w, "\"state\":");
        put_described(w, state, description);
    }
}

/* An error is never a reference: its length is limited. */
static void put_status(struct rv__writer *w, enum rv__status status, struct rv__blob *error)
{
    rv__writer_put(w, ",\"status\":\"");
    rv__writer_put(w, rv__status_name(status));
    rv__writer_put(w, "\"");
    if (error != NULL) {
        rv__writer_put(w, ",\"error\":");
        rv__writer_put_str(w, rv__blob_str(error));
    }
    rv__writer_put(w, "}");
}

/* The end of an outcome without a state. */
void rv__writer_put_outcome_end(struct rv__writer *w, enum rv__status status,
                                struct rv__blob *error)
{
    rv__writer_put(w, ",\"state\":{}");
    put_status(w, status, error);
}

int rv__writer_end(struct rv__writer *w)
{
    rv__blob_unref(w->piece);
    w->piece = NULL;
    if (w->rc == RV_ENOMEM)
        return rv__nomem(w->err);
    return w->rc < 0 ? w->rc : rv__buf_err(w->out, w->err);
}

/* ----------------------------------------------------------------------------- summaries --- */

enum {
    ESCAPE_BYTES = 12, /* the longest escape of one character in JSON: two of \uXXXX */
    SUMMARY_JSON = RV__SUMMARY_BYTES * 6 + ESCAPE_BYTES, /* enough for a summary of any text */
};

void rv__summary_begin(struct rv__summary *s, const struct rv__writer *w)
{
    rv__buf_init(&s->text, SUMMARY_JSON);
    s->writer = (struct rv__writer){
        .rows = w->rows, .out = &s->text, .err = w->err, .cuts = true
    };
}

/* The length of the next character or escape in a JSON string. */
static size_t char_bytes(const char *at)
{
    if (at[0] != '\\')
        return 1;
    if (at[1] != 'u')
        return 2;
    bool pair = (at[2] == 'd' || at[2] == 'D') && strchr("89abAB", at[3]) != NULL;
    return pair ? ESCAPE_BYTES : 6;
}

/* Cut the JSON string after its last complete character, and close it. */
static void close_string(struct rv__buf *json)
{
    size_t at = 1, most = json->len - ESCAPE_BYTES;
    while (at < most)
        at += char_bytes(json->text + at);
    rv__buf_cut(json, rv__str_begin(rv__buf_view(json), at).len);
    rv__buf_char(json, '"');
}

/* The text in `json` that a summary shows. `cut`: `json` is only the beginning of the text. */
static int summary_text(struct rv__buf *json, bool cut, struct rv__arena *arena,
                        struct rv__str *ret)
{
    *ret = rv__buf_view(json);
    if (json->text[0] != '"')
        return RV_OK;
    if (cut)
        close_string(json);
    int rc = rv__json_string(rv__buf_view(json), arena, ret);
    if (rc == RV_EINVAL) { /* data from the disk is not trusted */
        *ret = rv__str("");
        rc = RV_OK;
    }
    return rc;
}

static void put_summary(struct rv__buf *out, struct rv__str text)
{
    struct rv__str shown = rv__str_begin(text, RV__SUMMARY_BYTES);
    rv__buf_json_str(out, shown);
    if (shown.len == text.len || out->rc < 0)
        return;
    rv__buf_cut(out, out->len - 1);
    rv__buf_text(out, "…\"");
}

void rv__summary_end(struct rv__summary *s, struct rv__writer *w)
{
    struct rv__arena arena;
    struct rv__buf out;
    struct rv__str text;
    bool cut = is_full(&s->writer);
    rv__arena_init(&arena, SIZE_MAX); /* bounded by SUMMARY_JSON */
    rv__buf_init(&out, SIZE_MAX / 8); /* the same */
    int rc = rv__writer_end(&s->writer);
    if (rc == RV_OK && (s->text.len == 0 || rv__str_is(rv__buf_view(&s->text), "null"))) {
        rv__buf_text(&out, "null");
    } else if (rc == RV_OK) {
        rc = summary_text(&s->text, cut, &arena, &text);
        if (rc == RV_OK)
            put_summary(&out, text);
    }
    if (rc == RV_OK)
        rc = rv__buf_err(&out, NULL);
    if (rc < 0)
        rv__writer_fail(w, rc);
    else
        rv__writer_put_str(w, rv__buf_view(&out));
    rv__buf_done(&out);
    rv__buf_done(&s->text);
    rv__arena_done(&arena);
}

void rv__writer_put_error_summary(struct rv__writer *w, struct rv__str error)
{
    struct rv__summary s;
    struct rv__str message = RV__STR("null");
    if (!rv__str_none(error) && rv__json_type(error) == RV__JSON_OBJECT)
        (void)rv__json_get(error, "message", &message);
    rv__summary_begin(&s, w);
    rv__writer_put_str(&s.writer, message);
    rv__summary_end(&s, w);
}

/* ------------------------------------------------------------------------------ outcomes --- */

/* The entry that has its result: for some kinds, another entry. */
static const struct rv__entry *result_of(const struct rv__entry *entry)
{
    const struct rv__entry *from = entry;
    while (from != NULL) {
        const struct rv__flow_kind *kind = rv__flow_kind(from->node);
        entry = from;
        from = kind->result_from != NULL ? kind->result_from(entry) : NULL;
    }
    return entry;
}

static bool is_kept(const struct rv__entry *entry)
{
    return rv__is_step(entry->node) || entry->inner == NULL;
}

void rv__result_write(struct rv__writer *w, const struct rv__entry *entry)
{
    entry = result_of(entry);
    if (is_kept(entry))
        rv__writer_put_json(w, entry->result, "null");
    else
        rv__flow_kind(entry->node)->write_result(w, entry);
}

void rv__result_member_write(struct rv__writer *w, const struct rv__entry *entry)
{
    const struct rv__entry *has = result_of(entry);
    if (is_kept(has)) {
        rv__writer_put_member(w, "result", has->result, "null");
        return;
    }
    rv__writer_put(w, "\"result\":");
    rv__result_write(w, has);
}

void rv__entry_write(struct rv__writer *w, const struct rv__entry *entry)
{
    rv__writer_put(w, "{");
    rv__result_member_write(w, entry);
    rv__writer_put(w, ",");
    rv__writer_put_state(w, entry->state, entry->description);
    put_status(w, entry->status, entry->error);
}

/* Write the entries of one body, oldest first. */
void rv__members_write(struct rv__writer *w, const struct rv__entry *newest,
                       const struct rv__entry *base, bool *first)
{
    size_t count = 0;
    for (const struct rv__entry *e = newest; e != base; e = e->outer)
        count++;
    if (count == 0)
        return;
    const struct rv__entry **order = rv__zalloc(count, sizeof *order);
    if (order == NULL) {
        rv__writer_fail(w, RV_ENOMEM);
        return;
    }
    size_t at = count;
    for (const struct rv__entry *e = newest; e != base; e = e->outer)
        order[--at] = e;
    for (size_t i = 0; i < count; i++) {
        rv__writer_put_key(w, order[i]->node->alias, first);
        rv__entry_write(w, order[i]);
    }
    rv__free(order);
}

void rv__entries_write(struct rv__writer *w, const struct rv__entry *newest,
                       const struct rv__entry *base)
{
    bool first = true;
    rv__writer_put(w, "{");
    rv__members_write(w, newest, base, &first);
    rv__writer_put(w, "}");
}

int rv__entry_state(const struct rv__entry *entry, struct rv__row_source *rows, struct rv__buf *out,
                    rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    if (entry->description != NULL)
        put_described(&w, entry->state, entry->description);
    else
        rv__writer_put_json(&w, entry->state, "{}");
    return rv__writer_end(&w);
}

int rv__entry_result(const struct rv__entry *entry, struct rv__row_source *rows,
                     struct rv__buf *out, rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    rv__result_write(&w, entry);
    return rv__writer_end(&w);
}
