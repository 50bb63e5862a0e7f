/* heads.c: finds the last journal row of each run, without an index.
 *
 * Each journal row has the seq of its run's previous row: a chain that is walked backwards from the run's
 * last row, its head. So a row is appended to one b-tree, and nothing else is written for it (ADR 0018). For this
 * the heads must be known:
 *
 * 1. The row of a run (runs.head) knows its head as of the last write that changed the row anyway.
 * 2. For a run that is not active it is exact: a journal row appended to such a run updates it.
 * 3. For an active run it lags by at most SQLITE_TAIL_ROWS numbers: all unknown rows of the run are newer than
 * that. The writer updates rows that would lag further.
 *
 * So the head of an active run is the later one of its own row's and of its last row in the tail of the journal.
 * The writer has the heads of all lagging runs in memory; it reads the tail once, before its first transaction. A
 * reader reads the tail when an active run is first requested, and later only what was added.
 *
 * The writer's map changes within a transaction, so every change is noted and can be undone. */
#include "store/sqlite/sqlite.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"

enum {
    TAIL_MAX = 200000,     /* runs that a reader remembers before it starts again */
    CHAIN_KEEP = 16 << 10, /* numbers kept from one read to the next */
};

/* ----------------------------------------------------------------------------------- the map --- */

static size_t place_of(const struct rv__sqlite_heads *heads, int64_t run)
{
    return (size_t)(((uint64_t)run * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (heads->cap - 1);
}

static struct rv__sqlite_head *find(const struct rv__sqlite_heads *heads, int64_t run)
{
    if (heads->cap == 0)
        return NULL;
    for (size_t i = place_of(heads, run);; i = (i + 1) & (heads->cap - 1)) {
        if (heads->of[i].run == run)
            return &heads->of[i];
        if (heads->of[i].run == 0)
            return NULL;
    }
}

static struct rv__sqlite_head *free_place(struct rv__sqlite_heads *heads, int64_t run)
{
    size_t i = place_of(heads, run);
    while (heads->of[i].run != 0)
        i = (i + 1) & (heads->cap - 1);
    return &heads->of[i];
}

/* Make room for one more; at most half full. */
static int make_room(struct rv__sqlite_heads *heads)
{
    if ((heads->count + 1) * 2 <= heads->cap)
        return RV_OK;
    struct rv__sqlite_heads grown = { .cap = heads->cap > 0 ? heads->cap * 2 : 64 };
    grown.of = rv__zalloc(grown.cap, sizeof *grown.of);
    if (grown.of == NULL)
        return RV_ENOMEM;
    for (size_t i = 0; i < heads->cap; i++)
        if (heads->of[i].run != 0)
            *free_place(&grown, heads->of[i].run) = heads->of[i];
    grown.count = heads->count;
    rv__free(heads->of);
    *heads = grown;
    return RV_OK;
}

static int put(struct rv__sqlite_heads *heads, struct rv__sqlite_head head)
{
    struct rv__sqlite_head *there = find(heads, head.run);
    if (there != NULL) {
        *there = head;
        return RV_OK;
    }
    if (make_room(heads) < 0)
        return RV_ENOMEM;
    *free_place(heads, head.run) = head;
    heads->count++;
    return RV_OK;
}

/* Entries after it move up. */
static void drop(struct rv__sqlite_heads *heads, int64_t run)
{
    struct rv__sqlite_head *gone = find(heads, run);
    if (gone == NULL)
        return;
    size_t mask = heads->cap - 1, hole = (size_t)(gone - heads->of);
    for (size_t i = (hole + 1) & mask; heads->of[i].run != 0; i = (i + 1) & mask) {
        size_t home = place_of(heads, heads->of[i].run);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            heads->of[hole] = heads->of[i];
            hole = i;
        }
    }
    heads->of[hole] = (struct rv__sqlite_head){ 0 };
    heads->count--;
}

static void clear(struct rv__sqlite_heads *heads)
{
    rv__free(heads->of);
    *heads = (struct rv__sqlite_heads){ 0 };
}

void rv__sqlite_heads_done(struct rv__sqlite_conn *conn)
{
    struct rv__sqlite_ends *ends = &conn->writer.ends;
    clear(&ends->heads);
    clear(&conn->tail);
    rv__free(ends->undo);
    rv__free(ends->queue);
    rv__free(conn->chain.of);
}

/* ----------------------------------------------------------------------------------- the tail --- */

/* Read the journal after *to, and remember the last row of each run, and the first one as `since`. */
static int read_tail(struct rv__sqlite_conn *conn, struct rv__sqlite_heads *heads, uint64_t *to,
                     rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_TAIL, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, (int64_t)*to);
    while ((rc = rv__sqlite_step(conn, st, err)) == 1) {
        struct rv__sqlite_head head = { .run = sqlite3_column_int64(st, 1),
                                        .seq = (uint64_t)sqlite3_column_int64(st, 0) };
        *to = head.seq;
        if (head.run == 0) /* belongs to no run */
            continue;
        const struct rv__sqlite_head *there = find(heads, head.run);
        head.since = there != NULL ? there->since : head.seq;
        if (put(heads, head) < 0) {
            rc = rv__nomem(err);
            break;
        }
    }
    (void)sqlite3_reset(st); /* repeats the result of the step */
    return rc;
}

