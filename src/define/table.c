/* table.c: turns the table of a C workflow file into the JSON of its plan.
 *
 * It does not call the builder, because the table is usually read in another process: a host loads the file
 * and sends its content (the frame `register`), so a file that crashes when loaded cannot hurt the engine. In
 * process the same JSON is read directly: one way for both, and plan/ has the rules. */
#include "define/table.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "define/params.h"

struct reader {
    struct rv__table *table;
    struct rv__buf *out;
    size_t node_size; /* of the file's rv_node_def */
    uint32_t count;
    int rc;
    rv_error *err;
};

static void refuse(struct reader *r, int code, const char *fmt, ...) RV_PRINTF(3, 4);
static void refuse(struct reader *r, int code, const char *fmt, ...)
{
    char text[256];
    va_list args;
    if (r->rc != RV_OK)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    r->rc = rv__fail(r->err, code, "%s", text);
}

/* ------------------------------------------------------------------------------ functions --- */

/* Note that `fn` is called base, or base.suffix. */
static struct rv__str add_function(struct reader *r, const char *base, const char *suffix,
                                   rv_step_fn fn)
{
    char name[2 * RV__PLAN_MAX_NAME]; /* a longer one is refused at compile */
    snprintf(name, sizeof name, suffix != NULL ? "%s.%s" : "%s%s", base,
             suffix != NULL ? suffix : "");
    for (struct rv__named_fn *f = r->table->functions; f != NULL; f = f->next) {
        if (!rv__str_is(f->name, name))
            continue;
        if (f->fn != fn)
            refuse(r, RV_EINVAL,
                   "two functions would have the name '%.80s': give one node an .alias", name);
        return f->name;
    }
    struct rv__named_fn *named = rv__arena_zalloc(&r->table->arena, 1, sizeof *named);
    if (named == NULL || rv__str_copy(&r->table->arena, rv__str(name), &named->name) < 0) {
        refuse(r, RV_ENOMEM, "out of memory");
        return (struct rv__str){ "", 0 };
    }
    if (fn == NULL)
        refuse(r, RV_EINVAL, "the function '%.80s' is NULL", name);
    named->fn = fn;
    named->next = r->table->functions;
    r->table->functions = named;
    r->table->function_count++;
    return named->name;
}

/* -------------------------------------------------------------------------------- writing --- */

static void put_text(struct reader *r, const char *key, const char *text)
{
    if (text == NULL)
        return;
    rv__buf_fmt(r->out, ",\"%s\":", key);
    rv__buf_json_str(r->out, rv__str(text));
}

static void put_int(struct reader *r, const char *key, int64_t n)
{
    if (n != 0)
        rv__buf_fmt(r->out, ",\"%s\":%lld", key, (long long)n);
}

static void put_flag(struct reader *r, const char *key, bool flag, const char *json)
{
    if (flag)
        rv__buf_fmt(r->out, ",\"%s\":%s", key, json);
}

static void put_fn(struct reader *r, const char *key, struct rv__str name)
{
    rv__buf_fmt(r->out, ",\"%s\":{\"fn\":", key);
    rv__buf_json_str(r->out, name);
    rv__buf_char(r->out, '}');
}

/* A value that the file gives as JSON or as plain text. */
static void put_value(struct reader *r, const char *key, const char *text)
{
    rv_error why;
    if (text == NULL)
        return;
    rv__buf_fmt(r->out, ",\"%s\":", key);
    if (rv__text_value(rv__str(text), r->out, &why) < 0)
        refuse(r, RV_EINVAL, ".%s is not JSON: %.150s", key, why.message);
}

/* JSON that the file gives as text. */
static void put_json(struct reader *r, const char *key, const char *json)
{
    struct rv__str value;
    rv_error why;
    if (json == NULL)
        return;
    if (rv__json_check(rv__str(json), RV__JSON_VALUE_DEPTH, &value, &why) < 0) {
        refuse(r, RV_EINVAL, ".%s is not JSON: %.150s", key, why.message);
        return;
    }
    rv__buf_fmt(r->out, ",\"%s\":", key);
    rv__buf_str(r->out, value);
}

static void put_nodes(struct reader *r, const char *key, const rv_node_def *const *nodes,
                      unsigned depth);

