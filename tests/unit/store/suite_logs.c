/* suite_logs.c: the logs. */
#include "unit/store/store_fixture.h"

static int see_log(void *arg, const struct rv__store_log *line)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s|%lld|%d|%.*s|%.*s|%lld|%.*s|%.*s;", RV__ARG(line->run),
                (long long)line->at_ms, (int)line->level, RV__ARG(line->path), RV__ARG(line->step),
                (long long)line->attempt, RV__ARG(line->message), RV__ARG(line->metadata));
    return RV_OK;
}

static int see_log_id(void *arg, const struct rv__store_log *line)
{
    uint64_t *last = arg;
    assert_true(line->id > *last);
    *last = line->id;
    return RV_OK;
}

static void log_lines_are_kept_in_order(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run a = full_row("a");
    struct rv__store_log lines[] = {
        { .at_ms = 5,
          .level = STORE_WARNING,
          .path = rv__str("loop/2/s"),
          .step = rv__str("s"),
          .attempt = 3,
          .message = rv__str("hello"),
          .metadata = rv__str("{\"x\":1}") },
        { .at_ms = 4, .level = STORE_DEBUG, .message = rv__str("world") },
    };
    uint64_t last = 0;
    commit_one(fx, (struct rv__store_write){
                       .run = rv__str("a"), .row = &a, .logs = lines, .log_count = 2 });
    reopen(fx);
    begin(fx, "b", "");
    log_line(fx, "b", STORE_INFO, NULL, "third");
    log_line(fx, "a", STORE_INFO, NULL, "fourth");
    struct rv__store_log_query query = { .limit = SIZE_MAX };
    assert_int_equal(rv__store_logs(fx->store, &query, see_log, fx, NULL), RV_OK);
    seen(fx, "a|5|2|loop/2/s|s|3|hello|{\"x\":1};a|4|0|||0|world|;b|0|1|||0|third|;"
             "a|0|1|||0|fourth|;");
    assert_int_equal(rv__store_logs(fx->store, &query, see_log_id, &last, NULL), RV_OK);
    logs_are(fx, (struct rv__store_log_query){ .run = rv__str("a") }, "hello world fourth ");
    logs_are(fx, (struct rv__store_log_query){ .run = rv__str("nobody") }, "");
    logs_are(fx, (struct rv__store_log_query){ .after_id = last }, "");
    struct rv__store_write write = { .run = rv__str("nobody"), .logs = lines, .log_count = 1 };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_EINVAL);
}

static void log_lines_are_filtered(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "a", "");
    begin(fx, "b", "");
    log_line(fx, "a", STORE_DEBUG, "s1", "One");
    log_line(fx, "a", STORE_ERROR, "s2", "Two");
    log_line(fx, "b", STORE_WARNING, "s1", "Three");
    log_line(fx, "a", STORE_INFO, "s1", "Four");
    logs_are(fx, (struct rv__store_log_query){ .step = rv__str("s1") }, "One Three Four ");
    logs_are(fx, (struct rv__store_log_query){ .run = rv__str("a"), .step = rv__str("s1") },
             "One Four ");
    logs_are(fx, (struct rv__store_log_query){ .min_level = STORE_WARNING }, "Two Three ");
    logs_are(fx, (struct rv__store_log_query){ .text = rv__str("o") }, "One Two Four ");
    struct rv__store_log second = { .attempt = 2, .message = rv__str("Again") };
    commit_one(fx,
               (struct rv__store_write){ .run = rv__str("b"), .logs = &second, .log_count = 1 });
    logs_are(fx, (struct rv__store_log_query){ .attempt = 2, .limit = 1 }, "Again ");
    logs_are(fx, (struct rv__store_log_query){ .run = rv__str("a"), .attempt = 2 }, "");
    logs_are(fx, (struct rv__store_log_query){ .limit = 2 }, "One Two ");
    logs_are(
        fx,
        (struct rv__store_log_query){ .run = rv__str("a"), .min_level = STORE_INFO, .limit = 1 },
        "Two ");
}

static void log_lines_of_a_node_are_those_of_all_in_it(void **state)
{
    struct fixture *fx = *state;
    const char *paths[] = { "each",  "each:iter1", "each:iter1:node0:s", "each:iter10:node0:s",
                            "each2", NULL };
    begin(fx, "a", "");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct rv__store_log line = {
            .level = STORE_INFO,
            .path = rv__str(paths[i]),
            .message = rv__str(paths[i] != NULL ? paths[i] : "nowhere"),
        };
        commit_one(fx,
                   (struct rv__store_write){ .run = rv__str("a"), .logs = &line, .log_count = 1 });
    }
    logs_are(fx, (struct rv__store_log_query){ .path = rv__str("each") },
             "each each:iter1 each:iter1:node0:s each:iter10:node0:s ");
    logs_are(fx, (struct rv__store_log_query){ .path = rv__str("each:iter1") },
             "each:iter1 each:iter1:node0:s ");
    logs_are(fx, (struct rv__store_log_query){ .path = rv__str("each:iter1:node0:s") },
             "each:iter1:node0:s ");
    logs_are(fx, (struct rv__store_log_query){ .path = rv__str("eac") }, "");
}

static int see_kind(void *arg, const struct rv__store_log *line)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s:%.*s ", RV__ARG(line->message), RV__ARG(line->kind));
    return RV_OK;
}

static void kinds_are(struct fixture *fx, const char *expected)
{
    struct rv__store_log_query query = { .limit = SIZE_MAX };
    assert_int_equal(rv__store_logs(fx->store, &query, see_kind, fx, NULL), RV_OK);
    seen(fx, expected);
}

static struct rv__store_log piece(const char *path, const char *message, const char *kind)
{
    return (struct rv__store_log){ .path = rv__str(path),
                                   .message = rv__str(message),
                                   .kind = rv__str(kind) };
}

static void pieces_go_when_their_answer_is_recorded(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_log lines[] = { piece("ask:turn1", "a1", "stream"),
                                     piece("ask:turn1", "plain", NULL),
                                     piece("ask:turn10", "a10", "stream"),
                                     piece("ask:turn1", "a2", "stream") };
    struct rv__store_log last = piece("ask:turn1", "a3", "stream");
    struct rv__str answered = rv__str("ask:turn1");
    begin(fx, "a", "");
    begin(fx, "b", "");
    commit_one(fx, (struct rv__store_write){ .run = rv__str("a"), .logs = lines, .log_count = 4 });
    commit_one(fx, (struct rv__store_write){ .run = rv__str("b"), .logs = lines, .log_count = 1 });
    kinds_are(fx, "a1:stream plain: a10:stream a2:stream a1:stream ");
    commit_one(fx, (struct rv__store_write){ .run = rv__str("a"),
                                             .facts = rv__str("[1]"),
                                             .logs = &last,
                                             .log_count = 1,
                                             .answered = &answered,
                                             .answered_count = 1 });
    reopen(fx);
    kinds_are(fx, "plain: a10:stream a1:stream ");
}

int store_suite_logs(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(log_lines_are_kept_in_order),
        STORE_CASE(log_lines_are_filtered),
        STORE_CASE(log_lines_of_a_node_are_those_of_all_in_it),
        STORE_CASE(pieces_go_when_their_answer_is_recorded),
    };
    return STORE_GROUP("store: logs", tests);
}
