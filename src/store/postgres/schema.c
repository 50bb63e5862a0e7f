/* schema.c: the tables, and each step from one schema to the next.
 *
 * All of it is in the schema `rival` of the database. Changes are made in one transaction under an advisory
 * lock: of several processes that start at once one makes them, and the others find them made. What is there
 * is looked at first, without touching anything: a newer schema, or one that is up to date, costs one
 * question. ADR 0034 has the reasons for the tables. */
#include "store/postgres/postgres.h"

#include <stdlib.h>

#include "base/error.h"

/* Of a lock that is held while tables are made, in any database. */
#define MIGRATION_LOCK "5931894172849152001"

/* From version 0, which is nothing. */
static const char version_1[] =
    "CREATE SCHEMA IF NOT EXISTS rival;"
    /* One row. */
    "CREATE TABLE rival.meta ("
    " one boolean PRIMARY KEY DEFAULT true CHECK (one),"
    " version integer NOT NULL,"
    " forgotten_seq bigint NOT NULL DEFAULT 0);"
    "INSERT INTO rival.meta (version) VALUES (1);"
    /* The numbers of journal rows and log lines together; of runs. */
    "CREATE SEQUENCE rival.seqs AS bigint;"
    "CREATE SEQUENCE rival.numbers AS bigint;"
    /* Who writes: each lane is a connection's. Its row changes with every transaction in it. */
    "CREATE TABLE rival.lanes ("
    " slot integer PRIMARY KEY,"
    " epoch bigint NOT NULL,"
    " batch bigint NOT NULL,"
    " holder text NOT NULL,"
    " since timestamptz NOT NULL DEFAULT now()) WITH (fillfactor = 10);"
    "CREATE TABLE rival.definitions (hash bytea PRIMARY KEY, plan bytea NOT NULL);"
    "CREATE TABLE rival.runs ("
    " number bigint PRIMARY KEY,"
    " id bytea NOT NULL UNIQUE,"
    " workflow bytea, version bytea, status bytea, input bytea, input_key bytea,"
    " error bytea, failed_step bytea, suspension bytea,"
    " created_ms bigint NOT NULL, started_ms bigint NOT NULL, completed_ms bigint NOT NULL,"
    " wake_at_ms bigint NOT NULL, active boolean NOT NULL,"
    " waiting boolean NOT NULL, rerun_of bytea) WITH (fillfactor = 80);"
    "CREATE INDEX runs_created ON rival.runs (created_ms, id);"
    "CREATE INDEX runs_workflow ON rival.runs (workflow, created_ms, id);"
    "CREATE INDEX runs_status ON rival.runs (status, created_ms, id);"
    "CREATE INDEX runs_waiting ON rival.runs (created_ms, id) WHERE waiting;"
    "CREATE INDEX runs_reruns ON rival.runs (rerun_of, created_ms, id)"
    " WHERE rerun_of IS NOT NULL;"
    "CREATE INDEX runs_active ON rival.runs (number) WHERE active;"
    "CREATE INDEX runs_asleep ON rival.runs (wake_at_ms, number) WHERE wake_at_ms <> 0;"
    "CREATE INDEX runs_finished ON rival.runs (completed_ms, number)"
    " WHERE completed_ms <> 0 AND NOT active AND wake_at_ms = 0;"
    /* How many runs there are: a row for each lane, so that no two wait for each other. */
    "CREATE TABLE rival.counts ("
    " slot integer NOT NULL, kind integer NOT NULL, status bytea NOT NULL,"
    " runs bigint NOT NULL, PRIMARY KEY (slot, kind, status)) WITH (fillfactor = 50);"
    /* A row for each run and turn. `prev` is the seq of the run's row before: each has one successor. */
    "CREATE TABLE rival.journal ("
    " seq bigint NOT NULL, run bigint NOT NULL, prev bigint NOT NULL, facts bytea NOT NULL)"
    " PARTITION BY HASH (run);"
    "DO $$ BEGIN FOR i IN 0..7 LOOP EXECUTE format("
    "'CREATE TABLE rival.journal_%s PARTITION OF rival.journal FOR VALUES WITH"
    " (MODULUS 8, REMAINDER %s)', i, i); END LOOP; END $$;"
    "CREATE UNIQUE INDEX journal_chain ON rival.journal (run, prev);"
    "CREATE INDEX journal_feed ON rival.journal (seq);"
    "CREATE TABLE rival.results ("
    " run bigint NOT NULL, key bytea NOT NULL, idx bigint NOT NULL, json bytea,"
    " PRIMARY KEY (run, key, idx));"
    "CREATE TABLE rival.results_seqs (run bigint PRIMARY KEY, seq bigint NOT NULL)"
    " WITH (fillfactor = 70);"
    "CREATE TABLE rival.run_values ("
    " run bigint NOT NULL, number bigint NOT NULL, json bytea NOT NULL,"
    " PRIMARY KEY (run, number));"
    /* Their sizes are what a user stored: compressing them would cost the writer more than the disk. */
    "ALTER TABLE rival.run_values ALTER json SET STORAGE EXTERNAL;"
    "CREATE TABLE rival.snapshots ("
    " run bigint PRIMARY KEY, seq bigint NOT NULL, state bytea NOT NULL);"
    "CREATE TABLE rival.logs ("
    " id bigint PRIMARY KEY, run bigint NOT NULL, at_ms bigint NOT NULL,"
    " level bigint NOT NULL, path bytea, step bytea, attempt bigint NOT NULL,"
    " message bytea NOT NULL, metadata bytea, kind bytea);"
    "CREATE INDEX logs_of_run ON rival.logs (run, id);"
    "CREATE INDEX logs_stream ON rival.logs (run, path) WHERE kind = 'stream';"
    /* Runs whose rows are still to be deleted. */
    "CREATE TABLE rival.forgotten (run bigint PRIMARY KEY);"
    /* For people with a shell. */
    "CREATE VIEW rival.run_list AS SELECT number, convert_from(id, 'UTF8') AS id,"
    " convert_from(workflow, 'UTF8') AS workflow, convert_from(status, 'UTF8') AS status,"
    " to_timestamp(created_ms / 1000.0) AS created, active,"
    " CASE WHEN wake_at_ms <> 0 THEN to_timestamp(wake_at_ms / 1000.0) END AS wakes FROM "
    "rival.runs;"
    "CREATE VIEW rival.turns AS SELECT j.seq, convert_from(r.id, 'UTF8') AS run,"
    " convert_from(j.facts, 'UTF8') AS facts FROM rival.journal j JOIN rival.runs r"
    " ON r.number = j.run;";

