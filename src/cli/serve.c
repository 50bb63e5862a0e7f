/* serve.c: `rival serve`: drives all runs of a store and serves clients.
 *
 * Start: the engine and the workflow files, then the interfaces: the engine's control socket and HTTP. After that
 * this thread writes the process's log from the engine's feed (so it logs only what is on disk) and waits for a signal.
 *
 * Shutdown: the engine closes first while HTTP still answers. Users can watch the last steps finish, and a load
 * balancer sees that this process is not ready. Then HTTP is drained and freed. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/json.h"
#include "base/listen.h"
#include "base/store_name.h"
#include "cli/drive.h"
#include "cli/refusal.h"
#include "cli/runs.h"
#include "cli/served.h"
#include "cli/text.h"
#include "server/server.h"

#define NO_HTTP "none" /* as --listen */

enum {
    HTTP_DRAIN_MS = 2000,   /* at shutdown: for answers that are being sent */
    OPEN_FILES = 4096,      /* for connections; runs need more */
    DRAIN_MS = 10000,       /* --grace: for running steps to finish */
    TOLD_MS = 2000,         /* after that: for cancelled steps to return */
    COUNTED_RUNS = 1000,    /* unfinished runs are counted up to this at the start */
    REASON_BYTES = 2000,    /* of an error in the log */
    STORE_MS = 3000,        /* how long to wait for a store that another process holds */
    AGAIN_MS = 50,          /* between attempts to open it */
    REFUSED_MS = 1000,      /* between two log lines about refused workers */
    MAPPED_BYTES = 1 << 20, /* allocations from this size on are mappings of their own */
};

struct serve {
    const char *secrets, *config, *store, *grace, *eval_time, *retain_age, *retain_runs,
        *retain_bytes, *lease;
    const char *listen, *workers, *workers_url, *token_file, *tls_cert, *tls_key, *answer_memory,
        *answer_disk;
    struct rv__words allow_env, allow_hosts;
    bool watch, insecure, deny_private, allow_private, with_stdin;
    int log_level, log_format; /* indexes of the words below, from 1; 0 = not given */
    int64_t drain_ms, eval_ms, age_ms, runs, bytes, memory_bytes, disk_bytes, lease_ms;

    struct rv__log *log;
    rv_cancel *interrupt;
    rv_engine *engine;
    rv_feed *feed;
    struct rv__server *server; /* NULL: no HTTP */
    uint16_t workers_port;
    pthread_mutex_t tokens_lock;             /* of: */
    struct rv__worker_tokens *worker_tokens; /* NULL: workers need none */
    int64_t refused_ms;                      /* time of the last log line about a refused worker */
    int64_t refused;                         /* refused workers since then */
    struct rv__refusal refusal;
    bool gone; /* the store was deleted or replaced */
    struct rv__served served;
};

static const char *const levels[] = { "debug", "info", "warn", "error", NULL };
static const char *const formats[] = { "auto", "json", "text", NULL };

/* --------------------------------------------------------------------------------- options --- */

static int read_time(const char *option, const char *text, int64_t *ret)
{
    if (text == NULL || rv__duration_ms(rv__str(text), ret) == RV_OK)
        return CLI_OK;
    return rv__cli_usage("serve", "%s '%s' is not a duration like 30s, 5m, 30d", option, text);
}

static int read_number(const char *option, const char *text, int64_t *ret)
{
    if (text == NULL || (rv__json_check(rv__str(text), 1, NULL, NULL) == RV_OK &&
                         rv__json_int(rv__str(text), ret) == RV_OK && *ret > 0))
        return CLI_OK;
    return rv__cli_usage("serve", "%s '%s' must be a number, 1 or more", option, text);
}

static int read_all(struct serve *s)
{
    int code = read_time("--grace", s->grace, &s->drain_ms);
    if (code == CLI_OK)
        code = read_time("--eval-time", s->eval_time, &s->eval_ms);
    if (code == CLI_OK)
        code = read_time("--retain-age", s->retain_age, &s->age_ms);
    if (code == CLI_OK)
        code = read_number("--retain-runs", s->retain_runs, &s->runs);
    if (code == CLI_OK)
        code = read_number("--retain-bytes", s->retain_bytes, &s->bytes);
    if (code == CLI_OK)
        code = read_time("--lease", s->lease, &s->lease_ms);
    if (code == CLI_OK)
        code = read_number("--answer-memory", s->answer_memory, &s->memory_bytes);
    return code == CLI_OK ? read_number("--answer-disk", s->answer_disk, &s->disk_bytes) : code;
}

