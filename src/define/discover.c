/* discover.c: finds the files to load. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "define/load.h"

/* The kind of a file by its name; -1: unknown; KIND_WORKFLOW: one to parse. */
enum { KIND_NONE = -1, KIND_WORKFLOW = 100 };

static const struct {
    const char *ending;
    int kind;
} endings[] = {
    { ".yaml", KIND_WORKFLOW }, { ".yml", KIND_WORKFLOW }, { ".json", KIND_WORKFLOW },
    { ".c", OTHER_C },          { ".so", OTHER_OBJECT },   { ".ts", OTHER_SCRIPT },
    { ".mts", OTHER_SCRIPT },   { ".js", OTHER_SCRIPT },   { ".mjs", OTHER_SCRIPT },
};

static int kind_of(struct rv__str path)
{
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t len = strlen(endings[i].ending);
        if (path.len > len && memcmp(path.at + path.len - len, endings[i].ending, len) == 0 &&
            path.at[path.len - len - 1] != '/')
            return endings[i].kind;
    }
    return KIND_NONE;
}

bool rv__is_file_reference(struct rv__str reference)
{
    return memchr(reference.at, '/', reference.len) != NULL || kind_of(reference) != KIND_NONE;
}

bool rv__is_c_file(struct rv__str path)
{
    return kind_of(path) == OTHER_C || kind_of(path) == OTHER_OBJECT;
}

bool rv__is_script(struct rv__str path)
{
    return kind_of(path) == OTHER_SCRIPT;
}

int rv__file_beside(struct rv__str directory, struct rv__str path, struct rv__buf *ret)
{
    if (path.at[0] != '/') {
        rv__buf_str(ret, directory);
        rv__buf_char(ret, '/');
    }
    while (path.len > 2 && path.at[0] == '.' && path.at[1] == '/') { /* "./x" beside us is "x" */
        path.at += 2;
        path.len -= 2;
    }
    rv__buf_str(ret, path);
    return ret->rc == RV_ENOMEM ? RV_ENOMEM : RV_OK;
}

static void refuse(struct rv__loader *l, const char *path, const char *why)
{
    struct rv__source source = { rv__str(path), { "", 0 }, NULL };
    rv__problem_add(&l->problems, &source, RV__NOWHERE, "%s", why);
}

int rv__other_add(struct rv__loader *l, enum rv__other_kind kind, struct rv__str file)
{
    struct rv__definitions *out = l->out;
    if (out->other_count >= RV__DEFINE_MAX_FILES)
        return rv__fail(l->err, RV_ETOOBIG, "more than %d files", RV__DEFINE_MAX_FILES);
    if (out->other_count == l->other_cap) {
        size_t cap = l->other_cap ? l->other_cap * 2 : 8;
        struct rv__other_file *others = rv__arena_zalloc(&out->arena, cap, sizeof *others);
        if (others == NULL)
            return rv__nomem(l->err);
        if (out->other_count > 0)
            memcpy(others, out->others, out->other_count * sizeof *others);
        out->others = others;
        l->other_cap = cap;
    }
    struct rv__other_file *other = &out->others[out->other_count];
    other->kind = kind;
    if (rv__str_copy(&out->arena, file, &other->file) < 0)
        return rv__nomem(l->err);
    out->other_count++;
    return RV_OK;
}

/* Read the text, at most one byte more than allowed. -1: see errno. */
static int read_all(int fd, struct rv__buf *text)
{
    char piece[16384];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (int)n;
        rv__buf_add(text, piece, (size_t)n);
        if (text->len > RV__DEFINE_MAX_BYTES || text->rc != RV_OK)
            return 0;
    }
}

int rv__source_read(const char *path, struct rv__arena *arena, struct rv__str *ret)
{
    struct rv__buf text;
    rv__buf_init(&text, RV__DEFINE_MAX_BYTES + (1 << 16));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        (void)read_all(fd, &text); /* as much as can be read */
        (void)close(fd);
    }
    int rc = text.rc == RV_ENOMEM ? RV_ENOMEM : rv__str_copy(arena, rv__buf_view(&text), ret);
    rv__buf_done(&text);
    return rc;
}

static int take_directory(struct rv__loader *l, const char *path, struct rv__str *ret)
{
    char absolute[PATH_MAX];
    const char *slash;
    if (realpath(path, absolute) ==
        NULL) { /* deleted meanwhile: then nothing beside it can be found */
        *ret = (struct rv__str)RV__STR(".");
        return RV_OK;
    }
    slash = strrchr(absolute, '/');
    size_t len = slash > absolute ? (size_t)(slash - absolute) : 1;
    return rv__str_copy(&l->arena, (struct rv__str){ absolute, len }, ret);
}

static int load_file(struct rv__loader *l, const char *path, const struct stat *st, bool named,
                     struct rv__entry **ret)
{
    struct rv__entry entry = { .device = st->st_dev, .inode = st->st_ino, .named = named };
    struct rv__buf text;
    int rc = RV_OK, fd = -1;

    for (size_t i = 0; i < l->count; i++) /* given twice, for example as a file and by its folder */
        if (l->entries[i]->inode == st->st_ino && l->entries[i]->device == st->st_dev &&
            !rv__str_none(l->entries[i]->directory)) {
            *ret = l->entries[i];
            return RV_OK;
        }
    rv__buf_init(&text, RV__DEFINE_MAX_BYTES + (1 << 16));
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || read_all(fd, &text) < 0) {
        refuse(l, path, strerrordesc_np(errno));
        goto out;
    }
    rc = RV_ENOMEM;
    if (text.rc == RV_ENOMEM || rv__str_copy(&l->arena, rv__str(path), &entry.source.file) < 0 ||
        rv__str_copy(&l->arena, rv__buf_view(&text), &entry.source.text) < 0 ||
        take_directory(l, path, &entry.directory) < 0)
        goto out;
    rc = rv__entry_add(l, &entry, ret);
