/* export.c: writes one run to a file. format.h describes the format; import_file.c reads it.
 *
 * The store shows a snapshot of the run (rv__store_whole), and meanwhile its WAL cannot be restarted. So only the
 * disk is waited for: a caller that wants the text instead of a file gets it afterwards, from a file without a
 * name; and it gets nothing of a run that cannot be read completely. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/outfile.h"
#include "base/opts.h"
#include "keep/format.h"
#include "keep/keep.h"

enum { PIECE = 64 << 10 }; /* written, or passed on, at once */

struct exporting {
    struct rv__outfile out;
    struct rv__buf text; /* lines to write */
    struct rv__sha256 hash;
    int64_t now_ms;
    uint64_t lines;
    bool defined;
    rv_error *err;
};

static const char *const levels[] = { "debug", "info", "warn", "error" };

/* Append JSON on one line: line ends can only be between its values, and become blanks. */
static void put_json(struct rv__buf *out, struct rv__str json)
{
    size_t from = out->len;
    rv__buf_str(out, json);
    for (size_t i = from; i < out->len; i++)
        if (out->text[i] == '\n' || out->text[i] == '\r')
            out->text[i] = ' ';
}

static void put_text(struct rv__buf *out, const char *key, struct rv__str text)
{
    rv__buf_fmt(out, "\"%s\":", key);
    rv__buf_json_str(out, text);
    rv__buf_char(out, ',');
}

static void put_number(struct rv__buf *out, const char *key, int64_t number)
{
    rv__buf_fmt(out, "\"%s\":", key);
    rv__buf_int(out, number);
    rv__buf_char(out, ',');
}

/* After the last member: its comma is replaced by the end of the object and of the line's object. */
static void end_object(struct rv__buf *out)
{
    if (out->rc == RV_OK) /* else there is nothing to remove */
        rv__buf_cut(out, out->len - 1);
    rv__buf_text(out, "}}\n");
}

static int flush(struct exporting *x)
{
    int rc = rv__buf_err(&x->text, x->err);
    if (rc < 0)
        return rc;
    rv__sha256_add(&x->hash, rv__buf_view(&x->text));
    rc = rv__outfile_write(&x->out, rv__buf_view(&x->text), x->err);
    rv__buf_reset(&x->text);
    return rc;
}

/* A line is complete. */
static int line_done(struct exporting *x)
{
    x->lines++;
    return x->text.len < PIECE && x->text.rc == RV_OK ? RV_OK : flush(x);
}

static int put_run(void *arg, const struct rv__store_run *row)
{
    struct exporting *x = arg;
    struct rv__buf *out = &x->text;
    rv__buf_text(out, RV__EXPORT_HEAD "{");
    put_number(out, "format", RV__EXPORT_FORMAT);
    put_text(out, "runId", row->id);
    put_text(out, "workflow", row->workflow);
    put_text(out, "version", row->version);
    put_text(out, "status", row->status);
    put_number(out, "exportedAt", x->now_ms);
    put_text(out, "by", rv__str(rv_version()));
    end_object(out);
    x->lines++;
    rv__buf_text(out, RV__EXPORT_RUN "{");
    put_number(out, "createdAt", row->created_ms);
    put_number(out, "startedAt", row->started_ms);
    put_number(out, "completedAt", row->completed_ms);
    put_text(out, "inputKey", row->input_key);
    if (!rv__str_none(row->rerun_of))
        put_text(out, "rerunOf", row->rerun_of);
    rv__buf_text(out, "\"input\":");
    put_json(out, rv__str_none(row->input) ? rv__str("null") : row->input);
    rv__buf_text(out, "}}\n");
    return line_done(x);
}

static int put_definition(void *arg, uint64_t seq, struct rv__str json)
{
    struct exporting *x = arg;
    (void)seq;
    x->defined = true;
    rv__buf_text(&x->text, RV__EXPORT_DEFINITION);
    put_json(&x->text, json);
    rv__buf_text(&x->text, "}\n");
    return line_done(x);
}

static int put_value(void *arg, uint64_t number, struct rv__str json)
{
    struct exporting *x = arg;
    rv__buf_text(&x->text, RV__EXPORT_VALUE "[");
    rv__buf_int(&x->text, (int64_t)number);
    rv__buf_char(&x->text, ',');
    put_json(&x->text, json);
    rv__buf_text(&x->text, "]}\n");
    return line_done(x);
}

static int put_facts(struct exporting *x, struct rv__str facts)
{
    rv__buf_text(&x->text, RV__EXPORT_TURN "[");
    put_json(&x->text, facts);
    rv__buf_text(&x->text, "]}\n");
    return line_done(x);
}

