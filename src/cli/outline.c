/* outline.c: the nodes of a run as rows for people. */
#include "cli/outline.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/runs.h"
#include "cli/text.h"

enum {
    PAGE = 500,
    LIVE_SCAN = 2000,     /* iterations read for one frame */
    ITERATIONS_LIVE = 40, /* active ones shown of a node */
    ITERATIONS_BAD = 20,  /* failed ones */
    ITERATIONS_GOOD = 10, /* successful ones: all, if there are no more than this, else none */
    DEPTH_MAX = 40,       /* deeper rows would not fit on a terminal */
    NOTE_BYTES = 2000,
    ROWS_BYTES = 1 << 30, /* texts of all rows, whatever a server answers */
};

void rv__outline_init(struct rv__outline *tree, struct rv__client *client, const char *run_id,
                      bool live)
{
    *tree = (struct rv__outline){ .client = client, .run_id = run_id, .live = live };
    rv__arena_init(&tree->arena, ROWS_BYTES);
}

void rv__outline_done(struct rv__outline *tree)
{
    for (size_t i = 0; i < tree->over_count; i++)
        rv__free(tree->over[i].path);
    rv__free(tree->rows);
    rv__arena_done(&tree->arena);
}

/* ----------------------------------------------------------------------------------- rows --- */

static struct rv__row *add_row(struct rv__outline *t)
{
    static struct rv__row nowhere; /* without memory a row is missing, and rc says so */
    if (t->count == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        struct rv__row *rows = rv__realloc(t->rows, cap * sizeof *rows);
        if (rows == NULL) {
            t->rc = RV_ENOMEM;
            return &nowhere;
        }
        t->rows = rows;
        t->cap = cap;
    }
    struct rv__row *row = &t->rows[t->count++];
    *row = (struct rv__row){ .ms = -1 };
    return row;
}

static const char *keep(struct rv__outline *t, struct rv__buf *text)
{
    struct rv__str view = rv__buf_view(text);
    const char *copy = rv__arena_dup(&t->arena, view.at, view.len);
    if (copy == NULL)
        t->rc = RV_ENOMEM;
    return copy != NULL ? copy : "";
}

static bool is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

static bool is_over(const rv_node *node)
{
    return is(node->status, "completed") || is(node->status, "failed") ||
           is(node->status, "skipped") || is(node->status, "cancelled");
}

static enum rv__row_weight row_weight(const rv_node *node)
{
    if (is(node->status, "failed"))
        return ROW_BAD;
    if (is(node->status, "pending"))
        return ROW_PENDING;
    return is_over(node) ? ROW_DONE : ROW_LIVE;
}

static void separate(struct rv__buf *out)
{
    if (out->len > 0)
        rv__buf_text(out, "; ");
}

/* The text beside its name and time. */
static void put_note(struct rv__outline *t, const rv_node *node, struct rv__row *row)
{
    char text[RV__DURATION_TEXT], when[RV__WHEN_TEXT];
    struct rv__buf note;
    int64_t left = node->due_at - t->now_ms;
    rv__buf_init(&note, NOTE_BYTES);
    if (*node->label != '\0' || *node->item != '\0')
        rv__buf_text(&note, *node->label != '\0' ? node->label : node->item);
    if (node->attempt > 1) {
        separate(&note);
        rv__buf_fmt(&note, "attempt %d", node->attempt);
    }
    if (node->crashes > 0) {
        separate(&note);
        rv__buf_fmt(&note, "%d crash%s", node->crashes, node->crashes == 1 ? "" : "es");
    }
    if (node->due_at != 0 && !is_over(node)) {
        separate(&note);
        rv__buf_fmt(&note, "%s %s, in %s", is(node->status, "waiting_retry") ? "again at" : "until",
                    rv__text_when(node->due_at, t->now_ms, when), rv__text_duration(left, text));
    }
    row->plain_note = keep(t, &note);
    if (*node->error != '\0' && !is(node->status, "completed")) {
        separate(&note);
        row->note_is_error = is(node->status, "failed");
        rv__text_error(&note, rv__str(node->error));
    }
    if (*node->description != '\0') {
        separate(&note);
        rv__buf_text(&note, node->description);
    }
    row->note = keep(t, &note);
    rv__buf_done(&note);
}

