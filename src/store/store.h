/* store.h: where runs survive. A table of functions that every store implements.
 *
 * What is kept (ARCHITECTURE: on disk):
 *
 *   journal      seq, run, facts     append-only; one row for each run and turn
 *   runs         one row per run     the index: what is active, what wakes when, lists and filters
 *   results      run, key, index     finished iterations, which have left the cell
 *   values       run, number         large texts that facts refer to
 *   snapshots    run, seq, state     the latest of each run: its state after the rows up to seq
 *   definitions  hash, plan          each version of a plan once
 *   logs         id, run, line       what the steps of a run said
 *
 * Rules that every store keeps, and tests/unit/store/store_suite.c checks of each:
 *
 * 1. A commit is one transaction: after any failure or crash it is wholly there or not at all.
 * 2. When commit returns RV_OK it is on disk, and each write has its outcome: it is part of it, or it
 *    was refused for good, and then nothing of it is there. When commit fails, nothing of any write is
 *    to be seen, and the same commit may be tried again, unchanged. Only if the process ends after such
 *    a failure and before a later commit went well, the failed one may be found when the store is
 *    opened again: its last bytes were on their way. Nobody was told of it, so it is as good as one that
 *    went well. A database that cannot be reached any more is such a case too, until it can be: the same
 *    commit, made again, then finds out whether it is there, and is not written twice.
 * 3. `seq` strictly increases with each journal row in the order of commits, over all runs, and over
 *    restarts and deletions; a number that was seen is never given again. There may be gaps. The ids
 *    of log lines come from the same count, those of a write before the seq of its journal row: the
 *    two together are one order. The same holds for the numbers of runs, which have their own.
 * 4. Reading sees what was committed and nothing else. What was accepted when it was written is never
 *    refused for its size when it is read.
 * 5. What is in the file is not trusted. A record that cannot be read is an error of its run only
 *    (RV_EPARSE), and the calls that visit many runs go on with the others.
 *
 * A store keeps texts and does not know what they mean: a status is a name; a run is *finished* when
 * its `completed_ms` is not 0, *asleep* when its `wake_at_ms` is not 0, and *at rest* when it is
 * neither active nor asleep.
 *
 * Texts that come in are borrowed until the call returns; texts handed to a visitor are borrowed
 * from the store until the visitor returns. A visitor answers RV_OK to go on; anything else ends the
 * reading and is what the reading call returns. A visitor may not call the store it is called from.
 *
 * Reading goes by pages: a call that may have much to say takes a place to go on from and a limit
 * (SIZE_MAX: all), and never holds more than a page against the writer. So a long reading sees a
 * later moment with each page; what is append-only (journal, results, logs) is not changed by that.
 *
 * Thread: one at a time for each handle. A store and the readers made from it are handles of their
 * own: each may be used by a thread of its own, all at the same time. */
#ifndef RV_STORE_STORE_H
#define RV_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct rv__store;

enum { RV__STORE_LIST_MAX = 1000, RV__STORE_LIST_DEFAULT = 100 };

enum rv__store_level { STORE_DEBUG, STORE_INFO, STORE_WARNING, STORE_ERROR };

/* The row of a run. Every text may be "none" except the id. Times are wall-clock milliseconds, 0 =
 * not yet. (Several machines will add the owner of a run and its epoch here, and the epoch that a
 * commit expects to struct rv__store_write: a commit of a run with another epoch is then refused.) */
struct rv__store_run {
    struct rv__str id;
    struct rv__str workflow;    /* its name */
    struct rv__str version;     /* of its plan: the hash of a definition */
    struct rv__str status;      /* the name of its run status */
    struct rv__str input;       /* JSON */
    struct rv__str input_key;   /* hash of the canonical input as it was given */
    struct rv__str error;       /* JSON */
    struct rv__str failed_step; /* alias */
    struct rv__str suspension;  /* JSON */
    struct rv__str rerun_of;    /* id of the run that this one repeats */
    int64_t created_ms, started_ms, completed_ms;
    bool active;        /* something in it is alive, whatever its status says */
    int64_t wake_at_ms; /* it sleeps, and is wanted again then; 0 = it does not sleep */
    bool waiting;       /* for somebody: a signal, a decision */
    uint64_t number;    /* out: its place in the order in which runs were first written, from 1 */
    /* out, in lists: the row cannot be read. `number` is right, and the time by which it is listed; `id`
     * is there if that much could be read; `why` says what is wrong; everything else is none or 0. */
    bool damaged;
    struct rv__str why;
};

