/* commit.c: writes what turns decided to disk, in one transaction after another.
 *
 * A batch has the facts of all deciding runs. The loop writes it itself when it has nothing else to do. Under load it
 * hands the batch to the writing desk and continues: it takes letters and decides for runs that are not in the batch.
 * Their facts make the next batch, which may wait at the desk before the first has landed (may_leave). A run in a
 * batch is committing: nothing is decided for it. So a run's facts and effects always belong to one batch.
 *
 * A batch that the store cannot take now (full disk, locked file, no memory) is tried again, unchanged, until it
 * succeeds. That happens at the desk, so that the loop can answer meanwhile, from what is on disk. If the store
 * refuses the write of one run for good, the facts of that run are abandoned; it is read again from the disk and
 * suspended with the reason, and the others continue. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/member.h"
#include "engine/metrics.h"
#include "read/read.h"

enum {
    RETRY_COMMIT_MS = 100,   /* after a commit that failed */
    SLEEP_AT_LEAST_MS = 500, /* a run with a nearer timer stays in memory */
    PIECE_BYTES = 64 << 20,  /* of one transaction: far below SQLite's limits */
    SNAPSHOT_FROM = 16384,   /* bytes of journal: below this a replay is faster than a snapshot */
};

/* The parts of a batch, in its arena. */
struct room {
    struct rv__store_write *writes;
    struct rv__run **runs; /* the run of each write */
    struct rv__store_run *rows;
    struct rv__store_touch *touches;
    struct rv__store_definition *definitions;
    size_t definition_count;
    struct rv__store_result *results;
    struct rv__store_value *values;
    struct rv__store_log *logs;
    struct rv__str *answered;
};

static void fill_logs(struct rv__run *run, struct rv__store_log *logs)
{
    const char *at = run->logs.text;
    for (size_t i = 0; i < run->log_count; i++) {
        struct rv__kept_line head;
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        logs[i] = (struct rv__store_log){ .at_ms = head.at_ms,
                                          .level = (enum rv__store_level)head.level,
                                          .attempt = head.attempt };
        logs[i].path = (struct rv__str){ at, head.path };
        at += head.path;
        logs[i].step = (struct rv__str){ at, head.step };
        at += head.step;
        logs[i].message = (struct rv__str){ at, head.message };
        at += head.message;
        if (head.stream)
            logs[i].kind = rv__str(RV__STORE_STREAM);
        if (head.metadata > 0)
            logs[i].metadata = (struct rv__str){ at, head.metadata };
        at += head.metadata;
    }
}

static void fill_answered(const struct rv__run *run, struct rv__str *answered)
{
    const char *at = run->answered.text;
    for (size_t i = 0; i < run->answered_count; i++, at += strlen(at) + 1)
        answered[i] = rv__str(at);
}

/* The suspensions for its row; none: it is not suspended. Without memory the row has none, but the journal does, and
 * so does the run itself. */
static struct rv__str suspensions_of(struct rv__run *run)
{
    rv__buf_reset(&run->suspensions);
    if (rv__cell_suspensions(run->cell, RV_LIST_SUSPENSIONS, &run->suspensions, NULL) < 0)
        rv__buf_reset(&run->suspensions);
    return run->suspensions.len > 0 ? rv__buf_view(&run->suspensions) : (struct rv__str){ NULL, 0 };
}

/* Take a snapshot once the journal since the last one is larger than it: amortised constant cost per fact. */
static void maybe_snapshot(struct rv__run *run)
{
    size_t grown = run->journal_bytes + run->facts.json.len;
    size_t least = run->engine->commit.snapshot_from;
    size_t last = run->snapshot_bytes > least ? run->snapshot_bytes : least;
    rv__buf_reset(&run->snapshot);
    if (grown <= last || rv__run_terminal(rv__cell_status(run->cell)))
        return;
    if (rv__cell_save(run->cell, &run->snapshot, NULL) < 0)
        rv__buf_reset(&run->snapshot); /* no memory: try another time */
}

