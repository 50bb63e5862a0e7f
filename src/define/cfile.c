/* cfile.c: from a C file to a shared object, by the machine's C compiler, and kept.
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
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"

enum {
    MAX_ARGS = 64,
    MAX_PATH = 4096,
    SAID_BYTES = 256 << 10, /* of what a compiler prints; the rest is read and dropped */
    KEEP_OBJECTS = 256,
    KEEP_S = 30 * 86400,
    FOR_EVER = -1,
    BUILD_S = 3600, /* nobody is at work on a file for so long */
};

/* The headers of the tree that this was built from, and of where it is to be installed. */
#ifndef RV__SOURCE_INCLUDE
#define RV__SOURCE_INCLUDE ""
#endif
#ifndef RV__INSTALLED_INCLUDE
#define RV__INSTALLED_INCLUDE "/usr/local/include"
#endif

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
        return rv__fail(err, RV_ENOTFOUND,
                        "RIVAL_INCLUDE is '%.120s', where there is no rival/rival.h", said);
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

static int cache_folder(char folder[MAX_PATH], rv_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && *cache == '/')
        snprintf(folder, MAX_PATH, "%s", cache);
    else if (home != NULL && *home == '/')
        snprintf(folder, MAX_PATH, "%s/.cache", home);
    else
        return rv__fail(err, RV_ENOTFOUND,
                        "there is no place to keep compiled files: set HOME or XDG_CACHE_HOME");
    (void)mkdir(folder, 0700); /* if it cannot be made, neither can the one in it */
    size_t len = strlen(folder);
    snprintf(folder + len, MAX_PATH - len, "/rival");
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return rv__fail(err, RV_ESYS, "%s: %m", folder);
    return RV_OK;
}

/* ---------------------------------------------------------------------------- the compiler --- */

struct command {
    char words[4096]; /* of $CC and $RIVAL_CFLAGS, cut at blanks */
    size_t used;
    const char *argv[MAX_ARGS];
    int argc;
};

static void add(struct command *c, const char *word)
{
    if (c->argc < MAX_ARGS - 1)
        c->argv[c->argc++] = word;
    c->argv[c->argc] = NULL;
}

static void add_words(struct command *c, const char *text)
{
    while (text != NULL && *text != '\0') {
        size_t blanks = strspn(text, " \t"), len = strcspn(text + blanks, " \t");
        text += blanks;
        if (len == 0 || c->used + len + 1 > sizeof c->words)
            break;
        char *word = c->words + c->used;
        memcpy(word, text, len);
        word[len] = '\0';
        c->used += len + 1;
        add(c, word);
        text += len;
    }
}

static void compiler(struct command *c)
{
    const char *cc = getenv("CC");
    c->argc = 0;
    c->used = 0;
    add_words(c, cc != NULL && *cc != '\0' ? cc : "cc");
    if (c->argc == 0)
        add(c, "cc");
}

