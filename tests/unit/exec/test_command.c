/* test_command.c: real programs on the I/O loop. For src/exec/io.c, command.c, process.c, spawn.c and
 * warden.c. Also run under the thread sanitizer. */
#include "unit/test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/exec.h"
#include "exec/lines.h"

enum { PATIENCE_MS = 60000, MANY = 200 };
enum {
    GONE_MS = 3000
}; /* after the engine's death; 10 on an idle machine, and others may be busy */

/* Stands before libc's, so that a test can have it fail. */
static atomic_int pipe_failures, pipe_calls;
int pipe2(int ends[2], int flags)
{
    int (*real)(int[2], int);
    atomic_fetch_add(&pipe_calls, 1);
    int left = atomic_load(&pipe_failures);
    while (left > 0 && !atomic_compare_exchange_weak(&pipe_failures, &left, left - 1))
        ;
    if (left > 0) {
        errno = EMFILE;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "pipe2");
    return real(ends, flags);
}

static struct rv__io *io;
static char temp_dir[] = "/tmp/rival-test-XXXXXX";

/* Everything about one command, kept after its result is gone. */
struct run {
    struct rv__command command; /* first */
    const char *argv[8];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done, lines, begun;
    char first_line[64];
    size_t longest_line;
    const char *kill_on; /* a line that makes us cancel it */
    long fail_after;     /* for rv__test_fail_alloc_after() on the loop's thread, when it is done */
    struct rv__command_result result;
    char *output, *tail, *control;
};

static char *copy(struct rv__str s)
{
    char *text = malloc(s.len + 1);
    if (text == NULL)
        abort();
    memcpy(text, s.at, s.len);
    text[s.len] = '\0';
    return text;
}

static void on_line(struct rv__command *command, struct rv__str line)
{
    struct run *run = (struct run *)command;
    pthread_mutex_lock(&run->lock);
    if (run->lines++ == 0)
        snprintf(run->first_line, sizeof run->first_line, "%.*s", RV__ARG(line));
    if (line.len > run->longest_line)
        run->longest_line = line.len;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    if (run->kill_on != NULL && rv__str_is(line, run->kill_on))
        rv__command_kill(io, command, RV__KILL_CANCEL);
}

static void on_begun(struct rv__command *command)
{
    struct run *run = (struct run *)command;
    pthread_mutex_lock(&run->lock);
    run->begun += run->done == 0 ? 1 : 100; /* not after its end */
    pthread_mutex_unlock(&run->lock);
}

