/* shell_work.c: the one function behind every name: it does what the oracle says of this attempt. On
 * the thread of a step, while everybody else waits. */
#include "shell.h"

#include <stdlib.h>

enum { ENOUGH = 1500 }; /* pieces of work: a long run that dies all the time teaches nothing more */

struct shell *shell_now;

static int evaluate(struct shell *s, rv_ctx *ctx, struct spot spot, const struct rv__node *node,
                    const struct rec_inst *inst)
{
    struct rv__buf text;
    int64_t test = 0;
    if (ctx->eval == EVAL_WHILE || ctx->eval == EVAL_UNTIL)
        test = inst->eval_counts[ctx->eval];
    rv__buf_init(&text, SIZE_MAX);
    rv_test_takes(ctx, oracle_eval_ms(&s->world.oracle, spot, ctx->eval, test));
    bool good = oracle_eval(&s->world.oracle, spot, node, ctx->eval, test, &text);
    int rc = 0;
    if (good) {
        rc = rv_return_json(ctx, text.text);
    } else {
        char message[64] = "";
        (void)sscanf(text.text, "{\"message\":\"%63[^\"]", message);
        rc = rv_fail(ctx, "%s", message);
    }
    rv__buf_done(&text);
    return rc;
}

static void say_state(rv_ctx *ctx, struct rv__str state)
{
    struct rv__str more;
    if (!rv__json_get(state, "more", &more))
        return;
    char *json = sim_copy(more);
    rv_describe(ctx, "did it");
    (void)rv_set_state(ctx, "more", json);
    free(json);
}

/* As the answer of a model has it. */
static void say_answer(rv_ctx *ctx, struct rv__str answer)
{
    static const char *const keys[] = { "usage", "model", "finishReason", "calls" };
    static const char *const counts[] = { "inputTokens", "outputTokens" };
    struct rv__str value, usage, count;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (rv__json_get(answer, keys[i], &value)) {
            char *json = sim_copy(value);
            (void)rv_set_state(ctx, keys[i], json);
            free(json);
        }
    for (size_t i = 0; i < 2; i++) {
        int64_t n = 0;
        if (rv__json_get(answer, "usage", &usage) && rv__json_get(usage, counts[i], &count))
            (void)rv__json_int(count, &n);
        ctx->tokens += n;
    }
}

/* Somebody elsewhere will answer, after so long. */
static int park(struct shell *s, rv_ctx *ctx, struct run *run, struct spot spot,
                const struct outcome *o)
{
    struct world *world = &s->world;
    char handle[24];
    snprintf(handle, sizeof handle, "h%llu", (unsigned long long)world->handles++);
    if (o->answer_ms >= 0) {
        struct answer *answer = sim_alloc(sizeof *answer);
        struct rv__buf text;
        rv__buf_init(&text, SIZE_MAX);
        if (o->answer_fails)
            oracle_error(&world->oracle, spot, ctx->view.attempt, true, &text);
        else
            oracle_result(&world->oracle, spot, ctx->view.attempt, true, &text);
        *answer = (struct answer){ .next = s->answers,
                                   .run = run,
                                   .due_ms = shell_ms(s) + o->duration_ms + o->answer_ms,
                                   .fails = o->answer_fails };
        snprintf(answer->handle, sizeof answer->handle, "%s", handle);
        answer->text = sim_copy(rv__buf_view(&text));
        if (o->answer_fails) {
            char message[64] = "";
            (void)sscanf(text.text, "{\"message\":\"%63[^\"]", message);
            snprintf(answer->text, text.len, "%s", message);
        }
        rv__buf_done(&text);
        s->answers = answer;
        s->interrupted = true;
    }
    return rv_return_pending(ctx, handle);
}

