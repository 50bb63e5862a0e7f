/* cell.h: the inside of a run's state; for the files of flow/ only.
 *
 * Two kinds of actor: a *frame* is a body being run (a sequence: the outermost, an iteration, a
 * concurrent child, a branch's path, a nested workflow); a *node* is a step or a supervisor being
 * run. Frames own at most one node, supervisors own frames; a failed step or frame owns its handler.
 *
 * Each actor is in exactly one of these places, a function of its own state (rv__actor_place):
 *   todo         something follows from what is known, and needs nobody: rv__flow_pump
 *   ends         the same, and it begins nothing: a body has ended, something is to be suspended. That
 *                goes on while the run is suspended, unless it is so as a whole
 *   ready[lane]  it could start work if it had a place: rv__flow_grant
 *   range[lane]  the same, but it would begin a new body for it (the next iteration or child). Served
 *                after ready, in turn: what was begun is finished before more is begun
 *   nowhere      it waits for a child, for its work, or for a timer
 * Lists are first in, first out, and their order survives a save and load: it is part of the state. Which
 * lane something waits in is not: a load, or rv__cell_lanes(), finds it again (lane.c). */
#ifndef RV_FLOW_CELL_H
#define RV_FLOW_CELL_H

#include "base/index.h"
#include "flow/flow.h"

struct rv__actor;
struct rv__writer; /* write.h */

/* ------------------------------------------------------------------------------ entries --- */

/* The outcome of a finished node, as later nodes see it. Immutable once made, counted, and linked to
 * what was visible before it: a scope is a pointer to the newest entry. */
struct rv__entry {
    atomic_uint refs;
    uint8_t status;  /* enum rv__status */
    uint32_t mark;   /* its number while a cell is saved */
    uint64_t serial; /* no other entry of this process has it */
    int64_t number;  /* of a turn or a call of a chat (rv__chat_number); 0: it is neither */
    struct rv__entry *outer;
    const struct rv__node *node;
    struct rv__blob *result; /* a step's; NULL = null. A supervisor's follows from `inner` */
    struct rv__blob *state;  /* NULL = {} */
    struct rv__blob
        *description;       /* JSON, made after the end: one more member of the state; NULL: none */
    struct rv__blob *error; /* of a failed one: {message, …, path}. A supervisor's is that of what
                                failed in it: they share it */
    struct rv__inner *inner; /* supervisors that ran; NULL else */
};

/* What is inside a finished supervisor. Counted: the copies that a loop makes of entries share it. */
struct rv__inner {
    atomic_uint refs;
    int64_t index;          /* branch: the path taken; loop, keep last: the iteration kept, or -1 */
    int64_t iterations;     /* forEach, loop: how many are in the store, at most */
    struct rv__blob *key;   /* of their rows; NULL: none are */
    struct rv__entry *base; /* where the scopes below begin */
    uint32_t
        child_count; /* concurrent: all children; stage: all states; branch, workflow, loop: one */
    struct rv__child {
        uint8_t status;     /* of the body; of a state: of its last attempt, PENDING: it had none */
        uint32_t attempts;  /* of a state: how many it had, and */
        int64_t generation; /* which was the last that has ended; 0: none */
        struct rv__entry *scope; /* newest entry of the body; NULL or == base: nothing in it */
        struct rv__blob *error; /* of one that failed with nothing in it; else the newest entry's */
        struct rv__blob *attachment; /* of a state: the name of that attempt's; NULL: it had none */
    } children[];
};

uint64_t rv__serial_next(void); /* unlike any before it in this process. Thread: any */
struct rv__entry *rv__entry_new(const struct rv__node *node, enum rv__status status);
/* The same on the scope of the first, or with a description in its state. NULL: no memory. */
struct rv__entry *rv__entry_copy(const struct rv__entry *entry);
struct rv__inner *rv__inner_new(uint32_t children);
/* Why this child failed; NULL: it did not. */
struct rv__blob *rv__inner_error(const struct rv__inner *inner, uint32_t child);
/* Of one child, whose scope is taken over. */
struct rv__inner *rv__inner_of_body(const struct rv__actor *frame, struct rv__entry *scope,
                                    int64_t index);
struct rv__inner *rv__inner_ref(struct rv__inner *inner);
void rv__inner_unref(struct rv__inner *inner);

/* ------------------------------------------------------------------------------- actors --- */

enum rv__phase {
    /* nodes */
    PHASE_BEGIN,     /* its `when` was true: begins when there is a place */
    PHASE_TO_EVAL,   /* an evaluation is wanted */
    PHASE_EVAL,      /* it runs */
    PHASE_EVALUATED, /* its value is there, to be decided on */
    PHASE_READY,     /* step: the next attempt waits for a place */
    PHASE_RUNNING,   /* step: an attempt runs. Supervisor: its bodies do. Frame: its nodes do */
    PHASE_RETRY,     /* step: waits for its timer */
    PHASE_PARKED,    /* step: waits for what `park` says */
    PHASE_FAILED,    /* step: failed, its handler comes. Frame of a workflow: the same */
    PHASES,
};

enum rv__park {
    PARK_DELAY,
    PARK_SIGNAL,
    PARK_HANDLE,
    PARK_CUT /* a delay that will time out */
};

