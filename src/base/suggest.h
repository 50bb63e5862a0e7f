/* suggest.h: "did you mean …?" for misspelt words. */
#ifndef RV_BASE_SUGGEST_H
#define RV_BASE_SUGGEST_H

#include "base/str.h"

/* The candidate nearest to `word`, if it is near enough: at most a third of the letters differ (a swap of
 * neighbours counts as one). NULL: none. The first of equals. */
const char *rv__suggest(struct rv__str word, const char *const *candidates, size_t count);

#endif
