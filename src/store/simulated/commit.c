/* commit.c: writing to the simulated store.
 *
 * A commit first gets all the memory it will need and then changes the tables, which cannot fail:
 * so it is atomic without an undo, and a refused write is one that is not applied. Runs are few (a test's), so they are found by walking; rows and
 * results may be many, so those are arrays. Results are sorted when they are next read. */
#include "store/simulated/tables.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"

int rv__sim_text_copy(struct text *ret, struct rv__str from)
{
    if (rv__str_none(from)) {
        *ret = (struct text){ NULL, 0 };
        return RV_OK;
    }
    char *copy = rv__alloc(from.len + 1);
    if (copy == NULL)
        return RV_ENOMEM;
    if (from.len > 0)
        memcpy(copy, from.at, from.len);
    copy[from.len] = '\0';
    *ret = (struct text){ copy, from.len };
    return RV_OK;
}

static void text_done(struct text *text)
{
    rv__free(text->at);
    *text = (struct text){ NULL, 0 };
}

/* Take over `from`. */
static void text_move(struct text *to, struct text *from)
{
    assert(to != NULL);
    rv__free(to->at);
    *to = *from;
    *from = (struct text){ NULL, 0 };
}

/* Room for `more` elements behind `count`. */
int rv__sim_reserve(void **array, size_t count, size_t *cap, size_t more, size_t size)
{
    size_t want = *cap > 0 ? *cap : 8;
    if (count + more <= *cap)
        return RV_OK;
    while (want < count + more)
        want *= 2;
    void *grown = rv__realloc(*array, want * size);
    if (grown == NULL)
        return RV_ENOMEM;
    *array = grown;
    *cap = want;
    return RV_OK;
}

static void columns_done(struct columns *c)
{
    text_done(&c->workflow);
    text_done(&c->version);
    text_done(&c->status);
    text_done(&c->input);
    text_done(&c->input_key);
    text_done(&c->error);
    text_done(&c->failed_step);
    text_done(&c->suspension);
    text_done(&c->rerun_of);
}

static void line_done(struct rv__sim_line_row *line)
{
    text_done(&line->path);
    text_done(&line->step);
    text_done(&line->message);
    text_done(&line->metadata);
    text_done(&line->kind);
}

static void run_free(struct rv__sim_run *run)
{
    if (run == NULL)
        return;
    for (size_t i = 0; i < run->row_count; i++)
        text_done(&run->rows[i].facts);
    for (size_t i = 0; i < run->result_count; i++) {
        text_done(&run->results[i].key);
        text_done(&run->results[i].json);
    }
    for (size_t i = 0; i < run->value_count; i++)
        text_done(&run->values[i].json);
    rv__free(run->rows);
    rv__free(run->results);
    rv__free(run->values);
    text_done(&run->id);
    columns_done(&run->columns);
    text_done(&run->snapshot);
    text_done(&run->lacks);
    rv__free(run);
}

void rv__sim_clear(struct rv__sim_store *sim)
{
    for (size_t i = 0; i < sim->run_count; i++)
        run_free(sim->runs[i]);
    rv__free(sim->runs);
    for (size_t i = 0; i < sim->line_count; i++)
        line_done(&sim->lines[i]);
    rv__free(sim->lines);
    rv__sim_members_clear(sim);
    rv__sim_marks_clear(sim);
    while (sim->definitions != NULL) {
        struct rv__sim_definition *d = sim->definitions;
        sim->definitions = d->next;
        text_done(&d->hash);
        text_done(&d->json);
        rv__free(d);
    }
}

/* --------------------------------------------------------------------------- definitions --- */

static void definition_free(struct rv__sim_definition *d)
{
    if (d == NULL)
        return;
    text_done(&d->hash);
    text_done(&d->json);
    rv__free(d);
}

static bool defined(const struct rv__sim_definition *list, struct rv__str hash)
{
    for (; list != NULL; list = list->next)
        if (rv__str_eq(view(&list->hash), hash))
            return true;
    return false;
}

