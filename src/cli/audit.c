/* audit.c: `rival audit`: who did what in a run, and what its agents were given to see, when.
 *
 * All of it is in the run's events and its plan: starts, cancels, signals, decisions and completed handles have
 * `by`; what an attempt of a state sees of the others follows from its scope, what it depends on, and which
 * attempts had settled when it began. What it reads afterwards is an event of its own. */
#include <string.h>

#include "base/arena.h"
#include "base/alloc.h"
#include "base/index.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

enum { QUIET_MS = 500, TEXT_WIDTH = 100000 };

/* The last attempt of a state that has settled, as those see it that depend on it. */
struct settled {
    struct rv__index_entry entry;
    const char *path;
    const char *attachment;
};

/* A state of the plan: slices of its text, names with their quotes. */
struct state {
    struct rv__index_entry entry;
    struct rv__str stage, alias, json;
};

struct audit {
    struct rv__look look;
    struct rv__arena arena;
    struct rv__index states; /* by stage and name */
    /* By path: the last attempt that has settled, and the last that has begun. */
    struct rv__index settled, begun;
    struct rv__buf out; /* the entries as JSON, comma-separated */
    size_t count;
};

static struct rv__str member(struct rv__str object, const char *key)
{
    struct rv__str value;
    return object.len > 0 && rv__json_type(object) == RV__JSON_OBJECT &&
                   rv__json_get(object, key, &value)
               ? value
               : (struct rv__str){ NULL, 0 };
}

static const char *text_of(struct audit *a, struct rv__str json)
{
    struct rv__str text;
    if (json.len == 0 || rv__json_type(json) != RV__JSON_STRING ||
        rv__json_string(json, &a->arena, &text) < 0 || rv__str_copy(&a->arena, text, &text) < 0)
        return "";
    return text.at;
}

static uint64_t hash_of(struct rv__str stage, struct rv__str alias)
{
    return rv__str_hash(rv__str_hash(RV__HASH_START, stage), alias);
}

static void add_states(struct audit *a, struct rv__str stage)
{
    struct rv__json_iter it;
    struct rv__str one, states = member(stage, "states");
    if (states.len == 0 || rv__json_type(states) != RV__JSON_ARRAY)
        return;
    rv__json_iter_init(&it, states);
    while (rv__json_next(&it, NULL, &one)) {
        struct state *state = rv__arena_zalloc(&a->arena, 1, sizeof *state);
        if (state == NULL)
            return; /* what it saw is not told then */
        state->stage = member(stage, "alias");
        state->alias = member(one, "alias");
        state->json = one;
        (void)rv__index_add(&a->states, &state->entry, hash_of(state->stage, state->alias));
    }
}

/* All states of the plan, wherever they stand in it. Recursion follows the plan, which is not deep. */
static void find_states(struct audit *a, struct rv__str node)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    bool object = rv__json_type(node) == RV__JSON_OBJECT;
    if (!object && rv__json_type(node) != RV__JSON_ARRAY)
        return;
    if (object && rv__str_is(member(node, "type"), "\"stage\""))
        add_states(a, node);
    rv__json_iter_init(&it, node);
    while (rv__json_next(&it, object ? &key : NULL, &value))
        find_states(a, value);
}

static struct rv__str find_state(const struct audit *a, struct rv__str stage, struct rv__str alias)
{
    const struct rv__index_entry *e = rv__index_first(&a->states, hash_of(stage, alias));
    for (; e != NULL; e = rv__index_next(e)) {
        const struct state *state = RV__CONTAINER(e, struct state, entry);
        if (rv__str_eq(state->stage, stage) && rv__str_eq(state->alias, alias))
            return state->json;
    }
    return (struct rv__str){ NULL, 0 };
}

static struct settled *find_settled(const struct rv__index *index, struct rv__str path)
{
    struct rv__index_entry *e = rv__index_first(index, rv__str_hash(RV__HASH_START, path));
    while (e != NULL && !rv__str_is(path, RV__CONTAINER(e, struct settled, entry)->path))
        e = rv__index_next(e);
    return e != NULL ? RV__CONTAINER(e, struct settled, entry) : NULL;
}

