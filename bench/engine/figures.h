/* figures.h: what the figures of bench_engine share: clocks, memory, workflows that do nothing. */
#ifndef RV_BENCH_FIGURES_H
#define RV_BENCH_FIGURES_H

#include <stdatomic.h>
#include <stdint.h>

#include <rival/rival.h>

#include "../bench.h"

struct figures {
    struct bench *bench;
    const char *folder; /* for stores; on the disk that is measured */
    bool quick;         /* small sizes, to see that it works; goals are not judged */
    int rounds;         /* of `throughput` and `crowd`, of which the middle one counts */
};

/* One file each; `--only NAME` chooses. */
void throughput(struct figures *f);
void crowd(struct figures *f);
void delay(struct figures *f);
void latency(struct figures *f);
void fan_out(struct figures *f);
void loops(struct figures *f);
void sleeping(struct figures *f);
void cancelling(struct figures *f);
void starting(struct figures *f);
void values(struct figures *f);
void given(struct figures *f);
void large_run(struct figures *f);
void stages(struct figures *f);

void must(int rc, const rv_error *err); /* or say why, and abort */
double seconds(void);                   /* monotonic */
double cpu_seconds(void);               /* of this process */
double resident_mb(void);               /* of this process, now */
double peak_mb(void);                   /* of this process, at most so far */
double disk_bytes(const char *store);   /* of the file and its WAL */
const char *store_path(const struct figures *f, const char *name); /* static: until the next call */
void drop_store(const struct figures *f, const char *name);

/* A goal, judged only at full size. */
void goal(struct figures *f, const char *name, double value, const char *unit, bool at_least,
          double bound);
void say(const struct figures *f, const char *fmt, ...) RV_PRINTF(2, 3); /* progress, for people */

/* Run it in a process of its own, so that its memory is its own; what it measures goes to `ret`,
 * which is shared with it. It may end by _exit(0). */
void apart(void (*measure)(struct figures *f, const void *arg, double *ret), struct figures *f,
           const void *arg, double *ret, size_t count);

rv_engine *open_engine(const struct figures *f, const char *store);
void add_workflow(rv_engine *engine, rv_workflow *workflow); /* registers and frees it */
/* Start a run and wait until it has completed; returns the seconds it took. */
double run_once(rv_engine *engine, const char *workflow, const char *input);

enum { CLIENTS = 200 };
/* So many threads, each of which has one run in flight after the other: so many runs in all, or until they are
 * told to end. There is one such crowd at a time. */
void clients_start(rv_engine *engine, const char *workflow, const char *input, int runs);
void clients_stop(void); /* no new runs */
void clients_join(void);

/* Start so many runs, from many threads at once. */
void start_many(const struct figures *f, rv_engine *engine, const char *workflow, int64_t count);

enum { TEN = 10 };
rv_workflow *ten_steps(void); /* "ten": that many no-ops, one after the other */
int no_op(rv_ctx *c);
int many_items(rv_ctx *c); /* [0, …]: as many as the input's /items */

#endif
