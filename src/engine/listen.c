/* listen.c: rv_on, rv_off: functions that are told what happens in the schedules of this engine.
 *
 * One thread follows the feed for all of them, as anybody may (rv_feed_open): so what a listener hears is on
 * disk, each event is decoded once, and a slow one holds up nobody but the other listeners. The thread is there
 * while there is a listener. It calls them without a lock: a listener may call rv_on(), rv_off(), rv_decide().
 *
 *   rv_on ──▶ list ◀── thread: an event ──▶ each of its type, in the order of their registration
 *
 * A listener for `suspend` is first told what is undecided now, in whatever process it came up: somebody may
 * have been killed before he could decide. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/listen.h"
#include "group/group.h"

enum {
    LISTENERS_MOST = 1000,
    ID_BYTES = 200,
    PAGE = 100,     /* suspended runs asked for at once */
    RETRY_MS = 100, /* after the feed could not be read, */
    SAY_TRIES = 50, /* and for a run that is being written: to put a line into its log */
    SAY_MS = 10,
};

struct listener {
    struct listener *next;
    enum rv__lifecycle type;
    rv_listener_fn fn;
    void *arg;
    bool recap; /* it has not been told yet what is undecided */
    bool off;   /* it goes when it does not run any more */
    char id[ID_BYTES];
};

struct rv__listeners {
    rv_feed *feed; /* of the thread that starts */
    rv_engine *engine;
    pthread_mutex_t lock;
    pthread_cond_t idle;    /* the one that ran has returned */
    struct listener *first; /* in the order in which they came */
    size_t count;
    struct listener *runs; /* being called; NULL: none is */
    pthread_t thread;
    bool started;    /* the thread is there, or is to be joined */
    bool ended;      /* it has nothing to do any more */
    rv_cancel *wake; /* fired: something has changed */
};

/* ------------------------------------------------------------------------------- telling --- */

static const char *text_in(struct rv__arena *arena, struct rv__str json)
{
    struct rv__str text;
    if (json.len == 0 || rv__json_type(json) != RV__JSON_STRING ||
        rv__json_string(json, arena, &text) < 0 || rv__str_copy(arena, text, &text) < 0)
        return "";
    return text.at;
}

static const char *raw_in(struct rv__arena *arena, struct rv__str json)
{
    struct rv__str text;
    return json.len > 0 && rv__str_copy(arena, json, &text) == RV_OK ? text.at : "";
}

static void put_json(struct rv__buf *out, const char *key, struct rv__str json)
{
    if (json.len == 0)
        return;
    rv__buf_fmt(out, ",\"%s\":", key);
    rv__buf_str(out, json);
}

void rv__lifecycle_json(struct rv__buf *out, enum rv__lifecycle type, const struct rv__heard *h)
{
    rv__buf_fmt(out, "{\"type\":\"%s\",\"runId\":\"%s\",\"workflow\":", rv__lifecycle_name(type),
                h->event->run_id);
    rv__buf_json_str(out, rv__str(h->event->workflow));
    rv__buf_fmt(out, ",\"at\":%lld", (long long)h->event->at);
    if (h->event->path[0] != '\0') {
        rv__buf_text(out, ",\"path\":");
        rv__buf_json_str(out, rv__str(h->event->path));
    }
    put_json(out, "stage", h->stage);
    put_json(out, "state", h->state);
    if (h->attempt >= 0)
        rv__buf_fmt(out, ",\"attempt\":%lld", (long long)h->attempt);
    if (h->succeed >= 0)
        rv__buf_fmt(out, ",\"succeed\":%s", h->succeed ? "true" : "false");
    put_json(out, "attachmentId", h->attachment);
    put_json(out, "error", h->error);
    put_json(out, "to", h->to);
    rv__buf_char(out, '}');
}

struct called {
    rv_listener_fn fn;
    void *arg;
    const rv_lifecycle *event;
    int rc;
};

