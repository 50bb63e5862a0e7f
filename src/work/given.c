/* given.c: what an attempt was given (given.h). */
#include "work/given.h"

#include <string.h>

#include <rival/rival.h>

#include "base/blob.h"
#include "base/json.h"
#include "base/mask.h"
#include "work/context.h"
#include "work/secrets.h"

enum {
    AROUND = 5,     /* bytes around a part: quotes, a colon, braces */
    LEAST_ROOM = 64 /* with less room than this, a part is left out */
};

static const struct rv__str MORE = RV__STR("…");

static size_t character_bytes(char lead)
{
    unsigned char c = (unsigned char)lead;
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* The length of the character or escape at `at` in a JSON string. */
static size_t unit_bytes(const char *at, bool escaped)
{
    if (escaped && *at == '\\')
        return at[1] == 'u' ? 6 : 2;
    return character_bytes(*at);
}

/* Write the beginning of a value and its length, as a string of about `room` bytes. Escapes in a string are kept. */
static void put_cut(struct rv__buf *out, struct rv__str json, size_t room)
{
    bool escaped = rv__json_type(json) == RV__JSON_STRING;
    struct rv__str text = json;
    size_t from = out->len;
    if (escaped)
        text = (struct rv__str){ json.at + 1, json.len - 2 };
    rv__buf_char(out, '"');
    for (size_t i = 0; i < text.len;) {
        size_t unit = unit_bytes(text.at + i, escaped);
        bool quoted = !escaped && (text.at[i] == '"' || text.at[i] == '\\');
        if (i + unit > text.len || out->len - from + unit + quoted > room)
            break;
        if (quoted)
            rv__buf_char(out, '\\');
        if ((unsigned char)text.at[i] < 0x20) /* white space between the parts of a value */
            rv__buf_char(out, ' ');
        else
            rv__buf_add(out, text.at + i, unit);
        i += unit;
    }
    rv__buf_str(out, MORE);
    rv__buf_fmt(out, " (%zu bytes)\"", json.len);
}

static bool is_plain(struct rv__str name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.at[i] < 0x20 || name.at[i] == '"' || name.at[i] == '\\')
            return false;
    return true;
}

/* {"name":json}, in the attempt's arena. False: no memory, or a name that needs escapes. */
static bool put_together(struct rv_ctx *ctx, struct rv__given *part, struct rv__str name,
                         struct rv__str json)
{
    char *text = is_plain(name) ? rv__arena_alloc(&ctx->arena, name.len + json.len + AROUND) : NULL;
    if (text == NULL)
        return false;
    char *at = text;
    *at++ = '{';
    *at++ = '"';
    part->name = (struct rv__str){ at, name.len };
    memcpy(at, name.at, name.len);
    at += name.len;
    *at++ = '"';
    *at++ = ':';
    memcpy(at, json.at, json.len);
    at += json.len;
    *at++ = '}';
    part->json = (struct rv__str){ text, (size_t)(at - text) };
    return true;
}

/* Mask secrets, and cut it to the room that is left. False: no memory. */
static bool make(struct rv_ctx *ctx, struct rv__given *part, struct rv__str name,
                 struct rv__str json, size_t room)
{
    struct rv__mask *mask = rv__secrets_mask(ctx->secrets);
    struct rv__buf masked, cut;
    if (mask == NULL && json.len <= room)
        return put_together(ctx, part, name, json);
    rv__buf_init(&masked, SIZE_MAX / 2);
    rv__buf_init(&cut, SIZE_MAX / 2);
    if (mask != NULL && rv__mask_json(mask, json, &masked))
        json = rv__buf_view(&masked);
    if (json.len > room) {
        put_cut(&cut, json, room > LEAST_ROOM ? room - LEAST_ROOM / 2 : room);
        json = rv__buf_view(&cut);
    }
    bool good = masked.rc == RV_OK && cut.rc == RV_OK && put_together(ctx, part, name, json);
    rv__buf_done(&masked);
    rv__buf_done(&cut);
    return good;
}

static bool is_known(const struct rv_ctx *ctx, struct rv__str name)
{
    for (const struct rv__given *part = ctx->given_last; part != NULL; part = part->before)
        if (rv__str_eq(part->name, name))
            return true;
    return false;
}

static void add(struct rv_ctx *ctx, struct rv__str name, struct rv__str json, size_t most)
{
    size_t used = ctx->given_bytes + name.len + AROUND;
    if (!ctx->records || rv__str_none(json) || name.len > RV__GIVEN_NAME_BYTES ||
        ctx->given_count == RV__GIVEN_PARTS || used + LEAST_ROOM > RV_GIVEN_BYTES ||
        is_known(ctx, name))
        return;
    size_t room = RV_GIVEN_BYTES - used;
    struct rv__given *part = rv__arena_zalloc(&ctx->arena, 1, sizeof *part);
    if (part == NULL || !make(ctx, part, name, json, room < most ? room : most))
        return;
    ctx->given_bytes += part->json.len;
    ctx->given_count++;
    part->before = ctx->given_last;
    ctx->given_last = part;
    part->next = atomic_load_explicit(&ctx->given, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&ctx->given, &part->next, part,
                                                  memory_order_release, memory_order_relaxed))
        ; /* the loop has just taken those before */
}

void rv__ctx_given(struct rv_ctx *ctx, const char *name, struct rv__str json)
{
    add(ctx, rv__str(name), json, RV_GIVEN_BYTES);
}

void rv__ctx_given_shared(struct rv_ctx *ctx, struct rv__str path, struct rv__str json)
{
    add(ctx, path, json, RV__GIVEN_SHARED_BYTES);
}

void rv__ctx_given_labels(struct rv_ctx *ctx, struct rv__str json)
{
    struct rv__given *part = rv__arena_zalloc(&ctx->arena, 1, sizeof *part);
    if (part != NULL && make(ctx, part, rv__str("labels"), json, json.len))
        atomic_store_explicit(&ctx->given, part,
                              memory_order_release); /* an evaluation has no other */
}

int rv__given_blob(const struct rv__given *first, struct rv__blob **ret)
{
    struct rv__buf all;
    *ret = NULL;
    if (first == NULL)
        return RV_OK;
    if (first->next == NULL) {
        *ret = rv__blob_new(first->json);
        return *ret != NULL ? RV_OK : RV_ENOMEM;
    }
    rv__buf_init(&all, RV_GIVEN_BYTES + 1);
    for (const struct rv__given *part = first; part != NULL; part = part->next) {
        rv__buf_char(&all, part == first ? '{' : ',');
        rv__buf_add(&all, part->json.at + 1, part->json.len - 2);
    }
    rv__buf_char(&all, '}');
    if (rv__buf_err(&all, NULL) == RV_OK)
        *ret = rv__blob_new(rv__buf_view(&all));
    rv__buf_done(&all);
    return *ret != NULL ? RV_OK : RV_ENOMEM;
}
