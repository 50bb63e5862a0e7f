/* alloc.c: malloc with a countdown to failure.
 *
 * The countdown is per thread: a test that makes the n-th allocation of a call fail must not be
 * disturbed by other threads, nor disturb them. LONG_MAX means that it is off. */
#include "base/alloc.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

static _Thread_local long countdown = LONG_MAX;
static _Thread_local long to_fail = LONG_MAX; /* how many fail once the countdown is at 0 */
static _Thread_local unsigned one_in;         /* > 0: instead, one in so many fails at random */
static _Thread_local uint64_t chance;         /* state of that random generator */
static _Thread_local bool failed;

static bool must_fail(void)
{
    if (countdown == LONG_MAX)
        return false;
    if (countdown > 0) {
        countdown--;
        return false;
    }
    if (one_in > 0) {
        chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if ((chance >> 33) % one_in != 0)
            return false;
    } else if (to_fail-- == 0) {
        countdown = LONG_MAX;
        return false;
    }
    failed = true;
    return true;
}

void *rv__alloc(size_t size)
{
    if (must_fail())
        return NULL;
    return malloc(size ? size : 1);
}

void *rv__zalloc(size_t count, size_t size)
{
    if (must_fail())
        return NULL;
    return calloc(count ? count : 1, size ? size : 1);
}

void *rv__realloc(void *old, size_t size)
{
    if (must_fail())
        return NULL;
    return realloc(old, size ? size : 1);
}

void rv__free(void *mem)
{
    free(mem);
}

void rv__test_fail_alloc_after(long n)
{
    rv__test_fail_allocs(n, LONG_MAX);
}

void rv__test_fail_allocs(long after, long count)
{
    countdown = after < 0 ? LONG_MAX : after;
    to_fail = count;
    one_in = 0;
    failed = false;
}

void rv__test_fail_one_alloc_in(unsigned n, uint64_t seed)
{
    countdown = n > 0 ? 0 : LONG_MAX;
    one_in = n;
    chance = seed;
    failed = false;
}

int rv__test_alloc_failed(void)
{
    return failed;
}
