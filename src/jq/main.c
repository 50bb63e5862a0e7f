/* main.c: an evaluator process: it answers an engine's questions, one after the other.
 *
 *   hello ──▶ reads ──program, value──▶ keeps it ─┐
 *               │ └────question──▶ jq ──▶ answer ─┴─▶ reads …      the engine hangs up: it ends
 *               └ nothing more to read: sends the answers
 *
 * Frames are heard in order and answered in order, so what an answer is to needs no telling, and the first
 * question without an answer is the one that ended the process. Answers leave in batches; what ends the
 * process by a signal sends those that are ready first, so that nobody else is blamed.
 *
 * Limits. Memory: RLIMIT_AS; libjq aborts at it. Time: a timer on the CPU time of this process ticks; a
 * question that has had its ticks is halted, and if that does nothing (a single call in C) answered with
 * an error by the signal handler, and the process ends. CPU time, since a stopped or loaded machine is no
 * fault of the expression. Nothing of the environment is seen but the time zone: libjq would load ~/.jq. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "exec/exec.h"
#include "jq/jq.h"

enum {
    FD = 3, /* where the engine is */
    TICK_MS = 10,
    HARD_TICKS = 100,     /* beyond the limit: a call in C that does not end. A second */
    COMPILE_TICKS = 3000, /* of compiling one program, which takes three: something is wrong */
    READ_AT_ONCE = 64 << 10,
    SEND_BYTES = 32 << 10, /* answers leave when so much is ready, */
    SEND_NS = 500000,      /* or the oldest has waited for so long */
    SIGNAL_STACK = 64 << 10,
};
#define STACK_BYTES ((rlim_t)64 << 20) /* libjq frees nested values by recursion */

struct evaluator {
    struct rv__jq *jq;
    struct rv__frames frames;
    struct rv__buf work; /* an answer being made */
    struct rv__buf out;  /* answers that are ready */
    int64_t out_since_ns;
    /* For signal handlers. */
    volatile sig_atomic_t out_busy; /* `out` is being changed: leave it alone */
    volatile sig_atomic_t ticks, limit;
    volatile sig_atomic_t asked, compiling; /* what goes on: neither: nothing that is timed */
    volatile int64_t id;
    size_t at;
};

static struct evaluator *self; /* of this process: signal handlers have no other way to find it */

/* --------------------------------------------------------------------------------- sending --- */

