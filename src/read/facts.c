/* facts.c: decodes the facts of a journal: the only place where readers parse rows.
 *
 * Nothing is copied: a fact is numbers and slices of the row's text. A row comes from the disk and is not trusted:
 * it must be JSON, and each member must match its line in the table. Unknown members are skipped: the loop, which
 * replays facts (flow/fact.c), refuses them. */
#include "read/read.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

/* ------------------------------------------------------------------------------- a member --- */

static bool read_count(struct rv__str value, int64_t max, int64_t *ret)
{
    return rv__json_int(value, ret) == RV_OK && *ret >= 0 && *ret <= max;
}

static bool as_number(struct rv__str value, void *to)
{
    int64_t n;
    bool ok = read_count(value, INT64_MAX, &n);
    if (ok)
        *(uint64_t *)to = (uint64_t)n;
    return ok;
}

static bool as_node(struct rv__str value, void *to)
{
    int64_t n;
    bool ok = read_count(value, (int64_t)RV__NO_NODE - 1, &n);
    if (ok)
        *(uint32_t *)to = (uint32_t)n;
    return ok;
}

static bool as_count(struct rv__str value, void *to)
{
    int64_t n;
    bool ok = read_count(value, INT32_MAX - 1, &n);
    if (ok)
        *(int *)to = (int)n;
    return ok;
}

static bool as_hash(struct rv__str value, void *to)
{
    return rv__hash_text_read(value, to) == RV_OK;
}

static bool as_int(struct rv__str value, void *to)
{
    return rv__json_int(value, to) == RV_OK;
}

static bool as_bool(struct rv__str value, void *to)
{
    (void)rv__json_bool(value, to); /* not a bool: false */
    return true;
}

static bool as_text(struct rv__str value, void *to)
{
    *(struct rv__str *)to = value;
    return true;
}

static bool as_vector(struct rv__str value, void *to)
{
    struct rv__vector *vector = to;
    struct rv__json_iter it;
    struct rv__str item;
    rv__json_iter_init(&it, value);
    for (vector->depth = 0; rv__json_next(&it, NULL, &item); vector->depth++)
        if (vector->depth == RV__PLAN_MAX_DEPTH ||
            rv__json_int(item, &vector->at[vector->depth]) < 0)
            return false;
    return true;
}

static bool as_kind(struct rv__str value, void *to)
{
    for (int i = 0; i < FACT_KINDS; i++) {
        const char *name = rv__fact_kind_name((enum rv__fact_kind)i);
        size_t len = strlen(name);
        if (value.len == len + 2 && memcmp(value.at + 1, name, len) == 0) {
            *(enum rv__fact_kind *)to = (enum rv__fact_kind)i;
            return true;
        }
    }
    return false;
}

static bool as_eval(struct rv__str value, void *to)
{
    for (int i = 0; i < EVALS; i++)
        if (rv__json_string_is(value, rv__str(rv__eval_name((enum rv__eval)i))))
            *(int *)to = i;
    return true; /* unknown: -1 */
}

static bool as_status(struct rv__str value, void *to)
{
    for (int i = 0; i < STATUSES; i++)
        if (rv__json_string_is(value, rv__str(rv__status_name((enum rv__status)i)))) {
            *(int *)to = i;
            return true;
        }
    return false;
}

/* The number of a state, + 1. */
static bool as_which(struct rv__str value, void *to)
{
    uint32_t n;
    bool ok = as_node(value, &n);
    if (ok)
        *(uint32_t *)to = n + 1;
    return ok;
}

static bool as_next(struct rv__str value, void *to)
{
    for (int i = 0; i < NEXTS; i++)
        if (rv__json_string_is(value, rv__str(rv__next_name((enum rv__next)i)))) {
            *(int *)to = i;
            return true;
        }
    return false;
}

static bool as_decision(struct rv__str value, void *to)
{
    for (int i = 0; i < DECISIONS; i++)
        if (rv__json_string_is(value, rv__str(rv__decision_name((enum rv__decision)i)))) {
            *(int *)to = i;
            return true;
        }
    return false;
}

/* [number,bytes] */
static bool as_value(struct rv__str value, void *to)
{
    struct rv__value_ref *ref = to;
    struct rv__json_iter it;
    struct rv__str number, bytes;
    rv__json_iter_init(&it, value);
    return rv__json_next(&it, NULL, &number) && rv__json_next(&it, NULL, &bytes) &&
           as_number(number, &ref->number) && ref->number > 0 && as_number(bytes, &ref->bytes);
}

/* [first,each,pieces,each,pieces,…]: the number of items. */
static bool as_items(struct rv__str value, void *to)
{
    struct rv__json_iter it;
    struct rv__str number;
    uint64_t each = 0, pieces = 0, items;
    int64_t sum = 0;
    rv__json_iter_init(&it, value);
    if (!rv__json_next(&it, NULL, &number))
        return false;
    while (rv__json_next(&it, NULL, &number)) {
        if (!as_number(number, &each) || !rv__json_next(&it, NULL, &number) ||
            !as_number(number, &pieces) || __builtin_mul_overflow(each, pieces, &items) ||
            items > (uint64_t)(INT64_MAX - sum))
            return false;
        sum += (int64_t)items;
    }
    *(struct rv__read_items *)to = (struct rv__read_items){ sum, value };
    return true;
}

