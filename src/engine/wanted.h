/* wanted.h: what a cell wants of the engine: now, or when. Questions about a cell alone. */
#ifndef RV_ENGINE_WANTED_H
#define RV_ENGINE_WANTED_H

#include "flow/flow.h"

bool rv__cell_idle(const struct rv__cell *cell); /* nothing in it could be done now */
/* Its earliest timer; 0 = none, or there is work. Walks over its actors. */
int64_t rv__cell_wake_ms(const struct rv__cell *cell);

/* The work that it is owed. Give the effects to rv__free(). */
struct rv__started {
    struct rv__effect *effects;
    size_t count, cap;
    bool no_memory; /* these are not all */
};
struct rv__started rv__cell_started(const struct rv__cell *cell);

#endif
