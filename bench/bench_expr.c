/* bench_expr.c: what an evaluation costs: a plain path, jq on values that are kept, and jq on values
 * that are parsed each time, as it was done without them; each beside 1,000 and 10,000 items.
 *
 * Kept values must make the number of items not matter: that is the goal. Measured is the time of the
 * processor, not of the wall: there is one thread, and a machine with more to do changes nothing. */
#include <stdint.h>
#include <time.h>

#include "base/blob.h"
#include "bench.h"
#include "exec/exec.h"
#include "unit/expr/loop.h"

enum { SIZES = 2, ROUNDS = 21, EVALUATIONS = 2000, REPARSED = 20 };

static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct world {
    struct rv__scope scope; /* first */
    struct rv__blob *big;
    const char **items;
    size_t *lens;
    int count, at;
    bool forget; /* no identity: parsed anew each time */
    char index[16];
};

static struct rv__str part(struct world *w, struct rv__str root, struct rv__str name,
                           struct rv__str field, struct rv__blob **blob)
{
    *blob = NULL;
    if (rv__str_is(root, "loop") && rv__str_is(name, "index"))
        return (struct rv__str){ w->index,
                                 (size_t)snprintf(w->index, sizeof w->index, "%d", w->at) };
    *blob = w->big;
    if (rv__str_is(root, "loop") && rv__str_is(name, "item"))
        return (struct rv__str){ w->items[w->at], w->lens[w->at] };
    if (rv__str_is(root, "loop") || (rv__str_is(root, "steps") && rv__str_is(field, "result")))
        return rv__blob_str(w->big);
    *blob = NULL;
    return rv__str(rv__str_is(field, "status") ? "\"completed\"" : "{}");
}

static int find(struct rv__scope *self, struct rv__str root, struct rv__str name,
                struct rv__str field, struct rv__scope_text *ret)
{
    struct world *w = (struct world *)self;
    ret->json = part(w, root, name, field, &ret->blob);
    if (w->forget)
        ret->blob = NULL;
    return RV_OK;
}

static int alias(struct rv__scope *self, size_t i, struct rv__str *ret)
{
    (void)self;
    *ret = rv__str("big");
    return i == 0;
}

static void world_init(struct world *w, int count)
{
    struct rv__buf json;
    size_t *starts = calloc((size_t)count, sizeof *starts);
    *w = (struct world){ .scope = { .find = find, .alias = alias }, .count = count };
    w->items = calloc((size_t)count, sizeof *w->items);
    w->lens = calloc((size_t)count, sizeof *w->lens);
    if (starts == NULL || w->items == NULL || w->lens == NULL)
        abort();
    rv__buf_init(&json, (size_t)64 << 20);
    rv__buf_char(&json, '[');
    for (int i = 0; i < count; i++) {
        rv__buf_text(&json, i > 0 ? "," : "");
        starts[i] = json.len;
        rv__buf_fmt(&json, "{\"id\":%d,\"name\":\"item %d\",\"tags\":[\"a\",\"b\"],\"ok\":true}", i,
                    i);
        w->lens[i] = json.len - starts[i];
    }
    rv__buf_char(&json, ']');
    w->big = rv__blob_new(rv__buf_view(&json));
    if (w->big == NULL)
        abort();
    for (int i = 0; i < count; i++)
        w->items[i] = w->big->text + starts[i];
    rv__buf_done(&json);
    free(starts);
}

static void world_done(struct world *w)
{
    rv__blob_unref(w->big);
    free(w->items);
    free(w->lens);
}

/* Nanoseconds of one evaluation, over many. */
static double measure(struct rv__exprs *set, uint32_t number, struct loop *loop, struct world *w,
                      int evaluations)
{
    struct rv__buf out;
    rv_error err;
    rv__buf_init(&out, RV__EXPR_OUTPUT_BYTES);
    int64_t start = cpu_ns();
    for (int i = 0; i < evaluations; i++) {
        w->at = i % w->count; /* in order, as a forEach goes */
        rv__buf_reset(&out);
        if (loop_eval(loop, set, number, &w->scope, &out, &err) < 0) {
            fprintf(stderr, "%s\n", err.message);
            abort();
        }
    }
    int64_t took = cpu_ns() - start;
    rv__buf_done(&out);
    return (double)took / evaluations;
}

