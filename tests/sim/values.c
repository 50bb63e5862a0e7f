/* values.c: the simulated world's long texts: what a fact refers to, wherever it is by now: decided and in no
 * commit yet, on its way to the disk, or there. */
#include "sim.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"

struct found {
    struct rv__blob *blob;
    uint64_t number;
};

static int take_value(void *arg, uint64_t number, struct rv__str json)
{
    struct found *found = arg;
    if (number == found->number)
        found->blob = sim_blob(json);
    return RV_OK;
}

static struct rv__blob *among(const struct rv__value *values, size_t count, uint64_t number)
{
    for (size_t i = count; i-- > 0;)
        if (values[i].number == number)
            return rv__blob_ref(values[i].json);
    return NULL;
}

struct rv__blob *value_on_disk(struct world *world, const struct run *run, uint64_t number)
{
    struct found found = { .number = number };
    (void)rv__store_value_read(world->disk, rv__str(run->id), number, take_value, &found, NULL);
    return found.blob;
}

/* NULL: there is none, and that was told. */
static struct rv__blob *find_value(struct world *world, const struct run *run, uint64_t number)
{
    struct rv__blob *blob = among(run->facts.values, run->facts.value_count, number);
    if (blob == NULL)
        blob = among(run->pending_values, run->pending_value_count, number);
    if (blob == NULL)
        blob = value_on_disk(world, run, number);
    if (blob == NULL)
        judge_fail(world, run, "value", "a fact refers to value %llu, which nobody has",
                   (unsigned long long)number);
    return blob;
}

struct rv__blob *value_text(struct world *world, const struct run *run, struct rv__blob *blob)
{
    if (!rv__blob_is_reference(blob))
        return rv__blob_ref(blob);
    struct rv__blob *text = find_value(world, run, blob->value);
    if (text != NULL && text->len != blob->len)
        judge_fail(world, run, "value", "value %llu has %zu bytes, and %zu are told",
                   (unsigned long long)blob->value, text->len, blob->len);
    return text;
}

static void here(struct world *world, const struct run *run, struct rv__blob **blob)
{
    struct rv__blob *text = value_text(world, run, *blob);
    rv__blob_unref(*blob);
    *blob = text;
}

static int64_t number_at(struct rv__json_iter *it)
{
    struct rv__str text;
    int64_t n = 0;
    if (rv__json_next(it, NULL, &text))
        (void)rv__json_int(text, &n); /* not one: 0 */
    return n;
}

/* The items in pieces, as they came: the text of the fact says which pieces, and how many are in each. */
static struct rv__blob *all_items(struct world *world, const struct run *run, struct rv__str fact)
{
    struct rv__json_iter it, in;
    struct rv__str list, item;
    struct rv__buf all;
    if (!rv__json_get(fact, "itemsValue", &list))
        return NULL;
    rv__buf_init(&all, SIZE_MAX);
    rv__buf_char(&all, '[');
    rv__json_iter_init(&it, list);
    uint64_t number = (uint64_t)number_at(&it);
    for (int64_t each; (each = number_at(&it)) > 0 && !world->failed;) {
        for (int64_t left = number_at(&it); left > 0 && !world->failed; left--, number++) {
            struct rv__blob *piece = find_value(world, run, number);
            int64_t count = 0;
            rv__json_iter_init(&in, piece != NULL ? rv__blob_str(piece) : rv__str("[]"));
            for (; rv__json_next(&in, NULL, &item); count++) {
                if (all.len > 1)
                    rv__buf_char(&all, ',');
                rv__buf_str(&all, item);
            }
            if (count != each && !world->failed)
                judge_fail(world, run, "value", "piece %llu has %lld items, and %lld are told",
                           (unsigned long long)number, (long long)count, (long long)each);
            rv__blob_unref(piece);
        }
    }
    rv__buf_char(&all, ']');
    struct rv__blob *items = sim_blob(rv__buf_view(&all));
    rv__buf_done(&all);
    return items;
}

void values_of_fact(struct world *world, const struct run *run, struct rv__str text,
                    struct rv__fact *fact)
{
    here(world, run, &fact->result);
    here(world, run, &fact->state);
    if (fact->items != NULL)
        fact->result = all_items(world, run, text);
}

/* -------------------------------------------------------------------------------- journal --- */

struct gathered {
    struct rv__buf text;
    struct {
        uint64_t seq;
        size_t len;
    } * rows;
    size_t count, cap;
};

static int gather_row(void *arg, uint64_t seq, struct rv__str facts)
{
    struct gathered *g = arg;
    if (g->count == g->cap) {
        g->cap = g->cap ? g->cap * 2 : 16;
        g->rows = sim_grow(g->rows, g->cap * sizeof *g->rows);
    }
    g->rows[g->count].seq = seq;
    g->rows[g->count++].len = facts.len;
    rv__buf_str(&g->text, facts);
    return RV_OK;
}

int journal_rows(struct world *world, const struct run *run, uint64_t after,
                 rv__store_visit_row *visit, void *arg)
{
    struct gathered g = { .rows = NULL };
    size_t at = 0;
    rv__buf_init(&g.text, SIZE_MAX);
    int rc = rv__store_journal(world->disk, rv__str(run->id), after, gather_row, &g, NULL);
    for (size_t i = 0; i < g.count && rc == RV_OK; i++) {
        rc = visit(arg, g.rows[i].seq, (struct rv__str){ g.text.text + at, g.rows[i].len });
        at += g.rows[i].len;
    }
    rv__buf_done(&g.text);
    free(g.rows);
    return rc;
}

/* ----------------------------------------------------------------- finished iterations --- */

enum { ROWS_A_PAGE = 4 }; /* so that there are several */

struct row_page {
    struct rv__buf *out;
    int64_t last;
    int count;
};

static int append_row(void *arg, int64_t index, struct rv__str json)
{
    struct row_page *page = arg;
    if (page->count == ROWS_A_PAGE)
        return 1;
    if (page->count++ > 0)
        rv__buf_char(page->out, ',');
    rv__buf_str(page->out, json);
    page->last = index;
    return RV_OK;
}

static int rows_of(struct rv__row_source *self, struct rv__str key, int64_t after,
                   struct rv__buf *out, int64_t *last, rv_error *err)
{
    struct store_rows *rows = (struct store_rows *)self;
    struct row_page page = { .out = out, .last = after };
    int rc = rv__store_results(rows->world->disk, rv__str(rows->run->id), key, after + 1, SIZE_MAX,
                               append_row, &page, err);
    *last = page.last;
    return rc;
}

static int value_of(struct rv__row_source *self, uint64_t number, struct rv__blob **ret,
                    rv_error *err)
{
    struct store_rows *rows = (struct store_rows *)self;
    *ret = value_on_disk(rows->world, rows->run, number);
    return *ret != NULL
               ? RV_OK
               : rv__fail(err, RV_ESTORE, "value %llu is not on disk", (unsigned long long)number);
}

void store_rows_init(struct store_rows *rows, struct world *world, struct run *run)
{
    *rows = (struct store_rows){ .source = { rows_of, value_of }, .world = world, .run = run };
}
