/* registry.c: what is registered: workflows by name, functions by workflow and name, plans by version.
 *
 * A run keeps the plan it started with; its functions are found by name, in whatever program it wakes
 * up in. They are looked up once for each plan and registration, not once for each step. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/engine.h"

static uint64_t hash_of(struct rv__str name)
{
    return rv__str_hash(RV__HASH_START, name);
}

/* -------------------------------------------------------------------------------- plans --- */

/* Plans by version, each once; under the lock. One that nobody uses any more stays a while, since runs of it
 * may come back: the PLANS_SPARE that were used last. */
enum { PLANS_SPARE = 64 };

static struct rv__plan_ref *plan_find(rv_engine *e, struct rv__str version)
{
    struct rv__index_entry *entry = rv__index_first(&e->plans.by_version, hash_of(version));
    for (; entry != NULL; entry = rv__index_next(entry)) {
        struct rv__plan_ref *ref = RV__CONTAINER(entry, struct rv__plan_ref, by_version);
        if (rv__str_is(version, ref->plan->version))
            return ref;
    }
    return NULL;
}

static int plan_fill(struct rv__plan_ref *ref, const struct rv__plan *plan, rv_error *err)
{
    int rc = rv__plan_exprs_init(&ref->exprs, plan, err);
    if (rc < 0)
        return rc;
    ref->steps = rv__zalloc(plan->node_count, sizeof *ref->steps);
    ref->evals = rv__zalloc((size_t)plan->node_count * EVALS, sizeof *ref->evals);
    return ref->steps != NULL && ref->evals != NULL ? RV_OK : rv__nomem(err);
}

static void plan_free(struct rv__plan_ref *ref)
{
    rv__plan_exprs_done(&ref->exprs);
    rv__plan_free(ref->plan);
    rv__free(ref->steps);
    rv__free(ref->evals);
    rv__free(ref->series);
    rv__free(ref);
}

static void spare_remove(struct rv__plans *plans, struct rv__plan_ref *ref)
{
    if (ref->newer != NULL)
        ref->newer->older = ref->older;
    else
        plans->newest = ref->older;
    if (ref->older != NULL)
        ref->older->newer = ref->newer;
    else
        plans->oldest = ref->newer;
    ref->newer = ref->older = NULL;
    plans->spare--;
}

static void spare_add(struct rv__plans *plans, struct rv__plan_ref *ref)
{
    ref->older = plans->newest;
    if (ref->older != NULL)
        ref->older->newer = ref;
    else
        plans->oldest = ref;
    plans->newest = ref;
    plans->spare++;
}

static struct rv__plan_ref *plan_hold(struct rv__plans *plans, struct rv__plan_ref *ref)
{
    if (ref != NULL && ref->refs++ == 0)
        spare_remove(plans, ref);
    return ref;
}

struct rv__plan_ref *rv__plan_ref_ref(struct rv__plan_ref *ref)
{
    pthread_mutex_lock(&ref->of->lock);
    (void)plan_hold(ref->of, ref);
    pthread_mutex_unlock(&ref->of->lock);
    return ref;
}

void rv__plan_ref_unref(struct rv__plan_ref *ref)
{
    struct rv__plan_ref *gone = NULL;
    if (ref == NULL)
        return;
    struct rv__plans *plans = ref->of;
    pthread_mutex_lock(&plans->lock);
    if (--ref->refs == 0) {
        spare_add(plans, ref);
        if (plans->spare > PLANS_SPARE) {
            gone = plans->oldest;
            spare_remove(plans, gone);
            rv__index_remove(&plans->by_version, &gone->by_version);
        }
    }
    pthread_mutex_unlock(&plans->lock);
    if (gone != NULL)
        plan_free(gone);
}

