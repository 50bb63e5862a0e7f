/* restore.c: reads a cell from the text that snapshot.c wrote. The text may be damaged, so everything is checked
 * against the plan and for consistency (sound.c) before it is used. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/bugs.h"
#include "flow/cell.h"

/* The first error is kept in `bad` and reported at the end. */
struct loader {
    struct rv__cell *cell;
    struct rv__entry **entries;
    size_t count;
    struct rv__blob *last_input, *last_value; /* borrowed from the frames that have them */
    struct rv__items *last_items;
    struct rv__blob *last_error; /* borrowed from the entry that has it */
    const char *bad;
    bool no_memory;
};

/* The members of an object, found in one walk over its text, since an actor has two dozen. Our keys have no
 * escapes. */
enum { MOST_MEMBERS = 40 };
struct members {
    size_t count;
    struct {
        struct rv__str key, value; /* the key with its quotes */
    } all[MOST_MEMBERS];
};

static void get_members(struct loader *l, struct rv__str object, struct members *ret)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    ret->count = 0;
    rv__json_iter_init(&it, object);
    while (rv__json_next(&it, &key, &value)) {
        if (ret->count == MOST_MEMBERS) {
            l->bad = "keys";
            return;
        }
        ret->all[ret->count].key = key;
        ret->all[ret->count++].value = value;
    }
}

static bool get(const struct members *of, const char *key, struct rv__str *ret)
{
    size_t len = strlen(key);
    for (size_t i = of->count; i-- > 0;) /* of equal keys the last one counts */
        if (of->all[i].key.len == len + 2 && memcmp(of->all[i].key.at + 1, key, len) == 0) {
            *ret = of->all[i].value;
            return true;
        }
    return false;
}

static int64_t get_int(struct loader *l, const struct members *object, const char *key, int64_t min,
                       int64_t max)
{
    struct rv__str value;
    int64_t n = 0;
    if (!get(object, key, &value))
        return min > 0 ? (l->bad = key, min) : 0;
    if (rv__json_int(value, &n) < 0 || n < min || n > max) {
        l->bad = key;
        return min;
    }
    return n;
}

static struct rv__blob *get_json(struct loader *l, const struct members *object, const char *key)
{
    struct rv__str value;
    if (!get(object, key, &value))
        return NULL;
    struct rv__blob *blob = rv__blob_new(value);
    l->no_memory |= blob == NULL;
    return blob;
}

static struct rv__blob *get_reference(struct loader *l, struct rv__str json, const char *key)
{
    struct rv__blob *reference = NULL;
    int rc = rv__reference_read(json, &reference);
    if (rc == RV_EINVAL || (rc == RV_OK && reference->value >= l->cell->next_value))
        l->bad = key;
    l->no_memory |= rc == RV_ENOMEM;
    return reference;
}

/* A text, or a reference to one. */
static struct rv__blob *get_value(struct loader *l, const struct members *object, const char *key,
                                  const char *reference_key)
{
    struct rv__str json;
    return get(object, reference_key, &json) ? get_reference(l, json, key)
                                             : get_json(l, object, key);
}

static struct rv__items *get_items(struct loader *l, const struct members *object)
{
    struct rv__items *items = NULL;
    struct rv__str value;
    if (!get(object, "iv", &value))
        return NULL;
    int rc = rv__items_read(value, &items);
    if (rc == RV_EINVAL ||
        (rc == RV_OK && items->first + (uint64_t)items->pieces > l->cell->next_value))
        l->bad = "iv";
    l->no_memory |= rc == RV_ENOMEM;
    return items;
}

/* A string, without its quotes. */
static struct rv__blob *as_text(struct loader *l, struct rv__str value, const char *key)
{
    struct rv__str text;
    struct rv__arena arena;
    struct rv__blob *blob = NULL;
    rv__arena_init(&arena, SIZE_MAX);
    int rc = rv__json_string(value, &arena, &text);
    if (rc == RV_EINVAL)
        l->bad = key;
    else if (rc == RV_OK)
        blob = rv__blob_new(text);
    l->no_memory |= blob == NULL && rc != RV_EINVAL;
    rv__arena_done(&arena);
    return blob;
}

