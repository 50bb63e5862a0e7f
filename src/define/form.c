/* form.c: helpers for the YAML form: spellings, durations, positions. */
#include "base/json.h"
#include "define/lower.h"

struct rv__str rv__camel(struct rv__str key, struct rv__key_room *room)
{
    size_t len = 0;
    if (key.len >= sizeof room->text || key.len == 0 || memchr(key.at, '_', key.len) == NULL)
        return key;
    for (size_t i = 0; i < key.len; i++) {
        char c = key.at[i];
        bool joint = c == '_' && i > 0 && i + 1 < key.len && key.at[i + 1] >= 'a' &&
                     key.at[i + 1] <= 'z';
        if (joint)
            c = (char)(key.at[++i] - 'a' + 'A');
        room->text[len++] = c;
    }
    return (struct rv__str){ room->text, len };
}

const struct rv__tree *rv__form_get(const struct rv__tree *map, const char *camel)
{
    struct rv__key_room room;
    map = rv__tree_real(map);
    if (map->kind != TREE_MAP)
        return NULL;
    const struct rv__tree *child = map->first;
    while (child != NULL && !rv__str_is(rv__camel(child->key, &room), camel))
        child = child->next;
    return child;
}

/* ------------------------------------------------------------------------------ places --- */

static bool take_prefix(struct rv__str *path, struct rv__str prefix)
{
    if (path->len < prefix.len || memcmp(path->at, prefix.at, prefix.len) != 0)
        return false;
    if (path->len > prefix.len && path->at[prefix.len] != ':')
        return false;
    path->at += prefix.len;
    path->len -= prefix.len;
    return true;
}

static void take_colon(struct rv__str *path)
{
    if (path->len > 0 && *path->at == ':') {
        path->at++;
        path->len--;
    }
}

/* Is the path about this spot or below it? Then returns the rest of it. */
static bool take_spot(const struct rv__spot *spot, struct rv__str *path)
{
    struct rv__str rest = *path;
    if (spot->label.len > 0 && !take_prefix(&rest, spot->label))
        return false;
    if (!spot->plain) {
        if (spot->label.len > 0)
            take_colon(&rest);
        if (!rv__str_none(spot->alias)) {
            if (!take_prefix(&rest, spot->alias))
                return false;
        } else {
            /* The alias is implied; it matters only in the outermost sequence. */
            if (spot->label.len == 0 && (rest.len < spot->implied.len ||
                                         memcmp(rest.at, spot->implied.at, spot->implied.len) != 0))
                return false;
            while (rest.len > 0 && *rest.at != ':') {
                rest.at++;
                rest.len--;
            }
        }
    }
    *path = rest;
    return true;
}

/* "delay_3" is the third node that implies "delay"; nodes with an explicit alias are skipped. */
static size_t implied_number(const struct rv__spot *spot, struct rv__str path)
{
    size_t n = 0, at = spot->implied.len;
    if (at >= path.len || path.at[at] != '_')
        return 1;
    for (at++; at < path.len && path.at[at] >= '0' && path.at[at] <= '9' && n < 1000000; at++)
        n = n * 10 + (size_t)(path.at[at] - '0');
    return n;
}

static const struct rv__spot *find_child(const struct rv__spot *spot, struct rv__str *path,
                                         bool last)
{
    const struct rv__spot *found = NULL;
    struct rv__str rest = *path, rest_found = *path;
    size_t implied = 0;
    for (const struct rv__spot *child = spot->first; child != NULL; child = child->next) {
        rest = *path;
        if (!take_spot(child, &rest))
            continue;
        bool said = child->plain || !rv__str_none(child->alias) || child->label.len > 0;
        if (!said && ++implied > implied_number(child, *path))
            continue;
        found = child;
        rest_found = rest;
        if (said && !last)
            break;
    }
    *path = rest_found;
    return found;
}

