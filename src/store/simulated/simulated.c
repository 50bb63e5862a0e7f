/* simulated.c: see simulated.h. The functions of the table: the lock, whether the process is alive,
 * and then the tables themselves (commit.c, read.c).
 *
 * A reader is a handle that leads to the same tables; so is a member, and a member's aide (member.c). */
#include "store/simulated/simulated.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/simulated/tables.h"

static const struct rv__store_ops sim_ops, reader_ops;

static struct rv__sim_store *sim_of(struct rv__store *store)
{
    if (store->ops == &sim_ops)
        return (struct rv__sim_store *)store;
    return store->ops == &rv__sim_member_ops ? ((struct rv__sim_member *)store)->sim
                                             : ((struct handle *)store)->sim;
}

struct rv__sim_member *rv__sim_member_of(struct rv__store *store)
{
    if (store->ops == &sim_ops)
        return NULL;
    return store->ops == &rv__sim_member_ops ? (struct rv__sim_member *)store
                                             : ((struct handle *)store)->member;
}

struct rv__sim_store *rv__sim_enter(struct rv__store *store, rv_error *err)
{
    struct rv__sim_store *sim = sim_of(store);
    const struct rv__sim_member *member = rv__sim_member_of(store);
    int rc = pthread_mutex_lock(&sim->lock);
    assert(rc == 0); /* EDEADLK: a visitor calls the store that called it */
    (void)rc;
    if (!sim->dead && (member == NULL || !member->dead))
        return sim;
    (void)pthread_mutex_unlock(&sim->lock);
    (void)rv__fail(err, RV_ESTORE, "the simulated process is dead");
    return NULL;
}

int rv__sim_leave(struct rv__sim_store *sim, int rc)
{
    (void)pthread_mutex_unlock(&sim->lock); /* ours: it cannot fail */
    return rc;
}

/* ------------------------------------------------------------------------------- writing --- */

static int sim_commit(struct rv__store *store, struct rv__store_write *writes, size_t count,
                      rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    if (sim == NULL)
        return RV_ESTORE;
    if (count == 0)
        return rv__sim_leave(sim, RV_OK);
    int64_t start_ns = rv__mono_ns(rv__clock_real());
    int rc = rv__sim_commit(sim, NULL, writes, count, err);
    sim->last_commit_ns = rv__mono_ns(rv__clock_real()) - start_ns;
    return rv__sim_leave(sim, rc);
}

static int sim_define(struct rv__store *store, struct rv__str hash, struct rv__str json,
                      rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE : rv__sim_leave(sim, rv__sim_define(sim, hash, json, err));
}

static int sim_forget(struct rv__store *store, const struct rv__str *runs, size_t count,
                      bool *ret_more, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    if (sim == NULL)
        return RV_ESTORE;
    int rc = rv__sim_forget(sim, runs, count, err);
    if (rc == RV_OK)
        *ret_more = false;
    return rv__sim_leave(sim, rc);
}

static int sim_import(struct rv__store *store, struct rv__str run, rv__store_next_write *next,
                      void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE : rv__sim_leave(sim, rv__sim_import(sim, run, next, arg, err));
}

static int refuse(rv_error *err)
{
    return rv__fail(err, RV_ESTATE, "the store was opened for reading only");
}

static int refuse_commit(struct rv__store *store, struct rv__store_write *writes, size_t count,
                         rv_error *err)
{
    (void)store;
    (void)writes;
    (void)count;
    return refuse(err);
}

static int refuse_define(struct rv__store *store, struct rv__str hash, struct rv__str json,
                         rv_error *err)
{
    (void)store;
    (void)hash;
    (void)json;
    return refuse(err);
}

static int refuse_forget(struct rv__store *store, const struct rv__str *runs, size_t count,
                         bool *ret_more, rv_error *err)
{
    (void)store;
    (void)runs;
    (void)count;
    (void)ret_more;
    return refuse(err);
}

static int refuse_import(struct rv__store *store, struct rv__str run, rv__store_next_write *next,
                         void *arg, rv_error *err)
{
    (void)store;
    (void)run;
    (void)next;
    (void)arg;
    return refuse(err);
}

/* ------------------------------------------------------------------------------- reading --- */

static int sim_definition(struct rv__store *store, struct rv__str hash, rv__store_visit_text *visit,
                          void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE
                       : rv__sim_leave(sim, rv__sim_read_definition(sim, hash, visit, arg, err));
}

static int sim_run(struct rv__store *store, struct rv__str id, rv__store_visit_run *visit,
                   void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE : rv__sim_leave(sim, rv__sim_read_run(sim, id, visit, arg, err));
}