static struct rv__blob *get_text(struct loader *l, const struct members *object, const char *key)
{
    struct rv__str value;
    return get(object, key, &value) ? as_text(l, value, key) : NULL;
}

static bool failed(const struct loader *l)
{
    return l->bad != NULL || l->no_memory;
}

static bool get_list(struct loader *l, const struct members *object, const char *key,
                     struct rv__json_iter *it)
{
    struct rv__str list;
    if (!get(object, key, &list) || rv__json_type(list) != RV__JSON_ARRAY) {
        l->bad = key;
        return false;
    }
    rv__json_iter_init(it, list);
    return true;
}

/* A reference to an entry by its number; 0 is none. */
static struct rv__entry *get_entry(struct loader *l, const struct members *object, const char *key)
{
    int64_t n = get_int(l, object, key, 0, (int64_t)l->count);
    return n > 0 ? rv__entry_ref(l->entries[n - 1]) : NULL;
}

static const struct rv__node *get_node(struct loader *l, int64_t id)
{
    if (id < 0 || id >= (int64_t)l->cell->plan->node_count) {
        l->bad = "n";
        return NULL;
    }
    return l->cell->plan->nodes[id];
}

static void load_child_errors(struct loader *l, const struct members *in, struct rv__inner *inner)
{
    struct rv__json_iter it;
    struct rv__str number, error;
    int64_t child;
    if (!get(in, "ce", &number) || !get_list(l, in, "ce", &it))
        return;
    while (!failed(l) && rv__json_next(&it, NULL, &number)) {
        if (rv__json_int(number, &child) < 0 || child < 0 || child >= inner->child_count ||
            inner->children[child].error != NULL || !rv__json_next(&it, NULL, &error)) {
            l->bad = "ce";
            return;
        }
        inner->children[child].error = rv__blob_new(error);
        l->no_memory |= inner->children[child].error == NULL;
    }
}

static void load_child_attempts(struct loader *l, const struct members *in, struct rv__inner *inner)
{
    struct rv__json_iter it;
    struct rv__str number;
    if (!get(in, "ca", &number) || !get_list(l, in, "ca", &it))
        return;
    while (!failed(l) && rv__json_next(&it, NULL, &number)) {
        int64_t child = -1, attempts = -1, generation = -1;
        if (rv__json_int(number, &child) < 0 || child < 0 || child >= inner->child_count ||
            !rv__json_next(&it, NULL, &number) || rv__json_int(number, &attempts) < 0 ||
            attempts < 0 || attempts > INT32_MAX || !rv__json_next(&it, NULL, &number) ||
            rv__json_int(number, &generation) < 0 || generation < 0 ||
            generation > RV__MAX_NUMBER) {
            l->bad = "ca";
            return;
        }
        inner->children[child].attempts = (uint32_t)attempts;
        inner->children[child].generation = generation;
    }
}

static void load_child_attachments(struct loader *l, const struct members *in,
                                   struct rv__inner *inner)
{
    struct rv__json_iter it;
    struct rv__str item;
    if (!get(in, "cx", &item) || !get_list(l, in, "cx", &it))
        return;
    while (!failed(l) && rv__json_next(&it, NULL, &item)) {
        int64_t child = -1;
        if (rv__json_int(item, &child) < 0 || child < 0 || child >= inner->child_count ||
            inner->children[child].attachment != NULL || !rv__json_next(&it, NULL, &item)) {
            l->bad = "cx";
            return;
        }
        inner->children[child].attachment = as_text(l, item, "cx");
    }
}

