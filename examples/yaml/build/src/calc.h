/* calc.h: sums and products in one line: "2+3*4". */
#ifndef CALC_H
#define CALC_H

const char *skip_spaces(const char *text);
const char *parse_number(const char *text, long *value);
const char *parse_product(const char *text, long *value);
const char *parse_sum(const char *text, long *value);

#endif
