/* workers.c: workers, on the engine's loop: which are connected, what each offers, how many credits each has.
 *
 * Functions that are offered by the same workers form a *class*. Work that waits for one of them is in one lane of its
 * run, and the run is in the ring of the class. A place is a credit of one worker, named by its ticket, and taken when
 * the place is granted: so nothing is recorded as started before a worker is there to do it.
 *
 * There are few classes, since workers of one program offer the same. Beyond RV__WORKER_LANES several share a lane:
 * then the class of the first work in it counts, and later work of the same run waits for that, too.
 *
 * Classes are computed again when a worker comes or goes (rv__workers_tick). Thread: the loop's. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/attempt.h"
#include "engine/engine.h"

struct rv__worker {
    struct rv__session *session; /* referenced; NULL in a kit */
    int64_t credits, taken;
    bool away, gone;
    uint64_t module;
    struct rv__offer *offers;
    struct rv__judges {
        struct rv__judges *next;
        char version[65];
    } * judges; /* workflows whose inputs it validates */
};

/* A function that a worker offers, for one version of its workflow. */
struct rv__offer {
    struct rv__offer *next;   /* the next of its worker */
    struct rv__offer *f_next; /* the next of its function */
    struct rv__function *function;
    struct rv__registry *registry; /* the registry of the function; referenced */
    uint32_t ticket;
    char version[65]; /* "": of a function that belongs to no workflow */
};

/* The class of a function for runs of one version. */
struct rv__served {
    char version[65];
    uint64_t set[RV__WORKERS_MOST / 64];
    int class_number;
};

static struct rv__worker *worker_of(const rv_engine *e, uint32_t ticket)
{
    assert(ticket > 0 && ticket <= RV__WORKERS_MOST && e->workers.at[ticket - 1] != NULL);
    return e->workers.at[ticket - 1];
}

/* -------------------------------------------------------------------------------- classes --- */

static void set_add(uint64_t *set, uint32_t ticket)
{
    set[(ticket - 1) / 64] |= UINT64_C(1) << (ticket - 1) % 64;
}

/* Find or make the class of that set of workers. -1: no memory. */
static int class_of(struct rv__pool *pool, const uint64_t *set)
{
    for (size_t i = 0; i < pool->class_count; i++)
        if (memcmp(pool->classes[i].set, set, sizeof pool->classes[i].set) == 0)
            return (int)i;
    if (pool->class_count == pool->class_cap) {
        size_t cap = pool->class_cap ? pool->class_cap * 2 : 8;
        struct rv__class *classes = rv__realloc(pool->classes, cap * sizeof *classes);
        if (classes == NULL)
            return -1;
        pool->classes = classes;
        pool->class_cap = cap;
    }
    struct rv__class *made = &pool->classes[pool->class_count];
    *made = (struct rv__class){ .first = NULL };
    memcpy(made->set, set, sizeof made->set);
    return (int)pool->class_count++;
}

static struct rv__served *served_of(const struct rv__function *f, const char *version)
{
    for (size_t i = 0; i < f->served_count; i++)
        if (strcmp(f->served[i].version, version) == 0)
            return &f->served[i];
    return NULL;
}

/* Compute which workers offer it, by version and in all. False: no memory. */
static bool serve(rv_engine *e, struct rv__function *f)
{
    uint64_t any[RV__WORKERS_MOST / 64] = { 0 };
    size_t most = 0;
    for (const struct rv__offer *o = f->offers; o != NULL; o = o->f_next)
        most++;
    rv__free(f->served);
    f->served_count = 0;
    f->any_class = -1;
    f->served = most > 0 ? rv__zalloc(most, sizeof *f->served) : NULL;
    if (most == 0)
        return true;
    if (f->served == NULL)
        return false;
    for (const struct rv__offer *o = f->offers; o != NULL; o = o->f_next) {
        struct rv__served *served = served_of(f, o->version);
        if (served == NULL) {
            served = &f->served[f->served_count++];
            snprintf(served->version, sizeof served->version, "%s", o->version);
        }
        set_add(served->set, o->ticket);
        set_add(any, o->ticket);
    }
    f->any_class = class_of(&e->workers, any);
    bool good = f->any_class >= 0;
    for (size_t i = 0; i < f->served_count && good; i++) {
        f->served[i].class_number = class_of(&e->workers, f->served[i].set);
        good = f->served[i].class_number >= 0;
    }
    if (!good)
        f->served_count = 0;
    return good;
}

