/* launch.h: start and end of a host process. Inside exec/ only. */
#ifndef RV_EXEC_LAUNCH_H
#define RV_EXEC_LAUNCH_H

#include <sys/types.h>

#include "exec/exec.h"

struct rv__child {
    pid_t pid;
    int fd;    /* our end of its socket; -1: passed on to another owner */
    int pidfd; /* readable when it has ended; -1: the kernel is too old */
    int out;   /* its printed output, non-blocking; -1: closed */
};

/* Run `rival COMMAND [MODULE] PARENT MEMORY`; module NULL: without. Thread: one that lives as long as the process
 * should. Errors: RV_ESYS. */
int rv__child_start(const char *program, const char *command, const char *module,
                    uint64_t memory_bytes, struct rv__child *ret, rv_error *err);
bool rv__child_ended(const struct rv__child *process);
void rv__child_signal(const struct rv__child *process, int signal); /* to its process group */

/* Wait until it has ended; kill it after `patience_ms`. Closes all descriptors. Returns its status as of waitpid();
 * -1: other code has already taken the status. */
int rv__child_reap(struct rv__child *process, int64_t patience_ms);
void rv__child_tell(int status, char *text, size_t size); /* "was killed by signal 11 (…)" */

#endif
