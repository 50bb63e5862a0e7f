/* define.h: from files to drafts and plans, with everything that is wrong told at its place.
 *
 *   files, folders ──▶ texts ──▶ trees ──▶ plan JSON + spots ──▶ drafts ──▶ plans
 *            load.c      tree.c, yaml.c     lower.c           plan/      plan/, refs.c
 *
 * A file in the YAML form (SPEC §6; docs/reference/workflow-file.md) becomes the JSON of a plan, which
 * plan/ reads and judges: the rules stand there once. What define/ adds is where: it remembers which
 * node came from which bytes (its *spots*), and turns each violation into file, line and column.
 *
 * Thread: any; there is no state but what is passed. */
#ifndef RV_DEFINE_DEFINE_H
#define RV_DEFINE_DEFINE_H

#include "base/arena.h"
#include "base/str.h"
#include "base/violations.h"
#include "define/table.h"
#include "define/workflow.h"
#include "expr/expr.h"
#include "plan/plan.h"

/* Bounds on what is read. Beyond them a file is refused, and the others go on. */
enum {
    RV__DEFINE_MAX_BYTES = 4 << 20, /* of one file; people write kilobytes, generators a megabyte */
    RV__DEFINE_MAX_NODES = 200000,  /* values in one file, with what YAML aliases repeat */
    RV__DEFINE_MAX_LEVELS = 420,    /* containers within each other: 4 for each of a plan's 100 */
    RV__DEFINE_MAX_ANCHORS = 1000,  /* of one YAML file: they are looked for one by one */
    RV__DEFINE_MAX_FILES = 10000,   /* found in all; a folder with more is not one of workflows */
    RV__DEFINE_MAX_FOLDERS = 32,    /* folders within each other */
    RV__DEFINE_MAX_PROBLEMS = 100,  /* told of one file; the rest is counted */
};

/* Something wrong. All texts are printable UTF-8 and live as long as the list. */
struct rv__problem {
    struct rv__str file;    /* as it was named, or found below what was named */
    uint32_t line, column;  /* from 1, columns in characters; line 0: the file as a whole */
    struct rv__str message; /* what and why, one sentence */
    struct rv__str excerpt; /* the line, or the part of it around the column; none for line 0 */
    uint32_t caret;         /* characters of the excerpt before the one that is meant */
};

/* A workflow from a file that has no problems. */
struct rv__definition {
    struct rv__str name;
    struct rv__str file;
    struct rv__str directory; /* absolute: relative commands are relative to it */
    struct rv__draft *draft;  /* owned by the list; nested workflows are named, not inlined */
    struct rv__plan *plan;    /* owned by the list; or taken, and then NULL here */
    struct rv__str schema;    /* raw JSON of its input schema; none = any input. In the plan */
};

/* A file that somebody else loads. */
enum rv__other_kind {
    OTHER_C,      /* .c: to be compiled */
    OTHER_OBJECT, /* .so */
    OTHER_SCRIPT, /* .ts, .mts, .js, .mjs: for a Node host */
};

struct rv__other_file {
    enum rv__other_kind kind;
    struct rv__str file;
};

/* What came of it: the good ones, the bad ones, the others. Give it to rv__definitions_free(). */
struct rv__definitions {
    struct rv__arena arena;
    struct rv__definition *items;
    size_t count;
    struct rv__problem *problems; /* by file, then by line */
    size_t problem_count;
    size_t dropped;               /* problems found beyond RV__DEFINE_MAX_PROBLEMS of a file */
    struct rv__problem *warnings; /* the same, of what is good, and most likely not meant */
    size_t warning_count;
    struct rv__other_file *others;
    size_t other_count;
    size_t file_count; /* workflow files that were looked at */
};

/* Load files and folders (recursively, by name, hidden ones and node_modules left out). Files in a folder
 * that are no workflows are passed over; one that was named, and is none, is a problem. A workflow
 * that is nested by file is loaded too; one nested by name is looked for among the files, then by
 * `known` (NULL: nobody knows more), then as a file of that name beside the one that nests it. `compiler`
 * compiles expressions; NULL: they are not compiled, and what only jq finds is not told.
 *
 * A file that is bad is a problem and no error. On success *ret is for rv__definitions_free().
 * Errors: RV_ENOMEM; RV_ETOOBIG: more than RV__DEFINE_MAX_FILES; what `known` said. */
int rv__define_load(const char *const *paths, size_t count, struct rv__resolver *known,
                    struct rv__expr_compiler *compiler, struct rv__definitions **ret,
                    rv_error *err);
void rv__definitions_free(struct rv__definitions *definitions); /* NULL is allowed */
void rv__definitions_sort(struct rv__definitions *definitions); /* its problems, by place */

/* What the workflow of a file in YAML or JSON is called, good or not. *ret none: it is no workflow. Errors:
 * RV_ENOMEM. */
int rv__define_name(const char *path, struct rv__arena *arena, struct rv__str *ret, rv_error *err);

/* One more problem, of a file as a whole: somebody else found it. Errors: RV_ENOMEM. */
int rv__definitions_complain(struct rv__definitions *definitions, struct rv__str file,
                             const char *message);

/* What is wrong with a C file: each error of those that the compiler `said`, at its line; if it told none,
 * `why`, of the file as a whole. None instead of `said`: `why` is about what it declares. `file` as it was
 * named to the compiler. Errors: RV_ENOMEM. */
int rv__definitions_complain_c(struct rv__definitions *definitions, const char *file,
                               struct rv__str said, const char *why);
