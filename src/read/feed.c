/* feed.c: subscriptions to events on disk.
 *
 * A feed has its own reader and copies one page of the store at a time: journal rows and log lines, which share one
 * counter (store.h), merged by it. The events of a row are made when they are needed. The loop stores nothing for a
 * feed; after a commit it increments a counter, and wakes sleeping feeds that follow a run of that commit
 * (rv__feed_mark, rv__feed_flush).
 *
 * No event is lost between reading and sleeping: a feed remembers the counter from before its last read, and sleeps
 * only if it is unchanged after the loop can see the feed among the sleepers.
 *
 * A page ends at the last number that was used before it was read. Otherwise data committed while the rows are read
 * could show in the log lines read after them, and be delivered too early. Retention deletes runs anywhere in the
 * sequence; the store remembers the last deleted number, and a feed that had not read that far gets an error
 * instead of silently missing events. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "base/opts.h"
#include "read/event.h"

enum {
    PAGE_ROWS = 256,
    PAGE_BYTES = 1 << 20,  /* a page ends after the row that exceeds this */
    KNOWN_RUNS = 256,      /* with a cached plan; for others it is looked up again */
    TRACES = 8,            /* runs whose active steps are known, for facts that cancel them */
    ENOUGH = 1,            /* returned by a visitor: the page is full */
    WHOLE_ROW = INT32_MAX, /* as an index: after all events of a row */
};

struct item { /* of a page */
    uint64_t seq;
    bool is_log;
    int64_t at_ms;          /* of a log line */
    size_t run, path, text; /* offsets in page_texts; run and path are NUL-terminated */
    size_t text_len;
};

struct known_run {
    char id[RV_RUN_ID_SIZE]; /* "": none */
    struct rv__cached_plan *plan;
};

struct live_trace {
    char id[RV_RUN_ID_SIZE];
    struct rv__cached_plan *plan; /* NULL: unused */
    struct rv__trace trace;
    uint64_t used;
};

struct rv_feed {
    pthread_mutex_t lock;        /* of all members except the links and those of the sleep */
    struct rv__reading *reading; /* NULL: the engine was closed */
    struct rv__store *store;
    char run_id[RV_RUN_ID_SIZE]; /* "": all */
    uint32_t bucket;
    bool no_logs;
    uint64_t accepted; /* deleted numbers up to here were known when it was opened at the oldest */

    uint64_t seq;                  /* everything up to here was delivered */
    uint64_t skip_seq, skip_index; /* and of this row, events up to this index */
    uint64_t at_seq, at_index;     /* the caller's position: the last event, or the beginning */
    uint64_t seen_generation;      /* counter of commits before the last read */
    struct item *items;            /* the current page */
    size_t item_count, item_cap, item_at;
    struct rv__buf page_texts;
    uint64_t page_last;       /* the position after the whole page was delivered */
    bool page_cut;            /* while reading: the page is full, and there is more */
    uint64_t bound;           /* while reading: nothing beyond this */
    struct rv__events events; /* of items[item_at - 1] */
    size_t event_at;
    struct rv__row_reader row;
    struct known_run known[KNOWN_RUNS];
    struct live_trace traces[TRACES];
    uint64_t uses;
    struct rv__read_fact fact; /* of `row`, while its events are made */

    /* under reading->hub */
    struct rv_feed *next, **link;             /* among all */
    struct rv_feed *next_sleeper, **sleeping; /* NULL: awake */
    pthread_cond_t wake;
    bool woken, given_up;
};

/* ---------------------------------------------------------------------------- the loop's side --- */

static uint32_t bucket_of(const char *run_id)
{
    return (uint32_t)(rv__str_hash(RV__HASH_START, rv__str(run_id)) % RV__FEED_BUCKETS);
}

void rv__feed_mark(struct rv__reading *r, const char *run_id)
{
    r->marked = true;
    if (atomic_load(&r->feeds) == 0)
        return;
    uint32_t bucket = bucket_of(run_id);
    r->marks[bucket / 64] |= UINT64_C(1) << bucket % 64;
}

static void wake(struct rv_feed *feed) /* under the hub's lock */
{
    feed->woken = true;
    pthread_cond_signal(&feed->wake);
}

