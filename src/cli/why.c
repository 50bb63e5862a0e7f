/* why.c: `rival why`: what a run waits for. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

enum { NODES = 3, MESSAGE_WIDTH = 400 }; /* nodes named of each group */

static int64_t number(struct rv__str object, const char *key)
{
    struct rv__str value;
    int64_t n = 0;
    if (rv__json_get(object, key, &value))
        (void)rv__json_int(value, &n); /* 0 where it is none */
    return n;
}

static void put_string(struct rv__buf *out, struct rv__str object, const char *key)
{
    struct rv__str value;
    struct rv__buf text;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    if (rv__json_get(object, key, &value))
        rv__text_error(&text, value);
    (void)rv__text_fit(out, rv__buf_view(&text), MESSAGE_WIDTH);
    rv__buf_done(&text);
}

static void print_wait(struct rv__str wait, int64_t now_ms)
{
    char when[RV__WHEN_TEXT], time[RV__DURATION_TEXT];
    struct rv__buf line;
    struct rv__str nodes, node, path;
    struct rv__json_iter it;
    int64_t since = number(wait, "since"), due = number(wait, "dueAt"),
            count = number(wait, "count");
    int named = 0;
    rv__buf_init(&line, 1u << 16);
    put_string(&line, wait, "message");
    if (since != 0)
        rv__buf_fmt(&line, ", for %s", rv__text_duration(now_ms - since, time));
    if (due != 0)
        rv__buf_fmt(&line, ", until %s (in %s)", rv__text_when(due, now_ms, when),
                    rv__text_duration(due - now_ms, time));
    if (rv__json_get(wait, "cause", &node)) {
        rv__buf_text(&line, ": ");
        put_string(&line, wait, "cause");
    }
    printf("%s\n", rv__buf_view(&line).at);
    if (rv__json_get(wait, "nodes", &nodes)) {
        rv__json_iter_init(&it, nodes);
        while (rv__json_next(&it, NULL, &node) && named < NODES) {
            if (!rv__json_get(node, "path", &path) || path.len <= 2)
                continue;
            rv__buf_reset(&line);
            put_string(&line, node, "path");
            printf("  %s%s%s\n", rv__colour(stdout, DIM), rv__buf_view(&line).at,
                   rv__colour(stdout, PLAIN));
            named++;
        }
    }
    if (count > named && named > 0)
        printf("  %s… and %lld more%s\n", rv__colour(stdout, DIM), (long long)(count - named),
               rv__colour(stdout, PLAIN));
    rv__buf_done(&line);
}

static void print_text(struct rv__str why)
{
    struct rv__str waits = { NULL, 0 }, wait, status = { NULL, 0 };
    struct rv__json_iter it;
    (void)rv__json_get(why, "waits", &waits);
    (void)rv__json_get(why, "status", &status);
    if (waits.len == 0 || rv__json_count(waits) == 0) {
        printf("nothing: it is %.*s\n", status.len > 2 ? (int)status.len - 2 : 0,
               status.len > 2 ? status.at + 1 : "");
        return;
    }
    rv__json_iter_init(&it, waits);
    while (rv__json_next(&it, NULL, &wait))
        print_wait(wait, rv__wall_ms(rv__clock_real()));
}

static int show_why(struct rv__look *look)
{
    char *text = NULL;
    struct rv__buf json;
    rv_error err;
    int code = CLI_OK;
    if (rv_why(look->engine, look->run_id, &text, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    if (look->json) {
        rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the engine */
        rv__buf_text(&json, text);
        code = rv__print_json(&json);
        rv__buf_done(&json);
    } else {
        print_text(rv__str(text));
    }
    rv_free(text);
    return code;
}

static int run_why(int argc, char **argv)
{
    struct rv__look look = { .json = false };
    int count = rv__options(&rv__cmd_why, argc, argv, &look);
    return count < 0 ? -count : rv__look_at_run(&look, count, argv, show_why);
}

static const struct rv__option options[] = {
    RV__OPTION_STORE(struct rv__look, store),
    RV__OPTION_JSON(struct rv__look, json, "{\"runId\", \"status\", \"waits\": [...]}"),
    { NULL },
};

const struct rv__command rv__cmd_why = {
    .name = "why",
    .section = SECTION_LOOK,
    .summary = "say what a run waits for",
    .arguments = { { "ID", "which run?", .completes = COMPLETES_RUN } },
    .options = options,
    .paragraphs = { "Everything alive in a run has exactly one reason to wait; those with the same "
                    "one are told together, the oldest first." },
    .examples = { { "rival why order-1" }, { "rival why order-1 --json | jq '.waits[].message'" } },
    .run = run_why,
};
