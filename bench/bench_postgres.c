/* bench_postgres.c: the PostgreSQL store beside PostgreSQL itself.
 *
 * Journal rows of 150 to 299 bytes, in commits of 100 and of 1,000, of 2,000 runs that take turns. Beside it, in turns, on
 * the same server, which syncs: one multi-row INSERT of the same rows in a transaction, in one pipeline, into a table
 * with the same columns and the same two indexes. And, for ADR 0034, that with the road not taken: a row of each
 * run that is updated with every write.
 *
 * The server is started by this program, in /tmp. */
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"
#include "store/postgres/postgres.h"
#include "unit/store/pg_server.h"

enum { LIVE = 2000, TURN_MAX = 1000, COMMITS = 8, ROUNDS = 11 };

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench_postgres: %s\n", what);
        abort();
    }
}

static double seconds(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e9;
}

static char row_text[512], ids[LIVE][16];
static uint64_t numbers[LIVE];
static int64_t heads[LIVE]; /* of the bare tables */

struct race {
    struct rv__store *store;
    PGconn *pg;
    struct rv__pg_params params;
    int at, turn;
    struct rv__store_write writes[TURN_MAX];
    int whose[TURN_MAX];
};

static void take_turns(struct race *race)
{
    for (int i = 0; i < race->turn; i++) {
        int run = race->whose[i] = race->at++ % LIVE;
        race->writes[i] = (struct rv__store_write){
            .run = rv__str(ids[run]),
            .number = numbers[run],
            .facts = { row_text, 150 + (size_t)(i * 37 + race->at) % 150 },
        };
    }
}

/* ------------------------------------------------------------------------------- the others --- */

static void bare_tables(PGconn *pg)
{
    pg_run(pg, "CREATE SCHEMA bare; CREATE TABLE bare.journal (seq bigint NOT NULL, run bigint NOT"
               " NULL, prev bigint NOT NULL, facts bytea NOT NULL);"
               "CREATE UNIQUE INDEX ON bare.journal (run, prev);"
               "CREATE INDEX ON bare.journal (seq); CREATE SEQUENCE bare.seqs;"
               "CREATE TABLE bare.runs (run bigint PRIMARY KEY, turn bigint NOT NULL) WITH"
               " (fillfactor = 50); SET enable_seqscan = off; SET plan_cache_mode ="
               " force_generic_plan");
    PQclear(PQprepare(pg, "insert",
                      "INSERT INTO bare.journal SELECT nextval('bare.seqs'), w.* FROM"
                      " unnest($1::bigint[], $2::bigint[], $3::bytea[]) w RETURNING seq",
                      0, NULL));
    PQclear(PQprepare(pg, "update",
                      "UPDATE bare.runs r SET turn = w.turn + 1 FROM unnest($1::bigint[],"
                      " $2::bigint[]) w(run, turn) WHERE r.run = w.run AND r.turn <= w.turn",
                      0, NULL));
}

static void bare_turns(struct race *race, bool update)
{
    static const int binary[] = { 1, 1, 1 };
    struct rv__pg_params *params = &race->params;
    rv__pg_params_reset(params);
    (void)rv__pg_add_array(params, PG_INT8);
    (void)rv__pg_add_array(params, PG_INT8);
    (void)rv__pg_add_array(params, PG_BYTEA);
    for (int i = 0; i < race->turn; i++) {
        rv__pg_put_int(params, 0, (int64_t)numbers[race->whose[i]]);
        rv__pg_put_int(params, 1, heads[race->whose[i]]++);
        rv__pg_put_str(params, 2, race->writes[i].facts);
    }
    must(rv__pg_params_ready(params, NULL) == RV_OK, "memory");
    PGconn *pg = race->pg;
    must(PQenterPipelineMode(pg), "pipeline");
    must(PQsendQueryParams(pg, "BEGIN", 0, NULL, NULL, NULL, NULL, 1), "begin");
    if (update)
        must(PQsendQueryPrepared(pg, "update", 2, params->values, params->lengths, binary, 1),
             "update");
    must(PQsendQueryPrepared(pg, "insert", 3, params->values, params->lengths, binary, 1),
         "insert");
    must(PQsendQueryParams(pg, "COMMIT", 0, NULL, NULL, NULL, NULL, 1), "commit");
    must(PQpipelineSync(pg), "sync");
    for (bool synced = false; !synced;) {
        PGresult *result = PQgetResult(pg);
        ExecStatusType status = PQresultStatus(result);
        must(result == NULL || status != PGRES_FATAL_ERROR, PQerrorMessage(pg));
        synced = result != NULL && status == PGRES_PIPELINE_SYNC;
        PQclear(result);
    }
    must(PQexitPipelineMode(pg), "end of pipeline");
}

/* ------------------------------------------------------------------------------------ the race --- */