static void add_node(struct rv__outline *t, const rv_node *node, int depth)
{
    struct rv__row *row = add_row(t);
    row->depth = depth;
    row->status = node->status;
    row->weight = row_weight(node);
    row->timer = node->due_at != 0 && is(node->status, "running");
    row->ms = node->started_at != 0 ? node->duration_ms : -1;
    row->name = rv__arena_dup(&t->arena, node->alias, strlen(node->alias));
    row->status = rv__arena_dup(&t->arena, node->status, strlen(node->status));
    if (row->name == NULL || row->status == NULL) {
        t->rc = RV_ENOMEM;
        row->name = row->status = "";
    }
    put_note(t, node, row);
}

static void add_count(struct rv__outline *t, int depth, size_t count, const char *what,
                      enum rv__row_weight weight)
{
    struct rv__buf text;
    struct rv__row *row = add_row(t);
    rv__buf_init(&text, NOTE_BYTES);
    rv__buf_fmt(&text, "%zu %s", count, what);
    row->depth = depth;
    row->name = keep(t, &text);
    row->note = "";
    row->weight = weight;
    rv__buf_done(&text);
}

/* ----------------------------------------------------------------------------- iterations --- */

static struct rv__over *over_of(struct rv__outline *t, const char *path)
{
    for (size_t i = 0; i < t->over_count; i++)
        if (is(t->over[i].path, path))
            return &t->over[i];
    if (t->over_count == RV__OVER_MAX)
        return NULL;
    char *copy = rv__alloc(strlen(path) + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, path, strlen(path) + 1);
    t->over[t->over_count] = (struct rv__over){ .path = copy };
    return &t->over[t->over_count++];
}

static void count_over(struct rv__over *over, const rv_node *node)
{
    over->count++;
    over->failed += is(node->status, "failed");
    over->skipped += is(node->status, "skipped") || is(node->status, "cancelled");
}

static void add_children(struct rv__outline *t, const char *parent, int depth);

static void add_with_children(struct rv__outline *t, const rv_node *node, int depth)
{
    bool closed = t->live && (row_weight(node) == ROW_DONE || row_weight(node) == ROW_PENDING);
    size_t at = t->count;
    add_node(t, node, depth);
    if (node->children > 0 && !closed && depth < DEPTH_MAX && !is(node->status, "pending"))
        add_children(t, node->path, depth + 1);
    /* If a child failed, the node's error is the child's: show it only there. */
    for (size_t i = at + 1; i < t->count && t->rows[at].note_is_error; i++)
        if (t->rows[i].depth == depth + 1 && t->rows[i].weight == ROW_BAD) {
            t->rows[at].note = t->rows[at].plain_note;
            t->rows[at].note_is_error = false;
        }
}

struct iterations {
    size_t live, bad; /* shown */
    size_t hidden_live, hidden_bad;
    struct rv__over over; /* all that have ended, including those of earlier looks */
};

static void add_iteration(struct rv__outline *t, const rv_node *node, int depth, bool few,
                          struct iterations *all)
{
    enum rv__row_weight weight = row_weight(node);
    if (is_over(node))
        count_over(&all->over, node);
    if (weight == ROW_BAD && all->bad++ >= ITERATIONS_BAD)
        all->hidden_bad++;
    else if (weight == ROW_LIVE && all->live++ >= ITERATIONS_LIVE)
        all->hidden_live++;
    else if (weight == ROW_BAD || weight == ROW_LIVE || (few && weight == ROW_DONE))
        add_with_children(t, node, depth);
}

