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
    SIM_STORE_UNHEARD, /* of a member: all of it is on disk, and its answer is lost: RV_ESTORE */
};

/* What becomes of a call of a member's aide. */
enum rv__sim_line {
    SIM_LINE_WORKS,
    SIM_LINE_FAILS,   /* RV_ESTORE, nothing was done */
    SIM_LINE_UNHEARD, /* RV_ESTORE, and it was done */
};

struct rv__sim_run;
struct rv__sim_definition;
struct rv__sim_line_row;
struct rv__sim_lane;
struct rv__sim_request;
struct rv__sim_mark;
struct rv__sim_member;

struct rv__sim_store {
    struct rv__store store;    /* first: what the functions of the table get */
    pthread_mutex_t lock;      /* readers share the tables: every call takes it */
    struct rv__sim_run **runs; /* in the order in which they were first written */
    size_t run_count, run_cap;
    struct rv__sim_definition *definitions;
    struct rv__sim_line_row *lines; /* of the logs, in the order of their ids */
    size_t line_count, line_cap;
    uint64_t seq, run_number;   /* the last ones given */
    uint64_t forgotten;         /* the last seq or id that a forgotten run had */
    struct rv__sim_mark *marks; /* by name */
    size_t mark_count, mark_cap;
    enum rv__sim_store_fate fate;
    /* Is this write refused for good (RV_EINVAL), the others of its commit written? NULL: none is. It may
     * not call the store. */
    bool (*refuses)(void *arg, const struct rv__store_write *write);
    void *refuses_arg;
    size_t
        max_bytes; /* of a text; a write with a longer one is refused (RV_ETOOBIG); 0 = no limit */
    bool dead; /* the process died in a commit: every call fails until rv__sim_store_restart() */
    int64_t last_commit_ns;
    /* Members, and what they ask each other: */
    int64_t now_ms; /* by the store's clock, which the test moves */
    struct rv__sim_lane *lanes;
    size_t lane_count, lane_cap;
    struct rv__sim_request *requests;
    size_t request_count, request_cap;
    int64_t slot;        /* the last one given */
    uint64_t request_id; /* the same */
    /* What becomes of this call of `member`'s aide? NULL: it works. Somebody was asked, or answered: he may be told.
     * Neither may call the store. */
    enum rv__sim_line (*line)(void *arg, int64_t member);
    void (*notify)(void *arg, int64_t member);
    void *members_arg;
    /* For those who judge: */
    uint64_t commits, failures, deaths, refused;
};

void rv__sim_store_init(struct rv__sim_store *sim);
void rv__sim_store_done(struct rv__sim_store *sim); /* the disk is gone too; as after init */

/* The row of a run cannot be read any more, until another one is written; its journal can. */
void rv__sim_store_damage(struct rv__sim_store *sim, struct rv__str run);

/* ---- members: each a handle of its own on the same "disk". */

struct rv__sim_member {
    struct rv__store store; /* first */
    struct rv__sim_store *sim;
    int64_t slot, lease_ms;
    int place;                    /* members in the same place notice at once that one has died */
    enum rv__sim_store_fate fate; /* of its next commit */
    bool dead;                    /* its process is: every call fails */
    /* The last commit, while its member does not know whether it is on disk. */
    struct rv__sim_outcome *unheard;
    size_t unheard_count;
};

/* Join. *ret is given back by rv__store_close(); what it has on the disk stays.   Errors: RV_ENOMEM. */
int rv__sim_member_new(struct rv__sim_store *sim, int64_t lease_ms, int place,
                       struct rv__sim_member **ret, rv_error *err);
/* Its process dies: from now on all its calls fail, and who is in the same place may notice. */
void rv__sim_member_dies(struct rv__sim_member *member);

/* For those who judge. Does the member of that number live, as far as the store knows? Who has the run (0: nobody),
 * and who wrote the journal row of that seq? */
bool rv__sim_member_lives(const struct rv__sim_store *sim, int64_t slot);
int64_t rv__sim_lease_until_ms(const struct rv__sim_store *sim, int64_t slot); /* 0: it has ended */
/* Time has passed in which nothing happened but that all who live renewed their leases. */
void rv__sim_leases_shift(struct rv__sim_store *sim, int64_t ms);
void rv__sim_lapse(struct rv__sim_store *sim, int64_t slot); /* nobody has noticed it yet */
int64_t rv__sim_owner(const struct rv__sim_store *sim, struct rv__str run);
/* Nobody's, and at rest or given up: when it is to go on; 0: not by itself. */
int64_t rv__sim_sleeps_until(const struct rv__sim_store *sim, struct rv__str run);
/* Active, and given up or given to somebody, and not written since. */
bool rv__sim_given(const struct rv__sim_store *sim, struct rv__str run);
bool rv__sim_orphaned(const struct rv__sim_store *sim,
                      struct rv__str run); /* active, and nobody's; not: given up */
bool rv__sim_gave_up(const struct rv__sim_store *sim, struct rv__str run,
                     int64_t member); /* that one did, since the run went on last */
/* Active, and given up by its last owner, which could not continue it. *ret_lacks: for want of which function; empty:
 * of something else, or of several. */
bool rv__sim_given_up(const struct rv__sim_store *sim, struct rv__str run,
                      struct rv__str *ret_lacks);
/* *ret_from: what had become of who had the run before, when it was claimed last. */
int64_t rv__sim_writer(const struct rv__sim_store *sim, struct rv__str run, uint64_t seq,
                       enum rv__store_orphan *ret_from);
size_t rv__sim_lives(const struct rv__sim_store *sim);    /* members */
size_t rv__sim_requests(const struct rv__sim_store *sim); /* that somebody is to answer */

/* A new process opens the store: what was committed is there. Forgets the fate of the next commit. */
void rv__sim_store_restart(struct rv__sim_store *sim);

#endif
