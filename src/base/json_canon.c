/* json_canon.c: writes JSON: strings, numbers, and canonical text.
 *
 * In canonical text the members of every object are sorted, so all of them must be known before the
 * first is written. Scanning each value again at each level would multiply the cost by the depth.
 * Therefore a first pass notes where each bracket closes (struct jump, in order of opening). A second
 * pass, with a stack of its own, collects the members of an object, jumps over their values, sorts
 * them, and writes them. Memory: 8 bytes per bracket, and the members of the open objects. */
#include "base/json.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"

/* ------------------------------------------------------------------------------------------
 * Pieces */

/* The length of the well-formed sequence at `at`, or 0; `at` is not ASCII. */
static size_t utf8_length(const char *at, const char *end)
{
    unsigned char c = (unsigned char)*at;
    size_t len = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    return (size_t)(end - at) >= len && rv__str_utf8((struct rv__str){ at, len }) ? len : 0;
}

static void add_escape(struct rv__buf *buf, unsigned char c)
{
    static const char letters[] = "\"\\bfnrt", meant[] = "\"\\\b\f\n\r\t";
    const char *letter = c != '\0' ? strchr(meant, c) : NULL;
    if (letter != NULL) {
        rv__buf_char(buf, '\\');
        rv__buf_char(buf, letters[letter - meant]);
    } else {
        rv__buf_fmt(buf, "\\u%04x", c);
    }
}

void rv__buf_json_str(struct rv__buf *buf, struct rv__str s)
{
    rv__buf_char(buf, '"');
    const char *at = s.len > 0 ? s.at : "", *end = at + s.len, *run = at;
    while (at < end) {
        unsigned char c = (unsigned char)*at;
        size_t len = c >= 0x80 ? utf8_length(at, end) : c >= 0x20 && c != '"' && c != '\\';
        if (len > 0) {
            at += len;
            continue;
        }
        rv__buf_add(buf, run, (size_t)(at - run));
        if (c >= 0x80)
            rv__buf_text(buf, "\xEF\xBF\xBD"); /* U+FFFD */
        else
            add_escape(buf, c);
        run = ++at;
    }
    rv__buf_add(buf, run, (size_t)(at - run));
    rv__buf_char(buf, '"');
}

void rv__buf_json_pointer(struct rv__buf *buf, struct rv__str token)
{
    rv__buf_char(buf, '/');
    for (size_t i = 0; i < token.len; i++) {
        if (token.at[i] == '~')
            rv__buf_text(buf, "~0");
        else if (token.at[i] == '/')
            rv__buf_text(buf, "~1");
        else
            rv__buf_char(buf, token.at[i]);
    }
}

/* The fewest digits that read back as `number` (finite, above 0), which is d.ddd times 10 to the
 * returned power. 15 digits survive in any double, so 15, 16 and 17 are all there is to try,
 * except where doubles become sparse near 0. */
static int shortest_digits(double number, char digits[20], size_t *count)
{
    char text[40];
    for (int precision = number < DBL_MIN ? 1 : 15;; precision++) {
        snprintf(text, sizeof text, "%.*e", precision - 1, number);
        if (precision == 17 || strtod(text, NULL) == number)
            break;
    }
    size_t n = 0;
    const char *at = text;
    for (; *at != 'e'; at++) /* the only other character is the locale's decimal point */
        if (*at >= '0' && *at <= '9')
            digits[n++] = *at;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    *count = n;
    return (int)strtol(at + 1, NULL, 10);
}

