/* builder.c: rv_workflow and rv_add_…(): they fill a draft, and a list of its functions by name.
 *
 * These calls report no error: the draft and the list of functions remember the first one, and
 * rv_register() reports it. A function is known by the name of its workflow and its own, so two workflows
 * may both have a `charge`. */
#include <rival/rival.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "define/table.h"

enum {
    NAME_ROOM = 2 * RV__PLAN_MAX_NAME
}; /* "<name>.onError"; a longer one is refused at compile */

rv_workflow *rv_workflow_new(const char *name)
{
    rv_workflow *w = rv__zalloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    rv__arena_init(&w->arena, RV__PLAN_MAX_BYTES);
    if (rv__draft_new(name != NULL ? name : "", &w->draft, NULL) < 0) {
        rv__arena_done(&w->arena);
        rv__free(w);
        return NULL;
    }
    w->root = (rv_body){ .workflow = w, .draft = rv__draft_root(w->draft) };
    return w;
}

rv_workflow *rv__workflow_library(void)
{
    rv_workflow *w = rv__zalloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    rv__arena_init(&w->arena, RV__PLAN_MAX_BYTES);
    w->library = true;
    return w;
}

int rv__workflow_read(struct rv__str json, rv_workflow **ret, rv_error *err)
{
    rv_workflow *w = rv__zalloc(1, sizeof *w);
    if (w == NULL)
        return rv__nomem(err);
    rv__arena_init(&w->arena, RV__PLAN_MAX_BYTES);
    int rc = rv__draft_read(json, &w->draft, err);
    if (rc < 0) {
        rv_workflow_free(w);
        return rc;
    }
    w->root = (rv_body){ .workflow = w, .draft = rv__draft_root(w->draft) };
    *ret = w;
    return RV_OK;
}

/* NULL: no memory; the workflow remembers that. */
static struct rv__named_fn *name_function(rv_workflow *w, struct rv__str name)
{
    struct rv__named_fn *named = rv__arena_zalloc(&w->arena, 1, sizeof *named);
    if (named == NULL || rv__str_copy(&w->arena, name, &named->name) < 0) {
        w->rc = RV_ENOMEM;
        return NULL;
    }
    named->next = w->functions;
    w->functions = named;
    return named;
}

void rv__workflow_offered(rv_workflow *w, struct rv__str name)
{
    (void)name_function(w, name);
}

void rv__workflow_hosted(rv_workflow *w, struct rv__str name, const char *module)
{
    struct rv__named_fn *named = name_function(w, name);
    struct rv__str path = { NULL, 0 };
    if (named != NULL && rv__str_copy(&w->arena, rv__str(module), &path) < 0)
        w->rc = RV_ENOMEM;
    if (named != NULL)
        named->module = path.at;
}

void rv_workflow_free(rv_workflow *w)
{
    if (w == NULL)
        return;
    rv__draft_free(w->draft);
    rv__arena_done(&w->arena);
    rv__free(w);
}

void rv_workflow_needs(rv_workflow *w, const char *const *aliases)
{
    if (aliases != NULL)
        rv__draft_needs(w->draft, aliases);
}

void rv_workflow_describe(rv_workflow *w, const char *text)
{
    rv__draft_description(w->draft, text);
}

void rv_workflow_input(rv_workflow *w, const char *json_schema)
{
    rv__draft_schema(w->draft, json_schema);
}

void rv_workflow_secrets(rv_workflow *w, const char *const *names)
{
    rv__draft_secrets(w->draft, names);
}

rv_body *rv_workflow_body(rv_workflow *w)
{
    return &w->root;
}

/* Only the first error is kept, for rv_register(). */
static void remember(rv_workflow *w, int rc, const char *why)
{
    if (rc == RV_OK || w->rc != RV_OK)
        return;
    w->rc = rc;
    snprintf(w->why, sizeof w->why, "%s", why);
}

