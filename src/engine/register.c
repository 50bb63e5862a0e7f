/* register.c: registers workflow files with an engine, and lists what is registered.
 *
 * Files are read, checked and compiled on the caller's thread; only finished plans go to the loop. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rival/rival.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/opts.h"
#include "define/define.h"
#include "engine/call.h"
#include "engine/control.h"
#include "work/work.h"

/* A file may nest a workflow that is registered already. Its draft is copied, since the registry's may be replaced
 * while we compile. */
struct found {
    struct found *next;
    struct rv__draft *draft;
};

struct lookup {
    struct rv__resolver resolver; /* first */
    struct rv__registry *registry;
    struct rv__c_files files; /* may be nested before they are registered */
    struct rv__str name;
    struct found *found; /* newest first */
};

static int look_up(struct rv__call *call) /* on the loop */
{
    struct lookup *lookup = call->arg;
    struct rv__registered *r = rv__registry_offered(lookup->registry, lookup->name);
    if (r == NULL)
        return RV_ENOTFOUND;
    struct found *found = rv__zalloc(1, sizeof *found);
    if (found == NULL)
        return rv__nomem(&call->err);
    found->next = lookup->found;
    lookup->found = found;
    return rv__plan_draft(r->plan->plan, &found->draft, &call->err);
}

static int find_registered(struct rv__resolver *self, struct rv__str name,
                           const struct rv__draft **ret)
{
    struct lookup *lookup = (struct lookup *)self;
    if (rv__c_files_find(&lookup->files, name, ret) == RV_OK)
        return RV_OK;
    lookup->name = name;
    int rc = rv__call_ask(lookup->registry->engine, look_up, lookup, NULL);
    if (rc == RV_OK)
        *ret = lookup->found->draft;
    return rc;
}

static int find_file(struct rv__resolver *self, const char *path, const struct rv__draft **ret)
{
    return rv__c_files_find_file(&((struct lookup *)self)->files, path, ret);
}

static int look_for_agent(struct rv__call *call) /* on the loop */
{
    struct lookup *lookup = call->arg;
    return rv__registry_has_agent(lookup->registry, lookup->name) ? RV_OK : RV_ENOTFOUND;
}

static bool has_agent(struct rv__resolver *self, struct rv__str id)
{
    struct lookup *lookup = (struct lookup *)self;
    lookup->name = id;
    return rv__call_ask(lookup->registry->engine, look_for_agent, lookup, NULL) == RV_OK;
}

static void lookup_done(struct lookup *lookup)
{
    rv__c_files_done(&lookup->files);
    while (lookup->found != NULL) {
        struct found *next = lookup->found->next;
        rv__draft_free(lookup->found->draft);
        rv__free(lookup->found);
        lookup->found = next;
    }
}

/* ------------------------------------------------------------------------------- calls --- */

/* A function that a file calls by name. */
struct called {
    struct rv__registry *registry;
    struct rv__str name, by; /* `by`: the workflow that calls it, whose own functions come first */
    struct rv__str first, second; /* workflows that offer one; texts of the engine */
};

static int count_offers(struct rv__call *call) /* on the loop */
{
    struct called *called = call->arg;
    for (const struct rv__function *f = called->registry->functions; f != NULL; f = f->next) {
        struct rv__registered *r;
        if (!rv__str_eq(f->name, called->name))
            continue;
        if (rv__str_eq(f->workflow, called->by)) {
            called->second = (struct rv__str){ NULL, 0 };
            return RV_OK;
        }
        struct rv__str *offer = rv__str_none(called->first) ? &called->first : &called->second;
        r = rv__registry_offered(called->registry, f->workflow);
        if (r != NULL)
            *offer = r->name;
        else if (f->library) /* else its file is gone, or has another name now */
            *offer = f->workflow;
    }
    return RV_OK;
}

/* RV_EINVAL, with *why: it calls a function that several workflows have. */
static int check_calls(struct rv__registry *registry, const struct rv__plan *plan, rv_error *why)
{
    struct rv__str before = { NULL, 0 };
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct rv__node *node = plan->nodes[i];
        if (node->kind != NODE_STEP || node->step.kind != STEP_CALL ||
            rv__str_eq(node->step.name, before)) /* several states may have the same agent */
            continue;
        before = node->step.name;
        struct called called = { .registry = registry,
                                 .name = node->step.name,
                                 .by = plan->body.wrap->name };
        int rc = rv__call_ask(registry->engine, count_offers, &called, why);
        if (rc < 0)
            return rc;
        if (!rv__str_none(called.second))
            return rv__fail(why, RV_EINVAL,
                            "'%.*s' calls '%.*s', and both '%.*s' and '%.*s' have one: say which "
                            "with 'call: file/%.*s'",
                            RV__ARG(node->alias), RV__ARG(called.name), RV__ARG(called.first),
                            RV__ARG(called.second), RV__ARG(called.name));
    }
    return RV_OK;
}

