/* worker.c: a worker, as the program that is one sees it: rv_worker_…. The engine's side is workers.c.
 *
 * It has a connection (worker_link.c) to the address that it was given. If that engine shares its store with others, it says where they
 * listen for workers, and the worker connects to all of them, since any of them may have a run that needs its functions. Members come
 * and go, and hear of each other a little later: a member counts if any engine that is connected knows it. Its credits are divided among the engines that have accepted it.
 *
 * The thread inside rv_worker_run() makes and ends connections; all others only tell it that something has changed. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/opts.h"
#include "define/define.h"
#include "work/worker_link.h"

enum {
    CREDITS = 16,
    LINKS_MOST = 64, /* to members */
};

/* A workflow that it offers, and all functions that its runs may need. */
struct offer {
    struct offer *next;
    const rv_workflow *workflow; /* NULL: functions for files that call them */
    struct rv__buf plan;
    struct rv__buf functions; /* names, as JSON, comma-separated */
};

struct fn {
    struct fn *next;
    struct rv__str workflow, name; /* workflow "": for files that call it */
    rv_step_fn fn;
};

struct rv_worker {
    struct rv__arena arena;
    const char *address, *trusted; /* trusted: may be NULL */
    struct rv__worker_link_owner owner;
    struct offer *offers, **last_offer;
    struct fn *functions;
    struct rv__buf registration;
    bool runs;
    /* Of the thread that runs it: the first is to `address`. */
    struct rv__worker_link *links[1 + LINKS_MOST];
    size_t link_count;
    int64_t first_member; /* who the first link is connected to, or was last; 0: not known */
    pthread_mutex_t lock; /* of the rest, and of the array for other threads: */
    pthread_cond_t changed;
    bool news; /* something is to be looked at */
};

/* -------------------------------------------------------------------------------- offering --- */

struct finder {
    struct rv__resolver resolver; /* first */
    const rv_worker *worker;
    struct offer *offer;
};

static void put_function(struct offer *offer, struct rv__str name)
{
    if (offer->functions.len > 0)
        rv__buf_char(&offer->functions, ',');
    rv__buf_json_str(&offer->functions, name);
}

/* One that is nested, and was offered before: its functions are needed, too. */
static int find_draft(struct rv__resolver *self, struct rv__str name, const struct rv__draft **ret)
{
    struct finder *finder = (struct finder *)self;
    for (struct offer *o = finder->worker->offers; o != NULL; o = o->next) {
        if (o->workflow == NULL || !rv__str_eq(rv__draft_name(o->workflow->draft), name))
            continue;
        if (o->functions.len > 0) {
            if (finder->offer->functions.len > 0)
                rv__buf_char(&finder->offer->functions, ',');
            rv__buf_str(&finder->offer->functions, rv__buf_view(&o->functions));
        }
        *ret = o->workflow->draft;
        return RV_OK;
    }
    return RV_ENOTFOUND;
}

static int add_fn(rv_worker *w, struct rv__str workflow, struct rv__str name, rv_step_fn fn,
                  rv_error *err)
{
    struct fn *added = rv__arena_zalloc(&w->arena, 1, sizeof *added);
    if (added == NULL || rv__str_copy(&w->arena, workflow, &added->workflow) < 0 ||
        rv__str_copy(&w->arena, name, &added->name) < 0)
        return rv__nomem(err);
    added->fn = fn;
    added->next = w->functions;
    w->functions = added;
    return RV_OK;
}

static struct offer *new_offer(rv_worker *w)
{
    struct offer *offer = rv__arena_zalloc(&w->arena, 1, sizeof *offer);
    if (offer == NULL)
        return NULL;
    rv__buf_init(&offer->plan, RV__FRAME_MAX);
    rv__buf_init(&offer->functions, RV__FRAME_MAX);
    return offer;
}

static void keep_offer(rv_worker *w, struct offer *offer)
{
    *w->last_offer = offer;
    w->last_offer = &offer->next;
}

