/* rig.c: see rig.h. */
#include "unit/flow/rig.h"

#include "base/json.h"

enum { ROWS_A_PAGE = 3 }; /* so that there are several */

static int rows(struct rv__row_source *self, struct rv__str key, int64_t after, struct rv__buf *out,
                int64_t *last, rv_error *err)
{
    struct rig *rig = (struct rig *)self;
    int count = 0;
    (void)err;
    for (int64_t index = after + 1; index < 100000; index++) { /* in order of index */
        bool found = false;
        for (size_t i = 0; i < rig->kept_count && !found; i++) {
            if (rig->kept[i].index != index || !rv__str_is(key, rig->kept[i].key))
                continue;
            if (count == ROWS_A_PAGE)
                return 1;
            if (count++ > 0)
                rv__buf_char(out, ',');
            rv__buf_text(out, rig->kept[i].json);
            *last = index;
            found = true;
        }
        if (!found && index > (int64_t)rig->kept_count)
            break;
    }
    return 0;
}

static int value(struct rv__row_source *self, uint64_t number, struct rv__blob **ret, rv_error *err)
{
    struct rig *rig = (struct rig *)self;
    if (number < 1 || number > rig->value_count || rig->values[number - 1] == NULL)
        fail_msg("the value %llu was never written", (unsigned long long)number);
    rig->value_reads++;
    *ret = rv__blob_new(rv__blob_str(rig->values[number - 1]));
    return *ret != NULL ? RV_OK : rv__nomem(err);
}

static struct rv__blob *blob(const char *text)
{
    return text != NULL ? rv__blob_new(rv__str(text)) : NULL;
}

static bool is_in(const char *names, struct rv__str name)
{
    for (const char *at = names; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        if (rv__str_eq((struct rv__str){ at, len }, name))
            return true;
        at += len;
    }
    return false;
}

static enum rv__lane lane_of(void *arg, const struct rv__node *node, int eval,
                             const struct rv__body *body)
{
    const struct rig *rig = arg;
    (void)body;
    struct rv__str name = eval < 0 ? node->step.name : node->alias;
    return is_in(rig->nobody, name)   ? LANE_NOBODY
           : is_in(rig->hosted, name) ? LANE_HOST
                                      : LANE_FUNCTION;
}

void rig_relane(struct rig *rig)
{
    assert_int_equal(rv__cell_lanes(rig->cell, lane_of, rig), RV_OK);
}

struct rig *rig_new(const char *plan_json, const char *input)
{
    return rig_new_where(plan_json, input, NULL, NULL);
}

struct rig *rig_new_where(const char *plan_json, const char *input, const char *hosted,
                          const char *nobody)
{
    struct rig *rig = calloc(1, sizeof *rig);
    rig->hosted = hosted;
    rig->nobody = nobody;
    rv_error err = { 0 };
    rig->rows.rows = rows;
    rig->rows.value = value;
    rig->now_ms = 1000;
    rig->replay = true;
    memset(rig->grants, true, sizeof rig->grants);
    rv__facts_init(&rig->facts);
    rv__buf_init(&rig->journal, 1u << 30);
    rv__buf_init(&rig->text, 1u << 30);
    if (rv__plan_read(rv__str(plan_json), &rig->plan, &err) < 0)
        fail_msg("the plan is refused: %s", err.message);
    struct rv__blob *in = blob(input);
    struct rv__cell_opts opts = {
        .plan = rig->plan, .value_inline = rig_inline, .lane = lane_of, .arg = rig
    };
    if (rv__cell_start(&opts, in, rig->now_ms, &rig->facts, &rig->cell, &err) < 0)
        fail_msg("no run: %s", err.message);
    rv__blob_unref(in);
    rig_turn(rig, NULL);
    return rig;
}

