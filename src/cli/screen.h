/* screen.h: shows the progress of a run: live on a terminal, else line by line.
 *
 * Everything goes to stderr: stdout is for the outcome. */
#ifndef RV_CLI_SCREEN_H
#define RV_CLI_SCREEN_H

#include "cli/outline.h"

enum rv__screen_kind {
    VIEW_NONE,  /* --json */
    VIEW_LINES, /* a line for each event */
    VIEW_LIVE,  /* a tree that is redrawn in place */
};

enum {
    RV__SCREEN_LOG = 4,         /* log lines below the tree */
    RV__SCREEN_LOG_BYTES = 500, /* of each */
    RV__SCREEN_ROWS = 1000,     /* of a frame: more than any terminal has */
    RV__FRAME_MS = 100,         /* between frames */
};

struct rv__screen {
    enum rv__screen_kind kind;
    const char *workflow, *run_id;
    struct rv__outline tree;
    int64_t started_ms, drawn_ms; /* wall clock; monotonic */
    const char *state;            /* a word shown beside the run: "stopping" …; NULL = running */
    char log[RV__SCREEN_LOG][RV__SCREEN_LOG_BYTES];
    size_t log_count;            /* lines so far */
    int widths[RV__SCREEN_ROWS]; /* of the lines of the last frame, to move back to its first */
    int height;
    int tick;
};

void rv__screen_init(struct rv__screen *view, enum rv__screen_kind kind, struct rv__client *client,
                     const char *workflow, const char *run_id, int64_t started_ms);
void rv__screen_done(struct rv__screen *view);

void rv__screen_event(struct rv__screen *view, const rv_event *event);
void rv__screen_frame(struct rv__screen *view, bool now); /* draws if it is time, or if `now` */
/* Remove the live part from the screen, before other output. */
void rv__screen_clear(struct rv__screen *view);
/* Print the final summary: every node and its result; of a failed run also what failed and its last log lines.
 * `error` is JSON, "" if none; so is the path of the failed node. */
void rv__screen_record(struct rv__screen *view, const char *status, int64_t duration_ms,
                       const char *error, const char *failed_path);

/* A line for an event; false: it is not shown. */
bool rv__event_line(const rv_event *event, FILE *to, struct rv__buf *out);
/* "warn  path: message" of a log event. */
void rv__event_log(const rv_event *event, struct rv__buf *out);

#endif
