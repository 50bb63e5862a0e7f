/* arena.c: chunks whose size doubles up to a limit, filled from the front.
 *
 * What is larger than a chunk gets one of its own, linked behind the current one, so that a large
 * piece does not waste what is left of it. */
#include "base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

enum {
    FIRST_CHUNK = 4 * 1024,      /* most turns fit into one */
    LARGEST_CHUNK = 1024 * 1024, /* beyond that, doubling only wastes */
    ALIGNMENT = alignof(max_align_t),
};

struct rv__arena_chunk {
    struct rv__arena_chunk *next;
    size_t size; /* of all of it, this header included */
    alignas(max_align_t) char bytes[];
};

void rv__arena_init(struct rv__arena *arena, size_t max_bytes)
{
    *arena = (struct rv__arena){ .max_bytes = max_bytes };
}

static void free_chunks(struct rv__arena *arena, struct rv__arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct rv__arena_chunk *next = chunk->next;
        arena->bytes -= chunk->size;
        rv__free(chunk);
        chunk = next;
    }
}

void rv__arena_done(struct rv__arena *arena)
{
    free_chunks(arena, arena->chunk);
    assert(arena->bytes == 0);
    rv__arena_init(arena, arena->max_bytes);
}

void rv__arena_reset(struct rv__arena *arena)
{
    struct rv__arena_chunk *keep = arena->chunk;
    if (keep == NULL)
        return;
    if (keep->size > LARGEST_CHUNK) { /* made for one large piece: not worth keeping */
        rv__arena_done(arena);
        return;
    }
    free_chunks(arena, keep->next);
    keep->next = NULL;
    arena->at = keep->bytes;
    arena->end = (char *)keep + keep->size;
}

static struct rv__arena_chunk *add_chunk(struct rv__arena *arena, size_t size)
{
    if (size > arena->max_bytes - arena->bytes) /* bytes never exceeds max_bytes */
        return NULL;

    struct rv__arena_chunk *chunk = rv__alloc(size);
    if (chunk == NULL)
        return NULL;
    chunk->size = size;
    arena->bytes += size;
    return chunk;
}

static size_t next_chunk_size(const struct rv__arena *arena)
{
    if (arena->chunk == NULL)
        return FIRST_CHUNK;
    size_t twice = arena->chunk->size * 2;
    return twice > LARGEST_CHUNK ? LARGEST_CHUNK : twice;
}

/* A piece that does not fit the current chunk. */
static void *alloc_slow(struct rv__arena *arena, size_t size)
{
    size_t whole = size + sizeof(struct rv__arena_chunk);
    size_t usual = next_chunk_size(arena);

    if (whole > usual / 2 && arena->chunk != NULL) { /* a chunk of its own, behind the current */
        struct rv__arena_chunk *own = add_chunk(arena, whole);
        if (own == NULL)
            return NULL;
        own->next = arena->chunk->next;
        arena->chunk->next = own;
        return own->bytes;
    }

    struct rv__arena_chunk *chunk = add_chunk(arena, whole > usual ? whole : usual);
    if (chunk == NULL && whole < usual) /* near the limit: take only what is needed */
        chunk = add_chunk(arena, whole);
    if (chunk == NULL)
        return NULL;
    chunk->next = arena->chunk;
    arena->chunk = chunk;
    arena->at = chunk->bytes + size;
    arena->end = (char *)chunk + chunk->size;
    return chunk->bytes;
}

void *rv__arena_alloc(struct rv__arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (size == 0)
        size = ALIGNMENT;

    if (arena->at == NULL || size > (size_t)(arena->end - arena->at))
        return alloc_slow(arena, size);
    void *mem = arena->at;
    arena->at += size;
    return mem;
}

void *rv__arena_zalloc(struct rv__arena *arena, size_t count, size_t size)
{
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole))
        return NULL;
    void *mem = rv__arena_alloc(arena, whole);
    if (mem != NULL)
        memset(mem, 0, whole);
    return mem;
}

char *rv__arena_dup(struct rv__arena *arena, const char *text, size_t len)
{
    if (len == SIZE_MAX)
        return NULL;
    char *copy = rv__arena_alloc(arena, len + 1);
    if (copy == NULL)
        return NULL;
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}
