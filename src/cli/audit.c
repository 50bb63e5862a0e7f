/* audit.c: `rival audit`: who did what in a run, what its agents were given to see, when, and what was said in its
 * chats: what the model was asked (`ask`), what it answered and which tools it called (`answer`), and what these
 * said (`call`).
 *
 * All of it is in the run's events and its plan: starts, cancels, signals, decisions and completed handles have
 * `by`; what an attempt of a state sees of the others follows from its scope, what it depends on, and which
 * attempts had settled when it began. What it reads afterwards is an event of its own. */
#include <limits.h>
#include <string.h>

#include "base/arena.h"
#include "base/alloc.h"
#include "base/index.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

enum { TEXT_WIDTH = 100000 };

/* The last attempt of a state that has settled, as those see it that depend on it. */
struct settled {
    struct rv__index_entry entry;
    const char *path;
    const char *attachment;
};

/* The last result in a call of a chat that is a workflow: what the model is told, if the call ends well. */
struct called {
    struct rv__index_entry entry;
    struct rv__str path, result;
    struct rv__str last; /* path of the node that ended last */
};

/* An event, as `hear` takes it apart. */
struct event {
    struct rv__str json;
    const char *kind, *path;
    int64_t at;
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
    struct rv__index calls; /* of chats, by path */
    struct rv__buf out;     /* the entries as JSON, comma-separated */
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
static void put_seen(struct audit *a, const struct event *event, struct rv__str json)
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

static void begin(struct audit *a, const struct event *event, const char *action, struct rv__str by)
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
static void put_read(struct audit *a, const struct event *event, struct rv__str json)
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

static void hear_event(struct audit *a, const struct event *event)
{
    static const struct {
        const char *kind, *action;
    } acts[] = { { "run.started", "start" },       { "run.cancelling", "cancel" },
                 { "run.cancelled", "cancel" },    { "run.resumed", "decide" },
                 { "run.aborted", "decide" },      { "signal.received", "signal" },
                 { "step.completed", "complete" }, { "step.failed", "complete" },
                 { "step.retrying", "complete" } };
    struct rv__str json = event->json, by = member(json, "by");
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
        put_member(a, "payload", member(json, "payload"));
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

/* ------------------------------------------------------------------------------------ chats --- */

/* Does the path end in `:wordN` (a turn), or have `:wordN:tool` as its last parts (a call)? */
static bool ends_in(struct rv__str path, const char *word)
{
    size_t at = path.len, len = strlen(word);
    while (at > 0 && path.at[at - 1] >= '0' && path.at[at - 1] <= '9')
        at--;
    return at < path.len && at > len && memcmp(path.at + at - len, word, len) == 0;
}

/* The path up to its last part; none: it has one part. */
static struct rv__str around(struct rv__str path)
{
    while (path.len > 0 && path.at[--path.len] != ':')
        ;
    return path;
}

static bool is_turn(struct rv__str path)
{
    return ends_in(path, ":turn");
}

static bool is_call(struct rv__str path)
{
    struct rv__str number = around(path);
    return ends_in(number, ":call") && is_turn(around(number));
}

/* What the model was asked (recorded with the first request; of one that has only just begun nothing is told), or why
 * it has not answered. A step that is not a request to a model has no provider. */
static void put_request(struct audit *a, const struct event *event, bool failed)
{
    static const char *const keys[] = { "provider", "model", "system", "prompt", "attached" };
    struct rv__buf given;
    rv_error err;
    rv__buf_init(&given, SIZE_MAX / 8); /* bounded by what is recorded */
    int rc = rv__client_given(a->look.client, a->look.run_id, event->path, &given, &err);
    struct rv__str json = rv__buf_view(&given);
    if (rc == RV_OK && member(json, "provider").len > 0) {
        begin(a, event, failed ? "answer" : "ask", (struct rv__str){ NULL, 0 });
        for (size_t i = 0; i < sizeof keys / sizeof *keys && !failed; i++)
            put_member(a, keys[i], member(json, keys[i]));
        put_member(a, "error", member(event->json, "error"));
        rv__buf_char(&a->out, '}');
    }
    rv__buf_done(&given);
}

static void put_answer(struct audit *a, const struct event *event)
{
    static const char *const keys[] = { "model", "usage", "finishReason", "calls", "invalid" };
    struct rv__str state = member(event->json, "state");
    if (member(state, "usage").len == 0)
        return; /* a step that is called as a turn is */
    begin(a, event, "answer", (struct rv__str){ NULL, 0 });
    put_member(a, "text", member(event->json, "result"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        put_member(a, keys[i], member(state, keys[i]));
    rv__buf_char(&a->out, '}');
}

static struct called *find_called(struct audit *a, struct rv__str path)
{
    struct rv__index_entry *e = rv__index_first(&a->calls, rv__str_hash(RV__HASH_START, path));
    while (e != NULL && !rv__str_eq(RV__CONTAINER(e, struct called, entry)->path, path))
        e = rv__index_next(e);
    return e != NULL ? RV__CONTAINER(e, struct called, entry) : NULL;
}

/* The call that a path is in, by nothing but nodes in sequence; none: it is in none. */
static struct rv__str call_around(struct rv__str path)
{
    while (path.len > 0 && !is_call(path)) {
        struct rv__str number = around(path);
        path = ends_in(number, ":node") ? around(number) : (struct rv__str){ NULL, 0 };
    }
    return path;
}

static bool is_below(struct rv__str path, const char *above)
{
    size_t len = strlen(above);
    return path.len > len && memcmp(path.at, above, len) == 0 && path.at[len] == ':';
}

/* A node in a call has ended: the result of the last one is the call's. Events of supervisors have no result: that of
 * a workflow is its last node's, that of another is not known here. */
static void note_result(struct audit *a, const struct event *event)
{
    struct rv__str path = call_around(rv__str(event->path));
    if (path.len == 0)
        return;
    struct called *call = find_called(a, path);
    if (call == NULL) {
        call = rv__arena_zalloc(&a->arena, 1, sizeof *call);
        if (call == NULL || rv__str_copy(&a->arena, path, &call->path) < 0)
            return; /* its result is not told then */
        (void)rv__index_add(&a->calls, &call->entry, rv__str_hash(RV__HASH_START, call->path));
    }
    if (is_below(call->last, event->path))
        return;
    if (rv__str_copy(&a->arena, rv__str(event->path), &call->last) < 0 ||
        rv__str_copy(&a->arena, member(event->json, "result"), &call->result) < 0)
        call->result = (struct rv__str){ NULL, 0 };
}

static void hear_chat(struct audit *a, const struct event *event)
{
    struct rv__str path = rv__str(event->path);
    const char *what = strchr(event->kind, '.');
    bool completed = what != NULL && strcmp(what, ".completed") == 0;
    bool failed = what != NULL && strcmp(what, ".failed") == 0;
    bool skipped = what != NULL && strcmp(what, ".skipped") == 0;
    bool step = strncmp(event->kind, "step.", 5) == 0;
    if (completed || failed || skipped)
        note_result(a, event);
    if (is_turn(path) && strcmp(event->kind, "step.started") == 0) {
        if (path.len > 6 && strcmp(event->path + path.len - 6, ":turn1") == 0)
            put_request(a, event, false);
    } else if (is_turn(path) && step && completed) {
        put_answer(a, event);
    } else if (is_turn(path) && step && failed) {
        put_request(a, event, true);
    } else if (is_call(path) && (completed || failed)) {
        const struct called *call = completed ? find_called(a, path) : NULL;
        begin(a, event, "call", (struct rv__str){ NULL, 0 });
        if (call != NULL)
            put_member(a, "result", call->result);
        put_member(a, "error", member(event->json, "error"));
        rv__buf_char(&a->out, '}');
    }
}

/* All that has happened so far, one after the other. */
static void hear(void *arg, struct rv__str json)
{
    struct audit *a = arg;
    struct event event = { .json = json,
                           .kind = text_of(a, member(json, "kind")),
                           .path = text_of(a, member(json, "path")) };
    if (member(json, "at").len > 0)
        (void)rv__json_int(member(json, "at"), &event.at);
    hear_event(a, &event);
    hear_chat(a, &event);
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

static void print_line(const char *who, const struct rv__buf *line)
{
    printf("    %s%-9s%s  %s\n", rv__colour(stdout, DIM), who, rv__colour(stdout, PLAIN),
           line->len > 0 ? line->text : "");
}

/* What was said, on lines of its own, without its control characters. */
static void print_said(const char *who, struct rv__str json)
{
    struct rv__buf text, line;
    if (json.len == 0 || rv__str_is(json, "null"))
        return;
    rv__buf_init(&text, SIZE_MAX / 8); /* bounded by the entry */
    rv__buf_init(&line, SIZE_MAX / 8); /* the same */
    rv__text_error(&text, json);
    const char *at = text.len > 0 ? text.text : "", *end = at + text.len;
    do {
        const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        struct rv__str part = { at, (size_t)((stop != NULL ? stop : end) - at) };
        rv__buf_reset(&line);
        (void)rv__text_fit(&line, part, INT_MAX);
        print_line(who, &line);
        who = ""; /* the lines after the first */
        at = stop != NULL ? stop + 1 : end;
    } while (at < end);
    rv__buf_done(&line);
    rv__buf_done(&text);
}

static void print_calls(struct rv__str calls)
{
    struct rv__json_iter it;
    struct rv__str call;
    if (calls.len == 0 || rv__json_type(calls) != RV__JSON_ARRAY)
        return;
    rv__json_iter_init(&it, calls);
    while (rv__json_next(&it, NULL, &call)) {
        struct rv__buf line, text;
        struct rv__str name = member(call, "name");
        if (name.len <= 2)
            continue;                      /* of no tool: the answer did not fit its schema */
        rv__buf_init(&line, SIZE_MAX / 8); /* bounded by the entry */
        rv__buf_init(&text, SIZE_MAX / 8); /* the same */
        rv__text_error(&text, name);
        (void)rv__text_fit(&line, rv__buf_view(&text), TEXT_WIDTH);
        rv__buf_done(&text);
        rv__buf_char(&line, ' ');
        (void)rv__text_fit(&line, member(call, "arguments"), TEXT_WIDTH);
        print_line("calls", &line);
        rv__buf_done(&line);
    }
}

static void print_usage(struct rv__str usage)
{
    struct rv__buf line;
    struct rv__str cost = member(usage, "cost");
    int64_t in = 0, out = 0;
    if (usage.len == 0)
        return;
    (void)rv__json_int(member(usage, "inputTokens"), &in);
    (void)rv__json_int(member(usage, "outputTokens"), &out);
    rv__buf_init(&line, 200);
    rv__buf_fmt(&line, "%lld in, %lld out", (long long)in, (long long)out);
    if (cost.len > 0)
        rv__buf_fmt(&line, ", cost %.*s", RV__ARG(cost));
    print_line("tokens", &line);
    rv__buf_done(&line);
}

/* The files of a prompt: "receipt.png, image/png, 70 bytes, sha256 1b2c…" */
static void print_files(struct rv__str list)
{
    struct rv__json_iter it;
    struct rv__str file;
    if (list.len == 0 || rv__json_type(list) != RV__JSON_ARRAY)
        return;
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &file)) {
        static const char *const keys[] = { "name", "type", "bytes", "sha256" };
        static const char *const before[] = { "", ", ", ", ", " bytes, sha256 " };
        struct rv__buf line, text;
        rv__buf_init(&line, 4096); /* a name, a number and two words */
        rv__buf_init(&text, 4096); /* the same */
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            rv__buf_reset(&text);
            rv__text_error(&text, member(file, keys[i]));
            rv__buf_text(&line, before[i]);
            (void)rv__text_fit(&line, rv__buf_view(&text), TEXT_WIDTH);
        }
        print_line("file", &line);
        rv__buf_done(&text);
        rv__buf_done(&line);
    }
}

static void print_talk(struct rv__str one)
{
    print_said("system", member(one, "system"));
    print_said("user", member(one, "prompt"));
    print_files(member(one, "attached"));
    print_said("assistant", member(one, "text"));
    print_calls(member(one, "calls"));
    print_said("told", member(one, "invalid"));
    print_usage(member(one, "usage"));
    print_said("result", member(one, "result"));
    print_said("error", member(one, "error"));
    print_said("with", member(one, "payload"));
}

static void print_entry(struct audit *a, struct rv__str one)
{
    char clock[RV__WHEN_TEXT];
    int64_t at = 0;
    struct rv__buf line;
    const char *action = text_of(a, member(one, "action")), *by = text_of(a, member(one, "by"));
    static const char *const details[] = { "decision", "name",    "path", "scope",
                                           "what",     "through", "model" };
    if (member(one, "at").len > 0)
        (void)rv__json_int(member(one, "at"), &at);
    bool chats = strcmp(action, "ask") == 0 || strcmp(action, "answer") == 0 ||
                 strcmp(action, "call") == 0;
    rv__buf_init(&line, SIZE_MAX / 8);
    (void)rv__text_fit(&line,
                       rv__str(*by != '\0' ? by
                               : chats     ? "chat"
                                           : "(nobody named)"),
                       TEXT_WIDTH);
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
    print_talk(one);
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
        rc = rv__client_history(look->client, look->run_id, hear, a, &err);
    }
    int code = rc == RV_OK ? print(a) : rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__buf_done(&a->out);
    rv__index_done(&a->states);
    rv__index_done(&a->settled);
    rv__index_done(&a->begun);
    rv__index_done(&a->calls);
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
                    "later (`read`): logs, attachments, results of other nodes.",
                    "Chats are told as conversations: what the model was asked (`ask`), what it "
                    "answered, which tools it called and what that cost (`answer`), and what the "
                    "tools said (`call`)." },
    .examples = { { "rival audit review-1" },
                  { "rival audit review-1 --json | jq '.entries[] | select(.action == "
                    "\"see\")'" } },
    .run = run_audit,
};