/* Show how many succeeded, beside the node of the iterations. */
static void put_counts(struct rv__outline *t, struct rv__row *row, const struct rv__over *over)
{
    struct rv__buf note;
    size_t good = over->count - over->failed - over->skipped;
    rv__buf_init(&note, NOTE_BYTES);
    if (good > 0)
        rv__buf_fmt(&note, "%zu completed", good);
    if (over->failed > 0)
        rv__buf_fmt(&note, "%s%zu failed", note.len > 0 ? ", " : "", over->failed);
    if (over->skipped > 0)
        rv__buf_fmt(&note, "%s%zu skipped or cancelled", note.len > 0 ? ", " : "", over->skipped);
    if (note.len > 0 && *row->note != '\0')
        rv__buf_fmt(&note, "; %s", row->note);
    if (note.len > 0)
        row->note = keep(t, &note);
    rv__buf_done(&note);
}

/* Show active and failed iterations, and how many succeeded. A live view starts after those that had ended at its
 * last look: of a hundred thousand, a frame reads only the moving ones. */
static void add_iterations(struct rv__outline *t, const char *parent, size_t total, int depth)
{
    size_t owner = t->count - 1; /* their parent is the row before */
    struct rv__over *over = t->live ? over_of(t, parent) : NULL;
    struct iterations all = { .live = 0 };
    size_t at = 0, scan = t->live ? LIVE_SCAN : SIZE_MAX;
    bool few = !t->live && total <= ITERATIONS_GOOD, in_front = true;
    if (over != NULL) {
        all.over = *over;
        at = over->count;
    }
    size_t from = at;
    while (at < total && at - from < scan) {
        rv_node_list *list = NULL;
        rv_error err;
        int rc = rv__client_nodes(t->client, t->run_id, parent, at, PAGE, &t->walked, &list, &err);
        t->rc = rc == RV_ETOOBIG && t->rc == RV_OK ? rc : t->rc;
        if (rc < 0 || list->count == 0) {
            rv_node_list_free(list);
            break;
        }
        for (size_t i = 0; i < list->count; i++) {
            const rv_node *node = &list->nodes[i];
            bool bad = is(node->status, "failed");
            in_front = in_front && is_over(node) && !bad; /* failed ones are shown each time */
            if (in_front && over != NULL)
                count_over(over, node);
            add_iteration(t, node, depth, few, &all);
        }
        at += list->count;
        rv_node_list_free(list);
    }
    if (!few && owner < t->count)
        put_counts(t, &t->rows[owner], &all.over);
    if (all.hidden_bad > 0)
        add_count(t, depth, all.hidden_bad, "more failed", ROW_BAD);
    if (all.hidden_live > 0 || at < total)
        add_count(t, depth, all.hidden_live + (total - at), "more running", ROW_LIVE);
}

static void add_children(struct rv__outline *t, const char *parent, int depth)
{
    size_t offset = 0, total = 1;
    while (offset < total) {
        rv_node_list *list = NULL;
        rv_error err;
        int rc = rv__client_nodes(t->client, t->run_id, parent, offset, PAGE, &t->walked, &list,
                                  &err);
        if (rc < 0 || list->count == 0) {
            bool bad = rc == RV_ETOOBIG || (rc < 0 && depth == 0);
            t->rc = bad && t->rc == RV_OK ? rc : t->rc;
            rv_node_list_free(list);
            return;
        }
        total = list->total;
        if (is(list->nodes[0].kind, "iteration")) {
            rv_node_list_free(list);
            add_iterations(t, parent, total, depth);
            return;
        }
        for (size_t i = 0; i < list->count; i++)
            add_with_children(t, &list->nodes[i], depth);
        offset += list->count;
        rv_node_list_free(list);
    }
}

int rv__outline_read(struct rv__outline *tree, rv_error *err)
{
    tree->count = 0;
    tree->walked = 0;
    tree->rc = RV_OK;
    tree->now_ms = rv__wall_ms(rv__clock_real());
    rv__arena_reset(&tree->arena);
    add_children(tree, "", 0);
    if (tree->rc == RV_ETOOBIG)
        return rv__fail(err, RV_ETOOBIG, "the run has too many nodes to show");
    return tree->rc < 0 ? rv__fail(err, tree->rc, "%s", rv_strerror(tree->rc)) : RV_OK;
}

