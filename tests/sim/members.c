/* members.c: several real engines, each a member of one simulated store, in one thread and one world.
 *
 *   shell.c ──▶ calls, at any member ──▶ engine 1 ─┐
 *                                        engine 2 ─┼─▶ one store: leases, claims, fence, requests
 *   time, by turns of all of them ─────▶ engine 3 ─┘
 *
 * All clocks run alike, but none shows the same time. At each moment something happens at one of the members, by
 * chance; where nothing can, time passes until something can. Meanwhile members die, stand still for longer than
 * their lease and go on as if nothing had been, leave in order, and join; answers of the store are lost, and so are
 * calls between members. A member that waits for another one lets time pass for all (crowd_await()).
 *
 * In every second world members differ: each function has a member that always offers it, others offer it or do not, and a process that
 * begins in the place of another offers other functions than that one, as in an upgrade.
 *
 * Where nobody has anything to do but to look every second whether there is something, all clocks jump. */
#include "shell.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/member.h"

enum {
    MEMBERS_MOST = 4,
    BOUND_MS = 2000, /* after its lease a run is somebody's again */
    GIFT_MS = 8000, /* a run that it was given is found by a member: it looks every 5 s, at least */
    DEEP = 3,       /* calls inside of calls */
    STEPS = 200000, /* of one world: more is no end */
    STANDS_MOST = 3,  /* leases that a member stands still, at most */
    SKEW_MS = 300000, /* that clocks differ, at most */
};
#define CROWD_EPOCH INT64_C(1767225600000)
#define NEVER_MS    (INT64_MAX / 2)

struct member {
    rv_engine *engine; /* NULL: it is not there */
    struct shell_disk *disk;
    int64_t base_ms, skew_ms;
    bool stands;      /* its process is stopped, and does not know it */
    int64_t until_ms; /* the same: so long */
    int in_use;       /* calls that it is in, and turns */
    int64_t well_ms;  /* since when it has been able to do what it has to do */
    uint64_t release; /* of its program: which functions are in it */
};

struct gave {
    struct run *run;
    int number, rc;
};

struct crowd {
    struct member members[MEMBERS_MOST];
    int count, at;    /* at: the one at work */
    int depth, turns; /* waits inside of each other; the same of turns */
    int64_t now_ms, lease_ms;
    struct chance chance;      /* of its own */
    unsigned trouble_one_in;   /* steps: something happens to a member; 0 = never */
    unsigned line_one_in;      /* calls to the store fail, or are not answered; 0 = never */
    unsigned unnoticed_one_in; /* calls between members are lost; 0 = never */
    unsigned late_one_in;
    unsigned stall_one_in; /* turns: who is in a call stands still in the midst of it; 0 = never */
    unsigned unheard_one_in; /* commits whose answers are lost; 0 = never */
    bool skewed, one_place, shares;
    bool differ;   /* members offer different functions */
    uint64_t seed; /* the same: who offers what */
    uint64_t steps;
    struct gave *gave;
    size_t gave_count, gave_cap;
    uint64_t killed, stood, left, joined;
};

int64_t crowd_ms(const struct shell *s)
{
    return s->crowd->now_ms;
}

/* -------------------------------------------------------------------------------- who is at work --- */

static void use(struct shell *s, int i)
{
    struct crowd *crowd = s->crowd;
    crowd->at = i;
    s->engine = crowd->members[i].engine;
    s->disk = crowd->members[i].disk;
    s->base_ms = crowd->members[i].base_ms;
}

static int find(const struct crowd *crowd, const rv_engine *engine)
{
    for (int i = 0; i < crowd->count; i++)
        if (crowd->members[i].engine == engine)
            return i;
    abort();
}

static struct member *member_of(struct crowd *crowd, int64_t slot)
{
    for (int i = 0; i < crowd->count; i++)
        if (crowd->members[i].engine != NULL && rv__member_id(crowd->members[i].engine) == slot)
            return &crowd->members[i];
    return NULL;
}

static bool is_up(const struct member *m)
{
    return m->engine != NULL && !m->stands;
}

void crowd_pick(struct shell *s)
{
    struct crowd *crowd = s->crowd;
    if (crowd == NULL)
        return;
    int i = (int)between(&crowd->chance, 0, crowd->count - 1);
    while (!is_up(&crowd->members[i]))
        i = (i + 1) % crowd->count; /* there is one, always */
    if (crowd->turns == 0)          /* inside of a step it is the step's own */
        use(s, i);
}

static bool is_member(const struct shell *s, const struct member *m)
{
    return !m->engine->member.fenced &&
           rv__sim_member_lives(&s->world.store, rv__member_id(m->engine));
}

bool crowd_is_stale(const struct shell *s)
{
    return s->crowd != NULL && !is_member(s, &s->crowd->members[s->crowd->at]);
}

