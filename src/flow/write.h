/* write.h: outcomes as JSON: functions by which the kinds of nodes write and expand their results. For the files of
 * flow/ only.
 *
 * A writer remembers its first failure; further calls have no effect. The caller checks once, at the end. */
#ifndef RV_FLOW_WRITE_H
#define RV_FLOW_WRITE_H

#include "flow/cell.h"

struct rv__writer {
    struct rv__row_source *rows;
    /* It will be expanded when it is read: `[]` stands for iterations, and values are
     * references. */
    bool as_row;
    bool referred; /* with as_row: it contains references */
    bool counts;   /* if it is longer than the limit of `out`, count it to its end */
    bool counting; /* the limit is exceeded, and bytes are only counted */
    bool cuts;     /* if it is longer than the limit of `out`, cut it there and read no more */
    uint64_t bytes;
    struct rv__buf *out;
    rv_error *err;
    int rc;
    struct rv__blob *piece; /* the piece of items that was read last, */
    uint64_t piece_number;  /* and its number: the next row has its item there, too */
};

/* The end of a row with references. Any other row ends with two braces. */
#define RV__ROW_REFERS ",\"refers\":1}"

/* write.c: a text as it is; a string that needs no escapes; the key of a member, with a comma unless it is the
 * first. */
void rv__writer_put(struct rv__writer *w, const char *text);
void rv__writer_put_str(struct rv__writer *w, struct rv__str text);
void rv__writer_put_int(struct rv__writer *w, int64_t n);
void rv__writer_put_alias(struct rv__writer *w, struct rv__str alias);
void rv__writer_put_key(struct rv__writer *w, struct rv__str key, bool *first);
/* A value, read from the store if it is a reference; `none` if it is NULL. */
void rv__writer_put_json(struct rv__writer *w, struct rv__blob *json, const char *none);
/* "key":…; in a row, "keyValue":[number,bytes] if it is a reference. */
void rv__writer_put_member(struct rv__writer *w, const char *key, struct rv__blob *json,
                           const char *none);
/* The description in a state, as JSON. False: there is none, and nothing was written. */
bool rv__writer_put_description(struct rv__writer *w, struct rv__blob *state,
                                struct rv__blob *description);
void rv__writer_put_state(struct rv__writer *w, struct rv__blob *state,
                          struct rv__blob *description);
/* A summary replaces a missing description: the beginning of a result (its text or its JSON), as a JSON string of at
 * most RV__SUMMARY_BYTES and "…". Between begin and end, write the result to `s->writer`. A result that is null has
 * no summary: null is written. */
struct rv__summary {
    struct rv__writer writer;
    struct rv__buf text;
};
void rv__summary_begin(struct rv__summary *s, const struct rv__writer *w);
void rv__summary_end(struct rv__summary *s, struct rv__writer *w);
/* The summary of an error's message; null if it has none. */
void rv__writer_put_error_summary(struct rv__writer *w, struct rv__str error);
/* The end of an outcome without a state, from the comma before it to the last brace. `error`: why it failed; NULL:
 * it did not fail. */
void rv__writer_put_outcome_end(struct rv__writer *w, enum rv__status status,
                                struct rv__blob *error);
void rv__writer_fail(struct rv__writer *w, int rc);
bool rv__writer_failed(const struct rv__writer *w); /* nothing more needs to be read for it */
int rv__writer_end(struct rv__writer *w); /* its first error, or RV_OK; frees what it holds */

/* Write {"result":…,"state":…,"status":…} of an entry, with "error" if it failed; its result alone; {alias: outcome,
 * …} of the entries from `newest` to the one after `base`, oldest first; the same without the braces. */
void rv__entry_write(struct rv__writer *w, const struct rv__entry *entry);
void rv__result_write(struct rv__writer *w, const struct rv__entry *entry);
/* "result":R of an entry; in a row its reference. */
void rv__result_member_write(struct rv__writer *w, const struct rv__entry *entry);
void rv__entries_write(struct rv__writer *w, const struct rv__entry *newest,
                       const struct rv__entry *base);
void rv__members_write(struct rv__writer *w, const struct rv__entry *newest,
                       const struct rv__entry *base, bool *first);

/* expand.c: write what a row contains, with everything that it refers to. `vector`: the indices of the enclosing
 * iterations, as in the key of a row. */
/* {"iterations":[…]} of an entry whose iterations are rows; of an entry that is itself in a row. */
void rv__iterations_write(struct rv__writer *w, const struct rv__entry *entry);
void rv__iterations_expand(struct rv__writer *w, const struct rv__node *node,
                           struct rv__str vector);
/* The result of a node. */
void rv__node_expand(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                     struct rv__str vector);
/* {"result":R,…} with R expanded: R is the result of `node`, or contains the outcomes of the nodes of `map`. If both
 * are NULL, R is written as it is. */
void rv__outcome_expand(struct rv__writer *w, const struct rv__node *node,
                        const struct rv__body *map, struct rv__str outcome, struct rv__str vector);
/* {…,"results":{alias: outcome, …}} of a node, with the nodes of body `a` and of `b` (may be NULL). */
void rv__results_expand(struct rv__writer *w, const struct rv__node *node, const struct rv__body *a,
                        const struct rv__body *b, struct rv__str object, struct rv__str vector);
/* One iteration. `refers`: it may contain references. */
void rv__row_expand(struct rv__writer *w, const struct rv__node *node, struct rv__str vector,
                    struct rv__str row, bool refers);

#endif
