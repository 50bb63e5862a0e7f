/* attempt.h: a piece of work in flight, as the engine sees it: whose it is, who does it, which place it has.
 * What its code sees is its rv_ctx (work/context.h).
 *
 *   started ──begun──▶ begun ──done, lost──▶ ended ──letter──▶ answered: the run is told, and it goes
 *      └──────────────done, lost──────────────┘
 *
 * From its start to the letter it belongs to the threads that do it, but for what says otherwise. */
#ifndef RV_ENGINE_ATTEMPT_H
#define RV_ENGINE_ATTEMPT_H

#include "base/timers.h"
#include "engine/desk.h"
#include "work/work.h"

struct rv__run;

enum rv__attempt_phase { ATTEMPT_STARTED, ATTEMPT_BEGUN, ATTEMPT_ENDED };

struct rv__attempt {
    struct rv_ctx ctx; /* first, and that begins with its rv__work: the executor knows only this */
    enum rv__attempt_phase phase;
    int64_t begun_ns; /* by the monotonic clock; until it has: when it was started */
    struct rv__letter answer, begins; /* to the loop: it has ended; its time-out counts */

    /* The loop's: */
    struct rv__run *run; /* held */
    struct rv__executor *executor;
    enum rv__lane place; /* that it has; LANE_NONE: it was given back */
    uint32_t ticket;     /* of it */
    uint64_t life;
    struct rv__attempt *next, **link;         /* among those of its run */
    struct rv__attempt *all_next, **all_link; /* among all in flight */
    int64_t queued_ns;                        /* how long it had waited for its place */
    struct rv__log_line *unkept;              /* oldest first; taken, but there was no memory */
    struct rv__given *unrecorded_given;       /* oldest first; taken, and not yet said by its run */
    struct rv__read_note *unrecorded;         /* the same, of what it has read */

    /* A testing kit's: */
    int64_t takes_ms;             /* rv_test_takes(): its answer comes so much later */
    struct rv__timer late_answer; /* until then; */
    struct rv__timer late_begins; /* and until the loop hears that it has begun */
};

/* How a piece of work is done. */
struct rv__attempt_how {
    void (*run)(struct rv__work *work);
    rv_step_fn fn;                       /* NULL: no function of this process */
    const struct rv__function *function; /* NULL: none that is registered */
    struct rv__session *session;         /* of the worker that does it; NULL: none */
};

/* Owed to the actor of the effect, which the cell has just said. NULL: no memory. */
struct rv__attempt *rv__attempt_new(struct rv__run *run, const struct rv__effect *effect,
                                    struct rv__executor *executor,
                                    const struct rv__attempt_how *how);
void rv__attempt_drop(struct rv__attempt *attempt); /* nobody asks for it any more */
void rv__attempt_cancel(struct rv__attempt *attempt);

/* Its letters have come. */
void rv__attempt_begins(rv_engine *engine, struct rv__attempt *attempt);
void rv__attempt_answered(rv_engine *engine, struct rv__attempt *attempt);

/* To the loop with them. Thread: any. */
void rv__attempt_post(struct rv_ctx *ctx); /* it is answered: around.answer() */
void rv__attempt_post_answer(struct rv__attempt *attempt);
void rv__attempt_post_begins(struct rv__attempt *attempt);

void rv__hand_back(rv_engine *engine); /* what is in flight is for the next engine to do */
/* The same for one run, which can take it now. Returns how many had not ended. */
int rv__run_hand_back(struct rv__run *run);

/* What it was given and its run has not said: *ret is to be sent with a message, NULL: nothing; once that was
 * taken, it is told. RV_ENOMEM. */
int rv__attempt_given(struct rv__attempt *attempt, struct rv__blob **ret);
void rv__attempt_told(struct rv__attempt *attempt);
/* What it has read and its run has not said: as messages of their own. Its run can take them. RV_ENOMEM: the rest
 * waits. */
int rv__attempt_tell_reads(struct rv__attempt *attempt);
/* Both, of one that goes on, or is cut off now: as messages of their own. Its run can take them. No memory: the
 * next time, if there is one. */
void rv__attempt_tell_given(struct rv__attempt *attempt);

/* logs.c: what attempts in flight have said so far. */
void rv__fetch_logs(rv_engine *engine);
/* What it has said since it was last asked, for the next commit; at its end also how much more it said
 * than is kept. RV_ENOMEM: not all of it; the rest waits. */
int rv__attempt_keep_logs(struct rv__attempt *attempt, bool ended);
/* Its answer is among the facts of this turn: what of it stands in the log, piece by piece, goes with the commit. */
void rv__attempt_forget_stream(struct rv__attempt *attempt);

#endif
