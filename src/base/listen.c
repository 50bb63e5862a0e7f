/* listen.c: opens a listening socket from a text such as "127.0.0.1:7400". */
#include "base/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

enum { BACKLOG = 511 }; /* connections that the kernel queues until we accept them */

bool rv__is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family == AF_INET6) {
        const struct in6_addr *in = &((const struct sockaddr_in6 *)address)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(in) || (IN6_IS_ADDR_V4MAPPED(in) && in->s6_addr[12] == 127);
    }
    return false;
}

int rv__address_split(const char *text, char ret_host[256], char port[6], rv_error *err)
{
    const char *colon = strrchr(text, ':');
    const char *host = text;
    size_t host_len, port_len;
    if (colon == NULL)
        return rv__fail(err, RV_EINVAL,
                        "'%s' is not an address: use HOST:PORT, as in 127.0.0.1:7400", text);
    host_len = (size_t)(colon - text);
    if (host_len >= 2 && host[0] == '[' && host[host_len - 1] == ']') {
        host++;
        host_len -= 2;
    } else if (memchr(host, ':', host_len) != NULL) {
        return rv__fail(
            err, RV_EINVAL,
            "'%s' is not an address: an IPv6 address is written in brackets, as in [::1]:7400",
            text);
    }
    if (host_len == 1 && host[0] == '*')
        host_len = 0;
    port_len = strlen(colon + 1);
    if (port_len == 0 || port_len > 5 || strspn(colon + 1, "0123456789") != port_len ||
        strtoul(colon + 1, NULL, 10) > UINT16_MAX || host_len >= 256)
        return rv__fail(err, RV_EINVAL, "'%s' is not an address: the port is a number up to 65535",
                        text);
    memcpy(ret_host, host, host_len);
    ret_host[host_len] = '\0';
    memcpy(port, colon + 1, port_len + 1);
    return RV_OK;
}

static int open_socket(const struct addrinfo *at, const char *text, rv_error *err)
{
    int yes = 1;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return rv__fail(err, RV_ESYS, "cannot make a socket for '%s': %m", text);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes,
                     sizeof yes); /* if it fails, bind() reports the error */
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    if (errno == EADDRINUSE)
        rv__fail(err, RV_EBUSY,
                 "another program listens at %s: choose another port, or 0 for a "
                 "free one",
                 text);
    else
        rv__fail(err, RV_ESYS, "cannot listen at %s: %m", text);
    close(fd);
    return err != NULL ? err->code : RV_ESYS;
}

/* Resolve the address. *ret is for freeaddrinfo(). */
static int look_up(const char *text, struct rv__listen *out, struct addrinfo **ret, rv_error *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    char port[6];
    int rc = rv__address_split(text, out->host, port, err);
    if (rc < 0)
        return rc;
    rc = getaddrinfo(out->host[0] != '\0' ? out->host : NULL, port, &hints, ret);
    if (rc != 0)
        return rv__fail(err, RV_EINVAL, "cannot listen at '%s': %s", text, gai_strerror(rc));
    return RV_OK;
}

bool rv__listens_on_loopback(const char *text)
{
    struct addrinfo *found = NULL;
    struct rv__listen out = { .fd = -1 };
    if (look_up(text, &out, &found, NULL) < 0)
        return false;
    bool is = rv__is_loopback(found->ai_addr);
    freeaddrinfo(found);
    return is;
}

int rv__listen_open(const char *text, struct rv__listen *ret, rv_error *err)
{
    struct addrinfo *found = NULL;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } bound;
    socklen_t bound_len = sizeof bound;
    struct rv__listen out = { .fd = -1 };
    rv_error local;
    int rc = look_up(text, &out, &found, err);
    if (rc < 0)
        return rc;

    rc = out.fd = open_socket(found, text, err != NULL ? err : &local);
    freeaddrinfo(found);
    if (rc < 0)
        return rc;
    memset(&bound, 0, sizeof bound);
    if (getsockname(out.fd, &bound.any, &bound_len) != 0) {
        close(out.fd);
        return rv__fail(err, RV_ESYS, "cannot find the port of '%s': %m", text);
    }
    out.v6 = bound.any.sa_family == AF_INET6;
    out.port = ntohs(out.v6 ? bound.v6.sin6_port : bound.v4.sin_port);
    out.loopback = rv__is_loopback(&bound.any);
    *ret = out;
    return RV_OK;
}