/* ---------------------------------------------------------------------------------- systemd --- */

/* Notify the service manager that started us, if there is one (sd_notify). */
static void notify(const char *word)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    size_t len = path != NULL ? strlen(path) : 0;
    if (len == 0 || len >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    /* A failure is ignored: the server works without it. */
    (void)!sendto(fd, word, strlen(word), MSG_NOSIGNAL, (const struct sockaddr *)&to,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    (void)close(fd);
}

/* --------------------------------------------------------------------------------- the log --- */

/* A text, or the message of an error, in an event. */
static void take_text(struct rv__buf *out, struct rv__str event, const char *key)
{
    struct rv__str value;
    if (rv__json_get(event, key, &value))
        rv__text_error(out, value);
}

static void log_run(const struct serve *s, const rv_event *event, enum rv__log_level level,
                    const char *message, const char *reason)
{
    struct rv__buf why;
    rv__buf_init(&why, REASON_BYTES);
    if (reason != NULL)
        take_text(&why, rv__str(event->json), reason);
    if (why.len > 0)
        rv__log(s->log, level, message, RV__LOG_STR("run", event->run_id),
                RV__LOG_STR("workflow", event->workflow),
                RV__LOG_STR("why", rv__buf_view(&why).at));
    else
        rv__log(s->log, level, message, RV__LOG_STR("run", event->run_id),
                RV__LOG_STR("workflow", event->workflow));
    rv__buf_done(&why);
}

static void log_event(const struct serve *s, const rv_event *event)
{
    static const struct {
        const char *kind;
        enum rv__log_level level;
        const char *message, *reason;
    } runs[] = {
        { "run.started", RV__LOG_INFO, "run started", NULL },
        { "run.completed", RV__LOG_INFO, "run completed", NULL },
        { "run.failed", RV__LOG_WARN, "run failed", "error" },
        { "run.cancelled", RV__LOG_INFO, "run cancelled", NULL },
        { "run.suspended", RV__LOG_WARN, "run suspended", "reason" },
        { "run.resumed", RV__LOG_INFO, "run resumed", NULL },
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        if (strcmp(event->kind, runs[i].kind) == 0) {
            log_run(s, event, runs[i].level, runs[i].message, runs[i].reason);
            return;
        }
    rv__log(s->log, RV__LOG_DEBUG, event->kind, RV__LOG_STR("run", event->run_id),
            RV__LOG_STR("workflow", event->workflow), RV__LOG_STR("path", event->path));
}

/* While the store refuses writes, no run continues: log it. */
static void look_at_health(struct serve *s)
{
    rv_health health;
    int news = rv__refusal_look(&s->refusal, &health);
    s->gone |= news > 0 && health.gone;
    if (s->gone)
        rv__log(s->log, RV__LOG_ERROR, "stopping: the store is gone",
                RV__LOG_STR("why", health.why.message));
    else if (news > 0)
        rv__log(s->log, RV__LOG_ERROR, "the store cannot be written: no run continues until it can",
                RV__LOG_STR("why", health.why.message),
                RV__LOG_INT("attempts", (int64_t)health.attempts));
    else if (news < 0)
        rv__log(s->log, RV__LOG_INFO, "the store works again");
}

static void follow(struct serve *s)
{
    while (!rv_cancel_fired(s->interrupt) && !s->gone) {
        rv_event event;
        rv_error err;
        int rc = s->feed != NULL ? rv_feed_next(s->feed, RV__REFUSAL_MS, s->interrupt, &event, &err)
                                 : RV_ENOTFOUND;
        if (rc == RV_OK) {
            log_event(s, &event);
        } else if (rc == RV_ENOTFOUND && s->feed != NULL) { /* retention has removed the events */
            rv_feed_close(s->feed);
            s->feed = NULL;
            (void)rv_feed_open(s->engine, RV_FEED_OPTS(.no_logs = true), &s->feed, NULL);
            rv__log(s->log, RV__LOG_WARN, "some runs were removed before their events were logged");
        } else if (rc != RV_ETIMEDOUT && rc != RV_ECANCELED) { /* no feed, memory or store */
            (void)rv_cancel_wait(s->interrupt, RV__REFUSAL_MS);
        }
        look_at_health(s);
    }
}

/* --------------------------------------------------------------------------- from start to end --- */

static int64_t count_runs(rv_engine *engine, int status)
{
    rv_run_list *list = NULL;
    if (rv_list(engine, RV_QUERY(.status = status, .limit = COUNTED_RUNS), &list, NULL) < 0)
        return 0;
    int64_t count = (int64_t)list->count;
    rv_run_list_free(list);
    return count;
}

/* Anyone who reaches this server could make it fetch from addresses that only this machine reaches. */
static bool denies_private(const struct serve *s)
{
    return s->deny_private || (!s->allow_private && strcmp(s->listen, NO_HTTP) != 0 &&
                               !rv__listens_on_loopback(s->listen));
}

static int make_engine(struct serve *s, rv_error *err)
{
    return rv_engine_new(
        RV_ENGINE_OPTS(.store = s->store, .control = !rv__store_name_in_memory(s->store),
                       .allow_env = s->allow_env.at, .eval_cpu_ms = s->eval_ms,
                       .drain_ms = s->drain_ms, .grace_ms = TOLD_MS, .retain_age_ms = s->age_ms,
                       .retain_runs = (uint64_t)s->runs, .retain_bytes = (uint64_t)s->bytes,
                       .http_deny_private = denies_private(s), .secrets_file = s->secrets,
                       .config_file = s->config, .member = rv__store_name_is_address(s->store),
                       .lease_ms = s->lease_ms),
        &s->engine, err);
}

/* Another process (`rival exec`) drives the store; it will end. */
static int stand_by(struct serve *s, rv_error *err)
{
    rv__log(s->log, RV__LOG_INFO, "standing by: another process drives the store",
            RV__LOG_STR("who", err->message));
    int rc = RV_EBUSY;
    while (rc == RV_EBUSY && !rv_cancel_wait(s->interrupt, AGAIN_MS))
        rc = make_engine(s, err);
    if (rc == RV_OK)
        rv__log(s->log, RV__LOG_INFO, "taking over");
    return rc;
}

/* Open the engine. After a signal while waiting for the store there is none. */
static int open_engine(struct serve *s)
{
    rv_error err;
    int rc = make_engine(s, &err);
    /* `rival signal` and the like hold the store for a moment, and so does a server that stops. */
    for (int64_t until = rv__mono_ms(rv__clock_real()) + STORE_MS;
         rc == RV_EBUSY && rv__mono_ms(rv__clock_real()) < until &&
         !rv_cancel_wait(s->interrupt, AGAIN_MS);)
        rc = make_engine(s, &err);
    if (rc == RV_EBUSY && rv__store_name_is_address(s->store))
        rc = stand_by(s, &err);
    if (rc == RV_EBUSY && rv_cancel_fired(s->interrupt))
        return CLI_OK; /* without an engine */
    if (rc < 0)
        return rv__cli_fail(
            rc == RV_EINVAL ? CLI_USAGE : CLI_FAILED, err.message,
            rc == RV_EBUSY ? "only one process drives a store: use that one, or another --store"
                           : NULL);
    s->refusal.engine = s->engine;
    if (rv__log_on(s->log, RV__LOG_WARN) && /* otherwise no feed is needed */
        rv_feed_open(s->engine, RV_FEED_OPTS(.no_logs = true), &s->feed, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    return CLI_OK;
}

/* Each connection needs a descriptor, and connections alone would reach the usual limit. */
static void allow_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= OPEN_FILES)
        return;
    files.rlim_cur = files.rlim_max < OPEN_FILES ? files.rlim_max : OPEN_FILES;
    (void)setrlimit(RLIMIT_NOFILE, &files); /* if it fails: fewer connections */
}

static int open_http(struct serve *s)
{
    rv_error err;
    struct rv__server_opts opts = { .listen = s->listen,
                                    .token_file = s->token_file,
                                    .insecure = s->insecure,
                                    .tls_cert = s->tls_cert,
                                    .tls_key = s->tls_key,
                                    .allow_hosts = s->allow_hosts.at,
                                    .log = s->log,
                                    .limits = { .memory_bytes = (size_t)s->memory_bytes,
                                                .disk_bytes = (size_t)s->disk_bytes } };
    if (strcmp(s->listen, NO_HTTP) == 0)
        return CLI_OK;
    allow_files();
    int rc = rv__server_new(s->engine, &opts, &s->server, &err);
    if (rc == RV_OK)
        return CLI_OK;
    return rv__cli_fail(rc == RV_EINVAL ? CLI_USAGE : CLI_FAILED, err.message,
                        rc == RV_EBUSY ? "--listen 127.0.0.1:0 takes a free port, --listen " NO_HTTP
                                         " goes without HTTP"
                                       : NULL);
}

/* Read the workers' tokens from the file. */
static int load_worker_tokens(struct serve *s, rv_error *err)
{
    struct rv__worker_tokens *tokens = NULL, *old;
    int rc = rv__worker_tokens_load(s->token_file, !rv__listens_on_loopback(s->workers), &tokens,
                                    err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&s->tokens_lock);
    old = s->worker_tokens;
    s->worker_tokens = tokens;
    pthread_mutex_unlock(&s->tokens_lock);
    rv__worker_tokens_free(old);
    return RV_OK;
}

/* Check the token of a worker's hello. Thread: one of the engine's. */
static bool admits(void *arg, const char *token, const char *from)
{
    struct serve *s = arg;
    int64_t now_ms = rv__mono_ms(rv__clock_real()), refused = 0;
    pthread_mutex_lock(&s->tokens_lock);
    bool good = rv__worker_tokens_have(s->worker_tokens, token);
    if (!good && ++s->refused > 0 && now_ms - s->refused_ms >= REFUSED_MS) {
        refused = s->refused;
        s->refused = 0;
        s->refused_ms = now_ms;
    }
    pthread_mutex_unlock(&s->tokens_lock);
    if (refused > 0)
        rv__log(s->log, RV__LOG_WARN, "worker refused", RV__LOG_STR("from", from),
                RV__LOG_STR("why", token[0] ? "a wrong token" : "no token"),
                RV__LOG_INT("times", refused));
    return good;
}

static int open_workers(struct serve *s)
{
    rv_error err;
    int rc = RV_OK;
    if (s->workers == NULL)
        return CLI_OK;
    if (s->token_file != NULL)
        rc = load_worker_tokens(s, &err);
    if (rc == RV_OK)
        rc = rv_workers_listen(s->engine,
                               RV_WORKERS_OPTS(.listen = s->workers, .tls_cert = s->tls_cert,
                                               .tls_key = s->tls_key,
                                               .admits = s->token_file != NULL ? admits : NULL,
                                               .arg = s, .url = s->workers_url),
                               &s->workers_port, &err);
    if (rc == RV_OK)
        return CLI_OK;
    return rv__cli_fail(rc == RV_EINVAL ? CLI_USAGE : CLI_FAILED, err.message,
                        rc == RV_EBUSY ? "--workers 127.0.0.1:0 takes a free port" : NULL);
}

static void say_started(const struct serve *s)
{
    if (s->server != NULL) /* without HTTP, clients read the store */
        (void)rv_engine_set_url(s->engine, rv__server_url(s->server), NULL);
    if (s->workers != NULL)
        rv__log(s->log, RV__LOG_INFO, "listening for workers", RV__LOG_STR("address", s->workers),
                RV__LOG_INT("port", s->workers_port), RV__LOG_BOOL("tls", s->tls_cert != NULL),
                RV__LOG_BOOL("token", s->token_file != NULL));
    if (s->server != NULL) {
        rv__log(s->log, RV__LOG_INFO, "listening", RV__LOG_STR("url", rv__server_url(s->server)),
                RV__LOG_BOOL("token", s->token_file != NULL));
        printf("%s\n", rv__server_url(s->server)); /* for the user or program that started us */
        (void)fflush(stdout);
    }
    struct rv__buf store;
    rv__buf_init(&store, SIZE_MAX / 8);
    rv__store_name_shown(s->store, &store);
    rv__log(s->log, RV__LOG_INFO, "serving", RV__LOG_STR("store", store.text),
            RV__LOG_INT("pid", getpid()), RV__LOG_STR("version", rv_version()),
            RV__LOG_INT("workflows", (int64_t)s->served.workflows),
            RV__LOG_INT("running", count_runs(s->engine, RV_RUNNING)),
            RV__LOG_INT("suspended", count_runs(s->engine, RV_SUSPENDED)),
            RV__LOG_BOOL("watching", s->watch));
    rv__buf_done(&store);
    notify("READY=1");
}

/* Wait for running steps. Returns how many have not finished. */
static int stop(struct serve *s)
{
    rv_error why = { .code = 0 };
    rv_event event;
    (void)rv_cancel_cause(s->interrupt, &why);
    notify("STOPPING=1");
    rv__log(s->log, RV__LOG_INFO,
            "stopping: running steps may finish; a second signal exits at once",
            RV__LOG_STR("why", why.message), RV__LOG_INT("graceMs", s->drain_ms));
    int left = rv_engine_close(s->engine);
    while (s->feed != NULL && rv_feed_next(s->feed, 0, NULL, &event, NULL) == RV_OK)
        log_event(s, &event); /* events of this time */
    if (s->server != NULL)
        rv__server_drain(s->server, HTTP_DRAIN_MS);
    return left;
}

/* For a parent program: our standard input ends when the parent closes it or dies. Nothing else is read from it. */
static void *watch_stdin(void *arg)
{
    rv_cancel *interrupt = arg; /* lives as long as the process */
    char ignored[256];
    ssize_t n;
    do
        n = read(STDIN_FILENO, ignored, sizeof ignored);
    while (n > 0 || (n < 0 && errno == EINTR));
    rv_cancel_fire(interrupt, RV_ECANCELED, "standard input was closed");
    return NULL;
}

/* The thread stays in read() until the process exits: it is not joined. */
static bool stop_with_stdin(rv_cancel *interrupt)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch_stdin, interrupt) != 0)
        return false;
    (void)pthread_detach(thread);
    return true;
}

