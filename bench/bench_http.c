/* bench_http.c: what a request costs, against libcurl's multi interface used by hand.
 *
 * The server is a process of its own. Asked for /hold/N it answers nobody before N are waiting: so N were
 * under way at the same time, or nothing ends. Posted to, it is a model that answers after two seconds. Asked for anything
 * else it answers at once.
 *
 * By hand: one thread, curl_multi_poll and curl_multi_perform, an easy handle for each request. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "bench.h"
#include "exec/exec.h"

enum {
    ROUNDS = 7,
    REQUESTS = 4000, /* of a round */
    AT_ONCE = 100,
    HELD = 5000,
    QUEUED = 3000,
    BUDGET = 1000, /* connections for these */
    CHATS = 1000,
    THINKS_MS = 2000, /* a model, about an answer */
    LOOKS_MS = 20,    /* between looks at threads and memory */
    READ_BYTES = 4096,
};

static int port;

/* ------------------------------------------------------------------------------ the server --- */

static int *waiting;
static int waiting_count, most_waiting;
static struct {
    int fd;
    int64_t due_ms;
} asked[1 << 16]; /* in order */
static int asked_first, asked_end;

static int64_t now_ms(void)
{
    return rv__mono_ns(rv__clock_real()) / 1000000;
}

static void answer(int fd, int number)
{
    char text[128];
    int n = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n%6d", number);
    (void)!send(fd, text, (size_t)n, MSG_NOSIGNAL);
}

static void answer_all(void)
{
    for (int i = 0; i < waiting_count; i++)
        answer(waiting[i], most_waiting);
    waiting_count = 0;
}

/* Answer those whose time has come. Returns for how many milliseconds nobody is due; -1: nobody waits. */
static int answer_due(void)
{
    static const char body[] =
        "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"late\"},"
        "\"finish_reason\":\"stop\"}],\"model\":\"m\","
        "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}";
    char text[sizeof body + 128];
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                     "%zu\r\n\r\n%s",
                     sizeof body - 1, body);
    for (; asked_first < asked_end; asked_first++) {
        int64_t left = asked[asked_first].due_ms - now_ms();
        if (left > 0)
            return (int)left;
        (void)!send(asked[asked_first].fd, text, (size_t)n, MSG_NOSIGNAL);
    }
    asked_first = asked_end = 0;
    return -1;
}

static void serve(int fd)
{
    char request[READ_BYTES];
    ssize_t n = recv(fd, request, sizeof request - 1,
                     0); /* one request is one piece: they are short */
    if (n <= 0) {
        close(fd);
        return;
    }
    request[n] = '\0';
    if (strncmp(request, "POST ", 5) == 0) {
        asked[asked_end].fd = fd;
        asked[asked_end++].due_ms = now_ms() + THINKS_MS;
        int under_way = asked_end - asked_first;
        most_waiting = under_way > most_waiting ? under_way : most_waiting;
        return;
    }
    if (strncmp(request, "GET ", 4) != 0) /* the rest of a body */
        return;
    if (strncmp(request, "GET /hold/", 10) != 0) {
        answer(fd, most_waiting);
        return;
    }
    long hold = strtol(request + 10, NULL, 10);
    waiting[waiting_count++] = fd;
    most_waiting = waiting_count > most_waiting ? waiting_count : most_waiting;
    if (waiting_count >= hold)
        answer_all();
}

static _Noreturn void server_main(int listener)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = listener }, events[256];
    int epoll = epoll_create1(0);
    waiting = calloc(1 << 16, sizeof *waiting);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (epoll < 0 || waiting == NULL || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0)
        _exit(1);
    for (;;) {
        int n = epoll_wait(epoll, events, 256, answer_due());
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd != listener) {
                serve(events[i].data.fd);
                continue;
            }
            int fd;
            while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                event.data.fd = fd;
                if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
                    _exit(1);
            }
        }
    }
}

static pid_t start_server(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(listener, 1 << 14) < 0 || getsockname(listener, (struct sockaddr *)&at, &size) < 0)
        abort();
    port = ntohs(at.sin_port);
    pid_t pid = fork();
    if (pid == 0)
        server_main(listener);
    close(listener);
    return pid;
}

static const char *url_of(const char *path)
{
    static char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", port, path);
    return url;
}

/* --------------------------------------------------------------------------------- by hand --- */

static size_t ignore(char *bytes, size_t size, size_t count, void *arg)
{
    (void)bytes;
    (void)arg;
    return size * count;
}

static void add(CURLM *multi, const char *url)
{
    CURL *easy = curl_easy_init();
    if (easy == NULL)
        abort();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    curl_multi_add_handle(multi, easy);
}

static int settle(CURLM *multi)
{
    const CURLMsg *msg;
    int left, over = 0;
    while ((msg = curl_multi_info_read(multi, &left)) != NULL) {
        CURL *easy = msg->easy_handle;
        if (msg->data.result != CURLE_OK)
            abort();
        curl_multi_remove_handle(multi, easy);
        curl_easy_cleanup(easy);
        over++;
    }
    return over;
}