/* Put it before *list, unless it is in there. */
static int prepare_definition(struct rv__sim_definition **list, struct rv__str hash,
                              struct rv__str json)
{
    if (defined(*list, hash))
        return RV_OK;
    struct rv__sim_definition *d = rv__zalloc(1, sizeof *d);
    if (d == NULL || rv__sim_text_copy(&d->hash, hash) < 0 ||
        rv__sim_text_copy(&d->json, json) < 0) {
        definition_free(d);
        return RV_ENOMEM;
    }
    d->next = *list;
    *list = d;
    return RV_OK;
}

int rv__sim_define(struct rv__sim_store *sim, struct rv__str hash, struct rv__str json,
                   rv_error *err)
{
    return prepare_definition(&sim->definitions, hash, json) < 0 ? rv__nomem(err) : RV_OK;
}

/* ------------------------------------------------------------------------------- commits --- */

/* One write, with all it needs in memory: what is left to do cannot fail. */
struct prepared {
    struct rv__sim_run *run; /* the run, or a new one to be put into the list */
    bool is_new;
    struct row row; /* facts none: no row */
    struct result *results;
    size_t result_count;
    struct value *values;
    size_t value_count;
    struct rv__sim_line_row *lines;
    size_t line_count;
    struct rv__sim_definition *definitions;
    bool has_snapshot;
    struct text lacks;      /* of `touch` */
    struct columns columns; /* of `row` or of `touch` */
    struct text snapshot;
};

static void prepared_done(struct prepared *p)
{
    if (p->is_new)
        run_free(p->run);
    text_done(&p->row.facts);
    for (size_t i = 0; i < p->result_count; i++) {
        text_done(&p->results[i].key);
        text_done(&p->results[i].json);
    }
    rv__free(p->results);
    for (size_t i = 0; i < p->value_count; i++)
        text_done(&p->values[i].json);
    rv__free(p->values);
    for (size_t i = 0; i < p->line_count; i++)
        line_done(&p->lines[i]);
    rv__free(p->lines);
    while (p->definitions != NULL) {
        struct rv__sim_definition *d = p->definitions;
        p->definitions = d->next;
        definition_free(d);
    }
    columns_done(&p->columns);
    text_done(&p->snapshot);
    text_done(&p->lacks);
}

static int check_result(struct rv__sim_run *run, const struct rv__store_write *write, size_t at,
                        rv_error *err)
{
    const struct rv__store_result *new = &write->results[at];
    bool there = false;
    if (run->result_count > 0) {
        rv__sim_sort_results(run);
        size_t i = rv__sim_result_place(run, new->key, new->index);
        there = i < run->result_count &&
                run->results[i].index ==
                    new->index &&rv__str_eq(view(&run->results[i].key), new->key);
    }
    for (size_t i = 0; i < at && !there; i++)
        there = write->results[i].index == new->index &&rv__str_eq(write->results[i].key, new->key);
    if (there)
        return rv__fail(err, RV_EINVAL, "run '%.*s' has a result '%.*s' %lld already",
                        RV__ARG(write->run), RV__ARG(new->key), (long long)new->index);
    return RV_OK;
}

static int prepare_results(struct prepared *p, const struct rv__store_write *write, rv_error *err)
{
    if (write->result_count == 0)
        return RV_OK;
    p->results = rv__zalloc(write->result_count, sizeof *p->results);
    if (p->results == NULL)
        return rv__nomem(err);
    p->result_count = write->result_count;
    for (size_t i = 0; i < write->result_count; i++) {
        int rc = check_result(p->run, write, i, err);
        if (rc < 0)
            return rc;
        p->results[i].index = write->results[i].index;
        if (rv__sim_text_copy(&p->results[i].key, write->results[i].key) < 0 ||
            rv__sim_text_copy(&p->results[i].json, write->results[i].json) < 0)
            return rv__nomem(err);
    }
    return RV_OK;
}

static int prepare_lines(struct prepared *p, const struct rv__store_write *write)
{
    if (write->log_count == 0)
        return RV_OK;
    p->lines = rv__zalloc(write->log_count, sizeof *p->lines);
    if (p->lines == NULL)
        return RV_ENOMEM;
    p->line_count = write->log_count;
    for (size_t i = 0; i < write->log_count; i++) {
        const struct rv__store_log *from = &write->logs[i];
        struct rv__sim_line_row *line = &p->lines[i];
        line->at_ms = from->at_ms;
        line->attempt = from->attempt;
        line->level = from->level;
        if (rv__sim_text_copy(&line->path, from->path) < 0 ||
            rv__sim_text_copy(&line->step, from->step) < 0 ||
            rv__sim_text_copy(&line->message, from->message) < 0 ||
            rv__sim_text_copy(&line->metadata, from->metadata) < 0 ||
            rv__sim_text_copy(&line->kind, from->kind) < 0)
            return RV_ENOMEM;
    }
    return RV_OK;
}

