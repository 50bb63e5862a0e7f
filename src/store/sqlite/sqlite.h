/* sqlite.h: the SQLite store from the inside: what its files share. Outsiders use store/store.h.
 *
 *   sqlite.c   open, close, statements, errors          read.c     every reading function
 *   schema.c   the tables, and how they came to be      commit.c   transactions, and their outcomes
 *   holder.c   who writes: one process                  write.c    one write within a transaction
 *   whole.c    a run, or all of it, as of one moment    forget.c   forgetting runs
 *   cache.c    runs and names the writer has met lately results.c  finished iterations, in chunks
 *   heads.c    where the journal of each run ends, and reading it
 *
 * A handle (struct rv__sqlite) is what callers have; a connection (struct rv__sqlite_conn) is what
 * it works on. A reader of a file has a connection of its own; a reader of ":memory:" shares the
 * writer's, which is why every call takes the connection's lock. */
#ifndef RV_STORE_SQLITE_SQLITE_H
#define RV_STORE_SQLITE_SQLITE_H

#include <pthread.h>
#include <sqlite3.h>

#include "store/store.h"

/* Every statement, prepared when it is first needed and kept: sqlite.c has their texts. */
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
    SQL_FINISHED,
    SQL_OLDEST_WAITING,
    SQL_LAST_NUMBERS,
    SQL_SIZE,
    SQLS
};

/* Rows of `counts` that do not belong to a status. */
enum { COUNT_WAITING = -2, COUNT_RUNS = -1, COUNT_FINISHED = 0 };

/* Every list looks at no more rows than this in a call, and every page has as many rows. */
enum { SQLITE_SCAN_MAX = 20000, SQLITE_PAGE_ROWS = 1000 };

/* So much of the journal has to be read to find the heads of active runs: some 10 ms. */
enum { SQLITE_TAIL_ROWS = 50000 };

/* What is known of a run: by the writer, of those it has met lately, direct mapped by their number; and
 * before and after a write. */
struct rv__sqlite_known {
    int64_t key;    /* its number; 0: it has no row, or the place is empty */
    int64_t status; /* the id of its name; 0 = none */
    uint64_t head;  /* the last row of its journal, as far as its own row knows */
    bool active;
    bool finished; /* and at rest */
    bool waiting;  /* for somebody */
};

struct rv__sqlite_runs {
    struct rv__sqlite_known *of;
    size_t count; /* a power of two */
};

int rv__sqlite_runs_init(struct rv__sqlite_runs *runs, size_t count); /* RV_OK or RV_ENOMEM */
void rv__sqlite_runs_done(struct rv__sqlite_runs *runs);
void rv__sqlite_runs_clear(struct rv__sqlite_runs *runs);
const struct rv__sqlite_known *rv__sqlite_runs_find(const struct rv__sqlite_runs *runs,
                                                    int64_t key); /* NULL: not met */
void rv__sqlite_runs_put(struct rv__sqlite_runs *runs, const struct rv__sqlite_known *known);
void rv__sqlite_runs_drop(struct rv__sqlite_runs *runs, int64_t key);

/* Where the journals of some runs end: see heads.c. */
struct rv__sqlite_head {
    int64_t run; /* 0: an empty place */
    uint64_t seq;
    uint64_t since; /* the first row that the run's own row does not know; 0: it knows all */
};

struct rv__sqlite_heads {
    struct rv__sqlite_head *of;
    size_t cap, count; /* cap is a power of two, or 0 */
};

/* Of the writer: the runs whose rows are behind. */
struct rv__sqlite_ends {
    struct rv__sqlite_heads heads;
    bool ready;                   /* the tail of the journal has been read */
    struct rv__sqlite_head *undo; /* what the present transaction has changed, as it was before */
    size_t undo_count, undo_cap;
    struct rv__sqlite_head
        *queue; /* a ring, by `since`: whose rows are to be brought up to date next */
    size_t queue_at, queue_len, queue_cap;
    size_t queue_done; /* so many in the present transaction */
};

struct rv__sqlite_ends_mark {
    size_t undo, queue;
};

/* The numbers of a run's journal rows, the last one first. */
struct rv__sqlite_chain {
    uint64_t *of;
    size_t count, cap;
};

