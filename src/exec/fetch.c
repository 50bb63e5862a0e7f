/* fetch.c: HTTP requests from rv__fetch_start() to `done`; multi.c drives libcurl.
 *
 * No thread waits for an answer. Threads are needed only for names: libcurl starts one for each look-up, so at most
 * RV__FETCH_LOOKUPS transfers look up names at once, and the others wait. libcurl caches names, so a second look-up
 * is quick. An address, and localhost, needs none. A transfer that is ended during its look-up becomes an orphan:
 * its owner is notified at once, but it counts as a look-up until its thread has ended, because that cannot be
 * stopped.
 *
 * Redirects are followed here and not by libcurl, since each may need a look-up. */
#include "exec/fetch.h"

#include "base/outfile.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "exec/io.h"

enum {
    READ_BYTES = 8 << 10, /* libcurl's buffer of each transfer: there may be thousands */
};

struct rv__fetches {
    struct rv__io *io;
    struct rv__chain inbox, cancelled; /* of rv__fetch; under io->lock */
    struct rv__chain waiting, running; /* of rv__transfer */
    int looking;
    bool proxied; /* the environment names a proxy: every connection may need a look-up */
    bool deny_private;
    const char *certificates; /* a file named by the environment; NULL: the system's */
    struct rv__timers deadlines;
    uv_timer_t timer;
    struct rv__multi multi;
};

const char *rv__fetch_end_name(enum rv__fetch_end end)
{
    static const char *const names[RV__FETCH_ENDS] = {
#define X(name, text) [RV__FETCH_##name] = text,
        RV__FETCH_MAP(X)
#undef X
    };
    assert((unsigned)end < RV__FETCH_ENDS);
    return names[end];
}

int64_t rv__fetch_budget(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 > RV__FETCH_CONNECTIONS)
        return RV__FETCH_CONNECTIONS;
    return limit.rlim_cur >= 2 ? (int64_t)limit.rlim_cur / 2 : 1;
}

/* ----------------------------------------------------------------------------- any thread --- */

int rv__fetch_start(struct rv__io *io, struct rv__fetch *f)
{
    int rc = RV_OK;
    if (f->url == NULL || f->method == NULL || f->done == NULL)
        return RV_EINVAL;
    pthread_mutex_lock(&io->lock);
    if (io->closing) {
        rc = RV_ECLOSED;
    } else {
        memset(&f->io, 0, sizeof f->io);
        f->io.started = true;
        f->io.began_ms = rv__mono_ms(rv__clock_real());
        rv__chain_add(&io->fetches->inbox, &f->io.listed);
    }
    pthread_mutex_unlock(&io->lock);
    if (rc == RV_OK)
        rv__io_wake(io);
    return rc;
}

void rv__fetch_cancel(struct rv__io *io, struct rv__fetch *f)
{
    pthread_mutex_lock(&io->lock);
    bool first = f->io.started && !f->io.over && !f->io.cancel_asked;
    if (first) {
        f->io.cancel_asked = true;
        rv__chain_add(&io->fetches->cancelled, &f->io.cancelled);
    }
    pthread_mutex_unlock(&io->lock);
    if (first)
        rv__io_wake(io);
}

/* -------------------------------------------------------------------------------- the end --- */

static void tell_done(struct rv__fetches *all, struct rv__fetch *f,
                      const struct rv__fetch_result *result)
{
    pthread_mutex_lock(&all->io->lock);
    f->io.over = true;
    if (f->io.cancelled.at != NULL)
        rv__chain_remove(&all->cancelled, &f->io.cancelled);
    pthread_mutex_unlock(&all->io->lock);
    f->done(f, result); /* from here on it may be freed */
}

static void transfer_free(struct rv__transfer *t) /* NULL is allowed; in no list */
{
    if (t == NULL)
        return;
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    curl_url_cleanup(t->url);
    curl_url_cleanup(t->first);
    rv__buf_done(&t->head);
    rv__buf_done(&t->body);
    rv__free(t);
}

