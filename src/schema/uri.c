/* uri.c: resolves a URI reference (RFC 3986 §5.2), without the fragment, which resolve.c handles. */
#include "schema/uri.h"

#include "base/arena.h"

struct parts {
    struct rv__str scheme, authority, path, query; /* "none": not there */
};

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static struct rv__str slice(const char *from, const char *to)
{
    return (struct rv__str){ from, (size_t)(to - from) };
}

struct rv__str rv__uri_cut_fragment(struct rv__str *uri)
{
    const char *hash = uri->len ? memchr(uri->at, '#', uri->len) : NULL;
    if (hash == NULL)
        return (struct rv__str){ NULL, 0 };
    struct rv__str fragment = slice(hash + 1, uri->at + uri->len);
    uri->len = (size_t)(hash - uri->at);
    return fragment;
}

static struct parts split(struct rv__str uri)
{
    struct parts p = { .path = { "", 0 } };
    if (uri.len == 0)
        return p;
    const char *at = uri.at, *end = uri.at + uri.len, *c = at;
    if (is_alpha(*c)) {
        while (c < end &&
               (is_alpha(*c) || (*c >= '0' && *c <= '9') || *c == '+' || *c == '-' || *c == '.'))
            c++;
        if (c < end && *c == ':') {
            p.scheme = slice(at, c);
            at = c + 1;
        }
    }
    if (end - at >= 2 && at[0] == '/' && at[1] == '/') {
        for (c = at + 2; c < end && *c != '/' && *c != '?'; c++)
            ;
        p.authority = slice(at + 2, c);
        at = c;
    }
    c = at < end ? memchr(at, '?', (size_t)(end - at)) : NULL;
    p.path = slice(at, c ? c : end);
    if (c != NULL)
        p.query = slice(c + 1, end);
    return p;
}

/* Remove "." and ".." from `path`, in place; returns the new length. */
static size_t remove_dots(char *path, size_t len)
{
    size_t in = 0, out = 0;
    while (in < len && path[in] == '.' &&
           (path[in + 1] == '/' || (path[in + 1] == '.' && path[in + 2] == '/')))
        in += path[in + 1] == '/'
                  ? 2
                  : 3; /* nothing is above the root; `path` has room after its end */
    bool relative = len > 0 && path[0] != '/';
    while (in < len) {
        size_t next = in + 1; /* a segment: from its slash to the next */
        while (next < len && path[next] != '/')
            next++;
        struct rv__str segment = { path + in, next - in };
        if (rv__str_is(segment, "/.") || rv__str_is(segment, "/..")) {
            if (segment.len == 3) {
                while (out > 0 && path[out - 1] != '/')
                    out--;
                out -= out > 0;
            }
            if (next == len)
                path[out++] = '/';
        } else if (!relative || (!rv__str_is(segment, ".") && !rv__str_is(segment, ".."))) {
            memmove(path + out, segment.at, segment.len);
            out += segment.len;
        }
        in = next;
    }
    return out;
}

static char *put_str(char *at, struct rv__str s)
{
    if (s.len > 0)
        memcpy(at, s.at, s.len);
    return at + s.len;
}

/* Write `s` between two marks; nothing if it does not exist. */
static char *put(char *at, const char *before, struct rv__str s, const char *behind)
{
    if (rv__str_none(s))
        return at;
    at = put_str(at, rv__str(before));
    at = put_str(at, s);
    return put_str(at, rv__str(behind));
}

/* Write the reference's path after the base's last slash. */
static char *put_merged(char *at, const struct parts *base, struct rv__str path)
{
    struct rv__str folder = base->path;
    while (folder.len > 0 && folder.at[folder.len - 1] != '/')
        folder.len--;
    if (!rv__str_none(base->authority) && base->path.len == 0)
        at = put_str(at, rv__str("/"));
    at = put_str(at, folder);
    return put_str(at, path);
}

int rv__uri_resolve(struct rv__str base, struct rv__str reference, struct rv__arena *arena,
                    struct rv__str *ret)
{
    if (reference.len == 0) {
        *ret = base;
        return RV_OK;
    }
    struct parts b = split(base), r = split(reference);
    size_t most = base.len + reference.len + 8; /* room for the marks, and to look ahead */
    char *text = rv__arena_zalloc(arena, 1, most), *at, *path;
    if (text == NULL)
        return RV_ENOMEM;

    bool own = !rv__str_none(r.scheme), own_authority = own || !rv__str_none(r.authority);
    at = put(text, "", own ? r.scheme : b.scheme, ":");
    at = put(at, "//", own_authority ? r.authority : b.authority, "");
    path = at;
    if (own_authority || (r.path.len > 0 && *r.path.at == '/'))
        at = put(at, "", r.path, "");
    else if (r.path.len == 0)
        at = put(at, "", b.path, "");
    else
        at = put_merged(at, &b, r.path);
    at = path + remove_dots(path, (size_t)(at - path));
    at = put(at, "?",
             rv__str_none(r.query) && !own_authority && r.path.len == 0 ? b.query : r.query, "");
    *ret = slice(text, at);
    return RV_OK;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool rv__uri_decode(struct rv__str text, struct rv__arena *arena, struct rv__str *ret)
{
    char *out = rv__arena_alloc(arena, text.len + 1);
    size_t len = 0;
    if (out == NULL)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] != '%') {
            out[len++] = text.at[i];
            continue;
        }
        if (text.len - i < 3 || hex(text.at[i + 1]) < 0 || hex(text.at[i + 2]) < 0)
            return false;
        out[len++] = (char)(hex(text.at[i + 1]) * 16 + hex(text.at[i + 2]));
        i += 2;
    }
    *ret = (struct rv__str){ out, len };
    return true;
}
