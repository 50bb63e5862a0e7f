/* cell.h: the state of a run; private to flow/.
 *
 * There are two kinds of actor. A *frame* is a running body: a sequence of nodes (the outermost one, an
 * iteration, a child of a concurrent, a path of a branch, a nested workflow). A *node* is a running step or
 * supervisor. A frame owns at most one node, a supervisor owns frames; a failed step or frame owns its handler.
 *
 * Each actor is in exactly one of these places, which follows from its own state (rv__actor_place):
 *   todo         it can advance now, without outside work: rv__flow_pump
 *   ends         the same, but it starts nothing: a body has ended, or something is to be suspended. This
 *                continues while the run is suspended, unless it is suspended as a whole
 *   ready[lane]  it would start work if it had a place: rv__flow_grant
 *   range[lane]  the same, but it would start a new body (the next iteration or child). Served after ready,
 *                in turn: what was begun is finished first
 *   nowhere      it waits for a child, for its work, or for a timer
 * Lists are first in, first out. Their order is part of the state: it survives save and load. The lane is not:
 * a load, or rv__cell_lanes(), computes it again (lane.c). */
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
    uint32_t mark;   /* its number during a save */
    uint64_t serial; /* unique in this process */
    int64_t number;  /* of a turn or call of a chat (rv__chat_number); 0: it is neither */
    struct rv__entry *outer;
    const struct rv__node *node;
    struct rv__blob *result; /* of a step; NULL = null. That of a supervisor follows from `inner` */
    struct rv__blob *state;  /* NULL = {} */
    struct rv__blob *description; /* JSON, made after the end; shown in the state; NULL: none */
    struct rv__blob
        *error; /* of a failed node: {message, …, path}. A supervisor shares the error of what
                                failed in it */
    struct rv__inner *inner; /* of a supervisor that ran; else NULL */
};

/* What is inside a finished supervisor. Reference-counted: the copies of entries that a loop makes share it. */
struct rv__inner {
    atomic_uint refs;
    int64_t index;          /* branch: the path taken; loop, keep last: the iteration kept, or -1 */
    int64_t iterations;     /* forEach, loop: at most so many are in the store */
    struct rv__blob *key;   /* of their rows; NULL: there are none */
    struct rv__entry *base; /* where the scopes below begin */
    uint32_t
        child_count; /* concurrent: all children; stage: all states; branch, workflow, loop: one */
    struct rv__child {
        uint8_t status;          /* of the body; of a state: of its last attempt, or PENDING */
        uint32_t attempts;       /* of a state: how many it had, */
        int64_t generation;      /* and the last one that ended; 0: none */
        struct rv__entry *scope; /* newest entry of the body; NULL or == base: it is empty */
        struct rv__blob *error; /* of a failed body without entries; else the newest entry has it */
        struct rv__blob *attachment; /* of a state: id of that attempt's attachment; NULL: none */
    } children[];
};

uint64_t rv__serial_next(void); /* a number that is unique in this process. Thread: any */
struct rv__entry *rv__entry_new(const struct rv__node *node, enum rv__status status);
/* A copy, to put on another scope or to give a description. NULL: no memory. */
struct rv__entry *rv__entry_copy(const struct rv__entry *entry);
struct rv__inner *rv__inner_new(uint32_t children);
/* Why this child failed; NULL: it did not. */
struct rv__blob *rv__inner_error(const struct rv__inner *inner, uint32_t child);
/* With one child; takes over its scope. */
struct rv__inner *rv__inner_of_body(const struct rv__actor *frame, struct rv__entry *scope,
                                    int64_t index);
struct rv__inner *rv__inner_ref(struct rv__inner *inner);
void rv__inner_unref(struct rv__inner *inner);

/* ------------------------------------------------------------------------------- actors --- */

enum rv__phase {
    /* nodes */
    PHASE_BEGIN,     /* its `when` was true: it begins when there is a place */
    PHASE_TO_EVAL,   /* wants an evaluation */
    PHASE_EVAL,      /* the evaluation runs */
    PHASE_EVALUATED, /* the value is there, to be acted upon */
    PHASE_READY,     /* step: the next attempt waits for a place */
    PHASE_RUNNING,   /* step: an attempt runs. Supervisor: its bodies do. Frame: its nodes do */
    PHASE_RETRY,     /* step: waits for its timer */
    PHASE_PARKED,    /* step: waits for what `park` says */
    PHASE_FAILED,    /* step, or frame of a workflow: failed, its handler runs next */
    PHASES,
};

enum rv__park {
    PARK_DELAY,
    PARK_SIGNAL,
    PARK_HANDLE,
    PARK_CUT /* a delay that is longer than the time-out of its step */
};

