/* load.c: loads runs from the store into memory without blocking the loop.
 *
 * A run is loaded if a call needs it, if a timer of it is due, or if it was active when the last process ended. It
 * waits in a queue, is read on the reading desk, and then belongs to the loop: its timers are armed, and work that was
 * in flight in an earlier process is lost. The number of reads at once is limited. While the cells in memory exceed
 * the budget, only runs that a caller waits for are read; the others stay on disk until some runs have left memory.
 *
 * A *scan* finds runs: all active ones after a start, later the sleeping ones that are due. A run that cannot be read
 * is set aside: its row says why, and the other runs continue. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/call.h"
#include "engine/engine.h"
#include "engine/member.h"

enum {
    LOADS_AT_ONCE = 64,  /* enough jobs that the desk never waits for the loop */
    SCAN_PAGE = 256,     /* runs found by one scan */
    WAITING_MOST = 1024, /* no scan while so many runs are queued */
    AHEAD_MS = 200,      /* a sleeping run is read this long before it is due */
    RETRY_MS = 100,      /* after a failed read */
};
#define BUDGET_BYTES ((size_t)256 << 20) /* of cells */

struct load {
    struct rv__job job;  /* first */
    struct rv__run *run; /* held */
    rv_engine *engine;
    int rc;
    rv_error err;
    bool damaged;               /* its rows cannot be read */
    bool claims, looks;         /* of a member: claim the run first; or only read it */
    int64_t member, owner;      /* the member that claims; the owner after that */
    enum rv__store_orphan from; /* how its last owner ended */
    /* what was read */
    struct rv__plan_ref *plan;
    struct rv__cell *cell;
    struct rv__cell_opts opts;
    struct rv__blob *input, *rerun_of;
    char version[65], input_key[65];
    enum rv__run_status status;
    bool active, waiting, input_on_disk;
    int64_t wake_ms, created_ms, started_ms, completed_ms;
    uint64_t seq, number;
    size_t journal_bytes, snapshot_bytes;
};

/* -------------------------------------------------------------------------------- reading --- */

static enum rv__run_status status_by_name(struct rv__str name)
{
    for (int i = 0; i < RUN_STATUSES; i++)
        if (rv__str_is(name, rv__run_status_name((enum rv__run_status)i)))
            return (enum rv__run_status)i;
    return RUN_STATUSES;
}

static int take_row(void *arg, const struct rv__store_run *row)
{
    struct load *l = arg;
    l->number = row->number;
    l->status = status_by_name(row->status);
    l->active = row->active;
    l->waiting = row->waiting;
    l->wake_ms = row->wake_at_ms;
    l->created_ms = row->created_ms;
    l->started_ms = row->started_ms;
    l->completed_ms = row->completed_ms;
    if (row->version.len >= sizeof l->version || l->status == RUN_STATUSES ||
        row->input_key.len >= sizeof l->input_key) {
        l->damaged = true;
        return rv__fail(&l->err, RV_ESTORE, "its row cannot be read");
    }
    snprintf(l->version, sizeof l->version, "%.*s", RV__ARG(row->version));
    snprintf(l->input_key, sizeof l->input_key, "%.*s", RV__ARG(row->input_key));
    if (!rv__str_none(row->rerun_of) && (l->rerun_of = rv__blob_new(row->rerun_of)) == NULL)
        return rv__nomem(&l->err);
    l->input_on_disk = row->input.len > RV__VALUE_INLINE;
    if (row->input.len > 0 && !l->input_on_disk) {
        l->input = rv__blob_new(row->input);
        if (l->input == NULL)
            return rv__nomem(&l->err);
    }
    return RV_OK;
}

/* A snapshot is a cache: if it cannot be used, the journal is replayed. */
static int take_snapshot(void *arg, uint64_t seq, struct rv__str text)
{
    struct load *l = arg;
    rv_error why;
    int rc = rv__json_check_stored(text, RV__JSON_MAX_DEPTH, &text, &why);
    if (rc == RV_OK)
        rc = rv__cell_load(&l->opts, text, &l->cell, &why);
    if (rc == RV_ENOMEM)
        return rv__nomem(&l->err);
    if (rc == RV_OK) {
        l->seq = seq;
        l->snapshot_bytes = text.len;
    }
    return RV_OK;
}

static int take_journal(void *arg, uint64_t seq, struct rv__str facts)
{
    struct load *l = arg;
    struct rv__buf array; /* the check needs one JSON value */
    rv__buf_init(&array, SIZE_MAX / 8);
    rv__buf_char(&array, '[');
    rv__buf_str(&array, facts);
    rv__buf_char(&array, ']');
    int rc = rv__buf_err(&array, &l->err);
    if (rc == RV_OK)
        rc = rv__json_check_stored(rv__buf_view(&array), RV__JSON_MAX_DEPTH, NULL, &l->err);
    if (rc == RV_OK)
        rc = rv__cell_replay_json(l->cell, facts, &l->err);
    rv__buf_done(&array);
    l->seq = seq;
    l->journal_bytes += facts.len;
    l->damaged = rc < 0 && rc != RV_ENOMEM;
    return rc;
}

