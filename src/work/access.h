/* access.h: what an execution may read of its run, and the record that it did: the one place that answers both.
 *
 * An execution is an attempt of a state, with all that is below it; or a chat. It reads through its scope (SPEC §9):
 *
 *                 logs, list of attachments   one attachment        anything else
 *      none       no                          no                    no
 *      logs       yes                         no                    no
 *      explicit   yes                         of what it depends on no
 *      all        yes                         yes                   yes
 *
 * and only its own run. Lines of a log that say `public: false` are hidden from every execution.
 *
 * How to use it. Whoever shows an execution something of its run asks here first:
 *
 *      rc = rv__access_read(ctx, RV_READ_ATTACHMENT, id, "context_attachment_get", &err);
 *      if (rc < 0) … say err.message: RV_EDENIED
 *
 * in the attempt that asks, on the thread that does its work; or calls rv__access_logs() and
 * rv__access_attachments(), which do that and then read. RV_OK: it may, and the read goes to disk with the next
 * commit of the run: after 200 ms, and at the latest with the end of that attempt. So what a tool has read is on disk
 * before its chat gets the answer. What comes with a token (HTTP, commands that a step starts) goes through
 * rv_read_as() instead, which finds the attempt, asks here, and returns once the read is on disk.
 *
 * What a context shows of other nodes (`steps`, `lastStep`, `inputs`) is cut to the scope in flow/ (struct rv__view),
 * for all interfaces at once; that it was read is noted here by those who show it. What is given with the start of an attempt
 * (`inputs`) follows from its `body.started`. */
#ifndef RV_WORK_ACCESS_H
#define RV_WORK_ACCESS_H

#include <rival/rival.h>

#include "base/str.h"
#include "plan/plan.h"

struct rv_ctx;

enum {
    RV__READ_NAME_BYTES = 2048, /* of what was read, as it is recorded */
    RV__PASS_SIZE = 70,         /* of an execution's token, with its NUL */
};

/* A read that is to be recorded: in the attempt's arena. */
struct rv__read_note {
    struct rv__read_note *next; /* the loop's list, newest first */
    struct rv__read_note *before;
    struct rv__str what;    /* "logs", "attachments", "attachments/ID", "steps/ALIAS", "run" … */
    struct rv__str through; /* how it was read: "context", or the name of a tool */
};

/* The scope of a piece of work. *scoped (may be NULL): whether it belongs to an execution. If it does not, nothing
 * is recorded. */
enum rv__access rv__ctx_access(const struct rv_ctx *ctx, bool *scoped);

/* Whether it may read that. `what`: enum rv_read_what. `name`: the id of an attachment (RV_READ_ATTACHMENT), the
 * part of the run (RV_READ_RUN), else NULL. Changes nothing, so any thread may call it. Errors: RV_EDENIED,
 * RV_EINVAL. */
int rv__access_check(const struct rv_ctx *ctx, int what, const char *name, rv_error *err);
/* Append to `out` the name under which that read is recorded. */
void rv__access_name_read(int what, const char *name, struct rv__buf *out);

/* Check as above, and record the read. Only for the thread that does the work. `through` is static. Errors:
 * RV_EDENIED, RV_EINVAL, RV_ENOMEM. */
int rv__access_read(struct rv_ctx *ctx, int what, const char *name, const char *through,
                    rv_error *err);
/* Record that it has seen a node's outcome in its context; with "none" as the alias, all of them. */
void rv__access_saw_steps(struct rv_ctx *ctx, struct rv__str alias);

/* Pages of its run's log and attachments, as rv_logs() and rv_attachments(), within its scope. `through` NULL (logs
 * only): the read is recorded already. */
int rv__access_logs(struct rv_ctx *ctx, const rv_log_query *query, const char *through,
                    rv_log_list **ret, rv_error *err);
int rv__access_attachments(struct rv_ctx *ctx, const rv_attachment_query *query,
                           const char *through, rv_attachment_list **ret, rv_error *err);

/* Make a new token; "" if the system gives no random bytes. */
void rv__pass_make(char ret[RV__PASS_SIZE]);
/* Whether two tokens are equal. Always compares every byte, so the time tells nothing. "" equals no token. */
bool rv__pass_is(const char *pass, const char *given);

#endif
