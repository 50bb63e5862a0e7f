/* main.c: sim --seeds A..B [-j N] | --minutes M [-j N] | --seed N [--trace] [--shrink]
 *
 * The program sim_bugs is the same with deliberate bugs in it (base/bugs.h): `--bugs` lets each of
 * them loose and expects it to be caught, `--bug N` with any of the above has that one. */
#include "shell.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_JOBS = 64,
    BATCH = 50,
    SHELL_TWICE = 16,   /* one seed in so many is run twice, to see that it does the same */
    SHELL_SECONDS = 60, /* of CPU time: a seed that takes longer does not end */
};

struct shared { /* by all processes */
    struct tally tallies[MAX_JOBS];
    _Atomic uint64_t at[MAX_JOBS]; /* the seed that each works on */
    uint64_t slowest[MAX_JOBS];
    double slowest_s[MAX_JOBS];
    _Atomic uint64_t next;
    _Atomic uint64_t failures;
    char check[64];
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct {
    bool shell, sqlite, members; /* with a real engine; on a real file; with several */
} mode;

static enum shell_kind kind_of(void)
{
    return mode.members ? SHELL_MEMBERS : mode.sqlite ? SHELL_SQLITE : SHELL_MEMORY;
}

static const char *mode_flags(void)
{
    return mode.sqlite    ? "--shell --sqlite "
           : mode.members ? "--members "
           : mode.shell   ? "--shell "
           : sim_stages   ? "--stages "
                          : "";
}

static void complain(uint64_t seed, const struct world *world, const char *program)
{
    fprintf(stderr, "seed %llu fails the check '%s': %s\n  replay: %s %s--seed %llu --trace\n",
            (unsigned long long)seed, world->check, world->why, program, mode_flags(),
            (unsigned long long)seed);
    fflush(stderr);
}

/* SIGPROF after so much CPU time; 0: never. Not real time: a loaded machine must not fail a seed. */
static void limit_cpu(int seconds)
{
    struct itimerval limit = { .it_value = { .tv_sec = seconds } };
    setitimer(ITIMER_PROF, &limit, NULL);
}

/* The same seed does the same: every so often it is run twice. */
static bool run_shell(uint64_t seed, bool with_trace, const char *program)
{
    uint64_t prints[2] = { 0 };
    bool failed = false;
    int times = seed % SHELL_TWICE == 0 && !with_trace ? 2 : 1;
    for (int i = 0; i < times && !failed; i++) {
        struct shell *shell = sim_alloc(sizeof *shell);
        limit_cpu(SHELL_SECONDS);
        shell_init(shell, seed, kind_of(), with_trace);
        shell_run(shell);
        prints[i] = shell->print;
        if (i > 0 && prints[0] != prints[1] && !shell->world.failed)
            judge_fail(&shell->world, NULL, "same", "the same seed does not do the same");
        failed = shell->world.failed;
        if (failed)
            complain(seed, &shell->world, program);
        shell_done(shell);
        free(shell);
        limit_cpu(0);
    }
    tally.seeds++;
    tally.failed += failed;
    return !failed;
}

static bool run_seed(uint64_t seed, bool with_trace, const char *program)
{
    if (mode.shell)
        return run_shell(seed, with_trace, program);
    struct world *world = sim_alloc(sizeof *world);
    world_init(world, seed, NULL, with_trace);
    world_run(world);
    bool failed = world->failed;
    if (failed)
        complain(seed, world, program);
    world_done(world);
    free(world);
    tally.seeds++;
    tally.failed += failed;
    return !failed;
}

static void add(struct tally *sum, const struct tally *one)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)one;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