/* Only a failed node has an error. */
static void load_error(struct loader *l, const struct members *json, struct rv__entry *entry)
{
    if (RV__BUG(65))
        return;
    entry->error = get_json(l, json, "er");
    if (entry->error == NULL && get_int(l, json, "er=", 0, 1) == 1)
        entry->error = rv__blob_ref(l->last_error);
    if (entry->error == NULL)
        return;
    if (entry->status != STATUS_FAILED)
        l->bad = "er";
    l->last_error = entry->error;
}

/* `node` NULL: it cannot be checked. */
static struct rv__inner *load_inner_as(struct loader *l, const struct members *object,
                                       const char *key, const struct rv__node *node)
{
    struct rv__str json, item;
    struct rv__json_iter it;
    struct members in;
    if (!get(object, key, &json))
        return NULL;
    get_members(l, json, &in);
    if (!get_list(l, &in, "ch", &it)) {
        l->bad = key;
        return NULL;
    }
    size_t numbers = 0;
    for (struct rv__json_iter count = it; rv__json_next(&count, NULL, &item);)
        numbers++;
    size_t want = numbers / 2;
    if (numbers != want * 2 || want > RV__PLAN_MAX_NODES) {
        l->bad = "ch";
        return NULL;
    }
    struct rv__inner *inner = rv__inner_new((uint32_t)want);
    if (inner == NULL) {
        l->no_memory = true;
        return NULL;
    }
    inner->index = get_int(l, &in, "x", -1, RV__MAX_NUMBER);
    inner->iterations = get_int(l, &in, "it", 0, RV__MAX_NUMBER);
    inner->base = get_entry(l, &in, "b");
    inner->key = get_text(l, &in, "key");
    if (inner->iterations > 0 &&
        (inner->key == NULL || memchr(inner->key->text, '/', inner->key->len) == NULL))
        l->bad = "key";
    for (size_t i = 0; i < want; i++) {
        int64_t status = 0, number_of = 0;
        if (!rv__json_next(&it, NULL, &item) || rv__json_int(item, &status) < 0 || status < 0 ||
            status >= STATUSES || !rv__json_next(&it, NULL, &item) ||
            rv__json_int(item, &number_of) < 0 || number_of < 0 || number_of > (int64_t)l->count) {
            l->bad = "ch";
            break;
        }
        inner->children[i].status = (uint8_t)status;
        if (number_of > 0)
            inner->children[i].scope = rv__entry_ref(l->entries[number_of - 1]);
    }
    load_child_errors(l, &in, inner);
    load_child_attempts(l, &in, inner);
    load_child_attachments(l, &in, inner);
    const char *wrong = node != NULL ? rv__flow_kind(node)->inner_fits(node, inner) : NULL;
    if (wrong != NULL)
        l->bad = wrong;
    return inner;
}

static struct rv__inner *load_inner(struct loader *l, const struct members *object,
                                    const struct rv__node *node)
{
    return load_inner_as(l, object, "in", node);
}

static void load_entries(struct loader *l, const struct members *json)
{
    struct rv__json_iter it;
    struct rv__str text, list;
    struct members of, *item = &of;
    if (!get_list(l, json, "entries", &it) || !get(json, "entries", &list))
        return;
    size_t count = rv__json_count(list);
    l->entries = rv__zalloc(count, sizeof(struct rv__entry *));
    if (l->entries == NULL) {
        l->no_memory = true;
        return;
    }
    while (!failed(l) && rv__json_next(&it, NULL, &text)) {
        get_members(l, text, item);
        const struct rv__node *node = get_node(l, get_int(l, item, "n", 0, RV__PLAN_MAX_NODES));
        if (node == NULL)
            return;
        int64_t status = get_int(l, item, "s", 0, STATUSES - 1);
        struct rv__entry *entry = rv__entry_new(node, (enum rv__status)status);
        if (entry == NULL) {
            l->no_memory = true;
            return;
        }
        entry->number = get_int(l, item, "g", 0, RV__MAX_NUMBER);
        entry->outer = get_entry(l, item, "o");
        entry->result = get_value(l, item, "r", "r@");
        entry->state = get_value(l, item, "st", "st@");
        entry->description = get_value(l, item, "de", "de@");
        load_error(l, item, entry);
        entry->inner = load_inner(l, item, node);
        l->entries[l->count++] = entry;
    }
}