static void settle(struct audit *a, struct rv__index *index, const char *path,
                   const char *attachment)
{
    struct settled *one = find_settled(index, rv__str(path));
    if (one == NULL) {
        struct rv__str copy;
        one = rv__arena_zalloc(&a->arena, 1, sizeof *one);
        if (one == NULL || rv__str_copy(&a->arena, rv__str(path), &copy) < 0)
            return;
        one->path = copy.at;
        (void)rv__index_add(index, &one->entry, rv__str_hash(RV__HASH_START, copy));
    }
    one->attachment = attachment;
}

/* The attachment that stood for this state, seen from the state at `path`. */
static const char *seen_of(struct audit *a, const char *path, const char *stage, const char *state)
{
    struct rv__buf want;
    const char *end = strrchr(path, ':');
    size_t around = end != NULL ? (size_t)(end - path) : 0;
    rv__buf_init(&want, SIZE_MAX / 8);
    if (*stage != '\0') { /* another stage of the same sequence */
        while (around > 0 && path[around - 1] != ':')
            around--;
        rv__buf_add(&want, path, around);
        rv__buf_text(&want, stage);
    } else {
        rv__buf_add(&want, path, around);
    }
    rv__buf_fmt(&want, ":%s", state);
    const struct settled *one = find_settled(&a->settled, rv__buf_view(&want));
    rv__buf_done(&want);
    return one != NULL ? one->attachment : NULL;
}

/* ,"scope":…,"saw":{param: attachment id, …}: what an attempt was given with its start. */
static void put_seen(struct audit *a, const rv_event *event, struct rv__str json)
{
    struct rv__str state = find_state(a, member(json, "stage"), member(json, "state"));
    struct rv__str access = member(state, "access"), depends = member(state, "dependsOn");
    struct rv__str key, value;
    struct rv__json_iter it;
    bool shown = access.len == 0 || rv__str_is(access, "\"all\"") ||
                 rv__str_is(access, "\"explicit\"");
    bool first = true;
    rv__buf_text(&a->out, ",\"scope\":");
    rv__buf_str(&a->out, access.len > 0 ? access : rv__str("\"all\""));
    rv__buf_text(&a->out, ",\"saw\":{");
    if (shown && depends.len > 0 && rv__json_type(depends) == RV__JSON_OBJECT) {
        rv__json_iter_init(&it, depends);
        while (rv__json_next(&it, &key, &value)) {
            const char *id = seen_of(a, event->path, text_of(a, member(value, "stage")),
                                     text_of(a, member(value, "state")));
            rv__buf_text(&a->out, first ? "" : ",");
            first = false;
            rv__buf_str(&a->out, key);
            rv__buf_char(&a->out, ':');
            if (id != NULL)
                rv__buf_json_str(&a->out, rv__str(id));
            else
                rv__buf_text(&a->out, "null");
        }
    }
    rv__buf_char(&a->out, '}');
}

static void put_member(struct audit *a, const char *key, struct rv__str value)
{
    if (value.len == 0)
        return;
    rv__buf_fmt(&a->out, ",\"%s\":", key);
    rv__buf_str(&a->out, value);
}

static void begin(struct audit *a, const rv_event *event, const char *action, struct rv__str by)
{
    rv__buf_fmt(&a->out, "%s{\"at\":%lld,\"action\":\"%s\"", a->count++ > 0 ? "," : "",
                (long long)event->at, action);
    put_member(a, "by", by);
    if (event->path[0] != '\0') {
        rv__buf_text(&a->out, ",\"path\":");
        rv__buf_json_str(&a->out, rv__str(event->path));
    }
}

/* What an attempt has read since it began; by the attempt of the innermost state around it. */
static void put_read(struct audit *a, const rv_event *event, struct rv__str json)
{
    struct rv__str path = rv__str(event->path);
    const struct settled *of = find_settled(&a->begun, path);
    while (of == NULL && path.len > 0) {
        while (path.len > 0 && path.at[--path.len] != ':')
            ;
        of = find_settled(&a->begun, path);
    }
    begin(a, event, "read", (struct rv__str){ NULL, 0 });
    if (of != NULL) {
        rv__buf_text(&a->out, ",\"by\":");
        rv__buf_json_str(&a->out, rv__str(of->attachment));
    }
    put_member(a, "what", member(json, "what"));
    put_member(a, "through", member(json, "through"));
    rv__buf_char(&a->out, '}');
}

