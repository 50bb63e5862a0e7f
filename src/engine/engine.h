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
#include "engine/limit.h"
#include "engine/run.h"
#include "exec/exec.h"
#include "flow/flow.h"
#include "keep/keep.h"
#include "store/store.h"
#include "work/work.h"

struct rv__attached;
struct rv__attempt;
struct rv__call;
struct rv__control;
struct rv__remote;
struct rv__kit;
struct rv__owed;
struct rv__reading;
struct rv__notify;
struct rv__metrics;

/* A plan that runs use, and the functions of its nodes as far as they are known. */
struct rv__plan_ref {
    struct rv__index_entry by_version;
    struct rv__plans *of;
    struct rv__registry *registry;      /* whose functions it has; held */
    struct rv__plan_ref *newer, *older; /* while nobody uses it */
    struct rv__plan *plan;
    size_t refs;                       /* under of->lock */
    const struct rv__function **steps; /* by node id: what the step does; NULL: not known */
    const struct rv__function **evals; /* by node id × EVALS: but those of inputs */
    uint64_t resolved;                 /* the registry's generation when these were looked up */
    const struct rv__node
        *ambiguous; /* a call that could mean several functions then; NULL: none */
    enum { DEFINITION_NEW, DEFINITION_AWAY, DEFINITION_STORED } stored; /* is it in the store? */
    struct rv__plan_exprs exprs;
    struct rv__secrets *secrets; /* NULL: it declares none */
    uint16_t *series;            /* by node id: where its steps are counted; metrics.c */
};

/* All of them, by version. */
struct rv__plans {
    pthread_mutex_t lock; /* of this, and of their refs */
    struct rv__index by_version;
    struct rv__plan_ref *newest, *oldest; /* that nobody uses */
    size_t spare;
};

/* Runs that other processes handed over; guest.c. */
struct rv__guests {
    pthread_mutex_t lock; /* of the index: the loop changes it, others ask */
    struct rv__index by_run;
    struct rv__guest *first; /* all of them */
    size_t leaving;          /* of those that are being given back */
};

/* A wall clock may jump while we wait by the other; one that a test moves says so. */
#define RV__LONGEST_SLEEP_MS(engine) \
    ((engine)->kit == NULL ? INT64_C(60000) : INT64_C(10) * 365 * 24 * 3600 * 1000)

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
    bool worker;                   /* a worker brought it: another one may bring another */
    bool validates;                /* the same, and wants to judge inputs */
};

/* A workflow to be made known, compiled. */
struct rv__registration {
    struct rv__plan *plan; /* taken, and then NULL here */
    const struct rv__named_fn *functions;
    const char *directory, *source; /* NULL: not from a file */
    bool replace;                   /* another definition of that name gives way, */
    bool keep_others;               /* unless it is of another file that still exists */
};

/* Stays as long as the engine; a later registration changes what it does. */
struct rv__function {
    struct rv__function *next;      /* of all */
    struct rv__index_entry by_both; /* workflow and name */
    struct rv__index_entry by_name; /* one of those of that name */
    struct rv__str workflow, name;
    bool library;                  /* it is in no workflow: `workflow` is a file (RV_FUNCTIONS) */
    struct rv__executor *executor; /* that does it; NULL: nobody does now */
    void (*run)(struct rv__work *work);
    rv_step_fn fn;             /* in this process; NULL: elsewhere, */
    const char *module;        /* in a host of this one */
    uint64_t hash;             /* of the file that it was loaded from; 0: it is the program's own */
    struct rv__offer *offers;  /* of workers; workers.c has these */
    struct rv__served *served; /* by version: who does it for runs of that one; */
    size_t served_count;
    int any_class;         /* and for others. -1: nobody */
    uint64_t served_round; /* of the pool, in which that was found */
};

/* What is registered, and for whom: the engine's own runs, or one that another process handed over, whose
 * attempts see the environment of that process. Counted: its plans hold it. Thread: the loop's, but for the
 * count and what never changes. */
struct rv__registry {
    rv_engine *engine;
    atomic_size_t refs;
    struct rv__registered *workflows;
    struct rv__function *functions;
    struct {
        struct rv__index workflows;           /* by name */
        struct rv__index functions, callable; /* by workflow and name; by name */
    } by;
    uint64_t generation; /* counts registrations */
    /* The environment that its attempts see: of expressions, as JSON; of commands ("NAME=value" …, one block;
     * NULL: this process's). They never change, and never reach the store. */
    struct rv__buf env;
    const char *const *environment;
    struct rv__secret_source *secret_source; /* of its plans' secrets */
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
    struct rv__attempt *work; /* NULL: a wait */
    struct rv__timer timer;   /* in engine->waits or, for the time-out of work, engine->timeouts */
    struct rv__letter letter; /* it has fallen due, and waits in the mail of its run: */
    bool mailed, cleared;     /* that; and meanwhile nobody owes it any more */
    bool is_timeout;
};

