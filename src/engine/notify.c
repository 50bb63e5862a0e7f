/* notify.c: listeners of manifests: commands and webhooks that are told what happens in their runs.
 *
 * One thread follows the feed and makes a notice of each event that a listener of its run asked for. Notices go out by an
 * I/O loop of their own, a few at a time, those of one listener and run in order; what fails is sent again later, longer and longer.
 * The run never waits for any of it.
 *
 *   feed ──▶ notice: waits ──▶ under way ──▶ delivered: an answer to `suspend` decides
 *                      ▲            │ failed, tries left
 *                      └── later ◀──┘         (none left: a line in the run's log)
 *
 * At least once: a file beside the store has the position up to which all was delivered. It is written now and then, so a
 * process that takes over may tell something again. What is undecided is told by every process that begins. ADR 0051. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/store_name.h"
#include "engine/call.h"
#include "engine/control.h"
#include "engine/listen.h"
#include "exec/exec.h"
#include "read/read.h"

enum {
    NOTICES_MOST = 256, /* that wait or are under way: beyond that the feed is not read on */
    AT_ONCE = 16,
    TRIES = 20,           /* about a quarter of an hour */
    FIRST_WAIT_MS = 500,  /* before the second try; then twice as long each time, */
    MOST_WAIT_MS = 60000, /* up to this */
    TAKES_MS = 30000,     /* a command or an answer may take */
    CLOSE_MS = 5000,      /* what is under way when the engine closes */
    KEEP_MS = 1000,       /* between two writings of the position */
    ANSWER_BYTES = 64 << 10,
    KNOWN_RUNS = 256, /* whether they have listeners */
    FEED_MS = 100,    /* after the feed could not be read */
    DIRECTORY = 4096,
};

struct position {
    uint64_t seq, index;
};

struct notice {
    struct notice *next; /* oldest first */
    struct rv__notify *of;
    struct position before; /* of the event before it */
    enum rv__lifecycle type;
    uint32_t listener; /* of the plan */
    char run_id[RV_RUN_ID_SIZE];
    struct rv__arena arena; /* of what follows */
    const char *path, *workflow;
    struct rv__str json;    /* the event */
    struct rv__str command; /* as the plan has it; or */
    const char *webhook;
    int tries;
    int64_t due_ms; /* monotonic */
    enum { NOTICE_WAITS, NOTICE_SENT, NOTICE_OVER } phase;
    bool good;
    struct rv__buf answer; /* what it said, or why it failed */
    struct rv__command run;
    struct rv__fetch fetch;
};

/* Does a run have listeners? Remembered by its id. */
struct known_run {
    char run_id[RV_RUN_ID_SIZE];
    bool listens;
};

struct rv__notify {
    rv_engine *engine;
    struct rv__io *io;
    rv_feed *feed;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct notice *first;
    size_t count, sent;
    rv_cancel *wake; /* fired: something is over, or somebody waits */
    struct position read, kept;
    int64_t kept_ms, begun_ms; /* monotonic; by the wall */
    uint64_t flush_asked, flushed;
    char *file; /* of the position; NULL: none */
    struct known_run known[KNOWN_RUNS];
};

/* -------------------------------------------------------------------------------- position --- */

/* *ret: NULL for a store that leaves nothing behind, or where no file can be: what is under way when the process
 * dies is then not told again. Errors: RV_ENOMEM. */
static int find_file(const rv_engine *e, char **ret, rv_error *err)
{
    struct rv__buf path;
    *ret = NULL;
    if (e->store_name == NULL)
        return RV_OK;
    rv__buf_init(&path, SIZE_MAX / 8);
    int rc = rv__store_name_beside(e->store_name, &path, err);
    rv__buf_text(&path, ".listeners");
    if (e->only_run[0] != '\0')
        rv__buf_fmt(&path, "-%s", e->only_run);
    if (path.rc < 0)
        rc = rv__buf_err(&path, err);
    if (rc == RV_OK)
        *ret = rv__buf_take(&path);
    rv__buf_done(&path);
    return rc == RV_ENOMEM ? rc : RV_OK;
}

static bool read_position(const char *path, struct position *ret)
{
    char text[64] = "", *end;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    ret->seq = strtoull(text, &end, 10);
    if (end == text || *end != '.')
        return false;
    ret->index = strtoull(end + 1, &end, 10);
    return *end == '\n';
}

/* Another one in its place; without it more is told again. */
static void write_position(const char *path, struct position at)
{
    char text[64], other[DIRECTORY];
    int len = snprintf(text, sizeof text, "%llu.%llu\n", (unsigned long long)at.seq,
                       (unsigned long long)at.index);
    if ((size_t)snprintf(other, sizeof other, "%s.new", path) >= sizeof other)
        return;
    int fd = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool good = write(fd, text, (size_t)len) == len && fdatasync(fd) == 0;
    close(fd);
    if (!good || rename(other, path) != 0)
        (void)unlink(other);
}