int rv_worker_offer(rv_worker *w, const rv_workflow *workflow, rv_error *err)
{
    struct rv__plan *plan = NULL;
    if (w == NULL || workflow == NULL || w->runs)
        return rv__fail(err, RV_EINVAL,
                        "rv_worker_offer: no worker, no workflow, or it runs already");
    if (workflow->rc != RV_OK)
        return rv__fail(err, workflow->rc, "%s",
                        workflow->rc == RV_ENOMEM ? rv_strerror(RV_ENOMEM) : workflow->why);
    struct offer *offer = new_offer(w);
    if (offer == NULL)
        return rv__nomem(err);
    struct finder finder = { .resolver = { find_draft }, .worker = w, .offer = offer };
    offer->workflow = workflow;
    struct rv__str name = rv__draft_name(workflow->draft);
    int rc = rv__plan_compile(workflow->draft, &finder.resolver, NULL, &plan, err);
    if (rc == RV_OK)
        rc = rv__plan_write(plan, &offer->plan, err);
    for (const struct rv__named_fn *f = workflow->functions; f != NULL && rc == RV_OK;
         f = f->next) {
        put_function(offer, f->name);
        rc = add_fn(w, name, f->name, f->fn, err);
    }
    if (rc == RV_OK)
        rc = rv__buf_err(&offer->functions, err);
    rv__plan_free(plan);
    if (rc < 0) {
        rv__buf_done(&offer->plan);
        rv__buf_done(&offer->functions);
        return rc;
    }
    keep_offer(w, offer);
    return RV_OK;
}

int rv_worker_function(rv_worker *w, const char *name, rv_step_fn fn, rv_error *err)
{
    if (w == NULL || name == NULL || name[0] == '\0' || fn == NULL || w->runs)
        return rv__fail(err, RV_EINVAL,
                        "rv_worker_function: no worker, name or function, or it runs already");
    struct offer *offer = w->offers;
    while (offer != NULL && offer->workflow != NULL)
        offer = offer->next;
    if (offer == NULL) {
        offer = new_offer(w);
        if (offer == NULL)
            return rv__nomem(err);
        keep_offer(w, offer);
    }
    put_function(offer, rv__str(name));
    int rc = rv__buf_err(&offer->functions, err);
    return rc == RV_OK ? add_fn(w, rv__str(""), rv__str(name), fn, err) : rc;
}

/* -------------------------------------------------------------------------------- members --- */

