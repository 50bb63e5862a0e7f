/* fuzz_facts.c: any text as the journal or the snapshot of a run, against src/flow.
 *
 * The first byte chooses the plan; the rest is JSON: an array is a journal, an object a snapshot. It is
 * refused or makes a cell; that cell then takes messages and places, can be read, and what it saves it
 * also loads. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "flow/flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

/* clang-format off */
static const char *const texts[] = {
    "{\"name\":\"t\",\"onError\":{\"name\":\"h\"},\"steps\":[{\"type\":\"step\",\"alias\":\"a\",\"name\":\"a\",\"when\":\"${ .w }\",\"maxAttempts\":2,\"timeout\":5,\"onError\":{\"name\":\"h\"}},"
    "{\"type\":\"step\",\"alias\":\"s\",\"kind\":\"signal\",\"with\":{\"name\":\"go\"}},{\"type\":\"step\",\"alias\":\"d\",\"kind\":\"delay\",\"with\":5}]}",
    "{\"name\":\"t\",\"steps\":[{\"type\":\"forEach\",\"alias\":\"e\",\"items\":{\"fn\":\"i\"},\"parallel\":true,\"concurrency\":2,\"run\":{\"type\":\"workflow\",\"name\":\"w\",\"input\":\"${ .x }\",\"onError\":{\"name\":\"h\"},\"steps\":["
    "{\"type\":\"loop\",\"alias\":\"l\",\"until\":\"${ .u }\",\"body\":[{\"type\":\"branch\",\"alias\":\"b\",\"if\":\"${ .c }\",\"then\":[{\"type\":\"step\",\"alias\":\"p\",\"name\":\"p\"}],\"else\":[]}]}]}}]}",
    "{\"name\":\"t\",\"steps\":[{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[{\"type\":\"step\",\"alias\":\"x\",\"name\":\"x\"},{\"alias\":\"n\",\"nodes\":[{\"type\":\"concurrent\",\"alias\":\"d\",\"continueOn\":\"detached\",\"steps\":["
    "{\"type\":\"step\",\"alias\":\"y\",\"name\":\"y\"}]}]}],\"join\":2},{\"type\":\"loop\",\"alias\":\"l\",\"while\":\"${ .u }\",\"keep\":\"last\",\"body\":[{\"type\":\"workflow\",\"alias\":\"w\",\"name\":\"w\",\"when\":{\"fn\":\"f\"},\"steps\":["
    "{\"type\":\"step\",\"alias\":\"z\",\"name\":\"z\"}]}]}]}",
};
/* clang-format on */
enum { PLANS = sizeof texts / sizeof *texts, OWED = 16 };

static const struct rv__plan *plan_of(uint8_t which)
{
    static struct rv__plan *plans[PLANS];
    struct rv__plan **plan = &plans[which % PLANS];
    if (*plan == NULL)
        MUST(rv__plan_read(rv__str(texts[which % PLANS]), plan, NULL) == RV_OK);
    return *plan;
}

struct owed {
    struct rv__effect effects[OWED];
    size_t count;
};

static void take(void *arg, const struct rv__effect *effect)
{
    struct owed *owed = arg;
    if (owed->count < OWED)
        owed->effects[owed->count++] = *effect;
}

static int some_rows(struct rv__row_source *self, struct rv__str key, int64_t after,
                     struct rv__buf *out, int64_t *last, rv_error *err)
{
    (void)self;
    (void)key;
    (void)err;
    if (after >= 0)
        return 0;
    *last = 0;
    rv__buf_text(out, "{\"item\":1,\"index\":0,\"results\":{\"l\":{\"result\":{}},\"p\":1}},7");
    rv__buf_text(out, ",{\"itemValue\":[7,3],\"index\":1,\"results\":{\"l\":{\"resultValue\":[7,2],"
                      "\"description\":1,\"stateValue\":[3,2]}},\"refers\":1}");
    return 1;
}

static int some_value(struct rv__row_source *self, uint64_t number, struct rv__blob **ret,
                      rv_error *err)
{
    (void)self;
    (void)err;
    *ret = rv__blob_new(rv__str(number % 2 ? "[1,2]" : "{}"));
    return *ret != NULL ? RV_OK : RV_ENOMEM;
}

static void look(struct rv__cell *cell, const struct rv__effect *effect, struct rv__buf *out)
{
    struct rv__row_source rows = { some_rows, some_value };
    struct rv__view view;
    if (rv__cell_view(cell, effect->actor, effect->token, &view) < 0)
        return;
    (void)rv__view_steps(&view, &rows, out, NULL);
    (void)rv__view_last(&view, &rows, out, NULL);
    struct rv__blob *hold = NULL;
    struct rv__str item;
    (void)rv__view_item(&view, &rows, &hold, &item, NULL);
    rv__blob_unref(hold);
    (void)rv__view_items(&view, &rows, out, NULL);
    rv__view_done(&view);
    rv__buf_reset(out);
}

