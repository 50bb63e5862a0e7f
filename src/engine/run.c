/* run.c: runs in memory: the table of runs, their phases, and letters that wait for them. load.c reads them from the
 * store. */
#include "engine/run.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "engine/attempt.h"
#include "engine/engine.h"

enum {
    WALK_A_TURN = 512
}; /* actors that one turn visits: this takes less time than a turn does anyway */

/* --------------------------------------------------------------------------------- phases --- */

#define BIT(phase) (1u << (phase))

static const struct {
    const char *name;
    unsigned next; /* phases that may follow */
} phases[RV__RUN_PHASES] = {
    [RV__ABSENT] = { "absent", BIT(RV__LOADING) | BIT(RV__DECIDING) },
    [RV__LOADING] = { "loading", BIT(RV__IDLE) | BIT(RV__ABSENT) },
    [RV__IDLE] = { "idle", BIT(RV__DECIDING) | BIT(RV__LEAVING) },
    [RV__DECIDING] = { "deciding", BIT(RV__COMMITTING) | BIT(RV__ACTING) },
    [RV__COMMITTING] = { "committing", BIT(RV__ACTING) | BIT(RV__LEAVING) },
    [RV__ACTING] = { "acting", BIT(RV__IDLE) },
    [RV__LEAVING] = { "leaving", BIT(RV__ABSENT) },
};

const char *rv__run_phase_name(enum rv__run_phase phase)
{
    return phases[phase].name;
}

void rv__run_move(struct rv__run *run, enum rv__run_phase to)
{
    assert(phases[run->phase].next & BIT(to));
    run->phase = to;
}

/* ---------------------------------------------------------------------------------- table --- */

static struct rv__run **bucket(rv_engine *e, const char *id)
{
    return &e->runs[rv__str_hash(RV__HASH_START, rv__str(id)) % RUN_BUCKETS];
}

struct rv__run *rv__run_find(rv_engine *e, const char *id)
{
    struct rv__run *run = *bucket(e, id);
    while (run != NULL && !rv__str_is(rv__str(id), run->id))
        run = run->next;
    return run;
}

struct rv__run *rv__run_make(rv_engine *e, const char *id)
{
    struct rv__run *run = rv__zalloc(1, sizeof *run);
    if (run == NULL)
        return NULL;
    run->engine = e;
    run->registry = rv__registry_ref(e->registry);
    snprintf(run->id, sizeof run->id, "%s", id); /* checked by the caller */
    atomic_init(&run->refs, 1);
    run->mail.last = &run->mail.first;
    rv__facts_init(&run->facts);
    rv__buf_init(&run->logs, SIZE_MAX / 8);
    rv__buf_init(&run->answered, SIZE_MAX / 8);
    rv__buf_init(&run->snapshot, SIZE_MAX / 8);
    rv__buf_init(&run->suspensions, SIZE_MAX / 8);
    run->row_status = RUN_STATUSES; /* no row is written yet */
    rv__guest_claims(e, run);
    return run;
}

int rv__run_new(rv_engine *e, const char *id, struct rv__run **ret)
{
    struct rv__run *run = rv__run_make(e, id);
    if (run == NULL)
        return RV_ENOMEM;
    struct rv__run **at = bucket(e, id);
    run->next = *at;
    *at = run;
    e->run_count++;
    *ret = run;
    return RV_OK;
}

void rv__run_ref(struct rv__run *run)
{
    atomic_fetch_add_explicit(&run->refs, 1, memory_order_relaxed);
}

void rv__run_unref(struct rv__run *run)
{
    if (run == NULL || atomic_fetch_sub_explicit(&run->refs, 1, memory_order_acq_rel) != 1)
        return;
    assert(run->cell == NULL && run->work == NULL && run->mail.first == NULL);
    rv__facts_done(&run->facts);
    rv__buf_done(&run->logs);
    rv__buf_done(&run->answered);
    rv__buf_done(&run->snapshot);
    rv__buf_done(&run->suspensions);
    rv__blob_unref(run->input);
    rv__blob_unref(run->rerun_of);
    rv__pieces_done(&run->pieces);
    rv__plan_ref_unref(run->plan);
    rv__registry_unref(run->registry);
    rv__free(run);
}

static void take_out(struct rv__run *run)
{
    struct rv__run **at = bucket(run->engine, run->id);
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    run->engine->run_count--;
    rv__run_unref(run);
}

void rv__run_drop_if_unused(struct rv__run *run)
{
    assert(run->phase == RV__ABSENT);
    if (run->waiters == NULL && run->mail.first == NULL)
        take_out(run);
}

/* ----------------------------------------------------------------------------------- mail --- */

void rv__mail_put(struct rv__mail *mail, struct rv__letter *letter)
{
    letter->node.next = NULL;
    *mail->last = &letter->node;
    mail->last = &letter->node.next;
}

struct rv__letter *rv__mail_take(struct rv__mail *mail)
{
    struct rv__queue_node *node = mail->first;
    if (node == NULL)
        return NULL;
    mail->first = node->next;
    if (mail->first == NULL)
        mail->last = &mail->first;
    return (struct rv__letter *)node;
}

void rv__letter_drop(struct rv__letter *letter)
{
    if (letter->kind == LETTER_ANSWER)
        rv__attempt_drop(RV__CONTAINER(letter, struct rv__attempt, answer));
    else if (letter->kind == LETTER_TIMER)
        rv__owed_unmail(RV__CONTAINER(letter, struct rv__owed, letter));
    else if (letter->kind == LETTER_JOB)
        ((struct rv__job *)letter)->drop((struct rv__job *)letter);
    else if (letter->kind == LETTER_WORKER)
        rv__news_done((struct rv__news *)letter);
}

