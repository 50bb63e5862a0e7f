/* cfiles.c: workflow files in C: compiled, and looked at, in a host or here. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rival/rival.h>

#include "base/alloc.h"
#include "base/error.h"
#include "define/define.h"
#include "work/work.h"

static bool ends_with(const char *path, const char *ending)
{
    size_t len = strlen(path), tail = strlen(ending);
    return len > tail && strcmp(path + len - tail, ending) == 0;
}

/* Its functions are called in this process: it stays loaded for good, as runs may be in it at any time. */
static int load_here(const char *object, rv_workflow **ret, rv_error *err)
{
    struct rv__table table = { .functions = NULL };
    void *handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return rv__fail(err, RV_EINVAL, "it cannot be loaded: %s", dlerror());
    const rv_workflow_def *def = dlsym(handle, "rv_file_table");
    int rc = RV_EINVAL;
    if (def == NULL)
        rc = rv__fail(err, RV_EINVAL, "it has no workflow: declare one with RV_WORKFLOW");
    else
        rc = rv__table_read(def, &table, err);
    if (rc < 0) {
        dlclose(handle);
        return rc;
    }
    rc = rv__workflow_read(rv__buf_view(&table.plan), ret, err);
    for (struct rv__named_fn *f = table.functions; rc == RV_OK && f != NULL; f = f->next)
        rv_workflow_function(*ret, f->name.at, f->fn);
    rv__table_done(&table);
    if (rc < 0)
        dlclose(handle);
    return rc;
}

static int find_object(struct rv__c_file *file, const rv_file_opts *opts,
                       char object[RV__CFILE_PATH], rv_error *err)
{
    const char *path = file->path;
    if (ends_with(path, ".so")) {
        char *full = realpath(path, NULL);
        if (full == NULL || strlen(full) >= RV__CFILE_PATH) {
            free(full);
            return rv__fail(err, RV_ENOTFOUND, "it cannot be found: %m");
        }
        memcpy(object, full, strlen(full) + 1);
        free(full);
        return RV_OK;
    }
    int rc = rv__cfile_build(path, object, &file->said, err);
    if (opts != NULL && opts->tell != NULL && file->said.len > 0)
        opts->tell(opts->arg, file->said.text);
    return rc;
}

/* Its workflow, to be registered or shown; or why there is none. */
static void load_file(struct rv__c_files *files, struct rv__c_file *file, const rv_file_opts *opts)
{
    char object[RV__CFILE_PATH];
    rv_error *err = &file->why;
    int rc = find_object(file, opts, object, err);
    if (rc == RV_OK && opts != NULL && opts->in_process) {
        rc = load_here(object, &file->workflow, err);
    } else if (rc == RV_OK) {
        if (files->hosts == NULL && files->shop != NULL)
            rc = rv__workshop_hosts(files->shop, &files->hosts, err);
        else if (files->hosts == NULL)
            rc = rv__hosts_new(&(struct rv__hosts_opts){ .limit = 1 }, &files->hosts, err);
        if (rc == RV_OK)
            rc = rv__hosted_workflow(files->hosts, object, &file->workflow, err);
    }
    if (rc < 0)
        return;
    file->workflow->source = file->path;
    file->workflow->replace = opts != NULL && opts->replace;
}

/* Sources that lie in a folder need not be workflows: one that was only found, and has none in its text,
 * is nobody's mistake. */
static bool has_workflow(const char *path)
{
    char piece[64 * 1024 + 16];
    size_t kept = 0, got;
    bool found = false;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return true; /* the compiler will say why */
    while (!found && (got = fread(piece + kept, 1, sizeof piece - kept, file)) > 0) {
        size_t len = kept + got;
        found = memmem(piece, len, "RV_WORKFLOW", 11) != NULL;
        kept = len < 10 ? len : 10; /* it may stand across two pieces */
        memmove(piece, piece + len - kept, kept);
    }
    (void)fclose(file); /* it was only read */
    return found;
}