/* The node that has a function; `in` NULL: no node. */
struct owner {
    const struct rv__draft_body *in;
    const char *alias;
};

/* "the step 'each:save'", for messages; NULL: it belongs to no node, or there is no memory. */
static const char *place_of(rv_workflow *w, struct owner owner)
{
    struct rv__buf text;
    struct rv__str copy = { NULL, 0 };
    if (owner.in == NULL)
        return NULL;
    rv__buf_init(&text, RV__PLAN_MAX_BYTES);
    rv__draft_where(owner.in, owner.alias, &text);
    if (text.rc != RV_OK || rv__str_copy(&w->arena, rv__buf_view(&text), &copy) < 0)
        w->rc = RV_ENOMEM;
    rv__buf_done(&text);
    return copy.at;
}

/* Two functions with one name: one of their nodes would run the wrong one. */
static void refuse_second(rv_workflow *w, const char *name, const char *first, const char *second)
{
    if (w->rc != RV_OK)
        return;
    w->rc = RV_EINVAL;
    snprintf(w->why, sizeof w->why,
             "two functions would have the name '%.60s': one of '%.60s' and one of '%.60s'; give "
             "one another alias, or a .name",
             name, first != NULL ? first : "rv_workflow_function()",
             second != NULL ? second : "rv_workflow_function()");
}

/* Note that `fn` is called `name`. */
static void add_function(rv_workflow *w, struct owner owner, const char *name, rv_step_fn fn)
{
    const char *where = place_of(w, owner);
    for (const struct rv__named_fn *f = w->functions; f != NULL; f = f->next) {
        if (!rv__str_is(f->name, name))
            continue;
        if (f->fn != fn)
            refuse_second(w, name, f->where, where);
        return;
    }
    struct rv__named_fn *named = rv__arena_zalloc(&w->arena, 1, sizeof *named);
    if (named == NULL || rv__str_copy(&w->arena, rv__str(name), &named->name) < 0) {
        w->rc = RV_ENOMEM;
        return;
    }
    if (fn == NULL && w->rc == RV_OK) {
        w->rc = RV_EINVAL;
        snprintf(w->why, sizeof w->why, "the function '%.100s' is NULL", name);
    }
    named->fn = fn;
    named->where = where;
    named->next = w->functions;
    w->functions = named;
}

static rv_body *new_body(rv_workflow *w, struct rv__draft_body *draft)
{
    rv_body *body = rv__arena_zalloc(&w->arena, 1, sizeof *body);
    if (body == NULL) {
        w->rc = RV_ENOMEM;
        return &w->root; /* out of memory: it accepts nodes, but is never compiled */
    }
    *body = (rv_body){ .workflow = w, .draft = draft };
    return body;
}

/* "name", or, if it is NULL, "base.suffix". */
static const char *name_or(char room[NAME_ROOM], const char *name, const char *base,
                           const char *suffix)
{
    if (name != NULL)
        return name;
    snprintf(room, NAME_ROOM, "%s.%s", base, suffix);
    return room;
}

static struct rv__expr function_expr(const char *name)
{
    return (struct rv__expr){ .kind = EXPR_FUNCTION, .text = rv__str(name) };
}

/* An expression as in a file: a JSON string. It lives in the workflow's arena. */
static struct rv__expr text_expr(rv_workflow *w, const char *text)
{
    struct rv__buf json;
    struct rv__expr expr = { .kind = EXPR_JSON, .text = rv__str("null") };
    rv__buf_init(&json, RV__PLAN_MAX_BYTES);
    rv__buf_json_str(&json, rv__str(text));
    if (rv__buf_err(&json, NULL) < 0 ||
        rv__str_copy(&w->arena, rv__buf_view(&json), &expr.text) < 0)
        w->rc = RV_ENOMEM;
    rv__buf_done(&json);
    return expr;
}

