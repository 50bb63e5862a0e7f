/* sqlite.h: the SQLite store from the inside: what its files share. Other folders use store/store.h.
 *
 *   sqlite.c   open, close, statements, errors          read.c     every reading function
 *   schema.c   the tables, and their upgrades           commit.c   transactions, and their outcomes
 *   holder.c   the lock of the writing process          write.c    one write within a transaction
 *   whole.c    snapshots of a run or the store          forget.c   deleting runs
 *   cache.c    recently used runs and names             results.c  finished iterations, in chunks
 *   heads.c    the last journal row of each run         marks.c    how far followers have come
 *
 * A handle (struct rv__sqlite) is for callers; it works on a connection (struct rv__sqlite_conn). A reader of a
 * file has its own connection; a reader of ":memory:" shares the writer's, which is why every call takes the
 * connection's lock. */
#ifndef RV_STORE_SQLITE_SQLITE_H
#define RV_STORE_SQLITE_SQLITE_H

#include <pthread.h>
#include <sqlite3.h>

#include "store/store.h"

/* Every statement, prepared on first use and kept: sqlite.c has their texts. */
enum rv__sql {
    SQL_BEGIN,
    SQL_BEGIN_READING,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_SAVEPOINT,
    SQL_RELEASE,
    SQL_ROLLBACK_TO,
    /* writing */
    SQL_FIND_RUN,
    SQL_FIND_NUMBER,
    SQL_FIND_NAME,
    SQL_ADD_NAME,
    SQL_ADD_RUN,
    SQL_SET_RUN,
    SQL_TOUCH_RUN,
    SQL_SET_INPUT,
    SQL_DROP_INPUT,
    SQL_ADD_JOURNAL,
    SQL_RESULT_BEFORE,
    SQL_ADD_RESULTS,
    SQL_SET_RESULTS_SEQ,
    SQL_ADD_VALUE,
    SQL_SET_HEAD,
    SQL_LAST_LOG_OF_RUN,
    SQL_SET_SNAPSHOT,
    SQL_ADD_LOG,
    SQL_DROP_STREAM,
    SQL_ADD_DEFINITION,
    SQL_ADD_COUNT,
    SQL_DROP_RUN,
    SQL_DROP_SNAPSHOT,
    SQL_DROP_RESULTS_SEQ,
    SQL_ADD_FORGOTTEN,
    SQL_NEXT_FORGOTTEN,
    SQL_DROP_ROW,
    SQL_MOVE_FORGOTTEN,
    SQL_DROP_RESULTS,
    SQL_NEXT_VALUE,
    SQL_DROP_VALUE,
    SQL_DROP_LOGS,
    SQL_DROP_FORGOTTEN,
    SQL_SET_META,
    SQL_ADD_MARK,
    SQL_MOVE_MARK,
    SQL_DROP_MARK,
    /* reading */
    SQL_DEFINITION,
    SQL_RUN,
    SQL_RUN_OF_NUMBER,
    SQL_RUN_WITHOUT_INPUT,
    SQL_ID_OF_NUMBER,
    SQL_SNAPSHOT,
    SQL_VALUE,
    SQL_VALUES,
    SQL_ROW_BEFORE,
    SQL_FACTS,
    SQL_TAIL,
    SQL_LAST_SEQ,
    SQL_ANY_ACTIVE,
    SQL_RESULTS,
    SQL_RESULTS_SEQ,
    SQL_ACTIVE,
    SQL_DUE,
    SQL_NEXT_WAKE,
    SQL_FEED,
    SQL_FEED_NEXT,
    SQL_LIST,
    SQL_LIST_WORKFLOW,
    SQL_LIST_STATUS,
    SQL_LIST_WAITING,
    SQL_LIST_RERUNS,
    SQL_LOGS,
    SQL_LOGS_OF_RUN,
    SQL_COUNTS,
    SQL_COUNT_OF,
    SQL_MARK,
    SQL_MARKS,
    SQL_FINISHED,
    SQL_OLDEST_WAITING,
    SQL_LAST_NUMBERS,
    SQL_SIZE,
    SQLS
};

