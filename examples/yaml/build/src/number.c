#include <stdlib.h>

#include "calc.h"

const char *skip_spaces(const char *text)
{
    while (*text == ' ')
        text++;
    return text;
}

const char *parse_number(const char *text, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    return skip_spaces(end);
}