/* Something that a person has to decide about. */
struct rv__suspension {
    struct rv__suspension *prev, *next;           /* of the run, oldest first */
    struct rv__suspension *same_prev, *same_next; /* of the same actor */
    struct rv__index_entry by_what, by_path;      /* the second only if the cell has that index */
    uint64_t number;                              /* smaller for older ones */
    struct rv__actor *actor; /* a step that crashes, or a stage; NULL: the run */
    uint32_t which;          /* of a stage: the state + 1; 0: none */
    int64_t since_ms;
    struct rv__blob *why;
};

struct rv__schedule; /* of a stage's states or a chat's turns; defined by the kind */

struct rv__actor {
    uint64_t id;                   /* unique in the run, never reused */
    uint64_t token;                /* counts executions; a message with another token is stale */
    struct rv__actor *owner;       /* NULL: the outermost frame, or a detached block */
    struct rv__actor *child;       /* its first child */
    struct rv__actor *prev, *next; /* siblings, in order of birth */
    struct rv__actor *last_child;
    struct rv__actor *place_prev, *place_next;
    struct rv__actor *effect_next;        /* among those with an effect to release */
    const struct rv__node *node;          /* of a frame: its owner's; NULL for the outermost */
    uint8_t is_frame, phase, place, lane; /* place: PLACE_…; lane: of READY and RANGE */
    uint64_t arrival;                     /* READY, RANGE: the smaller one came first */
    uint8_t eval, park;
    uint8_t granted;        /* the place that its next effect carries: enum rv__lane; not saved */
    uint32_t ticket;        /* of that place */
    bool fresh;             /* in cell->fresh */
    bool ended;             /* removed from the tree; kept until its STOP is released */
    bool owed;              /* it had an effect, so its end is an effect too */
    bool at_work;           /* counted in cell->working */
    bool suspect;           /* in flight in so many deaths that it may be the cause */
    int deaths;             /* in a row, of the engine's process while it was in flight */
    int crashes;            /* deaths it is blamed for */
    struct rv__blob *death; /* the last of those, as an error; NULL: no details are known */
    struct rv__blob *unused_note;       /* step: sent with its next effect; NULL: none */
    struct rv__suspension *suspensions; /* decisions that it waits for; NULL: none */
    bool detached;                      /* concurrent: its sequence continued without it */
    bool hard;                          /* step, FAILED: it fails its sequence */
    bool hosted;    /* step: its attempt runs in another process than the engine */
    int64_t due_ms; /* RETRY, PARKED; frame of a state, chat: RUNNING; 0 = never */
    struct rv__blob
        *value; /* EVALUATED: the value, which forEach keeps as items. FAILED: the error */
    union {
        struct {
            const struct rv__body *body;
            int64_t iteration; /* in a forEach or loop; of a state: its generation; -1 elsewhere */
            uint32_t at;       /* the node to run next, or running */
            bool failed;       /* a hard failure ended it: `value` is the error */
            bool handled;      /* its workflow's onError has run */
            bool finished;     /* its workflow's `finally` has run */
            bool cancelled;    /* outermost: cancelled, only `finally` is left to run */
            bool asked;        /* cancelled once: a second cancel also ends `finally` */
            bool drained;      /* a final state has completed: later stages are skipped */
            uint32_t failed_node;
            struct rv__entry *base, *scope, *last;
            struct rv__blob *input;
            size_t item_at,
                item_len; /* forEach: its item in the owner's items, if these are a text */
            struct rv__blob *prefix; /* detached scope: the iterations around it, "[3,0]", */
            struct rv__items *items; /* and the items that it is an iteration of, if in pieces */
            struct rv__inner
                *inputs; /* state: outcomes of its dependencies, in order; NULL: none */
            struct rv__blob *attachment; /* state: the id of its attachment; else NULL */
            int64_t started_ms;          /* state */
            struct rv__budget used;      /* by the chats of a nested workflow with a budget */
        } frame;
        struct {
            int attempt;      /* the one that runs, or ran last; from 1 */
            int next_attempt; /* a crash does not use up an attempt: then it is the same again */
            int64_t started_ms;
            struct rv__channel *channel;             /* PARKED on a signal or a handle */
            struct rv__actor *wait_prev, *wait_next; /* among those that wait there */
            struct rv__blob *state;                  /* FAILED: the state it returned */
            struct rv__blob *made;   /* parameters made by its `input` function; NULL: none */
            struct rv__blob *note;   /* left by the attempt before for the next one; NULL: none */
            struct rv__blob *answer; /* payload of the signal that the note asked for; NULL: none */
        } step;
        struct {
            int64_t next;  /* forEach, concurrent: the body to start next; loop: iterations done */
            int64_t count; /* forEach: items */
            int64_t active;
            int64_t ended;
            int64_t good;            /* concurrent: completed */
            int64_t bad;             /* hard failures */
            int64_t shown;           /* how many of its frames have a node that ended */
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
static inline bool rv__actor_is_step(const struct rv__actor *actor) /* a frame is not */
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

/* One signal name or one handle: signals that nobody took yet, or steps that wait for one. */
struct rv__channel {
    struct rv__channel *next; /* in its bucket */
    struct rv__str name;
    bool handle;
    struct rv__actor *first_waiter, *last_waiter;
    struct rv__signal *first_signal, *last_signal;
    uint64_t order; /* of creation, so that saves have a fixed order */
    char text[];
};

struct rv__signal {
    struct rv__signal *next;
    struct rv__blob *payload;
};

enum { CHANNEL_BUCKETS = 64 };

/* The largest id, index or time that is accepted from disk: adding to it cannot overflow. */
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
    bool quiet;     /* replaying: no effects */
    uint64_t nonce; /* see rv__cell_opts */
    int64_t limit;  /* the same */
    uint64_t next_id;
    uint64_t next_value; /* the number of the next text that is moved to the store */
    struct rv__stamps {  /* ids of attachments given in the last second; attachment.c */
        int64_t second;
        struct rv__stamp *at; /* in order */
        uint32_t count, cap;
        uint32_t *table; /* by hash: index + 1 */
        size_t table_size;
    } stamps;
    struct rv__budget used;  /* by all its chats */
    uint64_t attempts_ended; /* of states: each left an attachment, numbered from 1 */
    uint64_t stale;
    struct rv__blob *input;
    struct rv__blob *error;       /* of a failed run */
    struct rv__blob *unused_note; /* of the last effect that was taken */
    uint32_t failed_node;         /* RV__NO_NODE: none */
    struct rv__actor *root;       /* the outermost frame; NULL before and after */
    struct rv__actor *detached_scopes, *last_detached_scope; /* in order of creation */
    struct rv__suspension *suspended, *last_suspended;       /* decisions to make, oldest first */
    struct rv__index suspended_what, suspended_paths; /* the same by actor and state; by path, */
    bool knows_paths;                                 /* once somebody has asked for a path */
    uint64_t suspensions_ever;
    struct rv__entry *results; /* the outermost scope after the end */

