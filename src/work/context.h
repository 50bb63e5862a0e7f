/* context.h: what an attempt sees, and what it says: rv_ctx. The engine makes one for each piece of work
 * (engine/attempt.h: what only the engine knows of it), a host for each invocation. It belongs to the threads
 * that do the work until it is answered. */
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
    RV__STATE_MAX_BYTES =
        1 << 20, /* of a state, which is small by nature; a longer one fails its step */
    RV__ERROR_MAX_BYTES =
        64 << 10, /* of an error; of a longer one the message and codes are kept */
    RV__ERROR_TEXT_BYTES =
        8 << 10,           /* of a message with its NUL: the tail of stderr and more. A longer
                                       one keeps its end */
    RV__LOG_LINES = 10000, /* of one attempt; what comes after is counted and marked */
    RV__LOG_BYTES = 4095,  /* of one line; a longer one is cut */
    RV__LOG_TICK_MS = 150, /* a line is on disk after 200 ms at the latest: this, and a commit */
    RV__PATH_BYTES = (RV__PLAN_MAX_NAME + 40) * (RV__PLAN_MAX_DEPTH + 1), /* no path is longer */
};

struct rv__log_line {
    struct rv__log_line *next;
    int64_t at_ms;
    int level;
    bool stream; /* a piece of an answer: those in a row become one line */
    struct rv__str message, metadata;
};

/* A part of what a step sees. */
enum rv__part {
    PART_INPUT,
    PART_STEP,  /* the newest node of that alias in scope: its result */
    PART_STEPS, /* all of them: {alias: {result, state, status, error?}} */
    PART_LAST,  /* the node before: its result */
    PART_ITEM,  /* of the innermost forEach */
    PART_ITEMS,
    PART_PARENT, /* of an iteration around it; `alias` says what: "item", "index", "items", "parent.item" … */
    PART_ERROR,  /* handlers: what happened, */
    PART_FAILED, /* and the node it happened to: {result, state, alias, stepName, status} */
    PART_INPUTS, /* of the agent of a state: what that depends on, by name */
    PART_PARAMETERS,
    PART_STATE, /* {name, stage, priority, attempt} */
    PARTS,
};

/* It, as text, in what the step holds or in the `room` that was given. Only PART_STEP and PART_LAST
 * have the rest; a state that is "none" is {}, and only what failed has an error. */
struct rv__seen {
    struct rv__str json;
    struct rv__str state, alias, error;
    const char *status;
};

extern const char *const rv__part_names[PARTS]; /* as frames have them */

enum rv__who { WHO_RUN, WHO_WORKFLOW, WHO_STEP, WHO_PATH, WHO_EXECUTION, WHO_KEY };

/* Where a step is: in the engine's process (source.c), or in another, that of a host (host.c). What
 * rv_ctx sees comes through this, and what it says at once goes through it; its answer stays in the
 * rv_ctx for the one who runs it. Thread: the step's. */
struct rv__source {
    /* RV_ENOTFOUND: there is no such thing. `alias`: of PART_STEP and PART_PARENT. `room` NULL: of PART_STEP and
     * PART_LAST all but the result, of the others what is at hand: else RV_ETOOBIG. */
    int (*see)(rv_ctx *ctx, enum rv__part part, struct rv__str alias, struct rv__buf *room,
               struct rv__seen *ret);
    const char *(*who)(rv_ctx *ctx, enum rv__who who); /* never NULL */
    void (*log)(rv_ctx *ctx, int level, struct rv__str message, struct rv__str metadata);
    /* Has word come that it should stop? Then its token is fired. `keep`: from now on as it comes, for
     * the token was handed on. NULL: the token is fired by whoever wants it stopped. */
    void (*listen)(rv_ctx *ctx, bool keep);
};
extern const struct rv__source rv__engine_source;

