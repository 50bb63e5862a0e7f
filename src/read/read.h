/* read.h: the reading side: the feed, logs, nodes. It reads the store through its own readers, on the threads of the
 * callers; the loop only reports that something was written (rv__feed_mark, rv__feed_flush).
 *
 * Thread: any, under the locks named here. Nothing here touches the loop's own data. */
#ifndef RV_READ_READ_H
#define RV_READ_READ_H

#include <pthread.h>
#include <stdatomic.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "flow/flow.h"
#include "store/store.h"

/* ---------------------------------------------------------------------------------- facts --- */

/* The iterations around a node, outermost first. */
struct rv__vector {
    size_t depth;
    int64_t at[RV__PLAN_MAX_DEPTH];
};

/* A fact for readers: numbers, and slices of the row's text. Each kind has the members that its line in flow/fact.c
 * names. */
struct rv__value_ref {
    uint64_t number; /* 0: no value */
    uint64_t bytes;
};

struct rv__read_fact {
    enum rv__fact_kind kind;
    uint64_t actor, owner; /* owner 0: none given */
    uint32_t node;         /* RV__NO_NODE: none given */
    struct rv__vector vector;
    int64_t at_ms, due_ms, index;
    int64_t down_ms; /* step.lost: when its process was last seen alive; 0: unknown */
    int attempt;
    int64_t generation; /* body.started of a state; else 0 */
    uint32_t which, to; /* the number of a state + 1; 0: none given */
    int next, decision; /* enum rv__next, enum rv__decision */
    int64_t left;       /* run.resumed: suspensions that are left */
    int64_t limit;      /* run.started: attempts at once in each of its stages; 0: as in its plan */
    int eval, status;   /* -1: none given */
    bool hard, suspect, blame, crash;
    struct rv__str result, state, error, name; /* JSON; none */
    struct rv__str given; /* input of an attempt, or a part of it; JSON; none */
    struct rv__str by;    /* who caused it; JSON; none */
    uint64_t module;      /* step.started: the hash of the module of its function; 0: none given */
    struct rv__value_ref result_value,
        state_value,         /* instead of result and state, if they are long, */
        given_value;         /* and of `given` */
    struct rv__read_items {  /* eval.completed, of items in pieces: */
        int64_t count;       /* how many; 0: not in pieces */
        struct rv__str text; /* where they are; JSON; none */
    } items;
    struct rv__str description; /* in a state that is a value */
};

/* The facts of one journal row, one after the other. The text gets brackets and is checked, because it comes from
 * a disk. Call init once, begin for each row, done at the end. */
struct rv__row_reader {
    struct rv__buf text;
    struct rv__json_iter it;
};
void rv__row_reader_init(struct rv__row_reader *reader);
void rv__row_reader_done(struct rv__row_reader *reader);
/* RV_ESTORE: it is not JSON. */
int rv__row_begin(struct rv__row_reader *reader, struct rv__str facts, rv_error *err);
/* 1: *ret is the next fact; 0: no more; RV_ESTORE: not a fact of this plan. */
int rv__row_next(struct rv__row_reader *reader, const struct rv__plan *plan,
                 struct rv__read_fact *ret, rv_error *err);

/* One pass over the journal of a run: each fact, decoded once, in order. */
struct rv__journal_walk {
    const struct rv__plan *plan;
    uint64_t after, until; /* rows after `after`, up to and including `until` */
    /* RV_OK: continue; negative: stop, and return this. */
    int (*fact)(void *arg, const struct rv__read_fact *fact, rv_error *err);
    void (*row)(void *arg, uint64_t seq); /* after all facts of a row; may be NULL */
    void *arg;
};
int rv__journal_walk(struct rv__store *store, struct rv__str run, const struct rv__journal_walk *it,
                     rv_error *err);

/* The text of a value; the caller gets one reference.   Errors: RV_ESTORE (it is missing, or not JSON),
 * RV_ENOMEM. */
int rv__stored_value(struct rv__store *store, struct rv__str run, uint64_t number,
                     struct rv__blob **ret, rv_error *err);

/* ---------------------------------------------------------------------------------- plans --- */

/* The plans of runs that are read, by version. Kept for a while after the last use. */
struct rv__cached_plan {
    struct rv__cached_plan *next;
    struct rv__plan *plan;
    size_t refs; /* under the cache's lock */
};

