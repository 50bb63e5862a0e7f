/* process.h: one command that runs. Everything here is the loop's thread's alone.
 *
 *   running ──kill──▶ asked (TERM, grace timer) ──timer──▶ forced (KILL)
 *      │ exit           │ exit                              │ exit
 *      └────────────────┴──▶ lingering (a zombie; until its output is closed, or by timer) ──▶ over
 *
 * The zombie stays until the end, so that its process group cannot become somebody else's while there is
 * still something to kill in it. */
#ifndef RV_EXEC_PROCESS_H
#define RV_EXEC_PROCESS_H

#include <uv.h>

#include "base/arena.h"
#include "exec/exec.h"
#include "exec/warden.h"

struct rv__process;

enum { RV__READ_BYTES = 64 << 10 }; /* at a time, from one command: a pipe's worth */

/* What the processes of one loop share. */
struct rv__processes {
    uv_loop_t *loop;
    struct rv__warden warden;
    const char **env;            /* inherited */
    char *dir;                   /* of the control files; private */
    int null_fd;                 /* /dev/null */
    struct rv__spawn_room *room; /* spawn.h */
    char *scratch;               /* RV__READ_BYTES */
    struct rv__arena arena;      /* for one start at a time */
    uint64_t controls;           /* control files made so far */
    void (*over)(void *arg, struct rv__command *command, const struct rv__command_result *result);
    void *arg;
};

/* Start a command: `over` follows, not before this returns. Errors: as of rv__spawn(). */
int rv__process_start(struct rv__processes *all, struct rv__command *command,
                      struct rv__process **ret, rv_error *err);

/* For rv__command_send(). */
int rv__process_send(struct rv__process *process, struct rv__str bytes);

/* The first reason counts; one that comes after its exit does nothing. */
void rv__process_kill(struct rv__process *process, enum rv__kill why);

#endif
