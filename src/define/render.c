/* render.c: shows a plan as a tree of text, and as a Mermaid flowchart.
 *
 * Recursive, no deeper than RV__PLAN_MAX_DEPTH. Texts of the author are cut to fit into a line; in Mermaid
 * they are escaped. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "define/define.h"

enum { SHOWN = 60 }; /* bytes of an expression or a parameter in one line */

/* JSON for people: a string without its quotes, the rest as it is; cut. */
static void show_json(struct rv__buf *out, struct rv__str json)
{
    struct rv__arena arena;
    struct rv__str text = json;
    rv__arena_init(&arena, SIZE_MAX); /* no more than the text */
    if (json.len > 0 && *json.at == '"' && rv__json_string(json, &arena, &text) < 0)
        text = json;
    size_t len = text.len <= SHOWN ? text.len : SHOWN;
    while (len > 0 && len < text.len && ((unsigned char)text.at[len] & 0xc0) == 0x80)
        len--;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f)
            rv__buf_char(out, ' ');
        else
            rv__buf_char(out, text.at[i]);
    if (len < text.len)
        rv__buf_text(out, "…");
    rv__arena_done(&arena);
}

static void show_expr(struct rv__buf *out, const struct rv__expr *expr)
{
    if (expr->kind == EXPR_FUNCTION)
        rv__buf_fmt(out, "%.*s()", RV__ARG(expr->text));
    else if (expr->kind == EXPR_JSON)
        show_json(out, expr->text);
}

/* Milliseconds as 1h30m or 250ms. */
static void show_ms(struct rv__buf *out, int64_t ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } };
    size_t before = out->len;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (ms >= units[i].ms)
            rv__buf_fmt(out, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
        ms %= units[i].ms;
    }
    if (out->len == before)
        rv__buf_text(out, "0ms");
}

/* What a step does, in a few words. */
static void show_work(struct rv__buf *out, const struct rv__node *node)
{
    struct rv__str with = node->step.with, part;
    switch (node->step.kind) {
    case STEP_FUNCTION:
    case STEP_CALL: rv__buf_fmt(out, "%.*s()", RV__ARG(node->step.name)); return;
    case STEP_DELAY:
        if (node->step.delay_ms >= 0) {
            show_ms(out, node->step.delay_ms);
            return;
        }
        break;
    case STEP_SIGNAL:
        if (!rv__str_none(node->step.signal)) {
            rv__buf_str(out, node->step.signal);
            return;
        }
        break;
    case STEP_HTTP:
        if (rv__json_get(with, "url", &part)) {
            struct rv__str method;
            if (rv__json_get(with, "method", &method)) {
                show_json(out, method);
                rv__buf_char(out, ' ');
            }
            show_json(out, part);
            return;
        }
        break;
    case STEP_COMMAND:
        if (rv__json_get(with, "argv", &part) && *part.at == '[') {
            struct rv__json_iter it;
            struct rv__str word;
            size_t begin = out->len;
            rv__json_iter_init(&it, part);
            while (out->len - begin < SHOWN && rv__json_next(&it, NULL, &word)) {
                if (out->len > begin)
                    rv__buf_char(out, ' ');
                show_json(out, word);
            }
            return;
        }
        break;
    case STEP_VALUE:
    case STEP_CHAT:
    case STEP_TOOL:
    case STEP_KINDS: break;
    }
    if (node->step.input.kind != EXPR_NONE) /* its parameters are made by a function */
        show_expr(out, &node->step.input);
    else if (!rv__str_none(with))
        show_json(out, with);
}

/* ------------------------------------------------------------------------------ the kinds --- */

static void show_step(struct rv__buf *out, const struct rv__node *node)
{
    rv__buf_fmt(out, "%s ", rv__step_kind_name(node->step.kind));
    show_work(out, node);
}

static void show_workflow(struct rv__buf *out, const struct rv__node *node)
{
    rv__buf_fmt(out, "workflow %.*s", RV__ARG(node->bodies[0].wrap->name));
}

static void show_branch(struct rv__buf *out, const struct rv__node *node)
{
    rv__buf_text(out, "if ");
    show_expr(out, &node->branch.condition);
}

