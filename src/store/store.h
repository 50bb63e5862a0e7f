/* store.h: where runs are kept. A table of functions that every store implements.
 *
 * What is kept:
 *
 *   journal      seq, run, facts     append-only; one row for each run and turn
 *   runs         one row per run     an index: active runs, wake-up times, lists and filters
 *   results      run, key, index     finished iterations, which have left the cell
 *   values       run, number         large texts that facts refer to
 *   snapshots    run, seq, state     the latest of each run: its state after the rows up to seq
 *   definitions  hash, plan          each version of a plan once
 *   logs         id, run, line       the log lines of the steps
 *   marks        name, position      how far those who follow the feed have come
 *
 * Rules for every store, checked by tests/unit/store/store_suite.c:
 *
 * 1. A commit is one transaction: after a failure or crash, all of it is there or nothing.
 * 2. When commit returns RV_OK, it is on disk, and each write has its outcome: it was written, or it was
 *    refused for good and nothing of it is there. When commit fails, no reader sees anything of any write,
 *    and the same commit may be tried again, unchanged. There is one exception: if the process ends after
 *    such a failure, and before a later commit succeeded, the failed commit may be found when the store is
 *    opened again, because its last bytes were on their way. Nobody was told about it, so this does no
 *    harm. A database that cannot be reached is such a case too: once it can be reached, the same commit
 *    finds out whether it is there, and is not written twice.
 * 3. `seq` strictly increases with each journal row in the order of commits, over all runs, restarts and
 *    deletions; a number that was seen is never used again. There may be gaps. The ids of log lines come
 *    from the same counter; those of a write come before the seq of its journal row, so that the two
 *    together are one order. The numbers of runs have a counter of their own, with the same rules.
 * 4. Readers see committed data only. Data that was accepted when it was written is never refused for its
 *    size when it is read.
 * 5. The file is not trusted. A record that cannot be read is an error of its run only (RV_EPARSE), and
 *    calls that visit many runs continue with the others.
 *
 * A store keeps texts and does not know what they mean: a status is a name; a run is *finished* when
 * its `completed_ms` is not 0, *asleep* when its `wake_at_ms` is not 0, and *at rest* when it is
 * neither active nor asleep.
 *
 * Texts passed in are borrowed until the call returns; texts passed to a visitor are borrowed from the
 * store until the visitor returns. A visitor returns RV_OK to continue; any other value ends the reading,
 * and the reading call returns it. A visitor may not call the store that it is called from.
 * Reading works in pages: a call that may return much takes a position to continue from and a limit
 * (SIZE_MAX: all), and never holds a read transaction for more than a page. So each page of a long reading
 * may be from a later moment; append-only data (journal, results, logs) is not affected by that.
 *
 * Thread: one at a time for each handle. A store and the readers made from it are separate handles: each
 * may be used by its own thread, all at the same time. */
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
 * not yet. */
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
    bool active;        /* something in it is active, whatever its status is */
    int64_t wake_at_ms; /* it sleeps until then; 0 = it does not sleep */
    bool waiting;       /* for a person: a signal, a decision */
    uint64_t number;    /* out: its number in the order in which runs were first written, from 1 */
    /* out, in lists: the row cannot be read. `number` and the time by which it is listed are right; `id`
     * is set if it could be read; `why` says what is wrong; everything else is none or 0. */
    bool damaged;
    struct rv__str why;
};

/* The columns of a run's row that change while it runs. All of them are replaced, so a text that is
 * "none" here becomes none. */
struct rv__store_touch {
    struct rv__str status;
    bool active, waiting;
    int64_t wake_at_ms;
    int64_t completed_ms;
    struct rv__str error;
    struct rv__str failed_step;
    struct rv__str suspension;
    /* With several members, for an active run: its owner from now on. 0: the writer, as before; RV__STORE_NOBODY:
     * nobody, since the writer cannot continue it; else that member, if it lives. */
    int64_t to;
    struct rv__str lacks; /* with RV__STORE_NOBODY: the missing function, if that is why */
};
enum { RV__STORE_NOBODY = -1 };

