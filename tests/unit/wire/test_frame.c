/* test_frame.c: frames, whole, in pieces, and wrong. For src/wire/frame.c. */
#include "unit/test.h"

#include <sys/socket.h>
#include <unistd.h>

#include "wire/wire.h"

static void put_frame(struct rv__buf *out, const char *text)
{
    size_t start = rv__wire_begin(out, FRAME_LOG);
    rv__wire_text(out, "message", rv__str(text));
    rv__wire_int(out, "level", -7);
    rv__wire_json(out, "metadata", rv__str("{\"a\":[1,2]}"));
    rv__wire_end(out, start);
}

static void a_frame_comes_back_as_it_went(void **state)
{
    struct rv__frames frames;
    struct rv__frame frame;
    struct rv__buf out;
    struct rv__str has[4];
    (void)state;
    rv__frames_init(&frames);
    rv__buf_init(&out, 1 << 20);
    put_frame(&out, "first \"\n");
    put_frame(&out, "second");
    for (size_t i = 0; i < out.len; i++) /* a byte at a time */
        assert_int_equal(rv__frames_feed(&frames, (struct rv__str){ out.text + i, 1 }), RV_OK);
    assert_int_equal(rv__frames_next(&frames, &frame, NULL), 1);
    assert_int_equal(frame.type, FRAME_LOG);
    rv__frame_members(&frame, (const char *[]){ "message", "level", "metadata", "none" }, has, 4);
    assert_str(has[0], "\"first \\\"\\n\"");
    assert_str(has[1], "-7");
    assert_str(has[2], "{\"a\":[1,2]}");
    assert_true(rv__str_none(has[3]));
    assert_int_equal(rv__frames_next(&frames, &frame, NULL), 1);
    rv__frame_members(&frame, (const char *[]){ "message" }, has, 1);
    assert_str(has[0], "\"second\"");
    assert_int_equal(rv__frames_next(&frames, &frame, NULL), 0);
    assert_int_equal(frames.in.len, 0);
    rv__buf_done(&out);
    rv__frames_done(&frames);
}

static void what_is_no_frame_is_refused(void **state)
{
    static const struct {
        const char *says, *bytes;
        size_t len;
    } bad[] = {
        { "a length beyond the bound", "\xff\xff\xff\xff{}", 6 },
        { "a length of nothing", "\0\0\0\0", 4 },
        { "text that is not JSON", "\0\0\0\x02{]", 6 },
        { "JSON that is not an object", "\0\0\0\x02[]", 6 },
        { "an object without a type", "\0\0\0\x02{}", 6 },
        { "a type that nobody knows", "\0\0\0\x0f{\"type\":\"pong2\"}", 20 },
        { "a type that is a number", "\0\0\0\x0a{\"type\":1}", 14 },
        { "another protocol", "GET / HTTP/1.1\r\n", 16 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rv__frames frames;
        struct rv__frame frame;
        rv_error err;
        rv__frames_init(&frames);
        assert_int_equal(rv__frames_feed(&frames, (struct rv__str){ bad[i].bytes, bad[i].len }),
                         RV_OK);
        if (rv__frames_next(&frames, &frame, &err) != RV_EPARSE)
            fail_msg("taken: %s", bad[i].says);
        assert_non_null(strstr(err.message, "not a frame"));
        rv__frames_done(&frames);
    }
}

static void every_type_has_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < FRAME_TYPES; i++) {
        struct rv__frames frames;
        struct rv__frame frame;
        struct rv__buf out;
        rv__frames_init(&frames);
        rv__buf_init(&out, 1 << 10);
        rv__wire_end(&out, rv__wire_begin(&out, (enum rv__frame_type)i));
        rv__frames_feed(&frames, rv__buf_view(&out));
        assert_int_equal(rv__frames_next(&frames, &frame, NULL), 1);
        assert_int_equal(frame.type, i);
        rv__buf_done(&out);
        rv__frames_done(&frames);
    }
}

static int write_and_read(void)
{
    struct rv__frames frames;
    struct rv__frame frame;
    struct rv__buf out;
    rv__frames_init(&frames);
    rv__buf_init(&out, 1 << 20);
    put_frame(&out, "x");
    int rc = rv__buf_err(&out, NULL);
    if (rc == RV_OK)
        rc = rv__frames_feed(&frames, rv__buf_view(&out));
    if (rc == RV_OK)
        rc = rv__frames_next(&frames, &frame, NULL);
    rv__buf_done(&out);
    rv__frames_done(&frames);
    return rc;
}

static void no_memory_is_told(void **state)
{
    int rc;
    (void)state;
    TORTURE(rc, write_and_read(), (void)0);
    assert_int_equal(rc, 1);
}

static void they_cross_a_socket(void **state)
{
    int pair[2];
    struct rv__frames frames;
    struct rv__frame frame;
    struct rv__buf out;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    rv__frames_init(&frames);
    rv__buf_init(&out, 1 << 20);
    put_frame(&out, "over");
    assert_int_equal(rv__frames_read(&frames, pair[1]), 0);
    assert_int_equal(rv__frames_send(pair[0], &out), RV_OK);
    assert_int_equal(rv__frames_read(&frames, pair[1]), 1);
    assert_int_equal(rv__frames_next(&frames, &frame, NULL), 1);
    close(pair[0]);
    assert_int_equal(rv__frames_read(&frames, pair[1]), RV_ECLOSED);
    assert_int_equal(rv__frames_send(pair[1], &out), RV_ECLOSED); /* and no SIGPIPE */
    close(pair[1]);
    rv__buf_done(&out);
    rv__frames_done(&frames);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_comes_back_as_it_went),
        cmocka_unit_test(what_is_no_frame_is_refused),
        cmocka_unit_test(every_type_has_its_name),
        cmocka_unit_test(no_memory_is_told),
        cmocka_unit_test(they_cross_a_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
