/* served.h: the workflow files of a process that serves: registered, and registered again. */
#ifndef RV_CLI_SERVED_H
#define RV_CLI_SERVED_H

#include "base/log.h"
#include "base/str.h"
#include "cli/cli.h"

struct rv__served {
    rv_engine *engine;
    struct rv__log *log;
    const char *const *paths; /* files and folders */
    size_t count;
    size_t workflows;        /* that there are now */
    struct rv__buf reported; /* the problems as they were told last: the same ones are told once */
};
void rv__served_init(struct rv__served *served);
void rv__served_done(struct rv__served *served);

/* Register what is there: new and changed workflows; take back those whose file is gone, or has another
 * name in it now. A file that is broken is told and keeps what it was. What has changed goes to the log.
 * Thread: one at a time. */
void rv__served_load(struct rv__served *served);

/* ------------------------------------------------------------------------------------------
 * When to: watch.c */

struct rv__watch;

/* Load now. NULL: the reason is in the log. */
struct rv__watch *rv__watch_new(struct rv__served *served, bool files);
/* And load again at SIGHUP, when `hangup` is called too, and, with `files`, when something changes that may
 * be a workflow, on a thread of its own; also for what came since rv__watch_new(). SIGHUP is blocked in
 * every thread. False: the reason is in the log. */
bool rv__watch_begin(struct rv__watch *watch, void (*hangup)(void *arg), void *arg);
void rv__watch_free(struct rv__watch *watch); /* after a load that is under way; NULL is allowed */

#endif
