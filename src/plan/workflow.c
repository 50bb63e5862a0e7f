/* workflow.c: another workflow, as a node of a plan. How it is found and entered: nested.c. */
#include "plan/kinds.h"

struct rv__draft_node *rv__draft_workflow(struct rv__draft_body *in, const char *name,
                                          struct rv__expr input, const struct rv__draft_opts *opts)
{
    struct rv__draft_node *node = rv__draft_add(in, NODE_WORKFLOW, opts);
    node->name = rv__draft_text(in->draft, rv__str(name));
    node->workflow.input = rv__draft_expr(in->draft, input);
    return node;
}

struct rv__draft_node *rv__draft_inline(struct rv__draft_body *in, const struct rv__draft *nested,
                                        struct rv__expr input, const struct rv__draft_opts *opts)
{
    struct rv__draft_node *node = rv__draft_add(in, NODE_WORKFLOW, opts);
    node->name = rv__draft_text(in->draft, nested->workflow.name);
    node->workflow.here = &nested->workflow;
    node->workflow.draft = nested;
    node->workflow.input = rv__draft_expr(in->draft, input);
    return node;
}

static void read_workflow(struct rv__draft_node *node, const struct rv__subject *s)
{
    node->name = rv__subject_text(s, KEY_NAME);
    node->workflow.input = rv__subject_expr(s, KEY_INPUT);
    if (rv__subject_get(s, KEY_STEPS) ==
        NULL) { /* named: the following keys are in its own definition */
        static const enum rv__key own[] = { KEY_INPUT_SCHEMA,     KEY_WORKFLOW_DESCRIPTION,
                                            KEY_WORKFLOW_NEEDS,   KEY_SECRETS,
                                            KEY_HOSTED,           KEY_FINALLY,
                                            KEY_PARAMETERS,       KEY_LISTENERS,
                                            KEY_MANIFEST_VERSION, KEY_BUDGET };
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            if (rv__subject_get(s, own[i]) != NULL)
                rv__subject_complain(s, NULL, "'%s' is only for a workflow with its 'steps'",
                                     rv__key_name(own[i]));
        node->on_error = rv__subject_handler(s, KEY_ON_ERROR, node->depth);
        return;
    }
    struct rv__draft_workflow *workflow = rv__draft_workflow_new(node);
    if (workflow == NULL)
        return;
    workflow->name = node->name;
    workflow->description = rv__subject_text(s, KEY_WORKFLOW_DESCRIPTION);
    workflow->schema = rv__subject_raw(s, KEY_INPUT_SCHEMA);
    rv__subject_names(s, KEY_WORKFLOW_NEEDS, &workflow->needs, &workflow->needs_count);
    rv__subject_names(s, KEY_SECRETS, &workflow->secrets, &workflow->secrets_count);
    rv__draft_manifest_read(workflow, s);
    (void)rv__subject_budget(s, &workflow->budget);
    workflow->hosted = rv__subject_bool(s, KEY_HOSTED);
    workflow->on_error = rv__subject_handler(s, KEY_ON_ERROR, workflow->body.depth);
    workflow->finally = rv__subject_handler(s, KEY_FINALLY, workflow->body.depth);
    rv__subject_body(s, KEY_STEPS, false, &workflow->body);
    node->workflow.here = workflow;
}

static int build_workflow(struct rv__compiler *c, const struct rv__draft_node *draft,
                          struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    int rc = rv__make_bodies(c, node, 1);
    return rc < 0 ? rc : rv__build_nested(c, draft, &node->bodies[0], depth + 1, within);
}

static void write_workflow(struct rv__writer *w, const struct rv__node *node)
{
    rv__write_nested(w, &node->bodies[0]);
}

const struct rv__kind rv__kind_workflow = {
    .phrase = "a workflow",
    .bodies = BODIES_ITSELF, /* the body of the workflow it names; a draft has none */
    .read = read_workflow,
    .build = build_workflow,
    .write = write_workflow,
};