/* Read the whole run. Thread: the reading desk's or the loop's, each with a store handle of its own. */
static int load_all(struct load *l, struct rv__store *store)
{
    rv_engine *e = l->engine;
    struct rv__str id = rv__str(l->run->id);
    int rc = rv__store_run(store, id, take_row, l, &l->err);
    l->damaged |= rc == RV_EPARSE;
    if (rc == RV_OK)
        rc = rv__plan_ref_load(l->run->registry, store, rv__str(l->version), &l->plan, &l->damaged,
                               &l->err);
    if (rc < 0)
        return rc;
    l->opts = rv__plan_ref_opts_apart(e, l->plan);
    rc = rv__store_snapshot(store, id, take_snapshot, l, &l->err);
    if (rc == RV_ENOTFOUND || rc == RV_EPARSE)
        rc = RV_OK;
    if (rc == RV_OK && l->cell == NULL)
        rc = rv__cell_empty(&l->opts, &l->cell, &l->err);
    if (rc < 0)
        return rc;
    if (RV__BUG(40) && l->seq > 0)
        l->seq = INT64_MAX;
    rc = rv__store_journal(store, id, l->seq, take_journal, l, &l->err);
    l->damaged |= rc == RV_EPARSE;
    return rc;
}

static struct load *load_new(struct rv__run *run)
{
    struct load *l = rv__zalloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->engine = run->engine;
    l->run = run;
    rv__run_ref(run);
    return l;
}

static void load_free(struct load *l)
{
    rv__cell_free(l->cell);
    rv__plan_ref_unref(l->plan);
    rv__blob_unref(l->input);
    rv__blob_unref(l->rerun_of);
    rv__run_unref(l->run);
    rv__free(l);
}

static void drop_load(struct rv__job *job)
{
    load_free((struct load *)job);
}

static int64_t run_load(struct rv__job *job)
{
    struct load *l = (struct load *)job;
    struct rv__store *store = l->engine->loader;
    l->rc = l->claims ? store->ops->claim_run(store, l->member, rv__str(l->run->id), &l->owner,
                                              &l->from, &l->err)
                      : RV_OK;
    if (l->rc == RV_OK && (!l->claims || l->owner == l->member))
        l->rc = load_all(l, store);
    return 0;
}

/* Give what was read to the run. */
static void hand_over(struct load *l, struct rv__run *run)
{
    run->cell = l->cell;
    l->cell = NULL;
    rv__plan_ref_unref(run->plan);
    run->plan = l->plan;
    l->plan = NULL;
    rv__blob_unref(run->input);
    run->input = l->input;
    run->input_on_disk = l->input_on_disk;
    l->input = NULL;
    rv__blob_unref(run->rerun_of);
    run->rerun_of = l->rerun_of;
    l->rerun_of = NULL;
    memcpy(run->input_key, l->input_key, sizeof run->input_key);
    run->is_new = false;
    run->row_status = l->status;
    run->row_suspended = 0;
    run->row_active = l->active;
    run->row_waiting = l->waiting;
    run->row_wake_ms = l->wake_ms;
    run->row_handed = rv__member_is(run->engine);
    run->created_ms = l->created_ms;
    run->started_ms = l->started_ms;
    run->completed_ms = l->completed_ms;
    run->seq = l->seq;
    run->number = l->number;
    run->journal_bytes = l->journal_bytes;
    run->snapshot_bytes = l->snapshot_bytes;
}

int rv__run_read(rv_engine *e, const char *id, struct rv__run **ret, rv_error *err)
{
    struct rv__run *run = rv__run_make(e, id);
    struct load *l = run != NULL ? load_new(run) : NULL;
    if (l == NULL) {
        rv__run_unref(run);
        return rv__nomem(err);
    }
    int rc = load_all(l, e->reader);
    if (rc < 0 && err != NULL)
        *err = l->err;
    if (rc == RV_OK) {
        struct rv__cell_opts opts = rv__plan_ref_opts(e, l->plan);
        rc = rv__cell_lanes(l->cell, opts.lane, opts.arg);
    }
    if (rc == RV_OK)
        hand_over(l, run);
    load_free(l);
    if (rc == RV_OK)
        *ret = run;
    else
        rv__run_unref(run);
    return rc;
}

void rv__run_unread(struct rv__run *run)
{
    rv__cell_free(run->cell);
    run->cell = NULL;
    rv__run_unref(run);
}

