/* pattern.h: regular expressions as ECMA-262 means them, matched by PCRE2 within limits.
 *
 * A pattern may come from anybody and be made to take for ever. So a match has two limits: a low one
 * that grows with the text, which nearly all keep, and a high one that only so many matches of
 * one check may ask for. Beyond that the check ends with RV_ETOOBIG: undecided is not "no",
 * which a `not` around it would turn into "yes". */
#ifndef RV_SCHEMA_PATTERN_H
#define RV_SCHEMA_PATTERN_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arena.h"
#include "base/str.h"

#define RV__PATTERN_MAX_BYTES 16384 /* PCRE2 takes up to 64 KiB compiled */

struct rv__pattern {
    struct rv__pattern *next; /* of those to free with the schema */
    struct rv__str source;
    pcre2_code *code;
};

/* Who matches: one owner. */
struct rv__matcher {
    pcre2_match_data *data;
    pcre2_match_context *limits;
    unsigned costly; /* matches that may still ask for the high limit */
};

/* Compile. The struct is in the arena and keeps `source`; rv__pattern_done() frees what PCRE2 has.
 * Errors: RV_EINVAL: `why`, if not NULL, says why; RV_ENOMEM. */
int rv__pattern_new(struct rv__str source, struct rv__arena *arena, struct rv__buf *why,
                    struct rv__pattern **ret);
void rv__pattern_done(struct rv__pattern *pattern);

/* Is it a regular expression? Errors: as above. */
int rv__pattern_valid(struct rv__str source);

void rv__matcher_init(struct rv__matcher *matcher);
void rv__matcher_done(struct rv__matcher *matcher);

/* 1: it is found somewhere in `text` (well-formed UTF-8), 0: it is not. RV_ETOOBIG: would take too
 * long or too much to know; RV_ENOMEM. */
int rv__pattern_match(const struct rv__pattern *pattern, struct rv__matcher *matcher,
                      struct rv__str text);

#endif
