#include "calc.h"

const char *parse_sum(const char *text, long *value)
{
    long term;
    text = parse_product(text, value);
    while (*text == '+') {
        text = parse_product(text + 1, &term);
        *value += term;
    }
    return text;
}
