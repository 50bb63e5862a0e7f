/* command.c: commands from rv__command_start() to `done`: inbox, queue, running, over.
 *
 * A command is in one list at a time: the inbox, to which any thread may add, and on the loop's thread the queue
 * and the list of running commands. Kills have their own list; a command that is over removes itself from it,
 * because its owner may then free it. Inbox and kills are under io->lock; no callback runs under it. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "exec/io.h"
#include "exec/process.h"
#include "exec/spawn.h"

/* If the system has no resources for a process: try again for this time, then fail. */
enum { TRY_AGAIN_MS = 100, GIVE_UP_MS = 10000 };

#define START_BYTES \
    (64u << 20) /* for the environment and paths of one command; execve allows far less */

struct rv__commands {
    struct rv__io *io;
    /* [0]: commands, [1]: services, which have their own limit */
    struct rv__chain inbox[2], queue[2]; /* inbox: under io->lock */
    size_t count[2], max[2];             /* running */
    struct rv__chain killed;             /* under io->lock */
    struct rv__chain running;
    uv_timer_t again;
    struct rv__processes processes;
};

static struct rv__command *command_of(struct rv__link *listed) /* NULL stays NULL */
{
    return listed != NULL ? RV__CONTAINER(listed, struct rv__command, io.listed) : NULL;
}

/* --------------------------------------------------------------------------- any thread --- */

int rv__command_start(struct rv__io *io, struct rv__command *c)
{
    struct rv__commands *all = io->commands;
    int rc = RV_OK;
    if (c->argv == NULL || c->argv[0] == NULL || c->done == NULL)
        return RV_EINVAL;
    pthread_mutex_lock(&io->lock);
    if (io->closing) {
        rc = RV_ECLOSED;
    } else {
        memset(&c->io, 0, sizeof c->io);
        c->io.started = true;
        rv__chain_add(&all->inbox[c->service], &c->io.listed);
    }
    pthread_mutex_unlock(&io->lock);
    if (rc == RV_OK)
        rv__io_wake(io);
    return rc;
}

void rv__command_kill(struct rv__io *io, struct rv__command *c, enum rv__kill why)
{
    struct rv__commands *all = io->commands;
    bool first;
    pthread_mutex_lock(&io->lock);
    first = c->io.started && !c->io.over && c->io.why == RV__KILL_NONE;
    if (first) {
        c->io.why = why;
        rv__chain_add(&all->killed, &c->io.killed);
    }
    pthread_mutex_unlock(&io->lock);
    if (first)
        rv__io_wake(io);
}

/* -------------------------------------------------------------------------- loop's thread --- */

int rv__command_send(struct rv__command *c, struct rv__str bytes)
{
    return c->io.process != NULL ? rv__process_send(c->io.process, bytes) : RV_ECLOSED;
}

static void tell_done(struct rv__commands *all, struct rv__command *c,
                      const struct rv__command_result *result)
{
    pthread_mutex_lock(&all->io->lock);
    c->io.over = true;
    if (c->io.killed.at != NULL)
        rv__chain_remove(&all->killed, &c->io.killed);
    pthread_mutex_unlock(&all->io->lock);
    c->done(c, result); /* from here on it may be freed */
}

/* Remove a command from the queue that will not run. */
static void drop(struct rv__commands *all, struct rv__command *c, enum rv__kill why,
                 const rv_error *err)
{
    struct rv__command_result result = { .end = RV__COMMAND_NOT_RUN, .killed = why };
    if (err != NULL)
        result.error = *err;
    result.output = result.tail = result.control = (struct rv__str){ "", 0 };
    rv__chain_remove(&all->queue[c->service], &c->io.listed);
    tell_done(all, c, &result);
}

static void start_queued(struct rv__commands *all);

static void on_again(uv_timer_t *timer)
{
    start_queued(timer->data);
}

static bool may_try_again(struct rv__command *c)
{
    int64_t now = rv__mono_ms(rv__clock_real());
    if (c->io.refused_ms == 0)
        c->io.refused_ms = now;
    return now - c->io.refused_ms < GIVE_UP_MS;
}