void rv__workers_tick(rv_engine *e)
{
    struct rv__pool *pool = &e->workers;
    if (!pool->changed)
        return;
    for (size_t i = 0; i < pool->class_count; i++)
        rv__ring_clear(e, &pool->classes[i]);
    pool->class_count = 0;
    pool->changed = false;
    pool->round++;
    for (uint32_t n = 0; n < RV__WORKERS_MOST; n++)
        for (struct rv__offer *o = pool->at[n] != NULL ? pool->at[n]->offers : NULL; o != NULL;
             o = o->next) {
            if (o->function->served_round == pool->round)
                continue; /* others offer it, too */
            o->function->served_round = pool->round;
            o->registry->generation++;
            if (!serve(e, o->function))
                pool->changed = e->starved = true;
        }
    e->registry->generation++;
    e->relane = true;
}

int rv__workers_class(const rv_engine *e, const struct rv__function *f, const struct rv__node *node)
{
    (void)e;
    if (f->served_count == 0)
        return -1;
    /* The version of the workflow that the node is in, or of an enclosing one: the function may
     * belong to the outermost. */
    for (const struct rv__body *body = rv__node_around(node); body != NULL;
         body = body->owner != NULL ? rv__node_around(body->owner) : NULL) {
        struct rv__str version = body->wrap != NULL ? body->wrap->version : rv__str(NULL);
        for (size_t i = 0; i < f->served_count && !rv__str_none(version); i++)
            if (rv__str_is(version, f->served[i].version))
                return f->served[i].class_number;
    }
    return f->any_class;
}

static bool is_free(const struct rv__worker *w)
{
    return !w->gone && !w->away && w->taken < w->credits + RV__BUG(68);
}

uint32_t rv__workers_pick(const rv_engine *e, int class_number)
{
    const struct rv__class *ring = &e->workers.classes[class_number];
    uint32_t best = 0;
    for (uint32_t n = 0; n < RV__WORKERS_MOST; n++) {
        if (ring->set[n / 64] == 0) { /* none of these 64 */
            n |= 63;
            continue;
        }
        const struct rv__worker *w = e->workers.at[n];
        if (!(ring->set[n / 64] >> n % 64 & 1) || w == NULL || !is_free(w))
            continue;
        if (best == 0 || w->taken < e->workers.at[best - 1]->taken)
            best = n + 1;
    }
    return best;
}

int64_t rv__workers_credits(const rv_engine *e, int class_number)
{
    const struct rv__class *ring = &e->workers.classes[class_number];
    int64_t credits = 0;
    for (uint32_t n = 0; n < RV__WORKERS_MOST; n++)
        if ((ring->set[n / 64] >> n % 64 & 1) && e->workers.at[n] != NULL)
            credits += e->workers.at[n]->credits;
    return credits;
}

bool rv__workers_offers(const rv_engine *e, uint32_t ticket, const struct rv__function *f)
{
    for (const struct rv__offer *o = worker_of(e, ticket)->offers; o != NULL; o = o->next)
        if (o->function == f)
            return true;
    return false;
}

bool rv__worker_load(const rv_engine *e, uint32_t ticket, int64_t *credits, int64_t *taken)
{
    const struct rv__worker *w = e->workers.at[ticket - 1];
    if (w == NULL)
        return false;
    *credits = w->credits;
    *taken = w->taken;
    return true;
}

struct rv__session *rv__workers_session(const rv_engine *e, uint32_t ticket)
{
    return worker_of(e, ticket)->session;
}

struct rv__session *rv__workers_validator(const rv_engine *e, const char *version)
{
    const struct rv__worker *best = NULL;
    for (uint32_t n = 0; n < RV__WORKERS_MOST; n++) {
        const struct rv__worker *w = e->workers.at[n];
        if (w == NULL || w->gone || w->away || w->session == NULL ||
            (best != NULL && best->taken <= w->taken))
            continue;
        const struct rv__judges *judges = w->judges;
        while (judges != NULL && strcmp(judges->version, version) != 0)
            judges = judges->next;
        if (judges != NULL)
            best = w;
    }
    return best != NULL ? rv__session_ref(best->session) : NULL;
}

