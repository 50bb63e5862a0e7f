/* write.h: writes a definition as JSON: for compile.c, which hashes it for the version, and for the kinds, which
 * write their members. Inside plan/ only. */
#ifndef RV_PLAN_WRITE_H
#define RV_PLAN_WRITE_H

#include "plan/plan.h"

/* Append the definition of the workflow with this body, as a complete document. `shallow`: nested workflows as name
 * and version only; its own version is the hash of this text. */
void rv__definition_write(const struct rv__body *body, bool shallow, struct rv__buf *out);

struct rv__writer {
    struct rv__buf *out;
    bool shallow; /* nested workflows as name and version only */
};

/* Write a member of the open object. Omitted: a text or JSON that is none, a number equal to `unless`, and an
 * expression that is not set. */
void rv__write_key(struct rv__writer *w, const char *key);
void rv__write_text(struct rv__writer *w, const char *key, struct rv__str text);
void rv__write_raw(struct rv__writer *w, const char *key, struct rv__str json);
void rv__write_int(struct rv__writer *w, const char *key, int64_t n, int64_t unless);
void rv__write_expr(struct rv__writer *w, const char *key, const struct rv__expr *expr);
/* A list of aliases; omitted if empty. */
void rv__write_names(struct rv__writer *w, const char *key, const struct rv__str *needs,
                     uint32_t count);
void rv__write_nodes(struct rv__writer *w, const char *key, const struct rv__body *body);
/* The run of a forEach or the body of a loop: nodes, or a single workflow. */
void rv__write_run(struct rv__writer *w, const char *key, const struct rv__body *body);
/* The members of a nested workflow: in its node, or in an object in place of a body. */
void rv__write_nested(struct rv__writer *w, const struct rv__body *body);
/* The retry and time-out options of a step or a chat. */
void rv__write_config(struct rv__writer *w, const struct rv__node *node,
                      const struct rv__step_config *config);
void rv__write_node(struct rv__writer *w, const struct rv__node *node);

void rv__write_budget(struct rv__writer *w, const struct rv__budget *budget); /* omitted if none */

/* The members that only a manifest has. */
void rv__write_manifest(struct rv__writer *w, const struct rv__wrap *wrap);

#endif
