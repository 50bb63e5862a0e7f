/* text.h: text for terminals: its width, cutting, removing control characters; times for people. */
#ifndef RV_CLI_TEXT_H
#define RV_CLI_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

/* May output have more than ASCII? Decided by the locale's variables; TERM=linux or dumb: no. */
bool rv__text_unicode(void);

/* Its width in columns; characters that a terminal does not print count as none. */
int rv__text_width(struct rv__str text);

/* Append `text` in at most `width` columns, cut with "…" ("." in ASCII). Control characters (a log may contain any)
 * become blanks; bytes that are not UTF-8, or not ASCII where that is needed, become "?". Returns the columns used. */
int rv__text_fit(struct rv__buf *out, struct rv__str text, int width);
/* The same, then blanks up to the width. */
void rv__text_pad(struct rv__buf *out, struct rv__str text, int width);

enum { RV__DURATION_TEXT = 32, RV__WHEN_TEXT = 32 };
/* "0ms", "850ms", "1.2s", "3m05s", "2h04m", "3d4h" */
const char *rv__text_duration(int64_t ms, char ret[RV__DURATION_TEXT]);
/* Local time: "12:03:04" if it is today, else "2026-11-14 12:03". 0: "" */
const char *rv__text_when(int64_t at_ms, int64_t now_ms, char ret[RV__WHEN_TEXT]);
const char *rv__text_clock(int64_t at_ms, bool with_ms,
                           char ret[RV__WHEN_TEXT]); /* "12:03:04.123" */

/* Replace control characters by "?". For names from a server, which are printed as they are. */
void rv__text_mask(char *text);

/* The message of an error, {"message": …}, as plain text; without one, the whole JSON. */
void rv__text_error(struct rv__buf *out, struct rv__str json);
/* Append "rows:iter3:node0:insert: ", for use before that message: the failed node, as far as known. */
void rv__text_failed_at(struct rv__buf *out, const char *failed_path, const char *failed_step);

/* Quote an argument for a shell. Control characters are escaped. */
void rv__text_shell(struct rv__buf *out, const char *word);

/* JSON with one line per member. It must be valid. */
void rv__text_json(struct rv__buf *out, struct rv__str json);

/* A number from 1 to 2^31 - 1. False: it is not. */
bool rv__count_read(const char *text, int64_t *ret);

/* A table. Column widths follow from the cells; on a narrow terminal the last column shrinks first, then the
 * widest. Cells are copied; each may have its own colour. */
struct rv__table;
struct rv__table *rv__table_new(size_t columns);
void rv__table_free(struct rv__table *table); /* NULL is allowed */
void rv__table_cell(struct rv__table *table, int colour, const char *text);
/* False: not enough memory for all rows. */
bool rv__table_print(const struct rv__table *table, FILE *to);

#endif
