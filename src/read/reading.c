/* reading.c: what all readers share: facts as a journal row tells them, and plans by version. */
#include "read/read.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

enum { SHELF_PLANS = 64 }; /* kept without being in use: an engine runs a few dozen workflows */

/* ---------------------------------------------------------------------------------- facts --- */

void rv__row_reader_init(struct rv__row_reader *reader)
{
    *reader = (struct rv__row_reader){ .it = { .at = NULL } };
    rv__buf_init(&reader->text, SIZE_MAX / 8); /* bounded by a turn */
}

void rv__row_reader_done(struct rv__row_reader *reader)
{
    rv__buf_done(&reader->text);
}

int rv__row_begin(struct rv__row_reader *reader, struct rv__str facts, rv_error *err)
{
    rv_error why;
    rv__buf_reset(&reader->text);
    rv__buf_char(&reader->text, '[');
    rv__buf_str(&reader->text, facts);
    rv__buf_char(&reader->text, ']');
    int rc = rv__buf_err(&reader->text, err);
    if (rc < 0)
        return rc;
    if (rv__json_check(rv__buf_view(&reader->text), RV__JSON_MAX_DEPTH, NULL, &why) < 0)
        return rv__fail(err, RV_ESTORE, "a row of the journal is not JSON: %s", why.message);
    rv__json_iter_init(&reader->it, rv__buf_view(&reader->text));
    return RV_OK;
}

static bool read_number(struct rv__str value, uint64_t *ret)
{
    int64_t n;
    if (rv__json_int(value, &n) < 0 || n < 0)
        return false;
    *ret = (uint64_t)n;
    return true;
}

static bool read_vector(struct rv__str value, struct rv__told *fact)
{
    struct rv__json_iter it;
    struct rv__str item;
    rv__json_iter_init(&it, value);
    for (fact->depth = 0; rv__json_next(&it, NULL, &item); fact->depth++)
        if (fact->depth == RV__PLAN_MAX_DEPTH || rv__json_int(item, &fact->vector[fact->depth]) < 0)
            return false;
    return true;
}

static bool read_kind(struct rv__str value, struct rv__told *fact)
{
    for (int i = 0; i < FACT_KINDS; i++) {
        const char *name = rv__fact_kind_name((enum rv__fact_kind)i);
        size_t len = strlen(name);
        if (value.len == len + 2 && memcmp(value.at + 1, name, len) == 0) {
            fact->kind = (enum rv__fact_kind)i;
            return true;
        }
    }
    return false;
}

static int find_name(struct rv__str value, const char *(*name_of)(int), int count)
{
    for (int i = 0; i < count; i++)
        if (rv__json_string_is(value, rv__str(name_of(i))))
            return i;
    return -1;
}

static const char *eval_name(int i)
{
    return rv__eval_name((enum rv__eval)i);
}

static const char *status_name(int i)
{
    return rv__status_name((enum rv__status)i);
}