void crowd_each(struct shell *s, bool all, void (*check)(struct shell *s))
{
    struct crowd *crowd = s->crowd;
    int at = crowd->at;
    for (int i = 0; i < crowd->count && !s->world.failed; i++)
        if (is_up(&crowd->members[i]) && (all || is_member(s, &crowd->members[i]))) {
            use(s, i);
            check(s);
        }
    use(s, at);
}

/* ------------------------------------------------------------------------ who offers what --- */

static bool is_in_release(const struct crowd *crowd, int i, struct rv__str function)
{
    uint64_t name = mix(crowd->seed, rv__str_hash(RV__HASH_START, function));
    return name % (uint64_t)crowd->count == (uint64_t)i ||
           mix(name, crowd->members[i].release) % 3 == 0;
}

bool crowd_has(const struct shell *s, struct rv__str function)
{
    return s->crowd == NULL || !s->crowd->differ || is_in_release(s->crowd, s->crowd->at, function);
}

static bool offers(const struct member *m, struct rv__str function)
{
    bool found = false;
    for (const struct rv__function *f = m->engine->registry->functions; f != NULL; f = f->next)
        found |= rv__function_offered(f) && rv__str_eq(f->name, function);
    return found;
}

/* ---------------------------------------------------------------------------------------- time --- */

/* Its clocks are as late as everybody's. */
static void catch_up(struct crowd *crowd, struct member *m)
{
    int64_t ms = crowd->now_ms - m->base_ms - rv__mono_ms(m->engine->clock);
    if (ms > 0)
        rv__virtual_clock_advance(&m->engine->kit->clock, ms);
}

/* It was ahead: while it waited for its own disk nobody else moved. */
static void follow(struct shell *s, const struct member *m)
{
    struct crowd *crowd = s->crowd;
    int64_t ms = m->engine != NULL ? m->base_ms + rv__mono_ms(m->engine->clock) : 0;
    for (int i = 0; i < crowd->count && ms - crowd->now_ms > BOUND_MS / 4; i++)
        if (&crowd->members[i] != m && crowd->members[i].well_ms < ms)
            crowd->members[i].well_ms = ms; /* they could do nothing meanwhile */
    if (ms > crowd->now_ms)
        crowd->now_ms = ms;
    s->world.store.now_ms = crowd->now_ms;
}

/* A run that is active and nobody's is somebody's soon after the lease. */
static void check_orphans(struct shell *s)
{
    struct crowd *crowd = s->crowd;
    for (struct run *run = s->world.runs; run != NULL; run = run->next) {
        if (!run->began || run->over || !rv__sim_orphaned(&s->world.store, rv__str(run->id))) {
            run->orphan_ms = 0;
            continue;
        }
        if (run->orphan_ms == 0)
            run->orphan_ms = crowd->now_ms;
        int64_t since_ms = crowd->now_ms - run->orphan_ms;
        for (int i = 0; i < crowd->count && since_ms > BOUND_MS; i++)
            if (is_up(&crowd->members[i]) && crowd->members[i].well_ms <= run->orphan_ms)
                judge_fail(&s->world, run, "takeover",
                           "it is nobody's for %lld ms, and member %lld looks on",
                           (long long)since_ms, (long long)rv__member_id(crowd->members[i].engine));
    }
}

/* Who was given a run and has not found it yet; NULL: nobody. */
static const struct member *given_to(struct shell *s, const struct run *run)
{
    struct rv__str id = rv__str(run->id);
    bool given = run->began && rv__sim_given(&s->world.store, id);
    const struct member *m = given ? member_of(s->crowd, rv__sim_owner(&s->world.store, id)) : NULL;
    return m != NULL && rv__run_find(m->engine, run->id) == NULL ? m : NULL;
}

/* A run that was given to a member is found by it, however late it comes. */
static void check_gifts(struct shell *s)
{
    int64_t now_ms = s->crowd->now_ms;
    for (struct run *run = s->world.runs; run != NULL; run = run->next) {
        const struct member *m = given_to(s, run);
        run->untimely |= m != NULL;
        if (m == NULL || !is_up(m) || !is_member(s, m) || m->well_ms > run->gift_ms)
            run->gift_ms = m == NULL ? 0 : now_ms;
        else if (now_ms - run->gift_ms > GIFT_MS)
            judge_fail(&s->world, run, "gift",
                       "it was given to member %lld, which does not find it for %lld ms",
                       (long long)rv__member_id(m->engine), (long long)(now_ms - run->gift_ms));
    }
}