/* A function, or a list of nodes. */
static void put_handler(struct reader *r, const char *base, rv_step_fn fn,
                        const rv_node_def *const *steps, unsigned depth)
{
    if (fn != NULL && steps != NULL)
        refuse(r, RV_EINVAL, "%.80s has .on_error and .on_error_steps: it can have one of them",
               base != NULL ? base : "the workflow");
    if (steps != NULL)
        put_nodes(r, "onError", steps, depth);
    if (fn == NULL)
        return;
    struct rv__str name = base != NULL ? add_function(r, base, "onError", fn)
                                       : add_function(r, "onError", NULL, fn);
    rv__buf_text(r->out, ",\"onError\":{\"name\":");
    rv__buf_json_str(r->out, name);
    rv__buf_char(r->out, '}');
}

static const char *pick(struct reader *r, const char *what, int at, const char *const *names,
                        int count)
{
    if (at >= 0 && at < count)
        return names[at];
    refuse(r, RV_EINVAL, "%s cannot be %d", what, at);
    return NULL;
}

static void put_names(struct reader *r, const char *key, const char *const *names)
{
    if (names == NULL)
        return;
    rv__buf_fmt(r->out, ",\"%s\":[", key);
    for (size_t i = 0; names[i] != NULL; i++) {
        if (i > 0)
            rv__buf_char(r->out, ',');
        rv__buf_json_str(r->out, rv__str(names[i]));
    }
    rv__buf_char(r->out, ']');
}

static void put_step(struct reader *r, const rv_node_def *n, const char *base, unsigned depth)
{
    static const char *const on_timeout[] = { NULL, "retry" };
    static const char *const backoff[] = { NULL, NULL, "exponential" };
    put_int(r, "timeout", n->timeout_ms);
    put_text(r, "onTimeout", pick(r, ".on_timeout", n->on_timeout, on_timeout, 2));
    put_int(r, "maxAttempts", n->max_attempts);
    put_text(r, "backoff", pick(r, ".backoff", n->backoff, backoff, 3));
    put_int(r, "backoffBaseMs", n->backoff_base_ms);
    put_int(r, "maxBackoffMs", n->max_backoff_ms);
    if (n->jitter != 0) {
        rv__buf_text(r->out, ",\"jitter\":");
        rv__buf_json_double(r->out, n->jitter);
    }
    put_json(r, "retryOn", n->retry_on);
    put_json(r, "noRetryOn", n->no_retry_on);
    put_flag(r, "continueOnError", n->continue_on_error, "true");
    put_flag(r, "recordInput", n->hide_input, "false");
    put_names(r, "needs", n->needs);
    put_handler(r, base, n->on_error, n->on_error_steps, depth);
}

/* http, command, tool, delay: by the rules of the YAML form. */
static void put_with(struct reader *r, const rv_node_def *n, const char *base)
{
    rv_error why = { .code = 0 };
    enum rv__form_kind kind = n->kind == RV_NODE_HTTP      ? FORM_HTTP
                              : n->kind == RV_NODE_COMMAND ? FORM_COMMAND
                              : n->kind == RV_NODE_TOOL    ? FORM_TOOL
                                                           : FORM_DELAY;
    if (n->with == NULL)
        refuse(r, RV_EINVAL, "the node '%.80s' does not say what to do", base);
    else if (rv__params_of_text(kind, rv__str(n->with), r->out, &why) < 0)
        refuse(r, why.code == RV_ENOMEM ? RV_ENOMEM : RV_EINVAL, "the node '%.80s': %.170s", base,
               why.message);
}

/* What kind of step it is, and what it does. */
static void put_work(struct reader *r, const rv_node_def *n, const char *base)
{
    static const char *const kinds[] = {
        [RV_NODE_HTTP] = "http", [RV_NODE_COMMAND] = "command", [RV_NODE_VALUE] = "value",
        [RV_NODE_CALL] = "call", [RV_NODE_DELAY] = "delay",     [RV_NODE_TOOL] = "tool",
    };
    if (n->kind != RV_NODE_STEP)
        rv__buf_fmt(r->out, ",\"kind\":\"%s\"", kinds[n->kind]);
    if (n->kind == RV_NODE_STEP) {
        rv__buf_text(r->out, ",\"name\":");
        rv__buf_json_str(r->out, add_function(r, n->name, NULL, n->fn));
    } else if (n->kind == RV_NODE_CALL) {
        put_text(r, "name", n->name != NULL ? n->name : "");
    } else if (n->kind == RV_NODE_VALUE) {
        put_value(r, "with", n->with != NULL ? n->with : "null");
    } else if (n->kind == RV_NODE_DELAY && n->with == NULL) {
        rv__buf_fmt(r->out, ",\"with\":%lld", (long long)n->delay_ms);
    } else {
        put_with(r, n, base);
    }
}

/* A JSON object, and not a name? */
static bool is_object(const char *text)
{
    return text != NULL && text[strspn(text, " \t\r\n")] == '{';
}

