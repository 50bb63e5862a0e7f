/* manifest.c: `rival manifest fmt`: formats a manifest, keeping its comments. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"

enum { FILE_BYTES = 4 << 20 }; /* as in `check` */

struct formatting {
    bool write, check;
};

static int read_text(const char *path, struct rv__buf *out)
{
    char piece[16384];
    size_t got;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    while ((got = fread(piece, 1, sizeof piece, file)) > 0)
        rv__buf_add(out, piece, got);
    bool bad = ferror(file) != 0;
    (void)fclose(file); /* only read */
    return bad || out->rc != RV_OK ? -1 : 0;
}

/* Write a new file beside it, and rename it over the old one: readers see one or the other. */
static int write_text(const char *path, const char *text)
{
    struct rv__buf beside;
    struct stat was;
    char real[4096];
    rv__buf_init(&beside, sizeof real + 32);
    if (realpath(path, real) == NULL || stat(real, &was) < 0) { /* of a link: its target */
        rv__buf_done(&beside);
        return -1;
    }
    rv__buf_fmt(&beside, "%s.%ld.new", real, (long)getpid());
    int fd = beside.rc == RV_OK
                 ? open(beside.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, was.st_mode & 0777)
                 : -1;
    size_t len = strlen(text), at = 0;
    bool good = fd >= 0 && fchmod(fd, was.st_mode & 07777) == 0;
    while (good && at < len) {
        ssize_t n = write(fd, text + at, len - at);
        good = n > 0;
        at += n > 0 ? (size_t)n : 0;
    }
    good = good && fsync(fd) == 0;
    if (fd >= 0)
        good = close(fd) == 0 && good;
    good = good && rename(beside.text, real) == 0;
    int why = errno;
    if (!good && fd >= 0)
        (void)unlink(beside.text); /* it may not exist */
    rv__buf_done(&beside);
    errno = why;
    return good ? 0 : -1;
}

static int format(const char *path, const struct formatting *how)
{
    struct rv__buf text;
    char *formatted = NULL;
    char why[700];
    rv_error err;
    int code = CLI_OK;
    rv__buf_init(&text, FILE_BYTES);
    if (read_text(path, &text) < 0) {
        snprintf(why, sizeof why, "%.400s cannot be read: %s", path,
                 text.rc != RV_OK ? "it is too long" : strerrordesc_np(errno));
        code = rv__cli_fail(CLI_FAILED, why, NULL);
    } else if (rv_manifest_format(rv__buf_view(&text).at, &formatted, &err) < 0) {
        snprintf(why, sizeof why, "%.300s: %.300s", path, err.message);
        code = rv__cli_fail(CLI_FAILED, why, NULL);
    } else if (how->check || how->write) {
        bool same = rv__str_eq(rv__str(formatted), rv__buf_view(&text));
        if (!same && how->check) {
            fprintf(stderr, "%s is not formatted: rival manifest fmt %s --write\n", path, path);
            code = CLI_FAILED;
        } else if (!same && write_text(path, formatted) < 0) {
            snprintf(why, sizeof why, "%.400s cannot be written: %s", path, strerrordesc_np(errno));
            code = rv__cli_fail(CLI_FAILED, why, NULL);
        }
    } else {
        fputs(formatted, stdout);
    }
    rv_free(formatted);
    rv__buf_done(&text);
    return code;
}

static const char *const words[] = { "fmt", NULL };

static int run_manifest(int argc, char **argv)
{
    struct formatting how = { .write = false };
    int count = rv__options(&rv__cmd_manifest, argc, argv, &how);
    if (count < 0)
        return -count;
    if (how.write && how.check)
        return rv__cli_usage("manifest", "--write and --check exclude each other");
    return format(argv[1], &how);
}

static const struct rv__option options[] = {
    { "--write", .meaning = "write it back into the file", RV__INTO(struct formatting, write) },
    { "--check", .meaning = "only say whether it is formatted: exit code 1 if it is not",
      RV__INTO(struct formatting, check) },
    { NULL },
};

const struct rv__command rv__cmd_manifest = {
    .name = "manifest",
    .section = SECTION_FILES,
    .summary = "format a manifest",
    .arguments = { { "fmt", "which action? there is: fmt", .choices = words },
                   { "FILE", "which file?", .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "`rival manifest fmt FILE` prints a YAML manifest in the standard layout: keys "
                    "in snake_case, two columns per level, no trailing spaces. Comments, quotes "
                    "and the order of keys are kept. If the meaning would change, the file is "
                    "refused and not changed." },
    .examples = { { "rival manifest fmt weather.yaml" },
                  { "rival manifest fmt weather.yaml --write" },
                  { "rival manifest fmt weather.yaml --check", "for hooks and CI" } },
    .exits = { { CLI_FAILED,
                 "it cannot be read or formatted; with --check: it is not formatted" } },
    .run = run_manifest,
};
