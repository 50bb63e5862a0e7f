/* mask.c: see mask.h.
 *
 * Two parts. The *automaton* (Aho-Corasick) finds any of the patterns in a sequence of bytes. The patterns
 * are each secret literally, with JSON's escapes, and as base64. The *views* are five ways to read a text,
 * each a sequence of bytes for the same automaton: literally; with %41 decoded; with + for a space as well;
 * with \u0041 decoded; and without the line ends that fold base64. So a secret is found whichever of its
 * characters are escaped, and base64 is found in a URL.
 *
 * A view remembers where in the text its last bytes came from (a ring as long as the longest pattern), so
 * that a match is an interval of the text. Overlapping intervals are merged.
 *
 * The cost is linear: per byte of text a view takes a bounded number of steps, plus steps along failure
 * links, at most one per byte in total. A stream holds back at most the longest pattern with each byte in
 * its longest form (\u0041). */
#include "base/mask.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

/* ----------------------------------------------------------------------------- the automaton --- */

/* A state of the automaton: a node in the tree of all patterns. Number 0 is the root. Most have one child, so
 * children are a list. */
struct place {
    uint32_t fail; /* failure link: the longest proper suffix that is a prefix of a pattern */
    uint32_t child, next; /* the first below it; the next beside it; 0: none */
    uint32_t depth;
    uint32_t found; /* length of the longest pattern that ends here; 0: none does */
    unsigned char byte;
};

struct rv__mask {
    atomic_uint refs;
    struct place *places;
    uint32_t count, cap;
    uint32_t first[256]; /* the children of the root; 0: none */
    uint32_t longest;    /* pattern, in bytes */
};

static uint32_t child_of(const struct rv__mask *mask, uint32_t at, unsigned char byte)
{
    if (at == 0)
        return mask->first[byte];
    uint32_t child = mask->places[at].child;
    while (child != 0 && mask->places[child].byte != byte)
        child = mask->places[child].next;
    return child;
}

static uint32_t step(const struct rv__mask *mask, uint32_t at, unsigned char byte)
{
    uint32_t child;
    while ((child = child_of(mask, at, byte)) == 0 && at != 0)
        at = mask->places[at].fail;
    return child;
}

static int add_place(struct rv__mask *mask, uint32_t at, unsigned char byte, uint32_t *ret)
{
    if (mask->count == mask->cap) {
        uint32_t cap = mask->cap != 0 ? mask->cap * 2 : 256;
        struct place *places = rv__realloc(mask->places, cap * sizeof *places);
        if (places == NULL)
            return RV_ENOMEM;
        mask->places = places;
        mask->cap = cap;
    }
    uint32_t number = mask->count++;
    struct place *place = &mask->places[number];
    *place = (struct place){ .depth = mask->places[at].depth + 1, .byte = byte };
    if (at == 0) {
        mask->first[byte] = number;
    } else {
        place->next = mask->places[at].child;
        mask->places[at].child = number;
    }
    *ret = number;
    return RV_OK;
}

static int add_pattern(struct rv__mask *mask, struct rv__str pattern)
{
    uint32_t at = 0;
    for (size_t i = 0; i < pattern.len; i++) {
        unsigned char byte = (unsigned char)pattern.at[i];
        uint32_t next = child_of(mask, at, byte);
        if (next == 0 && add_place(mask, at, byte, &next) < 0)
            return RV_ENOMEM;
        at = next;
    }
    mask->places[at].found = (uint32_t)pattern.len;
    if (pattern.len > mask->longest)
        mask->longest = (uint32_t)pattern.len;
    return RV_OK;
}

