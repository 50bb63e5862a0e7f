/* snapshot.c: writes a cell as JSON: the frontier of a run, without finished iterations.
 *
 * It has everything that decides what happens next, also the order of the lists, so two cells with the same text
 * behave the same. It does not have the lanes in which work waits: those are the engine's. Entries are shared, so
 * they are numbered, oldest first; actors come after their owners. Long texts are replaced by references, under the
 * same key with an @, so that no text of a user is mistaken for one. Keys are short, because a sleeping run is
 * this text. restore.c reads it. */
#include <assert.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/cell.h"

struct saver {
    struct rv__cell *cell;
    struct rv__buf *out;
    struct rv__entry **entries; /* by number - 1 */
    size_t count, cap;
    const struct rv__blob *last_input,
        *last_value; /* of the last frame: often the next has the same */
    const struct rv__items *last_items;
    const struct rv__blob *last_error; /* of the last entry: its supervisor has the same */
    int rc;
};

static void collect(struct saver *s, struct rv__entry *entry);

static void collect_inner(struct saver *s, const struct rv__inner *inner)
{
    if (inner == NULL)
        return;
    collect(s, inner->base);
    for (uint32_t i = 0; i < inner->child_count; i++)
        collect(s, inner->children[i].scope);
}

static void number(struct saver *s, struct rv__entry *entry)
{
    if (s->count == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 64;
        struct rv__entry **entries = rv__realloc(s->entries, cap * sizeof *entries);
        if (entries == NULL) {
            s->rc = RV_ENOMEM;
            return;
        }
        s->entries = entries;
        s->cap = cap;
    }
    s->entries[s->count++] = entry;
    entry->mark = (uint32_t)s->count;
}

/* Number the entries that this one needs, then itself. The chain may be long, so it is not walked recursively: it is
 * collected in the list first. */
static void collect(struct saver *s, struct rv__entry *entry)
{
    size_t length = 0;
    for (struct rv__entry *e = entry; e != NULL && e->mark == 0; e = e->outer)
        length++;
    if (length == 0 || s->rc < 0)
        return;
    struct rv__entry **chain = rv__alloc(length * sizeof *chain);
    if (chain == NULL) {
        s->rc = RV_ENOMEM;
        return;
    }
    size_t at = length;
    for (struct rv__entry *e = entry; e != NULL && e->mark == 0; e = e->outer)
        chain[--at] = e;
    for (size_t i = 0; i < length && s->rc == RV_OK; i++) {
        collect_inner(s, chain[i]->inner); /* its children are older */
        if (chain[i]->mark == 0)
            number(s, chain[i]);
    }
    rv__free(chain);
}

static void put_int(struct saver *s, const char *key, int64_t value) /* 0 is left out */
{
    if (value == 0)
        return;
    rv__buf_text(s->out, key);
    rv__buf_int(s->out, value);
}

static void put_json(struct saver *s, const char *key, const struct rv__blob *blob)
{
    if (blob == NULL)
        return;
    rv__buf_text(s->out, ",\"");
    rv__buf_text(s->out, key);
    if (rv__blob_is_reference(blob)) {
        rv__buf_text(s->out, "@\":");
        rv__reference_write(blob, s->out);
    } else {
        rv__buf_text(s->out, "\":");
        rv__buf_str(s->out, rv__blob_str(blob));
    }
}

static void put_items(struct saver *s, const struct rv__items *items)
{
    if (items == NULL)
        return;
    rv__buf_text(s->out, ",\"iv\":");
    rv__items_write(items, s->out);
}

static void put_text(struct saver *s, const char *key, struct rv__str text)
{
    rv__buf_text(s->out, key);
    rv__buf_json_str(s->out, text);
}

static int64_t mark(const struct rv__entry *entry)
{
    return entry != NULL ? entry->mark : 0;
}

/* Compared by content: which copy of a text somebody holds is not part of the state. */
static bool same(const struct rv__blob *a, const struct rv__blob *b)
{
    if (a == b || a == NULL || b == NULL || a->value != 0 || b->value != 0)
        return a == b || (a != NULL && b != NULL && a->value == b->value);
    return rv__str_eq(rv__blob_str(a), rv__blob_str(b));
}

