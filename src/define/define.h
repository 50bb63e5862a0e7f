/* define.h: turns files into drafts and plans, and reports all errors with their positions.
 *
 *   files, folders ──▶ texts ──▶ trees ──▶ plan JSON + spots ──▶ drafts ──▶ plans
 *            load.c      tree.c, yaml.c     lower.c           plan/      plan/, refs.c
 *
 * A file in the YAML form (docs/reference/workflow-file.md) becomes plan JSON, which plan/ reads and checks:
 * the rules exist only there. define/ adds the positions: it remembers which node came from which bytes
 * (its *spots*), and turns each violation into file, line and column.
 *
 * Thread: any; there is no state except what is passed in. */
#ifndef RV_DEFINE_DEFINE_H
#define RV_DEFINE_DEFINE_H

#include "base/arena.h"
#include "base/str.h"
#include "base/violations.h"
#include "define/table.h"
#include "define/workflow.h"
#include "expr/expr.h"
#include "plan/plan.h"

/* Limits for files. A file beyond them is refused, and the others are still loaded. */
enum {
    RV__DEFINE_MAX_BYTES = 4 << 20, /* of one file; people write kilobytes, generators a megabyte */
    RV__DEFINE_MAX_NODES = 200000,  /* values in one file, counting each use of a YAML alias */
    RV__DEFINE_MAX_LEVELS = 420,    /* nested containers: 4 for each of a plan's 100 levels */
    RV__DEFINE_MAX_ANCHORS = 1000,  /* in one YAML file: they are searched linearly */
    RV__DEFINE_MAX_FILES = 10000,   /* in all; a folder with more is hardly one of workflows */
    RV__DEFINE_MAX_FOLDERS = 32,    /* folders within each other */
    RV__DEFINE_MAX_PROBLEMS = 100,  /* listed for one file; the rest is counted */
};

/* An error or warning. All texts are printable UTF-8 and valid as long as the list. */
struct rv__problem {
    struct rv__str file;    /* as given, or as found below a given folder */
    uint32_t line, column;  /* from 1, columns in characters; line 0: the whole file */
    struct rv__str message; /* what is wrong and why, one sentence */
    struct rv__str excerpt; /* the line, or the part of it around the column; none for line 0 */
    uint32_t caret;         /* position of the column in the excerpt, in characters from 0 */
};

/* A workflow from a file that has no problems. */
struct rv__definition {
    struct rv__str name;
    struct rv__str file;
    struct rv__str directory; /* absolute: relative commands are relative to it */
    struct rv__draft *draft;  /* owned by the list; nested workflows are named, not inlined */
    struct rv__plan *plan;    /* owned by the list; NULL after it was taken */
    struct rv__str schema;    /* raw JSON of its input schema; none = any input. In the plan */
};

/* A file that is loaded elsewhere. */
enum rv__other_kind {
    OTHER_C,      /* .c: to be compiled */
    OTHER_OBJECT, /* .so */
    OTHER_SCRIPT, /* .ts, .mts, .js, .mjs: for a Node host */
};

struct rv__other_file {
    enum rv__other_kind kind;
    struct rv__str file;
};

/* The result: good files, bad files, others. Free with rv__definitions_free(). */
struct rv__definitions {
    struct rv__arena arena;
    struct rv__definition *items;
    size_t count;
    struct rv__problem *problems; /* by file, then by line */
    size_t problem_count;
    size_t dropped;               /* problems beyond RV__DEFINE_MAX_PROBLEMS of a file */
    struct rv__problem *warnings; /* valid, but probably a mistake */
    size_t warning_count;
    struct rv__other_file *others;
    size_t other_count;
    size_t file_count; /* workflow files read */
};

/* Load files and folders (recursively, by name; hidden ones and node_modules are skipped). Files in a folder that are
 * not workflows are skipped; a file that was given explicitly and is not a workflow is a problem. A workflow nested by
 * file is loaded too. A workflow nested by name is looked up among the files, then with `known` (may be NULL), then as
 * a file of that name beside the one that nests it. `compiler` compiles expressions; NULL: they are not compiled, and
 * errors that only jq finds are not reported.
 *
 * A bad file is a problem, not an error of this call. On success free *ret with rv__definitions_free().
 * Errors: RV_ENOMEM; RV_ETOOBIG: more than RV__DEFINE_MAX_FILES; errors of `known`. */
int rv__define_load(const char *const *paths, size_t count, struct rv__resolver *known,
                    struct rv__expr_compiler *compiler, struct rv__definitions **ret,
                    rv_error *err);
void rv__definitions_free(struct rv__definitions *definitions); /* NULL is allowed */
void rv__definitions_sort(struct rv__definitions *definitions); /* its problems, by position */

/* The name of the workflow in a YAML or JSON file, valid or not. *ret none: it is not a workflow. Errors:
 * RV_ENOMEM. */
int rv__define_name(const char *path, struct rv__arena *arena, struct rv__str *ret, rv_error *err);

/* Add a problem of a whole file, found elsewhere. Errors: RV_ENOMEM. */
int rv__definitions_complain(struct rv__definitions *definitions, struct rv__str file,
                             const char *message);

/* Add the problems of a C file: each error in `said`, the output of the compiler, at its line; if there is none, `why`
 * for the whole file. If `said` is none, `why` is about its declarations. `file` as it was given to the compiler.
 * Errors: RV_ENOMEM. */
int rv__definitions_complain_c(struct rv__definitions *definitions, const char *file,
                               struct rv__str said, const char *why);
