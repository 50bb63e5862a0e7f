/* random.c: xoshiro256**, seeded by splitmix64 (Blackman and Vigna; both public domain).
 *
 * Integer arithmetic only, so it gives the same numbers on every machine; rand() and random_r() differ
 * between libcs. Only the seed comes from the system. */
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include "base/error.h"

/* Turns similar seeds (1, 2, 3 …) into states that differ widely. Different states give different
 * outputs, so four in a row cannot all be zero. */
static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

void rv__random_init(struct rv__random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        random->s[i] = splitmix64(&seed);
}

uint64_t rv__random_u64(struct rv__random *random)
{
    uint64_t *s = random->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t rv__random_below(struct rv__random *random, uint64_t n)
{
    assert(n > 0);
    /* 2^64 mod n of the draws would make some results more likely: draw again for those. */
    uint64_t surplus = (0 - n) % n;
    uint64_t draw;
    do {
        draw = rv__random_u64(random);
    } while (draw < surplus);
    return draw % n;
}

double rv__random_double(struct rv__random *random)
{
    return (double)(rv__random_u64(random) >> 11) * 0x1.0p-53; /* 53 bits: exact, never 1.0 */
}

int rv__random_seed_system(uint64_t *ret, rv_error *err)
{
    uint64_t seed;
    ssize_t n;
    do {
        n = getrandom(&seed, sizeof seed, 0); /* up to 256 bytes come whole or not at all */
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof seed)
        return rv__fail(err, RV_ESYS, "no random seed from the system: %s",
                        n < 0 && errno == ENOSYS ? "it has no getrandom()" : "getrandom() failed");
    *ret = seed;
    return RV_OK;
}
