/* duration.c: reads durations such as "1h30m" or "2.5s". */
#include "base/duration.h"

#include <string.h>

/* Reads the unit at the beginning of the text and returns it in ms; 0: there is none. */
static int64_t read_unit(struct rv__str *text)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 } };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t len = strlen(units[i].name);
        if (text->len < len || memcmp(text->at, units[i].name, len) != 0)
            continue;
        text->at += len;
        text->len -= len;
        return units[i].ms;
    }
    return 0;
}

/* Reads a number with up to three decimals, in thousandths. */
static bool read_thousandths(struct rv__str *text, int64_t *ret)
{
    int64_t n = 0;
    size_t digits = 0, decimals = 0;
    bool point = false;
    for (; text->len > 0; text->at++, text->len--) {
        char c = *text->at;
        if (c == '.' && !point && digits > 0) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        if (point && ++decimals > 3)
            return false;
        if (n > RV__DURATION_MAX_MS * 10)
            return false;
        n = n * 10 + (c - '0');
        digits++;
    }
    if (digits == 0 || (point && decimals == 0))
        return false;
    for (; decimals < 3; decimals++)
        n *= 10;
    *ret = n;
    return true;
}

int rv__duration_ms(struct rv__str text, int64_t *ret)
{
    int64_t sum = 0, n, unit;
    bool first = true;
    while (text.len > 0) {
        if (!read_thousandths(&text, &n))
            return RV_EINVAL;
        unit = read_unit(&text);
        if (unit == 0 && first && text.len == 0) /* a bare number */
            unit = 1;
        if (unit == 0 || n / 1000 > RV__DURATION_MAX_MS / unit)
            return RV_EINVAL;
        sum += n / 1000 * unit + n % 1000 * unit / 1000;
        if (sum > RV__DURATION_MAX_MS)
            return RV_EINVAL;
        first = false;
    }
    if (first)
        return RV_EINVAL;
    *ret = sum;
    return RV_OK;
}
