/* attachments.c: what each attempt of a state must leave (SPEC: attachments), held against the names that facts
 * say and the rows that the store has. Shares no code with src/flow. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"

/* The name that it should have, without a suffix. */
static void plain_name(const struct rv__node *node, const struct rv__fact *fact, int64_t second,
                       char *ret, size_t size)
{
    const struct rv__body *body = &node->bodies[fact->index];
    struct rv__str agent = node->stage.states[fact->index].agent_id;
    char stamp[100];
    time_t at = (time_t)second;
    struct tm utc;
    if (agent.len == 0)
        agent = body->alias;
    (void)gmtime_r(&at, &utc);
    snprintf(stamp, sizeof stamp, "%02d%02d%02dT%02d%02d%02d", utc.tm_year % 100, utc.tm_mon + 1,
             utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
    snprintf(ret, size, "[%.*s][%.*s][%.*s]_%s_%d", RV__ARG(node->alias), RV__ARG(body->alias),
             RV__ARG(agent), stamp, fact->attempt - 1);
}

const char *attachment_begins(struct record *rec, const struct rv__node *node,
                              const struct rv__fact *fact, char **ret)
{
    char plain[1000], want[1100];
    int64_t second = fact->at_ms / 1000;
    rec->last_second = second > rec->last_second ? second : rec->last_second;
    if (fact->name == NULL)
        return "an attempt of a state begins without the name of what it leaves";
    plain_name(node, fact, rec->last_second, plain, sizeof plain);
    size_t same = 0;
    for (size_t i = 0; i < rec->name_count; i++) {
        size_t len = strlen(plain);
        same += strncmp(rec->names[i], plain, len) == 0 &&
                (rec->names[i][len] == '\0' || rec->names[i][len] == '-');
    }
    if (same == 0)
        snprintf(want, sizeof want, "%s", plain);
    else
        snprintf(want, sizeof want, "%s-%zu", plain, same + 1);
    *ret = sim_copy(rv__blob_str(fact->name));
    if (rec->name_count == rec->name_cap) {
        rec->name_cap = rec->name_cap > 0 ? rec->name_cap * 2 : 16;
        rec->names = sim_grow(rec->names, rec->name_cap * sizeof *rec->names);
    }
    rec->names[rec->name_count++] = *ret; /* the body's, which frees it */
    return strcmp(want, *ret) == 0 ? NULL
                                   : "what an attempt leaves has another name than it should";
}

struct looked {
    struct world *world;
    struct run *run;
    struct reference *ref;
    struct kept_row {
        int64_t index;
        char *json;
    } * rows;
    size_t count, cap;
    int64_t number; /* of the one that was looked at last: they are numbered without gaps */
};

static int keep_row(void *arg, int64_t index, struct rv__str json)
{
    struct looked *l = arg;
    if (l->count == l->cap) {
        l->cap = l->cap > 0 ? l->cap * 2 : 16;
        l->rows = sim_grow(l->rows, l->cap * sizeof *l->rows);
    }
    l->rows[l->count++] = (struct kept_row){ index, sim_copy(json) };
    return RV_OK;
}

static const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text != NULL ? text : "";
}

/* The result in the row is what the reference says that the agent gave. */
static void check_result(struct looked *l, const struct rv__node *node, const struct rec_actor *at,
                         int64_t state, struct rv__str json)
{
    struct store_rows rows;
    struct rv__buf out;
    rv_error err = { .message = "" };
    json_t *got = NULL,
           *want = reference_attempt(l->ref, &node->bodies[state], at->vector, at->depth);
    store_rows_init(&rows, l->world, l->run);
    rv__buf_init(&out, SIZE_MAX);
    if (rv__attachment_result(l->run->plan->plan, json, &rows.source, &out, &err) < 0 ||
        rv__json_load(rv__buf_view(&out), &got, &err) < 0)
        judge_fail(l->world, l->run, "attachment", "its result cannot be read: %s", err.message);
    else if (!json_agrees(want, got))
        judge_fail(l->world, l->run, "attachment", "its result is another than that of its agent");
    json_decref(got);
    json_decref(want);
    rv__buf_done(&out);
}

