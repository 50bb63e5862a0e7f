/* test_values.c: long texts: kept once, read where they are wanted, and refused where they are written, if at
 * all. For src/engine/stored.c and whatever reads what a run has been through. */
#include "unit/engine/rig.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <time.h>

#include "base/json.h"
#include "base/str.h"

enum { LONG = 40000, HUGE_BYTES = 12 << 20 };

/* ----------------------------------------------------------------------------- shorthands --- */

/* A JSON string of so many bytes, for free(). */
static char *long_text(size_t bytes, char of)
{
    char *json = malloc(bytes + 1);
    assert_non_null(json);
    memset(json, of, bytes);
    json[0] = json[bytes - 1] = '"';
    json[bytes] = '\0';
    return json;
}

static bool is_long(const char *json, size_t bytes, char of)
{
    if (json == NULL || strlen(json) != bytes || json[0] != '"' || json[bytes - 1] != '"')
        return false;
    for (size_t i = 1; i + 1 < bytes; i++)
        if (json[i] != of)
            return false;
    return true;
}

static int return_long(rv_ctx *c, size_t bytes, char of)
{
    char *json = long_text(bytes, of);
    int rc = rv_return_json(c, json);
    free(json);
    return rc;
}

static int64_t one_number(struct rig *rig, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open(rig->store, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

static void change(struct rig *rig, const char *sql)
{
    sqlite3 *db;
    char *why = NULL;
    assert_int_equal(sqlite3_open(rig->store, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
    sqlite3_close(db);
}

/* --------------------------------------------------------------------------- large results --- */

static int huge(rv_ctx *c)
{
    return return_long(c, HUGE_BYTES, 'h');
}

static int sees_the_first(rv_ctx *c)
{
    return is_long(rv_json(c, ".steps.h0.result"), HUGE_BYTES, 'h') ? rv_return(c, "s", "seen")
                                                                    : rv_fail(c, "it is another");
}

static void put_huge(struct rig *rig)
{
    rv_workflow *w = rv_workflow_new("huge");
    char alias[8];
    for (int i = 0; i < 8; i++) {
        snprintf(alias, sizeof alias, "h%d", i);
        rv_add_step(rv_workflow_body(w), alias, huge, NULL);
    }
    rv_add_delay(rv_workflow_body(w), "nap", 1500);
    rv_add_step(rv_workflow_body(w), "end", sees_the_first, NULL);
    rig_put(rig, w);
}

static void a_run_of_large_results_sleeps_and_wakes(void **state)
{
    struct rig *rig = *state;
    rv_outcome *outcome = NULL;
    rv_run_state *now = NULL;
    rv_node_detail *node = NULL;
    rig_open(rig, NULL);
    put_huge(rig);
    rig_follow(rig, NULL);
    rig_run(rig, "huge", "r", NULL);
    rig_until(rig, "timer.armed", "r"); /* the feed has passed them all */
    rig_close(rig);
    assert_true(one_number(rig, "SELECT max(length(facts)) FROM journal") < 100000);
    assert_int_equal(one_number(rig, "SELECT count(*) FROM large_values"), 8);

    rig_open(rig, NULL); /* and another process takes it up */
    put_huge(rig);
    assert_int_equal(rv_wait(rig->engine, NULL, "r", NULL, &outcome, &rig->err), RV_OK);
    assert_int_equal(outcome->status, RV_COMPLETED);
    assert_string_equal(outcome->results, "{}");
    assert_true(outcome->results_too_large > 8 * (int64_t)HUGE_BYTES &&
                outcome->results_too_large < 8 * (int64_t)HUGE_BYTES + 2000);
    assert_int_equal(rv_state(rig->engine, "r", &now, &rig->err), RV_OK);
    assert_int_equal(now->results_too_large, outcome->results_too_large);
    assert_int_equal(rv_node_get(rig->engine, "r", "h7", &node, &rig->err), RV_OK);
    assert_true(is_long(node->result, HUGE_BYTES, 'h'));
    rv_node_detail_free(node);
    rv_run_state_free(now);
    rv_outcome_free(outcome);
    assert_true(one_number(rig, "SELECT coalesce(max(length(state)),0) FROM snapshots") < 100000);
}

/* ---------------------------------------------------------------------------- who sees what --- */

static int gives_long(rv_ctx *c)
{
    char *json = long_text(LONG, 's');
    assert_int_equal(rv_set_state(c, "more", json), 0);
    free(json);
    rv_describe(c, "gave it");
    return return_long(c, LONG, 'r');
}

static int long_items(rv_ctx *c)
{
    struct rv__buf json;
    rv__buf_init(&json, SIZE_MAX);
    for (int i = 0; i < 12; i++) {
        rv__buf_text(&json, i == 0 ? "[" : ",");
        char *item = i % 3 == 0 ? long_text(LONG, (char)('a' + i)) : NULL;
        if (item != NULL)
            rv__buf_text(&json, item);
        else
            rv__buf_int(&json, i);
        free(item);
    }
    rv__buf_char(&json, ']');
    int rc = rv_return_json(c, json.text);
    rv__buf_done(&json);
    return rc;
}

static int sees_item(rv_ctx *c)
{
    int64_t i = rv_int(c, ".loop.index", -1);
    const char *item = rv_json(c, ".loop.item"), *all = rv_json(c, ".");
    bool right = i % 3 == 0 ? is_long(item, LONG, (char)('a' + i))
                            : item != NULL && strtoll(item, NULL, 10) == i;
    if (!right || all == NULL || strstr(all, "\"items\":[\"aaa") == NULL)
        return rv_fail(c, "item %lld is another", (long long)i);
    return return_long(c, LONG, 'i');
}

static int sees_all(rv_ctx *c)
{
    struct rv__str all = rv__str(rv_json(c, ".")), part;
    if (!is_long(rv_json(c, ".input.in"), LONG, 'n'))
        return rv_fail(c, "another input");
    if (!is_long(rv_json(c, ".steps.a.result"), LONG, 'r'))
        return rv_fail(c, "another result");
    if (!is_long(rv_json(c, ".steps.a.state.more"), LONG, 's') ||
        strcmp(rv_json(c, ".steps.a.state.description"), "\"gave it\"") != 0)
        return rv_fail(c, "another state");
    if (!is_long(rv_json(c, ".lastStep.result.iterations[3].results.see.result"), LONG, 'i') ||
        !is_long(rv_json(c, ".lastStep.result.iterations[9].item"), LONG, 'a' + 9))
        return rv_fail(c, "other iterations");
    if (rv__json_pointer(all, rv__str("/steps/a/result"), &part, NULL) < 0 || part.len != LONG)
        return rv_fail(c, "another context");
    return rv_return(c, "s", "all");
}

static rv_workflow *sights(void)
{
    rv_workflow *w = rv_workflow_new("sights");
    rv_add_step(rv_workflow_body(w), "a", gives_long, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", long_items,
                                   RV_FOREACH_OPTS(.parallel = true, .concurrency = 3));
    rv_add_step(each, "see", sees_item, NULL);
    rv_add_step(rv_workflow_body(w), "z", sees_all, NULL);
    return w;
}

static char *long_input(void)
{
    char *text = long_text(LONG, 'n'), *input = malloc(LONG + 20);
    assert_non_null(input);
    snprintf(input, LONG + 20, "{\"in\":%s}", text);
    free(text);
    return input;
}

static void a_step_sees_long_texts_as_they_were(void **state)
{
    struct rig *rig = *state;
    rv_outcome *outcome = NULL;
    rv_run_state *now = NULL;
    rv_node_detail *node = NULL;
    struct rv__str part;
    char *input = long_input();
    rig_open(rig, NULL);
    rig_put(rig, sights());
    rig_run(rig, "sights", "r", input);
    assert_int_equal(rv_wait(rig->engine, NULL, "r", NULL, &outcome, &rig->err), RV_OK);
    if (outcome->status != RV_COMPLETED)
        fail_msg("%s", outcome->error);
    assert_int_equal(outcome->results_too_large, 0);
    assert_int_equal(rv_state(rig->engine, "r", &now, &rig->err), RV_OK);
    assert_string_equal(now->input, input);
    rv_run_state_free(now);
    struct rv__str results = rv__str(outcome->results);
    assert_int_equal(rv__json_check(results, RV__JSON_MAX_DEPTH, NULL, &rig->err), RV_OK);
    assert_int_equal(rv__json_pointer(results, rv__str("/a/state/more"), &part, NULL), RV_OK);
    assert_int_equal(part.len, LONG);
    assert_int_equal(
        rv__json_pointer(results, rv__str("/each/result/iterations/6/item"), &part, NULL), RV_OK);
    assert_int_equal(part.len, LONG);
    assert_int_equal(rv_node_get(rig->engine, "r", "a", &node, &rig->err), RV_OK);
    assert_true(is_long(node->result, LONG, 'r'));
    assert_non_null(strstr(node->state, "sss"));
    assert_string_equal(node->node.description, "gave it"); /* which the fact has beside it */
    rv_node_detail_free(node);
    rv_outcome_free(outcome);
    free(input);
}

static void expressions_see_long_texts(void **state)
{
    struct rig *rig = *state;
    char *input = long_input();
    rig_define(rig, "  - a: { value: \"${ {t: .input.in, n: 1} }\" }\n"
                    "  - b: { value: \"${ .steps.a.result.t | length }\" }\n"
                    "  - same: { value: \"${ .steps.a.result }\" }\n"
                    "  - each:\n"
                    "      forEach: \"${ [range(9000)] }\"\n"
                    "      parallel: true\n"
                    "      when: \"${ .steps.b.result > 0 }\"\n"
                    "      run:\n"
                    "        - x: { value: \"${ .loop.item + (.loop.items | length) }\" }\n"
                    "  - l: { value: \"${ [.lastStep.result.iterations[-1].results.x.result, "
                    "(.steps.same.result.t | length)] }\" }\n");
    rig_gives(rig, "r", input, "\"l\":{\"result\":[17999,39998]");
    free(input);
}

static void events_tell_how_long_a_text_is(void **state)
{
    struct rig *rig = *state;
    rv_event event;
    bool seen = false;
    char *input = long_input();
    rig_open(rig, NULL);
    rig_put(rig, sights());
    rig_follow(rig, NULL);
    rig_run(rig, "sights", "r", input);
    while (rv_feed_next(rig->feed, 20000, NULL, &event, &rig->err) == RV_OK &&
           strcmp(event.kind, "run.completed") != 0) {
        assert_true(strlen(event.json) < 20000);
        if (strcmp(event.kind, "run.started") == 0)
            assert_non_null(strstr(event.json, "\"inputBytes\":40007"));
        if (strcmp(event.kind, "step.completed") == 0 && strcmp(event.path, "a") == 0) {
            assert_non_null(strstr(event.json, "\"resultBytes\":40000"));
            assert_non_null(strstr(event.json, "\"stateBytes\":4"));
            seen = true;
        }
    }
    assert_true(seen);
    free(input);
}

/* ------------------------------------------------------------------------------- moved runs --- */

struct copy {
    struct rv__buf file;
    size_t at;
};

static int take_piece(void *arg, const char *bytes, size_t len)
{
    rv__buf_add(&((struct copy *)arg)->file, bytes, len);
    return 0;
}

static long give_piece(void *arg, char *into, size_t room)
{
    struct copy *copy = arg;
    size_t n = copy->file.len - copy->at < room ? copy->file.len - copy->at : room;
    memcpy(into, copy->file.text + copy->at, n);
    copy->at += n;
    return (long)n;
}

static void an_exported_run_has_its_values(void **state)
{
    struct rig *rig = *state;
    struct copy copy = { .at = 0 };
    rv_engine *other = NULL;
    rv_outcome *outcome = NULL, *again = NULL;
    char *input = long_input();
    rv__buf_init(&copy.file, SIZE_MAX);
    rig_open(rig, NULL);
    rig_put(rig, sights());
    rig_run(rig, "sights", "r", input);
    assert_int_equal(rv_wait(rig->engine, NULL, "r", NULL, &outcome, &rig->err), RV_OK);
    assert_int_equal(
        rv_export(rig->engine, "r", RV_EXPORT_OPTS(.write = take_piece, .arg = &copy), &rig->err),
        RV_OK);
    assert_int_equal(rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:"), &other, &rig->err), RV_OK);
    /* A value left out is noticed. */
    char *line = strstr(copy.file.text, "\n{\"value\":[2,");
    assert_non_null(line);
    line[11] = '7';
    assert_int_equal(
        rv_import(other, RV_IMPORT_OPTS(.read = give_piece, .arg = &copy), NULL, &rig->err),
        RV_EPARSE);
    assert_non_null(strstr(rig->err.message, "it is not the next value"));
    line[11] = '2';
    copy.at = 0;
    if (rv_import(other, RV_IMPORT_OPTS(.read = give_piece, .arg = &copy), NULL, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
    assert_int_equal(rv_wait(other, NULL, "r", NULL, &again, &rig->err), RV_OK);
    assert_string_equal(again->results, outcome->results);
    rv_outcome_free(again);
    rv_outcome_free(outcome);
    rv_engine_free(other);
    rv__buf_done(&copy.file);
    free(input);
}

/* ----------------------------------------------------------------------------------- limits --- */

static int too_much_state(rv_ctx *c)
{
    char *json = long_text(700000, 's');
    assert_int_equal(rv_set_state(c, "one", json), 0);
    assert_int_equal(rv_set_state(c, "two", json), RV_ETOOBIG);
    free(json);
    return rv_return(c, "i", 1);
}

static int too_much_result(rv_ctx *c)
{
    return return_long(c, (64 << 20) + 1, 'r');
}

static void fails_saying(struct rig *rig, const char *name, rv_step_fn fn, const char *why)
{
    rv_outcome *outcome = NULL;
    rv_run_info info;
    rv_workflow *w = rv_workflow_new(name);
    rv_add_step(rv_workflow_body(w), "a", fn, NULL);
    rig_put(rig, w);
    assert_int_equal(rv_run(rig->engine, name, NULL, NULL, &info, &rig->err), RV_OK);
    assert_int_equal(rv_wait(rig->engine, NULL, info.run_id, NULL, &outcome, &rig->err), RV_OK);
    assert_int_equal(outcome->status, RV_FAILED);
    if (strstr(outcome->error, why) == NULL)
        fail_msg("'%s' is not in %s", why, outcome->error);
    rv_outcome_free(outcome);
}

static void a_limit_is_told_when_something_is_written(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    fails_saying(rig, "state", too_much_state,
                 "the state would have 1400015 bytes: at most 1048576 are allowed");
    fails_saying(rig, "result", too_much_result,
                 "the result has 67108865 bytes: at most 67108864 are allowed");
    char *huge_text = long_text((64 << 20) + 1, 'x');
    assert_int_equal(rv_run(rig->engine, "state", huge_text, NULL, NULL, &rig->err), RV_ETOOBIG);
    assert_non_null(strstr(rig->err.message, "the input has 67108865 bytes: at most 67108864"));
    assert_int_equal(rv_signal(rig->engine, "x", "s", huge_text, &rig->err), RV_ETOOBIG);
    assert_int_equal(rv_complete(rig->engine, "x", "h", huge_text, NULL, &rig->err), RV_ETOOBIG);
    huge_text[20000] = '\0';
    assert_int_equal(rv_complete(rig->engine, "x", "h", NULL, huge_text, &rig->err), RV_ETOOBIG);
    assert_int_equal(
        rv_decide(rig->engine, "x", RV_ABORT, RV_DECIDE_OPTS(.reason = huge_text), &rig->err),
        RV_ETOOBIG);
    assert_non_null(strstr(rig->err.message, "the reason has 20000 bytes: at most 16384"));
    free(huge_text);
}

/* -------------------------------------------------------------------------------- snapshots --- */

static int hundred(rv_ctx *c)
{
    struct rv__buf json;
    rv__buf_init(&json, 10000);
    for (int i = 0; i < 100; i++)
        rv__buf_text(&json, i == 0 ? "[0" : ",0");
    rv__buf_char(&json, ']');
    int rc = rv_return_json(c, json.text);
    rv__buf_done(&json);
    return rc;
}

static int cured(rv_ctx *c)
{
    return rv_return(c, "s", "cured");
}

static void put_waits(struct rig *rig)
{
    rv_workflow *w = rv_workflow_new("waits");
    rv_add_step(rv_workflow_body(w), "a", gives_long, NULL);
    /* So long that it pays to have a snapshot. */
    rv_add_step(rv_add_foreach(rv_workflow_body(w), "each", hundred, NULL), "x", cured, NULL);
    rv_add_delay(rv_workflow_body(w), "nap", 1500);
    rv_add_step(rv_workflow_body(w), "b", gives_long, NULL);
    rig_put(rig, w);
}

/* A snapshot is a cache: the journal has it all. */
static void a_snapshot_that_cannot_be_read_is_no_harm(void **state)
{
    static const char *const damages[] = {
        "UPDATE snapshots SET state = 'no JSON'",
        "UPDATE snapshots SET state = '{}'",
        "UPDATE snapshots SET state = '{\"v\":1' || substr(state, instr(state, ','))",
    };
    struct rig *rig = *state;
    char id[8];
    for (int i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "r%d", i);
        rig_open(rig, NULL);
        put_waits(rig);
        rig_follow(rig, NULL);
        rig_run(rig, "waits", id, NULL);
        rig_until(rig, "timer.armed", id);
        for (int n = 0; one_number(rig, "SELECT count(*) FROM snapshots") <= i && n < 1000; n++)
            nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL); /* it leaves memory */
        rig_close(rig);
        assert_true(one_number(rig, "SELECT count(*) FROM snapshots") > 0);
        change(rig, damages[i]);
        rig_open(rig, NULL);
        put_waits(rig);
        assert_int_equal(rig_wait(rig, id), RV_COMPLETED);
        rig_close(rig);
    }
}

static int pill(rv_ctx *c)
{
    (void)c;
    _exit(9);
}

static void put_pill(struct rig *rig, rv_step_fn fn)
{
    rv_workflow *w = rv_workflow_new("pill");
    rv_add_step(rv_workflow_body(w), "p", fn, NULL);
    rig_put(rig, w);
}

/* One that kills the process, as often as it may under `max_crashes`; suspended then. */
static void take_the_pill(struct rig *rig, uint32_t max_crashes)
{
    for (int n = 0; n < 10; n++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            rv_engine_opts opts = { .max_crashes = max_crashes };
            rv_run_state *now = NULL;
            rig_open(rig, &opts);
            put_pill(rig, pill);
            (void)rv_run(rig->engine, "pill", NULL, RV_RUN_OPTS(.run_id = "r"), NULL, &rig->err);
            for (int k = 0; k < 2000; k++) {
                if (rv_state(rig->engine, "r", &now, &rig->err) == RV_OK &&
                    now->status == RV_SUSPENDED) {
                    char *payload = long_text(15000, 'p'); /* so much that a snapshot pays */
                    for (int s = 0; s < 3; s++)
                        if (rv_signal_with(rig->engine, "r", "s", payload,
                                           RV_SIGNAL_OPTS(.force = true), &rig->err) < 0)
                            _exit(2);
                    rv_engine_free(rig->engine);
                    _exit(0);
                }
                rv_run_state_free(now);
                now = NULL;
                nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
            }
            _exit(1);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return;
    }
    fail_msg("the run was never suspended");
}

static void a_run_suspended_under_one_limit_loads_under_another(void **state)
{
    struct rig *rig = *state;
    rv_engine_opts opts = { .max_crashes = 5 };
    rv_run_state *now = NULL;
    take_the_pill(rig, 1);
    assert_int_equal(one_number(rig, "SELECT count(*) FROM snapshots"), 1);
    rig_open(rig, &opts);
    put_pill(rig, cured);
    assert_int_equal(rv_state(rig->engine, "r", &now, &rig->err), RV_OK);
    assert_int_equal(now->status, RV_SUSPENDED);
    assert_null(strstr(now->suspension, "damaged"));
    rv_run_state_free(now);
    if (rv_decide(rig->engine, "r", RV_RESUME, NULL, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_run_of_large_results_sleeps_and_wakes),
        RIG_TEST(a_step_sees_long_texts_as_they_were),
        RIG_TEST(expressions_see_long_texts),
        RIG_TEST(events_tell_how_long_a_text_is),
        RIG_TEST(an_exported_run_has_its_values),
        RIG_TEST(a_limit_is_told_when_something_is_written),
        RIG_TEST(a_snapshot_that_cannot_be_read_is_no_harm),
        RIG_TEST(a_run_suspended_under_one_limit_loads_under_another),
    };
    return cmocka_run_group_tests_name("values", tests, NULL, NULL);
}