static void load_frame(struct loader *l, struct rv__actor *f, const struct members *json)
{
    const struct rv__plan *plan = l->cell->plan;
    f->is_frame = true;
    f->frame.iteration = get_int(l, json, "itn", -1, RV__MAX_NUMBER);
    int64_t body = get_int(l, json, "bi", 0, INT32_MAX);
    f->frame.prefix = get_json(l, json, "pre");
    f->frame.body = &plan->body;
    if (f->node != NULL && f->frame.prefix != NULL) {
        if (f->node->body == NULL) { /* a handler is in no body */
            l->bad = "n";
            return;
        }
        f->frame.body = f->node->body;
    } else if (f->node != NULL) {
        if (body >= (int64_t)f->node->body_count) {
            l->bad = "bi";
            return;
        }
        f->frame.body = &f->node->bodies[body];
    }
    f->frame.at = (uint32_t)get_int(l, json, "at", 0, f->frame.body->count);
    f->frame.failed = get_int(l, json, "fl", 0, 1);
    f->frame.handled = get_int(l, json, "hd", 0, 1);
    f->frame.finished = get_int(l, json, "fi", 0, 1);
    f->frame.cancelled = get_int(l, json, "cn", 0, 1);
    f->frame.asked = get_int(l, json, "ask", 0, 1);
    f->frame.drained = get_int(l, json, "dr", 0, 1);
    f->frame.used.tokens = get_int(l, json, "tk", 0, RV__MAX_NUMBER);
    f->frame.used.cost = get_int(l, json, "co", 0, RV__MAX_NUMBER);
    f->frame.inputs = load_inner_as(l, json, "dp", NULL);
    f->frame.attachment = get_text(l, json, "ax");
    f->frame.started_ms = get_int(l, json, "ms", -RV__MAX_NUMBER, RV__MAX_NUMBER);
    int64_t failed_node = get_int(l, json, "fn", 0, plan->node_count);
    f->frame.failed_node = failed_node > 0 ? (uint32_t)failed_node - 1 : RV__NO_NODE;
    f->frame.base = get_entry(l, json, "b");
    f->frame.scope = get_entry(l, json, "sc");
    f->frame.last = get_entry(l, json, "la");
    f->frame.item_at = (size_t)get_int(l, json, "ia", 0, RV__JSON_MAX_BYTES);
    f->frame.item_len = (size_t)get_int(l, json, "il", 0, RV__JSON_MAX_BYTES);
    f->frame.input = get_value(l, json, "inp", "inp@");
    if (f->frame.input != NULL)
        l->last_input = f->frame.input;
    else if (get_int(l, json, "inp=", 0, 1) == 1)
        f->frame.input = rv__blob_ref(l->last_input);
    else if (get_int(l, json, "noin", 0, 1) == 0)
        f->frame.input = rv__blob_ref(l->cell->input);
    if (f->value != NULL)
        l->last_value = f->value;
    else if (get_int(l, json, "v=", 0, 1) == 1)
        f->value = rv__blob_ref(l->last_value);
    f->frame.items = get_items(l, json);
    if (f->frame.items != NULL)
        l->last_items = f->frame.items;
    else if (get_int(l, json, "iv=", 0, 1) == 1)
        f->frame.items = rv__items_ref(l->last_items);
}

