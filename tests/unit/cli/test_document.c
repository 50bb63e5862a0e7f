/* test_document.c: answers of a server, good and bad, into structs: src/cli/document.c. */
#include "unit/test.h"

#include "base/alloc.h"
#include "base/json.h"
#include "cli/document.h"

static void *read_as(const struct rv__document *of, const char *json, size_t head)
{
    void *mem = NULL;
    rv_error err = { 0 };
    struct rv__str text;
    assert_int_equal(rv__json_check(rv__str(json), RV__JSON_MAX_DEPTH, &text, NULL), RV_OK);
    int rc = rv__document_read(of, text, head, &mem, &err);
    if (rc != RV_OK)
        fail_msg("%s: %s", json, err.message);
    return mem;
}

static void members_become_fields(void **state)
{
    (void)state;
    rv_node_list *list = read_as(
        &rv__doc_node_list,
        "{\"offset\":4,\"total\":7,\"nodes\":[{\"path\":\"a:iter0\",\"alias\":\"\\u0061\","
        "\"status\":\"failed\",\"children\":3,\"attempt\":2,\"duration\":1500,"
        "\"error\":{\"message\":\"no\"},\"iterations\":{\"total\":9,\"failed\":1}},"
        "{\"path\":\"b\",\"description\":\"tab\\there\"}]}",
        0);
    assert_int_equal(list->count, 2);
    assert_int_equal(list->total, 7);
    const rv_node *node = &list->nodes[0];
    assert_string_equal(node->path, "a:iter0");
    assert_string_equal(node->alias, "a");
    assert_string_equal(node->status, "failed");
    assert_string_equal(node->error, "{\"message\":\"no\"}");
    assert_int_equal(node->children, 3);
    assert_int_equal(node->attempt, 2);
    assert_int_equal(node->duration_ms, 1500);
    assert_int_equal(node->iterations.total, 9);
    assert_int_equal(node->iterations.failed, 1);
    assert_string_equal(list->nodes[1].path, "b");
    assert_string_equal(list->nodes[1].alias, ""); /* absent */
    assert_string_equal(list->nodes[1].description, "tab\there");
    rv_node_list_free(list);
}

static void lists_in_lists_are_read(void **state)
{
    (void)state;
    struct rv__why_told *why = read_as(
        &rv__doc_why,
        "{\"status\":\"running\",\"waits\":[{\"reason\":\"signal\",\"nodes\":[{\"path\":\"a\"},"
        "{\"path\":\"b\"}]},{\"reason\":\"place\",\"nodes\":[]},{\"nodes\":[{\"path\":\"c\"}]}]}",
        0);
    assert_int_equal(why->count, 3);
    assert_int_equal(why->waits[0].node_count, 2);
    assert_string_equal(why->waits[0].nodes[1].path, "b");
    assert_string_equal(why->waits[1].reason, "place");
    assert_int_equal(why->waits[1].node_count, 0);
    assert_string_equal(why->waits[2].nodes[0].path, "c");
    rv__free(why);
}

static void a_head_is_zeros_before_the_struct(void **state)
{
    (void)state;
    char *mem = read_as(&rv__doc_run_detail, "{\"runId\":\"r-1\",\"status\":\"suspended\"}", 20);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(mem[i], 0);
    const rv_run_state *run = (const rv_run_state *)(void *)(mem + RV__DOCUMENT_AT(20));
    assert_string_equal(run->run_id, "r-1");
    assert_int_equal(run->status, RV_SUSPENDED);
    assert_string_equal(run->workflow, "");
    assert_string_equal(run->results, "");
    rv__free(mem);
}

