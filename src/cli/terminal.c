/* terminal.c: colours where they help, and Ctrl-C as a cancel token. */
#include "cli/cli.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_INTERRUPTED = 130 }; /* what shells report for SIGINT */

const char *rv__colour(FILE *to, enum rv__colour colour)
{
    static const char *const codes[] = {
        [PLAIN] = "\033[0m",  [BOLD] = "\033[1m",    [DIM] = "\033[2m",   [RED] = "\033[31m",
        [GREEN] = "\033[32m", [YELLOW] = "\033[33m", [CYAN] = "\033[36m",
    };
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if ((no_color != NULL && *no_color != '\0') || (term != NULL && strcmp(term, "dumb") == 0))
        return "";
    return isatty(fileno(to)) ? codes[colour] : "";
}

int rv__cli_usage(const char *command, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "%srival:%s ", rv__colour(stderr, RED), rv__colour(stderr, PLAIN));
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\n  see: rival%s%s --help\n", command != NULL ? " " : "",
            command != NULL ? command : "");
    return CLI_USAGE;
}

/* A thread that waits for signals: a handler could not fire a token, which takes a lock. */
static void *wait_for_signals(void *arg)
{
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    (void)sigwait(&set, &number); /* fails for a bad set only */
    rv_cancel_fire(arg, RV_ECANCELED, number == SIGINT ? "interrupted (Ctrl-C)" : "terminated");
    (void)sigwait(&set, &number);
    _exit(EXIT_INTERRUPTED);
}

int rv__interrupt_fires(rv_cancel *token)
{
    sigset_t set;
    pthread_t thread;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return RV_ESYS;
    if (pthread_create(&thread, NULL, wait_for_signals, token) != 0)
        return RV_ESYS;
    pthread_detach(thread);
    return RV_OK;
}
