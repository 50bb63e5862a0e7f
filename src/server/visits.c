/* visits.c: connections and their addresses: limits on number, time and rate.
 *
 * libmicrohttpd has a time-out for silence only: a client that sends a byte now and then would stay for ever. So
 * each phase of a connection has a time limit, and the keeper cuts off late ones. A connection is listed here from
 * its accept until just before its socket is closed, so that the socket can be shut down under the lock without
 * hitting another one with the same number. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "server/transport.h"

enum {
    BUCKETS = 1024,
    ADDRESSES_MAX = 4096, /* remembered; those without a connection are dropped first */
    GUESSES = 10,         /* wrong tokens from one address within GUESSES_MS */
    GUESSES_MS = 60000,   /* see above */
    FORGET_MS = 2 * GUESSES_MS,
};

struct rv__address {
    struct rv__address *next, **link;
    unsigned char bytes[16]; /* IPv4 as ::ffff:a.b.c.d; IPv6: the network, /64 */
    size_t connections;
    double requests; /* still allowed now */
    int64_t seen_ms;
    uint32_t guesses; /* wrong tokens since guesses_ms */
    int64_t guesses_ms;
};

int rv__visits_init(struct rv__visits *visits, const struct rv__server_limits *limits,
                    rv_error *err)
{
    *visits = (struct rv__visits){ .limits = *limits };
    visits->buckets = rv__zalloc(BUCKETS, sizeof(struct rv__address *));
    if (visits->buckets == NULL)
        return rv__nomem(err);
    if (pthread_mutex_init(&visits->lock, NULL) != 0) {
        rv__free(visits->buckets);
        visits->buckets = NULL;
        return rv__fail(err, RV_ESYS, "cannot make a lock: %m");
    }
    return RV_OK;
}

static void forget(struct rv__visits *visits, struct rv__address *a)
{
    *a->link = a->next;
    if (a->next != NULL)
        a->next->link = a->link;
    visits->addresses--;
    rv__free(a);
}

void rv__visits_done(struct rv__visits *visits)
{
    if (visits->buckets == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (visits->buckets[i] != NULL)
            forget(visits, visits->buckets[i]);
    rv__free(visits->buckets);
    visits->buckets = NULL;
    pthread_mutex_destroy(&visits->lock);
}

/* ------------------------------------------------------------------------------- addresses --- */

static void address_bytes(const struct sockaddr *from, unsigned char ret[16])
{
    memset(ret, 0, 16);
    if (from != NULL && from->sa_family == AF_INET) {
        ret[10] = ret[11] = 0xff;
        memcpy(ret + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
    } else if (from != NULL && from->sa_family == AF_INET6) {
        const struct in6_addr *in = &((const struct sockaddr_in6 *)from)->sin6_addr;
        memcpy(ret, in, IN6_IS_ADDR_V4MAPPED(in) || IN6_IS_ADDR_LOOPBACK(in) ? 16 : 8);
    }
}

static struct rv__address **bucket_of(struct rv__visits *visits, const unsigned char bytes[16])
{
    uint64_t hash = rv__str_hash(RV__HASH_START, (struct rv__str){ (const char *)bytes, 16 });
    return &visits->buckets[hash % BUCKETS];
}

static struct rv__address *address_find(struct rv__visits *visits, const unsigned char bytes[16])
{
    struct rv__address *a = *bucket_of(visits, bytes);
    while (a != NULL && memcmp(a->bytes, bytes, sizeof a->bytes) != 0)
        a = a->next;
    return a;
}

/* Drop addresses that were not seen since then. */
static void forget_old(struct rv__visits *visits, int64_t before_ms)
{
    struct rv__address *next;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct rv__address *a = visits->buckets[i]; a != NULL; a = next) {
            next = a->next;
            if (a->connections == 0 && a->seen_ms < before_ms)
                forget(visits, a);
        }
}

static struct rv__address *address_get(struct rv__visits *visits, const unsigned char bytes[16])
{
    struct rv__address *a = address_find(visits, bytes);
    if (a != NULL)
        return a;
    if (visits->addresses >= ADDRESSES_MAX)
        forget_old(visits, INT64_MAX);
    a = rv__zalloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    memcpy(a->bytes, bytes, sizeof a->bytes);
    a->requests = 2.0 * visits->limits.requests_per_s;
    a->seen_ms = rv__now_ms();
    a->link = bucket_of(visits, bytes);
    a->next = *a->link;
    if (a->next != NULL)
        a->next->link = &a->next;
    *a->link = a;
    visits->addresses++;
    return a;
}

void rv__visit_text(const struct rv__visit *visit, char ret[46])
{
    const unsigned char *bytes = visit->address->bytes;
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    bool v4 = memcmp(bytes, mapped, sizeof mapped) == 0;
    if (inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? bytes + 12 : bytes, ret, 46) == NULL)
        ret[0] = '\0';
}

