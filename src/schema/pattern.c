/* pattern.c: translates ECMA-262 patterns (with the u flag, as JSON Schema recommends) to PCRE2, and matches.
 *
 * The pattern is rewritten item by item. What means the same in both is copied; what PCRE2 reads
 * differently (\s . \v \u) is written out; what only PCRE2 knows, such as (*VERB), (?R) and \Z, is refused,
 * because another program that reads the schema would understand something else. */
#include "schema/pattern.h"

#include "base/alloc.h"

enum {
    STEPS_BASE = 2000,          /* the low limit: backtracking steps, for any text */
    STEPS_PER_BYTE = 20,        /* and so many more for each byte of it */
    STEPS_MOST = 2000000,       /* the high limit: some hundredths of a second */
    COSTLY_MATCHES = 20,        /* of one check, with the high limit */
    HEAP_KIB = 64 * 1024,       /* for backtracking, of one match */
    GROUPS_NESTED = 100,        /* far more than anybody writes */
    TRANSLATED_BYTES = 1 << 20, /* one item becomes at most 40 bytes */
};

struct translation {
    const char *at, *end;
    struct rv__buf out;
    struct rv__buf *why;
    bool in_class;
    int quantified; /* 1: behind a quantifier, 2: behind a lazy one */
};

static void *take(size_t size, void *data)
{
    (void)data;
    return rv__alloc(size);
}

static void give(void *mem, void *data)
{
    (void)data;
    rv__free(mem);
}

static int refuse(struct translation *t, const char *reason, struct rv__str what)
{
    if (t->why != NULL)
        rv__buf_fmt(t->why, "%s'%.*s'", reason, RV__ARG(what));
    return RV_EINVAL;
}

