/* exec.h: executors. They do the work that the engine hands out, and report when it is done.
 *
 * A piece of work is a struct of the caller that begins with rv__work. The caller starts as many pieces at
 * once as the executor has credits, and gets these callbacks for each:
 *
 *   started ──begun──▶ running ──done──▶        `done` or `lost` is called exactly once, `begun` at most
 *      └───────────────┴──┴───lost──▶           once and before that; from any thread
 *
 * After `done` or `lost` the executor never touches the work. */
#ifndef RV_EXEC_EXEC_H
#define RV_EXEC_EXEC_H

#include <rival/base.h>

#include "base/chain.h"
#include "base/mask.h"
#include "base/queue.h"
#include "base/str.h"
#include "base/timers.h"
#include "expr/expr.h"
#include "wire/wire.h"

struct rv__arena;
struct rv__outfile;
struct rv__random;

enum rv__lost {
    RV__LOST_ALONE,     /* its process died and had no other work: this work is to blame */
    RV__LOST_SHARED,    /* its process died and had other work too */
    RV__LOST_BLAMELESS, /* unknown what happened to its process, or the process is remote */
};

struct rv__work {
    void (*run)(struct rv__work *work); /* does the work, for executors that run it on a thread */
    /* The work has left the queue; its time-out counts from now on. May be NULL. */
    void (*begun)(struct rv__work *work);
    /* err NULL: the work was done, successful or not. Else it panicked, or could not be started. */
    void (*done)(struct rv__work *work, const rv_error *err);
    /* The work will never be done: its process died, or cannot be reached. NULL: this executor cannot lose work. */
    void (*lost)(struct rv__work *work, enum rv__lost how, const rv_error *why);
    rv_cancel *token; /* fired: the work should stop. NULL: it cannot be stopped */
};

/* The head of every executor: its own struct begins with this. */
struct rv__executor {
    const char *name;   /* "thread", "host" …: shown to people */
    const char *limit;  /* what its credits are called: "workers", "hosts" … */
    const char *credit; /* what one credit is called: "a free worker" */
    int64_t credits;    /* how many pieces of work it takes at once. Read by its owner's thread */
    int lane;           /* for its owner: where work for it waits. Not used here */
    /* Start all of these. Returns how many were started, from the first on: there may be no thread or memory
     * for the rest, which get no callbacks. Thread: its owner's. */
    size_t (*start)(struct rv__executor *self, struct rv__work *const *works, size_t count);
    /* Work that was started and has not ended is no longer wanted. `done` or `lost` is still called.
     * Thread: its owner's. */
    void (*cancel)(struct rv__executor *self, struct rv__work *work);
    /* The work that the calling thread is running; NULL: none of this executor. */
    struct rv__work *(*inside)(const struct rv__executor *self);
    /* Waits for the work that runs. */
    void (*free)(struct rv__executor *self);
};

static inline void rv__executor_free(struct rv__executor *executor) /* NULL is allowed */
{
    if (executor != NULL)
        executor->free(executor);
}

/* `cancel` for executors whose work checks its token. */
void rv__executor_fire(struct rv__executor *self, struct rv__work *work);
/* `inside` for executors that run no work on threads of this process. */
struct rv__work *rv__executor_outside(const struct rv__executor *self);

/* Threads, made on demand, at most `most`: that may be more than the credits of `head`, because work that waits for
 * other work lends its credit. Names, credits and lane come from `head`; `begun` is called when a thread has it. */
int rv__threads_new(const struct rv__executor *head, int most, struct rv__executor **ret,
                    rv_error *err);

/* An executor driven by hand: started work waits until a call runs one piece, and that call returns when it
 * has run. For tests and the simulator, which control the order. A hand has several executors, which share one
 * set of waiting work.
 *
 * rv__manual_run(): run one waiting piece, chosen at random; false: none waits. `done` has been called.
 * rv__manual_begin(): call `begun` of a waiting piece, chosen at random, before it is run; false: none.
 * rv__manual_lose(): call `lost` of a piece of this executor, before it is run or instead of its `done`; false: none
 * waits.
 * rv__manual_take(): remove one without any callback, as if its process died. NULL: none.
 * Thread: one at a time; a piece of work that runs may call these too. */
