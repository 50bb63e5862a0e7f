/* tls.c: TLS by GnuTLS, 1.2 or later.
 *
 * The server has a certificate and asks for none: who comes says who it is in its hello. The client holds the
 * server's certificate to those that the system trusts, or to one file.
 *
 * The first byte of a TLS connection is 22. Somebody who sends frames without TLS sends a length, which begins with
 * another: it is answered in its own language (listen.c), not by an alert that it could not read. */
#include "wire/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"

enum {
    HANDSHAKE = 22,       /* the first byte of a TLS record that begins a conversation */
    RECORD_BYTES = 16384, /* the most that goes into one record */
};
#define VERSIONS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct rv__tls_keys {
    atomic_int refs;
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t versions;
};

struct rv__tls {
    struct rv__tls_keys *keys;
    gnutls_session_t session;
    int fd;
    bool server, looked; /* it has sent the first byte of TLS */
    bool shaken;
    size_t pending; /* bytes that were taken, and are not sent */
};

/* ----------------------------------------------------------------------------------- keys --- */

static int keys_new(struct rv__tls_keys **ret, rv_error *err)
{
    struct rv__tls_keys *keys = rv__zalloc(1, sizeof *keys);
    if (keys == NULL)
        return rv__nomem(err);
    atomic_init(&keys->refs, 1);
    int failed = gnutls_certificate_allocate_credentials(&keys->credentials);
    if (failed == 0)
        failed = gnutls_priority_init(&keys->versions, VERSIONS, NULL);
    if (failed < 0) {
        rv__tls_keys_unref(keys);
        return rv__fail(err, failed == GNUTLS_E_MEMORY_ERROR ? RV_ENOMEM : RV_ESYS,
                        "TLS cannot be used: %s", gnutls_strerror(failed));
    }
    *ret = keys;
    return RV_OK;
}

struct rv__tls_keys *rv__tls_keys_ref(struct rv__tls_keys *keys)
{
    if (keys != NULL)
        atomic_fetch_add_explicit(&keys->refs, 1, memory_order_relaxed);
    return keys;
}