/* Under the lock. Up to where all is delivered. */
static void keep_position(struct rv__notify *n, bool now)
{
    struct position at = n->first != NULL ? n->first->before : n->read;
    int64_t now_ms = rv__mono_ms(n->engine->clock);
    if (n->file == NULL || (at.seq == n->kept.seq && at.index == n->kept.index) ||
        (!now && now_ms < n->kept_ms + KEEP_MS))
        return;
    n->kept = at;
    n->kept_ms = now_ms;
    write_position(n->file, at);
}

/* --------------------------------------------------------------------------------- notices --- */

static void notice_free(struct notice *notice)
{
    rv__buf_done(&notice->answer);
    rv__arena_done(&notice->arena);
    rv__free(notice);
}

static bool knows(struct rv__notify *n, const char *run_id, bool *listens)
{
    const struct known_run *known =
        &n->known[rv__str_hash(RV__HASH_START, rv__str(run_id)) % KNOWN_RUNS];
    *listens = known->listens;
    return strcmp(known->run_id, run_id) == 0;
}

static const char *copy_text(struct rv__arena *arena, struct rv__str text)
{
    return rv__arena_dup(arena, text.at, text.len);
}

/* One that waits; under no lock: only this thread adds. No memory: it is told when the feed is read again. */
static bool add_notice(struct rv__notify *n, const struct rv__listener *to, uint32_t number,
                       enum rv__lifecycle type, const struct rv__heard *h)
{
    struct notice *notice = rv__zalloc(1, sizeof *notice);
    struct rv__buf json;
    if (notice == NULL)
        return false;
    *notice = (struct notice){ .of = n, .before = n->read, .type = type, .listener = number };
    snprintf(notice->run_id, sizeof notice->run_id, "%s", h->event->run_id);
    rv__arena_init(&notice->arena, SIZE_MAX); /* bounded by the event */
    rv__buf_init(&notice->answer, ANSWER_BYTES + 1);
    rv__buf_init(&json, SIZE_MAX / 8);
    rv__lifecycle_json(&json, type, h);
    notice->path = copy_text(&notice->arena, rv__str(h->event->path));
    notice->workflow = copy_text(&notice->arena, rv__str(h->event->workflow));
    bool good = json.rc == RV_OK &&
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

/* What a run's listeners want of this. */
static void take(void *arg, enum rv__lifecycle type, const struct rv__heard *h)
{
    struct rv__notify *n = arg;
    struct rv__reading *reading = n->engine->reading;
    struct rv__read_run run;
    bool listens;
    const char *id = h->event->run_id;
    if ((knows(n, id, &listens) && !listens) || !rv__engine_drives(n->engine, id))
        return;
    pthread_mutex_lock(&reading->lock);
    int rc = rv__read_run(&reading->plans, reading->store, rv__str(id), &run, NULL);
    pthread_mutex_unlock(&reading->lock);
    if (rc < 0)
        return; /* removed meanwhile */
    const struct rv__wrap *wrap = run.plan->plan->body.wrap;
    struct known_run *known = &n->known[rv__str_hash(RV__HASH_START, rv__str(id)) % KNOWN_RUNS];
    snprintf(known->run_id, sizeof known->run_id, "%s", id);
    known->listens = wrap->listener_count > 0;
    for (uint32_t i = 0; i < wrap->listener_count; i++)
        while ((wrap->listeners[i].events & (1u << type)) &&
               !add_notice(n, &wrap->listeners[i], i, type, h))
            rv__clock_sleep_ms(FEED_MS); /* for memory */
    rv__plan_cache_put(&reading->plans, run.plan);
}

/* What came up before this began; the rest comes by the feed. */
static void take_undecided(void *arg, enum rv__lifecycle type, const struct rv__heard *h)
{
    const struct rv__notify *n = arg;
    if (h->event->at <= n->begun_ms)
        take(arg, type, h);
}

/* --------------------------------------------------------------------------------- sending --- */

/* Thread: that of the I/O loop. */
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

/* Where its manifest's file is, for relative commands. RV_ENOTFOUND: it is not registered. */
static int take_place(struct rv__call *call)
{
    struct place_ask *ask = call->arg;
    const struct rv__run *run = rv__run_find(call->engine, ask->notice->run_id);
    struct rv__registry *registry = run != NULL && run->plan != NULL ? run->plan->registry
                                                                     : call->engine->registry;
    const struct rv__registered *found = rv__registry_find(registry,
                                                           rv__str(ask->notice->workflow));
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

/* Is one before it of the same run and listener still to be delivered? */
static bool has_turn(const struct rv__notify *n, const struct notice *notice)
{
    for (const struct notice *other = n->first; other != notice; other = other->next)
        if (other->listener == notice->listener && strcmp(other->run_id, notice->run_id) == 0)
            return false;
    return true;
}

/* One that may go out now; NULL: none. Under the lock. *due_ms: when the next one may. */
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

/* {"action": …, "reason"?: …}: what is to become of what is suspended. Anything else decides nothing. */
static void decide(struct rv__notify *n, const struct notice *notice)
{
    struct rv__str answer = rv__buf_view(&notice->answer), json, value, action, reason;
    struct rv__arena arena;
    const char *why = NULL;
    int decision = 0;
    rv_error err;
    if (notice->type != LIFE_SUSPEND ||
        rv__json_check(answer, RV__JSON_VALUE_DEPTH, &json, NULL) < 0 ||
        rv__json_type(json) != RV__JSON_OBJECT || !rv__json_get(json, "action", &value))
        return;
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
        (void)rv__run_say(n->engine, notice->run_id, notice->path, text); /* or not */
    }
    rv__arena_done(&arena);
}

static void give_up(struct rv__notify *n, const struct notice *notice)
{
    char text[600];
    snprintf(text, sizeof text, "a listener was not told of %s, after %d tries: %.400s",
             rv__lifecycle_name(notice->type), notice->tries,
             notice->answer.len > 0 ? rv__buf_view(&notice->answer).at : "");
    (void)rv__run_say(n->engine, notice->run_id, notice->path, text); /* of one in memory */
}

/* Under the lock: one that is over, out of the list if it is done with; NULL: none. */
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

/* Again later, unless it was tried often enough. Under the lock. */
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
        notice->phase = NOTICE_SENT; /* this thread's for now */
        n->sent--;
        pthread_mutex_unlock(&n->lock);
        bool done = notice->good || notice->tries >= TRIES;
        if (notice->good)
            decide(n, notice);
        else if (done)
            give_up(n, notice);
        pthread_mutex_lock(&n->lock);
        if (done)
            drop(n, notice);
        else
            put_off(n, notice);
    }
    pthread_mutex_unlock(&n->lock);
}