static int prepare_row(struct columns *c, const struct rv__store_run *row)
{
    c->created_ms = row->created_ms;
    c->started_ms = row->started_ms;
    c->completed_ms = row->completed_ms;
    c->wake_at_ms = row->wake_at_ms;
    c->active = row->active;
    c->waiting = row->waiting;
    return rv__sim_text_copy(&c->workflow, row->workflow) < 0 ||
                   rv__sim_text_copy(&c->version, row->version) < 0 ||
                   rv__sim_text_copy(&c->status, row->status) < 0 ||
                   rv__sim_text_copy(&c->input, row->input) < 0 ||
                   rv__sim_text_copy(&c->input_key, row->input_key) < 0 ||
                   rv__sim_text_copy(&c->error, row->error) < 0 ||
                   rv__sim_text_copy(&c->failed_step, row->failed_step) < 0 ||
                   rv__sim_text_copy(&c->suspension, row->suspension) < 0 ||
                   rv__sim_text_copy(&c->rerun_of, row->rerun_of) < 0
               ? RV_ENOMEM
               : RV_OK;
}

static int prepare_touch(struct columns *c, const struct rv__store_touch *touch)
{
    c->completed_ms = touch->completed_ms;
    c->wake_at_ms = touch->wake_at_ms;
    c->active = touch->active;
    c->waiting = touch->waiting;
    return rv__sim_text_copy(&c->status, touch->status) < 0 ||
                   rv__sim_text_copy(&c->error, touch->error) < 0 ||
                   rv__sim_text_copy(&c->failed_step, touch->failed_step) < 0 ||
                   rv__sim_text_copy(&c->suspension, touch->suspension) < 0
               ? RV_ENOMEM
               : RV_OK;
}

static int prepare_values(struct prepared *p, const struct rv__store_write *write, rv_error *err)
{
    if (write->value_count == 0)
        return RV_OK;
    p->values = rv__zalloc(write->value_count, sizeof *p->values);
    if (p->values == NULL)
        return rv__nomem(err);
    p->value_count = write->value_count;
    for (size_t i = 0; i < write->value_count; i++) {
        uint64_t number = write->values[i].number;
        size_t at = rv__sim_value_place(p->run, number);
        bool there = at < p->run->value_count && p->run->values[at].number == number;
        for (size_t k = 0; k < i && !there; k++)
            there = write->values[k].number == number;
        if (there)
            return rv__fail(err, RV_EINVAL, "run '%.*s' has a value %llu already",
                            RV__ARG(write->run), (unsigned long long)number);
        p->values[i].number = number;
        if (rv__sim_text_copy(&p->values[i].json, write->values[i].json) < 0)
            return rv__nomem(err);
    }
    return RV_OK;
}

/* The longest of the texts that a disk may find too long. */
static size_t longest(const struct rv__store_write *write)
{
    size_t max = write->facts.len > write->snapshot.len ? write->facts.len : write->snapshot.len;
    if (write->row != NULL && max < write->row->input.len)
        max = write->row->input.len;
    for (size_t i = 0; i < write->result_count; i++)
        max = max < write->results[i].json.len ? write->results[i].json.len : max;
    for (size_t i = 0; i < write->value_count; i++)
        max = max < write->values[i].json.len ? write->values[i].json.len : max;
    return max;
}

/* Has another member written, or begun, this run meanwhile? */
static int check_fence(const struct rv__store_write *write, const struct rv__sim_run *run,
                       rv_error *err)
{
    uint64_t last = run->row_count > 0 ? run->rows[run->row_count - 1].seq : 0;
    if (write->begins)
        return rv__fail(err, RV_EEXIST, "there is a run '%.*s' already", RV__ARG(write->run));
    if (!rv__str_none(write->facts) && write->after != 0 && write->after != last)
        return rv__fail(err, RV_ESTATE, "another process wrote run '%.*s' meanwhile",
                        RV__ARG(write->run));
    return RV_OK;
}

