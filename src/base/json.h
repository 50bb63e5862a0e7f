/* json.h: JSON as text that is read in place, and as a tree where that is easier.
 *
 * Rival passes values on as their original text, so most functions work on slices of text and allocate nothing. For
 * safety, text from outside is checked once by rv__json_check(); all other functions require checked text (or a
 * value inside such text) and never read past it. White space around a value is allowed.
 *
 * If an object has a key twice, the last member counts: here, in canonical text, in the tree and in jq, so that all
 * parts of Rival read a text in the same way.
 *
 * Thread: any; there is no state. */
#ifndef RV_BASE_JSON_H
#define RV_BASE_JSON_H

#include <jansson.h>

#include "base/str.h"

struct rv__arena;

#define RV__JSON_VALUE_DEPTH 480 /* of a value that we will put into texts of our own */
#define RV__JSON_MAX_DEPTH   512 /* nested containers; jq and Jansson allow more */
#define RV__JSON_STORED_DEPTH \
    1024 /* of texts that we build from values; for rv__json_check_stored() */
#define RV__JSON_MAX_BYTES (64u << 20) /* of one text; offsets into it fit 32 bits */

enum rv__json_type {
    RV__JSON_NULL,
    RV__JSON_FALSE,
    RV__JSON_TRUE,
    RV__JSON_NUMBER,
    RV__JSON_STRING,
    RV__JSON_ARRAY,
    RV__JSON_OBJECT,
};

/* Is `text` exactly one value by RFC 8259, in well-formed UTF-8, without lone surrogates among its
 * \u escapes, with at most max_depth containers within each other ("[]" has 1) and not above
 * RV__JSON_MAX_BYTES? *ret, unless ret is NULL, is then the value without the white space around
 * it. max_depth may not exceed RV__JSON_MAX_DEPTH. Linear, and does not recurse.
 *
 * Errors: RV_EPARSE and, for depth and size, RV_ETOOBIG: "line L, column C: expected …". */
int rv__json_check(struct rv__str text, size_t max_depth, struct rv__str *ret, rv_error *err);

/* The same for text that we wrote, of any length and up to RV__JSON_STORED_DEPTH: limits are checked when text is
 * written, not when it is read. */
int rv__json_check_stored(struct rv__str text, size_t max_depth, struct rv__str *ret,
                          rv_error *err);

/* The position of `at` in `text`, for messages: both from 1, columns in characters. For any text. */
void rv__json_where(struct rv__str text, const char *at, size_t *line, size_t *column);

/* ------------------------------------------------------------------------------------------
 * Looking at text in place */

enum rv__json_type rv__json_type(struct rv__str value);

/* The end of the value that begins exactly at `at`. Linear in the value's length. */
const char *rv__json_skip(const char *at, const char *end);

/* Skip from the end of a bracket, a key or a value to the next token: a key, a value, a closing bracket. For a pass
 * over a whole nested text; not at its end. */
static inline const char *rv__json_skip_separators(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r' || *at == ',' || *at == ':')
        at++;
    return at;
}

/* The members of an array or object, in order; anything else has none.
 *
 *     rv__json_iter_init(&it, object);
 *     while (rv__json_next(&it, &key, &value))   key: raw, with quotes and escapes
 *
 * In an array `key` is "none". Either of `key` and `value` may be NULL. */
struct rv__json_iter {
    const char *at;
    const char *end;
    bool object;
};
void rv__json_iter_init(struct rv__json_iter *it, struct rv__str container);
bool rv__json_next(struct rv__json_iter *it, struct rv__str *key, struct rv__str *value);
size_t rv__json_count(struct rv__str container);

/* The last member with this name, in whatever escapes it is written. False, with *ret unchanged: none, or `object`
 * is not an object. Walks the whole object: to get many members of a large one, walk it once with rv__json_next(). */
bool rv__json_get(struct rv__str object, const char *key, struct rv__str *ret);

/* The value as a C type. RV_EINVAL, with *ret unchanged, if it has another type, and
 *   int:    if it is not written as an integer (1.0 and 1e3 are not) or outside of int64_t;
 *   double: if it is outside of a double's range. Rounded correctly, in any locale.
 * A string is unescaped: a slice of `v` if it has no escapes, else a copy in the arena (RV_ENOMEM). It may contain
 * NUL characters, and is not NUL-terminated. */
