/* uri.h: resolves references against a base, as in RFC 3986 §5.2. */
#ifndef RV_SCHEMA_URI_H
#define RV_SCHEMA_URI_H

#include "base/str.h"

struct rv__arena;

/* Cut `uri` at its '#'; returns the fragment, "none" if there is no '#'. */
struct rv__str rv__uri_cut_fragment(struct rv__str *uri);

/* Resolve `reference` (without fragment) against `base` ("": none). *ret is a slice of either, or a text in the
 * arena. RV_ENOMEM: *ret is unchanged. */
int rv__uri_resolve(struct rv__str base, struct rv__str reference, struct rv__arena *arena,
                    struct rv__str *ret);

/* Decode percent-encoding, into the arena. False: a '%' without two hexadecimal digits, or no memory. */
bool rv__uri_decode(struct rv__str text, struct rv__arena *arena, struct rv__str *ret);

#endif