uint64_t rv__workers_module(const rv_engine *e, uint32_t ticket)
{
    return worker_of(e, ticket)->module;
}

/* ------------------------------------------------------------------------ coming and going --- */

void rv__function_done(struct rv__function *f)
{
    rv__free(f->served);
}

/* Free an offer that is in no list any more. If it was the last, nobody offers the function. */
static void offer_free(struct rv__offer *offer)
{
    struct rv__function *f = offer->function;
    if (f->offers == NULL && !RV__BUG(70)) {
        f->served_count = 0;
        f->any_class = -1;
    }
    offer->registry->generation++;
    rv__registry_unref(offer->registry);
    rv__free(offer);
}

static void forget_judges(struct rv__worker *w)
{
    while (w->judges != NULL) {
        struct rv__judges *judges = w->judges;
        w->judges = judges->next;
        rv__free(judges);
    }
}

void rv__worker_withdraw(rv_engine *e, uint32_t ticket)
{
    struct rv__worker *w = worker_of(e, ticket);
    while (w->offers != NULL) {
        struct rv__offer *offer = w->offers, **at = &offer->function->offers;
        while (*at != offer)
            at = &(*at)->f_next;
        *at = offer->f_next;
        w->offers = offer->next;
        offer_free(offer);
    }
    forget_judges(w);
    e->workers.changed |= !RV__BUG(70);
}

void rv__worker_withdraw_if(rv_engine *e, uint32_t ticket,
                            bool (*keep)(void *arg, const struct rv__function *f), void *arg)
{
    struct rv__worker *w = worker_of(e, ticket);
    forget_judges(w);
    for (struct rv__offer **at = &w->offers; *at != NULL;) {
        struct rv__offer *offer = *at, **of = &offer->function->offers;
        if (keep(arg, offer->function)) {
            at = &offer->next;
            continue;
        }
        while (*of != offer)
            of = &(*of)->f_next;
        *of = offer->f_next;
        *at = offer->next;
        offer_free(offer);
        e->workers.changed = true;
    }
}

bool rv__worker_is_idle(const rv_engine *e, uint32_t ticket)
{
    const struct rv__worker *w = worker_of(e, ticket);
    return w->offers == NULL && w->taken == 0;
}

void rv__worker_module(rv_engine *e, uint32_t ticket, uint64_t module)
{
    worker_of(e, ticket)->module = module;
}

static void drop(rv_engine *e, uint32_t ticket)
{
    struct rv__worker *w = worker_of(e, ticket);
    rv__worker_withdraw(e, ticket);
    rv__session_unref(w->session);
    rv__free(w);
    e->workers.at[ticket - 1] = NULL;
    e->workers.count--;
}

void rv__workers_count(rv_engine *e, uint32_t ticket, int change)
{
    struct rv__worker *w = worker_of(e, ticket);
    w->taken += RV__BUG(69) && change < 0 && w->taken > 2 ? 0 : change;
    assert(w->taken >= 0);
    if (w->gone && w->taken == 0)
        drop(e, ticket);
}

uint32_t rv__worker_join(rv_engine *e, struct rv__session *session, int64_t credits)
{
    uint32_t n = 0;
    while (n < RV__WORKERS_MOST && e->workers.at[n] != NULL)
        n++;
    struct rv__worker *w = n < RV__WORKERS_MOST ? rv__zalloc(1, sizeof *w) : NULL;
    if (w == NULL)
        return 0;
    w->session = session;
    w->credits = credits;
    e->workers.at[n] = w;
    e->workers.count++;
    return n + 1;
}

int rv__worker_offer(struct rv__registry *registry, uint32_t ticket, struct rv__function *f,
                     const char *version)
{
    rv_engine *e = registry->engine;
    struct rv__worker *w = worker_of(e, ticket);
    struct rv__offer *offer = rv__zalloc(1, sizeof *offer);
    if (offer == NULL)
        return RV_ENOMEM;
    *offer = (struct rv__offer){ .next = w->offers,
                                 .f_next = f->offers,
                                 .function = f,
                                 .registry = rv__registry_ref(registry),
                                 .ticket = ticket };
    snprintf(offer->version, sizeof offer->version, "%s", version);
    w->offers = f->offers = offer;
    e->workers.changed = true;
    return RV_OK;
}