/* Set the failure links, breadth first: a link leads to a place nearer the root, which is complete. */
static int link_places(struct rv__mask *mask)
{
    uint32_t *queue = rv__alloc(mask->count * sizeof *queue), head = 0, tail = 0;
    if (queue == NULL)
        return RV_ENOMEM;
    for (int byte = 0; byte < 256; byte++)
        if (mask->first[byte] != 0)
            queue[tail++] = mask->first[byte];
    while (head < tail) {
        uint32_t at = queue[head++];
        struct place *place = &mask->places[at];
        if (place->found == 0)
            place->found = mask->places[place->fail].found;
        for (uint32_t child = place->child; child != 0; child = mask->places[child].next) {
            mask->places[child].fail = step(mask, place->fail, mask->places[child].byte);
            queue[tail++] = child;
        }
    }
    rv__free(queue);
    return RV_OK;
}

/* The base64 of the secret after `before` other bytes: only the characters that do not depend on the bytes
 * before and after it. `url`: with - and _ for + and /. */
static void write_base64(struct rv__str secret, unsigned before, bool url, struct rv__buf *out)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char url_letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *alphabet = url ? url_letters : letters;
    size_t bit = (6 - 8 * before % 6) % 6; /* bits of the secret before the first whole character */
    for (; bit + 6 <= 8 * secret.len; bit += 6) {
        size_t byte = bit / 8, shift = bit % 8;
        unsigned two = (unsigned)(unsigned char)secret.at[byte] << 8;
        if (byte + 1 < secret.len)
            two |= (unsigned char)secret.at[byte + 1];
        unsigned value = two >> (10 - shift) & 63;
        rv__buf_char(out, alphabet[value]);
    }
}

static int add_secret(struct rv__mask *mask, struct rv__str secret)
{
    struct rv__buf text;
    int rc = add_pattern(mask, secret);
    rv__buf_init(&text, (size_t)8 * RV__MASK_MAX_BYTES);
    rv__buf_json_str(&text, secret);
    if (rc == RV_OK && text.rc == RV_OK && text.len > secret.len + 2)
        rc = add_pattern(mask, (struct rv__str){ text.text + 1, text.len - 2 });
    for (unsigned i = 0; rc == RV_OK && text.rc == RV_OK && i < 6; i++) {
        rv__buf_reset(&text);
        write_base64(secret, i / 2, i % 2 != 0, &text);
        rc = text.rc != RV_OK ? text.rc : add_pattern(mask, rv__buf_view(&text));
    }
    rc = rc == RV_OK ? text.rc : rc;
    rv__buf_done(&text);
    return rc;
}

int rv__mask_new(const struct rv__str *secrets, size_t count, struct rv__mask **ret, rv_error *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (secrets[i].len < RV__MASK_SHORTEST)
            return rv__fail(err, RV_EINVAL, "a secret must have %d bytes or more",
                            RV__MASK_SHORTEST);
        bytes += secrets[i].len;
        if (secrets[i].len > RV__MASK_MAX_BYTES || bytes > RV__MASK_MAX_BYTES)
            return rv__fail(err, RV_ETOOBIG, "the secrets have more than %d bytes together",
                            RV__MASK_MAX_BYTES);
    }
    struct rv__mask *mask = rv__zalloc(1, sizeof *mask);
    uint32_t root;
    if (mask == NULL)
        return rv__nomem(err);
    atomic_init(&mask->refs, 1);
    mask->places = rv__alloc(256 * sizeof *mask->places);
    mask->cap = mask->places != NULL ? 256 : 0;
    int rc = mask->places != NULL ? RV_OK : RV_ENOMEM;
    if (rc == RV_OK) {
        root = mask->count++;
        mask->places[root] = (struct place){ 0 };
    }
    for (size_t i = 0; rc == RV_OK && i < count; i++)
        rc = add_secret(mask, secrets[i]);
    if (rc == RV_OK)
        rc = link_places(mask);
    if (rc < 0) {
        rv__mask_unref(mask);
        return rv__nomem(err);
    }
    *ret = mask;
    return RV_OK;
}

