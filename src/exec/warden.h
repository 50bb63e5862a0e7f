/* warden.h: a small process that outlives the engine for a moment, to kill the commands that it left behind.
 *
 * The parent-death signal reaches only a command's first process; processes that it started would survive. Each
 * command's process group is reported to the warden before the command's program starts and after the command is
 * over. When the engine's process has ended, for whatever reason, the warden kills every group it still knows,
 * removes their control files, and exits.
 *
 * The warden is a fork of the engine without an exec: a library has no program of its own to run. So it is started
 * with the engine, and keeps the pages that the engine had then and has changed since; on the other hand it needs
 * nothing from the disk. It has no exit signal, so a host program that waits for any child does not see it. It does
 * not reach a process that left its group, and does not help if it was itself killed before the engine. */
#ifndef RV_EXEC_WARDEN_H
#define RV_EXEC_WARDEN_H

#include <stdint.h>
#include <sys/types.h>

#include <rival/base.h>

struct rv__warden {
    int socket; /* -1: there is none */
    pid_t pid;
};

/* Start it. `dir` is the absolute path of the control files' directory, `most` the largest number of groups at
 * once. On failure *warden has socket -1. Errors: RV_ENOMEM, RV_ESYS. Thread: any, with all signals blocked. */
int rv__warden_start(struct rv__warden *warden, const char *dir, size_t most, rv_error *err);
void rv__warden_stop(struct rv__warden *warden); /* waits for its end; no groups are left */

/* Report the start of a group (before its program starts), and its end (before its number is free again). `control`
 * is the number of its control file. Safe between fork and exec, even if the warden has died. */
void rv__warden_begin(int socket, pid_t group, uint64_t control);
void rv__warden_end(int socket, pid_t group);

/* Write the path of a control file to `ret`. Safe between fork and exec. */
enum { RV__CONTROL_PATH = 4096 };
void rv__control_path(const char *dir, uint64_t number, char ret[RV__CONTROL_PATH]);

#endif
