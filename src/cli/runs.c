/* runs.c: opens a store, finds a run, reports how it ended. */
#include "cli/runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/id.h"
#include "base/json.h"
#include "base/store_name.h"
#include "cli/refusal.h"
#include "cli/text.h"

enum {
    PAGE = 200,
    READ_PIECE = 65536,
    TELL_TRIES = 20, /* to change a run while its driver is ending */
    TELL_AGAIN_MS = 100,
};

/* ---------------------------------------------------------------------------------- stores --- */

const char *rv__store_default(void)
{
    const char *named = getenv("RIVAL_STORE");
    return named != NULL && *named != '\0' ? named : RV__CLI_STORE;
}

const char *rv__cli_user(char room[RV__USER_NAME_SIZE])
{
    rv__user_name(geteuid(), room);
    return room;
}

static rv_engine *open_store(const rv_engine_opts *opts)
{
    char user[RV__USER_NAME_SIZE];
    rv_engine *engine = NULL;
    rv_error err;
    rv_engine_opts named = *opts;
    if (named.store == NULL)
        named.store = rv__store_default();
    named.by = rv__cli_user(user);
    opts = &named;
    int rc = rv_engine_new(opts, &engine, &err);
    if (rc == RV_OK)
        return engine;
    const char *hint = NULL;
    if (rc == RV_EBUSY)
        hint =
            opts->attach
                ? "it does not listen; reading works meanwhile: rival list, show, why, logs, wait"
                : "reading works meanwhile: rival list, show, why, logs, wait";
    else if (opts->read_only && !rv__store_name_exists(opts->store))
        hint = "`rival exec FILE` creates one; --store names another";
    (void)rv__cli_fail(CLI_FAILED, err.message, hint);
    return NULL;
}

rv_engine *rv__store_to_read(const char *store)
{
    return open_store(RV_ENGINE_OPTS(.store = store, .read_only = true));
}

rv_engine *rv__store_to_ask(const char *store)
{
    return open_store(RV_ENGINE_OPTS(.store = store, .read_only = true, .attach = true));
}

rv_engine *rv__store_to_write(const char *store, const char *run_id)
{
    return open_store(
        RV_ENGINE_OPTS(.store = store, .only_run = run_id, .idle = true, .attach = true));
}

rv_engine *rv__store_to_hold(const char *store)
{
    return open_store(RV_ENGINE_OPTS(.store = store, .idle = true));
}

/* ------------------------------------------------------------------------------------ runs --- */

static bool run_exists(struct rv__client *client, const char *id)
{
    rv_run_list *list = NULL;
    rv_error err;
    bool exists = rv__client_list(client, RV_QUERY(.run_id = id), &list, &err) == RV_OK &&
                  list->count == 1;
    rv_run_list_free(list);
    return exists;
}

/* How many runs have ids with this prefix; the first ones are listed in `names`, the newest is in `ret`. */
static int count_runs(struct rv__client *client, const char *prefix, char ret[RV_RUN_ID_SIZE],
                      struct rv__buf *names, rv_error *err)
{
    enum { ENOUGH = 5 };
    char cursor[512] = "";
    int found = 0;
    do {
        rv_run_list *list = NULL;
        int rc = rv__client_list(client, RV_QUERY(.text = prefix, .limit = PAGE, .cursor = cursor),
                                 &list, err);
        if (rc < 0)
            return rc;
        for (size_t i = 0; i < list->count && found < ENOUGH; i++) {
            if (strncmp(list->runs[i].run_id, prefix, strlen(prefix)) != 0)
                continue;
            if (found++ == 0)
                snprintf(ret, RV_RUN_ID_SIZE, "%s", list->runs[i].run_id);
            rv__buf_fmt(names, "%s%s", found > 1 ? ", " : "", list->runs[i].run_id);
        }
        bool stands = list->count == 0 && strcmp(cursor, list->next) == 0; /* else endless */
        snprintf(cursor, sizeof cursor, "%s", stands ? "" : list->next);
        rv_run_list_free(list);
    } while (cursor[0] != '\0' && found < ENOUGH);
    return found;
}

static int no_run(struct rv__client *client, const char *given, const char *hint)
{
    char message[400];
    snprintf(message, sizeof message, "there is no run '%.130s' %s %.150s", given,
             rv__client_engine(client) != NULL ? "in" : "at", rv__client_name(client));
    (void)rv__cli_fail(CLI_FAILED, message, hint);
    return RV_ENOTFOUND;
}