struct rv__mask *rv__mask_ref(struct rv__mask *mask)
{
    if (mask != NULL)
        atomic_fetch_add_explicit(&mask->refs, 1, memory_order_relaxed);
    return mask;
}

void rv__mask_unref(struct rv__mask *mask)
{
    if (mask == NULL || atomic_fetch_sub_explicit(&mask->refs, 1, memory_order_acq_rel) != 1)
        return;
    rv__free(mask->places);
    rv__free(mask);
}

/* --------------------------------------------------------------------------------- the views --- */

enum { LITERAL, PERCENT, FORM, ESCAPES, FOLDED, VIEWS };

enum {
    WIDEST_ESCAPE = 12, /* "\ud83d\ude00" */
    FOLDED_AFTER = 60,  /* characters of base64: lines of it are folded at 64 or 76 */
    LINE_END_BYTES = 2, /* \r\n; an empty line ends it */
};

struct view {
    uint32_t at;       /* its place in the automaton */
    uint64_t count;    /* bytes that it fed to it */
    uint64_t *origins; /* where the last of them begin in the text: a ring */
    uint64_t open_at;  /* where an unfinished escape begins, */
    uint32_t open_len; /* and how much of it was read; 0: there is none */
    char open[WIDEST_ESCAPE];
    uint32_t run;   /* FOLDED: characters of base64 in a row, as far as that matters, */
    uint32_t ended; /* and bytes of line ends since */
};

struct interval {
    uint64_t from, to;
};

struct search {
    const struct rv__mask *mask;
    uint64_t ring; /* size of the rings, less 1 */
    uint64_t *origins;
    uint64_t at; /* bytes of the text so far */
    struct view views[VIEWS];
    struct interval *found; /* what to hide: sorted, not overlapping */
    size_t count, cap;
    bool wakes[256]; /* bytes that start something in an idle view */
    int rc;          /* RV_ENOMEM */
};

static int search_init(struct search *s, const struct rv__mask *mask)
{
    uint64_t size = 16;
    while (size < mask->longest)
        size *= 2;
    *s = (struct search){ .mask = mask, .ring = size - 1 };
    s->origins = rv__alloc(size * VIEWS * sizeof *s->origins);
    if (s->origins == NULL)
        return RV_ENOMEM;
    for (int v = 0; v < VIEWS; v++)
        s->views[v].origins = s->origins + size * (uint64_t)v;
    for (int byte = 0; byte < 256; byte++)
        s->wakes[byte] = mask->first[byte] != 0;
    s->wakes['%'] = s->wakes['\\'] = true;
    s->wakes['+'] |= mask->first[' '] != 0;
    return RV_OK;
}

static void search_done(struct search *s)
{
    rv__free(s->origins);
    rv__free(s->found);
}

/* Insert it in order, and merge. A view in an unfinished escape is a few bytes behind the others, so the
 * interval belongs among the last two or three. */
static void add_interval(struct search *s, uint64_t from, uint64_t to)
{
    size_t at = s->count;
    while (at > 0 && s->found[at - 1].from >= to)
        at--;
    size_t after = at;
    for (; at > 0 && s->found[at - 1].to > from; at--) {
        if (s->found[at - 1].from < from)
            from = s->found[at - 1].from;
        if (s->found[at - 1].to > to)
            to = s->found[at - 1].to;
    }
    if (after == at && s->count == s->cap) {
        size_t cap = s->cap != 0 ? s->cap * 2 : 16;
        struct interval *found = rv__realloc(s->found, cap * sizeof *found);
        if (found == NULL) {
            s->rc = RV_ENOMEM;
            return;
        }
        s->found = found;
        s->cap = cap;
    }
    memmove(s->found + at + 1, s->found + after, (s->count - after) * sizeof *s->found);
    s->count = s->count - (after - at) + 1;
    s->found[at] = (struct interval){ from, to };
}

