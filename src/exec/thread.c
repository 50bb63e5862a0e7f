/* thread.c: runs work on the threads of a task group. The group catches panics: a function that panics fails only
 * its attempt. */
#include "base/alloc.h"
#include "base/error.h"
#include "exec/exec.h"
#include "group/group.h"

void rv__executor_fire(struct rv__executor *self, struct rv__work *work)
{
    (void)self;
    if (work->token != NULL)
        rv_cancel_fire(work->token, RV_ECANCELED, "no longer wanted");
}

struct rv__work *rv__executor_outside(const struct rv__executor *self)
{
    (void)self;
    return NULL;
}

struct threads {
    struct rv__executor executor; /* first */
    rv_group *group;
};

static _Thread_local struct rv__work *at_work; /* while this thread runs a task */

static int run(rv_task *task, void *arg, void **value)
{
    struct rv__work *work = arg;
    (void)task;
    (void)value;
    at_work = work;
    if (work->begun != NULL)
        work->begun(work);
    work->run(work);
    return 0;
}

static void done(void *arg, const rv_error *err)
{
    struct rv__work *work = arg;
    work->done(work, err);
}

static size_t threads_start(struct rv__executor *self, struct rv__work *const *works, size_t count)
{
    return rv__group_go_all(((struct threads *)self)->group, run, (void *const *)works, count);
}

static struct rv__work *threads_inside(const struct rv__executor *self)
{
    return rv__group_inside(((const struct threads *)self)->group) ? at_work : NULL;
}

static void threads_free(struct rv__executor *self)
{
    rv_group_free(((struct threads *)self)->group);
    rv__free(self);
}

int rv__threads_new(const struct rv__executor *head, int most, struct rv__executor **ret,
                    rv_error *err)
{
    struct threads *threads = rv__zalloc(1, sizeof *threads);
    if (threads == NULL)
        return rv__nomem(err);
    threads->group = rv_group_new(&(rv_group_opts){ .max_concurrency = most, .keep_going = true });
    if (threads->group == NULL) {
        rv__free(threads);
        return rv__nomem(err);
    }
    rv__group_on_done(threads->group, done);
    threads->executor = *head;
    threads->executor.start = threads_start;
    threads->executor.cancel = rv__executor_fire;
    threads->executor.inside = threads_inside;
    threads->executor.free = threads_free;
    *ret = &threads->executor;
    return RV_OK;
}
