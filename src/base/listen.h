/* listen.h: a TCP address for listening, as text: HOST:PORT, [V6]:PORT, :PORT and *:PORT (all addresses). */
#ifndef RV_BASE_LISTEN_H
#define RV_BASE_LISTEN_H

#include <sys/socket.h>

#include <rival/base.h>

struct rv__listen {
    int fd;
    bool loopback; /* only this machine can reach it */
    bool v6;
    uint16_t port;
    char host[256]; /* as given, without brackets; "" = all addresses */
};

/* Open a listening socket; port 0: a free one. Errors: RV_EINVAL, RV_EBUSY (in use by another program), RV_ESYS. */
int rv__listen_open(const char *text, struct rv__listen *ret, rv_error *err);
/* Can only this machine reach it, judged by the text? False for an invalid address. */
bool rv__listens_on_loopback(const char *text);
bool rv__is_loopback(const struct sockaddr *address);
/* Split such a text; `host` is without brackets. Errors: RV_EINVAL. */
int rv__address_split(const char *text, char host[256], char port[6], rv_error *err);

#endif