static int call_inside(void *arg)
{
    struct called *called = arg;
    called->rc = called->fn(called->event, called->arg);
    return 0;
}

/* One that fails is told in the log of its run, and ignored. */
static void tell_failure(rv_engine *e, const char *id, const rv_lifecycle *event, int rc,
                         const rv_error *why)
{
    char text[512];
    snprintf(text, sizeof text, "the listener '%s' for %s failed: %s", id, event->type,
             why->message[0] != '\0' ? why->message : rv_strerror(rc));
    for (int i = 0; i < SAY_TRIES && rv__run_say(e, event->run_id, event->path, text) == RV_EBUSY;
         i++)
        rv__clock_sleep_ms(SAY_MS);
}

static void call_one(struct rv__listeners *l, struct listener *one, const rv_lifecycle *event)
{
    struct called called = { one->fn, one->arg, event, 0 };
    rv_error why = { .message = "" }; /* a panic in it is its failure, and nobody else's */
    int rc = rv__panic_guard(call_inside, &called, &why);
    if (rc == RV_OK)
        rc = called.rc;
    if (rc < 0)
        tell_failure(l->engine, one->id, event, rc, &why);
}

static void drop(struct rv__listeners *l, struct listener *gone)
{
    struct listener **at = &l->first;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    l->count--;
    rv__free(gone);
}

/* Tell one, which is in the list; under the lock, which is given back meanwhile. What comes behind it. */
static struct listener *tell(struct rv__listeners *l, struct listener *one,
                             const rv_lifecycle *event)
{
    l->runs = one;
    pthread_mutex_unlock(&l->lock);
    call_one(l, one, event);
    pthread_mutex_lock(&l->lock);
    l->runs = NULL;
    struct listener *next = one->next;
    if (one->off)
        drop(l, one);
    pthread_cond_broadcast(&l->idle);
    return next;
}

/* `only`: it alone; NULL: all of that type. */
static void tell_all(struct rv__listeners *l, enum rv__lifecycle type, const struct rv__heard *h,
                     struct listener *only)
{
    struct rv__arena arena;
    struct rv__buf json;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the event */
    rv__buf_init(&json, SIZE_MAX / 8);
    rv__lifecycle_json(&json, type, h);
    const rv_lifecycle event = {
        .engine = l->engine,
        .type = rv__lifecycle_name(type),
        .run_id = h->event->run_id,
        .workflow = h->event->workflow,
        .path = h->event->path,
        .stage = text_in(&arena, h->stage),
        .state = text_in(&arena, h->state),
        .attempt = (int)h->attempt,
        .succeed = h->succeed == 1,
        .attachment_id = text_in(&arena, h->attachment),
        .error = raw_in(&arena, h->error),
        .to = text_in(&arena, h->to),
        .at = h->event->at,
        .json = rv__buf_view(&json).at,
    };
    pthread_mutex_lock(&l->lock);
    for (struct listener *one = l->first; one != NULL;)
        one = one->type == type && !one->off && (only == NULL || one == only) ? tell(l, one, &event)
                                                                              : one->next;
    pthread_mutex_unlock(&l->lock);
    rv__buf_done(&json);
    rv__arena_done(&arena);
}

/* ------------------------------------------------------------------------------- hearing --- */

static struct rv__str member(struct rv__str object, const char *key)
{
    struct rv__str value;
    return rv__json_get(object, key, &value) ? value : (struct rv__str){ NULL, 0 };
}

static bool is(struct rv__str json, const char *word)
{
    return json.len > 0 && rv__json_string_is(json, rv__str(word));
}

/* What an attempt's end means for its state. */
static void hear_end(struct rv__str json, const struct rv__heard *h, rv__lifecycle_fn *told,
                     void *arg)
{
    struct rv__str next = member(json, "next");
    bool settled = is(next, "done") || is(next, "final");
    bool failed = is(next, "errored") || is(next, "suspend");
    if (settled || failed)
        told(arg, LIFE_STATE_COMPLETED, h);
    if (failed && member(json, "drained").len == 0)
        told(arg, LIFE_EXHAUSTED, h);
    if (is(next, "redirect"))
        told(arg, LIFE_REDIRECT, h);
    if (is(next, "final"))
        told(arg, LIFE_FINAL, h);
}

