/* call.h: a call of the public API on its way through the loop. On the caller's stack. */
#ifndef RV_ENGINE_CALL_H
#define RV_ENGINE_CALL_H

#include "base/opts.h"
#include "engine/engine.h"

enum rv__call_kind {
    CALL_REGISTER,
    CALL_RUN,
    CALL_MESSAGE,
    CALL_STATE,
    CALL_WAIT,
    CALL_UNWAIT,
    CALL_LOOK,      /* `look` is called with the run, after a commit */
    CALL_ASK,       /* `ask` is called, after a commit */
    CALL_HAND_OVER, /* guest.c */
    CALL_HAND_BACK,
    CALL_DRAIN, /* nothing new is begun; what runs has all the time it needs */
    CALL_CLOSE
};

/* The answer to a start or a signal whose input or payload is to be held to a schema first: that is the
 * caller's to do, not the loop's. `judge` says whose. Then it asks again. */
enum { RV__CHECK_INPUT = 1 };
/* The answer to a call about a run that another member has: `owner`; 0: nobody, or it is not known. */
enum { RV__ELSEWHERE = 2 };

/* Of results that are told at once: of an outcome, or a state. Longer ones are read node by node. */
enum { RV__RESULTS_MAX_BYTES = 64 << 20 };
/* Of an error's text, or the reason of a decision: they stay in memory while the run does. */
enum { RV__MESSAGE_MAX_BYTES = 16 << 10 };

struct rv__call {
    struct rv__letter letter;
    enum rv__call_kind kind;
    struct rv__call *next; /* in the list where it waits */
    rv_engine *engine;

    const rv_workflow *definition;         /* CALL_REGISTER: this, or */
    struct rv__registration *registration; /* this */
    struct rv__registry *registry; /* of both, and of CALL_RUN: where the workflow is looked for */
    const char *workflow;
    char run_id[RV_RUN_ID_SIZE]; /* "": one is to be made */
    struct rv__blob *given;      /* the input as it was given, */
    struct rv__blob *input;      /* and with its defaults */
    char input_key[65];          /* of the input as it was given */
    int64_t limit;               /* attempts at once in a stage; 0: as the plan says */
    struct rv__blob *rerun_of;   /* id of the run that is repeated; NULL: none */
    struct rv__plan_ref
        *judge;              /* whose schema the input, or a signal's payload, was held to; held */
    struct rv__blob *asking; /* or the note of the attempt that asks for that payload; held */
    struct rv__session *validator; /* CALL_RUN: the worker that is to judge it; held; NULL: none */
    bool schema_only;              /* the same: one should, and none is there */
    struct rv__msg msg;
    const char *pass;      /* MSG_READ: the token of who reads, */
    const rv_read *wanted; /* and what */

    int (*look)(struct rv__call *call, struct rv__run *run);
    int (*ask)(struct rv__call *call);
    int (*asked)(
        struct rv__call *call); /* after it, on the loop's thread; NULL: nothing is left to do */
    void *arg;                  /* of those three */
    bool writes;                /* it uses the writer, and is called at its desk */

    int64_t owner; /* of RV__ELSEWHERE */
    bool began;    /* CALL_RUN: the run is new */
    bool made_id;  /* the same: its id is ours */
    int status;
    struct rv__buf results, texts; /* what comes back, as text */
    uint64_t results_bytes; /* of results that are too long to be told at once; 0: they are there */
    struct rv__run_facts {
        size_t workflow, version, input, error, failed_step, failed_path, suspension, rerun_of,
            suspensions; /* where in `texts` */
        bool waiting;
        int64_t created_ms, started_ms, completed_ms;
    } row;

    int rc;
    rv_error err;
    bool resumes;               /* CALL_HAND_OVER: the run is known to be there */
    struct rv__registry *found; /* the one that it has; held */
    bool followed;              /* CALL_HAND_OVER: somebody has it already: it is only looked at */
    int64_t drain_ms,
        tell_ms;      /* CALL_HAND_BACK: its steps go on undisturbed; and when told to end */
    int left;         /* how many of them had not ended */
    int64_t until_ms; /* of an answer that came before its handle (monotonic) */
    bool waiting;     /* CALL_WAIT: it is in its run's list */
    bool lends; /* the same: made by a step on a thread, which has a place that it need not keep */
    bool lent;  /* it is somebody else's meanwhile: to be had again before this is answered */
    uint64_t life;        /* of the step: places do not outlive it */
    pthread_mutex_t lock; /* of `done`: each its own, so that callers do not wait for one another */
    bool done;
    pthread_cond_t answered;
    struct rv__call *about; /* CALL_UNWAIT: which wait */
};

/* It is answered; who asked is woken with all the others, at the end of the turn. Thread: the loop's. */
void rv__call_reply(struct rv__call *call, int rc);

/* Violations as a caller gets them, in one allocation. RV_ENOMEM. */
struct rv__violations;
int rv__violations_give(const struct rv__violations *bad, rv_violations **ret);

/* Make known what was compiled elsewhere. Errors: as rv_register(). Thread: any but the loop's. */
int rv__call_register(struct rv__registry *registry, struct rv__registration *registration,
                      rv_error *err);

/* Register the files that a workflow of the builder nests; then it nests them by name. Errors: as
 * rv_register_file(). */
int rv__register_nested(struct rv__registry *registry, const rv_workflow *workflow, rv_error *err);

/* As rv_register(), rv_register_file() and rv_run(), with the workflows of a registry. */
int rv__register_in(struct rv__registry *registry, const rv_workflow *workflow, rv_error *err);
int rv__register_file_in(struct rv__registry *registry, const char *path, const rv_file_opts *opts,
                         rv_error *err);
/* Another process hands over a run, with its registry: *ret is the one that the run has, which is another's
 * (*followed) if somebody drives it already; to be given back. `resumes`: it is known to be in the store.
 * Errors: RV_EBUSY (it is being handed back: try again), RV_ECLOSED, RV_ENOMEM. Thread: any but the loop's. */
int rv__hand_over(struct rv__registry *registry, const char *workflow, const char *run_id,
                  bool resumes, bool *followed, struct rv__registry **ret, rv_error *err);
/* It is handed back: its steps have drain_ms to end, and tell_ms more when told to. *left: how many had not.
 * `registry`: only if it is still the one that came with this; NULL: in any case. */
int rv__hand_back_run(rv_engine *engine, const struct rv__registry *registry, const char *run_id,
                      int64_t drain_ms, int64_t tell_ms, int *left, rv_error *err);
int rv__run_in(struct rv__registry *registry, const char *workflow, const char *input,
               const rv_run_opts *opts, rv_run_info *ret, rv_error *err);

/* Have a function called on the loop's thread, and wait for it: with a run, when all that was decided for it
 * is on disk; or without one. It may write to call->results, call->err and what `arg` is. Errors: its own;
 * RV_ECLOSED; rv__call_look: RV_EINVAL, RV_ENOTFOUND, RV_ESTORE.   Thread: any but the loop's. */
int rv__call_look(rv_engine *engine, const char *run_id,
                  int (*look)(struct rv__call *call, struct rv__run *run), void *arg,
                  rv_error *err);
int rv__call_ask(rv_engine *engine, int (*ask)(struct rv__call *call), void *arg, rv_error *err);
/* The same with the writer: `ask` is called at its desk, between two batches, `asked` (may be NULL) on the
 * loop's thread if that went well. */
int rv__call_write(rv_engine *engine, int (*ask)(struct rv__call *call),
                   int (*asked)(struct rv__call *call), void *arg, rv_error *err);

#endif
