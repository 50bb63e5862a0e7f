/* scripts.c: workflow files in TypeScript and JavaScript: what their host reports, as items of rv__c_files. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "work/scripts.h"
#include "work/work.h"

/* ------------------------------------------------------------------------------ asking --- */

/* Write the scripts as a JSON array, and compute a fingerprint of their present content. */
static void list_scripts(const struct rv__c_files *files, struct rv__buf *out, uint64_t *print)
{
    bool first = true;
    *print = RV__HASH_START;
    rv__buf_char(out, '[');
    for (size_t i = 0; i < files->count; i++) {
        const struct rv__c_file *file = files->items[i];
        struct stat st = { .st_size = 0 };
        if (file->real == NULL)
            continue;
        if (!first)
            rv__buf_char(out, ',');
        first = false;
        rv__buf_json_str(out, rv__str(file->real));
        (void)stat(file->real, &st); /* a deleted file counts as an empty one */
        int64_t now[] = { st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (int64_t)st.st_ino };
        *print = rv__str_hash(*print, rv__str(file->real));
        *print = rv__str_hash(*print, (struct rv__str){ (const char *)now, sizeof now });
    }
    rv__buf_char(out, ']');
}

/* The path, and its folder (a folder is its own); both absolute. */
static int folder_of(const char *path, char **root, char **folder)
{
    struct stat st;
    *root = realpath(path, NULL);
    *folder = *root != NULL ? strdup(*root) : NULL;
    if (*folder == NULL)
        return RV_ENOMEM;
    char *slash = strrchr(*folder, '/');
    if ((stat(*folder, &st) < 0 || !S_ISDIR(st.st_mode)) && slash != NULL)
        *slash = '\0';
    return RV_OK;
}

/* Ask a host about all scripts. Its answer, a frame `register`, is in `room` or kept by the host. */
static int ask(struct rv__c_files *files, const char *root, struct rv__buf *room,
               struct rv__str *text, rv_error *why)
{
    rv_report *checked = files->opts != NULL ? files->opts->checked : NULL;
    struct rv__buf list;
    char *absolute = NULL, *folder = NULL;
    uint64_t print;
    rv__buf_init(&list, RV__FRAME_MAX / 2);
    list_scripts(files, &list, &print);
    int rc = list.rc < 0 || folder_of(root, &absolute, &folder) < 0 ? rv__nomem(why) : RV_OK;
    uint64_t kept_print = rc == RV_OK ? rv__str_hash(print, rv__str(folder)) : 0;
    if (rc == RV_OK && (files->services == NULL || files->services->by_hand)) {
        struct rv__script_opts opts = { .folder = folder,
                                        .files = list.text,
                                        .parse = files->depth != RV_C_FILES_LOADED };
        rv__script_kept_free(files->kept); /* it has described fewer files */
        files->kept = NULL;
        rc = rv__script_describe(&opts, room, files->keep && !opts.parse ? &files->kept : NULL,
                                 why);
        files->kept_print = kept_print;
        if (rc == RV_OK)
            *text = rv__buf_view(room);
    } else if (rc == RV_OK) {
        struct rv__script_hosts *hosts = NULL;
        struct rv__script_request request = { .root = absolute,
                                              .folder = folder,
                                              .files = list.text,
                                              .print = print,
                                              .kept = rv__report_kept(checked, kept_print),
                                              .registry = files->registry };
        rc = rv__services_scripts(files->services, &hosts, why);
        if (rc == RV_OK)
            rc = rv__script_hosts_load(hosts, &request, &files->script_host, text, why);
    }
    free(absolute);
    free(folder);
    rv__buf_done(&list);
    return rc;
}

/* ------------------------------------------------------------------------- its answer --- */

/* Find the item of a file. If the file has none, or its item is in use and `fresh`, make one. `text`: the path, as
 * JSON. */
static int item_of(struct rv__c_files *files, struct rv__str text, bool fresh,
                   struct rv__c_file **ret, rv_error *err)
{
    struct rv__arena arena;
    struct rv__str real = { "", 0 };
    struct rv__c_file *known = NULL;
    int rc = RV_OK;
    rv__arena_init(&arena, RV__JSON_MAX_BYTES);
    if (!rv__str_none(text) && rv__json_type(text) == RV__JSON_STRING)
        rc = rv__json_string(text, &arena, &real);
    for (size_t i = 0; i < files->count && known == NULL; i++)
        if (files->items[i]->real != NULL && rv__str_is(real, files->items[i]->real))
            known = files->items[i];
    *ret = known;
    if (rc == RV_OK && (known == NULL || (fresh && known->workflow != NULL))) {
        char *path = rv__arena_dup(&arena, real.at, real.len);
        const char *named = known != NULL ? known->path : path;
        rc = named != NULL ? rv__c_files_add(files, named, ret, err) : RV_ENOMEM;
    }
    rv__arena_done(&arena);
    return rc < 0 ? rv__nomem(err) : RV_OK;
}

static int take_functions(rv_workflow *w, struct rv__str names)
{
    struct rv__json_iter it;
    struct rv__str value, name;
    rv__json_iter_init(&it, names);
    while (rv__json_next(&it, NULL, &value))
        if (rv__json_type(value) == RV__JSON_STRING &&
            rv__json_string(value, &w->arena, &name) == RV_OK)
            rv__workflow_offered(w, name);
    return w->rc == RV_ENOMEM ? RV_ENOMEM : RV_OK;
}

