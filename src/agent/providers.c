/* providers.c: the providers of a configuration, by name. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/protocol.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/suggest.h"

enum { MOST_NAME = 100 };

#define LIMIT "provider:" /* with its name: the name of its limit */

struct rv__provider {
    struct rv__provider *next;
    const char *name;
    char *url, *key_variable; /* key_variable NULL: it needs no key */
    struct rv__str model;     /* none: not said */
    const struct rv__protocol *protocol;
    struct rv__provider_limits limits;
    bool has_prices;
    double input_price, output_price; /* of a million tokens; 0 if not given */
    bool streams, native;
};

struct rv__providers {
    struct rv__arena arena;
    struct rv__provider *first;
};

static const struct rv__protocol *const protocols[PROVIDER_KINDS] = {
    [PROVIDER_OPENAI] = &rv__openai,
    [PROVIDER_ANTHROPIC] = &rv__anthropic,
};

/* The state of reading a configuration. */
struct reading {
    struct rv__providers *to;
    const char *file;
    struct rv__str name; /* of the provider */
    rv_error *err;
};

static int wrong(const struct reading *r, const char *key, const char *why)
{
    return rv__fail(r->err, RV_EINVAL, "%s: provider '%.*s': %s%s%s%s", r->file, RV__ARG(r->name),
                    key != NULL ? "'" : "", key != NULL ? key : "", key != NULL ? "' " : "", why);
}

