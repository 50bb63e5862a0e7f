/* run.h: a run in memory, and the phases it goes through.
 *
 *                 wanted                 read                  touched             part of a batch
 *       absent ───────────▶ loading ────────────▶ idle ───────────────▶ deciding ───────────▶ committing
 *        ▲ │ ▲                 │                  │  ▲                   ▲    │                     │
 *        │ │ │ not there,      │                  │  │                   │    │ nothing to write    │
 *        │ │ │ damaged         │                  │  │                   │    ▼                     │ on disk
 *        │ │ └─────────────────┘                  │  └─────────────── acting ◀───────────────────────┤
 *        │ └── started ───────────────────────────┼─────────────────────▶│                          │
 *        │                                        ▼ nothing to do        │                           │ refused
 *        └───────────────────────────────────  leaving ◀──────────────────────────────────────────────┘
 *                                                 └── refused: it is read again ──▶ loading
 *
 *   absent      not in memory. Its struct is there only while somebody waits for the run
 *   loading     wanted; it waits for its turn, or is being read beside the loop
 *   idle        as on disk, with nothing to do now: work in flight, timers
 *   deciding    part of this turn: messages are applied, what follows is pumped, places are granted
 *   committing  its facts are on their way to disk: nothing is decided for it
 *   acting      they are on disk: what they ask for is released, callers are answered
 *   leaving     out of memory it goes
 *
 * What comes for a run that cannot take it now (loading, committing, acting) waits in its `mail`, in order,
 * and is taken when it is idle. A look at a run that is deciding waits there too, since nobody may see what
 * is not on disk. rv__run_move() is the only writer of the phase and knows which moves there are. */
#ifndef RV_ENGINE_RUN_H
#define RV_ENGINE_RUN_H

#include <stdatomic.h>

#include <rival/rival.h>

#include "base/blob.h"
#include "base/queue.h"
#include "base/str.h"
#include "base/timers.h"
#include "engine/desk.h"
#include "flow/flow.h"
#include "store/store.h"
#include "work/work.h"

struct rv__attempt;
struct rv__call;
struct rv__owed;
struct rv__plan_ref;
struct rv__registry;

enum rv__run_phase {
    RV__ABSENT,
    RV__LOADING,
    RV__IDLE,
    RV__DECIDING,
    RV__COMMITTING,
    RV__ACTING,
    RV__LEAVING,
    RV__RUN_PHASES,
};
const char *rv__run_phase_name(enum rv__run_phase phase);

/* A log line that waits for the next commit: this, then its texts, in run->logs. */
struct rv__kept_line {
    int64_t at_ms;
    int level, attempt;
    bool stream;
    uint32_t path, step, message, metadata; /* lengths, in this order behind it */
};

/* Letters, first in, first out. */
struct rv__mail {
    struct rv__queue_node *first, **last;
};

struct rv__run {
    rv_engine *engine;
    struct rv__run *next; /* in its bucket */
    atomic_size_t refs;
    char id[RV_RUN_ID_SIZE];
    enum rv__run_phase phase; /* rv__run_move() */
    struct rv__run *next_in;  /* of this turn, of the batch, or of those to be loaded */
    struct rv__mail mail;
    bool again;                    /* touched while it was acting: it is part of the next turn */
    bool owes_again;               /* no memory for something that it is owed: rv__owe_again() */
    struct rv__registry *registry; /* who does its work; held. Changes only while it is absent */
    bool guest;                    /* another process follows it: it stays in memory (guest.c) */
    bool parked;                   /* it is nobody's just now: nothing of it is begun */
    struct rv__plan_ref *plan;
    struct rv__cell *cell; /* NULL: absent or loading */
    size_t cell_bytes;     /* of it, as counted in the engine's budget */
    uint64_t lanes_of;     /* the registry's generation when it was last asked who does its work */
    struct rv__facts facts;
    struct rv__attempt *work; /* in flight */
    struct rv__owed *owed;
    size_t walk_credit; /* actors that may be walked over to find its next timer */
    int64_t waited_ns;  /* for the last place it was given */
    int burst; /* places it may have at once when its turn comes; 0, as long as nothing of it has ended: 1 */
    struct {
        bool queued;
        int left; /* places until it goes to the end of the ring */
        int64_t since_ns;
        int ring; /* of a lane of workers: the class whose ring it is in */
        struct rv__run *prev, *next;
    } lane[LANES];            /* among those that want it */
    struct rv__call *calls;   /* to be answered after the commit */
    struct rv__call *waiters; /* to be answered at its end */

