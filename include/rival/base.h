/* base.h: shared by the whole public API of Rival: versions, errors, cancel tokens, panics.
 *
 * <rival/rival.h> and <rival/group.h> include it; there is rarely a reason to include it by itself.
 * C99, and accepted by a C++ compiler. Every name begins with rv_ or RV_. */
#ifndef RIVAL_BASE_H
#define RIVAL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RV_API            __attribute__((visibility("default")))
#define RV_PRINTF(fmt, a) __attribute__((format(printf, fmt, a)))
#define RV_NORETURN       __attribute__((noreturn))
#else
#define RV_API
#define RV_PRINTF(fmt, a)
#define RV_NORETURN
#endif

/* The version of this header, and (rv_version) of the library that is linked. */
#define RV_VERSION "0.1.0"
RV_API const char *rv_version(void); /* static text; never NULL. Thread: any. */

/* ------------------------------------------------------------------------------------------
 * Errors
 *
 * A call that can fail returns RV_OK (or a count) on success, and one of these codes, always
 * negative, on failure. A number is never reused; new ones are added at the end. */
#define RV_ERR_MAP(X)                                         \
    X(EINVAL, -1, "invalid argument")                         \
    X(ENOMEM, -2, "out of memory")                            \
    X(ESTATE, -3, "not possible in the present state")        \
    X(ESTORE, -4, "the store failed")                         \
    X(ECANCELED, -5, "cancelled")                             \
    X(ETIMEDOUT, -6, "timed out")                             \
    X(ECLOSED, -7, "closed")                                  \
    X(EBUSY, -8, "busy: a limit is reached, try again later") \
    X(EPANIC, -9, "panic")                                    \
    X(EFAILED, -10, "failed")                                 \
    X(ETOOBIG, -11, "too big")                                \
    X(EPARSE, -12, "not well-formed")                         \
    X(EDEADLK, -13, "would wait for itself for ever")         \
    X(ESYS, -14, "the operating system refused")              \
    X(ENOTFOUND, -15, "not found")                            \
    X(EEXIST, -16, "exists already")                          \
    X(EUNWANTED, -17, "nobody waits for it")                  \
    X(EGONE, -18, "the store is gone")                        \
    X(EDENIED, -19, "not allowed")

enum rv_err {
    RV_OK = 0,
#define RV_ERR_ENUM(name, code, text) RV_##name = (code),
    RV_ERR_MAP(RV_ERR_ENUM)
#undef RV_ERR_ENUM
};

/* What went wrong: the code is for the program, the message for people.
 *
 * The caller owns the struct; a function writes it only when it fails. Wherever the API takes
 * an `rv_error *`, NULL means that the code is enough. */
typedef struct rv_error {
    int code;          /* 0 = no error; else a negative RV_E… code, or a task's own */
    char message[256]; /* one sentence, NUL-terminated, cut at 255 bytes if it is longer */
} rv_error;

/* The general text of a code, e.g. "out of memory"; "unknown error" for a code that is not ours.
 *
 * Returns static text, never NULL. Thread: any. */
RV_API const char *rv_strerror(int code);

/* The name of a code, e.g. "RV_ENOMEM"; NULL for a code that is not ours. Thread: any. */
RV_API const char *rv_errname(int code);

/* ------------------------------------------------------------------------------------------
 * Cancel tokens
 *
 * A token tells everyone who holds it to stop, and why. It fires once; the first cause is kept.
 * Tokens form trees: firing a token fires all tokens below it, and none above. Tokens may be freed
 * in any order: a child keeps what it needs from its parent. */
typedef struct rv_cancel rv_cancel;

/* Make a token, as a child of `parent` unless that is NULL. If the parent has fired, the new token
 * has fired too.
 *
 * Returns a token for rv_cancel_free(), or NULL if there is no memory. Thread: any. */
RV_API rv_cancel *rv_cancel_new(rv_cancel *parent);

/* Fire the token and all tokens below it, and wake every thread that waits for one of them.
 *
 * `code` 0 means RV_ECANCELED; `why` is copied, NULL means the code's general text. Firing a token
 * again, or NULL, does nothing. Thread: any, but not a signal handler. */
RV_API void rv_cancel_fire(rv_cancel *c, int code, const char *why);

/* Has it fired? A single atomic load: cheap enough for an inner loop. NULL: false. Thread: any. */
RV_API bool rv_cancel_fired(const rv_cancel *c);

/* Wait until it fires (returns true) or the time is over (false). timeout_ms < 0: no limit; a NULL
 * token never fires. For code that would otherwise sleep and poll. Thread: any. */
RV_API bool rv_cancel_wait(rv_cancel *c, int64_t timeout_ms);

/* Why it fired: writes *why (if not NULL) and returns the code. Returns 0 and leaves *why untouched if
 * it has not fired. Thread: any. */
RV_API int rv_cancel_cause(rv_cancel *c, rv_error *why);

/* Free the token. This does not fire it. NULL is allowed. No other thread may use this reference any
 * more; tokens below it stay valid. Thread: any. */
RV_API void rv_cancel_free(rv_cancel *c);

/* ------------------------------------------------------------------------------------------
 * Panics
 *
 * End the current task at once because of a bug. Inside a task, the panic becomes that task's error
 * (RV_EPANIC, with this message), unless its group has `panic_aborts`. Outside of any task, the
 * message goes to stderr and the process aborts. The stack of the task is not unwound: its locks
 * stay locked, and its memory is leaked.
 *
 * Does not return. Thread: any. */
RV_API RV_NORETURN void rv_panic(const char *fmt, ...) RV_PRINTF(1, 2);

#ifdef __cplusplus
}
#endif
#endif
