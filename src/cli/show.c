/* show.c: `rival show`: a run, and its nodes with their status. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"
#include "cli/outline.h"

enum { PAGE = 500, PIPE_WIDTH = 200, DEPTH_MAX = 200 };
static const size_t json_bytes = (size_t)1 << 31; /* of `show --json`, whatever a server answers */

/* ------------------------------------------------------------------------------------ JSON --- */

/* The nodes of a run, as nested lists. */
struct walk {
    struct rv__look *look;
    size_t walked;
    struct rv__buf *out;
};

static int put_nodes(struct walk *walk, const char *parent, int depth, rv_error *err);

static int put_node(struct walk *walk, const rv_node *node, int depth, rv_error *err)
{
    rv__put_node(walk->out, node);
    int rc = RV_OK;
    if (node->children > 0 && depth < DEPTH_MAX) {
        rv__buf_text(walk->out, ",\"nodes\":");
        rc = put_nodes(walk, node->path, depth + 1, err);
    }
    rv__buf_char(walk->out, '}');
    return rc;
}

static int put_nodes(struct walk *walk, const char *parent, int depth, rv_error *err)
{
    struct rv__look *look = walk->look;
    size_t offset = 0, total = 1;
    int rc = RV_OK;
    rv__buf_char(walk->out, '[');
    while (offset < total && rc == RV_OK) {
        rv_node_list *list = NULL;
        rc = rv__client_nodes(look->client, look->run_id, parent, offset, PAGE, &walk->walked,
                              &list, err);
        if (rc < 0)
            break;
        total = list->count > 0 ? list->total : 0;
        for (size_t i = 0; i < list->count && rc == RV_OK; i++) {
            if (offset + i > 0)
                rv__buf_char(walk->out, ',');
            rc = put_node(walk, &list->nodes[i], depth, err);
        }
        offset += list->count;
        rv_node_list_free(list);
        if (rc == RV_OK)
            rc = rv__buf_err(walk->out, err);
    }
    rv__buf_char(walk->out, ']');
    return rc;
}

static int put_acts(struct rv__look *look, struct rv__buf *out, rv_error *err)
{
    struct rv__buf acts;
    rv__buf_init(&acts, SIZE_MAX / 8); /* bounded by the run */
    int rc = rv__client_acts(look->client, look->run_id, &acts, err);
    rv__buf_text(out, ",\"acts\":[");
    rv__buf_str(out, rv__buf_view(&acts));
    rv__buf_char(out, ']');
    rv__buf_done(&acts);
    return rc;
}

static int show_json(struct rv__look *look, const rv_run_state *state)
{
    struct rv__buf out;
    struct walk walk = { .look = look, .out = &out };
    rv_error err;
    rv__buf_init(&out, json_bytes);
    rv__put_run(&out, state);
    rv__put_json(&out, "input", *state->input != '\0' ? state->input : "null");
    rv__put_results(&out, state);
    int rc = put_acts(look, &out, &err);
    rv__buf_text(&out, ",\"nodes\":");
    if (rc == RV_OK)
        rc = put_nodes(&walk, "", 0, &err);
    rv__buf_char(&out, '}');
    int code = rc == RV_OK ? rv__print_json(&out) : rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__buf_done(&out);
    return code;
}

/* ------------------------------------------------------------------------------------ text --- */

static void print_field(const char *name, struct rv__str text, int width)
{
    struct rv__buf line;
    if (text.len == 0)
        return;
    rv__buf_init(&line, 1u << 16);
    (void)rv__text_fit(&line, text, width - 11);
    printf("%s%-10s%s %s\n", rv__colour(stdout, DIM), name, rv__colour(stdout, PLAIN),
           rv__buf_view(&line).at);
    rv__buf_done(&line);
}

static void print_error(const char *name, const char *json, int width)
{
    struct rv__buf text;
    if (*json == '\0')
        return;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    rv__text_error(&text, rv__str(json));
    print_field(name, rv__buf_view(&text), width);
    rv__buf_done(&text);
}

/* What a person did, by the kind of an event with `by`; any other kind means that a handle was completed. */
static const struct {
    const char *kind, *did;
} deeds[] = { { "run.cancelling", "cancelled" },
              { "run.cancelled", "cancelled" },
              { "run.resumed", "decided" },
              { "run.aborted", "decided" },
              { "signal.received", "signalled" } };

static struct rv__str member(struct rv__str object, const char *key)
{
    struct rv__str value = { NULL, 0 };
    (void)rv__json_get(object, key, &value);
    return value;
}

static bool is_start(struct rv__str event)
{
    return rv__json_string_is(member(event, "kind"), rv__str("run.started"));
}

/* Append `before` and the text of a member, if it exists. */
static void put_part(struct rv__buf *line, const char *before, struct rv__str json)
{
    if (json.len == 0)
        return;
    rv__buf_text(line, before);
    rv__text_error(line, json); /* the text of a string; of an error its message */
}

static void print_act(struct rv__str event, int64_t now_ms, int width)
{
    char when[RV__WHEN_TEXT];
    struct rv__buf line;
    const char *did = "completed";
    int64_t at_ms = 0;
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        if (rv__json_string_is(member(event, "kind"), rv__str(deeds[i].kind)))
            did = deeds[i].did;
    if (member(event, "at").len > 0)
        (void)rv__json_int(member(event, "at"), &at_ms);
    rv__buf_init(&line, RV__JSON_MAX_BYTES);
    put_part(&line, "by ", member(event, "by"));
    rv__buf_fmt(&line, ", %s", rv__text_when(at_ms, now_ms, when));
    if (rv__json_string_is(member(event, "kind"), rv__str("run.aborted")))
        rv__buf_text(&line, ": abort");
    put_part(&line, ": ", member(event, "decision"));
    put_part(&line, ": ", member(event, "name"));
    put_part(&line, " ", member(event, "path"));
    put_part(&line, ", ", member(event, "reason"));
    print_field(did, rv__buf_view(&line), width);
    rv__buf_done(&line);
}

