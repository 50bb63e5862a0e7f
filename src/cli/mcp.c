/* mcp.c: `rival mcp`: the Model Context Protocol over standard input and output, for assistants that start their
 * servers. It uses a server, or a store. This process drives the store; if another one does, it uses that process,
 * and takes over when it ends. */
#include "cli/mcp.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/store_name.h"
#include "cli/drive.h"
#include "cli/runs.h"
#include "cli/served.h"
#include "cli/wire.h"

enum {
    WIRES = 64, /* idle connections kept: one for each possible call */
    PATH_BYTES = 2 << 20,
    STORE_MS = 3000, /* to wait for a store that another process holds */
    AGAIN_MS = 50,   /* and how often to try */
    DRAIN_MS = 2000, /* for steps to end by themselves, at the end */
    TOLD_MS = 2000,  /* and then, for cancelled steps */
    LOST_MS = 100,   /* before a server or store that did not answer is asked again */
    LOOK_MS = 500,   /* how often to check that the driver of the store still exists */
};

struct mcp {
    struct rv__where where;
    struct rv__words allow_env;
    const char *secrets;
    rv_cancel *interrupt;
    struct rv__log *log;

    /* a store */
    const char *store;
    rv_engine *engine;
    bool attached; /* another process drives the store */
    struct rv__served served;
    pthread_rwlock_t engine_lock; /* held for reading by users of the engine */
    rv_cancel *stop;              /* ends the thread that watches the driver */

    /* a server */
    char url[300];
    pthread_mutex_t wires_lock;
    struct rv__wire *wires[WIRES];
    size_t wires_count;
};

/* ---------------------------------------------------------------------------------- a server --- */

static struct rv__wire *take_wire(struct mcp *m, rv_error *err)
{
    struct rv__wire *wire = NULL;
    pthread_mutex_lock(&m->wires_lock);
    if (m->wires_count > 0)
        wire = m->wires[--m->wires_count];
    else /* under the lock: libcurl is set up with the first and cleaned up with the last */
        (void)rv__where_wire(&m->where, m->url, &wire, err);
    pthread_mutex_unlock(&m->wires_lock);
    return wire;
}

/* `good`: it can be reused. */
static void give_wire(struct mcp *m, struct rv__wire *wire, bool good)
{
    pthread_mutex_lock(&m->wires_lock);
    if (wire != NULL && good && m->wires_count < WIRES)
        m->wires[m->wires_count++] = wire;
    else
        rv__wire_free(wire);
    pthread_mutex_unlock(&m->wires_lock);
}

static void ask_server(void *arg, const struct rv__api_request *request, struct rv__api_answer *ret)
{
    struct mcp *m = arg;
    struct rv__buf path, text;
    rv_error err = { .code = 0 };
    struct rv__wire *wire = take_wire(m, &err);
    int status = wire == NULL ? RV_ESYS : RV_OK;
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_init(&text, 0); /* the wire has the limit */
    rv__buf_text(&path, request->path);
    if (request->query != NULL && *request->query != '\0')
        rv__buf_fmt(&path, "?%s", request->query);
    if (status == RV_OK)
        status = rv__buf_err(&path, &err);
    if (status == RV_OK)
        status = rv__wire_ask(wire, request->method, path.text,
                              (struct rv__str){ request->body, request->body_length }, &text, &err);
    if (status > 0 &&
        rv__json_check_stored(rv__buf_view(&text), RV__JSON_STORED_DEPTH, NULL, &err) < 0)
        status = rv__fail(&err, RV_EPARSE,
                          "the server at %.80s answered with something other than JSON", m->url);
    if (status < 0) {
        rv__api_problem(503, NULL, err.message, ret);
    } else {
        *ret = (struct rv__api_answer){ .status = status, .type = "application/json" };
        ret->length = text.len;
        ret->body = rv__buf_take(&text);
    }
    give_wire(m, wire, status > 0);
    rv__buf_done(&path);
    rv__buf_done(&text);
}

static void wait_at_server(void *arg, const char *run_id, int64_t timeout_ms, rv_cancel *by)
{
    char path[RV_RUN_ID_SIZE + 64], query[64];
    struct rv__api_answer answer = { .status = 0 };
    (void)snprintf(path, sizeof path, "/api/v1/runs/%s/wait", run_id);
    (void)snprintf(query, sizeof query, "timeoutMs=%lld", (long long)timeout_ms);
    if (rv_cancel_fired(by))
        return;
    ask_server(arg, &(struct rv__api_request){ .method = "GET", .path = path, .query = query },
               &answer);
    bool waited = answer.status == 200 || answer.status == 408;
    rv__api_answer_done(&answer);
    if (!waited)
        (void)rv_cancel_wait(by, LOST_MS);
}

/* ------------------------------------------------------------------------------------ a store --- */

