/* test_postgres.c: for src/store/postgres/: the suite of every store, against a real server. */
#include "unit/test.h"

#include "store/postgres/postgres.h"
#include "unit/store/pg_server.h"
#include "unit/store/store_suite.h"

static char address[PG_ADDRESS_MAX]; /* of the store at hand */

static struct rv__store *open_again(void)
{
    struct rv__store *store = NULL;
    rv_error err = { 0, "" };
    struct rv__store_opts opts = { .path = address, .max_row_bytes = STORE_SUITE_MAX };
    if (rv__postgres_open(&opts, &store, &err) != RV_OK)
        fail_msg("%s", err.message);
    return store;
}

static struct rv__store *maker_open(struct store_maker *maker)
{
    (void)maker;
    pg_database_new(address);
    return open_again();
}

/* Its connection is cut, as that of a process that ends; the handle is only memory then. */
static struct rv__store *maker_reopen(struct store_maker *maker, struct rv__store *store)
{
    (void)maker;
    rv__store_close(store);
    return open_again();
}

/* Every transaction changes its lane: one of them fails as on a full disk. A sequence is not rolled back, so it counts
 * once. */
static void maker_fail_next(struct store_maker *maker, struct rv__store *store)
{
    PGconn *pg = pg_connect(address);
    (void)maker;
    (void)store;
    pg_run(pg, "CREATE SEQUENCE IF NOT EXISTS public.tries; ALTER SEQUENCE public.tries RESTART;"
               "CREATE OR REPLACE FUNCTION public.fail_once() RETURNS trigger LANGUAGE plpgsql AS"
               " $$ BEGIN IF nextval('public.tries') = 1 THEN"
               " RAISE 'no space' USING ERRCODE = 'disk_full'; END IF; RETURN NEW; END $$;"
               "DROP TRIGGER IF EXISTS fail ON rival.lanes; CREATE TRIGGER fail BEFORE UPDATE ON"
               " rival.lanes FOR EACH ROW EXECUTE FUNCTION public.fail_once()");
    PQfinish(pg);
}

static void maker_remove(struct store_maker *maker, struct rv__store *store)
{
    (void)maker;
    rv__store_close(store);
    pg_database_drop(address);
}

static struct rv__store *maker_join(struct store_maker *maker)
{
    struct rv__store *store = NULL;
    rv_error err = { 0, "" };
    struct rv__store_opts opts = { .path = address, .member = true };
    (void)maker;
    if (rv__postgres_open(&opts, &store, &err) != RV_OK)
        fail_msg("%s", err.message);
    return store;
}

static void maker_lapse(struct store_maker *maker, int64_t member)
{
    char sql[120];
    PGconn *pg = pg_connect(address);
    (void)maker;
    snprintf(sql, sizeof sql,
             "UPDATE rival.lanes SET renewed = renewed - interval '1 hour' WHERE slot = %lld",
             (long long)member);
    pg_run(pg, sql);
    PQfinish(pg);
}

int main(void)
{
    struct store_maker maker = { .open = maker_open,
                                 .reopen = maker_reopen,
                                 .fail_next = maker_fail_next,
                                 .remove = maker_remove,
                                 .join = maker_join,
                                 .lapse = maker_lapse };
    pg_server_start();
    int failed = store_suite(&maker);
    pg_server_stop();
    return failed;
}
