/* import_file.c: reads the file of an exported run (format.h), and makes writes for the store.
 *
 * One pass over the file, in one transaction. Each turn is checked, applied to a cell as when a run is loaded, and
 * then written. Everything else that the store has of a run (results, status, snapshot) comes from the cell and not
 * from the file, so that it cannot contradict the turns. The last line has the count and the hash of the others:
 * nothing is committed before they were checked. Memory: the cell, and a line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "keep/format.h"
#include "keep/keep.h"

enum { READ_PIECE = 64 << 10 };

/* The last millisecond of the year 9999: sums with a duration do not overflow. */
#define TIME_MAX_MS INT64_C(253402300799999)

/* ---------------------------------------------------------------------------------- lines --- */

struct rv__import {
    int file;
    const char *name; /* of the file, for messages */
    struct rv__buf text;
    size_t at, looked; /* in `text`: the next line; searched for its end up to here */
    struct rv__sha256 hash;
    uint64_t lines, turns, values; /* read */

    struct rv__plan *plan;
    struct rv__cell *cell;
    struct rv__facts facts; /* the facts of a turn; at the end: steps in flight are lost */
    struct rv__buf snapshot;
    struct rv__buf suspensions;         /* as its row has them */
    struct rv__arena arena, line_arena; /* for the import; for one line */
    int64_t now_ms;
    int max_crashes;

    /* the next write */
    struct rv__store_run row;
    struct rv__store_definition definition;
    struct rv__store_touch touch;
    struct rv__store_log log;
    struct rv__store_value value;
    struct rv__store_result *results;
    size_t result_cap;
    bool begun, wrapped_up;
};

static int bad(const struct rv__import *im, rv_error *err, const char *why)
{
    return rv__fail(err, RV_EPARSE, "'%.100s', line %llu: %.120s; nothing was imported", im->name,
                    (unsigned long long)im->lines, why);
}

/* Read more text. 0: end of file. */
static int read_more(struct rv__import *im, rv_error *err)
{
    char piece[READ_PIECE];
    ssize_t n;
    if (im->at > 0 && im->text.text != NULL) { /* remove the lines already read */
        memmove(im->text.text, im->text.text + im->at, im->text.len - im->at);
        rv__buf_cut(&im->text, im->text.len - im->at);
        im->looked -= im->at;
        im->at = 0;
    }
    do
        n = read(im->file, piece, sizeof piece);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return rv__fail(err, RV_ESYS, "cannot read '%.200s': %s", im->name, strerrordesc_np(errno));
    rv__buf_add(&im->text, piece, (size_t)n);
    if (im->text.rc == RV_ETOOBIG)
        return bad(im, err, "it is longer than any line that Rival writes");
    int rc = rv__buf_err(&im->text, err);
    return rc < 0 ? rc : n > 0;
}

/* The next line, with its end; valid until the next call. 1; 0: no more; or an error. A last line without an end is
 * an error: the file was cut. */
static int next_line(struct rv__import *im, struct rv__str *ret, rv_error *err)
{
    for (;;) {
        const char *from = im->text.len > im->looked ? im->text.text + im->looked : NULL;
        const char *end = from != NULL ? memchr(from, '\n', im->text.len - im->looked) : NULL;
        if (end != NULL) {
            *ret = (struct rv__str){ im->text.text + im->at,
                                     (size_t)(end + 1 - (im->text.text + im->at)) };
            im->at += ret->len;
            im->looked = im->at;
            im->lines++;
            return 1;
        }
        im->looked = im->text.len;
        int rc = read_more(im, err);
        if (rc < 0)
            return rc;
        if (rc == 0 && im->looked == im->at)
            return 0;
        if (rc == 0) {
            im->lines++;
            return bad(im, err, "it is cut off: the file is incomplete");
        }
    }
}

/* The value of a line that begins with `begin`; false: it does not. The value is not checked yet. */
static bool line_value(struct rv__str line, const char *begin, struct rv__str *ret)
{
    size_t len = strlen(begin);
    if (line.len < len + 3 || memcmp(line.at, begin, len) != 0 || line.at[line.len - 2] != '}')
        return false;
    *ret = (struct rv__str){ line.at + len, line.len - len - 2 };
    return true;
}