static void show_loop(struct rv__buf *out, const struct rv__node *node)
{
    bool while_ = node->loop.while_.kind != EXPR_NONE;
    rv__buf_text(out, while_ ? "loop while " : "loop until ");
    show_expr(out, while_ ? &node->loop.while_ : &node->loop.until);
    if (node->loop.max_iterations != RV__DEFAULT_MAX_ITERATIONS)
        rv__buf_fmt(out, ", at most %" PRId64, node->loop.max_iterations);
    if (node->loop.keep != KEEP_ALL)
        rv__buf_fmt(out, ", keeps %s", node->loop.keep == KEEP_LAST ? "the last" : "none");
}

static void show_foreach(struct rv__buf *out, const struct rv__node *node)
{
    rv__buf_text(out, "forEach ");
    show_expr(out, &node->foreach.items);
    if (node->foreach.parallel)
        rv__buf_text(out, ", parallel");
    if (node->foreach.concurrency > 0)
        rv__buf_fmt(out, ", %" PRId64 " at once", node->foreach.concurrency);
    if (node->foreach.collect)
        rv__buf_text(out, ", collects failures");
}

static void show_concurrent(struct rv__buf *out, const struct rv__node *node)
{
    rv__buf_text(out, "concurrent");
    if (node->concurrent.detached)
        rv__buf_text(out, ", detached");
    if (node->concurrent.collect)
        rv__buf_text(out, ", collects failures");
    if (node->concurrent.join != RV__JOIN_ALL)
        rv__buf_fmt(out, ", until %" PRId64 " complete", node->concurrent.join);
}

static void show_stage(struct rv__buf *out, const struct rv__node *node)
{
    rv__buf_text(out, "stage");
    if (node->stage.concurrency > 0)
        rv__buf_fmt(out, ", %" PRId64 " at once", node->stage.concurrency);
}

static void show_rank(struct rv__buf *out, const struct rv__state *state)
{
    rv__buf_fmt(out, "priority %d", state->priority);
    if (state->critical)
        rv__buf_text(out, ", critical");
    if (state->final)
        rv__buf_text(out, ", final");
}

/* How a state is scheduled: "  [priority 80, critical, after parse, 2 retries]". */
static void show_state(struct rv__buf *out, const struct rv__body *body)
{
    const struct rv__node *stage = body->owner;
    const struct rv__state *state = &stage->stage.states[body->index];
    rv__buf_text(out, "  [");
    show_rank(out, state);
    for (uint32_t i = 0; i < state->depends_count; i++) {
        const struct rv__dependency *on = &state->depends[i];
        const struct rv__node *of = on->stage != NULL ? on->stage : stage;
        rv__buf_text(out, i == 0 ? ", after " : " and ");
        if (on->stage != NULL)
            rv__buf_fmt(out, "%.*s:", RV__ARG(of->alias));
        rv__buf_str(out, of->bodies[on->state].alias);
    }
    if (state->max_retry > 0)
        rv__buf_fmt(out, ", %d retr%s", state->max_retry, state->max_retry == 1 ? "y" : "ies");
    if (state->on_failure != RV__NO_STATE)
        rv__buf_fmt(out, " after %.*s", RV__ARG(stage->bodies[state->on_failure].alias));
    if (state->timeout_ms > 0) {
        rv__buf_text(out, ", at most ");
        show_ms(out, state->timeout_ms);
    }
    rv__buf_char(out, ']');
}

static void show_chat(struct rv__buf *out, const struct rv__node *node)
{
    struct rv__str with = node->bodies[0].nodes[0]->step.with, part;
    rv__buf_text(out, "chat");
    if (rv__json_get(with, "provider", &part)) {
        rv__buf_char(out, ' ');
        show_json(out, part);
    }
    if (rv__json_get(with, "prompt", &part)) {
        rv__buf_text(out, ": ");
        show_json(out, part);
    }
    if (node->chat.max_turns != RV__DEFAULT_MAX_TURNS)
        rv__buf_fmt(out, ", at most %" PRId64 " turns", node->chat.max_turns);
    if (node->chat.budget.tokens > 0)
        rv__buf_fmt(out, ", %" PRId64 " tokens", node->chat.budget.tokens);
    if (node->chat.budget.cost > 0) {
        rv__buf_text(out, ", cost ");
        rv__cost_write(node->chat.budget.cost, out);
    }
}

