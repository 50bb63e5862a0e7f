/* registry.c: what is registered: workflows by name, functions by workflow and name, plans by version.
 *
 * A run keeps the plan it started with; its functions are found by name in the program that continues it. They are
 * looked up once per plan and registration, not once per step.
 *
 * An engine has one registry of its own. A run that another process handed over has a separate one (guest.c), so
 * that two versions of one name do not conflict, and its attempts see the environment of that process. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "define/define.h"
#include "engine/engine.h"
#include "engine/listen.h"

#define AMBIGUOUS                                                                               \
    "several files have a function '%.*s': the call is ambiguous; say which as FILE/FUNCTION, " \
    "the file's name without its ending"

static uint64_t hash_of(struct rv__str name)
{
    return rv__str_hash(RV__HASH_START, name);
}

/* -------------------------------------------------------------------------------- plans --- */

/* Plans by version, each once; under the lock. The PLANS_SPARE most recently used ones are kept even if no run in
 * memory uses them, since such runs may come back. */
enum { PLANS_SPARE = 64 };

static struct rv__plan_ref *plan_find(const struct rv__registry *registry, struct rv__str version)
{
    struct rv__plans *plans = &registry->engine->plans;
    struct rv__index_entry *entry = rv__index_first(&plans->by_version, hash_of(version));
    for (; entry != NULL; entry = rv__index_next(entry)) {
        struct rv__plan_ref *ref = RV__CONTAINER(entry, struct rv__plan_ref, by_version);
        if (ref->registry == registry && rv__str_is(version, ref->plan->version))
            return ref;
    }
    return NULL;
}

static int plan_fill(struct rv__plan_ref *ref, const struct rv__plan *plan,
                     struct rv__secret_source *source, rv_error *err)
{
    int rc = rv__plan_exprs_init(&ref->exprs, plan, err);
    if (rc == RV_OK)
        rc = rv__secrets_new(plan, source, &ref->secrets, err);
    if (rc < 0)
        return rc;
    ref->steps = rv__zalloc(plan->node_count, sizeof *ref->steps);
    ref->evals = rv__zalloc((size_t)plan->node_count * EVALS, sizeof *ref->evals);
    return ref->steps != NULL && ref->evals != NULL ? RV_OK : rv__nomem(err);
}

static void plan_free(struct rv__plan_ref *ref)
{
    rv__registry_unref(ref->registry);
    rv__plan_exprs_done(&ref->exprs);
    rv__secrets_unref(ref->secrets);
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
        bool guest = ref->registry !=
                     ref->registry->engine->registry; /* its plans are not used again */
        spare_add(plans, ref);
        gone = guest ? ref : plans->spare > PLANS_SPARE ? plans->oldest : NULL;
        if (gone != NULL) {
            spare_remove(plans, gone);
            rv__index_remove(&plans->by_version, &gone->by_version);
        }
    }
    pthread_mutex_unlock(&plans->lock);
    if (gone != NULL)
        plan_free(gone);
}

/* Takes over the plan, whatever the outcome. Returns the existing one of its version, if there is one. */
static int plan_add(struct rv__registry *registry, struct rv__plan *plan, struct rv__plan_ref **ret,
                    rv_error *err)
{
    rv_engine *e = registry->engine;
    struct rv__plan_ref *ref = rv__zalloc(1, sizeof *ref), *known;
    if (ref == NULL) {
        rv__plan_free(plan);
        return rv__nomem(err);
    }
    ref->plan = plan;
    ref->registry = rv__registry_ref(registry);
    ref->of = &e->plans;
    ref->refs = 1;
    int rc = plan_fill(ref, plan, registry->secret_source, err);
    pthread_mutex_lock(&e->plans.lock);
    known = plan_hold(&e->plans, plan_find(registry, rv__str(plan->version)));
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

int rv__plan_ref_load(struct rv__registry *registry, struct rv__store *store,
                      struct rv__str version, struct rv__plan_ref **ret, bool *damaged,
                      rv_error *err)
{
    rv_engine *e = registry->engine;
    pthread_mutex_lock(&e->plans.lock);
    struct rv__plan_ref *ref = plan_hold(&e->plans, plan_find(registry, version));
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
        rc = plan_add(registry, text.plan, &ref, err);
        *damaged = rc < 0 && rc != RV_ENOMEM;
        if (rc < 0)
            return rc;
    }
    *ret = ref;
    return RV_OK;
}