/* The next one that may start; NULL: none. */
static struct rv__command *next_queued(struct rv__commands *all)
{
    for (int sort = 1; sort >= 0; sort--)
        if (all->queue[sort].first != NULL && all->count[sort] < all->max[sort])
            return command_of(all->queue[sort].first);
    return NULL;
}

static void start_queued(struct rv__commands *all)
{
    struct rv__command *c;
    while ((c = next_queued(all)) != NULL) {
        rv_error err = { 0 };
        int rc = rv__process_start(&all->processes, c, &c->io.process, &err);
        if (rc == RV_EBUSY && may_try_again(c)) { /* it stays first, and the rest wait too */
            uv_timer_start(&all->again, on_again, TRY_AGAIN_MS, 0);
            return;
        }
        if (rc < 0) {
            drop(all, c, RV__KILL_NONE, &err);
            continue;
        }
        rv__chain_remove(&all->queue[c->service], &c->io.listed);
        rv__chain_add(&all->running, &c->io.listed);
        all->count[c->service]++;
        if (c->begun != NULL)
            c->begun(c);
    }
}

static void on_over(void *arg, struct rv__command *c, const struct rv__command_result *result)
{
    struct rv__commands *all = arg;
    rv__chain_remove(&all->running, &c->io.listed);
    all->count[c->service]--;
    tell_done(all, c, result);
    rv__io_wake(all->io); /* for the next one, or the end of the loop */
}

/* Move new commands to the queue and take one to be killed under the same lock. Otherwise a command could arrive
 * and be killed between the two, and be searched in the queue while it is in the inbox. */
static void take_new_and_killed(struct rv__commands *all)
{
    for (;;) {
        pthread_mutex_lock(&all->io->lock);
        for (int sort = 0; sort < 2; sort++)
            rv__chain_move(&all->queue[sort], &all->inbox[sort]);
        struct rv__command *c = all->killed.first != NULL
                                    ? RV__CONTAINER(all->killed.first, struct rv__command,
                                                    io.killed)
                                    : NULL;
        enum rv__kill why = c != NULL ? c->io.why : RV__KILL_NONE;
        if (c != NULL)
            rv__chain_remove(&all->killed, &c->io.killed);
        pthread_mutex_unlock(&all->io->lock);
        if (c == NULL)
            return;
        if (c->io.process != NULL)
            rv__process_kill(c->io.process, why);
        else
            drop(all, c, why, NULL);
    }
}

void rv__commands_turn(struct rv__commands *all, bool closing)
{
    take_new_and_killed(all);
    if (!closing) {
        start_queued(all);
        return;
    }
    for (int sort = 0; sort < 2; sort++)
        while (all->queue[sort].first != NULL)
            drop(all, command_of(all->queue[sort].first), RV__KILL_SHUTDOWN, NULL);
    for (struct rv__command *c = command_of(all->running.first); c != NULL;
         c = command_of(c->io.listed.next))
        rv__process_kill(c->io.process, RV__KILL_SHUTDOWN);
}

bool rv__commands_idle(const struct rv__commands *all)
{
    return all->running.first == NULL && all->queue[0].first == NULL && all->queue[1].first == NULL;
}

void rv__commands_close(struct rv__commands *all)
{
    uv_close((uv_handle_t *)&all->again, NULL);
}

/* ---------------------------------------------------------------------------- life time --- */

static int copy_environment(struct rv__processes *p)
{
    size_t count = 0, bytes = 0;
    for (char **e = environ; e != NULL && *e != NULL; e++, count++)
        bytes += strlen(*e) + 1;
    p->env = rv__alloc((count + 1) * sizeof *p->env + bytes); /* one block: pointers, then texts */
    if (p->env == NULL)
        return RV_ENOMEM;
    char *at = (char *)(p->env + count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(environ[i]) + 1;
        memcpy(at, environ[i], len);
        p->env[i] = at;
        at += len;
    }
    p->env[count] = NULL;
    return RV_OK;
}

