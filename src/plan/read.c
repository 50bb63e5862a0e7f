/* read.c: a draft from the objects of a JSON text (object.h).
 *
 * Recurses with the objects, which are at most RV__PLAN_JSON_DEPTH deep. */
#include "plan/draft.h"

#include <limits.h>
#include <stdarg.h>

#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "plan/kinds.h"
#include "plan/object.h"

_Static_assert(RV__PLAN_JSON_DEPTH <= RV__JSON_MAX_DEPTH, "or rv__json_check() cannot take it");
_Static_assert(RV__PLAN_MAX_DEPTH * 4 + RV__PLAN_VALUE_DEPTH + 4 <= RV__PLAN_JSON_DEPTH,
               "or a plan that was compiled could not be read again");

#define MOST_EXACT 9007199254740992.0 /* 2^53: up to here a double knows whole numbers */

/* What is being read, and to whom complaints go. */
struct subject {
    struct rv__draft *draft;
    const struct rv__object *object;
    struct rv__complaints *complaints;
    bool document; /* complaints name the key they are about */
};

static void make_node(struct rv__draft_body *in, const struct rv__object *object);
static void fill_work(struct rv__draft_node *node, const struct subject *s);

static struct subject subject_of(struct rv__draft_node *node, const struct rv__object *object)
{
    return (struct subject){ node->draft, object, &node->complaints, false };
}

/* `key` is what it is about; only a document's complaints name it. */
static void complain(const struct subject *s, const char *key, const char *fmt, ...)
    RV_PRINTF(3, 4);

static void complain(const struct subject *s, const char *key, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    rv__draft_complain(s->draft, s->complaints, s->document ? key : NULL, fmt, args);
    va_end(args);
}

static const struct rv__member *get(const struct subject *s, enum rv__key key)
{
    return rv__object_get(s->object, key);
}

static struct rv__str get_raw(const struct subject *s, enum rv__key key)
{
    const struct rv__member *member = get(s, key);
    return member != NULL ? member->value : (struct rv__str){ NULL, 0 };
}

static struct rv__str get_text(const struct subject *s, enum rv__key key)
{
    struct rv__str text = { NULL, 0 };
    const struct rv__member *member = get(s, key);
    if (member == NULL)
        return text;
    int rc = rv__json_string(member->value, &s->draft->arena, &text);
    if (rc == RV_ENOMEM)
        (void)rv__nomem(&s->draft->failure);
    else if (rc < 0)
        complain(s, rv__key_name(key), "invalid %s %s: must be a text", rv__key_name(key),
                 rv__show(member->value).text);
    return text;
}

static struct rv__expr get_expr(const struct subject *s, enum rv__key key)
{
    const struct rv__member *member = get(s, key);
    if (member == NULL)
        return (struct rv__expr){ EXPR_NONE, { NULL, 0 } };
    return (struct rv__expr){ EXPR_JSON, member->value };
}

/* False: it is not there, or it is no whole number up to `most`, which is a complaint. Numbers like
 * 1e3 and 2.0 are whole. */
static bool get_int(const struct subject *s, enum rv__key key, int64_t most, int64_t *ret)
{
    const struct rv__member *member = get(s, key);
    double real;
    int64_t n;
    if (member == NULL)
        return false;
    if (rv__json_int(member->value, &n) < 0) {
        if (rv__json_double(member->value, &real) < 0 ||
            !(real >= -MOST_EXACT && real <= MOST_EXACT) || (double)(int64_t)real != real) {
            complain(s, rv__key_name(key), "invalid %s %s: must be a whole number",
                     rv__key_name(key), rv__show(member->value).text);
            return false;
        }
        n = (int64_t)real;
    }
    if (n > most) {
        complain(s, rv__key_name(key), "invalid %s %s: it is too large", rv__key_name(key),
                 rv__show(member->value).text);
        return false;
    }
    *ret = n;
    return true;
}

static bool get_bool(const struct subject *s, enum rv__key key)
{
    bool truth = false;
    const struct rv__member *member = get(s, key);
    if (member != NULL && rv__json_bool(member->value, &truth) < 0)
        complain(s, rv__key_name(key), "invalid %s %s: must be true or false", rv__key_name(key),
                 rv__show(member->value).text);
    return truth;
}

