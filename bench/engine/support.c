/* support.c: clocks, memory, processes, and runs by the thousand. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "figures.h"

void must(int rc, const rv_error *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_engine: %s\n", err->message);
        abort();
    }
}

double seconds(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e9;
}

double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double status_mb(const char *key)
{
    char line[256];
    double kb = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kb = strtod(line + strlen(key), NULL);
    if (status != NULL)
        fclose(status);
    return kb / 1024;
}

double resident_mb(void)
{
    return status_mb("VmRSS:");
}

double peak_mb(void)
{
    return status_mb("VmHWM:");
}

const char *store_path(const struct figures *f, const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s.db", f->folder, name);
    return path;
}

double disk_bytes(const char *store)
{
    char wal[300];
    struct stat st;
    double bytes = stat(store, &st) == 0 ? (double)st.st_size : 0;
    snprintf(wal, sizeof wal, "%s-wal", store);
    return bytes + (stat(wal, &st) == 0 ? (double)st.st_size : 0);
}

void drop_store(const struct figures *f, const char *name)
{
    static const char *const ends[] = { "", "-wal", "-shm", ".lock" };
    char path[300];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", store_path(f, name), ends[i]);
        (void)unlink(path); /* some of them are not there */
    }
}

void goal(struct figures *f, const char *name, double value, const char *unit, bool at_least,
          double bound)
{
    if (f->quick)
        bench_figure(f->bench, name, value, unit);
    else
        bench_goal(f->bench, name, value, unit, at_least, bound);
    fflush(stdout);
}

void say(const struct figures *f, const char *fmt, ...)
{
    va_list args;
    if (f->bench->json)
        return;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    fflush(stdout);
}

void apart(void (*measure)(struct figures *f, const void *arg, double *ret), struct figures *f,
           const void *arg, double *ret, size_t count)
{
    int status = -1;
    double *shared = mmap(NULL, count * sizeof *ret, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        measure(f, arg, shared);
        fflush(NULL);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "bench_engine: a measuring process failed\n");
        abort();
    }
    memcpy(ret, shared, count * sizeof *ret);
    munmap(shared, count * sizeof *ret);
}

rv_engine *open_engine(const struct figures *f, const char *store)
{
    rv_error err;
    rv_engine *engine = NULL;
    must(rv_engine_new(RV_ENGINE_OPTS(.store = store_path(f, store)), &engine, &err), &err);
    return engine;
}

void add_workflow(rv_engine *engine, rv_workflow *workflow)
{
    rv_error err;
    must(rv_register(engine, workflow, &err), &err);
    rv_workflow_free(workflow);
}

double run_once(rv_engine *engine, const char *workflow, const char *input)
{
    rv_error err;
    rv_run_info info;
    rv_outcome *outcome = NULL;
    double start = seconds();
    must(rv_run(engine, workflow, input, NULL, &info, &err), &err);
    must(rv_wait(engine, NULL, info.run_id, NULL, &outcome, &err), &err);
    double took = seconds() - start;
    if (outcome->status != RV_COMPLETED) {
        fprintf(stderr, "bench_engine: %s: %s\n", workflow, outcome->error);
        abort();
    }
    rv_outcome_free(outcome);
    return took;
}

static struct {
    pthread_t threads[CLIENTS];
    rv_engine *engine;
    const char *workflow, *input;
    atomic_int left;
} clients;

static void *client_main(void *arg)
{
    (void)arg;
    while (atomic_fetch_sub(&clients.left, 1) > 0)
        (void)run_once(clients.engine, clients.workflow, clients.input);
    return NULL;
}

void clients_start(rv_engine *engine, const char *workflow, const char *input, int runs)
{
    clients.engine = engine;
    clients.workflow = workflow;
    clients.input = input;
    atomic_store(&clients.left, runs);
    for (int i = 0; i < CLIENTS; i++)
        if (pthread_create(&clients.threads[i], NULL, client_main, NULL) != 0)
            abort();
}

void clients_stop(void)
{
    atomic_store(&clients.left, 0);
}

void clients_join(void)
{
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients.threads[i], NULL);
}

enum { STARTERS = 256, PROGRESS = 100000 }; /* callers at once share a commit */

struct starter {
    pthread_t thread;
    const struct figures *figures;
    rv_engine *engine;
    const char *workflow;
    _Atomic int64_t *left;
};

static void *starter_main(void *arg)
{
    struct starter *s = arg;
    int64_t left;
    while ((left = atomic_fetch_sub(s->left, 1)) > 0) {
        rv_error err;
        rv_run_info info;
        must(rv_run(s->engine, s->workflow, NULL, NULL, &info, &err), &err);
        if (left % PROGRESS == 0)
            say(s->figures, "  (%lld more to start, %.0f MB)\n", (long long)left, resident_mb());
    }
    return NULL;
}

void start_many(const struct figures *f, rv_engine *engine, const char *workflow, int64_t count)
{
    static struct starter starters[STARTERS];
    _Atomic int64_t left = count;
    for (int i = 0; i < STARTERS; i++) {
        starters[i] = (struct starter){
            .figures = f, .engine = engine, .workflow = workflow, .left = &left
        };
        if (pthread_create(&starters[i].thread, NULL, starter_main, &starters[i]) != 0)
            abort();
    }
    for (int i = 0; i < STARTERS; i++)
        pthread_join(starters[i].thread, NULL);
}

int no_op(rv_ctx *c)
{
    (void)c;
    return 0;
}

int many_items(rv_ctx *c)
{
    int64_t count = rv_int(c, ".input.items", 0);
    size_t len = 0;
    char *json = malloc((size_t)count * 8 + 3);
    if (json == NULL)
        return rv_fail(c, "no memory");
    json[len++] = '[';
    for (int64_t i = 0; i < count; i++)
        len += (size_t)snprintf(json + len, 9, "%s%lld", i ? "," : "", (long long)(i % 1000000));
    json[len++] = ']';
    json[len] = '\0';
    int rc = rv_return_json(c, json);
    free(json);
    return rc;
}

rv_workflow *ten_steps(void)
{
    rv_workflow *w = rv_workflow_new("ten");
    for (int i = 0; i < TEN; i++) {
        char alias[8];
        snprintf(alias, sizeof alias, "s%d", i);
        rv_add_step(rv_workflow_body(w), alias, no_op, NULL);
    }
    return w;
}
