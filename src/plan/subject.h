/* subject.h: reads an object of a plan's JSON into a draft: typed access to its members, and complaints about wrong
 * types. For read.c and the kinds. Inside plan/ only. */
#ifndef RV_PLAN_SUBJECT_H
#define RV_PLAN_SUBJECT_H

#include "plan/draft.h"
#include "plan/object.h"

/* The object being read, and where complaints go. */
struct rv__subject {
    struct rv__draft *draft;
    const struct rv__object *object;
    struct rv__complaints *complaints;
    bool document; /* complaints name the key they are about */
};

struct rv__subject rv__subject_of(struct rv__draft_node *node, const struct rv__object *object);
/* Add a complaint. `key` is stored only for a document. */
void rv__subject_complain(const struct rv__subject *s, const char *key, const char *fmt, ...)
    RV_PRINTF(3, 4);
/* Report the keys that an object of this sort cannot have. */
void rv__subject_check_keys(const struct rv__subject *s, unsigned sort, const char *what);

const struct rv__member *rv__subject_get(const struct rv__subject *s, enum rv__key key); /* NULL */
struct rv__str rv__subject_raw(const struct rv__subject *s, enum rv__key key);
struct rv__str rv__subject_text(const struct rv__subject *s, enum rv__key key);
struct rv__expr rv__subject_expr(const struct rv__subject *s, enum rv__key key);
bool rv__subject_bool(const struct rv__subject *s, enum rv__key key);
/* False: absent, or not a whole number up to `most`, which is a complaint. Numbers like 1e3 and 2.0 are whole. */
bool rv__subject_int(const struct rv__subject *s, enum rv__key key, int64_t most, int64_t *ret);
/* The index of the text in the words; -1: absent, or not one of them, which is a complaint. `list` names them for
 * people. */
int rv__subject_word(const struct rv__subject *s, enum rv__key key, const char *const *words,
                     size_t count, const char *list);
/* Its `access`, an enum rv__access; -1: as above. */
int rv__subject_access(const struct rv__subject *s);
/* Its `budget`; false, and *ret is unchanged: absent, or wrong, which is a complaint. */
bool rv__subject_budget(const struct rv__subject *s, struct rv__budget *ret);

/* Read the texts of an array into *names; *names_count is 0 before. */
void rv__subject_names(const struct rv__subject *s, enum rv__key key, struct rv__str **names,
                       uint32_t *names_count);

/* Read the nodes of an array into the body. `one`: a single object is allowed too. */
void rv__subject_body(const struct rv__subject *s, enum rv__key key, bool one,
                      struct rv__draft_body *body);
/* Read the handler under this key, a step or a list of nodes; NULL: none. `depth`: as of a new handler. */
struct rv__draft_node *rv__subject_handler(const struct rv__subject *of, enum rv__key key,
                                           unsigned depth);
/* Read a node, and append it to the body. */
void rv__draft_node_read(struct rv__draft_body *in, const struct rv__object *object);
/* Read the members that only a manifest has (parameters, listeners, version); and kind, name and parameters, which
 * a step and a handler both have. */
void rv__draft_manifest_read(struct rv__draft_workflow *workflow, const struct rv__subject *s);
void rv__draft_work_read(struct rv__draft_node *node, const struct rv__subject *s);

#endif