static void looked_up(struct rv__transfer *t)
{
    t->all->looking -= t->looking;
    t->looking = false;
}

/* Remove it from libcurl and from its list. */
static void take_out(struct rv__transfer *t)
{
    rv__chain_remove(t->waits ? &t->all->waiting : &t->all->running, &t->listed);
    if (!t->waits)
        (void)curl_multi_remove_handle(t->all->multi.curl, t->easy);
    t->waits = false;
    looked_up(t);
}

/* Save only a successful answer, not redirects and errors. */
static bool is_success(const struct rv__transfer *t)
{
    long status = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
}

static bool is_saved(const struct rv__transfer *t)
{
    return t->fetch != NULL && t->fetch->save != NULL && is_success(t);
}

/* Report the end to its owner; the transfer stays. */
static void tell(struct rv__transfer *t, enum rv__fetch_end end, const char *sentence)
{
    struct rv__fetch *f = t->fetch;
    struct rv__fetch_result result = { .end = end,
                                       .head = rv__buf_view(&t->head),
                                       .body = rv__buf_view(&t->body),
                                       .ran_ms = rv__mono_ms(rv__clock_real()) - f->io.began_ms };
    long status = 0;
    (void)snprintf(result.error, sizeof result.error, "%s", sentence);
    if (end == RV__FETCH_ANSWERED)
        (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    result.status = (int)status;
    result.saved = end == RV__FETCH_ANSWERED && is_saved(t);
    rv__timers_disarm(&t->all->deadlines, &t->deadline);
    t->fetch = NULL;
    tell_done(t->all, f, &result);
}

/* End it; not from libcurl's callbacks. */
static void end(struct rv__transfer *t, enum rv__fetch_end end, const char *sentence)
{
    if (t->fetch != NULL)
        tell(t, end, sentence);
    if (t->looking)
        return; /* now an orphan: see on_open_socket(), on_connected() */
    take_out(t);
    transfer_free(t);
}

static void no_memory(struct rv__transfer *t)
{
    end(t, RV__FETCH_NO_MEMORY, "no memory for the request");
}

/* ------------------------------------------------------------------- asked by libcurl --- */

static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct rv__transfer *t = arg;
    (void)purpose;
    looked_up(t);
    if (t->fetch == NULL)
        return CURL_SOCKET_BAD;
    /* This is the address actually connected to, so a name that changes between look-ups cannot bypass the check.
     * The address of a proxy is the operator's choice; the proxy decides what it reaches. */
    if (t->all->deny_private && !t->fetch->trusted && !t->all->proxied &&
        rv__address_private(&address->addr)) {
        t->denied = true;
        rv__address_text(&address->addr, t->denied_address);
        return CURL_SOCKET_BAD;
    }
    curl_socket_t fd = rv__multi_socket(&t->all->multi, address);
    t->socket_errno = fd == CURL_SOCKET_BAD ? errno : 0;
    return fd;
}

static int on_connected(void *arg, char *to_ip, char *from_ip, int to_port, int from_port)
{
    struct rv__transfer *t = arg;
    (void)to_ip;
    (void)from_ip;
    (void)to_port;
    (void)from_port;
    looked_up(t); /* it reuses an open connection */
    return t->fetch != NULL ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
    struct rv__transfer *t = arg;
    size_t len = size * count;
    if (t->in_body)
        return len; /* a trailer: not used */
    if (len > 5 && memcmp(line, "HTTP/", 5) == 0)
        rv__buf_reset(&t->head); /* earlier lines were of a "100 Continue", or of a proxy */
    rv__buf_add(&t->head, line, len);
    if (t->head.rc != RV_OK)
        return 0;
    if (len <= 2 && t->fetch != NULL && t->fetch->received != NULL && is_success(t))
        t->unwanted = !t->fetch->received(t->fetch, rv__buf_view(&t->head), rv__str(""));
    return t->unwanted ? 0 : len;
}

