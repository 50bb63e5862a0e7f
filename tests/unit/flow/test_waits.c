/* test_waits.c: what a run waits for: exactly one reason for each leaf that is alive. For
 * src/flow/waits.c. */
#include "unit/flow/script.h"

static char told[1024];

static void tell(void *arg, const struct rv__wait *wait)
{
    static const char *const kinds[] = {
        [WAIT_WORK] = "work",     [WAIT_PLACE] = "place",       [WAIT_LIMIT] = "limit",
        [WAIT_TIMER] = "timer",   [WAIT_RETRY] = "retry",       [WAIT_SIGNAL] = "signal",
        [WAIT_HANDLE] = "handle", [WAIT_DECISION] = "decision", [WAIT_TURN] = "turn",
    };
    struct rv__buf path;
    (void)arg;
    rv__buf_init(&path, 1024);
    if (wait->node != NULL)
        rv__node_path(wait->node, wait->vector, &path);
    rv__buf_char(&path, '\0');
    size_t len = strlen(told);
    snprintf(told + len, sizeof told - len, "%s%s %s", len > 0 ? "; " : "", kinds[wait->kind],
             path.text);
    len = strlen(told);
    if (wait->count != 1)
        snprintf(told + len, sizeof told - len, " x%lld", (long long)wait->count);
    if (wait->kind == WAIT_PLACE && wait->name.len > 0)
        snprintf(told + strlen(told), sizeof told - strlen(told), " for %.*s", RV__ARG(wait->name));
    if ((wait->kind == WAIT_PLACE && wait->lane == LANE_NOBODY) != (wait->name.len > 0) &&
        wait->kind == WAIT_PLACE)
        fail_msg("%s: a name, and not for want of a function, or the other way round", told);
    rv__buf_done(&path);
}

static void expect_waits(const struct rig *rig, const char *expected)
{
    told[0] = '\0';
    rv__cell_waits(rig->cell, tell, NULL);
    assert_string_equal(told, expected);
}

/* The items of a forEach are there, and nothing has followed from it yet: the turn was cut. */
static void give_items(struct rig *rig, const char *items)
{
    struct rig_work *work = rig_at(rig, "each?items");
    struct rv__blob *blob = rv__blob_new(rv__str(items));
    struct rv__msg msg = {
        .kind = MSG_DONE, .actor = work->effect.actor, .token = work->effect.token, .result = blob
    };
    assert_non_null(blob);
    assert_int_equal(rv__flow_send(rig->cell, &msg, &rig->facts, NULL), RV_OK);
    rv__blob_unref(blob);
}

#define EACH(body, more) \
    "{'type':'forEach','alias':'each','items':'${ .x }','run':[" body "]" more "}"

static const struct row {
    const char *says, *plan;
    const char *at_once;   /* what waits before anything follows from the items */
    const char *in_flight; /* and after it, every place given; NULL: not asked */
} rows[] = {
    { "a sequential one wants a place for its next iteration, not for all", EACH(S("p"), ""),
      "place each", "work each:iter0:node0:p" },
    { "where it needs none, it goes on at once", EACH(DELAY("d", "5"), ""), "turn each",
      "timer each:iter0:node0:d" },
    { "a parallel one wants places for all that are left", EACH(S("p"), ",'parallel':true"),
      "place each x3",
      "work each:iter0:node0:p; work each:iter1:node0:p; work each:iter2:node0:p" },
    { "or none at all", EACH(DELAY("d", "5"), ",'parallel':true"), "turn each x3",
      "timer each:iter0:node0:d; timer each:iter1:node0:d; timer each:iter2:node0:d" },
    { "beyond its concurrency they wait for that", EACH(S("p"), ",'parallel':true,'concurrency':2"),
      "place each x3", "limit each; work each:iter0:node0:p; work each:iter1:node0:p" },
};

static void iterations_to_come_have_the_reason_they_have(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("# %s\n", rows[i].says);
        struct rig *rig = rig_of(rows[i].plan, NULL);
        rig->replay = false;
        expect_waits(rig, "work each");
        give_items(rig, "[1,2,3]");
        expect_waits(rig, rows[i].at_once);
        rig_free(rig);

        rig = rig_of(rows[i].plan, NULL);
        rig_done(rig, "each?items", "[1,2,3]");
        expect_waits(rig, rows[i].in_flight);
        rig_free(rig);
    }
}

static void between_its_iterations_a_sequential_one_has_one_reason(void **state)
{
    (void)state;
    struct rig *rig = rig_of(EACH(S("p") "," S("q"), ""), NULL);
    rig_done(rig, "each?items", "[1,2]");
    rig_done(rig, "each:iter0:node0:p", "1");
    expect_waits(rig, "work each:iter0:node1:q");
    struct rig_work *work = rig_at(rig, "each:iter0:node1:q");
    struct rv__msg msg = { .kind = MSG_DONE,
                           .actor = work->effect.actor,
                           .token = work->effect.token };
    rig->replay = false;
    assert_int_equal(rv__flow_send(rig->cell, &msg, &rig->facts, NULL), RV_OK);
    expect_waits(rig, "turn each"); /* its iteration is over, and that is not said yet */
    assert_int_equal(rv__flow_pump(rig->cell, 1, &rig->facts, NULL), 0);
    expect_waits(rig, "place each");
    rig_free(rig);
}

static void each_leaf_has_the_reason_of_its_kind(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'concurrent','alias':'c','steps':[" S("w") "," STEP(
            "r", "'maxAttempts':2") "," SIGNAL("s", "go") "," DELAY("d", "5") "," S("h") "]}",
        NULL);
    rig_fail(rig, "c:r", "no");
    rig_park(rig, "c:h", "handle", 0);
    expect_waits(rig, "work c:w; retry c:r; signal c:s; timer c:d; handle c:h");
    rig_poison(rig, "c:w");
    expect_waits(rig, "decision c:w; retry c:r; signal c:s; timer c:d; handle c:h");
    rig_say(rig, MSG_CANCEL);
    expect_waits(rig, "");
    rig_free(rig);
}

/* Who waits for a function that nobody has says which, however far down it is. */
static void what_nobody_has_is_named(void **state)
{
    static const struct {
        const char *plan, *nobody, *waits;
    } table[] = {
        { S("a"), "a", "place a for a" },
        { STEP("a", "'when':{'fn':'f'}"), "a", "place a for f" },
        { "{'type':'branch','alias':'b','if':{'fn':'g'},'then':[" S("x") "]}", "b",
          "place b for g" },
        { "{'type':'workflow','alias':'w','name':'v','steps':[" S("x") "]}", "x", "place w for x" },
        { "{'type':'concurrent','alias':'c','steps':[" S("x") "," S("y") "]}", "x",
          "place c for x" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char plan[1000];
        snprintf(plan, sizeof plan, "{'name':'t','steps':[%s]}", table[i].plan);
        struct rig *rig = rig_new_where(J(plan), NULL, NULL, table[i].nobody);
        expect_waits(rig, table[i].waits);
        rig_free(rig);
    }
    struct rig *rig = rig_new_where(
        J("{'name':'t','steps':[" EACH(S("p"), ",'parallel':true") "]}"), NULL, NULL, "p");
    rig_done(rig, "each?items", "[1,2,3]");
    expect_waits(rig, "place each x3 for p");
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iterations_to_come_have_the_reason_they_have),
        cmocka_unit_test(between_its_iterations_a_sequential_one_has_one_reason),
        cmocka_unit_test(each_leaf_has_the_reason_of_its_kind),
        cmocka_unit_test(what_nobody_has_is_named),
    };
    return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