static void report(const struct tally *t, double seconds, int jobs)
{
    printf("# => %llu seeds in %.1f s with %d processes: %.0f seeds/s; virtual time %.0f x real\n",
           (unsigned long long)t->seeds, seconds, jobs, (double)t->seeds / seconds,
           (double)t->virtual_ms / 1000 / (seconds * jobs));
    printf("# => %llu runs (%llu completed, %llu failed, %llu cancelled), %llu plan nodes, %llu "
           "pieces of work, %llu commits; outcomes: %llu exact, %llu foreseen; %llu scopes seen\n",
           (unsigned long long)t->runs, (unsigned long long)t->ended[RUN_COMPLETED],
           (unsigned long long)t->ended[RUN_FAILED], (unsigned long long)t->ended[RUN_CANCELLED],
           (unsigned long long)t->nodes, (unsigned long long)t->works,
           (unsigned long long)t->commits, (unsigned long long)t->exact,
           (unsigned long long)t->foreseen, (unsigned long long)t->views);
    printf("# =>");
    for (int i = 0; i < FAULT_KINDS; i++)
        printf("%s %llu %s", i > 0 ? "," : "", (unsigned long long)t->faults[i],
               fault_name((enum fault)i));
    printf("\n# facts:");
    for (int i = 0; i < FACT_KINDS; i++)
        printf("%s %s %llu", i > 0 ? "," : "", rv__fact_kind_name((enum rv__fact_kind)i),
               (unsigned long long)t->facts[i]);
    printf("; %llu stale messages\n", (unsigned long long)t->stale);
}

/* Seeds from `from` to `to`, or until the time is up. */
static int campaign(uint64_t from, uint64_t to, double seconds, int jobs, int stop_after,
                    const char *program)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 2;
    double began = now_s();
    shared->next = from;
    for (int j = 0; j < jobs; j++) {
        pid_t pid = fork();
        if (pid < 0)
            return 2;
        if (pid > 0)
            continue;
        for (;;) {
            uint64_t first = atomic_fetch_add(&shared->next, BATCH);
            if (first > to || (seconds > 0 && now_s() - began > seconds) ||
                shared->failures >= (uint64_t)stop_after)
                break;
            for (uint64_t seed = first; seed < first + BATCH && seed <= to; seed++) {
                double from_s = now_s();
                shared->at[j] = seed;
                if (!run_seed(seed, false, program))
                    atomic_fetch_add(&shared->failures, 1);
                shared->tallies[j] = tally;
                if (now_s() - from_s > shared->slowest_s[j]) {
                    shared->slowest_s[j] = now_s() - from_s;
                    shared->slowest[j] = seed;
                }
                if (shared->failures >= (uint64_t)stop_after)
                    break;
            }
        }
        shared->at[j] = 0;
        fflush(NULL);
        exit(0); /* not _exit: a sanitizer looks for leaks */
    }
    int died = 0, status;
    while (wait(&status) > 0)
        died += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    double took = now_s() - began;
    struct tally sum = { 0 };
    for (int j = 0; j < jobs; j++) {
        add(&sum, &shared->tallies[j]);
        if (shared->at[j] != 0)
            fprintf(stderr, "a process died of seed %llu\n  replay: %s %s--seed %llu --trace\n",
                    (unsigned long long)shared->at[j], program, mode_flags(),
                    (unsigned long long)shared->at[j]);
    }
    report(&sum, took, jobs);
    for (int j = 0; j < jobs; j++)
        printf("# slowest seed: %llu, %.1f s\n", (unsigned long long)shared->slowest[j],
               shared->slowest_s[j]);
    uint64_t wanted = seconds > 0 ? sum.seeds : to - from + 1;
    bool good = died == 0 && sum.failed == 0 && sum.seeds == wanted;
    printf("1..1\n%s 1 - every seed is judged right", good ? "ok" : "not ok");
    if (died > 0)
        printf(" (%d processes died)", died);
    printf("\n");
    return good ? 0 : 1;
}

#ifdef RV__BUG_CHOSEN
int rv__bug_number;

