/* postgres.h: the PostgreSQL store from the inside: what its files share. Outsiders use store/store.h.
 *
 *   postgres.c  opening, closing, the table of functions    schema.c  the tables, and how they came to be
 *   conn.c      a connection: made, lost, made again        sql.c     every statement
 *   params.c    what goes into a statement, in binary       read.c    every reading function
 *   commit.c    transactions, their outcomes, and what      write.c   one batch of writes, as statements
 *               is done when an answer is lost              whole.c   a run as of one moment; imports
 *   forget.c    forgetting runs                             member.c  leases, claims, requests of members
 *
 * A handle has one connection, and belongs to one thread at a time: there is no lock. ADR 0034 tells the
 * design: the feed, the fence, and lost answers. */
#ifndef RV_STORE_POSTGRES_POSTGRES_H
#define RV_STORE_POSTGRES_POSTGRES_H

#include <libpq-fe.h>

#include "store/store.h"

/* Every statement, prepared on a connection when it is first needed there: sql.c has their texts. */
enum rv__pg_sql {
    /* of a writer's transaction */
    PG_GUARD,
    PG_PLACE,
    PG_FIND_RUNS,
    PG_DEFINE,
    PG_ADD_RUNS,
    PG_SET_RUNS,
    PG_TOUCH_RUNS,
    PG_ADD_LOGS,
    PG_DROP_STREAM,
    PG_ADD_JOURNAL,
    PG_ADD_RESULTS,
    PG_SET_RESULTS_SEQS,
    PG_ADD_VALUES,
    PG_SET_SNAPSHOTS,
    /* of forgetting */
    PG_FORGETTABLE,
    PG_FORGET_RUNS,
    PG_NEXT_FORGOTTEN,
    PG_DROP_JOURNAL,
    PG_DROP_RESULTS,
    PG_DROP_VALUES,
    PG_DROP_LOGS,
    PG_DROP_FORGOTTEN,
    /* reading */
    PG_DEFINITION,
    PG_RUN,
    PG_SNAPSHOT,
    PG_VALUE,
    PG_VALUES,
    PG_JOURNAL,
    PG_RESULTS,
    PG_RESULTS_SEQ,
    PG_ACTIVE,
    PG_DUE,
    PG_NEXT_WAKE,
    PG_LAST_GIVEN,
    PG_PLACES,
    PG_FEED,
    PG_LIST,
    PG_LIST_WORKFLOW,
    PG_LIST_STATUS,
    PG_LIST_WAITING,
    PG_LIST_RERUNS,
    PG_LOGS,
    PG_LOGS_OF_RUN,
    PG_COUNTS,
    PG_FINISHED,
    PG_OLDEST_WAITING,
    PG_USAGE,
    PG_HISTORY,
    /* of members */
    PG_RENEW,
    PG_END_LANE,
    PG_EXPIRE,
    PG_NEIGHBOURS,
    PG_FREE_RUNS,
    PG_DROP_LANES,
    PG_CLAIM_ACTIVE,
    PG_CLAIM_OWN,
    PG_CLAIM_GIVEN,
    PG_CLAIM_ANEW,
    PG_CLAIM_DUE,
    PG_CLAIM_RUN,
    PG_OWNER,
    PG_MEMBERS,
    PG_REACHABLE,
    PG_ASK,
    PG_ASKED,
    PG_ANSWER,
    PG_ANSWERED,
    PG_WITHDRAW,
    PG_DROP_REQUESTS,
    PG_TAKE_MARKS,
    PG_MOVE_MARKS,
    PG_MARKS,
    PG_SQLS
};

extern const char *const rv__pg_sql_text[PG_SQLS];

enum {
    PG_SCHEMA_VERSION = 5,
    PG_SCHEMA_FLOOR = 3, /* programs that know less cannot share the store with this one */
    PG_PARAMS_MAX = 20,
    PG_PIPE_MAX = 1024,      /* statements in one pipeline, preparations included */
    PG_TEXT_MAX = 256 << 20, /* bytes of a text: a message of PostgreSQL's protocol ends at 1 GB */
    PG_STATEMENT_BYTES = 32 << 20, /* of texts in one statement: then the next begins */
    PG_KNOWN_RUNS = 1 << 16,       /* a power of two */
    PG_SCAN_MAX = 20000,           /* rows that a list looks at in a call */
    PG_LEASE_MS = 10000,
};