/* A finished iteration. (run, key, index) is written once. Consecutive results of one write with the same
 * key are stored together, in any order, so many results in a write cost little. */
struct rv__store_result {
    struct rv__str key;
    int64_t index;
    struct rv__str json;
};

/* A large JSON text that facts refer to by number. (run, number) is written once. */
struct rv__store_value {
    uint64_t number;
    struct rv__str json;
};

/* The outcome of a write in a successful commit. */
enum rv__store_outcome {
    STORE_WRITTEN, /* all of it is on disk */
    STORE_REFUSED, /* nothing of it is, and it would be refused again: `why` has the reason */
};

/* A plan under its hash. If the hash exists, nothing changes: equal hashes mean equal texts. */
struct rv__store_definition {
    struct rv__str hash;
    struct rv__str json;
};

/* A line of a run's log. Every text may be "none" except the message. */
struct rv__store_log {
    uint64_t id;        /* out: increases over all runs, in one order with `seq` */
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

/* The data that one run writes in a turn. A commit has at most one of these for each run. */
struct rv__store_write {
    struct rv__str run;
    uint64_t number; /* in: the run's number, if known (saves a look-up), else 0. out: its number */
    uint64_t
        after; /* in, if several processes write: the run's last seq, or it is refused; 0 = unknown */
    struct rv__str facts; /* of its journal row; none = no row */
    const struct rv__store_result *results;
    size_t result_count;
    const struct rv__store_value *values;
    size_t value_count;
    const struct rv__store_run
        *row;    /* replaces the run's row (its id is `run`); NULL = unchanged */
    bool begins; /* if several processes write, with `row`: RV_EEXIST if the run exists */
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
    uint64_t seq;                   /* out: of the journal row; 0 = no row */
    enum rv__store_outcome outcome; /* out */
    rv_error why;                   /* out: with STORE_REFUSED */
};

/* A position among runs that are ordered by a time: continue after it. */
struct rv__store_place {
    int64_t at_ms;
    uint64_t number;
};

enum { RV__STORE_ASKED_MOST = 64 }; /* requests that `asked` shows at once */
enum { RV__STORE_OLDEST = 100 };    /* most runs that `oldest_waiting` visits */

/* Which runs to list. A text that is "none" or a time that is 0 does not filter. */
struct rv__store_query {
    struct rv__str workflow;
    struct rv__str status;
    bool waiting;               /* only runs that wait for a person */
    struct rv__str rerun_of;    /* only runs that repeat this run */
    int64_t since_ms, until_ms; /* created at or after, created before */
    struct rv__str text;        /* a part of id, workflow, error or input; ASCII case is ignored */
    struct rv__str cursor;      /* from the last list with the same filters; none = the newest */
    size_t limit;               /* 0 = 100; more than 1000 is 1000 */
    size_t input_bytes; /* of `input` the visitor gets its beginning, at most so much; 0 = none */
};

/* Which lines of the logs to read. */
struct rv__store_log_query {
    struct rv__str run;             /* none = all runs */
    struct rv__str step;            /* none = all steps */
    struct rv__str path;            /* the node at this path and all nodes in it; none = all */
    enum rv__store_level min_level; /* this level and above */
    struct rv__str text;            /* a part of the message; ASCII case is ignored */
    int64_t attempt;                /* only this attempt; 0 = all */
    uint64_t after_id;
    size_t limit;
};

struct rv__store_stats {
    uint64_t commits;       /* successful ones, since the store was opened */
    uint64_t failures;      /* failed ones */
    uint64_t refused;       /* writes refused in successful commits */
    int64_t last_commit_ns; /* how long the last commit took, successful or not */
    int64_t wal_bytes;      /* in the WAL, not yet copied to the store's file */
};

struct rv__store_usage {
    uint64_t runs;          /* all runs with a row */
    uint64_t finished;      /* of these, finished and at rest */
    uint64_t waiting;       /* of these, waiting for a person */
    uint64_t bytes;         /* of all data, without free space; an estimate */
    uint64_t last_seq;      /* the last number used, for a journal row or a log line */
    uint64_t forgotten_seq; /* the last number of a deleted run: after it, none is missing */
};

typedef int rv__store_visit_run(void *arg, const struct rv__store_run *row);
typedef int rv__store_visit_row(void *arg, uint64_t seq, struct rv__str facts);
typedef int rv__store_visit_result(void *arg, int64_t index, struct rv__str json);
typedef int rv__store_visit_text(void *arg, uint64_t seq, struct rv__str text);
typedef int rv__store_visit_feed(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts);
typedef int rv__store_visit_log(void *arg, const struct rv__store_log *line);
typedef int rv__store_visit_count(void *arg, struct rv__str status, uint64_t runs);

/* Visitors of a whole run. None of them may be NULL. */
struct rv__store_visitor {
    rv__store_visit_run *run;         /* once, first */
    rv__store_visit_text *definition; /* once, next; not called if the store has none */
    rv__store_visit_text *value;      /* then for each value, by number (passed as `seq`) */
    rv__store_visit_row *row;         /* then these two, ordered by seq and id together */
    rv__store_visit_log *log;
};

/* ---- members: several processes that write to one store, each on its own runs (ADR 0061). */

/* What became of the member that a run belonged to. */
enum rv__store_orphan {
    STORE_NOBODYS, /* it belonged to no member */
    STORE_DIED,    /* its process is known to have died */
    STORE_EXPIRED, /* its lease has expired */
    STORE_LEFT,    /* it left in an orderly way */
};

/* Which runs a member claims: those without an owner, or whose owner has ended. Of runs that were given up for
 * lack of a function (rv__store_touch.lacks), only those whose function it has and that it did not give up
 * itself. */
struct rv__store_claim {
    int64_t member; /* the claiming member */
    bool any;       /* runs of all workflows; else only of these: */
    const struct rv__str *workflows;
    size_t workflow_count;
    const struct rv__str *functions; /* their names */
    size_t function_count;
    bool due; /* those that sleep until `due_ms` or before, after `after`; else active ones */
    int64_t due_ms;
    struct rv__store_place after;
    bool own;   /* not due: those that it owns already, by number after `after` */
    bool given; /* with `own`: only those that others gave to it */
    /* not due: also those that it gave up itself, since it has other functions now; by number after `after` */
    bool anew;
    size_t limit;
};

struct rv__store_claimed {
    struct rv__str id;
    uint64_t number;
    int64_t wake_at_ms;
    enum rv__store_orphan from;
};

struct rv__store_member {
    int64_t id;
    struct rv__str holder;  /* its process and machine, for people */
    struct rv__str version; /* of its program */
    struct rv__str workers; /* where workers reach it, "tls://HOST:PORT"; none: it does not say */
    int64_t since_ms, lease_until_ms;
    uint64_t runs; /* that it owns */
};
enum { RV__STORE_ADDRESS_SIZE = 320 }; /* of `workers`, with a NUL */

typedef int rv__store_visit_claimed(void *arg, const struct rv__store_claimed *run);
typedef int rv__store_visit_member(void *arg, const struct rv__store_member *member);

/* How far somebody who follows the feed has come, by a name that he chose. With several members, at most one of those that
 * live has a mark: it is the one that may act on what it reads (ADR 0055). */
struct rv__store_mark {
    struct rv__str name;
    uint64_t seq, index; /* both are the caller's: the store compares nothing */
    bool gone;           /* in, to move_marks: delete it */
    bool ours;           /* out: the caller has it; with a single writing process it always does */
    bool free;           /* out, to visitors: no member that lives has it */
};
typedef int rv__store_visit_mark(void *arg, const struct rv__store_mark *mark);

/* The source of the writes of an import. 1: *ret is the next write, its texts borrowed until the call after
 * that; 0: there are no more; negative: stop, and write nothing. */
typedef int rv__store_next_write(void *arg, struct rv__store_write *ret, rv_error *err);

/* The progress of a backup, in units of any size. Return RV_OK to continue; anything else stops it. */
typedef int rv__store_progress(void *arg, uint64_t done, uint64_t total);

struct rv__store_ops {
    const char *name; /* "simulated", "sqlite" … */

