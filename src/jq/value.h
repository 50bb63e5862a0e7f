/* value.h: JSON text to jq's values and back. For the thread that evaluates. */
#ifndef RV_JQ_VALUE_H
#define RV_JQ_VALUE_H

#include <jq.h>

#include "base/str.h"

struct rv__arena;

/* The value of a text that passed rv__json_check(); *bytes is about the memory it takes. `scratch` is
 * used for strings with escapes, and is reset. RV_ENOMEM (our own memory: libjq ends the process
 * where malloc gives it none). */
int rv__value_parse(struct rv__str json, struct rv__arena *scratch, jv *ret, size_t *bytes);

/* Append the value's text, compact. Does not take `value`. RV_ETOOBIG: nested deeper than
 * RV__JSON_VALUE_DEPTH; the buffer remembers its own failures. */
int rv__value_write(jv value, struct rv__buf *out, rv_error *err);

#endif
