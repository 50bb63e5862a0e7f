/* rig.c: see rig.h. */
#include "unit/engine/rig.h"

int rig_setup(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    if (rig == NULL)
        return -1;
    snprintf(rig->folder, sizeof rig->folder, "/tmp/rival-test-XXXXXX");
    if (mkdtemp(rig->folder) == NULL)
        return -1;
    snprintf(rig->store, sizeof rig->store, "%s/rival.db", rig->folder);
    *state = rig;
    return 0;
}

int rig_teardown(void **state)
{
    struct rig *rig = *state;
    char command[200];
    rv__test_fail_alloc_after(-1);
    rv_feed_close(rig->feed);
    rv_engine_free(rig->engine);
    snprintf(command, sizeof command, "rm -rf '%s'", rig->folder);
    int rc = system(command);
    free(rig->text);
    free(rig);
    return rc;
}

void rig_open(struct rig *rig, const rv_engine_opts *given)
{
    rv_engine_opts opts = given != NULL ? *given : (rv_engine_opts){ .workers = 8 };
    opts.size = sizeof opts;
    opts.store = rig->store;
    if (rv_engine_new(&opts, &rig->engine, &rig->err) < 0)
        fail_msg("cannot open: %s", rig->err.message);
}

void rig_close(struct rig *rig)
{
    rv_engine_free(rig->engine);
    rig->engine = NULL;
}

void rig_put(struct rig *rig, rv_workflow *workflow)
{
    if (rv_register(rig->engine, workflow, &rig->err) < 0)
        fail_msg("cannot register: %s", rig->err.message);
    rv_workflow_free(workflow);
}

void rig_run(struct rig *rig, const char *workflow, const char *run_id, const char *input)
{
    if (rv_run(rig->engine, workflow, input, RV_RUN_OPTS(.run_id = run_id), NULL, &rig->err) < 0)
        fail_msg("cannot start: %s", rig->err.message);
}

static rv_outcome *await(struct rig *rig, const char *run_id)
{
    rv_outcome *outcome = NULL;
    if (rv_wait(rig->engine, NULL, run_id, RV_WAIT_OPTS(.timeout_ms = 20000), &outcome, &rig->err) <
        0)
        fail_msg("no outcome: %s", rig->err.message);
    return outcome;
}

int rig_wait(struct rig *rig, const char *run_id)
{
    rv_outcome *outcome = await(rig, run_id);
    int status = outcome->status;
    rv_outcome_free(outcome);
    return status;
}

void rig_define(struct rig *rig, const char *steps)
{
    char path[200];
    if (rig->engine == NULL)
        rig_open(rig, NULL);
    snprintf(path, sizeof path, "%s/w.yaml", rig->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "name: w\nsteps:\n");
    const char *at = steps, *host;
    for (; *rig->host != '\0' && (host = strstr(at, "HOST")) != NULL; at = host + strlen("HOST"))
        fprintf(file, "%.*s%s", (int)(host - at), at, rig->host);
    fprintf(file, "%s", at);
    assert_int_equal(fclose(file), 0);
    if (rv_register_file(rig->engine, path, RV_FILE_OPTS(.replace = true), &rig->err) != 1)
        fail_msg("%s", rig->err.message);
}

rv_outcome *rig_outcome(struct rig *rig, const char *run_id, const char *input)
{
    rig_run(rig, "w", run_id, input);
    return await(rig, run_id);
}

void rig_gives(struct rig *rig, const char *run_id, const char *input, const char *part)
{
    rv_outcome *outcome = rig_outcome(rig, run_id, input);
    if (strstr(outcome->results, part) == NULL && strstr(outcome->error, part) == NULL)
        fail_msg("%s\n%s %s", part, outcome->results, outcome->error);
    rv_outcome_free(outcome);
}

void rig_follow(struct rig *rig, const rv_feed_opts *opts)
{
    rv_feed_close(rig->feed);
    rig->feed = NULL;
    if (rv_feed_open(rig->engine, opts, &rig->feed, &rig->err) < 0)
        fail_msg("cannot follow: %s", rig->err.message);
}

void rig_add(struct rig *rig, const char *fmt, ...)
{
    va_list args;
    char *more = NULL;
    va_start(args, fmt);
    int n = vasprintf(&more, fmt, args);
    va_end(args);
    assert_true(n >= 0);
    rig->text = realloc(rig->text, rig->len + (size_t)n + 1);
    assert_non_null(rig->text);
    memcpy(rig->text + rig->len, more, (size_t)n + 1);
    rig->len += (size_t)n;
    free(more);
}

void rig_until(struct rig *rig, const char *kind, const char *run_id)
{
    rv_event event;
    do {
        if (rv_feed_next(rig->feed, 20000, NULL, &event, &rig->err) < 0)
            fail_msg("no %s of %s: %s; so far: %s", kind, run_id, rig->err.message,
                     rig->text ? rig->text : "");
        rig_add(rig, "%s%s%s;", event.kind, *event.path ? " " : "", event.path);
    } while (strcmp(event.kind, kind) != 0 || strcmp(event.run_id, run_id) != 0);
}

void rig_saw(struct rig *rig, const char *expected)
{
    assert_string_equal(rig->text != NULL ? rig->text : "", expected);
    rig->len = 0;
    if (rig->text != NULL)
        rig->text[0] = '\0';
}