/* Add a workflow from elsewhere. Takes the plan on success. Errors: RV_ENOMEM. */
int rv__definitions_add(struct rv__definitions *definitions, const char *file,
                        struct rv__plan **plan);

/* Load one text as a file that nests nothing by file: for tests, fuzzers and texts without a file. `file` is its name
 * in problems; with ".json" at the end it is read as JSON. */
int rv__define_text(const char *file, struct rv__str text, struct rv__resolver *known,
                    struct rv__expr_compiler *compiler, struct rv__definitions **ret,
                    rv_error *err);

/* Check the expressions of a plan: each can be parsed, conditions are expressions, and a plain path
 * `.steps.NAME` leads to a node that comes before: earlier in its own sequence or in an enclosing one; in the body
 * of a loop also a later one, from the previous iteration. A description sees its own step. Handlers are not
 * checked: they see everything that ran.
 *
 * Every violation is added to `bad` with the path of its node. Errors: RV_EINVAL: there are violations;
 * RV_EPARSE: jq refuses the expressions together, but none of them alone; RV_ENOMEM; errors of the compiler.
 * `compiler` as in rv__define_load(). */
int rv__define_check_refs(const struct rv__plan *plan, struct rv__expr_compiler *compiler,
                          struct rv__violations *bad, rv_error *err);

/* May a function of the node read `.steps.ALIAS`, by the same rules? False, with the reason in `room` bytes: it
 * never can, in any run. `own_body`: it is the condition of a loop, which sees its body. */
bool rv__define_sees(const struct rv__plan *plan, const struct rv__node *node, bool own_body,
                     struct rv__str alias, char *why, size_t room);

/* Convert a YAML or JSON file that is not a workflow, a configuration, to JSON text. Errors: RV_EINVAL: the first
 * error, with file and line; RV_ENOMEM; the limit of `out`. */
int rv__define_json(const char *file, struct rv__buf *out, rv_error *err);
/* The same of a text; `file` is for messages. */
int rv__define_text_json(struct rv__str text, const char *file, struct rv__buf *out, rv_error *err);

/* A plan for people: as a tree, and as a Mermaid flowchart. Appended to `out`, which remembers a failure. */
void rv__plan_render_text(const struct rv__plan *plan, struct rv__buf *out);
void rv__plan_render_mermaid(const struct rv__plan *plan, struct rv__buf *out);

/* Format a YAML manifest: keys in snake_case, two columns per level, no trailing spaces. Comments, quotes, order and
 * meaning stay the same. Appended to `out`; formatting the result again changes nothing.
 * Errors: RV_EINVAL: not YAML (the message says where); RV_ESTATE: the meaning would change; RV_ETOOBIG; RV_ENOMEM. */
int rv__manifest_format(struct rv__str text, struct rv__buf *out, rv_error *err);

/* ------------------------------------------------------------------------------- C files --- */

enum { RV__CFILE_PATH = 4096 };

/* Compile a C file, unless the cache has it: `object` is then the path of a shared object. The output of the
 * compiler, with warnings, is appended to `said`. Blocks while the compiler runs. The cache must be a folder that
 * belongs to us and that others cannot write to.
 *
 * Errors: RV_EINVAL: the compiler refused it; RV_ENOTFOUND: no file, no compiler, no headers; RV_ETIMEDOUT:
 * the compiler took too long, and was stopped; RV_ESYS.
 * Thread: any, several at once for one file; other processes too. */
int rv__cfile_build(const char *file, char object[RV__CFILE_PATH], struct rv__buf *said,
                    rv_error *err);

/* What a C source declares, found in its text: nothing is run. *name: of its workflow; none: it has none, or one
 * that only a compiler finds. */
enum rv__declares {
    DECLARES_NOTHING,
    DECLARES_WORKFLOW,  /* RV_WORKFLOW */
    DECLARES_FUNCTIONS, /* RV_FUNCTIONS alone */
};
enum rv__declares rv__cfile_declares(struct rv__str text, struct rv__str *name);
/* The same for TypeScript or JavaScript: it exports `steps`, or a workflow that it makes. A text that starts its own
 * engine is a program, and declares nothing. */
enum rv__declares rv__script_declares(struct rv__str text, struct rv__str *name);
/* The same for a file, in the arena; if its text has no name, the file's own. Errors: RV_ENOMEM. */
int rv__cfile_name(const char *path, struct rv__arena *arena, enum rv__declares *declares,
                   struct rv__str *ret);

/* "payment" of "orders/payment.yaml": a part of the path. */
struct rv__str rv__file_stem(struct rv__str path);
/* Is it a reference to a file, not a name? And is that a C file? */
bool rv__is_file_reference(struct rv__str reference);
bool rv__is_c_file(struct rv__str path);
bool rv__is_script(struct rv__str path); /* TypeScript or JavaScript */
/* The path of a file given relative to a folder. Errors: RV_ENOMEM. */
int rv__file_beside(struct rv__str directory, struct rv__str reference, struct rv__buf *ret);

/* Open what rv__cfile_build() made, to load it as "/proc/self/fd/N": what was checked is then what is run. It must
 * belong to us, and not be writable by others. 0: it is not from the cache, but a .so given by the user.
 * Errors: RV_ENOTFOUND, RV_ESYS. */
int rv__cfile_open(const char *object, rv_error *err);

/* The folder that has rival/rival.h: RIVAL_INCLUDE, beside us, where we were installed, the sources. */
int rv__cfile_include(char folder[RV__CFILE_PATH], rv_error *err);

#endif
