/* define_test.h: what the tests of src/define share: a text, and what is found in it. */
#ifndef RV_TESTS_UNIT_DEFINE_TEST_H
#define RV_TESTS_UNIT_DEFINE_TEST_H

#include "unit/test.h"

#include "define/define.h"
#include "jq/jq.h"

/* In this process: what the tests give it compiles without harm. */
static inline int define_compile(struct rv__expr_compiler *self, struct rv__str program,
                                 rv_error *err)
{
    (void)self;
    return rv__jq_compile(program, err);
}
static struct rv__expr_compiler define_compiler = { define_compile };

static inline struct rv__definitions *define(const char *file, const char *text)
{
    struct rv__definitions *found = NULL;
    rv_error err;
    int rc = rv__define_text(file, rv__str(text), NULL, &define_compiler, &found, &err);
    if (rc != RV_OK)
        fail_msg("%d: %s", rc, err.message);
    return found;
}

/* All problems as text: "line:column: message", a line for each. */
static inline void problems_text(const struct rv__definitions *found, struct rv__buf *out)
{
    for (size_t i = 0; i < found->problem_count; i++) {
        const struct rv__problem *problem = &found->problems[i];
        rv__buf_fmt(out, "%u:%u: %.*s\n", problem->line, problem->column,
                    RV__ARG(problem->message));
    }
}

/* What is wrong with the text is exactly this; a last line that ends in "…" may go on. */
static inline void expect_problems_in(const char *file, const char *says, const char *text,
                                      const char *expected)
{
    struct rv__definitions *found = define(file, text);
    struct rv__buf got;
    rv__buf_init(&got, 1 << 20);
    problems_text(found, &got);
    const char *is = got.text != NULL ? got.text : "";
    size_t len = strlen(expected), ellipsis = strlen("…");
    bool open = len > ellipsis && strcmp(expected + len - ellipsis, "…") == 0;
    if (open ? strncmp(is, expected, len - ellipsis) != 0 : strcmp(is, expected) != 0)
        fail_msg("%s:\n%sinstead of\n%s", says, is, expected);
    assert_int_equal(found->count, *expected == '\0');
    rv__buf_done(&got);
    rv__definitions_free(found);
}

static inline void expect_problems(const char *says, const char *text, const char *expected)
{
    expect_problems_in("w.yaml", says, text, expected);
}

/* The text is good, and its plan is this JSON. */
static inline void expect_plan(const char *says, const char *text, const char *expected)
{
    struct rv__definitions *found = define("w.yaml", text);
    struct rv__buf got;
    rv__buf_init(&got, 1 << 20);
    problems_text(found, &got);
    if (found->count == 1)
        assert_int_equal(rv__plan_write(found->items[0].plan, &got, NULL), RV_OK);
    if (strcmp(got.text, expected) != 0)
        fail_msg("%s:\n%s\ninstead of\n%s", says, got.text, expected);
    rv__buf_done(&got);
    rv__definitions_free(found);
}

#endif
