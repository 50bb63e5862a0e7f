/* outfile.c: see outfile.h. */
#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

#define PARTIAL         ".partial-XXXXXX"
/* Not /tmp, which is memory on many machines. */
#define NAMELESS_FOLDER "/var/tmp"

static char *join(const char *a, const char *b)
{
    size_t size = strlen(a) + strlen(b) + 1;
    char *text = rv__alloc(size);
    if (text != NULL)
        snprintf(text, size, "%s%s", a, b);
    return text;
}

static int open_nameless(struct rv__outfile *out, rv_error *err)
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || *folder == '\0')
        folder = NAMELESS_FOLDER;
    char *temp = join(folder, "/rival" PARTIAL);
    if (temp == NULL)
        return rv__nomem(err);
    int file = mkostemp(temp, O_CLOEXEC);
    int rc = file >= 0
                 ? RV_OK
                 : rv__fail(err, RV_ESYS,
                            "cannot make a file in '%.150s': %s; TMPDIR may name another folder",
                            folder, strerrordesc_np(errno));
    if (file >= 0)
        (void)unlink(temp); /* on failure an empty file remains */
    rv__free(temp);
    out->file = file;
    return rc;
}

int rv__outfile_open(struct rv__outfile *out, const char *path, bool replace, rv_error *err)
{
    *out = (struct rv__outfile){ .file = -1, .replace = replace };
    if (path == NULL)
        return open_nameless(out, err);
    if (!replace && access(path, F_OK) == 0)
        return rv__fail(err, RV_EEXIST, "'%.200s' exists already and was not changed", path);
    out->path = join(path, "");
    out->temp = join(path, PARTIAL);
    int rc = out->path == NULL || out->temp == NULL ? rv__nomem(err) : RV_OK;
    if (rc == RV_OK) {
        out->file = mkostemp(out->temp, O_CLOEXEC);
        if (out->file < 0)
            rc = rv__fail(err, RV_ESYS, "cannot make '%.200s': %s", path, strerrordesc_np(errno));
    }
    if (rc < 0)
        rv__outfile_done(out);
    return rc;
}

static int failed(const struct rv__outfile *out, rv_error *err)
{
    return rv__fail(err, RV_ESYS, "cannot write '%.200s': %s; no file was kept",
                    out->path != NULL ? out->path : "a file for the time being",
                    strerrordesc_np(errno));
}

int rv__outfile_write(struct rv__outfile *out, struct rv__str bytes, rv_error *err)
{
    while (bytes.len > 0) {
        ssize_t n = write(out->file, bytes.at, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(out, err);
        bytes.at += n;
        bytes.len -= (size_t)n;
    }
    return RV_OK;
}

/* The new name is durable only after the folder is synced, too. Not all file systems can, so a failure is
 * ignored. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    char *folder = slash != NULL ? join(path, "") : join(".", "");
    if (folder == NULL)
        return;
    if (slash != NULL)
        folder[len] = '\0';
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rv__free(folder);
    if (file < 0)
        return;
    (void)fsync(file);
    (void)close(file);
}

int rv__outfile_keep(struct rv__outfile *out, rv_error *err)
{
    if (fsync(out->file) < 0)
        return failed(out, err);
    int rc = renameat2(AT_FDCWD, out->temp, AT_FDCWD, out->path,
                       out->replace ? 0 : RENAME_NOREPLACE);
    if (rc < 0 && errno == EINVAL &&
        !out->replace) { /* the file system does not support RENAME_NOREPLACE */
        rc = link(out->temp, out->path);
        if (rc == 0)
            (void)unlink(out->temp); /* it has its final name now */
    }
    if (rc < 0 && errno == EEXIST)
        return rv__fail(err, RV_EEXIST, "'%.200s' exists already and was not changed", out->path);
    if (rc < 0)
        return failed(out, err);
    rv__free(out->temp);
    out->temp = NULL;
    sync_folder(out->path);
    return RV_OK;
}

void rv__outfile_done(struct rv__outfile *out)
{
    if (out->file >= 0)
        (void)close(out->file); /* what was to be kept is synced */
    if (out->temp != NULL && out->file >= 0)
        (void)unlink(out->temp);
    rv__free(out->path);
    rv__free(out->temp);
    *out = (struct rv__outfile){ .file = -1 };
}