/* Make the directory: absolute, for commands that run elsewhere; private, so that no other user can put a file
 * there. */
static int make_dir(struct rv__processes *p, const char *in, rv_error *err)
{
    char real[PATH_MAX];
    struct rv__buf path;
    if (in == NULL)
        in = getenv("TMPDIR");
    if (in == NULL || *in == '\0')
        in = "/tmp";
    if (realpath(in, real) == NULL)
        return rv__fail(err, RV_ESYS, "the temporary directory '%s': %s", in,
                        strerrordesc_np(errno));
    rv__buf_init(&path, RV__CONTROL_PATH - 32); /* a number is appended */
    rv__buf_fmt(&path, "%s/rival-XXXXXX", real);
    int rc = rv__buf_err(&path, err);
    if (rc < 0) {
        rv__buf_done(&path);
        return rc;
    }
    p->dir = rv__buf_take(&path);
    if (mkdtemp(p->dir) == NULL) {
        rc = rv__fail(err, RV_ESYS, "cannot make a directory in '%s': %s", in,
                      strerrordesc_np(errno));
        rv__free(p->dir);
        p->dir = NULL;
    }
    return rc;
}

static int processes_init(struct rv__processes *p, const struct rv__io_opts *opts, size_t max,
                          rv_error *err)
{
    int rc = copy_environment(p);
    p->room = rv__spawn_room_new();
    p->scratch = rv__alloc(RV__READ_BYTES);
    if (rc < 0 || p->room == NULL || p->scratch == NULL)
        return rv__nomem(err);
    p->null_fd = rv__fd_above_stdio(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (p->null_fd < 0)
        return rv__fail(err, RV_ESYS, "cannot open /dev/null: %s", strerrordesc_np(errno));
    rc = make_dir(p, opts->temp_dir, err);
    if (rc < 0)
        return rc;
    return rv__warden_start(&p->warden, p->dir, max, err);
}

static void processes_done(struct rv__processes *p)
{
    rv__warden_stop(&p->warden);
    if (p->dir != NULL)
        (void)rmdir(p->dir); /* fails if a command put files there: these are not ours */
    rv__free(p->dir);
    if (p->null_fd >= 0)
        close(p->null_fd);
    rv__free(p->scratch);
    rv__spawn_room_free(p->room);
    rv__free(p->env);
    rv__arena_done(&p->arena);
}

int rv__commands_new(struct rv__io *io, const struct rv__io_opts *opts, struct rv__commands **ret,
                     rv_error *err)
{
    size_t max = opts->max_processes != 0 ? opts->max_processes : RV__IO_PROCESSES;
    if (max > RV__IO_PROCESSES_MAX)
        return rv__fail(err, RV_EINVAL, "max_processes is %zu: at most %d is possible", max,
                        RV__IO_PROCESSES_MAX);
    struct rv__commands *all = rv__zalloc(1, sizeof *all);
    if (all == NULL)
        return rv__nomem(err);
    all->io = io;
    all->max[0] = max;
    all->max[1] = RV__IO_SERVICES;
    for (int sort = 0; sort < 2; sort++) {
        rv__chain_init(&all->inbox[sort]);
        rv__chain_init(&all->queue[sort]);
    }
    rv__chain_init(&all->killed);
    rv__chain_init(&all->running);
    all->processes = (struct rv__processes){
        .loop = &io->loop, .warden = { .socket = -1 }, .null_fd = -1, .over = on_over, .arg = all
    };
    rv__arena_init(&all->processes.arena, START_BYTES);
    int rc = processes_init(&all->processes, opts, max + RV__IO_SERVICES, err);
    if (rc < 0) {
        rv__commands_free(all);
        return rc;
    }
    uv_timer_init(&io->loop, &all->again); /* cannot fail */
    all->again.data = all;
    *ret = all;
    return RV_OK;
}

void rv__commands_free(struct rv__commands *all)
{
    if (all == NULL)
        return;
    processes_done(&all->processes);
    rv__free(all);
}
