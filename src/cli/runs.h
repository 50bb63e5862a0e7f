/* runs.h: what the commands about runs share: opening a store, finding a run, saying how it ended. */
#ifndef RV_CLI_RUNS_H
#define RV_CLI_RUNS_H

#include "base/str.h"
#include "base/user.h"
#include "cli/client.h"
#include "server/server.h"

/* Options that many commands have: `member` is where the value goes in the struct `type`. */
/* clang-format off */
#define RV__OPTION_STORE(type, member) \
    { "--store", "FILE", "where runs are kept (" RV__CLI_STORE "), or postgres://…", .completes = COMPLETES_FILE, \
      RV__INTO(type, member) }
#define RV__OPTION_JSON(type, member, shape) \
    { "--json", .meaning = (shape), RV__INTO(type, member) }
#define RV__OPTION_TOLD(type, member) RV__OPTION_JSON(type, member, "print {\"runId\", \"status\"}")
/* clang-format on */

const char *rv__store_default(void); /* $RIVAL_STORE, else RV__CLI_STORE */
/* Who runs this command, for rv_engine_opts.by; in `room`. */
const char *rv__cli_user(char room[RV__USER_NAME_SIZE]);

/* Open the store for reading, which always works; to ask also who drives it; or to tell one run
 * something: by who drives it, or, where nobody does, by writing, and starting nothing. NULL: the reason is
 * on stderr. */
rv_engine *rv__store_to_read(const char *store);
rv_engine *rv__store_to_ask(const char *store);
rv_engine *rv__store_to_write(const char *store, const char *run_id);
/* For what no other process does for us: where one has the store, that is told. */
rv_engine *rv__store_to_hold(const char *store);

/* The run that `given` is the id of, or the beginning of one: unique, or it is an error. RV_OK; else the
 * reason is on stderr. */
int rv__find_run(struct rv__client *client, const char *given, char ret[RV_RUN_ID_SIZE]);
/* The same for who changes it: nothing but the whole id will do. */
int rv__find_exact(struct rv__client *client, const char *given, char ret[RV_RUN_ID_SIZE]);

/* A command that looks at one run: where it is is opened, the run found, its function called.
 * `argv` is what the options left: the first is the run. */
struct rv__look {
    struct rv__where where;
    struct rv__client *client;
    char run_id[RV_RUN_ID_SIZE];
    bool json;
    bool asks; /* also who drives it: what it says may not be on disk */
    int argc;
    char **argv; /* behind the run */
    void *arg;
};
int rv__look_at_run(struct rv__look *look, int argc, char **argv,
                    int (*show)(struct rv__look *look));

/* A command that tells one run something: finds it by its whole id, opens the store to write about it, calls `tell`, and
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

/* JSON, @FILE or - (stdin), as given for `what` ("the input") by an option; NULL: by an argument. *ret is
 * checked JSON, for rv__free(). CLI_OK; else the reason is on stderr. */
int rv__read_json(const char *command, const char *what, const char *option, const char *given,
                  char **ret);

/* Read --since and the like: a duration (that long ago) or a date, with a time if need be. */
int rv__read_time(const char *text, int64_t now_ms, int64_t *ret);

/* Pretty on a terminal. */
int rv__print_json(struct rv__buf *json); /* to stdout; CLI_OK, CLI_FAILED without memory */
int rv__exit_code(int status);            /* of a run's status */
enum rv__colour rv__status_colour(const char *status);

#endif
