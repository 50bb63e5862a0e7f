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
    int64_t by;                 /* the member that wrote it; 0: there are none */
    enum rv__store_orphan from; /* as in its run, then */
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
    int64_t owner;     /* the member that has it; 0: nobody */
    struct text lacks; /* of one that was given up: what for; none: it was not */
    int64_t handed[8]; /* who gave it up since it went on last; 0: it was given to somebody */
    size_t handed_count;
    bool given;                 /* it was so by the last write */
    enum rv__store_orphan from; /* what became of the one before, when it was last claimed */
};

struct rv__sim_lane {
    int64_t slot;
    enum rv__store_orphan ended; /* STORE_NOBODYS: it lives */
    int64_t since_ms, renewed_ms, lease_ms;
    char workers[RV__STORE_ADDRESS_SIZE]; /* where workers reach it; "": it does not say */
    int place;
    bool dead; /* its process is */
};

struct rv__sim_mark {
    struct text name;
    uint64_t seq, index;
    int64_t slot; /* the member that has it, if that one lives */
};

struct rv__sim_request {
    uint64_t id;
    int64_t slot, at_ms;
    bool taken;
    struct text request, answer;
};

/* What became of a write. */
struct rv__sim_outcome {
    uint64_t seq, number;
    enum rv__store_outcome outcome;
    rv_error why;
};

/* A reader, or an aide. */
struct handle {
    struct rv__store store; /* first */
    struct rv__sim_store *sim;
    struct rv__sim_member *member; /* NULL: it is no member's */
};

struct rv__sim_definition {
    struct rv__sim_definition *next;
    struct text hash, json;
};

struct rv__sim_line_row {
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

int rv__sim_text_copy(struct text *ret, struct rv__str from); /* RV_ENOMEM */
int rv__sim_reserve(void **array, size_t count, size_t *cap, size_t more, size_t size);

/* Take the lock; NULL, without it, if the process is dead. */
struct rv__sim_store *rv__sim_enter(struct rv__store *store, rv_error *err);
int rv__sim_leave(struct rv__sim_store *sim, int rc);
struct rv__sim_member *rv__sim_member_of(struct rv__store *store); /* NULL: it is no member's */
struct rv__sim_lane *rv__sim_lane(const struct rv__sim_store *sim, int64_t slot); /* NULL: gone */
int rv__sim_handle(struct rv__store *of, const struct rv__store_ops *ops, struct rv__store **ret,
                   rv_error *err);
extern const struct rv__store_ops rv__sim_member_ops, rv__sim_aide_ops;

/* The functions of members (member.c). */
int rv__sim_member_commit(struct rv__store *store, struct rv__store_write *writes, size_t count,
                          rv_error *err);
int rv__sim_rejoin(struct rv__store *store, rv_error *err);
int rv__sim_renew(struct rv__store *store, const char *workers, rv_error *err);
int rv__sim_part(struct rv__store *store, rv_error *err);
int64_t rv__sim_member_id(const struct rv__store *store);
int rv__sim_aide(struct rv__store *store, struct rv__store **ret, rv_error *err);
int rv__sim_expire(struct rv__store *aide, size_t *ret, rv_error *err);
int rv__sim_claim(struct rv__store *aide, const struct rv__store_claim *claim,
                  rv__store_visit_claimed *visit, void *arg, rv_error *err);
int rv__sim_claim_run(struct rv__store *aide, int64_t member, struct rv__str run,
                      int64_t *ret_owner, enum rv__store_orphan *ret_from, rv_error *err);
int rv__sim_owner_of(struct rv__store *aide, struct rv__str run, int64_t *ret_owner,
                     bool *ret_lacks, rv_error *err);
int rv__sim_members(struct rv__store *store, bool reachable, rv__store_visit_member *visit,
                    void *arg, rv_error *err);
int rv__sim_ask(struct rv__store *aide, int64_t to, struct rv__str request, uint64_t *ret_id,
                rv_error *err);
int rv__sim_asked(struct rv__store *aide, int64_t member, rv__store_visit_text *visit, void *arg,
                  rv_error *err);
int rv__sim_answer(struct rv__store *aide, uint64_t id, struct rv__str answer, rv_error *err);
int rv__sim_answered(struct rv__store *aide, uint64_t id, bool give_up, rv__store_visit_text *visit,
                     void *arg, rv_error *err);
int rv__sim_await(struct rv__store *aide, int64_t timeout_ms, rv_error *err);
int rv__sim_take_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                       rv_error *err);
int rv__sim_move_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                       rv_error *err);
int rv__sim_marks(struct rv__store *store, rv__store_visit_mark *visit, void *arg, rv_error *err);
void rv__sim_marks_clear(struct rv__sim_store *sim);
void rv__sim_member_close(struct rv__store *store);
void rv__sim_members_clear(struct rv__sim_store *sim);

/* The functions of the table, without the lock, on a store that is alive. `by`: the member that writes; NULL: there
 * are none. */
int rv__sim_commit(struct rv__sim_store *sim, const struct rv__sim_member *by,
                   struct rv__store_write *writes, size_t count, rv_error *err);
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
