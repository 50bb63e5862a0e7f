/* bench_flow.c: what the state machine costs, with nothing around it: no store, no thread.
 *
 * Growth is measured in one run: the same work at n and at 10n or 100n, per item. Memory is what the
 * cell says it holds, and what the allocator says, beside the text of the items themselves. */
#include <malloc.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/json.h"
#include "bench.h"
#include "flow/flow.h"

struct run {
    struct rv__plan *plan;
    struct rv__cell *cell;
    struct rv__facts facts;
    struct rv__blob *result, *truth;
    size_t bytes; /* of facts written */
    size_t peak;  /* of the cell */
};

static void must(int rc, const rv_error *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_flow: %s\n", err->message);
        abort();
    }
}

static void run_init(struct run *run, const char *plan)
{
    rv_error err = { .message = "" };
    *run = (struct run){ .plan = NULL };
    rv__facts_init(&run->facts);
    must(rv__plan_read(rv__str(plan), &run->plan, &err), &err);
    run->result = rv__blob_new(rv__str("{\"ok\":true}"));
    run->truth = rv__blob_new(rv__str("true"));
    must(rv__cell_start(&(struct rv__cell_opts){ .plan = run->plan }, NULL, 1, &run->facts,
                        &run->cell, &err),
         &err);
}

static void run_done(struct run *run)
{
    rv__cell_free(run->cell);
    rv__plan_free(run->plan);
    rv__facts_done(&run->facts);
    rv__blob_unref(run->result);
    rv__blob_unref(run->truth);
}

/* End of a turn: the facts would be written here. */
static void turn_end(struct run *run)
{
    run->bytes += run->facts.json.len;
    rv__facts_reset(&run->facts);
    size_t bytes = rv__cell_bytes(run->cell);
    if (bytes > run->peak)
        run->peak = bytes;
}

static void fill(struct run *run, int places)
{
    rv_error err = { .message = "" };
    int rc;
    do {
        rc = rv__flow_pump(run->cell, 1, &run->facts, &err);
        must(rc, &err);
        for (int lane = 1; lane < LANES; lane++) {
            for (int i = 0; i < places && rv__cell_wants(run->cell, (enum rv__lane)lane); i++)
                must(rv__flow_grant(run->cell, (enum rv__lane)lane, 1, &run->facts, &err), &err);
        }
    } while (rc == 1);
}

/* Run to the end: whatever is asked for is answered at once; items by `items`. */
static void run_to_end(struct run *run, struct rv__blob *items, int places)
{
    rv_error err = { .message = "" };
    struct rv__effect effect;
    fill(run, places);
    while (rv__cell_effect(run->cell, &effect)) {
        if (effect.kind != EFFECT_START)
            continue;
        struct rv__msg msg = {
            .kind = MSG_DONE, .now_ms = 1, .actor = effect.actor, .token = effect.token
        };
        msg.result = effect.eval == EVAL_ITEMS ? items
                     : effect.eval >= 0        ? run->truth
                                               : run->result;
        must(rv__flow_send(run->cell, &msg, &run->facts, &err), &err);
        fill(run, 1);
        turn_end(run);
    }
}

static double seconds(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e9;
}

/* ------------------------------------------------------------------------------------------ */

static void sequential(struct bench *b)
{
    enum { STEPS = 1000, ROUNDS = 21 };
    struct rv__buf plan;
    double ns[ROUNDS];
    rv__buf_init(&plan, 1u << 30);
    rv__buf_text(&plan, "{\"name\":\"t\",\"steps\":[");
    for (int i = 0; i < STEPS; i++)
        rv__buf_fmt(&plan, "%s{\"type\":\"step\",\"alias\":\"s%d\",\"name\":\"f\"}", i ? "," : "",
                    i);
    rv__buf_text(&plan, "]}");
    for (int r = -2; r < ROUNDS; r++) {
        struct run run;
        run_init(&run, plan.text);
        double start = seconds();
        run_to_end(&run, NULL, 1);
        if (r >= 0)
            ns[r] = (seconds() - start) / STEPS * 1e9;
        if (rv__cell_status(run.cell) != RUN_COMPLETED)
            abort();
        run_done(&run);
    }
    rv__buf_done(&plan);
    bench_goal(b, "a sequential step: decide, evolve, encode", bench_median(ns, ROUNDS), "ns",
               false, 2000);
}

