/* wanted.c: what a cell needs from whoever drives it: work now, or a timer later. */
#include "flow/flow.h"

#include "base/alloc.h"

bool rv__cell_idle(const struct rv__cell *cell)
{
    if (rv__cell_working(cell) > 0 || rv__cell_more(cell))
        return false;
    for (int lane = 1; lane < LANES; lane++)
        if (rv__cell_wants(cell, (enum rv__lane)lane))
            return false;
    return true;
}

struct earliest {
    int64_t due_ms;
    bool work;
};

static void look_at(void *arg, const struct rv__effect *effect)
{
    struct earliest *e = arg;
    if (effect->kind == EFFECT_START)
        e->work = true;
    else if (effect->kind == EFFECT_WAIT && (e->due_ms == 0 || effect->due_ms < e->due_ms))
        e->due_ms = effect->due_ms;
}

int64_t rv__cell_wake_ms(const struct rv__cell *cell)
{
    struct earliest e = { .due_ms = 0 };
    rv__cell_outstanding(cell, look_at, &e);
    return e.work ? 0 : e.due_ms;
}

static void note_started(void *arg, const struct rv__effect *effect)
{
    struct rv__started *started = arg;
    if (effect->kind != EFFECT_START)
        return;
    if (started->count == started->cap) {
        size_t cap = started->cap ? started->cap * 2 : 64;
        struct rv__effect *effects = rv__realloc(started->effects, cap * sizeof *effects);
        if (effects == NULL) {
            started->no_memory = true;
            return;
        }
        started->effects = effects;
        started->cap = cap;
    }
    started->effects[started->count++] = *effect;
}

struct rv__started rv__cell_started(const struct rv__cell *cell)
{
    struct rv__started started = { .count = 0 };
    rv__cell_outstanding(cell, note_started, &started);
    return started;
}
