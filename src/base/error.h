/* error.h: reporting errors inside Rival. The codes are public: rival/base.h. */
#ifndef RV_BASE_ERROR_H
#define RV_BASE_ERROR_H

#include <stdarg.h>
#include <rival/base.h>

/* Write code and message to *err (NULL: nowhere) and return the code, for `return rv__fail(err, RV_EINVAL, "…")`. A
 * message that is too long is cut at a UTF-8 boundary. */
int rv__fail(rv_error *err, int code, const char *fmt, ...) RV_PRINTF(3, 4);
int rv__vfail(rv_error *err, int code, const char *fmt, va_list args) RV_PRINTF(3, 0);

/* The same for a text from elsewhere (a step's, jq's). If it is too long, its end is used, which usually says most:
 * "…" and the last bytes. */
int rv__fail_text(rv_error *err, int code, const char *text);

/* RV_ENOMEM with its general text: there may be no memory for a longer one. */
int rv__nomem(rv_error *err);

#endif
