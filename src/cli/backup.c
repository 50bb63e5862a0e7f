/* backup.c: `rival backup`: the whole store as one file. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/options.h"
#include "cli/runs.h"

struct backing {
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
        what.st_size = 0; /* it is there all the same */
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

int rv__cmd_backup(int argc, char **argv)
{
    const char *store = RV__CLI_STORE;
    bool force = false, json = false;
    rv_error err;
    const struct rv__option options[] = { { "--store", .text = &store },
                                          { "--force", .flag = &force },
                                          { "--json", .flag = &json },
                                          { NULL } };
    int count = rv__options_args("backup", argc, argv, options, 1, 1, "to which file?");
    if (count < 0)
        return -count;
    struct backing b = { rv__cli_interrupt(), !json && isatty(STDERR_FILENO), -1 };
    rv_engine *engine = rv__store_to_read(store);
    if (engine == NULL)
        return CLI_FAILED;
    int rc = rv_backup(
        engine, RV_BACKUP_OPTS(.path = argv[0], .replace = force, .progress = show, .arg = &b),
        &err);
    if (b.live && b.shown >= 0)
        fprintf(stderr, "\r      \r");
    int code = CLI_OK;
    if (rc == RV_ECANCELED)
        code = rv__cli_fail(CLI_INTERRUPTED, "stopped: nothing is kept of the backup", NULL);
    else if (rc < 0)
        code = rv__cli_fail(CLI_FAILED, err.message,
                            rc == RV_EEXIST ? "--force replaces it" : NULL);
    else
        code = say_done(argv[0], json);
    rv_engine_free(engine);
    return code;
}
