/* value.c: between our texts and jq's values.
 *
 * Not jv_parse() and jv_dump_string(): the first stops at 256 levels and reads numbers out of a
 * double's range as the largest double, the second writes what values share over and over without
 * a bound, and both copy more than they must. */
#include "jq/value.h"

#include <math.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"

enum { VALUE_BYTES = 16, STRING_BYTES = 32, SLOT_BYTES = 40 }; /* about, in libjq 1.6 */

struct parser {
    const char *at, *end;
    struct rv__arena *scratch;
    size_t bytes;
    int rc;
};

static jv parse_string(struct parser *p)
{
    const char *from = p->at;
    struct rv__str text;
    p->at = rv__json_skip(from, p->end);
    if (rv__json_string((struct rv__str){ from, (size_t)(p->at - from) }, p->scratch, &text) < 0) {
        p->rc = RV_ENOMEM;
        return jv_null();
    }
    p->bytes += STRING_BYTES + text.len;
    return jv_string_sized(text.at, (int)text.len);
}

static jv parse_number(struct parser *p)
{
    const char *from = p->at;
    double number = 0;
    p->at = rv__json_skip(from, p->end);
    struct rv__str text = { from, (size_t)(p->at - from) };
    int64_t integer;
    if (text.len < 16 && rv__json_int(text, &integer) == RV_OK)
        return jv_number((double)integer);
    if (rv__json_double(text, &number) < 0) /* out of range: as jq has it elsewhere */
        number = *from == '-' ? -HUGE_VAL : HUGE_VAL;
    return jv_number(number);
}

/* Recurses along the depth of the value, which rv__json_check() has bounded. */
static jv parse_value(struct parser *p)
{
    jv value, key;
    p->bytes += VALUE_BYTES;
    switch (*p->at) {
    case 'n': p->at += 4; return jv_null();
    case 't': p->at += 4; return jv_true();
    case 'f': p->at += 5; return jv_false();
    case '"': return parse_string(p);
    case '[':
        value = jv_array();
        p->at = rv__json_skip_separators(p->at + 1);
        while (*p->at != ']' && p->rc == RV_OK) {
            value = jv_array_append(value, parse_value(p));
            if (p->rc == RV_OK)
                p->at = rv__json_skip_separators(p->at);
        }
        p->at++;
        return value;
    case '{':
        value = jv_object();
        p->at = rv__json_skip_separators(p->at + 1);
        while (*p->at != '}' && p->rc == RV_OK) {
            key = parse_string(p);
            p->bytes += SLOT_BYTES;
            if (p->rc < 0) {
                jv_free(key);
                break;
            }
            p->at = rv__json_skip_separators(p->at);
            value = jv_object_set(value, key, parse_value(p));
            if (p->rc == RV_OK)
                p->at = rv__json_skip_separators(p->at);
        }
        p->at++;
        return value;
    default: return parse_number(p);
    }
}

int rv__value_parse(struct rv__str json, struct rv__arena *scratch, jv *ret, size_t *bytes)
{
    struct parser p = { .at = rv__json_skip_separators(json.at),
                        .end = json.at + json.len,
                        .scratch = scratch };
    jv value = parse_value(&p);
    rv__arena_reset(scratch);
    if (p.rc < 0) {
        jv_free(value);
        return p.rc;
    }
    *ret = value;
    *bytes = p.bytes;
    return RV_OK;
}

/* -------------------------------------------------------------------------------- writing --- */

static struct rv__str string_of(jv value) /* valid while somebody holds the value */
{
    return (struct rv__str){ jv_string_value(value),
                             (size_t)jv_string_length_bytes(jv_copy(value)) };
}

static int write_value(jv value, size_t depth, struct rv__buf *out, rv_error *err);

static int write_array(jv array, size_t depth, struct rv__buf *out, rv_error *err)
{
    int count = jv_array_length(jv_copy(array));
    int rc = RV_OK;
    rv__buf_char(out, '[');
    for (int i = 0; i < count && rc == RV_OK && out->rc == RV_OK; i++) {
        jv member = jv_array_get(jv_copy(array), i);
        if (i > 0)
            rv__buf_char(out, ',');
        rc = write_value(member, depth, out, err);
        jv_free(member);
    }
    rv__buf_char(out, ']');
    return rc;
}

static int write_object(jv object, size_t depth, struct rv__buf *out, rv_error *err)
{
    int rc = RV_OK;
    bool first = true;
    rv__buf_char(out, '{');
    for (int i = jv_object_iter(object);
         rc == RV_OK && out->rc == RV_OK && jv_object_iter_valid(object, i);
         i = jv_object_iter_next(object, i)) {
        jv key = jv_object_iter_key(object, i), member = jv_object_iter_value(object, i);
        if (!first)
            rv__buf_char(out, ',');
        first = false;
        rv__buf_json_str(out, string_of(key));
        rv__buf_char(out, ':');
        rc = write_value(member, depth, out, err);
        jv_free(key);
        jv_free(member);
    }
    rv__buf_char(out, '}');
    return rc;
}

static int write_value(jv value, size_t depth, struct rv__buf *out, rv_error *err)
{
    jv_kind kind = jv_get_kind(value);
    if ((kind == JV_KIND_ARRAY || kind == JV_KIND_OBJECT) && depth == RV__JSON_VALUE_DEPTH)
        return rv__fail(err, RV_ETOOBIG, "the value is nested deeper than %d",
                        RV__JSON_VALUE_DEPTH);
    switch (kind) {
    case JV_KIND_INVALID:
    case JV_KIND_NULL: rv__buf_text(out, "null"); break;
    case JV_KIND_FALSE: rv__buf_text(out, "false"); break;
    case JV_KIND_TRUE: rv__buf_text(out, "true"); break;
    case JV_KIND_NUMBER: rv__buf_json_double(out, jv_number_value(value)); break;
    case JV_KIND_STRING: rv__buf_json_str(out, string_of(value)); break;
    case JV_KIND_ARRAY: return write_array(value, depth + 1, out, err);
    case JV_KIND_OBJECT: return write_object(value, depth + 1, out, err);
    }
    return RV_OK;
}

int rv__value_write(jv value, struct rv__buf *out, rv_error *err)
{
    return write_value(value, 0, out, err);
}
