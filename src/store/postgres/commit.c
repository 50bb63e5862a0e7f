/* commit.c: transactions of the PostgreSQL store, the outcome of each write, and answers that are lost.
 *
 * A commit is one pipeline: BEGIN, the guard, the place in the feed, the writes as arrays, COMMIT. One trip, one
 * sync. The guard is the lane's row: it goes from batch n-1 to n, under our epoch, or the transaction ends there.
 * That is three things in one:
 *   - the fence: whoever lost the lane to another process has the wrong epoch, and writes nothing;
 *   - no transaction twice: a repeated one finds batch n there;
 *   - the answer to a lost answer: the batch of the lane says whether the transaction is on disk.
 * Beside it, the journal's index over (run, prev) lets each row have one successor, whoever writes.
 *
 * Usually nothing is refused. If something is, the server ends the transaction at the first such statement; then
 * all is written again with a savepoint before each write, and what fails there is refused alone (ADR 0019). */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

enum {
    TRIES =
        10, /* of a transaction that the server ended for another one's sake, or with the connection */
    CONFLICT_PAUSE_MS = 5,
    DEFINE_TRIES = 3,
    LOSS_WAIT_MS = 3000, /* for another connection, to ask what became of it */
    LOSS_PAUSE_MS = 25,
};

int rv__pg_refuse_reader(rv_error *err)
{
    return rv__fail(err, RV_ESTATE, "the store was opened for reading only");
}

/* ------------------------------------------------------------------------------- known runs --- */

static struct rv__pg_known *known_place(struct rv__pg_writer *writer, uint64_t number)
{
    return &writer->known[number & (PG_KNOWN_RUNS - 1)];
}

/* NULL: it has not been met lately. */
static const struct rv__pg_known *known_of(struct rv__pg_writer *writer, uint64_t number)
{
    const struct rv__pg_known *place = known_place(writer, number);
    return number != 0 && place->number == number ? place : NULL;
}

static void known_put(struct rv__pg_writer *writer, uint64_t number, uint64_t last_seq)
{
    *known_place(writer, number) = (struct rv__pg_known){ number, last_seq };
}

void rv__pg_known_drop(struct rv__pg_writer *writer, uint64_t number)
{
    struct rv__pg_known *place = known_place(writer, number);
    if (place->number == number)
        place->number = 0;
}

/* ----------------------------------------------------------------------------- transactions --- */

int rv__pg_tx_begin(struct rv__pg *pg, rv_error *err)
{
    struct rv__pg_params *params = &pg->params;
    int rc = rv__pg_pipe_begin(&pg->conn, err);
    if (rc < 0)
        return rc;
    rv__pg_pipe_text(&pg->conn, "BEGIN");
    rv__pg_params_reset(params);
    rv__pg_add_int4(params, pg->writer.slot);
    rv__pg_add_int(params, pg->writer.epoch);
    rv__pg_add_int(params, pg->writer.batch + 1);
    rv__pg_pipe_send(&pg->conn, PG_GUARD, params);
    rv__pg_params_reset(params);
    rv__pg_add_int4(params, pg->conn.class_id);
    rv__pg_pipe_send(&pg->conn, PG_PLACE, params);
    rv__pg_params_reset(params);
    return RV_OK;
}

void rv__pg_tx_rollback(struct rv__pg *pg)
{
    if (pg->conn.pg == NULL)
        return; /* it ended with the connection */
    if (rv__pg_exec(&pg->conn, "ROLLBACK", NULL) < 0)
        rv__pg_conn_drop(&pg->conn);
}

int rv__pg_tx_fail(struct rv__pg *pg, const struct rv__pg_answer *answer, rv_error *err)
{
    int code = answer->why.code;
    if (!answer->lost && answer->failed == PG_GUARD && rv__pg_state_is(answer->state, "22012")) {
        pg->writer.fenced = true;
        return rv__fail(err, RV_EGONE,
                        pg->lease_ms > 0 ? "this member's lease is over: others have its runs"
                                         : "another process writes to this store now: nothing more "
                                           "is written here");
    }
    if (rv__pg_state_is(answer->state, "25006"))
        rv__pg_conn_drop(&pg->conn); /* a standby by now: the next connection finds the primary */
    return rv__fail(err, code == RV_EPARSE ? RV_ESTORE : code, "%s", answer->why.message);
}

