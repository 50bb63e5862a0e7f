/* group_words.c: count the words of every file below a folder: tasks that bring tasks.
 *
 *   group_words [--limit N] FOLDER
 *
 * A folder is a task that brings a task for each thing in it; a file is a task that counts. The
 * first thing that cannot be read cancels the rest. Symbolic links are not followed.
 * (%m is the text of errno. Not strerror(), whose buffer all threads share.) */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <rival/group.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct walk {
    rv_group *group;
    atomic_long folders, files, words;
};

/* One thing to visit. Belongs to its task, which frees it. */
struct visit {
    struct walk *walk;
    char path[PATH_MAX];
};

static int visit(rv_task *task, void *arg, void **value);

static int bring(struct walk *walk, const char *folder, const char *name)
{
    struct visit *v = malloc(sizeof *v);
    if (v == NULL)
        return RV_ENOMEM;
    v->walk = walk;
    int len = snprintf(v->path, sizeof v->path, "%s%s%s", folder, name[0] ? "/" : "", name);
    int rc = len < PATH_MAX ? rv_group_go(walk->group, visit, v) : RV_ETOOBIG;
    if (rc < 0)
        free(v); /* not accepted: still ours */
    return rc;
}

static int visit_folder(rv_task *task, struct visit *v)
{
    DIR *dir = opendir(v->path);
    if (dir == NULL)
        return rv_task_fail(task, RV_EFAILED, "%s: %m", v->path);
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = bring(v->walk, v->path, e->d_name);
    closedir(dir);
    v->walk->folders++;
    return rc;
}

static int visit_file(rv_task *task, struct visit *v)
{
    char block[65536];
    long words = 0;
    bool inside = false;

    FILE *in = fopen(v->path, "rb");
    if (in == NULL)
        return rv_task_fail(task, RV_EFAILED, "%s: %m", v->path);
    size_t len;
    while (!rv_task_cancelled(task) && (len = fread(block, 1, sizeof block, in)) > 0) {
        for (size_t i = 0; i < len; i++) {
            bool space = isspace((unsigned char)block[i]);
            words += !space && !inside;
            inside = !space;
        }
    }
    int rc = ferror(in) ? rv_task_fail(task, RV_EFAILED, "%s: %m", v->path) : 0;
    fclose(in);
    v->walk->files++;
    v->walk->words += words;
    return rc;
}

static int visit(rv_task *task, void *arg, void **value)
{
    struct visit *v = arg;
    struct stat st;
    int rc = 0;
    (void)value;
    if (rv_task_cancelled(task)) /* what was queued still runs: let it be short */
        rc = RV_ECANCELED;
    else if (lstat(v->path, &st) != 0)
        rc = rv_task_fail(task, RV_EFAILED, "%s: %m", v->path);
    else if (S_ISDIR(st.st_mode))
        rc = visit_folder(task, v);
    else if (S_ISREG(st.st_mode))
        rc = visit_file(task, v);
    free(v);
    return rc;
}

int main(int argc, char **argv)
{
    bool limited = argc == 4 && strcmp(argv[1], "--limit") == 0;
    if (argc != 2 && !limited) {
        fprintf(stderr, "usage: group_words [--limit N] FOLDER\n");
        return 2;
    }
    int limit = limited ? (int)strtol(argv[2], NULL, 10) : 8;
    struct walk walk = { .group = rv_group_new(&(rv_group_opts){ .max_concurrency = limit }) };
    if (walk.group == NULL) {
        fprintf(stderr, "group_words: a limit of %d makes no group\n", limit);
        return 2;
    }
    rv_error err;
    int rc = bring(&walk, argv[argc - 1], "");
    if (rc == 0)
        rc = rv_group_wait(walk.group, &err);
    else
        snprintf(err.message, sizeof err.message, "%s", rv_strerror(rc));
    rv_group_free(walk.group);
    if (rc != 0) {
        fprintf(stderr, "group_words: %s\n", err.message);
        return 1;
    }
    printf("%ld words in %ld files in %ld folders\n", walk.words, walk.files, walk.folders);
    return 0;
}