    /* ---- writing. On a reader, or a store opened for reading only: RV_ESTATE. */

    /* Write everything in `writes` in one transaction, in this order, and fill in the `out` members.
     *
     * RV_OK: all is on disk, except writes whose outcome is STORE_REFUSED, with `why`: RV_EINVAL
     * (the run has no row, neither here nor before; a result or value exists; `row` together with
     * `touch`, or of another run), RV_ETOOBIG, RV_EPARSE (the stored data of this run is damaged); if several
     * processes may write, RV_ESTATE and RV_EEXIST (another process wrote, or created, this run meanwhile).
     * Their definitions are kept anyway, since other writes may need them.
     * Errors: RV_ENOMEM, RV_ESTORE (no space, a failing disk, a lock): nothing of any write is there,
     * every `seq` is unchanged, and the same call may be repeated. RV_EGONE: the store was deleted or
     * replaced, or another process took it over: the writes would be lost, and nothing will ever be written
     * again. All functions that write can fail with it. */
    int (*commit)(struct rv__store *store, struct rv__store_write *writes, size_t count,
                  rv_error *err);

    /* Does the store still exist? RV_EGONE: it was deleted or replaced. Checks names only, so it
     * returns at once whatever the writer is doing. NULL: this store cannot be deleted.   Thread: any. */
    int (*there)(struct rv__store *store, rv_error *err);