/* Members that no reader knows are passed over: the loop, which replays them, is the one to refuse. */
static bool read_member(struct rv__told *fact, struct rv__str key, struct rv__str value)
{
    uint64_t n = 0;
    bool ok = true;
    if (rv__str_is(key, "\"k\"")) {
        ok = read_kind(value, fact);
    } else if (rv__str_is(key, "\"a\"")) {
        ok = read_number(value, &fact->actor);
    } else if (rv__str_is(key, "\"o\"")) {
        ok = read_number(value, &fact->owner);
    } else if (rv__str_is(key, "\"n\"")) {
        ok = read_number(value, &n) && n < RV__NO_NODE;
        fact->node = (uint32_t)n;
    } else if (rv__str_is(key, "\"i\"")) {
        ok = read_vector(value, fact);
    } else if (rv__str_is(key, "\"at\"")) {
        ok = rv__json_int(value, &fact->at_ms) == RV_OK;
    } else if (rv__str_is(key, "\"x\"")) {
        ok = rv__json_int(value, &fact->index) == RV_OK;
    } else if (rv__str_is(key, "\"due\"")) {
        ok = rv__json_int(value, &fact->due_ms) == RV_OK;
    } else if (rv__str_is(key, "\"attempt\"")) {
        ok = read_number(value, &n) && n < INT32_MAX;
        fact->attempt = (int)n;
    } else if (rv__str_is(key, "\"eval\"")) {
        fact->eval = find_name(value, eval_name, EVALS);
    } else if (rv__str_is(key, "\"status\"")) {
        fact->status = find_name(value, status_name, STATUSES);
        ok = fact->status >= 0;
    } else if (rv__str_is(key, "\"hard\"")) {
        (void)rv__json_bool(value, &fact->hard);
    } else if (rv__str_is(key, "\"suspect\"")) {
        (void)rv__json_bool(value, &fact->suspect);
    } else if (rv__str_is(key, "\"blame\"")) {
        (void)rv__json_bool(value, &fact->blame);
    } else if (rv__str_is(key, "\"crash\"")) {
        (void)rv__json_bool(value, &fact->crash);
    } else if (rv__str_is(key, "\"signal\"")) {
        (void)rv__json_bool(value, &fact->taken);
    } else if (rv__str_is(key, "\"name\"")) {
        fact->name = value;
    } else if (rv__str_is(key, "\"result\"")) {
        fact->result = value;
    } else if (rv__str_is(key, "\"state\"")) {
        fact->state = value;
    } else if (rv__str_is(key, "\"error\"")) {
        fact->error = value;
    }
    return ok;
}

int rv__row_next(struct rv__row_reader *reader, const struct rv__plan *plan, struct rv__told *ret,
                 rv_error *err)
{
    struct rv__str json, key, value;
    struct rv__json_iter it;
    if (!rv__json_next(&reader->it, NULL, &json))
        return 0;
    *ret = (struct rv__told){ .kind = FACT_KINDS, .node = RV__NO_NODE, .eval = -1, .status = -1 };
    rv__json_iter_init(&it, json);
    while (rv__json_next(&it, &key, &value))
        if (!read_member(ret, key, value))
            return rv__fail(err, RV_ESTORE, "a fact in the journal: %.*s is not as it should be",
                            RV__ARG(key));
    if (ret->kind == FACT_KINDS)
        return rv__fail(err, RV_ESTORE, "an entry of the journal has no kind");
    if (ret->node != RV__NO_NODE && ret->node >= plan->node_count)
        return rv__fail(err, RV_ESTORE, "a fact in the journal is about no node of its plan");
    return 1;
}

/* ---------------------------------------------------------------------------------- plans --- */

void rv__shelf_init(struct rv__shelf *shelf)
{
    *shelf = (struct rv__shelf){ .first = NULL };
    pthread_mutex_init(&shelf->lock, NULL);
}

static void shelf_trim(struct rv__shelf *shelf, size_t keep)
{
    struct rv__shelf_plan **at = &shelf->first;
    for (size_t seen = 0; *at != NULL; seen++) {
        struct rv__shelf_plan *plan = *at;
        if (seen < keep || plan->refs > 0) {
            at = &plan->next;
            continue;
        }
        *at = plan->next;
        shelf->count--;
        rv__plan_free(plan->plan);
        rv__free(plan);
    }
}

void rv__shelf_done(struct rv__shelf *shelf)
{
    shelf_trim(shelf, 0);
    pthread_mutex_destroy(&shelf->lock);
}

struct parsing {
    struct rv__plan *plan;
    rv_error *err;
};

static int parse_plan(void *arg, uint64_t seq, struct rv__str text)
{
    struct parsing *p = arg;
    (void)seq;
    return rv__plan_read(text, &p->plan, p->err);
}