static int sim_snapshot(struct rv__store *store, struct rv__str id, rv__store_visit_text *visit,
                        void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE
                       : rv__sim_leave(sim, rv__sim_read_snapshot(sim, id, visit, arg, err));
}

static int sim_value(struct rv__store *store, struct rv__str id, uint64_t number,
                     rv__store_visit_text *visit, void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE
                       : rv__sim_leave(sim, rv__sim_read_value(sim, id, number, visit, arg, err));
}

static int sim_journal(struct rv__store *store, struct rv__str id, uint64_t after,
                       rv__store_visit_row *visit, void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE
                       : rv__sim_leave(sim, rv__sim_read_journal(sim, id, after, visit, arg));
}

static int sim_results(struct rv__store *store, struct rv__str id, struct rv__str key, int64_t from,
                       size_t limit, rv__store_visit_result *visit, void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL
               ? RV_ESTORE
               : rv__sim_leave(sim, rv__sim_read_results(sim, id, key, from, limit, visit, arg));
}

static int sim_results_seq(struct rv__store *store, struct rv__str id, uint64_t *ret, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    if (sim == NULL)
        return RV_ESTORE;
    const struct rv__sim_run *run = rv__sim_find(sim, id);
    *ret = run != NULL ? run->results_seq : 0;
    return rv__sim_leave(sim, RV_OK);
}

static int sim_active(struct rv__store *store, uint64_t after, size_t limit,
                      rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE
                       : rv__sim_leave(sim, rv__sim_read_active(sim, after, limit, visit, arg));
}

static int sim_due(struct rv__store *store, int64_t now_ms, const struct rv__store_place *after,
                   size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL
               ? RV_ESTORE
               : rv__sim_leave(sim, rv__sim_read_due(sim, now_ms, after, limit, visit, arg, err));
}

static int sim_next_wake(struct rv__store *store, int64_t after_ms, int64_t *ret, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    if (sim == NULL)
        return RV_ESTORE;
    *ret = rv__sim_next_wake(sim, after_ms);
    return rv__sim_leave(sim, RV_OK);
}

static int sim_feed(struct rv__store *store, uint64_t after, size_t limit,
                    rv__store_visit_feed *visit, void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE
                       : rv__sim_leave(sim, rv__sim_read_feed(sim, after, limit, visit, arg));
}

static int sim_list(struct rv__store *store, const struct rv__store_query *query,
                    rv__store_visit_run *visit, void *arg, struct rv__buf *cursor, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE
                       : rv__sim_leave(sim, rv__sim_read_list(sim, query, visit, arg, cursor, err));
}

static int sim_logs(struct rv__store *store, const struct rv__store_log_query *query,
                    rv__store_visit_log *visit, void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE : rv__sim_leave(sim, rv__sim_read_logs(sim, query, visit, arg));
}

static int sim_counts(struct rv__store *store, rv__store_visit_count *visit, void *arg,
                      rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE : rv__sim_leave(sim, rv__sim_read_counts(sim, visit, arg, err));
}

static int sim_finished(struct rv__store *store, const struct rv__store_place *after, size_t limit,
                        rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL
               ? RV_ESTORE
               : rv__sim_leave(sim, rv__sim_read_finished(sim, after, limit, visit, arg, err));
}

static int sim_oldest_waiting(struct rv__store *store, size_t limit, rv__store_visit_run *visit,
                              void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL
               ? RV_ESTORE
               : rv__sim_leave(sim, rv__sim_read_oldest_waiting(sim, limit, visit, arg, err));
}

static int sim_whole(struct rv__store *store, struct rv__str run,
                     const struct rv__store_visitor *visitor, void *arg, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    return sim == NULL ? RV_ESTORE : rv__sim_leave(sim, rv__sim_whole(sim, run, visitor, arg, err));
}

static int sim_backup(struct rv__store *store, const char *path, rv__store_progress *progress,
                      void *arg, rv_error *err)
{
    (void)store;
    (void)path;
    (void)progress;
    (void)arg;
    return rv__fail(err, RV_ESTATE, "a test's store is none that a file could hold");
}

static int sim_usage(struct rv__store *store, struct rv__store_usage *ret, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    if (sim == NULL)
        return RV_ESTORE;
    rv__sim_usage(sim, ret);
    return rv__sim_leave(sim, RV_OK);
}

static void sim_stats(struct rv__store *store, struct rv__store_stats *ret)
{
    struct rv__sim_store *sim = sim_of(store);
    (void)pthread_mutex_lock(&sim->lock);
    *ret = (struct rv__store_stats){ .commits = sim->commits,
                                     .failures = sim->failures,
                                     .refused = sim->refused,
                                     .last_commit_ns = sim->last_commit_ns };
    (void)rv__sim_leave(sim, 0);
}