/* A failed step and all supervisors around it have the same error: its text is written once. */
static void put_error(struct saver *s, const struct rv__blob *error)
{
    if (error == NULL)
        return;
    if (same(error, s->last_error))
        rv__buf_text(s->out, ",\"er=\":1");
    else
        put_json(s, "er", error);
    s->last_error = error;
}

/* The errors of children that have one of their own: [number,error,…]. */
static void put_child_errors(struct saver *s, const struct rv__inner *inner)
{
    bool any = false;
    for (uint32_t i = 0; i < inner->child_count; i++) {
        if (inner->children[i].error == NULL)
            continue;
        rv__buf_text(s->out, any ? "," : ",\"ce\":[");
        any = true;
        rv__buf_int(s->out, i);
        rv__buf_char(s->out, ',');
        rv__buf_str(s->out, rv__blob_str(inner->children[i].error));
    }
    if (any)
        rv__buf_char(s->out, ']');
}

/* The children that had attempts: [number,attempts,generation,…]. */
static void put_child_attempts(struct saver *s, const struct rv__inner *inner)
{
    bool any = false;
    for (uint32_t i = 0; i < inner->child_count; i++) {
        const struct rv__child *child = &inner->children[i];
        if (child->attempts == 0 && child->generation == 0)
            continue;
        rv__buf_text(s->out, any ? "," : ",\"ca\":[");
        any = true;
        rv__buf_int(s->out, i);
        rv__buf_char(s->out, ',');
        rv__buf_int(s->out, child->attempts);
        rv__buf_char(s->out, ',');
        rv__buf_int(s->out, child->generation);
    }
    if (any)
        rv__buf_char(s->out, ']');
}

/* The children that left an attachment: [number,id,…]. */
static void put_child_attachments(struct saver *s, const struct rv__inner *inner)
{
    bool any = false;
    for (uint32_t i = 0; i < inner->child_count; i++) {
        if (inner->children[i].attachment == NULL)
            continue;
        rv__buf_text(s->out, any ? "," : ",\"cx\":[");
        any = true;
        rv__buf_int(s->out, i);
        put_text(s, ",", rv__blob_str(inner->children[i].attachment));
    }
    if (any)
        rv__buf_char(s->out, ']');
}

static void put_inner_as(struct saver *s, const char *key, const struct rv__inner *inner)
{
    if (inner == NULL)
        return;
    rv__buf_text(s->out, key);
    rv__buf_text(s->out, "{\"x\":");
    rv__buf_int(s->out, inner->index);
    put_int(s, ",\"it\":", inner->iterations);
    put_int(s, ",\"b\":", mark(inner->base));
    if (inner->key != NULL)
        put_text(s, ",\"key\":", rv__blob_str(inner->key));
    rv__buf_text(s->out, ",\"ch\":[");
    for (uint32_t i = 0; i < inner->child_count; i++) {
        if (i > 0)
            rv__buf_char(s->out, ',');
        rv__buf_int(s->out, inner->children[i].status);
        rv__buf_char(s->out, ',');
        rv__buf_int(s->out, mark(inner->children[i].scope));
    }
    rv__buf_char(s->out, ']');
    put_child_errors(s, inner);
    put_child_attempts(s, inner);
    put_child_attachments(s, inner);
    rv__buf_char(s->out, '}');
}

static void put_inner(struct saver *s, const struct rv__inner *inner)
{
    put_inner_as(s, ",\"in\":", inner);
}

static void put_entry(struct saver *s, const struct rv__entry *entry)
{
    rv__buf_text(s->out, "{\"n\":");
    rv__buf_int(s->out, entry->node->id);
    put_int(s, ",\"s\":", entry->status);
    put_int(s, ",\"g\":", entry->number);
    put_int(s, ",\"o\":", mark(entry->outer));
    put_json(s, "r", entry->result);
    put_json(s, "st", entry->state);
    put_json(s, "de", entry->description);
    put_error(s, entry->error);
    put_inner(s, entry->inner);
    rv__buf_char(s->out, '}');
}

