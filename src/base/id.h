/* id.h: ids of runs that sort by their time of creation. */
#ifndef RV_BASE_ID_H
#define RV_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "base/str.h"

enum { RV__ID_SIZE = 27, RV__ID_MAX_BYTES = 128 };

/* A generator. Belongs to one thread. Generators are independent: 80 random bits within a millisecond make their
 * ids different, if each has its own seed. */
struct rv__ids {
    struct rv__random random;
    uint64_t high; /* of the last id: 48 bits of wall ms, 16 random bits */
    uint64_t low;  /* 64 random bits */
};

void rv__ids_init(struct rv__ids *ids, uint64_t seed);

/* The next id, 26 characters of [0-9a-z] and a NUL. Greater, byte by byte, than all earlier ones from this
 * generator, also within one millisecond and when the clock has gone back. */
void rv__ids_next(struct rv__ids *ids, int64_t wall_ms, char ret[RV__ID_SIZE]);

/* May it be the id of a run? [A-Za-z0-9._:-]{1,128}: ours, and those that users choose. Thread: any. */
bool rv__id_valid(struct rv__str id);

#endif
