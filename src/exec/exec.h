/* exec.h: executors: they do the work that the engine hands out, and say when it is done.
 *
 * A piece of work is somebody else's struct that begins with rv__work. An executor runs it once, on a
 * thread of its own, and calls `done` exactly once, from any thread: with an error if the work
 * panicked or could not be begun. It never touches the work after that. */
#ifndef RV_EXEC_EXEC_H
#define RV_EXEC_EXEC_H

#include <rival/base.h>

#include "base/queue.h"
#include "base/str.h"
#include "expr/expr.h"

struct rv__arena;
struct rv__random;

struct rv__work {
    void (*run)(struct rv__work *work);
    void (*done)(struct rv__work *work, const rv_error *err); /* err NULL: `run` returned */
};

/* The head of every executor: its own struct begins with this. */
struct rv__executor {
    /* Begin all of these. Returns how many, from the first on: there may be no thread or memory for
     * the rest, and their `done` is not called. */
    size_t (*start)(struct rv__executor *self, struct rv__work *const *works, size_t count);
    /* Is this one of its threads, at work? */
    bool (*inside)(const struct rv__executor *self);
    /* Waits for the work that runs. */
    void (*free)(struct rv__executor *self);
};

static inline void rv__executor_free(struct rv__executor *executor) /* NULL is allowed */
{
    if (executor != NULL)
        executor->free(executor);
}

/* Threads: up to `limit` pieces of work at once, threads made on demand. */
int rv__threads_new(int limit, struct rv__executor **ret, rv_error *err);

/* By hand: work that was started lies there until somebody says "run one", and that call returns
 * when it has run. For tests and the simulator: the order of things is theirs.
 *
 * rv__hand_run(): one of those that lie there, by chance; false: none does. `done` has been called.
 * rv__hand_take(): the same, but it is not run, and `done` is not called: its process died. NULL: none.
 * Thread: one at a time; a piece of work that runs may call these too. */
int rv__hand_new(struct rv__executor **ret, rv_error *err);
bool rv__hand_run(struct rv__executor *hand, struct rv__random *random);
struct rv__work *rv__hand_take(struct rv__executor *hand);

/* ------------------------------------------------------------------------- the evaluator --- */

/* Expressions, one after the other, on one thread: jq's values are not thread-safe, and sharing them
 * is what makes evaluations cheap. A second thread watches the first: what takes too long or too much
 * memory is halted. */
struct rv__evaluator;

enum { RV__EVAL_TIMEOUT_MS = 1000 }; /* default: of one template; most take microseconds */
#define RV__EVAL_MEMORY_BYTES ((size_t)512 << 20) /* what the process may grow by in a run of jq */

/* One evaluation: somebody else's struct, begun with these fields filled in. */
struct rv__evaluation {
    struct rv__exprs *set;   /* borrowed until `done` */
    uint32_t number;         /* of the template in it */
    struct rv__scope *scope; /* asked on the evaluator's thread, until `done` */
    size_t max_bytes;        /* of the result; 0 = RV__EXPR_OUTPUT_BYTES */
    int64_t timeout_ms;      /* 0 = RV__EVAL_TIMEOUT_MS; from when it begins, waiting not counted */
    /* Called once, on the evaluator's thread, which waits for it: hand over, do not work. `json` is
     * the value, valid during the call; err NULL means there is one. Errors: those of
     * rv__exprs_eval(); RV_ECLOSED: the evaluator ended first. The evaluation may be freed in here. */
    void (*done)(struct rv__evaluation *evaluation, struct rv__str json, const rv_error *err);
    struct rv__queue_node queued; /* the evaluator's own */
};

int rv__evaluator_new(struct rv__evaluator **ret, rv_error *err);
/* Halts what is being evaluated; what waits is answered with RV_ECLOSED. NULL is allowed. */
void rv__evaluator_free(struct rv__evaluator *evaluator);
/* Queue it. The queue's length is bounded by the places that the engine gives. Thread: any, but none
 * may be under way when the evaluator is freed. */