static struct rv__blob *items_of(size_t count)
{
    struct rv__buf buf;
    rv__buf_init(&buf, 1u << 30);
    rv__buf_char(&buf, '[');
    for (size_t i = 0; i < count; i++)
        rv__buf_text(&buf, i ? ",7" : "7");
    rv__buf_char(&buf, ']');
    struct rv__blob *items = rv__blob_new(rv__buf_view(&buf));
    rv__buf_done(&buf);
    return items;
}

#define EACH                                                                                  \
    "{\"name\":\"t\",\"steps\":[{\"type\":\"forEach\",\"alias\":\"e\",\"items\":\"${ .x }\"," \
    "\"parallel\":true,\"run\":[{\"type\":\"step\",\"alias\":\"s\",\"name\":\"f\"}]}]}"

static double each_ns(size_t count, size_t *peak)
{
    struct run run;
    struct rv__blob *items = items_of(count);
    run_init(&run, EACH);
    double start = seconds();
    run_to_end(&run, items, 200);
    double took = seconds() - start;
    if (rv__cell_status(run.cell) != RUN_COMPLETED)
        abort();
    *peak = run.peak;
    run_done(&run);
    rv__blob_unref(items);
    return took / (double)count * 1e9;
}

static void for_each(struct bench *b)
{
    size_t small_peak, large_peak;
    double small[9], large, growth;
    (void)each_ns(10000, &small_peak);
    for (int i = 0; i < 9; i++)
        small[i] = each_ns(10000, &small_peak);
    large = each_ns(1000000, &large_peak);
    growth = large / bench_median(small, 9);
    bench_figure(b, "forEach of 10,000: an item", bench_median(small, 9), "ns");
    bench_figure(b, "forEach of 1,000,000: an item", large, "ns");
    bench_goal(b, "forEach: growth of an item's cost over 100 x the items", growth, "x", false,
               1.3);
    bench_goal(b, "forEach of 1,000,000: memory of a waiting item",
               ((double)large_peak - (double)small_peak) / 1000000, "bytes", false, 1);
}

#define LOOP                                                                           \
    "{\"name\":\"t\",\"steps\":[{\"type\":\"loop\",\"alias\":\"l\",\"while\":\"${ .x " \
    "}\",\"keep\":\"last\","                                                           \
    "\"maxIterations\":%d,\"body\":[{\"type\":\"step\",\"alias\":\"s\",\"name\":\"f\"}]}]}"

static double loop_ns(int count, size_t *peak)
{
    char plan[400];
    struct run run;
    snprintf(plan, sizeof plan, LOOP, count);
    run_init(&run, plan);
    double start = seconds();
    run_to_end(&run, NULL, 1);
    double took = seconds() - start;
    if (rv__cell_status(run.cell) != RUN_FAILED) /* the condition never ends it: the maximum does */
        abort();
    *peak = run.peak;
    run_done(&run);
    return took / count * 1e9;
}

static void loop(struct bench *b)
{
    size_t small_peak, large_peak;
    double small[9];
    for (int i = 0; i < 9; i++)
        small[i] = loop_ns(10000, &small_peak);
    size_t before = mallinfo2().uordblks;
    double large = loop_ns(1000000, &large_peak);
    size_t after = mallinfo2().uordblks;
    bench_figure(b, "loop of 1,000,000, keep last: an iteration", large, "ns");
    bench_goal(b, "loop: growth of an iteration's cost over 100 x", large / bench_median(small, 9),
               "x", false, 1.3);
    bench_goal(b, "loop: memory of 1,000,000 iterations over that of 10,000",
               (double)large_peak / (double)small_peak, "x", false, 1.01);
    bench_figure(b, "loop: left behind", (double)(after > before ? after - before : 0), "bytes");
}