enum { ACTS_MOST = 20 }; /* printed; `audit` has all */

static void print_acts(struct rv__str acts, int width)
{
    struct rv__json_iter it;
    struct rv__str event;
    size_t count = rv__json_count(acts), i = 0;
    int64_t now_ms = rv__wall_ms(rv__clock_real());
    if (count > ACTS_MOST)
        print_field("audit", rv__str("somebody did more than these: see rival audit"), width);
    rv__json_iter_init(&it, acts);
    while (rv__json_next(&it, NULL, &event))
        if (i++ + ACTS_MOST >= count && !is_start(event))
            print_act(event, now_ms, width);
}

/* Add who started the run to the line of its start. */
static void put_starter(struct rv__buf *line, struct rv__str acts)
{
    struct rv__json_iter it;
    struct rv__str event;
    rv__json_iter_init(&it, acts);
    if (rv__json_next(&it, NULL, &event) && is_start(event))
        put_part(line, ", by ", member(event, "by"));
}

static void print_head(const rv_run_state *state, struct rv__str acts, bool alone, int width)
{
    char when[RV__WHEN_TEXT], time[RV__DURATION_TEXT];
    struct rv__buf line;
    int64_t now_ms = rv__wall_ms(rv__clock_real());
    const char *status = rv_status_name(state->status);
    int64_t ms = state->completed_at != 0 ? state->duration_ms : now_ms - state->started_at;
    printf("%s%s%s  %s  %s%s%s%s\n", rv__colour(stdout, BOLD), state->workflow,
           rv__colour(stdout, PLAIN), state->run_id, rv__colour(stdout, rv__status_colour(status)),
           status, rv__colour(stdout, PLAIN), alone ? "  (nobody drives it)" : "");
    rv__buf_init(&line, RV__JSON_MAX_BYTES);
    rv__buf_fmt(&line, "%s, %s %s", rv__text_when(state->started_at, now_ms, when),
                state->completed_at != 0 ? "took" : "for", rv__text_duration(ms, time));
    put_starter(&line, acts);
    print_field("started", rv__buf_view(&line), width);
    rv__buf_done(&line);
    if (strcmp(state->input, "null") != 0)
        print_field("input", rv__str(state->input), width);
    print_field("failed at", rv__str(state->failed_path), width);
    print_error("error", state->error, width);
    print_error("suspended", state->suspension, width);
    print_acts(acts, width);
    printf("\n");
}

/* No process drives the run, so it does not continue. */
static bool is_left_alone(const struct rv__look *look, const rv_run_state *state)
{
    return state->status == RV_RUNNING && !rv__client_drives(look->client, state->run_id);
}

static int show_text(struct rv__look *look, const rv_run_state *state)
{
    struct rv__outline tree;
    struct rv__buf acts;
    rv_error err;
    int width = rv__terminal_is(stdout) ? rv__terminal_size(stdout).columns : PIPE_WIDTH;
    struct rv__row_style style = {
        .to = stdout, .width = width - 1, .unicode = rv__text_unicode(), .words = true
    };
    rv__buf_init(&acts, SIZE_MAX / 8); /* bounded by the run */
    rv__outline_init(&tree, look->client, look->run_id, false);
    int rc = rv__outline_read(&tree, &err);
    rv__buf_char(&acts, '[');
    if (rc == RV_OK)
        rc = rv__client_acts(look->client, look->run_id, &acts, &err);
    rv__buf_char(&acts, ']');
    if (rc == RV_OK)
        rc = rv__buf_err(&acts, &err);
    if (rc == RV_OK) {
        print_head(state, rv__buf_view(&acts), is_left_alone(look, state), width);
        style.name_width = rv__outline_name_width(&tree, style.width);
    }
    for (size_t i = 0; i < tree.count && rc == RV_OK; i++) {
        struct rv__buf line;
        rv__buf_init(&line, 1u << 16);
        rv__row_write(&tree.rows[i], &style, &line);
        printf("%s\n", rv__buf_view(&line).at);
        rv__buf_done(&line);
    }
    rv__outline_done(&tree);
    rv__buf_done(&acts);
    return rc == RV_OK ? CLI_OK : rv__cli_fail(CLI_FAILED, err.message, NULL);
}

static int show(struct rv__look *look)
{
    rv_run_state *state = NULL;
    rv_error err;
    if (rv__client_state(look->client, look->run_id, &state, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__client_say_refusal(look->client);
    int code = look->json ? show_json(look, state) : show_text(look, state);
    rv_run_state_free(state);
    return code;
}

static int run_show(int argc, char **argv)
{
    struct rv__look look = { .asks = true };
    int count = rv__options(&rv__cmd_show, argc, argv, &look);
    return count < 0 ? -count : rv__look_at_run(&look, count, argv, show);
}

static const struct rv__option options[] = {
    RV__OPTIONS_WHERE(struct rv__look, where),
    RV__OPTION_JSON(struct rv__look, json, "everything, as nested JSON"),
    { NULL },
};

const struct rv__command rv__cmd_show = {
    .name = "show",
    .section = SECTION_LOOK,
    .summary = "show the nodes of a run, with status, time and attempts",
    .arguments = { { "ID", "which run?", .completes = COMPLETES_RUN } },
    .options = options,
    .paragraphs = { "Also works while another process drives the run. Many successful iterations "
                    "are counted instead of listed." },
    .examples = { { "rival show order-1" },
                  { "rival show order-1 --json | jq '.nodes[] | {alias, status, duration}'" } },
    .run = run_show,
};