/* Takes the plan over, whatever the outcome. The one of its version that is there already, if there is. */
static int plan_add(rv_engine *e, struct rv__plan *plan, struct rv__plan_ref **ret, rv_error *err)
{
    struct rv__plan_ref *ref = rv__zalloc(1, sizeof *ref), *known;
    if (ref == NULL) {
        rv__plan_free(plan);
        return rv__nomem(err);
    }
    ref->plan = plan;
    ref->of = &e->plans;
    ref->refs = 1;
    int rc = plan_fill(ref, plan, err);
    pthread_mutex_lock(&e->plans.lock);
    known = plan_hold(&e->plans, plan_find(e, rv__str(plan->version)));
    if (rc == RV_OK && known == NULL &&
        rv__index_add(&e->plans.by_version, &ref->by_version, hash_of(rv__str(plan->version))) < 0)
        rc = rv__nomem(err);
    pthread_mutex_unlock(&e->plans.lock);
    if (rc < 0 || known != NULL)
        plan_free(ref);
    if (rc == RV_OK)
        *ret = known != NULL ? known : ref;
    else if (known != NULL)
        rv__plan_ref_unref(known);
    return rc;
}

struct plan_text {
    struct rv__plan *plan;
    bool damaged;
    rv_error *err;
};

static int read_plan(void *arg, uint64_t seq, struct rv__str json)
{
    struct plan_text *text = arg;
    (void)seq;
    int rc = rv__plan_read(json, &text->plan, text->err);
    text->damaged = rc < 0 && rc != RV_ENOMEM;
    return rc;
}

int rv__plan_ref_load(rv_engine *e, struct rv__store *store, struct rv__str version,
                      struct rv__plan_ref **ret, bool *damaged, rv_error *err)
{
    pthread_mutex_lock(&e->plans.lock);
    struct rv__plan_ref *ref = plan_hold(&e->plans, plan_find(e, version));
    pthread_mutex_unlock(&e->plans.lock);
    if (ref == NULL) {
        struct plan_text text = { .err = err };
        int rc = rv__store_definition(store, version, read_plan, &text, err);
        *damaged = text.damaged || rc == RV_ENOTFOUND;
        if (rc == RV_ENOTFOUND)
            return rv__fail(err, RV_ESTORE, "its definition is not in the store");
        if (rc < 0)
            return rc;
        if (!rv__str_is(version, text.plan->version)) {
            *damaged = true;
            rv__plan_free(text.plan);
            return rv__fail(err, RV_ESTORE, "the definition %.*s in the store is damaged",
                            RV__ARG(version));
        }
        rc = plan_add(e, text.plan, &ref, err);
        *damaged = rc < 0 && rc != RV_ENOMEM;
        if (rc < 0)
            return rc;
    }
    *ret = ref;
    return RV_OK;
}

/* Runs of it are in the store, so its definition is: said by who read one, or by the commit of one. */
void rv__plans_stored(rv_engine *e, bool stored)
{
    for (struct rv__run *run = stored ? e->commit.runs : e->deciding; run != NULL;
         run = run->next_in)
        if (run->plan->stored == DEFINITION_AWAY)
            run->plan->stored = stored ? DEFINITION_STORED : DEFINITION_NEW;
}

void rv__plans_forgotten(rv_engine *e)
{
    for (struct rv__registered *r = e->workflows; r != NULL; r = r->next)
        r->plan->stored = DEFINITION_NEW;
    for (struct rv__plan_ref *ref = e->plans.newest; ref != NULL; ref = ref->older)
        ref->stored = DEFINITION_NEW;
}

/* Who does the work of this node, by what is registered now. */
static enum rv__lane lane_of(void *arg, const struct rv__node *node, int eval)
{
    struct rv__plan_ref *ref = arg;
    const struct rv__function *function;
    if (eval < 0 && node->step.kind == STEP_COMMAND) /* it is relative to its file */
        return rv__registry_find(ref->engine, ref->plan->body.wrap->name) != NULL ? LANE_IO
                                                                                  : LANE_NOBODY;
    rv__plan_ref_resolve(ref->engine, ref);
    function = rv__plan_ref_fn(ref, node, eval);
    if (ref->engine->around.instead != NULL && eval < 0 &&
        ref->engine->around.instead(ref->engine, node->alias) != NULL)
        return LANE_FUNCTION;
    if (function == NULL || (function->fn == NULL && function->module == NULL))
        return LANE_NOBODY;
    return function->module != NULL ? LANE_HOST : LANE_FUNCTION;
}