/* Register the good ones; a refusal is a problem of its file. */
static int put_all(struct rv__registry *registry, struct rv__definitions *all,
                   const rv_file_opts *opts, int *registered, rv_error *err)
{
    assert(all != NULL); /* they were loaded */
    for (size_t i = 0; i < all->count; i++) {
        struct rv__definition *item = &all->items[i];
        struct rv__registration r = { .plan = item->plan,
                                      .directory = item->directory.at,
                                      .source = item->file.at,
                                      .replace = opts->replace,
                                      .keep_others = opts->keep_others };
        rv_error why = { .code = 0 };
        int rc = check_calls(registry, item->plan, &why);
        if (rc == RV_OK)
            rc = rv__call_register(registry, &r, &why);
        item->plan = r.plan;
        if (rc == RV_ENOMEM || rc == RV_ECLOSED || rc == RV_ESTORE) {
            if (err != NULL)
                *err = why;
            return rc;
        }
        if (rc < 0 && rv__definitions_complain(all, item->file, why.message) < 0)
            return rv__nomem(err);
        *registered += rc == RV_OK;
    }
    return RV_OK;
}

static int first_problem(const struct rv__definitions *all, rv_error *err)
{
    const struct rv__problem *p = &all->problems[0];
    char more[40] = "";
    if (all->problem_count > 1)
        snprintf(more, sizeof more, " (and %zu more)", all->problem_count - 1);
    if (p->line > 0)
        return rv__fail(err, RV_EINVAL, "%.*s:%u:%u: %.*s%s", RV__ARG(p->file), p->line, p->column,
                        RV__ARG(p->message), more);
    return rv__fail(err, RV_EINVAL, "%.*s: %.*s%s", RV__ARG(p->file), RV__ARG(p->message), more);
}

/* Register the C files that can be registered now; returns how many. A file that nests a workflow that is not
 * registered yet is tried again after the others. */
static int c_files_put(struct rv__registry *registry, struct rv__c_files *files)
{
    int registered = 0;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < files->count; i++) {
            struct rv__c_file *file = files->items[i];
            if (file->done || file->workflow == NULL ||
                rv__register_in(registry, file->workflow, &file->why) < 0)
                continue;
            file->done = more = true;
            registered += !file->workflow->library;
        }
    }
    return registered;
}

/* Scripts by path; of one path the broken first, then by name. */
static int by_script(const void *a, const void *b)
{
    const struct rv__c_file *x = *(struct rv__c_file *const *)a,
                            *y = *(struct rv__c_file *const *)b;
    int order = strcmp(x->path, y->path);
    if (order == 0)
        order = (x->workflow != NULL) - (y->workflow != NULL);
    return order != 0 || x->workflow == NULL ? order
                                             : rv__str_cmp(rv__draft_name(x->workflow->draft),
                                                           rv__draft_name(y->workflow->draft));
}

struct renaming {
    struct rv__registry *registry;
    struct rv__c_file **scripts; /* by_script() */
    size_t count;
};