static void hear(struct audit *a, const rv_event *event)
{
    static const struct {
        const char *kind, *action;
    } acts[] = { { "run.started", "start" },       { "run.cancelling", "cancel" },
                 { "run.cancelled", "cancel" },    { "run.resumed", "decide" },
                 { "run.aborted", "decide" },      { "signal.received", "signal" },
                 { "step.completed", "complete" }, { "step.failed", "complete" },
                 { "step.retrying", "complete" } };
    struct rv__str json = rv__str(event->json), by = member(json, "by");
    const char *action = NULL;
    for (size_t i = 0; i < sizeof acts / sizeof *acts && action == NULL; i++)
        if (strcmp(event->kind, acts[i].kind) == 0)
            action = acts[i].action;
    bool step = strncmp(event->kind, "step.", 5) == 0;
    if (action != NULL && (!step || by.len > 0)) { /* a step has it if somebody completed it */
        begin(a, event, action, by);
        put_member(a, "decision",
                   strcmp(event->kind, "run.aborted") == 0 ? rv__str("\"abort\"")
                                                           : member(json, "decision"));
        put_member(a, "reason", member(json, "reason"));
        put_member(a, "name", member(json, "name"));
        rv__buf_char(&a->out, '}');
    } else if (strcmp(event->kind, "state.started") == 0) {
        begin(a, event, "see", member(json, "attachmentId"));
        put_seen(a, event, json);
        rv__buf_char(&a->out, '}');
        settle(a, &a->begun, event->path, text_of(a, member(json, "attachmentId")));
    } else if (strcmp(event->kind, "step.read") == 0) {
        put_read(a, event, json);
    } else if (strcmp(event->kind, "state.ended") == 0 &&
               !rv__str_is(member(json, "next"), "\"retry\"") &&
               !rv__str_is(member(json, "next"), "\"redirect\"")) {
        settle(a, &a->settled, event->path, text_of(a, member(json, "attachmentId")));
    }
}

/* All that has happened so far. */
static int gather(struct audit *a, rv_error *err)
{
    struct rv__follow *follow = NULL;
    rv_event event;
    int rc = rv__follow_open(
        a->look.client,
        RV_FEED_OPTS(.run_id = a->look.run_id, .from = RV_FROM_OLDEST, .no_logs = true), &follow,
        err);
    while (rc == RV_OK && (rc = rv__follow_next(follow, QUIET_MS, NULL, &event, err)) == RV_OK) {
        hear(a, &event);
        bool over = strcmp(event.kind, "run.completed") == 0 ||
                    strcmp(event.kind, "run.failed") == 0 ||
                    strcmp(event.kind, "run.cancelled") == 0;
        if (over) /* what is detached from it may go on: as long as there is more at hand */
            while ((rc = rv__follow_next(follow, 0, NULL, &event, err)) == RV_OK)
                hear(a, &event);
        if (over)
            break;
    }
    rv__follow_close(follow);
    return rc == RV_ETIMEDOUT ? RV_OK : rc;
}

static void print_saw(struct rv__str saw, struct rv__buf *line)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    if (saw.len == 0 || rv__json_type(saw) != RV__JSON_OBJECT)
        return;
    rv__json_iter_init(&it, saw);
    while (rv__json_next(&it, &key, &value)) {
        rv__buf_text(line, "  ");
        (void)rv__text_fit(line, (struct rv__str){ key.at + 1, key.len - 2 }, TEXT_WIDTH);
        rv__buf_text(line, "=");
        (void)rv__text_fit(line, value, TEXT_WIDTH);
    }
}

