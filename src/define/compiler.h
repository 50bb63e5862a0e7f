/* compiler.h: runs the machine's C compiler: with a time limit, and never longer than this process. Inside define/. */
#ifndef RV_DEFINE_COMPILER_H
#define RV_DEFINE_COMPILER_H

#include <rival/base.h>

#include "base/str.h"

enum { RV__COMPILER_ARGS = 64 };

struct rv__compiler_call {
    char words[4096]; /* from $CC and $RIVAL_CFLAGS, split at blanks */
    size_t used;
    const char *argv[RV__COMPILER_ARGS];
    int argc;
};

/* Start a call of $CC, or cc, without arguments. */
void rv__compiler_begin(struct rv__compiler_call *call);
/* Add an argument, borrowed; or several, split at blanks (NULL: none). Beyond the limits they are dropped. */
void rv__compiler_add(struct rv__compiler_call *call, const char *word);
void rv__compiler_add_words(struct rv__compiler_call *call, const char *text);

#define RV__COMPILER_FOLDER "/proc/self/fd/4/" /* the name of the folder `dir` for the compiler */

/* Run it. Its messages go to `said`, its standard output to the descriptor `out`; `dir` is a folder that it sees as
 * RV__COMPILER_FOLDER. out and dir may be -1: none. Returns its exit code. It is killed, with all its children,
 * after two minutes (or RIVAL_COMPILE_TIMEOUT: "30s"), or when this process ends.
 *
 * Errors: RV_ENOTFOUND: it cannot be run; RV_ETIMEDOUT; RV_ESYS.   Thread: any. */
int rv__compiler_run(const struct rv__compiler_call *call, int out, int dir, struct rv__buf *said,
                     rv_error *err);

#endif
