/* simulated.h: a store in memory whose commits fail, whose writes are refused and whose process dies when a
 * test says so.
 *
 * For the simulator and for tests. The "disk" is the struct itself: it lives as long as the test
 * keeps it, over as many deaths of the simulated process as the test likes. */
#ifndef RV_STORE_SIMULATED_SIMULATED_H
#define RV_STORE_SIMULATED_SIMULATED_H

#include <pthread.h>

#include "store/store.h"

/* What becomes of the next commit. */
enum rv__sim_store_fate {
    SIM_STORE_WORKS,
    SIM_STORE_FAILS,       /* RV_ESTORE, nothing is written; later ones work again */
    SIM_STORE_DIES_BEFORE, /* the process dies in it, and nothing of it is on disk */
    SIM_STORE_DIES_AFTER,  /* the process dies in it, and all of it is on disk */
};

struct rv__sim_run;
struct rv__sim_definition;
struct rv__sim_line;

struct rv__sim_store {
    struct rv__store store;    /* first: what the functions of the table get */
    pthread_mutex_t lock;      /* readers share the tables: every call takes it */
    struct rv__sim_run **runs; /* in the order in which they were first written */
    size_t run_count, run_cap;
    struct rv__sim_definition *definitions;
    struct rv__sim_line *lines; /* of the logs, in the order of their ids */
    size_t line_count, line_cap;
    uint64_t seq, run_number; /* the last ones given */
    uint64_t forgotten;       /* the last seq or id that a forgotten run had */
    enum rv__sim_store_fate fate;
    /* Is this write refused for good (RV_EINVAL), the others of its commit written? NULL: none is. It may
     * not call the store. */
    bool (*refuses)(void *arg, const struct rv__store_write *write);
    void *refuses_arg;
    size_t
        max_bytes; /* of a text; a write with a longer one is refused (RV_ETOOBIG); 0 = no limit */
    bool dead; /* the process died in a commit: every call fails until rv__sim_store_restart() */
    int64_t last_commit_ns;
    /* For those who judge: */
    uint64_t commits, failures, deaths, refused;
};

void rv__sim_store_init(struct rv__sim_store *sim);
void rv__sim_store_done(struct rv__sim_store *sim); /* the disk is gone too; as after init */

/* The row of a run cannot be read any more, until another one is written; its journal can. */
void rv__sim_store_damage(struct rv__sim_store *sim, struct rv__str run);

/* A new process opens the store: what was committed is there. Forgets the fate of the next commit. */
void rv__sim_store_restart(struct rv__sim_store *sim);

#endif
