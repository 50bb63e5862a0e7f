/* arena.h: memory by lifetime. Allocate piece by piece, free all at once.
 *
 * `struct rv__arena *arena` in a signature means "the result is allocated there". Not thread-safe: an arena belongs
 * to the owner of the lifetime (a turn, a run, an engine). */
#ifndef RV_BASE_ARENA_H
#define RV_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct rv__arena_chunk;

struct rv__arena {
    struct rv__arena_chunk *chunk; /* newest first; the newest is filled from `at` to `end` */
    char *at;
    char *end;
    size_t bytes;     /* taken from the system, headers included */
    size_t max_bytes; /* an allocation that would need more fails */
};

/* The arena may take up to max_bytes from the system (SIZE_MAX: no limit, with a reason). */
void rv__arena_init(struct rv__arena *arena, size_t max_bytes);
void rv__arena_done(struct rv__arena *arena);

/* Free everything except one chunk, so that a loop with resets stops asking the system. */
void rv__arena_reset(struct rv__arena *arena);

/* `size` bytes, aligned for any type, not cleared / cleared. NULL: no memory, or max_bytes. */
void *rv__arena_alloc(struct rv__arena *arena, size_t size) __attribute__((warn_unused_result));
void *rv__arena_zalloc(struct rv__arena *arena, size_t count, size_t size)
    __attribute__((warn_unused_result));

/* A copy of `len` bytes, NUL-terminated. */
char *rv__arena_dup(struct rv__arena *arena, const char *text, size_t len)
    __attribute__((warn_unused_result));

#endif
