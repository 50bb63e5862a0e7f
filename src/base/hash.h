/* hash.h: SHA-256, by libmd. For what must stay the same on disk and cannot be guessed to collide:
 * names of definitions, keys of results. For tables in memory there is rv__str_hash(). */
#ifndef RV_BASE_HASH_H
#define RV_BASE_HASH_H

#include <sys/types.h>
#include <sha2.h>

#include "base/str.h"

#define RV__SHA256_HEX 65 /* 64 digits and a NUL */

/* Piece by piece: init, add as often as needed, done. The hash is that of the pieces joined, so
 * who hashes several fields separates them by something that no field contains. */
struct rv__sha256 {
    SHA2_CTX ctx;
};
void rv__sha256_init(struct rv__sha256 *hash);
void rv__sha256_add(struct rv__sha256 *hash, struct rv__str bytes);
void rv__sha256_done(struct rv__sha256 *hash, char ret[RV__SHA256_HEX]); /* init before new use */

/* All of it at once, in lower-case hexadecimal digits. */
void rv__sha256_hex(struct rv__str text, char ret[RV__SHA256_HEX]);

#endif
