/* lines.h: bytes in as they come, whole lines out, and the last of them kept. Of a command's stderr. */
#ifndef RV_EXEC_LINES_H
#define RV_EXEC_LINES_H

#include <stdbool.h>

#include "base/str.h"

struct rv__lines {
    void (*line)(void *arg, struct rv__str line); /* without its newline; NULL: nobody listens */
    void *arg;
    struct rv__buf open; /* of the line that has not ended */
    struct rv__buf tail; /* up to twice what is kept, so that it moves rarely */
    bool cut;            /* the open line is longer than what is kept of it */
};

void rv__lines_init(struct rv__lines *lines, void (*line)(void *arg, struct rv__str line),
                    void *arg);
void rv__lines_done(struct rv__lines *lines);

/* Without memory a line is lost, and nothing else: it is a log. */
void rv__lines_add(struct rv__lines *lines, struct rv__str bytes);
void rv__lines_end(struct rv__lines *lines); /* the last line need not have a newline */

/* The last lines, together at most RV__COMMAND_TAIL bytes, without the last newline; the end of the last
 * line, if that alone is longer. Valid until the next call. */
struct rv__str rv__lines_tail(const struct rv__lines *lines);

#endif
