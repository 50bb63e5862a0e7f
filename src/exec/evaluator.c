/* evaluator.c: expressions, evaluated by processes of their own; this thread asks them.
 *
 *   start ──queue──▶ waiting ──ask──▶ on its way (eval_process.c) ──answer──▶ compose ──▶ done
 *                       ▲                │ its process dies
 *                       └─ the others ───┤
 *                          the first ────┴─▶ suspects ──alone, in a fresh process──▶ done
 *
 * libjq aborts its process on some data. The first unanswered question was then being evaluated: it is asked once
 * more, alone, in a fresh process, and only a second death is its error. The others are simply asked again:
 * evaluation has no side effects. So an evaluation costs at most two processes, which limits the restarts (a few
 * more if processes are killed by SIGKILL, which no expression does).
 *
 * There are two processes: the second is started when the first has not answered for STUCK_MS, or is used by a
 * suspect, so that one long evaluation does not block all others. Templates without jq are evaluated on this
 * thread.
 *
 * While the thread sleeps, the caller that starts an evaluation may send its question itself, if no other is under
 * way and it costs little: this saves a thread switch for sequential evaluations. `lock` protects this. */
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "exec/eval_process.h"

enum {
    PROCESSES = 2,
    WINDOW = 64,            /* questions under way to one process: enough to keep it busy */
    UNSENT_BYTES = 1 << 20, /* unsent bytes; above this, ask nothing more */
    STUCK_MS = 50,          /* without an answer: use the other process */
    IDLE_MS = 60000,        /* then a process without work is ended */
    PATIENCE_MS = 1000,     /* for a process that closed its connection to exit, with its status */
    FAILURES = 5,           /* processes in a row that end before their hello, */
    RETRY_MS = 50,          /* with twice the wait before each; then waiting evaluations fail */
    DEATHS = 2,             /* of its process, until an evaluation is to blame */
    KILLS = 5, /* by SIGKILL: no expression does that, but the system may, if memory is low */
    MESSAGE_BYTES = 400,
};
#define NS_OF_MS(ms) ((int64_t)(ms)*1000000)

struct rv__evaluator {
    struct rv__evaluator_opts opts;
    struct rv__expr_compiler compiler;
    struct rv__queue queue;
    int wake; /* an eventfd: something was queued */
    pthread_t thread;
    bool closed; /* used by the closing thread */

    /* Under the lock, which the thread releases only while it sleeps. */
    pthread_mutex_t lock;
    struct rv__buf program; /* its path; empty: not searched for yet */
    struct rv__expr_texts *texts;
    struct rv__buf question, result;
    struct rv__evaluations waiting, suspects;
    struct rv__eval_process processes[PROCESSES];
    uint64_t ids;
    int failures;
    int64_t retry_ns; /* start no process before this */
};

static void finish(struct rv__evaluation *evaluation, struct rv__str json, const rv_error *err)
{
    evaluation->done(evaluation, err == NULL ? json : (struct rv__str){ "", 0 }, err);
}

static void fail_all(struct rv__evaluations *list, const rv_error *err)
{
    struct rv__evaluation *evaluation;
    while ((evaluation = rv__evaluations_take(list)) != NULL)
        finish(evaluation, (struct rv__str){ "", 0 }, err);
}

/* ------------------------------------------------------------------------------- composing --- */

static void compose(struct rv__evaluator *ev, struct rv__evaluation *evaluation,
                    struct rv__str values)
{
    rv_error err;
    int rc = RV_OK;
    rv__buf_reset(&ev->result);
    ev->result.max_bytes = evaluation->max_bytes;
    if (evaluation->set != NULL)
        rc = rv__exprs_compose(evaluation->set, evaluation->number, ev->texts, evaluation->scope,
                               values, &ev->result, &err);
    finish(evaluation, rv__buf_view(&ev->result), rc < 0 ? &err : NULL);
    if (ev->result.cap > (size_t)1 << 20) {
        rv__buf_done(&ev->result);
        rv__buf_init(&ev->result, 0);
    }
}

