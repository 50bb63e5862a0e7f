/* str.h: text as a slice (rv__str, borrowed) and as a growing buffer (rv__buf, owned). */
#ifndef RV_BASE_STR_H
#define RV_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rival/base.h>

struct rv__arena;

/* Borrowed bytes; not NUL-terminated. { NULL, 0 } is "none"; see rv__str_none. */
struct rv__str {
    const char *at;
    size_t len;
};

/* A slice of a string literal, usable in static initialisers; for printf: "%.*s", RV__ARG(s). */
/* clang-format off */
#define RV__STR(literal) { (literal), sizeof(literal) - 1 }
/* clang-format on */
#define RV__ARG(s) (int)(s).len, (s).at

static inline struct rv__str rv__str(const char *text) /* NULL gives "none" */
{
    return (struct rv__str){ text, text ? strlen(text) : 0 };
}

static inline bool rv__str_eq(struct rv__str a, struct rv__str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool rv__str_is(struct rv__str a, const char *text)
{
    return rv__str_eq(a, rv__str(text));
}

static inline bool rv__str_none(struct rv__str s)
{
    return s.at == NULL;
}

/* Compares bytes; a prefix comes first: the order of canonical JSON keys. */
int rv__str_cmp(struct rv__str a, struct rv__str b);

/* A copy in the arena, NUL-terminated. RV_ENOMEM: *ret is unchanged. */
int rv__str_copy(struct rv__arena *arena, struct rv__str s, struct rv__str *ret);

/* Is it valid UTF-8 (no surrogates, nothing overlong, nothing above U+10FFFF)? */
bool rv__str_utf8(struct rv__str s);

/* Its beginning: at most `max` bytes, whole characters. */
struct rv__str rv__str_begin(struct rv__str s, size_t max);

/* Its end: at most `max` bytes, whole characters. */
struct rv__str rv__str_end(struct rv__str s, size_t max);

/* Add to a 64-bit hash for tables in memory; start with RV__HASH_START. Not for data on disk, and not where
 * attackers may choose an unlimited number of colliding keys. */
#define RV__HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t rv__str_hash(uint64_t hash, struct rv__str s);

/* A growing text. A failure (no memory, beyond max_bytes) is remembered, later additions do nothing, and
 * rv__buf_err() reports it at the end: one check for many additions.
 *
 * text[0..len) is the content, NUL-terminated once anything was added. */
struct rv__buf {
    char *text;
    size_t len;
    size_t cap;
    size_t max_bytes;
    int rc; /* RV_OK, RV_ENOMEM or RV_ETOOBIG */
};

void rv__buf_init(struct rv__buf *buf, size_t max_bytes);
void rv__buf_done(struct rv__buf *buf);  /* frees the text; the buffer can be used again */
void rv__buf_reset(struct rv__buf *buf); /* empties it and clears a failure; keeps the memory */

void rv__buf_add(struct rv__buf *buf, const char *bytes, size_t len);
void rv__buf_str(struct rv__buf *buf, struct rv__str s);
void rv__buf_text(struct rv__buf *buf, const char *text);
void rv__buf_char(struct rv__buf *buf, char c);
void rv__buf_int(struct rv__buf *buf, int64_t n); /* decimal, faster than printf */
void rv__buf_fmt(struct rv__buf *buf, const char *fmt, ...) RV_PRINTF(2, 3);

/* A message from elsewhere, in at most `max` bytes (more than 3): all of it, or "…" and its end. */
void rv__buf_message(struct rv__buf *buf, struct rv__str message, size_t max);

/* As base64 (RFC 4648, with padding). */
void rv__buf_base64(struct rv__buf *buf, struct rv__str bytes);
/* The bytes of a base64 text, which may be folded into lines. False: it is none; a part of it may be appended then. */
bool rv__buf_from_base64(struct rv__buf *buf, struct rv__str text);

/* Remove what was added after `len`, e.g. a trailing comma. */
void rv__buf_cut(struct rv__buf *buf, size_t len);

static inline struct rv__str rv__buf_view(const struct rv__buf *buf)
{
    return (struct rv__str){ buf->text ? buf->text : "", buf->len };
}

/* RV_OK, or the first failure, with a message. */
int rv__buf_err(const struct rv__buf *buf, rv_error *err);

/* Take the text (free it with rv__free); the buffer is then empty. NULL after a failure, which stays. An empty
 * buffer gives "". */
char *rv__buf_take(struct rv__buf *buf);

enum { RV__PATH_ROOM = 4096 }; /* for the path of a file, with its NUL: Linux' own limit */

#endif