/* Rows of `counts` that do not belong to a status. */
enum { COUNT_WAITING = -2, COUNT_RUNS = -1, COUNT_FINISHED = 0 };

/* A list reads at most this many rows in a call; rows of a page. */
enum { SQLITE_SCAN_MAX = 20000, SQLITE_PAGE_ROWS = 1000 };

/* At most this many journal rows are read to find the heads of active runs: some 10 ms. */
enum { SQLITE_TAIL_ROWS = 50000 };

/* What is known about a run: in the writer's cache of recent runs, direct mapped by number; and before and after a
 * write. */
struct rv__sqlite_known {
    int64_t key;    /* its number; 0: no row, or an empty place */
    int64_t status; /* the id of its name; 0 = none */
    uint64_t head;  /* its last journal row, according to its own row */
    bool active;
    bool finished; /* and at rest */
    bool waiting;  /* for a person */
};

struct rv__sqlite_runs {
    struct rv__sqlite_known *of;
    size_t count; /* a power of two */
};

int rv__sqlite_runs_init(struct rv__sqlite_runs *runs, size_t count); /* RV_OK or RV_ENOMEM */
void rv__sqlite_runs_done(struct rv__sqlite_runs *runs);
void rv__sqlite_runs_clear(struct rv__sqlite_runs *runs);
const struct rv__sqlite_known *rv__sqlite_runs_find(const struct rv__sqlite_runs *runs,
                                                    int64_t key); /* NULL: not cached */
void rv__sqlite_runs_put(struct rv__sqlite_runs *runs, const struct rv__sqlite_known *known);
void rv__sqlite_runs_drop(struct rv__sqlite_runs *runs, int64_t key);

/* The last journal rows of some runs: see heads.c. */
struct rv__sqlite_head {
    int64_t run; /* 0: an empty place */
    uint64_t seq;
    uint64_t since; /* the first row that the run's own row does not know; 0: none */
};

struct rv__sqlite_heads {
    struct rv__sqlite_head *of;
    size_t cap, count; /* cap is a power of two, or 0 */
};

/* Of the writer: runs whose own rows are out of date. */
struct rv__sqlite_ends {
    struct rv__sqlite_heads heads;
    bool ready;                   /* the tail of the journal has been read */
    struct rv__sqlite_head *undo; /* the old values of what the present transaction has changed */
    size_t undo_count, undo_cap;
    struct rv__sqlite_head *queue; /* a ring, by `since`: runs whose rows are updated next */
    size_t queue_at, queue_len, queue_cap;
    size_t queue_done; /* of these, updated in the present transaction */
};

struct rv__sqlite_ends_mark {
    size_t undo, queue;
};

/* The numbers of a run's journal rows, the last one first. */
struct rv__sqlite_chain {
    uint64_t *of;
    size_t count, cap;
};

/* The ids of names that the writer used recently. Direct mapped, of fixed size, with the text inside: no
 * allocations; a longer text is looked up each time. Cleared, like the runs, when a transaction fails. */
struct rv__sqlite_slot {
    uint16_t len; /* 0: empty */
    char text[70];
    int64_t key;
};

struct rv__sqlite_cache {
    struct rv__sqlite_slot *slots;
    size_t count; /* a power of two */
};

int rv__sqlite_cache_init(struct rv__sqlite_cache *cache, size_t count); /* RV_OK or RV_ENOMEM */
void rv__sqlite_cache_done(struct rv__sqlite_cache *cache);
void rv__sqlite_cache_clear(struct rv__sqlite_cache *cache);
/* The text's slot, or NULL. */
struct rv__sqlite_slot *rv__sqlite_cache_find(struct rv__sqlite_cache *cache, struct rv__str text);
/* A slot for the text, replacing another one; NULL: too long to cache. */
struct rv__sqlite_slot *rv__sqlite_cache_put(struct rv__sqlite_cache *cache, struct rv__str text);