struct rv__plan_cache {
    pthread_mutex_t lock;
    struct rv__cached_plan *first; /* most recently used first */
    size_t count;
};
void rv__plan_cache_init(struct rv__plan_cache *cache);
void rv__plan_cache_done(struct rv__plan_cache *cache); /* after all plans were put back */
/* The plan of this version, read through the caller's handle; return it with rv__plan_cache_put().
 * Errors: RV_ENOMEM, RV_ESTORE. */
int rv__plan_cache_get(struct rv__plan_cache *cache, struct rv__store *store,
                       struct rv__str version, struct rv__cached_plan **ret, rv_error *err);
void rv__plan_cache_put(struct rv__plan_cache *cache,
                        struct rv__cached_plan *plan); /* NULL is allowed */

/* What readers need of a run's row: its plan, and which run with that id it is. */
struct rv__read_run {
    struct rv__cached_plan *plan; /* return it with rv__plan_cache_put() */
    uint64_t number;
    bool terminal;
};
/* Errors: RV_ENOTFOUND, RV_ENOMEM, RV_ESTORE. */
int rv__read_run(struct rv__plan_cache *cache, struct rv__store *store, struct rv__str id,
                 struct rv__read_run *ret, rv_error *err);

/* ---------------------------------------------------------------------------------- trace --- */

/* What follows an attempt of a state. */
enum rv__traced_then {
    THEN_NOTHING, /* that was the last attempt */
    THEN_AGAIN,   /* the state is queued for another attempt */
    THEN_ANEW,    /* its stage starts again, as if this had not happened */
};

/* The history of a run, built from its journal: a tree of the instances of its nodes. A frame is a running body: an
 * iteration, a child, a path, a sequence. Nodes are below frames, frames below nodes, handlers below the node that
 * failed. Index 0 is none, 1 is the outermost frame. */
struct rv__traced {
    uint64_t actor;
    uint32_t parent, first, last, prev, next;
    uint32_t node;      /* its plan node; of a frame: its owner's; RV__NO_NODE: the outermost */
    int64_t iteration;  /* a frame: which iteration, child, path or state */
    int64_t generation; /* of a state's frame: which attempt over all; else 0 */
    bool frame, live, detached;
    uint8_t status;
    uint8_t then; /* of a state's frame that has ended: enum rv__traced_then */
    int32_t attempt, crashes, error_attempt;
    union {
        uint64_t module; /* of a step's last attempt; 0: none */
        uint64_t
            items_after; /* of a forEach with known items: they are in the row after this seq */
    };
    uint32_t children, active; /* in all; of a supervisor: frames that run now */
    uint32_t block,
        last_block;   /* of a forEach or a loop: the first and the last; of an iteration: its own */
    uint32_t items;   /* of a forEach: how many; 0: unknown yet */
    int64_t ready_ms; /* since when it (or the next node in it) could continue */
    int64_t started_ms, completed_ms, queue_ms, due_ms, error_ms;
    uint32_t error, description; /* offsets in `texts`, NUL-terminated; 0: none */
    uint32_t attachment;         /* the same, of a state's frame: the id of its attachment */
};

/* Iterations that were started one after the other, with counts by status: a window of many iterations is found by
 * skipping whole blocks. All blocks are full except a supervisor's last. */
enum { RV__TRACE_BLOCK = 256 };
struct rv__trace_block {
    uint32_t first, next; /* iteration; block of the same supervisor, 0: none */
    uint16_t in[STATUSES];
};

