/* runs.h: shared by the commands about runs: open a store, find a run, report how it ended. */
#ifndef RV_CLI_RUNS_H
#define RV_CLI_RUNS_H

#include "base/str.h"
#include "base/user.h"
#include "cli/client.h"
#include "server/server.h"

/* Options of many commands: `member` is the value's place in the struct `type`. */
/* clang-format off */
#define RV__OPTION_STORE(type, member) \
    { "--store", "FILE", "where runs are kept (" RV__CLI_STORE "), or postgres://…", .completes = COMPLETES_FILE, \
      RV__INTO(type, member) }
#define RV__OPTION_JSON(type, member, shape) \
    { "--json", .meaning = (shape), RV__INTO(type, member) }
#define RV__OPTION_TOLD(type, member) RV__OPTION_JSON(type, member, "print {\"runId\", \"status\"}")
/* clang-format on */

const char *rv__store_default(void); /* $RIVAL_STORE, else RV__CLI_STORE */
/* The user of this command, for rv_engine_opts.by; written to `room`. */
const char *rv__cli_user(char room[RV__USER_NAME_SIZE]);

/* Open the store: _read: read only, which always works; _ask: also ask the process that drives it; _write: change
 * one run, by its driver, or, if there is none, by writing without starting anything. NULL: the reason is on
 * stderr. */
rv_engine *rv__store_to_read(const char *store);
rv_engine *rv__store_to_ask(const char *store);
rv_engine *rv__store_to_write(const char *store, const char *run_id);
/* For changes that no other process can make for us: if another one drives the store, this is an error. */
rv_engine *rv__store_to_hold(const char *store);

/* The run whose id is `given` or begins with it; it must be unique. RV_OK; else the reason is on stderr. */
int rv__find_run(struct rv__client *client, const char *given, char ret[RV_RUN_ID_SIZE]);
/* The same for a change: only the whole id is accepted. */
int rv__find_exact(struct rv__client *client, const char *given, char ret[RV_RUN_ID_SIZE]);

/* A command that reads one run: opens the store or server, finds the run, calls `show`. `argv` is what the options
 * left: the first is the run. */
struct rv__look {
    struct rv__where where;
    struct rv__client *client;
    char run_id[RV_RUN_ID_SIZE];
    bool json;
    bool asks; /* also ask its driver: it knows more than is on disk */
    int argc;
    char **argv; /* after the run's id */
    void *arg;
};
int rv__look_at_run(struct rv__look *look, int argc, char **argv,
                    int (*show)(struct rv__look *look));

/* A command that changes one run: finds it by its whole id, opens the store to write about it, calls `say`, and
 * prints {runId, status}, or `done` (a word) and the id. */
struct rv__tell {
    struct rv__where where;
    bool json;
    char run_id[RV_RUN_ID_SIZE];
    const char *done;
    void *arg;
};
int rv__tell_run(const char *given, struct rv__tell *tell,
                 int (*say)(struct rv__tell *tell, struct rv__client *client, rv_error *err));

/* Read JSON, @FILE or - (stdin), given for `what` ("the input") by an option; option NULL: by an argument. *ret is
 * checked JSON; free with rv__free(). CLI_OK; else the reason is on stderr. */
int rv__read_json(const char *command, const char *what, const char *option, const char *given,
                  char **ret);

/* Read --since and the like: a duration (before now) or a date, with or without a time. */
int rv__read_time(const char *text, int64_t now_ms, int64_t *ret);

/* Indented on a terminal. */
int rv__print_json(struct rv__buf *json); /* to stdout; CLI_OK, CLI_FAILED without memory */
int rv__exit_code(int status);            /* of a run's status */
enum rv__colour rv__status_colour(const char *status);

#endif