    /* the row in the store, as it is or (new) is to be */
    bool is_new;
    enum rv__run_status row_status;
    bool row_active, row_waiting;
    int64_t row_wake_ms;
    bool row_handed; /* of a member: the row may still say who gave the run up */
    int64_t created_ms, started_ms, completed_ms;
    struct rv__blob *input;
    bool input_on_disk; /* it is too long to be kept here */
    struct rv__pieces pieces;
    char input_key[65];
    struct rv__blob *rerun_of; /* id of the run that it repeats; NULL: none */

    struct rv__buf logs; /* lines that wait for the next commit: rv__kept_line */
    size_t log_count;
    struct rv__buf
        answered; /* paths, each with a NUL behind it: the facts record answers that streamed in */
    size_t answered_count;
    uint64_t number;      /* in the store; 0: not known, it is new */
    uint64_t seq;         /* of its last journal row */
    size_t journal_bytes; /* since its last snapshot */
    size_t snapshot_bytes;
    struct rv__buf snapshot;    /* to be written with the next commit */
    struct rv__buf suspensions; /* the same: what is to be decided, as its row has it */
    uint64_t row_suspended; /* the hash of that, as it was last written; 0: none, or not known */

    /* what became of the last attempt to load it, or of its last write */
    int trouble;     /* RV_OK, or why it is not here */
    rv_error why;    /* the same, said; and while it is read again: why its facts were refused */
    bool refused;    /* its facts were refused: it is to be suspended when it is here again */
    bool suspending; /* that is on its way */
    bool urgent;     /* somebody waits for it to be loaded: not held to the budget */
    bool claims;   /* of a member: it is to be ours when it is loaded; else it is only looked at */
    bool claimed;  /* it is, since the store said so: it need not be claimed again */
    int64_t gives; /* of a member: whose it is to be, as in rv__store_touch.to; 0: it stays ours */
    bool given;    /* that is on its way to disk */
    enum rv__store_orphan from; /* the same: what became of who had it before */
    const rv_error *outcome;    /* of its write in the batch that has landed; NULL: it is on disk */
};

/* The run of that id, if its struct is in memory, in whatever phase. */
struct rv__run *rv__run_find(rv_engine *engine, const char *id);
/* One that is absent: outside of the table (NULL: no memory), and in it (RV_ENOMEM). */
struct rv__run *rv__run_make(rv_engine *engine, const char *id);
int rv__run_new(rv_engine *engine, const char *id, struct rv__run **ret);
void rv__run_ref(struct rv__run *run);
void rv__run_unref(struct rv__run *run); /* Thread: any */

/* The only writer of run->phase. */
void rv__run_move(struct rv__run *run, enum rv__run_phase to);

/* Begin it: absent, in the table, and nobody has it. It is deciding then. */
int rv__run_start(struct rv__run *run, struct rv__plan_ref *plan, struct rv__blob *input,
                  int64_t limit, struct rv__str by, rv_error *err);

/* May a letter be taken for it now? `looks`: it only looks, at what is on disk. */
bool rv__run_takes(const struct rv__run *run, bool looks);
void rv__mail_put(struct rv__mail *mail, struct rv__letter *letter);
struct rv__letter *rv__mail_take(struct rv__mail *mail); /* NULL: none is left */
void rv__letter_drop(struct rv__letter *letter); /* nobody takes it; calls are somebody else's */
void rv__run_take_mail(struct rv__run *run);     /* as far as it may take it now */

void rv__run_touch(struct rv__run *run); /* it is part of this turn, or of the next it can be in */
int rv__run_send(struct rv__run *run, struct rv__msg *msg, rv_error *err); /* idle or deciding */
bool rv__run_idle(const struct rv__run *run); /* nothing in it could be done now */

/* Out of memory: the cell, its timers, its place in the rings. The struct stays while somebody waits. */
void rv__run_leave(struct rv__run *run);
void rv__run_forget(struct rv__run *run); /* whatever its phase: its process is dead, or ends */
/* Nobody needs its struct any more? Then it goes. Only of one that is absent. */
void rv__run_drop_if_unused(struct rv__run *run);

/* Its earliest timer; 0 = none. Walks over its actors: ask rv__run_may_walk() first, which says yes to
 * small runs always and to large ones now and then, so that the walks stay a part of each turn's
 * cost. */
int64_t rv__run_wake_ms(const struct rv__run *run);
bool rv__run_may_walk(struct rv__run *run);

#endif