    struct rv__list todo, ends, ready[LANES], range[LANES];
    uint64_t arrivals;                    /* in ready and range, ever */
    struct rv__actor *fresh, *last_fresh; /* with an effect to release */
    enum rv__lane place; /* the place being granted, for the work that starts; LANE_NONE: none */
    uint32_t ticket;     /* of that place */

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
void rv__actor_unnew(struct rv__cell *cell, struct rv__actor *actor); /* undo rv__actor_new() */
void rv__actor_link(struct rv__cell *cell, struct rv__actor *actor, struct rv__actor *owner);
/* End an actor and all below it. Work in flight becomes a STOP. */
void rv__actor_end(struct rv__cell *cell, struct rv__actor *actor);
void rv__actor_unlink(struct rv__cell *cell,
                      struct rv__actor *actor); /* from its owner or the cell */
/* The actor after `at` in a walk over all of them, owners first; NULL begins and ends it. */
const struct rv__actor *rv__cell_walk(const struct rv__cell *cell, const struct rv__actor *at);
/* Its effect has changed: work to start, a timer to set, or neither. Increments its token. */
void rv__actor_owe(struct rv__cell *cell, struct rv__actor *actor);
void rv__actor_count(struct rv__cell *cell, struct rv__actor *actor); /* updates cell->working */
bool rv__actor_working(const struct rv__actor *actor);                /* it has work in flight */
void rv__actor_absolve(struct rv__actor *actor); /* its work ended normally: it is not a suspect */
bool rv__actor_waiting(const struct rv__actor *actor); /* it has a timer */
/* suspend.c: decisions to make. A new one comes last. RV_ENOMEM: unchanged. */
int rv__suspension_add(struct rv__cell *cell, struct rv__actor *actor, uint32_t which,
                       int64_t since_ms, struct rv__blob *why);
void rv__suspension_remove(struct rv__cell *cell, struct rv__suspension *suspension);
/* The one at this path (of several the oldest); *ret NULL: there is none. */
int rv__suspension_at(struct rv__cell *cell, struct rv__str path, struct rv__suspension **ret);
/* How many there are; and how many below this actor, itself included. */
int64_t rv__suspension_count(const struct rv__cell *cell);
int64_t rv__suspensions_below(const struct rv__actor *actor);
struct rv__suspension *rv__suspension_find(const struct rv__cell *cell,
                                           const struct rv__actor *actor, uint32_t which);
/* Is the run suspended as a whole? Then nothing continues. */
bool rv__cell_stopped(const struct rv__cell *cell);
/* Remove all of an actor that ends; all of the run, and place its actors again. */
void rv__suspensions_end(struct rv__cell *cell, struct rv__actor *actor);
void rv__suspensions_clear(struct rv__cell *cell);
/* Its path; nothing is appended for the run as a whole. */
void rv__suspension_path(const struct rv__suspension *suspension, struct rv__buf *out);

/* The items of the forEach that this frame is an iteration of (or a detached scope in one), if they are in
 * pieces; else NULL. */
struct rv__items *rv__frame_items(const struct rv__actor *frame);
/* The frame around it that is an iteration, or NULL. */
const struct rv__actor *rv__actor_loop(const struct rv__actor *actor);
/* The iterations around it, outermost first; returns how many. */
size_t rv__actor_vector(const struct rv__actor *actor, int64_t vector[RV__PLAN_MAX_DEPTH]);
/* The node that its work is for. For a frame that makes a description: the node that ended last in it. NULL:
 * the outermost frame, doing anything else. */
const struct rv__node *rv__actor_about(const struct rv__actor *actor);
/* The frame it is in; a frame is in itself, a handler in the frame of what it handles. */
struct rv__actor *rv__actor_frame(const struct rv__actor *actor);

/* place.c. Put it where it belongs by its state; check that it is there; put it there directly (in a load). */
void rv__actor_place(struct rv__cell *cell, struct rv__actor *actor);
bool rv__actor_placed(const struct rv__cell *cell, const struct rv__actor *actor);
void rv__actor_put(struct rv__cell *cell, struct rv__actor *actor, int place, enum rv__lane lane);
/* Add an actor that is in no list to that of its lane, in order of arrival. */
void rv__actor_lane(struct rv__cell *cell, struct rv__actor *actor);

/* channel.c */
struct rv__channel *rv__channel_get(struct rv__cell *cell, struct rv__str name, bool handle,
                                    bool make);
void rv__channel_drop_if_empty(struct rv__cell *cell, struct rv__channel *channel);
void rv__channel_join(struct rv__cell *cell, struct rv__channel *channel, struct rv__actor *actor);
void rv__channel_leave(struct rv__cell *cell, struct rv__actor *actor);

/* budget.c. The workflow around the actor whose budget is used up, and what it has used; NULL: none. A frame counts only
 * if its workflow has a budget; the run always does. */
const struct rv__wrap *rv__budget_bounds(const struct rv__cell *cell, const struct rv__actor *actor,
                                         struct rv__budget *used);
/* A chat has used so much more. Cannot fail. */
void rv__budget_charge(struct rv__cell *cell, struct rv__actor *chat,
                       const struct rv__budget *more);
void rv__budget_add(struct rv__budget *used, const struct rv__budget *more);
bool rv__budget_used_up(const struct rv__budget *budget, const struct rv__budget *used);

/* lane.c: the first work of something that gets a place. node NULL: it has none, and needs no place. */
struct rv__first {
    const struct rv__node *node;
    const struct rv__expr
        *expr; /* to evaluate; NULL: an input that is only checked by its schema */
    int eval;  /* enum rv__eval; -1: an attempt of the step */
    const struct rv__body *body; /* of an input: whose it is; NULL: the step's own */
};
/* The first work of a node is its `when`; without one, the `input` or attempt of a step, a condition, a while, the
 * items; else that of its first body. The first work of a body is its workflow's input, if it needs one, else
 * that of its first node. Of an actor that wants an evaluation: that one. */
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

/* Iterates over those that wait, in all lanes, in order of arrival. `place`: PLACE_READY or PLACE_RANGE. */
struct rv__arrivals {
    struct rv__actor *at[LANES + 1];
};
void rv__arrivals_init(struct rv__arrivals *it, const struct rv__cell *cell, int place);
struct rv__actor *rv__arrivals_next(struct rv__arrivals *it); /* NULL: no more */

/* A snapshot begins with this number; with another one it is refused. */
enum { RV__SNAPSHOT_VERSION = 8 };

/* sound.c: is this actor, read from a snapshot, possible? Does the chain of entries from `scope` lead to
 * `base`? */
bool rv__actor_sound(const struct rv__cell *cell, const struct rv__actor *actor);
bool rv__scope_below(const struct rv__entry *scope, const struct rv__entry *base);
/* For a supervisor with a child for each body (concurrent, stage): do the children match its plan? One that never
 * began has no scope. NULL, or the member of a snapshot that is wrong. */
const char *rv__children_fit(const struct rv__node *node, const struct rv__inner *inner);
/* Do the scopes of all children lead to its base? The same answer. _one: also, is there exactly one child? */
const char *rv__inner_linked(const struct rv__inner *inner);
const char *rv__inner_one(const struct rv__inner *inner);

/* ------------------------------------------------------------------------------- values --- */

/* Items of a forEach that are too long to keep in memory. They are values in the store, in pieces: arrays of
 * several items each, with consecutive numbers. The index of an item tells its piece: `parts` has one entry for
 * each series of pieces with the same number of items. So neither the cell nor a snapshot has the text, and an
 * iteration needs only its piece. Immutable and reference-counted. */
struct rv__items {
    atomic_uint refs;
    uint64_t serial; /* unique in this process, among entries too */
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
struct rv__items *rv__items_ref(struct rv__items *items); /* NULL is allowed, and returned */
void rv__items_unref(struct rv__items *items);            /* NULL is allowed */
bool rv__items_same(const struct rv__items *a, const struct rv__items *b);
/* The piece that has the item of this index, and its place in there. */
uint64_t rv__items_piece(const struct rv__items *items, int64_t index, int64_t *place);
/* The item at this place; "none": the piece is damaged. */
struct rv__str rv__piece_item(struct rv__str piece, int64_t place);
/* [first,each,pieces,each,pieces,…] and back. RV_EINVAL: it is not that. RV_ENOMEM. */
void rv__items_write(const struct rv__items *items, struct rv__buf *out);
int rv__items_read(struct rv__str json, struct rv__items **ret);
/* [number,bytes] and back: the same. */
void rv__reference_write(const struct rv__blob *reference, struct rv__buf *out);
int rv__reference_read(struct rv__str json, struct rv__blob **ret);
/* Replace long texts of the fact by references, and add the texts to `facts` as values. The fact owns its blobs.
 * RV_ENOMEM: some may have been added; rv__facts_cut_values() keeps the first `count`. */
int rv__facts_outline(struct rv__facts *facts, const struct rv__cell *cell, struct rv__fact *fact);
void rv__facts_cut_values(struct rv__facts *facts, size_t count);

/* ------------------------------------------------------------------ decide and evolve --- */

/* The turn that is being decided. rv__say() adds a fact: it encodes the fact and evolves the cell; it borrows
 * the fact's blobs. RV_ENOMEM: nothing changed. */
struct rv__turn {
    struct rv__cell *cell;
    struct rv__facts *facts;
    int64_t now_ms;
    struct rv__str by; /* who sent the message; none for facts that follow by themselves */
};
int rv__say(struct rv__turn *turn, const struct rv__fact *fact, rv_error *err);

/* evolve.c: apply a fact that was checked. RV_ENOMEM: nothing changed. The only writer of actors. */
int rv__evolve(struct rv__cell *cell, const struct rv__fact *fact);
/* Is the fact possible in this cell? RV_ESTORE, with the reason, if not. */
int rv__fact_check(const struct rv__cell *cell, const struct rv__fact *fact, rv_error *err);
/* Remove a result or state that a fact of this kind does not have. */
void rv__fact_trim(struct rv__fact *fact);
void rv__fact_write(const struct rv__cell *cell, const struct rv__fact *fact, struct rv__buf *out);
/* If it is a failure that would otherwise be lost, note it for the log. Before the fact is applied. RV_ENOMEM. */
int rv__facts_note_failure(struct rv__facts *facts, const struct rv__cell *cell,
                           const struct rv__fact *fact);

/* left.c: the entry of what ends, and the rows of iterations. What is still in flight in it is cancelled. */
bool rv__node_keeps_rows(const struct rv__node *node);
/* The entry of a node that ends now, with this status; not yet on a scope. NULL: no memory. */
struct rv__entry *rv__node_left(const struct rv__actor *actor, enum rv__status status);
/* The entry of a failed step, whatever its handler does. NULL: no memory. */
struct rv__entry *rv__step_failed_entry(const struct rv__actor *step);
/* The scope of a frame that ends now, with the node in flight on top. RV_ENOMEM. */
int rv__frame_left(const struct rv__actor *frame, struct rv__entry **ret);
/* Is its result the map of its nodes, which are shown even if it is cancelled? A workflow that is a child of a
 * concurrent. */
bool rv__shows_nodes(const struct rv__node *node);
/* The supervisor counts its frames in which a node has ended: one more, or one less. */
void rv__frame_count_shown(const struct rv__actor *frame, int more);
/* Has anything ended in it that its results show? If not, an iteration in flight is not listed. */
bool rv__frame_leaves(const struct rv__actor *frame);
/* Add the rows that this fact sends to the store, before it is applied. RV_ENOMEM: some may have been added;
 * rv__facts_cut_rows() keeps the first `count`. */
int rv__facts_rows(struct rv__facts *facts, const struct rv__cell *cell,
                   const struct rv__fact *fact, rv_error *err);
void rv__facts_cut_rows(struct rv__facts *facts, size_t count);

/* frame.c: the sequence. */
int rv__frame_advance(struct rv__turn *turn, struct rv__actor *frame, rv_error *err);
int rv__frame_begin(struct rv__turn *turn, struct rv__actor *frame, rv_error *err);
/* The attempt of a state took too long. */
int rv__frame_timed_out(struct rv__turn *turn, struct rv__actor *frame, rv_error *err);
/* Is this node, the next one, skipped because a final state has completed? */
bool rv__frame_leaves_out(const struct rv__actor *frame, const struct rv__node *node);
/* What a frame that runs, or has failed, begins when it has no child: its next node, its onError, its
 * `finally`; NULL: nothing is left. */
const struct rv__node *rv__frame_next(const struct rv__actor *frame);
bool rv__frame_in_finally(const struct rv__actor *frame);
int rv__say_run_ended(struct rv__turn *turn, struct rv__actor *root, rv_error *err);
int rv__handler_ended(struct rv__cell *cell, struct rv__actor *handler); /* RV_ENOMEM */
void rv__frame_evolve_child(struct rv__cell *cell, struct rv__actor *frame, struct rv__entry *entry,
                            bool hard, struct rv__blob *error);
/* The description of the node that just ended is to be made before the next one begins; it was made (NULL: it
 * failed). */
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
void rv__step_forget_note(struct rv__cell *cell, struct rv__actor *step);

/* When something is due; never 0. When the next attempt may start after this failure; 0: there is none. */
int64_t rv__due_at(int64_t now_ms, int64_t wait_ms);
int64_t rv__retry_at(const struct rv__step_config *config, int attempt, const struct rv__msg *msg,
                     int64_t now_ms);

/* stage.c: which attempt of its state a frame is, from 1; the target of the redirect that follows its failure, if
 * that target is running already, so that the redirect does nothing, else NULL. */
int rv__state_attempt(const struct rv__actor *frame);
const struct rv__body *rv__state_redirects_in_vain(const struct rv__actor *frame,
                                                   const struct rv__fact *fact);

/* attachment.c: the id of the attachment of an attempt that begins now; remember it once the attempt has begun.
 * RV_ENOMEM: unchanged. */
int rv__attachment_name(const struct rv__cell *cell, const struct rv__actor *sup, int64_t index,
                        int attempt, int64_t at_ms, struct rv__blob **ret);
int rv__attachment_begun(struct rv__cell *cell, const struct rv__actor *sup,
                         const struct rv__fact *fact);
/* How the attempt of a frame ended. `error`: why it did not finish; NULL: it did, or the reason is unknown. */
struct rv__attachment_end {
    enum rv__attachment_status status;
    int64_t at_ms;
    struct rv__blob *error;
};
/* Write its row, before the frame ends. A failure is remembered by the buffer. */
void rv__attachment_write(const struct rv__actor *frame, const struct rv__attachment_end *end,
                          struct rv__buf *out);
void rv__stamps_done(struct rv__stamps *stamps);
void rv__stamps_save(const struct rv__stamps *stamps, struct rv__buf *out); /* ,"stamps":[…] */
int rv__stamps_load(struct rv__stamps *stamps, struct rv__str json); /* RV_EINVAL, RV_ENOMEM */

/* A kind of node: one file, one row in kinds.c. Everything that depends on the kind is here. A step has a row, too,
 * with the functions that are called for every node. A function may be NULL where its comment says what that
 * means. */
struct rv__flow_kind {
    /* ---- by the plan alone */
    /* The work that a node begins with, its `when` apart. */
    struct rv__first (*first_work)(const struct rv__node *node);
    /* Do its iterations leave the cell as rows? NULL: it has none, or they do not. */
    bool (*keeps_rows)(const struct rv__node *node);
    /* Does its sequence go on while it still runs? NULL: never. */
    bool (*detaches)(const struct rv__node *node);
    bool tells_below; /* if it is cancelled, its results show what has finished in it */
    bool drained_out; /* skipped after a final state */