enum { RV__BURST = 8 }; /* places at once for a run with quick work; dispatch.c */

#define RV__NOT_BEGUN_MS (INT64_MAX / 1000000) /* of a time-out that does not count yet */

/* A lane: its places are the credits of an executor, and runs that want one stand in a ring. */
struct rv__lane_places {
    struct rv__executor *executor; /* NULL: of suspects, of nobody */
    int64_t taken;                 /* granted, or at work; of LANE_SUSPECT: 1 at most */
    struct rv__run *first, *last;  /* who wants one */
    struct rv__work **starting;    /* work of this turn, to be started all at once */
    size_t starting_count, starting_cap;
};

enum { RV__WORKERS_MOST = 256 };

/* Functions that the same workers offer: runs that want one of these workers stand in a ring. */
struct rv__class {
    uint64_t set[RV__WORKERS_MOST / 64]; /* of workers, by number */
    struct rv__run *first, *last;
};

/* All workers that are connected, or may come back; workers.c. */
struct rv__pool {
    struct rv__worker *at[RV__WORKERS_MOST]; /* by number, which is the ticket - 1; NULL: none */
    struct rv__class *classes;
    size_t class_count, class_cap;
    uint64_t round; /* counts how often classes were made anew */
    size_t count;
    uint32_t granting; /* the ticket of the place that is being granted; 0: none is */
    bool changed;      /* classes are to be made anew */
};

/* All named limits, by number, which is the ticket of their places - 1; limits.c. */
struct rv__limits {
    struct rv__limit *at;
    size_t count, cap;
};

enum { RUN_BUCKETS = 1 << 14, OWED_BUCKETS_FIRST = 1 << 10 };

/* What several runs decided, on its way to disk; commit.c. */
struct rv__batch {
    struct rv__job job; /* first */
    rv_engine *engine;
    struct rv__arena arena; /* of what follows */
    bool used;              /* from gathering it until its runs are acted for */
    bool lost;              /* the store is gone. The desk's, until it has landed */
    struct rv__run *runs;   /* away: these; else NULL */
    struct rv__store_write *writes;
    struct rv__run **of;   /* whose write each is */
    size_t count, written; /* writes; those that are on disk, or refused */
    size_t
        doubtful; /* those behind them whose commit failed: the store may have them all the same */
};

enum { RV__BATCHES = 2 }; /* one is written, and under load the next waits for the disk already */

struct rv__commits {
    struct rv__batch batches[RV__BATCHES];
    bool lost;   /* the store is gone: no batch is written any more. The desk's */
    bool gone;   /* the same, for the loop: batches stay where they are, and nothing goes on */
    size_t away; /* batches at the desk */
    size_t away_count; /* writes of the last that went there */
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
    /* An executor for the lane of the head. */
    int (*executor)(rv_engine *engine, const struct rv__executor *head, struct rv__executor **ret,
                    rv_error *err);
    /* It has ended; it has begun, before that: post it, now or later. Thread: any */
    void (*answer)(struct rv__attempt *attempt);
    void (*begins)(struct rv__attempt *attempt);
    rv_step_fn (*instead)(rv_engine *engine, struct rv__str alias); /* NULL: as it is */
    /* A caller waits until *done, `by` fires, or until_ms (monotonic; INT64_MIN: no step runs and no time passes
     * meanwhile). NULL: it sleeps. */
    void (*await)(rv_engine *engine, const bool *done, rv_cancel *by, int64_t until_ms);
    /* The store and the handles to read it. */
    int (*open)(rv_engine *engine, const rv_engine_opts *opts, rv_error *err);
    void (*close)(rv_engine *engine); /* the store: the handles are closed already */
    /* A thread takes the turns: steps run beside it, and speak while they run. false: callers take them, as they
     * wait (`await`), and a step runs inside of such a call. */
    bool threads;
};

