/* spawn.c: see spawn.h.
 *
 * The order in the child matters. First it makes sure to die with us; then it reports its group to the warden; then
 * come the steps that can fail. Signals are unblocked last: as long as the host program's handlers are in place,
 * they could run in our memory. */
#include "exec/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "exec/warden.h"

enum stage { STAGE_NONE, STAGE_PARENT, STAGE_CONTROL, STAGE_CWD, STAGE_STDIO, STAGE_EXEC };

enum { STACK_BYTES = 64 << 10 }; /* a page would do; sanitizers have larger frames */

struct rv__spawn_room {
    enum stage stage; /* written by the child; read after it has ended */
    int error;
    char stack[STACK_BYTES];
};

struct child {
    const struct rv__spawn *spawn;
    char **paths; /* candidates for the program's path, in order */
    char **env;
    pid_t engine;
};

/* ThreadSanitizer treats every clone as a fork, and would restart itself in our memory. */
#define SHARE_MEMORY CLONE_VM
#if defined(__SANITIZE_THREAD__)
#undef SHARE_MEMORY
#define SHARE_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef SHARE_MEMORY
#define SHARE_MEMORY 0
#endif
#endif

/* The child runs on a stack that sanitizers do not know. */
#define IN_CHILD __attribute__((no_sanitize_address, no_sanitize_thread))

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin" /* without a PATH */

int rv__fd_above_stdio(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;
    close(fd);
    errno = error;
    return higher;
}

int rv__fd_pipe(int ret[2])
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if ((ends[i] = rv__fd_above_stdio(ends[i])) < 0) {
            int error = errno;
            close(ends[1 - i]);
            errno = error;
            return -1;
        }
    ret[0] = ends[0];
    ret[1] = ends[1];
    return 0;
}

/* Shared memory, because under ThreadSanitizer the child has its own. */
struct rv__spawn_room *rv__spawn_room_new(void)
{
    void *room = mmap(NULL, sizeof(struct rv__spawn_room), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED ? room : NULL;
}

void rv__spawn_room_free(struct rv__spawn_room *room)
{
    if (room != NULL)
        munmap(room, sizeof *room);
}

/* ------------------------------------------------------------------------------- the child --- */

/* By the system call: libc refuses the two signals it uses itself, and sanitizers record handlers in memory that is
 * shared with the engine. All zero means "default" on every machine. */
IN_CHILD static void default_signals(void)
{
    static const unsigned long zero[8];
    sigset_t none;
    for (int sig = 1; sig < _NSIG; sig++)
        syscall(SYS_rt_sigaction, sig, zero, NULL, _NSIG / 8);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

/* Try the next path after "not found"; remember "permission denied", as a shell does. */
IN_CHILD static int run_program(const struct child *c)
{
    int error = ENOENT;
    for (char **path = c->paths; *path != NULL; path++) {
        execve(*path, (char *const *)c->spawn->argv, c->env);
        if (errno == EACCES)
            error = EACCES;
        else if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG)
            return errno;
    }
    return error;
}

IN_CHILD static int fail(const struct child *c, enum stage stage, int error)
{
    c->spawn->room->stage = stage;
    c->spawn->room->error = error;
    _exit(127);
}

IN_CHILD static int child_main(void *arg)
{
    const struct child *c = arg;
    const struct rv__spawn *s = c->spawn;
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != c->engine) /* the engine died before */
        fail(c, STAGE_PARENT, ESRCH);
    setpgid(0, 0);
    if (s->warden >= 0)
        rv__warden_begin(s->warden, getpid(), s->control_number);

    fd = open(s->control, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        fail(c, STAGE_CONTROL, errno);
    close(fd);
    if (s->cwd != NULL && chdir(s->cwd) < 0)
        fail(c, STAGE_CWD, errno);
    if (dup2(s->in, STDIN_FILENO) < 0 || dup2(s->out, STDOUT_FILENO) < 0 ||
        dup2(s->err, STDERR_FILENO) < 0)
        fail(c, STAGE_STDIO, errno);
    /* For descriptors that the host program did not mark. An old kernel leaves them open, as any exec would. */
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    default_signals();
    return fail(c, STAGE_EXEC, run_program(c));
}

/* ------------------------------------------------------------------------------ the engine --- */

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    return n;
}

static bool same_name(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");
    return strncmp(a, b, len) == 0 && (b[len] == '=' || b[len] == '\0');
}