/* Of a run that sleeps: is it time, by the clock of a member that is well since then? NULL: no. */
static const struct member *wakes(struct shell *s, int64_t wake_ms)
{
    struct crowd *crowd = s->crowd;
    const struct member *due = NULL;
    for (int i = 0; i < crowd->count && wake_ms != 0; i++) {
        const struct member *m = &crowd->members[i];
        if (is_up(m) && is_member(s, m) && m->well_ms <= crowd->now_ms &&
            rv__wall_ms(m->engine->clock) >= wake_ms && (due == NULL || m->well_ms < due->well_ms))
            due = m;
    }
    return due;
}

/* Whoever put it to sleep may be gone: a run is woken by those that are there. */
static void check_sleepers(struct shell *s)
{
    int64_t now_ms = s->crowd->now_ms;
    for (struct run *run = s->world.runs; run != NULL; run = run->next) {
        int64_t wake_ms = run->began && !run->over
                              ? rv__sim_sleeps_until(&s->world.store, rv__str(run->id))
                              : 0;
        const struct member *m = wakes(s, wake_ms);
        if (m == NULL || run->due_ms == 0 || m->well_ms > run->due_ms)
            run->due_ms = m == NULL ? 0 : now_ms;
        else if (now_ms - run->due_ms > BOUND_MS)
            judge_fail(&s->world, run, "asleep",
                       "it should have been woken %lld ms ago, and member %lld looks on",
                       (long long)(now_ms - run->due_ms), (long long)rv__member_id(m->engine));
    }
}

static bool could_try(struct shell *s, const struct member *m, const struct run *run,
                      struct rv__str lacks)
{
    return lacks.len > 0
               ? offers(m, lacks)
               : !rv__sim_gave_up(&s->world.store, rv__str(run->id), rv__member_id(m->engine));
}

/* Of a run that was given up: who is well, and has the function or, if it has no name, has not tried? NULL: nobody. */
static const struct member *could_go_on(struct shell *s, const struct run *run,
                                        struct rv__str *lacks)
{
    struct crowd *crowd = s->crowd;
    const struct member *first = NULL;
    if (!run->began || !rv__sim_given_up(&s->world.store, rv__str(run->id), lacks))
        return NULL;
    for (int i = 0; i < crowd->count; i++) {
        const struct member *m = &crowd->members[i];
        if (is_up(m) && is_member(s, m) && could_try(s, m, run, *lacks) &&
            (first == NULL || m->well_ms < first->well_ms))
            first = m;
    }
    return first;
}

/* A run that was given up goes on at a member that offers what it lacks. */
static void check_given_up(struct shell *s)
{
    int64_t now_ms = s->crowd->now_ms;
    for (struct run *run = s->world.runs; run != NULL; run = run->next) {
        struct rv__str lacks;
        const struct member *m = could_go_on(s, run, &lacks);
        if (m == NULL || run->lacks_ms == 0 || m->well_ms > run->lacks_ms ||
            run->lacks_seq != run->seq) {
            run->lacks_ms = m == NULL ? 0 : now_ms;
            run->lacks_seq = run->seq;
        }
        if (m != NULL && now_ms - run->lacks_ms > GIFT_MS)
            judge_fail(&s->world, run, "offered",
                       "it was given up %lld ms ago for want of %.*s, which member %lld offers",
                       (long long)(now_ms - run->lacks_ms), RV__ARG(lacks),
                       (long long)rv__member_id(m->engine));
    }
}

static void pass(struct shell *s, int64_t ms)
{
    struct crowd *crowd = s->crowd;
    crowd->now_ms += ms;
    s->world.store.now_ms = crowd->now_ms;
    check_orphans(s);
    check_given_up(s);
    check_gifts(s);
    check_sleepers(s);
}

/* The time of a member's clock, as everybody's; INT64_MAX: never. */
static int64_t ms_of(const struct member *m, int64_t ns)
{
    return ns > RV__NEVER - 1000000 ? INT64_MAX : m->base_ms + (ns + 999999) / 1000000;
}

/* Does everybody only look every so often? Then *ret_ms is when one of them has more to do; INT64_MAX: never. */
static bool is_idle(struct shell *s, int64_t *ret_ms)
{
    struct crowd *crowd = s->crowd;
    struct rv__sim_store *sim = &s->world.store;
    struct rv__str lacks;
    int64_t wake_ms = 0, known_ms = 0;
    size_t here = 0;
    *ret_ms = INT64_MAX;
    for (int i = 0; i < crowd->count; i++) {
        const struct member *m = &crowd->members[i];
        if (m->engine == NULL)
            continue;
        if (m->stands || !is_member(s, m) || m->engine->member.seeks_own)
            return false;
        here++;
        int64_t load_ms = m->engine->load.wake_ms;
        if (load_ms != 0 && (known_ms == 0 || load_ms < known_ms))
            known_ms = load_ms;
        int64_t due_ns = rv__kit_own_due(m->engine);
        int64_t due_ms = ms_of(m, due_ns);
        if (due_ms < *ret_ms)
            *ret_ms = due_ms;
    }
    for (const struct run *run = s->world.runs; run != NULL; run = run->next)
        if (run->began && (rv__sim_orphaned(sim, rv__str(run->id)) || given_to(s, run) != NULL ||
                           could_go_on(s, run, &lacks) != NULL || run->due_ms != 0))
            return false;
    (void)rv__store_next_wake(&sim->store, INT64_MIN, &wake_ms, NULL); /* it is memory */
    return rv__sim_lives(sim) == here && rv__sim_requests(sim) == 0 &&
           (wake_ms == 0 || (known_ms != 0 && known_ms <= wake_ms));
}

