/* error.h: how code inside Rival fails. The codes are public: rival/base.h. */
#ifndef RV_BASE_ERROR_H
#define RV_BASE_ERROR_H

#include <stdarg.h>
#include <rival/base.h>

/* Write code and message into *err (NULL: nowhere) and return the code, so that a failing
 * function ends in `return rv__fail(err, RV_EINVAL, "…")`. A message too long for the struct is
 * cut at a UTF-8 boundary. */
int rv__fail(rv_error *err, int code, const char *fmt, ...) RV_PRINTF(3, 4);
int rv__vfail(rv_error *err, int code, const char *fmt, va_list args) RV_PRINTF(3, 0);

/* The same with a text that is not our own (a step's, jq's): where it is too long, what says most is at
 * its end, and that is kept: "…" and the last bytes. */
int rv__fail_text(rv_error *err, int code, const char *text);

/* RV_ENOMEM with its general text: there may be no memory to say more. */
int rv__nomem(rv_error *err);

#endif
