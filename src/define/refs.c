/* refs.c: checks the expressions of a plan: can each be parsed, is a condition a single expression, and do the
 * nodes that it reads exist?
 *
 * All expressions of a plan are in one set, since jq takes tens of milliseconds to compile a set. expr/ knows
 * what each refers to; which nodes it may see is decided here. */
#include "define/refs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "expr/expr.h"
#include "schema/schema.h"

struct template
{
    const struct rv__node *node;
    const struct rv__body *body;
    enum rv__slot slot;
    uint32_t number;
};

struct checker {
    const struct rv__plan *plan;
    struct rv__exprs *set;
    struct template *templates;
    size_t count, cap;
    void (*tell)(void *arg, const struct rv__finding *finding);
    void *arg;
    unsigned too_big; /* expressions that did not fit, or were too long */
    bool blamed;      /* jq has named one */
    rv_error *err;
};
enum {
    TOO_BIG_TOLD = 3
}; /* messages about too many or too long expressions: further ones would repeat them */

const char *rv__slot_name(enum rv__slot slot)
{
    static const char *const names[SLOTS] = { "when",  "description", "if",    "while",     "until",
                                              "items", "label",       "input", "parameters" };
    return names[slot];
}

/* The key in the file: parameters of a step are under the name of its kind, items under forEach. */
static const char *written_name(const struct template *t)
{
    if (t->slot == SLOT_WITH && t->node != NULL)
        return rv__step_kind_name(t->node->step.kind);
    return t->slot == SLOT_ITEMS ? "forEach" : rv__slot_name(t->slot);
}

static void tell(struct checker *c, const struct template *t, struct rv__str pointer,
                 size_t character, struct rv__str near, const char *fmt, ...) RV_PRINTF(6, 7);

static void tell(struct checker *c, const struct template *t, struct rv__str pointer,
                 size_t character, struct rv__str near, const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    c->tell(c->arg,
            &(struct rv__finding){ t->node, t->body, t->slot, pointer, character, near, message });
}

/* ------------------------------------------------------------------------------- adding --- */

/* Take pointer and position out of expr/'s message: "at /body/tree, character 12: why". */
static void tell_parse_error(struct checker *c, const struct template *t, const char *message)
{
    struct rv__str pointer = RV__STR(""), none = { NULL, 0 };
    const char *at = message, *comma;
    char *end;
    if (strncmp(at, "at ", 3) == 0 && (comma = strstr(at, ", character ")) != NULL) {
        pointer = (struct rv__str){ at + 3, (size_t)(comma - at) - 3 };
        at = comma + 2;
    } else if (strncmp(at, "at ", 3) == 0) {
        at += 3;
    }
    if (strncmp(at, "character ", 10) == 0) {
        unsigned long character = strtoul(at + 10, &end, 10);
        if (strncmp(end, ": ", 2) == 0) {
            tell(c, t, pointer, character, none, "invalid expression in '%s': %s", written_name(t),
                 end + 2);
            return;
        }
    }
    tell(c, t, (struct rv__str)RV__STR(""), 0, none, "invalid '%s': %s", written_name(t), message);
}

static bool is_condition(enum rv__slot slot)
{
    return slot == SLOT_WHEN || slot == SLOT_IF || slot == SLOT_WHILE || slot == SLOT_UNTIL;
}

static int add(struct checker *c, const struct rv__node *node, const struct rv__body *body,
               enum rv__slot slot, struct rv__str json)
{
    struct template t = { node, body, slot, 0 };
    rv_error why;
    if (c->too_big >= TOO_BIG_TOLD)
        return RV_OK;
    if (c->count == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 16;
        struct template *templates = rv__realloc(c->templates, cap * sizeof *templates);
        if (templates == NULL)
            return rv__nomem(c->err);
        c->templates = templates;
        c->cap = cap;
    }
    int rc = is_condition(slot) ? rv__exprs_add_condition(c->set, json, &t.number, &why)
                                : rv__exprs_add(c->set, json, &t.number, &why);
    if (rc == RV_ENOMEM)
        return rv__nomem(c->err);
    if (rc < 0) {
        c->too_big += rc == RV_ETOOBIG;
        tell_parse_error(c, &t, why.message);
        return RV_OK;
    }
    if (slot == SLOT_ITEMS && rv__exprs_constant(c->set, t.number) &&
        rv__json_type(json) != RV__JSON_ARRAY)
        tell(c, &t, (struct rv__str)RV__STR(""), 0, (struct rv__str){ NULL, 0 },
             "invalid items: must be a list, or an expression ${ … } that yields one");
    c->templates[c->count++] = t;
    return RV_OK;
}

