/* bench_engine.c: what the engine costs: chooses the figures; each has its file in engine/.
 *
 *   bench_engine [--json] [--quick] [--only NAME[,NAME…]]
 *
 * `--quick` takes small sizes, to see that they all work; goals are not judged then. Stores are made in
 * the current folder, on whose disk it all depends. */
#include <unistd.h>

#include "engine/figures.h"

static const struct {
    const char *name;
    void (*measure)(struct figures *f);
} all[] = {
    { "throughput", throughput }, { "latency", latency },   { "fan-out", fan_out },
    { "cancelling", cancelling }, { "starting", starting }, { "sleeping", sleeping },
    { "loops", loops },           { "values", values },     { "large", large_run },
};
enum { ALL = sizeof all / sizeof *all };

static int usage(void)
{
    fprintf(stderr, "usage: bench_engine [--json] [--quick] [--only NAME[,NAME...]]; there are:");
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
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--json") != 0)
            return usage();
    }
    for (int i = 0; i < ALL; i++)
        chosen += only == NULL || listed(only, all[i].name);
    if (chosen == 0)
        return usage();

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
