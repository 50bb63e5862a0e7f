/* work.h: what an attempt does and sees, from the grant to the answer.
 *
 * An engine hands out a piece of work (struct rv_ctx, context.h) and gets it back, answered, through
 * `post`. In between it belongs to the threads that do it: nothing here touches what belongs to the
 * engine's loop. What all attempts of an engine share is its workshop. */
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

/* What the attempts of one engine use. The engine fills it in and frees what is in it. */
struct rv__reading;
struct rv__services {
    struct rv__clock *clock;
    struct rv__reading *reading; /* of those who read through a scope */
    const char *store_name; /* for commands, where somebody listens beside it; NULL: nobody does */
    _Atomic(const char *) url; /* the same, of the server; NULL: there is none */
    pthread_mutex_t *reader_lock;
    struct rv__store **reader;       /* of steps, one at a time: under that lock */
    struct rv__evaluator *evaluator; /* of expressions; by hand made when first needed */
    bool by_hand;                    /* with a kit: nothing goes on beside who runs it */
    struct rv__expr_texts *texts;    /* by hand: of expressions that need no jq */
    struct rv__io
        *io; /* of commands and requests; made with the first, by the loop; by hand: none */
    struct rv__providers *providers; /* of models, as the configuration has them; NULL: none */
    struct rv__tool_servers *tool_servers; /* of MCP, likewise */
    bool http_deny_private;                /* requests to private addresses are refused */
    struct rv__wires *wires; /* of connections; made with the first listener, under hosts_lock */
    struct rv__executor *workers; /* of functions of workers; the engine's. NULL: by hand */
    pthread_mutex_t hosts_lock;
    struct rv__hosts *hosts; /* of functions of files; made with the first; under hosts_lock */
    struct rv__hosts_opts hosts_opts;
    struct rv__script_hosts *scripts; /* of scripts; made with the first; under hosts_lock */
    struct rv__script_owner script_owner;
    const atomic_bool *stopped; /* nobody waits for more than an answer */

    void (*post)(struct rv_ctx *ctx); /* it is answered, and the engine's again. Thread: any */
    /* A worker says something: rv__news_done() when it was taken. False: nobody takes it any more.
     * Thread: that of connections. */
    bool (*worker_says)(void *owner, struct rv__news *news);
    void *owner;
};

int rv__services_wires(struct rv__services *services, struct rv__wires **ret, rv_error *err);
int rv__services_hosts(struct rv__services *services, struct rv__hosts **ret, rv_error *err);
int rv__services_scripts(struct rv__services *services, struct rv__script_hosts **ret,
                         rv_error *err);
/* Who evaluates expressions. Thread: any; by hand: the kit's, since this may make it. */
int rv__services_evaluator(struct rv__services *services, struct rv__evaluator **ret,
                           rv_error *err);

/* Short values of a run that were read last, under the reader's lock: pieces of items, of which each has what
 * the next iterations want too. One for each forEach around a step. All zero: none. */
struct rv__pieces {
    struct rv__piece {
        uint64_t number;
        struct rv__blob *text; /* held */
    } at[4];
    unsigned next;
};
void rv__pieces_done(struct rv__pieces *pieces);

/* Finished iterations and values of a run, from the store. */
struct rv__stored_rows {
    struct rv__row_source source; /* first */
    const char *run_id;
    struct rv__store *const *store; /* read under `lock`, if there is one */
    pthread_mutex_t *lock;
    struct rv__pieces *pieces; /* under that lock; NULL: none are kept */
    bool at_hand; /* values: only if that waits for nothing and nobody, else RV_EBUSY */
};
void rv__stored_rows_init(struct rv__stored_rows *rows, const char *run_id,
                          struct rv__store *const *store, pthread_mutex_t *lock);
void rv__stored_rows_of(struct rv__stored_rows *rows, const rv_ctx *ctx); /* for this attempt */

#endif