void rv__feed_flush(struct rv__reading *r)
{
    if (!r->marked)
        return;
    r->marked = false;
    atomic_fetch_add(&r->generation, 1);
    if (atomic_load(&r->sleeping) > 0) {
        pthread_mutex_lock(&r->hub);
        for (struct rv_feed *f = r->sleepers; f != NULL; f = f->next_sleeper)
            if (f->run_id[0] == '\0' || (r->marks[f->bucket / 64] >> f->bucket % 64 & 1) != 0)
                wake(f);
        pthread_mutex_unlock(&r->hub);
    }
    if (atomic_load(&r->feeds) > 0)
        memset(r->marks, 0, sizeof r->marks);
}

bool rv__feed_followed(const struct rv__reading *r)
{
    return atomic_load(&r->sleeping) > 0;
}

void rv__feed_look(struct rv__reading *r)
{
    if (!rv__feed_followed(r))
        return;
    atomic_fetch_add(&r->generation, 1);
    pthread_mutex_lock(&r->hub);
    for (struct rv_feed *f = r->sleepers; f != NULL; f = f->next_sleeper)
        wake(f);
    pthread_mutex_unlock(&r->hub);
}

void rv__feeds_close(struct rv__reading *r)
{
    pthread_mutex_lock(&r->hub);
    r->closed = true;
    for (struct rv_feed *f = r->sleepers; f != NULL; f = f->next_sleeper)
        wake(f);
    pthread_mutex_unlock(&r->hub);
}

/* --------------------------------------------------------------------------------- memory --- */

static void trace_forget(struct rv_feed *feed, struct live_trace *t)
{
    if (t->plan == NULL)
        return;
    rv__trace_done(&t->trace);
    rv__plan_cache_put(&feed->reading->plans, t->plan);
    t->plan = NULL;
    t->id[0] = '\0';
}

/* Release everything that belongs to the engine; the links last, because the engine may be freed then. */
static void cut_off(struct rv_feed *feed)
{
    struct rv__reading *r = feed->reading;
    for (size_t i = 0; i < TRACES; i++)
        trace_forget(feed, &feed->traces[i]);
    for (size_t i = 0; i < KNOWN_RUNS; i++)
        rv__plan_cache_put(&r->plans, feed->known[i].plan);
    rv__store_close(feed->store);
    feed->store = NULL;
    feed->reading = NULL;
}

static void unlink_feed(struct rv__reading *r, struct rv_feed *feed) /* under the hub's lock */
{
    *feed->link = feed->next;
    if (feed->next != NULL)
        feed->next->link = feed->link;
    atomic_fetch_sub(&r->feeds, 1);
}

void rv__feeds_detach(struct rv__reading *r)
{
    for (;;) {
        pthread_mutex_lock(&r->hub);
        struct rv_feed *feed = r->all;
        /* Other code locks the feed first and the hub second: so only try here. */
        bool ours = feed != NULL && pthread_mutex_trylock(&feed->lock) == 0;
        if (ours) {
            unlink_feed(r, feed);
            cut_off(feed);
            pthread_mutex_unlock(&feed->lock);
        }
        pthread_mutex_unlock(&r->hub);
        if (feed == NULL)
            return;
        if (!ours)
            rv__clock_sleep_ms(1); /* another thread is still leaving a call */
    }
}

static void feed_free(struct rv_feed *feed)
{
    rv__events_done(&feed->events);
    rv__row_reader_done(&feed->row);
    rv__buf_done(&feed->page_texts);
    rv__free(feed->items);
    pthread_cond_destroy(&feed->wake);
    pthread_mutex_destroy(&feed->lock);
    rv__free(feed);
}

void rv_feed_close(rv_feed *feed)
{
    if (feed == NULL)
        return;
    pthread_mutex_lock(&feed->lock);
    struct rv__reading *r = feed->reading;
    if (r != NULL) {
        cut_off(feed);
        pthread_mutex_lock(&r->hub);
        unlink_feed(r, feed);
        pthread_mutex_unlock(&r->hub);
    }
    pthread_mutex_unlock(&feed->lock);
    feed_free(feed);
}

/* ----------------------------------------------------------------------------------- pages --- */

static bool page_full(const struct rv_feed *feed, size_t from)
{
    return feed->item_count - from >= PAGE_ROWS || feed->page_texts.len >= PAGE_BYTES;
}

