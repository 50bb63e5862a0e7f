#include <stdio.h>

#include "calc.h"

int main(int argc, char **argv)
{
    long value;
    if (argc != 2 || *parse_sum(argv[1], &value) != '\0') {
        fprintf(stderr, "usage: calc '2+3*4'\n");
        return 2;
    }
    printf("%ld\n", value);
    return 0;
}