static void put_signal(struct reader *r, const rv_node_def *n)
{
    if (is_object(n->name)) {
        rv_error why = { .code = 0 };
        rv__buf_text(r->out, ",\"kind\":\"signal\"");
        if (n->timeout_ms != 0 || n->default_json != NULL)
            refuse(r, RV_EINVAL, "a signal in JSON takes its timeout and default in the JSON");
        else if (rv__params_of_text(FORM_SIGNAL, rv__str(n->name), r->out, &why) < 0)
            refuse(r, why.code == RV_ENOMEM ? RV_ENOMEM : RV_EINVAL, "a signal: %.200s",
                   why.message);
        return;
    }
    rv__buf_text(r->out, ",\"kind\":\"signal\",\"with\":{\"name\":");
    rv__buf_json_str(r->out, rv__str(n->name != NULL ? n->name : ""));
    put_int(r, "timeout", n->timeout_ms);
    put_json(r, "default", n->default_json);
    rv__buf_char(r->out, '}');
}

/* The condition, or the items. */
static void put_condition(struct reader *r, const char *key, const rv_node_def *n)
{
    if (n->expr == NULL)
        put_fn(r, key, add_function(r, n->name, NULL, n->fn));
    else if (n->kind == RV_NODE_FOREACH)
        put_value(r, key, n->expr);
    else
        put_text(r, key, n->expr);
}

static void put_loop(struct reader *r, const rv_node_def *n, unsigned depth)
{
    static const char *const keep[] = { NULL, "last", "none" };
    put_condition(r, n->kind == RV_NODE_WHILE ? "while" : "until", n);
    put_int(r, "maxIterations", n->max_iterations);
    put_text(r, "keep", pick(r, ".keep", n->keep, keep, 3));
    put_nodes(r, "body", n->body, depth);
}

static void put_kind(struct reader *r, const rv_node_def *n, unsigned depth)
{
    const char *base = n->alias != NULL                         ? n->alias
                       : n->name != NULL && !is_object(n->name) ? n->name
                                                                : "node";
    static const char *const types[] = { "",         "step",       "step", "step",
                                         "workflow", "branch",     "loop", "loop",
                                         "forEach",  "concurrent", "",     "step",
                                         "step",     "step",       "step", "step" };
    if (n->kind == RV_NODE_NODES) {
        rv__buf_fmt(r->out, "{\"alias\":");
        rv__buf_json_str(r->out, rv__str(base));
        put_nodes(r, "nodes", n->body, depth);
        return;
    }
    if (n->kind < RV_NODE_STEP || n->kind > RV_NODE_TOOL || (n->fn != NULL && !n->name)) {
        refuse(r, RV_EINVAL,
               "a node of unknown kind %d: make nodes with RV_STEP and the other macros", n->kind);
        return;
    }
    rv__buf_fmt(r->out, "{\"type\":\"%s\"", types[n->kind]);
    put_text(r, "alias", n->alias);
    if (n->when != NULL)
        put_fn(r, "when", add_function(r, base, "when", n->when));
    else
        put_text(r, "when", n->when_expr);
    put_text(r, "description", n->description);
    switch ((enum rv_node_kind)n->kind) {
    case RV_NODE_STEP:
    case RV_NODE_HTTP:
    case RV_NODE_COMMAND:
    case RV_NODE_VALUE:
    case RV_NODE_CALL:
    case RV_NODE_TOOL:
        put_work(r, n, base);
        put_step(r, n, base, depth);
        break;
    case RV_NODE_DELAY: put_work(r, n, base); break;
    case RV_NODE_SIGNAL: put_signal(r, n); break;
    case RV_NODE_WORKFLOW:
        put_text(r, "name", n->name);
        put_value(r, "input", n->input);
        break;
    case RV_NODE_BRANCH:
        put_condition(r, "if", n);
        put_nodes(r, "then", n->then, depth);
        if (n->otherwise != NULL)
            put_nodes(r, "else", n->otherwise, depth);
        break;
    case RV_NODE_WHILE:
    case RV_NODE_UNTIL: put_loop(r, n, depth); break;
    case RV_NODE_FOREACH:
        put_condition(r, "items", n);
        put_text(r, "label", n->label);
        put_flag(r, "parallel", n->parallel, "true");
        put_int(r, "concurrency", n->concurrency);
        put_flag(r, "onFailure", n->collect, "\"collect\"");
        put_nodes(r, "run", n->body, depth);
        break;
    case RV_NODE_CONCURRENT:
        put_flag(r, "continueOn", n->detached, "\"detached\"");
        put_flag(r, "onFailure", n->collect, "\"collect\"");
        put_int(r, "join", n->join);
        put_nodes(r, "steps", n->body, depth);
        break;
    case RV_NODE_NODES: break;
    }
}