static int check_write(const struct rv__sim_store *sim, const struct rv__sim_member *by,
                       const struct rv__store_write *write, const struct rv__sim_run *run,
                       rv_error *err)
{
    assert(run == NULL || write->number == 0 || write->number == run->number);
    int rc = rv__store_check_write(write, err);
    if (rc == RV_OK && by != NULL && run != NULL)
        rc = check_fence(write, run, err);
    if (rc < 0)
        return rc;
    if (run == NULL && (write->row == NULL || write->number != 0))
        return rv__fail(err, RV_EINVAL, "there is no run '%.*s'", RV__ARG(write->run));
    if (sim->max_bytes != 0 && longest(write) > sim->max_bytes)
        return rv__fail(err, RV_ETOOBIG, "a text is too long for the simulated disk");
    if (sim->refuses != NULL && sim->refuses(sim->refuses_arg, write))
        return rv__fail(err, RV_EINVAL, "the simulated disk refuses this write");
    return RV_OK;
}

static int prepare_definitions(struct prepared *p, const struct rv__store_write *write,
                               rv_error *err)
{
    for (size_t i = 0; i < write->definition_count; i++)
        if (prepare_definition(&p->definitions, write->definitions[i].hash,
                               write->definitions[i].json) < 0)
            return rv__nomem(err);
    return RV_OK;
}

static int reserve_in_run(struct rv__sim_run *run, const struct rv__store_write *write)
{
    return rv__sim_reserve((void **)&run->rows, run->row_count, &run->row_cap, 1,
                           sizeof *run->rows) < 0 ||
                   rv__sim_reserve((void **)&run->results, run->result_count, &run->result_cap,
                                   write->result_count, sizeof *run->results) < 0 ||
                   rv__sim_reserve((void **)&run->values, run->value_count, &run->value_cap,
                                   write->value_count, sizeof *run->values) < 0
               ? RV_ENOMEM
               : RV_OK;
}

static int prepare(struct rv__sim_store *sim, const struct rv__sim_member *by,
                   const struct rv__store_write *write, struct prepared *p, rv_error *err)
{
    p->run = rv__sim_find(sim, write->run);
    int rc = prepare_definitions(p, write, err);
    if (rc == RV_OK)
        rc = check_write(sim, by, write, p->run, err);
    if (rc < 0)
        return rc;
    if (p->run == NULL) {
        p->run = rv__zalloc(1, sizeof *p->run);
        if (p->run == NULL)
            return rv__nomem(err);
        p->is_new = true;
        if (rv__sim_text_copy(&p->run->id, write->run) < 0)
            return rv__nomem(err);
    }
    if (rv__sim_text_copy(&p->row.facts, write->facts) < 0 || reserve_in_run(p->run, write) < 0)
        return rv__nomem(err);
    if (write->row != NULL && prepare_row(&p->columns, write->row) < 0)
        return rv__nomem(err);
    if (write->touch != NULL && prepare_touch(&p->columns, write->touch) < 0)
        return rv__nomem(err);
    if (write->touch != NULL && write->touch->to == RV__STORE_NOBODY &&
        rv__sim_text_copy(&p->lacks, rv__str_none(write->touch->lacks) ? rv__str("")
                                                                       : write->touch->lacks) < 0)
        return rv__nomem(err);
    p->has_snapshot = !rv__str_none(write->snapshot);
    if (rv__sim_text_copy(&p->snapshot, write->snapshot) < 0 || prepare_lines(p, write) < 0)
        return rv__nomem(err);
    rc = prepare_results(p, write, err);
    return rc == RV_OK ? prepare_values(p, write, err) : rc;
}

static void apply_touch(struct columns *to, struct columns *from)
{
    text_move(&to->status, &from->status);
    text_move(&to->error, &from->error);
    text_move(&to->failed_step, &from->failed_step);
    text_move(&to->suspension, &from->suspension);
    to->completed_ms = from->completed_ms;
    to->wake_at_ms = from->wake_at_ms;
    to->active = from->active;
    to->waiting = from->waiting;
}

