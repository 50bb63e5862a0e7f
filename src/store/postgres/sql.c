/* sql.c: every statement of the PostgreSQL store. Each is written for an index (schema.c), and is planned once
 * on a connection (conn.c: plan_cache_mode), whatever the tables held at that time.
 *
 * Statements of a writer take arrays, an element for each write. Where a write's run is new in the same
 * transaction, its number is not known to the client yet: it sends 0 and the id. A statement that finds
 * fewer rows than it was sent fails (1 / 0): the transaction must not go on. */
#include "store/postgres/postgres.h"

#define FINISHED "(completed_ms <> 0 AND NOT active AND wake_at_ms = 0)"

#define COLUMNS_BUT_INPUT                                                       \
    "r.number, r.id, r.workflow, r.version, r.status, r.input_key, r.error, "   \
    "r.failed_step, r.suspension, r.created_ms, r.started_ms, r.completed_ms, " \
    "r.wake_at_ms, r.active, r.waiting, r.rerun_of, "
#define COLUMNS COLUMNS_BUT_INPUT "r.input"

/* The number of a write's run. A subquery, not a join: the order of the rows is that of the arrays. */
#define RUN \
    "CASE WHEN w.run <> 0 THEN w.run ELSE (SELECT r.number FROM runs r WHERE r.id = w.id) END"
#define NUMBER_OF "(SELECT number FROM runs WHERE id = $1)"
#define LAST_SEQ(run) \
    "(SELECT j.seq FROM journal j WHERE j.run = " run " ORDER BY j.prev DESC LIMIT 1)"

/* `counts` changes by the rows of `d`: kind, status, n. Kind 0: runs of a status; 1: runs; 2: finished
 * ones; 3: those that wait for somebody. */
#define COUNT_INTO                                                                   \
    "INSERT INTO counts AS c (slot, kind, status, runs)"                             \
    " SELECT $1::integer, kind, status, sum(n)::bigint FROM d GROUP BY kind, status" \
    " HAVING sum(n) <> 0"                                                            \
    " ON CONFLICT (slot, kind, status) DO UPDATE SET runs = c.runs + EXCLUDED.runs"
#define COUNT_CHANGED                                                           \
    "d AS (SELECT 0 AS kind, status, -1 AS n FROM old WHERE status IS NOT NULL" \
    " UNION ALL SELECT 0, status, 1 FROM new WHERE status IS NOT NULL"          \
    " UNION ALL SELECT 2, ''::bytea, -1 FROM old WHERE finished"                \
    " UNION ALL SELECT 2, ''::bytea, 1 FROM new WHERE finished"                 \
    " UNION ALL SELECT 3, ''::bytea, -1 FROM old WHERE waiting"                 \
    " UNION ALL SELECT 3, ''::bytea, 1 FROM new WHERE waiting), c AS (" COUNT_INTO ")"
#define ALL_FOUND " SELECT 1 / (CASE WHEN count(*) = cardinality($2) THEN 1 ELSE 0 END) FROM new"

#define MEMBER                                        \
    "l.slot::bigint, l.holder, l.version, l.workers," \
    " (extract(epoch FROM l.since) * 1000)::bigint,"  \
    " (extract(epoch FROM l.renewed) * 1000)::bigint + l.lease_ms,"

/* A run at rest is nobody's. What its owner lacked counts no more once the run is written. */
#define OWNED " owner = CASE WHEN w.active THEN $1::integer ELSE 0 END, lacks = NULL, handed = NULL"
/* The same, of a run that its owner may give up (rv__store_touch.to). */
#define OWNED_OR_GIVEN                                                                            \
    " owner = CASE WHEN NOT w.active THEN 0 WHEN w.gives = 0 THEN $1::integer"                    \
    " ELSE coalesce((SELECT l.slot FROM lanes l WHERE l.slot = w.gives AND l.ended = 0), 0) END," \
    " lacks = CASE WHEN w.active AND w.gives < 0 THEN coalesce(w.lacks, '') END,"                 \
    " handed = CASE WHEN w.active AND w.gives > 0 THEN '{0}'::integer[]"                          \
    " WHEN w.active AND w.gives < 0"                                                              \
    " THEN array_append(array_remove(r.handed, $1::integer), $1::integer) END"

