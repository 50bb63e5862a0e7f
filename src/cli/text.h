/* text.h: text for terminals: how wide it is, cut to fit, without what could play tricks; times as people
 * say them. */
#ifndef RV_CLI_TEXT_H
#define RV_CLI_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

/* May it be more than ASCII? What the locale's variables say; TERM=linux or dumb: no. */
bool rv__text_unicode(void);

/* How many columns it takes; characters that a terminal does not print count none. */
int rv__text_width(struct rv__str text);

/* Append `text` in at most `width` columns, cut with "…" ("." in ASCII). Control characters, which may
 * come from anybody's log, become blanks; what is not UTF-8 or, in ASCII, not of it, becomes "?".
 * Returns the columns taken. */
int rv__text_fit(struct rv__buf *out, struct rv__str text, int width);
/* The same, and blanks up to that width. */
void rv__text_pad(struct rv__buf *out, struct rv__str text, int width);

enum { RV__DURATION_TEXT = 32, RV__WHEN_TEXT = 32 };
/* "0ms", "850ms", "1.2s", "3m05s", "2h04m", "3d4h" */
const char *rv__text_duration(int64_t ms, char ret[RV__DURATION_TEXT]);
/* In the local time: "12:03:04" if it is today, else "2026-11-14 12:03". 0: "" */
const char *rv__text_when(int64_t at_ms, int64_t now_ms, char ret[RV__WHEN_TEXT]);
const char *rv__text_clock(int64_t at_ms, bool with_ms,
                           char ret[RV__WHEN_TEXT]); /* "12:03:04.123" */

/* In place: control characters become "?". For names of the other side, which are shown as they are. */
void rv__text_mask(char *text);

/* The message of an error, {"message": …}, as plain text; the whole of it if it has none. */
void rv__text_error(struct rv__buf *out, struct rv__str json);
/* "rows:iter3:node0:insert: ", before that message: the node that failed, or what is known of it. */
void rv__text_failed_at(struct rv__buf *out, const char *failed_path, const char *failed_step);

/* An argument as a shell wants it written. */
void rv__text_shell(struct rv__buf *out, const char *word);

/* JSON with a line for each member. It was checked. */
void rv__text_json(struct rv__buf *out, struct rv__str json);

/* A number from 1 to 2^31 - 1, as somebody typed it. False: it is none. */
bool rv__count_read(const char *text, int64_t *ret);

/* A table: the widths of its columns come from what is in them; where the terminal is narrower, the last one
 * gives first, then the widest. Cells are text, copied; a column may have a colour of its own in each row. */
struct rv__table;
struct rv__table *rv__table_new(size_t columns);
void rv__table_free(struct rv__table *table); /* NULL is allowed */
void rv__table_cell(struct rv__table *table, int colour, const char *text);
/* False: there was no memory for all of it. */
bool rv__table_print(const struct rv__table *table, FILE *to);

#endif