static void look_again(void *arg)
{
    rv_worker *w = arg;
    pthread_mutex_lock(&w->lock);
    w->news = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* The address of a member that it has to connect to, in the arena; NULL: not of this one. */
static const char *address_of(const rv_worker *w, struct rv__str member, int64_t first_member,
                              struct rv__arena *arena)
{
    struct rv__str id, workers, text;
    int64_t number = 0;
    if (rv__json_type(member) != RV__JSON_OBJECT || !rv__json_get(member, "id", &id) ||
        rv__json_int(id, &number) < 0 || number == first_member ||
        !rv__json_get(member, "workers", &workers) || rv__json_type(workers) != RV__JSON_STRING ||
        rv__json_string(workers, arena, &text) < 0)
        return NULL;
    const char *address = rv__arena_dup(arena, text.at, text.len);
    bool tls = strncmp(w->address, "tls:", 4) == 0; /* then the token goes to nobody without it */
    bool good = address != NULL && strstr(address, "://") != NULL &&
                (!tls || strncmp(address, "tls:", 4) == 0) && strcmp(address, w->address) != 0 &&
                rv__worker_link_check(address, NULL) == RV_OK;
    return good ? address : NULL;
}

struct wanted {
    const char *addresses[LINKS_MOST];
    size_t count;
};

static bool has_address(const struct wanted *wanted, const char *address)
{
    for (size_t i = 0; i < wanted->count; i++)
        if (strcmp(wanted->addresses[i], address) == 0)
            return true;
    return false;
}

static void add_wanted(rv_worker *w, struct rv__str members, struct rv__arena *arena,
                       struct wanted *wanted)
{
    struct rv__json_iter it;
    struct rv__str member;
    rv__json_iter_init(&it, members);
    while (wanted->count < LINKS_MOST && rv__json_next(&it, NULL, &member)) {
        const char *address = address_of(w, member, w->first_member, arena);
        if (address != NULL && !has_address(wanted, address))
            wanted->addresses[wanted->count++] = address;
    }
}

/* The members that any engine knows. A single one may know too few: members hear of each other within a second or two. False: no
 * engine is there to ask, or no memory. */
static bool read_members(rv_worker *w, struct rv__arena *arena, struct wanted *wanted)
{
    struct rv__buf lists[1 + LINKS_MOST];
    size_t count = 0;
    int64_t self;
    bool good = true;
    for (size_t i = 0; i < w->link_count; i++) {
        rv__buf_init(&lists[count], RV__FRAME_MAX);
        if (!rv__worker_link_members(w->links[i], &lists[count], &self))
            continue;
        if (i == 0)
            w->first_member = self;
        good &= lists[count++].rc == RV_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (good)
            add_wanted(w, rv__buf_view(&lists[i]), arena, wanted);
        rv__buf_done(&lists[i]);
    }
    return good && count > 0;
}

/* Equal shares among those that are up, and at least one each: a member whose runs this worker could serve, and does not,
 * would wait for it for ever. */
static void divide_credits(rv_worker *w)
{
    int64_t up = 0, nth = 0;
    for (size_t i = 0; i < w->link_count; i++)
        up += rv__worker_link_is_up(w->links[i], NULL);
    for (size_t i = 0; i < w->link_count; i++) {
        bool counts = rv__worker_link_is_up(w->links[i], NULL) && nth < up;
        int64_t among = counts ? up : up + 1; /* who comes next takes its share of all */
        int64_t share = w->owner.credits / among + (counts && nth < w->owner.credits % among);
        nth += counts;
        rv__worker_link_credits(w->links[i], share > 0 ? share : 1);
    }
}

static void set_links(rv_worker *w, size_t i, struct rv__worker_link *link, size_t count)
{
    pthread_mutex_lock(&w->lock);
    w->links[i] = link;
    w->link_count = count;
    pthread_mutex_unlock(&w->lock);
}

/* No memory, no thread: with the next news, or not. */
static void add_link(rv_worker *w, const char *address)
{
    struct rv__worker_link *link = NULL;
    int rc = RV_OK;
    if (strncmp(address, "tls:", 4) == 0 && w->owner.keys == NULL) /* no link has used it yet */
        rc = rv__tls_client(w->trusted, &w->owner.keys, NULL);
    if (rc == RV_OK && rv__worker_link_new(&w->owner, address, false, 1, &link, NULL) == RV_OK)
        set_links(w, w->link_count, link, w->link_count + 1);
}

/* One connection to each member; the others are left in order. This never waits for functions: a link that was left stays until those
 * that it runs have ended. */
static void reconcile(rv_worker *w)
{
    struct rv__arena arena;
    struct wanted wanted = { .count = 0 };
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    bool known = read_members(w, &arena, &wanted);
    for (size_t i = 1; i < w->link_count;) {
        struct rv__worker_link *link = w->links[i];
        if (known && !has_address(&wanted, rv__worker_link_address(link)))
            rv__worker_link_stop(link);
        if (!rv__worker_link_is_over(link)) {
            i++;
            continue;
        }
        set_links(w, i, w->links[w->link_count - 1], w->link_count - 1);
        rv__worker_link_free(link);
    }
    for (size_t i = 0; i < wanted.count && w->link_count < 1 + LINKS_MOST; i++) {
        bool there = false;
        for (size_t k = 1; k < w->link_count && !there; k++)
            there = !rv__worker_link_is_leaving(w->links[k]) &&
                    strcmp(rv__worker_link_address(w->links[k]), wanted.addresses[i]) == 0;
        if (!there)
            add_link(w, wanted.addresses[i]);
    }
    rv__arena_done(&arena);
    divide_credits(w);
}

/* ---------------------------------------------------------------------------------- running --- */

static rv_step_fn find_fn(void *arg, struct rv__str workflow, struct rv__str name)
{
    const rv_worker *w = arg;
    rv_step_fn other = NULL;
    for (const struct fn *f = w->functions; f != NULL; f = f->next) {
        if (!rv__str_eq(f->name, name))
            continue;
        if (rv__str_eq(f->workflow, workflow))
            return f->fn;
        other = f->fn;
    }
    return other;
}

/* The frame `register`. */
static int put_registration(rv_worker *w, rv_error *err)
{
    struct rv__buf *out = &w->registration;
    const char *comma = "";
    rv__buf_init(out, RV__FRAME_MAX + 4);
    size_t start = rv__wire_begin(out, FRAME_REGISTER);
    rv__wire_text(out, "id", rv__str(RV__WORKER_REGISTER));
    rv__buf_text(out, ",\"workflows\":[");
    for (const struct offer *o = w->offers; o != NULL; o = o->next) {
        if (o->workflow == NULL)
            continue;
        rv__buf_text(out, comma);
        rv__buf_text(out, "{\"plan\":");
        rv__buf_str(out, rv__buf_view(&o->plan));
        rv__buf_text(out, ",\"functions\":[");
        rv__buf_str(out, rv__buf_view(&o->functions));
        rv__buf_text(out, "]}");
        comma = ",";
    }
    rv__buf_char(out, ']');
    for (const struct offer *o = w->offers; o != NULL; o = o->next)
        if (o->workflow == NULL) {
            rv__buf_text(out, ",\"functions\":[");
            rv__buf_str(out, rv__buf_view(&o->functions));
            rv__buf_char(out, ']');
        }
    rv__wire_end(out, start);
    w->owner.registration = rv__buf_view(out);
    return rv__buf_err(out, err);
}

struct watching {
    struct rv__cancel_watch watch; /* first */
    rv_worker *worker;
};

static void fired(struct rv__cancel_watch *watch)
{
    look_again(((struct watching *)watch)->worker);
}

static void wait_for_news(rv_worker *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->news)
        pthread_cond_wait(&w->changed, &w->lock);
    w->news = false;
    pthread_mutex_unlock(&w->lock);
}