static struct item *add_item(struct rv_feed *feed)
{
    if (feed->item_count == feed->item_cap) {
        size_t cap = feed->item_cap ? feed->item_cap * 2 : 64;
        struct item *items = rv__realloc(feed->items, cap * sizeof *items);
        if (items == NULL)
            return NULL;
        feed->items = items;
        feed->item_cap = cap;
    }
    feed->items[feed->item_count] = (struct item){ .seq = 0 };
    return &feed->items[feed->item_count++];
}

static size_t keep(struct rv_feed *feed, struct rv__str text)
{
    size_t at = feed->page_texts.len;
    rv__buf_str(&feed->page_texts, text);
    rv__buf_char(&feed->page_texts, '\0');
    return at;
}

static int take_row(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    struct rv_feed *feed = arg;
    if (seq > feed->bound)
        return ENOUGH;
    if (page_full(feed, 0)) {
        feed->page_cut = true;
        return ENOUGH;
    }
    struct item *item = add_item(feed);
    if (item == NULL)
        return RV_ENOMEM;
    item->seq = seq;
    item->run = keep(feed, run);
    item->text = keep(feed, facts);
    item->text_len = facts.len;
    return rv__buf_err(&feed->page_texts, NULL);
}

static int take_own_row(void *arg, uint64_t seq, struct rv__str facts)
{
    struct rv_feed *feed = arg;
    return take_row(feed, seq, rv__str(feed->run_id), facts);
}

struct line_page {
    struct rv_feed *feed;
    size_t from; /* the first of the lines among the items */
};

static int take_line(void *arg, const struct rv__store_log *line)
{
    struct line_page *page = arg;
    struct rv_feed *feed = page->feed;
    if (line->id > feed->bound)
        return ENOUGH;
    if (page_full(feed, page->from)) {
        feed->page_cut = true;
        return ENOUGH;
    }
    struct item *item = add_item(feed);
    if (item == NULL)
        return RV_ENOMEM;
    item->seq = line->id;
    item->is_log = true;
    item->at_ms = line->at_ms;
    item->run = keep(feed, line->run);
    item->path = keep(feed, line->path);
    item->text = feed->page_texts.len;
    rv__event_log_fields(&feed->page_texts, line);
    item->text_len = feed->page_texts.len - item->text;
    return rv__buf_err(&feed->page_texts, NULL);
}

