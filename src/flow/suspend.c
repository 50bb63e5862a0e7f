/* suspend.c: what somebody has to decide about: steps that kill their process, critical states that used up
 * their attempts, or the run as a whole. Each stands here until it is decided, oldest first; as long as one
 * does, the run is suspended. Who ends takes its own along. */
#include "base/alloc.h"
#include "base/error.h"
#include "flow/cell.h"

int rv__suspension_add(struct rv__cell *cell, struct rv__actor *actor, uint32_t which,
                       int64_t since_ms, struct rv__blob *why)
{
    struct rv__suspension *one = rv__zalloc(1, sizeof *one);
    if (one == NULL)
        return RV_ENOMEM;
    one->actor = actor;
    one->which = which;
    one->since_ms = since_ms;
    one->why = rv__blob_ref(why);
    one->prev = cell->last_suspended;
    *(one->prev != NULL ? &one->prev->next : &cell->suspended) = one;
    cell->last_suspended = one;
    if (actor != NULL) {
        one->same = actor->suspensions;
        actor->suspensions = one;
    }
    return RV_OK;
}

void rv__suspension_remove(struct rv__cell *cell, struct rv__suspension *one)
{
    *(one->prev != NULL ? &one->prev->next : &cell->suspended) = one->next;
    *(one->next != NULL ? &one->next->prev : &cell->last_suspended) = one->prev;
    for (struct rv__suspension **at = one->actor != NULL ? &one->actor->suspensions : NULL;
         at != NULL && *at != NULL; at = &(*at)->same)
        if (*at == one) {
            *at = one->same;
            break;
        }
    rv__blob_unref(one->why);
    rv__free(one);
}

struct rv__suspension *rv__suspension_find(const struct rv__cell *cell,
                                           const struct rv__actor *actor, uint32_t which)
{
    struct rv__suspension *one = actor != NULL ? actor->suspensions : cell->suspended;
    while (one != NULL && (one->actor != actor || one->which != which))
        one = actor != NULL ? one->same : one->next;
    return one;
}

bool rv__cell_stopped(const struct rv__cell *cell)
{
    return cell->suspended != NULL && cell->suspended->actor == NULL;
}

void rv__suspensions_end(struct rv__cell *cell, struct rv__actor *actor)
{
    while (actor->suspensions != NULL)
        rv__suspension_remove(cell, actor->suspensions);
}

void rv__suspensions_clear(struct rv__cell *cell)
{
    while (cell->suspended != NULL) {
        struct rv__actor *actor = cell->suspended->actor;
        uint32_t which = cell->suspended->which;
        rv__suspension_remove(cell, cell->suspended);
        if (actor != NULL && which != 0)
            rv__flow_kind(actor->node)->suspended(actor, which, false);
        if (actor != NULL)
            rv__actor_place(cell, actor);
    }
}

void rv__suspension_path(const struct rv__suspension *one, struct rv__buf *out)
{
    int64_t vector[RV__PLAN_MAX_DEPTH];
    if (one->actor == NULL)
        return;
    (void)rv__actor_vector(one->actor, vector);
    const struct rv__node *about = rv__actor_about(one->actor);
    if (one->which != 0)
        rv__body_path(&about->bodies[one->which - 1], vector, out);
    else if (about != NULL)
        rv__node_path(about, vector, out);
}

/* ------------------------------------------------------------------------------- reading --- */

struct rv__str rv__cell_suspension(const struct rv__cell *cell)
{
    return cell->suspended != NULL ? rv__blob_str(cell->suspended->why)
                                   : (struct rv__str){ NULL, 0 };
}

int rv__cell_suspensions(const struct rv__cell *cell, struct rv__buf *out, rv_error *err)
{
    for (const struct rv__suspension *one = cell->suspended; one != NULL; one = one->next) {
        rv__buf_text(out, one->prev == NULL ? "[{" : ",{");
        if (one->actor != NULL) {
            rv__buf_text(out, "\"path\":\""); /* no character of a path needs an escape */
            rv__suspension_path(one, out);
            rv__buf_text(out, "\",");
        }
        rv__buf_text(out, "\"reason\":");
        rv__buf_str(out, rv__blob_str(one->why));
        rv__buf_text(out, ",\"since\":");
        rv__buf_int(out, one->since_ms);
        rv__buf_text(out, one->which != 0
                              ? ",\"actions\":[\"resume\",\"skip\",\"abort\",\"restart_stage\"]}"
                              : ",\"actions\":[\"resume\",\"abort\"]}");
    }
    if (cell->suspended != NULL)
        rv__buf_char(out, ']');
    return rv__buf_err(out, err);
}
