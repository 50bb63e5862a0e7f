/* draft.c: builds a draft, call by call.
 *
 * Everything lives in the draft's arena, so freeing it does not walk the tree. The limits of a plan apply
 * here already: a call that exceeds one makes the draft fail, and from then on every call works on a dummy
 * that is in no tree. */
#include "plan/draft.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "plan/kinds.h"

void rv__draft_fail(struct rv__draft *draft, int code, const char *fmt, ...)
{
    va_list args;
    if (draft->failure.code != RV_OK) /* only the first failure is kept */
        return;
    va_start(args, fmt);
    (void)rv__vfail(&draft->failure, code, fmt, args);
    va_end(args);
}

void *rv__draft_alloc(struct rv__draft *draft, size_t count, size_t size)
{
    if (draft->failure.code != RV_OK)
        return NULL;
    void *mem = rv__arena_zalloc(&draft->arena, count, size);
    if (mem == NULL)
        (void)rv__nomem(&draft->failure);
    return mem;
}

struct rv__str rv__draft_text(struct rv__draft *draft, struct rv__str text)
{
    struct rv__str copy = { NULL, 0 };
    if (rv__str_none(text) || draft->failure.code != RV_OK)
        return copy;
    if (text.len > RV__PLAN_MAX_BYTES - draft->bytes) { /* bytes never exceeds it */
        rv__draft_fail(draft, RV_ETOOBIG, "the workflow has more than %d bytes of text",
                       RV__PLAN_MAX_BYTES);
        return copy;
    }
    if (rv__str_copy(&draft->arena, text, &copy) < 0)
        (void)rv__nomem(&draft->failure);
    else
        draft->bytes += text.len;
    return copy;
}

/* Memory for one more node, body or handler. */
static void *new_piece(struct rv__draft *draft, size_t size)
{
    if (draft->pieces == RV__PLAN_MAX_NODES)
        rv__draft_fail(draft, RV_ETOOBIG, "the workflow has more than %d nodes",
                       RV__PLAN_MAX_NODES);
    void *mem = rv__draft_alloc(draft, 1, size);
    if (mem != NULL)
        draft->pieces++;
    return mem;
}

static bool is_dummy(const struct rv__draft_body *body)
{
    return body == &body->draft->dummy_body;
}

void rv__draft_body_init(struct rv__draft_body *body, struct rv__draft *draft,
                         struct rv__draft_node *owner, unsigned depth)
{
    *body = (struct rv__draft_body){ .draft = draft, .owner = owner, .depth = depth };
}

struct rv__draft *rv__draft_make(void)
{
    struct rv__draft *draft = rv__zalloc(1, sizeof *draft);
    if (draft == NULL)
        return NULL;
    rv__arena_init(&draft->arena, SIZE_MAX); /* `pieces` and `bytes` bound it */
    rv__draft_body_init(&draft->workflow.body, draft, NULL, 1);
    rv__draft_body_init(&draft->dummy_body, draft, NULL, 1);
    draft->dummy_node.draft = draft;
    return draft;
}

void rv__draft_free(struct rv__draft *draft)
{
    if (draft == NULL)
        return;
    rv__arena_done(&draft->arena);
    rv__free(draft);
}

/* What calls get instead of a node after a failure. It is emptied each time, so that it does not grow. */
static struct rv__draft_node *dummy_node(struct rv__draft *draft)
{
    draft->dummy_node = (struct rv__draft_node){ .draft = draft };
    return &draft->dummy_node;
}

struct rv__draft_node *rv__draft_node_new(struct rv__draft_body *in, enum rv__node_kind kind)
{
    struct rv__draft_node *node = is_dummy(in) ? NULL : new_piece(in->draft, sizeof *node);
    if (node == NULL) {
        node = dummy_node(in->draft);
    } else if (in->last != NULL) {
        in->last->next = node;
        in->last = node;
    } else {
        in->first = in->last = node;
    }
    in->count++;
    node->draft = in->draft;
    node->in = in;
    node->kind = kind;
    node->depth = in->depth;
    return node;
}

/* `depth`: of the body that its step, or the nodes of its workflow, are in. */
struct rv__draft_node *rv__draft_handler_new(struct rv__draft *draft, unsigned depth,
                                             enum rv__node_kind kind)
{
    struct rv__draft_node *node = new_piece(draft, sizeof *node);
    if (node == NULL)
        node = dummy_node(draft);
    node->draft = draft;
    node->kind = kind;
    node->depth = depth;
    return node;
}

/* Bounds the depth of the draft; the compiler has the exact rule. A workflow given as a body is one level
 * there and two here. */