/* One thing that somebody has to decide about. */
struct rv__suspension {
    struct rv__suspension *prev, *next;           /* of the run, oldest first */
    struct rv__suspension *same_prev, *same_next; /* of the same actor */
    struct rv__index_entry by_what, by_path;      /* the second only if the cell has that index */
    uint64_t number;                              /* the older, the smaller */
    struct rv__actor *actor;                      /* a pill, or a stage; NULL: the run as a whole */
    uint32_t which;                               /* of a stage: the state + 1; 0: none */
    int64_t since_ms;
    struct rv__blob *why;
};

struct rv__schedule; /* of the states of a stage, or a chat's turns: what it is, its kind knows */

struct rv__actor {
    uint64_t id;                   /* unique in the run, never reused */
    uint64_t token;                /* counts executions; a message with another one is stale */
    struct rv__actor *owner;       /* NULL: the outermost frame, or a detached block */
    struct rv__actor *child;       /* its first; */
    struct rv__actor *prev, *next; /* siblings, in order of birth */
    struct rv__actor *last_child;
    struct rv__actor *place_prev, *place_next;
    struct rv__actor *effect_next;        /* among those with an effect to release */
    const struct rv__node *node;          /* a frame: of its owner; NULL for the outermost */
    uint8_t is_frame, phase, place, lane; /* place: PLACE_… ; lane: where it is READY or RANGE */
    uint64_t arrival;                     /* READY, RANGE: who has the smaller one came first */
    uint8_t eval, park;
    uint8_t granted;        /* the place that its next effect carries: enum rv__lane; not saved */
    uint32_t ticket;        /* of that place */
    bool fresh;             /* in cell->fresh */
    bool ended;             /* gone from the tree; kept until its STOP is released */
    bool owed;              /* it had an effect: its end is one too */
    bool at_work;           /* counted in cell->working */
    bool suspect;           /* in flight in so many `deaths` that it is perhaps the cause */
    int deaths;             /* of a process that it shared, in a row; */
    int crashes;            /* deaths it is blamed for; */
    struct rv__blob *death; /* the last of them, as an error; NULL: nobody saw it */
    struct rv__suspension *suspensions; /* what is to be decided about it; NULL: nothing */
    bool detached;                      /* concurrent: its sequence went on without it */
    bool hard;                          /* step, FAILED: it fails its sequence */
    bool hosted;            /* step: its attempt runs in a process that is not the engine's */
    int64_t due_ms;         /* RETRY, PARKED; a state's frame or a chat, RUNNING: 0 = never */
    struct rv__blob *value; /* EVALUATED: the value. Node: kept for items. FAILED: the error */
    union {
        struct {
            const struct rv__body *body;
            int64_t iteration; /* in a forEach or loop; of a state: its generation; -1 elsewhere */
            uint32_t at;       /* the node to run next, or running */
            bool failed;       /* a hard failure ended it: `value` is the error */
            bool handled;      /* its workflow's onError has run; */
            bool finished;     /* so has its `finally` */
            bool cancelled;    /* the outermost: it was cut short, only `finally` is left; */
            bool asked;        /* it was to be cancelled: the next time ends its `finally` */
            bool drained;      /* a final state has completed: the stages to come are skipped */
            uint32_t failed_node;
            struct rv__entry *base, *scope, *last;
            struct rv__blob *input;
            size_t item_at,
                item_len; /* forEach: its item in the owner's items, if they are a text */
            struct rv__blob *prefix; /* a detached scope only: the iterations around it, "[3,0]"; */
            struct rv__items *items; /* and the items that it is an iteration of, if in pieces */
            struct rv__inner
                *inputs; /* a state's: what it depends on, in that order; NULL: nothing */
            struct rv__blob *attachment; /* a state's: the name of what it leaves; NULL elsewhere */
            int64_t started_ms;          /* the same */
        } frame;
        struct {
            int attempt;      /* of the one that runs, or ran last; from 1 */
            int next_attempt; /* the same again after a crash: only failures use them up */
            int64_t started_ms;
            struct rv__channel *channel;             /* PARKED on a signal or a handle */
            struct rv__actor *wait_prev, *wait_next; /* among those who wait there */
            struct rv__blob *state;                  /* FAILED: what it left */
            struct rv__blob
                *made; /* by the function of its `input`, for all its attempts; NULL: none */
        } step;
        struct {
            int64_t
                next; /* forEach: the iteration to start next; concurrent: the child; loop: done */
            int64_t count; /* forEach: items */
            int64_t active;
            int64_t ended;
            int64_t good;            /* concurrent: completed */
            int64_t bad;             /* hard failures */
            int64_t shown;           /* of its frames, those in which a node has ended */
            size_t cursor;           /* forEach: where the next item is in `value`; */
            struct rv__items *items; /* or the items, if they are in pieces */
            struct rv__blob *error;  /* the first hard failure's */
            struct rv__blob *key;    /* of its rows, made with the first */
            struct rv__inner *inner; /* concurrent, stage: the outcomes. loop: the last iteration.
                                         chat: the conversation */
            struct rv__schedule *schedule; /* stage, chat */
        } sup;
    };
};

