/* id.c: 128 bits in Crockford's base32, as a ULID, but lower-case.
 *
 * An id is a number of 128 bits: the time in the upper bits, a random part below. In a new millisecond
 * the random part is drawn again; in the same one the number is incremented. If the random part
 * overflows, the time in the id is one millisecond ahead until the clock catches up. So ids only grow,
 * and as the alphabet is in ASCII order, they sort as text. */
#include "base/id.h"

static const uint64_t MAX_WALL_MS = (UINT64_C(1) << 48) - 1; /* the year 10889 */

void rv__ids_init(struct rv__ids *ids, uint64_t seed)
{
    *ids = (struct rv__ids){ 0 };
    rv__random_init(&ids->random, seed);
}

void rv__ids_next(struct rv__ids *ids, int64_t wall_ms, char ret[RV__ID_SIZE])
{
    static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
    uint64_t now = wall_ms < 0 ? 0 : (uint64_t)wall_ms;
    if (now > MAX_WALL_MS)
        now = MAX_WALL_MS;

    if (now > ids->high >> 16) {
        ids->high = now << 16 | rv__random_u64(&ids->random) >> 48;
        ids->low = rv__random_u64(&ids->random);
    } else if (++ids->low == 0) {
        ids->high++;
    }

    uint64_t high = ids->high, low = ids->low;
    for (int i = RV__ID_SIZE - 2; i >= 0; i--) { /* 26 * 5 = 130 bits: the first has three */
        ret[i] = alphabet[low & 31];
        low = low >> 5 | high << 59;
        high >>= 5;
    }
    ret[RV__ID_SIZE - 1] = '\0';
}

static bool valid_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
}

bool rv__id_valid(struct rv__str id)
{
    if (id.len == 0 || id.len > RV__ID_MAX_BYTES)
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (!valid_char(id.at[i]))
            return false;
    return true;
}
