/* duration.h: durations as text: "250ms", "30s", "5m", "1h30m", "30d", "1.5s", "500" (ms). */
#ifndef RV_BASE_DURATION_H
#define RV_BASE_DURATION_H

#include "base/str.h"

#define RV__DURATION_MAX_MS INT64_C(3155760000000) /* a hundred years: no sum of times overflows */

/* In milliseconds. RV_EINVAL, with *ret unchanged: not a duration, or too long. */
int rv__duration_ms(struct rv__str text, int64_t *ret);

#endif