/* Its definition is in the store, because a run of it is: called after reading or committing one. */
void rv__plans_stored(struct rv__run *run, bool stored)
{
    for (; run != NULL; run = run->next_in)
        if (run->plan->stored == DEFINITION_AWAY)
            run->plan->stored = stored ? DEFINITION_STORED : DEFINITION_NEW;
}

void rv__plans_forgotten(rv_engine *e)
{
    for (struct rv__registered *r = e->registry->workflows; r != NULL; r = r->next)
        r->plan->stored = DEFINITION_NEW;
    for (struct rv__plan_ref *ref = e->plans.newest; ref != NULL; ref = ref->older)
        ref->stored = DEFINITION_NEW;
}

/* The lane of this node's work, by what is registered now. */
static enum rv__lane lane_of(void *arg, const struct rv__node *node, int eval,
                             const struct rv__body *body)
{
    struct rv__plan_ref *ref = arg;
    rv_engine *e = ref->registry->engine;
    const struct rv__function *function;
    if (eval < 0 && node->step.kind == STEP_CHAT) {
        int limit = rv__limits_of(e, node, eval);
        return limit >= 0 ? (enum rv__lane)(LANE_LIMIT + limit % RV__LIMIT_LANES) : LANE_HTTP;
    }
    if (eval < 0 &&
        !rv__str_none(rv__plan_ref_secret(ref, node))) /* a secret is missing: it would only fail */
        return LANE_NOBODY;
    if (eval < 0 && node->step.kind == STEP_COMMAND) /* its paths are relative to its file */
        return rv__registry_find(ref->registry, ref->plan->body.wrap->name) != NULL ? LANE_IO
                                                                                    : LANE_NOBODY;
    rv__plan_ref_resolve(ref);
    function = rv__plan_ref_fn(ref, node, eval, body);
    if (e->around.instead != NULL && eval < 0 && e->around.instead(e, node->alias) != NULL)
        return LANE_FUNCTION;
    if (function != NULL && function->executor != NULL)
        return (enum rv__lane)function->executor->lane;
    int class_number = function != NULL ? rv__workers_class(e, function, node) : -1;
    return class_number >= 0 ? (enum rv__lane)(LANE_WORKER + class_number % RV__WORKER_LANES)
                             : LANE_NOBODY;
}

static uint64_t module_of(void *arg, const struct rv__node *node)
{
    struct rv__plan_ref *ref = arg;
    rv__plan_ref_resolve(ref);
    const struct rv__function *function = rv__plan_ref_fn(ref, node, -1, NULL);
    const rv_engine *e = ref->registry->engine;
    if (function != NULL && e->workers.granting > 0)
        return rv__workers_module(e, e->workers.granting);
    return function != NULL ? function->hash : 0;
}

static enum rv__lane nobody(void *arg, const struct rv__node *node, int eval,
                            const struct rv__body *body)
{
    (void)arg;
    (void)node;
    (void)eval;
    (void)body;
    return LANE_NOBODY;
}

struct rv__cell_opts rv__plan_ref_opts(rv_engine *e, struct rv__plan_ref *plan)
{
    return (struct rv__cell_opts){
        .plan = plan->plan,
        .max_crashes = e->max_crashes,
        .value_inline = e->commit.value_inline,
        .turn_facts = e->commit.turn_facts,
        .lane = e->read_only ? NULL : lane_of, /* an engine that only reads has no functions */
        .module = module_of,
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
                                   .module = module_of, /* not before it has its lanes */
                                   .arg = plan };
}

/* ----------------------------------------------------------------------------- functions --- */

static uint64_t hash_of_both(struct rv__str workflow, struct rv__str name)
{
    return rv__str_hash(hash_of(workflow), name);
}

static struct rv__function *function_find(struct rv__registry *registry, struct rv__str workflow,
                                          struct rv__str name)
{
    struct rv__index_entry *at = rv__index_first(&registry->by.functions,
                                                 hash_of_both(workflow, name));
    for (; at != NULL; at = rv__index_next(at)) {
        struct rv__function *f = RV__CONTAINER(at, struct rv__function, by_both);
        if (rv__str_eq(f->name, name) && rv__str_eq(f->workflow, workflow))
            return f;
    }
    return NULL;
}