/* Where the tail begins. */
static int tail_start(struct rv__sqlite_conn *conn, uint64_t *ret, rv_error *err)
{
    int64_t last = 0;
    int rc = rv__sqlite_number(conn, SQL_LAST_SEQ, 0, &last, err);
    uint64_t end = last > 0 ? (uint64_t)last : 0;
    *ret = end > conn->tail_rows ? end - conn->tail_rows : 0;
    return rc;
}

/* ------------------------------------------------------------------------------------ writing --- */

static int by_since(const void *a, const void *b)
{
    const struct rv__sqlite_head *x = a, *y = b;
    return (x->since > y->since) - (x->since < y->since);
}

/* A run's row lags from now on. */
static int queue_up(struct rv__sqlite_ends *ends, int64_t run, uint64_t since)
{
    if (ends->queue_len == ends->queue_cap) {
        size_t cap = ends->queue_cap > 0 ? ends->queue_cap * 2 : 64;
        struct rv__sqlite_head *grown = rv__alloc(cap * sizeof *grown);
        if (grown == NULL)
            return RV_ENOMEM;
        for (size_t i = 0; i < ends->queue_len; i++)
            grown[i] = ends->queue[(ends->queue_at + i) & (ends->queue_cap - 1)];
        rv__free(ends->queue);
        ends->queue = grown;
        ends->queue_cap = cap;
        ends->queue_at = 0;
    }
    ends->queue[(ends->queue_at + ends->queue_len++) & (ends->queue_cap - 1)] =
        (struct rv__sqlite_head){ .run = run, .since = since };
    return RV_OK;
}

/* Keep those runs of the tail whose rows lag. */
static int keep_behind(struct rv__sqlite_conn *conn, struct rv__sqlite_heads *tail, rv_error *err)
{
    struct rv__sqlite_ends *ends = &conn->writer.ends;
    size_t count = 0;
    int rc = RV_OK;
    struct rv__sqlite_head *behind = rv__alloc((tail->count + 1) * sizeof *behind);
    if (behind == NULL)
        return rv__nomem(err);
    for (size_t i = 0; i < tail->cap && rc == RV_OK; i++) {
        struct rv__sqlite_known known;
        if (tail->of[i].run == 0)
            continue;
        rc = rv__sqlite_find_number(conn, tail->of[i].run, &known, err);
        if (rc == RV_EPARSE) { /* damaged: nothing will be written for it */
            rc = RV_OK;
            continue;
        }
        if (rc == RV_OK && known.key != 0 && known.active && known.head < tail->of[i].seq)
            behind[count++] = tail->of[i];
    }
    if (count > 0)
        qsort(behind, count, sizeof *behind, by_since);
    for (size_t i = 0; i < count && rc == RV_OK; i++)
        if (put(&ends->heads, behind[i]) < 0 || queue_up(ends, behind[i].run, behind[i].since) < 0)
            rc = rv__nomem(err);
    rv__free(behind);
    return rc;
}

int rv__sqlite_heads_ready(struct rv__sqlite_conn *conn, rv_error *err)
{
    struct rv__sqlite_ends *ends = &conn->writer.ends;
    struct rv__sqlite_heads tail = { 0 };
    int64_t active = 0;
    uint64_t to = 0;
    if (ends->ready)
        return RV_OK;
    int rc = rv__sqlite_number(conn, SQL_ANY_ACTIVE, 0, &active, err);
    if (rc == RV_OK && active != 0) {
        rc = tail_start(conn, &to, err);
        if (rc == RV_OK)
            rc = read_tail(conn, &tail, &to, err);
        if (rc == RV_OK)
            rc = keep_behind(conn, &tail, err);
        clear(&tail);
    }
    if (rc < 0) { /* the next call tries again */
        clear(&ends->heads);
        ends->queue_len = 0;
        return rc;
    }
    ends->ready = true;
    return RV_OK;
}

