#include "act.h"
RV_WORKFLOW("limited", .steps = RV_STEPS(RV_STEP(act, .timeout_ms = 1500)))