/* A piece of work that a worker has; workers.c. */
struct rv__invoked {
    struct rv__wire_task begin, cancel;
    struct rv_ctx *next; /* that began in the same breath: one task brings all of them */
    char id[40];
    uint32_t slot;    /* among those of its session */
    bool sent;        /* the worker has been told of it */
    bool here;        /* of a worker that came back: it has it */
    atomic_bool told; /* that it is to stop: `cancel` is on its way, */
    bool told_worker; /* and has arrived */
    unsigned jobs;    /* that read for it */
    bool over;        /* it has ended, and waits for those */
    bool is_lost;
    rv_error why; /* of one that is lost, or (code not 0) could not be begun */
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
    const char *run_id;            /* of its run, as is what follows: held */
    struct rv__pieces *pieces;
    const struct rv__plan *plan;
    const struct rv__plan_exprs *exprs;
    struct rv__str env;             /* what expressions see of the environment: JSON */
    const char *const *environment; /* of its commands; NULL: this process's */
    struct rv__secrets *secrets;    /* held; NULL: the plan has none, or in a host */
    rv_step_fn fn;                  /* NULL: no function of this process */
    struct rv__evaluation evaluation;
    struct rv__sight sight;
    bool describing;           /* what is evaluated is its description */
    struct rv__labels *labels; /* what is evaluated is a label of its items; NULL: it is not */
    union {                    /* of a step that the I/O loop runs, */
        struct rv__command command;
        struct {
            struct rv__fetch fetch;
            bool any_status;
        };
        struct rv__tool_call tool;
        struct rv__invoked invoked; /* or a worker */
    };
    struct rv__offers *offers;     /* of a turn of a chat: tools of MCP servers; NULL: not asked */
    struct rv__provider *provider; /* of a turn of a chat: who is asked, */
    struct rv__str returns;        /* what the answer must be, JSON Schema; none: text; */
    struct rv__str
        outputs;          /* what the model has set as its result, a JSON object; none: nothing; */
    struct rv__str asked; /* the prompt, where later attempts of its state are to have it; none; */
    struct rv__streaming *streaming; /* and what has come of it, if it comes in pieces */
    bool streamed;                   /* pieces of it stand in the log */
    int64_t tokens; /* of a turn that has ended: what it took; 0: it is not known */
    enum rv__output_as output_as;
    struct rv__save *save;         /* its file, in the arena; NULL: what it gets is its result */
    pthread_mutex_t gate;          /* held while it is started, */
    struct rv__cancel_watch watch; /* and how to stop it */
    void (*stop)(struct rv_ctx *ctx);
    const char *directory; /* of its workflow's file, in the arena, once it has begun; NULL: none */
    struct rv__str function;     /* in a host process, instead of fn: this one */
    const char *module;          /* of this file; */
    struct rv__session *session; /* or of this worker, held by the engine */
    struct rv__str version;      /* of the workflow that its node is in; in the plan */
    int64_t timeout_ms;          /* of the attempt, from its beginning; 0 = none */
    int eval;                    /* -1: an attempt of a step */
    struct rv__view view;
    int attempt;        /* from 1 */
    int64_t loop_index; /* -1: in no iteration */
    const char
        *handles; /* in a handler: the status of the run, or nested workflow, it is about; of one
                               whose step has failed: running. NULL: in none */
    struct rv__arena arena; /* of what its function was given */
    const char *mistake;    /* a path that can lead nowhere: it fails for that; NULL: none */
    int unread;             /* why something that it wanted to see could not be had: the same */
    struct rv__told *told;  /* paths that its log has a line about */
    unsigned told_count;
    char *path, *key; /* in the arena, made when asked for */

    /* what it said */
    enum rv__msg_kind outcome; /* MSG_DONE, MSG_FAILED, MSG_PARK; MSG_LOST: its process died */
    enum rv__lost lost;        /* MSG_LOST: how */
    struct rv__blob *result, *state, *error;
    const struct rv__blob *shown; /* of results: the one in which secrets are hidden; not held */
    struct rv__buf state_members; /* of its state: "key":json, comma-separated */
    size_t state_over;            /* bytes of a state that was too long; 0: none was */
    struct rv__str handle;
    int64_t due_ms; /* MSG_PARK: until when; 0 = as its step says */
    bool skipped;
    bool described; /* it said so itself */
    bool given_up;  /* the engine closes: it was not done, and did not fail */
    enum rv__behavior behavior;
    int max_attempts, backoff;
    int64_t wait_ms; /* MSG_FAILED: not again before that; 0 = as its step says */
    _Atomic(struct rv__log_line *) logs; /* newest first; the loop takes them now and then */
    size_t log_count;

