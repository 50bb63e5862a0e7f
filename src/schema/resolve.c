/* resolve.c: resolves references: $id, $anchor, JSON pointers; and refuses circular ones.
 *
 * Ids are collected while the schema is compiled, and references resolved once all are known. A target that
 * no keyword contains (a pointer into an unknown keyword) is compiled when it is first referred to. */
#include "schema/sub.h"

#include "base/error.h"
#include "schema/uri.h"

static bool is_name(struct rv__str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '-' || c == '.')))
            return false;
    }
    return s.len > 0;
}

static struct rv__resource *find_resource(const struct rv__compiler *k, struct rv__str uri)
{
    struct rv__resource *r = k->resources;
    while (r != NULL && !rv__str_eq(r->uri, uri))
        r = r->next;
    return r;
}

static struct rv__anchor *find_anchor(const struct rv__compiler *k,
                                      const struct rv__resource *resource, struct rv__str name)
{
    struct rv__anchor *a = k->anchors;
    while (a != NULL && (a->resource != resource || !rv__str_eq(a->name, name)))
        a = a->next;
    return a;
}

int rv__compile_id(struct rv__compiler *k, struct rv__sub *sub, const struct rv__value *id)
{
    struct rv__str uri = id->text;
    struct rv__resource *resource;
    if (id->type != RV__JSON_STRING) {
        rv__complain(k, id, "must be a string");
        return RV_OK;
    }
    struct rv__str fragment = rv__uri_cut_fragment(&uri);
    if (fragment.len > 0) {
        rv__complain(k, id, "may not have a fragment; a name for a place is an $anchor");
        return RV_OK;
    }
    if (++k->ids > RV__SCHEMA_MAX_IDS) {
        rv__complain(k, id, "is one of more than %d ids", RV__SCHEMA_MAX_IDS);
        return RV_OK;
    }
    if (rv__uri_resolve(sub->resource->uri, uri, k->arena, &uri) < 0)
        return RV_ENOMEM;
    if (sub->at == &k->schema->text) { /* the root already has a resource, without a name */
        k->resources->uri = uri;
        return RV_OK;
    }
    if (find_resource(k, uri) != NULL) {
        rv__complain(k, id, "is the id of another schema already");
        return RV_OK;
    }
    resource = rv__arena_zalloc(k->arena, 1, sizeof *resource);
    if (resource == NULL)
        return RV_ENOMEM;
    *resource = (struct rv__resource){ k->resources, uri, sub->at };
    k->resources = resource;
    sub->resource = resource;
    return RV_OK;
}

int rv__compile_anchor(struct rv__compiler *k, struct rv__sub *sub, const struct rv__value *name)
{
    if (name->type != RV__JSON_STRING || !is_name(name->text)) {
        rv__complain(k, name, "must be a name: a letter or '_', then letters, digits, '-_.'");
        return RV_OK;
    }
    if (find_anchor(k, sub->resource, name->text) != NULL) {
        rv__complain(k, name, "is the anchor of another place already");
        return RV_OK;
    }
    if (++k->anchor_count > RV__SCHEMA_MAX_IDS) {
        rv__complain(k, name, "is one of more than %d anchors", RV__SCHEMA_MAX_IDS);
        return RV_OK;
    }
    struct rv__anchor *anchor = rv__arena_zalloc(k->arena, 1, sizeof *anchor);
    if (anchor == NULL)
        return RV_ENOMEM;
    /* The tree is ours; only subschemas are given it as const. */
    *anchor = (struct rv__anchor){ k->anchors, sub->resource, name->text,
                                   (struct rv__value *)(uintptr_t)sub->at };
    k->anchors = anchor;
    return RV_OK;
}

/* ------------------------------------------------------------------------------------------ */

/* ~1 is /, ~0 is ~: in place, `token` is a copy of ours. */
static struct rv__str unescape(struct rv__str token, char *copy)
{
    size_t len = 0;
    for (size_t i = 0; i < token.len; i++) {
        char c = token.at[i];
        if (c == '~' && i + 1 < token.len)
            c = token.at[++i] == '1' ? '/' : '~';
        copy[len++] = c;
    }
    return (struct rv__str){ copy, len };
}

/* Follow the pointer from the root of a resource; *resource becomes the innermost one on the way. */
static int walk(struct rv__compiler *k, const struct rv__resource **resource,
                struct rv__str pointer, struct rv__value **ret)
{
    struct rv__value *v = (struct rv__value *)(uintptr_t)(*resource)->root;
    struct rv__str token;
    char *copy = rv__arena_alloc(k->arena, pointer.len + 1);
    *ret = NULL;
    if (copy == NULL)
        return RV_ENOMEM;
    if (!rv__json_pointer_valid(pointer))
        return RV_OK;
    while (rv__json_pointer_next(&pointer, &token)) {
        size_t i;
        const struct rv__value *found = NULL;
        if (v->type == RV__JSON_OBJECT)
            found = rv__value_get(v, unescape(token, copy));
        else if (v->type == RV__JSON_ARRAY && rv__json_pointer_index(token, &i) && i < v->count)
            found = &v->kids[i];
        if (found == NULL)
            return RV_OK;
        v = &v->kids[found - v->kids];
        if (v->sub != NULL)
            *resource = v->sub->resource;
    }
    *ret = v;
    return RV_OK;
}

