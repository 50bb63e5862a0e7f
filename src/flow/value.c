/* value.c: moves long texts from the cell to the store.
 *
 * A text longer than value_inline that comes with a message (a result, state, payload or input) gets the next number
 * of the run. The fact has the number and the length, and the text is stored as a value in the same transaction.
 * From then on the cell has only a reference, so neither its memory nor its snapshots grow with such texts. Whoever
 * needs the text reads it from the store. Work starts after the commit, so it is there.
 *
 * The items of a forEach are cut into pieces, since each iteration needs one item: neither must the whole text stay
 * in memory, nor be read for one item. ADR 0020. */
#include <assert.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/cell.h"

/* Items in a piece at most: finding one is a walk over its piece. */
enum { PIECE_ITEMS = 256 };

/* -------------------------------------------------------------------------------- items --- */

struct rv__items *rv__items_new(uint64_t first, const struct rv__items_part *parts, size_t count)
{
    struct rv__items *items = rv__zalloc(1, sizeof *items + count * sizeof items->parts[0]);
    if (items == NULL)
        return NULL;
    atomic_init(&items->refs, 1);
    items->serial = rv__serial_next();
    items->first = first;
    items->part_count = count;
    for (size_t i = 0; i < count; i++) {
        items->parts[i] = parts[i];
        items->parts[i].items_before = items->count;
        items->parts[i].pieces_before = items->pieces;
        items->count += parts[i].each * parts[i].pieces;
        items->pieces += parts[i].pieces;
    }
    return items;
}

struct rv__items *rv__items_ref(struct rv__items *items)
{
    if (items != NULL)
        atomic_fetch_add_explicit(&items->refs, 1, memory_order_relaxed);
    return items;
}

void rv__items_unref(struct rv__items *items)
{
    if (items != NULL && atomic_fetch_sub_explicit(&items->refs, 1, memory_order_acq_rel) == 1)
        rv__free(items);
}

/* Numbers are unique: items that begin with the same number are the same. */
bool rv__items_same(const struct rv__items *a, const struct rv__items *b)
{
    return a == b || (a != NULL && b != NULL && a->first == b->first);
}

uint64_t rv__items_piece(const struct rv__items *items, int64_t index, int64_t *place)
{
    size_t low = 0, high = items->part_count;
    assert(index >= 0 && index < items->count);
    while (high - low > 1) { /* find the last part that begins at or before it */
        size_t middle = low + (high - low) / 2;
        if (items->parts[middle].items_before <= index)
            low = middle;
        else
            high = middle;
    }
    const struct rv__items_part *part = &items->parts[low];
    int64_t in_part = index - part->items_before;
    int64_t piece = part->pieces_before + in_part / part->each;
    *place = in_part % part->each;
    return items->first + (uint64_t)(piece - (RV__BUG(25) && piece > 0));
}

struct rv__str rv__piece_item(struct rv__str piece, int64_t place)
{
    struct rv__json_iter it;
    struct rv__str item = { NULL, 0 };
    if (piece.len == 0 || rv__json_type(piece) != RV__JSON_ARRAY)
        return item;
    rv__json_iter_init(&it, piece);
    for (int64_t i = 0; rv__json_next(&it, NULL, &item); i++)
        if (i == place)
            return item;
    return (struct rv__str){ NULL, 0 };
}

void rv__items_write(const struct rv__items *items, struct rv__buf *out)
{
    rv__buf_char(out, '[');
    rv__buf_int(out, (int64_t)items->first);
    for (size_t i = 0; i < items->part_count; i++) {
        rv__buf_char(out, ',');
        rv__buf_int(out, items->parts[i].each);
        rv__buf_char(out, ',');
        rv__buf_int(out, items->parts[i].pieces);
    }
    rv__buf_char(out, ']');
}

/* The next number of a list, from 1 to `max`. */
static bool next_number(struct rv__json_iter *it, int64_t max, int64_t *ret)
{
    struct rv__str number;
    return rv__json_next(it, NULL, &number) && rv__json_int(number, ret) == RV_OK && *ret >= 1 &&
           *ret <= max;
}

