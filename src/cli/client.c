/* client.c: chooses a store or a server, and passes the calls to it. */
#include "cli/client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/store_name.h"
#include "cli/document.h"
#include "cli/remote.h"
#include "cli/runs.h"
#include "cli/text.h"

enum {
    LOOK_AGAIN_MS = 3000, /* between looks at the state, while waiting for events */
    NODES_MOST = 5000000, /* of one run: an engine lists fewer (docs/reference/limits.md) */
    LOOK_MS = 100,        /* a store that another process drives sends no events: look this often */
};

struct rv__client {
    rv_engine *engine; /* one of the two */
    struct rv__wire *wire;
    bool borrowed;    /* the caller owns the engine */
    const char *pass; /* token of the execution that started this command, for reads; NULL: none */
    char name[300];
};

/* ------------------------------------------------------------------------------------ where --- */

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

bool rv__cli_is_execution(void)
{
    const char *token = from_environment("RIVAL_TOKEN");
    return token != NULL && strncmp(token, RV_TOKEN_PREFIX, sizeof RV_TOKEN_PREFIX - 1) == 0;
}

static void put_option(struct rv__buf *out, const char *name, const char *value)
{
    if (value == NULL)
        return;
    rv__buf_fmt(out, " %s ", name);
    rv__text_shell(out, value);
}

void rv__where_again(const struct rv__where *where, struct rv__buf *out)
{
    put_option(out, "--server", where->server);
    put_option(out, "--token-file", where->token_file);
    if (where->store != NULL) {
        struct rv__buf shown;
        rv__buf_init(&shown, SIZE_MAX / 8);
        rv__store_name_shown(where->store, &shown);
        put_option(out, "--store", shown.text);
        rv__buf_done(&shown);
    }
}

static struct rv__client *client_new(rv_engine *engine, struct rv__wire *wire, const char *name)
{
    struct rv__client *client = rv__zalloc(1, sizeof *client);
    struct rv__buf shown;
    if (client == NULL)
        return NULL;
    client->engine = engine;
    client->wire = wire;
    if (wire == NULL && rv__cli_is_execution())
        client->pass = from_environment("RIVAL_TOKEN");
    rv__buf_init(&shown, sizeof client->name);
    rv__store_name_shown(name, &shown);
    snprintf(client->name, sizeof client->name, "%s", shown.len > 0 ? shown.text : "");
    rv__buf_done(&shown);
    return client;
}

struct rv__client *rv__client_of(rv_engine *engine)
{
    struct rv__client *client = client_new(engine, NULL, "");
    if (client != NULL) {
        client->borrowed = true;
        client->pass = NULL; /* it drives its runs itself */
    }
    return client;
}

int rv__where_wire(const struct rv__where *where, const char *url, struct rv__wire **ret,
                   rv_error *err)
{
    struct rv__buf token;
    const char *secret = from_environment("RIVAL_TOKEN");
    int rc = RV_OK;
    rv__buf_init(&token, 0);
    if (where->token_file != NULL) {
        rc = rv__token_file_first(where->token_file, &token, err);
        secret = token.text;
    }
    if (rc == RV_OK)
        rc = rv__wire_new(url, secret, ret, err);
    rv__secret_done(&token);
    return rc;
}

/* Connect to the server, if it answers. */
static int reach(const char *url, const struct rv__where *where, struct rv__wire **ret,
                 rv_error *err)
{
    struct rv__buf answer;
    struct rv__wire *wire = NULL;
    int rc = rv__where_wire(where, url, &wire, err);
    if (rc < 0) {
        (void)rv__cli_fail(CLI_USAGE, err->message, NULL);
        return RV_EINVAL;
    }
    rv__buf_init(&answer, 0);
    rc = rv__wire_ask(wire, "GET", "/healthz", (struct rv__str){ NULL, 0 }, &answer, err);
    if (rc != 200 && rc >= 0)
        rc = rv__wire_problem(wire, rc, rv__buf_view(&answer), err);
    rv__buf_done(&answer);
    if (rc < 0) {
        rv__wire_free(wire);
        return rc;
    }
    *ret = wire;
    return RV_OK;
}

