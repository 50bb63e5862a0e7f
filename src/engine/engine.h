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
#include "engine/exprs.h"
#include "engine/wanted.h"
#include "engine/workflow.h"
#include "exec/exec.h"
#include "flow/flow.h"
#include "store/store.h"

struct rv__attached;
struct rv__call;
struct rv__control;
struct rv__kit;
struct rv__owed;
struct rv__reading;
struct rv__metrics;

/* What arrives in the inbox: the head of a finished rv_ctx, or of a call. */
struct rv__letter {
    struct rv__queue_node node;
    enum { LETTER_WORK, LETTER_BEGUN, LETTER_CALL, LETTER_LANDED } kind;
};

/* A plan that runs use, and the functions of its nodes as far as they are known. */
struct rv__plan_ref {
    struct rv__plan_ref *next; /* of all */
    struct rv__index_entry by_version;
    struct rv__plan *plan;
    atomic_size_t refs;
    const struct rv__function **steps; /* by node id: what the step does; NULL: not known */
    const struct rv__function **evals; /* by node id × EVALS: its when, if, while, until, items */
    uint64_t resolved;                 /* the registry's generation when these were looked up */
    bool stored;                       /* its definition is in the store */
    struct rv__plan_exprs exprs;
    uint16_t *series; /* by node id: where its steps are counted; metrics.c */
};

enum { RV__PATH_ROOM = 4096 }; /* Linux' own bound */

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

/* A log line that waits for the next commit: this, then its texts, in run->logs. */
struct rv__kept_line {
    int64_t at_ms;
    int level, attempt;
    uint32_t path, step, message, metadata; /* lengths, in this order behind it */
};

struct rv__run {
    rv_engine *engine;
    struct rv__run *next; /* in its bucket */
    atomic_size_t refs;
    char id[RV_RUN_ID_SIZE];
    struct rv__plan_ref *plan;
    struct rv__cell *cell; /* NULL: not in memory; only waited for */
    struct rv__facts facts;
    struct rv_ctx *work; /* in flight */
    struct rv__owed *owed;
    size_t walk_credit;         /* actors that may be walked over to find its next timer */
    bool dirty;                 /* part of this turn */
    bool locked;                /* its facts are on their way to disk: nothing is decided for it */
    bool touched;               /* meanwhile: it is part of the turn after that */
    bool starved;               /* no memory for something that it is owed: rv__owe_again() */
    struct rv__run *next_dirty; /* of this turn, or of the batch */
    int64_t waited_ns;          /* for the last place it was given */
    struct {
        bool queued;
        int64_t since_ns;
        struct rv__run *prev, *next;
        int granted;        /* places given in this turn, for work that is begun after its commit */
    } lane[LANES];          /* among those that want it */
    struct rv__call *calls; /* to be answered after the commit */
    struct rv__call *waiters; /* to be answered at its end */

    /* the row in the store, as it is or (new) is to be */
    bool is_new;
    enum rv__run_status row_status;
    bool row_active;
    int64_t row_wake_ms;
    int64_t created_ms, started_ms, completed_ms;
    struct rv__blob *input;
    char input_key[65];

    struct rv__buf logs; /* lines that wait for the next commit: rv__kept_line */
    size_t log_count;
    uint64_t seq;         /* of its last journal row */
    size_t journal_bytes; /* since its last snapshot */
    size_t snapshot_bytes;
    struct rv__buf snapshot; /* to be written with the next commit */
};

/* What the outside owes an actor: a piece of work, or a timer. */
struct rv__owed {
    struct rv__owed *next;             /* in its bucket */
    struct rv__owed *run_next, **link; /* among those of its run */
    struct rv__run *run;
    uint64_t actor, token;
    struct rv_ctx *work;    /* NULL: a wait */
    struct rv__timer timer; /* in engine->waits or, for the time-out of work, engine->timeouts */
    bool is_timeout;
};

/* So long after a start a run waits for its workflow to be registered. Then it is suspended, and says
 * what is missing. */
enum { RV__REGISTER_MS = 5000 };
/* Which finished runs may stay. 0: no bound. */
struct rv__retain_limits {
    int64_t max_age_ms;
    uint64_t max_runs, max_bytes;
};

enum { RUN_BUCKETS = 1 << 14, OWED_BUCKETS_FIRST = 1 << 10 };

/* The batch on its way to disk, and the thread that brings it there. */
struct rv__commits {
    struct rv__arena arena; /* of the batch */
    bool away;              /* a batch is on its way: */
    struct rv__run *runs;   /* of these */
    bool landed;            /* it has arrived: its letter was taken */
    struct rv__letter letter;

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    struct rv__store_write *writes; /* NULL: nothing to do */
    size_t count;
    bool stop;
    rv_health health;    /* how the last attempts went */
    atomic_bool failing; /* = health.stuck, for who does not want the lock */
};

