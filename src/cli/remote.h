/* remote.h: the calls of client.h, by HTTP. */
#ifndef RV_CLI_REMOTE_H
#define RV_CLI_REMOTE_H

#include "cli/wire.h"

int rv__remote_list(struct rv__wire *wire, const rv_query *query, rv_run_list **ret, rv_error *err);
int rv__remote_state(struct rv__wire *wire, const char *run_id, rv_run_state **ret, rv_error *err);
int rv__remote_nodes(struct rv__wire *wire, const char *run_id, const char *parent, size_t offset,
                     size_t limit, rv_node_list **ret, rv_error *err);
int rv__remote_logs(struct rv__wire *wire, const char *run_id, const rv_log_query *query,
                    rv_log_list **ret, rv_error *err);
int rv__remote_attachments(struct rv__wire *wire, const char *run_id,
                           const rv_attachment_query *query, rv_attachment_list **ret,
                           rv_error *err);
int rv__remote_attachment(struct rv__wire *wire, const char *run_id, const char *id,
                          rv_attachment_list **ret, rv_error *err);
int rv__remote_history(struct rv__wire *wire, const char *run_id, bool acts,
                       void (*hear)(void *arg, struct rv__str event), void *arg, rv_error *err);
int rv__remote_given(struct rv__wire *wire, const char *run_id, const char *node,
                     struct rv__buf *ret, rv_error *err);
int rv__remote_plan(struct rv__wire *wire, const char *run_id, char **ret, rv_error *err);
int rv__remote_members(struct rv__wire *wire, char **ret, rv_error *err);
int rv__remote_why(struct rv__wire *wire, const char *run_id, char **ret, rv_error *err);
int rv__remote_workflows(struct rv__wire *wire, rv_workflow_list **ret, rv_error *err);
int rv__remote_run(struct rv__wire *wire, const char *workflow, const char *input,
                   const rv_run_opts *opts, rv_run_info *ret, rv_error *err);
int rv__remote_cancel(struct rv__wire *wire, const char *run_id, rv_error *err);
int rv__remote_decide(struct rv__wire *wire, const char *run_id, int decision,
                      const rv_decide_opts *opts, rv_error *err);
int rv__remote_complete(struct rv__wire *wire, const char *run_id, const char *handle,
                        const char *result, const char *error, rv_error *err);
int rv__remote_signal(struct rv__wire *wire, const char *run_id, const char *name,
                      const char *payload, bool force, rv_error *err);
/* The path of a run's events. RV_OK, or RV_ENOMEM. */
int rv__remote_events_path(const char *run_id, bool no_logs, bool from_oldest, struct rv__buf *ret,
                           rv_error *err);

#endif
