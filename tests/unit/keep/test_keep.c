/* test_keep.c: runs as files and back, stores as files. For src/keep/export.c, import.c, backup.c.
 *
 * Runs move between two test engines: both have the real engine's way through the store, and a clock that
 * moves when told. */
#include "unit/engine/rig.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/str.h"

enum { HOUR_MS = 3600 * 1000, MINUTE_MS = 60 * 1000 };

struct move {
    rv_engine *from, *to;
    struct rv__buf file; /* the run */
    size_t read;
    rv_error err;
};

static int ran[4]; /* how often each step ran, in whichever engine */
static int last_attempt;
static char key[2][200]; /* of `flaky`: the one before, and the last */
static bool slow;        /* the step `work` takes an hour */

static int setup(void **state)
{
    struct move *m = calloc(1, sizeof *m);
    assert_non_null(m);
    rv__buf_init(&m->file, SIZE_MAX);
    memset(ran, 0, sizeof ran);
    slow = false;
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    struct move *m = *state;
    rv__test_fail_alloc_after(-1);
    rv_engine_free(m->from);
    rv_engine_free(m->to);
    rv__buf_done(&m->file);
    free(m);
    return 0;
}

/* ------------------------------------------------------------------------------ workflows --- */

static int first(rv_ctx *c)
{
    ran[0]++;
    rv_describe(c, "the first");
    rv_log_info(c, "a line\nof two");
    rv_log(c, RV_WARN, "{\"n\": [1,\n2]}", "with metadata");
    return rv_return(c, "{s:s, s:i}", "text", "\"quoted\" \xc3\xa9", "n", 7);
}

static int flaky(rv_ctx *c)
{
    ran[1]++;
    memcpy(key[0], key[1], sizeof key[0]);
    snprintf(key[1], sizeof key[1], "%s", rv_ctx_idempotency_key(c));
    last_attempt = rv_ctx_attempt(c);
    return last_attempt < 2 ? rv_fail(c, "not yet") : rv_return(c, "i", last_attempt);
}

static int work(rv_ctx *c)
{
    ran[2]++;
    if (slow)
        rv_test_takes(c, HOUR_MS);
    return rv_return(c, "s", "worked");
}

static int last(rv_ctx *c)
{
    ran[3]++;
    return rv_return(c, "i", 42);
}

static int three(rv_ctx *c)
{
    return rv_return_json(c, "[1, {\"two\": 2},\n 3]");
}

static void put(rv_engine *engine)
{
    rv_error err = { 0, "" };
    rv_workflow *w[5];
    rv_body *each;
    w[0] = rv_workflow_new("delays");
    rv_add_step(rv_workflow_body(w[0]), "first", first, NULL);
    rv_add_delay(rv_workflow_body(w[0]), "nap", HOUR_MS);
    rv_add_step(rv_workflow_body(w[0]), "last", last, NULL);
    w[1] = rv_workflow_new("retries");
    rv_add_step(
        rv_workflow_body(w[1]), "flaky", flaky,
        RV_STEP_OPTS(.max_attempts = 3, .backoff_base_ms = HOUR_MS, .max_backoff_ms = HOUR_MS));
    w[2] = rv_workflow_new("works");
    rv_add_step(rv_workflow_body(w[2]), "work", work, NULL);
    rv_add_step(rv_workflow_body(w[2]), "last", last, NULL);
    w[3] = rv_workflow_new("signals");
    rv_add_delay(rv_workflow_body(w[3]), "nap", HOUR_MS);
    rv_add_signal(rv_workflow_body(w[3]), "go", "go", 0, NULL);
    w[4] = rv_workflow_new("loops");
    each = rv_add_foreach(rv_workflow_body(w[4]), "outer", three, NULL);
    rv_add_step(each, "first", first, NULL);
    each = rv_add_foreach(each, "inner", three, RV_FOREACH_OPTS(.parallel = true));
    rv_add_step(each, "last", last, NULL);
    rv_add_delay(each, "nap", MINUTE_MS);
    for (size_t i = 0; i < sizeof w / sizeof *w; i++) {
        if (rv_register(engine, w[i], &err) < 0)
            fail_msg("cannot register: %s", err.message);
        rv_workflow_free(w[i]);
    }
}

