/* alloc.h: the only way to memory, so that a test can make the n-th allocation fail. */
#ifndef RV_BASE_ALLOC_H
#define RV_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* The struct that `member` (a pointer) is the field of. */
#define RV__CONTAINER(member, type, field) ((type *)((char *)(member)-offsetof(type, field)))

/* As malloc, calloc, realloc and free, but: NULL also for a count * size that overflows. */
void *rv__alloc(size_t size) __attribute__((malloc, warn_unused_result));
void *rv__zalloc(size_t count, size_t size) __attribute__((malloc, warn_unused_result));
void *rv__realloc(void *old, size_t size) __attribute__((warn_unused_result));
void rv__free(void *mem); /* NULL is allowed */

/* Make the (n+1)-th allocation from now on this thread fail, and every later one; a negative n
 * switches it off. Only tests call this; it costs the library one thread-local load a call. */
void rv__test_fail_alloc_after(long n);

/* As that, but only `count` of them fail: then memory is there again. */
void rv__test_fail_allocs(long after, long count);

/* One allocation in `n` fails on this thread, by chances that come from the seed; 0: none does. */
void rv__test_fail_one_alloc_in(unsigned n, uint64_t seed);

/* Has an allocation failed because of one of these since it was last called? */
int rv__test_alloc_failed(void);

#endif
