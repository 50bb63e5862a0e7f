/* worker.c: a worker in C: a program without an engine that offers steps to one elsewhere.
 *
 *     rival serve --store rival.db &
 *     worker rival.db.sock &                      # or tls://HOST:PORT, with RIVAL_WORKER_TOKEN and RIVAL_CA
 *     rival run planks -i '{"trees": 3}' --wait
 *
 * It ends on SIGINT and SIGTERM, when what runs has ended. */
#include <rival/rival.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static int fell(rv_ctx *c)
{
    int64_t trees = rv_int(c, ".input.trees", 1);
    rv_log_info(c, "felling %lld trees", (long long)trees);
    return rv_return(c, "{s:I}", "logs", trees * 2);
}

static int saw(rv_ctx *c)
{
    int64_t logs = rv_int(c, ".steps.fell.result.logs", 0);
    rv_describe(c, "sawed %lld logs", (long long)logs);
    return rv_return(c, "{s:I}", "planks", logs * 8);
}

/* Any workflow file can say `call: double`. */
static int twice(rv_ctx *c)
{
    return rv_return(c, "I", rv_int(c, ".input.n", 0) * 2);
}

static sigset_t ends; /* signals by which it is to stop */

static void *wait_for_signal(void *stop)
{
    int number;
    sigwait(&ends, &number);
    rv_cancel_fire(stop, RV_ECANCELED, "a signal");
    return NULL;
}

int main(int argc, char **argv)
{
    rv_worker *worker = NULL;
    rv_error err;
    pthread_t thread;
    if (argc != 2) {
        fprintf(stderr, "usage: worker STORE.sock | tls://HOST:PORT | tcp://HOST:PORT\n");
        return 2;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* before there are other threads */

    rv_workflow *planks = rv_workflow_new("planks");
    rv_add_step(rv_workflow_body(planks), "fell", fell, NULL);
    rv_add_step(rv_workflow_body(planks), "saw", saw, NULL);
    int rc = rv_worker_new(RV_WORKER_OPTS(.address = argv[1], .name = "planks in C",
                                          .token = getenv("RIVAL_WORKER_TOKEN"),
                                          .trusted = getenv("RIVAL_CA")),
                           &worker, &err);
    if (rc == RV_OK)
        rc = rv_worker_offer(worker, planks, &err);
    if (rc == RV_OK)
        rc = rv_worker_function(worker, "double", twice, &err);
    rv_cancel *stop = rv_cancel_new(NULL);
    if (rc == RV_OK && pthread_create(&thread, NULL, wait_for_signal, stop) == 0)
        rc = rv_worker_run(worker, stop, &err);
    if (rc < 0)
        fprintf(stderr, "worker: %s\n", err.message);
    rv_worker_free(worker);
    rv_workflow_free(planks);
    return rc < 0; /* the token is the thread's, for as long as the process lives */
}