static rv_engine *open_kit(int64_t start_ms)
{
    rv_engine *engine = NULL;
    rv_error err = { 0, "" };
    if (rv_test_engine_new(RV_TEST_OPTS(.start_ms = start_ms, .max_crashes = 1,
                                        .seed = (uint64_t)start_ms), /* not the other one's */
                           &engine, &err) < 0)
        fail_msg("cannot open: %s", err.message);
    put(engine);
    return engine;
}

static void start(struct move *m, const char *workflow)
{
    if (m->from == NULL)
        m->from = open_kit(0);
    assert_int_equal(rv_run(m->from, workflow, NULL, RV_RUN_OPTS(.run_id = "r"), NULL, &m->err),
                     RV_OK);
}

static void advance(rv_engine *engine, int64_t ms)
{
    rv_error err = { 0, "" };
    if (rv_test_advance(engine, ms, &err) < 0)
        fail_msg("%s", err.message);
}

/* --------------------------------------------------------------------------------- moving --- */

static int put_piece(void *arg, const char *bytes, size_t count)
{
    struct move *m = arg;
    rv__buf_add(&m->file, bytes, count);
    return 0;
}

static int drop_piece(void *arg, const char *bytes, size_t count)
{
    (void)arg;
    (void)bytes;
    (void)count;
    return 0;
}

static long get_piece(void *arg, char *into, size_t room)
{
    struct move *m = arg;
    size_t n = m->file.len - m->read < room ? m->file.len - m->read : room;
    memcpy(into, m->file.text + m->read, n);
    m->read += n;
    return (long)n;
}

static void leave(struct move *m)
{
    rv__buf_reset(&m->file);
    if (rv_export(m->from, "r", RV_EXPORT_OPTS(.write = put_piece, .arg = m), &m->err) < 0)
        fail_msg("cannot export: %s", m->err.message);
}

static int come(struct move *m, rv_run_info *info)
{
    m->read = 0;
    return rv_import(m->to, RV_IMPORT_OPTS(.read = get_piece, .arg = m), info, &m->err);
}

static void move(struct move *m, int status)
{
    rv_run_info info = { "", -1 };
    leave(m);
    if (m->to == NULL)
        m->to = open_kit(rv_test_now(m->from));
    if (come(m, &info) < 0)
        fail_msg("cannot import: %s", m->err.message);
    assert_string_equal(info.run_id, "r");
    assert_int_equal(info.status, status);
}

static rv_run_state *state_of(rv_engine *engine)
{
    rv_run_state *state = NULL;
    rv_error err = { 0, "" };
    if (rv_state(engine, "r", &state, &err) < 0)
        fail_msg("%s", err.message);
    return state;
}

static void status_is(rv_engine *engine, int status)
{
    rv_run_state *state = state_of(engine);
    int is = state->status;
    rv_run_state_free(state);
    assert_int_equal(is, status);
}

/* Everything that can be asked about the run, but for the numbers of its log lines. */
static void tell_logs(rv_engine *engine, struct rv__buf *out)
{
    rv_log_list *lines = NULL;
    assert_int_equal(rv_logs(engine, "r", RV_LOG_QUERY(.limit = 1000), &lines, NULL), RV_OK);
    for (size_t i = 0; i < lines->count; i++)
        rv__buf_fmt(out, "%lld %d %d %s %s %s %s\n", (long long)lines->lines[i].at,
                    lines->lines[i].level, lines->lines[i].attempt, lines->lines[i].step,
                    lines->lines[i].path, lines->lines[i].message, lines->lines[i].metadata);
    rv_log_list_free(lines);
}

static void tell_nodes(rv_engine *engine, const char *parent, struct rv__buf *out)
{
    rv_node_list *list = NULL;
    assert_int_equal(
        rv_nodes(engine, "r", RV_NODE_QUERY(.parent = parent, .limit = 1000), &list, NULL), RV_OK);
    for (size_t i = 0; i < list->count; i++) {
        const rv_node *n = &list->nodes[i];
        rv__buf_fmt(out, "%s %s %lld %lld %d %d %s %s\n", n->path, n->status,
                    (long long)n->started_at, (long long)n->completed_at, n->attempt, n->crashes,
                    n->error, n->description);
        if (n->children > 0)
            tell_nodes(engine, n->path, out);
    }
    rv_node_list_free(list);
}