static void cancel(struct bench *b)
{
    enum { CHILDREN = 100000, ROUNDS = 5 };
    double ms[ROUNDS];
    struct rv__blob *items = items_of(CHILDREN);
    size_t facts = 0, bytes = 0;
    for (int r = 0; r < ROUNDS; r++) {
        struct run run;
        struct rv__effect effect;
        rv_error err = { .message = "" };
        run_init(&run, EACH);
        fill(&run, 1);
        while (rv__cell_effect(run.cell, &effect) && effect.eval != EVAL_ITEMS)
            ;
        struct rv__msg msg = { .kind = MSG_DONE,
                               .now_ms = 1,
                               .actor = effect.actor,
                               .token = effect.token,
                               .result = items };
        must(rv__flow_send(run.cell, &msg, &run.facts, &err), &err);
        fill(&run, CHILDREN);
        while (rv__cell_effect(run.cell, &effect))
            ;
        bytes = rv__cell_bytes(run.cell);
        if (rv__cell_actors(run.cell) < (size_t)2 * CHILDREN)
            abort();
        turn_end(&run);
        msg = (struct rv__msg){ .kind = MSG_CANCEL, .now_ms = 1 };
        double start = seconds();
        must(rv__flow_send(run.cell, &msg, &run.facts, &err), &err);
        ms[r] = (seconds() - start) * 1e3;
        facts = run.facts.count;
        if (rv__cell_active(run.cell))
            abort();
        run_done(&run);
    }
    rv__blob_unref(items);
    bench_goal(b, "cancel of 100,000 active children", bench_median(ms, ROUNDS), "ms", false, 10);
    bench_goal(b, "cancel: facts", (double)facts, "", false, 1);
    bench_figure(b, "an active child (iteration and step): memory", (double)bytes / CHILDREN,
                 "bytes");
}

/* A stage of `count` states in layers of 100; each but the first depends on three of the layer before. */
static void stage_plan(int count, struct rv__buf *plan)
{
    enum { LAYER = 100 };
    rv__buf_text(plan,
                 "{\"name\":\"t\",\"steps\":[{\"type\":\"stage\",\"alias\":\"g\",\"states\":[");
    for (int i = 0; i < count; i++) {
        int layer = i / LAYER;
        rv__buf_fmt(plan, "%s{\"alias\":\"s%d\",\"priority\":%d,", i ? "," : "", i, 999 - layer);
        rv__buf_text(plan, layer > 0 ? "\"dependsOn\":{" : "");
        for (int d = 0; d < 3 && layer > 0; d++)
            rv__buf_fmt(plan, "%s\"d%d\":{\"state\":\"s%d\"}", d ? "," : "", d,
                        (layer - 1) * LAYER + (i * 7 + d * 31) % LAYER);
        rv__buf_text(plan, layer > 0 ? "}," : "");
        rv__buf_text(plan, "\"agent\":{\"type\":\"step\",\"name\":\"f\"}}");
    }
    rv__buf_text(plan, "]}]}");
}

/* What a state costs to run, and (*whole) all of it, with its plan read and checked. */
static double stage_ns(int count, double *whole)
{
    struct run run;
    struct rv__buf plan;
    rv__buf_init(&plan, 1u << 30);
    stage_plan(count, &plan);
    double first = seconds();
    run_init(&run, plan.text);
    double start = seconds();
    run_to_end(&run, NULL, 200);
    double took = seconds() - start;
    if (rv__cell_status(run.cell) != RUN_COMPLETED)
        abort();
    *whole = seconds() - first;
    run_done(&run);
    rv__buf_done(&plan);
    return took / count * 1e9;
}

static void stage(struct bench *b)
{
    enum { ROUNDS = 9 };
    double small[ROUNDS], large[ROUNDS], whole;
    for (int i = 0; i < ROUNDS; i++) {
        small[i] = stage_ns(1000, &whole);
        large[i] = stage_ns(10000, &whole);
    }
    double one = bench_median(small, ROUNDS), ten = bench_median(large, ROUNDS);
    bench_figure(b, "stage of 1,000 states: a state", one, "ns");
    bench_figure(b, "stage of 10,000 states, 30,000 dependencies: a state", ten, "ns");
    bench_goal(b, "stage: growth of a state's cost over 10 x the states", ten / one, "x", false,
               1.5);
    bench_goal(b, "stage of 10,000 states: with its plan read and checked", whole * 1000, "ms",
               false, 2000);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_init(&b, "flow", argc, argv);
    sequential(&b);
    for_each(&b);
    loop(&b);
    cancel(&b);
    stage(&b);
    return bench_done(&b);
}