static const char *hint_for(int rc, bool usual)
{
    if (rc != RV_ECLOSED && rc != RV_ETIMEDOUT && rc != RV_ESYS) /* it did answer */
        return NULL;
    if (usual)
        return "`rival serve` starts one; `rival exec FILE` needs none; --store FILE looks into a "
               "store";
    return "is it running? --server or RIVAL_URL say where it is, --store FILE looks into a store";
}

struct rv__client *rv__client_server(const struct rv__where *where, const char **store, int *code)
{
    struct rv__wire *wire = NULL;
    rv_error err;
    const char *url = where->server != NULL ? where->server : from_environment("RIVAL_URL");
    bool usual = url == NULL;
    *code = CLI_OK;
    *store = where->store != NULL             ? where->store
             : where->server == NULL && usual ? from_environment("RIVAL_STORE")
                                              : NULL;
    if (where->store != NULL && where->server != NULL) {
        *code = rv__cli_fail(CLI_USAGE, "give --store or --server, not both", NULL);
        return NULL;
    }
    if (*store != NULL)
        return NULL;
    int rc = reach(usual ? RV__CLI_SERVER : url, where, &wire, &err);
    if (rc == RV_EINVAL) {
        *code = CLI_USAGE;
        return NULL;
    }
    if (rc < 0 && usual && rc == RV_ECLOSED) {
        *store = access(RV__CLI_STORE, F_OK) == 0 ? RV__CLI_STORE : NULL;
        return NULL;
    }
    struct rv__client *client = rc < 0 ? NULL : client_new(NULL, wire, rv__wire_url(wire));
    if (client == NULL) {
        *code = rv__cli_fail(CLI_FAILED, rc < 0 ? err.message : "out of memory",
                             hint_for(rc, usual));
        rv__wire_free(wire);
    }
    return client;
}

/* ----------------------------------------------------------------------------------- stores --- */

static struct rv__client *own(rv_engine *engine, const char *store)
{
    struct rv__client *client = engine != NULL ? client_new(engine, NULL, store) : NULL;
    if (engine != NULL && client == NULL) {
        rv_engine_free(engine);
        (void)rv__cli_fail(CLI_FAILED, "out of memory", NULL);
    }
    return client;
}

/* The server, or the store to use; NULL, with *store NULL: the reason is on stderr. */
static struct rv__client *server_or_store(const struct rv__where *where, const char **store,
                                          int *code)
{
    struct rv__client *client = rv__client_server(where, store, code);
    if (*code != CLI_OK)
        *store = NULL;
    else if (client == NULL && *store == NULL)
        *code = rv__cli_fail(CLI_FAILED, "no server answers at " RV__CLI_SERVER,
                             hint_for(RV_ECLOSED, true));
    return client;
}

struct rv__client *rv__client_open(const struct rv__where *where, enum rv__access access, int *code)
{
    const char *store;
    struct rv__client *client = server_or_store(where, &store, code);
    bool asks = access == ACCESS_ASK || rv__cli_is_execution(); /* for its permission */
    if (store != NULL)
        client = own(asks ? rv__store_to_ask(store) : rv__store_to_read(store), store);
    if (client == NULL && store != NULL)
        *code = CLI_FAILED;
    return client;
}

struct rv__client *rv__client_tell(const struct rv__where *where, const char *run_id, int *code)
{
    const char *store;
    struct rv__client *client = server_or_store(where, &store, code);
    if (store != NULL)
        client = own(rv__store_to_write(store, run_id), store);
    if (client == NULL && store != NULL)
        *code = CLI_FAILED;
    return client;
}

void rv__client_close(struct rv__client *client)
{
    if (client == NULL)
        return;
    if (!client->borrowed)
        rv_engine_free(client->engine);
    rv__wire_free(client->wire);
    rv__free(client);
}

void rv__client_become(struct rv__client *client, rv_engine *engine)
{
    client->engine = engine;
}

const char *rv__client_name(const struct rv__client *client)
{
    return client->name;
}

rv_engine *rv__client_engine(const struct rv__client *client)
{
    return client->engine;
}

/* ------------------------------------------------------------------------------------ calls --- */

/* In a command started by a state's agent: reads of a store need the permission of its scope, as with a server. */
static int may_read(struct rv__client *c, const char *run_id, int what, const char *name,
                    rv_error *err)
{
    return c->pass == NULL
               ? RV_OK
               : rv_read_as(c->engine, c->pass,
                            RV_READ(.run_id = run_id, .what = what, .name = name, .through = "cli"),
                            err);
}

