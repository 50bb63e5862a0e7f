/* expr.h: expressions (jq) and templates (JSON with ${ … } in its strings), and what they see.
 *
 * A workflow has one *set* of templates. Each is added once and known by its number afterwards. All
 * jq of a set is one jq program (a large set: a few), since compiling one costs some 30 ms in libjq
 * 1.6, however little is in it.
 *
 * jq itself is not here: libjq aborts on some data, so it runs in evaluator processes (src/jq). What it
 * needs leaves here as a *question*, and its *answer* is put into the template here:
 *
 *   define/:  new ── add, add_condition … ── use (which steps?) ── check ──▶ kept with the workflow
 *   exec/:    ask(set, number, scope) ──question──▶ src/jq ──answer──▶ compose ──▶ JSON text
 *
 * A template without jq needs no question: compose it right away.
 *
 * A template is one JSON value. Its strings may hold expressions, its keys may not:
 *   "${ .input.id }"        nothing but one: the value as it is, with its type
 *   "order ${ .input.id }"  text: strings as they are, anything else as compact JSON
 *   "$${ .x }"              the text "${ .x }"; a "$" that "{" does not follow is a "$"
 *   anything without "${"   itself
 *
 * An expression is jq over an object with the *roots* input, steps, lastStep, loop, run, env and
 * those that the scope adds (error, failedStep, workflowState, result). It yields exactly one value.
 * A secret is seen by an expression that names it, .secrets.NAME, and is in no whole (`.`, `keys`).
 * What it cannot have: env, $ENV, input, inputs, debug, stderr, halt, files, modules, and what goes
 * on without end or takes memory without end: those are errors that say so (see README.md).
 *
 * A plain path (.input.id, .steps["my step"].result.list[0]) is not run through jq: its text comes
 * out byte for byte, 1.0 and 12345678901234567890 included. In jq numbers are doubles: integers
 * above 2^53 lose digits there, as soon as anything but a plain path touches them. */
#ifndef RV_EXPR_EXPR_H
#define RV_EXPR_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/blob.h"
#include "base/str.h"

enum {
    RV__EXPR_MAX_BYTES = 16 * 1024, /* of one expression: a page of jq has 3 KiB */
    RV__EXPR_MAX_DEPTH = 256,       /* brackets within brackets: jq's parser recurses */
    RV__EXPRS_MAX = 10000,          /* expressions of a set: compiling them stays below seconds */
};

/* ------------------------------------------------------------------------------- the set --- */

/* Counted: a workflow holds it, and so does each evaluation under way. Read-only once nothing is added
 * any more. */
struct rv__exprs;

int rv__exprs_new(struct rv__exprs **ret, rv_error *err);
struct rv__exprs *rv__exprs_ref(struct rv__exprs *set);
void rv__exprs_unref(struct rv__exprs *set); /* NULL is allowed. Thread: any */

/* Add a template: `json` is one value that passed rv__json_check(); copied. *ret is its number.
 * Finds what can be found without jq: "${" without its end, brackets and strings that do not close,
 * an empty expression, what is refused by name (import, include, $ENV …).
 *
 * Errors: RV_EPARSE: "at /body/tree, character 12: …" (pointer: into `json`, left out for a value
 * that is a string itself; characters of that string, from 1); RV_ETOOBIG, RV_ENOMEM.
 * After an error the set is as before. Thread: the one that builds the set. */
int rv__exprs_add(struct rv__exprs *set, struct rv__str json, uint32_t *ret, rv_error *err);

/* The same for a condition (when, if, while, until): must be a string of nothing but one ${ … }. */
int rv__exprs_add_condition(struct rv__exprs *set, struct rv__str json, uint32_t *ret,
                            rv_error *err);

/* Is there an expression in this template at all, or is it a constant? */
bool rv__exprs_constant(const struct rv__exprs *set, uint32_t number);

/* What a template refers to, so that unknown names can be refused: the i-th use of a root, in order;
 * false: no more. Only what can be told from the text: `.steps.a.result`, `.steps["a"]` count, and
 * `.steps | .a` is a use of steps without a name. Something that takes the whole (`keys`, `.`) has no
 * name of a root either: `root` is "none". All texts live as long as the set. */