static void check_depth(struct rv__draft_node *node)
{
    if (node->depth == 2 * RV__PLAN_MAX_DEPTH)
        rv__draft_fail(node->draft, RV_ETOOBIG,
                       "the plan is nested deeper than %d levels, nested workflows included",
                       RV__PLAN_MAX_DEPTH);
}

struct rv__draft_workflow *rv__draft_workflow_new(struct rv__draft_node *at)
{
    check_depth(at);
    struct rv__draft_workflow *workflow = new_piece(at->draft, sizeof *workflow);
    if (workflow != NULL)
        rv__draft_body_init(&workflow->body, at->draft, NULL, at->depth + 1);
    return workflow;
}

void rv__draft_complain(struct rv__draft *draft, struct rv__complaints *to, const char *key,
                        const char *fmt, va_list args)
{
    char text[512]; /* the longest violation */
    if (draft->complaint_count == RV__VIOLATIONS_MAX)
        return;
    int n = vsnprintf(text, sizeof text, fmt, args);
    assert(n >= 0); /* fails for a bad format only, and the compiler checks those */

    struct rv__complaint *complaint = rv__draft_alloc(draft, 1, sizeof *complaint);
    if (complaint == NULL)
        return;
    complaint->key = key;
    complaint->text = rv__draft_text(draft, rv__str(text));
    *(to->end != NULL ? to->end : &to->first) = complaint;
    to->end = &complaint->next;
    draft->complaint_count++;
}

struct rv__shown rv__show(struct rv__str text)
{
    enum { LONGEST = 60 };
    struct rv__shown shown = { "" };
    size_t len = text.len;
    if (len > LONGEST) {
        len = LONGEST;
        while (len > LONGEST - 4 && (text.at[len] & 0xC0) == 0x80) /* within a character */
            len--;
    }
    bool whole = rv__str_utf8((struct rv__str){ text.at, len });
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool plain = c >= ' ' && c != 0x7F && (c < 0x80 || whole);
        shown.text[i] = '?';
        if (plain)
            shown.text[i] = text.at[i];
    }
    if (len < text.len)
        memcpy(shown.text + len, "…", sizeof "…");
    return shown;
}

/* --------------------------------------------------------------------------- the builder --- */

int rv__draft_new(const char *name, struct rv__draft **ret, rv_error *err)
{
    struct rv__draft *draft = rv__draft_make();
    if (draft == NULL)
        return rv__nomem(err);
    draft->workflow.name = rv__draft_text(draft, rv__str(name));
    *ret = draft;
    return RV_OK;
}

void rv__draft_hosted(struct rv__draft *draft)
{
    draft->workflow.hosted = true;
}

void rv__draft_description(struct rv__draft *draft, const char *text)
{
    draft->workflow.description = rv__draft_text(draft, rv__str(text));
}

void rv__draft_schema(struct rv__draft *draft, const char *json)
{
    draft->workflow.schema = rv__draft_text(draft, rv__str(json));
}

struct rv__str rv__draft_name(const struct rv__draft *draft)
{
    return draft->workflow.name;
}

struct rv__draft_body *rv__draft_root(struct rv__draft *draft)
{
    return &draft->workflow.body;
}

struct rv__expr rv__draft_expr(struct rv__draft *draft, struct rv__expr expr)
{
    struct rv__str text = rv__draft_text(draft, expr.text);
    if (rv__str_none(text))
        expr.kind = EXPR_NONE;
    return (struct rv__expr){ expr.kind, text };
}

/* A description is given as text; as an expression it is that text as JSON. */
static struct rv__expr description_expr(struct rv__draft *draft, const char *text)
{
    struct rv__expr expr = { EXPR_NONE, { NULL, 0 } };
    struct rv__buf json;
    if (text == NULL)
        return expr;
    rv__buf_init(&json, RV__PLAN_MAX_BYTES);
    rv__buf_json_str(&json, rv__str(text));
    if (json.rc == RV_OK)
        expr = (struct rv__expr){ EXPR_JSON, rv__draft_text(draft, rv__buf_view(&json)) };
    else
        rv__draft_fail(draft, json.rc, "%s: a node's description", rv_strerror(json.rc));
    rv__buf_done(&json);
    return expr;
}

/* `names` ends in NULL. Without memory the copy is empty, and compiling the draft fails. */
static uint32_t copy_names(struct rv__draft *draft, const char *const *names, struct rv__str **ret)
{
    uint32_t count = 0;
    while (names[count] != NULL)
        count++;
    *ret = rv__draft_alloc(draft, count, sizeof **ret);
    if (*ret == NULL)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        (*ret)[i] = rv__draft_text(draft, rv__str(names[i]));
    return count;
}