static void tell_all(rv_engine *engine, struct rv__buf *out)
{
    rv_run_state *s = state_of(engine);
    rv__buf_fmt(out, "%d %s %s %s %s %s %s %s %lld %lld %lld\n", s->status, s->workflow, s->version,
                s->input, s->results, s->error, s->failed_step, s->suspension,
                (long long)s->created_at, (long long)s->started_at, (long long)s->completed_at);
    rv_run_state_free(s);
    tell_logs(engine, out);
    tell_nodes(engine, NULL, out);
}

static void same_in_both(struct move *m)
{
    struct rv__buf a, b;
    rv__buf_init(&a, SIZE_MAX);
    rv__buf_init(&b, SIZE_MAX);
    tell_all(m->from, &a);
    tell_all(m->to, &b);
    for (size_t i = 0; i < a.len; i++) /* line ends between values become blanks on the way */
        if (a.text[i] == '\n')
            a.text[i] = ' ';
    for (size_t i = 0; i < b.len; i++)
        if (b.text[i] == '\n')
            b.text[i] = ' ';
    bool same = a.len == b.len && memcmp(a.text, b.text, a.len) == 0;
    if (!same)
        print_error("here:  %s\nthere: %s\n", a.text, b.text);
    rv__buf_done(&a);
    rv__buf_done(&b);
    assert_true(same);
}

/* ---------------------------------------------------------------------------- it goes on --- */

static void a_run_in_a_delay_goes_on_elsewhere(void **state)
{
    struct move *m = *state;
    start(m, "delays");
    advance(m->from, 10 * MINUTE_MS);
    move(m, RV_RUNNING);
    same_in_both(m);
    advance(m->to, 49 * MINUTE_MS);
    status_is(m->to, RV_RUNNING);
    advance(m->to, 2 * MINUTE_MS);
    status_is(m->to, RV_COMPLETED);
    assert_int_equal(ran[0], 1); /* what was done is not done again */
    assert_int_equal(ran[3], 1);
    advance(m->from, 51 * MINUTE_MS); /* the other one goes on too, to the same end */
    same_in_both(m);
}

static void a_timer_that_fell_due_on_the_way_fires_once(void **state)
{
    struct move *m = *state;
    start(m, "delays");
    advance(m->from, 0);
    leave(m);
    m->to = open_kit(rv_test_now(m->from) + 5 * HOUR_MS);
    assert_int_equal(come(m, NULL), RV_OK);
    advance(m->to, 0);
    status_is(m->to, RV_COMPLETED);
    assert_int_equal(ran[3], 1);
}

static void a_run_in_a_retry_wait_keeps_its_attempts(void **state)
{
    struct move *m = *state;
    start(m, "retries");
    advance(m->from, MINUTE_MS);
    assert_int_equal(ran[1], 1);
    move(m, RV_RUNNING);
    same_in_both(m);
    advance(m->to, 58 * MINUTE_MS);
    assert_int_equal(ran[1], 1);
    advance(m->to, 2 * MINUTE_MS);
    assert_int_equal(last_attempt, 2);
    status_is(m->to, RV_COMPLETED);
    assert_string_equal(key[0], key[1]); /* who was called by the first knows the second */
    assert_memory_equal(key[1], "r/", 2);
    assert_int_equal(rv_run(m->to, "retries", NULL, RV_RUN_OPTS(.run_id = "s"), NULL, &m->err),
                     RV_OK);
    advance(m->to, MINUTE_MS);
    assert_string_not_equal(key[0] + 2, key[1] + 2); /* of a run of its own */
}

static void a_suspended_run_is_decided_elsewhere(void **state)
{
    struct move *m = *state;
    slow = true;
    start(m, "works");
    for (int i = 0; i < 4;
         i++) { /* two make a suspect; of two more it is to blame, and one is forgiven */
        advance(m->from, MINUTE_MS);
        assert_int_equal(rv_test_crash(m->from, &m->err), RV_OK);
    }
    advance(m->from, MINUTE_MS);
    status_is(m->from, RV_SUSPENDED);
    move(m, RV_SUSPENDED);
    same_in_both(m);
    advance(m->to, HOUR_MS);
    status_is(m->to, RV_SUSPENDED);
    assert_int_equal(rv_decide(m->to, "r", RV_RESUME, NULL, &m->err), RV_OK);
    advance(m->to, 2 * HOUR_MS);
    status_is(m->to, RV_COMPLETED);
}