bool rv__visit_local(const struct rv__visit *visit)
{
    static const unsigned char v4[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 }, v6[16] = { 0 };
    const unsigned char *bytes = visit->address->bytes;
    return memcmp(bytes, v4, sizeof v4) == 0 ||
           memcmp(bytes, v6, sizeof v6) == 0; /* ::1 in ::/64 */
}

/* ----------------------------------------------------------------------------- connections --- */

const char *rv__visits_refuse(struct rv__visits *visits, const struct sockaddr *from)
{
    const char *why = NULL;
    unsigned char bytes[16];
    address_bytes(from, bytes);
    pthread_mutex_lock(&visits->lock);
    struct rv__address *a = address_find(visits, bytes);
    if (visits->count >= visits->limits.connections)
        why = "there are too many connections";
    else if (a != NULL && a->connections >= visits->limits.connections_per_address)
        why = "there are too many connections from this address";
    pthread_mutex_unlock(&visits->lock);
    return why;
}

static int64_t limit_of(const struct rv__server_limits *limits, enum rv__visit_phase phase)
{
    switch (phase) {
    case RV__VISIT_FIRST: return limits->header_ms;
    case RV__VISIT_BODY: return limits->body_ms;
    case RV__VISIT_SENDING: return limits->send_ms;
    case RV__VISIT_IDLE: return limits->idle_ms;
    case RV__VISIT_WORKING:
    case RV__VISIT_STREAM: break;
    }
    return 0;
}

static void set_phase(struct rv__visits *visits, struct rv__visit *visit,
                      enum rv__visit_phase phase)
{
    int64_t limit = limit_of(&visits->limits, phase);
    visit->phase = phase;
    visit->until_ms = limit > 0 ? rv__now_ms() + limit : 0;
}

struct rv__visit *rv__visit_begin(struct rv__visits *visits, const struct sockaddr *from, int fd)
{
    unsigned char bytes[16];
    struct rv__visit *visit = rv__zalloc(1, sizeof *visit);
    if (visit == NULL)
        return NULL;
    address_bytes(from, bytes);
    visit->fd = fd;
    pthread_mutex_lock(&visits->lock);
    visit->address = address_get(visits, bytes);
    if (visit->address != NULL) {
        visit->address->connections++;
        visit->link = &visits->all;
        visit->next = visits->all;
        if (visit->next != NULL)
            visit->next->link = &visit->next;
        visits->all = visit;
        visits->count++;
        set_phase(visits, visit, RV__VISIT_FIRST);
    }
    pthread_mutex_unlock(&visits->lock);
    if (visit->address != NULL)
        return visit;
    rv__free(visit);
    return NULL;
}

void rv__visit_end(struct rv__visits *visits, struct rv__visit *visit)
{
    pthread_mutex_lock(&visits->lock);
    *visit->link = visit->next;
    if (visit->next != NULL)
        visit->next->link = visit->link;
    visits->count--;
    visit->address->connections--;
    visit->address->seen_ms = rv__now_ms();
    pthread_mutex_unlock(&visits->lock);
    rv__free(visit);
}

void rv__visit_phase(struct rv__visits *visits, struct rv__visit *visit, enum rv__visit_phase phase)
{
    pthread_mutex_lock(&visits->lock);
    set_phase(visits, visit, phase);
    pthread_mutex_unlock(&visits->lock);
}

size_t rv__visits_sweep(struct rv__visits *visits)
{
    size_t cut = 0;
    int64_t now = rv__now_ms();
    pthread_mutex_lock(&visits->lock);
    for (struct rv__visit *v = visits->all; v != NULL; v = v->next)
        if (v->until_ms != 0 && v->until_ms <= now && !v->cut) {
            (void)shutdown(v->fd, SHUT_RDWR); /* fails only if it is already closed */
            v->cut = true;
            cut++;
        }
    forget_old(visits, now - FORGET_MS);
    pthread_mutex_unlock(&visits->lock);
    return cut;
}

/* ------------------------------------------------------------------------ requests, guesses --- */

bool rv__visit_request(struct rv__visits *visits, struct rv__visit *visit)
{
    double rate = visits->limits.requests_per_s;
    pthread_mutex_lock(&visits->lock);
    struct rv__address *a = visit->address;
    int64_t now = rv__now_ms();
    a->requests += rate * (double)(now - a->seen_ms) / 1000;
    if (a->requests > 2 * rate)
        a->requests = 2 * rate;
    a->seen_ms = now;
    bool may = a->requests >= 1;
    if (may)
        a->requests -= 1;
    pthread_mutex_unlock(&visits->lock);
    return may;
}

bool rv__visit_wrong_token(struct rv__visits *visits, struct rv__visit *visit)
{
    pthread_mutex_lock(&visits->lock);
    struct rv__address *a = visit->address;
    int64_t now = rv__now_ms();
    if (a->guesses == 0 || now - a->guesses_ms >= GUESSES_MS) {
        a->guesses = 0;
        a->guesses_ms = now;
    }
    bool few = a->guesses < GUESSES;
    a->guesses += few;
    pthread_mutex_unlock(&visits->lock);
    return few;
}