void rig_free(struct rig *rig)
{
    rv__cell_free(rig->cell);
    rv__plan_free(rig->plan);
    rv__facts_done(&rig->facts);
    rv__buf_done(&rig->journal);
    rv__buf_done(&rig->text);
    for (size_t i = 0; i < rig->kept_count; i++) {
        free(rig->kept[i].key);
        free(rig->kept[i].json);
    }
    free(rig->kept);
    for (size_t i = 0; i < rig->value_count; i++)
        rv__blob_unref(rig->values[i]);
    free(rig->values);
    free(rig);
}

static void path_of(struct rig *rig, const struct rv__effect *effect, char path[256])
{
    struct rv__view view;
    struct rv__buf buf;
    rv__buf_init(&buf, 10000);
    path[0] = '\0';
    int64_t vector[RV__PLAN_MAX_DEPTH] = { 0 };
    /* Whose input is made, where it is one of several. */
    const struct rv__body *body = effect->body != NULL && effect->node->body_count > 1
                                      ? effect->body
                                      : NULL;
    if (effect->kind == EFFECT_START &&
        rv__cell_view(rig->cell, effect->actor, effect->token, &view) == RV_OK) {
        memcpy(vector, view.vector, sizeof vector);
        rv__view_done(&view);
    }
    if (body != NULL)
        rv__body_path(body, vector, &buf);
    else if (effect->node != NULL)
        rv__node_path(effect->node, vector, &buf);
    if (effect->eval >= 0) {
        rv__buf_char(&buf, '?');
        rv__buf_text(&buf, rv__eval_name((enum rv__eval)effect->eval));
    }
    snprintf(path, 256, "%s", buf.text ? buf.text : "");
    rv__buf_done(&buf);
}

static void take_effect(void *arg, const struct rv__effect *effect)
{
    struct rig *rig = arg;
    for (size_t i = 0; i < rig->work_count; i++)
        if (rig->work[i].effect.actor == effect->actor) {
            memmove(&rig->work[i], &rig->work[i + 1],
                    (rig->work_count - i - 1) * sizeof rig->work[0]);
            rig->work_count--;
            break;
        }
    if (effect->kind == EFFECT_STOP)
        return;
    assert_true(rig->work_count < RIG_WORK);
    struct rig_work *work = &rig->work[rig->work_count++];
    work->effect = *effect;
    path_of(rig, effect, work->path);
}

static void save(struct rv__cell *cell, struct rv__buf *out)
{
    rv_error err;
    rv__buf_reset(out);
    if (rv__cell_save(cell, out, &err) < 0)
        fail_msg("cannot save: %s", err.message);
}

bool rig_torture;

int rig_torture_on(void **state)
{
    (void)state;
    rig_torture = true;
    return 0;
}

int rig_torture_off(void **state)
{
    (void)state;
    rig_torture = false;
    return 0;
}

size_t rig_inline;

int rig_values_on(void **state)
{
    (void)state;
    rig_inline = 8;
    return 0;
}

int rig_values_off(void **state)
{
    (void)state;
    rig_inline = 0;
    return 0;
}

int rig_both_on(void **state)
{
    return rig_torture_on(state) + rig_values_on(state);
}

int rig_both_off(void **state)
{
    return rig_torture_off(state) + rig_values_off(state);
}

/* The calls into flow/, each tried with failing allocations first. A call that says facts before it
 * fails has cut the turn: the next call goes on from there. */
enum call { CALL_SEND, CALL_GRANT, CALL_PUMP };

static int call_flow(struct rig *rig, enum call call, const struct rv__msg *msg, enum rv__lane lane,
                     rv_error *err)
{
    switch (call) {
    case CALL_SEND: return rv__flow_send(rig->cell, msg, &rig->facts, err);
    case CALL_GRANT: return rv__flow_grant(rig->cell, lane, rig->now_ms, &rig->facts, err);
    case CALL_PUMP: return rv__flow_pump(rig->cell, rig->now_ms, &rig->facts, err);
    }
    return RV_EINVAL;
}

