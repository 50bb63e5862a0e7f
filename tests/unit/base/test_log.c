/* test_log.c: for src/base/log.c. Also run under the thread sanitizer. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/log.h"

/* Stands before libc's: counts the writes to `meddle.fd`, and meddles with them. */
static struct {
    int fd;
    int writes;
    int interruptions; /* so many end with EINTR first */
    size_t at_most;    /* bytes a write takes; 0 = all */
    int then_error;    /* after a short one: fail with this */
    bool was_short;
} meddle;

ssize_t write(int fd, const void *bytes, size_t size)
{
    if (fd != 0 && fd == meddle.fd) {
        meddle.writes++;
        if (meddle.interruptions > 0 || (meddle.was_short && meddle.then_error)) {
            errno = meddle.interruptions > 0 ? EINTR : meddle.then_error;
            meddle.interruptions--;
            return -1;
        }
        if (meddle.at_most > 0 && meddle.at_most < size) {
            size = meddle.at_most;
            meddle.was_short = true;
        }
    }
    return syscall(SYS_write, fd, bytes, size);
}

struct fixture {
    struct rv__virtual_clock clock;
    struct rv__log *log;
    int fd; /* a file in memory that the log goes to */
    char text[4 * RV__LOG_MAX_LINE];
};

static int setup(void **state)
{
    static struct fixture fx;
    *state = &fx;
    rv__virtual_clock_init(&fx.clock, INT64_C(1794770108123));
    fx.log = NULL;
    memset(&meddle, 0, sizeof meddle);
    fx.fd = memfd_create("log", MFD_CLOEXEC);
    return fx.fd < 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    memset(&meddle, 0, sizeof meddle);
    rv__log_free(fx->log);
    close(fx->fd);
    return 0;
}

static void open_log(struct fixture *fx, enum rv__log_format format)
{
    struct rv__log_opts opts = { .fd = fx->fd, .format = format, .clock = &fx->clock.clock };
    rv__log_free(fx->log);
    fx->log = NULL;
    assert_int_equal(rv__log_new(&opts, &fx->log, NULL), RV_OK);
}

/* All that was written since the last call. */
static const char *written(struct fixture *fx)
{
    ssize_t n = pread(fx->fd, fx->text, sizeof fx->text - 1, 0);
    assert_true(n >= 0);
    fx->text[n] = '\0';
    assert_int_equal(ftruncate(fx->fd, 0), 0);
    assert_int_equal(lseek(fx->fd, 0, SEEK_SET), 0);
    return fx->text;
}

static void a_line_is_json_or_text(void **state)
{
    struct fixture *fx = *state;
    open_log(fx, RV__LOG_JSON);
    rv__log(fx->log, RV__LOG_WARN, "step failed", RV__LOG_STR("run", "x1"),
            RV__LOG_INT("attempt", -2), RV__LOG_BOOL("last", true), RV__LOG_STR("why", NULL),
            RV__LOG_VIEW("node", ((struct rv__str){ "abcdef", 3 })));
    assert_string_equal(written(fx),
                        "{\"time\":\"2026-11-15T19:15:08.123Z\",\"level\":\"warn\","
                        "\"message\":\"step failed\",\"run\":\"x1\",\"attempt\":-2,\"last\":true,"
                        "\"why\":null,\"node\":\"abc\"}\n");
    open_log(fx, RV__LOG_TEXT);
    rv__virtual_clock_advance(&fx->clock, 1000);
    rv__log(fx->log, RV__LOG_INFO, "message", RV__LOG_STR("run", "abc"), RV__LOG_INT("ms", 5),
            RV__LOG_BOOL("ok", false), RV__LOG_STR("none", NULL));
    rv__log(fx->log, RV__LOG_ERROR, "alone");
    assert_string_equal(written(fx), "19:15:09.123 INFO  message  run=abc ms=5 ok=false none=null\n"
                                     "19:15:09.123 ERROR alone\n");
}

