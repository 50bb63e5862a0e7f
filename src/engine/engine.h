/* engine.h: the inside of rv_engine: one loop owns all of it.
 *
 * A turn of the loop: take what came (answers of steps, calls of the API, timers that fell due), hand
 * each to its run's flow, give free places to work that waits, write the facts of every run that was
 * touched in one commit, and only then act: start work, arm timers, answer callers. Nothing outside
 * ever sees what a crash could take back.
 *
 * Thread: everything here belongs to the loop's thread, but for what says otherwise. Others send
 * letters (rv__engine_post). A run's struct is counted, for its work holds it on other threads; what
 * those read of it (id, plan, engine) never changes. */
#ifndef RV_ENGINE_ENGINE_H
#define RV_ENGINE_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include <rival/rival.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/index.h"
#include "base/queue.h"
#include "base/random.h"
#include "base/timers.h"
#include "engine/desk.h"
#include "engine/run.h"
#include "exec/exec.h"
#include "flow/flow.h"
#include "keep/keep.h"
#include "store/store.h"
#include "work/work.h"

struct rv__attached;
struct rv__call;
struct rv__control;
struct rv__kit;
struct rv__owed;
struct rv__reading;
struct rv__metrics;

/* A plan that runs use, and the functions of its nodes as far as they are known. */
struct rv__plan_ref {
    struct rv__index_entry by_version;
    struct rv__plans *of;
    rv_engine *engine;                  /* whose functions it has; the loop's */
    struct rv__plan_ref *newer, *older; /* while nobody uses it */
    struct rv__plan *plan;
    size_t refs;                       /* under of->lock */
    const struct rv__function **steps; /* by node id: what the step does; NULL: not known */
    const struct rv__function **evals; /* by node id × EVALS: its when, if, while, until, items */
    uint64_t resolved;                 /* the registry's generation when these were looked up */
    enum { DEFINITION_NEW, DEFINITION_AWAY, DEFINITION_STORED } stored; /* is it in the store? */
    struct rv__plan_exprs exprs;
    uint16_t *series; /* by node id: where its steps are counted; metrics.c */
};

/* All of them, by version. */
struct rv__plans {
    pthread_mutex_t lock; /* of this, and of their refs */
    struct rv__index by_version;
    struct rv__plan_ref *newest, *oldest; /* that nobody uses */
    size_t spare;
};

enum { RV__LONGEST_SLEEP_MS = 60000 }; /* a wall clock may jump while we wait by the other */

#define RV__STORE_DEFAULT "rival.db"

/* A workflow by name: what new runs take. */
struct rv__registered {
    struct rv__registered *next; /* of all, the one before it */
    struct rv__index_entry by_name;
    struct rv__str name;
    struct rv__plan_ref *plan;
    struct rv__draft *draft;       /* for those that nest it */
    char directory[RV__PATH_ROOM]; /* of its file: its commands are relative to it; "" = none */
    char source[RV__PATH_ROOM];    /* its file; "" = the program */
    bool withdrawn;                /* for runs that there are: new ones do not find it */
};

/* A workflow to be made known, compiled. */
struct rv__registration {
    struct rv__plan *plan; /* taken, and then NULL here */
    const struct rv__named_fn *functions;
    const char *directory, *source; /* NULL: not from a file */
    bool replace;                   /* another definition of that name gives way */
};

/* Stays as long as the engine; a later registration changes what it does. */
struct rv__function {
    struct rv__function *next;      /* of all */
    struct rv__index_entry by_both; /* workflow and name */
    struct rv__index_entry by_name; /* if it is the first of that name */
    struct rv__str workflow, name;
    rv_step_fn fn;
    const char *module; /* not NULL: instead, the one of that name in a host of this module */
};

/* The path of a shared object, as long as the engine. */
struct rv__module {
    struct rv__module *next;
    char path[];
};

