/* number.c: exact arithmetic on the text of numbers: 9007199254740993 is not ...992, 1.0 equals 1, and 0.3
 * is a multiple of 0.1. Only powers of ten beyond the length of any text are rounded. */
#include "schema/number.h"

enum { DIVISOR_DIGITS = 18 }; /* so that a remainder times ten fits 64 bits */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t read_power(const char *at, const char *end)
{
    const int64_t most = INT64_C(1000000000000000);
    bool negative = *at == '-';
    int64_t power = 0;
    if (*at == '-' || *at == '+')
        at++;
    for (; at < end; at++)
        power = power >= most ? most : power * 10 + (*at - '0');
    if (power > most)
        power = most;
    return negative ? -power : power;
}

void rv__number_read(struct rv__str text, struct rv__number *ret)
{
    struct rv__number n = { .digits = NULL };
    const char *at = text.at, *end = text.at + text.len, *last = NULL;
    bool fraction = false;

    if (at < end && *at == '-') {
        n.negative = true;
        at++;
    }
    size_t digits = 0;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        if (n.digits == NULL && *at == '0') {
            n.power -= fraction; /* 0.00x */
            continue;
        }
        if (n.digits == NULL)
            n.digits = at;
        n.power += !fraction;
        digits++;
        if (*at != '0') {
            last = at;
            n.count = digits;
        }
    }
    if (n.digits == NULL) { /* -0 too */
        *ret = (struct rv__number){ .digits = NULL };
        return;
    }
    n.len = (size_t)(last + 1 - n.digits);
    if (at < end)
        n.power += read_power(at + 1, end);
    *ret = n;
}

/* Compare the digits and ignore the decimal point. */
static int cmp_digits(const struct rv__number *a, const struct rv__number *b)
{
    const char *x = a->digits, *y = b->digits, *x_end = x + a->len, *y_end = y + b->len;
    for (;;) {
        x += x < x_end && *x == '.';
        y += y < y_end && *y == '.';
        if (x == x_end || y == y_end)
            return (x < x_end) - (y < y_end);
        if (*x != *y)
            return *x < *y ? -1 : 1;
        x++;
        y++;
    }
}

int rv__number_cmp(const struct rv__number *a, const struct rv__number *b)
{
    int sign_a = a->count == 0 ? 0 : a->negative ? -1 : 1;
    int sign_b = b->count == 0 ? 0 : b->negative ? -1 : 1;
    if (sign_a != sign_b || sign_a == 0)
        return (sign_a > sign_b) - (sign_a < sign_b);
    if (a->power != b->power)
        return a->power < b->power ? -sign_a : sign_a;
    return sign_a * cmp_digits(a, b);
}

bool rv__number_is_integer(const struct rv__number *n)
{
    return n->power >= (int64_t)n->count;
}

bool rv__number_size(const struct rv__number *n, size_t *ret)
{
    size_t size = 0;
    if ((n->negative && n->count > 0) || !rv__number_is_integer(n))
        return false;
    if (n->power > 18) {
        *ret = SIZE_MAX;
        return true;
    }
    for (size_t i = 0; i < n->len; i++)
        if (is_digit(n->digits[i]))
            size = size * 10 + (size_t)(n->digits[i] - '0');
    for (int64_t i = (int64_t)n->count; i < n->power && n->count > 0; i++)
        size *= 10;
    *ret = size;
    return true;
}

int rv__divisor_read(const struct rv__number *n, struct rv__divisor *ret)
{
    uint64_t digits = 0;
    if (n->negative || n->count == 0)
        return RV_EINVAL;
    if (n->count > DIVISOR_DIGITS)
        return RV_ETOOBIG;
    for (size_t i = 0; i < n->len; i++)
        if (is_digit(n->digits[i]))
            digits = digits * 10 + (uint64_t)(n->digits[i] - '0');
    *ret = (struct rv__divisor){ digits, n->power - (int64_t)n->count };
    return RV_OK;
}

static uint64_t times(uint64_t a, uint64_t b, uint64_t modulus)
{
    return (uint64_t)((unsigned __int128)a * b % modulus);
}

/* Both are integers times a power of ten, and their digits do not end in 0. So the divisor's power must not
 * be the larger one; then the number's digits, with the missing zeros added, must be divisible. */
bool rv__number_is_multiple(const struct rv__number *n, const struct rv__divisor *divisor)
{
    int64_t power = n->power - (int64_t)n->count;
    uint64_t rest = 0, ten = 10 % divisor->digits;
    if (n->count == 0)
        return true;
    if (power < divisor->power)
        return false;
    for (size_t i = 0; i < n->len; i++)
        if (is_digit(n->digits[i]))
            rest = (rest * 10 + (uint64_t)(n->digits[i] - '0')) % divisor->digits;
    for (uint64_t zeros = (uint64_t)(power - divisor->power); zeros > 0; zeros /= 2) {
        if (zeros % 2)
            rest = times(rest, ten, divisor->digits);
        ten = times(ten, ten, divisor->digits);
    }
    return rest == 0;
}
