/* cfile.c: from a C file to a shared object, by the machine's C compiler, and kept.
 *
 * What is in the cache is run. So it is a folder of ours that nobody else can write to, held by a
 * descriptor from the first look to the last, and an object is opened, looked at and loaded by one.
 *
 * The file is preprocessed first, and the result is what the object is known by (with the compiler's
 * version and the flags): so a change in anything that it includes, rival.h among it, is seen, and what
 * is compiled is what was hashed. That costs some 15 ms for each file at a start; the road not taken, to
 * hash the file alone, would run yesterday's code after an edit in a header.
 *
 * Objects appear in the cache by rename: two processes at once compile twice, and both find a whole one.
 * Whoever builds sweeps first: what a process that was killed left behind goes and, when there are more
 * than KEEP_OBJECTS, those that nobody asked for in KEEP_S: a server may have asked long ago. */
#include "define/define.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "define/compiler.h"

#include <rival-paths.h> /* made by the build: where this tree is, and where it is installed */

enum {
    MAX_PATH = 4096,
    MAX_NAME = 96, /* of a file in the cache */
    KEEP_OBJECTS = 256,
    KEEP_S = 30 * 86400,
    FOR_EVER = -1,
    BUILD_S = 3600, /* nobody is at work on a file for so long */
};

/* --------------------------------------------------------------------------- where things are --- */

static bool has_header(const char *folder)
{
    char path[MAX_PATH + 32];
    snprintf(path, sizeof path, "%s/rival/rival.h", folder);
    return *folder != '\0' && access(path, R_OK) == 0;
}

/* Beside the program or library that this is part of: <prefix>/bin, <prefix>/lib/<machine>, build/. */
static bool include_beside(char folder[MAX_PATH])
{
    static const char *const from[] = { "../include", "../../include", "../../../include" };
    Dl_info info;
    if (dladdr((void *)(uintptr_t)rv__cfile_include, &info) == 0 || info.dli_fname == NULL)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int len = slash != NULL ? (int)(slash - info.dli_fname) + 1 : 0;
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        snprintf(folder, MAX_PATH, "%.*s%s", len, info.dli_fname, from[i]);
        if (has_header(folder))
            return true;
    }
    return false;
}

int rv__cfile_include(char folder[RV__CFILE_PATH], rv_error *err)
{
    const char *said = getenv("RIVAL_INCLUDE");
    if (said != NULL && *said != '\0') {
        snprintf(folder, RV__CFILE_PATH, "%s", said);
        if (has_header(folder))
            return RV_OK;
        return rv__fail(err, RV_ENOTFOUND, "RIVAL_INCLUDE is '%.120s', which has no rival/rival.h",
                        said);
    }
    if (include_beside(folder))
        return RV_OK;
    snprintf(folder, RV__CFILE_PATH, "%s", RV__INSTALLED_INCLUDE);
    if (has_header(folder))
        return RV_OK;
    snprintf(folder, RV__CFILE_PATH, "%s", RV__SOURCE_INCLUDE);
    if (has_header(folder))
        return RV_OK;
    return rv__fail(
        err, RV_ENOTFOUND,
        "the headers of Rival were not found: name the folder that has rival/rival.h in "
        "RIVAL_INCLUDE");
}

/* Where objects are kept; "" with an error: nowhere. */
static int cache_path(char folder[MAX_PATH], rv_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    folder[0] = '\0';
    if (cache != NULL && *cache == '/')
        snprintf(folder, MAX_PATH, "%s", cache);
    else if (home != NULL && *home == '/')
        snprintf(folder, MAX_PATH, "%s/.cache", home);
    else
        return rv__fail(err, RV_ENOTFOUND,
                        "there is no place to keep compiled files: set HOME or XDG_CACHE_HOME");
    return RV_OK;
}

