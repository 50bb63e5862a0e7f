/* log.c: composes a line in a buffer allocated at the start, and writes it with one write(2).
 *
 * The mutex covers composing and writing, so lines are not mixed and keep their order. One buffer
 * serves all threads, so logging works even without free memory. A full disk or a reader that is gone
 * must not stop the work that is logged: such lines are dropped and counted. */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

/* Kept free for the end of the line while the fields are added. */
enum { TAIL_ROOM = 32 };

/* A message fits into a line even if each byte is escaped as six ("\u001b"). */
_Static_assert(RV__LOG_MAX_VALUE * 6 + 200 + TAIL_ROOM < RV__LOG_MAX_LINE, "no room for a message");

struct sink {
    struct rv__log log; /* first: what callers see */
    int fd;
    bool json;
    bool colour;
    struct rv__clock *clock;
    atomic_uint_least64_t dropped;

    pthread_mutex_t mutex;             /* over the rest */
    bool torn;                         /* the last line was written in part */
    struct rv__buf line;               /* grown to its bound in rv__log_new() */
    char clean[RV__LOG_MAX_VALUE + 4]; /* the string that is being written, see clean_up() */
};

static const struct {
    const char *json, *text, *colour;
} levels[] = {
    [RV__LOG_DEBUG] = { "debug", "DEBUG", "\x1b[2m" },
    [RV__LOG_INFO] = { "info", "INFO ", "\x1b[32m" },
    [RV__LOG_WARN] = { "warn", "WARN ", "\x1b[33m" },
    [RV__LOG_ERROR] = { "error", "ERROR", "\x1b[31m" },
};

static bool wants_colour(enum rv__log_colour colour, int fd)
{
    if (colour != RV__LOG_COLOUR_AUTO)
        return colour == RV__LOG_COLOUR_ON;
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    if (no_colour != NULL && no_colour[0] != '\0')
        return false;
    return isatty(fd) && (term == NULL || strcmp(term, "dumb") != 0);
}

/* Allocate the largest line now, so that writing never allocates. */
static int reserve_line(struct rv__buf *line, rv_error *err)
{
    rv__buf_fmt(line, "%*s", RV__LOG_MAX_LINE, "");
    int rc = rv__buf_err(line, err);
    rv__buf_reset(line);
    return rc;
}

int rv__log_new(const struct rv__log_opts *opts, struct rv__log **ret, rv_error *err)
{
    static const struct rv__log_opts defaults;
    struct sink *sink = NULL;
    int rc;

    if (opts == NULL)
        opts = &defaults;
    if (opts->fd < 0)
        return rv__fail(err, RV_EINVAL, "log: %d is no file descriptor", opts->fd);
    if ((unsigned)opts->level > RV__LOG_ERROR || (unsigned)opts->format > RV__LOG_TEXT ||
        (unsigned)opts->colour > RV__LOG_COLOUR_OFF)
        return rv__fail(err, RV_EINVAL, "log: no such level, format or colour");

    sink = rv__zalloc(1, sizeof *sink);
    if (sink == NULL)
        return rv__nomem(err);
    rv__buf_init(&sink->line, RV__LOG_MAX_LINE);
    sink->log.level = opts->level ? opts->level : RV__LOG_INFO;
    sink->fd = opts->fd ? opts->fd : STDERR_FILENO;
    sink->json = opts->format == RV__LOG_AUTO ? !isatty(sink->fd) : opts->format == RV__LOG_JSON;
    sink->colour = wants_colour(opts->colour, sink->fd);
    sink->clock = opts->clock ? opts->clock : rv__clock_real();
    atomic_init(&sink->dropped, 0);

    rc = reserve_line(&sink->line, err);
    if (rc < 0)
        goto out;
    if (pthread_mutex_init(&sink->mutex, NULL) != 0) {
        rc = rv__fail(err, RV_ESYS, "log: no mutex");
        goto out;
    }

    *ret = &sink->log;
    sink = NULL;
out:
    if (sink != NULL)
        rv__buf_done(&sink->line);
    rv__free(sink);
    return rc;
}

