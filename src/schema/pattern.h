/* pattern.h: regular expressions as in ECMA-262, matched by PCRE2 within limits.
 *
 * A pattern may come from an attacker and be made to run for ever. So a match has two limits: a low one that grows
 * with the text and is enough for nearly all, and a high one that only a limited number of matches of one check may
 * use. Beyond that the check ends with RV_ETOOBIG: undecided is not "no", which a `not` around it would turn into
 * "yes". */
#ifndef RV_SCHEMA_PATTERN_H
#define RV_SCHEMA_PATTERN_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arena.h"
#include "base/str.h"

#define RV__PATTERN_MAX_BYTES 16384 /* PCRE2 takes up to 64 KiB compiled */

struct rv__pattern {
    struct rv__pattern *next; /* of the patterns of a schema */
    struct rv__str source;
    pcre2_code *code;
};

/* The state for matching. One owner. */
struct rv__matcher {
    pcre2_match_data *data;
    pcre2_match_context *limits;
    unsigned costly; /* matches that may still use the high limit */
};

/* Compile. The struct is in the arena and points to `source`; rv__pattern_done() frees PCRE2's part.
 * Errors: RV_EINVAL: with the reason in `why`, if not NULL; RV_ENOMEM. */
int rv__pattern_new(struct rv__str source, struct rv__arena *arena, struct rv__buf *why,
                    struct rv__pattern **ret);
void rv__pattern_done(struct rv__pattern *pattern);

/* Is it a valid regular expression? Errors: as above. */
int rv__pattern_valid(struct rv__str source);

void rv__matcher_init(struct rv__matcher *matcher);
void rv__matcher_done(struct rv__matcher *matcher);

/* 1: found somewhere in `text` (valid UTF-8), 0: not found. RV_ETOOBIG: it would take too much time or memory to
 * decide; RV_ENOMEM. */
int rv__pattern_match(const struct rv__pattern *pattern, struct rv__matcher *matcher,
                      struct rv__str text);

#endif
