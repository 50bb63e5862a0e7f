/* tree.h: the text of a file as a tree of values with their positions. Inside define/ only.
 *
 * YAML and JSON give the same tree, so that no later code knows which it was. Values are JSON's: YAML's core schema
 * has been applied. */
#ifndef RV_DEFINE_TREE_H
#define RV_DEFINE_TREE_H

#include "define/define.h"

/* A text and its file. */
struct rv__source {
    struct rv__str file;
    struct rv__str text;
    size_t *told; /* counts the problems found in it; may be NULL */
};

/* Problems, in the order in which they were found. `rc`: memory ran out. */
struct rv__problems {
    struct rv__arena *arena;
    struct rv__problem *items;
    size_t count, cap;
    size_t dropped;
    int rc;
    struct rv__problems *warnings; /* for rv__problem_warn(); NULL: warnings are dropped */
};

#define RV__NOWHERE UINT32_MAX /* the file as a whole */

/* Add a problem. `at`: the byte in the source's text. At most RV__DEFINE_MAX_PROBLEMS of one file are stored; the
 * same message at the same position only once. */
void rv__problem_add(struct rv__problems *to, const struct rv__source *source, uint32_t at,
                     const char *fmt, ...) RV_PRINTF(4, 5);

/* The same for something valid that is probably a mistake. */
void rv__problem_warn(struct rv__problems *to, const struct rv__source *source, uint32_t at,
                      const char *fmt, ...) RV_PRINTF(4, 5);

/* The byte at this line and column, both from 1, columns in characters; limited to the text. */
uint32_t rv__source_at(const struct rv__source *source, unsigned long line, unsigned long column);

/* discover.c: read a file into the arena; if it cannot be read or is too long, what was read so far. Errors:
 * RV_ENOMEM. */
int rv__source_read(const char *path, struct rv__arena *arena, struct rv__str *ret);

/* Does this file have so many problems that no more are stored? Then positions need not be computed. */
bool rv__problems_full(const struct rv__source *source);

/* A quotation for a message: at most 60 bytes, whole characters, printable. */
struct rv__cite {
    char text[72];
};
struct rv__cite rv__cite(struct rv__str text);

enum rv__tree_kind { TREE_NULL, TREE_BOOL, TREE_NUMBER, TREE_STRING, TREE_LIST, TREE_MAP };

struct rv__tree {
    enum rv__tree_kind kind;
    uint32_t at, end;    /* its bytes in the file, without quotes */
    struct rv__str text; /* a string, unescaped; of null, a bool and a number its JSON */
    struct rv__str key;  /* in a map */
    uint32_t key_at;     /* in a map; else the beginning of the value */
    uint32_t count;      /* of children */
    uint32_t size;       /* values in it and itself; an alias counts as what it repeats */
    uint32_t depth;      /* nested containers; 0: a scalar */
    bool block;          /* a YAML block scalar: its indentation is not in the text */
    uint8_t broken;      /* a body: 1: replaced by a harmless node, 2: left out */
    struct rv__tree *first, *last, *next;
    struct rv__tree *same; /* a YAML alias: the value it refers to; see rv__tree_real() */
};

static inline const struct rv__tree *rv__tree_real(const struct rv__tree *tree)
{
    return tree->same != NULL ? tree->same : tree;
}

/* The member with exactly this key; NULL: none, or not a map. */
const struct rv__tree *rv__tree_get(const struct rv__tree *map, const char *key);

/* "a text", "a list" …, for messages. */
const char *rv__tree_phrase(const struct rv__tree *tree);

/* Append it as JSON. */
void rv__tree_json(const struct rv__tree *tree, struct rv__buf *out);

/* Parse the source's text into the arena. *ret NULL: it is not YAML or JSON, and a problem was added. Invalid
 * UTF-8, control characters, duplicate keys and values beyond the limits are problems too. RV_ENOMEM. */
int rv__tree_read(const struct rv__source *source, struct rv__arena *arena,
                  struct rv__problems *problems, struct rv__tree **ret);

/* The two parsers. The text has been checked: printable UTF-8. */
int rv__tree_yaml(const struct rv__source *source, struct rv__arena *arena,
                  struct rv__problems *problems, struct rv__tree **ret);
int rv__tree_from_json(const struct rv__source *source, struct rv__arena *arena,
                       struct rv__problems *problems, struct rv__tree **ret);

/* Add a finished value to its container, and update the counts. */
void rv__tree_add(struct rv__tree *container, struct rv__tree *child);

/* Report duplicate keys of a finished map. RV_ENOMEM. */
int rv__tree_check_keys(const struct rv__tree *map, const struct rv__source *source,
                        struct rv__problems *problems);

/* The meaning of a plain scalar in YAML's core schema. *ret: its JSON, for numbers in the arena. False: a number
 * that JSON does not have (.inf, .nan). Without memory: kind TREE_STRING, and *ret is none. */
bool rv__yaml_plain(struct rv__str text, struct rv__arena *arena, enum rv__tree_kind *kind,
                    struct rv__str *ret);

#endif
