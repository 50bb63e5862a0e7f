/* cell.c: the memory of a run: actors, their tree, and their effects.
 *
 * Nothing is decided here. Actors are found by id in an open-addressing table. An ended actor is kept until the
 * effect of its end is released; then its memory is used again. */
#include <assert.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/cell.h"

enum { FIRST_TABLE = 16 };

/* --------------------------------------------------------------------------------- table --- */

static size_t slot_of(const struct rv__cell *cell, uint64_t id)
{
    return (size_t)(id * UINT64_C(0x9E3779B97F4A7C15)) >> 8 & (cell->table_size - 1);
}

struct rv__actor *rv__cell_find(const struct rv__cell *cell, uint64_t id)
{
    if (id == 0 || cell->table_size == 0)
        return NULL;
    for (size_t at = slot_of(cell, id);; at = (at + 1) & (cell->table_size - 1)) {
        if (cell->table[at] == NULL || cell->table[at]->id == id)
            return cell->table[at];
    }
}

static void table_put(struct rv__cell *cell, struct rv__actor *actor)
{
    size_t at = slot_of(cell, actor->id);
    while (cell->table[at] != NULL)
        at = (at + 1) & (cell->table_size - 1);
    cell->table[at] = actor;
}

static bool table_grow(struct rv__cell *cell)
{
    size_t old_size = cell->table_size;
    struct rv__actor **old = cell->table;
    size_t size = old_size ? old_size * 2 : FIRST_TABLE;
    struct rv__actor **table = rv__zalloc(size, sizeof *table);
    if (table == NULL)
        return false;
    cell->table = table;
    cell->table_size = size;
    cell->bytes += (size - old_size) * sizeof *table;
    for (size_t i = 0; i < old_size; i++)
        if (old[i] != NULL)
            table_put(cell, old[i]);
    rv__free(old);
    return true;
}

/* Without tombstones: later entries of the chain move up. */
static void table_remove(struct rv__cell *cell, struct rv__actor *actor)
{
    size_t mask = cell->table_size - 1;
    size_t hole = slot_of(cell, actor->id);
    while (cell->table[hole] != actor)
        hole = (hole + 1) & mask;
    for (size_t at = (hole + 1) & mask; cell->table[at] != NULL; at = (at + 1) & mask) {
        size_t home = slot_of(cell, cell->table[at]->id);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            cell->table[hole] = cell->table[at];
            hole = at;
        }
    }
    cell->table[hole] = NULL;
}

/* -------------------------------------------------------------------------------- actors --- */

struct rv__actor *rv__actor_new(struct rv__cell *cell)
{
    if ((cell->actors + 1) * 4 > cell->table_size * 3 && !table_grow(cell))
        return NULL;

    struct rv__actor *actor = cell->spare;
    if (actor != NULL) {
        cell->spare = actor->next;
        memset(actor, 0, sizeof *actor);
    } else {
        actor = rv__zalloc(1, sizeof *actor);
        if (actor == NULL)
            return NULL;
        cell->bytes += sizeof *actor;
    }
    actor->id = cell->next_id++;
    table_put(cell, actor);
    cell->actors++;
    return actor;
}

static void recycle(struct rv__cell *cell, struct rv__actor *actor)
{
    rv__blob_unref(actor->unused_note);
    actor->unused_note = NULL;
    actor->next = cell->spare;
    cell->spare = actor;
}

void rv__actor_unnew(struct rv__cell *cell, struct rv__actor *actor)
{
    assert(actor->id + 1 == cell->next_id);
    table_remove(cell, actor);
    cell->actors--;
    cell->next_id--;
    recycle(cell, actor);
}

