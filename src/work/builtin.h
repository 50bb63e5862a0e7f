/* builtin.h: work that needs no function of the program. */
#ifndef RV_WORK_BUILTIN_H
#define RV_WORK_BUILTIN_H

#include "work/context.h"

/* Is this work one that the engine does by itself? */
bool rv__builtin(const struct rv__plan_exprs *exprs, const struct rv__effect *effect);
/* An executor of such work. `head`: exec.h; begun: a process evaluates it, the command runs, the request is on
 * its way. Whatever is made of these three does all of it; they differ in their names and credits. */
int rv__builtins_new(const struct rv__executor *head, struct rv__executor **ret, rv_error *err);
void rv__builtin_run(struct rv__work *work); /* by hand, instead */
/* All of it but its description is done: its executor says so. Thread: whoever finished. */
void rv__work_finish(struct rv_ctx *ctx);
/* Evaluate a template of its plan (1 + its number); then goes on by itself. Thread: as the work's. */
void rv__work_evaluate(struct rv_ctx *ctx, uint32_t number);
/* Make its description, or the labels of its items, if the plan has them, and post it. Thread: as `done` of its work. */
void rv__work_describe(struct rv_ctx *ctx);
/* Nothing is left to do: its secrets are hidden, and the loop has it. Thread: whoever finished. */
void rv__work_post(struct rv_ctx *ctx);
/* Begin a command whose parameters are there. Thread: the evaluator's. */
void rv__command_begin(struct rv_ctx *ctx, struct rv__str with);
/* The same for a request by HTTP. */
void rv__http_begin(struct rv_ctx *ctx, struct rv__str with);

/* A turn of a chat; and what a tool is called with, which is done when it returns. */
void rv__chat_begin(struct rv_ctx *ctx, struct rv__str with);
void rv__chat_arguments(struct rv_ctx *ctx);

/* A call of a tool of an MCP server. */
void rv__tool_begin(struct rv_ctx *ctx, struct rv__str with);
/* The server of that name; NULL: there is none, and the attempt has failed. */
struct rv__tool_server *rv__tool_server_of(struct rv_ctx *ctx, struct rv__str name);
/* It was not answered: that is the outcome. */
void rv__tool_failed(struct rv_ctx *ctx, const struct rv__tool_result *result);

/* own_tools.c: a tool that needs no server. The outcome is there when it returns. */
void rv__own_tool_run(struct rv_ctx *ctx, enum rv__own_tool tool, struct rv__str arguments);
/* What a model is told of it, both JSON. False: its scope does not allow it. */
bool rv__own_tool_offer(const struct rv_ctx *ctx, enum rv__own_tool tool,
                        struct rv__str *description, struct rv__str *schema);

/* skills.c: a call of a skill, if it is one. */
bool rv__skill_begin(struct rv_ctx *ctx, struct rv__str with);
/* What a model is told of a skill, both JSON: the description of its SKILL.md, or that it cannot be read. */
void rv__skill_offer(struct rv_ctx *ctx, struct rv__str with, struct rv__str *description,
                     struct rv__str *schema);
/* command.c: a command that is there: its words, its folder and what it reads, all in the arena. Its result is text. */
void rv__command_run(struct rv_ctx *ctx, const char *const *argv, const char *cwd,
                     struct rv__str input, int64_t timeout_ms);

/* offers.c */
/* Is known what the tools of a turn's chat are? False: the servers are being asked, and rv__chat_begin() is called
 * again when they have answered; or the attempt has ended. Thread: the evaluator's. */
bool rv__offers_ready(struct rv_ctx *ctx, struct rv__str with);
/* Append them: [{name, description?, schema}]. */
void rv__offers_write(struct rv_ctx *ctx, struct rv__buf *out);

/* For these: hand it to the I/O loop, and have it stopped when the step's token fires: a time-out, a
 * cancel, the engine closes. It may be gone afterwards. `what`: for messages. */
void rv__io_begin(struct rv_ctx *ctx, const char *what, int (*start)(struct rv_ctx *ctx),
                  void (*stop)(struct rv_ctx *ctx));
/* The loop is done with it, first of all: wait for its beginning, and let nobody stop it any more. */
void rv__io_ended(struct rv_ctx *ctx);

/* What a step sees without asking for more, as it is given by default. */
void rv__ctx_given_context(struct rv_ctx *ctx);

/* A string as it is; anything else as JSON text. */
struct rv__str rv__ctx_text(struct rv_ctx *ctx, struct rv__str json);
/* A C string of the step's arena, without NUL in it. NULL: no memory, or there is one (rv_fail, `what`). */
char *rv__ctx_c_text(struct rv_ctx *ctx, struct rv__str text, const char *what);

/* hosted.c */
/* An executor of functions in hosts; begun: a host has it. As many threads as credits speak with them. */
int rv__hosted_new(struct rv__services *services, const struct rv__executor *head,
                   struct rv__executor **ret, rv_error *err);
void rv__hosted_run(struct rv__work *work); /* by hand, instead */
/* What a file offers: the frame `register` of a host of it, as a workflow. Thread: any. */
int rv__hosted_workflow(struct rv__hosts *hosts, const char *module, rv_workflow **ret,
                        rv_error *err);

#endif