/* The same for anything but its own run: refused. */
static int may_else(const struct rv__client *c, rv_error *err)
{
    return c->pass == NULL
               ? RV_OK
               : rv__fail(err, RV_EDENIED, "the token of an execution is for reading its own run");
}

int rv__client_list(struct rv__client *c, const rv_query *query, rv_run_list **ret, rv_error *err)
{
    int rc = may_else(c, err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_list(c->wire, query, ret, err)
                           : rv_list(c->engine, query, ret, err);
}

int rv__client_state(struct rv__client *c, const char *run_id, rv_run_state **ret, rv_error *err)
{
    int rc = may_read(c, run_id, RV_READ_RUN, "run", err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_state(c->wire, run_id, ret, err)
                           : rv_state(c->engine, run_id, ret, err);
}

/* Count a page. The rest of its list counts already, so that an absurd total is refused with its first page. */
static int count_walked(size_t *walked, const rv_node_list *page, size_t offset, rv_error *err)
{
    size_t rest = page->total > offset ? page->total - offset : 0;
    size_t most = rest > page->count ? rest : page->count;
    if (most > NODES_MOST - *walked)
        return rv__fail(err, RV_ETOOBIG, "the run has more than %d nodes: too many to show",
                        NODES_MOST);
    *walked += page->count;
    return RV_OK;
}

int rv__client_nodes(struct rv__client *c, const char *run_id, const char *parent, size_t offset,
                     size_t limit, size_t *walked, rv_node_list **ret, rv_error *err)
{
    rv_node_list *page = NULL;
    int rc = may_read(c, run_id, RV_READ_RUN, "nodes", err);
    if (rc < 0)
        return rc;
    rc = c->wire != NULL
             ? rv__remote_nodes(c->wire, run_id, parent, offset, limit, &page, err)
             : rv_nodes(c->engine, run_id,
                        RV_NODE_QUERY(.parent = parent, .offset = offset, .limit = limit), &page,
                        err);
    if (rc == RV_OK && walked != NULL)
        rc = count_walked(walked, page, offset, err);
    if (rc < 0) {
        rv_node_list_free(page);
        return rc;
    }
    *ret = page;
    return RV_OK;
}

int rv__client_logs(struct rv__client *c, const char *run_id, const rv_log_query *query,
                    rv_log_list **ret, rv_error *err)
{
    rv_log_query known = *query;
    int rc = may_read(c, run_id, RV_READ_LOGS, NULL, err);
    if (rc < 0)
        return rc;
    known.for_agents |= c->pass != NULL;
    return c->wire != NULL ? rv__remote_logs(c->wire, run_id, query, ret, err)
                           : rv_logs(c->engine, run_id, &known, ret, err);
}

int rv__client_attachments(struct rv__client *c, const char *run_id,
                           const rv_attachment_query *query, rv_attachment_list **ret,
                           rv_error *err)
{
    if (c->wire != NULL)
        return rv__remote_attachments(c->wire, run_id, query, ret, err);
    int rc = may_read(c, run_id, RV_READ_ATTACHMENTS, NULL, err);
    return rc == RV_OK ? rv_attachments(c->engine, run_id, query, ret, err) : rc;
}

int rv__client_attachment(struct rv__client *c, const char *run_id, const char *id,
                          rv_attachment_list **ret, rv_error *err)
{
    rv_attachment_list *list = NULL;
    if (c->wire != NULL)
        return rv__remote_attachment(c->wire, run_id, id, ret, err);
    int rc = may_read(c, run_id, RV_READ_ATTACHMENT, id, err);
    if (rc == RV_OK)
        rc = rv_attachments(c->engine, run_id, RV_ATTACHMENT_QUERY(.id = id, .results = true),
                            &list, err);
    if (rc != RV_OK)
        return rc;
    if (list->count == 0) {
        rv_attachment_list_free(list);
        return rv__fail(err, RV_ENOTFOUND, "run '%s' has no attachment '%.120s'", run_id, id);
    }
    *ret = list;
    return RV_OK;
}

static int read_history(rv_engine *engine, const char *run_id, bool acts,
                        void (*hear)(void *arg, struct rv__str event), void *arg, rv_error *err)
{
    rv_feed *feed = NULL;
    rv_event event;
    struct rv__str by;
    int rc = rv_feed_open(engine,
                          RV_FEED_OPTS(.run_id = run_id, .from = RV_FROM_OLDEST, .no_logs = true),
                          &feed, err);
    while (rc == RV_OK && (rc = rv_feed_next(feed, 0, NULL, &event, err)) == RV_OK)
        if (!acts || rv__json_get(rv__str(event.json), "by", &by))
            hear(arg, rv__str(event.json));
    rv_feed_close(feed);
    return rc == RV_ETIMEDOUT ? RV_OK : rc;
}

static int get_history(struct rv__client *c, const char *run_id, bool acts,
                       void (*hear)(void *arg, struct rv__str event), void *arg, rv_error *err)
{
    int rc = may_read(c, run_id, RV_READ_RUN, "history", err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_history(c->wire, run_id, acts, hear, arg, err)
                           : read_history(c->engine, run_id, acts, hear, arg, err);
}

struct acts {
    struct rv__buf *out;
    size_t count;
};

static void add_act(void *arg, struct rv__str event)
{
    struct acts *acts = arg;
    if (acts->count++ > 0)
        rv__buf_char(acts->out, ',');
    rv__buf_str(acts->out, event);
}

int rv__client_acts(struct rv__client *c, const char *run_id, struct rv__buf *ret, rv_error *err)
{
    struct acts acts = { .out = ret };
    return get_history(c, run_id, true, add_act, &acts, err);
}

int rv__client_history(struct rv__client *c, const char *run_id,
                       void (*hear)(void *arg, struct rv__str event), void *arg, rv_error *err)
{
    return get_history(c, run_id, false, hear, arg, err);
}

int rv__client_given(struct rv__client *c, const char *run_id, const char *path,
                     struct rv__buf *ret, rv_error *err)
{
    rv_node_detail *detail = NULL;
    int rc = may_read(c, run_id, RV_READ_RUN, path, err);
    if (rc < 0)
        return rc;
    if (c->wire != NULL)
        return rv__remote_given(c->wire, run_id, path, ret, err);
    rc = rv_node_get(c->engine, run_id, path, &detail, err);
    if (rc < 0)
        return rc;
    const char *last = "";
    for (size_t i = 0; i < detail->attempt_count; i++)
        if (*detail->attempts[i].input != '\0')
            last = detail->attempts[i].input;
    rv__buf_text(ret, last);
    rv_node_detail_free(detail);
    return RV_OK;
}

int rv__client_plan(struct rv__client *c, const char *run_id, char **ret, rv_error *err)
{
    int rc = may_read(c, run_id, RV_READ_RUN, "plan", err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_plan(c->wire, run_id, ret, err)
                           : rv_plan_of_run(c->engine, run_id, ret, err);
}

int rv__client_why_json(struct rv__client *c, const char *run_id, char **ret, rv_error *err)
{
    int rc = may_read(c, run_id, RV_READ_RUN, "why", err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_why(c->wire, run_id, ret, err)
                           : rv_why(c->engine, run_id, ret, err);
}

int rv__client_why(struct rv__client *c, const char *run_id, struct rv__why_told **ret,
                   rv_error *err)
{
    char *text = NULL;
    void *why = NULL;
    int rc = rv__client_why_json(c, run_id, &text, err);
    if (rc == RV_OK)
        rc = rv__document_read(&rv__doc_why, rv__str(text), 0, &why, err);
    if (rc == RV_OK)
        *ret = why;
    rv_free(text);
    return rc;
}

int rv__client_members(struct rv__client *c, char **ret, rv_error *err)
{
    return c->wire != NULL ? rv__remote_members(c->wire, ret, err)
                           : rv_members(c->engine, ret, err);
}

int rv__client_workflows(struct rv__client *c, rv_workflow_list **ret, rv_error *err)
{
    int rc = may_else(c, err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_workflows(c->wire, ret, err)
                           : rv_workflows(c->engine, ret, err);
}

int rv__client_run(struct rv__client *c, const char *workflow, const char *input,
                   const rv_run_opts *opts, rv_run_info *ret, rv_error *err)
{
    int rc = may_else(c, err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_run(c->wire, workflow, input, opts, ret, err)
                           : rv_run(c->engine, workflow, input, opts, ret, err);
}

int rv__client_cancel(struct rv__client *c, const char *run_id, rv_error *err)
{
    int rc = may_else(c, err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_cancel(c->wire, run_id, err)
                           : rv_cancel_run(c->engine, run_id, err);
}

int rv__client_decide(struct rv__client *c, const char *run_id, int decision,
                      const rv_decide_opts *opts, rv_error *err)
{
    int rc = may_else(c, err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_decide(c->wire, run_id, decision, opts, err)
                           : rv_decide(c->engine, run_id, decision, opts, err);
}

int rv__client_signal(struct rv__client *c, const char *run_id, const char *name,
                      const char *payload, bool force, rv_error *err)
{
    int rc = may_else(c, err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_signal(c->wire, run_id, name, payload, force, err)
                           : rv_signal_with(c->engine, run_id, name, payload,
                                            RV_SIGNAL_OPTS(.force = force), err);
}

int rv__client_complete(struct rv__client *c, const char *run_id, const char *handle,
                        const char *result, const char *error, rv_error *err)
{
    int rc = may_else(c, err);
    if (rc < 0)
        return rc;
    return c->wire != NULL ? rv__remote_complete(c->wire, run_id, handle, result, error, err)
                           : rv_complete(c->engine, run_id, handle, result, error, err);
}

bool rv__client_drives(const struct rv__client *c, const char *run_id)
{
    return c->engine == NULL || rv_engine_drives(c->engine, run_id);
}

void rv__client_say_refusal(struct rv__client *c)
{
    rv_driver driver;
    rv_error err = { .code = 0 };
    struct rv__buf answer;
    if (c->wire == NULL) {
        if (rv_engine_driver(c->engine, &driver, NULL) == 1)
            snprintf(err.message, sizeof err.message, "%s", driver.refuses);
    } else {
        rv__buf_init(&answer, 0);
        int status = rv__wire_ask(c->wire, "GET", "/readyz", (struct rv__str){ NULL, 0 }, &answer,
                                  NULL);
        if (status == 503)
            (void)rv__wire_problem(c->wire, status, rv__buf_view(&answer), &err);
        rv__buf_done(&answer);
    }
    if (err.message[0] != '\0')
        fprintf(stderr, "%srival:%s the runs here do not continue: %s\n", rv__colour(stderr, RED),
                rv__colour(stderr, PLAIN), err.message);
}

/* --------------------------------------------------------------------------------- following --- */

struct rv__follow {
    rv_feed *feed; /* one of the two */
    struct rv__wire_events *events;
};

static void say_lost(const char *url, const char *why)
{
    fprintf(stderr, "the connection to %s is lost (%s); trying again\n", url, why);
}

int rv__follow_open(struct rv__client *c, const rv_feed_opts *opts, struct rv__follow **ret,
                    rv_error *err)
{
    struct rv__buf path;
    int rc = may_else(c, err);
    if (rc < 0)
        return rc;
    struct rv__follow *follow = rv__zalloc(1, sizeof *follow);
    if (follow == NULL)
        return rv__nomem(err);
    if (c->wire != NULL) {
        rc = rv__remote_events_path(opts->run_id, opts->no_logs, opts->from == RV_FROM_OLDEST,
                                    &path, err);
        if (rc == RV_OK)
            rc = rv__wire_follow(c->wire, rv__buf_view(&path).at, say_lost, &follow->events, err);
        rv__buf_done(&path);
    } else {
        rc = rv_feed_open(c->engine, opts, &follow->feed, err);
    }
    if (rc == RV_OK)
        *ret = follow;
    else
        rv__free(follow);
    return rc;
}

int rv__follow_next(struct rv__follow *follow, int64_t timeout_ms, rv_cancel *by, rv_event *ret,
                    rv_error *err)
{
    if (follow->events != NULL)
        return rv__wire_next(follow->events, timeout_ms, by, ret, err);
    int64_t until_ms = rv__mono_ms(rv__clock_real()) + timeout_ms;
    for (;;) {
        int64_t left_ms = timeout_ms < 0 ? LOOK_MS : until_ms - rv__mono_ms(rv__clock_real());
        int rc = rv_feed_next(
            follow->feed, left_ms < LOOK_MS ? (left_ms > 0 ? left_ms : 0) : LOOK_MS, by, ret, err);
        if (rc != RV_ETIMEDOUT || (timeout_ms >= 0 && left_ms <= LOOK_MS))
            return rc;
    }
}

void rv__follow_position(struct rv__follow *follow, uint64_t *seq, uint64_t *index)
{
    *seq = *index = 0;
    if (follow->feed != NULL)
        rv_feed_position(follow->feed, seq, index);
}

void rv__follow_close(struct rv__follow *follow)
{
    if (follow == NULL)
        return;
    rv_feed_close(follow->feed);
    rv__wire_events_free(follow->events);
    rv__free(follow);
}

/* ---------------------------------------------------------------------------------- waiting --- */

bool rv__client_away(const struct rv__client *c, int rc)
{
    return c->wire != NULL && (rc == RV_ECLOSED || rc == RV_ESYS || rc == RV_ETIMEDOUT);
}

/* 1: the run has ended, and *ret is its state; 0: not yet, or the server cannot be reached and may come back. */
static int look_at_end(struct rv__client *c, const char *run_id, rv_run_state **ret, rv_error *err)
{
    rv_run_list *list = NULL;
    bool live = false;
    int rc = rv__client_list(c, RV_QUERY(.run_id = run_id), &list, err);
    if (rc == RV_OK && list->count == 0)
        rc = rv__fail(err, RV_ENOTFOUND, "there is no run '%s'", run_id);
    else if (rc == RV_OK)
        live = list->runs[0].status == RV_RUNNING || list->runs[0].status == RV_SUSPENDED;
    rv_run_list_free(list);
    if (rc == RV_OK && !live)
        rc = rv__client_state(c, run_id, ret, err);
    return live || rv__client_away(c, rc) ? 0 : rc < 0 ? rc : 1;
}

/* Look at the state, then wait for events, and look at the state again now and then. Also waits for a server that
 * cannot be reached. */
static int wait_remote(struct rv__client *c, const char *run_id, int64_t timeout_ms, rv_cancel *by,
                       rv_run_state **ret, rv_error *err)
{
    struct rv__follow *follow = NULL;
    rv_event event;
    int64_t until_ms = rv__mono_ms(rv__clock_real()) + timeout_ms;
    int ended = look_at_end(c, run_id, ret, err);
    int rc = ended == 0
                 ? rv__follow_open(c, RV_FEED_OPTS(.run_id = run_id, .no_logs = true), &follow, err)
                 : RV_OK;
    while (rc == RV_OK && ended == 0 && follow != NULL) { /* `follow` is set with RV_OK */
        int64_t left_ms = timeout_ms < 0 ? LOOK_AGAIN_MS : until_ms - rv__mono_ms(rv__clock_real());
        rc = rv__follow_next(follow, left_ms < LOOK_AGAIN_MS ? left_ms : LOOK_AGAIN_MS, by, &event,
                             err);
        if (rc == RV_OK && strncmp(event.kind, "run.", 4) != 0)
            continue;
        if (rc == RV_OK || (rc == RV_ETIMEDOUT && (timeout_ms < 0 || left_ms > LOOK_AGAIN_MS))) {
            ended = look_at_end(c, run_id, ret, err);
            rc = RV_OK;
        }
    }
    rv__follow_close(follow);
    return rc < 0 ? rc : ended < 0 ? ended : RV_OK;
}

int rv__client_wait(struct rv__client *c, const char *run_id, int64_t timeout_ms, rv_cancel *by,
                    rv_run_state **ret, rv_error *err)
{
    rv_outcome *outcome = NULL;
    if (c->wire != NULL)
        return wait_remote(c, run_id, timeout_ms, by, ret, err);
    int rc = rv_wait(c->engine, NULL, run_id,
                     RV_WAIT_OPTS(.timeout_ms = timeout_ms == 0 ? 1 : timeout_ms, .by = by),
                     &outcome, err);
    rv_outcome_free(outcome);
    return rc == RV_OK ? rv__client_state(c, run_id, ret, err) : rc;
}