static void an_attempt_in_flight_is_made_again_and_nobody_is_blamed(void **state)
{
    struct move *m = *state;
    rv_node_list *nodes = NULL;
    slow = true;
    start(m, "works");
    advance(m->from, MINUTE_MS);
    assert_int_equal(ran[2], 1);
    slow = false;
    move(m, RV_RUNNING);
    advance(m->to, 0);
    assert_int_equal(ran[2], 2);
    status_is(m->to, RV_COMPLETED);
    assert_int_equal(rv_nodes(m->to, "r", RV_NODE_QUERY(.limit = 1), &nodes, &m->err), RV_OK);
    int crashes = nodes->nodes[0].crashes;
    rv_node_list_free(nodes);
    assert_int_equal(crashes, 0);
}

static void a_signal_that_waits_comes_along(void **state)
{
    struct move *m = *state;
    start(m, "signals");
    advance(m->from, MINUTE_MS);
    assert_int_equal(rv_signal(m->from, "r", "go", "{\"by\": \"kim\"}", &m->err), RV_OK);
    move(m, RV_RUNNING);
    advance(m->to, HOUR_MS);
    status_is(m->to, RV_COMPLETED);
    rv_run_state *now = state_of(m->to);
    bool there = strstr(now->results, "kim") != NULL;
    rv_run_state_free(now);
    assert_true(there);
}

static void a_completed_run_is_the_same_elsewhere(void **state)
{
    struct move *m = *state;
    start(m, "delays");
    advance(m->from, 2 * HOUR_MS);
    move(m, RV_COMPLETED);
    same_in_both(m);
    advance(m->to, HOUR_MS);
    assert_int_equal(ran[3], 1);
}

static void a_cancelled_run_is_the_same_elsewhere(void **state)
{
    struct move *m = *state;
    start(m, "delays");
    advance(m->from, MINUTE_MS);
    assert_int_equal(rv_cancel_run(m->from, "r", &m->err), RV_OK);
    move(m, RV_CANCELLED);
    same_in_both(m);
}

/* In the midst of iterations, those that ended are in the store and not in the cell. */
static int times(const char *text, const char *part)
{
    int count = 0;
    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        count++;
    }
    return count;
}

/* Ended in the midst of nested iterations: those that had ended, and those that were in flight. */
static void what_a_cancel_cut_short_is_told_after_a_crash_and_elsewhere(void **state)
{
    struct move *m = *state;
    start(m, "loops");
    advance(m->from, MINUTE_MS + MINUTE_MS / 2);
    assert_int_equal(rv_cancel_run(m->from, "r", &m->err), RV_OK);
    for (int i = 0; i < 2; i++) {
        rv_run_state *now = state_of(m->from);
        if (times(now->results, "\"nap\":{\"result\":{\"delayedMs\":") != 3 ||
            times(now->results,
                  "\"nap\":{\"result\":null,\"state\":{},\"status\":\"cancelled\"}") != 3 ||
            times(now->results, "\"results\":{\"first\":{\"result\":{") != 2)
            fail_msg("%s", now->results);
        rv_run_state_free(now);
        assert_int_equal(rv_test_crash(m->from, &m->err), RV_OK);
    }
    move(m, RV_CANCELLED);
    same_in_both(m);
}

static void iterations_come_along(void **state)
{
    struct move *m = *state;
    start(m, "loops");
    for (int minute = 0; minute < 5; minute++) {
        rv_engine_free(m->to);
        m->to = NULL;
        move(m, minute < 4 ? RV_RUNNING : RV_COMPLETED);
        same_in_both(m);
        advance(m->to, HOUR_MS);
        status_is(m->to, RV_COMPLETED);
        advance(m->from, minute == 0 ? 0 : MINUTE_MS);
    }
    same_in_both(m);
}

