/* watch.c: decides when a server loads its workflow files again.
 *
 * Folders are watched, not files: editors write a new file and rename it over the old one. Before each load the
 * whole tree is searched again, so that new folders are watched, and the load itself finds files that were added to
 * them before. Changes are collected for a moment: a save is several of them, and a checkout thousands. */
#include "cli/served.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
    QUIET_MS = 150,     /* without a change, before a load */
    GATHER_MS = 1000,   /* at the latest, if changes do not stop */
    FOLDERS_MAX = 8192, /* often the system's own limit; SIGHUP works beyond it */
    EVENT_BYTES = 64 << 10,
};

static const uint32_t changes = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                IN_CREATE | IN_DELETE_SELF | IN_MOVE_SELF;

/* The folder of a path on the command line: watched for the path itself. */
struct parent {
    int number; /* of the watch; -1: none */
    char name[NAME_MAX + 1];
};

struct rv__watch {
    struct rv__served *served;
    int stop, signals, files; /* files -1: not watched */
    struct parent *parents;   /* one for each path */
    bool warned;              /* about files that are not watched */
    void (*hangup)(void *arg);
    void *arg;
    pthread_t thread;
    bool runs; /* the thread runs */
    char bytes[EVENT_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
};

/* -------------------------------------------------------------------------------- watching --- */

static void tell_unwatched(struct rv__watch *w, const char *path, const char *why)
{
    if (!w->warned)
        rv__log(w->served->log, RV__LOG_WARN, "some files are not watched: SIGHUP reloads them",
                RV__LOG_STR("path", path), RV__LOG_STR("why", why));
    w->warned = true;
}

static void watch_tree(struct rv__watch *w, const char *path)
{
    char *paths[] = { (char *)(uintptr_t)path, NULL }; /* fts only reads it */
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    FTSENT *entry;
    int count = 0;
    while (tree != NULL && (entry = fts_read(tree)) != NULL) {
        if (entry->fts_info != FTS_D)
            continue;
        if (entry->fts_level > 0 &&
            (entry->fts_name[0] == '.' || strcmp(entry->fts_name, "node_modules") == 0)) {
            (void)fts_set(tree, entry, FTS_SKIP); /* hidden, or packages: skipped */
            continue;
        }
        if (count++ == FOLDERS_MAX)
            tell_unwatched(w, entry->fts_path, "too many folders");
        else if (count <= FOLDERS_MAX &&
                 inotify_add_watch(w->files, entry->fts_path, changes) < 0 &&
                 errno != ENOENT) /* deleted meanwhile */
            tell_unwatched(w, entry->fts_path, strerrordesc_np(errno));
    }
    if (tree != NULL)
        (void)fts_close(tree); /* only read */
}

static void watch_parent(struct rv__watch *w, const char *path, struct parent *parent)
{
    struct rv__buf folder;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    const char *slash = memrchr(path, '/', len);
    const char *name = slash != NULL ? slash + 1 : path;
    size_t name_len = len - (size_t)(name - path);
    if (parent->number >= 0 || name_len == 0 || name_len > NAME_MAX || name[name_len - 1] == '.')
        return; /* already watched; or "." and ".." */
    rv__buf_init(&folder, PATH_MAX);
    rv__buf_add(&folder, path, (size_t)(name - path));
    rv__buf_char(&folder, '.');
    if (folder.rc == RV_OK) /* inside a watched tree: EEXIST, which is fine */
        parent->number = inotify_add_watch(w->files, folder.text, changes | IN_MASK_CREATE);
    snprintf(parent->name, sizeof parent->name, "%.*s", (int)name_len, name);
    rv__buf_done(&folder);
}

static void watch_all(struct rv__watch *w)
{
    for (size_t i = 0; i < w->served->count; i++)
        watch_tree(w, w->served->paths[i]);
    for (size_t i = 0; i < w->served->count; i++)
        watch_parent(w, w->served->paths[i], &w->parents[i]);
}

static bool may_be_workflow(const char *name)
{
    static const char *const endings[] = { ".yaml", ".yml", ".json", ".c",  ".so",
                                           ".ts",   ".mts", ".js",   ".mjs" };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot, endings[i]) == 0)
            return name[0] != '.';
    return false;
}

static bool matters(const struct rv__watch *w, const struct inotify_event *event)
{
    const char *name = event->len > 0 ? event->name : "";
    if (event->mask & (IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF))
        return true;
    for (size_t i = 0; i < w->served->count; i++)
        if (event->wd == w->parents[i].number)
            return strcmp(name, w->parents[i].name) == 0;
    if (event->mask & IN_ISDIR)
        return name[0] != '.';
    return !(event->mask & IN_CREATE) && may_be_workflow(name); /* its content is still to come */
}

