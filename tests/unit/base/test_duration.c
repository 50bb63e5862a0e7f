/* test_duration.c: text -> milliseconds, for src/base/duration.c. */
#include "unit/test.h"

#include "base/duration.h"

static const struct {
    const char *text;
    int64_t ms; /* -1: it is none */
} rows[] = {
    { "250ms", 250 },
    { "30s", 30000 },
    { "5m", 300000 },
    { "1h30m", 5400000 },
    { "30d", 2592000000 },
    { "1.5s", 1500 },
    { "500", 500 },
    { "0", 0 },
    { "0.001s", 1 },
    { "1h 30m", -1 },
    { "", -1 },
    { "s", -1 },
    { "5x", -1 },
    { "-5s", -1 },
    { "5s3", -1 },
    { "1.5555s", -1 },
    { "1.", -1 },
    { "99999999999d", -1 },
    { "99999999999999999999999ms", -1 },
};

static void durations_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t ms = -1;
        int rc = rv__duration_ms(rv__str(rows[i].text), &ms);
        if ((rc == RV_OK) != (rows[i].ms >= 0) || ms != rows[i].ms)
            fail_msg("\"%s\": %d, %lld", rows[i].text, rc, (long long)ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(durations_are_read) };
    return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}
