/* peer.h: what an evaluator process has. Inside expr/ only. */
#ifndef RV_EXPR_PEER_H
#define RV_EXPR_PEER_H

#include "expr/set.h"

/* A question begins: what it uses stays in its slot until the next one begins. */
void rv__peer_begin(struct rv__expr_peer *peer);

/* The slot in which the process has this text's value; false: it does not have it, *slot is where it will
 * be, and rv__peer_sent() is to follow; RV__PEER_VALUES: all slots are in use by this question.
 * For a text that lasts (cache.h). */
bool rv__peer_has(struct rv__expr_peer *peer, const struct rv__scope_text *text, unsigned *slot);

/* The value is told now: `json` is the text. */
void rv__peer_sent(struct rv__expr_peer *peer, unsigned slot, const struct rv__scope_text *text,
                   struct rv__str json);

/* The slot of a program, which is told now if it is not there yet. Errors: RV_ENOMEM;
 * RV_ETOOBIG: one question needs too many; RV_EBUSY: it is not there yet, and `quickly` is asked for. */
int rv__peer_program(struct rv__expr_peer *peer, const struct rv__exprs *set, uint32_t program,
                     bool quickly, unsigned *slot, rv_error *err);

#endif
