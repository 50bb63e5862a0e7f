/* detail.c: one instance of a node in full, filled while its run is folded. */
#include "read/detail.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

void rv__detail_init(struct rv__detail *detail, uint64_t actor)
{
    *detail = (struct rv__detail){ .actor = actor };
    /* bounded by the run's values, and the errors of RV__DETAIL_ATTEMPTS */
    rv__buf_init(&detail->texts, SIZE_MAX / 8);
}

void rv__detail_done(struct rv__detail *detail)
{
    rv__buf_done(&detail->texts);
    rv__free(detail->attempts);
    rv__free(detail->given);
    *detail = (struct rv__detail){ .actor = 0 };
}

int rv__detail_err(const struct rv__detail *detail, rv_error *err)
{
    return detail->no_memory ? rv__nomem(err) : rv__buf_err(&detail->texts, err);
}

size_t rv__detail_keep(struct rv__detail *detail, struct rv__str text)
{
    if (detail->texts.len == 0)
        rv__buf_char(&detail->texts, '\0'); /* 0 is none */
    if (text.len == 0)
        return 0;
    size_t at = detail->texts.len;
    rv__buf_str(&detail->texts, text);
    rv__buf_char(&detail->texts, '\0');
    return at;
}

/* ------------------------------------------------------------------------------- attempts --- */

static void forget(struct rv__detail *detail, size_t count)
{
    detail->count -= count;
    detail->earlier += count;
    memmove(detail->attempts, detail->attempts + count, detail->count * sizeof *detail->attempts);
}

void rv__detail_cut(struct rv__detail *detail)
{
    if (detail->count > RV__DETAIL_ATTEMPTS)
        forget(detail, detail->count - RV__DETAIL_ATTEMPTS);
}

static bool make_room(struct rv__detail *detail)
{
    if (detail->count == 2 * (size_t)RV__DETAIL_ATTEMPTS)
        rv__detail_cut(detail); /* drops the older half: amortised constant time */
    if (detail->count < detail->cap)
        return true;
    size_t cap = detail->cap ? detail->cap * 2 : 4;
    struct rv__attempt *attempts = rv__realloc(detail->attempts, cap * sizeof *attempts);
    if (attempts == NULL) {
        detail->no_memory = true;
        return false;
    }
    detail->attempts = attempts;
    detail->cap = cap;
    return true;
}

/* The running attempt, or NULL. */
static struct rv__attempt *running(struct rv__detail *detail)
{
    struct rv__attempt *last = detail->count > 0 ? &detail->attempts[detail->count - 1] : NULL;
    return last != NULL && last->it.completed_at == 0 ? last : NULL;
}

void rv__detail_began(struct rv__detail *detail, const struct rv__read_fact *fact, int64_t queue_ms)
{
    struct rv__attempt *noted = running(detail);
    if (noted != NULL && noted->it.attempt == fact->attempt) { /* it goes on after its note */
        noted->given = 0;                                      /* and says anew what it was given */
        return;
    }
    if (!make_room(detail))
        return;
    detail->attempts[detail->count++] = (struct rv__attempt){
        .it = { .attempt = fact->attempt,
                .outcome = "running",
                .started_at = fact->at_ms,
                .queue_ms = queue_ms - detail->queue_ms,
                .due_at = fact->due_ms },
    };
    if (fact->module != 0)
        snprintf(detail->attempts[detail->count - 1].it.module, RV_MODULE_SIZE, "%016llx",
                 (unsigned long long)fact->module);
    detail->queue_ms = queue_ms;
}

/* Merge two JSON objects. The first is copied; its old text is removed if it is the last one. */
static void add_members(struct rv__detail *detail, size_t *at, struct rv__str more)
{
    struct rv__buf both;
    if (more.len < 3 || more.at[0] != '{' || rv__buf_err(&detail->texts, NULL) < 0)
        return; /* empty; or the disk is damaged */
    if (*at == 0) {
        *at = rv__detail_keep(detail, more);
        return;
    }
    size_t len = strlen(detail->texts.text + *at);
    rv__buf_init(&both, SIZE_MAX / 8); /* bounded by the two */
    rv__buf_add(&both, detail->texts.text + *at, len - 1);
    rv__buf_char(&both, ',');
    rv__buf_add(&both, more.at + 1, more.len - 1);
    if (rv__buf_err(&both, NULL) < 0)
        detail->no_memory = true;
    else if (*at + len + 1 == detail->texts.len)
        rv__buf_cut(&detail->texts, *at);
    if (!detail->no_memory)
        *at = rv__detail_keep(detail, rv__buf_view(&both));
    rv__buf_done(&both);
}

