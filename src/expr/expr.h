/* expr.h: expressions (jq) and templates (JSON with ${ … } in its strings), and what they can read.
 *
 * A workflow has one *set* of templates. Each is added once and then identified by its number. All
 * jq of a set is one jq program (a few for a large set), because compiling a program takes about 30 ms in
 * libjq 1.6, however small it is.
 *
 * jq itself is not here: libjq aborts on some data, so it runs in evaluator processes (src/jq). This folder
 * writes a *question* for jq, and puts the *answer* into the template:
 *
 *   define/:  new ── add, add_condition … ── use (which steps?) ── check ──▶ kept with the workflow
 *   exec/:    ask(set, number, scope) ──question──▶ src/jq ──answer──▶ compose ──▶ JSON text
 *
 * A template without jq needs no question: it can be composed at once.
 *
 * A template is one JSON value. Its strings may contain expressions, its keys may not:
 *   "${ .input.id }"        only an expression: its value, with its type
 *   "order ${ .input.id }"  text: strings as they are, anything else as compact JSON
 *   "$${ .x }"              the text "${ .x }"; a "$" that "{" does not follow is a "$"
 *   anything without "${"   itself
 *
 * An expression is jq over an object with the *roots* input, steps, lastStep, loop, run, env and
 * those that the scope adds (error, failedStep, workflowState, result). It yields exactly one value.
 * An expression can read a secret only by name, .secrets.NAME; `.` and `keys` do not contain secrets.
 * Not available: env, $ENV, input, inputs, debug, stderr, halt, files, modules, and whatever runs for ever or
 * uses unlimited memory: these are errors that say so (see README.md).
 *
 * A plain path (.input.id, .steps["my step"].result.list[0]) is not run through jq: its text is copied
 * byte for byte, including 1.0 and 12345678901234567890. In jq numbers are doubles: integers above 2^53
 * lose digits as soon as anything but a plain path reads them. */
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
    RV__EXPRS_MAX = 10000, /* expressions of a set: compiling them takes less than seconds */
};

/* ------------------------------------------------------------------------------- the set --- */

/* Reference-counted: a workflow holds it, and so does each evaluation under way. Read-only once everything is
 * added. */
struct rv__exprs;

int rv__exprs_new(struct rv__exprs **ret, rv_error *err);
struct rv__exprs *rv__exprs_ref(struct rv__exprs *set);
void rv__exprs_unref(struct rv__exprs *set); /* NULL is allowed. Thread: any */

/* Add a template: `json` is one value that passed rv__json_check(); it is copied. *ret is its number.
 * Finds all errors that can be found without jq: "${" without its end, brackets and strings that do not close,
 * an empty expression, names that are not available (import, include, $ENV …).
 *
 * Errors: RV_EPARSE: "at /body/tree, character 12: …" (a pointer into `json`, left out if the value is itself a
 * string; characters of that string, from 1); RV_ETOOBIG, RV_ENOMEM.
 * After an error the set is unchanged. Thread: the one that builds the set. */
int rv__exprs_add(struct rv__exprs *set, struct rv__str json, uint32_t *ret, rv_error *err);

/* The same for a condition (when, if, while, until): must be a string with only one ${ … }. */
int rv__exprs_add_condition(struct rv__exprs *set, struct rv__str json, uint32_t *ret,
                            rv_error *err);

/* Is this template a constant, without any expression? */
bool rv__exprs_constant(const struct rv__exprs *set, uint32_t number);

/* What a template refers to, so that unknown names can be refused: the i-th use of a root, in order;
 * false: no more. Only what is visible in the text: `.steps.a.result` and `.steps["a"]` count;
 * `.steps | .a` is a use of steps without a name. An expression that takes the whole object (`keys`, `.`) has no
 * root: `root` is "none". All texts are valid as long as the set. */
struct rv__expr_use {
    struct rv__str root;    /* "input", "steps", …, as written; "none": the whole object */
    struct rv__str name;    /* steps: the alias; secrets: its name; "none": all of them */
    struct rv__str pointer; /* to the string that contains it; "" is the template itself */
    size_t character;       /* its position in that string, from 1 */
};
bool rv__exprs_use(const struct rv__exprs *set, uint32_t number, size_t i,
                   struct rv__expr_use *ret);

