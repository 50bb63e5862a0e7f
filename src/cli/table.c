/* table.c: tables that fit the terminal. */
#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/text.h"

enum {
    COLUMNS_MAX = 8,
    CELL_MAX = 60,     /* columns of the terminal, but for the last */
    PIPE_WIDTH = 2000, /* without a terminal nothing is cut but the absurd */
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
    table->columns = columns < COLUMNS_MAX ? columns : COLUMNS_MAX;
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

static void measure(const struct rv__table *table, int width, int widths[COLUMNS_MAX])
{
    int left = width;
    for (size_t c = 0; c < table->columns; c++) {
        widths[c] = 0;
        for (size_t i = c; i < table->count; i += table->columns) {
            int w = rv__text_width(text_of(table, &table->cells[i]));
            widths[c] = w > widths[c] ? w : widths[c];
        }
        if (c + 1 == table->columns)
            widths[c] = left;
        else if (widths[c] > CELL_MAX)
            widths[c] = CELL_MAX;
        if (widths[c] > left)
            widths[c] = left;
        left -= widths[c] + 2;
        left = left > 0 ? left : 0;
    }
}

bool rv__table_print(const struct rv__table *table, FILE *to)
{
    int widths[COLUMNS_MAX];
    struct rv__buf out;
    if (table->no_memory || table->texts.rc < 0)
        return false;
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by the table */
    measure(table, rv__terminal_is(to) ? rv__terminal_size(to).columns : PIPE_WIDTH, widths);
    for (size_t i = 0; i < table->count; i++) {
        const struct cell *cell = &table->cells[i];
        size_t column = i % table->columns;
        const char *colour = rv__colour(to, (enum rv__colour)cell->colour);
        bool coloured = cell->colour != PLAIN && *colour != '\0';
        if (coloured)
            rv__buf_text(&out, colour);
        if (column + 1 == table->columns)
            (void)rv__text_fit(&out, text_of(table, cell), widths[column]);
        else
            rv__text_pad(&out, text_of(table, cell), widths[column]);
        if (coloured)
            rv__buf_text(&out, rv__colour(to, PLAIN));
        if (column + 1 == table->columns) {
            while (out.len > 0 && out.text[out.len - 1] == ' ')
                rv__buf_cut(&out, out.len - 1);
            rv__buf_char(&out, '\n');
        } else if (widths[column] > 0) {
            rv__buf_text(&out, "  ");
        }
    }
    bool good = out.rc == RV_OK;
    if (good && out.len > 0)
        fputs(out.text, to);
    rv__buf_done(&out);
    return good;
}