/* Changes in the number of runs per status in this transaction: written once, at its end. */
enum { SQLITE_DELTAS = 16 };

struct rv__sqlite_deltas {
    struct {
        int64_t status;
        int64_t runs;
    } of[SQLITE_DELTAS];
    size_t count;
};

/* The numbers that a transaction uses; stored in the writer when it is on disk. */
struct rv__sqlite_numbers {
    uint64_t seq, run;
};

struct rv__sqlite_writer {
    uint64_t seq, run;  /* the last numbers used */
    uint64_t forgotten; /* the last number of a deleted run */
    struct rv__sqlite_runs runs;
    struct rv__sqlite_cache names;
    struct rv__sqlite_deltas deltas;
    struct rv__sqlite_ends ends;
    struct rv__sqlite_ends_mark ends_begin; /* at the beginning of the present transaction */
    /* For the current chunk: its texts and their sizes; the results of a write in order. */
    struct rv__buf chunk, sizes;
    const struct rv__store_result **order;
    size_t order_cap;
    int wait_pages;     /* from this length of the WAL on, wait for readers */
    int reader_wait_ms; /* for this time */
    struct rv__store_stats stats;
};

/* The file that a name referred to. */
struct rv__sqlite_identity {
    bool known; /* false: no such file; or it is in memory, or in a test's VFS */
    uint64_t device, inode;
};

struct rv__sqlite_conn {
    sqlite3 *db;
    pthread_mutex_t lock;
    char *path;      /* as given */
    const char *vfs; /* its full name; NULL = the default */
    int64_t busy_ms;
    bool memory;
    struct rv__sqlite_identity file, wal; /* of a writer: the files it opened */
    bool gone;       /* these names now refer to other files: nothing is written any more */
    int bad;         /* SQLite's first error for a bind or a column since the last step */
    rv_error damage; /* of the run that a list visits */
    /* Of a reader: the last rows of runs in the tail of the journal, how far it was read, and the length of the
     * tail: SQLITE_TAIL_ROWS, or a test's value. */
    struct rv__sqlite_heads tail;
    uint64_t tail_to, tail_rows;
    struct rv__sqlite_chain chain;
    sqlite3_stmt *statements[SQLS];
    struct rv__sqlite_writer writer; /* unused by connections that only read */
};

struct rv__sqlite {
    struct rv__store store; /* first */
    struct rv__sqlite_conn *conn;
    bool shares;    /* the connection belongs to another handle */
    bool read_only; /* writing is refused */
    int holder;     /* the file whose lock makes us the writer; -1: none */
};

/* ---- sqlite.c */

int rv__sqlite_open(const struct rv__store_opts *opts, struct rv__store **ret, rv_error *err);

/* The connection of a store, locked; release it with rv__sqlite_leave(). */
struct rv__sqlite_conn *rv__sqlite_enter(struct rv__store *store);
void rv__sqlite_leave(struct rv__sqlite_conn *conn);
/* Do the names of the writer's files still refer to them? If not, its data would be lost. RV_EGONE, from then on
 * always. Costs two statx(): about 2 us. */
int rv__sqlite_still_there(struct rv__sqlite_conn *conn, rv_error *err);
/* Damage (RV_EPARSE) found in a call that is not about one run becomes an error of the store. */
int rv__sqlite_of_store(int rc, rv_error *err);

/* The statement, ready to be bound; NULL, with *rc and *err, if it could not be prepared. */
sqlite3_stmt *rv__sqlite_get(struct rv__sqlite_conn *conn, enum rv__sql sql, int *rc,
                             rv_error *err);

/* Bind. A failure is remembered and reported by the next step. Texts are not copied. */
void rv__sqlite_bind_int(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int at, int64_t value);
void rv__sqlite_bind_str(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int at,
                         struct rv__str value);

