/* client.h: access to runs for the commands: by a store on this machine, or by a server.
 *
 * A client has the engine's calls that these commands need, with the same arguments, results and errors, so that a
 * command is written once. With a store they are the engine's own; with a server they use its HTTP API, whose
 * documents (server/) are read back into the same structs.
 *
 * Thread: one at a time for one client. */
#ifndef RV_CLI_CLIENT_H
#define RV_CLI_CLIENT_H

#include "base/str.h"
#include "cli/cli.h"
#include "server/server.h"

#define RV__CLI_STORE  "rival.db"       /* default store, if no server answers */
#define RV__CLI_LISTEN "127.0.0.1:7400" /* default address of a server */
#define RV__CLI_SERVER "http://" RV__CLI_LISTEN

/* The options; NULL = not given. */
struct rv__where {
    const char *store, *server, *token_file;
};
/* Append the same options, for another command: " --store FILE". */
void rv__where_again(const struct rv__where *where, struct rv__buf *out);
/* A new connection to the server at this URL, with the token of these options. Errors: as rv__wire_new(), and of a
 * token file. */
struct rv__wire;
int rv__where_wire(const struct rv__where *where, const char *url, struct rv__wire **ret,
                   rv_error *err);
/* The rows of these options; `member` is their place in the command's struct `type`. */
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

/* Was this command started by an execution, which may read its own run? Known by its token ($RIVAL_TOKEN). */
bool rv__cli_is_execution(void);

struct rv__client;

enum rv__access {
    ACCESS_LOOK, /* read what is on disk */
    ACCESS_ASK,  /* also ask the process that drives the store: it knows more than is on disk */
};

/* Choose store or server, and check that a server answers. Without options and variables: the default server, or,
 * if it does not answer, the store RV__CLI_STORE if it exists. NULL: the reason is on stderr, and *code is the exit
 * code. */
struct rv__client *rv__client_open(const struct rv__where *where, enum rv__access access,
                                   int *code);
/* The same for a change to one run. A store is opened to write about that run; nothing is started. */
struct rv__client *rv__client_tell(const struct rv__where *where, const char *run_id, int *code);
/* A client for an engine that the caller owns. NULL: no memory. */
struct rv__client *rv__client_of(rv_engine *engine);
void rv__client_close(struct rv__client *client); /* NULL is allowed */

/* A server that answers. NULL: use the store (`*store`; NULL = it does not exist): no server was named, and the
 * default one does not answer. *code: CLI_OK, or the server that was named cannot be used; the reason is on stderr. */
struct rv__client *rv__client_server(const struct rv__where *where, const char **store, int *code);

const char *rv__client_name(const struct rv__client *client);         /* a file, or a URL */
void rv__client_become(struct rv__client *client, rv_engine *engine); /* of rv__client_of() */
rv_engine *rv__client_engine(const struct rv__client *client);        /* NULL: a server */

/* As the calls of rival.h. Also: RV_ECLOSED (the server does not answer any more), RV_EFAILED (not allowed). */
int rv__client_list(struct rv__client *client, const rv_query *query, rv_run_list **ret,
                    rv_error *err);
int rv__client_state(struct rv__client *client, const char *run_id, rv_run_state **ret,
                     rv_error *err);
/* `walked` counts the nodes that this walk over the run has read; NULL: only this page is read. RV_ETOOBIG: there are
 * more than a run can have, so a walk ends whatever a server answers. */
int rv__client_nodes(struct rv__client *client, const char *run_id, const char *parent,
                     size_t offset, size_t limit, size_t *walked, rv_node_list **ret,
                     rv_error *err);
int rv__client_logs(struct rv__client *client, const char *run_id, const rv_log_query *query,
                    rv_log_list **ret, rv_error *err);
int rv__client_attachments(struct rv__client *client, const char *run_id,
                           const rv_attachment_query *query, rv_attachment_list **ret,
                           rv_error *err);
/* A list of this one, with its result or error. Error: RV_ENOTFOUND. */
int rv__client_attachment(struct rv__client *client, const char *run_id, const char *id,
                          rv_attachment_list **ret, rv_error *err);
/* What people did in the run (started, cancelled, signalled, decided, completed it): appends its events with `by`,
 * comma-separated. */
int rv__client_acts(struct rv__client *client, const char *run_id, struct rv__buf *ret,
                    rv_error *err);
/* All events of the run so far but its log, in order. */
int rv__client_history(struct rv__client *client, const char *run_id,
                       void (*hear)(void *arg, struct rv__str event), void *arg, rv_error *err);
/* What the last attempt of a node was given: a JSON object behind what `ret` has; nothing: it is not recorded. */
int rv__client_given(struct rv__client *client, const char *run_id, const char *path,
                     struct rv__buf *ret, rv_error *err);
int rv__client_plan(struct rv__client *client, const char *run_id, char **ret, rv_error *err);
/* Free with rv_free(). */
int rv__client_why(struct rv__client *client, const char *run_id, struct rv__why_told **ret,
                   rv_error *err);
int rv__client_why_json(struct rv__client *client, const char *run_id, char **ret, rv_error *err);
int rv__client_members(struct rv__client *client, char **ret, rv_error *err); /* the same */
int rv__client_workflows(struct rv__client *client, rv_workflow_list **ret, rv_error *err);
int rv__client_run(struct rv__client *client, const char *workflow, const char *input,
                   const rv_run_opts *opts, rv_run_info *ret, rv_error *err);
int rv__client_cancel(struct rv__client *client, const char *run_id, rv_error *err);
int rv__client_decide(struct rv__client *client, const char *run_id, int decision,
                      const rv_decide_opts *opts, rv_error *err);
/* `force`: even if nothing waits for this name. */
int rv__client_signal(struct rv__client *client, const char *run_id, const char *name,
                      const char *payload, bool force, rv_error *err);
int rv__client_complete(struct rv__client *client, const char *run_id, const char *handle,
                        const char *result, const char *error, rv_error *err);

/* Does a known process drive this run? A server does. A program that embeds the library without a control socket is
 * not known. */
bool rv__client_drives(const struct rv__client *client, const char *run_id);
/* If the store cannot be written, so that its runs do not continue: print this to stderr, with the reason. */
void rv__client_say_refusal(struct rv__client *client);

/* Does this error mean that the server does not answer now, but may come back? A caller that waits keeps waiting. */
bool rv__client_away(const struct rv__client *client, int rc);

/* Wait until the run has ended, at most this time (negative: for ever); *ret is then its state, freed with
 * rv_run_state_free(). Errors: as rv_wait(). */
int rv__client_wait(struct rv__client *client, const char *run_id, int64_t timeout_ms,
                    rv_cancel *by, rv_run_state **ret, rv_error *err);

/* As rv_feed_…. If the server is lost, it is reported on stderr, and the feed continues when the server is back. */
struct rv__follow;
int rv__follow_open(struct rv__client *client, const rv_feed_opts *opts, struct rv__follow **ret,
                    rv_error *err);
int rv__follow_next(struct rv__follow *follow, int64_t timeout_ms, rv_cancel *by, rv_event *ret,
                    rv_error *err);
/* The position, for RV_FROM_POSITION; of a store's feed only. */
void rv__follow_position(struct rv__follow *follow, uint64_t *seq, uint64_t *index);
void rv__follow_close(struct rv__follow *follow); /* NULL is allowed */

#endif
