/* engine.h: the inside of rv_engine. One loop owns all of it.
 *
 * One turn of the loop:
 *   1. Take the letters that have arrived: results of steps, API calls, due timers. Pass each to its run's flow.
 *   2. Grant free places to waiting work.
 *   3. Write the new facts of all runs in one commit.
 *   4. Only then act: start work, arm timers, answer callers. So nobody outside sees what a crash could undo.
 *
 * Thread: everything here belongs to the loop's thread, unless its comment says otherwise. Other threads send letters
 * (rv__engine_post). A run's struct is reference-counted, because work on other threads holds it; the fields that
 * those threads read (id, plan, engine) never change. */
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

/* A plan that runs use, and the known functions of its nodes. */
struct rv__plan_ref {
    struct rv__index_entry by_version;
    struct rv__plans *of;
    struct rv__registry *registry;      /* where its functions come from; held */
    struct rv__plan_ref *newer, *older; /* in the list of unused plans */
    struct rv__plan *plan;
    size_t refs;                       /* under of->lock */
    const struct rv__function **steps; /* by node id: the step's function; NULL: not known */
    const struct rv__function **evals; /* by node id × EVALS: but those of inputs */
    uint64_t resolved;                 /* the registry's generation when these were looked up */
    const struct rv__node
        *ambiguous; /* a call that matched several functions at that time; NULL: none */
    enum { DEFINITION_NEW, DEFINITION_AWAY, DEFINITION_STORED } stored; /* is it in the store? */
    struct rv__plan_exprs exprs;
    struct rv__secrets *secrets; /* NULL: it declares none */
    uint16_t *series;            /* by node id: the metrics series of its steps; metrics.c */
};

/* All plans, by version. */
struct rv__plans {
    pthread_mutex_t lock; /* of this struct and of the plans' refs */
    struct rv__index by_version;
    struct rv__plan_ref *newest, *oldest; /* unused plans */
    size_t spare;
};

/* Runs that other processes handed to this engine; guest.c. */
struct rv__guests {
    pthread_mutex_t lock; /* of the index: the loop changes it, other threads read it */
    struct rv__index by_run;
    struct rv__guest *first; /* all of them */
    size_t leaving;          /* runs that are being given back */
};

/* The wall clock may jump while we wait by the monotonic clock. A test's clock reports its jumps. */
#define RV__LONGEST_SLEEP_MS(engine) \
    ((engine)->kit == NULL ? INT64_C(60000) : INT64_C(10) * 365 * 24 * 3600 * 1000)

#define RV__STORE_DEFAULT "rival.db"

/* A registered workflow: new runs take its plan by name. */
struct rv__registered {
    struct rv__registered *next; /* the workflow registered before it */
    struct rv__index_entry by_name;
    struct rv__str name;
    struct rv__plan_ref *plan;
    struct rv__draft *draft;       /* for workflows that nest it */
    char directory[RV__PATH_ROOM]; /* of its file; its commands start there; "" = none */
    char source[RV__PATH_ROOM];    /* its file; "" = the program */
    bool withdrawn;                /* kept for existing runs; new runs do not find it */
    bool worker;                   /* registered by a worker: another worker may replace it */
    bool validates;                /* by a worker that also validates inputs */
};

/* A compiled workflow that is to be registered. */
struct rv__registration {
    struct rv__plan *plan; /* taken over; NULL after that */
    const struct rv__named_fn *functions;
    const char *directory, *source; /* NULL: not from a file */
    bool replace;                   /* another definition of that name gives way, */
    bool keep_others;               /* unless it is of another file that still exists */
};

/* Lives as long as the engine; a later registration may change its fields. */
struct rv__function {
    struct rv__function *next;      /* in the list of all */
    struct rv__index_entry by_both; /* workflow and name */
    struct rv__index_entry by_name; /* one of the functions of that name */
    struct rv__str workflow, name;
    bool library;                  /* of a library (RV_FUNCTIONS): `workflow` is its file */
    struct rv__executor *executor; /* that runs it; NULL: none does now */
    void (*run)(struct rv__work *work);
    rv_step_fn fn;             /* in this process; NULL: in another one: */
    const char *module;        /* a host of this module, */
    uint64_t hash;             /* of the file that it was loaded from; 0: of this program */
    struct rv__offer *offers;  /* or workers that offer it; workers.c */
    struct rv__served *served; /* by version: the workers for runs of that version; */
    size_t served_count;
    int any_class;         /* and for all other runs; -1: none */
    uint64_t served_round; /* rv__pool.round when these were computed */
};