/* Does it stay in memory, though it has nothing to do now? */
static bool stays(const struct rv__run *run, int64_t wake_ms)
{
    return (run->guest && !run->parked) ||
           (wake_ms != 0 && wake_ms < run->engine->now_ms + SLEEP_AT_LEAST_MS);
}

static void fill_write(struct rv__run *run, struct room *b, size_t i, size_t *results,
                       size_t *values, size_t *logs, size_t *answered)
{
    struct rv__store_write *w = &b->writes[i];
    enum rv__run_status status = rv__cell_status(run->cell);
    bool idle = rv__run_idle(run) && rv__run_may_walk(run);
    bool waiting = rv__cell_waits_for_somebody(run->cell);
    int64_t wake_ms = idle && rv__cell_active(run->cell) ? rv__run_wake_ms(run) : 0;
    /* A run that is written as not active has no owner: so a member writes a run that stays in memory as active. */
    bool active = !idle || (rv__member_is(run->engine) && stays(run, wake_ms));
    if (active)
        wake_ms = 0; /* it does not sleep: no scan must find it */
    struct rv__str lacks = { NULL, 0 };
    run->given = rv__member_is(run->engine) && active && !run->is_new &&
                 rv__member_gives(run, &lacks);
    if (run->given)
        wake_ms = rv__run_wake_ms(run); /* the next owner must know it */
    if (rv__run_terminal(status) && run->completed_ms == 0)
        run->completed_ms = run->engine->now_ms;
    /* It goes on: those that could not continue it before may be able to continue it later. */
    bool clears = run->row_handed && run->facts.count > 0 && !RV__BUG(417);

    *w = (struct rv__store_write){
        .run = rv__str(run->id), .number = run->number, .after = run->seq, .begins = run->is_new
    };
    if (run->facts.count > 0)
        w->facts = rv__buf_view(&run->facts.json);
    w->results = &b->results[*results];
    w->result_count = run->facts.row_count;
    for (size_t k = 0; k < run->facts.row_count; k++)
        b->results[(*results)++] = (struct rv__store_result){ .key = run->facts.rows[k].key,
                                                              .index = run->facts.rows[k].index,
                                                              .json = run->facts.rows[k].json };
    w->values = &b->values[*values];
    w->value_count = run->facts.value_count;
    for (size_t k = 0; k < run->facts.value_count; k++)
        b->values[(*values)++] = (struct rv__store_value){
            run->facts.values[k].number, rv__blob_str(run->facts.values[k].json)
        };
    w->logs = &b->logs[*logs];
    w->log_count = run->log_count;
    fill_logs(run, &b->logs[*logs]);
    *logs += run->log_count;
    w->answered = &b->answered[*answered];
    w->answered_count = run->answered_count;
    fill_answered(run, &b->answered[*answered]);
    *answered += run->answered_count;
    maybe_snapshot(run);
    if (run->snapshot.len > 0)
        w->snapshot = rv__buf_view(&run->snapshot);

    struct rv__str failed_step = rv__cell_failed_step(run->cell);
    struct rv__str suspensions = suspensions_of(run);
    uint64_t suspended = suspensions.len > 0 ? rv__str_hash(RV__HASH_START, suspensions) : 0;
    if (run->is_new) {
        b->rows[i] = (struct rv__store_run){
            .id = w->run,
            .workflow = run->plan->plan->body.wrap->name,
            .version = rv__str(run->plan->plan->version),
            .status = rv__str(rv__run_status_name(status)),
            .input = rv__blob_str(run->input),
            .input_key = rv__str(run->input_key),
            .error = rv__cell_error(run->cell),
            .failed_step = failed_step,
            .suspension = suspensions,
            .rerun_of = rv__blob_str(run->rerun_of),
            .waiting = waiting,
            .created_ms = run->created_ms,
            .started_ms = run->started_ms,
            .completed_ms = run->completed_ms,
            .active = active,
            .wake_at_ms = wake_ms,
        };
        w->row = &b->rows[i];
    } else if (status != run->row_status || active != run->row_active ||
               waiting != run->row_waiting || wake_ms != run->row_wake_ms ||
               suspended != run->row_suspended || run->given || clears) {
        b->touches[i] = (struct rv__store_touch){
            .status = rv__str(rv__run_status_name(status)),
            .active = active,
            .waiting = waiting,
            .wake_at_ms = wake_ms,
            .completed_ms = run->completed_ms,
            .error = rv__cell_error(run->cell),
            .failed_step = failed_step,
            .suspension = suspensions,
            .to = run->given ? run->gives : 0,
            .lacks = lacks,
        };
        w->touch = &b->touches[i];
    }
    if (RV__BUG(36) && w->touch != NULL)
        b->touches[i].active = false;
    run->row_handed &= w->touch == NULL || run->given;
    run->row_status = status;
    run->row_suspended = suspended;
    run->row_active = active;
    run->row_waiting = waiting;
    run->row_wake_ms = wake_ms;
}