/* ----------------------------------------------------------------------------- taking over --- */

static void arm_wait(void *arg, const struct rv__effect *effect)
{
    if (effect->kind == EFFECT_WAIT)
        rv__owe(arg, effect);
}

/* Work that was in flight in an earlier process is lost. A function that ran inside that process may have killed it
 * and is counted for blame; hosts, commands and requests cannot have killed it. `crash`: the process did not shut down
 * in order. `blame`: it died. Among members this must be known: neither an expired lease proves it, nor a claim whose
 * answer was lost and that is found again. */
static int say_lost(struct rv__run *run, bool crash, bool blame)
{
    struct rv__started lost = rv__cell_started(run->cell);
    int rc = lost.no_memory ? RV_ENOMEM : RV_OK;
    for (size_t i = 0; i < lost.count && rc == RV_OK; i++) {
        const struct rv__effect *effect = &lost.effects[i];
        struct rv__msg msg = { .kind = MSG_LOST,
                               .actor = effect->actor,
                               .token = effect->token,
                               .crash = crash,
                               .down_ms = crash ? run->engine->down_ms : 0,
                               .shared = blame && rv__effect_in_process(effect) };
        rc = rv__run_send(run, &msg, NULL);
    }
    rv__free(lost.effects);
    return rc;
}

static struct rv__blob *reason_blob(const char *before, const rv_error *why)
{
    struct rv__buf text;
    struct rv__blob *blob = NULL;
    char message[400];
    snprintf(message, sizeof message, "%s%s", before, why->message);
    rv__buf_init(&text, 4096);
    rv__buf_text(&text, "{\"message\":");
    rv__buf_json_str(&text, rv__str(message));
    rv__buf_char(&text, '}');
    if (rv__buf_err(&text, NULL) == RV_OK)
        blob = rv__blob_new(rv__buf_view(&text));
    rv__buf_done(&text);
    return blob;
}

void rv__run_suspend_refused(struct rv__run *run)
{
    /* The run has ended, so nothing can be decided: its detached work does not continue. */
    bool ended = rv__run_terminal(rv__cell_status(run->cell));
    struct rv__msg msg = { .kind = ended ? MSG_CANCEL : MSG_SUSPEND };
    if (!ended)
        msg.error = reason_blob("the store refuses a record of this run: ", &run->why);
    int rc = ended || msg.error != NULL ? rv__run_send(run, &msg, NULL) : RV_ENOMEM;
    rv__blob_unref(msg.error);
    run->suspending = rc == RV_OK && run->facts.count > 0;
    if (rc == RV_OK)
        run->refused = false;
    else
        run->engine->starved = true; /* try again with its next effects */
    rv__run_touch(run);
}

/* The run is loaded and belongs to the loop now. */
static void attach(rv_engine *e, struct load *l)
{
    struct rv__run *run = l->run;
    struct rv__cell_opts opts = rv__plan_ref_opts(e, l->plan);
    /* It had been set aside and can be read again: now it is suspended like any other run. */
    if (l->status == RUN_SUSPENDED && rv__cell_status(l->cell) == RUN_RUNNING && !run->refused) {
        run->refused = true;
        rv__fail(&run->why, RV_ESTATE, "as was found before");
    }
    bool refused = run->refused;
    (void)rv__cell_lanes(l->cell, opts.lane, opts.arg); /* takes no memory */
    hand_over(l, run);
    run->plan->stored = DEFINITION_STORED;
    run->lanes_of = run->plan->registry->generation;
    rv__run_move(run, RV__IDLE);
    run->cell_bytes = rv__cell_bytes(run->cell);
    e->load.cell_bytes += run->cell_bytes;
    if (e->read_only)
        return;
    if (!RV__BUG(32))
        rv__cell_outstanding(run->cell, arm_wait, run);
    /* If this process had the run in memory before, the work was lost by a refused commit, not by a crash.
     * Without memory, a later scan finds the run again. */
    bool blame = !refused && (!rv__member_is(e) || l->from == STORE_DIED || RV__BUG(403));
    if (!RV__BUG(55) && say_lost(run, !refused, blame) < 0) {
        run->owes_again = true;
        e->starved = true;
    }
    if (refused)
        rv__run_suspend_refused(run);
    rv__run_touch(
        run); /* its row may say that it sleeps; if it was only read, it leaves memory again */
}

