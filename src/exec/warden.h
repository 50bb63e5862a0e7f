/* warden.h: a small process that outlives the engine by a moment, to kill what it leaves behind.
 *
 * The parent-death signal reaches a command's first process only; what that one started lives on, with
 * nobody to end it. The warden is told of each command's process group before the command's program
 * begins and after it is over. When the engine's process is gone, however it went, it kills every group
 * it still knows of, removes their control files, and goes.
 *
 * It is a fork of the engine without an exec: a library has no program of its own to run. So it is made
 * when the engine is, and keeps the pages that the engine had then and has changed since; on the other
 * hand it needs nothing from the disk. It has no exit signal, so a host program that waits for any child
 * does not see it. Not in its reach: a process that left its group, and a warden that was itself killed
 * before the engine. */
#ifndef RV_EXEC_WARDEN_H
#define RV_EXEC_WARDEN_H

#include <stdint.h>
#include <sys/types.h>

#include <rival/base.h>

struct rv__warden {
    int socket; /* -1: there is none */
    pid_t pid;
};

/* Start it. `dir` is the absolute path of the control files' directory, `most` how many groups there
 * can be at once. On failure *warden has socket -1. Errors: RV_ENOMEM, RV_ESYS. Thread: any, with all
 * signals blocked. */
int rv__warden_start(struct rv__warden *warden, const char *dir, size_t most, rv_error *err);
void rv__warden_stop(struct rv__warden *warden); /* waits for its end; there are no groups left */

/* A group begins (before its program does), and is over (before its number is free again). `control` is
 * the number of its control file. Safe between fork and exec, whatever became of the warden. */
void rv__warden_begin(int socket, pid_t group, uint64_t control);
void rv__warden_end(int socket, pid_t group);

/* The path of a control file into `ret`. Safe between fork and exec. */
enum { RV__CONTROL_PATH = 4096 };
void rv__control_path(const char *dir, uint64_t number, char ret[RV__CONTROL_PATH]);

#endif