void rv__evaluator_start(struct rv__evaluator *evaluator, struct rv__evaluation *evaluation);
/* ------------------------------------------------------------------------------------------
 * The I/O loop: work that mostly waits, all of it on one thread
 *
 * That thread lives as long as the rv__io, which is what the parent-death signal of its children asks
 * for. Every callback comes on it, so a callback does not block. As a guest in somebody's program it
 * installs no signal handler and waits for its own children only; but a program that ignores SIGCHLD,
 * or waits for any child, can take a command's exit status from it, and the command then fails with
 * these words. */
struct rv__io;

/* A zero field means the default named beside it. */
struct rv__io_opts {
    /* Commands that run at once, 3 or 4 descriptors each; others queue in order. 0 = RV__IO_PROCESSES */
    uint32_t max_processes;
    const char *temp_dir; /* where their control files are; NULL = $TMPDIR, /tmp */
};

#define RV__IO_PROCESSES     64    /* 256 descriptors: a quarter of the usual limit of a process */
#define RV__IO_PROCESSES_MAX 65536 /* a bound for tables; the system has its own, lower ones */

/* Start the loop, with the environment as it is now: commands inherit that. `opts` NULL: all defaults.
 * Errors: RV_EINVAL, RV_ENOMEM, RV_ESYS.   Thread: any. */
int rv__io_new(const struct rv__io_opts *opts, struct rv__io **ret, rv_error *err);

/* End every command (RV__KILL_SHUTDOWN, with its grace time), wait for their `done`, and free it. NULL
 * is allowed. Thread: any but the loop's own. */
void rv__io_free(struct rv__io *io);

/* ------------------------------------------------------------------------------------------
 * Commands: a program, its input and its output
 *
 * A command has a process group of its own and ends when its first process does: what is left of the
 * group then has RV__COMMAND_LINGER_MS to close its output, and is killed. If this program dies, by
 * whatever means, the kernel kills the first process and the warden (warden.h) the rest of the group.
 * Only a process that leaves the group (setsid) escapes both, as it means to. */

#define RV__COMMAND_OUTPUT  (16u << 20) /* of stdout: what a result may reasonably be */
#define RV__COMMAND_CONTROL (1u << 20)  /* of the control file: a description and a state */
enum {
    RV__COMMAND_LINE = 8 << 10,  /* of a line of stderr: more is cut, and ends in "…" */
    RV__COMMAND_TAIL = 4 << 10,  /* of stderr, kept for the error: a screenful */
    RV__COMMAND_GRACE_MS = 5000, /* from TERM to KILL */
    RV__COMMAND_LINGER_MS = 200, /* for what a command left behind to write its last words */
};

/* Why a command was ended from outside. */
enum rv__kill { RV__KILL_NONE, RV__KILL_TIMEOUT, RV__KILL_CANCEL, RV__KILL_SHUTDOWN };

enum rv__command_end {
    RV__COMMAND_NOT_RUN, /* `error` says why, unless it was killed before it began */
    RV__COMMAND_EXITED,  /* `status` is its exit code */
    RV__COMMAND_SIGNAL,  /* `status` is the signal's number */
    RV__COMMAND_LOST,    /* it ended, and `error` says why we cannot know how */
};

/* Valid during `done` only. */
struct rv__command_result {
    enum rv__command_end end;
    int status;
    enum rv__kill killed;   /* the first reason, if it came while the command ran or queued */
    rv_error error;         /* code 0: none. RV_ENOTFOUND: no such program; RV_ETOOBIG: its stdout,
                               for which it was ended, or its control file; RV_EBUSY: no room for a
                               process or its descriptors for 10 s; RV_EINVAL, RV_ENOMEM, RV_ESYS */
    struct rv__str output;  /* stdout, as it came */
    struct rv__str tail;    /* the last lines of stderr, as they came, without the last newline */
    struct rv__str control; /* what it wrote to the control file; empty: nothing */
    int64_t ran_ms;         /* from its start to its end */
};

