/* test_snapshot.c: a cell as text, and back; whole and damaged. For src/flow/snapshot.c. */
#include "base/json.h"
#include "unit/flow/zoo.h"

/* ------------------------------------------------------------------------------ whole ones --- */

/* The rig compares, after every turn, the cell with its replay and with its load. */
static void every_state_survives_a_save_and_a_load(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12 * ZOO; seed++) {
        uint64_t dice = seed * 7919;
        struct rig *rig = zoo_run(seed % ZOO);
        for (int n = 0; n < 80 && zoo_move(rig, &dice); n++)
            ;
        rig_free(rig);
    }
}

/* One run sleeps after every turn, the other never does: they say the same to the letter. */
static void a_run_that_sleeps_says_what_it_would_have_said(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12 * ZOO; seed++) {
        uint64_t dice = seed * 104729, same_dice = dice;
        struct rig *awake = zoo_run(seed % ZOO), *sleeper = zoo_run(seed % ZOO);
        awake->replay = sleeper->replay = false;
        for (int n = 0; n < 80; n++) {
            bool more = zoo_move(awake, &dice);
            rig_crash(sleeper, true);
            assert_int_equal(zoo_move(sleeper, &same_dice), more);
            if (!rv__str_eq(rv__buf_view(&awake->journal), rv__buf_view(&sleeper->journal)))
                fail_msg("seed %d, move %d:\nawake %s\nslept %s", (int)seed, n, awake->journal.text,
                         sleeper->journal.text);
            if (!more)
                break;
        }
        rig_free(awake);
        rig_free(sleeper);
    }
}

static void a_load_survives_without_memory(void **state)
{
    (void)state;
    rig_torture = true;
    for (uint64_t seed = 1; seed <= ZOO; seed++) {
        uint64_t dice = seed * 31;
        struct rig *rig = zoo_run(seed % ZOO);
        for (int n = 0; n < 15 && zoo_move(rig, &dice); n++)
            ;
        rig_crash(rig, true);
        rig_free(rig);
    }
    rig_torture = false;
}

/* ---------------------------------------------------------------------------- damaged ones --- */

static size_t tried, refused;

/* It is refused, or it is a cell that behaves. */
static void try_text(struct rig *rig, struct rv__str text)
{
    struct rv__cell_opts opts = { .plan = rig->plan };
    struct rv__cell *cell = NULL;
    rv_error err = { 0 };
    if (rv__json_check(text, RV__JSON_MAX_DEPTH, &text, &err) < 0)
        return;
    tried++;
    int rc = rv__cell_load(&opts, text, &cell, &err);
    if (rc < 0) {
        refused++;
        if (rc != RV_ESTORE || err.message[0] == '\0' || cell != NULL)
            fail_msg("rc %d, '%s', of %.*s", rc, err.message, RV__ARG(text));
        return;
    }
    zoo_behave(cell);
    rv__cell_free(cell);
}

/* `text` with what stands from `at` to `end` replaced. */
static void try_instead(struct rig *rig, struct rv__str text, const char *at, const char *end,
                        const char *instead)
{
    struct rv__buf buf;
    rv__buf_init(&buf, 1u << 24);
    rv__buf_add(&buf, text.at, (size_t)(at - text.at));
    rv__buf_text(&buf, instead);
    rv__buf_add(&buf, end, (size_t)(text.at + text.len - end));
    try_text(rig, rv__buf_view(&buf));
    rv__buf_done(&buf);
}

static bool in_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
}

/* Each number, word and key of it, replaced by several others. */
static void damage_each_token(struct rig *rig, struct rv__str text)
{
    static const char *const instead[] = { "0",     "1",    "2",  "3",    "4",
                                           "7",     "15",   "-1", "null", "9223372036854775807",
                                           "{}",    "\"\"", "[]", "[1]",  "1e3",
                                           "[0,0]", "true", "99" };
    const char *end = text.at + text.len;
    for (const char *at = text.at; at < end;) {
        const char *from = at;
        if (*at == '"') {
            at = rv__json_skip(at, end);
            try_instead(rig, text, from, at, "\"k\"");
            try_instead(rig, text, from, at, "\"in\"");
            if (*at != ':')
                try_instead(rig, text, from, at, "1");
            continue;
        }
        while (at < end && in_word(*at))
            at++;
        if (at == from) {
            at++;
            continue;
        }
        for (size_t i = 0; i < sizeof instead / sizeof *instead; i++)
            try_instead(rig, text, from, at, instead[i]);
    }
}

