/* validate.c: asks a worker to validate the input of a new run; the caller's thread waits for the answer.
 *
 * The request is on the caller's stack, and in the list of its session while it is open. The caller removes it from
 * there, on the loop of connections, before it returns. */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/violations.h"
#include "work/session.h"

enum {
    VERDICT_MS = 10000
}; /* wait so long for the worker's answer; then only the schema decides */

struct rv__question {
    struct rv__question *next, **link; /* in the list of its session; link NULL: not in the list */
    struct rv__session *session;
    const struct rv__judged *about;
    char id[32];
    struct rv__cancel_watch closing;
    pthread_mutex_t lock; /* protects the rest: */
    pthread_cond_t changed;
    bool answered;
    int rc;
    struct rv__blob *input;    /* RV_OK: the input of the run; NULL: the input as given */
    struct rv__buf violations; /* RV_EINVAL: a JSON array */
};

static void settle(struct rv__question *q, int rc)
{
    pthread_mutex_lock(&q->lock);
    if (!q->answered)
        q->rc = rc;
    q->answered = true;
    pthread_cond_signal(&q->changed); /* with the lock held: after it, the request may be freed */
    pthread_mutex_unlock(&q->lock);
}

/* ------------------------------------------------------------ on the loop of connections --- */

static void unlink_question(struct rv__question *q)
{
    if (q->link == NULL)
        return;
    *q->link = q->next;
    if (q->next != NULL)
        q->next->link = q->link;
    q->link = NULL;
}

static void send_question(void *arg)
{
    struct rv__question *q = arg;
    struct rv__session *s = q->session;
    if (s->conn == NULL || rv__conn_ending(s->conn)) {
        settle(q, RV_ECLOSED);
        return;
    }
    snprintf(q->id, sizeof q->id, "v%" PRIu64, ++s->questions_posed);
    q->next = s->questions;
    q->link = &s->questions;
    if (q->next != NULL)
        q->next->link = &q->next;
    s->questions = q;
    struct rv__buf *out = rv__conn_out(s->conn);
    size_t start = rv__wire_begin(out, FRAME_VALIDATE);
    rv__wire_text(out, "id", rv__str(q->id));
    rv__wire_text(out, "workflow", rv__str(q->about->workflow));
    rv__wire_text(out, "version", rv__str(q->about->version));
    if (!rv__str_none(q->about->input))
        rv__wire_json(out, "input", q->about->input);
    rv__wire_end(out, start);
}

static void withdraw(void *arg)
{
    unlink_question(arg);
}

void rv__session_drop_questions(struct rv__session *s)
{
    while (s->questions != NULL) {
        struct rv__question *q = s->questions;
        unlink_question(q);
        settle(q, RV_ECLOSED);
    }
}

int rv__session_verdict(struct rv__session *s, const struct rv__frame *frame, rv_error *err)
{
    enum { ID, INPUT, VIOLATIONS, KEYS };
    struct rv__str has[KEYS];
    rv__frame_members(frame, (const char *[]){ "id", "input", "violations" }, has, KEYS);
    struct rv__question *q = rv__str_none(has[ID]) ? NULL : s->questions;
    while (q != NULL && !rv__json_string_is(has[ID], rv__str(q->id)))
        q = q->next;
    bool bad = frame->type == FRAME_VIOLATIONS;
    if (bad && (rv__str_none(has[VIOLATIONS]) || rv__json_type(has[VIOLATIONS]) != RV__JSON_ARRAY))
        return rv__fail(err, RV_EPARSE, "'violations' is not a list");
    if (q == NULL)
        return RV_OK; /* nobody waits for it any more: it is late, not wrong */
    unlink_question(q);
    int rc = bad ? RV_EINVAL : RV_OK;
    if (bad) {
        rv__buf_str(&q->violations, has[VIOLATIONS]);
        rc = q->violations.rc == RV_OK ? rc : RV_ENOMEM;
    } else if (!rv__str_none(has[INPUT])) {
        q->input = rv__blob_new(has[INPUT]);
        rc = q->input != NULL ? rc : RV_ENOMEM;
    }
    settle(q, rc);
    return RV_OK;
}

/* ------------------------------------------------------------------ on the caller's thread --- */

static void engine_closes(struct rv__cancel_watch *watch)
{
    settle(RV__CONTAINER(watch, struct rv__question, closing), RV_ECLOSED);
}

/* Workers are not trusted: whatever is no string is left out. */
static void take_violations(struct rv__str list, struct rv__violations *bad)
{
    struct rv__json_iter it;
    struct rv__str item, path, message;
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &item)) {
        struct rv__str value;
        path = rv__str("");
        message = rv__str("it is not valid");
        if (rv__json_type(item) != RV__JSON_OBJECT)
            continue;
        if (rv__json_get(item, "path", &value) && rv__json_type(value) == RV__JSON_STRING)
            (void)rv__json_string(value, bad->arena, &path); /* without memory it has no path */
        if (rv__json_get(item, "message", &value) && rv__json_type(value) == RV__JSON_STRING)
            (void)rv__json_string(value, bad->arena, &message);
        rv__violations_add(bad, path, "%.*s", RV__ARG(message));
    }
    if (bad->count == 0)
        rv__violations_add(bad, rv__str(""), "the worker refuses it");
}

int rv__session_validate(struct rv__session *s, const struct rv__judged *about, rv_cancel *closing,
                         struct rv__violations *bad, struct rv__blob **ret, rv_error *err)
{
    struct rv__wires *wires = s->workers->services->wires;
    struct rv__question q = { .session = s,
                              .about = about,
                              .closing = { .fired = engine_closes },
                              .lock = PTHREAD_MUTEX_INITIALIZER };
    int rc = rv__cond_init(&q.changed);
    if (rc < 0)
        return RV_ECLOSED; /* no memory: the worker cannot be asked */
    rv__buf_init(&q.violations, RV__FRAME_MAX);
    rv__wires_run(wires, send_question, &q);
    if (!rv__cancel_watch(closing, &q.closing))
        settle(&q, RV_ECLOSED);
    int64_t until_ns = rv__deadline_ns(VERDICT_MS);
    pthread_mutex_lock(&q.lock);
    while (!q.answered && rv__cond_wait_until(&q.changed, &q.lock, until_ns))
        ;
    pthread_mutex_unlock(&q.lock);
    rv__cancel_unwatch(closing, &q.closing);
    rv__wires_run(wires, withdraw, &q); /* after this, no other thread uses it */
    rc = q.answered ? q.rc : RV_ECLOSED;
    if (rc == RV_EINVAL) {
        take_violations(rv__buf_view(&q.violations), bad);
        rc = rv__violations_err(bad, err);
    } else if (rc == RV_ENOMEM) {
        (void)rv__nomem(err);
    } else if (rc == RV_OK) {
        *ret = q.input;
        q.input = NULL;
    }
    rv__blob_unref(q.input);
    rv__buf_done(&q.violations);
    pthread_cond_destroy(&q.changed);
    pthread_mutex_destroy(&q.lock);
    return rc;
}
