/* format.h: the formats that are checked. */
#ifndef RV_SCHEMA_FORMAT_H
#define RV_SCHEMA_FORMAT_H

#include "base/str.h"

struct rv__format {
    const char *name;
    const char *noun;                  /* "a date, like 2026-01-31" */
    bool (*matches)(struct rv__str s); /* NULL: "regex", which can run out of memory */
};

/* NULL: unknown; then it is only an annotation. */
const struct rv__format *rv__format_find(struct rv__str name);

/* 1, 0 or RV_ENOMEM. */
int rv__format_matches(const struct rv__format *format, struct rv__str s);

#endif