/* The connection was lost after COMMIT may have arrived. 1: the batch is on disk, 0: it is not; RV_ESTORE: nobody
 * can tell at present. */
static int find_out(struct rv__pg *pg, int64_t batch, rv_error *err)
{
    int64_t until_ms = rv__mono_ms(rv__clock_real()) + LOSS_WAIT_MS;
    int rc = rv__pg_ready(pg, err);
    while (rc == RV_ESTORE && rv__mono_ms(rv__clock_real()) < until_ms) {
        rv__clock_sleep_ms(LOSS_PAUSE_MS);
        rc = rv__pg_ready(pg, err);
    }
    return rc < 0 ? rc : pg->writer.batch == batch;
}

int rv__pg_tx_commit(struct rv__pg *pg, rv_error *err)
{
    struct rv__pg_answer answer;
    int64_t batch = pg->writer.batch + 1;
    int rc = rv__pg_pipe_begin(&pg->conn, err);
    if (rc < 0)
        return rc;
    rv__pg_pipe_text(&pg->conn, "COMMIT");
    rv__pg_pipe_end(&pg->conn, NULL, NULL, &answer);
    if (!answer.lost && answer.failed_at == SIZE_MAX) {
        pg->writer.batch = batch;
        return RV_OK;
    }
    if (!answer.lost) {
        rv__pg_tx_rollback(pg);
        return rv__pg_tx_fail(pg, &answer, err);
    }
    rc = find_out(pg, batch, err);
    if (rc == 1)
        return RV_OK;
    if (rc == RV_ESTORE) {
        pg->writer.unsure = true;
        pg->writer.unsure_batch = batch;
        pg->writer.unsure_mark = 0;
    }
    return rc == 0 ? rv__fail(err, RV_ESTORE, "%s", answer.why.message) : rc;
}

/* ---------------------------------------------------------------------------------- outcomes --- */

static size_t longest(const struct rv__store_write *w)
{
    size_t max = w->facts.len > w->snapshot.len ? w->facts.len : w->snapshot.len;
    if (w->row != NULL && max < w->row->input.len)
        max = w->row->input.len;
    for (size_t i = 0; i < w->result_count; i++)
        max = max < w->results[i].json.len ? w->results[i].json.len : max;
    for (size_t i = 0; i < w->value_count; i++)
        max = max < w->values[i].json.len ? w->values[i].json.len : max;
    for (size_t i = 0; i < w->log_count; i++)
        max = max < w->logs[i].message.len ? w->logs[i].message.len : max;
    return max;
}

int rv__pg_check_write(const struct rv__pg *pg, const struct rv__store_write *write, rv_error *err)
{
    int rc = rv__store_check_write(write, err);
    size_t max = rc == RV_OK ? longest(write) : 0;
    if (max > pg->max_bytes)
        rc = rv__fail(err, RV_ETOOBIG, "a text of run '%.*s' is too long: %zu bytes, at most %zu",
                      RV__ARG(write->run), max, pg->max_bytes);
    return rc;
}

static int fail_absent(const struct rv__store_write *write, rv_error *err)
{
    return rv__fail(err, RV_EINVAL, "there is no run '%.*s'", RV__ARG(write->run));
}

/* The n-th of the values in "Key (a, b, c)=(1, \x6b, 3) already exists.", from 0. */
static struct rv__str detail_value(const char *detail, int n)
{
    const char *at = strstr(detail, ")=(");
    if (at == NULL)
        return rv__str("?");
    at += 3;
    while (n-- > 0 && (at = strstr(at, ", ")) != NULL)
        at += 2;
    return at == NULL ? rv__str("?") : (struct rv__str){ at, strcspn(at, ",)") };
}

/* Bytes as PostgreSQL shows them (\x6b), as a text that fits. */
static void unhex(struct rv__str hex, char *ret, size_t size)
{
    size_t len = 0;
    for (size_t i = 2; i + 1 < hex.len && len + 1 < size; i += 2) {
        char pair[3] = { hex.at[i], hex.at[i + 1], '\0' };
        ret[len++] = (char)strtol(pair, NULL, 16);
    }
    ret[len] = '\0';
}

static int fail_begun(const struct rv__store_write *write, rv_error *err)
{
    return rv__fail(err, RV_EEXIST, "there is a run '%.*s' already", RV__ARG(write->run));
}