void rv__worker_change(rv_engine *e, uint32_t ticket, int64_t credits, bool away)
{
    struct rv__worker *w = worker_of(e, ticket);
    w->credits = credits;
    w->away = away;
}

void rv__worker_gone(rv_engine *e, uint32_t ticket)
{
    struct rv__worker *w = worker_of(e, ticket);
    rv__worker_withdraw(e, ticket);
    w->gone = true;
    if (w->taken == 0)
        drop(e, ticket);
}

/* Whether it occupies a place of a worker. */
static bool is_at_worker(const struct rv__attempt *a)
{
    return a->ticket > 0 && a->place != LANE_NONE && !rv__lane_is_limit(a->place);
}

void rv__workers_free_place(rv_engine *e, const struct rv__attempt *a)
{
    if (is_at_worker(a))
        rv__workers_count(e, a->ticket, -1);
}

void rv__workers_recount(rv_engine *e)
{
    for (size_t i = 0; i < e->workers.class_count; i++)
        rv__ring_clear(e, &e->workers.classes[i]);
    for (uint32_t n = 0; n < RV__WORKERS_MOST; n++)
        if (e->workers.at[n] != NULL)
            e->workers.at[n]->taken = 0;
    for (const struct rv__attempt *a = e->in_flight; a != NULL; a = a->all_next)
        if (is_at_worker(a))
            worker_of(e, a->ticket)->taken++;
    for (uint32_t n = 0; n < RV__WORKERS_MOST; n++)
        if (e->workers.at[n] != NULL && e->workers.at[n]->gone && e->workers.at[n]->taken == 0)
            drop(e, n + 1);
    e->workers.changed = true;
}

void rv__workers_forget(rv_engine *e)
{
    for (struct rv__attempt *a = e->in_flight; a != NULL; a = a->all_next)
        if (is_at_worker(a))
            a->place = LANE_NONE;
    for (uint32_t n = 0; n < RV__WORKERS_MOST; n++)
        if (e->workers.at[n] != NULL)
            drop(e, n + 1);
    for (size_t i = 0; i < e->workers.class_count; i++)
        rv__ring_clear(e, &e->workers.classes[i]);
    for (struct rv__function *f = e->registry != NULL ? e->registry->functions : NULL; f != NULL;
         f = f->next) {
        f->served_count = 0;
        f->any_class = -1;
    }
    rv__free(e->workers.classes);
    /* The round is kept, because functions remember the round in which they were computed. */
    e->workers = (struct rv__pool){ .classes = NULL, .round = e->workers.round };
}

/* -------------------------------------------------------------------------- what they say --- */

bool rv__workers_post(void *engine, struct rv__news *news)
{
    news->letter.kind = LETTER_WORKER;
    return rv__engine_post(engine, &news->letter) == RV_OK;
}

/* Register a workflow that a worker brought, and its functions as those of the worker. */
static int take_workflow(rv_engine *e, struct rv__offered_workflow *brought, struct rv__buf *out,
                         rv_error *err)
{
    rv_workflow *w = brought->workflow;
    struct rv__str name = rv__draft_name(w->draft);
    const struct rv__registered *known = rv__registry_offered(e->registry, name);
    if (known != NULL && !known->worker)
        return rv__fail(err, RV_EEXIST, "workflow '%.*s' is already registered%s%s", RV__ARG(name),
                        known->source[0] ? ", from " : ", by the program",
                        known->source[0] ? known->source : "");
    w->replace = true;
    int rc = rv__registry_add(e->registry, w, err);
    if (rc < 0)
        return rc;
    struct rv__registered *r = rv__registry_find(e->registry, name);
    assert(r != NULL); /* just registered */
    r->worker = true;
    r->validates = brought->validates;
    brought->version = r->plan->plan->version;
    rv__buf_text(out, out->text[out->len - 1] == '[' ? "{\"name\":" : ",{\"name\":");
    rv__buf_json_str(out, r->name);
    rv__wire_text(out, "version", rv__str(r->plan->plan->version));
    rv__buf_char(out, '}');
    return RV_OK;
}

