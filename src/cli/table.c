/* table.c: tables that fit the terminal. */
#include <assert.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/text.h"

enum {
    COLUMNS_MAX = 8,
    GAP = 2,
    LAST_LEAST = 16,   /* least width of the last column, before others shrink; */
    LAST_SHARE = 4,    /* on a wide terminal: this part of it */
    FIRST_LEAST = 26,  /* of the first column: the length of a generated id */
    LEAST = 10,        /* of the others: statuses and times are not cut */
    PIPE_WIDTH = 2000, /* without a terminal only extreme lines are cut */
};

struct cell {
    int colour;
    size_t at, len; /* in `texts` */
};

struct rv__table {
    size_t columns, count, cap;
    struct cell *cells;
    struct rv__buf texts;
    bool no_memory;
};

struct rv__table *rv__table_new(size_t columns)
{
    struct rv__table *table = rv__zalloc(1, sizeof *table);
    if (table == NULL)
        return NULL;
    assert(columns > 0 && columns <= COLUMNS_MAX);
    table->columns = columns;
    rv__buf_init(&table->texts, SIZE_MAX / 8); /* bounded by the page that is listed */
    return table;
}

void rv__table_free(struct rv__table *table)
{
    if (table == NULL)
        return;
    rv__free(table->cells);
    rv__buf_done(&table->texts);
    rv__free(table);
}

void rv__table_cell(struct rv__table *table, int colour, const char *text)
{
    if (table->count == table->cap) {
        size_t cap = table->cap ? table->cap * 2 : 64;
        struct cell *cells = rv__realloc(table->cells, cap * sizeof *cells);
        if (cells == NULL) {
            table->no_memory = true;
            return;
        }
        table->cells = cells;
        table->cap = cap;
    }
    struct cell *cell = &table->cells[table->count++];
    *cell = (struct cell){ .colour = colour, .at = table->texts.len };
    rv__buf_text(&table->texts, text);
    cell->len = table->texts.len - cell->at;
}

static struct rv__str text_of(const struct rv__table *table, const struct cell *cell)
{
    return (struct rv__str){ table->texts.text + cell->at, cell->len };
}

/* The column to shrink next, for a terminal of that width. */
static size_t widest_column(const struct rv__table *table, int width, const int widths[COLUMNS_MAX])
{
    assert(table->columns > 0 && table->columns <= COLUMNS_MAX);
    size_t last = table->columns - 1, widest = last;
    int share = width / LAST_SHARE;
    if (widths[last] > (share > LAST_LEAST ? share : LAST_LEAST))
        return last;
    for (size_t c = 0; c < last; c++)
        if (widths[c] > (c == 0 ? FIRST_LEAST : LEAST) &&
            (widest == last || widths[c] > widths[widest]))
            widest = c;
    return widest == last && widths[last] <= LEAST && widths[0] > LEAST ? 0 : widest;
}

/* Make the table fit: the last column shrinks first, then always the widest of the others. */
static void shrink(const struct rv__table *table, int width, int widths[COLUMNS_MAX])
{
    int sum = 0;
    for (size_t c = 0; c < table->columns; c++)
        sum += widths[c] + (c > 0 && widths[c] > 0 ? GAP : 0);
    while (sum > width) {
        size_t c = widest_column(table, width, widths);
        if (widths[c] == 0)
            return; /* only a few columns: the terminal wraps */
        widths[c]--;
        sum -= widths[c] > 0 ? 1 : 1 + GAP;
    }
}

static void measure(const struct rv__table *table, int width, int widths[COLUMNS_MAX])
{
    for (size_t c = 0; c < table->columns; c++) {
        widths[c] = 0;
        for (size_t i = c; i < table->count; i += table->columns) {
            int w = rv__text_width(text_of(table, &table->cells[i]));
            widths[c] = w > widths[c] ? w : widths[c];
        }
    }
    shrink(table, width, widths);
}

/* Append a cell after `blanks`, which are left over from the cells before: no line ends in blanks. Returns how many
 * are left over now. */
static int put_cell(const struct rv__table *table, const struct cell *cell, int width, int blanks,
                    FILE *to, struct rv__buf *out)
{
    const char *colour = rv__colour(to, (enum rv__colour)cell->colour);
    bool coloured = cell->colour != PLAIN && *colour != '\0';
    if (cell->len == 0 || width == 0)
        return blanks + width + (width > 0 ? GAP : 0);
    for (; blanks > 0; blanks--)
        rv__buf_char(out, ' ');
    if (coloured)
        rv__buf_text(out, colour);
    int used = rv__text_fit(out, text_of(table, cell), width);
    if (coloured)
        rv__buf_text(out, rv__colour(to, PLAIN));
    return width - used + GAP;
}

bool rv__table_print(const struct rv__table *table, FILE *to)
{
    int widths[COLUMNS_MAX], blanks = 0;
    struct rv__buf out;
    if (table->no_memory || table->texts.rc < 0)
        return false;
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by the table */
    measure(table, rv__terminal_is(to) ? rv__terminal_size(to).columns - 1 : PIPE_WIDTH, widths);
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        blanks = put_cell(table, &table->cells[i], widths[column], blanks, to, &out);
        if (column + 1 == table->columns) {
            rv__buf_char(&out, '\n');
            blanks = 0;
        }
    }
    bool good = out.rc == RV_OK;
    if (good && out.len > 0)
        fputs(out.text, to);
    rv__buf_done(&out);
    return good;
}