/* Members (ADR 0061). `ended`: 0 = it lives, else enum rv__store_orphan. A lane is deleted once no run is its own. */
static const char version_2[] =
    "ALTER TABLE rival.lanes ADD ended integer NOT NULL DEFAULT 0,"
    " ADD lease_ms integer NOT NULL DEFAULT 0,"
    " ADD renewed timestamptz NOT NULL DEFAULT now(),"
    " ADD place text NOT NULL DEFAULT '', ADD pid integer NOT NULL DEFAULT 0,"
    " ADD version text NOT NULL DEFAULT '';"
    "CREATE SEQUENCE rival.slots AS integer;"
    /* The slot of the member that has it in memory; 0: nobody has. */
    "ALTER TABLE rival.runs ADD owner integer NOT NULL DEFAULT 0;"
    "CREATE INDEX runs_owned ON rival.runs (owner, number) WHERE owner <> 0;"
    "CREATE INDEX runs_free ON rival.runs (number) WHERE owner = 0 AND active;"
    /* What members ask of each other. A crash of the server may empty it: who asked is told so. */
    "CREATE SEQUENCE rival.request_ids AS bigint;"
    "CREATE UNLOGGED TABLE rival.requests ("
    " id bigint PRIMARY KEY, slot integer NOT NULL, at timestamptz NOT NULL DEFAULT now(),"
    " taken boolean NOT NULL DEFAULT false, request bytea NOT NULL, answer bytea);"
    "CREATE INDEX requests_to ON rival.requests (slot, id) WHERE NOT taken;"
    "UPDATE rival.meta SET version = 2;";

/* Runs that change hands. `lacks`: it is nobody's because its owner could not continue it: the function that it waits
 * for, or '' if it is another thing; `handed`: who gave it up since it last went on. `floor`: programs that know at
 * least this schema may use the store, even if they know less than `version`; `knows`: what a member knows. */
static const char version_3[] = "ALTER TABLE rival.runs ADD lacks bytea, ADD handed integer[];"
                                "ALTER TABLE rival.lanes ADD knows integer NOT NULL DEFAULT 0;"
                                "ALTER TABLE rival.meta ADD floor integer NOT NULL DEFAULT 3;"
                                "UPDATE rival.meta SET version = 3;";

/* Where workers reach a member, "tls://HOST:PORT"; '': it does not say. */
static const char version_4[] = "ALTER TABLE rival.lanes ADD workers text NOT NULL DEFAULT '';"
                                "UPDATE rival.meta SET version = 4;";

/* How far those who follow the feed have come. `slot`: the member that has the mark, if it lives. */
static const char version_5[] =
    "CREATE TABLE rival.marks (name bytea PRIMARY KEY, seq bigint NOT NULL, idx bigint NOT NULL,"
    " slot integer NOT NULL) WITH (fillfactor = 50);"
    "UPDATE rival.meta SET version = 5;";

