/* number.h: decimal numbers, compared and divided without rounding. */
#ifndef RV_SCHEMA_NUMBER_H
#define RV_SCHEMA_NUMBER_H

#include "base/str.h"

/* 0.DIGITS times 10 to the `power`; the first and the last digit are not 0; zero has none. */
struct rv__number {
    const char *digits; /* in the text, possibly with a point among them */
    size_t len;         /* of that text */
    size_t count;       /* of digits */
    int64_t power;      /* limited to ±10^15 */
    bool negative;
};

/* Parse the text of a JSON number; `ret` points into it. */
void rv__number_read(struct rv__str text, struct rv__number *ret);
int rv__number_cmp(const struct rv__number *a, const struct rv__number *b);
bool rv__number_is_integer(const struct rv__number *n); /* 1.0 and 1e3 are */

/* The divisor of multipleOf: `digits` times 10 to the `power`. */
struct rv__divisor {
    uint64_t digits;
    int64_t power;
};

/* RV_EINVAL: not above 0. RV_ETOOBIG: more than 18 significant digits. */
int rv__divisor_read(const struct rv__number *n, struct rv__divisor *ret);
bool rv__number_is_multiple(const struct rv__number *n, const struct rv__divisor *divisor);

/* As a count. False: negative, or not an integer. SIZE_MAX: too large. */
bool rv__number_size(const struct rv__number *n, size_t *ret);

#endif