struct rv__manual;
int rv__manual_new(struct rv__manual **ret, rv_error *err);
void rv__manual_free(
    struct rv__manual *hand); /* NULL is allowed. Call it before freeing its executors */
/* Valid as long as the hand. `head` as above. */
int rv__manual_executor(struct rv__manual *hand, const struct rv__executor *head,
                        struct rv__executor **ret, rv_error *err);
bool rv__manual_lies(const struct rv__manual *hand); /* does any work wait? */
bool rv__manual_run(struct rv__manual *hand, struct rv__random *random);
bool rv__manual_begin(struct rv__manual *hand, struct rv__random *random);
bool rv__manual_lose(struct rv__executor *executor, struct rv__random *random, const rv_error *why);
/* Lose this waiting piece, before it is run or (at random) instead of its `done`. */
void rv__manual_lose_work(struct rv__executor *executor, struct rv__work *work,
                          struct rv__random *random, enum rv__lost how, const rv_error *why);
struct rv__work *rv__manual_take(struct rv__manual *hand);

/* ------------------------------------------------------------------------- the evaluator --- */

/* Expressions. jq runs in evaluator processes (`rival evaluator`; src/jq), which a thread of this object asks:
 * libjq aborts its process on some data, and that is then an error of one expression only. Constants and plain
 * paths need no jq and are evaluated on that thread. */
struct rv__evaluator;

enum { RV__EVAL_CPU_MS = 1000 }; /* default: CPU time of one template; most take microseconds */
#define RV__EVAL_MEMORY_BYTES ((uint64_t)1 << 30) /* default: address space of one process */

/* A zero field means the default named beside it. */
struct rv__evaluator_opts {
    int64_t cpu_ms;        /* RV__EVAL_CPU_MS */
    uint64_t memory_bytes; /* RV__EVAL_MEMORY_BYTES */
};

/* One evaluation: a struct of the caller, started with these fields filled in. */
struct rv__evaluation {
    struct rv__exprs *set; /* borrowed until `done` */
    uint32_t number;       /* of the template in it */
    struct rv__scope
        *scope;       /* used on the evaluator's thread until `done`, perhaps several times */
    size_t max_bytes; /* of the result; 0 = RV__EXPR_OUTPUT_BYTES */
    int64_t cpu_ms;   /* CPU time limit; 0 = as in the evaluator's options */
    /* Called once, on the evaluator's thread, which waits for it: pass the value on, do no work here. `json` is
     * the value, valid during the call, if err is NULL. The evaluation may be freed in here.
     * Errors: RV_EINVAL: the expression failed; RV_EPARSE: jq cannot compile it; RV_ETOOBIG: its value;
     * RV_ETIMEDOUT: the CPU time; RV_EFAILED: it killed its process, twice; RV_ENOTFOUND, RV_ESYS: no
     * process could be started; RV_ENOMEM; RV_ECLOSED: the evaluator was closed first; errors of the scope. */
    void (*done)(struct rv__evaluation *evaluation, struct rv__str json, const rv_error *err);
    /* A process has it: called once, before `done`, which must not wait for it. Not called if no jq is needed. May
     * be NULL. Thread: the evaluator's, or that of rv__evaluator_start(). */
    void (*begun)(struct rv__evaluation *evaluation);

    struct { /* the evaluator's */
        struct rv__queue_node queued;
        struct rv__evaluation *next;
        struct rv__str compile; /* a program to compile, if `set` is NULL */
        uint64_t id;
        unsigned deaths; /* of its process, when it was being evaluated */
        bool begun;
    } own;
};

/* Starts a thread; a process is started when one is first needed. */
int rv__evaluator_new(const struct rv__evaluator_opts *opts, struct rv__evaluator **ret,
                      rv_error *err);
/* End its processes. Evaluations under way, waiting and later ones get RV_ECLOSED. NULL is allowed, and so
 * is a second call. Thread: one at a time, none that it calls. */
void rv__evaluator_close(struct rv__evaluator *evaluator);
/* Closes it first. No thread may be inside rv__evaluator_start(), not even about to return. */
void rv__evaluator_free(struct rv__evaluator *evaluator);
/* Queue it. The engine's places limit the length of the queue. Thread: any, but none may be under way when
 * the evaluator is freed. */
