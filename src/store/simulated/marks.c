/* marks.c: how far those who follow the feed have come; in memory, as the rows of store/postgres are. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "store/simulated/tables.h"

/* The place of a mark, or where it would be. */
static size_t place_of(const struct rv__sim_store *sim, struct rv__str name, bool *found)
{
    size_t i = 0;
    int order = 1;
    while (i < sim->mark_count && (order = rv__str_cmp(view(&sim->marks[i].name), name)) < 0)
        i++;
    *found = i < sim->mark_count && order == 0;
    return i;
}

static bool is_free(const struct rv__sim_store *sim, const struct rv__sim_mark *mark)
{
    const struct rv__sim_lane *lane = rv__sim_lane(sim, mark->slot);
    return lane == NULL || lane->ended != STORE_NOBODYS;
}

static int take_one(struct rv__sim_store *sim, int64_t slot, struct rv__store_mark *mark,
                    rv_error *err)
{
    bool found;
    size_t at = place_of(sim, mark->name, &found);
    if (!found) {
        struct rv__sim_mark fresh = { .seq = mark->seq, .index = mark->index };
        if (rv__sim_reserve((void **)&sim->marks, sim->mark_count, &sim->mark_cap, 1,
                            sizeof *sim->marks) < 0 ||
            rv__sim_text_copy(&fresh.name, mark->name) < 0)
            return rv__nomem(err);
        memmove(&sim->marks[at + 1], &sim->marks[at], (sim->mark_count - at) * sizeof *sim->marks);
        sim->marks[at] = fresh;
        sim->mark_count++;
    }
    struct rv__sim_mark *row = &sim->marks[at];
    mark->ours = !found || slot == 0 || row->slot == slot || is_free(sim, row);
    if (mark->ours) {
        row->slot = slot;
        mark->seq = row->seq;
        mark->index = row->index;
    }
    return RV_OK;
}

static int move_one(struct rv__sim_store *sim, int64_t slot, struct rv__store_mark *mark)
{
    bool found;
    size_t at = place_of(sim, mark->name, &found);
    struct rv__sim_mark *row = found ? &sim->marks[at] : NULL;
    mark->ours = found && (slot == 0 || row->slot == slot);
    if (!mark->ours)
        return RV_OK;
    row->seq = mark->seq;
    row->index = mark->index;
    if (mark->gone) {
        mark->ours = false;
        rv__free(row->name.at);
        sim->mark_count--;
        memmove(row, row + 1, (sim->mark_count - at) * sizeof *row);
    }
    return RV_OK;
}

static int write_all(struct rv__store *store, bool take, struct rv__store_mark *marks, size_t count,
                     rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    if (sim == NULL)
        return RV_ESTORE;
    const struct rv__sim_member *member = rv__sim_member_of(store);
    int64_t slot = member != NULL ? member->slot : 0;
    int rc = member != NULL && !rv__sim_member_lives(sim, slot)
                 ? rv__fail(err, RV_EGONE, "this member's lease is over")
                 : RV_OK;
    for (size_t i = 0; i < count && rc == RV_OK; i++)
        rc = take ? take_one(sim, slot, &marks[i], err) : move_one(sim, slot, &marks[i]);
    return rv__sim_leave(sim, rc);
}

int rv__sim_take_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                       rv_error *err)
{
    return write_all(store, true, marks, count, err);
}

int rv__sim_move_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                       rv_error *err)
{
    return write_all(store, false, marks, count, err);
}

int rv__sim_marks(struct rv__store *store, rv__store_visit_mark *visit, void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    int rc = sim != NULL ? RV_OK : RV_ESTORE;
    for (size_t i = 0; rc == RV_OK && i < sim->mark_count; i++) {
        const struct rv__sim_mark *row = &sim->marks[i];
        const struct rv__store_mark mark = { .name = view(&row->name),
                                             .seq = row->seq,
                                             .index = row->index,
                                             .free = is_free(sim, row) };
        rc = visit(arg, &mark);
    }
    return sim != NULL ? rv__sim_leave(sim, rc) : rc;
}

void rv__sim_marks_clear(struct rv__sim_store *sim)
{
    for (size_t i = 0; i < sim->mark_count; i++)
        rv__free(sim->marks[i].name.at);
    rv__free(sim->marks);
}