struct rv_engine {
    struct rv__clock *clock;
    int64_t now_ms;           /* by the wall, when this turn began */
    struct rv__store *store;  /* the writer */
    struct rv__store *reader; /* of the loop, for what was committed */
    pthread_mutex_t step_reader_lock;
    struct rv__store *step_reader; /* of steps on their threads, one at a time */
    struct rv__executor *executor; /* of functions */
    pthread_mutex_t hosts_lock;
    struct rv__hosts *hosts; /* of functions of files; made with the first; under hosts_lock */
    struct rv__hosts_opts hosts_opts;
    struct rv__module *modules;
    struct rv__evaluator *evaluator; /* of expressions; with a kit made when needed: exprs.h */
    struct rv__io *io;               /* of commands; NULL until the first */
    struct rv__buf env;              /* what expressions see of the environment: JSON */
    struct rv__kit *kit;             /* NULL but in tests: what is around it is theirs */
    uint64_t life; /* counts deaths that a kit arranged: answers of an earlier one are void */
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
    struct rv__plan_ref *plans;
    struct {
        struct rv__index workflows;           /* by name */
        struct rv__index functions, callable; /* by workflow and name; by name, the first of each */
        struct rv__index plans;               /* by version */
    } by;
    uint64_t generation; /* counts registrations */
    bool look_for_missing;
    int64_t
        register_until_ns; /* recovered runs wait until then for their workflow; 0 = no longer */

    struct rv__run *runs[RUN_BUCKETS];
    size_t run_count;
    struct rv__run *dirty, **last_dirty;
    struct rv__commits commit;
    struct rv__queue_node *held, **last_held; /* letters to runs that are locked, or starved */
    bool starved; /* no memory for something in this turn: the next one follows at once */
    struct rv__owed **owed;
    size_t owed_size, owed_count;
    struct rv__timers waits;    /* by wall clock */
    struct rv__timers timeouts; /* by monotonic clock, ms */
    int64_t store_wake_ms;      /* the earliest of the runs that sleep in the store; 0 = none */
    int64_t wake_retry_ms;      /* not before this (monotonic): the store did not answer */