static void on_done(struct rv__command *command, const struct rv__command_result *result)
{
    struct run *run = (struct run *)command;
    pthread_mutex_lock(&run->lock);
    run->result = *result;
    run->output = copy(result->output);
    run->tail = copy(result->tail);
    run->control = copy(result->control);
    run->result.output.at = run->output;
    run->result.tail.at = run->tail;
    run->result.control.at = run->control;
    run->done++;
    rv__test_fail_alloc_after(run->fail_after);
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

static void run_init(struct run *run, const char *a, const char *b, const char *c)
{
    *run = (struct run){ .argv = { a, b, c },
                         .fail_after = -1,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER };
    run->command.stderr_line = on_line;
    run->command.begun = on_begun;
    run->command.done = on_done;
    run->command.argv = run->argv;
}

static void run_await_lines(struct run *run, int lines)
{
    pthread_mutex_lock(&run->lock);
    while (run->lines < lines && run->done == 0)
        pthread_cond_wait(&run->changed, &run->lock);
    pthread_mutex_unlock(&run->lock);
}

static const struct rv__command_result *run_wait(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    while (run->done == 0)
        pthread_cond_wait(&run->changed, &run->lock);
    pthread_mutex_unlock(&run->lock);
    return &run->result;
}

static void run_done(struct run *run)
{
    free(run->output);
    free(run->tail);
    free(run->control);
    run->output = run->tail = run->control = NULL;
}

static struct run
    run; /* static: a failed assertion jumps out of the function, and it must live on */

static const struct rv__command_result *sh(const char *script)
{
    run_done(&run);
    run_init(&run, "sh", "-c", script);
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    return run_wait(&run);
}

static int setup(void **state)
{
    (void)state;
    if (mkdtemp(temp_dir) == NULL)
        return -1;
    return rv__io_new(&(struct rv__io_opts){ .max_processes = 20, .temp_dir = temp_dir }, &io,
                      NULL);
}

static int entries(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        closedir(dir);
    return n - 2;
}

static int teardown(void **state)
{
    (void)state;
    rv__test_fail_alloc_after(-1);
    rv__io_free(io);
    io = NULL;
    run_done(&run);
    int left = entries(temp_dir);
    rmdir(temp_dir);
    memcpy(temp_dir + sizeof temp_dir - 7, "XXXXXX", 6);
    return left; /* nothing stays behind, whatever the test did */
}

/* ------------------------------------------------------------------------------------------ */

static void stdout_stderr_and_the_exit_code_come_back(void **state)
{
    (void)state;
    const struct rv__command_result *r = sh("echo out; echo one >&2; echo two >&2; exit 3");
    assert_int_equal(r->end, RV__COMMAND_EXITED);
    assert_int_equal(r->status, 3);
    assert_int_equal(r->error.code, 0);
    assert_str(r->output, "out\n");
    assert_str(r->tail, "one\ntwo");
    assert_str(r->control, "");
    assert_int_equal(run.lines, 2);
    assert_string_equal(run.first_line, "one");
    assert_int_equal(run.done, 1);
}

static void a_signal_is_told_from_an_exit_code(void **state)
{
    (void)state;
    const struct rv__command_result *r = sh("kill -SEGV $$");
    assert_int_equal(r->end, RV__COMMAND_SIGNAL);
    assert_int_equal(r->status, SIGSEGV);
    assert_int_equal(sh("exit 127")->status, 127);
    assert_int_equal(run.result.end, RV__COMMAND_EXITED);
}

static void a_program_that_cannot_be_run_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *argv0, *cwd;
        int code;
        const char *says;
    } rows[] = {
        { "no-such-program", NULL, RV_ENOTFOUND, "no such program in PATH" },
        { "./no-such-file", NULL, RV_ENOTFOUND, "no such file" },
        { "/etc/passwd", NULL, RV_ESYS, "permission denied (is it executable?)" },
        { "/bin", NULL, RV_ESYS, "permission denied" },
        { "", NULL, RV_ENOTFOUND, "cannot run ''" },
        { "true", "/no/such/place", RV_ESYS, "in the directory '/no/such/place'" },
        { "true", "/etc/passwd", RV_ESYS, "Not a directory" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_done(&run);
        run_init(&run, rows[i].argv0, NULL, NULL);
        run.command.cwd = rows[i].cwd;
        assert_int_equal(rv__command_start(io, &run.command), RV_OK);
        const struct rv__command_result *r = run_wait(&run);
        assert_int_equal(r->end, RV__COMMAND_NOT_RUN);
        if (r->error.code != rows[i].code || strstr(r->error.message, rows[i].says) == NULL)
            fail_msg("'%s': %d, %s", rows[i].argv0, r->error.code, r->error.message);
    }
}

static void a_script_without_a_first_line_is_told_so(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "%s/script", temp_dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_int_equal(write(fd, "echo hi\n", 8), 8);
    close(fd);
    run_init(&run, "./script", NULL, NULL);
    run.command.cwd = temp_dir; /* what is relative is relative to that */
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    const char *said = run_wait(&run)->error.message;
    unlink(path);
    assert_non_null(strstr(said, "#!"));
}

static void a_command_without_a_program_is_refused(void **state)
{
    (void)state;
    run_init(&run, NULL, NULL, NULL);
    assert_int_equal(rv__command_start(io, &run.command), RV_EINVAL);
    run_init(&run, "true", NULL, NULL);
    run.command.done = NULL;
    assert_int_equal(rv__command_start(io, &run.command), RV_EINVAL);
}

static void the_environment_is_inherited_and_what_is_given_wins(void **state)
{
    (void)state;
    static const char *const env[] = { "HOME=/given", "RIVAL_STEP=s", "RIVAL_CONTROL=/not/this",
                                       NULL };
    run_init(&run, "sh", "-c",
             "echo $HOME:$RIVAL_STEP:$RIVAL_TEST; env | grep -c ^HOME; echo $RIVAL_CONTROL");
    run.command.env = env;
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    const struct rv__command_result *r = run_wait(&run);
    char expected[128];
    int n = snprintf(expected, sizeof expected, "/given:s:inherited\n1\n%s/rival-", temp_dir);
    if (strncmp(r->output.at, expected, (size_t)n) != 0)
        fail_msg("got '%s'", r->output.at);
}

static void path_is_taken_from_the_environment_it_gets(void **state)
{
    (void)state;
    static const char *const env[] = { "PATH=/nowhere::/etc/passwd", NULL };
    run_init(&run, "sh", "-c", "exit 0");
    run.command.env = env;
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    assert_int_equal(run_wait(&run)->error.code, RV_ENOTFOUND);
    run_done(&run);
    run_init(&run, "sh", "-c", "exit 0");
    run.command.env = env;
    run.command.cwd = "/bin"; /* the empty place in PATH */
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    assert_int_equal(run_wait(&run)->end, RV__COMMAND_EXITED);
}

