/* member.c: see member.h. Leases, joining again, and requests between members.
 *
 * Every commit renews the lease; without commits, a job at the writing desk does. So a member that cannot write loses
 * its runs. Runs are claimed by the scans of load.c; this file decides when. Feeds poll for what other members write,
 * ten times a second while somebody follows.
 *
 * Requests of other members are answered by one thread, one after the other; each takes about as long as a commit. */
#include "engine/member.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/call.h"
#include "engine/control.h"
#include "read/read.h"

enum {
    LOOK_MS = 1000,  /* between looks for runs to claim, and for members that have ended */
    FEED_MS = 100,   /* between looks for what others wrote, while somebody follows */
    RETRY_MS = 100,  /* after the store did not answer */
    OFFICE_MS = 500, /* between looks for requests, if no notification comes */
    ANSWER_LOOK_MS = 20,
    KEPT_MS = 500,    /* a run with a nearer timer is not given up */
    FAIR_MS = 5000,   /* between checks of its share of the runs, and of runs given late */
    GIFTS_MS = 3000,  /* for so long after it asked, each look also finds runs that were given */
    SHARE_MOST = 256, /* runs asked for at once */
};

/* ------------------------------------------------------------------------------ the lease --- */

struct duty {
    struct rv__job job; /* first */
    rv_engine *engine;
    char workers[RV__STORE_ADDRESS_SIZE];
    int rc;
    rv_error err;
};

static void drop_member_job(struct rv__job *job)
{
    rv__free(job);
}

static int64_t run_renew(struct rv__job *job)
{
    struct duty *d = (struct duty *)job;
    struct rv__store *store = d->engine->store;
    d->rc = store->ops->renew(store, d->workers, NULL);
    return 0;
}

static void renew_landed(rv_engine *e, struct rv__job *job)
{
    struct duty *d = (struct duty *)job;
    e->member.renewing = false;
    if (d->rc == RV_EGONE)
        rv__member_fenced(e);
    rv__free(d);
}

static int64_t run_rejoin(struct rv__job *job)
{
    struct duty *d = (struct duty *)job;
    struct rv__store *store = d->engine->store;
    d->rc = store->ops->rejoin(store, &d->err);
    return d->rc == RV_ESTORE || d->rc == RV_ENOMEM ? RETRY_MS : 0;
}

static void rejoin_landed(rv_engine *e, struct rv__job *job)
{
    struct duty *d = (struct duty *)job;
    e->member.rejoining = false;
    if (d->rc == RV_OK) {
        e->member.rejoined = true;
    } else {
        pthread_mutex_lock(&e->commit.lock);
        e->commit.health.why = d->err;
        e->commit.health.stuck = e->commit.health.gone = true;
        pthread_mutex_unlock(&e->commit.lock);
        rv__engine_gone(e);
    }
    rv__free(d);
}

static bool give_member_job(rv_engine *e, int64_t (*run)(struct rv__job *job),
                            void (*landed)(rv_engine *engine, struct rv__job *job))
{
    struct duty *d = rv__zalloc(1, sizeof *d);
    if (d == NULL)
        return false; /* at the next tick */
    d->job = (struct rv__job){ .run = run, .landed = landed, .drop = drop_member_job };
    d->engine = e;
    snprintf(d->workers, sizeof d->workers, "%s", e->member.workers);
    rv__write_job(e, &d->job);
    return true;
}

void rv__member_fenced(rv_engine *e)
{
    e->member.counted.fenced += !e->member.fenced;
    e->member.fenced = true;
}

/* Is nothing of our former membership still in progress? */
static bool is_quiet(const rv_engine *e)
{
    return e->writing == 0 && e->load.under_way == 0 && !e->load.scanning;
}

/* As after a crash, except that callers still wait, and work is cancelled. */
static void begin_anew(rv_engine *e)
{
    struct rv__membership *m = &e->member;
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next)
            rv__owed_clear_all(run, true);
    if (!RV__BUG(405))
        rv__commits_answer_lost(e);
    e->life++;
    rv__engine_forget_runs(e);
    atomic_store(&m->id, e->store->ops->member(e->store));
    m->fenced = m->rejoined = m->seeks_own = m->seeks_gifts = false;
    m->gifts_ms = 0; /* the new membership has asked for nothing */
    m->renew_ms = m->workers[0] != '\0' ? 0 : rv__mono_ms(e->clock) + m->lease_ms / 3;
    rv__recover(e);
}