    /* ---- decide */
    /* Its phase once it has begun: PHASE_TO_EVAL, with *eval, or PHASE_RUNNING. */
    enum rv__phase (*first_phase)(const struct rv__node *node, int *eval);
    /* Its PLACE_… while PHASE_RUNNING; *first: the work that it would start in the place that it waits for. */
    int (*place)(const struct rv__actor *sup, struct rv__first *first);
    /* Say the next fact that follows from its state. Also called to start the next body, on a grant. */
    int (*advance)(struct rv__turn *turn, struct rv__actor *sup, rv_error *err);
    /* Only chat, whose bodies ask a model. What the fact must record of an answer; NULL: no memory. When it may try
     * again after this failure; 0: not at all. */
    struct rv__blob *(*answer)(const struct rv__actor *sup, const struct rv__msg *msg);
    int64_t (*retry_at)(const struct rv__actor *sup, const struct rv__msg *msg, int64_t now_ms);
    /* Its own timer is due. NULL: it has none. */
    int (*timer)(struct rv__turn *turn, struct rv__actor *sup, const struct rv__msg *msg,
                 rv_error *err);
    /* One of its frames has ended: complete the fact with what follows from that. NULL: nothing. */
    void (*settle)(const struct rv__actor *frame, struct rv__fact *fact);

