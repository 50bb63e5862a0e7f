/* suite_members.c: several processes share a store: leases, claims, fences, and what members ask of each other.
 * Two members, a and b, of the store that the fixture opened; leases end when the test says so. */
#include "unit/store/store_fixture.h"

struct pair {
    struct fixture fx;              /* first: its store is a's, or b's, as the test wants */
    struct rv__store *a, *b, *aide; /* `aide` is of a */
};

static const struct rv__store_ops *ops_of(const struct rv__store *store)
{
    return store->ops;
}

static int pair_setup(void **state)
{
    struct fixture *fx = NULL;
    (void)store_setup((void **)&fx);
    struct pair *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->fx = *fx;
    free(fx);
    rv__store_close(p->fx.store); /* it had the store alone */
    p->a = p->fx.maker->join(p->fx.maker);
    p->b = p->fx.maker->join(p->fx.maker);
    assert_int_equal(ops_of(p->a)->aide(p->a, &p->aide, NULL), RV_OK);
    p->fx.store = p->a;
    *state = p;
    return 0;
}

static int pair_teardown(void **state)
{
    struct pair *p = *state;
    rv__test_fail_alloc_after(-1);
    rv__store_close(p->aide);
    rv__store_close(p->b);
    p->fx.maker->remove(p->fx.maker, p->a);
    rv__buf_done(&p->fx.seen);
    free(p);
    return 0;
}

static int64_t id_of(struct rv__store *store)
{
    return ops_of(store)->member(store);
}

static int see_claimed(void *arg, const struct rv__store_claimed *run)
{
    static const char *const from[] = { "", "!died", "!expired", "!left" };
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s%s ", RV__ARG(run->id), from[run->from]);
    return RV_OK;
}

/* What the member claims of active runs of any workflow. */
static void claims(struct pair *p, struct rv__store *member, const char *expected)
{
    struct rv__store_claim claim = { .member = id_of(member), .any = true, .limit = 10 };
    rv_error err = { 0, "" };
    if (ops_of(p->aide)->claim(p->aide, &claim, see_claimed, &p->fx, &err) != RV_OK)
        fail_msg("%s", err.message);
    seen(&p->fx, expected);
}

static void expires(struct pair *p, size_t expected)
{
    size_t ended = 0;
    assert_int_equal(ops_of(p->aide)->expire(p->aide, &ended, NULL), RV_OK);
    assert_int_equal(ended, expected);
}

static void lapse(struct pair *p, struct rv__store *member)
{
    p->fx.maker->lapse(p->fx.maker, id_of(member));
}

static int64_t owner_of(struct pair *p, struct rv__store *asks, const char *run,
                        enum rv__store_orphan *from)
{
    int64_t owner = -1;
    rv_error err = { 0, "" };
    int rc = ops_of(p->aide)->claim_run(p->aide, id_of(asks), rv__str(run), &owner, from, &err);
    return rc == RV_OK ? owner : rc;
}

static void who_begins_a_run_has_it(void **state)
{
    struct pair *p = *state;
    enum rv__store_orphan from;
    assert_true(id_of(p->a) > 0 && id_of(p->b) > id_of(p->a));
    (void)begin(&p->fx, "r", "f1");
    claims(p, p->b, "");
    assert_int_equal(owner_of(p, p->b, "r", &from), id_of(p->a));
    assert_int_equal(owner_of(p, p->a, "r", &from), id_of(p->a));
    assert_int_equal(owner_of(p, p->b, "absent", &from), RV_ENOTFOUND);
}

/* Whoever wants it takes it: a timer that is due, or a message. */
static void a_run_at_rest_is_nobodys(void **state)
{
    struct pair *p = *state;
    enum rv__store_orphan from = STORE_DIED;
    struct rv__store_claim due = {
        .member = id_of(p->b), .any = true, .due = true, .due_ms = 100, .limit = 10
    };
    (void)begin(&p->fx, "early", "f");
    (void)begin(&p->fx, "late", "f");
    touch(&p->fx, "early",
          (struct rv__store_touch){ .status = rv__str("running"), .wake_at_ms = 90 });
    touch(&p->fx, "late",
          (struct rv__store_touch){ .status = rv__str("running"), .wake_at_ms = 101 });
    claims(p, p->b, "");
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &due, see_claimed, &p->fx, NULL), RV_OK);
    seen(&p->fx, "early ");
    assert_int_equal(owner_of(p, p->a, "early", &from), id_of(p->b));
    assert_int_equal(owner_of(p, p->a, "late", &from), id_of(p->a));
    assert_int_equal(from, STORE_NOBODYS);
}

