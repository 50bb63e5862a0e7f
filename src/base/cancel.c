/* cancel.c: cancel tokens.
 *
 * A tree of tokens shares one lock, its `domain`, counted by the tokens in it. One lock for the
 * tree, and not one for each token, because firing goes down while freeing goes up: two orders that
 * would deadlock. Reading `code` needs no lock, so polling costs a load.
 *
 * What always holds, under the lock:
 *   1. below a fired token, every token is fired, with the same cause;
 *   2. a token's children point to it; when it is freed, they move up to its parent, so that a
 *      grandparent still reaches them;
 *   3. a watch is linked iff its token has not fired. */
#include "base/cancel.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

struct domain {
    pthread_mutex_t lock;
    size_t tokens; /* how many share it; the last one frees it */
};

struct rv_cancel {
    struct domain *domain;
    rv_cancel *parent, *child, *next, **link; /* child: the first; next, link: among siblings */
    struct rv__cancel_watch *watches;
    atomic_int code; /* 0 until fired; written under the lock, after `why` */
    rv_error why;
};

static struct domain *domain_new(void)
{
    struct domain *domain = rv__zalloc(1, sizeof *domain);
    if (domain == NULL)
        return NULL;
    if (pthread_mutex_init(&domain->lock, NULL) != 0) {
        rv__free(domain);
        return NULL;
    }
    return domain;
}

static void link_below(rv_cancel *parent, rv_cancel *c)
{
    c->parent = parent;
    c->link = &parent->child;
    c->next = parent->child;
    if (c->next != NULL)
        c->next->link = &c->next;
    parent->child = c;
}

static void unlink_token(rv_cancel *c)
{
    if (c->parent == NULL)
        return;
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    c->parent = NULL;
}

/* Write the cause and tell the watches. Under the lock. */
static void fire_one(rv_cancel *c, const rv_error *why)
{
    c->why = *why;
    atomic_store_explicit(&c->code, why->code, memory_order_release);

    struct rv__cancel_watch *watch = c->watches;
    c->watches = NULL;
    while (watch != NULL) {
        struct rv__cancel_watch *next = watch->next;
        watch->link = NULL;
        watch->fired(watch); /* this may free the watch: do not touch it again */
        watch = next;
    }
}

rv_cancel *rv_cancel_new(rv_cancel *parent)
{
    rv_cancel *c = rv__zalloc(1, sizeof *c);
    if (c == NULL)
        return NULL;

    c->domain = parent != NULL ? parent->domain : domain_new();
    if (c->domain == NULL) {
        rv__free(c);
        return NULL;
    }

    pthread_mutex_lock(&c->domain->lock);
    c->domain->tokens++;
    if (parent != NULL) {
        link_below(parent, c);
        if (rv_cancel_fired(parent))
            fire_one(c, &parent->why);
    }
    pthread_mutex_unlock(&c->domain->lock);
    return c;
}

/* The token after `c` in a depth-first walk from `top`; without `down`, what is below `c` is skipped.
 * Not recursive, because a chain of tokens may have any depth. */
static rv_cancel *walk(rv_cancel *top, rv_cancel *c, bool down)
{
    if (down && c->child != NULL)
        return c->child;
    while (c != top) {
        if (c->next != NULL)
            return c->next;
        c = c->parent;
    }
    return NULL;
}

void rv_cancel_fire(rv_cancel *c, int code, const char *why)
{
    if (c == NULL)
        return;
    if (code == 0)
        code = RV_ECANCELED;

    rv_error cause;
    rv__fail(&cause, code, "%s", why != NULL ? why : rv_strerror(code));

    pthread_mutex_lock(&c->domain->lock);
    for (rv_cancel *at = c; at != NULL;) {
        bool fresh = !rv_cancel_fired(at);
        if (fresh)
            fire_one(at, &cause);
        at = walk(c, at, fresh); /* below a fired one, all are fired (1) */
    }
    pthread_mutex_unlock(&c->domain->lock);
}

bool rv_cancel_fired(const rv_cancel *c)
{
    return c != NULL && atomic_load_explicit(&c->code, memory_order_acquire) != 0;
}

int rv_cancel_cause(rv_cancel *c, rv_error *why)
{
    if (!rv_cancel_fired(c))
        return 0;
    if (why != NULL)
        *why = c->why; /* written before `code`, and never again */
    return c->why.code;
}

void rv_cancel_free(rv_cancel *c)
{
    if (c == NULL)
        return;

    struct domain *domain = c->domain;
    pthread_mutex_lock(&domain->lock); /* the parent may be firing it right now */
    assert(c->watches == NULL);        /* whoever watches holds the token */
    rv_cancel *parent = c->parent;
    unlink_token(c);
    while (c->child != NULL) {
        rv_cancel *child = c->child;
        unlink_token(child);
        if (parent != NULL)
            link_below(parent, child);
    }
    bool last = --domain->tokens == 0;
    pthread_mutex_unlock(&domain->lock);

    if (last) {
        pthread_mutex_destroy(&domain->lock);
        rv__free(domain);
    }
    rv__free(c);
}

bool rv__cancel_watch(rv_cancel *c, struct rv__cancel_watch *watch)
{
    pthread_mutex_lock(&c->domain->lock);
    bool waiting = !rv_cancel_fired(c);
    if (waiting) {
        watch->link = &c->watches;
        watch->next = c->watches;
        if (watch->next != NULL)
            watch->next->link = &watch->next;
        c->watches = watch;
    }
    pthread_mutex_unlock(&c->domain->lock);
    return waiting;
}

void rv__cancel_unwatch(rv_cancel *c, struct rv__cancel_watch *watch)
{
    pthread_mutex_lock(&c->domain->lock); /* also waits for a callback that is running */
    if (watch->link != NULL) {
        *watch->link = watch->next;
        if (watch->next != NULL)
            watch->next->link = watch->link;
        watch->link = NULL;
    }
    pthread_mutex_unlock(&c->domain->lock);
}

/* Lock order: the tree's lock, then the waiter's own. */
struct waiter {
    struct rv__cancel_watch watch; /* first */
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool fired;
};

static void wake(struct rv__cancel_watch *watch)
{
    struct waiter *w = (struct waiter *)watch;
    pthread_mutex_lock(&w->lock);
    w->fired = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

bool rv_cancel_wait(rv_cancel *c, int64_t timeout_ms)
{
    struct waiter w = { .watch.fired = wake, .lock = PTHREAD_MUTEX_INITIALIZER };
    int64_t deadline_ns = rv__deadline_ns(timeout_ms);
    bool in_time = true;
    if (rv_cancel_fired(c))
        return true;
    while (rv__cond_init(&w.cond) < 0)
        rv__clock_sleep_ms(1); /* no memory: try again, since a wait cannot report an error */
    bool watching = c != NULL && rv__cancel_watch(c, &w.watch);
    pthread_mutex_lock(&w.lock);
    w.fired |= c != NULL && !watching;
    while (!w.fired && in_time)
        in_time = rv__cond_wait_until(&w.cond, &w.lock, deadline_ns);
    bool fired = w.fired;
    pthread_mutex_unlock(&w.lock);
    if (watching)
        rv__cancel_unwatch(c, &w.watch); /* nobody uses `w` any more after this */
    pthread_cond_destroy(&w.cond);
    pthread_mutex_destroy(&w.lock);
    return fired;
}
