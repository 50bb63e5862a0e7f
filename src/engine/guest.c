/* guest.c: runs that other processes handed over, on the loop's side.
 *
 * A second `rival exec` on a store does not write to it: it hands its run to the process that does, with its
 * files and its environment, and follows it (answer.c accepts it, attach.c is the other side). Such a run is a
 * *guest*. It has a registry of its own, so that two versions of one workflow do not conflict, and it is driven as
 * long as another process follows it:
 *
 *              handed over            handed back, or nobody follows       nothing of it is in flight
 *     (none) ───────────────▶ HERE ──────────────────────────────▶ LEAVING ─────────────────────────▶ PARKED
 *                              ▲                                                                        │
 *                              └──────────────────────────── handed over again ─────────────────────────┘
 *
 *   HERE     it is driven, and stays in memory: an engine for one run looks for no other in the store
 *   LEAVING  nothing new begins; work in flight gets some time to end, is then cancelled, and finally handed back:
 *            the next process attempts it again. So Ctrl-C has the same effect on a guest as on any run
 *   PARKED   it is not in memory. Calls about it are answered, but nothing of it begins here */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/attempt.h"
#include "engine/call.h"
#include "engine/engine.h"

enum state { HERE, LEAVING, PARKED };

struct rv__guest {
    struct rv__guest *next; /* of all */
    struct rv__index_entry by_run;
    char run_id[RV_RUN_ID_SIZE];
    enum state state;
    struct rv__registry *registry; /* held; NULL: parked */
    /* while it is leaving: */
    struct rv__call *back;          /* who waits for that */
    int64_t tell_by_ns, hand_by_ns; /* its steps are told; those that still run are handed back */
    bool asked_to_stop, handed;
};

static uint64_t hash_of(const char *run_id)
{
    return rv__str_hash(RV__HASH_START, rv__str(run_id));
}

static struct rv__guest *find(rv_engine *e, const char *run_id)
{
    if (e->guests.by_run.count == 0)
        return NULL;
    struct rv__index_entry *at = rv__index_first(&e->guests.by_run, hash_of(run_id));
    for (; at != NULL; at = rv__index_next(at)) {
        struct rv__guest *guest = RV__CONTAINER(at, struct rv__guest, by_run);
        if (strcmp(guest->run_id, run_id) == 0)
            return guest;
    }
    return NULL;
}

bool rv__engine_drives(rv_engine *e, const char *run_id)
{
    if (e->only_run[0] == '\0' || strcmp(e->only_run, run_id) == 0)
        return true;
    pthread_mutex_lock(&e->guests.lock);
    bool known = find(e, run_id) != NULL;
    pthread_mutex_unlock(&e->guests.lock);
    return known;
}

void rv__guest_name_all(rv_engine *e, struct rv__buf *out)
{
    bool first = true;
    rv__buf_char(out, '[');
    pthread_mutex_lock(&e->guests.lock);
    for (const struct rv__guest *guest = e->guests.first; guest != NULL; guest = guest->next) {
        if (guest->state != HERE)
            continue;
        rv__buf_text(out, first ? "" : ",");
        rv__buf_json_str(out, rv__str(guest->run_id));
        first = false;
    }
    pthread_mutex_unlock(&e->guests.lock);
    rv__buf_char(out, ']');
}

bool rv__guests_here(const rv_engine *e)
{
    const struct rv__guest *guest = e->guests.first;
    while (guest != NULL && guest->state == PARKED)
        guest = guest->next;
    return guest != NULL;
}

void rv__guest_claims(rv_engine *e, struct rv__run *run)
{
    const struct rv__guest *guest = find(e, run->id);
    if (guest == NULL)
        return;
    run->guest = true;
    run->parked = guest->state != HERE;
    if (guest->registry != NULL && guest->registry != run->registry) {
        rv__registry_unref(run->registry);
        run->registry = rv__registry_ref(guest->registry);
    }
}

/* ------------------------------------------------------------------------------- handed over --- */

