/* mask.h: hides secrets in texts before they are recorded.
 *
 * A mask knows a few secrets. In a text each of them becomes "***", in whatever form it occurs: plain, as base64
 * (at any of the three alignments, with either alphabet, lines folded or not), percent-escaped as in a URL or form,
 * with the escapes of a JSON string, or in a mix of these.
 *
 * The text is searched for all secrets at once, in linear time (see mask.c). It may come in pieces: bytes that may
 * be the beginning of a secret are then held back until it is known. */
#ifndef RV_BASE_MASK_H
#define RV_BASE_MASK_H

#include "base/str.h"

enum {
    RV__MASK_SHORTEST = 8, /* bytes of a secret: a shorter one would match by chance */
    RV__MASK_MAX_BYTES =
        64 << 10, /* of all secrets; the mask needs about 200 times as much memory */
};

#define RV__MASK_TEXT "***"

struct rv__mask; /* reference-counted; immutable. Thread: any */

/* Errors: RV_EINVAL: one is too short; RV_ETOOBIG: they are too long together; RV_ENOMEM. */
int rv__mask_new(const struct rv__str *secrets, size_t count, struct rv__mask **ret, rv_error *err);
struct rv__mask *rv__mask_ref(struct rv__mask *mask); /* NULL is allowed */
void rv__mask_unref(struct rv__mask *mask);           /* NULL is allowed */

/* Append the text with its secrets hidden. `cut`: the text may have been cut at its end, so its end is also hidden
 * if it is the beginning of a secret, of RV__MASK_SHORTEST bytes or more. Returns whether something was hidden.
 * Without memory the whole text is replaced by RV__MASK_TEXT. A NULL mask hides nothing. */
bool rv__mask_text(const struct rv__mask *mask, struct rv__str text, bool cut, struct rv__buf *out);

/* The same for checked JSON, which stays valid: a number that contains a secret becomes the string "***", and so
 * does the whole text if necessary. */
bool rv__mask_json(const struct rv__mask *mask, struct rv__str json, struct rv__buf *out);

/* Does the text contain a secret? Without memory: yes. */
bool rv__mask_finds(const struct rv__mask *mask, struct rv__str text);

/* A text in pieces. */
struct rv__mask_stream;
int rv__mask_stream_new(struct rv__mask *mask, struct rv__mask_stream **ret, rv_error *err);
void rv__mask_stream_free(struct rv__mask_stream *stream); /* NULL is allowed */
/* Append what is known to be safe by now. Without memory a piece becomes RV__MASK_TEXT. */
void rv__mask_stream_add(struct rv__mask_stream *stream, struct rv__str piece, struct rv__buf *out);
void rv__mask_stream_end(struct rv__mask_stream *stream, struct rv__buf *out);

#endif
