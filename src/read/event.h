/* event.h: turns facts and log lines from the store into events for subscribers. */
#ifndef RV_READ_EVENT_H
#define RV_READ_EVENT_H

#include "read/read.h"

/* Values in events (results, states, payloads, errors) are included up to this size. For a longer one only its size
 * is given, as `<name>Bytes`; the run has the value. */
enum { RV__EVENT_VALUE_BYTES = 4096 };

/* One event, in the texts of its list. */
struct rv__event {
    uint64_t index;   /* among the events of its row */
    const char *kind; /* static */
    int64_t at_ms;
    size_t path; /* offset in `texts`, NUL-terminated */
    size_t json; /* the same */
};

/* the source of the events, while they are written */
struct rv__events {
    struct rv__event *at;
    size_t count, cap;
    struct rv__buf texts;
    bool no_memory;

    /* Write the events of a fact: none, or one, and a `timer.armed` after it if the fact set a durable timer. */
    uint64_t seq;
    const char *run_id;
    struct rv__str workflow;
    const struct rv__plan *plan;
};
void rv__events_init(struct rv__events *events);
void rv__events_done(struct rv__events *events);
void rv__events_begin(struct rv__events *events, uint64_t seq, const char *run_id,
                      const struct rv__plan *plan);

/* The same for a node that the fact ends without naming it: a step that is cancelled as well, or the node that an
 * abort fails. */
void rv__events_fact(struct rv__events *events, const struct rv__read_fact *fact);
/* A log line: `own` is what rv__event_log_fields() wrote. */
void rv__events_along(struct rv__events *events, const struct rv__trace *trace, uint32_t node,
                      enum rv__status status, const struct rv__read_fact *fact);
/* A line of a log: `own` is what rv__event_log_fields() wrote. */
void rv__event_log_fields(struct rv__buf *own, const struct rv__store_log *line);
void rv__events_log(struct rv__events *events, int64_t at_ms, struct rv__str path,
                    struct rv__str own);
int rv__events_err(const struct rv__events *events, rv_error *err);

const char *rv__level_name(int level); /* "debug", "info", "warn", "error" */

#endif
