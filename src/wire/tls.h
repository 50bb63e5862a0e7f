/* tls.h: TLS under a connection, by GnuTLS: one end's keys, and one conversation. Never blocks.
 * Thread: keys are shared by any; a conversation belongs to one thread. */
#ifndef RV_WIRE_TLS_H
#define RV_WIRE_TLS_H

#include <sys/types.h>

#include "wire/wire.h"

struct rv__tls;

/* The side that was connected to has `host` NULL; the other says whom it means to speak with, which the certificate
 * is held to. NULL: no memory. */
struct rv__tls *rv__tls_new(struct rv__tls_keys *keys, int fd, const char *host);
void rv__tls_free(
    struct rv__tls *tls); /* says goodbye, if it can be said at once; NULL is allowed */

/* 1: both know each other; 0: not yet, and *writes says whether the socket has to be writable for it to go on.
 * Errors: RV_EPARSE: the other does not speak TLS, and was told nothing; RV_ECLOSED: it has gone; RV_EINVAL: they do
 * not agree, or the certificate will not do. */
int rv__tls_shake(struct rv__tls *tls, bool *writes, rv_error *err);
/* Some bytes; 0: not now; RV_ECLOSED. */
ssize_t rv__tls_read(struct rv__tls *tls, char *bytes, size_t size);
/* The first of these bytes; 0: not now, and the next call is to begin with the same bytes; RV_ECLOSED. */
ssize_t rv__tls_write(struct rv__tls *tls, const char *bytes, size_t size);

#endif
