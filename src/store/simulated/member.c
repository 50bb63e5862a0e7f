/* member.c: members of the simulated store: leases, claims, the fence, and what they ask of each other.
 *
 * What store/postgres/member.c does with rows and statements is done here with arrays; the rules are the same ones
 * (tests/unit/store/suite_members.c). The clock of the store is a field that the test moves; connections fail, and
 * lose answers, when the test says so (`fate`, `line`). */
#include "store/simulated/tables.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"

enum { DROP_LANE_MS = 60000, DROP_REQUEST_MS = 600000 }; /* as in PostgreSQL */

static int no_member(rv_error *err)
{
    return rv__fail(err, RV_EGONE, "this member's lease is over: others have its runs");
}

static int unheard(rv_error *err)
{
    return rv__fail(err, RV_ESTORE, "the answer of the simulated store was lost");
}

struct rv__sim_lane *rv__sim_lane(const struct rv__sim_store *sim, int64_t slot)
{
    for (size_t i = 0; i < sim->lane_count; i++)
        if (sim->lanes[i].slot == slot)
            return &sim->lanes[i];
    return NULL;
}

static struct rv__sim_lane *alive(const struct rv__sim_store *sim, int64_t slot)
{
    struct rv__sim_lane *lane = rv__sim_lane(sim, slot);
    return lane != NULL && lane->ended == STORE_NOBODYS ? lane : NULL;
}

/* Has that member ended, so that its runs may be claimed? */
static bool has_ended(const struct rv__sim_store *sim, int64_t slot)
{
    const struct rv__sim_lane *lane = rv__sim_lane(sim, slot);
    return lane != NULL && lane->ended != STORE_NOBODYS;
}

static enum rv__store_orphan end_of(const struct rv__sim_store *sim, int64_t slot)
{
    const struct rv__sim_lane *lane = rv__sim_lane(sim, slot);
    return lane != NULL ? lane->ended : STORE_NOBODYS;
}

/* What becomes of this call. */
static enum rv__sim_line line_of(struct rv__store *aide)
{
    const struct rv__sim_member *member = rv__sim_member_of(aide);
    return member->sim->line != NULL ? member->sim->line(member->sim->members_arg, member->slot)
                                     : SIM_LINE_WORKS;
}

/* Take the lock of a store that can be reached; *line: whether its answer will be heard. */
static struct rv__sim_store *reach(struct rv__store *aide, enum rv__sim_line *line, rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(aide, err);
    *line = sim != NULL ? line_of(aide) : SIM_LINE_FAILS;
    if (sim == NULL || *line != SIM_LINE_FAILS)
        return sim;
    (void)rv__sim_leave(sim, 0);
    (void)rv__fail(err, RV_ESTORE, "the simulated store cannot be reached");
    return NULL;
}

/* ---------------------------------------------------------------------------------- joining --- */

static int join(struct rv__sim_member *member, rv_error *err)
{
    struct rv__sim_store *sim = member->sim;
    if (rv__sim_reserve((void **)&sim->lanes, sim->lane_count, &sim->lane_cap, 1,
                        sizeof *sim->lanes) < 0)
        return rv__nomem(err);
    member->slot = ++sim->slot;
    sim->lanes[sim->lane_count++] = (struct rv__sim_lane){ .slot = member->slot,
                                                           .since_ms = sim->now_ms,
                                                           .renewed_ms = sim->now_ms,
                                                           .lease_ms = member->lease_ms,
                                                           .place = member->place };
    return RV_OK;
}

static void forget_unheard(struct rv__sim_member *member)
{
    rv__free(member->unheard);
    member->unheard = NULL;
    member->unheard_count = 0;
}

int rv__sim_member_new(struct rv__sim_store *sim, int64_t lease_ms, int place,
                       struct rv__sim_member **ret, rv_error *err)
{
    struct rv__sim_member *member = rv__zalloc(1, sizeof *member);
    if (member == NULL)
        return rv__nomem(err);
    *member = (struct rv__sim_member){
        .store = { &rv__sim_member_ops }, .sim = sim, .lease_ms = lease_ms, .place = place
    };
    (void)pthread_mutex_lock(&sim->lock);
    int rc = rv__sim_leave(sim, join(member, err));
    if (rc < 0)
        rv__free(member);
    else
        *ret = member;
    return rc;
}