void rv__evaluator_start(struct rv__evaluator *evaluator, struct rv__evaluation *evaluation);
/* The same, and wait for it: appends the value to `out`. Thread: any except its own. */
int rv__evaluator_run(struct rv__evaluator *evaluator, struct rv__exprs *set, uint32_t number,
                      struct rv__scope *scope, struct rv__buf *out, rv_error *err);
/* For rv__exprs_check(). Valid as long as the evaluator. Thread: any except its own. */
struct rv__expr_compiler *rv__evaluator_compiler(struct rv__evaluator *evaluator);

/* The path of the program for evaluator processes: as rv__hosts_program(). RV_ENOTFOUND: not found, and *err
 * says what to do. */
int rv__evaluator_program(struct rv__buf *path, rv_error *err);

/* ------------------------------------------------------------------------------------------
 * The I/O loop: work that mostly waits, all of it on one thread
 *
 * That thread lives as long as the rv__io, as the parent-death signal of its children requires. Every callback
 * runs on it, so callbacks must not block. As a guest in the user's program it installs no signal handler and
 * waits only for its own children. A program that ignores SIGCHLD, or waits for any child, can take a command's
 * exit status; the command then fails, and its error says so. */
struct rv__io;

/* A zero field means the default named beside it. */
struct rv__io_opts {
    /* Commands that run at once, 3 or 4 descriptors each; others wait in order. 0 = RV__IO_PROCESSES */
    uint32_t max_processes;
    const char *temp_dir; /* where their control files are; NULL = $TMPDIR, /tmp */
    bool deny_private; /* refuse requests to addresses that are not public: rv__address_private() */
};

#define RV__IO_PROCESSES     64    /* 256 descriptors: a quarter of the usual limit of a process */
#define RV__IO_PROCESSES_MAX 65536 /* a bound for tables; the system has its own, lower ones */
#define RV__IO_SERVICES      64    /* as many descriptors again */

/* Start the loop. Commands inherit the environment as it is now. `opts` NULL: all defaults.
 * Errors: RV_EINVAL, RV_ENOMEM, RV_ESYS.   Thread: any. */
int rv__io_new(const struct rv__io_opts *opts, struct rv__io **ret, rv_error *err);

/* End every command (RV__KILL_SHUTDOWN, with its grace time) and every request, wait for their `done`,
 * and free it. NULL is allowed. Thread: any except the loop's own. */
void rv__io_free(struct rv__io *io);

/* Work that may wait for the disk: `run` on a thread of libuv's pool, then `done` on the loop's. A struct of the
 * caller, which must exist until then. rv__io_free() waits for it.   Thread: the loop's. */
struct rv__later {
    void (*run)(struct rv__later *later);
    void (*done)(struct rv__later *later);
};
void rv__io_later(struct rv__io *io, struct rv__later *later);

/* A task for the loop's thread; tasks run soon and in order. The caller owns it, and it must exist until it has run
 * or was taken back. Not posted yet: all zero except `run`. */
struct rv__errand {
    void (*run)(struct rv__errand *errand);
    struct rv__link listed; /* used by io, as is the rest */
    bool off;
};
/* The task runs once, even if it is posted twice before that. Errors: RV_ECLOSED: rv__io_free() has begun, or the
 * task was taken back.   Thread: any. */
int rv__io_post(struct rv__io *io, struct rv__errand *errand);
/* The task does not run any more and cannot be posted again.   Thread: the loop's. */
void rv__io_take_back(struct rv__io *io, struct rv__errand *errand);
/* Run the task when rv__io_free() begins, before requests and commands end. Do not post it as well.   Thread: the
 * loop's. */
void rv__io_at_close(struct rv__io *io, struct rv__errand *errand);

/* A one-shot timer on the loop's thread: `ring` is called after `ms`. Setting it again replaces the old time. A
 * loop that is closing calls no timers. Not set: all zero except `ring`. RV_ENOMEM: not set.   Thread: the loop's. */