/* The run does not exist: answer the calls that wait for it. */
void rv__run_tell_absent(struct rv__run *run)
{
    rv_engine *e = run->engine;
    struct rv__mail mail = { .first = run->mail.first, .last = &mail.first };
    struct rv__letter *letter;
    run->mail = (struct rv__mail){ NULL, &run->mail.first };
    while ((letter = rv__mail_take(&mail)) != NULL) {
        if (letter->kind == LETTER_CALL && run->phase == RV__ABSENT)
            rv__call_absent(e, RV__CONTAINER(letter, struct rv__call, letter), run);
        else
            rv__letter_take(
                e, letter); /* an earlier letter has started the run; or this one is no call */
    }
    if (run->phase == RV__ABSENT)
        rv__run_drop_if_unused(run);
}

/* ------------------------------------------------------------------------------ set aside --- */

/* A run that cannot be read cannot continue: its row says so, and the other runs continue. */
struct aside {
    struct rv__job job; /* first */
    rv_engine *engine;
    char id[RV_RUN_ID_SIZE];
    struct rv__blob *why;
};

static void drop_aside(struct rv__job *job)
{
    struct aside *a = (struct aside *)job;
    rv__blob_unref(a->why);
    rv__free(a);
}

static int64_t run_aside(struct rv__job *job)
{
    struct aside *a = (struct aside *)job;
    struct rv__store_touch touch = { .status = rv__str(rv__run_status_name(RUN_SUSPENDED)),
                                     .waiting = true,
                                     .suspension = rv__blob_str(a->why) };
    struct rv__store_write write = { .run = rv__str(a->id), .touch = &touch };
    rv_error err;
    return rv__store_commit(a->engine->store, &write, 1, &err) < 0 ? RETRY_MS : 0;
}

static void aside_landed(rv_engine *e, struct rv__job *job)
{
    (void)e;
    drop_aside(job); /* refused as well: the run stays as it is and is skipped */
}

/* The same text as rv__cell_suspensions() for a run that is suspended as a whole. NULL: no memory. */
static struct rv__blob *whole_suspension(const struct rv__blob *reason, int64_t since_ms)
{
    struct rv__buf list;
    struct rv__blob *blob = NULL;
    rv__buf_init(&list, SIZE_MAX / 8); /* bounded by the reason */
    rv__buf_fmt(&list, "[{\"reason\":%.*s,\"since\":%lld,\"actions\":[\"resume\",\"abort\"]}]",
                RV__ARG(rv__blob_str(reason)), (long long)since_ms);
    if (rv__buf_err(&list, NULL) == RV_OK)
        blob = rv__blob_new(rv__buf_view(&list));
    rv__buf_done(&list);
    return blob;
}

void rv__run_set_aside(struct rv__run *run, const char *because)
{
    rv_engine *e = run->engine;
    struct aside *a = rv__zalloc(1, sizeof *a);
    struct rv__blob *reason = reason_blob(because, &run->why);
    if (a == NULL || reason == NULL || e->read_only) {
        rv__blob_unref(reason);
        rv__free(a); /* no memory: the next start finds it damaged again */
        return;
    }
    a->job = (struct rv__job){ .run = run_aside, .landed = aside_landed, .drop = drop_aside };
    a->engine = e;
    a->why = whole_suspension(reason, e->now_ms);
    rv__blob_unref(reason);
    if (a->why == NULL) {
        rv__free(a);
        return;
    }
    snprintf(a->id, sizeof a->id, "%s", run->id);
    rv__write_job(e, &a->job);
}

/* -------------------------------------------------------------------------------- landing --- */

static void not_loaded(struct load *l)
{
    struct rv__run *run = l->run;
    run->trouble = l->rc;
    run->why = l->err;
    if (l->damaged && !l->looks && (l->active || l->wake_ms != 0 || l->status == RUN_STATUSES))
        rv__run_set_aside(run, "its record in the store is damaged: ");
    if (l->damaged)
        run->trouble = rv__fail(&run->why, RV_ESTORE,
                                "the record of run '%.40s' is damaged: %.160s", run->id,
                                l->err.message);
    run->refused = false;
    rv__run_move(run, RV__ABSENT);
    rv__run_tell_absent(run);
}

/* Another member owns the run, or it was only read: answer the readers; it does not stay in memory. */
static void looked_at(struct load *l)
{
    rv_engine *e = l->engine;
    struct rv__run *run = l->run, *seen = NULL;
    struct rv__mail mail = { .first = run->mail.first, .last = &mail.first };
    struct rv__letter *letter;
    int64_t owner = l->claims ? l->owner : 0;
    if (!l->claims && (seen = rv__run_make(e, run->id)) != NULL) {
        struct rv__cell_opts opts = rv__plan_ref_opts(e, l->plan);
        (void)rv__cell_lanes(l->cell, opts.lane, opts.arg); /* takes no memory */
        hand_over(l, seen);
    }
    run->mail = (struct rv__mail){ NULL, &run->mail.first };
    rv__run_move(run, RV__ABSENT);
    while ((letter = rv__mail_take(&mail)) != NULL) {
        struct rv__call *call = letter->kind == LETTER_CALL
                                    ? RV__CONTAINER(letter, struct rv__call, letter)
                                    : NULL;
        if (call == NULL || run->phase != RV__ABSENT || !rv__call_elsewhere(e, call, seen, owner))
            rv__letter_take(e, letter); /* this letter needs the run itself */
    }
    if (seen != NULL)
        rv__run_unread(seen);
    if (run->phase == RV__ABSENT && run->claimed)
        rv__run_load(run, true); /* a scan has claimed the run meanwhile */
    else if (run->phase == RV__ABSENT)
        rv__run_drop_if_unused(run);
}

