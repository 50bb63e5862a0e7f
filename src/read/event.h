/* event.h: from what is on disk to what subscribers are told. */
#ifndef RV_READ_EVENT_H
#define RV_READ_EVENT_H

#include "read/read.h"

/* Values in events (results, states, payloads, errors) are given up to this size; of a longer one
 * only its size is told, as `<name>Bytes`. Who wants it asks for the run. */
enum { RV__EVENT_VALUE_BYTES = 4096 };

/* One event, in the texts of its list. */
struct rv__event {
    uint64_t index;   /* among the events of its row */
    const char *kind; /* static */
    int64_t at_ms;
    size_t path; /* where in `texts`, with a NUL behind */
    size_t json; /* the same */
};

/* The events of one journal row or log line. */
struct rv__events {
    struct rv__event *at;
    size_t count, cap;
    struct rv__buf texts;
    bool no_memory;

    /* whose they are, while they are written */
    uint64_t seq;
    const char *run_id;
    struct rv__str workflow;
    const struct rv__plan *plan;
};
void rv__events_init(struct rv__events *events);
void rv__events_done(struct rv__events *events);
void rv__events_begin(struct rv__events *events, uint64_t seq, const char *run_id,
                      const struct rv__plan *plan);

/* What a fact means to subscribers: nothing, or its event, and a `timer.armed` behind it where it set
 * a durable timer. */
void rv__events_fact(struct rv__events *events, const struct rv__read_fact *fact);
/* A node that the fact ends without naming it: a step that is cancelled with something else, or what an
 * abort fails. */
void rv__events_along(struct rv__events *events, const struct rv__trace *trace, uint32_t node,
                      enum rv__status status, const struct rv__read_fact *fact);
/* A line of a log: `own` is what rv__event_log_fields() wrote. */
void rv__event_log_fields(struct rv__buf *own, const struct rv__store_log *line);
void rv__events_log(struct rv__events *events, int64_t at_ms, struct rv__str path,
                    struct rv__str own);
int rv__events_err(const struct rv__events *events, rv_error *err);

const char *rv__level_name(int level); /* "debug", "info", "warn", "error" */

#endif
