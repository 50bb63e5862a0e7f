/* eval_process.c: one evaluator process: its start, its frames, its end. */
#include "exec/eval_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

enum {
    PRINTED_BYTES = 4096,
    LAST_WORDS = 120, /* bytes of the last line it printed */
};

/* ---------------------------------------------------------------------------------- lists --- */

void rv__evaluations_init(struct rv__evaluations *list)
{
    *list = (struct rv__evaluations){ .last = &list->first };
}

void rv__evaluations_add(struct rv__evaluations *list, struct rv__evaluation *evaluation)
{
    evaluation->own.next = NULL;
    *list->last = evaluation;
    list->last = &evaluation->own.next;
    list->count++;
}

struct rv__evaluation *rv__evaluations_take(struct rv__evaluations *list)
{
    struct rv__evaluation *first = list->first;
    if (first == NULL)
        return NULL;
    list->first = first->own.next;
    if (list->first == NULL)
        list->last = &list->first;
    list->count--;
    return first;
}

void rv__evaluations_return(struct rv__evaluations *list, struct rv__evaluations *from)
{
    if (from->first == NULL)
        return;
    *from->last = list->first;
    if (list->first == NULL)
        list->last = from->last;
    list->first = from->first;
    list->count += from->count;
    rv__evaluations_init(from);
}

/* ------------------------------------------------------------------------------- speaking --- */

static void tell_value(struct rv__expr_sender *sender, unsigned slot, struct rv__str json)
{
    struct rv__eval_process *process = (struct rv__eval_process *)sender;
    size_t start = rv__wire_begin(&process->out, FRAME_VALUE);
    rv__wire_int(&process->out, "slot", slot);
    if (!rv__str_none(json))
        rv__wire_json(&process->out, "json", json);
    rv__wire_end(&process->out, start);
}

static void tell_program(struct rv__expr_sender *sender, unsigned slot, struct rv__str text)
{
    struct rv__eval_process *process = (struct rv__eval_process *)sender;
    size_t start = rv__wire_begin(&process->out, FRAME_REGISTER);
    rv__wire_int(&process->out, "slot", slot);
    rv__wire_text(&process->out, "text", text);
    rv__wire_end(&process->out, start);
}

static int put_question(struct rv__eval_process *process, const struct rv__evaluation *evaluation,
                        struct rv__expr_texts *texts, bool quickly, struct rv__buf *question,
                        rv_error *err)
{
    rv__buf_reset(question);
    int rc = rv__exprs_ask(evaluation->set, evaluation->number, texts, process->peer,
                           evaluation->scope, quickly, question, err);
    if (rc < 0)
        return rc;
    size_t start = rv__wire_begin(&process->out, FRAME_INVOKE);
    rv__wire_int(&process->out, "id", (int64_t)evaluation->own.id);
    rv__wire_int(&process->out, "cpuMs", evaluation->cpu_ms);
    rv__wire_int(&process->out, "maxBytes", (int64_t)evaluation->max_bytes);
    rv__buf_str(&process->out, rv__buf_view(question));
    rv__wire_end(&process->out, start);
    return RV_OK;
}

static void put_compile(struct rv__eval_process *process, const struct rv__evaluation *evaluation)
{
    size_t start = rv__wire_begin(&process->out, FRAME_REGISTER);
    rv__wire_int(&process->out, "id", (int64_t)evaluation->own.id);
    rv__wire_text(&process->out, "text", evaluation->own.compile);
    rv__wire_end(&process->out, start);
}

int rv__eval_process_ask(struct rv__eval_process *process, struct rv__evaluation *evaluation,
                         struct rv__expr_texts *texts, bool quickly, struct rv__buf *question,
                         rv_error *err)
{
    int rc = RV_OK;
    if (evaluation->set != NULL)
        rc = put_question(process, evaluation, texts, quickly, question, err);
    else
        put_compile(process, evaluation);
    if (process->out.rc != RV_OK) /* bytes are missing: the connection is unusable */
        return rv__fail(err, RV_ECLOSED, "out of memory");
    if (rc < 0)
        return rc;
    if (process->asked.first == NULL)
        process->heard_ns = rv__mono_ns(rv__clock_real());
    process->fresh = false;
    rv__evaluations_add(&process->asked, evaluation);
    return RV_OK;
}