/* What changes in a run's row while it runs; the rest stays. All of these are replaced, so a text
 * that is "none" here is none then. */
struct rv__store_touch {
    struct rv__str status;
    bool active, waiting;
    int64_t wake_at_ms;
    int64_t completed_ms;
    struct rv__str error;
    struct rv__str failed_step;
    struct rv__str suspension;
};

/* A finished iteration. (run, key, index) is written once. Those of one write that have the same key and
 * follow each other are kept together, in whatever order they come: many in a write cost little. */
struct rv__store_result {
    struct rv__str key;
    int64_t index;
    struct rv__str json;
};

/* A large JSON text that facts refer to by its number. (run, number) is written once. */
struct rv__store_value {
    uint64_t number;
    struct rv__str json;
};

/* What became of a write in a commit that went well. */
enum rv__store_outcome {
    STORE_WRITTEN, /* all of it is on disk */
    STORE_REFUSED, /* nothing of it is, and it would be refused again: `why` says the reason */
};

/* A plan under its hash. Is the hash there already, nothing changes: equal hashes, equal texts. */
struct rv__store_definition {
    struct rv__str hash;
    struct rv__str json;
};

/* A line of a run's log. Every text may be "none" except the message. */
struct rv__store_log {
    uint64_t id;        /* out: increases over all runs, and with `seq` */
    struct rv__str run; /* out */
    int64_t at_ms;
    enum rv__store_level level;
    struct rv__str path; /* of the node, with iterations */
    struct rv__str step; /* alias */
    int64_t attempt;
    struct rv__str message;
    struct rv__str metadata; /* JSON */
    struct rv__str kind;     /* RV__STORE_STREAM: a piece of an answer that is not recorded yet */
};
#define RV__STORE_STREAM "stream"

/* What one run writes in a turn. A commit has at most one of these for a run. */
struct rv__store_write {
    struct rv__str run;
    uint64_t
        number; /* in: the run's, if it is known: saves a look-up; 0 = not known. out: the run's */
    struct rv__str facts; /* of its journal row; none = no row */
    const struct rv__store_result *results;
    size_t result_count;
    const struct rv__store_value *values;
    size_t value_count;
    const struct rv__store_run *row; /* replaces the run's row (its id is `run`); NULL = as it is */
    const struct rv__store_touch *touch; /* changes a row that exists; not together with `row` */
    struct rv__str snapshot; /* its state after `facts`; replaces the last one; none = keep */
    const struct rv__store_log *logs;
    size_t log_count;
    /* Paths of nodes whose answers `facts` record: their lines of kind RV__STORE_STREAM are deleted, those of
     * this write too. Only together with facts. */
    const struct rv__str *answered;
    size_t answered_count;
    const struct rv__store_definition *definitions; /* kept first, even if the write is refused */
    size_t definition_count;
    uint64_t seq;                   /* out: that of the journal row; 0 if there was none */
    enum rv__store_outcome outcome; /* out */
    rv_error why;                   /* out: of STORE_REFUSED */
};

/* A place among runs that are ordered by a time: go on behind it. */
struct rv__store_place {
    int64_t at_ms;
    uint64_t number;
};

enum { RV__STORE_OLDEST = 100 }; /* runs that `oldest_waiting` shows */

/* Which runs to list. A text that is "none" and a time that is 0 filter nothing. */
struct rv__store_query {
    struct rv__str workflow;
    struct rv__str status;
    bool waiting;               /* only those that wait for somebody */
    struct rv__str rerun_of;    /* only those that repeat this run */
    int64_t since_ms, until_ms; /* created at or after, created before */
    struct rv__str text;   /* part of id, workflow, error or input; ASCII case does not count */
    struct rv__str cursor; /* from the last list with the same filters; none = the newest */
    size_t limit;          /* 0 = 100; more than 1000 is 1000 */
    size_t input_bytes; /* of `input` the visitor gets its beginning, at most so much; 0 = none */
};