int rv__items_read(struct rv__str json, struct rv__items **ret)
{
    struct rv__json_iter it;
    int64_t first, count = 0, all = 0;
    if (rv__json_type(json) != RV__JSON_ARRAY)
        return RV_EINVAL;
    size_t numbers = rv__json_count(json), parts = numbers / 2;
    rv__json_iter_init(&it, json);
    if (numbers % 2 == 0 || parts == 0 || !next_number(&it, RV__MAX_NUMBER, &first))
        return RV_EINVAL;
    struct rv__items_part *read = rv__zalloc(parts, sizeof *read);
    if (read == NULL)
        return RV_ENOMEM;
    for (size_t i = 0; i < parts; i++) {
        int64_t items;
        if (!next_number(&it, RV__MAX_NUMBER, &read[i].each) ||
            !next_number(&it, RV__MAX_NUMBER - first - all, &read[i].pieces) ||
            __builtin_mul_overflow(read[i].each, read[i].pieces, &items) ||
            items > RV__MAX_NUMBER - count) {
            rv__free(read);
            return RV_EINVAL;
        }
        count += items;
        all += read[i].pieces;
    }
    *ret = rv__items_new((uint64_t)first, read, parts);
    rv__free(read);
    return *ret != NULL ? RV_OK : RV_ENOMEM;
}

/* --------------------------------------------------------------------------- references --- */

void rv__reference_write(const struct rv__blob *reference, struct rv__buf *out)
{
    rv__buf_char(out, '[');
    rv__buf_int(out, (int64_t)reference->value);
    rv__buf_char(out, ',');
    rv__buf_int(out, (int64_t)reference->len);
    rv__buf_char(out, ']');
}

int rv__reference_read(struct rv__str json, struct rv__blob **ret)
{
    struct rv__json_iter it;
    int64_t number, bytes;
    if (rv__json_type(json) != RV__JSON_ARRAY || rv__json_count(json) != 2)
        return RV_EINVAL;
    rv__json_iter_init(&it, json);
    if (!next_number(&it, RV__MAX_NUMBER, &number) || !next_number(&it, RV__MAX_NUMBER, &bytes))
        return RV_EINVAL;
    *ret = rv__blob_reference((uint64_t)number, (size_t)bytes);
    return *ret != NULL ? RV_OK : RV_ENOMEM;
}

int rv__blob_get(struct rv__blob *blob, struct rv__row_source *rows, struct rv__blob **ret,
                 rv_error *err)
{
    struct rv__blob *text = NULL;
    if (!rv__blob_is_reference(blob)) {
        *ret = rv__blob_ref(blob);
        return RV_OK;
    }
    if (rows == NULL)
        return rv__fail(err, RV_ENOTFOUND, "the value %llu is in the store",
                        (unsigned long long)blob->value);
    int rc = rows->value(rows, blob->value, &text, err);
    if (rc == RV_OK && text->len != blob->len) {
        rc = rv__fail(err, RV_ESTORE, "the value %llu has %zu bytes: %zu were written",
                      (unsigned long long)blob->value, text->len, blob->len);
        rv__blob_unref(text);
    }
    if (rc == RV_OK)
        *ret = text;
    return rc;
}

/* ----------------------------------------------------------------------- leaving the cell --- */

/* Add the text as the value of this number. Takes over `json`. */
static int add_value(struct rv__facts *facts, uint64_t number, struct rv__blob *json)
{
    if (facts->value_count == facts->value_cap && json != NULL) {
        size_t cap = facts->value_cap ? facts->value_cap * 2 : 4;
        struct rv__value *values = rv__realloc(facts->values, cap * sizeof *values);
        if (values == NULL) {
            rv__blob_unref(json);
            return RV_ENOMEM;
        }
        facts->values = values;
        facts->value_cap = cap;
    }
    if (json == NULL)
        return RV_ENOMEM;
    facts->values[facts->value_count++] = (struct rv__value){ number, json };
    return RV_OK;
}

void rv__facts_cut_values(struct rv__facts *facts, size_t count)
{
    while (facts->value_count > count)
        rv__blob_unref(facts->values[--facts->value_count].json);
}

/* Replace one text by a reference. *number: the next number. */
static int outline(struct rv__facts *facts, const struct rv__cell *cell, struct rv__blob **text,
                   uint64_t *number)
{
    struct rv__blob *blob = *text;
    if (blob == NULL || rv__blob_is_reference(blob) || blob->len <= cell->value_inline)
        return RV_OK;
    struct rv__blob *reference = rv__blob_reference(*number, blob->len);
    if (reference == NULL || add_value(facts, *number, rv__blob_ref(blob)) < 0) {
        rv__blob_unref(reference);
        return RV_ENOMEM;
    }
    *number += RV__BUG(24) ? 0 : 1;
    *text = reference;
    rv__blob_unref(blob);
    return RV_OK;
}

