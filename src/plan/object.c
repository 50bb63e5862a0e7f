/* object.c: reads a JSON text in one pass.
 *
 * No byte is read twice. rv__json_next() would read a value again for each level around it: a large value
 * that is nested deeply a hundred times. */
#include "plan/object.h"

#include "base/json.h"

static const struct {
    const char *name;
    unsigned where;
} keys[KEYS] = {
#define X(id, name, where) [KEY_##id] = { name, where },
    KEY_MAP(X)
#undef X
};

enum { MAX_UNKNOWN = 20 }; /* unknown keys of one object that are reported */

struct reader {
    struct rv__arena *arena;
    const char *at;
    const char *end;
    uint32_t objects;
};

const char *rv__key_name(enum rv__key key)
{
    return keys[key].name;
}

bool rv__key_fits(enum rv__key key, unsigned sort)
{
    return key < KEYS && (keys[key].where & sort) != 0;
}

const struct rv__member *rv__object_get(const struct rv__object *object, enum rv__key key)
{
    if (!(object->has & UINT64_C(1) << key))
        return NULL;
    const struct rv__member *member = object->members;
    while (member->key != key)
        member = member->next;
    return member;
}

static int read_object(struct reader *r, struct rv__object **ret);

static enum rv__key find_key(struct rv__str name)
{
    unsigned key = 0;
    while (key < KEYS && !rv__str_is(name, keys[key].name))
        key++;
    return (enum rv__key)key;
}

/* The member to fill for a key; NULL: the value is skipped, or there is no memory. Of equal keys the last one
 * counts, so an earlier member is used again. */
static int find_member(struct reader *r, struct rv__object *object, struct rv__str name,
                       struct rv__member **ret)
{
    enum rv__key key = find_key(name);
    *ret = NULL;
    if (key < KEYS && object->has & UINT64_C(1) << key) {
        for (*ret = object->members; (*ret)->key != key; *ret = (*ret)->next)
            ;
        (*ret)->first = NULL;
        return RV_OK;
    }
    if (key == KEYS && object->unknown++ >= MAX_UNKNOWN)
        return RV_OK;
    struct rv__member *member = rv__arena_zalloc(r->arena, 1, sizeof *member);
    if (member == NULL)
        return RV_ENOMEM;
    member->key = key;
    member->name = name;
    *(object->last != NULL ? &object->last->next : &object->members) = member;
    object->last = member;
    if (key < KEYS)
        object->has |= UINT64_C(1) << key;
    *ret = member;
    return RV_OK;
}

/* The nodes that a member holds: an array of them, or one. */
static int read_nodes(struct reader *r, struct rv__object **first)
{
    if (*r->at == '{')
        return read_object(r, first);
    if (*r->at != '[') {
        r->at = rv__json_skip(r->at, r->end);
        return RV_OK;
    }
    r->at = rv__json_skip_separators(r->at + 1);
    while (*r->at != ']') {
        int rc = read_object(r, first);
        if (rc < 0)
            return rc;
        first = &(*first)->next;
        r->at = rv__json_skip_separators(r->at);
    }
    r->at++;
    return RV_OK;
}

/* Read the value at the cursor, and move after it. A value that is no object becomes one without members. */
static int read_object(struct reader *r, struct rv__object **ret)
{
    struct rv__object *object = rv__arena_zalloc(r->arena, 1, sizeof *object);
    const char *begin = r->at;
    if (object == NULL)
        return RV_ENOMEM;
    *ret = object;
    if (++r->objects > 2 * RV__PLAN_MAX_NODES) /* children of concurrents and handlers, too */
        return RV_ETOOBIG;
    if (*r->at != '{') {
        r->at = rv__json_skip(r->at, r->end);
        object->text = (struct rv__str){ begin, (size_t)(r->at - begin) };
        return RV_OK;
    }
    r->at = rv__json_skip_separators(r->at + 1);
    while (*r->at != '}') {
        struct rv__str name, quoted = { r->at, 0 };
        struct rv__member *member;
        r->at = rv__json_skip(r->at, r->end);
        quoted.len = (size_t)(r->at - quoted.at);
        if (rv__json_string(quoted, r->arena, &name) < 0)
            return RV_ENOMEM;
        int rc = find_member(r, object, name, &member);
        if (rc < 0)
            return rc;

        r->at = rv__json_skip_separators(r->at);
        begin = r->at;
        if (member != NULL && member->key < KEYS && keys[member->key].where & HOLDS_NODES) {
            rc = read_nodes(r, &member->first);
            if (rc < 0)
                return rc;
        } else {
            r->at = rv__json_skip(r->at, r->end);
        }
        if (member != NULL)
            member->value = (struct rv__str){ begin, (size_t)(r->at - begin) };
        r->at = rv__json_skip_separators(r->at);
    }
    r->at++;
    return RV_OK;
}

int rv__object_read(struct rv__str text, struct rv__arena *arena, struct rv__object **ret)
{
    struct reader r = { arena, text.at, text.at + text.len, 0 };
    return read_object(&r, ret);
}