void rv__member_tick(rv_engine *e)
{
    struct rv__membership *m = &e->member;
    int64_t now_ms = rv__mono_ms(e->clock);
    if (!m->on || e->commit.gone)
        return;
    if (m->fenced) {
        if (!m->rejoining && !m->rejoined && !e->closed)
            m->rejoining = give_member_job(e, run_rejoin, rejoin_landed);
        if (m->rejoined && is_quiet(e))
            begin_anew(e);
        return;
    }
    if (now_ms >= m->renew_ms && !m->renewing) {
        m->renewing = !RV__BUG(400) && give_member_job(e, run_renew, renew_landed);
        m->renew_ms = now_ms + m->lease_ms / 3;
    }
    if (now_ms >= m->look_ms || m->generation != e->registry->generation) {
        e->load.more_active = true;
        if (e->load.due_place.number == 0 && !RV__BUG(411))
            e->load.wake_ms = 1; /* others may have put runs to sleep */
        m->anew |= m->generation != e->registry->generation;
        m->generation = e->registry->generation;
        m->look_ms = now_ms + LOOK_MS;
        if (m->gifts_ms != 0 && now_ms >= m->gifts_ms) {
            m->seeks_gifts = true;
            m->gifts_ms = now_ms + (now_ms < m->soon_ms ? LOOK_MS : FAIR_MS);
        }
    }
    if (now_ms >= m->feed_ms) {
        rv__feed_look(e->reading);
        m->feed_ms = now_ms + FEED_MS;
    }
}

int64_t rv__member_until_ns(const rv_engine *e, int64_t until_ns)
{
    const struct rv__membership *m = &e->member;
    if (!m->on || e->commit.gone)
        return until_ns;
    int64_t at_ms = m->renew_ms < m->look_ms ? m->renew_ms : m->look_ms;
    if (rv__feed_followed(e->reading) && m->feed_ms < at_ms)
        at_ms = m->feed_ms;
    if (m->fenced) /* what is in progress ends with a letter */
        at_ms = rv__mono_ms(e->clock) + RETRY_MS;
    return at_ms * 1000000 < until_ns ? at_ms * 1000000 : until_ns;
}

/* -------------------------------------------------------------------------------- workers --- */

static int put_peer(void *arg, const struct rv__store_member *member)
{
    struct rv__buf *out = arg;
    rv__buf_fmt(out, "%s{\"id\":%lld,\"workers\":", out->len > 1 ? "," : "", (long long)member->id);
    rv__buf_json_str(out, member->workers);
    rv__buf_char(out, '}');
    return rv__buf_err(out, NULL);
}

int rv__member_read_peers(struct rv__store *aide, struct rv__buf *out, rv_error *err)
{
    rv__buf_char(out, '[');
    int rc = aide->ops->members(aide, true, put_peer, out, err);
    rv__buf_char(out, ']');
    return rc < 0 ? rc : rv__buf_err(out, err);
}

void rv__member_tell_peers(rv_engine *e, struct rv__buf *peers)
{
    struct rv__membership *m = &e->member;
    struct rv__str now = rv__buf_view(peers);
    if (peers->len == 0 || e->services.workers == NULL ||
        (m->peers_of == rv__member_id(e) && rv__str_eq(now, rv__buf_view(&m->peers))) ||
        !rv__workers_members(e->services.workers, rv__member_id(e), now))
        return; /* else with the next scan */
    rv__buf_done(&m->peers);
    m->peers = *peers;
    m->peers_of = rv__member_id(e);
    rv__buf_init(peers, RV__FRAME_MAX);
}

static int set_workers(struct rv__call *call)
{
    struct rv__membership *m = &call->engine->member;
    snprintf(m->workers, sizeof m->workers, "%s", (const char *)call->arg);
    m->renew_ms = 0; /* the others learn it now */
    return RV_OK;
}

