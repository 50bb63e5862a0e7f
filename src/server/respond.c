/* respond.c: makes an HTTP response from an answer: its headers, and the owner of its bytes. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "server/exchange.h"

enum { STREAM_BLOCK = 16 << 10 };

/* Nothing from other hosts, no inline scripts or styles, no framing. The UI's libraries set styles through the DOM,
 * which is allowed; the browser tests fail for any that do not. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'";

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_common(struct rv__exchange *x, struct MHD_Response *r)
{
    bool ok = add(r, "Content-Security-Policy", policy) &&
              add(r, "X-Content-Type-Options", "nosniff") && add(r, "X-Frame-Options", "DENY") &&
              add(r, "Referrer-Policy", "no-referrer") &&
              add(r, "Cross-Origin-Opener-Policy", "same-origin") &&
              add(r, "Cross-Origin-Resource-Policy", "same-origin");
    if (ok && x->server->tls)
        ok = add(r, "Strict-Transport-Security", "max-age=31536000");
    if (ok && atomic_load(&x->server->draining))
        ok = add(r, MHD_HTTP_HEADER_CONNECTION, "close");
    return ok;
}

static bool add_session(struct rv__exchange *x, struct MHD_Response *r)
{
    char cookie[256];
    bool ends = strcmp(x->session, "-") == 0;
    if (x->session[0] == '\0')
        return true;
    snprintf(cookie, sizeof cookie,
             RV__COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%lld%s",
             ends ? "" : x->session, (long long)(ends ? 0 : rv__session_seconds()),
             x->server->tls ? "; Secure" : "");
    return add(r, MHD_HTTP_HEADER_SET_COOKIE, cookie);
}

static enum MHD_Result queue(struct rv__exchange *x, int status, struct MHD_Response *r,
                             bool complete)
{
    enum MHD_Result ok = MHD_NO;
    x->phase = RV__EXCHANGE_ANSWERED;
    x->answer.status = status;
    if (r != NULL && complete && add_common(x, r)) {
        rv__visit_phase(&x->server->visits, x->visit,
                        x->stream != NULL || x->mcp != NULL ? RV__VISIT_STREAM : RV__VISIT_SENDING);
        ok = MHD_queue_response(x->connection, (unsigned)status, r);
    }
    if (r != NULL)
        MHD_destroy_response(r);
    return ok; /* NO: the connection is closed */
}

enum MHD_Result rv__respond_whole(struct rv__exchange *x)
{
    struct rv__api_answer *a = &x->answer;
    struct MHD_Response *r;
    if (a->in_file)
        r = MHD_create_response_from_fd64(a->length, a->file);
    else if (a->body != NULL)
        r = MHD_create_response_from_buffer_with_free_callback(a->length, a->body, rv__free);
    else
        r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (r != NULL) { /* the response owns it now; its reservation is released with the exchange */
        a->body = NULL;
        a->in_file = false;
    }
    bool ok = r != NULL && add(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") && add_session(x, r);
    if (ok && a->type != NULL)
        ok = add(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
    if (ok && x->mcp_session[0] != '\0')
        ok = add(r, "Mcp-Session-Id", x->mcp_session);
    if (ok && a->allow != NULL)
        ok = add(r, MHD_HTTP_HEADER_ALLOW, a->allow);
    if (ok && a->status == MHD_HTTP_UNAUTHORIZED)
        ok = add(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"rival\"");
    if (ok &&
        (a->status == MHD_HTTP_TOO_MANY_REQUESTS || a->status == MHD_HTTP_SERVICE_UNAVAILABLE))
        ok = add(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    return queue(x, a->status, r, ok);
}

static ssize_t read_stream(void *arg, uint64_t at, char *ret, size_t max)
{
    (void)at;
    ssize_t n = rv__stream_read(arg, ret, max);
    return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void free_stream(void *arg)
{
    rv__stream_free(arg);
}

/* A response of this type, read piece by piece from `arg`. *taken: the response owns `arg`. */
static enum MHD_Result respond_reader(struct rv__exchange *x, const char *type,
                                      MHD_ContentReaderCallback read,
                                      MHD_ContentReaderFreeCallback done, void *arg, bool *taken)
{
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read,
                                                               arg, done);
    bool ok = r != NULL && add(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) &&
              add(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
              add(r, "X-Accel-Buffering", "no");
    enum MHD_Result result = queue(x, MHD_HTTP_OK, r, ok);
    *taken = r != NULL; /* the response frees it */
    return result;
}

enum MHD_Result rv__respond_stream(struct rv__exchange *x)
{
    bool taken;
    rv__stream_attach(x->stream, x->connection, x->visit->fd);
    enum MHD_Result result = respond_reader(x, "text/event-stream", read_stream, free_stream,
                                            x->stream, &taken);
    if (taken)
        x->stream = NULL;
    return result;
}

static ssize_t read_mcp(void *arg, uint64_t at, char *ret, size_t max)
{
    (void)at;
    ssize_t n = rv__mcp_stream_read(arg, ret, max);
    return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void free_mcp(void *arg)
{
    rv__mcp_stream_free(arg);
}

enum MHD_Result rv__respond_mcp(struct rv__exchange *x)
{
    bool taken;
    enum MHD_Result result = respond_reader(x, rv__mcp_stream_type(x->mcp), read_mcp, free_mcp,
                                            x->mcp, &taken);
    if (taken)
        x->mcp = NULL;
    return result;
}

static bool accepts_gzip(const char *accept_encoding)
{
    const char *at = accept_encoding != NULL ? strstr(accept_encoding, "gzip") : NULL;
    if (at == NULL)
        return false;
    at += strlen("gzip");
    at += strspn(at, " ");
    if (*at != ';')
        return true;
    at += strspn(at, "; q=0."); /* only zeros: not accepted */
    return *at >= '1' && *at <= '9';
}

enum MHD_Result rv__respond_asset(struct rv__exchange *x)
{
    const struct rv__asset *a = x->asset;
    bool same = x->headers.if_none_match != NULL &&
                strstr(x->headers.if_none_match, a->etag) != NULL;
    bool gzip = a->gzip != NULL && accepts_gzip(x->headers.accept_encoding);
    const unsigned char *bytes = gzip ? a->gzip : a->plain;
    struct MHD_Response *r = MHD_create_response_from_buffer(same   ? 0
                                                             : gzip ? a->gzip_len
                                                                    : a->plain_len,
                                                             (void *)(uintptr_t)bytes,
                                                             MHD_RESPMEM_PERSISTENT);
    bool ok = r != NULL && add(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->type) &&
              add(r, MHD_HTTP_HEADER_ETAG, a->etag) &&
              add(r, MHD_HTTP_HEADER_VARY, "Accept-Encoding") &&
              add(r, MHD_HTTP_HEADER_CACHE_CONTROL,
                  a->immutable ? "public, max-age=31536000, immutable" : "no-cache");
    if (ok && gzip && !same)
        ok = add(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    return queue(x, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, r, ok);
}

enum MHD_Result rv__respond_problem(struct rv__exchange *x, int status, const char *detail)
{
    rv__api_answer_done(&x->answer);
    rv__api_problem(status, NULL, detail, &x->answer);
    return rv__respond_whole(x);
}

enum MHD_Result rv__respond_refused(struct rv__exchange *x, int status, const char *detail)
{
    rv__server_refused(x->server, RV__REFUSED_REQUEST, x->visit, detail);
    return rv__respond_problem(x, status, detail);
}
