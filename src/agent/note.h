/* note.h: notes of calls that were answered with something else than a result: with questions for a person, or with a
 * task. A note is all that the step's next call needs to continue, as JSON, so that it can be recorded. Pure.
 *
 *   {"server": NAME,
 *    "ask": {"message", "schema", "url"?},       what a person is asked; the schema of the answer
 *    "task": id, "pollMs": n,                    the server works on a task, and how often it wants to be asked
 *    revisions of 2025, where a server asks in the midst of the call:
 *    "question": {...},                          what it asks now
 *    "told": [[question, answer], ...],          what it asked before, with the answers
 *    "key": ...,                                 the step for which the open request is kept (question.c)
 *    "visit": true,                              or no request is open: the call is made again after "accept"
 *    2026-07-28, where an answer or a task lists all questions:
 *    "requests": {key: ...}, "at": key,          all of them, and the one that is asked now
 *    "responses": {key: answer}, "state": ...,   answers so far, and what the server wants back with them
 *    "again": n}                                 times in a row that it wanted the call again without a question
 *
 * An answer is {"action": "accept" | "decline" | "cancel", "content"?}. */
#ifndef RV_AGENT_NOTE_H
#define RV_AGENT_NOTE_H

#include <stdint.h>

#include "base/str.h"

/* A note, as slices of its text; what is not there is "none". */
struct rv__tool_note {
    struct rv__str task; /* JSON, a string */
    int64_t poll_ms;
    struct rv__str question, answers, key; /* key: as JSON, without its quotes: it has no escapes */
    struct rv__str requests, at, responses, state;
    bool visit;
    int64_t again; /* times in a row that the call was made again without a question */
};

/* `note` is JSON, and an object. */
void rv__tool_note_read(struct rv__str note, struct rv__tool_note *ret);

/* The note of a question in the midst of a call; `answers` is the inside of `told`; `before`: of a task, else all
 * none. */
void rv__tool_note_put_question(struct rv__buf *out, const char *server, struct rv__str params,
                                struct rv__str answers, const struct rv__tool_note *before,
                                struct rv__str key);
/* The note of an error -32042: `data` has `elicitations`, addresses that a person has to open before the call is made
 * again. It asks for the first one that is not in `answers`. False: there is none. */
bool rv__tool_note_put_visit(struct rv__buf *out, const char *server, struct rv__str data,
                             struct rv__str answers);
/* What was said to the same question before, in an array's inside; none: it is a new one. Each answer is used once:
 * *from is the place of the first one that may be used, and moves behind the one that is returned. */
struct rv__str rv__tool_note_find_answer(struct rv__str answers, struct rv__str params,
                                         size_t *from);
/* Append the question of the note and its answer to `answers`. */
void rv__tool_note_add_answer(const struct rv__tool_note *note, struct rv__str answer,
                              struct rv__buf *answers);

/* The note of an answer that wants input: `asked` has inputRequests and requestState. `before`: of a task; else all
 * none. False: it wants something that is not offered, and `why` says what. */
bool rv__tool_note_put_input_required(struct rv__buf *out, const char *server, struct rv__str asked,
                                      const struct rv__tool_note *before, char *why, size_t room);
/* The same note after an answer; *all: no question is left, and what is put is the inside of inputResponses. */
void rv__tool_note_put_next(const struct rv__tool_note *note, const char *server,
                            struct rv__str answer, struct rv__buf *out, bool *all);

/* The note of a task: `task` has taskId and pollInterval or pollIntervalMs. False: it has no id. */
bool rv__tool_note_put_task(struct rv__buf *out, const char *server, struct rv__str task);
/* How long to wait before it is asked for again. */
int64_t rv__tool_note_poll_ms(struct rv__str task);

#endif