static void apply_row(struct columns *to, struct columns *from)
{
    apply_touch(to, from);
    text_move(&to->rerun_of, &from->rerun_of);
    text_move(&to->workflow, &from->workflow);
    text_move(&to->version, &from->version);
    text_move(&to->input, &from->input);
    text_move(&to->input_key, &from->input_key);
    to->created_ms = from->created_ms;
    to->started_ms = from->started_ms;
}

static void apply_definitions(struct rv__sim_store *sim, struct prepared *p)
{
    while (p->definitions != NULL) {
        struct rv__sim_definition *d = p->definitions;
        p->definitions = d->next;
        if (defined(sim->definitions, view(&d->hash))) {
            definition_free(d);
        } else {
            d->next = sim->definitions;
            sim->definitions = d;
        }
    }
}

static void apply_values(struct rv__sim_run *run, struct prepared *p)
{
    for (size_t i = 0; i < p->value_count; i++) {
        size_t at = rv__sim_value_place(run, p->values[i].number);
        memmove(&run->values[at + 1], &run->values[at],
                (run->value_count - at) * sizeof *run->values);
        run->values[at] = p->values[i];
        run->value_count++;
        p->values[i] = (struct value){ 0 };
    }
}

static bool is_answered(const struct rv__store_write *write, const struct rv__sim_line_row *line)
{
    for (size_t i = 0; i < write->answered_count; i++)
        if (rv__str_eq(view(&line->path), write->answered[i]))
            return rv__str_is(view(&line->kind), RV__STORE_STREAM);
    return false;
}

static void drop_streams(struct rv__sim_store *sim, const struct rv__store_write *write,
                         const struct rv__sim_run *run)
{
    size_t kept = 0;
    for (size_t i = 0; i < sim->line_count; i++) {
        if (sim->lines[i].run == run && is_answered(write, &sim->lines[i]))
            line_done(&sim->lines[i]);
        else
            sim->lines[kept++] = sim->lines[i];
    }
    sim->line_count = kept;
}

/* A run at rest is nobody's; an active one is the writer's, unless it gives it up, or to somebody who lives. */
static void apply_owner(struct rv__sim_store *sim, const struct rv__sim_member *by,
                        const struct rv__store_write *write, struct prepared *p)
{
    struct rv__sim_run *run = p->run;
    int64_t to = write->touch != NULL ? write->touch->to : 0;
    bool gives = run->columns.active && to != 0;
    run->owner = !run->columns.active ? 0 : to == 0 ? by->slot : 0;
    if (gives && to > 0 && rv__sim_member_lives(sim, to))
        run->owner = to;
    text_move(&run->lacks, &p->lacks);
    if (!gives || to > 0)
        run->handed_count = 0;
    if (gives && to > 0)
        run->handed[run->handed_count++] = 0; /* nobody: the giver could go on */
    else if (gives && run->handed_count < sizeof run->handed / sizeof *run->handed)
        run->handed[run->handed_count++] = by->slot;
}

/* Cannot fail: the memory is there. */
static void apply(struct rv__sim_store *sim, const struct rv__sim_member *by,
                  const struct rv__store_write *write, struct prepared *p, uint64_t *ret_seq)
{
    struct rv__sim_run *run = p->run;
    if (p->is_new) {
        run->number = ++sim->run_number;
        sim->runs[sim->run_count++] = run;
        p->is_new = false;
    }
    for (size_t i = 0; i < p->line_count; i++) {
        p->lines[i].id = ++sim->seq;
        p->lines[i].run = run;
        sim->lines[sim->line_count++] = p->lines[i];
        p->lines[i] = (struct rv__sim_line_row){ 0 };
    }
    if (write->answered_count > 0)
        drop_streams(sim, write, run);
    *ret_seq = 0;
    if (p->row.facts.at != NULL) {
        *ret_seq = ++sim->seq;
        run->rows[run->row_count++] = (struct row){ .seq = *ret_seq,
                                                    .by = by != NULL ? by->slot : 0,
                                                    .from = run->from,
                                                    .facts = p->row.facts };
        p->row.facts = (struct text){ NULL, 0 };
    }
    for (size_t i = 0; i < p->result_count; i++) {
        run->results[run->result_count++] = p->results[i];
        p->results[i] = (struct result){ 0 };
    }
    uint64_t last = run->row_count > 0 ? run->rows[run->row_count - 1].seq : 0;
    if (p->result_count > 0)
        run->results_seq = last;
    if (p->value_count > 0)
        apply_values(run, p);
    run->damaged = run->damaged && write->row == NULL;
    if (write->row != NULL)
        apply_row(&run->columns, &p->columns);
    else if (write->touch != NULL)
        apply_touch(&run->columns, &p->columns);
    if (by != NULL && (write->row != NULL || write->touch != NULL))
        apply_owner(sim, by, write, p);
    run->given = write->touch != NULL && write->touch->to != 0;
    if (p->has_snapshot) {
        text_move(&run->snapshot, &p->snapshot);
        run->snapshot_seq = last;
    }
}