struct rv__expr_use {
    struct rv__str root;    /* "input", "steps", …, whatever is written; "none": the whole */
    struct rv__str name;    /* steps: the alias; secrets: its name; "none": all of them */
    struct rv__str pointer; /* the string it is in: into the template; "" is the template itself */
    size_t character;       /* where in that string, from 1 */
};
bool rv__exprs_use(const struct rv__exprs *set, uint32_t number, size_t i,
                   struct rv__expr_use *ret);

/* Is it one of input, steps, lastStep, loop, run, env, secrets? */
bool rv__expr_known_root(struct rv__str root);

/* How many expressions of this template need jq? 0: it is made of text and plain paths. And any of the set? */
size_t rv__exprs_jq(const struct rv__exprs *set, uint32_t number);
bool rv__exprs_any_jq(const struct rv__exprs *set);

/* Who compiles programs: exec/ asks an evaluator process. RV_OK; RV_EPARSE: jq refuses it, *err is what
 * jq said first, as it said it; anything else: it could not be told, and *err says why. */
struct rv__expr_compiler {
    int (*compile)(struct rv__expr_compiler *self, struct rv__str program, rv_error *err);
};

/* Have the set compiled. RV_EPARSE if jq refuses any of it: then `bad` was called for each expression that
 * is, with its template, the string it is in, where in that string, and jq's reason; *err has the
 * first. Costs some 30 ms (with bad expressions: each). May be left out: then an evaluation tells.
 * Errors: also what the compiler could not do. */
struct rv__expr_bad {
    uint32_t number;
    struct rv__str pointer;
    size_t character;
    const char *message;
};
int rv__exprs_check(struct rv__exprs *set, struct rv__expr_compiler *compiler,
                    void (*bad)(void *arg, const struct rv__expr_bad *bad), void *arg,
                    rv_error *err);

/* ----------------------------------------------------------------------------- the scope --- */

/* A JSON text of the scope: where it is, and who it is, so that it is parsed once.
 *
 * Its identity is (blob, json.at) if there is a blob, which is then held as long as anything is kept
 * of it (a blob may stand for a text that is not at hand: then json is "none"); else `key`, which must
 * never be used for another text as long as the process lives (say: a number of the run and the number
 * of the actor); else it has none and is parsed each time.
 *
 * json "none": the text is not at hand; rv__scope.text is asked for it, if nothing is kept of it. */
struct rv__scope_text {
    struct rv__str json;   /* checked JSON, valid during the evaluation */
    struct rv__blob *blob; /* borrowed; `json` lies in it, or is what it stands for. NULL: none */
    uint64_t key[2];       /* { 0, 0 }: none */
    const void *origin;    /* the scope's own: what `text` makes it from */
};

/* What an expression sees, asked for piece by piece, so that an evaluation costs what it uses. To be
 * embedded in the struct of whoever has the values. All calls come from the thread that evaluates. */
struct rv__scope {
    /* Find a piece of the scope; RV_ENOTFOUND: there is none, and jq sees null. Asked for are
     *   root "steps",    name = alias,  field "result", "state" (an object), "status" (a string) or,
     *                    of one that failed, "error" (an object)
     *   root "lastStep", name "result", "state", "alias" or "stepName"
     *   root "loop",     name "item", "index" or "items"; root "loop.parent", "loop.parent.parent" …: those of
     *                    the iterations around it
     *   root "secrets",  name = that of a secret which the template names (a string)
     *   any other root (input, run, env, error …), no name
     * A name or field that is not asked for is "none". */
    int (*find)(struct rv__scope *self, struct rv__str root, struct rv__str name,
                struct rv__str field, struct rv__scope_text *ret);

    /* The text of something found whose json was "none". *ret is the caller's. May be NULL, if
     * `find` always has the text. */
    int (*text)(struct rv__scope *self, const struct rv__scope_text *found, struct rv__blob **ret,
                rv_error *err);

    /* The i-th alias of steps, in order of execution, each once. 1: there is one; 0: no more;
     * RV_ENOMEM. */
    int (*alias)(struct rv__scope *self, size_t i, struct rv__str *ret);

    /* Roots beyond the known six, for an expression that takes the whole; NULL or ending in NULL. */
    const char *const *roots;

    /* The evaluation's: `find` may not wait now, for a disk or a lock: else RV_EBUSY, and it is asked again. */
    bool at_hand;
};

/* --------------------------------------------------------------------------- evaluation --- */