/* All at once: each waits for its functions. */
static void end_links(rv_worker *w)
{
    for (size_t i = 0; i < w->link_count; i++)
        rv__worker_link_stop(w->links[i]);
    while (w->link_count > 0) {
        struct rv__worker_link *link = w->links[w->link_count - 1];
        set_links(w, w->link_count - 1, NULL, w->link_count - 1);
        rv__worker_link_free(link);
    }
}

int rv_worker_run(rv_worker *w, rv_cancel *stop, rv_error *err)
{
    struct watching watching = { .watch = { .fired = fired }, .worker = w };
    struct rv__worker_link *first = NULL;
    rv_error refused = { .code = 0 };
    if (w == NULL || stop == NULL)
        return rv__fail(err, RV_EINVAL, "rv_worker_run: no worker, or no token to stop it by");
    if (w->offers == NULL)
        return rv__fail(err, RV_EINVAL, "the worker offers nothing: rv_worker_offer() first");
    w->runs = w->news = true;
    w->first_member = 0;
    int rc = put_registration(w, err);
    if (rc == RV_OK)
        rc = rv__worker_link_new(&w->owner, w->address, true, w->owner.credits, &first, err);
    if (rc == RV_OK) {
        set_links(w, 0, first, 1);
        bool watched = rv__cancel_watch(stop, &watching.watch);
        while (!rv_cancel_fired(stop) && !rv__worker_link_refused(first, &refused)) {
            wait_for_news(w);
            reconcile(w);
        }
        if (watched)
            rv__cancel_unwatch(stop, &watching.watch);
        end_links(w);
    }
    rv__buf_done(&w->registration);
    w->runs = false;
    return refused.code != 0 ? rv__fail(err, refused.code, "%s", refused.message) : rc;
}