static bool lasting(int rc)
{
    return rc < 0 && rc != RV_ENOMEM && rc != RV_ESTORE;
}

static int make_room(struct rv__sim_store *sim, const struct rv__store_write *writes, size_t count,
                     rv_error *err)
{
    size_t lines = 0;
    for (size_t i = 0; i < count; i++)
        lines += writes[i].log_count;
    return rv__sim_reserve((void **)&sim->runs, sim->run_count, &sim->run_cap, count,
                           sizeof *sim->runs) < 0 ||
                   rv__sim_reserve((void **)&sim->lines, sim->line_count, &sim->line_cap, lines,
                                   sizeof *sim->lines) < 0
               ? rv__nomem(err)
               : RV_OK;
}

/* Each write gets its outcome, and all that it needs. */
static int prepare_all(struct rv__sim_store *sim, const struct rv__sim_member *by,
                       struct rv__store_write *writes, size_t count, struct prepared *prepared,
                       rv_error *err)
{
    int rc = make_room(sim, writes, count, err);
    for (size_t i = 0; i < count && rc == RV_OK; i++) {
        writes[i].outcome = STORE_WRITTEN;
        writes[i].why = (rv_error){ .code = 0 };
        rc = prepare(sim, by, &writes[i], &prepared[i], &writes[i].why);
        if (lasting(rc)) {
            writes[i].outcome = STORE_REFUSED;
            rc = RV_OK;
        } else if (rc < 0 && err != NULL) {
            *err = writes[i].why;
        }
    }
    return rc;
}

/* What is not refused. Nobody is told, if the process dies in it. */
static void apply_all(struct rv__sim_store *sim, const struct rv__sim_member *by,
                      struct rv__store_write *writes, size_t count, struct prepared *prepared,
                      bool tell)
{
    for (size_t i = 0; i < count; i++)
        apply_definitions(sim, &prepared[i]);
    for (size_t i = 0; i < count; i++) {
        uint64_t seq = 0;
        bool written = writes[i].outcome == STORE_WRITTEN;
        sim->refused += !written;
        if (written)
            apply(sim, by, &writes[i], &prepared[i], &seq);
        if (tell)
            writes[i].seq = seq;
        if (tell && written)
            writes[i].number = prepared[i].run->number;
    }
}

static int fail_commit(struct rv__sim_store *sim, bool dies, rv_error *err)
{
    sim->fate = SIM_STORE_WORKS;
    sim->dead = dies;
    sim->deaths += dies;
    return rv__fail(err, RV_ESTORE,
                    dies ? "the simulated process died in a commit" : "the simulated disk failed");
}

int rv__sim_commit(struct rv__sim_store *sim, const struct rv__sim_member *by,
                   struct rv__store_write *writes, size_t count, rv_error *err)
{
    struct prepared *prepared = NULL;
    int rc;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i && count < 64; j++) /* a check for tests: a few runs */
            assert(!rv__str_eq(writes[i].run, writes[j].run));

    if (sim->fate == SIM_STORE_FAILS || sim->fate == SIM_STORE_DIES_BEFORE) {
        sim->failures++;
        return fail_commit(sim, sim->fate == SIM_STORE_DIES_BEFORE, err);
    }
    prepared = rv__zalloc(count, sizeof *prepared);
    if (prepared == NULL)
        return rv__nomem(err);
    rc = prepare_all(sim, by, writes, count, prepared, err);
    if (rc < 0) {
        sim->failures++;
        goto out;
    }
    sim->commits++;
    apply_all(sim, by, writes, count, prepared, sim->fate == SIM_STORE_WORKS);
    if (sim->fate == SIM_STORE_DIES_AFTER)
        rc = fail_commit(sim, true, err);