/* A host program may have anything: a handler, an ignored signal, a blocked one, open descriptors. */
static void nothing_of_ours_reaches_the_child(void **state)
{
    (void)state;
    int leak = open("/dev/null", O_RDONLY); /* NOLINT(android-cloexec-open): that is the point */
    signal(SIGPIPE, SIG_IGN);
    const struct rv__command_result *r = sh("grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d "
                                            "'\\n\\t'; ls /proc/self/fd | tr '\\n' ' '");
    signal(SIGPIPE, SIG_DFL);
    close(leak);
    assert_str(r->output, "SigBlk:0000000000000000SigIgn:0000000000000000"
                          "0 1 2 3 "); /* 3 is of ls itself */
}

static void the_host_keeps_its_signals(void **state)
{
    (void)state;
    sigset_t mask;
    struct sigaction action;
    assert_int_equal(sh("true")->status, 0);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
    sigaction(SIGCHLD, NULL, &action);
    assert_true(action.sa_handler == SIG_DFL);
    sigaction(SIGPIPE, NULL, &action);
    assert_true(action.sa_handler == SIG_DFL);
}

/* ------------------------------------------------------------------------ input and output --- */

static void stdin_is_written_whole_however_long(void **state)
{
    (void)state;
    size_t len = 3u << 20;
    char *text = malloc(len);
    assert_non_null(text);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + i % 23);
    run_init(&run, "cat", NULL, NULL);
    run.command.input = (struct rv__str){ text, len };
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    const struct rv__command_result *r = run_wait(&run);
    bool same = r->output.len == len && memcmp(r->output.at, text, len) == 0;
    free(text);
    assert_true(same);
}

static void a_child_that_does_not_read_is_no_error(void **state)
{
    (void)state;
    static char text[1 << 20];
    memset(text, 'x', sizeof text);
    const char *const scripts[] = { "exec <&-; echo fine", "read -r l; echo fine", "echo fine" };
    for (size_t i = 0; i < 3; i++) {
        run_done(&run);
        run_init(&run, "sh", "-c", scripts[i]);
        run.command.input = (struct rv__str){ text, i == 1 ? 6 : sizeof text };
        if (i == 1)
            text[5] = '\n';
        assert_int_equal(rv__command_start(io, &run.command), RV_OK);
        const struct rv__command_result *r = run_wait(&run);
        assert_int_equal(r->error.code, 0);
        assert_str(r->output, "fine\n");
    }
}

static void no_stdin_is_an_empty_one(void **state)
{
    (void)state;
    assert_str(sh("cat; echo end; readlink /proc/self/fd/0")->output, "end\n/dev/null\n");
}

static void nul_bytes_pass_through(void **state)
{
    (void)state;
    static const char bytes[] = { 'a', 0, 'b', 0 };
    run_init(&run, "cat", NULL, NULL);
    run.command.input = (struct rv__str){ bytes, sizeof bytes };
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    const struct rv__command_result *r = run_wait(&run);
    assert_int_equal(r->output.len, sizeof bytes);
    assert_memory_equal(r->output.at, bytes, sizeof bytes);
}

static void too_much_stdout_ends_the_command(void **state)
{
    (void)state;
    run_init(&run, "sh", "-c", "yes");
    run.command.max_output = 100000;
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    const struct rv__command_result *r = run_wait(&run);
    assert_int_equal(r->error.code, RV_ETOOBIG);
    assert_non_null(strstr(r->error.message, "more than 100000 bytes"));
    assert_int_equal(r->end, RV__COMMAND_SIGNAL);
    assert_int_equal(r->killed, RV__KILL_NONE);
    assert_true(r->output.len <= 100000);
    /* exactly the limit is fine */
    run_done(&run);
    run_init(&run, "sh", "-c", "head -c 100000 /dev/zero");
    run.command.max_output = 100000;
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    assert_int_equal(run_wait(&run)->error.code, 0);
    assert_int_equal(run.result.output.len, 100000);
}

static void long_lines_are_cut_and_the_tail_holds_whole_lines(void **state)
{
    (void)state;
    const struct rv__command_result *r = sh(
        "head -c 100000 /dev/zero | tr '\\0' x >&2; echo >&2; seq 1 3000 >&2; printf last >&2");
    assert_int_equal(run.lines, 3002);
    assert_int_equal(run.longest_line, RV__COMMAND_LINE + strlen("…"));
    assert_true(r->tail.len <= RV__COMMAND_TAIL && r->tail.len > RV__COMMAND_TAIL - 10);
    assert_memory_equal(r->tail.at + r->tail.len - 9, "3000\nlast", 9);
    assert_memory_equal(r->tail.at, "2", 1);
    assert_memory_equal(r->tail.at + 4, "\n", 1);
    r = sh("head -c 100000 /dev/zero | tr '\\0' x >&2"); /* one line, longer than the tail */
    assert_int_equal(r->tail.len, RV__COMMAND_TAIL - 1);
}

static void count_lines(void *arg, struct rv__str line)
{
    (void)line;
    ++*(int *)arg;
}

