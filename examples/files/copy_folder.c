/* copy_folder.c: copy the files of one folder into another, and see that each arrived.
 *
 * A copy that fails is tried again; one that was copied is not copied again after a crash.
 *
 *     run_file copy_folder.c '{"from": "photos", "to": "/media/backup/photos"}' */
#include <rival/rival.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void path_of(const char *folder, const char *name, char path[4096])
{
    snprintf(path, 4096, "%s/%s", folder, name);
}

static int prepare(rv_ctx *c)
{
    const char *to = rv_str(c, ".input.to");
    if (mkdir(to, 0755) < 0 && errno != EEXIST)
        return rv_stop(c, "%s: %m", to);
    return 0;
}

static int files(rv_ctx *c)
{
    DIR *dir = opendir(rv_str(c, ".input.from"));
    struct dirent *entry;
    if (dir == NULL)
        return rv_fail(c, "%s: %m", rv_str(c, ".input.from"));
    json_t *found = json_array();
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_type == DT_REG)
            json_array_append_new(found, json_string(entry->d_name));
    closedir(dir);
    return rv_return(c, "o", found);
}

static int copy_bytes(rv_ctx *c, int from, int to, long long *bytes)
{
    char room[65536];
    ssize_t n;
    *bytes = 0;
    while ((n = read(from, room, sizeof room)) > 0) {
        if (rv_ctx_cancelled(c)) /* a large file should not keep a cancel waiting */
            return rv_fail(c, "told to stop");
        if (write(to, room, (size_t)n) != n)
            return rv_fail(c, "it cannot be written: %m");
        *bytes += n;
    }
    return n < 0 ? rv_fail(c, "it cannot be read: %m") : 0;
}

/* Under another name first: whoever looks at the mirror sees whole files only. */
static int copy(rv_ctx *c)
{
    char from[4096], to[4096], fresh[4200];
    const char *name = rv_str(c, ".loop.item");
    long long bytes = 0;
    path_of(rv_str(c, ".input.from"), name, from);
    path_of(rv_str(c, ".input.to"), name, to);
    snprintf(fresh, sizeof fresh, "%s.part", to);
    int in = open(from, O_RDONLY), out = open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    int rc = in < 0 || out < 0 ? rv_fail(c, "%s: %m", name) : copy_bytes(c, in, out, &bytes);
    if (rc == 0 && (fsync(out) < 0 || rename(fresh, to) < 0))
        rc = rv_fail(c, "%s: %m", to);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    if (rc != 0)
        return rc;
    rv_describe(c, "%s, %lld bytes", name, bytes);
    return rv_return(c, "I", (json_int_t)bytes);
}

static int verify(rv_ctx *c)
{
    char from[4096], to[4096];
    struct stat a, b;
    path_of(rv_str(c, ".input.from"), rv_str(c, ".loop.item"), from);
    path_of(rv_str(c, ".input.to"), rv_str(c, ".loop.item"), to);
    if (stat(from, &a) < 0 || stat(to, &b) < 0 || a.st_size != b.st_size)
        return rv_fail(c, "%s differs from %s", to, from);
    return rv_return_bool(c, true);
}

static int complain(rv_ctx *c)
{
    rv_log_error(c, "the mirror is not complete: %s", rv_str(c, ".error.message"));
    return 0;
}

RV_WORKFLOW("copy-folder", .description = "Copy a folder's files, and check them",
            .on_error = complain,
            .input = RV_JSON({ "type" : "object", "required" : [ "from", "to" ] }),
            .steps = RV_STEPS(RV_STEP(prepare),
                              RV_FOREACH(files, .alias = "each", .parallel = true, .concurrency = 2,
                                         .body = RV_STEPS(RV_STEP(copy, .max_attempts = 3),
                                                          RV_STEP(verify)))))
