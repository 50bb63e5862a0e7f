/* note.c: notes of calls that go on: see note.h. */
#include "agent/note.h"

#include <stdio.h>

#include "agent/rpc.h"

enum {
    POLL_MS = 1000,        /* where the server does not say, */
    LEAST_POLL_MS = 100,   /* and the least, */
    MOST_POLL_MS = 600000, /* and the most that it may say */
    AGAIN_MAX = 100,       /* times in a row that a call is made again without a question */
};

static const struct rv__str none = { NULL, 0 };

static bool is(struct rv__str json, enum rv__json_type type)
{
    return !rv__str_none(json) && rv__json_type(json) == type;
}

void rv__tool_note_read(struct rv__str note, struct rv__tool_note *ret)
{
    *ret = (struct rv__tool_note){ .task = rv__rpc_member(note, "task", RV__JSON_STRING),
                                   .question = rv__rpc_member(note, "question", RV__JSON_OBJECT),
                                   .answers = rv__rpc_member(note, "told", RV__JSON_ARRAY),
                                   .requests = rv__rpc_member(note, "requests", RV__JSON_OBJECT),
                                   .at = rv__rpc_member(note, "at", RV__JSON_STRING),
                                   .responses = rv__rpc_member(note, "responses", RV__JSON_OBJECT),
                                   .state = rv__rpc_member(note, "state", RV__JSON_STRING) };
    ret->visit = !rv__str_none(rv__rpc_member(note, "visit", RV__JSON_TRUE));
    struct rv__str key = rv__rpc_member(note, "key", RV__JSON_STRING);
    if (!rv__str_none(key))
        ret->key = (struct rv__str){ key.at + 1, key.len - 2 };
    struct rv__str poll = rv__rpc_member(note, "pollMs", RV__JSON_NUMBER);
    if (rv__str_none(poll) || rv__json_int(poll, &ret->poll_ms) < 0)
        ret->poll_ms = POLL_MS;
    struct rv__str again = rv__rpc_member(note, "again", RV__JSON_NUMBER);
    if (rv__str_none(again) || rv__json_int(again, &ret->again) < 0)
        ret->again = 0;
}

/* ------------------------------------------------------------------------------- questions --- */

static void begin_note(struct rv__buf *out, const char *server)
{
    rv__buf_text(out, "{\"server\":");
    rv__buf_json_str(out, rv__str(server));
}

/* ,"ask":{message, schema, url?} for the params of an elicitation. */
static void put_ask(struct rv__buf *out, struct rv__str params)
{
    struct rv__str message = rv__rpc_member(params, "message", RV__JSON_STRING);
    struct rv__str schema = rv__rpc_member(params, "requestedSchema", RV__JSON_OBJECT);
    struct rv__str url = rv__rpc_member(params, "url", RV__JSON_STRING);
    rv__buf_text(out, ",\"ask\":{\"message\":");
    if (rv__str_none(message))
        message = rv__str("\"the tool asks for something\"");
    if (rv__str_none(url)) {
        rv__buf_str(out, message);
    } else { /* both are JSON: wherever the message is shown, the address is, too */
        rv__buf_add(out, message.at, message.len - 1);
        rv__buf_text(out, " (");
        rv__buf_add(out, url.at + 1, url.len - 2);
        rv__buf_text(out, ")\",\"url\":");
        rv__buf_str(out, url);
    }
    rv__buf_text(out,
                 ",\"schema\":{\"type\":\"object\",\"properties\":{\"action\":{\"type\":\"string\","
                 "\"enum\":[\"accept\",\"decline\",\"cancel\"]}");
    if (rv__str_none(url) && !rv__str_none(schema)) {
        rv__buf_text(out, ",\"content\":");
        rv__buf_str(out, schema);
    }
    rv__buf_text(out, "},\"required\":[\"action\"]");
    if (rv__str_none(url) && !rv__str_none(schema))
        rv__buf_text(out, ",\"if\":{\"properties\":{\"action\":{\"const\":\"accept\"}}},"
                          "\"then\":{\"required\":[\"content\"]}");
    rv__buf_text(out, "}}");
}

/* What a question is, without what belongs to this one message. */
static void put_params(struct rv__buf *out, struct rv__str params)
{
    static const char *const kept[] = { "message", "requestedSchema", "url" };
    struct rv__str value;
    const char *comma = "";
    rv__buf_char(out, '{');
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (!rv__json_get(params, kept[i], &value))
            continue;
        rv__buf_fmt(out, "%s\"%s\":", comma, kept[i]);
        rv__buf_str(out, value);
        comma = ",";
    }
    rv__buf_char(out, '}');
}

