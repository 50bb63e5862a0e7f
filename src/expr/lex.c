/* lex.c: reads jq's tokens. A wrong token does no harm, since jq compiles the text itself. But the ends of
 * strings, comments and brackets must be right: they decide where an expression ends. */
#include "expr/lex.h"

static const struct rv__str keywords[] = {
    RV__STR("as"),    RV__STR("import"), RV__STR("include"), RV__STR("module"),  RV__STR("def"),
    RV__STR("if"),    RV__STR("then"),   RV__STR("else"),    RV__STR("elif"),    RV__STR("and"),
    RV__STR("or"),    RV__STR("end"),    RV__STR("reduce"),  RV__STR("foreach"), RV__STR("try"),
    RV__STR("catch"), RV__STR("label"),  RV__STR("break"),   RV__STR("__loc__"),
};

/* Longest first among those that begin alike. */
static const struct rv__str operators[] = {
    RV__STR("?//"), RV__STR("//="), RV__STR("!="), RV__STR("=="), RV__STR("|="),
    RV__STR("+="),  RV__STR("-="),  RV__STR("*="), RV__STR("/="), RV__STR("%="),
    RV__STR("<="),  RV__STR(">="),  RV__STR("//"),
};

void rv__lexer_init(struct rv__lexer *lexer, struct rv__str text)
{
    lexer->text = text;
    lexer->at = text.at;
    lexer->depth = 0;
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static const char *skip_name(const char *at, const char *end)
{
    while (at < end && (letter(*at) || digit(*at)))
        at++;
    return at;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && digit(*at))
        at++;
    return at;
}

static const char *skip_blank(const char *at, const char *end)
{
    while (at < end) {
        if (*at == '#')
            while (at < end && *at != '\n')
                at++;
        else if (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
            at++;
        else
            break;
    }
    return at;
}

/* A number that begins here: 1, 1.5, 1., .5, each perhaps with an exponent. */
static const char *skip_number(const char *at, const char *end)
{
    at = skip_digits(at, end);
    if (at < end && *at == '.')
        at = skip_digits(at + 1, end);
    if (at < end && (*at == 'e' || *at == 'E')) {
        const char *exp = at + 1;
        if (exp < end && (*exp == '+' || *exp == '-'))
            exp++;
        if (exp < end && digit(*exp))
            at = skip_digits(exp, end);
    }
    return at;
}

static const char *skip_operator(const char *at, const char *end)
{
    size_t left = (size_t)(end - at);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].len <= left && memcmp(operators[i].at, at, operators[i].len) == 0)
            return at + operators[i].len;
    return at + 1;
}

static const char *take(struct rv__lexer *lexer, enum rv__tok_kind kind, const char *to,
                        struct rv__tok *ret)
{
    *ret = (struct rv__tok){ kind, { lexer->at, (size_t)(to - lexer->at) } };
    lexer->at = to;
    return NULL;
}

static const char *open(struct rv__lexer *lexer, char what)
{
    if (lexer->depth == RV__EXPR_MAX_DEPTH)
        return "brackets are nested too deeply";
    lexer->open[lexer->depth++] = what;
    return NULL;
}

/* In a string: its text up to an interpolation or the closing quote. */
static const char *in_string(struct rv__lexer *lexer, struct rv__tok *ret)
{
    const char *at = lexer->at, *end = lexer->text.at + lexer->text.len;
    const char *wrong;
    for (; at < end && *at != '"'; at++) {
        if (*at != '\\')
            continue;
        if (at + 1 == end)
            break;
        if (at[1] == '(') {
            if (at > lexer->at)
                return take(lexer, TOK_TEXT, at, ret);
            wrong = open(lexer, '\\');
            return wrong != NULL ? wrong : take(lexer, TOK_OPEN, at + 2, ret);
        }
        at++;
    }
    if (at == end || *at != '"')
        return "a string does not end";
    if (at > lexer->at)
        return take(lexer, TOK_TEXT, at, ret);
    lexer->depth--;
    return take(lexer, TOK_QUOTE, at + 1, ret);
}

static const char *close(struct rv__lexer *lexer, struct rv__tok *ret)
{
    char c = *lexer->at;
    char opened = '\0';
    if (lexer->depth > 0)
        opened = lexer->open[lexer->depth - 1];
    if (opened == '\0' && c == '}')
        return take(lexer, TOK_END, lexer->at, ret);
    if (opened == '\0')
        return c == ')' ? "')' closes nothing" : "']' closes nothing";
    if (c == ')' ? opened != '(' && opened != '\\' : opened != (c == ']' ? '[' : '{'))
        return opened == '['   ? "expected ']' first"
               : opened == '{' ? "expected '}' first"
                               : "expected ')' first";
    lexer->depth--;
    return take(lexer, TOK_CLOSE, lexer->at + 1, ret);
}

static const char *name(struct rv__lexer *lexer, const char *end, struct rv__tok *ret)
{
    const char *to = skip_name(lexer->at, end);
    while (end - to > 2 && to[0] == ':' && to[1] == ':' && letter(to[2])) /* module::name */
        to = skip_name(to + 2, end);
    take(lexer, TOK_NAME, to, ret);
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (rv__str_eq(ret->text, keywords[i]))
            ret->kind = TOK_KEYWORD;
    return NULL;
}

const char *rv__lexer_next(struct rv__lexer *lexer, struct rv__tok *ret)
{
    const char *end = lexer->text.at + lexer->text.len;
    const char *wrong, *at;
    if (lexer->depth > 0 && lexer->open[lexer->depth - 1] == '"')
        return in_string(lexer, ret);

    at = lexer->at = skip_blank(lexer->at, end);
    if (at == end)
        return lexer->depth > 0 ? "a bracket does not close" : take(lexer, TOK_END, at, ret);
    char next = '\0';
    if (at + 1 < end)
        next = at[1];
    switch (*at) {
    case '"':
    case '(':
    case '[':
    case '{':
        wrong = open(lexer, *at);
        return wrong != NULL ? wrong : take(lexer, *at == '"' ? TOK_QUOTE : TOK_OPEN, at + 1, ret);
    case ')':
    case ']':
    case '}': return close(lexer, ret);
    case '@':
        if (letter(next) || digit(next))
            return take(lexer, TOK_FORMAT, skip_name(at + 1, end), ret);
        break;
    case '.':
        if (next == '.')
            return take(lexer, TOK_DOTDOT, at + 2, ret);
        if (letter(next))
            return take(lexer, TOK_FIELD, skip_name(at + 1, end), ret);
        if (digit(next))
            return take(lexer, TOK_NUMBER, skip_number(at, end), ret);
        return take(lexer, TOK_DOT, at + 1, ret);
    default: break;
    }
    if (digit(*at))
        return take(lexer, TOK_NUMBER, skip_number(at, end), ret);
    if (letter(*at))
        return name(lexer, end, ret);
    if (strchr("!=|+-*/%<>?$;,:", *at) == NULL || *at == '\0')
        return "this character has no meaning in jq";
    return take(lexer, TOK_OTHER, skip_operator(at, end), ret);
}