/* Is it one of input, steps, lastStep, loop, run, env, secrets? */
bool rv__expr_known_root(struct rv__str root);

/* How many expressions of this template need jq? 0: it consists of text and plain paths. And does any in the set? */
size_t rv__exprs_jq(const struct rv__exprs *set, uint32_t number);
bool rv__exprs_any_jq(const struct rv__exprs *set);

/* Compiles programs: exec/ asks an evaluator process. RV_OK; RV_EPARSE: jq refuses it, and *err is jq's first
 * message, unchanged; any other error: it could not be compiled, and *err says why. */
struct rv__expr_compiler {
    int (*compile)(struct rv__expr_compiler *self, struct rv__str program, rv_error *err);
};

/* Compile the set. RV_EPARSE if jq refuses any of it: then `bad` was called for each bad expression, with its
 * template, the string that contains it, the position in that string, and jq's reason; *err has the first. Takes about
 * 30 ms (for each bad expression too). May be left out: then the evaluation fails instead.
 * Errors: also those of the compiler. */
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

/* A JSON text of the scope, with an identity, so that it is parsed only once.
 *
 * The identity is (blob, json.at) if there is a blob, which is then held as long as anything about it is kept (a
 * blob may stand for a text that is not in memory: then json is "none"); else `key`, which must never be used for
 * another text during the life of the process (for example a number of the run and the number of the actor); else
 * it has no identity and is parsed each time.
 *
 * json "none": the text is not in memory; rv__scope.text is called for it, if nothing about it is kept. */
struct rv__scope_text {
    struct rv__str json;   /* checked JSON, valid during the evaluation */
    struct rv__blob *blob; /* borrowed; `json` lies in it, or is what it stands for. NULL: none */
    uint64_t key[2];       /* { 0, 0 }: none */
    const void *origin;    /* for the scope: where `text` gets it from */
};

/* What an expression can read, requested piece by piece, so that an evaluation costs only what it uses. Embedded in a
 * struct of the owner of the values. All calls come from the thread that evaluates. */
struct rv__scope {
    /* Find a piece of the scope; RV_ENOTFOUND: there is none, and jq sees null. Requests are
     *   root "steps",    name = alias,  field "result", "state" (an object), "status" (a string) or,
     *                    for a failed step, "error" (an object)
     *   root "lastStep", name "result", "state", "alias" or "stepName"
     *   root "loop",     name "item", "index" or "items"; root "loop.parent", "loop.parent.parent" …: those of
     *                    the enclosing iterations
     *   root "secrets",  name = a secret that the template names (a string)
     *   any other root (input, run, env, error …), no name
     * A name or field that is not part of the request is "none". */
    int (*find)(struct rv__scope *self, struct rv__str root, struct rv__str name,
                struct rv__str field, struct rv__scope_text *ret);

    /* The text of a found piece whose json was "none". The caller owns *ret. May be NULL, if `find` always has
     * the text. */
    int (*text)(struct rv__scope *self, const struct rv__scope_text *found, struct rv__blob **ret,
                rv_error *err);

    /* The i-th alias of steps, in order of execution, each once. 1: there is one; 0: no more;
     * RV_ENOMEM. */
    int (*alias)(struct rv__scope *self, size_t i, struct rv__str *ret);

    /* Roots besides the known six, for an expression that takes the whole object; NULL or ending in NULL. */
    const char *const *roots;

    /* Set by the evaluation: `find` must not wait for a disk or a lock now; it returns RV_EBUSY instead, and is called
     * again later. */
    bool at_hand;
};

/* --------------------------------------------------------------------------- evaluation --- */

/* Texts that were built, and the targets of plain paths in large texts, kept between evaluations. Belongs to one
 * thread. */
struct rv__expr_texts;

#define RV__EXPR_CACHE_BYTES \
    ((size_t)64 << 20) /* default: of texts kept; the same of values there */