void rv__tls_keys_unref(struct rv__tls_keys *keys)
{
    if (keys == NULL || atomic_fetch_sub_explicit(&keys->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (keys->credentials != NULL)
        gnutls_certificate_free_credentials(keys->credentials);
    if (keys->versions != NULL)
        gnutls_priority_deinit(keys->versions);
    rv__free(keys);
}

static int check_key_file(const char *key, rv_error *err)
{
    struct stat st;
    if (stat(key, &st) < 0)
        return rv__fail(err, RV_EINVAL, "cannot read '%s': %s", key, strerrordesc_np(errno));
    if ((st.st_mode & 077) != 0)
        return rv__fail(err, RV_EINVAL, "others may read or change '%s' (mode %03o): chmod 600 it",
                        key, (unsigned)(st.st_mode & 0777));
    return RV_OK;
}

int rv__tls_server(const char *cert, const char *key, struct rv__tls_keys **ret, rv_error *err)
{
    struct rv__tls_keys *keys = NULL;
    int rc = check_key_file(key, err);
    if (rc == RV_OK)
        rc = keys_new(&keys, err);
    if (rc < 0)
        return rc;
    assert(keys != NULL);
    int failed = gnutls_certificate_set_x509_key_file(keys->credentials, cert, key,
                                                      GNUTLS_X509_FMT_PEM);
    if (failed < 0) {
        rv__tls_keys_unref(keys);
        return rv__fail(err, RV_EINVAL, "the certificate '%s' and the key '%s' cannot be used: %s",
                        cert, key, gnutls_strerror(failed));
    }
    *ret = keys;
    return RV_OK;
}

int rv__tls_client(const char *trusted, struct rv__tls_keys **ret, rv_error *err)
{
    struct rv__tls_keys *keys = NULL;
    int rc = keys_new(&keys, err);
    if (rc < 0)
        return rc;
    assert(keys != NULL);
    int count = trusted != NULL ? gnutls_certificate_set_x509_trust_file(keys->credentials, trusted,
                                                                         GNUTLS_X509_FMT_PEM)
                                : gnutls_certificate_set_x509_system_trust(keys->credentials);
    if (count <= 0) {
        rv__tls_keys_unref(keys);
        return rv__fail(err, RV_EINVAL, "no certificate to trust in %s%s%s",
                        trusted != NULL ? trusted : "the system's store", count < 0 ? ": " : "",
                        count < 0 ? gnutls_strerror(count) : "");
    }
    *ret = keys;
    return RV_OK;
}

/* ---------------------------------------------------------------------------- conversation --- */

static bool is_address(const char *host)
{
    unsigned char room[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, room) == 1 || inet_pton(AF_INET6, host, room) == 1;
}

struct rv__tls *rv__tls_new(struct rv__tls_keys *keys, int fd, const char *host)
{
    struct rv__tls *tls = rv__zalloc(1, sizeof *tls);
    unsigned flags = (host == NULL ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NONBLOCK |
                     GNUTLS_NO_SIGNAL;
    if (tls == NULL || gnutls_init(&tls->session, flags) < 0) {
        rv__free(tls);
        return NULL;
    }
    tls->keys = rv__tls_keys_ref(keys);
    tls->fd = fd;
    tls->server = host == NULL;
    gnutls_transport_set_int(tls->session, fd);
    gnutls_handshake_set_timeout(tls->session, 0); /* whoever made the connection counts the time */
    if (gnutls_priority_set(tls->session, keys->versions) < 0 ||
        gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, keys->credentials) < 0 ||
        (host != NULL && !is_address(host) &&
         gnutls_server_name_set(tls->session, GNUTLS_NAME_DNS, host, strlen(host)) < 0)) {
        rv__tls_free(tls);
        return NULL;
    }
    if (host != NULL)
        gnutls_session_set_verify_cert(tls->session, host, 0);
    return tls;
}

void rv__tls_free(struct rv__tls *tls)
{
    if (tls == NULL)
        return;
    if (tls->shaken)
        (void)gnutls_bye(tls->session, GNUTLS_SHUT_WR); /* the end of the socket says it, too */
    gnutls_deinit(tls->session);
    rv__tls_keys_unref(tls->keys);
    rv__free(tls);
}

/* Has it begun to speak TLS? As rv__tls_shake(). */
static int look_at_first(struct rv__tls *tls, rv_error *err)
{
    unsigned char first;
    ssize_t n;
    do
        n = recv(tls->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n <= 0)
        return rv__fail(err, RV_ECLOSED, "it disconnected before it sent anything");
    if (first != HANDSHAKE)
        return rv__fail(err, RV_EPARSE, "this port speaks TLS: connect with TLS");
    return 1;
}

/* What is wrong with the other's certificate, if that is why. */
static int say_failed(const struct rv__tls *tls, int failed, rv_error *err)
{
    gnutls_datum_t text = { NULL, 0 };
    if (failed == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
        gnutls_certificate_verification_status_print(
            gnutls_session_get_verify_cert_status(tls->session),
            gnutls_certificate_type_get(tls->session), &text, 0) == 0) {
        (void)rv__fail(err, RV_EINVAL, "the server's certificate is not accepted: %.200s",
                       text.data);
        gnutls_free(text.data);
        return RV_EINVAL;
    }
    if (failed == GNUTLS_E_FATAL_ALERT_RECEIVED)
        return rv__fail(err, RV_EINVAL, "TLS: the other side refuses: %s",
                        gnutls_alert_get_name(gnutls_alert_get(tls->session)));
    if (failed == GNUTLS_E_PREMATURE_TERMINATION || failed == GNUTLS_E_PULL_ERROR ||
        failed == GNUTLS_E_PUSH_ERROR)
        return rv__fail(err, RV_ECLOSED, "the connection ended before TLS was agreed upon");
    return rv__fail(err, failed == GNUTLS_E_MEMORY_ERROR ? RV_ENOMEM : RV_EINVAL, "TLS: %s",
                    gnutls_strerror(failed));
}

int rv__tls_shake(struct rv__tls *tls, bool *writes, rv_error *err)
{
    *writes = false;
    if (tls->shaken)
        return 1;
    if (tls->server && !tls->looked) {
        int rc = look_at_first(tls, err);
        if (rc <= 0)
            return rc;
        tls->looked = true;
    }
    int failed;
    do
        failed = gnutls_handshake(tls->session);
    while (failed < 0 && failed != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(failed));
    if (failed == GNUTLS_E_AGAIN) {
        *writes = gnutls_record_get_direction(tls->session) == 1;
        return 0;
    }
    if (failed < 0) {
        (void)gnutls_alert_send_appropriate(tls->session, failed); /* it may have gone */
        return say_failed(tls, failed, err);
    }
    tls->shaken = true;
    return 1;
}

ssize_t rv__tls_read(struct rv__tls *tls, char *bytes, size_t size)
{
    ssize_t n;
    do
        n = gnutls_record_recv(tls->session, bytes, size);
    while (n == GNUTLS_E_INTERRUPTED ||
           (n < 0 && n != GNUTLS_E_AGAIN && n != GNUTLS_E_REHANDSHAKE &&
            !gnutls_error_is_fatal((int)n)));
    if (n > 0)
        return n;
    return n == GNUTLS_E_AGAIN ? 0 : RV_ECLOSED; /* who wants to begin anew does not */
}

ssize_t rv__tls_write(struct rv__tls *tls, const char *bytes, size_t size)
{
    ssize_t n;
    if (size > RECORD_BYTES)
        size = RECORD_BYTES;
    do /* what was taken before and is not sent: GnuTLS has a copy, and wants no other */
        n = tls->pending > 0 ? gnutls_record_send(tls->session, NULL, 0)
                             : gnutls_record_send(tls->session, bytes, size);
    while (n == GNUTLS_E_INTERRUPTED);
    if (n == GNUTLS_E_AGAIN) {
        if (tls->pending == 0)
            tls->pending = size;
        return 0;
    }
    if (n < 0)
        return RV_ECLOSED;
    tls->pending = 0;
    return n;
}