static void put_task_members(struct rv__buf *out, const struct rv__tool_note *note)
{
    if (rv__str_none(note->task))
        return;
    rv__buf_text(out, ",\"task\":");
    rv__buf_str(out, note->task);
    rv__buf_text(out, ",\"pollMs\":");
    rv__buf_int(out, note->poll_ms);
}

/* ,"question":{…},"told":[…] */
static void put_question(struct rv__buf *out, struct rv__str params, struct rv__str answers)
{
    rv__buf_text(out, ",\"question\":");
    put_params(out, params);
    rv__buf_text(out, ",\"told\":[");
    rv__buf_str(out, answers);
    rv__buf_char(out, ']');
}

void rv__tool_note_put_question(struct rv__buf *out, const char *server, struct rv__str params,
                                struct rv__str answers, const struct rv__tool_note *before,
                                struct rv__str key)
{
    begin_note(out, server);
    put_ask(out, params);
    put_task_members(out, before);
    put_question(out, params, answers);
    rv__buf_text(out, ",\"key\":");
    rv__buf_json_str(out, key);
    rv__buf_char(out, '}');
}

struct rv__str rv__tool_note_find_answer(struct rv__str answers, struct rv__str params,
                                         size_t *from)
{
    struct rv__json_iter it, pair;
    struct rv__str item, question, answer, found = none;
    struct rv__buf array, same;
    rv__buf_init(&array, RV__RPC_BYTES);
    rv__buf_init(&same, RV__RPC_BYTES);
    rv__buf_char(&array, '[');
    rv__buf_str(&array, answers);
    rv__buf_char(&array, ']');
    put_params(&same, params);
    if (array.rc == RV_OK && same.rc == RV_OK && answers.len > 0) {
        rv__json_iter_init(&it, rv__buf_view(&array));
        for (size_t i = 0; rv__str_none(found) && rv__json_next(&it, NULL, &item); i++) {
            if (i < *from || !is(item, RV__JSON_ARRAY))
                continue;
            rv__json_iter_init(&pair, item);
            if (rv__json_next(&pair, NULL, &question) && rv__json_next(&pair, NULL, &answer) &&
                rv__str_eq(question, rv__buf_view(&same))) {
                found = (struct rv__str){ answers.at + (answer.at - array.text - 1), answer.len };
                *from = i + 1;
            }
        }
    }
    rv__buf_done(&array);
    rv__buf_done(&same);
    return found;
}

bool rv__tool_note_put_visit(struct rv__buf *out, const char *server, struct rv__str data,
                             struct rv__str answers)
{
    struct rv__str list = is(data, RV__JSON_OBJECT)
                              ? rv__rpc_member(data, "elicitations", RV__JSON_ARRAY)
                              : none;
    struct rv__json_iter it;
    struct rv__str item, asked = none;
    bool is_new = false;
    if (rv__str_none(list))
        return false;
    rv__json_iter_init(&it, list);
    while (!is_new && rv__json_next(&it, NULL, &item)) {
        size_t from = 0;
        if (!is(item, RV__JSON_OBJECT) ||
            rv__str_none(rv__rpc_member(item, "url", RV__JSON_STRING)))
            continue;
        is_new = rv__str_none(rv__tool_note_find_answer(answers, item, &from));
        if (is_new ||
            rv__str_none(asked)) /* all were opened, and it is not content: the first again */
            asked = item;
    }
    if (rv__str_none(asked))
        return false;
    begin_note(out, server);
    put_ask(out, asked);
    put_question(out, asked, answers);
    rv__buf_text(out, ",\"visit\":true}");
    return true;
}

void rv__tool_note_add_answer(const struct rv__tool_note *note, struct rv__str answer,
                              struct rv__buf *answers)
{
    if (!rv__str_none(note->answers) && note->answers.len > 2)
        rv__buf_add(answers, note->answers.at + 1, note->answers.len - 2);
    if (rv__str_none(note->question) || rv__str_none(answer))
        return;
    if (answers->len > 0)
        rv__buf_char(answers, ',');
    rv__buf_char(answers, '[');
    rv__buf_str(answers, note->question);
    rv__buf_char(answers, ',');
    rv__buf_str(answers, answer);
    rv__buf_char(answers, ']');
}

/* --------------------------------------------------------------- answers that want something --- */

/* The note for the question `key`; `responses`: the inside of what was answered before. */
static void put_asking(struct rv__buf *out, const char *server, const struct rv__tool_note *note,
                       struct rv__str key, struct rv__str request, struct rv__str responses)
{
    struct rv__str params = rv__rpc_member(request, "params", RV__JSON_OBJECT);
    begin_note(out, server);
    put_ask(out, rv__str_none(params) ? rv__str("{}") : params);
    put_task_members(out, note);
    rv__buf_text(out, ",\"requests\":");
    rv__buf_str(out, note->requests);
    rv__buf_text(out, ",\"at\":");
    rv__buf_str(out, key);
    rv__buf_text(out, ",\"responses\":{");
    rv__buf_str(out, responses);
    rv__buf_char(out, '}');
    if (!rv__str_none(note->state)) {
        rv__buf_text(out, ",\"state\":");
        rv__buf_str(out, note->state);
    }
    rv__buf_char(out, '}');
}

