/* context.h: rv_ctx: what an attempt sees and says. The engine makes one for each piece of work (engine/attempt.h has
 * what only the engine knows), a host or worker for each invocation. It belongs to the threads that do the work until
 * it is answered. */
#ifndef RV_WORK_CONTEXT_H
#define RV_WORK_CONTEXT_H

#include <rival/rival.h>

#include "agent/agent.h"
#include "base/arena.h"
#include "base/cancel.h"
#include "exec/exec.h"
#include "flow/flow.h"
#include "work/access.h"
#include "work/given.h"
#include "work/sight.h"

struct rv__offers;
struct rv__plan_exprs;
struct rv__provider;
struct rv__streaming;
struct rv__save;
struct rv__secrets;
struct rv__services;

enum {
    RV__STATE_MAX_BYTES = 1 << 20,  /* of a state; a longer one fails its step */
    RV__ERROR_MAX_BYTES = 64 << 10, /* of an error; of a longer one only message and codes stay */
    RV__ERROR_TEXT_BYTES = 8 << 10, /* of a message with its NUL; a longer one keeps its end */
    RV__LOG_LINES = 10000,          /* of one attempt; further ones are only counted */
    RV__LOG_BYTES = 4095,           /* of one line; a longer one is cut */
    RV__LOG_TICK_MS = 150,          /* with a commit: a line is on disk within 200 ms */
    RV__PATH_BYTES = (RV__PLAN_MAX_NAME + 40) * (RV__PLAN_MAX_DEPTH + 1), /* no path is longer */
};

struct rv__log_line {
    struct rv__log_line *next;
    int64_t at_ms;
    int level;
    bool stream; /* a piece of a streamed answer: consecutive pieces become one line */
    struct rv__str message, metadata;
};

/* The parts of what a step sees. */
enum rv__part {
    PART_INPUT,
    PART_STEP,  /* the newest node of that alias in scope: its result */
    PART_STEPS, /* all of them: {alias: {result, state, status, error?}} */
    PART_LAST,  /* the previous node: its result */
    PART_ITEM,  /* of the innermost forEach */
    PART_ITEMS,
    PART_PARENT, /* of an enclosing iteration; `alias`: "item", "index", "items", "parent.item" … */
    PART_ERROR,  /* handlers: the error, */
    PART_FAILED, /* and the node that failed: {result, state, alias, stepName, status} */
    PART_INPUTS, /* of the agent of a state: the results of its dependencies, by parameter */
    PART_PARAMETERS,
    PART_STATE, /* {name, stage, priority, attempt} */
    PARTS,
};

/* A part as JSON, in memory of the step or in the given `room`. Only PART_STEP and PART_LAST have the other fields; a
 * state that is "none" is {}, and only a failed node has an error. */
struct rv__seen {
    struct rv__str json;
    struct rv__str state, alias, error;
    const char *status;
};

extern const char *const rv__part_names[PARTS]; /* as frames have them */

enum rv__who { WHO_RUN, WHO_WORKFLOW, WHO_STEP, WHO_PATH, WHO_EXECUTION, WHO_KEY };

/* Where the values come from: the engine's process (source.c), or frames, in a host or worker (host.c, worker.c). Log
 * lines go through it, too; the answer stays in the rv_ctx for the caller. Thread: the step's. */
struct rv__source {
    /* RV_ENOTFOUND: it does not exist. `alias`: for PART_STEP and PART_PARENT. `room` NULL: of PART_STEP and PART_LAST
     * everything but the result; other parts only if they are in memory, else RV_ETOOBIG. */
    int (*see)(rv_ctx *ctx, enum rv__part part, struct rv__str alias, struct rv__buf *room,
               struct rv__seen *ret);
    /* Never NULL. Without memory it is "", and `unread` is set, for which the attempt fails. */
    const char *(*who)(rv_ctx *ctx, enum rv__who who);
    void (*log)(rv_ctx *ctx, int level, struct rv__str message, struct rv__str metadata);
    /* Fire the step's token if a cancel has arrived. `keep`: from now on as soon as one arrives, since the step has
     * taken its token. NULL: the token is fired directly. */
    void (*listen)(rv_ctx *ctx, bool keep);
};
extern const struct rv__source rv__engine_source;

