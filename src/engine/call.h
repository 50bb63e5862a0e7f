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
    CALL_LOOK, /* `look` is called with the run, after a commit */
    CALL_ASK,  /* `ask` is called, after a commit */
    CALL_CLOSE
};

/* The answer to a start whose input is to be held to a schema first: that is the caller's to do, not the
 * loop's. `judge` says whose. Then it asks again. */
enum { RV__CHECK_INPUT = 1 };

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
    const char *workflow;
    char run_id[RV_RUN_ID_SIZE]; /* "": one is to be made */
    struct rv__blob *given;      /* the input as it was given, */
    struct rv__blob *input;      /* and with its defaults */
    char input_key[65];          /* of the input as it was given */
    struct rv__plan_ref *judge;  /* CALL_RUN: whose schema the input was held to; held */
    struct rv__msg msg;

    int (*look)(struct rv__call *call, struct rv__run *run);
    int (*ask)(struct rv__call *call);
    int (*asked)(
        struct rv__call *call); /* after it, on the loop's thread; NULL: nothing is left to do */
    void *arg;                  /* of those three */
    bool writes;                /* it uses the writer, and is called at its desk */

    bool began;   /* CALL_RUN: the run is new */
    bool made_id; /* the same: its id is ours */
    int status;
    struct rv__buf results, texts; /* what comes back, as text */
    uint64_t results_bytes; /* of results that are too long to be told at once; 0: they are there */
    struct rv__run_facts {
        size_t workflow, version, input, error, failed_step, suspension; /* where in `texts` */
        int64_t created_ms, started_ms, completed_ms;
    } row;

    int rc;
    rv_error err;
    int64_t until_ms; /* of an answer that came before its handle (monotonic) */
    bool waiting;     /* CALL_WAIT: it is in its run's list */
    bool done;        /* under engine->reply_lock */
    pthread_cond_t answered;
    struct rv__call *about; /* CALL_UNWAIT: which wait */
};

/* Violations as a caller gets them, in one allocation. RV_ENOMEM. */
struct rv__violations;
int rv__violations_give(const struct rv__violations *bad, rv_violations **ret);

/* Make known what was compiled elsewhere. Errors: as rv_register(). Thread: any but the loop's. */
int rv__call_register(rv_engine *engine, struct rv__registration *registration, rv_error *err);

/* Register the files that a workflow of the builder nests; then it nests them by name. Errors: as
 * rv_register_file(). */
int rv__register_nested(rv_engine *engine, const rv_workflow *workflow, rv_error *err);

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