static struct rv__str rest(const struct translation *t, size_t most)
{
    size_t len = (size_t)(t->end - t->at);
    return (struct rv__str){ t->at, len < most ? len : most };
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* `most` hexadecimal digits, or as many as there are before a '}' if most is 0. */
static bool read_hex(const char **at, const char *end, size_t most, uint32_t *ret)
{
    uint32_t n = 0;
    size_t count = 0;
    for (; *at < end && (most == 0 || count < most); (*at)++, count++) {
        char c = **at, low = (char)(c | 0x20);
        if (is_digit(c))
            n = n * 16 + (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            n = n * 16 + (uint32_t)(low - 'a' + 10);
        else
            break;
        if (n > 0x10FFFF)
            return false;
    }
    *ret = n;
    return most ? count == most : count > 0 && *at < end && *(*at)++ == '}';
}

static int put_code(struct translation *t, const char *at, bool good, uint32_t code)
{
    if (!good || (code >= 0xD800 && code <= 0xDFFF))
        return refuse(t, "incomplete escape ", rest(t, 8));
    rv__buf_fmt(&t->out, "\\x{%x}", code);
    t->at = at;
    return RV_OK;
}

/* \uHHHH, two of them as a surrogate pair, \u{H…}; `at` is after the u. */
static int put_unicode(struct translation *t, const char *at)
{
    uint32_t code = 0, low = 0;
    if (at < t->end && *at == '{') {
        at++;
        bool good = read_hex(&at, t->end, 0, &code);
        return put_code(t, at, good, code);
    }
    bool good = read_hex(&at, t->end, 4, &code);
    if (good && code >= 0xD800 && code <= 0xDBFF && t->end - at >= 6 && at[0] == '\\' &&
        at[1] == 'u') {
        at += 2;
        good = read_hex(&at, t->end, 4, &low) && low >= 0xDC00 && low <= 0xDFFF;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    return put_code(t, at, good, code);
}

/* General categories by the long names that PCRE2 does not know. */
static const struct {
    const char *name, *means;
} categories[] = {
    { "Cased_Letter", "L&" },
    { "Close_Punctuation", "Pe" },
    { "Connector_Punctuation", "Pc" },
    { "Control", "Cc" },
    { "Currency_Symbol", "Sc" },
    { "Dash_Punctuation", "Pd" },
    { "Decimal_Number", "Nd" },
    { "digit", "Nd" },
    { "Enclosing_Mark", "Me" },
    { "Final_Punctuation", "Pf" },
    { "Format", "Cf" },
    { "Initial_Punctuation", "Pi" },
    { "LC", "L&" },
    { "Letter", "L" },
    { "Letter_Number", "Nl" },
    { "Line_Separator", "Zl" },
    { "Lowercase_Letter", "Ll" },
    { "Mark", "M" },
    { "Math_Symbol", "Sm" },
    { "Modifier_Letter", "Lm" },
    { "Modifier_Symbol", "Sk" },
    { "Nonspacing_Mark", "Mn" },
    { "Number", "N" },
    { "Open_Punctuation", "Ps" },
    { "Other", "C" },
    { "Other_Letter", "Lo" },
    { "Other_Number", "No" },
    { "Other_Punctuation", "Po" },
    { "Other_Symbol", "So" },
    { "Paragraph_Separator", "Zp" },
    { "Private_Use", "Co" },
    { "Punctuation", "P" },
    { "Separator", "Z" },
    { "Space_Separator", "Zs" },
    { "Spacing_Mark", "Mc" },
    { "Surrogate", "Cs" },
    { "Symbol", "S" },
    { "Titlecase_Letter", "Lt" },
    { "Unassigned", "Cn" },
    { "Uppercase_Letter", "Lu" },
    { "punct", "P" },
};

static bool cut_prefix(struct rv__str *s, const char *prefix)
{
    size_t len = strlen(prefix);
    if (s->len < len || memcmp(s->at, prefix, len) != 0)
        return false;
    s->at += len;
    s->len -= len;
    return true;
}

/* \p{…}; `at` is after the letter. */
static int put_property(struct translation *t, const char *at)
{
    const char *close = at < t->end && *at == '{' ? memchr(at, '}', (size_t)(t->end - at)) : NULL;
    if (close == NULL)
        return refuse(t, "incomplete escape ", rest(t, 8));
    struct rv__str name = { at + 1, (size_t)(close - at - 1) };
    rv__buf_fmt(&t->out, "\\%c{", t->at[1]);
    if (cut_prefix(&name, "Script_Extensions=") || cut_prefix(&name, "scx="))
        rv__buf_text(&t->out, "scx:");
    else if (cut_prefix(&name, "Script=") || cut_prefix(&name, "sc="))
        rv__buf_text(&t->out, "sc:");
    else if (!cut_prefix(&name, "General_Category="))
        (void)cut_prefix(&name, "gc=");
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (rv__str_is(name, categories[i].name))
            name = rv__str(categories[i].means);
    rv__buf_str(&t->out, name);
    rv__buf_char(&t->out, '}');
    t->at = close + 1;
    return RV_OK;
}

#define SPACES "\\p{Xsp}\\x{feff}" /* Xsp: Unicode's white space, and that of C */

/* In a class, \S is written as "all but Xsp", so there U+FEFF is not a space. */
static void put_space(struct translation *t, bool negated)
{
    if (t->in_class)
        rv__buf_text(&t->out, negated ? "\\P{Xsp}" : SPACES);
    else
        rv__buf_text(&t->out, negated ? "[^" SPACES "]" : "[" SPACES "]");
}

static int put_reference(struct translation *t)
{
    const char *at = t->at + 1;
    if (t->in_class)
        return refuse(t, "a class cannot contain the reference ", rest(t, 2));
    while (at < t->end && is_digit(*at))
        at++;
    rv__buf_fmt(&t->out, "\\g{%.*s}", (int)(at - t->at - 1), t->at + 1);
    t->at = at;
    return RV_OK;
}

static int put_named_reference(struct translation *t)
{
    const char *close = t->end - t->at > 2 && t->at[2] == '<' && !t->in_class
                            ? memchr(t->at, '>', (size_t)(t->end - t->at))
                            : NULL;
    if (close == NULL)
        return refuse(t, "incomplete escape ", rest(t, 8));
    rv__buf_add(&t->out, t->at, (size_t)(close + 1 - t->at));
    t->at = close + 1;
    return RV_OK;
}

/* Copy `len` bytes that mean the same in PCRE2; with `text`, write that instead. */
static int put_text(struct translation *t, size_t len, const char *text)
{
    rv__buf_text(&t->out, text);
    t->at += len;
    return RV_OK;
}

static int put_escape(struct translation *t)
{
    if (t->end - t->at < 2)
        return refuse(t, "ends in ", rest(t, 1));
    const char *at = t->at + 2;
    char c = t->at[1];
    uint32_t code = 0;
    switch (c) {
    case 'd': return put_text(t, 2, "\\d");
    case 'D': return put_text(t, 2, "\\D");
    case 'w': return put_text(t, 2, "\\w");
    case 'W': return put_text(t, 2, "\\W");
    case 's':
    case 'S': put_space(t, c == 'S'); return put_text(t, 2, "");
    case 't': return put_text(t, 2, "\\t");
    case 'n': return put_text(t, 2, "\\n");
    case 'f': return put_text(t, 2, "\\f");
    case 'r': return put_text(t, 2, "\\r");
    case 'v': return put_text(t, 2, "\\x{b}");
    case '0': return put_text(t, 2, "\\x{0}");
    case 'b': return put_text(t, 2, t->in_class ? "\\x{8}" : "\\b");
    case 'B':
        if (!t->in_class)
            return put_text(t, 2, "\\B");
        break;
    case 'c':
        if (at == t->end || !is_letter(*at))
            break;
        return put_code(t, at + 1, true, (uint32_t)(*at & 0x1F));
    case 'x': {
        bool good = read_hex(&at, t->end, 2, &code);
        return put_code(t, at, good, code);
    }
    case 'u': return put_unicode(t, at);
    case 'p':
    case 'P': return put_property(t, at);
    case 'k': return put_named_reference(t);
    default:
        if (is_digit(c))
            return put_reference(t);
        if (is_letter(c) || (c & 0x80) || c == '\0' || c == '\n')
            break;
        rv__buf_add(&t->out, t->at, 2);
        return put_text(t, 2, "");
    }
    return refuse(t, "ECMA-262 has no escape ", rest(t, 2));
}

/* {2}, {2,} or {2,3}: its length, 0 for anything else. */
static size_t braces(const struct translation *t)
{
    const char *at = t->at + 1, *from = at;
    while (at < t->end && is_digit(*at))
        at++;
    if (at == from)
        return 0;
    if (at < t->end && *at == ',')
        for (at++; at < t->end && is_digit(*at); at++)
            ;
    return at < t->end && *at == '}' ? (size_t)(at + 1 - t->at) : 0;
}

static int put_quantifier(struct translation *t, size_t len)
{
    if (t->quantified == 1 && *t->at == '?')
        t->quantified = 2;
    else if (t->quantified)
        return refuse(t, "nothing to repeat before ", rest(t, len));
    else
        t->quantified = 1;
    rv__buf_add(&t->out, t->at, len);
    t->at += len;
    return RV_OK;
}

static int put_group(struct translation *t)
{
    static const char *const kinds[] = { "(?:", "(?=", "(?!", "(?<=", "(?<!" };
    if (t->end - t->at < 2 || (t->at[1] != '?' && t->at[1] != '*'))
        return put_text(t, 1, "(");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t len = strlen(kinds[i]);
        if (rv__str_is(rest(t, len), kinds[i]))
            return put_text(t, len, kinds[i]);
    }
    struct rv__str start = rest(t, 4);
    if (start.len == 4 && memcmp(start.at, "(?<", 3) == 0 &&
        (is_letter(start.at[3]) || start.at[3] == '_'))
        return put_text(t, 3, "(?<");
    return refuse(t, "ECMA-262 has no group ", rest(t, 3));
}

static int put_in_class(struct translation *t)
{
    switch (*t->at) {
    case '\\': return put_escape(t);
    case '[': return put_text(t, 1, "\\[");
    case ']': t->in_class = false; return put_text(t, 1, "]");
    default: rv__buf_char(&t->out, *t->at++); return RV_OK;
    }
}

static int put_item(struct translation *t)
{
    if (t->in_class)
        return put_in_class(t);
    size_t len = *t->at == '{' ? braces(t) : 0;
    if (len > 0 || *t->at == '*' || *t->at == '+' || *t->at == '?')
        return put_quantifier(t, len ? len : 1);
    t->quantified = 0;
    switch (*t->at) {
    case '\\': return put_escape(t);
    case '(': return put_group(t);
    case '.': return put_text(t, 1, "[^\\n\\r\\x{2028}\\x{2029}]");
    case '{': return put_text(t, 1, "\\{");
    case '}': return put_text(t, 1, "\\}");
    case '[':
        t->in_class = true;
        if (t->end - t->at > 1 && t->at[1] == '^')
            return put_text(t, 2, "[^");
        return put_text(t, 1, "[");
    default: rv__buf_char(&t->out, *t->at++); return RV_OK;
    }
}

static int compile(const struct rv__buf *text, struct rv__buf *why, pcre2_code **ret)
{
    const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS |
                             PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C;
    pcre2_general_context *memory = pcre2_general_context_create(take, give, NULL);
    pcre2_compile_context *context = memory ? pcre2_compile_context_create(memory) : NULL;
    pcre2_code *code = NULL;
    int rc = RV_ENOMEM, number = 0;
    size_t offset;
    if (context == NULL)
        goto out;

    pcre2_set_parens_nest_limit(context, GROUPS_NESTED);
    code = pcre2_compile((PCRE2_SPTR)(text->len ? text->text : ""), text->len, options, &number,
                         &offset, context);
    rc = RV_OK;
    if (code == NULL && number == PCRE2_ERROR_HEAP_FAILED)
        rc = RV_ENOMEM;
    else if (code == NULL) {
        char reason[120] = "";
        pcre2_get_error_message(number, (PCRE2_UCHAR *)reason, sizeof reason);
        if (why != NULL)
            rv__buf_text(why, reason);
        rc = RV_EINVAL;
    } else {
        *ret = code;
    }
out:
    pcre2_compile_context_free(context);
    pcre2_general_context_free(memory);
    return rc;
}

static int translate(struct rv__str source, struct rv__buf *why, pcre2_code **ret)
{
    struct translation t = { source.at, source.at + source.len, .why = why };
    int rc = RV_OK;
    if (source.len > RV__PATTERN_MAX_BYTES) {
        if (why != NULL)
            rv__buf_fmt(why, "longer than %d bytes", RV__PATTERN_MAX_BYTES);
        return RV_EINVAL;
    }
    rv__buf_init(&t.out, TRANSLATED_BYTES);
    while (rc == RV_OK && t.at < t.end)
        rc = put_item(&t);
    if (rc == RV_OK)
        rc = rv__buf_err(&t.out, NULL);
    if (rc == RV_OK)
        rc = compile(&t.out, why, ret);
    rv__buf_done(&t.out);
    return rc;
}

int rv__pattern_new(struct rv__str source, struct rv__arena *arena, struct rv__buf *why,
                    struct rv__pattern **ret)
{
    struct rv__pattern *pattern = rv__arena_zalloc(arena, 1, sizeof *pattern);
    if (pattern == NULL)
        return RV_ENOMEM;
    pattern->source = source;
    int rc = translate(source, why, &pattern->code);
    if (rc == RV_OK)
        *ret = pattern;
    return rc;
}

void rv__pattern_done(struct rv__pattern *pattern)
{
    pcre2_code_free(pattern->code);
}

int rv__pattern_valid(struct rv__str source)
{
    pcre2_code *code = NULL;
    int rc = translate(source, NULL, &code);
    if (rc == RV_OK)
        pcre2_code_free(code);
    return rc;
}

/* ------------------------------------------------------------------------------------------
 * Matching */

void rv__matcher_init(struct rv__matcher *matcher)
{
    *matcher = (struct rv__matcher){ .costly = COSTLY_MATCHES };
}

void rv__matcher_done(struct rv__matcher *matcher)
{
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->limits);
}

/* Allocated for the first pattern: most schemas have none. */
static bool prepare(struct rv__matcher *matcher)
{
    if (matcher->data != NULL && matcher->limits != NULL)
        return true;
    pcre2_general_context *memory = pcre2_general_context_create(take, give, NULL);
    if (memory == NULL)
        return false;
    if (matcher->data == NULL)
        matcher->data = pcre2_match_data_create(1, memory);
    if (matcher->limits == NULL)
        matcher->limits = pcre2_match_context_create(memory);
    pcre2_general_context_free(memory);
    if (matcher->limits != NULL)
        pcre2_set_heap_limit(matcher->limits, HEAP_KIB);
    return matcher->data != NULL && matcher->limits != NULL;
}

static int match(const struct rv__pattern *pattern, struct rv__matcher *matcher,
                 struct rv__str text, uint32_t steps)
{
    pcre2_set_match_limit(matcher->limits, steps);
    return pcre2_match(pattern->code, (PCRE2_SPTR)(text.len ? text.at : ""), text.len, 0,
                       PCRE2_NO_UTF_CHECK, matcher->data, matcher->limits);
}

int rv__pattern_match(const struct rv__pattern *pattern, struct rv__matcher *matcher,
                      struct rv__str text)
{
    if (!prepare(matcher))
        return RV_ENOMEM;
    uint64_t low = STEPS_BASE + (uint64_t)STEPS_PER_BYTE * text.len;
    int rc = match(pattern, matcher, text, low < UINT32_MAX ? (uint32_t)low : UINT32_MAX);
    if (rc == PCRE2_ERROR_MATCHLIMIT && low < STEPS_MOST && matcher->costly > 0) {
        matcher->costly--;
        rc = match(pattern, matcher, text, STEPS_MOST);
    }
    if (rc >= 0)
        return 1;
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    return rc == PCRE2_ERROR_NOMEMORY ? RV_ENOMEM : RV_ETOOBIG;
}