/* Whatever a total is: a number that is no count is 0. */
static void numbers_that_are_no_counts_are_nothing(void **state)
{
    (void)state;
    static const struct row {
        const char *number;
        size_t total;
    } rows[] = {
        { "9223372036854775807", (size_t)INT64_MAX },
        { "9223372036854775808", 0 },
        { "1000000000000000000000000000000", 0 },
        { "1e308", 0 },
        { "-1", 0 },
        { "-9223372036854775808", 0 },
        { "0.5", 0 },
        { "\"7\"", 0 },
        { "null", 0 },
        { "[7]", 0 },
        { "{\"total\":7}", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[128];
        snprintf(json, sizeof json, "{\"total\":%s,\"nodes\":[{\"attempt\":%s}]}", rows[i].number,
                 rows[i].number);
        rv_node_list *list = read_as(&rv__doc_node_list, json, 0);
        if (list->total != rows[i].total)
            fail_msg("total %s is %zu", rows[i].number, list->total);
        assert_int_equal(list->nodes[0].attempt, 0); /* nor does it fit into an int */
        rv_node_list_free(list);
    }
}

static void what_has_another_type_is_empty(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "{}",
        "[]",
        "7",
        "\"nodes\"",
        "{\"nodes\":7}",
        "{\"nodes\":{\"path\":\"a\"}}",
        "{\"nodes\":null,\"total\":0}",
        "{\"nodes\\u0000\":[{}]}",
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        rv_node_list *list = read_as(&rv__doc_node_list, documents[i], 0);
        assert_int_equal(list->count, 0);
        rv_node_list_free(list);
    }
    rv_node_list *list = read_as(&rv__doc_node_list,
                                 "{\"nodes\":[7,null,\"a\",[{\"path\":\"x\"}],{\"path\":[],"
                                 "\"iterations\":3,\"module\":\"../x\",\"status\":{}}]}",
                                 0);
    assert_int_equal(list->count, 5);
    for (size_t i = 0; i < list->count; i++) {
        assert_string_equal(list->nodes[i].path, "");
        assert_string_equal(list->nodes[i].status, "");
        assert_string_equal(list->nodes[i].module, "");
        assert_int_equal(list->nodes[i].iterations.total, 0);
    }
    rv_node_list_free(list);
}

/* Names are printed unchanged; ids are used in paths, too. */
static void names_and_ids_cannot_move_the_cursor(void **state)
{
    (void)state;
    rv_run_list *list = read_as(&rv__doc_run_list,
                                "{\"runs\":[{\"runId\":\"a\\u001b[2J\",\"workflow\":\"w\\u001b[2J"
                                "\\n\\u0000\"},{\"runId\":\"\"},{\"runId\":\"fine\"}]}",
                                0);
    assert_string_equal(list->runs[0].run_id, "");
    assert_null(strpbrk(list->runs[0].workflow, "\x1b\n"));
    assert_string_equal(list->runs[1].run_id, "");
    assert_string_equal(list->runs[2].run_id, "fine");
    rv_run_list_free(list);
}

static void of_a_member_that_comes_twice_the_last_counts(void **state)
{
    (void)state;
    rv_node_list *list = read_as(&rv__doc_node_list,
                                 "{\"nodes\":[{\"path\":\"a\"},{\"path\":\"b\"}],\"total\":1,"
                                 "\"nodes\":[{\"path\":\"c\",\"path\":\"d\"}],\"total\":2}",
                                 0);
    assert_int_equal(list->count, 1);
    assert_int_equal(list->total, 2);
    assert_string_equal(list->nodes[0].path, "d");
    rv_node_list_free(list);
}

/* A record takes a hundred times the memory of its text, "1,". */
static void more_records_than_a_server_sends_are_refused(void **state)
{
    (void)state;
    struct rv__buf json;
    void *mem = NULL;
    rv_error err = { 0 };
    rv__buf_init(&json, SIZE_MAX / 8);
    rv__buf_text(&json, "{\"nodes\":[1");
    for (int i = 0; i < 100000; i++)
        rv__buf_text(&json, ",1");
    rv__buf_text(&json, "]}");
    assert_int_equal(rv__document_read(&rv__doc_node_list, rv__buf_view(&json), 0, &mem, &err),
                     RV_EPARSE);
    assert_non_null(strstr(err.message, "100001 records"));
    assert_null(mem);
    rv__buf_done(&json);
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    const char *json = "{\"nodes\":[{\"path\":\"\\u0061\\n\"},{\"path\":\"b\"}]}";
    int rc = RV_ENOMEM;
    for (int n = 0; rc != RV_OK; n++) {
        void *mem = NULL;
        rv__test_fail_alloc_after(n);
        rc = rv__document_read(&rv__doc_node_list, rv__str(json), 0, &mem, NULL);
        rv__test_fail_alloc_after(-1);
        assert_true(rc == RV_OK || (rc == RV_ENOMEM && mem == NULL));
        rv__free(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_become_fields),
        cmocka_unit_test(lists_in_lists_are_read),
        cmocka_unit_test(a_head_is_zeros_before_the_struct),
        cmocka_unit_test(numbers_that_are_no_counts_are_nothing),
        cmocka_unit_test(what_has_another_type_is_empty),
        cmocka_unit_test(names_and_ids_cannot_move_the_cursor),
        cmocka_unit_test(of_a_member_that_comes_twice_the_last_counts),
        cmocka_unit_test(more_records_than_a_server_sends_are_refused),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
