/* items.c: items and labels of the iterations of a forEach, as short texts for a list.
 *
 * Both are in one fact, the end of the evaluation of the items. The trace knows the row before it (`items_after`),
 * so a window costs one row, and, for items in pieces, the pieces it touches. */
#include "read/items.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"

/* Reads an array forwards; starts again if necessary. */
struct cursor {
    struct rv__str array;
    struct rv__json_iter it;
    int64_t next; /* index of the iterator's next value; -1: not started */
};

static bool cursor_get(struct cursor *c, int64_t place, struct rv__str *ret)
{
    if (c->array.len == 0)
        return false;
    if (c->next < 0 || place < c->next) {
        rv__json_iter_init(&c->it, c->array);
        c->next = 0;
    }
    while (rv__json_next(&c->it, NULL, ret))
        if (c->next++ == place)
            return true;
    return false;
}

static void cursor_init(struct cursor *c, struct rv__str array)
{
    bool is_array = array.len > 0 && rv__json_type(array) == RV__JSON_ARRAY;
    *c = (struct cursor){ .array = is_array ? array : (struct rv__str){ NULL, 0 }, .next = -1 };
}

struct reading_items {
    struct rv__store *store;
    struct rv__str run;
    uint64_t actor;
    bool found;
    struct rv__buf items, pieces, given; /* as in the fact */
    uint64_t given_value;
    struct rv__blob *labels_blob, *piece; /* references to free */
    uint64_t piece_number;
    struct cursor items_at, labels_at; /* items_at: within the piece */
};

/* Found the fact: end the walk. */
static int take_items(void *arg, const struct rv__read_fact *fact, rv_error *err)
{
    struct reading_items *r = arg;
    if (fact->kind != FACT_EVAL_COMPLETED || fact->eval != EVAL_ITEMS || fact->actor != r->actor)
        return RV_OK;
    rv__buf_str(&r->items, fact->result);
    rv__buf_str(&r->pieces, fact->items.text);
    rv__buf_str(&r->given, fact->given);
    r->given_value = fact->given_value.number;
    r->found = true;
    int rc = rv__buf_err(&r->items, err);
    if (rc == RV_OK)
        rc = rv__buf_err(&r->pieces, err);
    if (rc == RV_OK)
        rc = rv__buf_err(&r->given, err);
    return rc < 0 ? rc : RV_ECANCELED;
}

static int read_fact(struct reading_items *r, const struct rv__trace *trace, uint64_t after,
                     rv_error *err)
{
    const struct rv__journal_walk walk = {
        .plan = trace->plan, .after = after, .until = trace->seq, .fact = take_items, .arg = r
    };
    int rc = rv__journal_walk(r->store, r->run, &walk, err);
    if (rc < 0 && !(rc == RV_ECANCELED && r->found))
        return rc;
    struct rv__str given = rv__buf_view(&r->given), labels = { NULL, 0 };
    if (r->given_value != 0) {
        rc = rv__stored_value(r->store, r->run, r->given_value, &r->labels_blob, err);
        if (rc < 0)
            return rc;
        given = rv__blob_str(r->labels_blob);
    }
    if (given.len > 0)
        (void)rv__json_get(given, "labels", &labels);
    cursor_init(&r->labels_at, labels);
    cursor_init(&r->items_at, rv__buf_view(&r->items));
    return RV_OK;
}

/* The piece that has this item, and its index there. [first,each,pieces,each,pieces,…]; facts.c has checked it. */
static bool piece_of(struct rv__str pieces, int64_t index, uint64_t *number, int64_t *place)
{
    struct rv__json_iter it;
    struct rv__str text;
    int64_t first = 0, each = 0, count = 0;
    rv__json_iter_init(&it, pieces);
    if (!rv__json_next(&it, NULL, &text) || rv__json_int(text, &first) < 0)
        return false;
    while (rv__json_next(&it, NULL, &text)) {
        if (rv__json_int(text, &each) < 0 || !rv__json_next(&it, NULL, &text) ||
            rv__json_int(text, &count) < 0 || each < 1)
            return false;
        if (index / each < count) {
            *number = (uint64_t)(first + index / each);
            *place = index % each;
            return true;
        }
        index -= each * count;
        first += count;
    }
    return false;
}

static int find_item(struct reading_items *r, int64_t index, struct rv__str *ret, rv_error *err)
{
    uint64_t number = 0;
    int64_t place = index;
    *ret = (struct rv__str){ NULL, 0 };
    if (r->pieces.len > 0) {
        if (!piece_of(rv__buf_view(&r->pieces), index, &number, &place))
            return RV_OK;
        if (number != r->piece_number) {
            rv__blob_unref(r->piece);
            r->piece = NULL;
            r->piece_number = 0;
            int rc = rv__stored_value(r->store, r->run, number, &r->piece, err);
            if (rc < 0)
                return rc;
            r->piece_number = number;
            cursor_init(&r->items_at, rv__blob_str(r->piece));
        }
    }
    if (!cursor_get(&r->items_at, place, ret))
        *ret = (struct rv__str){ NULL, 0 };
    return RV_OK;
}

/* Append a text as it is, anything else as JSON; a long one is cut and marked. Returns the offset in `out`;
 * NUL-terminated. */
static size_t put_short(struct rv__buf *out, struct rv__str json)
{
    size_t at = out->len;
    struct rv__arena arena;
    struct rv__str text = json;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the text */
    if (rv__json_type(json) == RV__JSON_STRING)
        (void)rv__json_string(json, &arena, &text); /* no memory: keeps the quotes */
    bool cut = text.len > RV__ITEM_BYTES;
    text = rv__str_begin(text, RV__ITEM_BYTES);
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\0') /* C strings have no NUL inside */
            rv__buf_char(out, ' ');
        else
            rv__buf_char(out, text.at[i]);
    }
    rv__buf_text(out, cut ? "…" : "");
    rv__buf_char(out, '\0');
    rv__arena_done(&arena);
    return at;
}

static int put_texts(struct reading_items *r, struct rv__iteration_text *texts, size_t count,
                     struct rv__buf *out, rv_error *err)
{
    int rc = RV_OK;
    for (size_t i = 0; i < count && rc == RV_OK; i++) {
        struct rv__str json;
        if (texts[i].index < 0)
            continue;
        if (cursor_get(&r->labels_at, texts[i].index, &json) &&
            rv__json_type(json) != RV__JSON_NULL)
            texts[i].label = put_short(out, json);
        rc = find_item(r, texts[i].index, &json, err);
        if (rc == RV_OK && json.len > 0)
            texts[i].item = put_short(out, json);
    }
    return rc < 0 ? rc : rv__buf_err(out, err);
}

int rv__iteration_texts(const struct rv__trace *trace, uint32_t foreach, struct rv__store *store,
                        const char *run_id, struct rv__iteration_text *texts, size_t count,
                        struct rv__buf *out, rv_error *err)
{
    struct reading_items r = { .store = store,
                               .run = rv__str(run_id),
                               .actor = trace->at[foreach].actor };
    rv__buf_init(&r.items, SIZE_MAX / 8); /* bounded by what stands in one fact */
    rv__buf_init(&r.pieces, SIZE_MAX / 8);
    rv__buf_init(&r.given, SIZE_MAX / 8);
    int rc = read_fact(&r, trace, trace->at[foreach].items_after, err);
    if (rc == RV_OK)
        rc = put_texts(&r, texts, count, out, err);
    rv__blob_unref(r.labels_blob);
    rv__blob_unref(r.piece);
    rv__buf_done(&r.items);
    rv__buf_done(&r.pieces);
    rv__buf_done(&r.given);
    return rc;
}