/* A piece of work that a worker or a host has; session.c. */
struct rv__invoked {
    struct rv__wire_task begin, cancel;
    struct rv__session *session;          /* who has it; held by its owner */
    void (*complete)(struct rv_ctx *ctx); /* it has ended */
    void *arg;                            /* for `complete` */
    bool begun;                           /* its owner knows that it has begun */
    bool answered;                        /* by a result or an error */
    struct rv_ctx *next;                  /* begun together with it: one task brings all of them */
    char id[40];
    uint32_t slot;    /* among those of its session */
    bool sent;        /* the invocation was sent to the worker */
    bool here;        /* a worker that came back still has it */
    atomic_bool told; /* it is to be cancelled: `cancel` is on its way, */
    bool told_worker; /* and was sent to the worker */
    unsigned jobs;    /* jobs that read from the store for it */
    bool over;        /* it has ended, and waits for its jobs */
    bool is_lost;
    rv_error why; /* why it was lost, or (code not 0) could not begin */
};

struct rv__told {
    struct rv__told *next;
    struct rv__str path;
};

struct rv_ctx {
    struct rv__work work; /* first: the executor knows only this */
    const struct rv__source *source;
    struct rv__services *services; /* what it may use; NULL in a host */
    rv_engine *engine;             /* for rv_ctx_engine() */
    const char *run_id;            /* this and what follows belong to its run, which is held */
    struct rv__pieces *pieces;
    const struct rv__plan *plan;
    const struct rv__plan_exprs *exprs;
    struct rv__str env;             /* variables that expressions may read: JSON */
    const char *const *environment; /* of its commands; NULL: that of this process */
    struct rv__secrets *secrets;    /* held; NULL: the plan has none, or this is a host */
    rv_step_fn fn;                  /* NULL: it is no function in this process */
    struct rv__evaluation evaluation;
    struct rv__sight sight;
    bool describing;           /* its description is being evaluated */
    struct rv__labels *labels; /* labels of its items are being evaluated; NULL: not */
    union {                    /* of a step that the I/O loop runs, */
        struct rv__command command;
        struct {
            struct rv__fetch fetch;
            bool any_status;
        };
        struct rv__tool_call tool;
        struct rv__invoked invoked; /* or a worker */
    };
    /* of a turn of a chat: */
    struct rv__offers *offers;     /* tools of MCP servers; NULL: not asked for */
    struct rv__provider *provider; /* of the model */
    struct rv__str returns;        /* JSON Schema of the answer; none: it is text */
    struct rv__str outputs; /* what the model has set as its result, a JSON object; none: nothing */
    struct rv__str asked;   /* the prompt, if later attempts of its state need it; else none */
    struct rv__str attached; /* the first request: its files, as JSON for the journal; none: none */
    bool bad_files;          /* it cannot be sent because of one of them */
    struct rv__streaming
        *streaming; /* the part of the answer that has arrived, if it is streamed */
    bool streamed;  /* pieces of the answer are in the log */
    int64_t tokens; /* used by a turn that has ended; 0: not known */
    enum rv__output_as output_as;
    struct rv__save *save;         /* the file of saveTo, in the arena; NULL: none */
    pthread_mutex_t gate;          /* held while it is started, */
    struct rv__cancel_watch watch; /* and how to stop it */
    void (*stop)(struct rv_ctx *ctx);
    const char *directory; /* of its workflow's file; in the arena, once it has begun; NULL: none */
    struct rv__str function;     /* the function to run in a host or worker, instead of fn: */
    const char *module;          /* the file, in a host; */
    struct rv__session *session; /* or the worker; held by the engine */
    struct rv__str version;      /* of the workflow that its node is in; in the plan */
    int64_t timeout_ms;          /* of the attempt, from its beginning; 0 = none */
    int eval;                    /* -1: an attempt of a step */
    struct rv__view view;
    int attempt;        /* from 1 */
    int64_t loop_index; /* -1: in no iteration */
    /* in a handler: the status of the run or nested workflow that it handles; in the handler of a step: running. NULL:
     * in no handler */
    const char *handles;
    struct rv__arena arena; /* values that its function was given */
    const char *mistake;    /* it used an impossible path, and fails for that; NULL: none */
    int unread;             /* error code of a value that could not be read: it fails for that */
    struct rv__told *told;  /* paths that its log has a line about */
    unsigned told_count;
    char *path, *key; /* in the arena, made when asked for */