/* From one to the next and on: what was imported can be exported. */
static void a_run_can_travel_on(void **state)
{
    struct move *m = *state;
    start(m, "loops");
    for (int i = 0; i < 4; i++) {
        advance(m->from, i * MINUTE_MS / 3);
        move(m, RV_RUNNING);
        same_in_both(m);
        rv_engine_free(m->from);
        m->from = m->to;
        m->to = NULL;
    }
    advance(m->from, HOUR_MS);
    status_is(m->from, RV_COMPLETED);
    assert_int_equal(ran[0], 3);
    assert_int_equal(ran[3], 9);
}

/* ------------------------------------------------------------------------------ bad files --- */

static void not_there(struct move *m)
{
    rv_run_state *state = NULL;
    assert_int_equal(rv_state(m->to, "r", &state, NULL), RV_ENOTFOUND);
}

static void refused(struct move *m, int rc, const char *why)
{
    int is = come(m, NULL);
    if (is != rc || strstr(m->err.message, why) == NULL)
        fail_msg("%d instead of %d, with '%s' and not '%s'", is, rc, m->err.message, why);
    not_there(m);
}

static void begin_bad(struct move *m)
{
    start(m, "loops");
    advance(m->from, MINUTE_MS);
    leave(m);
    m->to = open_kit(rv_test_now(m->from));
}

static void a_cut_file_is_refused_wherever_it_is_cut(void **state)
{
    struct move *m = *state;
    begin_bad(m);
    for (size_t len = m->file.len; len-- > 0;) {
        m->file.len = len;
        assert_int_equal(come(m, NULL), RV_EPARSE);
    }
    not_there(m);
}

static void an_altered_file_is_refused_wherever_it_is_altered(void **state)
{
    struct move *m = *state;
    begin_bad(m);
    for (size_t at = 0; at < m->file.len; at += at % 7 + 1) {
        char was = m->file.text[at];
        m->file.text[at] = was == '1' ? '2' : '1';
        int rc = come(m, NULL);
        if (rc != RV_EPARSE && rc != RV_EINVAL)
            fail_msg("byte %zu: %d %s", at, rc, m->err.message);
        m->file.text[at] = was;
    }
    not_there(m);
    assert_int_equal(come(m, NULL), RV_OK);
}

/* Replace the text once, and make count and hash right again: by somebody who knows how. */
static void forge(struct move *m, const char *old, const char *new)
{
    struct rv__buf out;
    char hash[RV__SHA256_HEX];
    int64_t lines = 0;
    char *at = strstr(m->file.text, old);
    if (at == NULL)
        fail_msg("there is no %s", old);
    rv__buf_init(&out, SIZE_MAX);
    rv__buf_add(&out, m->file.text, (size_t)(at - m->file.text));
    rv__buf_text(&out, new);
    rv__buf_text(&out, at + strlen(old));
    rv__buf_cut(&out, (size_t)(strstr(out.text, "{\"end\":") - out.text));
    for (size_t i = 0; i < out.len; i++)
        lines += out.text[i] == '\n';
    rv__sha256_hex(rv__buf_view(&out), hash);
    rv__buf_fmt(&out, "{\"end\":{\"lines\":%lld,\"sha256\":\"%s\"}}\n", (long long)lines, hash);
    rv__buf_done(&m->file);
    m->file = out;
}

