/* lines.h: splits bytes into lines as they arrive, and keeps the last lines. For a command's stderr. */
#ifndef RV_EXEC_LINES_H
#define RV_EXEC_LINES_H

#include <stdbool.h>

#include "base/str.h"

struct rv__lines {
    void (*line)(void *arg, struct rv__str line); /* without its newline; NULL: not called */
    void *arg;
    struct rv__buf open; /* the unfinished line */
    struct rv__buf tail; /* up to twice the size that is kept, so that it is moved rarely */
    bool cut;            /* the open line is too long; its end is dropped */
};

void rv__lines_init(struct rv__lines *lines, void (*line)(void *arg, struct rv__str line),
                    void *arg);
void rv__lines_done(struct rv__lines *lines);

/* Without memory a line is lost, nothing else: it is only a log. */
void rv__lines_add(struct rv__lines *lines, struct rv__str bytes);
void rv__lines_end(struct rv__lines *lines); /* the last line need not have a newline */

/* The last lines, together at most RV__COMMAND_TAIL bytes, without the last newline. If the last line alone is
 * longer, its end. Valid until the next call. */
struct rv__str rv__lines_tail(const struct rv__lines *lines);

#endif