void rv__actor_link(struct rv__cell *cell, struct rv__actor *actor, struct rv__actor *owner)
{
    struct rv__actor **first = owner != NULL ? &owner->child : &cell->detached_scopes;
    struct rv__actor **last = owner != NULL ? &owner->last_child : &cell->last_detached_scope;
    actor->owner = owner;
    actor->next = NULL;
    actor->prev = *last;
    if (*last != NULL)
        (*last)->next = actor;
    else
        *first = actor;
    *last = actor;
}

void rv__actor_unlink(struct rv__cell *cell, struct rv__actor *actor)
{
    if (actor == cell->root) {
        cell->root = NULL;
        return;
    }
    struct rv__actor *owner = actor->owner;
    struct rv__actor **first = owner != NULL ? &owner->child : &cell->detached_scopes;
    struct rv__actor **last = owner != NULL ? &owner->last_child : &cell->last_detached_scope;
    if (actor->prev != NULL)
        actor->prev->next = actor->next;
    else
        *first = actor->next;
    if (actor->next != NULL)
        actor->next->prev = actor->prev;
    else
        *last = actor->prev;
    actor->owner = actor->prev = actor->next = NULL;
}

bool rv__actor_working(const struct rv__actor *actor)
{
    if (actor->phase == PHASE_EVAL)
        return true;
    return actor->phase == PHASE_RUNNING && rv__actor_is_step(actor);
}

void rv__actor_absolve(struct rv__actor *actor)
{
    actor->suspect = false;
    actor->deaths = 0;
}

bool rv__actor_waiting(const struct rv__actor *actor)
{
    bool waits = actor->phase == PHASE_RETRY || actor->phase == PHASE_PARKED ||
                 (actor->phase == PHASE_RUNNING && /* the attempt of a state, or of a chat */
                  !rv__actor_is_step(actor));
    return waits && actor->due_ms != 0;
}

static void note_effect(struct rv__cell *cell, struct rv__actor *actor)
{
    if (actor->fresh)
        return;
    actor->fresh = true;
    actor->effect_next = NULL;
    if (cell->last_fresh != NULL)
        cell->last_fresh->effect_next = actor;
    else
        cell->fresh = actor;
    cell->last_fresh = actor;
}

void rv__actor_count(struct rv__cell *cell, struct rv__actor *actor)
{
    bool now = rv__actor_working(actor);
    cell->working += now;
    cell->working -= actor->at_work;
    actor->at_work = now;
}

void rv__actor_owe(struct rv__cell *cell, struct rv__actor *actor)
{
    rv__actor_count(cell, actor);
    actor->token++;
    actor->owed = true;
    if (cell->place != LANE_NONE && rv__actor_working(actor)) {
        assert(actor->granted ==
               LANE_NONE); /* nobody knows its token before its effect is released */
        actor->granted = (uint8_t)cell->place;
        actor->ticket = cell->ticket;
        cell->place = LANE_NONE;
    }
    if (!cell->quiet)
        note_effect(cell, actor);
}

/* Release what an actor owns, but not its memory. */
static void release(struct rv__cell *cell, struct rv__actor *actor)
{
    rv__blob_unref(actor->value);
    actor->value = NULL;
    rv__blob_unref(actor->death);
    actor->death = NULL;
    if (actor->is_frame) {
        rv__entry_unref(actor->frame.base);
        rv__entry_unref(actor->frame.scope);
        rv__entry_unref(actor->frame.last);
        rv__blob_unref(actor->frame.input);
        rv__blob_unref(actor->frame.prefix);
        rv__items_unref(actor->frame.items);
        rv__inner_unref(actor->frame.inputs);
        rv__blob_unref(actor->frame.attachment);
    } else if (rv__is_step(actor->node)) {
        if (actor->step.channel != NULL)
            rv__channel_leave(cell, actor);
        rv__blob_unref(actor->step.state);
        rv__blob_unref(actor->step.made);
        rv__step_forget_note(cell, actor);
    } else {
        rv__items_unref(actor->sup.items);
        rv__blob_unref(actor->sup.error);
        rv__blob_unref(actor->sup.key);
        rv__inner_unref(actor->sup.inner);
        rv__free(actor->sup.schedule);
    }
}

