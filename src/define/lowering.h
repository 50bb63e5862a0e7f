/* lowering.h: shared by lower.c (workflows) and manifest.c. Inside define/ only. */
#ifndef RV_DEFINE_LOWERING_H
#define RV_DEFINE_LOWERING_H

#include "define/lower.h"

struct rv__lowering {
    const struct rv__source *source;
    struct rv__arena *arena;
    struct rv__nesting *nesting;
    struct rv__problems *problems;
    struct rv__buf *out;
    int rc;                          /* RV_ENOMEM */
    const struct rv__tree *defaults; /* a mapping: defaults of all steps that do work; NULL: none */
    bool agent;                      /* it lowers the agent of a manifest */
};

/* Add a spot; after a failure, a dummy. */
struct rv__spot *rv__lowering_spot(struct rv__lowering *l, struct rv__spot *parent,
                                   struct rv__str label, uint32_t at);

/* Write a key of the open object; _raw: with a value of the file, unchanged. */
void rv__lowering_key(struct rv__lowering *l, const char *key);
void rv__lowering_raw(struct rv__lowering *l, const char *key, const struct rv__tree *value);

/* Write a harmless node in place of a bad one. It has the alias, so that others may refer to it. */
void rv__lowering_harmless(struct rv__lowering *l, struct rv__str alias);

/* Write what a chat may call: its own `tools` and `skills`, and those of a mapping beside it (or NULL). */
void rv__lower_tools(struct rv__lowering *l, const struct rv__tree *chat,
                     const struct rv__tree *more);

/* Write kind and parameters of a step or a handler. */
void rv__lower_work(struct rv__lowering *l, const struct rv__tree *body, enum rv__form_kind kind,
                    const struct rv__tree *value);
/* Write the name of a nested workflow. False: there is none, and a problem was added. */
bool rv__lower_nested(struct rv__lowering *l, struct rv__spot *spot, const struct rv__tree *value);
/* `name`: onError, finally. */
void rv__lower_handler(struct rv__lowering *l, struct rv__spot *parent, const char *name,
                       const struct rv__tree *value);

/* manifest.c: write the members of a plan document, from a manifest. */
void rv__lower_manifest(struct rv__lowering *l, struct rv__tree *document,
                        const struct rv__manifest *manifest, struct rv__spot *root);

#endif