static int error_code(struct rv__str json)
{
    static const int known[] = { RV_EINVAL, RV_EPARSE, RV_ETOOBIG, RV_ETIMEDOUT, RV_ENOMEM };
    int64_t code = 0;
    if (!rv__str_none(json))
        (void)rv__json_int(json, &code); /* not a number: treated as unknown */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (code == known[i])
            return known[i];
    return RV_EINVAL;
}

static void take_error(struct rv__evaluation *evaluation, const struct rv__frame *frame)
{
    enum { AT, CODE, MESSAGE, KEYS };
    static const char *const keys[] = { "at", "code", "message" };
    struct rv__str has[KEYS], text = { NULL, 0 };
    struct rv__arena arena;
    char why[MESSAGE_BYTES];
    int64_t at = 0;
    rv_error err;
    rv__frame_members(frame, keys, has, KEYS);
    rv__arena_init(&arena, 64 << 10); /* a message has 256 bytes */
    int code = error_code(has[CODE]);
    if (!rv__str_none(has[AT]))
        (void)rv__json_int(has[AT], &at); /* not a number: the first */
    if (!rv__str_none(has[MESSAGE]) && rv__json_type(has[MESSAGE]) == RV__JSON_STRING)
        (void)rv__json_string(has[MESSAGE], &arena, &text); /* no memory: without a message */
    if (code == RV_ETIMEDOUT)
        snprintf(why, sizeof why, "it took longer than the %lld ms of CPU time it may",
                 (long long)evaluation->cpu_ms);
    else
        snprintf(why, sizeof why, "%.*s", (int)text.len, text.len > 0 ? text.at : "");
    rv__arena_done(&arena);
    if (evaluation->set != NULL)
        (void)rv__exprs_failed(evaluation->set, evaluation->number, (size_t)at, code, why, &err);
    else
        (void)rv__fail(&err, code, "%s", why);
    finish(evaluation, (struct rv__str){ "", 0 }, &err);
}

static void take_answer(struct rv__evaluator *ev, struct rv__evaluation *evaluation,
                        const struct rv__frame *frame)
{
    struct rv__str values;
    if (frame->type == FRAME_ERROR) {
        take_error(evaluation, frame);
        return;
    }
    rv__frame_members(frame, (const char *[]){ "values" }, &values, 1);
    compose(ev, evaluation, values);
}

/* --------------------------------------------------------------------------------- deaths --- */

static void blame(struct rv__evaluator *ev, struct rv__evaluation *evaluation, bool no_memory,
                  const char *how)
{
    char why[MESSAGE_BYTES];
    rv_error err;
    if (no_memory && ev->opts.memory_bytes > 0)
        snprintf(why, sizeof why,
                 "the expression crashed the evaluator: out of memory (it may have %llu MB)",
                 (unsigned long long)(ev->opts.memory_bytes >> 20));
    else
        snprintf(why, sizeof why, "the expression crashed the evaluator: %.300s", how);
    if (evaluation->set != NULL)
        (void)rv__exprs_failed(evaluation->set, evaluation->number,
                               rv__exprs_jq(evaluation->set, evaluation->number) == 1 ? 0
                                                                                      : SIZE_MAX,
                               RV_EFAILED, why, &err);
    else
        (void)rv__fail(&err, RV_EFAILED, "%s", why);
    finish(evaluation, (struct rv__str){ "", 0 }, &err);
}

/* A process that ended before its hello proves nothing about the questions. */
static void failed_to_start(struct rv__evaluator *ev, const rv_error *err)
{
    if (++ev->failures < FAILURES) {
        ev->retry_ns = rv__deadline_ns((int64_t)RETRY_MS << ev->failures);
        return;
    }
    ev->failures = 0;
    fail_all(&ev->suspects, err);
    fail_all(&ev->waiting, err);
}

