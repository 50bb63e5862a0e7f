/* scripts.h: Node hosts of an engine: each has the workflow files in TypeScript and JavaScript of one path that was registered.
 *
 * A host is a worker that the engine starts itself: its functions are offered through a session, as those of any worker. What differs: its
 * workflows are registered as those of files, by whoever loads them, and the host is started again when it dies.
 * Thread: any, but for what says otherwise. */
#ifndef RV_WORK_SCRIPTS_H
#define RV_WORK_SCRIPTS_H

#include "exec/exec.h"
#include "work/workers.h"

struct rv__script_hosts;
struct rv__script_host;

/* What hosts need of an engine. Called on threads of theirs and of who loads files. */
struct rv__script_owner {
    /* The functions in this text (a frame `register`) are the session's from now on, for this registry. */
    void (*offer)(void *owner, void *registry, const char *root, struct rv__session *session,
                  struct rv__str text);
    /* A newer host of the same files has come: the session keeps what `text`, which is that one's, has not, if that one has problems;
     * otherwise nothing. */
    void (*withdraw)(void *owner, struct rv__session *session, struct rv__str text);
    /* Nothing of it is in flight, and it offers nothing. */
    bool (*is_idle)(void *owner, struct rv__session *session);
    void *owner;
};

struct rv__script_request {
    const char *root;   /* absolute: what was registered; by it a host is known again */
    const char *folder; /* absolute: where the npm package is looked for */
    const char *files;  /* a JSON array */
    uint64_t print;     /* of the files as they are now: the same again is the same host */
    void *registry;     /* whose it is */
    struct rv__script_kept **kept; /* a process that has described them, to be taken; NULL: none */
};

/* A host that has these files, and what it said of them. Waits until they are loaded. It belongs to `hosts`.
 * Errors: as of rv__script_describe(); RV_ECLOSED. */
int rv__script_hosts_load(struct rv__script_hosts *hosts, const struct rv__script_request *request,
                          struct rv__script_host **ret, struct rv__str *text, rv_error *err);
/* Its workflows are registered: its functions are offered, now and whenever it is started again, and those of older hosts of the
 * same files give way. */
void rv__script_hosts_offer(struct rv__script_hosts *hosts, struct rv__script_host *host);
/* The registry goes: its hosts offer nothing any more, and end. */
void rv__script_hosts_forget(struct rv__script_hosts *hosts, const void *registry);

int rv__script_hosts_new(struct rv__executor *workers, const struct rv__script_owner *owner,
                         struct rv__script_hosts **ret, rv_error *err);
void rv__script_hosts_stop(struct rv__script_hosts *hosts); /* they end; NULL is allowed */
void rv__script_hosts_free(struct rv__script_hosts *hosts); /* and have ended; NULL is allowed */

#endif