/* What is registered for the engine's own runs, or for a run that another process handed over. The attempts of such a
 * run see that process's environment. Reference-counted: plans hold it. Thread: the loop's, except for the count and
 * for fields that never change. */
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
    /* The environment of its attempts: for expressions as JSON; for commands as one block of "NAME=value" (NULL:
     * this process's). Both never change and are never stored. */
    struct rv__buf env;
    const char *const *environment;
    struct rv__secret_source *secret_source; /* of its plans' secrets */
};

/* The path of a shared object. Lives as long as the engine. */
struct rv__module {
    struct rv__module *next;
    char path[];
};

/* What an actor waits for: the end of a piece of work, or a timer. */
struct rv__owed {
    struct rv__owed *next;             /* in its bucket */
    struct rv__owed *run_next, **link; /* in the list of its run */
    struct rv__run *run;
    uint64_t actor, token;
    struct rv__attempt *work; /* NULL: a wait */
    struct rv__timer timer;   /* in engine->waits or, for the time-out of work, engine->timeouts */
    struct rv__letter letter; /* of a due timer that its run cannot take yet: */
    bool mailed, cleared;     /* it is in the run's mail; the actor no longer waits for it */
    bool is_timeout;
};

enum { RV__BURST = 8 }; /* places that a run with quick work gets at once; dispatch.c */

#define RV__NOT_BEGUN_MS (INT64_MAX / 1000000) /* a time-out whose attempt has not begun */

/* A lane. Its places are the credits of an executor; the runs that want a place form a ring. */
struct rv__lane_places {
    struct rv__executor *executor; /* NULL: LANE_SUSPECT and LANE_NOBODY have none */
    int64_t taken;                 /* places in use; LANE_SUSPECT: 1 at most */
    struct rv__run *first, *last;  /* the ring of runs that want a place */
    struct rv__work **starting;    /* work of this turn; started in one call */
    size_t starting_count, starting_cap;
};

enum { RV__WORKERS_MOST = 256 };

/* A class: all functions that the same set of workers offers. The runs that want one of these workers form a ring. */
struct rv__class {
    uint64_t set[RV__WORKERS_MOST / 64]; /* of workers, by number */
    struct rv__run *first, *last;
};

/* All workers that are connected or may reconnect; workers.c. */
struct rv__pool {
    struct rv__worker *at[RV__WORKERS_MOST]; /* by number, which is the ticket - 1; NULL: none */
    struct rv__class *classes;
    size_t class_count, class_cap;
    uint64_t round; /* counts how often the classes were computed */
    size_t count;
    uint32_t granting; /* the ticket of the place that is being granted; 0: none is */
    bool changed;      /* the classes must be computed again */
};

/* All named limits, by number, which is the ticket of their places - 1; limits.c. */
struct rv__limits {
    struct rv__limit *at;
    size_t count, cap;
};

enum { RUN_BUCKETS = 1 << 14, OWED_BUCKETS_FIRST = 1 << 10 };

/* The decided facts of several runs, written in one commit; commit.c. */
struct rv__batch {
    struct rv__job job; /* first */
    rv_engine *engine;
    struct rv__arena arena; /* of what follows */
    bool used;              /* from gathering until the effects of its runs are released */
    bool lost; /* the store was deleted. Belongs to the desk until the batch has landed */
    struct rv__run *runs; /* at the desk: its runs; else NULL */
    struct rv__store_write *writes;
    struct rv__run **of;   /* the run of each write */
    size_t count, written; /* writes; those that are done or refused */
    size_t
        doubtful; /* those behind them whose commit failed: the store may have them all the same */
};

enum { RV__BATCHES = 2 }; /* one is being written; under load the next is already prepared */

struct rv__commits {
    struct rv__batch batches[RV__BATCHES];
    bool lost;         /* the store was deleted: no batch is written. Belongs to the desk */
    bool gone;         /* the same, for the loop: nothing continues */
    size_t away;       /* batches at the desk */
    size_t away_count; /* writes in the newest of them */
    /* Limits, which a simulation makes small: */
    size_t piece;         /* most bytes of one transaction */
    size_t snapshot_from; /* bytes of journal from which a snapshot is written */
    size_t value_inline;  /* as in rv__cell_opts; 0 = as there */
    int turn_facts;
    uint64_t beside;              /* batches that the desk wrote */
    pthread_mutex_t lock;         /* of the rest: */
    struct rv__store_stats stats; /* of the writer, after the last attempt */
    rv_health health;             /* of the last attempts */
    atomic_bool failing;          /* = health.stuck; read without the lock */
};

