/* store.c: what all stores share, and which one a path means. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/store_name.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"

int rv__store_open(const struct rv__store_opts *opts, struct rv__store **ret, rv_error *err)
{
    if (opts == NULL || opts->path == NULL || opts->path[0] == '\0')
        return rv__fail(err, RV_EINVAL, "the store has no path: name a file, or \":memory:\"");
    return rv__store_name_is_address(opts->path) ? rv__postgres_open(opts, ret, err)
                                                 : rv__sqlite_open(opts, ret, err);
}

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool rv__store_contains(struct rv__str text, struct rv__str part)
{
    if (rv__str_none(text))
        return false;
    for (size_t at = 0; part.len <= text.len && at <= text.len - part.len; at++) {
        size_t i = 0;
        while (i < part.len && lower(text.at[at + i]) == lower(part.at[i]))
            i++;
        if (i == part.len)
            return true;
    }
    return false;
}

/* Is `path` that of the node at `node`, or of one in it? */
static bool is_in(struct rv__str path, struct rv__str node)
{
    return path.len >= node.len && memcmp(path.at, node.at, node.len) == 0 &&
           (path.len == node.len || path.at[node.len] == ':');
}

bool rv__store_log_matches(const struct rv__store_log_query *query,
                           const struct rv__store_log *line)
{
    return line->level >= query->min_level &&
           (query->attempt == 0 || line->attempt == query->attempt) &&
           (rv__str_none(query->step) || rv__str_eq(line->step, query->step)) &&
           (rv__str_none(query->path) ||
            (!rv__str_none(line->path) && is_in(line->path, query->path))) &&
           (rv__str_none(query->text) || rv__store_contains(line->message, query->text));
}

/* A cursor is "created_ms:id" of the last row. */
int rv__store_cursor_read(struct rv__str cursor, int64_t *created_ms, struct rv__str *id,
                          rv_error *err)
{
    char digits[24];
    const char *colon = cursor.len > 0 ? memchr(cursor.at, ':', cursor.len) : NULL;
    size_t len = colon != NULL ? (size_t)(colon - cursor.at) : 0;
    bool good = len > 0 && len < sizeof digits;
    if (good) {
        char *end = digits;
        memcpy(digits, cursor.at, len);
        digits[len] = '\0';
        *created_ms = strtoll(digits, &end, 10);
        good = end == digits + len;
    }
    if (!good)
        return rv__fail(err, RV_EINVAL, "'%.*s' is not a cursor: pass the one of the previous list",
                        cursor.len < 60 ? (int)cursor.len : 60, cursor.at);
    *id = (struct rv__str){ colon + 1, cursor.len - len - 1 };
    return RV_OK;
}

void rv__store_cursor_write(struct rv__buf *cursor, const struct rv__store_run *row)
{
    rv__buf_reset(cursor);
    rv__buf_int(cursor, row->created_ms);
    rv__buf_char(cursor, ':');
    rv__buf_str(cursor, row->id);
}

int rv__store_query_start(const struct rv__store_query *query, int64_t *created, struct rv__str *id,
                          rv_error *err)
{
    *created = INT64_MAX;
    *id = rv__str("");
    if (!rv__str_none(query->cursor)) {
        int rc = rv__store_cursor_read(query->cursor, created, id, err);
        if (rc < 0)
            return rc;
    }
    if (query->until_ms != 0 && query->until_ms <= *created) {
        *created = query->until_ms;
        *id = rv__str(""); /* less than every id: what was created just then stays outside */
    }
    return RV_OK;
}

bool rv__store_query_takes(const struct rv__store_query *query, const struct rv__store_run *row)
{
    if (!rv__str_none(query->workflow) && !rv__str_eq(row->workflow, query->workflow))
        return false;
    if (!rv__str_none(query->status) && !rv__str_eq(row->status, query->status))
        return false;
    if (query->waiting && !row->waiting)
        return false;
    if (!rv__str_none(query->rerun_of) && !rv__str_eq(row->rerun_of, query->rerun_of))
        return false;
    return rv__str_none(query->text) || rv__store_contains(row->id, query->text) ||
           rv__store_contains(row->workflow, query->text) ||
           rv__store_contains(row->error, query->text) ||
           rv__store_contains(row->input, query->text);
}

struct rv__str rv__store_query_input(const struct rv__store_query *query, struct rv__str input)
{
    const struct rv__str none = { NULL, 0 };
    return query->input_bytes == 0 ? none : rv__str_begin(input, query->input_bytes);
}

int rv__store_check_write(const struct rv__store_write *write, rv_error *err)
{
    if (write->row != NULL && write->touch != NULL)
        return rv__fail(err, RV_EINVAL, "run '%.*s' gets a row and a touch at once",
                        RV__ARG(write->run));
    if (write->row != NULL && !rv__str_eq(write->row->id, write->run))
        return rv__fail(err, RV_EINVAL, "the row of '%.*s' is written for run '%.*s'",
                        RV__ARG(write->row->id), RV__ARG(write->run));
    for (size_t i = 0; i < write->result_count; i++)
        if (rv__str_none(write->results[i].key))
            return rv__fail(err, RV_EINVAL, "a result of run '%.*s' has no key",
                            RV__ARG(write->run));
    for (size_t i = 0; i < write->value_count; i++)
        if (rv__str_none(write->values[i].json) || write->values[i].number > INT64_MAX)
            return rv__fail(err, RV_EINVAL, "value %llu of run '%.*s' has no text, or no number",
                            (unsigned long long)write->values[i].number, RV__ARG(write->run));
    for (size_t i = 0; i < write->log_count; i++)
        if (rv__str_none(write->logs[i].message))
            return rv__fail(err, RV_EINVAL, "a log line of run '%.*s' has no message",
                            RV__ARG(write->run));
    return RV_OK;
}

int rv__store_commit_one(struct rv__store *store, struct rv__store_write *write, rv_error *err)
{
    int rc = rv__store_commit(store, write, 1, err);
    if (rc == RV_OK && write->outcome == STORE_REFUSED)
        rc = rv__fail(err, write->why.code, "%s", write->why.message);
    return rc;
}