static void by_hand(int count, int at_once, const char *path)
{
    CURLM *multi = curl_multi_init();
    const char *url = url_of(path);
    int begun = 0, over = 0, running;
    while (over < count) {
        for (; begun < count && begun - over < at_once; begun++)
            add(multi, url);
        curl_multi_perform(multi, &running);
        int ended = settle(multi);
        over += ended;
        if (ended == 0)
            curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    curl_multi_cleanup(multi);
}

/* ------------------------------------------------------------------------------- the loop --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int under_way;
static struct rv__fetch fetches[HELD];

static void done(struct rv__fetch *fetch, const struct rv__fetch_result *result)
{
    if (result->end != RV__FETCH_ANSWERED || result->status != 200) {
        fprintf(stderr, "%s: %s\n", rv__fetch_end_name(result->end), result->error);
        abort();
    }
    pthread_mutex_lock(&lock);
    under_way--;
    fetch->method = NULL; /* free again */
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void by_loop(struct rv__io *io, int count, int at_once, const char *path)
{
    const char *url = url_of(path);
    pthread_mutex_lock(&lock);
    for (int begun = 0, next = 0; begun < count; begun++) {
        while (under_way == at_once)
            pthread_cond_wait(&changed, &lock);
        while (fetches[next].method != NULL)
            next = (next + 1) % at_once;
        fetches[next] = (struct rv__fetch){ .url = url, .method = "GET", .done = done };
        under_way++;
        if (rv__fetch_start(io, &fetches[next]) < 0)
            abort();
    }
    while (under_way > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------------------------ the engine --- */

static int threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    int count = -2; /* . and .. */
    if (dir == NULL)
        abort();
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static double resident_mb(void)
{
    char text[128] = "", *second;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL)
        abort();
    fclose(file);
    (void)strtol(text, &second, 10);
    return (double)strtol(second, NULL, 10) * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

struct seen {
    int threads;
    double mb, seconds;
    int failed;
    int most; /* that were under way, as the server saw it */
};

/* A file with this text, for unlink(); its name is in static memory. */
static const char *file_of(const char *text)
{
    static char file[64];
    snprintf(file, sizeof file, "/tmp/rival-bench-XXXXXX.yaml");
    int fd = mkostemps(file, 5, O_CLOEXEC);
    if (fd < 0 || dprintf(fd, "%s", text) < 0)
        abort();
    close(fd);
    return file;
}

/* `work`: the step or chat of each. */
static void define(rv_engine *engine, const char *work)
{
    char text[1000];
    rv_error err;
    snprintf(text, sizeof text,
             "name: w\nsteps:\n  - all: { forEach: '${ [range(.input)] }', parallel: true, run: "
             "[ { get: { %s } } ] }\n"
             "  - last: { http: \"http://127.0.0.1:%d/\" }\n",
             work, port);
    const char *file = file_of(text);
    int rc = rv_register_file(engine, file, RV_FILE_OPTS(.replace = true), &err);
    unlink(file);
    if (rc < 0) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
}

static struct seen by_engine_with(int count, const char *work)
{
    struct seen seen = { .mb = 0 };
    rv_engine *engine = NULL;
    rv_outcome *outcome = NULL;
    rv_error err;
    char input[16];
    char config[200];
    snprintf(config, sizeof config,
             "providers: { slow: { kind: openai, baseUrl: 'http://127.0.0.1:%d', model: m, "
             "stream: false } }\n",
             port);
    const char *file = file_of(config);
    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:", .config_file = file), &engine, &err);
    unlink(file);
    if (rc < 0)
        abort();
    define(engine, work);
    snprintf(input, sizeof input, "%d", count);
    double before = resident_mb();
    int64_t begun = rv__mono_ns(rv__clock_real());
    if (rv_run(engine, "w", input, RV_RUN_OPTS(.run_id = "a"), NULL, &err) < 0)
        abort();
    while (rv_wait(engine, NULL, "a", RV_WAIT_OPTS(.timeout_ms = LOOKS_MS), &outcome, &err) ==
           RV_ETIMEDOUT) {
        int now = threads();
        double mb = resident_mb() - before;
        seen.threads = now > seen.threads ? now : seen.threads;
        seen.mb = mb > seen.mb ? mb : seen.mb;
    }
    seen.seconds = (double)(rv__mono_ns(rv__clock_real()) - begun) / 1e9;
    if (outcome == NULL || outcome->status != RV_COMPLETED) {
        fprintf(stderr, "%s\n", outcome != NULL ? outcome->error : err.message);
        seen.failed = count;
    } else {
        const char *last = strstr(outcome->results, "\"last\":");
        const char *data = last != NULL ? strstr(last, "\"data\":") : NULL;
        seen.most = data != NULL ? (int)strtol(data + 7, NULL, 10) : 0;
    }
    rv_outcome_free(outcome);
    rv_engine_free(engine);
    return seen;
}

static struct seen by_engine(int count, const char *path)
{
    char work[200];
    snprintf(work, sizeof work, "http: { url: \"%s\", timeout: 60s }", url_of(path));
    return by_engine_with(count, work);
}

/* -------------------------------------------------------------------------------- figures --- */

static double seconds_of(struct rv__io *io, int count, int at_once, const char *path)
{
    int64_t begun = rv__mono_ns(rv__clock_real());
    if (io == NULL)
        by_hand(count, at_once, path);
    else
        by_loop(io, count, at_once, path);
    return (double)(rv__mono_ns(rv__clock_real()) - begun) / 1e9;
}

static void compare(struct bench *b, struct rv__io *io)
{
    double hand[ROUNDS], loop[ROUNDS], held_hand[ROUNDS], held_loop[ROUNDS];
    char path[32];
    snprintf(path, sizeof path, "/hold/%d", HELD);
    for (int i = -1; i < ROUNDS; i++) {
        double h = seconds_of(NULL, REQUESTS, AT_ONCE, "/"),
               l = seconds_of(io, REQUESTS, AT_ONCE, "/");
        double hh = seconds_of(NULL, HELD, HELD, path), hl = seconds_of(io, HELD, HELD, path);
        if (i < 0)
            continue; /* warm now */
        hand[i] = h;
        loop[i] = l;
        held_hand[i] = hh;
        held_loop[i] = hl;
    }
    double h = bench_median(hand, ROUNDS), l = bench_median(loop, ROUNDS);
    double hh = bench_median(held_hand, ROUNDS), hl = bench_median(held_loop, ROUNDS);
    bench_figure(b, "by hand, 100 at once: a request", h / REQUESTS * 1e6, "us");
    bench_figure(b, "the loop, 100 at once: a request", l / REQUESTS * 1e6, "us");
    bench_goal(b, "the loop / by hand", l / h, "x", false, 1.5);
    bench_figure(b, "by hand, 5000 held at once: all of them", hh, "s");
    bench_figure(b, "the loop, 5000 held at once: all of them", hl, "s");
    bench_goal(b, "the loop / by hand, held", hl / hh, "x", false, 1.5);
}

static void steps(struct bench *b)
{
    char path[32];
    snprintf(path, sizeof path, "/hold/%d", HELD);
    struct seen seen = by_engine(HELD, path);
    bench_goal(b, "5000 http steps at once: failed", seen.failed, "steps", false, 0);
    bench_goal(b, "5000 http steps at once: as the server saw it", seen.most, "requests", true,
               HELD);
    bench_goal(b, "5000 http steps at once: threads", seen.threads, "threads", false, 16);
    bench_figure(b, "5000 http steps at once: memory", seen.mb, "MB");
    bench_figure(b, "5000 http steps at once: memory of each", seen.mb / HELD * 1000, "kB");
    bench_figure(b, "5000 http steps at once: from start to end", seen.seconds, "s");

    struct seen small = by_engine(HELD / 10, "/"), large = by_engine(HELD, "/");
    bench_figure(b, "500 http steps: each", small.seconds / HELD * 1e7, "us");
    bench_goal(b, "5000 / 500 http steps: each", large.seconds / small.seconds / 10, "x", false, 2);
}

/* Of another server, too: how many it has seen at once is then how many chats. */
static void chats(struct bench *b)
{
    pid_t server = start_server();
    struct seen seen = by_engine_with(CHATS, "chat: { provider: slow, prompt: hi }");
    kill(server, SIGKILL);
    bench_goal(b, "1000 chats of 2 s at once: failed", seen.failed, "chats", false, 0);
    bench_goal(b, "1000 chats of 2 s at once: as the server saw it", seen.most, "requests", true,
               CHATS);
    bench_goal(b, "1000 chats of 2 s at once: from start to end", seen.seconds, "s", false, 4);
    bench_goal(b, "1000 chats of 2 s at once: threads", seen.threads, "threads", false, 16);
    bench_figure(b, "1000 chats of 2 s at once: memory", seen.mb, "MB");
}

/* Of another server, which has not seen so many: beyond the descriptors they wait in line. */
static void queueing(struct bench *b, const struct rlimit *limit)
{
    pid_t server = start_server();
    struct rlimit less = *limit;
    char path[32];
    less.rlim_cur = 2 * (rlim_t)BUDGET;
    setrlimit(RLIMIT_NOFILE, &less);
    snprintf(path, sizeof path, "/hold/%d", BUDGET);
    struct seen seen = by_engine(QUEUED, path);
    setrlimit(RLIMIT_NOFILE, limit);
    kill(server, SIGKILL);
    bench_goal(b, "3000 http steps, 2000 descriptors: failed", seen.failed, "steps", false, 0);
    bench_goal(b, "3000 http steps, 2000 descriptors: at once", seen.most, "requests", false,
               BUDGET);
}

int main(int argc, char **argv)
{
    struct bench b;
    struct rlimit limit;
    struct rv__io *io = NULL;
    rv_error err;
    bench_init(&b, "http", argc, argv);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    pid_t server = start_server();
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (rv__io_new(NULL, &io, &err) < 0)
        abort();
    compare(&b, io);
    rv__io_free(io);
    steps(&b);
    kill(server, SIGKILL);
    queueing(&b, &limit);
    chats(&b);
    curl_global_cleanup();
    return bench_done(&b);
}
