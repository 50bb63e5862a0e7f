/* listen.h: a TCP address to listen at, as a text: HOST:PORT, [V6]:PORT, :PORT and *:PORT (every address). */
#ifndef RV_BASE_LISTEN_H
#define RV_BASE_LISTEN_H

#include <sys/socket.h>

#include <rival/base.h>

struct rv__listen {
    int fd;
    bool loopback; /* nobody but this machine can reach it */
    bool v6;
    uint16_t port;
    char host[256]; /* as it was asked for, without brackets; "" = every address */
};

/* A socket that listens there; port 0: a free one. Errors: RV_EINVAL, RV_EBUSY (another program does), RV_ESYS. */
int rv__listen_open(const char *text, struct rv__listen *ret, rv_error *err);
/* Can nobody but this machine reach it, as far as the text tells? False for a text that is no address. */
bool rv__listens_on_loopback(const char *text);
bool rv__is_loopback(const struct sockaddr *address);
/* A text of that form in its parts, of which `host` is without brackets. Errors: RV_EINVAL. */
int rv__address_split(const char *text, char host[256], char port[6], rv_error *err);

#endif