/* Set who runs this function from now on, and how. */
static void offer(rv_engine *e, struct rv__function *f, rv_step_fn fn, const char *module)
{
    f->fn = fn;
    f->module = module;
    f->run = module != NULL ? rv__hosted_run : rv__ctx_run;
    f->executor = module != NULL ? e->lanes[LANE_HOST].executor
                  : fn != NULL   ? e->lanes[LANE_FUNCTION].executor
                                 : NULL;
}

/* Runs instead of an ambiguous call, and fails: running the wrong function would be worse. */
static int fails_ambiguous(rv_ctx *ctx)
{
    return rv_stop(ctx, AMBIGUOUS, RV__ARG(rv__plan_ref_fn_name(ctx->view.node, -1, NULL)));
}

static bool same_code(const struct rv__function *a, const struct rv__function *b)
{
    return a->module != NULL ? a->module == b->module : b->module == NULL && a->fn == b->fn;
}

bool rv__function_offered(const struct rv__function *f)
{
    return f->executor != NULL || f->offers != NULL;
}

/* A `call` in a file names a function of any workflow that offers one. If several differ, it is ambiguous. A function
 * that is no longer offered counts only if there is no other, so that old runs continue. */
static struct rv__function *function_find_any(struct rv__registry *registry, struct rv__str name)
{
    struct rv__index_entry *at = rv__index_first(&registry->by.callable, hash_of(name));
    struct rv__function *found = NULL, *withdrawn = NULL;
    for (; at != NULL; at = rv__index_next(at)) {
        struct rv__function *f = RV__CONTAINER(at, struct rv__function, by_name);
        if (!rv__str_eq(f->name, name))
            continue;
        if (!rv__function_offered(f) ||
            (!f->library && rv__registry_offered(registry, f->workflow) == NULL))
            withdrawn = f;
        else if (found != NULL && !same_code(found, f)) {
            struct rv__function *ambiguous = &registry->engine->ambiguous;
            offer(registry->engine, ambiguous, fails_ambiguous, NULL);
            return ambiguous;
        } else
            found = f;
    }
    return found != NULL ? found : withdrawn;
}

static int function_new(struct rv__registry *registry, struct rv__str workflow, struct rv__str name,
                        struct rv__function **ret)
{
    struct rv__function *f = rv__zalloc(1, sizeof *f + workflow.len + name.len + 2);
    if (f == NULL || rv__index_add(&registry->by.callable, &f->by_name, hash_of(name)) < 0) {
        rv__free(f);
        return RV_ENOMEM;
    }
    if (rv__index_add(&registry->by.functions, &f->by_both, hash_of_both(workflow, name)) < 0) {
        rv__index_remove(&registry->by.callable, &f->by_name);
        rv__free(f);
        return RV_ENOMEM;
    }
    char *text = (char *)(f + 1);
    memcpy(text, workflow.at, workflow.len);
    memcpy(text + workflow.len + 1, name.at, name.len);
    f->workflow = (struct rv__str){ text, workflow.len };
    f->name = (struct rv__str){ text + workflow.len + 1, name.len };
    f->any_class = -1;
    f->next = registry->functions;
    registry->functions = f;
    *ret = f;
    return RV_OK;
}

struct rv__function *rv__registry_function(struct rv__registry *registry, struct rv__str workflow,
                                           struct rv__str name, bool library)
{
    struct rv__function *f = function_find(registry, workflow, name);
    if (f == NULL && function_new(registry, workflow, name, &f) < 0)
        return NULL;
    f->library |= library;
    registry->generation++;
    return f;
}

/* The workflow that defines the node: a nested workflow has functions of its own. */
static const struct rv__wrap *wrap_of(const struct rv__node *node)
{
    const struct rv__body *body = rv__node_around(node);
    while (body->wrap == NULL)
        body = rv__node_around(body->owner);
    return body->wrap;
}

static struct rv__str workflow_of(const struct rv__node *node)
{
    return wrap_of(node)->name;
}

