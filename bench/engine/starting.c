/* starting.c: an engine opens at once, whatever its store has seen. */
#include "figures.h"
#include "store/store.h"

enum { MANY = 1000000, BATCH = 500, ROUNDS = 11 };

/* Finished runs, written through the store: as the engine leaves them, and quicker. */
static void fill(struct figures *f, int runs)
{
    static struct rv__store_run rows[BATCH];
    static struct rv__store_write writes[BATCH];
    static char ids[BATCH][32];
    char version[65];
    rv_error err = { 0, "" };
    struct rv__store *store = NULL;
    memset(version, 'a', 64);
    version[64] = '\0';
    must(rv__store_open(&(struct rv__store_opts){ .path = store_path(f, "many") }, &store, &err),
         &err);
    for (int n = 0; n < runs; n += BATCH) {
        for (int i = 0; i < BATCH; i++) {
            int64_t at_ms = 1700000000000 + n / 100;
            snprintf(ids[i], sizeof ids[i], "01hzzzzzzzzzzzzzzz%08d", n + i);
            rows[i] = (struct rv__store_run){ .id = rv__str(ids[i]),
                                              .workflow = rv__str("ten"),
                                              .version = rv__str(version),
                                              .status = rv__str("completed"),
                                              .input_key = rv__str(version),
                                              .created_ms = at_ms,
                                              .started_ms = at_ms,
                                              .completed_ms = at_ms + 1 };
            writes[i] = (struct rv__store_write){
                .run = rows[i].id,
                .row = &rows[i],
                .facts = rv__str("{\"k\":\"run.started\",\"a\":1,\"at\":1000},"
                                 "{\"k\":\"run.completed\",\"at\":1000}"),
            };
        }
        must(rv__store_commit(store, writes, BATCH, &err), &err);
    }
    rv__store_close(store);
}

static double open_ms(struct figures *f, const char *name, bool anew)
{
    double ms[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        if (anew)
            drop_store(f, name);
        double start = seconds();
        rv_engine *engine = open_engine(f, name);
        ms[i] = (seconds() - start) * 1e3;
        rv_engine_free(engine);
    }
    return bench_median(ms, ROUNDS);
}

void starting(struct figures *f)
{
    goal(f, "opening an engine on a new store", open_ms(f, "new", true), "ms", false, 20);
    goal(f, "opening an engine on an empty store", open_ms(f, "new", false), "ms", false, 20);
    fill(f, f->quick ? 5000 : MANY);
    goal(f, "opening an engine on 1,000,000 finished runs", open_ms(f, "many", false), "ms", false,
         200);
    drop_store(f, "new");
    drop_store(f, "many");
}