/* All that may go out now. When the next one may: monotonic. */
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

/* What is under way has some time; nothing new begins. */
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

static void *notify(void *arg)
{
    struct rv__notify *n = arg;
    rv_event event;
    rv_error err;
    int rc = RV_OK;
    rv__lifecycle_undecided(n->engine, take_undecided, n);
    while (rc != RV_ECLOSED) {
        settle(n);
        int64_t due_ms = send_due(n);
        pthread_mutex_lock(&n->lock);
        bool full = n->count >= NOTICES_MOST;
        uint64_t asked = n->flush_asked;
        keep_position(n, false);
        pthread_mutex_unlock(&n->lock);
        int64_t wait_ms = due_ms == INT64_MAX ? -1 : due_ms - rv__mono_ms(n->engine->clock);
        if (due_ms != INT64_MAX && wait_ms < 0)
            wait_ms = 0;
        if (n->kept.seq != n->read.seq && (wait_ms < 0 || wait_ms > KEEP_MS))
            wait_ms = KEEP_MS;
        if (asked != n->flushed)
            wait_ms = 0;
        if (full && n->engine->stopped) /* what is left is for the next process */
            rc = RV_ECLOSED;
        else if (full)
            rc = rv_cancel_wait(n->wake, wait_ms < 0 || wait_ms > KEEP_MS ? KEEP_MS : wait_ms)
                     ? RV_ECANCELED
                     : RV_ETIMEDOUT;
        else
            rc = rv_feed_next(n->feed, wait_ms, n->wake, &event, &err);
        if (rc == RV_OK) {
            rv__lifecycle_of_event(&event, take, n);
            n->read = (struct position){ event.seq, event.index };
        } else if (rc == RV_ECANCELED) {
            renew(n);
        } else if (rc == RV_ETIMEDOUT && !full) {
            pthread_mutex_lock(&n->lock);
            n->flushed = asked;
            pthread_cond_broadcast(&n->changed);
            pthread_mutex_unlock(&n->lock);
        } else if (rc == RV_ENOTFOUND) { /* retention was quicker: from here on */
            rv_feed_close(n->feed);
            n->feed = NULL;
            while ((rc = rv_feed_open(n->engine, RV_FEED_OPTS(.no_logs = true), &n->feed, &err)) <
                       0 &&
                   rc != RV_ECLOSED)
                rv__clock_sleep_ms(FEED_MS);
        } else if (rc != RV_ECLOSED && rc != RV_ETIMEDOUT) {
            rv__clock_sleep_ms(FEED_MS); /* nothing was skipped */
        }
    }
    finish(n);
    return NULL;
}