static void a_member_claims_what_it_can_run(void **state)
{
    struct pair *p = *state;
    struct rv__str names[] = { rv__str("other"), rv__str("wf") };
    struct rv__store_claim claim = { .member = id_of(p->b), .workflows = names, .limit = 1 };
    put(&p->fx, "one", "running", 1, 0, true, 0);
    put(&p->fx, "two", "running", 2, 0, true, 0);
    (void)begin(&p->fx, "nameless", "f");
    assert_int_equal(ops_of(p->a)->part(p->a, NULL), RV_OK);
    claim.workflow_count = 1;
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &claim, see_claimed, &p->fx, NULL), RV_OK);
    seen(&p->fx, "");
    claim.workflow_count = 2;
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &claim, see_claimed, &p->fx, NULL), RV_OK);
    seen(&p->fx, "one!left ");
    claim.limit = 5;
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &claim, see_claimed, &p->fx, NULL), RV_OK);
    seen(&p->fx, "two!left ");
}

static void an_expired_member_loses_its_runs_and_writes_nothing(void **state)
{
    struct pair *p = *state;
    struct rv__store_write late = { .run = rv__str("r"), .facts = rv__str("late") };
    rv_error err = { 0, "" };
    (void)begin(&p->fx, "r", "f1");
    expires(p, 0);
    lapse(p, p->a);
    claims(p, p->b, ""); /* nobody has ended it yet */
    expires(p, 1);
    expires(p, 0);
    claims(p, p->b, "r!expired ");
    claims(p, p->b, "");
    p->fx.store = p->b;
    (void)append(&p->fx, "r", "f2");
    assert_int_equal(rv__store_commit(p->a, &late, 1, &err), RV_EGONE);
    assert_int_equal(rv__store_commit(p->a, &late, 1, &err), RV_EGONE);
    assert_int_equal(ops_of(p->a)->renew(p->a, "", &err), RV_EGONE);
    journal_is(&p->fx, "r", 0, "[f1][f2]");
    /* As somebody new it may go on, with runs of its own. */
    int64_t before = id_of(p->a);
    assert_int_equal(ops_of(p->a)->rejoin(p->a, &err), RV_OK);
    assert_true(id_of(p->a) > before);
    p->fx.store = p->a;
    (void)begin(&p->fx, "s", "g");
    claims(p, p->a, "");
    journal_is(&p->fx, "s", 0, "[g]");
}

static void a_lease_is_renewed_by_renewing_and_by_writing(void **state)
{
    struct pair *p = *state;
    (void)begin(&p->fx, "r", "f1");
    lapse(p, p->a);
    assert_int_equal(ops_of(p->a)->renew(p->a, "", NULL), RV_OK);
    expires(p, 0);
    lapse(p, p->a);
    (void)append(&p->fx, "r", "f2");
    expires(p, 0);
    claims(p, p->b, "");
}

static void an_ended_member_claims_nothing(void **state)
{
    struct pair *p = *state;
    struct rv__store_claim claim = { .member = id_of(p->b), .any = true, .limit = 10 };
    enum rv__store_orphan from;
    (void)begin(&p->fx, "r", "f");
    assert_int_equal(ops_of(p->a)->part(p->a, NULL), RV_OK);
    lapse(p, p->b);
    expires(p, 1);
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &claim, see_claimed, &p->fx, NULL), RV_EGONE);
    assert_int_equal(owner_of(p, p->b, "r", &from), RV_EGONE);
    seen(&p->fx, "");
}