static void a_forged_file_is_refused_for_what_it_says(void **state)
{
    static const struct {
        const char *old, *new;
        int rc;
        const char *why;
    } rows[] = {
        { "\"format\":1", "\"format\":2", RV_EINVAL, "another version of Rival (format 2" },
        { "\"format\":1", "\"format\":-1", RV_EPARSE, "line 1: \"format\"" },
        { "\"runId\":\"r\"", "\"runId\":\"r/../r\"", RV_EPARSE, "line 1: its \"runId\"" },
        { "\"runId\":\"r\"", "\"runId\":7", RV_EPARSE, "line 1: \"runId\" is missing" },
        { "{\"rival\":", "{\"other\":", RV_EPARSE, "line 1: this is not an exported run" },
        { "\"version\":\"", "\"version\":\"0", RV_EPARSE, "line 3: the definition does not match" },
        { "{\"run\":", "{\"ran\":", RV_EPARSE, "line 2: the run should be here" },
        { "\"createdAt\":", "\"createdAt\":9999", RV_EPARSE, "line 2: \"createdAt\"" },
        { "\"completedAt\":0", "\"completedAt\":5", RV_EPARSE, "the run has not ended" },
        { "\"inputKey\":\"", "\"inputKey\":\"0", RV_EPARSE, "line 2: its \"inputKey\"" },
        { ",\"input\":null", "", RV_EPARSE, "line 2: it has no \"input\"" },
        { "\"name\":\"loops\"", "\"name\":\"other\"", RV_EPARSE,
          "line 3: the definition does not match" },
        { "\"type\":\"forEach\"", "\"type\":\"forNone\"", RV_EPARSE, "line 3" },
        { "{\"turn\":[{\"k\":\"run.started\"", "{\"turn\":[{\"k\":\"run.stopped\"", RV_EPARSE,
          "line 4" },
        { "body.ended", "body.started", RV_EPARSE, "; nothing was imported" },
        { "\"level\":\"warn\"", "\"level\":\"loud\"", RV_EPARSE, "its \"level\"" },
        { "{\"log\":{", "{\"log\":{{", RV_EPARSE, "; nothing was imported" },
        { "{\"log\":{", "{\"lag\":{", RV_EPARSE, "it is none that Rival writes" },
    };
    struct move *m = *state;
    begin_bad(m);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        forge(m, rows[i].old, rows[i].new);
        refused(m, rows[i].rc, rows[i].why);
        leave(m);
    }
    rv__buf_text(&m->file, "more\n");
    refused(m, RV_EPARSE, "there is data after the end");
    leave(m);
    forge(m, "\"status\":\"running\"", "\"status\":\"completed\""); /* only for people to read */
    rv_run_info info;
    assert_int_equal(come(m, &info), RV_OK);
    assert_int_equal(info.status, RV_RUNNING);
}

static void a_turn_left_out_is_noticed(void **state)
{
    struct move *m = *state;
    begin_bad(m);
    size_t turns = 0;
    for (char *at = m->file.text; (at = strstr(at, "{\"turn\":")) != NULL; at++)
        turns++;
    for (size_t n = 0; n + 1 < turns; n++) {
        char *at = m->file.text, line[8192];
        for (size_t i = 0; i <= n; i++)
            at = strstr(at + 1, "{\"turn\":");
        snprintf(line, sizeof line, "%.*s", (int)(strchr(at, '\n') + 1 - at), at);
        forge(m, line, "");
        refused(m, RV_EPARSE, "line ");
        leave(m);
    }
}

static void a_line_without_an_end_is_too_long(void **state)
{
    struct move *m = *state;
    m->to = open_kit(0);
    for (size_t i = 0; i < 66; i++) {
        char piece[1 << 10];
        memset(piece, 'x', sizeof piece);
        for (size_t k = 0; k < 1024; k++)
            rv__buf_add(&m->file, piece, sizeof piece);
    }
    refused(m, RV_EPARSE, "longer than any");
}

static void a_run_that_is_there_is_not_replaced(void **state)
{
    struct move *m = *state;
    start(m, "delays");
    advance(m->from, MINUTE_MS);
    move(m, RV_RUNNING);
    assert_int_equal(come(m, NULL), RV_EEXIST);
    assert_non_null(strstr(m->err.message, "'r'"));
    same_in_both(m);
}

static void no_memory_imports_nothing(void **state)
{
    struct move *m = *state;
    int rc;
    start(m, "loops");
    advance(m->from, MINUTE_MS);
    TORTURE(rc, rv_export(m->from, "r", RV_EXPORT_OPTS(.write = drop_piece), &m->err), (void)0);
    assert_int_equal(rc, RV_OK);
    leave(m);
    m->to = open_kit(rv_test_now(m->from));
    TORTURE(rc, come(m, NULL), not_there(m));
    assert_int_equal(rc, RV_OK);
    same_in_both(m);
}