void rv__log_free(struct rv__log *log)
{
    struct sink *sink = (struct sink *)log;
    if (sink == NULL)
        return;
    pthread_mutex_destroy(&sink->mutex);
    rv__buf_done(&sink->line);
    rv__free(sink);
}

uint64_t rv__log_dropped(struct rv__log *log)
{
    return log == NULL ? 0 : atomic_load(&((struct sink *)log)->dropped);
}

/* Length of the UTF-8 sequence at the start of `s`, which is not empty; 0: it is invalid. */
static size_t utf8_length(struct rv__str s)
{
    unsigned char lead = (unsigned char)s.at[0];
    size_t len = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    return len <= s.len && rv__str_utf8((struct rv__str){ s.at, len }) ? len : 0;
}

/* A character that JSON does not escape, but that controls a terminal? */
static bool controls_terminal(const unsigned char *c, size_t len)
{
    if (len == 1)
        return c[0] == 0x7F;
    if (len == 2)
        return c[0] == 0xC2 && c[1] < 0xA0; /* C1 controls: U+009B is as good as ESC [ */
    return len == 3 && c[0] == 0xE2 &&
           ((c[1] == 0x80 && c[2] >= 0xA8 && c[2] <= 0xAE) || /* new lines, text order */
            (c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9));  /* text order */
}

/* `s`, cut to the longest value, with U+FFFD for what is not UTF-8 or controls a terminal. Characters
 * that JSON escapes, such as ESC and newline, are still in it. */
static struct rv__str clean_up(struct sink *sink, struct rv__str s)
{
    static const char replacement[] = "\xEF\xBF\xBD", ellipsis[] = "\xE2\x80\xA6";
    size_t len = 0;
    while (s.len > 0) {
        size_t taken = utf8_length(s), added = taken;
        const char *add = s.at;
        if (taken == 0 || controls_terminal((const unsigned char *)add, taken)) {
            taken = taken ? taken : 1;
            add = replacement;
            added = sizeof replacement - 1;
        }
        if (len + added > RV__LOG_MAX_VALUE) {
            memcpy(sink->clean + len, ellipsis, sizeof ellipsis - 1);
            len += sizeof ellipsis - 1;
            break;
        }
        memcpy(sink->clean + len, add, added);
        len += added;
        s.at += taken;
        s.len -= taken;
    }
    return (struct rv__str){ sink->clean, len };
}

static bool contains_control(struct rv__str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.at[i] < 0x20)
            return true;
    return false;
}

static bool needs_quotes(struct rv__str s)
{
    return s.len == 0 || contains_control(s) || memchr(s.at, ' ', s.len) != NULL ||
           memchr(s.at, '"', s.len) != NULL || memchr(s.at, '=', s.len) != NULL;
}

static void add_value(struct sink *sink, const struct rv__log_field *field)
{
    struct rv__buf *line = &sink->line;
    switch (field->kind) {
    case RV__LOG_KIND_STR: {
        struct rv__str s = clean_up(sink, field->str);
        if (rv__str_none(field->str))
            rv__buf_text(line, "null");
        else if (sink->json || needs_quotes(s))
            rv__buf_json_str(line, s);
        else
            rv__buf_str(line, s);
        break;
    }
    case RV__LOG_KIND_INT: rv__buf_int(line, field->integer); break;
    case RV__LOG_KIND_BOOL: rv__buf_text(line, field->boolean ? "true" : "false"); break;
    }
}

