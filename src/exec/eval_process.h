/* eval_process.h: one evaluator process, and the messages between it and us. Inside exec/ only.
 *
 *   down ──start──▶ up ──hello──▶ greeted ──▶ down: it died, or we ended it
 *
 * Questions are sent in order and answered in order, so the unanswered ones are a queue. Thread: the evaluator's. */
#ifndef RV_EXEC_EVAL_PROCESS_H
#define RV_EXEC_EVAL_PROCESS_H

#include "exec/launch.h"
#include "exec/lines.h"

/* A queue of evaluations. */
struct rv__evaluations {
    struct rv__evaluation *first, **last;
    size_t count;
};
void rv__evaluations_init(struct rv__evaluations *list);
void rv__evaluations_add(struct rv__evaluations *list, struct rv__evaluation *evaluation);
struct rv__evaluation *rv__evaluations_take(struct rv__evaluations *list); /* NULL: none */
/* Move all of `from` to the front of `list`. */
void rv__evaluations_return(struct rv__evaluations *list, struct rv__evaluations *from);

struct rv__eval_process {
    struct rv__expr_sender sender; /* first: how its process gets values and programs */
    bool up, greeted;
    bool alone; /* nothing may be added to the question under way */
    bool fresh; /* the process has not been asked anything */
    struct rv__child process;
    struct rv__frames frames;
    struct rv__buf out; /* bytes to send; from `sent` on */
    size_t sent;
    struct rv__expr_peer *peer;
    struct rv__evaluations asked; /* sent and not answered */
    int64_t heard_ns; /* when the process last answered, or was asked while nothing was under way */
    struct rv__lines lines; /* what the process prints: the reason of an abort */
    bool no_memory;         /* it printed that it has no memory */
};

void rv__eval_process_init(struct rv__eval_process *process);

/* Start its process. Errors: RV_ESYS, RV_ENOMEM. Thread: one that lives as long as the process. */
int rv__eval_process_start(struct rv__eval_process *process, const char *program,
                           uint64_t memory_bytes, rv_error *err);

/* Append a question to `out`; its evaluation is then in `asked`. `question`: a buffer, reused.
 * RV_ECLOSED: no memory, and the connection is unusable: end the process.
 * RV_EBUSY: not `quickly` (expr.h).
 * Other errors: it cannot be asked, and nothing was done. */
int rv__eval_process_ask(struct rv__eval_process *process, struct rv__evaluation *evaluation,
                         struct rv__expr_texts *texts, bool quickly, struct rv__buf *question,
                         rv_error *err);

/* Send what can be sent now. RV_ECLOSED: the process has closed the connection. */
int rv__eval_process_send(struct rv__eval_process *process);

/* Read what has arrived. 1: something; 0: nothing; RV_ECLOSED: the process has ended; RV_ENOMEM. */
int rv__eval_process_read(struct rv__eval_process *process);

/* The next frame of the bytes read. 1: the answer to *ret, which is removed from `asked`; 0: no whole frame;
 * RV_EPARSE: a frame that is not allowed, and *err says which. */
int rv__eval_process_next(struct rv__eval_process *process, struct rv__frame *frame,
                          struct rv__evaluation **ret, rv_error *err);

/* End the process; take the evaluations out of `asked` before. Returns the status as of waitpid(); `how`: a
 * sentence. */
int rv__eval_process_end(struct rv__eval_process *process, int64_t patience_ms, char *how,
                         size_t size);

#endif