/* --------------------------------------------------------------------------------- writing --- */

static const char *const spinner[] = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" };
static const char *const spinner_ascii[] = { "|", "/", "-", "\\" };

static const char *icon_of(const struct rv__row *row, const struct rv__row_style *style)
{
    static const struct {
        const char *status, *unicode, *ascii;
    } icons[] = { { "completed", "✓", "+" },    { "failed", "✗", "x" },
                  { "pending", "·", "." },      { "skipped", "↷", "-" },
                  { "cancelled", "⊘", "!" },    { "suspended", "‖", "=" },
                  { "waiting_retry", "↻", "~" } };
    if (row->status == NULL)
        return style->unicode ? "…" : ":";
    if (row->timer)
        return style->unicode ? "◷" : "@";
    for (size_t i = 0; i < sizeof icons / sizeof *icons; i++)
        if (is(icons[i].status, row->status))
            return style->unicode ? icons[i].unicode : icons[i].ascii;
    if (style->words) /* no animation */
        return style->unicode ? "▸" : ">";
    return style->unicode ? spinner[style->tick % 10] : spinner_ascii[style->tick % 4];
}

enum { INDENT = 2, NAME_LEAST = 8, STATUS_WIDTH = 13, TIME_WIDTH = 6 };

int rv__outline_name_width(const struct rv__outline *tree, int width)
{
    int most = NAME_LEAST;
    for (size_t i = 0; i < tree->count; i++) {
        int w = tree->rows[i].depth * INDENT + rv__text_width(rv__str(tree->rows[i].name));
        most = w > most ? w : most;
    }
    return most < width / 2 ? most : width / 2;
}

/* Append text in a colour and a width. */
static void put(struct rv__buf *out, const struct rv__row_style *style, enum rv__colour colour,
                struct rv__str text, int width, bool pad)
{
    bool coloured = colour != PLAIN;
    if (coloured)
        rv__buf_text(out, rv__colour(style->to, colour));
    if (pad)
        rv__text_pad(out, text, width);
    else
        (void)rv__text_fit(out, text, width);
    if (coloured)
        rv__buf_text(out, rv__colour(style->to, PLAIN));
}

void rv__row_write(const struct rv__row *row, const struct rv__row_style *style,
                   struct rv__buf *out)
{
    char time[RV__DURATION_TEXT] = "";
    const char *status = row->status != NULL ? row->status : "";
    enum rv__colour colour = row->status != NULL ? rv__status_colour(status) : DIM;
    int indent = row->depth * INDENT, left = style->width - 2;
    indent = indent < style->name_width ? indent : style->name_width;
    for (int i = 0; i < indent; i++)
        rv__buf_char(out, ' ');
    put(out, style, colour, rv__str(icon_of(row, style)), 1, true);
    rv__buf_char(out, ' ');
    put(out, style, row->weight == ROW_PENDING || row->status == NULL ? DIM : PLAIN,
        rv__str(row->name), style->name_width - indent, true);
    left -= style->name_width;
    if (style->words && left > STATUS_WIDTH + 2) {
        rv__buf_text(out, "  ");
        put(out, style, colour, rv__str(status), STATUS_WIDTH, true);
        left -= STATUS_WIDTH + 2;
    }
    if (left > TIME_WIDTH + 2) {
        rv__buf_text(out, "  ");
        rv__buf_fmt(out, "%*s", TIME_WIDTH, row->ms >= 0 ? rv__text_duration(row->ms, time) : "");
        left -= TIME_WIDTH + 2;
    }
    if (*row->note != '\0' && left > 4) {
        rv__buf_text(out, "  ");
        put(out, style, row->note_is_error ? RED : DIM, rv__str(row->note), left - 2, false);
    }
    while (out->len > 0 && out->text[out->len - 1] == ' ')
        rv__buf_cut(out, out->len - 1);
}