/* Which lines of the logs to read. */
struct rv__store_log_query {
    struct rv__str run;             /* none = all runs */
    struct rv__str step;            /* none = all steps */
    struct rv__str path;            /* of the node at this path and all in it; none = all */
    enum rv__store_level min_level; /* this one and graver ones */
    struct rv__str text;            /* part of the message; ASCII case does not count */
    int64_t attempt;                /* only of this one; 0 = of all */
    uint64_t after_id;
    size_t limit;
};

struct rv__store_stats {
    uint64_t commits;       /* that went well, since the store was opened */
    uint64_t failures;      /* commits that did not */
    uint64_t refused;       /* writes that were refused in commits that went well */
    int64_t last_commit_ns; /* how long the last one took, whatever came of it */
    int64_t wal_bytes;      /* written and not yet carried over into the store's file */
};

struct rv__store_usage {
    uint64_t runs;     /* all that have a row */
    uint64_t finished; /* those of them that are finished and at rest */
    uint64_t waiting;  /* those that wait for somebody */
    uint64_t bytes;    /* of everything in the store, without free space; an estimate */
    uint64_t last_seq; /* the last one given, to a journal row or a log line */
    uint64_t
        forgotten_seq; /* the last one that a forgotten run had: from there on none is missing */
};

typedef int rv__store_visit_run(void *arg, const struct rv__store_run *row);
typedef int rv__store_visit_row(void *arg, uint64_t seq, struct rv__str facts);
typedef int rv__store_visit_result(void *arg, int64_t index, struct rv__str json);
typedef int rv__store_visit_text(void *arg, uint64_t seq, struct rv__str text);
typedef int rv__store_visit_feed(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts);
typedef int rv__store_visit_log(void *arg, const struct rv__store_log *line);
typedef int rv__store_visit_count(void *arg, struct rv__str status, uint64_t runs);

/* Who is shown a whole run. None of them may be NULL. */
struct rv__store_visitor {
    rv__store_visit_run *run;         /* once, first */
    rv__store_visit_text *definition; /* once, then; not at all if the store has none */
    rv__store_visit_text *value;      /* then all values, by number, which is its `seq` */
    rv__store_visit_row *row;         /* these two by seq and id, which are one order */
    rv__store_visit_log *log;
};

/* Where the writes of an import come from. 1: *ret is the next, its texts borrowed until the call after
 * that; 0: there are no more; negative: it is to end, and nothing is to be written. */
typedef int rv__store_next_write(void *arg, struct rv__store_write *ret, rv_error *err);

/* How far a backup is, in pieces of any size. RV_OK to go on; anything else ends it. */
typedef int rv__store_progress(void *arg, uint64_t done, uint64_t total);

struct rv__store_ops {
    const char *name; /* "simulated", "sqlite" … */

    /* ---- writing. With a reader, or a store opened for reading only: RV_ESTATE. */

    /* Write everything in `writes` in one transaction, in this order, and fill in what is `out`.
     *
     * RV_OK: it is on disk, but for the writes whose outcome is STORE_REFUSED, with `why`: RV_EINVAL
     * (a run that has no row, here or from before; a result or value that exists; `row` together with
     * `touch`, or of another run), RV_ETOOBIG, RV_EPARSE (what is there of this run is damaged); where several
     * processes may write, RV_ESTATE and RV_EEXIST (another one wrote this run, or began it, meanwhile). Their
     * definitions are kept all the same, since other writes may need them.
     * Errors: RV_ENOMEM, RV_ESTORE (no room, a failing disk, a lock): nothing of any write is there,
     * every `seq` is untouched, and the same call may be made again. RV_EGONE: the store was deleted or
     * replaced, or another process took it over; where the writes are nobody will find them, and nothing will
     * ever be written again. All that write can fail so. */
    int (*commit)(struct rv__store *store, struct rv__store_write *writes, size_t count,
                  rv_error *err);

    /* Is it still where it was opened? RV_EGONE: it was deleted or replaced. Looks at names only, so it
     * answers whatever the writer is doing. NULL: it has no place to be gone from.   Thread: any. */
    int (*there)(struct rv__store *store, rv_error *err);