static int shelf_add(struct rv__shelf *shelf, struct rv__store *store, struct rv__str version,
                     struct rv__shelf_plan **ret, rv_error *err)
{
    struct parsing parsing = { .err = err };
    struct rv__shelf_plan *plan = rv__zalloc(1, sizeof *plan);
    if (plan == NULL)
        return rv__nomem(err);
    int rc = rv__store_definition(store, version, parse_plan, &parsing, err);
    if (rc < 0) {
        rv__free(plan);
        if (rc == RV_ENOTFOUND)
            return rv__fail(err, RV_ESTORE, "the plan of version %.*s is not in the store",
                            RV__ARG(version));
        return rc;
    }
    plan->plan = parsing.plan;
    plan->next = shelf->first;
    shelf->first = plan;
    shelf->count++;
    *ret = plan;
    return RV_OK;
}

int rv__shelf_get(struct rv__shelf *shelf, struct rv__store *store, struct rv__str version,
                  struct rv__shelf_plan **ret, rv_error *err)
{
    int rc = RV_OK;
    pthread_mutex_lock(&shelf->lock);
    struct rv__shelf_plan **at = &shelf->first, *plan;
    while (*at != NULL && !rv__str_is(version, (*at)->plan->version))
        at = &(*at)->next;
    plan = *at;
    if (plan != NULL) { /* to the front */
        *at = plan->next;
        plan->next = shelf->first;
        shelf->first = plan;
    } else {
        rc = shelf_add(shelf, store, version, &plan, err);
    }
    if (rc == RV_OK && plan != NULL) {
        plan->refs++;
        if (shelf->count > SHELF_PLANS)
            shelf_trim(shelf, SHELF_PLANS);
        *ret = plan;
    }
    pthread_mutex_unlock(&shelf->lock);
    return rc;
}

void rv__shelf_put(struct rv__shelf *shelf, struct rv__shelf_plan *plan)
{
    if (plan == NULL)
        return;
    pthread_mutex_lock(&shelf->lock);
    plan->refs--;
    pthread_mutex_unlock(&shelf->lock);
}

struct row_look {
    char version[65];
    uint64_t number;
    bool terminal;
};

static int look_at_row(void *arg, const struct rv__store_run *row)
{
    struct row_look *look = arg;
    if (row->version.len >= sizeof look->version)
        return RV_ESTORE;
    snprintf(look->version, sizeof look->version, "%.*s", RV__ARG(row->version));
    look->number = row->number;
    look->terminal = row->completed_ms != 0;
    return RV_OK;
}

int rv__read_run(struct rv__shelf *shelf, struct rv__store *store, struct rv__str id,
                 struct rv__read_run *ret, rv_error *err)
{
    struct row_look look = { .number = 0 };
    int rc = rv__store_run(store, id, look_at_row, &look, err);
    if (rc == RV_ENOTFOUND)
        return rv__fail(err, rc, "there is no run '%.*s'", RV__ARG(id));
    if (rc == RV_OK)
        rc = rv__shelf_get(shelf, store, rv__str(look.version), &ret->plan, err);
    if (rc < 0)
        return rc;
    ret->number = look.number;
    ret->terminal = look.terminal;
    return RV_OK;
}

/* ------------------------------------------------------------------------------- the hub --- */

int rv__reading_new(struct rv__store *store, struct rv__reading **ret, rv_error *err)
{
    struct rv__reading *reading = rv__zalloc(1, sizeof *reading);
    if (reading == NULL)
        return rv__nomem(err);
    int rc = rv__store_reader(store, &reading->store, err);
    if (rc < 0) {
        rv__free(reading);
        return rc;
    }
    rv__shelf_init(&reading->shelf);
    pthread_mutex_init(&reading->lock, NULL);
    pthread_mutex_init(&reading->hub, NULL);
    *ret = reading;
    return RV_OK;
}

void rv__reading_free(struct rv__reading *reading)
{
    if (reading == NULL)
        return;
    rv__feeds_detach(reading);
    rv__node_cache_free(reading->nodes);
    rv__shelf_done(&reading->shelf);
    rv__store_close(reading->store);
    pthread_mutex_destroy(&reading->lock);
    pthread_mutex_destroy(&reading->hub);
    rv__free(reading);
}