void rv_workflow_on_error(rv_workflow *w, const char *name, rv_step_fn handler)
{
    const char *known = name != NULL ? name : "onError";
    rv__draft_handler(w->draft, NULL, HANDLER_ON_ERROR, STEP_FUNCTION, known, NULL);
    add_function(w, (struct owner){ rv__draft_root(w->draft), "onError" }, known, handler);
}

rv_body *rv_workflow_on_error_body(rv_workflow *w)
{
    return new_body(w, rv__draft_handler_body(w->draft, NULL, HANDLER_ON_ERROR));
}

rv_body *rv_workflow_finally(rv_workflow *w)
{
    return new_body(w, rv__draft_handler_body(w->draft, NULL, HANDLER_FINALLY));
}

rv_body *rv_add_on_error(rv_body *in)
{
    rv_workflow *w = in->workflow;
    if (in->step != NULL)
        return new_body(w, rv__draft_handler_body(w->draft, in->step, HANDLER_ON_ERROR));
    if (w->rc == RV_OK) {
        w->rc = RV_EINVAL;
        snprintf(w->why, sizeof w->why, "rv_add_on_error() comes after the step that it is for");
    }
    return new_body(w, in->draft); /* it is never compiled */
}

void rv_workflow_function(rv_workflow *w, const char *name, rv_step_fn fn)
{
    add_function(w, (struct owner){ NULL, NULL }, name != NULL ? name : "", fn);
}

/* An option struct must come from its macro: its size says which fields it has. */
static bool sized(rv_workflow *w, size_t size, const char *macro)
{
    if (size != 0)
        return true;
    if (w->rc == RV_OK) {
        w->rc = RV_EINVAL;
        snprintf(w->why, sizeof w->why, "options without a size: make them with %s", macro);
    }
    return false;
}

static enum rv__backoff draft_backoff(rv_workflow *w, int backoff)
{
    if (backoff < 0 || backoff > RV_EXPONENTIAL)
        remember(w, RV_EINVAL, "invalid backoff: must be RV_LINEAR or RV_EXPONENTIAL");
    return backoff == RV_EXPONENTIAL ? BACKOFF_EXPONENTIAL : BACKOFF_LINEAR;
}

/* NULL: it was refused. */
static struct rv__draft_node *add_step(rv_workflow *w, struct rv__draft_body *in, const char *alias,
                                       rv_step_fn fn, const rv_step_opts *opts)
{
    static const rv_step_opts defaults = { .size = sizeof defaults };
    char when_room[NAME_ROOM], error_room[NAME_ROOM];
    if (opts == NULL)
        opts = &defaults;
    if (!sized(w, opts->size, "RV_STEP_OPTS"))
        return NULL;

    const char *name = opts->name != NULL ? opts->name : alias != NULL ? alias : "";
    struct rv__draft_opts draft = {
        .alias = alias,
        .description = opts->description,
        .config = { .timeout_ms = opts->timeout_ms,
                    .on_timeout = (enum rv__on_timeout)opts->on_timeout,
                    .max_attempts = opts->max_attempts,
                    .backoff = draft_backoff(w, opts->backoff),
                    .backoff_base_ms = opts->backoff_base_ms,
                    .max_backoff_ms = opts->max_backoff_ms,
                    .jitter = opts->jitter,
                    .retry_on = rv__str(opts->retry_on),
                    .no_retry_on = rv__str(opts->no_retry_on),
                    .continue_on_error = opts->continue_on_error,
                    .hide_input = opts->hide_input },
    };
    struct owner owner = { in, alias };
    const char *when = name_or(when_room, opts->when_name, name, "when");
    if (opts->when != NULL) {
        draft.when = function_expr(when);
        add_function(w, owner, when, opts->when);
    } else if (opts->when_expr != NULL) {
        draft.when = text_expr(w, opts->when_expr);
    }
    struct rv__draft_node *node = rv__draft_step(in, STEP_FUNCTION, name, NULL, &draft);
    add_function(w, owner, name, fn);
    if (opts->on_error != NULL) {
        const char *handler = name_or(error_room, opts->on_error_name, name, "onError");
        rv__draft_handler(w->draft, node, HANDLER_ON_ERROR, STEP_FUNCTION, handler, NULL);
        add_function(w, owner, handler, opts->on_error);
    }
    return node;
}