static int make_engine(struct mcp *m, rv_error *err)
{
    char user[RV__USER_NAME_SIZE];
    bool shared = !rv__store_name_in_memory(m->store);
    return rv_engine_new(RV_ENGINE_OPTS(.store = m->store, .control = shared, .attach = shared,
                                        .by = rv__cli_user(user), .allow_env = m->allow_env.at,
                                        .secrets_file = m->secrets, .drain_ms = DRAIN_MS,
                                        .grace_ms = TOLD_MS),
                         &m->engine, err);
}

/* Open the store, and, if this process drives it, register its workflows. */
static int open_store(struct mcp *m, rv_error *err)
{
    rv_driver driver;
    int rc = make_engine(m, err);
    for (int64_t until = rv__mono_ms(rv__clock_real()) + STORE_MS;
         rc == RV_EBUSY && rv__mono_ms(rv__clock_real()) < until &&
         !rv_cancel_wait(m->interrupt, AGAIN_MS);)
        rc = make_engine(m, err);
    if (rc < 0)
        return rc;
    m->attached = rv_engine_driver(m->engine, &driver, NULL) == 1;
    if (m->attached) {
        rv__log(m->log, RV__LOG_INFO, "another process drives this store: its workflows are used",
                RV__LOG_INT("pid", driver.pid));
    } else {
        m->served.engine = m->engine;
        rv__served_load(&m->served);
    }
    return RV_OK;
}

/* The driver has ended: this process drives the store, or uses the next driver. */
static void reopen(struct mcp *m, const rv_engine *gone)
{
    rv_error err;
    pthread_rwlock_wrlock(&m->engine_lock);
    if (m->engine == gone) {
        rv_engine_free(m->engine);
        m->engine = NULL;
        if (open_store(m, &err) < 0)
            rv__log(m->log, RV__LOG_ERROR, "the store cannot be opened again",
                    RV__LOG_STR("why", err.message));
    }
    pthread_rwlock_unlock(&m->engine_lock);
}

/* Reading the disk does not need the driver, so its end must be noticed here. A signal to a run that cannot exist
 * is answered only by a living driver. */
static void *watch_driver(void *arg)
{
    static const char nobody[] = "no-run-2f6d1c0a9b7e4853";
    struct mcp *m = arg;
    while (!rv_cancel_wait(m->stop, LOOK_MS)) {
        int rc = RV_OK;
        pthread_rwlock_rdlock(&m->engine_lock);
        rv_engine *engine = m->engine;
        if (engine != NULL && m->attached)
            rc = rv_signal(engine, nobody, "none", NULL, NULL);
        pthread_rwlock_unlock(&m->engine_lock);
        if (engine == NULL || rc == RV_ECLOSED || rc == RV_EFAILED)
            reopen(m, engine);
    }
    return NULL;
}

static void ask_store(void *arg, const struct rv__api_request *request, struct rv__api_answer *ret)
{
    struct mcp *m = arg;
    for (int again = 1;; again--) {
        pthread_rwlock_rdlock(&m->engine_lock);
        rv_engine *engine = m->engine;
        bool attached = m->attached;
        if (engine != NULL)
            rv__api_handle(engine, request, ret);
        else
            rv__api_problem(503, NULL, "the store cannot be opened", ret);
        pthread_rwlock_unlock(&m->engine_lock);
        if (again == 0 || ret->status != 503 || (engine != NULL && !attached))
            return;
        rv__api_answer_done(ret);
        reopen(m, engine);
    }
}

static void wait_in_store(void *arg, const char *run_id, int64_t timeout_ms, rv_cancel *by)
{
    struct mcp *m = arg;
    rv_outcome *outcome = NULL;
    int rc = RV_ECLOSED;
    pthread_rwlock_rdlock(&m->engine_lock);
    if (m->engine != NULL)
        rc = rv_wait(m->engine, NULL, run_id,
                     RV_WAIT_OPTS(.timeout_ms = timeout_ms > 0 ? timeout_ms : 1, .by = by),
                     &outcome, NULL);
    pthread_rwlock_unlock(&m->engine_lock);
    rv_outcome_free(outcome);
    if (rc < 0 && rc != RV_ETIMEDOUT && rc != RV_ECANCELED)
        (void)rv_cancel_wait(by, LOST_MS);
}

/* --------------------------------------------------------------------------------- the command --- */

