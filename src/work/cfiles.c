/* cfiles.c: workflow files in C: compiles them and reads their tables, in a host or in this process, with the files
 * that they nest. Scripts are collected here, too; scripts.c loads those. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "define/define.h"
#include "work/work.h"

static bool ends_with(const char *path, const char *ending)
{
    size_t len = strlen(path), tail = strlen(ending);
    return len > tail && strcmp(path + len - tail, ending) == 0;
}

/* Load it into this process. It stays loaded for good, since runs may be in its functions at any time. So does the
 * descriptor: the loader knows objects by name, and the name of this one contains the descriptor's number. */
static int load_here(const char *object, rv_workflow **ret, rv_error *err)
{
    struct rv__table table = { .functions = NULL };
    char opened[40];
    int rc = RV_EINVAL, fd = rv__cfile_open(object, err);
    if (fd < 0)
        return fd;
    snprintf(opened, sizeof opened, "/proc/self/fd/%d", fd);
    void *handle = dlopen(fd > 0 ? opened : object, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        (void)rv__fail(err, RV_EINVAL, "it cannot be loaded: %s", dlerror());
    else
        rc = rv__table_load(handle, &table, err);
    if (rc < 0)
        goto out;
    if (table.plan.len > 0)
        rc = rv__workflow_read(rv__buf_view(&table.plan), ret, err);
    else if ((*ret = rv__workflow_library()) == NULL)
        rc = rv__nomem(err);
    for (struct rv__named_fn *f = table.functions; rc == RV_OK && f != NULL; f = f->next)
        rv_workflow_function(*ret, f->name.at, f->fn);
    rv__table_done(&table);
out:
    if (rc < 0 && handle != NULL)
        dlclose(handle);
    if (rc < 0 && fd > 0)
        close(fd);
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

/* ----------------------------------------------------------------------- what it nests --- */

struct nested {
    struct rv__c_files *files;
    struct rv__c_file *file;
    struct rv__arena arena; /* of names */
};

/* Remember a file that is to be loaded with the others. */
static int add_text(struct rv__c_files *files, const char *path)
{
    for (size_t i = 0; i < files->text_count; i++)
        if (strcmp(files->texts[i], path) == 0)
            return RV_OK;
    if (files->text_count == files->text_cap) {
        size_t cap = files->text_cap ? files->text_cap * 2 : 8;
        char **texts = rv__realloc(files->texts, cap * sizeof(char *));
        if (texts == NULL)
            return RV_ENOMEM;
        files->texts = texts;
        files->text_cap = cap;
    }
    size_t size = strlen(path) + 1;
    char *copy = rv__alloc(size);
    if (copy == NULL)
        return RV_ENOMEM;
    memcpy(copy, path, size);
    files->texts[files->text_count++] = copy;
    return RV_OK;
}

/* The name of the workflow in a file of YAML or JSON. Errors: RV_EINVAL, with file->why; RV_ENOMEM. */
static int name_text(struct nested *n, const char *path, struct rv__str *name)
{
    int rc = add_text(n->files, path);
    if (rc == RV_OK)
        rc = rv__define_name(path, &n->arena, name, NULL);
    if (rc == RV_OK && rv__str_none(*name))
        rc = rv__fail(&n->file->why, RV_EINVAL, "it nests %.150s, which is not a workflow", path);
    return rc;
}

static int name_nested(void *arg, struct rv__str said, struct rv__str *name)
{
    struct nested *n = arg;
    struct rv__buf path;
    const struct rv__draft *draft = NULL;
    const char *slash = strrchr(n->file->path, '/');
    struct rv__str folder = { slash != NULL ? n->file->path : ".",
                              slash != NULL ? (size_t)(slash - n->file->path) : 1 };
    if (!rv__is_file_reference(said))
        return RV_OK;
    rv__buf_init(&path, RV__CFILE_PATH);
    int rc = rv__file_beside(folder, said, &path);
    if (rc == RV_OK && path.rc != RV_OK)
        rc = rv__fail(&n->file->why, RV_EINVAL, "the path '%.100s' is too long", path.text);
    else if (rc == RV_OK && access(path.text, R_OK) < 0)
        rc = rv__fail(&n->file->why, RV_EINVAL, "it nests %.150s: %m", path.text);
    else if (rc == RV_OK && !rv__is_c_file(said) && !rv__is_script(said))
        rc = name_text(n, path.text, name);
    else if (rc == RV_OK)
        rc = rv__c_files_find_file(n->files, path.text, &draft);
    if (rc == RV_OK && draft != NULL)
        *name = rv__draft_name(draft);
    else if (rc < 0 && rc != RV_ENOMEM && n->file->why.code == 0)
        (void)rv__fail(&n->file->why, RV_EINVAL, "it nests %.150s, which cannot be loaded",
                       path.text);
    rv__buf_done(&path);
    return rc;
}

/* Replace the files that it nests by the names of their workflows. Errors: RV_EINVAL, with file->why; RV_ENOMEM. */
int rv__c_file_nested(struct rv__c_files *files, struct rv__c_file *file)
{
    struct nested n = { .files = files, .file = file };
    rv__arena_init(&n.arena, RV__PLAN_MAX_BYTES);
    int rc = rv__draft_nested(file->workflow->draft, name_nested, &n);
    rv__arena_done(&n.arena);
    return rc;
}

/* ------------------------------------------------------------------------------ loading --- */

/* Make each function callable as "file/function", too, for the case that several files have one of this name. */
static int add_long_names(struct rv__c_file *file)
{
    rv_workflow *w = file->workflow;
    struct rv__str stem = rv__file_stem(rv__str(file->path));
    struct rv__buf name;
    rv__buf_init(
        &name, (size_t)4 * RV__PLAN_MAX_NAME); /* longer names cannot be called, and are left out */
    for (const struct rv__named_fn *f = w->functions, *next; f != NULL; f = next) {
        next = f->next; /* add_long_names() puts new ones in front */
        rv__buf_reset(&name);
        rv__buf_fmt(&name, "%.*s/%.*s", RV__ARG(stem), RV__ARG(f->name));
        if (name.rc != RV_OK)
            continue;
        if (f->module != NULL)
            rv__workflow_hosted(w, rv__buf_view(&name), f->module);
        else
            rv_workflow_function(w, name.text, f->fn);
    }
    rv__buf_done(&name);
    return w->rc == RV_ENOMEM ? RV_ENOMEM : RV_OK;
}

/* The hash of a module is recorded with each attempt of its functions: the first 64 bits of its SHA-256, which is
 * enough to recognise it. */
static int note_hash(rv_workflow *w, const char *object, rv_error *err)
{
    struct rv__sha256 hash;
    char bytes[16384], hex[RV__SHA256_HEX];
    ssize_t n;
    int fd = open(object, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return rv__fail(err, RV_ESYS, "%.150s: %m", object);
    rv__sha256_init(&hash);
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        rv__sha256_add(&hash, (struct rv__str){ bytes, (size_t)n });
    close(fd);
    if (n < 0)
        return rv__fail(err, RV_ESYS, "%.150s: it cannot be read", object);
    rv__sha256_done(&hash, hex);
    hex[16] = '\0';
    for (struct rv__named_fn *f = w->functions; f != NULL; f = f->next)
        f->hash = strtoull(hex, NULL, 16);
    return RV_OK;
}

/* Commands of the workflow are relative to its folder. */
int rv__c_file_directory(struct rv__c_file *file)
{
    rv_workflow *w = file->workflow;
    const char *slash = strrchr(file->path, '/');
    struct rv__str folder = { ".", 1 };
    char named[RV__CFILE_PATH];
    if (slash != NULL)
        folder = (struct rv__str){ file->path,
                                   slash > file->path ? (size_t)(slash - file->path) : 1 };
    if (folder.len >= sizeof named)
        return RV_OK; /* no readable file has such a long path */
    snprintf(named, sizeof named, "%.*s", RV__ARG(folder));
    char *full = realpath(named, NULL);
    if (full == NULL)
        return RV_OK; /* the folder was deleted meanwhile */
    w->directory = rv__arena_dup(&w->arena, full, strlen(full));
    free(full);
    return w->directory != NULL ? RV_OK : RV_ENOMEM;
}

static int load_workflow(struct rv__c_files *files, struct rv__c_file *file)
{
    char object[RV__CFILE_PATH];
    const rv_file_opts *opts = files->opts;
    rv_error *err = &file->why;
    int rc = find_object(file, opts, object, err);
    if (rc < 0)
        return rc;
    if (opts != NULL && opts->in_process) {
        rc = load_here(object, &file->workflow, err);
    } else {
        if (files->hosts == NULL && files->services != NULL)
            rc = rv__services_hosts(files->services, &files->hosts, err);
        else if (files->hosts == NULL)
            rc = rv__hosts_new(&(struct rv__hosts_opts){ .limit = 1 }, NULL, &files->hosts, err);
        if (rc == RV_OK)
            rc = rv__hosted_workflow(files->hosts, object, &file->workflow, err);
    }
    if (rc < 0)
        return rc;
    if (add_long_names(file) < 0)
        return RV_ENOMEM;
    rc = note_hash(file->workflow, object, err);
    if (rc < 0)
        return rc;
    file->workflow->source = file->path;
    if (rv__c_file_directory(file) < 0)
        return RV_ENOMEM;
    file->workflow->replace = opts != NULL && opts->replace;
    file->workflow->keep_others = opts != NULL && opts->keep_others;
    if (file->workflow->library)
        return RV_OK;
    return rv__c_file_nested(files, file);
}

/* Make a placeholder for a file that is not to be loaded, since other files may nest it. */
int rv__c_file_stand_in(struct rv__c_file *file, rv_error *err)
{
    struct rv__arena arena;
    struct rv__str name;
    enum rv__declares declares;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by RV__DEFINE_MAX_BYTES */
    int rc = rv__cfile_name(file->path, &arena, &declares, &name);
    if (rc == RV_OK && declares == DECLARES_FUNCTIONS) {
        rv__arena_done(&arena); /* a library of functions: nobody can nest it */
        return RV_OK;
    }
    if (rc == RV_OK)
        rc = rv__draft_new(name.at, &file->stand_in, err);
    if (rc == RV_OK)
        (void)rv__draft_step(rv__draft_root(file->stand_in), STEP_VALUE, NULL, "null", NULL);
    rv__arena_done(&arena);
    return rc < 0 ? rv__nomem(err) : RV_OK;
}

/* Compile or load the file as far as `depth` says. If that fails, file->why says why. Errors: RV_ENOMEM. */
static int load_file(struct rv__c_files *files, struct rv__c_file *file, rv_error *err)
{
    char object[RV__CFILE_PATH];
    int rc = RV_OK;
    if (files->depth == RV_C_FILES_LOADED) {
        rc = load_workflow(files, file);
        if (rc < 0) {
            rv_workflow_free(file->workflow);
            file->workflow = NULL;
        }
        return rc == RV_ENOMEM ? rv__nomem(err) : RV_OK;
    }
    if (files->depth == RV_C_FILES_COMPILED && ends_with(file->path, ".c"))
        rc = rv__cfile_build(file->path, object, &file->said, &file->why);
    return rc == RV_ENOMEM ? rv__nomem(err) : rv__c_file_stand_in(file, err);
}

int rv__c_files_add(struct rv__c_files *files, const char *path, struct rv__c_file **ret,
                    rv_error *err)
{
    struct stat st = { .st_ino = 0 };
    (void)stat(path, &st); /* a missing file is reported when it is loaded */
    if (files->count == files->cap) {
        size_t cap = files->cap ? files->cap * 2 : 8;
        struct rv__c_file **items = rv__realloc(files->items, cap * sizeof(struct rv__c_file *));
        if (items == NULL)
            return rv__nomem(err);
        files->items = items;
        files->cap = cap;
    }
    struct rv__c_file *file = rv__zalloc(1, sizeof *file);
    if (file == NULL)
        return rv__nomem(err);
    *file = (struct rv__c_file){ .device = st.st_dev, .inode = st.st_ino };
    rv__buf_init(&file->said, 1 << 20);
    file->path = rv__zalloc(1, strlen(path) + 1);
    if (file->path == NULL) {
        rv__free(file);
        return rv__nomem(err);
    }
    memcpy(file->path, path, strlen(path));
    if (rv__is_script(rv__str(path))) {
        char *real = realpath(path, NULL);
        size_t size = strlen(real != NULL ? real : path) + 1;
        file->real = rv__alloc(size);
        if (file->real != NULL)
            memcpy(file->real, real != NULL ? real : path, size);
        free(real);
        if (file->real == NULL) {
            rv__free(file->path);
            rv__free(file);
            return rv__nomem(err);
        }
        files->script_count++;
    }
    files->items[files->count++] = file;
    *ret = file;
    return RV_OK;
}

/* Add a file, unless it is there already. *ret: the new one; *known: the one that was there; the other is NULL. */
static int add_file(struct rv__c_files *files, const char *path, struct rv__c_file **ret,
                    struct rv__c_file **known, rv_error *err)
{
    struct stat st = { .st_ino = 0 };
    bool there = stat(path, &st) == 0;
    *ret = *known = NULL;
    for (size_t i = 0; there && i < files->count; i++)
        if (files->items[i]->inode == st.st_ino && files->items[i]->device == st.st_dev) {
            *known = files->items[i];
            return RV_OK;
        }
    return rv__c_files_add(files, path, ret, err);
}

int rv__c_files_take(struct rv__c_files *files, const char *path, struct rv__c_file **ret,
                     rv_error *err)
{
    struct rv__c_file *fresh;
    int rc = add_file(files, path, &fresh, ret, err);
    if (rc < 0 || fresh == NULL)
        return rc;
    *ret = fresh;
    if (fresh->real != NULL) /* loaded together with the others, by rv__c_files_load_scripts() */
        return RV_OK;
    return load_file(files, fresh, err);
}

/* Whether a source declares a workflow or functions. Other sources that are found in a folder are passed over
 * without a message. */
static int declares(const char *path, bool *ret, rv_error *err)
{
    struct rv__arena arena;
    struct rv__str name;
    enum rv__declares what = DECLARES_NOTHING;
    rv__arena_init(&arena, SIZE_MAX); /* as in rv__c_file_stand_in() */
    int rc = rv__cfile_name(path, &arena, &what, &name);
    *ret = what != DECLARES_NOTHING;
    rv__arena_done(&arena);
    return rc < 0 ? rv__nomem(err) : RV_OK;
}

/* Take the scripts, or the other files, among those that were found: files that were named, and files that declare
 * something. */
static int take_found(struct rv__c_files *files, const struct rv__definitions *found, bool scripts,
                      const char *const *named, size_t count, rv_error *err)
{
    int rc = RV_OK;
    for (size_t i = 0; rc == RV_OK && i < found->other_count; i++) {
        const struct rv__other_file *other = &found->others[i];
        struct rv__c_file *file;
        bool meant = false;
        if ((other->kind == OTHER_SCRIPT) != scripts)
            continue;
        for (size_t k = 0; k < count && !meant; k++)
            meant = rv__str_is(other->file, named[k]);
        if (!meant)
            rc = declares(other->file.at, &meant, err);
        if (rc == RV_OK && meant)
            rc = rv__c_files_take(files, other->file.at, &file, err);
    }
    return rc;
}

int rv__c_files_load(struct rv__c_files *files, const struct rv__definitions *found,
                     const char *const *named, size_t count, rv_error *err)
{
    int rc = take_found(files, found, true, named, count, err);
    if (rc == RV_OK)
        rc = rv__c_files_load_scripts(files, named[0], err);
    return rc == RV_OK ? take_found(files, found, false, named, count, err) : rc;
}

/* ------------------------------------------------------------------------------- asking --- */

static const struct rv__draft *draft_of(const struct rv__c_file *file)
{
    return file->workflow != NULL ? file->workflow->draft : file->stand_in;
}

int rv__c_files_find(const struct rv__c_files *files, struct rv__str name,
                     const struct rv__draft **ret)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct rv__draft *draft = draft_of(files->items[i]);
        if (draft != NULL && rv__str_eq(rv__draft_name(draft), name)) {
            *ret = draft;
            return RV_OK;
        }
    }
    return RV_ENOTFOUND;
}

int rv__c_files_find_file(struct rv__c_files *files, const char *path, const struct rv__draft **ret)
{
    struct rv__c_file *file;
    int rc = rv__c_files_take(files, path, &file, NULL);
    if (rc < 0)
        return rc;
    *ret = draft_of(file);
    if (*ret == NULL && file->real != NULL && file->why.code == 0)
        return RV_ENOTFOUND; /* not loaded yet: the caller asks again when it is */
    return *ret != NULL ? RV_OK : RV_EINVAL;
}

const char **rv__c_files_paths(const struct rv__c_files *files, const char *const *paths,
                               size_t count)
{
    const char **all = rv__zalloc(count + files->text_count + 1, sizeof(char *));
    if (all == NULL)
        return NULL;
    memcpy(all, paths, count * sizeof(char *));
    for (size_t i = 0; i < files->text_count; i++)
        all[count + i] = files->texts[i];
    return all;
}

/* The file that defines a workflow of this name: among `texts`, or among the first `count` of `files`. */
static struct rv__str definer(const struct rv__c_files *files, size_t count,
                              const struct rv__definitions *texts, struct rv__str name)
{
    for (size_t i = 0; i < texts->count; i++)
        if (rv__str_eq(texts->items[i].name, name))
            return texts->items[i].file;
    for (size_t i = 0; i < count; i++) {
        const struct rv__c_file *file = files->items[i];
        if (file->workflow != NULL && !file->workflow->library &&
            rv__str_eq(rv__draft_name(file->workflow->draft), name))
            return rv__str(file->path);
    }
    return (struct rv__str){ NULL, 0 };
}

void rv__c_files_refuse_taken(struct rv__c_files *files, const struct rv__definitions *texts)
{
    for (size_t i = 0; i < files->count; i++) {
        struct rv__c_file *file = files->items[i];
        if (file->workflow == NULL || file->workflow->library || file->workflow->rc != RV_OK)
            continue;
        struct rv__str name = rv__draft_name(file->workflow->draft);
        struct rv__str other = definer(files, i, texts, name);
        if (rv__str_none(other) || rv__str_is(other, file->path))
            continue;
        (void)rv__fail(&file->why, RV_EINVAL, "workflow '%.*s' is already registered, by %.*s",
                       RV__ARG(name), RV__ARG(other));
        rv_workflow_free(file->workflow);
        file->workflow = NULL;
        file->taken = true;
    }
}

int rv__c_files_complain(const struct rv__c_files *files, struct rv__definitions *to)
{
    int rc = RV_OK;
    for (size_t i = 0; i < files->count && rc == RV_OK; i++) {
        const struct rv__c_file *file = files->items[i];
        struct rv__str said = { NULL,
                                0 }; /* the warnings of a file that was loaded are not repeated */
        if (file->workflow == NULL && !file->taken)
            said = file->said.len > 0 ? rv__buf_view(&file->said) : rv__str("");
        if (!file->done && file->why.code != 0)
            rc = rv__definitions_complain_c(to, file->path, said, file->why.message);
    }
    return rc;
}

void rv__c_files_done(struct rv__c_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        rv_workflow_free(files->items[i]->workflow);
        rv__draft_free(files->items[i]->stand_in);
        rv__buf_done(&files->items[i]->said);
        rv__free(files->items[i]->path);
        rv__free(files->items[i]->real);
        rv__free(files->items[i]);
    }
    for (size_t i = 0; i < files->text_count; i++)
        rv__free(files->texts[i]);
    rv__free(files->texts);
    rv__free(files->items);
    rv__script_kept_free(files->kept);
    if (files->services == NULL)
        rv__hosts_free(files->hosts);
}