static void put_frame(struct saver *s, const struct rv__actor *f)
{
    rv__buf_text(s->out, ",\"f\":1,\"itn\":");
    rv__buf_int(s->out, f->frame.iteration);
    if (f->frame.body->owner != NULL) /* the outermost body has none */
        put_int(s, ",\"bi\":", f->frame.body->index);
    put_int(s, ",\"at\":", f->frame.at);
    put_int(s, ",\"fl\":", f->frame.failed);
    put_int(s, ",\"hd\":", f->frame.handled);
    put_int(s, ",\"fi\":", f->frame.finished);
    put_int(s, ",\"cn\":", f->frame.cancelled);
    put_int(s, ",\"ask\":", f->frame.asked);
    put_int(s, ",\"dr\":", f->frame.drained);
    put_int(s, ",\"tk\":", f->frame.used.tokens);
    put_int(s, ",\"co\":", f->frame.used.cost);
    put_inner_as(s, ",\"dp\":", f->frame.inputs);
    if (f->frame.attachment != NULL) {
        put_text(s, ",\"ax\":", rv__blob_str(f->frame.attachment));
        put_int(s, ",\"ms\":", f->frame.started_ms);
    }
    if (f->frame.failed_node != RV__NO_NODE)
        put_int(s, ",\"fn\":", (int64_t)f->frame.failed_node + 1);
    put_int(s, ",\"b\":", mark(f->frame.base));
    put_int(s, ",\"sc\":", mark(f->frame.scope));
    put_int(s, ",\"la\":", mark(f->frame.last));
    put_int(s, ",\"ia\":", (int64_t)f->frame.item_at);
    put_int(s, ",\"il\":", (int64_t)f->frame.item_len);
    put_json(s, "pre", f->frame.prefix);
    /* Texts that many frames share are written once: most have the input of the run or of the previous frame; the
     * detached scopes of a forEach all have its items. */
    if (f->frame.input == NULL) {
        rv__buf_text(s->out, ",\"noin\":1");
    } else if (!same(f->frame.input, s->cell->input) && same(f->frame.input, s->last_input)) {
        rv__buf_text(s->out, ",\"inp=\":1");
    } else if (!same(f->frame.input, s->cell->input)) {
        put_json(s, "inp", f->frame.input);
        s->last_input = f->frame.input;
    }
    if (f->value != NULL && same(f->value, s->last_value)) {
        rv__buf_text(s->out, ",\"v=\":1");
    } else if (f->value != NULL) {
        put_json(s, "v", f->value);
        s->last_value = f->value;
    }
    if (f->frame.items != NULL && rv__items_same(f->frame.items, s->last_items)) {
        rv__buf_text(s->out, ",\"iv=\":1");
    } else if (f->frame.items != NULL) {
        put_items(s, f->frame.items);
        s->last_items = f->frame.items;
    }
}

static void put_step(struct saver *s, const struct rv__actor *step)
{
    put_int(s, ",\"pk\":", step->phase == PHASE_PARKED ? step->park + 1 : 0);
    put_int(s, ",\"no\":", step->step.attempt);
    put_int(s, ",\"nx\":", step->step.next_attempt);
    put_int(s, ",\"ms\":", step->step.started_ms);
    put_json(s, "st", step->step.state);
    put_json(s, "mk", step->step.made);
    put_json(s, "nt", step->step.note);
    put_json(s, "an", step->step.answer);
}

static void put_supervisor(struct saver *s, const struct rv__actor *sup)
{
    put_int(s, ",\"nx\":", sup->sup.next);
    put_int(s, ",\"ct\":", sup->sup.count);
    put_int(s, ",\"ac\":", sup->sup.active);
    put_int(s, ",\"en\":", sup->sup.ended);
    put_int(s, ",\"ok\":", sup->sup.good);
    put_int(s, ",\"bad\":", sup->sup.bad);
    put_int(s, ",\"cu\":", (int64_t)sup->sup.cursor);
    put_items(s, sup->sup.items);
    put_json(s, "er", sup->sup.error);
    if (sup->sup.key != NULL)
        put_text(s, ",\"key\":", rv__blob_str(sup->sup.key));
    put_inner(s, sup->sup.inner);
    if (sup->sup.schedule != NULL) {
        rv__buf_text(s->out, ",\"sl\":");
        rv__flow_kind(sup->node)->save(sup, s->out);
    }
}

