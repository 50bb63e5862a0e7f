/* json_dom.c: conversion between JSON text and Jansson's values.
 *
 * We use Jansson's values, but neither its parser nor its writer. The parser (2.14) ignores failed
 * allocations while it reads a token: it aborts, or silently reads a shorter number. It also refuses
 * integers beyond int64_t, and its messages differ from those of rv__json_check(). The writer turns 0.1
 * into 0.10000000000000001. */
#include "base/json.h"

#include <assert.h>

#include "base/arena.h"
#include "base/error.h"

struct loader {
    struct rv__str text;
    const char *at;
    const char *end;
    struct rv__arena arena; /* the key and the string of one member, where they have escapes */
    json_t *root;
    json_t **open; /* the containers we are in, outermost first; each owned by the one before */
    size_t depth;
    rv_error *err;
};

static int refuse(const struct loader *l, const char *at, const char *why)
{
    size_t line, column;
    rv__json_where(l->text, at, &line, &column);
    return rv__fail(l->err, RV_EPARSE, "line %zu, column %zu: %s", line, column, why);
}

static int make_number(struct loader *l, struct rv__str literal, json_t **ret)
{
    int64_t integer;
    double real;
    if (rv__json_int(literal, &integer) == RV_OK) {
        *ret = json_integer(integer);
    } else if (rv__json_double(literal, &real) == RV_OK) {
        *ret = json_real(real);
    } else {
        return refuse(l, literal.at, "this number is beyond the range of a double");
    }
    return *ret != NULL ? RV_OK : rv__nomem(l->err);
}

/* The value at the cursor, which moves behind it, or behind the bracket that opens it. */
static int make_value(struct loader *l, json_t **ret)
{
    struct rv__str literal = { l->at, 1 };
    if (*l->at == '[' || *l->at == '{') {
        *ret = *l->at == '{' ? json_object() : json_array();
        l->at++;
        return *ret != NULL ? RV_OK : rv__nomem(l->err);
    }
    l->at = rv__json_skip(l->at, l->end);
    literal.len = (size_t)(l->at - literal.at);

    struct rv__str text;
    switch (rv__json_type(literal)) {
    case RV__JSON_NULL: *ret = json_null(); return RV_OK;
    case RV__JSON_FALSE: *ret = json_false(); return RV_OK;
    case RV__JSON_TRUE: *ret = json_true(); return RV_OK;
    case RV__JSON_NUMBER: return make_number(l, literal, ret);
    case RV__JSON_STRING:
        *ret = NULL;
        if (rv__json_string(literal, &l->arena, &text) == RV_OK)
            *ret = json_stringn_nocheck(text.at, text.len); /* checked: it is UTF-8 */
        return *ret != NULL ? RV_OK : rv__nomem(l->err);
    case RV__JSON_ARRAY:
    case RV__JSON_OBJECT: break; /* above */
    }
    assert(false);
    return rv__fail(l->err, RV_EINVAL, "not a JSON value");
}

/* One value, with its key where it has one, into the container it belongs to. */
static int load_member(struct loader *l)
{
    json_t *value = NULL, *parent = l->depth > 0 ? l->open[l->depth - 1] : NULL;
    struct rv__str key = { l->at, 0 };
    int rc, failed = 0;

    rv__arena_reset(&l->arena);
    if (json_is_object(parent)) {
        struct rv__str literal = key;
        l->at = rv__json_skip(l->at, l->end);
        literal.len = (size_t)(l->at - literal.at);
        if (rv__json_string(literal, &l->arena, &key) < 0)
            return rv__nomem(l->err);
        if (memchr(key.at, '\0', key.len) !=
            NULL) /* many of Jansson's functions take keys as C strings */
            return refuse(l, literal.at, "a tree cannot hold a key with a NUL character");
        l->at = rv__json_skip_separators(l->at);
    }
    rc = make_value(l, &value);
    if (rc < 0)
        return rc;

    if (parent == NULL)
        l->root = value;
    else if (json_is_object(parent))
        failed = json_object_setn_new_nocheck(parent, key.at, key.len, value);
    else
        failed = json_array_append_new(parent, value);
    if (failed) /* the value was taken even so */
        return rv__nomem(l->err);
    if (json_is_object(value) || json_is_array(value)) {
        assert(l->depth < RV__JSON_MAX_DEPTH);
        l->open[l->depth++] = value;
    }
    return RV_OK;
}

