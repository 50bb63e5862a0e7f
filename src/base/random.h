/* random.h: reproducible random numbers. Same seed, same sequence, on every machine.
 *
 * For jitter, ids and the simulator; not for secrets. A generator belongs to one thread. */
#ifndef RV_BASE_RANDOM_H
#define RV_BASE_RANDOM_H

#include <stdint.h>

#include <rival/base.h>

struct rv__random {
    uint64_t s[4]; /* never all zero */
};

void rv__random_init(struct rv__random *random, uint64_t seed); /* any seed is good */

uint64_t rv__random_u64(struct rv__random *random);
uint64_t rv__random_below(struct rv__random *random, uint64_t n); /* 0..n-1, unbiased; n > 0 */
double rv__random_double(struct rv__random *random);              /* 0 <= x < 1 */

/* A seed from the system. May wait at boot until the system has enough entropy.
 * Errors: RV_ESYS.   Thread: any. */
int rv__random_seed_system(uint64_t *ret, rv_error *err);

#endif
