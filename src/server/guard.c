/* guard.c: is a request addressed to us, and does a browser send it from our own pages?
 *
 * Two attacks need no token, only a page that is opened in a browser on this machine. DNS rebinding: the page's
 * host name is changed to our address, so that its scripts may read our answers. So a request must use an address,
 * or a name of this machine, as its host. Cross-site requests: the page posts to us, with the browser's cookies. So
 * a request that changes something, or that a script of another origin makes, must come from our own pages;
 * browsers say so in headers (Origin, Sec-Fetch-Site) that a script cannot change. Other programs send neither. */
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "server/transport.h"

static bool same_word(struct rv__str a, const char *b)
{
    return a.len == strlen(b) && strncasecmp(a.at, b, a.len) == 0;
}

static bool ends_in(struct rv__str s, const char *tail)
{
    size_t len = strlen(tail);
    return s.len > len && strncasecmp(s.at + s.len - len, tail, len) == 0;
}

/* NAME, NAME:PORT, [V6], [V6]:PORT. The name without brackets; "none": malformed. */
static struct rv__str host_name(struct rv__str host, bool *is_v6)
{
    static const struct rv__str none = { NULL, 0 };
    struct rv__str name = host, rest;
    *is_v6 = host.len > 0 && host.at[0] == '[';
    if (*is_v6) {
        const char *end = memchr(host.at, ']', host.len);
        if (end == NULL)
            return none;
        name = (struct rv__str){ host.at + 1, (size_t)(end - host.at) - 1 };
        rest = (struct rv__str){ end + 1, host.len - name.len - 2 };
    } else {
        const char *colon = memchr(host.at, ':', host.len);
        name.len = colon != NULL ? (size_t)(colon - host.at) : host.len;
        rest = (struct rv__str){ host.at + name.len, host.len - name.len };
    }
    if (name.len == 0 || rest.len > 6 || rest.len == 1 || (rest.len > 0 && rest.at[0] != ':'))
        return none;
    for (size_t i = 1; i < rest.len; i++)
        if (rest.at[i] < '0' || rest.at[i] > '9')
            return none;
    return name;
}

static bool is_address(struct rv__str name, bool v6)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    if (name.len >= sizeof text)
        return false;
    memcpy(text, name.at, name.len);
    text[name.len] = '\0';
    return inet_pton(v6 ? AF_INET6 : AF_INET, text, bytes) == 1;
}

bool rv__guard_host(struct rv__str host, const char *const *names)
{
    bool v6;
    struct rv__str name = host_name(host, &v6);
    if (rv__str_none(name))
        return false;
    if (is_address(name, v6))
        return true;
    if (v6)
        return false;
    if (name.at[name.len - 1] == '.') /* a fully qualified name */
        name.len--;
    if (same_word(name, "localhost") || ends_in(name, ".localhost"))
        return true;
    for (; names != NULL && *names != NULL; names++)
        if (same_word(name, *names))
            return true;
    return false;
}

/* The scheme is not compared: behind a TLS proxy the browser's differs from ours. */
bool rv__guard_same_origin(struct rv__str origin, struct rv__str host)
{
    static const char *const schemes[] = { "http://", "https://" };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t len = strlen(schemes[i]);
        if (origin.len == len + host.len && strncasecmp(origin.at, schemes[i], len) == 0 &&
            strncasecmp(origin.at + len, host.at, host.len) == 0)
            return true;
    }
    return false;
}

const char *rv__guard_judge(const struct rv__guard *q, const char *const *names)
{
    if (rv__str_none(q->host) || !rv__guard_host(q->host, names))
        return "this server does not go by that name (header Host): call it by its address or by "
               "localhost, or start it with --allow-host NAME";
    if (!rv__str_none(q->origin) && (q->changes || q->api) &&
        !rv__guard_same_origin(q->origin, q->host))
        return "this request comes from a page of another site (header Origin)";
    if (!rv__str_none(q->fetch_site) && (q->changes || q->api) &&
        !same_word(q->fetch_site, "same-origin") && !same_word(q->fetch_site, "none") &&
        (q->changes || !same_word(q->fetch_mode, "navigate")))
        return "this request comes from a page of another site (header Sec-Fetch-Site)";
    return NULL;
}
