/* test_store_name.c: for src/base/store_name.c. */
#include "unit/test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/store_name.h"

static void names_are_told_apart(void **state)
{
    (void)state;
    assert_true(rv__store_name_is_address("postgres://h/d"));
    assert_true(rv__store_name_is_address("postgresql:///d?host=/tmp"));
    assert_false(rv__store_name_is_address("rival.db"));
    assert_false(rv__store_name_is_address(":memory:"));
    assert_false(rv__store_name_is_address("postgres:rival.db"));
    assert_true(rv__store_name_exists("postgres://nowhere/d"));
    assert_false(rv__store_name_exists("/nonexistent/rival.db"));
}

static void passwords_are_not_shown(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shown;
    } rows[] = {
        { "rival.db", "rival.db" },
        { "a:b@c.db", "a:b@c.db" },
        { "postgres://", "postgres://" },
        { "postgres://host/db", "postgres://host/db" },
        { "postgres://host:5433/db", "postgres://host:5433/db" },
        { "postgres://me@host/db", "postgres://me@host/db" },
        { "postgres://me:secret@host/db", "postgres://me:***@host/db" },
        { "postgres://me:sec/r@et@host/db", "postgres://me:***@host/db" },
        { "postgres://me:secret@h1:1,h2:2/db?a=b", "postgres://me:***@h1:1,h2:2/db?a=b" },
        { "postgresql:///db?password=secret&host=/tmp", "postgresql:///db?password=***&host=/tmp" },
        { "postgres:///db?x=1&sslpassword=s&password=p",
          "postgres:///db?x=1&sslpassword=***&password=***" },
        { "postgres:///db?", "postgres:///db?" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__buf out;
        rv__buf_init(&out, 1000);
        rv__store_name_shown(rows[i].name, &out);
        if (out.text == NULL || strcmp(out.text, rows[i].shown) != 0)
            fail_msg("%s: shown as %s", rows[i].name, out.text ? out.text : "nothing");
        rv__buf_done(&out);
    }
}

static void beside(const char *name, int expected, char *ret, size_t size)
{
    struct rv__buf out;
    rv_error err = { 0, "" };
    rv__buf_init(&out, 4096);
    int rc = rv__store_name_beside(name, &out, &err);
    if (rc != expected)
        fail_msg("%s: %d, %s", name, rc, err.message);
    snprintf(ret, size, "%s", rc == RV_OK ? out.text : "");
    rv__buf_done(&out);
}

/* Who gives the password elsewhere, or another user's, means the same store; another database is another. */
static void an_address_has_a_place_of_the_users_own(void **state)
{
    (void)state;
    char folder[] = "/tmp/rival-test-XXXXXX", a[300], b[300], c[300];
    struct stat st;
    assert_non_null(mkdtemp(folder));
    setenv("XDG_RUNTIME_DIR", folder, 1);
    beside("postgres://me:one@host/db", RV_OK, a, sizeof a);
    beside("postgresql://host/db", RV_OK, b, sizeof b);
    beside("postgres://me:one@host/other", RV_OK, c, sizeof c);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_memory_equal(a, folder, strlen(folder));
    snprintf(b, sizeof b, "%s/rival", folder);
    assert_int_equal(stat(b, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);

    assert_int_equal(chmod(b, 0755), 0); /* others may enter: not to be trusted */
    beside("postgres://host/db", RV_ESYS, a, sizeof a);
    assert_int_equal(rmdir(b), 0);
    assert_int_equal(rmdir(folder), 0);
    beside("/nonexistent/rival.db", RV_ESTORE, a, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_told_apart),
        cmocka_unit_test(passwords_are_not_shown),
        cmocka_unit_test(an_address_has_a_place_of_the_users_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