/* Unregister workflows that a script no longer has. A broken script keeps its old ones. */
static int forget_renamed(struct rv__call *call) /* on the loop */
{
    const struct renaming *to = call->arg;
    for (struct rv__registered *r = to->registry->workflows; r != NULL; r = r->next) {
        size_t low = 0, high = to->count;
        while (low < high) { /* the first of its path */
            size_t middle = (low + high) / 2;
            if (strcmp(to->scripts[middle]->path, r->source) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        bool of_script = false, has = false;
        for (; low < to->count && strcmp(to->scripts[low]->path, r->source) == 0 && !has; low++) {
            const struct rv__c_file *file = to->scripts[low];
            of_script = true;
            has = file->workflow == NULL
                      ? file->why.code != 0
                      : rv__str_eq(rv__draft_name(file->workflow->draft), r->name);
        }
        if (of_script && !has && !r->withdrawn) {
            r->withdrawn = true;
            to->registry->generation++;
        }
    }
    return RV_OK;
}

static int withdraw_renamed(struct rv__registry *registry, const struct rv__c_files *files,
                            rv_error *err)
{
    struct renaming to = { .registry = registry };
    if (files->script_host == NULL)
        return RV_OK;
    to.scripts = rv__zalloc(files->script_count + 1, sizeof(struct rv__c_file *));
    if (to.scripts == NULL)
        return rv__nomem(err);
    for (size_t i = 0; i < files->count; i++)
        if (files->items[i]->real != NULL)
            to.scripts[to.count++] = files->items[i];
    qsort(to.scripts, to.count, sizeof(struct rv__c_file *), by_script);
    int rc = rv__call_ask(registry->engine, forget_renamed, &to, err);
    rv__free(to.scripts);
    return rc;
}

/* The name of the workflow of the first path, into `name`, if it is wanted. */
static int tell_name(struct lookup *lookup, const struct rv__definitions *all, const char *path,
                     struct rv__buf *name)
{
    const struct rv__draft *draft;
    if (name == NULL)
        return RV_OK;
    size_t found = 0;
    for (size_t i = 0; i < all->count; i++)
        if (rv__str_is(all->items[i].file, path) && ++found == 1)
            rv__buf_str(name, all->items[i].name);
    if (found > 1) /* ambiguous: it must be nested by its name */
        rv__buf_reset(name);
    if (name->len == 0 && (rv__is_c_file(rv__str(path)) || rv__is_script(rv__str(path))) &&
        rv__c_files_find_file(&lookup->files, path, &draft) == RV_OK)
        rv__buf_str(name, rv__draft_name(draft));
    return name->rc;
}

static int register_paths(struct rv__registry *registry, const char *const *paths, size_t count,
                          const rv_file_opts *opts, struct rv__buf *name, rv_error *err)
{
    rv_engine *engine = registry->engine;
    struct lookup lookup = { .resolver = { find_registered, find_file, has_agent },
                             .registry = registry,
                             .files = { .services = &engine->services,
                                        .depth = RV_C_FILES_LOADED,
                                        .opts = opts,
                                        .registry = registry } };
    struct rv__c_files *files = &lookup.files;
    struct rv__definitions *all = NULL;
    const char **more = NULL;
    struct rv__evaluator *evaluator = NULL;
    int registered = 0;
    int rc = rv__services_evaluator(&engine->services, &evaluator, err);
    if (rc < 0)
        return rc;
    struct rv__expr_compiler *compiler = rv__evaluator_compiler(evaluator);
    rc = rv__define_load(paths, count, &lookup.resolver, compiler, &all, err);
    if (rc == RV_OK)
        rc = rv__c_files_load(files, all, paths, count, err);
    if (rc == RV_OK) {
        rv__c_files_refuse_taken(files, all);
        registered = c_files_put(registry, files);
    }
    if (rc == RV_OK && ((registered > 0 && all->problem_count > 0) || files->text_count > 0)) {
        rv__definitions_free(all); /* they may refer to the C files */
        all = NULL;
        more = rv__c_files_paths(files, paths, count);
        rc = more != NULL ? rv__define_load(more, count + files->text_count, &lookup.resolver,
                                            compiler, &all, err)
                          : rv__nomem(err);
    }
    if (rc == RV_OK)
        rc = put_all(registry, all, opts, &registered, err);
    if (rc == RV_OK)
        registered += c_files_put(registry, files);
    if (rc == RV_OK && opts->replace)
        rc = withdraw_renamed(registry, files, err);
    if (rc == RV_OK && files->script_host != NULL)
        rv__script_hosts_offer(engine->services.scripts, files->script_host);
    if (rc == RV_OK && rv__c_files_complain(files, all) < 0)
        rc = rv__nomem(err);
    if (rc == RV_OK && tell_name(&lookup, all, paths[0], name) < 0)
        rc = rv__nomem(err);
    assert(rc < 0 || all != NULL);
    if (rc == RV_OK && all->problem_count > 0 && opts->report == NULL)
        rc = first_problem(all, err);
    if (rc == RV_OK && opts->report != NULL)
        rc = rv__report_new(&all, NULL, opts->report, err);
    rv__free(more);
    rv__definitions_free(all);
    lookup_done(&lookup);
    return rc < 0 ? rc : registered;
}

/* ------------------------------------------------------------------- nested by the builder --- */

struct building {
    struct rv__registry *registry;
    struct rv__buf name;
    rv_error *err;
};

static int register_nested(void *arg, struct rv__str said, struct rv__str *name)
{
    struct building *b = arg;
    char path[RV__PATH_ROOM];
    const rv_file_opts opts = { .size = sizeof opts };
    const char *paths[] = { path };
    if (!rv__is_file_reference(said))
        return RV_OK;
    if (said.len >= sizeof path)
        return rv__fail(b->err, RV_EINVAL, "the path '%.100s' is too long", said.at);
    snprintf(path, sizeof path, "%.*s", RV__ARG(said));
    rv__buf_reset(&b->name);
    int rc = register_paths(b->registry, paths, 1, &opts, &b->name, b->err);
    if (rc >= 0 && b->name.len == 0)
        rc = rv__fail(b->err, RV_EINVAL, "'%.150s' is not a workflow file", path);
    if (rc >= 0)
        *name = rv__buf_view(&b->name);
    return rc < 0 ? rc : RV_OK;
}

int rv__register_nested(struct rv__registry *registry, const rv_workflow *workflow, rv_error *err)
{
    struct building b = { .registry = registry, .err = err };
    if (workflow->library)
        return RV_OK;
    rv__buf_init(&b.name, RV__PLAN_MAX_BYTES);
    int rc = rv__draft_nested(workflow->draft, register_nested, &b);
    rv__buf_done(&b.name);
    return rc == RV_ENOMEM ? rv__nomem(err) : rc;
}

static int check_opts(rv_engine *engine, const char *path, const rv_file_opts *opts,
                      rv_file_opts *known, const char *who, rv_error *err)
{
    *known = (rv_file_opts){ .size = sizeof *known };
    if (engine == NULL || path == NULL)
        return rv__fail(err, RV_EINVAL, "%s: no %s given", who, engine ? "path" : "engine");
    if (opts != NULL && opts->size == 0)
        return rv__fail(err, RV_EINVAL, "options without a size: make them with RV_FILE_OPTS");
    if (opts != NULL)
        memcpy(known, opts, opts->size < sizeof *known ? opts->size : sizeof *known);
    return RV_OK;
}

int rv_register_file(rv_engine *engine, const char *path, const rv_file_opts *opts, rv_error *err)
{
    rv_file_opts known;
    int rc = check_opts(engine, path, opts, &known, "rv_register_file", err);
    if (rc == RV_OK)
        rc = register_paths(engine->registry, &path, 1, &known, NULL, err);
    return rc;
}

int rv_register_dir(rv_engine *engine, const char *path, const rv_file_opts *opts, rv_error *err)
{
    rv_file_opts known;
    int rc = check_opts(engine, path, opts, &known, "rv_register_dir", err);
    if (rc == RV_OK)
        rc = register_paths(engine->registry, &path, 1, &known, NULL, err);
    return rc;
}

int rv__register_file_in(struct rv__registry *registry, const char *path, const rv_file_opts *opts,
                         rv_error *err)
{
    return register_paths(registry, &path, 1, opts, NULL, err);
}

void rv_file_opts_init(rv_file_opts *opts)
{
    *opts = (rv_file_opts){ .size = sizeof *opts };
}

/* ---------------------------------------------------------------------------- taking back --- */

static int withdraw(struct rv__call *call) /* on the loop */
{
    const char *name = call->arg;
    struct rv__registered *r = rv__registry_offered(call->engine->registry, rv__str(name));
    if (r == NULL)
        return rv__fail(&call->err, RV_ENOTFOUND, "there is no workflow '%.60s'", name);
    r->withdrawn = true;
    call->engine->registry
        ->generation++; /* its functions no longer conflict with others of the same names */
    return RV_OK;
}

int rv_unregister(rv_engine *engine, const char *workflow, rv_error *err)
{
    if (engine == NULL || workflow == NULL)
        return rv__fail(err, RV_EINVAL, "rv_unregister: no %s given",
                        engine == NULL ? "engine" : "workflow");
    return rv__call_ask(engine, withdraw, (void *)(uintptr_t)workflow, err);
}

/* ------------------------------------------------------------------------------- the list --- */

/* On the loop: copy everything as texts, each with a NUL. */
static int list_all(struct rv__call *call)
{
    struct rv__buf *out = call->arg;
    for (struct rv__registered *r = call->engine->registry->workflows; r != NULL; r = r->next) {
        if (r->withdrawn)
            continue;
        const struct rv__plan *plan = r->plan->plan;
        const struct rv__wrap *wrap = plan->body.wrap;
        struct rv__str texts[] = { r->name,
                                   rv__str_none(wrap->description) ? rv__str("")
                                                                   : wrap->description,
                                   rv__str_none(wrap->schema) ? rv__str("") : wrap->schema,
                                   rv__str(plan->version), rv__str(r->source) };
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            rv__buf_str(out, texts[i]);
            rv__buf_char(out, '\0');
        }
        rv__buf_int(out, plan->body.count);
        rv__buf_char(out, '\0');
        const char *blocked = rv__plan_ref_blocked(r->plan);
        rv__buf_text(out, blocked != NULL ? blocked : "");
        rv__buf_char(out, '\0');
    }
    return rv__buf_err(out, &call->err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const rv_workflow_info *)a)->name, ((const rv_workflow_info *)b)->name);
}