static void load_node(struct loader *l, struct rv__actor *a, const struct members *json)
{
    if (a->node == NULL) {
        l->bad = "n";
        return;
    }
    if (rv__is_step(a->node)) {
        int64_t park = get_int(l, json, "pk", 0, PARK_CUT + 1);
        a->park = (uint8_t)(park > 0 ? park - 1 : 0);
        a->step.attempt = (int)get_int(l, json, "no", 0, INT32_MAX - 1);
        a->step.next_attempt = (int)get_int(l, json, "nx", 0, INT32_MAX);
        a->step.started_ms = get_int(l, json, "ms", -RV__MAX_NUMBER, RV__MAX_NUMBER);
        a->step.state = get_value(l, json, "st", "st@");
        a->step.made = RV__BUG(28) ? NULL : get_value(l, json, "mk", "mk@");
        a->step.note = get_json(l, json, "nt");
        a->step.answer = get_value(l, json, "an", "an@");
        return;
    }
    a->sup.next = get_int(l, json, "nx", 0, RV__MAX_NUMBER);
    a->sup.count = get_int(l, json, "ct", 0, RV__MAX_NUMBER);
    a->sup.active = get_int(l, json, "ac", 0, RV__MAX_NUMBER);
    a->sup.ended = get_int(l, json, "en", 0, RV__MAX_NUMBER);
    a->sup.good = get_int(l, json, "ok", 0, RV__MAX_NUMBER);
    a->sup.bad = get_int(l, json, "bad", 0, RV__MAX_NUMBER);
    a->sup.cursor = (size_t)get_int(l, json, "cu", 0, RV__JSON_MAX_BYTES);
    a->sup.items = get_items(l, json);
    a->sup.error = get_json(l, json, "er");
    a->sup.key = get_text(l, json, "key");
    if (a->sup.key != NULL && memchr(a->sup.key->text, '/', a->sup.key->len) == NULL)
        l->bad = "key";
    a->sup.inner = load_inner(l, json, a->node);
    struct rv__str schedule;
    const struct rv__flow_kind *kind = rv__flow_kind(a->node);
    if (!get(json, "sl", &schedule))
        return;
    if (kind->schedule == NULL || rv__json_type(schedule) != RV__JSON_ARRAY) {
        l->bad = "sl";
        return;
    }
    a->sup.schedule = kind->schedule(l->cell, a->node);
    l->no_memory |= a->sup.schedule == NULL;
    if (a->sup.schedule != NULL && !kind->load(a, schedule))
        l->bad = "sl";
}

static void load_suspensions(struct loader *l, const struct members *json)
{
    struct rv__json_iter it;
    struct rv__str number, why;
    if (!get(json, "why", &number) || !get_list(l, json, "why", &it))
        return;
    while (!failed(l) && rv__json_next(&it, NULL, &number)) {
        int64_t actor = -1, which = -1, since = 0;
        if (rv__json_int(number, &actor) < 0 || actor < 0 || !rv__json_next(&it, NULL, &number) ||
            rv__json_int(number, &which) < 0 || which < 0 || which > RV__PLAN_MAX_NODES ||
            !rv__json_next(&it, NULL, &number) || rv__json_int(number, &since) < 0 ||
            !rv__json_next(&it, NULL, &why)) {
            l->bad = "why";
            return;
        }
        struct rv__actor *of = rv__cell_find(l->cell, (uint64_t)actor);
        bool states = of != NULL && !of->is_frame && rv__flow_kind(of->node)->decided != NULL;
        bool whole = actor == 0 && which == 0 && l->cell->suspended == NULL;
        bool pill = of != NULL && which == 0 && of->crashes > l->cell->max_crashes &&
                    (of->phase == PHASE_READY || of->phase == PHASE_TO_EVAL);
        if ((!whole && !pill && !(which != 0 && states && which <= of->node->body_count)) ||
            rv__cell_stopped(l->cell) ||
            rv__suspension_find(l->cell, of, (uint32_t)which) != NULL) {
            l->bad = "why";
            return;
        }
        struct rv__blob *blob = rv__blob_new(why);
        l->no_memory |= blob == NULL ||
                        rv__suspension_add(l->cell, of, (uint32_t)which, since, blob) < 0;
        rv__blob_unref(blob);
    }
}