struct rv__trace {
    const struct rv__plan *plan; /* borrowed */
    bool keep_ended;             /* false: only active nodes are kept */
    uint64_t seq;                /* of the last row included */
    struct rv__traced *at;
    uint32_t count, cap, spare;
    uint32_t *table; /* active ones, by actor */
    size_t table_size, table_count;
    struct rv__trace_block *blocks; /* 0 is none; with keep_ended */
    uint32_t block_count, block_cap;
    bool no_memory; /* for them */
    struct rv__buf texts;
    struct rv__trace_suspended { /* the suspensions of the run, in order */
        uint64_t actor;          /* 0: the run as a whole */
        uint32_t which;          /* of a stage: the state + 1 */
        uint32_t at;             /* the node, or the last attempt of the state; 0: none */
    } * suspended;
    uint32_t suspended_count, suspended_cap;
    int64_t limit; /* of the run: attempts at once in each of its stages; 0: as in its plan */
    bool failed;   /* its sequence has failed: by a top-level node, or it was ended early */
    /* Called for each step that a fact also cancels, and for the node that an abort fails: the fact does not name
     * these. May be NULL. */
    void (*along)(void *arg, const struct rv__trace *trace, uint32_t node, enum rv__status status);
    void *along_arg;
    struct rv__detail *detail; /* details of one instance (detail.h); NULL: of none */
};
void rv__trace_init(struct rv__trace *trace, const struct rv__plan *plan, bool keep_ended);
void rv__trace_done(struct rv__trace *trace);
/* Add one fact. Errors: RV_ENOMEM, RV_ETOOBIG (RV__TRACE_NODES), RV_ESTORE: it does not fit. After an
 * error the trace can only be freed with rv__trace_done(). */
int rv__trace_fold(struct rv__trace *trace, const struct rv__read_fact *fact, rv_error *err);
/* Add the journal of the run after trace->seq, up to and including `until`. */
int rv__trace_read(struct rv__trace *trace, struct rv__store *store, struct rv__str run,
                   uint64_t until, rv_error *err);
/* The error of a fact, as shown in a list: of an error that is too long, the end of its message and its path.
 * Appends; the buffer remembers a failure. */
void rv__listed_error(const struct rv__read_fact *fact, struct rv__buf *out);
/* The iterations around an instance, outermost first, and its path. */
size_t rv__trace_vector(const struct rv__trace *trace, uint32_t of,
                        int64_t vector[RV__PLAN_MAX_DEPTH]);
/* The active instance with this number; 0: none. */
uint32_t rv__trace_find(const struct rv__trace *trace, uint64_t actor);
enum { RV__TRACE_NODES = 2 * 1000 * 1000 }; /* about 300 MB: larger runs are not listed */

size_t rv__trace_block_size(const struct rv__trace_block *block);

/* The node at `path`, as a list of one, and its instance in the trace; 0: it was not reached.
 * Errors: RV_ENOTFOUND, RV_ENOMEM. */
int rv__node_find(const struct rv__trace *trace, struct rv__store *store, const char *run_id,
                  const char *path, int64_t now_ms, rv_node_list **ret, uint32_t *instance,
                  rv_error *err);

/* Might this fact end active steps besides the one that it is about? */
bool rv__read_fact_cancels(const struct rv__read_fact *fact, const struct rv__plan *plan);

/* ------------------------------------------------------------------------------- the hub --- */

struct rv_feed;
struct rv__node_cache;
struct rv__metrics;

enum { RV__FEED_BUCKETS = 1024 }; /* followers of runs in the same bucket are woken together */

struct rv__reading {
    struct rv__plan_cache plans;
    pthread_mutex_t lock;    /* of `store` and everything read through it: logs, nodes */
    struct rv__store *store; /* a reader */
    struct rv__node_cache *nodes;
    struct rv__overview *overview;

    atomic_size_t feeds;      /* open ones */
    atomic_ullong generation; /* counts commits */
    atomic_size_t sleeping;   /* feeds that wait for one */
    atomic_bool closed;
    pthread_mutex_t hub; /* of the two lists, and of their members' links */
    struct rv_feed *sleepers, *all;
    bool marked;                           /* used by the loop: this turn wrote something */
    uint64_t marks[RV__FEED_BUCKETS / 64]; /* used by the loop: the runs in this commit */
};
int rv__reading_new(struct rv__store *store, struct rv__reading **ret, rv_error *err);
void rv__reading_free(struct rv__reading *reading); /* disconnects open feeds; NULL is allowed */

/* After a commit: mark for each run in it, then flush once. Thread: the loop's. */
void rv__feed_mark(struct rv__reading *reading, const char *run_id);
void rv__feed_flush(struct rv__reading *reading);
/* Where other processes write too: does any feed wait? _look wakes all feeds, so that they read the store again. */
bool rv__feed_followed(const struct rv__reading *reading);
void rv__feed_look(struct rv__reading *reading);
void rv__feeds_close(struct rv__reading *reading);  /* wakes waiting callers: RV_ECLOSED */
void rv__feeds_detach(struct rv__reading *reading); /* no thread is inside a call any more */
void rv__node_cache_free(struct rv__node_cache *cache);
int rv__overview_new(struct rv__overview **ret, rv_error *err);
void rv__overview_free(struct rv__overview *overview); /* NULL is allowed */