static bool save(struct rv__transfer *t, struct rv__str bytes)
{
    rv_error err;
    t->saved += bytes.len;
    if (t->saved > RV__SAVE_MAX_BYTES) {
        t->body.rc = RV_ETOOBIG;
        return false;
    }
    if (rv__outfile_write(t->fetch->save, bytes, &err) == RV_OK)
        return true;
    (void)snprintf(t->unsaved, sizeof t->unsaved, "%s", err.message);
    return false;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct rv__transfer *t = arg;
    t->in_body = true;
    if (is_saved(t))
        return save(t, (struct rv__str){ bytes, size * count }) ? size * count : 0;
    if (t->fetch != NULL && t->fetch->received != NULL && is_success(t)) {
        t->unwanted = !t->fetch->received(t->fetch, rv__buf_view(&t->head),
                                          (struct rv__str){ bytes, size * count });
        return t->unwanted ? 0 : size * count;
    }
    rv__buf_add(&t->body, bytes, size * count);
    if (t->body.rc != RV_OK)
        return 0;
    if (t->fetch != NULL && t->fetch->came != NULL && is_success(t))
        t->fetch->came(t->fetch, rv__buf_view(&t->head), rv__buf_view(&t->body));
    return size * count;
}

/* -------------------------------------------------------------------------------- to begin --- */

static bool is_header(const char *line, const char *name)
{
    size_t len = strlen(name);
    return strncasecmp(line, name, len) == 0 && line[len] == ':';
}

/* May another host than the first see this header? Only known headers that do not identify the caller: any other
 * header may hold a key. */
static bool is_public(const char *line)
{
    static const char *const names[] = { "Accept",
                                         "Accept-Charset",
                                         "Accept-Encoding",
                                         "Accept-Language",
                                         "Cache-Control",
                                         "Content-Encoding",
                                         "Content-Language",
                                         "Content-Type",
                                         "Expect",
                                         "If-Match",
                                         "If-Modified-Since",
                                         "If-None-Match",
                                         "If-Range",
                                         "If-Unmodified-Since",
                                         "Pragma",
                                         "Range",
                                         "User-Agent" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_header(line, names[i]))
            return true;
    return false;
}

static bool add_header(struct rv__transfer *t, const char *line)
{
    struct curl_slist *more = curl_slist_append(t->headers, line);
    if (more == NULL)
        return false;
    t->headers = more;
    return true;
}

static bool make_headers(struct rv__transfer *t)
{
    bool expect = false, type = false, good = true;
    curl_slist_free_all(t->headers);
    t->headers = NULL;
    for (const char *const *h = t->fetch->headers; good && h != NULL && *h != NULL; h++) {
        if ((t->foreign && !is_public(*h)) || (t->as_get && strncasecmp(*h, "Content-", 8) == 0))
            continue;
        expect = expect || is_header(*h, "Expect");
        type = type || is_header(*h, "Content-Type");
        good = add_header(t, *h);
    }
    /* suppress libcurl's own: Expect delays a large body by a second; a type without a body is wrong */
    return good && (expect || add_header(t, "Expect:")) && (type || add_header(t, "Content-Type:"));
}

#define SET(option, value) (curl_easy_setopt(t->easy, option, value) == CURLE_OK)

