/* member.c: several processes share a store: joining, leases, claims, and what members ask of each other.
 *
 * A member is a lane (commit.c) with a lease, whose slot no other member ever has. Every transaction in the lane renews
 * the lease, by the server's clock. Who finds that a lease is over, and that no transaction holds the lane, raises its
 * epoch: all later transactions in it fail. Its row stays, with how it ended, as long as runs are its own;
 * that is what makes them claimable, so that a takeover writes one row, whatever the number of runs.
 *
 * A process that died is found sooner by members in the same place: of the same machine, started alike, and with the
 * same view of processes. ADR 0061. */
#include "store/postgres/postgres.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

enum { NEIGHBOURS_MOST = 64 };

static int no_member(rv_error *err)
{
    return rv__fail(err, RV_EGONE, "this member's lease is over: others have its runs");
}

/* ---------------------------------------------------------------------------------- joining --- */

/* Where pids mean the same: this boot of this machine, and its namespace of processes. */
static void find_place(char *ret, size_t size)
{
    char boot[64] = "?", ns[64] = "?";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL) {
        if (fgets(boot, sizeof boot, file) == NULL)
            boot[0] = '?';
        (void)fclose(file); /* it was only read */
        boot[strcspn(boot, "\n")] = '\0';
    }
    ssize_t len = readlink("/proc/self/ns/pid", ns, sizeof ns - 1);
    ns[len > 0 ? len : 1] = '\0';
    /* Without both nobody is taken for a neighbour. */
    bool known = boot[0] != '?' && len > 0;
    snprintf(ret, size, "%s%s%s", known ? boot : "", known ? " " : "", known ? ns : "");
}

int rv__pg_join(struct rv__pg *pg, rv_error *err)
{
    char holder[128], host[64] = "", lease[16], pid[16], knows[16];
    const char *values[] = { holder, lease, pg->place, pid, rv_version(), knows };
    (void)gethostname(host, sizeof host - 1); /* cut, if it is long */
    snprintf(holder, sizeof holder, "process %d on %s", (int)getpid(), host);
    snprintf(lease, sizeof lease, "%d", (int)pg->lease_ms);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(knows, sizeof knows, "%d", (int)PG_SCHEMA_VERSION);
    PGresult *result = PQexecParams(
        pg->conn.pg,
        "INSERT INTO lanes (slot, epoch, batch, holder, lease_ms, place, pid, version, knows)"
        " SELECT nextval('slots'), 1, 0, $1, $2::integer, $3, $4::integer, $5, $6::integer"
        " FROM meta WHERE floor <= $6::integer RETURNING slot",
        6, NULL, values, NULL, NULL, 1);
    int rc = RV_OK;
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        rc = rv__pg_fail(&pg->conn, result, err);
    } else if (PQntuples(result) == 0) {
        rc = rv__fail(err, RV_ESTATE,
                      "the store was upgraded meanwhile and needs a newer version of Rival than %s",
                      rv_version());
    } else {
        pg->writer.slot = (int32_t)rv__pg_int(result, 0);
        pg->writer.epoch = 1;
        pg->writer.batch = 0;
        pg->writer.fenced = pg->writer.unsure = false;
        memset(pg->writer.known, 0, PG_KNOWN_RUNS * sizeof *pg->writer.known);
    }
    PQclear(result);
    return rc;
}

/* A member that was stopped in the midst of a transaction does not hold its lane longer than its lease. */
int rv__pg_member_session(struct rv__pg *pg, rv_error *err)
{
    char sql[96];
    if (pg->lease_ms == 0)
        return RV_OK;
    snprintf(sql, sizeof sql, "SET idle_in_transaction_session_timeout = %d", (int)pg->lease_ms);
    return rv__pg_exec(&pg->conn, sql, err);
}

void rv__pg_member_init(struct rv__pg *pg, int64_t lease_ms)
{
    pg->lease_ms = lease_ms > 0 && lease_ms < INT32_MAX ? lease_ms : PG_LEASE_MS;
    find_place(pg->place, sizeof pg->place);
}