    /* Store a plan's JSON under its hash; on disk when it returns.   Errors: RV_ENOMEM, RV_ESTORE. */
    int (*define)(struct rv__store *store, struct rv__str hash, struct rv__str json, rv_error *err);

    /* Delete runs with everything that belongs to them, except their definitions. When it returns, no reader
     * finds them any more, and their ids are free. The space is freed in bounded pieces: *ret_more says that
     * more is left, and the next call continues, with 0 runs if need be (also after a restart). Runs that
     * do not exist are skipped.
     * Errors: RV_ESTATE (one is not finished or not at rest: none is deleted), RV_EINVAL (more
     * than RV__STORE_LIST_MAX), RV_ENOMEM, RV_ESTORE. */
    int (*forget)(struct rv__store *store, const struct rv__str *runs, size_t count, bool *ret_more,
                  rv_error *err);

    /* Write a new run in one transaction, like commit, but without having all writes in memory. Each write is
     * about `run`; the first has its row. `next` may not call the store.
     * Errors: RV_EEXIST (it exists), those of commit and the reasons why it refuses a write, and those of
     * `next`: nothing of the run is there, except perhaps its definition. */
    int (*import)(struct rv__store *store, struct rv__str run, rv__store_next_write *next,
                  void *arg, rv_error *err);

    /* Take marks that no other member has: one that does not exist yet is made, at the given position; of one that
     * exists, seq and index are set to its own. And move, or delete, marks that the caller has. In one transaction;
     * all names are different; a mark that is not `ours` afterwards was not changed, or is deleted.
     * Errors: RV_ENOMEM, RV_ESTORE (it is unknown whether it was done: try again), RV_EGONE. */
    int (*take_marks)(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                      rv_error *err);
    int (*move_marks)(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                      rv_error *err);

