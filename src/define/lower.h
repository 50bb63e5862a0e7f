/* lower.h: from the tree of a file in the YAML form to the JSON of a plan, with the place of each node.
 * Inside define/ only. */
#ifndef RV_DEFINE_LOWER_H
#define RV_DEFINE_LOWER_H

#include "define/tree.h"

/* The kinds of body, by the key that makes it one. */
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

/* Where a node of the plan was written. The label is what its path has after the parent's, without
 * its alias: "then:node0", "run:node2"; none in the outermost sequence. */
struct rv__spot {
    struct rv__spot *first, *last, *next;
    struct rv__str label;
    struct rv__str alias;    /* none: implied */
    bool plain;              /* the label is all: it has no alias in its path */
    struct rv__str implied;  /* what an alias begins with that is not said */
    enum rv__form_kind kind; /* FORM_KINDS: none */
    struct rv__tree *body;   /* the mapping that says what it is; NULL: there is none */
    struct rv__tree *work; /* of a state: its agent's, which says what is done; NULL: `body` does */
    uint32_t at;
};

/* Whom to ask about workflows that are nested. */
struct rv__nesting {
    /* `reference` is a file as it was written, or a name. *name: the workflow's; none: there is none
     * that we know. False, with *why: it cannot be nested. */
    bool (*find)(struct rv__nesting *self, const struct rv__tree *reference, struct rv__str *name,
                 const char **why);
    int rc; /* the first failure */
};

/* Beyond the tree of a manifest, what it needs to be lowered. */
struct rv__manifest {
    const struct rv__tree *shared; /* `agents` of all manifests of its file; NULL: none */
    struct rv__resolver *known;    /* asked for agents in code; NULL: there are none */
};

struct rv__lowered {
    struct rv__buf json;  /* a plan document */
    struct rv__spot root; /* of the document */
};

/* What cannot be said in a plan's JSON (keys unknown, no kind, two kinds, durations that are none …)
 * goes to the problems, and something harmless in its place, so that the rest can be judged. Where a
 * body is marked `broken`, the same. RV_ENOMEM, RV_ETOOBIG. */
int rv__lower(const struct rv__source *source, struct rv__tree *document,
              const struct rv__manifest *manifest /* NULL: it is none */, struct rv__arena *arena,
              struct rv__nesting *nesting, struct rv__problems *problems, struct rv__lowered *ret);

/* The camelCase of a key in snake_case, in `room`; a key too long for it as it is. */
struct rv__key_room {
    char text[40]; /* longer than any key there is */
};
struct rv__str rv__camel(struct rv__str key, struct rv__key_room *room);

/* The member of that key in either spelling. */
const struct rv__tree *rv__form_get(const struct rv__tree *map, const char *camel);

/* ----------------------------------------------------------------------------- places --- */

/* Which spot a path is about: the deepest on the way to it; and whether the path goes on below it,
 * which it does inside of a workflow that another file defines. NULL: none. */
const struct rv__spot *rv__spot_find(const struct rv__spot *root, struct rv__str path,
                                     const char *message, bool *beyond);

/* The byte that a message about the spot means: the first of its keys which the message names, else
 * the spot itself. */
uint32_t rv__spot_at(const struct rv__spot *spot, const char *message);

/* Manifests: which of a state's dependencies a message is about (NULL: none); and the message in the words
 * that manifests have for it. */
const struct rv__tree *rv__dependency_at(const struct rv__tree *depends_on, const char *message);
void rv__manifest_words(const char *message, struct rv__buf *out);

/* What a pointer leads to, or the last value on the way; keys in either spelling. */
const struct rv__tree *rv__tree_at(const struct rv__tree *tree, struct rv__str pointer);

/* The byte in the file of a character (from 1) of a string; `near` is what should be there. */
uint32_t rv__tree_character(const struct rv__tree *string, const struct rv__source *source,
                            size_t character, struct rv__str near);

#endif
