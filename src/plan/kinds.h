/* kinds.h: what plan/ itself asks of the tables by kind; the rest is in plan.h. */
#ifndef RV_PLAN_KINDS_H
#define RV_PLAN_KINDS_H

#include "plan/plan.h"

const char *rv__node_kind_phrase(enum rv__node_kind kind); /* "a forEach", for sentences */

/* The alias that a step of this kind implies, if it has no function's name to take. */
const char *rv__step_kind_alias(enum rv__step_kind kind);

#endif
