/* wire.c: HTTP to a Rival server, by libcurl.
 *
 * Proxies of the environment are used, but never for this machine itself: its servers are the usual case, and a
 * remote proxy could not reach them. Redirects are not followed: a token is sent only to the server that was named. */
#include "cli/wire.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/text.h"

enum {
    CONNECT_MS = 5000,
    ANSWER_MS = 120000,       /* for a whole answer; a server waits less long for a stuck store */
    ANSWER_BYTES = 256 << 20, /* results may be large: 64 MB, and their nodes */
    STALL_S = 30,             /* an answer without progress for this time has failed */
    LOOK_MS = 100,            /* until Ctrl-C is noticed */
    AGAIN_FIRST_MS = 250,     /* before a lost connection is made again, doubled each time up to */
    AGAIN_MOST_MS = 2000,
    ALIVE_INTERVAL_S = 30, /* of TCP keep-alive: detects a server that has vanished */
    MESSAGE_WIDTH = 250,   /* the size of an rv_error */
    SILENCE_MS = 60000,    /* of a stream: a server sends something every 15 s */
};

struct rv__wire {
    CURL *curl;
    struct curl_slist *headers, *json_headers;
    char *url;
    char *no_proxy;
    char message[CURL_ERROR_SIZE];
};

/* -------------------------------------------------------------------------------- the wire --- */

static char *join(const char *a, const char *b)
{
    struct rv__buf text;
    rv__buf_init(&text, 1u << 16);
    rv__buf_text(&text, a);
    rv__buf_text(&text, b);
    char *joined = rv__buf_take(&text);
    rv__buf_done(&text);
    return joined;
}

static bool add_header(struct curl_slist **list, const char *name, const char *value)
{
    char *line = join(name, value);
    struct curl_slist *longer = line != NULL ? curl_slist_append(*list, line) : NULL;
    rv__free(line);
    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

static int check_url(const char *url, rv_error *err)
{
    bool http = strncmp(url, "http://", 7) == 0, https = strncmp(url, "https://", 8) == 0;
    const char *host = url + (https ? 8 : 7);
    if ((!http && !https) || strlen(url) <= (size_t)(host - url) || strpbrk(host, "?#@ ") != NULL)
        return rv__fail(err, RV_EINVAL,
                        "'%.100s' is not the address of a server, like http://127.0.0.1:7400", url);
    return RV_OK;
}

/* Options of every handle. */
static void prepare(struct rv__wire *w, CURL *curl)
{
    const char *ca = getenv("RIVAL_CA_FILE");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L); /* a run's id may be ".." */
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "rival/" RV_VERSION);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, w->no_proxy);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, (long)ALIVE_INTERVAL_S);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, (long)ALIVE_INTERVAL_S);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, w->headers);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, w->message);
    if (ca != NULL && *ca != '\0')
        curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
}

int rv__wire_new(const char *url, const char *token, struct rv__wire **ret, rv_error *err)
{
    int rc = check_url(url, err);
    if (rc < 0)
        return rc;
    const char *others = getenv("no_proxy");
    if (others == NULL)
        others = getenv("NO_PROXY"); /* as libcurl does */
    struct rv__wire *w = rv__zalloc(1, sizeof *w);
    if (w == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        rv__free(w);
        return rv__nomem(err);
    }
    w->url = join(url, "");
    w->no_proxy = join("localhost,127.0.0.1,::1,", others != NULL ? others : "");
    w->curl = curl_easy_init();
    bool good = w->url != NULL && w->no_proxy != NULL && w->curl != NULL;
    if (good && token != NULL)
        good = add_header(&w->headers, "Authorization: Bearer ", token) &&
               add_header(&w->json_headers, "Authorization: Bearer ", token);
    good = good && add_header(&w->json_headers, "Content-Type: application/json", "") &&
           add_header(&w->json_headers, "Expect:", "");
    if (!good) {
        rv__wire_free(w);
        return rv__nomem(err);
    }
    for (size_t len = strlen(w->url); len > 0 && w->url[len - 1] == '/'; len--)
        w->url[len - 1] = '\0';
    *ret = w;
    return RV_OK;
}

void rv__wire_free(struct rv__wire *w)
{
    if (w == NULL)
        return;
    curl_easy_cleanup(w->curl);
    curl_slist_free_all(w->headers);
    curl_slist_free_all(w->json_headers);
    rv__free(w->url);
    rv__free(w->no_proxy);
    rv__free(w);
    curl_global_cleanup();
}

const char *rv__wire_url(const struct rv__wire *w)
{
    return w->url;
}

/* ------------------------------------------------------------------------------- questions --- */

