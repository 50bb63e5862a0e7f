/* json.h: JSON as text that is looked at in place, and as a tree where that is handier.
 *
 * Values pass through Rival as the text they came in, so most of this works on slices of text and
 * allocates nothing. The rule that makes it safe: text from outside goes once through
 * rv__json_check(); every other function that takes text must be given text that passed (or a
 * value found inside such text) and never reads past it. White space around a value is fine.
 *
 * An object that has a key twice means its last member of that name: here, in canonical text, in
 * the tree and in jq alike, so that no two parts of Rival can read one text differently.
 *
 * Thread: any; there is no state. */
#ifndef RV_BASE_JSON_H
#define RV_BASE_JSON_H

#include <jansson.h>

#include "base/str.h"

struct rv__arena;

#define RV__JSON_VALUE_DEPTH 480 /* of a value that we will wrap into texts of our own */
#define RV__JSON_MAX_DEPTH   512 /* containers within containers; jq and Jansson allow more */
#define RV__JSON_STORED_DEPTH \
    1024 /* of texts that we put together of values; for rv__json_check_stored() */
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

/* The same for what was written by us, however long it is, and up to RV__JSON_STORED_DEPTH: a limit is told
 * when something is written, and not again when it is read. */
int rv__json_check_stored(struct rv__str text, size_t max_depth, struct rv__str *ret,
                          rv_error *err);

/* Where `at` is in `text`, for messages: both from 1, columns in characters. For any text. */
void rv__json_where(struct rv__str text, const char *at, size_t *line, size_t *column);

/* ------------------------------------------------------------------------------------------
 * Looking at text in place */

enum rv__json_type rv__json_type(struct rv__str value);

/* What follows the value that begins exactly at `at`. Linear in the value's length. */
const char *rv__json_skip(const char *at, const char *end);

/* From behind a bracket, a key or a value to what comes next: a key, a value, a closing bracket. For
 * who goes through a text with all that is in it, in one pass; not to be called at its end. */
static inline const char *rv__json_skip_separators(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r' || *at == ',' || *at == ':')
        at++;
    return at;
}

/* The members of an array or object, in order; of anything else there are none.
 *
 *     rv__json_iter_init(&it, object);
 *     while (rv__json_next(&it, &key, &value))   key: as it stands, quotes and escapes included
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

/* The last member of that name, whatever escapes the name is written with. False, with *ret
 * untouched: there is none, or `object` is not an object. Walks the whole object: who wants many
 * members of a large one walks it once with rv__json_next(). */
bool rv__json_get(struct rv__str object, const char *key, struct rv__str *ret);

/* The value as C knows it. RV_EINVAL, with *ret untouched, if it is of another type, and
 *   int:    if it is not written as an integer (1.0 and 1e3 are not) or outside of int64_t;
 *   double: if it is outside of a double's range. Rounded correctly, in any locale.
 * A string is unescaped: a slice of `v` where it has no escapes, else a copy in the arena
 * (RV_ENOMEM). It may contain NUL characters, and none follows it. */
int rv__json_int(struct rv__str v, int64_t *ret);
int rv__json_double(struct rv__str v, double *ret);
int rv__json_bool(struct rv__str v, bool *ret);
int rv__json_string(struct rv__str v, struct rv__arena *arena, struct rv__str *ret);

/* Is `v` a string that means `expected`? */
bool rv__json_string_is(struct rv__str v, struct rv__str expected);

/* ------------------------------------------------------------------------------------------
 * JSON Pointer (RFC 6901): "" is the whole, "/a/0" its member "a", there the first element
 *
 * Errors: RV_EINVAL: `pointer` is not one; RV_ENOTFOUND: nothing is there ("-" never is). */
int rv__json_pointer(struct rv__str doc, struct rv__str pointer, struct rv__str *ret,
                     rv_error *err);

/* For who walks something else: is it a pointer at all; then token by token, each as it stands
 * (~0 and ~1 included), until false; then as the index of an array, if it can be one. */
bool rv__json_pointer_valid(struct rv__str pointer);
bool rv__json_pointer_next(struct rv__str *pointer, struct rv__str *token);
bool rv__json_pointer_index(struct rv__str token, size_t *ret);

/* ------------------------------------------------------------------------------------------
 * Writing. As with all of rv__buf_…, failures are remembered in the buffer. */

/* As a string: quoted, and escaped only where it must be. A byte that is not part of well-formed
 * UTF-8 becomes U+FFFD, so the output is JSON whatever `s` is. */
void rv__buf_json_str(struct rv__buf *buf, struct rv__str s);

/* "/" and the token with its ~ and / escaped: one step more of a JSON Pointer. */
void rv__buf_json_pointer(struct rv__buf *buf, struct rv__str token);

/* The shortest text that reads as the same double; equal doubles give equal text, and an integer
 * below 2^53 is written as one (1, not 1.0). Infinity is 1e999, which reads as infinity wherever
 * it can be read, and not-a-number is null: the output is JSON whatever `number` is. */
void rv__buf_json_double(struct rv__buf *buf, double number);

/* Append the members of the object `under` that `over` does not have, then those of `over`, as one object.
 * Linear. Errors: RV_ENOMEM; RV_ETOOBIG: the bound of `out`. */
int rv__json_overlay(struct rv__str under, struct rv__str over, struct rv__buf *out, rv_error *err);

/* Append the canonical text of `text`. Two texts have the same one if and only if they mean the
 * same: no white space, keys sorted by the bytes of their UTF-8 and each there once, strings
 * escaped only where they must be. A number written as an integer keeps all its digits (and -0 is
 * 0); any other means the nearest double and is written by rv__buf_json_double().
 *
 * O(n log n) time, and does not recurse. After a failure `out` holds what it held before.
 * Errors: RV_ENOMEM, RV_ETOOBIG (the bound of `out`). */
int rv__json_canonical(struct rv__str text, struct rv__buf *out, rv_error *err);

/* Does this value mean just what is written: is it no number, or one that is written as it would be written
 * again? 1.10 and 5e12345 do not: who reads them as numbers makes 1.1 and infinity of them. */
bool rv__json_keeps_text(struct rv__str value);

/* ------------------------------------------------------------------------------------------
 * Jansson, for where a tree is handier than text */

/* Parse `text`, which need not have been checked. Integers beyond int64_t become reals. On success
 * *ret is the caller's, to give to json_decref().
 *
 * Errors: those of rv__json_check(); RV_EPARSE also for what a tree cannot hold: a number
 * beyond the range of a double, a key with a NUL character; RV_ENOMEM. */
int rv__json_load(struct rv__str text, json_t **ret, rv_error *err);

/* What the pointer leads to, borrowed from root; NULL if nothing is there. */
json_t *rv__json_at(json_t *root, struct rv__str pointer);

/* Append the value's text, without white space, keys in their order in the tree. After a failure
 * `out` holds what it held before. Errors: RV_ENOMEM; RV_ETOOBIG: the bound of `out`, or nested
 * deeper than RV__JSON_MAX_DEPTH, as a tree that contains itself is. */
int rv__json_dump(const json_t *value, struct rv__buf *out);

#endif
