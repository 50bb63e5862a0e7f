/* multi.c: libcurl says which descriptors to watch and when to wake it; libuv does both.
 *
 * Each socket has a uv_poll_t from its creation to its close. So memory can be missing only at its creation, where
 * it can be reported: the socket is not made. libcurl may also name its own descriptors (a pair for a look-up);
 * these are watched from then on. */
#include "exec/multi.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

struct rv__watched {
    uv_poll_t poll; /* first */
    struct rv__multi *multi;
    bool ours; /* made by rv__multi_socket() */
};

/* ---------------------------------------------------------------------------- descriptors --- */

static void free_watched(uv_handle_t *poll)
{
    rv__free((struct rv__watched *)(void *)poll);
}

static bool make_room(struct rv__multi *m, int fd)
{
    size_t cap = m->cap > 0 ? m->cap : 64;
    while (cap <= (size_t)fd)
        cap *= 2;
    if (cap == m->cap)
        return true;
    struct rv__watched **watched = rv__realloc(m->watched, cap * sizeof *watched);
    if (watched == NULL)
        return false;
    for (size_t i = m->cap; i < cap; i++)
        watched[i] = NULL;
    m->watched = watched;
    m->cap = cap;
    return true;
}

static struct rv__watched *watch(struct rv__multi *m, int fd, bool ours)
{
    struct rv__watched *w = make_room(m, fd) ? rv__zalloc(1, sizeof *w) : NULL;
    if (w == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int rc = uv_poll_init(m->loop, &w->poll, fd);
    if (rc < 0) {
        rv__free(w);
        errno = -rc;
        return NULL;
    }
    w->multi = m;
    w->ours = ours;
    m->watched[fd] = w;
    return w;
}

static void unwatch(struct rv__multi *m, int fd)
{
    struct rv__watched *w = (size_t)fd < m->cap ? m->watched[fd] : NULL;
    if (w == NULL)
        return;
    m->watched[fd] = NULL;
    uv_close((uv_handle_t *)&w->poll, free_watched); /* from here on the loop does not watch fd */
}

curl_socket_t rv__multi_socket(struct rv__multi *m, const struct curl_sockaddr *address)
{
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    if (watch(m, fd, true) == NULL) {
        int error = errno;
        close(fd);
        errno = error;
        return CURL_SOCKET_BAD;
    }
    return fd;
}

int rv__multi_closesocket(void *multi, curl_socket_t fd)
{
    unwatch(multi, fd);
    return close(fd);
}

/* ------------------------------------------------------------------------------- the loop --- */

/* After libcurl has worked: report transfers that are over. */
static void settle(struct rv__multi *m)
{
    const CURLMsg *msg;
    int left;
    while ((msg = curl_multi_info_read(m->curl, &left)) != NULL)
        if (msg->msg == CURLMSG_DONE)
            m->over(m->arg, msg->easy_handle, msg->data.result);
    m->after(m->arg);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    const struct rv__watched *w = (const struct rv__watched *)(const void *)poll;
    struct rv__multi *m = w->multi;
    uv_os_fd_t fd;
    /* libuv reports a reset as an error. Reading says which one it was, and libcurl repeats a request whose reused
     * connection the server had closed: with CURL_CSELECT_ERR it does not. */
    int running, flags = status < 0 ? CURL_CSELECT_IN | CURL_CSELECT_OUT : 0;
    flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    if (uv_fileno((const uv_handle_t *)poll, &fd) < 0)
        return;
    (void)curl_multi_socket_action(m->curl, fd, flags,
                                   &running); /* each transfer has its own error */
    settle(m);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
    struct rv__multi *m = arg;
    struct rv__watched *w = (size_t)fd < m->cap ? m->watched[fd] : NULL;
    (void)easy;
    (void)of_socket;
    if (what == CURL_POLL_REMOVE) {
        if (w != NULL && w->ours)
            (void)uv_poll_stop(&w->poll);
        else
            unwatch(m, fd);
        return 0;
    }
    if (w == NULL)
        w = watch(m, fd, false);
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    if (w != NULL)
        (void)uv_poll_start(&w->poll, events, on_ready);
    return 0; /* not watched for lack of memory: a look-up, for which libcurl also uses its timer */
}

static void on_time(uv_timer_t *timer)
{
    struct rv__multi *m = RV__CONTAINER(timer, struct rv__multi, timer);
    int running;
    (void)curl_multi_socket_action(m->curl, CURL_SOCKET_TIMEOUT, 0, &running);
    settle(m);
}

static int on_timer(CURLM *curl, long ms, void *arg)
{
    struct rv__multi *m = arg;
    (void)curl;
    if (ms < 0)
        return uv_timer_stop(&m->timer);
    uv_update_time(m->loop); /* otherwise it counts from the loop's cached time: too early */
    return uv_timer_start(&m->timer, on_time, (uint64_t)ms, 0);
}

/* ------------------------------------------------------------------------------ life time --- */

int rv__multi_init(struct rv__multi *m, long max_connections, long max_idle, rv_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return rv__fail(err, RV_ESYS, "libcurl does not start");
    m->curl = curl_multi_init();
    if (m->curl == NULL ||
        curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK ||
        curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m) != CURLM_OK ||
        curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, on_timer) != CURLM_OK ||
        curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m) != CURLM_OK ||
        curl_multi_setopt(m->curl, CURLMOPT_MAX_TOTAL_CONNECTIONS, max_connections) != CURLM_OK ||
        curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, max_idle) != CURLM_OK) {
        curl_multi_cleanup(m->curl);
        m->curl = NULL;
        curl_global_cleanup();
        return rv__nomem(err);
    }
    uv_timer_init(m->loop, &m->timer); /* cannot fail */
    return RV_OK;
}

void rv__multi_close(struct rv__multi *m)
{
    if (m->curl == NULL)
        return;
    curl_multi_cleanup(m->curl);
    curl_global_cleanup(); /* reference-counted: other code may use it */
    m->curl = NULL;
    uv_close((uv_handle_t *)&m->timer, NULL);
    for (size_t fd = 0; fd < m->cap; fd++)
        unwatch(m, (int)fd); /* not our sockets: these are closed */
}

void rv__multi_done(struct rv__multi *m)
{
    rv__free(m->watched);
    m->watched = NULL;
    m->cap = 0;
}
