#include <rival/rival.h>
static int step(rv_ctx *c)
{
    return rv_return(c, "i", undeclared_thing);
}
RV_WORKFLOW("broken", .steps = RV_STEPS(RV_STEP(step)))