/* 1: a row. 0: no more rows, and the statement is reset. Negative: an error, and it is reset. To stop earlier, call
 * sqlite3_reset(). */
int rv__sqlite_step(struct rv__sqlite_conn *conn, sqlite3_stmt *st, rv_error *err);

/* A statement without rows: step, reset. RV_OK or an error. */
int rv__sqlite_do(struct rv__sqlite_conn *conn, sqlite3_stmt *st, rv_error *err);

/* A statement without rows and without anything to bind. */
int rv__sqlite_run_sql(struct rv__sqlite_conn *conn, enum rv__sql sql, rv_error *err);

/* The number that a statement finds by another one; 0: no row. */
int rv__sqlite_number(struct rv__sqlite_conn *conn, enum rv__sql sql, int64_t by, int64_t *ret,
                      rv_error *err);

/* A column of the current row; NULL in the table is "none". A failure (no memory, a column of another type) is
 * remembered: call rv__sqlite_whole() before the values are used. */
struct rv__str rv__sqlite_text(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int column);
struct rv__str rv__sqlite_some_text(struct rv__sqlite_conn *conn, sqlite3_stmt *st,
                                    int column); /* none is a failure */
int64_t rv__sqlite_int(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int column);
uint64_t rv__sqlite_uint(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int column); /* not < 0 */
int rv__sqlite_whole(struct rv__sqlite_conn *conn, rv_error *err); /* RV_OK or the failure */

/* Translate an error of SQLite, with a message: what, where, why, what to do. RV_ENOMEM and RV_ESTORE may be
 * temporary; RV_EPARSE (damage), RV_ETOOBIG and RV_EINVAL (it violates the tables' rules) are permanent. */
int rv__sqlite_fail(struct rv__sqlite_conn *conn, int sqlite_rc, rv_error *err);

/* ---- schema.c */

/* Read the schema of an open file; changes nothing. *ret_version 0: none yet.
 * Errors: RV_ESTORE: newer than this program, or not ours. */
int rv__sqlite_schema_check(struct rv__sqlite_conn *conn, int *ret_version, rv_error *err);

/* Upgrade the schema from `version` to the current one, each step in its own transaction. */
int rv__sqlite_schema_upgrade(struct rv__sqlite_conn *conn, int version, rv_error *err);

int rv__sqlite_schema_version(void); /* the one that this program writes */

/* ---- holder.c */

/* Become the only process that writes to the store at `path`. Release *ret with rv__holder_release(). RV_EBUSY:
 * another process is the writer; the message names it. */
int rv__holder_take(const char *path, int *ret, rv_error *err);
void rv__holder_release(int file); /* -1 is allowed */

/* ---- write.c */

/* What is known about the run with this id; key 0: no such run. */
int rv__sqlite_find_run(struct rv__sqlite_conn *conn, struct rv__str id,
                        struct rv__sqlite_known *ret, rv_error *err);

/* The same by its number, from the file. */
int rv__sqlite_find_number(struct rv__sqlite_conn *conn, int64_t number,
                           struct rv__sqlite_known *ret, rv_error *err);

/* Write everything except the definitions, in an open transaction; fills in `number`. Errors: RV_ENOMEM, RV_ESTORE;
 * all others are permanent. After an error, parts may be written: roll back. */
int rv__sqlite_write_one(struct rv__sqlite_conn *conn, struct rv__store_write *write,
                         struct rv__sqlite_numbers *n, rv_error *err);
int rv__sqlite_write_definition(struct rv__sqlite_conn *conn, struct rv__str hash,
                                struct rv__str json, rv_error *err);

/* Update the counts: the run was `before` (key 0: did not exist) and is `after` (key 0: deleted). */
int rv__sqlite_recount(struct rv__sqlite_conn *conn, const struct rv__sqlite_known *before,
                       const struct rv__sqlite_known *after, rv_error *err);