static void load_actor(struct loader *l, struct rv__str text)
{
    struct rv__cell *cell = l->cell;
    struct members of, *json = &of;
    get_members(l, text, json);
    uint64_t next_id = cell->next_id;
    int64_t id = get_int(l, json, "a", 1, (int64_t)next_id - 1);
    int64_t owner_id = get_int(l, json, "o", 0, (int64_t)next_id - 1);
    int64_t node = get_int(l, json, "n", 0, cell->plan->node_count);
    bool is_frame = get_int(l, json, "f", 0, 1);
    struct rv__actor *owner = rv__cell_find(cell, (uint64_t)owner_id);
    if (failed(l) || rv__cell_find(cell, (uint64_t)id) != NULL ||
        (owner == NULL && (owner_id != 0 || !is_frame))) {
        if (!failed(l))
            l->bad = "a";
        return;
    }
    cell->next_id = (uint64_t)id; /* the actor gets the id it had */
    struct rv__actor *actor = rv__actor_new(cell);
    cell->next_id = next_id;
    if (actor == NULL) {
        l->no_memory = true;
        return;
    }
    actor->node = node > 0 ? get_node(l, node - 1) : NULL;
    actor->is_frame = is_frame;
    if (!is_frame && actor->node == NULL) { /* its kind is unknown: do not release it as a node */
        actor->is_frame = true;
        l->bad = "n";
    }
    actor->token = (uint64_t)get_int(l, json, "t", 0, RV__MAX_NUMBER);
    actor->phase = (uint8_t)get_int(l, json, "p", 0, PHASES - 1);
    actor->eval = (uint8_t)get_int(l, json, "e", 0, EVALS - 1);
    actor->due_ms = get_int(l, json, "due", -RV__MAX_NUMBER, RV__MAX_NUMBER);
    actor->crashes = RV__BUG(19) ? 0 : (int)get_int(l, json, "cr", 0, INT32_MAX - 1);
    actor->deaths = (int)get_int(l, json, "de", 0, RV__MAX_DEATHS);
    actor->death = get_json(l, json, "dy");
    int64_t flags = get_int(l, json, "fg", 0, 31);
    actor->suspect = flags & 1;
    actor->detached = flags >> 1 & 1;
    actor->hard = flags >> 2 & 1;
    actor->owed = flags >> 3 & 1;
    actor->hosted = flags >> 4 & 1;
    bool evaluated = !is_frame && actor->phase != PHASE_FAILED; /* else it is an error, or items */
    actor->value = evaluated ? get_value(l, json, "v", "v@") : get_json(l, json, "v");
    bool detached_scope = false;
    if (!failed(l) && is_frame) {
        load_frame(l, actor, json);
        detached_scope = actor->frame.prefix != NULL;
    } else if (!failed(l)) {
        load_node(l, actor, json);
    }
    if (!failed(l))
        rv__actor_count(cell, actor);
    if (owner == NULL && !detached_scope && cell->root == NULL)
        cell->root = actor;
    else
        rv__actor_link(cell, actor, owner);
    if (!failed(l) && is_frame && actor->frame.scope != actor->frame.base)
        rv__frame_count_shown(actor, 1);
}

/* Their lanes are computed when everything is loaded. */
static void load_places(struct loader *l, const struct members *json, const char *key, int place)
{
    struct rv__json_iter it;
    struct rv__str item;
    if (!get_list(l, json, key, &it))
        return;
    while (rv__json_next(&it, NULL, &item)) {
        int64_t id = 0;
        struct rv__actor *actor = NULL;
        if (rv__json_int(item, &id) == RV_OK && id > 0)
            actor = rv__cell_find(l->cell, (uint64_t)id);
        if (actor == NULL || actor->place != PLACE_NOWHERE) {
            l->bad = key;
            return;
        }
        bool lanes = place == PLACE_READY || place == PLACE_RANGE;
        rv__actor_put(l->cell, actor, place, lanes ? LANE_NOBODY : LANE_NONE);
    }
}