    /* Keep a plan's JSON under its hash; on disk when it returns.   Errors: RV_ENOMEM, RV_ESTORE. */
    int (*define)(struct rv__store *store, struct rv__str hash, struct rv__str json, rv_error *err);

    /* Forget runs and all that is theirs but their definitions. When it returns, no reading finds
     * them any more, and their ids are free; the space of what they wrote comes back a bounded piece
     * at a time: *ret_more says that there is some left, and the next call, with 0 runs if need be,
     * goes on with it (after a restart too). Runs that are not there are passed over.
     * Errors: RV_ESTATE (one is not finished or not at rest: none is forgotten), RV_EINVAL (more
     * than RV__STORE_LIST_MAX), RV_ENOMEM, RV_ESTORE. */
    int (*forget)(struct rv__store *store, const struct rv__str *runs, size_t count, bool *ret_more,
                  rv_error *err);

    /* Write a run that is not there yet, piece by piece, in one transaction: as commit, but that the
     * writes need not be in memory together. Each is about `run`; the first has its row. `next` may not
     * call the store.
     * Errors: RV_EEXIST (it is there already), those of commit and the reasons for which it refuses a
     * write, what `next` says: nothing of it is there, but perhaps its definition. */
    int (*import)(struct rv__store *store, struct rv__str run, rv__store_next_write *next,
                  void *arg, rv_error *err);

    /* ---- reading. Errors of all that follow: RV_ENOMEM, RV_ESTORE, and what the visitor says; of
     * those about one run or definition also RV_EPARSE: its record is damaged, and will be next time.
     *
     * The definition, the run's row, the run's snapshot with the seq of the last journal row that is
     * in it: visited once. RV_ENOTFOUND: there is none. */
    int (*definition)(struct rv__store *store, struct rv__str hash, rv__store_visit_text *visit,
                      void *arg, rv_error *err);
    int (*run)(struct rv__store *store, struct rv__str id, rv__store_visit_run *visit, void *arg,
               rv_error *err);
    int (*snapshot)(struct rv__store *store, struct rv__str run, rv__store_visit_text *visit,
                    void *arg, rv_error *err);

    /* A value of a run, visited once, with its number. RV_ENOTFOUND: there is none. */
    int (*value)(struct rv__store *store, struct rv__str run, uint64_t number,
                 rv__store_visit_text *visit, void *arg, rv_error *err);

    /* The run's journal rows with a seq above `after`, in order. No such run: no rows. */
    int (*journal)(struct rv__store *store, struct rv__str run, uint64_t after,
                   rv__store_visit_row *visit, void *arg, rv_error *err);

    /* The results of the run under `key` with an index of `from` or more, by index, `limit` of them at
     * most. None: no rows. Its cost is that of what it visits, wherever that begins. */
    int (*results)(struct rv__store *store, struct rv__str run, struct rv__str key, int64_t from,
                   size_t limit, rv__store_visit_result *visit, void *arg, rv_error *err);

    /* The seq of the journal row of the run's last write that had results; if that one had no facts, of
     * the last row before it. 0: there was none, or there is no such run. */
    int (*results_seq)(struct rv__store *store, struct rv__str run, uint64_t *ret, rv_error *err);

    /* ---- many runs. A row that cannot be read is visited as `damaged`, and the others follow.
     *
     * The active runs with a number above `after`, by number. */
    int (*active)(struct rv__store *store, uint64_t after, size_t limit, rv__store_visit_run *visit,
                  void *arg, rv_error *err);

    /* The runs that sleep until `now_ms` or before, by (wake_at_ms, number), behind `after` (NULL =
     * the earliest). */
    int (*due)(struct rv__store *store, int64_t now_ms, const struct rv__store_place *after,
               size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err);

    /* The earliest wake_at_ms above `after_ms` (INT64_MIN: of all); 0 = nobody sleeps until then. */
    int (*next_wake)(struct rv__store *store, int64_t after_ms, int64_t *ret, rv_error *err);

    /* The journal rows of all runs with a seq above `after`, in order: the committed feed. The facts of a
     * row that cannot be read are none. */
    int (*feed)(struct rv__store *store, uint64_t after, size_t limit, rv__store_visit_feed *visit,
                void *arg, rv_error *err);

