/* work.h: what an attempt does and sees, from the grant to the answer.
 *
 * An engine hands out a piece of work (struct rv_ctx, context.h) and gets it back, answered, through `post`. In
 * between it belongs to the threads that do it: nothing here uses what belongs to the engine's loop. What all
 * attempts of an engine share is in struct rv__services. */
#ifndef RV_WORK_WORK_H
#define RV_WORK_WORK_H

#include <pthread.h>
#include <stdatomic.h>

#include <rival/rival.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "define/define.h"
#include "exec/exec.h"
#include "flow/flow.h"
#include "schema/schema.h"
#include "store/store.h"
#include "work/builtin.h"
#include "work/context.h"
#include "work/exprs.h"
#include "work/files.h"
#include "work/invoked.h"
#include "work/save.h"
#include "work/scripts.h"
#include "work/secrets.h"
#include "work/workers.h"

/* What the attempts of one engine share. The engine fills it in and frees its contents. */
struct rv__reading;
struct rv__services {
    struct rv__clock *clock;
    struct rv__reading *reading; /* for reads within a scope */
    const char *
        store_name; /* for commands, if something listens on the socket beside the store; NULL: nothing does */
    _Atomic(const char *) url; /* of the server, for commands; NULL: there is none */
    pthread_mutex_t *reader_lock;
    struct rv__store **reader;       /* for steps; one at a time, with that lock held */
    struct rv__evaluator *evaluator; /* of expressions; in a test engine made when first needed */
    bool by_hand;                    /* a test engine: everything runs on the caller's thread */
    struct rv__expr_texts *texts;    /* in a test engine: cache for expressions that need no jq */
    struct rv__io *
        io; /* of commands and requests; made by the loop for the first one; in a test engine: none */
    struct rv__providers *providers;       /* of models, from the configuration; NULL: none */
    struct rv__tool_servers *tool_servers; /* MCP servers, from the configuration; NULL: none */
    bool http_deny_private;                /* requests to private addresses are refused */
    struct rv__wires
        *wires; /* the loop of connections; made with the first listener, with hosts_lock held */
    struct rv__executor
        *workers; /* executor of functions of workers; belongs to the engine. NULL: a test engine */
    pthread_mutex_t hosts_lock;
    struct rv__hosts
        *hosts; /* of functions in files; made with the first one, with hosts_lock held */
    struct rv__hosts_opts hosts_opts;
    struct rv__script_hosts
        *scripts; /* of scripts; made with the first one, with hosts_lock held */
    struct rv__script_owner script_owner;
    const atomic_bool *stopped; /* the engine has stopped: do not wait any longer */

    void (*post)(
        struct rv_ctx *ctx); /* it is answered, and belongs to the engine again. Thread: any */
    /* A worker has news. rv__news_done() must be called after they were taken. False: nobody
     * takes them any more. Thread: that of connections. */
    bool (*worker_says)(void *owner, struct rv__news *news);
    void *owner;
};

/* A `tool` step has left this note, and no attempt will continue with it: tell its server, if possible. Thread: the
 * loop's; once the I/O loop exists, any. */
void rv__tool_give_up(struct rv__services *services, struct rv__str note);

/* Create the I/O loop if there is none; by hand there never is one. Thread: the loop's. */
int rv__services_io(struct rv__services *services, rv_error *err);
int rv__services_wires(struct rv__services *services, struct rv__wires **ret, rv_error *err);
int rv__services_hosts(struct rv__services *services, struct rv__hosts **ret, rv_error *err);
int rv__services_scripts(struct rv__services *services, struct rv__script_hosts **ret,
                         rv_error *err);
/* The evaluator of expressions. Thread: any; in a test engine only the caller's, since this may create it. */
int rv__services_evaluator(struct rv__services *services, struct rv__evaluator **ret,
                           rv_error *err);

/* A cache of short values of a run, used with the reader's lock held: pieces of items, which the next iterations
 * need, too. One entry for each forEach around a step. All zero: empty. */
struct rv__pieces {
    struct rv__piece {
        uint64_t number;
        struct rv__blob *text; /* referenced */
    } at[4];
    unsigned next;
};
void rv__pieces_done(struct rv__pieces *pieces);

/* Reads finished iterations and values of a run from the store. */
struct rv__stored_rows {
    struct rv__row_source source; /* first */
    const char *run_id;
    struct rv__store *const *store; /* read with `lock` held, if there is one */
    pthread_mutex_t *lock;
    struct rv__pieces *pieces; /* used with that lock held; NULL: no cache */
    bool at_hand;              /* only values that can be had without waiting; otherwise RV_EBUSY */
};
void rv__stored_rows_init(struct rv__stored_rows *rows, const char *run_id,
                          struct rv__store *const *store, pthread_mutex_t *lock);
void rv__stored_rows_of(struct rv__stored_rows *rows, const rv_ctx *ctx); /* for this attempt */

#endif