    struct rv__run *want_first[LANES], *want_last[LANES];
    int64_t places[LANES], free_places[LANES];
    int64_t functions_in_flight;
    bool suspect_in_flight;

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
    struct rv__call *early; /* answers to handles that nobody waits for yet */
    struct rv__call *late;  /* calls to be looked at after the commit */
    int64_t commits;
    struct {
        struct rv__retain_limits limits;
        int64_t next_ms;  /* the next piece, by the monotonic clock */
        uint64_t removed; /* runs, by itself */
        bool sweeping;    /* what runs wrote that are forgotten is not all gone yet */
    } retain;
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
/* One turn, on whatever letters there are. Returns the monotonic ns to sleep until. */
int64_t rv__engine_turn(rv_engine *engine);
int rv__engine_post(rv_engine *engine, struct rv__letter *letter); /* RV_ECLOSED. Thread: any */
/* There was no memory for what it says: it is taken again. */
void rv__engine_take_again(rv_engine *engine, struct rv__letter *letter);

/* commit.c */
enum rv__commit_outcome {
    COMMIT_DONE, /* the dirty runs' facts are on disk */
    COMMIT_AWAY, /* they are on their way: rv__commit_landed() */
    COMMIT_DIED, /* the process died in it, as a kit arranged */
};
int rv__commits_init(rv_engine *engine, rv_error *err);
void rv__commits_done(rv_engine *engine);
enum rv__commit_outcome rv__commit(rv_engine *engine); /* not while one is away */
bool rv__commit_pays(rv_engine *engine);               /* would it go by the thread? */
bool rv__commit_failing(
    const rv_engine *engine);               /* it is away, and the store refuses it. Thread: any */
void rv__commit_give_up(rv_engine *engine); /* no more attempts: the engine closes */
struct rv__run *rv__take_dirty(rv_engine *engine); /* all of them; none is dirty then */
/* The runs of the batch that has arrived, unlocked, to be settled. */
struct rv__run *rv__commit_landed(rv_engine *engine);

/* run.c */
struct rv__run *rv__run_find(rv_engine *engine, const char *id);
int rv__run_new(rv_engine *engine, const char *id, struct rv__plan_ref *plan, struct rv__run **ret);
int rv__run_start(struct rv__run *run, struct rv__blob *input, rv_error *err);
/* As the store has it, whatever is in memory: for a look, outside of the table. RV_ENOTFOUND. */
int rv__run_read(rv_engine *engine, const char *id, struct rv__run **ret, rv_error *err);
void rv__run_unread(struct rv__run *run);
/* From the store into memory, with its timers armed and its work owed. RV_ENOTFOUND. */
int rv__run_load(rv_engine *engine, const char *id, struct rv__run **ret, rv_error *err);
void rv__run_ref(struct rv__run *run);
void rv__run_unref(struct rv__run *run); /* Thread: any */
void rv__run_drop(struct rv__run *run);  /* out of the table */
void rv__run_touch(struct rv__run *run); /* it is part of this turn */
int rv__run_send(struct rv__run *run, struct rv__msg *msg, rv_error *err);
bool rv__run_idle(const struct rv__run *run);
/* Its earliest timer; 0 = none. Walks over its actors: ask rv__run_may_walk() first, which says yes to
 * small runs always and to large ones now and then, so that the walks stay a part of each turn's
 * cost. */
int64_t rv__run_wake_ms(const struct rv__run *run);
bool rv__run_may_walk(struct rv__run *run);
int rv__recover(rv_engine *engine, rv_error *err);
int rv__wake_due(rv_engine *engine, int64_t now_ms);
int rv__next_wake(rv_engine *engine, rv_error *err); /* into store_wake_ms */
int rv__resume_missing(rv_engine *engine);

/* dispatch.c */
void rv__grant_all(rv_engine *engine, int64_t now_ms);
void rv__run_queue_wants(struct rv__run *run);
void rv__run_unqueue(struct rv__run *run);
void rv__release_effects(struct rv__run *run);
void rv__start_all(rv_engine *engine); /* the work that those effects asked for */
void rv__owe(struct rv__run *run, const struct rv__effect *effect);
void rv__owe_again(struct rv__run *run); /* what there was no memory for */
void rv__owed_clear(struct rv__run *run, uint64_t actor);
void rv__owed_clear_all(struct rv__run *run);
void rv__work_begun(rv_engine *engine, struct rv_ctx *ctx); /* a host has it: its time counts */
void rv__work_done(rv_engine *engine, struct rv_ctx *ctx);
void rv__work_drop(struct rv_ctx *ctx); /* nobody asks for it any more */
void rv__hand_back(rv_engine *engine);  /* what is in flight is for the next engine to do */
void rv__fetch_logs(rv_engine *engine); /* what steps in flight have said so far */
/* The failures among its facts that nobody would hear of, as lines of its log. RV_ENOMEM: none is. */
int rv__keep_unheard(struct rv__run *run);

/* retain.c. The writer is used: no commit may be under way. */
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
/* *damaged: the store has it not, or in a form that cannot be read. */
int rv__plan_ref_load(rv_engine *engine, struct rv__str version, struct rv__plan_ref **ret,
                      bool *damaged, rv_error *err);
void rv__plan_ref_resolve(rv_engine *engine, struct rv__plan_ref *plan);
const struct rv__function *rv__plan_ref_fn(const struct rv__plan_ref *plan,
                                           const struct rv__node *node, int eval);
struct rv__str rv__plan_ref_fn_name(const struct rv__node *node, int eval);
/* Do the functions of its workflow run in processes of their own? (Not known of a `call`, which may be
 * of another workflow's function: it counts as one of ours.) */
bool rv__node_hosted(const struct rv__node *node);
/* May its runs go on? Not while its workflow is still to be registered, after a start. */
bool rv__plan_ref_known(rv_engine *engine, const struct rv__plan_ref *plan);
/* Does a node of it ask for a function of this name that is not known? It was resolved. */
bool rv__plan_ref_misses(const struct rv__plan_ref *plan, struct rv__str name);
void rv__plan_ref_unref(struct rv__plan_ref *plan);
void rv__registry_free(rv_engine *engine);

/* call.c */
void rv__call_take(rv_engine *engine, struct rv__call *call);
/* Is it about a run that is locked, or all runs? */
bool rv__call_waits(rv_engine *engine, const struct rv__call *call);
/* Answers that came too early are tried again: of that run, or (NULL) all; and in the end refused. */
void rv__calls_early(rv_engine *engine, const struct rv__run *run);
void rv__engine_begin_close(rv_engine *engine);   /* nothing new is begun */
void rv__engine_tell_close(rv_engine *engine);    /* steps are told, once it is time */
void rv__calls_late(rv_engine *engine);           /* after the commit */
void rv__run_answer_calls(struct rv__run *run);   /* after the commit */
void rv__run_answer_waiters(struct rv__run *run); /* it has ended, and that is on disk */
void rv__calls_close(rv_engine *engine);          /* everybody who still waits: RV_ECLOSED */
void rv__calls_again(rv_engine *engine);          /* everybody who still waits asks again */
void rv__engine_enter(rv_engine *engine); /* it is not freed before the leave. Thread: any */
void rv__engine_leave(rv_engine *engine); /* Thread: any */

/* hosted.c */
void rv__hosted_run(struct rv__work *work); /* as rv__ctx_run, in a host */
int rv__engine_hosts(rv_engine *engine, struct rv__hosts **ret, rv_error *err); /* Thread: any */
/* What a file offers: the frame `register` of a host of it, as a workflow. Thread: any. */
int rv__hosted_workflow(struct rv__hosts *hosts, const char *module, rv_workflow **ret,
                        rv_error *err);

/* Rows of finished iterations, for steps (own handle, locked) or for the loop. */
struct rv__engine_rows {
    struct rv__row_source source; /* first */
    struct rv__run *run;
    bool on_loop;
};
void rv__engine_rows_init(struct rv__engine_rows *rows, struct rv__run *run); /* Thread: any */

#endif