/* All that happens meanwhile is that leases are renewed. */
static void jump_all(struct shell *s, int64_t ms)
{
    struct crowd *crowd = s->crowd;
    for (int i = 0; i < crowd->count; i++) {
        rv_engine *e = crowd->members[i].engine;
        if (e == NULL)
            continue;
        crowd->members[i].well_ms += ms; /* what is left of its lease stays the same */
        e->member.look_ms += ms;
        e->member.renew_ms += ms;
        e->member.feed_ms += ms;
        e->member.fair_ms += ms;
        e->member.soon_ms += ms;
        e->member.gifts_ms += e->member.gifts_ms != 0 ? ms : 0;
        e->kit->office_ms += ms;
    }
    rv__sim_leases_shift(&s->world.store, ms);
    pass(s, ms);
}

/* ------------------------------------------------------------------------------- lives --- */

static void crowd_await(rv_engine *e, const bool *done, rv_cancel *by, int64_t until_ms);

static void join(struct shell *s, int i)
{
    struct crowd *crowd = s->crowd;
    struct member *m = &crowd->members[i];
    int at = crowd->at;
    m->skew_ms = crowd->skewed ? between(&crowd->chance, -SKEW_MS, SKEW_MS) : 0;
    disk_move(m->disk, crowd->one_place ? 0 : (int)between(&crowd->chance, 0, 1));
    m->engine = NULL;
    m->release = crowd->differ ? (uint64_t)between(&crowd->chance, 0, 3) : 0;
    use(s, i);
    shell_open(s, CROWD_EPOCH + crowd->now_ms + m->skew_ms, false);
    m->engine = s->engine;
    m->base_ms = s->base_ms;
    m->stands = false;
    m->well_ms = crowd->now_ms;
    crowd->joined++;
    if (m->engine == NULL)
        return;
    m->engine->around.await = crowd_await;
    if (!crowd->shares)
        m->engine->member.fair_ms = NEVER_MS; /* it asks for a share when it joins, and not again */
    tell(s, "---- member %lld joins (process %d)", (long long)rv__member_id(m->engine), i);
    if (crowd->members[at].engine != NULL)
        use(s, at);
}

static int ups(const struct crowd *crowd)
{
    int count = 0;
    for (int i = 0; i < crowd->count; i++)
        count += is_up(&crowd->members[i]);
    return count;
}

/* Somebody is there to be asked, always. */
static void move_on(struct shell *s)
{
    struct crowd *crowd = s->crowd;
    while (!is_up(&crowd->members[crowd->at]))
        crowd->at = (crowd->at + 1) % crowd->count;
    use(s, crowd->at);
}

static void end(struct shell *s, struct member *m)
{
    use(s, find(s->crowd, m->engine));
    rv_engine_free(m->engine);
    m->engine = NULL;
    move_on(s);
}

/* That a member stands still. */
static int64_t how_long(struct crowd *crowd)
{
    int64_t most_ms = STANDS_MOST * crowd->lease_ms;
    return one_in(&crowd->chance, 2) ? skewed(&crowd->chance, 1, most_ms)
                                     : between(&crowd->chance, crowd->lease_ms / 2, most_ms);
}

/* In order; then another process begins in its place. Nobody waits for its lease. */
static void leave(struct shell *s, struct member *m, int64_t grace_ms)
{
    int64_t id = rv__member_id(m->engine), crashes = m->engine->kit->crashes;
    bool fenced = m->engine->member.fenced;
    s->crowd->left++;
    rv__kit_restart(m->engine, grace_ms);
    if (!fenced && m->engine->kit->crashes == crashes && s->crowd->line_one_in == 0 &&
        rv__sim_member_lives(&s->world.store, id))
        judge_fail(&s->world, NULL, "left", "member %lld has left, and nobody can know",
                   (long long)id);
}

