/* logs.c: `rival logs`: the log lines of a run's steps. */
#include <string.h>

#include "base/json.h"
#include "cli/runs.h"
#include "cli/text.h"

enum {
    PAGE = 500,
    LOOK_MS = 1000, /* with -f: until the end of a run without a driver is noticed */
    TEXT_WIDTH = 100000,
};

struct logs {
    struct rv__look look;
    rv_log_query query;
    const char *attempt; /* a number; NULL: all */
    bool follow;
    size_t printed; /* lines */
    bool missed;    /* with -f: the server could not be reached when there were lines to read */
    rv_cancel *interrupt;
};

static const char *const levels[] = { "debug", "info", "warn", "error", NULL }; /* as the enum */

static void print_json(const char *run_id, const rv_log_line *line)
{
    struct rv__buf out;
    rv__buf_init(&out, RV__JSON_MAX_BYTES);
    rv__put_log_line(&out, run_id, line);
    if (out.rc == RV_OK)
        printf("%s\n", out.text);
    rv__buf_done(&out);
}

static void print_line(const rv_log_line *line)
{
    static const enum rv__colour colours[] = { DIM, PLAIN, YELLOW, RED };
    char clock[RV__WHEN_TEXT];
    struct rv__buf text;
    int level = line->level >= 0 && line->level < 4 ? line->level : 3;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    (void)rv__text_fit(&text, rv__str(line->path), TEXT_WIDTH);
    rv__buf_fmt(&text, "%s  ", rv__colour(stdout, PLAIN));
    (void)rv__text_fit(&text, rv__str(line->message), TEXT_WIDTH);
    if (*line->metadata != '\0') {
        rv__buf_fmt(&text, "  %s", rv__colour(stdout, DIM));
        (void)rv__text_fit(&text, rv__str(line->metadata), TEXT_WIDTH);
        rv__buf_text(&text, rv__colour(stdout, PLAIN));
    }
    printf("%s%s%s  %s%-5s%s  %s%s\n", rv__colour(stdout, DIM),
           rv__text_clock(line->at, true, clock), rv__colour(stdout, PLAIN),
           rv__colour(stdout, colours[level]), levels[level], rv__colour(stdout, PLAIN),
           rv__colour(stdout, CYAN), rv__buf_view(&text).at);
    rv__buf_done(&text);
}

/* Has it ended, with nothing active in it? Then there is nothing to follow. */
static bool is_over(struct rv__look *look)
{
    struct rv__why_told *why = NULL;
    if (rv__client_why(look->client, look->run_id, &why, NULL) < 0)
        return false;
    bool over = why->count == 0;
    rv_free(why);
    return over;
}

/* Say that there are no lines. */
static void say_none(const struct logs *logs)
{
    bool narrowed = logs->query.step != NULL || logs->query.path != NULL ||
                    logs->query.attempt != 0 || logs->query.text != NULL ||
                    logs->query.level > RV_INFO;
    fprintf(stderr, "no%s log lines%s\n", narrowed ? " matching" : "",
            logs->query.level > RV_DEBUG ? "; --level debug shows lower levels too" : "");
}

/* Print all lines so far, page by page. */
static int print_pages(struct rv__look *look, struct logs *logs)
{
    size_t count;
    do {
        rv_log_list *list = NULL;
        rv_error err;
        int rc = rv__client_logs(look->client, look->run_id, &logs->query, &list, &err);
        logs->missed = rc < 0 && logs->follow && rv__client_away(look->client, rc);
        if (logs->missed)
            break;
        if (rc < 0)
            return rv__cli_fail(CLI_FAILED, err.message, NULL);
        for (size_t i = 0; i < list->count; i++) {
            if (look->json)
                print_json(look->run_id, &list->lines[i]);
            else
                print_line(&list->lines[i]);
        }
        count = list->count;
        logs->printed += count;
        logs->query.after = list->next;
        rv_log_list_free(list);
    } while (count == PAGE && !ferror(stdout));
    fflush(stdout); /* main reports write errors */
    return CLI_OK;
}