int rv__pg_rejoin(struct rv__store *store, rv_error *err)
{
    struct rv__pg *pg = rv__pg_of(store);
    if (pg->lease_ms == 0)
        return rv__fail(err, RV_ESTATE, "the store was not opened as a member");
    pg->writer.fenced =
        true; /* whatever was before: a connection that is made now finds no lane of ours */
    pg->joining = true;
    int rc = rv__pg_ready(pg, err);
    if (rc == RV_OK)
        rc = rv__pg_join(pg, err);
    pg->joining = false;
    return rc;
}

/* The parameters slot and epoch. */
static int begin_own(struct rv__pg *pg, rv_error *err)
{
    int rc = rv__pg_ready(pg, err);
    if (rc < 0)
        return rc;
    rv__pg_params_reset(&pg->params);
    rv__pg_add_int4(&pg->params, pg->writer.slot);
    rv__pg_add_int(&pg->params, pg->writer.epoch);
    return RV_OK;
}

/* One statement and its result, NULL on failure. */
static PGresult *ask_one(struct rv__pg *pg, enum rv__pg_sql sql, int *rc, rv_error *err)
{
    rv_error why = { 0, "" };
    *rc = rv__pg_params_ready(&pg->params, err);
    PGresult *result = *rc == RV_OK ? rv__pg_query(&pg->conn, sql, &pg->params, &why) : NULL;
    if (*rc == RV_OK && result == NULL)
        *rc = rv__fail(err, RV_ESTORE, "%s", why.message);
    return result;
}

static int ask_none(struct rv__pg *pg, enum rv__pg_sql sql, rv_error *err)
{
    int rc;
    PQclear(ask_one(pg, sql, &rc, err));
    return rc;
}

int rv__pg_renew(struct rv__store *store, const char *workers, rv_error *err)
{
    struct rv__pg *pg = rv__pg_of(store);
    int rc = begin_own(pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_str(&pg->params, rv__str(workers));
    PGresult *result = ask_one(pg, PG_RENEW, &rc, err);
    if (rc == RV_OK && PQntuples(result) == 0) {
        pg->writer.fenced = true;
        rc = no_member(err);
    }
    PQclear(result);
    return rc;
}

int rv__pg_part(struct rv__store *store, rv_error *err)
{
    struct rv__pg *pg = rv__pg_of(store);
    int rc = begin_own(pg, err);
    if (rc < 0)
        return rc == RV_EGONE ? RV_OK : rc;
    rv__pg_add_int(&pg->params, STORE_LEFT);
    rc = ask_none(pg, PG_END_LANE, err);
    pg->writer.fenced |= rc == RV_OK;
    return rc;
}

int64_t rv__pg_member(const struct rv__store *store)
{
    return ((const struct rv__pg *)store)->writer.slot;
}

/* ----------------------------------------------------------------------------------- leases --- */

static int enter(struct rv__store *aide, struct rv__pg **ret, rv_error *err)
{
    *ret = rv__pg_of(aide);
    int rc = rv__pg_ready(*ret, err);
    rv__pg_params_reset(&(*ret)->params);
    return rc;
}

/* Members in our place whose process is no more. */
static int end_dead_neighbours(struct rv__pg *pg, size_t *ret, rv_error *err)
{
    struct {
        int64_t slot, epoch;
    } dead[NEIGHBOURS_MOST];
    int rc = RV_OK, count = 0;
    if (pg->place[0] == '\0')
        return RV_OK;
    rv__pg_add_str(&pg->params, rv__str(pg->place));
    PGresult *result = ask_one(pg, PG_NEIGHBOURS, &rc, err);
    for (int i = 0; rc == RV_OK && i < PQntuples(result) && count < NEIGHBOURS_MOST; i++) {
        pid_t pid = (pid_t)rv__pg_int_at(result, i, 2);
        if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH)
            continue;
        dead[count].slot = rv__pg_int_at(result, i, 0);
        dead[count++].epoch = rv__pg_int_at(result, i, 1);
    }
    PQclear(result);
    for (int i = 0; i < count && rc == RV_OK; i++) {
        rv__pg_params_reset(&pg->params);
        rv__pg_add_int4(&pg->params, (int32_t)dead[i].slot);
        rv__pg_add_int(&pg->params, dead[i].epoch);
        rv__pg_add_int(&pg->params, STORE_DIED);
        PGresult *ended = ask_one(pg, PG_END_LANE, &rc, err);
        *ret += rc == RV_OK ? (size_t)PQntuples(ended) : 0;
        PQclear(ended);
    }
    return rc;
}

