/* store_fixture.h: what the parts of the store's suite share. The contract is that of src/store/store.h. */
#ifndef RV_TESTS_UNIT_STORE_FIXTURE_H
#define RV_TESTS_UNIT_STORE_FIXTURE_H

#include "unit/test.h"

#include "unit/store/store_suite.h"

struct fixture {
    struct store_maker *maker;
    struct rv__store *store;
    struct rv__buf seen; /* what the visitors saw, as text */
};

int store_setup(void **state);
int store_teardown(void **state);
void reopen(struct fixture *fx);
int see_result(void *arg, int64_t index, struct rv__str json);
int see_text(void *arg, uint64_t seq, struct rv__str text);
int see_seq(void *arg, uint64_t seq, struct rv__str text);
void seen(struct fixture *fx, const char *expected);
void journal_is(struct fixture *fx, const char *run, uint64_t after, const char *expected);
void results_are(struct fixture *fx, const char *run, const char *key, const char *expected);
void value_is(struct fixture *fx, const char *run, uint64_t number, const char *expected);
void active_are(struct fixture *fx, const char *expected);
void run_is(struct fixture *fx, const char *run, const char *expected);
void snapshot_is(struct fixture *fx, const char *run, const char *expected);
struct rv__store_run active_row(const char *id);
uint64_t begin(struct fixture *fx, const char *id, const char *facts);
uint64_t append(struct fixture *fx, const char *id, const char *facts);
struct rv__store_run full_row(const char *id);
void commit_one(struct fixture *fx, struct rv__store_write write);
void touch(struct fixture *fx, const char *id, struct rv__store_touch touch);
int see_id(void *arg, const struct rv__store_run *row);
void put(struct fixture *fx, const char *id, const char *status, int64_t created_ms,
         int64_t completed_ms, bool active, int64_t wake_at_ms);
int see_number(void *arg, const struct rv__store_run *row);
int see_feed(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts);
uint64_t last_seq(struct fixture *fx);
void feed_is(struct fixture *fx, uint64_t after, size_t limit, const char *expected);
void list_is(struct fixture *fx, struct rv__store_query query, const char *expected);
void logs_are(struct fixture *fx, struct rv__store_log_query query, const char *expected);
void log_line(struct fixture *fx, const char *run, enum rv__store_level level, const char *step,
              const char *message);
void counts_are(struct fixture *fx, const char *expected, uint64_t runs, uint64_t finished);
void marks_are(struct fixture *fx, const char *expected);
void full_run(struct fixture *fx, const char *id);
int stop_at_once(void *arg, uint64_t seq, struct rv__str text);
int stop_at_run(void *arg, const struct rv__store_run *row);

/* The parts: each a group of tests; the number of those that failed. */
int store_suite_commits(void);
int store_suite_outcomes(void);
int store_suite_results(void);
int store_suite_lists(void);
int store_suite_logs(void);
int store_suite_retention(void);
int store_suite_handles(void);
int store_suite_whole(void);
int store_suite_members(void); /* of stores that have members */

#define STORE_CASE(name)          cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
#define STORE_GROUP(title, tests) cmocka_run_group_tests_name(title, tests, NULL, NULL)

#endif
