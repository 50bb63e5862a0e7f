/* why.c: `rival why`: what a run waits for. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

enum {
    NODES = 3, /* nodes listed of each group */
    CONTINUED =
        4, /* indentation of what does not fit into the first line: more than that of nodes */
    MESSAGE_WIDTH = 400,
    LINE_BYTES = 1 << 16
};

static bool is(const struct rv__wait_told *wait, const char *reason)
{
    return strcmp(wait->reason, reason) == 0;
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

static void print_more(int64_t count)
{
    if (count > 0)
        printf("  %s%s and %lld more%s\n", rv__colour(stdout, DIM),
               rv__text_unicode() ? "…" : "...", (long long)count, rv__colour(stdout, PLAIN));
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
        for (; shown < NODES && rv__json_next(&it, NULL, &one); shown++)
            print_decisions(look, one, count == 1);
        print_more((int64_t)(count - shown));
    }
    rv_run_list_free(row);
}

/* A line for each name among the first nodes: each question of a forEach has its own signal. */
static void print_names(const struct rv__look *look, const struct rv__wait_told *wait,
                        const char *command)
{
    size_t shown = 0;
    if (*wait->name != '\0')
        print_command(look, command, look->run_id, wait->name);
    for (size_t i = 0; i < wait->node_count && shown < NODES - 1; i++) {
        const char *name = wait->nodes[i].name;
        bool known = *name == '\0' || strcmp(name, wait->name) == 0;
        for (size_t k = 0; k < i && !known; k++)
            known = strcmp(name, wait->nodes[k].name) == 0;
        if (known)
            continue;
        print_command(look, command, look->run_id, name);
        shown++;
    }
}

/* Print what the user can do about it. */
static void print_hint(const struct rv__look *look, const struct rv__wait_told *wait)
{
    if (is(wait, "signal"))
        print_names(look, wait, "signal ");
    else if (is(wait, "handle"))
        print_names(look, wait, "complete ");
    else if (*wait->secret != '\0')
        printf("  %s=> set %s in the environment of the engine or in its --secrets file, and "
               "restart it%s\n",
               rv__colour(stdout, DIM), wait->secret, rv__colour(stdout, PLAIN));
    else if (is(wait, "decision"))
        print_suspensions(look);
}

static void print_nodes(const struct rv__wait_told *wait)
{
    struct rv__buf line;
    int64_t named = 0;
    rv__buf_init(&line, LINE_BYTES);
    for (size_t i = 0; i < wait->node_count && named < NODES; i++) {
        if (*wait->nodes[i].path == '\0')
            continue;
        rv__buf_reset(&line);
        (void)rv__text_fit(&line, rv__str(wait->nodes[i].path), MESSAGE_WIDTH);
        printf("  %s%s%s\n", rv__colour(stdout, DIM), rv__buf_view(&line).at,
               rv__colour(stdout, PLAIN));
        named++;
    }
    /* Iterations that have not started are counted at their forEach, which stands for all of them. */
    if (wait->node_count > NODES)
        print_more(wait->count - named);
    rv__buf_done(&line);
}

static void print_wait(const struct rv__look *look, const struct rv__wait_told *wait,
                       int64_t now_ms)
{
    char when[RV__WHEN_TEXT], time[RV__DURATION_TEXT];
    struct rv__buf line, cause;
    rv__buf_init(&line, LINE_BYTES);
    rv__buf_init(&cause, RV__JSON_MAX_BYTES);
    (void)rv__text_fit(&line, rv__str(wait->message), MESSAGE_WIDTH);
    if (wait->since != 0)
        rv__buf_fmt(&line, ", for %s", rv__text_duration(now_ms - wait->since, time));
    if (wait->due_at != 0)
        rv__buf_fmt(&line, ", until %s (in %s)", rv__text_when(wait->due_at, now_ms, when),
                    rv__text_duration(wait->due_at - now_ms, time));
    if (*wait->cause != '\0') {
        rv__text_error(&cause, rv__str(wait->cause));
        rv__buf_text(&line, ": ");
        (void)rv__text_fit(&line, rv__buf_view(&cause), MESSAGE_WIDTH);
    }
    if (rv__terminal_is(stdout))
        rv__print_wrapped(stdout, rv__buf_view(&line).at, 0, CONTINUED);
    else
        printf("%s\n", rv__buf_view(&line).at);
    rv__buf_done(&line);
    rv__buf_done(&cause);
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

static void print_ended(const char *status)
{
    static const char *const words[] = { "completed", "the run has completed",
                                         "failed",    "the run has failed",
                                         "cancelled", "the run was cancelled" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i += 2)
        if (strcmp(status, words[i]) == 0) {
            printf("not waiting: %s\n", words[i + 1]);
            return;
        }
    printf("not waiting: the run is %s\n", status);
}

static void print_text(const struct rv__look *look, const struct rv__why_told *why)
{
    if (why->count == 0) {
        print_ended(why->status);
        print_failure(look);
        return;
    }
    for (size_t i = 0; i < why->count; i++)
        print_wait(look, &why->waits[i], rv__wall_ms(rv__clock_real()));
    if (why->others > 0)
        printf("and %lld other nodes wait\n", (long long)why->others);
    if (rv__client_drives(look->client, look->run_id))
        return;
    printf("nobody drives it; this run continues when a process does:\n");
    print_command(look, "exec FILE --run-id ", look->run_id, NULL);
    print_command(look, "serve", "", NULL);
}

static int print_json(const struct rv__look *look)
{
    char *text = NULL;
    struct rv__buf json;
    rv_error err;
    if (rv__client_why_json(look->client, look->run_id, &text, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__client_say_refusal(look->client);
    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the engine */
    rv__buf_text(&json, text);
    rv_free(text);
    int code = rv__print_json(&json);
    rv__buf_done(&json);
    return code;
}

static int show_why(struct rv__look *look)
{
    struct rv__why_told *why = NULL;
    rv_error err;
    if (look->json)
        return print_json(look);
    if (rv__client_why(look->client, look->run_id, &why, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__client_say_refusal(look->client);
    print_text(look, why);
    rv_free(why);
    return CLI_OK;
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
