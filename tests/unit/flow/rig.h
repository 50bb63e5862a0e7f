/* rig.h: a run on a bench: plan JSON in, work answered by a script, facts and results out.
 *
 * Everything a real shell does, without a store: turns of send, grant and pump, effects released after
 * each turn, finished iterations kept as rows and long texts as values. After every turn the journal is replayed into a second
 * cell, which must be the same to the letter. */
#ifndef RV_TESTS_FLOW_RIG_H
#define RV_TESTS_FLOW_RIG_H

#include "unit/test.h"

#include "flow/flow.h"
#include "plan/plan.h"

enum { RIG_WORK = 4096 };

struct rig_work { /* in flight: an effect that was released and not answered */
    struct rv__effect effect;
    char path[256];
};

struct rig {
    struct rv__row_source rows; /* first: rows() gets from here to the rest */
    struct rv__plan *plan;
    struct rv__cell *cell;
    struct rv__facts facts;
    struct rv__buf journal; /* every fact so far, comma-separated */
    struct rv__buf text;    /* scratch */
    struct {
        char *key, *json;
        int64_t index;
    } * kept;
    size_t kept_count, kept_cap;
    struct rv__blob **values; /* by number - 1 */
    size_t value_count, value_reads;
    struct rig_work work[RIG_WORK];
    size_t work_count;
    int64_t now_ms;
    bool grants[LANES]; /* which lanes give places; all do at first */
    bool replay;        /* compare with a replay after each turn; on at first */
    /* Functions in hosts, and those that nobody has: names between spaces; NULL: none. An evaluation is
     * named as its node is. After a change: rig_relane(). */
    const char *hosted, *nobody;
    char unused_note[200]; /* the last one that an effect brought */
};

/* While this is on, every call into flow/ is first made with its 1st, 2nd, 3rd ... allocation failing:
 * each failure must leave the run as it was, or cut the turn short after some fact. */
extern bool rig_torture;
int rig_torture_on(void **state);
int rig_torture_off(void **state);

/* cell_opts.value_inline of new rigs; 0 = the default. With rig_values_on nearly every text is a value. */
extern size_t rig_inline;
int rig_values_on(void **state);
int rig_values_off(void **state);
int rig_both_on(void **state);
int rig_both_off(void **state);

/* For a list of tests: this one; the same again with rig_torture, with values, and with both. */
#define RIG_TEST(test)                                                        \
    RIG_TEST_HERE(test),                                                      \
        { .name = #test ", by reference",                                     \
          .test_func = (test),                                                \
          .setup_func = rig_values_on,                                        \
          .teardown_func = rig_values_off },                                  \
    {                                                                         \
        .name = #test ", by reference, short of memory", .test_func = (test), \
        .setup_func = rig_both_on, .teardown_func = rig_both_off              \
    }
/* This one, and the same with values. */
#define RIG_TEST_VALUES(test)                                                             \
    cmocka_unit_test(test),                                                               \
    {                                                                                     \
        .name = #test ", by reference", .test_func = (test), .setup_func = rig_values_on, \
        .teardown_func = rig_values_off                                                   \
    }
/* The same without values: for one that looks at texts where they are. */
#define RIG_TEST_HERE(test)                                                                   \
    cmocka_unit_test(test),                                                                   \
    {                                                                                         \
        .name = #test ", short of memory", .test_func = (test), .setup_func = rig_torture_on, \
        .teardown_func = rig_torture_off                                                      \
    }

/* A run of the plan; `input` may be NULL. Fails the test if the plan is refused. */
struct rig *rig_new(const char *plan_json, const char *input);
struct rig *rig_new_where(const char *plan_json, const char *input, const char *hosted,
                          const char *nobody);
void rig_relane(struct rig *rig);
void rig_free(struct rig *rig);

/* A turn: the message (may be NULL), places while they are wanted, the pump. */
int rig_turn(struct rig *rig, struct rv__msg *msg);

/* The work or wait in flight at `path`; fails the test if there is none. NULL from _try. */
struct rig_work *rig_at(struct rig *rig, const char *path);
struct rig_work *rig_try(struct rig *rig, const char *path);

/* Answers to it. JSON texts; NULL = none. */
void rig_done(struct rig *rig, const char *path, const char *result);
void rig_done_state(struct rig *rig, const char *path, const char *result, const char *state,
                    bool skipped);
void rig_fail(struct rig *rig, const char *path, const char *message);
void rig_fail_as(struct rig *rig, const char *path, const char *message, enum rv__behavior behavior,
                 int max);
void rig_timer(struct rig *rig, const char *path);
void rig_send(struct rig *rig, struct rv__msg msg);

/* Answer everything with {"ok":1} (evaluations: `eval_value`) until nothing is in flight. */
void rig_finish(struct rig *rig, const char *eval_value);

/* Crash: the cell is gone, and made again from the journal (or, `snapshot`, from its saved text); work
 * in flight is what it says is owed. */
void rig_crash(struct rig *rig, bool snapshot);

/* Names of attachments have the time in them: most tests are about something else. */
void rig_drop_attachments(char *json);
/* What is asserted. */
/* NULL: any results. Errors of nodes count if any is expected: test_errors.c looks at them. */
void rig_expect(struct rig *rig, enum rv__run_status status, const char *results_json);
void rig_expect_in_flight(struct rig *rig, const char *paths); /* space-separated, in any order */
bool rig_has_fact(struct rig *rig, const char *needle);        /* text in the journal */
const char *rig_steps(struct rig *rig, const char *path);      /* what it sees: JSON */
const char *rig_last(struct rig *rig, const char *path);
struct rv__str rig_text(struct rig *rig, struct rv__blob *blob);       /* of a text or reference */
struct rv__str rig_item(struct rig *rig, const struct rv__view *view); /* "none": it has none */
struct rv__str rig_items(struct rig *rig, const struct rv__view *view);

#endif