/* Was there a relevant change? */
static bool read_changes(struct rv__watch *w)
{
    bool any = false;
    ssize_t got;
    while ((got = read(w->files, w->bytes, sizeof w->bytes)) > 0)
        for (const char *at = w->bytes; at < w->bytes + got;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
            any = any || matters(w, event);
            at += sizeof *event + event->len;
        }
    return any;
}

/* --------------------------------------------------------------------------------- loading --- */

static void load(struct rv__watch *w, const char *why)
{
    rv__log(w->served->log, RV__LOG_DEBUG, "loading the files again", RV__LOG_STR("why", why));
    if (w->files >= 0)
        watch_all(w);
    rv__served_load(w->served);
}

static void *watch_main(void *arg)
{
    struct rv__watch *w = arg;
    struct signalfd_siginfo info;
    int64_t first_ms = -1, last_ms = 0; /* of the collected changes; -1: none */
    pthread_setname_np(pthread_self(), "rival-watch");
    for (;;) {
        struct pollfd polls[] = { { w->stop, POLLIN, 0 },
                                  { w->signals, POLLIN, 0 },
                                  { w->files, POLLIN, 0 } };
        int64_t now_ms = rv__mono_ms(rv__clock_real()), due_ms = last_ms + QUIET_MS;
        if (due_ms > first_ms + GATHER_MS)
            due_ms = first_ms + GATHER_MS;
        int timeout_ms = first_ms < 0 ? -1 : due_ms > now_ms ? (int)(due_ms - now_ms) : 0;
        if (poll(polls, sizeof polls / sizeof *polls, timeout_ms) < 0)
            continue; /* no memory: again */
        if (polls[0].revents != 0)
            return NULL;
        now_ms = rv__mono_ms(rv__clock_real());
        if (polls[1].revents != 0 && read(w->signals, &info, sizeof info) > 0) {
            rv__log(w->served->log, RV__LOG_INFO, "SIGHUP: loading the files again");
            load(w, "SIGHUP");
            w->hangup(w->arg);
        }
        if (polls[2].revents != 0 && read_changes(w)) {
            first_ms = first_ms < 0 ? now_ms : first_ms;
            last_ms = now_ms;
        } else if (first_ms >= 0 && now_ms >= due_ms) {
            first_ms = -1;
            load(w, "files have changed");
        }
    }
}

static void tell_failed(const struct rv__watch *w)
{
    rv__log(w->served->log, RV__LOG_ERROR, "cannot watch",
            RV__LOG_STR("why", strerrordesc_np(errno)));
}

struct rv__watch *rv__watch_new(struct rv__served *served, bool files)
{
    struct rv__watch *w = rv__zalloc(1, sizeof *w);
    sigset_t hup;
    if (w == NULL)
        return NULL;
    *w = (struct rv__watch){ .served = served, .files = -1 };
    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    w->stop = eventfd(0, EFD_CLOEXEC);
    w->signals = signalfd(-1, &hup, SFD_CLOEXEC | SFD_NONBLOCK);
    w->parents = rv__zalloc(served->count + 1, sizeof *w->parents);
    if (files)
        w->files = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    bool good = w->stop >= 0 && w->signals >= 0 && w->parents != NULL && (!files || w->files >= 0);
    for (size_t i = 0; good && i < served->count; i++)
        w->parents[i].number = -1;
    if (good && files)
        watch_all(w); /* before the first load: no change is missed */
    if (good) {
        rv__served_load(served);
        return w;
    }
    tell_failed(w);
    rv__watch_free(w);
    return NULL;
}

bool rv__watch_begin(struct rv__watch *w, void (*hangup)(void *arg), void *arg)
{
    w->hangup = hangup;
    w->arg = arg;
    errno = pthread_create(&w->thread, NULL, watch_main, w);
    w->runs = errno == 0;
    if (!w->runs)
        tell_failed(w);
    return w->runs;
}

void rv__watch_free(struct rv__watch *w)
{
    uint64_t one = 1;
    if (w == NULL)
        return;
    if (w->runs) {
        (void)!write(w->stop, &one, sizeof one);
        pthread_join(w->thread, NULL);
    }
    const int open[] = { w->stop, w->signals, w->files };
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (open[i] >= 0)
            (void)close(open[i]); /* nothing is buffered */
    rv__free(w->parents);
    rv__free(w);
}
