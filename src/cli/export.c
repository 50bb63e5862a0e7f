/* export.c: `rival export`: writes one run to a file, or to stdout. */
#include <string.h>

#include "cli/runs.h"

struct exporting {
    struct rv__look look;
    bool force;
};

static int to_stdout(void *arg, const char *bytes, size_t count)
{
    (void)arg;
    return fwrite(bytes, 1, count, stdout) == count ? 0 : 1;
}

static int export(struct rv__look *look)
{
    const struct exporting *x = look->arg;
    const char *file = look->argc > 0 ? look->argv[0] : "-";
    bool piped = strcmp(file, "-") == 0;
    rv_error err;
    int rc = rv_export(rv__client_engine(look->client), look->run_id,
                       RV_EXPORT_OPTS(.path = piped ? NULL : file, .replace = x->force,
                                      .write = piped ? to_stdout : NULL),
                       &err);
    if (rc == RV_OK && piped && fflush(stdout) == 0)
        return CLI_OK;
    if (piped && (rc == RV_OK || rc == RV_ECANCELED))
        return CLI_FAILED; /* stdout failed: main reports it */
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message,
                            rc == RV_EEXIST ? "--force replaces it" : NULL);
    fprintf(stderr, "exported %s to %s\n", look->run_id, file);
    return CLI_OK;
}

static int run_export(int argc, char **argv)
{
    struct exporting x = { .look.where.store = rv__store_default() };
    int count = rv__options(&rv__cmd_export, argc, argv, &x);
    x.look.arg = &x;
    return count < 0 ? -count : rv__look_at_run(&x.look, count, argv, export);
}

static const struct rv__option options[] = {
    { "--force", NULL, "overwrite FILE", RV__INTO(struct exporting, force) },
    RV__OPTION_STORE(struct exporting, look.where.store),
    { NULL },
};

const struct rv__command rv__cmd_export = {
    .name = "export",
    .section = SECTION_STORE,
    .summary = "write a run with its whole history to a file",
    .arguments = { { "ID", "which run?", .completes = COMPLETES_RUN },
                   { "FILE", .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Writes definition, input, history and logs as lines of JSON, to stdout if no "
                    "FILE or - is given. `rival import` reads them into another store, where the "
                    "run continues.",
                    "Works while another process drives the run. The run also continues here: "
                    "cancel it before you import it elsewhere, unless it has ended." },
    .examples = { { "rival export order-1 order-1.jsonl" },
                  { "rival export order-1 | gzip > order-1.jsonl.gz" },
                  { "rival export order-1 | head -1 | jq .rival", "its header" } },
    .run = run_export,
};