enum {
    BUG_SEEDS = 20000,
    BUG_SECONDS = 120,     /* of CPU time, for one bug */
    BUG_SEED_SECONDS = 20, /* of CPU time: no sound seed takes more than a quarter of it */
};
/* In which worlds a deliberate bug is looked for: by the first number of each range. */
enum bug_world { BUG_OF_FLOW, BUG_OF_SHELL, BUG_OF_STAGES, BUG_OF_MEMBERS };
static const struct {
    int first;
    enum bug_world world;
} bug_worlds[] = {
    { 1, BUG_OF_FLOW },      { 31, BUG_OF_SHELL },    { 71, BUG_OF_STAGES },
    { 270, BUG_OF_SHELL },   { 400, BUG_OF_MEMBERS }, { 412, BUG_OF_STAGES },
    { 417, BUG_OF_MEMBERS }, { 430, BUG_OF_FLOW },    { 440, BUG_OF_STAGES },
};
static const char *const bugs[] = {
    [1] = "an effect is released before the commit",
    [2] = "what came after a snapshot is forgotten: completed steps run again",
    [3] = "timers are forgotten on recovery",
    [4] = "the token of a message is not looked at",
    [5] = "a lost attempt counts as one",
    [6] = "a signal wakes two waiters",
    [7] = "the last detached child is lost",
    [8] = "a step error raises the number of attempts past the configured one",
    [9] = "a step that fails softly does not get its handler",
    [10] = "a forEach runs one more at once than it may",
    [11] = "a failure in a concurrent does not end it at once",
    [12] = "the first node inside a supervisor does not see the lastStep before it",
    [13] = "the end of work is not told to its executor",
    [14] = "a hard failure is recorded as a soft one",
    [15] = "a poison pill is tried for ever",
    [16] = "a cancel leaves detached blocks alive",
    [17] = "linear backoff begins with 0",
    [18] = "an iteration of a loop does not see the one before",
    [19] = "a snapshot forgets the crashes of a step",
    [20] = "an iteration that is ended from outside leaves no row",
    [21] = "a place is not given back when its work is cancelled in the same turn",
    [22] = "two suspects are in flight",
    [23] = "what waits in a range is forgotten when lanes change",
    [24] = "two values of a fact get the same number",
    [25] = "an item is looked for in the piece before",
    [26] = "a snapshot forgets how many values there are",
    [27] = "a step whose condition was true does not get the input that a function makes",
    [28] = "a snapshot forgets what a function made for a step",
    [29] = "the first attempt does not see what a function made for its step",
    [30] = "a function that describes a node does not see it",
    [31] = "the engine releases effects before the commit",
    [32] = "the engine forgets timers when it loads a run",
    [33] = "a run that leaves memory leaves its timers behind",
    [34] = "a call is answered before the commit",
    [35] = "who waits for a run is lost when it goes to sleep",
    [36] = "the row of a run says that it is at rest",
    [37] = "a commit that failed is not repeated",
    [38] = "after a start nobody wakes those that sleep",
    [39] = "work is begun without a place for it",
    [40] = "the engine forgets what came after a snapshot",
    [41] = "two suspects are in flight at once",
    [42] = "what was missing is there again, and nobody looks",
    [43] = "what a step says last is not kept",
    [44] = "a run does not leave the ring while its facts are on their way",
    [45] = "work is not told that it is cancelled",
    [46] = "the place of work that was cancelled at once is lost",
    [47] = "waits fire a second late",
    [48] = "who has had a place is the next to get one",
    [49] = "a grant is lost when a batch lands",
    [50] = "who looks is shown what is not on disk",
    [51] = "that a cell has more to say is forgotten",
    [52] = "a cell that leaves memory still counts in the budget",
    [53] = "what the store refused is acted upon",
    [54] = "the definition of a plan is not written",
    [55] = "work that was lost with its process is waited for",
    [56] = "a timer that falls due while facts are on their way is forgotten",
    [57] = "a place is given back twice",
    [58] = "log lines are fetched into a run whose facts are on their way, and dropped",
    [59] = "the place of work that is lost is not given back",
    [60] = "a time-out counts before its work has begun",
    [61] = "a batch that waits for the one before it is acted for",
    [63] = "a cancel ends a run without its finally",
    [64] = "finally does not run after a failure",
    [65] = "the entry of a failed node has lost its error after a reload",
    [66] = "the path of a failure is that of the iteration before",
    [67] = "whatever dies with its worker is blamed",
    [68] = "a worker gets more than its credits",
    [69] = "the place of a worker is not given back",
    [70] = "nobody looks for another worker when one has gone",
    [71] = "states begin in their order, whatever their priority",
    [72] = "a final state does not keep others from beginning",
    [73] = "a stage runs one more at once than it may",
    [74] = "a critical state holds nobody back",
    [75] = "a critical state holds others back while it waits for its redirect",
    [76] = "a state is tried once more than it may",
    [77] = "a critical state that used up its attempts suspends nobody",
    [78] = "a state that is resumed has no fresh attempts",
    [80] = "who waits for a redirect is not woken",
    [81] = "a stage that begins anew keeps what was settled in it",
    [82] = "a state begins before what it depends on has settled",
    [83] = "the time of an attempt goes on when its agent has ended",
    [84] = "an agent sees the steps that its scope hides",
    [220] = "two attempts of one second leave attachments of the same name",
    [221] = "an attempt that is tried again leaves no attachment",
    [222] = "an attempt that is cut short leaves no attachment",
    [260] = "the tokens of an answer are not counted",
    [261] = "a chat has one turn more than it may",
    [262] = "a chat goes on when its tokens are used up",
    [263] = "a chat asks again before its last call has ended",
    [264] = "a new conversation goes on with the old one",
    [265] = "a chat begins new conversations for ever",
    [270] = "more have a limit at once than it allows",
    [271] = "more have a limit in a minute than it allows",
    [272] = "what was taken of a limit does not come back",
    [274] = "nobody looks when a limit has room again",
    [266] = "a model that is busy uses up an attempt",
    [267] = "a tool of a chat sees the steps that its scope hides",
    [400] = "the lease is not renewed where nothing is written",
    [401] = "what a member wrote after its end is taken as written",
    [402] = "nobody ends the members whose lease is over",
    [403] = "a lease that is over is taken for a death",
    [404] = "a claim whose answer was lost is not looked for",
    [405] = "a call that may be on disk is made again by a member that joins anew",
    [406] = "a request that may have arrived is taken as not made",
    [407] = "a run whose write was refused is only looked at",
    [408] = "a run at rest stays in the memory of its member",
    [409] = "a member that ends in order does not say so",
    [410] = "a request that nobody took is not made again",
    [411] = "runs that others have put to sleep are not looked for",
    [412] = "the budget of a run bounds nothing",
    [413] = "who waits when a budget is used up goes on waiting",
    [414] = "a snapshot forgets what a run has used up",
    [415] = "a nested workflow does not count what its chats use",
    [416] = "the cost of an answer is not counted",
    [417] = "who gave a run up is excluded although it went on since",
    [418] = "what a run lacks is taken from the node that comes next",
    [430] =
        "a workflow in a concurrent that has a condition shows the result of its last node only",
    [431] = "what is in flight in such a workflow leaves nothing when it is cut short",
    [440] = "attachments are numbered from one too low after a snapshot",
};