static void load_landed(rv_engine *e, struct rv__job *job)
{
    struct load *l = (struct load *)job;
    struct rv__run *run = l->run;
    e->load.under_way--;
    assert(run->phase == RV__LOADING);
    int rc = l->rc;
    if (rc == RV_EGONE &&
        rv__member_is(e)) { /* this process is no longer a member: it will drop all runs */
        rv__member_fenced(e);
        rc = l->rc = RV_ESTORE;
        run->urgent = false;
    }
    if (rc == RV_ESTORE && l->claims)
        e->member.seeks_own = true; /* it may be ours: the answer was lost */
    bool again = rc == RV_ENOMEM || (rc == RV_ESTORE && !l->damaged);
    if (run->urgent && rc == RV_ESTORE)
        again = false; /* the store does not answer: the waiting calls fail */
    if (again) {
        run->claims |= l->claims;
        run->from = l->from;
        run->next_in = NULL;
        *e->load.last = run;
        e->load.last = &run->next_in;
        e->load.waiting++;
        e->load.retry_ms = rv__mono_ms(e->clock) + RETRY_MS;
    } else if (rc < 0) {
        not_loaded(l);
    } else if (l->looks || (l->claims && l->owner != l->member)) {
        looked_at(l);
    } else {
        e->member.counted.claimed += l->claims;
        e->member.counted.taken_over += l->claims && l->from != STORE_NOBODYS;
        run->claimed = false;
        attach(e, l);
        rv__run_take_mail(run);
        if (e->read_only)
            rv__run_let_go(run);
    }
    load_free(l);
}

/* --------------------------------------------------------------------------------- wanting --- */

void rv__run_load(struct rv__run *run, bool urgent)
{
    rv_engine *e = run->engine;
    rv__run_move(run, RV__LOADING);
    run->urgent = urgent;
    run->next_in = NULL;
    if (urgent) { /* before those without a waiting caller */
        run->next_in = e->load.first;
        e->load.first = run;
        if (run->next_in == NULL)
            e->load.last = &run->next_in;
    } else {
        *e->load.last = run;
        e->load.last = &run->next_in;
    }
    e->load.waiting++;
}

/* A caller waits for the run now: move it to the front of the queue, unless it is being read already. */
static void move_to_front(rv_engine *e, struct rv__run *run)
{
    struct rv__run **at = &e->load.first;
    run->urgent = true;
    while (*at != NULL && *at != run)
        at = &(*at)->next_in;
    if (*at == NULL || at == &e->load.first)
        return;
    *at = run->next_in;
    if (*at == NULL)
        e->load.last = at;
    run->next_in = e->load.first;
    e->load.first = run;
}

int rv__run_reach(rv_engine *e, const char *id, struct rv__letter *letter, bool looks,
                  struct rv__run **ret)
{
    struct rv__run *run = rv__run_find(e, id);
    *ret = NULL;
    if (run == NULL && rv__run_new(e, id, &run) < 0)
        return RV_ENOMEM;
    if (rv__run_takes(run, looks)) {
        *ret = run;
        return RV_OK;
    }
    rv__mail_put(&run->mail, letter);
    run->claims |= !looks;
    if (run->phase == RV__ABSENT && !rv__engine_drives(e, id)) {
        run->trouble = rv__fail(&run->why, RV_ESTATE, "this engine is for run '%.80s' only",
                                e->only_run);
        rv__run_tell_absent(run);
    } else if (run->phase == RV__ABSENT) {
        rv__run_load(run, true);
    } else if (run->phase == RV__LOADING && !run->urgent) {
        move_to_front(e, run);
    }
    return RV_OK;
}

/* -------------------------------------------------------------------------------- scanning --- */