    /* The runs that `query` asks for, the newest first by (created_ms, id). `cursor` (NULL: not
     * wanted) is emptied and gets the text to go on from; it stays empty when there is no more. A
     * call looks at a bounded number of rows, so that one with a `text`, or with two of workflow,
     * status, waiting and rerun_of, may bring fewer than `limit`, even none, and yet a cursor. A damaged row is visited
     * where nothing is asked of it that cannot be read any more.
     * Errors also: RV_EINVAL, the cursor is not one of ours. */
    int (*list)(struct rv__store *store, const struct rv__store_query *query,
                rv__store_visit_run *visit, void *arg, struct rv__buf *cursor, rv_error *err);

    /* Log lines by id. */
    int (*logs)(struct rv__store *store, const struct rv__store_log_query *query,
                rv__store_visit_log *visit, void *arg, rv_error *err);

    /* How many runs have each status, by name; a status that no run has is not visited. Its cost
     * does not depend on the number of runs. */
    int (*counts)(struct rv__store *store, rv__store_visit_count *visit, void *arg, rv_error *err);

    /* The runs that are finished and at rest, by (completed_ms, number), behind `after` (NULL = the
     * oldest), without their input: what may be forgotten. */
    int (*finished)(struct rv__store *store, const struct rv__store_place *after, size_t limit,
                    rv__store_visit_run *visit, void *arg, rv_error *err);

    /* The runs that wait for somebody, the oldest first by (created_ms, id), without their input; at most
     * RV__STORE_OLDEST. Its cost does not depend on how many there are. */
    int (*oldest_waiting)(struct rv__store *store, size_t limit, rv__store_visit_run *visit,
                          void *arg, rv_error *err);

    /* All that a run has, but for its results and snapshot, which follow from the rest: as it is at one
     * moment, however long the visitors take, and in no more memory than a row needs. As long as it
     * lasts the WAL cannot begin anew, so a visitor waits for nobody. RV_ENOTFOUND: there is no such run. */
    int (*whole)(struct rv__store *store, struct rv__str run,
                 const struct rv__store_visitor *visitor, void *arg, rv_error *err);

    /* Copy the whole store, as it is at one moment, into a file that is there and empty, and read the
     * copy over. Whoever writes goes on meanwhile (not with ":memory:"). It is not synced.
     * Errors also: RV_ESTATE: this store is none that a file could hold; what `progress` says. */
    int (*backup)(struct rv__store *store, const char *path, rv__store_progress *progress,
                  void *arg, rv_error *err);

    /* How much there is. Its cost does not depend on the number of runs. */
    int (*usage)(struct rv__store *store, struct rv__store_usage *ret, rv_error *err);

    /* Of a writer: how its commits went. Costs nothing. */
    void (*stats)(struct rv__store *store, struct rv__store_stats *ret);

    /* A second handle on the same store, for reading only, that another thread may use at the same
     * time. Close it before the store.   Errors: RV_ENOMEM, RV_ESTORE. */
    int (*reader)(struct rv__store *store, struct rv__store **ret, rv_error *err);

    /* Close it. What was committed stays, where the store outlives its process. */
    void (*close)(struct rv__store *store);
};

/* The head of every store: its own struct begins with this. */
struct rv__store {
    const struct rv__store_ops *ops;
};

/* How to open a store. A zero field means the default named beside it. */
struct rv__store_opts {
    const char *path;        /* a file, made if it is not there; ":memory:" = gone when closed; or
                              * "postgres://…" */
    bool read_only;          /* never locked out, and nothing is made or changed */
    int64_t busy_timeout_ms; /* how long a call waits for another program's lock; 0 = 5000 */
    size_t max_row_bytes;    /* a longer row is refused; for tests; 0 = SQLite's own: 10^9 bytes */
    int64_t
        reader_wait_ms; /* how long the writer waits for readers of an old WAL; for tests; 0 = 1000 */
    uint32_t tail_rows; /* how far SQLite's heads may be behind; for tests; 0 = 50000 */
    const char *vfs;    /* of SQLite, for tests; NULL = the system's */
};