int rv__member_reached_at(rv_engine *e, const char *address, rv_error *err)
{
    char copy[RV__STORE_ADDRESS_SIZE];
    if (!rv__member_is(e))
        return RV_OK;
    snprintf(copy, sizeof copy, "%s", address);
    return rv__call_ask(e, set_workers, copy, err);
}

/* ------------------------------------------------------------------------------ giving up --- */

/* The run has nothing in progress, and no timer that is due soon. */
static bool is_free(struct rv__run *run)
{
    const rv_engine *e = run->engine;
    if (run->work != NULL || run->guest || run->refused || run->suspending || e->closed ||
        rv__cell_working(run->cell) > 0 || rv__cell_more(run->cell))
        return false;
    int64_t wake_ms = rv__run_wake_ms(run);
    return wake_ms == 0 || wake_ms >= e->now_ms + KEPT_MS;
}

/* Everything that the run waits for is offered by nobody here. */
static bool is_stuck(const struct rv__run *run)
{
    if (!rv__cell_wants(run->cell, LANE_NOBODY))
        return false;
    for (int lane = LANE_NONE + 1; lane < LANES; lane++)
        if (lane != LANE_NOBODY && rv__cell_wants(run->cell, (enum rv__lane)lane))
            return false;
    return true;
}

void rv__member_consider(struct rv__run *run)
{
    if (run->gives != 0 || !is_stuck(run) || !is_free(run))
        return;
    run->gives = RV__STORE_NOBODY;
    rv__run_touch(run);
}

struct wanted {
    struct rv__str name;
    bool several;
};

static void take_wanted(void *arg, const struct rv__wait *wait)
{
    struct wanted *wanted = arg;
    if (wait->kind != WAIT_PLACE || wait->lane != LANE_NOBODY)
        return;
    struct rv__str name = wait->needs_file ? rv__str("")
                          : RV__BUG(418)   ? rv__plan_ref_fn_name(wait->node, wait->eval, NULL)
                                           : wait->name;
    if (rv__str_none(wanted->name))
        wanted->name = name;
    else
        wanted->several |= !rv__str_eq(wanted->name, name);
}

bool rv__member_gives(struct rv__run *run, struct rv__str *lacks)
{
    struct wanted wanted = { .several = false };
    bool gives = run->gives != 0 && run->facts.count == 0 && is_free(run) &&
                 (run->gives != RV__STORE_NOBODY || is_stuck(run));
    if (!gives) {
        run->gives = 0;
        return false;
    }
    if (run->gives == RV__STORE_NOBODY)
        rv__cell_waits(run->cell, take_wanted, &wanted);
    if (!wanted.several && wanted.name.len > 0)
        *lacks = wanted.name;
    return true;
}

void rv__member_gave(struct rv__run *run)
{
    struct rv__membership *m = &run->engine->member;
    m->counted.handed_over++;
    if (run->gives == RV__STORE_NOBODY && run->lanes_of != run->plan->registry->generation)
        m->anew = run->engine->load.more_active = true; /* something was registered meanwhile */
    run->gives = 0;
    run->given = false;
}

/* ---------------------------------------------------------------------------------- sharing --- */

struct shares {
    int64_t self, members, total, mine;
    int64_t most, richest; /* the largest number of runs; the member that has them */
};

static int take_share(void *arg, const struct rv__store_member *member)
{
    struct shares *s = arg;
    int64_t runs = (int64_t)member->runs;
    s->members++;
    s->total += runs;
    if (member->id == s->self)
        s->mine = runs;
    else if (runs > s->most) {
        s->most = runs;
        s->richest = member->id;
    }
    return RV_OK;
}

/* Ask only if we have a quarter less than the others, and at least two runs less: moving runs has a cost. */
static int64_t missing(const struct shares *s)
{
    int64_t fair = s->members > 0 ? s->total / s->members : 0, n = fair - s->mine;
    if (n > s->most - fair)
        n = s->most - fair;
    return n < 2 || n * 4 < fair ? 0 : n < SHARE_MOST ? n : SHARE_MOST;
}