static enum bug_world world_of(int bug)
{
    size_t i = sizeof bug_worlds / sizeof *bug_worlds;
    while (bug_worlds[i - 1].first > bug)
        i--;
    return bug_worlds[i - 1].world;
}

/* The check that it fails; NULL: none. */
static const char *world_fails(uint64_t seed)
{
    struct world *world = sim_alloc(sizeof *world);
    world_init(world, seed, NULL, false);
    world_run(world);
    const char *check = world->failed ? world->check : NULL;
    if (check == NULL)
        world_done(world);
    free(world);
    return check;
}

/* Where it fails its engine is not asked any more, not even to end. */
static const char *shell_fails(uint64_t seed)
{
    struct shell *shell = sim_alloc(sizeof *shell);
    shell_init(shell, seed, kind_of(), false);
    shell_run(shell);
    const char *check = shell->world.failed ? shell->world.check : NULL;
    if (check == NULL) {
        shell_done(shell);
        free(shell);
    }
    return check;
}

/* The first seed that the present bug fails; 0: none, within the CPU time of a hunt. It has a process of its
 * own, since the bug may crash it, or make a seed endless: both count as caught. */
static uint64_t hunt(struct shared *shared, char *check, size_t size)
{
    shared->at[0] = 0;
    shared->failures = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        clock_t end = clock() + BUG_SECONDS * CLOCKS_PER_SEC;
        for (uint64_t seed = 1; seed <= BUG_SEEDS && clock() < end; seed++) {
            shared->at[0] = seed;
            limit_cpu(BUG_SEED_SECONDS);
            enum bug_world world = world_of(rv__bug_number);
            mode.members = world == BUG_OF_MEMBERS;
            sim_stages = world == BUG_OF_STAGES;
            bool shell = world == BUG_OF_SHELL || world == BUG_OF_MEMBERS;
            const char *failed = shell ? shell_fails(seed) : world_fails(seed);
            if (failed != NULL) {
                snprintf(shared->check, sizeof shared->check, "%s", failed);
                _exit(0);
            }
        }
        shared->at[0] = 0;
        _exit(0);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 0;
    bool judged = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool endless = WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF;
    snprintf(check, size, "%s",
             judged    ? shared->check
             : endless ? "the seed does not end"
                       : "the program dies");
    return shared->at[0];
}