#define TO(field) offsetof(struct rv__read_fact, field)
static const struct {
    const char *key; /* as in a fact, with quotes */
    bool (*read)(struct rv__str value, void *to);
    size_t to;
} members[] = {
    { "\"k\"", as_kind, TO(kind) },
    { "\"a\"", as_number, TO(actor) },
    { "\"o\"", as_number, TO(owner) },
    { "\"n\"", as_node, TO(node) },
    { "\"i\"", as_vector, TO(vector) },
    { "\"at\"", as_int, TO(at_ms) },
    { "\"x\"", as_int, TO(index) },
    { "\"g\"", as_int, TO(generation) },
    { "\"limit\"", as_int, TO(limit) },
    { "\"w\"", as_which, TO(which) },
    { "\"to\"", as_which, TO(to) },
    { "\"next\"", as_next, TO(next) },
    { "\"decision\"", as_decision, TO(decision) },
    { "\"left\"", as_int, TO(left) },
    { "\"due\"", as_int, TO(due_ms) },
    { "\"attempt\"", as_count, TO(attempt) },
    { "\"eval\"", as_eval, TO(eval) },
    { "\"status\"", as_status, TO(status) },
    { "\"hard\"", as_bool, TO(hard) },
    { "\"suspect\"", as_bool, TO(suspect) },
    { "\"blame\"", as_bool, TO(blame) },
    { "\"crash\"", as_bool, TO(crash) },
    { "\"module\"", as_hash, TO(module) },
    { "\"name\"", as_text, TO(name) },
    { "\"result\"", as_text, TO(result) },
    { "\"state\"", as_text, TO(state) },
    { "\"error\"", as_text, TO(error) },
    { "\"description\"", as_text, TO(description) },
    { "\"input\"", as_text, TO(given) },
    { "\"by\"", as_text, TO(by) },
    { "\"down\"", as_int, TO(down_ms) },
    { "\"inputValue\"", as_value, TO(given_value) },
    { "\"resultValue\"", as_value, TO(result_value) },
    { "\"stateValue\"", as_value, TO(state_value) },
    { "\"itemsValue\"", as_items, TO(items) },
};

static bool read_member(struct rv__read_fact *fact, struct rv__str key, struct rv__str value)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (rv__str_is(key, members[i].key))
            return members[i].read(value, (char *)fact + members[i].to);
    return true;
}

/* ---------------------------------------------------------------------------------- a row --- */

void rv__row_reader_init(struct rv__row_reader *reader)
{
    *reader = (struct rv__row_reader){ .it = { .at = NULL } };
    rv__buf_init(&reader->text, SIZE_MAX / 8); /* bounded by a turn */
}

void rv__row_reader_done(struct rv__row_reader *reader)
{
    rv__buf_done(&reader->text);
}

int rv__row_begin(struct rv__row_reader *reader, struct rv__str facts, rv_error *err)
{
    rv_error why;
    rv__buf_reset(&reader->text);
    rv__buf_char(&reader->text, '[');
    rv__buf_str(&reader->text, facts);
    rv__buf_char(&reader->text, ']');
    int rc = rv__buf_err(&reader->text, err);
    if (rc < 0)
        return rc;
    if (rv__json_check_stored(rv__buf_view(&reader->text), RV__JSON_MAX_DEPTH, NULL, &why) < 0)
        return rv__fail(err, RV_ESTORE, "a row of the journal is not JSON: %s", why.message);
    rv__json_iter_init(&reader->it, rv__buf_view(&reader->text));
    return RV_OK;
}

int rv__row_next(struct rv__row_reader *reader, const struct rv__plan *plan,
                 struct rv__read_fact *ret, rv_error *err)
{
    struct rv__str json, key, value;
    struct rv__json_iter it;
    if (!rv__json_next(&reader->it, NULL, &json))
        return 0;
    *ret = (struct rv__read_fact){
        .kind = FACT_KINDS, .node = RV__NO_NODE, .eval = -1, .status = -1
    };
    rv__json_iter_init(&it, json);
    while (rv__json_next(&it, &key, &value))
        if (!read_member(ret, key, value))
            return rv__fail(err, RV_ESTORE, "a fact in the journal: %.*s is not as it should be",
                            RV__ARG(key));
    if (ret->kind == FACT_KINDS)
        return rv__fail(err, RV_ESTORE, "an entry of the journal has no kind");
    if (ret->node != RV__NO_NODE && ret->node >= plan->node_count)
        return rv__fail(err, RV_ESTORE, "a fact in the journal is about no node of its plan");
    return 1;
}

/* -------------------------------------------------------------------------------- all rows --- */

struct walk {
    const struct rv__journal_walk *it;
    struct rv__row_reader row;
    rv_error *err;
};

static int walk_row(void *arg, uint64_t seq, struct rv__str facts)
{
    struct walk *w = arg;
    struct rv__read_fact fact;
    if (seq > w->it->until)
        return 1; /* the end of the range */
    int rc = rv__row_begin(&w->row, facts, w->err);
    while (rc >= 0 && (rc = rv__row_next(&w->row, w->it->plan, &fact, w->err)) == 1)
        rc = w->it->fact(w->it->arg, &fact, w->err);
    if (rc == RV_OK && w->it->row != NULL)
        w->it->row(w->it->arg, seq);
    return rc;
}

int rv__journal_walk(struct rv__store *store, struct rv__str run, const struct rv__journal_walk *it,
                     rv_error *err)
{
    struct walk w = { .it = it, .err = err };
    rv__row_reader_init(&w.row);
    int rc = rv__store_journal(store, run, it->after, walk_row, &w, err);
    rv__row_reader_done(&w.row);
    return rc < 0 ? rc : RV_OK;
}
