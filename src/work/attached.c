/* attached.c: the files that a prompt encloses (`attach` of a chat): read from disk, or base64 that a step returned.
 *
 * A file is read for each request of a conversation, since nothing is kept between two turns. What was sent is in the
 * journal as name, type, size and hash, and not as bytes; by the hash it is noticed that a file has changed meanwhile. */
#include "work/attached.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "work/builtin.h"
#include "work/work.h"

static bool is(struct rv__str json, enum rv__json_type type)
{
    return json.len > 0 && rv__json_type(json) == type;
}

/* A member that is a text and not empty. */
static bool get_text(struct rv_ctx *ctx, struct rv__str object, const char *key,
                     struct rv__str *ret)
{
    struct rv__str json;
    if (!rv__json_get(object, key, &json) || !is(json, RV__JSON_STRING))
        return false;
    struct rv__str text = rv__ctx_text(ctx, json);
    if (text.len > 0)
        *ret = text;
    return text.len > 0;
}

static int too_long(rv_error *err)
{
    return rv__fail(err, RV_EINVAL, "it has more than %d MiB", RV__ENCLOSED_BYTES >> 20);
}

/* The bytes of the buffer into the arena. */
static int keep_bytes(struct rv_ctx *ctx, const struct rv__buf *bytes, struct rv__str *ret,
                      rv_error *err)
{
    if (bytes->rc == RV_ETOOBIG)
        return too_long(err);
    if (bytes->rc < 0 || rv__str_copy(&ctx->arena, rv__buf_view(bytes), ret) < 0)
        return rv__nomem(err);
    return RV_OK;
}

static int read_file(struct rv_ctx *ctx, struct rv__str path, struct rv__enclosed *file,
                     rv_error *err)
{
    const char *full = rv__ctx_path(ctx, path, "the path of a file");
    struct rv__buf bytes;
    struct stat about;
    const char *slash = memrchr(path.at, '/', path.len);
    if (full == NULL)
        return rv__fail(err, RV_EINVAL, "its path is too long, or is none");
    if (rv__str_none(file->name))
        file->name = slash == NULL
                         ? path
                         : (struct rv__str){ slash + 1, path.len - (size_t)(slash + 1 - path.at) };
    int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is not waited for */
    if (fd < 0)
        return rv__fail(err, RV_EINVAL, "it cannot be read: %m");
    rv__buf_init(&bytes, RV__ENCLOSED_BYTES);
    int rc = RV_OK;
    if (fstat(fd, &about) < 0 || !S_ISREG(about.st_mode))
        rc = rv__fail(err, RV_EINVAL, "it is not a file");
    else if (about.st_size > RV__ENCLOSED_BYTES)
        rc = too_long(err);
    else if ((rc = rv__read_all(fd, RV__ENCLOSED_BYTES, &bytes)) == RV_ESYS)
        rc = rv__fail(err, RV_EINVAL, "it cannot be read: %m");
    else
        rc = rc == RV_ETOOBIG ? too_long(err) : keep_bytes(ctx, &bytes, &file->bytes, err);
    rv__buf_done(&bytes);
    close(fd);
    return rc;
}

/* Base64, also as a data URL, which says the type, too. */
static int read_data(struct rv_ctx *ctx, struct rv__str text, struct rv__enclosed *file,
                     rv_error *err)
{
    static const char url[] = "data:", coded[] = ";base64,";
    struct rv__buf bytes;
    if (text.len > sizeof url - 1 && memcmp(text.at, url, sizeof url - 1) == 0) {
        const char *end = memmem(text.at, text.len < 200 ? text.len : 200, coded, sizeof coded - 1);
        if (end == NULL)
            return rv__fail(err, RV_EINVAL, "its 'data' is a data URL without ;base64");
        struct rv__str type = { text.at + sizeof url - 1,
                                (size_t)(end - text.at) - sizeof url + 1 };
        if (rv__str_none(file->type) && type.len > 0)
            file->type = type;
        text = (struct rv__str){ end + sizeof coded - 1,
                                 text.len - (size_t)(end - text.at) - sizeof coded + 1 };
    }
    rv__buf_init(&bytes, RV__ENCLOSED_BYTES);
    int rc = RV_OK;
    if (!rv__buf_from_base64(&bytes, text) && bytes.rc == RV_OK)
        rc = rv__fail(err, RV_EINVAL, "its 'data' is not base64");
    else
        rc = keep_bytes(ctx, &bytes, &file->bytes, err);
    rv__buf_done(&bytes);
    return rc;
}