static void change(struct shell *s, int i)
{
    struct crowd *crowd = s->crowd;
    struct member *m = &crowd->members[i];
    int at = crowd->at;
    int64_t id = rv__member_id(m->engine);
    bool alone = ups(crowd) < 2;
    catch_up(crowd, m);
    for (struct run *run = s->world.runs; run != NULL; run = run->next)
        run->untimely = true;
    use(s, i);
    switch (between(&crowd->chance, 0, alone ? 1 : 5)) {
    case 0:
        tell(s, "---- member %lld dies, and another process begins in its place", (long long)id);
        crowd->killed++;
        disk_move(m->disk, crowd->one_place ? 0 : (int)between(&crowd->chance, 0, 1));
        (void)rv_test_crash(m->engine, NULL);
        break;
    case 1: {
        int64_t grace_ms = skewed(&crowd->chance, 0, 100);
        tell(s, "---- member %lld ends in order, within %lld ms, and begins anew", (long long)id,
             (long long)grace_ms);
        leave(s, m, grace_ms);
        break;
    }
    case 2:
        tell(s, "---- member %lld dies", (long long)id);
        crowd->killed++;
        disk_kill(m->disk);
        end(s, m);
        break;
    case 3: {
        int64_t grace_ms = skewed(&crowd->chance, 0, 100);
        tell(s, "---- member %lld ends in order, within %lld ms", (long long)id,
             (long long)grace_ms);
        leave(s, m, grace_ms);
        follow(s, m);
        end(s, m);
        break;
    }
    default:
        m->stands = true;
        m->until_ms = crowd->now_ms + how_long(crowd);
        tell(s, "---- member %lld stands still for %lld ms", (long long)id,
             (long long)(m->until_ms - crowd->now_ms));
        crowd->stood++;
        break;
    }
    m->well_ms = crowd->now_ms;
    follow(s, m);
    if (is_up(&crowd->members[at]))
        use(s, at);
    else
        move_on(s);
}

static void go_on(struct shell *s, struct member *m)
{
    m->stands = false;
    m->well_ms = s->crowd->now_ms;
    catch_up(s->crowd, m);
    tell(s, "---- member %lld goes on", (long long)rv__member_id(m->engine));
}

void crowd_meddle(struct shell *s)
{
    struct crowd *crowd = s->crowd;
    int i = (int)between(&crowd->chance, 0, crowd->count - 1);
    struct member *m = &crowd->members[i];
    if (s->world.faults.calm || crowd->trouble_one_in == 0 || m->in_use > 0)
        return;
    if (m->engine == NULL)
        join(s, i);
    else if (!m->stands && one_in(&crowd->chance, 3))
        change(s, i);
}

void crowd_restore(struct shell *s)
{
    struct crowd *crowd = s->crowd;
    for (int i = 0; i < crowd->count && !s->world.failed; i++) {
        struct member *m = &crowd->members[i];
        if (m->engine == NULL)
            join(s, i);
        else if (m->stands)
            go_on(s, m);
        if (m->engine != NULL)
            m->engine->kit->lose_one_in = 0;
    }
}

void crowd_kills(struct shell *s)
{
    disk_dies_next(s->disk);
    for (struct run *run = s->world.runs; run != NULL; run = run->next)
        run->untimely = true; /* whether somebody is blamed depends on who finds out */
}

/* -------------------------------------------------------------------------------- driving --- */

/* One thing at one of them, by chance. False: nobody has anything to do; *ret_ms: when somebody has. */
static bool one_thing(struct shell *s, int64_t *ret_ms)
{
    struct crowd *crowd = s->crowd;
    int first = (int)between(&crowd->chance, 0, crowd->count - 1);
    *ret_ms = INT64_MAX;
    for (int n = 0; n < crowd->count && !s->world.failed; n++) {
        int i = (first + n) % crowd->count;
        struct member *m = &crowd->members[i];
        int64_t due_ns, due_ms;
        if (m->engine != NULL && m->stands && m->until_ms <= crowd->now_ms)
            go_on(s, m);
        if (m->engine != NULL && m->stands && m->until_ms < *ret_ms)
            *ret_ms = m->until_ms;
        if (!is_up(m))
            continue;
        use(s, i);
        catch_up(crowd, m);
        m->in_use++;
        crowd->turns++;
        bool did = rv__kit_once(m->engine, true, &due_ns);
        crowd->turns--;
        m->in_use--;
        follow(s, m);
        if (!is_member(s, m) && crowd->now_ms - m->well_ms > crowd->lease_ms)
            judge_fail(&s->world, NULL, "lease", "member %lld was well for %lld ms, and is ended",
                       (long long)rv__member_id(m->engine),
                       (long long)(crowd->now_ms - m->well_ms));
        if (!is_member(s, m))
            m->well_ms = crowd->now_ms;
        if (did)
            return true;
        due_ms = ms_of(m, due_ns);
        if (due_ms < *ret_ms)
            *ret_ms = due_ms;
    }
    return false;
}

static bool strikes_one_in(struct crowd *crowd, unsigned n)
{
    return n > 0 && one_in(&crowd->chance, n);
}

