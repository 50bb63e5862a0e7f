/* notify.c: listeners of manifests: commands and webhooks that are told what happens in their runs.
 *
 * One thread follows the feed. For each event that a listener asked for it makes a notice. A listener belongs to the
 * run's workflow, or to a workflow nested in it, and is told what happens there. Notices are sent by a separate I/O
 * loop, a few at a time; those of one listener and run in order. A notice that fails is sent again later, after
 * longer and longer waits. The run never waits for any of this.
 *
 *   feed ──▶ notice: waits ──▶ being sent ──▶ delivered: an answer to `suspend` decides
 *                      ▲            │ failed, tries left
 *                      └── later ◀──┘         (none left: a line in the run's log)
 *
 * Delivery is at least once: a mark in the store (store.h) says, for each workflow with listeners, up to where everything
 * was delivered. It is moved from time to time, so the next process may send some notices again. Of several members one
 * has the mark, and only it sends. It must have the workflow registered, because commands run in the folder of its file.
 * When it ends, another one takes the mark within about a second. Who takes a mark sends undecided suspensions again.
 * ADR 0051, 0055. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/call.h"
#include "engine/control.h"
#include "engine/listen.h"
#include "exec/exec.h"
#include "read/read.h"

enum {
    NOTICES_MOST =
        256, /* notices that wait or are being sent; while there are so many, the feed is not read */
    AT_ONCE = 16,
    TRIES = 20,           /* over about a quarter of an hour */
    FIRST_WAIT_MS = 500,  /* before the second try; doubled each time, */
    MOST_WAIT_MS = 60000, /* up to this */
    TAKES_MS = 30000,     /* time limit of a command or an answer */
    CLOSE_MS = 5000,      /* time limit, when the engine closes, for notices that are being sent */
    KEEP_MS = 1000,       /* between two moves of the marks */
    LOOK_MS = 1000,       /* between checks for marks that no member has any more */
    ANSWER_BYTES = 64 << 10,
    KNOWN_RUNS = 256, /* runs of which it is remembered whether they have listeners */
    FEED_MS = 100,    /* wait after the store could not be read */
    ASKS_MOST = 20,   /* a run that cannot be read, although the store answers, is damaged */
    DIRECTORY = 4096,
    CANCELLED_PAGE = 100, /* nodes read at once */
};

/* The names of marks begin with what they are of. */
#define OF_WORKFLOW "workflow:"
#define OF_RUN      "run:"

struct position {
    uint64_t seq, index;
};

/* A mark, for the listeners of all runs of a workflow, or of one run. It stays in memory until the engine is freed. */
struct mark {
    struct mark *next;
    char *name;       /* in the store: OF_WORKFLOW or OF_RUN, and its name or id */
    bool left;        /* an earlier process made it: it is not created again if it was deleted */
    bool ours;        /* this process sends its notices */
    bool fresh;       /* taken just now: undecided suspensions are still to be sent */
    bool ends;        /* its run has ended: it is deleted when everything was sent */
    bool there, free; /* when the store was last read: it exists; no member has it */
    bool unsure;      /* it was to be taken, and the answer was lost: it may be ours in the store */
    struct position from; /* its position, if it is new */
    struct position done; /* events up to here were sent before it was taken, or read again */
    struct position kept; /* its position in the store */
};

struct notice {
    struct notice *next; /* oldest first */
    struct rv__notify *of;
    struct mark *mark;
    struct position before; /* position of the previous event */
    enum rv__lifecycle type;
    uint32_t listener; /* its index in the plan */
    char run_id[RV_RUN_ID_SIZE];
    struct rv__arena arena; /* of what follows */
    const char *path, *workflow;
    const char *manifest;   /* the workflow that has the listener: the run's, or one nested in it */
    struct rv__str json;    /* the event */
    struct rv__str command; /* as in the plan; or */
    const char *webhook;
    int tries;
    int64_t due_ms; /* on the monotonic clock */
    enum { NOTICE_WAITS, NOTICE_SENT, NOTICE_OVER } phase;
    bool good;
    struct rv__buf answer; /* its output, or why it failed */
    struct rv__command run;
    struct rv__fetch fetch;
};

/* What is remembered about a run. */
struct known_run {
    char run_id[RV_RUN_ID_SIZE];
    bool listens; /* its plan has listeners, */
    bool nested;  /* also in nested workflows */
};

struct rv__notify {
    rv_engine *engine;
    struct rv__io *io;
    rv_feed *feed; /* NULL: no mark is ours */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct mark *marks; /* only added to */
    struct notice *first;
    size_t count, sent;
    rv_cancel *wake;          /* fired when a notice has ended, or when somebody waits */
    struct position read;     /* by the feed; only the thread changes it, with the lock held */
    struct position begun;    /* where the feed ended when the thread was started */
    int64_t begun_ms;         /* on the wall clock */
    int64_t kept_ms, look_ms; /* on the monotonic clock: last move; next check */
    uint64_t flush_asked, flushed;
    bool added;         /* a mark, since the last check */
    bool cut;           /* the engine closes, and an event could not be read whole */
    atomic_bool closes; /* the engine */
    struct known_run known[KNOWN_RUNS];
};

/* ----------------------------------------------------------------------------------- marks --- */

static bool is_after(struct position a, struct position b)
{
    return a.seq != b.seq ? a.seq > b.seq : a.index > b.index;
}

static struct position later_of(struct position a, struct position b)
{
    return is_after(a, b) ? a : b;
}

/* Up to where events were read for this mark. */
static struct position read_for(const struct rv__notify *n, const struct mark *mark)
{
    return later_of(n->read, mark->done);
}

/* The mark of this run's listeners; NULL: another process has it. Call with the lock held. */
static struct mark *mark_of(const struct rv__notify *n, const char *run_id, const char *workflow)
{
    struct mark *found = NULL;
    for (struct mark *mark = n->marks; mark != NULL; mark = mark->next) {
        if (!mark->ours)
            continue;
        if (strncmp(mark->name, OF_RUN, strlen(OF_RUN)) == 0 &&
            strcmp(mark->name + strlen(OF_RUN), run_id) == 0)
            return mark;
        if (strncmp(mark->name, OF_WORKFLOW, strlen(OF_WORKFLOW)) == 0 &&
            strcmp(mark->name + strlen(OF_WORKFLOW), workflow) == 0)
            found = mark;
    }
    return found;
}

/* Add a mark, if it is not there yet. What was read before has nothing for a new one, unless another member has run
 * the workflow already, and has not made the mark yet. Call with the lock held, or before the thread is started. */
