/* skills.c: a skill as a tool of a chat: a folder with SKILL.md, files to look up and scripts to run (SPEC §9).
 *
 *      {action: readme}                      the text of SKILL.md
 *      {action: reference, path}             the text of another file of the folder
 *      {action: script, path, args?, stdin?} its output, as of a command
 *
 * The path comes from the model and may be anything. It is opened part by part from the folder's descriptor, never
 * through a link, and the opened file is the one that is read: so no change meanwhile leads outside. A script is
 * checked in the same way and then run by its path. Somebody who could replace it in between could as well change what
 * it does, so that is no additional risk.
 *
 * Files are read on the evaluator's thread; scripts are run by the I/O loop. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

enum {
    FILE_BYTES = 256 << 10, /* limit of a file that is read: as much as a model can use */
    FRONT_BYTES = 64 << 10, /* how much of SKILL.md is read for its front matter */
    MOST_ARGS = 1000,       /* of a script */
    WITHIN_MS = 60000,      /* time limit of a script, if its tool sets none */
};

static const char schema_json[] =
    "{\"type\":\"object\",\"properties\":{\"action\":{\"enum\":[\"readme\",\"reference\","
    "\"script\"],\"description\":\"readme: how to use this skill, read it first; reference: read a "
    "file; script: run one\"},\"path\":{\"type\":\"string\",\"description\":\"of the file, from "
    "the skill's folder\"},\"args\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"stdin\":"
    "{\"type\":\"string\"}},\"required\":[\"action\"]}";

static void refuse(struct rv_ctx *ctx, const char *code)
{
    rv__ctx_error_code(ctx, code);
    ctx->behavior = BEHAVIOR_FINAL; /* a retry would fail in the same way */
}

static void refuse_input(struct rv_ctx *ctx, const char *why)
{
    rv_fail(ctx, "%s", why);
    refuse(ctx, "badInput");
}

/* -------------------------------------------------------------------------------- its files --- */

/* Open its folder. A relative path starts at the folder of the workflow's file. -1, with errno. */
static int open_folder(struct rv_ctx *ctx, struct rv__str with, const char **ret)
{
    struct rv__str json, name = { "", 0 };
    struct rv__buf path;
    char *real = NULL;
    int fd = -1;
    if (rv__json_get(with, "skill", &json))
        name = rv__ctx_text(ctx, json);
    rv__buf_init(&path, RV__PATH_ROOM);
    if (name.len > 0 && *name.at != '/' && ctx->directory != NULL) {
        rv__buf_text(&path, ctx->directory);
        rv__buf_char(&path, '/');
    }
    rv__buf_str(&path, name);
    rv__buf_char(&path, '\0');
    errno = ENOENT;
    if (path.rc == RV_OK && strlen(path.text) + 1 == path.len)
        real = realpath(path.text, NULL);
    if (real != NULL)
        fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && (*ret = rv__arena_dup(&ctx->arena, real, strlen(real))) == NULL) {
        close(fd);
        errno = ENOMEM;
        fd = -1;
    }
    free(real); /* of realpath() */
    rv__buf_done(&path);
    return fd;
}

/* Whether it is a name of one part of the path: not "", "." or "..". */
static bool is_part(struct rv__str part)
{
    return part.len > 0 && part.len <= 255 && !rv__str_is(part, ".") && !rv__str_is(part, "..");
}

/* Open a plain file below `folder`. Each part of the path must be a plain name and no link. Returns NULL, or why it
 * cannot be opened. */
static const char *open_file(int folder, struct rv__str path, int *ret, struct stat *about)
{
    const char *bad = "the path must lead from the skill's folder to a plain file in it: without "
                      "'..', links or a '/' at its beginning";
    int at = folder, next;
    *ret = -1;
    if (path.len == 0 || path.len >= RV__PATH_ROOM || memchr(path.at, '\0', path.len) != NULL)
        return bad;
    while (true) {
        const char *slash = memchr(path.at, '/', path.len);
        struct rv__str part = { path.at, slash != NULL ? (size_t)(slash - path.at) : path.len };
        char name[256];
        if (!is_part(part)) {
            next = -1;
            errno = ELOOP;
        } else {
            memcpy(name, part.at, part.len);
            name[part.len] = '\0';
            /* O_NONBLOCK: do not wait for the other end of a pipe */
            next = openat(at, name,
                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
                              (slash != NULL ? O_DIRECTORY : 0));
        }
        int error = errno;
        if (at != folder)
            close(at);
        if (next < 0)
            return error == ENOENT   ? "the skill has no such file"
                   : error == EACCES ? "the file may not be read"
                                     : bad;
        if (slash == NULL)
            break;
        at = next;
        path = (struct rv__str){ slash + 1, path.len - part.len - 1 };
    }
    if (fstat(next, about) < 0 || !S_ISREG(about->st_mode)) {
        close(next);
        return bad;
    }
    *ret = next;
    return NULL;
}

