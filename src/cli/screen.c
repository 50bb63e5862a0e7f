/* screen.c: shows the progress of a run.
 *
 * The live view draws a frame over the last one: it moves up, rewrites each line and clears its rest, and clears
 * the screen below. So nothing flickers, and text above stays. If the terminal became narrower, it has wrapped our
 * lines: their number now follows from their widths. */
#include "cli/screen.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

enum {
    FAILED_LOG = 10, /* log lines of the failed step */
    LOG_PAGE = 1000,
    PIPE_WIDTH = 200, /* of a summary without a terminal */
    LEAST_ROWS = 3,   /* a lower terminal gets one line */
};

void rv__screen_init(struct rv__screen *view, enum rv__screen_kind kind, struct rv__client *client,
                     const char *workflow, const char *run_id, int64_t started_ms)
{
    *view = (struct rv__screen){
        .kind = kind, .workflow = workflow, .run_id = run_id, .started_ms = started_ms
    };
    rv__outline_init(&view->tree, client, run_id, true);
    if (kind == VIEW_LIVE)
        rv__terminal_cursor(stderr, false);
}

void rv__screen_done(struct rv__screen *view)
{
    if (view->kind == VIEW_LIVE)
        rv__terminal_cursor(stderr, true);
    rv__outline_done(&view->tree);
}

void rv__screen_event(struct rv__screen *view, const rv_event *event)
{
    struct rv__buf line;
    rv__buf_init(&line, 1u << 20); /* more than an event can have */
    if (view->kind == VIEW_LINES && rv__event_line(event, stderr, &line) && line.rc == RV_OK)
        fprintf(stderr, "%s\n", line.text);
    if (view->kind == VIEW_LIVE && strcmp(event->kind, "log") == 0) {
        rv__event_log(event, &line);
        if (line.rc == RV_OK)
            snprintf(view->log[view->log_count++ % RV__SCREEN_LOG], RV__SCREEN_LOG_BYTES, "%s",
                     line.text);
    }
    rv__buf_done(&line);
}

/* ----------------------------------------------------------------------------------- frames --- */

struct frame {
    struct rv__screen *view;
    struct rv__buf text;
    struct rv__terminal_size size;
    int height;
    int widths[RV__SCREEN_ROWS];
};

/* End a line of this width. */
static void end_line(struct frame *f, int width)
{
    rv__buf_text(&f->text, "\033[K\n");
    if (f->height < RV__SCREEN_ROWS)
        f->widths[f->height++] = width;
}

static void put_header(struct frame *f)
{
    char time[RV__DURATION_TEXT];
    struct rv__screen *v = f->view;
    struct rv__buf line;
    rv__buf_init(&line, 4096);
    rv__buf_fmt(&line, "%s  %s  %s  %s", v->workflow, v->run_id,
                rv__text_duration(v->tree.now_ms - v->started_ms, time), v->state ? v->state : "");
    rv__buf_text(&f->text, rv__colour(stderr, BOLD));
    int width = rv__text_fit(&f->text, rv__buf_view(&line), f->size.columns - 1);
    rv__buf_text(&f->text, rv__colour(stderr, PLAIN));
    end_line(f, width);
    rv__buf_done(&line);
}

static void put_log(struct frame *f, size_t lines)
{
    struct rv__screen *v = f->view;
    size_t have = v->log_count < RV__SCREEN_LOG ? v->log_count : RV__SCREEN_LOG;
    lines = lines < have ? lines : have;
    for (size_t i = v->log_count - lines; i < v->log_count; i++) {
        rv__buf_text(&f->text, rv__colour(stderr, DIM));
        rv__buf_text(&f->text, rv__text_unicode() ? "│ " : "| ");
        int width = 2 + rv__text_fit(&f->text, rv__str(v->log[i % RV__SCREEN_LOG]),
                                     f->size.columns - 3);
        rv__buf_text(&f->text, rv__colour(stderr, PLAIN));
        end_line(f, width);
    }
}

/* How many lines the visible rows need, with a line for each gap. */
static size_t rows_and_gaps(const bool *hidden, size_t count)
{
    size_t lines = 0;
    for (size_t i = 0; i < count; i++)
        lines += !hidden[i] || i == 0 || !hidden[i - 1];
    return lines;
}

/* Choose rows to hide until the rest fits into `room` lines: finished ones first, from the top; then pending ones,
 * from the end; then any, from the end. */