static void put_actor(struct saver *s, const struct rv__actor *actor)
{
    rv__buf_text(s->out, "{\"a\":");
    rv__buf_int(s->out, (int64_t)actor->id);
    put_int(s, ",\"o\":", actor->owner != NULL ? (int64_t)actor->owner->id : 0);
    if (actor->node != NULL)
        put_int(s, ",\"n\":", (int64_t)actor->node->id + 1);
    put_int(s, ",\"t\":", (int64_t)actor->token);
    put_int(s, ",\"p\":", actor->phase);
    put_int(s, ",\"e\":", actor->eval);
    put_int(s, ",\"due\":", actor->due_ms);
    put_int(s, ",\"cr\":", actor->crashes);
    put_int(s, ",\"de\":", actor->deaths);
    put_json(s, "dy", actor->death);
    put_int(s, ",\"fg\":",
            actor->suspect | actor->detached << 1 | actor->hard << 2 | actor->owed << 3 |
                actor->hosted << 4);
    if (actor->is_frame) {
        put_frame(s, actor);
    } else {
        assert(actor->node != NULL); /* only the outermost frame has none */
        put_json(s, "v", actor->value);
        if (rv__is_step(actor->node))
            put_step(s, actor);
        else
            put_supervisor(s, actor);
    }
    rv__buf_char(s->out, '}');
}

static void put_list(struct saver *s, const struct rv__list *list)
{
    rv__buf_char(s->out, '[');
    for (const struct rv__actor *a = list->first; a != NULL; a = a->place_next) {
        if (a != list->first)
            rv__buf_char(s->out, ',');
        rv__buf_int(s->out, (int64_t)a->id);
    }
    rv__buf_char(s->out, ']');
}

/* Of all lanes, in order of arrival. */
static void put_waiting(struct saver *s, int place)
{
    const struct rv__actor *a;
    struct rv__arrivals it;
    bool first = true;
    rv__arrivals_init(&it, s->cell, place);
    for (rv__buf_char(s->out, '['); (a = rv__arrivals_next(&it)) != NULL; first = false) {
        if (!first)
            rv__buf_char(s->out, ',');
        rv__buf_int(s->out, (int64_t)a->id);
    }
    rv__buf_char(s->out, ']');
}

static int by_birth(const void *a, const void *b)
{
    const struct rv__channel *x = *(struct rv__channel *const *)a,
                             *y = *(struct rv__channel *const *)b;
    return (x->order > y->order) - (x->order < y->order);
}

static void put_channel(struct saver *s, const struct rv__channel *channel)
{
    put_text(s, "{\"name\":", channel->name);
    put_int(s, ",\"h\":", channel->handle);
    rv__buf_text(s->out, ",\"w\":[");
    for (const struct rv__actor *w = channel->first_waiter; w != NULL; w = w->step.wait_next) {
        if (w != channel->first_waiter)
            rv__buf_char(s->out, ',');
        rv__buf_int(s->out, (int64_t)w->id);
    }
    rv__buf_text(s->out, "],\"s\":["); /* each is a list: of a text, or of number and length */
    for (const struct rv__signal *g = channel->first_signal; g != NULL; g = g->next) {
        if (g != channel->first_signal)
            rv__buf_char(s->out, ',');
        if (rv__blob_is_reference(g->payload)) {
            rv__reference_write(g->payload, s->out);
            continue;
        }
        rv__buf_char(s->out, '[');
        rv__buf_str(s->out, g->payload != NULL ? rv__blob_str(g->payload) : rv__str("null"));
        rv__buf_char(s->out, ']');
    }
    rv__buf_text(s->out, "]}");
}

static void put_channels(struct saver *s)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < CHANNEL_BUCKETS; i++)
        for (struct rv__channel *c = s->cell->channels[i]; c != NULL; c = c->next)
            count++;
    struct rv__channel **order = rv__alloc((count + 1) * sizeof *order);
    if (order == NULL) {
        s->rc = RV_ENOMEM;
        return;
    }
    for (size_t i = 0; i < CHANNEL_BUCKETS; i++)
        for (struct rv__channel *c = s->cell->channels[i]; c != NULL; c = c->next)
            order[at++] = c;
    qsort(order, count, sizeof *order, by_birth);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            rv__buf_char(s->out, ',');
        put_channel(s, order[i]);
    }
    rv__free(order);
}