struct scan {
    struct rv__job job; /* first */
    rv_engine *engine;
    bool active; /* active runs after `after`; else runs that are due by `due_ms` */
    uint64_t after;
    int64_t due_ms;
    struct rv__store_place place;
    int rc;
    size_t seen, count;
    bool more;       /* more runs were found than fit */
    int64_t wake_ms; /* when the next sleeping run must be read; 0: never */
    char ids[SCAN_PAGE][RV_RUN_ID_SIZE];
    /* of a member: the claimed runs, and how their last owners ended */
    struct rv__store_claim claim;
    struct rv__buf names;
    uint64_t generation;           /* of the registry that they are of */
    bool seeks_share, asked_share; /* has it its share of runs? It has asked for some */
    struct rv__buf peers;          /* the members that workers can reach; empty: not looked at */
    enum rv__store_orphan from[SCAN_PAGE];
    rv_error err;
};

static int take_id(void *arg, const struct rv__store_run *row)
{
    struct scan *scan = arg;
    scan->after = row->number;
    scan->place = (struct rv__store_place){ .at_ms = row->wake_at_ms, .number = row->number };
    scan->seen++;
    if (rv__str_none(row->id)) /* not even its id can be read: such a run cannot continue */
        return RV_OK;
    snprintf(scan->ids[scan->count++], RV_RUN_ID_SIZE, "%.*s", RV__ARG(row->id));
    return RV_OK;
}

/* Read the row of the engine's only run. */
static int take_only(void *arg, const struct rv__store_run *row)
{
    struct scan *scan = arg;
    bool due = row->wake_at_ms != 0 && row->wake_at_ms <= scan->due_ms;
    if (scan->active ? row->active : due)
        return take_id(arg, row);
    scan->wake_ms = row->wake_at_ms;
    return RV_OK;
}

static int scan_only(struct scan *scan, struct rv__store *store, rv_error *err)
{
    int rc = rv__store_run(store, rv__str(scan->engine->only_run), take_only, scan, err);
    return rc == RV_ENOTFOUND ? RV_OK : rc; /* it has not started */
}

static int scan_all(struct scan *scan, struct rv__store *store, rv_error *err)
{
    int rc = scan->active
                 ? rv__store_active_after(store, scan->after, SCAN_PAGE, take_id, scan, err)
                 : rv__store_due(store, scan->due_ms, scan->place.number > 0 ? &scan->place : NULL,
                                 SCAN_PAGE, take_id, scan, err);
    scan->more = scan->seen == SCAN_PAGE;
    if (rc == RV_OK && !scan->active && !scan->more)
        rc = rv__store_next_wake(store, scan->due_ms, &scan->wake_ms, err);
    return rc;
}

static int take_claimed(void *arg, const struct rv__store_claimed *run)
{
    struct scan *scan = arg;
    assert(scan->count < SCAN_PAGE); /* the page's size */
    /* the last of them, in whatever order they come */
    if (scan->claim.due
            ? run->wake_at_ms > scan->place.at_ms ||
                  (run->wake_at_ms == scan->place.at_ms && run->number > scan->place.number)
            : run->number > scan->place.number)
        scan->place = (struct rv__store_place){ .at_ms = run->wake_at_ms, .number = run->number };
    scan->from[scan->count] = run->from;
    snprintf(scan->ids[scan->count++], RV_RUN_ID_SIZE, "%.*s", RV__ARG(run->id));
    return RV_OK;
}

/* As a member: claim runs. The runs of dead members come with the active ones. */
static int scan_claim(struct scan *scan, struct rv__store *store)
{
    size_t ended = 0;
    int rc = scan->active && !RV__BUG(402) ? store->ops->expire(store, &ended, &scan->err) : RV_OK;
    if (rc == RV_OK)
        rc = store->ops->claim(store, &scan->claim, take_claimed, scan, &scan->err);
    if (rc == RV_OK && scan->active && scan->engine->kit == NULL)
        rc = rv__member_read_peers(store, &scan->peers, &scan->err);
    if (rc == RV_OK && scan->seeks_share)
        rc = rv__member_seek_share(store, &scan->claim, &scan->asked_share, &scan->err);
    scan->more = scan->count >= scan->claim.limit;
    if (rc == RV_OK && !scan->active && !scan->more)
        rc = rv__store_next_wake(store, scan->due_ms, &scan->wake_ms, &scan->err);
    return rc;
}

static int64_t run_scan(struct rv__job *job)
{
    struct scan *scan = (struct scan *)job;
    rv_error err;
    if (scan->claim.member != 0) {
        scan->rc = scan_claim(scan, scan->engine->loader);
        return 0;
    }
    scan->rc = scan->engine->only_run[0] != '\0' ? scan_only(scan, scan->engine->loader, &err)
                                                 : scan_all(scan, scan->engine->loader, &err);
    return 0;
}

static void scan_free(struct scan *scan)
{
    rv__buf_done(&scan->names);
    rv__buf_done(&scan->peers);
    rv__free((void *)scan->claim.workflows); /* and functions */
    rv__free(scan);
}

static void drop_scan(struct rv__job *job)
{
    scan_free((struct scan *)job);
}