static bool has_something(const struct rv__store_write *w)
{
    return w->facts.len > 0 || w->row != NULL || w->touch != NULL || w->log_count > 0 ||
           w->snapshot.len > 0 || w->result_count > 0;
}

static int plan_text(const struct rv__plan *plan, struct rv__arena *arena, struct rv__str *ret)
{
    struct rv__buf json;
    rv__buf_init(&json, RV__PLAN_MAX_BYTES);
    int rc = rv__plan_write(plan, &json, NULL);
    if (rc == RV_OK)
        rc = rv__str_copy(arena, rv__buf_view(&json), ret);
    rv__buf_done(&json);
    return rc;
}

/* Plans that are first used by new runs of this batch. They count as stored when the batch is on disk. */
static int fill_definitions(rv_engine *e, struct room *b, struct rv__arena *arena)
{
    for (struct rv__run *run = e->deciding; run != NULL; run = run->next_in) {
        if (run->plan->stored != DEFINITION_NEW || RV__BUG(54))
            continue;
        struct rv__str copy;
        if (plan_text(run->plan->plan, arena, &copy) < 0)
            return RV_ENOMEM;
        b->definitions[b->definition_count++] = (struct rv__store_definition){
            .hash = rv__str(run->plan->plan->version), .json = copy
        };
        run->plan->stored = DEFINITION_AWAY;
    }
    return RV_OK;
}

/* Note the outcome of a commit. Thread: the one that committed. */
static void note_health(rv_engine *e, const rv_error *why)
{
    struct rv__commits *c = &e->commit;
    pthread_mutex_lock(&c->lock);
    rv__store_stats(e->store, &c->stats);
    if (why == NULL)
        c->health = (rv_health){ .stuck = false };
    else if (!c->health.stuck)
        c->health = (rv_health){ .stuck = true, .since = rv__wall_ms(e->clock) };
    if (why != NULL) {
        c->health.attempts++;
        c->health.why = *why;
        c->health.gone = why->code == RV_EGONE && !e->member.on; /* a member joins again */
    }
    atomic_store(&c->failing, why != NULL);
    pthread_mutex_unlock(&c->lock);
}

/* ------------------------------------------------------------------------------- the batch --- */

/* Room for the writes of all deciding runs. */
static int make_room(rv_engine *e, struct room *b, struct rv__arena *arena)
{
    size_t runs = 0, results = 0, values = 0, logs = 0, answered = 0;
    for (struct rv__run *run = e->deciding; run != NULL; run = run->next_in) {
        runs++;
        results += run->facts.row_count;
        values += run->facts.value_count;
        logs += run->log_count;
        answered += run->answered_count;
    }
    b->writes = rv__arena_zalloc(arena, runs, sizeof *b->writes);
    b->runs = rv__arena_zalloc(arena, runs, sizeof *b->runs);
    b->rows = rv__arena_zalloc(arena, runs, sizeof *b->rows);
    b->touches = rv__arena_zalloc(arena, runs, sizeof *b->touches);
    b->definitions = rv__arena_zalloc(arena, runs, sizeof *b->definitions);
    b->results = rv__arena_zalloc(arena, results + 1, sizeof *b->results);
    b->values = rv__arena_zalloc(arena, values + 1, sizeof *b->values);
    b->logs = rv__arena_zalloc(arena, logs + 1, sizeof *b->logs);
    b->answered = rv__arena_zalloc(arena, answered + 1, sizeof *b->answered);
    return b->writes != NULL && b->runs != NULL && b->rows != NULL && b->touches != NULL &&
                   b->definitions != NULL && b->results != NULL && b->values != NULL &&
                   b->logs != NULL && b->answered != NULL
               ? RV_OK
               : RV_ENOMEM;
}