void rv__lifecycle_of_event(const rv_event *event, rv__lifecycle_fn *told, void *arg)
{
    struct rv__str json = rv__str(event->json);
    struct rv__heard h = { .event = event,
                           .stage = member(json, "stage"),
                           .state = member(json, "state"),
                           .attachment = member(json, "attachmentId"),
                           .error = member(json, "error"),
                           .to = member(json, "to"),
                           .attempt = -1,
                           .succeed = -1 };
    struct rv__str number = member(json, "attempt");
    int64_t attempt;
    if (h.state.len > 0 && rv__json_type(h.state) == RV__JSON_OBJECT)
        h.state = (struct rv__str){ NULL, 0 }; /* a step's, not the name of one */
    if (h.state.len > 0 && number.len > 0 && rv__json_int(number, &attempt) == RV_OK)
        h.attempt = attempt - 1;
    if (member(json, "succeed").len > 0)
        h.succeed = rv__str_is(member(json, "succeed"), "true");
    if (strcmp(event->kind, "state.started") == 0)
        told(arg, LIFE_DISPATCH, &h);
    else if (strcmp(event->kind, "state.ended") == 0)
        hear_end(json, &h, told, arg);
    else if (strcmp(event->kind, "node.completed") == 0 && h.stage.len > 0)
        told(arg, LIFE_STAGE_COMPLETED, &h);
    else if (strcmp(event->kind, "run.completed") == 0)
        told(arg, LIFE_COMPLETED, &h);
    else if (strcmp(event->kind, "run.failed") == 0 || strcmp(event->kind, "run.cancelled") == 0)
        told(arg, LIFE_ABORTED, &h);
    if (strcmp(event->kind, "run.suspended") == 0) {
        h.error = member(json, "reason");
        told(arg, LIFE_SUSPEND, &h);
    }
}

/* ------------------------------------------------------------------------- what is undecided --- */

/* The last two parts of a state's path, as JSON strings in the arena. */
static void split_path(struct rv__arena *arena, const char *path, struct rv__heard *h)
{
    const char *last = strrchr(path, ':');
    if (last == NULL)
        return;
    const char *first = last;
    while (first > path && first[-1] != ':')
        first--;
    char *stage = rv__arena_alloc(arena, (size_t)(last - first) + 3);
    char *state = rv__arena_alloc(arena, strlen(last + 1) + 3);
    if (stage == NULL || state == NULL)
        return;
    int n = snprintf(stage, (size_t)(last - first) + 3, "\"%.*s\"", (int)(last - first), first);
    h->stage = (struct rv__str){ stage, (size_t)n };
    n = snprintf(state, strlen(last + 1) + 3, "\"%s\"", last + 1);
    h->state = (struct rv__str){ state, (size_t)n };
}

static void tell_suspension(const rv_run_state *run, struct rv__str one, rv__lifecycle_fn *told,
                            void *arg)
{
    struct rv__arena arena;
    int64_t since = 0;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by a row */
    (void)(member(one, "since").len > 0 && rv__json_int(member(one, "since"), &since) < 0);
    const char *path = text_in(&arena, member(one, "path"));
    const rv_event event = { .at = since,
                             .kind = "run.suspended",
                             .run_id = run->run_id,
                             .workflow = run->workflow,
                             .path = path };
    struct rv__heard h = {
        .event = &event, .error = member(one, "reason"), .attempt = -1, .succeed = -1
    };
    struct rv__str actions = member(one, "actions"), action;
    struct rv__json_iter it;
    bool state = false; /* only those can be skipped */
    if (actions.len > 0 && rv__json_type(actions) == RV__JSON_ARRAY) {
        rv__json_iter_init(&it, actions);
        while (rv__json_next(&it, NULL, &action))
            state |= is(action, "skip");
    }
    if (state)
        split_path(&arena, path, &h);
    told(arg, LIFE_SUSPEND, &h);
    rv__arena_done(&arena);
}

