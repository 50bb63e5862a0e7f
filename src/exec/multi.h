/* multi.h: libcurl's multi interface, driven by the I/O loop. All of it is the loop's thread's. */
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
    /* A transfer is over: it may be removed and begun anew, or freed. */
    void (*over)(void *arg, CURL *easy, CURLcode code);
    void (*after)(void *arg); /* outside of libcurl's callbacks, after each bout of work */
    void *arg;
};

/* `multi` is zero but for loop, over, after and arg. Errors: RV_ENOMEM, RV_ESYS. */
int rv__multi_init(struct rv__multi *multi, long max_connections, long max_idle, rv_error *err);
/* Ends every connection. No transfer is left in it. `multi` stays until the loop has ended. */
void rv__multi_close(struct rv__multi *multi);
void rv__multi_done(struct rv__multi *multi); /* after the loop has ended */

/* A socket for libcurl that is watched and does not survive an exec; it is closed by closesocket, which
 * goes with it: CURLOPT_CLOSESOCKETFUNCTION, with the multi as its data. CURL_SOCKET_BAD: see errno. */
curl_socket_t rv__multi_socket(struct rv__multi *multi, const struct curl_sockaddr *address);
int rv__multi_closesocket(void *multi, curl_socket_t fd);

#endif