static void lines_do_not_care_how_they_are_cut_into_reads(void **state)
{
    (void)state;
    static const char text[] = "one\r\n\ntwo\nthree";
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct rv__lines lines;
        int count = 0;
        rv__lines_init(&lines, count_lines, &count);
        rv__lines_add(&lines, (struct rv__str){ text, cut });
        rv__lines_add(&lines, (struct rv__str){ text + cut, sizeof text - 1 - cut });
        rv__lines_end(&lines);
        assert_int_equal(count, 4);
        assert_str(rv__lines_tail(&lines), "one\n\ntwo\nthree");
        rv__lines_done(&lines);
    }
}

static void ends_well(void *arg, struct rv__str line)
{
    *(bool *)arg = memcmp(line.at + line.len - 7, "\xf0\x9f\x98\x80…", 7) == 0;
}

/* The log has the beginning of a line that is too long, the tail its end. */
static void a_line_is_not_cut_within_a_character(void **state)
{
    (void)state;
    for (int shift = 0; shift < 4; shift++) {
        struct rv__lines lines;
        bool good = false;
        rv__lines_init(&lines, ends_well, &good);
        rv__lines_add(&lines, (struct rv__str){ "xxx", (size_t)shift });
        for (int i = 0; i < RV__COMMAND_LINE; i++)
            rv__lines_add(&lines, rv__str("\xf0\x9f\x98\x80"));
        rv__lines_add(&lines, (struct rv__str){ "the end", 4 + (size_t)shift });
        rv__lines_end(&lines);
        struct rv__str tail = rv__lines_tail(&lines);
        assert_true(rv__str_utf8(tail));
        assert_in_range(tail.len, RV__COMMAND_TAIL - 4, RV__COMMAND_TAIL - 1);
        assert_memory_equal(tail.at + tail.len - 4 - (size_t)shift, "the end", 4 + (size_t)shift);
        rv__lines_done(&lines);
        assert_true(good);
    }
}

/* -------------------------------------------------------------------------- control file --- */

static void the_control_file_is_private_read_and_removed(void **state)
{
    (void)state;
    const struct rv__command_result *r = sh("stat -c %a $RIVAL_CONTROL; stat -c %a $(dirname "
                                            "$RIVAL_CONTROL); echo '{}' > $RIVAL_CONTROL");
    assert_str(r->output, "600\n700\n");
    assert_str(r->control, "{}\n");
}

static void a_strange_control_file_is_an_error_and_no_trap(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int code;
    } rows[] = {
        { "rm $RIVAL_CONTROL", 0 },
        { "echo '{}' > $RIVAL_CONTROL.new; mv $RIVAL_CONTROL.new $RIVAL_CONTROL", 0 },
        { "rm $RIVAL_CONTROL; mkfifo $RIVAL_CONTROL", RV_EINVAL },
        { "ln -sf /etc/passwd $RIVAL_CONTROL", RV_ESYS },
        { "head -c 2000000 /dev/zero > $RIVAL_CONTROL", RV_ETOOBIG },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sh(rows[i].script)->error.code != rows[i].code)
            fail_msg("%s: %d %s", rows[i].script, run.result.error.code, run.result.error.message);
}

/* ----------------------------------------------------------------------------------- kill --- */

static void a_timeout_ends_the_command_and_its_children(void **state)
{
    (void)state;
    run_init(&run, "sh", "-c", "sleep 1000 | cat");
    run.command.timeout_ms = 50;
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    const struct rv__command_result *r = run_wait(&run);
    assert_int_equal(r->killed, RV__KILL_TIMEOUT);
    assert_int_equal(r->end, RV__COMMAND_SIGNAL);
    assert_int_equal(r->status, SIGTERM);
    assert_true(r->ran_ms >= 50);
}

static void who_ignores_term_is_killed_after_the_grace_time(void **state)
{
    (void)state;
    run_init(&run, "sh", "-c", "trap '' TERM; echo ready >&2; sleep 1000");
    run.command.grace_ms = 30;
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    run_await_lines(&run, 1);
    for (int i = 0; i < 3; i++) /* the first reason stays */
        rv__command_kill(io, &run.command, i == 0 ? RV__KILL_CANCEL : RV__KILL_TIMEOUT);
    const struct rv__command_result *r = run_wait(&run);
    assert_int_equal(r->killed, RV__KILL_CANCEL);
    assert_int_equal(r->status, SIGKILL);
    rv__command_kill(io, &run.command, RV__KILL_CANCEL); /* too late: nothing */
    assert_int_equal(run.done, 1);
}

