/* suggest.h: "did you mean …?" for words that people type. */
#ifndef RV_BASE_SUGGEST_H
#define RV_BASE_SUGGEST_H

#include "base/str.h"

/* The candidate nearest to `word`, if it is near enough to be a slip: at most a third of the
 * letters differ (a swap of neighbours counts as one). NULL if none is. The first of equals. */
const char *rv__suggest(struct rv__str word, const char *const *candidates, size_t count);

#endif
