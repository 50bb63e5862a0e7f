/* metrics.h: what the loop counts. Plain numbers: nobody else writes them, and reading them is a call. */
#ifndef RV_ENGINE_METRICS_H
#define RV_ENGINE_METRICS_H

#include "engine/engine.h"

enum {
    RV__METRIC_BUCKETS = 13, /* bounds of a histogram; metrics.c has them */
    RV__METRIC_SERIES = 500, /* pairs of workflow and alias; what is more is counted as "other" */
};

struct rv__histogram {
    uint64_t buckets[RV__METRIC_BUCKETS + 1]; /* not cumulative; the last: beyond all bounds */
    int64_t sum_ns;
};

/* Of the attempts of one step of one workflow. */
struct rv__series {
    const char *workflow, *alias; /* of the engine, until it is freed */
    uint64_t outcomes[4];         /* completed, failed, skipped, pending */
    struct rv__histogram duration, queue;
};

struct rv__metrics {
    uint64_t facts[FACT_KINDS];
    struct rv__histogram commit;
    uint64_t commit_runs; /* written, over all commits */
    uint64_t letters, letters_last;
    struct rv__series *series; /* [0] is "other" */
    size_t series_count;
};

int rv__metrics_init(struct rv__metrics *metrics, rv_error *err);
void rv__metrics_done(struct rv__metrics *metrics);
void rv__metrics_facts(rv_engine *engine, const struct rv__facts *facts); /* they are on disk */
void rv__metrics_commit(rv_engine *engine, int64_t took_ns, size_t runs);
void rv__metrics_attempt(rv_engine *engine,
                         const struct rv__attempt *attempt); /* it has been answered */

#endif
