/* bench_feed.c: what reading costs: following the feed, replaying it, listing a large run, and removing
 * what is old; and what the engine pays for having a subscriber. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "bench.h"

enum { STEPS = 10, CLIENTS = 100, RUNS = 2000, ROUNDS = 5 };

static void must(int rc, const rv_error *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_feed: %s\n", err->message);
        abort();
    }
}

static double seconds(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e9;
}

static int no_op(rv_ctx *c)
{
    (void)c;
    return 0;
}

static int items(rv_ctx *c)
{
    enum { COUNT = 10000 };
    char *json = malloc(COUNT * 6 + 3), *at = json;
    *at++ = '[';
    for (int i = 0; i < COUNT; i++)
        at += snprintf(at, 8, "%s%d", i ? "," : "", i);
    *at++ = ']';
    *at = '\0';
    int rc = rv_return_json(c, json);
    free(json);
    return rc;
}

static void put(rv_engine *engine, rv_workflow *w)
{
    rv_error err;
    must(rv_register(engine, w, &err), &err);
    rv_workflow_free(w);
}

static void put_all(rv_engine *engine)
{
    rv_workflow *w = rv_workflow_new("ten");
    for (int i = 0; i < STEPS; i++) {
        char alias[8];
        snprintf(alias, sizeof alias, "s%d", i);
        rv_add_step(rv_workflow_body(w), alias, no_op, NULL);
    }
    put(engine, w);
    w = rv_workflow_new("large");
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", items,
                                   RV_FOREACH_OPTS(.parallel = true));
    rv_add_step(each, "one", no_op, NULL);
    put(engine, w);
}

struct client {
    pthread_t thread;
    rv_engine *engine;
    atomic_int *left;
};

static void *client_main(void *arg)
{
    struct client *client = arg;
    rv_error err;
    while (atomic_fetch_sub(client->left, 1) > 0) {
        rv_run_info info;
        rv_outcome *outcome = NULL;
        must(rv_run(client->engine, "ten", NULL, NULL, &info, &err), &err);
        must(rv_wait(client->engine, NULL, info.run_id, NULL, &outcome, &err), &err);
        rv_outcome_free(outcome);
    }
    return NULL;
}

/* Steps a second. */
static double work(rv_engine *engine)
{
    struct client clients[CLIENTS];
    atomic_int left = RUNS;
    double start = seconds();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){ .engine = engine, .left = &left };
        pthread_create(&clients[i].thread, NULL, client_main, &clients[i]);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    return RUNS * STEPS / (seconds() - start);
}

struct subscriber {
    pthread_t thread;
    rv_feed *feed;
    long events, ends;
    double took, lag_ms; /* from the commit's time, as the event has it, to its arrival */
};

static void *subscribe(void *arg)
{
    struct subscriber *s = arg;
    rv_error err;
    rv_event event;
    double start = seconds(), lag = 0;
    while (s->ends < RUNS) {
        must(rv_feed_next(s->feed, -1, NULL, &event, &err), &err);
        s->events++;
        s->ends += strcmp(event.kind, "run.completed") == 0;
        lag += (double)(rv__wall_ms(rv__clock_real()) - event.at);
    }
    s->took = seconds() - start;
    s->lag_ms = lag / (double)s->events;
    return NULL;
}

static void following(struct bench *b, rv_engine *engine)
{
    double without[BENCH_ROUNDS], with[BENCH_ROUNDS], rate[BENCH_ROUNDS], lag[BENCH_ROUNDS];
    rv_error err;
    (void)work(engine);
    for (int i = 0; i < ROUNDS; i++) {
        struct subscriber s = { .events = 0 };
        without[i] = work(engine);
        must(rv_feed_open(engine, NULL, &s.feed, &err), &err);
        pthread_create(&s.thread, NULL, subscribe, &s);
        with[i] = work(engine);
        pthread_join(s.thread, NULL);
        rv_feed_close(s.feed);
        rate[i] = (double)s.events / s.took;
        lag[i] = s.lag_ms;
    }
    double alone = bench_median(without, ROUNDS), followed = bench_median(with, ROUNDS);
    bench_figure(b, "durable steps without a subscriber", alone, "/s");
    bench_figure(b, "durable steps with one at the head", followed, "/s");
    bench_goal(b, "with one / without", followed / alone * 100, "%", true, 60);
    bench_figure(b, "events at the head, as they come", bench_median(rate, ROUNDS), "/s");
    bench_figure(b, "from the decision to the subscriber", bench_median(lag, ROUNDS), "ms");
}