static void values_are_quoted_where_they_would_be_misread(void **state)
{
    struct fixture *fx = *state;
    open_log(fx, RV__LOG_TEXT);
    rv__log(fx->log, RV__LOG_INFO, "m", RV__LOG_STR("a", "two words"), RV__LOG_STR("b", ""),
            RV__LOG_STR("c", "x=1"), RV__LOG_STR("d", "say \"hi\""), RV__LOG_STR("e", "a\\b"),
            RV__LOG_STR("f", "\xC3\xA9t\xC3\xA9"), RV__LOG_STR("g", "\"q\""));
    assert_string_equal(written(fx), "19:15:08.123 INFO  m  a=\"two words\" b=\"\" c=\"x=1\" "
                                     "d=\"say \\\"hi\\\"\" e=a\\b f=\xC3\xA9t\xC3\xA9 "
                                     "g=\"\\\"q\\\"\"\n");
}

/* Every control character, C1 among them, and the ones that reorder text, in every place. */
static void nothing_from_outside_drives_the_terminal_or_adds_a_line(void **state)
{
    struct fixture *fx = *state;
    static const char *const bad[] = {
        "a\nb",
        "a\rb",
        "a\x1b[31mb",
        "a\x7f"
        "b",
        "a\xC2\x9B"
        "31mb",
        "a\xC2\x85"
        "b",
        "a\xE2\x80\xAE"
        "b",
        "a\xE2\x81\xA6"
        "b",
        "a\xE2\x80\xA8"
        "b",
        "a\x9B"
        "31mb",
        "a\xFF"
        "b",
        "a\tb",
        "a\bb",
        "\xE2\x80",
        "\xC3",
        "a\x01"
        "b",
    };
    const enum rv__log_format formats[] = { RV__LOG_TEXT, RV__LOG_JSON };
    for (int f = 0; f < 2; f++) {
        open_log(fx, formats[f]);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            rv__log(fx->log, RV__LOG_INFO, bad[i], RV__LOG_STR("v", bad[i]));
            const char *line = written(fx);
            size_t len = strlen(line);
            assert_true(len > 0 && line[len - 1] == '\n');
            for (size_t at = 0; at + 1 < len; at++) {
                unsigned char c = (unsigned char)line[at], next = (unsigned char)line[at + 1];
                if (c < 0x20 || c == 0x7F || (c == 0xC2 && next < 0xA0))
                    fail_msg("row %zu, format %d: byte %d at %zu", i, f, c, at);
            }
            assert_true(rv__str_utf8((struct rv__str){ line, len }));
            assert_null(strstr(line, "\xE2\x80\xAE"));
            assert_null(strstr(line, "\xE2\x80\xA8"));
            assert_null(strstr(line, "\xE2\x81\xA6"));
        }
    }
    open_log(fx, RV__LOG_TEXT);
    rv__log(fx->log, RV__LOG_INFO, "x", RV__LOG_STR("v", "a\x1b[2Jb\n"));
    assert_string_equal(written(fx), "19:15:08.123 INFO  x  v=\"a\\u001b[2Jb\\n\"\n");
}

static json_t *parse_line(struct fixture *fx)
{
    const char *line = written(fx);
    json_t *json = json_loads(line, 0, NULL);
    if (json == NULL)
        fail_msg("not JSON: %s", line);
    assert_true(strlen(line) <= RV__LOG_MAX_LINE);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    return json;
}

static void a_long_value_is_cut_between_characters(void **state)
{
    struct fixture *fx = *state;
    char text[3001] = "x";
    for (size_t i = 1; i + 2 <= 3000; i += 2)
        memcpy(text + i, "\xC3\xA9", 3);
    open_log(fx, RV__LOG_JSON);
    rv__log(fx->log, RV__LOG_INFO, "m", RV__LOG_STR("v", text));
    json_t *json = parse_line(fx);
    const char *v = json_string_value(json_object_get(json, "v"));
    assert_int_equal(strlen(v), 2047 + 3); /* the next would have been the 2049th byte */
    assert_memory_equal(v, text, 2047);
    assert_string_equal(v + 2047, "\xE2\x80\xA6");
    assert_null(json_object_get(json, "cut"));
    json_decref(json);

    text[RV__LOG_MAX_VALUE - 1] = 'x'; /* exactly at the bound: whole */
    text[RV__LOG_MAX_VALUE] = '\0';
    rv__log(fx->log, RV__LOG_INFO, "m", RV__LOG_STR("v", text));
    json = parse_line(fx);
    assert_string_equal(json_string_value(json_object_get(json, "v")), text);
    json_decref(json);
}