static void tell_suspensions(const rv_run_state *run, rv__lifecycle_fn *told, void *arg)
{
    struct rv__str all = rv__str(run->suspensions), one;
    struct rv__json_iter it;
    if (all.len == 0 || rv__json_type(all) != RV__JSON_ARRAY)
        return;
    rv__json_iter_init(&it, all);
    while (rv__json_next(&it, NULL, &one))
        tell_suspension(run, one, told, arg);
}

/* A list may not have all of them. */
static int tell_run(rv_engine *e, const rv_run_state *listed, rv__lifecycle_fn *told, void *arg)
{
    rv_run_state *whole = NULL;
    bool some = *listed->suspensions == '[' &&
                rv__json_count(rv__str(listed->suspensions)) >= RV_LIST_SUSPENSIONS;
    int rc = some ? rv_state(e, listed->run_id, &whole, NULL) : RV_OK;
    if (rc == RV_ENOMEM || rc == RV_ECLOSED)
        return rc;
    if (rc != RV_ENOTFOUND) /* if it is damaged, those of the list */
        tell_suspensions(whole != NULL ? whole : listed, told, arg);
    rv_run_state_free(whole);
    return RV_OK;
}

int rv__lifecycle_undecided(rv_engine *e, rv__lifecycle_fn *told, void *arg)
{
    char cursor[RV_RUN_ID_SIZE + 32] = "";
    int rc;
    do {
        rv_run_list *list = NULL;
        rc = rv_list(e,
                     RV_QUERY(.status = RV_SUSPENDED, .limit = PAGE,
                              .cursor = cursor[0] != '\0' ? cursor : NULL),
                     &list, NULL);
        for (size_t i = 0; rc == RV_OK && i < list->count; i++)
            rc = tell_run(e, &list->runs[i], told, arg);
        snprintf(cursor, sizeof cursor, "%s", rc == RV_OK ? list->next : "");
        rv_run_list_free(list);
    } while (cursor[0] != '\0');
    return rc;
}

/* ------------------------------------------------------------------------------- the thread --- */

struct telling {
    struct rv__listeners *l;
    struct listener *only; /* NULL: all */
};

static void tell_those(void *arg, enum rv__lifecycle type, const struct rv__heard *h)
{
    const struct telling *telling = arg;
    tell_all(telling->l, type, h, telling->only);
}

/* One that has not been told yet; NULL: none. Its mark goes. */
static struct listener *take_recap(struct rv__listeners *l)
{
    pthread_mutex_lock(&l->lock);
    struct listener *one = l->first;
    while (one != NULL && !one->recap)
        one = one->next;
    if (one != NULL)
        one->recap = false;
    pthread_mutex_unlock(&l->lock);
    return one;
}

static bool is_needed(struct rv__listeners *l)
{
    pthread_mutex_lock(&l->lock);
    bool needed = l->count > 0;
    l->ended = !needed;
    pthread_mutex_unlock(&l->lock);
    return needed;
}

/* The token has fired: another one takes its place. Without memory it is tried again, after a while. */
static int renew(struct rv__listeners *l, rv_cancel **wake)
{
    rv_cancel *fresh = rv_cancel_new(NULL);
    if (fresh == NULL) {
        rv__clock_sleep_ms(RETRY_MS);
        return RV_OK;
    }
    pthread_mutex_lock(&l->lock);
    rv_cancel_free(l->wake);
    *wake = l->wake = fresh;
    pthread_mutex_unlock(&l->lock);
    return RV_OK;
}