    /* ---- members. NULL in stores with a single writing process; see rv__store_opts.member.
     *
     * A member has a lease, which every commit renews. Any member that finds it expired ends that member: all
     * writes of the ended member then fail (RV_EGONE), and its runs may be claimed. A run that is written as not
     * active belongs to no member.
     *
     * For the store itself. rejoin: become a new member, without runs; renew: renew the lease, and say where workers reach it
     * ("": nowhere); part: end in an orderly way, and free its runs. Errors: RV_ESTORE; renew: RV_EGONE, it was ended. */
    int (*rejoin)(struct rv__store *store, rv_error *err);
    int (*renew)(struct rv__store *store, const char *workers, rv_error *err);
    int (*part)(struct rv__store *store, rv_error *err);
    int64_t (*member)(const struct rv__store *store); /* its id, above 0 */

    /* Another handle, for another thread: it can read, and call all functions below. Close it before the store. */
    int (*aide)(struct rv__store *store, struct rv__store **ret, rv_error *err);

    /* End the members whose lease has expired, or whose process on this machine has died; *ret: how many. */
    int (*expire)(struct rv__store *aide, size_t *ret, rv_error *err);
    /* Claim some runs for the member; each is visited.   RV_EGONE: the member was ended. If the answer is lost
     * (RV_ESTORE), some may be claimed nevertheless: `own` finds them. */
    int (*claim)(struct rv__store *aide, const struct rv__store_claim *claim,
                 rv__store_visit_claimed *visit, void *arg, rv_error *err);
    /* Claim one run. *ret_owner: its owner now, this member or another live one; *ret_from: if it was claimed just
     * now, what became of its old owner.   RV_ENOTFOUND, RV_EGONE. */
    int (*claim_run)(struct rv__store *aide, int64_t member, struct rv__str run, int64_t *ret_owner,
                     enum rv__store_orphan *ret_from, rv_error *err);
    /* The owner of the run; 0: nobody. *ret_lacks: its last owner gave it up, because it could not continue it.
     * RV_ENOTFOUND. */
    int (*owner)(struct rv__store *aide, struct rv__str run, int64_t *ret_owner, bool *ret_lacks,
                 rv_error *err);
    /* All members that live, by id. Any handle. `reachable`: those that workers can reach, without their runs: cheap. */
    int (*members)(struct rv__store *store, bool reachable, rv__store_visit_member *visit,
                   void *arg, rv_error *err);

    /* Send a request to another member. RV_ECLOSED: that member has ended. */
    int (*ask)(struct rv__store *aide, int64_t to, struct rv__str request, uint64_t *ret_id,
               rv_error *err);
    /* Visit the requests to `member` that were not visited yet. */
    int (*asked)(struct rv__store *aide, int64_t member, rv__store_visit_text *visit, void *arg,
                 rv_error *err);
    int (*answer)(struct rv__store *aide, uint64_t id, struct rv__str answer, rv_error *err);
    /* Visit the answer, once; RV_EBUSY: none yet. RV_ECLOSED: the request was not taken, and never will be;
     * RV_EFAILED: it was taken, but there will be no answer: it is unknown whether it was done. `give_up`: withdraw
     * the request. */
    int (*answered)(struct rv__store *aide, uint64_t id, bool give_up, rv__store_visit_text *visit,
                    void *arg, rv_error *err);
    /* Wait until there may be a request, an answer or an ended member; at most timeout_ms.   RV_ESTORE. */
    int (*await)(struct rv__store *aide, int64_t timeout_ms, rv_error *err);

    /* ---- reading. Errors of all functions below: RV_ENOMEM, RV_ESTORE, and what the visitor returns; of
     * those about one run or definition also RV_EPARSE: its record is damaged for good.
     *
     * The definition; the run's row; the run's snapshot, with the seq of the last journal row that it
     * includes: visited once. RV_ENOTFOUND: there is none. */
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

    /* The results of the run under `key` with an index of `from` or more, by index, at most `limit`. The cost
     * depends only on how many are visited. */
    int (*results)(struct rv__store *store, struct rv__str run, struct rv__str key, int64_t from,
                   size_t limit, rv__store_visit_result *visit, void *arg, rv_error *err);

