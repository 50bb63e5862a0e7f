/* outline.h: the nodes of a run as rows for people: `show`, the live view of `exec`, and its final summary.
 *
 * Rows are collected first and written afterwards, so that columns are aligned and a view can omit rows. Finished
 * iterations are counted, not listed: a run may have a hundred thousand of them. */
#ifndef RV_CLI_OUTLINE_H
#define RV_CLI_OUTLINE_H

#include "base/arena.h"
#include "cli/client.h"
#include "base/str.h"

enum rv__row_weight { ROW_DONE, ROW_PENDING, ROW_LIVE, ROW_BAD }; /* the first are omitted first */

struct rv__row {
    int depth;
    const char *name;
    const char *status; /* of a node; NULL: a row about several */
    bool timer;         /* it runs, and waits for a timer */
    int64_t ms;         /* negative: not shown */
    const char *note;
    const char *plain_note; /* without the error */
    bool note_is_error;
    enum rv__row_weight weight;
};

/* Iterations of a node that have ended: the first `count` of them, and how they ended. */
struct rv__over {
    char *path;
    size_t count, failed, skipped;
};
enum {
    RV__OVER_MAX = 64
}; /* nodes remembered; for others each look starts at the first iteration */

struct rv__outline {
    struct rv__client *client;
    const char *run_id;
    bool live; /* expand only active and failed nodes; else all */
    int64_t now_ms;
    struct rv__arena arena; /* for the rows */
    struct rv__row *rows;
    size_t count, cap;
    struct rv__over over[RV__OVER_MAX];
    size_t over_count;
    size_t walked; /* nodes read for the rows */
    int rc;
};

void rv__outline_init(struct rv__outline *tree, struct rv__client *client, const char *run_id,
                      bool live);
void rv__outline_done(struct rv__outline *tree);

/* Read the current nodes; replaces the rows. Returns RV_OK or an error. */
int rv__outline_read(struct rv__outline *tree, rv_error *err);

/* How rows are written: total width, and width of the names (rv__outline_name_width). */
struct rv__row_style {
    FILE *to; /* for colours */
    int width, name_width;
    bool unicode, words; /* words: write the status in words */
    int tick;            /* of the spinner */
};
int rv__outline_name_width(const struct rv__outline *tree, int width);
/* One row, without a newline. */
void rv__row_write(const struct rv__row *row, const struct rv__row_style *style,
                   struct rv__buf *out);

#endif
