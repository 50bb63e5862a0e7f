/* hash.c: SHA-256 in hexadecimal digits. */
#include "base/hash.h"

void rv__sha256_init(struct rv__sha256 *hash)
{
    SHA256Init(&hash->ctx);
}

void rv__sha256_add(struct rv__sha256 *hash, struct rv__str bytes)
{
    if (bytes.len > 0)
        SHA256Update(&hash->ctx, (const uint8_t *)bytes.at, bytes.len);
}

void rv__sha256_done(struct rv__sha256 *hash, char ret[RV__SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[SHA256_DIGEST_LENGTH];
    SHA256Final(bytes, &hash->ctx);
    for (size_t i = 0; i < sizeof bytes; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[2 * sizeof bytes] = '\0';
}

void rv__sha256_hex(struct rv__str text, char ret[RV__SHA256_HEX])
{
    struct rv__sha256 hash;
    rv__sha256_init(&hash);
    rv__sha256_add(&hash, text);
    rv__sha256_done(&hash, ret);
}