int rv__pg_expire(struct rv__store *aide, size_t *ret, rv_error *err)
{
    struct rv__pg *pg;
    size_t ended = 0;
    int rc = enter(aide, &pg, err);
    if (rc == RV_OK)
        rc = end_dead_neighbours(pg, &ended, err);
    if (rc < 0)
        return rc;
    rv__pg_params_reset(&pg->params);
    rv__pg_add_int(&pg->params, STORE_EXPIRED);
    PGresult *result = ask_one(pg, PG_EXPIRE, &rc, err);
    ended += rc == RV_OK ? (size_t)PQntuples(result) : 0;
    PQclear(result);
    rv__pg_params_reset(&pg->params);
    static const enum rv__pg_sql tidy[] = { PG_FREE_RUNS, PG_DROP_LANES, PG_DROP_REQUESTS };
    for (size_t i = 0; rc == RV_OK && i < sizeof tidy / sizeof *tidy; i++)
        rc = ask_none(pg, tidy[i], err);
    if (rc == RV_OK)
        *ret = ended;
    return rc;
}

/* ----------------------------------------------------------------------------------- claims --- */

static int show_claimed(const PGresult *result, rv__store_visit_claimed *visit, void *arg)
{
    int rc = RV_OK;
    for (int i = 0; i < PQntuples(result) && rc == RV_OK; i++) {
        if (PQgetisnull(result, i, 0))
            continue;
        struct rv__store_claimed run = {
            .number = (uint64_t)rv__pg_int_at(result, i, 0),
            .id = { PQgetvalue(result, i, 1), (size_t)PQgetlength(result, i, 1) },
            .wake_at_ms = rv__pg_int_at(result, i, 2),
            .from = (enum rv__store_orphan)rv__pg_int_at(result, i, 3)
        };
        rc = visit(arg, &run);
    }
    return rc;
}

