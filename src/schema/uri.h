/* uri.h: references resolved against a base, as RFC 3986 §5.2 says. */
#ifndef RV_SCHEMA_URI_H
#define RV_SCHEMA_URI_H

#include "base/str.h"

struct rv__arena;

/* Cut `uri` at its '#': the fragment, "none" if there is no '#'. */
struct rv__str rv__uri_cut_fragment(struct rv__str *uri);

/* What `reference` (without fragment) means where the base is `base` ("" if there is none). A slice
 * of either, or a text in the arena. RV_ENOMEM leaves *ret alone. */
int rv__uri_resolve(struct rv__str base, struct rv__str reference, struct rv__arena *arena,
                    struct rv__str *ret);

/* %41 is A. A text in the arena; false: a '%' without two hexadecimal digits, or no memory. */
bool rv__uri_decode(struct rv__str text, struct rv__arena *arena, struct rv__str *ret);

#endif