static void replaying(struct bench *b, rv_engine *engine)
{
    rv_feed *feed = NULL;
    rv_event event;
    rv_error err;
    long events = 0;
    must(rv_feed_open(engine, RV_FEED_OPTS(.from = RV_FROM_OLDEST), &feed, &err), &err);
    double start = seconds();
    while (rv_feed_next(feed, 0, NULL, &event, &err) == RV_OK)
        events++;
    bench_figure(b, "events from the oldest on", (double)events / (seconds() - start), "/s");
    rv_feed_close(feed);
}

static void listing(struct bench *b, rv_engine *engine)
{
    rv_node_list *list = NULL;
    rv_outcome *outcome = NULL;
    rv_error err;
    must(rv_run(engine, "large", NULL, RV_RUN_OPTS(.run_id = "large"), NULL, &err), &err);
    must(rv_wait(engine, NULL, "large", NULL, &outcome, &err), &err);
    rv_outcome_free(outcome);
    for (int i = 0; i < 2; i++) {
        double start = seconds();
        must(rv_nodes(engine, "large",
                      RV_NODE_QUERY(.parent = "each", .offset = 9000, .limit = 100), &list, &err),
             &err);
        bench_figure(b, i == 0 ? "a window of 10,000 iterations, first time" : "the same again",
                     (seconds() - start) * 1e3, "ms");
        rv_node_list_free(list);
    }
}

/* Somebody who starts a run while old ones are removed: how long does the loop keep him waiting? */
struct impatient {
    pthread_t thread;
    rv_engine *engine;
    atomic_bool stop;
    double worst_ms;
};

static void *ask_often(void *arg)
{
    struct impatient *p = arg;
    rv_error err;
    while (!atomic_load(&p->stop)) {
        rv_run_state *state = NULL;
        double start = seconds();
        must(rv_state(p->engine, "asked", &state, &err), &err);
        double ms = (seconds() - start) * 1e3;
        rv_run_state_free(state);
        p->worst_ms = ms > p->worst_ms ? ms : p->worst_ms;
        usleep(500);
    }
    return NULL;
}

static void removing(struct bench *b, rv_engine *engine)
{
    struct impatient p = { .engine = engine };
    uint64_t removed = 0;
    rv_error err;
    must(rv_run(engine, "ten", NULL, RV_RUN_OPTS(.run_id = "asked"), NULL, &err), &err);
    pthread_create(&p.thread, NULL, ask_often, &p);
    double start = seconds();
    must(rv_retain(engine, RV_RETAIN_OPTS(.max_runs = 1000), &removed, &err), &err);
    bench_figure(b, "runs removed", (double)removed / (seconds() - start), "/s");
    atomic_store(&p.stop, true);
    pthread_join(p.thread, NULL);
    bench_figure(b, "the longest wait for a state meanwhile", p.worst_ms, "ms");
}

int main(int argc, char **argv)
{
    struct bench b;
    char folder[] = "bench-feed-XXXXXX", text[128];
    rv_engine *engine = NULL;
    rv_error err;
    bench_init(&b, "feed", argc, argv);
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(text, sizeof text, "%s/feed.db", folder);
    must(rv_engine_new(RV_ENGINE_OPTS(.store = text), &engine, &err), &err);
    put_all(engine);
    following(&b, engine);
    replaying(&b, engine);
    listing(&b, engine);
    removing(&b, engine);
    rv_engine_free(engine);
    snprintf(text, sizeof text, "rm -rf '%s'", folder);
    return system(text) == 0 ? bench_done(&b) : 1;
}
