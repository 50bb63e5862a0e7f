/* jq.h: libjq, behind questions and answers. What an evaluator process is made of; the only part of Rival
 * that links libjq, and linked into the program `rival` alone.
 *
 * The engine's side is expr/ (which writes questions) and exec/evaluator.c (which sends them). */
#ifndef RV_JQ_JQ_H
#define RV_JQ_JQ_H

#include "base/str.h"

/* Programs and values by slot (expr.h: RV__PEER_PROGRAMS, RV__PEER_VALUES). Belongs to one thread. */
struct rv__jq;

int rv__jq_new(struct rv__jq **ret, rv_error *err);
void rv__jq_free(struct rv__jq *jq); /* NULL is allowed */

/* Compile a program into a slot. One that jq refuses is an error of those who use it. RV_EINVAL: no such
 * slot; RV_ENOMEM: our own memory (libjq ends the process where malloc gives it none). */
int rv__jq_program(struct rv__jq *jq, int64_t slot, struct rv__str text);

/* Compile it and forget it. RV_EPARSE: *err is what jq said first, as it said it. RV_ENOMEM. */
int rv__jq_compile(struct rv__str text, rv_error *err);

/* Parse a value into a slot: checked JSON; "none": the slot is empty. RV_EINVAL, RV_ENOMEM. */
int rv__jq_value(struct rv__jq *jq, int64_t slot, struct rv__str json);

/* Answer a question: `question` is a checked JSON object with "run" and "scope", as rv__exprs_ask() makes
 * them. Appends the values to `out`, whose bound is the limit of the output: [V,V,…].
 *
 * A failure is of the *ret_at-th pair of "run", and `out` is as before: RV_EINVAL: it failed, or yielded no
 * value or several; RV_EPARSE: its program; RV_ETOOBIG: its value; RV_ETIMEDOUT: it was halted;
 * RV_ENOMEM. *err is the reason, without the expression. */
int rv__jq_answer(struct rv__jq *jq, struct rv__str question, struct rv__buf *out, size_t *ret_at,
                  rv_error *err);

/* End the program that runs now, if one does: rv__jq_answer() returns RV_ETIMEDOUT. What a single call of a
 * C function in libjq does ends first. Returns false if none runs. For signal handlers of the thread that
 * runs it, and for nobody else. */
bool rv__jq_halt(struct rv__jq *jq);

/* The main function of an evaluator process: `rival evaluator PARENT MEMORY`. */
int rv__jq_main(int argc, char **argv);

#endif