static void collect_actor(struct saver *s, const struct rv__actor *actor)
{
    if (actor->is_frame) {
        collect(s, actor->frame.base);
        collect(s, actor->frame.scope);
        collect(s, actor->frame.last);
        collect_inner(s, actor->frame.inputs);
    } else if (!rv__is_step(actor->node)) {
        collect_inner(s, actor->sup.inner);
    }
}

/* [actor,state,since,why,…]; 0 is none. */
static void put_suspensions(struct saver *s)
{
    for (const struct rv__suspension *one = s->cell->suspended; one != NULL; one = one->next) {
        rv__buf_text(s->out, one->prev == NULL ? ",\"why\":[" : ",");
        rv__buf_int(s->out, one->actor != NULL ? (int64_t)one->actor->id : 0);
        rv__buf_char(s->out, ',');
        rv__buf_int(s->out, one->which);
        rv__buf_char(s->out, ',');
        rv__buf_int(s->out, one->since_ms);
        rv__buf_char(s->out, ',');
        rv__buf_str(s->out, rv__blob_str(one->why));
    }
    if (s->cell->suspended != NULL)
        rv__buf_char(s->out, ']');
}

static void put_cell(struct saver *s)
{
    struct rv__cell *cell = s->cell;
    rv__buf_text(s->out, "{\"v\":");
    rv__buf_int(s->out, RV__SNAPSHOT_VERSION);
    rv__buf_text(s->out, ",\"nonce\":");
    rv__hash_text_write(cell->nonce, s->out);
    put_int(s, ",\"status\":", cell->status);
    put_int(s, ",\"next\":", (int64_t)cell->next_id);
    put_int(s, ",\"value\":", (int64_t)cell->next_value);
    put_int(s, ",\"ended\":", (int64_t)cell->attempts_ended);
    put_int(s, ",\"started\":", cell->started);
    put_int(s, ",\"limit\":", cell->limit);
    put_int(s, ",\"tokens\":", RV__BUG(414) ? 0 : cell->used.tokens);
    put_int(s, ",\"cost\":", cell->used.cost);
    if (cell->failed_node != RV__NO_NODE)
        put_int(s, ",\"failed\":", (int64_t)cell->failed_node + 1);
    rv__stamps_save(&cell->stamps, s->out);
    put_json(s, "input", cell->input);
    put_json(s, "error", cell->error);
    put_suspensions(s);
    put_int(s, ",\"results\":", mark(cell->results));
    rv__buf_text(s->out, ",\"entries\":[");
    for (size_t i = 0; i < s->count; i++) {
        if (i > 0)
            rv__buf_char(s->out, ',');
        put_entry(s, s->entries[i]);
    }
    rv__buf_text(s->out, "],\"actors\":[");
    bool first = true;
    for (const struct rv__actor *a = rv__cell_walk(cell, NULL); a != NULL;
         a = rv__cell_walk(cell, a)) {
        if (!first)
            rv__buf_char(s->out, ',');
        first = false;
        put_actor(s, a);
    }
    rv__buf_text(s->out, "],\"todo\":");
    put_list(s, &cell->todo);
    rv__buf_text(s->out, ",\"ends\":");
    put_list(s, &cell->ends);
    rv__buf_text(s->out, ",\"ready\":");
    put_waiting(s, PLACE_READY);
    rv__buf_text(s->out, ",\"range\":");
    put_waiting(s, PLACE_RANGE);
    rv__buf_text(s->out, ",\"channels\":[");
    put_channels(s);
    rv__buf_text(s->out, "]}");
}

int rv__cell_save(struct rv__cell *cell, struct rv__buf *out, rv_error *err)
{
    struct saver s = { .cell = cell, .out = out };
    collect(&s, cell->results);
    for (const struct rv__actor *a = rv__cell_walk(cell, NULL); a != NULL;
         a = rv__cell_walk(cell, a))
        collect_actor(&s, a);
    if (s.rc == RV_OK)
        put_cell(&s);
    for (size_t i = 0; i < s.count; i++)
        s.entries[i]->mark = 0;
    rv__free(s.entries);
    return s.rc < 0 ? rv__nomem(err) : rv__buf_err(out, err);
}