const struct rv__spot *rv__spot_find(const struct rv__spot *root, struct rv__str path,
                                     const char *message, bool *beyond)
{
    /* Of two nodes with the same alias the later one is wrong. */
    bool last = strstr(message, "must be unique") != NULL || strstr(message, "duplicate") != NULL;
    const struct rv__spot *spot = root, *child;
    while (path.len > 0 && (child = find_child(spot, &path, last)) != NULL) {
        spot = child;
        take_colon(&path);
    }
    *beyond = path.len > 0;
    return spot != root ? spot : NULL;
}

static bool is_word_in(const char *message, struct rv__str word, const char **at)
{
    const char *found = message;
    while ((found = strstr(found, word.at)) != NULL) {
        bool begins = found == message || found[-1] == ' ' || found[-1] == '\'';
        if (begins && strchr(" ':,", found[word.len]) != NULL) { /* or the end */
            *at = found;
            return true;
        }
        found++;
    }
    return false;
}

uint32_t rv__spot_at(const struct rv__spot *spot, const char *message)
{
    const char *first = NULL;
    uint32_t at = spot->at;
    if (spot->body == NULL || rv__tree_real(spot->body)->kind != TREE_MAP)
        return at;
    const struct rv__tree *child = rv__tree_real(spot->body)->first;
    for (; child != NULL; child = child->next) {
        struct rv__key_room room;
        const char *where;
        struct rv__str key = rv__camel(child->key, &room);
        if (key.len >= sizeof room.text)
            continue;
        memmove(room.text, key.at, key.len);
        room.text[key.len] = '\0';
        if (is_word_in(message, (struct rv__str){ room.text, key.len }, &where) &&
            (first == NULL || where < first)) {
            first = where;
            at = child->key_at;
        }
    }
    const struct rv__tree *depends_on = rv__form_get(spot->body, "dependsOn"); /* of a state */
    const struct rv__tree *one = depends_on != NULL && strstr(message, "depend") != NULL
                                     ? rv__dependency_at(depends_on, message)
                                     : NULL;
    return one != NULL ? one->key_at : at;
}

const struct rv__tree *rv__tree_at(const struct rv__tree *tree, struct rv__str pointer)
{
    struct rv__str token;
    while (rv__json_pointer_next(&pointer, &token)) {
        const struct rv__tree *real = rv__tree_real(tree), *child = real->first;
        struct rv__key_room room;
        size_t index = 0;
        if (real->kind == TREE_LIST && rv__json_pointer_index(token, &index)) {
            while (child != NULL && index-- > 0)
                child = child->next;
        } else if (real->kind == TREE_MAP) {
            struct rv__buf escaped;
            rv__buf_init(&escaped, RV__DEFINE_MAX_BYTES);
            for (; child != NULL; child = child->next) {
                rv__buf_reset(&escaped);
                rv__buf_json_pointer(&escaped, child->key);
                struct rv__str key = rv__buf_view(&escaped);
                bool is = key.len > 0 &&
                          rv__str_eq((struct rv__str){ key.at + 1, key.len - 1 }, token);
                if (is || rv__str_eq(rv__camel(child->key, &room), token))
                    break;
            }
            rv__buf_done(&escaped);
        } else {
            child = NULL;
        }
        if (child == NULL)
            break;
        tree = child;
    }
    return tree;
}

uint32_t rv__tree_character(const struct rv__tree *string, const struct rv__source *source,
                            size_t character, struct rv__str near)
{
    const struct rv__tree *real = rv__tree_real(string);
    struct rv__str raw = { source->text.at + real->at, real->end - real->at };
    size_t at = 0;
    if (real->kind != TREE_STRING || real->end > source->text.len)
        return real->at;
    if (raw.len >= real->text.len && memcmp(raw.at, real->text.at, real->text.len) == 0) {
        for (; character > 1 && at < real->text.len; character--)
            do
                at++;
            while (at < real->text.len && ((unsigned char)raw.at[at] & 0xc0) == 0x80);
        return real->at + (uint32_t)at;
    }
    const char *found = near.len > 0 ? memmem(raw.at, raw.len, near.at, near.len) : NULL;
    return found != NULL ? (uint32_t)(found - source->text.at) : real->at;
}
