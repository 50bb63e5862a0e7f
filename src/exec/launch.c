/* launch.c: starts and ends host processes.
 *
 * A host gets its socket as descriptor 3, /dev/null as standard input, a pipe as standard output and our standard
 * error; no other descriptor, and no blocked signals. It leads its own process group, so that its children end with
 * it. It asks for the parent-death signal itself, which is sent when the *thread* that started it ends: so one
 * thread of the pool, which lives as long as the pool, starts all of them. */
#include "exec/launch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

enum { HOST_FD = 3 };

/* ---------------------------------------------------------------------------- the program --- */

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

static bool beside_library(struct rv__buf *path)
{
    static const char *const places[] = { "rival", "../bin/rival", "../../bin/rival" };
    Dl_info info;
    if (dladdr((void *)(uintptr_t)rv__hosts_program, &info) == 0 || info.dli_fname == NULL)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    size_t folder = slash != NULL ? (size_t)(slash - info.dli_fname) + 1 : 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        rv__buf_reset(path);
        rv__buf_add(path, info.dli_fname, folder);
        rv__buf_text(path, places[i]);
        if (path->rc == RV_OK && is_program(path->text))
            return true;
    }
    return false;
}

static bool in_path(struct rv__buf *path)
{
    const char *at = getenv("PATH");
    while (at != NULL && *at != '\0') {
        size_t len = strcspn(at, ":");
        rv__buf_reset(path);
        rv__buf_add(path, at, len);
        rv__buf_text(path, "/rival");
        if (len > 0 && path->rc == RV_OK && is_program(path->text))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

static int find_program(struct rv__buf *path, const char *without, rv_error *err)
{
    char self[4096];
    const char *said = getenv("RIVAL_HOST");
    if (said != NULL && *said != '\0') {
        rv__buf_text(path, said);
        if (!is_program(said))
            return rv__fail(err, RV_ENOTFOUND, "RIVAL_HOST is '%.150s', which cannot be run", said);
        return rv__buf_err(path, err);
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        const char *name = strrchr(self, '/');
        if (name != NULL && strcmp(name, "/rival") == 0) {
            rv__buf_text(path, "/proc/self/exe"); /* works even after an upgrade */
            return rv__buf_err(path, err);
        }
    }
    if (beside_library(path) || in_path(path))
        return RV_OK;
    return rv__fail(err, RV_ENOTFOUND, "%s", without);
}

int rv__hosts_program(struct rv__buf *path, rv_error *err)
{
    return find_program(path,
                        "the program 'rival', in which C files run, was not found: install it in "
                        "PATH, name it in RIVAL_HOST, or register the file with .in_process = true",
                        err);
}

int rv__evaluator_program(struct rv__buf *path, rv_error *err)
{
    return find_program(
        path,
        "expressions in jq need the program 'rival', which was not found: install "
        "it in PATH or name it in RIVAL_HOST (plain paths such as .input.id do not)",
        err);
}

/* ------------------------------------------------------------------------------- beginning --- */

static int attributes(posix_spawnattr_t *attr)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int rc = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                POSIX_SPAWN_SETSIGDEF);
    rc = rc ? rc : posix_spawnattr_setpgroup(attr, 0);
    rc = rc ? rc : posix_spawnattr_setsigmask(attr, &none);
    return rc ? rc : posix_spawnattr_setsigdefault(attr, &all);
}

static int file_actions(posix_spawn_file_actions_t *actions, int socket, int out)
{
    int rc = posix_spawn_file_actions_adddup2(actions, socket, HOST_FD);
    rc = rc ? rc : posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    rc = rc ? rc : posix_spawn_file_actions_adddup2(actions, out, 1);
    return rc ? rc : posix_spawn_file_actions_addclosefrom_np(actions, HOST_FD + 1);
}

static int start(const char *program, const char *command, const char *module,
                 uint64_t memory_bytes, int socket, int out, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    char parent[24], memory[24];
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)memory_bytes);
    char *argv[6] = { (char *)"rival", (char *)command };
    size_t argc = 2;
    if (module != NULL)
        argv[argc++] = (char *)module;
    argv[argc++] = parent;
    argv[argc] = memory;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attr);
    if (rc == 0) {
        rc = file_actions(&actions, socket, out);
        rc = rc ? rc : attributes(&attr);
        rc = rc ? rc : posix_spawn(pid, program, &actions, &attr, argv, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

int rv__child_start(const char *program, const char *command, const char *module,
                    uint64_t memory_bytes, struct rv__child *ret, rv_error *err)
{
    int pair[2], out[2];
    pid_t pid;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return rv__fail(err, RV_ESYS, "no socket for a process: %m");
    if (pipe2(out, O_CLOEXEC) < 0) {
        int rc = rv__fail(err, RV_ESYS, "no pipe for a process: %m");
        close(pair[0]);
        close(pair[1]);
        return rc;
    }
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK); /* only our end; it cannot fail */
    int rc = start(program, command, module, memory_bytes, pair[1], out[1], &pid);
    close(pair[1]);
    close(out[1]);
    if (rc != 0) {
        close(pair[0]);
        close(out[0]);
        errno = rc; /* posix_spawn returns it */
        return rv__fail(err, RV_ESYS, "the process '%s %s' cannot be started: %m", program,
                        command);
    }
    *ret = (struct rv__child){
        .pid = pid, .fd = pair[0], .out = out[0], .pidfd = (int)syscall(SYS_pidfd_open, pid, 0)
    };
    return RV_OK;
}

/* --------------------------------------------------------------------------------- ending --- */

bool rv__child_ended(const struct rv__child *process)
{
    struct pollfd p = { .fd = process->pidfd, .events = POLLIN };
    return process->pidfd >= 0 && poll(&p, 1, 0) > 0;
}

void rv__child_signal(const struct rv__child *process, int signal)
{
    (void)kill(-process->pid, signal); /* not reaped yet: the number cannot be reused */
}

int rv__child_reap(struct rv__child *process, int64_t patience_ms)
{
    int status = 0;
    struct pollfd p = { .fd = process->pidfd, .events = POLLIN };
    if (process->fd >= 0)
        close(process->fd);
    if (process->out >= 0)
        close(process->out);
    if (process->pidfd >= 0)
        (void)poll(&p, 1, (int)patience_ms); /* its own exit status says more than our SIGKILL */
    rv__child_signal(process, SIGKILL);      /* to the whole group */
    pid_t got;
    do
        got = waitpid(process->pid, &status, 0);
    while (got < 0 && errno == EINTR);
    if (process->pidfd >= 0)
        close(process->pidfd);
    return got == process->pid ? status : -1;
}

void rv__child_tell(int status, char *text, size_t size)
{
    if (status == -1) {
        snprintf(text, size, "ended for an unknown reason");
    } else if (WIFSIGNALED(status)) {
        int sig = WTERMSIG(status);
        const char *name = sigabbrev_np(sig), *says = sigdescr_np(sig);
        snprintf(text, size, "was killed by signal %d (SIG%s: %s)", sig, name ? name : "?",
                 says ? says : "unknown");
    } else {
        snprintf(text, size, "exited with code %d", WEXITSTATUS(status));
    }
}