/* End a dead or faulty process, and requeue its questions. `said`: the protocol error, or NULL. */
static void end_process(struct rv__evaluator *ev, struct rv__eval_process *process,
                        const rv_error *said, bool ours)
{
    char how[MESSAGE_BYTES];
    rv_error err;
    bool greeted = process->greeted;
    int status = rv__eval_process_end(process, said != NULL || ours ? 0 : PATIENCE_MS, how,
                                      sizeof how);
    bool killed = said == NULL && status != -1 && WIFSIGNALED(status) &&
                  WTERMSIG(status) == SIGKILL;
    unsigned most = killed ? KILLS : DEATHS;
    struct rv__evaluation *first = greeted && !ours ? rv__evaluations_take(&process->asked) : NULL;
    if (first != NULL && first->own.deaths + 1 >= most) {
        blame(ev, first, process->no_memory, said != NULL ? said->message : how);
    } else if (first != NULL) {
        first->own.deaths++;
        rv__evaluations_add(&ev->suspects, first);
    } else if (!greeted && !ours && process->asked.first != NULL &&
               process->asked.first->own.deaths > 0) {
        rv__evaluations_return(&ev->suspects, &process->asked);
    }
    rv__evaluations_return(&ev->waiting, &process->asked);
    if (greeted || ours) {
        ev->failures = greeted ? 0 : ev->failures;
        return;
    }
    if (said != NULL)
        (void)rv__fail(&err, RV_ESYS, "%s", said->message);
    else
        (void)rv__fail(&err, RV_ESYS, "the evaluator process does not start: %s", how);
    failed_to_start(ev, &err);
}

/* ---------------------------------------------------------------------------- dispatching --- */

static bool stuck(const struct rv__eval_process *process)
{
    return process->asked.first != NULL &&
           rv__mono_ns(rv__clock_real()) - process->heard_ns > NS_OF_MS(STUCK_MS);
}

static bool full(const struct rv__eval_process *process)
{
    return process->alone || process->asked.count >= WINDOW ||
           process->out.len - process->sent > UNSENT_BYTES;
}

/* Does it have a process, or can one be started now? */
static bool start(struct rv__evaluator *ev, struct rv__eval_process *process)
{
    rv_error err;
    if (process->up)
        return true;
    if (rv__mono_ns(rv__clock_real()) < ev->retry_ns)
        return false;
    int rc = RV_OK;
    if (ev->program.len == 0) {
        rc = rv__evaluator_program(&ev->program, &err);
        if (rc < 0) { /* do not try again soon */
            rv__buf_reset(&ev->program);
            fail_all(&ev->suspects, &err);
            fail_all(&ev->waiting, &err);
            return false;
        }
    }
    rc = rv__eval_process_start(process, ev->program.text, ev->opts.memory_bytes, &err);
    if (rc < 0)
        failed_to_start(ev, &err);
    return rc == RV_OK;
}

static void tell_begun(struct rv__evaluation *evaluation)
{
    if (evaluation->begun != NULL && !evaluation->own.begun)
        evaluation->begun(evaluation);
    evaluation->own.begun = true;
}

static void ask(struct rv__evaluator *ev, struct rv__eval_process *process,
                struct rv__evaluation *evaluation)
{
    rv_error err;
    evaluation->own.id = ++ev->ids;
    tell_begun(evaluation);
    int rc = rv__eval_process_ask(process, evaluation, ev->texts, false, &ev->question, &err);
    if (rc == RV_ECLOSED) {
        end_process(ev, process, NULL, true);
        (void)rv__nomem(&err);
    }
    if (rc < 0)
        finish(evaluation, (struct rv__str){ "", 0 }, &err);
    if (ev->question.cap > (size_t)1 << 20) {
        rv__buf_done(&ev->question);
        rv__buf_init(&ev->question, RV__FRAME_MAX - 1024);
    }
}

/* Ask suspects: each alone, in a fresh process. */
static void ask_suspects(struct rv__evaluator *ev)
{
    for (size_t i = 0; i < PROCESSES && ev->suspects.first != NULL; i++) {
        struct rv__eval_process *process = &ev->processes[i];
        if (process->asked.first != NULL)
            continue;
        if (process->up && !process->fresh)
            end_process(ev, process, NULL, true);
        if (!start(ev, process) || ev->suspects.first == NULL)
            return;
        process->alone = true;
        ask(ev, process, rv__evaluations_take(&ev->suspects));
        process->alone = process->asked.first != NULL;
        return; /* one at a time: the other process is for other evaluations */
    }
}

static struct rv__eval_process *choose(struct rv__evaluator *ev)
{
    struct rv__eval_process *first = &ev->processes[0], *second = &ev->processes[1];
    bool held_up = stuck(first) || first->alone;
    if (!full(first) && !stuck(first))
        return first;
    if ((second->up || held_up) && !full(second) && !stuck(second))
        return second;
    return NULL;
}

