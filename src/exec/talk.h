/* talk.h: one evaluator process, and what is said between it and us. Inside exec/ only.
 *
 *   down ──start──▶ up ──hello──▶ greeted ──▶ down: it died, or we ended it
 *
 * Questions go out in order and are answered in order, so those on their way are a queue. Belongs to the
 * evaluator's thread. */
#ifndef RV_EXEC_TALK_H
#define RV_EXEC_TALK_H

#include "exec/launch.h"
#include "exec/lines.h"

/* Evaluations in order. */
struct rv__evaluations {
    struct rv__evaluation *first, **last;
    size_t count;
};
void rv__evaluations_init(struct rv__evaluations *list);
void rv__evaluations_add(struct rv__evaluations *list, struct rv__evaluation *evaluation);
struct rv__evaluation *rv__evaluations_take(struct rv__evaluations *list); /* NULL: none */
/* All of `from` go before those of `list`. */
void rv__evaluations_return(struct rv__evaluations *list, struct rv__evaluations *from);

struct rv__talk {
    struct rv__expr_sender sender; /* first: how its process learns of values and programs */
    bool up, greeted;
    bool alone; /* what is on its way must not be joined by anything */
    bool fresh; /* it has been asked nothing */
    struct rv__child process;
    struct rv__frames frames;
    struct rv__buf out; /* not sent yet, from `sent` on */
    size_t sent;
    struct rv__expr_peer *peer;
    struct rv__evaluations asked; /* and not answered */
    int64_t
        heard_ns; /* when something was heard last, or asked for, while nothing was on its way */
    struct rv__lines lines; /* what it prints: why it will abort */
    bool no_memory;         /* its last words: memory was refused */
};

void rv__talk_init(struct rv__talk *talk);

/* Start its process. Errors: RV_ESYS, RV_ENOMEM. Thread: one that lives as long as the process. */
int rv__talk_start(struct rv__talk *talk, const char *program, uint64_t memory_bytes,
                   rv_error *err);

/* Put a question into `out`; its evaluation is on its way then. `question`: room for it, reused.
 * RV_ECLOSED: no memory for it, and the process can no longer be spoken with: end it.
 * RV_EBUSY: not `quickly` (expr.h).
 * Other errors: it cannot be asked, and nothing was done. */
int rv__talk_ask(struct rv__talk *talk, struct rv__evaluation *evaluation,
                 struct rv__expr_texts *texts, bool quickly, struct rv__buf *question,
                 rv_error *err);

/* Send what can be sent now. RV_ECLOSED: it has hung up. */
int rv__talk_send(struct rv__talk *talk);

/* Read what has come. 1: something; 0: nothing; RV_ECLOSED: it has ended; RV_ENOMEM. */
int rv__talk_read(struct rv__talk *talk);

/* The next frame of what was read. 1: it is the answer to *ret, which is on its way no more; 0: there is none;
 * RV_EPARSE: it says what it may not, and *err says what. */
int rv__talk_next(struct rv__talk *talk, struct rv__frame *frame, struct rv__evaluation **ret,
                  rv_error *err);

/* It is over: take what is on its way out of it first. Returns the status as of waitpid(); `how`: a sentence. */
int rv__talk_end(struct rv__talk *talk, int64_t patience_ms, char *how, size_t size);

#endif
