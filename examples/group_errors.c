/* group_errors.c: first error wins, or collect them all.
 *
 *   group_errors FILE...         stops at the first file that cannot be read
 *   group_errors --all FILE...   reads what can be read, and reports every error
 *
 * (%m is the text of errno. Not strerror(), whose buffer all threads share.) */
#include <rival/group.h>
#include <stdio.h>
#include <string.h>

static int read_file(rv_task *task, void *arg, void **value)
{
    const char *path = arg;
    char block[65536];

    *value = arg; /* also of a failure: its receiver then knows whose it is */
    FILE *in = fopen(path, "rb");
    if (in == NULL)
        return rv_task_fail(task, RV_EFAILED, "%s: %m", path);
    int code = 0;
    while (code == 0 && fread(block, 1, sizeof block, in) > 0)
        if (rv_task_cancelled(task)) /* another one failed: stop early */
            code = rv_task_fail(task, RV_ECANCELED, "%s: not finished", path);
    if (code == 0 && ferror(in))
        code = rv_task_fail(task, RV_EFAILED, "%s: %m", path);
    fclose(in);
    return code;
}

/* Returns the first error. The other tasks are cancelled. */
static int read_all_or_none(char **paths, int count)
{
    rv_error err;
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 8 });
    for (int i = 0; i < count; i++)
        rv_group_go(g, read_file, paths[i]);
    int rc = rv_group_wait(g, &err);
    if (rc != 0)
        printf("failed: %s\n", err.message);
    rv_group_free(g);
    return rc;
}

/* An error stays with its task; each result says how it went. */
static int read_what_can_be_read(char **paths, int count)
{
    int failed = 0;
    rv_group_result res;
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 8, .keep_going = true });
    for (int i = 0; i < count; i++)
        rv_group_go(g, read_file, paths[i]);
    rv_group_close(g);
    while (rv_group_next(g, -1, NULL, &res) == 1) {
        if (res.err.code == 0)
            printf("ok: %s\n", (char *)res.value);
        else
            printf("failed: %s\n", res.err.message);
        failed += res.err.code != 0;
    }
    rv_group_free(g);
    return failed;
}

int main(int argc, char **argv)
{
    bool all = argc > 1 && strcmp(argv[1], "--all") == 0;
    if (argc < (all ? 3 : 2)) {
        fprintf(stderr, "usage: group_errors [--all] FILE...\n");
        return 2;
    }
    int rc = all ? read_what_can_be_read(argv + 2, argc - 2) : read_all_or_none(argv + 1, argc - 1);
    return rc == 0 ? 0 : 1;
}
