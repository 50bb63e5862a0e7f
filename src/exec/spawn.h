/* spawn.h: from a program's name to a process, and nothing of the engine's left in it.
 *
 * The child is made like vfork's: it shares our memory and we stand still until it runs its program or
 * fails. So the size of the engine costs nothing, and the reason of a failure is known on return: "no
 * such file" is not an exit code. It has its own stack, and runs nothing but system calls. */
#ifndef RV_EXEC_SPAWN_H
#define RV_EXEC_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#include <rival/base.h>

struct rv__arena;

struct rv__spawn {
    const char *const *argv;
    const char *const *env;       /* over `inherited`; NULL: nothing */
    const char *const *inherited; /* ends with NULL */
    const char *cwd;              /* NULL: as ours */
    const char *control;          /* the file that is made for it; in its environment */
    uint64_t control_number;      /* the same, for the warden */
    int in, out, err;             /* its ends, all above 2; they stay ours to close */
    int warden;                   /* socket, or -1 */
    struct rv__spawn_room *room;  /* nobody else's meanwhile */
};

/* The stack that children begin on, one after the other, and the place where they say what failed. */
struct rv__spawn_room *rv__spawn_room_new(void); /* NULL: no memory */
void rv__spawn_room_free(struct rv__spawn_room *room);

/* Start it, in a process group of its own, to be killed when the calling thread ends. *ret is the
 * process, *ret_pidfd a descriptor for it, both to be waited for. `arena` is for what is needed on the
 * way. Thread: any, with all signals blocked.
 *
 * Errors: RV_ENOTFOUND: no such program; RV_EBUSY: the system has no room for it now, try again;
 * RV_ESYS, RV_ENOMEM. */
int rv__spawn(const struct rv__spawn *spawn, struct rv__arena *arena, pid_t *ret, int *ret_pidfd,
              rv_error *err);

/* The same descriptor, or one above 2 in its place; -1, with errno set, and the old one closed. A host
 * program may have closed its standard descriptors, and ours then land there. */
int rv__fd_above_stdio(int fd);

/* A pipe, closed on exec, above 2. -1, with errno set. */
int rv__fd_pipe(int ret[2]);

#endif
