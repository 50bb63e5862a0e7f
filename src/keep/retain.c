/* retain.c: deletes finished runs that are too old, too many or too large, one piece at a time. The owner of the
 * writer decides when (engine/retain.c). A piece is at most RETAIN_RUNS runs, or FORGET_ROWS (store) rows of their
 * data, so that it never takes longer than a few commits, however much there is to delete. */
#include <stdio.h>

#include "keep/keep.h"

enum { RETAIN_RUNS = 64 }; /* of one piece: with some ten rows each, some milliseconds */

struct candidates {
    const struct rv__retaining *how;
    int64_t before_ms;    /* runs finished before this are too old */
    uint64_t left, bytes; /* runs that remain if no more are chosen; bytes of everything */
    char (*ids)[RV_RUN_ID_SIZE];
    size_t count;
};

/* Called oldest first. The first run to keep ends the search: all later ones are younger. */
static int choose(void *arg, const struct rv__store_run *row)
{
    struct candidates *c = arg;
    const struct rv__retain_limits *limits = c->how->limits;
    bool old = limits->max_age_ms > 0 && row->completed_ms < c->before_ms;
    bool many = limits->max_runs > 0 && c->left > limits->max_runs;
    bool large = limits->max_bytes > 0 && c->bytes > limits->max_bytes;
    if (!old && !many && !large)
        return 1;
    snprintf(c->ids[c->count], RV_RUN_ID_SIZE, "%.*s", RV__ARG(row->id));
    c->count++;
    c->left--;
    if (large && !old && !many && c->count == RETAIN_RUNS / 8)
        return 1; /* unknown how much each frees: delete a few, then look again */
    return RV_OK;
}

int rv__retain_piece(struct rv__store *writer, const struct rv__retaining *how, bool *sweeping,
                     uint64_t *removed, bool *ret_more, rv_error *err)
{
    char ids[RETAIN_RUNS][RV_RUN_ID_SIZE];
    struct rv__str runs[RETAIN_RUNS];
    struct rv__store_usage usage;
    struct candidates c = { .how = how, .ids = ids };
    bool more = false;
    int rc = RV_OK;
    if (!*sweeping) { /* data of deleted runs first: until it is gone, the size is not known */
        rc = rv__store_usage(writer, &usage, err);
        if (rc < 0)
            return rc;
        c.before_ms = how->now_ms - how->limits->max_age_ms;
        c.left = usage.finished;
        c.bytes = usage.bytes;
        rc = rv__store_finished(writer, NULL, RETAIN_RUNS, choose, &c, err);
        if (rc < 0)
            return rc;
        if (c.count == 0) {
            *ret_more = false;
            return RV_OK;
        }
    }
    for (size_t i = 0; i < c.count; i++)
        runs[i] = rv__str(ids[i]);
    rc = rv__store_forget(writer, runs, c.count, &more, err);
    if (rc < 0)
        return rc;
    *sweeping = more;
    *removed += c.count;
    *ret_more = true;
    return RV_OK;
}

/* How many would be deleted, without a list: visits those that are too old, and computes the rest. */
struct counting {
    int64_t before_ms;
    uint64_t old;
};

static int count_old(void *arg, const struct rv__store_run *row)
{
    struct counting *c = arg;
    if (row->completed_ms >= c->before_ms)
        return 1;
    c->old++;
    return RV_OK;
}

int rv__retain_foresee(struct rv__store *reader, const struct rv__retain_limits *limits,
                       int64_t now_ms, uint64_t *ret, rv_error *err)
{
    struct counting c = { now_ms - limits->max_age_ms, 0 };
    struct rv__store_usage usage = { 0 };
    int rc = rv__store_usage(reader, &usage, err);
    if (rc == RV_OK && limits->max_age_ms > 0)
        rc = rv__store_finished(reader, NULL, SIZE_MAX, count_old, &c, err);
    if (rc < 0)
        return rc;
    uint64_t go = c.old;
    if (limits->max_runs > 0 && usage.finished > limits->max_runs &&
        go < usage.finished - limits->max_runs)
        go = usage.finished - limits->max_runs;
    if (limits->max_bytes > 0 && usage.bytes > limits->max_bytes && usage.runs > 0) {
        uint64_t each = usage.bytes / usage.runs + 1;
        uint64_t large = (usage.bytes - limits->max_bytes + each - 1) / each;
        go = go < large ? large : go;
    }
    *ret = go < usage.finished ? go : usage.finished;
    return RV_OK;
}