static int fail_exists(const struct rv__pg_answer *answer, const struct rv__store_write *write,
                       rv_error *err)
{
    char key[96];
    if (strcmp(answer->table, "results") == 0) {
        unhex(detail_value(answer->detail, 1), key, sizeof key);
        return rv__fail(err, RV_EINVAL, "run '%.*s' has a result '%s' %.*s already",
                        RV__ARG(write->run), key, RV__ARG(detail_value(answer->detail, 2)));
    }
    if (strcmp(answer->table, "run_values") == 0)
        return rv__fail(err, RV_EINVAL, "run '%.*s' has a value %.*s already", RV__ARG(write->run),
                        RV__ARG(detail_value(answer->detail, 1)));
    if (strncmp(answer->table, "journal", 7) == 0)
        return rv__fail(err, RV_ESTATE, "another process has written run '%.*s' meanwhile",
                        RV__ARG(write->run));
    return fail_begun(write, err);
}

/* A statement of a write fails for a reason that comes again. */
static bool is_lasting(const struct rv__pg_answer *answer)
{
    return !answer->lost && answer->failed_at != SIZE_MAX && answer->failed != PG_GUARD &&
           answer->failed != PG_PLACE &&
           (rv__pg_state_is(answer->state, "22") || rv__pg_state_is(answer->state, "23") ||
            rv__pg_state_is(answer->state, "54") || rv__pg_state_is(answer->state, "XX00"));
}

bool rv__pg_refusal(const struct rv__pg_answer *answer, const struct rv__store_write *write,
                    rv_error *ret_why)
{
    if (!is_lasting(answer))
        return false;
    if (rv__pg_state_is(answer->state, "23505"))
        (void)fail_exists(answer, write, ret_why);
    else if (rv__pg_state_is(answer->state, "23502") || rv__pg_state_is(answer->state, "22012"))
        (void)fail_absent(write, ret_why);
    else if (rv__pg_state_is(answer->state, "54"))
        (void)rv__fail(ret_why, RV_ETOOBIG, "a text of run '%.*s' is too long: %.200s",
                       RV__ARG(write->run), answer->why.message);
    else if (rv__pg_state_is(answer->state, "XX00"))
        *ret_why = answer->why;
    else
        (void)rv__fail(ret_why, RV_EINVAL, "run '%.*s': %.200s", RV__ARG(write->run),
                       answer->why.message);
    return true;
}

/* A transaction that the server ended for another one's sake: it may go well next time. */
static bool is_conflict(const struct rv__pg_answer *answer)
{
    return !answer->lost && rv__pg_state_is(answer->state, "40");
}

/* ----------------------------------------------------------------------------------- commits --- */

/* A commit on its way. */
struct commit {
    struct rv__pg *pg;
    struct rv__pg_batch batch;
    size_t count;
};

/* What is in it, so that the same one can be told when it comes again. */
static uint64_t mark_of(const struct rv__store_write *writes, size_t count)
{
    uint64_t mark = RV__HASH_START ^ count;
    for (size_t i = 0; i < count; i++) {
        const struct rv__store_write *w = &writes[i];
        uint64_t figures[] = { w->result_count,  w->value_count,       w->log_count,
                               w->snapshot.len,  (uint64_t)w->outcome, w->row != NULL,
                               w->touch != NULL, w->facts.len };
        mark = rv__str_hash(mark, w->run);
        mark = rv__str_hash(mark, w->facts);
        mark = rv__str_hash(mark, (struct rv__str){ (const char *)figures, sizeof figures });
    }
    return mark;
}

/* The runs that are not known, or all of them: where they are and where their journals end. */
static int look_up(struct commit *c, bool all, rv_error *err)
{
    struct rv__pg_params *params = &c->pg->params;
    size_t asked = 0;
    rv__pg_params_reset(params);
    (void)rv__pg_add_array(params, PG_BYTEA);
    for (size_t i = 0; i < c->count; i++) {
        struct rv__pg_item *item = &c->batch.items[i];
        bool wanted = c->batch.writes[i].outcome == STORE_WRITTEN &&
                      (all || (item->number == 0 && !item->is_new));
        if (wanted)
            *item = (struct rv__pg_item){ .number = 0 };
        asked += wanted;
        /* Every write has its place in the array, so that the answer's is the write's. */
        rv__pg_put_str(params, 0, wanted ? c->batch.writes[i].run : (struct rv__str){ NULL, 0 });
    }
    if (asked == 0)
        return RV_OK;
    int rc = rv__pg_params_ready(params, err);
    if (rc < 0)
        return rc;
    rv_error why = { 0, "" };
    PGresult *result = rv__pg_query(&c->pg->conn, PG_FIND_RUNS, params, &why);
    if (result == NULL)
        return rv__fail(err, why.code == RV_EPARSE ? RV_ESTORE : why.code, "%s", why.message);
    for (int row = 0; row < PQntuples(result); row++) {
        size_t at = (size_t)rv__pg_int_at(result, row, 0) - 1;
        if (at < c->count)
            c->batch.items[at] = (struct rv__pg_item){
                .number = (uint64_t)rv__pg_int_at(result, row, 1),
                .last_seq = (uint64_t)rv__pg_int_at(result, row, 2)
            };
    }
    PQclear(result);
    return RV_OK;
}

