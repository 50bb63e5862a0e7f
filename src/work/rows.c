/* rows.c: reads for flow/ what was moved from a cell to the store: finished iterations, a page at a time, and values.
 * JSON from the disk is checked here, once. */
#include "base/error.h"
#include "base/json.h"
#include "read/read.h"
#include "work/work.h"

enum {
    PAGE_BYTES = 256 << 10
}; /* bytes of iterations that are read at once; one iteration may be longer */

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
    if (rv__json_check_stored(json, RV__JSON_MAX_DEPTH, &json, &why) < 0)
        return rv__fail(page->err, RV_ESTORE, "a finished iteration is not JSON: %s", why.message);
    if (page->any)
        rv__buf_char(page->out, ',');
    rv__buf_str(page->out, json);
    page->any = true;
    page->last = index;
    return rv__buf_err(page->out, page->err);
}

static void lock(const struct rv__stored_rows *rows)
{
    if (rows->lock != NULL)
        pthread_mutex_lock(rows->lock);
}

static void unlock(const struct rv__stored_rows *rows)
{
    if (rows->lock != NULL)
        pthread_mutex_unlock(rows->lock);
}

static int read_rows(struct rv__row_source *self, struct rv__str key, int64_t after,
                     struct rv__buf *out, int64_t *last, rv_error *err)
{
    struct rv__stored_rows *rows = (struct rv__stored_rows *)self;
    struct page page = { .out = out, .from = out->len, .last = after, .err = err };
    lock(rows);
    int rc = rv__store_results(*rows->store, rv__str(rows->run_id), key, after + 1, SIZE_MAX,
                               put_row, &page, err);
    unlock(rows);
    *last = page.last;
    return rc;
}

enum { PIECES = sizeof((struct rv__pieces *)0)->at / sizeof((struct rv__pieces *)0)->at[0] };

static struct rv__blob *find_piece(const struct rv__pieces *pieces, uint64_t number)
{
    for (size_t i = 0; pieces != NULL && i < PIECES; i++)
        if (pieces->at[i].number == number)
            return pieces->at[i].text;
    return NULL;
}

/* All iterations of a piece of items read that piece, and each read looks at a disk to which another connection has
 * just written. So the last pieces are cached. Long ones are read only once, so they are not cached. */
static void keep_piece(struct rv__pieces *pieces, uint64_t number, struct rv__blob *text)
{
    if (pieces == NULL || text->len > RV__VALUE_INLINE)
        return;
    struct rv__piece *piece = &pieces->at[pieces->next++ % PIECES];
    rv__blob_unref(piece->text);
    *piece = (struct rv__piece){ number, rv__blob_ref(text) };
}

void rv__pieces_done(struct rv__pieces *pieces)
{
    for (size_t i = 0; i < PIECES; i++)
        rv__blob_unref(pieces->at[i].text);
}

static int read_value(struct rv__row_source *self, uint64_t number, struct rv__blob **ret,
                      rv_error *err)
{
    struct rv__stored_rows *rows = (struct rv__stored_rows *)self;
    int rc = RV_OK;
    if (!rows->at_hand)
        lock(rows);
    else if (rows->lock != NULL && pthread_mutex_trylock(rows->lock) != 0)
        return RV_EBUSY;
    struct rv__blob *kept = find_piece(rows->pieces, number);
    if (kept != NULL)
        *ret = rv__blob_ref(kept);
    else if (rows->at_hand)
        rc = RV_EBUSY;
    else
        rc = rv__stored_value(*rows->store, rv__str(rows->run_id), number, ret, err);
    if (rc == RV_OK && kept == NULL)
        keep_piece(rows->pieces, number, *ret);
    unlock(rows);
    return rc;
}

void rv__stored_rows_init(struct rv__stored_rows *rows, const char *run_id,
                          struct rv__store *const *store, pthread_mutex_t *lock_of)
{
    *rows = (struct rv__stored_rows){
        .source = { read_rows, read_value }, .run_id = run_id, .store = store, .lock = lock_of
    };
}

void rv__stored_rows_of(struct rv__stored_rows *rows, const rv_ctx *ctx)
{
    rv__stored_rows_init(rows, ctx->run_id, ctx->services->reader, ctx->services->reader_lock);
    rows->pieces = ctx->pieces;
}