static int add_mark(struct rv__notify *n, const char *of, struct rv__str what, bool left,
                    rv_error *err)
{
    size_t of_len = strlen(of);
    struct mark **end = &n->marks;
    for (; *end != NULL; end = &(*end)->next)
        if (strncmp((*end)->name, of, of_len) == 0 && rv__str_is(what, (*end)->name + of_len)) {
            (*end)->left &= left;
            return RV_OK;
        }
    struct mark *mark = rv__zalloc(1, sizeof *mark);
    char *name = rv__zalloc(1, of_len + what.len + 1);
    if (mark == NULL || name == NULL) {
        rv__free(mark);
        rv__free(name);
        return rv__nomem(err);
    }
    snprintf(name, of_len + what.len + 1, "%s%.*s", of, RV__ARG(what));
    *mark = (struct mark){ .name = name, .left = left, .from = n->begun };
    if (!n->engine->member.on)
        mark->from = later_of(n->read, n->begun);
    *end = mark;
    n->added = true;
    return RV_OK;
}

struct marks_job {
    struct rv__store_mark *rows;
    struct mark **of;
    size_t count;
};

static void job_done(struct marks_job *job)
{
    rv__free(job->rows);
    rv__free(job->of);
}

/* The marks for which `wants` is true. Without memory there are none; they are tried again later. */
static void job_init(struct rv__notify *n, bool (*wants)(struct rv__notify *n, struct mark *mark),
                     struct marks_job *ret)
{
    size_t most = 0;
    *ret = (struct marks_job){ 0 };
    pthread_mutex_lock(&n->lock);
    for (const struct mark *mark = n->marks; mark != NULL; mark = mark->next)
        most++;
    ret->rows = rv__zalloc(most > 0 ? most : 1, sizeof *ret->rows);
    ret->of = rv__zalloc(most > 0 ? most : 1, sizeof *ret->of);
    for (struct mark *mark = n->marks; mark != NULL && ret->rows != NULL && ret->of != NULL;
         mark = mark->next)
        if (wants(n, mark)) {
            ret->rows[ret->count].name = rv__str(mark->name);
            ret->of[ret->count++] = mark;
        }
    pthread_mutex_unlock(&n->lock);
}

static int see_mark(void *arg, const struct rv__store_mark *row)
{
    struct rv__notify *n = arg;
    pthread_mutex_lock(&n->lock);
    for (struct mark *mark = n->marks; mark != NULL; mark = mark->next)
        if (rv__str_is(row->name, mark->name)) {
            mark->there = true;
            mark->free = row->free;
        }
    pthread_mutex_unlock(&n->lock);
    return RV_OK;
}

static bool is_wanted(struct rv__notify *n, struct mark *mark)
{
    bool alone = !n->engine->member.on;
    return !mark->ours && !mark->ends &&
           (mark->there ? alone || mark->free || mark->unsure : !mark->left);
}

static int run_take(struct rv__call *call)
{
    struct marks_job *job = call->arg;
    return rv__store_take_marks(call->engine->store, job->rows, job->count, &call->err);
}

/* Call with the lock held. */
static bool has_marks(const struct rv__notify *n)
{
    const struct mark *mark = n->marks;
    while (mark != NULL && !mark->ours)
        mark = mark->next;
    return mark != NULL;
}

/* Read the feed again from here, for a mark that was taken. Other marks ignore what they had. */
static void go_back_to(struct rv__notify *n, struct position at)
{
    for (struct mark *mark = n->marks; mark != NULL; mark = mark->next)
        if (mark->ours)
            mark->done = read_for(n, mark);
    n->read = at;
    rv_feed_close(n->feed);
    n->feed = NULL;
}

/* Take the marks that nobody has. */
static void look_for_marks(struct rv__notify *n)
{
    struct rv__reading *reading = n->engine->reading;
    struct marks_job job;
    pthread_mutex_lock(&n->lock);
    n->added = false;
    for (struct mark *mark = n->marks; mark != NULL; mark = mark->next)
        mark->there = mark->free = false;
    pthread_mutex_unlock(&n->lock);
    pthread_mutex_lock(&reading->lock);
    int rc = rv__store_marks(reading->store, see_mark, n, NULL);
    pthread_mutex_unlock(&reading->lock);
    n->look_ms = rv__mono_ms(n->engine->clock) + LOOK_MS;
    if (rc < 0)
        return;
    pthread_mutex_lock(&n->lock);
    for (struct mark *mark = n->marks; mark != NULL; mark = mark->next)
        mark->ends |= mark->left && !mark->there; /* another process has sent everything */
    pthread_mutex_unlock(&n->lock);
    job_init(n, is_wanted, &job);
    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; i < job.count; i++) {
        job.rows[i].seq = job.of[i]->from.seq;
        job.rows[i].index = job.of[i]->from.index;
        job.of[i]->unsure = true;
    }
    pthread_mutex_unlock(&n->lock);
    rc = job.count > 0 ? rv__call_write(n->engine, run_take, NULL, &job, NULL) : RV_ENOTFOUND;
    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; i < job.count && rc == RV_OK; i++) {
        struct mark *mark = job.of[i];
        const struct position at = { job.rows[i].seq, job.rows[i].index };
        mark->unsure = false;
        if (!job.rows[i].ours)
            continue;
        if (!has_marks(n) || is_after(n->read, at))
            go_back_to(n, at);
        mark->ours = mark->fresh = true;
        mark->done = mark->kept = at;
    }
    pthread_mutex_unlock(&n->lock);
    job_done(&job);
}

/* Up to where everything was delivered. The notices of a mark that was lost and taken again are not in order. Call with
 * the lock held. */
static struct position told_for(const struct rv__notify *n, const struct mark *mark)
{
    struct position told = read_for(n, mark);
    for (const struct notice *notice = n->first; notice != NULL; notice = notice->next)
        if (notice->mark == mark && is_after(told, notice->before))
            told = notice->before;
    return told;
}

static bool has_moved(struct rv__notify *n, struct mark *mark)
{
    return mark->ours && (is_after(told_for(n, mark), mark->kept) || mark->ends);
}

static int run_move(struct rv__call *call)
{
    struct marks_job *job = call->arg;
    return rv__store_move_marks(call->engine->store, job->rows, job->count, &call->err);
}

static void drop(struct rv__notify *n, struct notice *gone);

/* Another member has the mark, and sends what waits here. What is being sent is sent twice. Call with the lock held. */
static void lose(struct rv__notify *n, struct mark *mark)
{
    mark->ours = false;
    for (struct notice *notice = n->first, *next; notice != NULL; notice = next) {
        next = notice->next;
        if (notice->mark == mark && notice->phase == NOTICE_WAITS)
            drop(n, notice);
    }
}

static bool is_pending(const struct rv__notify *n, const struct mark *mark)
{
    const struct notice *notice = n->first;
    while (notice != NULL && notice->mark != mark)
        notice = notice->next;
    return notice != NULL;
}

