/* member.c: see member.h. Leases, joining anew, and what members ask of each other.
 *
 * The lease is renewed by every commit, and by a job at the writing desk where there is none: who cannot write does
 * not hold on to its runs. Runs are claimed by the scans of load.c; here it is said when. Feeds follow what others
 * write by looking, ten times a second while somebody waits.
 *
 * Requests of others are answered by one thread, one after the other: each is a commit's time. */
#include "engine/member.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/control.h"
#include "read/read.h"

enum {
    LOOK_MS = 1000,  /* for runs that may be claimed, and members that are no more */
    FEED_MS = 100,   /* for what others wrote, while somebody follows */
    RETRY_MS = 100,  /* after the store did not answer */
    OFFICE_MS = 500, /* looks without being called */
    ANSWER_LOOK_MS = 20,
};

/* ------------------------------------------------------------------------------ the lease --- */

struct duty {
    struct rv__job job; /* first */
    rv_engine *engine;
    int rc;
};

static void drop_duty(struct rv__job *job)
{
    rv__free(job);
}

static int64_t run_renew(struct rv__job *job)
{
    struct duty *d = (struct duty *)job;
    struct rv__store *store = d->engine->store;
    d->rc = store->ops->renew(store, NULL);
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
    d->rc = store->ops->rejoin(store, NULL);
    return d->rc == RV_ESTORE || d->rc == RV_ENOMEM ? RETRY_MS : 0;
}

static void rejoin_landed(rv_engine *e, struct rv__job *job)
{
    struct duty *d = (struct duty *)job;
    e->member.rejoining = false;
    if (d->rc == RV_OK)
        e->member.rejoined = true;
    else
        rv__engine_gone(e);
    rv__free(d);
}

static bool give_duty(rv_engine *e, int64_t (*run)(struct rv__job *job),
                      void (*landed)(rv_engine *engine, struct rv__job *job))
{
    struct duty *d = rv__zalloc(1, sizeof *d);
    if (d == NULL)
        return false; /* at the next tick */
    d->job = (struct rv__job){ .run = run, .landed = landed, .drop = drop_duty };
    d->engine = e;
    rv__write_job(e, &d->job);
    return true;
}

void rv__member_fenced(rv_engine *e)
{
    e->member.fenced = true;
}

/* Nothing of the member that we were is under way any more. */
static bool is_quiet(const rv_engine *e)
{
    return e->writing == 0 && e->load.under_way == 0 && !e->load.scanning;
}

/* As after a death, but that callers are still there, and work is told to stop. */
static void begin_anew(rv_engine *e)
{
    struct rv__membership *m = &e->member;
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next)
            rv__owed_clear_all(run, true);
    e->life++;
    rv__engine_forget_runs(e);
    atomic_store(&m->id, e->store->ops->member(e->store));
    m->fenced = m->rejoined = m->seeks_own = false;
    m->renew_ms = rv__mono_ms(e->clock) + m->lease_ms / 3;
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
            m->rejoining = give_duty(e, run_rejoin, rejoin_landed);
        if (m->rejoined && is_quiet(e))
            begin_anew(e);
        return;
    }
    if (now_ms >= m->renew_ms && !m->renewing) {
        m->renewing = give_duty(e, run_renew, renew_landed);
        m->renew_ms = now_ms + m->lease_ms / 3;
    }
    if (now_ms >= m->look_ms || m->generation != e->registry->generation) {
        e->load.more_active = true;
        if (e->load.due_place.number == 0)
            e->load.wake_ms = 1; /* others may have put runs to sleep */
        m->generation = e->registry->generation;
        m->look_ms = now_ms + LOOK_MS;
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
    if (m->fenced) /* what is under way ends with a letter */
        at_ms = rv__mono_ms(e->clock) + RETRY_MS;
    return at_ms * 1000000 < until_ns ? at_ms * 1000000 : until_ns;
}

/* ---------------------------------------------------------------------------------- asking --- */

bool rv__member_answers(const rv_engine *e)
{
    return atomic_load(&e->member.office_self) == (unsigned long)pthread_self();
}

static int take_reply(void *arg, uint64_t id, struct rv__str text)
{
    struct rv__reply *reply = arg;
    (void)id;
    return rv__frames_feed(&reply->frames, text);
}

int rv__member_ask(rv_engine *e, int64_t to, const struct rv__buf *request, int64_t timeout_ms,
                   rv_cancel *closing, struct rv__reply *reply, rv_error *err)
{
    struct rv__membership *m = &e->member;
    int64_t deadline_ns = rv__deadline_ns(timeout_ms);
    uint64_t id = 0;
    *reply = (struct rv__reply){ .frame = { .json = { NULL, 0 } } };
    rv__frames_init(&reply->frames);
    pthread_mutex_lock(&m->lock);
    int rc = m->asker->ops->ask(m->asker, to, rv__buf_view(request), &id, err);
    pthread_mutex_unlock(&m->lock);
    if (rc < 0)
        return rc;
    bool gives_up = false;
    for (rc = RV_EBUSY; rc == RV_EBUSY || (rc == RV_ESTORE && !gives_up);) {
        rc = rv__ask_pause(ANSWER_LOOK_MS, NULL, closing, err);
        gives_up = rc < 0 || rv__mono_ns(rv__clock_real()) >= deadline_ns;
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
    rv_engine *engine;
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
    struct rv__store *store = e->member.office_store;
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
        rc = store->ops->answer(store, one->id, rv__buf_view(&out), NULL);
        if (rc == RV_ESTORE)
            rv__clock_sleep_ms(RETRY_MS);
    }
    rv__arena_done(&arena);
    rv__buf_done(&out);
}

static void *office_main(void *arg)
{
    rv_engine *e = arg;
    struct rv__membership *m = &e->member;
    struct rv__store *store = m->office_store;
    struct asked *asked = rv__zalloc(1, sizeof *asked);
    atomic_store(&m->office_self, (unsigned long)pthread_self());
    while (asked != NULL && !atomic_load(&m->stops)) {
        asked->count = 0;
        int rc = store->ops->asked(store, rv__member_id(e), take_asked, asked, NULL);
        for (size_t i = 0; i < asked->count; i++) {
            answer_one(e, &asked->items[i]);
            rv__frames_done(&asked->items[i].frames);
        }
        if (rc == RV_OK && asked->count == 0)
            rc = store->ops->await(store, OFFICE_MS, NULL);
        if (rc < 0)
            rv__clock_sleep_ms(RETRY_MS);
    }
    rv__free(asked);
    return NULL;
}

/* --------------------------------------------------------------------------------- life time --- */

int rv__member_open(rv_engine *e, rv_error *err)
{
    struct rv__membership *m = &e->member;
    struct rv__store *store = e->store;
    pthread_mutex_init(&m->lock, NULL); /* on Linux it cannot fail */
    m->on = true;
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
    if (!m->on)
        return RV_OK;
    if (pthread_create(&m->office, NULL, office_main, e) != 0)
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
    if (!m->fenced && !e->commit.gone)
        (void)e->store->ops->part(e->store, NULL); /* else its lease ends by itself */
}

void rv__member_close(rv_engine *e)
{
    struct rv__membership *m = &e->member;
    if (!m->on)
        return;
    rv__store_close(m->office_store);
    rv__store_close(m->asker);
    pthread_mutex_destroy(&m->lock);
}