int rv_worker_state(rv_worker *w, rv_error *ret_why)
{
    int up = 0;
    if (w == NULL)
        return 0;
    if (ret_why != NULL)
        *ret_why = (rv_error){ .code = 0 };
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->link_count; i++) /* the first one's reason counts */
        up |= rv__worker_link_is_up(w->links[i], i == 0 ? ret_why : NULL);
    pthread_mutex_unlock(&w->lock);
    return up;
}

/* ------------------------------------------------------------------------------- life time --- */

static const char *copy(rv_worker *w, const char *text)
{
    return text != NULL ? rv__arena_dup(&w->arena, text, strlen(text)) : NULL;
}

void rv_worker_opts_init(rv_worker_opts *opts)
{
    *opts = *RV_WORKER_OPTS();
}

int rv_worker_new(const rv_worker_opts *opts, rv_worker **ret, rv_error *err)
{
    rv_worker_opts o = { .size = sizeof o };
    if (opts == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_worker_new: no options, or nowhere to put the worker");
    rv__opts_take(&o, sizeof o, opts, opts->size);
    if (o.size == 0)
        return rv__fail(err, RV_EINVAL, "options without a size: make them with RV_WORKER_OPTS");
    if (o.address == NULL || o.address[0] == '\0')
        return rv__fail(err, RV_EINVAL, "rv_worker_new: no address");
    if (o.credits > RV__CREDITS_MOST)
        return rv__fail(err, RV_EINVAL, "%u steps at once are more than the %d of a worker",
                        o.credits, RV__CREDITS_MOST);
    rv_worker *w = rv__zalloc(1, sizeof *w);
    if (w == NULL)
        return rv__nomem(err);
    rv__arena_init(&w->arena, SIZE_MAX); /* bounded by what it offers */
    pthread_mutex_init(&w->lock, NULL);  /* on Linux it cannot fail */
    int rc = rv__cond_init(&w->changed) < 0 ? rv__nomem(err) : RV_OK;
    w->last_offer = &w->offers;
    w->owner = (struct rv__worker_link_owner){ .token = copy(w, o.token),
                                               .name = copy(w, o.name),
                                               .credits = o.credits ? o.credits : CREDITS,
                                               .follows = !o.one_engine,
                                               .find = find_fn,
                                               .changed = look_again,
                                               .arg = w };
    w->address = copy(w, o.address);
    w->trusted = copy(w, o.trusted);
    if (rc == RV_OK &&
        ((o.token != NULL && w->owner.token == NULL) || (o.name != NULL && w->owner.name == NULL) ||
         (o.trusted != NULL && w->trusted == NULL) || w->address == NULL))
        rc = rv__nomem(err);
    if (rc == RV_OK)
        rc = rv__worker_link_check(o.address, err);
    if (rc == RV_OK && strncmp(o.address, "tls:", 4) == 0)
        rc = rv__tls_client(o.trusted, &w->owner.keys, err);
    if (rc < 0) {
        rv_worker_free(w);
        return rc;
    }
    *ret = w;
    return RV_OK;
}

void rv_worker_free(rv_worker *w)
{
    if (w == NULL)
        return;
    for (struct offer *o = w->offers; o != NULL; o = o->next) {
        rv__buf_done(&o->plan);
        rv__buf_done(&o->functions);
    }
    rv__tls_keys_unref(w->owner.keys);
    rv__arena_done(&w->arena);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    rv__free(w);
}