static void who_handles_term_has_time_to_clean_up(void **state)
{
    (void)state;
    run_init(&run, "sh", "-c",
             "trap 'echo bye; exit 5' TERM; echo ready >&2; while :; do sleep 0.01; done");
    run.kill_on = "ready"; /* from its own callback */
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    const struct rv__command_result *r = run_wait(&run);
    assert_int_equal(r->killed, RV__KILL_CANCEL);
    assert_int_equal(r->end, RV__COMMAND_EXITED);
    assert_int_equal(r->status, 5);
    assert_str(r->output, "bye\n");
}

/* As /proc says it: 'Z': a zombie that nobody has fetched yet, 'X': gone. */
static char process_state(const char *pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%.*s/stat", (int)strcspn(pid, "\n"), pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 'X';
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    const char *paren = n > 0 ? strrchr(text, ')') : NULL;
    return paren != NULL ? paren[2] : 'X';
}

static void a_stopped_command_can_be_ended(void **state)
{
    (void)state;
    run_init(&run, "sh", "-c", "echo $$ >&2; kill -STOP $$; sleep 1000");
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    run_await_lines(&run, 1);
    while (process_state(run.first_line) != 'T')
        sched_yield();
    rv__command_kill(io, &run.command, RV__KILL_CANCEL);
    assert_int_equal(run_wait(&run)->status, SIGTERM); /* not by the KILL after the grace time */
}

static void free_it(struct rv__command *command, const struct rv__command_result *result)
{
    (void)result;
    free(command);
}

/* The end of the line without a newline is told while the command is being finished. */
static void a_kill_that_comes_with_the_end_is_forgotten(void **state)
{
    (void)state;
    struct run *late = malloc(sizeof *late);
    assert_non_null(late);
    run_init(late, "sh", "-c", "printf last >&2");
    late->kill_on = "last";
    late->command.done = free_it;
    assert_int_equal(rv__command_start(io, &late->command), RV_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sh("true")->status, 0);
}

static bool is_dead(const char *pid)
{
    return strchr("ZX", process_state(pid)) != NULL;
}

static void what_a_command_leaves_behind_is_ended_with_it(void **state)
{
    (void)state;
    /* holding its output, and not */
    const char *const scripts[] = { "sleep 1000 & echo $!",
                                    "sleep 1000 >/dev/null 2>&1 & echo $!" };
    for (size_t i = 0; i < 2; i++) {
        const struct rv__command_result *r = sh(scripts[i]);
        assert_int_equal(r->end, RV__COMMAND_EXITED);
        assert_int_equal(r->status, 0);
        int64_t deadline = rv__deadline_ns(
            PATIENCE_MS); /* it has its signal; dying takes a moment */
        while (!is_dead(r->output.at))
            assert_true(rv__mono_ns(rv__clock_real()) < deadline);
    }
    /* last words of a process that the shell does not wait for */
    assert_str(sh("(sleep 0.02; echo late) & echo early")->output, "early\nlate\n");
}

static void who_leaves_the_group_does_not_hold_us_up(void **state)
{
    (void)state;
    const struct rv__command_result *r = sh("setsid sleep 1000 & echo $!; sleep 0.1");
    assert_int_equal(r->status, 0);
    pid_t pid = (pid_t)strtol(r->output.at, NULL, 10);
    assert_true(pid > 0);
    kill(pid, SIGKILL);
}

static struct run many[MANY];

static void start_many(const char *script, int count)
{
    for (int i = 0; i < count; i++) {
        run_init(&many[i], "sh", "-c", script);
        assert_int_equal(rv__command_start(io, &many[i].command), RV_OK);
    }
}

static void done_many(int count)
{
    for (int i = 0; i < count; i++)
        run_done(&many[i]);
}

static void a_limit_holds_and_all_get_their_turn(void **state)
{
    (void)state;
    char script[256];
    /* Each leaves a mark while it runs, and prints how many there are. */
    snprintf(script, sizeof script, "mkdir %s/m$$; ls -d %s/m* | wc -l; sleep 0.01; rmdir %s/m$$",
             temp_dir, temp_dir, temp_dir);
    start_many(script, MANY);
    long most = 0;
    for (int i = 0; i < MANY; i++) {
        const struct rv__command_result *r = run_wait(&many[i]);
        assert_int_equal(r->end, RV__COMMAND_EXITED);
        long n = strtol(r->output.at, NULL, 10);
        most = n > most ? n : most;
    }
    done_many(MANY);
    assert_in_range(most, 2, 20);
}

static void killed_while_it_queues_it_never_runs(void **state)
{
    (void)state;
    start_many("echo ready >&2; sleep 1000", 20);
    for (int i = 0; i < 20; i++)
        run_await_lines(&many[i], 1);
    run_init(&run, "true", NULL, NULL);
    assert_int_equal(rv__command_start(io, &run.command), RV_OK);
    rv__command_kill(io, &run.command, RV__KILL_TIMEOUT);
    const struct rv__command_result *r = run_wait(&run);
    assert_int_equal(r->end, RV__COMMAND_NOT_RUN);
    assert_int_equal(r->killed, RV__KILL_TIMEOUT);
    assert_int_equal(run.begun, 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(many[i].done, 0);
        assert_int_equal(many[i].begun, 1);
        rv__command_kill(io, &many[i].command, RV__KILL_CANCEL);
    }
    for (int i = 0; i < 20; i++)
        assert_int_equal(run_wait(&many[i])->killed, RV__KILL_CANCEL);
    done_many(20);
}

