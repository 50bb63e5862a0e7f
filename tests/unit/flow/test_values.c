/* test_values.c: long texts leave the cell once, under numbers of the run. For src/flow/value.c. */
#include "base/json.h"
#include "flow/cell.h"
#include "unit/flow/script.h"

/* A JSON string of so many bytes; the caller's. */
static char *text_of(size_t bytes)
{
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, 'x', bytes);
    text[0] = text[bytes - 1] = '"';
    text[bytes] = '\0';
    return text;
}

static void only_what_is_longer_than_the_bound_leaves(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," S("b") "," S("c"), NULL);
    char *here = text_of(RV__VALUE_INLINE), *away = text_of(RV__VALUE_INLINE + 1);
    rig_done(rig, "a", here);
    assert_int_equal(rig->value_count, 0);
    rig_done_state(rig, "b", away, "{\"small\":1}", false);
    assert_int_equal(rig->value_count, 1);
    assert_true(rig_has_fact(rig, "\"resultValue\":[1,16385],\"state\":{\"small\":1}"));
    assert_string_equal(rig->values[0]->text, away);
    struct rv__view view = rig_view(rig, "c");
    assert_int_equal(rv__entry_blob(view.last)->value, 1);
    rv__view_done(&view);
    rig_done(rig, "c", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    assert_non_null(strstr(rig->text.text, away));
    free(here);
    free(away);
    rig_free(rig);
}

/* A text of the user that looks like a reference is a text. */
static void nothing_that_a_user_writes_is_taken_for_a_reference(void **state)
{
    (void)state;
    static const char *const texts[] = { "{'resultValue':[1,5]}", "[1,5]", "{'$value':1}",
                                         "{'itemValue':[1,0],'refers':1}" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char expected[400];
        rig_inline = 1000;
        struct rig *rig = rig_of(
            "{'type':'forEach','alias':'e','items':[],'run':[" S("s") "]}," S("z"), NULL);
        rig_done(rig, "e?items", J("[7]"));
        rig_done_state(rig, "e:iter0:node0:s", J(texts[i]), J("{'stateValue':[1,5]}"), false);
        rig_done(rig, "z", J(texts[i]));
        snprintf(expected, sizeof expected,
                 "{'e':{'result':{'iterations':[{'item':7,'index':0,'results':{'s':{'result':%s,"
                 "'state':{'stateValue':[1,5]},'status':'completed'}}}]},'state':{},"
                 "'status':'completed'},'z':" DONE("%s") "}",
                 texts[i], texts[i]);
        assert_int_equal(rig->value_count, 0);
        rig_expect(rig, RUN_COMPLETED, J(expected));
        rig_free(rig);
        rig_inline = 0;
    }
}

static char *numbers(size_t count)
{
    char *text = malloc(count * 8 + 3), *at = text;
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        at += snprintf(at, 16, "%c%zu", i == 0 ? '[' : ',', i);
    snprintf(at, 2, "]");
    return text;
}

/* However many they are: the cell and its snapshot do not have them. */
static void items_are_not_in_the_cell(void **state)
{
    (void)state;
    size_t small = 0;
    for (size_t count = 10000; count <= 100000; count *= 10) {
        struct rig *rig = rig_of("{'type':'forEach','alias':'e','items':[],'run':[" S("s") "]}",
                                 NULL);
        char *items = numbers(count), index[32];
        rig->replay = false;
        rig_done(rig, "e?items", items);
        for (size_t i = 0; i < 600; i++) { /* over the end of a piece, and asleep in between */
            char path[64];
            snprintf(path, sizeof path, "e:iter%zu:node0:s", i);
            if (i % 100 == 99)
                rig_crash(rig, i % 200 == 99);
            struct rv__view view = rig_view(rig, path);
            snprintf(index, sizeof index, "%zu", i);
            assert_str(rig_item(rig, &view), index);
            rv__view_done(&view);
            rig_done(rig, path, "null");
        }
        rv__buf_reset(&rig->text);
        assert_int_equal(rv__cell_save(rig->cell, &rig->text, NULL), RV_OK);
        assert_true(rig->text.len < 2000);
        assert_true(small == 0 || rig->text.len < small + 50);
        small = rig->text.len;
        size_t reads = rig->value_reads; /* a row finds its item where the one before did */
        assert_int_equal(rig_say(rig, MSG_CANCEL), RV_OK);
        rig_expect(rig, RUN_CANCELLED, NULL);
        assert_in_range(rig->value_reads - reads, 2, 4);
        free(items);
        rig_free(rig);
    }
}

/* What is too long for the buffer is counted, and not read. */
static void results_that_do_not_fit_are_counted(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'forEach','alias':'e','items':[],'run':[" S("s") "]}", NULL);
    struct rv__buf out;
    uint64_t bytes = 0;
    rv_error err = { 0 };
    char *text = text_of(50000);
    rig_done(rig, "e?items", "[1,2,3,4,5,6,7,8,9,10]");
    for (int i = 0; i < 10; i++) {
        char path[64];
        snprintf(path, sizeof path, "e:iter%d:node0:s", i);
        rig_done(rig, path, text);
    }
    rig_expect(rig, RUN_COMPLETED, NULL);
    size_t all = rig->text.len;
    assert_true(all > 500000);
    size_t reads = rig->value_reads;
    rv__buf_init(&out, 120000);
    rv__buf_text(&out, "before");
    assert_int_equal(rv__cell_results(rig->cell, &rig->rows, &out, &bytes, &err), RV_ETOOBIG);
    assert_int_equal(bytes, all);
    assert_int_equal(rig->value_reads - reads, 2); /* as many as there was room for */
    assert_str(rv__buf_view(&out), "before");
    rv__buf_done(&out);
    free(text);
    rig_free(rig);
}

