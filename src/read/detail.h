/* detail.h: one instance of a node, with all that is known of it: its attempts and its values. Inside
 * read/ only.
 *
 * What a trace keeps of every instance is small on purpose. Of the one that somebody asks for it fills
 * one of these (trace->detail) while it folds the journal; nobody else looks at facts for it. */
#ifndef RV_READ_DETAIL_H
#define RV_READ_DETAIL_H

#include "read/read.h"

enum { RV__DETAIL_ATTEMPTS = 1000 }; /* that are told of a node: the last ones */

struct rv__attempt {
    rv_attempt it;
    size_t error, given; /* where in `texts`; 0: none */
};

/* What an attempt was given, where that is a value: read when the journal is. */
struct rv__given_value {
    size_t attempt; /* counted from the first of all, earlier ones too */
    uint64_t number;
};

struct rv__detail {
    uint64_t actor; /* the instance that it is about */
    uint64_t frame; /* the first body of it that began: a nested workflow's sequence; 0: none did */
    struct rv__attempt *attempts;
    size_t count, cap, earlier; /* earlier: that are not told */
    int64_t queue_ms;           /* that its attempts so far have waited, together */
    struct rv__buf texts;
    size_t input, result, state;                     /* where in `texts`; 0: none, */
    uint64_t input_value, result_value, state_value; /* or values, read when the journal is */
    struct rv__given_value *given;                   /* in order */
    size_t given_count, given_cap;
    bool no_memory;
};

void rv__detail_init(struct rv__detail *detail, uint64_t actor); /* actor 0: of none yet */
void rv__detail_done(struct rv__detail *detail);

/* For the fold. `queue_ms`: all that the instance has waited for places so far. */
void rv__detail_began(struct rv__detail *detail, const struct rv__read_fact *fact,
                      int64_t queue_ms);
void rv__detail_parked(struct rv__detail *detail, const struct rv__read_fact *fact);
/* What the attempt that runs was given, or more of that. rv__detail_ended() and _parked() see to it themselves. */
void rv__detail_given(struct rv__detail *detail, const struct rv__read_fact *fact);
/* The same for a value, behind the fold; `attempt` as in struct rv__given_value. */
void rv__detail_add_given(struct rv__detail *detail, size_t attempt, struct rv__str json);
/* The attempt that runs has ended, if one does; it was the last: with its result and state. */
void rv__detail_ended(struct rv__detail *detail, const struct rv__read_fact *fact,
                      const char *outcome);
void rv__detail_completed(struct rv__detail *detail, const struct rv__read_fact *fact,
                          const char *outcome);
/* A turn of the chat that it is has been answered. */
void rv__detail_answered(struct rv__detail *detail, const struct rv__read_fact *fact);
/* The instance has ended: so has the attempt that runs, along with something else. */
void rv__detail_finished(struct rv__detail *detail, enum rv__status status, int64_t at_ms);
void rv__detail_input(struct rv__detail *detail, const struct rv__read_fact *fact);
/* RV_ENOMEM: something is missing in it. */
int rv__detail_err(const struct rv__detail *detail, rv_error *err);

/* For who reads it, behind the fold: a text at its end, and where it is; 0: it is empty. Then: no more
 * attempts than are told. */
size_t rv__detail_keep(struct rv__detail *detail, struct rv__str text);
void rv__detail_cut(struct rv__detail *detail);

#endif