/* A step, or a supervisor? */
static inline bool rv__is_step(const struct rv__node *node)
{
    return node->kind == NODE_STEP;
}
static inline bool rv__actor_is_step(const struct rv__actor *actor) /* a frame is none */
{
    return !actor->is_frame && rv__is_step(actor->node);
}

/* A detached block outlives the sequence it came from. It then belongs to a *detached scope*: a frame without
 * an owner that runs nothing and keeps what the block's steps see. */

enum { PLACE_NOWHERE, PLACE_TODO, PLACE_READY, PLACE_RANGE, PLACE_ENDS };

struct rv__list {
    struct rv__actor *first, *last;
    size_t count;
};

/* Signals of one name that wait for a taker, or takers that wait for a signal; or one handle. */
struct rv__channel {
    struct rv__channel *next; /* in its bucket */
    struct rv__str name;
    bool handle;
    struct rv__actor *first_waiter, *last_waiter;
    struct rv__signal *first_signal, *last_signal;
    uint64_t order; /* of birth: so that saves are in order */
    char text[];
};

struct rv__signal {
    struct rv__signal *next;
    struct rv__blob *payload;
};

enum { CHANNEL_BUCKETS = 64 };

/* The largest id, index or time that is taken from disk: adding to it cannot overflow. */
#define RV__MAX_NUMBER (INT64_C(1) << 61)
enum { RV__MAX_DEATHS = 1000000 }; /* of one actor: more are not counted */

struct rv__cell {
    const struct rv__plan *plan;
    int max_crashes;
    size_t value_inline;
    int turn_facts;
    /* see rv__cell_opts */
    enum rv__lane (*lane)(void *arg, const struct rv__node *node, int eval,
                          const struct rv__body *body);
    uint64_t (*module)(void *arg, const struct rv__node *node); /* the same, with lane_arg */
    void *lane_arg;
    enum rv__run_status status;
    bool started;
    bool quiet;     /* replaying: effects are not noted */
    uint64_t nonce; /* see rv__cell_opts */
    int64_t limit;  /* the same */
    uint64_t next_id;
    uint64_t next_value; /* the number of the next text that leaves for the store */
    struct rv__stamps {  /* names of attachments that were given in the last second; attachment.c */
        int64_t second;
        struct rv__stamp *at; /* in the order in which they were given */
        uint32_t count, cap;
        uint32_t *table; /* by hash: the number of one + 1 */
        size_t table_size;
    } stamps;
    uint64_t stale;
    struct rv__blob *input;
    struct rv__blob *error;                /* of a failed run */
    uint32_t failed_node;                  /* RV__NO_NODE: none */
    struct rv__actor *root;                /* the outermost frame; NULL before and after */
    struct rv__actor *shades, *last_shade; /* of detached blocks, in order of birth */
    struct rv__suspension *suspended, *last_suspended; /* what is to be decided, oldest first */
    struct rv__index suspended_what, suspended_paths;  /* the same, by actor and state; by path, */
    bool knows_paths;                                  /* as soon as somebody has asked for one */
    uint64_t suspensions_ever;
    struct rv__entry *results; /* the outermost scope after the end */

    struct rv__list todo, ends, ready[LANES], range[LANES];
    uint64_t arrivals;                    /* in ready and range, ever */
    struct rv__actor *fresh, *last_fresh; /* with an effect to release */
    enum rv__lane place; /* being given: the work that starts takes it; LANE_NONE: none is */
    uint32_t ticket;     /* of it */

    struct rv__actor **table; /* by id; open addressing */
    size_t table_size, actors;
    size_t working;          /* actors with work in flight */
    struct rv__actor *spare; /* actors to use again */
    struct rv__channel *channels[CHANNEL_BUCKETS];
    uint64_t channel_order;
    size_t signals;        /* received and not taken */
    size_t signal_waiters; /* steps that wait for one */
    size_t bytes;
};

/* cell.c */
struct rv__cell *rv__cell_alloc(const struct rv__cell_opts *opts);
struct rv__actor *rv__cell_find(const struct rv__cell *cell, uint64_t id);
/* A new actor with the id of the cell's counter. Not linked yet. NULL: no memory, nothing changed. */
struct rv__actor *rv__actor_new(struct rv__cell *cell);
void rv__actor_unnew(struct rv__cell *cell, struct rv__actor *actor); /* take that back */
void rv__actor_link(struct rv__cell *cell, struct rv__actor *actor, struct rv__actor *owner);
/* End an actor and all below it. Work in flight becomes a STOP. */
void rv__actor_end(struct rv__cell *cell, struct rv__actor *actor);
void rv__actor_unlink(struct rv__cell *cell,
                      struct rv__actor *actor); /* from its owner or the cell */
/* The actor after `at` in a walk over all of them, owners first; NULL begins and ends it. */
const struct rv__actor *rv__cell_walk(const struct rv__cell *cell, const struct rv__actor *at);
/* What is owed to it has changed: work to start, a timer to set, or neither. Moves its token on. */
void rv__actor_owe(struct rv__cell *cell, struct rv__actor *actor);
void rv__actor_count(struct rv__cell *cell,
                     struct rv__actor *actor);         /* keeps cell->working right */
