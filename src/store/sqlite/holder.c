/* holder.c: makes sure that one process writes to a store, and lets others find out which.
 *
 * The lock is on a file beside the store ("NAME.lock"), because SQLite's own locks last only for a transaction and
 * do not name their owner. It is a lock of the open file (OFD), not of the process: two engines in one process
 * exclude each other too, and the system releases it when the process dies for any reason. The file is never
 * deleted: otherwise two processes could hold locks of the "same" file. Its content is valid only while it is
 * locked.
 *
 * Such a lock is shared with a forked child that does not exec. Our children always exec, which closes the file. */
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

enum { COMMAND_MAX = 48, HOST_MAX = 48, NOTE_MAX = 256 };

/* The lock's path: beside the real file, so that two names of one store have one lock. */
static int lock_path(const char *path, struct rv__buf *ret, rv_error *err)
{
    char *real = realpath(path, NULL); /* NULL: no such file yet */
    if (real != NULL) {
        rv__buf_text(ret, real);
        free(real);
    } else {
        const char *slash = strrchr(path, '/');
        const char *name = slash != NULL ? slash + 1 : path;
        rv__buf_add(ret, path, (size_t)(name - path));
        if (rv__buf_err(ret, err) < 0)
            return ret->rc;
        real = realpath(slash != NULL ? ret->text : ".", NULL);
        if (real == NULL)
            return rv__fail(err, RV_ESTORE, "cannot make the store '%.100s': its folder: %s", path,
                            strerrordesc_np(errno));
        rv__buf_reset(ret);
        rv__buf_fmt(ret, "%s/%s", real, name);
        free(real);
    }
    rv__buf_text(ret, ".lock");
    return rv__buf_err(ret, err);
}

/* The command line of this process, for people: cut, without the program's folder. */
static void command_line(char ret[COMMAND_MAX])
{
    char line[512];
    ssize_t len = -1;
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        len = read(file, line, sizeof line - 1);
        (void)close(file); /* only read */
    }
    while (len > 0 && line[len - 1] == '\0')
        len--;
    line[len > 0 ? len : 0] = '\0';
    const char *slash = strrchr(line, '/'); /* the words end in NUL: this is in the first one */
    const char *from = slash != NULL ? slash + 1 : line;
    snprintf(ret, COMMAND_MAX, "%.*s", COMMAND_MAX - 1,
             *from != '\0' ? from : program_invocation_short_name);
    size_t at = strlen(ret);
    from += strlen(from);
    /* The other words; control characters and the NULs become blanks. */
    for (; from < line + len && at < COMMAND_MAX - 1; from++)
        ret[at++] = (char)(*from >= ' ' && *from <= '~' ? *from : ' ');
    ret[at] = '\0';
}

static void write_note(int file)
{
    char command[COMMAND_MAX], host[HOST_MAX], since[RV__TIME_TEXT_SIZE], note[NOTE_MAX];
    command_line(command);
    if (gethostname(host, sizeof host) < 0)
        snprintf(host, sizeof host, "this host");
    host[sizeof host - 1] = '\0';
    rv__time_text(rv__wall_ms(rv__clock_real()), since);
    int len = snprintf(note, sizeof note, "process %ld (%s) on %s since %s\n", (long)getpid(),
                       command, host, since);
    /* If the note cannot be written, others do not see our name; nothing else. */
    if (ftruncate(file, 0) < 0 || pwrite(file, note, (size_t)len, 0) != len)
        (void)!ftruncate(file, 0);
}

static void read_note(int file, char ret[NOTE_MAX])
{
    ssize_t len = pread(file, ret, NOTE_MAX - 1, 0);
    ret[len > 0 ? len : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    for (char *c = ret; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    if (ret[0] == '\0') /* it is being written, or could not be */
        snprintf(ret, NOTE_MAX, "another process");
}

/* A store is made for its owner alone, whatever the umask: it holds what runs hold. SQLite gives its other
 * files ("-wal", "-shm") the same mode. One that is there keeps the mode it was given. */
static void make_private(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file >= 0) /* else it is there, or SQLite will say why it cannot be */
        (void)close(file);
}

int rv__holder_take(const char *path, int *ret, rv_error *err)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct rv__buf name;
    char note[NOTE_MAX];
    int file = -1, rc;

    rv__buf_init(&name, PATH_MAX + sizeof ".lock");
    rc = lock_path(path, &name, err);
    if (rc < 0)
        goto out;

    file = open(name.text, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) {
        rc = rv__fail(err, RV_ESTORE,
                      "cannot write to the store '%.80s': its lock file '%.100s': %s", path,
                      name.text, strerrordesc_np(errno));
        goto out;
    }
    if (fcntl(file, F_OFD_SETLK, &lock) < 0) {
        if (errno != EAGAIN && errno != EACCES) {
            rc = rv__fail(err, RV_ESTORE, "cannot lock '%.150s': %s", name.text,
                          strerrordesc_np(errno));
            goto out;
        }
        read_note(file, note);
        rc = rv__fail(err, RV_EBUSY,
                      "the store '%.60s' is held by %.130s: stop it first, or open the store for "
                      "reading only",
                      path, note);
        goto out;
    }
    write_note(file);
    make_private(path);
    *ret = file;
    file = -1;
    rc = RV_OK;
out:
    if (file >= 0)
        (void)close(file); /* nothing was written through it */
    rv__buf_done(&name);
    return rc;
}

void rv__holder_release(int file)
{
    if (file < 0)
        return;
    /* Both are for others to read, and the lock goes with the file in any case. */
    (void)!ftruncate(file, 0);
    (void)close(file);
}
