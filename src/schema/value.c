/* value.c: reads a text into a tree of values. Recursive; RV__JSON_VALUE_DEPTH is checked first. */
#include "schema/value.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "schema/number.h"

enum { FEW = 12 }; /* members that are sorted by insertion: faster than merging */

struct reader {
    const char *at, *end;
    struct rv__arena *arena;
    uint32_t *counts; /* of members: for each container, in the order of their opening brackets */
    size_t count_count, count_room;
    size_t opened;     /* containers that were begun */
    uint32_t *scratch; /* for merging */
    size_t scratch_room;
    size_t values;
};

int rv__key_cmp(struct rv__str a, struct rv__str b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return a.len ? memcmp(a.at, b.at, a.len) : 0;
}

/* ------------------------------------------------------------------------------------------
 * Members by name */

static void sort_few(const struct rv__str *keys, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t moved = order[i], j = i;
        for (; j > 0 && rv__key_cmp(keys[order[j - 1]], keys[moved]) > 0; j--)
            order[j] = order[j - 1];
        order[j] = moved;
    }
}

static void merge(const struct rv__str *keys, const uint32_t *from, uint32_t left, uint32_t middle,
                  uint32_t right, uint32_t *to)
{
    uint32_t a = left, b = middle;
    for (uint32_t i = left; i < right; i++) {
        bool take_a = a < middle && (b >= right || rv__key_cmp(keys[from[a]], keys[from[b]]) <= 0);
        to[i] = from[take_a ? a++ : b++];
    }
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Stable, so that of equal names the last one of the text comes last. */
static int sort_keys(struct reader *r, const struct rv__str *keys, uint32_t *order, uint32_t count)
{
    if (count <= FEW) {
        sort_few(keys, order, count);
        return RV_OK;
    }
    if (r->scratch_room < count) {
        uint32_t *scratch = rv__realloc(r->scratch, count * sizeof *scratch);
        if (scratch == NULL)
            return RV_ENOMEM;
        r->scratch = scratch;
        r->scratch_room = count;
    }
    for (uint32_t i = 0; i < count; i += FEW)
        sort_few(keys, order + i, lesser(FEW, count - i));
    uint32_t *from = order, *to = r->scratch;
    for (uint32_t width = FEW; width < count; width *= 2) {
        for (uint32_t left = 0; left < count; left += 2 * width)
            merge(keys, from, left, lesser(left + width, count), lesser(left + 2 * width, count),
                  to);
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != order)
        memcpy(order, from, count * sizeof *order);
    return RV_OK;
}

static int order_members(struct reader *r, struct rv__value *v)
{
    uint32_t kept = 0, *order = rv__value_order(v);
    for (uint32_t i = 0; i < v->count; i++)
        order[i] = i;
    if (sort_keys(r, v->keys, order, v->count) < 0)
        return RV_ENOMEM;
    for (uint32_t i = 0; i < v->count; i++)
        if (i + 1 == v->count || !rv__str_eq(v->keys[order[i]], v->keys[order[i + 1]]))
            order[kept++] = order[i];
    v->named = kept;
    return RV_OK;
}

static bool find(const struct rv__value *object, struct rv__str key, uint32_t *ret)
{
    if (object->type != RV__JSON_OBJECT || object->count == 0)
        return false;
    const uint32_t *order = rv__value_order(object);
    uint32_t low = 0, high = object->named;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int cmp = rv__key_cmp(object->keys[order[middle]], key);
        if (cmp == 0) {
            *ret = order[middle];
            return true;
        }
        if (cmp < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

const struct rv__value *rv__value_get(const struct rv__value *object, struct rv__str key)
{
    uint32_t i;
    return find(object, key, &i) ? &object->kids[i] : NULL;
}

bool rv__value_counts(const struct rv__value *object, uint32_t i)
{
    uint32_t last = i;
    return object->named == object->count || (find(object, object->keys[i], &last) && last == i);
}

/* ------------------------------------------------------------------------------------------
 * Reading */

static int read_value(struct reader *r, struct rv__value *v);

static uint32_t *open_container(struct reader *r)
{
    if (r->count_count == r->count_room) {
        size_t room = r->count_room ? r->count_room * 2 : 64; /* at most half the text's bytes */
        uint32_t *counts = rv__realloc(r->counts, room * sizeof *counts);
        if (counts == NULL)
            return NULL;
        r->counts = counts;
        r->count_room = room;
    }
    r->counts[r->count_count] = 0;
    return &r->counts[r->count_count++];
}

/* Count the members first, so that each container is allocated once, with its final size. */
static int count_members(struct reader *r)
{
    uint32_t open[RV__JSON_MAX_DEPTH + 1] = { 0 }, *counts;
    size_t depth = 0;
    if (open_container(r) == NULL) /* a container around the whole, whose count nobody reads */
        return RV_ENOMEM;
    for (const char *at = r->at; at < r->end; at++) {
        counts = &r->counts[open[depth]];
        switch (*at) {
        case ' ':
        case '\n':
        case '\t':
        case '\r':
        case ':': break;
        case ',': ++*counts; break;
        case ']':
        case '}': depth--; break;
        case '[':
        case '{':
            *counts += *counts == 0;
            if (open_container(r) == NULL)
                return RV_ENOMEM;
            open[++depth] = (uint32_t)r->count_count - 1;
            break;
        case '"':
            *counts += *counts == 0;
            at = rv__json_skip(at, r->end) - 1;
            break;
        default: *counts += *counts == 0; break;
        }
    }
    return RV_OK;
}

static int read_key(struct reader *r, struct rv__str *ret)
{
    const char *end = rv__json_skip(r->at, r->end);
    struct rv__str key = { r->at, (size_t)(end - r->at) };
    r->at = rv__json_skip_separators(end);
    return rv__json_string(key, r->arena, ret);
}

static int read_container(struct reader *r, struct rv__value *v)
{
    bool object = v->type == RV__JSON_OBJECT;
    size_t count = v->count = r->counts[++r->opened];
    r->at = rv__json_skip_separators(r->at + 1);
    if (count > 0) {
        size_t member = sizeof *v->kids + (object ? sizeof *v->keys + sizeof(uint32_t) : 0);
        v->kids = rv__arena_alloc(r->arena, count * member);
        if (v->kids == NULL)
            return RV_ENOMEM;
        v->keys = object ? (struct rv__str *)(v->kids + count) : NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if ((object && read_key(r, &v->keys[i]) < 0) || read_value(r, &v->kids[i]) < 0)
            return RV_ENOMEM;
        r->at = rv__json_skip_separators(r->at);
    }
    assert(*r->at == ']' || *r->at == '}');
    r->at++;
    return object && count > 0 ? order_members(r, v) : RV_OK;
}

static enum rv__json_type type_at(const char *at)
{
    switch (*at) {
    case '{': return RV__JSON_OBJECT;
    case '[': return RV__JSON_ARRAY;
    case '"': return RV__JSON_STRING;
    case 't': return RV__JSON_TRUE;
    case 'f': return RV__JSON_FALSE;
    case 'n': return RV__JSON_NULL;
    default: return RV__JSON_NUMBER;
    }
}

static int read_value(struct reader *r, struct rv__value *v)
{
    *v = (struct rv__value){ .at = r->at, .type = type_at(r->at) };
    r->values++;
    if (v->type >= RV__JSON_ARRAY) {
        if (read_container(r, v) < 0)
            return RV_ENOMEM;
        v->len = (uint32_t)(r->at - v->at);
        return RV_OK;
    }
    r->at = rv__json_skip(r->at, r->end);
    v->len = (uint32_t)(r->at - v->at);
    return v->type == RV__JSON_STRING ? rv__json_string(rv__value_text(v), r->arena, &v->text)
                                      : RV_OK;
}

int rv__value_read(struct rv__str text, struct rv__arena *arena, struct rv__value *ret,
                   size_t *values, rv_error *err)
{
    struct reader r = { .arena = arena };
    struct rv__value root;
    int rc;

    rc = rv__json_check(text, RV__JSON_VALUE_DEPTH, &text, err);
    if (rc < 0)
        return rc;

    r.at = text.at;
    r.end = text.at + text.len;
    rc = count_members(&r);
    if (rc == RV_OK)
        rc = read_value(&r, &root);
    rv__free(r.counts);
    rv__free(r.scratch);
    if (rc < 0)
        return rv__nomem(err);
    assert(r.at == r.end);
    *ret = root;
    if (values != NULL)
        *values = r.values;
    return RV_OK;
}

/* ------------------------------------------------------------------------------------------
 * Order and place */

static int cmp_count(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int cmp_objects(const struct rv__value *a, const struct rv__value *b)
{
    int cmp = cmp_count(a->named, b->named);
    for (uint32_t i = 0; i < a->named && cmp == 0; i++)
        cmp = rv__key_cmp(a->keys[rv__value_order(a)[i]], b->keys[rv__value_order(b)[i]]);
    for (uint32_t i = 0; i < a->named && cmp == 0; i++)
        cmp = rv__value_cmp(&a->kids[rv__value_order(a)[i]], &b->kids[rv__value_order(b)[i]]);
    return cmp;
}

static int cmp_arrays(const struct rv__value *a, const struct rv__value *b)
{
    int cmp = cmp_count(a->count, b->count);
    for (uint32_t i = 0; i < a->count && cmp == 0; i++)
        cmp = rv__value_cmp(&a->kids[i], &b->kids[i]);
    return cmp;
}

static int cmp_numbers(const struct rv__value *a, const struct rv__value *b)
{
    struct rv__number x, y;
    rv__number_read(rv__value_text(a), &x);
    rv__number_read(rv__value_text(b), &y);
    return rv__number_cmp(&x, &y);
}

int rv__value_cmp(const struct rv__value *a, const struct rv__value *b)
{
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    switch (a->type) {
    case RV__JSON_NULL:
    case RV__JSON_FALSE:
    case RV__JSON_TRUE: break;
    case RV__JSON_NUMBER: return cmp_numbers(a, b);
    case RV__JSON_STRING: return rv__key_cmp(a->text, b->text);
    case RV__JSON_ARRAY: return cmp_arrays(a, b);
    case RV__JSON_OBJECT: return cmp_objects(a, b);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------
 * Equal ones among many */

static uint64_t mix(uint64_t hash, uint64_t n)
{
    return rv__str_hash(hash, (struct rv__str){ (const char *)&n, sizeof n });
}

static uint64_t hash_number(uint64_t hash, const struct rv__value *v)
{
    struct rv__number n;
    rv__number_read(rv__value_text(v), &n);
    hash = mix(hash, (uint64_t)n.power * 2 + (n.count > 0 && n.negative));
    for (size_t i = 0; i < n.len; i++)
        if (n.digits[i] != '.')
            hash = rv__str_hash(hash, (struct rv__str){ n.digits + i, 1 });
    return hash;
}

static uint64_t hash_value(uint64_t hash, const struct rv__value *v)
{
    hash = mix(hash, v->type);
    switch (v->type) {
    case RV__JSON_NULL:
    case RV__JSON_FALSE:
    case RV__JSON_TRUE: break;
    case RV__JSON_NUMBER: return hash_number(hash, v);
    case RV__JSON_STRING: return rv__str_hash(hash, v->text);
    case RV__JSON_ARRAY:
        for (uint32_t i = 0; i < v->count; i++)
            hash = hash_value(hash, &v->kids[i]);
        break;
    case RV__JSON_OBJECT:
        for (uint32_t i = 0; i < v->named; i++) {
            hash = rv__str_hash(hash, v->keys[rv__value_order(v)[i]]);
            hash = hash_value(hash, &v->kids[rv__value_order(v)[i]]);
        }
        break;
    }
    return hash;
}

struct rv__ranked rv__value_rank(const struct rv__value *v)
{
    uint64_t hash = hash_value(RV__HASH_START, v);
    hash ^= hash >> 32; /* the last multiplications change the low half only */
    return (struct rv__ranked){ hash * UINT64_C(0x9E3779B97F4A7C15), v };
}

int rv__ranked_cmp(const struct rv__ranked *a, const struct rv__ranked *b)
{
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return rv__value_cmp(a->value, b->value);
}

static void merge_sort(struct rv__ranked *items, struct rv__ranked *scratch, size_t count)
{
    struct rv__ranked *from = items, *to = scratch;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t left = 0; left < count; left += 2 * width) {
            size_t middle = left + width < count ? left + width : count;
            size_t right = middle + width < count ? middle + width : count;
            size_t a = left, b = middle;
            for (size_t i = left; i < right; i++) {
                bool take_a = a < middle && (b >= right || rv__ranked_cmp(&from[a], &from[b]) <= 0);
                to[i] = from[take_a ? a++ : b++];
            }
        }
        struct rv__ranked *swap = from;
        from = to;
        to = swap;
    }
    if (from != items && count > 0)
        memcpy(items, from, count * sizeof *items);
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, HIGH_SHIFT = 64 - 2 * DIGIT_BITS };

/* Sort by one digit of the hash, in linear time. */
static void sort_digit(const struct rv__ranked *from, struct rv__ranked *to, size_t count,
                       unsigned shift)
{
    size_t starts[DIGITS + 1] = { 0 };
    for (size_t i = 0; i < count; i++)
        starts[(from[i].hash >> shift) % DIGITS + 1]++;
    for (size_t i = 1; i < DIGITS; i++)
        starts[i] += starts[i - 1];
    for (size_t i = 0; i < count; i++)
        to[starts[(from[i].hash >> shift) % DIGITS]++] = from[i];
}

/* Many items are sorted by the two highest digits of their hashes first. Only items with the same digits are
 * then compared: usually few; if an attacker made them equal, a merge sort bounds the cost. */
void rv__ranked_sort(struct rv__ranked *items, struct rv__ranked *scratch, size_t count)
{
    if (count < DIGITS) {
        merge_sort(items, scratch, count);
        return;
    }
    sort_digit(items, scratch, count, HIGH_SHIFT);
    sort_digit(scratch, items, count, HIGH_SHIFT + DIGIT_BITS);
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && items[end].hash >> HIGH_SHIFT == items[first].hash >> HIGH_SHIFT)
            end++;
        merge_sort(items + first, scratch, end - first);
    }
}

void rv__value_pointer(const struct rv__value *root, const char *at, struct rv__buf *out)
{
    while (root->at != at && root->type >= RV__JSON_ARRAY && root->count > 0) {
        uint32_t low = 0, high = root->count; /* the last child that begins at or before `at` */
        while (high - low > 1) {
            uint32_t middle = low + (high - low) / 2;
            if (root->kids[middle].at <= at)
                low = middle;
            else
                high = middle;
        }
        if (root->type == RV__JSON_OBJECT) {
            rv__buf_json_pointer(out, root->keys[low]);
        } else {
            rv__buf_char(out, '/');
            rv__buf_int(out, low);
        }
        root = &root->kids[low];
    }
}