bool rv__actor_working(const struct rv__actor *actor); /* it has work in flight */
void rv__actor_absolve(struct rv__actor *actor);       /* its work ended as anybody's: no suspect */
bool rv__actor_waiting(const struct rv__actor *actor); /* it has a timer */
/* suspend.c: what somebody has to decide about. A new one comes last; RV_ENOMEM: unchanged. */
int rv__suspension_add(struct rv__cell *cell, struct rv__actor *actor, uint32_t which,
                       int64_t since_ms, struct rv__blob *why);
void rv__suspension_remove(struct rv__cell *cell, struct rv__suspension *suspension);
/* The one at this path (the oldest, if several have it); *ret is NULL if there is none. */
int rv__suspension_at(struct rv__cell *cell, struct rv__str path, struct rv__suspension **ret);
/* How many there are; and of them below this actor, itself included. */
int64_t rv__suspension_count(const struct rv__cell *cell);
int64_t rv__suspensions_below(const struct rv__actor *actor);
struct rv__suspension *rv__suspension_find(const struct rv__cell *cell,
                                           const struct rv__actor *actor, uint32_t which);
/* Is it suspended as a whole? Then nothing goes on. */
bool rv__cell_stopped(const struct rv__cell *cell);
/* All of an actor that ends; all of the run: who is alive is looked at again. */
void rv__suspensions_end(struct rv__cell *cell, struct rv__actor *actor);
void rv__suspensions_clear(struct rv__cell *cell);
/* Its path; nothing is appended for the run as a whole. */
void rv__suspension_path(const struct rv__suspension *suspension, struct rv__buf *out);

/* The items that an iteration of a forEach, or a detached scope of one, has its item from; NULL: none in pieces. */
struct rv__items *rv__frame_items(const struct rv__actor *frame);
/* The frame around it that is an iteration, or NULL. */
const struct rv__actor *rv__actor_loop(const struct rv__actor *actor);
/* The iterations around it, outermost first; returns how many. */
size_t rv__actor_vector(const struct rv__actor *actor, int64_t vector[RV__PLAN_MAX_DEPTH]);
/* The node that its work is for. A frame makes the description of the node that has ended in it last;
 * NULL: the outermost frame, at anything else. */
const struct rv__node *rv__actor_about(const struct rv__actor *actor);
/* The frame it is in: itself, if it is one. A handler: of the node or frame it is for. */
struct rv__actor *rv__actor_frame(const struct rv__actor *actor);

/* place.c. Put it where its state says it belongs; is it there?; put it there by hand (a load). */
void rv__actor_place(struct rv__cell *cell, struct rv__actor *actor);
bool rv__actor_placed(const struct rv__cell *cell, const struct rv__actor *actor);
void rv__actor_put(struct rv__cell *cell, struct rv__actor *actor, int place, enum rv__lane lane);
/* Add it to the list of the lane that it belongs to now, where its arrival says; it is in none. */
void rv__actor_lane(struct rv__cell *cell, struct rv__actor *actor);

/* channel.c */
struct rv__channel *rv__channel_get(struct rv__cell *cell, struct rv__str name, bool handle,
                                    bool make);
void rv__channel_drop_if_empty(struct rv__cell *cell, struct rv__channel *channel);
void rv__channel_join(struct rv__cell *cell, struct rv__channel *channel, struct rv__actor *actor);
void rv__channel_leave(struct rv__cell *cell, struct rv__actor *actor);

/* lane.c: the work that something begins with once it has its place. node NULL: none, it needs no place. */
struct rv__first {
    const struct rv__node *node;
    const struct rv__expr
        *expr; /* of an evaluation; NULL: an input that is only held to its schema */
    int eval;  /* enum rv__eval; -1: an attempt of the step */
    const struct rv__body *body; /* of an input: whose; NULL: the step's own */
};
/* Of a node: its `when`, if it has one; without it, a step's `input` or its attempt, a condition, a while, the
 * items; else that of its first body. Of a body: its workflow's input, if it needs one, else that of its first
 * node. Of an actor that is to evaluate: that. */
struct rv__first rv__first_of_node(const struct rv__node *node);
struct rv__first rv__first_after_when(const struct rv__node *node);
struct rv__first rv__first_of_step(const struct rv__node *step); /* an attempt */
struct rv__first rv__first_of_body(const struct rv__body *body);
struct rv__first rv__first_of_expr(const struct rv__node *node, enum rv__eval eval);
struct rv__first rv__first_of_eval(const struct rv__actor *actor);
struct rv__str rv__first_function(
    const struct rv__first *first); /* its name; none: it is no function */
enum rv__lane rv__first_lane(const struct rv__cell *cell, const struct rv__first *first);
/* What the actor waits to begin; node NULL: it waits for no place. */
struct rv__first rv__actor_first(const struct rv__cell *cell, const struct rv__actor *actor);

/* Those that wait in a lane, whichever, in order of arrival. `place`: PLACE_READY or PLACE_RANGE. */
struct rv__arrivals {
    struct rv__actor *at[LANES + 1];
};
void rv__arrivals_init(struct rv__arrivals *it, const struct rv__cell *cell, int place);
struct rv__actor *rv__arrivals_next(struct rv__arrivals *it); /* NULL: no more */

