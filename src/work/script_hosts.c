/* script_hosts.c: the Node hosts of an engine.
 *
 *   loading ──its workflows are registered──▶ offering ──a newer one of the same files──▶ retired ──nothing in flight──▶ ended
 *
 * Changed files get a new process, since Node.js cannot unload a module. The old process takes no new work, and ends
 * when its work is done. If the new one cannot load a workflow, the old one keeps it: a broken file stays as it was. */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/scripts.h"
#include "work/work.h"

struct rv__script_host {
    struct rv__script_host *next; /* the next older one */
    struct rv__script_hosts *hosts;
    struct rv__script *script;
    struct rv__str text; /* what it reported when it was first started; belongs to the script */
    char *root;
    uint64_t print;
    void *registry;
    /* protected by the lock of all hosts: */
    struct rv__session *session; /* referenced; NULL: not connected now */
    bool offering, retired, failed;
};

/* There are two locks. `loading` is held by whoever changes the list, for the whole change, and never by the
 * engine's loop or a thread of a host. `lock` is held for moments, by everybody. */
struct rv__script_hosts {
    struct rv__executor *workers;
    struct rv__script_owner owner;
    pthread_mutex_t loading, lock;
    struct rv__script_host *first;
    bool stopped;
};

static void host_free(struct rv__script_host *host)
{
    rv__script_free(host->script);
    rv__session_unref(host->session);
    rv__free(host->root);
    rv__free(host);
}

/* The present session, referenced. NULL: there is none. */
static struct rv__session *session_of(struct rv__script_host *host)
{
    pthread_mutex_lock(&host->hosts->lock);
    struct rv__session *session = host->session != NULL ? rv__session_ref(host->session) : NULL;
    pthread_mutex_unlock(&host->hosts->lock);
    return session;
}

static void offer(struct rv__script_host *host)
{
    const struct rv__script_owner *owner = &host->hosts->owner;
    struct rv__session *session = session_of(host);
    if (session != NULL)
        owner->offer(owner->owner, host->registry, host->root, session, host->text);
    rv__session_unref(session);
}

/* ------------------------------------------------------------------- what its process does --- */

static void is_ready(void *arg, int fd, int64_t pid, const struct rv__frame *hello)
{
    struct rv__script_host *host = arg;
    struct rv__session *session = NULL, *before;
    struct rv__str text = { NULL, 0 }, sees = { NULL, 0 };
    pthread_mutex_lock(&host->hosts->lock); /* start() has set `script` when this is free */
    struct rv__script *script = host->script;
    pthread_mutex_unlock(&host->hosts->lock);
    if (rv__script_wait(script, &text, NULL) == RV_OK)
        (void)rv__json_get(text, "sees", &sees);
    if (rv__workers_adopt(host->hosts->workers, fd, pid, hello, sees, &session, NULL) < 0)
        return; /* the engine closes, or has too many sessions: the process is ended, and started again */
    pthread_mutex_lock(&host->hosts->lock);
    before = host->session;
    host->session = session;
    bool offering = host->offering && !host->retired;
    pthread_mutex_unlock(&host->hosts->lock);
    rv__session_unref(before);
    if (offering)
        offer(host);
}

static enum rv__script_verdict judge(void *arg)
{
    struct rv__script_host *host = arg;
    const struct rv__script_owner *owner = &host->hosts->owner;
    struct rv__session *session = session_of(host);
    enum rv__script_verdict verdict = RV__SCRIPT_GOES_ON;
    pthread_mutex_lock(&host->hosts->lock);
    bool retired = host->retired;
    pthread_mutex_unlock(&host->hosts->lock);
    if (retired && (session == NULL || owner->is_idle(owner->owner, session)))
        verdict = RV__SCRIPT_IS_OVER;
    else if (session == NULL || rv__session_is_lost(session))
        verdict = retired ? RV__SCRIPT_IS_OVER : RV__SCRIPT_HANGS;
    rv__session_unref(session);
    return verdict;
}

/* ------------------------------------------------------------------------------- loading --- */

static bool is_of(const struct rv__script_host *host, const struct rv__script_request *request)
{
    return host->registry == request->registry && strcmp(host->root, request->root) == 0;
}

/* The host that has exactly these files, if it is healthy. */
static struct rv__script_host *find_same(struct rv__script_hosts *hosts,
                                         const struct rv__script_request *request)
{
    struct rv__script_host *host = hosts->first;
    while (host != NULL && !is_of(host, request)) /* the newest host of these files */
        host = host->next;
    return host != NULL && host->print == request->print && !host->failed ? host : NULL;
}

/* Take the hosts that have ended out of the list, and return them. Call with the lock held. */
static struct rv__script_host *take_over(struct rv__script_hosts *hosts)
{
    struct rv__script_host *gone = NULL, **at = &hosts->first;
    while (*at != NULL) {
        struct rv__script_host *host = *at;
        if ((host->retired || host->failed) && rv__script_is_over(host->script)) {
            *at = host->next;
            host->next = gone;
            gone = host;
        } else {
            at = &host->next;
        }
    }
    return gone;
}

