/* rows.c: finished iterations that have left the cell for the store, as flow/ wants to read them. */
#include "work/work.h"

struct row_text {
    struct rv__buf *out;
    bool first;
};

static int put_row(void *arg, int64_t index, struct rv__str json)
{
    struct row_text *text = arg;
    (void)index;
    if (!text->first)
        rv__buf_char(text->out, ',');
    text->first = false;
    rv__buf_str(text->out, json);
    return RV_OK;
}

static int read_rows(struct rv__row_source *self, struct rv__str key, struct rv__buf *out,
                     rv_error *err)
{
    struct rv__stored_rows *rows = (struct rv__stored_rows *)self;
    struct row_text text = { .out = out, .first = true };
    if (rows->lock != NULL)
        pthread_mutex_lock(rows->lock);
    int rc = rv__store_results(*rows->store, rv__str(rows->run_id), key, put_row, &text, err);
    if (rows->lock != NULL)
        pthread_mutex_unlock(rows->lock);
    return rc;
}

void rv__stored_rows_init(struct rv__stored_rows *rows, const char *run_id,
                          struct rv__store *const *store, pthread_mutex_t *lock)
{
    *rows = (struct rv__stored_rows){
        .source = { read_rows }, .run_id = run_id, .store = store, .lock = lock
    };
}