static enum rv__lane nobody(void *arg, const struct rv__node *node, int eval)
{
    (void)arg;
    (void)node;
    (void)eval;
    return LANE_NOBODY;
}

struct rv__cell_opts rv__plan_ref_opts(rv_engine *e, struct rv__plan_ref *plan)
{
    plan->engine = e;
    return (struct rv__cell_opts){
        .plan = plan->plan,
        .max_crashes = e->max_crashes,
        .value_inline = e->commit.value_inline,
        .turn_facts = e->commit.turn_facts,
        .lane = e->read_only ? NULL : lane_of, /* a reader has no functions, and cannot know */
        .arg = plan
    };
}

struct rv__cell_opts rv__plan_ref_opts_apart(rv_engine *e, struct rv__plan_ref *plan)
{
    return (struct rv__cell_opts){ .plan = plan->plan,
                                   .max_crashes = e->max_crashes,
                                   .value_inline = e->commit.value_inline,
                                   .turn_facts = e->commit.turn_facts,
                                   .lane = nobody,
                                   .arg = plan };
}

/* ----------------------------------------------------------------------------- functions --- */

static uint64_t hash_of_both(struct rv__str workflow, struct rv__str name)
{
    return rv__str_hash(hash_of(workflow), name);
}

static struct rv__function *function_find(rv_engine *e, struct rv__str workflow,
                                          struct rv__str name)
{
    struct rv__index_entry *at = rv__index_first(&e->by.functions, hash_of_both(workflow, name));
    for (; at != NULL; at = rv__index_next(at)) {
        struct rv__function *f = RV__CONTAINER(at, struct rv__function, by_both);
        if (rv__str_eq(f->name, name) && rv__str_eq(f->workflow, workflow))
            return f;
    }
    return NULL;
}

/* A file's `call` names a function of whatever workflow has one: of several, of the first. */
static struct rv__function *function_find_any(rv_engine *e, struct rv__str name)
{
    struct rv__index_entry *at = rv__index_first(&e->by.callable, hash_of(name));
    for (; at != NULL; at = rv__index_next(at)) {
        struct rv__function *f = RV__CONTAINER(at, struct rv__function, by_name);
        if (rv__str_eq(f->name, name))
            return f;
    }
    return NULL;
}

static int function_new(rv_engine *e, struct rv__str workflow, struct rv__str name,
                        struct rv__function **ret)
{
    struct rv__function *f = rv__zalloc(1, sizeof *f + workflow.len + name.len + 2);
    if (f == NULL ||
        rv__index_add(&e->by.functions, &f->by_both, hash_of_both(workflow, name)) < 0) {
        rv__free(f);
        return RV_ENOMEM;
    }
    char *text = (char *)(f + 1);
    memcpy(text, workflow.at, workflow.len);
    memcpy(text + workflow.len + 1, name.at, name.len);
    f->workflow = (struct rv__str){ text, workflow.len };
    f->name = (struct rv__str){ text + workflow.len + 1, name.len };
    f->next = e->functions;
    e->functions = f;
    *ret = f;
    return RV_OK;
}

/* The workflow whose definition the node is part of: a nested one's functions are its own. */
static const struct rv__wrap *wrap_of(const struct rv__node *node)
{
    while (node->body == NULL && node->handler_of != NULL)
        node = node->handler_of;
    const struct rv__body *body = node->body != NULL ? node->body : node->handler_in;
    while (body->wrap == NULL)
        body = body->owner->body;
    return body->wrap;
}

