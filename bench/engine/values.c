/* values.c: a workflow file whose forEach does nothing but evaluate an expression for each item: what an
 * item costs, that it costs the same in a list ten times as long, and what the evaluator process costs.
 *
 * The last is against the same list with a plain path, which the evaluator's thread looks up itself: that is
 * the road that jq took, too, before it had a process of its own, without its work (ADR 0022).
 *
 * The body reads `.loop.item`, so whoever copies the list for each item is found out here. One after the other,
 * an item is a commit of its own: the store lies in memory where it can (/dev/shm), else the disk is measured. */
#include <unistd.h>

#include "figures.h"

enum { PAIRS = 7, FEW = 1000, MANY = 10000 };

struct shape {
    const char *name;
    const char *yaml, *plain;
    double most; /* times the plain one */
};
#define EACH(more, value)                                  \
    "name: values\n"                                       \
    "steps:\n"                                             \
    "  - each:\n"                                          \
    "      forEach: \"${ [range(.input.items)] }\"\n" more \
    "      run: [ { twice: { value: \"${ " value " }\" } } ]\n"
static const struct shape shapes[] = {
    { "sequential", EACH("", ".loop.item * 2"), EACH("", ".loop.item"), 2 },
    { "parallel", EACH("      parallel: true\n", ".loop.item * 2"),
      EACH("      parallel: true\n", ".loop.item"), 2 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct measure {
    const char *yaml;
    int items;
};

static void register_text(const struct figures *f, rv_engine *engine, const char *yaml)
{
    rv_error err;
    char path[300];
    snprintf(path, sizeof path, "%s/values.yaml", f->folder);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(yaml, file) == EOF || fclose(file) != 0)
        abort();
    must(rv_register_file(engine, path, NULL, &err), &err);
    (void)unlink(path); /* read already */
}

/* In a process of its own: the seconds a run takes. */
static void values_of(struct figures *f, const void *arg, double *ret)
{
    const struct measure *m = arg;
    char input[32];
    rv_engine *engine = open_engine(f, "values");
    register_text(f, engine, m->yaml);
    (void)run_once(engine, "values", "{\"items\":100}");
    snprintf(input, sizeof input, "{\"items\":%d}", m->items);
    ret[0] = run_once(engine, "values", input);
    rv_engine_free(engine);
    drop_store(f, "values");
}

static void shape_figures(struct figures *f, const struct shape *shape)
{
    const struct measure few = { shape->yaml, f->quick ? 100 : FEW };
    const struct measure many = { shape->yaml, f->quick ? 1000 : MANY };
    const struct measure plain = { shape->plain, f->quick ? 1000 : MANY };
    double few_s[PAIRS], many_s[PAIRS], plain_s[PAIRS], growth[PAIRS], cost[PAIRS];
    char name[80];
    for (int i = 0; i < PAIRS; i++) { /* in turns: a busy machine is so for both */
        apart(values_of, f, &few, &few_s[i], 1);
        apart(values_of, f, &many, &many_s[i], 1);
        apart(values_of, f, &plain, &plain_s[i], 1);
        cost[i] = many_s[i] / plain_s[i];
        growth[i] = (many_s[i] / many.items) / (few_s[i] / few.items);
    }
    snprintf(name, sizeof name, "forEach of 1,000 values, %s: an item", shape->name);
    bench_figure(f->bench, name, bench_median(few_s, PAIRS) / few.items * 1e6, "us");
    snprintf(name, sizeof name, "forEach of 10,000 values, %s: an item", shape->name);
    bench_figure(f->bench, name, bench_median(many_s, PAIRS) / many.items * 1e6, "us");
    snprintf(name, sizeof name, "forEach of values, %s: growth of that", shape->name);
    goal(f, name, bench_median(growth, PAIRS), "x", false, 1.3);
    snprintf(name, sizeof name, "forEach of 10,000 paths, %s: an item", shape->name);
    bench_figure(f->bench, name, bench_median(plain_s, PAIRS) / plain.items * 1e6, "us");
    snprintf(name, sizeof name, "forEach of 10,000, %s: values / paths", shape->name);
    goal(f, name, bench_median(cost, PAIRS), "x", false, shape->most);
    snprintf(name, sizeof name, "forEach of 10,000 values, %s: all of it", shape->name);
    goal(f, name, bench_median(many_s, PAIRS), "s", false, 2);
}

void values(struct figures *given)
{
    char folder[] = "/dev/shm/bench-engine-XXXXXX";
    struct figures own = *given, *f = &own;
    if (mkdtemp(folder) != NULL)
        own.folder = folder;
    for (int i = 0; i < SHAPES; i++)
        shape_figures(f, &shapes[i]);
    (void)rmdir(folder); /* not there: the store was in the other one */
}