/* [text] or [number,bytes]. NULL: an error, which the loader remembers. */
static struct rv__blob *load_payload(struct loader *l, struct rv__str list)
{
    struct rv__json_iter it;
    struct rv__str text;
    struct rv__blob *payload;
    if (rv__json_type(list) == RV__JSON_ARRAY && rv__json_count(list) == 1) {
        rv__json_iter_init(&it, list);
        (void)rv__json_next(&it, NULL, &text); /* there is one */
        payload = rv__blob_new(text);
        l->no_memory |= payload == NULL;
        return payload;
    }
    return get_reference(l, list, "s");
}

static void load_signals(struct loader *l, struct rv__channel *channel, const struct members *json)
{
    struct rv__json_iter it;
    struct rv__str item;
    if (!get_list(l, json, "s", &it))
        return;
    while (rv__json_next(&it, NULL, &item)) {
        struct rv__signal *signal = rv__zalloc(1, sizeof *signal);
        struct rv__blob *payload = load_payload(l, item);
        if (signal == NULL || payload == NULL) {
            rv__free(signal);
            rv__blob_unref(payload);
            l->no_memory |= signal == NULL;
            return;
        }
        signal->payload = payload;
        if (channel->last_signal != NULL)
            channel->last_signal->next = signal;
        else
            channel->first_signal = signal;
        channel->last_signal = signal;
        l->cell->signals++;
        l->cell->bytes += sizeof *signal;
    }
}

static void load_channel(struct loader *l, struct rv__str text)
{
    struct rv__json_iter it;
    struct rv__str item;
    struct members of, *json = &of;
    get_members(l, text, json);
    struct rv__blob *name = get_text(l, json, "name");
    bool handle = get_int(l, json, "h", 0, 1);
    if (name == NULL || !get_list(l, json, "w", &it)) {
        rv__blob_unref(name);
        if (!failed(l))
            l->bad = "channels";
        return;
    }
    struct rv__channel *channel = rv__channel_get(l->cell, rv__blob_str(name), handle, true);
    rv__blob_unref(name);
    if (channel == NULL) {
        l->no_memory = true;
        return;
    }
    load_signals(l, channel, json);
    while (!failed(l) && rv__json_next(&it, NULL, &item)) {
        int64_t id = 0;
        struct rv__actor *actor = NULL;
        if (rv__json_int(item, &id) == RV_OK && id > 0)
            actor = rv__cell_find(l->cell, (uint64_t)id);
        if (actor == NULL || !rv__actor_is_step(actor) || actor->phase != PHASE_PARKED ||
            actor->step.channel != NULL) {
            l->bad = "channels";
            return;
        }
        rv__channel_join(l->cell, channel, actor);
    }
    rv__channel_drop_if_empty(l->cell, channel);
}

/* Places and channels refer to actors, so they are checked when all actors exist. */
static void check_loaded(struct loader *l)
{
    const struct rv__cell *cell = l->cell;
    if (!cell->started || rv__run_terminal(cell->status) == (cell->root != NULL))
        l->bad = "status";
    if (cell->suspended != NULL && cell->status != RUN_SUSPENDED)
        l->bad = "why";
    if (cell->error != NULL && !rv__run_terminal(cell->status))
        l->bad = "error";
    for (const struct rv__actor *a = rv__cell_walk(cell, NULL); a != NULL && l->bad == NULL;
         a = rv__cell_walk(cell, a)) {
        bool step = rv__actor_is_step(a);
        bool in_channel = step && a->step.channel != NULL;
        bool needs_channel = step && a->phase == PHASE_PARKED &&
                             (a->park == PARK_SIGNAL || a->park == PARK_HANDLE);
        if (in_channel != needs_channel || !rv__actor_sound(cell, a) || !rv__actor_placed(cell, a))
            l->bad = "actors";
    }
}