/* Active, and nobody's, as its owner cannot continue it: others claim it, if they have what it lacks. */
static void a_run_that_is_given_up_is_for_who_can_continue_it(void **state)
{
    struct pair *p = *state;
    struct rv__str workflow = rv__str("wf"), function = rv__str("other");
    struct rv__store_claim claim = { .member = id_of(p->b),
                                     .workflows = &workflow,
                                     .workflow_count = 1,
                                     .functions = &function,
                                     .function_count = 1,
                                     .limit = 10 };
    int64_t owner = -1;
    bool lacks = false;
    put(&p->fx, "one", "running", 1, 0, true, 0);
    put(&p->fx, "two", "running", 2, 0, true, 0);
    touch(&p->fx, "one",
          (struct rv__store_touch){ .status = rv__str("running"),
                                    .active = true,
                                    .to = RV__STORE_NOBODY,
                                    .lacks = rv__str("pack") });
    touch(&p->fx, "two",
          (struct rv__store_touch){
              .status = rv__str("running"), .active = true, .to = RV__STORE_NOBODY });
    assert_int_equal(ops_of(p->aide)->owner(p->aide, rv__str("one"), &owner, &lacks, NULL), RV_OK);
    assert_true(owner == 0 && lacks);
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &claim, see_claimed, &p->fx, NULL), RV_OK);
    seen(&p->fx, "two "); /* it lacks what has no name: whoever has not tried may try */
    function = rv__str("pack");
    claim.member = id_of(p->a);
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &claim, see_claimed, &p->fx, NULL), RV_OK);
    seen(&p->fx, ""); /* a gave it up itself */
    p->fx.store = p->b;
    touch(&p->fx, "two",
          (struct rv__store_touch){
              .status = rv__str("running"), .active = true, .to = RV__STORE_NOBODY });
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &claim, see_claimed, &p->fx, NULL), RV_OK);
    seen(&p->fx, ""); /* so did a, before b */
    claim.anew = true;
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &claim, see_claimed, &p->fx, NULL), RV_OK);
    seen(&p->fx, "one two ");
    assert_int_equal(ops_of(p->aide)->owner(p->aide, rv__str("one"), &owner, &lacks, NULL), RV_OK);
    assert_true(owner == id_of(p->a) && !lacks);
    p->fx.store = p->a;
    touch(&p->fx, "one", (struct rv__store_touch){ .status = rv__str("running"), .active = true });
    assert_int_equal(ops_of(p->a)->part(p->a, NULL), RV_OK);
    claims(p, p->b, "one!left two!left ");
    assert_int_equal(ops_of(p->aide)->owner(p->aide, rv__str("absent"), &owner, &lacks, NULL),
                     RV_ENOTFOUND);
}

static void a_run_can_be_given_to_a_member(void **state)
{
    struct pair *p = *state;
    enum rv__store_orphan from;
    struct rv__store_claim gifts = {
        .member = id_of(p->b), .any = true, .own = true, .given = true, .limit = 10
    };
    put(&p->fx, "one", "running", 1, 0, true, 0);
    touch(&p->fx, "one",
          (struct rv__store_touch){
              .status = rv__str("running"), .active = true, .to = id_of(p->b) });
    assert_int_equal(owner_of(p, p->a, "one", &from), id_of(p->b));
    claims(p, p->a, "");
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &gifts, see_claimed, &p->fx, NULL), RV_OK);
    seen(&p->fx, "one ");
    p->fx.store = p->b;
    touch(&p->fx, "one", (struct rv__store_touch){ .status = rv__str("running"), .active = true });
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &gifts, see_claimed, &p->fx, NULL), RV_OK);
    seen(&p->fx, ""); /* it is its own now as any other */
    touch(&p->fx, "one",
          (struct rv__store_touch){
              .status = rv__str("running"), .active = true, .to = id_of(p->b) + 100 });
    claims(p, p->a, "one "); /* there is no such member: it is anybody's */
}

/* A lost answer: the runs are there, and nobody else claims them. */
static void what_is_ones_own_can_be_found_again(void **state)
{
    struct pair *p = *state;
    struct rv__store_claim own = { .member = id_of(p->b), .any = true, .own = true, .limit = 10 };
    (void)begin(&p->fx, "r", "f");
    assert_int_equal(ops_of(p->a)->part(p->a, NULL), RV_OK);
    claims(p, p->b, "r!left ");
    assert_int_equal(ops_of(p->aide)->claim(p->aide, &own, see_claimed, &p->fx, NULL), RV_OK);
    assert_non_null(strstr(p->fx.seen.text, "r"));
    rv__buf_reset(&p->fx.seen);
}

