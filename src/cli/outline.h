/* outline.h: the nodes of a run as rows for people: `show`, the live view of `exec`, and its record.
 *
 * Rows are gathered first and written afterwards, so that columns line up and a view can leave some out.
 * Finished iterations are counted, not listed: a run may have a hundred thousand of them. */
#ifndef RV_CLI_OUTLINE_H
#define RV_CLI_OUTLINE_H

#include "base/arena.h"
#include "cli/client.h"
#include "base/str.h"

enum rv__row_weight { ROW_DONE, ROW_PENDING, ROW_LIVE, ROW_BAD }; /* what may be left out first */

struct rv__row {
    int depth;
    const char *name;
    const char *status; /* of a node; NULL: a row about several */
    bool timer;         /* it runs, and waits for a time */
    int64_t ms;         /* negative: no time to tell */
    const char *note;
    const char *plain_note; /* without the error */
    bool note_is_error;
    enum rv__row_weight weight;
};

/* How many iterations of a node are over for good: the first so many, and how they ended. */
struct rv__over {
    char *path;
    size_t count, failed, skipped;
};
enum { RV__OVER_MAX = 64 }; /* loops watched at once; of more, each look begins at the first */

struct rv__outline {
    struct rv__client *client;
    const char *run_id;
    bool live; /* only what is alive or failed is opened; else all of it */
    int64_t now_ms;
    struct rv__arena arena; /* of the rows */
    struct rv__row *rows;
    size_t count, cap;
    struct rv__over over[RV__OVER_MAX];
    size_t over_count;
    int rc;
};

void rv__outline_init(struct rv__outline *tree, struct rv__client *client, const char *run_id,
                      bool live);
void rv__outline_done(struct rv__outline *tree);

/* Read the nodes as they are now; rows of the time before are gone. Returns RV_OK or why not. */
int rv__outline_read(struct rv__outline *tree, rv_error *err);

/* How the rows are written: columns in all, and of the names (rv__outline_name_width). */
struct rv__row_style {
    FILE *to; /* whose colours */
    int width, name_width;
    bool unicode, words; /* words: the status is spelled out */
    int tick;            /* of the spinner */
};
int rv__outline_name_width(const struct rv__outline *tree, int width);
/* One row, without a newline. */
void rv__row_write(const struct rv__row *row, const struct rv__row_style *style,
                   struct rv__buf *out);

#endif
