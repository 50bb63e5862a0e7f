/* test_attachment.c: what each attempt of a state leaves: its name, its row. For src/flow/attachment.c and
 * left.c. */
#include "unit/flow/script.h"

#define STATE(alias, more)   "{'alias':'" alias "'," more "'agent':" S("f") "}"
#define STAGE(alias, states) "{'type':'stage','alias':'" alias "','states':[" states "]}"

/* The rows under a key, comma-separated, in order. */
static const char *rows_of(struct rig *rig, const char *key)
{
    rv__buf_reset(&rig->text);
    for (size_t i = 0; i < rig->kept_count; i++)
        if (strcmp(rig->kept[i].key, key) == 0) {
            if (rig->text.len > 0)
                rv__buf_char(&rig->text, ',');
            rv__buf_text(&rig->text, rig->kept[i].json);
        }
    return rv__buf_view(&rig->text).at;
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

static void expect_part(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("%s is not in %s", part, text);
}

static void each_attempt_leaves_one_with_its_name(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "'maxRetry':1,'agentId':'asker',")), NULL);
    rig_fail(rig, "g:a", "no");
    rig_done(rig, "g:a", "7");
    rig_expect(rig, RUN_COMPLETED,
               J("{'g':{'result':{'a':{'status':'completed','result':7,'description':'7',"
                 "'attempts':2,'attachmentId':'[g][a][asker]_700101T000001_1'}},'state':{},"
                 "'status':'completed'}}"));
    const char *rows = rows_of(rig, RV__ATTACHMENT_KEY);
    assert_int_equal(count_of(rows, "\"id\":"), 2);
    expect_part(rows, J("'id':'[g][a][asker]_700101T000001_0'"));
    expect_part(rows, J("'attempt':0,'status':'errored'"));
    expect_part(rows, J("'error':{'message':'no'"));
    expect_part(rows, J("'attempt':1,'status':'finished'"));
    expect_part(rows, J("'stage':'g','state':'a','agent':'asker','path':'g:a'"));
    rig_free(rig);
}

static void two_of_one_second_and_attempt_are_told_apart(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "'critical':true,")), NULL);
    for (int i = 0; i < 3; i++) {
        rig_fail(rig, "g:a", "no");
        assert_int_equal(rig_say_at(rig, MSG_RESUME, "g:a"), RV_OK);
        rig_crash(rig, i == 1);
    }
    rig_done(rig, "g:a", "7");
    const char *rows = rows_of(rig, RV__ATTACHMENT_KEY);
    expect_part(rows, J("'id':'[g][a][a]_700101T000001_0'"));
    expect_part(rows, J("'id':'[g][a][a]_700101T000001_0-2'"));
    expect_part(rows, J("'id':'[g][a][a]_700101T000001_0-3'"));
    expect_part(rows, J("'id':'[g][a][a]_700101T000001_0-4'"));
    rig_free(rig);
}

static void a_clock_that_is_set_back_brings_no_name_again(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "'critical':true,")), NULL);
    rig_fail(rig, "g:a", "no");
    rig->now_ms += 5000;
    assert_int_equal(rig_say_at(rig, MSG_RESUME, "g:a"), RV_OK);
    rig_fail(rig, "g:a", "no");
    rig->now_ms -= 5000;
    assert_int_equal(rig_say_at(rig, MSG_RESUME, "g:a"), RV_OK);
    rig_done(rig, "g:a", "7");
    const char *rows = rows_of(rig, RV__ATTACHMENT_KEY);
    expect_part(rows, J("'id':'[g][a][a]_700101T000001_0'"));
    expect_part(rows, J("'id':'[g][a][a]_700101T000006_0'"));
    expect_part(rows, J("'id':'[g][a][a]_700101T000006_0-2'"));
    rig_free(rig);
}