/* A path; {file, type?, name?}; {data, type?, name?}; or what `saveTo` returned: {path, bytes}. */
static int take_one(struct rv_ctx *ctx, struct rv__str json, struct rv__enclosed *file,
                    rv_error *err)
{
    struct rv__str from, text;
    *file = (struct rv__enclosed){ .kind = MEDIA_TEXT };
    if (is(json, RV__JSON_STRING) && json.len > 2)
        return read_file(ctx, rv__ctx_text(ctx, json), file, err);
    if (!is(json, RV__JSON_OBJECT))
        return rv__fail(err, RV_EINVAL,
                        "it must be the path of a file, or {file} or {data}, and came to %.*s",
                        (int)(json.len < 80 ? json.len : 80), json.at);
    (void)get_text(ctx, json, "name", &file->name);
    (void)get_text(ctx, json, "type", &file->type);
    if (rv__json_get(json, "file", &from) && is(from, RV__JSON_OBJECT)) /* of saveTo, again */
        json = from;
    if (get_text(ctx, json, "file", &text) || get_text(ctx, json, "path", &text))
        return read_file(ctx, text, file, err);
    if (get_text(ctx, json, "data", &text))
        return read_data(ctx, text, file, err);
    return rv__fail(err, RV_EINVAL, "it has neither a 'file' nor 'data' that is a text");
}

/* [{"name":…,"type":…,"bytes":…,"sha256":…}] */
static int describe(struct rv_ctx *ctx, struct rv__attached *attached, rv_error *err)
{
    struct rv__buf out;
    rv__buf_init(&out, RV__STATE_MAX_BYTES);
    for (size_t i = 0; i < attached->count; i++) {
        const struct rv__enclosed *file = &attached->files[i];
        char hash[RV__SHA256_HEX];
        rv__sha256_hex(file->bytes, hash);
        rv__buf_text(&out, i == 0 ? "[{\"name\":" : ",{\"name\":");
        rv__buf_json_str(&out, file->name);
        rv__buf_text(&out, ",\"type\":");
        rv__buf_json_str(&out, file->type);
        rv__buf_fmt(&out, ",\"bytes\":%zu,\"sha256\":\"%s\"}", file->bytes.len, hash);
    }
    rv__buf_char(&out, ']');
    int rc = rv__buf_err(&out, err);
    if (rc == RV_OK && rv__str_copy(&ctx->arena, rv__buf_view(&out), &attached->described) < 0)
        rc = rv__nomem(err);
    rv__buf_done(&out);
    return rc;
}

int rv__attached_take(struct rv_ctx *ctx, struct rv__str with, struct rv__attached *ret,
                      rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str list, one;
    rv_error why = { .message = "" };
    size_t bytes = 0;
    int rc = RV_OK;
    *ret = (struct rv__attached){ .count = 0 };
    if (!rv__json_get(with, "attach", &list) || is(list, RV__JSON_NULL))
        return RV_OK;
    if (!is(list, RV__JSON_ARRAY))
        return rv__fail(err, RV_EINVAL, "'attach' must be a list, and came to %.*s",
                        (int)(list.len < 80 ? list.len : 80), list.at);
    size_t count = rv__json_count(list);
    if (count > RV__ENCLOSED_COUNT)
        return rv__fail(err, RV_EINVAL, "'attach' has %zu files: at most %d can be sent", count,
                        RV__ENCLOSED_COUNT);
    if (count == 0)
        return RV_OK;
    ret->files = rv__arena_zalloc(&ctx->arena, count, sizeof *ret->files);
    if (ret->files == NULL)
        return rv__nomem(err);
    rv__json_iter_init(&it, list);
    for (; rc == RV_OK && rv__json_next(&it, NULL, &one); ret->count++) {
        struct rv__enclosed *file = &ret->files[ret->count];
        rc = take_one(ctx, one, file, &why);
        bytes += file->bytes.len;
        if (rc == RV_OK && bytes > RV__AGENT_REQUEST_BYTES)
            return rv__fail(err, RV_ETOOBIG,
                            "the files of 'attach' do not fit into a request of %d MiB",
                            RV__AGENT_REQUEST_BYTES >> 20);
        if (rc == RV_OK)
            rc = rv__media_judge(file->bytes, &file->type, &file->kind, &why);
        if (rc == RV_OK && rv__str_none(file->name))
            file->name = rv__str("attached");
        file->name = rv__str_begin(file->name, RV__ATTACHED_NAME);
        if (rc == RV_EINVAL)
            return rv__fail(err, rc, "file %zu of 'attach'%s%.*s%s: %s", ret->count + 1,
                            file->name.len > 0 ? " (" : "", RV__ARG(file->name),
                            file->name.len > 0 ? ")" : "", why.message);
    }
    return rc == RV_OK ? describe(ctx, ret, err) : rv__nomem(err);
}
