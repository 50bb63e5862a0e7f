/* config.c: the configuration of an engine: `rival.yaml` beside its store, or a given file. */
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/store_name.h"
#include "engine/engine.h"

enum { CONFIG_BYTES = 1 << 20 }; /* of a configuration: a page has a few thousand */

/* The path beside the store's file. False: the store is no file, or there is no such configuration. */
static bool find_beside(const char *store, struct rv__buf *path)
{
    if (rv__store_name_in_memory(store) || strstr(store, "://") != NULL)
        return false;
    const char *slash = strrchr(store, '/');
    if (slash != NULL)
        rv__buf_add(path, store, (size_t)(slash + 1 - store));
    rv__buf_text(path, "rival.yaml");
    rv__buf_char(path, '\0');
    return path->rc == RV_OK && access(path->text, F_OK) == 0;
}

/* The keys that it may have. */
static int check_keys(struct rv__str json, const char *file, rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str key;
    if (rv__json_type(json) != RV__JSON_OBJECT)
        return rv__fail(err, RV_EINVAL,
                        "%s: a configuration is a mapping with 'providers' and 'mcpServers'", file);
    rv__json_iter_init(&it, json);
    while (rv__json_next(&it, &key, NULL))
        if (!rv__json_string_is(key, rv__str("providers")) &&
            !rv__json_string_is(key, rv__str("mcpServers")))
            return rv__fail(
                err, RV_EINVAL,
                "%s: unknown key %.*s: a configuration has 'providers' and 'mcpServers'", file,
                (int)(key.len < 60 ? key.len : 60), key.at);
    return RV_OK;
}

static int find_secret(void *arg, const char *name, struct rv__str *value)
{
    struct rv__secret_source *source = arg;
    return source->find(source, name, value);
}

static int read_servers(rv_engine *e, struct rv__str json, const char *file, rv_error *err)
{
    const struct rv__tool_secrets secrets = { find_secret, e->registry->secret_source };
    struct rv__str servers = { NULL, 0 };
    (void)rv__json_get(json, "mcpServers", &servers); /* or there are none */
    return rv__tool_servers_new(servers, file, &secrets, &e->services.tool_servers, err);
}

static int read_config(rv_engine *e, const char *file, rv_error *err)
{
    struct rv__str providers = { NULL, 0 };
    struct rv__buf json;
    rv__buf_init(&json, CONFIG_BYTES);
    int rc = access(file, R_OK) == 0
                 ? rv__define_json(file, &json, err)
                 : rv__fail(err, RV_EINVAL, "the configuration %s cannot be read", file);
    if (rc == RV_OK)
        rc = check_keys(rv__buf_view(&json), file, err);
    if (rc == RV_OK) {
        (void)rv__json_get(rv__buf_view(&json), "providers", &providers);
        rc = rv__providers_new(providers, file, &e->services.providers, err);
    }
    if (rc == RV_OK)
        rc = read_servers(e, rv__buf_view(&json), file, err);
    rv__buf_done(&json);
    return rc;
}

int rv__config_take(rv_engine *e, const rv_engine_opts *opts, rv_error *err)
{
    const char *store = opts->store != NULL ? opts->store : RV__STORE_DEFAULT;
    struct rv__buf path;
    int rc = RV_OK;
    rv__buf_init(&path, 64 << 10);
    if (opts->config_file != NULL)
        rc = read_config(e, opts->config_file, err);
    else if (!e->read_only && find_beside(store, &path))
        rc = read_config(e, path.text, err);
    rv__buf_done(&path);
    return rc;
}