/* On the loop's thread, when it has taken new ones into the queue and is at those to be killed. */
static void start_and_kill_another(struct rv__command *command,
                                   const struct rv__command_result *result)
{
    struct run *other = (struct run *)command + 1;
    (void)rv__command_start(io, &other->command); /* else it is never done, and the test hangs */
    rv__command_kill(io, &other->command, RV__KILL_CANCEL);
    on_done(command, result);
}

static void killed_before_it_could_queue_it_is_in_nobodys_way(void **state)
{
    (void)state;
    start_many("echo ready >&2; sleep 1000", 20);
    for (int i = 0; i < 20; i++)
        run_await_lines(&many[i], 1);
    struct run *first = &many[20], *second = first + 1, *third = second + 1;
    for (int i = 20; i < 23; i++)
        run_init(&many[i], "echo", "hi", NULL);
    first->command.done = start_and_kill_another;
    assert_int_equal(rv__command_start(io, &first->command), RV_OK);
    rv__command_kill(io, &first->command, RV__KILL_CANCEL);
    assert_int_equal(run_wait(first)->end, RV__COMMAND_NOT_RUN);
    assert_int_equal(run_wait(second)->end, RV__COMMAND_NOT_RUN);
    assert_int_equal(rv__command_start(io, &third->command), RV_OK);
    for (int i = 0; i < 20; i++)
        rv__command_kill(io, &many[i].command, RV__KILL_CANCEL);
    assert_str(run_wait(third)->output, "hi\n");
    for (int i = 0; i < 20; i++)
        assert_int_equal(run_wait(&many[i])->killed, RV__KILL_CANCEL);
    done_many(23);
}

static void free_ends_what_runs_and_what_queues(void **state)
{
    (void)state;
    start_many("echo ready >&2; sleep 1000 | cat", 30);
    for (int i = 0; i < 20; i++)
        run_await_lines(&many[i], 1);
    rv__io_free(io);
    io = NULL;
    for (int i = 0; i < 30; i++) {
        assert_int_equal(many[i].done, 1);
        assert_int_equal(many[i].result.killed, RV__KILL_SHUTDOWN);
        assert_int_equal(many[i].result.end, i < 20 ? RV__COMMAND_SIGNAL : RV__COMMAND_NOT_RUN);
    }
    done_many(30);
}

static void *start_some(void *arg)
{
    struct run *mine = arg;
    for (int i = 0; i < MANY / 8; i++) {
        run_init(&mine[i], "sh", "-c", i % 5 == 4 ? "sleep 1000" : "echo hi");
        if (rv__command_start(io, &mine[i].command) != RV_OK)
            return arg;
    }
    for (int i = 0; i < MANY / 8; i++) {
        if (i % 5 == 4)
            rv__command_kill(io, &mine[i].command, RV__KILL_CANCEL);
        const struct rv__command_result *r = run_wait(&mine[i]);
        if (i % 5 == 4 ? r->killed != RV__KILL_CANCEL : !rv__str_is(r->output, "hi\n"))
            return arg;
    }
    return NULL;
}

static void any_thread_may_start_and_kill(void **state)
{
    (void)state;
    pthread_t threads[8];
    void *failed = NULL, *one;
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_some, &many[(size_t)i * MANY / 8]),
                         0);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], &one);
        failed = one != NULL ? one : failed;
    }
    done_many(MANY);
    assert_null(failed);
}

/* --------------------------------------------------------------------------- no resources --- */

static void no_descriptors_means_later(void **state)
{
    (void)state;
    atomic_store(&pipe_failures, 2);
    int before = atomic_load(&pipe_calls);
    const struct rv__command_result *r = sh("echo fine");
    assert_str(r->output, "fine\n");
    assert_int_equal(atomic_load(&pipe_failures), 0);
    assert_int_equal(atomic_load(&pipe_calls) - before, 4); /* two that failed, stdout, stderr */
}

/* The allocations are on the loop's thread: the end of another command is the way there. */
static void no_memory_fails_the_command_and_nothing_else(void **state)
{
    (void)state;
    static struct run before;
    int failures = 0;
    for (long n = 0; n < 16; n++) {
        run_init(&before, "true", NULL, NULL);
        before.fail_after = n;
        assert_int_equal(rv__command_start(io, &before.command), RV_OK);
        run_wait(&before);
        run_done(&before);

        const struct rv__command_result *r = sh(
            "echo out; echo err >&2; echo '{}' > $RIVAL_CONTROL");
        assert_true(r->error.code == 0 || r->error.code == RV_ENOMEM);
        failures += r->error.code != 0;
    }
    assert_true(failures > 0);
    assert_int_equal(sh("echo out")->error.code, 0);
}

