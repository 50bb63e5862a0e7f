/* params.c: the parameters of http, command, delay, signal, chat and tool. Constants are checked here; a value
 * with a template is checked by the executor, once it is evaluated. */
#include "define/params.h"

#include "base/duration.h"
#include "base/error.h"
#include "base/json.h"
#include "base/media.h"
#include "base/suggest.h"

/* What the value of a parameter can be. */
enum want {
    WANT_ANY,
    WANT_TEXT,
    WANT_BOOL,
    WANT_MAP,
    WANT_DURATION,
    WANT_WORD,
    WANT_URL,
    WANT_METHOD,
    WANT_BYTES,
    WANT_TIMEOUT, /* a duration above 0 */
    WANT_FILES,
};

#define MOST_BYTES (64 << 20) /* of an answer, as in exec/: no JSON text is longer */

struct param {
    const char *key;
    enum want want;
    const char *words; /* WANT_WORD: "json|text" */
    const char *list;  /* the same for messages */
};

static const struct param http_params[] = {
    { "url", WANT_URL },
    { "method", WANT_METHOD },
    { "headers", WANT_MAP },
    { "body", WANT_ANY },
    { "timeout", WANT_TIMEOUT },
    { "responseType", WANT_WORD, "json|text|base64", "json, text or base64" },
    { "throwOnError", WANT_BOOL },
    { "maxBytes", WANT_BYTES },
    { "saveTo", WANT_TEXT },
};
static const struct param command_params[] = {
    { "argv", WANT_ANY },
    { "stdin", WANT_WORD, "context|none", "context, none, or an expression ${ … }" },
    { "output", WANT_WORD, "json|text|base64|none", "json, text, base64 or none" },
    { "cwd", WANT_TEXT },
    { "env", WANT_MAP },
    { "saveTo", WANT_TEXT },
};
static const struct param signal_params[] = {
    { "name", WANT_TEXT },
    { "timeout", WANT_DURATION },
    { "default", WANT_ANY },
    { "schema", WANT_ANY },
};
static const struct param chat_params[] = {
    { "provider", WANT_TEXT }, { "prompt", WANT_ANY },     { "model", WANT_TEXT },
    { "system", WANT_TEXT },   { "returnType", WANT_MAP }, { "attach", WANT_FILES },
};
static const struct param tool_params[] = {
    { "server", WANT_TEXT },
    { "name", WANT_TEXT },
    { "arguments", WANT_MAP },
};
static const char *const chat_keys[] = { "provider",   "prompt", "model", "system",
                                         "returnType", "access", "tools", "skills",
                                         "maxTurns",   "budget", "attach" };
#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool has_template(const struct rv__tree *value)
{
    const struct rv__tree *real = rv__tree_real(value);
    return real->kind == TREE_STRING && memmem(real->text.at, real->text.len, "${", 2) != NULL;
}

static bool is_word(struct rv__str text, const char *words)
{
    while (*words != '\0') {
        size_t len = strcspn(words, "|");
        if (rv__str_eq(text, (struct rv__str){ words, len }))
            return true;
        words += len + (words[len] == '|');
    }
    return false;
}

/* As far as can be known: a template may be anywhere in it, also at the beginning. */
static bool is_url(struct rv__str text)
{
    static const char *const begins[] = { "http://", "https://", "${" };
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        size_t len = strlen(begins[i]);
        if (text.len > len && strncasecmp(text.at, begins[i], len) == 0)
            return true;
    }
    return false;
}

static bool is_method(struct rv__str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((text.at[i] | 0x20) < 'a' || (text.at[i] | 0x20) > 'z')
            return false;
    return text.len > 0;
}

static bool is_count(struct rv__str text, int64_t most)
{
    int64_t n;
    return rv__json_int(text, &n) == RV_OK && n > 0 && n <= most;
}

static bool is_timeout(const struct rv__tree *real)
{
    int64_t ms;
    if (real->kind == TREE_NUMBER)
        return is_count(real->text, RV__PLAN_MAX_MS);
    return real->kind == TREE_STRING && rv__duration_ms(real->text, &ms) == RV_OK && ms > 0;
}

