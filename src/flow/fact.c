/* fact.c: facts as text. One table lists the fields of each kind; writing, reading and checking all use it.
 *
 * A fact is a JSON object: "k" its kind, "a" the actor, "n" the plan node and "i" the iterations
 * around it (for readers of the feed; evolve uses "a"), "at" the time, and the fields of its kind.
 * A long text is not in it: instead of "result", "state" and "input" it has "resultValue", "stateValue" and "inputValue",
 * [number,bytes] of the value, or "itemsValue", for items in pieces (value.c). The description in such a
 * state is written beside it, also for readers.
 * If the meaning of a kind changes, it gets a new version: "v", absent for 1. */
#include <limits.h>

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/bugs.h"
#include "flow/cell.h"

enum field { /* bits: which fields a kind has besides k, at */
             F_ACTOR = 1 << 0,
             F_OWNER = 1 << 1, /* 0 is left out */
             F_NODE = 1 << 2,
             F_INDEX = 1 << 3,
             F_DUE = 1 << 4, /* 0 is left out */
             F_ATTEMPT =
                 1 << 5, /* 0, before the first, is left out; and in facts of old, of an end */
             F_EVAL = 1 << 6,
             F_STATUS = 1 << 7,
             F_HARD = 1 << 8, /* booleans: false is left out */
             F_SUSPECT = 1 << 9,
             F_BLAME = 1 << 10,
             F_TAKEN = 1 << 11,
             F_RESULT = 1 << 12, /* blobs: NULL is left out */
             F_STATE = 1 << 13,
             F_ERROR = 1 << 14,
             F_NAME = 1 << 15,
             F_DESCRIBE = 1 << 16, /* booleans */
             F_HOSTED = 1 << 17,
             F_CRASH = 1 << 18,
             F_CUT = 1 << 19,
             F_DEATHS = 1 << 20, /* 0 is left out; and `down` */
             F_NONCE = 1 << 21,
             F_MODULE = 1 << 22,     /* 0 is left out */
             F_GIVEN = 1 << 23,      /* a blob, as "input" */
             F_GENERATION = 1 << 24, /* the same */
             F_WHICH = 1 << 25,      /* the same: the number of a state, which is one less */
             F_TO = 1 << 26,         /* the same */
             F_NEXT = 1 << 27,       /* words: the first is left out */
             F_DECISION = 1 << 28,
             F_LEFT = 1 << 29, /* 0 is left out */
             F_BY = 1 << 30,   /* a text; none is left out */
             F_LIMIT = INT_MIN /* the last bit; 0 is left out */
};
#define F_TURN ((unsigned)F_LIMIT) /* a blob; no kind has both; */
#define F_NOTE F_TURN              /* nor this */
#define F_WHO  (F_ACTOR | F_NODE)