static void *listen(void *arg)
{
    struct rv__listeners *l = arg;
    rv_feed *feed = l->feed;
    rv_event event;
    rv_error err;
    rv_cancel *wake = l->wake;
    int rc = RV_OK;
    while (rc != RV_ECLOSED && is_needed(l)) {
        struct listener *fresh = take_recap(l);
        if (fresh != NULL) {
            (void)rv__lifecycle_undecided(l->engine, tell_those, &(struct telling){ l, fresh });
            continue;
        }
        if (feed == NULL || rc == RV_ENOTFOUND) { /* retention was quicker: from here on */
            rv_feed_close(feed);
            feed = NULL;
            rc = rv_feed_open(l->engine, RV_FEED_OPTS(.no_logs = true), &feed, &err);
        }
        if (rc == RV_OK)
            rc = rv_feed_next(feed, -1, wake, &event, &err);
        if (rc == RV_OK) {
            rv__lifecycle_of_event(&event, tell_those, &(struct telling){ l, NULL });
        } else if (rc == RV_ECANCELED) {
            rc = renew(l, &wake);
        } else if (rc != RV_ECLOSED && rc != RV_ENOTFOUND) {
            rv__clock_sleep_ms(RETRY_MS); /* nothing was skipped */
            rc = RV_OK;
        }
    }
    pthread_mutex_lock(&l->lock);
    l->ended = true;
    pthread_mutex_unlock(&l->lock);
    rv_feed_close(feed);
    return NULL;
}

/* Under the lock. */
static int start(struct rv__listeners *l, rv_error *err)
{
    if (l->started && !l->ended)
        return RV_OK;
    if (l->started) {
        pthread_t old = l->thread;
        l->started = false;
        pthread_mutex_unlock(&l->lock); /* it has nothing to do, and takes it once more at most */
        pthread_join(old, NULL);
        pthread_mutex_lock(&l->lock);
        if (l->started)
            return RV_OK; /* somebody else was quicker */
    }
    /* Here, not on the thread: whatever happens after rv_on() has returned is heard. */
    int rc = rv_feed_open(l->engine, RV_FEED_OPTS(.no_logs = true), &l->feed, err);
    if (rc < 0)
        return rc;
    l->ended = false;
    if (pthread_create(&l->thread, NULL, listen, l) != 0) {
        rv_feed_close(l->feed);
        return rv__fail(err, RV_ESYS, "no thread for listeners");
    }
    l->started = true;
    return RV_OK;
}

static struct rv__listeners *listeners_of(rv_engine *e)
{
    pthread_mutex_lock(&e->callers_lock);
    if (e->listeners == NULL) {
        struct rv__listeners *l = rv__zalloc(1, sizeof *l);
        rv_cancel *wake = l != NULL ? rv_cancel_new(NULL) : NULL;
        if (wake == NULL) {
            rv__free(l);
        } else {
            l->engine = e;
            l->wake = wake;
            pthread_mutex_init(&l->lock, NULL);
            pthread_cond_init(&l->idle, NULL);
            e->listeners = l;
        }
    }
    pthread_mutex_unlock(&e->callers_lock);
    return e->listeners;
}

void rv__listeners_close(rv_engine *e)
{
    struct rv__listeners *l = e->listeners;
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    bool started = l->started;
    l->started = false;
    pthread_mutex_unlock(&l->lock);
    if (started && pthread_equal(pthread_self(), l->thread))
        rv_panic("the engine is closed from one of its listeners, which would wait for itself");
    if (started)
        pthread_join(l->thread, NULL); /* the feed tells it that this is the end */
}

void rv__listeners_free(rv_engine *e)
{
    struct rv__listeners *l = e->listeners;
    if (l == NULL)
        return;
    while (l->first != NULL)
        drop(l, l->first);
    rv_cancel_free(l->wake);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->idle);
    rv__free(l);
    e->listeners = NULL;
}

/* ------------------------------------------------------------------------------- the calls --- */

