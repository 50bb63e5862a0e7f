/* schema.h: JSON Schema, draft 2020-12: does a value conform, and if not, why?
 *
 * A schema is compiled once and never changes; any number of threads may use it at once. README.md lists what is
 * supported and what is refused. */
#ifndef RV_SCHEMA_SCHEMA_H
#define RV_SCHEMA_SCHEMA_H

#include "base/str.h"
#include "base/violations.h"

#define RV__SCHEMA_MAX_BYTES (4u << 20) /* of a schema's text; people write some kilobytes */

struct rv__schema;

/* Compile the schema in `json`; the text need not be valid and is not stored. All errors go to `bad`, which must be
 * empty (NULL: only the first is reported, in *err), each with a JSON pointer into the schema. Free *ret with
 * rv__schema_free().
 *
 * Errors: RV_EPARSE, RV_EINVAL, RV_ETOOBIG, RV_ENOMEM.   Thread: any. */
int rv__schema_new(struct rv__str json, struct rv__violations *bad, struct rv__schema **ret,
                   rv_error *err);
void rv__schema_free(struct rv__schema *schema); /* NULL is allowed */

/* Append `instance` to `out`, with the `default`s of absent members put in; all its bytes stay unchanged. A default
 * is used where the schema has it unconditionally: in `properties` of the schema itself, through its $ref and in
 * its allOf; in this order, the first wins. This is repeated, by `properties`, `items` and `prefixItems`, in
 * existing values and in inserted defaults; never in anyOf, oneOf, if or anything else that depends on the value.
 * Nothing is validated. After a failure `out` is unchanged.
 *
 * Errors: RV_EPARSE, RV_ETOOBIG (the bound of `out`; defaults within defaults without end),
 * RV_ENOMEM.   Thread: any. */
int rv__schema_defaults(const struct rv__schema *schema, struct rv__str instance,
                        struct rv__buf *out, rv_error *err);

/* Does `instance` conform to the schema? RV_EINVAL: no, and all violations are in `bad`, which must be empty before
 * (NULL: only the first is reported, in *err), each with a JSON pointer into the instance; for a missing member, to
 * where it should be. Time is linear in the instance's length.
 *
 * Errors: RV_EINVAL, RV_EPARSE, RV_ENOMEM; RV_ETOOBIG: nested too deep, or a pattern or the schema itself would
 * take too long to decide.   Thread: any. */
int rv__schema_check(const struct rv__schema *schema, struct rv__str instance,
                     struct rv__violations *bad, rv_error *err);

#endif