/* What a snapshot begins with; another one is refused. */
enum { RV__SNAPSHOT_VERSION = 6 };

/* sound.c: could this actor, read from a snapshot, be? Does the chain of entries from `scope` lead down
 * to `base`? */
bool rv__actor_sound(const struct rv__cell *cell, const struct rv__actor *actor);
bool rv__scope_below(const struct rv__entry *scope, const struct rv__entry *base);
/* Of a supervisor with a child for each body (concurrent, stage): does what it has of them fit? One that never began has no
 * scope. NULL, or the member of a snapshot that is wrong. */
const char *rv__children_fit(const struct rv__node *node, const struct rv__inner *inner);
/* Do all its children stand on its base? Then there is nothing wrong: NULL, as inner_fits() says. */
const char *rv__inner_linked(const struct rv__inner *inner);
const char *rv__inner_one(const struct rv__inner *inner); /* and there is one, no more */

/* ------------------------------------------------------------------------------- values --- */

/* The items of a forEach that are too long for one text to be at hand: they are values of their own, in
 * pieces of several, an array each, with consecutive numbers. Which piece an item is in follows from
 * its index: `parts` has how many items the pieces have, one for each stretch of pieces that have the
 * same. So neither the cell nor a snapshot has the text, and an iteration needs no more than its piece.
 * Immutable and counted. */
struct rv__items {
    atomic_uint refs;
    uint64_t serial; /* no other items of this process have it, and no entry */
    uint64_t first;  /* the number of the first piece */
    int64_t count;   /* of items */
    int64_t pieces;
    size_t part_count;
    struct rv__items_part {
        int64_t each, pieces;                /* items in a piece, pieces */
        int64_t items_before, pieces_before; /* of the parts before it */
    } parts[];
};

/* value.c. `parts` with `each` and `pieces` only. NULL: no memory. */
struct rv__items *rv__items_new(uint64_t first, const struct rv__items_part *parts, size_t count);
struct rv__items *rv__items_ref(struct rv__items *items); /* NULL is allowed, and given back */
void rv__items_unref(struct rv__items *items);            /* NULL is allowed */
bool rv__items_same(const struct rv__items *a, const struct rv__items *b);
/* The piece that has the item of this index, and its place in there. */
uint64_t rv__items_piece(const struct rv__items *items, int64_t index, int64_t *place);
/* The item at this place; "none": the piece is not what it should be. */
struct rv__str rv__piece_item(struct rv__str piece, int64_t place);
/* [first,each,pieces,each,pieces,…] and back. RV_EINVAL: it is not that. RV_ENOMEM. */
void rv__items_write(const struct rv__items *items, struct rv__buf *out);
int rv__items_read(struct rv__str json, struct rv__items **ret);
/* [number,bytes] and back: the same. */
void rv__reference_write(const struct rv__blob *reference, struct rv__buf *out);
int rv__reference_read(struct rv__str json, struct rv__blob **ret);
/* Long texts of the fact become references, and values of the facts. The fact holds its blobs. RV_ENOMEM:
 * some may have been added. */
int rv__facts_outline(struct rv__facts *facts, const struct rv__cell *cell, struct rv__fact *fact);
void rv__facts_cut_values(struct rv__facts *facts, size_t count); /* but the first of them */

/* ------------------------------------------------------------------ decide and evolve --- */

/* A turn in the making: how decide says what happened. rv__say() encodes the fact and evolves the
 * cell; it borrows the fact's blobs. RV_ENOMEM: nothing changed. */
struct rv__turn {
    struct rv__cell *cell;
    struct rv__facts *facts;
    int64_t now_ms;
    struct rv__str by; /* whose message it is about; of facts that follow by themselves: none */
};
int rv__say(struct rv__turn *turn, const struct rv__fact *fact, rv_error *err);

/* evolve.c: apply a fact that was checked. RV_ENOMEM: nothing changed. The only writer of actors. */
int rv__evolve(struct rv__cell *cell, const struct rv__fact *fact);
/* Does it fit the cell? RV_ESTORE and why, if not. */
int rv__fact_check(const struct rv__cell *cell, const struct rv__fact *fact, rv_error *err);
/* A result or state that its kind does not have is let go: it came with the message for nothing. */
void rv__fact_trim(struct rv__fact *fact);
void rv__fact_write(const struct rv__cell *cell, const struct rv__fact *fact, struct rv__buf *out);
/* Is it a failure that nobody hears of? Then it is kept for the log. Before it is applied. RV_ENOMEM. */
int rv__facts_note_failure(struct rv__facts *facts, const struct rv__cell *cell,
                           const struct rv__fact *fact);

