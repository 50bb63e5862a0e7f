/* test_save.c: what a step gets goes to a file. For src/work/save.c. */
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "unit/engine/rig.h"

static int setup(void **state)
{
    int rc = rig_setup(state);
    struct rig *rig = *state;
    if (rc == 0)
        rig_open(rig, NULL);
    return rc;
}

/* The files of the rig's folder that a step may have made, in no order. */
static size_t count_files(const struct rig *rig, const char *name)
{
    DIR *folder = opendir(rig->folder);
    const struct dirent *item;
    size_t count = 0;
    assert_non_null(folder);
    while ((item = readdir(folder)) != NULL)
        count += strstr(item->d_name, name) != NULL;
    closedir(folder);
    return count;
}

static void has(const struct rig *rig, const char *name, const char *expected)
{
    char path[200], text[200] = "";
    snprintf(path, sizeof path, "%s/%s", rig->folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    assert_string_equal(text, expected);
    assert_int_equal(unlink(path), 0);
}

static void stdout_goes_to_a_file_beside_the_workflow(void **state)
{
    struct rig *rig = *state;
    rig_define(rig, "  - a: { command: [echo, 'one two'], saveTo: 'kept-${ .input }.txt' }\n"
                    "  - b: { command: { argv: [printf, '\\377'], saveTo: bytes.kept } }\n"
                    "  - c: { command: [cat, '${ .steps.a.result.path }'] }\n"
                    "  - d: { command: ['true'], saveTo: empty.kept, description: '${ "
                    ".result.bytes } bytes' }\n");
    rig_gives(rig, "r", "5",
              "\"a\":{\"result\":{\"path\":\"kept-5.txt\",\"bytes\":8},\"state\":{},\"status\":"
              "\"completed\"},\"b\":{\"result\":{\"path\":\"bytes.kept\",\"bytes\":1}");
    rig_gives(rig, "s", "5", "\"c\":{\"result\":\"one two\"");
    rig_gives(rig, "t", "5",
              "\"d\":{\"result\":{\"path\":\"empty.kept\",\"bytes\":0},\"state\":{\"description\":"
              "\"0 bytes\"}");
    has(rig, "kept-5.txt", "one two\n");
    has(rig, "bytes.kept", "\377");
    has(rig, "empty.kept", "");
    assert_int_equal(count_files(rig, ".partial-"), 0);
}

/* An old one stays as it was. */
static void a_failed_attempt_leaves_no_file(void **state)
{
    struct rig *rig = *state;
    rig_define(rig, "  - a: { command: [echo, old], saveTo: old.kept }\n"
                    "  - b: { command: [sh, -c, 'echo new; exit 3'], saveTo: old.kept }\n");
    rig_gives(rig, "a", NULL, "'sh' failed with exit code 3");
    rig_define(rig, "  - b: { command: [sh, -c, 'echo new; sleep 60'], saveTo: new.kept, timeout: "
                    "300ms }\n");
    rig_gives(rig, "b", NULL, "timed out");
    rig_define(rig, "  - b: { command: [sh, -c, 'echo new; echo \"{\\\"skipped\\\": true}\" "
                    ">$RIVAL_CONTROL'], saveTo: new.kept }\n");
    rig_gives(rig, "c", NULL, "\"status\":\"skipped\"");
    rig_define(rig, "  - b: { command: [./nobody], saveTo: new.kept }\n");
    rig_gives(rig, "d", NULL, "\"status\":\"failed\"");
    rig_close(rig); /* waits for what was ended */
    has(rig, "old.kept", "old\n");
    assert_int_equal(count_files(rig, "kept"), 0);
}

static void a_bad_place_is_told(void **state)
{
    struct rig *rig = *state;
    rig_define(rig, "  - a: { command: [echo], saveTo: nowhere/x }\n");
    rig_gives(rig, "a", NULL, "nowhere/x': No such file or directory");
    rig_define(rig, "  - a: { command: [echo], saveTo: '${ 5 }' }\n");
    rig_gives(rig, "b", NULL, "the `saveTo` of a command must be the path of a file; it came to 5");
    rig_define(rig, "  - a: { command: [echo], saveTo: '${ \"\" }' }\n");
    rig_gives(rig, "c", NULL, "must be the path of a file");
    rig_define(rig, "  - a: { command: [echo], saveTo: . }\n");
    rig_gives(rig, "d", NULL, "exists and is not a file");
}

static void more_than_a_result_may_be_is_saved(void **state)
{
    struct rig *rig = *state;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    rig_define(rig, "  - a: { command: [head, -c, '300000000', /dev/zero], saveTo: large.kept }\n");
    rig_gives(rig, "a", NULL, "{\"path\":\"large.kept\",\"bytes\":300000000}");
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 100000); /* kB: it was in no memory of ours */
    char path[200];
    snprintf(path, sizeof path, "%s/large.kept", rig->folder);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        CASE(stdout_goes_to_a_file_beside_the_workflow),
        CASE(a_failed_attempt_leaves_no_file),
        CASE(a_bad_place_is_told),
        CASE(more_than_a_result_may_be_is_saved),
    };
#undef CASE
    return cmocka_run_group_tests_name("save", tests, NULL, NULL);
}
