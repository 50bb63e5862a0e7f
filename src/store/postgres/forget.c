/* forget.c: forgetting runs: their rows go at once, with them all that leads to the rest; the rest is deleted a
 * bounded piece at a time, by this call or by later ones. */
#include "store/postgres/postgres.h"

#include <stdlib.h>

#include "base/error.h"

enum {
    DROP_ROWS = 2000, /* deleted in a transaction */
    DROP_VALUES = 64, /* which are long */
};

/* One statement in the open transaction.   Errors: those of a transaction. */
static PGresult *ask(struct rv__pg *pg, enum rv__pg_sql sql, int *rc, rv_error *err)
{
    rv_error why = { 0, "" };
    PGresult *result = rv__pg_query(&pg->conn, sql, &pg->params, &why);
    rv__pg_params_reset(&pg->params);
    if (result == NULL)
        *rc = rv__fail(err, RV_ESTORE, "%s", why.message);
    return result;
}

static int open_tx(struct rv__pg *pg, rv_error *err)
{
    struct rv__pg_answer answer;
    int rc = rv__pg_ready(pg, err);
    if (rc == RV_OK)
        rc = rv__pg_tx_begin(pg, err);
    if (rc < 0)
        return rc;
    rv__pg_pipe_end(&pg->conn, NULL, NULL, &answer);
    if (!answer.lost && answer.failed_at == SIZE_MAX)
        return RV_OK;
    rv__pg_tx_rollback(pg);
    return rv__pg_tx_fail(pg, &answer, err);
}

/* The numbers of those that are there, in parameter 1. RV_ESTATE: one is not over. */
static int find_runs(struct rv__pg *pg, const struct rv__str *runs, size_t count, int *ret_count,
                     rv_error *err)
{
    int rc = RV_OK, array;
    (void)rv__pg_add_array(&pg->params, PG_BYTEA);
    for (size_t i = 0; i < count; i++)
        rv__pg_put_str(&pg->params, 0, runs[i]);
    rc = rv__pg_params_ready(&pg->params, err);
    PGresult *result = rc == RV_OK ? ask(pg, PG_FORGETTABLE, &rc, err) : NULL;
    if (result == NULL)
        return rc;
    rv__pg_add_int4(&pg->params, pg->writer.slot);
    array = rv__pg_add_array(&pg->params, PG_INT8);
    *ret_count = PQntuples(result);
    for (int i = 0; i < *ret_count && rc == RV_OK; i++) {
        uint64_t number = (uint64_t)rv__pg_int_at(result, i, 0);
        if (PQgetvalue(result, i, 2)[0] == 0)
            rc = rv__fail(err, RV_ESTATE, "run '%.*s' has not ended: it cannot be deleted",
                          PQgetlength(result, i, 1), PQgetvalue(result, i, 1));
        rv__pg_put_int(&pg->params, array, (int64_t)number);
        rv__pg_known_drop(&pg->writer, number);
    }
    PQclear(result);
    return rc == RV_OK ? rv__pg_params_ready(&pg->params, err) : rc;
}

/* How many rows of a forgotten run a statement deleted, of at most so many. */
static int drop_some(struct rv__pg *pg, enum rv__pg_sql sql, int64_t run, int64_t limit,
                     int64_t *ret, rv_error *err)
{
    int rc = RV_OK;
    rv__pg_add_int(&pg->params, run);
    if (sql != PG_DROP_FORGOTTEN)
        rv__pg_add_int(&pg->params, limit);
    PGresult *result = ask(pg, sql, &rc, err);
    if (result != NULL)
        *ret = strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return rc;
}

/* Delete of what is left of one run. *ret_done: nothing is left. */
static int drop_of(struct rv__pg *pg, int64_t run, int64_t *left, bool *ret_done, rv_error *err)
{
    static const enum rv__pg_sql tables[] = { PG_DROP_JOURNAL, PG_DROP_RESULTS, PG_DROP_LOGS,
                                              PG_DROP_VALUES };
    int rc = RV_OK;
    *ret_done = false;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && rc == RV_OK; i++) {
        int64_t limit = tables[i] == PG_DROP_VALUES && *left > DROP_VALUES ? DROP_VALUES : *left;
        int64_t dropped = 0;
        rc = drop_some(pg, tables[i], run, limit, &dropped, err);
        *left -= tables[i] == PG_DROP_VALUES ? dropped * (DROP_ROWS / DROP_VALUES) : dropped;
        if (rc < 0 || dropped == limit || *left <= 0)
            return rc; /* there may be more of it */
    }
    *ret_done = rc == RV_OK;
    int64_t rows;
    return rc == RV_OK ? drop_some(pg, PG_DROP_FORGOTTEN, run, 0, &rows, err) : rc;
}

static int drop_forgotten(struct rv__pg *pg, bool *ret_more, rv_error *err)
{
    int64_t left = DROP_ROWS;
    bool done = true;
    int rc = RV_OK;
    while (rc == RV_OK && done) {
        PGresult *result = ask(pg, PG_NEXT_FORGOTTEN, &rc, err);
        if (result == NULL)
            break;
        bool any = PQntuples(result) > 0;
        int64_t run = any ? rv__pg_int(result, 0) : 0;
        PQclear(result);
        *ret_more = any;
        if (!any || left <= 0)
            break;
        rc = drop_of(pg, run, &left, &done, err);
    }
    return rc;
}

int rv__pg_forget(struct rv__store *store, const struct rv__str *runs, size_t count, bool *ret_more,
                  rv_error *err)
{
    struct rv__pg *pg = rv__pg_of(store);
    bool more = false;
    int found = 0;
    if (pg->read_only)
        return rv__pg_refuse_reader(err);
    if (count > RV__STORE_LIST_MAX)
        return rv__fail(err, RV_EINVAL, "%zu runs are too many to delete at once: at most %d",
                        count, (int)RV__STORE_LIST_MAX);
    int rc = open_tx(pg, err);
    if (rc < 0)
        return rc;
    if (count > 0)
        rc = find_runs(pg, runs, count, &found, err);
    if (rc == RV_OK && found > 0) {
        PGresult *result = ask(pg, PG_FORGET_RUNS, &rc, err);
        PQclear(result);
    }
    rv__pg_params_reset(&pg->params);
    if (rc == RV_OK)
        rc = drop_forgotten(pg, &more, err);
    if (rc < 0) {
        rv__pg_params_reset(&pg->params);
        rv__pg_tx_rollback(pg);
        return rc;
    }
    rc = rv__pg_tx_commit(pg, err);
    if (rc == RV_OK)
        *ret_more = more;
    return rc;
}
