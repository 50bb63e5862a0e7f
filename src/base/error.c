/* error.c: codes, names and texts from the one list in rival/base.h. */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

const char *rv_strerror(int code)
{
    switch (code) {
    case RV_OK: return "no error";
#define X(name, number, text) \
    case RV_##name: return text;
        RV_ERR_MAP(X)
#undef X
    }
    return "unknown error";
}

const char *rv_errname(int code)
{
    switch (code) {
    case RV_OK: return "RV_OK";
#define X(name, number, text) \
    case RV_##name: return "RV_" #name;
        RV_ERR_MAP(X)
#undef X
    }
    return NULL;
}

const char *rv_version(void)
{
    return RV_VERSION;
}

/* Drop a UTF-8 sequence that the cut at the end of the buffer left unfinished. */
static void trim_partial_utf8(char *text, size_t len)
{
    size_t start = len;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0)
        return;

    unsigned char lead = (unsigned char)text[start - 1];
    size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (len - (start - 1) < want)
        text[start - 1] = '\0';
}

int rv__vfail(rv_error *err, int code, const char *fmt, va_list args)
{
    if (err == NULL)
        return code;

    err->code = code;
    int n = vsnprintf(err->message, sizeof err->message, fmt, args);
    if (n < 0)
        err->message[0] = '\0';
    else if ((size_t)n >= sizeof err->message)
        trim_partial_utf8(err->message, sizeof err->message - 1);
    return code;
}

int rv__fail(rv_error *err, int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    rv__vfail(err, code, fmt, args);
    va_end(args);
    return code;
}

int rv__fail_text(rv_error *err, int code, const char *text)
{
    static const char cut[] = "…";
    size_t room = err != NULL ? sizeof err->message - 1 : 0;
    struct rv__str whole = rv__str(text);
    if (err == NULL || whole.len <= room)
        return rv__fail(err, code, "%s", text);
    struct rv__str end = rv__str_end(whole, room - (sizeof cut - 1));
    return rv__fail(err, code, "%s%.*s", cut, RV__ARG(end));
}

int rv__nomem(rv_error *err)
{
    return rv__fail(err, RV_ENOMEM, "%s", rv_strerror(RV_ENOMEM));
}