/* It was claimed and never written: the member that ends gives it back. */
static void a_claimed_run_at_rest_becomes_free_again(void **state)
{
    struct pair *p = *state;
    enum rv__store_orphan from;
    put(&p->fx, "r", "suspended", 1, 0, false, 0);
    assert_int_equal(owner_of(p, p->b, "r", &from), id_of(p->b));
    lapse(p, p->b);
    expires(p, 1);
    assert_int_equal(owner_of(p, p->a, "r", &from), id_of(p->a));
}

/* Both think that it is theirs: what was decided on an older state is refused alone. */
static void a_write_follows_the_row_it_was_decided_on(void **state)
{
    struct pair *p = *state;
    uint64_t first = begin(&p->fx, "r", "f1");
    struct rv__store_run row = active_row("s");
    struct rv__store_write both[] = {
        { .run = rv__str("r"), .facts = rv__str("stale"), .after = first },
        { .run = rv__str("s"), .facts = rv__str("g"), .row = &row },
    };
    struct rv__store_write next = { .run = rv__str("r"), .facts = rv__str("f2"), .after = first };
    assert_int_equal(rv__store_commit_one(p->b, &next, NULL), RV_OK);
    assert_int_equal(rv__store_commit(p->a, both, 2, NULL), RV_OK);
    assert_int_equal(both[0].outcome, STORE_REFUSED);
    assert_int_equal(both[0].why.code, RV_ESTATE);
    assert_int_equal(both[1].outcome, STORE_WRITTEN);
    journal_is(&p->fx, "r", 0, "[f1][f2]");
    /* It was read again, and goes on from there. */
    struct rv__store_write again = { .run = rv__str("r"),
                                     .facts = rv__str("f3"),
                                     .after = next.seq };
    assert_int_equal(rv__store_commit_one(p->a, &again, NULL), RV_OK);
    journal_is(&p->fx, "r", 0, "[f1][f2][f3]");
}

static void two_members_that_begin_the_same_run_agree(void **state)
{
    struct pair *p = *state;
    struct rv__store_run row = active_row("r");
    struct rv__store_write write = {
        .run = rv__str("r"), .facts = rv__str("b"), .row = &row, .begins = true
    };
    (void)begin(&p->fx, "r", "a");
    assert_int_equal(rv__store_commit(p->b, &write, 1, NULL), RV_OK);
    assert_int_equal(write.outcome, STORE_REFUSED);
    assert_int_equal(write.why.code, RV_EEXIST);
    journal_is(&p->fx, "r", 0, "[a]");
}

static void counts_are_of_all_members_also_of_those_that_are_gone(void **state)
{
    struct pair *p = *state;
    put(&p->fx, "one", "running", 1, 0, true, 0);
    p->fx.store = p->b;
    put(&p->fx, "two", "running", 1, 0, true, 0);
    counts_are(&p->fx, "running=2 ", 2, 0);
    lapse(p, p->a);
    expires(p, 1);
    claims(p, p->b, "one!expired ");
    expires(p, 0); /* its lane goes, since no run is its own */
    touch(&p->fx, "one", (struct rv__store_touch){ .status = rv__str("done"), .completed_ms = 5 });
    counts_are(&p->fx, "done=1 running=1 ", 2, 1);
}

static int see_member(void *arg, const struct rv__store_member *member)
{
    struct fixture *fx = arg;
    assert_true(member->since_ms > 0 && member->lease_until_ms > 0);
    rv__buf_fmt(&fx->seen, "%lld:%llu ", (long long)member->id, (unsigned long long)member->runs);
    return RV_OK;
}

static void members_are(struct pair *p, struct rv__store *one, int runs, struct rv__store *two,
                        int other)
{
    char expected[80];
    int n = snprintf(expected, sizeof expected, "%lld:%d ", (long long)id_of(one), runs);
    if (two != NULL)
        snprintf(expected + n, sizeof expected - (size_t)n, "%lld:%d ", (long long)id_of(two),
                 other);
    assert_int_equal(ops_of(p->aide)->members(p->aide, false, see_member, &p->fx, NULL), RV_OK);
    seen(&p->fx, expected);
}

static void members_are_listed_while_they_live(void **state)
{
    struct pair *p = *state;
    members_are(p, p->a, 0, p->b, 0);
    (void)begin(&p->fx, "one", "f");
    (void)begin(&p->fx, "two", "f");
    members_are(p, p->a, 2, p->b, 0);
    assert_int_equal(ops_of(p->b)->part(p->b, NULL), RV_OK);
    members_are(p, p->a, 2, NULL, 0);
}