/* Options that stay the same after a redirect. */
static bool set_up(struct rv__transfer *t)
{
    const struct rv__fetches *all = t->all;
    return SET(CURLOPT_PRIVATE, t) && SET(CURLOPT_ERRORBUFFER, t->error) &&
           SET(CURLOPT_NOSIGNAL, 1L) && SET(CURLOPT_QUICK_EXIT, 1L) &&
           SET(CURLOPT_PROTOCOLS_STR, "http,https") && SET(CURLOPT_BUFFERSIZE, (long)READ_BYTES) &&
           SET(CURLOPT_USERAGENT, "rival/" RV_VERSION) && SET(CURLOPT_ACCEPT_ENCODING, "") &&
           SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) && SET(CURLOPT_PIPEWAIT, 0L) &&
           SET(CURLOPT_MAXFILESIZE_LARGE, t->fetch->save != NULL ? (curl_off_t)RV__SAVE_MAX_BYTES
                                          : t->fetch->received != NULL
                                              ? (curl_off_t)0
                                              : (curl_off_t)t->body.max_bytes) &&
           SET(CURLOPT_OPENSOCKETFUNCTION, on_open_socket) && SET(CURLOPT_OPENSOCKETDATA, t) &&
           SET(CURLOPT_CLOSESOCKETFUNCTION, rv__multi_closesocket) &&
           SET(CURLOPT_CLOSESOCKETDATA, &t->all->multi) &&
           SET(CURLOPT_PREREQFUNCTION, on_connected) && SET(CURLOPT_PREREQDATA, t) &&
           SET(CURLOPT_HEADERFUNCTION, on_header) && SET(CURLOPT_HEADERDATA, t) &&
           SET(CURLOPT_WRITEFUNCTION, on_body) && SET(CURLOPT_WRITEDATA, t) &&
           (all->certificates == NULL || SET(CURLOPT_CAINFO, all->certificates));
}

static bool has_body(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "PATCH") == 0;
}

/* Options for the current address. */
static bool direct(struct rv__transfer *t)
{
    const struct rv__fetch *f = t->fetch;
    const char *method = t->as_get ? "GET" : f->method;
    bool good = make_headers(t) && SET(CURLOPT_CURLU, t->url) && SET(CURLOPT_HTTPGET, 1L);
    if (good && !t->as_get && !rv__str_none(f->body))
        good = SET(CURLOPT_POSTFIELDS, f->body.at) &&
               SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)f->body.len);
    else if (good && has_body(method))
        good = SET(CURLOPT_POSTFIELDS, "") && SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
    else if (good && strcmp(method, "HEAD") == 0)
        good = SET(CURLOPT_NOBODY, 1L);
    t->error[0] = '\0';
    return good && SET(CURLOPT_CUSTOMREQUEST, method) && SET(CURLOPT_HTTPHEADER, t->headers);
}

/* Does its host need a look-up? */
static bool is_named(const struct rv__transfer *t)
{
    struct in_addr address;
    char *host = NULL;
    bool named = true;
    if (t->all->proxied)
        return true;
    if (curl_url_get(t->url, CURLUPART_HOST, &host, 0) == CURLUE_OK)
        named = host[0] != '[' && inet_pton(AF_INET, host, &address) != 1 &&
                strcasecmp(host, "localhost") != 0;
    curl_free(host);
    return named;
}

static void launch(struct rv__transfer *t, bool named)
{
    struct rv__fetches *all = t->all;
    assert(t->fetch != NULL); /* an orphan is not started again */
    t->looking = named;
    all->looking += named;
    rv__chain_add(&all->running, &t->listed);
    if (!direct(t) || curl_multi_add_handle(all->multi.curl, t->easy) != CURLM_OK) {
        looked_up(t); /* no thread was started: no orphan */
        no_memory(t);
    }
}

static void launch_or_wait(struct rv__transfer *t)
{
    bool named = is_named(t);
    if (named && t->all->looking >= RV__FETCH_LOOKUPS) {
        t->waits = true;
        rv__chain_add(&t->all->waiting, &t->listed);
    } else {
        launch(t, named);
    }
}

