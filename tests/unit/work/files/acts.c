#include "act.h"
RV_WORKFLOW("acts", .steps = RV_STEPS(RV_STEP(act)))