/* Implementations of the public calls with these names (rival.h), through the reader's own handle. `now_ms` is wall
 * time, for nodes that have not ended. Errors: the same; any thread may call them until the reader is freed. */
int rv__feed_open(struct rv__reading *reading, const rv_feed_opts *opts, rv_feed **ret,
                  rv_error *err);
int rv__nodes(struct rv__reading *reading, const char *run_id, const rv_node_query *query,
              int64_t now_ms, rv_node_list **ret, rv_error *err);
int rv__node_get(struct rv__reading *reading, const char *run_id, const char *path, int64_t now_ms,
                 rv_node_detail **ret, rv_error *err);
bool rv__line_is_private(struct rv__str metadata); /* hidden from agents */
int rv__logs(struct rv__reading *reading, const char *run_id, const rv_log_query *query,
             rv_log_list **ret, rv_error *err);
/* The reason of the oldest suspension in a run's row, [{"reason":…}, …]; none: it is not suspended. */
struct rv__str rv__first_reason(struct rv__str suspensions);
int rv__overview(struct rv__reading *reading, int64_t now_ms, char **ret, rv_error *err);
int rv__attachments(struct rv__reading *reading, const char *run_id,
                    const rv_attachment_query *query, int64_t now_ms, struct rv__row_source *rows,
                    rv_attachment_list **ret,
                    rv_error *err); /* `rows`: for results, asked without reading->lock */
int rv__plan_of_run(struct rv__reading *reading, const char *run_id, char **ret, rv_error *err);
/* A plan as JSON for people; free with rv_free(). */
int rv__plan_text(const struct rv__plan *plan, char **ret, rv_error *err);

/* The run's present trace; needs reading->lock, and is valid until that is released. */
int rv__reading_trace(struct rv__reading *reading, const char *run_id, const struct rv__trace **ret,
                      rv_error *err);

/* ------------------------------------------------------------------------------------ why --- */

enum rv__why_reason { /* as reason_names in why.c */
                      WHY_RUNNING,
                      WHY_PLACE,
                      WHY_CONCURRENCY,
                      WHY_TIMER,
                      WHY_RETRY,
                      WHY_SIGNAL,
                      WHY_HANDLE,
                      WHY_DECISION,
                      WHY_TURN,
                      WHY_WORKER,
                      WHY_LIMIT,
                      WHY_REASONS
};

/* What is known about a wait besides what its cell says. */
struct rv__why_about {
    enum rv__why_reason reason;
    int lane;             /* waits of different lanes, or limits, are separate groups */
    const char *executor; /* RUNNING, PLACE: which executor runs it, or will: "thread", "host" … */
    const char *limit,
        *place; /* PLACE, LIMIT: the limit's name; PLACE: the place as people say it. Both outlive this */
    int64_t places;          /* PLACE, LIMIT: how many there are; 0: unknown, or any number */
    struct rv__str function; /* WORKER: the function that no process offers */
    struct rv__str secret;   /* WORKER: instead, the secret that has no value */
    bool command;   /* WORKER: `function` is a workflow: its file is missing, for a command */
    bool unclaimed; /* WORKER: no member of the store has it */
};

/* Collected on the loop's thread (new, run, add for each wait, err), written on the caller's. */
struct rv__why;
int rv__why_new(struct rv__why **ret, rv_error *err);
void rv__why_free(struct rv__why *why); /* NULL is allowed */
void rv__why_run(struct rv__why *why, enum rv__run_status status, struct rv__str failed_path);
void rv__why_add(struct rv__why *why, const struct rv__wait *wait,
                 const struct rv__why_about *about);
int rv__why_err(const struct rv__why *why, rv_error *err); /* RV_ENOMEM */
/* Writes the JSON of rv_why(). */
int rv__why_tell(struct rv__reading *reading, const char *run_id, struct rv__why *why, char **ret,
                 rv_error *err);

#endif
