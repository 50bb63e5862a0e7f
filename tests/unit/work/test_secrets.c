/* test_secrets.c: where secrets come from, and what an attempt says of them. For src/work/secrets.c. */
#include <sys/stat.h>
#include <unistd.h>

#include "unit/engine/rig.h"
#include "work/secrets.h"

/* A file in the rig's folder, which only its owner may read. */
static const char *write_file(struct rig *rig, const char *text, mode_t mode)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/secrets", rig->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void a_file_has_a_line_for_each(void **state)
{
    struct rig *rig = *state;
    struct rv__secret_source *source = NULL;
    struct rv__str value;
    const char *path = write_file(
        rig, "# a comment\n\n  # another\r\nA=one=two # three \n_B2=\r\nC=x", 0600);
    assert_int_equal(rv__secret_source_new(path, NULL, &source, &rig->err), RV_OK);
    assert_int_equal(source->find(source, "A", &value), RV_OK);
    assert_str(value, "one=two # three ");
    assert_int_equal(source->find(source, "_B2", &value), RV_OK);
    assert_str(value, "");
    assert_int_equal(source->find(source, "C", &value), RV_OK);
    assert_str(value, "x");
    setenv("RIVAL_TEST_SECRET", "from the environment", 1);
    assert_int_equal(source->find(source, "RIVAL_TEST_SECRET", &value), RV_OK);
    assert_str(value, "from the environment");
    unsetenv("RIVAL_TEST_SECRET");
    assert_int_equal(source->find(source, "RIVAL_TEST_SECRET", &value), RV_ENOTFOUND);
    rv__secret_source_free(source);
}

static void a_bad_file_is_refused_without_being_cited(void **state)
{
    static const struct {
        const char *text;
        mode_t mode;
        const char *why;
    } rows[] = {
        { "A=1\nhunter2\n", 0600, ":2: a line must be NAME=value" },
        { "A =hunter2\n", 0600, ":1: a line must be NAME=value" },
        { "=hunter2\n", 0600, ":1: a line must be NAME=value" },
        { "A=hunter2\nA=hunter2\n", 0600, ":2: A is there twice" },
        { "A=hunter2\n", 0640, "(mode 640): chmod 600 it" },
        { "A=hunter2\n", 0602, "(mode 602): chmod 600 it" },
    };
    struct rig *rig = *state;
    struct rv__secret_source *source = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = write_file(rig, rows[i].text, rows[i].mode);
        assert_int_equal(rv__secret_source_new(path, NULL, &source, &rig->err), RV_EINVAL);
        if (strstr(rig->err.message, rows[i].why) == NULL ||
            strstr(rig->err.message, "hunter2") != NULL)
            fail_msg("%s", rig->err.message);
    }
    assert_int_equal(rv__secret_source_new(rig->folder, NULL, &source, &rig->err), RV_EINVAL);
    assert_non_null(strstr(rig->err.message, "not a regular file"));
    assert_null(source);
}

static int open_source(const char *path, rv_error *err)
{
    struct rv__secret_source *source = NULL;
    int rc = rv__secret_source_new(path, NULL, &source, err);
    rv__secret_source_free(source);
    return rc;
}

static void no_memory_for_a_file_is_told(void **state)
{
    struct rig *rig = *state;
    int rc;
    const char *path = write_file(rig, "A=hunter2\nB=hunter3\n", 0600);
    TORTURE(rc, open_source(path, &rig->err), (void)0);
    assert_int_equal(rc, RV_OK);
}

static void values_are_those_of_all_workflows_in_a_plan(void **state)
{
    struct rig *rig = *state;
    struct rv__secret_source *source = NULL;
    struct rv__secrets *secrets = NULL;
    struct rv__plan *plan = NULL;
    struct rv__str value;
    static const char json[] =
        "{\"name\":\"w\",\"secrets\":[\"A_KEY\",\"SHORT\"],\"steps\":[{\"type\":\"workflow\","
        "\"alias\":\"n\",\"name\":\"inner\",\"secrets\":[\"B_KEY\",\"A_KEY\",\"AWAY\"],\"steps\":["
        "{\"type\":\"step\",\"alias\":\"v\",\"kind\":\"value\",\"with\":1}]}]}";
    assert_int_equal(rv__plan_read(rv__str(json), &plan, &rig->err), RV_OK);
    const char *path = write_file(rig, "A_KEY=aaaaaaaa\nB_KEY=bbbbbbbb\nSHORT=1234567\n", 0600);
    assert_int_equal(rv__secret_source_new(path, NULL, &source, &rig->err), RV_OK);
    assert_int_equal(rv__secrets_new(plan, source, &secrets, &rig->err), RV_OK);
    assert_string_equal(
        rv__secrets_unusable(secrets),
        "its secrets cannot be used: AWAY has no value, SHORT has fewer than 8 bytes; "
        "set them in the environment of the engine or in its --secrets file");
    rv__secret_source_free(source);
    assert_true(rv__secrets_get(secrets, rv__str("A_KEY"), &value));
    assert_str(value, "aaaaaaaa");
    assert_true(rv__secrets_get(secrets, rv__str("B_KEY"), &value));
    assert_false(rv__secrets_get(secrets, rv__str("SHORT"), &value));
    assert_false(rv__secrets_get(secrets, rv__str("AWAY"), &value));
    assert_true(rv__mask_finds(rv__secrets_mask(secrets), rv__str("x bbbbbbbb")));
    rv__secrets_unref(secrets);
    rv__plan_free(plan);
}