/* The ids of names that the writer has met lately. Direct mapped, of fixed size, with the text inside:
 * it costs no allocation, and a longer text is looked up each time. Emptied, like the runs, when a
 * transaction fails. */
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
/* A slot for the text, in the place of another one; NULL: it is too long to be kept. */
struct rv__sqlite_slot *rv__sqlite_cache_put(struct rv__sqlite_cache *cache, struct rv__str text);

/* How many runs more or fewer have a status, in the transaction so far: written once, at its end. */
enum { SQLITE_DELTAS = 16 };

struct rv__sqlite_deltas {
    struct {
        int64_t status;
        int64_t runs;
    } of[SQLITE_DELTAS];
    size_t count;
};

/* The numbers a transaction gives; they become the writer's when it is on disk. */
struct rv__sqlite_numbers {
    uint64_t seq, run;
};

struct rv__sqlite_writer {
    uint64_t seq, run;  /* the last numbers given */
    uint64_t forgotten; /* the last one that a forgotten run had */
    struct rv__sqlite_runs runs;
    struct rv__sqlite_cache names;
    struct rv__sqlite_deltas deltas;
    struct rv__sqlite_ends ends;
    struct rv__sqlite_ends_mark ends_begin; /* as the present transaction found them */
    /* For the chunk at hand: its texts and their sizes; the results of a write in their order. */
    struct rv__buf chunk, sizes;
    const struct rv__store_result **order;
    size_t order_cap;
    int wait_pages;     /* the length of the WAL at which readers are waited for */
    int reader_wait_ms; /* and for how long */
    struct rv__store_stats stats;
};

/* Which file a name stood for. */
struct rv__sqlite_identity {
    bool known; /* false: there is no such file; it is on no disk, or a VFS of a test has it */
    uint64_t device, inode;
};

struct rv__sqlite_conn {
    sqlite3 *db;
    pthread_mutex_t lock;
    char *path;      /* as it was given */
    const char *vfs; /* the name that the VFS itself has; NULL = the default one */
    int64_t busy_ms;
    bool memory;
    struct rv__sqlite_identity file, wal; /* of a writer: what it opened */
    bool gone; /* they are no longer what their names stand for: nothing is written any more */
    int bad;   /* SQLite's first bad answer to a bind or about a column since the last step */
    rv_error damage; /* of the run that a list visits */
    /* Of a reader: the last rows of runs in the tail of the journal, how far it has been read, and how
     * long the tail is: SQLITE_TAIL_ROWS, or what a test wants. */
    struct rv__sqlite_heads tail;
    uint64_t tail_to, tail_rows;
    struct rv__sqlite_chain chain;
    sqlite3_stmt *statements[SQLS];
    struct rv__sqlite_writer writer; /* unused by connections that only read */
};

struct rv__sqlite {
    struct rv__store store; /* first */
    struct rv__sqlite_conn *conn;
    bool shares;    /* the connection is another handle's */
    bool read_only; /* writing is refused */
    int holder;     /* the file whose lock makes us the writer; -1: none */
};

/* ---- sqlite.c */

int rv__sqlite_open(const struct rv__store_opts *opts, struct rv__store **ret, rv_error *err);

/* The connection of a store, with its lock taken; give it to rv__sqlite_leave(). */
struct rv__sqlite_conn *rv__sqlite_enter(struct rv__store *store);
void rv__sqlite_leave(struct rv__sqlite_conn *conn);
/* Are the files of the writer still there under their names? If not, what was written is in files that
 * nobody will find. RV_EGONE, now and for ever after. Costs two statx(): about 2 us. */
int rv__sqlite_still_there(struct rv__sqlite_conn *conn, rv_error *err);
/* Damage (RV_EPARSE) that was met in a call that is not about one run is a failure of the store. */
int rv__sqlite_of_store(int rc, rv_error *err);

/* The statement, ready to be bound; NULL, with *rc and *err, if it could not be prepared. */
sqlite3_stmt *rv__sqlite_get(struct rv__sqlite_conn *conn, enum rv__sql sql, int *rc,
                             rv_error *err);

