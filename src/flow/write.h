/* write.h: outcomes as JSON: what the kinds of nodes write and expand theirs with. For the files of
 * flow/ only.
 *
 * A writer remembers its first failure, and goes on without effect: it is asked once, at the end. */
#ifndef RV_FLOW_WRITE_H
#define RV_FLOW_WRITE_H

#include "flow/cell.h"

struct rv__writer {
    struct rv__row_source *rows;
    /* To be expanded when it is read: iterations are left out, `[]` stands for them, and values are
     * references. */
    bool as_row;
    bool referred; /* as_row: there are references */
    bool counts;   /* what is longer than the bound of `out` is counted to its end */
    bool counting; /* that is so */
    bool cuts; /* what is longer than the bound of `out` is cut there, and nothing more is read */
    uint64_t bytes;
    struct rv__buf *out;
    rv_error *err;
    int rc;
    struct rv__blob *piece; /* the last one of items, */
    uint64_t piece_number;  /* and which it is: the next row has its item there too */
};

/* How a row ends that has references in it; any other ends with two braces. */
#define RV__ROW_REFERS ",\"refers\":1}"

/* write.c: text, as it is; a string that needs no escapes; a member's key, with a comma but for the
 * first. */
void rv__writer_put(struct rv__writer *w, const char *text);
void rv__writer_put_str(struct rv__writer *w, struct rv__str text);
void rv__writer_put_int(struct rv__writer *w, int64_t n);
void rv__writer_put_alias(struct rv__writer *w, struct rv__str alias);
void rv__writer_put_key(struct rv__writer *w, struct rv__str key, bool *first);
/* A value, read from the store if it is a reference; `none` instead of NULL. */
void rv__writer_put_json(struct rv__writer *w, struct rv__blob *json, const char *none);
/* "key":…, or "keyValue":[number,bytes] in a row, where that is how it is kept. */
void rv__writer_put_member(struct rv__writer *w, const char *key, struct rv__blob *json,
                           const char *none);
/* The description in a state, as JSON. False: there is none, and nothing is put. */
bool rv__writer_put_description(struct rv__writer *w, struct rv__blob *state,
                                struct rv__blob *description);
void rv__writer_put_state(struct rv__writer *w, struct rv__blob *state,
                          struct rv__blob *description);
/* A summary stands for the description that nobody gave: the beginning of a result (of its text, or of its
 * JSON), as a JSON string of at most RV__SUMMARY_BYTES and "…". Between begin and end the result is written
 * to `s->writer`; a result that is null has no summary, and null is put. */
struct rv__summary {
    struct rv__writer writer;
    struct rv__buf text;
};
void rv__summary_begin(struct rv__summary *s, const struct rv__writer *w);
void rv__summary_end(struct rv__summary *s, struct rv__writer *w);
/* Of the message of an error; null if it has none. */
void rv__writer_put_error_summary(struct rv__writer *w, struct rv__str error);
/* The end of an outcome that has no state, from the comma before it to the last brace. `error`: why it
 * failed; NULL: it did not. */
void rv__writer_put_outcome_end(struct rv__writer *w, enum rv__status status,
                                struct rv__blob *error);
void rv__writer_fail(struct rv__writer *w, int rc);
bool rv__writer_failed(const struct rv__writer *w); /* nothing more needs to be read for it */
int rv__writer_end(struct rv__writer *w);           /* how it went; lets go what it holds */

/* {"result":…,"state":…,"status":…} of an entry, and "error" if it failed; its result alone; {alias: outcome, …} of those from
 * `newest` down to, not including, `base`, oldest first; and the same without the braces. */
void rv__entry_write(struct rv__writer *w, const struct rv__entry *entry);
void rv__result_write(struct rv__writer *w, const struct rv__entry *entry);
/* "result":R of an entry, or its reference in a row. */
void rv__result_member_write(struct rv__writer *w, const struct rv__entry *entry);
void rv__entries_write(struct rv__writer *w, const struct rv__entry *newest,
                       const struct rv__entry *base);
void rv__members_write(struct rv__writer *w, const struct rv__entry *newest,
                       const struct rv__entry *base, bool *first);

/* expand.c: what was written into a row, with what it stands for. `vector`: the iterations around it, as
 * in the key of a row. */
/* {"iterations":[…]} of an entry whose iterations are rows; the same, where it stands in a row. */
void rv__iterations_write(struct rv__writer *w, const struct rv__entry *entry);
void rv__iterations_expand(struct rv__writer *w, const struct rv__node *node,
                           struct rv__str vector);
/* The result of a node. */
void rv__node_expand(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                     struct rv__str vector);
/* {"result":R,…} with R expanded: it is the result of `node`, or has the outcomes of the nodes of `map`;
 * both NULL: R stays as it is. */
void rv__outcome_expand(struct rv__writer *w, const struct rv__node *node,
                        const struct rv__body *map, struct rv__str outcome, struct rv__str vector);
/* {…,"results":{alias: outcome, …}} of a node: of a body of it, and perhaps of another (NULL: none). */
void rv__results_expand(struct rv__writer *w, const struct rv__node *node, const struct rv__body *a,
                        const struct rv__body *b, struct rv__str object, struct rv__str vector);
/* One iteration of it. `refers`: there may be references in it. */
void rv__row_expand(struct rv__writer *w, const struct rv__node *node, struct rv__str vector,
                    struct rv__str row, bool refers);

#endif
