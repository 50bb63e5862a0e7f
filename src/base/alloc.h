/* alloc.h: all memory is allocated here, so that a test can make the n-th allocation fail. */
#ifndef RV_BASE_ALLOC_H
#define RV_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* The struct that contains `member` (a pointer) as `field`. */
#define RV__CONTAINER(member, type, field) ((type *)((char *)(member)-offsetof(type, field)))

/* As malloc, calloc, realloc and free, but: NULL also for a count * size that overflows. */
void *rv__alloc(size_t size) __attribute__((malloc, warn_unused_result));
void *rv__zalloc(size_t count, size_t size) __attribute__((malloc, warn_unused_result));
void *rv__realloc(void *old, size_t size) __attribute__((warn_unused_result));
void rv__free(void *mem); /* NULL is allowed */

/* Make the (n+1)-th allocation from now on this thread fail, and every later one; a negative n switches it off. For
 * tests only; it costs the library one thread-local load per call. */
void rv__test_fail_alloc_after(long n);

/* The same, but only `count` allocations fail. */
void rv__test_fail_allocs(long after, long count);

/* One allocation in `n` fails on this thread, chosen at random by the seed; 0: none. */
void rv__test_fail_one_alloc_in(unsigned n, uint64_t seed);

/* Has an allocation failed because of one of these since the last call? */
int rv__test_alloc_failed(void);

#endif
