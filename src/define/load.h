/* load.h: what the files that load workflows share. Inside define/ only. */
#ifndef RV_DEFINE_LOAD_H
#define RV_DEFINE_LOAD_H

#include <sys/types.h>

#include "define/lower.h"

/* A workflow file on its way. */
struct rv__entry {
    struct rv__source source;
    size_t told;              /* of its problems */
    struct rv__str directory; /* absolute; none: it came as a text */
    dev_t device;             /* of the file, by which it is known again */
    ino_t inode;
    struct rv__tree *tree;         /* NULL: it could not be read as a workflow */
    bool manifest;                 /* it has stages */
    bool several;                  /* a file of several manifests: they are entries of their own */
    struct rv__entry *file;        /* one of several manifests of this file; NULL: it is the file */
    const struct rv__tree *agents; /* that the manifests of its file share; NULL: none */
    struct rv__str name;           /* none: it has none that could be found */
    struct rv__lowered lowered;
    struct rv__draft *draft; /* NULL: none could be made */
    struct rv__plan *plan;
    bool bad;         /* it has problems */
    bool named;       /* by somebody, not only found in a folder */
    bool passed_over; /* it is no workflow, and nobody said that it were */
};

/* That an entry nests another: if that one is bad, so is this. */
struct rv__link {
    struct rv__link *next;
    struct rv__entry *from, *to;
    uint32_t at;
};

/* Something wrong below a nested workflow; told only if that has no problems of its own. */
struct rv__deferred {
    struct rv__deferred *next;
    struct rv__entry *entry;
    uint32_t at;
    struct rv__str message;
};

struct rv__loader {
    struct rv__definitions *out; /* being filled */
    struct rv__arena arena;      /* of texts, trees and spots: gone when loading is over */
    struct rv__problems problems, warnings;
    struct rv__resolver *known;
    struct rv__expr_compiler *compiler;
    struct rv__entry **entries;
    size_t count, cap;
    size_t other_cap;
    struct rv__link *links;
    struct rv__deferred *deferred;
    rv_error *err;
};

/* discover.c: files and folders become entries and others. Errors: RV_ENOMEM, RV_ETOOBIG. */
int rv__discover(struct rv__loader *l, const char *path);

int rv__other_add(struct rv__loader *l, enum rv__other_kind kind, struct rv__str file);

/* The entry of a file, which is read if it is not known yet. *ret NULL: there is no such file, or it
 * is none of YAML and JSON. `path` is relative to the directory. */
int rv__discover_reference(struct rv__loader *l, struct rv__str directory, struct rv__str path,
                           struct rv__entry **ret);

/* load.c: a new entry of this text, which is parsed. */
int rv__entry_add(struct rv__loader *l, const struct rv__entry *entry, struct rv__entry **ret);
struct rv__entry *rv__entry_find(struct rv__loader *l, struct rv__str name);

/* judge.c: lower, read, compile, check. Errors: RV_ENOMEM, what `known` said. */
int rv__entry_lower(struct rv__loader *l, struct rv__entry *entry);
int rv__entry_judge(struct rv__loader *l, struct rv__entry *entry);

#endif