static int fail(struct shell *s, rv_ctx *ctx, struct spot spot, const struct outcome *o)
{
    int attempt = ctx->view.attempt;
    struct rv__buf text;
    char message[64] = "";
    rv__buf_init(&text, SIZE_MAX);
    oracle_error(&s->world.oracle, spot, attempt, false, &text);
    (void)sscanf(text.text, "{\"message\":\"%63[^\"]", message);
    if (ctx->view.node->step.kind == STEP_CHAT) { /* as an executor says it: the whole error */
        rv__ctx_error(ctx, rv__buf_view(&text));
        ctx->behavior = o->behavior;
        ctx->max_attempts = o->max_attempts;
        ctx->backoff = o->backoff;
        rv__buf_done(&text);
        return -1;
    }
    rv__buf_done(&text);
    if (o->behavior == BEHAVIOR_STOP)
        return rv_stop(ctx, "%s", message);
    if (o->behavior == BEHAVIOR_CONTINUE)
        return rv_continue(ctx, "%s", message);
    if (o->behavior == BEHAVIOR_RETRY)
        return rv_retry(ctx, RV_RETRY_OPTS(.max_attempts = o->max_attempts, .backoff = o->backoff),
                        "%s", message);
    if (oracle_panics(&s->world.oracle, spot, attempt))
        rv_panic("%s", message);
    return rv_fail(ctx, "%s", message);
}

static int attempt(struct shell *s, rv_ctx *ctx, struct run *run, struct spot spot,
                   const struct rv__node *node)
{
    struct world *world = &s->world;
    struct outcome o;
    struct rv__buf text;
    int number = ctx->view.attempt;
    oracle_attempt(&world->oracle, spot, node, number, &o);
    rv_test_takes(ctx, o.duration_ms);
    for (int64_t n = between(&world->chance, -4, 3); n > 0; n--, s->lines++)
        rv_log(ctx, RV_INFO, one_in(&world->chance, 2) ? "{\"n\":1}" : NULL, "line %d of %s",
               (int)n, rv_ctx_path(ctx));
    if (o.fate == FATE_PARKED)
        return park(s, ctx, run, spot, &o);

    rv__buf_init(&text, SIZE_MAX);
    if (node->step.kind == STEP_CHAT) {
        oracle_answer(&world->oracle, spot, node, number, &text);
        say_answer(ctx, rv__buf_view(&text));
    } else {
        oracle_state(&world->oracle, spot, number, &text);
        say_state(ctx, rv__buf_view(&text));
    }
    rv__buf_reset(&text);
    oracle_result(&world->oracle, spot, number, false, &text);
    int rc = o.fate == FATE_FAILED ? 0 : rv_return_json(ctx, text.text);
    rv__buf_done(&text);
    if (o.fate == FATE_SKIPPED)
        rc = rv_skip(ctx);
    return o.fate == FATE_FAILED ? fail(s, ctx, spot, &o) : rc;
}

int shell_work(rv_ctx *ctx)
{
    struct shell *s = shell_now;
    struct world *world = &s->world;
    struct run *run = shell_find(s, rv_ctx_run_id(ctx));
    if (world->failed || run == NULL)
        return rv_fail(ctx, "all is lost");
    if (++s->works > ENOUGH)
        world->faults.calm = true;
    if (s->steps_left > 0 && --s->steps_left == 0)
        s->interrupted = true;
    shell_watch(s, run);
    shell_begins(s, run, ctx);
    if (world->failed)
        return rv_fail(ctx, "all is lost");
    if (crowd_is_stale(s)) /* it does not know it yet, and this will never be written */
        return rv_return_json(ctx, "\"late\"");
    if (!s->engine->closed && !world->faults.calm && one_in(&world->chance, 40) &&
        !crowd_is_deep(s))
        shell_from_inside(s);
    if (world->failed)
        return rv_fail(ctx, "all is lost");
    if (s->engine->closed && rv_ctx_cancelled(ctx) && one_in(&world->chance, 2))
        return rv_fail(ctx, "told to stop");

    const struct rec_actor *actor = record_actor(&run->rec, ctx->view.actor);
    const struct rv__node *node = run->plan->plan->nodes[actor->inst->node];
    struct spot spot = { run->plan->keys[node->id], actor->vector, actor->depth };
    s->print = mix(s->print, spot.key + (uint64_t)ctx->view.attempt);
    if (ctx->eval >= 0)
        return evaluate(s, ctx, spot, node, actor->inst);
    struct exec *exec = execs_get(world->execs, run, spot.key, spot.vector, spot.depth);
    if (exec->starts++ < oracle_crashes(&world->oracle, spot, node) && !world->faults.calm &&
        world->faults.one_in[FAULT_KILLER] > 0) {
        tell(s, "it kills the process");
        world->faults.happened[FAULT_KILLER]++;
        if (s->crowd != NULL)
            crowd_kills(s);
        else
            s->killed = true;
    }
    return attempt(s, ctx, run, spot, node);
}