    /* ---- evolve */
    /* It begins: make the schedule of its bodies. NULL: it has none; returns NULL: no memory. */
    struct rv__schedule *(*schedule)(const struct rv__cell *cell, const struct rv__node *node);
    /* A kind with `answer`: the answer has come, or will not come. Cannot fail. */
    void (*answered)(struct rv__cell *cell, struct rv__actor *sup, const struct rv__fact *fact);
    void (*gave_up)(struct rv__actor *sup, const struct rv__fact *fact);
    /* Everything in it has ended, to begin again later; or that time has come. RV_ENOMEM: unchanged. */
    int (*retried)(struct rv__cell *cell, struct rv__actor *sup, const struct rv__fact *fact);
    /* The inputs of the body with this number, if it begins now. NULL: it has none; returns NULL: no memory, or,
     * with *none, no inputs. */
    struct rv__inner *(*inputs)(const struct rv__actor *sup, int64_t index, bool *none);
    /* Somebody decided about one of its bodies; the body is suspended, or no longer. RV_ENOMEM: unchanged. */
    int (*decided)(struct rv__cell *cell, struct rv__actor *sup, uint32_t which,
                   enum rv__decision decision);
    void (*suspended)(struct rv__actor *sup, uint32_t which, bool is);
    bool (*drains)(const struct rv__actor *sup); /* a final state has ended it */
    /* It begins: make room for the outcomes of its bodies. NULL: it keeps none; returns NULL: no memory. */
    struct rv__inner *(*outcomes)(const struct rv__node *node, struct rv__entry *scope);
    /* The same: continue from the outcome of its earlier run, in an earlier attempt of the state that `frame` is.
     * RV_ENOMEM: unchanged. NULL: it always starts from the beginning. */
    int (*carry_on)(const struct rv__node *node, const struct rv__actor *frame,
                    struct rv__inner *fresh);
    /* One of its frames begins; it is not linked yet. Cannot fail. NULL: nothing to count. */
    void (*body_started)(struct rv__actor *sup, struct rv__actor *frame);
    /* The scope that its next frame begins with. NULL, or returns NULL: that of the enclosing frame. */
    struct rv__entry *(*scope)(const struct rv__actor *sup);
    /* One of its frames has ended: keep its outcome. RV_ENOMEM: unchanged. NULL: it has one body, and ends with
     * it. */
    int (*body_ended)(struct rv__cell *cell, struct rv__actor *sup, struct rv__actor *frame,
                      const struct rv__fact *fact);