/* Collect what the deciding runs write. RV_ENOMEM: nothing changed; the next turn tries again. */
static int gather(rv_engine *e, struct rv__batch *batch)
{
    struct room room = { .writes = NULL }, *b = &room;
    struct rv__arena *arena = &batch->arena;
    size_t results = 0, values = 0, logs = 0, answered = 0, count = 0;
    for (struct rv__run *run = e->deciding; run != NULL; run = run->next_in)
        if (rv__log_failures(run) < 0)
            return RV_ENOMEM;
    if (make_room(e, b, arena) < 0)
        return RV_ENOMEM;
    if (fill_definitions(e, b, arena) < 0) {
        rv__plans_stored(e->deciding, false);
        return RV_ENOMEM;
    }
    for (struct rv__run *run = e->deciding; run != NULL; run = run->next_in) {
        fill_write(run, b, count, &results, &values, &logs, &answered);
        b->runs[count] = run;
        if (has_something(&b->writes[count]))
            count++;
    }
    if (count > 0 && b->definition_count > 0) {
        b->writes[0].definitions = b->definitions;
        b->writes[0].definition_count = b->definition_count;
    }
    batch->writes = room.writes;
    batch->of = room.runs;
    batch->count = count;
    return RV_OK;
}

/* How many of the writes from `from` on go into one transaction. */
static size_t piece_of(const struct rv__batch *b, size_t from)
{
    size_t bytes = 0, n = 0;
    while (from + n < b->count && (n == 0 || bytes < b->engine->commit.piece)) {
        const struct rv__store_write *w = &b->writes[from + n++];
        bytes += w->facts.len + w->snapshot.len;
        for (size_t i = 0; i < w->result_count; i++)
            bytes += w->results[i].json.len;
        for (size_t i = 0; i < w->value_count; i++)
            bytes += w->values[i].json.len;
    }
    return n;
}

/* Thread: the writing desk's, or the loop's. */
static int64_t write_batch(struct rv__job *job)
{
    struct rv__batch *b = (struct rv__batch *)job;
    rv_engine *e = b->engine;
    b->lost = e->commit.lost;
    while (b->written < b->count && !b->lost) {
        rv_error err;
        size_t n = piece_of(b, b->written);
        int rc = rv__store_commit(e->store, &b->writes[b->written], n, &err);
        note_health(e, rc < 0 ? &err : NULL);
        if (rc == RV_EGONE && !(RV__BUG(401) && e->member.on)) {
            e->commit.lost = b->lost = true;
            return 0;
        }
        b->doubtful = rc < 0 ? n : 0;
        if (rc < 0 && !RV__BUG(37) && !(rc == RV_EGONE && RV__BUG(401)))
            return RETRY_COMMIT_MS; /* nothing is lost, and nobody sees it before it is on disk */
        b->written += n;
    }
    return 0;
}

/* ------------------------------------------------------------------------------- after it --- */

/* Another member owns it, or has started it: it leaves memory here, and waiting calls are made again. */
static void lose(struct rv__run *run)
{
    rv__run_calls_elsewhere(run);
    rv__run_leave(run);
    run->trouble = RV_OK;
    run->refused = run->suspending = run->claimed = run->given = false;
    run->gives = 0;
    rv__run_take_mail(run);
    if (run->phase == RV__ABSENT)
        rv__run_drop_if_unused(run);
}

/* Another member may own it by now: it leaves memory, and its mail is handled again. */
static void give_up(struct rv__run *run)
{
    rv__member_gave(run);
    lose(run);
}

