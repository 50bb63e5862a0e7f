/* event_line.c: an event of the feed as a line for people. */
#include "cli/screen.h"

#include <string.h>

#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

enum { TEXT_WIDTH = 400 }; /* of one line in a pipe: an error may be a page long */

static struct rv__str member(const rv_event *event, const char *key)
{
    struct rv__str value = { NULL, 0 };
    (void)rv__json_get(rv__str(event->json), key, &value);
    return value;
}

static bool number(const rv_event *event, const char *key, int64_t *ret)
{
    struct rv__str value;
    return rv__json_get(rv__str(event->json), key, &value) && rv__json_int(value, ret) == RV_OK;
}

/* Append a JSON string, made safe for a terminal. */
static void put_string(struct rv__buf *out, struct rv__str json, int width)
{
    struct rv__buf text;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    rv__text_error(&text, json); /* the text of a string; of an error its message */
    (void)rv__text_fit(out, rv__buf_view(&text), width);
    rv__buf_done(&text);
}

static void put_details(struct rv__buf *out, const rv_event *event)
{
    int64_t n;
    char text[RV__DURATION_TEXT];
    struct rv__str error = member(event, "error"), state = member(event, "state");
    struct rv__str reason = member(event, "reason");
    struct rv__str description = member(event, "description"); /* else in the state */
    struct rv__str by = member(event, "by");
    if (by.len > 0 && strcmp(event->kind, "run.started") != 0) { /* the user knows who started it */
        rv__buf_text(out, " by ");
        put_string(out, by, TEXT_WIDTH);
    }
    if (number(event, "attempt", &n) && n > 1)
        rv__buf_fmt(out, " (attempt %lld)", (long long)n);
    if (error.len > 0 || reason.len > 0) {
        rv__buf_text(out, ": ");
        put_string(out, error.len > 0 ? error : reason, TEXT_WIDTH);
    }
    if (state.len > 0)
        (void)rv__json_get(state, "description", &description);
    if (description.len > 0) {
        rv__buf_text(out, ": ");
        put_string(out, description, TEXT_WIDTH);
    }
    if (number(event, "dueAt", &n))
        rv__buf_fmt(out, "; %s in %s", strcmp(event->kind, "step.retrying") == 0 ? "again" : "due",
                    rv__text_duration(n - event->at, text));
}

void rv__event_log(const rv_event *event, struct rv__buf *out)
{
    struct rv__str level = member(event, "level");
    if (level.len > 0 && !rv__json_string_is(level, rv__str("info"))) {
        put_string(out, level, TEXT_WIDTH);
        rv__buf_char(out, ' ');
    }
    (void)rv__text_fit(out, rv__str(event->path), TEXT_WIDTH);
    rv__buf_text(out, ": ");
    put_string(out, member(event, "message"), TEXT_WIDTH);
}

static bool is_debug(const rv_event *event)
{
    struct rv__str level = member(event, "level");
    return level.len > 0 && rv__json_string_is(level, rv__str("debug"));
}

/* The word for an attempt of a state; its agent has its own lines. NULL: nothing to show. */
static const char *state_word(const rv_event *event)
{
    static const char *const words[][2] = { { "retry", "retrying" },
                                            { "redirect", "redirect" },
                                            { "errored", "errored" },
                                            { "final", "final" } };
    struct rv__str next = member(event, "next");
    for (size_t i = 0; next.len > 0 && i < sizeof words / sizeof *words; i++)
        if (rv__json_string_is(next, rv__str(words[i][0])))
            return words[i][1];
    return NULL;
}

bool rv__event_line(const rv_event *event, FILE *to, struct rv__buf *out)
{
    char clock[RV__WHEN_TEXT];
    const char *word = strchr(event->kind, '.');
    bool is_log = strcmp(event->kind, "log") == 0, is_run = strncmp(event->kind, "run.", 4) == 0;
    bool quiet = strcmp(event->kind, "timer.armed") == 0 ||
                 strcmp(event->kind, "step.read") == 0; /* shown by `rival audit` */
    if (quiet || (is_log && is_debug(event)))
        return false;
    bool is_state = strncmp(event->kind, "state.", 6) == 0;
    if (is_state && state_word(event) == NULL)
        return false;
    word = is_log ? "log" : is_state ? state_word(event) : word != NULL ? word + 1 : event->kind;
    rv__buf_fmt(out, "%s%s%s  %s", rv__colour(to, DIM), rv__text_clock(event->at, false, clock),
                rv__colour(to, PLAIN), rv__colour(to, rv__status_colour(word)));
    rv__buf_fmt(out, "%-9s%s  ", word, rv__colour(to, PLAIN));
    if (is_log) {
        rv__event_log(event, out);
        return true;
    }
    if (is_run)
        rv__buf_fmt(out, "run %s of %s", event->run_id, event->workflow);
    else
        rv__buf_text(out, event->path);
    if (strcmp(event->kind, "signal.received") == 0) {
        rv__buf_text(out, "signal ");
        put_string(out, member(event, "name"), TEXT_WIDTH);
    }
    if (is_state && member(event, "to").len > 0) {
        rv__buf_text(out, " to ");
        put_string(out, member(event, "to"), TEXT_WIDTH);
    }
    put_details(out, event);
    return true;
}
