/* write.h: a definition as text: for compile.c, which makes its version of it, and for the kinds, which write
 * their members. Inside plan/ only. */
#ifndef RV_PLAN_WRITE_H
#define RV_PLAN_WRITE_H

#include "plan/plan.h"

/* Append the definition of the workflow whose body it is, as a document by itself. `shallow`: the
 * workflows nested in it as name and version only, which is what its own version is the hash of. */
void rv__definition_write(const struct rv__body *body, bool shallow, struct rv__buf *out);

struct rv__writer {
    struct rv__buf *out;
    bool shallow; /* nested workflows as name and version only */
};

/* A member of the object that is open. A text or JSON that is none, a number that is `unless` and an
 * expression that is none are left out. */
void rv__write_key(struct rv__writer *w, const char *key);
void rv__write_text(struct rv__writer *w, const char *key, struct rv__str text);
void rv__write_raw(struct rv__writer *w, const char *key, struct rv__str json);
void rv__write_int(struct rv__writer *w, const char *key, int64_t n, int64_t unless);
void rv__write_expr(struct rv__writer *w, const char *key, const struct rv__expr *expr);
/* A list of aliases; nothing, if it is empty. */
void rv__write_names(struct rv__writer *w, const char *key, const struct rv__str *needs,
                     uint32_t count);
void rv__write_nodes(struct rv__writer *w, const char *key, const struct rv__body *body);
/* The run of a forEach, the body of a loop: nodes, or the workflow that it is. */
void rv__write_run(struct rv__writer *w, const char *key, const struct rv__body *body);
/* What a workflow in its place has: as members of a node, or of an object that stands for a body. */
void rv__write_nested(struct rv__writer *w, const struct rv__body *body);
/* How a step or a chat is to be tried. */
void rv__write_config(struct rv__writer *w, const struct rv__node *node,
                      const struct rv__step_config *config);
void rv__write_node(struct rv__writer *w, const struct rv__node *node);

/* What a manifest says of itself beyond other workflows. */
void rv__write_manifest(struct rv__writer *w, const struct rv__wrap *wrap);

#endif