void rv_add_step(rv_body *in, const char *alias, rv_step_fn fn, const rv_step_opts *opts)
{
    in->step = add_step(in->workflow, in->draft, alias, fn, opts);
}

void rv_add_delay(rv_body *in, const char *alias, int64_t ms)
{
    char with[32];
    snprintf(with, sizeof with, "%lld", (long long)ms);
    rv__draft_step(in->draft, STEP_DELAY, NULL, with, &(struct rv__draft_opts){ .alias = alias });
}

void rv_add_signal(rv_body *in, const char *alias, const char *signal, int64_t timeout_ms,
                   const char *default_json)
{
    rv_workflow *w = in->workflow;
    struct rv__buf with;
    rv__buf_init(&with, RV__PLAN_MAX_BYTES);
    rv__buf_text(&with, "{\"name\":");
    rv__buf_json_str(&with, rv__str(signal != NULL ? signal : ""));
    if (timeout_ms != 0)
        rv__buf_fmt(&with, ",\"timeout\":%lld", (long long)timeout_ms);
    if (default_json != NULL)
        rv__buf_fmt(&with, ",\"default\":%s", default_json);
    rv__buf_char(&with, '}');
    if (rv__buf_err(&with, NULL) < 0)
        w->rc = RV_ENOMEM;
    else
        rv__draft_step(in->draft, STEP_SIGNAL, NULL, with.text,
                       &(struct rv__draft_opts){ .alias = alias });
    rv__buf_done(&with);
}

void rv_add_workflow(rv_body *in, const char *alias, const char *name)
{
    rv__draft_workflow(in->draft, name, (struct rv__expr){ .kind = EXPR_NONE },
                       &(struct rv__draft_opts){ .alias = alias });
}

void rv_add_node(rv_body *in, const rv_node_def *node, size_t node_size)
{
    rv_workflow *w = in->workflow;
    struct rv__table table;
    rv_error why;
    if (node == NULL || node_size < offsetof(rv_node_def, rv_end)) {
        remember(w, RV_EINVAL,
                 node == NULL ? "rv_add: no node given"
                              : "rv_add: the program was compiled for another version of Rival: "
                                "compile it again");
        return;
    }
    int rc = rv__table_node(node, node_size, &table, &why);
    remember(w, rc, why.message);
    if (rc < 0)
        return;
    rc = rv__draft_add_json(in->draft, rv__buf_view(&table.plan), &why);
    remember(w, rc, why.message);
    struct owner owner = { in->draft, node->alias != NULL ? node->alias : node->name };
    for (const struct rv__named_fn *f = table.functions; f != NULL; f = f->next)
        add_function(w, owner, f->name.at, f->fn);
    rv__table_done(&table);
}

rv_branch_bodies rv_add_branch(rv_body *in, const char *alias, rv_step_fn condition,
                               const char *condition_name)
{
    rv_workflow *w = in->workflow;
    char room[NAME_ROOM];
    const char *name = name_or(room, condition_name, alias != NULL ? alias : "branch", "if");
    struct rv__draft_node *node = rv__draft_branch(in->draft, function_expr(name),
                                                   &(struct rv__draft_opts){ .alias = alias });
    add_function(w, (struct owner){ in->draft, alias }, name, condition);
    return (rv_branch_bodies){ new_body(w, rv__draft_body(node, 0, NULL, false)),
                               new_body(w, rv__draft_body(node, 1, NULL, false)) };
}