uint64_t rv__sqlite_head_of(const struct rv__sqlite_conn *conn,
                            const struct rv__sqlite_known *known)
{
    const struct rv__sqlite_head *head = find(&conn->writer.ends.heads, known->key);
    return head != NULL ? head->seq : known->head;
}

static int note(struct rv__sqlite_ends *ends, struct rv__sqlite_head before)
{
    if (ends->undo_count == ends->undo_cap) {
        size_t cap = ends->undo_cap > 0 ? ends->undo_cap * 2 : 64;
        void *grown = rv__realloc(ends->undo, cap * sizeof *ends->undo);
        if (grown == NULL)
            return RV_ENOMEM;
        ends->undo = grown;
        ends->undo_cap = cap;
    }
    ends->undo[ends->undo_count++] = before;
    return RV_OK;
}

int rv__sqlite_head_set(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq, bool recorded,
                        rv_error *err)
{
    struct rv__sqlite_ends *ends = &conn->writer.ends;
    const struct rv__sqlite_head *there = find(&ends->heads, run);
    struct rv__sqlite_head head = { .run = run, .seq = seq }, before = { .run = run };
    if (there == NULL && recorded)
        return RV_OK;
    if (there != NULL)
        before = *there;
    if (!recorded)
        head.since = before.since != 0 ? before.since : seq;
    if (note(ends, before) < 0 || put(&ends->heads, head) < 0 ||
        (head.since != before.since && !recorded && queue_up(ends, run, head.since) < 0))
        return rv__nomem(err);
    return RV_OK;
}

struct rv__sqlite_ends_mark rv__sqlite_heads_mark(const struct rv__sqlite_conn *conn)
{
    const struct rv__sqlite_ends *ends = &conn->writer.ends;
    return (struct rv__sqlite_ends_mark){ ends->undo_count, ends->queue_len };
}

void rv__sqlite_heads_undo(struct rv__sqlite_conn *conn, struct rv__sqlite_ends_mark mark)
{
    struct rv__sqlite_ends *ends = &conn->writer.ends;
    while (ends->undo_count > mark.undo) {
        struct rv__sqlite_head before = ends->undo[--ends->undo_count];
        struct rv__sqlite_head *there = find(&ends->heads, before.run);
        if (there != NULL && before.seq != 0)
            *there = before;
        else
            drop(&ends->heads, before.run); /* it did not exist */
    }
    ends->queue_len = mark.queue;
    ends->queue_done = 0;
}

int rv__sqlite_heads_refresh(struct rv__sqlite_conn *conn, uint64_t last, rv_error *err)
{
    struct rv__sqlite_ends *ends = &conn->writer.ends;
    int rc = RV_OK;
    size_t i = 0;
    for (; i < ends->queue_len && rc == RV_OK; i++) {
        struct rv__sqlite_head next = ends->queue[(ends->queue_at + i) & (ends->queue_cap - 1)];
        if (next.since + conn->tail_rows > last)
            break;
        const struct rv__sqlite_head *head = find(&ends->heads, next.run);
        if (head == NULL || head->since != next.since)
            continue; /* its row has been written since */
        rc = rv__sqlite_write_head(conn, next.run, head->seq, err);
        rv__sqlite_runs_drop(&conn->writer.runs, next.run);
        if (rc == RV_OK)
            rc = rv__sqlite_head_set(conn, next.run, head->seq, true, err);
    }
    ends->queue_done = i;
    return rc;
}

void rv__sqlite_heads_keep(struct rv__sqlite_conn *conn)
{
    struct rv__sqlite_ends *ends = &conn->writer.ends;
    for (size_t i = 0; i < ends->undo_count; i++) {
        const struct rv__sqlite_head *head = find(&ends->heads, ends->undo[i].run);
        if (head != NULL && head->since == 0)
            drop(&ends->heads, ends->undo[i].run); /* its row is up to date */
    }
    ends->undo_count = 0;
    ends->queue_at = (ends->queue_at + ends->queue_done) & (ends->queue_cap - 1);
    ends->queue_len -= ends->queue_done;
    ends->queue_done = 0;
}

/* ------------------------------------------------------------------------------------ reading --- */

static int read_on(struct rv__sqlite_conn *conn, rv_error *err)
{
    uint64_t start;
    int rc = tail_start(conn, &start, err);
    if (rc < 0)
        return rc;
    if (conn->tail_to < start || conn->tail.count > TAIL_MAX) {
        clear(&conn->tail);
        conn->tail_to = start;
    }
    return read_tail(conn, &conn->tail, &conn->tail_to, err);
}

