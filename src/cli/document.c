/* document.c: documents of the API into structs.
 *
 * A result is one allocation, like the engine's, so that the same functions free it: the structs, and then the texts.
 * Those are never longer than in the document: a text needs a NUL more, and a member has at least a key and a colon. */
#include "cli/document.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "cli/text.h"

enum { RECORDS_MOST = 100000 }; /* of one document: a record takes more memory than its text */

/* Where the records and texts of a result go. */
struct room {
    char *records, *texts;
    struct rv__arena scratch;
    bool no_memory;
};

static const struct rv__member *find_member(const struct rv__document *of, struct rv__str key)
{
    for (int i = 0; i < RV__DOCUMENT_PARTS && of->parts[i] != NULL; i++)
        for (const struct rv__member *m = of->parts[i]; m->key != NULL; m++)
            if (rv__json_string_is(key, rv__str(m->key)))
                return m;
    return NULL;
}

/* Add up the records of the lists in this document, and their bytes. */
static void measure(const struct rv__document *of, struct rv__str json, size_t *count,
                    size_t *bytes)
{
    struct rv__json_iter members, items;
    struct rv__str key, value, item;
    if (rv__json_type(json) != RV__JSON_OBJECT)
        return;
    rv__json_iter_init(&members, json);
    while (rv__json_next(&members, &key, &value)) {
        const struct rv__member *m = find_member(of, key);
        if (m == NULL || m->kind != RV__MEMBER_LIST || rv__json_type(value) != RV__JSON_ARRAY)
            continue;
        rv__json_iter_init(&items, value);
        while (rv__json_next(&items, NULL, &item)) {
            ++*count;
            *bytes += RV__DOCUMENT_AT(m->of->size);
            measure(m->of, item, count, bytes);
        }
    }
}

static const char *put_text(struct room *room, struct rv__str text)
{
    char *at = room->texts;
    memcpy(at, text.at, text.len);
    at[text.len] = '\0';
    room->texts += text.len + 1;
    return at;
}

static const char *put_string(struct room *room, struct rv__str value)
{
    struct rv__str text;
    int rc = rv__json_string(value, &room->scratch, &text);
    room->no_memory |= rc == RV_ENOMEM;
    return rc == RV_OK ? put_text(room, text) : "";
}

static const char *put_name(struct room *room, struct rv__str value)
{
    char *from = room->texts;
    const char *name = put_string(room, value);
    if (room->texts > from)
        rv__text_mask(from);
    return name;
}

/* It is printed and used in paths unchanged. */
static void put_id(struct room *room, struct rv__str value, char *at, size_t size)
{
    if (value.len > 2 && value.at[0] == '"' &&
        rv__id_valid((struct rv__str){ value.at + 1, value.len - 2 }))
        (void)snprintf(at, size, "%s", put_string(room, value)); /* it fits, or is cut */
}

static const char *level_name(int level)
{
    return rv__level_names[level];
}

/* The number of a word; an unknown word gives the first one. */
static int find_word(struct rv__str value, const char *(*name_of)(int), int first)
{
    for (int i = first; name_of(i) != NULL; i++)
        if (rv__json_string_is(value, rv__str(name_of(i))))
            return i;
    return first;
}

static void fill(struct room *room, const struct rv__document *of, struct rv__str json,
                 char *record);

static void fill_list(struct room *room, const struct rv__member *member, struct rv__str value,
                      char *record)
{
    struct rv__json_iter it;
    struct rv__str item;
    size_t size = member->of->size, count = 0;
    if (rv__json_type(value) != RV__JSON_ARRAY)
        return;
    count = rv__json_count(value);
    char *items = room->records;
    room->records += count * RV__DOCUMENT_AT(size);
    rv__json_iter_init(&it, value);
    for (size_t i = 0; rv__json_next(&it, NULL, &item); i++)
        fill(room, member->of, item, items + i * size);
    *(const void **)(void *)(record + member->at) = items;
    *(size_t *)(void *)(record + member->count_at) = count;
}