/* What the outside owes an actor: a piece of work, or a timer. */
struct rv__owed {
    struct rv__owed *next;             /* in its bucket */
    struct rv__owed *run_next, **link; /* among those of its run */
    struct rv__run *run;
    uint64_t actor, token;
    struct rv_ctx *work;      /* NULL: a wait */
    struct rv__timer timer;   /* in engine->waits or, for the time-out of work, engine->timeouts */
    struct rv__letter letter; /* it has fallen due, and waits in the mail of its run: */
    bool mailed, cleared;     /* that; and meanwhile nobody owes it any more */
    bool is_timeout;
};

enum { RUN_BUCKETS = 1 << 14, OWED_BUCKETS_FIRST = 1 << 10 };

/* The batch on its way to disk; commit.c. */
struct rv__commits {
    struct rv__job job;     /* first */
    struct rv__arena arena; /* of the batch */
    bool away;              /* a batch is on its way: */
    struct rv__run *runs;   /* of these */
    struct rv__store_write *writes;
    struct rv__run **of;   /* whose write each is */
    size_t count, written; /* writes; those that are on disk, or refused */
    /* Bounds, which a simulation makes small: */
    size_t piece;         /* bytes of one transaction at most */
    size_t snapshot_from; /* bytes of journal below which a replay is quicker than a snapshot */
    size_t value_inline;  /* as in rv__cell_opts; 0 = as there */
    int turn_facts;
    uint64_t beside;              /* batches that went by the desk */
    pthread_mutex_t lock;         /* of the rest: */
    struct rv__store_stats stats; /* of the writer, after the last attempt */
    rv_health health;             /* how the last attempts went */
    atomic_bool failing;          /* = health.stuck, for who does not want the lock */
};

/* Runs on their way into memory; load.c. */
struct rv__loads {
    struct rv__run *first, **last; /* that wait for their turn */
    size_t waiting, under_way;     /* those; jobs given to the desk */
    size_t budget;         /* bytes of cells: beyond it only what somebody waits for is loaded */
    size_t cell_bytes;     /* of all that are in memory */
    bool scanning;         /* a scan is under way */
    bool more_active;      /* not all active runs were found yet: */
    uint64_t active_after; /* behind this number */
    int64_t wake_ms;       /* the earliest of the runs that sleep in the store; 0 = none */
    int64_t wake_ms_since; /* the same, of those that went to sleep since the scan began */
    struct rv__store_place due_place; /* a scan for those that are due goes on behind it */
    int64_t retry_ms; /* not before this (monotonic): the store did not answer; 0 = no matter */
};

/* Retention, done by itself; retain.c. */
struct rv__retention {
    struct rv__job job; /* first: a piece of it */
    struct rv__retain_limits limits;
    int64_t next_ms;  /* the next piece, by the monotonic clock */
    uint64_t removed; /* runs, by itself */
    bool sweeping;    /* what runs wrote that are forgotten is not all gone yet: the desk's */
    bool under_way;
    uint64_t piece; /* what came of the last one */
    bool more;
    int rc;
};

/* What is around an engine: threads and the system's clock, or what a testing kit has instead. */
struct rv__around {
    struct rv__clock *clock;
    struct rv__desk *writer, *reader;
    void (*answer)(struct rv_ctx *ctx); /* it has ended: post it, now or later. Thread: any */
    rv_step_fn (*instead)(rv_engine *engine, struct rv__str alias); /* NULL: as it is */
    /* A caller waits until *done, `by` fires, or until_ms (monotonic; INT64_MIN: no step runs and no time passes
     * meanwhile). NULL: it sleeps. */
    void (*await)(rv_engine *engine, const bool *done, rv_cancel *by, int64_t until_ms);
};

struct rv_engine {
    struct rv__around around;
    struct rv__clock *clock;  /* = around.clock */
    int64_t now_ms;           /* by the wall, when this turn began */
    struct rv__store *store;  /* the writer */
    struct rv__store *reader; /* of the loop, for what was committed */
    struct rv__store *loader; /* of the reading desk */
    size_t writing;           /* jobs at the writing desk */
    pthread_mutex_t step_reader_lock;
    struct rv__store *step_reader; /* of steps on their threads, one at a time */
    struct rv__executor *executor; /* of functions */
    struct rv__workshop shop;      /* what attempts use */
    struct rv__module *modules;
    struct rv__kit *kit; /* NULL but in tests: what is around it is theirs */
    uint64_t life;       /* counts deaths that a kit arranged: answers of an earlier one are void */
    struct rv__reading *reading; /* the feed, logs, nodes: reading.h */
    struct rv__metrics *metrics;
    struct rv__queue inbox;
    pthread_t thread;
    int max_crashes;
    bool running_thread;
    bool idle, read_only;          /* start no work; change nothing */
    char only_run[RV_RUN_ID_SIZE]; /* "" = all runs */
    struct rv__control *control;   /* others ask through it; NULL: they do not */
    struct rv__attached *attached; /* it is another's to drive; NULL: ours. Never changes */