int rv__json_load(struct rv__str text, json_t **ret, rv_error *err)
{
    json_t *open[RV__JSON_MAX_DEPTH];
    struct loader l = { .text = text, .open = open, .err = err };
    int rc;

    /* A key and a string are less than the text; the rest is the arena's own. */
    rv__arena_init(&l.arena, 2 * (size_t)RV__JSON_MAX_BYTES);
    rc = rv__json_check(text, RV__JSON_MAX_DEPTH, NULL, err);
    if (rc < 0)
        goto out;

    l.at = rv__json_skip_separators(text.at);
    l.end = text.at + text.len;
    rc = load_member(&l);
    while (rc == RV_OK && l.depth > 0) {
        l.at = rv__json_skip_separators(l.at);
        if (*l.at == ']' || *l.at == '}') {
            l.depth--;
            l.at++;
        } else {
            rc = load_member(&l);
        }
    }
    if (rc < 0)
        goto out;

    *ret = l.root;
    l.root = NULL;
out:
    json_decref(l.root);
    rv__arena_done(&l.arena);
    return rc;
}

static bool key_means(const char *key, size_t len, struct rv__str token)
{
    size_t i = 0;
    for (size_t k = 0; k < len; k++) {
        if (i == token.len)
            return false;
        char c = token.at[i++];
        if (c == '~')
            c = token.at[i++] == '0' ? '~' : '/';
        if (c != key[k])
            return false;
    }
    return i == token.len;
}

static json_t *member(json_t *object, struct rv__str token)
{
    if (memchr(token.at, '~', token.len) == NULL)
        return json_object_getn(object, token.at, token.len);
    for (void *it = json_object_iter(object); it != NULL; it = json_object_iter_next(object, it))
        if (key_means(json_object_iter_key(it), json_object_iter_key_len(it), token))
            return json_object_iter_value(it);
    return NULL;
}

json_t *rv__json_at(json_t *root, struct rv__str pointer)
{
    struct rv__str token;
    size_t index;
    if (!rv__json_pointer_valid(pointer))
        return NULL;
    while (root != NULL && rv__json_pointer_next(&pointer, &token)) {
        if (json_is_object(root))
            root = member(root, token);
        else if (json_is_array(root) && rv__json_pointer_index(token, &index))
            root = json_array_get(root, index);
        else
            root = NULL;
    }
    return root;
}

/* Recursive, but no deeper than the texts we accept; Jansson frees values recursively, too. */
static int dump(const json_t *value, size_t depth, struct rv__buf *out)
{
    size_t before = out->len;
    const char *comma = "";
    int rc = RV_OK;

    if (depth == RV__JSON_MAX_DEPTH && (json_is_array(value) || json_is_object(value)))
        return RV_ETOOBIG;
    switch (json_typeof(value)) {
    case JSON_NULL: rv__buf_text(out, "null"); break;
    case JSON_FALSE: rv__buf_text(out, "false"); break;
    case JSON_TRUE: rv__buf_text(out, "true"); break;
    case JSON_INTEGER: rv__buf_int(out, json_integer_value(value)); break;
    case JSON_REAL:
        rv__buf_json_double(out, json_real_value(value));
        if (out->rc == RV_OK && strpbrk(out->text + before, ".e") == NULL)
            rv__buf_text(out, ".0"); /* so that it comes back as a real */
        break;
    case JSON_STRING:
        rv__buf_json_str(out,
                         (struct rv__str){ json_string_value(value), json_string_length(value) });
        break;
    case JSON_ARRAY:
        rv__buf_char(out, '[');
        for (size_t i = 0; i < json_array_size(value) && rc == RV_OK; i++) {
            rv__buf_text(out, comma);
            comma = ",";
            rc = dump(json_array_get(value, i), depth + 1, out);
        }
        rv__buf_char(out, ']');
        break;
    case JSON_OBJECT: {
        json_t *object = (json_t *)value; /* iterating changes nothing in it */
        rv__buf_char(out, '{');
        for (void *it = json_object_iter(object); it != NULL && rc == RV_OK;
             it = json_object_iter_next(object, it)) {
            rv__buf_text(out, comma);
            comma = ",";
            rv__buf_json_str(
                out, (struct rv__str){ json_object_iter_key(it), json_object_iter_key_len(it) });
            rv__buf_char(out, ':');
            rc = dump(json_object_iter_value(it), depth + 1, out);
        }
        rv__buf_char(out, '}');
        break;
    }
    }
    return rc < 0 ? rc : out->rc;
}

int rv__json_dump(const json_t *value, struct rv__buf *out)
{
    size_t before = out->len;
    int rc = dump(value, 0, out);
    if (rc < 0)
        rv__buf_cut(out, before);
    return rc;
}