int rv__sqlite_flush_counts(struct rv__sqlite_conn *conn, rv_error *err);

int rv__sqlite_write_head(struct rv__sqlite_conn *conn, int64_t run, uint64_t head, rv_error *err);

/* ---- heads.c */

/* For a writer, before its first transaction: read the tail of the journal, if any run is active. */
int rv__sqlite_heads_ready(struct rv__sqlite_conn *conn, rv_error *err);
uint64_t rv__sqlite_head_of(const struct rv__sqlite_conn *conn,
                            const struct rv__sqlite_known *known);
/* The run has a new last row; `recorded`: its own row has it. */
int rv__sqlite_head_set(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq, bool recorded,
                        rv_error *err);
/* At the end of a transaction whose last number is `last`: update the runs' rows that are too old. Then keep the
 * changes, or undo them back to a mark. */
int rv__sqlite_heads_refresh(struct rv__sqlite_conn *conn, uint64_t last, rv_error *err);
void rv__sqlite_heads_keep(struct rv__sqlite_conn *conn);
struct rv__sqlite_ends_mark rv__sqlite_heads_mark(const struct rv__sqlite_conn *conn);
void rv__sqlite_heads_undo(struct rv__sqlite_conn *conn, struct rv__sqlite_ends_mark mark);
void rv__sqlite_heads_done(struct rv__sqlite_conn *conn);

/* The last journal row of a run, exactly; *ret_key 0: no such run. */
int rv__sqlite_find_head(struct rv__sqlite_conn *conn, struct rv__str run, int64_t *ret_key,
                         uint64_t *ret_head, rv_error *err);
/* The row before row `seq` of the run; 0: it is the first.   Errors also: RV_EPARSE: row `seq` is missing. */
int rv__sqlite_row_before(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq, uint64_t *ret,
                          rv_error *err);
/* Set conn->chain to the rows of the run from `head` back to `after`, without `after`. */
int rv__sqlite_chain(struct rv__sqlite_conn *conn, int64_t run, uint64_t head, uint64_t after,
                     rv_error *err);
/* Visit one row of the run; *ret_gone: the run was deleted meanwhile. */
int rv__sqlite_visit_turn(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq,
                          rv__store_visit_row *visit, void *arg, bool *ret_gone, rv_error *err);
int rv__sqlite_journal(struct rv__store *store, struct rv__str run, uint64_t after,
                       rv__store_visit_row *visit, void *arg, rv_error *err);

/* ---- results.c */

/* Write the results of a write; `head` is the run's last journal row after it. Errors: as rv__sqlite_write_one(). */
int rv__sqlite_write_results(struct rv__sqlite_conn *conn, int64_t key, uint64_t head,
                             const struct rv__store_write *write, rv_error *err);
int rv__sqlite_results(struct rv__store *store, struct rv__str run, struct rv__str key,
                       int64_t from, size_t limit, rv__store_visit_result *visit, void *arg,
                       rv_error *err);
int rv__sqlite_results_seq(struct rv__store *store, struct rv__str run, uint64_t *ret,
                           rv_error *err);

/* ---- commit.c */

int rv__sqlite_may_write(struct rv__store *store, rv_error *err); /* RV_OK or RV_ESTATE */
int rv__sqlite_begin(struct rv__sqlite_conn *conn, rv_error *err);
void rv__sqlite_roll_back(struct rv__sqlite_conn *conn);
/* Write the rest, and commit. */
int rv__sqlite_keep(struct rv__sqlite_conn *conn, const struct rv__sqlite_numbers *n,
                    rv_error *err);

int rv__sqlite_commit(struct rv__store *store, struct rv__store_write *writes, size_t count,
                      rv_error *err);
int rv__sqlite_define(struct rv__store *store, struct rv__str hash, struct rv__str json,
                      rv_error *err);
