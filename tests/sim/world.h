/* world.h: what the files of the simulated shell (world*.c) know of each other. */
#ifndef RV_SIM_WORLD_H
#define RV_SIM_WORLD_H

#include "sim.h"

/* world.c: what is on its way, and runs. */
void world_letter_free(struct letter *letter);
void world_letter_remove(struct world *world, struct letter *letter);
void world_wait_remove(struct world *world, struct wait *wait);
void world_work_remove(struct world *world, struct run *run, uint64_t actor, uint64_t token);
bool world_work_there(const struct world *world, const struct run *run, uint64_t actor,
                      uint64_t token);
void world_start_cell(struct world *world, struct run *run);

/* world_work.c: the executors. */
void world_arm(struct world *world, struct run *run, const struct rv__effect *effect);
void world_release(struct world *world, const struct effect_note *note);

/* world_turn.c: turns and commits. */
void world_turn(struct world *world);
void world_deliver(struct world *world, struct letter *letter);
bool world_wanted(const struct world *world, enum rv__lane lane);
bool world_place_free(const struct world *world, enum rv__lane lane);
void world_finish_commit(struct world *world);
void world_pending_free(struct run *run);
void world_memory_back(void);

/* world_life.c: dying, living. */
void world_recover(struct world *world);

#endif