static int add_node(struct checker *c, const struct rv__node *node)
{
    static const enum rv__slot slots[USES] = {
        [USE_WHEN] = SLOT_WHEN,   [USE_DESCRIPTION] = SLOT_DESCRIPTION,
        [USE_IF] = SLOT_IF,       [USE_WHILE] = SLOT_WHILE,
        [USE_UNTIL] = SLOT_UNTIL, [USE_ITEMS] = SLOT_ITEMS,
        [USE_LABEL] = SLOT_LABEL,
    };
    int rc = RV_OK;
    for (int use = 0; rc == RV_OK && use < USES; use++) {
        const struct rv__expr *expr = rv__node_expr(node, (enum rv__use)use);
        if (expr != NULL && expr->kind == EXPR_JSON)
            rc = add(c, node, NULL, slots[use], expr->text);
    }
    if (rc == RV_OK && node->kind == NODE_STEP && !rv__str_none(node->step.with))
        rc = add(c, node, NULL, SLOT_WITH, node->step.with);
    for (uint32_t i = 0; rc == RV_OK && i < node->body_count; i++) {
        const struct rv__wrap *wrap = node->bodies[i].wrap;
        if (wrap != NULL && wrap->input.kind == EXPR_JSON)
            rc = add(c, node, &node->bodies[i], SLOT_INPUT, wrap->input.text);
    }
    return rc;
}

/* --------------------------------------------------------------------------- who sees whom --- */

/* Nodes that can be seen: those of `body` before index `before`. look_out() goes to the next outer body. */
struct view {
    const struct rv__body *body;
    uint32_t before; /* UINT32_MAX: all of them */
};

/* What a node sees. A workflow's handler sees all nodes, a step's handler what its step sees. */
static struct view view_of(const struct rv__node *node)
{
    const struct rv__body *body = rv__node_around(node);
    if (node->handler_of != NULL)
        node = node->handler_of;
    bool all = node->is_handler || (body->owner != NULL && body->owner->kind == NODE_LOOP);
    return (struct view){ body, all ? UINT32_MAX : node->index };
}

/* The next view outwards. */
static bool look_out(struct view *view)
{
    if (view->body->owner == NULL)
        return false;
    *view = view_of(view->body->owner);
    return true;
}

/* The innermost view of an expression. A loop's conditions, and the input of its body, see its body. */
static struct view first_view(const struct template *t)
{
    const struct rv__node *node = t->node;
    bool inside = t->slot == SLOT_WHILE || t->slot == SLOT_UNTIL ||
                  (t->slot == SLOT_INPUT && node->kind == NODE_LOOP);
    if (inside)
        return (struct view){ &node->bodies[0], UINT32_MAX };
    return view_of(node);
}

static bool is_visible(const struct template *t, struct rv__str alias)
{
    struct view view = first_view(t);
    do {
        const struct rv__node *found = rv__body_find(view.body, alias);
        if (found != NULL && found->index < view.before)
            return true;
    } while (look_out(&view));
    return rv__wrap_needs(view.body->wrap, alias); /* of the workflow around this one */
}

/* A similar alias among those it sees. The texts in a plan end in NUL. */
static const char *suggest_alias(const struct template *t, struct rv__str alias)
{
    enum { CANDIDATES = 200 }; /* further ones are not compared */
    const char *candidates[CANDIDATES];
    size_t count = 0;
    struct view view = first_view(t);
    do {
        for (uint32_t i = 0; i < view.body->count && i < view.before && count < CANDIDATES; i++)
            candidates[count++] = view.body->nodes[i]->alias.at;
    } while (look_out(&view));
    return rv__suggest(alias, candidates, count);
}