/* Runs that are being loaded; load.c. */
struct rv__loads {
    struct rv__run *first, **last; /* the queue */
    size_t waiting, under_way;     /* length of the queue; jobs at the desk */
    size_t budget;         /* bytes of cells; above it only runs with a waiting caller are loaded */
    size_t cell_bytes;     /* of all runs in memory */
    bool scanning;         /* a scan is under way */
    bool more_active;      /* not all active runs have been found: */
    uint64_t active_after; /* continue after this number */
    int64_t wake_ms;       /* when the first sleeping run is due; 0 = none sleeps */
    int64_t wake_ms_since; /* the same, of runs that went to sleep during the scan */
    struct rv__store_place due_place; /* the scan for due runs continues after it */
    int64_t retry_ms; /* after a failed read: no scan before this time (monotonic); 0 = none */
};

/* Automatic retention; retain.c. */
struct rv__retention {
    struct rv__job job; /* first: removes a few runs */
    struct rv__retain_limits limits;
    int64_t next_ms;  /* time of the next job (monotonic) */
    uint64_t removed; /* runs removed so far */
    bool sweeping;    /* rows of removed runs are left to delete. Belongs to the desk */
    bool under_way;
    uint64_t piece; /* result of the last job */
    bool more;
    int rc;
};

/* The environment of an engine: threads and the system's clock, or the replacements of a test kit. */
struct rv__around {
    struct rv__clock *clock;
    struct rv__desk *writer, *reader;
    /* An executor for the lane of the head. */
    int (*executor)(rv_engine *engine, const struct rv__executor *head, struct rv__executor **ret,
                    rv_error *err);
    /* An attempt has ended, or has begun: post that to the loop, now or later. Thread: any */
    void (*answer)(struct rv__attempt *attempt);
    void (*begins)(struct rv__attempt *attempt);
    rv_step_fn (*instead)(rv_engine *engine, struct rv__str alias); /* a replacement; NULL: none */
    /* Make a caller wait until *done, `by` fires, or until_ms (monotonic; INT64_MIN: without running steps or moving
     * time). NULL: the caller's thread sleeps. */
    void (*await)(rv_engine *engine, const bool *done, rv_cancel *by, int64_t until_ms);
    /* The store and the handles to read it. */
    int (*open)(rv_engine *engine, const rv_engine_opts *opts, rv_error *err);
    void (*close)(rv_engine *engine); /* close the store; its other handles are closed already */
    /* True: the loop has a thread, and steps run beside it. False: callers take the loop's turns while they wait
     * (`await`), and steps run inside such a call. */
    bool threads;
};

/* An engine that shares its store with other engines; member.c. */
struct rv__membership {
    bool on;
    atomic_llong id; /* in the store; a new one after each join. Any thread may read it */
    int64_t lease_ms;
    bool fenced; /* the lease was lost: nothing continues until this engine has joined again */
    bool renewing, rejoining, rejoined; /* a job is at the desk; it has landed */
    bool seeks_gifts;                   /* others may have given us runs */
    bool seeks_own; /* the answer of a claim was lost: we may own runs that are not in memory */
    int64_t renew_ms, look_ms, feed_ms; /* next time of each (monotonic) */
    uint64_t generation;                /* of the registry at the last scan */
    int64_t fair_ms;                    /* next time to check that it has its share of the runs */
    int64_t gifts_ms; /* next time to look for runs that others gave it; 0: it has asked for none */
    int64_t soon_ms;  /* until then they are likely to come */
    bool
        anew; /* since then it changed: those that were given up for want of a function are looked at again */
    struct rv__member_counts {
        uint64_t claimed, taken_over, handed_over, refused; /* runs; metrics.c says what each is */
        uint64_t fenced;                                    /* times */
    } counted;
    char workers[RV__STORE_ADDRESS_SIZE]; /* where workers reach this engine; "": it does not say */
    struct rv__buf peers; /* the members that workers can reach, as ours were told */
    int64_t peers_of;     /* which of them this engine was then */
    pthread_mutex_t lock; /* of this handle, for requests to other members: */
    struct rv__store *asker;
    struct rv__store *office_store; /* of the thread that answers other members: */
    pthread_t office;
    bool has_office;
    atomic_ulong office_self; /* that thread's own id */
    atomic_bool stops;
};

