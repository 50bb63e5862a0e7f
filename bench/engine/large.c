/* large.c: a run whose results are gigabytes, in pieces of 4 MB: half of them of steps one after the other,
 * half of the iterations of a forEach, with naps in which it leaves memory, and an engine that is opened
 * anew in between. What it needs is memory for the pieces that are on their way, not for what it has been
 * through; and its outcome says how much there is, instead of having it. */
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "figures.h"

enum { PIECE_BYTES = 4 << 20, AT_ONCE = 4, POLL_MS = 20 };

static atomic_int reached; /* naps that were begun; what follows the last */
static int64_t nap_ms;

static int piece(rv_ctx *c)
{
    char *json = rv__alloc(PIECE_BYTES + 1);
    if (json == NULL)
        return rv_fail(c, "out of memory");
    memset(json, 'a' + (int)(rv_int(c, ".loop.index", -1) + 1) % 26, PIECE_BYTES);
    json[0] = json[PIECE_BYTES - 1] = '"';
    json[PIECE_BYTES] = '\0';
    int rc = rv_return_json(c, json);
    rv__free(json);
    return rc;
}

/* It sees one of the first, which left memory long ago. */
static int look_back(rv_ctx *c)
{
    const char *first = rv_json(c, ".steps.p0.result");
    if (first == NULL || strlen(first) != PIECE_BYTES)
        return rv_fail(c, "the first piece is not what it was");
    atomic_fetch_add(&reached, 1);
    return 0;
}

static rv_workflow *large(int pieces)
{
    rv_workflow *w = rv_workflow_new("large");
    rv_body *body = rv_workflow_body(w);
    char alias[16];
    for (int i = 0; i < pieces / 2; i++) {
        snprintf(alias, sizeof alias, "p%d", i);
        rv_add_step(body, alias, piece, NULL);
    }
    rv_add_delay(body, "nap", nap_ms);
    rv_body *each = rv_add_foreach(body, "each", many_items,
                                   RV_FOREACH_OPTS(.parallel = true, .concurrency = AT_ONCE));
    rv_add_step(each, "piece", piece, NULL);
    rv_add_step(body, "back", look_back, NULL);
    rv_add_delay(body, "nap2", nap_ms);
    rv_add_step(body, "end", look_back, NULL);
    return w;
}

enum { PEAK_MB, SECONDS, AGAIN_MB, TOLD_MB, VALUES };

static rv_engine *open_with_workflow(struct figures *f, int pieces)
{
    rv_engine *engine = open_engine(f, "large");
    add_workflow(engine, large(pieces));
    return engine;
}

/* Until its second nap, in one process; the rest of it in another. */
static void first_half(struct figures *f, const void *arg, double *ret)
{
    const int pieces = *(const int *)arg;
    char input[32];
    rv_error err;
    rv_engine *engine = open_with_workflow(f, pieces);
    snprintf(input, sizeof input, "{\"items\":%d}", pieces - pieces / 2);
    double start = seconds();
    must(rv_run(engine, "large", input, RV_RUN_OPTS(.run_id = "large"), NULL, &err), &err);
    while (atomic_load(&reached) == 0)
        rv__clock_sleep_ms(POLL_MS);
    rv__clock_sleep_ms(nap_ms / 2); /* it is asleep by now */
    ret[SECONDS] = seconds() - start;
    rv_engine_free(engine);
    ret[PEAK_MB] = peak_mb();
}

static void second_half(struct figures *f, const void *arg, double *ret)
{
    rv_error err;
    rv_outcome *outcome = NULL;
    rv_engine *engine = open_with_workflow(f, *(const int *)arg);
    must(rv_wait(engine, NULL, "large", NULL, &outcome, &err), &err);
    if (outcome->status != RV_COMPLETED) {
        fprintf(stderr, "bench_engine: large: %s\n", outcome->error);
        abort();
    }
    ret[TOLD_MB] = outcome->results_too_large > 0 ? (double)outcome->results_too_large / (1 << 20)
                                                  : (double)strlen(outcome->results) / (1 << 20);
    rv_outcome_free(outcome);
    rv_engine_free(engine);
    ret[AGAIN_MB] = peak_mb();
}

void large_run(struct figures *f)
{
    const int pieces = f->quick ? 16 : 512;
    double got[VALUES], then[VALUES];
    nap_ms = 3000; /* long enough to leave memory */
    apart(first_half, f, &pieces, got, VALUES);
    apart(second_half, f, &pieces, then, VALUES);
    const double all_mb = (double)pieces * (PIECE_BYTES >> 20);
    bench_figure(f->bench, "a run of 2 GB in pieces of 4 MB: until its second nap", got[SECONDS],
                 "s");
    goal(f, "a run of 2 GB in pieces of 4 MB: peak memory", got[PEAK_MB], "MB", false, 200);
    goal(f, "woken by another process: peak memory", then[AGAIN_MB], "MB", false, 200);
    bench_figure(f->bench, "its results, as its outcome tells", then[TOLD_MB], "MB");
    bench_figure(f->bench, "disk for a byte of results",
                 disk_bytes(store_path(f, "large")) / (all_mb * (1 << 20)), "bytes");
    drop_store(f, "large");
}
