/* format.c: checks the formats of strings, each by its RFC. ASCII only. */
#include "schema/format.h"

#include "base/json.h"
#include "schema/pattern.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static bool is_alnum(char c)
{
    return is_digit(c) || is_alpha(c);
}

/* Is it one of these? NUL never is. */
static bool is_in(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static struct rv__str from(struct rv__str s, size_t at)
{
    return (struct rv__str){ s.at + at, s.len - at };
}

static struct rv__str upto(struct rv__str s, size_t len)
{
    return (struct rv__str){ s.at, len };
}

/* Where `c` is first; s.len if it is not there. */
static size_t find(struct rv__str s, char c)
{
    const char *at = s.len ? memchr(s.at, c, s.len) : NULL;
    return at ? (size_t)(at - s.at) : s.len;
}

/* ------------------------------------------------------------------------------------------
 * Time: RFC 3339 */

/* Does `s` look like `form`, in which 9 stands for any digit? */
static bool has_form(struct rv__str s, const char *form)
{
    size_t len = strlen(form);
    if (s.len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (form[i] == '9' ? !is_digit(s.at[i]) : s.at[i] != form[i])
            return false;
    return true;
}

static int two(struct rv__str s, size_t at)
{
    return (s.at[at] - '0') * 10 + (s.at[at + 1] - '0');
}

static bool is_date(struct rv__str s)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    if (s.len != 10 || !has_form(s, "9999-99-99"))
        return false;
    int year = two(s, 0) * 100 + two(s, 2), month = two(s, 5), day = two(s, 8);
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month >= 1 && month <= 12 && day >= 1 &&
           day <= days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* Z, or ±hh:mm: minutes to be taken off for UTC. */
static bool read_offset(struct rv__str s, int *minutes)
{
    *minutes = 0;
    if (s.len == 1)
        return *s.at == 'Z' || *s.at == 'z';
    if (s.len != 6 || (*s.at != '+' && *s.at != '-') || !has_form(from(s, 1), "99:99"))
        return false;
    int hour = two(s, 1), minute = two(s, 4);
    *minutes = (hour * 60 + minute) * (*s.at == '+' ? 1 : -1);
    return hour <= 23 && minute <= 59;
}

static bool is_time(struct rv__str s)
{
    enum { DAY = 24 * 60 };
    int offset;
    size_t end = 8;
    if (!has_form(s, "99:99:99"))
        return false;
    if (end < s.len && s.at[end] == '.') {
        for (end++; end < s.len && is_digit(s.at[end]); end++)
            ;
        if (end == 9)
            return false;
    }
    int hour = two(s, 0), minute = two(s, 3), second = two(s, 6);
    if (hour > 23 || minute > 59 || second > 60 || !read_offset(from(s, end), &offset))
        return false;
    /* A leap second is the last one of a day in UTC. */
    return second < 60 || (hour * 60 + minute - offset + 2 * DAY) % DAY == DAY - 1;
}

static bool is_date_time(struct rv__str s)
{
    return s.len > 11 && (s.at[10] == 'T' || s.at[10] == 't') && is_date(upto(s, 10)) &&
           is_time(from(s, 11));
}

/* ------------------------------------------------------------------------------------------
 * Addresses: RFC 2673 §3.2, RFC 4291 §2.2, RFC 1123 §2.1, RFC 5321 §4.1.2 */

static bool is_ipv4(struct rv__str s)
{
    size_t at = 0;
    for (int part = 0; part < 4; part++) {
        int number = 0;
        size_t first = at;
        for (; at < s.len && is_digit(s.at[at]) && at - first < 4; at++)
            number = number * 10 + (s.at[at] - '0');
        if (at == first || number > 255 || (at - first > 1 && s.at[first] == '0'))
            return false;
        if (part < 3 && (at == s.len || s.at[at++] != '.'))
            return false;
    }
    return at == s.len;
}

static bool is_ipv6(struct rv__str s)
{
    size_t at = 0, groups = 0;
    bool gap = false;
    if (s.len >= 2 && s.at[0] == ':' && s.at[1] == ':') {
        gap = true;
        at = 2;
    }
    while (at < s.len) {
        size_t first = at;
        while (at < s.len && is_hex(s.at[at]) && at - first < 5)
            at++;
        if (at < s.len && s.at[at] == '.') { /* the last 32 bits as an IPv4 address */
            groups += 2;
            return is_ipv4(from(s, first)) && (gap ? groups <= 7 : groups == 8);
        }
        if (at == first || at - first > 4)
            return false;
        groups++;
        if (at == s.len)
            break;
        if (s.at[at++] != ':' || at == s.len)
            return false;
        if (s.at[at] == ':') {
            if (gap)
                return false;
            gap = true;
            at++;
        }
    }
    return gap ? groups <= 7 : groups == 8;
}

static bool is_hostname(struct rv__str s)
{
    if (s.len == 0 || s.len > 253)
        return false;
    for (size_t first = 0; first <= s.len;) {
        struct rv__str label = from(s, first);
        label.len = find(label, '.');
        if (label.len == 0 || label.len > 63 || label.at[0] == '-' ||
            label.at[label.len - 1] == '-')
            return false;
        for (size_t i = 0; i < label.len; i++)
            if (!is_alnum(label.at[i]) && label.at[i] != '-')
                return false;
        first += label.len + 1;
    }
    return true;
}

static bool is_atom(char c)
{
    return is_alnum(c) || is_in(c, "!#$%&'*+-/=?^_`{|}~");
}

/* a.b or "any text": how much of `s` it is, 0 if it is neither. */
static size_t local_part(struct rv__str s)
{
    size_t at = 0;
    if (s.len > 0 && s.at[0] == '"') {
        for (at = 1; at < s.len && s.at[at] != '"'; at++) {
            if (s.at[at] == '\\')
                at++;
            if (at == s.len || s.at[at] < ' ' || s.at[at] > '~')
                return 0;
        }
        return at < s.len ? at + 1 : 0;
    }
    while (at < s.len && (is_atom(s.at[at]) || (s.at[at] == '.' && at > 0 && s.at[at - 1] != '.')))
        at++;
    return at > 0 && s.at[at - 1] != '.' ? at : 0;
}

static bool is_email(struct rv__str s)
{
    size_t local = local_part(s);
    if (local == 0 || local == s.len || s.at[local] != '@')
        return false;
    struct rv__str domain = from(s, local + 1);
    if (domain.len < 2 || domain.at[0] != '[' || domain.at[domain.len - 1] != ']')
        return is_hostname(domain);
    domain = upto(from(domain, 1), domain.len - 2);
    if (domain.len > 5 && memcmp(domain.at, "IPv6:", 5) == 0)
        return is_ipv6(from(domain, 5));
    return is_ipv4(domain);
}

/* ------------------------------------------------------------------------------------------
 * URI: RFC 3986 */

/* Only unreserved characters, sub-delims, escapes, and those of `more`? */
static bool is_made_of(struct rv__str s, const char *more)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] == '%') {
            if (s.len - i < 3 || !is_hex(s.at[i + 1]) || !is_hex(s.at[i + 2]))
                return false;
            i += 2;
        } else if (!is_alnum(s.at[i]) && !is_in(s.at[i], "-._~!$&'()*+,;=") &&
                   !is_in(s.at[i], more)) {
            return false;
        }
    }
    return true;
}