/* Of an engine that shares its store with others; member.c. */
struct rv__membership {
    bool on;
    atomic_llong id; /* in the store; changes when it has to join anew. Thread: any reads it */
    int64_t lease_ms;
    bool fenced; /* others have our runs: nothing goes on until we have joined anew */
    bool renewing, rejoining, rejoined; /* the job is under way; it has landed */
    bool seeks_gifts;                   /* others may have given us runs */
    bool seeks_own; /* a claim's answer was lost: some runs may be ours that we do not know of */
    int64_t renew_ms, look_ms, feed_ms; /* when next, by the monotonic clock */
    uint64_t generation;                /* of the registry, when runs were last looked for */
    int64_t fair_ms,
        gifts_ms; /* when it looks next whether it has its share; until when others may give it runs */
    bool
        anew; /* since then it changed: those that were given up for want of a function are looked at again */
    struct rv__member_counts {
        uint64_t claimed, taken_over, handed_over, refused; /* runs; metrics.c says what each is */
        uint64_t fenced;                                    /* times */
    } counted;
    pthread_mutex_t lock; /* of this handle, for those that ask others: */
    struct rv__store *asker;
    struct rv__store *office_store; /* of the thread that answers others: */
    pthread_t office;
    bool has_office;
    atomic_ulong office_self; /* the same thread, as it knows itself */
    atomic_bool stops;
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
    bool several_cpus;             /* its thread and the others' may run at the same time */
    bool idle, read_only;          /* start no work; change nothing */
    char only_run[RV_RUN_ID_SIZE]; /* "" = all runs */
    struct rv__notify
        *_Atomic notify;    /* of listeners of manifests: notify.c; NULL: there are none */
    char *store_name, *url; /* NULL: it has none. For commands with a token, and files beside it */
    int64_t down_ms;        /* the store was last written then, before this engine; 0: not known */
    char by[RV_BY_BYTES + 1];    /* who acts here unless a call says; "" = nobody is named */
    struct rv__control *control; /* others ask through it; NULL: they do not */
    struct rv__listeners
        *listeners;                /* rv_on(); NULL: there never was one. Made under callers_lock */
    struct rv__remote *remote;     /* workers come through it; NULL: there is no such address */
    struct rv__attached *attached; /* it is another's to drive; NULL: ours. Never changes */

    pthread_mutex_t callers_lock;
    size_t callers;      /* inside a public call; under it */
    pthread_cond_t left; /* the last of them has gone */

    struct rv__registry *registry; /* of its own runs */
    struct rv__guests guests;
    struct rv__function ambiguous; /* instead of a call that could mean several */
    struct rv__plans plans;
    bool relane; /* since the last registration, not every run has looked who does its work now */

    struct rv__run *runs[RUN_BUCKETS];
    size_t run_count;
    struct rv__run *deciding, **last_deciding; /* of this turn */
    size_t deciding_count;
    struct rv__commits commit;
    struct rv__membership member;
    struct rv__loads load;
    struct rv__mail retry; /* letters that there was no memory for */
    bool starved;          /* no memory for something in this turn: the next one follows soon */
    struct rv__owed **owed;
    size_t owed_size, owed_count;
    size_t timers_mailed;       /* that are due, and wait in the mail of their run */
    struct rv__timers waits;    /* by wall clock */
    struct rv__timers timeouts; /* by monotonic clock, ms */

    struct rv__lane_places lanes[LANES];
    struct rv__pool workers;
    struct rv__limits limits;
    int burst; /* places that a run gets at once at most; a simulation has others */