/* Check that it is one value of this type, not nested too deep. */
static int check_value(const struct rv__import *im, struct rv__str *value, enum rv__json_type type,
                       rv_error *err)
{
    rv_error why;
    if (rv__json_check_stored(*value, RV__JSON_MAX_DEPTH, value, &why) < 0)
        return bad(im, err, why.message);
    return rv__json_type(*value) == type ? RV_OK : bad(im, err, "it is of another type");
}

/* Read the line that must come next. */
static int expect_line(struct rv__import *im, const char *begin, const char *what,
                       struct rv__str *ret, rv_error *err)
{
    struct rv__str line = { NULL, 0 };
    int rc = next_line(im, &line, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return bad(im, err,
                   im->lines == 0 ? "it is empty" : "the file ends here, and is incomplete");
    if (!line_value(line, begin, ret))
        return bad(im, err, what);
    rv__sha256_add(&im->hash, line);
    return check_value(im, ret, RV__JSON_OBJECT, err);
}

static int get_int(const struct rv__import *im, struct rv__str object, const char *key, int64_t max,
                   int64_t *ret, rv_error *err)
{
    struct rv__str value;
    char why[80];
    if (rv__json_get(object, key, &value) && rv__json_int(value, ret) == RV_OK && *ret >= 0 &&
        *ret <= max)
        return RV_OK;
    snprintf(why, sizeof why, "\"%s\" is not a valid number", key);
    return bad(im, err, why);
}

/* A text, unescaped, in the arena or the line. None if it is absent and not `needed`. */
static int get_text(struct rv__import *im, struct rv__str object, const char *key, bool needed,
                    struct rv__arena *arena, struct rv__str *ret, rv_error *err)
{
    struct rv__str value = { NULL, 0 };
    char why[80];
    bool there = rv__json_get(object, key, &value);
    if (!there && !needed) {
        *ret = (struct rv__str){ NULL, 0 };
        return RV_OK;
    }
    int rc = there ? rv__json_string(value, arena, ret) : RV_EINVAL;
    if (rc == RV_ENOMEM)
        return rv__nomem(err);
    snprintf(why, sizeof why, "\"%s\" is missing or not a text", key);
    return rc < 0 ? bad(im, err, why) : RV_OK;
}

/* As get_text(), but valid as long as the import. */
static int keep_text(struct rv__import *im, struct rv__str object, const char *key,
                     struct rv__str *ret, rv_error *err)
{
    struct rv__str text = { NULL, 0 };
    int rc = get_text(im, object, key, true, &im->arena, &text, err);
    if (rc == RV_OK && rv__str_copy(&im->arena, text, ret) < 0)
        rc = rv__nomem(err);
    return rc;
}

/* ------------------------------------------------------------------------------- the head --- */

static int read_head(struct rv__import *im, rv_error *err)
{
    struct rv__str head = { NULL, 0 };
    int64_t format = 0;
    int rc = expect_line(im, RV__EXPORT_HEAD, "this is not an exported run", &head, err);
    if (rc == RV_OK)
        rc = get_int(im, head, "format", INT32_MAX, &format, err);
    if (rc < 0)
        return rc;
    if (format != RV__EXPORT_FORMAT)
        return rv__fail(
            err, RV_EINVAL,
            "'%.100s' was written by another version of Rival (format %lld, this program "
            "knows %d); nothing was imported",
            im->name, (long long)format, RV__EXPORT_FORMAT);
    rc = keep_text(im, head, "runId", &im->row.id, err);
    if (rc == RV_OK && !rv__id_valid(im->row.id))
        rc = bad(im, err, "its \"runId\" cannot name a run: [A-Za-z0-9._:-]{1,128}");
    if (rc == RV_OK)
        rc = keep_text(im, head, "version", &im->row.version, err);
    return rc;
}

static int read_run(struct rv__import *im, rv_error *err)
{
    struct rv__store_run *row = &im->row;
    struct rv__str run = { NULL, 0 }, input;
    int rc = expect_line(im, RV__EXPORT_RUN, "the run should be here", &run, err);
    if (rc == RV_OK)
        rc = get_int(im, run, "createdAt", TIME_MAX_MS, &row->created_ms, err);
    if (rc == RV_OK)
        rc = get_int(im, run, "startedAt", TIME_MAX_MS, &row->started_ms, err);
    if (rc == RV_OK)
        rc = get_int(im, run, "completedAt", TIME_MAX_MS, &row->completed_ms, err);
    if (rc == RV_OK)
        rc = keep_text(im, run, "inputKey", &row->input_key, err);
    if (rc < 0)
        return rc;
    if (row->input_key.len != 64 ||
        strspn(row->input_key.at, "0123456789abcdef") != row->input_key.len)
        return bad(im, err, "its \"inputKey\" is not one");
    if (rv__json_get(run, "rerunOf", &input)) {
        rc = keep_text(im, run, "rerunOf", &row->rerun_of, err);
        if (rc == RV_OK && !rv__id_valid(row->rerun_of))
            rc = bad(im, err, "its \"rerunOf\" cannot name a run");
        if (rc < 0)
            return rc;
    }
    if (!rv__json_get(run, "input", &input))
        return bad(im, err, "it has no \"input\"");
    return rv__str_copy(&im->arena, input, &row->input) < 0 ? rv__nomem(err) : RV_OK;
}

static int read_definition(struct rv__import *im, rv_error *err)
{
    struct rv__cell_opts opts = { .max_crashes = im->max_crashes };
    struct rv__str json = { NULL, 0 };
    rv_error why;
    int rc = expect_line(im, RV__EXPORT_DEFINITION, "the definition should be here", &json, err);
    if (rc < 0)
        return rc;
    rc = rv__plan_read(json, &im->plan, &why);
    if (rc == RV_ENOMEM)
        return rv__nomem(err);
    if (rc < 0)
        return bad(im, err, why.message);
    if (!rv__str_is(im->row.version, im->plan->version))
        return bad(im, err, "the definition does not match the run's version");
    im->row.workflow = im->plan->body.wrap->name;
    im->definition.hash = im->row.version;
    if (rv__str_copy(&im->arena, json, &im->definition.json) < 0)
        return rv__nomem(err);
    opts.plan = im->plan;
    return rv__cell_empty(&opts, &im->cell, err);
}

/* --------------------------------------------------------------------------------- writes --- */

/* The results of iterations that ended in this turn. */
static int take_results(struct rv__import *im, struct rv__store_write *ret)
{
    size_t count = im->facts.row_count;
    if (count > im->result_cap) {
        size_t cap = count < 64 ? 64 : 2 * count;
        void *results = rv__realloc(im->results, cap * sizeof *im->results);
        if (results == NULL)
            return RV_ENOMEM;
        im->results = results;
        im->result_cap = cap;
    }
    for (size_t i = 0; i < count; i++) {
        const struct rv__row *row = &im->facts.rows[i];
        im->results[i] = (struct rv__store_result){ row->key, row->index, row->json };
    }
    ret->results = im->results;
    ret->result_count = count;
    return RV_OK;
}

static int read_turn(struct rv__import *im, struct rv__str facts, struct rv__store_write *ret,
                     rv_error *err)
{
    rv_error why;
    int rc = check_value(im, &facts, RV__JSON_ARRAY, err);
    if (rc < 0)
        return rc;
    facts = (struct rv__str){ facts.at + 1, facts.len - 2 }; /* as the store has them */
    rv__facts_reset(&im->facts);
    rc = rv__cell_replay_rows(im->cell, facts, &im->facts, &why);
    if (rc == RV_ENOMEM || (rc == RV_OK && take_results(im, ret) < 0))
        return rv__nomem(err);
    if (rc < 0)
        return bad(im, err, why.message);
    im->turns++;
    ret->facts = facts;
    return RV_OK;
}

/* [number,json] */
static int read_value(struct rv__import *im, struct rv__str pair, struct rv__store_write *ret,
                      rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str number;
    int64_t n = 0;
    int rc = check_value(im, &pair, RV__JSON_ARRAY, err);
    if (rc < 0)
        return rc;
    if (im->turns > 0)
        return bad(im, err, "a value stands before all turns");
    rv__json_iter_init(&it, pair);
    if (!rv__json_next(&it, NULL, &number) || rv__json_int(number, &n) < 0 ||
        (uint64_t)n != im->values + 1 || !rv__json_next(&it, NULL, &im->value.json))
        return bad(im, err, "it is not the next value");
    im->value.number = ++im->values;
    ret->values = &im->value;
    ret->value_count = 1;
    return RV_OK;
}

static int level_of(struct rv__str name)
{
    static const char *const levels[] = { "debug", "info", "warn", "error" };
    for (int i = 0; i < 4; i++)
        if (rv__str_is(name, levels[i]))
            return i;
    return -1;
}

static int read_log(struct rv__import *im, struct rv__str json, struct rv__store_write *ret,
                    rv_error *err)
{
    struct rv__arena *arena = &im->line_arena;
    struct rv__str level = { NULL, 0 };
    rv__arena_reset(arena);
    im->log = (struct rv__store_log){ .id = 0 };
    int rc = check_value(im, &json, RV__JSON_OBJECT, err);
    if (rc == RV_OK)
        rc = get_int(im, json, "at", TIME_MAX_MS, &im->log.at_ms, err);
    if (rc == RV_OK)
        rc = get_int(im, json, "attempt", INT32_MAX, &im->log.attempt, err);
    if (rc == RV_OK)
        rc = get_text(im, json, "level", true, arena, &level, err);
    if (rc == RV_OK)
        rc = get_text(im, json, "path", false, arena, &im->log.path, err);
    if (rc == RV_OK)
        rc = get_text(im, json, "step", false, arena, &im->log.step, err);
    if (rc == RV_OK)
        rc = get_text(im, json, "message", true, arena, &im->log.message, err);
    if (rc == RV_OK)
        rc = get_text(im, json, "kind", false, arena, &im->log.kind, err);
    if (rc < 0)
        return rc;
    if (level_of(level) < 0)
        return bad(im, err, "its \"level\" is none");
    im->log.level = (enum rv__store_level)level_of(level);
    (void)rv__json_get(json, "metadata", &im->log.metadata); /* optional */
    ret->logs = &im->log;
    ret->log_count = 1;
    return RV_OK;
}

static int read_end(struct rv__import *im, struct rv__str json, rv_error *err)
{
    char hash[RV__SHA256_HEX];
    struct rv__str said = { NULL, 0 }, line;
    int64_t lines = 0;
    int rc = check_value(im, &json, RV__JSON_OBJECT, err);
    if (rc == RV_OK)
        rc = get_int(im, json, "lines", INT64_MAX, &lines, err);
    if (rc == RV_OK)
        rc = get_text(im, json, "sha256", true, &im->arena, &said, err);
    if (rc < 0)
        return rc;
    rv__sha256_done(&im->hash, hash);
    if ((uint64_t)lines != im->lines - 1 || !rv__str_is(said, hash))
        return bad(im, err,
                   "the lines before it are not those that were written: the file was altered");
    if (im->turns == 0)
        return bad(im, err, "a run without a beginning");
    if (im->values != rv__cell_values(im->cell))
        return bad(im, err, "the values are not those that the turns refer to");
    rc = next_line(im, &line, err);
    return rc > 0 ? bad(im, err, "there is data after the end") : rc;
}

/* Steps in flight were lost with their process. They are not to blame. */
static int say_lost(struct rv__import *im, rv_error *err)
{
    struct rv__started lost = rv__cell_started(im->cell);
    int rc = lost.no_memory ? rv__nomem(err) : RV_OK;
    rv__facts_reset(&im->facts);
    for (size_t i = 0; i < lost.count && rc == RV_OK; i++) {
        struct rv__msg msg = { .kind = MSG_LOST,
                               .actor = lost.effects[i].actor,
                               .token = lost.effects[i].token,
                               .now_ms = im->now_ms };
        rc = rv__flow_send(im->cell, &msg, &im->facts, err);
    }
    rv__free(lost.effects);
    return rc;
}

/* The last write: the run's row, and when it can continue. A run that could continue now is due now: the process
 * that drives the store wakes it, as it wakes others. */
static int wrap_up(struct rv__import *im, struct rv__store_write *ret, rv_error *err)
{
    int rc = say_lost(im, err);
    if (rc < 0)
        return rc;
    enum rv__run_status status = rv__cell_status(im->cell);
    bool over = rv__run_terminal(status);
    if (over != (im->row.completed_ms != 0))
        return bad(im, err,
                   over ? "the run has ended, and \"completedAt\" is 0"
                        : "the run has not ended, and has a \"completedAt\"");
    rv__buf_reset(&im->suspensions);
    rc = rv__cell_suspensions(im->cell, RV_LIST_SUSPENSIONS, &im->suspensions, err);
    if (rc < 0)
        return rc;
    im->touch = (struct rv__store_touch){
        .status = rv__str(rv__run_status_name(status)),
        .waiting = rv__cell_waits_for_somebody(im->cell),
        .wake_at_ms = !rv__cell_idle(im->cell)    ? im->now_ms
                      : rv__cell_active(im->cell) ? rv__cell_wake_ms(im->cell)
                                                  : 0,
        .completed_ms = im->row.completed_ms,
        .error = rv__cell_error(im->cell),
        .failed_step = rv__cell_failed_step(im->cell),
        .suspension = rv__buf_view(&im->suspensions),
    };
    ret->touch = &im->touch;
    if (im->facts.count > 0)
        ret->facts = rv__buf_view(&im->facts.json);
    if (!over) {
        rc = rv__cell_save(im->cell, &im->snapshot, err);
        ret->snapshot = rv__buf_view(&im->snapshot);
    }
    im->wrapped_up = rc == RV_OK;
    return rc;
}

int rv__import_next(void *arg, struct rv__store_write *ret, rv_error *err)
{
    struct rv__import *im = arg;
    struct rv__str line = { NULL, 0 }, value;
    *ret = (struct rv__store_write){ .run = im->row.id };
    if (!im->begun) { /* the last write has its status */
        im->begun = true;
        ret->row = &im->row;
        ret->definitions = &im->definition;
        ret->definition_count = 1;
        return 1;
    }
    if (im->wrapped_up)
        return 0;
    int rc = next_line(im, &line, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return bad(im, err, "the file ends here, and is incomplete");
    if (line_value(line, RV__EXPORT_END, &value)) {
        rc = read_end(im, value, err);
        rc = rc == RV_OK ? wrap_up(im, ret, err) : rc;
        return rc < 0 ? rc : 1;
    }
    rv__sha256_add(&im->hash, line);
    if (line_value(line, RV__EXPORT_VALUE, &value))
        rc = read_value(im, value, ret, err);
    else if (line_value(line, RV__EXPORT_TURN, &value))
        rc = read_turn(im, value, ret, err);
    else if (line_value(line, RV__EXPORT_LOG, &value))
        rc = read_log(im, value, ret, err);
    else
        rc = bad(im, err, "it is none that Rival writes");
    return rc < 0 ? rc : 1;
}

/* ----------------------------------------------------------------------------- the import --- */

int rv__import_new(int file, const char *name, int max_crashes, int64_t now_ms,
                   struct rv__import **ret, rv_error *err)
{
    struct rv__import *im = rv__zalloc(1, sizeof *im);
    if (im == NULL)
        return rv__nomem(err);
    *im = (struct rv__import){ .file = file, .name = name, .now_ms = now_ms };
    im->max_crashes = max_crashes;
    rv__buf_init(&im->text, RV__EXPORT_LINE_MAX + (size_t)READ_PIECE);
    rv__buf_init(&im->snapshot, SIZE_MAX / 8);    /* bounded by the cell */
    rv__buf_init(&im->suspensions, SIZE_MAX / 8); /* the same */
    rv__facts_init(&im->facts);
    rv__arena_init(&im->arena, 3 * (size_t)RV__EXPORT_LINE_MAX); /* definition, input, names */
    rv__arena_init(&im->line_arena, (size_t)RV__EXPORT_LINE_MAX);
    rv__sha256_init(&im->hash);
    im->row.status = rv__str(rv__run_status_name(RUN_RUNNING));
    int rc = read_head(im, err);
    if (rc == RV_OK)
        rc = read_run(im, err);
    if (rc == RV_OK)
        rc = read_definition(im, err);
    if (rc < 0) {
        rv__import_free(im);
        return rc;
    }
    *ret = im;
    return RV_OK;
}

void rv__import_free(struct rv__import *im)
{
    if (im == NULL)
        return;
    rv__cell_free(im->cell);
    rv__plan_free(im->plan);
    rv__facts_done(&im->facts);
    rv__buf_done(&im->text);
    rv__buf_done(&im->snapshot);
    rv__buf_done(&im->suspensions);
    rv__arena_done(&im->arena);
    rv__arena_done(&im->line_arena);
    rv__free(im->results);
    rv__free(im);
}

struct rv__str rv__import_run(const struct rv__import *im)
{
    return im->row.id;
}

enum rv__run_status rv__import_status(const struct rv__import *im)
{
    return rv__cell_status(im->cell);
}

int64_t rv__import_wake_ms(const struct rv__import *im)
{
    return im->touch.wake_at_ms;
}
