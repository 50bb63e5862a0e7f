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

struct rv__kit {
    struct rv__virtual_clock clock;
    struct rv__sim_store disk;
    struct rv__random random; /* the order of steps, and deaths */
    struct rv__expr_machine *machine;
    struct rv__timers slow; /* answers that come later: rv_test_takes() */
    struct rv__replaced *replaced;
    unsigned crash_one_in;
    enum rv__sim_store_fate fate; /* how it dies next, or died last */
    int64_t crashes;
    bool dead; /* died in a commit: to be reopened before anything else */
};

/* Take turns until *done, without time passing: for calls that need no step to run. */
void rv__kit_answer(rv_engine *engine, const bool *done);
/* Take turns, run steps, let time pass: until *done (may be NULL), or `by` fires, or until_ms on the
 * monotonic clock (INT64_MAX: until nothing is left that could happen). */
void rv__kit_drive(rv_engine *engine, const bool *done, rv_cancel *by, int64_t until_ms);
/* The fate of the next commit. */
void rv__kit_roll(rv_engine *engine);
/* The commit failed. True: the process is dead. */
bool rv__kit_died(rv_engine *engine);
rv_step_fn rv__kit_instead(rv_engine *engine, struct rv__str alias); /* NULL: not replaced */
/* Its answer is to come later: the kit keeps it. False: it is to be delivered now. */
bool rv__kit_delays(struct rv_ctx *ctx);
void rv__kit_free(struct rv__kit *kit); /* NULL is allowed */

#endif