/* Open a store: a file of SQLite's, or a database of PostgreSQL's.
 *
 * One process writes at a time, all the others may read: a second writer is told who the first is.
 * Creates and upgrades the schema as needed; a newer one is refused, and nothing is touched. On
 * success *ret is a store to give to rv__store_close().
 *
 * Errors: RV_EINVAL, RV_ENOMEM, RV_EBUSY (another process writes), RV_ESTORE.   Thread: any. */
int rv__store_open(const struct rv__store_opts *opts, struct rv__store **ret, rv_error *err);

/* Does `text` contain `part`, where the case of ASCII letters does not count? What `text` in a query
 * means, for all stores. None contains nothing; everything else contains the empty part. */
bool rv__store_contains(struct rv__str text, struct rv__str part);

/* Is this what the query asks for, whichever run and place it has? For stores. */
bool rv__store_log_matches(const struct rv__store_log_query *query,
                           const struct rv__store_log *line);

/* Is the write one that any store can take? For stores.   Errors: RV_EINVAL. */
int rv__store_check_write(const struct rv__store_write *write, rv_error *err);

/* The cursor of a list, for stores: where its last row stands. RV_EINVAL: it is none of ours. The id
 * is a part of `cursor`. */
int rv__store_cursor_read(struct rv__str cursor, int64_t *created_ms, struct rv__str *id,
                          rv_error *err);
void rv__store_cursor_write(struct rv__buf *cursor, const struct rv__store_run *row);

/* For stores: the newest place from which the list may begin, behind the cursor and before `until_ms`; the id is a part of
 * the query. And whether a row is one that is asked for, by its texts. */
int rv__store_query_start(const struct rv__store_query *query, int64_t *created_ms,
                          struct rv__str *id, rv_error *err);
bool rv__store_query_takes(const struct rv__store_query *query, const struct rv__store_run *row);

/* For stores: the part of a run's input that the visitor of this list gets. */
struct rv__str rv__store_query_input(const struct rv__store_query *query, struct rv__str input);

static inline int rv__store_commit(struct rv__store *store, struct rv__store_write *writes,
                                   size_t count, rv_error *err)
{
    return store->ops->commit(store, writes, count, err);
}

static inline int rv__store_there(struct rv__store *store, rv_error *err)
{
    return store->ops->there != NULL ? store->ops->there(store, err) : RV_OK;
}

/* Commit a single write, and return why it was refused, if it was. */
int rv__store_commit_one(struct rv__store *store, struct rv__store_write *write, rv_error *err);

static inline int rv__store_define(struct rv__store *store, struct rv__str hash,
                                   struct rv__str json, rv_error *err)
{
    return store->ops->define(store, hash, json, err);
}

static inline int rv__store_forget(struct rv__store *store, const struct rv__str *runs,
                                   size_t count, bool *ret_more, rv_error *err)
{
    return store->ops->forget(store, runs, count, ret_more, err);
}

static inline int rv__store_import(struct rv__store *store, struct rv__str run,
                                   rv__store_next_write *next, void *arg, rv_error *err)
{
    return store->ops->import(store, run, next, arg, err);
}

static inline int rv__store_definition(struct rv__store *store, struct rv__str hash,
                                       rv__store_visit_text *visit, void *arg, rv_error *err)
{
    return store->ops->definition(store, hash, visit, arg, err);
}

static inline int rv__store_run(struct rv__store *store, struct rv__str id,
                                rv__store_visit_run *visit, void *arg, rv_error *err)
{
    return store->ops->run(store, id, visit, arg, err);
}

static inline int rv__store_snapshot(struct rv__store *store, struct rv__str run,
                                     rv__store_visit_text *visit, void *arg, rv_error *err)
{
    return store->ops->snapshot(store, run, visit, arg, err);
}

static inline int rv__store_value_read(struct rv__store *store, struct rv__str run, uint64_t number,
                                       rv__store_visit_text *visit, void *arg, rv_error *err)
{
    return store->ops->value(store, run, number, visit, arg, err);
}

static inline int rv__store_journal(struct rv__store *store, struct rv__str run, uint64_t after,
                                    rv__store_visit_row *visit, void *arg, rv_error *err)
{
    return store->ops->journal(store, run, after, visit, arg, err);
}