/* `last`: the engine has ended, so its writer may be used directly. */
static void move_marks(struct rv__notify *n, bool last)
{
    int64_t now_ms = rv__mono_ms(n->engine->clock);
    struct marks_job job;
    if (!last && now_ms < n->kept_ms + KEEP_MS)
        return;
    job_init(n, has_moved, &job);
    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; i < job.count; i++) {
        struct position at = told_for(n, job.of[i]);
        bool own = last && n->engine->only_run[0] != '\0';
        job.rows[i].seq = at.seq;
        job.rows[i].index = at.index;
        job.rows[i].gone = (job.of[i]->ends || own) && !is_pending(n, job.of[i]);
    }
    pthread_mutex_unlock(&n->lock);
    n->kept_ms = now_ms;
    int rc = job.count == 0 ? RV_ENOTFOUND
             : last         ? rv__store_move_marks(n->engine->store, job.rows, job.count, NULL)
                            : rv__call_write(n->engine, run_move, NULL, &job, NULL);
    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; i < job.count && rc == RV_OK; i++) {
        job.of[i]->kept = (struct position){ job.rows[i].seq, job.rows[i].index };
        if (!job.rows[i].ours)
            lose(n, job.of[i]);
    }
    pthread_mutex_unlock(&n->lock);
    job_done(&job);
}

/* --------------------------------------------------------------------------------- notices --- */

static void notice_free(struct notice *notice)
{
    rv__buf_done(&notice->answer);
    rv__arena_done(&notice->arena);
    rv__free(notice);
}

static const char *copy_text(struct rv__arena *arena, struct rv__str text)
{
    return rv__arena_dup(arena, text.at, text.len);
}

/* Add a notice that waits. Needs no lock, since only this thread adds. Without memory it is added when the feed is
 * read again. */
static bool add_notice(struct rv__notify *n, struct mark *mark, const struct rv__wrap *wrap,
                       const struct rv__listener *to, uint32_t number, enum rv__lifecycle type,
                       const struct rv__heard *h)
{
    struct notice *notice = rv__zalloc(1, sizeof *notice);
    struct rv__buf json;
    if (notice == NULL)
        return false;
    *notice = (struct notice){
        .of = n, .mark = mark, .before = read_for(n, mark), .type = type, .listener = number
    };
    snprintf(notice->run_id, sizeof notice->run_id, "%s", h->event->run_id);
    rv__arena_init(&notice->arena, SIZE_MAX); /* bounded by the event */
    rv__buf_init(&notice->answer, ANSWER_BYTES + 1);
    rv__buf_init(&json, SIZE_MAX / 8);
    rv__lifecycle_json(&json, type, h);
    notice->path = copy_text(&notice->arena, rv__str(h->event->path));
    notice->workflow = copy_text(&notice->arena, rv__str(h->event->workflow));
    notice->manifest = copy_text(&notice->arena, wrap->name);
    bool good = json.rc == RV_OK && notice->manifest != NULL &&
                rv__str_copy(&notice->arena, rv__buf_view(&json), &notice->json) == RV_OK &&
                notice->path != NULL && notice->workflow != NULL;
    if (good && !rv__str_none(to->command))
        good = rv__str_copy(&notice->arena, to->command, &notice->command) == RV_OK;
    else if (good)
        good = (notice->webhook = copy_text(&notice->arena, to->webhook)) != NULL;
    rv__buf_done(&json);
    if (!good) {
        notice_free(notice);
        return false;
    }
    pthread_mutex_lock(&n->lock);
    struct notice **end = &n->first;
    while (*end != NULL)
        end = &(*end)->next;
    *end = notice;
    n->count++;
    pthread_mutex_unlock(&n->lock);
    return true;
}

/* Make notices for the listeners of one workflow. `number`: the index of the first of them in the plan. */
static void take_for(struct rv__notify *n, struct mark *mark, const struct rv__wrap *wrap,
                     uint32_t number, enum rv__lifecycle type, const struct rv__heard *h)
{
    for (uint32_t i = 0; i < wrap->listener_count; i++)
        while ((wrap->listeners[i].events & (1u << type)) &&
               !add_notice(n, mark, wrap, &wrap->listeners[i], number + i, type, h))
            rv__clock_sleep_ms(FEED_MS); /* until there is memory */
}

static struct rv__str next_part(struct rv__str *path)
{
    const char *colon = path->len > 0 ? memchr(path->at, ':', path->len) : NULL;
    size_t len = colon != NULL ? (size_t)(colon - path->at) : path->len;
    struct rv__str part = { path->at, len };
    size_t skip = colon != NULL ? len + 1 : len;
    *path = (struct rv__str){ path->at + skip, path->len - skip };
    return part;
}

/* Whether this path leads to the body, or to something in it. The path of a body in the plan has "run" or "body"
 * where the path of an instance has the iteration. */
static bool leads_to(struct rv__str body, struct rv__str path, bool *below)
{
    while (body.len > 0) {
        struct rv__str want = next_part(&body), part = next_part(&path);
        bool iteration = (rv__str_is(want, "run") || rv__str_is(want, "body")) && part.len > 4 &&
                         memcmp(part.at, "iter", 4) == 0;
        bool numbered = (rv__str_is(want, "turn") || rv__str_is(want, "call")) && part.len > 4 &&
                        memcmp(part.at, want.at, 4) == 0;
        if (!rv__str_eq(want, part) && !iteration && !numbered)
            return false;
    }
    *below = path.len > 0;
    return true;
}

/* `end`: the event is the end of a nested workflow, and `path` is its own. Otherwise the event is about something in
 * one. */
static void take_nested(struct rv__notify *n, struct mark *mark, const struct rv__plan *plan,
                        bool end, enum rv__lifecycle type, const struct rv__heard *h)
{
    uint32_t number = plan->body.wrap->listener_count;
    struct rv__buf path;
    rv__buf_init(&path, SIZE_MAX / 8); /* bounded by the plan's depth */
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct rv__node *node = plan->nodes[i];
        for (uint32_t b = 0; b < node->body_count; b++) {
            const struct rv__wrap *wrap = node->bodies[b].wrap;
            bool below = false;
            if (wrap == NULL || wrap->listener_count == 0)
                continue;
            rv__buf_reset(&path);
            rv__body_path(&node->bodies[b], NULL, &path);
            while (rv__buf_err(&path, NULL) < 0) { /* until there is memory */
                rv__clock_sleep_ms(FEED_MS);
                rv__buf_reset(&path);
                rv__body_path(&node->bodies[b], NULL, &path);
            }
            if (leads_to(rv__buf_view(&path), rv__str(h->event->path), &below) && below != end)
                take_for(n, mark, wrap, number, type, h);
            number += wrap->listener_count;
        }
    }
    rv__buf_done(&path);
}

