/* defaults.c: adds `default` values for absent members and leaves every other byte as it is.
 *
 * The instance is walked together with all subschemas that apply to a value unconditionally: the schema,
 * what its $ref refers to, its allOf. An added default is walked in the same way. */
#include "schema/sub.h"

#include "base/alloc.h"
#include "base/error.h"

enum { TOGETHER = 256 }; /* subschemas that apply to one value */

struct filler {
    struct rv__buf *out;
    const struct rv__sub **subs; /* a stack: those of the current value are last */
    size_t count, room;
    unsigned depth;
    rv_error *err;
};

static int fill(struct filler *f, const struct rv__value *v, size_t first);

/* Push `sub` and what applies together with it, each once. Recursion: at most RV__SCHEMA_MAX_CHAIN. */
static int push(struct filler *f, const struct rv__sub *sub, size_t first)
{
    if (sub == NULL || sub->kind != RV__SUB_RULES)
        return RV_OK;
    for (size_t i = first; i < f->count; i++)
        if (f->subs[i] == sub)
            return RV_OK;
    if (f->count - first == TOGETHER)
        return rv__fail(f->err, RV_ETOOBIG, "more than %d schemas hold for one value", TOGETHER);
    if (f->count == f->room) {
        size_t room = f->room ? f->room * 2 : 64; /* at most TOGETHER for each level */
        const struct rv__sub **subs = rv__realloc(f->subs, room * sizeof *subs);
        if (subs == NULL)
            return rv__nomem(f->err);
        f->subs = subs;
        f->room = room;
    }
    f->subs[f->count++] = sub;
    if (sub->logic == NULL)
        return RV_OK;
    int rc = push(f, sub->logic->ref, first);
    for (uint32_t i = 0; rc == RV_OK && i < sub->logic->all.count; i++)
        rc = push(f, sub->logic->all.items[i], first);
    return rc;
}

/* The default of the first subschema that has one. */
static const struct rv__value *default_of(const struct filler *f, size_t first)
{
    for (size_t i = first; i < f->count; i++)
        if (f->subs[i]->fallback != NULL)
            return f->subs[i]->fallback;
    return NULL;
}

/* Push what the subschemas [first, last) say about the member `key`. */
static int push_member(struct filler *f, size_t first, size_t last, struct rv__str key)
{
    int rc = RV_OK;
    for (size_t i = first; rc == RV_OK && i < last; i++)
        if (f->subs[i]->objects != NULL)
            rc = push(f, rv__map_get(&f->subs[i]->objects->properties, key), last);
    return rc;
}

static int push_item(struct filler *f, size_t first, size_t last, uint32_t index)
{
    int rc = RV_OK;
    for (size_t i = first; rc == RV_OK && i < last; i++) {
        const struct rv__array_rules *r = f->subs[i]->arrays;
        if (r != NULL)
            rc = push(f, index < r->prefix.count ? r->prefix.items[index] : r->items, last);
    }
    return rc;
}

/* Add the properties that `object` lacks and that have a default. The first of [first, last) that names a
 * property asks all others for it; a later one that names it again is skipped. */
static int add_absent(struct filler *f, const struct rv__value *object, size_t first, size_t last)
{
    bool empty = object->count == 0;
    for (size_t i = first; i < last; i++) {
        const struct rv__object_rules *r = f->subs[i]->objects;
        for (uint32_t j = 0; r != NULL && j < r->properties.count; j++) {
            struct rv__str key = r->properties.items[j].key;
            bool asked = rv__value_get(object, key) != NULL;
            for (size_t before = first; before < i && !asked; before++)
                asked = f->subs[before]->objects != NULL &&
                        rv__map_get(&f->subs[before]->objects->properties, key) != NULL;
            if (asked)
                continue;
            int rc = push_member(f, first, last, key);
            const struct rv__value *value = rc == RV_OK ? default_of(f, last) : NULL;
            if (value != NULL) {
                rv__buf_text(f->out, empty ? "" : ",");
                rv__buf_json_str(f->out, key);
                rv__buf_char(f->out, ':');
                rc = fill(f, value, last);
                empty = false;
            }
            f->count = last;
            if (rc < 0)
                return rc;
        }
    }
    return RV_OK;
}

/* Write a container: its bytes up to the first child, that child, and so on; added members come last. */
static int fill_container(struct filler *f, const struct rv__value *v, size_t first)
{
    const char *done = v->at, *end = v->at + v->len;
    size_t last = f->count;
    int rc = RV_OK;
    for (uint32_t i = 0; rc == RV_OK && i < v->count; i++) {
        const struct rv__value *kid = &v->kids[i];
        if (kid->type < RV__JSON_ARRAY || (v->type == RV__JSON_OBJECT && !rv__value_counts(v, i)))
            continue;
        rc = v->type == RV__JSON_OBJECT ? push_member(f, first, last, v->keys[i])
                                        : push_item(f, first, last, i);
        if (rc == RV_OK && f->count > last) {
            rv__buf_add(f->out, done, (size_t)(kid->at - done));
            rc = fill(f, kid, last);
            done = kid->at + kid->len;
        }
        f->count = last;
    }
    if (rc == RV_OK && v->type == RV__JSON_OBJECT) {
        const struct rv__value *kid = v->count ? &v->kids[v->count - 1] : NULL;
        const char *behind = kid ? kid->at + kid->len : v->at + 1;
        rv__buf_add(f->out, done, (size_t)(behind - done));
        done = behind;
        rc = add_absent(f, v, first, last);
    }
    rv__buf_add(f->out, done, (size_t)(end - done));
    return rc < 0 ? rc : rv__buf_err(f->out, f->err);
}

/* Write `v`, to which the subschemas from `first` on apply. */
static int fill(struct filler *f, const struct rv__value *v, size_t first)
{
    if (v->type < RV__JSON_ARRAY || first == f->count) {
        rv__buf_str(f->out, rv__value_text(v));
        return RV_OK;
    }
    if (f->depth == RV__JSON_VALUE_DEPTH)
        return rv__fail(f->err, RV_ETOOBIG, "defaults within defaults nest deeper than %d",
                        RV__JSON_VALUE_DEPTH);
    f->depth++;
    int rc = fill_container(f, v, first);
    f->depth--;
    return rc;
}

int rv__schema_defaults(const struct rv__schema *schema, struct rv__str instance,
                        struct rv__buf *out, rv_error *err)
{
    struct filler f = { .out = out, .err = err };
    struct rv__arena arena;
    struct rv__value root;
    size_t before = out->len;
    int rc;

    rv__arena_init(&arena, RV__INSTANCE_ARENA);
    rc = rv__value_read(instance, &arena, &root, NULL, err);
    if (rc < 0)
        goto out;

    if (schema->has_defaults)
        rc = push(&f, schema->root, 0);
    if (rc == RV_OK)
        rc = fill(&f, &root, 0);
    if (rc == RV_OK)
        rc = rv__buf_err(out, err);
    if (rc < 0)
        rv__buf_cut(out, before);
out:
    rv__free(f.subs);
    rv__arena_done(&arena);
    return rc;
}
