/* bench_host.c: steps a second through host processes, against the same function on threads of the engine,
 * in the same run on the same store (in memory, so that it is the calls that are measured). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tests/host_program.h"

#include <rival/rival.h>

#include "base/clock.h"

static void must(int rc, const rv_error *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_host: %s\n", err->message);
        abort();
    }
}

static double seconds(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e9;
}

/* One run of a forEach over `count` items; how long it took. */
static double run(const char *file, const char *name, bool in_process, int count, const char *extra)
{
    char input[64];
    rv_error err;
    rv_engine *engine;
    rv_run_info info;
    rv_outcome *outcome;
    must(rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:"), &engine, &err), &err);
    must(rv_register_file(engine, file, RV_FILE_OPTS(.in_process = in_process), &err), &err);
    snprintf(input, sizeof input, "{\"count\":%d%s}", count, extra);
    double before = seconds();
    must(rv_run(engine, name, input, NULL, &info, &err), &err);
    must(rv_wait(engine, NULL, info.run_id, NULL, &outcome, &err), &err);
    double took = seconds() - before;
    if (outcome->status != RV_COMPLETED) {
        fprintf(stderr, "bench_host: %s\n", outcome->error);
        abort();
    }
    rv_outcome_free(outcome);
    rv_engine_free(engine);
    return took;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 20000;
    static const struct {
        const char *says, *name, *extra;
    } cases[] = {
        { "parallel, nothing seen", "many", "" },
        { "parallel, each sees 1 MB of an earlier step", "many", ",\"see\":true" },
        { "one after the other", "line", "" },
    };
    char file[4096];
    name_host_program();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(file, sizeof file, "%s/host/%s.c", BENCH, cases[i].name);
        int some = strstr(cases[i].extra, "see") ? count / 10 : count / (i == 2 ? 4 : 1);
        (void)run(file, cases[i].name, false, 100, cases[i].extra); /* compiled, and warm */
        double host = run(file, cases[i].name, false, some, cases[i].extra);
        double here = run(file, cases[i].name, true, some, cases[i].extra);
        printf("%-45s host %8.0f/s   threads %8.0f/s   %.2f\n", cases[i].says, some / host,
               some / here, here / host);
    }
    return 0;
}