static struct rv__guest *add(rv_engine *e, const char *run_id)
{
    struct rv__guest *guest = rv__zalloc(1, sizeof *guest);
    if (guest == NULL)
        return NULL;
    snprintf(guest->run_id, sizeof guest->run_id, "%s", run_id);
    guest->state = PARKED;
    pthread_mutex_lock(&e->guests.lock);
    int rc = rv__index_add(&e->guests.by_run, &guest->by_run, hash_of(run_id));
    if (rc == RV_OK) {
        guest->next = e->guests.first;
        e->guests.first = guest;
    }
    pthread_mutex_unlock(&e->guests.lock);
    if (rc == RV_OK)
        return guest;
    rv__free(guest);
    return NULL;
}

static void drop(rv_engine *e, struct rv__guest *guest)
{
    struct rv__guest **at = &e->guests.first;
    pthread_mutex_lock(&e->guests.lock);
    while (*at != guest)
        at = &(*at)->next;
    *at = guest->next;
    rv__index_remove(&e->guests.by_run, &guest->by_run);
    pthread_mutex_unlock(&e->guests.lock);
    rv__free(guest);
}

static void set_state(rv_engine *e, struct rv__guest *guest, enum state state)
{
    pthread_mutex_lock(&e->guests.lock); /* others ask who is here */
    e->guests.leaving += (size_t)(state == LEAVING) - (size_t)(guest->state == LEAVING);
    guest->state = state;
    pthread_mutex_unlock(&e->guests.lock);
}

/* Somebody drives it already: it is followed, and stays theirs. */
static int follow(struct rv__call *call, struct rv__registry *registry)
{
    call->followed = true;
    call->found = rv__registry_ref(registry);
    rv__call_reply(call, RV_OK);
    return RV_OK;
}

int rv__guest_take(rv_engine *e, struct rv__call *call)
{
    struct rv__guest *guest = find(e, call->run_id);
    struct rv__run *run = rv__run_find(e, call->run_id);
    bool serves = e->only_run[0] == '\0';
    if (strcmp(e->only_run, call->run_id) == 0)
        return follow(call, e->registry);
    if (guest != NULL && guest->state == HERE)
        return follow(call, guest->registry);
    if (guest != NULL && guest->state == LEAVING)
        return rv__fail(&call->err, RV_EBUSY, "run '%s' is being stopped: try again", call->run_id);
    if (run != NULL && run->phase != RV__ABSENT && run->phase != RV__IDLE) {
        rv__mail_put(&run->mail, &call->letter);
        return RV_OK;
    }
    bool offered = serves && rv__registry_offered(e->registry, rv__str(call->workflow)) != NULL;
    bool at_work = run != NULL && run->work != NULL;
    bool exists = call->resumes || (run != NULL && run->phase == RV__IDLE);
    if (guest == NULL && exists && (at_work || offered))
        return follow(call, e->registry);
    if (guest == NULL && (guest = add(e, call->run_id)) == NULL)
        return rv__nomem(&call->err);
    if (run != NULL && run->phase == RV__IDLE)
        rv__run_leave(run); /* its plan is to be that of its new registry */
    guest->registry = rv__registry_ref(call->registry);
    set_state(e, guest, HERE);
    if (run != NULL) {
        rv__guest_claims(e, run);
        rv__run_drop_if_unused(run);
    }
    call->found = rv__registry_ref(call->registry);
    rv__call_reply(call, RV_OK);
    return RV_OK;
}

/* ------------------------------------------------------------------------------- handed back --- */

int rv__guest_release(rv_engine *e, struct rv__call *call)
{
    struct rv__guest *guest = find(e, call->run_id);
    struct rv__run *run = rv__run_find(e, call->run_id);
    bool meant = guest != NULL && guest->state == HERE &&
                 (call->registry == NULL || call->registry == guest->registry);
    if (!meant) { /* nobody's guest; or somebody else's by now */
        rv__call_reply(call, RV_OK);
        return RV_OK;
    }
    set_state(e, guest, LEAVING);
    if (run != NULL) {
        run->parked = true;
        rv__run_unqueue(run);
    }
    guest->asked_to_stop = guest->handed = false;
    guest->tell_by_ns = rv__mono_ns(e->clock) + call->drain_ms * 1000000;
    guest->hand_by_ns = guest->tell_by_ns + call->tell_ms * 1000000;
    guest->back = call;
    return RV_OK;
}