static int try_flow(struct rig *rig, enum call call, const struct rv__msg *msg, enum rv__lane lane)
{
    rv_error err = { 0 };
    struct rv__buf before, after;
    if (!rig_torture)
        return call_flow(rig, call, msg, lane, &err);

    rv__buf_init(&before, 1u << 30);
    rv__buf_init(&after, 1u << 30);
    int rc = RV_ENOMEM;
    for (long n = 0; rc == RV_ENOMEM; n++) {
        size_t facts = rig->facts.count;
        save(rig->cell, &before);
        rv__test_fail_alloc_after(n);
        rc = call_flow(rig, call, msg, lane, &err);
        bool hit = rv__test_alloc_failed();
        rv__test_fail_alloc_after(-1);
        if (rc == RV_ENOMEM && !hit)
            fail_msg("RV_ENOMEM, and no allocation failed");
        if (rc != RV_ENOMEM)
            break;
        if (rig->facts.count > facts) {
            n = -1; /* it got further: what is left is another call */
            if (call == CALL_SEND)
                fail_msg("a message was taken in part");
            continue;
        }
        save(rig->cell, &after);
        if (!rv__str_eq(rv__buf_view(&before), rv__buf_view(&after)))
            fail_msg("a failed call changed the run\nbefore: %s\nafter:  %s", before.text,
                     after.text);
    }
    rv__buf_done(&before);
    rv__buf_done(&after);
    return rc;
}

static struct rv__cell *replayed(struct rig *rig)
{
    struct rv__cell *cell = NULL;
    rv_error err = { 0 };
    struct rv__cell_opts opts = { .plan = rig->plan, .value_inline = rig_inline };
    assert_int_equal(rv__cell_empty(&opts, &cell, &err), RV_OK);
    if (rv__cell_replay_json(cell, rv__buf_view(&rig->journal), &err) < 0)
        fail_msg("cannot replay: %s\n%s", err.message, rig->journal.text);
    return cell;
}

static struct rv__cell *load(struct rig *rig, struct rv__str text)
{
    struct rv__cell *cell = NULL;
    rv_error err = { 0 };
    struct rv__cell_opts opts = { .plan = rig->plan, .value_inline = rig_inline };
    int rc = RV_OK;
    if (rig_torture)
        TORTURE(rc, rv__cell_load(&opts, text, &cell, &err), assert_null(cell));
    else
        rc = rv__cell_load(&opts, text, &cell, &err);
    if (rc < 0)
        fail_msg("cannot load: %s\n%.*s", err.message, RV__ARG(text));
    return cell;
}

static void compare_with_replay(struct rig *rig)
{
    struct rv__buf live, again, loaded;
    struct rv__cell *copy = replayed(rig), *from_text;
    rv_error err = { 0 };
    rv__buf_init(&live, 1u << 30);
    rv__buf_init(&again, 1u << 30);
    rv__buf_init(&loaded, 1u << 30);
    save(rig->cell, &live);
    save(copy, &again);
    if (!rv__str_eq(rv__buf_view(&live), rv__buf_view(&again)))
        fail_msg("replay differs\nlive:   %s\nreplay: %s\njournal: %s", live.text, again.text,
                 rig->journal.text);
    if (rv__json_check(rv__buf_view(&live), RV__JSON_MAX_DEPTH, NULL, &err) < 0)
        fail_msg("a snapshot that is no JSON: %s\n%s", err.message, live.text);
    from_text = load(rig, rv__buf_view(&live));
    save(from_text, &loaded);
    if (!rv__str_eq(rv__buf_view(&live), rv__buf_view(&loaded)))
        fail_msg("load differs\nlive:   %s\nloaded: %s", live.text, loaded.text);
    rv__cell_free(copy);
    rv__cell_free(from_text);
    rv__buf_done(&live);
    rv__buf_done(&again);
    rv__buf_done(&loaded);
}

