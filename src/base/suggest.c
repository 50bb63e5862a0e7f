/* suggest.c: edit distance (insert, delete, replace, swap neighbours), bounded to short words. */
#include "base/suggest.h"

enum { LONGEST = 40 }; /* a longer word gets no suggestion */

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c;
}

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static size_t distance(struct rv__str a, struct rv__str b)
{
    size_t rows[3][LONGEST + 1]; /* the row before last, the last, and this one */
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t k = 0; k <= b.len; k++)
        last[k] = k;
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = i;
        for (size_t k = 1; k <= b.len; k++) {
            size_t differs = lower(a.at[i - 1]) != lower(b.at[k - 1]);
            now[k] = least(last[k] + 1, now[k - 1] + 1, last[k - 1] + differs);
            bool swapped = i > 1 && k > 1 && lower(a.at[i - 1]) == lower(b.at[k - 2]) &&
                           lower(a.at[i - 2]) == lower(b.at[k - 1]);
            if (swapped && before[k - 2] + 1 < now[k])
                now[k] = before[k - 2] + 1;
        }
        size_t *old = before;
        before = last;
        last = now;
        now = old;
    }
    return last[b.len];
}

const char *rv__suggest(struct rv__str word, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    if (word.len == 0 || word.len > LONGEST)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        struct rv__str candidate = rv__str(candidates[i]);
        if (candidate.len > LONGEST)
            continue;
        size_t longer = word.len > candidate.len ? word.len : candidate.len;
        size_t d = distance(word, candidate);
        if (d < best_distance && d * 3 <= longer) {
            best = candidates[i];
            best_distance = d;
        }
    }
    return best;
}
