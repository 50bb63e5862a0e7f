/* client.h: where the runs are, for the commands about them: a store on this machine, or a server.
 *
 * A client has the calls of the engine that these commands need, with the same arguments, results and
 * errors, so that a command is written once. With a store they are the engine's own; with a server they are
 * its HTTP API, whose documents (server/) are read back into the same structs.
 *
 * Thread: one at a time for one client. */
#ifndef RV_CLI_CLIENT_H
#define RV_CLI_CLIENT_H

#include "cli/cli.h"

#define RV__CLI_STORE  "rival.db"       /* where runs are, where no server is */
#define RV__CLI_LISTEN "127.0.0.1:7400" /* where a server is, unless told otherwise */
#define RV__CLI_SERVER "http://" RV__CLI_LISTEN

/* What the options say; NULL = not given. */
struct rv__where {
    const char *store, *server, *token_file;
};
/* Those options again, for a command that is to go to the same place: " --store FILE". */
void rv__where_again(const struct rv__where *where, struct rv__buf *out);
/* Another wire to the server at this URL, with the token that they say. Errors: as rv__wire_new(), and of a
 * token file. */
struct rv__wire;
int rv__where_wire(const struct rv__where *where, const char *url, struct rv__wire **ret,
                   rv_error *err);
/* Their rows; `member` is where they are in the command's struct `type`. */
/* clang-format off */
#define RV__OPTIONS_SERVER(type, member) \
    { "--server", "URL", "use this server ($RIVAL_URL, or " RV__CLI_SERVER " if one answers)", \
      RV__INTO(type, member.server) }, \
    { "--token-file", "FILE", "read its token from this file ($RIVAL_TOKEN)", \
      .completes = COMPLETES_FILE, RV__INTO(type, member.token_file) }
#define RV__OPTIONS_WHERE(type, member) \
    RV__OPTIONS_SERVER(type, member), \
    { "--store", "FILE", "use this store, without a server ($RIVAL_STORE, or " RV__CLI_STORE \
      " if no server answers)", .completes = COMPLETES_FILE, RV__INTO(type, member.store) }
/* clang-format on */

/* Was this command started by an execution, which reads through its scope? By its token ($RIVAL_TOKEN). */
bool rv__cli_is_execution(void);

struct rv__client;

enum rv__access {
    ACCESS_LOOK, /* what is on disk */
    ACCESS_ASK,  /* also who drives the store: what it says may not be on disk */
};

/* Which of the two, and, for a server, that it answers. Without any option and variable: the usual server,
 * or, where none answers, the store RV__CLI_STORE if it is there. NULL: the reason is on stderr, and
 * *code is what to exit with. */
struct rv__client *rv__client_open(const struct rv__where *where, enum rv__access access,
                                   int *code);
/* The same for telling one run something; a store is opened to write about that run, starting nothing. */
struct rv__client *rv__client_tell(const struct rv__where *where, const char *run_id, int *code);
/* An engine that somebody else has. NULL: no memory. */
struct rv__client *rv__client_of(rv_engine *engine);
void rv__client_close(struct rv__client *client); /* NULL is allowed */

/* A server that answers; NULL: none was meant, or the usual one does not answer, and the store it is
 * (`*store`: which, NULL = none is there). *code: CLI_OK, or what was meant cannot be had, as was said. */
struct rv__client *rv__client_server(const struct rv__where *where, const char **store, int *code);

const char *rv__client_name(const struct rv__client *client); /* a file, or a URL */
void rv__client_become(struct rv__client *client,
                       rv_engine *engine);                     /* rv__client_of(): of another */
rv_engine *rv__client_engine(const struct rv__client *client); /* NULL: it is a server */

/* As the calls of rival.h. Also: RV_ECLOSED (nobody answers any more), RV_EFAILED (not allowed). */
int rv__client_list(struct rv__client *client, const rv_query *query, rv_run_list **ret,
                    rv_error *err);
int rv__client_state(struct rv__client *client, const char *run_id, rv_run_state **ret,
                     rv_error *err);
int rv__client_nodes(struct rv__client *client, const char *run_id, const char *parent,
                     size_t offset, size_t limit, rv_node_list **ret, rv_error *err);
int rv__client_logs(struct rv__client *client, const char *run_id, const rv_log_query *query,
                    rv_log_list **ret, rv_error *err);
/* As documents, for rv_free(); of one: RV_ENOTFOUND. */
int rv__client_attachments(struct rv__client *client, const char *run_id,
                           const rv_attachment_query *query, char **ret, rv_error *err);
int rv__client_attachment(struct rv__client *client, const char *run_id, const char *id, char **ret,
                          rv_error *err);
/* What somebody did in the run (started, cancelled, signalled, decided, completed it): its events with `by`,
 * comma-separated, behind what `ret` has. */
int rv__client_acts(struct rv__client *client, const char *run_id, struct rv__buf *ret,
                    rv_error *err);
int rv__client_plan(struct rv__client *client, const char *run_id, char **ret, rv_error *err);
int rv__client_why(struct rv__client *client, const char *run_id, char **ret, rv_error *err);
int rv__client_members(struct rv__client *client, char **ret, rv_error *err); /* the same */
int rv__client_workflows(struct rv__client *client, rv_workflow_list **ret, rv_error *err);
int rv__client_run(struct rv__client *client, const char *workflow, const char *input,
                   const rv_run_opts *opts, rv_run_info *ret, rv_error *err);
int rv__client_cancel(struct rv__client *client, const char *run_id, rv_error *err);
int rv__client_decide(struct rv__client *client, const char *run_id, int decision,
                      const rv_decide_opts *opts, rv_error *err);
/* `force`: whatever its name. */
int rv__client_signal(struct rv__client *client, const char *run_id, const char *name,
                      const char *payload, bool force, rv_error *err);
int rv__client_complete(struct rv__client *client, const char *run_id, const char *handle,
                        const char *result, const char *error, rv_error *err);

/* Does a process say that it drives this run? A server does. A program that embeds the library and has no
 * control socket drives its runs without saying so. */
bool rv__client_drives(const struct rv__client *client, const char *run_id);
/* If the store cannot be written to, so that its runs do not go on: say so on stderr, with the reason. */
void rv__client_say_refusal(struct rv__client *client);

/* Is that what a call returns whose server does not answer, and may come back? Who waits goes on waiting. */
bool rv__client_away(const struct rv__client *client, int rc);

/* Until the run has ended, for so long (negative: for ever); then how it did, for rv_run_state_free().
 * Errors: as rv_wait(). */
int rv__client_wait(struct rv__client *client, const char *run_id, int64_t timeout_ms,
                    rv_cancel *by, rv_run_state **ret, rv_error *err);

/* As rv_feed_…: one that is lost with its server goes on when that is back, and says so on stderr. */
struct rv__follow;
int rv__follow_open(struct rv__client *client, const rv_feed_opts *opts, struct rv__follow **ret,
                    rv_error *err);
int rv__follow_next(struct rv__follow *follow, int64_t timeout_ms, rv_cancel *by, rv_event *ret,
                    rv_error *err);
/* Where it is, for RV_FROM_POSITION; of a store's feed. */
void rv__follow_position(struct rv__follow *follow, uint64_t *seq, uint64_t *index);
void rv__follow_close(struct rv__follow *follow); /* NULL is allowed */

#endif
