/* test_outfile.c: a file is there whole or not at all. For src/base/outfile.c. */
#include "unit/test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/outfile.h"

struct fixture {
    char folder[64], path[96];
    struct rv__outfile out;
    rv_error err;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    fx->out.file = -1;
    snprintf(fx->folder, sizeof fx->folder, "/tmp/rival-outfile-XXXXXX");
    assert_non_null(mkdtemp(fx->folder));
    snprintf(fx->path, sizeof fx->path, "%s/it", fx->folder);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    rv__test_fail_alloc_after(-1);
    rv__outfile_done(&fx->out);
    (void)unlink(fx->path);
    (void)rmdir(fx->folder);
    free(fx);
    return 0;
}

/* How many files there are, and what is in the one. */
static void has(struct fixture *fx, int files, const char *text)
{
    char is[64] = "";
    DIR *folder = opendir(fx->folder);
    assert_non_null(folder);
    int count = -2; /* itself, and the one above */
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    assert_int_equal(count, files);
    FILE *file = fopen(fx->path, "r");
    if (file != NULL) {
        is[fread(is, 1, sizeof is - 1, file)] = '\0';
        (void)fclose(file);
    }
    assert_string_equal(is, text);
}

static int write_it(struct fixture *fx, const char *text, bool replace, bool keep)
{
    int rc = rv__outfile_open(&fx->out, fx->path, replace, &fx->err);
    if (rc == RV_OK)
        rc = rv__outfile_write(&fx->out, rv__str(text), &fx->err);
    if (rc == RV_OK && keep)
        rc = rv__outfile_keep(&fx->out, &fx->err);
    rv__outfile_done(&fx->out);
    return rc;
}

static void it_is_there_when_it_is_kept(void **state)
{
    struct fixture *fx = *state;
    struct stat what;
    assert_int_equal(write_it(fx, "one", false, true), RV_OK);
    has(fx, 1, "one");
    assert_int_equal(stat(fx->path, &what), 0);
    assert_int_equal(what.st_mode & 0777, 0600);
}

static void nothing_is_there_when_it_is_not(void **state)
{
    struct fixture *fx = *state;
    assert_int_equal(write_it(fx, "one", false, false), RV_OK);
    has(fx, 0, "");
}

static void one_that_is_there_gives_way_only_when_told(void **state)
{
    struct fixture *fx = *state;
    assert_int_equal(write_it(fx, "one", false, true), RV_OK);
    assert_int_equal(write_it(fx, "two", false, true), RV_EEXIST);
    assert_non_null(strstr(fx->err.message, fx->path));
    has(fx, 1, "one");
    assert_int_equal(write_it(fx, "two", true, false), RV_OK);
    has(fx, 1, "one");
    assert_int_equal(write_it(fx, "two", true, true), RV_OK);
    has(fx, 1, "two");
}

static void one_that_came_meanwhile_stays(void **state)
{
    struct fixture *fx = *state;
    assert_int_equal(rv__outfile_open(&fx->out, fx->path, false, &fx->err), RV_OK);
    FILE *other = fopen(fx->path, "w");
    assert_true(other != NULL && fputs("other", other) >= 0 && fclose(other) == 0);
    assert_int_equal(rv__outfile_keep(&fx->out, &fx->err), RV_EEXIST);
    rv__outfile_done(&fx->out);
    has(fx, 1, "other");
}

static void where_nothing_can_be_made_is_told(void **state)
{
    struct fixture *fx = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/no/it", fx->folder);
    assert_int_equal(rv__outfile_open(&fx->out, path, false, &fx->err), RV_ESYS);
    assert_non_null(strstr(fx->err.message, "No such file or directory"));
}

/* RLIMIT_FSIZE is a disk of so many bytes, once its signal is ignored. */
static void a_full_disk_leaves_nothing(void **state)
{
    struct fixture *fx = *state;
    struct rlimit was, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){ 2, was.rlim_max };
    void (*signal_was)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = write_it(fx, "three", false, true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    (void)signal(SIGXFSZ, signal_was);
    assert_int_equal(rc, RV_ESYS);
    assert_non_null(strstr(fx->err.message, "no file was kept"));
    has(fx, 0, "");
}

static void a_file_without_a_name_can_be_read_back(void **state)
{
    struct fixture *fx = *state;
    char text[8] = "";
    assert_int_equal(rv__outfile_open(&fx->out, NULL, false, &fx->err), RV_OK);
    assert_int_equal(rv__outfile_write(&fx->out, rv__str("hidden"), &fx->err), RV_OK);
    assert_int_equal(pread(fx->out.file, text, 6, 0), 6);
    assert_string_equal(text, "hidden");
}

static void no_memory_leaves_nothing(void **state)
{
    struct fixture *fx = *state;
    int rc;
    TORTURE(rc, rv__outfile_open(&fx->out, fx->path, false, &fx->err), has(fx, 0, ""));
    assert_int_equal(rc, RV_OK);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(it_is_there_when_it_is_kept),
        CASE(nothing_is_there_when_it_is_not),
        CASE(one_that_is_there_gives_way_only_when_told),
        CASE(one_that_came_meanwhile_stays),
        CASE(where_nothing_can_be_made_is_told),
        CASE(a_full_disk_leaves_nothing),
        CASE(a_file_without_a_name_can_be_read_back),
        CASE(no_memory_leaves_nothing),
    };
#undef CASE
    return cmocka_run_group_tests_name("outfile", tests, NULL, NULL);
}