int rv__member_seek_share(struct rv__store *aide, const struct rv__store_claim *claim,
                          bool *ret_asked, rv_error *err)
{
    struct shares shares = { .self = claim->member };
    struct rv__buf request;
    uint64_t id;
    int rc = aide->ops->members(aide, false, take_share, &shares, err);
    int64_t count = rc == RV_OK ? missing(&shares) : 0;
    if (count == 0)
        return rc;
    rv__buf_init(&request, RV__FRAME_MAX);
    size_t start = rv__wire_begin(&request, FRAME_CALL);
    rv__wire_text(&request, "method", rv__str("share"));
    rv__wire_int(&request, "member", claim->member);
    rv__wire_int(&request, "count", count);
    rv__buf_text(&request, ",\"workflows\":[");
    for (size_t i = 0; i < claim->workflow_count; i++) {
        rv__buf_text(&request, i > 0 ? "," : "");
        rv__buf_json_str(&request, claim->workflows[i]);
    }
    rv__buf_char(&request, ']');
    rv__wire_end(&request, start);
    rc = rv__buf_err(&request, err);
    if (rc == RV_OK) { /* nobody waits for the answer: the runs come, or not */
        rc = aide->ops->ask(aide, shares.richest, rv__buf_view(&request), &id, err);
        *ret_asked = rc == RV_OK || rc == RV_ESTORE; /* it may have come there all the same */
    }
    rv__buf_done(&request);
    return rc == RV_ECLOSED ? RV_OK : rc;
}

bool rv__member_wants_share(rv_engine *e)
{
    struct rv__membership *m = &e->member;
    int64_t now_ms = rv__mono_ms(e->clock);
    bool idle = true; /* with waiting work of our own we need no more runs */
    for (int lane = LANE_NONE + 1; lane < LANE_WORKER && idle; lane++)
        idle = e->lanes[lane].first == NULL;
    for (size_t i = 0; i < e->workers.class_count && idle; i++)
        idle = e->workers.classes[i].first == NULL;
    if (!idle || now_ms < m->fair_ms)
        return false;
    m->fair_ms = now_ms + FAIR_MS;
    return true;
}

/* Runs may be given at any later time: once it has asked, it looks for them as long as it is a member. */
void rv__member_shared(rv_engine *e, bool asked)
{
    if (!asked)
        return;
    e->member.gifts_ms = rv__mono_ms(e->clock);
    e->member.soon_ms = e->member.gifts_ms + GIFTS_MS;
}

struct sharing {
    int64_t to, most, given;
    struct rv__str workflows; /* a JSON array */
};

static bool has_workflow(struct rv__str workflows, struct rv__str name)
{
    struct rv__json_iter iter;
    struct rv__str value;
    struct rv__str key;
    rv__json_iter_init(&iter, workflows);
    while (rv__json_next(&iter, &key, &value))
        if (rv__json_string_is(value, name))
            return true;
    return false;
}

/* The run only waits for a place: another member can take it. */
static bool is_waiting(struct rv__run *run)
{
    bool queued = false;
    for (int lane = LANE_NONE + 1; lane < LANES && !queued; lane++)
        queued = run->lane[lane].queued;
    return queued && run->phase == RV__IDLE && run->gives == 0 && is_free(run);
}

static int share_runs(struct rv__call *call)
{
    struct sharing *s = call->arg;
    rv_engine *e = call->engine;
    if (!rv__member_is(e) || e->member.fenced || e->closed)
        return RV_OK;
    for (size_t b = 0; b < RUN_BUCKETS && s->given < s->most; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL && s->given < s->most; run = run->next) {
            if (!is_waiting(run) || !has_workflow(s->workflows, run->plan->plan->body.wrap->name))
                continue;
            run->gives = s->to;
            rv__run_touch(run);
            s->given++;
        }
    return RV_OK;
}

int rv__member_share(rv_engine *e, int64_t to, struct rv__str workflows, int64_t most,
                     int64_t *ret_given, rv_error *err)
{
    struct sharing sharing = { .to = to, .most = most, .workflows = workflows };
    int rc = rv__call_ask(e, share_runs, &sharing, err);
    *ret_given = sharing.given;
    return rc;
}

/* ---------------------------------------------------------------------------------- asking --- */

