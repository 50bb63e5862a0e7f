/* compile.c: turns the text of a schema into a graph of subschemas: first each place, then references. */
#include "schema/sub.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "base/error.h"

void rv__complain(struct rv__compiler *k, const struct rv__value *at, const char *fmt, ...)
{
    struct rv__buf path;
    va_list args;
    rv__buf_init(&path, 2 * (size_t)RV__SCHEMA_MAX_BYTES);
    char message[400];
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    rv__cut(message, sizeof message);
    if (k->bad->count < RV__VIOLATIONS_MAX)
        rv__value_pointer(&k->schema->text, at->at, &path);
    if (path.rc == RV_OK)
        rv__violations_add(k->bad, rv__buf_view(&path), "%s", message);
    else
        k->bad->rc = RV_ENOMEM;
    rv__buf_done(&path);
}

const struct rv__sub *rv__map_get(const struct rv__map *map, struct rv__str key)
{
    uint32_t low = 0, high = map->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int cmp = rv__key_cmp(map->items[middle].key, key);
        if (cmp == 0)
            return map->items[middle].sub;
        if (cmp < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Recursive; the depth of the text is limited. */
int rv__compile_sub(struct rv__compiler *k, struct rv__value *v,
                    const struct rv__resource *resource, const struct rv__sub **ret)
{
    if (v->sub != NULL) {
        *ret = v->sub;
        return RV_OK;
    }
    struct rv__sub *sub = rv__arena_zalloc(k->arena, 1, sizeof *sub);
    if (sub == NULL)
        return RV_ENOMEM;
    *sub = (struct rv__sub){ .next = k->subs, .at = v, .resource = resource };
    k->subs = v->sub = sub;
    *ret = sub;

    if (v->type == RV__JSON_OBJECT)
        return rv__compile_keywords(k, sub, v);
    if (v->type == RV__JSON_TRUE || v->type == RV__JSON_FALSE)
        sub->kind = v->type == RV__JSON_TRUE ? RV__SUB_TRUE : RV__SUB_FALSE;
    else
        rv__complain(k, v, "a schema is an object, true or false");
    return RV_OK;
}

static int compile(struct rv__compiler *k)
{
    struct rv__resource *whole = rv__arena_zalloc(k->arena, 1, sizeof *whole);
    if (whole == NULL)
        return RV_ENOMEM;
    *whole = (struct rv__resource){ .uri = rv__str(""), .root = &k->schema->text };
    k->resources = whole;
    if (rv__compile_sub(k, &k->schema->text, whole, &k->schema->root) < 0 ||
        rv__resolve_references(k) < 0)
        return RV_ENOMEM;
    if (k->bad->count == 0)
        rv__refuse_circles(k);
    return RV_OK;
}

int rv__schema_new(struct rv__str json, struct rv__violations *bad, struct rv__schema **ret,
                   rv_error *err)
{
    struct rv__schema *schema = NULL;
    struct rv__arena arena;
    struct rv__violations own;
    struct rv__str text;
    int rc;

    rv__arena_init(&arena, RV__SCHEMA_ARENA);
    rv__violations_init(&own, &arena);
    if (json.len > RV__SCHEMA_MAX_BYTES) {
        rc = rv__fail(err, RV_ETOOBIG, "a schema may have %u bytes at most, this one has %zu",
                      RV__SCHEMA_MAX_BYTES, json.len);
        goto out;
    }
    schema = rv__zalloc(1, sizeof *schema);
    if (schema == NULL) {
        rc = rv__nomem(err);
        goto out;
    }
    rv__arena_init(&schema->arena, RV__SCHEMA_ARENA);
    struct rv__compiler k = { .schema = schema, .arena = &schema->arena, .bad = bad ? bad : &own };

    rc = rv__str_copy(&schema->arena, json, &text);
    if (rc < 0) {
        rc = rv__nomem(err);
        goto out;
    }
    rc = rv__value_read(text, &schema->arena, &schema->text, NULL, err);
    if (rc < 0)
        goto out;

    rc = compile(&k) < 0 ? rv__nomem(err) : rv__violations_err(k.bad, err);
    if (rc < 0)
        goto out;

    *ret = schema;
    schema = NULL;
out:
    rv__schema_free(schema);
    rv__arena_done(&arena);
    return rc;
}

void rv__schema_free(struct rv__schema *schema)
{
    if (schema == NULL)
        return;
    for (struct rv__pattern *p = schema->patterns; p != NULL; p = p->next)
        rv__pattern_done(p);
    rv__arena_done(&schema->arena);
    rv__free(schema);
}