static void ask_waiting(struct rv__evaluator *ev)
{
    while (ev->waiting.first != NULL) {
        if (ev->waiting.first->own.deaths > 0) { /* we ended its process for another reason */
            rv__evaluations_add(&ev->suspects, rv__evaluations_take(&ev->waiting));
            continue;
        }
        struct rv__eval_process *process = choose(ev);
        if (process == NULL || !start(ev, process) || ev->waiting.first == NULL)
            return;
        ask(ev, process, rv__evaluations_take(&ev->waiting));
    }
}

/* Take the queue: evaluate what needs no jq now, the rest waits. */
static void take_queued(struct rv__evaluator *ev)
{
    struct rv__queue_node *node = rv__queue_take(&ev->queue), *next;
    for (; node != NULL; node = next) {
        struct rv__evaluation *evaluation = RV__CONTAINER(node, struct rv__evaluation, own.queued);
        next = node->next;
        if (evaluation->set != NULL && rv__exprs_jq(evaluation->set, evaluation->number) == 0)
            compose(ev, evaluation, (struct rv__str){ NULL, 0 });
        else
            rv__evaluations_add(&ev->waiting, evaluation);
    }
}

/* ------------------------------------------------------------------------------ the thread --- */

static void serve(struct rv__evaluator *ev, struct rv__eval_process *process)
{
    struct rv__evaluation *evaluation;
    struct rv__frame frame;
    rv_error err;
    (void)rv__eval_process_send(process); /* a closed connection shows in the read */
    int read = rv__eval_process_read(process), rc;
    while ((rc = rv__eval_process_next(process, &frame, &evaluation, &err)) == 1)
        take_answer(ev, evaluation, &frame);
    if (rc < 0)
        end_process(ev, process, &err, false);
    else if (read == RV_ECLOSED)
        end_process(ev, process, NULL, false);
    else if (read == RV_ENOMEM)
        end_process(ev, process, NULL, true);
}

static bool idle_for_long(const struct rv__eval_process *process)
{
    return process->up && process->asked.first == NULL &&
           rv__mono_ns(rv__clock_real()) - process->heard_ns > NS_OF_MS(IDLE_MS);
}

/* Milliseconds until there is something to check without an event; -1: never. */
static int until_due(const struct rv__evaluator *ev)
{
    int64_t now_ns = rv__mono_ns(rv__clock_real());
    if (ev->suspects.first != NULL || ev->waiting.first != NULL)
        return ev->retry_ns > now_ns ? (int)((ev->retry_ns - now_ns) / 1000000) + 1 : STUCK_MS;
    return ev->processes[0].up || ev->processes[1].up ? IDLE_MS + 1 : -1;
}

static void sleep_and_serve(struct rv__evaluator *ev)
{
    struct pollfd p[1 + PROCESSES] = { { .fd = ev->wake, .events = POLLIN } };
    eventfd_t ignored;
    for (size_t i = 0; i < PROCESSES; i++) {
        const struct rv__eval_process *process = &ev->processes[i];
        p[1 + i] = (struct pollfd){
            .fd = process->up ? process->process.fd : -1,
            .events = (short)(POLLIN | (process->sent < process->out.len ? POLLOUT : 0))
        };
    }
    int due_ms = rv__queue_may_sleep(&ev->queue) ? until_due(ev) : 0;
    pthread_mutex_unlock(&ev->lock);
    (void)poll(p, 1 + PROCESSES, due_ms);
    rv__queue_awake(&ev->queue);
    pthread_mutex_lock(&ev->lock);
    if (p[0].revents & POLLIN)
        (void)!eventfd_read(ev->wake, &ignored);
    for (size_t i = 0; i < PROCESSES; i++) {
        if (p[1 + i].revents != 0)
            serve(ev, &ev->processes[i]);
        else if (idle_for_long(&ev->processes[i]))
            end_process(ev, &ev->processes[i], NULL, true);
    }
}