static int spawn(const struct command *c, int to, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return rc;
    rc = posix_spawn_file_actions_adddup2(&actions, to, 1);
    rc = rc ? rc : posix_spawn_file_actions_adddup2(&actions, to, 2);
    rc = rc ? rc : posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    rc = rc ? rc
            : posix_spawnp(pid, c->argv[0], &actions, NULL, (char *const *)(uintptr_t)c->argv,
                           environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Run it, and keep what it prints. Returns its exit code, or an error: it cannot be run. */
static int run(const struct command *c, struct rv__buf *said, rv_error *err)
{
    int pair[2], status = 0;
    char bytes[4096];
    ssize_t n;
    pid_t pid;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return rv__fail(err, RV_ESYS, "no pipe to the compiler: %m");
    int rc = spawn(c, pair[1], &pid);
    close(pair[1]);
    if (rc != 0) {
        close(pair[0]);
        errno = rc; /* posix_spawn returns it */
        return rv__fail(err, RV_ENOTFOUND,
                        "the C compiler '%s' cannot be run (%m): install one, name it in CC, or "
                        "give a compiled .so",
                        c->argv[0]);
    }
    while ((n = read(pair[0], bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && said->len + (size_t)n <= SAID_BYTES)
            rv__buf_add(said, bytes, (size_t)n);
    close(pair[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* ------------------------------------------------------------------------------- the cache --- */

#define FRESH "new-" /* so begin the names of what is being made */

struct build {
    const char *file;
    char include[RV__CFILE_PATH];
    char folder[MAX_PATH];
    char text[MAX_PATH + 32];   /* preprocessed */
    char fresh[MAX_PATH + 32];  /* the object while it is being made */
    char object[MAX_PATH + 96]; /* where it belongs */
    struct rv__buf *said;
};

static int temporary(struct build *b, char path[MAX_PATH + 32], const char *ending, rv_error *err)
{
    snprintf(path, MAX_PATH + 32, "%s/" FRESH "XXXXXX%s", b->folder, ending);
    int fd = mkostemps(path, (int)strlen(ending), O_CLOEXEC);
    if (fd < 0) {
        path[0] = '\0';
        return rv__fail(err, RV_ESYS, "%s cannot be written: %m", b->folder);
    }
    close(fd);
    return RV_OK;
}

static void add_flags(struct command *c, const struct build *b)
{
    add(c, "-std=gnu17");
    add(c, "-O2");
    add(c, "-g");
    add(c, "-fPIC");
    add(c, "-Wall");
    add(c, "-I");
    add(c, b->include);
    add_words(c, getenv("RIVAL_CFLAGS"));
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

static int hash_file(struct rv__sha256 *hash, const char *path, rv_error *err)
{
    char bytes[16384];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return rv__fail(err, RV_ESYS, "%s: %m", path);
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        rv__sha256_add(hash, (struct rv__str){ bytes, (size_t)n });
    close(fd);
    return n < 0 ? rv__fail(err, RV_ESYS, "%s: it cannot be read", path) : RV_OK;
}

/* The compiler's own words about its version, and the flags, which end in NULs. */
static int hash_compiler(struct rv__sha256 *hash, const struct build *b, rv_error *err)
{
    struct command c;
    struct rv__buf version;
    compiler(&c);
    add(&c, "--version");
    rv__buf_init(&version, 1 << 20);
    int rc = run(&c, &version, err);
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
    struct command c;
    compiler(&c);
    add_flags(&c, b);
    add(&c, "-E");
    add(&c, b->file);
    add(&c, "-o");
    add(&c, b->text);
    int code = run(&c, b->said, err);
    return code > 0 ? refused(b, code, err) : code;
}

static int name_object(struct build *b, rv_error *err)
{
    struct rv__sha256 hash;
    char key[RV__SHA256_HEX];
    rv__sha256_init(&hash);
    int rc = hash_compiler(&hash, b, err);
    if (rc == RV_OK)
        rc = hash_file(&hash, b->text, err);
    rv__sha256_done(&hash, key);
    snprintf(b->object, sizeof b->object, "%s/%s.so", b->folder, key);
    return rc;
}

/* A new object counts once it is whole on disk: a name without its bytes would be for ever. */
static int compile(struct build *b, rv_error *err)
{
    struct command c;
    compiler(&c);
    add_flags(&c, b);
    add(&c, "-shared");
    add(&c, "-x");
    add(&c, "cpp-output");
    add(&c, b->text);
    add(&c, "-o");
    add(&c, b->fresh);
    int code = run(&c, b->said, err);
    if (code != 0)
        return code > 0 ? refused(b, code, err) : code;
    int fd = open(b->fresh, O_RDONLY | O_CLOEXEC);
    bool whole = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    if (!whole || rename(b->fresh, b->object) < 0)
        return rv__fail(err, RV_ESYS, "%s cannot be written: %m", b->object);
    return RV_OK;
}

/* Files of the cache, objects or what is being made, that were not touched for so long go. Returns how many
 * of that kind there were. */
static size_t remove_old(const struct build *b, bool fresh, int64_t keep_s)
{
    int64_t now_s = rv__wall_ms(rv__clock_real()) / 1000;
    DIR *folder = opendir(b->folder);
    const struct dirent *entry;
    size_t count = 0;
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
    struct build b = { .file = file, .said = said };
    if (access(file, R_OK) < 0)
        return rv__fail(err, RV_ENOTFOUND, "it cannot be read: %m");
    int rc = rv__cfile_include(b.include, err);
    if (rc == RV_OK)
        rc = cache_folder(b.folder, err);
    if (rc == RV_OK)
        sweep(&b);
    if (rc == RV_OK)
        rc = temporary(&b, b.text, ".i", err);
    if (rc == RV_OK)
        rc = preprocess(&b, err);
    if (rc == RV_OK)
        rc = name_object(&b, err);
    if (rc < 0)
        goto out;

    if (utimensat(AT_FDCWD, b.object, NULL, 0) < 0) { /* it is there: asked for now */
        rc = temporary(&b, b.fresh, ".so", err);
        if (rc == RV_OK)
            rc = compile(&b, err);
    }
    size_t len = strlen(b.object);
    if (rc == RV_OK && len >= RV__CFILE_PATH)
        rc = rv__fail(err, RV_ETOOBIG, "the path of the cache is too long");
    if (rc == RV_OK)
        memcpy(object, b.object, len + 1);
out:
    if (b.text[0] != '\0')
        (void)unlink(b.text);
    if (b.fresh[0] != '\0')
        (void)unlink(b.fresh); /* renamed, if all went well */
    return rc;
}