/* Lanes whose runs may be claimed. */
#define ENDED       "ARRAY(SELECT slot FROM lanes WHERE ended <> 0)"
/* The member itself, if it lives. If it is ended meanwhile, what it claims is claimed again by others. */
#define ALIVE       "me AS (SELECT slot FROM lanes WHERE slot = $1::integer AND ended = 0)"
#define CAN_RUN     " AND ($2::bigint <> 0 OR r.workflow = ANY ($3::bytea[]))"
/* The function that it waits for is there. $5: names of functions. */
#define OFFERED     " AND ($2::bigint <> 0 OR r.lacks = '' OR r.lacks = ANY ($5::bytea[]))"
#define TAKE(limit) " LIMIT " limit " FOR UPDATE SKIP LOCKED)"
#define CLAIMED                                                                         \
    " u AS (UPDATE runs r SET owner = $1::integer FROM c, me WHERE r.number = c.number" \
    " RETURNING r.number, r.id, r.wake_at_ms, c.owner)" SHOWN
#define SHOWN                                                             \
    " SELECT u.number, u.id, u.wake_at_ms, coalesce(l.ended, 0)::bigint," \
    " (SELECT count(*) FROM me) FROM (SELECT 1) one LEFT JOIN u ON true"  \
    " LEFT JOIN lanes l ON l.slot = u.owner"

/* They are read only: a member looks for them every few seconds. */
#define CLAIM_OWN(condition)                                                     \
    "WITH " ALIVE ", u AS (SELECT r.number, r.id, r.wake_at_ms, r.owner"         \
    " FROM runs r, me WHERE r.owner <> 0 AND r.active AND r.owner = $1::integer" \
    " AND r.number > $5" condition CAN_RUN " ORDER BY r.number LIMIT $4)" SHOWN

#define OUR_LANE \
    "me AS (SELECT slot FROM lanes WHERE slot = $1::integer AND epoch = $2 AND ended = 0),"
#define MARKS_SHOWN                                                              \
    " SELECT (SELECT count(*) FROM me), w.ord, u.seq, u.idx FROM (SELECT 1) one" \
    " LEFT JOIN (w JOIN u ON u.name = w.name) ON true"
#define HAD_BY_A_MEMBER \
    "EXISTS (SELECT 1 FROM lanes l WHERE l.slot = m.slot AND l.slot <> 0 AND l.ended = 0)"

#define LIST_OF(condition)                                                          \
    "SELECT " COLUMNS_BUT_INPUT                                                     \
    "CASE WHEN $5 > 0 THEN substring(r.input FROM 1 FOR $5) END FROM runs r WHERE " \
    "(r.created_ms, r.id) < ($1, $2) AND r.created_ms >= $3" condition              \
    " ORDER BY r.created_ms DESC, r.id DESC LIMIT $4"

#define LOG_COLUMNS "l.at_ms, l.level, l.path, l.step, l.attempt, l.message, l.metadata, l.kind"
#define LOG_WANTED \
    " AND l.level >= $3 AND ($4::bytea IS NULL OR l.step = $4) ORDER BY l.id LIMIT $5"