static void keep_rows(struct rig *rig)
{
    for (size_t i = 0; i < rig->facts.row_count; i++) {
        struct rv__row *row = &rig->facts.rows[i];
        if (rig->kept_count == rig->kept_cap) {
            rig->kept_cap = rig->kept_cap ? rig->kept_cap * 2 : 16;
            rig->kept = realloc(rig->kept, rig->kept_cap * sizeof rig->kept[0]);
        }
        rig->kept[rig->kept_count].key = strndup(row->key.at, row->key.len);
        rig->kept[rig->kept_count].json = strndup(row->json.at, row->json.len);
        rig->kept[rig->kept_count++].index = row->index;
    }
}

static void keep_values(struct rig *rig)
{
    for (size_t i = 0; i < rig->facts.value_count; i++) {
        struct rv__value *new = &rig->facts.values[i];
        if (new->number != rig->value_count + 1)
            fail_msg("value %llu follows %zu", (unsigned long long)new->number, rig->value_count);
        rig->values = realloc(rig->values, (rig->value_count + 1) * sizeof *rig->values);
        rig->values[rig->value_count++] = rv__blob_ref(new->json);
    }
}

int rig_turn(struct rig *rig, struct rv__msg *msg)
{
    int rc = RV_OK;
    if (msg != NULL) {
        msg->now_ms = rig->now_ms;
        rc = try_flow(rig, CALL_SEND, msg, LANE_NONE);
    }
    for (bool busy = true; busy;) {
        busy = false;
        while (try_flow(rig, CALL_PUMP, NULL, LANE_NONE) == 1)
            ;
        for (int lane = 1; lane < LANES; lane++)
            while (rig->grants[lane] && try_flow(rig, CALL_GRANT, NULL, (enum rv__lane)lane) == 1)
                busy = true;
    }
    assert_false(rv__cell_more(rig->cell));
    if (rig->facts.count > 0) {
        if (rig->journal.len > 0)
            rv__buf_char(&rig->journal, ',');
        rv__buf_str(&rig->journal, rv__buf_view(&rig->facts.json));
    }
    keep_rows(rig);
    keep_values(rig);
    rv__facts_reset(&rig->facts);

    struct rv__effect effect;
    while (rv__cell_effect(rig->cell, &effect)) {
        if (effect.unused_note != NULL)
            snprintf(rig->unused_note, sizeof rig->unused_note, "%.*s",
                     RV__ARG(rv__blob_str(effect.unused_note)));
        take_effect(rig, &effect);
    }
    if (rig->replay)
        compare_with_replay(rig);
    return rc;
}

struct rig_work *rig_try(struct rig *rig, const char *path)
{
    for (size_t i = 0; i < rig->work_count; i++)
        if (strcmp(rig->work[i].path, path) == 0)
            return &rig->work[i];
    return NULL;
}

struct rig_work *rig_at(struct rig *rig, const char *path)
{
    struct rig_work *work = rig_try(rig, path);
    if (work != NULL)
        return work;
    char all[2000] = "";
    for (size_t i = 0; i < rig->work_count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), " %s", rig->work[i].path);
    fail_msg("nothing is in flight at '%s'; there is:%s\njournal: %s", path, all,
             rig->journal.text);
    return NULL;
}

static void answer(struct rig *rig, const char *path, struct rv__msg msg)
{
    struct rig_work *work = rig_at(rig, path);
    msg.actor = work->effect.actor;
    msg.token = work->effect.token;
    rig_turn(rig, &msg);
    rv__blob_unref(msg.result);
    rv__blob_unref(msg.state);
    rv__blob_unref(msg.error);
}

void rig_done(struct rig *rig, const char *path, const char *result)
{
    rig_done_state(rig, path, result, NULL, false);
}