struct rv_engine {
    struct rv__around around;
    struct rv__clock *clock;  /* = around.clock */
    int64_t now_ms;           /* wall clock at the start of this turn */
    struct rv__store *store;  /* the writer */
    struct rv__store *reader; /* of the loop */
    struct rv__store *loader; /* of the reading desk */
    size_t writing;           /* jobs at the writing desk */
    pthread_mutex_t step_reader_lock;
    struct rv__store *step_reader; /* shared by the steps' threads */
    struct rv__services services;  /* what attempts use */
    struct rv__module *modules;
    struct rv__kit *kit; /* only in tests: their environment; else NULL */
    uint64_t life; /* counts simulated crashes: results from before the last one are ignored */
    struct rv__reading *reading; /* the feed, logs, nodes: reading.h */
    struct rv__metrics *metrics;
    struct rv__queue inbox;
    pthread_t thread;
    int max_crashes;
    bool running_thread;
    bool several_cpus;                 /* its thread and others can run at the same time */
    bool idle, read_only;              /* start no work; change nothing */
    char only_run[RV_RUN_ID_SIZE];     /* "" = all runs */
    struct rv__notify *_Atomic notify; /* listeners of manifests: notify.c; NULL: none */
    char *store_name,
        *url;        /* NULL: none. For commands with a token, and for files beside the store */
    int64_t down_ms; /* when an earlier engine wrote the store last; 0: not known */
    char by[RV_BY_BYTES + 1];    /* recorded as the actor of calls that name none; "" = no name */
    struct rv__control *control; /* the control socket; NULL: none */
    struct rv__listeners
        *listeners;            /* of rv_on(); NULL: there was none yet. Made under callers_lock */
    struct rv__remote *remote; /* the address for workers; NULL: none */
    struct rv__attached
        *attached; /* another process drives the store; NULL: this one does. Never changes */

    pthread_mutex_t callers_lock;
    size_t callers;      /* threads inside a public call; under callers_lock */
    pthread_cond_t left; /* the last caller has left */

    struct rv__registry *registry; /* of its own runs */
    struct rv__guests guests;
    struct rv__function ambiguous; /* stands for a call that matches several functions */
    struct rv__plans plans;
    bool relane; /* some runs have not been assigned to lanes since the last registration */

    struct rv__run *runs[RUN_BUCKETS];
    size_t run_count;
    struct rv__run *deciding, **last_deciding; /* of this turn */
    size_t deciding_count;
    struct rv__commits commit;
    struct rv__membership member;
    struct rv__loads load;
    struct rv__mail retry; /* letters to take again: there was no memory */
    bool starved;          /* out of memory in this turn: try again soon */
    struct rv__owed **owed;
    size_t owed_size, owed_count;
    size_t timers_mailed;       /* due timers in the mail of their runs */
    struct rv__timers waits;    /* by wall clock */
    struct rv__timers timeouts; /* by monotonic clock, ms */

    struct rv__lane_places lanes[LANES];
    struct rv__pool workers;
    struct rv__limits limits;
    int burst; /* most places that a run gets at once; a simulation changes it */

    struct rv__ids ids;
    struct rv__random random;
    struct rv__random nonces; /* of runs; apart, so that ids do not change other random numbers */
    rv_cancel *closing;       /* parent of every step's token */
    bool closed;              /* no new work starts */
    bool drains;              /* running steps are not cancelled until the engine closes */
    rv_cancel *over;          /* fired when the loop has ended */
    atomic_bool stopped;      /* its loop has ended */
    int64_t drain_ms, tell_by_ns;  /* steps are cancelled at this time; 0 = they have been */
    int64_t grace_ms, close_by_ns; /* work that still runs then is handed back */
    struct rv__attempt *in_flight; /* of all runs */
    int64_t log_tick_ms;           /* next time to fetch their log lines (monotonic) */
    struct rv__call *early;        /* completions of handles that no step waits for yet */
    struct rv__call *answered,
        **last_answered; /* callers to wake at the end of the turn, in order */
    /* Answered calls of steps that gave their places back while waiting, and for which none is free: in order. */
    struct rv__call *returning, **last_returning;
    int64_t commits;
    struct rv__retention retain;
};

/* engine.c */
/* Without a thread, on the kit's store and clock. Takes the kit over, even on failure. */
int rv__engine_make(const rv_engine_opts *opts, struct rv__kit *kit, uint64_t seed, rv_engine **ret,
                    rv_error *err);
/* Drop all runs from memory; calls that wait for them ask again. For simulated crashes. */
void rv__engine_forget_runs(rv_engine *engine);