int rv_workflows(rv_engine *engine, rv_workflow_list **ret, rv_error *err)
{
    enum { TEXTS = 7 };
    struct rv__buf texts;
    if (engine == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_workflows: %s",
                        engine == NULL ? "no engine given" : "nowhere to put the list");
    rv__buf_init(&texts, SIZE_MAX / 8);
    int rc = engine->attached != NULL ? rv__attached_workflows(engine, &texts, err) : RV_ECLOSED;
    if (rc == RV_ECLOSED) /* nobody else's: ours */
        rc = rv__call_ask(engine, list_all, &texts, err);
    if (rc < 0)
        goto out;
    size_t count = 0;
    for (size_t i = 0; i < texts.len; i++)
        count += texts.text[i] == '\0';
    count /= TEXTS;
    char *mem = rv__zalloc(1, sizeof(rv_workflow_list) + count * sizeof(rv_workflow_info) +
                                  texts.len + 1);
    if (mem == NULL) {
        rc = rv__nomem(err);
        goto out;
    }
    rv_workflow_list *list = (rv_workflow_list *)(void *)mem;
    rv_workflow_info *items = (rv_workflow_info *)(void *)(mem + sizeof *list);
    char *at = (char *)(items + count);
    if (texts.len > 0)
        memcpy(at, texts.text, texts.len);
    for (size_t i = 0; i < count; i++) {
        const char **fields[] = { &items[i].name, &items[i].description, &items[i].input_schema,
                                  &items[i].version, &items[i].source };
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
            *fields[k] = at;
            at += strlen(at) + 1;
        }
        int64_t steps = 0;
        (void)rv__json_int(rv__str(at), &steps); /* written above */
        items[i].step_count = (int)steps;
        at += strlen(at) + 1;
        items[i].cannot_start = at;
        at += strlen(at) + 1;
    }
    if (count > 0)
        qsort(items, count, sizeof *items, by_name);
    *list = (rv_workflow_list){ .count = count, .items = items };
    *ret = list;
