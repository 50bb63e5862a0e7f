/* Every path that a step may look along, and paths that lead nowhere. For test_context.c. */
#include <rival/rival.h>
#include <stdio.h>
#include <string.h>

static int find(rv_ctx *c)
{
    rv_set_state(c, "mood", "\"fine\"");
    return rv_return_json(c, "{\"id\":\"oak-\\u00e9\",\"list\":[1,-2.5,\"three\",null,true],"
                             "\"odd key\":{\"a.b\":7},\"big\":12345678901234567890,\"n\":42,"
                             "\"yes\":true,\"nothing\":null,\"text\":\"12\"}");
}

struct row {
    const char *path;
    char as;          /* j: rv_json, s: rv_str, i: rv_int, n: rv_num, b: rv_bool */
    const char *want; /* as text; NULL: nothing, which the numbers tell as -7 */
};

/* What a row gives, as text; NULL: nothing. */
static const char *look(rv_ctx *c, const struct row *row, char room[64])
{
    switch (row->as) {
    case 'j': return rv_json(c, row->path);
    case 's': return rv_str(c, row->path);
    case 'i': snprintf(room, 64, "%lld", (long long)rv_int(c, row->path, -7)); break;
    case 'n': snprintf(room, 64, "%g", rv_num(c, row->path, -7)); break;
    default: snprintf(room, 64, "%s", rv_bool(c, row->path, false) ? "true" : "false"); break;
    }
    return strcmp(room, "-7") != 0 ? room : NULL;
}

static int check(rv_ctx *c, const struct row *rows, size_t count)
{
    char room[64];
    for (size_t i = 0; i < count; i++) {
        const char *got = look(c, &rows[i], room), *want = rows[i].want;
        if ((got == NULL) != (want == NULL) || (got != NULL && strcmp(got, want) != 0))
            return rv_stop(c, "%c %s: %s", rows[i].as, rows[i].path, got != NULL ? got : "nothing");
    }
    return 0;
}
#define CHECK(c, rows) check(c, rows, sizeof(rows) / sizeof *(rows))

static int read(rv_ctx *c)
{
    static const struct row rows[] = {
        { ".input.who", 's', "world" },
        { ".input.nobody", 'j', NULL },
        { ".input.nobody.at.all", 's', NULL },
        { ".input[\"who\"]", 's', "world" },
        { ".steps.find.result.id", 's', "oak-é" },
        { ".steps.find.result.id", 'j', "\"oak-\\u00e9\"" },
        { ".steps[\"find\"].result.list[2]", 's', "three" },
        { ".steps.find.result.list[-1]", 'b', "true" },
        { ".steps.find.result.list[1]", 'n', "-2.5" },
        { ".steps.find.result.list[1]", 'i', NULL }, /* no integer */
        { ".steps.find.result.list[9]", 'j', NULL },
        { ".steps.find.result.list", 'j', "[1,-2.5,\"three\",null,true]" },
        { ".steps.find.result[\"odd key\"][\"a.b\"]", 'i', "7" },
        { ".steps.find.result.\"odd key\"", 'j', "{\"a.b\":7}" },
        { ".steps.find.result.big", 'j', "12345678901234567890" },
        { ".steps.find.result.big", 'i', NULL }, /* beyond 64 bits */
        { ".steps.find.result.n", 'i', "42" },
        { ".steps.find.result.n", 'n', "42" },
        { ".steps.find.result.n", 's', NULL },
        { ".steps.find.result.text", 'i', NULL },
        { ".steps.find.result.yes", 'b', "true" },
        { ".steps.find.result.yes", 'i', NULL },
        { ".steps.find.result.nothing", 'j', "null" },
        { ".steps.find.result.nothing", 's', NULL },
        { ".steps.find.result.id.deeper", 'j', NULL }, /* a string has no members */
        { ".steps.find.state.mood", 's', "fine" },
        { ".steps.find.status", 's', "completed" },
        { ".steps.find.error", 'j', NULL },
        { ".steps.fork.result.taken", 's', "then" },
        { ".lastStep.alias", 's', "fork" },
        { ".lastStep.stepName", 's', "fork" },
        { ".lastStep.result.taken", 's', "then" },
        { ".lastStep.state", 'j', "{}" },
        { ".loop", 'j', NULL },
        { ".loop.item", 's', NULL },
        { ".loop.index", 'i', NULL },
        { ".run.stepName", 's', "read" },
        { ".run.attempt", 'i', "1" },
        { ".run.path", 's', "read" },
        { ".error", 'j', NULL },
        { ".failedStep.alias", 's', NULL },
        { ".workflowState.status", 's', NULL },
    };
    int rc = CHECK(c, rows);
    if (rc != 0)
        return rc;
    if (strstr(rv_json(c, ".steps"), "\"find\":{\"result\":{\"id\":") == NULL)
        return rv_stop(c, ".steps: %s", rv_json(c, ".steps"));
    if (strstr(rv_json(c, ".steps.find"), "\"status\":\"completed\"") == NULL)
        return rv_stop(c, ".steps.find: %s", rv_json(c, ".steps.find"));
    if (strstr(rv_json(c, ".lastStep"), "\"stepName\":\"fork\"") == NULL)
        return rv_stop(c, ".lastStep: %s", rv_json(c, ".lastStep"));
    if (strstr(rv_json(c, "."), "\"run\":{\"runId\":") == NULL)
        return rv_stop(c, ".: %s", rv_json(c, "."));
    return strcmp(rv_str(c, ".run.runId"), rv_ctx_run_id(c)) == 0 ? 0 : rv_stop(c, ".run.runId");
}

