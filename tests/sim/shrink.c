/* shrink.c: from a seed that fails to the smallest plan and the fewest faults that still do, by the
 * same check. Greedy: leave out half of what is left, then a quarter, and so on down to one. */
#include "sim.h"

#include <stdlib.h>

static const char *failing_check(uint64_t seed, const struct cut *cut, bool with_trace)
{
    struct world *world = sim_alloc(sizeof *world);
    world_init(world, seed, cut, with_trace);
    world_run(world);
    const char *check = world->failed ? world->check : NULL;
    if (with_trace && world->failed)
        printf("fails the check '%s': %s\n", world->check, world->why);
    world_done(world);
    free(world);
    return check;
}

static bool still_fails(uint64_t seed, const struct cut *cut, const char *check)
{
    const char *now = failing_check(seed, cut, false);
    return now != NULL && strcmp(now, check) == 0;
}

int shrink(uint64_t seed)
{
    struct world *world = sim_alloc(sizeof *world);
    world_init(world, seed, NULL, false);
    size_t count = world->gens[0].ordinals > world->gens[1].ordinals ? world->gens[0].ordinals
                                                                     : world->gens[1].ordinals;
    world_done(world);
    free(world);
    unsigned char *dropped = sim_alloc(count + 1), *before = sim_alloc(count + 1);
    struct cut cut = { .dropped = dropped, .count = count };
    const char *check = failing_check(seed, &cut, false);
    if (check == NULL) {
        printf("seed %llu does not fail\n", (unsigned long long)seed);
        return 0;
    }
    for (bool any = true; any;) {
        any = false;
        for (int f = 0; f < FAULT_KINDS; f++) {
            if (cut.faults >> f & 1)
                continue;
            cut.faults |= 1u << f;
            if (!still_fails(seed, &cut, check))
                cut.faults &= ~(1u << f);
        }
        for (int runs = 1; runs <= 3 && cut.runs == 0; runs++) {
            cut.runs = runs;
            if (!still_fails(seed, &cut, check))
                cut.runs = 0;
        }
        for (size_t size = (count + 1) / 2; size > 0; size /= 2) {
            for (size_t from = 0; from < count; from += size) {
                size_t fresh = 0;
                memcpy(before, dropped, count);
                for (size_t i = from; i < from + size && i < count; i++) {
                    fresh += !dropped[i];
                    dropped[i] = 1;
                }
                if (fresh == 0)
                    continue;
                if (still_fails(seed, &cut, check))
                    any = true;
                else
                    memcpy(dropped, before, count);
            }
        }
    }
    printf("seed %llu, shrunk; faults that are left:", (unsigned long long)seed);
    for (int f = 0; f < FAULT_KINDS; f++)
        if (!(cut.faults >> f & 1))
            printf(" %s;", fault_name((enum fault)f));
    printf("\n");
    (void)failing_check(seed, &cut, true);
    free(dropped);
    free(before);
    return 1;
}
