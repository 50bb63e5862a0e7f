/* shell_workers.c: workers, as the engine's loop knows them: they come, change their credits, are lost and come back with
 * what they had, leave, or die with all that they had. What each does is shell_work.c's, as everything. */
#include "shell.h"

enum { FIRST_WORKS = 64 };
#define CREW_MARK UINT64_C(0xc0ffee) /* the hash of functions that are theirs */

void crew_init(struct shell *s, uint64_t seed)
{
    struct crew *crew = &s->crew;
    chance_init(&crew->chance, mix(seed, 5));
    crew->most = one_in(&crew->chance, 2) ? 0 : (int)between(&crew->chance, 1, CREW_MOST);
    crew->one_in = (unsigned)between(&crew->chance, 1, 3);
    for (int i = 0; i < CREW_MOST; i++)
        crew->credits[i] = skewed(&crew->chance, 1, 8);
}

static uint64_t life_of(const struct shell *s)
{
    return s->lives << 32 | s->engine->life;
}

static bool is_here(const struct shell *s, int i)
{
    int64_t credits, taken;
    uint32_t ticket = s->crew.tickets[i];
    return ticket > 0 && s->crew.life[i] == life_of(s) &&
           rv__worker_load(s->engine, ticket, &credits, &taken);
}

/* The first one has all that is theirs, so that nothing is missing while it is there. */
static void join(struct shell *s, int i)
{
    struct crew *crew = &s->crew;
    rv_engine *e = s->engine;
    uint32_t ticket = rv__worker_join(e, NULL, crew->credits[i]);
    if (ticket == 0)
        abort();
    crew->tickets[i] = ticket;
    crew->life[i] = life_of(s);
    crew->away[i] = false;
    for (struct rv__function *f = e->registry->functions; f != NULL; f = f->next) {
        if (f->hash != CREW_MARK || (i > 0 && one_in(&crew->chance, 2)))
            continue;
        struct rv__registered *r = rv__registry_find(e->registry, f->workflow);
        bool own = r != NULL && one_in(&crew->chance, 2);
        if (rv__worker_offer(e->registry, ticket, f, own ? r->plan->plan->version : "other") < 0)
            abort();
    }
    tell(s, "worker %d comes, and takes %lld at once", i, (long long)crew->credits[i]);
}

bool crew_restore(struct shell *s)
{
    struct crew *crew = &s->crew;
    bool changed = false;
    for (int i = 0; i < crew->most && !s->world.failed; i++) {
        if (!is_here(s, i)) {
            join(s, i);
            changed = true;
        }
        int64_t credits, taken;
        (void)rv__worker_load(s->engine, crew->tickets[i], &credits, &taken); /* it is here */
        credits = crew->credits[i] > taken ? crew->credits[i]
                                           : taken; /* what it has is not taken back */
        rv__worker_change(s->engine, crew->tickets[i], credits, false);
        crew->away[i] = false;
    }
    return changed;
}

void crew_place(struct shell *s)
{
    struct crew *crew = &s->crew;
    rv_engine *e = s->engine;
    if (crew->most == 0)
        return;
    for (struct rv__function *f = e->registry->functions; f != NULL; f = f->next) {
        bool theirs = f->executor != NULL && one_in(&crew->chance, crew->one_in);
        if (theirs)
            f->executor = NULL;
        if (theirs || f->executor != NULL)
            f->hash = theirs ? CREW_MARK : 0;
    }
    for (int i = 0; i < crew->most; i++) /* each registers anew */
        if (is_here(s, i))
            rv__worker_gone(e, crew->tickets[i]);
    for (int i = 0; i < crew->most; i++)
        join(s, i);
}

/* What it has that has not ended is lost. */
static void lose_all(struct shell *s, uint32_t ticket, bool died)
{
    static const rv_error why = { .code = RV_EFAILED, .message = "the worker was lost" };
    struct rv__work *works[FIRST_WORKS];
    rv_engine *e = s->engine;
    size_t count = 0;
    for (struct rv__attempt *a = e->in_flight; a != NULL && count < FIRST_WORKS; a = a->all_next)
        if (a->life == e->life && !rv__lane_is_limit(a->place) && a->ticket == ticket &&
            a->phase != ATTEMPT_ENDED)
            works[count++] = &a->ctx.work;
    enum rv__lost how = !died ? RV__LOST_BLAMELESS : count > 1 ? RV__LOST_SHARED : RV__LOST_ALONE;
    for (size_t i = 0; i < count && !s->world.failed; i++)
        rv__manual_lose_work(e->lanes[LANE_WORKER].executor, works[i], &e->kit->random, how, &why);
}

static void leave(struct shell *s, int i, bool died)
{
    struct crew *crew = &s->crew;
    uint32_t ticket = crew->tickets[i];
    uint64_t life = s->engine->life;
    tell(s, "worker %d %s", i, died ? "dies" : "is lost for good");
    lose_all(s, ticket, died);
    if (s->engine->life == life && is_here(s, i))
        rv__worker_gone(s->engine, ticket);
    crew->tickets[i] = 0;
}

void crew_meddle(struct shell *s)
{
    struct crew *crew = &s->crew;
    if (crew->most == 0 || s->world.failed || !one_in(&crew->chance, 3))
        return;
    int i = (int)between(&crew->chance, 0, crew->most - 1);
    int64_t credits, taken;
    if (!is_here(s, i)) {
        join(s, i);
        return;
    }
    switch (between(&crew->chance, 0, 5)) {
    case 0: leave(s, i, !s->world.faults.calm); break;
    case 1: leave(s, i, false); break;
    case 2: /* its connection is lost; it comes back in time, with all that it has */
        crew->away[i] = !crew->away[i];
        tell(s, "worker %d %s", i, crew->away[i] ? "is away" : "is back");
        (void)rv__worker_load(s->engine, crew->tickets[i], &credits, &taken);
        rv__worker_change(s->engine, crew->tickets[i], credits, crew->away[i]);
        break;
    default:
        (void)rv__worker_load(s->engine, crew->tickets[i], &credits, &taken);
        credits = skewed(&crew->chance, 0, 8);
        credits = credits > taken ? credits : taken; /* what it has is not taken back */
        rv__worker_change(s->engine, crew->tickets[i], credits, crew->away[i]);
        tell(s, "worker %d takes %lld at once", i, (long long)credits);
        break;
    }
}

void crew_check(struct shell *s, struct run *run)
{
    rv_engine *e = s->engine;
    for (int i = 0; i < s->crew.most; i++) {
        int64_t credits, taken, used = 0;
        if (!is_here(s, i) || !rv__worker_load(e, s->crew.tickets[i], &credits, &taken))
            continue;
        for (const struct rv__attempt *a = e->in_flight; a != NULL; a = a->all_next)
            used += a->life == e->life && a->place != LANE_NONE && !rv__lane_is_limit(a->place) &&
                    a->ticket == s->crew.tickets[i];
        bool still = e->deciding == NULL && e->commit.away == 0 &&
                     e->lanes[LANE_WORKER].starting_count == 0;
        if (taken > credits || taken < used || (still && taken != used))
            judge_fail(&s->world, run, "places",
                       "worker %d takes %lld at once; %lld places of it are taken, %lld used", i,
                       (long long)credits, (long long)taken, (long long)used);
    }
}