void rig_done_state(struct rig *rig, const char *path, const char *result, const char *state,
                    bool skipped)
{
    answer(
        rig, path,
        (struct rv__msg){
            .kind = MSG_DONE, .result = blob(result), .state = blob(state), .skipped = skipped });
}

static struct rv__blob *error_blob(const char *message)
{
    char text[300];
    snprintf(text, sizeof text, "{\"message\":\"%s\"}", message);
    return blob(text);
}

void rig_fail_as(struct rig *rig, const char *path, const char *message, enum rv__behavior behavior,
                 int max)
{
    answer(rig, path,
           (struct rv__msg){ .kind = MSG_FAILED,
                             .error = error_blob(message),
                             .behavior = behavior,
                             .max_attempts = max });
}

void rig_fail(struct rig *rig, const char *path, const char *message)
{
    rig_fail_as(rig, path, message, BEHAVIOR_PLAIN, 0);
}

void rig_timer(struct rig *rig, const char *path)
{
    struct rig_work *work = rig_at(rig, path);
    if (work->effect.kind == EFFECT_WAIT && work->effect.due_ms > rig->now_ms)
        rig->now_ms = work->effect.due_ms;
    answer(rig, path, (struct rv__msg){ .kind = MSG_TIMER });
}

void rig_send(struct rig *rig, struct rv__msg msg)
{
    rig_turn(rig, &msg);
    rv__blob_unref(msg.result);
    rv__blob_unref(msg.error);
}

void rig_finish(struct rig *rig, const char *eval_value)
{
    for (int guard = 0; rig->work_count > 0 && guard < 100000; guard++) {
        char path[256];
        memcpy(path, rig->work[0].path, sizeof path);
        if (rig->work[0].effect.kind == EFFECT_WAIT)
            rig_timer(rig, path);
        else
            rig_done(rig, path, rig->work[0].effect.eval >= 0 ? eval_value : "{\"ok\":1}");
    }
}

void rig_crash(struct rig *rig, bool snapshot)
{
    struct rv__cell *again = NULL;
    if (snapshot) {
        save(rig->cell, &rig->text);
        again = load(rig, rv__buf_view(&rig->text));
    } else {
        again = replayed(rig);
    }
    rv__cell_free(rig->cell);
    rig->cell = again;
    rig_relane(rig);
    rig->work_count = 0;
    rv__cell_outstanding(rig->cell, take_effect, rig);
}

static void canonical(const char *json, struct rv__buf *out)
{
    rv_error err = { 0 };
    rv__buf_reset(out);
    if (rv__json_canonical(rv__str(json), out, &err) < 0)
        fail_msg("no JSON: %s\n%s", err.message, json);
}

static void expect_json(const char *got, const char *expected)
{
    struct rv__buf a, b;
    rv__buf_init(&a, 1u << 30);
    rv__buf_init(&b, 1u << 30);
    canonical(got, &a);
    canonical(expected, &b);
    if (!rv__str_eq(rv__buf_view(&a), rv__buf_view(&b)))
        fail_msg("\ngot      %s\nexpected %s", a.text, b.text);
    rv__buf_done(&a);
    rv__buf_done(&b);
}

/* Take the errors out of the outcomes in this text. */
static void drop_errors(char *text)
{
    static const char before[] = "\"status\":\"failed\"", key[] = ",\"error\":";
    char *at = text;
    while ((at = strstr(at, before)) != NULL) {
        at += sizeof before - 1;
        if (strncmp(at, key, sizeof key - 1) != 0)
            continue;
        const char *end = rv__json_skip(at + sizeof key - 1, text + strlen(text));
        memmove(at, end, strlen(end) + 1);
    }
}

void rig_drop_attachments(char *json)
{
    static const char key[] = ",\"attachmentId\":\"";
    char *at = json, *end;
    while ((at = strstr(at, key)) != NULL && (end = strchr(at + sizeof key - 1, '"')) != NULL)
        memmove(at, end + 1, strlen(end + 1) + 1);
}