    /* ---- what is left of it, and what waits in it */
    /* Has it run far enough to have a result? NULL: never. */
    bool (*has_begun)(const struct rv__actor *sup);
    /* What is inside of its entry, if it ends now and has begun. NULL: no memory. */
    struct rv__inner *(*inner)(const struct rv__actor *sup);
    /* Its state, if it ends now and has begun. NULL: none; returns NULL: no memory. */
    struct rv__blob *(*state)(const struct rv__actor *sup);
    /* Write the item of an iteration as the first member of its row. NULL: it has none. */
    void (*write_item)(const struct rv__actor *frame, struct rv__buf *row);
    /* Are there bodies that wait to begin? Fills in how many, and why. NULL: never. */
    bool (*rest)(const struct rv__actor *sup, struct rv__wait *wait);

    /* ---- results, as JSON (write.h) */
    /* The inner entry whose result is its own. NULL, or returns NULL: none. */
    const struct rv__entry *(*result_from)(const struct rv__entry *entry);
    /* Write the result of an entry that has an `inner`. */
    void (*write_result)(struct rv__writer *w, const struct rv__entry *entry);
    /* Write a result that is in a row, with the rows and values that it refers to. `vector`: the iterations around
     * the node. */
    void (*expand_result)(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                          struct rv__str vector);
    /* Write the item that write_item() put into a row as a reference. */
    void (*expand_item)(struct rv__writer *w, struct rv__str reference);