static bool is_port(struct rv__str s) /* with its colon, or nothing */
{
    for (size_t i = 1; i < s.len; i++)
        if (!is_digit(s.at[i]))
            return false;
    return s.len == 0 || s.at[0] == ':';
}

/* v1.anything: RFC 3986's IPvFuture */
static bool is_future_address(struct rv__str s)
{
    size_t dot = find(s, '.');
    if (s.len < 4 || (s.at[0] | 0x20) != 'v' || dot < 2 || dot + 1 >= s.len)
        return false;
    for (size_t i = 1; i < dot; i++)
        if (!is_hex(s.at[i]))
            return false;
    return find(s, '%') == s.len && is_made_of(from(s, dot + 1), ":");
}

static bool is_authority(struct rv__str s)
{
    size_t at = find(s, '@');
    if (at < s.len) {
        if (!is_made_of(upto(s, at), ":"))
            return false;
        s = from(s, at + 1);
    }
    if (s.len > 0 && s.at[0] == '[') {
        size_t close = find(s, ']');
        if (close == s.len || !is_port(from(s, close + 1)))
            return false;
        struct rv__str inner = upto(from(s, 1), close - 1);
        return is_ipv6(inner) || is_future_address(inner);
    }
    size_t colon = find(s, ':');
    return is_made_of(upto(s, colon), "") && is_port(from(s, colon));
}

static bool is_uri(struct rv__str s)
{
    size_t colon = find(s, ':');
    if (colon == s.len || colon == 0 || !is_alpha(s.at[0]))
        return false;
    for (size_t i = 1; i < colon; i++)
        if (!is_alnum(s.at[i]) && !is_in(s.at[i], "+-."))
            return false;
    s = from(s, colon + 1);

    size_t hash = find(s, '#');
    if (hash < s.len && !is_made_of(from(s, hash + 1), ":@/?"))
        return false;
    s = upto(s, hash);
    size_t query = find(s, '?');
    if (query < s.len && !is_made_of(from(s, query + 1), ":@/?"))
        return false;
    s = upto(s, query);

    if (s.len >= 2 && s.at[0] == '/' && s.at[1] == '/') {
        s = from(s, 2);
        size_t slash = find(s, '/');
        if (!is_authority(upto(s, slash)))
            return false;
        s = from(s, slash);
    }
    return is_made_of(s, ":@/");
}

static bool is_uuid(struct rv__str s)
{
    if (s.len != 36)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s.at[i] != '-' : !is_hex(s.at[i]))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------ */

static const struct rv__format formats[] = {
    { "date", "a date (2026-01-31)", is_date },
    { "date-time", "a date and time (2026-01-31T23:59:00Z)", is_date_time },
    { "email", "an e-mail address", is_email },
    { "hostname", "a host name", is_hostname },
    { "ipv4", "an IPv4 address (192.0.2.1)", is_ipv4 },
    { "ipv6", "an IPv6 address (2001:db8::1)", is_ipv6 },
    { "json-pointer", "a JSON pointer (/a/0)", rv__json_pointer_valid },
    { "regex", "a regular expression", NULL },
    { "time", "a time with its offset (23:59:00Z)", is_time },
    { "uri", "a URI (https://example.com/a)", is_uri },
    { "uuid", "a UUID", is_uuid },
};

const struct rv__format *rv__format_find(struct rv__str name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (rv__str_is(name, formats[i].name))
            return &formats[i];
    return NULL;
}

int rv__format_matches(const struct rv__format *format, struct rv__str s)
{
    if (format->matches != NULL)
        return format->matches(s);
    int rc = rv__pattern_valid(s);
    return rc == RV_ENOMEM ? rc : rc == RV_OK;
}
