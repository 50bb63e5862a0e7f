/* group_children.c: a task with a group of its own, which ends when the task is cancelled.
 *
 * Two kitchens, each with three cooks. One cook cuts a finger: his kitchen stops (its group is
 * fail-fast) and fails, which cancels the restaurant, whose token every kitchen listens to. */
#include <rival/group.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

struct kitchen {
    const char *name;
    bool accident;
};

static int cook(rv_task *task, void *arg, void **value)
{
    struct kitchen *kitchen = arg;
    (void)value;
    if (kitchen->accident)
        return rv_task_fail(task, RV_EFAILED, "a cut finger");
    while (!rv_task_cancelled(task)) /* cooks until told to stop */
        sched_yield();
    return RV_ECANCELED;
}

static int run_kitchen(rv_task *task, void *arg, void **value)
{
    struct kitchen *kitchen = *value = arg;
    rv_error err;
    rv_group *cooks = rv_group_new(&(rv_group_opts){ .parent = rv_task_token(task) });
    if (cooks == NULL)
        return RV_ENOMEM;
    for (int i = 0; i < 3; i++)
        rv_group_go(cooks, cook, kitchen);
    int rc = rv_group_wait(cooks, &err);
    rv_group_free(cooks);
    return rc == 0 ? 0 : rv_task_fail(task, rc, "the kitchen '%s': %s", kitchen->name, err.message);
}

int main(void)
{
    struct kitchen kitchens[] = { { "cold", false }, { "hot", true } };
    rv_error err;
    rv_group *restaurant = rv_group_new(NULL);
    if (restaurant == NULL)
        return 1;
    for (int i = 0; i < 2; i++)
        rv_group_go(restaurant, run_kitchen, &kitchens[i]);
    if (rv_group_wait(restaurant, &err) != 0)
        printf("closed: %s\n", err.message);
    rv_group_free(restaurant);
    return 0;
}