void rv__buf_json_double(struct rv__buf *buf, double number)
{
    const double exact = 9007199254740992.0; /* 2^53: below it, every integer is a double */
    char digits[20] = { 0 };
    size_t count;

    if (number != number) {
        rv__buf_text(buf, "null");
        return;
    }
    if (number < exact && number > -exact && number == (double)(int64_t)number) {
        rv__buf_int(buf, (int64_t)number); /* -0.0 too */
        return;
    }
    if (number < 0) {
        rv__buf_char(buf, '-');
        number = -number;
    }
    if (number > DBL_MAX) {
        rv__buf_text(buf, "1e999");
        return;
    }

    int power = shortest_digits(number, digits, &count);
    if (number >= exact ||
        power < -6) { /* not as an integer: above 2^53 it would look exact and is not */
        rv__buf_char(buf, digits[0]);
        if (count > 1) {
            rv__buf_char(buf, '.');
            rv__buf_add(buf, digits + 1, count - 1);
        }
        rv__buf_fmt(buf, "e%+d", power);
    } else if (power < 0) {
        rv__buf_text(buf, "0.");
        rv__buf_add(buf, "00000", (size_t)(-power - 1));
        rv__buf_add(buf, digits, count);
    } else {
        size_t whole = (size_t)power + 1; /* < count: otherwise it would be an integer */
        assert(whole < count);
        rv__buf_add(buf, digits, whole);
        rv__buf_char(buf, '.');
        rv__buf_add(buf, digits + whole, count - whole);
    }
}

/* ------------------------------------------------------------------------------------------
 * Canonical text */

struct jump {
    uint32_t end;    /* offset behind the bracket that closes */
    uint32_t inside; /* brackets opened in between; those follow this one in the table */
};

struct member {
    struct rv__str key; /* unescaped */
    const char *value;
    uint32_t bracket; /* number of the next bracket that opens at or behind `value` */
};

struct frame {      /* one open container */
    size_t first;   /* object: where its members begin in canon.members */
    size_t member;  /* object: the next one to write */
    size_t last;    /* object: behind its last one */
    const char *at; /* array: the next element, or its comma, or the end */
    uint32_t bracket;
    bool object;
};

struct canon {
    struct rv__str text;
    const char *end;
    struct rv__buf *out;
    struct jump *jumps;
    size_t jump_count, jump_room;
    struct member *members; /* of the open objects, outermost first */
    size_t member_count, member_room;
    struct member *scratch; /* for the sort; as large as the largest object met */
    size_t scratch_room;
    struct rv__arena keys;    /* those that have escapes */
    struct rv__arena strings; /* the string being written, if it has escapes */
    struct frame *frames;     /* the open containers, outermost first */
    size_t depth;
};

/* An array with room for one more. `size` is that of an element. */
static void *with_room(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    size_t more = *room ? *room * 2 : 32; /* at most as many as a text has bytes: no overflow */
    void *moved = rv__realloc(array, more * size);
    if (moved != NULL)
        *room = more;
    return moved;
}

static int note_jumps(struct canon *c)
{
    uint32_t open[RV__JSON_MAX_DEPTH];
    size_t depth = 0;
    for (const char *at = c->text.at; at < c->end; at++) {
        if (*at == '"') {
            at = rv__json_skip(at, c->end) - 1;
        } else if (*at == '[' || *at == '{') {
            struct jump *jumps = with_room(c->jumps, c->jump_count, &c->jump_room,
                                           sizeof *c->jumps);
            if (jumps == NULL)
                return RV_ENOMEM;
            c->jumps = jumps;
            assert(depth < RV__JSON_MAX_DEPTH);
            open[depth++] = (uint32_t)c->jump_count++;
        } else if (*at == ']' || *at == '}') {
            assert(depth > 0);
            uint32_t i = open[--depth];
            c->jumps[i].end = (uint32_t)(at + 1 - c->text.at);
            c->jumps[i].inside = (uint32_t)c->jump_count - i - 1;
        }
    }
    return RV_OK;
}

/* The end of the value at `at`, in constant time for a container; moves *bracket past its brackets. */
static const char *jump_over(const struct canon *c, const char *at, uint32_t *bracket)
{
    if (*at != '[' && *at != '{')
        return rv__json_skip(at, c->end);
    const struct jump *jump = &c->jumps[*bracket];
    *bracket += 1 + jump->inside;
    return c->text.at + jump->end;
}