int rv__read_all(int fd, size_t most, struct rv__buf *out)
{
    char piece[8192];
    ssize_t n;
    while ((n = read(fd, piece, sizeof piece)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return RV_ESYS;
        if (out->len + (size_t)n > most)
            return RV_ETOOBIG;
        rv__buf_add(out, piece, (size_t)n);
    }
    return out->rc;
}

/* ------------------------------------------------------------------------------ what it says --- */

/* The text between the first line, which is ---, and the next such line. */
static struct rv__str front_matter(struct rv__str text)
{
    const char *begin, *end;
    if (text.len < 4 || memcmp(text.at, "---", 3) != 0)
        return (struct rv__str){ "", 0 };
    begin = memchr(text.at, '\n', text.len);
    end = begin != NULL ? memmem(begin, text.len - (size_t)(begin - text.at), "\n---", 4) : NULL;
    return end != NULL ? (struct rv__str){ begin + 1, (size_t)(end - begin) }
                       : (struct rv__str){ "", 0 };
}

/* The description in the front matter, as JSON in the arena. "none": there is none. */
static struct rv__str description_of(struct rv_ctx *ctx, struct rv__str front)
{
    struct rv__str value, ret = { NULL, 0 };
    struct rv__buf json;
    rv_error err;
    rv__buf_init(&json, (size_t)FRONT_BYTES * 2);
    if (front.len > 0 && rv__define_text_json(front, "SKILL.md", &json, &err) == RV_OK &&
        rv__json_type(rv__buf_view(&json)) == RV__JSON_OBJECT &&
        rv__json_get(rv__buf_view(&json), "description", &value) &&
        rv__json_type(value) == RV__JSON_STRING)
        (void)rv__str_copy(&ctx->arena, value, &ret); /* without memory: none */
    rv__buf_done(&json);
    return ret;
}

void rv__skill_offer(struct rv_ctx *ctx, struct rv__str with, struct rv__str *description,
                     struct rv__str *schema)
{
    const char *path;
    struct stat about;
    struct rv__buf text;
    int fd, folder = open_folder(ctx, with, &path);
    *schema = rv__str(schema_json);
    *description = rv__str("\"A skill that cannot be read now\"");
    if (folder < 0)
        return;
    rv__buf_init(&text, FRONT_BYTES);
    if (open_file(folder, rv__str("SKILL.md"), &fd, &about) == NULL) {
        (void)rv__read_all(fd, FRONT_BYTES, &text); /* the beginning of a longer one is enough */
        *description = description_of(ctx, front_matter(rv__buf_view(&text)));
        close(fd);
    }
    rv__buf_done(&text);
    close(folder);
}

/* ---------------------------------------------------------------------------------- calls --- */

static void tell_file(struct rv_ctx *ctx, int folder, struct rv__str path)
{
    struct rv__buf text, json;
    struct stat about;
    int fd;
    const char *why = open_file(folder, path, &fd, &about);
    if (why != NULL) {
        refuse_input(ctx, why);
        return;
    }
    rv__buf_init(&text, FILE_BYTES + 1);
    rv__buf_init(&json, RV__JSON_MAX_BYTES);
    int rc = rv__read_all(fd, FILE_BYTES, &text);
    close(fd);
    if (rc == RV_ETOOBIG) {
        refuse_input(ctx, "the file has more than 256 KB");
    } else if (rc < 0) {
        rv_fail(ctx, "the file cannot be read: %s", rv_strerror(rc));
    } else if (!rv__str_utf8(rv__buf_view(&text))) {
        refuse_input(ctx, "the file is no text in UTF-8");
    } else {
        rv__buf_json_str(&json, rv__buf_view(&text));
        if (json.rc != RV_OK || rv__ctx_result(ctx, rv__buf_view(&json)) < 0)
            rv_fail(ctx, "out of memory");
        else
            ctx->outcome = MSG_DONE;
    }
    rv__buf_done(&text);
    rv__buf_done(&json);
}

/* The interpreter for a file that is not executable. NULL: none is known. */
static const char *interpreter_of(struct rv__str path)
{
    static const struct {
        const char *ending, *program;
    } rows[] = { { ".py", "python3" }, { ".sh", "sh" },   { ".bash", "bash" }, { ".js", "node" },
                 { ".mjs", "node" },   { ".pl", "perl" }, { ".rb", "ruby" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = strlen(rows[i].ending);
        if (path.len > len && memcmp(path.at + path.len - len, rows[i].ending, len) == 0)
            return rows[i].program;
    }
    return NULL;
}

/* The words of the command, in the arena. NULL: the attempt has failed. */
static const char *const *words_of(struct rv_ctx *ctx, const char *program, const char *file,
                                   struct rv__str arguments)
{
    struct rv__json_iter it;
    struct rv__str args, word;
    bool has = rv__json_get(arguments, "args", &args) && rv__json_type(args) != RV__JSON_NULL;
    size_t count = has && rv__json_type(args) == RV__JSON_ARRAY ? rv__json_count(args) : 0, at = 0;
    if ((has && rv__json_type(args) != RV__JSON_ARRAY) || count > MOST_ARGS) {
        refuse_input(ctx, "invalid args: must be a list of texts");
        return NULL;
    }
    const char **argv = rv__arena_zalloc(&ctx->arena, count + 3, sizeof *argv);
    if (argv == NULL) {
        rv_fail(ctx, "out of memory");
        return NULL;
    }
    if (program != NULL)
        argv[at++] = program;
    argv[at++] = file;
    if (count > 0)
        rv__json_iter_init(&it, args);
    while (count > 0 && rv__json_next(&it, NULL, &word)) {
        argv[at] = rv__ctx_c_text(ctx, rv__ctx_text(ctx, word), "an argument of a script");
        if (argv[at++] == NULL) {
            refuse(ctx, "badInput");
            return NULL;
        }
    }
    return argv;
}

/* True: the script was started, and its end will finish the attempt. */
static bool run_script(struct rv_ctx *ctx, int folder, const char *where, struct rv__str path,
                       struct rv__str arguments)
{
    struct rv__str json, input = { NULL, 0 };
    struct rv__buf full;
    struct stat about;
    int fd;
    const char *why = open_file(folder, path, &fd, &about);
    if (why != NULL) {
        refuse_input(ctx, why);
        return false;
    }
    close(fd);
    const char *program = about.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH) ? NULL
                                                                        : interpreter_of(path);
    if (program == NULL && !(about.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH))) {
        refuse_input(ctx, "the file is no script: it may not be executed, and its name does not "
                          "say who runs it");
        return false;
    }
    rv__buf_init(&full, (size_t)RV__PATH_ROOM * 2);
    rv__buf_fmt(&full, "%s/%.*s", where, RV__ARG(path));
    const char *file = full.rc == RV_OK
                           ? rv__ctx_c_text(ctx, rv__buf_view(&full), "the path of a script")
                           : NULL;
    rv__buf_done(&full);
    const char *const *argv = file != NULL ? words_of(ctx, program, file, arguments) : NULL;
    if (argv == NULL)
        return false;
    if (rv__json_get(arguments, "stdin", &json) && rv__json_type(json) != RV__JSON_NULL &&
        rv__str_copy(&ctx->arena, rv__ctx_text(ctx, json), &input) < 0) {
        rv_fail(ctx, "out of memory");
        return false;
    }
    rv__command_run(ctx, argv, where, input, ctx->timeout_ms > 0 ? 0 : WITHIN_MS);
    return true;
}