    /* ---- what comes from disk */
    bool starts_evaluated; /* a body may begin after its condition was evaluated */
    bool starts_running;   /* a body may begin while it runs */
    bool ends_evaluated;   /* it may complete after its condition was evaluated */
    /* May the body, or iteration, of this number begin now? NULL, or why not. */
    const char *(*body_fits)(const struct rv__actor *sup, int64_t index);
    /* Of a kind with a schedule: the start or end of a body, a suspension, a decision. NULL, or why not. */
    const char *(*fact_fits)(const struct rv__actor *sup, const struct rv__actor *frame,
                             const struct rv__fact *fact);
    void (*save)(const struct rv__actor *sup, struct rv__buf *out); /* its schedule, as an array */
    /* Read it back; false: it is damaged. What is derived from it is made once everything is loaded. */
    bool (*load)(struct rv__actor *sup, struct rv__str array);
    /* Is it possible, with so many frames? The rules for all supervisors are checked elsewhere. */
    bool (*sound)(const struct rv__actor *sup, int64_t frames);
    /* Can this be inside an entry of it? NULL, or the member that is wrong. */
    const char *(*inner_fits)(const struct rv__node *node, const struct rv__inner *inner);
};
extern const struct rv__flow_kind *const rv__flow_kinds[NODE_KINDS];

static inline const struct rv__flow_kind *rv__flow_kind(const struct rv__node *node)
{
    return rv__flow_kinds[node->kind];
}
/* Does its body run repeatedly, so that `loop` is visible in it? */
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
/* Does it begin with an evaluation, which has a fact of its own? */
bool rv__begins_evaluating(const struct rv__node *node, enum rv__eval *eval);
int rv__body_start(struct rv__turn *turn, struct rv__actor *sup, int64_t index, rv_error *err);
int rv__node_evaluated(struct rv__turn *turn, struct rv__actor *actor, rv_error *err);
int rv__node_fail(struct rv__turn *turn, struct rv__actor *sup, const char *code,
                  const char *message, rv_error *err);
struct rv__blob *rv__row_key(const struct rv__actor *owner, const struct rv__node *node);
/* Suspend the run because of this actor, until somebody decides; after the run's end, fail the actor instead. */
int rv__suspend(struct rv__turn *turn, struct rv__actor *actor, rv_error *err);
/* Is it in a detached block whose run has ended, or has only its handler left? Then the run is not suspended. */
bool rv__is_left_behind(const struct rv__cell *cell, const struct rv__actor *actor);
/* A new error: `fmt`, followed by the message of another error. NULL: no memory. */
struct rv__blob *rv__error_because(const char *code, const struct rv__blob *of, const char *fmt,
                                   ...) RV_PRINTF(3, 4);
int rv__node_end(struct rv__turn *turn, struct rv__actor *sup, enum rv__fact_kind kind,
                 struct rv__blob *error, rv_error *err);
/* {"message":"…","code":"…"}; code NULL: without. NULL: no memory. */
struct rv__blob *rv__error_blob(const char *code, const char *fmt, ...) RV_PRINTF(2, 3);
/* The error of something that failed itself, not because of something in it: `error` with the path of `node`, or of
 * `body` (node NULL), in its iterations. A path that the error has is replaced. `error` NULL: an error without
 * details. NULL: no memory. */
struct rv__blob *rv__error_at(const struct rv__blob *error, const struct rv__node *node,
                              const struct rv__body *body, const int64_t *vector);
struct rv__blob *rv__error_of(const struct rv__blob *error, const struct rv__actor *actor);
/* The expression to evaluate; NULL: an input that is only checked by its schema. */
const struct rv__expr *rv__actor_expr(const struct rv__actor *actor);
/* The body whose input it evaluates; NULL: it evaluates something else, or a step's own. */
const struct rv__body *rv__actor_input_body(const struct rv__actor *actor);
/* The node's expression of this kind; NULL: it has none. */
const struct rv__expr *rv__eval_expr(const struct rv__node *node, enum rv__eval eval);
/* Must a description of the node be made, because `state` has none? */
bool rv__describes(const struct rv__node *node, const struct rv__blob *state);
bool rv__truth(const struct rv__blob *json); /* as in jq: neither false nor null */

#endif