void rv__sim_member_close(struct rv__store *store)
{
    struct rv__sim_member *member = (struct rv__sim_member *)store;
    forget_unheard(member);
    rv__free(member);
}

void rv__sim_member_dies(struct rv__sim_member *member)
{
    struct rv__sim_store *sim = member->sim;
    (void)pthread_mutex_lock(&sim->lock);
    struct rv__sim_lane *lane = rv__sim_lane(sim, member->slot);
    member->dead = true;
    if (lane != NULL)
        lane->dead = true;
    (void)rv__sim_leave(sim, 0);
}

int rv__sim_rejoin(struct rv__store *store, rv_error *err)
{
    struct rv__sim_member *member = rv__sim_member_of(store);
    enum rv__sim_line line;
    struct rv__sim_store *sim = reach(store, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    forget_unheard(member);
    int rc = join(member, err);
    return rv__sim_leave(sim, rc == RV_OK && line == SIM_LINE_UNHEARD ? unheard(err) : rc);
}

int rv__sim_renew(struct rv__store *store, const char *workers, rv_error *err)
{
    enum rv__sim_line line;
    struct rv__sim_store *sim = reach(store, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    struct rv__sim_lane *lane = alive(sim, rv__sim_member_of(store)->slot);
    if (lane == NULL)
        return rv__sim_leave(sim, no_member(err));
    lane->renewed_ms = sim->now_ms;
    snprintf(lane->workers, sizeof lane->workers, "%s", workers);
    return rv__sim_leave(sim, line == SIM_LINE_UNHEARD ? unheard(err) : RV_OK);
}

int rv__sim_part(struct rv__store *store, rv_error *err)
{
    enum rv__sim_line line;
    struct rv__sim_store *sim = reach(store, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    struct rv__sim_lane *lane = alive(sim, rv__sim_member_of(store)->slot);
    if (lane != NULL)
        lane->ended = STORE_LEFT;
    return rv__sim_leave(sim, line == SIM_LINE_UNHEARD ? unheard(err) : RV_OK);
}

int64_t rv__sim_member_id(const struct rv__store *store)
{
    return ((const struct rv__sim_member *)store)->slot;
}

int rv__sim_aide(struct rv__store *store, struct rv__store **ret, rv_error *err)
{
    return rv__sim_handle(store, &rv__sim_aide_ops, ret, err);
}

/* --------------------------------------------------------------------------------- committing --- */

/* Keep what became of each write for when the same commit comes again. */
static int keep_unheard(struct rv__sim_member *member, const struct rv__store_write *writes,
                        size_t count, rv_error *err)
{
    for (size_t i = 0; i < count; i++)
        member->unheard[i] = (struct rv__sim_outcome){ .seq = writes[i].seq,
                                                       .number = writes[i].number,
                                                       .outcome = writes[i].outcome,
                                                       .why = writes[i].why };
    member->unheard_count = count;
    return unheard(err);
}

/* It is on disk since it was tried before. */
static int land_unheard(struct rv__sim_member *member, struct rv__store_write *writes, size_t count)
{
    assert(count == member->unheard_count); /* the same commit is tried again, unchanged */
    for (size_t i = 0; i < count; i++) {
        const struct rv__sim_outcome *was = &member->unheard[i];
        writes[i].seq = was->seq;
        writes[i].number = was->number;
        writes[i].outcome = was->outcome;
        writes[i].why = was->why;
    }
    forget_unheard(member);
    return RV_OK;
}

/* The numbers that a caller is not told are not his to have. */
static void hide(struct rv__store_write *writes, const struct rv__sim_outcome *before, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        writes[i].seq = before[i].seq;
        writes[i].number = before[i].number;
    }
}

static int commit_unheard(struct rv__sim_member *member, struct rv__store_write *writes,
                          size_t count, rv_error *err)
{
    struct rv__sim_outcome *before = rv__zalloc(count, sizeof *before);
    member->unheard = rv__zalloc(count, sizeof *member->unheard);
    if (before == NULL || member->unheard == NULL) {
        rv__free(before);
        forget_unheard(member);
        return rv__nomem(err);
    }
    for (size_t i = 0; i < count; i++)
        before[i] = (struct rv__sim_outcome){ .seq = writes[i].seq, .number = writes[i].number };
    int rc = rv__sim_commit(member->sim, member, writes, count, err);
    if (rc == RV_OK) {
        rc = keep_unheard(member, writes, count, err);
        hide(writes, before, count);
    } else {
        forget_unheard(member);
    }
    rv__free(before);
    return rc;
}

static int commit_one(struct rv__sim_member *member, struct rv__store_write *writes, size_t count,
                      rv_error *err)
{
    struct rv__sim_store *sim = member->sim;
    struct rv__sim_lane *lane = alive(sim, member->slot);
    enum rv__sim_store_fate fate = member->fate;
    member->fate = SIM_STORE_WORKS;
    if (lane == NULL)
        return no_member(err);
    if (member->unheard != NULL && fate != SIM_STORE_FAILS)
        return land_unheard(member, writes, count);
    if (fate == SIM_STORE_FAILS)
        return rv__fail(err, RV_ESTORE, "the simulated store cannot be reached");
    if (fate == SIM_STORE_UNHEARD) {
        lane->renewed_ms = sim->now_ms;
        return commit_unheard(member, writes, count, err);
    }
    lane->dead = member->dead = fate != SIM_STORE_WORKS; /* nobody hears of what follows */
    if (fate == SIM_STORE_DIES_BEFORE)
        return unheard(err);
    int rc = rv__sim_commit(sim, member, writes, count, err);
    if (rc == RV_OK)
        lane->renewed_ms = sim->now_ms;
    return rc == RV_OK && fate == SIM_STORE_DIES_AFTER ? unheard(err) : rc;
}

int rv__sim_member_commit(struct rv__store *store, struct rv__store_write *writes, size_t count,
                          rv_error *err)
{
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    if (sim == NULL)
        return RV_ESTORE;
    return rv__sim_leave(sim, count > 0 ? commit_one(rv__sim_member_of(store), writes, count, err)
                                        : RV_OK);
}

/* ----------------------------------------------------------------------------------- leases --- */

static void call_out(const struct rv__sim_store *sim, int64_t slot)
{
    if (sim->notify != NULL)
        sim->notify(sim->members_arg, slot);
}

static bool owns_any(const struct rv__sim_store *sim, int64_t slot)
{
    for (size_t i = 0; i < sim->run_count; i++)
        if (sim->runs[i]->owner == slot)
            return true;
    return false;
}

static void request_done(struct rv__sim_request *request)
{
    rv__free(request->request.at);
    rv__free(request->answer.at);
}

/* What nobody needs any more. */
static void tidy(struct rv__sim_store *sim)
{
    size_t kept = 0;
    for (size_t i = 0; i < sim->run_count; i++)
        if (!sim->runs[i]->columns.active && has_ended(sim, sim->runs[i]->owner))
            sim->runs[i]->owner = 0;
    for (size_t i = 0; i < sim->lane_count; i++) {
        const struct rv__sim_lane *lane = &sim->lanes[i];
        if (lane->ended == STORE_NOBODYS || lane->renewed_ms >= sim->now_ms - DROP_LANE_MS ||
            owns_any(sim, lane->slot))
            sim->lanes[kept++] = *lane;
    }
    sim->lane_count = kept;
    kept = 0;
    for (size_t i = 0; i < sim->request_count; i++) {
        if (sim->requests[i].at_ms >= sim->now_ms - DROP_REQUEST_MS)
            sim->requests[kept++] = sim->requests[i];
        else
            request_done(&sim->requests[i]);
    }
    sim->request_count = kept;
}

int rv__sim_expire(struct rv__store *aide, size_t *ret, rv_error *err)
{
    enum rv__sim_line line;
    size_t ended = 0;
    struct rv__sim_store *sim = reach(aide, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    for (size_t i = 0; i < sim->lane_count; i++) {
        struct rv__sim_lane *lane = &sim->lanes[i];
        if (lane->ended != STORE_NOBODYS)
            continue;
        if (lane->dead && lane->place == rv__sim_member_of(aide)->place)
            lane->ended = STORE_DIED;
        else if (lane->renewed_ms + lane->lease_ms < sim->now_ms)
            lane->ended = STORE_EXPIRED;
        ended += lane->ended != STORE_NOBODYS;
    }
    tidy(sim);
    if (line == SIM_LINE_UNHEARD)
        return rv__sim_leave(sim, unheard(err));
    *ret = ended;
    return rv__sim_leave(sim, RV_OK);
}

/* ----------------------------------------------------------------------------------- claims --- */

static bool can_run(const struct rv__store_claim *claim, const struct rv__sim_run *run)
{
    bool can = claim->any;
    for (size_t i = 0; i < claim->workflow_count && !can; i++)
        can = rv__str_eq(claim->workflows[i], view(&run->columns.workflow));
    return can;
}

static bool is_behind(const struct rv__sim_run *run, const struct rv__store_place *after)
{
    return run->columns.wake_at_ms > after->at_ms ||
           (run->columns.wake_at_ms == after->at_ms && run->number > after->number);
}

/* Was it given up for want of something that this member has, by others? */
static bool is_offered(const struct rv__store_claim *claim, const struct rv__sim_run *run)
{
    bool offers = claim->any || run->lacks.len == 0;
    for (size_t i = 0; i < claim->function_count && !offers; i++)
        offers = rv__str_eq(claim->functions[i], view(&run->lacks));
    for (size_t i = 0; i < run->handed_count && !claim->anew; i++)
        offers &= run->handed[i] != claim->member;
    return offers;
}

static bool claimable(const struct rv__sim_store *sim, const struct rv__store_claim *claim,
                      const struct rv__sim_run *run)
{
    bool free = run->owner == 0 || has_ended(sim, run->owner);
    if (!can_run(claim, run))
        return false;
    if (claim->due)
        return run->columns.wake_at_ms != 0 && run->columns.wake_at_ms <= claim->due_ms &&
               is_behind(run, &claim->after) && (free || run->owner == claim->member);
    if (claim->own)
        return run->columns.active && run->owner == claim->member &&
               run->number > claim->after.number && (!claim->given || run->handed_count > 0);
    if (claim->anew)
        return run->columns.active && run->owner == 0 && run->lacks.at != NULL &&
               run->number > claim->after.number && is_offered(claim, run);
    return run->columns.active && free &&
           (run->owner != 0 || run->lacks.at == NULL || is_offered(claim, run));
}

/* Of those that may be claimed the first one behind `last`: by time where they are due, by number else. */
static struct rv__sim_run *next_claimable(const struct rv__sim_store *sim,
                                          const struct rv__store_claim *claim,
                                          const struct rv__sim_run *last)
{
    struct rv__sim_run *first = NULL;
    for (size_t i = 0; i < sim->run_count; i++) {
        struct rv__sim_run *run = sim->runs[i];
        int64_t at = claim->due ? run->columns.wake_at_ms : 0;
        if (!claimable(sim, claim, run))
            continue;
        if (last != NULL) {
            int64_t last_at = claim->due ? last->columns.wake_at_ms : 0;
            if (at < last_at || (at == last_at && run->number <= last->number))
                continue;
        }
        int64_t first_at = first != NULL && claim->due ? first->columns.wake_at_ms : 0;
        if (first == NULL || at < first_at || (at == first_at && run->number < first->number))
            first = run;
    }
    return first;
}

int rv__sim_claim(struct rv__store *aide, const struct rv__store_claim *claim,
                  rv__store_visit_claimed *visit, void *arg, rv_error *err)
{
    enum rv__sim_line line;
    int rc = RV_OK;
    struct rv__sim_store *sim = reach(aide, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    if (alive(sim, claim->member) == NULL)
        return rv__sim_leave(sim, no_member(err));
    struct rv__sim_run *run = next_claimable(sim, claim, NULL);
    for (size_t n = 0; run != NULL && n < claim->limit && rc == RV_OK; n++) {
        struct rv__sim_run *next = next_claimable(sim, claim, run); /* before this one is ours */
        const struct rv__store_claimed claimed = { .id = view(&run->id),
                                                   .number = run->number,
                                                   .wake_at_ms = run->columns.wake_at_ms,
                                                   .from = end_of(sim, run->owner) };
        if (run->owner != claim->member)
            run->from = claimed.from;
        run->owner = claim->member;
        if (line == SIM_LINE_WORKS)
            rc = visit(arg, &claimed);
        run = next;
    }
    return rv__sim_leave(sim, line == SIM_LINE_UNHEARD ? unheard(err) : rc);
}

int rv__sim_claim_run(struct rv__store *aide, int64_t member, struct rv__str id, int64_t *ret_owner,
                      enum rv__store_orphan *ret_from, rv_error *err)
{
    enum rv__sim_line line;
    struct rv__sim_store *sim = reach(aide, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    struct rv__sim_run *run = rv__sim_find(sim, id);
    if (run == NULL)
        return rv__sim_leave(sim,
                             rv__fail(err, RV_ENOTFOUND, "there is no run '%.*s'", RV__ARG(id)));
    if (alive(sim, member) == NULL)
        return rv__sim_leave(sim, no_member(err));
    enum rv__store_orphan from = STORE_NOBODYS;
    if (run->owner == 0 || has_ended(sim, run->owner)) {
        from = run->from = end_of(sim, run->owner);
        run->owner = member;
    }
    if (line == SIM_LINE_UNHEARD)
        return rv__sim_leave(sim, unheard(err));
    *ret_owner = run->owner;
    *ret_from = from;
    return rv__sim_leave(sim, RV_OK);
}

int rv__sim_owner_of(struct rv__store *aide, struct rv__str run, int64_t *ret_owner,
                     bool *ret_lacks, rv_error *err)
{
    enum rv__sim_line line;
    struct rv__sim_store *sim = reach(aide, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    const struct rv__sim_run *found = rv__sim_find(sim, run);
    if (line == SIM_LINE_UNHEARD)
        return rv__sim_leave(sim, unheard(err));
    if (found == NULL)
        return rv__sim_leave(sim,
                             rv__fail(err, RV_ENOTFOUND, "there is no run '%.*s'", RV__ARG(run)));
    *ret_owner = found->owner;
    *ret_lacks = found->owner == 0 && found->lacks.at != NULL;
    return rv__sim_leave(sim, RV_OK);
}

int rv__sim_members(struct rv__store *store, bool reachable, rv__store_visit_member *visit,
                    void *arg, rv_error *err)
{
    int rc = RV_OK;
    struct rv__sim_store *sim = rv__sim_enter(store, err);
    if (sim == NULL)
        return RV_ESTORE;
    for (size_t i = 0; i < sim->lane_count && rc == RV_OK; i++) {
        const struct rv__sim_lane *lane = &sim->lanes[i];
        bool said = lane->workers[0] != '\0';
        struct rv__store_member member = { .id = lane->slot,
                                           .workers = rv__str(said ? lane->workers : NULL),
                                           .holder = rv__str("a simulated process"),
                                           .version = rv__str(rv_version()),
                                           .since_ms = lane->since_ms,
                                           .lease_until_ms = lane->renewed_ms + lane->lease_ms };
        for (size_t k = 0; k < sim->run_count && !reachable; k++)
            member.runs += sim->runs[k]->owner == lane->slot;
        if (lane->ended == STORE_NOBODYS && (said || !reachable))
            rc = visit(arg, &member);
    }
    return rv__sim_leave(sim, rc);
}

/* --------------------------------------------------------------------------------- requests --- */

static struct rv__sim_request *request_of(const struct rv__sim_store *sim, uint64_t id)
{
    for (size_t i = 0; i < sim->request_count; i++)
        if (sim->requests[i].id == id)
            return &sim->requests[i];
    return NULL;
}

static void drop_request(struct rv__sim_store *sim, struct rv__sim_request *request)
{
    size_t at = (size_t)(request - sim->requests);
    request_done(request);
    memmove(request, request + 1, (--sim->request_count - at) * sizeof *request);
}

int rv__sim_ask(struct rv__store *aide, int64_t to, struct rv__str text, uint64_t *ret_id,
                rv_error *err)
{
    enum rv__sim_line line;
    struct text copy;
    struct rv__sim_store *sim = reach(aide, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    if (alive(sim, to) == NULL)
        return rv__sim_leave(sim,
                             rv__fail(err, RV_ECLOSED, "member %lld is no more", (long long)to));
    if (rv__sim_reserve((void **)&sim->requests, sim->request_count, &sim->request_cap, 1,
                        sizeof *sim->requests) < 0 ||
        rv__sim_text_copy(&copy, text) < 0)
        return rv__sim_leave(sim, rv__nomem(err));
    sim->requests[sim->request_count++] = (struct rv__sim_request){
        .id = ++sim->request_id, .slot = to, .at_ms = sim->now_ms, .request = copy
    };
    call_out(sim, to);
    if (line == SIM_LINE_UNHEARD)
        return rv__sim_leave(sim, unheard(err));
    *ret_id = sim->request_id;
    return rv__sim_leave(sim, RV_OK);
}

int rv__sim_asked(struct rv__store *aide, int64_t member, rv__store_visit_text *visit, void *arg,
                  rv_error *err)
{
    enum rv__sim_line line;
    int rc = RV_OK;
    struct rv__sim_store *sim = reach(aide, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    size_t shown = 0;
    for (size_t i = 0; i < sim->request_count && rc == RV_OK && shown < RV__STORE_ASKED_MOST; i++) {
        struct rv__sim_request *request = &sim->requests[i];
        if (request->slot != member || request->taken)
            continue;
        request->taken = true;
        shown++;
        if (line == SIM_LINE_WORKS)
            rc = visit(arg, request->id, view(&request->request));
    }
    return rv__sim_leave(sim, line == SIM_LINE_UNHEARD ? unheard(err) : rc);
}

int rv__sim_answer(struct rv__store *aide, uint64_t id, struct rv__str answer, rv_error *err)
{
    enum rv__sim_line line;
    struct text copy;
    struct rv__sim_store *sim = reach(aide, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    struct rv__sim_request *request = request_of(sim, id);
    if (request != NULL && rv__sim_text_copy(&copy, answer) < 0)
        return rv__sim_leave(sim, rv__nomem(err));
    if (request != NULL) {
        rv__free(request->answer.at);
        request->answer = copy;
    }
    return rv__sim_leave(sim, line == SIM_LINE_UNHEARD ? unheard(err) : RV_OK);
}

/* Nobody will answer, or nobody waits any more. */
static int withdraw(struct rv__sim_store *sim, struct rv__sim_request *request,
                    enum rv__sim_line line, rv__store_visit_text *visit, void *arg, rv_error *err)
{
    int rc;
    if (line == SIM_LINE_UNHEARD)
        rc = unheard(err);
    else if (request != NULL && request->answer.at != NULL)
        rc = visit(arg, request->id, view(&request->answer)); /* it came at the last moment */
    else if (request != NULL && !request->taken)
        rc = rv__fail(err, RV_ECLOSED, "the member that has the run did not take the request");
    else
        rc = rv__fail(
            err, RV_EFAILED,
            "the member that has the run did not answer: it is not known whether it was done");
    if (request != NULL)
        drop_request(sim, request);
    return rc;
}

int rv__sim_answered(struct rv__store *aide, uint64_t id, bool give_up, rv__store_visit_text *visit,
                     void *arg, rv_error *err)
{
    enum rv__sim_line line;
    struct rv__sim_store *sim = reach(aide, &line, err);
    if (sim == NULL)
        return RV_ESTORE;
    struct rv__sim_request *request = request_of(sim, id);
    bool pending = request != NULL && request->answer.at == NULL &&
                   alive(sim, request->slot) != NULL;
    if (pending && !give_up)
        return rv__sim_leave(sim, line == SIM_LINE_UNHEARD
                                      ? unheard(err)
                                      : rv__fail(err, RV_EBUSY, "there is no answer yet"));
    return rv__sim_leave(sim, withdraw(sim, request, line, visit, arg, err));
}

/* Nobody waits here: who simulates looks when it is time. */
int rv__sim_await(struct rv__store *aide, int64_t timeout_ms, rv_error *err)
{
    (void)aide;
    (void)timeout_ms;
    (void)err;
    return RV_OK;
}

void rv__sim_members_clear(struct rv__sim_store *sim)
{
    for (size_t i = 0; i < sim->request_count; i++)
        request_done(&sim->requests[i]);
    rv__free(sim->requests);
    rv__free(sim->lanes);
}

/* ---------------------------------------------------------------------------------- judging --- */

bool rv__sim_member_lives(const struct rv__sim_store *sim, int64_t slot)
{
    return alive(sim, slot) != NULL;
}

int64_t rv__sim_lease_until_ms(const struct rv__sim_store *sim, int64_t slot)
{
    const struct rv__sim_lane *lane = alive(sim, slot);
    return lane != NULL ? lane->renewed_ms + lane->lease_ms : 0;
}

void rv__sim_leases_shift(struct rv__sim_store *sim, int64_t ms)
{
    for (size_t i = 0; i < sim->lane_count; i++)
        if (sim->lanes[i].ended == STORE_NOBODYS)
            sim->lanes[i].renewed_ms += ms;
}

void rv__sim_lapse(struct rv__sim_store *sim, int64_t slot)
{
    struct rv__sim_lane *lane = rv__sim_lane(sim, slot);
    if (lane != NULL)
        lane->renewed_ms = sim->now_ms - lane->lease_ms - 1;
}

int64_t rv__sim_owner(const struct rv__sim_store *sim, struct rv__str run)
{
    const struct rv__sim_run *found = rv__sim_find(sim, run);
    return found != NULL ? found->owner : 0;
}

bool rv__sim_given(const struct rv__sim_store *sim, struct rv__str run)
{
    const struct rv__sim_run *found = rv__sim_find(sim, run);
    return found != NULL && found->columns.active && found->given;
}

int64_t rv__sim_sleeps_until(const struct rv__sim_store *sim, struct rv__str run)
{
    const struct rv__sim_run *found = rv__sim_find(sim, run);
    bool rests = found != NULL && found->owner == 0 &&
                 (!found->columns.active || found->lacks.at != NULL);
    return rests ? found->columns.wake_at_ms : 0;
}

bool rv__sim_orphaned(const struct rv__sim_store *sim, struct rv__str run)
{
    const struct rv__sim_run *found = rv__sim_find(sim, run);
    if (found == NULL || !found->columns.active || (found->owner == 0 && found->lacks.at != NULL))
        return false;
    const struct rv__sim_lane *lane = alive(sim, found->owner);
    return lane == NULL || lane->renewed_ms + lane->lease_ms < sim->now_ms;
}

bool rv__sim_given_up(const struct rv__sim_store *sim, struct rv__str run,
                      struct rv__str *ret_lacks)
{
    const struct rv__sim_run *found = rv__sim_find(sim, run);
    if (found == NULL || !found->columns.active || found->owner != 0 || found->lacks.at == NULL)
        return false;
    *ret_lacks = view(&found->lacks);
    return true;
}

bool rv__sim_gave_up(const struct rv__sim_store *sim, struct rv__str run, int64_t member)
{
    const struct rv__sim_run *found = rv__sim_find(sim, run);
    bool gave = false;
    for (size_t i = 0; found != NULL && i < found->handed_count; i++)
        gave |= found->handed[i] == member;
    return gave;
}

int64_t rv__sim_writer(const struct rv__sim_store *sim, struct rv__str run, uint64_t seq,
                       enum rv__store_orphan *ret_from)
{
    const struct rv__sim_run *found = rv__sim_find(sim, run);
    for (size_t i = found != NULL ? found->row_count : 0; i-- > 0;)
        if (found->rows[i].seq == seq) {
            *ret_from = found->rows[i].from;
            return found->rows[i].by;
        }
    return 0;
}

size_t rv__sim_lives(const struct rv__sim_store *sim)
{
    size_t count = 0;
    for (size_t i = 0; i < sim->lane_count; i++)
        count += sim->lanes[i].ended == STORE_NOBODYS;
    return count;
}

size_t rv__sim_requests(const struct rv__sim_store *sim)
{
    size_t count = 0;
    for (size_t i = 0; i < sim->request_count; i++)
        count += sim->requests[i].answer.at == NULL && alive(sim, sim->requests[i].slot) != NULL;
    return count;
}
