/* tables.h: what the files of the simulated store share: its "disk". */
#ifndef RV_STORE_SIMULATED_TABLES_H
#define RV_STORE_SIMULATED_TABLES_H

#include "store/simulated/simulated.h"

struct text { /* owned; at == NULL is "none" */
    char *at;
    size_t len;
};

struct row {
    uint64_t seq;
    struct text facts;
};

struct result {
    struct text key;
    int64_t index;
    struct text json;
};

struct value {
    uint64_t number;
    struct text json;
};

/* A run's row, but for its id. */
struct columns {
    struct text workflow, version, status, input, input_key, error, failed_step, suspension,
        rerun_of;
    int64_t created_ms, started_ms, completed_ms, wake_at_ms;
    bool active, waiting;
};

struct rv__sim_run {
    uint64_t number;
    struct text id;
    struct columns columns;
    struct row *rows;
    size_t row_count, row_cap;
    struct result *results;
    size_t result_count, result_cap;
    size_t results_sorted; /* the first so many are in order */
    uint64_t results_seq;  /* of the last row when there were new ones */
    bool damaged;          /* its row cannot be read */
    struct value *values;  /* by number */
    size_t value_count, value_cap;
    struct text snapshot;
    uint64_t snapshot_seq;
};

struct rv__sim_definition {
    struct rv__sim_definition *next;
    struct text hash, json;
};

struct rv__sim_line {
    uint64_t id;
    struct rv__sim_run *run;
    int64_t at_ms, attempt;
    enum rv__store_level level;
    struct text path, step, message, metadata, kind;
};

static inline struct rv__str view(const struct text *text)
{
    return (struct rv__str){ text->at, text->len };
}

static inline bool finished(const struct rv__sim_run *run)
{
    const struct columns *c = &run->columns;
    return c->completed_ms != 0 && !c->active && c->wake_at_ms == 0;
}

struct rv__sim_run *rv__sim_find(const struct rv__sim_store *sim, struct rv__str id);
void rv__sim_sort_results(struct rv__sim_run *run);
/* The place of (key, index) among the sorted results, or where it would be. */
size_t rv__sim_result_place(const struct rv__sim_run *run, struct rv__str key, int64_t index);
/* The place of a value, or where it would be. */
size_t rv__sim_value_place(const struct rv__sim_run *run, uint64_t number);
void rv__sim_clear(struct rv__sim_store *sim); /* frees all that is on the "disk" */

/* The functions of the table, without the lock, on a store that is alive. */
int rv__sim_commit(struct rv__sim_store *sim, struct rv__store_write *writes, size_t count,
                   rv_error *err);
int rv__sim_define(struct rv__sim_store *sim, struct rv__str hash, struct rv__str json,
                   rv_error *err);
int rv__sim_forget(struct rv__sim_store *sim, const struct rv__str *runs, size_t count,
                   rv_error *err);

int rv__sim_import(struct rv__sim_store *sim, struct rv__str run, rv__store_next_write *next,
                   void *arg, rv_error *err);
int rv__sim_whole(struct rv__sim_store *sim, struct rv__str run,
                  const struct rv__store_visitor *visitor, void *arg, rv_error *err);

int rv__sim_read_definition(struct rv__sim_store *sim, struct rv__str hash,
                            rv__store_visit_text *visit, void *arg, rv_error *err);
int rv__sim_read_run(struct rv__sim_store *sim, struct rv__str id, rv__store_visit_run *visit,
                     void *arg, rv_error *err);
int rv__sim_read_snapshot(struct rv__sim_store *sim, struct rv__str id, rv__store_visit_text *visit,
                          void *arg, rv_error *err);
int rv__sim_read_value(struct rv__sim_store *sim, struct rv__str id, uint64_t number,
                       rv__store_visit_text *visit, void *arg, rv_error *err);
int rv__sim_read_journal(struct rv__sim_store *sim, struct rv__str id, uint64_t after,
                         rv__store_visit_row *visit, void *arg);
int rv__sim_read_results(struct rv__sim_store *sim, struct rv__str id, struct rv__str key,
                         int64_t from, size_t limit, rv__store_visit_result *visit, void *arg);
int rv__sim_read_active(struct rv__sim_store *sim, uint64_t after, size_t limit,
                        rv__store_visit_run *visit, void *arg);
int rv__sim_read_due(struct rv__sim_store *sim, int64_t now_ms, const struct rv__store_place *after,
                     size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err);
int rv__sim_read_finished(struct rv__sim_store *sim, const struct rv__store_place *after,
                          size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err);
int rv__sim_read_oldest_waiting(struct rv__sim_store *sim, size_t limit, rv__store_visit_run *visit,
                                void *arg, rv_error *err);
int64_t rv__sim_next_wake(const struct rv__sim_store *sim, int64_t after_ms);
int rv__sim_read_feed(struct rv__sim_store *sim, uint64_t after, size_t limit,
                      rv__store_visit_feed *visit, void *arg);
int rv__sim_read_list(struct rv__sim_store *sim, const struct rv__store_query *query,
                      rv__store_visit_run *visit, void *arg, struct rv__buf *cursor, rv_error *err);
int rv__sim_read_logs(struct rv__sim_store *sim, const struct rv__store_log_query *query,
                      rv__store_visit_log *visit, void *arg);
int rv__sim_read_counts(struct rv__sim_store *sim, rv__store_visit_count *visit, void *arg,
                        rv_error *err);
void rv__sim_usage(const struct rv__sim_store *sim, struct rv__store_usage *ret);

#endif