static void load_stamps(struct loader *l, const struct members *json)
{
    struct rv__str stamps;
    int rc = get(json, "stamps", &stamps) ? rv__stamps_load(&l->cell->stamps, stamps) : RV_OK;
    l->no_memory |= rc == RV_ENOMEM;
    if (rc == RV_EINVAL)
        l->bad = "stamps";
}

static void load_all(struct loader *l, struct rv__str text)
{
    struct rv__cell *cell = l->cell;
    struct members of, *json = &of;
    get_members(l, text, json);
    struct rv__json_iter it;
    struct rv__str item, nonce;
    if (get_int(l, json, "v", 1, RV__MAX_NUMBER) != RV__SNAPSHOT_VERSION)
        l->bad = "v";
    if (!get(json, "nonce", &nonce) || rv__hash_text_read(nonce, &cell->nonce) < 0)
        l->bad = "nonce";
    cell->status = (enum rv__run_status)get_int(l, json, "status", 0, RUN_STATUSES - 1);
    cell->next_id = (uint64_t)get_int(l, json, "next", 1, RV__MAX_NUMBER);
    cell->next_value = (uint64_t)get_int(l, json, "value", 1, RV__MAX_NUMBER) - RV__BUG(26);
    cell->attempts_ended = (uint64_t)get_int(l, json, "ended", 0, RV__MAX_NUMBER) - RV__BUG(440);
    cell->started = get_int(l, json, "started", 0, 1);
    cell->limit = get_int(l, json, "limit", 0, RV__MAX_NUMBER);
    cell->used.tokens = get_int(l, json, "tokens", 0, RV__MAX_NUMBER);
    cell->used.cost = get_int(l, json, "cost", 0, RV__MAX_NUMBER);
    int64_t failed_node = get_int(l, json, "failed", 0, cell->plan->node_count);
    cell->failed_node = failed_node > 0 ? (uint32_t)failed_node - 1 : RV__NO_NODE;
    load_stamps(l, json);
    cell->input = get_value(l, json, "input", "input@");
    cell->error = get_json(l, json, "error");
    if (!failed(l))
        load_entries(l, json);
    if (!failed(l))
        cell->results = get_entry(l, json, "results");
    if (!failed(l) && get_list(l, json, "actors", &it))
        while (!failed(l) && rv__json_next(&it, NULL, &item))
            load_actor(l, item);
    if (!failed(l))
        load_suspensions(l, json);
    if (!failed(l))
        load_places(l, json, "todo", PLACE_TODO);
    if (!failed(l))
        load_places(l, json, "ends", PLACE_ENDS);
    if (!failed(l))
        load_places(l, json, "ready", PLACE_READY);
    if (!failed(l))
        load_places(l, json, "range", PLACE_RANGE);
    if (!failed(l) && get_list(l, json, "channels", &it))
        while (!failed(l) && rv__json_next(&it, NULL, &item))
            load_channel(l, item);
    if (!failed(l))
        check_loaded(l);
    if (!failed(l))
        (void)rv__cell_lanes(cell, cell->lane, cell->lane_arg); /* it takes no memory */
}

int rv__cell_load(const struct rv__cell_opts *opts, struct rv__str json, struct rv__cell **ret,
                  rv_error *err)
{
    struct loader l = { .cell = rv__cell_alloc(opts) };
    if (l.cell == NULL)
        return rv__nomem(err);
    l.cell->quiet = true;
    if (rv__json_type(json) == RV__JSON_OBJECT)
        load_all(&l, json);
    else
        l.bad = "it is not an object";
    for (size_t i = 0; i < l.count; i++)
        rv__entry_unref(l.entries[i]);
    rv__free(l.entries);
    if (!failed(&l)) {
        l.cell->quiet = false;
        *ret = l.cell;
        return RV_OK;
    }
    rv__cell_free(l.cell);
    if (l.no_memory)
        return rv__nomem(err);
    return rv__fail(err, RV_ESTORE, "a snapshot does not fit its plan: '%s' is not as it should be",
                    l.bad);
}