static void look(struct looked *l, int64_t index, struct rv__str json)
{
    json_t *row = NULL;
    if (l->world->failed || rv__json_load(json, &row, NULL) < 0)
        return;
    int64_t actor = json_integer_value(json_object_get(row, "a"));
    const struct rec_actor *at = record_actor(&l->run->rec, (uint64_t)actor);
    if (index != ++l->number)
        judge_fail(l->world, l->run, "attachment", "number %lld follows %lld", (long long)index,
                   (long long)l->number - 1);
    if (at == NULL || at->inst == NULL || at->body < 0 ||
        l->run->rec.plan->nodes[at->inst->node]->kind != NODE_STAGE) {
        judge_fail(l->world, l->run, "attachment", "one is there of no attempt");
        json_decref(row);
        return;
    }
    const struct rv__node *node = l->run->rec.plan->nodes[at->inst->node];
    const struct rec_body *body = &at->inst->bodies[at->body];
    const struct rec_inst *agent = record_find(&l->run->rec, node->bodies[body->index].nodes[0]->id,
                                               at->vector, at->depth);
    bool cut = body->ended < 0 || body->status == STATUS_CANCELLED;
    bool skipped = agent != NULL && agent->status == STATUS_SKIPPED;
    const char *want = cut || body->status == STATUS_FAILED ? "errored"
                       : skipped                            ? "skipped"
                                                            : "finished";
    if (strcmp(text_of(row, "id"), body->attachment) != 0)
        judge_fail(l->world, l->run, "attachment", "%s has another name than its attempt, %s",
                   text_of(row, "id"), body->attachment);
    else if (strcmp(text_of(row, "status"), want) != 0)
        judge_fail(l->world, l->run, "attachment", "%s is %s and should be %s", text_of(row, "id"),
                   text_of(row, "status"), want);
    else if ((json_object_get(row, "error") != NULL) != (strcmp(want, "errored") == 0))
        judge_fail(l->world, l->run, "attachment", "%s: only what failed has an error",
                   text_of(row, "id"));
    else if (strcmp(want, "finished") == 0)
        check_result(l, node, at, body->index, json);
    json_decref(row);
}

static int count_row(void *arg, int64_t index, struct rv__str json)
{
    (void)index;
    (void)json;
    ++*(size_t *)arg;
    return RV_OK;
}

void judge_attachments(struct world *world, struct run *run, struct reference *ref)
{
    struct looked l = { .world = world, .run = run, .ref = ref };
    size_t anew = 0;
    struct rv__str id = rv__str(run->id);
    rv_error err = { .message = "" };
    if (rv__store_results(world->disk, id, rv__str(RV__ATTACHMENT_KEY), INT64_MIN, SIZE_MAX,
                          keep_row, &l, &err) < 0 ||
        rv__store_results(world->disk, id, rv__str(RV__ANEW_KEY), INT64_MIN, SIZE_MAX, count_row,
                          &anew, &err) < 0)
        judge_fail(world, run, "attachment", "they cannot be read: %s", err.message);
    for (size_t i = 0; i < l.count; i++) { /* the store is not asked while it shows something */
        look(&l, l.rows[i].index, rv__str(l.rows[i].json));
        free(l.rows[i].json);
    }
    free(l.rows);
    if (!world->failed && l.count != run->rec.name_count)
        judge_fail(world, run, "attachment", "%zu attempts of states left %zu attachments",
                   run->rec.name_count, l.count);
    if (!world->failed && anew != run->rec.anew)
        judge_fail(world, run, "attachment", "%zu stages began anew, and the store knows of %zu",
                   run->rec.anew, anew);
}
