/* cfile.c: compiles a C file to a shared object with the machine's C compiler, and caches it.
 *
 * Objects in the cache are executed. So the cache is a folder that belongs to this user and that nobody else
 * can write to. It is held by a descriptor all the time, and each object is opened, checked and loaded by one.
 *
 * The file is preprocessed first. The name of the object is the hash of the result, of the compiler's version
 * and of the flags. So a change in an included file, such as rival.h, is noticed, and what is compiled is what
 * was hashed. That costs about 15 ms per file at start. Hashing the file alone would be faster, but would run
 * old code after a change in a header.
 *
 * An object gets its name by rename: two processes at once compile it twice, and both find a complete one.
 * Each build cleans up first: it removes what a killed process left and, beyond KEEP_OBJECTS, the objects that
 * were not used for KEEP_S (a long-running server may have loaded its objects long ago). */
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

#include <rival-paths.h> /* written by the build: paths of this source tree and of the installation */

enum {
    MAX_PATH = 4096,
    MAX_NAME = 96, /* of a file in the cache */
    KEEP_OBJECTS = 256,
    KEEP_S = 30 * 86400,
    FOR_EVER = -1,
    BUILD_S = 3600, /* no build takes longer: an older unfinished file was abandoned */
};

/* --------------------------------------------------------------------------- where things are --- */

static bool has_header(const char *folder)
{
    char path[MAX_PATH + 32];
    snprintf(path, sizeof path, "%s/rival/rival.h", folder);
    return *folder != '\0' && access(path, R_OK) == 0;
}

/* The headers next to this program or library: <prefix>/bin, <prefix>/lib/<machine>, build/. */
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

/* The folder of the cache; on an error it is "". */
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

/* Owned by this user, and not writable by others? */
static bool is_ours(int fd, mode_t type)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Open the cache, and create it if needed. By its descriptor, so that the folder that was checked is the one
 * that is used, even if its path changes. */
static int cache_open(char folder[MAX_PATH], int *ret, rv_error *err)
{
    int rc = cache_path(folder, err);
    if (rc < 0)
        return rc;
    (void)mkdir(folder, 0700); /* on failure, the one below fails too */
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

#define FRESH "new-" /* prefix of unfinished files */

struct build {
    const char *file;
    char include[RV__CFILE_PATH];
    char folder[MAX_PATH]; /* for messages */
    int dir;               /* the folder; the names below are in it */
    char text[MAX_NAME];   /* preprocessed */
    char fresh[MAX_NAME];  /* the unfinished object */
    char object[MAX_NAME]; /* its final name */
    struct rv__buf *said;
};

/* Create a new file in the folder. Returns its descriptor. */
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
    rv__compiler_add(c, "-Werror=incompatible-pointer-types"); /* not a step function */
    rv__compiler_add(c, "-I");
    rv__compiler_add(c, b->include);
    rv__compiler_add_words(c, getenv("RIVAL_CFLAGS"));
}

/* The compiler's output is the message; *err gets its first line with "error". */
static int refused(const struct build *b, int code, rv_error *err)
{
    const char *at = b->said->text != NULL ? b->said->text : "";
    for (const char *line = at; *line != '\0';) {
        size_t len = strcspn(line, "\n"), skip = strlen(b->file);
        if (len <= skip || strncmp(line, b->file, skip) != 0 || line[skip] != ':')
            skip = 0;
        else
            skip++; /* the caller adds the file name */
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

/* Add the output of --version, and the flags, each with its NUL. */
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

/* Replace the compiler's messages from `from` on by those for the file itself. In the preprocessed text all
 * arguments of a macro are on one line, and RV_WORKFLOW has many. */
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

/* A new object is synced before it gets its name: a broken one would be used for ever. */
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

/* Is the object there, and ours? Then note its use for sweep(), by its modification time. */
static bool is_built(const struct build *b)
{
    int fd = openat(b->dir, b->object, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool good = fd >= 0 && is_ours(fd, S_IFREG);
    if (good)
        (void)futimens(fd, NULL); /* on failure it is compiled again some day */
    if (fd >= 0)
        close(fd);
    return good;
}

/* Remove objects (`fresh`: unfinished files) that were not touched for so long. Returns how many of that kind
 * there were. */
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
            (void)unlinkat(dirfd(folder), entry->d_name,
                           0); /* another process may have removed it */
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
        (void)unlinkat(b.dir, b.fresh, 0); /* it does not exist after a success */
    close(b.dir);
    return rc;
}

int rv__cfile_open(const char *object, rv_error *err)
{
    char folder[MAX_PATH];
    size_t len;
    if (cache_path(folder, NULL) < 0 || strncmp(object, folder, len = strlen(folder)) != 0 ||
        strncmp(object + len, "/rival/", 7) != 0)
        return 0; /* a path outside of the cache: built by somebody else */
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
