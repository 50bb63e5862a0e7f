/* stages.c: a stage of 10,100 states with 30,000 dependencies, whose agents do nothing; and one of a tenth. */
#include "figures.h"

#include <string.h>

enum { WIDE = 100, NEEDS = 3, LEVELS = 101, FEW_LEVELS = 11, PAGE = 100 };

/* Each state depends on three of the level above it. */
static void write_manifest(const char *path, const char *name, int levels)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        abort();
    fprintf(file, "{\"name\":\"%s\",\"stages\":{\"s\":[", name);
    for (int i = 0; i < levels * WIDE; i++) {
        int level = i / WIDE;
        fprintf(file, "%s{\"name\":\"s%d\",\"agent_id\":\"nothing\",\"priority\":%d",
                i > 0 ? "," : "", i, 999 - level);
        for (int d = 0; level > 0 && d < NEEDS; d++)
            fprintf(file, "%s\"d%d\":{\"state\":\"s%d\"}%s", d == 0 ? ",\"depends_on\":{" : ",", d,
                    (level - 1) * WIDE + (i + d) % WIDE, d == NEEDS - 1 ? "}" : "");
        fprintf(file, "}");
    }
    fprintf(file, "]}}\n");
    if (fclose(file) != 0)
        abort();
}

/* Seconds for pages of attachments from the middle of the list. */
static double read_pages(rv_engine *engine, const char *run_id, size_t offset)
{
    enum { TIMES = 20 };
    rv_error err;
    double from = 0;
    for (int i = 0; i <= TIMES; i++) {
        if (i == 1) /* the first one also reads the plan */
            from = seconds();
        rv_attachment_list *list = NULL;
        must(rv_attachments(engine, run_id, RV_ATTACHMENT_QUERY(.offset = offset, .limit = PAGE),
                            &list, &err),
             &err);
        if (list->count != PAGE)
            abort();
        rv_attachment_list_free(list);
    }
    return (seconds() - from) / TIMES;
}

struct size {
    const char *name;
    int levels;
};

/* Seconds to read the file, of the run, and of a page. */
static void measure(struct figures *f, const void *arg, double *ret)
{
    const struct size *size = arg;
    char file[200];
    rv_error err;
    rv_outcome *outcome = NULL;
    rv_engine *engine = open_engine(f, size->name);
    must(rv_agent(engine, "nothing", no_op, NULL, &err), &err);
    snprintf(file, sizeof file, "%s/%s.json", f->folder, size->name);
    write_manifest(file, size->name, size->levels);
    double from = seconds();
    must(rv_register_file(engine, file, NULL, &err), &err);
    ret[0] = seconds() - from;
    from = seconds();
    double cpu = cpu_seconds();
    must(rv_run(engine, size->name, NULL, RV_RUN_OPTS(.run_id = "r"), NULL, &err), &err);
    must(rv_wait(engine, size->name, "r", NULL, &outcome, &err), &err);
    ret[1] = seconds() - from;
    ret[2] = cpu_seconds() - cpu;
    if (outcome->status != RV_COMPLETED)
        abort();
    rv_outcome_free(outcome);
    ret[3] = read_pages(engine, "r", (size_t)size->levels * WIDE / 2);
    rv_engine_free(engine);
    drop_store(f, size->name);
}

void stages(struct figures *f)
{
    const struct size few = { "stage-few", f->quick ? 3 : FEW_LEVELS },
                      many = { "stage-many", f->quick ? 5 : LEVELS };
    double small[4], large[4];
    say(f, "a stage of %d states, then one of %d\n", few.levels * WIDE, many.levels * WIDE);
    apart(measure, f, &few, small, 4);
    apart(measure, f, &many, large, 4);
    double per_small = small[2] / (few.levels * WIDE), per_large = large[2] / (many.levels * WIDE);
    bench_figure(f->bench, "a manifest of 10,100 states: reading it", large[0], "s");
    goal(f, "a stage of 10,100 states, 30,000 dependencies", large[1], "s", false, 2);
    bench_figure(f->bench, "a state of it: processor time", per_large * 1e6, "us");
    goal(f, "a state of it, against a stage of a tenth: processor time", per_large / per_small, "x",
         false, 1.5);
    bench_figure(f->bench, "a page of its attachments", large[3] * 1e3, "ms");
    goal(f, "a page of its attachments, against a stage of a tenth", large[3] / small[3], "x",
         false, 2);
}