bool rv__run_takes(const struct rv__run *run, bool looks)
{
    switch (run->phase) {
    case RV__IDLE: return true;
    case RV__DECIDING: return !looks || RV__BUG(50) || (run->facts.count == 0 && !run->is_new);
    case RV__ABSENT:
    case RV__LOADING:
    case RV__COMMITTING:
    case RV__ACTING:
    case RV__LEAVING:
    case RV__RUN_PHASES: break;
    }
    return false;
}

/* Taking a letter may change which letters may be taken next, so that is checked before each. Letters that only read
 * wait, in order, if an earlier one has changed something. */
void rv__run_take_mail(struct rv__run *run)
{
    struct rv__mail mail = { .first = run->mail.first, .last = &mail.first };
    struct rv__letter *letter;
    run->mail = (struct rv__mail){ NULL, &run->mail.first };
    while ((letter = rv__mail_take(&mail)) != NULL)
        rv__letter_take(run->engine, letter); /* it returns to the mail if it must wait again */
}

/* -------------------------------------------------------------------------------- turning --- */

void rv__run_touch(struct rv__run *run)
{
    rv_engine *e = run->engine;
    if (e->read_only)
        return;
    switch (run->phase) {
    case RV__DECIDING: return;
    case RV__COMMITTING:
    case RV__ACTING: run->again = true; return;
    case RV__IDLE: break;
    case RV__ABSENT:
    case RV__LOADING:
    case RV__LEAVING:
    case RV__RUN_PHASES: return; /* it is checked when the run has been loaded */
    }
    rv__run_move(run, RV__DECIDING);
    run->next_in = NULL;
    *e->last_deciding = run;
    e->last_deciding = &run->next_in;
    e->deciding_count++;
}

int rv__run_start(struct rv__run *run, struct rv__plan_ref *plan, struct rv__blob *input,
                  int64_t limit, struct rv__str by, rv_error *err)
{
    rv_engine *e = run->engine;
    struct rv__cell_opts opts = rv__plan_ref_opts(e, plan);
    opts.nonce = rv__random_u64(&e->nonces);
    opts.by = by;
    opts.limit = limit;
    int rc = rv__cell_start(&opts, input, e->now_ms, &run->facts, &run->cell, err);
    if (rc < 0)
        return rc;
    rv__plan_ref_unref(run->plan);
    run->plan = rv__plan_ref_ref(plan);
    rv__blob_unref(run->input);
    run->input = rv__blob_ref(input);
    run->input_on_disk = false;
    run->is_new = true;
    run->created_ms = run->started_ms = e->now_ms;
    run->completed_ms = 0;
    run->row_status = RUN_STATUSES;
    run->row_suspended = 0;
    run->seq = run->number = 0;
    run->journal_bytes = run->snapshot_bytes = 0;
    run->trouble = RV_OK;
    run->refused = run->suspending = false;
    run->lanes_of = plan->registry->generation;
    rv__run_move(run, RV__DECIDING);
    run->next_in = NULL;
    *e->last_deciding = run;
    e->last_deciding = &run->next_in;
    e->deciding_count++;
    return RV_OK;
}

/* Without memory it is tried again later: nothing is lost, and memory may become free. */
int rv__run_send(struct rv__run *run, struct rv__msg *msg, rv_error *err)
{
    assert(run->phase == RV__IDLE || run->phase == RV__DECIDING || run->phase == RV__ACTING);
    msg->now_ms = run->engine->now_ms;
    int rc = rv__flow_send(run->cell, msg, &run->facts, err);
    rv__run_touch(run);
    return rc;
}

bool rv__run_idle(const struct rv__run *run)
{
    return run->work == NULL && rv__cell_idle(run->cell);
}

bool rv__run_may_walk(struct rv__run *run)
{
    size_t actors = rv__cell_actors(run->cell);
    run->walk_credit += WALK_A_TURN;
    if (run->walk_credit < actors)
        return false;
    run->walk_credit = 0;
    return true;
}

int64_t rv__run_wake_ms(const struct rv__run *run)
{
    return rv__cell_wake_ms(run->cell);
}

/* -------------------------------------------------------------------------------- leaving --- */

/* Free the cell, and everything that was derived from it. */
static void empty(struct rv__run *run, bool tell)
{
    rv_engine *e = run->engine;
    rv__run_unqueue(run);
    if (!RV__BUG(33))
        rv__owed_clear_all(run, tell);
    rv__effects_drop(run);
    rv__cell_free(run->cell);
    run->cell = NULL;
    e->load.cell_bytes -= RV__BUG(52) ? 0 : run->cell_bytes;
    run->cell_bytes = 0;
    run->again = run->owes_again = false;
    rv__facts_reset(&run->facts);
    rv__facts_drop_failures(&run->facts, 0);
    rv__buf_reset(&run->logs);
    run->log_count = 0;
    rv__buf_reset(&run->answered);
    run->answered_count = 0;
    rv__buf_reset(&run->snapshot);
    run->walk_credit = 0;
}

void rv__run_leave(struct rv__run *run)
{
    rv__run_move(run, RV__LEAVING);
    empty(run, true);
    rv__run_move(run, RV__ABSENT);
}

void rv__run_forget(struct rv__run *run)
{
    struct rv__letter *letter;
    empty(run, false);
    run->phase = RV__ABSENT; /* not a transition: whoever was working on it has ended */
    while ((letter = rv__mail_take(&run->mail)) != NULL)
        rv__letter_drop(letter);
    take_out(run);
}
