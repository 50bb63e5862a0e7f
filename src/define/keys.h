/* keys.h: the words of the YAML form: kinds of nodes, keys of their bodies; and what was meant by others.
 * Inside define/ only. */
#ifndef RV_DEFINE_KEYS_H
#define RV_DEFINE_KEYS_H

#include "define/lower.h"

/* Of bits 1 << kind: those that are steps. */
enum { RV__FORM_STEPS = ((1 << FORM_WORKFLOW) - 1) & ~(1 << FORM_CHAT) };

struct rv__kind_word {
    const char *key;
    const char *type;    /* the plan's */
    const char *implied; /* the alias, where no name gives one */
};
extern const struct rv__kind_word rv__kind_words[FORM_KINDS];
extern const char rv__all_kinds[]; /* as a list for people */

/* The other keys of a body. */
enum rv__key_use {
    USE_ALIAS,    /* read before */
    USE_RAW,      /* as it is, under the same name */
    USE_DURATION, /* as milliseconds */
    USE_NODES,    /* a list of nodes */
    USE_RUN,      /* a list of nodes, or one */
    USE_HANDLER,
    USE_PARAM, /* a parameter of the kind */
};
struct rv__key_word {
    const char *key;
    unsigned kinds; /* bits: whose key it is */
    enum rv__key_use use;
};

/* In either spelling. -1, NULL: it is none. */
int rv__kind_find(struct rv__str key);
const struct rv__key_word *rv__key_find(struct rv__str key);
bool rv__has_kind(const struct rv__tree *map); /* is one of its keys a kind? */

/* "x-…": whoever wrote it means something by it, and it is nothing to us. */
bool rv__key_is_private(struct rv__str key);

/* Complain about an unknown key of `what`, with what was meant: a key of its kind (-1: of any), or a kind.
 * True: it was a kind. */
bool rv__key_unknown(const struct rv__source *source, struct rv__problems *problems,
                     const struct rv__tree *child, int kind, const char *what);
/* Which kind the body is, and the value of that key; FORM_KINDS, with a problem: none or several. */
enum rv__form_kind rv__kind_of_body(const struct rv__source *source, struct rv__problems *problems,
                                    const struct rv__tree *body, uint32_t at,
                                    const struct rv__tree **value);
/* Complain if the key is there before, in the other spelling. */
void rv__key_check_twice(const struct rv__source *source, struct rv__problems *problems,
                         const struct rv__tree *body, const struct rv__tree *child);

#endif
