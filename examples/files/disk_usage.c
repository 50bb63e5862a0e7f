/* disk_usage.c: which folders are large? Each folder below `/folder` is measured by itself, four at once;
 * killed at any moment, it goes on where it was.
 *
 *     run_file disk_usage.c '{"folder": "/usr/share"}' */
#define _GNU_SOURCE /* nftw, d_type */
#include <rival/rival.h>

#include <dirent.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folders to measure: a JSON array of paths. */
static int folders(rv_ctx *c)
{
    const char *root = rv_str(c, ".input.folder");
    DIR *dir = opendir(root);
    struct dirent *entry;
    if (dir == NULL)
        return rv_stop(c, "%s: it cannot be read", root);
    json_t *found = json_array();
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            json_array_append_new(found, json_sprintf("%s/%s", root, entry->d_name));
    closedir(dir);
    rv_log_info(c, "%zu folders in %s", json_array_size(found), root);
    return rv_return(c, "o", found);
}

static int64_t bytes, files; /* of the one that is being measured: a host runs one step at a time */

static int add(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)path;
    (void)at;
    if (type == FTW_F) {
        bytes += st->st_size;
        files++;
    }
    return 0;
}

static int measure(rv_ctx *c)
{
    const char *folder = rv_str(c, ".loop.item");
    bytes = files = 0;
    if (nftw(folder, add, 32, FTW_PHYS) != 0)
        return rv_fail(c, "%s: it cannot be measured", folder);
    rv_describe(c, "%s: %lld files", folder, (long long)files);
    return rv_return(c, "{s:s,s:I,s:I}", "folder", folder, "bytes", (json_int_t)bytes, "files",
                     (json_int_t)files);
}

/* Of all iterations: the sum, and the largest. */
static int report(rv_ctx *c)
{
    json_t *all = json_loads(rv_json(c, ".steps.each.result.iterations"), 0, NULL), *one;
    json_int_t sum = 0, most = -1;
    const char *largest = "";
    size_t i;
    json_array_foreach (all, i, one) {
        json_t *result = json_object_get(
            json_object_get(json_object_get(one, "results"), "measure"), "result");
        json_int_t n = json_integer_value(json_object_get(result, "bytes"));
        sum += n;
        if (n > most) {
            most = n;
            largest = json_string_value(json_object_get(result, "folder"));
        }
    }
    rv_describe(c, "%lld bytes in %zu folders", (long long)sum, json_array_size(all));
    int rc = rv_return(c, "{s:I,s:s}", "bytes", sum, "largest", largest);
    json_decref(all);
    return rc;
}

RV_WORKFLOW("disk-usage", .description = "Which folders are large?",
            .input = RV_JSON({
                "type" : "object",
                "required" : ["folder"],
                "properties" : { "folder" : { "type" : "string" } }
            }),
            .steps = RV_STEPS(RV_FOREACH(folders, .alias = "each", .parallel = true,
                                         .concurrency = 4,
                                         .body = RV_STEPS(RV_STEP(measure, .timeout_ms = 60000))),
                              RV_STEP(report)))