struct rv__str rv__plan_ref_fn_name(const struct rv__node *node, int eval,
                                    const struct rv__body *body)
{
    static const enum rv__use uses[EVALS] = {
        [EVAL_WHEN] = USE_WHEN,   [EVAL_IF] = USE_IF,       [EVAL_WHILE] = USE_WHILE,
        [EVAL_UNTIL] = USE_UNTIL, [EVAL_ITEMS] = USE_ITEMS, [EVAL_DESCRIPTION] = USE_DESCRIPTION,
    };
    if (eval < 0)
        return node->step.name;
    const struct rv__expr *expr = eval == EVAL_INPUT ? rv__input_expr(node, body)
                                                     : rv__node_expr(node, uses[eval]);
    return expr != NULL && expr->kind == EXPR_FUNCTION ? expr->text : (struct rv__str){ NULL, 0 };
}

/* A function of the workflow that the node is in; or, if a worker registered that as part of another, of the outermost
 * one. */
static const struct rv__function *look_up(const struct rv__plan_ref *ref,
                                          const struct rv__node *node, int eval,
                                          const struct rv__body *body)
{
    struct rv__registry *registry = ref->registry;
    struct rv__str name = rv__plan_ref_fn_name(node, eval, body);
    if (name.len == 0)
        return NULL;
    struct rv__function *f = function_find(registry, workflow_of(node), name), *outer = NULL;
    if (f == NULL || !rv__function_offered(f))
        outer = function_find(registry, ref->plan->body.wrap->name, name);
    if (outer != NULL)
        f = outer;
    if (f == NULL && eval < 0 && node->step.kind == STEP_CALL)
        f = function_find_any(registry, name);
    return f;
}

/* Functions of inputs are looked up each time: a node may have one for each body. */
const struct rv__function *rv__plan_ref_fn(const struct rv__plan_ref *ref,
                                           const struct rv__node *node, int eval,
                                           const struct rv__body *body)
{
    if (eval == EVAL_INPUT)
        return look_up(ref, node, eval, body);
    return eval < 0 ? ref->steps[node->id] : ref->evals[(size_t)node->id * EVALS + (size_t)eval];
}

/* Which evaluations are resolved once, for a kind of node. */
static bool has_eval(const struct rv__node *node, int eval)
{
    switch ((enum rv__eval)eval) {
    case EVAL_WHEN:
    case EVAL_DESCRIPTION: return true;
    case EVAL_IF: return node->kind == NODE_BRANCH;
    case EVAL_WHILE:
    case EVAL_UNTIL: return node->kind == NODE_LOOP;
    case EVAL_ITEMS: return node->kind == NODE_FOREACH;
    case EVAL_INPUT:
    case EVALS: break;
    }
    return false;
}

void rv__plan_ref_resolve(struct rv__plan_ref *ref)
{
    struct rv__registry *registry = ref->registry;
    if (ref->resolved == registry->generation)
        return;
    ref->ambiguous = NULL;
    for (uint32_t i = 0; i < ref->plan->node_count; i++) {
        const struct rv__node *node = ref->plan->nodes[i];
        if (node->kind == NODE_STEP)
            ref->steps[i] = look_up(ref, node, -1, NULL);
        if (node->kind == NODE_STEP && ref->steps[i] == &registry->engine->ambiguous)
            ref->ambiguous = node;
        for (int eval = 0; eval < EVALS; eval++)
            if (has_eval(node, eval))
                ref->evals[(size_t)i * EVALS + (size_t)eval] = look_up(ref, node, eval, NULL);
    }
    ref->resolved = registry->generation;
}

int rv__plan_ref_check(struct rv__plan_ref *ref, rv_error *err)
{
    const char *blocked = rv__plan_ref_blocked(ref);
    rv__plan_ref_resolve(ref);
    if (ref->ambiguous != NULL)
        return rv__fail(err, RV_EINVAL, AMBIGUOUS,
                        RV__ARG(rv__plan_ref_fn_name(ref->ambiguous, -1, NULL)));
    if (blocked != NULL)
        return rv__fail(err, RV_ESTATE, "workflow '%.60s' cannot be started: %s",
                        ref->plan->body.wrap->name.at, blocked);
    return RV_OK;
}

