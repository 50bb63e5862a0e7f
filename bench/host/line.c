#include "steps.h"
RV_WORKFLOW("line", .steps = RV_STEPS(RV_STEP(big), RV_FOREACH(items, .alias = "each",
                                                               .body = RV_STEPS(RV_STEP(work)))))