    pthread_mutex_t reply_lock; /* callers wait for their answers under it */
    size_t callers;             /* inside a public call; under it too */
    pthread_cond_t left;        /* the last of them has gone */

    struct rv__registered *workflows;
    struct rv__function *functions;
    struct rv__plans plans;
    struct {
        struct rv__index workflows;           /* by name */
        struct rv__index functions, callable; /* by workflow and name; by name, the first of each */
    } by;
    uint64_t generation; /* counts registrations */
    bool relane;         /* since the last one, not every run has looked who does its work now */

    struct rv__run *runs[RUN_BUCKETS];
    size_t run_count;
    struct rv__run *deciding, **last_deciding; /* of this turn */
    struct rv__commits commit;
    struct rv__loads load;
    struct rv__mail retry; /* letters that there was no memory for */
    bool starved;          /* no memory for something in this turn: the next one follows soon */
    struct rv__owed **owed;
    size_t owed_size, owed_count;
    struct rv__timers waits;    /* by wall clock */
    struct rv__timers timeouts; /* by monotonic clock, ms */

    struct rv__run *want_first[LANES], *want_last[LANES];
    int64_t places[LANES], free_places[LANES]; /* of LANE_SUSPECT: that of the one suspect */

    struct rv__ids ids;
    struct rv__random random;
    rv_cancel *closing;            /* parent of every step's token */
    bool closed;                   /* nothing new is begun */
    atomic_bool stopped;           /* its loop has ended */
    int64_t drain_ms, tell_by_ns;  /* until then steps do not know that it closes; 0 = they do */
    int64_t grace_ms, close_by_ns; /* what still runs then is handed back */
    struct rv_ctx *in_flight;      /* of all runs */
    int64_t log_tick_ms;           /* their log lines are fetched then (monotonic) */
    struct rv_ctx **starting;      /* work of this turn, to be begun all at once */
    size_t starting_count, starting_cap;
    struct rv__call *early;    /* answers to handles that nobody waits for yet */
    struct rv__call *answered; /* callers to be woken, all at once */
    int64_t commits;
    struct rv__retention retain;
};

/* engine.c */
/* With a kit, which it takes over whatever the outcome: without a thread, on the kit's store and clock. */
int rv__engine_make(const rv_engine_opts *opts, struct rv__kit *kit, uint64_t seed, rv_engine **ret,
                    rv_error *err);
/* All that is in memory of runs goes; calls that wait for them ask again. For a death in a kit. */
void rv__engine_forget_runs(rv_engine *engine);

/* A handle of one's own to read the store with, for who takes long; to be closed. Thread: any. */
int rv__engine_reader(rv_engine *engine, struct rv__store **ret, rv_error *err);

/* loop.c */
void *rv__engine_main(void *engine);
/* One turn, on whatever letters there are. Returns the monotonic ns to sleep until; 0: there is more. */
int64_t rv__engine_turn(rv_engine *engine);
int rv__engine_post(rv_engine *engine, struct rv__letter *letter); /* RV_ECLOSED. Thread: any */
void rv__letter_take(rv_engine *engine, struct rv__letter *letter);
/* Give the desk a job; without one, it is done here and now. `landed` is called in either case. */
void rv__write_job(rv_engine *engine, struct rv__job *job);
void rv__read_job(rv_engine *engine, struct rv__job *job);
/* There was no memory for what it says: it is taken again. */
void rv__engine_take_again(rv_engine *engine, struct rv__letter *letter);