static int all_bugs(int first)
{
    int count = (int)(sizeof bugs / sizeof *bugs) - 1, missed = 0;
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 2;
    int all = 0;
    for (int n = first; n <= count; n++)
        all += bugs[n] != NULL;
    printf("1..%d\n", all);
    for (int n = first, number = 1; n <= count; n++) {
        char check[64];
        if (bugs[n] == NULL)
            continue;
        rv__bug_number = n;
        uint64_t seed = hunt(shared, check, sizeof check);
        missed += seed == 0;
        if (seed != 0)
            printf("ok %d - caught: %d: %s (seed %llu, check '%s')\n", number++, n, bugs[n],
                   (unsigned long long)seed, check);
        else
            printf("not ok %d - not caught in %d seeds or %d s of CPU time: %d: %s\n", number++,
                   BUG_SEEDS, BUG_SECONDS, n, bugs[n]);
    }
    printf("# => %d of %d deliberate bugs caught\n", all - missed, all);
    return missed > 0;
}
#endif

static int usage(void)
{
    fprintf(stderr, "usage: sim [--stages | --members | --shell [--sqlite]] --seeds A..B [-j N] "
                    "[--stop-after F] | "
                    "--minutes M [-j N] | "
                    "--seed N [--trace] [--shrink]\n");
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t from = 1, to = 0, seed = 0;
    bool with_trace = false, with_shrink = false, one = false;
    double minutes = 0;
    int jobs = 1, stop_after = 10;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        char *end = NULL;
        if (strcmp(arg, "--trace") == 0) {
            with_trace = true;
            continue;
        }
#ifdef RV__BUG_CHOSEN
        if (strcmp(arg, "--bugs") == 0) /* from that one on */
            return all_bugs(*value != '\0' ? (int)strtol(value, NULL, 10) : 1);
        if (strcmp(arg, "--bug") == 0) {
            rv__bug_number = (int)strtol(value, NULL, 10);
            i++;
            continue;
        }
#endif
        if (strcmp(arg, "--stages") == 0) {
            sim_stages = true;
            continue;
        }
        if (strcmp(arg, "--shell") == 0 || strcmp(arg, "--sqlite") == 0) {
            mode.shell = true;
            mode.sqlite |= strcmp(arg, "--sqlite") == 0;
            continue;
        }
        if (strcmp(arg, "--members") == 0) {
            mode.shell = mode.members = true;
            continue;
        }
        if (strcmp(arg, "--shrink") == 0) {
            with_shrink = true;
            continue;
        }
        i++;
        if (strcmp(arg, "--seed") == 0) {
            seed = strtoull(value, &end, 10);
            one = true;
        } else if (strcmp(arg, "--seeds") == 0) {
            from = strtoull(value, &end, 10);
            if (strncmp(end, "..", 2) != 0)
                return usage();
            to = strtoull(end + 2, &end, 10);
        } else if (strcmp(arg, "--minutes") == 0) {
            minutes = strtod(value, &end);
        } else if (strcmp(arg, "-j") == 0) {
            jobs = (int)strtol(value, &end, 10);
        } else if (strcmp(arg, "--stop-after") == 0) {
            stop_after = (int)strtol(value, &end, 10);
        } else {
            return usage();
        }
        if (end == value || end == NULL || *end != '\0')
            return usage();
    }
    const char *env = getenv("MINUTES");
    if (!one && to == 0 && minutes == 0)
        minutes = env != NULL ? strtod(env, NULL) : 0;
    if (jobs < 1 || jobs > MAX_JOBS || (!one && to < from && minutes <= 0))
        return usage();
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (one && with_shrink)
        return shrink(seed);
    if (one)
        return run_seed(seed, with_trace, argv[0]) ? 0 : 1;
    if (minutes > 0) /* other seeds each time: the clock chooses where to begin */
        return campaign((uint64_t)time(NULL) * 1000, UINT64_MAX - BATCH, minutes * 60, jobs,
                        stop_after, argv[0]);
    return campaign(from, to, 0, jobs, stop_after, argv[0]);
}
