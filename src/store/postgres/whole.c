/* whole.c: a run as of one moment, for exports; a run that comes in one transaction, for imports. */
#include "store/postgres/postgres.h"

#include "base/error.h"

/* ---------------------------------------------------------------------------------- it leaves --- */

struct whole {
    const struct rv__store_visitor *visitor;
    void *arg;
    struct rv__buf version;
    size_t seen;
};

static int whole_run(void *arg, const PGresult *row, rv_error *err)
{
    struct whole *whole = arg;
    struct rv__store_run run = rv__pg_run_of(row);
    whole->seen++;
    rv__buf_str(&whole->version, run.version);
    int rc = rv__buf_err(&whole->version, err);
    return rc < 0 ? rc : whole->visitor->run(whole->arg, &run);
}

static int whole_definition(void *arg, const PGresult *row, rv_error *err)
{
    struct whole *whole = arg;
    (void)err;
    return whole->visitor->definition(whole->arg, 0, rv__pg_str(row, 0));
}

static int whole_value(void *arg, const PGresult *row, rv_error *err)
{
    struct whole *whole = arg;
    (void)err;
    return whole->visitor->value(whole->arg, (uint64_t)rv__pg_int(row, 0), rv__pg_str(row, 1));
}

static int whole_turn(void *arg, const PGresult *row, rv_error *err)
{
    struct whole *whole = arg;
    (void)err;
    if (rv__pg_bool(row, 10)) {
        struct rv__store_log line = rv__pg_log_of(row);
        return whole->visitor->log(whole->arg, &line);
    }
    return whole->visitor->row(whole->arg, (uint64_t)rv__pg_int(row, 0), rv__pg_str(row, 11));
}

static int read_whole(struct rv__pg *pg, struct rv__str run, struct whole *whole, rv_error *err)
{
    struct rv__pg_params *params = &pg->params;
    rv__pg_params_reset(params);
    rv__pg_add_str(params, run);
    int rc = rv__pg_rows(&pg->conn, PG_RUN, params, whole_run, whole, err);
    if (rc == RV_OK && whole->seen == 0)
        rc = rv__fail(err, RV_ENOTFOUND, "there is no run '%.*s'", RV__ARG(run));
    if (rc != RV_OK)
        return rc;
    rv__pg_params_reset(params);
    rv__pg_add_str(params, rv__buf_view(&whole->version));
    rc = rv__pg_rows(&pg->conn, PG_DEFINITION, params, whole_definition, whole, err);
    rv__pg_params_reset(params);
    rv__pg_add_str(params, run);
    if (rc == RV_OK)
        rc = rv__pg_rows(&pg->conn, PG_VALUES, params, whole_value, whole, err);
    if (rc == RV_OK)
        rc = rv__pg_rows(&pg->conn, PG_HISTORY, params, whole_turn, whole, err);
    return rc;
}

int rv__pg_whole(struct rv__store *store, struct rv__str run,
                 const struct rv__store_visitor *visitor, void *arg, rv_error *err)
{
    struct rv__pg *pg = rv__pg_of(store);
    struct whole whole = { .visitor = visitor, .arg = arg };
    int rc = rv__pg_ready(pg, err);
    if (rc < 0)
        return rc == RV_EGONE ? RV_ESTORE : rc;
    rv__buf_init(&whole.version, SIZE_MAX);
    rc = rv__pg_exec(&pg->conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err);
    if (rc == RV_OK)
        rc = read_whole(pg, run, &whole, err);
    rv__pg_tx_rollback(pg); /* nothing was written */
    rv__pg_params_reset(&pg->params);
    rv__buf_done(&whole.version);
    return rc;
}

/* ----------------------------------------------------------------------------------- it comes --- */

static bool went_well(const struct rv__pg_answer *answer)
{
    return !answer->lost && answer->failed_at == SIZE_MAX;
}

/* One write in the open transaction. `begins`: with its first statements. */
static int take_in(struct rv__pg *pg, struct rv__store_write *write, struct rv__pg_item *item,
                   bool begins, rv_error *err)
{
    struct rv__pg_batch batch = { .writes = write, .items = item };
    struct rv__pg_answer answer;
    rv_error why;
    write->outcome = STORE_WRITTEN;
    int rc = begins ? rv__pg_tx_begin(pg, err) : rv__pg_pipe_begin(&pg->conn, err);
    if (rc < 0)
        return rc;
    rc = rv__pg_send_definitions(pg, write, 1, err);
    if (rc == RV_OK)
        rc = rv__pg_send_writes(pg, &batch, 0, 1, err);
    rv__pg_pipe_end(&pg->conn, rv__pg_take_numbers, &batch, &answer);
    if (rc < 0)
        return rc;
    if (rv__pg_refusal(&answer, write, &why))
        return rv__fail(err, why.code, "%s", why.message);
    return went_well(&answer) ? RV_OK : rv__pg_tx_fail(pg, &answer, err);
}

int rv__pg_import(struct rv__store *store, struct rv__str run, rv__store_next_write *next,
                  void *arg, rv_error *err)
{
    struct rv__pg *pg = rv__pg_of(store);
    struct rv__store_write write;
    struct rv__pg_item item = { .is_new = true };
    bool begun = false;
    if (pg->read_only)
        return rv__pg_refuse_reader(err);
    int rc = rv__pg_ready(pg, err);
    while (rc == RV_OK && (rc = next(arg, &write, err)) == 1) {
        item.seq = 0;
        rc = rv__pg_check_write(pg, &write, err);
        if (rc == RV_OK && !begun && write.row == NULL)
            rc = rv__fail(err, RV_EINVAL, "there is no run '%.*s'", RV__ARG(run));
        if (rc == RV_OK) {
            rc = take_in(pg, &write, &item, !begun, err);
            begun = true;
        }
        item.is_new = false;
        item.last_seq = item.seq != 0 ? item.seq : item.last_seq;
    }
    if (rc == RV_OK && begun)
        rc = rv__pg_tx_commit(pg, err);
    else if (begun)
        rv__pg_tx_rollback(pg);
    rv__pg_params_reset(&pg->params);
    pg->writer.stats.commits += rc == RV_OK;
    pg->writer.stats.failures += rc < 0;
    return rc;
}