/* ------------------------------------------------------------------------------- handles --- */

int rv__sim_handle(struct rv__store *of, const struct rv__store_ops *ops, struct rv__store **ret,
                   rv_error *err)
{
    struct handle *handle = rv__zalloc(1, sizeof *handle);
    if (handle == NULL)
        return rv__nomem(err);
    *handle = (struct handle){ { ops }, sim_of(of), rv__sim_member_of(of) };
    *ret = &handle->store;
    return RV_OK;
}

static int sim_reader(struct rv__store *store, struct rv__store **ret, rv_error *err)
{
    return rv__sim_handle(store, &reader_ops, ret, err);
}

static void handle_close(struct rv__store *store)
{
    rv__free((struct handle *)store);
}

static int refuse_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                        rv_error *err)
{
    (void)store;
    (void)marks;
    (void)count;
    return refuse(err);
}

static void sim_close(struct rv__store *store)
{
    (void)store; /* the disk is the test's: rv__sim_store_done() */
}

#define READING                                                                                 \
    .definition = sim_definition, .run = sim_run, .snapshot = sim_snapshot, .value = sim_value, \
    .journal = sim_journal, .results = sim_results, .results_seq = sim_results_seq,             \
    .active = sim_active, .due = sim_due, .next_wake = sim_next_wake, .feed = sim_feed,         \
    .list = sim_list, .logs = sim_logs, .counts = sim_counts, .finished = sim_finished,         \
    .oldest_waiting = sim_oldest_waiting, .usage = sim_usage, .stats = sim_stats,               \
    .marks = rv__sim_marks, .whole = sim_whole, .backup = sim_backup, .reader = sim_reader

static const struct rv__store_ops sim_ops = {
    .name = "simulated",
    .commit = sim_commit,
    .define = sim_define,
    .forget = sim_forget,
    .import = sim_import,
    .take_marks = rv__sim_take_marks,
    .move_marks = rv__sim_move_marks,
    READING,
    .close = sim_close,
};

static const struct rv__store_ops reader_ops = {
    .name = "simulated",
    .commit = refuse_commit,
    .define = refuse_define,
    .forget = refuse_forget,
    .import = refuse_import,
    .take_marks = refuse_marks,
    .move_marks = refuse_marks,
    .members = rv__sim_members,
    READING,
    .close = handle_close,
};

const struct rv__store_ops rv__sim_member_ops = {
    .name = "simulated",
    .commit = rv__sim_member_commit,
    .define = sim_define,
    .forget = sim_forget,
    .import = sim_import,
    .take_marks = rv__sim_take_marks,
    .move_marks = rv__sim_move_marks,
    .rejoin = rv__sim_rejoin,
    .renew = rv__sim_renew,
    .part = rv__sim_part,
    .member = rv__sim_member_id,
    .aide = rv__sim_aide,
    .members = rv__sim_members,
    READING,
    .close = rv__sim_member_close,
};

const struct rv__store_ops rv__sim_aide_ops = {
    .name = "simulated",
    .commit = refuse_commit,
    .define = refuse_define,
    .forget = refuse_forget,
    .import = refuse_import,
    .take_marks = refuse_marks,
    .move_marks = refuse_marks,
    .expire = rv__sim_expire,
    .claim = rv__sim_claim,
    .claim_run = rv__sim_claim_run,
    .owner = rv__sim_owner_of,
    .members = rv__sim_members,
    .ask = rv__sim_ask,
    .asked = rv__sim_asked,
    .answer = rv__sim_answer,
    .answered = rv__sim_answered,
    .await = rv__sim_await,
    READING,
    .close = handle_close,
};

void rv__sim_store_init(struct rv__sim_store *sim)
{
    pthread_mutexattr_t attr;
    *sim = (struct rv__sim_store){ .store = { &sim_ops } };
    /* Neither can fail on Linux; the type makes a visitor's mistake an assertion, not a hang. */
    (void)pthread_mutexattr_init(&attr);
    (void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    (void)pthread_mutex_init(&sim->lock, &attr);
    (void)pthread_mutexattr_destroy(&attr);
}

void rv__sim_store_done(struct rv__sim_store *sim)
{
    rv__sim_clear(sim);
    (void)pthread_mutex_destroy(&sim->lock);
    rv__sim_store_init(sim);
}

void rv__sim_store_damage(struct rv__sim_store *sim, struct rv__str run)
{
    struct rv__sim_run *found = rv__sim_find(sim, run);
    if (found != NULL)
        found->damaged = true;
}

void rv__sim_store_restart(struct rv__sim_store *sim)
{
    sim->dead = false;
    sim->fate = SIM_STORE_WORKS;
}