out:
    rv__buf_done(&texts);
    return rc;
}

void rv_workflow_list_free(rv_workflow_list *list)
{
    rv__free(list);
}

/* ---------------------------------------------------------------------------------- agents --- */

void rv_agent_opts_init(rv_agent_opts *opts)
{
    *opts = (rv_agent_opts){ .size = sizeof *opts };
}

struct agent_ask {
    struct rv__registry *registry;
    const rv_workflow *library;
    struct rv__str id;
    bool replace;
};

static int add_agent(struct rv__call *call) /* on the loop */
{
    struct agent_ask *ask = call->arg;
    if (!ask->replace && rv__registry_has_agent(ask->registry, ask->id))
        return rv__fail(
            &call->err, RV_EEXIST,
            "there is an agent '%.*s' already: RV_AGENT_OPTS(.replace = true) replaces it",
            RV__ARG(ask->id));
    return rv__registry_add(ask->registry, ask->library, &call->err);
}

int rv_agent(rv_engine *engine, const char *id, rv_step_fn fn, const rv_agent_opts *opts,
             rv_error *err)
{
    rv_agent_opts known = { .size = sizeof known };
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    if (engine == NULL || fn == NULL || known.size == 0)
        return rv__fail(err, RV_EINVAL, "rv_agent: %s",
                        engine == NULL ? "no engine given"
                        : fn == NULL   ? "no function given"
                                       : "make the options with RV_AGENT_OPTS");
    if (id == NULL || *id == '\0' || strlen(id) > RV__PLAN_MAX_NAME || strchr(id, '/') != NULL)
        return rv__fail(err, RV_EINVAL, "rv_agent: an id has 1 to %d bytes and no slash",
                        (int)RV__PLAN_MAX_NAME);
    rv_workflow *library = rv__workflow_library();
    if (library == NULL)
        return rv__nomem(err);
    library->source = RV__AGENTS;
    rv_workflow_function(library, id, fn);
    struct agent_ask ask = { engine->registry, library, rv__str(id), known.replace };
    int rc = rv__call_ask(engine, add_agent, &ask, err);
    rv_workflow_free(library);
    return rc;
}