static void add_start(struct sink *sink, enum rv__log_level level, const char *message)
{
    struct rv__buf *line = &sink->line;
    struct rv__str clean = clean_up(sink, rv__str(message));
    char time[RV__TIME_TEXT_SIZE];
    rv__time_text(rv__wall_ms(sink->clock), time);

    if (sink->json) {
        rv__buf_text(line, "{\"time\":\"");
        rv__buf_text(line, time);
        rv__buf_text(line, "\",\"level\":\"");
        rv__buf_text(line, levels[level].json);
        rv__buf_text(line, "\",\"message\":");
        rv__buf_json_str(line, clean);
        return;
    }
    rv__buf_add(line, time + strlen("2026-11-15T"), strlen("19:15:08.123"));
    rv__buf_char(line, ' ');
    rv__buf_text(line, sink->colour ? levels[level].colour : "");
    rv__buf_text(line, levels[level].text);
    rv__buf_text(line, sink->colour ? "\x1b[0m " : " ");
    if (contains_control(clean))
        rv__buf_json_str(line, clean);
    else
        rv__buf_str(line, clean);
}

/* Compose a newline, the line, and its newline. The first newline is sent only after a line that was
 * written in part. */
static void compose(struct sink *sink, enum rv__log_level level, const char *message,
                    const struct rv__log_field *fields, size_t count)
{
    struct rv__buf *line = &sink->line;
    bool cut = false;

    rv__buf_reset(line);
    line->max_bytes = RV__LOG_MAX_LINE - TAIL_ROOM;
    rv__buf_char(line, '\n');
    add_start(sink, level, message);
    for (size_t i = 0; i < count && !cut; i++) {
        size_t start = line->len;
        rv__buf_text(line, sink->json ? ",\"" : i == 0 ? "  " : " ");
        rv__buf_text(line, fields[i].key);
        rv__buf_text(line, sink->json ? "\":" : "=");
        add_value(sink, &fields[i]);
        if (line->rc !=
            RV_OK) { /* too long: nothing else can fail in a buffer that need not grow */
            line->rc = RV_OK;
            rv__buf_cut(line, start);
            cut = true;
        }
    }
    line->max_bytes = RV__LOG_MAX_LINE;
    if (cut)
        rv__buf_text(line, sink->json ? ",\"cut\":true" : " (cut)");
    rv__buf_text(line, sink->json ? "}\n" : "\n");
}

/* Write all of it, in several pieces if a signal interrupts. Returns how many bytes were not written. */
static size_t write_all(int fd, const char *at, size_t left)
{
    while (left > 0) {
        ssize_t n = write(fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        at += n;
        left -= (size_t)n;
    }
    return left;
}

static void send_line(struct sink *sink)
{
    size_t skip = sink->torn ? 0 : 1;
    size_t size = sink->line.len - skip;
    size_t left = write_all(sink->fd, sink->line.text + skip, size);
    if (left == 0)
        sink->torn = false;
    else if (left < size)
        sink->torn = true;
    if (left > 0)
        atomic_fetch_add(&sink->dropped, 1);
}

/* Writing to a pipe without a reader raises SIGPIPE, which would end an embedding program that does not
 * handle it. The signal goes to the writing thread: that thread blocks it and removes the one it caused. */
static void send_line_without_sigpipe(struct sink *sink)
{
    static const struct timespec at_once;
    sigset_t sigpipe, old, pending;
    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    sigemptyset(&pending);
    (void)sigpending(&pending); /* cannot fail; nor can the next */
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &sigpipe, &old);

    uint64_t dropped = atomic_load(&sink->dropped);
    send_line(sink);
    if (atomic_load(&sink->dropped) != dropped && !was_pending)
        while (sigtimedwait(&sigpipe, NULL, &at_once) < 0 && errno == EINTR)
            ;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void rv__log_write(struct rv__log *log, enum rv__log_level level, const char *message,
                   const struct rv__log_field *fields, size_t count)
{
    struct sink *sink = (struct sink *)log;
    assert(level >= RV__LOG_DEBUG && level <= RV__LOG_ERROR);
    if (!rv__log_on(log, level))
        return;

    int saved_errno = errno;
    pthread_mutex_lock(&sink->mutex);
    compose(sink, level, message, fields, count);
    send_line_without_sigpipe(sink);
    pthread_mutex_unlock(&sink->mutex);
    errno = saved_errno;
}