/* One more; NULL: no memory. */
static struct rv__c_file *add_file(struct rv__c_files *files, struct rv__str path)
{
    if (files->count == files->cap) {
        size_t cap = files->cap ? files->cap * 2 : 8;
        struct rv__c_file *items = rv__realloc(files->items, cap * sizeof *items);
        if (items == NULL)
            return NULL;
        files->items = items;
        files->cap = cap;
    }
    struct rv__c_file *file = &files->items[files->count];
    *file = (struct rv__c_file){ .path = rv__zalloc(1, path.len + 1) };
    if (file->path == NULL)
        return NULL;
    memcpy(file->path, path.at, path.len);
    rv__buf_init(&file->said, 1 << 20);
    files->count++;
    return file;
}

int rv__c_files_load(struct rv__c_files *files, const struct rv__definitions *found,
                     const char *const *named, size_t count, const rv_file_opts *opts,
                     rv_error *err)
{
    for (size_t i = 0; i < found->other_count; i++) {
        const struct rv__other_file *other = &found->others[i];
        if (other->kind != OTHER_C && other->kind != OTHER_OBJECT)
            continue;
        struct rv__c_file *file = add_file(files, other->file);
        if (file == NULL)
            return rv__nomem(err);
        bool meant = other->kind == OTHER_OBJECT;
        for (size_t k = 0; k < count && !meant; k++)
            meant = strcmp(file->path, named[k]) == 0;
        file->done = !meant && !has_workflow(file->path);
        if (!file->done)
            load_file(files, file, opts);
    }
    return RV_OK;
}

int rv__c_files_beside(struct rv__c_files *files, const char *path, rv_error *err)
{
    const char *slash = strrchr(path, '/');
    int len = slash != NULL ? (int)(slash - path) + 1 : 0, rc = RV_OK;
    struct rv__buf at;
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return RV_OK;
    rv__buf_init(&at, RV__CFILE_PATH);
    rv__buf_fmt(&at, "%.*s.", len, path);
    DIR *folder = at.rc == RV_OK ? opendir(at.text) : NULL;
    const struct dirent *entry;
    while (rc == RV_OK && folder != NULL && (entry = readdir(folder)) != NULL) {
        bool known = false;
        rv__buf_reset(&at);
        rv__buf_fmt(&at, "%.*s%s", len, path, entry->d_name);
        if (entry->d_name[0] == '.' || !ends_with(entry->d_name, ".c") || at.rc < 0 ||
            !has_workflow(at.text))
            continue;
        for (size_t i = 0; i < files->count && !known; i++)
            known = strcmp(files->items[i].path, at.text) == 0;
        if (known)
            continue;
        struct rv__c_file *file = add_file(files, rv__buf_view(&at));
        if (file == NULL) {
            rc = rv__nomem(err);
            break;
        }
        file->beside = true;
        load_file(files, file, NULL);
    }
    if (folder != NULL)
        (void)closedir(folder); /* only read */
    rv__buf_done(&at);
    return rc;
}

int rv__c_files_complain(const struct rv__c_files *files, struct rv__definitions *to)
{
    int rc = RV_OK;
    for (size_t i = 0; i < files->count && rc == RV_OK; i++) {
        const struct rv__c_file *file = &files->items[i];
        struct rv__str said = { NULL, 0 }; /* of one that could be loaded only warnings */
        if (file->workflow == NULL)
            said = file->said.len > 0 ? rv__buf_view(&file->said) : rv__str("");
        if (!file->done)
            rc = rv__definitions_complain_c(to, file->path, said, file->why.message);
    }
    return rc;
}

void rv__c_files_done(struct rv__c_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        rv_workflow_free(files->items[i].workflow);
        rv__buf_done(&files->items[i].said);
        rv__free(files->items[i].path);
    }
    rv__free(files->items);
    if (files->shop == NULL)
        rv__hosts_free(files->hosts);
}