struct rv__alarm {
    struct rv__timer timer; /* used by io */
    void (*ring)(struct rv__alarm *alarm);
};
int rv__io_alarm(struct rv__io *io, struct rv__alarm *alarm, int64_t ms);
void rv__io_alarm_off(struct rv__io *io, struct rv__alarm *alarm); /* it need not be set */

#define RV__SAVE_MAX_BYTES \
    (UINT64_C(64) << 30) /* limit of a file that an output is saved to; disks are smaller */

/* ------------------------------------------------------------------------------------------
 * Commands: a program, its input and its output
 *
 * A command has its own process group and ends when its first process does. The rest of the group then has
 * RV__COMMAND_LINGER_MS to close its output, and is killed. If this program dies, for whatever reason, the
 * kernel kills the first process, and the warden (warden.h) the rest of the group. Only a process that leaves
 * the group on purpose (setsid) survives. */

#define RV__COMMAND_OUTPUT  (16u << 20) /* of stdout: what a result may reasonably be */
#define RV__COMMAND_CONTROL (1u << 20)  /* of the control file: a description and a state */
#define RV__SERVICE_UNREAD  (64u << 20) /* sent to a service, not read yet: one JSON text */
enum {
    RV__COMMAND_LINE = 8 << 10,  /* of a line of stderr: more is cut, and ends in "…" */
    RV__COMMAND_TAIL = 4 << 10,  /* of stderr, kept for the error: a screenful */
    RV__COMMAND_GRACE_MS = 5000, /* from TERM to KILL */
    RV__COMMAND_LINGER_MS = 200, /* time for the rest of the group to write its last output */
};

/* Why a command was ended from outside. */
enum rv__kill { RV__KILL_NONE, RV__KILL_TIMEOUT, RV__KILL_CANCEL, RV__KILL_SHUTDOWN };

enum rv__command_end {
    RV__COMMAND_NOT_RUN, /* `error` says why, unless it was killed before it began */
    RV__COMMAND_EXITED,  /* `status` is its exit code */
    RV__COMMAND_SIGNAL,  /* `status` is the signal's number */
    RV__COMMAND_LOST,    /* it ended, and `error` says why its status is unknown */
};

/* Valid during `done` only. */
struct rv__command_result {
    enum rv__command_end end;
    int status;
    enum rv__kill killed;   /* the first reason, if it came while the command ran or waited */
    rv_error error;         /* code 0: none. RV_ENOTFOUND: no such program; RV_ETOOBIG: its stdout,
                               for which it was ended, or its control file; RV_EBUSY: no room for a
                               process or its descriptors for 10 s; RV_EINVAL, RV_ENOMEM, RV_ESYS */
    struct rv__str output;  /* stdout, as it came */
    struct rv__str tail;    /* the last lines of stderr, as they came, without the last newline */
    struct rv__str control; /* what it wrote to the control file; empty: nothing */
    int64_t ran_ms;         /* from its start to its end */
};

/* A struct of the caller. It must exist, with everything it points to, until `done` has been called. */
struct rv__command {
    const char *const *argv; /* ends with NULL; argv[0] without a '/' is looked for in PATH */
    const char *const *env; /* "NAME=value", overrides inherited ones; ends with NULL; NULL: none */
    const char *const *inherited; /* NULL: our own environment, as it was when io was made */
    const char *cwd;              /* NULL: as ours */
    struct rv__str input;         /* its stdin; { NULL, 0 }: /dev/null */
    const int *output_file;       /* stdout goes there instead of the result; NULL: to the result */
    size_t max_output;            /* 0 = RV__COMMAND_OUTPUT */
    int64_t timeout_ms;           /* from its start; then RV__KILL_TIMEOUT; 0 = none */
    int64_t grace_ms;             /* 0 = RV__COMMAND_GRACE_MS */
    struct rv__mask *mask;        /* masks secrets in stderr; NULL: there are none */
    /* A service is a command that exchanges messages as long as it runs. `input` is written to its stdin first;
     * stdin stays open for rv__command_send(), and is closed when the service is to end. All stdout goes to `heard`
     * as it arrives. Services do not count as commands: RV__IO_SERVICES of them run at once. */
    bool service;
    void (*heard)(struct rv__command *command, struct rv__str bytes);
    /* Called with each line of stderr, without its newline. May be NULL. */
    void (*stderr_line)(struct rv__command *command, struct rv__str line);
    void (*begun)(struct rv__command *command); /* the process runs. May be NULL */
    void (*done)(struct rv__command *command, const struct rv__command_result *result);