/* The one that is meant: by its id, or, where none is given, the same function for the same. */
static struct listener *find(struct rv__listeners *l, int type, rv_listener_fn fn, void *arg,
                             const char *id)
{
    struct listener *one = l->first;
    while (one != NULL &&
           (one->off || (id != NULL ? strcmp(one->id, id) != 0
                                    : (int)one->type != type || one->fn != fn || one->arg != arg)))
        one = one->next;
    return one;
}

static int add(struct rv__listeners *l, struct listener *given, const char *id, rv_error *err)
{
    struct listener **end = &l->first, *one = find(l, (int)given->type, given->fn, given->arg, id);
    if (one != NULL) { /* it takes the place of the one that was */
        one->recap |= given->type == LIFE_SUSPEND && (one->type != LIFE_SUSPEND || id != NULL);
        one->type = given->type;
        one->fn = given->fn;
        one->arg = given->arg;
        return RV_OK;
    }
    if (l->count == LISTENERS_MOST)
        return rv__fail(err, RV_ETOOBIG, "an engine has at most %d listeners", LISTENERS_MOST);
    one = rv__zalloc(1, sizeof *one);
    if (one == NULL)
        return rv__nomem(err);
    *one = *given;
    one->recap = given->type == LIFE_SUSPEND;
    while (*end != NULL)
        end = &(*end)->next;
    *end = one;
    l->count++;
    int rc = start(l, err);
    if (rc < 0)
        drop(l, one);
    return rc;
}

int rv_on(rv_engine *e, const char *type, rv_listener_fn fn, void *arg, const char *id,
          rv_error *err)
{
    int which = type != NULL ? rv__lifecycle_find(rv__str(type)) : -1;
    if (e == NULL || fn == NULL)
        return rv__fail(err, RV_EINVAL, "rv_on: no %s given", e == NULL ? "engine" : "function");
    if (which < 0)
        return rv__fail(err, RV_EINVAL,
                        "rv_on: there is no event '%.40s': dispatch, state_completed, "
                        "stage_completed, suspend, redirect, exhausted, final, completed, aborted",
                        type != NULL ? type : "");
    if (id != NULL && (*id == '\0' || strlen(id) >= ID_BYTES))
        return rv__fail(err, RV_EINVAL, "rv_on: an id has 1 to %d bytes", ID_BYTES - 1);
    struct listener given = { .type = (enum rv__lifecycle)which, .fn = fn, .arg = arg };
    struct rv__listeners *l = listeners_of(e);
    if (l == NULL)
        return rv__nomem(err);
    rv__engine_enter(e);
    pthread_mutex_lock(&l->lock);
    snprintf(given.id, sizeof given.id, "%s", id != NULL ? id : "");
    int rc = e->stopped ? rv__fail(err, RV_ECLOSED, "the engine is closed")
                        : add(l, &given, id, err);
    rv_cancel_fire(l->wake, RV_ECANCELED, "another listener");
    pthread_mutex_unlock(&l->lock);
    rv__engine_leave(e);
    return rc;
}

int rv_off(rv_engine *e, const char *id, rv_error *err)
{
    if (e == NULL || id == NULL || *id == '\0')
        return rv__fail(err, RV_EINVAL, "rv_off: no %s given", e == NULL ? "engine" : "id");
    struct rv__listeners *l = listeners_of(e);
    if (l == NULL)
        return rv__nomem(err);
    pthread_mutex_lock(&l->lock);
    struct listener *one = find(l, 0, NULL, NULL, id);
    bool inside = l->started && pthread_equal(pthread_self(), l->thread);
    if (one == NULL) {
        pthread_mutex_unlock(&l->lock);
        return rv__fail(err, RV_ENOTFOUND, "there is no listener '%.80s'", id);
    }
    one->off = true;
    if (l->runs != one)
        drop(l, one);
    else
        while (l->runs == one && !inside) /* else it goes when it returns */
            pthread_cond_wait(&l->idle, &l->lock);
    rv_cancel_fire(l->wake, RV_ECANCELED, "a listener less");
    pthread_mutex_unlock(&l->lock);
    return RV_OK;
}