/* Open another handle to read the store, for long reads. The caller closes it. Thread: any. */
int rv__engine_reader(rv_engine *engine, struct rv__store **ret, rv_error *err);

/* loop.c */
void *rv__engine_main(void *engine);
/* Take one turn on the letters that have arrived. Returns until when to sleep (monotonic ns); 0: do not sleep. */
int64_t rv__engine_turn(rv_engine *engine);
/* The same, without a turn, and without what a member looks at every so often (member.h). */
int64_t rv__engine_own_due(rv_engine *engine);
/* End of a turn: let runs decide, grant free places, and send a batch to the desk, unless one is there. */
void rv__engine_decide(rv_engine *engine);
int rv__engine_post(rv_engine *engine, struct rv__letter *letter); /* RV_ECLOSED. Thread: any */
void rv__letter_take(rv_engine *engine, struct rv__letter *letter);
/* Give the desk a job. Without a desk the job runs now. `landed` is called in either case. */
void rv__write_job(rv_engine *engine, struct rv__job *job);
void rv__read_job(rv_engine *engine, struct rv__job *job);
/* Take the letter again later: there was no memory. */
void rv__engine_take_again(rv_engine *engine, struct rv__letter *letter);

/* commit.c */
int rv__commits_init(rv_engine *engine, rv_error *err);
void rv__commits_done(rv_engine *engine);
void rv__commits_answer_lost(rv_engine *engine); /* callers whose batch was lost with the lease */
void rv__commits_forget(rv_engine *engine);      /* for simulated crashes */
/* Write what was decided, if the writer is idle or if a second batch pays off. The batch is then at the desk, or has
 * already landed and its effects are released. */
void rv__commit(rv_engine *engine);
bool rv__commit_failing(
    const rv_engine *engine); /* is a batch at the desk that the store refuses? Thread: any */
/* Let the run leave memory if it has nothing to do for a while. Its row says when it is due. */
void rv__run_let_go(struct rv__run *run);

/* load.c */
/* Find the run for a letter. NULL: the run is being loaded; the letter waits in its mail and is taken once the run is
 * loaded or does not exist (run->trouble). RV_ENOMEM. */
int rv__run_reach(rv_engine *engine, const char *id, struct rv__letter *letter, bool looks,
                  struct rv__run **ret);
void rv__run_load(struct rv__run *run, bool urgent); /* from absent to loading */
/* The store refused the run's last facts. The run is as before them, and suspended: a decision is needed. */
void rv__run_suspend_refused(struct rv__run *run);
/* The run cannot be read: its row says so with run->why, and other runs continue. */
void rv__run_set_aside(struct rv__run *run, const char *because);
void rv__run_tell_absent(
    struct rv__run *run); /* answers the letters in its mail with run->trouble */
/* Read the run from the store, whatever is in memory; the result is not in the table of runs. RV_ENOTFOUND. */
int rv__run_read(rv_engine *engine, const char *id, struct rv__run **ret, rv_error *err);
void rv__run_unread(struct rv__run *run);
void rv__load_init(rv_engine *engine);
void rv__recover(rv_engine *engine); /* start the scan for active runs */
/* Give the reading desk its next jobs: queued runs, and scans. */
void rv__load_tick(rv_engine *engine);
int64_t rv__load_until_ns(rv_engine *engine, int64_t until_ns); /* or when that is */
void rv__load_asleep(rv_engine *engine,
                     int64_t wake_ms); /* another run sleeps in the store until then */

/* dispatch.c */
void rv__grant_all(rv_engine *engine, int64_t now_ms);
int64_t rv__places_taken(const rv_engine *engine); /* by functions, in all lanes */
bool rv__may_grant(const rv_engine *engine);       /* a place is free and a run wants it */
bool rv__place_free(const rv_engine *engine, enum rv__lane lane); /* is a place free? */
/* `ticket`: of the worker whose place it is; 0: of none. */
void rv__place_take(rv_engine *engine, enum rv__lane lane, uint32_t ticket);
void rv__place_give(rv_engine *engine, enum rv__lane lane, uint32_t ticket); /* give it back */
void rv__ring_clear(rv_engine *engine,
                    struct rv__class *ring); /* its runs may ask for places again */
void rv__run_queue_wants(struct rv__run *run);
void rv__run_unqueue(struct rv__run *run);
void rv__release_effects(struct rv__run *run);
void rv__effects_drop(
    struct rv__run *run); /* without releasing them; their places are given back */