static int take_offers(rv_engine *e, uint32_t ticket, struct rv__str workflow, const char *version,
                       const rv_workflow *w)
{
    for (const struct rv__named_fn *named = w->functions; named != NULL; named = named->next) {
        struct rv__function *f = rv__registry_function(e->registry, workflow, named->name,
                                                       w->library);
        if (f == NULL || rv__worker_offer(e->registry, ticket, f, version) < 0)
            return RV_ENOMEM;
    }
    return RV_OK;
}

int rv__worker_judge(rv_engine *e, uint32_t ticket, const char *version)
{
    struct rv__worker *w = worker_of(e, ticket);
    struct rv__judges *judges = rv__zalloc(1, sizeof *judges);
    if (judges == NULL)
        return RV_ENOMEM;
    snprintf(judges->version, sizeof judges->version, "%s", version);
    judges->next = w->judges;
    w->judges = judges;
    return RV_OK;
}

/* Register everything that the worker offers. If that fails, what this connection had registered before stays. */
static int take_register(rv_engine *e, uint32_t ticket, struct rv__offered *offered,
                         struct rv__buf *out, rv_error *err)
{
    int rc = RV_OK;
    rv__buf_text(out, ",\"workflows\":[");
    for (size_t i = 0; i < offered->count && rc == RV_OK; i++)
        rc = take_workflow(e, &offered->workflows[i], out, err);
    rv__buf_char(out, ']');
    if (rc < 0)
        return rc;
    rv__worker_withdraw(e, ticket);
    for (size_t i = 0; i < offered->count && rc == RV_OK; i++)
        rc = take_offers(e, ticket, rv__draft_name(offered->workflows[i].workflow->draft),
                         offered->workflows[i].version, offered->workflows[i].workflow);
    for (size_t i = 0; i < offered->count && rc == RV_OK; i++)
        if (offered->workflows[i].validates)
            rc = rv__worker_judge(e, ticket, offered->workflows[i].version);
    if (rc == RV_OK && offered->library != NULL)
        rc = take_offers(e, ticket, rv__str("./workers"), "", offered->library);
    worker_of(e, ticket)->module = offered->module;
    return rc < 0 ? rv__nomem(err) : RV_OK;
}

uint32_t rv__worker_ticket(const rv_engine *e, const struct rv__session *session)
{
    for (uint32_t n = 0; n < RV__WORKERS_MOST; n++)
        if (e->workers.at[n] != NULL && e->workers.at[n]->session == session)
            return n + 1;
    return 0;
}

void rv__workers_take(rv_engine *e, struct rv__news *news)
{
    struct rv__session_state now = rv__session_state(news);
    uint32_t ticket = rv__worker_ticket(e, news->session);
    rv_error err = { .code = 0 };
    if (ticket == 0 && !now.gone) {
        ticket = rv__worker_join(e, rv__session_ref(news->session), now.credits);
        if (ticket == 0)
            rv__session_unref(news->session);
    }
    if (ticket > 0 && now.gone)
        rv__worker_gone(e, ticket);
    else if (ticket > 0)
        rv__worker_change(e, ticket, now.credits, now.away);
    if (news->offered != NULL) {
        struct rv__buf *out = &news->offered->answer;
        int rc = RV_OK;
        if (ticket == 0 || now.gone)
            rc = rv__fail(&err, RV_EBUSY, "there are %d workers already: try again",
                          RV__WORKERS_MOST);
        else
            rc = take_register(e, ticket, news->offered, out, &err);
        news->offered->rc = rc;
        news->offered->err = err;
    }
    rv__news_done(news);
}

void rv__workers_drain(rv_engine *e)
{
    struct rv__queue_node *node = rv__queue_take(&e->inbox);
    while (node != NULL) {
        struct rv__letter *letter = (struct rv__letter *)node;
        node = node->next;
        if (letter->kind == LETTER_WORKER)
            rv__news_done(
                (struct rv__news *)
                    letter); /* only this kind of letter is freed; the others belong to their senders */
    }
}
