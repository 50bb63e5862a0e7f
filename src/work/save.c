/* save.c: see save.h.
 *
 * The file is written under a temporary name in the same folder and renamed at the end, so a failed attempt leaves
 * nothing, and an existing file is complete. Its content is never in memory as a whole: a command writes to the file
 * itself, a body is written piece by piece. The sync at the end is not done on the I/O loop. */
#include "work/save.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

bool rv__save_begin(struct rv_ctx *ctx, struct rv__str with, const char *what)
{
    struct rv__str json, path;
    struct stat st;
    rv_error err;
    if (!rv__json_get(with, "saveTo", &json))
        return true;
    if (rv__json_type(json) != RV__JSON_STRING ||
        rv__json_string(json, &ctx->arena, &path) != RV_OK || path.len == 0 ||
        path.at[path.len - 1] == '/')
        return rv_fail(ctx, "the `saveTo` of %s must be the path of a file; it came to %.*s", what,
                       (int)(json.len < 80 ? json.len : 80), json.at) == 0;
    const char *full = rv__ctx_path(ctx, path, "the `saveTo` of a step");
    struct rv__save *save = full != NULL ? rv__arena_zalloc(&ctx->arena, 1, sizeof *save) : NULL;
    if (full == NULL)
        return false;
    if (save == NULL || rv__str_copy(&ctx->arena, path, &save->path) < 0)
        return rv_fail(ctx, "out of memory") == 0;
    if (stat(full, &st) == 0 && !S_ISREG(st.st_mode))
        return rv_fail(ctx, "the `saveTo` of %s, '%s', exists and is not a file", what, full) == 0;
    if (rv__outfile_open(&save->file, full, true, &err) < 0)
        return rv_fail(ctx, "the `saveTo` of %s: %s", what, err.message) == 0;
    save->ctx = ctx;
    ctx->save = save;
    return true;
}

void rv__save_done(struct rv__save *save)
{
    if (save != NULL)
        rv__outfile_done(&save->file);
}

/* On a thread that may wait for the disk. */
static void keep(struct rv__later *later)
{
    struct rv__save *save = RV__CONTAINER(later, struct rv__save, later);
    struct stat st;
    if (fstat(save->file.file, &st) < 0)
        rv__fail(&save->err, RV_ESYS, "the saved file cannot be read");
    else if ((save->bytes = (uint64_t)st.st_size) > RV__SAVE_MAX_BYTES)
        rv__fail(&save->err, RV_ETOOBIG, "the output to save has more than %llu bytes",
                 (unsigned long long)RV__SAVE_MAX_BYTES);
    else if (rv_cancel_fired(
                 save->ctx->work
                     .token)) /* for example its time-out: nobody needs the file any more */
        rv__fail(&save->err, RV_ECANCELED, "it was stopped before the file was saved");
    else
        (void)rv__outfile_keep(&save->file, &save->err);
}

static void kept(struct rv__later *later)
{
    struct rv__save *save = RV__CONTAINER(later, struct rv__save, later);
    struct rv_ctx *ctx = save->ctx;
    struct rv__buf json;
    rv__outfile_done(&save->file);
    if (save->err.code < 0) {
        rv_fail(ctx, "%s", save->err.message);
        rv__work_finish(ctx);
        return;
    }
    rv__buf_init(&json, (size_t)8 * RV__PATH_ROOM);
    rv__buf_text(&json, "{\"path\":");
    rv__buf_json_str(&json, save->path);
    rv__buf_fmt(&json, ",\"bytes\":%llu}", (unsigned long long)save->bytes);
    if (rv__buf_err(&json, NULL) < 0 || rv__ctx_result(ctx, rv__buf_view(&json)) < 0)
        rv_fail(ctx, "out of memory");
    rv__buf_done(&json);
    rv__work_finish(ctx);
}

void rv__save_end(struct rv_ctx *ctx)
{
    ctx->save->later = (struct rv__later){ .run = keep, .done = kept };
    rv__io_later(ctx->services->io, &ctx->save->later);
}
