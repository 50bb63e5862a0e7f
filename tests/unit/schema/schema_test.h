/* schema_test.h: what the tests of src/schema share: a schema, a value, and what is said of it. */
#ifndef RV_TESTS_UNIT_SCHEMA_TEST_H
#define RV_TESTS_UNIT_SCHEMA_TEST_H

#include "unit/test.h"

#include "base/arena.h"
#include "base/json.h"
#include "schema/schema.h"

/* A call and what came of it. fixture_done() after each use. */
struct fixture {
    struct rv__arena arena;
    struct rv__violations bad;
    struct rv__schema *schema;
    rv_error err;
    int rc;
};

static inline void fixture_init(struct fixture *fx)
{
    memset(fx, 0, sizeof *fx);
    rv__arena_init(&fx->arena, SIZE_MAX);
    rv__violations_init(&fx->bad, &fx->arena);
}

static inline void fixture_done(struct fixture *fx)
{
    rv__schema_free(fx->schema);
    rv__arena_done(&fx->arena);
}

/* The schema must be a good one. */
static inline void fixture_schema(struct fixture *fx, const char *schema)
{
    fixture_init(fx);
    fx->rc = rv__schema_new(rv__str(schema), &fx->bad, &fx->schema, &fx->err);
    if (fx->rc < 0)
        fail_msg("%s: %s", schema, fx->err.message);
}

/* All violations as text, "path: message" a line. */
static inline void violations_text(const struct rv__violations *bad, struct rv__buf *out)
{
    for (size_t i = 0; i < bad->count; i++)
        rv__buf_fmt(out, "%.*s: %.*s\n", RV__ARG(bad->items[i].path),
                    RV__ARG(bad->items[i].message));
}

static inline void expect_text(const struct fixture *fx, const char *says, const char *expected)
{
    struct rv__buf text;
    rv__buf_init(&text, 1 << 20);
    violations_text(&fx->bad, &text);
    if (fx->rc != (*expected ? RV_EINVAL : RV_OK) || strcmp(text.text ? text.text : "", expected))
        fail_msg("%s: rc %d (%s), got\n%s", says, fx->rc, fx->rc < 0 ? fx->err.message : "",
                 text.text ? text.text : "");
    rv__buf_done(&text);
}

/* What is wrong with the value is exactly this. */
static inline void expect_said(const char *schema, const char *value, const char *expected)
{
    struct fixture fx;
    fixture_schema(&fx, schema);
    fx.rc = rv__schema_check(fx.schema, rv__str(value), &fx.bad, &fx.err);
    expect_text(&fx, schema, expected);
    fixture_done(&fx);
}

/* What is wrong with the schema is exactly this. */
static inline void expect_schema(const char *schema, const char *expected)
{
    struct fixture fx;
    fixture_init(&fx);
    fx.rc = rv__schema_new(rv__str(schema), &fx.bad, &fx.schema, &fx.err);
    expect_text(&fx, schema, expected);
    fixture_done(&fx);
}

#endif