static struct rv__str workflow_of(const struct rv__node *node)
{
    return wrap_of(node)->name;
}

struct rv__str rv__plan_ref_fn_name(const struct rv__node *node, int eval)
{
    const struct rv__expr *expr = NULL;
    if (eval < 0)
        return node->step.name;
    switch ((enum rv__eval)eval) {
    case EVAL_WHEN: expr = &node->when; break;
    case EVAL_IF: expr = &node->branch.condition; break;
    case EVAL_WHILE: expr = &node->loop.while_; break;
    case EVAL_UNTIL: expr = &node->loop.until; break;
    case EVAL_ITEMS: expr = &node->foreach.items; break;
    case EVAL_INPUT:
    case EVAL_DESCRIPTION:
    case EVALS: break;
    }
    return expr != NULL && expr->kind == EXPR_FUNCTION ? expr->text : (struct rv__str){ NULL, 0 };
}

const struct rv__function *rv__plan_ref_fn(const struct rv__plan_ref *ref,
                                           const struct rv__node *node, int eval)
{
    return eval < 0 ? ref->steps[node->id] : ref->evals[(size_t)node->id * EVALS + (size_t)eval];
}

static const struct rv__function *look_up(rv_engine *e, const struct rv__node *node, int eval)
{
    struct rv__str name = rv__plan_ref_fn_name(node, eval);
    if (name.len == 0)
        return NULL;
    struct rv__function *f = function_find(e, workflow_of(node), name);
    if (f == NULL && eval < 0 && node->step.kind == STEP_CALL)
        f = function_find_any(e, name);
    return f;
}

/* Which evaluations a kind has besides `when`. */
static bool has_eval(const struct rv__node *node, int eval)
{
    switch ((enum rv__eval)eval) {
    case EVAL_WHEN: return true;
    case EVAL_IF: return node->kind == NODE_BRANCH;
    case EVAL_WHILE:
    case EVAL_UNTIL: return node->kind == NODE_LOOP;
    case EVAL_ITEMS: return node->kind == NODE_FOREACH;
    case EVAL_INPUT:
    case EVAL_DESCRIPTION:
    case EVALS: break;
    }
    return false;
}

void rv__plan_ref_resolve(rv_engine *e, struct rv__plan_ref *ref)
{
    if (ref->resolved == e->generation)
        return;
    for (uint32_t i = 0; i < ref->plan->node_count; i++) {
        const struct rv__node *node = ref->plan->nodes[i];
        if (node->kind == NODE_STEP)
            ref->steps[i] = look_up(e, node, -1);
        for (int eval = 0; eval < EVALS; eval++)
            if (has_eval(node, eval))
                ref->evals[(size_t)i * EVALS + (size_t)eval] = look_up(e, node, eval);
    }
    ref->resolved = e->generation;
}

/* -------------------------------------------------------------------------- registration --- */

struct rv__registered *rv__registry_find(rv_engine *e, struct rv__str name)
{
    struct rv__index_entry *entry = rv__index_first(&e->by.workflows, hash_of(name));
    for (; entry != NULL; entry = rv__index_next(entry)) {
        struct rv__registered *r = RV__CONTAINER(entry, struct rv__registered, by_name);
        if (rv__str_eq(r->name, name))
            return r;
    }
    return NULL;
}

struct rv__registered *rv__registry_offered(rv_engine *e, struct rv__str name)
{
    struct rv__registered *r = rv__registry_find(e, name);
    return r != NULL && !r->withdrawn ? r : NULL;
}

struct finder {
    struct rv__resolver resolver; /* first */
    rv_engine *engine;
};

static int find_draft(struct rv__resolver *self, struct rv__str name, const struct rv__draft **ret)
{
    struct rv__registered *r = rv__registry_offered(((struct finder *)self)->engine, name);
    if (r == NULL)
        return RV_ENOTFOUND;
    *ret = r->draft;
    return RV_OK;
}

