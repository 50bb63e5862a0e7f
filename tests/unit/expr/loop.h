/* loop.h: questions and answers without a process between them: src/expr on the one side, src/jq on the other,
 * in one thread. */
#ifndef RV_TESTS_UNIT_EXPR_LOOP_H
#define RV_TESTS_UNIT_EXPR_LOOP_H

#include "base/error.h"
#include "base/json.h"
#include "expr/expr.h"
#include "jq/jq.h"

struct loop {
    struct rv__expr_sender told;       /* first */
    struct rv__expr_compiler compiler; /* second */
    struct rv__jq *jq;
    struct rv__expr_texts *texts;
    struct rv__expr_peer *peer;
    int values, dropped, programs; /* told */
    int rc;                        /* of what was told */
};

static inline void loop_value(struct rv__expr_sender *told, unsigned slot, struct rv__str json)
{
    struct loop *loop = (struct loop *)told;
    loop->values += !rv__str_none(json);
    loop->dropped += rv__str_none(json);
    if (rv__jq_value(loop->jq, slot, json) < 0)
        loop->rc = RV_ENOMEM;
}

static inline void loop_program(struct rv__expr_sender *told, unsigned slot, struct rv__str text)
{
    struct loop *loop = (struct loop *)told;
    loop->programs++;
    if (rv__jq_program(loop->jq, slot, text) < 0)
        loop->rc = RV_ENOMEM;
}

static inline int loop_compile(struct rv__expr_compiler *self, struct rv__str program,
                               rv_error *err)
{
    (void)self;
    return rv__jq_compile(program, err);
}

static inline void loop_done(struct loop *loop)
{
    rv__expr_peer_free(loop->peer);
    rv__expr_texts_free(loop->texts);
    rv__jq_free(loop->jq);
    *loop = (struct loop){ .rc = RV_OK };
}

/* `cache_bytes` of either end; 0 = default. */
static inline int loop_init(struct loop *loop, size_t cache_bytes)
{
    *loop = (struct loop){ .told = { loop_value, loop_program }, .compiler = { loop_compile } };
    int rc = rv__jq_new(&loop->jq, NULL);
    if (rc == RV_OK)
        rc = rv__expr_texts_new(cache_bytes, &loop->texts, NULL);
    if (rc == RV_OK)
        rc = rv__expr_peer_new(cache_bytes, &loop->told, &loop->peer, NULL);
    if (rc < 0)
        loop_done(loop);
    return rc;
}

static inline int loop_ask(struct loop *loop, struct rv__exprs *set, uint32_t number,
                           struct rv__scope *scope, size_t max_bytes, struct rv__buf *answer,
                           rv_error *err)
{
    struct rv__buf question;
    rv_error why;
    size_t at = 0;
    rv__buf_init(&question, RV__JSON_MAX_BYTES);
    rv__buf_text(&question, "{\"type\":\"invoke\"");
    int rc = rv__exprs_ask(set, number, loop->texts, loop->peer, scope, false, &question, err);
    rv__buf_char(&question, '}');
    if (rc == RV_OK && loop->rc < 0)
        rc = rv__nomem(err);
    if (rc == RV_OK)
        rc = rv__buf_err(&question, err);
    if (rc == RV_OK)
        rc = rv__json_check(rv__buf_view(&question), RV__JSON_MAX_DEPTH, NULL, err);
    answer->max_bytes = max_bytes;
    if (rc == RV_OK) {
        rc = rv__jq_answer(loop->jq, rv__buf_view(&question), answer, &at, &why);
        if (rc < 0)
            (void)rv__exprs_failed(set, number, at, rc, why.message, err);
    }
    rv__buf_done(&question);
    return rc;
}

/* As rv__evaluator_run(). */
static inline int loop_eval(struct loop *loop, struct rv__exprs *set, uint32_t number,
                            struct rv__scope *scope, struct rv__buf *out, rv_error *err)
{
    struct rv__buf answer;
    struct rv__str values = { NULL, 0 };
    int rc = RV_OK;
    rv__buf_init(&answer, 0);
    if (rv__exprs_jq(set, number) > 0) {
        rc = loop_ask(loop, set, number, scope, out->max_bytes - out->len, &answer, err);
        values = rv__buf_view(&answer);
    }
    if (rc == RV_OK)
        rc = rv__exprs_compose(set, number, loop->texts, scope, values, out, err);
    rv__buf_done(&answer);
    return rc;
}

#endif
