/* test_guard.c: whom we let in by what the request says of itself: Host, Origin, Sec-Fetch-*. */
#include "unit/test.h"

#include "server/transport.h"

static const char *const names[] = { "box", "rival.example", NULL };

static const struct {
    const char *host;
    bool ours;
} hosts[] = {
    { "localhost", true },
    { "localhost:7400", true },
    { "LocalHost:1", true },
    { "a.localhost", true },
    { "127.0.0.1:7400", true },
    { "10.1.2.3", true }, /* an address: no DNS stands behind it */
    { "[::1]:7400", true },
    { "[::1]", true },
    { "box", true },
    { "box.:80", true },
    { "RIVAL.example:443", true },
    { "", false },
    { ":7400", false },
    { "evil.example", false },
    { "localhost.evil.example", false },
    { "127.0.0.1.evil.example", false },
    { "evil-localhost", false },
    { "box.evil", false },
    { "localhost:", false },
    { "localhost:port", false },
    { "localhost:123456", false },
    { "[::1", false },
    { "[localhost]", false },
    { "[::1]x", false },
    { "::1", false },
    { "127.1", false },
    { "user@localhost", false },
};

static void a_request_calls_us_by_an_address_or_a_name_of_ours(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (rv__guard_host(rv__str(hosts[i].host), names) != hosts[i].ours)
            fail_msg("'%s' should %sbe ours", hosts[i].host, hosts[i].ours ? "" : "not ");
}

static const struct {
    const char *says, *origin, *site, *mode;
    bool changes, api, let_in;
} requests[] = {
    { "a program says nothing of an origin", NULL, NULL, NULL, true, true, true },
    { "our own page posts", "http://localhost:7400", "same-origin", "cors", true, true, true },
    { "our own page behind a proxy with TLS", "https://localhost:7400", NULL, NULL, true, true,
      true },
    { "an address typed by a person", NULL, "none", "navigate", false, true, true },
    { "a link on another page", NULL, "cross-site", "navigate", false, true, true },
    { "a link on another page, to the UI", NULL, "cross-site", "navigate", false, false, true },
    { "another site posts", "http://evil.example", "cross-site", "cors", true, true, false },
    { "another site posts, its browser is old", "http://evil.example", NULL, NULL, true, true,
      false },
    { "a form of another site", "http://evil.example", "cross-site", "navigate", true, true,
      false },
    { "a page without an origin posts", "null", NULL, NULL, true, true, false },
    { "another port of this machine posts", "http://localhost:3000", "same-site", "cors", true,
      true, false },
    { "another port reads", NULL, "same-site", "no-cors", false, true, false },
    { "another site reads", "http://evil.example", "cross-site", "cors", false, true, false },
    { "another site opens a stream", NULL, "cross-site", "no-cors", false, true, false },
    { "the origin only begins like ours", "http://localhost:7400.evil.example", NULL, NULL, true,
      true, false },
    { "the origin is of another scheme", "ftp://localhost:7400", NULL, NULL, true, true, false },
};

static void what_browsers_do_for_other_sites_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct rv__guard guard = { .host = rv__str("localhost:7400"),
                                   .origin = rv__str(requests[i].origin),
                                   .fetch_site = rv__str(requests[i].site),
                                   .fetch_mode = rv__str(requests[i].mode),
                                   .changes = requests[i].changes,
                                   .api = requests[i].api };
        const char *why = rv__guard_judge(&guard, names);
        if ((why == NULL) != requests[i].let_in)
            fail_msg("%s: %s", requests[i].says, why != NULL ? why : "let in");
    }
}

static void a_position_is_a_number_or_two(void **state)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t seq, index;
    } rows[] = {
        { "0", true, 0, 0 },
        { "12.3", true, 12, 3 },
        { "12", true, 12, 0 },
        { "9.2147483647", true, 9, 2147483647 },
        { "", false, 0, 0 },
        { ".1", false, 0, 0 },
        { "1.", false, 0, 0 },
        { "-1", false, 0, 0 },
        { "1.2.3", false, 0, 0 },
        { "1 ", false, 0, 0 },
        { "99999999999999999999", false, 0, 0 },
        { "1.99999999999", false, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t seq = 0, index = 0;
        bool good = rv__sse_position(rows[i].text, &seq, &index);
        if (good != rows[i].good || seq != rows[i].seq || index != rows[i].index)
            fail_msg("'%s': %d %llu.%llu", rows[i].text, good, (unsigned long long)seq,
                     (unsigned long long)index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_calls_us_by_an_address_or_a_name_of_ours),
        cmocka_unit_test(what_browsers_do_for_other_sites_is_refused),
        cmocka_unit_test(a_position_is_a_number_or_two),
    };
    return cmocka_run_group_tests_name("server/guard", tests, NULL, NULL);
}
