/* builtin.h: work that needs no function of the program. */
#ifndef RV_WORK_BUILTIN_H
#define RV_WORK_BUILTIN_H

#include "work/context.h"

/* Whether the engine does this work itself, without a function of the program. */
bool rv__builtin(const struct rv__plan_exprs *exprs, const struct rv__effect *effect);
/* An executor of such work. `head`: exec.h. `begun` is called when a process evaluates it, the command runs or the
 * request was sent. All three executors made of this can do all such work; they differ in their names and credits. */
int rv__builtins_new(const struct rv__executor *head, struct rv__executor **ret, rv_error *err);
void rv__builtin_run(struct rv__work *work); /* for test engines: run it on the caller's thread */
/* All of the work but its description is done: tell its executor. Thread: the one that finished. */
void rv__work_finish(struct rv_ctx *ctx);
/* Evaluate a template of its plan (`number`: 1 + its index), then continue with the result. Thread: that of the
 * work. */
void rv__work_evaluate(struct rv_ctx *ctx, uint32_t number);
/* Evaluate its description or the labels of its items, if the plan has them, and post it. Thread: as `done` of its
 * work. */
void rv__work_describe(struct rv_ctx *ctx);
/* Nothing is left to do: mask its secrets, and give it back to the engine's loop. Thread: the one that finished. */
void rv__work_post(struct rv_ctx *ctx);
/* Begin a command whose parameters are evaluated. Thread: the evaluator's. */
void rv__command_begin(struct rv_ctx *ctx, struct rv__str with);
/* The same for an HTTP request. */
void rv__http_begin(struct rv_ctx *ctx, struct rv__str with);

/* Begin a turn of a chat. rv__chat_arguments(): make the arguments of a tool call; done when it returns. */
void rv__chat_begin(struct rv_ctx *ctx, struct rv__str with);
void rv__chat_arguments(struct rv_ctx *ctx);

/* A call of a tool of an MCP server. */
void rv__tool_begin(struct rv_ctx *ctx, struct rv__str with);
/* The server of that name. NULL: there is none, and the attempt has failed. */
struct rv__tool_server *rv__tool_server_of(struct rv_ctx *ctx, struct rv__str name);
/* The call was not answered: set the outcome of the attempt accordingly. */
void rv__tool_failed(struct rv_ctx *ctx, const struct rv__tool_result *result);

/* own_tools.c: run a tool that needs no server. The outcome is set when it returns. */
void rv__own_tool_run(struct rv_ctx *ctx, enum rv__own_tool tool, struct rv__str arguments);
/* What a model is told about the tool, both as JSON. False: the scope of the attempt does not allow it. */
bool rv__own_tool_offer(const struct rv_ctx *ctx, enum rv__own_tool tool,
                        struct rv__str *description, struct rv__str *schema);

/* skills.c: begin a call of a skill. False: it is not a skill. */
bool rv__skill_begin(struct rv_ctx *ctx, struct rv__str with);
/* Append the rest of a file, at most `most` bytes. RV_ETOOBIG: it is longer; RV_ESYS: errno; RV_ENOMEM. */
int rv__read_all(int fd, size_t most, struct rv__buf *out);
/* What a model is told about a skill, both as JSON: the description in its SKILL.md, or that it cannot be read. */
void rv__skill_offer(struct rv_ctx *ctx, struct rv__str with, struct rv__str *description,
                     struct rv__str *schema);
/* command.c: run a command. Its words, its folder and its standard input are in the arena. Its result is text. */
void rv__command_run(struct rv_ctx *ctx, const char *const *argv, const char *cwd,
                     struct rv__str input, int64_t timeout_ms);

/* offers.c */
/* Whether the tools of a turn's chat are known. False: the servers are being asked, and rv__chat_begin() is called
 * again when they have answered; or the attempt has ended. Thread: the evaluator's. */
bool rv__offers_ready(struct rv_ctx *ctx, struct rv__str with);
/* Append the tools: [{name, description?, schema}]. */
void rv__offers_write(struct rv_ctx *ctx, struct rv__buf *out);

/* For the above: hand the work to the I/O loop, and stop it when the step's token fires (time-out, cancel, the
 * engine closes). The attempt may be freed when this returns. `what`: for messages. */
void rv__io_begin(struct rv_ctx *ctx, const char *what, int (*start)(struct rv_ctx *ctx),
                  void (*stop)(struct rv_ctx *ctx));
/* Call this first when the I/O loop is done with the work: it waits for its start to finish, and prevents a later
 * stop. */
void rv__io_ended(struct rv_ctx *ctx);

/* Record what the step sees by default. */
void rv__ctx_given_context(struct rv_ctx *ctx);

/* A string as it is; anything else as JSON text. */
struct rv__str rv__ctx_text(struct rv_ctx *ctx, struct rv__str json);
/* A C string in the step's arena. NULL: no memory, or the text contains a NUL; then the step fails, with `what` in
 * the message. */
char *rv__ctx_c_text(struct rv_ctx *ctx, struct rv__str text, const char *what);
/* The same of a path, which is relative to the folder of the workflow's file. */
const char *rv__ctx_path(struct rv_ctx *ctx, struct rv__str path, const char *what);

/* hosted.c: host processes, on the loop of connections */
struct rv__hosts_opts {
    int limit;             /* processes at once; 0 = twice the number of CPUs, at least 4 */
    int64_t term_ms;       /* from the cancel frame to SIGTERM; 0 = 1000 */
    int64_t kill_ms;       /* from there to SIGKILL; 0 = 2000 */
    uint64_t memory_bytes; /* address space of each; 0 = no limit */
};
struct rv__hosts;
int rv__hosts_limit(const struct rv__hosts_opts *opts); /* processes at once with these options */
/* wires NULL: it has a loop of its own. Thread: any but that of connections. */
int rv__hosts_new(const struct rv__hosts_opts *opts, struct rv__wires *wires,
                  struct rv__hosts **ret, rv_error *err);
/* Ends all hosts at once; they have no work. NULL is allowed. Thread: any but that of connections. */
void rv__hosts_free(struct rv__hosts *hosts);
/* An executor of functions in hosts. `begun` is called when the work was sent to a host. */
int rv__hosted_new(struct rv__services *services, const struct rv__executor *head,
                   struct rv__executor **ret, rv_error *err);
void rv__hosted_run(struct rv__work *work); /* for test engines: waits until it has run */
/* The workflow that a file offers, from the frame `register` of its host. Thread: any but that of connections. */
int rv__hosted_workflow(struct rv__hosts *hosts, const char *module, rv_workflow **ret,
                        rv_error *err);

#endif