static void end_one(struct rv__cell *cell, struct rv__actor *actor)
{
    rv__actor_put(cell, actor, PLACE_NOWHERE, LANE_NONE);
    cell->actors--;
    cell->working -= actor->at_work;
    cell->attempts_ended += actor->is_frame && actor->frame.attachment != NULL;
    rv__suspensions_end(cell, actor);
    release(cell, actor);
    actor->ended = true;
    if ((actor->owed || actor->unused_note != NULL) && !cell->quiet && !RV__BUG(13))
        note_effect(cell, actor);
    else if (!actor->fresh)
        recycle(cell, actor);
}

/* The first actor of a post-order walk (children before owners) below `actor`. */
static struct rv__actor *deepest(struct rv__actor *actor)
{
    while (actor->child != NULL)
        actor = actor->child;
    return actor;
}

void rv__actor_end(struct rv__cell *cell, struct rv__actor *actor)
{
    /* If no actor survives, the table is emptied at once: a cancel must not remove a hundred thousand actors one
     * by one. */
    bool all = actor == cell->root && cell->detached_scopes == NULL;
    if (actor->is_frame && actor->frame.scope != actor->frame.base)
        rv__frame_count_shown(actor, -1);
    rv__actor_unlink(cell, actor);
    for (struct rv__actor *at = deepest(actor), *next; at != NULL; at = next) {
        next = at == actor ? NULL : at->next != NULL ? deepest(at->next) : at->owner;
        if (!all)
            table_remove(cell, at);
        end_one(cell, at);
    }
    if (all)
        memset(cell->table, 0, cell->table_size * sizeof *cell->table);
}

struct rv__actor *rv__actor_frame(const struct rv__actor *actor)
{
    while (!actor->is_frame)
        actor = actor->owner;
    return (struct rv__actor *)actor;
}

struct rv__items *rv__frame_items(const struct rv__actor *frame)
{
    if (frame->frame.prefix != NULL)
        return frame->frame.items;
    return rv__has_items(frame->node) ? frame->owner->sup.items : NULL;
}

const struct rv__actor *rv__actor_loop(const struct rv__actor *actor)
{
    while (actor != NULL && !(actor->is_frame && actor->frame.iteration >= 0 &&
                              (actor->frame.prefix != NULL || rv__iterates(actor->node))))
        actor = actor->owner;
    return actor;
}

size_t rv__actor_vector(const struct rv__actor *actor, int64_t vector[RV__PLAN_MAX_DEPTH])
{
    size_t count = 0, from = 0;
    for (const struct rv__actor *a = actor; a != NULL; a = a->owner) {
        if (!a->is_frame)
            continue;
        if (a->frame.prefix !=
            NULL) { /* a detached scope has the remaining ones, outermost first */
            struct rv__json_iter it;
            struct rv__str item;
            size_t own = count;
            rv__json_iter_init(&it, rv__blob_str(a->frame.prefix));
            while (count < RV__PLAN_MAX_DEPTH && rv__json_next(&it, NULL, &item))
                (void)rv__json_int(item, &vector[count++]);   /* checked when it was made */
            for (size_t l = own, r = count; l + 1 < r; l++) { /* reversed, like the walk up */
                int64_t swap = vector[l];
                vector[l] = vector[--r];
                vector[r] = swap;
            }
            break;
        }
        if (a->frame.iteration >= 0 && count < RV__PLAN_MAX_DEPTH)
            vector[count++] = a->frame.iteration;
    }
    for (size_t to = count; from + 1 < to; from++) {
        int64_t swap = vector[from];
        vector[from] = vector[--to];
        vector[to] = swap;
    }
    return count;
}

/* ---------------------------------------------------------------------------------- cell --- */

