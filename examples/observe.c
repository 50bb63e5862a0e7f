/* observe.c: what a run does, as it does it; then its nodes, its log and the engine's figures. */
#include <rival/rival.h>
#include <stdio.h>
#include <string.h>

static int plant(rv_ctx *c)
{
    rv_log_info(c, "planting on %s", rv_ctx_path(c));
    return rv_ctx_attempt(c) < 2 ? rv_fail(c, "the ground is frozen") : 0;
}

/* Every event of the run until it has ended; returns 0 then. */
static int follow(rv_engine *engine, const char *run_id, rv_error *err)
{
    rv_feed *feed = NULL;
    rv_event event = { .kind = "" };
    int rc = rv_feed_open(engine, RV_FEED_OPTS(.run_id = run_id, .from = RV_FROM_OLDEST), &feed,
                          err);
    while (rc == 0 && strcmp(event.kind, "run.completed") != 0) {
        rc = rv_feed_next(feed, 10000, NULL, &event, err);
        if (rc == 0)
            printf("%s %s\n", event.kind, event.path);
    }
    rv_feed_close(feed);
    return rc;
}

static int show_nodes(rv_engine *engine, const char *run_id, rv_error *err)
{
    rv_node_list *list = NULL;
    int rc = rv_nodes(engine, run_id, RV_NODE_QUERY(.limit = 50), &list, err);
    for (size_t i = 0; rc == 0 && i < list->count; i++)
        printf("%s: %s, attempt %d, last error: %s\n", list->nodes[i].path, list->nodes[i].status,
               list->nodes[i].attempt, list->nodes[i].error);
    rv_node_list_free(list);
    return rc;
}

/* The log, a page at a time; `next` is where the page after it begins. */
static int show_log(rv_engine *engine, const char *run_id, rv_error *err)
{
    uint64_t after = 0;
    size_t count;
    do {
        rv_log_list *list = NULL;
        int rc = rv_logs(engine, run_id, RV_LOG_QUERY(.after = after, .limit = 1), &list, err);
        if (rc < 0)
            return rc;
        for (size_t i = 0; i < list->count; i++)
            printf("%s: %s\n", list->lines[i].step, list->lines[i].message);
        after = list->next;
        count = list->count;
        rv_log_list_free(list);
    } while (count > 0);
    return 0;
}

int main(void)
{
    rv_error err;
    rv_engine *engine = NULL;
    char *text = NULL;
    rv_workflow *w = rv_workflow_new("garden");
    rv_add_step(rv_workflow_body(w), "plant", plant,
                RV_STEP_OPTS(.max_attempts = 3, .backoff_base_ms = 20));

    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:", .retain_runs = 1000), &engine, &err);
    if (rc == 0)
        rc = rv_register(engine, w, &err);
    if (rc == 0)
        rc = rv_run(engine, "garden", NULL, RV_RUN_OPTS(.run_id = "spring"), NULL, &err);
    if (rc == 0)
        rc = follow(engine, "spring", &err);
    if (rc == 0)
        rc = show_nodes(engine, "spring", &err);
    if (rc == 0)
        rc = show_log(engine, "spring", &err);
    if (rc == 0)
        rc = rv_why(engine, "spring", &text, &err);
    if (rc == 0)
        printf("%s\n", text);
    else
        fprintf(stderr, "observe: %s\n", err.message);
    rv_free(text);
    rv_engine_free(engine);
    rv_workflow_free(w);
    return rc != 0;
}