/* Texts that were made, and where plain paths led in large ones, kept between evaluations. Belongs to one
 * thread. */
struct rv__expr_texts;

#define RV__EXPR_CACHE_BYTES \
    ((size_t)64 << 20) /* default: of texts kept; the same of values there */
#define RV__EXPR_OUTPUT_BYTES ((size_t)16 << 20) /* default: of one result */

int rv__expr_texts_new(size_t max_bytes /* 0 = default */, struct rv__expr_texts **ret,
                       rv_error *err);
void rv__expr_texts_free(struct rv__expr_texts *texts); /* NULL is allowed */

/* What an evaluator process has: programs and parsed values, by slot. What many evaluations see crosses
 * the wire once. One for each connection; belongs to one thread. `sender` is how it learns:
 * its functions are called from rv__exprs_ask(), before the question is sent, and must be heard in that order. */
enum {
    RV__PEER_VALUES = 4096,  /* slots of values, */
    RV__PEER_PROGRAMS = 128, /* and of programs: a megabyte each, about */
};
enum {
    RV__SCOPE_PATH = 102
}; /* names in the path of an entry of "scope": loop, a hundred parents, item */
struct rv__expr_peer;
struct rv__expr_sender {
    /* This value is in this slot from now on; json "none": nothing is. Failures are its own. */
    void (*value)(struct rv__expr_sender *self, unsigned slot, struct rv__str json);
    void (*program)(struct rv__expr_sender *self, unsigned slot, struct rv__str text);
};
int rv__expr_peer_new(size_t max_bytes /* 0 = default */, struct rv__expr_sender *sender,
                      struct rv__expr_peer **ret, rv_error *err);
void rv__expr_peer_free(struct rv__expr_peer *peer); /* NULL is allowed */

/* The question of a template that needs jq: appends members of a JSON object to `out`:
 *   ,"run":[PROGRAM,CHOICE,…],"scope":[["input",SLOT],["loop","item",[VALUE]],…]
 * The answer is the list of the values, one for each pair in "run". `quickly`: only if that costs little:
 * nothing is to be told before, no text to be made.
 * Errors: RV_ENOMEM; RV_ETOOBIG; RV_EBUSY: not quickly; what the scope said. */
int rv__exprs_ask(struct rv__exprs *set, uint32_t number, struct rv__expr_texts *texts,
                  struct rv__expr_peer *peer, struct rv__scope *scope, bool quickly,
                  struct rv__buf *out, rv_error *err);

/* Put a template together; append the JSON text to `out`, whose bound is the limit of the output.
 * `values` is the answer, a checked JSON array; "none": for a template that needs no jq.
 * After a failure `out` holds what it held before.
 *
 * Errors: RV_EINVAL: a path does not fit what is there, or the answer is not one; RV_ETOOBIG: the output;
 * RV_ENOMEM; what the scope said. */
int rv__exprs_compose(struct rv__exprs *set, uint32_t number, struct rv__expr_texts *texts,
                      struct rv__scope *scope, struct rv__str values, struct rv__buf *out,
                      rv_error *err);

/* The answer is an error: of the i-th pair of the question. "${ expression }: why". Returns code. */
int rv__exprs_failed(const struct rv__exprs *set, uint32_t number, size_t i, int code,
                     const char *why, rv_error *err);

/* --------------------------------------------------------------------------- plain paths --- */

/* One more step of a plain path. */
struct rv__expr_step {
    struct rv__str key; /* "none": an index */
    int64_t index;      /* negative: from the end */
};

/* Read a plain path that stands alone (".steps.find.result.list[0]"): at least one step, the first a key.
 * In the arena; keys may lie in `text`. Errors: RV_EPARSE: it is none, and why; RV_ETOOBIG, RV_ENOMEM. */
int rv__path_read(struct rv__arena *arena, struct rv__str text, struct rv__expr_step **path,
                  size_t *count, rv_error *err);
/* Go so many steps into a checked JSON text. Errors: RV_ENOTFOUND: nothing is there; RV_EINVAL: a step does
 * not fit what is there, in jq's words. */
int rv__path_walk(const struct rv__expr_step *path, size_t count, struct rv__str *json,
                  rv_error *err);

/* Truth is jq's: all but false and null. For a value that passed rv__json_check(). */
bool rv__expr_truth(struct rv__str json);

#endif