/* Kinds of step that this engine cannot do yet are refused here, not at run time. */
static int check_runnable(const struct rv__plan *plan, rv_error *err)
{
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct rv__node *node = plan->nodes[i];
        if (node->kind != NODE_STEP)
            continue;
        switch (node->step.kind) {
        case STEP_FUNCTION:
        case STEP_CALL:
        case STEP_VALUE:
        case STEP_DELAY:
        case STEP_SIGNAL:
        case STEP_COMMAND:
        case STEP_HTTP:
        case STEP_KINDS: continue;
        case STEP_CHAT:
        case STEP_TOOL: break;
        }
        return rv__fail(err, RV_EINVAL,
                        "'%.*s' is a step of the kind %s, which this engine cannot do",
                        RV__ARG(node->alias), rv__step_kind_name(node->step.kind));
    }
    return RV_OK;
}

/* The path as the engine's own. NULL: none was given, or (*no_memory) it cannot be kept. */
static const char *keep_module(rv_engine *e, const char *path, bool *no_memory)
{
    if (path == NULL)
        return NULL;
    for (struct rv__module *m = e->modules; m != NULL; m = m->next)
        if (strcmp(m->path, path) == 0)
            return m->path;
    size_t len = strlen(path) + 1;
    struct rv__module *module = rv__alloc(sizeof *module + len);
    *no_memory |= module == NULL;
    if (module == NULL)
        return NULL;
    memcpy(module->path, path, len);
    module->next = e->modules;
    e->modules = module;
    return module->path;
}

static int add_functions(rv_engine *e, struct rv__str workflow, const struct rv__named_fn *named)
{
    for (; named != NULL; named = named->next) {
        bool no_memory = false;
        const char *module = keep_module(e, named->module, &no_memory);
        struct rv__function *f = function_find(e, workflow, named->name);
        if (no_memory || (f == NULL && function_new(e, workflow, named->name, &f) < 0))
            return RV_ENOMEM;
        f->fn = named->fn; /* the latest registration of a name counts */
        f->module = module;
        if (function_find_any(e, f->name) == NULL &&
            rv__index_add(&e->by.callable, &f->by_name, hash_of(f->name)) < 0)
            return RV_ENOMEM;
    }
    return RV_OK;
}

int rv__plan_draft(const struct rv__plan *plan, struct rv__draft **ret, rv_error *err)
{
    struct rv__buf json;
    rv__buf_init(&json, RV__PLAN_MAX_BYTES);
    int rc = rv__plan_write(plan, &json, err);
    if (rc == RV_OK)
        rc = rv__draft_read(rv__buf_view(&json), ret, err);
    rv__buf_done(&json);
    return rc;
}

/* What new runs take from now on. Takes the draft over. */
static void install(rv_engine *e, struct rv__registered *r, struct rv__plan_ref *ref,
                    struct rv__draft *draft, const char *directory, const char *source)
{
    assert(ref != NULL);
    rv__plan_ref_unref(r->plan);
    r->plan = rv__plan_ref_ref(ref);
    r->name = ref->plan->body.wrap->name;
    rv__draft_free(r->draft);
    r->draft = draft;
    snprintf(r->directory, sizeof r->directory, "%s", directory != NULL ? directory : "");
    snprintf(r->source, sizeof r->source, "%s", source != NULL ? source : "");
    r->withdrawn = false;
    e->generation++;
    e->relane = true; /* what waits for a function may find it now, or elsewhere */
}

static bool same_definition(const struct rv__registered *known, const struct rv__registration *r)
{
    return strcmp(known->plan->plan->version, r->plan->version) == 0;
}

/* The same from the same file is no second workflow of that name: the file was loaded again. */
static bool reloaded(const struct rv__registered *known, const struct rv__registration *r)
{
    return r->source != NULL && r->source[0] != '\0' &&
           strncmp(known->source, r->source, sizeof known->source - 1) == 0 &&
           same_definition(known, r);
}