static void refuse(struct rv__store_write *write, rv_error *err)
{
    write->outcome = STORE_REFUSED;
    write->why = *err;
}

/* What a look at each write says, without the database. */
static void check_all(struct commit *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct rv__store_write *w = &c->batch.writes[i];
        rv_error why = { 0, "" };
        w->outcome = STORE_WRITTEN;
        w->why = (rv_error){ .code = 0 };
        if (rv__pg_check_write(c->pg, w, &why) < 0)
            refuse(w, &why);
    }
}

/* Which run each write is about. What is not known is looked up; a run with a row and no number is taken
 * for a new one, unless `all` are to be looked up. */
static int resolve(struct commit *c, bool all, rv_error *err)
{
    for (size_t i = 0; i < c->count && !all; i++) {
        const struct rv__store_write *w = &c->batch.writes[i];
        const struct rv__pg_known *known = known_of(&c->pg->writer, w->number);
        c->batch.items[i] = (struct rv__pg_item){ .number = known != NULL ? w->number : 0,
                                                  .last_seq = known != NULL ? known->last_seq : 0,
                                                  .is_new = w->number == 0 && w->row != NULL };
    }
    int rc = look_up(c, all, err);
    for (size_t i = 0; i < c->count && rc == RV_OK; i++) {
        struct rv__store_write *w = &c->batch.writes[i];
        struct rv__pg_item *item = &c->batch.items[i];
        const struct rv__pg_known *known = known_of(&c->pg->writer, item->number);
        rv_error why;
        if (w->outcome != STORE_WRITTEN || item->is_new)
            continue;
        if (w->begins && item->number != 0) {
            (void)fail_begun(w, &why);
            refuse(w, &why);
            continue;
        }
        if (w->after != 0 || known != NULL) /* what was decided on: more than that is another's */
            item->last_seq = w->after != 0 ? w->after : known->last_seq;
        if (item->number == 0 && w->row != NULL && w->number == 0) {
            item->is_new = true;
        } else if (item->number == 0) {
            (void)fail_absent(w, &why);
            refuse(w, &why);
        }
    }
    return rc;
}

static bool has_work(const struct commit *c)
{
    bool work = false;
    for (size_t i = 0; i < c->count && !work; i++)
        work = c->batch.writes[i].outcome == STORE_WRITTEN ||
               c->batch.writes[i].definition_count > 0;
    return work;
}

/* It is on disk: tell the caller the numbers, and remember where the journals end. */
static void land(struct commit *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct rv__store_write *w = &c->batch.writes[i];
        const struct rv__pg_item *item = &c->batch.items[i];
        bool written = w->outcome == STORE_WRITTEN;
        w->seq = written ? item->seq : 0;
        c->pg->writer.stats.refused += !written;
        if (!written)
            continue;
        w->number = item->number;
        known_put(&c->pg->writer, item->number, item->seq != 0 ? item->seq : item->last_seq);
    }
}

/* The batch is on disk, and its answer was lost: the numbers are what is there now. */
static int land_unheard(struct commit *c, rv_error *err)
{
    int rc = look_up(c, true, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < c->count; i++)
        if (!rv__str_none(c->batch.writes[i].facts))
            c->batch.items[i].seq = c->batch.items[i].last_seq;
    land(c);
    return RV_OK;
}

