/* Two at once: one dies at its first attempt, while the other is in the midst of its work. */
#include "act.h"
static int dies(rv_ctx *c)
{
    if (is_noted(c, "died"))
        return rv_return(c, "i", rv_ctx_attempt(c));
    while (!is_noted(c, "lives"))
        ;
    leave_note(c, "died", 1);
    raise(SIGSEGV);
    return 0;
}
static int lives(rv_ctx *c)
{
    leave_note(c, "lives", 1);
    while (!is_noted(c, "died"))
        ;
    return rv_return(c, "i", rv_ctx_attempt(c));
}
RV_WORKFLOW("pair",
            .steps = RV_STEPS(RV_CONCURRENT(.alias = "both",
                                            .body = RV_STEPS(RV_STEP(dies), RV_STEP(lives)))))