static void a_long_line_is_cut_between_fields_and_says_so(void **state)
{
    struct fixture *fx = *state;
    char ugly[3000]; /* each byte takes six in JSON */
    memset(ugly, '\x01', sizeof ugly - 1);
    ugly[sizeof ugly - 1] = '\0';
    open_log(fx, RV__LOG_JSON);
    rv__log(fx->log, RV__LOG_INFO, ugly, RV__LOG_INT("small", 1), RV__LOG_STR("big", ugly),
            RV__LOG_INT("after", 2));
    json_t *json = parse_line(fx);
    assert_int_equal(json_integer_value(json_object_get(json, "small")), 1);
    assert_null(json_object_get(json, "big"));
    assert_null(json_object_get(json, "after"));
    assert_true(json_is_true(json_object_get(json, "cut")));
    json_decref(json);

    open_log(fx, RV__LOG_TEXT);
    rv__log(fx->log, RV__LOG_INFO, ugly, RV__LOG_INT("small", 1), RV__LOG_STR("big", ugly));
    const char *line = written(fx);
    assert_true(strlen(line) <= RV__LOG_MAX_LINE);
    assert_string_equal(line + strlen(line) - strlen("  small=1 (cut)\n"), "  small=1 (cut)\n");
}

/* Lines of every length around the bound: none longer, each of them JSON. */
static void the_bound_of_a_line_is_kept_at_every_length(void **state)
{
    struct fixture *fx = *state;
    char text[2100];
    memset(text, 'x', sizeof text);
    open_log(fx, RV__LOG_JSON);
    size_t most = 0;
    for (size_t len = 1900; len < 2048; len++) {
        struct rv__log_field fields[8];
        for (int i = 0; i < 8; i++)
            fields[i] = RV__LOG_VIEW("k", ((struct rv__str){ text, len }));
        rv__log_write(fx->log, RV__LOG_INFO, "m", fields, 8);
        json_decref(parse_line(fx));
        size_t size = strlen(fx->text);
        most = size > most ? size : most;
    }
    assert_true(most > RV__LOG_MAX_LINE - 100);
}

static int evaluations;
static int64_t evaluate(void)
{
    return ++evaluations;
}

static void what_is_below_the_level_costs_nothing(void **state)
{
    struct fixture *fx = *state;
    evaluations = 0;
    rv__log(NULL, RV__LOG_ERROR, "nobody listens", RV__LOG_INT("n", evaluate()));
    rv__log_write(NULL, RV__LOG_ERROR, "nobody listens", NULL, 0);
    assert_int_equal(rv__log_dropped(NULL), 0);
    open_log(fx, RV__LOG_TEXT);
    rv__log(fx->log, RV__LOG_DEBUG, "not by default", RV__LOG_INT("n", evaluate()));
    rv__log_write(fx->log, RV__LOG_DEBUG, "not by default", NULL, 0);
    assert_int_equal(evaluations, 0);
    assert_string_equal(written(fx), "");
    assert_false(rv__log_on(NULL, RV__LOG_ERROR));
    assert_true(rv__log_on(fx->log, RV__LOG_INFO));

    rv__log_free(fx->log);
    fx->log = NULL;
    struct rv__log_opts opts = {
        .fd = fx->fd, .level = RV__LOG_DEBUG, .format = RV__LOG_TEXT, .clock = &fx->clock.clock
    };
    assert_int_equal(rv__log_new(&opts, &fx->log, NULL), RV_OK);
    rv__log(fx->log, RV__LOG_DEBUG, "but if asked", RV__LOG_INT("n", evaluate()));
    assert_string_equal(written(fx), "19:15:08.123 DEBUG but if asked  n=1\n");
}

/* A terminal hands its bytes over when it pleases: one write may take several reads. */
static void read_line(int fd, char *line, size_t size)
{
    size_t length = 0;
    while (length + 1 < size && !memchr(line, '\n', length)) {
        ssize_t got = read(fd, line + length, size - 1 - length);
        assert_true(got > 0);
        length += (size_t)got;
    }
    line[length] = '\0';
}