    struct { /* io's; zero before the start */
        struct rv__link listed, killed;
        struct rv__process *process; /* NULL: queued */
        enum rv__kill why;
        int64_t refused_ms; /* since when the system cannot start it; 0: not tried yet */
        bool started, over;
    } io;
};

/* Queue a command. On success `done` is called exactly once, on the loop's thread.
 * Errors: RV_EINVAL: no argv[0] or no `done`; RV_ECLOSED: rv__io_free() has begun.   Thread: any. */
int rv__command_start(struct rv__io *io, struct rv__command *command);

/* End a command: TERM to its group, KILL after the grace time; a command that is still queued never runs. `done` is
 * still called. A second reason, or one that comes too late, does nothing, but the command must still exist.
 * Thread: any. */
void rv__command_kill(struct rv__io *io, struct rv__command *command, enum rv__kill why);

/* Send bytes to a service, after `begun` and before `done`. Unread bytes wait in memory. Errors: RV_ECLOSED: its
 * stdin is closed; RV_EBUSY: more than RV__SERVICE_UNREAD bytes would wait; RV_ENOMEM. After an error nothing was
 * sent.   Thread: the loop's. */
int rv__command_send(struct rv__command *command, struct rv__str bytes);

/* ------------------------------------------------------------------------------------------
 * What a finished command means for its step. Pure. */

enum rv__output_as {
    RV__OUTPUT_AUTO,
    RV__OUTPUT_JSON,
    RV__OUTPUT_TEXT,
    RV__OUTPUT_BASE64,
    RV__OUTPUT_NONE, /* commands only */
};
enum rv__step_behavior {
    RV__STEP_PLAIN, /* an error without a behavior: retried as configured */
    RV__STEP_STOP,
    RV__STEP_CONTINUE,
    RV__STEP_RETRY,
};
enum rv__step_backoff { RV__BACKOFF_CONFIGURED, RV__BACKOFF_LINEAR, RV__BACKOFF_EXPONENTIAL };

struct rv__outcome {
    struct rv__str result;      /* JSON; "null" after an error and for a step that was skipped */
    struct rv__str state;       /* a JSON object, as the command wrote it; none: it wrote none */
    struct rv__str description; /* text; none: it wrote none */
    bool skipped;
    int code;      /* RV_OK, or the step failed: RV_EFAILED, RV_ETIMEDOUT, RV_ECANCELED … */
    int exit_code; /* the exit code; 0: exited with 0, ended by a signal, or never ran */
    struct rv__str message; /* of the failure, in UTF-8: what happened, and the tail of stderr */
    const char *word;       /* the error's code; NULL: the command set its own error */
    enum rv__step_behavior behavior;
    int64_t max_attempts; /* of RV__STEP_RETRY; 0 = as configured */
    enum rv__step_backoff backoff;
};

/* The result is stdout without its last newline. AUTO: as JSON if it parses (nesting deeper than
 * RV__JSON_VALUE_DEPTH does not) and, if it is a number, keeps its text; else as text, and null if it is
 * empty. JSON: what does not parse is an error, empty is null. TEXT: always a string. NONE: null. Bytes that
 * are not UTF-8 are an error, except with BASE64: then all of stdout is the result, as base64.
 *
 * These fail the step: an exit code other than 0, a signal, a kill, an `error` in the control object with any
 * exit code, and a bad control object (not JSON, an unknown member, a wrong type). The control object of a
 * killed command is ignored. `program` is for messages: argv[0].
 *
 * Texts are in `arena` or in *result. Errors: RV_ENOMEM. */