/* Engines that send nothing (test engines, and those that only record) need no secrets. */
const char *rv__plan_ref_blocked(const struct rv__plan_ref *ref)
{
    const rv_engine *e = ref->registry->engine;
    return e->services.by_hand || e->idle || e->read_only ? NULL
                                                          : rv__secrets_unusable(ref->secrets);
}

struct rv__str rv__plan_ref_secret(const struct rv__plan_ref *ref, const struct rv__node *node)
{
    uint32_t number;
    if (rv__plan_ref_blocked(ref) == NULL || node == NULL || node->kind != NODE_STEP ||
        (node->step.kind != STEP_COMMAND && node->step.kind != STEP_HTTP))
        return (struct rv__str){ NULL, 0 };
    number = rv__plan_exprs_number(&ref->exprs, node, SLOT_WITH);
    return rv__secrets_missing(ref->secrets, ref->exprs.set, number - 1);
}

/* -------------------------------------------------------------------------- registration --- */

struct rv__registered *rv__registry_find(struct rv__registry *registry, struct rv__str name)
{
    struct rv__index_entry *entry = rv__index_first(&registry->by.workflows, hash_of(name));
    for (; entry != NULL; entry = rv__index_next(entry)) {
        struct rv__registered *r = RV__CONTAINER(entry, struct rv__registered, by_name);
        if (rv__str_eq(r->name, name))
            return r;
    }
    return NULL;
}

struct rv__registered *rv__registry_offered(struct rv__registry *registry, struct rv__str name)
{
    struct rv__registered *r = rv__registry_find(registry, name);
    return r != NULL && !r->withdrawn ? r : NULL;
}

struct finder {
    struct rv__resolver resolver; /* first */
    struct rv__registry *registry;
};

static int find_draft(struct rv__resolver *self, struct rv__str name, const struct rv__draft **ret)
{
    struct rv__registered *r = rv__registry_offered(((struct finder *)self)->registry, name);
    if (r == NULL)
        return RV_ENOTFOUND;
    *ret = r->draft;
    return RV_OK;
}

/* A copy of the path that the engine owns. NULL: none was given, or (*no_memory) there is no memory. */
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

static int add_functions(struct rv__registry *registry, struct rv__str workflow, bool library,
                         const struct rv__named_fn *named)
{
    for (; named != NULL; named = named->next) {
        bool no_memory = false;
        const char *module = keep_module(registry->engine, named->module, &no_memory);
        struct rv__function *f = function_find(registry, workflow, named->name);
        if (no_memory || (f == NULL && function_new(registry, workflow, named->name, &f) < 0))
            return RV_ENOMEM;
        offer(registry->engine, f, named->fn,
              module); /* the latest registration of a name counts */
        f->library = library;
        f->hash = named->hash;
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

/* New runs use this plan from now on. Takes over the draft. */
static void install(struct rv__registry *registry, struct rv__registered *r,
                    struct rv__plan_ref *ref, struct rv__draft *draft, const char *directory,
                    const char *source)
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
    registry->generation++;
    registry->engine->relane =
        true; /* waiting work may find its function now, or in another place */
}

static bool same_definition(const struct rv__registered *known, const struct rv__registration *r)
{
    return strcmp(known->plan->plan->version, r->plan->version) == 0;
}

/* Is it from the same file? Then the file was loaded again, and it is no second workflow of that name. */
static bool reloaded(const struct rv__registered *known, const struct rv__registration *r)
{
    return r->source != NULL && r->source[0] != '\0' &&
           strncmp(known->source, r->source, sizeof known->source - 1) == 0 &&
           same_definition(known, r);
}

/* Is the known workflow defined by another file, which still exists? */
static bool of_other_file(const struct rv__registered *known, const struct rv__registration *r)
{
    struct stat theirs, ours;
    return known->source[0] != '\0' && r->source != NULL && stat(known->source, &theirs) == 0 &&
           stat(r->source, &ours) == 0 &&
           (theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino);
}

/* Without jq, every run would fail at its first expression. */
static int check_jq(const struct rv__plan_ref *ref, rv_error *err)
{
    struct rv__buf path;
    rv_error why;
    if (ref->exprs.set == NULL || !rv__exprs_any_jq(ref->exprs.set))
        return RV_OK;
    rv__buf_init(&path, PATH_MAX);
    int rc = rv__evaluator_program(&path, &why);
    rv__buf_done(&path);
    if (rc == RV_ENOMEM)
        return rv__nomem(err);
    return rc < 0 ? rv__fail(err, RV_EINVAL, "%s", why.message) : RV_OK;
}

/* A budget by cost bounds nothing if the provider has no prices. (A provider whose name is computed, or whose prices are
 * removed later, is refused when it is asked.) */
static int check_prices(const rv_engine *e, const struct rv__plan *plan, rv_error *err)
{
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct rv__node *node = plan->nodes[i];
        const struct rv__provider *provider = NULL;
        struct rv__str name, plain;
        struct rv__arena arena;
        if (node->kind != NODE_STEP || node->step.kind != STEP_CHAT ||
            !rv__json_get(node->step.with, "provider", &name) || !rv__node_bounds_cost(node))
            continue;
        rv__arena_init(&arena, SIZE_MAX); /* of a name */
        if (rv__json_string(name, &arena, &plain) == RV_OK)
            provider = rv__providers_find(e->services.providers, plain);
        rv__arena_done(&arena);
        if (provider != NULL && !rv__provider_has_prices(provider))
            return rv__fail(err, RV_EINVAL, "%.*s: " RV__NO_PRICES,
                            RV__ARG(rv__node_around(node)->owner->alias),
                            rv__provider_name(provider));
    }
    return RV_OK;
}

