/* say.c: messages of a check with the position of the error, and the end of a check. */
#include "schema/check.h"

#include <stdarg.h>

#include "base/error.h"

const char *rv__quote(struct rv__str text, char out[RV__QUOTED])
{
    size_t len = rv__str_begin(text, RV__SCHEMA_QUOTE).len;
    bool cut = len < text.len;
    for (size_t i = 0; i < len; i++) /* no line breaks, no terminal control */
        out[i] = (char)((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7F ? ' ' : text.at[i]);
    memcpy(out + len, cut ? "…" : "", cut ? sizeof "…" : 1);
    return out;
}

void rv__cut(char *text, size_t room)
{
    size_t len = strlen(text), start = len;
    if (len + 1 < room)
        return;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start > 0 && (unsigned char)text[start - 1] >= 0x80) /* the first byte of a character */
        start--;
    else
        start = len;
    if (!rv__str_utf8((struct rv__str){ text + start, len - start }))
        text[start] = '\0';
}

/* "/a/0 must be …"; the root has no position. */
static void capture(struct rv__check *c, const struct rv__value *v, struct rv__str key,
                    const char *message)
{
    char quoted[RV__QUOTED] = "";
    struct rv__buf place;
    if (c->captured[0] != '\0')
        return;
    rv__buf_init(&place, RV__JSON_MAX_BYTES);
    rv__value_pointer(c->captured_from, v->at, &place);
    if (!rv__str_none(key))
        rv__buf_json_pointer(&place, key);
    rv__quote(rv__buf_view(&place), quoted);
    rv__buf_done(&place);
    int most = (int)(sizeof c->captured - sizeof quoted - 1);
    snprintf(c->captured, sizeof c->captured, "%s%s%.*s", quoted, *quoted ? " " : "", most,
             message);
    rv__cut(c->captured, strlen(c->captured) + 1); /* the limit may have cut a character */
}

static bool say(struct rv__check *c, const struct rv__value *v, struct rv__str key,
                const char *message)
{
    struct rv__buf place;
    if (c->mode == RV__CHECK_CAPTURE) {
        capture(c, v, key, message);
        return false;
    }
    rv__buf_init(&place, 2 * (size_t)RV__JSON_MAX_BYTES);
    if (c->bad->count < RV__VIOLATIONS_MAX) { /* the others are counted only */
        rv__value_pointer(&c->instance, v->at, &place);
        if (!rv__str_none(key))
            rv__buf_json_pointer(&place, key);
    }
    if (place.rc == RV_OK)
        rv__violations_add(c->bad, rv__buf_view(&place), "%s", message);
    else
        c->bad->rc = RV_ENOMEM;
    rv__buf_done(&place);
    return false;
}

bool rv__check_say(struct rv__check *c, const struct rv__value *v, const char *fmt, ...)
{
    char message[480];
    va_list args;
    if (c->mode == RV__CHECK_QUIET)
        return false;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    rv__cut(message, sizeof message);
    return say(c, v, (struct rv__str){ NULL, 0 }, message);
}

bool rv__say_missing(struct rv__check *c, const struct rv__value *v, struct rv__str key,
                     const char *why)
{
    return c->mode != RV__CHECK_QUIET ? say(c, v, key, why) : false;
}

bool rv__stop(struct rv__check *c, int rc, const char *fmt, ...)
{
    va_list args;
    if (c->rc < 0)
        return false;
    va_start(args, fmt);
    c->rc = rv__vfail(c->err, rc, fmt, args);
    va_end(args);
    return false;
}

bool rv__step(struct rv__check *c)
{
    if (c->steps_left == 0)
        return rv__stop(c, RV_ETOOBIG,
                        "checking this value against the schema takes too many steps");
    c->steps_left--;
    return true;
}

bool rv__matches(struct rv__check *c, const struct rv__pattern *pattern, struct rv__str text)
{
    char quoted[RV__QUOTED];
    if (!rv__step(c))
        return false;
    int rc = rv__pattern_match(pattern, &c->matcher, text);
    if (rc == RV_ENOMEM)
        return rv__stop(c, rc, "out of memory");
    if (rc < 0)
        return rv__stop(c, rc, "the pattern '%s' takes too long to match a text of %zu bytes",
                        rv__quote(pattern->source, quoted), text.len);
    return rc == 1;
}