static bool is_wanted(const struct rv__tree *value, const struct param *param)
{
    const struct rv__tree *real = rv__tree_real(value);
    if (param->want == WANT_URL)
        return real->kind == TREE_STRING && is_url(real->text);
    if (has_template(value))
        return true;
    switch (param->want) {
    case WANT_ANY: return true;
    case WANT_TEXT: return real->kind == TREE_STRING && real->text.len > 0;
    case WANT_BOOL: return real->kind == TREE_BOOL;
    case WANT_MAP: return real->kind == TREE_MAP;
    case WANT_WORD: return real->kind == TREE_STRING && is_word(real->text, param->words);
    case WANT_METHOD: return real->kind == TREE_STRING && is_method(real->text);
    case WANT_BYTES: return real->kind == TREE_NUMBER && is_count(real->text, MOST_BYTES);
    case WANT_URL: break;
    case WANT_TIMEOUT: return is_timeout(real);
    case WANT_DURATION: return true; /* checked when it is written */
    case WANT_FILES: return real->kind == TREE_LIST;
    }
    return false;
}

static const char *wanted(const struct param *param)
{
    switch (param->want) {
    case WANT_TEXT: return "a text";
    case WANT_BOOL: return "true or false";
    case WANT_MAP: return "a mapping";
    case WANT_WORD: return param->list;
    case WANT_URL: return "an address that begins with http:// or https://";
    case WANT_METHOD: return "a word such as GET, POST or DELETE";
    case WANT_BYTES: return "a number of bytes from 1 to 67108864";
    case WANT_DURATION: return "a duration such as 250ms, 30s or 1h30m, or milliseconds";
    case WANT_TIMEOUT: return "a duration above 0 such as 250ms, 30s or 1h30m, or milliseconds";
    case WANT_FILES: return "a list of files: [photo.png, { data: \"${ … }\", type: image/png }]";
    case WANT_ANY: break;
    }
    return "anything";
}

void rv__params_check_timeout(const struct rv__source *source, struct rv__problems *problems,
                              const char *key, const struct rv__tree *value)
{
    enum { LOOKS_LIKE_SECONDS = 1000 };
    const struct rv__tree *real = rv__tree_real(value);
    int64_t ms;
    if (strcmp(key, "timeout") == 0 && real->kind == TREE_NUMBER &&
        rv__json_int(real->text, &ms) == RV_OK && ms > 0 && ms < LOOKS_LIKE_SECONDS)
        rv__problem_warn(problems, source, value->at,
                         "a bare number is in milliseconds: write %lldms, or %llds if seconds are "
                         "meant",
                         (long long)ms, (long long)ms);
}

/* Append a duration as milliseconds. */
static bool write_duration(const struct rv__params *p, const struct rv__tree *value)
{
    const struct rv__tree *real = rv__tree_real(value);
    int64_t ms;
    if (real->kind == TREE_NUMBER || has_template(value)) {
        rv__tree_json(value, p->out);
        return true;
    }
    if (real->kind != TREE_STRING || rv__duration_ms(real->text, &ms) < 0)
        return false;
    rv__buf_int(p->out, ms);
    return true;
}

static void write_param(const struct rv__params *p, const struct param *param,
                        const struct rv__tree *value, bool *first)
{
    size_t begin = p->out->len;
    const struct rv__tree *real = rv__tree_real(value);
    rv__buf_fmt(p->out, "%s\"%s\":", *first ? "" : ",", param->key);
    bool good = is_wanted(value, param);
    if (good)
        rv__params_check_timeout(p->source, p->problems, param->key, value);
    if (good && (param->want == WANT_DURATION || param->want == WANT_TIMEOUT))
        good = write_duration(p, value);
    else if (good)
        rv__tree_json(value, p->out);
    if (good) {
        *first = false;
        return;
    }
    rv__buf_cut(p->out, begin);
    const char *quote = real->kind == TREE_STRING ? "'" : "";
    bool shown = real->kind == TREE_STRING || real->kind == TREE_NUMBER;
    rv__problem_add(p->problems, p->source, value->at, "invalid %s %s%s%s: must be %s", param->key,
                    quote, shown ? rv__cite(real->text).text : rv__tree_phrase(real), quote,
                    wanted(param));
}

/* Write the members of a mapping that are parameters; report the others. */
static void write_map(const struct rv__params *p, const struct rv__tree *map,
                      const struct param *params, size_t count, const char *what, bool *first)
{
    const char *candidates[16];
    for (size_t i = 0; i < count; i++)
        candidates[i] = params[i].key;
    for (const struct rv__tree *child = map->first; child != NULL; child = child->next) {
        struct rv__key_room room;
        struct rv__str key = rv__camel(child->key, &room);
        size_t i = 0;
        while (i < count && !rv__str_is(key, params[i].key))
            i++;
        if (i < count) {
            write_param(p, &params[i], child, first);
            continue;
        }
        const char *meant = rv__suggest(key, candidates, count);
        rv__problem_add(p->problems, p->source, child->key_at, "unknown key '%s' of %s%s%s%s",
                        rv__cite(child->key).text, what, meant ? "; did you mean '" : "",
                        meant ? meant : "", meant ? "'?" : "");
    }
}

