/* reference.h: what the files of the reference interpreter share; its contract is in sim.h. */
#ifndef RV_TESTS_SIM_REFERENCE_H
#define RV_TESTS_SIM_REFERENCE_H

#include "sim.h"

/* What became of a node, in given iterations. */
struct end {
    bool reached; /* its sequence got there */
    bool ended;
    enum rv__status status;
    bool hard;        /* it fails its sequence */
    bool undescribed; /* its description is being made: its sequence does not go on before */
    bool some; /* not ended: something has, in it; `result` tells what, if it is cancelled now */
    json_t *result, *state, *error;
};

struct at { /* iterations around us, outermost first */
    const int64_t *vector;
    size_t depth;
};

json_t *ref_any(void); /* "$any": it cannot be foreseen */
json_t *ref_parse(struct rv__str text);
json_t *ref_parse_blob(const struct rv__blob *blob, const char *none); /* `none` for NULL */
/* Add the path of what failed to its error, which is changed and returned: of a node, or (NULL) of a body. */
json_t *ref_placed(json_t *error, const struct rv__node *node, const struct rv__body *body,
                   struct at at);
/* An error that the engine itself makes. */
json_t *ref_own_error(const char *code, const struct rv__node *node, struct at at);
const char *ref_status_name(enum rv__status status);
void ref_put(json_t *map, struct rv__str alias, json_t *value); /* takes `value` */
struct spot ref_spot(const struct reference *ref, const struct rv__node *node, struct at at);
const struct rec_inst *ref_inst(const struct reference *ref, const struct rv__node *node,
                                struct at at);
struct at ref_deeper(struct at at, int64_t index,
                     int64_t *room); /* one more iteration, in `room` */
int ref_max_attempts(const struct rv__step_config *config, const struct outcome *o);

/* How a node ended, by the record or by the oracle; for ref_end_done(). */
struct end ref_node_end(struct reference *ref, const struct rv__node *node, struct at at);
void ref_end_done(struct end *end);
void ref_fail(struct end *ret, json_t *error); /* takes `error` */
/* {result, state, status, error?}; takes the first two from `end`. */
json_t *ref_entry(struct end *end);
/* The entry of a node that was in flight when its run was cancelled. */
json_t *ref_cut_short(const struct rv__node *node, struct end *end);

/* Of a node of that kind, which has begun. */
void ref_stage_end(struct reference *ref, const struct rv__node *node, struct at at,
                   struct end *ret);
void ref_chat_end(struct reference *ref, const struct rv__node *node, struct at at,
                  struct end *ret);

#endif