struct rv__cell *rv__cell_alloc(const struct rv__cell_opts *opts)
{
    struct rv__cell *cell = rv__zalloc(1, sizeof *cell);
    if (cell == NULL)
        return NULL;
    cell->plan = opts->plan;
    cell->max_crashes = opts->max_crashes > 0 ? opts->max_crashes : RV__MAX_CRASHES;
    cell->lane = opts->lane;
    cell->lane_arg = opts->arg;
    cell->module = opts->module;
    cell->turn_facts = opts->turn_facts > 0 ? opts->turn_facts : RV__TURN_FACTS;
    cell->value_inline = opts->value_inline > 0 ? opts->value_inline : RV__VALUE_INLINE;
    assert(cell->value_inline >=
           sizeof "false"); /* rv__truth(): a text that is a reference is true */
    cell->next_id = 1;
    cell->next_value = 1;
    cell->failed_node = RV__NO_NODE;
    cell->bytes = sizeof *cell;
    return cell;
}

int rv__cell_empty(const struct rv__cell_opts *opts, struct rv__cell **ret, rv_error *err)
{
    struct rv__cell *cell = rv__cell_alloc(opts);
    if (cell == NULL)
        return rv__nomem(err);
    *ret = cell;
    return RV_OK;
}

static void forget_effects(struct rv__cell *cell)
{
    struct rv__effect effect;
    while (rv__cell_effect(cell, &effect))
        ;
}

void rv__cell_free(struct rv__cell *cell)
{
    if (cell == NULL)
        return;
    cell->quiet = true;
    forget_effects(cell);
    if (cell->root != NULL)
        rv__actor_end(cell, cell->root);
    while (cell->detached_scopes != NULL)
        rv__actor_end(cell, cell->detached_scopes);
    rv__stamps_done(&cell->stamps);
    while (cell->spare != NULL) {
        struct rv__actor *next = cell->spare->next;
        rv__free(cell->spare);
        cell->spare = next;
    }
    for (size_t i = 0; i < CHANNEL_BUCKETS; i++) {
        while (cell->channels[i] != NULL) { /* some have signals that nobody took */
            struct rv__channel *channel = cell->channels[i];
            while (channel->first_signal != NULL) {
                struct rv__signal *next = channel->first_signal->next;
                rv__blob_unref(channel->first_signal->payload);
                rv__free(channel->first_signal);
                channel->first_signal = next;
            }
            rv__channel_drop_if_empty(cell, channel);
        }
    }
    rv__entry_unref(cell->results);
    rv__blob_unref(cell->input);
    rv__blob_unref(cell->error);
    rv__blob_unref(cell->unused_note);
    rv__suspensions_clear(cell);
    rv__index_done(&cell->suspended_what);
    rv__index_done(&cell->suspended_paths);
    rv__free(cell->table);
    rv__free(cell);
}

/* ------------------------------------------------------------------------------- effects --- */

static void effect_of(const struct rv__actor *actor, struct rv__effect *ret)
{
    *ret = (struct rv__effect){ .kind = EFFECT_STOP,
                                .actor = actor->id,
                                .token = actor->token,
                                .node = actor->ended ? actor->node : rv__actor_about(actor),
                                .eval = -1 };
    if (actor->ended)
        return;
    if (rv__actor_working(actor)) {
        ret->kind = EFFECT_START;
        if (actor->phase == PHASE_EVAL) {
            ret->eval = actor->eval;
            ret->body = rv__actor_input_body(actor);
        } else
            ret->timeout_ms = actor->node->step.config.timeout_ms;
        ret->hosted = actor->hosted;
    } else if (rv__actor_waiting(actor)) {
        ret->kind = EFFECT_WAIT;
        ret->due_ms = actor->due_ms;
    }
}