rv_body *rv_add_loop(rv_body *in, const char *alias, const rv_loop_opts *opts)
{
    static const rv_loop_opts defaults = { .size = sizeof defaults };
    rv_workflow *w = in->workflow;
    char room[NAME_ROOM];
    if (opts == NULL)
        opts = &defaults; /* neither while nor until: refused at compile */
    if (!sized(w, opts->size, "RV_LOOP_OPTS"))
        opts = &defaults;

    struct rv__expr while_ = { .kind = EXPR_NONE }, until = { .kind = EXPR_NONE };
    const char *base = alias != NULL ? alias : "loop";
    if (opts->while_ != NULL) {
        const char *name = name_or(room, opts->condition_name, base, "while");
        while_ = function_expr(name);
        add_function(w, (struct owner){ in->draft, alias }, name, opts->while_);
    }
    char until_room[NAME_ROOM];
    if (opts->until != NULL) {
        const char *name = name_or(until_room, opts->condition_name, base, "until");
        until = function_expr(name);
        add_function(w, (struct owner){ in->draft, alias }, name, opts->until);
    }
    struct rv__draft_node *node = rv__draft_loop(in->draft, while_, until, opts->max_iterations,
                                                 (enum rv__keep)opts->keep,
                                                 &(struct rv__draft_opts){ .alias = alias });
    return new_body(w, rv__draft_body(node, 0, NULL, false));
}

rv_body *rv_add_foreach(rv_body *in, const char *alias, rv_step_fn items,
                        const rv_foreach_opts *opts)
{
    static const rv_foreach_opts defaults = { .size = sizeof defaults };
    rv_workflow *w = in->workflow;
    char room[NAME_ROOM];
    if (opts == NULL || !sized(w, opts->size, "RV_FOREACH_OPTS"))
        opts = &defaults;

    const char *name = name_or(room, opts->items_name, alias != NULL ? alias : "forEach", "items");
    struct rv__expr label = { .kind = EXPR_NONE };
    if (opts->label != NULL)
        label = text_expr(w, opts->label);
    struct rv__draft_node *node = rv__draft_foreach(
        in->draft, function_expr(name), label, opts->parallel, opts->concurrency, opts->collect,
        &(struct rv__draft_opts){ .alias = alias });
    add_function(w, (struct owner){ in->draft, alias }, name, items);
    return new_body(w, rv__draft_body(node, 0, NULL, false));
}

rv_concurrent *rv_add_concurrent(rv_body *in, const char *alias, const rv_concurrent_opts *opts)
{
    static const rv_concurrent_opts defaults = { .size = sizeof defaults };
    rv_workflow *w = in->workflow;
    if (opts == NULL || !sized(w, opts->size, "RV_CONCURRENT_OPTS"))
        opts = &defaults;
    rv_concurrent *block = rv__arena_zalloc(&w->arena, 1, sizeof *block);
    if (block == NULL) {
        w->rc = RV_ENOMEM;
        block = &w->spare_block;
    }
    block->workflow = w;
    block->count = 0;
    block->node = rv__draft_concurrent(in->draft, opts->detached, opts->collect, opts->join,
                                       &(struct rv__draft_opts){ .alias = alias });
    return block;
}

void rv_concurrent_step(rv_concurrent *block, const char *alias, rv_step_fn fn,
                        const rv_step_opts *opts)
{
    (void)add_step(block->workflow, rv__draft_body(block->node, block->count++, NULL, true), alias,
                   fn, opts);
}

rv_body *rv_concurrent_body(rv_concurrent *block, const char *alias)
{
    return new_body(block->workflow, rv__draft_body(block->node, block->count++, alias, false));
}

/* Bindings cannot use the macros. */
#define INIT(type)                                   \
    void rv_##type##_init(rv_##type *opts)           \
    {                                                \
        *opts = (rv_##type){ .size = sizeof *opts }; \
    }
INIT(engine_opts)
INIT(step_opts)
INIT(loop_opts)
INIT(foreach_opts)
INIT(concurrent_opts)
INIT(run_opts)
INIT(wait_opts)
INIT(query)