/* Is the host a literal private address? A proxy would be asked for it. */
static bool names_private(CURLU *url)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    char *host = NULL;
    bool is = false;
    if (curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        return false;
    size_t len = strlen(host);
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        is = rv__address_private((const struct sockaddr *)&v4);
    } else if (len > 2 && host[0] == '[') {
        host[len - 1] = '\0';
        is = inet_pton(AF_INET6, host + 1, &v6.sin6_addr) == 1 &&
             rv__address_private((const struct sockaddr *)&v6);
    } else {
        is = strcasecmp(host, "localhost") == 0 ||
             (len > 10 && strcasecmp(host + len - 10, ".localhost") == 0);
    }
    curl_free(host);
    return is;
}

/* Parse a URL and check that we may request it; RV__FETCH_ANSWERED: yes. */
static enum rv__fetch_end take_url(const struct rv__transfer *t, CURLU *url, const char *text,
                                   const char **why)
{
    char *scheme = NULL;
    CURLUcode rc = curl_url_set(url, CURLUPART_URL, text, CURLU_ALLOW_SPACE | CURLU_URLENCODE);
    if (rc == CURLUE_OK)
        rc = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
    bool ours = rc == CURLUE_OK && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    curl_free(scheme);
    if (rc == CURLUE_OUT_OF_MEMORY)
        return RV__FETCH_NO_MEMORY;
    if (rc != CURLUE_OK || !ours) {
        *why = rc == CURLUE_OK ? "only http and https are supported" : curl_url_strerror(rc);
        return RV__FETCH_BAD_URL;
    }
    if (t->all->deny_private && !t->fetch->trusted && names_private(url)) {
        *why = RV__DENIED_WORDS;
        return RV__FETCH_DENIED;
    }
    return RV__FETCH_ANSWERED;
}

/* Start a request from the inbox. */
static void admit(struct rv__fetches *all, struct rv__fetch *f)
{
    struct rv__fetch_result result = { .end = RV__FETCH_NO_MEMORY };
    const char *why = "no memory for the request";
    struct rv__transfer *t = rv__zalloc(1, sizeof *t);
    result.head = result.body = (struct rv__str){ "", 0 };
    if (t != NULL) {
        t->all = all;
        t->fetch = f;
        rv__buf_init(&t->head, RV__FETCH_HEAD);
        rv__buf_init(&t->body, f->max_bytes != 0 ? f->max_bytes : RV__FETCH_BYTES);
        t->easy = curl_easy_init();
        t->url = curl_url();
        if (t->easy != NULL && t->url != NULL && set_up(t))
            result.end = take_url(t, t->url, f->url, &why);
        if (result.end == RV__FETCH_ANSWERED) {
            t->first = curl_url_dup(t->url);
            if (t->first == NULL ||
                (f->timeout_ms > 0 &&
                 rv__timers_arm(&all->deadlines, &t->deadline, f->io.began_ms + f->timeout_ms) < 0))
                result.end = RV__FETCH_NO_MEMORY;
        }
    }
    if (result.end != RV__FETCH_ANSWERED) {
        (void)snprintf(result.error, sizeof result.error, "%s", why);
        transfer_free(t);
        tell_done(all, f, &result);
        return;
    }
    f->io.transfer = t;
    if (f->begun != NULL)
        f->begun(f);
    launch_or_wait(t);
}

/* ------------------------------------------------------------------------------ redirects --- */

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
    char *x = NULL, *y = NULL;
    bool same = curl_url_get(a, part, &x, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl_url_get(b, part, &y, CURLU_DEFAULT_PORT) == CURLUE_OK && strcasecmp(x, y) == 0;
    curl_free(x);
    curl_free(y);
    return same;
}