static int check_keys(const struct reading *r, struct rv__str object, const char *const *keys,
                      size_t count)
{
    struct rv__json_iter it;
    struct rv__str key, word;
    rv__json_iter_init(&it, object);
    while (rv__json_next(&it, &key, NULL)) {
        size_t i = 0;
        while (i < count && !rv__json_string_is(key, rv__str(keys[i])))
            i++;
        if (i < count)
            continue;
        if (rv__json_string(key, &r->to->arena, &word) < 0)
            return rv__nomem(r->err);
        const char *meant = rv__suggest(word, keys, count);
        char why[200];
        snprintf(why, sizeof why, "unknown key '%.60s'%s%s%s", word.at,
                 meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
        return wrong(r, NULL, why);
    }
    return RV_OK;
}

static int read_text(const struct reading *r, struct rv__str object, const char *key, char **ret)
{
    struct rv__str value, text;
    *ret = NULL;
    if (!rv__json_get(object, key, &value))
        return RV_OK;
    if (!rv__json_is(value, RV__JSON_STRING))
        return wrong(r, key, "must be a text");
    if (rv__json_string(value, &r->to->arena, &text) < 0)
        return rv__nomem(r->err);
    if (text.len == 0 || memchr(text.at, '\0', text.len) != NULL)
        return wrong(r, key, "must not be empty");
    *ret = rv__arena_dup(&r->to->arena, text.at, text.len);
    return *ret != NULL ? RV_OK : rv__nomem(r->err);
}

static int read_count(const struct reading *r, struct rv__str object, const char *key, int64_t *ret)
{
    struct rv__str value;
    if (!rv__json_get(object, key, &value))
        return RV_OK;
    if (rv__json_int(value, ret) < 0 || *ret < 1)
        return wrong(r, key, "must be a whole number, at least 1");
    return RV_OK;
}

static int read_price(const struct reading *r, struct rv__str object, const char *key, double *ret)
{
    struct rv__str value;
    if (!rv__json_get(object, key, &value))
        return RV_OK;
    if (rv__json_double(value, ret) < 0 || !(*ret >= 0))
        return wrong(r, key, "must be a number, not below 0");
    return RV_OK;
}

static int read_part(const struct reading *r, struct rv__str object, const char *key,
                     const char *const *keys, size_t count, struct rv__str *ret)
{
    if (!rv__json_get(object, key, ret)) {
        *ret = rv__str("{}");
        return RV_OK;
    }
    if (!rv__json_is(*ret, RV__JSON_OBJECT))
        return wrong(r, key, "must be a mapping");
    return check_keys(r, *ret, keys, count);
}

static int read_limits(const struct reading *r, struct rv__str object, struct rv__provider *p)
{
    static const char *const limits[] = { "requests", "requestsPerMinute", "tokens",
                                          "tokensPerMinute" };
    static const char *const prices[] = { "input", "output" };
    struct rv__str part;
    struct rv__provider_limits *l = &p->limits;
    int rc = read_part(r, object, "limits", limits, 4, &part);
    if (rc == RV_OK)
        rc = read_count(r, part, "requests", &l->requests);
    if (rc == RV_OK)
        rc = read_count(r, part, "requestsPerMinute", &l->requests_per_minute);
    if (rc == RV_OK)
        rc = read_count(r, part, "tokens", &l->tokens);
    if (rc == RV_OK)
        rc = read_count(r, part, "tokensPerMinute", &l->tokens_per_minute);
    if (rc == RV_OK)
        rc = read_part(r, object, "prices", prices, 2, &part);
    p->has_prices = rc == RV_OK && rv__json_count(part) > 0;
    if (rc == RV_OK)
        rc = read_price(r, part, "input", &p->input_price);
    if (rc == RV_OK)
        rc = read_price(r, part, "output", &p->output_price);
    return rc;
}

/* Without slashes at its end, and without the /v1 that we add ourselves. */
static int make_url(const struct reading *r, struct rv__provider *p, char *base)
{
    size_t len = strlen(base);
    while (len > 0 && base[len - 1] == '/')
        base[--len] = '\0';
    if (strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0)
        return wrong(r, "baseUrl", "must begin with http:// or https://");
    if (len >= 3 && strcmp(base + len - 3, "/v1") == 0)
        return wrong(r, "baseUrl", "is without /v1 at its end: that is added");
    size_t room = len + strlen(p->protocol->path) + 1;
    p->url = rv__arena_alloc(&r->to->arena, room);
    if (p->url == NULL)
        return rv__nomem(r->err);
    snprintf(p->url, room, "%s%s", base, p->protocol->path);
    return RV_OK;
}

static int read_provider(struct reading *r, struct rv__str object, struct rv__provider *p)
{
    static const char *const keys[] = { "kind",   "baseUrl", "model",  "keyEnv",
                                        "limits", "prices",  "stream", "structuredOutput" };
    char *kind = NULL, *base = NULL, *model = NULL, *output = NULL;
    if (!rv__json_is(object, RV__JSON_OBJECT))
        return wrong(r, NULL, "it must be a mapping with 'kind' and 'baseUrl'");
    int rc = check_keys(r, object, keys, sizeof keys / sizeof *keys);
    if (rc == RV_OK)
        rc = read_text(r, object, "kind", &kind);
    if (rc < 0)
        return rc;
    for (int i = 0; kind != NULL && i < PROVIDER_KINDS; i++)
        if (strcmp(kind, protocols[i]->name) == 0)
            p->protocol = protocols[i];
    if (p->protocol == NULL)
        return wrong(r, "kind", "must be openai or anthropic");
    rc = read_text(r, object, "baseUrl", &base);
    if (rc == RV_OK && base == NULL)
        rc = wrong(r, "baseUrl", "is missing: where its models are, such as http://127.0.0.1:8000");
    else if (rc == RV_OK)
        rc = make_url(r, p, base);
    if (rc == RV_OK)
        rc = read_text(r, object, "model", &model);
    if (rc == RV_OK)
        p->model = rv__str(model);
    if (rc == RV_OK)
        rc = read_text(r, object, "keyEnv", &p->key_variable);
    p->streams = true;
    struct rv__str streams;
    if (rc == RV_OK && rv__json_get(object, "stream", &streams) &&
        rv__json_bool(streams, &p->streams) < 0)
        rc = wrong(r, "stream", "must be true or false");
    if (rc == RV_OK)
        rc = read_text(r, object, "structuredOutput", &output);
    p->native = output == NULL || strcmp(output, "native") == 0;
    if (rc == RV_OK && !p->native && strcmp(output, "prompt") != 0)
        rc = wrong(r, "structuredOutput", "must be native or prompt");
    return rc == RV_OK ? read_limits(r, object, p) : rc;
}

static int read_all(struct reading *r, struct rv__str json)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    struct rv__provider **end = &r->to->first;
    if (rv__str_none(json))
        return RV_OK;
    if (!rv__json_is(json, RV__JSON_OBJECT))
        return rv__fail(r->err, RV_EINVAL, "%s: 'providers' must be a mapping by name", r->file);
    if (rv__json_count(json) > RV__AGENT_PROVIDERS)
        return rv__fail(r->err, RV_EINVAL, "%s: there are more than %d providers", r->file,
                        RV__AGENT_PROVIDERS);
    rv__json_iter_init(&it, json);
    while (rv__json_next(&it, &key, &value)) {
        struct rv__provider *p = rv__arena_zalloc(&r->to->arena, 1, sizeof *p);
        if (p == NULL || rv__json_string(key, &r->to->arena, &r->name) < 0)
            return rv__nomem(r->err);
        if (r->name.len == 0 || r->name.len > MOST_NAME ||
            memchr(r->name.at, '\0', r->name.len) != NULL)
            return rv__fail(r->err, RV_EINVAL, "%s: the name of a provider has 1 to %d bytes",
                            r->file, MOST_NAME);
        size_t room = strlen(LIMIT) + r->name.len + 1;
        char *limit = rv__arena_alloc(&r->to->arena, room);
        if (limit == NULL)
            return rv__nomem(r->err);
        snprintf(limit, room, LIMIT "%.*s", RV__ARG(r->name));
        p->limits.name = limit;
        p->name = limit + strlen(LIMIT);
        int rc = read_provider(r, value, p);
        if (rc < 0)
            return rc;
        *end = p;
        end = &p->next;
    }
    return RV_OK;
}

