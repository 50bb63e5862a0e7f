/* schema.h: JSON Schema, draft 2020-12: is this value what was asked for, and if not, what is wrong?
 *
 * A schema is compiled once and never changes; any number of threads may then use it at once. What
 * is understood and what is refused: README.md. */
#ifndef RV_SCHEMA_SCHEMA_H
#define RV_SCHEMA_SCHEMA_H

#include "base/str.h"
#include "base/violations.h"

#define RV__SCHEMA_MAX_BYTES (4u << 20) /* of a schema's text; people write some kilobytes */

struct rv__schema;

/* Compile the schema that `json` says; the text need not have been checked and is not kept. All
 * that is wrong with it goes to `bad`, which is empty (NULL: only *err tells, the first), each with a
 * JSON pointer into the schema. On success *ret is to be given to rv__schema_free().
 *
 * Errors: RV_EPARSE, RV_EINVAL, RV_ETOOBIG, RV_ENOMEM.   Thread: any. */
int rv__schema_new(struct rv__str json, struct rv__violations *bad, struct rv__schema **ret,
                   rv_error *err);
void rv__schema_free(struct rv__schema *schema); /* NULL is allowed */

/* Append `instance` to `out`, with the `default`s of absent members put in; every byte that was there
 * stays as it was. A default counts where the schema says it unconditionally: in `properties` of
 * the schema itself, behind its $ref and in its allOf, in this order, the first wins. From there it
 * goes on, by `properties`, `items` and `prefixItems`, into what is there and what a default
 * made; never into anyOf, oneOf, if or what else depends on the value. Nothing is validated.
 * After a failure `out` holds what it held before.
 *
 * Errors: RV_EPARSE, RV_ETOOBIG (the bound of `out`; defaults within defaults without end),
 * RV_ENOMEM.   Thread: any. */
int rv__schema_defaults(const struct rv__schema *schema, struct rv__str instance,
                        struct rv__buf *out, rv_error *err);

/* Is `instance` what the schema asks for? RV_EINVAL if not: all that is wrong with it is then in
 * `bad`, which was empty (NULL: only *err tells, the first), each with a JSON pointer into the instance, a member
 * that is missing with the place where it should be. Time is linear in the instance's length.
 *
 * Errors: RV_EINVAL, RV_EPARSE, RV_ENOMEM; RV_ETOOBIG: nested too deep, or a pattern or the schema
 * itself would take too long to decide.   Thread: any. */
int rv__schema_check(const struct rv__schema *schema, struct rv__str instance,
                     struct rv__violations *bad, rv_error *err);

#endif
