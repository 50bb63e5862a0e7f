/* peer.h: which values and programs an evaluator process has. Inside expr/ only. */
#ifndef RV_EXPR_PEER_H
#define RV_EXPR_PEER_H

#include "expr/set.h"

/* Begin a question: the slots that it uses are not reused until the next question begins. */
void rv__peer_begin(struct rv__expr_peer *peer);

/* Find the slot that has this text's value in the process. False: the process does not have it; *slot is where it
 * will be, and the caller must call rv__peer_sent(). RV__PEER_VALUES: this question uses all slots. For a text that
 * lasts (cache.h). */
bool rv__peer_has(struct rv__expr_peer *peer, const struct rv__scope_text *text, unsigned *slot);

/* Send the value: `json` is the text. */
void rv__peer_sent(struct rv__expr_peer *peer, unsigned slot, const struct rv__scope_text *text,
                   struct rv__str json);

/* The slot of a program, which is sent now if the process does not have it. Errors: RV_ENOMEM; RV_ETOOBIG: one
 * question needs too many; RV_EBUSY: it would have to be sent, and `quickly` forbids that. */
int rv__peer_program(struct rv__expr_peer *peer, const struct rv__exprs *set, uint32_t program,
                     bool quickly, unsigned *slot, rv_error *err);

#endif