/* Abandon its facts, which nobody has seen, and load it from the disk again. */
static void refuse(struct rv__run *run, const rv_error *why)
{
    if (rv__member_is(run->engine) &&
        (why->code == RV_ESTATE || (why->code == RV_EEXIST && run->is_new))) {
        run->engine->member.counted.refused += why->code == RV_ESTATE;
        lose(run);
        return;
    }
    struct rv__buf logs = run->logs; /* log lines are not decisions: they are kept */
    size_t log_count = run->log_count;
    bool again = run->suspending; /* even its suspension cannot be written */
    bool was_new = run->is_new;   /* it is not on disk at all */
    bool ended = rv__run_terminal(rv__cell_status(run->cell));
    run->refused = !again;
    run->why = *why;
    rv__buf_init(&run->logs, SIZE_MAX / 8);
    rv__run_refuse_calls(run, why);
    rv__run_leave(run);
    run->trouble = why->code;
    /* The status of an ended run does not change, whatever its detached work does. */
    if (again && !ended)
        rv__run_set_aside(run, "the store refuses a record of this run: ");
    if (again || was_new) {
        rv__buf_done(&logs);
        rv__run_tell_absent(run);
        return;
    }
    rv__buf_done(&run->logs);
    run->logs = logs;
    run->log_count = log_count;
    run->claimed = rv__member_is(run->engine) && !RV__BUG(407); /* we still own it */
    rv__run_load(run, true);
}

/* Its decisions are on disk: perform their effects. */
static void act(struct rv__run *run)
{
    rv_engine *e = run->engine;
    rv__run_move(run, RV__ACTING);
    if (run->snapshot.len > 0) {
        run->snapshot_bytes = run->snapshot.len;
        run->journal_bytes = 0;
        rv__buf_reset(&run->snapshot);
    } else {
        run->journal_bytes += run->facts.json.len;
    }
    run->is_new = run->suspending = false;
    if (run->input != NULL && run->input->len > RV__VALUE_INLINE) {
        rv__blob_unref(run->input);
        run->input = NULL;
        run->input_on_disk = true;
    }
    if (run->facts.count > 0 || run->log_count > 0)
        rv__feed_mark(e->reading, run->id);
    rv__metrics_facts(e, &run->facts);
    rv__facts_reset(&run->facts);
    rv__buf_reset(&run->logs);
    run->log_count = 0;
    rv__buf_reset(&run->answered);
    run->answered_count = 0;
    rv__release_effects(run);
    if (run->owes_again)
        rv__owe_again(run);
    if (run->refused)
        rv__run_suspend_refused(run);
    rv__run_answer_calls(run);
    if (rv__run_terminal(rv__cell_status(run->cell)))
        rv__run_answer_waiters(run);
    size_t bytes = rv__cell_bytes(run->cell);
    e->load.cell_bytes += bytes - run->cell_bytes;
    run->cell_bytes = bytes;
    rv__run_move(run, RV__IDLE);
    if (run->given) { /* what came meanwhile is its next owner's */
        run->again = false;
        give_up(run);
        return;
    }
    if (run->again || (!RV__BUG(51) && rv__cell_more(run->cell)) || run->facts.count > 0) {
        run->again = false; /* the turn was cut short, or mail came: it is in the next turn */
        rv__run_touch(run);
    }
    rv__run_take_mail(run);
    if (run->phase == RV__IDLE)
        rv__run_queue_wants(run);
    if (run->phase == RV__IDLE && rv__member_is(e))
        rv__member_consider(run);
    rv__run_let_go(run);
}

void rv__run_let_go(struct rv__run *run)
{
    rv_engine *e = run->engine;
    if (run->phase != RV__IDLE || run->mail.first != NULL || (run->guest && !run->parked))
        return;
    if (!e->read_only) {
        int64_t wake_ms = run->row_wake_ms;
        bool asleep = !run->row_active && rv__run_idle(run);
        if (!asleep || (wake_ms != 0 && wake_ms < e->now_ms + SLEEP_AT_LEAST_MS))
            return;
        if (RV__BUG(408) && rv__member_is(e))
            return;
        if (wake_ms != 0)
            rv__load_asleep(e, wake_ms);
        if (rv__member_is(e)) /* any member may claim it now */
            rv__run_calls_elsewhere(run);
    }
    if (RV__BUG(35))
        run->waiters = NULL;
    rv__run_leave(run);
    rv__run_drop_if_unused(run);
}

