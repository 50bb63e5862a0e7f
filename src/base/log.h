/* log.h: the structured log of the process: one line per event, for people or for machines.
 *
 * Only the outermost layers log (engine, server, cli); library code returns its error. A NULL log
 * is allowed everywhere and costs a comparison.
 *
 *     rv__log(log, RV__LOG_WARN, "step failed", RV__LOG_STR("run", id), RV__LOG_INT("attempt", 2));
 *
 *     {"time":"2026-11-15T19:15:08.123Z","level":"warn","message":"step failed","run":"x1",…}
 *     19:15:08.123 WARN  step failed  run=x1 attempt=2
 *
 * Whatever the values contain, a line stays one line, JSON stays valid, and no terminal control characters are
 * written. Times are UTC. */
#ifndef RV_BASE_LOG_H
#define RV_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rival/base.h>

#include "base/str.h"

struct rv__clock;

enum rv__log_level { RV__LOG_DEBUG = 1, RV__LOG_INFO, RV__LOG_WARN, RV__LOG_ERROR };
enum rv__log_format { RV__LOG_AUTO, RV__LOG_JSON, RV__LOG_TEXT };
enum rv__log_colour { RV__LOG_COLOUR_AUTO, RV__LOG_COLOUR_ON, RV__LOG_COLOUR_OFF };

/* Limits. A longer string is cut, and ends in "…"; a line never exceeds the second limit: fields that do not fit
 * are left out, and it ends in "cut":true, or (cut). */
enum { RV__LOG_MAX_VALUE = 2048, RV__LOG_MAX_LINE = 16384 };

/* A zero field means the default named beside it. */
struct rv__log_opts {
    int fd;                     /* the caller closes it; 0 = 2, standard error */
    enum rv__log_format format; /* text on a terminal, JSON elsewhere */
    enum rv__log_colour colour; /* text on a terminal, unless NO_COLOR is set or TERM is "dumb" */
    enum rv__log_level level;   /* lower levels are not written; 0 = RV__LOG_INFO */
    struct rv__clock *clock;    /* NULL = the real one; used by any thread that logs */
};

/* A name and a value. The key is a literal of ours, of [A-Za-z0-9_], and is written unescaped. */
struct rv__log_field {
    const char *key;
    enum { RV__LOG_KIND_STR, RV__LOG_KIND_INT, RV__LOG_KIND_BOOL } kind;
    union {
        struct rv__str str; /* "none" is written as null */
        int64_t integer;
        bool boolean;
    };
};

#define RV__LOG_STR(name, text)  RV__LOG_VIEW(name, rv__str(text)) /* a C string, or NULL */
#define RV__LOG_VIEW(name, view) RV__LOG_FIELD(name, STR, str, view)
#define RV__LOG_INT(name, value) RV__LOG_FIELD(name, INT, integer, value)
#define RV__LOG_BOOL(name, yes)  RV__LOG_FIELD(name, BOOL, boolean, yes)
#define RV__LOG_FIELD(name, which, member, value) \
    ((struct rv__log_field){ .key = (name), .kind = RV__LOG_KIND_##which, .member = (value) })

/* Only the first member, so that rv__log_on() can be inline; log.c has the rest. */
struct rv__log {
    enum rv__log_level level;
};

/* Open a log. Keeps no reference to `opts`; NULL means all defaults. Free *ret with rv__log_free().
 *
 * Errors: RV_EINVAL, RV_ENOMEM, RV_ESYS.   Thread: any. */
int rv__log_new(const struct rv__log_opts *opts, struct rv__log **ret, rv_error *err);
void rv__log_free(struct rv__log *log); /* leaves the fd open; NULL is allowed */

/* Would a line of this level be written? Thread: any. */
static inline bool rv__log_on(const struct rv__log *log, enum rv__log_level level)
{
    return log != NULL && level >= log->level;
}

/* Write a line. The fields are evaluated only if it is written. Allocates nothing, reports no errors, and keeps
 * errno; may wait for the reader of a blocking fd. Thread: any, but not a signal handler. */
#define rv__log(log, level, message, ...)                                           \
    do {                                                                            \
        struct rv__log *rv__log_to = (log);                                         \
        if (rv__log_on(rv__log_to, (level))) {                                      \
            const struct rv__log_field rv__log_fields[] = { { 0 }, ##__VA_ARGS__ }; \
            rv__log_write(rv__log_to, (level), (message), rv__log_fields + 1,       \
                          sizeof rv__log_fields / sizeof *rv__log_fields - 1);      \
        }                                                                           \
    } while (0)

/* The function behind the macro: for fields in an array. */
void rv__log_write(struct rv__log *log, enum rv__log_level level, const char *message,
                   const struct rv__log_field *fields, size_t count);

/* How many lines were not written, or not whole, because write(2) failed. Thread: any. */
uint64_t rv__log_dropped(struct rv__log *log);

#endif
