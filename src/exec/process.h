/* process.h: one running command. Thread: the loop's only.
 *
 *   running ──kill──▶ asked (TERM, grace timer) ──timer──▶ forced (KILL)
 *      │ exit           │ exit                              │ exit
 *      └────────────────┴──▶ lingering (a zombie; until its output is closed, or by timer) ──▶ over
 *
 * The zombie is kept until the end, so that the number of its process group cannot be reused while the group still
 * has processes to kill. */
#ifndef RV_EXEC_PROCESS_H
#define RV_EXEC_PROCESS_H

#include <uv.h>

#include "base/arena.h"
#include "exec/exec.h"
#include "exec/warden.h"

struct rv__process;

enum { RV__READ_BYTES = 64 << 10 }; /* read from one command at a time: the size of a pipe */

/* What the processes of one loop share. */
struct rv__processes {
    uv_loop_t *loop;
    struct rv__warden warden;
    const char **env;            /* inherited */
    char *dir;                   /* of the control files; only we can read it */
    int null_fd;                 /* /dev/null */
    struct rv__spawn_room *room; /* spawn.h */
    char *scratch;               /* RV__READ_BYTES */
    struct rv__arena arena;      /* for one start; reset after it */
    uint64_t controls;           /* control files made so far */
    void (*over)(void *arg, struct rv__command *command, const struct rv__command_result *result);
    void *arg;
};

/* Start a command. `over` is called later, not before this returns. Errors: as of rv__spawn(). */
int rv__process_start(struct rv__processes *all, struct rv__command *command,
                      struct rv__process **ret, rv_error *err);

/* For rv__command_send(). */
int rv__process_send(struct rv__process *process, struct rv__str bytes);

/* The first reason counts; after the exit this does nothing. */
void rv__process_kill(struct rv__process *process, enum rv__kill why);

#endif