static void no_memory_means_no_loop(void **state)
{
    (void)state;
    struct rv__io *other = NULL;
    int rc;
    TORTURE(rc, rv__io_new(&(struct rv__io_opts){ .temp_dir = temp_dir }, &other, NULL),
            assert_null(other));
    assert_int_equal(rc, RV_OK);
    rv__io_free(other);
    assert_int_equal(entries(temp_dir), 1); /* io's own */
    rv__io_free(NULL);
}

static void a_loop_that_cannot_be_says_why(void **state)
{
    (void)state;
    rv_error err;
    struct rv__io *other = NULL;
    assert_int_equal(
        rv__io_new(&(struct rv__io_opts){ .temp_dir = "/no/such/place" }, &other, &err), RV_ESYS);
    assert_non_null(strstr(err.message, "/no/such/place"));
    assert_int_equal(rv__io_new(&(struct rv__io_opts){ .max_processes = 1000000 }, &other, &err),
                     RV_EINVAL);
    assert_null(other);
}

static void a_host_that_takes_our_children_is_told(void **state)
{
    (void)state;
    signal(SIGCHLD, SIG_IGN);
    const struct rv__command_result *r = sh("echo out");
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(r->end, RV__COMMAND_LOST);
    assert_non_null(strstr(r->error.message, "SIGCHLD"));
    assert_str(r->output, "out\n");
}

/* Who waits for any child does not wait for the warden, which lives as long as the loop. */
static void waiting_for_all_children_does_not_hang_the_host(void **state)
{
    (void)state;
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
}

/* ---------------------------------------------------------------------------------- crash --- */

static void close_stdio(void)
{
    for (int fd = 0; fd < 3; fd++)
        close(fd);
}

static int run_without_stdio(bool from_the_start)
{
    if (from_the_start)
        close_stdio();
    if (rv__io_new(&(struct rv__io_opts){ .temp_dir = temp_dir }, &io, NULL) < 0)
        return 1;
    if (!from_the_start)
        close_stdio();
    run_init(&run, "sh", "-c", "cat; echo err >&2");
    run.command.input = rv__str("text");
    if (rv__command_start(io, &run.command) < 0)
        return 2;
    const struct rv__command_result *r = run_wait(&run);
    bool good = rv__str_is(r->output, "text") && rv__str_is(r->tail, "err");
    rv__io_free(io);
    return good ? 0 : 3;
}

/* Ours then land on 0, 1 and 2, where the child's have to be. */
static void closed_standard_descriptors_do_no_harm(void **state)
{
    (void)state;
    rv__io_free(io); /* no threads while we fork */
    io = NULL;
    for (int i = 0; i < 2; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
            _exit(run_without_stdio(i == 0));
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
    }
}

/* The children of this process that were made by this thread. Returns how many, at most 64. */
static int children(pid_t ret[64])
{
    char path[64], text[4096] = "", *at = text, *next;
    int n = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        text[0] = '\0';
    close(fd);
    for (long pid = strtol(at, &next, 10); next != at && n < 64; pid = strtol(at, &next, 10)) {
        ret[n++] = (pid_t)pid;
        at = next;
    }
    return n;
}

static void kill_warden(void) /* the only child of the thread that made the loop */
{
    pid_t pids[64];
    if (children(pids) != 1)
        abort();
    kill(pids[0], SIGKILL);
    waitid(P_PID, (id_t)pids[0], &(siginfo_t){ 0 }, WEXITED | WNOWAIT | __WALL);
}

static void without_a_warden_commands_go_on(void **state)
{
    (void)state;
    kill_warden();
    assert_str(sh("echo fine")->output, "fine\n");
}