/* Does the effect run code inside the engine's process, which could kill it? */
bool rv__effect_in_process(const struct rv__effect *effect);
void rv__start_all(rv_engine *engine); /* starts the work of released effects */
void rv__owe(struct rv__run *run, const struct rv__effect *effect);
void rv__owe_again(struct rv__run *run); /* after there was no memory */
void rv__owed_clear(struct rv__run *run, uint64_t actor);
void rv__owed_clear_all(struct rv__run *run, bool tell); /* tell: cancel work in flight */
void rv__owed_unmail(struct rv__owed *owed);             /* its letter was taken out of the mail */
void rv__owed_due(rv_engine *engine, struct rv__owed *owed); /* its timer is due */
void rv__owed_mailed(rv_engine *engine,
                     struct rv__owed *owed); /* its run takes the letter from its mail */
void rv__owed_count_time(
    struct rv__attempt *attempt);                    /* the attempt has begun: start its time-out */
void rv__owed_answered(struct rv__attempt *attempt); /* it need not be cancelled any more */

/* logs.c */
/* Write log lines for failures among its facts that are reported nowhere else. RV_ENOMEM: none was written. */
int rv__log_failures(struct rv__run *run);

/* executors.c */
int rv__executors_new(rv_engine *engine, int workers, rv_error *err);
void rv__executors_free(rv_engine *engine); /* waits until handed-back work has ended */
/* The attempt that runs on the calling thread; NULL: none does. Thread: any */
struct rv__attempt *rv__executors_inside(const rv_engine *engine);
void rv__places_reset(rv_engine *engine); /* after a simulated crash: no work is in flight */

/* workers.c */
bool rv__workers_post(void *engine, struct rv__news *news); /* Thread: any */
void rv__workers_take(rv_engine *engine, struct rv__news *news);
void rv__workers_drain(rv_engine *engine); /* the loop has ended: drop messages of workers */
/* Node hosts are workers to the engine (scripts.c). */
extern const struct rv__script_owner rv__script_owner; /* without the engine itself */

void rv__workers_tick(rv_engine *engine); /* computes the classes again, if needed */
/* All runs are forgotten, and the workers are still connected: only what they still work on is taken. */
void rv__workers_recount(rv_engine *engine);
void rv__workers_forget(rv_engine *engine); /* after a simulated crash */
/* The class of workers that runs this node's function; -1: none. */
int rv__workers_class(const rv_engine *engine, const struct rv__function *function,
                      const struct rv__node *node);
/* The ticket of the least loaded worker with a free credit; 0: none has one. */
uint32_t rv__workers_pick(const rv_engine *engine, int class_number);
int64_t rv__workers_credits(const rv_engine *engine, int class_number); /* of all its workers */
bool rv__workers_offers(const rv_engine *engine, uint32_t ticket,
                        const struct rv__function *function);
struct rv__session *rv__workers_session(const rv_engine *engine, uint32_t ticket);
/* The least loaded worker that validates inputs of this version; held. NULL: none. */
struct rv__session *rv__workers_validator(const rv_engine *engine, const char *version);
uint64_t rv__workers_module(const rv_engine *engine, uint32_t ticket);  /* hash of its code */
void rv__workers_count(rv_engine *engine, uint32_t ticket, int change); /* places of it in use */
/* Work of a run that was forgotten has ended. */
void rv__workers_free_place(rv_engine *engine, const struct rv__attempt *a);
void rv__function_done(struct rv__function *function); /* frees its workers' offers */
/* Also for test kits: add a worker with so many credits (returns its ticket; 0: too many workers, or no memory), change
 * its offers and credits, mark it disconnected, remove it. */
uint32_t rv__worker_join(rv_engine *engine, struct rv__session *session, int64_t credits);
int rv__worker_offer(struct rv__registry *registry, uint32_t ticket, struct rv__function *function,
                     const char *version);
/* It validates inputs of workflows of that version. RV_ENOMEM. */
int rv__worker_judge(rv_engine *engine, uint32_t ticket, const char *version);
void rv__worker_withdraw(rv_engine *engine, uint32_t ticket); /* all its offers, */
void rv__worker_withdraw_if(rv_engine *engine,
                            uint32_t ticket, /* except those kept; it validates nothing */
                            bool (*keep)(void *arg, const struct rv__function *f), void *arg);
bool rv__worker_is_idle(const rv_engine *engine, uint32_t ticket); /* has no offers and no work */
void rv__worker_module(rv_engine *engine, uint32_t ticket, uint64_t module);
uint32_t rv__worker_ticket(const rv_engine *engine,
                           const struct rv__session *session); /* 0: none */