bool rv__cell_effect(struct rv__cell *cell, struct rv__effect *ret)
{
    struct rv__actor *actor = cell->fresh;
    if (actor == NULL)
        return false;
    cell->fresh = actor->effect_next;
    if (cell->fresh == NULL)
        cell->last_fresh = NULL;
    actor->fresh = false;
    actor->effect_next = NULL;
    effect_of(actor, ret);
    ret->place = RV__BUG(21) && actor->ended ? LANE_NONE : (enum rv__lane)actor->granted;
    ret->ticket = actor->ticket;
    actor->granted = LANE_NONE;
    actor->ticket = 0;
    rv__blob_unref(cell->unused_note);
    ret->unused_note = cell->unused_note = actor->unused_note;
    actor->unused_note = NULL;
    if (actor->ended)
        recycle(cell, actor);
    return true;
}

const struct rv__actor *rv__cell_walk(const struct rv__cell *cell, const struct rv__actor *at)
{
    if (at == NULL)
        return cell->root != NULL ? cell->root : cell->detached_scopes;
    if (at->child != NULL)
        return at->child;
    for (; at != NULL; at = at->owner) {
        if (at == cell->root)
            return cell->detached_scopes;
        if (at->next != NULL)
            return at->next;
    }
    return NULL;
}

void rv__cell_outstanding(const struct rv__cell *cell,
                          void (*owed)(void *arg, const struct rv__effect *effect), void *arg)
{
    for (const struct rv__actor *at = rv__cell_walk(cell, NULL); at != NULL;
         at = rv__cell_walk(cell, at)) {
        struct rv__effect effect;
        effect_of(at, &effect);
        if (effect.kind != EFFECT_STOP)
            owed(arg, &effect);
    }
}

bool rv__cell_wants(const struct rv__cell *cell, enum rv__lane lane)
{
    if (cell->status == RUN_SUSPENDED)
        return false;
    return cell->ready[lane].first != NULL || cell->range[lane].first != NULL;
}

bool rv__cell_blamed(const struct rv__cell *cell)
{
    const struct rv__actor *first = cell->ready[LANE_SUSPECT].first;
    return first != NULL && first->crashes > 0;
}

bool rv__cell_more(const struct rv__cell *cell)
{
    bool suspended = cell->status == RUN_SUSPENDED;
    if (suspended && cell->suspended == NULL) /* nothing is left to decide */
        return true;
    return (cell->ends.first != NULL && !rv__cell_stopped(cell)) ||
           (cell->todo.first != NULL && !suspended);
}

size_t rv__cell_working(const struct rv__cell *cell)
{
    return cell->working;
}

bool rv__cell_active(const struct rv__cell *cell)
{
    return cell->root != NULL || cell->detached_scopes != NULL;
}

bool rv__cell_waits_for_somebody(const struct rv__cell *cell)
{
    return cell->status == RUN_SUSPENDED || cell->signal_waiters > 0;
}

enum rv__run_status rv__cell_status(const struct rv__cell *cell)
{
    return cell->status;
}

const struct rv__plan *rv__cell_plan(const struct rv__cell *cell)
{
    return cell->plan;
}

struct rv__str rv__cell_error(const struct rv__cell *cell)
{
    return rv__blob_str(cell->error);
}

struct rv__str rv__cell_failed_step(const struct rv__cell *cell)
{
    if (cell->failed_node == RV__NO_NODE)
        return (struct rv__str){ NULL, 0 };
    return cell->plan->nodes[cell->failed_node]->alias;
}

struct rv__str rv__cell_failed_path(const struct rv__cell *cell)
{
    return rv__error_path(rv__blob_str(cell->error));
}

size_t rv__cell_actors(const struct rv__cell *cell)
{
    return cell->actors;
}

uint64_t rv__cell_stale(const struct rv__cell *cell)
{
    return cell->stale;
}

size_t rv__cell_bytes(const struct rv__cell *cell)
{
    return cell->bytes;
}

uint64_t rv__cell_values(const struct rv__cell *cell)
{
    return cell->next_value - 1;
}