out:
    for (size_t i = 0; i < count; i++)
        prepared_done(&prepared[i]);
    rv__free(prepared);
    return rc;
}

/* ---------------------------------------------------------------------------- forgetting --- */

static void drop_run(struct rv__sim_store *sim, struct rv__sim_run *run)
{
    size_t kept = 0;
    for (size_t i = 0; i < sim->line_count; i++) {
        if (sim->lines[i].run != run) {
            sim->lines[kept++] = sim->lines[i];
            continue;
        }
        line_done(&sim->lines[i]);
    }
    sim->line_count = kept;
    kept = 0;
    for (size_t i = 0; i < sim->run_count; i++)
        if (sim->runs[i] != run)
            sim->runs[kept++] = sim->runs[i];
    sim->run_count = kept;
    run_free(run);
}

static void forget_run(struct rv__sim_store *sim, struct rv__sim_run *run)
{
    for (size_t i = 0; i < sim->line_count; i++)
        if (sim->lines[i].run == run && sim->forgotten < sim->lines[i].id)
            sim->forgotten = sim->lines[i].id;
    if (run->row_count > 0 && sim->forgotten < run->rows[run->row_count - 1].seq)
        sim->forgotten = run->rows[run->row_count - 1].seq;
    drop_run(sim, run);
}

int rv__sim_forget(struct rv__sim_store *sim, const struct rv__str *runs, size_t count,
                   rv_error *err)
{
    if (count > RV__STORE_LIST_MAX)
        return rv__fail(err, RV_EINVAL, "%zu runs are too many to delete at once: at most %d",
                        count, (int)RV__STORE_LIST_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct rv__sim_run *run = rv__sim_find(sim, runs[i]);
        if (run != NULL && !finished(run))
            return rv__fail(err, RV_ESTATE, "run '%.*s' has not ended: it cannot be deleted",
                            RV__ARG(runs[i]));
    }
    for (size_t i = 0; i < count; i++) {
        struct rv__sim_run *run = rv__sim_find(sim, runs[i]);
        if (run != NULL)
            forget_run(sim, run);
    }
    return RV_OK;
}

/* ----------------------------------------------------------------------------- importing --- */

static int import_one(struct rv__sim_store *sim, struct rv__store_write *write, rv_error *err)
{
    struct prepared prepared = { 0 };
    int rc = prepare_all(sim, NULL, write, 1, &prepared, err);
    if (rc == RV_OK && write->outcome == STORE_REFUSED)
        rc = rv__fail(err, write->why.code, "%s", write->why.message);
    if (rc == RV_OK)
        apply_all(sim, NULL, write, 1, &prepared, false);
    prepared_done(&prepared);
    return rc;
}

/* Written at once, and taken back if it comes to nothing: who could look meanwhile waits for the lock.
 * The fate of a commit is that of the whole. */
int rv__sim_import(struct rv__sim_store *sim, struct rv__str id, rv__store_next_write *next,
                   void *arg, rv_error *err)
{
    struct rv__store_write write;
    enum rv__sim_store_fate fate = sim->fate;
    uint64_t seq = sim->seq, number = sim->run_number;
    int rc = RV_OK;
    if (rv__sim_find(sim, id) != NULL)
        return rv__fail(err, RV_EEXIST, "there is a run '%.*s' already", RV__ARG(id));
    while (rc == RV_OK && (rc = next(arg, &write, err)) == 1) {
        assert(rv__str_eq(write.run, id));
        rc = import_one(sim, &write, err);
    }
    if (rc == RV_OK)
        sim->fate = SIM_STORE_WORKS;
    if (rc == RV_OK && fate != SIM_STORE_WORKS)
        rc = fail_commit(sim, fate != SIM_STORE_FAILS, err);
    struct rv__sim_run *run = rc < 0 && fate != SIM_STORE_DIES_AFTER ? rv__sim_find(sim, id) : NULL;
    if (run != NULL) {
        drop_run(sim, run);
        sim->seq = seq; /* nobody has seen them */
        sim->run_number = number;
    }
    sim->commits += rc == RV_OK;
    sim->failures += rc < 0;
    return rc;
}
