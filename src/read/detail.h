/* detail.h: everything known about one instance of a node: its attempts and its values. Inside read/ only.
 *
 * A trace keeps little about each instance. For the one instance that was asked for, it fills a struct rv__detail
 * (trace->detail) while it folds the journal. */
#ifndef RV_READ_DETAIL_H
#define RV_READ_DETAIL_H

#include "read/read.h"

enum { RV__DETAIL_ATTEMPTS = 1000 }; /* shown of a node: the last ones */

struct rv__attempt {
    rv_attempt it;
    size_t error, given; /* offsets in `texts`; 0: none */
};

/* The input of an attempt, if it is a stored value: read after the journal. */
struct rv__given_value {
    size_t attempt; /* counted from the first attempt, including those not shown */
    uint64_t number;
};

struct rv__detail {
    uint64_t actor; /* the instance */
    uint64_t frame; /* its first body that began: of a nested workflow, the sequence; 0: none */
    struct rv__attempt *attempts;
    size_t count, cap, earlier; /* earlier: attempts that are not shown */
    int64_t queue_ms;           /* of all attempts so far */
    struct rv__buf texts;
    size_t input, result, state;                     /* offsets in `texts`; 0: none, */
    uint64_t input_value, result_value, state_value; /* or values, read after the journal */
    struct rv__given_value *given;                   /* in order */
    size_t given_count, given_cap;
    bool no_memory;
};

void rv__detail_init(struct rv__detail *detail, uint64_t actor); /* actor 0: not known yet */
void rv__detail_done(struct rv__detail *detail);

/* For the fold. `queue_ms`: how long the instance has waited for free places so far. */
void rv__detail_began(struct rv__detail *detail, const struct rv__read_fact *fact,
                      int64_t queue_ms);
void rv__detail_parked(struct rv__detail *detail, const struct rv__read_fact *fact);
/* The input of the running attempt, or more of it. rv__detail_ended() and _parked() call this themselves. */
void rv__detail_given(struct rv__detail *detail, const struct rv__read_fact *fact);
/* The same for a stored value, after the fold; `attempt` as in struct rv__given_value. */
void rv__detail_add_given(struct rv__detail *detail, size_t attempt, struct rv__str json);
/* _ended: the running attempt, if any, has ended. _completed: it was the last one; with its result and state. */
void rv__detail_ended(struct rv__detail *detail, const struct rv__read_fact *fact,
                      const char *outcome);
void rv__detail_completed(struct rv__detail *detail, const struct rv__read_fact *fact,
                          const char *outcome);
/* A turn of this chat was answered. */
void rv__detail_answered(struct rv__detail *detail, const struct rv__read_fact *fact);
/* The instance has ended, and with it the attempt that still runs. */
void rv__detail_finished(struct rv__detail *detail, enum rv__status status, int64_t at_ms);
void rv__detail_input(struct rv__detail *detail, const struct rv__read_fact *fact);
/* RV_ENOMEM: the detail is incomplete. */
int rv__detail_err(const struct rv__detail *detail, rv_error *err);

/* For readers, after the fold. _keep appends a text and returns its offset; 0: empty. _cut then drops the attempts
 * that are not shown. */
size_t rv__detail_keep(struct rv__detail *detail, struct rv__str text);
void rv__detail_cut(struct rv__detail *detail);

#endif
