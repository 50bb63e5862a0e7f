/* narrow.c: a JSON Schema as the structured output of /v1/messages takes it: objects that list their members and allow
 * no others, and none of the keywords that bound numbers, texts or lists. What is left out is still checked by us when
 * the answer comes, so a narrowed schema may allow too much. It must never allow too little: a schema whose objects may
 * have members of any name, or that refers to itself, cannot be said, and the model is asked in words instead. */
#include "agent/protocol.h"

/* What becomes of a keyword. */
enum word {
    WORD_COPY,   /* as it is */
    WORD_SCHEMA, /* its value is a schema, */
    WORD_LIST,   /* a list of them, */
    WORD_BY_NAME /* or an object of them */
};

static const struct {
    const char *name;
    enum word word;
} words[] = {
    { "type", WORD_COPY },    { "description", WORD_COPY }, { "title", WORD_COPY },
    { "enum", WORD_COPY },    { "const", WORD_COPY },       { "required", WORD_COPY },
    { "items", WORD_SCHEMA }, { "anyOf", WORD_LIST },       { "properties", WORD_BY_NAME },
};

struct narrowing {
    struct rv__buf *out;
    bool left_out; /* something that the schema says, the narrowed one does not */
};

static bool put_schema(struct narrowing *n, struct rv__str schema);

static bool put_list(struct narrowing *n, struct rv__str list)
{
    struct rv__json_iter it;
    struct rv__str schema;
    bool first = true;
    if (!rv__json_is(list, RV__JSON_ARRAY))
        return false;
    rv__buf_char(n->out, '[');
    rv__json_iter_init(&it, list);
    for (; rv__json_next(&it, NULL, &schema); first = false) {
        rv__buf_text(n->out, first ? "" : ",");
        if (!put_schema(n, schema))
            return false;
    }
    rv__buf_char(n->out, ']');
    return true;
}

static bool put_by_name(struct narrowing *n, struct rv__str object)
{
    struct rv__json_iter it;
    struct rv__str key, schema;
    bool first = true;
    if (!rv__json_is(object, RV__JSON_OBJECT))
        return false;
    rv__buf_char(n->out, '{');
    rv__json_iter_init(&it, object);
    for (; rv__json_next(&it, &key, &schema); first = false) {
        rv__buf_text(n->out, first ? "" : ",");
        rv__buf_str(n->out, key);
        rv__buf_char(n->out, ':');
        if (!put_schema(n, schema))
            return false;
    }
    rv__buf_char(n->out, '}');
    return true;
}

static bool put_value(struct narrowing *n, enum word word, struct rv__str value)
{
    switch (word) {
    case WORD_COPY: rv__buf_str(n->out, value); return true;
    case WORD_SCHEMA: return put_schema(n, value);
    case WORD_LIST: return put_list(n, value);
    case WORD_BY_NAME: break;
    }
    return put_by_name(n, value);
}

/* May its value be an object? Of a list of types, each is asked. */
static bool may_be_object(struct rv__str type)
{
    struct rv__json_iter it;
    struct rv__str one;
    if (!rv__json_is(type, RV__JSON_ARRAY))
        return rv__json_string_is(type, rv__str("object"));
    rv__json_iter_init(&it, type);
    while (rv__json_next(&it, NULL, &one))
        if (rv__json_string_is(one, rv__str("object")))
            return true;
    return false;
}

/* Says what its value is, and of an object which members it has. */
static bool is_closed(struct rv__str schema, bool *object)
{
    static const char *const says[] = { "enum", "const", "anyOf" };
    struct rv__str type, more, members;
    *object = false;
    if (!rv__json_get(schema, "type", &type)) {
        for (size_t i = 0; i < sizeof says / sizeof *says; i++)
            if (rv__json_get(schema, says[i], &more))
                return true;
        return false;
    }
    *object = may_be_object(type);
    if (!*object)
        return true;
    if (rv__json_get(schema, "additionalProperties", &more) && !rv__json_is(more, RV__JSON_FALSE))
        return false;
    return rv__json_get(schema, "properties", &members) && rv__json_is(members, RV__JSON_OBJECT) &&
           rv__json_count(members) > 0;
}

/* Goes as deep as the JSON, which is limited. False: it cannot be said. */
static bool put_schema(struct narrowing *n, struct rv__str schema)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    bool first = true, object;
    if (!rv__json_is(schema, RV__JSON_OBJECT) || !is_closed(schema, &object))
        return false;
    rv__buf_char(n->out, '{');
    rv__json_iter_init(&it, schema);
    while (rv__json_next(&it, &key, &value)) {
        size_t i = 0;
        while (i < sizeof words / sizeof *words && !rv__json_string_is(key, rv__str(words[i].name)))
            i++;
        if (i == sizeof words / sizeof *words) {
            n->left_out |= !rv__json_string_is(key, rv__str("additionalProperties"));
            continue;
        }
        rv__buf_text(n->out, first ? "" : ",");
        first = false;
        rv__buf_str(n->out, key);
        rv__buf_char(n->out, ':');
        if (!put_value(n, words[i].word, value))
            return false;
    }
    if (object)
        rv__buf_text(n->out,
                     first ? "\"additionalProperties\":false" : ",\"additionalProperties\":false");
    rv__buf_char(n->out, '}');
    return true;
}

bool rv__schema_narrow(struct rv__str schema, struct rv__buf *out, bool *left_out)
{
    struct narrowing n = { .out = out };
    struct rv__str type;
    if (!rv__json_get(schema, "type", &type) || !rv__json_string_is(type, rv__str("object")) ||
        !put_schema(&n, schema))
        return false;
    *left_out = n.left_out;
    return true;
}
