/* alias.c: rules for names, and a hash table of the names in use.
 *
 * The hash starts with a seed that an attacker does not know (an address in our memory) and is mixed at its end, so
 * collisions cannot be prepared. Nothing visible depends on it. */
#include "plan/alias.h"

#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

const char *rv__alias_fault(struct rv__str alias)
{
    if (alias.len == 0)
        return "it is empty";
    if (alias.len > RV__PLAN_MAX_NAME)
        return "it is longer than 200 bytes";
    if (!is_letter(alias.at[0]))
        return "it must begin with a letter or '_'";
    for (size_t i = 1; i < alias.len; i++) {
        char c = alias.at[i];
        if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '.' && c != '-')
            return "it may contain only letters, digits, '_', '.' and '-'";
        if (c == '_' && alias.at[i - 1] == '_')
            return "it may not contain '__'";
    }
    return NULL;
}

const char *rv__function_fault(struct rv__str name)
{
    if (name.len == 0)
        return "it is empty";
    if (name.len > RV__PLAN_MAX_NAME)
        return "it is longer than 200 bytes";
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.at[i] < ' ' || name.at[i] == 0x7F)
            return "it contains a control character";
    if (!rv__str_utf8(name))
        return "it is not UTF-8";
    return NULL;
}
_Static_assert(RV__PLAN_MAX_NAME == 200, "the sentences above say so");

void rv__aliases_init(struct rv__aliases *aliases)
{
    *aliases = (struct rv__aliases){ .seed = (uintptr_t)aliases };
}

void rv__aliases_done(struct rv__aliases *aliases)
{
    rv__free(aliases->slots);
    rv__aliases_init(aliases);
}

int rv__aliases_begin(struct rv__aliases *aliases, uint32_t count)
{
    size_t want = 8;
    while (want <= (size_t)count * 2)
        want *= 2;
    if (want > aliases->cap) {
        struct rv__alias_slot *slots = rv__realloc(aliases->slots, want * sizeof *slots);
        if (slots == NULL)
            return RV_ENOMEM;
        aliases->slots = slots;
        aliases->cap = want;
        aliases->seed ^= (uintptr_t)slots << 16;
    }
    aliases->mask = want - 1; /* a short sequence after a long one: clear only the part it uses */
    memset(aliases->slots, 0, want * sizeof *aliases->slots);
    return RV_OK;
}

/* The slot of the alias, or the free one for it. */
static struct rv__alias_slot *find(struct rv__aliases *aliases, struct rv__str alias)
{
    uint64_t hash = rv__str_hash(RV__HASH_START ^ aliases->seed, alias);
    hash ^= hash >> 33;
    hash *= UINT64_C(0xff51afd7ed558ccd); /* as in MurmurHash3 */
    hash ^= hash >> 33;
    for (size_t i = (size_t)hash;; i++) {
        struct rv__alias_slot *slot = &aliases->slots[i & aliases->mask];
        if (rv__str_none(slot->alias) || rv__str_eq(slot->alias, alias))
            return slot;
    }
}

bool rv__aliases_take(struct rv__aliases *aliases, struct rv__str alias, uint32_t owner,
                      uint32_t *taken_by)
{
    struct rv__alias_slot *slot = find(aliases, alias);
    if (!rv__str_none(slot->alias)) {
        *taken_by = slot->owner;
        return false;
    }
    *slot = (struct rv__alias_slot){ .alias = alias, .owner = owner, .next = 2 };
    return true;
}

int rv__aliases_imply(struct rv__aliases *aliases, struct rv__str base, uint32_t owner,
                      struct rv__arena *arena, struct rv__str *ret)
{
    uint32_t taken_by;
    if (rv__aliases_take(aliases, base, owner, &taken_by)) {
        *ret = base;
        return RV_OK;
    }

    struct rv__alias_slot *slot = find(aliases, base);
    char text[RV__PLAN_MAX_NAME + 1], suffix[16];
    struct rv__str implied = { text, 0 };
    do {
        size_t digits = (size_t)snprintf(suffix, sizeof suffix, "_%u", (unsigned)slot->next++);
        size_t len = base.len;
        if (len > RV__PLAN_MAX_NAME - digits)
            len = RV__PLAN_MAX_NAME - digits;
        assert(len > 0);
        memcpy(text, base.at, len);
        bool joined = text[len - 1] == '_'; /* "a_" and "_2" make "a_2": '__' is not allowed */
        memcpy(text + len, suffix + joined, digits - joined);
        implied.len = len + digits - joined;
    } while (!rv__str_none(find(aliases, implied)->alias));

    if (rv__str_copy(arena, implied, &implied) < 0)
        return RV_ENOMEM;
    (void)rv__aliases_take(aliases, implied, owner, &taken_by);
    *ret = implied;
    return RV_OK;
}
