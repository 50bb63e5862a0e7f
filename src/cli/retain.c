/* retain.c: `rival retain`: finished runs leave the store. */
#include <string.h>

#include "base/duration.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/runs.h"

/* A number from 1. False: it is none. */
static bool read_count(struct rv__str text, uint64_t *ret)
{
    int64_t n;
    if (rv__json_check(text, 1, NULL, NULL) < 0 || rv__json_int(text, &n) < 0 || n < 1)
        return false;
    *ret = (uint64_t)n;
    return true;
}

/* "1000", "500M", "2G", "2GB": powers of 1024. */
static bool read_size(const char *text, uint64_t *ret)
{
    static const char units[] = "KMGT";
    size_t len = strlen(text);
    int power = 0;
    if (len > 1 && (text[len - 1] == 'B' || text[len - 1] == 'b'))
        len--;
    const char *unit = len > 1 ? strchr(units, text[len - 1] & ~0x20) : NULL;
    if (unit != NULL && *unit != '\0') {
        power = (int)(unit - units) + 1;
        len--;
    }
    if (!read_count((struct rv__str){ text, len }, ret) || *ret > UINT64_MAX >> 1 >> (10 * power))
        return false;
    *ret <<= 10 * power;
    return true;
}

static void print_done(uint64_t removed, const rv_usage *before, const rv_usage *after,
                       bool dry_run, bool json)
{
    uint64_t freed = before->bytes > after->bytes ? before->bytes - after->bytes : 0;
    uint64_t left = dry_run && removed < after->runs ? after->runs - removed : after->runs;
    if (json)
        printf(
            "{\"removed\":%llu,\"left\":%llu,\"freedBytes\":%llu,\"bytes\":%llu,\"dryRun\":%s}\n",
            (unsigned long long)removed, (unsigned long long)left, (unsigned long long)freed,
            (unsigned long long)after->bytes, dry_run ? "true" : "false");
    else if (dry_run)
        printf("would remove %llu runs, %llu stay; the store holds %llu bytes\n",
               (unsigned long long)removed, (unsigned long long)left,
               (unsigned long long)after->bytes);
    else
        printf("removed %llu runs, %llu stay; %llu bytes were freed, the store holds %llu\n",
               (unsigned long long)removed, (unsigned long long)left, (unsigned long long)freed,
               (unsigned long long)after->bytes);
}

static int retain(const char *store, const rv_retain_opts *opts, bool json)
{
    rv_usage before = { 0 }, after = { 0 };
    uint64_t removed = 0;
    rv_error err;
    rv_engine *engine = opts->dry_run ? rv__store_to_read(store) : rv__store_to_write(store, NULL);
    if (engine == NULL)
        return CLI_FAILED;
    int rc = rv_store_usage(engine, &before, &err);
    if (rc == RV_OK)
        rc = rv_retain(engine, opts, &removed, &err);
    if (rc == RV_OK)
        rc = rv_store_usage(engine, &after, &err);
    rv_engine_free(engine);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    print_done(removed, &before, &after, opts->dry_run, json);
    return CLI_OK;
}

int rv__cmd_retain(int argc, char **argv)
{
    const char *store = RV__CLI_STORE, *age = NULL, *keep = NULL, *bytes = NULL;
    rv_retain_opts opts = { .size = sizeof opts };
    bool json = false;
    const struct rv__option options[] = { { "--store", .text = &store },
                                          { "--older-than", .text = &age },
                                          { "--keep", .text = &keep },
                                          { "--max-bytes", .text = &bytes },
                                          { "--dry-run", .flag = &opts.dry_run },
                                          { "--json", .flag = &json },
                                          { NULL } };
    int count = rv__options_args("retain", argc, argv, options, 0, 0, "");
    if (count < 0)
        return -count;
    if (age == NULL && keep == NULL && bytes == NULL)
        return rv__cli_usage("retain", "say which may stay: --older-than, --keep or --max-bytes");
    if (age != NULL && (rv__duration_ms(rv__str(age), &opts.max_age_ms) < 0 || opts.max_age_ms < 1))
        return rv__cli_usage("retain", "--older-than '%s' is not a duration: 12h, 30d", age);
    if (keep != NULL && !read_count(rv__str(keep), &opts.max_runs))
        return rv__cli_usage("retain", "--keep '%s' is not a number from 1", keep);
    if (bytes != NULL && !read_size(bytes, &opts.max_bytes))
        return rv__cli_usage("retain", "--max-bytes '%s' is not a size: 500M, 2G", bytes);
    return retain(store, &opts, json);
}