static const struct {
    const char *name;
    unsigned fields;
} kinds[FACT_KINDS] = {
    [FACT_RUN_STARTED] = { "run.started", F_ACTOR | F_NONCE | F_RESULT | F_BY | F_LIMIT },
    [FACT_RUN_COMPLETED] = { "run.completed", 0 },
    [FACT_RUN_FAILED] = { "run.failed", F_ERROR | F_NODE },
    [FACT_RUN_CANCELLING] = { "run.cancelling", F_BY },
    [FACT_RUN_CANCELLED] = { "run.cancelled", F_BY },
    [FACT_RUN_SUSPENDED] = { "run.suspended", F_WHO | F_WHICH | F_ERROR },
    [FACT_RUN_RESUMED] = { "run.resumed", /* error: the reason of the decision; may be absent */
                           F_WHO | F_WHICH | F_DECISION | F_LEFT | F_ERROR | F_BY },
    [FACT_RUN_ABORTED] = { "run.aborted", F_ERROR | F_BY },
    [FACT_EVAL_STARTED] = { "eval.started", F_WHO | F_OWNER | F_EVAL },
    [FACT_EVAL_COMPLETED] = { "eval.completed", F_WHO | F_EVAL | F_RESULT | F_GIVEN },
    [FACT_EVAL_FAILED] = { "eval.failed", F_WHO | F_EVAL | F_ERROR },
    [FACT_NODE_STARTED] = { "node.started", F_WHO | F_OWNER },
    [FACT_NODE_COMPLETED] = { "node.completed", F_WHO | F_DESCRIBE | F_STATE },
    [FACT_NODE_FAILED] = { "node.failed", F_WHO | F_ERROR | F_STATE },
    [FACT_NODE_SKIPPED] = { "node.skipped", F_WHO | F_OWNER },
    [FACT_NODE_RETRYING] = { "node.retrying", F_WHO | F_ATTEMPT | F_ERROR | F_DUE },
    [FACT_BODY_STARTED] = { "body.started",
                            F_WHO | F_OWNER | F_INDEX | F_GENERATION | F_ATTEMPT | F_DUE | F_NAME },
    [FACT_BODY_ENDED] = { "body.ended", F_WHO | F_INDEX | F_ATTEMPT | F_STATUS | F_NEXT | F_TO |
                                            F_NAME | F_ERROR },
    [FACT_STEP_STARTED] = { "step.started",
                            F_WHO | F_OWNER | F_ATTEMPT | F_DUE | F_HOSTED | F_CUT | F_MODULE },
    [FACT_STEP_COMPLETED] = { "step.completed", F_WHO | F_ATTEMPT | F_RESULT | F_STATE | F_TAKEN |
                                                    F_DESCRIBE | F_GIVEN | F_BY | F_TURN },
    [FACT_STEP_SKIPPED] = { "step.skipped", F_WHO | F_ATTEMPT | F_STATE | F_GIVEN },
    [FACT_STEP_FAILED] = { "step.failed", F_WHO | F_ATTEMPT | F_ERROR | F_STATE | F_HARD | F_GIVEN |
                                              F_DUE | F_BY },
    [FACT_STEP_RETRYING] = { "step.retrying",
                             F_WHO | F_ATTEMPT | F_ERROR | F_DUE | F_GIVEN | F_BY },
    [FACT_STEP_PARKED] = { "step.parked", F_WHO | F_DUE | F_NAME | F_TAKEN | F_CUT | F_GIVEN },
    [FACT_STEP_NOTED] = { "step.noted",
                          F_WHO | F_DUE | F_NAME | F_TAKEN | F_RESULT | F_GIVEN | F_NOTE },
    [FACT_STEP_LOST] = { "step.lost",
                         F_WHO | F_SUSPECT | F_BLAME | F_CRASH | F_DEATHS | F_ERROR | F_GIVEN },
    [FACT_STEP_GIVEN] = { "step.given", F_WHO | F_ATTEMPT | F_GIVEN },
    [FACT_STEP_READ] = { "step.read", F_WHO | F_NAME | F_BY },
    [FACT_TIMER_FIRED] = { "timer.fired", F_WHO },
    [FACT_SIGNAL_RECEIVED] = { "signal.received", F_NAME | F_RESULT | F_BY },
    [FACT_DETACHED_ENDED] = { "detached.ended", F_WHO },
    [FACT_DETACHED_CANCELLED] = { "detached.cancelled", F_BY },
};

const char *rv__fact_kind_name(enum rv__fact_kind kind)
{
    return kinds[kind].name;
}

/* ------------------------------------------------------------------------------- writing --- */

static void put_int(struct rv__buf *out, const char *key, int64_t value)
{
    rv__buf_text(out, key);
    rv__buf_int(out, value);
}

static void put_word(struct rv__buf *out, const char *key, const char *word)
{
    rv__buf_text(out, key);
    rv__buf_char(out, '"');
    rv__buf_text(out, word);
    rv__buf_char(out, '"');
}

static void put_blob(struct rv__buf *out, const char *key, const struct rv__blob *blob)
{
    if (blob == NULL)
        return;
    rv__buf_text(out, key);
    rv__buf_str(out, rv__blob_str(blob));
}

static void put_value(struct rv__buf *out, const char *key, const char *reference_key,
                      const struct rv__blob *blob)
{
    if (!rv__blob_is_reference(blob)) {
        put_blob(out, key, blob);
        return;
    }
    rv__buf_text(out, reference_key);
    rv__reference_write(blob, out);
}