/* Somebody else's: it lives, with all it points to, until `done` has been called. */
struct rv__command {
    const char *const *argv; /* ends with NULL; argv[0] without a '/' is looked for in PATH */
    const char *const *env; /* "NAME=value" over what is inherited; ends with NULL; NULL: nothing */
    const char *cwd;        /* NULL: as ours */
    struct rv__str input;   /* its stdin; { NULL, 0 }: /dev/null */
    size_t max_output;      /* 0 = RV__COMMAND_OUTPUT */
    int64_t timeout_ms;     /* from its start; then RV__KILL_TIMEOUT; 0 = none */
    int64_t grace_ms;       /* 0 = RV__COMMAND_GRACE_MS */
    /* Each line as it comes, without its newline. NULL: nobody listens. */
    void (*stderr_line)(struct rv__command *command, struct rv__str line);
    void (*done)(struct rv__command *command, const struct rv__command_result *result);

    struct { /* io's; zero before the start */
        struct rv__command *next, **link;
        struct rv__command *next_killed, **link_killed;
        struct rv__process *process; /* NULL: queued */
        enum rv__kill why;
        int64_t refused_ms; /* since when the system has had no room for it; 0: it has */
        bool started, over;
    } io;
};

/* Queue a command. On success `done` is called exactly once, on the loop's thread.
 * Errors: RV_EINVAL: no argv[0] or no `done`; RV_ECLOSED: rv__io_free() has begun.   Thread: any. */
int rv__command_start(struct rv__io *io, struct rv__command *command);

/* End a command that was started: TERM to its group, KILL after the grace time; one that still queues
 * never runs. `done` comes all the same. A second reason, or one that comes too late, does nothing, but
 * the command must still exist.   Thread: any. */
void rv__command_kill(struct rv__io *io, struct rv__command *command, enum rv__kill why);

/* ------------------------------------------------------------------------------------------
 * What a finished command means for its step. Pure. */

enum rv__output_as { RV__OUTPUT_AUTO, RV__OUTPUT_JSON, RV__OUTPUT_TEXT };
enum rv__step_behavior {
    RV__STEP_PLAIN, /* an error that says nothing: tried again as configured */
    RV__STEP_STOP,
    RV__STEP_CONTINUE,
    RV__STEP_RETRY,
};
enum rv__step_backoff { RV__BACKOFF_CONFIGURED, RV__BACKOFF_LINEAR, RV__BACKOFF_EXPONENTIAL };

struct rv__outcome {
    struct rv__str result;      /* JSON; "null" after an error and for a step that was skipped */
    struct rv__str state;       /* a JSON object as the command wrote it; none: it did not */
    struct rv__str description; /* text; none: it gave none */
    bool skipped;
    int code; /* RV_OK, or the step failed: RV_EFAILED, RV_ETIMEDOUT, RV_ECANCELED … */
    struct rv__str message; /* of the failure, in UTF-8: what happened, and the tail of stderr */
    enum rv__step_behavior behavior;
    int64_t max_attempts; /* of RV__STEP_RETRY; 0 = as configured */
    enum rv__step_backoff backoff;
};

/* stdout without its last newline is the result: AUTO: as JSON if it parses (nesting deeper than
 * RV__JSON_VALUE_DEPTH does not), else as text, and null if it is empty; JSON: what does not parse is
 * an error, empty is null; TEXT: always a string. In text, each byte that is not UTF-8 becomes U+FFFD.
 *
 * An exit code other than 0, a signal, a kill, and an `error` in the control object, whatever the exit
 * code, fail the step; so does a control object that is wrong (not JSON, an unknown member, a wrong
 * type). A killed command's control object is not looked at. `program` is for messages: argv[0].
 *
 * Texts live in `arena` or in *result. Errors: RV_ENOMEM. */
int rv__command_outcome(const struct rv__command_result *result, const char *program,
                        enum rv__output_as as, struct rv__arena *arena, struct rv__outcome *ret,
                        rv_error *err);

#endif
