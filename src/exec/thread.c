/* thread.c: work on the threads of a task group. The group's panic boundary is ours: a function that
 * panics fails its attempt, and nothing else. */
#include "exec/exec.h"

#include "base/alloc.h"
#include "base/error.h"
#include "group/group.h"

struct rv__threads {
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

int rv__threads_new(int limit, struct rv__threads **ret, rv_error *err)
{
    struct rv__threads *threads = rv__zalloc(1, sizeof *threads);
    if (threads == NULL)
        return rv__nomem(err);
    threads->group = rv_group_new(&(rv_group_opts){ .max_concurrency = limit, .keep_going = true });
    if (threads->group == NULL) {
        rv__free(threads);
        return rv__nomem(err);
    }
    rv__group_on_done(threads->group, done);
    *ret = threads;
    return RV_OK;
}

void rv__threads_free(struct rv__threads *threads)
{
    if (threads == NULL)
        return;
    rv_group_free(threads->group);
    rv__free(threads);
}

size_t rv__threads_start(struct rv__threads *threads, struct rv__work *const *works, size_t count)
{
    return rv__group_go_all(threads->group, run, (void *const *)works, count);
}

bool rv__threads_inside(const struct rv__threads *threads)
{
    return rv__group_inside(threads->group);
}