static void begin_with(const struct rv__params *p)
{
    rv__buf_text(p->out, ",\"with\":");
}

/* With saveTo the answer is not read, so `other`, which says how to read it, is refused. */
static void check_save(const struct rv__params *p, const char *other)
{
    const struct rv__tree *value = rv__tree_real(p->value);
    const struct rv__tree *save = rv__form_get(p->body, "saveTo");
    const struct rv__tree *said = rv__form_get(p->body, other);
    if (save == NULL)
        save = rv__form_get(value, "saveTo");
    if (said == NULL)
        said = rv__form_get(value, other);
    if (save != NULL && said != NULL)
        rv__problem_add(
            p->problems, p->source, said->key_at,
            "'%s' has no effect with 'saveTo': the bytes are written to the file unchanged", other);
}

void rv__params_http(const struct rv__params *p)
{
    const struct rv__tree *save = rv__form_get(p->body, "saveTo");
    const struct rv__tree *real = rv__tree_real(p->value);
    bool first = true;
    begin_with(p);
    rv__buf_char(p->out, '{');
    if (real->kind == TREE_STRING)
        write_param(p, &http_params[0], p->value, &first);
    else if (real->kind == TREE_MAP)
        write_map(p, real, http_params, COUNT(http_params), "http", &first);
    if (real->kind != TREE_STRING && rv__form_get(real, "url") == NULL)
        rv__problem_add(p->problems, p->source, p->value->key_at, "http needs a 'url'");
    if (save != NULL && rv__form_get(real, "saveTo") != NULL)
        rv__problem_add(p->problems, p->source, save->key_at, "http has its 'saveTo' already");
    else if (save != NULL)
        write_param(p, &http_params[COUNT(http_params) - 1], save, &first);
    check_save(p, "responseType");
    rv__buf_char(p->out, '}');
}

/* Does it contain an expression? "$${" is not one. */
static bool has_expression(struct rv__str text)
{
    for (size_t i = 0; i + 1 < text.len; i++)
        if (text.at[i] == '$' && text.at[i + 1] == '{' && (i == 0 || text.at[i - 1] != '$'))
            return true;
    return false;
}

static bool is_shell(struct rv__str program)
{
    static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh", "ash" };
    const char *slash = memrchr(program.at, '/', program.len);
    if (slash != NULL)
        program = (struct rv__str){ slash + 1, program.len - (size_t)(slash + 1 - program.at) };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (rv__str_is(program, shells[i]))
            return true;
    return false;
}

/* Warn about an expression in a script of `sh -c`: its value would become code. */
static void check_script(const struct rv__params *p, const struct rv__tree *argv)
{
    const struct rv__tree *word = argv->first;
    if (rv__tree_real(word)->kind != TREE_STRING || !is_shell(rv__tree_real(word)->text))
        return;
    for (word = word->next; word != NULL; word = word->next) {
        struct rv__str option = rv__tree_real(word)->text;
        if (rv__tree_real(word)->kind != TREE_STRING || option.len < 2 || option.at[0] != '-')
            return;
        if (option.at[1] != '-' && option.at[option.len - 1] == 'c')
            break;
    }
    const struct rv__tree *script = word != NULL ? word->next : NULL;
    if (script != NULL && rv__tree_real(script)->kind == TREE_STRING &&
        has_expression(rv__tree_real(script)->text))
        rv__problem_warn(p->problems, p->source, script->at,
                         "an expression in a shell script becomes a part of it, and its value may "
                         "be a command: pass it as an argument, [sh, -c, 'echo \"$1\"', sh, "
                         "\"${ … }\"]");
}

/* `true` and `false` are values in YAML, but also programs. */
static bool names_program(const struct rv__tree *word)
{
    return word->kind == TREE_BOOL || word->kind == TREE_NUMBER ||
           (word->kind == TREE_STRING && word->text.len > 0);
}

