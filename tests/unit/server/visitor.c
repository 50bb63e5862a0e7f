/* visitor.c: see visitor.h. */
#include "unit/test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/hub.h"
#include "unit/server/visitor.h"

enum { PATIENCE_MS = 60000, HEARD_BYTES = 8 << 20 };

static int step_a(rv_ctx *c)
{
    rv_log_info(c, "a line");
    return rv_return_json(c, "{\"n\":\n1}");
}

static int step_b(rv_ctx *c)
{
    return rv_return(c, "i", 2);
}

static int put_workflows(struct place *p)
{
    rv_workflow *three = rv_workflow_new("three"), *hold = rv_workflow_new("hold");
    rv_add_step(rv_workflow_body(three), "a", step_a, NULL);
    rv_add_step(rv_workflow_body(three), "b", step_b, NULL);
    rv_add_step(rv_workflow_body(three), "c", step_b, NULL);
    rv_add_signal(rv_workflow_body(hold), "wait", "go", 0, NULL);
    int rc = rv_register(p->engine, three, &p->err);
    if (rc == RV_OK)
        rc = rv_register(p->engine, hold, &p->err);
    rv_workflow_free(three);
    rv_workflow_free(hold);
    return rc;
}

int place_setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -1;
    *state = p;
    snprintf(p->folder, sizeof p->folder, "/tmp/rival-server-XXXXXX");
    if (mkdtemp(p->folder) == NULL)
        return -1;
    snprintf(p->store, sizeof p->store, "%s/s.db", p->folder);
    snprintf(p->tokens, sizeof p->tokens, "%s/tokens", p->folder);
    p->heard = calloc(1, HEARD_BYTES + 1);
    if (p->heard == NULL ||
        rv_engine_new(RV_ENGINE_OPTS(.store = p->store), &p->engine, &p->err) < 0)
        return -1;
    return put_workflows(p) < 0 ? -1 : 0;
}

static void *annoy(void *arg)
{
    struct place *p = arg;
    while (atomic_load(&p->annoys)) {
        pthread_mutex_lock(&p->server->hub->lock);
        usleep(200);
        pthread_mutex_unlock(&p->server->hub->lock);
        usleep(20);
    }
    return NULL;
}

void place_annoy(struct place *p)
{
    atomic_store(&p->annoys, true);
    assert_int_equal(pthread_create(&p->annoyer, NULL, annoy, p), 0);
}

void place_calm(struct place *p)
{
    if (atomic_exchange(&p->annoys, false))
        pthread_join(p->annoyer, NULL);
}

int place_teardown(void **state)
{
    struct place *p = *state;
    static const char *const left[] = { "/s.db",      "/s.db-wal",  "/s.db-shm",
                                        "/s.db-lock", "/s.db.lock", "/tokens" };
    place_calm(p);
    for (size_t i = 0; i < p->fd_count; i++)
        close(p->fds[i]);
    if (p->engine != NULL)
        rv_engine_close(p->engine);
    rv__server_free(p->server);
    rv_engine_free(p->engine);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", p->folder, left[i]);
        unlink(path);
    }
    rmdir(p->folder);
    free(p->heard);
    free(p->kept);
    free(p);
    return 0;
}

void place_serve(struct place *p, const struct rv__server_opts *opts)
{
    struct rv__server_opts o = { .listen = NULL };
    if (opts != NULL)
        o = *opts;
    if (o.listen == NULL)
        o.listen = "127.0.0.1:0";
    if (rv__server_new(p->engine, &o, &p->server, &p->err) < 0)
        fail_msg("no server: %s", p->err.message);
    p->port = (unsigned)strtoul(strrchr(rv__server_url(p->server), ':') + 1, NULL, 10);
}

void place_start(struct place *p, const char *workflow, const char *id)
{
    rv_run_info info;
    if (rv_run(p->engine, workflow, "{}", RV_RUN_OPTS(.run_id = id), &info, &p->err) < 0)
        fail_msg("cannot start: %s", p->err.message);
}

void place_end(struct place *p, const char *id)
{
    rv_outcome *outcome = NULL;
    if (rv_wait(p->engine, NULL, id, NULL, &outcome, &p->err) < 0)
        fail_msg("cannot wait: %s", p->err.message);
    rv_outcome_free(outcome);
}

int dial(struct place *p)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)p->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && p->fd_count < sizeof p->fds / sizeof *p->fds);
    p->fds[p->fd_count++] = fd;
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void say(int fd, const char *text)
{
    size_t len = strlen(text);
    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* refused before all of it was said */
        text += n;
        len -= (size_t)n;
    }
}

bool hear(struct place *p, int fd, const char *text)
{
    size_t have = 0;
    int64_t until_ms = rv__mono_ms(rv__clock_real()) + PATIENCE_MS;
    p->heard[0] = '\0';
    for (;;) {
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        if (text != NULL && strstr(p->heard, text) != NULL)
            return true;
        int64_t left_ms = until_ms - rv__mono_ms(rv__clock_real()); /* a stream beats for ever */
        if (left_ms <= 0 || poll(&wait, 1, (int)left_ms) != 1)
            fail_msg("%s did not come; so far: %s", text != NULL ? text : "the end", p->heard);
        ssize_t n = recv(fd, p->heard + have, HEARD_BYTES - have, 0);
        if (n <= 0)
            return false;
        have += (size_t)n;
        p->heard[have] = '\0';
    }
}

int status_in(const char *text)
{
    return strncmp(text, "HTTP/1.1 ", 9) == 0 ? (int)strtol(text + 9, NULL, 10) : 0;
}

bool has(const struct place *p, const char *text)
{
    return strstr(p->heard, text) != NULL;
}

int ask(struct place *p, const char *text)
{
    int fd = dial(p);
    say(fd, text);
    (void)hear(p, fd, NULL);
    close(fd);
    p->fd_count--;
    return status_in(p->heard);
}

int ask_for(struct place *p, const char *what, const char *headers, const char *body)
{
    struct rv__buf text;
    rv__buf_init(&text, 1 << 20);
    rv__buf_fmt(&text, "%s HTTP/1.1\r\nHost: localhost:%u\r\nConnection: close\r\n%s", what,
                p->port, headers != NULL ? headers : "");
    if (body != NULL)
        rv__buf_fmt(&text, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                    strlen(body));
    rv__buf_text(&text, "\r\n");
    rv__buf_text(&text, body != NULL ? body : "");
    assert_int_equal(rv__buf_err(&text, NULL), RV_OK);
    int status = ask(p, text.text);
    rv__buf_done(&text);
    return status;
}