static int see_address(void *arg, const struct rv__store_member *member)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%lld at %.*s ", (long long)member->id, RV__ARG(member->workers));
    return RV_OK;
}

static void reachable_are(struct pair *p, const char *expected)
{
    assert_int_equal(ops_of(p->aide)->members(p->aide, true, see_address, &p->fx, NULL), RV_OK);
    seen(&p->fx, expected);
}

static void members_say_where_workers_reach_them(void **state)
{
    struct pair *p = *state;
    char expected[80];
    reachable_are(p, "");
    assert_int_equal(ops_of(p->b)->renew(p->b, "tls://b:7070", NULL), RV_OK);
    snprintf(expected, sizeof expected, "%lld at tls://b:7070 ", (long long)id_of(p->b));
    reachable_are(p, expected);
    (void)begin(&p->fx, "one", "f"); /* writing renews as well, and changes nothing of it */
    reachable_are(p, expected);
    assert_int_equal(ops_of(p->b)->renew(p->b, "", NULL), RV_OK);
    reachable_are(p, "");
    assert_int_equal(ops_of(p->b)->renew(p->b, "tls://b:7070", NULL), RV_OK);
    assert_int_equal(ops_of(p->b)->part(p->b, NULL), RV_OK);
    reachable_are(p, "");
}

struct request {
    uint64_t id;
    int count;
    char text[40];
};

static int take_request(void *arg, uint64_t id, struct rv__str text)
{
    struct request *request = arg;
    request->id = id;
    request->count++;
    snprintf(request->text, sizeof request->text, "%.*s", RV__ARG(text));
    return RV_OK;
}

static int answered(struct pair *p, uint64_t id, bool give_up, const char *expected)
{
    struct request answer = { .id = 0 };
    int rc = ops_of(p->aide)->answered(p->aide, id, give_up, take_request, &answer, NULL);
    assert_string_equal(answer.text, expected);
    return rc;
}

static void members_ask_each_other(void **state)
{
    struct pair *p = *state;
    const struct rv__store_ops *ops = ops_of(p->aide);
    struct request request = { .id = 0 };
    uint64_t id = 0, other = 0;
    assert_int_equal(ops->ask(p->aide, id_of(p->b), rv__str("please"), &id, NULL), RV_OK);
    assert_int_equal(ops->asked(p->aide, id_of(p->a), take_request, &request, NULL), RV_OK);
    assert_int_equal(request.count, 0);
    assert_int_equal(answered(p, id, false, ""), RV_EBUSY);
    assert_int_equal(ops->asked(p->aide, id_of(p->b), take_request, &request, NULL), RV_OK);
    assert_string_equal(request.text, "please");
    assert_int_equal(request.id, id);
    assert_int_equal(ops->asked(p->aide, id_of(p->b), take_request, &request, NULL), RV_OK);
    assert_int_equal(request.count, 1);
    assert_int_equal(ops->answer(p->aide, id, rv__str("done"), NULL), RV_OK);
    assert_int_equal(ops->await(p->aide, 0, NULL), RV_OK);
    assert_int_equal(answered(p, id, false, "done"), RV_OK);
    assert_int_equal(ops->ask(p->aide, id_of(p->b), rv__str("more"), &other, NULL), RV_OK);
    assert_true(other > id);
    assert_int_equal(answered(p, other, true, ""), RV_ECLOSED); /* not taken: nothing was done */
}

static void who_asks_a_member_that_ends_is_told(void **state)
{
    struct pair *p = *state;
    const struct rv__store_ops *ops = ops_of(p->aide);
    struct request request = { .id = 0 };
    uint64_t taken = 0, untouched = 0, third = 0;
    assert_int_equal(ops->ask(p->aide, id_of(p->b), rv__str("x"), &taken, NULL), RV_OK);
    assert_int_equal(ops->asked(p->aide, id_of(p->b), take_request, &request, NULL), RV_OK);
    assert_int_equal(ops->ask(p->aide, id_of(p->b), rv__str("y"), &untouched, NULL), RV_OK);
    lapse(p, p->b);
    expires(p, 1);
    assert_int_equal(answered(p, taken, false, ""), RV_EFAILED);
    assert_int_equal(answered(p, untouched, false, ""), RV_ECLOSED);
    assert_int_equal(ops->ask(p->aide, id_of(p->b), rv__str("z"), &third, NULL), RV_ECLOSED);
}