    /* what it said */
    enum rv__msg_kind
        outcome;        /* MSG_DONE, MSG_FAILED, MSG_PARK, MSG_NOTE; MSG_LOST: its process died */
    enum rv__lost lost; /* MSG_LOST: how */
    struct rv__blob *result, *state, *error;
    const struct rv__blob *shown; /* the result in which secrets are masked; not held */
    struct rv__buf state_members; /* of its state: "key":json, comma-separated */
    size_t state_over;            /* bytes of a state that was too long; 0: it was not */
    struct rv__blob *note;        /* MSG_NOTE: for the next attempt, a JSON object */
    struct rv__str handle;        /* MSG_PARK, MSG_NOTE: the handle, or the name of a signal */
    int64_t due_ms;               /* MSG_PARK: until when; 0 = as its step says */
    bool skipped;
    bool described; /* it has set its description itself */
    bool given_up;  /* the engine closes: it was not done, and did not fail */
    enum rv__behavior behavior;
    int max_attempts, backoff;
    int64_t wait_ms; /* MSG_FAILED: wait so long before the next attempt; 0 = as its step says */
    _Atomic(struct rv__log_line *) logs; /* newest first; the loop takes them from time to time */
    size_t log_count;

    /* what it has read of its run (access.h) */
    _Atomic(struct rv__read_note *) reads; /* newest first; the loop takes them now and then */
    struct rv__read_note *read_last; /* the same and those that were taken; of who does the work */
    size_t read_count;
    char pass[RV__PASS_SIZE]; /* its access token; "": it has none. Set before it begins */

    /* what it was given, for people (given.h) */
    bool records;
    _Atomic(struct rv__given *) given; /* newest first; the loop takes them now and then */
    struct rv__given *given_last; /* the same and those that were taken; of who does the work */
    size_t given_bytes, given_count;
};

/* Run its function and note the outcome. On the step's thread. */
void rv__ctx_run(struct rv__work *work);
/* Add a line to its log, which the loop will take. `at_ms`: wall clock. */
void rv__ctx_keep_log(struct rv_ctx *ctx, int64_t at_ms, int level, struct rv__str message,
                      struct rv__str metadata);
/* Add a piece of a streamed answer. Secrets in it are masked already. */
void rv__ctx_keep_stream(struct rv_ctx *ctx, int64_t at_ms, struct rv__str text);
/* Set its result or a member of its state, if that is JSON: as rv_return_json, rv_set_state. */
int rv__ctx_result(struct rv_ctx *ctx, struct rv__str json);
int rv__ctx_state(struct rv_ctx *ctx, struct rv__str key, struct rv__str json);
/* Fail it if its state was too long. */
void rv__ctx_check_state(struct rv_ctx *ctx);
/* It failed with this error, {"message":…, …}. Without memory the error it has stays. */
void rv__ctx_error(struct rv_ctx *ctx, struct rv__str json);
/* Add the exit code of a command to its error; add a code such as "timeout". */
void rv__ctx_exit_code(struct rv_ctx *ctx, int code);
void rv__ctx_error_code(struct rv_ctx *ctx, const char *word);
/* Its outcome: it could not be run, or it panicked. */
void rv__ctx_failed(struct rv_ctx *ctx, const rv_error *err);
/* Its outcome: its process died or cannot be reached. Also a line in its log. */
void rv__ctx_lost(struct rv_ctx *ctx, enum rv__lost how, const rv_error *why);
/* Append a part of its context as JSON: {"runId":…}. */
void rv__ctx_put_run(struct rv_ctx *ctx, struct rv__buf *out);
/* The state whose agent it is; NULL: it is no agent. Append to `out` what only agents see: one of the last three parts.
 * RV_ENOTFOUND: it is no agent; RV_ENOMEM, RV_ETOOBIG, errors of the store. */
const struct rv__state *rv__ctx_agent(const struct rv_ctx *ctx);
int rv__agent_see(struct rv_ctx *ctx, enum rv__part part, struct rv__buf *out);
/* {input, lastStep, loop: {item, index}, run}; and everything that it sees. NULL: no memory. */
const char *rv__ctx_brief_json(struct rv_ctx *ctx);
const char *rv__ctx_full_json(struct rv_ctx *ctx);
/* Write a line about a wrong path to its log, once per path. */
void rv__ctx_note(struct rv_ctx *ctx, int level, struct rv__str path, const char *fmt, ...)
    RV_PRINTF(4, 5);
/* Append, in a handler, {"error":…,"failedStep":…,"workflowState":…}. */
int rv__ctx_put_failure(struct rv_ctx *ctx, struct rv__buf *out);
void rv__ctx_done(struct rv_ctx *ctx); /* releases everything but itself and its run */

#endif