static void wrong_use_is_told(void **state)
{
    struct move *m = *state;
    m->from = open_kit(0);
    rv_run_info info;
    assert_int_equal(rv_export(NULL, "r", RV_EXPORT_OPTS(.path = "/tmp/x"), NULL), RV_EINVAL);
    assert_int_equal(rv_export(m->from, NULL, RV_EXPORT_OPTS(.path = "/tmp/x"), NULL), RV_EINVAL);
    assert_int_equal(rv_export(m->from, "a b", RV_EXPORT_OPTS(.path = "/tmp/x"), NULL), RV_EINVAL);
    assert_int_equal(rv_export(m->from, "r", NULL, NULL), RV_EINVAL);
    assert_int_equal(rv_export(m->from, "r", RV_EXPORT_OPTS(.path = NULL), NULL), RV_EINVAL);
    assert_int_equal(rv_export(m->from, "r", RV_EXPORT_OPTS(.path = "/nowhere/x"), NULL), RV_ESYS);
    assert_int_equal(rv_export(m->from, "r", RV_EXPORT_OPTS(.write = put_piece, .arg = m), NULL),
                     RV_ENOTFOUND);
    assert_int_equal(m->file.len, 0);
    assert_int_equal(rv_import(NULL, RV_IMPORT_OPTS(.path = "/tmp/x"), &info, NULL), RV_EINVAL);
    assert_int_equal(rv_import(m->from, NULL, &info, NULL), RV_EINVAL);
    assert_int_equal(rv_import(m->from, RV_IMPORT_OPTS(.path = NULL), &info, NULL), RV_EINVAL);
    assert_int_equal(rv_import(m->from, RV_IMPORT_OPTS(.path = "/nowhere"), &info, NULL), RV_ESYS);
    assert_int_equal(rv_import(m->from, RV_IMPORT_OPTS(.path = "/tmp"), &info, NULL), RV_ESYS);
    assert_int_equal(rv_backup(NULL, RV_BACKUP_OPTS(.path = "/tmp/x"), NULL), RV_EINVAL);
    assert_int_equal(rv_backup(m->from, NULL, NULL), RV_EINVAL);
    assert_int_equal(rv_backup(m->from, RV_BACKUP_OPTS(.path = ""), NULL), RV_EINVAL);
    assert_int_equal(rv_backup(m->from, RV_BACKUP_OPTS(.path = "/tmp/rival-none"), NULL),
                     RV_ESTATE);
    assert_int_equal(access("/tmp/rival-none", F_OK), -1);
    assert_int_equal(rv_store_usage(m->from, NULL, NULL), RV_EINVAL);
}

/* ------------------------------------------------------------------------------ real stores --- */

static int quick(rv_ctx *c)
{
    rv_log_info(c, "quick");
    return rv_return(c, "i", 1);
}

static void put_quick(struct rig *rig)
{
    rv_workflow *w = rv_workflow_new("quick");
    rv_add_step(rv_workflow_body(w), "one", quick, NULL);
    rv_add_step(rv_workflow_body(w), "two", quick, NULL);
    rig_put(rig, w);
    w = rv_workflow_new("waits");
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "two", quick, NULL);
    rig_put(rig, w);
}

static void path_in(const struct rig *rig, const char *name, char ret[96])
{
    snprintf(ret, 96, "%s/%s", rig->folder, name);
}

/* A run leaves a store that another engine drives, and comes into one that is driven: it goes on there at
 * once, and who follows the feed sees it. */
