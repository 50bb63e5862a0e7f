#include "calc.h"

const char *parse_product(const char *text, long *value)
{
    long factor;
    text = parse_number(text, value);
    while (*text == '*') {
        text = parse_number(text + 1, &factor);
        *value *= factor;
    }
    return text;
}