/* Read the token file again. If it is not valid, the tokens stay as they were. */
static void read_tokens(void *arg)
{
    struct serve *s = arg;
    rv_error err;
    int ended = 0;
    if (s->token_file == NULL)
        return;
    if (s->server != NULL)
        ended = rv__server_tokens(s->server, s->token_file, &err);
    if (ended >= 0 && s->workers != NULL) {
        int rc = load_worker_tokens(s, &err);
        ended = rc < 0 ? rc : ended;
        if (rc == RV_OK)
            (void)rv_workers_again(s->engine, NULL); /* the engine is there */
    }
    if (ended < 0)
        rv__log(s->log, RV__LOG_ERROR, "the token file is broken: the old tokens stay valid",
                RV__LOG_STR("problem", err.message));
    else
        rv__log(s->log, RV__LOG_INFO, "tokens loaded again", RV__LOG_STR("file", s->token_file),
                RV__LOG_INT("sessionsEnded", ended));
}

static int serve(struct serve *s)
{
    int code = open_engine(s);
    struct rv__watch *watch = NULL;
    if (code == CLI_OK && s->engine == NULL)
        return CLI_OK;
    if (code == CLI_OK) {
        s->served.engine = s->engine;
        s->served.log = s->log;
        watch = rv__watch_new(&s->served, s->watch);
        code = watch != NULL ? open_http(s) : CLI_FAILED;
    }
    if (code == CLI_OK)
        code = open_workers(s);
    if (code == CLI_OK && !rv__watch_begin(watch, read_tokens, s))
        code = CLI_FAILED;
    if (code == CLI_OK && s->with_stdin && !stop_with_stdin(s->interrupt))
        code = rv__cli_fail(CLI_FAILED, "no thread for standard input", NULL);
    if (code == CLI_OK) {
        say_started(s);
        follow(s);
        code = s->gone ? CLI_GONE : CLI_OK;
    }
    rv__watch_free(watch);
    int left = code == CLI_OK ? stop(s) : s->engine != NULL ? rv_engine_close(s->engine) : 0;
    rv_feed_close(s->feed);
    rv__server_free(s->server);
    if (left == 0) /* else steps are running that cannot be stopped: leave them */
        rv_engine_free(s->engine);
    if (code == CLI_OK)
        rv__log(s->log, RV__LOG_INFO, "stopped; unfinished runs continue at the next start",
                RV__LOG_INT("stepsLeft", left));
    return code;
}

