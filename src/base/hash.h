/* hash.h: SHA-256, by libmd. For hashes that are stored, or must be safe from deliberate collisions: names of
 * definitions, keys of results. For tables in memory use rv__str_hash(). */
#ifndef RV_BASE_HASH_H
#define RV_BASE_HASH_H

#include <sys/types.h>
#include <sha2.h>

#include "base/str.h"

#define RV__SHA256_HEX 65 /* 64 digits and a NUL */

/* Piece by piece: init, add as often as needed, done. The result is the hash of the pieces joined, so separate
 * fields by something that no field contains. */
struct rv__sha256 {
    SHA2_CTX ctx;
};
void rv__sha256_init(struct rv__sha256 *hash);
void rv__sha256_add(struct rv__sha256 *hash, struct rv__str bytes);
void rv__sha256_done(struct rv__sha256 *hash, char ret[RV__SHA256_HEX]); /* call init to reuse */

/* The hash of one text, in lower-case hexadecimal digits. */
void rv__sha256_hex(struct rv__str text, char ret[RV__SHA256_HEX]);

#endif
