/* write.h: a plan's text, as compile needs it for the version. Inside plan/ only. */
#ifndef RV_PLAN_WRITE_H
#define RV_PLAN_WRITE_H

#include "plan/plan.h"

/* Append the definition of the workflow whose body it is, as a document by itself. `shallow`: the
 * workflows nested in it as name and version only, which is what its own version is the hash of. */
void rv__definition_write(const struct rv__body *body, bool shallow, struct rv__buf *out);

#endif
