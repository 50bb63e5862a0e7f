/* wire.h: HTTP to a Rival server: requests, and streams of events.
 *
 * Thread: one at a time for one wire. */
#ifndef RV_CLI_WIRE_H
#define RV_CLI_WIRE_H

#include <rival/rival.h>

#include "base/str.h"

struct rv__wire;

/* `url` is http://HOST[:PORT] or https://…; `token` NULL = none. Does not connect yet.
 * Errors: RV_EINVAL, RV_ENOMEM. */
int rv__wire_new(const char *url, const char *token, struct rv__wire **ret, rv_error *err);
void rv__wire_free(struct rv__wire *wire); /* NULL is allowed */
const char *rv__wire_url(const struct rv__wire *wire);

/* Send a request and wait for the whole answer: returns its status; its text is in `answer`, which is emptied
 * first. `body` may be empty. `path` begins with a slash and includes the query.
 * Errors: RV_ECLOSED (no answer), RV_ETIMEDOUT, RV_ETOOBIG, RV_ENOMEM, RV_ESYS. */
int rv__wire_ask(struct rv__wire *wire, const char *method, const char *path, struct rv__str body,
                 struct rv__buf *answer, rv_error *err);

/* The code and message of an answer that is not 2xx, from the problem that our server sends. */
int rv__wire_problem(const struct rv__wire *wire, int status, struct rv__str answer, rv_error *err);

/* Events as they arrive. A lost connection is made again, and continues after the last event; `lost` (may be NULL)
 * is called once each time. */
struct rv__wire_events;
int rv__wire_follow(struct rv__wire *wire, const char *path,
                    void (*lost)(const char *url, const char *why), struct rv__wire_events **ret,
                    rv_error *err);
void rv__wire_events_free(struct rv__wire_events *events); /* NULL is allowed */
/* As rv_feed_next(). Errors also: RV_EINVAL (the server refuses). */
int rv__wire_next(struct rv__wire_events *events, int64_t timeout_ms, rv_cancel *by, rv_event *ret,
                  rv_error *err);

#endif
