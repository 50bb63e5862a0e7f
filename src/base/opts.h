/* opts.h: options as the caller's program knows them: one that was built earlier has fewer fields. */
#ifndef RV_BASE_OPTS_H
#define RV_BASE_OPTS_H

#include <string.h>

/* `known`: ours, with its defaults; its `size` becomes what was given. A size of 0, too: to be refused. */
static inline void rv__opts_take(void *known, size_t room, const void *given, size_t size)
{
    memcpy(known, given, size < room ? size : room);
    memcpy(known, &size, sizeof size);
}

#endif