/* Also from signal handlers. False: the engine has hung up. */
static bool send_bytes(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(FD, bytes, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static void send_out(void)
{
    self->out_busy = 1;
    if (self->out.rc != RV_OK || !send_bytes(self->out.text, self->out.len))
        _exit(1);
    rv__buf_reset(&self->out);
    self->out_busy = 0;
}

/* `work` is a whole frame. */
static void answer(void)
{
    if (self->out.len == 0)
        self->out_since_ns = rv__mono_ns(rv__clock_real());
    self->out_busy = 1;
    rv__buf_str(&self->out, rv__buf_view(&self->work));
    self->out_busy = 0;
    if (self->work.rc != RV_OK || self->out.rc != RV_OK)
        _exit(1); /* no memory: the engine sees it end */
    if (self->out.len >= SEND_BYTES)
        send_out();
}

/* Who waits for an answer that is ready should not wait for the next one, too. */
static void send_what_waits(void)
{
    if (self->out.len > 0 && rv__mono_ns(rv__clock_real()) - self->out_since_ns > SEND_NS)
        send_out();
}

/* ---------------------------------------------------------------------------------- ending --- */

static size_t put_number(char *to, int64_t n)
{
    char digits[24];
    size_t len = 0, at = 0;
    if (n < 0) {
        to[at++] = '-';
        n = -n;
    }
    do
        digits[len++] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    while (len > 0)
        to[at++] = digits[--len];
    return at;
}

static void send_ready(void)
{
    if (!self->out_busy && self->out.len > 0)
        (void)send_bytes(self->out.text, self->out.len);
}

/* It cannot be halted: answer for it, and end. The engine starts another process. */
static _Noreturn void answer_by_force(void)
{
    static const char begin[] = "{\"type\":\"error\",\"id\":", middle[] = ",\"at\":",
                      end[] = ",\"code\":";
    char frame[160];
    size_t len = 4;
    memcpy(frame + len, begin, sizeof begin - 1);
    len += sizeof begin - 1;
    len += put_number(frame + len, self->id);
    memcpy(frame + len, middle, sizeof middle - 1);
    len += sizeof middle - 1;
    len += put_number(frame + len, (int64_t)self->at);
    memcpy(frame + len, end, sizeof end - 1);
    len += sizeof end - 1;
    len += put_number(frame + len, RV_ETIMEDOUT);
    frame[len++] = '}';
    frame[0] = frame[1] = frame[2] = 0;
    frame[3] = (char)(len - 4);
    send_ready();
    (void)send_bytes(frame, len);
    _exit(0);
}

static void on_tick(int number)
{
    static const char slow[] = "a program takes too long to compile\n";
    int before = errno;
    (void)number;
    if (self->asked && ++self->ticks >= self->limit) {
        (void)rv__jq_halt(self->jq);
        if (self->ticks - self->limit >= HARD_TICKS && !self->out_busy)
            answer_by_force();
    }
    if (self->compiling && ++self->ticks >= COMPILE_TICKS) {
        send_ready();
        (void)!write(2, slow, sizeof slow - 1);
        _exit(1);
    }
    errno = before;
}

/* The last words of a process that a signal ends. Then the signal again, no longer caught. */
static void on_crash(int number)
{
    static const char refused[] = "\0\0\0\x22{\"type\":\"dying\",\"noMemory\":true } ";
    bool no_memory = errno == ENOMEM;
    send_ready();
    if (no_memory)
        (void)send_bytes(refused, sizeof refused - 1);
    (void)raise(number);
}

static void catch_signals(void)
{
    static char stack[SIGNAL_STACK]; /* one that overflowed is of no use */
    static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
    stack_t alternative = { .ss_sp = stack, .ss_size = sizeof stack };
    struct sigaction crash = { .sa_handler = on_crash, .sa_flags = SA_ONSTACK | (int)SA_RESETHAND };
    struct sigaction tick = { .sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART };
    struct itimerval every = { { 0, TICK_MS * 1000L }, { 0, TICK_MS * 1000L } };
    (void)sigaltstack(&alternative, NULL);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        (void)sigaction(crashes[i], &crash, NULL);
    (void)sigaction(SIGPROF, &tick, NULL);
    (void)setitimer(ITIMER_PROF, &every, NULL); /* of CPU time: it stands while we wait */
}

/* --------------------------------------------------------------------------------- hearing --- */

static int64_t number_of(struct rv__str json, int64_t otherwise)
{
    int64_t n;
    return !rv__str_none(json) && rv__json_int(json, &n) == RV_OK ? n : otherwise;
}

static void put_error(int64_t id, size_t at, int code, const char *why)
{
    rv__buf_reset(&self->work);
    self->work.max_bytes = SIZE_MAX / 2;
    size_t start = rv__wire_begin(&self->work, FRAME_ERROR);
    rv__wire_int(&self->work, "id", id);
    rv__wire_int(&self->work, "at", (int64_t)at);
    rv__wire_int(&self->work, "code", code);
    rv__wire_text(&self->work, "message", rv__str(why));
    rv__wire_end(&self->work, start);
}

static void hear_question(const struct rv__frame *frame)
{
    enum { ID, CPU, MAX, KEYS };
    static const char *const keys[] = { "id", "cpuMs", "maxBytes" };
    struct rv__str has[KEYS];
    rv_error err;
    rv__frame_members(frame, keys, has, KEYS);
    int64_t limit = number_of(has[CPU], RV__EVAL_CPU_MS) / TICK_MS + 1;
    int64_t max_bytes = number_of(has[MAX], 0);
    self->id = number_of(has[ID], -1);
    self->limit = (sig_atomic_t)(limit < INT32_MAX / 2 ? limit : INT32_MAX / 2);

    rv__buf_reset(&self->work);
    self->work.max_bytes = SIZE_MAX / 2;
    size_t start = rv__wire_begin(&self->work, FRAME_RESULT);
    rv__wire_int(&self->work, "id", self->id);
    rv__buf_text(&self->work, ",\"values\":");
    self->work.max_bytes = self->work.len + 16 + (size_t)(max_bytes > 0 ? max_bytes : 0);
    send_what_waits();
    self->ticks = 0;
    self->at = 0;
    self->asked = 1;
    int rc = rv__jq_answer(self->jq, frame->json, &self->work, &self->at, &err);
    self->asked = 0;
    if (rc < 0) {
        put_error(self->id, self->at, rc, err.message);
    } else {
        self->work.max_bytes = SIZE_MAX / 2;
        rv__wire_end(&self->work, start);
    }
    answer();
}

/* A program to be kept, or (with an id) only to be compiled. */
static void hear_program(const struct rv__frame *frame)
{
    enum { ID, SLOT, TEXT, KEYS };
    static const char *const keys[] = { "id", "slot", "text" };
    struct rv__str has[KEYS], text = { NULL, 0 };
    struct rv__arena arena;
    rv_error err;
    rv__frame_members(frame, keys, has, KEYS);
    rv__arena_init(&arena, SIZE_MAX); /* a frame's worth */
    if (rv__str_none(has[TEXT]) || rv__json_string(has[TEXT], &arena, &text) < 0)
        _exit(1);
    send_what_waits();
    self->ticks = 0;
    self->compiling = 1;
    int rc = rv__str_none(has[ID]) ? rv__jq_program(self->jq, number_of(has[SLOT], -1), text)
                                   : rv__jq_compile(text, &err);
    self->compiling = 0;
    rv__arena_done(&arena);
    if (rv__str_none(has[ID])) {
        if (rc < 0)
            _exit(1); /* no engine of ours says this, or there is no memory for it */
        return;
    }
    int64_t id = number_of(has[ID], -1);
    if (rc < 0) {
        put_error(id, 0, rc, err.message);
    } else {
        rv__buf_reset(&self->work);
        size_t start = rv__wire_begin(&self->work, FRAME_RESULT);
        rv__wire_int(&self->work, "id", id);
        rv__wire_end(&self->work, start);
    }
    answer();
}

static void hear_value(const struct rv__frame *frame)
{
    enum { SLOT, JSON, KEYS };
    static const char *const keys[] = { "slot", "json" };
    struct rv__str has[KEYS];
    rv__frame_members(frame, keys, has, KEYS);
    send_what_waits();
    if (rv__jq_value(self->jq, number_of(has[SLOT], -1), has[JSON]) < 0)
        _exit(1);
}

/* Everything that has come by now. */
static void hear(void)
{
    struct rv__frame frame;
    int rc;
    while ((rc = rv__frames_next(&self->frames, &frame, NULL)) == 1) {
        if (frame.type == FRAME_INVOKE)
            hear_question(&frame);
        else if (frame.type == FRAME_REGISTER)
            hear_program(&frame);
        else if (frame.type == FRAME_VALUE)
            hear_value(&frame);
    }
    if (rc < 0)
        _exit(1); /* an engine does not say that */
    if (self->out.len > 0)
        send_out();
}

/* ------------------------------------------------------------------------------- beginning --- */

static void say_hello(void)
{
    size_t start = rv__wire_begin(&self->out, FRAME_HELLO);
    rv__wire_int(&self->out, "protocol", 1);
    rv__wire_int(&self->out, "pid", getpid());
    rv__wire_text(&self->out, "version", rv__str(RV_VERSION));
    rv__wire_end(&self->out, start);
    send_out();
}

/* The time zone is all that expressions may see of the environment, and libjq looks for a HOME. */
static int clear_environment(void)
{
    const char *zone = getenv("TZ"); /* one thread so far */
    char *copy = zone != NULL ? strdup(zone) : NULL;
    int rc = clearenv(); /* NOLINT(concurrency-mt-unsafe) */
    if (copy != NULL)
        rc |= setenv("TZ", copy, 1); /* NOLINT(concurrency-mt-unsafe) */
    free(copy);
    return rc;
}

/* Sanitizers reserve far more address space than any limit. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_LIMITED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define MEMORY_LIMITED 0
#endif
#endif
#ifndef MEMORY_LIMITED
#define MEMORY_LIMITED 1
#endif

static void limit_resources(uint64_t memory)
{
    struct rlimit none = { 0, 0 }, limit = { memory, memory }, stack;
    (void)setrlimit(RLIMIT_CORE, &none); /* a crash is told; a file of a gigabyte tells no more */
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < STACK_BYTES) {
        stack.rlim_cur = stack.rlim_max < STACK_BYTES ? stack.rlim_max : STACK_BYTES;
        (void)setrlimit(RLIMIT_STACK, &stack); /* as large as it was, otherwise */
    }
    if (MEMORY_LIMITED && memory > 0)
        (void)setrlimit(RLIMIT_AS, &limit); /* refused only where a smaller one is set already */
}

int rv__jq_main(int argc, char **argv)
{
    static char bytes[READ_AT_ONCE];
    static struct evaluator evaluator;
    if (argc != 3 || fcntl(FD, F_SETFD, FD_CLOEXEC) < 0) {
        fprintf(stderr, "rival evaluator: it is started by an engine, to evaluate expressions\n");
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(argv[1], NULL, 10))
        return 1; /* the engine has died already */

    self = &evaluator;
    rv__frames_init(&self->frames);
    rv__buf_init(&self->work, SIZE_MAX / 2); /* frames have a bound of their own */
    rv__buf_init(&self->out, SIZE_MAX / 2);
    if (clear_environment() != 0 || rv__jq_new(&self->jq, NULL) < 0)
        return 1;
    (void)dup2(1, 2); /* what libjq says before it aborts: the engine reads it */
    limit_resources(strtoull(argv[2], NULL, 10));
    catch_signals();
    say_hello();
    for (;;) {
        ssize_t n = recv(FD, bytes, sizeof bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(0); /* the engine's end is ours */
        if (rv__frames_feed(&self->frames, (struct rv__str){ bytes, (size_t)n }) < 0)
            _exit(1);
        hear();
    }
}
