/* bench_command.c: what a command costs on the I/O loop, against what one writes by hand: posix_spawn and
 * waitpid of the same program, nothing read, nothing bounded, nothing watched.
 *
 * One at a time is the latency of a step; several at once is what a busy engine does, against as many
 * spawned by hand before they are waited for. Also: threads, and descriptors, of commands that sleep. */
#include <dirent.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"
#include "exec/exec.h"

enum { ROUNDS = 15, COMMANDS = 200, AT_ONCE = 8, SLEEPERS = 500 };

static const char *const truth[] = { "/bin/true", NULL };

static void by_hand(int at_once)
{
    for (int i = 0; i < COMMANDS; i += at_once) {
        pid_t pids[AT_ONCE];
        for (int k = 0; k < at_once; k++)
            if (posix_spawn(&pids[k], truth[0], NULL, NULL, (char *const *)truth, environ) != 0)
                abort();
        for (int k = 0; k < at_once; k++)
            waitpid(pids[k], NULL, 0);
    }
}

/* ------------------------------------------------------------------------------- the loop --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int open_commands;
static struct rv__command commands[SLEEPERS];

static void done(struct rv__command *command, const struct rv__command_result *result)
{
    (void)command;
    if (result->end == RV__COMMAND_NOT_RUN && result->killed == RV__KILL_NONE)
        abort();
    pthread_mutex_lock(&lock);
    open_commands--;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void start(struct rv__io *io, struct rv__command *command, const char *const *argv)
{
    *command = (struct rv__command){ .argv = argv, .done = done };
    pthread_mutex_lock(&lock);
    open_commands++;
    pthread_mutex_unlock(&lock);
    if (rv__command_start(io, command) < 0)
        abort();
}

static void wait_for(int still_open)
{
    pthread_mutex_lock(&lock);
    while (open_commands > still_open)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void by_loop(struct rv__io *io, int at_once)
{
    if (at_once > 1) { /* the loop's own limit holds them */
        for (int i = 0; i < COMMANDS; i++)
            start(io, &commands[i], truth);
        wait_for(0);
        return;
    }
    for (int i = 0; i < COMMANDS; i++) {
        start(io, &commands[i], truth);
        wait_for(0);
    }
}

static void compare(struct bench *b, const char *what, int at_once)
{
    double hand[BENCH_ROUNDS], loop[BENCH_ROUNDS], ratio[BENCH_ROUNDS];
    char name[80];
    struct rv__io *io;
    if (rv__io_new(&(struct rv__io_opts){ .max_processes = (uint32_t)at_once }, &io, NULL) < 0)
        abort();
    for (int r = -1; r < ROUNDS; r++) { /* the first round warms up */
        int64_t start_ns = rv__mono_ns(rv__clock_real());
        by_hand(at_once);
        int64_t between_ns = rv__mono_ns(rv__clock_real());
        by_loop(io, at_once);
        int64_t end_ns = rv__mono_ns(rv__clock_real());
        if (r < 0)
            continue;
        hand[r] = COMMANDS * 1e9 / (double)(between_ns - start_ns);
        loop[r] = COMMANDS * 1e9 / (double)(end_ns - between_ns);
        ratio[r] = hand[r] / loop[r];
    }
    rv__io_free(io);
    snprintf(name, sizeof name, "%s: posix_spawn and waitpid", what);
    bench_figure(b, name, bench_median(hand, ROUNDS), "commands/s");
    snprintf(name, sizeof name, "%s: the loop", what);
    bench_figure(b, name, bench_median(loop, ROUNDS), "commands/s");
    snprintf(name, sizeof name, "%s: cost against posix_spawn", what);
    bench_goal(b, name, bench_median(ratio, ROUNDS), "x", false, 1.5);
}

/* ------------------------------------------------------------------------------- sleepers --- */

static int entries(const char *path)
{
    int n = -2;
    DIR *dir = opendir(path);
    if (dir == NULL)
        abort();
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static atomic_int awake;

static void on_line(struct rv__command *command, struct rv__str line)
{
    (void)command;
    (void)line;
    pthread_mutex_lock(&lock);
    awake++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void sleepers(struct bench *b)
{
    static const char *const argv[] = { "/bin/sh", "-c", "echo >&2; exec sleep 1000", NULL };
    struct rlimit files;
    struct rv__io *io;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    int before = entries("/proc/self/fd");
    if (rv__io_new(&(struct rv__io_opts){ .max_processes = SLEEPERS }, &io, NULL) < 0)
        abort();
    for (int i = 0; i < SLEEPERS; i++) {
        commands[i] = (struct rv__command){ .argv = argv, .done = done, .stderr_line = on_line };
        open_commands++;
        if (rv__command_start(io, &commands[i]) < 0)
            abort();
    }
    pthread_mutex_lock(&lock);
    while (awake < SLEEPERS)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    bench_goal(b, "500 sleeping commands: threads", entries("/proc/self/task"), "threads", false,
               3);
    bench_goal(b, "500 sleeping commands: descriptors",
               (double)(entries("/proc/self/fd") - before) / SLEEPERS, "a command", false, 4.1);
    int64_t start_ns = rv__mono_ns(rv__clock_real());
    rv__io_free(io);
    bench_figure(b, "500 sleeping commands: ended in",
                 (double)(rv__mono_ns(rv__clock_real()) - start_ns) / 1e6, "ms");
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_init(&b, "command", argc, argv);
    compare(&b, "one at a time", 1);
    compare(&b, "eight at once", AT_ONCE);
    sleepers(&b);
    return bench_done(&b);
}