static void a_file_gets_json_and_a_terminal_text(void **state)
{
    struct fixture *fx = *state;
    open_log(fx, RV__LOG_AUTO);
    rv__log(fx->log, RV__LOG_INFO, "m");
    assert_int_equal(written(fx)[0], '{');

    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        skip();
    static const struct {
        const char *no_color, *term;
        enum rv__log_colour colour;
        bool coloured;
    } rows[] = {
        { NULL, "xterm", RV__LOG_COLOUR_AUTO, true }, { "1", "xterm", RV__LOG_COLOUR_AUTO, false },
        { "", NULL, RV__LOG_COLOUR_AUTO, true },      { NULL, "dumb", RV__LOG_COLOUR_AUTO, false },
        { NULL, "xterm", RV__LOG_COLOUR_OFF, false }, { "1", "xterm", RV__LOG_COLOUR_ON, true },
    };
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rows[i].no_color ? setenv("NO_COLOR", rows[i].no_color, 1) : unsetenv("NO_COLOR");
        rows[i].term ? setenv("TERM", rows[i].term, 1) : unsetenv("TERM");
        struct rv__log_opts opts = { .fd = terminal,
                                     .clock = &fx->clock.clock,
                                     .colour = rows[i].colour };
        struct rv__log *log = NULL;
        char line[200] = "";
        assert_int_equal(rv__log_new(&opts, &log, NULL), RV_OK);
        rv__log(log, RV__LOG_INFO, "hello");
        rv__log_free(log);
        read_line(master, line, sizeof line);
        assert_string_equal(line, rows[i].coloured ? "19:15:08.123 \x1b[32mINFO \x1b[0m hello\r\n"
                                                   : "19:15:08.123 INFO  hello\r\n");
    }
    close(terminal);
    close(master);
}

static void a_line_is_one_write_and_survives_signals_and_short_writes(void **state)
{
    struct fixture *fx = *state;
    open_log(fx, RV__LOG_TEXT);
    meddle.fd = fx->fd;
    rv__log(fx->log, RV__LOG_INFO, "one", RV__LOG_INT("n", 1));
    assert_int_equal(meddle.writes, 1);
    meddle.interruptions = 3;
    rv__log(fx->log, RV__LOG_INFO, "two");
    meddle.at_most = 7;
    rv__log(fx->log, RV__LOG_INFO, "three");
    assert_string_equal(written(fx), "19:15:08.123 INFO  one  n=1\n19:15:08.123 INFO  two\n"
                                     "19:15:08.123 INFO  three\n");
    assert_int_equal(rv__log_dropped(fx->log), 0);
}

static void a_line_torn_by_an_error_does_not_spoil_the_next(void **state)
{
    struct fixture *fx = *state;
    open_log(fx, RV__LOG_TEXT);
    meddle.fd = fx->fd;
    meddle.at_most = 8;
    meddle.then_error = ENOSPC;
    errno = 77;
    rv__log(fx->log, RV__LOG_INFO, "torn"); /* 8 bytes, then no space */
    rv__log(fx->log, RV__LOG_INFO, "lost"); /* nothing at all */
    assert_int_equal(errno, 77);
    assert_int_equal(rv__log_dropped(fx->log), 2);
    memset(&meddle, 0, sizeof meddle);
    rv__log(fx->log, RV__LOG_INFO, "whole");
    rv__log(fx->log, RV__LOG_INFO, "again");
    assert_string_equal(written(fx),
                        "19:15:08\n19:15:08.123 INFO  whole\n19:15:08.123 INFO  again\n");
    assert_int_equal(rv__log_dropped(fx->log), 2);
}

static void a_reader_that_went_away_is_not_fatal(void **state)
{
    struct fixture *fx = *state;
    int ends[2];
    sigset_t pending;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    struct rv__log_opts opts = { .fd = ends[1], .clock = &fx->clock.clock };
    assert_int_equal(rv__log_new(&opts, &fx->log, NULL), RV_OK);
    for (int i = 0; i < 3; i++)
        rv__log(fx->log, RV__LOG_INFO, "anybody?");
    assert_int_equal(rv__log_dropped(fx->log), 3);
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    close(ends[1]);
    rv__log(fx->log, RV__LOG_INFO, "no such descriptor");
    assert_int_equal(rv__log_dropped(fx->log), 4);
}