static void show_sequence(struct rv__buf *out, const struct rv__node *node)
{
    rv__buf_fmt(out, "%u node%s", (unsigned)node->bodies[0].count,
                node->bodies[0].count == 1 ? "" : "s");
}

/* How each kind of node is shown. Its bodies are drawn as rv__node_bodies() says. */
static const struct {
    void (*show)(struct rv__buf *out, const struct rv__node *node);
    const char *open, *close; /* its shape in a flowchart */
} kinds[NODE_KINDS] = {
    [NODE_STEP] = { show_step, "[", "]" },
    [NODE_WORKFLOW] = { show_workflow, "[[", "]]" },
    [NODE_BRANCH] = { show_branch, "{", "}" },
    [NODE_LOOP] = { show_loop, "{{", "}}" },
    [NODE_FOREACH] = { show_foreach, "{{", "}}" },
    [NODE_CONCURRENT] = { show_concurrent, "[/", "/]" },
    [NODE_STAGE] = { show_stage, "[/", "/]" },
    [NODE_CHAT] = { show_chat, "([", "])" },
    [NODE_SEQUENCE] = { show_sequence, "[[", "]]" },
};

/* Kind and what belongs to it: "http POST http://…", "forEach ${ … }, parallel, 4 at once". */
static void show_node(struct rv__buf *out, const struct rv__node *node)
{
    kinds[node->kind].show(out, node);
}

/* -------------------------------------------------------------------------------- text --- */

/* "  [retries on 75, dns]": a list that plan/ has checked, so its texts have no escapes. */
static void codes_text(struct rv__buf *out, const char *what, struct rv__str codes)
{
    struct rv__json_iter it;
    struct rv__str code;
    if (rv__str_none(codes))
        return;
    const char *before = " ";
    rv__buf_fmt(out, "  [%s", what);
    rv__json_iter_init(&it, codes);
    while (rv__json_next(&it, NULL, &code)) {
        rv__buf_text(out, before);
        show_json(out, code);
        before = ", ";
    }
    rv__buf_char(out, ']');
}

static void config_text(struct rv__buf *out, const struct rv__node *node)
{
    const struct rv__step_config *config = rv__node_config(node);
    if (node->when.kind != EXPR_NONE) {
        rv__buf_text(out, "  [when ");
        show_expr(out, &node->when);
        rv__buf_char(out, ']');
    }
    if (config == NULL)
        return;
    if (config->timeout_ms != rv__node_timeout_ms(node)) {
        rv__buf_text(out, "  [timeout ");
        show_ms(out, config->timeout_ms);
        rv__buf_text(out, config->on_timeout == ON_TIMEOUT_RETRY ? ", then retry]" : "]");
    }
    if (config->max_attempts > 1) {
        rv__buf_fmt(out, "  [%d attempts, %s backoff from ", config->max_attempts,
                    config->backoff == BACKOFF_LINEAR ? "linear" : "exponential");
        show_ms(out, config->backoff_base_ms);
        rv__buf_char(out, ']');
    }
    codes_text(out, "retries on", config->retry_on);
    codes_text(out, "no retry on", config->no_retry_on);
    if (config->continue_on_error)
        rv__buf_text(out, "  [goes on after an error]");
    if (config->hide_input)
        rv__buf_text(out, "  [input not recorded]");
}

struct margin { /* what stands before each line of a body */
    const struct margin *up;
    bool more; /* there are siblings below */
};

static void write_margin(struct rv__buf *out,
                         const struct margin *margin) /* NOLINT(misc-no-recursion) */
{
    if (margin == NULL)
        return;
    write_margin(out, margin->up);
    rv__buf_text(out, margin->more ? "│  " : "   ");
}

static void begin_line(struct rv__buf *out, const struct margin *margin, bool more)
{
    write_margin(out, margin);
    rv__buf_text(out, more ? "├─ " : "└─ ");
}

static void body_text(struct rv__buf *out, const struct rv__body *body, const struct margin *margin,
                      bool more);