/* ------------------------------------------------------------------------------- life time --- */

static void notify_free(struct rv__notify *n)
{
    if (n->io != NULL)
        rv__io_free(n->io); /* ends what is still under way */
    while (n->first != NULL)
        drop(n, n->first);
    rv_feed_close(n->feed);
    rv_cancel_free(n->wake);
    pthread_mutex_destroy(&n->lock);
    pthread_cond_destroy(&n->changed);
    rv__free(n->file);
    rv__free(n);
}

static int open_feed(struct rv__notify *n, rv_error *err)
{
    int rc = RV_ENOTFOUND;
    if (n->file != NULL && read_position(n->file, &n->read))
        rc = rv_feed_open(n->engine,
                          RV_FEED_OPTS(.from = n->read.seq > 0 ? RV_FROM_POSITION : RV_FROM_OLDEST,
                                       .seq = n->read.seq, .index = n->read.index, .no_logs = true),
                          &n->feed, err);
    if (rc == RV_ENOTFOUND) { /* the first time, or retention has removed it since */
        rc = rv_feed_open(n->engine, RV_FEED_OPTS(.no_logs = true), &n->feed, err);
        if (rc == RV_OK)
            rv_feed_position(n->feed, &n->read.seq, &n->read.index);
        if (rc == RV_OK && n->file != NULL)
            write_position(n->file, n->read);
    }
    n->kept = n->read;
    return rc;
}

int rv__notify_begin(rv_engine *e, rv_error *err)
{
    if (e->notify != NULL || !e->around.threads || e->read_only || e->idle || e->stopped)
        return RV_OK;
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
    int rc = find_file(e, &n->file, err);
    n->wake = rv_cancel_new(NULL);
    if (rc == RV_OK && n->wake == NULL)
        rc = rv__nomem(err);
    if (rc == RV_OK)
        rc = rv__io_new(&opts, &n->io, err);
    if (rc == RV_OK)
        rc = open_feed(n, err);
    if (rc == RV_OK && pthread_create(&n->thread, NULL, notify, n) != 0)
        rc = rv__fail(err, RV_ESYS, "no thread could be made for the listeners of manifests");
    if (rc < 0)
        notify_free(n);
    else
        e->notify = n;
    return rc;
}

int rv__notify_reopen(rv_engine *e, rv_error *err)
{
    char *file;
    struct position at;
    int rc = find_file(e, &file, err);
    if (rc == RV_OK && file != NULL && read_position(file, &at))
        rc = rv__notify_begin(e, err);
    rv__free(file);
    return rc;
}

void rv__notify_close(rv_engine *e)
{
    struct rv__notify *n = e->notify;
    if (n == NULL)
        return;
    pthread_join(n->thread, NULL); /* the feed tells it that this is the end */
    pthread_mutex_lock(&n->lock);
    bool all = n->first == NULL;
    keep_position(n, true);
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    if (all && e->only_run[0] != '\0' && n->file != NULL)
        (void)unlink(n->file); /* nobody else looks at it */
}

void rv__notify_free(rv_engine *e)
{
    if (e->notify != NULL)
        notify_free(e->notify);
    e->notify = NULL;
}

/* Under the lock. */
static bool is_told(const struct rv__notify *n, const char *run_id, uint64_t asked)
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
    struct rv__notify *n = e->notify;
    if (n == NULL)
        return RV_OK;
    rv__engine_enter(e);
    int64_t until_ms = rv__mono_ms(e->clock) + timeout_ms;
    int rc = RV_OK;
    pthread_mutex_lock(&n->lock);
    uint64_t asked = ++n->flush_asked;
    rv_cancel_fire(n->wake, RV_ECANCELED, "somebody waits");
    while (!is_told(n, run_id, asked) && rc == RV_OK) {
        int64_t look_ms = rv__mono_ms(e->clock) + KEEP_MS; /* whether it has closed */
        if (timeout_ms >= 0 && until_ms < look_ms)
            look_ms = until_ms;
        (void)rv__cond_wait_until(&n->changed, &n->lock, look_ms * 1000000);
        if (e->stopped || (timeout_ms >= 0 && rv__mono_ms(e->clock) >= until_ms))
            rc = rv__fail(err, e->stopped ? RV_ECLOSED : RV_ETIMEDOUT,
                          "the listeners of run '%.80s' have not been told of everything yet",
                          run_id);
    }
    pthread_mutex_unlock(&n->lock);
    rv__engine_leave(e);
    return rc;
}
