/* multi.h: libcurl's multi interface, driven by the I/O loop. Thread: the loop's only. */
#ifndef RV_EXEC_MULTI_H
#define RV_EXEC_MULTI_H

#include <curl/curl.h>
#include <uv.h>

#include "base/str.h"

struct rv__watched;

struct rv__multi {
    CURLM *curl; /* NULL: not made */
    uv_loop_t *loop;
    uv_timer_t timer;
    struct rv__watched **watched; /* by descriptor */
    size_t cap;
    /* A transfer has ended: it may be removed and started again, or freed. */
    void (*over)(void *arg, CURL *easy, CURLcode code);
    void (*after)(void *arg); /* outside of libcurl's callbacks, after they have run */
    void *arg;
};

/* `multi` is zero except loop, over, after and arg. Errors: RV_ENOMEM, RV_ESYS. */
int rv__multi_init(struct rv__multi *multi, long max_connections, long max_idle, rv_error *err);
/* Ends every connection. All transfers were removed before. `multi` must exist until the loop has ended. */
void rv__multi_close(struct rv__multi *multi);
void rv__multi_done(struct rv__multi *multi); /* after the loop has ended */

/* Make a socket for libcurl that is watched by the loop and closed on exec. It must be closed by
 * rv__multi_closesocket(): set that as CURLOPT_CLOSESOCKETFUNCTION, with the multi as its data. CURL_SOCKET_BAD:
 * see errno. */
curl_socket_t rv__multi_socket(struct rv__multi *multi, const struct curl_sockaddr *address);
int rv__multi_closesocket(void *multi, curl_socket_t fd);

#endif