/* Store a member's value in its field, if the type is right. */
static void fill_field(struct room *room, const struct rv__member *member, struct rv__str value,
                       char *record)
{
    int64_t n = 0;
    void *at = record + member->at;
    (void)rv__json_int(value, &n); /* 0 if it is not a number */
    switch (member->kind) {
    case RV__MEMBER_UNREAD: break;
    case RV__MEMBER_TEXT: *(const char **)at = put_string(room, value); break;
    case RV__MEMBER_NAME: *(const char **)at = put_name(room, value); break;
    case RV__MEMBER_JSON: *(const char **)at = put_text(room, value); break;
    case RV__MEMBER_INT: *(int *)at = n > 0 && n <= INT_MAX ? (int)n : 0; break;
    case RV__MEMBER_INT64: *(int64_t *)at = n > 0 ? n : 0; break; /* all are times or counts */
    case RV__MEMBER_SIZE: *(size_t *)at = n > 0 ? (size_t)n : 0; break;
    case RV__MEMBER_UINT64: *(uint64_t *)at = n > 0 ? (uint64_t)n : 0; break;
    case RV__MEMBER_BOOL: *(bool *)at = rv__str_is(value, "true"); break;
    case RV__MEMBER_RUN_ID: put_id(room, value, at, RV_RUN_ID_SIZE); break;
    case RV__MEMBER_MODULE: put_id(room, value, at, RV_MODULE_SIZE); break;
    case RV__MEMBER_STATUS: *(int *)at = find_word(value, rv_status_name, RV_RUNNING); break;
    case RV__MEMBER_LEVEL: *(int *)at = find_word(value, level_name, RV_DEBUG); break;
    case RV__MEMBER_STRUCT: fill(room, member->of, value, at); break;
    case RV__MEMBER_LIST: fill_list(room, member, value, record); break;
    }
}

/* What the fields are without their members. */
static void fill_absent(const struct rv__member *members, char *record)
{
    for (const struct rv__member *m = members; m != NULL && m->key != NULL; m++)
        if (m->kind == RV__MEMBER_TEXT || m->kind == RV__MEMBER_NAME || m->kind == RV__MEMBER_JSON)
            *(const char **)(void *)(record + m->at) = "";
        else if (m->kind == RV__MEMBER_STATUS)
            *(int *)(void *)(record + m->at) = RV_RUNNING;
}

static void fill(struct room *room, const struct rv__document *of, struct rv__str json,
                 char *record)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    for (int i = 0; i < RV__DOCUMENT_PARTS; i++)
        fill_absent(of->parts[i], record);
    fill_absent(of->lacks, record);
    if (rv__json_type(json) != RV__JSON_OBJECT)
        return;
    rv__json_iter_init(&it, json);
    while (rv__json_next(&it, &key, &value)) {
        const struct rv__member *m = find_member(of, key);
        if (m != NULL)
            fill_field(room, m, value, record);
    }
}

int rv__document_read(const struct rv__document *of, struct rv__str json, size_t head, void **ret,
                      rv_error *err)
{
    struct room room = { .no_memory = false };
    size_t count = 0, bytes = RV__DOCUMENT_AT(head) + RV__DOCUMENT_AT(of->size);
    measure(of, json, &count, &bytes);
    if (count > RECORDS_MOST)
        return rv__fail(err, RV_EPARSE, "the answer is not a document of Rival: it has %zu records",
                        count);
    char *mem = rv__zalloc(1, bytes + json.len + 1);
    if (mem == NULL)
        return rv__nomem(err);
    room.records = mem + RV__DOCUMENT_AT(head) + RV__DOCUMENT_AT(of->size);
    room.texts = mem + bytes;
    rv__arena_init(&room.scratch, SIZE_MAX); /* bounded by the document */
    fill(&room, of, json, mem + RV__DOCUMENT_AT(head));
    rv__arena_done(&room.scratch);
    if (room.no_memory) {
        rv__free(mem);
        return rv__nomem(err);
    }
    *ret = mem;
    return RV_OK;
}
