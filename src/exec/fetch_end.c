/* fetch_end.c: translates libcurl's codes into the end of a request, with a message. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exec/fetch.h"

/* libcurl's message, if it has one. */
static const char *words(const struct rv__transfer *t, CURLcode code)
{
    return t->error[0] != '\0' ? t->error : curl_easy_strerror(code);
}

static enum rv__fetch_end say(enum rv__fetch_end end, char *sentence, size_t room, const char *what,
                              const char *why)
{
    (void)snprintf(sentence, room, "%s%s%s", what, why != NULL ? ": " : "", why != NULL ? why : "");
    return end;
}

static enum rv__fetch_end not_connected(const struct rv__transfer *t, CURLcode code, char *sentence,
                                        size_t room)
{
    long error = 0;
    if (t->denied) {
        (void)snprintf(sentence, room, "%s: " RV__DENIED_WORDS, t->denied_address);
        return RV__FETCH_DENIED;
    }
    if (t->socket_errno == ENOMEM)
        return say(RV__FETCH_NO_MEMORY, sentence, room, "no memory for a connection", NULL);
    if (t->socket_errno != 0)
        return say(RV__FETCH_UNREACHABLE, sentence, room, "no file descriptor for a connection",
                   strerrordesc_np(t->socket_errno));
    (void)curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &error);
    if (error == ECONNREFUSED)
        return say(RV__FETCH_REFUSED, sentence, room, "the connection was refused", words(t, code));
    return say(RV__FETCH_UNREACHABLE, sentence, room, "no connection could be made",
               error != 0 ? strerrordesc_np((int)error) : words(t, code));
}

/* One of our own limits was exceeded, or there was no memory. */
static enum rv__fetch_end not_taken(const struct rv__transfer *t, char *sentence, size_t room)
{
    if (t->head.rc == RV_ENOMEM || t->body.rc == RV_ENOMEM)
        return say(RV__FETCH_NO_MEMORY, sentence, room, "no memory for the answer", NULL);
    if (t->unwanted)
        return say(RV__FETCH_CANCELLED, sentence, room, "no more of it was wanted", NULL);
    if (t->unsaved[0] != '\0')
        return say(RV__FETCH_NOT_SAVED, sentence, room, t->unsaved, NULL);
    if (t->head.rc == RV_ETOOBIG)
        (void)snprintf(sentence, room, "the headers of the answer have more than %d bytes",
                       RV__FETCH_HEAD);
    else if (t->saved > 0)
        (void)snprintf(sentence, room,
                       "the body of the answer has more than the %llu bytes that "
                       "can be saved",
                       (unsigned long long)RV__SAVE_MAX_BYTES);
    else
        (void)snprintf(sentence, room,
                       "the body of the answer has more than %zu bytes (`maxBytes` allows more)",
                       t->body.max_bytes);
    return RV__FETCH_TOO_LARGE;
}

/* The connection ended, or the answer is not HTTP: libcurl has one code for both. */
static enum rv__fetch_end not_received(const struct rv__transfer *t, CURLcode code, char *sentence,
                                       size_t room)
{
    if (strstr(t->error, "chunk") != NULL)
        return say(RV__FETCH_BAD_ANSWER, sentence, room, "the answer is not HTTP", words(t, code));
    return say(RV__FETCH_DROPPED, sentence, room, "the connection ended before the answer did",
               words(t, code));
}

/* libcurl also uses this code for a header line that is too long for it. */
static enum rv__fetch_end no_memory(const struct rv__transfer *t, char *sentence, size_t room)
{
    curl_off_t answered = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_STARTTRANSFER_TIME_T, &answered);
    if (answered > 0 && !t->in_body)
        return say(RV__FETCH_TOO_LARGE, sentence, room, "a header of the answer is too long", NULL);
    return say(RV__FETCH_NO_MEMORY, sentence, room, "no memory for the request", NULL);
}