int rv__sqlite_find_head(struct rv__sqlite_conn *conn, struct rv__str run, int64_t *ret_key,
                         uint64_t *ret_head, rv_error *err)
{
    struct rv__sqlite_known known;
    bool writes = conn->writer.runs.of != NULL;
    int rc = rv__sqlite_find_run(conn, run, &known, err);
    /* Read the tail before the row: whatever is committed in between, the row then knows at least what the tail
     * lacks. */
    if (rc == RV_OK && known.active)
        rc = writes ? rv__sqlite_heads_ready(conn, err) : read_on(conn, err);
    if (rc == RV_OK && known.active)
        rc = rv__sqlite_find_run(conn, run, &known, err);
    if (rc < 0)
        return rc;
    const struct rv__sqlite_head *head = find(writes ? &conn->writer.ends.heads : &conn->tail,
                                              known.key);
    *ret_key = known.key;
    *ret_head = head != NULL && head->seq > known.head && known.active ? head->seq : known.head;
    return RV_OK;
}

static int fail_chain(struct rv__sqlite_conn *conn, uint64_t seq, rv_error *err)
{
    return rv__fail(err, RV_EPARSE,
                    "the journal of a run in the store '%.100s' is damaged at row %llu", conn->path,
                    (unsigned long long)seq);
}

int rv__sqlite_row_before(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq, uint64_t *ret,
                          rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ROW_BEFORE, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, (int64_t)seq);
    rc = rv__sqlite_step(conn, st, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return fail_chain(conn, seq, err);
    int64_t whose = rv__sqlite_int(conn, st, 0);
    uint64_t before = rv__sqlite_uint(conn, st, 1);
    rc = rv__sqlite_whole(conn, err);
    (void)sqlite3_reset(st); /* repeats the result of the step */
    if (rc == RV_OK && (whose != run || before >= seq))
        rc = fail_chain(conn, seq, err);
    if (rc == RV_OK)
        *ret = before;
    return rc;
}

int rv__sqlite_chain(struct rv__sqlite_conn *conn, int64_t run, uint64_t head, uint64_t after,
                     rv_error *err)
{
    struct rv__sqlite_chain *chain = &conn->chain;
    int rc = RV_OK;
    chain->count = 0;
    if (chain->cap > CHAIN_KEEP) {
        rv__free(chain->of);
        *chain = (struct rv__sqlite_chain){ 0 };
    }
    for (uint64_t seq = head; seq > after && rc == RV_OK;) {
        if (chain->count == chain->cap) {
            size_t cap = chain->cap > 0 ? chain->cap * 2 : 64;
            void *grown = rv__realloc(chain->of, cap * sizeof *chain->of);
            if (grown == NULL)
                return rv__nomem(err);
            chain->of = grown;
            chain->cap = cap;
        }
        chain->of[chain->count++] = seq;
        rc = rv__sqlite_row_before(conn, run, seq, &seq, err);
    }
    return rc;
}

/* Was the run deleted while its journal was read? Then there is no more to read. */
static int is_gone(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq, rv_error *err)
{
    struct rv__sqlite_known known;
    int rc = rv__sqlite_find_number(conn, run, &known, err);
    return rc == RV_OK && known.key != 0 ? fail_chain(conn, seq, err) : rc;
}

int rv__sqlite_visit_turn(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq,
                          rv__store_visit_row *visit, void *arg, bool *ret_gone, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_FACTS, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, (int64_t)seq);
    rc = rv__sqlite_step(conn, st, err);
    if (rc < 0)
        return rc;
    if (rc == 0) {
        rc = is_gone(conn, run, seq, err);
        *ret_gone = rc == RV_OK;
        return rc;
    }
    struct rv__str facts = rv__sqlite_some_text(conn, st, 0);
    rc = rv__sqlite_whole(conn, err);
    rc = rc < 0 ? rc : visit(arg, seq, facts);
    (void)sqlite3_reset(st); /* repeats the result of the step */
    return rc;
}

int rv__sqlite_journal(struct rv__store *store, struct rv__str run, uint64_t after,
                       rv__store_visit_row *visit, void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int64_t key = 0;
    uint64_t head = 0;
    bool gone = false;
    int rc = rv__sqlite_find_head(conn, run, &key, &head, err);
    if (rc == RV_OK)
        rc = rv__sqlite_chain(conn, key, head, after, err);
    for (size_t i = rc == RV_OK ? conn->chain.count : 0; i > 0 && rc == RV_OK && !gone; i--)
        rc = rv__sqlite_visit_turn(conn, key, conn->chain.of[i - 1], visit, arg, &gone, err);
    rv__sqlite_leave(conn);
    return rc;
}
