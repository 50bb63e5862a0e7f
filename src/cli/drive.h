/* drive.h: runs a workflow to its end and shows its progress: `exec`, and `run --wait`.
 *
 * Only one process writes to a store. If another one drives it, `exec` hands its run to that process and follows
 * it. If that process ends before the run does, `exec` takes over: it drives the store itself, or hands its run to
 * the next driver. */
#ifndef RV_CLI_DRIVE_H
#define RV_CLI_DRIVE_H

#include "cli/refusal.h"
#include "cli/runs.h"

/* What to do when the run is suspended: the words of --on-suspend. */
enum rv__on_suspend {
    ON_SUSPEND_WAIT,
    ON_SUSPEND_ABORT,
    ON_SUSPEND_RESUME,
    ON_SUSPEND_SKIP,
    ON_SUSPEND_LEAVE, /* the run stays suspended, and this process exits: nobody can be asked */
    ON_SUSPEND_ASK,
};

/* The options that such commands share. */
struct rv__drive_opts {
    const char *input, *run_id, *store, *on_suspend;
    const char *server, *token_file; /* DRIVE_ANYWHERE, DRIVE_LATER: the server to ask first */
    struct rv__words allow_env;
    const char *eval_time;
    const char *max_concurrency;
    const char *secrets; /* the file with secret values; NULL: none */
    const char *config;  /* the configuration file; NULL: beside the store */
    bool json;
};
/* The rows of these options; `member` is their place in the command's struct `type`. */
extern const char *const rv__on_suspend_words[];
#define RV__EVAL_TIME_MEANING "the CPU time an expression may take (1s)" /* also of serve */
#define RV__SECRETS_MEANING                                                                     \
    "lines NAME=value: values of secrets, used before those in the environment; no other user " \
    "may "                                                                                      \
    "have access to it" /* also of serve */
#define RV__CONFIG_MEANING \
    "the configuration: model providers (rival.yaml beside the store, if there is one)" /* also \
                                                                                         of serve */
/* clang-format off */
#define RV__DRIVE_OPTIONS(type, member, json_shape) \
    { "--input", "JSON", "the input; @FILE reads it from a file, - from stdin", .letter = "-i", \
      .completes = COMPLETES_INPUT, RV__INTO(type, member.input) }, \
    { "--run-id", "ID", "the id of the run (default: generated). With the id of an unfinished run, " \
      "continues it; the input need not be given again. With the id of a finished run, prints its " \
      "outcome", .completes = COMPLETES_RUN, RV__INTO(type, member.run_id) }, \
    { "--store", "FILE", "where runs are kept (" RV__CLI_STORE "), created if missing", \
      .completes = COMPLETES_FILE, RV__INTO(type, member.store) }, \
    { "--on-suspend", "WHAT", "what to do when the run is suspended: wait, abort, resume or skip " \
      "(default: asks on a terminal; else the run stays suspended, and the exit code is 4)", .choices = rv__on_suspend_words, \
      RV__INTO(type, member.on_suspend) }, \
    { "--allow-env", "NAME", "let expressions read this variable, as .env.NAME; repeat for more", \
      RV__INTO(type, member.allow_env) }, \
    { "--eval-time", "DURATION", RV__EVAL_TIME_MEANING, RV__INTO(type, member.eval_time) }, \
    { "--max-concurrency", "N", "attempts at once in each stage of a manifest; overrides the file", \
      RV__INTO(type, member.max_concurrency) }, \
    RV__OPTION_JSON(type, member.json, json_shape)
/* clang-format on */

struct rv__drive;

/* The workflow of an `exec`. */
struct rv__drive_source {
    const char *workflow; /* its name */
    const char *const
        *files; /* for the process that runs it instead: the file, and C files that it may call */
    /* Register them with drive->engine. CLI_OK; else the reason is on stderr. */
    int (*prepare)(struct rv__drive *drive, const struct rv__drive_source *source);
    /* Another process will run it: print the problems of its files. May be NULL. */
    void (*look)(const struct rv__drive_source *source);
    rv_report **
        checked; /* what was found in the file, until it is registered or somebody else runs it; or NULL there */
};

struct rv__drive {
    const char *command; /* for messages */
    struct rv__drive_opts opts;
    enum rv__on_suspend on_suspend;
    int64_t eval_cpu_ms;         /* 0: not given */
    int64_t max_concurrency;     /* the same */
    char run_id[RV_RUN_ID_SIZE]; /* given, or generated */
    char *input;                 /* JSON; NULL = none given */
    rv_cancel *interrupt;
    rv_engine *engine;         /* NULL: a server has the run */
    struct rv__client *client; /* of the engine, or the server */
    struct rv__follow *feed;
    struct rv__refusal refusal;            /* active until the run is followed */
    bool exists;                           /* the run existed before */
    bool over;                             /* the run has ended: it is only read */
    bool served;                           /* another process drives the run: it is only watched */
    bool handed;                           /* this process handed the run to its driver */
    const struct rv__drive_source *source; /* of `exec`; NULL: another command */
    int status;                            /* set by rv__drive_start() */
    bool schema_only;                      /* the same: no worker was there to check the input */
};

/* Which process runs it. */
enum rv__drive_by {
    DRIVE_HERE,     /* this process; if another one drives the store, that one */
    DRIVE_ANYWHERE, /* a server, or the store's driver; if there is none, this process */
    DRIVE_LATER,    /* a server, or the store's driver, now or later */
};

/* Check the options, read the input, choose the id, open the engine for this run only. CLI_OK; else the reason is
 * on stderr. */
int rv__drive_open(struct rv__drive *drive, const char *command, const struct rv__drive_opts *opts,
                   enum rv__drive_by by);
void rv__drive_close(struct rv__drive *drive);

/* `exec`: start the run, or continue it, here or in the process that drives the store. */
int rv__drive_exec(struct rv__drive *drive, const struct rv__drive_source *source);

/* Start the run, or find the existing one. Its workflow must be registered, unless `served` or `over`. `workflow`
 * is its name. */
int rv__drive_start(struct rv__drive *drive, const char *workflow);

/* Follow the run until nothing in it is active; print the outcome. `resume` is the command that continues it.
 * Returns the exit code. */
int rv__drive_follow(struct rv__drive *drive, const char *workflow, const char *resume);

/* Report a failed call of the engine. Returns the exit code: `code`, or that of an interruption, if this was one. */
int rv__drive_fail(const struct rv__drive *drive, int code, const rv_error *err, const char *hint);

/* Print the problems of files that could not be registered. */
void rv__drive_problems(const rv_report *report);

/* Append the options of the command that continues the run: --run-id, --store and others. */
void rv__drive_resume(const struct rv__drive *drive, struct rv__buf *out);

#endif
