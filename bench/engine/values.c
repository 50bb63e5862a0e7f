/* values.c: a workflow file whose forEach does nothing but evaluate an expression for each item: what an
 * item costs, and that it costs the same in a list ten times as long.
 *
 * The body reads `.loop.item`, so whoever copies the list for each item is found out here. One after the other,
 * an item is a commit of its own: the store lies in memory where it can (/dev/shm), else the disk is measured. */
#include <unistd.h>

#include "figures.h"

enum { PAIRS = 5, FEW = 1000, MANY = 10000 };

struct shape {
    const char *name;
    const char *yaml;
};
static const struct shape shapes[] = {
    { "sequential", "name: values\n"
                    "steps:\n"
                    "  - each:\n"
                    "      forEach: \"${ [range(.input.items)] }\"\n"
                    "      run: [ { twice: { value: \"${ .loop.item * 2 }\" } } ]\n" },
    { "parallel", "name: values\n"
                  "steps:\n"
                  "  - each:\n"
                  "      forEach: \"${ [range(.input.items)] }\"\n"
                  "      parallel: true\n"
                  "      run: [ { twice: { value: \"${ .loop.item * 2 }\" } } ]\n" },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct measure {
    const struct shape *shape;
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
    register_text(f, engine, m->shape->yaml);
    (void)run_once(engine, "values", "{\"items\":100}");
    snprintf(input, sizeof input, "{\"items\":%d}", m->items);
    ret[0] = run_once(engine, "values", input);
    rv_engine_free(engine);
    drop_store(f, "values");
}

static void shape_figures(struct figures *f, const struct shape *shape)
{
    const struct measure few = { shape, f->quick ? 100 : FEW };
    const struct measure many = { shape, f->quick ? 1000 : MANY };
    double few_s[PAIRS], many_s[PAIRS], growth[PAIRS];
    char name[80];
    for (int i = 0; i < PAIRS; i++) { /* in turns: a busy machine is so for both */
        apart(values_of, f, &few, &few_s[i], 1);
        apart(values_of, f, &many, &many_s[i], 1);
        growth[i] = (many_s[i] / many.items) / (few_s[i] / few.items);
    }
    snprintf(name, sizeof name, "forEach of 1,000 values, %s: an item", shape->name);
    bench_figure(f->bench, name, bench_median(few_s, PAIRS) / few.items * 1e6, "us");
    snprintf(name, sizeof name, "forEach of 10,000 values, %s: an item", shape->name);
    bench_figure(f->bench, name, bench_median(many_s, PAIRS) / many.items * 1e6, "us");
    snprintf(name, sizeof name, "forEach of values, %s: growth of that", shape->name);
    goal(f, name, bench_median(growth, PAIRS), "x", false, 1.3);
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
