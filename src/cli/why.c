/* why.c: `rival why`: what a run waits for. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

enum { NODES = 3, MESSAGE_WIDTH = 400, LINE_BYTES = 1 << 16 }; /* nodes listed of each group */

static int64_t number(struct rv__str object, const char *key)
{
    struct rv__str value;
    int64_t n = 0;
    if (rv__json_get(object, key, &value))
        (void)rv__json_int(value, &n); /* 0 if it is not a number */
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

static bool is(struct rv__str wait, const char *reason)
{
    struct rv__str value;
    size_t len = strlen(reason);
    return rv__json_get(wait, "reason", &value) && value.len == len + 2 &&
           memcmp(value.at + 1, reason, len) == 0;
}

/* Print a command for the same store or server. `last`: the last argument, or NULL; `path`: of --path, or NULL. */
static void print_command_at(const struct rv__look *look, const char *command, const char *run_id,
                             const char *last, const char *path)
{
    struct rv__buf line;
    rv__buf_init(&line, LINE_BYTES);
    rv__buf_fmt(&line, "rival %s%s", command, run_id);
    if (last != NULL) {
        rv__buf_text(&line, " ");
        rv__text_shell(&line, last);
    }
    if (path != NULL) {
        rv__buf_text(&line, " --path ");
        rv__text_shell(&line, path);
    }
    rv__where_again(&look->where, &line);
    if (line.rc == RV_OK)
        printf("  %s=> %s%s\n", rv__colour(stdout, DIM), line.text, rv__colour(stdout, PLAIN));
    rv__buf_done(&line);
}

static void print_command(const struct rv__look *look, const char *command, const char *run_id,
                          const char *last)
{
    print_command_at(look, command, run_id, last, NULL);
}

/* A line for each possible decision; with its path if there are several suspensions. */
static void print_decisions(const struct rv__look *look, struct rv__str suspension, bool only_one)
{
    struct rv__str actions, action, path;
    struct rv__json_iter it;
    struct rv__buf word, where;
    rv__buf_init(&word, LINE_BYTES);
    rv__buf_init(&where, LINE_BYTES);
    bool named = !only_one && rv__json_get(suspension, "path", &path);
    if (named)
        rv__text_error(&where, path);
    if (!rv__json_get(suspension, "actions", &actions))
        actions = rv__str("[]");
    rv__json_iter_init(&it, actions);
    while (rv__json_next(&it, NULL, &action)) {
        rv__buf_reset(&word);
        rv__text_error(&word, action);
        print_command_at(look, "decide ", look->run_id, rv__buf_view(&word).at,
                         named ? rv__buf_view(&where).at : NULL);
    }
    rv__buf_done(&word);
    rv__buf_done(&where);
}

static void print_suspensions(const struct rv__look *look)
{
    rv_run_list *row = NULL;
    struct rv__json_iter it;
    struct rv__str one;
    size_t shown = 0;
    if (rv__client_list(look->client, RV_QUERY(.run_id = look->run_id), &row, NULL) < 0)
        return;
    if (row->count == 1 && *row->runs[0].suspensions == '[') {
        size_t count = rv__json_count(rv__str(row->runs[0].suspensions));
        rv__json_iter_init(&it, rv__str(row->runs[0].suspensions));
        while (shown++ < NODES && rv__json_next(&it, NULL, &one))
            print_decisions(look, one, count == 1);
    }
    rv_run_list_free(row);
}

/* Print what the user can do about it. */
static void print_hint(const struct rv__look *look, struct rv__str wait)
{
    struct rv__str name;
    struct rv__buf text;
    rv__buf_init(&text, LINE_BYTES);
    if (is(wait, "signal") && rv__json_get(wait, "name", &name)) {
        rv__text_error(&text, name);
        print_command(look, "signal ", look->run_id, rv__buf_view(&text).at);
    } else if (is(wait, "handle") && rv__json_get(wait, "name", &name)) {
        rv__text_error(&text, name);
        print_command(look, "complete ", look->run_id, rv__buf_view(&text).at);
    } else if (rv__json_get(wait, "secret", &name)) {
        rv__text_error(&text, name);
        printf("  %s=> set %s in the environment of the engine or in its --secrets file, and "
               "restart it%s\n",
               rv__colour(stdout, DIM), rv__buf_view(&text).at, rv__colour(stdout, PLAIN));
    } else if (is(wait, "decision")) {
        print_suspensions(look);
    }
    rv__buf_done(&text);
}

static void print_nodes(struct rv__str wait)
{
    struct rv__str nodes, node, path;
    struct rv__json_iter it;
    struct rv__buf line;
    int64_t count = number(wait, "count"), named = 0;
    if (!rv__json_get(wait, "nodes", &nodes))
        return;
    rv__buf_init(&line, LINE_BYTES);
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
    /* Iterations that have not started are counted at their forEach, which stands for all of them. */
    if (count > named && rv__json_count(nodes) > NODES)
        printf("  %s%s and %lld more%s\n", rv__colour(stdout, DIM),
               rv__text_unicode() ? "…" : "...", (long long)(count - named),
               rv__colour(stdout, PLAIN));
    rv__buf_done(&line);
}

static void print_wait(const struct rv__look *look, struct rv__str wait, int64_t now_ms)
{
    char when[RV__WHEN_TEXT], time[RV__DURATION_TEXT];
    struct rv__buf line;
    struct rv__str cause;
    int64_t since = number(wait, "since"), due = number(wait, "dueAt");
    rv__buf_init(&line, LINE_BYTES);
    put_string(&line, wait, "message");
    if (since != 0)
        rv__buf_fmt(&line, ", for %s", rv__text_duration(now_ms - since, time));
    if (due != 0)
        rv__buf_fmt(&line, ", until %s (in %s)", rv__text_when(due, now_ms, when),
                    rv__text_duration(due - now_ms, time));
    if (rv__json_get(wait, "cause", &cause)) {
        rv__buf_text(&line, ": ");
        put_string(&line, wait, "cause");
    }
    printf("%s\n", rv__buf_view(&line).at);
    rv__buf_done(&line);
    print_nodes(wait);
    print_hint(look, wait);
}

/* Of a failed run: its error, and where to read more. */
static void print_failure(const struct rv__look *look)
{
    rv_run_state *state = NULL;
    struct rv__buf text, line;
    if (rv__client_state(look->client, look->run_id, &state, NULL) < 0 ||
        state->status != RV_FAILED) {
        rv_run_state_free(state);
        return;
    }
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    rv__buf_init(&line, LINE_BYTES);
    rv__text_failed_at(&text, state->failed_path, state->failed_step);
    rv__text_error(&text, rv__str(state->error));
    (void)rv__text_fit(&line, rv__buf_view(&text), MESSAGE_WIDTH);
    printf("  %s\n", rv__buf_view(&line).at);
    print_command(look, "show ", look->run_id, NULL);
    print_command(look, "logs ", look->run_id, NULL);
    rv__buf_done(&text);
    rv__buf_done(&line);
    rv_run_state_free(state);
}

static void print_ended(struct rv__str status)
{
    static const char *const words[] = { "completed", "the run has completed",
                                         "failed",    "the run has failed",
                                         "cancelled", "the run was cancelled" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i += 2)
        if (status.len > 0 && rv__json_string_is(status, rv__str(words[i]))) {
            printf("not waiting: %s\n", words[i + 1]);
            return;
        }
    printf("not waiting: the run is %.*s\n", status.len > 2 ? (int)status.len - 2 : 0,
           status.len > 2 ? status.at + 1 : "");
}

static void print_text(const struct rv__look *look, struct rv__str why)
{
    struct rv__str waits = { NULL, 0 }, wait, status = { NULL, 0 };
    struct rv__json_iter it;
    (void)rv__json_get(why, "waits", &waits);
    (void)rv__json_get(why, "status", &status);
    if (waits.len == 0 || rv__json_count(waits) == 0) {
        print_ended(status);
        print_failure(look);
        return;
    }
    rv__json_iter_init(&it, waits);
    while (rv__json_next(&it, NULL, &wait)) /* each is an object, or prints nothing */
        print_wait(look, wait, rv__wall_ms(rv__clock_real()));
    if (rv__client_drives(look->client, look->run_id))
        return;
    printf("nobody drives it; this run continues when a process does:\n");
    print_command(look, "exec FILE --run-id ", look->run_id, NULL);
    print_command(look, "serve", "", NULL);
}

static int show_why(struct rv__look *look)
{
    char *text = NULL;
    struct rv__buf json;
    rv_error err;
    int code = CLI_OK;
    if (rv__client_why(look->client, look->run_id, &text, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__client_say_refusal(look->client);
    if (look->json) {
        rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the engine */
        rv__buf_text(&json, text);
        code = rv__print_json(&json);
        rv__buf_done(&json);
    } else {
        print_text(look, rv__str(text));
    }
    rv_free(text);
    return code;
}

static int run_why(int argc, char **argv)
{
    struct rv__look look = { .asks = true };
    int count = rv__options(&rv__cmd_why, argc, argv, &look);
    return count < 0 ? -count : rv__look_at_run(&look, count, argv, show_why);
}

static const struct rv__option options[] = {
    RV__OPTIONS_WHERE(struct rv__look, where),
    RV__OPTION_JSON(struct rv__look, json, "{\"runId\", \"status\", \"waits\": [...]}"),
    { NULL },
};

const struct rv__command rv__cmd_why = {
    .name = "why",
    .section = SECTION_LOOK,
    .summary = "say what a run waits for",
    .arguments = { { "ID", "which run?", .completes = COMPLETES_RUN } },
    .options = options,
    .paragraphs = { "Lists what each unfinished node of the run waits for. Nodes with the same "
                    "reason are grouped, oldest first, with the command to type where you can do "
                    "something about it." },
    .examples = { { "rival why order-1" }, { "rival why order-1 --json | jq '.waits[].message'" } },
    .run = run_why,
};