static void note_commit(rv_engine *e, const struct rv__batch *b)
{
    if (b->count == 0)
        return;
    pthread_mutex_lock(&e->commit.lock); /* the writer may be busy with the next batch */
    int64_t took_ns = e->commit.stats.last_commit_ns;
    pthread_mutex_unlock(&e->commit.lock);
    e->commits++;
    rv__metrics_commit(e, took_ns, b->count);
}

/* The batch is not released: nobody may see its content. */
static bool is_lost(rv_engine *e, const struct rv__batch *b)
{
    if (b->lost && rv__member_is(e))
        rv__member_fenced(e);
    else if (b->lost && !e->commit.gone)
        rv__engine_gone(e);
    return b->lost;
}

/* The runs of a batch that is on disk, each with its outcome. */
static struct rv__run *take_landed(rv_engine *e, struct rv__batch *b)
{
    struct rv__run *runs = b->runs;
    note_commit(e, b);
    rv__plans_stored(runs, true);
    for (size_t i = 0; i < b->count; i++) {
        b->of[i]->number = b->writes[i].number;
        if (b->writes[i].seq != 0)
            b->of[i]->seq = b->writes[i].seq;
        b->of[i]->outcome = b->writes[i].outcome == STORE_REFUSED ? &b->writes[i].why : NULL;
    }
    b->runs = NULL;
    assert(e->commit.away > 0);
    e->commit.away--;
    return runs;
}

/* Perform the effects of the runs that are on disk, but not of refused ones. Then the batch is free. */
static void act_all(rv_engine *e, struct rv__batch *b, struct rv__run *run)
{
    while (run != NULL) {
        struct rv__run *next = run->next_in;
        const rv_error *why = run->outcome;
        run->outcome = NULL;
        if (why != NULL && !RV__BUG(53))
            refuse(run, why);
        else
            act(run);
        run = next;
    }
    rv__arena_reset(&b->arena);
    b->used = false;
    rv__feed_flush(e->reading);
}

/* Is a timer due whose run is in a batch? The next batch takes it, so none may leave before that one lands. */
static bool is_timer_waiting(const rv_engine *e)
{
    return e->timers_mailed > 0;
}

static bool pays(rv_engine *e)
{
    struct rv__desk *desk = e->around.writer;
    return desk->pays(desk, e->deciding_count, rv__places_taken(e));
}

/* The batch came back from the desk. Under load the next one leaves first, so that the disk does not wait for the
 * effects of this one. But a due timer of one of these runs must be in the next batch. */
static void landed(rv_engine *e, struct rv__job *job)
{
    struct rv__batch *b = (struct rv__batch *)job;
    if (is_lost(e, b))
        return;
    struct rv__run *runs = take_landed(e, b);
    if (e->commit.away == 0 && !is_timer_waiting(e) && pays(e))
        rv__engine_decide(e);
    act_all(e, b, runs);
}

static void drop_batch(struct rv__job *job)
{
    (void)job; /* owned by the engine, and freed with it */
}

int rv__commits_init(rv_engine *e, rv_error *err)
{
    struct rv__commits *c = &e->commit;
    (void)err;
    for (size_t i = 0; i < RV__BATCHES; i++) {
        c->batches[i].job = (struct rv__job){ .run = write_batch,
                                              .landed = landed,
                                              .drop = drop_batch };
        c->batches[i].engine = e;
        rv__arena_init(&c->batches[i].arena, SIZE_MAX); /* bounded by the turn */
    }
    c->piece = PIECE_BYTES;
    c->snapshot_from = SNAPSHOT_FROM;
    pthread_mutex_init(&c->lock, NULL); /* on Linux it cannot fail */
    return RV_OK;
}

/* Answer the calls of a batch that is dropped: what is known to be on disk was done; of the rest it is not known. */
void rv__commits_answer_lost(rv_engine *e)
{
    for (size_t i = 0; i < RV__BATCHES; i++) {
        struct rv__batch *b = &e->commit.batches[i];
        for (size_t k = 0; b->lost && k < b->written + b->doubtful; k++)
            if (k >= b->written)
                rv__run_calls_doubtful(b->of[k]);
            else if (b->writes[k].outcome == STORE_WRITTEN)
                rv__run_answer_calls(b->of[k]);
    }
}