static int block_hangup(void)
{
    sigset_t hup;
    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    return pthread_sigmask(SIG_BLOCK, &hup, NULL);
}

/* Return large freed values to the system. By default glibc raises its threshold after the first one and keeps the
 * following ones in its arenas. */
static void give_back_memory(void)
{
    /* Called before other threads exist; a failure is harmless. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
}

static int run_serve(int argc, char **argv)
{
    static const char *const here[] = { "." };
    struct serve s = { .store = rv__store_default(),
                       .listen = RV__CLI_LISTEN,
                       .log_level = -1,
                       .tokens_lock = PTHREAD_MUTEX_INITIALIZER,
                       .refused_ms = -REFUSED_MS,
                       .drain_ms = DRAIN_MS };
    rv_error err;
    int count = rv__options(&rv__cmd_serve, argc, argv, &s);
    if (count < 0)
        return -count;
    int code = read_all(&s);
    if (code != CLI_OK)
        return code;
    if (s.deny_private && s.allow_private)
        return rv__cli_usage("serve", "give --http-deny-private or --http-allow-private, not both");
    for (int i = 0; i < count; i++)
        if (access(argv[i], F_OK) < 0)
            return rv__cli_usage("serve", "there is no file or folder '%s'", argv[i]);
    give_back_memory();
    (void)block_hangup(); /* before any thread starts: watch.c waits for SIGHUP */
    s.interrupt = rv__cli_interrupt();
    if (s.interrupt == NULL)
        return CLI_FAILED;
    struct rv__log_opts log = { .format = (enum rv__log_format)s.log_format,
                                .level = s.log_level < 0
                                             ? RV__LOG_INFO
                                             : (enum rv__log_level)(RV__LOG_DEBUG + s.log_level) };
    if (rv__log_new(&log, &s.log, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    s.served.paths = count > 0 ? (const char *const *)argv : here;
    s.served.count = count > 0 ? (size_t)count : 1;
    rv__served_init(&s.served);
    code = serve(&s);
    rv__served_done(&s.served);
    rv__worker_tokens_free(s.worker_tokens);
    rv__log_free(s.log);
    return code;
}

static const struct rv__option options[] = {
    { "--store", "FILE", "where runs are kept (" RV__CLI_STORE "), created if missing",
      .completes = COMPLETES_FILE, RV__INTO(struct serve, store) },
    { "--listen", "HOST:PORT",
      "address of the web UI and the HTTP API (" RV__CLI_LISTEN "); port 0 takes "
      "a free port, " NO_HTTP " turns HTTP off",
      RV__INTO(struct serve, listen) },
    { "--workers", "HOST:PORT",
      "address where workers of other machines connect (none); port 0 takes a free port; with "
      "--tls-cert they use TLS, which an address that others can reach needs",
      RV__INTO(struct serve, workers) },
    { "--workers-url", "URL",
      "with a store that several processes serve: how workers reach this one, tls://HOST:PORT or "
      "tcp://HOST:PORT (--workers, unless that is a loopback address)",
      RV__INTO(struct serve, workers_url) },
    { "--token-file", "FILE", "who may log in: lines `viewer|operator|admin|worker TOKEN [NAME]`",
      .completes = COMPLETES_FILE, RV__INTO(struct serve, token_file) },
    { "--insecure",
      .meaning = "need no token at an address that others can reach: anyone can run commands",
      RV__INTO(struct serve, insecure) },
    { "--http-deny-private",
      .meaning = "http steps may not connect to this machine, private networks or link-local "
                 "addresses (the default if others can reach --listen)",
      RV__INTO(struct serve, deny_private) },
    { "--http-allow-private", .meaning = "http steps may connect to them",
      RV__INTO(struct serve, allow_private) },
    { "--tls-cert", "FILE", "use HTTPS with this certificate (PEM)", .completes = COMPLETES_FILE,
      RV__INTO(struct serve, tls_cert) },
    { "--tls-key", "FILE", "the key of the certificate (PEM)", .completes = COMPLETES_FILE,
      RV__INTO(struct serve, tls_key) },
    { "--allow-host", "NAME", "a host name that clients may use for this server; repeat for more",
      RV__INTO(struct serve, allow_hosts) },
    { "--answer-memory", "BYTES",
      "memory for requests, answers and streams that clients have not read yet (256 MiB)",
      RV__INTO(struct serve, answer_memory) },
    { "--answer-disk", "BYTES",
      "disk space for long answers that clients have not read yet, in $TMPDIR or /var/tmp (1 GiB)",
      RV__INTO(struct serve, answer_disk) },
    { "--watch", .meaning = "reload workflow files when they change",
      RV__INTO(struct serve, watch) },
    { "--grace", "DURATION", "how long running steps may continue after SIGTERM (10s)",
      RV__INTO(struct serve, grace) },
    { "--lease", "DURATION",
      "with a store in PostgreSQL, which several processes may serve: how long nothing may be "
      "heard "
      "of this one before the others continue its runs (10s; at least 1s)",
      RV__INTO(struct serve, lease) },
    { "--stop-with-stdin",
      .meaning = "stop when standard input closes: for programs that start this one",
      RV__INTO(struct serve, with_stdin) },
    { "--allow-env", "NAME", "let expressions read this variable, as .env.NAME; repeat for more",
      RV__INTO(struct serve, allow_env) },
    { "--secrets", "FILE", RV__SECRETS_MEANING, .completes = COMPLETES_FILE,
      RV__INTO(struct serve, secrets) },
    { "--config", "FILE", RV__CONFIG_MEANING, .completes = COMPLETES_FILE,
      RV__INTO(struct serve, config) },
    { "--eval-time", "DURATION", RV__EVAL_TIME_MEANING, RV__INTO(struct serve, eval_time) },
    { "--retain-age", "DURATION", "delete runs that ended longer ago (never)",
      RV__INTO(struct serve, retain_age) },
    { "--retain-runs", "N", "keep at most N finished runs (all)",
      RV__INTO(struct serve, retain_runs) },
    { "--retain-bytes", "N", "delete the oldest finished runs when the store is larger (never)",
      RV__INTO(struct serve, retain_bytes) },
    { "--log-level", "LEVEL", "debug, info, warn or error: this level and above (info)",
      .choices = levels, RV__INTO(struct serve, log_level) },
    { "--log-format", "FORMAT", "auto, json or text (auto: text on a terminal, else JSON lines)",
      .choices = formats, RV__INTO(struct serve, log_format) },
    { NULL },
};

const struct rv__command rv__cmd_serve = {
    .name = "serve",
    .section = SECTION_DO,
    .summary = "run all workflows of a store, with a web UI and an HTTP API",
    .arguments = { { "DIR|FILE", .many = true, .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "Registers the workflows of these files and folders (default: the current "
                    "folder), continues every unfinished run of the store, and starts new ones "
                    "when asked. `rival run`, `signal`, `cancel`, `decide`, `complete` and `why` "
                    "with the same --store talk to this process through a socket beside the store.",
                    "The web UI and the HTTP API listen at --listen, by default for this machine "
                    "only. An address that others can reach needs --token-file or --insecure; "
                    "there, `http` steps may not reach private addresses unless "
                    "--http-allow-private is given.",
                    "Workers, in any language, connect to the socket beside the store, or to "
                    "--workers "
                    "with a token of role worker (docs/worker-protocol.md).",
                    "A broken file is reported and the others are served. With --watch, and on "
                    "SIGHUP, files are reloaded: new runs use the new version, existing runs keep "
                    "theirs, and a broken edit changes nothing. SIGHUP also reloads the token "
                    "file.",
                    "The log goes to stderr. On SIGTERM or Ctrl-C no new step starts and running "
                    "steps may finish; the next process continues the rest. A second signal exits "
                    "at once." },
    .examples = { { "rival serve workflows --store orders.db --watch" },
                  { "rival serve workflows --listen 0.0.0.0:7400 --token-file tokens "
                    "--tls-cert cert.pem --tls-key key.pem" },
                  { "rival run order --store orders.db --input '{\"item\": \"desk\"}'",
                    "in another terminal" } },
    .exits = { { CLI_OK, "stopped in order" },
               { CLI_FAILED, "another process has the store, or it cannot be opened" },
               { CLI_GONE, "the store was deleted or replaced while it was served" },
               { CLI_INTERRUPTED, "a second signal" } },
    .run = run_serve,
};