    /* The seq of the journal row of the run's last write with results; if that write had no facts, of the
     * last row before it. 0: there is none, or no such run. */
    int (*results_seq)(struct rv__store *store, struct rv__str run, uint64_t *ret, rv_error *err);

    /* ---- many runs. A row that cannot be read is visited as `damaged`, and the others follow.
     *
     * The active runs with a number above `after`, by number. */
    int (*active)(struct rv__store *store, uint64_t after, size_t limit, rv__store_visit_run *visit,
                  void *arg, rv_error *err);

    /* The runs that sleep until `now_ms` or earlier, by (wake_at_ms, number), after `after` (NULL = from
     * the earliest). */
    int (*due)(struct rv__store *store, int64_t now_ms, const struct rv__store_place *after,
               size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err);

    /* The earliest wake_at_ms above `after_ms` (INT64_MIN: of all); 0 = none. */
    int (*next_wake)(struct rv__store *store, int64_t after_ms, int64_t *ret, rv_error *err);

    /* The journal rows of all runs with a seq above `after`, in order: the committed feed. If the facts of a
     * row cannot be read, they are none. */
    int (*feed)(struct rv__store *store, uint64_t after, size_t limit, rv__store_visit_feed *visit,
                void *arg, rv_error *err);

    /* The runs that match `query`, newest first by (created_ms, id). `cursor` (NULL: not wanted) is emptied and
     * gets the text to continue from; it stays empty at the end. A call reads a bounded number of rows, so a
     * query with a `text`, or with two of workflow, status, waiting and rerun_of, may return fewer than `limit`,
     * even none, and still a cursor. A damaged row is visited if the query needs nothing that cannot be read.
     * Errors also: RV_EINVAL, the cursor is not ours. */
    int (*list)(struct rv__store *store, const struct rv__store_query *query,
                rv__store_visit_run *visit, void *arg, struct rv__buf *cursor, rv_error *err);

    /* Log lines by id. */
    int (*logs)(struct rv__store *store, const struct rv__store_log_query *query,
                rv__store_visit_log *visit, void *arg, rv_error *err);

    /* The number of runs with each status, by name; a status without runs is not visited. The cost does
     * not depend on the number of runs. */
    int (*counts)(struct rv__store *store, rv__store_visit_count *visit, void *arg, rv_error *err);

    /* All marks, by name. */
    int (*marks)(struct rv__store *store, rv__store_visit_mark *visit, void *arg, rv_error *err);

    /* The runs that are finished and at rest, by (completed_ms, number), after `after` (NULL = from the
     * oldest), without their input: these may be deleted. */
    int (*finished)(struct rv__store *store, const struct rv__store_place *after, size_t limit,
                    rv__store_visit_run *visit, void *arg, rv_error *err);

    /* The runs that wait for a person, oldest first by (created_ms, id), without their input; at most
     * RV__STORE_OLDEST. The cost does not depend on how many there are. */
    int (*oldest_waiting)(struct rv__store *store, size_t limit, rv__store_visit_run *visit,
                          void *arg, rv_error *err);

    /* Everything of a run, except its results and snapshot, which follow from the rest: a consistent snapshot,
     * however long the visitors take, with no more memory than one row needs. While it runs, the WAL cannot be
     * restarted, so visitors must not wait for anything. RV_ENOTFOUND: there is no such run. */
    int (*whole)(struct rv__store *store, struct rv__str run,
                 const struct rv__store_visitor *visitor, void *arg, rv_error *err);

    /* Copy a consistent snapshot of the whole store into an existing, empty file, and read the copy to verify
     * it. Writers continue meanwhile (not with ":memory:"). The file is not synced.
     * Errors also: RV_ESTATE: this store cannot be copied to a file; what `progress` returns. */
    int (*backup)(struct rv__store *store, const char *path, rv__store_progress *progress,
                  void *arg, rv_error *err);

