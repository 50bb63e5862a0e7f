/* refs.c: the expressions of a plan: can each be parsed, is a condition one, and do the nodes exist
 * that it reads?
 *
 * All expressions of a plan go into one set, since compiling with jq costs tens of milliseconds for
 * each set. What each refers to is asked of the set (expr/); who may see whom is decided here. */
#include "define/refs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "expr/expr.h"

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
}; /* where a plan has too many expressions, each further one is like them */

const char *rv__slot_name(enum rv__slot slot)
{
    static const char *const names[SLOTS] = { "when",  "description", "if",    "while",
                                              "until", "items",       "input", "parameters" };
    return names[slot];
}

/* As its author wrote it: what a step does is under the name of its kind, a list under forEach. */
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

/* "at /body/tree, character 12: why", "at character 12: why": expr/ tells the place in words. */
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

/* Calls `see` for each body whose nodes can be seen, innermost first: those before `before`, or all. */
struct view {
    const struct rv__body *body;
    uint32_t before; /* UINT32_MAX: all of them */
};

/* The next view outwards. */
static bool look_out(struct view *view)
{
    const struct rv__node *owner = view->body->owner;
    if (owner == NULL)
        return false;
    bool looped = owner->body->owner != NULL && owner->body->owner->kind == NODE_LOOP;
    *view = (struct view){ owner->body, looped ? UINT32_MAX : owner->index };
    return true;
}

/* What the expression sees first. A loop's conditions and the input of what it repeats see its body. */
static struct view first_view(const struct template *t)
{
    const struct rv__node *node = t->node;
    bool inside = t->slot == SLOT_WHILE || t->slot == SLOT_UNTIL ||
                  (t->slot == SLOT_INPUT && node->kind == NODE_LOOP);
    if (inside)
        return (struct view){ &node->bodies[0], UINT32_MAX };
    bool looped = node->body->owner != NULL && node->body->owner->kind == NODE_LOOP;
    return (struct view){ node->body, looped ? UINT32_MAX : node->index };
}

static bool is_visible(const struct template *t, struct rv__str alias)
{
    struct view view = first_view(t);
    do {
        const struct rv__node *found = rv__body_find(view.body, alias);
        if (found != NULL && found->index < view.before)
            return true;
    } while (look_out(&view));
    return rv__wrap_needs(view.body->wrap, alias); /* of who nests it: asked for there */
}

/* The aliases that it sees, for a suggestion. The texts in a plan end in NUL. */
static const char *suggest_alias(const struct template *t, struct rv__str alias)
{
    enum { CANDIDATES = 200 }; /* more than anybody mistypes among */
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
static const struct rv__node *find_anywhere(const struct checker *c, const struct template *t,
                                            struct rv__str alias)
{
    struct view view = first_view(t);
    do {
        const struct rv__node *found = rv__body_find(view.body, alias);
        if (found != NULL)
            return found;
    } while (look_out(&view));
    for (uint32_t i = 0; i < c->plan->node_count; i++)
        if (!c->plan->nodes[i]->is_handler && rv__str_eq(c->plan->nodes[i]->alias, alias))
            return c->plan->nodes[i];
    return NULL;
}

static bool is_around(const struct rv__node *outer, const struct rv__node *node)
{
    while (node->body->owner != NULL) {
        node = node->body->owner;
        if (node == outer)
            return true;
    }
    return false;
}

/* Is the body one that the expression stands in, so that its nodes are before or after it? */
static bool stands_in(const struct template *t, const struct rv__body *body)
{
    struct view view = first_view(t);
    do {
        if (view.body == body)
            return true;
    } while (look_out(&view));
    return false;
}

static void tell_unseen(struct checker *c, const struct template *t, const struct rv__expr_use *use)
{
    char near[RV__PLAN_MAX_NAME + 16];
    const struct rv__node *node = find_anywhere(c, t, use->name);
    int shown = use->name.len < 60 ? (int)use->name.len : 60;
    const char *name = use->name.at;
    struct rv__str place;

    (void)snprintf(near, sizeof near, ".steps.%.*s", (int)use->name.len, name);
    place = rv__str(near);
    if (node == NULL) {
        const char *meant = suggest_alias(t, use->name);
        tell(c, t, use->pointer, use->character, place, "there is no node '%.*s'%s%s%s", shown,
             name, meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    } else if (node == t->node) {
        tell(c, t, use->pointer, use->character, place,
             "'%.*s' is this very node, which has no result yet%s", shown, name,
             t->slot == SLOT_DESCRIPTION ? "; in its description, its own result is .result" : "");
    } else if (is_around(node, t->node)) {
        tell(c, t, use->pointer, use->character, place,
             "'%.*s' is around this node, and has no result before it ends", shown, name);
    } else if (stands_in(t, node->body)) {
        tell(c, t, use->pointer, use->character, place,
             "'%.*s' comes later: only nodes before this one have a result", shown, name);
    } else {
        const struct rv__node *owner = node->body->owner; /* the outermost body we stand in */
        tell(c, t, use->pointer, use->character, place,
             "'%.*s' is inside of '%.*s' and cannot be seen from here; its result is in that "
             "node's result",
             shown, name, RV__ARG(owner->alias));
    }
}

static bool is_own_root(const struct template *t, struct rv__str root)
{
    return t->slot == SLOT_DESCRIPTION && rv__str_is(root, "result");
}

static void check_uses(struct checker *c, const struct template *t)
{
    static const char *const roots[] = { "input", "steps", "lastStep", "loop",
                                         "run",   "env",   "result" };
    struct rv__expr_use use;
    if (t->node->is_handler) /* it is given what there is: not a scope of its place */
        return;
    for (size_t i = 0; rv__exprs_use(c->set, t->number, i, &use); i++) {
        if (rv__str_none(use.root))
            continue;
        if (rv__str_is(use.root, "steps")) {
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
    for (size_t i = 0; rc == RV_OK && i < c.count; i++)
        check_uses(&c, &c.templates[i]);
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