static size_t take_bytes(char *bytes, size_t size, size_t count, void *arg)
{
    struct rv__buf *into = arg;
    rv__buf_add(into, bytes, size * count);
    return into->rc == RV_OK ? size * count : 0;
}

static int went_wrong(const struct rv__wire *w, CURLcode code, rv_error *err)
{
    const char *why = *w->message != '\0' ? w->message : curl_easy_strerror(code);
    switch ((int)code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        return rv__fail(err, RV_ECLOSED, "no server answers at %.100s", w->url);
    case CURLE_OPERATION_TIMEDOUT:
        return rv__fail(err, RV_ETIMEDOUT, "the server at %.80s takes too long: %.100s", w->url,
                        why);
    case CURLE_OUT_OF_MEMORY: return rv__nomem(err);
    default: return rv__fail(err, RV_ESYS, "asking %.80s: %.140s", w->url, why);
    }
}

int rv__wire_ask(struct rv__wire *w, const char *method, const char *path, struct rv__str body,
                 struct rv__buf *answer, rv_error *err)
{
    long status = 0;
    char *url = join(w->url, path);
    if (url == NULL)
        return rv__nomem(err);
    rv__buf_reset(answer);
    answer->max_bytes = ANSWER_BYTES;
    w->message[0] = '\0';
    curl_easy_reset(w->curl); /* keeps the connection */
    prepare(w, w->curl);
    curl_easy_setopt(w->curl, CURLOPT_URL, url);
    curl_easy_setopt(w->curl, CURLOPT_TIMEOUT_MS, (long)ANSWER_MS);
    curl_easy_setopt(w->curl, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(w->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(w->curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
    curl_easy_setopt(w->curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(w->curl, CURLOPT_WRITEDATA, answer);
    if (strcmp(method, "GET") != 0) {
        curl_easy_setopt(w->curl, CURLOPT_HTTPHEADER, w->json_headers);
        curl_easy_setopt(w->curl, CURLOPT_POST, 1L);
        curl_easy_setopt(w->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
        curl_easy_setopt(w->curl, CURLOPT_POSTFIELDS, body.len > 0 ? body.at : "");
    }
    CURLcode code = curl_easy_perform(w->curl);
    rv__free(url);
    if (answer->rc < 0)
        return rv__buf_err(answer, err);
    if (code != CURLE_OK)
        return went_wrong(w, code, err);
    curl_easy_getinfo(w->curl, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static int code_of(int status)
{
    switch (status) {
    case 400:
    case 422: return RV_EINVAL;
    case 404:
    case 410: return RV_ENOTFOUND;
    case 408: return RV_ETIMEDOUT;
    case 409: return RV_ESTATE;
    case 413: return RV_ETOOBIG;
    case 429: return RV_EBUSY;
    case 503: return RV_ECLOSED;
    default: return RV_EFAILED;
    }
}

/* The server's message is about headers; users need the variable and the option. */
static int not_let_in(const struct rv__wire *w, rv_error *err)
{
    return rv__fail(err, code_of(401), "the server at %.80s %s: RIVAL_TOKEN, or --token-file FILE",
                    w->url, w->headers != NULL ? "does not know this token" : "needs a token");
}

int rv__wire_problem(const struct rv__wire *w, int status, struct rv__str answer, rv_error *err)
{
    struct rv__str detail, text;
    struct rv__arena arena;
    struct rv__buf shown;
    int rc = code_of(status);
    rv__arena_init(&arena, 1u << 20);
    rv__buf_init(&shown, 1u << 16);
    if (rv__json_check(answer, RV__JSON_MAX_DEPTH, NULL, NULL) == RV_OK &&
        rv__json_get(answer, "detail", &detail) && rv__json_string(detail, &arena, &text) == RV_OK)
        (void)rv__text_fit(&shown, text, MESSAGE_WIDTH); /* it is printed to a terminal */
    if (shown.len > 0 && status == 401)
        (void)not_let_in(w, err);
    else if (shown.len > 0)
        (void)rv__fail(err, rc, "%s", shown.text);
    else
        (void)rv__fail(err, rc = RV_EFAILED,
                       "what answers there (status %d) is not a server of Rival", status);
    rv__buf_done(&shown);
    rv__arena_done(&arena);
    return rc;
}

/* --------------------------------------------------------------------------------- streams --- */

struct rv__wire_events {
    struct rv__wire *wire;
    CURLM *multi;
    CURL *curl; /* NULL: not connected */
    char *url;
    struct curl_slist *headers; /* of this connection: those of the wire, and the last id */
    char last_id[48];           /* "": none yet */
    struct rv__buf in;          /* received bytes, from `at` on not parsed yet */
    size_t at;
    struct rv__buf data; /* of the event being read */
    struct rv__arena texts;
    void (*lost)(const char *url, const char *why);
    bool told_lost, ended, seen;
    long status;
    int64_t heard_ms; /* when bytes last arrived, or the connection was started */
    int64_t again_ms; /* the wait before the next attempt */
};

static void disconnect(struct rv__wire_events *e)
{
    if (e->curl != NULL) {
        curl_multi_remove_handle(e->multi, e->curl);
        curl_easy_cleanup(e->curl);
    }
    curl_slist_free_all(e->headers);
    e->curl = NULL;
    e->headers = NULL;
}

static int connect_again(struct rv__wire_events *e, rv_error *err)
{
    disconnect(e);
    rv__buf_reset(&e->in);
    rv__buf_reset(&e->data);
    e->at = 0;
    e->status = 0;
    e->curl = curl_easy_init();
    bool good = e->curl != NULL;
    for (struct curl_slist *h = e->wire->headers; good && h != NULL; h = h->next)
        good = add_header(&e->headers, h->data, "");
    if (good && e->last_id[0] != '\0')
        good = add_header(&e->headers, "Last-Event-ID: ", e->last_id);
    good = good && add_header(&e->headers, "Accept: text/event-stream", "");
    if (!good)
        return rv__nomem(err);
    prepare(e->wire, e->curl);
    curl_easy_setopt(e->curl, CURLOPT_URL, e->url);
    curl_easy_setopt(e->curl, CURLOPT_HTTPHEADER, e->headers);
    curl_easy_setopt(e->curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(e->curl, CURLOPT_WRITEDATA, &e->in);
    e->heard_ms = rv__mono_ms(rv__clock_real());
    curl_multi_add_handle(e->multi, e->curl);
    return RV_OK;
}

int rv__wire_follow(struct rv__wire *w, const char *path,
                    void (*lost)(const char *url, const char *why), struct rv__wire_events **ret,
                    rv_error *err)
{
    struct rv__wire_events *e = rv__zalloc(1, sizeof *e);
    if (e == NULL)
        return rv__nomem(err);
    e->wire = w;
    e->lost = lost;
    e->again_ms = AGAIN_FIRST_MS;
    rv__buf_init(&e->in, RV__JSON_MAX_BYTES);
    rv__buf_init(&e->data, RV__JSON_MAX_BYTES);
    rv__arena_init(&e->texts, RV__JSON_MAX_BYTES);
    e->url = join(w->url, path);
    e->multi = curl_multi_init();
    int rc = e->url != NULL && e->multi != NULL ? connect_again(e, err) : rv__nomem(err);
    if (rc < 0) {
        rv__wire_events_free(e);
        return rc;
    }
    *ret = e;
    return RV_OK;
}

void rv__wire_events_free(struct rv__wire_events *e)
{
    if (e == NULL)
        return;
    disconnect(e);
    curl_multi_cleanup(e->multi);
    rv__buf_done(&e->in);
    rv__buf_done(&e->data);
    rv__arena_done(&e->texts);
    rv__free(e->url);
    rv__free(e);
}

/* The value of a line "name: value". */
static bool is_field(struct rv__str line, const char *name, struct rv__str *value)
{
    size_t len = strlen(name);
    if (line.len < len || memcmp(line.at, name, len) != 0)
        return false;
    size_t skip = len + (line.len > len && line.at[len] == ' ');
    *value = (struct rv__str){ line.at + skip, line.len - skip };
    return true;
}

static const char *text_of(struct rv__wire_events *e, const char *key)
{
    struct rv__str value, text;
    if (!rv__json_get(rv__buf_view(&e->data), key, &value) ||
        rv__json_string(value, &e->texts, &text) < 0)
        return "";
    char *copy = rv__arena_dup(&e->texts, text.at, text.len);
    if (copy == NULL)
        return "";
    rv__text_mask(copy);
    return copy;
}

static bool make_event(struct rv__wire_events *e, rv_event *ret)
{
    char *dot = NULL;
    struct rv__str at;
    if (e->data.rc < 0 ||
        rv__json_check(rv__buf_view(&e->data), RV__JSON_MAX_DEPTH, NULL, NULL) < 0)
        return false;
    *ret = (rv_event){ .kind = text_of(e, "kind"),
                       .run_id = text_of(e, "runId"),
                       .workflow = text_of(e, "workflow"),
                       .path = text_of(e, "path"),
                       .json = rv__buf_view(&e->data).at };
    ret->seq = strtoull(e->last_id, &dot, 10);
    if (*dot == '.')
        ret->index = strtoull(dot + 1, NULL, 10);
    if (rv__json_get(rv__buf_view(&e->data), "at", &at))
        (void)rv__json_int(at, &ret->at); /* 0 if it is not a number */
    return true;
}

/* The next complete event; false: none yet. */
static bool read_event(struct rv__wire_events *e, rv_event *ret)
{
    if (e->seen) { /* the caller no longer uses the last one */
        rv__buf_reset(&e->data);
        rv__arena_reset(&e->texts);
        e->seen = false;
    }
    while (e->at < e->in.len) {
        const char *from = e->in.text + e->at;
        const char *newline = memchr(from, '\n', e->in.len - e->at);
        if (newline == NULL)
            break;
        struct rv__str line = { from, (size_t)(newline - from) }, value;
        e->at += line.len + 1;
        if (line.len == 0 && e->data.len > 0) {
            e->seen = true;
            if (make_event(e, ret))
                return true;
            rv__buf_reset(&e->data);
            e->seen = false;
        } else if (is_field(line, "data:", &value)) {
            if (e->data.len > 0)
                rv__buf_char(&e->data, '\n');
            rv__buf_str(&e->data, value);
        } else if (is_field(line, "id:", &value) && value.len < sizeof e->last_id) {
            (void)snprintf(e->last_id, sizeof e->last_id, "%.*s", RV__ARG(value));
        }
    }
    if (e->at > 0) { /* remove what was read */
        size_t left = e->in.len - e->at;
        memmove(e->in.text, e->in.text + e->at, left);
        rv__buf_cut(&e->in, left);
        e->at = 0;
    }
    return false;
}

/* The connection is lost; it is made again later. */
static void is_lost(struct rv__wire_events *e, const char *why)
{
    if (!e->told_lost && e->lost != NULL)
        e->lost(e->wire->url, why);
    e->told_lost = true;
    disconnect(e);
}

/* The connection has ended. RV_OK: it is made again later; else the server refused. */
static int has_ended(struct rv__wire_events *e, CURLcode code, rv_error *err)
{
    curl_easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &e->status);
    if (e->status >= 400 && e->status != 503)
        return rv__wire_problem(e->wire, (int)e->status, rv__buf_view(&e->in), err);
    is_lost(e, code != CURLE_OK ? curl_easy_strerror(code) : "it ended the stream");
    return RV_OK;
}

/* Continue the transfer. RV_OK; else the server refused. */
static int move(struct rv__wire_events *e, rv_error *err)
{
    int running = 0, left = 0;
    size_t had = e->in.len;
    curl_multi_perform(e->multi, &running);
    if (e->in.rc < 0)
        return rv__buf_err(&e->in, err);
    if (e->in.len > had)
        e->heard_ms = rv__mono_ms(rv__clock_real());
    if (e->in.len > had && running > 0) {
        curl_easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &e->status);
        if (e->status == 200) {
            e->told_lost = false;
            e->again_ms = AGAIN_FIRST_MS;
        }
    }
    for (CURLMsg *m = curl_multi_info_read(e->multi, &left); m != NULL;
         m = curl_multi_info_read(e->multi, &left))
        if (m->msg == CURLMSG_DONE)
            return has_ended(e, m->data.result, err);
    /* libcurl's low-speed limit does not fit: the heartbeats of a quiet server are too slow for it. */
    if (rv__mono_ms(rv__clock_real()) - e->heard_ms > SILENCE_MS)
        is_lost(e, "it says nothing any more");
    return RV_OK;
}

int rv__wire_next(struct rv__wire_events *e, int64_t timeout_ms, rv_cancel *by, rv_event *ret,
                  rv_error *err)
{
    int64_t until_ms = rv__mono_ms(rv__clock_real()) + timeout_ms;
    for (;;) {
        if (e->status < 400 && read_event(e, ret))
            return RV_OK;
        int rc = e->curl != NULL ? move(e, err) : RV_OK;
        if (rc < 0)
            return rc;
        if (e->in.len > e->at && e->status < 400 && read_event(e, ret))
            return RV_OK;
        if (rv_cancel_fired(by))
            return rv__fail(err, RV_ECANCELED, "waiting for events was cancelled");
        int64_t left_ms = timeout_ms < 0 ? LOOK_MS : until_ms - rv__mono_ms(rv__clock_real());
        if (left_ms <= 0)
            return rv__fail(err, RV_ETIMEDOUT, "no event in that time");
        if (e->curl != NULL) {
            curl_multi_poll(e->multi, NULL, 0, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS, NULL);
            continue;
        }
        int64_t pause_ms = timeout_ms < 0 || e->again_ms < left_ms ? e->again_ms : left_ms;
        (void)rv_cancel_wait(by, pause_ms);
        e->again_ms = e->again_ms * 2 < AGAIN_MOST_MS ? e->again_ms * 2 : AGAIN_MOST_MS;
        rc = connect_again(e, err);
        if (rc < 0)
            return rc;
    }
}