int rv__pg_claim(struct rv__store *aide, const struct rv__store_claim *claim,
                 rv__store_visit_claimed *visit, void *arg, rv_error *err)
{
    struct rv__pg *pg;
    int rc = enter(aide, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int4(&pg->params, (int32_t)claim->member);
    rv__pg_add_int(&pg->params, claim->any);
    int names = rv__pg_add_array(&pg->params, PG_BYTEA);
    for (size_t i = 0; i < claim->workflow_count; i++)
        rv__pg_put_str(&pg->params, names, claim->workflows[i]);
    rv__pg_add_int(&pg->params, claim->limit < INT32_MAX ? (int64_t)claim->limit : INT32_MAX);
    if (claim->due) {
        rv__pg_add_int(&pg->params, claim->due_ms);
        rv__pg_add_int(&pg->params, claim->after.at_ms);
    } else if (!claim->own) {
        int functions = rv__pg_add_array(&pg->params, PG_BYTEA);
        for (size_t i = 0; i < claim->function_count; i++)
            rv__pg_put_str(&pg->params, functions, claim->functions[i]);
    }
    if (claim->due || claim->own || claim->anew)
        rv__pg_add_int(&pg->params, (int64_t)claim->after.number);
    PGresult *result = ask_one(pg,
                               claim->due     ? PG_CLAIM_DUE
                               : claim->given ? PG_CLAIM_GIVEN
                               : claim->own   ? PG_CLAIM_OWN
                               : claim->anew  ? PG_CLAIM_ANEW
                                              : PG_CLAIM_ACTIVE,
                               &rc, err);
    if (rc == RV_OK && rv__pg_int(result, 4) == 0)
        rc = no_member(err);
    if (rc == RV_OK)
        rc = show_claimed(result, visit, arg);
    PQclear(result);
    return rc;
}

int rv__pg_claim_run(struct rv__store *aide, int64_t member, struct rv__str run, int64_t *ret_owner,
                     enum rv__store_orphan *ret_from, rv_error *err)
{
    struct rv__pg *pg;
    int rc = enter(aide, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int4(&pg->params, (int32_t)member);
    rv__pg_add_str(&pg->params, run);
    PGresult *result = ask_one(pg, PG_CLAIM_RUN, &rc, err);
    if (rc == RV_OK && PQntuples(result) == 0)
        rc = rv__fail(err, RV_ENOTFOUND, "there is no run '%.*s'", RV__ARG(run));
    else if (rc == RV_OK && rv__pg_int(result, 2) == 0)
        rc = no_member(err);
    if (rc == RV_OK) {
        bool claimed = rv__pg_int(result, 3) > 0;
        *ret_owner = claimed ? member : rv__pg_int(result, 0);
        *ret_from = claimed ? (enum rv__store_orphan)rv__pg_int(result, 1) : STORE_NOBODYS;
    }
    PQclear(result);
    return rc;
}

int rv__pg_owner(struct rv__store *aide, struct rv__str run, int64_t *ret_owner, bool *ret_lacks,
                 rv_error *err)
{
    struct rv__pg *pg;
    int rc = enter(aide, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_str(&pg->params, run);
    PGresult *result = ask_one(pg, PG_OWNER, &rc, err);
    if (rc == RV_OK && PQntuples(result) == 0)
        rc = rv__fail(err, RV_ENOTFOUND, "there is no run '%.*s'", RV__ARG(run));
    if (rc == RV_OK) {
        *ret_owner = rv__pg_int(result, 0);
        *ret_lacks = rv__pg_bool(result, 1);
    }
    PQclear(result);
    return rc;
}

struct showing {
    rv__store_visit_member *visit;
    void *arg;
};

static int show_member(void *arg, const PGresult *row, rv_error *err)
{
    const struct showing *showing = arg;
    struct rv__store_member member = { .id = rv__pg_int(row, 0),
                                       .holder = rv__pg_str(row, 1),
                                       .version = rv__pg_str(row, 2),
                                       .workers = rv__pg_str(row, 3),
                                       .since_ms = rv__pg_int(row, 4),
                                       .lease_until_ms = rv__pg_int(row, 5),
                                       .runs = (uint64_t)rv__pg_int(row, 6) };
    if (member.workers.len == 0)
        member.workers = rv__str(NULL);
    (void)err;
    return showing->visit(showing->arg, &member);
}

int rv__pg_members(struct rv__store *store, bool reachable, rv__store_visit_member *visit,
                   void *arg, rv_error *err)
{
    struct rv__pg *pg;
    struct showing showing = { visit, arg };
    int rc = enter(store, &pg, err);
    return rc < 0 ? rc
                  : rv__pg_rows(&pg->conn, reachable ? PG_REACHABLE : PG_MEMBERS, &pg->params,
                                show_member, &showing, err);
}

/* --------------------------------------------------------------------------------- requests --- */

int rv__pg_ask(struct rv__store *aide, int64_t to, struct rv__str request, uint64_t *ret_id,
               rv_error *err)
{
    struct rv__pg *pg;
    int rc = enter(aide, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int4(&pg->params, (int32_t)to);
    rv__pg_add_str(&pg->params, request);
    PGresult *result = ask_one(pg, PG_ASK, &rc, err);
    if (rc == RV_OK && PQntuples(result) == 0)
        rc = rv__fail(err, RV_ECLOSED, "member %lld is no more", (long long)to);
    if (rc == RV_OK)
        *ret_id = (uint64_t)rv__pg_int(result, 0);
    PQclear(result);
    return rc;
}

int rv__pg_asked(struct rv__store *aide, int64_t member, rv__store_visit_text *visit, void *arg,
                 rv_error *err)
{
    struct rv__pg *pg;
    int rc = enter(aide, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int4(&pg->params, (int32_t)member);
    rv__pg_add_int(&pg->params, RV__STORE_ASKED_MOST);
    PGresult *result = ask_one(pg, PG_ASKED, &rc, err);
    for (int i = 0; rc == RV_OK && i < PQntuples(result); i++)
        rc = visit(arg, (uint64_t)rv__pg_int_at(result, i, 0),
                   (struct rv__str){ PQgetvalue(result, i, 1), (size_t)PQgetlength(result, i, 1) });
    PQclear(result);
    return rc;
}

int rv__pg_answer_request(struct rv__store *aide, uint64_t id, struct rv__str answer, rv_error *err)
{
    struct rv__pg *pg;
    int rc = enter(aide, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int(&pg->params, (int64_t)id);
    rv__pg_add_str(&pg->params, answer);
    return ask_none(pg, PG_ANSWER, err);
}

/* Nobody will answer, or nobody waits any more. */
static int withdraw(struct rv__pg *pg, uint64_t id, rv__store_visit_text *visit, void *arg,
                    rv_error *err)
{
    int rc = RV_OK;
    rv__pg_params_reset(&pg->params);
    rv__pg_add_int(&pg->params, (int64_t)id);
    PGresult *result = ask_one(pg, PG_WITHDRAW, &rc, err);
    if (rc < 0)
        return rc;
    if (PQntuples(result) > 0 && !PQgetisnull(result, 0, 1))
        rc = visit(arg, id, rv__pg_str(result, 1)); /* it came at the last moment */
    else if (PQntuples(result) > 0 && !rv__pg_bool(result, 0))
        rc = rv__fail(err, RV_ECLOSED, "the member that has the run did not take the request");
    else
        rc = rv__fail(
            err, RV_EFAILED,
            "the member that has the run did not answer: it is not known whether it was done");
    PQclear(result);
    return rc;
}

int rv__pg_answered(struct rv__store *aide, uint64_t id, bool give_up, rv__store_visit_text *visit,
                    void *arg, rv_error *err)
{
    struct rv__pg *pg;
    int rc = enter(aide, &pg, err);
    if (rc < 0)
        return rc;
    if (give_up)
        return withdraw(pg, id, visit, arg, err);
    rv__pg_add_int(&pg->params, (int64_t)id);
    PGresult *result = ask_one(pg, PG_ANSWERED, &rc, err);
    if (rc < 0)
        return rc;
    bool there = !PQgetisnull(result, 0, 0), pending = rv__pg_int(result, 1) > 0;
    if (there)
        rc = visit(arg, id, rv__pg_str(result, 0));
    PQclear(result);
    if (there)
        return rc;
    return pending ? rv__fail(err, RV_EBUSY, "there is no answer yet")
                   : withdraw(pg, id, visit, arg, err);
}

int rv__pg_await(struct rv__store *aide, int64_t timeout_ms, rv_error *err)
{
    struct rv__pg *pg;
    PGnotify *note;
    int rc = enter(aide, &pg, err);
    if (rc == RV_OK && !pg->conn.listens) {
        rc = rv__pg_exec(&pg->conn, "LISTEN rival_members", err);
        pg->conn.listens = rc == RV_OK;
        return rc; /* what came before that is looked at first */
    }
    if (rc < 0)
        return rc;
    struct pollfd fd = { .fd = PQsocket(pg->conn.pg), .events = POLLIN };
    if ((note = PQnotifies(pg->conn.pg)) == NULL) {
        (void)poll(&fd, 1, (int)timeout_ms); /* a signal: looked at sooner */
        if (PQconsumeInput(pg->conn.pg) == 0) {
            rc = rv__pg_fail(&pg->conn, NULL, err);
            rv__pg_conn_drop(&pg->conn);
            return rc;
        }
        note = PQnotifies(pg->conn.pg);
    }
    while (note != NULL) {
        PQfreemem(note);
        note = PQnotifies(pg->conn.pg);
    }
    return RV_OK;
}

/* ------------------------------------------------------------------------------------ marks --- */

/* One statement: nothing is half done, and a lost answer is no harm, since it is tried again. */
static int send_marks(struct rv__store *store, enum rv__pg_sql sql, struct rv__store_mark *marks,
                      size_t count, rv_error *err)
{
    struct rv__pg *pg = rv__pg_of(store);
    if (pg->read_only)
        return rv__pg_refuse_reader(err);
    int rc = begin_own(pg, err);
    if (rc < 0)
        return rc;
    int names = rv__pg_add_array(&pg->params, PG_BYTEA);
    for (size_t i = 0; i < count; i++)
        rv__pg_put_str(&pg->params, names, marks[i].name);
    int seqs = rv__pg_add_array(&pg->params, PG_INT8);
    for (size_t i = 0; i < count; i++)
        rv__pg_put_int(&pg->params, seqs, (int64_t)marks[i].seq);
    int indexes = rv__pg_add_array(&pg->params, PG_INT8);
    for (size_t i = 0; i < count; i++)
        rv__pg_put_int(&pg->params, indexes, (int64_t)marks[i].index);
    if (sql == PG_MOVE_MARKS) {
        int gone = rv__pg_add_array(&pg->params, PG_BOOL);
        for (size_t i = 0; i < count; i++)
            rv__pg_put_bool(&pg->params, gone, marks[i].gone);
    }
    PGresult *result = ask_one(pg, sql, &rc, err);
    if (rc == RV_OK && rv__pg_int(result, 0) == 0) {
        pg->writer.fenced = true;
        rc = no_member(err);
    }
    for (size_t i = 0; i < count && rc == RV_OK; i++)
        marks[i].ours = false;
    for (int i = 0; rc == RV_OK && i < PQntuples(result) && !PQgetisnull(result, i, 1); i++) {
        struct rv__store_mark *mark = &marks[rv__pg_int_at(result, i, 1) - 1];
        mark->seq = (uint64_t)rv__pg_int_at(result, i, 2);
        mark->index = (uint64_t)rv__pg_int_at(result, i, 3);
        mark->ours = true;
    }
    PQclear(result);
    return rc;
}

int rv__pg_take_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                      rv_error *err)
{
    return send_marks(store, PG_TAKE_MARKS, marks, count, err);
}

int rv__pg_move_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                      rv_error *err)
{
    return send_marks(store, PG_MOVE_MARKS, marks, count, err);
}

struct showing_marks {
    rv__store_visit_mark *visit;
    void *arg;
};

static int show_mark(void *arg, const PGresult *row, rv_error *err)
{
    const struct showing_marks *showing = arg;
    const struct rv__store_mark mark = { .name = rv__pg_str(row, 0),
                                         .seq = (uint64_t)rv__pg_int(row, 1),
                                         .index = (uint64_t)rv__pg_int(row, 2),
                                         .free = rv__pg_bool(row, 3) };
    (void)err;
    return showing->visit(showing->arg, &mark);
}

int rv__pg_marks(struct rv__store *store, rv__store_visit_mark *visit, void *arg, rv_error *err)
{
    struct rv__pg *pg;
    struct showing_marks showing = { visit, arg };
    int rc = enter(store, &pg, err);
    return rc < 0 ? rc : rv__pg_rows(&pg->conn, PG_MARKS, &pg->params, show_mark, &showing, err);
}