/* commit.c */
int rv__commits_init(rv_engine *engine, rv_error *err);
void rv__commits_done(rv_engine *engine);
/* What was decided goes to disk: on its way, or there already (rv__commit_landed was called). Not while a
 * batch is away. */
void rv__commit(rv_engine *engine);
bool rv__commit_failing(
    const rv_engine *engine); /* it is away, and the store refuses it. Thread: any */
/* Out of memory with it, if it has nothing to do for a while: its row says when it is wanted. */
void rv__run_let_go(struct rv__run *run);

/* load.c */
/* The run of that id, to be decided on or looked at now; NULL: `letter` waits for it in its mail, and is
 * taken when it is here, or is not (run->trouble). RV_ENOMEM. */
int rv__run_reach(rv_engine *engine, const char *id, struct rv__letter *letter, bool looks,
                  struct rv__run **ret);
void rv__run_load(struct rv__run *run, bool urgent); /* it is absent, and loading then */
/* The store refused what it decided last. It is as before that, and somebody has to say how to go on. */
void rv__run_suspend_refused(struct rv__run *run);
/* Nobody can go on with it: its row says so, with run->why, and the others go on. */
void rv__run_set_aside(struct rv__run *run, const char *because);
void rv__run_tell_absent(struct rv__run *run); /* whoever waits for it in its mail: run->trouble */
/* As the store has it, whatever is in memory: for a look, outside of the table. RV_ENOTFOUND. */
int rv__run_read(rv_engine *engine, const char *id, struct rv__run **ret, rv_error *err);
void rv__run_unread(struct rv__run *run);
void rv__load_init(rv_engine *engine);
void rv__recover(rv_engine *engine); /* find all that is to go on: from now on, beside the loop */
/* Give the reading desk what it may do now: runs that wait for their turn, and who is due. */
void rv__load_tick(rv_engine *engine);
int64_t rv__load_until_ns(rv_engine *engine, int64_t until_ns); /* or when that is */
void rv__load_asleep(rv_engine *engine,
                     int64_t wake_ms); /* one more sleeps in the store until then */

/* dispatch.c */
void rv__grant_all(rv_engine *engine, int64_t now_ms);
int64_t rv__places_taken(const rv_engine *engine); /* of functions: granted, or at work */
bool rv__may_grant(const rv_engine *engine);       /* a place is free, and somebody wants it */
void rv__run_queue_wants(struct rv__run *run);
void rv__run_unqueue(struct rv__run *run);
void rv__release_effects(struct rv__run *run);
void rv__effects_drop(struct rv__run *run); /* nobody acts on them: their places are given back */
/* Does it run in the engine's own process, and could kill it? */
bool rv__effect_in_process(const struct rv__effect *effect);
void rv__start_all(rv_engine *engine); /* the work that those effects asked for */
void rv__owe(struct rv__run *run, const struct rv__effect *effect);
void rv__owe_again(struct rv__run *run); /* what there was no memory for */
void rv__owed_clear(struct rv__run *run, uint64_t actor);
void rv__owed_clear_all(struct rv__run *run, bool tell); /* work in flight: to stop */
void rv__owed_unmail(struct rv__owed *owed); /* its letter is not in the mail any more */
void rv__owed_due(rv_engine *engine, struct rv__owed *owed);    /* its time has come */
void rv__owed_mailed(rv_engine *engine, struct rv__owed *owed); /* and its run can take it now */
void rv__work_begun(rv_engine *engine, struct rv_ctx *ctx);     /* a host has it: its time counts */
void rv__work_done(rv_engine *engine, struct rv_ctx *ctx);
void rv__work_drop(struct rv_ctx *ctx);       /* nobody asks for it any more */
void rv__work_post(struct rv_ctx *ctx);       /* it is answered. Thread: any */
void rv__work_answer(struct rv_ctx *ctx);     /* to the loop with it. Thread: any */
void rv__work_tell_begun(struct rv_ctx *ctx); /* a host has it. Thread: any */
void rv__hand_back(rv_engine *engine);        /* what is in flight is for the next engine to do */
void rv__fetch_logs(rv_engine *engine);       /* what steps in flight have said so far */
/* The failures among its facts that nobody would hear of, as lines of its log. RV_ENOMEM: none is. */
int rv__keep_unheard(struct rv__run *run);