/* left.c: what ends leaves an entry, and iterations rows. What is in flight in it is cancelled. */
bool rv__node_keeps_rows(const struct rv__node *node);
/* The entry of a node that ends now, with this status; not yet on a scope. NULL: no memory. */
struct rv__entry *rv__node_left(const struct rv__actor *actor, enum rv__status status);
/* The entry of a step that has failed, whatever becomes of its handler. NULL: no memory. */
struct rv__entry *rv__step_failed_entry(const struct rv__actor *step);
/* The scope of a frame that ends now, with the node in flight on top. RV_ENOMEM. */
int rv__frame_left(const struct rv__actor *frame, struct rv__entry **ret);
/* A frame in which a node ends for the first time, or such a frame that goes: its supervisor counts them. */
void rv__frame_count_shown(const struct rv__actor *frame, int more);
/* Has anything ended in it that its results tell? If not, an iteration in flight is not listed. */
bool rv__frame_leaves(const struct rv__actor *frame);
/* The rows that this fact sends to the store. Before it is applied. RV_ENOMEM: some may have been added. */
int rv__facts_rows(struct rv__facts *facts, const struct rv__cell *cell,
                   const struct rv__fact *fact, rv_error *err);
void rv__facts_cut_rows(struct rv__facts *facts, size_t count); /* but the first of them */

/* frame.c: the sequence. */
int rv__frame_advance(struct rv__turn *turn, struct rv__actor *frame, rv_error *err);
int rv__frame_begin(struct rv__turn *turn, struct rv__actor *frame, rv_error *err);
/* Its time is up: the attempt of a state that took too long. */
int rv__frame_timed_out(struct rv__turn *turn, struct rv__actor *frame, rv_error *err);
/* Is this node, which comes next in it, left out, for a final state has completed? */
bool rv__frame_leaves_out(const struct rv__actor *frame, const struct rv__node *node);
/* What a frame that runs, or has failed, begins when it has no child: its next node, its onError, its
 * `finally`; NULL: nothing is left. */
const struct rv__node *rv__frame_next(const struct rv__actor *frame);
bool rv__frame_in_finally(const struct rv__actor *frame);
int rv__say_run_ended(struct rv__turn *turn, struct rv__actor *root, rv_error *err);
int rv__handler_ended(struct rv__cell *cell, struct rv__actor *handler); /* RV_ENOMEM */
void rv__frame_evolve_child(struct rv__cell *cell, struct rv__actor *frame, struct rv__entry *entry,
                            bool hard, struct rv__blob *error);
/* The node that has just ended is described before the next begins; and: it is (NULL: it cannot be). */
void rv__frame_evolve_describe(struct rv__cell *cell, struct rv__actor *frame);
int rv__frame_evolve_described(struct rv__cell *cell, struct rv__actor *frame,
                               struct rv__blob *text);
void rv__frame_evolve_start(struct rv__cell *cell, struct rv__actor *frame, struct rv__actor *owner,
                            const struct rv__body *body, int64_t iteration);

/* step.c */
int rv__step_begin(struct rv__turn *turn, struct rv__actor *owner, struct rv__actor *step,
                   const struct rv__node *node, rv_error *err);
int rv__step_advance(struct rv__turn *turn, struct rv__actor *step, rv_error *err);
int rv__step_send(struct rv__turn *turn, struct rv__actor *step, const struct rv__msg *msg,
                  rv_error *err);
int rv__step_evolve(struct rv__cell *cell, struct rv__actor *step, const struct rv__fact *fact);

/* When something is due; never 0. When what was tried so often may be tried again after this failure; 0: it
 * may not. */
int64_t rv__due_at(int64_t now_ms, int64_t wait_ms);
int64_t rv__retry_at(const struct rv__step_config *config, int attempt, const struct rv__msg *msg,
                     int64_t now_ms);

/* stage.c: the attempt that a frame of a state is, from 1; the target of the redirect that ends it, if that is
 * running and so left alone, else NULL. */
int rv__state_attempt(const struct rv__actor *frame);
const struct rv__body *rv__state_redirects_in_vain(const struct rv__actor *frame,
                                                   const struct rv__fact *fact);

/* attachment.c: the name of what an attempt leaves that begins now; it has begun: it is remembered. RV_ENOMEM:
 * unchanged. */
int rv__attachment_name(const struct rv__cell *cell, const struct rv__actor *sup, int64_t index,
                        int attempt, int64_t at_ms, struct rv__blob **ret);
int rv__attachment_begun(struct rv__cell *cell, const struct rv__actor *sup,
                         const struct rv__fact *fact);
/* How the attempt of a frame ended. `error`: why it did not finish; NULL: it did, or nobody says. */
struct rv__attachment_end {
    enum rv__attachment_status status;
    int64_t at_ms;
    struct rv__blob *error;
};
/* Its row, before the frame ends. A failure is the buffer's. */
void rv__attachment_write(const struct rv__actor *frame, const struct rv__attachment_end *end,
                          struct rv__buf *out);
void rv__stamps_done(struct rv__stamps *stamps);
void rv__stamps_save(const struct rv__stamps *stamps, struct rv__buf *out); /* ,"stamps":[…] */
int rv__stamps_load(struct rv__stamps *stamps, struct rv__str json); /* RV_EINVAL, RV_ENOMEM */

/* A kind of node: one file, one row in kinds.c. Everything that depends on the kind is asked here; a
 * step has a row too, with what a plan or a disk may ask of any node. What is left out is NULL or
 * false, and says what stands beside it. */