/* False: it is until_ms, or nothing is left that could happen. */
static bool step(struct shell *s, int64_t until_ms)
{
    struct crowd *crowd = s->crowd;
    int64_t next_ms, own_ms;
    bool calm = s->world.faults.calm;
    if (++crowd->steps > STEPS) {
        judge_fail(&s->world, NULL, "end", "there is no end of it");
        return false;
    }
    if (!calm && strikes_one_in(crowd, crowd->trouble_one_in))
        crowd_meddle(s);
    if (one_thing(s, &next_ms)) {
        if (!calm && crowd->now_ms < until_ms && strikes_one_in(crowd, crowd->late_one_in))
            pass(s, between(&crowd->chance, 1, 20));
        return true;
    }
    if (s->world.failed || crowd->now_ms >= until_ms)
        return false;
    if (is_idle(s, &own_ms)) {
        if (own_ms == INT64_MAX && until_ms == INT64_MAX)
            return false;
        own_ms = own_ms < until_ms ? own_ms : until_ms;
        if (own_ms > next_ms) {
            jump_all(s, own_ms - crowd->now_ms);
            return true;
        }
    }
    next_ms = next_ms < until_ms ? next_ms : until_ms;
    pass(s, next_ms > crowd->now_ms ? next_ms - crowd->now_ms : 1);
    return true;
}

void crowd_drive(struct shell *s, const bool *done, int64_t until_ms)
{
    while (!s->world.failed && !*done && step(s, until_ms))
        ;
    move_on(s);
}

/* It stands still in the midst of what it does, and the others go on. */
static void stall(struct shell *s, int at)
{
    struct crowd *crowd = s->crowd;
    struct member *m = &crowd->members[at];
    m->stands = true;
    m->until_ms = crowd->now_ms + how_long(crowd);
    tell(s, "---- member %lld stands still for %lld ms, in the midst of a call",
         (long long)rv__member_id(m->engine), (long long)(m->until_ms - crowd->now_ms));
    crowd->stood++;
    for (struct run *run = s->world.runs; run != NULL; run = run->next)
        run->untimely = true;
    int64_t until_ms = m->until_ms;
    crowd->depth++;
    while (!s->world.failed && m->stands && step(s, until_ms))
        ;
    crowd->depth--;
    if (m->stands)
        go_on(s, m);
    use(s, at);
    catch_up(crowd, m);
}

/* For its own disk nobody else is needed; but it may stand still meanwhile. */
static void answer(struct shell *s, int at, const bool *done, rv_cancel *by)
{
    struct crowd *crowd = s->crowd;
    rv_engine *e = crowd->members[at].engine;
    int64_t due_ns;
    while (!(done != NULL && *done) && !(by != NULL && rv_cancel_fired(by))) {
        if (!s->world.faults.calm && !s->world.failed && crowd->depth < DEEP && ups(crowd) > 1 &&
            strikes_one_in(crowd, disk_unheard(crowd->members[at].disk) ? 3 : crowd->stall_one_in))
            stall(s, at);
        if (!rv__kit_once(e, false, &due_ns))
            rv__virtual_clock_advance(&e->kit->clock, 1);
    }
}

/* Somebody at `e` waits. */
static void crowd_await(rv_engine *e, const bool *done, rv_cancel *by, int64_t until_ms)
{
    struct shell *s = shell_now;
    struct crowd *crowd = s->crowd;
    int at = find(crowd, e);
    struct member *m = &crowd->members[at];
    use(s, at);
    m->in_use++;
    if (until_ms == INT64_MIN) {
        answer(s, at, done, by);
    } else {
        if (until_ms != INT64_MAX)
            until_ms += m->base_ms;
        crowd->depth++;
        while (!s->world.failed && !(done != NULL && *done) &&
               !(by != NULL && rv_cancel_fired(by)) && step(s, until_ms))
            ;
        crowd->depth--;
    }
    m->in_use--;
    use(s, at);
    catch_up(crowd, m);
    follow(s, m);
    if (s->world.failed && until_ms != INT64_MAX && until_ms != INT64_MIN &&
        crowd->now_ms < until_ms)
        pass(s, until_ms - crowd->now_ms); /* nothing is judged any more: let it end */
    catch_up(crowd, m);
}

bool crowd_loses_answer(struct shell *s)
{
    return !s->world.faults.calm && strikes_one_in(s->crowd, s->crowd->unheard_one_in);
}

bool crowd_is_deep(const struct shell *s)
{
    return s->crowd != NULL && s->crowd->depth >= DEEP;
}

/* -------------------------------------------------------------------------- the store's line --- */