bool rv__skill_begin(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str json, arguments = RV__STR("{}"), action = { "", 0 }, path = { "", 0 };
    const char *where = NULL;
    bool begun = false;
    if (!rv__json_get(with, "skill", &json))
        return false;
    (void)rv__json_get(with, "arguments", &arguments);
    if (rv__json_type(arguments) == RV__JSON_OBJECT && rv__json_get(arguments, "action", &json))
        action = rv__ctx_text(ctx, json);
    if (rv__json_type(arguments) == RV__JSON_OBJECT && rv__json_get(arguments, "path", &json))
        path = rv__ctx_text(ctx, json);
    int folder = open_folder(ctx, with, &where);
    if (folder < 0) {
        rv_fail(ctx, "the skill's folder cannot be opened: %m");
        refuse(ctx, "noSkill");
    } else if (rv__str_is(action, "readme")) {
        tell_file(ctx, folder, rv__str("SKILL.md"));
    } else if (rv__str_is(action, "reference")) {
        tell_file(ctx, folder, path);
    } else if (rv__str_is(action, "script")) {
        begun = run_script(ctx, folder, where, path, arguments);
    } else {
        refuse_input(ctx, "invalid action: must be readme, reference or script");
    }
    if (folder >= 0)
        close(folder);
    if (!begun)
        rv__work_finish(ctx);
    return true;
}