/* libcurl takes the end of a connection as the end of the headers. */
static bool has_whole_head(const struct rv__transfer *t)
{
    struct rv__str head = rv__buf_view(&t->head);
    return head.len >= 2 && head.at[head.len - 1] == '\n' &&
           (head.at[head.len - 2] == '\n' ||
            (head.len >= 3 && head.at[head.len - 2] == '\r' && head.at[head.len - 3] == '\n'));
}

enum rv__fetch_end rv__transfer_end(const struct rv__transfer *t, CURLcode code, char *sentence,
                                    size_t room)
{
    static const CURLcode tls[] = {
        CURLE_SSL_CONNECT_ERROR,     CURLE_PEER_FAILED_VERIFICATION,
        CURLE_SSL_CERTPROBLEM,       CURLE_SSL_CIPHER,
        CURLE_SSL_ISSUER_ERROR,      CURLE_SSL_CACERT_BADFILE,
        CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_INVALIDCERTSTATUS,
        CURLE_SSL_CLIENTCERT,        CURLE_USE_SSL_FAILED,
        CURLE_SSL_SHUTDOWN_FAILED,
    };
    static const CURLcode dropped[] = { CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_SEND_ERROR,
                                        CURLE_RECV_ERROR };
    if (code == CURLE_OK && !has_whole_head(t))
        return say(RV__FETCH_DROPPED, sentence, room, "the connection ended before the answer did",
                   "its headers were not complete");
    if (code == CURLE_OK)
        return say(RV__FETCH_ANSWERED, sentence, room, "", NULL);
    if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY)
        return say(RV__FETCH_DNS, sentence, room, "the name is not known", words(t, code));
    if (code == CURLE_COULDNT_CONNECT)
        return not_connected(t, code, sentence, room);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return say(RV__FETCH_TIMEOUT, sentence, room, "it timed out", words(t, code));
    if (code == CURLE_WRITE_ERROR || code == CURLE_FILESIZE_EXCEEDED)
        return not_taken(t, sentence, room);
    if (code == CURLE_OUT_OF_MEMORY)
        return no_memory(t, sentence, room);
    for (size_t i = 0; i < sizeof tls / sizeof *tls; i++)
        if (code == tls[i])
            return say(RV__FETCH_TLS, sentence, room, "there is no trusted connection (TLS)",
                       words(t, code));
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (code == dropped[i])
            return not_received(t, code, sentence, room);
    return say(RV__FETCH_BAD_ANSWER, sentence, room, "the answer is not HTTP", words(t, code));
}

void rv__transfer_late(const struct rv__transfer *t, char *sentence, size_t room)
{
    curl_off_t ready = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &ready);
    int n = snprintf(sentence, room,
                     "it timed out after %lld ms: ", (long long)t->fetch->timeout_ms);
    size_t used = n > 0 && (size_t)n < room ? (size_t)n : 0;
    char *rest = sentence + used;
    room -= used;
    if (t->waits)
        (void)snprintf(rest, room, "it waited while other host names were looked up, %d at once",
                       RV__FETCH_LOOKUPS);
    else if (t->looking)
        (void)snprintf(rest, room, "its name was still being looked up");
    else if (t->in_body)
        (void)snprintf(rest, room, "%zu bytes of the answer's body had arrived", t->body.len);
    else if (ready > 0)
        (void)snprintf(rest, room, "no answer had arrived");
    else
        (void)snprintf(rest, room, "no connection had been made (or, with https, no TLS on it)");
}

void rv__url_for_people(CURLU *url, char *text, size_t room)
{
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
    (void)curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
    (void)curl_url_get(url, CURLUPART_HOST, &host, 0);
    (void)curl_url_get(url, CURLUPART_PORT, &port, 0);
    (void)curl_url_get(url, CURLUPART_PATH, &path, 0);
    (void)snprintf(text, room, "%s://%s%s%s%s", scheme != NULL ? scheme : "?",
                   host != NULL ? host : "?", port != NULL ? ":" : "", port != NULL ? port : "",
                   path != NULL ? path : "");
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
}
