/* import.c: `rival import`: imports a run that `rival export` wrote. */
#include <string.h>
#include <unistd.h>

#include "base/outfile.h"
#include "base/str.h"
#include "base/store_name.h"
#include "cli/runs.h"

static long from_stdin(void *arg, char *into, size_t room)
{
    (void)arg;
    size_t n = fread(into, 1, room, stdin);
    return ferror(stdin) ? -1 : (long)n;
}

static const char *hint_for(int rc)
{
    switch (rc) {
    case RV_EEXIST: return "a run keeps its id: import it into another store (--store)";
    case RV_EPARSE: return "export it again, and see that all of it arrives";
    default: return NULL;
    }
}

struct importing {
    const char *store;
    bool json;
};

/* Import into a store, created if missing. Reports errors. */
static int import_into(const char *store, const char *from, rv_run_info *ret)
{
    bool piped = strcmp(from, "-") == 0;
    rv_error err;
    rv_engine *engine = rv__store_to_hold(store);
    if (engine == NULL)
        return CLI_FAILED;
    int rc = rv_import(
        engine, RV_IMPORT_OPTS(.path = piped ? NULL : from, .read = piped ? from_stdin : NULL), ret,
        &err);
    rv_engine_free(engine);
    return rc < 0 ? rv__cli_fail(CLI_FAILED, err.message, hint_for(rc)) : CLI_OK;
}

/* A new store gets its name only when the run is in it, so that a refused file leaves no empty store. */
static int import_into_new(const char *store, const char *from, rv_run_info *ret)
{
    struct rv__outfile made;
    struct rv__buf lock; /* path of the engine's lock file beside the store */
    rv_error err;
    if (rv__outfile_open(&made, store, false, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__buf_init(&lock, SIZE_MAX / 8);
    rv__buf_fmt(&lock, "%s.lock", made.temp);
    int rc = import_into(made.temp, from, ret);
    if (rv__buf_err(&lock, NULL) == RV_OK)
        (void)unlink(lock.text);
    if (rc == CLI_OK && rv__outfile_keep(&made, &err) < 0)
        rc = rv__cli_fail(CLI_FAILED, err.message, "nothing was imported: try again");
    rv__outfile_done(&made);
    rv__buf_done(&lock);
    return rc;
}

static int run_import(int argc, char **argv)
{
    struct importing x = { .json = false };
    rv_run_info info = { "", 0 };
    int count = rv__options(&rv__cmd_import, argc, argv, &x);
    if (count < 0)
        return -count;
    const char *store = x.store != NULL ? x.store : rv__store_default();
    int rc = rv__store_name_exists(store) ? import_into(store, argv[0], &info)
                                          : import_into_new(store, argv[0], &info);
    if (rc == CLI_OK)
        printf(x.json ? "{\"runId\":\"%s\",\"status\":\"%s\"}\n" : "imported %s (%s)\n",
               info.run_id, rv_status_name(info.status));
    return rc;
}

static const struct rv__option options[] = { RV__OPTION_STORE(struct importing, store),
                                             RV__OPTION_TOLD(struct importing, json),
                                             { NULL } };

const struct rv__command rv__cmd_import = {
    .name = "import",
    .section = SECTION_STORE,
    .summary = "read an exported run into a store",
    .arguments = { { "FILE", "which file?", .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Imports everything or nothing: a damaged or altered file is refused, and so "
                    "is "
                    "a run whose id is already in the store. FILE may be - for stdin. The store is "
                    "created if missing.",
                    "The imported run is in exactly the same state, under the same id. It "
                    "continues "
                    "when a process drives the store: `rival serve`, or `rival exec` with its "
                    "workflow and `--run-id`." },
    .examples = { { "rival import order-1.jsonl --store other.db" },
                  { "rival export order-1 | ssh host rival import -" } },
    .run = run_import,
};