static int resolve(struct rv__compiler *k, const struct rv__pending *ref)
{
    struct rv__str uri = ref->at->text, fragment = rv__uri_cut_fragment(&uri);
    struct rv__value *target = NULL;
    const struct rv__resource *resource;
    char quoted[RV__QUOTED];
    rv__quote(uri, quoted);

    if (rv__uri_resolve(ref->from->resource->uri, uri, k->arena, &uri) < 0)
        return RV_ENOMEM;
    resource = find_resource(k, uri);
    if (resource == NULL) {
        rv__complain(k, ref->at,
                     "refers to '%s', which is not in this document; remote references are not "
                     "supported",
                     quoted);
        return RV_OK;
    }
    if (!rv__str_none(fragment) && !rv__uri_decode(fragment, k->arena, &fragment))
        fragment = rv__str("?"); /* never found; a missing memory is reported below */

    if (fragment.len == 0 || *fragment.at == '/') {
        if (walk(k, &resource, fragment.len ? fragment : rv__str(""), &target) < 0)
            return RV_ENOMEM;
    } else {
        struct rv__anchor *anchor = find_anchor(k, resource, fragment);
        target = anchor ? anchor->at : NULL;
    }
    if (target == NULL) {
        rv__complain(k, ref->at, "refers to '%s', which is not there",
                     rv__quote(ref->at->text, quoted));
        return RV_OK;
    }
    return rv__compile_sub(k, target, resource, ref->field);
}

int rv__resolve_references(struct rv__compiler *k)
{
    while (k->pending != NULL) {
        struct rv__pending *first = NULL; /* in the order of the text, for messages */
        while (k->pending != NULL) {
            struct rv__pending *next = k->pending->next;
            k->pending->next = first;
            first = k->pending;
            k->pending = next;
        }
        for (; first != NULL; first = first->next)
            if (resolve(k, first) < 0)
                return RV_ENOMEM;
    }
    return RV_OK;
}

/* ------------------------------------------------------------------------------------------
 * Circles: a subschema that refers back to itself for the same value would never end. `chain` is 0 before
 * a subschema is visited, OPEN during the visit, then its height. */

enum { OPEN = UINT32_MAX };

static uint32_t height(struct rv__compiler *k, struct rv__sub *sub, uint32_t depth);

/* The greater of `most` and the height below; 0 if that was refused. */
static uint32_t above(struct rv__compiler *k, const struct rv__sub *sub, uint32_t depth,
                      uint32_t most)
{
    if (sub == NULL || most == 0)
        return most;
    uint32_t h = height(k, (struct rv__sub *)(uintptr_t)sub, depth);
    return h == 0 ? 0 : h > most ? h : most;
}

static uint32_t above_all(struct rv__compiler *k, const struct rv__subs *subs, uint32_t depth,
                          uint32_t most)
{
    for (uint32_t i = 0; i < subs->count; i++)
        most = above(k, subs->items[i], depth, most);
    return most;
}

static uint32_t height(struct rv__compiler *k, struct rv__sub *sub, uint32_t depth)
{
    uint32_t most = 1;
    if (sub->chain == OPEN) {
        rv__complain(k, sub->at, "refers to itself without end");
        return 0;
    }
    if (depth + sub->chain > RV__SCHEMA_MAX_CHAIN) {
        rv__complain(k, sub->at, "more than %d schemas within each other for one value",
                     RV__SCHEMA_MAX_CHAIN);
        return 0;
    }
    if (sub->chain != 0)
        return sub->chain;

    sub->chain = OPEN;
    if (sub->logic != NULL) {
        const struct rv__logic *l = sub->logic;
        const struct rv__sub *const alone[] = { l->ref, l->not, l->condition, l->then,
                                                l->otherwise };
        for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
            most = above(k, alone[i], depth + 1, most);
        most = above_all(k, &l->all, depth + 1, most);
        most = above_all(k, &l->any, depth + 1, most);
        most = above_all(k, &l->one, depth + 1, most);
    }
    if (sub->objects != NULL)
        for (uint32_t i = 0; i < sub->objects->dependent.count; i++)
            most = above(k, sub->objects->dependent.items[i].sub, depth + 1, most);
    sub->chain = most == 0 ? 0 : most + 1;
    return sub->chain;
}

/* Stops at the first circle: further ones would repeat the message. */
void rv__refuse_circles(struct rv__compiler *k)
{
    for (struct rv__sub *sub = k->subs; sub != NULL; sub = sub->next)
        if (height(k, sub, 0) == 0)
            return;
}