static int start(struct rv__script_hosts *hosts, const struct rv__script_request *request,
                 struct rv__script_host **ret, rv_error *err)
{
    struct rv__script_host *host = rv__zalloc(1, sizeof *host);
    if (host == NULL)
        return rv__nomem(err);
    host->hosts = hosts;
    host->print = request->print;
    host->registry = request->registry;
    host->root = rv__alloc(strlen(request->root) + 1);
    if (host->root == NULL) {
        rv__free(host);
        return rv__nomem(err);
    }
    memcpy(host->root, request->root, strlen(request->root) + 1);
    struct rv__script_opts opts = { .folder = request->folder,
                                    .files = request->files,
                                    .ready = is_ready,
                                    .judge = judge,
                                    .arg = host,
                                    .kept = request->kept };
    pthread_mutex_lock(&hosts->lock);
    int rc = hosts->stopped ? rv__fail(err, RV_ECLOSED, "the engine has closed")
                            : rv__script_new(&opts, &host->script, err);
    if (rc == RV_OK) {
        host->next = hosts->first;
        hosts->first = host;
    }
    pthread_mutex_unlock(&hosts->lock);
    if (rc < 0) {
        rv__free(host->root);
        rv__free(host);
        return rc;
    }
    *ret = host;
    return RV_OK;
}

int rv__script_hosts_load(struct rv__script_hosts *hosts, const struct rv__script_request *request,
                          struct rv__script_host **ret, struct rv__str *text, rv_error *err)
{
    int rc = RV_OK;
    pthread_mutex_lock(&hosts->loading);
    pthread_mutex_lock(&hosts->lock);
    struct rv__script_host *gone = take_over(hosts), *host = find_same(hosts, request);
    pthread_mutex_unlock(&hosts->lock);
    while (gone != NULL) {
        struct rv__script_host *next = gone->next;
        host_free(gone);
        gone = next;
    }
    if (host == NULL)
        rc = start(hosts, request, &host, err);
    if (rc == RV_OK) {
        rc = rv__script_wait(host->script, &host->text, err);
        pthread_mutex_lock(&hosts->lock);
        host->failed = rc < 0;
        pthread_mutex_unlock(&hosts->lock);
    }
    if (rc == RV_OK) {
        *ret = host;
        *text = host->text;
    }
    pthread_mutex_unlock(&hosts->loading);
    return rc;
}

void rv__script_hosts_offer(struct rv__script_hosts *hosts, struct rv__script_host *host)
{
    struct rv__str problems;
    struct rv__script_request same = { .root = host->root, .registry = host->registry };
    bool partial = rv__json_get(host->text, "problems", &problems) && rv__json_count(problems) > 0;
    pthread_mutex_lock(&hosts->loading);
    pthread_mutex_lock(&hosts->lock);
    bool again = host->offering;
    host->offering = true;
    pthread_mutex_unlock(&hosts->lock);
    offer(host);
    for (struct rv__script_host *old = again ? NULL : host->next; old != NULL; old = old->next) {
        struct rv__session *session = is_of(old, &same) ? session_of(old) : NULL;
        if (!is_of(old, &same))
            continue;
        if (session != NULL)
            hosts->owner.withdraw(hosts->owner.owner, session,
                                  partial ? host->text : rv__str(NULL));
        rv__session_unref(session);
        pthread_mutex_lock(&hosts->lock);
        old->retired |= !partial;
        pthread_mutex_unlock(&hosts->lock);
    }
    pthread_mutex_unlock(&hosts->loading);
}

void rv__script_hosts_forget(struct rv__script_hosts *hosts, const void *registry)
{
    if (hosts == NULL)
        return;
    pthread_mutex_lock(&hosts->loading);
    for (struct rv__script_host *host = hosts->first; host != NULL; host = host->next) {
        struct rv__session *session = host->registry == registry ? session_of(host) : NULL;
        if (host->registry != registry)
            continue;
        if (session != NULL)
            hosts->owner.withdraw(hosts->owner.owner, session, rv__str(NULL));
        rv__session_unref(session);
        pthread_mutex_lock(&hosts->lock);
        host->retired = true;
        host->registry = NULL;
        pthread_mutex_unlock(&hosts->lock);
    }
    pthread_mutex_unlock(&hosts->loading);
}

/* ---------------------------------------------------------------------------- life time --- */

int rv__script_hosts_new(struct rv__executor *workers, const struct rv__script_owner *owner,
                         struct rv__script_hosts **ret, rv_error *err)
{
    struct rv__script_hosts *hosts = rv__zalloc(1, sizeof *hosts);
    if (hosts == NULL)
        return rv__nomem(err);
    hosts->workers = workers;
    hosts->owner = *owner;
    pthread_mutex_init(&hosts->lock, NULL); /* on Linux these cannot fail */
    pthread_mutex_init(&hosts->loading, NULL);
    *ret = hosts;
    return RV_OK;
}

void rv__script_hosts_stop(struct rv__script_hosts *hosts)
{
    if (hosts == NULL)
        return;
    pthread_mutex_lock(&hosts->lock);
    hosts->stopped = true;
    for (struct rv__script_host *host = hosts->first; host != NULL; host = host->next)
        rv__script_stop(host->script);
    pthread_mutex_unlock(&hosts->lock);
}

void rv__script_hosts_free(struct rv__script_hosts *hosts)
{
    if (hosts == NULL)
        return;
    rv__script_hosts_stop(hosts);
    while (hosts->first != NULL) {
        struct rv__script_host *host = hosts->first;
        hosts->first = host->next;
        host_free(host);
    }
    pthread_mutex_destroy(&hosts->loading);
    pthread_mutex_destroy(&hosts->lock);
    rv__free(hosts);
}

int rv__services_scripts(struct rv__services *services, struct rv__script_hosts **ret,
                         rv_error *err)
{
    struct rv__wires *wires = NULL;
    int rc = rv__services_wires(services, &wires, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&services->hosts_lock);
    if (services->scripts == NULL)
        rc = rv__script_hosts_new(services->workers, &services->script_owner, &services->scripts,
                                  err);
    *ret = services->scripts;
    pthread_mutex_unlock(&services->hosts_lock);
    return rc;
}