/* Refuse fields that have no meaning for the kind. */
static void check_fields(struct reader *r, const rv_node_def *n)
{
    bool step = n->kind == RV_NODE_STEP || n->kind >= RV_NODE_HTTP,
         loop = n->kind == RV_NODE_WHILE || n->kind == RV_NODE_UNTIL;
    bool foreach = n->kind == RV_NODE_FOREACH, block = n->kind == RV_NODE_CONCURRENT;
    const char *misplaced = NULL;
    if (!step && (n->on_timeout || n->max_attempts || n->backoff || n->backoff_base_ms ||
                  n->max_backoff_ms || n->jitter != 0 || n->on_error || n->needs || n->retry_on ||
                  n->no_retry_on || n->continue_on_error || n->hide_input || n->on_error_steps))
        misplaced = "a field that only steps have";
    else if (!step && n->kind != RV_NODE_SIGNAL && n->timeout_ms)
        misplaced = ".timeout_ms";
    else if (n->kind != RV_NODE_SIGNAL && n->default_json)
        misplaced = ".default_json";
    else if (n->kind != RV_NODE_WORKFLOW && n->input)
        misplaced = ".input";
    else if (n->kind != RV_NODE_BRANCH && (n->then || n->otherwise))
        misplaced = ".then or .otherwise";
    else if (!loop && !foreach && !block && n->kind != RV_NODE_NODES && n->body)
        misplaced = ".body";
    else if (!loop && (n->max_iterations || n->keep))
        misplaced = ".max_iterations or .keep";
    else if (!foreach && (n->parallel || n->concurrency || n->label))
        misplaced = ".parallel, .concurrency or .label";
    else if (!block && !foreach && n->collect)
        misplaced = ".collect";
    else if (!block && (n->detached || n->join))
        misplaced = ".detached or .join";
    else if (n->kind == RV_NODE_NODES && (n->when || n->when_expr || n->description))
        misplaced = ".when, .when_expr or .description";
    else if (n->when && n->when_expr)
        misplaced = ".when besides .when_expr";
    else if (n->with && n->kind != RV_NODE_DELAY &&
             (n->kind < RV_NODE_HTTP || n->kind == RV_NODE_CALL))
        misplaced = ".with";
    if (misplaced != NULL)
        refuse(r, RV_EINVAL, "the node '%.80s' has %s, which does not apply to it",
               n->alias  ? n->alias
               : n->name ? n->name
                         : "?",
               misplaced);
}

static void put_node(struct reader *r, const rv_node_def *from, unsigned depth)
{
    rv_node_def node = { .kind = 0 }; /* a file that was compiled earlier has fewer fields */
    memcpy(&node, from, r->node_size < sizeof node ? r->node_size : sizeof node);
    check_fields(r, &node);
    if (r->rc == RV_OK)
        put_kind(r, &node, depth + 1);
    rv__buf_char(r->out, '}');
}

static void put_nodes(struct reader *r, const char *key, const rv_node_def *const *nodes,
                      unsigned depth)
{
    rv__buf_fmt(r->out, ",\"%s\":[", key);
    if (depth > RV__PLAN_MAX_DEPTH)
        refuse(r, RV_ETOOBIG, "nodes are nested more than %d deep", RV__PLAN_MAX_DEPTH);
    for (size_t i = 0; nodes != NULL && nodes[i] != NULL && r->rc == RV_OK; i++) {
        if (++r->count > RV__PLAN_MAX_NODES)
            refuse(r, RV_ETOOBIG, "there are more than %d nodes", RV__PLAN_MAX_NODES);
        if (i > 0)
            rv__buf_char(r->out, ',');
        put_node(r, nodes[i], depth);
    }
    rv__buf_char(r->out, ']');
}

int rv__table_node(const rv_node_def *node, size_t node_size, struct rv__table *ret, rv_error *err)
{
    *ret = (struct rv__table){ .functions = NULL };
    rv__arena_init(&ret->arena, RV__PLAN_MAX_BYTES);
    rv__buf_init(&ret->plan, RV__PLAN_MAX_BYTES);
    struct reader r = { .table = ret, .out = &ret->plan, .node_size = node_size, .err = err };
    put_node(&r, node, 1);
    if (r.rc == RV_OK)
        r.rc = rv__buf_err(r.out, err);
    if (r.rc < 0)
        rv__table_done(ret);
    return r.rc;
}