static void print_entry(struct audit *a, struct rv__str one)
{
    char clock[RV__WHEN_TEXT];
    int64_t at = 0;
    struct rv__buf line;
    const char *action = text_of(a, member(one, "action")), *by = text_of(a, member(one, "by"));
    static const char *const details[] = { "decision", "name", "path", "scope", "what", "through" };
    if (member(one, "at").len > 0)
        (void)rv__json_int(member(one, "at"), &at);
    rv__buf_init(&line, SIZE_MAX / 8);
    (void)rv__text_fit(&line, rv__str(*by != '\0' ? by : "(nobody named)"), TEXT_WIDTH);
    rv__buf_fmt(&line, "  %s%s%s", rv__colour(stdout, BOLD), action, rv__colour(stdout, PLAIN));
    for (size_t i = 0; i < sizeof details / sizeof *details; i++) {
        const char *text = text_of(a, member(one, details[i]));
        if (*text == '\0')
            continue;
        rv__buf_text(&line, "  ");
        (void)rv__text_fit(&line, rv__str(text), TEXT_WIDTH);
    }
    print_saw(member(one, "saw"), &line);
    printf("%s%s%s  %s\n", rv__colour(stdout, DIM), rv__text_clock(at, true, clock),
           rv__colour(stdout, PLAIN), rv__buf_view(&line).at);
    rv__buf_done(&line);
}

static int print(struct audit *a)
{
    struct rv__buf all;
    struct rv__json_iter it;
    struct rv__str one, entries;
    int code = CLI_OK;
    rv__buf_init(&all, SIZE_MAX / 8); /* bounded by the run */
    rv__buf_fmt(&all, "{\"runId\":\"%s\",\"entries\":[", a->look.run_id);
    rv__buf_str(&all, rv__buf_view(&a->out));
    rv__buf_text(&all, "]}");
    if (all.rc < 0 || a->out.rc < 0) {
        code = rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    } else if (a->look.json) {
        code = rv__print_json(&all);
    } else if (rv__json_get(rv__buf_view(&all), "entries", &entries)) {
        rv__json_iter_init(&it, entries);
        while (rv__json_next(&it, NULL, &one))
            print_entry(a, one);
    }
    rv__buf_done(&all);
    return code;
}

static int show(struct rv__look *look)
{
    struct audit *a = look->arg;
    char *plan = NULL;
    rv_error err;
    int rc = rv__client_plan(look->client, look->run_id, &plan, &err);
    rv__arena_init(&a->arena, SIZE_MAX); /* bounded by the run */
    rv__buf_init(&a->out, SIZE_MAX / 8); /* the same */
    if (rc == RV_OK) {
        find_states(a, rv__str(plan));
        rc = gather(a, &err);
    }
    int code = rc == RV_OK ? print(a) : rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__buf_done(&a->out);
    rv__index_done(&a->states);
    rv__index_done(&a->settled);
    rv__index_done(&a->begun);
    rv__arena_done(&a->arena);
    rv_free(plan);
    return code;
}

static int run_audit(int argc, char **argv)
{
    struct audit a = { .count = 0 };
    int count = rv__options(&rv__cmd_audit, argc, argv, &a);
    a.look.arg = &a;
    return count < 0 ? -count : rv__look_at_run(&a.look, count, argv, show);
}

static const struct rv__option options[] = {
    RV__OPTIONS_WHERE(struct audit, look.where),
    RV__OPTION_JSON(struct audit, look.json, "{\"runId\", \"entries\": [...]}"),
    { NULL },
};

const struct rv__command rv__cmd_audit = {
    .name = "audit",
    .section = SECTION_LOOK,
    .summary = "show who did what in a run, and what its agents saw",
    .arguments = { { "ID", "of which run?", .completes = COMPLETES_RUN } },
    .options = options,
    .paragraphs = { "Starts, cancels, signals, decisions and completed handles, with the name of "
                    "the token or the user; and each attempt of a state (`see`), with its scope "
                    "and the attachments that it got as inputs; and what it read of its run "
                    "later (`read`): logs, attachments, results of other nodes." },
    .examples = { { "rival audit review-1" },
                  { "rival audit review-1 --json | jq '.entries[] | select(.action == "
                    "\"see\")'" } },
    .run = run_audit,
};