int rv__registry_put(struct rv__registry *registry, struct rv__registration *r, rv_error *err)
{
    rv_engine *e = registry->engine;
    struct rv__plan_ref *ref = NULL;
    struct rv__plan *plan;
    struct rv__draft *draft = NULL;
    struct rv__str name = r->plan->body.wrap->name;
    struct rv__registered *known = rv__registry_find(registry, name);
    if (known != NULL && !known->withdrawn && !reloaded(known, r) &&
        (!r->replace || (r->keep_others && of_other_file(known, r))))
        return rv__fail(err, RV_EEXIST, "workflow '%.*s' is already registered%s%s%s",
                        RV__ARG(name), same_definition(known, r) ? "" : ", with another definition",
                        known->source[0] ? ", from " : "", known->source);
    int rc = check_prices(e, r->plan, err);
    if (rc == RV_OK)
        rc = rv__plan_draft(r->plan, &draft, err);
    if (rc < 0)
        goto out;
    pthread_mutex_lock(&e->plans.lock);
    ref = plan_hold(&e->plans, plan_find(registry, rv__str(r->plan->version)));
    pthread_mutex_unlock(&e->plans.lock);
    if (ref == NULL) { /* else the caller keeps its own */
        plan = r->plan;
        r->plan = NULL;
        rc = plan_add(registry, plan, &ref, err);
        if (rc < 0)
            goto out;
    }
    name = ref->plan->body.wrap->name;
    rc = check_jq(ref, err);
    if (rc == RV_OK && add_functions(registry, name, false, r->functions) < 0)
        rc = rv__nomem(err);
    if (rc < 0)
        goto out;
    if (rv__plan_listens(ref->plan, false)) {
        rc = rv__notify_begin(e, name, err);
        if (rc < 0)
            goto out;
    }
    if (known == NULL) {
        known = rv__zalloc(1, sizeof *known);
        if (known == NULL ||
            rv__index_add(&registry->by.workflows, &known->by_name, hash_of(name)) < 0) {
            rv__free(known);
            rc = rv__nomem(err);
            goto out;
        }
        known->next = registry->workflows;
        registry->workflows = known;
    }
    install(registry, known, ref, draft, r->directory, r->source);
    draft = NULL;
out:
    rv__plan_ref_unref(ref);
    rv__draft_free(draft);
    return rc;
}

/* Check expressions of the builder and of C files like those of other files, except for what only jq finds. */
static int check_expressions(const struct rv__plan *plan, rv_error *err)
{
    struct rv__arena arena;
    struct rv__violations bad;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the number of violations that are kept */
    rv__violations_init(&bad, &arena);
    int rc = rv__define_check_refs(plan, NULL, &bad, err);
    rv__arena_done(&arena);
    return rc;
}

/* The functions of a library are registered under its file, which cannot be a workflow's name, since names have no
 * slash. */