/* It was compiled for another version of these structs. */
static int check_abi(unsigned abi, bool fits, rv_error *err)
{
    if (abi == RV_FILE_ABI && fits)
        return RV_OK;
    return rv__fail(
        err, RV_EINVAL,
        "it was compiled for another version of Rival (%u, this is %d): compile it again", abi,
        RV_FILE_ABI);
}

static void put_workflow(struct reader *r, const rv_workflow_def *from)
{
    rv_workflow_def def = { .abi = 0 };
    memcpy(&def, from, from->size < sizeof def ? from->size : sizeof def);
    r->node_size = def.node_size;
    rv__buf_text(r->out, "{\"name\":");
    rv__buf_json_str(r->out, rv__str(def.name != NULL ? def.name : ""));
    put_text(r, "description", def.description);
    put_json(r, "input", def.input);
    put_names(r, "needs", def.needs);
    put_names(r, "secrets", def.secrets);
    put_nodes(r, "steps", def.steps, 1);
    put_handler(r, NULL, def.on_error, def.on_error_steps, 1);
    if (def.finally != NULL)
        put_nodes(r, "finally", def.finally, 1);
    rv__buf_char(r->out, '}');
}

/* The names come from the preprocessor as one text: "find, chop". */
static void take_functions(struct reader *r, const rv_functions_def *def)
{
    static const char in_name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const char *at = def->names;
    for (size_t i = 0; def->functions[i] != NULL && r->rc == RV_OK; i++) {
        char name[RV__PLAN_MAX_NAME + 1];
        at += strspn(at, " \t\n");
        size_t len = strspn(at, in_name);
        const char *behind = at + len + strspn(at + len, " \t\n");
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        if (len == 0 || len >= sizeof name || (*behind != ',' && *behind != '\0'))
            refuse(r, RV_EINVAL, "RV_FUNCTIONS takes names of functions; '%.80s' is not one", at);
        else
            (void)add_function(r, name, NULL, def->functions[i]);
        at = *behind == ',' ? behind + 1 : behind;
    }
}

static int table_read(const rv_workflow_def *workflow, const rv_functions_def *functions,
                      struct rv__table *ret, rv_error *err)
{
    *ret = (struct rv__table){ .functions = NULL };
    rv__arena_init(&ret->arena, RV__PLAN_MAX_BYTES);
    rv__buf_init(&ret->plan, RV__PLAN_MAX_BYTES);
    struct reader r = { .table = ret, .out = &ret->plan, .err = err };
    if (workflow != NULL)
        r.rc = check_abi(workflow->abi,
                         workflow->size >= offsetof(rv_workflow_def, on_error) &&
                             workflow->node_size >= offsetof(rv_node_def, rv_end),
                         err);
    if (r.rc == RV_OK && functions != NULL)
        r.rc = check_abi(functions->abi, functions->size >= sizeof(rv_functions_def), err);
    if (r.rc == RV_OK && workflow != NULL)
        put_workflow(&r, workflow);
    if (r.rc == RV_OK && functions != NULL)
        take_functions(&r, functions);
    if (r.rc == RV_OK)
        r.rc = rv__buf_err(r.out, err);
    if (r.rc < 0)
        rv__table_done(ret);
    return r.rc;
}

int rv__table_read(const rv_workflow_def *def, struct rv__table *ret, rv_error *err)
{
    return table_read(def, NULL, ret, err);
}

int rv__table_load(void *handle, struct rv__table *ret, rv_error *err)
{
    const rv_workflow_def *workflow = dlsym(handle, "rv_file_table");
    const rv_functions_def *functions = dlsym(handle, "rv_file_functions");
    if (workflow == NULL && functions == NULL)
        return rv__fail(err, RV_EINVAL,
                        "it has no workflow: declare one with RV_WORKFLOW, or functions for others "
                        "with RV_FUNCTIONS");
    return table_read(workflow, functions, ret, err);
}

void rv__table_done(struct rv__table *table)
{
    rv__buf_done(&table->plan);
    rv__arena_done(&table->arena);
}

rv_step_fn rv__table_find(const struct rv__table *table, struct rv__str name)
{
    const char *slash = memrchr(name.at, '/', name.len); /* "file/function": this is the file */
    if (slash != NULL)
        name = (struct rv__str){ slash + 1, name.len - (size_t)(slash + 1 - name.at) };
    for (const struct rv__named_fn *f = table->functions; f != NULL; f = f->next)
        if (rv__str_eq(f->name, name))
            return f->fn;
    return NULL;
}