/* The transaction as one pipeline. RV_OK: the answer is in *ret, and says whether it went well. */
static int send_all(struct commit *c, struct rv__pg_answer *ret, rv_error *err)
{
    struct rv__pg *pg = c->pg;
    int rc = rv__pg_tx_begin(pg, err);
    if (rc < 0)
        return rc;
    rc = rv__pg_send_definitions(pg, c->batch.writes, c->count, err);
    if (rc == RV_OK)
        rc = rv__pg_send_writes(pg, &c->batch, 0, c->count, err);
    if (rc == RV_OK)
        rv__pg_pipe_text(&pg->conn, "COMMIT");
    rv__pg_pipe_end(&pg->conn, rv__pg_take_numbers, &c->batch, ret);
    if (!ret->lost && (rc < 0 || ret->failed_at != SIZE_MAX))
        rv__pg_tx_rollback(pg);
    return rc;
}

/* One write behind a savepoint. */
static int send_one(struct commit *c, size_t i, rv_error *err)
{
    struct rv__pg *pg = c->pg;
    struct rv__pg_answer answer;
    rv_error why;
    int rc = rv__pg_pipe_begin(&pg->conn, err);
    if (rc < 0)
        return rc;
    rv__pg_pipe_text(&pg->conn, "SAVEPOINT w");
    rc = rv__pg_send_writes(pg, &c->batch, i, i + 1, err);
    rv__pg_pipe_end(&pg->conn, rv__pg_take_numbers, &c->batch, &answer);
    if (rc < 0)
        return rc;
    if (!answer.lost && answer.failed_at == SIZE_MAX)
        return RV_OK;
    if (!rv__pg_refusal(&answer, &c->batch.writes[i], &why))
        return rv__pg_tx_fail(pg, &answer, err);
    refuse(&c->batch.writes[i], &why);
    rv__pg_known_drop(&pg->writer, c->batch.items[i].number);
    return rv__pg_exec(&pg->conn, "ROLLBACK TO w", err);
}

/* The slow way: who is to be refused? Ends with the transaction open, or rolled back if it fails. */
static int send_each(struct commit *c, rv_error *err)
{
    struct rv__pg *pg = c->pg;
    struct rv__pg_answer answer;
    int rc = rv__pg_tx_begin(pg, err);
    if (rc < 0)
        return rc;
    rc = rv__pg_send_definitions(pg, c->batch.writes, c->count, err);
    rv__pg_pipe_end(&pg->conn, NULL, NULL, &answer);
    if (rc == RV_OK && (answer.lost || answer.failed_at != SIZE_MAX))
        rc = rv__pg_tx_fail(pg, &answer, err);
    for (size_t i = 0; i < c->count && rc == RV_OK; i++)
        if (c->batch.writes[i].outcome == STORE_WRITTEN)
            rc = send_one(c, i, err);
    if (rc < 0)
        rv__pg_tx_rollback(pg);
    return rc;
}

/* Remember that nobody knows yet whether it is on disk. */
static int leave_unsure(struct commit *c, int64_t batch)
{
    struct rv__pg_writer *writer = &c->pg->writer;
    writer->unsure = true;
    writer->unsure_batch = batch;
    writer->unsure_mark = mark_of(c->batch.writes, c->count);
    return RV_ESTORE;
}

static int commit_slowly(struct commit *c, rv_error *err)
{
    int64_t batch = c->pg->writer.batch + 1;
    int rc = resolve(c, true, err);
    if (rc == RV_OK)
        rc = send_each(c, err);
    if (rc < 0)
        return rc;
    rc = rv__pg_tx_commit(c->pg, err);
    if (rc == RV_OK)
        land(c);
    else if (c->pg->writer.unsure)
        (void)leave_unsure(c, batch);
    return rc;
}

/* A failure before COMMIT was sent. 1: the connection was lost, so it may go well over another one. */
static int lost_early(const struct commit *c, int rc)
{
    return rc == RV_ESTORE && c->pg->conn.pg == NULL && !c->pg->writer.unsure ? 1 : rc;
}