static const char *const steps[PG_SCHEMA_VERSION] = { version_1, version_2, version_3, version_4,
                                                      version_5 };

/* The version that is there, 0 if there is none, or negative; and the least that a program has to know (0: it must
 * know all of it). */
static int version_of(struct rv__pg_conn *conn, int *ret_floor, rv_error *err)
{
    /* From the catalog itself: to_regclass() may answer from a cache that has not heard yet of tables that another
     * process made while we waited for the lock. */
    PGresult *result = PQexec(conn->pg, "SELECT count(*) FROM pg_class c JOIN pg_namespace n"
                                        " ON n.oid = c.relnamespace WHERE n.nspname = 'rival'"
                                        " AND c.relname = 'meta'");
    int version = -1;
    *ret_floor = 0;
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        version = rv__pg_fail(conn, result, err);
    } else if (PQgetvalue(result, 0, 0)[0] == '0') {
        version = 0;
    } else {
        PQclear(result);
        result = PQexec(conn->pg, "SELECT version, (to_jsonb(m) ->> 'floor')::integer"
                                  " FROM rival.meta m"); /* floor: since version 3 */
        if (PQresultStatus(result) != PGRES_TUPLES_OK)
            version = rv__pg_fail(conn, result, err);
        else if (PQntuples(result) != 1)
            version = rv__fail(err, RV_EPARSE, "the store is damaged: rival.meta has %d rows",
                               PQntuples(result));
        else {
            version = (int)strtol(PQgetvalue(result, 0, 0), NULL, 10);
            *ret_floor = (int)strtol(PQgetvalue(result, 0, 1), NULL, 10);
        }
    }
    PQclear(result);
    return version;
}

/* May this program use a store of that schema? A newer one too, if its floor says so. */
static int check_floor(int version, int floor, rv_error *err)
{
    if (version <= PG_SCHEMA_VERSION || (floor > 0 && floor <= PG_SCHEMA_VERSION))
        return RV_OK;
    return rv__fail(err, RV_ESTATE,
                    "the store has schema %d, which needs a program that knows schema %d or later, "
                    "and this one knows %d: use a newer version of Rival",
                    version, floor > 0 ? floor : version, (int)PG_SCHEMA_VERSION);
}

/* Members that live and know too little would write what the new schema does not allow. */
static int check_members(struct rv__pg_conn *conn, int version, rv_error *err)
{
    char sql[400];
    if (version < 2)
        return RV_OK; /* it has no members yet */
    snprintf(sql, sizeof sql,
             "SELECT l.holder, l.version FROM rival.lanes l WHERE l.slot <> 0 AND l.ended = 0"
             " AND coalesce((to_jsonb(l) ->> 'knows')::integer, 2) < %d"
             " AND l.renewed + l.lease_ms * interval '1 ms' > clock_timestamp() LIMIT 1",
             (int)PG_SCHEMA_FLOOR);
    PGresult *result = PQexec(conn->pg, sql);
    int rc = RV_OK;
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        rc = rv__pg_fail(conn, result, err);
    else if (PQntuples(result) > 0)
        rc = rv__fail(
            err, RV_ESTATE,
            "%.100s is a member of version %.40s, which is too old to share the store with "
            "this program: stop it, or update it to the version between them first",
            PQgetvalue(result, 0, 0), PQgetvalue(result, 0, 1));
    PQclear(result);
    return rc;
}

/* Under the lock: somebody may have been quicker. */
static int upgrade(struct rv__pg_conn *conn, rv_error *err)
{
    int rc = rv__pg_exec(conn, "BEGIN; SELECT pg_advisory_xact_lock(" MIGRATION_LOCK ")", err);
    int floor = 0, version = rc == RV_OK ? version_of(conn, &floor, err) : rc;
    rc = version < 0 ? version : check_floor(version, floor, err);
    if (rc == RV_OK && version < PG_SCHEMA_VERSION)
        rc = check_members(conn, version, err);
    for (; rc == RV_OK && version < PG_SCHEMA_VERSION; version++)
        rc = rv__pg_exec(conn, steps[version], err);
    if (rc == RV_OK)
        rc = rv__pg_exec(conn, "COMMIT", err);
    else if (conn->pg != NULL)
        (void)rv__pg_exec(conn, "ROLLBACK", NULL); /* what failed before is what counts */
    return rc;
}

int rv__pg_migrate(struct rv__pg_conn *conn, bool may_write, rv_error *err)
{
    int floor, version = version_of(conn, &floor, err);
    if (version < 0)
        return version;
    if (version >= PG_SCHEMA_VERSION)
        return check_floor(version, floor, err);
    if (!may_write)
        return rv__fail(err, RV_ESTATE,
                        version == 0 ? "there is no store in this database yet"
                                     : "the store has an older schema: a writer upgrades it");
    return upgrade(conn, err);
}
