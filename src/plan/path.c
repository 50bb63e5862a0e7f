/* path.c: where a node is, in words.
 *
 * The two functions call each other up the tree, which is at most RV__PLAN_MAX_DEPTH high. */
#include "plan/plan.h"

void rv__body_path(const struct rv__body *body, const int64_t *vector, struct rv__buf *buf)
{
    const struct rv__node *owner = body->owner;
    if (owner == NULL)
        return;
    rv__node_path(owner, vector, buf);
    switch (owner->kind) {
    case NODE_BRANCH:
    case NODE_CONCURRENT:
        rv__buf_char(buf, ':');
        rv__buf_str(buf, body->alias);
        break;
    case NODE_LOOP:
    case NODE_FOREACH:
        if (vector != NULL) {
            rv__buf_text(buf, ":iter");
            rv__buf_int(buf, vector[owner->loops_around]);
        } else {
            rv__buf_text(buf, owner->kind == NODE_LOOP ? ":body" : ":run");
        }
        break;
    case NODE_WORKFLOW: /* its body is itself */
    case NODE_STEP:
    case NODE_KINDS: break;
    }
}

void rv__node_path(const struct rv__node *node, const int64_t *vector, struct rv__buf *buf)
{
    const struct rv__body *body = node->body;
    if (node->handler_of != NULL)
        rv__node_path(node->handler_of, vector, buf);
    else
        rv__body_path(node->is_handler ? node->handler_in : body, vector, buf);

    if (node->is_handler) {
        bool outermost = node->handler_in != NULL && node->handler_in->owner == NULL;
        rv__buf_text(buf, outermost ? "onError" : ":onError");
    } else if (body->owner == NULL) {
        rv__buf_str(buf, node->alias);
    } else if (!body->bare) { /* a bare child's path is its body's: the same alias */
        rv__buf_text(buf, ":node");
        rv__buf_int(buf, node->index);
        rv__buf_char(buf, ':');
        rv__buf_str(buf, node->alias);
    }
}