/* Nobody else could have put into it what we would run. */
static bool is_ours(int fd, mode_t type)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* The cache, made if need be, as a descriptor: whatever becomes of its path, this is the one that was
 * looked at. */
static int cache_open(char folder[MAX_PATH], int *ret, rv_error *err)
{
    int rc = cache_path(folder, err);
    if (rc < 0)
        return rc;
    (void)mkdir(folder, 0700); /* if it cannot be made, neither can the one in it */
    size_t len = strlen(folder);
    snprintf(folder + len, MAX_PATH - len, "/rival");
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return rv__fail(err, RV_ESYS, "%s: %m", folder);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return rv__fail(err, RV_ESYS, "%s: %m", folder);
    if (!is_ours(fd, S_IFDIR)) {
        close(fd);
        return rv__fail(err, RV_ESYS,
                        "%.100s belongs to another user or is writable by others, and its contents "
                        "would be run: chmod go-w, or set XDG_CACHE_HOME",
                        folder);
    }
    *ret = fd;
    return RV_OK;
}

/* ------------------------------------------------------------------------------- the cache --- */

#define FRESH "new-" /* so begin the names of what is being made */

struct build {
    const char *file;
    char include[RV__CFILE_PATH];
    char folder[MAX_PATH]; /* for people */
    int dir;               /* the folder; the names below are in it */
    char text[MAX_NAME];   /* preprocessed */
    char fresh[MAX_NAME];  /* the object while it is being made */
    char object[MAX_NAME]; /* what it belongs under */
    struct rv__buf *said;
};

/* A new file in the folder. Returns its descriptor. */
static int temporary(struct build *b, char name[MAX_NAME], const char *ending, rv_error *err)
{
    char path[MAX_NAME];
    snprintf(path, sizeof path, "/proc/self/fd/%d/" FRESH "XXXXXX%s", b->dir, ending);
    int fd = mkostemps(path, (int)strlen(ending), O_CLOEXEC);
    if (fd < 0)
        return rv__fail(err, RV_ESYS, "%s cannot be written: %m", b->folder);
    snprintf(name, MAX_NAME, "%s", strrchr(path, '/') + 1);
    return fd;
}

static void add_flags(struct rv__compiler_call *c, const struct build *b)
{
    rv__compiler_add(c, "-std=gnu17");
    rv__compiler_add(c, "-O2");
    rv__compiler_add(c, "-g");
    rv__compiler_add(c, "-fPIC");
    rv__compiler_add(c, "-Wall");
    rv__compiler_add(c, "-Werror=incompatible-pointer-types"); /* a function that is no step */
    rv__compiler_add(c, "-I");
    rv__compiler_add(c, b->include);
    rv__compiler_add_words(c, getenv("RIVAL_CFLAGS"));
}

/* What the compiler printed is the message; of it, the line that says "error" fits into *err. */
static int refused(const struct build *b, int code, rv_error *err)
{
    const char *at = b->said->text != NULL ? b->said->text : "";
    for (const char *line = at; *line != '\0';) {
        size_t len = strcspn(line, "\n"), skip = strlen(b->file);
        if (len <= skip || strncmp(line, b->file, skip) != 0 || line[skip] != ':')
            skip = 0;
        else
            skip++; /* whoever tells it names the file */
        if (memmem(line + skip, len - skip, "error", 5) != NULL)
            return rv__fail(err, RV_EINVAL, "%.*s", (int)(len - skip < 250 ? len - skip : 250),
                            line + skip);
        line += len + (line[len] == '\n');
    }
    return rv__fail(err, RV_EINVAL, "the C compiler failed with code %d", code);
}