static struct known_run *known_of(struct rv__notify *n, const char *run_id)
{
    return &n->known[rv__str_hash(RV__HASH_START, rv__str(run_id)) % KNOWN_RUNS];
}

static int see_nothing(void *arg, const struct rv__store_mark *row)
{
    (void)arg;
    (void)row;
    return RV_OK;
}

/* After an answer about a run: whether to ask again, since the store failed; this waits before that. What is deleted,
 * damaged or too large is skipped. If the engine closes, the next process reads the event. */
static bool asks_again(struct rv__notify *n, int rc, int *asks)
{
    struct rv__reading *reading = n->engine->reading;
    if (rc == RV_OK || rc == RV_ENOTFOUND || rc == RV_EPARSE || rc == RV_ETOOBIG)
        return false;
    n->cut = atomic_load(&n->closes);
    if (n->cut)
        return false;
    pthread_mutex_lock(&reading->lock);
    bool answers = rv__store_marks(reading->store, see_nothing, NULL, NULL) == RV_OK;
    pthread_mutex_unlock(&reading->lock);
    if (rc == RV_ESTORE && answers && ++*asks >= ASKS_MOST)
        return false;
    rv__clock_sleep_ms(FEED_MS);
    return true;
}

/* Make notices for all listeners of a run. */
static void take_event(struct rv__notify *n, bool end, enum rv__lifecycle type,
                       const struct rv__heard *h)
{
    struct rv__reading *reading = n->engine->reading;
    struct rv__read_run run;
    const char *id = h->event->run_id;
    struct known_run *known = known_of(n, id);
    bool is_known = strcmp(known->run_id, id) == 0;
    pthread_mutex_lock(&n->lock);
    struct mark *mark = mark_of(n, id, h->event->workflow);
    pthread_mutex_unlock(&n->lock);
    if (n->cut || (is_known && (!known->listens || (end && !known->nested))) || mark == NULL ||
        !rv__engine_drives(n->engine, id))
        return;
    const struct position at = { h->event->seq, h->event->index };
    if (at.seq > 0 ? !is_after(at, mark->done) : !mark->fresh) /* 0: it is undecided */
        return;
    int rc, asks = 0;
    do {
        pthread_mutex_lock(&reading->lock);
        rc = rv__read_run(&reading->plans, reading->store, rv__str(id), &run, NULL);
        pthread_mutex_unlock(&reading->lock);
    } while (asks_again(n, rc, &asks));
    if (rc < 0)
        return;
    const struct rv__plan *plan = run.plan->plan;
    if (!is_known) {
        snprintf(known->run_id, sizeof known->run_id, "%s", id);
        known->nested = rv__plan_listens(plan, true);
        known->listens = rv__plan_listens(plan, false);
    }
    if (!end)
        take_for(n, mark, plan->body.wrap, 0, type, h);
    if (known->nested)
        take_nested(n, mark, plan, end, type, h);
    rv__plan_cache_put(&reading->plans, run.plan);
}

static void take(void *arg, enum rv__lifecycle type, const struct rv__heard *h)
{
    take_event(arg, false, type, h);
}

/* The mark of a run is deleted when the run has ended and everything was sent. */
static void take_end_of_run(struct rv__notify *n, const rv_event *event)
{
    if (strcmp(event->kind, "run.completed") != 0 && strcmp(event->kind, "run.failed") != 0 &&
        strcmp(event->kind, "run.cancelled") != 0)
        return;
    pthread_mutex_lock(&n->lock);
    struct mark *mark = mark_of(n, event->run_id, event->workflow);
    if (mark != NULL && mark->left && strncmp(mark->name, OF_RUN, strlen(OF_RUN)) == 0)
        mark->ends = true;
    pthread_mutex_unlock(&n->lock);
}

/* The end of a nested workflow is the end of a node. */
static void take_end_of_nested(struct rv__notify *n, const rv_event *event)
{
    struct rv__heard h = { .event = event, .attempt = -1, .succeed = -1 };
    bool failed = strcmp(event->kind, "node.failed") == 0;
    if (failed)
        (void)rv__json_get(rv__str(event->json), "error", &h.error); /* there may be none */
    if (failed || strcmp(event->kind, "node.completed") == 0)
        take_event(n, true, failed ? LIFE_ABORTED : LIFE_COMPLETED, &h);
}

/* When a run ends, nested workflows that were running are cancelled with it, without an event of their own. */
static void take_cancelled_below(struct rv__notify *n, const rv_event *end, const char *parent)
{
    rv_node_list *list = NULL;
    for (size_t offset = 0;; offset += CANCELLED_PAGE) {
        int rc, asks = 0;
        do {
            rc = rv__nodes(n->engine->reading, end->run_id,
                           RV_NODE_QUERY(.parent = parent, .status = "cancelled", .offset = offset,
                                         .limit = CANCELLED_PAGE),
                           rv__wall_ms(n->engine->clock), &list, NULL);
        } while (asks_again(n, rc, &asks));
        if (rc < 0)
            return;
        for (size_t i = 0; i < list->count; i++) {
            const rv_node *node = &list->nodes[i];
            rv_event event = *end;
            event.path = node->path;
            if (node->started_at > 0)
                take_event(n, true, LIFE_ABORTED,
                           &(struct rv__heard){ .event = &event, .attempt = -1, .succeed = -1 });
            if (node->started_at > 0 && node->children > 0)
                take_cancelled_below(n, end, node->path);
        }
        bool last = offset + CANCELLED_PAGE >= list->total;
        rv_node_list_free(list);
        if (last)
            return;
    }
}

static void take_cancelled(struct rv__notify *n, const rv_event *event)
{
    pthread_mutex_lock(&n->lock);
    bool ours = mark_of(n, event->run_id, event->workflow) != NULL;
    pthread_mutex_unlock(&n->lock);
    const struct known_run *known = known_of(n, event->run_id);
    if (!n->cut &&
        (strcmp(event->kind, "run.cancelled") == 0 || strcmp(event->kind, "run.failed") == 0) &&
        ours && strcmp(known->run_id, event->run_id) == 0 && known->nested)
        take_cancelled_below(n, event, "");
}

/* Whether there is a notice of this already. */
static bool is_waiting(struct rv__notify *n, enum rv__lifecycle type, const rv_event *event)
{
    pthread_mutex_lock(&n->lock);
    const struct notice *notice = n->first;
    while (notice != NULL && (notice->type != type || strcmp(notice->run_id, event->run_id) != 0 ||
                              strcmp(notice->path, event->path) != 0))
        notice = notice->next;
    pthread_mutex_unlock(&n->lock);
    return notice != NULL;
}

/* Make notices for suspensions from before this process started, of marks that were taken just now. Later ones come
 * with the feed. */