/* Bind. A failure is remembered and answered by the next step. Texts are not copied. */
void rv__sqlite_bind_int(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int at, int64_t value);
void rv__sqlite_bind_str(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int at,
                         struct rv__str value);

/* 1: there is a row. 0: there is none, and the statement is reset. Negative: an error, and it is
 * reset. Who stops before the 0 calls sqlite3_reset(). */
int rv__sqlite_step(struct rv__sqlite_conn *conn, sqlite3_stmt *st, rv_error *err);

/* A statement without rows: step, reset. RV_OK or an error. */
int rv__sqlite_do(struct rv__sqlite_conn *conn, sqlite3_stmt *st, rv_error *err);

/* A statement without rows and without anything to bind. */
int rv__sqlite_run_sql(struct rv__sqlite_conn *conn, enum rv__sql sql, rv_error *err);

/* The number that a statement finds by another one; 0 if there is no row. */
int rv__sqlite_number(struct rv__sqlite_conn *conn, enum rv__sql sql, int64_t by, int64_t *ret,
                      rv_error *err);

/* A column of the present row; NULL in the table is "none". A failure (no memory, a column of another
 * type) is remembered: before what a row has is used, ask rv__sqlite_whole(). */
struct rv__str rv__sqlite_text(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int column);
struct rv__str rv__sqlite_some_text(struct rv__sqlite_conn *conn, sqlite3_stmt *st,
                                    int column); /* none is a failure */
int64_t rv__sqlite_int(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int column);
uint64_t rv__sqlite_uint(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int column); /* not < 0 */
int rv__sqlite_whole(struct rv__sqlite_conn *conn, rv_error *err); /* RV_OK or the failure */

/* Turn an answer of SQLite's into ours, in words: what, where, why, what to do. RV_ENOMEM and RV_ESTORE
 * may pass; RV_EPARSE (damage), RV_ETOOBIG and RV_EINVAL (it does not fit the tables) stay. */
int rv__sqlite_fail(struct rv__sqlite_conn *conn, int sqlite_rc, rv_error *err);

/* ---- schema.c */

/* Look at the schema of an open file, and change nothing. *ret_version 0: there is none yet.
 * Errors: RV_ESTORE: it is newer than this program, or not ours. */
int rv__sqlite_schema_check(struct rv__sqlite_conn *conn, int *ret_version, rv_error *err);

/* Bring the schema from `version` to the present one, each step in a transaction of its own. */
int rv__sqlite_schema_upgrade(struct rv__sqlite_conn *conn, int version, rv_error *err);

int rv__sqlite_schema_version(void); /* the one that this program writes */

/* ---- holder.c */

/* Become the one process that writes to the store at `path`. On success *ret is a file to give to
 * rv__holder_release(). RV_EBUSY: another is it, and the message names it. */
int rv__holder_take(const char *path, int *ret, rv_error *err);
void rv__holder_release(int file); /* -1 is allowed */

/* ---- write.c */

/* What is known of the run with this id; key 0: there is none. */
int rv__sqlite_find_run(struct rv__sqlite_conn *conn, struct rv__str id,
                        struct rv__sqlite_known *ret, rv_error *err);

/* The same by its number, from the file. */
int rv__sqlite_find_number(struct rv__sqlite_conn *conn, int64_t number,
                           struct rv__sqlite_known *ret, rv_error *err);

/* All of a write but its definitions, in an open transaction; `number` is filled in. Errors: RV_ENOMEM,
 * RV_ESTORE; every other one would come again. What was written of it is still there then. */
int rv__sqlite_write_one(struct rv__sqlite_conn *conn, struct rv__store_write *write,
                         struct rv__sqlite_numbers *n, rv_error *err);
int rv__sqlite_write_definition(struct rv__sqlite_conn *conn, struct rv__str hash,
                                struct rv__str json, rv_error *err);

/* The run was `before` (key 0: nothing) and is `after` (key 0: gone). */
int rv__sqlite_recount(struct rv__sqlite_conn *conn, const struct rv__sqlite_known *before,
                       const struct rv__sqlite_known *after, rv_error *err);
int rv__sqlite_flush_counts(struct rv__sqlite_conn *conn, rv_error *err);

int rv__sqlite_write_head(struct rv__sqlite_conn *conn, int64_t run, uint64_t head, rv_error *err);