static enum rv__sim_line line(void *arg, int64_t slot)
{
    struct shell *s = arg;
    struct crowd *crowd = s->crowd;
    if (s->world.faults.calm || s->engine == NULL || !strikes_one_in(crowd, crowd->line_one_in))
        return SIM_LINE_WORKS;
    struct member *m = member_of(crowd, slot);
    if (m != NULL)
        m->well_ms = crowd->now_ms + 100; /* then it is tried again */
    bool unheard = one_in(&crowd->chance, 2);
    tell(s, "member %lld: the store %s", (long long)slot,
         unheard ? "does what it is asked, and its answer is lost" : "cannot be reached");
    return unheard ? SIM_LINE_UNHEARD : SIM_LINE_FAILS;
}

static void notify(void *arg, int64_t slot)
{
    struct shell *s = arg;
    struct crowd *crowd = s->crowd;
    struct member *m = member_of(crowd, slot);
    if (m == NULL || strikes_one_in(crowd, crowd->unnoticed_one_in))
        return; /* it looks by itself, some time */
    int64_t at_ms = crowd->now_ms - m->base_ms + skewed(&crowd->chance, 0, 200);
    if (at_ms < m->engine->kit->office_ms)
        m->engine->kit->office_ms = at_ms;
}

/* -------------------------------------------------------------------------------- judging --- */

bool crowd_excuses(const struct shell *s, int rc)
{
    return s->crowd != NULL && !s->world.faults.calm && (rc == RV_ESTORE || rc == RV_EFAILED);
}

void crowd_gave(struct shell *s, struct run *run, int number, int rc)
{
    struct crowd *crowd = s->crowd;
    if (crowd == NULL)
        return;
    if (crowd->gave_count == crowd->gave_cap) {
        crowd->gave_cap = crowd->gave_cap * 2 + 16;
        crowd->gave = sim_grow(crowd->gave, crowd->gave_cap * sizeof *crowd->gave);
    }
    crowd->gave[crowd->gave_count++] = (struct gave){ run, number, rc };
}

/* Once, if that was said; not at all, if it was refused; and never twice. */
static void check_gave(struct shell *s, const struct gave *gave)
{
    char payload[32];
    int count = 0;
    const struct record *rec = &gave->run->rec;
    snprintf(payload, sizeof payload, "{\"signal\":%d}", gave->number);
    for (size_t i = 0; i < rec->signal_count; i++)
        if (rec->signals[i].payload != NULL &&
            rv__str_is(rv__blob_str(rec->signals[i].payload), payload))
            count++;
    if (count > 1 || (gave->rc == RV_OK && count == 0) ||
        (gave->rc < 0 && gave->rc != RV_EFAILED && count > 0))
        judge_fail(&s->world, gave->run, "once",
                   "a signal was given, which said %d, and it is there %d times", gave->rc, count);
}

void crowd_row(struct shell *s, struct run *run, uint64_t seq, struct rv__str facts)
{
    enum rv__store_orphan from = STORE_NOBODYS;
    int64_t by = rv__sim_writer(&s->world.store, rv__str(run->id), seq, &from);
    if (run->wrote_count == run->wrote_cap) {
        run->wrote_cap = run->wrote_cap * 2 + 16;
        run->wrote = sim_grow(run->wrote, run->wrote_cap * sizeof *run->wrote);
    }
    run->wrote[run->wrote_count++] = (struct wrote){ run->rec.t, by };
    if (from != STORE_DIED && memmem(facts.at, facts.len, "\"deaths\":", 9) != NULL)
        judge_fail(&s->world, run, "blame",
                   "a death is counted, and its last member is not known to have died");
}

bool crowd_wrote(struct shell *s, const struct run *run, int64_t t)
{
    size_t low = 0, high = run->wrote_count;
    if (s->crowd == NULL)
        return true;
    while (low < high) { /* the first with facts behind t */
        size_t mid = low + (high - low) / 2;
        if (run->wrote[mid].t > t)
            high = mid;
        else
            low = mid + 1;
    }
    return low < run->wrote_count && run->wrote[low].by == rv__member_id(s->engine);
}

bool crowd_owns(const struct shell *s, const struct run *run)
{
    return s->crowd == NULL ||
           rv__sim_owner(&s->world.store, rv__str(run->id)) == rv__member_id(s->engine);
}

bool crowd_is_behind(const struct shell *s, const struct run *run)
{
    const struct rv__run *r = s->crowd != NULL ? rv__run_find(s->engine, run->id) : NULL;
    return r != NULL && r->cell != NULL && !crowd_owns(s, run);
}

void crowd_holds(struct shell *s, struct run *run, const struct rv__run *r)
{
    int64_t owner = rv__sim_owner(&s->world.store, rv__str(run->id));
    if (r->phase == RV__IDLE && r->cell != NULL && owner != rv__member_id(s->engine))
        judge_fail(&s->world, run, "owner", "member %lld has it in memory, and it is member %lld's",
                   (long long)rv__member_id(s->engine), (long long)owner);
}