/* Inherited variables first, without those that are replaced. */
static char **environment(const struct rv__spawn *s, struct rv__arena *arena)
{
    static const char name[] = "RIVAL_CONTROL=";
    size_t given = count(s->env), old = count(s->inherited), n = 0, len = strlen(s->control) + 1;
    const char **env = rv__arena_zalloc(arena, given + old + 2, sizeof *env);
    char *control = rv__arena_alloc(arena, sizeof name - 1 + len);
    if (env == NULL || control == NULL)
        return NULL;
    memcpy(control, name, sizeof name - 1);
    memcpy(control + sizeof name - 1, s->control, len);
    env[n++] = control;
    for (size_t i = 0; i < given; i++)
        if (!same_name(s->env[i], control))
            env[n++] = s->env[i];
    size_t anew = n;
    for (size_t i = 0; i < old; i++) {
        size_t k = 0;
        while (k < anew && !same_name(s->inherited[i], env[k]))
            k++;
        if (k == anew)
            env[n++] = s->inherited[i];
    }
    return (char **)env;
}

static const char *variable(char *const *env, const char *name)
{
    for (; *env != NULL; env++)
        if (same_name(name, *env) && (*env)[strlen(name)] == '=')
            return *env + strlen(name) + 1;
    return NULL;
}

/* The paths that execvp would try, made before the fork because this allocates. */
static char **program_paths(const char *program, char *const *env, struct rv__arena *arena)
{
    size_t len = strlen(program), places = 1, n = 0;
    const char *at = strchr(program, '/') != NULL || len == 0 ? NULL : variable(env, "PATH");
    if (at == NULL && len > 0 && strchr(program, '/') == NULL)
        at = DEFAULT_PATH;
    for (const char *c = at; c != NULL && *c != '\0'; c++)
        places += *c == ':';
    char **paths = rv__arena_zalloc(arena, places + 1, sizeof *paths);
    if (paths == NULL)
        return NULL;
    if (at == NULL) {
        paths[0] = rv__arena_dup(arena, program, len);
        return paths[0] != NULL ? paths : NULL;
    }
    for (size_t i = 0; i < places; i++) {
        size_t dir = strcspn(at, ":");
        char *path = rv__arena_alloc(arena, dir + len + 3);
        if (path == NULL)
            return NULL;
        paths[n++] = path;
        if (dir == 0) /* an empty entry means the working directory */
            *path++ = '.';
        memcpy(path, at, dir);
        path[dir] = '/';
        memcpy(path + dir + 1, program, len + 1);
        at += dir + (at[dir] == ':');
    }
    return paths;
}

static bool is_shortage(int error)
{
    return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

static int tell_failure(const struct rv__spawn *s, rv_error *err)
{
    int error = s->room->error;
    const char *why = strerrordesc_np(error), *program = s->argv[0];
    int code = is_shortage(error) ? RV_EBUSY : RV_ESYS;
    switch (s->room->stage) {
    case STAGE_CONTROL:
        return rv__fail(err, code, "cannot make the control file '%s': %s", s->control, why);
    case STAGE_CWD:
        return rv__fail(err, code, "cannot run '%s' in the directory '%s': %s", program, s->cwd,
                        why);
    case STAGE_EXEC:
        if (error == ENOENT && strchr(program, '/') == NULL)
            return rv__fail(err, RV_ENOTFOUND, "cannot run '%s': there is no such program in PATH",
                            program);
        if (error == ENOENT)
            return rv__fail(err, RV_ENOTFOUND,
                            "cannot run '%s': there is no such file, or the interpreter that its "
                            "first line names is missing",
                            program);
        if (error == ENOEXEC)
            return rv__fail(err, code, "cannot run '%s': not a program (does it lack a #! line?)",
                            program);
        if (error == EACCES)
            return rv__fail(err, code, "cannot run '%s': permission denied (is it executable?)",
                            program);
        break;
    case STAGE_NONE:
    case STAGE_PARENT:
    case STAGE_STDIO: break;
    }
    return rv__fail(err, code, "cannot run '%s': %s", program, why);
}

int rv__spawn(const struct rv__spawn *spawn, struct rv__arena *arena, pid_t *ret, int *ret_pidfd,
              rv_error *err)
{
    struct child c = { .spawn = spawn, .engine = getpid() };
    struct rv__spawn_room *room = spawn->room;
    int pidfd = -1;

    c.env = environment(spawn, arena);
    c.paths = c.env != NULL ? program_paths(spawn->argv[0], c.env, arena) : NULL;
    if (c.paths == NULL)
        return rv__nomem(err);

    room->stage = STAGE_NONE;
    pid_t pid = clone(child_main, room->stack + STACK_BYTES,
                      SHARE_MEMORY | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &c, &pidfd);
    if (pid < 0)
        return rv__fail(err, is_shortage(errno) ? RV_EBUSY : RV_ESYS,
                        "cannot make a process for '%s': %s", spawn->argv[0],
                        strerrordesc_np(errno));

    if (room->stage != STAGE_NONE) { /* it has called _exit: this returns at once */
        siginfo_t info;
        if (spawn->warden >= 0)
            rv__warden_end(spawn->warden, pid);
        while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0 && errno == EINTR)
            ;
        close(pidfd);
        unlink(spawn->control);
        return tell_failure(spawn, err);
    }
    *ret = pid;
    *ret_pidfd = pidfd;
    return RV_OK;
}