static void hide_rows(const struct rv__outline *tree, bool *hidden, size_t room)
{
    size_t lines = tree->count;
    for (size_t i = 0; i < tree->count && lines > room; i++) {
        hidden[i] = tree->rows[i].weight == ROW_DONE;
        lines -= hidden[i] && i > 0 &&
                 hidden[i - 1]; /* the first one only makes room for its gap */
    }
    for (size_t i = tree->count; i-- > 0 && rows_and_gaps(hidden, tree->count) > room;)
        hidden[i] = hidden[i] || tree->rows[i].weight == ROW_PENDING;
    for (size_t i = tree->count; i-- > 1 && rows_and_gaps(hidden, tree->count) > room;)
        hidden[i] = true;
    for (size_t i = 0; i < tree->count; i++) /* a gap for a single row: show the row instead */
        if (hidden[i] && (i == 0 || !hidden[i - 1]) && (i + 1 == tree->count || !hidden[i + 1]))
            hidden[i] = false;
}

static void put_gap(struct frame *f, const struct rv__outline *tree, const bool *hidden, size_t *at,
                    const struct rv__row_style *style)
{
    static const char *const words[] = { [ROW_DONE] = "finished",
                                         [ROW_PENDING] = "to come",
                                         [ROW_LIVE] = "running",
                                         [ROW_BAD] = "failed" };
    size_t counts[ROW_BAD + 1] = { 0 };
    char text[100] = "";
    size_t len = 0;
    for (; *at < tree->count && hidden[*at]; (*at)++)
        counts[tree->rows[*at].weight]++;
    for (int i = 0; i <= ROW_BAD; i++)
        if (counts[i] > 0 && len < sizeof text)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%zu %s", len ? ", " : "",
                                    counts[i], words[i]);
    struct rv__row_style wide = *style;
    wide.name_width = style->width - 2;
    rv__row_write(&(struct rv__row){ .name = text, .note = "", .ms = -1 }, &wide, &f->text);
    end_line(f, style->width);
}

static void put_rows(struct frame *f, size_t room)
{
    const struct rv__outline *tree = &f->view->tree;
    struct rv__row_style style = { .to = stderr,
                                   .width = f->size.columns - 1,
                                   .unicode = rv__text_unicode(),
                                   .tick = f->view->tick };
    bool *hidden = rv__zalloc(tree->count + 1, sizeof *hidden);
    if (hidden == NULL)
        return;
    style.name_width = rv__outline_name_width(tree, style.width);
    if (tree->count > room)
        hide_rows(tree, hidden, room);
    for (size_t i = 0; i < tree->count;) {
        if (hidden[i]) {
            put_gap(f, tree, hidden, &i, &style);
            continue;
        }
        rv__row_write(&tree->rows[i++], &style, &f->text);
        end_line(f, style.width);
    }
    rv__free(hidden);
}

/* Move to the first line of the last frame. Returns its number of lines. */
static int go_back(struct frame *f)
{
    int lines = 0;
    for (int i = 0; i < f->view->height; i++) {
        int width = f->view->widths[i];
        lines += width > f->size.columns ? (width + f->size.columns - 1) / f->size.columns : 1;
    }
    lines = lines < f->size.rows ? lines : f->size.rows - 1;
    if (lines > 0)
        rv__buf_fmt(&f->text, "\r\033[%dA", lines);
    return lines;
}

static void show_frame(struct frame *f)
{
    if (f->height > 0)
        rv__buf_text(&f->text, "\033[J");
    if (f->text.rc == RV_OK) {
        fwrite(rv__buf_view(&f->text).at, 1, f->text.len, stderr);
        fflush(stderr);
        f->view->height = f->height;
        memcpy(f->view->widths, f->widths, sizeof f->widths);
    }
    rv__buf_done(&f->text);
}

void rv__screen_frame(struct rv__screen *view, bool now)
{
    int64_t now_ms = rv__mono_ms(rv__clock_real());
    rv_error err;
    if (view->kind != VIEW_LIVE || (!now && now_ms < view->drawn_ms + RV__FRAME_MS))
        return;
    view->drawn_ms = now_ms;
    view->tick++;
    if (rv__outline_read(&view->tree, &err) < 0)
        return; /* the store is busy: try again later */
    struct frame f = { .view = view, .size = rv__terminal_size(stderr) };
    rv__buf_init(&f.text, SIZE_MAX / 8); /* bounded by the terminal */
    (void)go_back(&f);
    put_header(&f);
    int room = f.size.rows - 2; /* without the header and the cursor's line */
    int log = view->log_count < RV__SCREEN_LOG ? (int)view->log_count : RV__SCREEN_LOG;
    log = log < room / 3 ? log : room / 3;
    if (f.size.rows > LEAST_ROWS) {
        put_rows(&f, (size_t)(room - log));
        put_log(&f, (size_t)log);
    }
    show_frame(&f);
}