/* Each member of each object and array taken out, there twice, or something else. */
static void damage_each_member(struct rig *rig, struct rv__str text, struct rv__str value)
{
    struct rv__json_iter it;
    struct rv__str key, member;
    static const char *const others[] = { "7", "[]", "{}", "[-1]" };
    char twice[4000];
    rv__json_iter_init(&it, value);
    while (rv__json_next(&it, &key, &member)) {
        const char *from = it.object ? key.at : member.at, *end = member.at + member.len;
        snprintf(twice, sizeof twice, "%.*s,%.*s", (int)(end - from), from, (int)(end - from),
                 from);
        try_instead(rig, text, from, end, twice);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            try_instead(rig, text, member.at, end, others[i]);
        if (*end == ',')
            end++;
        else if (from[-1] == ',')
            from--;
        try_instead(rig, text, from, end, "");
        damage_each_member(rig, text, member);
    }
}

/* Each actor in each phase, for each evaluation. */
static void damage_each_phase(struct rig *rig, struct rv__str text)
{
    for (const char *at = text.at; (at = strstr(at, ",\"p\":")) != NULL; at++) {
        for (int phase = 0; phase < 10; phase++) {
            for (int eval = 0; eval < 7; eval++) {
                char instead[64];
                snprintf(instead, sizeof instead, ",\"e\":%d,\"p\":%d", eval, phase);
                try_instead(rig, text, at, at + 6, instead);
            }
        }
    }
}

static void damage_at_random(struct rig *rig, struct rv__str text, uint64_t *dice)
{
    static const char bytes[] = "0123456789-,:[]{}\"abceinoptx";
    char *copy = malloc(text.len + 1);
    for (int n = 0; n < 150; n++) {
        memcpy(copy, text.at, text.len);
        for (uint64_t k = zoo_roll(dice, 4) + 1; k > 0; k--) {
            size_t at = zoo_roll(dice, text.len);
            if (zoo_roll(dice, 2)) { /* a digit by a digit keeps it JSON */
                while (at + 1 < text.len && (copy[at] < '0' || copy[at] > '9'))
                    at++;
                copy[at] = (char)('0' + zoo_roll(dice, 10));
            } else {
                copy[at] = bytes[zoo_roll(dice, sizeof bytes - 1)];
            }
        }
        try_text(rig, (struct rv__str){ copy, text.len });
    }
    free(copy);
}

static void a_damaged_snapshot_is_refused_or_behaves(void **state)
{
    (void)state;
    tried = refused = 0;
    enum { SEEDS = 5 * ZOO };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t dice = seed * 2654435761u;
        struct rig *rig = zoo_run(seed % ZOO);
        struct rv__buf text;
        rv__buf_init(&text, 1u << 24);
        rig->replay = false;
        int moves = (int)zoo_roll(&dice, 30);
        for (int n = 0; n < moves && zoo_move(rig, &dice); n++)
            ;
        assert_int_equal(rv__cell_save(rig->cell, &text, NULL), RV_OK);
        damage_each_token(rig, rv__buf_view(&text));
        damage_each_member(rig, rv__buf_view(&text), rv__buf_view(&text));
        damage_each_phase(rig, rv__buf_view(&text));
        damage_at_random(rig, rv__buf_view(&text), &dice);
        rv__buf_done(&text);
        rig_free(rig);
    }
    print_message("# %zu damaged snapshots, %zu refused\n", tried, refused);
    assert_true(refused > tried / 10 && refused < tried);
}

static void what_is_no_snapshot_is_refused(void **state)
{
    static const char *const texts[] = { "null", "[]", "{}", "7", "{\"v\":3}", "{\"v\":1}" };
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rv__cell_opts opts = { .plan = rig->plan };
        struct rv__cell *cell = NULL;
        rv_error err = { 0 };
        assert_int_equal(rv__cell_load(&opts, rv__str(texts[i]), &cell, &err), RV_ESTORE);
        assert_non_null(strstr(err.message, "snapshot"));
        assert_null(cell);
    }
    rig_free(rig);
}

/* A snapshot of another plan: refused, or at least harmless. */
static void a_snapshot_of_another_plan_does_no_harm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6 * ZOO; seed++) {
        uint64_t dice = seed * 193;
        struct rig *rig = zoo_run(seed % ZOO), *other = zoo_run((seed + 1 + seed / ZOO) % ZOO);
        struct rv__buf text;
        rv__buf_init(&text, 1u << 24);
        rig->replay = false;
        for (int n = 0; n < 12 && zoo_move(rig, &dice); n++)
            ;
        assert_int_equal(rv__cell_save(rig->cell, &text, NULL), RV_OK);
        try_text(other, rv__buf_view(&text));
        rv__buf_done(&text);
        rig_free(rig);
        rig_free(other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST_VALUES(every_state_survives_a_save_and_a_load),
        RIG_TEST_VALUES(a_run_that_sleeps_says_what_it_would_have_said),
        RIG_TEST_VALUES(a_load_survives_without_memory),
        RIG_TEST_VALUES(what_is_no_snapshot_is_refused),
        RIG_TEST_VALUES(a_snapshot_of_another_plan_does_no_harm),
        RIG_TEST_VALUES(a_damaged_snapshot_is_refused_or_behaves),
    };
    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
