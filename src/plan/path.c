/* path.c: writes the path of a node or body.
 *
 * The two functions call each other up the tree, at most RV__PLAN_MAX_DEPTH times. */
#include "plan/kinds.h"

void rv__body_path(const struct rv__body *body, const int64_t *vector, struct rv__buf *buf)
{
    const struct rv__node *owner = body->owner;
    if (owner == NULL)
        return;
    rv__node_path(owner, vector, buf);
    switch (rv__node_bodies(owner)) {
    case BODIES_NAMED:
    case BODIES_RETRIED:
        rv__buf_char(buf, ':');
        rv__buf_str(buf, body->alias);
        break;
    case BODIES_ITERATED:
        rv__buf_text(buf, vector != NULL ? ":iter" : ":");
        if (vector != NULL)
            rv__buf_int(buf, vector[owner->loops_around]);
        else
            rv__buf_text(buf, rv__kind_of(owner->kind)->body_key);
        break;
    case BODIES_TURNS: {
        int64_t number = vector != NULL ? vector[owner->loops_around] : 0;
        rv__buf_text(buf, ":turn");
        if (vector != NULL)
            rv__buf_int(buf, rv__chat_turn(number));
        if (body->index == 0)
            break;
        rv__buf_text(buf, ":call");
        if (vector != NULL)
            rv__buf_int(buf, rv__chat_call(number));
        rv__buf_char(buf, ':');
        rv__buf_str(buf, body->alias);
        break;
    }
    case BODIES_ITSELF:
    case BODIES_NONE: break;
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
        rv__buf_text(buf, outermost ? "" : ":");
        rv__buf_str(buf, node->alias);
    } else if (body->owner == NULL) {
        rv__buf_str(buf, node->alias);
    } else if (!body->bare) { /* a bare child has the path of its body */
        rv__buf_text(buf, ":node");
        rv__buf_int(buf, node->index);
        rv__buf_char(buf, ':');
        rv__buf_str(buf, node->alias);
    }
}