    struct rv__ids ids;
    struct rv__random random;
    struct rv__random
        nonces;          /* of runs: apart, for what a run is called must not change its chances */
    rv_cancel *closing;  /* parent of every step's token */
    bool closed;         /* nothing new is begun */
    bool drains;         /* and nobody is told, until it is closed */
    rv_cancel *over;     /* fired: its loop has ended */
    atomic_bool stopped; /* its loop has ended */
    int64_t drain_ms, tell_by_ns;  /* until then steps do not know that it closes; 0 = they do */
    int64_t grace_ms, close_by_ns; /* what still runs then is handed back */
    struct rv__attempt *in_flight; /* of all runs */
    int64_t log_tick_ms;           /* their log lines are fetched then (monotonic) */
    struct rv__call *early;        /* answers to handles that nobody waits for yet */
    struct rv__call *answered, **last_answered; /* callers to be woken, all at once, in order */
    /* Answered, but their steps had lent their places while they waited, and none is free: in order. */
    struct rv__call *returning, **last_returning;
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
/* The same, without a turn, and without what a member looks at every so often (member.h). */
int64_t rv__engine_own_due(rv_engine *engine);
/* What was decided in this turn is pumped, free places are given, and a batch leaves, if none is away. */
void rv__engine_decide(rv_engine *engine);
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
void rv__commits_answer_lost(rv_engine *engine); /* callers whose batch was lost with the lease */
void rv__commits_forget(rv_engine *engine);      /* for a death in a kit */
/* What was decided goes to disk, if the writer has nothing else to do or it pays to have the next batch ready
 * for it: on its way, or there already, and acted for. */
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
bool rv__place_free(const rv_engine *engine, enum rv__lane lane); /* may one be taken now? */
/* `ticket`: of a worker's place; 0: it is none. */
void rv__place_take(rv_engine *engine, enum rv__lane lane, uint32_t ticket);
void rv__place_give(rv_engine *engine, enum rv__lane lane, uint32_t ticket); /* it is free again */
void rv__ring_clear(rv_engine *engine,
                    struct rv__class *ring); /* whoever stands in it wants again */
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
void rv__owed_count_time(struct rv__attempt *attempt); /* it has begun: so has its time-out */
void rv__owed_answered(struct rv__attempt *attempt);   /* nobody is to be told to stop any more */

/* logs.c */
/* The failures among its facts that nobody would hear of, as lines of its log. RV_ENOMEM: none is. */
int rv__log_failures(struct rv__run *run);

/* executors.c */
int rv__executors_new(rv_engine *engine, int workers, rv_error *err);
void rv__executors_free(rv_engine *engine); /* waits for work that was handed back */
/* The attempt that this thread is at; NULL: it is no thread of a step. Thread: any */
struct rv__attempt *rv__executors_inside(const rv_engine *engine);
void rv__places_reset(rv_engine *engine); /* all work is forgotten: its process has died */

/* workers.c */
bool rv__workers_post(void *engine, struct rv__news *news); /* Thread: any */
void rv__workers_take(rv_engine *engine, struct rv__news *news);
void rv__workers_drain(
    rv_engine *engine); /* the loop has ended: what they said is not taken any more */
/* Node hosts, as the workers they are (scripts.c). */
extern const struct rv__script_owner rv__script_owner; /* without the engine itself */

void rv__workers_tick(rv_engine *engine);   /* classes are made anew, if need be */
void rv__workers_forget(rv_engine *engine); /* all of them: their process, or this one, has died */
/* Who does it for this node: a class; -1: no worker. */
int rv__workers_class(const rv_engine *engine, const struct rv__function *function,
                      const struct rv__node *node);
/* The least loaded of those that have a free credit: its ticket; 0: none has. */
uint32_t rv__workers_pick(const rv_engine *engine, int class_number);
int64_t rv__workers_credits(const rv_engine *engine, int class_number); /* of all of them */
bool rv__workers_offers(const rv_engine *engine, uint32_t ticket,
                        const struct rv__function *function);
struct rv__session *rv__workers_session(const rv_engine *engine, uint32_t ticket);
/* The worker that judges inputs of this version, the least loaded; held. NULL: none is there. */
struct rv__session *rv__workers_validator(const rv_engine *engine, const char *version);
uint64_t rv__workers_module(const rv_engine *engine, uint32_t ticket);  /* the hash of its code */
void rv__workers_count(rv_engine *engine, uint32_t ticket, int change); /* places of it */
void rv__function_done(struct rv__function *function); /* what is in it of workers */
/* For a kit, and for what they say: a worker that takes so many at once; its ticket, 0: there are too many, or no
 * memory. What it offers; how many it takes; whether it is away; that it is gone. */
uint32_t rv__worker_join(rv_engine *engine, struct rv__session *session, int64_t credits);
int rv__worker_offer(struct rv__registry *registry, uint32_t ticket, struct rv__function *function,
                     const char *version);
/* It judges inputs of workflows of that version. RV_ENOMEM. */
int rv__worker_judge(rv_engine *engine, uint32_t ticket, const char *version);
void rv__worker_withdraw(rv_engine *engine, uint32_t ticket); /* all that it offers, */
void rv__worker_withdraw_if(rv_engine *engine,
                            uint32_t ticket, /* but for what is kept; it judges nothing */
                            bool (*keep)(void *arg, const struct rv__function *f), void *arg);
bool rv__worker_is_idle(const rv_engine *engine, uint32_t ticket); /* it offers and does nothing */
void rv__worker_module(rv_engine *engine, uint32_t ticket, uint64_t module);
uint32_t rv__worker_ticket(const rv_engine *engine,
                           const struct rv__session *session); /* 0: none */
void rv__worker_change(rv_engine *engine, uint32_t ticket, int64_t credits, bool away);
void rv__worker_gone(rv_engine *engine, uint32_t ticket);
/* False: there is no such worker. */
bool rv__worker_load(const rv_engine *engine, uint32_t ticket, int64_t *credits, int64_t *taken);

/* retain.c */
void rv__retain_tick(rv_engine *engine); /* a piece of it, if it is time */
int64_t rv__retain_until_ns(const rv_engine *engine, int64_t until_ns); /* or when that is */

/* registry.c */
struct rv__registry *rv__registry_new(rv_engine *engine);             /* NULL: no memory */
struct rv__registry *rv__registry_ref(struct rv__registry *registry); /* Thread: any */
void rv__registry_unref(
    struct rv__registry *registry); /* cleared before; NULL is allowed. Thread: any */
void rv__registry_clear(
    struct rv__registry *registry); /* its workflows go; runs keep their plans */
int rv__registry_add(struct rv__registry *registry, const rv_workflow *workflow, rv_error *err);
/* A draft of one's own, from the plan's text: the one it was compiled from may be freed or changed. */
int rv__plan_draft(const struct rv__plan *plan, struct rv__draft **ret, rv_error *err);
/* The function of that name, made if there is none: nobody does it then. NULL: no memory. */
struct rv__function *rv__registry_function(struct rv__registry *registry, struct rv__str workflow,
                                           struct rv__str name, bool library);
int rv__registry_put(struct rv__registry *registry, struct rv__registration *registration,
                     rv_error *err);
/* Where the file of the workflow is that this node belongs to; NULL: it has none. */
/* As the public has it: enum rv_run_status, where 0 is "any". */
static inline int rv__public_status(enum rv__run_status status)
{
    return RV_RUNNING + (int)status;
}

const char *rv__registry_directory(struct rv__registry *registry, const struct rv__node *node);
bool rv__function_offered(const struct rv__function *function); /* here, or by a worker of ours */
struct rv__registered *rv__registry_find(struct rv__registry *registry, struct rv__str name);
struct rv__registered *rv__registry_offered(struct rv__registry *registry,
                                            struct rv__str name); /* not withdrawn */
/* The plan of that version, with the functions of that registry; one more holds it. *damaged: the store has it not, or in a form that cannot be
 * read. Thread: any, with a handle of its own. */
int rv__plan_ref_load(struct rv__registry *registry, struct rv__store *store,
                      struct rv__str version, struct rv__plan_ref **ret, bool *damaged,
                      rv_error *err);
struct rv__plan_ref *rv__plan_ref_ref(struct rv__plan_ref *plan); /* Thread: any */
/* How cells of this plan are made: by the loop, which knows who offers which function; and elsewhere, where
 * nobody is asked (rv__cell_lanes() follows). */
struct rv__cell_opts rv__plan_ref_opts(rv_engine *engine, struct rv__plan_ref *plan);
struct rv__cell_opts rv__plan_ref_opts_apart(rv_engine *engine, struct rv__plan_ref *plan);
void rv__plans_forgotten(rv_engine *engine); /* a new process does not know what is in the store */
void rv__plans_stored(struct rv__run *runs,
                      bool stored); /* the definitions that were on their way */
void rv__plan_ref_resolve(struct rv__plan_ref *plan);
/* Could a new run of it do what it says? RV_EINVAL: a call of it is ambiguous now. RV_ESTATE: see below. */
int rv__plan_ref_check(struct rv__plan_ref *plan, rv_error *err);
/* limits.c: named limits, as the configuration has them. */
int rv__limits_take(rv_engine *engine); /* those of its providers. RV_ENOMEM */
/* One more; its name lives as long as the engine. RV_ENOMEM. */
int rv__limits_add(rv_engine *engine, const struct rv__limit *limit);
void rv__limits_free(rv_engine *engine);
void rv__limits_reset(rv_engine *engine); /* as a new process has them; nobody waits for any */
/* The limit that work of this node needs: its number; -1: none. */
int rv__limits_of(const rv_engine *engine, const struct rv__node *node, int eval);
/* May a place of the first that waits for it be granted now, as far as the limit goes? */
bool rv__limits_give(const rv_engine *engine, size_t number);
/* When the next limit that somebody waits for has room, if that is before until_ns. Monotonic. */
int64_t rv__limits_until_ns(const rv_engine *engine, int64_t until_ns);

/* config.c: its providers, from the file that it was told, or that beside its store. Errors: RV_EINVAL, RV_ENOMEM. */
int rv__config_take(rv_engine *e, const rv_engine_opts *opts, rv_error *err);

/* Why no run of it can be started now (its secrets have no values); NULL: it can. Lives as long as the plan. */
const char *rv__plan_ref_blocked(const struct rv__plan_ref *plan);
/* The secret without a value that this node waits for; "none": it waits for none. */
struct rv__str rv__plan_ref_secret(const struct rv__plan_ref *plan, const struct rv__node *node);
/* The function of an attempt (eval -1) or an evaluation; NULL: not known. `body`: whose input it makes; NULL: no
 * body's. Its name; none: no function does it. */
const struct rv__function *rv__plan_ref_fn(const struct rv__plan_ref *plan,
                                           const struct rv__node *node, int eval,
                                           const struct rv__body *body);
struct rv__str rv__plan_ref_fn_name(const struct rv__node *node, int eval,
                                    const struct rv__body *body);
void rv__plan_ref_unref(struct rv__plan_ref *plan);
void rv__registry_free(rv_engine *engine); /* its own, and every plan */

/* guest.c */
/* Is the run one that this engine drives, or drove until it was given back? Thread: any. */
bool rv__engine_drives(rv_engine *engine, const char *run_id);
void rv__guest_name_all(rv_engine *engine, struct rv__buf *out); /* as a JSON array. Thread: any */
bool rv__guests_here(const rv_engine *engine);                   /* is there any that is driven? */
/* A struct for a run was made: whose it is. */
void rv__guest_claims(rv_engine *engine, struct rv__run *run);
int rv__guest_take(rv_engine *engine, struct rv__call *call);    /* CALL_HAND_OVER */
int rv__guest_release(rv_engine *engine, struct rv__call *call); /* CALL_HAND_BACK */
/* Those that are being given back: what is to be done for them now, and when next (monotonic ns). */
void rv__guests_tick(rv_engine *engine);
int64_t rv__guests_until_ns(const rv_engine *engine, int64_t until_ns);
void rv__guests_close(rv_engine *engine); /* who waits for one to be given back: RV_ECLOSED */
void rv__guests_free(rv_engine *engine);

/* call.c */
void rv__call_take(rv_engine *engine, struct rv__call *call);
/* Its run is not here: run->trouble. It is answered, or (a start) begins the run. */
void rv__call_absent(rv_engine *engine, struct rv__call *call, struct rv__run *run);
bool rv__call_looks(const struct rv__call *call); /* at a run, and changes nothing */
/* Its run is not ours (member.h). `seen`: as the store has it; NULL: it was not read, since it is `owner`'s. False: the
 * call has not been answered, and is to be taken again. */
bool rv__call_elsewhere(rv_engine *engine, struct rv__call *call, struct rv__run *seen,
                        int64_t owner);
/* The run has become another member's: who waits for it here looks at it there. */
void rv__run_calls_elsewhere(struct rv__run *run);
/* Nobody knows whether its last write is on disk: who sent it a message is told so, others may ask again. */
void rv__run_calls_doubtful(struct rv__run *run);
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
/* The store is gone: all that wait are told, steps are, and nothing goes on. */
void rv__engine_gone(rv_engine *engine);
/* Steps that waited for a run, and whose wait is over, get places again, before anybody else does. */
void rv__calls_return(rv_engine *engine);
bool rv__calls_may_return(const rv_engine *engine);
void rv__calls_refuse(rv_engine *engine, const rv_error *why); /* everybody who still waits: this */
void rv__calls_close(rv_engine *engine);  /* everybody who still waits: RV_ECLOSED */
void rv__calls_again(rv_engine *engine);  /* everybody who still waits asks again */
void rv__engine_enter(rv_engine *engine); /* it is not freed before the leave. Thread: any */
void rv__engine_leave(rv_engine *engine); /* Thread: any */

/* Functions that rv_agent() made known are a library of this name. Thread: the loop's. */
#define RV__AGENTS "agents"
bool rv__registry_has_agent(struct rv__registry *registry, struct rv__str id);
/* listen.c: no listener is called any more, once the feed has ended; what is left of them. */
void rv__listeners_close(rv_engine *engine);
void rv__listeners_free(rv_engine *engine);
/* logs.c: a line in the log of a run that is in memory, of nobody's attempt. RV_EBUSY: it is being written just
 * now; RV_ENOTFOUND: it is not there.   Thread: any but the loop's. */
int rv__run_say(rv_engine *engine, const char *run_id, const char *path, const char *text);

#endif
