/* suspend.c: suspensions, which a person has to decide about: steps that kill their process, critical states that
 * have used up their attempts, or the run as a whole. The list is ordered by age; the run is suspended as long as
 * it is not empty. When an actor ends, its suspensions are removed. */
#include "base/alloc.h"
#include "base/error.h"
#include "flow/cell.h"

/* Found by a hash, so that finding and deciding one takes constant time, however many there are. */
static uint64_t what_hash(const struct rv__actor *actor, uint32_t which)
{
    uint64_t what[] = { actor != NULL ? actor->id : 0, which };
    return rv__str_hash(RV__HASH_START, (struct rv__str){ (const char *)what, sizeof what });
}

static int path_hash(const struct rv__suspension *one, uint64_t *ret)
{
    struct rv__buf path;
    rv__buf_init(&path, SIZE_MAX / 8); /* bounded by the plan */
    rv__suspension_path(one, &path);
    *ret = rv__str_hash(RV__HASH_START, rv__buf_view(&path));
    int rc = rv__buf_err(&path, NULL);
    rv__buf_done(&path);
    return rc;
}

static int index_path(struct rv__cell *cell, struct rv__suspension *one)
{
    uint64_t hash = 0;
    int rc = path_hash(one, &hash);
    return rc < 0 ? rc : rv__index_add(&cell->suspended_paths, &one->by_path, hash);
}

int rv__suspension_add(struct rv__cell *cell, struct rv__actor *actor, uint32_t which,
                       int64_t since_ms, struct rv__blob *why)
{
    struct rv__suspension *one = rv__zalloc(1, sizeof *one);
    if (one == NULL)
        return RV_ENOMEM;
    one->actor = actor;
    one->which = which;
    if (rv__index_add(&cell->suspended_what, &one->by_what, what_hash(actor, which)) < 0) {
        rv__free(one);
        return RV_ENOMEM;
    }
    if (cell->knows_paths && index_path(cell, one) < 0) {
        rv__index_remove(&cell->suspended_what, &one->by_what);
        rv__free(one);
        return RV_ENOMEM;
    }
    one->number = cell->suspensions_ever++;
    one->since_ms = since_ms;
    one->why = rv__blob_ref(why);
    one->prev = cell->last_suspended;
    *(one->prev != NULL ? &one->prev->next : &cell->suspended) = one;
    cell->last_suspended = one;
    if (actor != NULL) {
        one->same_next = actor->suspensions;
        if (one->same_next != NULL)
            one->same_next->same_prev = one;
        actor->suspensions = one;
    }
    return RV_OK;
}

void rv__suspension_remove(struct rv__cell *cell, struct rv__suspension *one)
{
    *(one->prev != NULL ? &one->prev->next : &cell->suspended) = one->next;
    *(one->next != NULL ? &one->next->prev : &cell->last_suspended) = one->prev;
    if (one->same_next != NULL)
        one->same_next->same_prev = one->same_prev;
    if (one->same_prev != NULL)
        one->same_prev->same_next = one->same_next;
    else if (one->actor != NULL)
        one->actor->suspensions = one->same_next;
    rv__index_remove(&cell->suspended_what, &one->by_what);
    if (cell->knows_paths)
        rv__index_remove(&cell->suspended_paths, &one->by_path);
    rv__blob_unref(one->why);
    rv__free(one);
}

struct rv__suspension *rv__suspension_find(const struct rv__cell *cell,
                                           const struct rv__actor *actor, uint32_t which)
{
    struct rv__index_entry *e = rv__index_first(&cell->suspended_what, what_hash(actor, which));
    for (; e != NULL; e = rv__index_next(e)) {
        struct rv__suspension *one = RV__CONTAINER(e, struct rv__suspension, by_what);
        if (one->actor == actor && one->which == which)
            return one;
    }
    return NULL;
}

static int know_paths(struct rv__cell *cell)
{
    for (struct rv__suspension *one = cell->suspended; one != NULL; one = one->next)
        if (index_path(cell, one) < 0) {
            rv__index_done(&cell->suspended_paths);
            return RV_ENOMEM;
        }
    cell->knows_paths = true;
    return RV_OK;
}

int rv__suspension_at(struct rv__cell *cell, struct rv__str path, struct rv__suspension **ret)
{
    struct rv__suspension *found = NULL;
    int rc = cell->knows_paths ? RV_OK : know_paths(cell);
    struct rv__index_entry *e = rc == RV_OK ? rv__index_first(&cell->suspended_paths,
                                                              rv__str_hash(RV__HASH_START, path))
                                            : NULL;
    for (; rc == RV_OK && e != NULL; e = rv__index_next(e)) {
        struct rv__suspension *one = RV__CONTAINER(e, struct rv__suspension, by_path);
        struct rv__buf buf;
        rv__buf_init(&buf, SIZE_MAX / 8); /* bounded by the plan */
        rv__suspension_path(one, &buf);
        rc = rv__buf_err(&buf, NULL);
        if (rc == RV_OK && rv__str_eq(rv__buf_view(&buf), path) &&
            (found == NULL || one->number < found->number))
            found = one;
        rv__buf_done(&buf);
    }
    if (rc == RV_OK)
        *ret = found;
    return rc;
}

int64_t rv__suspension_count(const struct rv__cell *cell)
{
    return (int64_t)cell->suspended_what.count;
}

int64_t rv__suspensions_below(const struct rv__actor *actor)
{
    int64_t count = 0;
    for (const struct rv__suspension *one = actor->suspensions; one != NULL; one = one->same_next)
        count++;
    for (const struct rv__actor *child = actor->child; child != NULL; child = child->next)
        count += rv__suspensions_below(child);
    return count;
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

int rv__cell_suspensions(const struct rv__cell *cell, size_t most, struct rv__buf *out,
                         rv_error *err)
{
    const struct rv__suspension *one = cell->suspended;
    for (size_t i = 0; one != NULL && i < most; i++, one = one->next) {
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