int rv__json_int(struct rv__str v, int64_t *ret);
int rv__json_double(struct rv__str v, double *ret);
int rv__json_bool(struct rv__str v, bool *ret);
int rv__json_string(struct rv__str v, struct rv__arena *arena, struct rv__str *ret);

/* Is `v` a string equal to `expected` after unescaping? */
bool rv__json_string_is(struct rv__str v, struct rv__str expected);

/* ------------------------------------------------------------------------------------------
 * JSON Pointer (RFC 6901): "" is the whole, "/a/0" its member "a", there the first element
 *
 * Errors: RV_EINVAL: `pointer` is not one; RV_ENOTFOUND: nothing is there ("-" never is). */
int rv__json_pointer(struct rv__str doc, struct rv__str pointer, struct rv__str *ret,
                     rv_error *err);

/* For walking something else: is it a valid pointer; the next token, raw (with ~0 and ~1), until false; and the
 * token as an array index, if it can be one. */
bool rv__json_pointer_valid(struct rv__str pointer);
bool rv__json_pointer_next(struct rv__str *pointer, struct rv__str *token);
bool rv__json_pointer_index(struct rv__str token, size_t *ret);

/* ------------------------------------------------------------------------------------------
 * Writing. As with all of rv__buf_…, failures are remembered in the buffer. */

/* Append a string: quoted, and escaped only where necessary. A byte that is not valid UTF-8 becomes U+FFFD, so the
 * output is always JSON. */
void rv__buf_json_str(struct rv__buf *buf, struct rv__str s);

/* Append "/" and the token with ~ and / escaped: one more step of a JSON Pointer. */
void rv__buf_json_pointer(struct rv__buf *buf, struct rv__str token);

/* The shortest text that reads as the same double; equal doubles give equal text, and an integer below 2^53 is
 * written as one (1, not 1.0). Infinity is 1e999, which reads as infinity where possible; not-a-number is null. So
 * the output is always JSON. */
void rv__buf_json_double(struct rv__buf *buf, double number);

/* Append the members of the object `under` that `over` does not have, then those of `over`, as one object.
 * Linear. Errors: RV_ENOMEM; RV_ETOOBIG: the bound of `out`. */
int rv__json_overlay(struct rv__str under, struct rv__str over, struct rv__buf *out, rv_error *err);

/* Append the canonical text of `text`. Two texts have the same canonical text if and only if they mean the same: no
 * white space, keys sorted by their UTF-8 bytes and each once, strings escaped only where necessary. A number
 * written as an integer keeps all its digits (and -0 is 0); any other is the nearest double, written by
 * rv__buf_json_double().
 *
 * O(n log n) time, and does not recurse. After a failure `out` is unchanged. Errors: RV_ENOMEM, RV_ETOOBIG (the
 * bound of `out`). */
int rv__json_canonical(struct rv__str text, struct rv__buf *out, rv_error *err);

/* Would reading and writing this value keep its text? True for anything but a number, and for a number in its
 * canonical form. 1.10 and 5e12345 would become 1.1 and infinity. */
bool rv__json_keeps_text(struct rv__str value);

/* ------------------------------------------------------------------------------------------
 * Jansson, for where a tree is handier than text */

/* Parse `text`, which need not be checked. Integers beyond int64_t become reals. Free *ret with json_decref().
 *
 * Errors: those of rv__json_check(); RV_EPARSE also for a number beyond the range of a double and a key with a NUL
 * character; RV_ENOMEM. */
int rv__json_load(struct rv__str text, json_t **ret, rv_error *err);

/* The value at the pointer, borrowed from root; NULL: none. */
json_t *rv__json_at(json_t *root, struct rv__str pointer);

/* Append the value's text, without white space, keys in their order in the tree. After a failure `out` is
 * unchanged. Errors: RV_ENOMEM; RV_ETOOBIG: the limit of `out`, or nested deeper than RV__JSON_MAX_DEPTH (a tree
 * that contains itself is). */
int rv__json_dump(const json_t *value, struct rv__buf *out);

#endif