/* retain.c */
void rv__retain_tick(rv_engine *engine); /* a piece of it, if it is time */
int64_t rv__retain_until_ns(const rv_engine *engine, int64_t until_ns); /* or when that is */

/* registry.c */
int rv__registry_add(rv_engine *engine, const rv_workflow *workflow, rv_error *err);
/* A draft of one's own, from the plan's text: the one it was compiled from may be freed or changed. */
int rv__plan_draft(const struct rv__plan *plan, struct rv__draft **ret, rv_error *err);
int rv__registry_put(rv_engine *engine, struct rv__registration *registration, rv_error *err);
/* Where the file of the workflow is that this node belongs to; NULL: it has none. */
const char *rv__registry_directory(rv_engine *engine, const struct rv__node *node);
struct rv__registered *rv__registry_find(rv_engine *engine, struct rv__str name);
struct rv__registered *rv__registry_offered(rv_engine *engine,
                                            struct rv__str name); /* not withdrawn */
/* The plan of that version; one more holds it. *damaged: the store has it not, or in a form that cannot be
 * read. Thread: any, with a handle of its own. */
int rv__plan_ref_load(rv_engine *engine, struct rv__store *store, struct rv__str version,
                      struct rv__plan_ref **ret, bool *damaged, rv_error *err);
struct rv__plan_ref *rv__plan_ref_ref(struct rv__plan_ref *plan); /* Thread: any */
/* How cells of this plan are made: by the loop, which knows who offers which function; and elsewhere, where
 * nobody is asked (rv__cell_lanes() follows). */
struct rv__cell_opts rv__plan_ref_opts(rv_engine *engine, struct rv__plan_ref *plan);
struct rv__cell_opts rv__plan_ref_opts_apart(rv_engine *engine, struct rv__plan_ref *plan);
void rv__plans_forgotten(rv_engine *engine); /* a new process does not know what is in the store */
void rv__plans_stored(rv_engine *engine, bool stored); /* the definitions that were on their way */
void rv__plan_ref_resolve(rv_engine *engine, struct rv__plan_ref *plan);
const struct rv__function *rv__plan_ref_fn(const struct rv__plan_ref *plan,
                                           const struct rv__node *node, int eval);
struct rv__str rv__plan_ref_fn_name(const struct rv__node *node, int eval);
void rv__plan_ref_unref(struct rv__plan_ref *plan);
void rv__registry_free(rv_engine *engine);

/* call.c */
void rv__call_take(rv_engine *engine, struct rv__call *call);
/* Its run is not here: run->trouble. It is answered, or (a start) begins the run. */
void rv__call_absent(rv_engine *engine, struct rv__call *call, struct rv__run *run);
bool rv__call_looks(const struct rv__call *call); /* at a run, and changes nothing */
void rv__calls_from_disk(
    rv_engine *engine);                 /* the store refuses: who looks is told what is on disk */
void rv__calls_wake(rv_engine *engine); /* those that were answered in this turn */
/* Answers that came too early are tried again: of that run, or (NULL) all; and in the end refused. */
void rv__calls_early(rv_engine *engine, const struct rv__run *run);
void rv__engine_begin_close(rv_engine *engine); /* nothing new is begun */
void rv__engine_tell_close(rv_engine *engine);  /* steps are told, once it is time */
void rv__run_answer_calls(struct rv__run *run); /* after the commit */
void rv__run_refuse_calls(struct rv__run *run, const rv_error *why); /* it was refused for good */
void rv__run_answer_waiters(struct rv__run *run); /* it has ended, and that is on disk */
void rv__calls_close(rv_engine *engine);          /* everybody who still waits: RV_ECLOSED */
void rv__calls_again(rv_engine *engine);          /* everybody who still waits asks again */
void rv__engine_enter(rv_engine *engine); /* it is not freed before the leave. Thread: any */
void rv__engine_leave(rv_engine *engine); /* Thread: any */

#endif