static void write_argv(const struct rv__params *p, const struct rv__tree *argv, bool *first)
{
    const struct rv__tree *real = rv__tree_real(argv);
    if (real->kind != TREE_LIST || real->count == 0)
        rv__problem_add(p->problems, p->source, argv->at,
                        "a command must be a list, the program and its arguments: [./find, "
                        "\"${ .input.id }\"]; for a shell: [sh, -c, \"…\"]");
    else if (!names_program(rv__tree_real(real->first)))
        rv__problem_add(p->problems, p->source, real->first->at,
                        "a command begins with the name of a program, and this is %s",
                        rv__tree_real(real->first)->kind == TREE_STRING
                            ? "an empty text"
                            : rv__tree_phrase(real->first));
    else
        check_script(p, real);
    rv__buf_text(p->out, "\"argv\":");
    rv__tree_json(argv, p->out);
    *first = false;
}

void rv__params_command(const struct rv__params *p)
{
    const struct rv__tree *real = rv__tree_real(p->value);
    bool first = true;
    begin_with(p);
    rv__buf_char(p->out, '{');
    if (real->kind == TREE_MAP) {
        const struct rv__tree *argv = rv__form_get(real, "argv");
        write_map(p, real, command_params, COUNT(command_params), "a command", &first);
        if (argv == NULL)
            rv__problem_add(p->problems, p->source, p->value->key_at, "a command needs 'argv'");
        else {
            struct rv__buf none; /* written before: this call only reports errors */
            struct rv__params judge = *p;
            rv__buf_init(&none, RV__DEFINE_MAX_BYTES);
            judge.out = &none;
            write_argv(&judge, argv, &first);
            rv__buf_done(&none);
        }
    } else {
        write_argv(p, p->value, &first);
    }
    for (const struct rv__tree *child = p->body->first; child != NULL; child = child->next) {
        struct rv__key_room room;
        struct rv__str key = rv__camel(child->key, &room);
        for (size_t i = 1; i < COUNT(command_params); i++)
            if (rv__str_is(key, command_params[i].key))
                write_param(p, &command_params[i], child, &first);
    }
    check_save(p, "output");
    rv__buf_char(p->out, '}');
}

void rv__params_delay(const struct rv__params *p)
{
    const struct rv__tree *real = rv__tree_real(p->value), *duration = p->value;
    bool map = real->kind == TREE_MAP;
    bool other = map &&
                 (rv__form_get(real, "seconds") != NULL ||
                  rv__form_get(real, "milliseconds") != NULL || rv__form_get(real, "ms") != NULL);
    if (map)
        duration = rv__form_get(real, "duration");
    if (map && (real->count != 1 || (duration == NULL && !other))) {
        rv__buf_text(p->out, ",\"with\":0");
        rv__problem_add(p->problems, p->source, p->value->at,
                        "a delay has one of 'duration', 'seconds', 'milliseconds'");
        return;
    }
    if (other) {
        begin_with(p);
        rv__tree_json(p->value, p->out);
        return;
    }
    size_t begin = p->out->len;
    begin_with(p);
    if (write_duration(p, duration))
        return;
    rv__buf_cut(p->out, begin);
    rv__buf_text(p->out, ",\"with\":0");
    const struct rv__tree *said = rv__tree_real(duration);
    rv__problem_add(
        p->problems, p->source, duration->at,
        "invalid delay '%s': must be a duration such as 250ms, 30s, 5m, 1h30m or 30d, or "
        "a number of milliseconds",
        said->kind == TREE_STRING ? rv__cite(said->text).text : rv__tree_phrase(said));
}

void rv__params_signal(const struct rv__params *p)
{
    const struct rv__tree *real = rv__tree_real(p->value);
    const struct rv__tree *timeout = rv__form_get(p->body, "timeout");
    bool first = true;
    begin_with(p);
    rv__buf_char(p->out, '{');
    if (real->kind == TREE_MAP)
        write_map(p, real, signal_params, COUNT(signal_params), "a signal", &first);
    else
        write_param(p, &signal_params[0], p->value, &first);
    if (timeout != NULL && rv__form_get(real, "timeout") != NULL)
        rv__problem_add(p->problems, p->source, timeout->key_at,
                        "the signal has its 'timeout' already");
    else if (timeout != NULL)
        write_param(p, &signal_params[1], timeout, &first);
    rv__buf_char(p->out, '}');
}

/* The limits of a chat, which the plan has beside `with`. */
static void write_chat_bounds(const struct rv__params *p, const struct rv__tree *map)
{
    static const char *const bounds[] = { "maxTurns", "budget", "access" };
    for (size_t i = 0; i < COUNT(bounds); i++) {
        const struct rv__tree *value = rv__form_get(map, bounds[i]);
        if (value == NULL)
            continue;
        rv__buf_fmt(p->out, ",\"%s\":", bounds[i]);
        rv__tree_json(value, p->out);
    }
}