static void merge(const struct member *from, size_t left, size_t middle, size_t right,
                  struct member *to)
{
    size_t a = left, b = middle;
    for (size_t i = left; i < right; i++) {
        bool take_a = a < middle && (b >= right || rv__str_cmp(from[a].key, from[b].key) <= 0);
        to[i] = from[take_a ? a++ : b++];
    }
}

static size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A stable merge sort: qsort is not stable, may be quadratic, and may allocate memory that tests
 * cannot make fail. */
static int sort_members(struct canon *c, struct member *members, size_t count)
{
    size_t sorted = 1;
    while (sorted < count && rv__str_cmp(members[sorted - 1].key, members[sorted].key) <= 0)
        sorted++;
    if (sorted >= count) /* already sorted: common, and so in canonical text */
        return RV_OK;

    if (c->scratch_room < count) {
        struct member *scratch = rv__realloc(c->scratch, count * sizeof *scratch);
        if (scratch == NULL)
            return RV_ENOMEM;
        c->scratch = scratch;
        c->scratch_room = count;
    }
    struct member *from = members, *to = c->scratch;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t left = 0; left < count; left += 2 * width)
            merge(from, left, lesser(left + width, count), lesser(left + 2 * width, count), to);
        struct member *swap = from;
        from = to;
        to = swap;
    }
    if (from != members)
        memcpy(members, from, count * sizeof *members);
    return RV_OK;
}

/* The members of the object whose first key or end is at `at`: into the frame, sorted, and of
 * those with equal keys only the last. */
static int collect_members(struct canon *c, struct frame *frame, const char *at, uint32_t bracket)
{
    frame->first = frame->member = c->member_count;
    for (at = rv__json_skip_separators(at); *at != '}'; at = rv__json_skip_separators(at)) {
        struct member *members = with_room(c->members, c->member_count, &c->member_room,
                                           sizeof *c->members);
        if (members == NULL)
            return RV_ENOMEM;
        c->members = members;

        struct member *member = &members[c->member_count];
        const char *key_end = rv__json_skip(at, c->end);
        struct rv__str key = { at, (size_t)(key_end - at) };
        int rc = rv__json_string(key, &c->keys, &member->key);
        if (rc < 0)
            return rc;
        member->value = rv__json_skip_separators(key_end);
        member->bracket = bracket;
        c->member_count++;
        at = jump_over(c, member->value, &bracket);
    }

    size_t count = c->member_count - frame->first, kept = 0;
    if (count == 0) {
        frame->last = frame->first;
        return RV_OK;
    }
    struct member *members = c->members + frame->first;
    int rc = sort_members(c, members, count);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || !rv__str_eq(members[i].key, members[i + 1].key))
            members[kept++] = members[i];
    c->member_count = frame->last = frame->first + kept;
    return RV_OK;
}

static int write_string(struct canon *c, struct rv__str literal)
{
    struct rv__str text;
    if (memchr(literal.at, '\\', literal.len) == NULL) {
        rv__buf_str(c->out, literal); /* no escape in it: it is canonical already */
        return RV_OK;
    }
    rv__arena_reset(&c->strings);
    int rc = rv__json_string(literal, &c->strings, &text);
    if (rc < 0)
        return rc;
    rv__buf_json_str(c->out, text);
    return RV_OK;
}

static void write_number(struct canon *c, struct rv__str literal)
{
    double number;
    bool negative = *literal.at == '-', integer = true;
    for (size_t i = negative; i < literal.len; i++)
        integer &= literal.at[i] >= '0' && literal.at[i] <= '9';

    if (integer && negative && literal.len == 2 && literal.at[1] == '0')
        rv__buf_char(c->out, '0');
    else if (integer)
        rv__buf_str(c->out, literal);
    else if (rv__json_double(literal, &number) == RV_OK)
        rv__buf_json_double(c->out, number);
    else
        rv__buf_json_double(c->out, negative ? -HUGE_VAL : HUGE_VAL);
}

