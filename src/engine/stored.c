/* stored.c: what has left a cell for the store, for who reads it: finished iterations, a page at a time,
 * and values. What comes from the disk is checked here, once; behind that it is JSON. */
#include "base/error.h"
#include "base/json.h"
#include "engine/engine.h"

enum { PAGE_BYTES = 256 << 10 }; /* of iterations read at once; one may be longer */

enum { PAGE_FULL = 1 };

struct page {
    struct rv__buf *out;
    size_t from;
    int64_t last;
    bool any;
    rv_error *err;
};

static int put_row(void *arg, int64_t index, struct rv__str json)
{
    struct page *page = arg;
    rv_error why;
    if (page->any && page->out->len - page->from + json.len > PAGE_BYTES)
        return PAGE_FULL;
    if (rv__json_check_stored(json, RV__JSON_STORED_DEPTH, &json, &why) < 0)
        return rv__fail(page->err, RV_ESTORE, "a finished iteration is not JSON: %s", why.message);
    if (page->any)
        rv__buf_char(page->out, ',');
    rv__buf_str(page->out, json);
    page->any = true;
    page->last = index;
    return rv__buf_err(page->out, page->err);
}

/* The loop has a reader of its own; all others share one. */
static struct rv__store *take_reader(struct rv__engine_rows *rows)
{
    rv_engine *e = rows->run->engine;
    if (rows->on_loop)
        return e->reader;
    pthread_mutex_lock(&e->step_reader_lock);
    return e->step_reader;
}

static void give_reader(struct rv__engine_rows *rows)
{
    if (!rows->on_loop)
        pthread_mutex_unlock(&rows->run->engine->step_reader_lock);
}

static int rows_from_store(struct rv__row_source *self, struct rv__str key, int64_t after,
                           struct rv__buf *out, int64_t *last, rv_error *err)
{
    struct rv__engine_rows *rows = (struct rv__engine_rows *)self;
    struct page page = { .out = out, .from = out->len, .last = after, .err = err };
    struct rv__store *store = take_reader(rows);
    int rc = rv__store_results(store, rv__str(rows->run->id), key, after + 1, SIZE_MAX, put_row,
                               &page, err);
    give_reader(rows);
    *last = page.last;
    return rc;
}

void rv__values_fill(const struct rv__facts *facts, struct rv__store_value *to)
{
    for (size_t i = 0; i < facts->value_count; i++)
        to[i] = (struct rv__store_value){ facts->values[i].number,
                                          rv__blob_str(facts->values[i].json) };
}

struct value_read {
    struct rv__blob *blob;
    rv_error *err;
};

static int take_value(void *arg, uint64_t number, struct rv__str json)
{
    struct value_read *read = arg;
    rv_error why;
    if (rv__json_check_stored(json, RV__JSON_MAX_DEPTH, &json, &why) < 0)
        return rv__fail(read->err, RV_ESTORE, "the value %llu is not JSON: %s",
                        (unsigned long long)number, why.message);
    read->blob = rv__blob_new(json);
    return read->blob != NULL ? RV_OK : rv__nomem(read->err);
}

int rv__stored_value(struct rv__store *store, struct rv__str run, uint64_t number,
                     struct rv__blob **ret, rv_error *err)
{
    struct value_read read = { .err = err };
    int rc = rv__store_value_read(store, run, number, take_value, &read, err);
    if (rc == RV_ENOTFOUND)
        return rv__fail(err, RV_ESTORE, "the store has no value %llu of run '%.*s'",
                        (unsigned long long)number, RV__ARG(run));
    if (rc < 0)
        return rc;
    *ret = read.blob;
    return RV_OK;
}

enum { PIECES = sizeof((struct rv__run *)0)->pieces / sizeof((struct rv__run *)0)->pieces[0] };

static struct rv__blob *find_piece(const struct rv__run *run, uint64_t number)
{
    for (size_t i = 0; i < PIECES; i++)
        if (run->pieces[i].number == number)
            return run->pieces[i].text;
    return NULL;
}

/* A piece of items is wanted by all its iterations, and each read is a look at the disk that another
 * connection has just written to: so the last ones are kept. Long ones are not, which are read once. */
static void keep_piece(struct rv__run *run, uint64_t number, struct rv__blob *text)
{
    if (text->len > RV__VALUE_INLINE)
        return;
    struct rv__piece *piece = &run->pieces[run->next_piece++ % PIECES];
    rv__blob_unref(piece->text);
    *piece = (struct rv__piece){ number, rv__blob_ref(text) };
}

void rv__stored_forget(struct rv__run *run)
{
    for (size_t i = 0; i < PIECES; i++)
        rv__blob_unref(run->pieces[i].text);
}

static int value_from_store(struct rv__row_source *self, uint64_t number, struct rv__blob **ret,
                            rv_error *err)
{
    struct rv__engine_rows *rows = (struct rv__engine_rows *)self;
    struct rv__store *store = take_reader(rows);
    struct rv__blob *kept = rows->on_loop ? NULL : find_piece(rows->run, number);
    int rc = RV_OK;
    if (kept != NULL)
        *ret = rv__blob_ref(kept);
    else
        rc = rv__stored_value(store, rv__str(rows->run->id), number, ret, err);
    if (rc == RV_OK && kept == NULL && !rows->on_loop)
        keep_piece(rows->run, number, *ret);
    give_reader(rows);
    return rc;
}

static int put_input(void *arg, const struct rv__store_run *row)
{
    rv__buf_str(arg, row->input);
    return rv__buf_err(arg, NULL);
}

int rv__stored_input(struct rv__engine_rows *rows, struct rv__buf *out, rv_error *err)
{
    struct rv__store *store = take_reader(rows);
    int rc = rv__store_run(store, rv__str(rows->run->id), put_input, out, err);
    give_reader(rows);
    return rc;
}

void rv__engine_rows_init(struct rv__engine_rows *rows, struct rv__run *run)
{
    rv_engine *e = run->engine;
    *rows = (struct rv__engine_rows){ .source = { rows_from_store, value_from_store }, .run = run };
    rows->on_loop = e->running_thread && pthread_equal(pthread_self(), e->thread);
}
