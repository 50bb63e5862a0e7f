/* address.c: which addresses are not public. A workflow's input may contain a URL: a server that others can reach
 * must not fetch for them what only it can reach (a router's page, a cloud's metadata, itself). Pure. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "exec/fetch.h"

struct range {
    uint32_t network;
    int bits;
};

/* RFC 6890, and other ranges without public addresses. */
static const struct range private_v4[] = {
    { 0x00000000, 8 },  /* this network: 0.0.0.0 is this machine */
    { 0x0a000000, 8 },  /* private */
    { 0x64400000, 10 }, /* shared by carriers (CGNAT) */
    { 0x7f000000, 8 },  /* loopback */
    { 0xa9fe0000, 16 }, /* link-local; clouds' metadata */
    { 0xac100000, 12 }, /* private */
    { 0xc0000000, 24 }, /* protocol assignments */
    { 0xc0a80000, 16 }, /* private */
    { 0xc6120000, 15 }, /* benchmarks */
    { 0xe0000000, 4 },  /* multicast */
    { 0xf0000000, 4 },  /* reserved, broadcast */
};

static bool is_private_v4(uint32_t address)
{
    for (size_t i = 0; i < sizeof private_v4 / sizeof *private_v4; i++)
        if ((address ^ private_v4[i].network) >> (32 - private_v4[i].bits) == 0)
            return true;
    return false;
}

static uint32_t word(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool is_private_v6(const unsigned char *at)
{
    static const unsigned char zero[16];
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    static const unsigned char nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
    static const unsigned char nat64_local[6] = { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 };
    if (memcmp(at, mapped, sizeof mapped) == 0 || memcmp(at, nat64, sizeof nat64) == 0)
        return is_private_v4(word(at + 12));
    if (at[0] == 0x20 && at[1] == 0x02) /* 6to4: contains an IPv4 address */
        return is_private_v4(word(at + 2));
    return memcmp(at, zero, 12) == 0 ||                        /* ::, ::1, ::a.b.c.d */
           memcmp(at, nat64_local, sizeof nat64_local) == 0 || /* a network's own NAT64 */
           (at[0] & 0xfe) == 0xfc ||                           /* private */
           (at[0] == 0xfe && (at[1] & 0x80) != 0) ||
           at[0] == 0xff; /* link-local or site-local; multicast */
}

bool rv__address_private(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return is_private_v4(ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr));
    if (address->sa_family == AF_INET6)
        return is_private_v6(((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr);
    return true; /* unknown family: not public */
}

void rv__address_text(const struct sockaddr *address, char ret[RV__ADDRESS_TEXT])
{
    const void *at = address->sa_family == AF_INET
                         ? (const void *)&((const struct sockaddr_in *)address)->sin_addr
                         : (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr;
    if ((address->sa_family != AF_INET && address->sa_family != AF_INET6) ||
        inet_ntop(address->sa_family, at, ret, RV__ADDRESS_TEXT) == NULL)
        memcpy(ret, "?", 2);
}
