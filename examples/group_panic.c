/* group_panic.c: a bug in one task is that task's error; the others never notice. */
#include <rival/group.h>
#include <stdio.h>

static const int table[] = { 10, 20, 30 };

static int look_up(rv_task *task, void *arg, void **value)
{
    int index = *(int *)arg;
    (void)task;
    if (index < 0 || index >= 3)
        rv_panic("index %d is not in the table", index); /* does not return */
    *value = (void *)&table[index];
    return 0;
}

int main(void)
{
    int indices[] = { 0, 7, 2 };
    rv_group_result res;
    rv_group *g = rv_group_new(&(rv_group_opts){ .keep_going = true, .max_concurrency = 1 });
    if (g == NULL)
        return 1;
    for (int i = 0; i < 3; i++)
        rv_group_go(g, look_up, &indices[i]);
    rv_group_close(g);
    while (rv_group_next(g, -1, NULL, &res) == 1) {
        if (res.err.code == RV_EPANIC)
            printf("a bug: %s\n", res.err.message);
        else
            printf("%d\n", *(const int *)res.value);
    }
    rv_group_free(g);
    return 0;
}
