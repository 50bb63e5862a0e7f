/* group.h: what the inside adds to the public task group (rival/group.h). */
#ifndef RV_GROUP_GROUP_H
#define RV_GROUP_GROUP_H

#include <rival/group.h>

/* Give each task's outcome to `done` (err NULL: it succeeded), on the thread that ran it, instead of
 * keeping it for next: for a group that lives as long as its owner, whose results nobody collects.
 * Call it before the first task. */
void rv__group_on_done(rv_group *g, void (*done)(void *arg, const rv_error *err));

/* Accept several tasks, in order, as rv_group_go() would each, in one visit to the lock: one wake-up
 * for all of them instead of one for each. Returns how many were accepted, from the first on. */
size_t rv__group_go_all(rv_group *g, rv_task_fn fn, void *const *args, size_t count);

/* Run fn(arg) on this thread, outside of any group: a panic in it becomes *err. Returns 0 (whatever fn
 * did), or RV_EPANIC. */
int rv__panic_guard(int (*fn)(void *arg), void *arg, rv_error *err);

/* Is this thread running a task of this group? */
bool rv__group_inside(const rv_group *g);

#endif