const char *crowd_whose(struct shell *s, const struct run *run)
{
    static char text[300];
    struct rv__str lacks = { "", 0 };
    int64_t owner = rv__sim_owner(&s->world.store, rv__str(run->id));
    const struct member *m = member_of(s->crowd, owner);
    const struct rv__run *r = m != NULL ? rv__run_find(m->engine, run->id) : NULL;
    if (rv__sim_given_up(&s->world.store, rv__str(run->id), &lacks)) {
        snprintf(text, sizeof text, " and given up for want of '%.*s'", RV__ARG(lacks));
        return text;
    }
    snprintf(text, sizeof text, " and member %lld's, which %s%s", (long long)owner,
             m == NULL                  ? "is not there"
             : m->stands                ? "stands still"
             : m->engine->member.fenced ? "is fenced"
                                        : "is there",
             m == NULL         ? ""
             : r == NULL       ? " and does not have it"
             : r->cell == NULL ? " and is to load it"
                               : " and has it");
    return text;
}

bool crowd_busy(struct shell *s, const struct run *run)
{
    struct crowd *crowd = s->crowd;
    for (int i = 0; i < crowd->count; i++) {
        if (crowd->members[i].engine == NULL)
            continue;
        const struct rv__run *r = rv__run_find(crowd->members[i].engine, run->id);
        if (r != NULL && r->phase != RV__IDLE && r->phase != RV__ABSENT)
            return true;
    }
    return false;
}

bool crowd_given(const struct shell *s, const struct run *run)
{
    return s->crowd != NULL && rv__sim_given(&s->world.store, rv__str(run->id));
}

bool crowd_is_punctual(const struct shell *s)
{
    const struct crowd *c = s->crowd;
    return c == NULL ||
           (c->late_one_in == 0 && c->line_one_in == 0 && c->stall_one_in == 0 &&
            c->unheard_one_in == 0 && !c->skewed && !c->differ && c->trouble_one_in == 0);
}

void crowd_over(struct shell *s)
{
    struct crowd *crowd = s->crowd;
    for (size_t i = 0; i < crowd->gave_count && !s->world.failed; i++)
        check_gave(s, &crowd->gave[i]);
}

/* -------------------------------------------------------------------------------- the world --- */

void crowd_new(struct shell *s, uint64_t seed)
{
    struct crowd *crowd = s->crowd = sim_alloc(sizeof *crowd);
    struct chance *c = &crowd->chance;
    chance_init(c, mix(seed, 11));
    crowd->count = (int)between(c, 2, MEMBERS_MOST);
    crowd->lease_ms = between(c, 1000, 10000);
    crowd->now_ms = 1000;
    crowd->trouble_one_in = one_in(c, 6) ? 0 : (unsigned)skewed(c, 10, 300);
    crowd->line_one_in = one_in(c, 2) ? 0 : (unsigned)skewed(c, 4, 100);
    crowd->unnoticed_one_in = one_in(c, 2) ? 0 : (unsigned)between(c, 1, 4);
    crowd->late_one_in = one_in(c, 2) ? 0 : (unsigned)between(c, 2, 20);
    crowd->stall_one_in = one_in(c, 2) ? 0 : (unsigned)skewed(c, 10, 200);
    crowd->unheard_one_in = one_in(c, 2) ? 0 : (unsigned)between(c, 2, 20);
    crowd->skewed = one_in(c, 2);
    crowd->one_place = one_in(c, 2);
    crowd->shares = mix(seed, 12) % 2 == 1;
    crowd->differ = mix(seed, 13) % 2 == 1;
    crowd->seed = mix(seed, 14);
    for (int i = 0; i < crowd->count; i++)
        crowd->members[i].disk = disk_of_member(s, crowd->lease_ms, 0);
    s->crew.most = 0;
    s->budget = SIZE_MAX;
    s->world.store.now_ms = crowd->now_ms;
    s->world.store.line = line;
    s->world.store.notify = notify;
    s->world.store.members_arg = s;
}

void crowd_open(struct shell *s)
{
    struct crowd *crowd = s->crowd;
    for (int i = 0; i < crowd->count && !s->world.failed; i++)
        if (i == 0 || !one_in(&crowd->chance, 4)) /* some join later */
            join(s, i);
    crowd_pick(s);
}

void crowd_free(struct shell *s)
{
    struct crowd *crowd = s->crowd;
    for (int i = 0; i < crowd->count; i++) {
        if (crowd->members[i].engine != NULL) {
            use(s, i);
            rv_engine_free(s->engine);
        }
        disk_free(crowd->members[i].disk);
    }
    for (struct run *run = s->world.runs; run != NULL; run = run->next)
        free(run->wrote);
    free(crowd->gave);
    free(crowd);
    s->crowd = NULL;
}