static void a_value_that_is_not_what_was_written_is_an_error(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    char *text = text_of(20000);
    rv_error err = { 0 };
    rig_done(rig, "a", text);
    rv__blob_unref(rig->values[0]);
    rig->values[0] = rv__blob_new(rv__str("1"));
    rv__buf_reset(&rig->text);
    assert_int_equal(rv__cell_results(rig->cell, &rig->rows, &rig->text, NULL, &err), RV_ESTORE);
    assert_string_equal(err.message, "the value 1 has 1 bytes: 20000 were written");
    free(text);
    rig_free(rig);
}

/* A pump that ends iterations stops when it has said enough, by bytes too. */
static void a_turn_is_bounded_in_bytes(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'forEach','alias':'e','items':[],'parallel':true,'run':[" S("s") "]}", NULL);
    char *text = text_of(RV__VALUE_INLINE), *items = numbers(1000);
    struct rv__blob *result = rv__blob_new(rv__str(text));
    rig->replay = false;
    rig_done(rig, "e?items", items);
    for (size_t i = 0; i < rig->work_count; i++) {
        struct rv__msg msg = { .kind = MSG_DONE,
                               .now_ms = rig->now_ms,
                               .actor = rig->work[i].effect.actor,
                               .token = rig->work[i].effect.token,
                               .result = result };
        assert_int_equal(rv__flow_send(rig->cell, &msg, &rig->facts, NULL), RV_OK);
    }
    for (int rc = 1, turns = 0; rc == 1; turns++) {
        rv__facts_reset(&rig->facts);
        rc = rv__flow_pump(rig->cell, rig->now_ms, &rig->facts, NULL);
        assert_true(rig->facts.json.len + rig->facts.row_bytes < RV__TURN_BYTES + 40000);
        assert_true(turns < 50);
    }
    rv__blob_unref(result);
    free(text);
    free(items);
    rig_free(rig);
}

static void what_is_no_reference_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "1",      "[]",      "[0,5]",
                                       "[1]",    "[1,0]",   "[1,2,3]",
                                       "[-1,2]", "['1',2]", "[1,2305843009213693953]" };
    static const char *const bad_items[] = { "1",
                                             "[]",
                                             "[1]",
                                             "[1,2]",
                                             "[0,1,1]",
                                             "[1,0,1]",
                                             "[1,1,0]",
                                             "[1,1,2,3]",
                                             "[1,4611686018427387904,4]",
                                             "[1,1,2305843009213693952]" };
    struct rv__blob *blob = NULL;
    struct rv__items *items = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(rv__reference_read(rv__str(J(bad[i])), &blob), RV_EINVAL);
    for (size_t i = 0; i < sizeof bad_items / sizeof *bad_items; i++)
        assert_int_equal(rv__items_read(rv__str(J(bad_items[i])), &items), RV_EINVAL);
    assert_int_equal(rv__items_read(rv__str("[4,256,3,1,2,7,1]"), &items), RV_OK);
    assert_int_equal(items->count, 256 * 3 + 2 + 7);
    static const struct {
        int64_t index, place;
        uint64_t piece;
    } where[] = { { 0, 0, 4 },   { 255, 255, 4 }, { 256, 0, 5 }, { 767, 255, 6 },
                  { 768, 0, 7 }, { 769, 0, 8 },   { 770, 0, 9 }, { 776, 6, 9 } };
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        int64_t place = -1;
        assert_int_equal(rv__items_piece(items, where[i].index, &place), where[i].piece);
        assert_int_equal(place, where[i].place);
    }
    rv__items_unref(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_longer_than_the_bound_leaves),
        cmocka_unit_test(nothing_that_a_user_writes_is_taken_for_a_reference),
        cmocka_unit_test(items_are_not_in_the_cell),
        cmocka_unit_test(results_that_do_not_fit_are_counted),
        cmocka_unit_test(a_value_that_is_not_what_was_written_is_an_error),
        cmocka_unit_test(a_turn_is_bounded_in_bytes),
        cmocka_unit_test(what_is_no_reference_is_refused),
    };
    return cmocka_run_group_tests_name("values", tests, NULL, NULL);
}