static int serve_store(struct mcp *m, const char *const *paths, size_t count)
{
    const struct rv__mcp_place place = { { ask_store, m }, wait_in_store };
    struct rv__log_opts log = { .level = RV__LOG_WARN };
    pthread_t watcher;
    rv_error err;
    if (rv__log_new(&log, &m->log, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    m->served.log = m->log;
    m->served.paths = paths;
    m->served.count = count;
    rv__served_init(&m->served);
    int code = CLI_OK;
    if (open_store(m, &err) < 0)
        code = rv__cli_fail(err.code == RV_EINVAL ? CLI_USAGE : CLI_FAILED, err.message, NULL);
    m->stop = rv_cancel_new(NULL);
    bool watched = code == CLI_OK && m->stop != NULL &&
                   pthread_create(&watcher, NULL, watch_driver, m) == 0;
    if (code == CLI_OK && !watched)
        code = rv__cli_fail(CLI_FAILED, "out of memory or threads", NULL);
    if (code == CLI_OK)
        code = rv__mcp_serve(&place, STDIN_FILENO, STDOUT_FILENO, m->interrupt);
    if (watched) {
        rv_cancel_fire(m->stop, RV_ECANCELED, "the end");
        pthread_join(watcher, NULL);
    }
    rv_cancel_free(m->stop);
    int left = m->engine != NULL ? rv_engine_close(m->engine) : 0;
    if (left == 0) /* else steps are running that cannot be stopped: leave them */
        rv_engine_free(m->engine);
    rv__served_done(&m->served);
    rv__log_free(m->log);
    return code;
}

static int serve_server(struct mcp *m)
{
    const struct rv__mcp_place place = { { ask_server, m }, wait_at_server };
    int code = rv__mcp_serve(&place, STDIN_FILENO, STDOUT_FILENO, m->interrupt);
    while (m->wires_count > 0)
        rv__wire_free(m->wires[--m->wires_count]);
    return code;
}

/* Find the server, if one is meant and answers; its address is in m->url. */
static int find_server(struct mcp *m, bool files, bool *found)
{
    int code = CLI_OK;
    *found = false;
    if (files || m->where.store != NULL) {
        if (m->where.server == NULL)
            return CLI_OK;
        return rv__cli_usage("mcp", "give --server, or a store and workflow files, not both");
    }
    struct rv__client *client = rv__client_server(&m->where, &m->store, &code);
    if (client != NULL) {
        *found = true;
        (void)snprintf(m->url, sizeof m->url, "%s", rv__client_name(client));
        rv__client_close(client);
    }
    return code;
}

static int run_mcp(int argc, char **argv)
{
    static const char *const here[] = { "." };
    struct mcp m = { .engine_lock = PTHREAD_RWLOCK_INITIALIZER,
                     .wires_lock = PTHREAD_MUTEX_INITIALIZER };
    bool server;
    int count = rv__options(&rv__cmd_mcp, argc, argv, &m);
    if (count < 0)
        return -count;
    for (int i = 0; i < count; i++)
        if (access(argv[i], F_OK) < 0)
            return rv__cli_usage("mcp", "there is no file or folder '%s'", argv[i]);
    (void)signal(SIGPIPE, SIG_IGN); /* a write to a client that has gone returns an error */
    m.interrupt = rv__cli_interrupt();
    if (m.interrupt == NULL)
        return CLI_FAILED;
    int code = find_server(&m, count > 0, &server);
    if (code != CLI_OK)
        return code;
    if (server)
        return serve_server(&m);
    m.store = m.where.store != NULL ? m.where.store : rv__store_default();
    return serve_store(&m, count > 0 ? (const char *const *)argv : here,
                       count > 0 ? (size_t)count : 1);
}

static const struct rv__option options[] = {
    RV__OPTIONS_WHERE(struct mcp, where),
    { "--allow-env", "NAME", "let expressions read this variable, as .env.NAME; repeat for more",
      RV__INTO(struct mcp, allow_env) },
    { "--secrets", "FILE", RV__SECRETS_MEANING, .completes = COMPLETES_FILE,
      RV__INTO(struct mcp, secrets) },
    { NULL },
};

const struct rv__command rv__cmd_mcp = {
    .name = "mcp",
    .section = SECTION_DO,
    .summary = "offer workflows to an AI assistant, as an MCP server on stdin and stdout",
    .arguments = { { "DIR|FILE", .many = true, .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Speaks the Model Context Protocol (revisions 2025-06-18, 2025-11-25 and "
                    "2026-07-28) on standard input and output: for assistants that start their "
                    "servers themselves. A running server has the same at `/mcp`.",
                    "Every workflow is a tool; `rival_list`, `rival_launch`, `rival_wait`, "
                    "`rival_cancel`, `rival_decide`, `rival_why`, `rival_logs` and "
                    "`rival_attachments` are "
                    "about runs. "
                    "A run is durable: it goes on when the assistant, this process or the machine "
                    "stops, and its task can be polled again by its id.",
                    "With DIR, FILE or --store, the runs are in a store: this process drives it, "
                    "with the workflows of these files and folders (default: the current folder). "
                    "If another process drives it, that one's workflows are used. Otherwise a "
                    "running server is used." },
    .examples = { { "rival mcp workflows --store orders.db" },
                  { "rival mcp --server http://127.0.0.1:7400 --token-file token" } },
    .exits = { { CLI_OK, "standard input has ended, or SIGTERM" } },
    .run = run_mcp,
};
