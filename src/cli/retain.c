/* retain.c: `rival retain`: deletes finished runs. */
#include <string.h>

#include "base/duration.h"
#include "base/json.h"
#include "cli/runs.h"

struct retaining {
    const char *store, *age, *keep, *bytes;
    bool dry_run, json;
};

/* A number of 1 or more. False: it is not. */
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
    rv_engine *engine = opts->dry_run ? rv__store_to_read(store) : rv__store_to_hold(store);
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

static int run_retain(int argc, char **argv)
{
    struct retaining r = { .store = NULL };
    int count = rv__options(&rv__cmd_retain, argc, argv, &r);
    if (count < 0)
        return -count;
    rv_retain_opts opts = { .size = sizeof opts, .dry_run = r.dry_run };
    if (r.age == NULL && r.keep == NULL && r.bytes == NULL)
        return rv__cli_usage("retain",
                             "what should be deleted? Give --older-than, --keep or --max-bytes");
    if (r.age != NULL &&
        (rv__duration_ms(rv__str(r.age), &opts.max_age_ms) < 0 || opts.max_age_ms < 1))
        return rv__cli_usage("retain", "--older-than '%s' is not a duration: 12h, 30d", r.age);
    if (r.keep != NULL && !read_count(rv__str(r.keep), &opts.max_runs))
        return rv__cli_usage("retain", "--keep '%s' must be 1 or more", r.keep);
    if (r.bytes != NULL && !read_size(r.bytes, &opts.max_bytes))
        return rv__cli_usage("retain", "--max-bytes '%s' is not a size: 500M, 2G", r.bytes);
    return retain(r.store, &opts, r.json);
}

static const struct rv__option options[] = {
    { "--older-than", "AGE", "delete runs that ended longer ago: 12h, 30d",
      RV__INTO(struct retaining, age) },
    { "--keep", "N", "keep the N that ended last", RV__INTO(struct retaining, keep) },
    { "--max-bytes", "SIZE", "delete until the store holds at most this: 500M, 2G",
      RV__INTO(struct retaining, bytes) },
    { "--dry-run", NULL, "only print how many (an estimate with --max-bytes)",
      RV__INTO(struct retaining, dry_run) },
    RV__OPTION_STORE(struct retaining, store),
    RV__OPTION_JSON(struct retaining, json,
                    "print {\"removed\", \"left\", \"freedBytes\", \"bytes\", \"dryRun\"}"),
    { NULL },
};

const struct rv__command rv__cmd_retain = {
    .name = "retain",
    .section = SECTION_STORE,
    .summary = "delete finished runs, oldest first",
    .options = options,
    .paragraphs = { "Finished runs are deleted, oldest first, once any limit is exceeded. Runs "
                    "that "
                    "have not ended are never deleted. The file does not shrink; the space is used "
                    "for new runs.",
                    "No other process may drive the store meanwhile, except with --dry-run." },
    .examples = { { "rival retain --older-than 30d --dry-run" },
                  { "rival retain --keep 10000 --max-bytes 2G" } },
    .run = run_retain,
};