int rv__sqlite_import(struct rv__store *store, struct rv__str run, rv__store_next_write *next,
                      void *arg, rv_error *err);

/* ---- marks.c */

int rv__sqlite_take_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                          rv_error *err);
int rv__sqlite_move_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                          rv_error *err);
int rv__sqlite_marks(struct rv__store *store, rv__store_visit_mark *visit, void *arg,
                     rv_error *err);

/* ---- forget.c */

int rv__sqlite_forget(struct rv__store *store, const struct rv__str *runs, size_t count,
                      bool *ret_more, rv_error *err);

/* ---- whole.c */

int rv__sqlite_whole_run(struct rv__store *store, struct rv__str run,
                         const struct rv__store_visitor *visitor, void *arg, rv_error *err);
int rv__sqlite_backup(struct rv__store *store, const char *path, rv__store_progress *progress,
                      void *arg, rv_error *err);

/* ---- read.c */

/* The columns of the current row of SQL_RUN and of SQL_LOGS_OF_RUN; call rv__sqlite_whole() afterwards. */
struct rv__store_run rv__sqlite_run_of(struct rv__sqlite_conn *conn, sqlite3_stmt *st);
struct rv__store_log rv__sqlite_log_of(struct rv__sqlite_conn *conn, sqlite3_stmt *st);
/* The one row that a statement finds by a text; the caller resets it. NULL, with *rc: an error, or not found
 * (`what`). */
sqlite3_stmt *rv__sqlite_find_one(struct rv__sqlite_conn *conn, enum rv__sql sql, struct rv__str by,
                                  const char *what, int *rc, rv_error *err);

int rv__sqlite_definition(struct rv__store *store, struct rv__str hash, rv__store_visit_text *visit,
                          void *arg, rv_error *err);
int rv__sqlite_run(struct rv__store *store, struct rv__str id, rv__store_visit_run *visit,
                   void *arg, rv_error *err);
int rv__sqlite_snapshot(struct rv__store *store, struct rv__str run, rv__store_visit_text *visit,
                        void *arg, rv_error *err);
int rv__sqlite_value(struct rv__store *store, struct rv__str run, uint64_t number,
                     rv__store_visit_text *visit, void *arg, rv_error *err);
int rv__sqlite_active(struct rv__store *store, uint64_t after, size_t limit,
                      rv__store_visit_run *visit, void *arg, rv_error *err);
int rv__sqlite_due(struct rv__store *store, int64_t now_ms, const struct rv__store_place *after,
                   size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err);
int rv__sqlite_next_wake(struct rv__store *store, int64_t after_ms, int64_t *ret, rv_error *err);
int rv__sqlite_feed(struct rv__store *store, uint64_t after, size_t limit,
                    rv__store_visit_feed *visit, void *arg, rv_error *err);
int rv__sqlite_list(struct rv__store *store, const struct rv__store_query *query,
                    rv__store_visit_run *visit, void *arg, struct rv__buf *cursor, rv_error *err);
int rv__sqlite_logs(struct rv__store *store, const struct rv__store_log_query *query,
                    rv__store_visit_log *visit, void *arg, rv_error *err);
int rv__sqlite_counts(struct rv__store *store, rv__store_visit_count *visit, void *arg,
                      rv_error *err);
int rv__sqlite_oldest_waiting(struct rv__store *store, size_t limit, rv__store_visit_run *visit,
                              void *arg, rv_error *err);
int rv__sqlite_finished(struct rv__store *store, const struct rv__store_place *after, size_t limit,
                        rv__store_visit_run *visit, void *arg, rv_error *err);
int rv__sqlite_usage(struct rv__store *store, struct rv__store_usage *ret, rv_error *err);

/* The last numbers used, from the tables. */
int rv__sqlite_last_numbers(struct rv__sqlite_conn *conn, uint64_t *seq, uint64_t *run,
                            uint64_t *forgotten, rv_error *err);

#endif