const char *const rv__pg_sql_text[PG_SQLS] = {
    /* slot integer, epoch, batch */
    [PG_GUARD] = "WITH u AS (UPDATE lanes SET batch = $3, renewed = clock_timestamp()"
                 " WHERE slot = $1::integer AND epoch = $2"
                 " AND batch = $3::bigint - 1 RETURNING 1) SELECT 1 / (SELECT count(*) FROM u)",
    /* class: see feed() in read.c */
    [PG_PLACE] = "SELECT pg_advisory_xact_lock_shared($1::integer,"
                 " (CASE WHEN v > 2147483647 THEN v - 4294967296 ELSE v END)::integer)"
                 " FROM (SELECT CASE WHEN is_called THEN last_value ELSE 0 END & 4294967295 AS v"
                 " FROM seqs) s",
    [PG_FIND_RUNS] = "SELECT w.ord, r.number, coalesce(" LAST_SEQ(
        "r.number") ", 0)"
                    " FROM unnest($1::bytea[]) WITH ORDINALITY w(id, ord)"
                    " JOIN runs r ON r.id = w.id",
    [PG_DEFINE] = "INSERT INTO definitions SELECT * FROM unnest($1::bytea[], $2::bytea[])"
                  " ON CONFLICT DO NOTHING",
    [PG_ADD_RUNS] =
        "WITH new AS (INSERT INTO runs (number, id, workflow, version, status, input, input_key,"
        " error, failed_step, suspension, created_ms, started_ms, completed_ms, wake_at_ms, active,"
        " waiting, rerun_of, owner)"
        " SELECT nextval('numbers'), w.*, CASE WHEN w.active THEN $1::integer ELSE 0 END"
        " FROM unnest($2::bytea[], $3::bytea[], $4::bytea[],"
        " $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[],"
        " $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::boolean[], "
        "$16::boolean[], $17::bytea[]) w(id, workflow, version, status, input, input_key, error,"
        " failed_step, suspension, created_ms, started_ms, completed_ms, wake_at_ms, active,"
        " waiting, rerun_of)"
        " RETURNING number, status, " FINISHED " AS finished, waiting),"
        " d AS (SELECT 0 AS kind, status, 1 AS n FROM new WHERE status IS NOT NULL"
        " UNION ALL SELECT 1, ''::bytea, 1 FROM new"
        " UNION ALL SELECT 2, ''::bytea, 1 FROM new WHERE finished"
        " UNION ALL SELECT 3, ''::bytea, 1 FROM new WHERE waiting), c AS (" COUNT_INTO ")"
        " SELECT number FROM new",
    [PG_SET_RUNS] =
        "WITH w AS (SELECT * FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[],"
        " $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[], $11::bigint[],"
        " $12::bigint[], $13::bigint[], $14::bigint[], $15::boolean[], $16::boolean[], "
        "$17::bytea[]) w(number, workflow, version,"
        " status, input, input_key, error, failed_step, suspension, created_ms, started_ms,"
        " completed_ms, wake_at_ms, active, waiting, rerun_of)),"
        " old AS (SELECT r.status, " FINISHED " AS finished, r.waiting FROM runs r"
        " WHERE r.number = ANY ($2)),"
        " new AS (UPDATE runs r SET workflow = w.workflow, version = w.version, status = w.status,"
        " input = w.input, input_key = w.input_key, error = w.error, failed_step = w.failed_step,"
        " suspension = w.suspension, created_ms = w.created_ms, started_ms = w.started_ms,"
        " completed_ms = w.completed_ms, wake_at_ms = w.wake_at_ms, active = w.active,"
        " waiting = w.waiting, rerun_of = w.rerun_of," OWNED
        " FROM w WHERE r.number = w.number RETURNING "
        "r.status, (r.completed_ms <> 0 AND NOT "
        "r.active"
        " AND r.wake_at_ms = 0) AS finished, r.waiting), " COUNT_CHANGED ALL_FOUND,
    [PG_TOUCH_RUNS] =
        "WITH w AS (SELECT * FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[],"
        " $6::bytea[], $7::bigint[], $8::bigint[], $9::boolean[], $10::boolean[], $11::bigint[],"
        " $12::bytea[]) w(number, status, error,"
        " failed_step, suspension, completed_ms, wake_at_ms, active, waiting, gives, lacks)),"
        " old AS (SELECT r.status, " FINISHED " AS finished, r.waiting FROM runs r"
        " WHERE r.number = ANY ($2)),"
        " new AS (UPDATE runs r SET status = w.status, error = w.error, failed_step = "
        "w.failed_step,"
        " suspension = w.suspension, completed_ms = w.completed_ms, wake_at_ms = w.wake_at_ms,"
        " active = w.active, waiting = w.waiting," OWNED_OR_GIVEN
        " FROM w WHERE r.number = w.number RETURNING "
        "r.status,"
        " (r.completed_ms <> 0 AND NOT r.active AND r.wake_at_ms = 0) AS finished, "
        "r.waiting), " COUNT_CHANGED ALL_FOUND,
    [PG_ADD_LOGS] =
        "INSERT INTO logs (id, run, at_ms, level, path, step, attempt, message, metadata, kind)"
        " SELECT nextval('seqs'), " RUN ", w.at_ms, w.level, w.path, w.step, w.attempt, w.message,"
        " w.metadata, w.kind FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bigint[], "
        "$5::bytea[],"
        " $6::bytea[], $7::bigint[], $8::bytea[], $9::bytea[], $10::bytea[]) w(run, id, at_ms, "
        "level,"
        " path, step, attempt, message, metadata, kind)",
    [PG_DROP_STREAM] = "DELETE FROM logs l USING (SELECT " RUN " AS run, w.path FROM"
                       " unnest($1::bigint[], $2::bytea[], $3::bytea[]) w(run, id, path)) x"
                       " WHERE l.run = x.run AND l.path = x.path AND l.kind = 'stream'",
    [PG_ADD_JOURNAL] = "INSERT INTO journal (seq, run, prev, facts) SELECT nextval('seqs'), " RUN
                       ", w.prev, w.facts FROM unnest($1::bigint[], $2::bytea[], $3::bigint[],"
                       " $4::bytea[]) w(run, id, prev, facts) RETURNING seq",
    [PG_ADD_RESULTS] = "INSERT INTO results (run, key, idx, json) SELECT " RUN ", w.key, w.idx,"
                       " w.json FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[],"
                       " $5::bytea[]) w(run, id, key, idx, json)",
    [PG_SET_RESULTS_SEQS] = "INSERT INTO results_seqs (run, seq) SELECT x.run, coalesce(" LAST_SEQ(
        "x.run") ", 0)"
                 " FROM (SELECT " RUN " AS run FROM unnest($1::bigint[], $2::bytea[]) w(run, id)) x"
                 " ON CONFLICT (run) DO UPDATE SET seq = EXCLUDED.seq",
    [PG_ADD_VALUES] = "INSERT INTO run_values (run, number, json) SELECT " RUN ", w.number, w.json"
                      " FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bytea[])"
                      " w(run, id, number, json)",
    [PG_SET_SNAPSHOTS] = "INSERT INTO snapshots (run, seq, state) SELECT x.run, coalesce(" LAST_SEQ(
        "x.run") ", 0),"
                 " x.state FROM (SELECT " RUN
                 " AS run, w.state FROM unnest($1::bigint[], $2::bytea[],"
                 " $3::bytea[]) w(run, id, state)) x"
                 " ON CONFLICT (run) DO UPDATE SET seq = EXCLUDED.seq, state = EXCLUDED.state",

    [PG_FORGETTABLE] = "SELECT r.number, r.id, " FINISHED
                       " FROM runs r WHERE r.id = ANY ($1::bytea[])"
                       " ORDER BY r.number FOR UPDATE",
    [PG_FORGET_RUNS] =
        "WITH w AS (SELECT unnest($2::bigint[]) AS run),"
        " ends AS (SELECT max(greatest(coalesce(" LAST_SEQ(
            "w.run") ", 0),"
                     " coalesce((SELECT l.id FROM logs l WHERE l.run = w.run ORDER BY l.id DESC "
                     "LIMIT 1), 0)))"
                     " AS seq FROM w),"
                     " new AS (DELETE FROM runs r WHERE r.number = ANY ($2) RETURNING r.number, "
                     "r.status,"
                     " " FINISHED " AS finished, r.waiting),"
                     " s AS (DELETE FROM snapshots s WHERE s.run = ANY ($2)),"
                     " rs AS (DELETE FROM results_seqs s WHERE s.run = ANY ($2)),"
                     " f AS (INSERT INTO forgotten SELECT number FROM new),"
                     " m AS (UPDATE meta SET forgotten_seq = greatest(forgotten_seq, (SELECT seq "
                     "FROM ends))),"
                     " d AS (SELECT 0 AS kind, status, -1 AS n FROM new WHERE status IS NOT NULL"
                     " UNION ALL SELECT 1, ''::bytea, -1 FROM new"
                     " UNION ALL SELECT 2, ''::bytea, -1 FROM new WHERE finished"
                     " UNION ALL SELECT 3, ''::bytea, -1 FROM new WHERE waiting), c AS "
                     "(" COUNT_INTO ")" ALL_FOUND,
    [PG_NEXT_FORGOTTEN] = "SELECT run FROM forgotten ORDER BY run LIMIT 1",
    [PG_DROP_JOURNAL] = "DELETE FROM journal WHERE run = $1 AND prev = ANY (ARRAY("
                        "SELECT prev FROM journal WHERE run = $1 ORDER BY prev LIMIT $2))",
    [PG_DROP_RESULTS] = "DELETE FROM results WHERE ctid = ANY (ARRAY("
                        "SELECT ctid FROM results WHERE run = $1 LIMIT $2))",
    [PG_DROP_VALUES] = "DELETE FROM run_values WHERE ctid = ANY (ARRAY("
                       "SELECT ctid FROM run_values WHERE run = $1 LIMIT $2))",
    [PG_DROP_LOGS] = "DELETE FROM logs WHERE ctid = ANY (ARRAY("
                     "SELECT ctid FROM logs WHERE run = $1 LIMIT $2))",
    [PG_DROP_FORGOTTEN] = "DELETE FROM forgotten WHERE run = $1",

    [PG_DEFINITION] = "SELECT plan FROM definitions WHERE hash = $1",
    [PG_RUN] = "SELECT " COLUMNS " FROM runs r WHERE r.id = $1",
    [PG_SNAPSHOT] = "SELECT seq, state FROM snapshots WHERE run = " NUMBER_OF,
    [PG_VALUE] = "SELECT number, json FROM run_values WHERE run = " NUMBER_OF " AND number = $2",
    [PG_VALUES] = "SELECT number, json FROM run_values WHERE run = " NUMBER_OF " ORDER BY number",
    /* The row whose `prev` is the last one up to $2 is the only one that may be too early. */
    [PG_JOURNAL] = "SELECT j.seq, j.facts FROM journal j WHERE j.run = " NUMBER_OF
                   " AND j.seq > $2 AND j.prev >= coalesce((SELECT k.prev FROM journal k WHERE "
                   "k.run = " NUMBER_OF
                   " AND k.prev <= $2 ORDER BY k.prev DESC LIMIT 1), 0) ORDER BY j.prev",
    [PG_RESULTS] = "SELECT idx, json FROM results WHERE run = " NUMBER_OF
                   " AND key = $2 AND idx >= $3 ORDER BY idx LIMIT $4",
    [PG_RESULTS_SEQ] = "SELECT seq FROM results_seqs WHERE run = " NUMBER_OF,
    [PG_ACTIVE] = "SELECT " COLUMNS " FROM runs r WHERE r.active AND r.number > $1"
                  " ORDER BY r.number LIMIT $2",
    [PG_DUE] = "SELECT " COLUMNS " FROM runs r WHERE r.wake_at_ms <> 0 AND r.wake_at_ms <= $1"
               " AND (r.wake_at_ms, r.number) > ($2, $3) ORDER BY r.wake_at_ms, r.number LIMIT $4",
    [PG_NEXT_WAKE] = "SELECT r.wake_at_ms FROM runs r WHERE r.wake_at_ms <> 0"
                     " AND r.wake_at_ms > $1 ORDER BY r.wake_at_ms LIMIT 1",
    [PG_LAST_GIVEN] = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM seqs",
    [PG_PLACES] =
        "SELECT l.objid::bigint FROM pg_locks l WHERE l.locktype = 'advisory'"
        " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND l.classid::bigint = $1 AND l.objsubid = 2",
    [PG_FEED] = "SELECT j.seq, r.id, j.facts FROM journal j JOIN runs r ON r.number = j.run"
                " WHERE j.seq > $1 AND j.seq <= $2 ORDER BY j.seq LIMIT $3",
    [PG_LIST] = LIST_OF(""),
    [PG_LIST_WORKFLOW] = LIST_OF(" AND r.workflow = $6"),
    [PG_LIST_STATUS] = LIST_OF(" AND r.status = $6"),
    [PG_LIST_WAITING] = LIST_OF(" AND r.waiting"),
    [PG_LIST_RERUNS] = LIST_OF(" AND r.rerun_of = $6"),
    [PG_LOGS] = "SELECT l.id, r.id, " LOG_COLUMNS " FROM logs l JOIN runs r ON r.number = l.run"
                " WHERE l.id > $1 AND l.id <= $2" LOG_WANTED,
    [PG_LOGS_OF_RUN] = "SELECT l.id, $1::bytea, " LOG_COLUMNS
                       " FROM logs l WHERE l.run = " NUMBER_OF " AND l.id > $2" LOG_WANTED,
    [PG_COUNTS] = "SELECT status, sum(runs)::bigint FROM counts WHERE kind = 0 GROUP BY status"
                  " HAVING sum(runs) > 0 ORDER BY status",
    [PG_FINISHED] =
        "SELECT " COLUMNS_BUT_INPUT "NULL::bytea FROM runs r WHERE r.completed_ms <> 0"
        " AND NOT r.active AND r.wake_at_ms = 0 AND (r.completed_ms, r.number) > ($1, $2)"
        " ORDER BY r.completed_ms, r.number LIMIT $3",
    [PG_OLDEST_WAITING] = "SELECT " COLUMNS_BUT_INPUT "NULL::bytea FROM runs r WHERE r.waiting"
                          " ORDER BY r.created_ms, r.id LIMIT $1",
    [PG_USAGE] =
        "SELECT (SELECT sum(runs)::bigint FROM counts WHERE kind = 1),"
        " (SELECT sum(runs)::bigint FROM counts WHERE kind = 2),"
        " (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c"
        " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'),"
        " greatest((SELECT max(seq) FROM journal WHERE seq <= $1),"
        " (SELECT max(id) FROM logs WHERE id <= $1), least(m.forgotten_seq, $1)),"
        " m.forgotten_seq, (SELECT sum(runs)::bigint FROM counts WHERE kind = 3) FROM meta m",
    [PG_HISTORY] =
        "SELECT l.id, $1::bytea, " LOG_COLUMNS
        ", true, NULL::bytea FROM logs l WHERE l.run = " NUMBER_OF
        " UNION ALL SELECT j.seq, $1, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, false, j.facts"
        " FROM journal j WHERE j.run = " NUMBER_OF " ORDER BY 1",

    /* ---- members */
    /* slot integer, epoch, where workers reach it */
    [PG_RENEW] = "UPDATE lanes SET renewed = clock_timestamp(), workers = convert_from($3, 'UTF8')"
                 " WHERE slot = $1::integer AND epoch = $2 AND ended = 0 RETURNING 1",
    /* slot integer, epoch, how */
    [PG_END_LANE] = "UPDATE lanes SET ended = $3::bigint::integer, epoch = epoch + 1"
                    " WHERE slot = $1::integer AND epoch = $2 AND ended = 0"
                    " RETURNING pg_notify('rival_members', '')::text",
    /* how. A lane that a transaction holds is alive. */
    [PG_EXPIRE] =
        "UPDATE lanes SET ended = $1::bigint::integer, epoch = epoch + 1 WHERE slot IN ("
        "SELECT slot FROM lanes WHERE slot <> 0 AND ended = 0"
        " AND renewed + lease_ms * interval '1 ms' < clock_timestamp() FOR UPDATE SKIP LOCKED)"
        " RETURNING slot::bigint",
    /* place */
    [PG_NEIGHBOURS] =
        "SELECT slot::bigint, epoch, pid::bigint FROM lanes WHERE slot <> 0 AND ended = 0"
        " AND place = convert_from($1, 'UTF8')",
    /* Claimed, and never written: they are at rest, and nobody's. */
    [PG_FREE_RUNS] =
        "UPDATE runs SET owner = 0 WHERE number = ANY (ARRAY(SELECT r.number FROM runs r"
        " WHERE r.owner <> 0 AND NOT r.active AND r.owner = ANY (" ENDED ")" TAKE("1000") ")",
    /* Not at once: a claim of theirs may be on its way. Their counts go to lane 0. */
    [PG_DROP_LANES] =
        "WITH gone AS (SELECT l.slot FROM lanes l WHERE l.ended <> 0"
        " AND l.renewed < clock_timestamp() - interval '1 minute' AND NOT EXISTS"
        " (SELECT 1 FROM runs r WHERE r.owner <> 0 AND r.owner = l.slot) FOR UPDATE SKIP LOCKED),"
        " x AS (DELETE FROM lanes WHERE slot IN (SELECT slot FROM gone)),"
        " k AS (DELETE FROM counts WHERE slot IN (SELECT slot FROM gone)"
        " RETURNING kind, status, runs)"
        " INSERT INTO counts AS c (slot, kind, status, runs)"
        " SELECT 0, kind, status, sum(runs)::bigint FROM k GROUP BY kind, status"
        " ON CONFLICT (slot, kind, status) DO UPDATE SET runs = c.runs + EXCLUDED.runs",
    /* slot integer, any, workflows, limit, functions */
    [PG_CLAIM_ACTIVE] =
        "WITH " ALIVE
        ", a AS (SELECT r.number, r.owner FROM runs r WHERE r.owner = 0 AND r.active" CAN_RUN
        " AND (r.lacks IS NULL OR (NOT $1::integer = ANY (r.handed)" OFFERED "))"
        " ORDER BY r.number" TAKE(
            "$4") ","
                  " b AS (SELECT r.number, r.owner FROM runs r WHERE r.owner <> 0 AND r.active"
                  " AND r.owner = ANY (" ENDED ")" CAN_RUN TAKE(
                      "$4") ","
                            " c AS (SELECT * FROM a UNION ALL SELECT * FROM b)," CLAIMED,
    /* slot integer, any, workflows, limit, after number: those that are its own already; that others gave to it */
    [PG_CLAIM_OWN] = CLAIM_OWN(""),
    [PG_CLAIM_GIVEN] = CLAIM_OWN(" AND r.handed IS NOT NULL"),
    /* slot integer, any, workflows, limit, functions, after number: those that somebody gave up */
    [PG_CLAIM_ANEW] = "WITH " ALIVE
                      ", c AS (SELECT r.number, r.owner FROM runs r WHERE r.owner = 0 AND r.active"
                      " AND r.lacks IS NOT NULL AND r.number > $6" CAN_RUN OFFERED
                      " ORDER BY r.number" TAKE("$4") "," CLAIMED,
    /* slot integer, any, workflows, limit, due_ms, after at_ms, number */
    [PG_CLAIM_DUE] = "WITH " ALIVE
                     ", c AS (SELECT r.number, r.owner FROM runs r WHERE r.wake_at_ms <> 0"
                     " AND r.wake_at_ms <= $5 AND (r.wake_at_ms, r.number) > ($6, $7)"
                     " AND (r.owner = 0 OR r.owner = $1::integer OR r.owner = ANY (" ENDED
                     "))" CAN_RUN " ORDER BY r.wake_at_ms, r.number" TAKE("$4") "," CLAIMED,
    /* slot integer, id. Its owner before, what has become of that one, and whether we live. */
    [PG_CLAIM_RUN] =
        "WITH " ALIVE ", c AS (SELECT r.number, r.owner FROM runs r WHERE r.id = $2 FOR UPDATE),"
        " o AS (SELECT c.number, c.owner, (SELECT l.ended FROM lanes l WHERE l.slot = c.owner) AS "
        "ended"
        " FROM c),"
        " u AS (UPDATE runs r SET owner = $1::integer FROM o, me WHERE r.number = o.number"
        " AND r.owner <> $1::integer AND (o.owner = 0 OR o.ended <> 0) RETURNING 1)"
        " SELECT o.owner::bigint, coalesce(o.ended, 0)::bigint, (SELECT count(*) FROM me),"
        " (SELECT count(*) FROM u) FROM o",
    [PG_OWNER] = "SELECT r.owner::bigint, r.owner = 0 AND r.lacks IS NOT NULL FROM runs r"
                 " WHERE r.id = $1",
    [PG_MEMBERS] = "SELECT " MEMBER
                   " (SELECT count(*) FROM runs r WHERE r.owner <> 0 AND r.owner = l.slot)"
                   " FROM lanes l WHERE l.slot <> 0 AND l.ended = 0 ORDER BY l.slot",
    [PG_REACHABLE] = "SELECT " MEMBER " 0::bigint FROM lanes l WHERE l.slot <> 0 AND l.ended = 0"
                     " AND l.workers <> '' ORDER BY l.slot",
    /* to integer, request */
    [PG_ASK] =
        "INSERT INTO requests (id, slot, request) SELECT nextval('request_ids'), l.slot, $2::bytea"
        " FROM lanes l WHERE l.slot = $1::integer AND l.ended = 0 RETURNING id,"
        " pg_notify('rival_members', slot::text)::text",
    /* slot integer, limit */
    [PG_ASKED] = "UPDATE requests SET taken = true WHERE id = ANY (ARRAY(SELECT id FROM requests"
                 " WHERE slot = $1::integer AND NOT taken ORDER BY id" TAKE(
                     "$2") ")"
                           " RETURNING id, request",
    [PG_ANSWER] = "UPDATE requests SET answer = $2 WHERE id = $1",
    [PG_ANSWERED] =
        "WITH d AS (DELETE FROM requests WHERE id = $1 AND answer IS NOT NULL"
        " RETURNING answer) SELECT (SELECT answer FROM d),"
        " (SELECT count(*) FROM requests q JOIN lanes l ON l.slot = q.slot AND l.ended = 0"
        " WHERE q.id = $1)",
    [PG_WITHDRAW] = "DELETE FROM requests WHERE id = $1 RETURNING taken, answer",
    /* slot integer, epoch, names, seqs, indexes. A sole writer has all marks. Whether we live; what we have, in order. */
    [PG_TAKE_MARKS] = "WITH " OUR_LANE
                      " w AS (SELECT * FROM unnest($3::bytea[], $4::bigint[], $5::bigint[])"
                      " WITH ORDINALITY w(name, seq, idx, ord)), u AS (INSERT INTO marks AS m "
                      "(name, seq, idx, slot)"
                      " SELECT w.name, w.seq, w.idx, me.slot FROM w, me ORDER BY w.name"
                      " ON CONFLICT (name) DO UPDATE SET slot = $1::integer WHERE $1::integer = 0"
                      " OR m.slot = $1::integer OR NOT " HAD_BY_A_MEMBER
                      " RETURNING name, seq, idx)" MARKS_SHOWN,
    /* The same, and which of them are to go. */
    [PG_MOVE_MARKS] =
        "WITH " OUR_LANE
        " w AS (SELECT * FROM unnest($3::bytea[], $4::bigint[], $5::bigint[], $6::boolean[])"
        " WITH ORDINALITY w(name, seq, idx, gone, ord)),"
        " d AS (DELETE FROM marks m USING w, me WHERE m.name = w.name AND m.slot = me.slot"
        " AND w.gone), u AS (UPDATE marks m SET seq = w.seq, idx = w.idx FROM w, me"
        " WHERE m.name = w.name AND m.slot = me.slot AND NOT w.gone"
        " RETURNING m.name, m.seq, m.idx)" MARKS_SHOWN,
    [PG_MARKS] = "SELECT m.name, m.seq, m.idx, NOT " HAD_BY_A_MEMBER
                 " FROM marks m ORDER BY m.name",
    [PG_DROP_REQUESTS] = "DELETE FROM requests WHERE at < now() - interval '10 minutes'",
};