void rv__commits_forget(rv_engine *e)
{
    for (size_t i = 0; i < RV__BATCHES; i++) {
        struct rv__batch *b = &e->commit.batches[i];
        b->doubtful = 0;
        b->runs = NULL;
        b->used = b->lost = false;
        rv__arena_reset(&b->arena);
    }
    e->commit.away = 0;
    e->commit.lost = e->commit.gone = false;
}

void rv__commits_done(rv_engine *e)
{
    for (size_t i = 0; i < RV__BATCHES; i++)
        rv__arena_done(&e->commit.batches[i].arena);
    pthread_mutex_destroy(&e->commit.lock);
}

bool rv__commit_failing(const rv_engine *e)
{
    return e->commit.away > 0 && atomic_load(&e->commit.failing);
}

static struct rv__run *take_deciding(rv_engine *e)
{
    struct rv__run *runs = e->deciding;
    e->deciding = NULL;
    e->last_deciding = &e->deciding;
    e->deciding_count = 0;
    return runs;
}

/* May the decisions leave as a batch now? If the writer is free: at once. While it writes, the next batch may wait at
 * the desk, so that the writer need not wait for the loop. But nothing can be added to a waiting batch. So it goes
 * there when it is as large as the one before it, or when no work is in flight that could add to it; and not while a
 * due timer waits for a batch to land, since that timer belongs to the next one. */
static bool may_leave(rv_engine *e)
{
    struct rv__commits *c = &e->commit;
    if (e->deciding == NULL || c->away == 0)
        return e->deciding != NULL;
    bool full = e->deciding_count >= c->away_count || e->in_flight == NULL;
    return c->away < RV__BATCHES && full && !is_timer_waiting(e) && !rv__commit_failing(e) &&
           pays(e);
}

static struct rv__batch *free_batch(struct rv__commits *c)
{
    for (size_t i = 0; i < RV__BATCHES; i++)
        if (!c->batches[i].used)
            return &c->batches[i];
    return NULL;
}

void rv__commit(rv_engine *e)
{
    struct rv__commits *c = &e->commit;
    struct rv__batch *b = may_leave(e) ? free_batch(c) : NULL;
    size_t runs = e->deciding_count;
    if (b == NULL)
        return;
    if (gather(e, b) < 0) {
        rv__arena_reset(&b->arena);
        e->starved = true; /* memory may be freed meanwhile */
        return;
    }
    b->written = 0;
    b->used = true;
    b->lost = false;
    b->runs = take_deciding(e);
    for (struct rv__run *run = b->runs; run != NULL; run = run->next_in) {
        rv__run_move(run, RV__COMMITTING);
        rv__run_unqueue(run);
        if (RV__BUG(61) && c->away > 0)
            rv__release_effects(run);
    }
    c->away++;
    c->away_count = runs;
    struct rv__desk *desk = e->around.writer;
    bool beside = b->count > 0 && (e->writing > 0 || desk->pays(desk, runs, rv__places_taken(e)));
    c->beside += beside;
    if (b->count > 0 && (beside || desk->now(desk, &b->job) > 0))
        rv__write_job(e, &b->job);
    else if (!is_lost(e, b))
        act_all(e, b, take_landed(e, b));
}

int rv_engine_health(rv_engine *e, rv_health *ret, rv_error *err)
{
    if (e == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_engine_health: %s",
                        e == NULL ? "no engine given" : "nowhere to put it");
    pthread_mutex_lock(&e->commit.lock);
    *ret = e->commit.health;
    pthread_mutex_unlock(&e->commit.lock);
    if (!ret->gone && !e->read_only && rv__store_there(e->store, &ret->why) == RV_EGONE) {
        if (!ret->stuck)
            ret->since = rv__wall_ms(e->clock);
        ret->stuck = ret->gone = true; /* nothing is lost yet: the next commit reports it */
    }
    return RV_OK;
}