static void begin_runs(struct race *race)
{
    static struct rv__store_run rows[LIVE];
    static struct rv__store_write writes[LIVE];
    for (int i = 0; i < LIVE; i++) {
        snprintf(ids[i], sizeof ids[i], "run-%d", i);
        rows[i] = (struct rv__store_run){ .id = rv__str(ids[i]),
                                          .workflow = rv__str("orders"),
                                          .status = rv__str("running"),
                                          .input = rv__str("{\"order\":12345}"),
                                          .active = true };
        writes[i] = (struct rv__store_write){ .run = rows[i].id, .row = &rows[i] };
    }
    must(rv__store_commit(race->store, writes, LIVE, NULL) == RV_OK, "runs");
    for (int i = 0; i < LIVE; i++)
        numbers[i] = writes[i].number;
    pg_run(race->pg, "INSERT INTO bare.runs SELECT n, 0 FROM generate_series(1, 2000) n");
}

static void throughput(struct bench *b, struct race *race, int turn, double goal)
{
    double ours[ROUNDS], bare[ROUNDS], updated[ROUNDS], ratio[ROUNDS];
    char name[80];
    race->turn = turn;
    for (int r = -1; r < ROUNDS; r++) { /* the first round warms up */
        double took[3] = { 0, 0, 0 }, items = (double)turn * COMMITS;
        for (int i = 0; i < COMMITS; i++) {
            take_turns(race);
            double start = seconds();
            must(rv__store_commit(race->store, race->writes, (size_t)turn, NULL) == RV_OK,
                 "commit");
            double first = seconds();
            bare_turns(race, false);
            double second = seconds();
            bare_turns(race, true);
            took[0] += first - start;
            took[1] += second - first;
            took[2] += seconds() - second;
        }
        if (r < 0)
            continue;
        ours[r] = items / took[0];
        bare[r] = items / took[1];
        updated[r] = items / took[2];
        ratio[r] = 100 * ours[r] / bare[r];
    }
    snprintf(name, sizeof name, "journal rows, %d in a commit", turn);
    bench_figure(b, name, bench_median(ours, ROUNDS), "/s");
    bench_figure(b, "  the same by bare multi-row inserts", bench_median(bare, ROUNDS), "/s");
    bench_goal(b, "  of the bare rate", bench_median(ratio, ROUNDS), "%", true, goal);
    bench_figure(b, "  bare, with an update of each run's row", bench_median(updated, ROUNDS),
                 "/s");
}

static int count_row(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    (void)seq;
    (void)run;
    (void)facts;
    ++*(int *)arg;
    return RV_OK;
}

static void reading(struct bench *b, struct race *race)
{
    struct rv__store_usage usage;
    double us[101];
    int rows = 0;
    must(rv__store_usage(race->store, &usage, NULL) == RV_OK, "usage");
    for (int i = 0; i < 101; i++) {
        double start = seconds();
        must(rv__store_feed(race->store, usage.last_seq, 100, count_row, &rows, NULL) == RV_OK,
             "feed");
        us[i] = (seconds() - start) * 1e6;
    }
    bench_figure(b, "asking the feed, when there is nothing new", bench_median(us, 101), "us");
    for (int i = 0; i < 101; i++) {
        double start = seconds();
        must(rv__store_feed(race->store, usage.last_seq - 100, 100, count_row, &rows, NULL) ==
                 RV_OK,
             "feed");
        us[i] = (seconds() - start) * 1e6;
    }
    bench_figure(b, "its last 100 rows", bench_median(us, 101), "us");
}

static void one_by_one(struct bench *b, struct race *race)
{
    double us[101];
    race->turn = 1;
    for (int i = 0; i < 101; i++) {
        take_turns(race);
        double start = seconds();
        must(rv__store_commit(race->store, race->writes, 1, NULL) == RV_OK, "commit");
        us[i] = (seconds() - start) * 1e6;
    }
    bench_figure(b, "a commit of one row", bench_median(us, 101), "us");
}

int main(int argc, char **argv)
{
    static struct race race;
    struct bench b;
    char address[PG_ADDRESS_MAX];
    rv_error err = { 0, "" };
    bench_init(&b, "store: PostgreSQL", argc, argv);
    memset(row_text, 'x', sizeof row_text);
    pg_server_start_synced();
    pg_database_new(address);
    (void)rv__postgres_open(&(struct rv__store_opts){ .path = address }, &race.store, &err);
    must(race.store != NULL, err.message);
    race.pg = pg_connect(address);
    rv__pg_params_init(&race.params);
    bare_tables(race.pg);
    begin_runs(&race);
    throughput(&b, &race, 100, 50);
    throughput(&b, &race, 1000, 60);
    one_by_one(&b, &race);
    reading(&b, &race);
    rv__pg_params_done(&race.params);
    PQfinish(race.pg);
    rv__store_close(race.store);
    pg_server_stop();
    return bench_done(&b);
}