struct rv__flow_kind {
    /* ---- by the plan alone */
    /* The work that a node begins with, its `when` apart. */
    struct rv__first (*first_work)(const struct rv__node *node);
    /* Do its iterations leave the cell as rows? NULL: it has none, or they do not. */
    bool (*keeps_rows)(const struct rv__node *node);
    /* Does its sequence go on while it still runs? NULL: never. */
    bool (*detaches)(const struct rv__node *node);
    bool tells_below; /* when it is cut short, what has finished below it is told */

    bool drained_out; /* after a final state it is left out */

    /* ---- decide */
    /* What it wants first, once it has begun: PHASE_TO_EVAL for *eval, or PHASE_RUNNING. */
    enum rv__phase (*first_phase)(const struct rv__node *node, int *eval);
    /* Where it is while PHASE_RUNNING; *first: what it would begin with the place that it waits for. */
    int (*place)(const struct rv__actor *sup, struct rv__first *first);
    /* Something follows from its state: say the next fact. Also: start the next body, on a grant. */
    int (*advance)(struct rv__turn *turn, struct rv__actor *sup, rv_error *err);
    /* Of a kind whose bodies ask somebody (chat). What it has to know of an answer, for the fact of it; NULL:
     * no memory. When it may try again after this failure; 0: not at all. */
    struct rv__blob *(*answer)(const struct rv__actor *sup, const struct rv__msg *msg);
    int64_t (*retry_at)(const struct rv__actor *sup, const struct rv__msg *msg, int64_t now_ms);
    /* Its own timer fell due. NULL: it has none; those of its bodies are theirs. */
    int (*timer)(struct rv__turn *turn, struct rv__actor *sup, const struct rv__msg *msg,
                 rv_error *err);
    /* One of its frames has ended, as the fact says so far: what follows for it. NULL: nothing. */
    void (*settle)(const struct rv__actor *frame, struct rv__fact *fact);

    /* ---- evolve */
    /* It begins: the schedule of its bodies. NULL: it has none; from it: no memory. */
    struct rv__schedule *(*schedule)(const struct rv__node *node, int64_t limit);
    /* A kind with `answer`: the answer has come, or will not. Take no memory. */
    void (*answered)(struct rv__actor *sup, const struct rv__fact *fact);
    void (*gave_up)(struct rv__actor *sup, const struct rv__fact *fact);
    /* All below it is given up, to begin anew at its time; that has come. RV_ENOMEM: unchanged. */
    int (*retried)(struct rv__cell *cell, struct rv__actor *sup, const struct rv__fact *fact);
    /* What the body of this number gets when it begins now. NULL: nothing; from it: no memory, unless
     * *none. */
    struct rv__inner *(*inputs)(const struct rv__actor *sup, int64_t index, bool *none);
    /* It was decided about one of its bodies, or it is suspended for it. RV_ENOMEM: unchanged. */
    int (*decided)(struct rv__cell *cell, struct rv__actor *sup, uint32_t which,
                   enum rv__decision decision);
    void (*suspended)(struct rv__actor *sup, uint32_t which, bool is);
    bool (*drains)(const struct rv__actor *sup); /* it has ended as a final state says */
    /* It begins: where the outcomes of its bodies will be. NULL: it has no such place; from it: no
     * memory. */
    struct rv__inner *(*outcomes)(const struct rv__node *node, struct rv__entry *scope);
    /* The same: it goes on from what it left when it ran before, in an earlier attempt of the state that is
     * `frame`. RV_ENOMEM: unchanged. NULL: it always begins anew. */
    int (*carry_on)(const struct rv__node *node, const struct rv__actor *frame,
                    struct rv__inner *fresh);
    /* One of its frames begins; it is not linked yet. Takes no memory. NULL: nothing to count. */
    void (*body_started)(struct rv__actor *sup, struct rv__actor *frame);
    /* The scope that its next frame begins with. NULL, or from it: that of the frame around. */
    struct rv__entry *(*scope)(const struct rv__actor *sup);
    /* One of its frames has ended: take over what is to be kept. RV_ENOMEM: unchanged. NULL: it has
     * one body, whose end is its own. */
    int (*body_ended)(struct rv__cell *cell, struct rv__actor *sup, struct rv__actor *frame,
                      const struct rv__fact *fact);

    /* ---- what is left of it, and what waits in it */
    /* Has it got as far as to have a result? NULL: it never does. */
    bool (*has_begun)(const struct rv__actor *sup);
    /* What will be in its entry, at its end, of one that has begun. NULL: no memory. */
    struct rv__inner *(*inner)(const struct rv__actor *sup);
    /* The state that it leaves, of one that has begun. NULL: none; from it: no memory. */
    struct rv__blob *(*state)(const struct rv__actor *sup);
    /* The item of an iteration, as the first member of its row. NULL: it has none. */
    void (*write_item)(const struct rv__actor *frame, struct rv__buf *row);
    /* Are there bodies that it has not begun, which wait? Their number, and why. NULL: never. */
    bool (*rest)(const struct rv__actor *sup, struct rv__wait *wait);

    /* ---- results, as JSON (write.h) */
    /* The entry inside it that has its result. NULL, or from it: none, it has one of its own. */
    const struct rv__entry *(*result_from)(const struct rv__entry *entry);
    /* The result of an entry with something inside. */
    void (*write_result)(struct rv__writer *w, const struct rv__entry *entry);
    /* An object that was written as that into a row: with the rows and values that it stands for.
     * `vector`: the iterations around the node. */
    void (*expand_result)(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                          struct rv__str vector);
    /* The item that write_item() has put into a row as a reference. */
    void (*expand_item)(struct rv__writer *w, struct rv__str reference);