static void put_vector(const struct rv__actor *actor, struct rv__buf *out)
{
    int64_t vector[RV__PLAN_MAX_DEPTH];
    size_t count = actor != NULL ? rv__actor_vector(actor, vector) : 0;
    for (size_t i = 0; i < count; i++)
        put_int(out, i ? "," : ",\"i\":[", vector[i]);
    if (count > 0)
        rv__buf_char(out, ']');
}

/* Sixteen hexadecimal digits in quotes: many JSON readers could not hold it as a number. */
void rv__hash_text_write(uint64_t number, struct rv__buf *out)
{
    rv__buf_fmt(out, "\"%016llx\"", (unsigned long long)number);
}

int rv__hash_text_read(struct rv__str json, uint64_t *ret)
{
    uint64_t number = 0;
    if (json.len != 18 || json.at[0] != '"' || json.at[17] != '"')
        return RV_EINVAL;
    for (size_t i = 1; i <= 16; i++) {
        char c = json.at[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return RV_EINVAL;
        number = number << 4 | (uint64_t)digit;
    }
    *ret = number;
    return RV_OK;
}

void rv__fact_trim(struct rv__fact *fact)
{
    unsigned has = kinds[fact->kind].fields;
    if (!(has & F_RESULT)) {
        rv__blob_unref(fact->result);
        fact->result = NULL;
    }
    if (!(has & F_STATE)) {
        rv__blob_unref(fact->state);
        fact->state = NULL;
    }
    if (!(has & F_GIVEN)) {
        rv__blob_unref(fact->given);
        fact->given = NULL;
    }
}

void rv__fact_write(const struct rv__cell *cell, const struct rv__fact *fact, struct rv__buf *out)
{
    unsigned has = kinds[fact->kind].fields;
    const struct rv__actor *actor = NULL; /* the actor it is about, or its owner */
    if (has & F_ACTOR)
        actor = rv__cell_find(cell, fact->owner ? fact->owner : fact->actor);
    rv__buf_text(out, "{\"k\":\"");
    rv__buf_text(out, kinds[fact->kind].name);
    rv__buf_char(out, '"');
    if ((has & F_ACTOR) && !(fact->kind == FACT_RUN_RESUMED && fact->actor == 0))
        put_int(out, ",\"a\":", (int64_t)fact->actor);
    if ((has & F_OWNER) && fact->owner != 0)
        put_int(out, ",\"o\":", (int64_t)fact->owner);
    if ((has & F_NODE) && fact->node != RV__NO_NODE)
        put_int(out, ",\"n\":", fact->node);
    if ((has & F_WHO) == F_WHO)
        put_vector(actor, out);
    put_int(out, ",\"at\":", fact->at_ms);
    if (has & F_NONCE) {
        rv__buf_text(out, ",\"nonce\":");
        rv__hash_text_write(fact->nonce, out);
    }
    if (has & F_INDEX)
        put_int(out, ",\"x\":", fact->index);
    if ((has & F_GENERATION) && fact->generation != 0)
        put_int(out, ",\"g\":", fact->generation);
    if ((has & F_WHICH) && fact->which != 0)
        put_int(out, ",\"w\":", (int64_t)fact->which - 1);
    if ((has & F_DUE) && fact->due_ms != 0)
        put_int(out, ",\"due\":", fact->due_ms);
    bool body = fact->kind == FACT_BODY_STARTED || fact->kind == FACT_BODY_ENDED ||
                fact->kind == FACT_NODE_RETRYING;
    if (fact->kind == FACT_STEP_STARTED || body) {
        if (!body || fact->attempt != 0)
            put_int(out, ",\"attempt\":", fact->attempt);
    } else if (has & F_ATTEMPT) {
        assert(actor != NULL); /* a step's end is about the step */
        if (actor->step.attempt != 0)
            put_int(out, ",\"attempt\":", actor->step.attempt);
    }
    if (has & F_EVAL) {
        rv__buf_text(out, ",\"eval\":\"");
        rv__buf_text(out, rv__eval_name((enum rv__eval)fact->eval));
        rv__buf_char(out, '"');
    }
    if (has & F_STATUS) {
        rv__buf_text(out, ",\"status\":\"");
        rv__buf_text(out, rv__status_name((enum rv__status)fact->status));
        rv__buf_char(out, '"');
    }
    if ((has & F_NEXT) && fact->next != NEXT_NONE)
        put_word(out, ",\"next\":", rv__next_name((enum rv__next)fact->next));
    if ((has & F_TO) && fact->to != 0)
        put_int(out, ",\"to\":", (int64_t)fact->to - 1);
    if ((has & F_DECISION) && fact->decision != DECISION_RESUME)
        put_word(out, ",\"decision\":", rv__decision_name((enum rv__decision)fact->decision));
    if ((has & F_LEFT) && fact->left != 0)
        put_int(out, ",\"left\":", fact->left);
    if ((has & F_LIMIT) && fact->limit != 0)
        put_int(out, ",\"limit\":", fact->limit);
    if ((has & F_HARD) && fact->hard && !RV__BUG(14))
        rv__buf_text(out, ",\"hard\":true");
    if ((has & F_SUSPECT) && fact->suspect)
        rv__buf_text(out, ",\"suspect\":true");
    if ((has & F_BLAME) && fact->blame)
        rv__buf_text(out, ",\"blame\":true");
    if ((has & F_CRASH) && fact->crash)
        rv__buf_text(out, ",\"crash\":true");
    if ((has & F_DEATHS) && fact->deaths != 0)
        put_int(out, ",\"deaths\":", fact->deaths);
    if ((has & F_DEATHS) && fact->down_ms != 0)
        put_int(out, ",\"down\":", fact->down_ms);
    if ((has & F_TAKEN) && fact->taken)
        rv__buf_text(out, ",\"signal\":true");
    if ((has & F_HOSTED) && fact->hosted)
        rv__buf_text(out, ",\"hosted\":true");
    if ((has & F_MODULE) && fact->module != 0) {
        rv__buf_text(out, ",\"module\":");
        rv__hash_text_write(fact->module, out);
    }
    if ((has & F_CUT) && fact->cut)
        rv__buf_text(out, ",\"cut\":true");
    if ((has & F_DESCRIBE) && fact->describe)
        rv__buf_text(out, ",\"describe\":true");
    if ((has & F_NAME) && fact->name != NULL) {
        rv__buf_text(out, ",\"name\":");
        rv__buf_json_str(out, rv__blob_str(fact->name));
    }
    if (has & F_RESULT)
        put_value(out, ",\"result\":", ",\"resultValue\":", fact->result);
    if ((has & F_RESULT) && fact->items != NULL) {
        rv__buf_text(out, ",\"itemsValue\":");
        rv__items_write(fact->items, out);
    }
    if (has & F_STATE) {
        put_value(out, ",\"state\":", ",\"stateValue\":", fact->state);
        put_blob(out, ",\"description\":", fact->description);
    }
    if (has & F_ERROR)
        put_blob(out, ",\"error\":", fact->error);
    if (has & F_GIVEN)
        put_value(out, ",\"input\":", ",\"inputValue\":", fact->given);
    if ((has & F_BY) && !rv__str_none(fact->by)) {
        rv__buf_text(out, ",\"by\":");
        rv__buf_json_str(out, fact->by);
    }
    if (has & F_TURN)
        put_blob(out, ",\"turn\":", fact->turn);
    if (has & F_NOTE)
        put_blob(out, ",\"note\":", fact->note);
    rv__buf_char(out, '}');
}

/* ------------------------------------------------------------------------------- reading --- */

void rv__fact_done(struct rv__fact *fact)
{
    rv__blob_unref(fact->result);
    rv__blob_unref(fact->state);
    rv__blob_unref(fact->error);
    rv__blob_unref(fact->name);
    rv__items_unref(fact->items);
    rv__blob_unref(fact->description);
    rv__blob_unref(fact->given);
    rv__blob_unref(fact->turn);
    rv__blob_unref(fact->note);
    fact->description = fact->given = fact->turn = fact->note = NULL;
    fact->result = fact->state = fact->error = fact->name = NULL;
    fact->items = NULL;
}

static int find_name(struct rv__str text, const char *(*name_of)(int), int count)
{
    for (int i = 0; i < count; i++)
        if (rv__json_string_is(text, rv__str(name_of(i))))
            return i;
    return -1;
}

static const char *kind_name(int i)
{
    return kinds[i].name;
}

static const char *eval_name(int i)
{
    return rv__eval_name((enum rv__eval)i);
}

static const char *status_name(int i)
{
    return rv__status_name((enum rv__status)i);
}

static const char *next_name(int i)
{
    return rv__next_name((enum rv__next)i);
}

static const char *decision_name(int i)
{
    return rv__decision_name((enum rv__decision)i);
}

static int read_blob(struct rv__str value, struct rv__blob **ret)
{
    *ret = rv__blob_new(value);
    return *ret != NULL ? RV_OK : RV_ENOMEM;
}

static int read_name(struct rv__str value, struct rv__blob **ret)
{
    struct rv__arena arena;
    struct rv__str text;
    rv__arena_init(&arena, SIZE_MAX);
    int rc = rv__json_string(value, &arena, &text);
    if (rc == RV_OK)
        rc = read_blob(text, ret);
    rv__arena_done(&arena);
    return rc;
}

/* A time, limited so that the sum of two cannot overflow. */
static int read_time(struct rv__str value, int64_t *ret)
{
    int64_t n;
    if (rv__json_int(value, &n) < 0 || n < -RV__MAX_NUMBER || n > RV__MAX_NUMBER)
        return RV_EINVAL;
    *ret = n;
    return RV_OK;
}

/* Non-negative, and at most `max`. */
static int read_count(struct rv__str value, int64_t max, int64_t *ret)
{
    int64_t n;
    if (rv__json_int(value, &n) < 0 || n < 0 || n > max)
        return RV_EINVAL;
    *ret = n;
    return RV_OK;
}

/* Read one member. *seen: the fields so far. RV_EINVAL: it is wrong. */
static int read_member(struct rv__fact *fact, struct rv__str key, struct rv__str value,
                       unsigned *seen)
{
    int64_t n = 0;
    int rc = RV_OK;
    if (rv__str_is(key, "\"a\"")) {
        *seen |= F_ACTOR;
        rc = read_count(value, RV__MAX_NUMBER, &n);
        fact->actor = (uint64_t)n;
    } else if (rv__str_is(key, "\"o\"")) {
        *seen |= F_OWNER;
        rc = read_count(value, RV__MAX_NUMBER, &n);
        fact->owner = (uint64_t)n;
    } else if (rv__str_is(key, "\"n\"")) {
        *seen |= F_NODE;
        rc = read_count(value, UINT32_MAX - 1, &n);
        fact->node = (uint32_t)n;
    } else if (rv__str_is(key, "\"at\"")) {
        rc = read_time(value, &fact->at_ms);
    } else if (rv__str_is(key, "\"x\"")) {
        *seen |= F_INDEX;
        rc = read_count(value, RV__MAX_NUMBER, &fact->index);
    } else if (rv__str_is(key, "\"g\"")) {
        *seen |= F_GENERATION;
        rc = read_count(value, RV__MAX_NUMBER, &fact->generation);
    } else if (rv__str_is(key, "\"w\"")) {
        *seen |= F_WHICH;
        rc = read_count(value, UINT32_MAX - 1, &n);
        fact->which = (uint32_t)n + 1;
    } else if (rv__str_is(key, "\"to\"")) {
        *seen |= F_TO;
        rc = read_count(value, UINT32_MAX - 1, &n);
        fact->to = (uint32_t)n + 1;
    } else if (rv__str_is(key, "\"next\"")) {
        *seen |= F_NEXT;
        fact->next = find_name(value, next_name, NEXTS);
        rc = fact->next < 0 ? RV_EINVAL : RV_OK;
    } else if (rv__str_is(key, "\"decision\"")) {
        *seen |= F_DECISION;
        fact->decision = find_name(value, decision_name, DECISION_ABORT);
        rc = fact->decision < 0 ? RV_EINVAL : RV_OK;
    } else if (rv__str_is(key, "\"left\"")) {
        *seen |= F_LEFT;
        rc = read_count(value, RV__MAX_NUMBER, &fact->left);
    } else if (rv__str_is(key, "\"limit\"")) {
        *seen |= F_LIMIT;
        rc = read_count(value, RV__MAX_NUMBER, &fact->limit);
    } else if (rv__str_is(key, "\"nonce\"")) {
        *seen |= F_NONCE;
        rc = rv__hash_text_read(value, &fact->nonce);
    } else if (rv__str_is(key, "\"due\"")) {
        *seen |= F_DUE;
        rc = read_time(value, &fact->due_ms);
    } else if (rv__str_is(key, "\"attempt\"")) {
        *seen |= F_ATTEMPT;
        rc = read_count(value, INT32_MAX - 1, &n);
        fact->attempt = (int)n;
    } else if (rv__str_is(key, "\"eval\"")) {
        *seen |= F_EVAL;
        fact->eval = find_name(value, eval_name, EVALS);
        rc = fact->eval < 0 ? RV_EINVAL : RV_OK;
    } else if (rv__str_is(key, "\"status\"")) {
        *seen |= F_STATUS;
        fact->status = find_name(value, status_name, STATUSES);
        rc = fact->status < 0 ? RV_EINVAL : RV_OK;
    } else if (rv__str_is(key, "\"hard\"")) {
        *seen |= F_HARD;
        rc = rv__json_bool(value, &fact->hard);
    } else if (rv__str_is(key, "\"suspect\"")) {
        *seen |= F_SUSPECT;
        rc = rv__json_bool(value, &fact->suspect);
    } else if (rv__str_is(key, "\"blame\"")) {
        *seen |= F_BLAME;
        rc = rv__json_bool(value, &fact->blame);
    } else if (rv__str_is(key, "\"crash\"")) {
        *seen |= F_CRASH;
        rc = rv__json_bool(value, &fact->crash);
    } else if (rv__str_is(key, "\"deaths\"")) {
        *seen |= F_DEATHS;
        rc = read_count(value, RV__MAX_DEATHS, &n);
        fact->deaths = (int)n;
    } else if (rv__str_is(key, "\"down\"")) {
        *seen |= F_DEATHS;
        rc = read_time(value, &fact->down_ms);
    } else if (rv__str_is(key, "\"signal\"")) {
        *seen |= F_TAKEN;
        rc = rv__json_bool(value, &fact->taken);
    } else if (rv__str_is(key, "\"hosted\"")) {
        *seen |= F_HOSTED;
        rc = rv__json_bool(value, &fact->hosted);
    } else if (rv__str_is(key, "\"module\"")) {
        *seen |= F_MODULE;
        rc = rv__hash_text_read(value, &fact->module);
    } else if (rv__str_is(key, "\"cut\"")) {
        *seen |= F_CUT;
        rc = rv__json_bool(value, &fact->cut);
    } else if (rv__str_is(key, "\"describe\"")) {
        *seen |= F_DESCRIBE;
        rc = rv__json_bool(value, &fact->describe);
    } else if (rv__str_is(key, "\"name\"") && fact->name == NULL) {
        *seen |= F_NAME;
        rc = read_name(value, &fact->name);
    } else if (rv__str_is(key, "\"result\"") && fact->result == NULL) {
        *seen |= F_RESULT;
        rc = read_blob(value, &fact->result);
    } else if (rv__str_is(key, "\"state\"") && fact->state == NULL) {
        *seen |= F_STATE;
        rc = read_blob(value, &fact->state);
    } else if (rv__str_is(key, "\"resultValue\"") && fact->result == NULL) {
        *seen |= F_RESULT;
        rc = rv__reference_read(value, &fact->result);
    } else if (rv__str_is(key, "\"itemsValue\"") && fact->items == NULL) {
        *seen |= F_RESULT;
        rc = rv__items_read(value, &fact->items);
    } else if (rv__str_is(key, "\"stateValue\"") && fact->state == NULL) {
        *seen |= F_STATE;
        rc = rv__reference_read(value, &fact->state);
    } else if (rv__str_is(key, "\"error\"") && fact->error == NULL) {
        *seen |= F_ERROR;
        rc = read_blob(value, &fact->error);
    } else if (rv__str_is(key, "\"input\"") && fact->given == NULL) {
        *seen |= F_GIVEN;
        rc = read_blob(value, &fact->given);
    } else if (rv__str_is(key, "\"inputValue\"") && fact->given == NULL) {
        *seen |= F_GIVEN;
        rc = rv__reference_read(value, &fact->given);
    } else if (rv__str_is(key, "\"turn\"") && fact->turn == NULL) {
        *seen |= F_TURN;
        rc = read_blob(value, &fact->turn);
    } else if (rv__str_is(key, "\"note\"") && fact->note == NULL) {
        *seen |= F_NOTE;
        rc = read_blob(value, &fact->note);
    } else if (rv__str_is(key, "\"description\"") && fact->description == NULL) {
        *seen |= F_STATE;
        rc = read_blob(value, &fact->description);
    } else if (rv__str_is(key, "\"by\"")) { /* for readers: no state depends on it */
        *seen |= F_BY;
        rc = rv__json_type(value) == RV__JSON_STRING ? RV_OK : RV_EINVAL;
    } else if (!rv__str_is(key, "\"k\"") && !rv__str_is(key, "\"i\"")) {
        rc = RV_EINVAL;
    }
    return rc;
}

/* `json` passed rv__json_check(). */
int rv__fact_read(struct rv__str json, struct rv__fact *ret, rv_error *err)
{
    /* What may be absent, for its default; the rest of a kind's fields must be there. */
    const unsigned optional = F_OWNER | F_DUE | F_ATTEMPT | F_HARD | F_SUSPECT | F_BLAME | F_TAKEN |
                              F_RESULT | F_STATE | F_ERROR | F_NAME | F_NODE | F_DESCRIBE |
                              F_HOSTED | F_CRASH | F_CUT | F_DEATHS | F_MODULE | F_GIVEN |
                              F_GENERATION | F_WHICH | F_TO | F_NEXT | F_DECISION | F_LEFT | F_BY |
                              F_LIMIT;
    struct rv__json_iter it;
    struct rv__str key, value, kind;
    struct rv__fact fact = { .node = RV__NO_NODE };
    unsigned seen = 0;

    if (rv__json_type(json) != RV__JSON_OBJECT || !rv__json_get(json, "k", &kind))
        return rv__fail(err, RV_ESTORE, "a journal entry is not a fact: it has no kind");
    int which = find_name(kind, kind_name, FACT_KINDS);
    if (which < 0)
        return rv__fail(err, RV_ESTORE, "a fact of unknown kind %.*s: written by a newer version?",
                        RV__ARG(kind));
    fact.kind = (enum rv__fact_kind)which;

    rv__json_iter_init(&it, json);
    while (rv__json_next(&it, &key, &value)) {
        int rc = read_member(&fact, key, value, &seen);
        if (rc == RV_OK)
            continue;
        rv__fact_done(&fact);
        if (rc == RV_ENOMEM)
            return rv__nomem(err);
        return rv__fail(err, RV_ESTORE, "fact %s: the field %.*s is not as it should be",
                        kinds[which].name, RV__ARG(key));
    }
    unsigned has = kinds[which].fields;
    if (which == FACT_RUN_RESUMED) /* 0, the run as a whole, is left out there */
        seen |= F_ACTOR;
    if ((seen & ~has) != 0 || (has & ~seen & ~optional) != 0) {
        rv__fact_done(&fact);
        return rv__fail(err, RV_ESTORE, "fact %s: its fields do not fit its kind",
                        kinds[which].name);
    }
    *ret = fact;
    return RV_OK;
}

/* -------------------------------------------------------------------------- facts, a turn --- */

/* Bounded by RV__TURN_FACTS facts, each bounded by the size of a result. */
void rv__facts_init(struct rv__facts *facts)
{
    *facts = (struct rv__facts){ 0 };
    rv__buf_init(&facts->json, SIZE_MAX / 8);
}

void rv__facts_drop_failures(struct rv__facts *facts, size_t from)
{
    while (facts->logged_failure_count > from)
        rv__blob_unref(facts->logged_failures[--facts->logged_failure_count].error);
}

/* Is this a failure without consequence, which only the log shows? *body: the detached child that it ends; NULL: a
 * handler failed. */
static bool only_log_tells(const struct rv__actor *actor, const struct rv__fact *fact,
                           const struct rv__body **body)
{
    bool input = fact->kind == FACT_EVAL_FAILED && fact->eval == EVAL_INPUT;
    bool hard = (fact->kind == FACT_STEP_FAILED && fact->hard) || fact->kind == FACT_NODE_FAILED;
    *body = NULL;
    if (fact->kind != FACT_EVAL_FAILED && actor->node->is_handler)
        return true;
    const struct rv__actor *frame = actor->is_frame ? actor : actor->owner;
    if ((!input && !hard) || frame->owner == NULL || !frame->owner->detached)
        return false;
    *body = frame->frame.body;
    return true;
}

/* What only the log shows of this fact, without its error. False: nothing. */
static bool only_logged(const struct rv__cell *cell, const struct rv__actor *actor,
                        const struct rv__fact *fact, struct rv__logged_failure *ret)
{
    ret->node = cell->plan->nodes[fact->node];
    ret->attempt = 1;
    if (fact->kind == FACT_BODY_ENDED) {
        ret->target = rv__state_redirects_in_vain(actor, fact);
        ret->body = actor->frame.body;
        ret->attempt = fact->attempt;
        return ret->target != NULL;
    }
    if (fact->kind == FACT_STEP_FAILED && actor->step.attempt > 0)
        ret->attempt = actor->step.attempt;
    return only_log_tells(actor, fact, &ret->body);
}

int rv__facts_note_failure(struct rv__facts *facts, const struct rv__cell *cell,
                           const struct rv__fact *fact)
{
    struct rv__logged_failure said = { .node = NULL };
    bool redirect = fact->kind == FACT_BODY_ENDED && fact->next == NEXT_REDIRECT;
    if (fact->kind != FACT_STEP_FAILED && fact->kind != FACT_NODE_FAILED &&
        fact->kind != FACT_EVAL_FAILED && !redirect)
        return RV_OK;
    const struct rv__actor *actor = rv__cell_find(cell, fact->actor);
    assert(actor != NULL);
    if (!only_logged(cell, actor, fact, &said))
        return RV_OK;
    if (facts->logged_failure_count == facts->logged_failure_cap) {
        size_t cap = facts->logged_failure_cap ? facts->logged_failure_cap * 2 : 4;
        struct rv__logged_failure *more = rv__realloc(facts->logged_failures, cap * sizeof *more);
        if (more == NULL)
            return RV_ENOMEM;
        facts->logged_failures = more;
        facts->logged_failure_cap = cap;
    }
    said.error = rv__blob_ref(fact->error);
    (void)rv__actor_vector(actor, said.vector);
    facts->logged_failures[facts->logged_failure_count++] = said;
    return RV_OK;
}

void rv__facts_reset(struct rv__facts *facts)
{
    rv__facts_cut_rows(facts, 0);
    rv__facts_cut_values(facts, 0);
    rv__facts_drop_failures(facts, 0);
    rv__buf_reset(&facts->json);
    memset(facts->said, 0, sizeof facts->said);
    facts->count = 0;
}

void rv__facts_done(struct rv__facts *facts)
{
    rv__facts_cut_rows(facts, 0);
    rv__facts_cut_values(facts, 0);
    rv__facts_drop_failures(facts, 0);
    rv__free(facts->rows);
    rv__free(facts->values);
    rv__free(facts->logged_failures);
    rv__buf_done(&facts->json);
    *facts = (struct rv__facts){ 0 };
}