static void check_chat_keys(const struct rv__params *p, const struct rv__tree *map)
{
    for (const struct rv__tree *child = map->first; child != NULL; child = child->next) {
        struct rv__key_room room;
        struct rv__str key = rv__camel(child->key, &room);
        size_t i = 0;
        while (i < COUNT(chat_keys) && !rv__str_is(key, chat_keys[i]))
            i++;
        if (i < COUNT(chat_keys))
            continue;
        const char *meant = rv__suggest(key, chat_keys, COUNT(chat_keys));
        rv__problem_add(p->problems, p->source, child->key_at, "unknown key '%s' of a chat%s%s%s",
                        rv__cite(child->key).text, meant ? "; did you mean '" : "",
                        meant ? meant : "", meant ? "'?" : "");
    }
}

/* One file of `attach`: its path, or {file | data, type?, name?}. */
static void check_file(const struct rv__params *p, const struct rv__tree *file)
{
    static const struct param params[] = {
        { "file", WANT_ANY }, { "data", WANT_TEXT }, { "type", WANT_TEXT }, { "name", WANT_TEXT }
    };
    const struct rv__tree *real = rv__tree_real(file), *type = rv__form_get(real, "type");
    struct rv__buf none; /* written as it is: this only reports errors */
    struct rv__params judge = *p;
    bool first = true;
    if (real->kind == TREE_STRING && real->text.len > 0)
        return;
    if (real->kind != TREE_MAP) {
        rv__problem_add(p->problems, p->source, file->at,
                        "a file of 'attach' is a path, or a mapping with 'file' or 'data'");
        return;
    }
    rv__buf_init(&none, RV__DEFINE_MAX_BYTES);
    judge.out = &none;
    write_map(&judge, real, params, COUNT(params), "a file of 'attach'", &first);
    rv__buf_done(&none);
    if ((rv__form_get(real, "file") == NULL) == (rv__form_get(real, "data") == NULL))
        rv__problem_add(p->problems, p->source, file->at,
                        "a file of 'attach' has either 'file' or 'data'");
    if (type != NULL && rv__tree_real(type)->kind == TREE_STRING && !has_template(type) &&
        !rv__media_is_taken(rv__tree_real(type)->text))
        rv__problem_add(p->problems, p->source, type->at, "models take no '%s': " RV__MEDIA_TAKEN,
                        rv__cite(rv__tree_real(type)->text).text);
}

void rv__params_chat(const struct rv__params *p)
{
    const struct rv__tree *real = rv__tree_real(p->value);
    bool first = true;
    begin_with(p);
    rv__buf_char(p->out, '{');
    if (real->kind != TREE_MAP)
        rv__problem_add(p->problems, p->source, p->value->at,
                        "a chat is a mapping with its 'provider' and 'prompt'");
    for (size_t i = 0; real->kind == TREE_MAP && i < COUNT(chat_params); i++) {
        const struct rv__tree *value = rv__form_get(real, chat_params[i].key);
        if (value != NULL)
            write_param(p, &chat_params[i], value, &first);
        else if (i < (p->agent ? 1 : 2))
            rv__problem_add(p->problems, p->source, p->value->key_at, "a chat needs a '%s'",
                            chat_params[i].key);
    }
    rv__buf_char(p->out, '}');
    if (real->kind != TREE_MAP)
        return;
    check_chat_keys(p, real);
    const struct rv__tree *files = rv__form_get(real, "attach");
    if (files != NULL && rv__tree_real(files)->kind == TREE_LIST)
        for (const struct rv__tree *f = rv__tree_real(files)->first; f != NULL; f = f->next)
            check_file(p, f);
    write_chat_bounds(p, real);
}

void rv__params_tool(const struct rv__params *p)
{
    const struct rv__tree *real = rv__tree_real(p->value);
    bool first = true;
    begin_with(p);
    rv__buf_char(p->out, '{');
    if (real->kind != TREE_MAP)
        rv__problem_add(p->problems, p->source, p->value->at,
                        "a tool is a mapping with its 'server', its 'name' and its 'arguments'");
    else
        write_map(p, real, tool_params, COUNT(tool_params), "a tool", &first);
    for (size_t i = 0; real->kind == TREE_MAP && i < 2; i++)
        if (rv__form_get(real, tool_params[i].key) == NULL)
            rv__problem_add(p->problems, p->source, p->value->key_at, "a tool needs a '%s'",
                            tool_params[i].key);
    rv__buf_char(p->out, '}');
}