#define RV__EXPR_OUTPUT_BYTES ((size_t)16 << 20) /* default: of one result */

int rv__expr_texts_new(size_t max_bytes /* 0 = default */, struct rv__expr_texts **ret,
                       rv_error *err);
void rv__expr_texts_free(struct rv__expr_texts *texts); /* NULL is allowed */

/* What an evaluator process has: programs and parsed values, by slot. A value that many evaluations read is sent once.
 * One for each connection; belongs to one thread. `sender` sends them: its functions are called from rv__exprs_ask(),
 * before the question is sent, and the process must receive them in that order. */
enum {
    RV__PEER_VALUES = 4096,  /* slots of values */
    RV__PEER_PROGRAMS = 128, /* slots of programs: about a megabyte each */
};
enum {
    RV__SCOPE_PATH = 102
}; /* names in the path of an entry of "scope": loop, a hundred parents, item */
struct rv__expr_peer;
struct rv__expr_sender {
    /* Put this value into this slot; json "none": empty the slot. Handles its own failures. */
    void (*value)(struct rv__expr_sender *self, unsigned slot, struct rv__str json);
    void (*program)(struct rv__expr_sender *self, unsigned slot, struct rv__str text);
};
int rv__expr_peer_new(size_t max_bytes /* 0 = default */, struct rv__expr_sender *sender,
                      struct rv__expr_peer **ret, rv_error *err);
void rv__expr_peer_free(struct rv__expr_peer *peer); /* NULL is allowed */

/* The question of a template that needs jq: appends members of a JSON object to `out`:
 *   ,"run":[PROGRAM,CHOICE,…],"scope":[["input",SLOT],["loop","item",[VALUE]],…]
 * The answer is the list of the values, one for each pair in "run". `quickly`: only if that is cheap: nothing needs
 * to be sent before, and no text has to be built.
 * Errors: RV_ENOMEM; RV_ETOOBIG; RV_EBUSY: not quickly; errors of the scope. */
int rv__exprs_ask(struct rv__exprs *set, uint32_t number, struct rv__expr_texts *texts,
                  struct rv__expr_peer *peer, struct rv__scope *scope, bool quickly,
                  struct rv__buf *out, rv_error *err);

/* Compose a template; append the JSON text to `out`, whose limit is the limit of the output.
 * `values` is the answer, a checked JSON array; "none": for a template that needs no jq.
 * After a failure `out` is unchanged.
 *
 * Errors: RV_EINVAL: a path does not fit the data, or the answer is not valid; RV_ETOOBIG: the output;
 * RV_ENOMEM; errors of the scope. */
int rv__exprs_compose(struct rv__exprs *set, uint32_t number, struct rv__expr_texts *texts,
                      struct rv__scope *scope, struct rv__str values, struct rv__buf *out,
                      rv_error *err);

/* The answer is an error of the i-th pair of the question: "${ expression }: why". Returns code. */
int rv__exprs_failed(const struct rv__exprs *set, uint32_t number, size_t i, int code,
                     const char *why, rv_error *err);

/* --------------------------------------------------------------------------- plain paths --- */

/* One step of a plain path. */
struct rv__expr_step {
    struct rv__str key; /* "none": an index */
    int64_t index;      /* negative: from the end */
};

/* Parse a plain path by itself (".steps.find.result.list[0]"): at least one step, the first a key.
 * In the arena; keys may point into `text`. Errors: RV_EPARSE: it is not one (with the reason); RV_ETOOBIG, RV_ENOMEM. */
int rv__path_read(struct rv__arena *arena, struct rv__str text, struct rv__expr_step **path,
                  size_t *count, rv_error *err);
/* Follow the steps into a checked JSON text. Errors: RV_ENOTFOUND: nothing is there; RV_EINVAL: a step does
 * not fit the data, in jq's words. */
int rv__path_walk(const struct rv__expr_step *path, size_t count, struct rv__str *json,
                  rv_error *err);

/* Is it true in jq: anything except false and null? For a value that passed rv__json_check(). */
bool rv__expr_truth(struct rv__str json);

#endif
