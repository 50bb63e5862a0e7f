/* bench.h: how a benchmark reports: one figure a line for people, and all of them as JSON.
 *
 * Machines are noisy, so what counts is a ratio between things measured in the same run, round by
 * round, each taken as the median of its rounds. */
#ifndef RV_BENCH_H
#define RV_BENCH_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/host_program.h"

enum { BENCH_FIGURES = 64, BENCH_ROUNDS = 101 };

struct bench {
    const char *name;
    bool json;   /* `--json`: only JSON on stdout */
    bool missed; /* a goal was missed: the exit code says so */
    size_t count;
    struct {
        char name[80];
        double value;
        const char *unit;
    } figures[BENCH_FIGURES];
};

static inline void bench_init(struct bench *b, const char *name, int argc, char **argv)
{
    *b = (struct bench){ .name = name };
    name_host_program();
    for (int i = 1; i < argc; i++)
        b->json |= strcmp(argv[i], "--json") == 0;
    if (!b->json)
        printf("%s\n", name);
}

static inline void bench_figure(struct bench *b, const char *name, double value, const char *unit)
{
    if (b->count < BENCH_FIGURES) {
        snprintf(b->figures[b->count].name, sizeof b->figures[0].name, "%s", name);
        b->figures[b->count].value = value;
        b->figures[b->count++].unit = unit;
    }
    if (!b->json)
        printf("  %-58s %12.2f %s\n", name, value, unit);
}

/* A figure with a bound that must hold: at most (or, for `at_least`, at least) `goal`. */
static inline void bench_goal(struct bench *b, const char *name, double value, const char *unit,
                              bool at_least, double goal)
{
    bool met = at_least ? value >= goal : value <= goal;
    bench_figure(b, name, value, unit);
    if (!b->json)
        printf("  %-58s %9s %g: %s\n", "", at_least ? "goal >=" : "goal <=", goal,
               met ? "met" : "MISSED");
    b->missed |= !met;
}

static inline int bench_done(const struct bench *b)
{
    if (b->json) {
        printf("{\"name\":\"%s\",\"met\":%s,\"figures\":[", b->name, b->missed ? "false" : "true");
        for (size_t i = 0; i < b->count; i++)
            printf("%s{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"}", i ? "," : "",
                   b->figures[i].name, b->figures[i].value, b->figures[i].unit);
        printf("]}\n");
    }
    return b->missed ? 1 : 0;
}

static inline int bench_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, bench_order);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

#endif