/* True: it was redirected, or has ended because that failed. */
static bool redirected(struct rv__transfer *t)
{
    char *to = NULL, from[120], sentence[320];
    const char *why = "";
    long status = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &to);
    if (to == NULL ||
        (status != 301 && status != 302 && status != 303 && status != 307 && status != 308))
        return false;
    rv__url_for_people(t->url, from, sizeof from);
    CURLU *url = curl_url();
    enum rv__fetch_end good = url != NULL ? take_url(t, url, to, &why) : RV__FETCH_NO_MEMORY;
    if (good == RV__FETCH_ANSWERED && t->redirects == RV__FETCH_REDIRECTS) {
        (void)snprintf(sentence, sizeof sentence,
                       "it was redirected more than %d times, perhaps in a loop; last from %s",
                       RV__FETCH_REDIRECTS, from);
        good = RV__FETCH_BAD_URL;
    } else if (good == RV__FETCH_BAD_URL || good == RV__FETCH_DENIED) {
        (void)snprintf(sentence, sizeof sentence,
                       "%s redirects to an address that cannot be used: %s", from, why);
    }
    if (good != RV__FETCH_ANSWERED) {
        curl_url_cleanup(url);
        if (good == RV__FETCH_NO_MEMORY)
            no_memory(t);
        else
            end(t, good == RV__FETCH_DENIED ? good : RV__FETCH_REDIRECT, sentence);
        return true;
    }
    bool post = strcmp(t->fetch->method, "POST") == 0;
    take_out(t);
    t->redirects++;
    t->as_get = t->as_get || (status == 303 && strcmp(t->fetch->method, "HEAD") != 0) ||
                (post && (status == 301 || status == 302));
    curl_url_cleanup(t->url);
    t->url = url;
    t->foreign = !same_part(t->first, url, CURLUPART_SCHEME) ||
                 !same_part(t->first, url, CURLUPART_HOST) ||
                 !same_part(t->first, url, CURLUPART_PORT);
    t->in_body = false;
    rv__buf_reset(&t->head);
    rv__buf_reset(&t->body);
    launch_or_wait(t);
    return true;
}

/* ------------------------------------------------------------------------------ loop's thread --- */

static void on_over(void *arg, CURL *easy, CURLcode code)
{
    char *private = NULL, sentence[320] = "";
    (void)arg;
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    struct rv__transfer *t = (struct rv__transfer *)(void *)private;
    looked_up(t);
    if (t->fetch != NULL && code == CURLE_OK && redirected(t))
        return;
    end(t, t->fetch != NULL ? rv__transfer_end(t, code, sentence, sizeof sentence) : 0, sentence);
}

static void on_deadline(uv_timer_t *timer);

static void arm(struct rv__fetches *all)
{
    const struct rv__timer *first = rv__timers_first(&all->deadlines);
    int64_t wait = first != NULL ? first->due - rv__mono_ms(rv__clock_real()) : -1;
    if (first == NULL) {
        uv_timer_stop(&all->timer);
        return;
    }
    uv_update_time(&all->io->loop);
    uv_timer_start(&all->timer, on_deadline, wait > 0 ? (uint64_t)wait : 0, 0);
}

static void after(void *arg)
{
    struct rv__fetches *all = arg;
    while (all->waiting.first != NULL && all->looking < RV__FETCH_LOOKUPS) {
        struct rv__transfer *t = RV__CONTAINER(all->waiting.first, struct rv__transfer, listed);
        rv__chain_remove(&all->waiting, &t->listed);
        t->waits = false;
        launch(t, true);
    }
    arm(all);
    if (rv__fetches_idle(all))
        rv__io_wake(all->io); /* the end of the loop may have waited for this */
}

static void on_deadline(uv_timer_t *timer)
{
    struct rv__fetches *all = RV__CONTAINER(timer, struct rv__fetches, timer);
    struct rv__timer *due;
    while ((due = rv__timers_pop_due(&all->deadlines, rv__mono_ms(rv__clock_real()))) != NULL) {
        struct rv__transfer *t = RV__CONTAINER(due, struct rv__transfer, deadline);
        char sentence[320];
        rv__transfer_late(t, sentence, sizeof sentence);
        end(t, RV__FETCH_TIMEOUT, sentence);
    }
    after(all);
}