static int add_library(struct rv__registry *registry, const rv_workflow *w, rv_error *err)
{
    char name[RV__PATH_ROOM];
    const char *source = w->source != NULL ? w->source : "";
    snprintf(name, sizeof name, "%s%s", strchr(source, '/') != NULL ? "" : "./", source);
    if (add_functions(registry, rv__str(name), true, w->functions) < 0)
        return rv__nomem(err);
    registry->generation++;
    registry->engine->relane = true;
    return RV_OK;
}

bool rv__registry_has_agent(struct rv__registry *registry, struct rv__str id)
{
    const struct rv__function *f = function_find(registry, rv__str("./" RV__AGENTS), id);
    return f != NULL && rv__function_offered(f);
}

int rv__registry_add(struct rv__registry *registry, const rv_workflow *w, rv_error *err)
{
    struct finder finder = { .resolver = { find_draft }, .registry = registry };
    struct rv__registration r = { .functions = w->functions,
                                  .source = w->source,
                                  .directory = w->directory,
                                  .replace = w->replace,
                                  .keep_others = w->keep_others };
    if (w->rc != RV_OK)
        return rv__fail(err, w->rc, "%s", w->rc == RV_ENOMEM ? rv_strerror(w->rc) : w->why);
    if (w->library)
        return add_library(registry, w, err);
    int rc = rv__plan_compile(w->draft, &finder.resolver, NULL, &r.plan, err);
    if (rc == RV_OK)
        rc = check_expressions(r.plan, err);
    if (rc == RV_OK)
        rc = rv__registry_put(registry, &r, err);
    rv__plan_free(r.plan);
    return rc;
}

const char *rv__registry_directory(struct rv__registry *registry, const struct rv__node *node)
{
    while (rv__str_is(workflow_of(node), RV__APPROVAL) && rv__node_around(node)->owner != NULL)
        node = rv__node_around(node)->owner; /* its workflow has no file: that of the chat counts */
    struct rv__registered *r = rv__registry_find(registry, workflow_of(node));
    return r != NULL && r->directory[0] ? r->directory : NULL;
}

/* ------------------------------------------------------------------------------- life time --- */

struct rv__registry *rv__registry_new(rv_engine *e)
{
    struct rv__registry *registry = rv__zalloc(1, sizeof *registry);
    if (registry == NULL)
        return NULL;
    registry->engine = e;
    registry->generation = 1;
    atomic_init(&registry->refs, 1);
    rv__buf_init(&registry->env, RV__JSON_MAX_BYTES);
    return registry;
}

struct rv__registry *rv__registry_ref(struct rv__registry *registry)
{
    atomic_fetch_add_explicit(&registry->refs, 1, memory_order_relaxed);
    return registry;
}

void rv__registry_unref(struct rv__registry *registry)
{
    if (registry == NULL ||
        atomic_fetch_sub_explicit(&registry->refs, 1, memory_order_acq_rel) != 1)
        return;
    assert(registry->workflows == NULL); /* plans hold the registry */
    while (registry->functions != NULL) {
        struct rv__function *next = registry->functions->next;
        rv__function_done(registry->functions);
        rv__free(registry->functions);
        registry->functions = next;
    }
    rv__index_done(&registry->by.workflows);
    rv__index_done(&registry->by.functions);
    rv__index_done(&registry->by.callable);
    rv__buf_done(&registry->env);
    rv__secret_source_free(registry->secret_source);
    rv__free((void *)(uintptr_t)registry->environment);
    rv__free(registry);
}

void rv__registry_clear(struct rv__registry *registry)
{
    while (registry->workflows != NULL) {
        struct rv__registered *r = registry->workflows;
        registry->workflows = r->next;
        rv__index_remove(&registry->by.workflows, &r->by_name);
        rv__plan_ref_unref(r->plan);
        rv__draft_free(r->draft);
        rv__free(r);
    }
    registry->generation++; /* nobody runs its commands any more */
}

void rv__registry_free(rv_engine *e)
{
    if (e->registry != NULL)
        rv__registry_clear(e->registry);
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
    rv__registry_unref(e->registry);
    rv__index_done(&e->plans.by_version);
    pthread_mutex_destroy(&e->plans.lock);
}