/* The names of all workflows and functions that this member has. */
static int fill_claim(rv_engine *e, struct scan *scan)
{
    struct rv__store_claim *claim = &scan->claim;
    size_t workflows = 0, functions = 0, i = 0, at = 0;
    for (const struct rv__registered *r = e->registry->workflows; r != NULL; r = r->next)
        workflows += !r->withdrawn;
    for (const struct rv__function *f = e->registry->functions; f != NULL; f = f->next)
        functions += rv__function_offered(f);
    struct rv__str *names = rv__zalloc(workflows + functions + 1, sizeof *names);
    if (names == NULL)
        return RV_ENOMEM;
    for (const struct rv__registered *r = e->registry->workflows; r != NULL; r = r->next)
        if (!r->withdrawn) {
            names[i++].len = r->name.len;
            rv__buf_str(&scan->names, r->name);
        }
    for (const struct rv__function *f = e->registry->functions; f != NULL; f = f->next)
        if (rv__function_offered(f)) {
            names[i++].len = f->name.len;
            rv__buf_str(&scan->names, f->name);
        }
    *claim = (struct rv__store_claim){ .member = rv__member_id(e),
                                       .workflows = names,
                                       .workflow_count = workflows,
                                       .functions = names + workflows,
                                       .function_count = functions,
                                       .due = !scan->active,
                                       .due_ms = scan->due_ms,
                                       .after = scan->place,
                                       .own = scan->active &&
                                              (e->member.seeks_own || e->member.seeks_gifts),
                                       .given = scan->active && !e->member.seeks_own,
                                       .limit = SCAN_PAGE / 2 };
    claim->given &= claim->own;
    claim->anew = scan->active && e->member.anew && !claim->own;
    scan->generation = e->registry->generation;
    scan->seeks_share = scan->active && rv__member_wants_share(e);
    if (claim->own || claim->anew)
        claim->after.number = scan->after;
    for (i = 0; i < workflows + functions && scan->names.rc == RV_OK; at += names[i++].len)
        names[i].at = scan->names.text + at;
    return scan->names.rc;
}

static int64_t earlier(int64_t a, int64_t b) /* 0 is never */
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Look for active runs that are ours and that we do not know of, from the first on. */
static void seek_own(rv_engine *e, const struct scan *scan)
{
    if (scan->claim.member == 0 || !scan->active)
        return;
    e->member.seeks_own = true;
    e->load.active_after = 0;
}

static void scan_landed(rv_engine *e, struct rv__job *job)
{
    struct scan *scan = (struct scan *)job;
    struct rv__loads *load = &e->load;
    int64_t now_ms = rv__mono_ms(e->clock);
    load->scanning = false;
    if (scan->rc == RV_EGONE && scan->claim.member != 0)
        rv__member_fenced(e);
    if (scan->rc < 0) {
        load->retry_ms = now_ms + RETRY_MS;
        if (!RV__BUG(404))
            seek_own(e, scan); /* some of them may be ours */
        rv__member_shared(e, scan->asked_share);
        scan_free(scan);
        return;
    }
    for (size_t i = 0; i < scan->count; i++) {
        struct rv__run *run = rv__run_find(e, scan->ids[i]);
        if (run == NULL && rv__run_new(e, scan->ids[i], &run) < 0) {
            load->retry_ms = now_ms + RETRY_MS; /* no memory: scan the page again */
            seek_own(e, scan);
            scan_free(scan);
            return;
        }
        if (scan->claim.member != 0 && run->phase <= RV__LOADING) {
            run->claimed = true;
            run->from = scan->from[i];
            e->member.counted.claimed++;
            e->member.counted.taken_over += run->from != STORE_NOBODYS;
        }
        if (run->phase == RV__ABSENT)
            rv__run_load(run, false);
    }
    if (scan->claim.member != 0 && scan->active) {
        const struct rv__store_claim *claim = &scan->claim;
        bool changed = claim->anew && scan->generation != e->registry->generation;
        load->more_active = scan->more || claim->own || claim->anew;
        load->active_after = (claim->own || claim->anew) && scan->more && !changed
                                 ? scan->place.number
                                 : 0;
        e->member.seeks_own &= !claim->own || claim->given || scan->more;
        e->member.seeks_gifts &= !claim->given || scan->more;
        rv__member_shared(e, scan->asked_share);
        rv__member_tell_peers(e, &scan->peers);
        e->member.anew &= !claim->anew || scan->more || changed;
    } else if (scan->active) {
        load->active_after = scan->after;
        load->more_active = scan->more;
    } else if (scan->more) {
        load->due_place = scan->place; /* the next scan starts after it */
    } else {
        load->due_place = (struct rv__store_place){ .number = 0 };
        load->wake_ms = earlier(scan->wake_ms, load->wake_ms_since);
    }
    scan_free(scan);
}