/* ---- heads.c */

/* Of a writer. Before its first transaction: read the tail of the journal, if anybody is active. */
int rv__sqlite_heads_ready(struct rv__sqlite_conn *conn, rv_error *err);
uint64_t rv__sqlite_head_of(const struct rv__sqlite_conn *conn,
                            const struct rv__sqlite_known *known);
/* The run has a new last row, and does its own row know it? */
int rv__sqlite_head_set(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq, bool recorded,
                        rv_error *err);
/* The end of a transaction whose last number is `last`: bring up to date what is too far behind. Then
 * keep it all, or undo it back to a mark. */
int rv__sqlite_heads_refresh(struct rv__sqlite_conn *conn, uint64_t last, rv_error *err);
void rv__sqlite_heads_keep(struct rv__sqlite_conn *conn);
struct rv__sqlite_ends_mark rv__sqlite_heads_mark(const struct rv__sqlite_conn *conn);
void rv__sqlite_heads_undo(struct rv__sqlite_conn *conn, struct rv__sqlite_ends_mark mark);
void rv__sqlite_heads_done(struct rv__sqlite_conn *conn);

/* The last journal row of a run, exactly; *ret_key 0: there is no such run. */
int rv__sqlite_find_head(struct rv__sqlite_conn *conn, struct rv__str run, int64_t *ret_key,
                         uint64_t *ret_head, rv_error *err);
/* The row before row `seq` of the run; 0: it is the first.   Errors also: RV_EPARSE: it is not there. */
int rv__sqlite_row_before(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq, uint64_t *ret,
                          rv_error *err);
/* conn->chain becomes the rows of the run from `head` back to, but without, `after`. */
int rv__sqlite_chain(struct rv__sqlite_conn *conn, int64_t run, uint64_t head, uint64_t after,
                     rv_error *err);
/* Show one row of the run; *ret_gone: the run has been forgotten meanwhile. */
int rv__sqlite_visit_turn(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq,
                          rv__store_visit_row *visit, void *arg, bool *ret_gone, rv_error *err);
int rv__sqlite_journal(struct rv__store *store, struct rv__str run, uint64_t after,
                       rv__store_visit_row *visit, void *arg, rv_error *err);

/* ---- results.c */

/* The results of a write, after which the run's last journal row is `head`. As rv__sqlite_write_one(). */
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
/* Write what is left to write, and commit. */
int rv__sqlite_keep(struct rv__sqlite_conn *conn, const struct rv__sqlite_numbers *n,
                    rv_error *err);

int rv__sqlite_commit(struct rv__store *store, struct rv__store_write *writes, size_t count,
                      rv_error *err);
int rv__sqlite_define(struct rv__store *store, struct rv__str hash, struct rv__str json,
                      rv_error *err);
int rv__sqlite_import(struct rv__store *store, struct rv__str run, rv__store_next_write *next,
                      void *arg, rv_error *err);

/* ---- forget.c */

int rv__sqlite_forget(struct rv__store *store, const struct rv__str *runs, size_t count,
                      bool *ret_more, rv_error *err);

/* ---- whole.c */

int rv__sqlite_whole_run(struct rv__store *store, struct rv__str run,
                         const struct rv__store_visitor *visitor, void *arg, rv_error *err);
int rv__sqlite_backup(struct rv__store *store, const char *path, rv__store_progress *progress,
                      void *arg, rv_error *err);

/* ---- read.c */

/* The columns of the present row of SQL_RUN and of SQL_LOGS_OF_RUN; ask rv__sqlite_whole() then. */
struct rv__store_run rv__sqlite_run_of(struct rv__sqlite_conn *conn, sqlite3_stmt *st);
struct rv__store_log rv__sqlite_log_of(struct rv__sqlite_conn *conn, sqlite3_stmt *st);
/* The one row that a statement finds by a text. NULL, with *rc: an error, or there is no such
 * thing (`what`). Who gets one resets it. */
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

/* The last numbers given, from the tables. */
int rv__sqlite_last_numbers(struct rv__sqlite_conn *conn, uint64_t *seq, uint64_t *run,
                            uint64_t *forgotten, rv_error *err);

#endif