int rv__eval_process_send(struct rv__eval_process *process)
{
    while (process->sent < process->out.len) {
        ssize_t n = send(process->process.fd, process->out.text + process->sent,
                         process->out.len - process->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? RV_OK : RV_ECLOSED;
        process->sent += (size_t)n;
    }
    if (process->out.cap > (size_t)RV__KEPT_BYTES) /* after a large value, free the memory */
        rv__buf_done(&process->out), rv__buf_init(&process->out, SIZE_MAX / 2);
    else
        rv__buf_reset(&process->out);
    process->sent = 0;
    return RV_OK;
}

/* -------------------------------------------------------------------------------- hearing --- */

static void read_printed(struct rv__eval_process *process)
{
    char bytes[PRINTED_BYTES];
    ssize_t n = process->process.out >= 0 ? read(process->process.out, bytes, sizeof bytes) : -1;
    if (n > 0)
        rv__lines_add(&process->lines, (struct rv__str){ bytes, (size_t)n });
}

int rv__eval_process_read(struct rv__eval_process *process)
{
    int rc = rv__frames_read(&process->frames, process->process.fd);
    if (rc == 1)
        process->heard_ns = rv__mono_ns(rv__clock_real());
    return rc;
}

static int hear_hello(struct rv__eval_process *process, const struct rv__frame *frame,
                      rv_error *err)
{
    struct rv__str version;
    rv__frame_members(frame, (const char *[]){ "version" }, &version, 1);
    if (rv__str_none(version) || !rv__json_string_is(version, rv__str(RV_VERSION)))
        return rv__fail(err, RV_EPARSE,
                        "the evaluator is of version %.*s, and this is " RV_VERSION ": install "
                        "both from one build, or name the program in RIVAL_HOST",
                        rv__str_none(version) ? 1 : (int)version.len,
                        rv__str_none(version) ? "?" : version.at);
    process->greeted = true;
    return RV_OK;
}

int rv__eval_process_next(struct rv__eval_process *process, struct rv__frame *frame,
                          struct rv__evaluation **ret, rv_error *err)
{
    struct rv__str value;
    int rc;
    while ((rc = rv__frames_next(&process->frames, frame, err)) == 1) {
        int64_t id = -1;
        if (frame->type == FRAME_DYING) {
            process->no_memory = true;
            continue;
        }
        if (frame->type == FRAME_HELLO && !process->greeted) {
            rc = hear_hello(process, frame, err);
            if (rc < 0)
                return rc;
            continue;
        }
        if (frame->type != FRAME_RESULT && frame->type != FRAME_ERROR)
            return rv__fail(err, RV_EPARSE, "it said '%s'", rv__frame_type_name(frame->type));
        rv__frame_members(frame, (const char *[]){ "id" }, &value, 1);
        if (!process->greeted || process->asked.first == NULL || rv__str_none(value) ||
            rv__json_int(value, &id) < 0 || (uint64_t)id != process->asked.first->own.id)
            return rv__fail(err, RV_EPARSE, "it sent an answer without a request");
        *ret = rv__evaluations_take(&process->asked);
        process->alone = false;
        return 1;
    }
    return rc;
}

/* ------------------------------------------------------------------------ begin and end --- */

void rv__eval_process_init(struct rv__eval_process *process)
{
    *process = (struct rv__eval_process){ .sender = { tell_value, tell_program } };
    rv__evaluations_init(&process->asked);
}

int rv__eval_process_start(struct rv__eval_process *process, const char *program,
                           uint64_t memory_bytes, rv_error *err)
{
    int rc = rv__expr_peer_new(0, &process->sender, &process->peer, err);
    if (rc < 0)
        return rc;
    rc = rv__child_start(program, "evaluator", NULL, memory_bytes, &process->process, err);
    if (rc < 0) {
        rv__expr_peer_free(process->peer);
        process->peer = NULL;
        return rc;
    }
    rv__frames_init(&process->frames);
    rv__buf_init(&process->out, SIZE_MAX / 2); /* frames have their own limit */
    rv__lines_init(&process->lines, NULL, NULL);
    process->sent = 0;
    process->up = process->fresh = true;
    process->greeted = process->alone = process->no_memory = false;
    process->heard_ns = rv__mono_ns(rv__clock_real());
    return RV_OK;
}

int rv__eval_process_end(struct rv__eval_process *process, int64_t patience_ms, char *how,
                         size_t size)
{
    char said[160];
    struct rv__str tail;
    if (patience_ms == 0)
        rv__child_signal(&process->process, SIGKILL);
    struct pollfd p = { .fd = process->process.pidfd, .events = POLLIN };
    if (p.fd >= 0)
        (void)poll(&p, 1, (int)patience_ms); /* its last output comes before its end */
    read_printed(process);
    rv__lines_end(&process->lines);
    int status = rv__child_reap(&process->process, patience_ms);
    rv__child_tell(status, said, sizeof said);
    tail = rv__lines_tail(&process->lines);
    for (size_t i = tail.len; i-- > 0;) /* find its last line */
        if (tail.at[i] == '\n') {
            tail = (struct rv__str){ tail.at + i + 1, tail.len - i - 1 };
            break;
        }
    struct rv__str shown = rv__str_end(tail, LAST_WORDS);
    snprintf(how, size, "it %s%s%s%.*s", said, tail.len > 0 ? ": " : "",
             shown.len < tail.len ? "…" : "", (int)shown.len, tail.len > 0 ? shown.at : "");
    rv__frames_done(&process->frames);
    rv__buf_done(&process->out);
    rv__lines_done(&process->lines);
    rv__expr_peer_free(process->peer);
    process->peer = NULL;
    process->up = process->greeted = process->alone = false;
    return status;
}