void rv__detail_add_given(struct rv__detail *detail, size_t attempt, struct rv__str json)
{
    if (attempt >= detail->earlier && attempt - detail->earlier < detail->count)
        add_members(detail, &detail->attempts[attempt - detail->earlier].given, json);
}

static void note_given_value(struct rv__detail *detail, uint64_t number)
{
    if (detail->given_count == detail->given_cap) {
        size_t cap = detail->given_cap ? detail->given_cap * 2 : 4;
        struct rv__given_value *given = rv__realloc(detail->given, cap * sizeof *given);
        if (given == NULL) {
            detail->no_memory = true;
            return;
        }
        detail->given = given;
        detail->given_cap = cap;
    }
    detail->given[detail->given_count++] = (struct rv__given_value){
        detail->earlier + detail->count - 1, number
    };
}

void rv__detail_given(struct rv__detail *detail, const struct rv__read_fact *fact)
{
    struct rv__attempt *last = running(detail);
    if (last == NULL)
        return;
    if (fact->given_value.number != 0)
        note_given_value(detail, fact->given_value.number);
    else
        add_members(detail, &last->given, fact->given);
}

void rv__detail_parked(struct rv__detail *detail, const struct rv__read_fact *fact)
{
    struct rv__attempt *last = running(detail);
    rv__detail_given(detail, fact);
    if (last != NULL)
        last->it.due_at = fact->due_ms;
}

void rv__detail_ended(struct rv__detail *detail, const struct rv__read_fact *fact,
                      const char *outcome)
{
    struct rv__attempt *last = running(detail);
    if (last == NULL)
        return;
    rv__detail_given(detail, fact);
    last->it.outcome = outcome;
    last->it.completed_at = fact->at_ms;
    last->it.due_at = fact->kind == FACT_STEP_RETRYING ? fact->due_ms : 0;
    last->it.down_since = fact->down_ms;
    last->error = rv__detail_keep(detail, (struct rv__str){ NULL, 0 }); /* so that 0 means none */
    if (fact->error.len > 0) {
        last->error = detail->texts.len;
        rv__listed_error(fact, &detail->texts);
        rv__buf_char(&detail->texts, '\0');
    }
}

void rv__detail_completed(struct rv__detail *detail, const struct rv__read_fact *fact,
                          const char *outcome)
{
    rv__detail_ended(detail, fact, outcome);
    detail->result_value = fact->result_value.number;
    if (fact->kind == FACT_STEP_COMPLETED && detail->result_value == 0)
        detail->result = rv__detail_keep(detail,
                                         fact->result.len > 0 ? fact->result : rv__str("null"));
    detail->state_value = fact->state_value.number;
    detail->state = rv__detail_keep(detail, fact->state);
}

void rv__detail_answered(struct rv__detail *detail, const struct rv__read_fact *fact)
{
    detail->result_value = fact->result_value.number;
    detail->result = rv__detail_keep(detail, fact->result.len > 0 ? fact->result : rv__str("null"));
}

void rv__detail_finished(struct rv__detail *detail, enum rv__status status, int64_t at_ms)
{
    struct rv__attempt *last = running(detail);
    if (last == NULL)
        return;
    last->it.completed_at = at_ms;
    last->it.outcome = status == STATUS_CANCELLED ? "cancelled" : "failed";
    last->it.due_at = 0;
}

void rv__detail_input(struct rv__detail *detail, const struct rv__read_fact *fact)
{
    detail->input = rv__detail_keep(detail, fact->result);
    detail->input_value = fact->result_value.number;
}
