/* step.c: a step in a plan: the only kind without bodies. Its rules are in check.c. */
#include "plan/kinds.h"

#include "base/json.h"

struct rv__draft_node *rv__draft_step(struct rv__draft_body *in, enum rv__step_kind kind,
                                      const char *name, const char *with_json,
                                      const struct rv__draft_opts *opts)
{
    struct rv__draft_node *node = rv__draft_add(in, NODE_STEP, opts);
    node->step.kind = kind;
    node->name = rv__draft_text(in->draft, rv__str(name));
    node->step.with = rv__draft_text(in->draft, rv__str(with_json));
    return node;
}

void rv__draft_step_input(struct rv__draft_node *step, const char *function)
{
    step->step.input = rv__draft_expr(step->draft, rv__expr_function(function));
}

void rv__draft_work_read(struct rv__draft_node *node, const struct rv__subject *s)
{
    const char *words[STEP_KINDS];
    for (int kind = 0; kind < STEP_KINDS; kind++)
        words[kind] = rv__step_kind_name((enum rv__step_kind)kind);
    int kind = rv__subject_word(
        s, KEY_KIND, words, STEP_KINDS,
        "function, call, http, command, value, delay, signal, chat or tool");
    node->broken = kind < 0 && rv__subject_get(s, KEY_KIND) != NULL;
    node->step.kind = kind < 0 ? STEP_FUNCTION : (enum rv__step_kind)kind;
    node->name = rv__subject_text(s, KEY_NAME);
    node->step.with = rv__subject_raw(s, KEY_WITH);
    node->step.input = rv__subject_expr(s, KEY_INPUT);
}

void rv__write_config(struct rv__writer *w, const struct rv__node *node,
                      const struct rv__step_config *config)
{
    static const char *const on_timeouts[] = { NULL, "retry" };
    static const char *const backoffs[] = { NULL, "exponential" };
    rv__write_int(w, "timeout", config->timeout_ms, rv__node_timeout_ms(node));
    rv__write_text(w, "onTimeout", rv__str(on_timeouts[config->on_timeout]));
    rv__write_int(w, "maxAttempts", config->max_attempts, 0);
    rv__write_text(w, "backoff", rv__str(backoffs[config->backoff]));
    rv__write_int(w, "backoffBaseMs", config->backoff_base_ms, RV__DEFAULT_BACKOFF_BASE_MS);
    rv__write_int(w, "maxBackoffMs", config->max_backoff_ms, RV__DEFAULT_MAX_BACKOFF_MS);
    if (config->jitter != 0) {
        rv__write_key(w, "jitter");
        rv__buf_json_double(w->out, config->jitter);
    }
    rv__write_raw(w, "retryOn", config->retry_on);
    rv__write_raw(w, "noRetryOn", config->no_retry_on);
    if (config->continue_on_error)
        rv__write_raw(w, "continueOnError", rv__str("true"));
    if (config->hide_input)
        rv__write_raw(w, "recordInput", rv__str("false"));
}

static void write_step(struct rv__writer *w, const struct rv__node *node)
{
    rv__write_text(w, "kind", rv__str(rv__step_kind_name(node->step.kind)));
    rv__write_text(w, "name", node->step.name);
    rv__write_raw(w, "with", node->step.with);
    rv__write_expr(w, "input", &node->step.input);
    if (node->is_handler) /* a handler has no configuration */
        return;
    rv__write_config(w, node, &node->step.config);
    rv__write_names(w, "needs", node->step.needs, node->step.needs_count);
}

static int build_step(struct rv__compiler *c, const struct rv__draft_node *draft,
                      struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    int rc = rv__check_step(c, draft, node);
    if (rc == RV_OK)
        rc = rv__build_handler(c, draft->on_error, HANDLER_ON_ERROR, node, NULL, depth, within,
                               &node->on_error);
    return rc;
}

const struct rv__kind rv__kind_step = {
    .phrase = "a step",
    .bodies = BODIES_NONE,
    .read = rv__draft_work_read,
    .build = build_step,
    .write = write_step,
};