void rv__screen_clear(struct rv__screen *view)
{
    struct frame f = { .view = view, .size = rv__terminal_size(stderr) };
    if (view->kind != VIEW_LIVE)
        return;
    rv__buf_init(&f.text, 4096);
    int lines = go_back(&f); /* line by line: some terminals keep what is cleared at once */
    for (int i = 0; i < lines; i++)
        rv__buf_text(&f.text, "\033[2K\n");
    if (lines > 0)
        rv__buf_fmt(&f.text, "\033[2K\033[%dA", lines);
    show_frame(&f);
}

/* ----------------------------------------------------------------------------------- record --- */

/* Print the last log lines of the failed step, of that node only. */
static void print_log_tail(struct rv__screen *view, const char *path)
{
    char *tail = rv__zalloc(FAILED_LOG, RV__SCREEN_LOG_BYTES);
    size_t count = 0, got;
    uint64_t after = 0;
    if (tail == NULL)
        return;
    do {
        rv_log_list *list = NULL;
        if (rv__client_logs(view->tree.client, view->run_id,
                            RV_LOG_QUERY(.after = after, .limit = LOG_PAGE), &list, NULL) < 0)
            break;
        for (size_t i = 0; i < list->count; i++)
            if (strcmp(list->lines[i].path, path) == 0)
                snprintf(tail + count++ % FAILED_LOG * RV__SCREEN_LOG_BYTES, RV__SCREEN_LOG_BYTES,
                         "%s", list->lines[i].message);
        got = list->count;
        after = list->next;
        rv_log_list_free(list);
    } while (got == LOG_PAGE);
    int width = rv__terminal_is(stderr) ? rv__terminal_size(stderr).columns - 5 : PIPE_WIDTH;
    for (size_t i = count > FAILED_LOG ? count - FAILED_LOG : 0; i < count; i++) {
        struct rv__buf line;
        rv__buf_init(&line, 4096);
        (void)rv__text_fit(&line, rv__str(tail + i % FAILED_LOG * RV__SCREEN_LOG_BYTES), width);
        fprintf(stderr, "  %s%s%s %s\n", rv__colour(stderr, DIM), rv__text_unicode() ? "│" : "|",
                rv__colour(stderr, PLAIN), rv__buf_view(&line).at);
        rv__buf_done(&line);
    }
    rv__free(tail);
}

static void print_failure(struct rv__screen *view, const char *error, const char *failed_path)
{
    struct rv__buf message;
    rv__buf_init(&message, RV__JSON_MAX_BYTES);
    struct rv__buf text;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    rv__text_error(&text, rv__str(error));
    (void)rv__text_fit(&message, rv__buf_view(&text), 2000);
    fprintf(stderr, "\n%s%s%s failed: %s\n", rv__colour(stderr, RED),
            *failed_path != '\0' ? failed_path : view->workflow, rv__colour(stderr, PLAIN),
            rv__buf_view(&message).at);
    if (*failed_path != '\0')
        print_log_tail(view, failed_path);
    rv__buf_done(&text);
    rv__buf_done(&message);
}

void rv__screen_record(struct rv__screen *view, const char *status, int64_t duration_ms,
                       const char *error, const char *failed_path)
{
    char time[RV__DURATION_TEXT];
    struct rv__outline all;
    rv_error err;
    if (view->kind == VIEW_NONE)
        return;
    rv__screen_clear(view);
    rv__outline_init(&all, view->tree.client, view->run_id, false);
    if (view->kind == VIEW_LIVE && rv__outline_read(&all, &err) == RV_OK) {
        struct rv__row_style style = { .to = stderr,
                                       .width = rv__terminal_size(stderr).columns - 1,
                                       .unicode = rv__text_unicode() };
        style.name_width = rv__outline_name_width(&all, style.width);
        for (size_t i = 0; i < all.count; i++) {
            struct rv__buf line;
            rv__buf_init(&line, 1u << 16);
            rv__row_write(&all.rows[i], &style, &line);
            fprintf(stderr, "%s\n", rv__buf_view(&line).at);
            rv__buf_done(&line);
        }
    }
    rv__outline_done(&all);
    if (*error != '\0')
        print_failure(view, error, failed_path);
    fprintf(stderr, "%s%s %s%s%s after %s  %s(run %s)%s\n",
            view->kind == VIEW_LIVE || *error != '\0' ? "\n" : "", view->workflow,
            rv__colour(stderr, rv__status_colour(status)), status, rv__colour(stderr, PLAIN),
            rv__text_duration(duration_ms, time), rv__colour(stderr, DIM), view->run_id,
            rv__colour(stderr, PLAIN));
}
