/* keys.h: the words of the YAML form: kinds of nodes and keys of their bodies; suggestions for unknown ones. Inside
 * define/ only. */
#ifndef RV_DEFINE_KEYS_H
#define RV_DEFINE_KEYS_H

#include "define/lower.h"

/* A set of bits 1 << kind: the kinds that are steps. */
enum { RV__FORM_STEPS = ((1 << FORM_WORKFLOW) - 1) & ~(1 << FORM_CHAT) };

struct rv__kind_word {
    const char *key;
    const char *type;    /* the plan's */
    const char *implied; /* the alias, if none is given */
};
extern const struct rv__kind_word rv__kind_words[FORM_KINDS];
extern const char rv__all_kinds[]; /* as a list for people */

/* How the other keys of a body are used. */
enum rv__key_use {
    USE_ALIAS,    /* already read */
    USE_RAW,      /* copied under the same name */
    USE_DURATION, /* as milliseconds */
    USE_NODES,    /* a list of nodes */
    USE_RUN,      /* a list of nodes, or one */
    USE_HANDLER,
    USE_PARAM, /* a parameter of the kind */
};
struct rv__key_word {
    const char *key;
    unsigned kinds; /* bits: the kinds that have this key */
    enum rv__key_use use;
};

/* In either spelling. -1, NULL: not found. */
int rv__kind_find(struct rv__str key);
const struct rv__key_word *rv__key_find(struct rv__str key);
bool rv__has_kind(const struct rv__tree *map); /* is one of its keys a kind? */

/* "x-…": for the author's own use; ignored. */
bool rv__key_is_private(struct rv__str key);

/* Report an unknown key of `what`, with a suggestion: a key of its kind (-1: of any kind), or a kind. True: it is
 * the name of a kind. */
bool rv__key_unknown(const struct rv__source *source, struct rv__problems *problems,
                     const struct rv__tree *child, int kind, const char *what);
/* The kind of a body, and the value of that key; FORM_KINDS: none or several, with a problem reported. */
enum rv__form_kind rv__kind_of_body(const struct rv__source *source, struct rv__problems *problems,
                                    const struct rv__tree *body, uint32_t at,
                                    const struct rv__tree **value);
/* Report a key that is given twice, in both spellings. */
void rv__key_check_twice(const struct rv__source *source, struct rv__problems *problems,
                         const struct rv__tree *body, const struct rv__tree *child);

#endif