    /* what it has read of its run (access.h) */
    _Atomic(struct rv__read_note *) reads; /* newest first; the loop takes them now and then */
    struct rv__read_note *read_last; /* the same and those that were taken; of who does the work */
    size_t read_count;
    char pass[RV__PASS_SIZE]; /* its token; "": it has none. Set before it begins */

    /* what it was given, for people (given.h) */
    bool records;
    _Atomic(struct rv__given *) given; /* newest first; the loop takes them now and then */
    struct rv__given *given_last; /* the same and those that were taken; of who does the work */
    size_t given_bytes, given_count;
};

/* Run its function and note the outcome. On the step's thread. */
void rv__ctx_run(struct rv__work *work);
/* A line of its log, for the loop to fetch. `at_ms` by the wall. */
void rv__ctx_keep_log(struct rv_ctx *ctx, int64_t at_ms, int level, struct rv__str message,
                      struct rv__str metadata);
/* A piece of an answer that streams in. It is masked already. */
void rv__ctx_keep_stream(struct rv_ctx *ctx, int64_t at_ms, struct rv__str text);
/* What it is to say as its own result or state, if that is JSON: as rv_return_json, rv_set_state. */
int rv__ctx_result(struct rv_ctx *ctx, struct rv__str json);
int rv__ctx_state(struct rv_ctx *ctx, struct rv__str key, struct rv__str json);
/* What it said last: a state that was too long fails it. */
void rv__ctx_check_state(struct rv_ctx *ctx);
/* It failed with this error, {"message":…, …}. No memory: with the one it has. */
void rv__ctx_error(struct rv_ctx *ctx, struct rv__str json);
/* Its error also says what a command exited with; and a short word for who decides by it. */
void rv__ctx_exit_code(struct rv_ctx *ctx, int code);
void rv__ctx_error_code(struct rv_ctx *ctx, const char *word);
/* It could not be run, or it panicked: that is the outcome. */
void rv__ctx_failed(struct rv_ctx *ctx, const rv_error *err);
/* Its process died, or cannot be reached: that is the outcome, and a line of its log. */
void rv__ctx_lost(struct rv_ctx *ctx, enum rv__lost how, const rv_error *why);
/* Parts of its context, as JSON: {"runId":…}; and of a handler's {"error":…,"failedStep":…,
 * "workflowState":…}. */
void rv__ctx_put_run(struct rv_ctx *ctx, struct rv__buf *out);
/* {input, lastStep, loop: {item, index}, run}; and all that it sees. NULL: no memory. */
/* Of the agent of a state: that state; NULL: it is none. What only agents see, appended to `out`: the last
 * three of the parts. RV_ENOTFOUND: it is no agent; RV_ENOMEM, RV_ETOOBIG, what the store said. */
const struct rv__state *rv__ctx_agent(const struct rv_ctx *ctx);
int rv__agent_see(struct rv_ctx *ctx, enum rv__part part, struct rv__buf *out);
const char *rv__ctx_brief_json(struct rv_ctx *ctx);
const char *rv__ctx_full_json(struct rv_ctx *ctx);
/* Something is wrong with a path, or a name in one: a line of its log, once. */
void rv__ctx_note(struct rv_ctx *ctx, int level, struct rv__str path, const char *fmt, ...)
    RV_PRINTF(4, 5);
int rv__ctx_put_failure(struct rv_ctx *ctx, struct rv__buf *out);
void rv__ctx_done(struct rv_ctx *ctx); /* gives back all it holds but itself and its run */

#endif