static void drive(struct rv__cell *cell, struct rv__buf *out)
{
    struct rv__row_source rows = { some_rows, some_value };
    struct rv__blob *json = rv__blob_new(rv__str("[1]")), *error = rv__blob_new(rv__str("{}"));
    struct rv__facts facts;
    struct rv__effect effect;
    rv__facts_init(&facts);
    for (int round = 0; round < 5; round++) {
        static const enum rv__msg_kind kinds[] = { MSG_DONE, MSG_TIMER, MSG_FAILED, MSG_LOST,
                                                   MSG_PARK };
        struct owed owed = { .count = 0 };
        struct rv__msg msg = { .kind = round % 2 ? MSG_RESUME : MSG_SIGNAL, .name = rv__str("go") };
        (void)rv__flow_send(cell, &msg, &facts, NULL);
        rv__cell_outstanding(cell, take, &owed);
        for (size_t i = 0; i < owed.count; i++) {
            look(cell, &owed.effects[i], out);
            msg = (struct rv__msg){ .kind = kinds[(i + (size_t)round) % 5],
                                    .name = rv__str("h"),
                                    .actor = owed.effects[i].actor,
                                    .token = owed.effects[i].token,
                                    .result = json,
                                    .error = error,
                                    .now_ms = 7 };
            MUST(rv__flow_send(cell, &msg, &facts, NULL) == RV_OK);
        }
        for (int lane = 1; lane < LANES; lane++)
            MUST(rv__flow_grant(cell, (enum rv__lane)lane, 7, &facts, NULL) >= 0);
        MUST(rv__flow_pump(cell, 7, &facts, NULL) >= 0);
        while (rv__cell_effect(cell, &effect))
            ;
        rv__facts_reset(&facts);
    }
    (void)rv__cell_results(cell, &rows, out, NULL, NULL);
    struct rv__msg cancel = { .kind = MSG_CANCEL };
    MUST(rv__flow_send(cell, &cancel, &facts, NULL) == RV_OK);
    rv__facts_done(&facts);
    rv__blob_unref(json);
    rv__blob_unref(error);
}

/* What is saved is loaded, and saved the same. */
static void check_saves(const struct rv__cell_opts *opts, struct rv__cell *cell)
{
    struct rv__buf once, twice;
    struct rv__cell *again = NULL;
    rv_error err = { 0 };
    rv__buf_init(&once, SIZE_MAX / 8); /* libFuzzer bounds the input */
    rv__buf_init(&twice, SIZE_MAX / 8);
    MUST(rv__cell_save(cell, &once, NULL) == RV_OK);
    if (rv__cell_load(opts, rv__buf_view(&once), &again, &err) < 0) {
        fprintf(stderr, "%s\n%s\n", err.message, once.text);
        abort();
    }
    MUST(rv__cell_save(again, &twice, NULL) == RV_OK);
    MUST(rv__str_eq(rv__buf_view(&once), rv__buf_view(&twice)));
    rv__cell_free(again);
    rv__buf_done(&once);
    rv__buf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv__str value;
    struct rv__cell *cell = NULL;
    struct rv__buf out;
    if (size < 2)
        return 0;
    struct rv__cell_opts opts = { .plan = plan_of(data[0]) };
    struct rv__str text = { (const char *)data + 1, size - 1 };
    if (rv__json_check(text, RV__JSON_MAX_DEPTH, &value, NULL) < 0)
        return 0;

    int rc;
    if (rv__json_type(value) == RV__JSON_ARRAY) {
        struct rv__str facts = { value.at + 1, value.len - 2 };
        MUST(rv__cell_empty(&opts, &cell, NULL) == RV_OK);
        rc = rv__cell_replay_json(cell, facts, NULL); /* the cell is as before the bad fact */
    } else {
        rc = rv__cell_load(&opts, value, &cell, NULL);
    }
    MUST(rc == RV_OK || rc == RV_ESTORE);
    if (cell == NULL)
        return 0;
    if (!rv__cell_active(cell) && !rv__run_terminal(rv__cell_status(cell))) { /* it never began */
        rv__cell_free(cell);
        return 0;
    }
    rv__buf_init(&out, SIZE_MAX / 8);
    check_saves(&opts, cell);
    drive(cell, &out);
    check_saves(&opts, cell);
    rv__buf_done(&out);
    rv__cell_free(cell);
    return 0;
}
