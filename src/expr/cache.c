/* cache.c: keeps texts of a scope, so that each is written once for all expressions that use it. */
#include "expr/cache.h"

#include "base/alloc.h"
#include "base/error.h"

enum {
    KEEP_BYTES = 256, /* shorter texts are not worth an entry */
    KEPT_BYTES = 128, /* memory of an entry itself */
};

int rv__expr_texts_new(size_t max_bytes, struct rv__expr_texts **ret, rv_error *err)
{
    struct rv__expr_texts *texts = rv__zalloc(1, sizeof *texts);
    if (texts == NULL)
        return rv__nomem(err);
    texts->max_bytes = max_bytes > 0 ? max_bytes : RV__EXPR_CACHE_BYTES;
    *ret = texts;
    return RV_OK;
}

static void drop(struct rv__expr_texts *texts, struct rv__kept *kept)
{
    *kept->link = kept->next;
    if (kept->next != NULL)
        kept->next->link = kept->link;
    *(kept->newer != NULL ? &kept->newer->older : &texts->newest) = kept->older;
    *(kept->older != NULL ? &kept->older->newer : &texts->oldest) = kept->newer;
    texts->bytes -= kept->bytes;
    rv__blob_unref(kept->holder);
    rv__blob_unref(kept->blob);
    rv__free(kept);
}

void rv__expr_texts_free(struct rv__expr_texts *texts)
{
    if (texts == NULL)
        return;
    while (texts->oldest != NULL)
        drop(texts, texts->oldest);
    rv__free(texts);
}

static void use(struct rv__expr_texts *texts, struct rv__kept *kept)
{
    if (texts->newest == kept)
        return;
    if (kept->newer != NULL) { /* it is in the list, and not first */
        kept->newer->older = kept->older;
        *(kept->older != NULL ? &kept->older->newer : &texts->oldest) = kept->newer;
    }
    kept->newer = NULL;
    kept->older = texts->newest;
    *(texts->newest != NULL ? &texts->newest->newer : &texts->oldest) = kept;
    texts->newest = kept;
}

static void charge(struct rv__expr_texts *texts, struct rv__kept *kept, size_t bytes)
{
    kept->bytes += bytes;
    texts->bytes += bytes;
    while (texts->bytes > texts->max_bytes && texts->oldest != kept)
        drop(texts, texts->oldest);
}

/* Fill in the key of a text. False: it has no key, or is too short to be kept. */
static bool identify(const struct rv__scope_text *text, struct rv__kept *ret)
{
    *ret = (struct rv__kept){ .next = NULL };
    if (text->blob != NULL) { /* a text that is not loaded: the whole blob */
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

bool rv__text_lasts(const struct rv__scope_text *text)
{
    struct rv__kept who;
    return identify(text, &who);
}

static struct rv__kept **slot_of(struct rv__expr_texts *texts, const struct rv__kept *who)
{
    uint64_t hash = (who->key[0] ^ (who->key[1] * UINT64_C(0x9E3779B97F4A7C15))) *
                    UINT64_C(0xD6E8FEB86659FD93);
    return &texts->slots[(hash >> 40) % RV__KEPT_SLOTS];
}

/* Find or make the entry of this text. *ret NULL: it is not kept. */
static int find(struct rv__expr_texts *texts, const struct rv__scope_text *text,
                struct rv__kept **ret)
{
    struct rv__kept who, *kept;
    *ret = NULL;
    if (!identify(text, &who))
        return RV_OK;
    struct rv__kept **slot = slot_of(texts, &who);
    for (kept = *slot; kept != NULL; kept = kept->next)
        if (kept->key[0] == who.key[0] && kept->key[1] == who.key[1] && kept->keyed == who.keyed)
            break;
    if (kept == NULL) {
        kept = rv__alloc(sizeof *kept);
        if (kept == NULL)
            return RV_ENOMEM;
        *kept = who;
        kept->serial = ++texts->serials;
        if (!who.keyed) {
            kept->holder = rv__blob_ref(text->blob);
            kept->json = text->json;
        }
        kept->next = *slot;
        kept->link = slot;
        if (kept->next != NULL)
            kept->next->link = &kept->next;
        *slot = kept;
        use(texts, kept);
        charge(texts, kept, KEPT_BYTES + kept->json.len);
    }
    use(texts, kept);
    *ret = kept;
    return RV_OK;
}

int rv__text_of(struct rv__expr_texts *texts, struct rv__scope *scope,
                const struct rv__scope_text *text, struct rv__str *ret, struct rv__kept **kept,
                struct rv__blob **own, rv_error *err)
{
    *own = NULL;
    if (find(texts, text, kept) < 0)
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
    assert(*own != NULL); /* the caller said that it exists */
    *ret = rv__blob_str(*own);
    if (*kept != NULL && (*own)->len <= texts->max_bytes) {
        (*kept)->blob = rv__blob_ref(*own);
        (*kept)->json = *ret;
        charge(texts, *kept, ret->len);
    }
    return RV_OK;
}