static void park(rv_engine *e, struct rv__guest *guest, struct rv__run *run)
{
    struct rv__call *call = guest->back;
    bool here = run != NULL && run->phase == RV__IDLE;
    bool ended = here && rv__run_terminal(rv__cell_status(run->cell)) && rv__run_idle(run);
    guest->back = NULL;
    set_state(e, guest, PARKED);
    if (here)
        rv__run_leave(run);
    if (run != NULL && (!here || ended))
        run->guest = run->parked = false;
    if (run != NULL)
        rv__run_drop_if_unused(run);
    rv__registry_clear(guest->registry);
    rv__registry_unref(guest->registry);
    guest->registry = NULL;
    if (!here || ended)
        drop(e, guest);
    if (call != NULL)
        rv__call_reply(call, RV_OK);
}

static void tell(struct rv__guest *guest, struct rv__run *run)
{
    guest->asked_to_stop = true;
    for (struct rv__attempt *a = run->work; a != NULL; a = a->next)
        rv_cancel_fire(a->ctx.work.token, RV_ECLOSED, "its process has stopped");
}

static void end_guest(rv_engine *e, struct rv__guest *guest)
{
    struct rv__run *run = rv__run_find(e, guest->run_id);
    int64_t now_ns = rv__mono_ns(e->clock);
    bool works = run != NULL && run->work != NULL && !guest->handed;
    if (works && !guest->asked_to_stop && now_ns >= guest->tell_by_ns)
        tell(guest, run);
    if (works && now_ns >= guest->hand_by_ns && rv__run_takes(run, false)) {
        int left = rv__run_hand_back(run);
        if (guest->back != NULL)
            guest->back->left = left;
        guest->handed = true;
        return; /* that is to be on disk first */
    }
    bool quiet = run == NULL || run->phase == RV__ABSENT ||
                 (run->phase == RV__IDLE && run->mail.first == NULL);
    if (quiet && !works)
        park(e, guest, run);
}

void rv__guests_tick(rv_engine *e)
{
    if (e->guests.leaving == 0)
        return;
    for (struct rv__guest *guest = e->guests.first, *next; guest != NULL; guest = next) {
        next = guest->next;
        if (guest->state == LEAVING)
            end_guest(e, guest);
    }
}

int64_t rv__guests_until_ns(const rv_engine *e, int64_t until_ns)
{
    for (const struct rv__guest *guest = e->guests.leaving > 0 ? e->guests.first : NULL;
         guest != NULL; guest = guest->next) {
        int64_t next_ns = !guest->asked_to_stop ? guest->tell_by_ns : guest->hand_by_ns;
        if (guest->state == LEAVING && !guest->handed && next_ns < until_ns)
            until_ns = next_ns;
    }
    return until_ns;
}

/* ---------------------------------------------------------------------------------- life time --- */

void rv__guests_close(rv_engine *e)
{
    for (struct rv__guest *guest = e->guests.first; guest != NULL; guest = guest->next) {
        struct rv__call *call = guest->back;
        guest->back = NULL;
        if (call != NULL)
            rv__call_reply(call, rv__fail(&call->err, RV_ECLOSED, "the engine has closed"));
    }
}

void rv__guests_free(rv_engine *e)
{
    while (e->guests.first != NULL) {
        struct rv__guest *guest = e->guests.first;
        if (guest->registry != NULL)
            rv__registry_clear(guest->registry);
        rv__registry_unref(guest->registry);
        drop(e, guest);
    }
    rv__index_done(&e->guests.by_run);
    pthread_mutex_destroy(&e->guests.lock);
}
