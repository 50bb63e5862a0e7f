/* warden.c: see warden.h. Code in the warden process uses only calls that are safe after a fork of a program with
 * threads: no allocation, no locks, no stdio. */
#include "exec/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "exec/spawn.h"

enum note_kind { NOTE_BEGIN, NOTE_END, NOTE_GO };

struct note {
    int32_t kind;
    int32_t group;
    uint64_t control;
};

struct ward {
    pid_t group; /* 0: free */
    uint64_t control;
};

struct watch {
    int notes, engine; /* the socket; a pidfd */
    const char *dir;
    struct ward *wards;
    size_t most;
};

void rv__control_path(const char *dir, uint64_t number, char ret[RV__CONTROL_PATH])
{
    char digits[20];
    size_t at = sizeof digits, len = strnlen(dir, RV__CONTROL_PATH - sizeof digits - 2);
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    memcpy(ret, dir, len);
    ret[len++] = '/';
    memcpy(ret + len, digits + at, sizeof digits - at);
    ret[len + sizeof digits - at] = '\0';
}

/* ------------------------------------------------------------------------------ the engine --- */

static void tell(int socket, struct note note)
{
    /* This blocks if the warden is far behind, which is intended. If the warden has died, only the parent-death
     * signal is left, but the command must not fail. */
    while (send(socket, &note, sizeof note, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

void rv__warden_begin(int socket, pid_t group, uint64_t control)
{
    tell(socket, (struct note){ NOTE_BEGIN, group, control });
}

void rv__warden_end(int socket, pid_t group)
{
    tell(socket, (struct note){ NOTE_END, group, 0 });
}

/* ------------------------------------------------------------------------------ the warden --- */

static void keep(struct watch *w, const struct note *note)
{
    pid_t wanted = note->kind == NOTE_BEGIN ? 0 : note->group;
    for (size_t i = 0; i < w->most; i++)
        if (w->wards[i].group == wanted) {
            w->wards[i].group = note->kind == NOTE_BEGIN ? note->group : 0;
            w->wards[i].control = note->control;
            return;
        }
}

/* False: the engine told it to exit, or has ended. */
static bool take_note(struct watch *w, int flags)
{
    struct note note;
    ssize_t n = recv(w->notes, &note, sizeof note, flags);
    if (n < 0)
        return errno == EINTR;
    if (n != sizeof note)
        return false;
    if (note.kind == NOTE_GO)
        _exit(0);
    keep(w, &note);
    return true;
}

static void clean_up(const struct watch *w)
{
    char path[RV__CONTROL_PATH];
    for (size_t i = 0; i < w->most; i++)
        if (w->wards[i].group > 0)
            kill(-w->wards[i].group, SIGKILL);
    for (size_t i = 0; i < w->most; i++)
        if (w->wards[i].group > 0) {
            rv__control_path(w->dir, w->wards[i].control, path);
            unlink(path);
        }
    rmdir(w->dir);
}

static void RV_NORETURN watch(struct watch *w)
{
    struct pollfd polls[2] = { { .fd = 0, .events = POLLIN }, { .fd = 1, .events = POLLIN } };
    prctl(PR_SET_NAME, "rival-warden");
    setsid(); /* so that Ctrl-C on the engine's terminal does not reach it */
    if (dup2(w->notes, 0) < 0 || dup2(w->engine, 1) < 0)
        _exit(1);
    close_range(2, ~0U, 0);
    (void)!chdir("/"); /* so that it blocks no unmount */
    w->notes = 0;

    bool alive = true;
    while (alive) {
        if (poll(polls, 2, -1) < 0)
            continue;
        if (polls[0].revents != 0)
            alive = take_note(w, 0);
        else if (polls[1].revents != 0)
            alive = false;
    }
    /* All threads of the engine have ended, so every child before its exec has either reported itself, or will
     * notice that its parent is gone. */
    while (take_note(w, MSG_DONTWAIT))
        ;
    clean_up(w);
    _exit(0);
}

/* ------------------------------------------------------------------------------------------ */

int rv__warden_start(struct rv__warden *warden, const char *dir, size_t most, rv_error *err)
{
    int pair[2] = { -1, -1 }, rc = RV_OK;
    struct watch w = { .engine = -1, .dir = dir, .most = most };

    warden->socket = -1;
    w.wards = rv__zalloc(most, sizeof *w.wards);
    if (w.wards == NULL)
        return rv__nomem(err);

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
        (pair[0] = rv__fd_above_stdio(pair[0])) < 0 ||
        (pair[1] = rv__fd_above_stdio(pair[1])) < 0 ||
        (w.engine = rv__fd_above_stdio((int)syscall(SYS_pidfd_open, getpid(), 0))) < 0) {
        rc = rv__fail(err, RV_ESYS, "cannot make the warden's descriptors: %s",
                      strerrordesc_np(errno));
        goto out;
    }
    w.notes = pair[1];

    warden->pid = (pid_t)syscall(SYS_clone, 0L, NULL, NULL, NULL, 0L); /* 0: no exit signal */
    if (warden->pid == 0)
        watch(&w);
    if (warden->pid < 0) {
        rc = rv__fail(err, RV_ESYS, "cannot make the warden's process: %s", strerrordesc_np(errno));
        goto out;
    }
    warden->socket = pair[0];
    pair[0] = -1;
out:
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
    if (w.engine >= 0)
        close(w.engine);
    rv__free(w.wards);
    return rc;
}

void rv__warden_stop(struct rv__warden *warden)
{
    if (warden->socket < 0)
        return;
    tell(warden->socket, (struct note){ .kind = NOTE_GO });
    close(warden->socket);
    while (waitpid(warden->pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    warden->socket = -1;
}