int rv__command_outcome(const struct rv__command_result *result, const char *program,
                        enum rv__output_as as, struct rv__arena *arena, struct rv__outcome *ret,
                        rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Requests by HTTP (fetch.c, multi.c)
 *
 * libcurl does them, all on the loop's thread. Requests go to http and https addresses only, follow redirects
 * (RV__FETCH_REDIRECTS of them; to another host only with headers that hold no secret), check certificates,
 * use the proxy that the environment names, and reuse connections. */

#define RV__FETCH_BYTES     (16u << 20) /* of an answer's body: as of a command's output */
#define RV__FETCH_MAX_BYTES (64u << 20) /* most that may be allowed: no JSON text is longer */
#define RV__FETCH_WITHIN_MS 30000       /* default time-out, in ms */
enum {
    RV__FETCH_HEAD = 64 << 10,     /* bytes of an answer's headers: 16 times what servers send */
    RV__FETCH_REDIRECTS = 10,      /* the smallest limit of any browser */
    RV__FETCH_LOOKUPS = 8,         /* names looked up at once: each takes a thread of libcurl's */
    RV__FETCH_CONNECTIONS = 10000, /* at once, if the system allows as many: about 300 MB */
    RV__FETCH_IDLE = 256,          /* connections kept for the next request */
};

/* How a request ended. The name of each is what people see as an error's `code`. */
#define RV__FETCH_MAP(X)                                                          \
    X(ANSWERED, "answered")       /* with any status */                           \
    X(CANCELLED, "cancelled")     /* rv__fetch_cancel(), or the loop ends */      \
    X(BAD_URL, "badUrl")          /* not an http or https address */              \
    X(DNS, "dns")                 /* no such name, or no name server answers */   \
    X(REFUSED, "refused")         /* nothing listens on this port */              \
    X(UNREACHABLE, "unreachable") /* no route, or no file descriptor left */      \
    X(TLS, "tls")                 /* no agreement, or a bad certificate */        \
    X(TIMEOUT, "timeout")                                                         \
    X(DROPPED, "dropped")      /* the connection ended within the answer */       \
    X(TOO_LARGE, "tooLarge")   /* headers or body */                              \
    X(BAD_ANSWER, "badAnswer") /* the answer is not HTTP */                       \
    X(REDIRECT, "redirect")    /* too many, or not to an http address */          \
    X(NO_MEMORY, "noMemory")                                                      \
    X(STATUS, "status")      /* answer.c: a status that means failure */          \
    X(NOT_JSON, "notJson")   /* answer.c: the body should be JSON, and is not */  \
    X(NOT_TEXT, "notText")   /* answer.c: the body should be UTF-8, and is not */ \
    X(DENIED, "denied")      /* a private address, which is not allowed */        \
    X(NOT_SAVED, "notSaved") /* the body could not be written to the file */
enum rv__fetch_end {
#define X(name, text) RV__FETCH_##name,
    RV__FETCH_MAP(X)
#undef X
        RV__FETCH_ENDS
};
const char *rv__fetch_end_name(enum rv__fetch_end end);

/* Valid during `done` only. */
struct rv__fetch_result {
    enum rv__fetch_end end;
    char error[320];     /* unless ANSWERED: a sentence, without the address */
    int status;          /* of ANSWERED: 200 … */
    struct rv__str head; /* of the last answer: its lines as they came, the status line first */
    struct rv__str body;
    bool saved;     /* the body is in the file */
    int64_t ran_ms; /* from rv__fetch_start() on */
};

/* A struct of the caller. It must exist, with everything it points to, until `done` has been called. */
struct rv__fetch {
    const char *url;
    const char *method;         /* upper case */
    const char *const *headers; /* "Name: value"; ends with NULL; NULL: none */
    struct rv__str body;        /* { NULL, 0 }: none */
    size_t max_bytes;           /* of the answer's body; 0 = RV__FETCH_BYTES */
    struct rv__outfile *save;   /* write the body of an answer with status 200 to 299 there, up to
                                   RV__SAVE_MAX_BYTES; NULL: do not */
    /* Called with the body of an answer with status 200 to 299, piece by piece, and before that with no bytes
     * once its head is complete; the body is then not kept, and may be of any length. `head` as in the result. False: stop; the request ends as CANCELLED. NULL: the body is
     * kept. */
    bool (*received)(struct rv__fetch *fetch, struct rv__str head, struct rv__str bytes);
    bool trusted;                           /* the operator chose it: it may be private */
    int64_t timeout_ms;                     /* of the whole request; 0 = none */
    void (*begun)(struct rv__fetch *fetch); /* the request was sent. May be NULL */
    /* Called when more of the body of an answer with status 200 to 299 has arrived. `body` is everything so far;
     * both texts are valid during the call. May be NULL. Not together with `save`. */
    void (*came)(struct rv__fetch *fetch, struct rv__str head, struct rv__str body);
    void (*done)(struct rv__fetch *fetch, const struct rv__fetch_result *result);

    struct { /* io's; zero before the start */
        struct rv__link listed, cancelled;
        struct rv__transfer *transfer; /* NULL: in the inbox */
        int64_t began_ms;
        bool started, over, cancel_asked;
    } io;
};

/* Begin a request. On success `done` is called exactly once, on the loop's thread.
 * Errors: RV_EINVAL: something is missing; RV_ECLOSED: rv__io_free() has begun.   Thread: any. */
int rv__fetch_start(struct rv__io *io, struct rv__fetch *fetch);

/* End a request at once: `done` is called with RV__FETCH_CANCELLED. After `done` this does nothing, but the request
 * must still exist.   Thread: any. */
void rv__fetch_cancel(struct rv__io *io, struct rv__fetch *fetch);

/* How many requests may be under way at once: half of the file descriptors that this process may have, at most
 * RV__FETCH_CONNECTIONS. Thread: any. */
int64_t rv__fetch_budget(void);

/* Is it an address of this machine, of a private network, link-local or unassigned, which requests controlled by
 * strangers must not reach? Checks addresses inside IPv6 ones too. Pure. */
struct sockaddr;
bool rv__address_private(const struct sockaddr *address);

/* What a finished request means for its step. Pure; answer.c. */
struct rv__answer_want {
    const char *method, *url; /* for messages */
    enum rv__output_as
        as;          /* AUTO: JSON if the headers say so or the body parses, else text; not NONE */
    bool any_status; /* a status of 400 and above is a result, not an error */
    int64_t now_ms;  /* wall clock, for a Retry-After that names a time */
};

/* Do the headers of an answer say that its body is of this type, whatever its parameters? */
bool rv__fetch_is_type(struct rv__str head, const char *type);

/* A wait that a server asks for is respected up to this: it may be wrong, or malicious. */
#define RV__RETRY_AFTER_MS (INT64_C(3600) * 1000)

struct rv__answer {
    /* The result: {status, statusText, headers, data, duration}; or, if it failed, the error:
     * {message, code, and of an answer status, statusText, headers, body (its start), retryAfterMs}. */
    struct rv__str json;
    enum rv__fetch_end end; /* ANSWERED: `json` is the result */
    int64_t retry_after_ms; /* 0: the server asked for none */
    bool final; /* it would fail again: a 4xx that is not temporary, or our own refusal */
};

/* Text is in `arena`. Errors: RV_ENOMEM; RV_ETOOBIG: the result as JSON is too long. */
int rv__fetch_answer(const struct rv__fetch_result *result, const struct rv__answer_want *want,
                     struct rv__arena *arena, struct rv__answer *ret, rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Hosts: our own processes, each of which runs the functions of one module, one at a time. This is one of them, on the
 * loop of connections (host_process.c); work/ has a pool of them, and knows what the frames mean. Thread: the loop's */

struct rv__host;

/* Lives longer than the hosts. */
struct rv__host_opts {
    struct rv__wires *wires;
    const char *program;
    int64_t term_ms;       /* from rv__host_stop() to SIGTERM */
    int64_t kill_ms;       /* from there to SIGKILL */
    uint64_t memory_bytes; /* address space; 0 = no limit */
};

struct rv__host_user {
    void (*started)(void *arg); /* there is a connection now */
    void (*heard)(void *arg, const struct rv__frame *frame);
    void (*printed)(void *arg, struct rv__str line); /* a line of its standard output */
    void (*cut)(void *arg); /* its connection has ended; it will end soon */
    /* The last call: its process has ended, and *why says how. died false: it could not be started or spoken with, which is not
     * its own fault. */
    void (*ended)(void *arg, bool died, const rv_error *why);
};

/* Start one. No callback comes before this returns. NULL: no memory. */
struct rv__host *rv__host_new(const struct rv__host_opts *opts, const char *module,
                              const struct rv__host_user *user, void *arg);
struct rv__conn *rv__host_conn(const struct rv__host *host); /* NULL: not yet, or no more */
bool rv__host_usable(const struct rv__host *host);           /* it can be given work */
void rv__host_work(struct rv__host *host); /* it gets work: what it has printed so far is dropped */
void rv__host_stop(struct rv__host *host); /* it was asked to stop: after a while it is made to */
/* It has answered: nothing is done to it any more, but it is killed when it has rested for so long. */
void rv__host_rest(struct rv__host *host, int64_t most_ms);
/* These two may call `ended`. The second: it sent something wrong; or *why is our own lack: RV_ENOMEM, RV_ETOOBIG. */
void rv__host_kill(struct rv__host *host);
void rv__host_refuse(struct rv__host *host, const rv_error *why);

/* The path of the program for hosts: RIVAL_HOST, this program if it is `rival`, beside the library, or in
 * PATH. RV_ENOTFOUND: not found, and *err says what to do. */
int rv__hosts_program(struct rv__buf *path, rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Node.js processes that load workflow files and act as workers (script.c; docs/worker-protocol.md) */

struct rv__script;
enum { RV__SCRIPT_PATH = 4096 };

enum rv__script_verdict {
    RV__SCRIPT_GOES_ON,
    RV__SCRIPT_HANGS,   /* it is killed and restarted */
    RV__SCRIPT_IS_OVER, /* it is ended: not needed any more */
};

/* A process that has described its files, and waits to become that of a script. */
struct rv__script_kept;
void rv__script_kept_free(struct rv__script_kept *kept); /* it ends; NULL is allowed */

struct rv__script_opts {
    const char *folder; /* absolute: where the npm package is searched for first */
    const char *files;  /* their absolute paths, as a JSON array */
    bool parse;         /* only check their syntax; run nothing */
    /* The process has started or restarted, and has sent `hello` and `register`. The connection now belongs to the
     * owner. Thread: the script's own. */
    void (*ready)(void *arg, int fd, int64_t pid, const struct rv__frame *hello);
    /* Called twice a second: should the process continue? Thread: the script's own. */
    enum rv__script_verdict (*judge)(void *arg);
    void *arg;
    /* The process that it begins with: *kept is taken, and NULL, when rv__script_new() succeeds. NULL, or NULL there: it
     * starts its own. */
    struct rv__script_kept **kept;
};

/* What the files contain, found by a process that ends afterwards: appends the frame `register`, as JSON. `ready`,
 * `judge` and `kept` of the options are not used. `kept` (NULL: nowhere): it stays, and is here; it ends with the calling thread.
 * Errors: RV_ENOTFOUND: no Node.js, or no package; RV_EINVAL: it could not load them; RV_ETIMEDOUT, RV_ESYS, RV_ENOMEM. */
int rv__script_describe(const struct rv__script_opts *opts, struct rv__buf *text,
                        struct rv__script_kept **kept, rv_error *err);

/* The same, by a process that stays. Thread: any. Errors: RV_ENOTFOUND, RV_ESYS, RV_ENOMEM; rv__script_wait() reports the
 * others. */
int rv__script_new(const struct rv__script_opts *opts, struct rv__script **ret, rv_error *err);
/* Wait for the frame `register` of its first start; *text is valid as long as the script. Errors: as
 * rv__script_describe(); RV_ECANCELED: it was asked to stop. */
int rv__script_wait(struct rv__script *script, struct rv__str *text, rv_error *err);
void rv__script_stop(struct rv__script *script); /* asks it to stop; does not wait */
bool rv__script_is_over(
    struct rv__script *script); /* it has ended for good: freeing does not wait */
/* Ends the process; NULL is allowed. Thread: any except its own. */
void rv__script_free(struct rv__script *script);

/* The script that Node.js runs: from RIVAL_SDK, node_modules/rival in `folder` or its parents, beside this program, where
 * it was installed, or the sources. Errors: RV_ENOTFOUND. */
int rv__script_host(const char *folder, char host[RV__SCRIPT_PATH], rv_error *err);

#endif