static void *evaluator_main(void *arg)
{
    struct rv__evaluator *ev = arg;
    rv_error err;
    pthread_mutex_lock(&ev->lock);
    while (!rv__queue_closed(&ev->queue)) {
        take_queued(ev);
        ask_suspects(ev);
        ask_waiting(ev);
        for (size_t i = 0; i < PROCESSES; i++)
            if (ev->processes[i].up)
                (void)rv__eval_process_send(
                    &ev->processes[i]); /* a closed connection shows in the read */
        sleep_and_serve(ev);
    }
    for (size_t i = 0; i < PROCESSES; i++)
        if (ev->processes[i].up)
            end_process(ev, &ev->processes[i], NULL, true);
    for (struct rv__queue_node *node = rv__queue_take(&ev->queue), *next; node != NULL;
         node = next) {
        next = node->next;
        rv__evaluations_add(&ev->waiting, RV__CONTAINER(node, struct rv__evaluation, own.queued));
    }
    (void)rv__fail(&err, RV_ECLOSED, "the evaluator is closing");
    fail_all(&ev->suspects, &err);
    fail_all(&ev->waiting, &err);
    pthread_mutex_unlock(&ev->lock);
    return NULL;
}

static void wake(void *arg)
{
    (void)!eventfd_write(((struct rv__evaluator *)arg)->wake, 1); /* cannot be full */
}

/* -------------------------------------------------------------------------------- starting --- */

/* Send the question from this thread. False: not possible, and nothing was done. */
static bool ask_at_once(struct rv__evaluator *ev, struct rv__evaluation *evaluation)
{
    struct rv__eval_process *process = &ev->processes[0];
    rv_error err;
    if (evaluation->set == NULL || rv__exprs_jq(evaluation->set, evaluation->number) == 0 ||
        pthread_mutex_trylock(&ev->lock) != 0)
        return false;
    bool sent = process->greeted && process->asked.first == NULL && process->out.len == 0 &&
                ev->waiting.first == NULL && ev->suspects.first == NULL &&
                !rv__queue_closed(&ev->queue);
    if (sent) {
        evaluation->own.id = ++ev->ids;
        sent = rv__eval_process_ask(process, evaluation, ev->texts, true, &ev->question, &err) ==
               RV_OK;
    }
    if (sent) {
        tell_begun(evaluation); /* under the lock: no answer is read before */
        (void)rv__eval_process_send(
            process);             /* if it has closed the connection, the thread sees it */
        if (process->out.len > 0) /* the socket is full: the thread sends the rest */
            wake(ev);
    }
    pthread_mutex_unlock(&ev->lock);
    return sent;
}

void rv__evaluator_start(struct rv__evaluator *ev, struct rv__evaluation *evaluation)
{
    rv_error err;
    if (evaluation->max_bytes == 0)
        evaluation->max_bytes = RV__EXPR_OUTPUT_BYTES;
    if (evaluation->cpu_ms == 0)
        evaluation->cpu_ms = ev->opts.cpu_ms;
    evaluation->own.deaths = 0;
    evaluation->own.begun = false;
    if (ask_at_once(ev, evaluation))
        return;
    if (rv__queue_push(&ev->queue, &evaluation->own.queued) == RV_OK)
        return;
    (void)rv__fail(&err, RV_ECLOSED, "the evaluator is closing");
    finish(evaluation, (struct rv__str){ "", 0 }, &err);
}

/* A thread that waits for an evaluation. */
struct waiter {
    struct rv__evaluation evaluation; /* first */
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct rv__buf *out;
    rv_error *err;
    int rc;
    bool done;
};

static void waited(struct rv__evaluation *evaluation, struct rv__str json, const rv_error *err)
{
    struct waiter *waiter = (struct waiter *)evaluation;
    pthread_mutex_lock(&waiter->lock);
    if (err == NULL && waiter->out != NULL) {
        rv__buf_str(waiter->out, json);
        waiter->rc = rv__buf_err(waiter->out, waiter->err);
    } else if (err != NULL) {
        waiter->rc = rv__fail(waiter->err, err->code, "%s", err->message);
    }
    waiter->done = true;
    pthread_cond_signal(&waiter->more);
    pthread_mutex_unlock(&waiter->lock);
}

