/* servers.c: the MCP servers of a configuration: read, checked, found by name.
 *
 * A value of a header or of the environment may name secrets, "${ .secrets.NAME }", and nothing else: it is sent
 * out, and never recorded. They are looked up once, when the configuration is read. */
#include <stdio.h>
#include <string.h>

#include "agent/server.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/suggest.h"

enum { VALUES_MAX = 200, VALUE_BYTES = 64 << 10, ARGS_MAX = 1000 };

struct rv__tool_servers {
    struct rv__arena arena;
    struct rv__tool_server *first;
};

/* What is being read. */
struct reading {
    struct rv__tool_servers *to;
    struct rv__tool_server *server;
    const char *file;
    const struct rv__tool_secrets *secrets;
    struct rv__str hidden[VALUES_MAX]; /* secrets of this server */
    size_t hidden_count;
    rv_error *err;
};

static int wrong(const struct reading *r, const char *key, const char *why)
{
    return rv__fail(r->err, RV_EINVAL, "%s: MCP server '%s': %s%s%s%s", r->file, r->server->name,
                    key != NULL ? "'" : "", key != NULL ? key : "", key != NULL ? "' " : "", why);
}

static int check_keys(const struct reading *r, struct rv__str object)
{
    static const char *const keys[] = { "command", "args", "env", "cwd", "url", "headers" };
    enum { KEYS = sizeof keys / sizeof *keys };
    struct rv__json_iter it;
    struct rv__str key, word;
    char why[200];
    rv__json_iter_init(&it, object);
    while (rv__json_next(&it, &key, NULL)) {
        size_t i = 0;
        while (i < KEYS && !rv__json_string_is(key, rv__str(keys[i])))
            i++;
        if (i < KEYS)
            continue;
        if (rv__json_string(key, &r->to->arena, &word) < 0)
            return rv__nomem(r->err);
        const char *meant = rv__suggest(word, keys, KEYS);
        snprintf(why, sizeof why, "unknown key '%.*s'%s%s%s", (int)(word.len < 60 ? word.len : 60),
                 word.at, meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
        return wrong(r, NULL, why);
    }
    return RV_OK;
}

/* A text without NUL, in the arena. */
static int read_text(const struct reading *r, struct rv__str json, const char *key, char **ret)
{
    struct rv__str text;
    if (rv__json_type(json) != RV__JSON_STRING)
        return wrong(r, key, "must be a text");
    if (rv__json_string(json, &r->to->arena, &text) < 0)
        return rv__nomem(r->err);
    if (text.len == 0 || memchr(text.at, '\0', text.len) != NULL)
        return wrong(r, key, "must not be empty");
    *ret = rv__arena_dup(&r->to->arena, text.at, text.len);
    return *ret != NULL ? RV_OK : rv__nomem(r->err);
}

/* ------------------------------------------------------------------------------- secrets --- */

static int unusable(struct reading *r, const char *name, const char *why)
{
    enum { ROOM = 300 };
    char *text = rv__arena_alloc(&r->to->arena, ROOM);
    if (text == NULL)
        return rv__nomem(r->err);
    snprintf(text, ROOM, "its secret '%.100s' %s", name, why);
    if (r->server->unusable == NULL)
        r->server->unusable = text;
    return RV_OK;
}

static int add_secret(struct reading *r, struct rv__str name, struct rv__buf *out)
{
    struct rv__str value;
    char *word = rv__arena_dup(&r->to->arena, name.at, name.len);
    if (word == NULL)
        return rv__nomem(r->err);
    int rc = r->secrets != NULL ? r->secrets->find(r->secrets->arg, word, &value) : RV_ENOTFOUND;
    if (rc < 0)
        return unusable(r, word, "has no value: give it to the engine's environment or --secrets");
    if (value.len < RV__MASK_SHORTEST)
        return unusable(r, word, "is too short to be hidden: 8 bytes are the least");
    if (r->hidden_count == VALUES_MAX)
        return wrong(r, NULL, "names too many secrets");
    if (rv__str_copy(&r->to->arena, value, &r->hidden[r->hidden_count]) < 0)
        return rv__nomem(r->err);
    rv__buf_str(out, r->hidden[r->hidden_count++]);
    return RV_OK;
}

static bool is_name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* "${ .secrets.NAME }" at `at`: its name, and what comes behind. False: it is none. */
static bool secret_at(const char *at, struct rv__str *name, const char **behind)
{
    static const char root[] = ".secrets.";
    at += 2;
    at += strspn(at, " ");
    if (strncmp(at, root, sizeof root - 1) != 0)
        return false;
    at += sizeof root - 1;
    name->at = at;
    while (is_name_char(*at))
        at++;
    name->len = (size_t)(at - name->at);
    at += strspn(at, " ");
    *behind = at + 1;
    return *at == '}' && name->len > 0;
}

/* The value of a header or a variable, with its secrets. */
static int read_value(struct reading *r, struct rv__str json, const char *key, struct rv__buf *out)
{
    struct rv__str name;
    char *text = NULL;
    if (rv__json_type(json) == RV__JSON_STRING && json.len == 2)
        return RV_OK; /* empty */
    int rc = read_text(r, json, key, &text);
    const char *at = text != NULL ? text : "";
    while (rc == RV_OK && *at != '\0') {
        const char *mark = strstr(at, "${");
        size_t plain = mark != NULL ? (size_t)(mark - at) : strlen(at);
        if (mark != NULL && plain > 0 && mark[-1] == '$') { /* $${ is a literal ${ */
            rv__buf_add(out, at, plain - 1);
            rv__buf_text(out, "${");
            at = mark + 2;
            continue;
        }
        rv__buf_add(out, at, plain);
        if (mark == NULL)
            break;
        if (!secret_at(mark, &name, &at))
            return wrong(r, key, "may have secrets in it, ${ .secrets.NAME }, and nothing else");
        rc = add_secret(r, name, out);
    }
    for (size_t i = 0; rc == RV_OK && i < out->len; i++)
        if (strchr("\r\n", out->text[i]) != NULL) /* NUL included */
            return wrong(r, key, "cannot have a line end in a value");
    return rc;
}

/* A map of names to values, each "NAME<between>value". */
static int read_map(struct reading *r, struct rv__str object, const char *key, const char *between,
                    const char ***ret)
{
    struct rv__str map, name, value;
    struct rv__json_iter it;
    size_t count = 0;
    int rc = RV_OK;
    bool there = rv__json_get(object, key, &map);
    if (there && (rv__json_type(map) != RV__JSON_OBJECT || rv__json_count(map) > VALUES_MAX))
        return wrong(r, key, "must be a mapping of names to texts");
    *ret = rv__arena_zalloc(&r->to->arena, there ? rv__json_count(map) + 1 : 1, sizeof **ret);
    if (*ret == NULL)
        return rv__nomem(r->err);
    if (!there)
        return RV_OK;
    rv__json_iter_init(&it, map);
    while (rc == RV_OK && rv__json_next(&it, &name, &value)) {
        struct rv__buf line;
        char *word = NULL;
        rv__buf_init(&line, VALUE_BYTES);
        rc = read_text(r, name, key, &word);
        if (rc == RV_OK && strpbrk(word, *between == '=' ? "=\r\n" : ":\r\n \t") != NULL)
            rc = wrong(r, key, "has a name that cannot be one");
        if (rc == RV_OK)
            rc = read_value(r, value, key, &line);
        struct rv__buf whole;
        rv__buf_init(&whole, VALUE_BYTES + 1024);
        if (rc == RV_OK) {
            rv__buf_text(&whole, word);
            rv__buf_text(&whole, line.len == 0 && *between == ':' ? ";" : between);
            rv__buf_str(&whole, rv__buf_view(&line));
            char *copy = whole.rc == RV_OK && line.rc == RV_OK
                             ? rv__arena_dup(&r->to->arena, whole.text, whole.len)
                             : NULL;
            (*ret)[count++] = copy;
            if (copy == NULL)
                rc = whole.rc == RV_ETOOBIG || line.rc == RV_ETOOBIG
                         ? wrong(r, key, "has a value that is too long")
                         : rv__nomem(r->err);
        }
        rv__buf_done(&line);
        rv__buf_done(&whole);
    }
    return rc;
}

/* --------------------------------------------------------------------------------- reading --- */

/* [program, arguments…], or a program with its `args` beside it. */
static int read_argv(struct reading *r, struct rv__str object, struct rv__str command)
{
    struct rv__json_iter it;
    struct rv__str args = { NULL, 0 }, arg;
    size_t count = 0, most = 2;
    int rc = RV_OK;
    bool beside = rv__json_get(object, "args", &args);
    if (rv__json_type(command) == RV__JSON_ARRAY) {
        if (beside)
            return wrong(r, "args", "is for a command that is a text");
        args = command;
    } else if (beside && rv__json_type(args) != RV__JSON_ARRAY) {
        return wrong(r, "args", "must be a list of texts");
    }
    most += rv__str_none(args) ? 0 : rv__json_count(args);
    if (most > ARGS_MAX)
        return wrong(r, "command", "is too long");
    char **argv = rv__arena_zalloc(&r->to->arena, most, sizeof *argv);
    if (argv == NULL)
        return rv__nomem(r->err);
    if (rv__json_type(command) != RV__JSON_ARRAY)
        rc = read_text(r, command, "command", &argv[count++]);
    if (!rv__str_none(args))
        rv__json_iter_init(&it, args);
    while (rc == RV_OK && !rv__str_none(args) && rv__json_next(&it, NULL, &arg)) {
        if (rv__json_type(arg) == RV__JSON_STRING && arg.len == 2)
            argv[count++] = rv__arena_dup(&r->to->arena, "", 0);
        else
            rc = read_text(r, arg, "command", &argv[count++]);
    }
    if (rc == RV_OK && argv[0] == NULL)
        rc = wrong(r, "command", "must not be empty");
    r->server->argv = (const char **)argv;
    return rc;
}

/* The folder of the configuration. */
static int folder_of(const struct reading *r, const char **ret)
{
    const char *slash = strrchr(r->file, '/');
    size_t len = slash == NULL ? 1 : slash == r->file ? 1 : (size_t)(slash - r->file);
    *ret = rv__arena_dup(&r->to->arena, slash == NULL ? "." : r->file, len);
    return *ret != NULL ? RV_OK : rv__nomem(r->err);
}

static int read_program(struct reading *r, struct rv__str object, struct rv__str command)
{
    struct rv__str value;
    int rc = read_argv(r, object, command);
    if (rc == RV_OK)
        rc = read_map(r, object, "env", "=", &r->server->env);
    if (rc == RV_OK && rv__json_get(object, "headers", &value))
        rc = wrong(r, "headers", "is for a server that has a url");
    if (rc == RV_OK)
        rc = rv__json_get(object, "cwd", &value)
                 ? read_text(r, value, "cwd", (char **)&r->server->cwd)
                 : folder_of(r, &r->server->cwd);
    return rc;
}

static int read_address(struct reading *r, struct rv__str object, struct rv__str url)
{
    static const char *const others[] = { "args", "env", "cwd" };
    struct rv__str value;
    int rc = read_text(r, url, "url", &r->server->url);
    if (rc == RV_OK && strncmp(r->server->url, "http://", 7) != 0 &&
        strncmp(r->server->url, "https://", 8) != 0)
        rc = wrong(r, "url", "must begin with http:// or https://");
    for (size_t i = 0; rc == RV_OK && i < sizeof others / sizeof *others; i++)
        if (rv__json_get(object, others[i], &value))
            rc = wrong(r, others[i], "is for a server that has a command");
    return rc == RV_OK ? read_map(r, object, "headers", ": ", &r->server->headers) : rc;
}

static int read_server(struct reading *r, struct rv__str object)
{
    struct rv__str command, url;
    if (rv__json_type(object) != RV__JSON_OBJECT)
        return wrong(r, NULL, "it must be a mapping with a 'command' or a 'url'");
    int rc = check_keys(r, object);
    if (rc < 0)
        return rc;
    bool runs = rv__json_get(object, "command", &command),
         is_at = rv__json_get(object, "url", &url);
    if (runs == is_at)
        return wrong(r, NULL, "it has either a 'command' or a 'url'");
    rc = runs ? read_program(r, object, command) : read_address(r, object, url);
    if (rc == RV_OK && r->hidden_count > 0)
        rc = rv__mask_new(r->hidden, r->hidden_count, &r->server->mask, r->err);
    return rc;
}

static bool is_server_name(struct rv__str name)
{
    bool good = name.len > 0 && name.len <= RV__TOOL_NAME;
    for (size_t i = 0; good && i < name.len; i++)
        good = is_name_char(name.at[i]) || name.at[i] == '-' || name.at[i] == '.';
    return good;
}

static int read_all(struct reading *r, struct rv__str json)
{
    struct rv__json_iter it;
    struct rv__str key, value, name;
    struct rv__tool_server **end = &r->to->first;
    if (rv__str_none(json))
        return RV_OK;
    if (rv__json_type(json) != RV__JSON_OBJECT || rv__json_count(json) > RV__TOOL_SERVERS)
        return rv__fail(r->err, RV_EINVAL,
                        "%s: 'mcpServers' must be a mapping by name, of at most %d", r->file,
                        RV__TOOL_SERVERS);
    rv__json_iter_init(&it, json);
    while (rv__json_next(&it, &key, &value)) {
        struct rv__tool_server *server = rv__arena_zalloc(&r->to->arena, 1, sizeof *server);
        if (server == NULL || rv__json_string(key, &r->to->arena, &name) < 0)
            return rv__nomem(r->err);
        if (!is_server_name(name))
            return rv__fail(r->err, RV_EINVAL,
                            "%s: '%.*s' cannot be the name of an MCP server: at most %d letters, "
                            "digits, _, - and .",
                            r->file, (int)(name.len < 60 ? name.len : 60), name.at, RV__TOOL_NAME);
        server->name = rv__arena_dup(&r->to->arena, name.at, name.len);
        if (server->name == NULL)
            return rv__nomem(r->err);
        *end = server;
        end = &server->next;
        r->server = server;
        r->hidden_count = 0;
        int rc = read_server(r, value);
        if (rc < 0)
            return rc;
    }
    return RV_OK;
}

int rv__tool_servers_new(struct rv__str json, const char *file,
                         const struct rv__tool_secrets *secrets, struct rv__tool_servers **ret,
                         rv_error *err)
{
    struct rv__tool_servers *all = rv__zalloc(1, sizeof *all);
    struct reading *r = rv__zalloc(1, sizeof *r);
    if (all == NULL || r == NULL) {
        rv__free(all);
        rv__free(r);
        return rv__nomem(err);
    }
    rv__arena_init(&all->arena, SIZE_MAX); /* bounded by the configuration */
    *r = (struct reading){ .to = all, .file = file, .secrets = secrets, .err = err };
    int rc = read_all(r, json);
    for (struct rv__tool_server *s = all->first; s != NULL; s = s->next) {
        rv__chain_init(&s->waiting);
        rv__chain_init(&s->requests);
        rv__chain_init(&s->polling);
        rv__buf_init(&s->line, RV__RPC_BYTES);
        rv__buf_init(&s->tools, RV__RPC_BYTES);
        rv__buf_init(&s->pages, RV__RPC_BYTES);
    }
    rv__free(r);
    if (rc < 0)
        rv__tool_servers_free(all);
    else
        *ret = all;
    return rc;
}

void rv__tool_servers_free(struct rv__tool_servers *servers)
{
    if (servers == NULL)
        return;
    for (struct rv__tool_server *s = servers->first; s != NULL; s = s->next) {
        while (s->requests.first != NULL)
            rv__tool_request_free(
                RV__CONTAINER(s->requests.first, struct rv__tool_request, listed));
        rv__mask_unref(s->mask);
        rv__free(s->session);
        rv__buf_done(&s->line);
        rv__buf_done(&s->tools);
        rv__buf_done(&s->pages);
    }
    rv__arena_done(&servers->arena);
    rv__free(servers);
}

struct rv__tool_server *rv__tool_servers_find(const struct rv__tool_servers *servers,
                                              struct rv__str name)
{
    struct rv__tool_server *s = servers != NULL ? servers->first : NULL;
    while (s != NULL && !rv__str_is(name, s->name))
        s = s->next;
    return s;
}

void rv__tool_servers_names(const struct rv__tool_servers *servers, struct rv__buf *out)
{
    for (const struct rv__tool_server *s = servers != NULL ? servers->first : NULL; s != NULL;
         s = s->next) {
        rv__buf_text(out, s->name);
        rv__buf_text(out, s->next != NULL ? ", " : "");
    }
}

const char *rv__tool_server_name(const struct rv__tool_server *server)
{
    return server->name;
}
