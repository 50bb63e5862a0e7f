/* test_auth.c: tokens and sessions as time passes: src/server/auth.c. */
#include "unit/test.h"

#include "server/transport.h"

enum { PLACES = 3 };
static const int64_t day_ms = 24 * 3600 * 1000;

struct fixture {
    struct rv__auth auth;
    struct rv__who who;
    char name[RV__SESSION_SIZE];
    rv_error err;
};

static void let_in(struct rv__auth *auth, enum rv__role first, enum rv__role second)
{
    const enum rv__role roles[] = { first, second };
    const char *const texts[] = { "the first token", "the second token" };
    struct rv__tokens tokens = { .at = rv__zalloc(2, sizeof *tokens.at) };
    assert_non_null(tokens.at);
    for (size_t i = 0; i < 2; i++)
        if (roles[i] != RV__ROLE_NONE) {
            tokens.at[tokens.count].role = roles[i];
            rv__sha256_hex(rv__str(texts[i]), tokens.at[tokens.count++].hash);
        }
    (void)rv__auth_change(auth, &tokens);
    rv__tokens_done(&tokens);
}

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    if (fx == NULL || rv__auth_init(&fx->auth, PLACES, PLACES, &fx->err) < 0)
        return -1;
    *state = fx;
    let_in(&fx->auth, RV__ROLE_VIEWER, RV__ROLE_ADMIN);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    rv__auth_done(&fx->auth);
    free(fx);
    return 0;
}

static void begin(struct fixture *fx, const char *token, int64_t now_ms)
{
    assert_true(rv__auth_token(&fx->auth, rv__str(token), &fx->who));
    assert_int_equal(rv__auth_begin(&fx->auth, &fx->who, now_ms, fx->name, &fx->err), RV_OK);
    assert_true(rv__auth_session(&fx->auth, rv__str(fx->name), now_ms, &fx->who));
}

static void a_token_says_who_one_is(void **state)
{
    struct fixture *fx = *state;
    assert_true(rv__auth_token(&fx->auth, rv__str("the first token"), &fx->who));
    assert_int_equal(fx->who.role, RV__ROLE_VIEWER);
    assert_true(rv__auth_token(&fx->auth, rv__str("the second token"), &fx->who));
    assert_int_equal(fx->who.role, RV__ROLE_ADMIN);
    assert_false(rv__auth_token(&fx->auth, rv__str("the third token"), &fx->who));
    assert_false(rv__auth_token(&fx->auth, rv__str(""), &fx->who));
    assert_int_equal(fx->who.role, RV__ROLE_ADMIN); /* as it was */
}

static void a_session_ends_after_a_working_day(void **state)
{
    struct fixture *fx = *state;
    int64_t last_ms = 1000 + rv__session_seconds() * 1000 - 1;
    begin(fx, "the first token", 1000);
    struct rv__who who = fx->who;
    assert_true(rv__auth_session(&fx->auth, rv__str(fx->name), last_ms, &who));
    assert_true(rv__auth_holds(&fx->auth, &who, last_ms));
    assert_false(rv__auth_session(&fx->auth, rv__str(fx->name), last_ms + 1, &who));
    assert_false(rv__auth_holds(&fx->auth, &who, last_ms + 1));
}

static void a_session_ends_when_told_and_no_other_with_it(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "the first token", 1000);
    struct rv__who first = fx->who;
    char name[RV__SESSION_SIZE];
    memcpy(name, fx->name, sizeof name);
    begin(fx, "the first token", 1000);
    rv__auth_end(&fx->auth, rv__str(name), 1000);
    assert_false(rv__auth_holds(&fx->auth, &first, 1000));
    assert_true(rv__auth_holds(&fx->auth, &fx->who, 1000));
    rv__auth_end(&fx->auth, rv__str("no session has this name"), 1000);
    assert_true(rv__auth_holds(&fx->auth, &fx->who, 1000));
}

/* Its place is another's then: that one does not keep it in. */
static void the_oldest_session_makes_room(void **state)
{
    struct fixture *fx = *state;
    struct rv__who who[PLACES + 1];
    for (int i = 0; i <= PLACES; i++) {
        begin(fx, "the second token", 1000 + i);
        who[i] = fx->who;
    }
    assert_int_equal(who[PLACES].session % PLACES, who[0].session % PLACES);
    for (int i = 0; i <= PLACES; i++)
        assert_int_equal(rv__auth_holds(&fx->auth, &who[i], 2000), i > 0);
}

static void a_session_goes_with_its_token(void **state)
{
    struct fixture *fx = *state;
    struct rv__who token;
    begin(fx, "the first token", 1000);
    struct rv__who first = fx->who;
    assert_true(rv__auth_token(&fx->auth, rv__str("the first token"), &token));
    begin(fx, "the second token", 1000);
    let_in(&fx->auth, RV__ROLE_NONE, RV__ROLE_OPERATOR);
    assert_false(rv__auth_holds(&fx->auth, &first, 1000));
    assert_false(rv__auth_holds(&fx->auth, &token, 1000));
    assert_true(rv__auth_holds(&fx->auth, &fx->who, 1000));
    assert_true(rv__auth_session(&fx->auth, rv__str(fx->name), 1000, &fx->who));
    assert_int_equal(fx->who.role, RV__ROLE_OPERATOR); /* as it is now */
}

static void where_nobody_is_asked_everybody_stays(void **state)
{
    struct fixture *fx = *state;
    const struct rv__who anybody = { .role = RV__ROLE_ADMIN };
    let_in(&fx->auth, RV__ROLE_NONE, RV__ROLE_NONE);
    assert_true(rv__auth_holds(&fx->auth, &anybody, 365 * day_ms));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_token_says_who_one_is),
        T(a_session_ends_after_a_working_day),
        T(a_session_ends_when_told_and_no_other_with_it),
        T(the_oldest_session_makes_room),
        T(a_session_goes_with_its_token),
        T(where_nobody_is_asked_everybody_stays),
    };
    return cmocka_run_group_tests_name("server/auth", tests, NULL, NULL);
}