static void copy_needs(struct rv__draft_node *node, const char *const *needs)
{
    node->given |= GIVEN_NEEDS;
    node->needs_count = copy_names(node->draft, needs, &node->needs);
}

void rv__draft_needs(struct rv__draft *draft, const char *const *aliases)
{
    draft->workflow.needs_count = copy_names(draft, aliases, &draft->workflow.needs);
}

void rv__draft_parameters(struct rv__draft *draft, const char *json)
{
    draft->workflow.parameters = rv__draft_text(draft, rv__str(json));
}

void rv__draft_budget(struct rv__draft *draft, struct rv__budget budget)
{
    draft->workflow.budget = budget;
}

void rv__draft_listeners(struct rv__draft *draft, const char *json)
{
    draft->workflow.listeners = rv__draft_text(draft, rv__str(json));
}

void rv__draft_secrets(struct rv__draft *draft, const char *const *names)
{
    if (names != NULL)
        draft->workflow.secrets_count = copy_names(draft, names, &draft->workflow.secrets);
}

/* Which options are given: those that are not 0. */
static unsigned given_of(const struct rv__step_config *config)
{
    unsigned given = 0;
    given |= config->timeout_ms != 0 ? GIVEN_TIMEOUT : 0;
    given |= config->on_timeout != ON_TIMEOUT_STOP ? GIVEN_ON_TIMEOUT : 0;
    given |= config->max_attempts != 0 ? GIVEN_MAX_ATTEMPTS : 0;
    given |= config->backoff != BACKOFF_LINEAR ? GIVEN_BACKOFF : 0;
    given |= config->backoff_base_ms != 0 ? GIVEN_BACKOFF_BASE_MS : 0;
    given |= config->max_backoff_ms != 0 ? GIVEN_MAX_BACKOFF_MS : 0;
    given |= config->jitter != 0 ? GIVEN_JITTER : 0;
    given |= !rv__str_none(config->retry_on) ? GIVEN_RETRY_ON : 0;
    given |= !rv__str_none(config->no_retry_on) ? GIVEN_NO_RETRY_ON : 0;
    given |= config->continue_on_error ? GIVEN_CONTINUE_ON_ERROR : 0;
    given |= config->hide_input ? GIVEN_RECORD_INPUT : 0;
    return given;
}

struct rv__draft_node *rv__draft_add(struct rv__draft_body *in, enum rv__node_kind kind,
                                     const struct rv__draft_opts *opts)
{
    struct rv__draft *draft = in->draft;
    struct rv__draft_node *node = rv__draft_node_new(in, kind);
    if (opts == NULL)
        return node;
    node->alias = rv__draft_text(draft, rv__str(opts->alias));
    node->when = rv__draft_expr(draft, opts->when);
    node->description = opts->describe != NULL
                            ? rv__draft_expr(draft, rv__expr_function(opts->describe))
                            : description_expr(draft, opts->description);
    node->config = opts->config;
    node->config.retry_on = rv__draft_text(draft, opts->config.retry_on);
    node->config.no_retry_on = rv__draft_text(draft, opts->config.no_retry_on);
    node->given = given_of(&opts->config);
    if (opts->needs != NULL)
        copy_needs(node, opts->needs);
    return node;
}

static struct rv__draft_body *add_body(struct rv__draft_node *node)
{
    struct rv__draft *draft = node->draft;
    check_depth(node);
    struct rv__draft_body *body = node == &draft->dummy_node ? NULL
                                                             : new_piece(draft, sizeof *body);
    if (body == NULL)
        return &draft->dummy_body;
    rv__draft_body_init(body, draft, node, node->depth + 1);
    *(node->last_body != NULL ? &node->last_body->next : &node->bodies) = body;
    node->last_body = body;
    node->body_count++;
    return body;
}

static void complain(struct rv__draft_node *node, const char *fmt, ...) RV_PRINTF(2, 3);

static void complain(struct rv__draft_node *node, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    rv__draft_complain(node->draft, &node->complaints, NULL, fmt, args);
    va_end(args);
}