/* What goes into a statement, in binary. Borrowed texts stay where they are; arrays are built in `arrays`. */
struct rv__pg_params {
    int count;
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX];
    char ints[PG_PARAMS_MAX][8];
    struct rv__buf arrays[PG_PARAMS_MAX];
    uint32_t elements[PG_PARAMS_MAX]; /* of each array, so far */
};

/* A connection, and what is known of it. */
struct rv__pg_conn {
    PGconn *pg;     /* NULL: there is none at present */
    char *conninfo; /* as it was given */
    bool writes;    /* target_session_attrs is read-write, if nothing else was asked for */
    bool broken;    /* it is of no use any more, and to be dropped */
    bool listens;   /* for what members tell each other */
    bool retries;   /* a reading whose connection was lost is begun again, once */
    bool prepared[PG_SQLS];
    int32_t class_id; /* of our advisory locks: the oid of the schema */
    int backend;      /* the pid of the server's process, kept when the connection is lost … */
    char started[48]; /* … with when it started, since pids come again */
    int64_t retry_at_ms, back_off_ms; /* monotonic: nobody tries before then */
    rv_error why;                     /* of the last try */
    /* The pipeline at hand: what was sent, in order; PG_SQLS stands for what has no answer of interest. */
    enum rv__pg_sql sent[PG_PIPE_MAX];
    size_t sent_count;
};

/* How a pipeline went. */
struct rv__pg_answer {
    bool lost;        /* the connection: nobody knows what was done */
    size_t failed_at; /* the place of the first statement that failed; SIZE_MAX: none did */
    enum rv__pg_sql failed;
    char state[6];  /* its SQLSTATE */
    char table[64]; /* of a violated constraint */
    char detail[256];
    rv_error why; /* in words */
};

/* Where the journal of a run ends: the writer knows it of the runs it has met lately. */
struct rv__pg_known {
    uint64_t number; /* 0: an empty place */
    uint64_t last_seq;
};

struct rv__pg_writer {
    int32_t slot;  /* of the table `lanes` */
    int64_t epoch; /* of the lane, since we have it */
    int64_t batch; /* of the last transaction in it */
    bool fenced;   /* another process has the lane: nothing is written any more */
    bool unsure;   /* whether batch `unsure_batch` is on disk: the answer was lost */
    int64_t unsure_batch;
    uint64_t unsure_mark; /* of what was in it */
    struct rv__pg_known *known;
    struct rv__store_stats stats;
};

struct rv__pg {
    struct rv__store store; /* first */
    struct rv__pg_conn conn;
    struct rv__pg_params params;
    size_t max_bytes;
    bool read_only;
    int64_t lease_ms;            /* of a member; 0: it is none */
    char place[160];             /* where the pids of members mean the same as here; "": nowhere */
    bool joining;                /* a new lane is about to be had */
    struct rv__pg_writer writer; /* unused by handles that only read */
};

/* ---- conn.c */

int rv__pg_conn_init(struct rv__pg_conn *conn, const char *conninfo, bool writes, rv_error *err);
void rv__pg_conn_done(struct rv__pg_conn *conn);
void rv__pg_conn_drop(struct rv__pg_conn *conn); /* it is lost, or of no use */

/* Connect, if there is no connection: at most once a back-off. A connection that was just made has nothing
 * of ours but the session's settings.   Errors: RV_EINVAL (the text is none), RV_ESTORE. */
int rv__pg_connect(struct rv__pg_conn *conn, rv_error *err);

/* The server's process that had our last connection is to end, if it has not noticed yet that nobody is there. */
void rv__pg_end_old_backend(struct rv__pg_conn *conn, int pid, const char *started);

/* Simple statements, without a result.   Errors: RV_ESTORE; a lost connection is dropped. */
int rv__pg_exec(struct rv__pg_conn *conn, const char *sql, rv_error *err);