void rv__worker_change(rv_engine *engine, uint32_t ticket, int64_t credits, bool away);
void rv__worker_gone(rv_engine *engine, uint32_t ticket);
/* False: there is no such worker. */
bool rv__worker_load(const rv_engine *engine, uint32_t ticket, int64_t *credits, int64_t *taken);

/* retain.c */
void rv__retain_tick(rv_engine *engine); /* removes some runs, if it is time */
int64_t rv__retain_until_ns(const rv_engine *engine, int64_t until_ns); /* or when that is */

/* registry.c */
struct rv__registry *rv__registry_new(rv_engine *engine);             /* NULL: no memory */
struct rv__registry *rv__registry_ref(struct rv__registry *registry); /* Thread: any */
void rv__registry_unref(
    struct rv__registry *registry); /* cleared before; NULL is allowed. Thread: any */
void rv__registry_clear(
    struct rv__registry *registry); /* removes its workflows; runs keep their plans */
int rv__registry_add(struct rv__registry *registry, const rv_workflow *workflow, rv_error *err);
/* Make a draft from the plan's text: the draft that it was compiled from may be freed or changed. */
int rv__plan_draft(const struct rv__plan *plan, struct rv__draft **ret, rv_error *err);
/* Find or make the function of that name. A new one has no executor. NULL: no memory. */
struct rv__function *rv__registry_function(struct rv__registry *registry, struct rv__str workflow,
                                           struct rv__str name, bool library);
int rv__registry_put(struct rv__registry *registry, struct rv__registration *registration,
                     rv_error *err);
/* The folder of the file that defines this node's workflow; NULL: no file. */
/* As enum rv_run_status of the public API, where 0 means any. */
static inline int rv__public_status(enum rv__run_status status)
{
    return RV_RUNNING + (int)status;
}

const char *rv__registry_directory(struct rv__registry *registry, const struct rv__node *node);
bool rv__function_offered(const struct rv__function *function); /* here, or by a worker of ours */
struct rv__registered *rv__registry_find(struct rv__registry *registry, struct rv__str name);
struct rv__registered *rv__registry_offered(struct rv__registry *registry,
                                            struct rv__str name); /* not withdrawn */
/* Get the plan of that version, with the functions of that registry; the caller holds it. *damaged: the store does not
 * have it, or it cannot be read. Thread: any, with its own store handle. */
int rv__plan_ref_load(struct rv__registry *registry, struct rv__store *store,
                      struct rv__str version, struct rv__plan_ref **ret, bool *damaged,
                      rv_error *err);
struct rv__plan_ref *rv__plan_ref_ref(struct rv__plan_ref *plan); /* Thread: any */
/* Options for cells of this plan: in the loop, which knows the lanes of functions; and on other threads, without lanes
 * (the loop calls rv__cell_lanes() later). */
struct rv__cell_opts rv__plan_ref_opts(rv_engine *engine, struct rv__plan_ref *plan);
struct rv__cell_opts rv__plan_ref_opts_apart(rv_engine *engine, struct rv__plan_ref *plan);
void rv__plans_forgotten(
    rv_engine *engine); /* after a simulated crash: not known which plans are stored */
void rv__plans_stored(struct rv__run *runs, bool stored); /* of the definitions in a batch */
void rv__plan_ref_resolve(struct rv__plan_ref *plan);
/* Can a new run of this plan start? RV_EINVAL: a call in it is ambiguous. RV_ESTATE: see the next function. */
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

/* config.c: read the providers from the given file, or from the one beside the store. Errors: RV_EINVAL, RV_ENOMEM. */
int rv__config_take(rv_engine *e, const rv_engine_opts *opts, rv_error *err);

/* Why no run of this plan can start now (a secret has no value); NULL: one can. Lives as long as the plan. */
const char *rv__plan_ref_blocked(const struct rv__plan_ref *plan);
/* The secret without a value that this node waits for; rv__str_none(): none. */
struct rv__str rv__plan_ref_secret(const struct rv__plan_ref *plan, const struct rv__node *node);
/* The function of an attempt (eval -1) or an evaluation; NULL: not known. `body`: whose input it makes; NULL: no
 * body's. Its name; none: no function does it. */
const struct rv__function *rv__plan_ref_fn(const struct rv__plan_ref *plan,
                                           const struct rv__node *node, int eval,
                                           const struct rv__body *body);
