/* backup.c: `rival backup`: copies the whole store to one file. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/runs.h"

struct backing {
    const char *store;
    bool force, json;
    rv_cancel *interrupt;
    bool live; /* stderr is a terminal */
    int shown; /* per cent; -1: none yet */
};

static int show(void *arg, uint64_t done, uint64_t total)
{
    struct backing *b = arg;
    int percent = total > 0 ? (int)(done * 100 / total) : 100;
    if (b->live && percent != b->shown)
        fprintf(stderr, "\r%3d %%", percent);
    b->shown = percent;
    return rv_cancel_fired(b->interrupt) ? 1 : 0;
}

static int say_done(const char *file, bool json)
{
    struct stat what = { .st_size = 0 };
    struct rv__buf out;
    if (stat(file, &what) < 0)
        what.st_size = 0; /* the backup exists all the same */
    if (!json) {
        fprintf(stderr, "backed up to %s: %llu bytes\n", file, (unsigned long long)what.st_size);
        return CLI_OK;
    }
    rv__buf_init(&out, 65536);
    rv__buf_text(&out, "{\"file\":");
    rv__buf_json_str(&out, rv__str(file));
    rv__put_int(&out, "bytes", (int64_t)what.st_size);
    rv__buf_char(&out, '}');
    int code = rv__print_json(&out);
    rv__buf_done(&out);
    return code;
}

static int run_backup(int argc, char **argv)
{
    struct backing b = { .shown = -1 };
    rv_error err;
    int count = rv__options(&rv__cmd_backup, argc, argv, &b);
    if (count < 0)
        return -count;
    b.live = !b.json && isatty(STDERR_FILENO);
    b.interrupt = rv__cli_interrupt();
    rv_engine *engine = b.interrupt != NULL ? rv__store_to_read(b.store) : NULL;
    if (engine == NULL)
        return CLI_FAILED;
    int rc = rv_backup(
        engine, RV_BACKUP_OPTS(.path = argv[0], .replace = b.force, .progress = show, .arg = &b),
        &err);
    rv_engine_free(engine);
    if (b.live && b.shown >= 0)
        fprintf(stderr, "\r      \r");
    if (rc == RV_ECANCELED)
        return rv__cli_fail(CLI_INTERRUPTED, "stopped: no backup was written", NULL);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message,
                            rc == RV_EEXIST ? "--force replaces it" : NULL);
    return say_done(argv[0], b.json);
}

static const struct rv__option options[] = {
    { "--force", NULL, "overwrite FILE", RV__INTO(struct backing, force) },
    RV__OPTION_STORE(struct backing, store),
    RV__OPTION_JSON(struct backing, json, "print {\"file\", \"bytes\"}"),
    { NULL },
};

const struct rv__command rv__cmd_backup = {
    .name = "backup",
    .section = SECTION_STORE,
    .summary = "copy the whole store into one file",
    .arguments = { { "FILE", "to which file?", .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Works while another process drives the store, without holding it up. The copy "
                    "is consistent, is checked, and gets its name only when it is complete. It is "
                    "a store of its own: `rival list --store FILE`." },
    .examples = { { "rival backup nightly.db --force" },
                  { "rival backup /mnt/backup/rival-$(date +%F).db --store /var/lib/rival.db" } },
    .exits = { { CLI_INTERRUPTED, "stopped by Ctrl-C; no file is left" } },
    .run = run_backup,
};