static void handler_text(struct rv__buf *out, const struct rv__node *handler,
                         const struct margin *margin, bool more) /* NOLINT(misc-no-recursion) */
{
    if (handler == NULL)
        return;
    begin_line(out, margin, more);
    rv__buf_fmt(out, "%.*s", RV__ARG(handler->alias));
    if (handler->kind == NODE_SEQUENCE) {
        rv__buf_char(out, '\n');
        body_text(out, &handler->bodies[0], &(struct margin){ margin, more }, false);
        return;
    }
    rv__buf_text(out, ": ");
    show_node(out, handler);
    rv__buf_char(out, '\n');
}

/* A body that has a name of its own: a line for it, and its nodes below. */
static void named_text(struct rv__buf *out, const struct rv__body *body,
                       const struct margin *margin, bool more) /* NOLINT(misc-no-recursion) */
{
    struct margin below = { margin, more };
    begin_line(out, margin, more);
    rv__buf_fmt(out, "%.*s", RV__ARG(body->alias));
    if (body->bare) {
        rv__buf_text(out, ": ");
        show_node(out, body->nodes[0]);
        if (body->owner->kind == NODE_STAGE)
            show_state(out, body);
        else
            config_text(out, body->nodes[0]);
        rv__buf_char(out, '\n');
        handler_text(out, body->nodes[0]->on_error, &below, false);
        if (body->owner->kind == NODE_CONCURRENT && body->nodes[0]->kind == NODE_WORKFLOW)
            body_text(out, &body->nodes[0]->bodies[0], &below, false);
        return;
    }
    if (body->wrap != NULL)
        rv__buf_fmt(out, ": workflow %.*s", RV__ARG(body->wrap->name));
    rv__buf_char(out, '\n');
    body_text(out, body, &below, false);
}

static void node_text(struct rv__buf *out, const struct rv__node *node, const struct margin *margin,
                      bool more) /* NOLINT(misc-no-recursion) */
{
    struct margin below = { margin, more };
    begin_line(out, margin, more);
    rv__buf_fmt(out, "%.*s: ", RV__ARG(node->alias));
    show_node(out, node);
    config_text(out, node);
    rv__buf_char(out, '\n');
    handler_text(out, node->on_error, &below, false);   /* a step has no bodies below it */
    bool turns = rv__node_bodies(node) == BODIES_TURNS; /* of a chat, its tools are shown */
    bool named = rv__node_bodies(node) == BODIES_NAMED || rv__node_bodies(node) == BODIES_RETRIED ||
                 turns;
    uint32_t last = node->body_count;
    while (last > 0 && node->bodies[last - 1].count == 0) /* an else without nodes */
        last--;
    for (uint32_t i = turns ? 1 : 0; i < last; i++) {
        if (named)
            named_text(out, &node->bodies[i], &below, i + 1 < last);
        else
            body_text(out, &node->bodies[i], &below, false);
    }
}

static void body_text(struct rv__buf *out, const struct rv__body *body, const struct margin *margin,
                      bool more) /* NOLINT(misc-no-recursion) */
{
    const struct rv__node *handler = body->wrap != NULL ? body->wrap->on_error : NULL;
    const struct rv__node *finally = body->wrap != NULL ? body->wrap->finally : NULL;
    bool below = finally != NULL || more;
    for (uint32_t i = 0; i < body->count; i++)
        node_text(out, body->nodes[i], margin, i + 1 < body->count || handler != NULL || below);
    handler_text(out, handler, margin, below);
    handler_text(out, finally, margin, more);
}

void rv__plan_render_text(const struct rv__plan *plan, struct rv__buf *out)
{
    rv__buf_fmt(out, "%.*s  (version %.12s)\n", RV__ARG(plan->body.wrap->name), plan->version);
    if (!rv__str_none(plan->description)) {
        show_json(out, plan->description);
        rv__buf_char(out, '\n');
    }
    body_text(out, &plan->body, NULL, false);
}

/* ----------------------------------------------------------------------------- mermaid --- */

/* A label in quotes. Mermaid reads #…; as an entity, and HTML in labels. */
static void mermaid_label(struct rv__buf *out, struct rv__str text)
{
    for (size_t i = 0; i < text.len; i++) {
        switch (text.at[i]) {
        case '"': rv__buf_text(out, "#quot;"); break;
        case '#': rv__buf_text(out, "#35;"); break;
        case '<': rv__buf_text(out, "#lt;"); break;
        case '>': rv__buf_text(out, "#gt;"); break;
        case '&': rv__buf_text(out, "#amp;"); break;
        case '`': rv__buf_text(out, "#96;"); break;
        case '\\': rv__buf_text(out, "#92;"); break;
        default: rv__buf_char(out, text.at[i]);
        }
    }
}