/* `steps` with the workflow's secrets before them. */
static int define(struct rig *rig, const char *head, const char *steps)
{
    char path[200];
    if (rig->engine == NULL)
        rig_open(rig, NULL);
    snprintf(path, sizeof path, "%s/w.yaml", rig->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "name: w\n%ssteps:\n%s", head, steps);
    assert_int_equal(fclose(file), 0);
    return rv_register_file(rig->engine, path, RV_FILE_OPTS(.replace = true), &rig->err);
}

static void what_an_attempt_says_is_masked(void **state)
{
    struct rig *rig = *state;
    setenv("RV_TEST_KEY", "hunter2-secret", 1);
    if (define(rig, "secrets: [RV_TEST_KEY]\n",
               "  - plain: { command: [echo, 'it is', '${ .secrets.RV_TEST_KEY }'] }\n"
               "  - made: { command: [echo, '${ .secrets.RV_TEST_KEY | @base64 }'] }\n"
               "  - length: { command: [echo, '${ .secrets.RV_TEST_KEY | length }'], description: "
               "'${ .result }' }\n"
               "  - inherits: { command: [sh, -c, 'echo $RV_TEST_KEY'] }\n"
               "  - reads: { value: '${ .steps.plain.result }' }\n"
               "  - fails: { command: [echo, '${ .secrets.RV_TEST_KEY | tonumber }'] }\n") != 1)
        fail_msg("%s", rig->err.message);
    rig_gives(rig, "a", NULL, "\"plain\":{\"result\":\"it is ***\"");
    rig_gives(rig, "b", NULL, "\"made\":{\"result\":\"***");
    rig_gives(rig, "c", NULL, "\"length\":{\"result\":14,\"state\":{\"description\":\"14\"}");
    rig_gives(rig, "d", NULL, "\"inherits\":{\"result\":\"***\"");
    rig_gives(rig, "e", NULL, "\"reads\":{\"result\":\"it is ***\"");
    rig_gives(rig, "f", NULL, "jq failed; its message is not shown");
    unsetenv("RV_TEST_KEY");
}

/* The file is good, and is listed; what is missing is told, and no run begins that could not end. */
static void a_workflow_without_its_secrets_cannot_be_started(void **state)
{
    struct rig *rig = *state;
    rv_workflow_list *list = NULL;
    unsetenv("RV_TEST_KEY");
    assert_int_equal(define(rig, "secrets: [RV_TEST_KEY]\n", "  - a: { value: 1 }\n"), 1);
    assert_int_equal(rv_workflows(rig->engine, &list, &rig->err), RV_OK);
    assert_int_equal(list->count, 1);
    assert_non_null(strstr(list->items[0].cannot_start, "RV_TEST_KEY has no value"));
    rv_workflow_list_free(list);
    assert_int_equal(rv_run(rig->engine, "w", NULL, NULL, NULL, &rig->err), RV_ESTATE);
    assert_non_null(strstr(rig->err.message,
                           "workflow 'w' cannot be started: its secrets cannot be "
                           "used: RV_TEST_KEY has no value; set them"));
}

/* With its own words, `none` and `context`, an expression may mean anything. */
static void stdin_is_a_value(void **state)
{
    struct rig *rig = *state;
    if (define(rig, "",
               "  - text: { command: [cat], stdin: '${ .input.text }' }\n"
               "  - json: { command: [cat], stdin: '${ .input }' }\n"
               "  - mixed: { command: [cat], stdin: 'a ${ .input.text } b' }\n"
               "  - word: { command: [cat], stdin: '${ \"none\" }' }\n"
               "  - all: { command: [cat], stdin: context }\n") != 1)
        fail_msg("%s", rig->err.message);
    const char *input = "{\"text\":\"two words\",\"n\":1.0}";
    rig_gives(rig, "a", input, "\"text\":{\"result\":\"two words\"");
    rig_gives(rig, "b", input, "\"json\":{\"result\":{\"text\":\"two words\",\"n\":1.0}");
    rig_gives(rig, "c", input, "\"mixed\":{\"result\":\"a two words b\"");
    rig_gives(rig, "d", input, "\"word\":{\"result\":\"none\"");
    rig_gives(rig, "e", input, "\"all\":{\"result\":{\"input\":");
    assert_int_equal(define(rig, "", "  - a: { command: [cat], stdin: nothing }\n"), RV_EINVAL);
    assert_non_null(strstr(rig->err.message, "must be context, none, or an expression"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_file_has_a_line_for_each),
        CASE(a_bad_file_is_refused_without_being_cited),
        CASE(no_memory_for_a_file_is_told),
        CASE(values_are_those_of_all_workflows_in_a_plan),
        CASE(what_an_attempt_says_is_masked),
        CASE(a_workflow_without_its_secrets_cannot_be_started),
        CASE(stdin_is_a_value),
    };
#undef CASE
    return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