bool rv__tool_note_put_input_required(struct rv__buf *out, const char *server, struct rv__str asked,
                                      const struct rv__tool_note *before, char *why, size_t room)
{
    struct rv__tool_note note = { .task = before->task,
                                  .poll_ms = before->poll_ms,
                                  .requests = rv__rpc_member(asked, "inputRequests",
                                                             RV__JSON_OBJECT),
                                  .state = rv__rpc_member(asked, "requestState", RV__JSON_STRING) };
    struct rv__json_iter it;
    struct rv__str key, request, first_key = none, first = none, method;
    if (rv__str_none(note.requests))
        note.requests = rv__str("{}");
    rv__json_iter_init(&it, note.requests);
    while (rv__json_next(&it, &key, &request)) {
        method = is(request, RV__JSON_OBJECT) ? rv__rpc_member(request, "method", RV__JSON_STRING)
                                              : none;
        if (rv__str_none(method) || !rv__json_string_is(method, rv__str("elicitation/create"))) {
            snprintf(why, room, "it asks for %.*s, which is not offered",
                     (int)(method.len < 60 ? method.len : 60), method.at != NULL ? method.at : "");
            return false;
        }
        if (rv__str_none(first)) {
            first_key = key;
            first = request;
        }
    }
    if (!rv__str_none(first)) {
        put_asking(out, server, &note, first_key, first, rv__str(""));
        return true;
    }
    if (rv__str_none(note.state)) {
        snprintf(why, room, "it asks for input and does not say which");
        return false;
    }
    if (before->again >= AGAIN_MAX) {
        snprintf(why, room, "it wanted the same call %d times, and asked nobody", AGAIN_MAX);
        return false;
    }
    begin_note(out, server); /* the same call again, with its state */
    put_task_members(out, &note);
    rv__buf_text(out, ",\"state\":");
    rv__buf_str(out, note.state);
    rv__buf_text(out, ",\"again\":");
    rv__buf_int(out, before->again + 1);
    rv__buf_char(out, '}');
    return true;
}

void rv__tool_note_put_next(const struct rv__tool_note *note, const char *server,
                            struct rv__str answer, struct rv__buf *out, bool *all)
{
    struct rv__json_iter it;
    struct rv__str key, request;
    struct rv__buf said;
    bool after = false;
    rv__buf_init(&said, RV__RPC_BYTES);
    if (!rv__str_none(note->responses) && note->responses.len > 2) {
        rv__buf_add(&said, note->responses.at + 1, note->responses.len - 2);
        rv__buf_char(&said, ',');
    }
    rv__buf_str(&said, note->at);
    rv__buf_char(&said, ':');
    rv__buf_str(&said, answer);
    *all = true;
    rv__json_iter_init(&it, note->requests);
    while (*all && rv__json_next(&it, &key, &request)) {
        if (after) {
            put_asking(out, server, note, key, request, rv__buf_view(&said));
            *all = false;
        }
        after = after || rv__str_eq(key, note->at);
    }
    if (*all)
        rv__buf_str(out, rv__buf_view(&said));
    if (said.rc != RV_OK)
        out->rc = said.rc;
    rv__buf_done(&said);
}

/* ----------------------------------------------------------------------------------- tasks --- */

int64_t rv__tool_note_poll_ms(struct rv__str task)
{
    static const char *const names[] = { "pollIntervalMs", "pollInterval" };
    int64_t ms = POLL_MS;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct rv__str value = rv__rpc_member(task, names[i], RV__JSON_NUMBER);
        if (!rv__str_none(value) && rv__json_int(value, &ms) < 0)
            ms = POLL_MS;
    }
    return ms < LEAST_POLL_MS ? LEAST_POLL_MS : ms > MOST_POLL_MS ? MOST_POLL_MS : ms;
}

bool rv__tool_note_put_task(struct rv__buf *out, const char *server, struct rv__str task)
{
    struct rv__tool_note note = { .task = rv__rpc_member(task, "taskId", RV__JSON_STRING),
                                  .poll_ms = rv__tool_note_poll_ms(task) };
    if (rv__str_none(note.task))
        return false;
    begin_note(out, server);
    put_task_members(out, &note);
    rv__buf_char(out, '}');
    return true;
}