/* An array that is being cut into pieces. */
struct cutting {
    struct rv__facts *facts;
    size_t most_bytes;
    uint64_t number; /* of the next piece */
    struct rv__buf piece;
    int64_t in_piece;
    struct rv__items_part *parts;
    size_t part_count, part_cap;
};

static int note_piece(struct cutting *c)
{
    if (c->part_count > 0 && c->parts[c->part_count - 1].each == c->in_piece) {
        c->parts[c->part_count - 1].pieces++;
        return RV_OK;
    }
    if (c->part_count == c->part_cap) {
        size_t cap = c->part_cap ? c->part_cap * 2 : 8;
        struct rv__items_part *parts = rv__realloc(c->parts, cap * sizeof *parts);
        if (parts == NULL)
            return RV_ENOMEM;
        c->parts = parts;
        c->part_cap = cap;
    }
    c->parts[c->part_count++] = (struct rv__items_part){ .each = c->in_piece, .pieces = 1 };
    return RV_OK;
}

static int end_piece(struct cutting *c)
{
    if (c->in_piece == 0)
        return RV_OK;
    rv__buf_char(&c->piece, ']');
    if (rv__buf_err(&c->piece, NULL) < 0 || note_piece(c) < 0 ||
        add_value(c->facts, c->number++, rv__blob_new(rv__buf_view(&c->piece))) < 0)
        return RV_ENOMEM;
    rv__buf_reset(&c->piece);
    c->in_piece = 0;
    return RV_OK;
}

static int cut_items(struct rv__facts *facts, const struct rv__cell *cell, struct rv__str array,
                     struct rv__items **ret)
{
    struct cutting c = { .facts = facts,
                         .most_bytes = cell->value_inline,
                         .number = cell->next_value };
    struct rv__json_iter it;
    struct rv__str item;
    int rc = RV_OK;

    rv__buf_init(&c.piece, SIZE_MAX / 8); /* bounded by the array */
    rv__json_iter_init(&it, array);
    while (rc == RV_OK && rv__json_next(&it, NULL, &item)) {
        if (c.in_piece == PIECE_ITEMS || (c.in_piece > 0 && c.piece.len + item.len > c.most_bytes))
            rc = end_piece(&c);
        rv__buf_char(&c.piece, c.in_piece++ == 0 ? '[' : ',');
        rv__buf_str(&c.piece, item);
    }
    if (rc == RV_OK)
        rc = end_piece(&c);
    if (rc == RV_OK) {
        *ret = rv__items_new(cell->next_value, c.parts, c.part_count);
        rc = *ret != NULL ? RV_OK : RV_ENOMEM;
    }
    rv__buf_done(&c.piece);
    rv__free(c.parts);
    return rc;
}

static int keep_description(const struct rv__cell *cell, struct rv__fact *fact)
{
    struct rv__str text;
    if (!rv__json_get(rv__blob_str(fact->state), "description", &text) ||
        text.len > cell->value_inline)
        return RV_OK;
    fact->description = rv__blob_new(text);
    return fact->description != NULL ? RV_OK : RV_ENOMEM;
}

int rv__facts_outline(struct rv__facts *facts, const struct rv__cell *cell, struct rv__fact *fact)
{
    uint64_t number = cell->next_value;
    struct rv__blob *result = fact->result;
    bool long_result = result != NULL && !rv__blob_is_reference(result) &&
                       result->len > cell->value_inline;
    if (long_result && fact->kind == FACT_EVAL_COMPLETED && fact->eval == EVAL_ITEMS &&
        rv__json_type(rv__blob_str(result)) == RV__JSON_ARRAY) {
        struct rv__blob *instead = NULL;
        int rc = RV_OK;
        if (rv__json_count(rv__blob_str(result)) > 0)
            rc = cut_items(facts, cell, rv__blob_str(result), &fact->items);
        else if ((instead = rv__blob_new(rv__str("[]"))) ==
                 NULL) /* an empty array, long only by white space */
            rc = RV_ENOMEM;
        if (rc < 0)
            return rc;
        rv__blob_unref(result);
        fact->result = instead;
        return RV_OK;
    }
    if (outline(facts, cell, &fact->result, &number) < 0)
        return RV_ENOMEM;
    if (fact->state != NULL && !rv__blob_is_reference(fact->state) &&
        fact->state->len > cell->value_inline && keep_description(cell, fact) < 0)
        return RV_ENOMEM;
    if (outline(facts, cell, &fact->state, &number) < 0)
        return RV_ENOMEM;
    return outline(facts, cell, &fact->given, &number);
}