    /* How much the store contains. The cost does not depend on the number of runs. */
    int (*usage)(struct rv__store *store, struct rv__store_usage *ret, rv_error *err);

    /* Statistics of a writer's commits. Takes no time. */
    void (*stats)(struct rv__store *store, struct rv__store_stats *ret);

    /* A second handle on the same store, for reading only, that another thread may use at the same time.
     * Close it before the store.   Errors: RV_ENOMEM, RV_ESTORE. */
    int (*reader)(struct rv__store *store, struct rv__store **ret, rv_error *err);

    /* Close it. Committed data stays, if this kind of store outlives its process. */
    void (*close)(struct rv__store *store);
};

/* The head of every store: its own struct begins with this. */
struct rv__store {
    const struct rv__store_ops *ops;
};

/* How to open a store. A zero field means the default named beside it. */
struct rv__store_opts {
    const char *path; /* a file, created if it does not exist; ":memory:" = not kept; or
                              * "postgres://…" */
    bool read_only;   /* never blocked by a writer; creates and changes nothing */
    bool member;      /* share it with other processes; RV_EINVAL: this kind cannot be shared */
    int64_t lease_ms; /* of a member; 0 = 10000 */
    int64_t busy_timeout_ms; /* how long a call waits for another program's lock; 0 = 5000 */
    size_t max_row_bytes; /* longer rows are refused; for tests; 0 = SQLite's limit: 10^9 bytes */
    int64_t
        reader_wait_ms; /* how long the writer waits for readers of an old WAL; for tests; 0 = 1000 */
    uint32_t tail_rows; /* how far SQLite's heads may lag behind; for tests; 0 = 50000 */
    const char *vfs;    /* of SQLite, for tests; NULL = the system's */
};

/* Open a store: an SQLite file, or a PostgreSQL database.
 *
 * One process writes at a time; all others may read. A second writer is refused, and the error names the
 * first. Creates and upgrades the schema as needed; a newer schema is refused, and nothing is changed. On
 * success, close *ret with rv__store_close().
 *
 * Errors: RV_EINVAL, RV_ENOMEM, RV_EBUSY (another process writes), RV_ESTORE.   Thread: any. */
int rv__store_open(const struct rv__store_opts *opts, struct rv__store **ret, rv_error *err);

/* Does `text` contain `part`, ignoring the case of ASCII letters? This is what `text` in a query means, for
 * all stores. "None" contains nothing; any other text contains the empty part. */
bool rv__store_contains(struct rv__str text, struct rv__str part);

/* Does the line match the query, apart from run and position? For stores. */
bool rv__store_log_matches(const struct rv__store_log_query *query,
                           const struct rv__store_log *line);

/* Is the write valid for any store? For stores.   Errors: RV_EINVAL. */
int rv__store_check_write(const struct rv__store_write *write, rv_error *err);

/* The cursor of a list, for stores: the position of its last row. RV_EINVAL: it is not ours. The id points
 * into `cursor`. */
int rv__store_cursor_read(struct rv__str cursor, int64_t *created_ms, struct rv__str *id,
                          rv_error *err);
void rv__store_cursor_write(struct rv__buf *cursor, const struct rv__store_run *row);

/* For stores: where the list starts: after the cursor and before `until_ms`; the id points into the query. And whether
 * a row matches the query's texts. */
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

/* Commit a single write; if it was refused, return the reason. */
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

static inline int rv__store_take_marks(struct rv__store *store, struct rv__store_mark *marks,
                                       size_t count, rv_error *err)
{
    return store->ops->take_marks(store, marks, count, err);
}

static inline int rv__store_move_marks(struct rv__store *store, struct rv__store_mark *marks,
                                       size_t count, rv_error *err)
{
    return store->ops->move_marks(store, marks, count, err);
}

static inline int rv__store_marks(struct rv__store *store, rv__store_visit_mark *visit, void *arg,
                                  rv_error *err)
{
    return store->ops->marks(store, visit, arg, err);
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