/* Events tell when there is more; lines are read as without -f. */
static int follow_logs(struct rv__look *look, struct logs *logs)
{
    struct rv__follow *follow = NULL;
    rv_error err;
    int rc = rv__follow_open(look->client, RV_FEED_OPTS(.run_id = look->run_id), &follow, &err);
    int code = rc == RV_OK ? print_pages(look, logs) : rv__cli_fail(CLI_FAILED, err.message, NULL);
    bool over = false, more = true;
    while (code == CLI_OK && !over && !ferror(stdout)) {
        rv_event event;
        if (more && is_over(look)) { /* print its last lines */
            code = print_pages(look, logs);
            over = !logs->missed;
            continue;
        }
        rc = rv__follow_next(follow, LOOK_MS, logs->interrupt, &event, &err);
        if (rc == RV_ECANCELED)
            code = CLI_INTERRUPTED;
        else if (rc < 0 && rc != RV_ETIMEDOUT)
            code = rv__cli_fail(CLI_FAILED, err.message, NULL);
        more = rc == RV_ETIMEDOUT || (rc == RV_OK && strncmp(event.kind, "run.", 4) == 0);
        bool said = rc == RV_OK && strcmp(event.kind, "log") == 0;
        while (rc == RV_OK && (rc = rv__follow_next(follow, 0, NULL, &event, &err)) == RV_OK) {
            more |= strncmp(event.kind, "run.", 4) == 0;
            said |= strcmp(event.kind, "log") == 0;
        }
        if (code == CLI_OK && (said || logs->missed))
            code = print_pages(look, logs);
    }
    rv__follow_close(follow);
    return code;
}

static int print_logs(struct rv__look *look)
{
    struct logs *logs = look->arg;
    int code = logs->follow ? follow_logs(look, logs) : print_pages(look, logs);
    if (code == CLI_OK && logs->printed == 0 && !look->json)
        say_none(logs);
    return code;
}

static int run_logs(int argc, char **argv)
{
    struct logs logs = { .query = { .size = sizeof logs.query, .limit = PAGE, .level = RV_INFO } };
    int count = rv__options(&rv__cmd_logs, argc, argv, &logs);
    if (count < 0)
        return -count;
    int64_t attempt = 0;
    if (logs.attempt != NULL && !rv__count_read(logs.attempt, &attempt))
        return rv__cli_usage("logs", "--attempt '%s' must be 1 or more", logs.attempt);
    logs.query.attempt = (int)attempt;
    if (logs.query.step != NULL && strchr(logs.query.step, ':') != NULL) {
        logs.query.path = logs.query.step; /* an alias has no colon */
        logs.query.step = NULL;
    }
    if (logs.follow) {
        logs.interrupt = rv__cli_interrupt();
        if (logs.interrupt == NULL)
            return CLI_FAILED;
    }
    logs.look.arg = &logs;
    return rv__look_at_run(&logs.look, count, argv, print_logs);
}

static const struct rv__option options[] = {
    { "--follow", .letter = "-f", .meaning = "follow until the run has ended",
      RV__INTO(struct logs, follow) },
    { "--step", "ALIAS", "only lines of this step, or of all nodes in this path",
      .completes = COMPLETES_STEP, RV__INTO(struct logs, query.step) },
    { "--attempt", "N", "only lines of this attempt, from 1", RV__INTO(struct logs, attempt) },
    { "--level", "LEVEL", "debug, info, warn or error: this level and above (info)",
      .choices = levels, RV__INTO(struct logs, query.level) },
    { "--text", "TEXT", "only lines with TEXT in their message",
      RV__INTO(struct logs, query.text) },
    RV__OPTIONS_WHERE(struct logs, look.where),
    RV__OPTION_JSON(struct logs, look.json, "a JSON object for each line"),
    { NULL },
};

const struct rv__command rv__cmd_logs = {
    .name = "logs",
    .section = SECTION_LOOK,
    .summary = "print the log of a run",
    .arguments = { { "ID", "of which run?", .completes = COMPLETES_RUN } },
    .options = options,
    .examples = { { "rival logs order-1 -f" },
                  { "rival logs order-1 --step charge --level warn" } },
    .exits = { { CLI_INTERRUPTED, "stopped by Ctrl-C, with -f" } },
    .run = run_logs,
};
