#include "steps.h"
RV_WORKFLOW("many",
            .steps = RV_STEPS(RV_STEP(big), RV_FOREACH(items, .alias = "each", .parallel = true,
                                                       .body = RV_STEPS(RV_STEP(work)))))
