/* opts.h: options structs of callers that were compiled with an older header: theirs may have fewer fields. */
#ifndef RV_BASE_OPTS_H
#define RV_BASE_OPTS_H

#include <string.h>

/* Copy the given options over the defaults in `known`; its `size` becomes the given one, even 0, which the caller
 * must refuse. */
static inline void rv__opts_take(void *known, size_t room, const void *given, size_t size)
{
    memcpy(known, given, size < room ? size : room);
    memcpy(known, &size, sizeof size);
}

#endif