static int run(struct rv__evaluator *ev, const struct rv__evaluation *evaluation,
               struct rv__buf *out, rv_error *err)
{
    struct waiter waiter = { .evaluation = *evaluation, .out = out, .err = err };
    waiter.evaluation.done = waited;
    pthread_mutex_init(&waiter.lock, NULL); /* on Linux these cannot fail */
    pthread_cond_init(&waiter.more, NULL);
    rv__evaluator_start(ev, &waiter.evaluation);
    pthread_mutex_lock(&waiter.lock);
    while (!waiter.done)
        pthread_cond_wait(&waiter.more, &waiter.lock);
    pthread_mutex_unlock(&waiter.lock);
    pthread_cond_destroy(&waiter.more);
    pthread_mutex_destroy(&waiter.lock);
    return waiter.rc;
}

int rv__evaluator_run(struct rv__evaluator *ev, struct rv__exprs *set, uint32_t number,
                      struct rv__scope *scope, struct rv__buf *out, rv_error *err)
{
    return run(ev, &(struct rv__evaluation){ .set = set, .number = number, .scope = scope }, out,
               err);
}

static int compile(struct rv__expr_compiler *self, struct rv__str program, rv_error *err)
{
    struct rv__evaluator *ev = RV__CONTAINER(self, struct rv__evaluator, compiler);
    return run(ev, &(struct rv__evaluation){ .own = { .compile = program } }, NULL, err);
}

struct rv__expr_compiler *rv__evaluator_compiler(struct rv__evaluator *ev)
{
    return &ev->compiler;
}

/* ------------------------------------------------------------------------- begin and end --- */

static void dispose(struct rv__evaluator *ev)
{
    if (ev->wake >= 0)
        close(ev->wake);
    rv__expr_texts_free(ev->texts);
    rv__buf_done(&ev->program);
    rv__buf_done(&ev->question);
    rv__buf_done(&ev->result);
    pthread_mutex_destroy(&ev->lock);
    rv__free(ev);
}

int rv__evaluator_new(const struct rv__evaluator_opts *opts, struct rv__evaluator **ret,
                      rv_error *err)
{
    struct rv__evaluator *ev = rv__zalloc(1, sizeof *ev);
    if (ev == NULL)
        return rv__nomem(err);
    ev->opts = *opts;
    if (ev->opts.cpu_ms == 0)
        ev->opts.cpu_ms = RV__EVAL_CPU_MS;
    if (ev->opts.memory_bytes == 0)
        ev->opts.memory_bytes = RV__EVAL_MEMORY_BYTES;
    ev->compiler.compile = compile;
    pthread_mutex_init(&ev->lock, NULL); /* on Linux it cannot fail */
    rv__buf_init(&ev->program, 8192);
    rv__buf_init(&ev->question, RV__FRAME_MAX - 1024); /* with the rest of its frame */
    rv__buf_init(&ev->result, 0);
    rv__evaluations_init(&ev->waiting);
    rv__evaluations_init(&ev->suspects);
    for (size_t i = 0; i < PROCESSES; i++)
        rv__eval_process_init(&ev->processes[i]);
    ev->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = ev->wake < 0 ? rv__fail(err, RV_ESYS, "the evaluator got no descriptor: %m") : RV_OK;
    if (rc == RV_OK)
        rc = rv__expr_texts_new(0, &ev->texts, err);
    if (rc == RV_OK)
        rc = rv__queue_init(&ev->queue, wake, ev, err);
    if (rc == RV_OK && pthread_create(&ev->thread, NULL, evaluator_main, ev) != 0) {
        rv__queue_done(&ev->queue);
        rc = rv__fail(err, RV_ESYS, "the evaluator got no thread");
    }
    if (rc < 0) {
        dispose(ev);
        return rc;
    }
    *ret = ev;
    return RV_OK;
}

void rv__evaluator_close(struct rv__evaluator *ev)
{
    if (ev == NULL || ev->closed)
        return;
    ev->closed = true;
    rv__queue_close(&ev->queue);
    pthread_join(ev->thread, NULL);
}

void rv__evaluator_free(struct rv__evaluator *ev)
{
    if (ev == NULL)
        return;
    rv__evaluator_close(ev);
    rv__queue_done(&ev->queue);
    dispose(ev);
}