/* Its own process: starts commands, says when they run, and waits for its death. */
static void RV_NORETURN doomed(int say, bool warden)
{
    const char *const scripts[] = { "exec sleep 1000", "sleep 1000 | cat",
                                    "sleep 1000 & sleep 1000",
                                    "trap '' TERM HUP INT; sleep 1000; sleep 1000" };
    if (rv__io_new(&(struct rv__io_opts){ .max_processes = 8, .temp_dir = temp_dir }, &io, NULL) <
        0)
        _exit(1);
    if (!warden)
        kill_warden();
    for (int i = 0; i < 8; i++) {
        static char script[8][128];
        snprintf(script[i], sizeof script[i], "echo ready >&2; %s", scripts[warden ? i % 4 : 0]);
        run_init(&many[i], "sh", "-c", script[i]);
        if (rv__command_start(io, &many[i].command) < 0)
            _exit(1);
    }
    for (int i = 0; i < 8; i++)
        run_await_lines(&many[i], 1);
    if (write(say, "r", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

/* Kill an engine, and wait for the end of everybody that it leaves to us. How many ended in time; -1: not
 * all. As the reaper of orphans we learn of every death, and "no child left" is the proof. */
static int bereave(bool warden)
{
    int pair[2], ended = 0;
    char c;
    sigset_t child;
    pid_t left[64], pid = 0;
    rv__io_free(io); /* no threads while we fork */
    io = NULL;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child, NULL);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || pipe(pair) < 0)
        return -1;
    pid_t engine = fork();
    if (engine == 0) {
        close(pair[0]);
        doomed(pair[1], warden);
    }
    close(pair[1]);
    bool ready = read(pair[0], &c, 1) == 1;
    close(pair[0]);

    int64_t deadline = rv__deadline_ns(GONE_MS);
    kill(engine, SIGKILL);
    while (pid >= 0 && rv__mono_ns(rv__clock_real()) < deadline) {
        pid = waitpid(-1, NULL, __WALL | WNOHANG);
        ended += pid > 0;
        if (pid == 0)
            sigtimedwait(&child, NULL, &(struct timespec){ .tv_nsec = 10000000 });
    }
    for (int i = children(left); pid >= 0 && i > 0; i--) { /* it failed: leave nothing behind */
        kill(left[i - 1], SIGKILL);
        waitpid(left[i - 1], NULL, __WALL);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    pthread_sigmask(SIG_UNBLOCK, &child, NULL);
    return ready && pid < 0 ? ended : -1;
}

static void nothing_outlives_an_engine_that_is_killed(void **state)
{
    (void)state;
    assert_true(bereave(true) >=
                1 + 1 + 8); /* engine, warden, shells; what these had started by then */
    assert_int_equal(entries(temp_dir), 0); /* the warden takes the control files along */
}

static void without_a_warden_the_commands_themselves_die(void **state)
{
    (void)state;
    int ended = bereave(false);
    char rm[64];
    snprintf(rm, sizeof rm, "rm -r %s/rival-*", temp_dir);
    assert_int_equal(system(rm), 0); /* there was nobody to do it */
    assert_true(ended >= 1 + 8);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    setenv("RIVAL_TEST", "inherited", 1);
    const struct CMUnitTest tests[] = {
        TEST(stdout_stderr_and_the_exit_code_come_back),
        TEST(a_signal_is_told_from_an_exit_code),
        TEST(a_program_that_cannot_be_run_says_why),
        TEST(a_script_without_a_first_line_is_told_so),
        TEST(a_command_without_a_program_is_refused),
        TEST(the_environment_is_inherited_and_what_is_given_wins),
        TEST(path_is_taken_from_the_environment_it_gets),
        TEST(nothing_of_ours_reaches_the_child),
        TEST(the_host_keeps_its_signals),
        TEST(stdin_is_written_whole_however_long),
        TEST(a_child_that_does_not_read_is_no_error),
        TEST(no_stdin_is_an_empty_one),
        TEST(nul_bytes_pass_through),
        TEST(too_much_stdout_ends_the_command),
        TEST(long_lines_are_cut_and_the_tail_holds_whole_lines),
        TEST(lines_do_not_care_how_they_are_cut_into_reads),
        TEST(a_line_is_not_cut_within_a_character),
        TEST(the_control_file_is_private_read_and_removed),
        TEST(a_strange_control_file_is_an_error_and_no_trap),
        TEST(a_timeout_ends_the_command_and_its_children),
        TEST(who_ignores_term_is_killed_after_the_grace_time),
        TEST(who_handles_term_has_time_to_clean_up),
        TEST(a_stopped_command_can_be_ended),
        TEST(a_kill_that_comes_with_the_end_is_forgotten),
        TEST(what_a_command_leaves_behind_is_ended_with_it),
        TEST(who_leaves_the_group_does_not_hold_us_up),
        TEST(a_limit_holds_and_all_get_their_turn),
        TEST(killed_while_it_queues_it_never_runs),
        TEST(killed_before_it_could_queue_it_is_in_nobodys_way),
        TEST(free_ends_what_runs_and_what_queues),
        TEST(any_thread_may_start_and_kill),
        TEST(no_descriptors_means_later),
        TEST(no_memory_fails_the_command_and_nothing_else),
        TEST(no_memory_means_no_loop),
        TEST(a_loop_that_cannot_be_says_why),
        TEST(a_host_that_takes_our_children_is_told),
        TEST(waiting_for_all_children_does_not_hang_the_host),
        TEST(closed_standard_descriptors_do_no_harm),
        TEST(without_a_warden_commands_go_on),
        TEST(nothing_outlives_an_engine_that_is_killed),
        TEST(without_a_warden_the_commands_themselves_die),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