int rv__providers_new(struct rv__str json, const char *file, struct rv__providers **ret,
                      rv_error *err)
{
    struct rv__providers *all = rv__zalloc(1, sizeof *all);
    if (all == NULL)
        return rv__nomem(err);
    rv__arena_init(&all->arena, SIZE_MAX); /* bounded by the configuration */
    struct reading r = { .to = all, .file = file, .err = err };
    int rc = read_all(&r, json);
    if (rc < 0) {
        rv__providers_free(all);
        return rc;
    }
    *ret = all;
    return RV_OK;
}

void rv__providers_free(struct rv__providers *providers)
{
    if (providers == NULL)
        return;
    rv__arena_done(&providers->arena);
    rv__free(providers);
}

struct rv__provider *rv__providers_find(const struct rv__providers *providers, struct rv__str name)
{
    struct rv__provider *p = providers != NULL ? providers->first : NULL;
    while (p != NULL && !rv__str_is(name, p->name))
        p = p->next;
    return p;
}

void rv__providers_names(const struct rv__providers *providers, struct rv__buf *out)
{
    for (const struct rv__provider *p = providers != NULL ? providers->first : NULL; p != NULL;
         p = p->next) {
        rv__buf_text(out, p->name);
        rv__buf_text(out, p->next != NULL ? ", " : "");
    }
}

struct rv__provider *rv__providers_first(const struct rv__providers *providers)
{
    return providers != NULL ? providers->first : NULL;
}

struct rv__provider *rv__provider_next(const struct rv__provider *provider)
{
    return provider->next;
}

const struct rv__provider_limits *rv__provider_limits(const struct rv__provider *provider)
{
    return &provider->limits;
}

bool rv__provider_is_limited(const struct rv__provider *provider)
{
    const struct rv__provider_limits *l = &provider->limits;
    return l->requests > 0 || l->requests_per_minute > 0 || l->tokens > 0 ||
           l->tokens_per_minute > 0;
}

const char *rv__provider_name(const struct rv__provider *provider)
{
    return provider->name;
}

const char *rv__provider_url(const struct rv__provider *provider)
{
    return provider->url;
}

bool rv__provider_streams(const struct rv__provider *provider)
{
    return provider->streams;
}

bool rv__provider_native(const struct rv__provider *provider)
{
    return provider->native;
}

const struct rv__protocol *rv__provider_protocol(const struct rv__provider *provider)
{
    return provider->protocol;
}

struct rv__str rv__provider_model(const struct rv__provider *provider)
{
    return provider->model;
}

const char *rv__provider_key_variable(const struct rv__provider *provider)
{
    return provider->key_variable;
}

const char *rv__provider_key(const struct rv__provider *provider)
{
    if (provider->key_variable == NULL)
        return "";
    const char *key = getenv(provider->key_variable);
    return key != NULL && *key != '\0' ? key : NULL;
}

bool rv__provider_has_prices(const struct rv__provider *provider)
{
    return provider->has_prices;
}

double rv__provider_cost(const struct rv__provider *provider, int64_t input, int64_t output)
{
    return ((double)input * provider->input_price + (double)output * provider->output_price) / 1e6;
}

const char *const *rv__provider_headers(const struct rv__provider *provider, const char *key,
                                        struct rv__arena *arena)
{
    const char **lines = rv__arena_zalloc(arena, 5, sizeof *lines);
    size_t room = strlen(key) + 64, count = 0;
    char *line = rv__arena_alloc(arena, room);
    if (lines == NULL || line == NULL)
        return NULL;
    lines[count++] = "Content-Type: application/json";
    lines[count++] = "Accept: application/json, text/event-stream";
    if (provider->protocol->more_header != NULL)
        lines[count++] = provider->protocol->more_header;
    if (*key != '\0') {
        /* The format comes from the protocols' own table. */
        const char *format = provider->protocol->key_header, *mark = strstr(format, "%s");
        snprintf(line, room, "%.*s%s", (int)(mark - format), format, key);
        lines[count++] = line;
    }
    return lines;
}

/* ----------------------------------------------------------------------------------- requests --- */

int rv__model_request_write(const struct rv__model_request *request, struct rv__buf *out,
                            rv_error *err)
{
    request->provider->protocol->write(request, out);
    return rv__buf_err(out, err);
}

int rv__model_answer_read(const struct rv__provider *provider, struct rv__str body,
                          struct rv__arena *arena, struct rv__model_answer *ret, rv_error *err)
{
    struct rv__str json;
    rv_error why;
    *ret = (struct rv__model_answer){ .text = { NULL, 0 } };
    if (rv__json_check(body, RV__JSON_MAX_DEPTH, &json, &why) < 0)
        return rv__fail(err, RV_EINVAL, "it is not JSON: %s", why.message);
    if (!rv__json_is(json, RV__JSON_OBJECT))
        return rv__fail(err, RV_EINVAL, "it is not a JSON object");
    return provider->protocol->read(json, arena, ret, err);
}
