/* cli.h: what the commands of `rival` share. */
#ifndef RV_CLI_CLI_H
#define RV_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rival/base.h>
#include <rival/rival.h>

#include "cli/command.h"

/* Exit codes (SPEC: command line). */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_CANCELLED = 3,
    CLI_SUSPENDED = 4,
    CLI_GONE = 5,          /* the store was deleted or replaced meanwhile */
    CLI_TIMED_OUT = 124,   /* as timeout(1): the run continues */
    CLI_INTERRUPTED = 130, /* as shells report SIGINT: the run can be continued later */
};

/* The commands, each in its own file; commands.c lists them. */
extern const struct rv__command rv__cmd_backup;
extern const struct rv__command rv__cmd_cancel;
extern const struct rv__command rv__cmd_check;
extern const struct rv__command rv__cmd_complete;
extern const struct rv__command rv__cmd_complete_handle;
extern const struct rv__command rv__cmd_decide;
extern const struct rv__command rv__cmd_describe;
extern const struct rv__command rv__cmd_demo;
extern const struct rv__command rv__cmd_exec;
extern const struct rv__command rv__cmd_export;
extern const struct rv__command rv__cmd_evaluator;
extern const struct rv__command rv__cmd_host;
extern const struct rv__command rv__cmd_kit;
extern const struct rv__command rv__cmd_import;
extern const struct rv__command rv__cmd_list;
extern const struct rv__command rv__cmd_attachments;
extern const struct rv__command rv__cmd_audit;
extern const struct rv__command rv__cmd_logs;
extern const struct rv__command rv__cmd_mcp;
extern const struct rv__command rv__cmd_members;
extern const struct rv__command rv__cmd_new;
extern const struct rv__command rv__cmd_manifest;
extern const struct rv__command rv__cmd_plan;
extern const struct rv__command rv__cmd_copy;
extern const struct rv__command rv__cmd_retain;
extern const struct rv__command rv__cmd_run;
extern const struct rv__command rv__cmd_serve;
extern const struct rv__command rv__cmd_show;
extern const struct rv__command rv__cmd_signal;
extern const struct rv__command rv__cmd_version;
extern const struct rv__command rv__cmd_wait;
extern const struct rv__command rv__cmd_why;
extern const struct rv__command rv__cmd_workflows;

/* demo_resume.c: the demo, and the processes that it starts and kills. */
int rv__demo_resume(rv_cancel *interrupt);
int rv__demo_resume_process(const char *number, const char *store);

/* Print to stderr what is wrong and where to learn more; returns CLI_USAGE. */
int rv__cli_usage(const char *command, const char *fmt, ...) RV_PRINTF(2, 3);

/* Print to stderr that something failed, and what to do (NULL: no hint); returns `code`. */
int rv__cli_fail(int code, const char *message, const char *hint);

/* Print a problem in a file, for people and editors: position, sentence, line, caret. */
void rv__cli_problem(FILE *to, const rv_problem *problem);
/* The index of the workflow that the file itself defines; the report also has those that it nests. workflow_count:
 * none. */
size_t rv__cli_workflow_of(const rv_report *report, const char *file, const char *name);

/* Terminal colours, or "" where they are not wanted (no terminal, NO_COLOR, TERM=dumb). */
enum rv__colour { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, CYAN };
const char *rv__colour(FILE *to, enum rv__colour colour);

bool rv__terminal_is(FILE *to); /* a terminal that can move its cursor: not TERM=dumb */
struct rv__terminal_size {
    int columns, rows;
};
struct rv__terminal_size rv__terminal_size(FILE *to); /* the current size; 80 × 24 if unknown */
/* Show or hide the cursor. A process that is interrupted shows it again. */
void rv__terminal_cursor(FILE *to, bool shown);

/* Wait; true: the whole time has passed, false: the token has fired. */
bool rv__cli_pause(rv_cancel *by, int64_t ms);

/* Fire `token` at the first Ctrl-C or SIGTERM; at the second, exit at once. Call it before any thread is started.
 * Returns 0 or RV_ESYS. */
int rv__interrupt_fires(rv_cancel *token);
/* A new token that Ctrl-C fires, never freed. NULL: error, with the reason on stderr. */
rv_cancel *rv__cli_interrupt(void);

#endif