struct chart {
    struct rv__buf *out;
    uint32_t ends; /* points without a node, such as the end of a branch */
    unsigned depth;
};

static void chart_line(struct chart *c)
{
    for (unsigned i = 0; i <= c->depth; i++)
        rv__buf_text(c->out, "  ");
}

/* n12["alias<br/>kind"], in the shape of its kind. */
static void chart_node(struct chart *c, const struct rv__node *node)
{
    struct rv__buf text;
    rv__buf_init(&text, 4096);
    show_node(&text, node);
    chart_line(c);
    rv__buf_fmt(c->out, "n%" PRIu32 "%s\"", node->id, kinds[node->kind].open);
    mermaid_label(c->out, node->alias);
    rv__buf_text(c->out, "<br/>");
    if (rv__node_state(node) != NULL) {
        show_rank(c->out, rv__node_state(node)); /* written by us: needs no escapes */
        rv__buf_text(c->out, "<br/>");
    }
    mermaid_label(c->out, rv__buf_view(&text));
    rv__buf_fmt(c->out, "\"%s\n", kinds[node->kind].close);
    if (text.rc == RV_ENOMEM)
        c->out->rc = RV_ENOMEM;
    rv__buf_done(&text);
}

/* Where the flow leaves a part of the chart: a node, or a point made for it. */
struct out_point {
    char name[16];
};

static struct out_point point(char letter, uint32_t id)
{
    struct out_point p;
    (void)snprintf(p.name, sizeof p.name, "%c%" PRIu32, letter, id);
    return p;
}

static void chart_edge(struct chart *c, struct out_point from, const char *label,
                       struct rv__str alias, struct out_point to)
{
    chart_line(c);
    rv__buf_fmt(c->out, "%s -->", from.name);
    if (label != NULL || alias.len > 0) {
        rv__buf_text(c->out, "|\"");
        mermaid_label(c->out, label != NULL ? rv__str(label) : alias);
        rv__buf_text(c->out, "\"|");
    }
    rv__buf_fmt(c->out, " %s\n", to.name);
}

static struct out_point chart_body(struct chart *c, const struct rv__body *body,
                                   struct out_point from, const char *label, struct rv__str alias);

static struct out_point chart_inside(struct chart *c, const struct rv__node *node,
                                     struct out_point self);

static struct out_point state_point(const struct rv__node *stage, uint32_t state)
{
    return point('n', stage->bodies[state].nodes[0]->id);
}

static void chart_dotted(struct chart *c, struct out_point from, struct rv__str label,
                         struct out_point to)
{
    chart_line(c);
    rv__buf_fmt(c->out, "%s -.->|\"", from.name);
    mermaid_label(c->out, label);
    rv__buf_fmt(c->out, "\"| %s\n", to.name);
}

/* The states of a stage: edges lead from the stage to states without dependencies, along the dependencies
 * (labelled with the parameter), and from states that nothing depends on to the end. Dotted edges: results of
 * an earlier stage, and the state that runs before a retry. */
static struct out_point chart_states(struct chart *c, const struct rv__node *stage,
                                     struct out_point self) /* NOLINT(misc-no-recursion) */
{
    const struct rv__str none = { NULL, 0 };
    struct out_point end = point('e', c->ends++);
    for (uint32_t i = 0; i < stage->body_count; i++)
        chart_node(c, stage->bodies[i].nodes[0]);
    chart_line(c);
    rv__buf_fmt(c->out, "%s(( ))\n", end.name);
    for (uint32_t i = 0; i < stage->body_count; i++) {
        const struct rv__state *state = &stage->stage.states[i];
        struct out_point at = state_point(stage, i);
        if (state->waits_for == 0)
            chart_edge(c, self, NULL, none, at);
        for (uint32_t d = 0; d < state->depends_count; d++) {
            const struct rv__dependency *on = &state->depends[d];
            if (on->stage == NULL)
                chart_edge(c, state_point(stage, on->state), NULL, on->param, at);
            else
                chart_dotted(c, state_point(on->stage, on->state), on->param, at);
        }
        if (state->on_failure != RV__NO_STATE)
            chart_dotted(c, at, rv__str("on failure"), state_point(stage, state->on_failure));
        struct out_point last = chart_inside(c, stage->bodies[i].nodes[0], at);
        if (state->dependents_count == 0)
            chart_edge(c, last, NULL, none, end);
    }
    return end;
}