out:
    if (fd >= 0)
        (void)close(fd);
    rv__buf_done(&text);
    return rc == RV_ENOMEM ? rv__nomem(l->err) : rc;
}

/* ------------------------------------------------------------------------------ folders --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_names(struct rv__loader *l, DIR *dir, char ***ret, size_t *count)
{
    size_t cap = 0;
    struct dirent *item;
    while ((item = readdir(dir)) != NULL) {
        if (item->d_name[0] == '.' || strcmp(item->d_name, "node_modules") == 0)
            continue;
        if (*count >= RV__DEFINE_MAX_FILES)
            return rv__fail(l->err, RV_ETOOBIG, "a folder with more than %d files",
                            RV__DEFINE_MAX_FILES);
        if (*count == cap) {
            cap = cap ? cap * 2 : 32;
            char **names = rv__arena_zalloc(&l->arena, cap, sizeof *names);
            if (names == NULL)
                return rv__nomem(l->err);
            if (*count > 0)
                memcpy(names, *ret, *count * sizeof *names);
            *ret = names;
        }
        (*ret)[*count] = rv__arena_dup(&l->arena, item->d_name, strlen(item->d_name));
        if ((*ret)[*count] == NULL)
            return rv__nomem(l->err);
        (*count)++;
    }
    if (*count > 0)
        qsort(*ret, *count, sizeof **ret, by_name);
    return RV_OK;
}

int rv__folder_names(struct rv__loader *l, const char *path, char ***ret, size_t *count)
{
    *ret = NULL;
    *count = 0;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return RV_ESYS;
    int rc = list_names(l, dir, ret, count);
    (void)closedir(dir); /* only read */
    return rc;
}

static int discover(struct rv__loader *l, const char *path, unsigned depth);

static int discover_folder(struct rv__loader *l, const char *path, unsigned depth)
{
    char **names;
    size_t count;
    if (depth > RV__DEFINE_MAX_FOLDERS) {
        refuse(l, path, "folders are nested too deep");
        return RV_OK;
    }
    int rc = rv__folder_names(l, path, &names, &count);
    if (rc == RV_ESYS) {
        refuse(l, path, strerrordesc_np(errno));
        return RV_OK;
    }
    for (size_t i = 0; rc == RV_OK && i < count; i++) {
        struct rv__buf child;
        rv__buf_init(&child, PATH_MAX);
        rv__buf_fmt(&child, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", names[i]);
        if (child.rc == RV_OK)
            rc = discover(l, child.text, depth + 1);
        else if (child.rc == RV_ENOMEM)
            rc = rv__nomem(l->err);
        else
            refuse(l, path, "a path too long to be opened");
        rv__buf_done(&child);
    }
    return rc;
}

/* Type declarations and tests beside scripts are not workflows. */
static bool is_aside(const char *path)
{
    static const char *const middles[] = { ".d", ".test", ".spec" };
    const char *end = strrchr(path, '.');
    for (size_t i = 0; end != NULL && i < sizeof middles / sizeof *middles; i++) {
        size_t len = strlen(middles[i]);
        if ((size_t)(end - path) > len && memcmp(end - len, middles[i], len) == 0)
            return true;
    }
    return false;
}

/* depth 0: given by the user, so it must be a workflow. */
static int discover(struct rv__loader *l, const char *path, unsigned depth)
{
    struct stat st, link;
    struct rv__entry *entry = NULL;
    int kind = kind_of(rv__str(path));
    if (stat(path, &st) < 0) {
        if (depth == 0 || kind != KIND_NONE)
            refuse(l, path,
                   errno == ENOENT ? "there is no such file or folder" : strerrordesc_np(errno));
        return RV_OK;
    }
    if (S_ISDIR(st.st_mode)) {
        /* A link to a folder is followed only if it was given: it may lead in a circle. */
        if (depth > 0 && lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
            return RV_OK;
        return discover_folder(l, path, depth);
    }
    if (kind == KIND_NONE && depth > 0)
        return RV_OK;
    if (!S_ISREG(st.st_mode))
        refuse(l, path, "this is not a file");
    else if (kind == KIND_NONE)
        refuse(
            l, path,
            "unknown kind of file: workflows end in .yaml, .yml, .json, .c, .so, .ts, .js or .mjs");
    else if (kind == KIND_WORKFLOW)
        return load_file(l, path, &st, depth == 0, &entry);
    else if (kind != OTHER_SCRIPT || depth == 0 || !is_aside(path))
        return rv__other_add(l, (enum rv__other_kind)kind, rv__str(path));
    return RV_OK;
}

int rv__discover(struct rv__loader *l, const char *path)
{
    if (*path == '\0') {
        refuse(l, "''", "there is no such file or folder");
        return RV_OK;
    }
    return discover(l, path, 0);
}

int rv__discover_reference(struct rv__loader *l, struct rv__str directory, struct rv__str path,
                           struct rv__entry **ret)
{
    struct rv__buf whole;
    struct stat st;
    int rc = RV_OK;
    *ret = NULL;
    if (rv__str_none(directory) || path.len == 0 || memchr(path.at, '\0', path.len) != NULL ||
        kind_of(path) != KIND_WORKFLOW)
        return RV_OK;
    rv__buf_init(&whole, PATH_MAX);
    if (rv__file_beside(directory, path, &whole) < 0)
        rc = rv__nomem(l->err);
    else if (whole.rc == RV_OK && stat(whole.text, &st) == 0 && S_ISREG(st.st_mode))
        rc = load_file(l, whole.text, &st, true, ret);
    rv__buf_done(&whole);
    return rc;
}