/* One try. 1: try again. */
static int try_commit(struct commit *c, rv_error *err)
{
    struct rv__pg *pg = c->pg;
    struct rv__pg_answer answer;
    int64_t batch = pg->writer.batch + 1;
    int rc = resolve(c, false, err);
    if (rc < 0 || !has_work(c)) {
        if (rc == RV_OK)
            land(c);
        return lost_early(c, rc);
    }
    rc = send_all(c, &answer, err);
    if (rc < 0)
        return lost_early(c, rc);
    if (!answer.lost && answer.failed_at == SIZE_MAX) {
        pg->writer.batch = batch;
        land(c);
        return RV_OK;
    }
    if (answer.lost) {
        rc = find_out(pg, batch, err);
        if (rc == RV_ESTORE)
            return leave_unsure(c, batch);
        if (rc == 1) /* if the next connection is lost, too, the same commit looks again */
            return land_unheard(c, err) < 0 ? leave_unsure(c, batch) : RV_OK;
        return rc < 0 ? rc : 1;
    }
    if (is_conflict(&answer)) {
        (void)rv__pg_tx_fail(pg, &answer, err);
        rv__clock_sleep_ms(CONFLICT_PAUSE_MS);
        return 1;
    }
    return is_lasting(&answer) ? lost_early(c, commit_slowly(c, err))
                               : rv__pg_tx_fail(pg, &answer, err);
}

/* Was the last answer lost? Then first see what became of it. 1: it was this very commit, and it is on disk. */
static int settle(struct commit *c, rv_error *err)
{
    struct rv__pg_writer *writer = &c->pg->writer;
    if (!writer->unsure)
        return 0;
    bool same = writer->unsure_mark == mark_of(c->batch.writes, c->count);
    int rc = rv__pg_ready(c->pg, err);
    if (rc < 0)
        return rc;
    if (writer->batch == writer->unsure_batch && same)
        rc = land_unheard(c, err) < 0 ? RV_ESTORE : 1;
    if (rc >= 0)
        writer->unsure = false;
    if (rc == 0) /* whatever was known of the runs in it may be out of date */
        memset(writer->known, 0, PG_KNOWN_RUNS * sizeof *writer->known);
    return rc;
}

static int commit_all(struct commit *c, rv_error *err)
{
    int rc = settle(c, err);
    if (rc != 0)
        return rc < 0 ? rc : RV_OK;
    rc = 1;
    for (int tries = 0; rc == 1 && tries < TRIES; tries++) {
        check_all(c);
        rc = rv__pg_ready(c->pg, err);
        if (rc == RV_OK)
            rc = try_commit(c, err);
    }
    return rc == 1 ? RV_ESTORE : rc;
}

int rv__pg_commit(struct rv__store *store, struct rv__store_write *writes, size_t count,
                  rv_error *err)
{
    struct rv__pg *pg = rv__pg_of(store);
    rv_error why = { 0, "" };
    if (pg->read_only)
        return rv__pg_refuse_reader(err);
    if (count == 0)
        return RV_OK;
    int64_t start_ns = rv__mono_ns(rv__clock_real());
    struct commit c = { .pg = pg, .count = count };
    c.batch.writes = writes;
    c.batch.items = rv__zalloc(count, sizeof *c.batch.items);
    int rc = c.batch.items != NULL ? commit_all(&c, &why) : rv__nomem(&why);
    rv__free(c.batch.items);
    pg->writer.stats.commits += rc == RV_OK;
    pg->writer.stats.failures += rc < 0;
    pg->writer.stats.last_commit_ns = rv__mono_ns(rv__clock_real()) - start_ns;
    if (rc < 0 && err != NULL) {
        *err = why;
        err->code = rc;
    }
    return rc;
}

int rv__pg_define(struct rv__store *store, struct rv__str hash, struct rv__str json, rv_error *err)
{
    struct rv__pg *pg = rv__pg_of(store);
    int rc = RV_ESTORE;
    if (pg->read_only)
        return rv__pg_refuse_reader(err);
    for (int tries = 0; rc == RV_ESTORE && tries < DEFINE_TRIES; tries++) {
        rc = rv__pg_ready(pg, err);
        if (rc < 0)
            continue;
        rv__pg_params_reset(&pg->params);
        rv__pg_put_str(&pg->params, rv__pg_add_array(&pg->params, PG_BYTEA), hash);
        rv__pg_put_str(&pg->params, rv__pg_add_array(&pg->params, PG_BYTEA), json);
        rc = rv__pg_params_ready(&pg->params, err);
        PGresult *result = rc == RV_OK ? rv__pg_query(&pg->conn, PG_DEFINE, &pg->params, err)
                                       : NULL;
        if (rc == RV_OK && result == NULL) {
            rc = RV_ESTORE;
            if (pg->conn.pg != NULL)
                break; /* the server says no: it would again */
        }
        PQclear(result);
    }
    return rc;
}