/* Where in the text the last `length` bytes of the view begin. */
static uint64_t begins_at(const struct search *s, const struct view *view, uint32_t length)
{
    return view->origins[(view->count - length) & s->ring];
}

/* Feed one decoded byte to the automaton; in the text it is at [from, to). */
static void feed(struct search *s, struct view *view, unsigned char byte, uint64_t from,
                 uint64_t to)
{
    view->at = step(s->mask, view->at, byte);
    if (view->at == 0)
        return; /* no match can include it: begins_at() never asks for it */
    view->origins[view->count++ & s->ring] = from;
    uint32_t found = s->mask->places[view->at].found;
    if (found > 0)
        add_interval(s, begins_at(s, view, found), to);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* What was read is no escape after all: read it literally. The first byte is fed as it is; the others may
 * begin an escape. */
static void read_byte(struct search *s, int v, unsigned char byte, uint64_t at);
static void reject_escape(struct search *s, int v)
{
    struct view *view = &s->views[v];
    char open[WIDEST_ESCAPE];
    uint32_t len = view->open_len;
    uint64_t at = view->open_at;
    memcpy(open, view->open, len);
    view->open_len = 0;
    feed(s, view, (unsigned char)open[0], at, at + 1);
    for (uint32_t i = 1; i < len; i++)
        read_byte(s, v, (unsigned char)open[i], at + i);
}

static void feed_escape(struct search *s, struct view *view, const char *bytes, size_t count)
{
    uint64_t to = view->open_at + view->open_len;
    view->open_len = 0;
    for (size_t i = 0; i < count; i++)
        feed(s, view, (unsigned char)bytes[i], view->open_at, to);
}

/* %4, %41 */
static void read_percent(struct search *s, int v)
{
    struct view *view = &s->views[v];
    int high = view->open_len > 1 ? hex_digit(view->open[1]) : 0;
    int low = view->open_len > 2 ? hex_digit(view->open[2]) : 0;
    if (high < 0 || low < 0) {
        reject_escape(s, v);
    } else if (view->open_len == 3) {
        char byte = (char)(high << 4 | low);
        feed_escape(s, view, &byte, 1);
    }
}

static size_t write_utf8(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)((0xF00u >> len & 0xF0) | code);
    return len;
}

