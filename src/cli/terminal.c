/* terminal.c: colours, the cursor, and Ctrl-C as a cancel token. */
#include "cli/cli.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS = 80, ROWS = 24, SIZE_MOST = 1000 };

static const char show_cursor[] = "\033[?25h", hide_cursor[] = "\033[?25l";
static atomic_int hidden_on = -1; /* the file whose cursor is hidden: a process has one terminal */

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

bool rv__terminal_is(FILE *to)
{
    const char *term = getenv("TERM");
    return isatty(fileno(to)) && term != NULL && *term != '\0' && strcmp(term, "dumb") != 0;
}

struct rv__terminal_size rv__terminal_size(FILE *to)
{
    struct winsize size = { 0 };
    struct rv__terminal_size ret = { COLUMNS, ROWS };
    if (ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0)
        ret = (struct rv__terminal_size){ size.ws_col, size.ws_row };
    ret.columns = ret.columns < SIZE_MOST ? ret.columns : SIZE_MOST;
    ret.rows = ret.rows < SIZE_MOST ? ret.rows : SIZE_MOST;
    return ret;
}

void rv__terminal_cursor(FILE *to, bool shown)
{
    atomic_store(&hidden_on, shown ? -1 : fileno(to));
    fputs(shown ? show_cursor : hide_cursor, to);
    fflush(to);
}

int rv__cli_fail(int code, const char *message, const char *hint)
{
    fprintf(stderr, "%srival:%s %s\n", rv__colour(stderr, RED), rv__colour(stderr, PLAIN), message);
    if (hint != NULL)
        fprintf(stderr, "  %s\n", hint);
    return code;
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

/* A thread that waits for signals: a handler must not fire a token, which takes a lock. */
static void *wait_for_signals(void *arg)
{
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    (void)sigwait(&set, &number); /* fails only for a bad set */
    rv_cancel_fire(arg, RV_ECANCELED, number == SIGINT ? "interrupted (Ctrl-C)" : "terminated");
    (void)sigwait(&set, &number);
    int terminal = atomic_load(&hidden_on);
    if (terminal >= 0)
        (void)!write(terminal, show_cursor, sizeof show_cursor - 1); /* we exit either way */
    _exit(CLI_INTERRUPTED);
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

rv_cancel *rv__cli_interrupt(void)
{
    rv_cancel *token = rv_cancel_new(NULL);
    if (token != NULL && rv__interrupt_fires(token) == RV_OK)
        return token;
    rv_cancel_free(token);
    (void)rv__cli_fail(CLI_FAILED, "cannot watch for Ctrl-C", NULL);
    return NULL;
}