static struct out_point chart_inside(struct chart *c, const struct rv__node *node,
                                     struct out_point self) /* NOLINT(misc-no-recursion) */
{
    const struct rv__str none = { NULL, 0 };
    struct out_point end;
    switch (rv__node_bodies(node)) {
    case BODIES_ITSELF: return chart_body(c, &node->bodies[0], self, NULL, none);
    case BODIES_ITERATED: /* back to the node after each iteration; the flow leaves it from there */
        end = chart_body(c, &node->bodies[0], self, "each", none);
        chart_line(c);
        rv__buf_fmt(c->out, "%s -.-> %s\n", end.name, self.name);
        return self;
    case BODIES_RETRIED: return chart_states(c, node, self);
    case BODIES_NAMED:
        end = point('e', c->ends++);
        chart_line(c);
        rv__buf_fmt(c->out, "%s(( ))\n", end.name);
        for (uint32_t i = 0; i < node->body_count; i++) {
            struct out_point last = chart_body(c, &node->bodies[i], self, NULL,
                                               node->bodies[i].alias);
            if (node->bodies[i].count == 0)
                chart_edge(c, last, NULL, node->bodies[i].alias, end);
            else
                chart_edge(c, last, NULL, none, end);
        }
        return end;
    case BODIES_TURNS: /* back to itself after each call of a tool */
        for (uint32_t i = 1; i < node->body_count; i++) {
            end = chart_body(c, &node->bodies[i], self, NULL, node->bodies[i].alias);
            chart_line(c);
            rv__buf_fmt(c->out, "%s -.-> %s\n", end.name, self.name);
        }
        return self;
    case BODIES_NONE: break;
    }
    return self;
}

static struct out_point chart_body(struct chart *c, const struct rv__body *body,
                                   struct out_point from, const char *label,
                                   struct rv__str alias) /* NOLINT(misc-no-recursion) */
{
    bool box = body->owner != NULL && !body->bare && body->count > 0;
    if (box) {
        chart_line(c);
        rv__buf_fmt(c->out, "subgraph s%" PRIu32 "_%" PRIu32 "[\"", body->owner->id, body->index);
        mermaid_label(c->out, body->wrap != NULL ? body->wrap->name : body->owner->alias);
        if (body->wrap == NULL && body->alias.len > 0) {
            rv__buf_text(c->out, ": ");
            mermaid_label(c->out, body->alias);
        }
        rv__buf_text(c->out, "\"]\n");
        c->depth++;
    }
    for (uint32_t i = 0; i < body->count; i++)
        chart_node(c, body->nodes[i]);
    if (box) {
        c->depth--;
        chart_line(c);
        rv__buf_text(c->out, "end\n");
    }
    for (uint32_t i = 0; i < body->count; i++) {
        struct out_point self = point('n', body->nodes[i]->id);
        chart_edge(c, from, i == 0 ? label : NULL, i == 0 ? alias : (struct rv__str){ NULL, 0 },
                   self);
        from = chart_inside(c, body->nodes[i], self);
    }
    return from;
}

void rv__plan_render_mermaid(const struct rv__plan *plan, struct rv__buf *out)
{
    struct chart c = { out, 0, 0 };
    struct out_point begin = { "begin" }, end = { "finish" };
    rv__buf_text(out, "flowchart TD\n  begin([\"");
    mermaid_label(out, plan->body.wrap->name);
    rv__buf_text(out, "\"])\n");
    struct out_point last = chart_body(&c, &plan->body, begin, NULL, (struct rv__str){ NULL, 0 });
    rv__buf_text(out, "  finish([\"end\"])\n");
    chart_edge(&c, last, NULL, (struct rv__str){ NULL, 0 }, end);
}
