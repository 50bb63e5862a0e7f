/* attached.h: the files that a prompt encloses: `attach` of a chat. */
#ifndef RV_WORK_ATTACHED_H
#define RV_WORK_ATTACHED_H

#include "agent/agent.h"
#include "work/context.h"

enum { RV__ATTACHED_NAME = 200 }; /* bytes of a name, for the model and for people */

struct rv__attached {
    struct rv__enclosed *files;
    size_t count;
    struct rv__str
        described; /* [{name, type, bytes, sha256}], for the journal; none: there are none */
};

/* Read them, as the evaluated parameters say. What they are made of lives in the step's arena. Errors: RV_EINVAL: which of
 * them cannot be sent, and why; RV_ENOMEM. Thread: one that may wait for the disk. */
int rv__attached_take(struct rv_ctx *ctx, struct rv__str with, struct rv__attached *ret,
                      rv_error *err);

#endif
