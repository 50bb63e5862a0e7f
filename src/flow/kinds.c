/* kinds.c: the table of kinds of nodes, and the names of enums. A new kind of control flow is one file and one row
 * here. */
#include "flow/cell.h"

extern const struct rv__flow_kind rv__step_kind, rv__workflow_kind, rv__branch_kind, rv__loop_kind,
    rv__foreach_kind, rv__concurrent_kind, rv__stage_kind, rv__chat_kind;

const struct rv__flow_kind *const rv__flow_kinds[NODE_KINDS] = {
    [NODE_STEP] = &rv__step_kind,         [NODE_WORKFLOW] = &rv__workflow_kind,
    [NODE_BRANCH] = &rv__branch_kind,     [NODE_LOOP] = &rv__loop_kind,
    [NODE_FOREACH] = &rv__foreach_kind,   [NODE_CONCURRENT] = &rv__concurrent_kind,
    [NODE_STAGE] = &rv__stage_kind,       [NODE_CHAT] = &rv__chat_kind,
    [NODE_SEQUENCE] = &rv__workflow_kind, /* one body that begins and ends like a workflow's */
};

const char *rv__status_name(enum rv__status status)
{
    static const char *const names[STATUSES] = { "pending", "running", "waiting_retry", "completed",
                                                 "failed",  "skipped", "cancelled" };
    return names[status];
}

const char *rv__run_status_name(enum rv__run_status status)
{
    static const char *const names[RUN_STATUSES] = { "running", "suspended", "completed", "failed",
                                                     "cancelled" };
    return names[status];
}

const char *rv__eval_name(enum rv__eval eval)
{
    static const char *const names[EVALS] = { "when",  "if",    "while",      "until",
                                              "items", "input", "description" };
    return names[eval];
}

const char *rv__msg_kind_name(enum rv__msg_kind kind)
{
    static const char *const names[MSG_KINDS] = { "done",   "failed", "park",   "note",
                                                  "timer",  "lost",   "given",  "read",
                                                  "answer", "signal", "cancel", "suspend",
                                                  "resume", "abort",  "skip",   "restart" };
    return names[kind];
}

const char *rv__next_name(enum rv__next next)
{
    static const char *const names[NEXTS] = { "none",     "done",    "final",  "retry",
                                              "redirect", "errored", "suspend" };
    return names[next];
}

const char *rv__decision_name(enum rv__decision decision)
{
    static const char *const names[DECISIONS] = { "resume", "skip", "restart_stage", "abort" };
    return names[decision];
}