int rv__text_value(struct rv__str text, struct rv__buf *out, rv_error *err)
{
    struct rv__str value;
    size_t blank = 0;
    while (blank < text.len && strchr(" \t\r\n", text.at[blank]) != NULL)
        blank++;
    bool json = blank < text.len && strchr("{[\"", text.at[blank]) != NULL;
    int rc = rv__json_check(text, RV__PLAN_VALUE_DEPTH, &value, err);
    if (rc == RV_OK)
        rv__buf_str(out, value);
    else if (json)
        return rc;
    else
        rv__buf_json_str(out, text);
    return RV_OK;
}

/* A value from C has no file: errors name its node. */
static int check_text(enum rv__form_kind kind, struct rv__source *source, struct rv__arena *arena,
                      struct rv__buf *out, rv_error *err)
{
    struct rv__problems problems = { .arena = arena };
    struct rv__tree *value = NULL, body = { .kind = TREE_MAP };
    struct rv__params params = { source, &problems, out, &body, NULL };
    if (rv__tree_from_json(source, arena, &problems, &value) < 0)
        return rv__nomem(err);
    params.value = value;
    if (value != NULL && kind == FORM_HTTP)
        rv__params_http(&params);
    else if (value != NULL && kind == FORM_COMMAND)
        rv__params_command(&params);
    else if (value != NULL && kind == FORM_SIGNAL)
        rv__params_signal(&params);
    else if (value != NULL && kind == FORM_TOOL)
        rv__params_tool(&params);
    else if (value != NULL)
        rv__params_delay(&params);
    if (problems.rc < 0)
        return rv__nomem(err);
    if (problems.count > 0)
        return rv__fail(err, RV_EINVAL, "%.*s", RV__ARG(problems.items[0].message));
    return RV_OK;
}

int rv__params_of_text(enum rv__form_kind kind, struct rv__str text, struct rv__buf *out,
                       rv_error *err)
{
    struct rv__source source = { .file = rv__str("") };
    struct rv__arena arena;
    struct rv__buf json;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the text */
    rv__buf_init(&json, RV__PLAN_MAX_BYTES);
    int rc = rv__text_value(text, &json, err);
    if (rc == RV_OK)
        rc = rv__buf_err(&json, err);
    source.text = rv__buf_view(&json);
    if (rc == RV_OK)
        rc = check_text(kind, &source, &arena, out, err);
    rv__buf_done(&json);
    rv__arena_done(&arena);
    return rc == RV_EPARSE ? RV_EINVAL : rc;
}

const struct rv__tree *rv__params_at(const struct rv__spot *spot, struct rv__str pointer)
{
    static const char *const names[FORM_KINDS] = {
        [FORM_HTTP] = "http",   [FORM_COMMAND] = "command", [FORM_VALUE] = "value",
        [FORM_DELAY] = "delay", [FORM_SIGNAL] = "signal",   [FORM_CHAT] = "chat",
        [FORM_TOOL] = "tool",
    };
    const char *name = spot->kind < FORM_KINDS ? names[spot->kind] : NULL;
    const struct rv__tree *body = spot->work != NULL ? spot->work : spot->body;
    const struct rv__tree *value = name != NULL ? rv__form_get(body, name) : NULL;
    static const char argv[] = "/argv";
    if (spot->kind == FORM_HTTP && rv__str_is(pointer, "/saveTo") && value != NULL &&
        rv__form_get(rv__tree_real(value), "saveTo") == NULL)
        return rv__tree_at(body, pointer); /* beside the kind */
    if (value == NULL || rv__tree_real(value)->kind == TREE_MAP)
        return value != NULL ? rv__tree_at(value, pointer) : NULL;
    if (spot->kind == FORM_COMMAND && pointer.len >= sizeof argv - 1 &&
        memcmp(pointer.at, argv, sizeof argv - 1) == 0) {
        pointer.at += sizeof argv - 1;
        pointer.len -= sizeof argv - 1;
    } else if (spot->kind == FORM_COMMAND ||
               (spot->kind == FORM_SIGNAL && !rv__str_is(pointer, "/name"))) {
        return rv__tree_at(body, pointer); /* beside the kind: stdin, env, timeout */
    }
    return rv__tree_at(value, pointer);
}
