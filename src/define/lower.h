/* lower.h: turns the tree of a file in the YAML form into the JSON of a plan, and records the position of each
 * node. Inside define/ only. */
#ifndef RV_DEFINE_LOWER_H
#define RV_DEFINE_LOWER_H

#include "define/tree.h"

/* The kinds of body, by the key that selects the kind. */
enum rv__form_kind {
    FORM_HTTP,
    FORM_COMMAND,
    FORM_VALUE,
    FORM_CALL,
    FORM_DELAY,
    FORM_SIGNAL,
    FORM_CHAT,
    FORM_TOOL,
    FORM_WORKFLOW,
    FORM_IF,
    FORM_LOOP,
    FORM_FOREACH,
    FORM_CONCURRENT,
    FORM_KINDS,
};

/* The position of a plan node in the file. The label is the part of its path after the parent's, without its alias:
 * "then:node0", "run:node2"; none in the outermost sequence. */
struct rv__spot {
    struct rv__spot *first, *last, *next;
    struct rv__str label;
    struct rv__str alias;    /* none: implied */
    bool plain;              /* its path has no alias, only the label */
    struct rv__str implied;  /* how an implied alias begins */
    enum rv__form_kind kind; /* FORM_KINDS: none */
    struct rv__tree *body;   /* the mapping that defines it; NULL: none */
    struct rv__tree *work;   /* of a state: the mapping of its agent; NULL: use `body` */
    uint32_t at;
};

/* Finds nested workflows. */
struct rv__nesting {
    /* `reference` is a file as written, or a name. *name: the workflow's; none: unknown. False, with *why: it
     * cannot be nested. */
    bool (*find)(struct rv__nesting *self, const struct rv__tree *reference, struct rv__str *name,
                 const char **why);
    int rc; /* the first failure */
};

/* What lowering a manifest needs besides its tree. */
struct rv__manifest {
    const struct rv__tree *shared; /* `agents` shared by all manifests of its file; NULL: none */
    struct rv__resolver *known;    /* finds agents in code; NULL: there are none */
};

struct rv__lowered {
    struct rv__buf json;  /* a plan document */
    struct rv__spot root; /* of the document */
};

/* Errors that plan JSON cannot express (unknown keys, no kind or two, bad durations …) are added to the problems. A
 * harmless node replaces the bad one, so that the rest can be checked. A body marked `broken` is replaced too.
 * RV_ENOMEM, RV_ETOOBIG. */
int rv__lower(const struct rv__source *source, struct rv__tree *document,
              const struct rv__manifest *manifest /* NULL: not a manifest */,
              struct rv__arena *arena, struct rv__nesting *nesting, struct rv__problems *problems,
              struct rv__lowered *ret);

/* Convert a snake_case key to camelCase, in `room`; a key that is too long is returned unchanged. */
struct rv__key_room {
    char text[40]; /* longer than any key */
};
struct rv__str rv__camel(struct rv__str key, struct rv__key_room *room);

/* The member with this key, in either spelling. */
const struct rv__tree *rv__form_get(const struct rv__tree *map, const char *camel);

/* ----------------------------------------------------------------------------- places --- */

/* The deepest spot on a path. *beyond: the path continues below it, inside a workflow that another file defines.
 * NULL: none. */
const struct rv__spot *rv__spot_find(const struct rv__spot *root, struct rv__str path,
                                     const char *message, bool *beyond);

/* The position for a message about the spot: the first of its keys that the message names, else the spot itself. */
uint32_t rv__spot_at(const struct rv__spot *spot, const char *message);

/* Manifests: the dependency of a state that a message is about (NULL: none); and the message in the terms of
 * manifests. */
const struct rv__tree *rv__dependency_at(const struct rv__tree *depends_on, const char *message);
void rv__manifest_words(const char *message, struct rv__buf *out);

/* The value that a pointer leads to, or the last one on the way; keys in either spelling. */
const struct rv__tree *rv__tree_at(const struct rv__tree *tree, struct rv__str pointer);

/* The position in the file of a character (from 1) of a string; `near` is the text expected there. */
uint32_t rv__tree_character(const struct rv__tree *string, const struct rv__source *source,
                            size_t character, struct rv__str near);

#endif
