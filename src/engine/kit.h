/* kit.h: the testing kit: an engine without threads, clock and disk of its own.
 *
 * An engine with a kit is the real one; what is around it is not. Its store is in memory and outlives
 * the deaths that the kit arranges; its clock moves when told; its steps run one at a time, in an order
 * that comes from the seed, while somebody waits or lets time pass. No loop thread: calls of the API
 * take the turns themselves. So a test says all that happens, and the same seed does the same. */
#ifndef RV_ENGINE_KIT_H
#define RV_ENGINE_KIT_H

#include "engine/engine.h"
#include "store/simulated/simulated.h"

struct rv__replaced {
    struct rv__replaced *next;
    rv_step_fn fn; /* NULL: no longer replaced */
    char alias[];
};

/* What became of the process in a commit that failed. */
enum rv__kit_death {
    KIT_LIVES,       /* the commit is to be tried again */
    KIT_DIED_BEFORE, /* nothing of it is on disk, or nobody knows: who asked for it asks again */
    KIT_DIED_AFTER,  /* all of it is */
};

/* A disk that outlives the engines on it: somebody else's, the simulator's. */
struct rv__kit_disk {
    /* The store, opened by a new process, which the disk keeps; what an earlier one held is given up. */
    int (*open)(struct rv__kit_disk *self, struct rv__store **ret, rv_error *err);
    void (*before_commit)(struct rv__kit_disk *self); /* the moment to arrange for trouble */
    enum rv__kit_death (*failed)(struct rv__kit_disk *self);
    int64_t
        lease_ms; /* the engines on it are members (member.h), with this lease; 0 = they are not */
};

/* A desk without a thread: its jobs lie there until they are run, in order, when chance says so. */
struct rv__hand_desk {
    struct rv__desk desk; /* first */
    rv_engine *engine;
    bool writes;
    struct rv__job *first, **last;
};

struct rv__kit {
    struct rv__virtual_clock clock;
    struct rv__hand_desk writer, reader;
    unsigned beside_one_in; /* so often a batch goes by the desk, and not at once; 0 = never */
    unsigned late_one_in;   /* so often time passes while a job lies at a desk; 0 = never */
    struct rv__sim_store disk;
    struct rv__kit_disk *other;   /* NULL: `disk` */
    struct rv__random random;     /* the order of steps, and deaths */
    struct rv__expr_texts *texts; /* of expressions that need no jq */
    struct rv__manual *hand;      /* of all executors */
    struct rv__timers slow;       /* answers that come later: rv_test_takes() */
    struct rv__timers unsaid;     /* beginnings that the loop hears of later */
    unsigned unsaid_one_in;       /* so often it does; 0 = never */
    unsigned begin_one_in;        /* so often something begins long before it is run; 0 = never */
    unsigned lose_one_in;         /* so often a host dies with its work; 0 = never */
    struct rv__replaced *replaced;
    struct rv__kit_host *host; /* of functions in another process (kit_host.c); NULL: none */
    unsigned crash_one_in;
    enum rv__sim_store_fate fate; /* how it dies next, or died last */
    int64_t crashes;
    int64_t office_ms; /* of a member: when it next looks what others ask, by the monotonic clock */
    bool serves;       /* it does so just now */
    bool dead;         /* died in a commit: to be reopened before anything else */
};

/* rv_test_engine_new() on a disk of the caller's; NULL: a new one of its own. */
int rv__kit_open(const rv_test_opts *opts, struct rv__kit_disk *other, rv_engine **ret,
                 rv_error *err);
/* Its store and the handles to read it, opened by a new process. */
int rv__kit_open_store(rv_engine *engine, rv_error *err);
/* An orderly end within grace_ms, and a new beginning: what has not ended by then is handed back. */
void rv__kit_restart(rv_engine *engine, int64_t grace_ms);
/* What is around an engine of this kit. */
int rv__kit_around(rv_engine *engine, rv_error *err);
/* Take turns, run jobs and steps, let time pass: until *done (may be NULL), or `by` fires, or until_ms on the
 * monotonic clock (INT64_MAX: until nothing is left that could happen; INT64_MIN: until *done, and no step
 * runs and no time passes meanwhile). */
void rv__kit_drive(rv_engine *engine, const bool *done, rv_cancel *by, int64_t until_ms);
/* One of the things that could happen without time passing, and the turns that follow from it. `steps`: a step may run.
 * False: there is none; *ret_ns: when there will be. */
bool rv__kit_once(rv_engine *engine, bool steps, int64_t *ret_ns);
/* The same, but for what a member looks at every so often: RV__NEVER, if nothing else is to come. */
int64_t rv__kit_own_due(rv_engine *engine);
void rv__kit_free(struct rv__kit *kit); /* NULL is allowed */

#endif