int rv__find_exact(struct rv__client *client, const char *given, char ret[RV_RUN_ID_SIZE])
{
    rv_run_list *list = NULL;
    rv_error err;
    struct rv__buf names, hint;
    char near[RV_RUN_ID_SIZE] = "";
    if (!rv__id_valid(rv__str(given)))
        return no_run(client, given, "`rival list` shows the runs there are");
    int rc = rv__client_list(client, RV_QUERY(.run_id = given), &list, &err);
    bool found = rc == RV_OK && list->count == 1;
    rv_run_list_free(list);
    if (rc < 0) {
        (void)rv__cli_fail(CLI_FAILED, err.message, NULL);
        return rc;
    }
    if (found) {
        snprintf(ret, RV_RUN_ID_SIZE, "%s", given);
        return RV_OK;
    }
    rv__buf_init(&names, (size_t)5 * RV_RUN_ID_SIZE + 16);
    rv__buf_init(&hint, (size_t)6 * RV_RUN_ID_SIZE);
    if (count_runs(client, given, near, &names, &err) > 0) /* no run is ended by mistake */
        rv__buf_fmt(&hint, "a command that changes a run needs the whole id; these match: %s",
                    rv__buf_view(&names).at);
    else
        rv__buf_text(&hint, "`rival list` shows the runs there are");
    rc = no_run(client, given, rv__buf_view(&hint).at);
    rv__buf_done(&names);
    rv__buf_done(&hint);
    return rc;
}

int rv__find_run(struct rv__client *client, const char *given, char ret[RV_RUN_ID_SIZE])
{
    rv_error err;
    char message[400];
    struct rv__buf names;
    bool execution = rv__cli_is_execution() &&
                     rv__id_valid(rv__str(given)); /* its own run, or it is refused */
    if (strlen(given) < RV_RUN_ID_SIZE && (execution || run_exists(client, given))) {
        snprintf(ret, RV_RUN_ID_SIZE, "%s", given);
        return RV_OK;
    }
    rv__buf_init(&names, 5 * RV_RUN_ID_SIZE + 16);
    int found = *given != '\0' ? count_runs(client, given, ret, &names, &err) : 0;
    if (found < 0) {
        (void)rv__cli_fail(CLI_FAILED, err.message, NULL);
    } else if (found == 0) {
        (void)no_run(client, given, "`rival list` shows the runs there are");
    } else if (found > 1) {
        snprintf(message, sizeof message, "'%.130s' is the prefix of several run ids", given);
        (void)rv__cli_fail(CLI_FAILED, message, rv__buf_view(&names).at);
    }
    rv__buf_done(&names);
    return found == 1 ? RV_OK : RV_ENOTFOUND;
}

int rv__look_at_run(struct rv__look *look, int argc, char **argv,
                    int (*show)(struct rv__look *look))
{
    int code;
    look->client = rv__client_open(&look->where, look->asks ? ACCESS_ASK : ACCESS_LOOK, &code);
    if (look->client == NULL)
        return code;
    look->argc = argc - 1;
    look->argv = argv + 1;
    bool found = rv__find_run(look->client, argv[0], look->run_id) == RV_OK;
    code = found ? show(look) : CLI_FAILED;
    rv__client_close(look->client);
    return code;
}

