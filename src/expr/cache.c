/* cache.c: a text is parsed once, however many expressions look at it. */
#include "expr/cache.h"

#include "base/alloc.h"
#include "base/error.h"
#include "expr/value.h"

enum {
    KEEP_BYTES = 256, /* a shorter text is parsed anew: that costs less than keeping it */
    KEPT_BYTES = 128, /* of an entry itself */
};
#define SCRATCH_BYTES ((size_t)128 << 20) /* above any string in a text of RV__JSON_MAX_BYTES */

void rv__cache_init(struct rv__cache *cache, size_t max_bytes)
{
    memset(cache, 0, sizeof *cache);
    cache->max_bytes = max_bytes;
    rv__arena_init(&cache->scratch, SCRATCH_BYTES);
}

static void drop(struct rv__cache *cache, struct rv__kept *kept)
{
    *kept->link = kept->next;
    if (kept->next != NULL)
        kept->next->link = kept->link;
    *(kept->newer != NULL ? &kept->newer->older : &cache->newest) = kept->older;
    *(kept->older != NULL ? &kept->older->newer : &cache->oldest) = kept->newer;
    cache->bytes -= kept->bytes;
    jv_free(kept->value);
    rv__blob_unref(kept->holder);
    rv__blob_unref(kept->blob);
    rv__free(kept);
}

void rv__cache_done(struct rv__cache *cache)
{
    while (cache->oldest != NULL)
        drop(cache, cache->oldest);
    rv__arena_done(&cache->scratch);
}

static void use(struct rv__cache *cache, struct rv__kept *kept)
{
    if (cache->newest == kept)
        return;
    if (kept->newer != NULL) { /* it is in the list, and not first */
        kept->newer->older = kept->older;
        *(kept->older != NULL ? &kept->older->newer : &cache->oldest) = kept->newer;
    }
    kept->newer = NULL;
    kept->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = kept;
    cache->newest = kept;
}

static void charge(struct rv__cache *cache, struct rv__kept *kept, size_t bytes)
{
    kept->bytes += bytes;
    cache->bytes += bytes;
    while (cache->bytes > cache->max_bytes && cache->oldest != kept)
        drop(cache, cache->oldest);
}

/* Its identity; false: it has none, or is not worth it. */
static bool identify(const struct rv__scope_text *text, struct rv__kept *ret)
{
    *ret = (struct rv__kept){ .value = jv_invalid() };
    if (text->blob != NULL) { /* of a text that is not at hand: the whole of it */
        ret->key[0] = (uintptr_t)text->blob;
        ret->key[1] = (uintptr_t)text->json.at;
        return rv__str_none(text->json) || text->json.len >= KEEP_BYTES;
    }
    ret->keyed = true;
    ret->key[0] = (uintptr_t)text->key[0];
    ret->key[1] = (uintptr_t)text->key[1];
    return (text->key[0] != 0 || text->key[1] != 0) &&
           (rv__str_none(text->json) || text->json.len >= KEEP_BYTES);
}

static struct rv__kept **slot_of(struct rv__cache *cache, const struct rv__kept *who)
{
    uint64_t hash = (who->key[0] ^ (who->key[1] * UINT64_C(0x9E3779B97F4A7C15))) *
                    UINT64_C(0xD6E8FEB86659FD93);
    return &cache->slots[(hash >> 40) % RV__KEPT_SLOTS];
}

/* The entry of this text, made if need be. *ret NULL: it is not to be kept. */
static int find(struct rv__cache *cache, const struct rv__scope_text *text, struct rv__kept **ret)
{
    struct rv__kept who, *kept;
    *ret = NULL;
    if (!identify(text, &who))
        return RV_OK;
    struct rv__kept **slot = slot_of(cache, &who);
    for (kept = *slot; kept != NULL; kept = kept->next)
        if (kept->key[0] == who.key[0] && kept->key[1] == who.key[1] && kept->keyed == who.keyed)
            break;
    if (kept == NULL) {
        kept = rv__alloc(sizeof *kept);
        if (kept == NULL)
            return RV_ENOMEM;
        *kept = who;
        kept->serial = ++cache->serials;
        if (!who.keyed) {
            kept->holder = rv__blob_ref(text->blob);
            kept->json = text->json;
        }
        kept->next = *slot;
        kept->link = slot;
        if (kept->next != NULL)
            kept->next->link = &kept->next;
        *slot = kept;
        use(cache, kept);
        charge(cache, kept, KEPT_BYTES + kept->json.len);
    }
    use(cache, kept);
    *ret = kept;
    return RV_OK;
}

int rv__cache_text(struct rv__cache *cache, struct rv__scope *scope,
                   const struct rv__scope_text *text, struct rv__str *ret, struct rv__kept **kept,
                   struct rv__blob **own, rv_error *err)
{
    *own = NULL;
    if (find(cache, text, kept) < 0)
        return rv__nomem(err);
    if (*kept != NULL && !rv__str_none((*kept)->json)) {
        *ret = (*kept)->json;
        return RV_OK;
    }
    if (!rv__str_none(text->json)) {
        *ret = text->json;
        return RV_OK;
    }
    if (scope->text == NULL)
        return rv__fail(err, RV_EINVAL, "the scope has no text for what it found");
    int rc = scope->text(scope, text, own, err);
    if (rc < 0)
        return rc;
    *ret = rv__blob_str(*own);
    if (*kept != NULL && (*own)->len <= cache->max_bytes) {
        (*kept)->blob = rv__blob_ref(*own);
        (*kept)->json = *ret;
        charge(cache, *kept, ret->len);
    }
    return RV_OK;
}

int rv__cache_value(struct rv__cache *cache, struct rv__scope *scope,
                    const struct rv__scope_text *text, jv *ret, rv_error *err)
{
    struct rv__kept *kept;
    struct rv__blob *own = NULL;
    struct rv__str json = { NULL, 0 };
    size_t bytes = 0;
    if (find(cache, text, &kept) < 0)
        return rv__nomem(err);
    if (kept != NULL && jv_is_valid(kept->value)) {
        *ret = jv_copy(kept->value);
        return RV_OK;
    }
    int rc = rv__cache_text(cache, scope, text, &json, &kept, &own, err);
    if (rc < 0)
        return rc;
    rc = rv__value_parse(json, &cache->scratch, ret, &bytes);
    if (rc < 0)
        rv__nomem(err);
    if (rc == RV_OK && kept != NULL) {
        kept->value = jv_copy(*ret);
        charge(cache, kept, bytes);
    }
    rv__blob_unref(own);
    return rc;
}