static void a_signal_that_was_pending_before_stays_so(void **state)
{
    struct fixture *fx = *state;
    int ends[2];
    sigset_t sigpipe, old, pending;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    struct rv__log_opts opts = { .fd = ends[1], .clock = &fx->clock.clock };
    assert_int_equal(rv__log_new(&opts, &fx->log, NULL), RV_OK);
    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, &old);
    raise(SIGPIPE);
    rv__log(fx->log, RV__LOG_INFO, "anybody?");
    sigpending(&pending);
    int still = sigismember(&pending, SIGPIPE);
    int number = 0;
    if (still)
        sigwait(&sigpipe, &number);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    close(ends[1]);
    assert_int_equal(still, 1);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct rv__log *log = NULL;
    rv_error err = { 0 };
    assert_int_equal(rv__log_new(&(struct rv__log_opts){ .fd = -1 }, &log, &err), RV_EINVAL);
    assert_string_equal(err.message, "log: -1 is no file descriptor");
    assert_int_equal(rv__log_new(&(struct rv__log_opts){ .level = 9 }, &log, &err), RV_EINVAL);
    assert_int_equal(rv__log_new(&(struct rv__log_opts){ .format = 3 }, &log, &err), RV_EINVAL);
    assert_int_equal(rv__log_new(&(struct rv__log_opts){ .colour = 3 }, &log, NULL), RV_EINVAL);
    assert_null(log);
    assert_int_equal(rv__log_new(NULL, &log, &err), RV_OK);
    assert_true(rv__log_on(log, RV__LOG_INFO));
    assert_false(rv__log_on(log, RV__LOG_DEBUG));
    rv__log_free(log);
    rv__log_free(NULL);
}

static void logging_needs_no_memory_once_the_log_is_open(void **state)
{
    struct fixture *fx = *state;
    struct rv__log_opts opts = { .fd = fx->fd, .clock = &fx->clock.clock };
    char text[3000];
    int rc;
    memset(text, '"', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    TORTURE(rc, rv__log_new(&opts, &fx->log, NULL), assert_null(fx->log));
    assert_int_equal(rc, RV_OK);
    rv__test_fail_alloc_after(0);
    for (int i = 0; i < 3; i++)
        rv__log(fx->log, RV__LOG_INFO, text, RV__LOG_STR("a", text), RV__LOG_STR("b", text),
                RV__LOG_STR("c", text), RV__LOG_STR("d", text));
    int asked = rv__test_alloc_failed();
    rv__test_fail_alloc_after(-1);
    assert_false(asked);
    assert_true(strlen(written(fx)) > 3 * (RV__LOG_MAX_LINE - 2 * RV__LOG_MAX_VALUE - 200));
}

enum { WRITERS = 4, LINES = 2000 };

static void *write_lines(void *arg)
{
    struct rv__log *log = arg;
    for (int i = 0; i < LINES; i++)
        rv__log(log, RV__LOG_INFO, "from a thread", RV__LOG_INT("n", i), RV__LOG_STR("s", "a b"));
    return NULL;
}

static void threads_do_not_mix_their_lines(void **state)
{
    struct fixture *fx = *state;
    pthread_t threads[WRITERS];
    int seen[LINES] = { 0 };
    open_log(fx, RV__LOG_JSON);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, fx->log), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);

    assert_int_equal(lseek(fx->fd, 0, SEEK_SET), 0);
    FILE *file = fdopen(dup(fx->fd), "r");
    char line[300];
    int lines = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        json_t *json = json_loads(line, 0, NULL);
        if (json == NULL)
            fail_msg("mixed: %s", line);
        seen[json_integer_value(json_object_get(json, "n"))]++;
        json_decref(json);
        lines++;
    }
    fclose(file);
    assert_int_equal(lines, WRITERS * LINES);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(seen[i], WRITERS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_line_is_json_or_text),
        TEST(values_are_quoted_where_they_would_be_misread),
        TEST(nothing_from_outside_drives_the_terminal_or_adds_a_line),
        TEST(a_long_value_is_cut_between_characters),
        TEST(a_long_line_is_cut_between_fields_and_says_so),
        TEST(the_bound_of_a_line_is_kept_at_every_length),
        TEST(what_is_below_the_level_costs_nothing),
        TEST(a_file_gets_json_and_a_terminal_text),
        TEST(a_line_is_one_write_and_survives_signals_and_short_writes),
        TEST(a_line_torn_by_an_error_does_not_spoil_the_next),
        TEST(a_reader_that_went_away_is_not_fatal),
        TEST(a_signal_that_was_pending_before_stays_so),
        TEST(options_that_make_no_sense_are_refused),
        TEST(logging_needs_no_memory_once_the_log_is_open),
        TEST(threads_do_not_mix_their_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
