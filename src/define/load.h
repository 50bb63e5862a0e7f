/* load.h: what the files that load workflows share. Inside define/ only. */
#ifndef RV_DEFINE_LOAD_H
#define RV_DEFINE_LOAD_H

#include <sys/types.h>

#include "define/lower.h"

/* A workflow file while it is loaded. */
struct rv__entry {
    struct rv__source source;
    size_t told;              /* problems reported so far */
    struct rv__str directory; /* absolute; none: it is a text without a file */
    dev_t device;             /* device and inode: to recognise the same file */
    ino_t inode;
    struct rv__tree *tree;         /* NULL: it could not be parsed */
    bool manifest;                 /* it has stages */
    bool several;                  /* it has several manifests, which are entries of their own */
    struct rv__entry *file;        /* the file of this manifest, if it has several; else NULL */
    const struct rv__tree *agents; /* shared by the manifests of its file; NULL: none */
    struct rv__str name;           /* none: no name was found */
    struct rv__lowered lowered;
    struct rv__draft *draft; /* NULL: it could not be made */
    struct rv__plan *plan;
    bool bad;         /* it has problems */
    bool named;       /* given explicitly, not only found in a folder */
    bool passed_over; /* it is not a workflow, and was not given explicitly */
};

/* An entry that nests another one: if the nested one is bad, so is this. */
struct rv__link {
    struct rv__link *next;
    struct rv__entry *from, *to;
    uint32_t at;
};

/* A problem below a nested workflow; reported only if the nested one has no problems of its own. */
struct rv__deferred {
    struct rv__deferred *next;
    struct rv__entry *entry;
    uint32_t at;
    struct rv__str message;
};

struct rv__loader {
    struct rv__definitions *out; /* being filled */
    struct rv__arena arena;      /* for texts, trees and spots: freed after loading */
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

/* discover.c: turn files and folders into entries and others. Errors: RV_ENOMEM, RV_ETOOBIG. */
int rv__discover(struct rv__loader *l, const char *path);

int rv__other_add(struct rv__loader *l, enum rv__other_kind kind, struct rv__str file);

/* The entry of a file, which is read unless it is known. *ret NULL: no such file, or neither YAML nor JSON. `path`
 * is relative to the directory. */
int rv__discover_reference(struct rv__loader *l, struct rv__str directory, struct rv__str path,
                           struct rv__entry **ret);

/* The names in a folder, sorted, without hidden ones and node_modules; in the arena. RV_ESYS: it cannot be read, see
 * errno; RV_ETOOBIG, RV_ENOMEM: the loader has the message. */
int rv__folder_names(struct rv__loader *l, const char *path, char ***ret, size_t *count);

/* load.c: add an entry and parse its text. */
int rv__entry_add(struct rv__loader *l, const struct rv__entry *entry, struct rv__entry **ret);
struct rv__entry *rv__entry_find(struct rv__loader *l, struct rv__str name);

/* judge.c: lower, read, compile, check. Errors: RV_ENOMEM, those of `known`. */
int rv__entry_lower(struct rv__loader *l, struct rv__entry *entry);
int rv__entry_judge(struct rv__loader *l, struct rv__entry *entry);

#endif