static void a_driven_run_moves_into_a_driven_store(void **state)
{
    struct rig *rig = *state;
    rv_engine *looks = NULL;
    char file[96], other[96];
    struct stat what;
    path_in(rig, "r.jsonl", file);
    path_in(rig, "other.db", other);
    rig_open(rig, NULL);
    put_quick(rig);
    rig_run(rig, "waits", "r", "{\"a\": 1}");
    assert_int_equal(rv_signal(rig->engine, "r", "go", "1", &rig->err), RV_OK);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    rig_run(rig, "waits", "lives", NULL);
    rv_run_state *now = NULL; /* it is on disk when this answers */
    assert_int_equal(rv_state(rig->engine, "lives", &now, &rig->err), RV_OK);
    rv_run_state_free(now);
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = rig->store, .read_only = true), &looks, &rig->err),
        RV_OK);
    assert_int_equal(rv_export(looks, "lives", RV_EXPORT_OPTS(.path = file), &rig->err), RV_OK);
    assert_int_equal(rv_export(looks, "lives", RV_EXPORT_OPTS(.path = file), &rig->err), RV_EEXIST);
    assert_int_equal(
        rv_export(looks, "lives", RV_EXPORT_OPTS(.path = file, .replace = true), &rig->err), RV_OK);
    assert_int_equal(rv_import(looks, RV_IMPORT_OPTS(.path = file), NULL, &rig->err), RV_ESTATE);
    rv_engine_free(looks);
    assert_int_equal(stat(file, &what), 0);
    assert_int_equal(what.st_mode & 0777, 0600);
    rig_close(rig);

    snprintf(rig->store, sizeof rig->store, "%s", other);
    rig_open(rig, NULL);
    put_quick(rig);
    rig_follow(rig, RV_FEED_OPTS(.no_logs = true));
    assert_int_equal(rv_import(rig->engine, RV_IMPORT_OPTS(.path = file), NULL, &rig->err), RV_OK);
    rig_until(rig, "run.started", "lives");
    assert_int_equal(rv_signal(rig->engine, "lives", "go", "1", &rig->err), RV_OK);
    assert_int_equal(rig_wait(rig, "lives"), RV_COMPLETED);
}

static int count_steps(void *arg, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    ++*(int *)arg;
    return 0;
}

static int refuse_step(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    return 1;
}

static void a_backup_is_a_store(void **state)
{
    struct rig *rig = *state;
    char copy[96], id[16];
    int steps = 0;
    path_in(rig, "copy.db", copy);
    rig_open(rig, NULL);
    put_quick(rig);
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "r%d", i);
        rig_run(rig, "quick", id, NULL);
    }
    assert_int_equal(rig_wait(rig, "r0"), RV_COMPLETED);
    assert_int_equal(
        rv_backup(rig->engine, RV_BACKUP_OPTS(.path = copy, .progress = refuse_step), &rig->err),
        RV_ECANCELED);
    assert_int_equal(access(copy, F_OK), -1);
    assert_int_equal(rv_backup(rig->engine,
                               RV_BACKUP_OPTS(.path = copy, .progress = count_steps, .arg = &steps),
                               &rig->err),
                     RV_OK);
    assert_true(steps > 0);
    assert_int_equal(rv_backup(rig->engine, RV_BACKUP_OPTS(.path = copy), &rig->err), RV_EEXIST);
    assert_int_equal(
        rv_backup(rig->engine, RV_BACKUP_OPTS(.path = copy, .replace = true), &rig->err), RV_OK);
    rig_close(rig);
    snprintf(rig->store, sizeof rig->store, "%s", copy);
    rig_open(rig, NULL);
    put_quick(rig);
    for (int i = 0; i < 50; i++) { /* whatever it was doing at that moment, it goes on */
        snprintf(id, sizeof id, "r%d", i);
        assert_int_equal(rig_wait(rig, id), RV_COMPLETED);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_run_in_a_delay_goes_on_elsewhere),
        CASE(a_timer_that_fell_due_on_the_way_fires_once),
        CASE(a_run_in_a_retry_wait_keeps_its_attempts),
        CASE(a_suspended_run_is_decided_elsewhere),
        CASE(an_attempt_in_flight_is_made_again_and_nobody_is_blamed),
        CASE(a_signal_that_waits_comes_along),
        CASE(a_completed_run_is_the_same_elsewhere),
        CASE(a_cancelled_run_is_the_same_elsewhere),
        CASE(what_a_cancel_cut_short_is_told_after_a_crash_and_elsewhere),
        CASE(iterations_come_along),
        CASE(a_run_can_travel_on),
        CASE(a_cut_file_is_refused_wherever_it_is_cut),
        CASE(an_altered_file_is_refused_wherever_it_is_altered),
        CASE(a_forged_file_is_refused_for_what_it_says),
        CASE(a_turn_left_out_is_noticed),
        CASE(a_line_without_an_end_is_too_long),
        CASE(a_run_that_is_there_is_not_replaced),
        CASE(no_memory_imports_nothing),
        CASE(wrong_use_is_told),
        RIG_TEST(a_driven_run_moves_into_a_driven_store),
        RIG_TEST(a_backup_is_a_store),
    };
#undef CASE
    return cmocka_run_group_tests_name("keep", tests, NULL, NULL);
}