static void an_attempt_that_is_cut_short_leaves_one(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "") "," STATE("b", "")), NULL);
    rig_done(rig, "g:a", "1");
    rig_say(rig, MSG_CANCEL);
    rig_expect(rig, RUN_CANCELLED, NULL);
    const char *rows = rows_of(rig, RV__ATTACHMENT_KEY);
    assert_int_equal(count_of(rows, "\"id\":"), 2);
    expect_part(rows, J("'state':'b','agent':'b','path':'g:b','attempt':0,'status':'errored'"));
    expect_part(rows, J("'code':'cancelled'"));
    rig_free(rig);
}

static void a_stage_that_begins_anew_says_so(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", STATE("a", "'critical':true,") "," STATE("b", "'priority':200,")), NULL);
    rig_fail(rig, "g:a", "no");
    assert_int_equal(rig_say_at(rig, MSG_RESTART, "g:a"), RV_OK);
    expect_part(rows_of(rig, RV__ANEW_KEY), J("{'o':2,'n':"));
    assert_int_equal(count_of(rows_of(rig, RV__ATTACHMENT_KEY), "\"id\":"),
                     2); /* b was cut short */
    rig_done(rig, "g:b", "2");
    rig_done(rig, "g:a", "1");
    assert_int_equal(count_of(rows_of(rig, RV__ATTACHMENT_KEY), "\"id\":"), 4);
    rig_free(rig);
}

#define CRITICAL(child, stage) \
    "{'alias':'" child "','nodes':[" STAGE(stage, STATE("a", "'critical':true,")) "]}"

/* Nothing begins between the decisions: the rows are told apart all the same. */
static void stages_that_begin_anew_leave_a_row_each(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'concurrent','alias':'c','steps':[" CRITICAL(
                                 "x", "g") "," CRITICAL("y", "h") "," CRITICAL("z", "i") "]}",
                             NULL);
    rig_fail(rig, "c:x:node0:g:a", "no");
    rig_fail(rig, "c:y:node0:h:a", "no");
    assert_int_equal(rig_say_at(rig, MSG_RESTART, "c:x:node0:g:a"), RV_OK);
    rig_fail(rig, "c:z:node0:i:a", "no"); /* it was in flight: as many are suspended as before */
    assert_int_equal(rig_say_at(rig, MSG_RESTART, "c:y:node0:h:a"), RV_OK);
    assert_int_equal(rig_say_at(rig, MSG_RESTART, "c:z:node0:i:a"), RV_OK);
    int64_t indexes[3] = { 0, 0, 0 };
    size_t count = 0;
    for (size_t i = 0; i < rig->kept_count; i++)
        if (strcmp(rig->kept[i].key, RV__ANEW_KEY) == 0 && count++ < 3)
            indexes[count - 1] = rig->kept[i].index;
    assert_int_equal(count, 3);
    assert_true(indexes[0] != indexes[1] && indexes[1] != indexes[2] && indexes[0] != indexes[2]);
    rig_done(rig, "c:x:node0:g:a", "1");
    rig_done(rig, "c:y:node0:h:a", "1");
    rig_done(rig, "c:z:node0:i:a", "1");
    rig_free(rig);
}

static void who_depends_on_an_error_is_told_the_attachment(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "'priority':200,") "," STATE(
                                            "b", "'dependsOn':{'x':{'state':'a'}},")),
                             NULL);
    rig_fail(rig, "g:a", "no");
    struct rv__view view = rig_view(rig, "g:b");
    struct rv__buf out;
    rv__buf_init(&out, 1u << 20);
    assert_int_equal(rv__view_inputs(&view, &rig->rows, &out, NULL), RV_OK);
    assert_string_equal(out.text, J("{'x':{'error':{'message':'no','attachmentId':'[g][a][a]_"
                                    "700101T000001_0'}}}"));
    rv__buf_done(&out);
    rv__view_done(&view);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(each_attempt_leaves_one_with_its_name),
        RIG_TEST(two_of_one_second_and_attempt_are_told_apart),
        RIG_TEST(a_clock_that_is_set_back_brings_no_name_again),
        RIG_TEST(an_attempt_that_is_cut_short_leaves_one),
        RIG_TEST(a_stage_that_begins_anew_says_so),
        RIG_TEST(stages_that_begin_anew_leave_a_row_each),
        RIG_TEST(who_depends_on_an_error_is_told_the_attachment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
