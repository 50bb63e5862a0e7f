/* spawn.h: starts a program in a new process that inherits nothing of the engine.
 *
 * The child is made as by vfork: it shares our memory, and we are stopped until it runs its program or fails. So a
 * large engine costs nothing, and the reason of a failure is known on return ("no such file" is not an exit code).
 * The child has its own stack, and makes nothing but system calls. */
#ifndef RV_EXEC_SPAWN_H
#define RV_EXEC_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#include <rival/base.h>

struct rv__arena;

struct rv__spawn {
    const char *const *argv;
    const char *const *env;       /* added to `inherited`; NULL: none */
    const char *const *inherited; /* ends with NULL */
    const char *cwd;              /* NULL: as ours */
    const char *control;          /* its control file; the path is in its environment */
    uint64_t control_number;      /* the number of that file, for the warden */
    int in, out, err;             /* its ends, all above 2; the caller closes them */
    int warden;                   /* socket, or -1 */
    struct rv__spawn_room *room;  /* used by nothing else meanwhile */
};

/* The stack for children, used by one at a time, and the place where they report what failed. */
struct rv__spawn_room *rv__spawn_room_new(void); /* NULL: no memory */
void rv__spawn_room_free(struct rv__spawn_room *room);

/* Start a program in its own process group; it is killed when the calling thread ends. *ret is the process,
 * *ret_pidfd a descriptor for it; the caller waits for it. `arena` holds temporary data. Thread: any, with all
 * signals blocked.
 *
 * Errors: RV_ENOTFOUND: no such program; RV_EBUSY: the system has no resources for it now, try again; RV_ESYS,
 * RV_ENOMEM. */
int rv__spawn(const struct rv__spawn *spawn, struct rv__arena *arena, pid_t *ret, int *ret_pidfd,
              rv_error *err);

/* Returns the same descriptor, or a copy above 2; -1: error, with errno set and the old one closed. A host program
 * may have closed its standard descriptors, so that new descriptors get these numbers. */
int rv__fd_above_stdio(int fd);

/* A pipe, closed on exec, above 2. -1, with errno set. */
int rv__fd_pipe(int ret[2]);

#endif