/* The facts are too long for one line: write parts of them, one turn each. */
static int put_long_turn(struct exporting *x, struct rv__str facts)
{
    struct rv__buf array; /* the check needs one value */
    struct rv__json_iter it;
    struct rv__str fact = { NULL, 0 };
    rv__buf_init(&array, SIZE_MAX / 8);
    rv__buf_char(&array, '[');
    rv__buf_str(&array, facts);
    rv__buf_char(&array, ']');
    int rc = rv__buf_err(&array, x->err);
    if (rc == RV_OK)
        rc = rv__json_check_stored(rv__buf_view(&array), RV__JSON_MAX_DEPTH, NULL, x->err);
    rv__json_iter_init(&it, rc == RV_OK ? rv__buf_view(&array) : rv__str("[]"));
    const char *from = NULL, *to = NULL;
    while (rc == RV_OK && rv__json_next(&it, NULL, &fact)) {
        if (from != NULL && (size_t)(fact.at + fact.len - from) > RV__EXPORT_TURN_MAX) {
            rc = put_facts(x, (struct rv__str){ from, (size_t)(to - from) });
            from = NULL;
        }
        from = from != NULL ? from : fact.at;
        to = fact.at + fact.len;
    }
    if (rc == RV_OK && from != NULL)
        rc = put_facts(x, (struct rv__str){ from, (size_t)(to - from) });
    rv__buf_done(&array);
    return rc;
}

static int put_turn(void *arg, uint64_t seq, struct rv__str facts)
{
    struct exporting *x = arg;
    (void)seq;
    return facts.len > RV__EXPORT_TURN_MAX ? put_long_turn(x, facts) : put_facts(x, facts);
}

static int put_log(void *arg, const struct rv__store_log *line)
{
    struct exporting *x = arg;
    struct rv__buf *out = &x->text;
    rv__buf_text(out, RV__EXPORT_LOG "{");
    put_number(out, "at", line->at_ms);
    put_text(out, "level", rv__str(levels[line->level & 3]));
    if (!rv__str_none(line->path))
        put_text(out, "path", line->path);
    if (!rv__str_none(line->step))
        put_text(out, "step", line->step);
    put_number(out, "attempt", line->attempt);
    put_text(out, "message", line->message);
    if (!rv__str_none(line->kind))
        put_text(out, "kind", line->kind);
    if (!rv__str_none(line->metadata)) {
        rv__buf_text(out, "\"metadata\":");
        put_json(out, line->metadata);
        rv__buf_char(out, ',');
    }
    end_object(out);
    return line_done(x);
}

static int put_end(struct exporting *x)
{
    char hash[RV__SHA256_HEX];
    int rc = flush(x);
    if (rc < 0)
        return rc;
    rv__sha256_done(&x->hash, hash);
    rv__buf_text(&x->text, RV__EXPORT_END "{");
    put_number(&x->text, "lines", (int64_t)x->lines);
    put_text(&x->text, "sha256", rv__str(hash));
    end_object(&x->text);
    rv__sha256_init(&x->hash); /* not used any more */
    return flush(x);
}

static int export_run(struct exporting *x, struct rv__store *reader, const char *run_id)
{
    static const struct rv__store_visitor visitor = { put_run, put_definition, put_value, put_turn,
                                                      put_log };
    int rc = rv__store_whole(reader, rv__str(run_id), &visitor, x, x->err);
    if (rc == RV_OK && !x->defined)
        rc = rv__fail(x->err, RV_ESTORE,
                      "run '%.128s' cannot be exported: the store has no plan of it", run_id);
    return rc == RV_OK ? put_end(x) : rc;
}

/* Pass the file without a name on to the caller. */
static int hand_on(struct exporting *x, const rv_export_opts *opts)
{
    char piece[PIECE];
    off_t at = 0;
    for (;;) {
        ssize_t n = pread(x->out.file, piece, sizeof piece, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rv__fail(x->err, RV_ESYS, "cannot read what was just written: %s",
                            strerrordesc_np(errno));
        if (n == 0)
            return RV_OK;
        if (opts->write(opts->arg, piece, (size_t)n) != 0)
            return rv__fail(x->err, RV_ECANCELED, "the export was cancelled by the caller");
        at += n;
    }
}

int rv__export(struct rv__store *reader, const char *run_id, const rv_export_opts *opts,
               int64_t now_ms, rv_error *err)
{
    rv_export_opts known = { .size = 0 };
    struct exporting x = { .err = err };
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    if (run_id == NULL || !rv__id_valid(rv__str(run_id)) || known.size == 0 ||
        (known.path == NULL) == (known.write == NULL))
        return rv__fail(err, RV_EINVAL, "rv_export: %s",
                        run_id == NULL    ? "no run given"
                        : known.size == 0 ? "make the options with RV_EXPORT_OPTS"
                        : rv__id_valid(rv__str(run_id))
                            ? "no target given: set a path or a function"
                            : "a run id is [A-Za-z0-9._:-]{1,128}");
    int rc = rv__outfile_open(&x.out, known.path, known.replace, err);
    if (rc < 0)
        return rc;
    x.now_ms = now_ms;
    rv__buf_init(&x.text, SIZE_MAX / 8); /* a few lines, each bounded when it was written */
    rv__sha256_init(&x.hash);
    rc = export_run(&x, reader, run_id);
    if (rc == RV_OK)
        rc = known.path != NULL ? rv__outfile_keep(&x.out, err) : hand_on(&x, &known);
    rv__outfile_done(&x.out);
    rv__buf_done(&x.text);
    return rc;
}

void rv_export_opts_init(rv_export_opts *opts)
{
    *opts = (rv_export_opts){ .size = sizeof *opts };
}