/* One statement and its first result, NULL on failure. Give it to PQclear(). */
PGresult *rv__pg_query(struct rv__pg_conn *conn, enum rv__pg_sql sql,
                       const struct rv__pg_params *params, rv_error *err);

/* Many statements, one trip. */
int rv__pg_pipe_begin(struct rv__pg_conn *conn, rv_error *err);
void rv__pg_pipe_send(struct rv__pg_conn *conn, enum rv__pg_sql sql,
                      const struct rv__pg_params *params);
void rv__pg_pipe_text(struct rv__pg_conn *conn, const char *sql);
typedef void rv__pg_on_result(void *arg, enum rv__pg_sql sql, const PGresult *result);
void rv__pg_pipe_end(struct rv__pg_conn *conn, rv__pg_on_result *on_result, void *arg,
                     struct rv__pg_answer *ret);

/* The rows of a statement, one at a time. A visitor's answer that is not RV_OK ends it. If the connection was lost
 * before the first row came, it is made again once. */
typedef int rv__pg_visit(void *arg, const PGresult *row, rv_error *err);
int rv__pg_rows(struct rv__pg_conn *conn, enum rv__pg_sql sql, const struct rv__pg_params *params,
                rv__pg_visit *visit, void *arg, rv_error *err);

/* What a failed statement means: RV_EPARSE (damage), RV_EGONE (no tables) or RV_ESTORE. */
int rv__pg_fail(struct rv__pg_conn *conn, const PGresult *result, rv_error *err);
bool rv__pg_state_is(const char *state, const char *prefix);

/* ---- params.c */

void rv__pg_params_init(struct rv__pg_params *params);
void rv__pg_params_done(struct rv__pg_params *params);
void rv__pg_params_reset(struct rv__pg_params *params); /* keeps the memory, unless it is much */
void rv__pg_add_int(struct rv__pg_params *params, int64_t n);           /* bigint */
void rv__pg_add_int4(struct rv__pg_params *params, int32_t n);          /* integer */
void rv__pg_add_str(struct rv__pg_params *params, struct rv__str text); /* bytea; none is NULL */
enum rv__pg_type { PG_INT8, PG_INT4, PG_BOOL, PG_BYTEA };
/* An array; its place among the parameters is returned, for rv__pg_put_*(). */
int rv__pg_add_array(struct rv__pg_params *params, enum rv__pg_type type);
void rv__pg_put_int(struct rv__pg_params *params, int array, int64_t n);
void rv__pg_put_bool(struct rv__pg_params *params, int array, bool yes);
void rv__pg_put_str(struct rv__pg_params *params, int array, struct rv__str text);
/* The arrays are whole.   Errors: RV_ENOMEM. */
int rv__pg_params_ready(struct rv__pg_params *params, rv_error *err);

int64_t rv__pg_int(const PGresult *row, int column); /* bigint; NULL is 0 */
int64_t rv__pg_int_at(const PGresult *result, int row, int column);
bool rv__pg_bool(const PGresult *row, int column);
struct rv__str rv__pg_str(const PGresult *row, int column); /* NULL is none */
struct rv__store_run rv__pg_run_of(const PGresult *row);

/* ---- schema.c */

/* Create or upgrade the tables, whoever else does so at the same time; a newer schema is refused, and nothing
 * is touched. `may_write`: false only looks.   Errors: RV_ESTATE (newer, or not there), RV_ESTORE. */
int rv__pg_migrate(struct rv__pg_conn *conn, bool may_write, rv_error *err);

/* ---- postgres.c */

static inline struct rv__pg *rv__pg_of(struct rv__store *store)
{
    return (struct rv__pg *)store;
}

/* A connection with a session that is ready: of a writer also with the store's lock and its lane.
 * Errors: RV_ESTORE, RV_EGONE (fenced). */
int rv__pg_ready(struct rv__pg *pg, rv_error *err);

/* Open a store. `path` is a connection string of libpq ("postgres://…"); the rest is as in rv__store_open(). */
int rv__postgres_open(const struct rv__store_opts *opts, struct rv__store **ret, rv_error *err);