static void take_undecided(void *arg, enum rv__lifecycle type, const struct rv__heard *h)
{
    struct rv__notify *n = arg;
    if (h->event->at <= n->begun_ms && !is_waiting(n, type, h->event))
        take(arg, type, h);
}

/* --------------------------------------------------------------------------------- sending --- */

/* A notice was sent, or has failed. Thread: that of the I/O loop. */
static void is_over(struct notice *notice, bool good, struct rv__str said)
{
    struct rv__notify *n = notice->of;
    pthread_mutex_lock(&n->lock);
    notice->good = good;
    rv__buf_reset(&notice->answer);
    rv__buf_str(&notice->answer,
                said.len <= ANSWER_BYTES ? said : (struct rv__str){ said.at, ANSWER_BYTES });
    notice->phase = NOTICE_OVER;
    rv_cancel_fire(n->wake, RV_ECANCELED, "a listener was told");
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

static void command_done(struct rv__command *command, const struct rv__command_result *result)
{
    struct notice *notice = RV__CONTAINER(command, struct notice, run);
    bool good = result->error.code == 0 && result->end == RV__COMMAND_EXITED && result->status == 0;
    is_over(notice, good,
            good                      ? result->output
            : result->error.code != 0 ? rv__str(result->error.message)
            : result->tail.len > 0    ? result->tail
                                      : rv__str("it did not exit with 0"));
}

static void fetch_done(struct rv__fetch *fetch, const struct rv__fetch_result *result)
{
    struct notice *notice = RV__CONTAINER(fetch, struct notice, fetch);
    bool answered = result->end == RV__FETCH_ANSWERED;
    bool good = answered && result->status >= 200 && result->status < 300;
    char why[64];
    snprintf(why, sizeof why, "it answered with status %d", result->status);
    is_over(notice, good, good ? result->body : answered ? rv__str(why) : rv__str(result->error));
}

struct place_ask {
    const struct notice *notice;
    char directory[DIRECTORY];
};

/* The folder of its manifest's file, for relative commands. RV_ENOTFOUND: the workflow is not registered. */
static int take_place(struct rv__call *call)
{
    struct place_ask *ask = call->arg;
    const struct rv__run *run = rv__run_find(call->engine, ask->notice->run_id);
    struct rv__registry *registry = run != NULL && run->plan != NULL ? run->plan->registry
                                                                     : call->engine->registry;
    const struct rv__registered *found = rv__registry_find(registry,
                                                           rv__str(ask->notice->manifest));
    if (found == NULL) /* it is nested, and not registered by itself */
        found = rv__registry_find(registry, rv__str(ask->notice->workflow));
    if (found == NULL)
        return rv__fail(&call->err, RV_ENOTFOUND, "its manifest is not registered here");
    snprintf(ask->directory, sizeof ask->directory, "%s", found->directory);
    return RV_OK;
}

static int send_command(struct rv__notify *n, struct notice *notice, rv_error *err)
{
    struct place_ask ask = { .notice = notice };
    struct rv__json_iter it;
    struct rv__str word, text;
    size_t count = 0;
    int rc = rv__call_ask(n->engine, take_place, &ask, err);
    if (rc < 0)
        return rc;
    const char **argv = rv__arena_zalloc(&notice->arena, rv__json_count(notice->command) + 1,
                                         sizeof *argv);
    char **env = rv__arena_zalloc(&notice->arena, 3, sizeof *env);
    if (argv == NULL || env == NULL)
        return rv__nomem(err);
    rv__json_iter_init(&it, notice->command);
    while (rv__json_next(&it, NULL, &word)) {
        if (rv__json_string(word, &notice->arena, &text) < 0 ||
            (argv[count++] = copy_text(&notice->arena, text)) == NULL)
            return rv__nomem(err);
    }
    struct rv__buf pair;
    rv__buf_init(&pair, SIZE_MAX / 8);
    rv__buf_fmt(&pair, "RIVAL_RUN_ID=%s", notice->run_id);
    env[0] = rv__arena_dup(&notice->arena, rv__buf_view(&pair).at, pair.len);
    rv__buf_reset(&pair);
    rv__buf_fmt(&pair, "RIVAL_WORKFLOW=%s", notice->workflow);
    env[1] = rv__arena_dup(&notice->arena, rv__buf_view(&pair).at, pair.len);
    rv__buf_done(&pair);
    const char *directory = ask.directory[0] != '\0'
                                ? copy_text(&notice->arena, rv__str(ask.directory))
                                : NULL;
    if (env[0] == NULL || env[1] == NULL || (ask.directory[0] != '\0' && directory == NULL))
        return rv__nomem(err);
    notice->run = (struct rv__command){ .argv = argv,
                                        .env = (const char *const *)env,
                                        .cwd = directory,
                                        .input = notice->json,
                                        .max_output = ANSWER_BYTES,
                                        .timeout_ms = TAKES_MS,
                                        .done = command_done };
    return rv__command_start(n->io, &notice->run);
}

static int send_webhook(struct rv__notify *n, struct notice *notice)
{
    static const char *const headers[] = { "Content-Type: application/json", NULL };
    notice->fetch = (struct rv__fetch){ .url = notice->webhook,
                                        .method = "POST",
                                        .headers = headers,
                                        .body = notice->json,
                                        .max_bytes = ANSWER_BYTES,
                                        .timeout_ms = TAKES_MS,
                                        .done = fetch_done };
    return rv__fetch_start(n->io, &notice->fetch);
}

/* Whether no earlier notice of the same run and listener is still to be delivered. */
static bool has_turn(const struct rv__notify *n, const struct notice *notice)
{
    for (const struct notice *other = n->first; other != notice; other = other->next)
        if (other->listener == notice->listener && strcmp(other->run_id, notice->run_id) == 0)
            return false;
    return true;
}

/* A notice that may be sent now; NULL: none. *due_ms: when the next one may be sent. Call with the lock held. */
static struct notice *next_due(struct rv__notify *n, int64_t *due_ms)
{
    int64_t now_ms = rv__mono_ms(n->engine->clock);
    *due_ms = INT64_MAX;
    for (struct notice *notice = n->first; notice != NULL && n->sent < AT_ONCE;
         notice = notice->next) {
        if (notice->phase != NOTICE_WAITS || !has_turn(n, notice))
            continue;
        if (notice->due_ms <= now_ms)
            return notice;
        if (notice->due_ms < *due_ms)
            *due_ms = notice->due_ms;
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------- answers --- */

/* Take an answer {"action": …, "reason"?: …} as the decision about a suspension. Anything else decides nothing.
 * False: it could not be taken now. */
static bool decide(struct rv__notify *n, struct notice *notice)
{
    struct rv__str answer = rv__buf_view(&notice->answer), json, value, action, reason;
    struct rv__arena arena;
    const char *why = NULL;
    int decision = 0;
    rv_error err;
    if (notice->type != LIFE_SUSPEND ||
        rv__json_check(answer, RV__JSON_VALUE_DEPTH, &json, NULL) < 0 ||
        rv__json_type(json) != RV__JSON_OBJECT || !rv__json_get(json, "action", &value))
        return true;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the answer */
    if (rv__json_type(value) != RV__JSON_STRING || rv__json_string(value, &arena, &action) < 0)
        action = rv__str("");
    if (rv__json_get(json, "reason", &value) && rv__json_type(value) == RV__JSON_STRING &&
        rv__json_string(value, &arena, &reason) == RV_OK)
        why = copy_text(&arena, reason);
    while (decision < 4 && !rv__str_is(action, rv__decisions[decision]))
        decision++;
    int rc = decision < 4
                 ? rv_decide(n->engine, notice->run_id, decision,
                             RV_DECIDE_OPTS(.path = notice->path, .reason = why, .by = "listener"),
                             &err)
                 : rv__fail(&err, RV_EINVAL, "there is no action '%.60s'", action.at);
    if (rc == RV_EINVAL) {
        char text[400];
        snprintf(text, sizeof text, "a listener for suspend decides nothing: %s", err.message);
        (void)rv__run_say(n->engine, notice->run_id, notice->path,
                          text); /* may fail: it is only a line in the log */
    }
    bool taken = rc == RV_OK || rc == RV_EINVAL || rc == RV_ENOTFOUND || rc == RV_ESTATE ||
                 rc == RV_ETOOBIG || rc == RV_EPARSE;
    rv__arena_done(&arena);
    if (!taken) {
        rv__buf_reset(&notice->answer);
        rv__buf_fmt(&notice->answer, "its decision could not be taken: %s", err.message);
    }
    return taken;
}

static void give_up(struct rv__notify *n, const struct notice *notice)
{
    char text[600];
    snprintf(text, sizeof text, "a listener was not told of %s, after %d tries: %.400s",
             rv__lifecycle_name(notice->type), notice->tries,
             notice->answer.len > 0 ? rv__buf_view(&notice->answer).at : "");
    (void)rv__run_say(n->engine, notice->run_id, notice->path,
                      text); /* only if the run is in memory */
}

/* A notice that has ended, removed from the list if it needs no more tries; NULL: none. Call with the lock held. */
static struct notice *take_over(struct rv__notify *n)
{
    struct notice *notice = n->first;
    while (notice != NULL && notice->phase != NOTICE_OVER)
        notice = notice->next;
    return notice;
}

static void drop(struct rv__notify *n, struct notice *gone)
{
    struct notice **at = &n->first;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    n->count--;
    notice_free(gone);
    pthread_cond_broadcast(&n->changed);
}

/* Send it again later, unless it was tried often enough. Call with the lock held. */
static void put_off(struct rv__notify *n, struct notice *notice)
{
    int64_t wait_ms = FIRST_WAIT_MS;
    for (int i = 1; i < notice->tries && wait_ms < MOST_WAIT_MS; i++)
        wait_ms *= 2;
    notice->due_ms = rv__mono_ms(n->engine->clock) +
                     (wait_ms < MOST_WAIT_MS ? wait_ms : MOST_WAIT_MS);
    notice->phase = NOTICE_WAITS;
}

static void settle(struct rv__notify *n)
{
    struct notice *notice;
    pthread_mutex_lock(&n->lock);
    while ((notice = take_over(n)) != NULL) {
        notice->phase = NOTICE_SENT; /* so that no other thread touches it */
        n->sent--;
        pthread_mutex_unlock(&n->lock);
        bool good = notice->good && decide(n, notice);
        bool done = good || notice->tries >= TRIES || !notice->mark->ours;
        if (!good && notice->tries >= TRIES)
            give_up(n, notice);
        pthread_mutex_lock(&n->lock);
        if (done)
            drop(n, notice);
        else
            put_off(n, notice);
    }
    pthread_mutex_unlock(&n->lock);
}

/* Send all notices that are due. Returns when the next one is due, on the monotonic clock. */
static int64_t send_due(struct rv__notify *n)
{
    struct notice *notice;
    int64_t due_ms;
    rv_error err;
    pthread_mutex_lock(&n->lock);
    while ((notice = next_due(n, &due_ms)) != NULL) {
        notice->phase = NOTICE_SENT;
        notice->tries++;
        n->sent++;
        pthread_mutex_unlock(&n->lock);
        int rc = notice->webhook != NULL ? send_webhook(n, notice) : send_command(n, notice, &err);
        if (rc < 0 && notice->webhook != NULL)
            (void)rv__fail(&err, rc, "%s", rv_strerror(rc));
        if (rc < 0)
            is_over(notice, false, rv__str(err.message));
        pthread_mutex_lock(&n->lock);
    }
    pthread_mutex_unlock(&n->lock);
    return due_ms;
}

/* ------------------------------------------------------------------------------- the thread --- */

static void renew(struct rv__notify *n)
{
    rv_cancel *fresh = rv_cancel_new(NULL);
    if (fresh == NULL) {
        rv__clock_sleep_ms(FEED_MS);
        return;
    }
    pthread_mutex_lock(&n->lock);
    rv_cancel_free(n->wake);
    n->wake = fresh;
    pthread_mutex_unlock(&n->lock);
}

/* Start nothing new, and wait some time for notices that are being sent. */
static void finish(struct rv__notify *n)
{
    int64_t until_ms = rv__mono_ms(n->engine->clock) + CLOSE_MS;
    for (;;) {
        settle(n);
        int64_t left_ms = until_ms - rv__mono_ms(n->engine->clock);
        pthread_mutex_lock(&n->lock);
        bool idle = n->sent == 0;
        pthread_mutex_unlock(&n->lock);
        if (idle || left_ms <= 0)
            break;
        if (rv_cancel_wait(n->wake, left_ms))
            renew(n);
    }
}

/* Open the feed where the marks are. If retention has deleted that position, read what is left from its beginning. */
static int open_feed(struct rv__notify *n, rv_error *err)
{
    rv_feed_opts opts = { .size = sizeof opts,
                          .from = n->read.seq > 0 ? RV_FROM_POSITION : RV_FROM_OLDEST,
                          .seq = n->read.seq,
                          .index = n->read.index,
                          .no_logs = true };
    int rc = rv_feed_open(n->engine, &opts, &n->feed, err);
    if (rc == RV_ENOTFOUND) {
        pthread_mutex_lock(&n->lock);
        go_back_to(n, (struct position){ 0, 0 }); /* the marks ignore what they had */
        pthread_mutex_unlock(&n->lock);
        opts.from = RV_FROM_OLDEST;
        rc = rv_feed_open(n->engine, &opts, &n->feed, err);
    }
    return rc;
}

/* Take marks that no member has, and send undecided suspensions of their runs. */
static void renew_marks(struct rv__notify *n)
{
    bool fresh = false;
    look_for_marks(n);
    pthread_mutex_lock(&n->lock);
    for (const struct mark *mark = n->marks; mark != NULL; mark = mark->next)
        fresh |= mark->ours && mark->fresh;
    pthread_mutex_unlock(&n->lock);
    if (!fresh || rv__lifecycle_undecided(n->engine, take_undecided, n) < 0)
        return; /* if that failed, it is tried at the next check */
    pthread_mutex_lock(&n->lock);
    for (struct mark *mark = n->marks; mark != NULL; mark = mark->next)
        mark->fresh = false;
    pthread_mutex_unlock(&n->lock);
}

/* What the thread must know before it waits. */
struct outlook {
    bool full;   /* there are NOTICES_MOST notices */
    bool has;    /* a mark is ours */
    bool lacks;  /* a mark is not ours */
    bool fresh;  /* undecided suspensions of a mark are still to be read */
    bool unkept; /* a mark must be moved in the store */
    bool added;
    uint64_t asked; /* flush_asked */
};

static struct outlook look_around(struct rv__notify *n)
{
    struct outlook out = { 0 };
    pthread_mutex_lock(&n->lock);
    out.full = n->count >= NOTICES_MOST;
    out.asked = n->flush_asked;
    out.added = n->added;
    for (struct mark *mark = n->marks; mark != NULL; mark = mark->next) {
        out.has |= mark->ours;
        out.lacks |= !mark->ours && !mark->ends;
        out.fresh |= mark->ours && mark->fresh;
        out.unkept |= mark->ours && (mark->ends || is_after(read_for(n, mark), mark->kept));
    }
    pthread_mutex_unlock(&n->lock);
    return out;
}

/* Whether everything was read once the feed is at its end. */
static bool may_flush(const struct rv__notify *n, const struct outlook *out)
{
    return !out->full && !out->fresh && (!out->lacks || n->engine->member.on);
}

/* How long the thread may wait for an event; -1: without limit. */
static int64_t wait_ms_of(const struct rv__notify *n, const struct outlook *out, int64_t due_ms)
{
    int64_t now_ms = rv__mono_ms(n->engine->clock);
    if ((out->lacks || out->fresh) && n->look_ms < due_ms)
        due_ms = n->look_ms;
    if (out->unkept && n->kept_ms + KEEP_MS < due_ms)
        due_ms = n->kept_ms + KEEP_MS;
    if (out->full && now_ms + KEEP_MS < due_ms)
        due_ms = now_ms + KEEP_MS;
    if (out->asked != n->flushed && may_flush(n, out))
        return 0;
    return due_ms == INT64_MAX ? -1 : due_ms > now_ms ? due_ms - now_ms : 0;
}

/* The feed was read to its end: answer those who wait for that. */
static void flush(struct rv__notify *n, uint64_t asked)
{
    pthread_mutex_lock(&n->lock);
    n->flushed = asked;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

/* Do what is due, then wait for the next event and make its notices. RV_ECLOSED: the engine closes. */
static int step(struct rv__notify *n)
{
    rv_event event;
    rv_error err;
    int rc = RV_OK;
    settle(n);
    struct outlook out = look_around(n);
    if (out.added || ((out.lacks || out.fresh) && rv__mono_ms(n->engine->clock) >= n->look_ms))
        renew_marks(n);
    int64_t due_ms = send_due(n);
    move_marks(n, false);
    out = look_around(n);
    int64_t wait_ms = wait_ms_of(n, &out, due_ms);
    if (atomic_load(&n->closes) && (out.full || !out.has))
        return RV_ECLOSED; /* the next process sends the rest */
    if (out.has && !out.full && n->feed == NULL)
        rc = open_feed(n, &err);
    if (rc == RV_OK && out.has && !out.full)
        rc = rv_feed_next(n->feed, wait_ms, n->wake, &event, &err);
    else if (rc == RV_OK)
        rc = rv_cancel_wait(n->wake, wait_ms) ? RV_ECANCELED : RV_ETIMEDOUT;
    if (rc == RV_OK) {
        rv__lifecycle_of_event(&event, take, n);
        take_end_of_nested(n, &event);
        take_cancelled(n, &event);
        if (n->cut)
            return RV_ECLOSED;
        take_end_of_run(n, &event);
        pthread_mutex_lock(&n->lock);
        n->read = (struct position){ event.seq, event.index };
        pthread_mutex_unlock(&n->lock);
    } else if (rc == RV_ECANCELED) {
        renew(n);
    } else if (rc == RV_ETIMEDOUT && may_flush(n, &out)) {
        flush(n, out.asked);
    } else if (rc == RV_ENOTFOUND) { /* deleted by retention */
        rv_feed_close(n->feed);
        n->feed = NULL;
    } else if (rc != RV_ECLOSED && rc != RV_ETIMEDOUT) {
        rv__clock_sleep_ms(FEED_MS); /* nothing was skipped: it is read again */
    }
    return rc;
}

static void *notify(void *arg)
{
    struct rv__notify *n = arg;
    while (step(n) != RV_ECLOSED)
        continue;
    finish(n);
    return NULL;
}

/* ------------------------------------------------------------------------------- life time --- */

static void notify_free(struct rv__notify *n)
{
    if (n->io != NULL)
        rv__io_free(n->io); /* ends what is still being sent */
    while (n->first != NULL)
        drop(n, n->first);
    while (n->marks != NULL) {
        struct mark *mark = n->marks;
        n->marks = mark->next;
        rv__free(mark->name);
        rv__free(mark);
    }
    rv_feed_close(n->feed);
    rv_cancel_free(n->wake);
    pthread_mutex_destroy(&n->lock);
    pthread_cond_destroy(&n->changed);
    rv__free(n);
}

/* A new mark begins at the end of the feed. */
static int find_begin(struct rv__notify *n, rv_error *err)
{
    rv_feed *feed;
    int rc = rv_feed_open(n->engine, RV_FEED_OPTS(.no_logs = true), &feed, err);
    if (rc < 0)
        return rc;
    rv_feed_position(feed, &n->begun.seq, &n->begun.index);
    rv_feed_close(feed);
    return RV_OK;
}

static int notify_new(rv_engine *e, struct rv__notify **ret, rv_error *err)
{
    struct rv__notify *n = rv__zalloc(1, sizeof *n);
    if (n == NULL)
        return rv__nomem(err);
    n->engine = e;
    n->begun_ms = rv__wall_ms(e->clock);
    pthread_mutex_init(&n->lock, NULL);
    if (rv__cond_init(&n->changed) < 0) {
        pthread_mutex_destroy(&n->lock);
        rv__free(n);
        return rv__nomem(err);
    }
    const struct rv__io_opts opts = { .max_processes = AT_ONCE,
                                      .deny_private = e->services.http_deny_private };
    n->wake = rv_cancel_new(NULL);
    int rc = n->wake == NULL ? rv__nomem(err) : rv__io_new(&opts, &n->io, err);
    if (rc == RV_OK)
        rc = find_begin(n, err);
    if (rc < 0)
        notify_free(n);
    else
        *ret = n;
    return rc;
}

static bool may_tell(const rv_engine *e)
{
    return e->around.threads && !e->read_only && !e->idle && !e->stopped;
}

/* Add this mark; start the thread if there is none. */
static int begin_with(rv_engine *e, const char *of, struct rv__str what, bool left, rv_error *err)
{
    struct rv__notify *n = atomic_load(&e->notify);
    int rc = RV_OK;
    if (!may_tell(e))
        return RV_OK;
    if (n != NULL) {
        pthread_mutex_lock(&n->lock);
        rc = add_mark(n, of, what, left, err);
        rv_cancel_fire(n->wake, RV_ECANCELED, "another workflow");
        pthread_mutex_unlock(&n->lock);
        return rc;
    }
    rc = notify_new(e, &n, err);
    if (rc < 0)
        return rc;
    rc = add_mark(n, of, what, left, err);
    if (rc == RV_OK && pthread_create(&n->thread, NULL, notify, n) != 0)
        rc = rv__fail(err, RV_ESYS, "no thread could be made for the listeners of manifests");
    if (rc < 0)
        notify_free(n);
    else
        atomic_store(&e->notify, n);
    return rc;
}

int rv__notify_begin(rv_engine *e, struct rv__str workflow, rv_error *err)
{
    return e->only_run[0] != '\0' ? begin_with(e, OF_RUN, rv__str(e->only_run), false, err)
                                  : begin_with(e, OF_WORKFLOW, workflow, false, err);
}

struct leaving {
    rv_engine *engine;
    struct rv__buf names; /* each with a NUL */
};

static int see_left(void *arg, const struct rv__store_mark *row)
{
    struct leaving *leaving = arg;
    rv__buf_str(&leaving->names, row->name);
    rv__buf_char(&leaving->names, '\0');
    return leaving->names.rc;
}

/* Continue with a mark of an earlier process. Of several members, only those that have a workflow take its mark. */
static int take_left(rv_engine *e, const char *name, rv_error *err)
{
    size_t run_len = strlen(OF_RUN), workflow_len = strlen(OF_WORKFLOW);
    bool of_run = strncmp(name, OF_RUN, run_len) == 0;
    if (of_run && (e->only_run[0] == '\0' || strcmp(e->only_run, name + run_len) == 0))
        return begin_with(e, OF_RUN, rv__str(name + run_len), true, err);
    if (strncmp(name, OF_WORKFLOW, workflow_len) == 0 && e->only_run[0] == '\0' && !e->member.on)
        return begin_with(e, OF_WORKFLOW, rv__str(name + workflow_len), true, err);
    return RV_OK;
}

int rv__notify_reopen(rv_engine *e, rv_error *err)
{
    struct leaving leaving = { .engine = e };
    if (!may_tell(e))
        return RV_OK;
    rv__buf_init(&leaving.names, SIZE_MAX / 8); /* bounded by the workflows there were */
    pthread_mutex_lock(&e->reading->lock);
    int rc = rv__store_marks(e->reading->store, see_left, &leaving, err);
    pthread_mutex_unlock(&e->reading->lock);
    if (leaving.names.rc < 0)
        rc = rv__buf_err(&leaving.names, err);
    const char *at = rv__buf_view(&leaving.names).at;
    for (size_t i = 0; i < leaving.names.len && rc == RV_OK; i += strlen(at + i) + 1)
        rc = take_left(e, at + i, err);
    rv__buf_done(&leaving.names);
    return rc;
}

void rv__notify_close(rv_engine *e)
{
    struct rv__notify *n = atomic_load(&e->notify);
    if (n == NULL)
        return;
    pthread_mutex_lock(&n->lock);
    atomic_store(&n->closes, true);
    rv_cancel_fire(n->wake, RV_ECANCELED, "the engine closes");
    pthread_mutex_unlock(&n->lock);
    pthread_join(n->thread, NULL);          /* the feed has ended, so the thread ends */
    if (!e->commit.gone && e->writing == 0) /* else the desk still uses the store */
        move_marks(n, true);
    pthread_mutex_lock(&n->lock);
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

void rv__notify_free(rv_engine *e)
{
    struct rv__notify *n = atomic_exchange(&e->notify, NULL);
    if (n != NULL)
        notify_free(n);
}

/* Whether the feed was read for request `asked`, and no notice of the run is left. Call with the lock held. */
static bool all_sent(const struct rv__notify *n, const char *run_id, uint64_t asked)
{
    if (n->flushed < asked)
        return false;
    for (const struct notice *notice = n->first; notice != NULL; notice = notice->next)
        if (strcmp(notice->run_id, run_id) == 0)
            return false;
    return true;
}

int rv_listeners_wait(rv_engine *e, const char *run_id, int64_t timeout_ms, rv_error *err)
{
    if (e == NULL || run_id == NULL)
        return rv__fail(err, RV_EINVAL, "rv_listeners_wait: no engine, or no run given");
    struct rv__notify *n = atomic_load(&e->notify);
    if (n == NULL)
        return RV_OK;
    rv__engine_enter(e);
    int64_t until_ms = rv__mono_ms(e->clock) + timeout_ms;
    int rc = RV_OK;
    pthread_mutex_lock(&n->lock);
    uint64_t asked = ++n->flush_asked;
    rv_cancel_fire(n->wake, RV_ECANCELED, "somebody waits");
    while (!all_sent(n, run_id, asked) && rc == RV_OK) {
        int64_t look_ms = rv__mono_ms(e->clock) +
                          KEEP_MS; /* when to check whether the engine has closed */
        if (timeout_ms >= 0 && until_ms < look_ms)
            look_ms = until_ms;
        (void)rv__cond_wait_until(&n->changed, &n->lock, look_ms * 1000000);
        bool closes = atomic_load(&n->closes);
        if (closes || (timeout_ms >= 0 && rv__mono_ms(e->clock) >= until_ms))
            rc = rv__fail(err, closes ? RV_ECLOSED : RV_ETIMEDOUT,
                          "the listeners of run '%.80s' have not been told of everything yet",
                          run_id);
    }
    pthread_mutex_unlock(&n->lock);
    rv__engine_leave(e);
    return rc;
}