/* Write a scalar, or begin a container: it is then the top frame. */
static int write_value(struct canon *c, const char *at, uint32_t bracket)
{
    if (*at == '[' || *at == '{') {
        assert(c->depth < RV__JSON_MAX_DEPTH);
        struct frame *frame = &c->frames[c->depth++];
        *frame = (struct frame){ .object = *at == '{', .at = at + 1, .bracket = bracket + 1 };
        rv__buf_char(c->out, *at);
        return frame->object ? collect_members(c, frame, at + 1, bracket + 1) : RV_OK;
    }
    struct rv__str literal = { at, (size_t)(rv__json_skip(at, c->end) - at) };
    if (*at == '"')
        return write_string(c, literal);
    if (*at == '-' || (*at >= '0' && *at <= '9'))
        write_number(c, literal);
    else
        rv__buf_str(c->out, literal);
    return RV_OK;
}

static void write_comma(struct canon *c)
{
    const struct rv__buf *out = c->out; /* empty only after a failure */
    if (out->len > 0 && out->text[out->len - 1] != '[' && out->text[out->len - 1] != '{')
        rv__buf_char(c->out, ',');
}

static int write_next_member(struct canon *c, struct frame *frame)
{
    if (frame->member == frame->last) {
        c->member_count = frame->first;
        c->depth--;
        rv__buf_char(c->out, '}');
        return RV_OK;
    }
    struct member member = c->members[frame->member++]; /* the array may move below */
    write_comma(c);
    rv__buf_json_str(c->out, member.key);
    rv__buf_char(c->out, ':');
    return write_value(c, member.value, member.bracket);
}

static int write_next_element(struct canon *c, struct frame *frame)
{
    const char *at = rv__json_skip_separators(frame->at);
    uint32_t bracket = frame->bracket;
    if (*at == ']') {
        c->depth--;
        rv__buf_char(c->out, ']');
        return RV_OK;
    }
    frame->at = jump_over(c, at, &frame->bracket);
    write_comma(c);
    return write_value(c, at, bracket);
}

int rv__json_canonical(struct rv__str text, struct rv__buf *out, rv_error *err)
{
    struct frame frames[RV__JSON_MAX_DEPTH];
    struct canon c = { .out = out, .frames = frames };
    size_t before = out->len;
    int rc;

    assert(text.len > 0 && text.len <= RV__JSON_MAX_BYTES);
    c.text = text;
    c.end = text.at + text.len;
    /* A key with an escape has 4 bytes at least, and takes 16 at least. */
    rv__arena_init(&c.keys, 5 * (size_t)RV__JSON_MAX_BYTES);
    rv__arena_init(&c.strings, 2 * (size_t)RV__JSON_MAX_BYTES);

    rc = note_jumps(&c);
    if (rc < 0)
        goto out;

    rc = write_value(&c, rv__json_skip_separators(text.at), 0);
    while (rc == RV_OK && out->rc == RV_OK && c.depth > 0) {
        struct frame *frame = &c.frames[c.depth - 1];
        rc = frame->object ? write_next_member(&c, frame) : write_next_element(&c, frame);
    }
out:
    rv__arena_done(&c.strings);
    rv__arena_done(&c.keys);
    rv__free(c.scratch);
    rv__free(c.members);
    rv__free(c.jumps);
    if (rc < 0)
        rc = rv__nomem(err); /* nothing else can fail above */
    else
        rc = rv__buf_err(out, err);
    if (rc < 0)
        rv__buf_cut(out, before);
    return rc;
}

bool rv__json_keeps_text(struct rv__str value)
{
    struct rv__buf again;
    if (rv__json_type(value) != RV__JSON_NUMBER)
        return true;
    rv__buf_init(&again, 2 * value.len + 64); /* a double's text is shorter than that */
    bool same = rv__json_canonical(value, &again, NULL) == RV_OK &&
                rv__str_eq(rv__buf_view(&again), value);
    rv__buf_done(&again);
    return same;
}