    /* ---- what comes from disk */
    bool starts_evaluated; /* a body of it may begin when its condition was evaluated, */
    bool starts_running;   /* or while it runs */
    bool ends_evaluated;   /* it may complete by its condition */
    /* May the body, or iteration, of this number begin now? NULL, or why not. */
    const char *(*body_fits)(const struct rv__actor *sup, int64_t index);
    /* Of a kind with a schedule: the start or end of a body, a suspension, a decision. NULL, or why not. */
    const char *(*fact_fits)(const struct rv__actor *sup, const struct rv__actor *frame,
                             const struct rv__fact *fact);
    void (*save)(const struct rv__actor *sup, struct rv__buf *out); /* its schedule, as an array */
    /* And back; false: it is not as it should be. What follows from it is made when all is there. */
    bool (*load)(struct rv__actor *sup, struct rv__str array);
    /* Could it be, with so many frames? What holds for all supervisors was asked. */
    bool (*sound)(const struct rv__actor *sup, int64_t frames);
    /* Could this be inside an entry of it? NULL, or the member that is wrong. */
    const char *(*inner_fits)(const struct rv__node *node, const struct rv__inner *inner);
};
extern const struct rv__flow_kind *const rv__flow_kinds[NODE_KINDS];

static inline const struct rv__flow_kind *rv__flow_kind(const struct rv__node *node)
{
    return rv__flow_kinds[node->kind];
}
/* Its body runs over and over: `loop` tells of it. */
static inline bool rv__iterates(const struct rv__node *node)
{
    return rv__node_bodies(node) == BODIES_ITERATED;
}
static inline bool rv__has_items(const struct rv__node *node) /* one for each iteration */
{
    return rv__flow_kind(node)->write_item != NULL;
}
static inline bool rv__detaches(const struct rv__node *node)
{
    const struct rv__flow_kind *kind = rv__flow_kind(node);
    return kind->detaches != NULL && kind->detaches(node);
}

int rv__node_begin(struct rv__turn *turn, struct rv__actor *owner, struct rv__actor *actor,
                   const struct rv__node *node, rv_error *err);
int rv__eval_start(struct rv__turn *turn, struct rv__actor *actor, rv_error *err);
/* Does it begin with an evaluation that is a fact of its own, before anything is started? */
bool rv__begins_evaluating(const struct rv__node *node, enum rv__eval *eval);
int rv__body_start(struct rv__turn *turn, struct rv__actor *sup, int64_t index, rv_error *err);
int rv__node_evaluated(struct rv__turn *turn, struct rv__actor *actor, rv_error *err);
int rv__node_fail(struct rv__turn *turn, struct rv__actor *sup, const char *code,
                  const char *message, rv_error *err);
struct rv__blob *rv__row_key(const struct rv__actor *owner, const struct rv__node *node);
/* Its run is to stop and wait for a decision, because of this actor; after the run's end it fails. */
int rv__suspend(struct rv__turn *turn, struct rv__actor *actor, rv_error *err);
/* A run that has ended, or only has its handler to run yet, is not stopped for what it has detached. */
bool rv__is_left_behind(const struct rv__cell *cell, const struct rv__actor *actor);
/* A new error that says `fmt` with the message of another one behind it. NULL: no memory. */
struct rv__blob *rv__error_because(const char *code, const struct rv__blob *of, const char *fmt,
                                   ...) RV_PRINTF(3, 4);
int rv__node_end(struct rv__turn *turn, struct rv__actor *sup, enum rv__fact_kind kind,
                 struct rv__blob *error, rv_error *err);
/* {"message":"…","code":"…"} with what printf makes (code NULL: without); NULL: no memory. */
struct rv__blob *rv__error_blob(const char *code, const char *fmt, ...) RV_PRINTF(2, 3);
/* The error of what fails by itself, not by something inside it: with the path of `node`, or of `body`
 * (node NULL), in the iterations around it; whatever it says of a path itself goes. `error` NULL: one
 * that says no more than that. NULL: no memory. */
struct rv__blob *rv__error_at(const struct rv__blob *error, const struct rv__node *node,
                              const struct rv__body *body, const int64_t *vector);
struct rv__blob *rv__error_of(const struct rv__blob *error, const struct rv__actor *actor);
/* What it is evaluated for; NULL: an input that only needs to be held against its schema. */
const struct rv__expr *rv__actor_expr(const struct rv__actor *actor);
/* The body whose input it evaluates; NULL: it evaluates something else, or a step's own. */
const struct rv__body *rv__actor_input_body(const struct rv__actor *actor);
/* The node's own expression for it; NULL: its kind has none, or it was not said. */
const struct rv__expr *rv__eval_expr(const struct rv__node *node, enum rv__eval eval);
/* Is there a description to be made of the node, as `state` has none? */
bool rv__describes(const struct rv__node *node, const struct rv__blob *state);
bool rv__truth(const struct rv__blob *json); /* jq's: neither false nor null */

#endif
