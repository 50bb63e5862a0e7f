/* group.h: additions to the public task group (rival/group.h). */
#ifndef RV_GROUP_GROUP_H
#define RV_GROUP_GROUP_H

#include <rival/group.h>

/* Pass each task's outcome to `done` (err NULL: success), on the thread that ran it, instead of queueing it for
 * next: for a group that lives as long as its owner, and whose results are not collected. Call it before the first
 * task. */
void rv__group_on_done(rv_group *g, void (*done)(void *arg, const rv_error *err));

/* Accept several tasks, in order, like rv_group_go() for each, but with one lock and one wake-up. Returns how many
 * were accepted, from the first on. */
size_t rv__group_go_all(rv_group *g, rv_task_fn fn, void *const *args, size_t count);

/* Run fn(arg) on this thread, outside of any group: a panic becomes *err. Returns 0 (whatever fn returned), or
 * RV_EPANIC. */
int rv__panic_guard(int (*fn)(void *arg), void *arg, rv_error *err);

/* Is this thread running a task of this group? */
bool rv__group_inside(const rv_group *g);

#endif