void rig_expect(struct rig *rig, enum rv__run_status status, const char *results_json)
{
    rv_error err = { 0 };
    if (rv__cell_status(rig->cell) != status)
        fail_msg("the run is %s, expected %s\njournal: %s",
                 rv__run_status_name(rv__cell_status(rig->cell)), rv__run_status_name(status),
                 rig->journal.text);
    rv__buf_reset(&rig->text);
    if (rv__cell_results(rig->cell, &rig->rows, &rig->text, NULL, &err) < 0)
        fail_msg("no results: %s", err.message);
    if (results_json != NULL && strstr(results_json, "\"error\":") == NULL)
        drop_errors(rig->text.text);
    if (results_json != NULL && strstr(results_json, "attachmentId") == NULL)
        rig_drop_attachments(rig->text.text);
    if (results_json != NULL)
        expect_json(rig->text.text, results_json);
}

void rig_expect_in_flight(struct rig *rig, const char *paths)
{
    char copy[2000], *save_at = NULL;
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", paths);
    for (char *p = strtok_r(copy, " ", &save_at); p != NULL;
         p = strtok_r(NULL, " ", &save_at), count++)
        (void)rig_at(rig, p);
    if (count != rig->work_count) {
        char all[2000] = "";
        for (size_t i = 0; i < rig->work_count; i++)
            snprintf(all + strlen(all), sizeof all - strlen(all), " %s", rig->work[i].path);
        fail_msg("in flight:%s; expected: %s", all, paths);
    }
}

bool rig_has_fact(struct rig *rig, const char *needle)
{
    return rig->journal.text != NULL && strstr(rig->journal.text, needle) != NULL;
}

static const char *view_json(struct rig *rig, const char *path,
                             int (*write)(const struct rv__view *, struct rv__row_source *,
                                          struct rv__buf *, rv_error *))
{
    struct rig_work *work = rig_at(rig, path);
    struct rv__view view;
    rv_error err = { 0 };
    assert_int_equal(rv__cell_view(rig->cell, work->effect.actor, work->effect.token, &view),
                     RV_OK);
    rv__buf_reset(&rig->text);
    if (write(&view, &rig->rows, &rig->text, &err) < 0)
        fail_msg("no view: %s", err.message);
    rv__view_done(&view);
    return rig->text.text;
}

const char *rig_steps(struct rig *rig, const char *path)
{
    return view_json(rig, path, rv__view_steps);
}

const char *rig_last(struct rig *rig, const char *path)
{
    return view_json(rig, path, rv__view_last);
}

struct rv__str rig_text(struct rig *rig, struct rv__blob *blob)
{
    struct rv__blob *text = NULL;
    rv__buf_reset(&rig->text);
    assert_int_equal(rv__blob_get(blob, &rig->rows, &text, NULL), RV_OK);
    if (text == NULL)
        return (struct rv__str){ NULL, 0 };
    rv__buf_str(&rig->text, rv__blob_str(text));
    rv__blob_unref(text);
    return rv__buf_view(&rig->text);
}

struct rv__str rig_item(struct rig *rig, const struct rv__view *view)
{
    struct rv__blob *hold = NULL;
    struct rv__str item = { NULL, 0 };
    int rc = rv__view_item(view, &rig->rows, &hold, &item, NULL);
    rv__buf_reset(&rig->text);
    if (rc == RV_ENOTFOUND)
        return item;
    assert_int_equal(rc, RV_OK);
    rv__buf_str(&rig->text, item);
    rv__blob_unref(hold);
    return rv__buf_view(&rig->text);
}

struct rv__str rig_items(struct rig *rig, const struct rv__view *view)
{
    rv__buf_reset(&rig->text);
    assert_int_equal(rv__view_items(view, &rig->rows, &rig->text, NULL), RV_OK);
    return rv__buf_view(&rig->text);
}
