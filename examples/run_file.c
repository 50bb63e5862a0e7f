/* run_file.c: run a workflow file in C: run_file FILE.c NAME [INPUT] */
#include <rival/rival.h>
#include <stdio.h>

static void show(void *arg, const char *text)
{
    (void)arg;
    fputs(text, stderr);
}

int main(int argc, char **argv)
{
    rv_error err;
    rv_engine *engine = NULL;
    rv_run_info run;
    rv_outcome *outcome = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: run_file FILE.c NAME [INPUT]\n");
        return 2;
    }
    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:"), &engine, &err);
    if (rc == 0)
        rc = rv_register_file(engine, argv[1], RV_FILE_OPTS(.tell = show), &err);
    if (rc >= 0)
        rc = rv_run(engine, argv[2], argc > 3 ? argv[3] : NULL, NULL, &run, &err);
    if (rc == 0)
        rc = rv_wait(engine, NULL, run.run_id, NULL, &outcome, &err);
    if (rc == 0)
        printf("%s: %s%s\n", rv_status_name(outcome->status), outcome->results, outcome->error);
    else
        fprintf(stderr, "run_file: %s\n", err.message);
    int code = rc != 0 || outcome->status != RV_COMPLETED;
    rv_outcome_free(outcome);
    rv_engine_free(engine);
    return code;
}