static const struct {
    const char *name, *template;
} kinds[] = {
    { "plain path to the item: .loop.item.name", "\"${ .loop.item.name }\"" },
    { "plain path into the result: .steps.big.result[-1].id", "\"${ .steps.big.result[-1].id }\"" },
    { "jq on the item: .loop.item.id + 1", "\"${ .loop.item.id + 1 }\"" },
    { "jq on the result: .steps.big.result | length", "\"${ .steps.big.result | length }\"" },
    { "text: item ${ … } of ${ … | length }",
      "\"item ${ .loop.item.name } of ${ .steps.big.result | length }\"" },
};
enum { KINDS = sizeof kinds / sizeof *kinds, LENGTH = 3 };

static void compile_cost(struct bench *b)
{
    struct rv__expr_compiler compiler = { loop_compile };
    double one[7] = { 0 }, many[7] = { 0 };
    for (int r = 0; r < 7; r++) {
        for (int size = 0; size < 2; size++) {
            struct rv__exprs *set = NULL;
            uint32_t number;
            if (rv__exprs_new(&set, NULL) < 0)
                abort();
            for (int i = 0; i < (size ? 100 : 1); i++)
                if (rv__exprs_add(set, rv__str("\"${ .steps.a.result.n + .input.x * 2 }\""),
                                  &number, NULL) < 0)
                    abort();
            int64_t start = cpu_ns();
            if (rv__exprs_check(set, &compiler, NULL, NULL, NULL) < 0)
                abort();
            (size ? many : one)[r] = (double)(cpu_ns() - start) / 1e6;
            rv__exprs_unref(set);
        }
    }
    double first = bench_median(one, 7), all = bench_median(many, 7);
    bench_figure(b, "compile a set of 1 expression", first, "ms");
    bench_figure(b, "compile a set of 100 expressions", all, "ms");
    bench_goal(b, "100 expressions one by one / in one program", first * 100 / all, "x", true, 10);
}

int main(int argc, char **argv)
{
    static const int sizes[SIZES] = { 1000, 10000 };
    struct world worlds[SIZES];
    struct rv__exprs *set = NULL;
    struct loop loop;
    static double ns[KINDS][SIZES][ROUNDS], ratios[KINDS][ROUNDS], again[SIZES][ROUNDS];
    uint32_t numbers[KINDS];
    struct bench b;
    char name[80];
    bench_init(&b, "expr", argc, argv);
    if (rv__exprs_new(&set, NULL) < 0 || loop_init(&loop, 0) < 0)
        abort();
    for (int k = 0; k < KINDS; k++)
        if (rv__exprs_add(set, rv__str(kinds[k].template), &numbers[k], NULL) < 0)
            abort();
    for (int s = 0; s < SIZES; s++)
        world_init(&worlds[s], sizes[s]);

    for (int r = -1; r < ROUNDS; r++) { /* the first round warms up */
        for (int k = 0; k < KINDS; k++) {
            double took[SIZES];
            for (int s = 0; s < SIZES; s++)
                took[s] = measure(set, numbers[k], &loop, &worlds[s], EVALUATIONS);
            for (int s = 0; s < SIZES && r >= 0; s++)
                ns[k][s][r] = took[s];
            if (r >= 0)
                ratios[k][r] = took[1] / took[0];
        }
        for (int s = 0; s < SIZES; s++) {
            worlds[s].forget = true;
            double took = measure(set, numbers[LENGTH], &loop, &worlds[s], REPARSED);
            worlds[s].forget = false;
            if (r >= 0)
                again[s][r] = took;
        }
    }
    for (int k = 0; k < KINDS; k++) {
        for (int s = 0; s < SIZES; s++) {
            snprintf(name, sizeof name, "%s, %d", kinds[k].name, sizes[s]);
            bench_figure(&b, name, bench_median(ns[k][s], ROUNDS), "ns");
        }
        bench_goal(&b, "  10,000 items / 1,000 items", bench_median(ratios[k], ROUNDS), "x", false,
                   1.3);
    }
    double kept = bench_median(ns[LENGTH][1], ROUNDS);
    bench_figure(&b, "jq on the result parsed each time, 1,000",
                 bench_median(again[0], ROUNDS) / 1e3, "us");
    bench_figure(&b, "jq on the result parsed each time, 10,000",
                 bench_median(again[1], ROUNDS) / 1e3, "us");
    bench_goal(&b, "parsed each time / kept, 10,000 items", bench_median(again[1], ROUNDS) / kept,
               "x", true, 100);
    compile_cost(&b);

    for (int s = 0; s < SIZES; s++)
        world_done(&worlds[s]);
    loop_done(&loop);
    rv__exprs_unref(set);
    return bench_done(&b);
}