int rv__registry_put(rv_engine *e, struct rv__registration *r, rv_error *err)
{
    struct rv__plan_ref *ref = NULL;
    struct rv__plan *plan;
    struct rv__draft *draft = NULL;
    struct rv__str name = r->plan->body.wrap->name;
    struct rv__registered *known = rv__registry_find(e, name);
    if (known != NULL && !known->withdrawn && !r->replace && !reloaded(known, r))
        return rv__fail(err, RV_EEXIST, "workflow '%.*s' is already registered%s%s%s",
                        RV__ARG(name), same_definition(known, r) ? "" : ", with another definition",
                        known->source[0] ? ", from " : "", known->source);
    int rc = check_runnable(r->plan, err);
    if (rc == RV_OK)
        rc = rv__plan_draft(r->plan, &draft, err);
    if (rc < 0)
        goto out;
    if (add_functions(e, name, r->functions) < 0) {
        rc = rv__nomem(err);
        goto out;
    }
    pthread_mutex_lock(&e->plans.lock);
    ref = plan_hold(&e->plans, plan_find(e, rv__str(r->plan->version)));
    pthread_mutex_unlock(&e->plans.lock);
    if (ref == NULL) { /* else the caller keeps his, and what points into it */
        plan = r->plan;
        r->plan = NULL;
        rc = plan_add(e, plan, &ref, err);
        if (rc < 0)
            goto out;
    }
    name = ref->plan->body.wrap->name;
    if (known == NULL) {
        known = rv__zalloc(1, sizeof *known);
        if (known == NULL || rv__index_add(&e->by.workflows, &known->by_name, hash_of(name)) < 0) {
            rv__free(known);
            rc = rv__nomem(err);
            goto out;
        }
        known->next = e->workflows;
        e->workflows = known;
    }
    install(e, known, ref, draft, r->directory, r->source);
    draft = NULL;
out:
    rv__plan_ref_unref(ref);
    rv__draft_free(draft);
    return rc;
}

int rv__registry_add(rv_engine *e, const rv_workflow *w, rv_error *err)
{
    struct finder finder = { .resolver = { find_draft }, .engine = e };
    struct rv__registration r = { .functions = w->functions,
                                  .source = w->source,
                                  .replace = w->replace };
    if (w->rc != RV_OK)
        return rv__fail(err, w->rc, "%s", w->rc == RV_ENOMEM ? rv_strerror(w->rc) : w->why);
    int rc = rv__plan_compile(w->draft, &finder.resolver, NULL, &r.plan, err);
    if (rc == RV_OK)
        rc = rv__registry_put(e, &r, err);
    rv__plan_free(r.plan);
    return rc;
}

const char *rv__registry_directory(rv_engine *e, const struct rv__node *node)
{
    struct rv__registered *r = rv__registry_find(e, workflow_of(node));
    return r != NULL && r->directory[0] ? r->directory : NULL;
}

void rv__registry_free(rv_engine *e)
{
    while (e->workflows != NULL) {
        struct rv__registered *next = e->workflows->next;
        rv__plan_ref_unref(e->workflows->plan);
        rv__draft_free(e->workflows->draft);
        rv__free(e->workflows);
        e->workflows = next;
    }
    while (e->functions != NULL) {
        struct rv__function *next = e->functions->next;
        rv__free(e->functions);
        e->functions = next;
    }
    while (e->modules != NULL) {
        struct rv__module *next = e->modules->next;
        rv__free(e->modules);
        e->modules = next;
    }
    while (e->plans.newest != NULL) { /* nobody has any of them any more */
        struct rv__plan_ref *ref = e->plans.newest;
        spare_remove(&e->plans, ref);
        plan_free(ref);
    }
    rv__index_done(&e->by.workflows);
    rv__index_done(&e->by.functions);
    rv__index_done(&e->by.callable);
    rv__index_done(&e->plans.by_version);
    pthread_mutex_destroy(&e->plans.lock);
}