/* ---- write.c */

/* A write on its way. */
struct rv__pg_item {
    uint64_t number;   /* of its run; 0: it is new, and not there yet */
    uint64_t last_seq; /* the end of its run's journal, before */
    uint64_t seq;      /* of its journal row, when it is there; 0: none */
    bool is_new;       /* the run begins with it */
};

/* Some writes on their way, and how far their answers have come. */
struct rv__pg_batch {
    struct rv__store_write *writes;
    struct rv__pg_item *items;
    size_t from, to;           /* those that were sent last; the refused among them are left out */
    size_t next_run, next_row; /* whose number, and whose seq, comes next */
};

/* Send the statements of these writes into the pipeline at hand.
 * Errors: RV_ENOMEM: some were sent, and the transaction must not be committed. */
int rv__pg_send_definitions(struct rv__pg *pg, const struct rv__store_write *writes, size_t count,
                            rv_error *err);
int rv__pg_send_writes(struct rv__pg *pg, struct rv__pg_batch *batch, size_t from, size_t to,
                       rv_error *err);
/* Takes numbers and seqs from the answers: for rv__pg_pipe_end(), with the batch. */
void rv__pg_take_numbers(void *arg, enum rv__pg_sql sql, const PGresult *result);

/* ---- commit.c */

/* A transaction in our lane: what every change goes through. Begins a pipeline with its first statements.
 * Errors: RV_ESTORE, RV_EGONE. */
int rv__pg_tx_begin(struct rv__pg *pg, rv_error *err);
/* The pipeline has ended, the transaction is open: commit it, and find out whether it is if the answer is lost.
 * RV_ESTORE: it is not, or nobody can tell at present: then writer.unsure is set. */
int rv__pg_tx_commit(struct rv__pg *pg, rv_error *err);
void rv__pg_tx_rollback(struct rv__pg *pg);
/* Why a pipeline in a transaction failed, for the caller of the store.   RV_ESTORE, RV_EGONE, RV_EPARSE. */
int rv__pg_tx_fail(struct rv__pg *pg, const struct rv__pg_answer *answer, rv_error *err);
/* Is it a failure of this write alone, for good? Then its reason is in *ret_why. */
bool rv__pg_refusal(const struct rv__pg_answer *answer, const struct rv__store_write *write,
                    rv_error *ret_why);
/* Is it a write that the store would take, by its look?   Errors: RV_EINVAL, RV_ETOOBIG. */
int rv__pg_check_write(const struct rv__pg *pg, const struct rv__store_write *write, rv_error *err);
void rv__pg_known_drop(struct rv__pg_writer *writer, uint64_t number);
int rv__pg_refuse_reader(rv_error *err);

int rv__pg_commit(struct rv__store *store, struct rv__store_write *writes, size_t count,
                  rv_error *err);
int rv__pg_define(struct rv__store *store, struct rv__str hash, struct rv__str json, rv_error *err);

/* ---- member.c */

/* This handle is to be a member. Then: what its sessions need; a lane of its own. */
void rv__pg_member_init(struct rv__pg *pg, int64_t lease_ms);
int rv__pg_member_session(struct rv__pg *pg, rv_error *err);
int rv__pg_join(struct rv__pg *pg, rv_error *err);
int rv__pg_rejoin(struct rv__store *store, rv_error *err);
int rv__pg_renew(struct rv__store *store, const char *workers, rv_error *err);
int rv__pg_part(struct rv__store *store, rv_error *err);
int64_t rv__pg_member(const struct rv__store *store);
int rv__pg_expire(struct rv__store *aide, size_t *ret, rv_error *err);
int rv__pg_claim(struct rv__store *aide, const struct rv__store_claim *claim,
                 rv__store_visit_claimed *visit, void *arg, rv_error *err);
int rv__pg_claim_run(struct rv__store *aide, int64_t member, struct rv__str run, int64_t *ret_owner,
                     enum rv__store_orphan *ret_from, rv_error *err);
int rv__pg_owner(struct rv__store *aide, struct rv__str run, int64_t *ret_owner, bool *ret_lacks,
                 rv_error *err);