static int first(rv_ctx *c)
{
    static const struct row rows[] = {
        { ".lastStep.result", 'j', NULL },
        { ".lastStep.state", 'j', "{}" },
        { ".lastStep.state.mood", 's', NULL },
        { ".lastStep.alias", 's', NULL },
        { ".lastStep", 'j', "{\"state\":{},\"alias\":null,\"stepName\":null}" },
        { ".steps", 'j', "{}" },
    };
    return CHECK(c, rows);
}

static int letters(rv_ctx *c)
{
    return rv_return_json(c, "[{\"is\":\"a\"},{\"is\":\"b\"}]");
}

static int letter(rv_ctx *c)
{
    static const struct row rows[] = {
        { ".loop.items[1].is", 's', "b" },
        { ".loop.items", 'j', "[{\"is\":\"a\"},{\"is\":\"b\"}]" },
        { ".steps.find.result.n", 'i', "42" },
    };
    int64_t index = rv_int(c, ".loop.index", -1);
    const char *is = rv_str(c, ".loop.item.is");
    if (is == NULL || strcmp(is, index == 0 ? "a" : "b") != 0)
        return rv_stop(c, ".loop: %s", rv_json(c, ".loop"));
    return CHECK(c, rows);
}

static int yes(rv_ctx *c)
{
    return rv_return_bool(c, true);
}

static int nothing(rv_ctx *c)
{
    (void)c;
    return 0;
}

/* What comes behind it in the loop is there from the second iteration on. */
static int peek(rv_ctx *c)
{
    const char *status = rv_str(c, ".steps.mark.status");
    return (status != NULL) == (rv_int(c, ".loop.index", -1) > 0) ? 0 : rv_stop(c, "%s", status);
}

static int twice(rv_ctx *c)
{
    return rv_return_bool(c, rv_int(c, ".loop.index", -1) == 1 &&
                                 strcmp(rv_str(c, ".steps.mark.status"), "completed") == 0);
}

static int fails(rv_ctx *c)
{
    rv_set_state(c, "tried", "1");
    return rv_continue(c, "as planned");
}

static int handler(rv_ctx *c)
{
    static const struct row rows[] = {
        { ".error.message", 's', "as planned" },
        { ".failedStep.alias", 's', "fails" },
        { ".failedStep.status", 's', "failed" },
        { ".failedStep.state.tried", 'i', "1" },
        { ".workflowState.input.who", 's', "world" },
        { ".workflowState.steps.find.result.n", 'i', "42" },
        { ".workflowState.workflowName", 's', "paths" },
        { ".workflowState.status", 's', "running" },
        { ".input.who", 's', "world" },
    };
    int rc = CHECK(c, rows);
    if (rc == 0 && strstr(rv_json(c, ".workflowState"), "\"first\":{\"result\":null") == NULL)
        rc = rv_stop(c, ".workflowState: %s", rv_json(c, ".workflowState"));
    rv_log_info(c, "%s", rc == 0 ? "handled" : "not handled");
    return rc;
}

/* What the input says is looked for; the result is whether it was there. */
static int wrong(rv_ctx *c)
{
    const char *path = rv_str(c, ".input.path");
    if (path == NULL)
        return 0;
    for (int i = 0; i < 3; i++) /* told once, however often it is asked for */
        (void)rv_int(c, path, 0);
    return rv_return_bool(c, rv_json(c, path) != NULL);
}

RV_WORKFLOW(
    "paths",
    .steps = RV_STEPS(RV_STEP(first), RV_STEP(find),
                      RV_BRANCH(yes, .alias = "fork", .then = RV_STEPS(RV_STEP(nothing)),
                                .otherwise = RV_STEPS(RV_STEP(nothing))),
                      RV_STEP(read, .max_attempts = 3),
                      RV_FOREACH(letters, .alias = "each", .body = RV_STEPS(RV_STEP(letter))),
                      RV_UNTIL(twice, .alias = "again",
                               .body = RV_STEPS(RV_STEP(peek), RV_STEP(nothing, .alias = "mark"))),
                      RV_STEP(fails, .on_error = handler), RV_STEP(wrong, .max_attempts = 3),
                      RV_STEP(nothing, .alias = "later")))