/* A workflow from elsewhere joins the good ones. Takes the plan, if it can. Errors: RV_ENOMEM. */
int rv__definitions_add(struct rv__definitions *definitions, const char *file,
                        struct rv__plan **plan);

/* One text as a file that nests nothing by file: for tests and fuzzers, and where a text comes without
 * one. `file` names it in problems; ".json" at its end makes it JSON. */
int rv__define_text(const char *file, struct rv__str text, struct rv__resolver *known,
                    struct rv__expr_compiler *compiler, struct rv__definitions **ret,
                    rv_error *err);

/* Check the expressions of a plan: that each can be parsed, that conditions are expressions, and that
 * a plain path `.steps.NAME` leads to a node that is there before: earlier in its own sequence or in
 * one around it; in a loop's body also later ones, from the iteration before. A description sees its
 * own step. Handlers are not held to it: they see all that ran.
 *
 * Every violation goes to `bad` with the path of its node. Errors: RV_EINVAL: there are violations;
 * RV_EPARSE: jq refuses the expressions together, and none of them alone; RV_ENOMEM; what the compiler
 * could not do. `compiler` as in rv__define_load(). */
int rv__define_check_refs(const struct rv__plan *plan, struct rv__expr_compiler *compiler,
                          struct rv__violations *bad, rv_error *err);

/* May a function of the node read `.steps.ALIAS`, by the same rules? False, with why in `room` bytes: it
 * never can, whatever happens in a run. `own_body`: it is the condition of a loop, which sees its body. */
bool rv__define_sees(const struct rv__plan *plan, const struct rv__node *node, bool own_body,
                     struct rv__str alias, char *why, size_t room);

/* A plan for people: a tree, and a flowchart for Mermaid. Appended to `out`; failures are its own. */
/* A file of YAML or JSON that is no workflow, as JSON text: a configuration. Errors: RV_EINVAL: the first that is
 * wrong, with file and line; RV_ENOMEM; the bound of `out`. */
int rv__define_json(const char *file, struct rv__buf *out, rv_error *err);

void rv__plan_render_text(const struct rv__plan *plan, struct rv__buf *out);
void rv__plan_render_mermaid(const struct rv__plan *plan, struct rv__buf *out);

/* A manifest in YAML, written back in the usual way: keys in snake_case, two columns for each level, no space at
 * the ends of lines. Comments, quotes and order stay; it means the same. Appended to `out`; done again it
 * changes nothing.
 * Errors: RV_EINVAL: it is not YAML, and where; RV_ESTATE: it would not mean the same; RV_ETOOBIG; RV_ENOMEM. */
int rv__manifest_format(struct rv__str text, struct rv__buf *out, rv_error *err);

/* ------------------------------------------------------------------------------- C files --- */

enum { RV__CFILE_PATH = 4096 };

/* Compile a C file, or find that it was: `object` is then the path of a shared object. What the compiler
 * printed is appended to `said`, as it was, warnings too. Blocks while the compiler runs.
 * The cache must be a folder of ours that others cannot write to.
 *
 * Errors: RV_EINVAL: the compiler refused it; RV_ENOTFOUND: no file, no compiler, no headers; RV_ETIMEDOUT:
 * the compiler took too long, and was stopped; RV_ESYS.
 * Thread: any, also several for one file; other processes too. */
int rv__cfile_build(const char *file, char object[RV__CFILE_PATH], struct rv__buf *said,
                    rv_error *err);

/* What a C text declares, by the text alone: nothing is run. *name: of its workflow; none: it has none, or one
 * that only a compiler finds. */
enum rv__declares {
    DECLARES_NOTHING,
    DECLARES_WORKFLOW,  /* RV_WORKFLOW */
    DECLARES_FUNCTIONS, /* RV_FUNCTIONS alone */
};
enum rv__declares rv__cfile_declares(struct rv__str text, struct rv__str *name);
/* The same for a text in TypeScript or JavaScript: it exports `steps`, or a workflow that it makes. One that starts an engine
 * of its own is a program, and declares nothing. */
enum rv__declares rv__script_declares(struct rv__str text, struct rv__str *name);
/* The same for a file, in the arena; where its text does not say it, the file's own name. Errors: RV_ENOMEM. */
int rv__cfile_name(const char *path, struct rv__arena *arena, enum rv__declares *declares,
                   struct rv__str *ret);

/* "payment" of "orders/payment.yaml": a part of the path. */
struct rv__str rv__file_stem(struct rv__str path);
/* Is it another way to say a file, not a name? And is it one in C? */
bool rv__is_file_reference(struct rv__str reference);
bool rv__is_c_file(struct rv__str path);
bool rv__is_script(struct rv__str path); /* TypeScript or JavaScript */
/* The path of a file that is named relative to a folder. Errors: RV_ENOMEM. */
int rv__file_beside(struct rv__str directory, struct rv__str reference, struct rv__buf *ret);

/* Open what rv__cfile_build() made, to be loaded as "/proc/self/fd/N": what was looked at is then what is
 * run. It must be ours, and not writable by others. 0: it is none of those, but a .so that somebody named.
 * Errors: RV_ENOTFOUND, RV_ESYS. */
int rv__cfile_open(const char *object, rv_error *err);

/* The folder that has rival/rival.h: RIVAL_INCLUDE, beside us, where we were installed, the sources. */
int rv__cfile_include(char folder[RV__CFILE_PATH], rv_error *err);

#endif