/* All of them: from INT64_MIN, with the limit SIZE_MAX. */
static inline int rv__store_results(struct rv__store *store, struct rv__str run, struct rv__str key,
                                    int64_t from, size_t limit, rv__store_visit_result *visit,
                                    void *arg, rv_error *err)
{
    return store->ops->results(store, run, key, from, limit, visit, arg, err);
}

static inline int rv__store_results_seq(struct rv__store *store, struct rv__str run, uint64_t *ret,
                                        rv_error *err)
{
    return store->ops->results_seq(store, run, ret, err);
}

/* All active runs. */
static inline int rv__store_active(struct rv__store *store, rv__store_visit_run *visit, void *arg,
                                   rv_error *err)
{
    return store->ops->active(store, 0, SIZE_MAX, visit, arg, err);
}

static inline int rv__store_active_after(struct rv__store *store, uint64_t after, size_t limit,
                                         rv__store_visit_run *visit, void *arg, rv_error *err)
{
    return store->ops->active(store, after, limit, visit, arg, err);
}

static inline int rv__store_due(struct rv__store *store, int64_t now_ms,
                                const struct rv__store_place *after, size_t limit,
                                rv__store_visit_run *visit, void *arg, rv_error *err)
{
    return store->ops->due(store, now_ms, after, limit, visit, arg, err);
}

static inline int rv__store_next_wake(struct rv__store *store, int64_t after_ms, int64_t *ret,
                                      rv_error *err)
{
    return store->ops->next_wake(store, after_ms, ret, err);
}

static inline int rv__store_feed(struct rv__store *store, uint64_t after, size_t limit,
                                 rv__store_visit_feed *visit, void *arg, rv_error *err)
{
    return store->ops->feed(store, after, limit, visit, arg, err);
}

static inline int rv__store_list(struct rv__store *store, const struct rv__store_query *query,
                                 rv__store_visit_run *visit, void *arg, struct rv__buf *cursor,
                                 rv_error *err)
{
    return store->ops->list(store, query, visit, arg, cursor, err);
}

static inline int rv__store_logs(struct rv__store *store, const struct rv__store_log_query *query,
                                 rv__store_visit_log *visit, void *arg, rv_error *err)
{
    return store->ops->logs(store, query, visit, arg, err);
}

static inline int rv__store_counts(struct rv__store *store, rv__store_visit_count *visit, void *arg,
                                   rv_error *err)
{
    return store->ops->counts(store, visit, arg, err);
}

static inline int rv__store_finished(struct rv__store *store, const struct rv__store_place *after,
                                     size_t limit, rv__store_visit_run *visit, void *arg,
                                     rv_error *err)
{
    return store->ops->finished(store, after, limit, visit, arg, err);
}

static inline int rv__store_oldest_waiting(struct rv__store *store, size_t limit,
                                           rv__store_visit_run *visit, void *arg, rv_error *err)
{
    return store->ops->oldest_waiting(store, limit < RV__STORE_OLDEST ? limit : RV__STORE_OLDEST,
                                      visit, arg, err);
}

static inline int rv__store_whole(struct rv__store *store, struct rv__str run,
                                  const struct rv__store_visitor *visitor, void *arg, rv_error *err)
{
    return store->ops->whole(store, run, visitor, arg, err);
}

static inline int rv__store_backup(struct rv__store *store, const char *path,
                                   rv__store_progress *progress, void *arg, rv_error *err)
{
    return store->ops->backup(store, path, progress, arg, err);
}

static inline int rv__store_usage(struct rv__store *store, struct rv__store_usage *ret,
                                  rv_error *err)
{
    return store->ops->usage(store, ret, err);
}

static inline void rv__store_stats(struct rv__store *store, struct rv__store_stats *ret)
{
    store->ops->stats(store, ret);
}

static inline int rv__store_reader(struct rv__store *store, struct rv__store **ret, rv_error *err)
{
    return store->ops->reader(store, ret, err);
}

static inline void rv__store_close(struct rv__store *store) /* NULL is allowed */
{
    if (store != NULL)
        store->ops->close(store);
}

#endif
