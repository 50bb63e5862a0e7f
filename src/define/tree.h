/* tree.h: a file's text as a tree of values with their places. Inside define/ only.
 *
 * YAML and JSON give the same tree, so that nothing after this knows which it was. Values are JSON's:
 * YAML's core schema has been applied. */
#ifndef RV_DEFINE_TREE_H
#define RV_DEFINE_TREE_H

#include "define/define.h"

/* A text and where it came from. */
struct rv__source {
    struct rv__str file;
    struct rv__str text;
    size_t *told; /* counts the problems that were found in it; may be NULL */
};

/* What is wrong, in order of finding. `rc`: memory ran out while it was filled. */
struct rv__problems {
    struct rv__arena *arena;
    struct rv__problem *items;
    size_t count, cap;
    size_t dropped;
    int rc;
    struct rv__problems
        *warnings; /* where rv__problem_warn() puts what it is given; NULL: nowhere */
};

#define RV__NOWHERE UINT32_MAX /* the file as a whole */

/* `at`: the byte in the source's text. At most RV__DEFINE_MAX_PROBLEMS of one file are kept, and the
 * same thing at the same place once. */
void rv__problem_add(struct rv__problems *to, const struct rv__source *source, uint32_t at,
                     const char *fmt, ...) RV_PRINTF(4, 5);

/* The same for what is good, and most likely not meant. */
void rv__problem_warn(struct rv__problems *to, const struct rv__source *source, uint32_t at,
                      const char *fmt, ...) RV_PRINTF(4, 5);

/* The byte at that line and column, both from 1, columns in characters; within the text. */
uint32_t rv__source_at(const struct rv__source *source, unsigned long line, unsigned long column);

/* discover.c: the text of a file, in the arena; of one that cannot be read or is too long, what there is of
 * it. Errors: RV_ENOMEM. */
int rv__source_read(const char *path, struct rv__arena *arena, struct rv__str *ret);

/* Has so much been told of this file that nothing more will be? Then its place need not be found. */
bool rv__problems_full(const struct rv__source *source);

/* Text from outside inside of a message: at most 60 bytes, whole characters, printable. */
struct rv__cite {
    char text[72];
};
struct rv__cite rv__cite(struct rv__str text);

enum rv__tree_kind { TREE_NULL, TREE_BOOL, TREE_NUMBER, TREE_STRING, TREE_LIST, TREE_MAP };

struct rv__tree {
    enum rv__tree_kind kind;
    uint32_t at, end;    /* its bytes in the file, without quotes */
    struct rv__str text; /* a string as it is meant; of null, a bool and a number its JSON */
    struct rv__str key;  /* in a map */
    uint32_t key_at;     /* in a map; else where it begins */
    uint32_t count;      /* of children */
    uint32_t size;       /* values in it, itself included, aliases counted as what they repeat */
    uint32_t depth;      /* containers within each other in it; of a scalar 0 */
    bool block;          /* a YAML block scalar: its indentation is not in the text */
    uint8_t broken;      /* a body: 1 something harmless stands for it, 2 it is left out */
    struct rv__tree *first, *last, *next;
    struct rv__tree *same; /* a YAML alias: what it stands for; see rv__tree_real() */
};

static inline const struct rv__tree *rv__tree_real(const struct rv__tree *tree)
{
    return tree->same != NULL ? tree->same : tree;
}

/* The member of that key, as it stands; NULL: none, or no map. */
const struct rv__tree *rv__tree_get(const struct rv__tree *map, const char *key);

/* "a text", "a list" …, for messages. */
const char *rv__tree_phrase(const struct rv__tree *tree);

/* Append it as JSON. */
void rv__tree_json(const struct rv__tree *tree, struct rv__buf *out);

/* The root of the source's text; NULL: it is not YAML or JSON, which is among the problems. Bytes that
 * are no UTF-8 or no text, keys twice, values beyond the bounds are problems too. It lives in the
 * arena. RV_ENOMEM. */
int rv__tree_read(const struct rv__source *source, struct rv__arena *arena,
                  struct rv__problems *problems, struct rv__tree **ret);

/* The two readers behind it. The text has been checked to be printable UTF-8. */
int rv__tree_yaml(const struct rv__source *source, struct rv__arena *arena,
                  struct rv__problems *problems, struct rv__tree **ret);
int rv__tree_from_json(const struct rv__source *source, struct rv__arena *arena,
                       struct rv__problems *problems, struct rv__tree **ret);

/* Put a finished value into its container, counting. */
void rv__tree_add(struct rv__tree *container, struct rv__tree *child);

/* Complain about keys that a finished map has twice. RV_ENOMEM. */
int rv__tree_check_keys(const struct rv__tree *map, const struct rv__source *source,
                        struct rv__problems *problems);

/* What a plain scalar means in YAML's core schema. *ret: its JSON, in the arena for numbers. False: a
 * number that JSON does not have (.inf, .nan). RV_ENOMEM is told as kind TREE_STRING with none. */
bool rv__yaml_plain(struct rv__str text, struct rv__arena *arena, enum rv__tree_kind *kind,
                    struct rv__str *ret);

#endif
