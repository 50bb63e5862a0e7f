/* bench_engine.c: what the engine costs: chooses the figures; each has its file in engine/.
 *
 *   bench_engine [--json] [--quick] [--rounds N] [--only NAME[,NAME…]]
 *
 * `--quick` takes small sizes, to see that they all work; goals are not judged then. `--rounds`: of the figures
 * that are the middle one of several rounds. Stores are made in
 * the current folder, on whose disk it all depends. */
#include <unistd.h>

#include "engine/figures.h"

static const struct {
    const char *name;
    void (*measure)(struct figures *f);
} all[] = {
    { "throughput", throughput }, { "crowd", crowd },       { "latency", latency },
    { "fan-out", fan_out },       { "sleeping", sleeping },
#ifndef BENCH_COMMON /* scripts/bench-compare builds the ones above with other versions of the library */
    { "delay", delay },           { "large", large_run },   { "cancelling", cancelling },
    { "starting", starting },     { "loops", loops },       { "values", values },
    { "given", given },           { "stages", stages },
#endif
};
enum { ALL = sizeof all / sizeof *all, ROUNDS = 5 };

static int usage(void)
{
    fprintf(
        stderr,
        "usage: bench_engine [--json] [--quick] [--rounds N] [--only NAME[,NAME...]]; there are:");
    for (int i = 0; i < ALL; i++)
        fprintf(stderr, " %s", all[i].name);
    fprintf(stderr, "\n");
    return 2;
}

/* Is this name in the list, between commas? */
static bool listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, len) == 0 && (at[len] == '\0' || at[len] == ','))
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    struct bench b;
    struct figures f = { .bench = &b };
    const char *only = NULL;
    char folder[] = "bench-engine-XXXXXX", command[100];
    int chosen = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            f.quick = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            f.rounds = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--json") != 0)
            return usage();
    }
    for (int i = 0; i < ALL; i++)
        chosen += only == NULL || listed(only, all[i].name);
    if (chosen == 0 || f.rounds < 0)
        return usage();
    if (f.rounds == 0)
        f.rounds = f.quick ? 1 : ROUNDS;

    bench_init(&b, "engine", argc, argv);
    if (mkdtemp(folder) == NULL)
        return 1;
    f.folder = folder;
    for (int i = 0; i < ALL; i++)
        if (only == NULL || listed(only, all[i].name))
            all[i].measure(&f);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? bench_done(&b) : 1;
}