static int print_result_line(const struct rv__tell *tell, struct rv__client *client)
{
    rv_run_list *list = NULL;
    rv_error err;
    if (!tell->json) {
        printf("%s %s\n", tell->done, tell->run_id);
        return CLI_OK;
    }
    if (rv__client_list(client, RV_QUERY(.run_id = tell->run_id), &list, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    for (size_t i = 0; i < list->count; i++)
        printf("{\"runId\":\"%s\",\"status\":\"%s\"}\n", list->runs[i].run_id,
               rv_status_name(list->runs[i].status));
    rv_run_list_free(list);
    return CLI_OK;
}

int rv__tell_run(const char *given, struct rv__tell *tell,
                 int (*say)(struct rv__tell *tell, struct rv__client *client, rv_error *err))
{
    rv_error err;
    int code;
    struct rv__client *client = rv__client_open(&tell->where, ACCESS_LOOK, &code);
    if (client == NULL)
        return code;
    int rc = rv__find_exact(client, given, tell->run_id);
    rv__client_close(client);
    if (rc < 0)
        return CLI_FAILED;
    struct rv__refusal refusal = { .ends = true };
    for (int tries = 1;; tries++) {
        client = rv__client_tell(&tell->where, tell->run_id, &code);
        if (client == NULL)
            return code;
        refusal.engine = rv__client_engine(client);
        rv__refusal_watch(&refusal, NULL);
        rc = say(tell, client, &err);
        rv__refusal_unwatch(&refusal);
        if (rc != RV_ECLOSED || tries == TELL_TRIES)
            break;
        rv__client_close(client); /* the driver has just ended, and nothing was changed */
        rv__clock_sleep_ms(TELL_AGAIN_MS);
    }
    code = rc == RV_OK ? print_result_line(tell, client)
                       : rv__cli_fail(CLI_FAILED, err.message,
                                      rc == RV_EUNWANTED ? "--force sends it anyway" : NULL);
    rv__client_close(client);
    return code;
}

/* ------------------------------------------------------------------------------------ input --- */

static int read_all(FILE *from, struct rv__buf *out)
{
    char *piece = rv__alloc(READ_PIECE);
    size_t got;
    if (piece == NULL)
        return RV_ENOMEM;
    while ((got = fread(piece, 1, READ_PIECE, from)) > 0 && out->rc == RV_OK)
        rv__buf_add(out, piece, got);
    rv__free(piece);
    return ferror(from) ? RV_ESYS : out->rc;
}

int rv__read_json(const char *command, const char *what, const char *option, const char *given,
                  char **ret)
{
    struct rv__buf text;
    rv_error err;
    const char *where = option;
    int rc;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    if (given[0] == '@' || strcmp(given, "-") == 0) {
        FILE *file = given[0] == '@' ? fopen(given + 1, "rbe") : stdin;
        where = given[0] == '@' ? given + 1 : "stdin";
        rc = file != NULL ? read_all(file, &text) : RV_ESYS;
        int number = errno;
        if (file != NULL && file != stdin)
            (void)fclose(file); /* only read */
        if (rc < 0) {
            rv__buf_done(&text);
            return rv__cli_usage(command, "cannot read %s from %s: %s", what, where,
                                 rc == RV_ESYS ? strerrordesc_np(number) : rv_strerror(rc));
        }
    } else {
        rv__buf_text(&text, given);
    }
    rc = rv__json_check(rv__buf_view(&text), RV__JSON_VALUE_DEPTH, NULL, &err);
    if (rc < 0) {
        (void)rv__cli_usage(command, "%s is not JSON: %s%s%s", what, where != NULL ? where : "",
                            where != NULL ? ": " : "", err.message);
        rv__buf_done(&text);
        return CLI_USAGE;
    }
    *ret = rv__buf_take(&text);
    rv__buf_done(&text);
    return *ret != NULL ? CLI_OK : rv__cli_fail(CLI_FAILED, "out of memory", NULL);
}

int rv__read_time(const char *text, int64_t now_ms, int64_t *ret)
{
    static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                                         "%Y-%m-%d %H:%M", "%Y-%m-%d" };
    int64_t ms;
    if (rv__duration_ms(rv__str(text), &ms) == RV_OK) {
        *ret = now_ms > ms ? now_ms - ms : 1;
        return RV_OK;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = { .tm_isdst = -1 };
        const char *end = strptime(text, forms[i], &tm);
        if (end == NULL || (*end != '\0' && strcmp(end, "Z") != 0))
            continue;
        *ret = (int64_t)(*end == 'Z' ? timegm(&tm) : mktime(&tm)) * 1000;
        return RV_OK;
    }
    return RV_EINVAL;
}

/* ----------------------------------------------------------------------------------- output --- */

int rv__print_json(struct rv__buf *json)
{
    struct rv__buf pretty;
    if (json->rc < 0)
        return rv__cli_fail(CLI_FAILED, rv_strerror(json->rc), NULL);
    rv__buf_init(&pretty, SIZE_MAX / 8); /* bounded by the text */
    if (isatty(STDOUT_FILENO))
        rv__text_json(&pretty, rv__buf_view(json));
    const struct rv__buf *shown = pretty.len > 0 && pretty.rc == RV_OK ? &pretty : json;
    fwrite(shown->text, 1, shown->len, stdout);
    putchar('\n');
    rv__buf_done(&pretty);
    return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

int rv__exit_code(int status)
{
    switch ((enum rv_run_status)status) {
    case RV_COMPLETED: return CLI_OK;
    case RV_FAILED: return CLI_FAILED;
    case RV_CANCELLED: return CLI_CANCELLED;
    case RV_SUSPENDED: return CLI_SUSPENDED;
    case RV_RUNNING: break;
    }
    return CLI_OK;
}

enum rv__colour rv__status_colour(const char *status)
{
    static const struct {
        const char *status;
        enum rv__colour colour;
    } colours[] = { { "completed", GREEN },  { "failed", RED },       { "running", CYAN },
                    { "suspended", YELLOW }, { "cancelled", YELLOW }, { "waiting_retry", YELLOW },
                    { "skipped", DIM },      { "pending", DIM } };
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        if (strcmp(colours[i].status, status) == 0)
            return colours[i].colour;
    return PLAIN;
}