/* The place of the text among the words; -1: it is not there, or is none of them, which is a
 * complaint. `list` names them for people. */
static int get_word(const struct subject *s, enum rv__key key, const char *const *words,
                    size_t count, const char *list)
{
    const struct rv__member *member = get(s, key);
    if (member == NULL)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (rv__json_string_is(member->value, rv__str(words[i])))
            return (int)i;

    struct rv__str word = { NULL, 0 }; /* stays none where it is no text */
    if (rv__json_string(member->value, &s->draft->arena, &word) == RV_ENOMEM)
        (void)rv__nomem(&s->draft->failure);
    const char *meant = rv__suggest(word, words, count);
    complain(s, rv__key_name(key), "unknown %s %s: must be %s%s%s%s", rv__key_name(key),
             rv__show(member->value).text, list, meant ? "; did you mean '" : "",
             meant ? meant : "", meant ? "'?" : "");
    return -1;
}

/* Complain about the keys that an object of this sort cannot have. */
static void check_keys(const struct subject *s, unsigned sort, const char *what)
{
    const char *candidates[KEYS];
    size_t count = 0;
    for (int key = 0; key < KEYS; key++)
        if (rv__key_fits((enum rv__key)key, sort))
            candidates[count++] = rv__key_name((enum rv__key)key);
    for (const struct rv__member *m = s->object->members; m != NULL; m = m->next) {
        if (rv__key_fits(m->key, sort))
            continue;
        const char *meant = rv__suggest(m->name, candidates, count);
        struct rv__str shown = rv__draft_text(s->draft, rv__str(rv__show(m->name).text));
        complain(s, shown.at, "unknown key '%.*s' of %s%s%s%s", RV__ARG(shown), what,
                 meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    }
}

static struct rv__draft_node *make_handler(const struct subject *of)
{
    static const char *const types[] = { "step" };
    const struct rv__member *member = get(of, KEY_ON_ERROR);
    if (member == NULL)
        return NULL;
    if (*member->value.at != '{') {
        complain(of, "onError", "invalid onError %s: must be a step", rv__show(member->value).text);
        return NULL;
    }
    struct rv__draft_node *node = rv__draft_handler_new(of->draft, STEP_FUNCTION);
    struct subject s = subject_of(node, member->first);
    (void)get_word(&s, KEY_TYPE, types, 1, "step");
    check_keys(&s, SORT_HANDLER, "a handler");
    fill_work(node, &s);
    return node;
}

static void read_needs(const struct subject *s, enum rv__key key, struct rv__str **needs,
                       uint32_t *needs_count)
{
    const struct rv__member *member = get(s, key);
    struct rv__json_iter it;
    struct rv__str value;
    if (member == NULL)
        return;
    size_t count = rv__json_count(member->value);
    if (*member->value.at != '[' || count > RV__PLAN_MAX_NODES) {
        complain(s, "needs", "invalid needs %s: must be a list of aliases",
                 rv__show(member->value).text);
        return;
    }
    *needs = rv__draft_alloc(s->draft, count, sizeof **needs);
    if (*needs == NULL)
        return;
    rv__json_iter_init(&it, member->value);
    while (rv__json_next(&it, NULL, &value)) {
        int rc = rv__json_string(value, &s->draft->arena, &(*needs)[*needs_count]);
        if (rc == RV_OK)
            ++*needs_count;
        else if (rc == RV_ENOMEM)
            (void)rv__nomem(&s->draft->failure);
        else
            complain(s, "needs", "invalid alias %s in needs: must be a text", rv__show(value).text);
    }
}

static void fill_needs(struct rv__draft_node *node, const struct subject *s)
{
    if (get(s, KEY_NEEDS) != NULL)
        node->given |= GIVEN_NEEDS;
    read_needs(s, KEY_NEEDS, &node->needs, &node->needs_count);
}

/* What steps are configured with. Of any node: what has no place there is told at compile. */
static void fill_config(struct rv__draft_node *node, const struct subject *s)
{
    static const char *const on_timeouts[] = { "stop", "retry" };
    static const char *const backoffs[] = { "linear", "exponential" };
    struct rv__step_config *config = &node->config;
    const struct rv__member *jitter = get(s, KEY_JITTER);
    int64_t n;

    if (get_int(s, KEY_TIMEOUT, INT64_MAX, &config->timeout_ms))
        node->given |= GIVEN_TIMEOUT;
    if (get_int(s, KEY_MAX_ATTEMPTS, INT_MAX, &n)) {
        config->max_attempts = n < INT_MIN ? INT_MIN : (int)n;
        node->given |= GIVEN_MAX_ATTEMPTS;
    }
    if (get_int(s, KEY_BACKOFF_BASE_MS, INT64_MAX, &config->backoff_base_ms))
        node->given |= GIVEN_BACKOFF_BASE_MS;
    if (get_int(s, KEY_MAX_BACKOFF_MS, INT64_MAX, &config->max_backoff_ms))
        node->given |= GIVEN_MAX_BACKOFF_MS;
    if (jitter != NULL) {
        node->given |= GIVEN_JITTER;
        if (rv__json_double(jitter->value, &config->jitter) < 0)
            complain(s, "jitter", "invalid jitter %s: must be a number from 0 to 1",
                     rv__show(jitter->value).text);
    }
    int word = get_word(s, KEY_ON_TIMEOUT, on_timeouts, 2, "stop or retry");
    if (word >= 0) {
        config->on_timeout = (enum rv__on_timeout)word;
        node->given |= GIVEN_ON_TIMEOUT;
    }
    word = get_word(s, KEY_BACKOFF, backoffs, 2, "linear or exponential");
    if (word >= 0) {
        config->backoff = (enum rv__backoff)word;
        node->given |= GIVEN_BACKOFF;
    }
    fill_needs(node, s);
}

/* Kind, name and parameters: what a step and a handler both have. */
static void fill_work(struct rv__draft_node *node, const struct subject *s)
{
    const char *words[STEP_KINDS];
    for (int kind = 0; kind < STEP_KINDS; kind++)
        words[kind] = rv__step_kind_name((enum rv__step_kind)kind);
    int kind = get_word(s, KEY_KIND, words, STEP_KINDS,
                        "function, call, http, command, value, delay, signal, chat or tool");
    node->broken = kind < 0 && get(s, KEY_KIND) != NULL;
    node->step.kind = kind < 0 ? STEP_FUNCTION : (enum rv__step_kind)kind;
    node->name = get_text(s, KEY_NAME);
    node->step.with = get_raw(s, KEY_WITH);
}

/* The nodes of an array into the body. `one` says that a single object may stand for it. */
static void fill_body(const struct subject *s, enum rv__key key, bool one,
                      struct rv__draft_body *body)
{
    const struct rv__member *member = get(s, key);
    char first = *member->value.at;
    if (first != '[' && !(one && first == '{')) {
        complain(s, rv__key_name(key), "invalid %s %s: must be a list of nodes%s",
                 rv__key_name(key), rv__show(member->value).text,
                 one ? ", a step or a workflow" : "");
        return;
    }
    body->bare = first == '{';
    for (const struct rv__object *object = member->first; object != NULL; object = object->next)
        make_node(body, object);
}

static void fill_workflow(struct rv__draft_node *node, const struct subject *s)
{
    node->name = get_text(s, KEY_NAME);
    node->workflow.input = get_expr(s, KEY_INPUT);
    if (get(s, KEY_STEPS) == NULL) { /* by name: it has its own of these */
        static const enum rv__key own[] = { KEY_INPUT_SCHEMA, KEY_WORKFLOW_DESCRIPTION,
                                            KEY_WORKFLOW_NEEDS, KEY_HOSTED };
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            if (get(s, own[i]) != NULL)
                complain(s, NULL, "'%s' is only for a workflow with its 'steps'",
                         rv__key_name(own[i]));
        node->on_error = make_handler(s);
        return;
    }
    struct rv__draft_workflow *workflow = rv__draft_workflow_new(node);
    if (workflow == NULL)
        return;
    workflow->name = node->name;
    workflow->description = get_text(s, KEY_WORKFLOW_DESCRIPTION);
    workflow->schema = get_raw(s, KEY_INPUT_SCHEMA);
    read_needs(s, KEY_WORKFLOW_NEEDS, &workflow->needs, &workflow->needs_count);
    workflow->hosted = get_bool(s, KEY_HOSTED);
    workflow->on_error = make_handler(s);
    fill_body(s, KEY_STEPS, false, &workflow->body);
    node->workflow.here = workflow;
}

static void fill_branch(struct rv__draft_node *node, const struct subject *s)
{
    node->branch.condition = get_expr(s, KEY_IF);
    if (get(s, KEY_THEN) == NULL)
        complain(s, NULL, "a branch needs 'then'");
    else
        fill_body(s, KEY_THEN, false, rv__draft_body(node, 0, NULL, false));
    if (get(s, KEY_ELSE) != NULL)
        fill_body(s, KEY_ELSE, false, rv__draft_body(node, 1, NULL, false));
}

static void fill_loop(struct rv__draft_node *node, const struct subject *s)
{
    static const char *const keeps[] = { "all", "last", "none" };
    node->loop.while_ = get_expr(s, KEY_WHILE);
    node->loop.until = get_expr(s, KEY_UNTIL);
    if (get_int(s, KEY_MAX_ITERATIONS, INT64_MAX, &node->loop.max_iterations))
        node->given |= GIVEN_MAX_ITERATIONS;
    int keep = get_word(s, KEY_KEEP, keeps, 3, "all, last or none");
    node->loop.keep = keep < 0 ? KEEP_ALL : (enum rv__keep)keep;
    if (get(s, KEY_BODY) != NULL)
        fill_body(s, KEY_BODY, true, rv__draft_body(node, 0, NULL, false));
}

static void fill_foreach(struct rv__draft_node *node, const struct subject *s)
{
    node->foreach.items = get_expr(s, KEY_ITEMS);
    node->foreach.parallel = get_bool(s, KEY_PARALLEL);
    if (get_int(s, KEY_CONCURRENCY, INT64_MAX, &node->foreach.concurrency))
        node->given |= GIVEN_CONCURRENCY;
    if (get(s, KEY_RUN) != NULL)
        fill_body(s, KEY_RUN, true, rv__draft_body(node, 0, NULL, false));
}

/* A child of a concurrent: {"alias", "nodes": [..]}, or a step or a workflow with its alias. */
static void fill_child(struct rv__draft_node *node, const struct rv__object *object)
{
    struct subject s = subject_of(node, object);
    struct rv__draft_body *body = rv__draft_body(node, node->body_count, NULL, false);
    if (get(&s, KEY_NODES) == NULL) {
        body->bare = true;
        make_node(body, object);
        return;
    }
    body->alias = get_text(&s, KEY_ALIAS);
    check_keys(&s, SORT_CHILD, "a child with 'nodes'");
    fill_body(&s, KEY_NODES, false, body);
}

static void fill_concurrent(struct rv__draft_node *node, const struct subject *s)
{
    static const char *const continue_ons[] = { "all", "detached" };
    static const char *const on_failures[] = { "fail", "collect" };
    static const char *const joins[] = { "all", "first" };
    const struct rv__member *join = get(s, KEY_JOIN), *steps = get(s, KEY_STEPS);

    node->concurrent.detached = get_word(s, KEY_CONTINUE_ON, continue_ons, 2, "all or detached") ==
                                1;
    node->concurrent.collect = get_word(s, KEY_ON_FAILURE, on_failures, 2, "fail or collect") == 1;
    if (join != NULL && *join->value.at == '"') {
        int word = get_word(s, KEY_JOIN, joins, 2, "all, first or a number");
        node->given |= word == 0 ? GIVEN_JOIN_ALL : word == 1 ? GIVEN_JOIN : 0;
        node->concurrent.join = word == 1 ? 1 : RV__JOIN_ALL;
    } else if (get_int(s, KEY_JOIN, INT64_MAX, &node->concurrent.join)) {
        node->given |= GIVEN_JOIN;
    }
    if (steps == NULL)
        return;
    if (*steps->value.at != '[')
        complain(s, NULL, "invalid steps %s: must be a list of children",
                 rv__show(steps->value).text);
    else
        for (const struct rv__object *object = steps->first; object != NULL; object = object->next)
            fill_child(node, object);
}

static void make_node(struct rv__draft_body *in, const struct rv__object *object)
{
    const char *words[NODE_KINDS];
    for (int kind = 0; kind < NODE_KINDS; kind++)
        words[kind] = rv__node_kind_name((enum rv__node_kind)kind);

    struct rv__draft_node *node = rv__draft_node_new(in, NODE_STEP);
    struct subject s = subject_of(node, object);
    node->alias = get_text(&s, KEY_ALIAS);
    int kind = get_word(&s, KEY_TYPE, words, NODE_KINDS,
                        "step, workflow, branch, loop, forEach or concurrent");
    if (kind < 0) {
        node->broken = true;
        if (!rv__str_none(object->text))
            complain(&s, NULL, "invalid node %s: must be an object", rv__show(object->text).text);
        else if (get(&s, KEY_TYPE) == NULL)
            complain(&s, NULL,
                     "it needs a 'type': step, workflow, branch, loop, forEach or "
                     "concurrent");
        return;
    }
    node->kind = (enum rv__node_kind)kind;
    check_keys(&s, 1u << kind, rv__node_kind_phrase(node->kind));
    node->when = get_expr(&s, KEY_WHEN);
    node->description = get_expr(&s, KEY_DESCRIPTION);
    fill_config(node, &s);
    if (node->kind != NODE_WORKFLOW) /* there it may be that of the workflow */
        node->on_error = make_handler(&s);
    switch (node->kind) {
    case NODE_STEP: fill_work(node, &s); break;
    case NODE_WORKFLOW: fill_workflow(node, &s); break;
    case NODE_BRANCH: fill_branch(node, &s); break;
    case NODE_LOOP: fill_loop(node, &s); break;
    case NODE_FOREACH: fill_foreach(node, &s); break;
    case NODE_CONCURRENT: fill_concurrent(node, &s); break;
    case NODE_KINDS: break;
    }
}

static void fill_document(struct rv__draft *draft, const struct rv__object *object)
{
    struct rv__draft_workflow *workflow = &draft->workflow;
    struct subject s = { draft, object, &workflow->complaints, true };
    check_keys(&s, SORT_DOCUMENT, "a workflow");
    workflow->name = get_text(&s, KEY_NAME);
    workflow->description = get_text(&s, KEY_DESCRIPTION);
    workflow->schema = get_raw(&s, KEY_INPUT);
    read_needs(&s, KEY_NEEDS, &workflow->needs, &workflow->needs_count);
    workflow->hosted = get_bool(&s, KEY_HOSTED);
    workflow->on_error = make_handler(&s);
    if (get(&s, KEY_STEPS) != NULL)
        fill_body(&s, KEY_STEPS, false, &workflow->body);
}

int rv__draft_read(struct rv__str json, struct rv__draft **ret, rv_error *err)
{
    struct rv__draft *draft = NULL;
    struct rv__arena arena; /* the objects */
    struct rv__object *root = NULL;
    struct rv__str text;
    int rc;

    if (json.len > RV__PLAN_MAX_BYTES)
        return rv__fail(err, RV_ETOOBIG, "the workflow's text has more than %d bytes",
                        RV__PLAN_MAX_BYTES);
    rc = rv__json_check(json, RV__PLAN_JSON_DEPTH, &text, err);
    if (rc < 0)
        return rc;
    if (*text.at != '{')
        return rv__fail(err, RV_EINVAL, "a workflow must be an object, with 'name' and 'steps'");

    rv__arena_init(&arena, SIZE_MAX); /* the text and RV__PLAN_MAX_NODES bound it */
    draft = rv__draft_make();
    if (draft == NULL || rv__str_copy(&draft->arena, text, &text) < 0) { /* its texts are slices */
        rc = rv__nomem(err);
        goto out;
    }
    rc = rv__object_read(text, &arena, &root);
    if (rc == RV_ETOOBIG)
        (void)rv__fail(err, rc, "the workflow has more than %d nodes", RV__PLAN_MAX_NODES);
    else if (rc < 0)
        (void)rv__nomem(err);
    if (rc < 0)
        goto out;

    fill_document(draft, root);
    if (draft->failure.code < 0) {
        rc = rv__fail(err, draft->failure.code, "%s", draft->failure.message);
        goto out;
    }
    *ret = draft;
    draft = NULL;
out:
    rv__draft_free(draft);
    rv__arena_done(&arena);
    return rc;
}