int rv__member_owner(rv_engine *e, const char *run_id, int64_t *ret_owner, bool *ret_lacks,
                     rv_error *err)
{
    struct rv__membership *m = &e->member;
    pthread_mutex_lock(&m->lock);
    int rc = m->asker->ops->owner(m->asker, rv__str(run_id), ret_owner, ret_lacks, err);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

bool rv__member_answers(const rv_engine *e)
{
    return atomic_load(&e->member.office_self) == (unsigned long)pthread_self();
}

int rv__member_pause(rv_engine *e, int64_t ms, rv_cancel *by, rv_error *err)
{
    if (e->around.await == NULL)
        return rv__ask_pause(ms, by, e->closing, err);
    e->around.await(e, NULL, by, rv__mono_ms(e->clock) + ms);
    if (by != NULL && rv_cancel_fired(by))
        return rv__fail(err, RV_ECANCELED, "waiting was cancelled");
    return rv_cancel_fired(e->closing) ? rv__fail(err, RV_ECLOSED, "the engine has closed") : RV_OK;
}

static int take_reply(void *arg, uint64_t id, struct rv__str text)
{
    struct rv__reply *reply = arg;
    (void)id;
    return rv__frames_feed(&reply->frames, text);
}

int rv__member_ask(rv_engine *e, int64_t to, const struct rv__buf *request, int64_t timeout_ms,
                   struct rv__reply *reply, rv_error *err)
{
    struct rv__membership *m = &e->member;
    int64_t deadline_ns = rv__mono_ns(e->clock) + timeout_ms * 1000000;
    uint64_t id = 0;
    *reply = (struct rv__reply){ .frame = { .json = { NULL, 0 } } };
    rv__frames_init(&reply->frames);
    pthread_mutex_lock(&m->lock);
    int rc = m->asker->ops->ask(m->asker, to, rv__buf_view(request), &id, err);
    pthread_mutex_unlock(&m->lock);
    if (rc == RV_ESTORE && !RV__BUG(406)) /* it may have come there all the same */
        return rv__fail(err, RV_EFAILED,
                        "the store did not answer: it is not known whether it was done");
    if (rc < 0)
        return rc;
    bool gives_up = false;
    for (rc = RV_EBUSY; rc == RV_EBUSY || (rc == RV_ESTORE && !gives_up);) {
        rc = rv__member_pause(e, ANSWER_LOOK_MS, NULL, err);
        gives_up = rc < 0 || rv__mono_ns(e->clock) >= deadline_ns;
        pthread_mutex_lock(&m->lock);
        rc = m->asker->ops->answered(m->asker, id, gives_up, take_reply, reply, err);
        pthread_mutex_unlock(&m->lock);
    }
    if (rc < 0)
        return rc == RV_ESTORE ? rv__fail(err, RV_EFAILED, "nobody knows whether it was done") : rc;
    rc = rv__frames_next(&reply->frames, &reply->frame, err);
    if (rc != 1)
        return rv__fail(err, RV_EPARSE, "the answer of member %lld is none", (long long)to);
    return reply->frame.type == FRAME_RESULT ? RV_OK : rv__reply_error(reply, err);
}

/* --------------------------------------------------------------------------------- answering --- */

struct asked {
    struct asked_one {
        uint64_t id;
        struct rv__frames frames;
    } items[RV__STORE_ASKED_MOST];
    size_t count;
};

static int take_asked(void *arg, uint64_t id, struct rv__str text)
{
    struct asked *asked = arg;
    assert(asked->count < RV__STORE_ASKED_MOST);
    struct asked_one *one = &asked->items[asked->count++];
    one->id = id;
    rv__frames_init(&one->frames);
    return rv__frames_feed(&one->frames, text);
}

static void answer_one(rv_engine *e, struct asked_one *one)
{
    struct rv__frame frame;
    struct rv__arena arena;
    struct rv__str value, text = { NULL, 0 };
    struct rv__buf out;
    atomic_int waiters = 0;
    rv_error err = { 0, "" };
    rv__buf_init(&out, RV__FRAME_MAX);
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    int rc = rv__frames_next(&one->frames, &frame, &err);
    if (rc == 1) {
        if (rv__json_get(frame.json, "by", &value))
            (void)rv__json_string(value, &arena, &text); /* none: nobody is named */
        const char *by = rv__str_none(text) ? NULL : rv__arena_dup(&arena, text.at, text.len);
        const struct rv__asker asker = { .gone = e->closing, .waiters = &waiters, .by = by };
        rv__control_answer(e, &frame, &asker, &out);
    } else {
        (void)rv__fail(&err, RV_EPARSE, "this is no request");
        rv__wire_error(&out, &err);
    }
    for (rc = RV_ESTORE; rc == RV_ESTORE && !atomic_load(&e->member.stops);) {
        struct rv__store *store = e->member.office_store;
        rc = store->ops->answer(store, one->id, rv__buf_view(&out), NULL);
        if (rc == RV_ESTORE && e->around.threads)
            rv__clock_sleep_ms(RETRY_MS);
    }
    rv__arena_done(&arena);
    rv__buf_done(&out);
}

int rv__member_serve(rv_engine *e)
{
    struct rv__membership *m = &e->member;
    struct asked *asked = rv__zalloc(1, sizeof *asked);
    if (asked == NULL)
        return RV_ENOMEM;
    atomic_store(&m->office_self, (unsigned long)pthread_self());
    int rc = m->office_store->ops->asked(m->office_store, rv__member_id(e), take_asked, asked,
                                         NULL);
    for (size_t i = 0; i < asked->count; i++) {
        answer_one(e, &asked->items[i]);
        rv__frames_done(&asked->items[i].frames);
    }
    if (!e->around.threads) /* with a kit, this thread is the caller's */
        atomic_store(&m->office_self, 0);
    rc = rc < 0 ? rc : (int)asked->count;
    rv__free(asked);
    return rc;
}

static void *member_main(void *arg)
{
    rv_engine *e = arg;
    struct rv__membership *m = &e->member;
    while (!atomic_load(&m->stops)) {
        int rc = rv__member_serve(e);
        if (rc == 0)
            rc = m->office_store->ops->await(m->office_store, OFFICE_MS, NULL);
        if (rc < 0)
            rv__clock_sleep_ms(RETRY_MS);
    }
    return NULL;
}

/* --------------------------------------------------------------------------------- life time --- */

int rv__member_open(rv_engine *e, rv_error *err)
{
    struct rv__membership *m = &e->member;
    struct rv__store *store = e->store;
    pthread_mutex_init(&m->lock, NULL); /* on Linux it cannot fail */
    m->on = true;
    m->fenced = m->renewing = m->rejoining = m->rejoined = m->seeks_own = m->seeks_gifts = false;
    m->gifts_ms = 0;
    rv__buf_init(&m->peers, RV__FRAME_MAX);
    atomic_store(&m->id, store->ops->member(store));
    int rc = store->ops->aide(store, &e->loader, err);
    if (rc == RV_OK)
        rc = store->ops->aide(store, &m->asker, err);
    if (rc == RV_OK)
        rc = store->ops->aide(store, &m->office_store, err);
    return rc;
}

int rv__member_start(rv_engine *e, rv_error *err)
{
    struct rv__membership *m = &e->member;
    if (!m->on || !e->around.threads)
        return RV_OK;
    if (pthread_create(&m->office, NULL, member_main, e) != 0)
        return rv__fail(err, RV_ESYS, "no thread could be made to answer other members");
    m->has_office = true;
    return RV_OK;
}

void rv__member_stop(rv_engine *e)
{
    struct rv__membership *m = &e->member;
    if (!m->on || atomic_exchange(&m->stops, true))
        return;
    if (m->has_office)
        pthread_join(m->office, NULL);
    rv__member_part(e);
}

void rv__member_part(rv_engine *e)
{
    bool desk_works = e->writing > 0; /* it uses the store: after a close with a store that fails */
    if (e->member.on && !e->member.fenced && !e->commit.gone && !desk_works && !RV__BUG(409))
        (void)e->store->ops->part(e->store, NULL); /* on failure its lease expires */
}

void rv__member_close(rv_engine *e)
{
    struct rv__membership *m = &e->member;
    if (!m->on)
        return;
    rv__store_close(m->office_store);
    rv__store_close(m->asker);
    m->office_store = m->asker = NULL;
    rv__buf_done(&m->peers);
    pthread_mutex_destroy(&m->lock);
}