/* A node of that alias anywhere; one in the same sequence if there is one. */
static const struct rv__node *find_anywhere(const struct rv__plan *plan, const struct template *t,
                                            struct rv__str alias)
{
    struct view view = first_view(t);
    do {
        const struct rv__node *found = rv__body_find(view.body, alias);
        if (found != NULL)
            return found;
    } while (look_out(&view));
    for (uint32_t i = 0; i < plan->node_count; i++)
        if (!plan->nodes[i]->is_handler && rv__str_eq(plan->nodes[i]->alias, alias))
            return plan->nodes[i];
    return NULL;
}

static bool is_around(const struct rv__node *outer, const struct rv__node *node)
{
    while ((node = rv__node_around(node)->owner) != NULL) {
        if (node == outer)
            return true;
    }
    return false;
}

/* Does the body contain the expression, so that its nodes are before or after it? */
static bool is_inside(const struct template *t, const struct rv__body *body)
{
    struct view view = first_view(t);
    do {
        if (view.body == body)
            return true;
    } while (look_out(&view));
    return false;
}

/* Why it cannot be read from there. */
static void say_unseen(const struct rv__plan *plan, const struct template *t, struct rv__str alias,
                       char *why, size_t room)
{
    const struct rv__node *node = find_anywhere(plan, t, alias);
    int shown = alias.len < 60 ? (int)alias.len : 60;
    const char *name = alias.at;
    if (node == NULL) {
        const char *meant = suggest_alias(t, alias);
        (void)snprintf(why, room, "there is no node '%.*s'%s%s%s", shown, name,
                       meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    } else if (node == t->node) {
        (void)snprintf(
            why, room, "'%.*s' is this node itself, which has no result yet%s", shown, name,
            t->slot == SLOT_DESCRIPTION ? "; in its description, its own result is .result" : "");
    } else if (is_around(node, t->node)) {
        (void)snprintf(why, room, "'%.*s' contains this node, and has no result before it ends",
                       shown, name);
    } else if (is_inside(t, node->body)) {
        (void)snprintf(why, room, "'%.*s' comes later: only nodes before this one have a result",
                       shown, name);
    } else {
        const struct rv__node *owner = node->body->owner; /* of the body that contains the node */
        (void)snprintf(why, room, "'%.*s' is inside '%.*s' and cannot be read from here%s", shown,
                       name, RV__ARG(owner->alias),
                       owner->is_handler ? "" : "; its result is in that node's result");
    }
}

static void tell_unseen(struct checker *c, const struct template *t, const struct rv__expr_use *use)
{
    char near[RV__PLAN_MAX_NAME + 16], why[RV__PLAN_MAX_NAME + 200];
    (void)snprintf(near, sizeof near, ".steps.%.*s", RV__ARG(use->name));
    say_unseen(c->plan, t, use->name, why, sizeof why);
    tell(c, t, use->pointer, use->character, rv__str(near), "%s", why);
}

bool rv__define_sees(const struct rv__plan *plan, const struct rv__node *node, bool own_body,
                     struct rv__str alias, char *why, size_t room)
{
    struct template t = { .node = node, .slot = own_body ? SLOT_UNTIL : SLOT_WHEN };
    if (node->is_handler) { /* a handler gets everything that ran, wherever it was */
        for (uint32_t i = 0; i < plan->node_count; i++)
            if (rv__str_eq(plan->nodes[i]->alias, alias))
                return true;
        (void)snprintf(why, room, "there is no node '%.*s'", alias.len < 60 ? (int)alias.len : 60,
                       alias.at);
        return false;
    }
    if (is_visible(&t, alias))
        return true;
    say_unseen(plan, &t, alias, why, room);
    return false;
}

/* Roots of some expressions only: the result in a description, the error in a handler. */
static bool is_own_root(const struct template *t, struct rv__str root)
{
    bool told = rv__str_is(root, "error") || rv__str_is(root, "failedStep") ||
                rv__str_is(root, "workflowState");
    return (t->slot == SLOT_DESCRIPTION && rv__str_is(root, "result")) ||
           (told && rv__node_handler(t->node) != NULL);
}

/* What the agent of a state sees (SPEC: stage schedules). False, with why: it does not see that. */
static bool agent_sees(const struct template *t, const struct rv__state *state, struct rv__str root,
                       char *why, size_t room)
{
    static const char *const always[] = {
        "input", "inputs", "parameters", "state", "run", "secrets"
    };
    static const char *const seen[] = { "input", "inputs", "parameters", "state",
                                        "run",   "steps",  "env",        "result" };
    int shown = root.len < 40 ? (int)root.len : 40;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (rv__str_is(root, always[i]))
            return true;
    if (is_own_root(t, root))
        return true;
    bool everything = rv__str_is(root, "steps") || rv__str_is(root, "env");
    if (everything && state->access == ACCESS_ALL)
        return true;
    if (everything) {
        (void)snprintf(
            why, room,
            "'.%.*s' is only for agents of states with accessibility 'all': that of '%.*s' "
            "is '%s'",
            shown, root.at, RV__ARG(t->node->alias), rv__access_name(state->access));
        return false;
    }
    const char *meant = rv__suggest(root, seen, t->slot == SLOT_DESCRIPTION ? 8 : 7);
    (void)snprintf(
        why, room,
        "the expression of an agent sees input, inputs, parameters, state, run, steps and "
        "env, and no '.%.*s'%s%s%s",
        shown, root.at, meant ? "; did you mean '." : "", meant ? meant : "", meant ? "'?" : "");
    return false;
}

/* ---------------------------------------------------------------------------------- secrets --- */

/* Is this a parameter that the attempt sends out, where secrets are allowed? */
static bool is_sent(const struct template *t, struct rv__str pointer)
{
    static const struct {
        enum rv__step_kind kind;
        struct rv__str key;
    } sent[] = {
        { STEP_COMMAND, RV__STR("/argv") },  { STEP_COMMAND, RV__STR("/env") },
        { STEP_COMMAND, RV__STR("/stdin") }, { STEP_HTTP, RV__STR("/url") },
        { STEP_HTTP, RV__STR("/headers") },  { STEP_HTTP, RV__STR("/body") },
    };
    for (size_t i = 0; t->slot == SLOT_WITH && i < sizeof sent / sizeof *sent; i++) {
        size_t len = sent[i].key.len;
        if (t->node->step.kind == sent[i].kind && pointer.len >= len &&
            memcmp(pointer.at, sent[i].key.at, len) == 0 &&
            (pointer.len == len || pointer.at[len] == '/'))
            return true;
    }
    return false;
}

static void check_secret(struct checker *c, const struct template *t,
                         const struct rv__expr_use *use)
{
    enum { CANDIDATES = RV__PLAN_MAX_SECRETS };
    const struct rv__wrap *wrap = rv__node_wrap(t->node);
    const char *candidates[CANDIDATES];
    struct rv__str near = RV__STR(".secrets");
    int shown = use->name.len < 60 ? (int)use->name.len : 60;
    size_t count = 0;
    if (!is_sent(t, use->pointer)) {
        tell(c, t, use->pointer, use->character, near,
             "a secret may only be in what is sent out (argv, env and stdin of a command; url, "
             "headers and body of http), since everything else is recorded");
        return;
    }
    if (rv__str_none(use->name)) {
        tell(c, t, use->pointer, use->character, near,
             "secrets are read one by one, by name: .secrets.NAME");
        return;
    }
    if (rv__wrap_has_secret(wrap, use->name))
        return;
    for (; count < wrap->secrets_count && count < CANDIDATES; count++)
        candidates[count] = wrap->secrets[count].at;
    const char *meant = rv__suggest(use->name, candidates, count);
    tell(c, t, use->pointer, use->character, near,
         "the secret '%.*s' is not declared: the workflow needs 'secrets: [%.*s]'%s%s%s", shown,
         use->name.at, shown, use->name.at, meant ? "; did you mean '" : "", meant ? meant : "",
         meant ? "'?" : "");
}

static void check_secrets(struct checker *c, const struct template *t)
{
    struct rv__expr_use use;
    for (size_t i = 0; rv__exprs_use(c->set, t->number, i, &use); i++)
        if (rv__str_is(use.root, "secrets"))
            check_secret(c, t, &use);
}

static void check_uses(struct checker *c, const struct template *t)
{
    static const char *const roots[] = { "input", "steps", "lastStep", "loop",
                                         "run",   "env",   "result" };
    const struct rv__state *agent = rv__node_speaks_for(t->node);
    char why[RV__PLAN_MAX_NAME + 200];
    struct rv__expr_use use;
    if (t->node->is_handler) /* a handler gets everything that ran */
        return;
    for (size_t i = 0; rv__exprs_use(c->set, t->number, i, &use); i++) {
        if (rv__str_none(use.root))
            continue;
        if (agent != NULL && !agent_sees(t, agent, use.root, why, sizeof why)) {
            tell(c, t, use.pointer, use.character, (struct rv__str){ NULL, 0 }, "%s", why);
        } else if (agent != NULL && !rv__str_is(use.root, "steps")) {
            continue;
        } else if (rv__str_is(use.root, "steps")) {
            if (!rv__str_none(use.name) && !is_visible(t, use.name))
                tell_unseen(c, t, &use);
        } else if (!rv__expr_known_root(use.root) && !is_own_root(t, use.root)) {
            char near[64];
            int shown = use.root.len < 40 ? (int)use.root.len : 40;
            const char *meant = rv__suggest(use.root, roots, t->slot == SLOT_DESCRIPTION ? 7 : 6);
            (void)snprintf(near, sizeof near, ".%.*s", shown, use.root.at);
            tell(c, t, use.pointer, use.character, rv__str(near),
                 "an expression sees input, steps, lastStep, loop, run and env, and no "
                 "'.%.*s'%s%s%s",
                 shown, use.root.at, meant ? "; did you mean '." : "", meant ? meant : "",
                 meant ? "'?" : "");
        }
    }
}

/* ---------------------------------------------------------------------------------- signals --- */

static int by_signal(const void *a, const void *b)
{
    const struct rv__node *x = *(const struct rv__node *const *)a,
                          *y = *(const struct rv__node *const *)b;
    int cmp = rv__str_cmp(x->step.signal_checked, y->step.signal_checked);
    return cmp != 0 ? cmp : (x->id > y->id) - (x->id < y->id);
}

static int check_schema(struct checker *c, const struct rv__node *node)
{
    const struct template t = { node, NULL, SLOT_WITH, 0 };
    struct rv__schema *schema = NULL;
    struct rv__arena arena;
    struct rv__violations bad;
    rv_error why = { .code = 0 };
    rv__arena_init(&arena, SIZE_MAX); /* bounded by RV__VIOLATIONS_MAX */
    rv__violations_init(&bad, &arena);
    int rc = rv__schema_new(node->step.signal_schema, &bad, &schema, &why);
    rv__schema_free(schema);
    rc = rc == RV_ENOMEM || bad.rc == RV_ENOMEM ? rv__nomem(c->err) : RV_OK;
    for (size_t i = 0; rc == RV_OK && i < bad.count; i++) {
        char pointer[256];
        struct rv__str path = bad.items[i].path;
        (void)snprintf(pointer, sizeof pointer, "/schema%.*s", RV__ARG(path));
        tell(c, &t, rv__str(pointer), 0, (struct rv__str){ NULL, 0 },
             "invalid schema of a signal: %.*s%s%.*s", RV__ARG(path), path.len > 0 ? ": " : "",
             RV__ARG(bad.items[i].message));
    }
    if (rc == RV_OK && why.code != RV_OK && bad.count == 0)
        tell(c, &t, rv__str("/schema"), 0, (struct rv__str){ NULL, 0 },
             "invalid schema of a signal: %s", why.message);
    rv__arena_done(&arena);
    return rc;
}

/* A payload is checked by the signal's name, since any step that waits for it may take it. So all steps with
 * one name must have one schema. */
static int check_signals(struct checker *c)
{
    const struct rv__plan *plan = c->plan;
    size_t count = 0;
    int rc = RV_OK;
    for (uint32_t i = 0; i < plan->node_count; i++)
        count += rv__node_has_schema(plan->nodes[i]);
    if (count == 0)
        return RV_OK;
    const struct rv__node **nodes = rv__zalloc(count, sizeof *nodes);
    if (nodes == NULL)
        return rv__nomem(c->err);
    count = 0;
    for (uint32_t i = 0; i < plan->node_count; i++)
        if (rv__node_has_schema(plan->nodes[i]))
            nodes[count++] = plan->nodes[i];
    qsort(nodes, count, sizeof *nodes, by_signal);
    for (size_t i = 0; rc == RV_OK && i < count; i++) {
        const struct template t = { nodes[i], NULL, SLOT_WITH, 0 };
        bool again = i > 0 &&
                     rv__str_eq(nodes[i]->step.signal_checked, nodes[i - 1]->step.signal_checked);
        if (!again)
            rc = check_schema(c, nodes[i]);
        else if (!rv__str_eq(nodes[i]->step.signal_schema, nodes[i - 1]->step.signal_schema))
            tell(c, &t, rv__str("/schema"), 0, (struct rv__str){ NULL, 0 },
                 "the signal '%.*s' has another schema at '%.*s': a signal has one schema in a "
                 "workflow",
                 RV__ARG(nodes[i]->step.signal_checked), RV__ARG(nodes[i - 1]->alias));
    }
    rv__free(nodes);
    return rc;
}

static void tell_bad(void *arg, const struct rv__expr_bad *bad)
{
    struct checker *c = arg;
    c->blamed = true;
    for (size_t i = 0; i < c->count; i++)
        if (c->templates[i].number == bad->number)
            tell(c, &c->templates[i], bad->pointer, bad->character, (struct rv__str){ NULL, 0 },
                 "invalid expression in '%s': %s", written_name(&c->templates[i]), bad->message);
}

int rv__refs_find(const struct rv__plan *plan, struct rv__expr_compiler *compiler,
                  void (*told)(void *, const struct rv__finding *), void *arg, rv_error *err)
{
    struct checker c = { .plan = plan, .tell = told, .arg = arg, .err = err };
    int rc = rv__exprs_new(&c.set, err);
    for (uint32_t i = 0; rc == RV_OK && i < plan->node_count; i++)
        rc = add_node(&c, plan->nodes[i]);
    for (size_t i = 0; rc == RV_OK && i < c.count; i++) {
        check_secrets(&c, &c.templates[i]);
        check_uses(&c, &c.templates[i]);
    }
    if (rc == RV_OK)
        rc = check_signals(&c);
    if (rc == RV_OK && compiler != NULL) {
        rc = rv__exprs_check(c.set, compiler, tell_bad, &c, err);
        if (rc == RV_EPARSE && c.blamed) /* told */
            rc = RV_OK;
    }
    rv__exprs_unref(c.set);
    rv__free(c.templates);
    return rc;
}

/* ----------------------------------------------------------------------- as violations --- */

static void add_violation(void *arg, const struct rv__finding *finding)
{
    struct rv__violations *bad = arg;
    struct rv__buf path;
    rv__buf_init(&path, RV__PLAN_MAX_BYTES);
    if (finding->body != NULL)
        rv__body_path(finding->body, NULL, &path);
    else
        rv__node_path(finding->node, NULL, &path);
    rv__violations_add(bad, rv__buf_view(&path), "%s", finding->message);
    if (path.rc != RV_OK)
        bad->rc = RV_ENOMEM;
    rv__buf_done(&path);
}

int rv__define_check_refs(const struct rv__plan *plan, struct rv__expr_compiler *compiler,
                          struct rv__violations *bad, rv_error *err)
{
    size_t before = bad->count + bad->dropped;
    int rc = rv__refs_find(plan, compiler, add_violation, bad, err);
    if (rc < 0 || (bad->rc == RV_OK && bad->count + bad->dropped == before))
        return rc;
    return rv__violations_err(bad, err);
}
