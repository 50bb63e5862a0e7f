/* import.c: imports a run from a file into the store, completely or not at all; it then continues here.
 *
 * The import runs at the writing desk, and other runs cannot be written meanwhile. So it must not wait for anybody:
 * what comes from a function or a pipe is copied into a file first. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/outfile.h"
#include "engine/call.h"
#include "engine/engine.h"
#include "keep/keep.h"
#include "read/read.h"

enum { READ_PIECE = 64 << 10 };

/* At the writing desk. */
static int take(struct rv__call *call)
{
    struct rv__import *im = call->arg;
    rv_engine *e = call->engine;
    struct rv__str run = rv__import_run(im);
    if (e->only_run[0] != '\0' && !rv__str_is(run, e->only_run))
        return rv__fail(&call->err, RV_ESTATE, "this engine is for run '%.80s' only", e->only_run);
    return rv__store_import(e->store, run, rv__import_next, im, &call->err);
}

/* On the loop's thread: the run is in the store; load it when its row says so. */
static int taken(struct rv__call *call)
{
    struct rv__import *im = call->arg;
    rv_engine *e = call->engine;
    int64_t wake_ms = rv__import_wake_ms(im);
    if (wake_ms != 0)
        rv__load_asleep(e, wake_ms);
    snprintf(call->run_id, sizeof call->run_id, "%.*s", RV__ARG(rv__import_run(im)));
    rv__feed_mark(e->reading, call->run_id);
    rv__feed_flush(e->reading);
    return RV_OK;
}

/* Copy it into a file without a name. */
static int spool(const rv_import_opts *opts, struct rv__outfile *out, rv_error *err)
{
    char piece[READ_PIECE];
    long n;
    int rc = RV_OK;
    while (rc == RV_OK && (n = opts->read(opts->arg, piece, sizeof piece)) != 0)
        rc = n < 0 || (size_t)n > sizeof piece
                 ? rv__fail(err, RV_ECANCELED, "the import was cancelled by the caller")
                 : rv__outfile_write(out, (struct rv__str){ piece, (size_t)n }, err);
    if (rc == RV_OK && lseek(out->file, 0, SEEK_SET) < 0)
        rc = rv__fail(err, RV_ESYS, "cannot read what was just written: %s",
                      strerrordesc_np(errno));
    return rc;
}

static int import_from(rv_engine *e, int file, const char *name, rv_run_info *ret, rv_error *err)
{
    struct rv__import *im = NULL;
    int rc = rv__import_new(file, name, e->max_crashes, rv__wall_ms(e->clock), &im, err);
    if (rc == RV_OK)
        rc = rv__call_write(e, take, taken, im, err);
    if (rc == RV_OK && ret != NULL) {
        snprintf(ret->run_id, sizeof ret->run_id, "%.*s", RV__ARG(rv__import_run(im)));
        ret->status = rv__public_status(rv__import_status(im));
    }
    rv__import_free(im);
    return rc;
}

/* A named pipe may block at any time. */
static long read_pipe(void *arg, char *into, size_t room)
{
    ssize_t n;
    do
        n = read(*(int *)arg, into, room);
    while (n < 0 && errno == EINTR);
    return n;
}

static int import_spooled(rv_engine *e, const rv_import_opts *opts, const char *name,
                          rv_run_info *ret, rv_error *err)
{
    struct rv__outfile spooled;
    int rc = rv__outfile_open(&spooled, NULL, false, err);
    if (rc < 0)
        return rc;
    rc = spool(opts, &spooled, err);
    if (rc == RV_OK)
        rc = import_from(e, spooled.file, name, ret, err);
    rv__outfile_done(&spooled);
    return rc;
}

static int import_path(rv_engine *e, const char *path, rv_run_info *ret, rv_error *err)
{
    struct stat what;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &what) < 0 || S_ISDIR(what.st_mode)) {
        int why = file < 0 ? errno : EISDIR;
        if (file >= 0)
            (void)close(file); /* only read, here and below */
        return rv__fail(err, RV_ESYS, "cannot read '%.200s': %s", path, strerrordesc_np(why));
    }
    rv_import_opts pipe = { .size = sizeof pipe, .read = read_pipe, .arg = &file };
    int rc = S_ISREG(what.st_mode) ? import_from(e, file, path, ret, err)
                                   : import_spooled(e, &pipe, path, ret, err);
    (void)close(file);
    return rc;
}

int rv_import(rv_engine *e, const rv_import_opts *opts, rv_run_info *ret, rv_error *err)
{
    rv_import_opts known = { .size = 0 };
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    if (e == NULL || known.size == 0 || (known.path == NULL) == (known.read == NULL))
        return rv__fail(err, RV_EINVAL, "rv_import: %s",
                        e == NULL         ? "no engine given"
                        : known.size == 0 ? "make the options with RV_IMPORT_OPTS"
                                          : "no source given: set a path or a function");
    if (e->read_only)
        return rv__fail(err, RV_ESTATE, "the store is open for reading only");
    return known.path != NULL ? import_path(e, known.path, ret, err)
                              : import_spooled(e, &known, "the input", ret, err);
}

void rv_import_opts_init(rv_import_opts *opts)
{
    *opts = (rv_import_opts){ .size = sizeof *opts };
}