struct rv__draft_body *rv__draft_body(struct rv__draft_node *node, uint32_t index,
                                      const char *alias, bool bare)
{
    struct rv__draft *draft = node->draft;
    struct rv__draft_body *body;
    const struct rv__kind *kind = rv__kind_of(node->kind);
    bool in_order = index <= node->body_count || kind->most_bodies != UINT32_MAX;
    if (index >= kind->most_bodies || !in_order) {
        complain(node, "a %s has no body %" PRIu32, rv__node_kind_name(node->kind), index);
        return &draft->dummy_body;
    }
    while (kind->all_bodies && node->body_count < kind->most_bodies)
        if (add_body(node) == &draft->dummy_body)
            return &draft->dummy_body;
    if (index == node->body_count)
        body = add_body(node);
    else
        for (body = node->bodies; index > 0 && body != NULL; index--)
            body = body->next;
    assert(body != NULL); /* there are body_count of them */
    if (alias != NULL)
        body->alias = rv__draft_text(draft, rv__str(alias));
    body->bare = body->bare || bare;
    return body;
}

static struct rv__draft_node *new_handler(struct rv__draft *draft, struct rv__draft_node *node,
                                          enum rv__handler which, enum rv__node_kind kind)
{
    struct rv__draft_workflow *workflow = &draft->workflow;
    unsigned depth = node != NULL ? node->depth : workflow->body.depth;
    struct rv__draft_node *handler = rv__draft_handler_new(draft, depth, kind);
    if (handler == &draft->dummy_node)
        return handler;
    *(which == HANDLER_FINALLY ? &workflow->finally
      : node != NULL           ? &node->on_error
                               : &workflow->on_error) = handler;
    return handler;
}

void rv__draft_handler(struct rv__draft *draft, struct rv__draft_node *node, enum rv__handler which,
                       enum rv__step_kind kind, const char *name, const char *with_json)
{
    struct rv__draft_node *handler = new_handler(draft, node, which, NODE_STEP);
    handler->step.kind = kind;
    handler->name = rv__draft_text(draft, rv__str(name));
    handler->step.with = rv__draft_text(draft, rv__str(with_json));
}

struct rv__draft_body *rv__draft_handler_body(struct rv__draft *draft, struct rv__draft_node *node,
                                              enum rv__handler which)
{
    return rv__draft_body(new_handler(draft, node, which, NODE_SEQUENCE), 0, NULL, false);
}

/* ------------------------------------------------------------------------------- nested --- */

/* Recursive; a draft has at most RV__PLAN_MAX_DEPTH levels. */
static int name_nested(struct rv__draft *draft, const struct rv__draft_body *body,
                       int (*name_it)(void *arg, struct rv__str said, struct rv__str *name),
                       void *arg)
{
    int rc = RV_OK;
    for (struct rv__draft_node *node = body->first; rc == RV_OK && node != NULL;
         node = node->next) {
        bool named = node->kind == NODE_WORKFLOW && !node->broken && node->workflow.here == NULL;
        struct rv__str name = node->name;
        if (named && !rv__str_none(name))
            rc = name_it(arg, node->name, &name);
        if (rc == RV_OK && name.at != node->name.at) {
            node->name = rv__draft_text(draft, name);
            rc = rv__str_none(node->name) ? RV_ENOMEM : RV_OK;
        }
        for (const struct rv__draft_body *in = node->bodies; rc == RV_OK && in != NULL;
             in = in->next)
            rc = name_nested(draft, in, name_it, arg);
        if (rc == RV_OK && node->on_error != NULL && node->on_error->bodies != NULL)
            rc = name_nested(draft, node->on_error->bodies, name_it, arg);
    }
    return rc;
}

int rv__draft_nested(struct rv__draft *draft,
                     int (*name_it)(void *arg, struct rv__str said, struct rv__str *name),
                     void *arg)
{
    const struct rv__draft_workflow *workflow = &draft->workflow;
    const struct rv__draft_node *handlers[] = { workflow->on_error, workflow->finally };
    int rc = name_nested(draft, &workflow->body, name_it, arg);
    for (size_t i = 0; rc == RV_OK && i < 2; i++)
        if (handlers[i] != NULL && handlers[i]->bodies != NULL)
            rc = name_nested(draft, handlers[i]->bodies, name_it, arg);
    return rc;
}

/* ------------------------------------------------------------------------------ places --- */

void rv__draft_where(const struct rv__draft_body *body, const char *alias, struct rv__buf *ret)
{
    const struct rv__draft_node *owners[RV__PLAN_MAX_DEPTH];
    size_t count = 0;
    for (const struct rv__draft_node *node = body->owner;
         node != NULL && count < RV__PLAN_MAX_DEPTH;
         node = node->in != NULL ? node->in->owner : NULL)
        owners[count++] = node;
    while (count-- > 0) {
        struct rv__str said = owners[count]->alias;
        rv__buf_str(ret,
                    rv__str_none(said) ? rv__str(rv__node_kind_name(owners[count]->kind)) : said);
        rv__buf_char(ret, ':');
    }
    rv__buf_text(ret, alias != NULL ? alias : "");
}