struct rv__str rv__plan_ref_fn_name(const struct rv__node *node, int eval,
                                    const struct rv__body *body);
void rv__plan_ref_unref(struct rv__plan_ref *plan);
void rv__registry_free(rv_engine *engine); /* the engine's own registry, and all plans */

/* guest.c */
/* Does this engine drive the handed-over run, or did it until it gave the run back? Thread: any. */
bool rv__engine_drives(rv_engine *engine, const char *run_id);
void rv__guest_name_all(rv_engine *engine,
                        struct rv__buf *out);  /* a JSON array of run ids. Thread: any */
bool rv__guests_here(const rv_engine *engine); /* is any driven here? */
/* Set the registry of a new run struct. */
void rv__guest_claims(rv_engine *engine, struct rv__run *run);
int rv__guest_take(rv_engine *engine, struct rv__call *call);    /* CALL_HAND_OVER */
int rv__guest_release(rv_engine *engine, struct rv__call *call); /* CALL_HAND_BACK */
/* Work on the runs that are being given back. Returns when to call it next (monotonic ns). */
void rv__guests_tick(rv_engine *engine);
int64_t rv__guests_until_ns(const rv_engine *engine, int64_t until_ns);
void rv__guests_close(
    rv_engine *engine); /* calls that wait for a run to be given back: RV_ECLOSED */
void rv__guests_free(rv_engine *engine);

/* call.c */
void rv__call_take(rv_engine *engine, struct rv__call *call);
/* The call's run does not exist (run->trouble): answer it, or (a start) start the run. */
void rv__call_absent(rv_engine *engine, struct rv__call *call, struct rv__run *run);
bool rv__call_looks(const struct rv__call *call); /* does it only read? */
/* Another member (`owner`) has the call's run (member.h). `seen`: the run as stored; NULL: not read. False: not
 * answered; take the call again. */
bool rv__call_elsewhere(rv_engine *engine, struct rv__call *call, struct rv__run *seen,
                        int64_t owner);
/* Another member has the run now: calls that wait for it here are passed on. */
void rv__run_calls_elsewhere(struct rv__run *run);
/* Nobody knows whether its last write is on disk: who sent it a message is told so, others may ask again. */
void rv__run_calls_doubtful(struct rv__run *run);
void rv__calls_from_disk(
    rv_engine *engine);                 /* the store refuses writes: readers get what is on disk */
void rv__calls_wake(rv_engine *engine); /* wakes callers that were answered in this turn */
/* Try early completions of handles again, of one run or (NULL) of all; they are refused at the end. */
void rv__calls_early(rv_engine *engine, const struct rv__run *run);
void rv__engine_begin_close(rv_engine *engine); /* no new work starts */
void rv__engine_tell_close(rv_engine *engine);  /* cancels steps, once it is time */
void rv__run_answer_calls(struct rv__run *run); /* after the commit */
void rv__run_refuse_calls(struct rv__run *run,
                          const rv_error *why);   /* its facts were refused for good */
void rv__run_answer_waiters(struct rv__run *run); /* its end is on disk */
/* The store was deleted: fail all calls, cancel all steps; nothing continues. */
void rv__engine_gone(rv_engine *engine);
/* Grant places to steps whose wait for another run is over, before all other work. */
void rv__calls_return(rv_engine *engine);
bool rv__calls_may_return(const rv_engine *engine);
void rv__calls_refuse(rv_engine *engine, const rv_error *why); /* fails all waiting calls */
void rv__calls_close(rv_engine *engine);  /* fails all waiting calls with RV_ECLOSED */
void rv__calls_again(rv_engine *engine);  /* takes all waiting calls again */
void rv__engine_enter(rv_engine *engine); /* keeps the engine from being freed. Thread: any */
void rv__engine_leave(rv_engine *engine); /* Thread: any */

/* The name of the library of functions from rv_agent(). Thread: the loop's. */
#define RV__AGENTS "agents"
bool rv__registry_has_agent(struct rv__registry *registry, struct rv__str id);
/* listen.c: stop calling listeners once the feed has ended, and free them. */
void rv__listeners_close(rv_engine *engine);
void rv__listeners_free(rv_engine *engine);
/* logs.c: add a line to the log of a run in memory that belongs to no attempt. RV_EBUSY: a commit is under way;
 * RV_ENOTFOUND: the run is not in memory. Thread: any but the loop's. */
int rv__run_say(rv_engine *engine, const char *run_id, const char *path, const char *text);

#endif
