/* act.h: a step that does what its input says, good or bad. For workflow files of test_host.c. */
#include <fcntl.h>
#include <limits.h>
#include <rival/rival.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Leave a file with a text in the folder that the input names. */
static void leave_note(rv_ctx *c, const char *name, long n)
{
    char path[PATH_MAX], text[32];
    const char *folder = rv_str(c, ".input.folder");
    snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : ".", name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int len = snprintf(text, sizeof text, "%ld", n);
    if (fd < 0 || write(fd, text, (size_t)len) != len)
        abort();
    close(fd);
}

static int is_noted(rv_ctx *c, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", rv_str(c, ".input.folder"), name);
    return access(path, F_OK) == 0;
}

static volatile int *nowhere;
static volatile unsigned long turns;

static int act(rv_ctx *c)
{
    const char *what = rv_str(c, ".input.do");
    if (strcmp(what, "segfault") == 0)
        *nowhere = 1;
    static const struct {
        const char *what;
        int signal;
    } raised[] = { { "raise-SEGV", SIGSEGV },
                   { "raise-BUS", SIGBUS },
                   { "raise-ILL", SIGILL },
                   { "raise-FPE", SIGFPE } };
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++)
        if (strcmp(what, raised[i].what) == 0)
            raise(raised[i].signal);
    if (strcmp(what, "kill-SEGV") == 0)
        kill(getpid(), SIGSEGV);
    if (strcmp(what, "abort") == 0)
        abort();
    if (strcmp(what, "exit") == 0)
        exit(3);
    if (strcmp(what, "panic") == 0)
        rv_panic("a bug: %d", 42);
    if (strcmp(what, "garbage") == 0) {
        if (write(3, "GET / HTTP/1.0\r\n\r\n", 18) != 18)
            abort();
        pause();
    }
    if (strcmp(what, "close") == 0) {
        close(3);
        pause();
    }
    if ((strcmp(what, "once") == 0 || strcmp(what, "relapse") == 0) && !is_noted(c, "been")) {
        leave_note(c, "been", 1);
        raise(SIGKILL);
    }
    if (strcmp(what, "loop") == 0) {
        leave_note(c, "pid", getpid());
        for (;;)
            turns++;
    }
    if (strcmp(what, "poll") == 0) {
        leave_note(c, "pid", getpid());
        rv_log_info(c, "polling");
        while (!rv_ctx_cancelled(c))
            turns++;
        leave_note(c, "stopped", getpid());
        return rv_fail(c, "told to stop");
    }
    if (strcmp(what, "wait") == 0 || strcmp(what, "relapse") == 0) {
        leave_note(c, "pid", getpid());
        rv_log_info(c, "waiting");
        rv_cancel_wait(rv_ctx_token(c), -1);
        leave_note(c, "stopped", getpid());
        return rv_fail(c, "told to stop");
    }
    if (strcmp(what, "stay") == 0) {
        leave_note(c, rv_ctx_run_id(c), getpid());
        rv_cancel_wait(rv_ctx_token(c), -1);
    }
    if (strcmp(what, "eat") == 0) {
        char *volatile much = malloc((size_t)1 << 30);
        memset(much, 1, (size_t)1 << 30);
        return rv_return(c, "i", much[12345]);
    }
    if (strcmp(what, "print") == 0 || strcmp(what, "print and die") == 0) {
        printf("first\nsec");
        printf("ond\n\xff\n");
        if (system("echo third") != 0)
            abort();
        for (int i = 0; i < 20000; i++) /* more than a pipe holds */
            printf("0123456789\n");
        printf(what[5] == '\0' ? "no newline" : "last words\n");
        if (what[5] != '\0')
            raise(SIGKILL);
        fclose(stdout); /* and nobody minds */
    }
    if (strcmp(what, "nap") == 0)
        usleep(20000);
    if (strcmp(what, "fail") == 0)
        return rv_retry(c, RV_RETRY_OPTS(.max_attempts = 2, .backoff = RV_EXPONENTIAL),
                        "attempt %d", rv_ctx_attempt(c));
    return rv_return(c, "{s:i}", "pid", (int)getpid());
}
