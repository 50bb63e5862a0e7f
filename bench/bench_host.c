/* bench_host.c: steps a second through host processes, against the same function on threads of the engine,
 * in the same run on the same store (in memory, so that it is the calls that are measured).
 *
 *   bench_host [--json] [--quick]
 *
 * `--quick` takes few steps, to see that it works. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "bench.h"

enum { STEPS = 20000, STEPS_QUICK = 400, WARM_UP = 100 };

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
    static const struct {
        const char *says, *name, *extra;
        int part; /* of the steps */
    } cases[] = {
        { "parallel, nothing seen", "many", "", 1 },
        { "parallel, each sees 1 MB of an earlier step", "many", ",\"see\":true", 10 },
        { "one after the other", "line", "", 4 },
    };
    struct bench b;
    int count = STEPS;
    char file[4096], says[80];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            count = STEPS_QUICK;
        } else if (strcmp(argv[i], "--json") != 0) {
            fprintf(stderr, "usage: bench_host [--json] [--quick]\n");
            return 2;
        }
    }
    bench_init(&b, "host", argc, argv);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(file, sizeof file, "%s/host/%s.c", BENCH, cases[i].name);
        int some = count / cases[i].part;
        (void)run(file, cases[i].name, false, WARM_UP, cases[i].extra); /* compiled, and warm */
        double host = run(file, cases[i].name, false, some, cases[i].extra);
        double here = run(file, cases[i].name, true, some, cases[i].extra);
        snprintf(says, sizeof says, "%s: in hosts", cases[i].says);
        bench_figure(&b, says, some / host, "/s");
        snprintf(says, sizeof says, "%s: on threads", cases[i].says);
        bench_figure(&b, says, some / here, "/s");
        snprintf(says, sizeof says, "%s: ratio", cases[i].says);
        bench_figure(&b, says, here / host, "x");
    }
    return bench_done(&b);
}
