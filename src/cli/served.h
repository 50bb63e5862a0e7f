/* served.h: the workflow files of a server: registered at the start, and again when they change. */
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
    size_t workflows;        /* how many there are now */
    struct rv__buf reported; /* the problems last reported, so that each is reported once */
};
void rv__served_init(struct rv__served *served);
void rv__served_done(struct rv__served *served);

/* Register new and changed workflows; remove those whose file is gone or now has another name in it. A broken file
 * is reported, and its old workflow stays. Changes are logged. Thread: one at a time. */
void rv__served_load(struct rv__served *served);

/* ------------------------------------------------------------------------------------------
 * When to: watch.c */

struct rv__watch;

/* Load once. NULL: the reason is in the log. */
struct rv__watch *rv__watch_new(struct rv__served *served, bool files);
/* Load again at SIGHUP, which also calls `hangup`; and, with `files`, when a file changes that may be a workflow.
 * Runs on its own thread, and also loads what changed since rv__watch_new(). SIGHUP must be blocked in every
 * thread. False: the reason is in the log. */
bool rv__watch_begin(struct rv__watch *watch, void (*hangup)(void *arg), void *arg);
void rv__watch_free(struct rv__watch *watch); /* waits for a load under way; NULL is allowed */

#endif
