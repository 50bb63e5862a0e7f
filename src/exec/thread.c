/* thread.c: work on the threads of a task group. The group's panic boundary is ours: a function that
 * panics fails its attempt, and nothing else. */
#include "base/alloc.h"
#include "base/error.h"
#include "exec/exec.h"
#include "group/group.h"

struct threads {
    struct rv__executor executor; /* first */
    rv_group *group;
};

static int run(rv_task *task, void *arg, void **value)
{
    struct rv__work *work = arg;
    (void)task;
    (void)value;
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

static bool threads_inside(const struct rv__executor *self)
{
    return rv__group_inside(((const struct threads *)self)->group);
}

static void threads_free(struct rv__executor *self)
{
    rv_group_free(((struct threads *)self)->group);
    rv__free(self);
}

int rv__threads_new(int limit, struct rv__executor **ret, rv_error *err)
{
    struct threads *threads = rv__zalloc(1, sizeof *threads);
    if (threads == NULL)
        return rv__nomem(err);
    threads->group = rv_group_new(&(rv_group_opts){ .max_concurrency = limit, .keep_going = true });
    if (threads->group == NULL) {
        rv__free(threads);
        return rv__nomem(err);
    }
    rv__group_on_done(threads->group, done);
    threads->executor = (struct rv__executor){ threads_start, threads_inside, threads_free };
    *ret = &threads->executor;
    return RV_OK;
}