static void end_cancelled(struct rv__fetches *all)
{
    for (;;) {
        pthread_mutex_lock(&all->io->lock);
        struct rv__link *first = all->cancelled.first;
        struct rv__transfer *t =
            first != NULL ? RV__CONTAINER(first, struct rv__fetch, io.cancelled)->io.transfer
                          : NULL;
        if (t != NULL)
            rv__chain_remove(&all->cancelled, first);
        pthread_mutex_unlock(&all->io->lock);
        if (t == NULL) /* none; or still in the inbox: see the next turn */
            return;
        end(t, RV__FETCH_CANCELLED, "it was cancelled");
    }
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0';
}

/* Set up libcurl, with the first request. */
static int make_multi(struct rv__fetches *all, rv_error *err)
{
    static const char *const proxies[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                           "ALL_PROXY" };
    if (all->multi.curl != NULL)
        return RV_OK;
    all->multi = (struct rv__multi){
        .loop = &all->io->loop, .over = on_over, .after = after, .arg = all
    };
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
        all->proxied = all->proxied || is_set(proxies[i]);
    all->certificates = is_set("SSL_CERT_FILE") ? getenv("SSL_CERT_FILE") : NULL;
    return rv__multi_init(&all->multi, (long)rv__fetch_budget(), RV__FETCH_IDLE, err);
}

void rv__fetches_turn(struct rv__fetches *all, bool closing)
{
    struct rv__chain taken;
    rv_error err;
    rv__chain_init(&taken);
    pthread_mutex_lock(&all->io->lock);
    rv__chain_move(&taken, &all->inbox);
    pthread_mutex_unlock(&all->io->lock);
    int rc = taken.first != NULL ? make_multi(all, &err) : RV_OK;
    while (taken.first != NULL) {
        struct rv__fetch *f = RV__CONTAINER(taken.first, struct rv__fetch, io.listed);
        rv__chain_remove(&taken, &f->io.listed);
        if (rc == RV_OK) {
            admit(all, f);
            continue;
        }
        struct rv__fetch_result result = { .end = RV__FETCH_NO_MEMORY };
        result.head = result.body = (struct rv__str){ "", 0 };
        (void)snprintf(result.error, sizeof result.error, "%s", err.message);
        tell_done(all, f, &result);
    }
    end_cancelled(all);
    struct rv__chain *const lists[] = { &all->waiting, &all->running };
    for (size_t i = 0; closing && i < 2; i++)
        while (lists[i]->first != NULL) {
            struct rv__transfer *t = RV__CONTAINER(lists[i]->first, struct rv__transfer, listed);
            looked_up(t); /* its thread ends by itself: do not wait for it */
            end(t, RV__FETCH_CANCELLED, "the engine closes");
        }
    if (all->multi.curl != NULL)
        arm(all);
}

bool rv__fetches_idle(const struct rv__fetches *all)
{
    return all->waiting.first == NULL && all->running.first == NULL;
}

void rv__fetches_close(struct rv__fetches *all)
{
    rv__multi_close(&all->multi);
    uv_close((uv_handle_t *)&all->timer, NULL);
}

int rv__fetches_new(struct rv__io *io, bool deny_private, struct rv__fetches **ret, rv_error *err)
{
    struct rv__fetches *all = rv__zalloc(1, sizeof *all);
    if (all == NULL)
        return rv__nomem(err);
    all->io = io;
    all->deny_private = deny_private;
    rv__chain_init(&all->inbox);
    rv__chain_init(&all->cancelled);
    rv__chain_init(&all->waiting);
    rv__chain_init(&all->running);
    rv__timers_init(&all->deadlines);
    uv_timer_init(&io->loop, &all->timer); /* cannot fail */
    *ret = all;
    return RV_OK;
}

void rv__fetches_free(struct rv__fetches *all)
{
    if (all == NULL)
        return;
    rv__multi_done(&all->multi);
    rv__timers_done(&all->deadlines);
    rv__free(all);
}