/* The value of up to four hexadecimal digits from `at` on; -1: one is not a digit. */
static long read_unit(const struct view *view, uint32_t at)
{
    long unit = 0;
    for (uint32_t i = at; i < at + 4 && i < view->open_len; i++) {
        int digit = hex_digit(view->open[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* \u0041, \ud83d\ude00 */
static void read_unicode(struct search *s, int v)
{
    struct view *view = &s->views[v];
    char bytes[4];
    long unit = read_unit(view, 2);
    bool high = unit >= 0xD800 && unit < 0xDC00 && view->open_len >= 6;
    if (unit < 0) {
        reject_escape(s, v);
    } else if (view->open_len == 6 && !high) {
        feed_escape(s, view, bytes, write_utf8((uint32_t)unit, bytes));
    } else if (high && view->open_len > 6) {
        long low = view->open_len > 8 ? read_unit(view, 8) : 0;
        bool good = view->open[6] == '\\' && (view->open_len < 8 || view->open[7] == 'u') &&
                    low >= 0 && (view->open_len < 12 || (low >= 0xDC00 && low < 0xE000));
        if (!good)
            reject_escape(s, v);
        else if (view->open_len == 12)
            feed_escape(
                s, view, bytes,
                write_utf8(0x10000u + ((uint32_t)(unit - 0xD800) << 10) + (uint32_t)(low - 0xDC00),
                           bytes));
    }
}

static void read_escape(struct search *s, int v)
{
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    struct view *view = &s->views[v];
    if (view->open_len < 2)
        return;
    const char *letter = memchr(letters, view->open[1], sizeof letters - 1);
    if (letter != NULL)
        feed_escape(s, view, &means[letter - letters], 1);
    else if (view->open[1] == 'u')
        read_unicode(s, v);
    else
        reject_escape(s, v);
}

static bool is_base64(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '-' || c == '_';
}

/* Is this byte a line end within base64 that was folded into lines? */
static bool folds(struct view *view, unsigned char byte)
{
    if (byte != '\n' && byte != '\r') {
        view->ended = 0;
        view->run = !is_base64(byte) ? 0 : view->run + (view->run < FOLDED_AFTER);
        return false;
    }
    if (view->run >= FOLDED_AFTER && ++view->ended <= LINE_END_BYTES)
        return true;
    view->run = view->ended = 0;
    return false;
}

static void read_unfolded(struct search *s, unsigned char byte, uint64_t from, uint64_t to)
{
    struct view *view = &s->views[FOLDED];
    if (!folds(view, byte))
        feed(s, view, byte, from, to);
}

/* In JSON a line end is the two characters \n. */
static void read_folded(struct search *s, unsigned char byte, uint64_t at)
{
    struct view *view = &s->views[FOLDED];
    bool escape = view->open_len > 0;
    view->open_len = 0;
    if (escape && (byte == 'n' || byte == 'r')) {
        read_unfolded(s, '\n', view->open_at, at + 1);
        return;
    }
    if (escape)
        read_unfolded(s, '\\', view->open_at, view->open_at + 1);
    if (byte == '\\') {
        view->open_at = at;
        view->open_len = 1;
    } else {
        read_unfolded(s, byte, at, at + 1);
    }
}

static void read_byte(struct search *s, int v, unsigned char byte, uint64_t at)
{
    struct view *view = &s->views[v];
    bool percent = v == PERCENT || v == FORM;
    if (view->open_len > 0) {
        view->open[view->open_len++] = (char)byte;
        (percent ? read_percent : read_escape)(s, v);
    } else if ((percent && byte == '%') || (v == ESCAPES && byte == '\\')) {
        view->open_at = at;
        view->open[0] = (char)byte;
        view->open_len = 1;
    } else {
        feed(s, view, v == FORM && byte == '+' ? ' ' : byte, at, at + 1);
    }
}

/* No view is within a possible match. So it is for most bytes of most texts, which are then skipped. */
static bool is_idle(const struct search *s)
{
    for (int v = 0; v < VIEWS; v++)
        if (s->views[v].at != 0 || s->views[v].open_len > 0)
            return false;
    return true;
}

static void search_add(struct search *s, struct rv__str text)
{
    bool idle = is_idle(s);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        uint64_t at = s->at++;
        if (idle && !s->wakes[byte]) {
            (void)folds(&s->views[FOLDED], byte); /* it counts base64 characters */
            continue;
        }
        for (int v = 0; v < FOLDED; v++)
            read_byte(s, v, byte, at);
        read_folded(s, byte, at);
        idle = is_idle(s);
    }
}

/* At the end of the text, an unfinished escape is literal text. */
static void search_end(struct search *s)
{
    for (int v = 0; v < FOLDED; v++)
        while (s->views[v].open_len > 0)
            reject_escape(s, v);
}

/* Up to here, later bytes cannot change what is found. */
static uint64_t settled(const struct search *s)
{
    uint64_t least = s->at;
    for (int v = 0; v < VIEWS; v++) {
        const struct view *view = &s->views[v];
        uint64_t from = view->at != 0        ? begins_at(s, view, s->mask->places[view->at].depth)
                        : view->open_len > 0 ? view->open_at
                                             : s->at;
        if (from < least)
            least = from;
    }
    return least;
}

/* ---------------------------------------------------------------------------------- streams --- */

struct rv__mask_stream {
    struct rv__mask *mask;
    struct search search;
    struct rv__buf held; /* the text from `held_from` on */
    uint64_t held_from;
    uint64_t written; /* up to here the text is written or hidden, */
    uint64_t hidden;  /* and up to here it was hidden, if not less than that */
};

int rv__mask_stream_new(struct rv__mask *mask, struct rv__mask_stream **ret, rv_error *err)
{
    struct rv__mask_stream *stream = rv__zalloc(1, sizeof *stream);
    if (stream == NULL || search_init(&stream->search, mask) < 0) {
        rv__free(stream);
        return rv__nomem(err);
    }
    stream->mask = rv__mask_ref(mask);
    rv__buf_init(&stream->held, SIZE_MAX / 2); /* bounded by the pieces and what is held back */
    *ret = stream;
    return RV_OK;
}

void rv__mask_stream_free(struct rv__mask_stream *stream)
{
    if (stream == NULL)
        return;
    search_done(&stream->search);
    rv__buf_done(&stream->held);
    rv__mask_unref(stream->mask);
    rv__free(stream);
}

/* Write the text up to `upto`, in which nothing more can be found. */
static void release(struct rv__mask_stream *t, uint64_t upto, struct rv__buf *out)
{
    struct search *s = &t->search;
    size_t i = 0;
    for (; i < s->count && s->found[i].from < upto; i++) {
        struct interval hide = s->found[i];
        if (hide.from > t->written)
            rv__buf_add(out, t->held.text + (t->written - t->held_from), hide.from - t->written);
        if (hide.from >= t->hidden) /* else it continues what was hidden last */
            rv__buf_text(out, RV__MASK_TEXT);
        if (hide.to > t->hidden)
            t->hidden = hide.to;
        if (t->hidden > t->written)
            t->written = t->hidden;
    }
    if (i > 0) {
        memmove(s->found, s->found + i, (s->count - i) * sizeof *s->found);
        s->count -= i;
    }
    if (upto > t->written) {
        rv__buf_add(out, t->held.text + (t->written - t->held_from), upto - t->written);
        t->written = upto;
    }
    size_t gone = t->written - t->held_from;
    if (gone > 0) {
        memmove(t->held.text, t->held.text + gone, t->held.len - gone);
        rv__buf_cut(&t->held, t->held.len - gone);
        t->held_from = t->written;
    }
}

static void failed(struct rv__mask_stream *t, struct rv__buf *out)
{
    struct search *s = &t->search;
    rv__buf_text(out, RV__MASK_TEXT);
    rv__buf_reset(&t->held);
    for (int v = 0; v < VIEWS; v++)
        s->views[v].at = s->views[v].open_len = 0;
    s->count = 0;
    s->rc = RV_OK;
    t->held_from = t->written = t->hidden = s->at;
}

void rv__mask_stream_add(struct rv__mask_stream *t, struct rv__str piece, struct rv__buf *out)
{
    rv__buf_str(&t->held, piece);
    if (t->held.rc != RV_OK) {
        t->search.at += piece.len;
        failed(t, out);
        return;
    }
    search_add(&t->search, piece);
    if (t->search.rc != RV_OK)
        failed(t, out);
    else
        release(t, settled(&t->search), out);
}

void rv__mask_stream_end(struct rv__mask_stream *t, struct rv__buf *out)
{
    search_end(&t->search);
    if (t->search.rc != RV_OK)
        failed(t, out);
    else
        release(t, t->search.at, out);
}

/* ------------------------------------------------------------------------------ whole texts --- */

/* For a text that was cut: hide the beginning of a secret at its end. */
static void hide_beginning(struct search *s)
{
    uint64_t least = s->at;
    for (int v = 0; v < VIEWS; v++) {
        const struct view *view = &s->views[v];
        uint32_t depth = s->mask->places[view->at].depth;
        if (depth >= RV__MASK_SHORTEST && begins_at(s, view, depth) < least)
            least = begins_at(s, view, depth);
    }
    if (least < s->at)
        add_interval(s, least, s->at);
}

static int search_all(struct search *s, const struct rv__mask *mask, struct rv__str text, bool cut)
{
    if (search_init(s, mask) < 0)
        return RV_ENOMEM;
    search_add(s, text);
    search_end(s);
    if (cut)
        hide_beginning(s);
    return s->rc;
}

bool rv__mask_text(const struct rv__mask *mask, struct rv__str text, bool cut, struct rv__buf *out)
{
    struct search s;
    size_t at = 0;
    if (mask == NULL) {
        rv__buf_str(out, text);
        return false;
    }
    if (search_all(&s, mask, text, cut) < 0) {
        search_done(&s);
        rv__buf_text(out, RV__MASK_TEXT);
        return true;
    }
    bool any = s.count > 0;
    for (size_t i = 0; i < s.count; i++) {
        rv__buf_add(out, text.at + at, s.found[i].from - at);
        rv__buf_text(out, RV__MASK_TEXT);
        at = s.found[i].to;
    }
    rv__buf_add(out, text.at + at, text.len - at);
    search_done(&s);
    return any;
}

bool rv__mask_finds(const struct rv__mask *mask, struct rv__str text)
{
    struct search s;
    if (mask == NULL)
        return false;
    bool any = search_all(&s, mask, text, false) < 0 || s.count > 0;
    search_done(&s);
    return any;
}

/* The token of the JSON that `where` is in, without quotes if it is a string. Continues from *at. */
static void find_token(struct rv__str json, size_t *at, size_t where, struct interval *token,
                       bool *string)
{
    const char *end = json.at + json.len;
    token->from = token->to = *at;
    while (token->to <= where && *at < json.len) {
        const char *from = json.at + *at;
        *string = *from == '"';
        if (*string || *from == '-' || (*from >= '0' && *from <= '9')) {
            const char *to = rv__json_skip(from, end);
            token->from = *at + *string;
            token->to = (uint64_t)(to - json.at) - *string;
            *at = (size_t)(to - json.at);
        } else {
            token->from = *at;
            token->to = ++*at;
        }
    }
}

static bool write_json(const struct search *s, struct rv__str json, struct rv__buf *out)
{
    struct interval token = { 0, 0 };
    bool string = false;
    size_t at = 0, walked = 0;
    for (size_t i = 0; i < s->count; i++) {
        struct interval hide = s->found[i];
        if (hide.from < at)
            continue; /* in a number that is hidden already */
        if (token.to <= hide.from)
            find_token(json, &walked, hide.from, &token, &string);
        if (hide.from < token.from || hide.to > token.to)
            return false; /* it spans several tokens */
        bool number = !string && token.to - token.from >= RV__MASK_SHORTEST;
        if (!string && !number)
            return false;
        rv__buf_add(out, json.at + at, (number ? token.from : hide.from) - at);
        rv__buf_text(out, number ? "\"" RV__MASK_TEXT "\"" : RV__MASK_TEXT);
        at = number ? token.to : hide.to;
    }
    rv__buf_add(out, json.at + at, json.len - at);
    return true;
}

bool rv__mask_json(const struct rv__mask *mask, struct rv__str json, struct rv__buf *out)
{
    struct search s;
    size_t begin = out->len;
    if (mask == NULL) {
        rv__buf_str(out, json);
        return false;
    }
    bool good = search_all(&s, mask, json, false) == RV_OK;
    bool any = !good || s.count > 0;
    if (good && any) {
        good = write_json(&s, json, out) && out->rc == RV_OK &&
               rv__json_check_stored((struct rv__str){ out->text + begin, out->len - begin },
                                     RV__JSON_STORED_DEPTH, NULL, NULL) == RV_OK;
    } else if (good) {
        rv__buf_str(out, json);
    }
    search_done(&s);
    if (!good && out->rc == RV_OK) {
        rv__buf_cut(out, begin);
        rv__buf_text(out, "\"" RV__MASK_TEXT "\"");
    }
    return any;
}