static int by_seq(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static int read_rows(struct rv_feed *feed, rv_error *err)
{
    int rc = feed->run_id[0] != '\0'
                 ? rv__store_journal(feed->store, rv__str(feed->run_id), feed->seq, take_own_row,
                                     feed, err)
                 : rv__store_feed(feed->store, feed->seq, SIZE_MAX, take_row, feed, err);
    return rc < 0 ? rc : RV_OK;
}

static int read_lines(struct rv_feed *feed, rv_error *err)
{
    struct line_page page = { .feed = feed, .from = feed->item_count };
    struct rv__store_log_query query = {
        .run = rv__str(feed->run_id[0] != '\0' ? feed->run_id : NULL),
        .after_id = feed->seq,
        .limit = SIZE_MAX,
    };
    bool rows_cut = feed->page_cut;
    if (rows_cut) /* nothing beyond the last row */
        feed->bound = feed->items[feed->item_count - 1].seq;
    feed->page_cut = false;
    int rc = rv__store_logs(feed->store, &query, take_line, &page, err);
    if (rc < 0)
        return rc;
    if (feed->page_cut && feed->item_count > page.from) { /* nothing beyond the last line */
        feed->bound = feed->items[feed->item_count - 1].seq;
        if (page.from > 0) {
            qsort(feed->items, feed->item_count, sizeof *feed->items, by_seq);
            while (feed->items[feed->item_count - 1].seq > feed->bound)
                feed->item_count--;
        }
    } else if (feed->item_count > page.from && page.from > 0) {
        qsort(feed->items, feed->item_count, sizeof *feed->items, by_seq);
    }
    return RV_OK;
}

static int past_retention(const struct rv_feed *feed, uint64_t forgotten, rv_error *err)
{
    return rv__fail(err, RV_ENOTFOUND, "events after %llu are no longer kept: removed up to %llu",
                    (unsigned long long)feed->seq, (unsigned long long)forgotten);
}

/* Deleted numbers that were not read yet are a gap. A feed of one run ignores other runs. */
static int check_hole(const struct rv_feed *feed, uint64_t forgotten, rv_error *err)
{
    if (feed->run_id[0] != '\0' || forgotten <= feed->seq || forgotten <= feed->accepted)
        return RV_OK;
    return past_retention(feed, forgotten, err);
}

/* 1: a page was read; 0: nothing new. */
static int read_page(struct rv_feed *feed, rv_error *err)
{
    struct rv__store_usage usage;
    feed->item_at = feed->item_count = 0;
    feed->page_cut = false;
    rv__buf_reset(&feed->page_texts);
    feed->seen_generation = atomic_load(&feed->reading->generation);
    int rc = rv__store_usage(feed->store, &usage, err);
    if (rc == RV_OK)
        rc = check_hole(feed, usage.forgotten_seq, err);
    if (rc < 0 || usage.last_seq <= feed->seq)
        return rc;
    feed->bound = usage.last_seq;
    rc = read_rows(feed, err);
    if (rc == RV_OK && !feed->no_logs)
        rc = read_lines(feed, err);
    else if (rc == RV_OK && feed->page_cut)
        feed->bound = feed->items[feed->item_count - 1].seq;
    if (rc == RV_OK) /* again: data deleted meanwhile is missing in the page */
        rc = rv__store_usage(feed->store, &usage, err);
    if (rc == RV_OK)
        rc = check_hole(feed, usage.forgotten_seq, err);
    if (rc < 0) {
        feed->item_count = 0;
        return rc == RV_ENOMEM ? rv__nomem(err) : rc;
    }
    feed->page_last = feed->bound;
    if (feed->item_count == 0)
        feed->seq = feed->bound;
    return feed->item_count > 0;
}

/* ---------------------------------------------------------------------------------- events --- */

static int plan_of(struct rv_feed *feed, const char *run_id, bool anew, const struct rv__plan **ret,
                   rv_error *err)
{
    struct known_run *known =
        &feed->known[rv__str_hash(RV__HASH_START, rv__str(run_id)) % KNOWN_RUNS];
    struct rv__read_run run = { .plan = NULL };
    if (anew || strcmp(known->id, run_id) != 0) {
        int rc = rv__read_run(&feed->reading->plans, feed->store, rv__str(run_id), &run, err);
        if (rc < 0)
            return rc;
        rv__plan_cache_put(&feed->reading->plans, known->plan);
        known->plan = run.plan;
        snprintf(known->id, sizeof known->id, "%s", run_id);
    }
    *ret = known->plan->plan;
    return RV_OK;
}

static void ended_along(void *arg, const struct rv__trace *trace, uint32_t node,
                        enum rv__status status)
{
    struct rv_feed *feed = arg;
    rv__events_along(&feed->events, trace, node, status, &feed->fact);
}

/* The active steps of a run, as they were before the fact `upto` of the row. */
static int trace_of(struct rv_feed *feed, const char *run_id, const struct item *item, size_t upto,
                    struct live_trace **ret, rv_error *err)
{
    struct live_trace *t = &feed->traces[0];
    struct rv__read_run run = { .plan = NULL };
    struct rv__row_reader row;
    struct rv__read_fact fact;
    for (size_t i = 0; i < TRACES; i++) { /* the run's own; else the least recently used */
        if (strcmp(feed->traces[i].id, run_id) == 0) {
            t = &feed->traces[i];
            break;
        }
        if (feed->traces[i].used < t->used)
            t = &feed->traces[i];
    }
    if (strcmp(t->id, run_id) != 0 || t->trace.seq >= item->seq) {
        trace_forget(feed, t);
        int rc = rv__read_run(&feed->reading->plans, feed->store, rv__str(run_id), &run, err);
        if (rc < 0)
            return rc;
        t->plan = run.plan;
        snprintf(t->id, sizeof t->id, "%s", run_id);
        rv__trace_init(&t->trace, run.plan->plan, false);
    }
    t->used = ++feed->uses;
    t->trace.along = NULL;
    int rc = rv__trace_read(&t->trace, feed->store, rv__str(run_id), item->seq - 1, err);
    rv__row_reader_init(&row);
    if (rc == RV_OK)
        rc = rv__row_begin(
            &row, (struct rv__str){ feed->page_texts.text + item->text, item->text_len }, err);
    for (size_t i = 0; i < upto && rc >= 0; i++) {
        rc = rv__row_next(&row, t->trace.plan, &fact, err);
        if (rc == 1)
            rc = rv__trace_fold(&t->trace, &fact, err);
    }
    rv__row_reader_done(&row);
    if (rc < 0) {
        trace_forget(feed, t);
        return rc;
    }
    t->trace.along = ended_along;
    t->trace.along_arg = feed;
    *ret = t;
    return RV_OK;
}

static int make_row_events(struct rv_feed *feed, const struct item *item, const char *run_id,
                           const struct rv__plan *plan, rv_error *err)
{
    struct rv__str text = { feed->page_texts.text + item->text, item->text_len };
    struct live_trace *live = NULL;
    struct rv__read_fact *fact = &feed->fact;
    int rc = rv__row_begin(&feed->row, text, err);
    for (size_t i = 0; rc >= 0 && (rc = rv__row_next(&feed->row, plan, fact, err)) == 1; i++) {
        if (live == NULL && rv__read_fact_cancels(fact, plan))
            rc = trace_of(feed, run_id, item, i, &live, err);
        if (rc >= 0 && live != NULL)
            rc = rv__trace_fold(&live->trace, fact, err);
        if (rc >= 0)
            rv__events_fact(&feed->events, fact);
    }
    if (live != NULL && rc == RV_OK)
        live->trace.seq = item->seq;
    else if (live != NULL)
        trace_forget(feed, live);
    return rc;
}

/* Make the events of the next item of the page. */
static int next_item(struct rv_feed *feed, rv_error *err)
{
    const struct item *item = &feed->items[feed->item_at];
    const char *run_id = feed->page_texts.text + item->run;
    const char *text = feed->page_texts.text + item->text;
    const struct rv__plan *plan = NULL;
    bool begins = !item->is_log && memmem(text, item->text_len < 64 ? item->text_len : 64,
                                          "\"run.started\"", 13) != NULL;
    int rc = plan_of(feed, run_id, begins, &plan, err);
    if (rc == RV_ENOTFOUND) { /* deleted since the page was read */
        struct rv__store_usage usage;
        rc = rv__store_usage(feed->store, &usage, err);
        return rc < 0 ? rc : past_retention(feed, usage.forgotten_seq, err);
    }
    if (rc < 0)
        return rc;
    rv__events_begin(&feed->events, item->seq, run_id, plan);
    if (item->is_log)
        rv__events_log(&feed->events, item->at_ms, rv__str(feed->page_texts.text + item->path),
                       (struct rv__str){ text, item->text_len });
    else
        rc = make_row_events(feed, item, run_id, plan, err);
    if (rc == RV_OK)
        rc = rv__events_err(&feed->events, err);
    if (rc < 0) {
        feed->events.count = feed->event_at = 0; /* the next call makes them again */
        return rc;
    }
    feed->event_at = 0;
    if (item->seq == feed->skip_seq)
        feed->event_at = feed->skip_index + 1 < feed->events.count ? feed->skip_index + 1
                                                                   : feed->events.count;
    feed->item_at++;
    return RV_OK;
}

/* 1: *ret is the next event; 0: none yet. */
static int next_event(struct rv_feed *feed, rv_event *ret, rv_error *err)
{
    for (;;) {
        if (feed->event_at < feed->events.count) {
            const struct rv__event *event = &feed->events.at[feed->event_at++];
            const char *texts = feed->events.texts.text;
            *ret = (rv_event){ .seq = feed->events.seq,
                               .index = event->index,
                               .at = event->at_ms,
                               .kind = event->kind,
                               .run_id = feed->events.run_id,
                               .workflow = feed->events.workflow.at,
                               .path = texts + event->path,
                               .json = texts + event->json };
            return 1;
        }
        if (feed->item_at > 0) /* all its events were delivered */
            feed->seq = feed->items[feed->item_at - 1].seq;
        int rc;
        if (feed->item_at < feed->item_count) {
            rc = next_item(feed, err);
        } else {
            if (feed->item_count > 0)
                feed->seq = feed->page_last;
            rc = read_page(feed, err);
            if (rc == 0)
                return 0;
        }
        if (rc < 0)
            return rc;
    }
}

/* --------------------------------------------------------------------------------- waiting --- */

struct feed_watch {
    struct rv__cancel_watch watch; /* first */
    struct rv_feed *feed;
    struct rv__reading *reading;
};

static void given_up(struct rv__cancel_watch *watch)
{
    struct feed_watch *w = (struct feed_watch *)watch;
    pthread_mutex_lock(&w->reading->hub);
    w->feed->given_up = true;
    wake(w->feed);
    pthread_mutex_unlock(&w->reading->hub);
}

/* Sleep until something was committed. RV_OK: read again. */
static int feed_sleep(struct rv_feed *feed, int64_t deadline_ns, rv_error *err)
{
    struct rv__reading *r = feed->reading;
    bool in_time = true;
    pthread_mutex_lock(&r->hub);
    feed->woken = false;
    feed->next_sleeper = r->sleepers;
    feed->sleeping = &r->sleepers;
    if (r->sleepers != NULL)
        r->sleepers->sleeping = &feed->next_sleeper;
    r->sleepers = feed;
    atomic_fetch_add(&r->sleeping, 1); /* from here on the loop sees it */
    while (atomic_load(&r->generation) == feed->seen_generation && !feed->woken && in_time &&
           !feed->given_up && !r->closed)
        in_time = rv__cond_wait_until(&feed->wake, &r->hub, deadline_ns);
    bool closed = r->closed, stop = feed->given_up;
    bool news = feed->woken || atomic_load(&r->generation) != feed->seen_generation;
    *feed->sleeping = feed->next_sleeper;
    if (feed->next_sleeper != NULL)
        feed->next_sleeper->sleeping = feed->sleeping;
    feed->sleeping = NULL;
    atomic_fetch_sub(&r->sleeping, 1);
    pthread_mutex_unlock(&r->hub);

    if (stop)
        return rv__fail(err, RV_ECANCELED, "waiting for an event was cancelled");
    if (closed)
        return rv__fail(err, RV_ECLOSED, "the engine has closed");
    if (!in_time && !news)
        return rv__fail(err, RV_ETIMEDOUT, "no event in time");
    return RV_OK;
}

static int next_or_wait(struct rv_feed *feed, int64_t timeout_ms, rv_event *ret, rv_error *err)
{
    int64_t deadline_ns = rv__deadline_ns(timeout_ms);
    for (;;) {
        bool closed = atomic_load(
            &feed->reading->closed); /* read before the last look: nothing is written after it */
        int rc = next_event(feed, ret, err);
        if (rc != 0)
            return rc < 0 ? rc : RV_OK;
        if (closed)
            return rv__fail(err, RV_ECLOSED, "the engine has closed");
        if (timeout_ms == 0)
            return rv__fail(err, RV_ETIMEDOUT, "there is no event yet");
        rc = feed_sleep(feed, deadline_ns, err);
        if (rc < 0 && rc != RV_ECLOSED) /* closed: deliver the last events first */
            return rc;
    }
}

int rv_feed_next(rv_feed *feed, int64_t timeout_ms, rv_cancel *by, rv_event *ret, rv_error *err)
{
    int rc;
    if (feed == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_feed_next: no feed, or nowhere to put the event");
    pthread_mutex_lock(&feed->lock);
    struct feed_watch w = { .watch.fired = given_up, .feed = feed, .reading = feed->reading };
    feed->given_up = false;
    if (feed->reading == NULL) {
        rc = rv__fail(err, RV_ECLOSED, "the engine has closed");
    } else if (by != NULL && !rv__cancel_watch(by, &w.watch)) {
        rc = rv__fail(err, RV_ECANCELED, "waiting for an event was cancelled");
    } else {
        rc = next_or_wait(feed, timeout_ms, ret, err);
        if (rc == RV_OK) {
            feed->at_seq = ret->seq;
            feed->at_index = ret->index;
        }
        if (by != NULL)
            rv__cancel_unwatch(by, &w.watch);
    }
    pthread_mutex_unlock(&feed->lock);
    return rc;
}

void rv_feed_position(rv_feed *feed, uint64_t *seq, uint64_t *index)
{
    pthread_mutex_lock(&feed->lock);
    *seq = feed->at_seq;
    *index = feed->at_index;
    pthread_mutex_unlock(&feed->lock);
}

/* --------------------------------------------------------------------------------- opening --- */

static int set_position(struct rv_feed *feed, const rv_feed_opts *opts, rv_error *err)
{
    struct rv__store_usage usage;
    int rc = rv__store_usage(feed->store, &usage, err);
    if (rc < 0)
        return rc;
    if (opts->from == RV_FROM_NOW) {
        feed->seq = feed->at_seq = usage.last_seq;
        feed->at_index = WHOLE_ROW;
    } else if (opts->from == RV_FROM_OLDEST) {
        feed->accepted = usage.forgotten_seq;
    } else if (opts->seq == 0 || opts->seq > usage.last_seq) {
        return rv__fail(err, RV_ENOTFOUND, "position %llu.%llu is not in this store",
                        (unsigned long long)opts->seq, (unsigned long long)opts->index);
    } else {
        feed->seq = opts->seq; /* for the check: everything up to this row was read */
        rc = check_hole(feed, usage.forgotten_seq, err);
        feed->seq = opts->seq - 1;
        feed->skip_seq = opts->seq;
        feed->skip_index = opts->index;
        feed->at_seq = opts->seq;
        feed->at_index = opts->index;
        if (rc == RV_OK && usage.forgotten_seq == opts->seq)
            feed->seq = opts->seq; /* that row itself was deleted */
    }
    return rc;
}

static int visit_nothing(void *arg, const struct rv__store_run *row)
{
    (void)arg;
    (void)row;
    return RV_OK;
}

static int feed_init(struct rv_feed *feed, struct rv__reading *r, const rv_feed_opts *opts,
                     rv_error *err)
{
    int rc = rv__store_reader(r->store, &feed->store, err);
    if (rc == RV_OK && opts->run_id != NULL) {
        rc = rv__store_run(feed->store, rv__str(opts->run_id), visit_nothing, NULL, err);
        if (rc == RV_ENOTFOUND)
            rc = rv__fail(err, rc, "there is no run '%s'", opts->run_id);
        snprintf(feed->run_id, sizeof feed->run_id, "%s", opts->run_id);
        feed->bucket = bucket_of(opts->run_id);
    }
    feed->no_logs = opts->no_logs;
    feed->reading = r;
    return rc;
}

int rv__feed_open(struct rv__reading *r, const rv_feed_opts *opts, rv_feed **ret, rv_error *err)
{
    rv_feed_opts known = { .size = sizeof known };
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    opts = &known;
    if (ret == NULL || opts->size == 0 || opts->from < RV_FROM_NOW || opts->from > RV_FROM_POSITION)
        return rv__fail(err, RV_EINVAL, "rv_feed_open: %s",
                        ret == NULL ? "nowhere to put the feed"
                                    : "make the options with RV_FEED_OPTS");
    if (opts->run_id != NULL && !rv__id_valid(rv__str(opts->run_id)))
        return rv__fail(err, RV_EINVAL, "'%.80s' is not a run id", opts->run_id);

    struct rv_feed *feed = rv__zalloc(1, sizeof *feed);
    if (feed == NULL)
        return rv__nomem(err);
    if (rv__cond_init(&feed->wake) < 0) {
        rv__free(feed);
        return rv__nomem(err);
    }
    pthread_mutex_init(&feed->lock, NULL);
    rv__buf_init(&feed->page_texts, SIZE_MAX / 8); /* bounded by PAGE_BYTES and a row */
    rv__events_init(&feed->events);
    rv__row_reader_init(&feed->row);

    int rc = atomic_load(&r->closed) ? rv__fail(err, RV_ECLOSED, "the engine has closed")
                                     : feed_init(feed, r, opts, err);
    if (rc == RV_OK) { /* counted before its position is read: later commits are marked */
        pthread_mutex_lock(&r->hub);
        feed->next = r->all;
        feed->link = &r->all;
        if (r->all != NULL)
            r->all->link = &feed->next;
        r->all = feed;
        atomic_fetch_add(&r->feeds, 1);
        pthread_mutex_unlock(&r->hub);
        rc = set_position(feed, opts, err);
        if (rc < 0) {
            pthread_mutex_lock(&r->hub);
            unlink_feed(r, feed);
            pthread_mutex_unlock(&r->hub);
        }
    }
    if (rc < 0)
        rv__store_close(feed->store);
    if (rc < 0) {
        feed_free(feed);
        return rc;
    }
    *ret = feed;
    return RV_OK;
}

void rv_feed_opts_init(rv_feed_opts *opts)
{
    *opts = (rv_feed_opts){ .size = sizeof *opts };
}