void rv__load_asleep(rv_engine *e, int64_t wake_ms)
{
    e->load.wake_ms = earlier(e->load.wake_ms, wake_ms);
    e->load.wake_ms_since = earlier(e->load.wake_ms_since, wake_ms);
}

static bool is_full(const struct rv__loads *load)
{
    return load->waiting >= WAITING_MOST || load->cell_bytes >= load->budget;
}

/* Is there a reason to look for runs now? */
static bool wants_scan(rv_engine *e)
{
    const struct rv__loads *load = &e->load;
    if (load->scanning || e->read_only || is_full(load) || rv__mono_ms(e->clock) < load->retry_ms)
        return false;
    return load->more_active || load->due_place.number > 0 ||
           (load->wake_ms != 0 && load->wake_ms <= rv__wall_ms(e->clock) + AHEAD_MS);
}

static void give_scan(rv_engine *e)
{
    struct rv__loads *load = &e->load;
    struct scan *scan = rv__zalloc(1, sizeof *scan);
    if (scan == NULL) {
        load->retry_ms = rv__mono_ms(e->clock) + RETRY_MS;
        return;
    }
    scan->job = (struct rv__job){ .run = run_scan, .landed = scan_landed, .drop = drop_scan };
    scan->engine = e;
    scan->active = load->more_active;
    scan->after = load->active_after;
    scan->due_ms = rv__wall_ms(e->clock) + AHEAD_MS;
    if (!scan->active)
        scan->place = load->due_place;
    rv__buf_init(&scan->names, SIZE_MAX / 8); /* bounded by what is registered */
    rv__buf_init(&scan->peers, RV__FRAME_MAX);
    if (rv__member_is(e) && fill_claim(e, scan) < 0) {
        scan_free(scan);
        load->retry_ms = rv__mono_ms(e->clock) + RETRY_MS;
        return;
    }
    if (!scan->active && load->due_place.number == 0)
        load->wake_ms_since = 0;
    load->scanning = true;
    rv__read_job(e, &scan->job);
}

static bool may_load(const struct rv__loads *load)
{
    return load->first != NULL && load->under_way < LOADS_AT_ONCE &&
           (load->first->urgent || load->cell_bytes < load->budget);
}

void rv__load_tick(rv_engine *e)
{
    struct rv__loads *load = &e->load;
    if (load->retry_ms != 0 && rv__mono_ms(e->clock) >= load->retry_ms)
        load->retry_ms = 0;
    while (may_load(load) && load->retry_ms == 0) {
        struct rv__run *run = load->first;
        struct load *l = load_new(run);
        if (l == NULL) {
            e->starved = true;
            return;
        }
        l->job = (struct rv__job){ .run = run_load, .landed = load_landed, .drop = drop_load };
        if (rv__member_is(e)) {
            l->member = rv__member_id(e);
            l->from = run->from;
            l->claims = run->claims && !run->claimed;
            l->looks = !run->claims && !run->claimed;
            run->claims = false;
        }
        rv__read_job(e, &l->job);
        load->first = run->next_in;
        if (load->first == NULL)
            load->last = &load->first;
        load->waiting--;
        load->under_way++;
    }
    if (wants_scan(e) && !e->closed)
        give_scan(e);
}

int64_t rv__load_until_ns(rv_engine *e, int64_t until_ns)
{
    const struct rv__loads *load = &e->load;
    int64_t mono_ns = rv__mono_ns(e->clock), at_ns = RV__NEVER;
    if (e->read_only && load->first == NULL)
        return until_ns;
    if (load->retry_ms != 0) {
        at_ns = load->retry_ms * 1000000;
    } else if (may_load(load) || wants_scan(e)) {
        at_ns = mono_ns;
    } else if (load->wake_ms != 0 && !load->scanning && !is_full(load)) {
        int64_t in_ms = load->wake_ms - AHEAD_MS - rv__wall_ms(e->clock);
        if (in_ms > RV__LONGEST_SLEEP_MS(e))
            in_ms = RV__LONGEST_SLEEP_MS(e);
        at_ns = in_ms > 0 ? mono_ns + in_ms * 1000000 : mono_ns;
    }
    return at_ns < until_ns ? at_ns : until_ns;
}

void rv__load_init(rv_engine *e)
{
    e->load = (struct rv__loads){ .budget = e->load.budget ? e->load.budget : BUDGET_BYTES };
    e->load.last = &e->load.first;
}

void rv__recover(rv_engine *e)
{
    e->load.more_active = true;
    e->load.active_after = 0;
    e->load.wake_ms = RV__BUG(38)
                          ? 0
                          : 1; /* in the past, so a scan runs at once and finds the real time */
}
