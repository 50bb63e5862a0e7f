/* cli.h: what the commands of `rival` share. */
#ifndef RV_CLI_CLI_H
#define RV_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rival/base.h>
#include <rival/rival.h>

/* Exit codes (SPEC: command line). */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_CANCELLED = 3,
};

/* A command: one row in main.c, one file of its own. */
struct rv__command {
    const char *name;
    const char *arguments; /* as the usage line shows them */
    const char *summary;   /* one line for the list */
    const char *help;      /* the rest of `rival NAME --help`: options, what it does, examples */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
};

int rv__cmd_check(int argc, char **argv);
int rv__cmd_demo(int argc, char **argv);
int rv__cmd_plan(int argc, char **argv);
int rv__cmd_host(int argc, char **argv);
int rv__cmd_version(int argc, char **argv);

/* demo_resume.c: the demo, and the processes that it starts and kills. */
int rv__demo_resume(rv_cancel *interrupt);
int rv__demo_resume_process(const char *number, const char *store);

/* Say on stderr what is wrong and where to learn more; returns CLI_USAGE. */
int rv__cli_usage(const char *command, const char *fmt, ...) RV_PRINTF(2, 3);

/* A problem in a file as people and editors read it: place, sentence, line, caret. */
void rv__cli_problem(FILE *to, const rv_problem *problem);

/* Terminal colours, or "" where they would be noise (no terminal, NO_COLOR, TERM=dumb). */
enum rv__colour { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, CYAN };
const char *rv__colour(FILE *to, enum rv__colour colour);

/* Wait, unless the token fires: true if all that time has passed. */
bool rv__cli_pause(rv_cancel *by, int64_t ms);

/* Fire `token` at the first Ctrl-C or SIGTERM; at the second, leave the process at once. Call it
 * before any thread is made. Returns 0 or RV_ESYS. */
int rv__interrupt_fires(rv_cancel *token);

#endif