static int hash_file(struct rv__sha256 *hash, const struct build *b, rv_error *err)
{
    char bytes[16384];
    ssize_t n;
    int fd = openat(b->dir, b->text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return rv__fail(err, RV_ESYS, "%s/%s: %m", b->folder, b->text);
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        rv__sha256_add(hash, (struct rv__str){ bytes, (size_t)n });
    close(fd);
    return n < 0 ? rv__fail(err, RV_ESYS, "%s/%s: it cannot be read", b->folder, b->text) : RV_OK;
}

/* The compiler's own words about its version, and the flags, which end in NULs. */
static int hash_compiler(struct rv__sha256 *hash, const struct build *b, rv_error *err)
{
    struct rv__compiler_call c;
    struct rv__buf version;
    rv__compiler_begin(&c);
    rv__compiler_add(&c, "--version");
    rv__buf_init(&version, 1 << 20);
    int rc = rv__compiler_run(&c, -1, -1, &version, err);
    if (rc >= 0) {
        c.argc--;
        add_flags(&c, b);
        rv__sha256_add(hash, rv__buf_view(&version));
        for (int i = 0; i < c.argc; i++)
            rv__sha256_add(hash, (struct rv__str){ c.argv[i], strlen(c.argv[i]) + 1 });
    }
    rv__buf_done(&version);
    return rc < 0 ? rc : RV_OK;
}

static int preprocess(struct build *b, rv_error *err)
{
    struct rv__compiler_call c;
    rv__compiler_begin(&c);
    add_flags(&c, b);
    rv__compiler_add(&c, "-E");
    rv__compiler_add(&c, b->file);
    int out = temporary(b, b->text, ".i", err);
    if (out < 0)
        return out;
    int code = rv__compiler_run(&c, out, -1, b->said, err);
    close(out);
    return code > 0 ? refused(b, code, err) : code;
}

static int name_object(struct build *b, rv_error *err)
{
    struct rv__sha256 hash;
    char key[RV__SHA256_HEX];
    rv__sha256_init(&hash);
    int rc = hash_compiler(&hash, b, err);
    if (rc == RV_OK)
        rc = hash_file(&hash, b, err);
    rv__sha256_done(&hash, key);
    snprintf(b->object, sizeof b->object, "%s.so", key);
    return rc;
}

/* What the compiler says of the file itself, instead of what it said, from there on, of the preprocessed text:
 * there all arguments of a macro stand in its first line, and RV_WORKFLOW has many. */
static void say_of_file(struct build *b, size_t from)
{
    struct rv__compiler_call c;
    struct rv__buf said;
    rv__buf_init(&said, b->said->max_bytes);
    rv__compiler_begin(&c);
    add_flags(&c, b);
    rv__compiler_add(&c, "-fsyntax-only");
    rv__compiler_add(&c, b->file);
    if (rv__compiler_run(&c, -1, -1, &said, NULL) > 0 && said.rc == RV_OK && said.len > 0) {
        rv__buf_cut(b->said, from);
        rv__buf_str(b->said, rv__buf_view(&said));
    }
    rv__buf_done(&said);
}

/* A new object counts once it is whole on disk: a name without its bytes would be for ever. */
static int compile(struct build *b, rv_error *err)
{
    struct rv__compiler_call c;
    char from[sizeof RV__COMPILER_FOLDER + MAX_NAME], to[sizeof RV__COMPILER_FOLDER + MAX_NAME];
    int fd = temporary(b, b->fresh, ".so", err);
    if (fd < 0)
        return fd;
    close(fd);
    snprintf(from, sizeof from, RV__COMPILER_FOLDER "%s", b->text);
    snprintf(to, sizeof to, RV__COMPILER_FOLDER "%s", b->fresh);
    rv__compiler_begin(&c);
    add_flags(&c, b);
    rv__compiler_add(&c, "-shared");
    rv__compiler_add(&c, "-x");
    rv__compiler_add(&c, "cpp-output");
    rv__compiler_add(&c, from);
    rv__compiler_add(&c, "-o");
    rv__compiler_add(&c, to);
    size_t before = b->said->len;
    int code = rv__compiler_run(&c, -1, b->dir, b->said, err);
    if (code > 0)
        say_of_file(b, before);
    if (code != 0)
        return code > 0 ? refused(b, code, err) : code;
    fd = openat(b->dir, b->fresh, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool whole = fd >= 0 && fchmod(fd, 0700) == 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    if (!whole || renameat(b->dir, b->fresh, b->dir, b->object) < 0)
        return rv__fail(err, RV_ESYS, "%s/%s cannot be written: %m", b->folder, b->object);
    return RV_OK;
}

/* Is there one already, of ours? Then it is asked for now: the sweep looks at that. */
static bool is_built(const struct build *b)
{
    int fd = openat(b->dir, b->object, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool good = fd >= 0 && is_ours(fd, S_IFREG);
    if (good)
        (void)futimens(fd, NULL); /* at worst it is compiled once more, one day */
    if (fd >= 0)
        close(fd);
    return good;
}

/* Files of the cache, objects or what is being made, that were not touched for so long go. Returns how many
 * of that kind there were. */
static size_t remove_old(const struct build *b, bool fresh, int64_t keep_s)
{
    int64_t now_s = rv__wall_ms(rv__clock_real()) / 1000;
    int fd = openat(b->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    size_t count = 0;
    if (folder == NULL && fd >= 0)
        close(fd);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct stat st;
        if (entry->d_name[0] == '.' || (strncmp(entry->d_name, FRESH, strlen(FRESH)) == 0) != fresh)
            continue;
        count++;
        if (keep_s != FOR_EVER &&
            fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_mtim.tv_sec < now_s - keep_s)
            (void)unlinkat(dirfd(folder), entry->d_name, 0); /* another may have been first */
    }
    if (folder != NULL)
        (void)closedir(folder); /* only read */
    return count;
}

static void sweep(const struct build *b)
{
    (void)remove_old(b, true, BUILD_S);
    if (remove_old(b, false, FOR_EVER) > KEEP_OBJECTS)
        (void)remove_old(b, false, KEEP_S);
}

int rv__cfile_build(const char *file, char object[RV__CFILE_PATH], struct rv__buf *said,
                    rv_error *err)
{
    struct build b = { .file = file, .dir = -1, .said = said };
    if (access(file, R_OK) < 0)
        return rv__fail(err, RV_ENOTFOUND, "it cannot be read: %m");
    int rc = rv__cfile_include(b.include, err);
    if (rc == RV_OK)
        rc = cache_open(b.folder, &b.dir, err);
    if (rc < 0)
        return rc;
    sweep(&b);
    rc = preprocess(&b, err);
    if (rc == RV_OK)
        rc = name_object(&b, err);
    if (rc == RV_OK && !is_built(&b))
        rc = compile(&b, err);
    if (rc == RV_OK &&
        snprintf(object, RV__CFILE_PATH, "%s/%s", b.folder, b.object) >= RV__CFILE_PATH)
        rc = rv__fail(err, RV_ETOOBIG, "the path of the cache is too long");
    if (b.text[0] != '\0')
        (void)unlinkat(b.dir, b.text, 0);
    if (b.fresh[0] != '\0')
        (void)unlinkat(b.dir, b.fresh, 0); /* renamed, if all went well */
    close(b.dir);
    return rc;
}

int rv__cfile_open(const char *object, rv_error *err)
{
    char folder[MAX_PATH];
    size_t len;
    if (cache_path(folder, NULL) < 0 || strncmp(object, folder, len = strlen(folder)) != 0 ||
        strncmp(object + len, "/rival/", 7) != 0)
        return 0; /* somebody built it elsewhere, and named it */
    int fd = open(object, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return rv__fail(err, RV_ENOTFOUND, "%.180s: %m", object);
    if (fd == 0 || !is_ours(fd, S_IFREG)) {
        close(fd);
        return rv__fail(err, RV_ESYS, "%.150s belongs to another user or is writable by others",
                        object);
    }
    return fd;
}
