/* compiler.c: runs the compiler as a child of a child.
 *
 *   this process ──▶ a keeper, leader of a process group ──▶ cc ──▶ cc1, as, ld …
 *
 * A time-out kills the group. When this process ends, for whatever reason, the kernel signals the keeper, which
 * kills the group: otherwise cc's own children would continue, since the parent-death signal reaches only one
 * process. The keeper is a fork of a program with threads, so it calls only what a signal handler may. */
#include "define/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"

enum {
    TIMEOUT_MS = 120000,    /* a file of steps compiles in a second or two */
    SAID_BYTES = 256 << 10, /* of the compiler's output; the rest is read and dropped */
    CANNOT_RUN = 127,
    FAILED = 3, /* the child's descriptor for the reason why it could not run */
    FOLDER = 4, /* RV__COMPILER_FOLDER */
};

/* --------------------------------------------------------------------------- arguments --- */

void rv__compiler_add(struct rv__compiler_call *call, const char *word)
{
    if (call->argc < RV__COMPILER_ARGS - 1)
        call->argv[call->argc++] = word;
    call->argv[call->argc] = NULL;
}

void rv__compiler_add_words(struct rv__compiler_call *call, const char *text)
{
    while (text != NULL && *text != '\0') {
        size_t blanks = strspn(text, " \t"), len = strcspn(text + blanks, " \t");
        text += blanks;
        if (len == 0 || call->used + len + 1 > sizeof call->words)
            break;
        char *word = call->words + call->used;
        memcpy(word, text, len);
        word[len] = '\0';
        call->used += len + 1;
        rv__compiler_add(call, word);
        text += len;
    }
}

void rv__compiler_begin(struct rv__compiler_call *call)
{
    const char *cc = getenv("CC");
    call->argc = 0;
    call->used = 0;
    rv__compiler_add_words(call, cc != NULL && *cc != '\0' ? cc : "cc");
    if (call->argc == 0)
        rv__compiler_add(call, "cc");
}

static int64_t timeout_ms(void)
{
    const char *said = getenv("RIVAL_COMPILE_TIMEOUT");
    int64_t ms;
    if (said != NULL && rv__duration_ms(rv__str(said), &ms) == RV_OK && ms > 0)
        return ms;
    return TIMEOUT_MS;
}

/* ----------------------------------------------------------------------------- the child --- */

static void kill_group(int signal)
{
    (void)signal;
    (void)kill(0, SIGKILL); /* the keeper too */
}

struct descriptors {
    int out, said, failed, dir;
};

/* Set up standard input, output and error, then `failed` and `dir`; close everything else. */
static bool take_descriptors(const struct descriptors *d)
{
    enum { COUNT = FOLDER + 1, ABOVE = 10 }; /* none is overwritten before it is moved */
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int from[COUNT] = { null, d->out,
                        d->said, [FAILED] = d->failed, [FOLDER] = d->dir >= 0 ? d->dir : null };
    for (int i = 0; i < COUNT; i++) {
        from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, ABOVE);
        if (from[i] < 0)
            return false;
    }
    for (int i = 0; i < COUNT; i++)
        if (dup3(from[i], i, i == FAILED ? O_CLOEXEC : 0) < 0)
            return false;
    return close_range(COUNT, ~0u, 0) == 0;
}

/* Runs in the fork. Failures can be reported only by the exit code and FAILED. It keeps standard error open until
 * it ends, so the end of that is the end of all. */
static _Noreturn void keep(const struct rv__compiler_call *call, const struct descriptors *d,
                           pid_t parent)
{
    struct sigaction action = { .sa_handler = kill_group };
    sigset_t none;
    int status;
    sigemptyset(&none);
    if (setpgid(0, 0) < 0 || sigaction(SIGTERM, &action, NULL) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || pthread_sigmask(SIG_SETMASK, &none, NULL) != 0 ||
        getppid() != parent || /* the parent died before */
        !take_descriptors(d))
        _exit(CANNOT_RUN);
    pid_t pid = fork();
    if (pid == 0) {
        action.sa_handler = SIG_DFL;
        (void)sigaction(SIGTERM, &action, NULL);
        (void)sigaction(SIGPIPE, &action, NULL);
        (void)execvp(call->argv[0], (char *const *)(uintptr_t)call->argv);
        (void)!write(FAILED, &errno, sizeof errno);
        _exit(CANNOT_RUN);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : CANNOT_RUN + 1);
}

/* Read its output, until it ends or the time is over. */
static int listen_to(int fd, pid_t pid, struct rv__buf *said, rv_error *err)
{
    int64_t limit = timeout_ms(), until = rv__mono_ms(rv__clock_real()) + limit;
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char bytes[4096];
    for (;;) {
        int64_t left = until - rv__mono_ms(rv__clock_real());
        if (left <= 0) {
            (void)kill(-pid, SIGKILL);
            return rv__fail(err, RV_ETIMEDOUT,
                            "the C compiler was stopped after %lld ms (RIVAL_COMPILE_TIMEOUT says "
                            "how long it may take)",
                            (long long)limit);
        }
        if (poll(&p, 1, left > 60000 ? 60000 : (int)left) <= 0)
            continue;
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n == 0 || (n < 0 && errno != EINTR))
            return RV_OK;
        if (n > 0 && said->len + (size_t)n <= SAID_BYTES)
            rv__buf_add(said, bytes, (size_t)n);
    }
}

int rv__compiler_run(const struct rv__compiler_call *call, int out, int dir, struct rv__buf *said,
                     rv_error *err)
{
    int pair[2], failed[2], status = 0, why = 0;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return rv__fail(err, RV_ESYS, "no pipe to the compiler: %m");
    if (pipe2(failed, O_CLOEXEC) < 0) {
        int rc = rv__fail(err, RV_ESYS, "no pipe to the compiler: %m");
        close(pair[0]);
        close(pair[1]);
        return rc;
    }
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        keep(call, &(struct descriptors){ out >= 0 ? out : pair[1], pair[1], failed[1], dir },
             parent);
    close(pair[1]);
    close(failed[1]);
    int rc = RV_OK;
    if (pid < 0) {
        rc = rv__fail(err, RV_ESYS, "no process for the compiler: %m");
    } else {
        (void)setpgid(pid, pid); /* both processes do this, so that it is done before a kill */
        rc = listen_to(pair[0], pid, said, err);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (rc == RV_OK && read(failed[0], &why, sizeof why) == (ssize_t)sizeof why) {
        errno = why;
        rc = rv__fail(err, RV_ENOTFOUND,
                      "the C compiler '%s' cannot be run (%m): install one, name it in CC, or "
                      "give a compiled .so",
                      call->argv[0]);
    }
    close(pair[0]);
    close(failed[0]);
    if (rc < 0)
        return rc;
    return WIFEXITED(status) ? WEXITSTATUS(status) : CANNOT_RUN + 1;
}