/* One member of those that live has a mark; who has ended moves it no more. */
static void a_mark_is_one_members(void **state)
{
    struct pair *p = *state;
    struct rv__store_mark of_a = { .name = rv__str("m"), .seq = 1 },
                          of_b = { .name = rv__str("m"), .seq = 5 },
                          both[] = { { .name = rv__str("own"), .seq = 2 },
                                     { .name = rv__str("m"), .seq = 2 } };
    assert_int_equal(rv__store_take_marks(p->a, &of_a, 1, NULL), RV_OK);
    assert_true(of_a.ours);
    assert_int_equal(rv__store_take_marks(p->b, both, 2, NULL), RV_OK);
    assert_true(both[0].ours);
    assert_false(both[1].ours);
    of_b.ours = true;
    assert_int_equal(rv__store_move_marks(p->b, &of_b, 1, NULL), RV_OK);
    assert_false(of_b.ours);
    marks_are(&p->fx, "m=1.0! own=2.0! ");
    of_a.seq = 3;
    assert_int_equal(rv__store_take_marks(p->a, &of_a, 1, NULL), RV_OK); /* its own, again */
    assert_true(of_a.ours);
    assert_int_equal(of_a.seq, 1);
    lapse(p, p->a);
    expires(p, 1);
    marks_are(&p->fx, "m=1.0 own=2.0! ");
    assert_int_equal(rv__store_move_marks(p->a, &of_a, 1, NULL), RV_EGONE);
    assert_int_equal(rv__store_take_marks(p->a, &of_a, 1, NULL), RV_EGONE);
    p->fx.store = p->b;
    assert_int_equal(rv__store_take_marks(p->b, &of_b, 1, NULL), RV_OK);
    assert_true(of_b.ours);
    assert_int_equal(of_b.seq, 1);
    marks_are(&p->fx, "m=1.0! own=2.0! ");
    assert_int_equal(ops_of(p->b)->part(p->b, NULL), RV_OK);
    assert_int_equal(ops_of(p->a)->rejoin(p->a, NULL), RV_OK);
    p->fx.store = p->a;
    marks_are(&p->fx, "m=1.0 own=2.0 ");
    assert_int_equal(rv__store_take_marks(p->a, &of_a, 1, NULL), RV_OK);
    assert_true(of_a.ours);
    of_a.gone = true;
    assert_int_equal(rv__store_move_marks(p->a, &of_a, 1, NULL), RV_OK);
    marks_are(&p->fx, "own=2.0 ");
}

#define PAIR_CASE(name) cmocka_unit_test_setup_teardown(name, pair_setup, pair_teardown)

int store_suite_members(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_CASE(who_begins_a_run_has_it),
        PAIR_CASE(a_run_at_rest_is_nobodys),
        PAIR_CASE(a_member_claims_what_it_can_run),
        PAIR_CASE(an_expired_member_loses_its_runs_and_writes_nothing),
        PAIR_CASE(a_lease_is_renewed_by_renewing_and_by_writing),
        PAIR_CASE(an_ended_member_claims_nothing),
        PAIR_CASE(a_run_that_is_given_up_is_for_who_can_continue_it),
        PAIR_CASE(a_run_can_be_given_to_a_member),
        PAIR_CASE(what_is_ones_own_can_be_found_again),
        PAIR_CASE(a_claimed_run_at_rest_becomes_free_again),
        PAIR_CASE(a_write_follows_the_row_it_was_decided_on),
        PAIR_CASE(two_members_that_begin_the_same_run_agree),
        PAIR_CASE(counts_are_of_all_members_also_of_those_that_are_gone),
        PAIR_CASE(members_are_listed_while_they_live),
        PAIR_CASE(members_say_where_workers_reach_them),
        PAIR_CASE(members_ask_each_other),
        PAIR_CASE(who_asks_a_member_that_ends_is_told),
        PAIR_CASE(a_mark_is_one_members),
    };
    return STORE_GROUP("members", tests);
}