int rv__pg_members(struct rv__store *store, bool reachable, rv__store_visit_member *visit,
                   void *arg, rv_error *err);
int rv__pg_ask(struct rv__store *aide, int64_t to, struct rv__str request, uint64_t *ret_id,
               rv_error *err);
int rv__pg_asked(struct rv__store *aide, int64_t member, rv__store_visit_text *visit, void *arg,
                 rv_error *err);
int rv__pg_answer_request(struct rv__store *aide, uint64_t id, struct rv__str answer,
                          rv_error *err);
int rv__pg_answered(struct rv__store *aide, uint64_t id, bool give_up, rv__store_visit_text *visit,
                    void *arg, rv_error *err);
int rv__pg_await(struct rv__store *aide, int64_t timeout_ms, rv_error *err);
int rv__pg_take_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                      rv_error *err);
int rv__pg_move_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                      rv_error *err);
int rv__pg_marks(struct rv__store *store, rv__store_visit_mark *visit, void *arg, rv_error *err);

/* ---- forget.c, whole.c */

int rv__pg_forget(struct rv__store *store, const struct rv__str *runs, size_t count, bool *ret_more,
                  rv_error *err);
int rv__pg_import(struct rv__store *store, struct rv__str run, rv__store_next_write *next,
                  void *arg, rv_error *err);
int rv__pg_whole(struct rv__store *store, struct rv__str run,
                 const struct rv__store_visitor *visitor, void *arg, rv_error *err);

/* ---- read.c: the functions of the table of that name */

int rv__pg_definition(struct rv__store *store, struct rv__str hash, rv__store_visit_text *visit,
                      void *arg, rv_error *err);
int rv__pg_run(struct rv__store *store, struct rv__str id, rv__store_visit_run *visit, void *arg,
               rv_error *err);
int rv__pg_snapshot(struct rv__store *store, struct rv__str run, rv__store_visit_text *visit,
                    void *arg, rv_error *err);
int rv__pg_value(struct rv__store *store, struct rv__str run, uint64_t number,
                 rv__store_visit_text *visit, void *arg, rv_error *err);
int rv__pg_journal(struct rv__store *store, struct rv__str run, uint64_t after,
                   rv__store_visit_row *visit, void *arg, rv_error *err);
int rv__pg_results(struct rv__store *store, struct rv__str run, struct rv__str key, int64_t from,
                   size_t limit, rv__store_visit_result *visit, void *arg, rv_error *err);
int rv__pg_results_seq(struct rv__store *store, struct rv__str run, uint64_t *ret, rv_error *err);
int rv__pg_active(struct rv__store *store, uint64_t after, size_t limit, rv__store_visit_run *visit,
                  void *arg, rv_error *err);
int rv__pg_due(struct rv__store *store, int64_t now_ms, const struct rv__store_place *after,
               size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err);
int rv__pg_next_wake(struct rv__store *store, int64_t after_ms, int64_t *ret, rv_error *err);
int rv__pg_feed(struct rv__store *store, uint64_t after, size_t limit, rv__store_visit_feed *visit,
                void *arg, rv_error *err);
int rv__pg_list(struct rv__store *store, const struct rv__store_query *query,
                rv__store_visit_run *visit, void *arg, struct rv__buf *cursor, rv_error *err);
int rv__pg_logs(struct rv__store *store, const struct rv__store_log_query *query,
                rv__store_visit_log *visit, void *arg, rv_error *err);
int rv__pg_counts(struct rv__store *store, rv__store_visit_count *visit, void *arg, rv_error *err);
int rv__pg_oldest_waiting(struct rv__store *store, size_t limit, rv__store_visit_run *visit,
                          void *arg, rv_error *err);
int rv__pg_finished(struct rv__store *store, const struct rv__store_place *after, size_t limit,
                    rv__store_visit_run *visit, void *arg, rv_error *err);
int rv__pg_usage(struct rv__store *store, struct rv__store_usage *ret, rv_error *err);
struct rv__store_log rv__pg_log_of(const PGresult *row); /* from a row of PG_LOGS or PG_HISTORY */

#endif