static int take_workflow(struct rv__c_files *files, struct rv__str json, rv_error *err)
{
    struct rv__str plan = { NULL, 0 }, names = { NULL, 0 }, path = { NULL, 0 };
    struct rv__c_file *file;
    if (rv__json_type(json) != RV__JSON_OBJECT || !rv__json_get(json, "plan", &plan))
        return RV_OK; /* our own program does not send that */
    (void)rv__json_get(json, "file", &path);
    int rc = item_of(files, path, true, &file, err);
    if (rc < 0)
        return rc;
    assert(file != NULL); /* found, or just made */
    rc = rv__workflow_read(plan, &file->workflow, &file->why);
    if (rc == RV_OK && rv__json_get(json, "functions", &names) &&
        rv__json_type(names) == RV__JSON_ARRAY)
        rc = take_functions(file->workflow, names);
    if (rc == RV_OK) {
        file->workflow->source = file->path;
        file->workflow->replace = files->opts != NULL && files->opts->replace;
        file->workflow->keep_others = files->opts != NULL && files->opts->keep_others;
        rc = rv__c_file_directory(file);
    }
    if (rc == RV_OK)
        rc = rv__c_file_nested(files, file);
    if (rc < 0) {
        rv_workflow_free(file->workflow);
        file->workflow = NULL;
    }
    return rc == RV_ENOMEM ? rv__nomem(err) : RV_OK;
}

/* Write a problem in the format of compilers, which said.c reads. */
static int take_problem(struct rv__c_files *files, struct rv__str json, rv_error *err)
{
    struct rv__str path = { NULL, 0 }, value, message = rv__str("it cannot be loaded");
    struct rv__arena arena;
    struct rv__c_file *file;
    int64_t line = 0, column = 1;
    if (rv__json_type(json) != RV__JSON_OBJECT)
        return RV_OK;
    (void)rv__json_get(json, "file", &path);
    if (rv__json_get(json, "line", &value))
        (void)rv__json_int(value, &line);
    if (rv__json_get(json, "column", &value))
        (void)rv__json_int(value, &column);
    int rc = item_of(files, path, false, &file, err);
    if (rc < 0)
        return rc;
    assert(file != NULL); /* found, or just made */
    rv__arena_init(&arena, RV__JSON_MAX_BYTES);
    if (rv__json_get(json, "message", &value) && rv__json_type(value) == RV__JSON_STRING)
        rc = rv__json_string(value, &arena, &message);
    if (rc == RV_OK) {
        char *one = rv__arena_dup(&arena, message.at, message.len);
        for (char *at = one; at != NULL && *at != '\0'; at++)
            if (*at == '\n')
                *at = ' '; /* each problem is one line */
        if (line > 0 && one != NULL)
            rv__buf_fmt(&file->said, "%s:%lld:%lld: error: %s\n", file->path, (long long)line,
                        (long long)column, one);
        if (file->why.code == 0)
            (void)rv__fail(&file->why, RV_EINVAL, "%s", one != NULL ? one : "it cannot be loaded");
    }
    rv__arena_done(&arena);
    return rc < 0 ? rv__nomem(err) : RV_OK;
}

static int take_all(struct rv__c_files *files, struct rv__str text, const char *key,
                    int (*take)(struct rv__c_files *, struct rv__str, rv_error *), rv_error *err)
{
    struct rv__str list, item;
    struct rv__json_iter it;
    int rc = RV_OK;
    if (!rv__json_get(text, key, &list) || rv__json_type(list) != RV__JSON_ARRAY)
        return RV_OK;
    rv__json_iter_init(&it, list);
    while (rc == RV_OK && rv__json_next(&it, NULL, &item))
        rc = take(files, item, err);
    return rc;
}

/* ------------------------------------------------------------------------------- all --- */

/* No script could be loaded, for the same reason. */
static void blame_all(struct rv__c_files *files, const rv_error *why)
{
    bool first = true;
    for (size_t i = 0; i < files->count; i++) {
        struct rv__c_file *file = files->items[i];
        if (file->real == NULL)
            continue;
        file->done = !first; /* reported once */
        file->why = *why;
        first = false;
    }
}

static int name_all(struct rv__c_files *files, rv_error *err)
{
    int rc = RV_OK;
    for (size_t i = 0; i < files->count && rc == RV_OK; i++) {
        struct rv__c_file *file = files->items[i];
        if (file->real != NULL && file->why.code == 0 && file->stand_in == NULL)
            rc = rv__c_file_stand_in(file, err);
    }
    return rc;
}

int rv__c_files_load_scripts(struct rv__c_files *files, const char *root, rv_error *err)
{
    struct rv__buf room;
    struct rv__str text = { NULL, 0 };
    rv_error why;
    int rc = RV_OK;
    if (files->script_count == files->asked_count)
        return RV_OK;
    if (files->depth == RV_C_FILES_NAMED) {
        files->asked_count = files->script_count;
        return name_all(files, err);
    }
    rv__buf_init(&room, RV__FRAME_MAX);
    rc = ask(files, root, &room, &text, &why);
    if (rc == RV_OK)
        rc = take_all(files, text, "problems", take_problem, err);
    else if (rc != RV_ENOMEM && rc != RV_ECLOSED) {
        blame_all(files, &why);
        rc = RV_OK;
    } else if (err != NULL)
        *err = why;
    if (rc == RV_OK && !rv__str_none(text))
        rc = take_all(files, text, "workflows", take_workflow, err);
    if (rc == RV_OK && files->depth != RV_C_FILES_LOADED)
        rc = name_all(files, err);
    files->asked_count = files->script_count;
    rv__buf_done(&room);
    return rc;
}
