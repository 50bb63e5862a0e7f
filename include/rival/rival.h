/* rival.h: the public API of librival: durable workflows inside your program.
 *
 * A workflow is a sequence of steps. A run survives the death of its process: the result of a step is
 * on disk before the next step starts, and a new process continues where the old one stopped.
 *
 *     static int find(rv_ctx *c) { return rv_return(c, "{s:s}", "tree", "oak-123"); }
 *     static int chop(rv_ctx *c)
 *     {
 *         rv_describe(c, "chopped %s", rv_str(c, ".steps.find.result.tree"));
 *         return rv_return(c, "{s:i}", "pieces", 10);
 *     }
 *
 *     rv_workflow *w = rv_workflow_new("lumber");
 *     rv_add_step(rv_workflow_body(w), "find", find, NULL);
 *     rv_add_step(rv_workflow_body(w), "chop", chop, RV_STEP_OPTS(.max_attempts = 3));
 *     rv_engine_new(RV_ENGINE_OPTS(.store = "lumber.db"), &engine, &err);
 *     rv_register(engine, w, &err);
 *     rv_run(engine, "lumber", "{}", RV_RUN_OPTS(.run_id = "today"), &info, &err);
 *     rv_wait(engine, "lumber", "today", NULL, &outcome, &err);
 *
 * Rules for the whole API:
 *   - A call that can fail returns 0 (or a count), or a negative RV_E… code with the reason in *err.
 *     Results are written only on success, *err only on failure; err may be NULL.
 *   - JSON is passed as UTF-8 text in both directions. The library copies the text you pass in; text it
 *     returns belongs to the object it came from.
 *   - Option structs: zero means the default, a NULL struct means all defaults. Make them with their
 *     macro, or with rv_…_init() where macros cannot be used. `size` lets us add fields later.
 *   - Every function may be called from any thread, and from inside a step, unless its comment says
 *     otherwise. Functions that take an rv_ctx: only from the thread of that step.
 *   - Engines in one process are independent of each other. A store has one engine at a time. */
#ifndef RIVAL_RIVAL_H
#define RIVAL_RIVAL_H

#include <stdarg.h>
#include <rival/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rv_engine rv_engine;     /* runs workflows on one store */
typedef struct rv_workflow rv_workflow; /* a definition under construction */
typedef struct rv_body rv_body;         /* a sequence of nodes in it */
typedef struct rv_ctx rv_ctx;           /* a running step, as its function sees it */

#define RV_MODULE_SIZE 17 /* the hash of a loaded module: 16 hexadecimal digits and a NUL */
/* JSON in C source, without quotes around it: RV_JSON({ "type": "object", "required": ["id"] }).
 * Commas are allowed. Macros inside it are not expanded. */
#define RV_JSON(...)   #__VA_ARGS__

#define RV_RUN_ID_SIZE 129 /* [A-Za-z0-9._:-]{1,128} and a NUL */

/* The function of a step. It returns 0 after rv_return…() (without rv_return…() its result is null),
 * or the return value of rv_fail(), rv_stop(), rv_continue() or rv_retry(). */
typedef int (*rv_step_fn)(rv_ctx *ctx);

/* ------------------------------------------------------------------------------------------
 * Engines */

typedef struct rv_engine_opts {
    size_t size;       /* filled in by RV_ENGINE_OPTS */
    const char *store; /* a file, or "postgres://…"; NULL = "rival.db"; ":memory:" = not kept */
    uint32_t workers;  /* steps running at once; 0 = 256; threads are made on demand */
    uint32_t max_crashes; /* a step that crashed more often than this suspends its run; 0 = 3 */
    int64_t grace_ms;     /* at close: time for steps to end; 0 = 10000; negative = no limit */
    /* Names of environment variables that expressions may read in `env`; ends in NULL; NULL = none */
    const char *const *allow_env;
    /* Finished runs are deleted, oldest first, once they ended longer ago than this, there are more of
     * them than this, or the store is larger than this. 0 = no limit. See rv_retain(). */
    int64_t retain_age_ms;
    uint64_t retain_runs, retain_bytes;
    uint32_t hosts;       /* processes for the steps of C files; 0 = twice the number of CPUs */
    uint64_t host_memory; /* memory limit of each of them, in bytes; 0 = none */
    /* A step in a host process that was asked to stop gets SIGTERM after this time, and SIGKILL after
     * twice this time more; 0 = 1000 */
    int64_t host_grace_ms;
    /* Expressions are evaluated in separate processes (the program `rival`: from RIVAL_HOST, beside this
     * library, or in PATH). An expression that takes more CPU time than this fails; 0 = 1000 ms. */
    int64_t eval_cpu_ms;
    uint64_t eval_memory; /* memory limit of each of these processes, in bytes; 0 = 1 GiB */
    /* Drive only this run. The other runs of the store are not touched, and a call about one of them
     * returns RV_ESTATE, except lists, logs and nodes, which only read. NULL = all runs. */
    const char *only_run;
    bool idle;      /* start no work: the next engine acts on signals, decisions and new runs */
    bool read_only; /* change nothing; works while another process has the store open. Calls that
                       would write, and waiting for an unfinished run, return RV_ESTATE */
    /* Listen on a Unix socket beside the store ("NAME.sock", for this user only), so that other
     * processes can send calls for these runs: engines with `attach`, and the commands of `rival`. */
    bool control;
    /* If another process drives the store and listens (`control`), attach to it: this engine reads the
     * store itself, and the driver answers rv_run, rv_cancel_run, rv_signal, rv_complete, rv_decide,
     * rv_why, rv_workflows and rv_wait. If no process drives it, this option has no effect. With
     * read_only, nothing that changes a run is sent to the driver, but rv_wait() waits, and rv_why()
     * knows what runs where. See rv_engine_driver(). */
    bool attach;
    int64_t drain_ms; /* at close: how long steps run on before they are asked to stop */
    /* `http` steps may not connect to addresses of this machine, of private networks or to link-local
     * addresses. The address is checked after the name is resolved and after each redirect. For
     * engines that run other people's workflows. */
    bool http_deny_private;
    /* A file with lines NAME=value: values for the secrets that workflows declare. Secrets that are not
     * in it are read from the environment. Only its owner may have access to it. NULL = environment only. */
    const char *secrets_file;
    /* The configuration (YAML): the model providers that `chat` nodes name, and the MCP servers whose
     * tools steps and chats call. NULL = "rival.yaml" beside the store, if there is one. */
    const char *config_file;
    /* Who uses this engine: recorded as `by` when it starts, cancels, signals or decides about a run,
     * unless the call says otherwise. At most RV_BY_BYTES. NULL = no name is recorded. */
    const char *by;
    /* Share a store in PostgreSQL with other members: each has some of the runs, and any of them answers for
     * all. One of which nothing is heard for lease_ms (at least 1000; 0 = 10000) loses its runs to the others.
     * RV_EBUSY: a process has the store alone. */
    bool member;
    int64_t lease_ms;
} rv_engine_opts;
enum { RV_BY_BYTES = 128 }; /* longest name in `by`, here and in the options of calls */
#define RV_ENGINE_OPTS(...) (&(rv_engine_opts){ .size = sizeof(rv_engine_opts), __VA_ARGS__ })
RV_API void rv_engine_opts_init(rv_engine_opts *opts);

/* Open an engine on its store, and plan the recovery of unfinished runs. The store is created if it does
 * not exist. An unfinished run continues as soon as its workflow is registered. If a run needs a function
 * that is still missing after five seconds, it is suspended and names the function; it continues by
 * itself when the function is registered.
 *
 * Returns when recovery is planned, not when those runs have finished. Keeps no reference to `opts`.
 * On success *ret is an engine; free it with rv_engine_free().
 * Errors: RV_EINVAL, RV_ENOMEM, RV_ESTORE (the store is unreadable, or newer than this library),
 * RV_EBUSY (another process has the store; the message says which), RV_ESYS (`control`: cannot listen). */
RV_API int rv_engine_new(const rv_engine_opts *opts, rv_engine **ret, rv_error *err);

/* The process that drives the store an engine is attached to. */
typedef struct rv_driver {
    int64_t pid;
    char version[32];              /* of its library */
    char only_run[RV_RUN_ID_SIZE]; /* it drives only this run; "" = all */
    char refuses[256]; /* why it cannot write to the store, so that no run continues; "" = it can */
} rv_driver;
/* Returns 1 if another process drives the store and answers for this engine: *ret describes it as it was
 * when this engine was made. Returns 0 if there is none, or if it has ended since rv_hand_over().
 * Calls on an attached engine return RV_ECLOSED if the driver has ended and nothing was done (make
 * another engine), RV_EBUSY if it drives another run, RV_EFAILED if it ended before it answered.
 * Errors: RV_EINVAL. */
RV_API int rv_engine_driver(rv_engine *engine, rv_driver *ret, rv_error *err);
/* Did the driver drive this run when this engine was made? */
RV_API bool rv_engine_drives(rv_engine *engine, const char *run_id);

/* Stop the engine. It starts nothing new. After `drain_ms`, running steps are asked to stop
 * (rv_ctx_cancelled) and have `grace_ms` to end. The results of steps that end in time are kept. A step
 * that fails because it was asked to stop, or has not ended in time, is handed back: the next engine
 * attempts it again, and neither a failure nor a crash is counted. When this returns, everything is on
 * disk, unless the store still refuses writes after `grace_ms`: that is then the same as a crash.
 * Callers inside rv_wait() get RV_ECLOSED, and so does every later call, except rv_list, rv_logs and
 * rv_nodes, which read the store by themselves.
 *
 * Returns how many steps had not ended. Their code cannot be stopped: end the program, or wait for them
 * in rv_engine_free(). A second call only returns the same number. Called from a step of this engine, it
 * panics. Thread: any, one at a time. */
RV_API int rv_engine_close(rv_engine *engine);

/* For a process that has finished its own work but drives runs that others handed over (rv_hand_over):
 * start nothing new, and let running steps take all the time they need. New calls get RV_ECLOSED from
 * now on. RV_OK: nothing is running any more, or there are no such runs. Call rv_engine_close() next in
 * any case.
 * Errors: RV_ETIMEDOUT (after timeout_ms; negative: never), RV_ECANCELED (`by` fired; may be NULL),
 * RV_EINVAL, RV_ESYS, RV_ENOMEM. Thread: any except a step's. */
RV_API int rv_engine_drain(rv_engine *engine, int64_t timeout_ms, rv_cancel *by, rv_error *err);

/* Whether the engine can write to its store. While the store refuses writes (the disk is full, another
 * program has locked the file), no step is started, and calls that change something wait until it
 * accepts them again. Calls that read wait too, up to five seconds the first time, and then return what
 * is on disk. Pending writes are retried ten times a second, and nothing is lost. If the store is
 * deleted or replaced while the engine runs, the engine notices before it acts on anything that would
 * be lost. */
typedef struct rv_health {
    bool stuck; /* the store refuses writes */
    /* The store's file, or its WAL file, was deleted or replaced; this is final. Running steps are asked
     * to stop (rv_ctx_cancelled), and every call returns RV_EGONE: the program should end. */
    bool gone;
    int64_t since;     /* when that began: ms since 1970; 0 = the store accepts writes */
    uint64_t attempts; /* write attempts since then */
    rv_error why;      /* the error of the last attempt */
} rv_health;
/* Returns at once, whatever the engine is doing. Errors: RV_EINVAL. */
RV_API int rv_engine_health(rv_engine *engine, rv_health *ret, rv_error *err);

/* Close, wait for steps that still run, and free. NULL is allowed. No other thread may use the engine any
 * more. */
RV_API void rv_engine_free(rv_engine *engine);

/* ------------------------------------------------------------------------------------------
 * Definitions
 *
 * rv_workflow_new() and the rv_add_…() functions report no errors. rv_register() reports everything that
 * is wrong (names, limits, no memory) at once. The rv_add_…() functions return the bodies to add further
 * nodes to; bodies belong to the workflow. Thread: one at a time for one workflow. */

RV_API rv_workflow *rv_workflow_new(const char *name); /* NULL: no memory */
RV_API void rv_workflow_free(rv_workflow *workflow);   /* NULL is allowed; it stays registered */
RV_API void rv_workflow_describe(rv_workflow *workflow, const char *text);
RV_API void rv_workflow_input(rv_workflow *workflow, const char *json_schema);
/* The workflow reads these nodes of the workflow that nests it: rv_workflow_needs(w,
 * RV_NEEDS("validateOrder")). Each place that nests it is checked for them. It cannot run by itself. */
RV_API void rv_workflow_needs(rv_workflow *workflow, const char *const *aliases);
RV_API void rv_workflow_on_error(rv_workflow *workflow, const char *name, rv_step_fn handler);
/* The same, as a list of nodes, which can be retried like any others: add them to the returned body. */
RV_API rv_body *rv_workflow_on_error_body(rv_workflow *workflow);
/* Nodes that run at the end of every run, however it ended: completed, failed or cancelled. */
RV_API rv_body *rv_workflow_finally(rv_workflow *workflow);
/* A function that no step uses any more, for older runs that still need it. */
RV_API void rv_workflow_function(rv_workflow *workflow, const char *name, rv_step_fn fn);
/* Secrets that its steps may send as .secrets.NAME; ends in NULL: RV_SECRETS("API_KEY"). */
RV_API void rv_workflow_secrets(rv_workflow *workflow, const char *const *names);
RV_API rv_body *rv_workflow_body(rv_workflow *workflow);

enum rv_on_timeout { RV_STOP = 0, RV_RETRY = 1 };
enum rv_backoff { RV_LINEAR = 1, RV_EXPONENTIAL = 2 }; /* 0 = linear, or as configured */
enum rv_keep { RV_KEEP_ALL = 0, RV_KEEP_LAST = 1, RV_KEEP_NONE = 2 };

/* How a step is run. */
typedef struct rv_step_opts {
    size_t size;      /* filled in by RV_STEP_OPTS */
    const char *name; /* the function's name; a restarted program finds it by this name;
                                NULL = the alias */
    rv_step_fn when;  /* if its result is false or null, the step is skipped; NULL = always run */
    const char *when_name;   /* the name of that function; NULL = "<name>.when" */
    const char *when_expr;   /* instead of `when`: an expression, "${ .input.total > 100 }" */
    const char *description; /* shown to people after it has ended: "Sent ${ .result.count }" */
    int64_t timeout_ms;      /* of each attempt; 0 = none */
    int on_timeout;          /* RV_STOP, RV_RETRY */
    int max_attempts;        /* 0 = 1, or what the step's own error says */
    int backoff;             /* RV_LINEAR: base × attempt; RV_EXPONENTIAL: base × 2^(attempt-1) */
    int64_t backoff_base_ms; /* 0 = 100 */
    int64_t max_backoff_ms;  /* 0 = 60000 */
    double jitter;           /* 0..1: each wait is shortened by a random part, up to this much */
    rv_step_fn on_error;     /* runs when the step has failed for good; NULL = none */
    const char *on_error_name; /* NULL = "<name>.onError" */
    /* JSON lists of exit codes, HTTP statuses and error codes: "[75, 503, \"timeout\"]". With retry_on only
     * these errors are retried; errors in no_retry_on never are. NULL = no list */
    const char *retry_on, *no_retry_on;
    bool
        continue_on_error; /* when no attempts are left, the step is failed and the workflow goes on */
    bool hide_input;       /* do not record the input of its attempts (rv_attempt: input) */
} rv_step_opts;
#define RV_STEP_OPTS(...) (&(rv_step_opts){ .size = sizeof(rv_step_opts), __VA_ARGS__ })
RV_API void rv_step_opts_init(rv_step_opts *opts);

/* A step. `alias` is the key of its result; [A-Za-z_][A-Za-z0-9_.-]*, no "__". */
RV_API void rv_add_step(rv_body *in, const char *alias, rv_step_fn fn, const rv_step_opts *opts);
/* Nodes that run when the step that was last added to `in` has failed for good, instead of its on_error. */
RV_API rv_body *rv_add_on_error(rv_body *in);
/* A durable timer: survives restarts, and occupies no thread. Result {delayedMs, startedAt, endedAt}. */
RV_API void rv_add_delay(rv_body *in, const char *alias, int64_t ms);
/* Waits for rv_signal(). Its result is the payload. After timeout_ms (0 = no limit) its result is
 * `default_json` or, if that is NULL, the step fails. */
RV_API void rv_add_signal(rv_body *in, const char *alias, const char *signal, int64_t timeout_ms,
                          const char *default_json);
/* Another workflow: by its name, registered before this one; or by the file that defines it
 * ("./payment.yaml", "./pay.c", relative to the working directory), which rv_register() then registers
 * too. Its result is that of its last node. */
RV_API void rv_add_workflow(rv_body *in, const char *alias, const char *name);
/* Any node, written as in C files, with everything inside it; see "Nodes":
 *     rv_add(body, RV_HTTP("https://example.org/${ .input.id }", .alias = "fetch", .max_attempts = 3));
 *     rv_add(body, RV_NESTED("./pay.c", .input = RV_JSON({ "amount": "${ .steps.fetch.result.data.sum }" })));
 * The node is copied. Commands are relative to the working directory. */
#define rv_add(in, node) rv_add_node((in), (node), sizeof(rv_node_def))
typedef struct rv_node_def rv_node_def;
RV_API void rv_add_node(rv_body *in, const rv_node_def *node, size_t node_size);

/* A condition, then one of two sequences. `condition` is a step function; its result decides. */
typedef struct rv_branch_bodies {
    rv_body *then, *otherwise;
} rv_branch_bodies;
RV_API rv_branch_bodies rv_add_branch(rv_body *in, const char *alias, rv_step_fn condition,
                                      const char *condition_name);

/* A sequence that repeats: while a condition holds (tested before each iteration), or until it holds
 * (tested after). Set one of the two functions; leave the other NULL. */
typedef struct rv_loop_opts {
    size_t size; /* filled in by RV_LOOP_OPTS */
    rv_step_fn while_, until;
    const char *condition_name; /* NULL = "<alias>.while", "<alias>.until" */
    int64_t max_iterations;     /* 0 = 1000; the loop fails if it would need more */
    int keep; /* RV_KEEP_ALL, _LAST, _NONE: which iterations its result contains */
} rv_loop_opts;
#define RV_LOOP_OPTS(...) (&(rv_loop_opts){ .size = sizeof(rv_loop_opts), __VA_ARGS__ })
RV_API void rv_loop_opts_init(rv_loop_opts *opts);
RV_API rv_body *rv_add_loop(rv_body *in, const char *alias, const rv_loop_opts *opts);

/* A sequence for each item of the array that `items` returns. */
typedef struct rv_foreach_opts {
    size_t size;            /* filled in by RV_FOREACH_OPTS */
    const char *items_name; /* NULL = "<alias>.items" */
    bool parallel;
    int64_t concurrency; /* with parallel: iterations at once; 0 = all */
    bool collect;        /* a failed iteration does not fail the node: the others run */
    const char *label; /* of an iteration, in lists: "order ${ .loop.item.id }"; NULL = its item */
} rv_foreach_opts;
#define RV_FOREACH_OPTS(...) (&(rv_foreach_opts){ .size = sizeof(rv_foreach_opts), __VA_ARGS__ })
RV_API void rv_foreach_opts_init(rv_foreach_opts *opts);
RV_API rv_body *rv_add_foreach(rv_body *in, const char *alias, rv_step_fn items,
                               const rv_foreach_opts *opts);

/* Several at once: add children with rv_concurrent_step() and rv_concurrent_body(). */
typedef struct rv_concurrent_opts {
    size_t size;   /* filled in by RV_CONCURRENT_OPTS */
    bool detached; /* the sequence goes on at once, while the children run */
    bool collect;  /* a failed child does not cancel the others */
    int64_t join;  /* how many must complete; the others are then cancelled; 0 = all */
} rv_concurrent_opts;
#define RV_CONCURRENT_OPTS(...) \
    (&(rv_concurrent_opts){ .size = sizeof(rv_concurrent_opts), __VA_ARGS__ })
RV_API void rv_concurrent_opts_init(rv_concurrent_opts *opts);
typedef struct rv_concurrent rv_concurrent;
RV_API rv_concurrent *rv_add_concurrent(rv_body *in, const char *alias,
                                        const rv_concurrent_opts *opts);
RV_API void rv_concurrent_step(rv_concurrent *block, const char *alias, rv_step_fn fn,
                               const rv_step_opts *opts);
RV_API rv_body *rv_concurrent_body(rv_concurrent *block, const char *alias);

/* Check a workflow and register it. New runs with its name use this definition. Runs that began with
 * another version keep theirs, and find their functions by name. The workflow stays the caller's: free
 * it, or register it with another engine.
 * Errors: RV_EINVAL (the first error found, and how many more there are), RV_EEXIST (the name is "already
 * registered", even by the same definition: call rv_unregister() first), RV_ENOMEM, RV_ESTORE. */
RV_API int rv_register(rv_engine *engine, const rv_workflow *workflow, rv_error *err);

typedef struct rv_agent_opts {
    size_t size;  /* filled in by RV_AGENT_OPTS */
    bool replace; /* replace another function with this id */
} rv_agent_opts;
#define RV_AGENT_OPTS(...) (&(rv_agent_opts){ .size = sizeof(rv_agent_opts), __VA_ARGS__ })
RV_API void rv_agent_opts_init(rv_agent_opts *opts);

/* Register a C function as the agent `id`: states of manifests may name it as their `agent_id`, and any
 * step as `call: id`. It is a step function like any other. The results its state depends on are
 * .inputs.NAME, its parameters .parameters.NAME; .state has {name, stage, priority, attempt (from 0)}. A
 * dependency that errored is {"error": {"message", "attachmentId"}}. Register agents before the manifests
 * that name them.
 * Errors: RV_EINVAL (not a valid id), RV_EEXIST (the id exists, and `replace` is not set), RV_ENOMEM,
 * RV_ECLOSED.   Thread: any. */
RV_API int rv_agent(rv_engine *engine, const char *id, rv_step_fn fn, const rv_agent_opts *opts,
                    rv_error *err);

/* Unregister a workflow: no new run of it can be started, and no other workflow can nest it. Its runs
 * continue with the functions they have. Registering it again makes it available again.
 * Errors: RV_ENOTFOUND, RV_EINVAL, RV_ECLOSED. */
RV_API int rv_unregister(rv_engine *engine, const char *workflow, rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Workflow files in C
 *
 * A .c file that declares its workflow, once, with RV_WORKFLOW. Its functions are the steps:
 *
 *     #include <rival/rival.h>
 *     static int findTree(rv_ctx *c) { return rv_return(c, "{s:s}", "treeId", "oak-123"); }
 *     static int chopTree(rv_ctx *c) { … }
 *     RV_WORKFLOW("tree-processing", .description = "…", .input = RV_JSON({ "type": "object" }),
 *                 .steps = RV_STEPS(RV_STEP(findTree),
 *                                   RV_STEP(chopTree, .timeout_ms = 60000, .max_attempts = 3)))
 *
 * Or the file is a library: functions that other files call, and no workflow:
 *
 *     RV_FUNCTIONS(findTree, chopTree)
 *
 * Functions are found by name, so a run finds them again after the file has changed. YAML files call them
 * by that name or, if several C files have a function of that name, as "file/function" (file: its name
 * without ".c").
 *
 * Nodes. rv_node_def has all fields of nodes; a field that does not apply to a node's kind is refused when
 * the file is registered. The alias of a node is the key of its result. It is .alias or, without that, the
 * name of its function or of its kind ("httpRequest"). Functions given as fields are named after it:
 * "<alias>.when", "<alias>.onError".
 *
 * Fields that take JSON or text (.with, .input, items) work as in YAML: text that begins with {, [ or " is
 * JSON; true, false, null and numbers are themselves; anything else is text, in which "${ … }" are
 * expressions. Conditions and items are functions or expressions: RV_BRANCH(isBig, …) calls a function,
 * RV_BRANCH("${ .input.total > 100 }", …) evaluates an expression. */

#define RV_FILE_ABI 3 /* of the structs below; a file compiled for another version is refused */

enum rv_node_kind {
    RV_NODE_STEP = 1,
    RV_NODE_DELAY = 2,
    RV_NODE_SIGNAL = 3,
    RV_NODE_WORKFLOW = 4,
    RV_NODE_BRANCH = 5,
    RV_NODE_WHILE = 6,
    RV_NODE_UNTIL = 7,
    RV_NODE_FOREACH = 8,
    RV_NODE_CONCURRENT = 9,
    RV_NODE_NODES = 10,
    RV_NODE_HTTP = 11,
    RV_NODE_COMMAND = 12,
    RV_NODE_VALUE = 13,
    RV_NODE_CALL = 14,
    RV_NODE_TOOL = 15,
};

struct rv_node_def {
    int kind;          /* set by the macros, as are the next four */
    const char *name;  /* the name of its function, signal or workflow */
    rv_step_fn fn;     /* the step, the condition or the items; or */
    const char *expr;  /* an expression instead */
    const char *with;  /* http, command, value, delay, tool: the value of that key, as in YAML */
    const char *alias; /* NULL = the name */

    rv_step_fn when;         /* all nodes except RV_NODES: if false, the node is skipped */
    const char *when_expr;   /* the same, as an expression: "${ .input.total > 100 }" */
    const char *description; /* shown to people after it has ended: "Sent ${ .result.count }" */
    int64_t timeout_ms;      /* steps: of each attempt; signals: of the wait; 0 = none */
    int on_timeout;          /* this and the next eleven fields: steps, as in rv_step_opts */
    int max_attempts;
    int backoff;
    int64_t backoff_base_ms, max_backoff_ms;
    double jitter;
    const char *retry_on, *no_retry_on;
    bool continue_on_error, hide_input;
    rv_step_fn on_error;
    const rv_node_def *const *on_error_steps; /* instead of on_error: RV_STEPS(…) */
    const char *const *needs; /* steps: RV_NEEDS("a", "b"): nodes that must come before it */
    int64_t delay_ms;         /* delays; set by RV_DELAY */
    const char *default_json; /* signals: the result after the time-out; NULL = the step fails */
    const rv_node_def *const *then, *const *otherwise; /* branches */
    const rv_node_def *const *body; /* loops, forEach, concurrent (its children), RV_NODES */
    int64_t max_iterations;         /* loops; 0 = 1000 */
    int keep;                       /* loops: RV_KEEP_ALL, … */
    bool parallel;                  /* forEach */
    int64_t concurrency;            /* forEach, with parallel; 0 = all at once */
    bool collect;                   /* forEach, concurrent: a failure does not end the others */
    bool detached;                  /* concurrent; also the next field */
    int64_t join;                   /* 0 = all */
    const char *input; /* nested workflows: JSON or text; NULL = this workflow's input */
    const char *label; /* forEach: as in rv_foreach_opts */
    int rv_end;        /* used by the macros */
};

typedef struct rv_workflow_def {
    uint32_t abi, size, node_size; /* set by RV_WORKFLOW */
    const char *name;
    const char *description;
    const char *input; /* JSON Schema */
    const rv_node_def *const *steps;
    rv_step_fn on_error;                      /* when a run fails */
    const rv_node_def *const *on_error_steps; /* instead of on_error: RV_STEPS(…) */
    const rv_node_def *const *finally;        /* RV_STEPS(…): at the end of every run */
    /* RV_NEEDS("a"): it reads these nodes of the workflow that nests it, and cannot run by itself */
    const char *const *needs;
    const char *const *secrets; /* RV_SECRETS("API_KEY"): its steps may send .secrets.API_KEY */
    int rv_end;
} rv_workflow_def;

#define RV_STEPS(...)            ((const rv_node_def *const[]){ __VA_ARGS__, NULL })
#define RV_NEEDS(...)            ((const char *const[]){ __VA_ARGS__, NULL })
#define RV_SECRETS(...)          ((const char *const[]){ __VA_ARGS__, NULL })
#define RV_NODE_(node_kind, ...) (&(const rv_node_def){ .kind = (node_kind), __VA_ARGS__ })
#define RV_FN_(node_kind, function, ...)           \
    RV_NODE_(node_kind, .name = #function,         \
             .fn = _Generic((function), rv_step_fn \
                            : (function)),         \
             __VA_ARGS__)
#define RV_NAMED_(node_kind, text, ...) RV_NODE_(node_kind, .name = (text), __VA_ARGS__)
#define RV_WITH_(node_kind, text, ...)  RV_NODE_(node_kind, .with = (text), __VA_ARGS__)
#define RV_NODES_(text, ...)            RV_NODE_(RV_NODE_NODES, .alias = (text), __VA_ARGS__)
/* A function or a text. The compiler refuses anything else. */
#define RV_IF_FN_(x, fn, text)          _Generic((x), rv_step_fn : fn, char * : text, const char * : text)
#define RV_EITHER_(node_kind, x, ...)                                                  \
    RV_NODE_(node_kind, .name = RV_IF_FN_(x, #x, NULL), .fn = RV_IF_FN_(x, (x), NULL), \
             .expr = RV_IF_FN_(x, NULL, (x)), __VA_ARGS__)
#define RV_IF_TEXT_(x, text, number) \
    _Generic((x), char * : text, const char * : text, default : number)
#define RV_DELAY_(x, ...)                                                                          \
    RV_NODE_(RV_NODE_DELAY, .delay_ms = RV_IF_TEXT_(x, 0, (x)), .with = RV_IF_TEXT_(x, (x), NULL), \
             __VA_ARGS__)

/* RV_STEP(function, …): a step.
 * RV_HTTP("https://…", …), RV_HTTP(RV_JSON({ "url": "https://…", "method": "POST", "body": { … } }), …).
 * RV_COMMAND(RV_JSON(["./saw", "${ .loop.item }"]), …), RV_COMMAND(RV_JSON({ "argv": […], "stdin": "none" }), …):
 * relative to the file.
 * RV_VALUE("${ .input.id }", …), RV_VALUE(RV_JSON({ "sum": "${ … }" }), …): a value, no work.
 * RV_CALL("function", …): a function of any file, by its name.
 * RV_TOOL(RV_JSON({ "server": "web", "name": "search", "arguments": { "query": "${ .input }" } }), …): a tool of
 * an MCP server of the configuration.
 * RV_DELAY(milliseconds, …), RV_DELAY("1h30m", …), RV_DELAY("${ .input.wait }", …).
 * RV_SIGNAL("name", .timeout_ms = …, .default_json = …, …), or as in YAML:
 * RV_SIGNAL(RV_JSON({ "name": "go", "timeout": "3d", "default": { "approved": false } }), …).
 * RV_NESTED("workflow", .input = …): another workflow, by its name, or by the file that defines it, beside
 * this one: RV_NESTED("./pay.c"), RV_NESTED("./payment.yaml").
 * RV_BRANCH(condition, .then = RV_STEPS(…), .otherwise = RV_STEPS(…)).
 * RV_WHILE(condition, .body = RV_STEPS(…), …), RV_UNTIL(condition, …): a sequence that repeats.
 * RV_FOREACH(items, .body = RV_STEPS(…), .parallel = true, .concurrency = 4).
 * RV_CONCURRENT(.alias = "…", .body = RV_STEPS(…)): its children are steps, nested workflows, or
 * RV_NODES("alias", .body = RV_STEPS(…)). */
#define RV_STEP(...)       RV_FN_(RV_NODE_STEP, __VA_ARGS__, .rv_end = 0)
#define RV_HTTP(...)       RV_WITH_(RV_NODE_HTTP, __VA_ARGS__, .rv_end = 0)
#define RV_COMMAND(...)    RV_WITH_(RV_NODE_COMMAND, __VA_ARGS__, .rv_end = 0)
#define RV_VALUE(...)      RV_WITH_(RV_NODE_VALUE, __VA_ARGS__, .rv_end = 0)
#define RV_CALL(...)       RV_NAMED_(RV_NODE_CALL, __VA_ARGS__, .rv_end = 0)
#define RV_TOOL(...)       RV_WITH_(RV_NODE_TOOL, __VA_ARGS__, .rv_end = 0)
#define RV_DELAY(...)      RV_DELAY_(__VA_ARGS__, .rv_end = 0)
#define RV_SIGNAL(...)     RV_NAMED_(RV_NODE_SIGNAL, __VA_ARGS__, .rv_end = 0)
#define RV_NESTED(...)     RV_NAMED_(RV_NODE_WORKFLOW, __VA_ARGS__, .rv_end = 0)
#define RV_BRANCH(...)     RV_EITHER_(RV_NODE_BRANCH, __VA_ARGS__, .rv_end = 0)
#define RV_WHILE(...)      RV_EITHER_(RV_NODE_WHILE, __VA_ARGS__, .rv_end = 0)
#define RV_UNTIL(...)      RV_EITHER_(RV_NODE_UNTIL, __VA_ARGS__, .rv_end = 0)
#define RV_FOREACH(...)    RV_EITHER_(RV_NODE_FOREACH, __VA_ARGS__, .rv_end = 0)
#define RV_CONCURRENT(...) RV_NODE_(RV_NODE_CONCURRENT, __VA_ARGS__, .rv_end = 0)
#define RV_NODES(...)      RV_NODES_(__VA_ARGS__, .rv_end = 0)

#define RV_WORKFLOW(...) RV_WORKFLOW_(__VA_ARGS__, .rv_end = 0)
#define RV_WORKFLOW_(workflow_name, ...)                                                \
    extern RV_API const rv_workflow_def rv_file_table;                                  \
    const rv_workflow_def rv_file_table = { .abi = RV_FILE_ABI,                         \
                                            .size = (uint32_t)sizeof(rv_workflow_def),  \
                                            .node_size = (uint32_t)sizeof(rv_node_def), \
                                            .name = (workflow_name),                    \
                                            __VA_ARGS__ };

/* Functions that files may call by name: a library of steps, beside a workflow or instead of one. If a name
 * is not a function, the file does not compile. */
typedef struct rv_functions_def {
    uint32_t abi, size;          /* set by RV_FUNCTIONS, as is the rest */
    const char *names;           /* as written, separated by commas */
    const rv_step_fn *functions; /* in the same order; ends in NULL */
} rv_functions_def;
#define RV_FUNCTIONS(...)                                                                        \
    extern RV_API const rv_functions_def rv_file_functions;                                      \
    const rv_functions_def rv_file_functions = { .abi = RV_FILE_ABI,                             \
                                                 .size = (uint32_t)sizeof(rv_functions_def),     \
                                                 .names = #__VA_ARGS__,                          \
                                                 .functions = (const rv_step_fn[]){ __VA_ARGS__, \
                                                                                    NULL } };

/* The main function of a host process. `argv` comes from the engine, "host" first. `rival host` calls it; a
 * program that is its own host (RIVAL_HOST) must call it too. Returns an exit code, or does not return. */
RV_API int rv_host_main(int argc, char **argv);

/* ------------------------------------------------------------------------------------------
 * Files
 *
 * Reading workflow files (docs/reference/workflow-file.md) without an engine. */

/* An error in a file. Texts belong to the report. */
typedef struct rv_problem {
    const char *file;
    int line, column;    /* from 1, columns in characters; line 0: the whole file */
    const char *message; /* what is wrong and why, one sentence */
    const char *excerpt; /* the line, or the part around the column; "" for line 0 */
    int caret;           /* position of the column in the excerpt, in characters from 0 */
} rv_problem;

/* A workflow in a file without problems. */
typedef struct rv_file_workflow {
    const char *name;
    const char *description;  /* "" = none */
    const char *input_schema; /* JSON; "" = any input */
    const char *version;
    const char *file;
    const char *directory; /* absolute: its commands are relative to it */
    int node_count;        /* all nodes, including those of nested workflows */
    bool partial; /* it nests a C or TypeScript file that was not loaded: no version, no plan */
} rv_file_workflow;

/* A C, TypeScript or JavaScript file that was not loaded: reading its plan would run its code. */
typedef struct rv_c_file {
    const char *file;
    const char *name; /* of its workflow, from its text; else the name of the file */
} rv_c_file;

typedef struct rv_report {
    size_t file_count; /* workflow files checked */
    size_t workflow_count;
    const rv_file_workflow *workflows;
    size_t problem_count; /* by file, then by line */
    const rv_problem *problems;
    size_t omitted;       /* problems beyond the first hundred of a file, which are not listed */
    size_t warning_count; /* valid, but probably a mistake */
    const rv_problem *warnings;
    size_t c_file_count; /* files that were not loaded */
    const rv_c_file *c_files;
} rv_report;

/* How C, TypeScript and JavaScript files are read. TypeScript and JavaScript need Node.js, except for names. */
enum rv_c_files {
    RV_C_FILES_NAMED = 0,    /* only their names, from the text: nothing is compiled or run */
    RV_C_FILES_COMPILED = 1, /* also the errors of the compiler or parser; nothing is run */
    RV_C_FILES_LOADED = 2, /* also their plans: a host process loads them, which runs their code */
};

typedef struct rv_check_opts {
    size_t size; /* filled in by RV_CHECK_OPTS */
    int c_files; /* enum rv_c_files */
    bool
        keep_process; /* RV_C_FILES_LOADED: the Node.js process that loaded TypeScript and JavaScript files stays until the
                          report is freed, for rv_file_opts.checked. It ends with the calling thread */
} rv_check_opts;
#define RV_CHECK_OPTS(...) (&(rv_check_opts){ .size = sizeof(rv_check_opts), __VA_ARGS__ })
RV_API void rv_check_opts_init(rv_check_opts *opts);

/* Check files and folders (recursively; hidden files and folders are skipped): syntax, keys, schemas,
 * expressions, nested workflows. The report lists everything that is wrong; a bad file is not an error of
 * this call. Files nested by these files are found and checked too. opts->c_files says how C, TypeScript and
 * JavaScript files are read (NULL: names only); in a folder, only those that declare a workflow or functions.
 * Free *ret with rv_report_free(). Errors: RV_EINVAL (no paths), RV_ETOOBIG (too many files), RV_ENOMEM. */
RV_API int rv_check_files(const char *const *paths, size_t count, const rv_check_opts *opts,
                          rv_report **ret, rv_error *err);
RV_API void rv_report_free(rv_report *report); /* NULL is allowed */

enum rv_plan_format {
    RV_PLAN_JSON = 0,
    RV_PLAN_TEXT = 1,    /* a tree for people */
    RV_PLAN_MERMAID = 2, /* a flowchart */
};
/* The plan of a workflow in the report, by its index. *ret is valid as long as the report.
 * Errors: RV_EINVAL, RV_ESTATE (it is partial), RV_ENOMEM, RV_ETOOBIG.   Thread: one at a time for one report. */
RV_API int rv_report_plan(rv_report *report, size_t workflow, int format, const char **ret,
                          rv_error *err);

/* Format a YAML manifest: keys in snake_case, two columns per level, no trailing spaces. Comments, quotes, the
 * order of keys and the meaning stay the same. Formatting the result again changes nothing. Free *ret with
 * rv_free().
 * Errors: RV_EINVAL (not YAML; the message says where), RV_ESTATE (the meaning would change), RV_ETOOBIG,
 * RV_ENOMEM.   Thread: any. */
RV_API int rv_manifest_format(const char *text, char **ret, rv_error *err);

/* How files are registered. */
typedef struct rv_file_opts {
    size_t size;      /* filled in by RV_FILE_OPTS */
    bool replace;     /* replace another definition of the same name, for new runs */
    bool keep_others; /* with `replace`: only one of the same file, or of a file that was removed */
    rv_report **report; /* everything that was found, with all errors; NULL = *err has the first */
    bool
        in_process; /* C: run its steps on threads of this process. Calls are faster, but a crash in a
                        step ends the process, and a step that never ends cannot be stopped */
    void (*tell)(void *arg, const char *text); /* C: called with the output of the compiler */
    void *arg;                                 /* passed to `tell` */
    rv_report *
        checked; /* of rv_check_files() with `keep_process` on the same path: its process becomes that of
                           the files, if they have not changed; NULL = another one is started */
} rv_file_opts;
#define RV_FILE_OPTS(...) (&(rv_file_opts){ .size = sizeof(rv_file_opts), __VA_ARGS__ })
RV_API void rv_file_opts_init(rv_file_opts *opts);

/* Register the workflow of a file, or those of all files in a folder and its subfolders (hidden ones are
 * skipped). Commands in a file are relative to its folder.
 *
 * A .c file is compiled first ($CC or cc, with $RIVAL_CFLAGS; the result is kept in $XDG_CACHE_HOME/rival
 * or ~/.cache/rival until the file changes); a .so is one that is compiled already. Its steps run in host
 * processes (the program `rival`, found by RIVAL_HOST, beside this library, or in PATH), so a step that
 * crashes, or never ends, harms nothing else. rv_ctx_engine() is NULL there.
 *
 * Returns how many workflows were registered (a library of functions, RV_FUNCTIONS, has none). A bad file
 * does not stop good ones from being registered. Its errors are in the report; without a report, this
 * returns RV_EINVAL with the first error.
 * Errors: RV_EINVAL, RV_ETOOBIG, RV_ENOMEM, RV_ECLOSED, RV_ESTORE. */
RV_API int rv_register_file(rv_engine *engine, const char *path, const rv_file_opts *opts,
                            rv_error *err);
RV_API int rv_register_dir(rv_engine *engine, const char *path, const rv_file_opts *opts,
                           rv_error *err);

/* The registered workflows, sorted by name. Free *ret with rv_workflow_list_free(). */
typedef struct rv_workflow_info {
    const char *name;
    const char *description;  /* "" = none */
    const char *input_schema; /* JSON; "" = any input */
    const char *version;
    const char *source; /* its file; "" = registered by the program */
    int step_count;     /* at the top level */
    /* Why rv_run() would refuse it now, such as a secret without a value; "" = it can start */
    const char *cannot_start;
} rv_workflow_info;
typedef struct rv_workflow_list {
    size_t count;
    const rv_workflow_info *items;
} rv_workflow_list;
RV_API int rv_workflows(rv_engine *engine, rv_workflow_list **ret, rv_error *err);
RV_API void rv_workflow_list_free(rv_workflow_list *list); /* NULL is allowed */

/* ------------------------------------------------------------------------------------------
 * Runs */

enum rv_run_status {
    RV_RUNNING = 1,
    RV_SUSPENDED = 2, /* waiting for a decision: rv_decide() */
    RV_COMPLETED = 3,
    RV_FAILED = 4,
    RV_CANCELLED = 5,
};
RV_API const char *rv_status_name(int status); /* "running" …; NULL: no such status */

typedef struct rv_run_info {
    char run_id[RV_RUN_ID_SIZE];
    int status;
    /* The input was checked by the JSON Schema only: workers validate inputs of this workflow, but none was
     * connected, or none answered within ten seconds */
    bool schema_only;
} rv_run_info;

/* Everything that is wrong with an input. */
typedef struct rv_violation {
    const char *path;    /* JSON pointer into the input; "" = the whole input */
    const char *message; /* what is wrong, one sentence */
} rv_violation;
typedef struct rv_violations {
    size_t count;
    const rv_violation *items;
    size_t dropped; /* violations beyond the first thousand, which are not listed */
} rv_violations;
RV_API void rv_violations_free(rv_violations *violations); /* NULL is allowed */

typedef struct rv_run_opts {
    size_t size;                /* filled in by RV_RUN_OPTS */
    const char *run_id;         /* NULL = a new one, which sorts by time */
    rv_violations **violations; /* written if the input is refused; NULL = only *err */
    const char *rerun_of;       /* the run that this one repeats; the two are linked. NULL = none */
    const char *by;             /* who starts it; NULL = as rv_engine_opts.by */
    int64_t max_concurrency;    /* attempts at once in each of its stages; 0 = as in its plan */
} rv_run_opts;
#define RV_RUN_OPTS(...) (&(rv_run_opts){ .size = sizeof(rv_run_opts), __VA_ARGS__ })
RV_API void rv_run_opts_init(rv_run_opts *opts);

/* Start a run. When this returns, the run is on disk, `ret` says that it runs, and its first step may have
 * started.
 *
 * `input` is JSON; NULL = none. If the workflow has an input schema, its defaults are filled in, and an input
 * that violates it is RV_EINVAL: no run is created, and all violations are reported. If run_id exists with the
 * same workflow and the same input, *ret describes that run as it is now, so a start may be repeated safely;
 * with another workflow or input the call returns RV_EEXIST.
 * Errors: RV_ENOTFOUND (no such workflow; the message lists the registered ones), RV_EINVAL (run_id, input),
 * RV_ETOOBIG (the input is larger than 64 MB), RV_EEXIST, RV_ECLOSED, RV_ENOMEM, RV_ESTORE. Do not call it from
 * the engine's own callbacks. */
RV_API int rv_run(rv_engine *engine, const char *workflow, const char *input,
                  const rv_run_opts *opts, rv_run_info *ret, rv_error *err);

/* Options of rv_hand_over(). */
typedef struct rv_hand_opts {
    size_t size;              /* filled in by RV_HAND_OPTS */
    const char *run_id;       /* the id of the run; required */
    const char *input;        /* JSON; NULL = none */
    const char *const *files; /* the workflow's file, then C files that it calls; ends in NULL */
    const char *const *allow_env; /* as in rv_engine_opts */
    const char *secrets_file;     /* as in rv_engine_opts */
    bool resumes;                 /* the run is in the store: continue it, with its own input */
    rv_violations **violations;   /* as in rv_run_opts */
    bool *followed;          /* written: true if a process drives the run already; may be NULL */
    int64_t max_concurrency; /* as in rv_run_opts */
} rv_hand_opts;
#define RV_HAND_OPTS(...) (&(rv_hand_opts){ .size = sizeof(rv_hand_opts), __VA_ARGS__ })
RV_API void rv_hand_opts_init(rv_hand_opts *opts);

/* Hand a run to the process that drives the store, from an engine that is attached to it. The driver loads
 * the files and starts or continues the run. The run's commands, and `env` in its expressions, see the
 * environment of this process, which is never written to the store. The run continues there as long as this
 * engine is open: rv_engine_close() takes it back, with `drain_ms` and `grace_ms` as for steps of its own, and
 * returns how many steps had not ended. If the driver ends first (rv_engine_driver() then returns 0), make
 * another engine: it drives the store itself, or hands the run to the new driver. One run for each engine.
 * A run that a process drives already is only followed, and stays with that process.
 * Errors: RV_ESTATE (this engine is not attached; or the driver has another version: wait until it ends),
 * RV_ENOTFOUND (the driver cannot load the files), RV_EBUSY (too many runs were handed over, or this run is
 * just being taken back: try again), RV_ECLOSED (the driver is ending: make another engine); and those of
 * rv_run(). */
RV_API int rv_hand_over(rv_engine *engine, const char *workflow, const rv_hand_opts *opts,
                        rv_run_info *ret, rv_error *err);

/* How a run ended. Texts are JSON and belong to the outcome; "" where there is none. */
typedef struct rv_outcome {
    char run_id[RV_RUN_ID_SIZE];
    int status; /* RV_COMPLETED, RV_FAILED, RV_CANCELLED */
    /* {alias: {result, state, status, error?}} of the top-level nodes that were reached */
    const char *results;
    /* 0; or the size of the results in bytes, if that is more than 64 MB: then `results` is "{}", and the
     * results are read node by node (rv_node_get) */
    int64_t results_too_large;
    const char *error;       /* {message, code?, exitCode?, path, …} */
    const char *failed_step; /* alias of the top-level node that failed */
    const char *failed_path; /* path of the deepest node that failed: "rows:iter3:node0:insert" */
} rv_outcome;
RV_API void rv_outcome_free(rv_outcome *outcome); /* NULL is allowed */

typedef struct rv_wait_opts {
    size_t size;        /* filled in by RV_WAIT_OPTS */
    int64_t timeout_ms; /* 0 = 300000; negative = no limit */
    rv_cancel *by;      /* stop waiting when it fires; NULL = never */
} rv_wait_opts;
#define RV_WAIT_OPTS(...) (&(rv_wait_opts){ .size = sizeof(rv_wait_opts), __VA_ARGS__ })
RV_API void rv_wait_opts_init(rv_wait_opts *opts);

/* Wait until a run has ended. A suspended run has not ended. `workflow` may be NULL; if not, the run must be
 * one of that workflow. Free *ret with rv_outcome_free().
 * Errors: RV_ENOTFOUND, RV_ETIMEDOUT (the message names workflow, run and time), RV_ECANCELED,
 * RV_ECLOSED, RV_ENOMEM, RV_ESTORE. */
RV_API int rv_wait(rv_engine *engine, const char *workflow, const char *run_id,
                   const rv_wait_opts *opts, rv_outcome **ret, rv_error *err);

/* Cancel a run and everything that is active in it, at once, whatever it is doing. If its workflow has a
 * `finally`, that runs next, and the run stays RV_RUNNING until it has ended. A second cancel ends the
 * `finally` too. A run that has ended stays as it is, but its detached children are cancelled.
 * Errors: RV_ENOTFOUND, RV_ECLOSED, RV_ESTORE. */
RV_API int rv_cancel_run(rv_engine *engine, const char *run_id, rv_error *err);

typedef struct rv_cancel_opts {
    size_t size;    /* filled in by RV_CANCEL_OPTS */
    const char *by; /* who cancels it: recorded. NULL = as rv_engine_opts.by */
} rv_cancel_opts;
#define RV_CANCEL_OPTS(...) (&(rv_cancel_opts){ .size = sizeof(rv_cancel_opts), __VA_ARGS__ })
/* The same with options; NULL = none. Errors also: RV_EINVAL (`by` is too long or not valid text). */
RV_API int rv_cancel_run_with(rv_engine *engine, const char *run_id, const rv_cancel_opts *opts,
                              rv_error *err);

/* Send a signal. It is kept until a step takes it. `payload` is JSON; NULL = null.
 * Errors: RV_ENOTFOUND, RV_ESTATE (the run and its detached children have ended), RV_EUNWANTED (no step of the
 * run's plan waits for a signal of this name; the message lists the names. If a step's signal name is an
 * expression, every name is accepted), RV_EBUSY (too many signals that no step has taken), RV_EINVAL (also: the
 * payload violates the schema that the run's plan has for this signal). */
RV_API int rv_signal(rv_engine *engine, const char *run_id, const char *name, const char *payload,
                     rv_error *err);

typedef struct rv_signal_opts {
    size_t size;
    bool force;                 /* accept any name: never RV_EUNWANTED */
    rv_violations **violations; /* written if the payload is refused: everything that is wrong, for
                                   rv_violations_free(); NULL = only *err */
    const char *by;             /* who sends it: recorded. NULL = as rv_engine_opts.by */
} rv_signal_opts;
#define RV_SIGNAL_OPTS(...) (&(rv_signal_opts){ .size = sizeof(rv_signal_opts), __VA_ARGS__ })
/* The same with options; NULL = none. */
RV_API int rv_signal_with(rv_engine *engine, const char *run_id, const char *name,
                          const char *payload, const rv_signal_opts *opts, rv_error *err);

/* Complete a step that returned rv_return_pending() with this handle. If `error` is NULL, the step is completed
 * with `result`; else it failed with that message. While the run has running steps, a call with a handle that
 * is not known yet waits up to a second for it: the step may be returning it right now.
 * Errors: RV_ENOTFOUND: no step waits for this handle (any more). */
RV_API int rv_complete(rv_engine *engine, const char *run_id, const char *handle,
                       const char *result, const char *error, rv_error *err);

typedef struct rv_complete_opts {
    size_t size;        /* filled in by RV_COMPLETE_OPTS */
    const char *result; /* JSON; NULL = null */
    const char *error;  /* the step failed with this message; NULL = it completed */
    const char *by;     /* who completes it: recorded. NULL = as rv_engine_opts.by */
} rv_complete_opts;
#define RV_COMPLETE_OPTS(...) (&(rv_complete_opts){ .size = sizeof(rv_complete_opts), __VA_ARGS__ })
RV_API int rv_complete_with(rv_engine *engine, const char *run_id, const char *handle,
                            const rv_complete_opts *opts, rv_error *err);

enum rv_decision { RV_RESUME = 0, RV_ABORT = 1, RV_SKIP = 2, RV_RESTART_STAGE = 3 };
typedef struct rv_decide_opts {
    size_t size;        /* filled in by RV_DECIDE_OPTS */
    const char *path;   /* which suspension: rv_run_state.suspensions; NULL = the only one */
    const char *reason; /* for people; NULL = none */
    const char *by;     /* who decides: recorded. NULL = as rv_engine_opts.by */
} rv_decide_opts;
#define RV_DECIDE_OPTS(...) (&(rv_decide_opts){ .size = sizeof(rv_decide_opts), __VA_ARGS__ })
RV_API void rv_decide_opts_init(rv_decide_opts *opts);
/* Decide about a suspension: of a step that crashed its process too often, of a critical state of a stage that
 * has no attempts left, or of the run as a whole (rv_run_state.suspensions). RV_RESUME: continue, with new
 * attempts. RV_ABORT: the run fails. Only for states: RV_SKIP: the state has failed, and its stage goes on;
 * RV_RESTART_STAGE: its stage starts again. If there are several suspensions, `path` says which one is meant;
 * with only one it may be NULL. The decision takes effect at once, but nothing else starts until the last
 * suspension is decided. The reason is recorded (NULL: none), and so is the cause of the suspension: as
 * `cause` of the run's error, or of the event's reason.
 * Errors: RV_ENOTFOUND, RV_ESTATE (there is no suspension at `path`; there are several and `path` is NULL; or
 * this decision is not possible there), RV_EINVAL, RV_ETOOBIG. */
RV_API int rv_decide(rv_engine *engine, const char *run_id, int decision,
                     const rv_decide_opts *opts, rv_error *err);

/* A run as it is now. Texts as in rv_outcome; times in ms since 1970, 0 = not yet. */
typedef struct rv_run_state {
    char run_id[RV_RUN_ID_SIZE];
    const char *workflow;
    const char *version;
    int status;
    int64_t created_at, started_at, completed_at, duration_ms;
    const char *input;
    /* Includes the node that is running, as it is: its result is null until it ends */
    const char *results;
    int64_t results_too_large; /* as in rv_outcome */
    const char *error;
    const char *failed_step, *failed_path; /* as in rv_outcome */
    const char *suspension; /* why it is suspended: {message}, of the oldest one; "" = it is not */
    /* All suspensions, oldest first: [{path?, reason, since, actions}]; "" = none. One without a path is
     * that of the run as a whole. */
    const char *suspensions;
    const char *rerun_of; /* id of the run that it repeats; "" = none */
    const char *waiting;  /* "somebody": it waits for a signal or a decision; "" = it does not */
} rv_run_state;
RV_API int rv_state(rv_engine *engine, const char *run_id, rv_run_state **ret, rv_error *err);
RV_API void rv_run_state_free(rv_run_state *state); /* NULL is allowed */

/* Which runs. With nothing set: all of them, newest first. */
typedef struct rv_query {
    size_t size;          /* filled in by RV_QUERY */
    const char *workflow; /* NULL = any */
    int status;           /* RV_FAILED, …; 0 = any */
    int64_t since, until; /* time of creation; 0 = no limit */
    const char *text;     /* text in the run id, workflow, error or input */
    size_t limit;         /* 0 = 50; at most 1000 */
    const char *cursor;   /* rv_run_list.next of the previous page; NULL = the first page */
    const char *run_id;   /* only this run, if it exists; the other fields are then ignored */
    bool waiting;         /* only runs that wait for a person: for a signal or a decision */
    const char *rerun_of; /* only runs that repeat this run; NULL = any */
} rv_query;
#define RV_QUERY(...) (&(rv_query){ .size = sizeof(rv_query), __VA_ARGS__ })
RV_API void rv_query_init(rv_query *query);

/* Inputs may be long, so a list has only the beginning of each: RV_LIST_INPUT_BYTES at most, cut between two
 * characters. rv_query.run_id and rv_state() give the whole input of one run. Likewise a list has only the oldest
 * RV_LIST_SUSPENSIONS suspensions of a run; rv_state() has all. */
enum { RV_LIST_INPUT_BYTES = 1024, RV_LIST_SUSPENSIONS = 100 };
typedef struct rv_run_list {
    size_t count;
    const rv_run_state *runs; /* without results */
    const char *next;         /* cursor of the next page; "" = this is the last */
} rv_run_list;
RV_API int rv_list(rv_engine *engine, const rv_query *query, rv_run_list **ret, rv_error *err);
RV_API void rv_run_list_free(rv_run_list *list); /* NULL is allowed */

/* How many runs there are in each status. Takes the same time for any number of runs.
 * Errors: RV_EINVAL, RV_ENOMEM, RV_ESTORE. */
typedef struct rv_run_counts {
    uint64_t running, suspended, completed, failed, cancelled;
    uint64_t waiting; /* runs in any status that wait for a person: rv_query.waiting */
} rv_run_counts;
RV_API int rv_count_runs(rv_engine *engine, rv_run_counts *ret, rv_error *err);

/* Statistics of the runs of the last 24 hours, and the runs that have waited longest for a person. *ret is JSON,
 * for rv_free(): {from, to, complete, others, workflows: [{workflow, ended, failed, medianMs?, slowest?: {runId,
 * duration}, hours: [{ended, failed}] (24, oldest first, the last one is the current hour)}], oldestWaiting:
 * [{runId, workflow, status, createdAt, suspension?}] (10)}. At most 200 workflows are listed; `others` counts the
 * runs of the rest that ended since the engine was opened. The median is the median class of durations (each class
 * is 1.4 times as long as the one before). The cost depends on how many runs have ended since the last call; the
 * first call reads those of a whole day. One call reads at most 20,000: then `complete` is false, and the next call
 * continues. Works with read_only. Errors: RV_EINVAL, RV_ENOMEM, RV_ESTORE. */
RV_API int rv_overview(rv_engine *engine, char **ret, rv_error *err);

/* Who shares the store (rv_engine_opts.member), by id: JSON for rv_free(). {members: [{id, process, version, workers?,
 * runs, since, leaseUntil, self?}]}: `workers` is where workers reach it, `runs` are those that it has in memory, `leaseUntil` is by the clock of the database,
 * `self` is true for this engine. No members where one process drives the store.
 * Works on an engine for reading only. Errors: RV_EINVAL, RV_ENOMEM, RV_ESTORE. */
RV_API int rv_members(rv_engine *engine, char **ret, rv_error *err);

/* The present text of the file that defines a registered workflow (rv_workflow_info.source). Free *ret with rv_free().
 * Errors: RV_ENOTFOUND (no such workflow, it has no file, or the file no longer exists), RV_ETOOBIG (larger than
 * RV_SOURCE_BYTES, or not text), RV_EINVAL, RV_ECLOSED, RV_ENOMEM, RV_ESYS. */
enum { RV_SOURCE_BYTES = 1 << 20 };
RV_API int rv_workflow_source(rv_engine *engine, const char *workflow, char **ret, rv_error *err);

/* ------------------------------------------------------------------------------------------
 * The feed: events of runs, as they are on disk
 *
 * Every committed change of a run is an event, and so is every line of a step's log. A feed returns the
 * events of all runs, or of one run, in the order in which they were committed, and never before they are
 * on disk. It reads at its own pace: a slow reader uses no memory of the engine. Without feeds there is no cost.
 *
 * Each event is JSON: {seq, index, kind, runId, workflow, at, path?} and fields that depend on the kind:
 *   run.started {status, version, input, by?}   run.completed {status}   run.cancelled {status, by?}
 *   run.cancelling {status, by?}: its `finally` runs first, then it is cancelled
 *   run.failed {status, error, failedStep, failedPath}   run.suspended {status, path, reason}
 *   run.resumed {status, path?, decision, reason?, by?}: one suspension was decided; the status is "suspended"
 *   while others are left   run.aborted {status, reason, by?}: by a decision; run.failed follows
 *   state.started {attempt}   state.ended {attempt, succeed, next, to?, error?}: an attempt of a state of a
 *   stage; `next` is done, final, retry, redirect (to another state), errored or suspend
 *   step.started {attempt, dueAt?}   step.retrying {attempt, error, dueAt}: this attempt has failed
 *   step.completed {attempt, result, state}   step.failed {attempt?, error, state, stops}
 *   step.skipped {attempt?, state}   step.cancelled {attempt?}: no `attempt` if none had started
 *   node.started, node.completed, node.failed {error}: supervisors
 *   node.described {description}: after the end of a supervisor, a delay, a signal or a pending step
 *   timer.armed {dueAt}: after the event that set a durable timer (a delay, a retry, the time-out of
 *   a signal or of a pending step)   signal.received {name, payload, by?}
 *   log {level, message, metadata, stepName, attempt}
 * `by` is who did it, if known: rv_engine_opts.by, or `by` in the options of the call. The end of a step that
 * rv_complete() ended has it too.
 * A value longer than 4 KiB is left out of its event; `resultBytes` (stateBytes …) has its length instead.
 *
 * (seq, index) is the position of an event; seq may have gaps. When a cancelled run or a failed block cancels
 * steps, their step.cancelled events come before the event of the run or block. When an abort fails a node, its
 * step.failed or node.failed comes before run.failed. */
typedef struct rv_feed rv_feed;

enum rv_feed_from {
    RV_FROM_NOW = 0,     /* events committed after the call */
    RV_FROM_OLDEST = 1,  /* all events that are still in the store */
    RV_FROM_POSITION = 2 /* events after (seq, index) */
};

typedef struct rv_feed_opts {
    size_t size;         /* filled in by RV_FEED_OPTS */
    const char *run_id;  /* only events of this run; NULL = of all runs */
    int from;            /* enum rv_feed_from */
    uint64_t seq, index; /* RV_FROM_POSITION: the last event that was read */
    bool no_logs;        /* leave `log` events out */
} rv_feed_opts;
#define RV_FEED_OPTS(...) (&(rv_feed_opts){ .size = sizeof(rv_feed_opts), __VA_ARGS__ })
RV_API void rv_feed_opts_init(rv_feed_opts *opts);

/* Open a feed. NULL opts: all runs, from now on. Close *ret with rv_feed_close(). A feed holds one connection to
 * the store. It may outlive the engine: rv_feed_next() then returns RV_ECLOSED.
 * Errors: RV_ENOTFOUND (no such run; or the position is older than what retention has kept, or is from
 * another store), RV_EINVAL, RV_ECLOSED, RV_ENOMEM, RV_ESTORE. */
RV_API int rv_feed_open(rv_engine *engine, const rv_feed_opts *opts, rv_feed **ret, rv_error *err);
RV_API void rv_feed_close(rv_feed *feed); /* NULL is allowed; no other thread may be using it */

typedef struct rv_event {
    uint64_t seq, index;
    int64_t at;       /* ms since 1970 */
    const char *kind; /* "step.completed", … */
    const char *run_id;
    const char *workflow;
    const char *path; /* of the node; "" if the event is about the run */
    const char *json; /* the whole event */
} rv_event;

/* Return the next event, and wait for it if there is none yet. *ret and its texts are valid until the next call on
 * this feed. Threads that use one feed at the same time take turns.
 * Errors: RV_ETIMEDOUT (timeout_ms: 0 = do not wait, negative = no limit), RV_ECANCELED (`by`, which may
 * be NULL, fired), RV_ECLOSED (the engine has closed, and all its events have been returned), RV_ENOTFOUND
 * (retention has removed events that this feed had not read yet: open another), RV_ENOMEM, RV_ESTORE
 * (both may be temporary: call again, nothing is skipped). */
RV_API int rv_feed_next(rv_feed *feed, int64_t timeout_ms, rv_cancel *by, rv_event *ret,
                        rv_error *err);

/* The position of a feed: all events up to here have been returned, or came before the start of the feed. To
 * continue later, use RV_FROM_POSITION; if *seq is 0, there was no event: use RV_FROM_OLDEST. */
RV_API void rv_feed_position(rv_feed *feed, uint64_t *seq, uint64_t *index);

/* ------------------------------------------------------------------------------------------
 * Listeners: called for events in the life of manifest runs */

/* An event. Texts that do not apply are "". Texts are valid until the listener returns. */
typedef struct rv_lifecycle {
    rv_engine *engine;
    /* "dispatch": an attempt of a state starts; "state_completed": a state has ended, or waits for a decision;
     * "stage_completed"; "suspend": a decision is needed; "redirect": another state runs first; "exhausted": a
     * state has no attempts left; "final": a final state has completed; "completed": the run; "aborted": the run
     * failed or was cancelled */
    const char *type;
    const char *run_id, *workflow;
    const char *path; /* of the state or stage; of a suspension: the path for rv_decide() */
    const char *stage, *state;
    int attempt;               /* from 0; -1: does not apply */
    bool succeed;              /* state_completed */
    const char *attachment_id; /* dispatch, state_completed, redirect, exhausted, final */
    const char *error;         /* JSON: why it failed, or is suspended */
    const char *to;            /* redirect: the other state */
    int64_t at;                /* ms since 1970 */
    const char *json; /* the whole event: {type, runId, workflow, at, path?, stage?, state?, …} */
} rv_lifecycle;

/* Returns 0. A negative value or rv_panic() is a failure: it is logged with the run, and otherwise ignored. */
typedef int (*rv_listener_fn)(const rv_lifecycle *event, void *arg);

/* Call `fn` for each event of this type, of all runs of the store, from now on. All listeners are called on one
 * thread of their own, one after the other, in the order of their registration, after the event is on disk. A
 * listener with the same `id` is replaced. Without an id (NULL), the same function with the same arg and type is
 * registered only once, and stays until the engine is closed. A listener may call any function except
 * rv_engine_close() and rv_engine_free(). A listener for "suspend" may decide with rv_decide(): the first decision
 * counts, later ones return RV_ESTATE. It is first called for the suspensions that exist already, whichever process
 * they come from; one that arises meanwhile may be reported twice. Without listeners there is no cost.
 * Errors: RV_EINVAL (no such type), RV_ETOOBIG (there are 1,000), RV_ECLOSED, RV_ENOMEM, RV_ESYS.   Thread: any. */
RV_API int rv_on(rv_engine *engine, const char *type, rv_listener_fn fn, void *arg, const char *id,
                 rv_error *err);
/* Remove the listener with this id. When this returns, it is not running, unless it made this call itself.
 * Errors: RV_ENOTFOUND, RV_EINVAL, RV_ENOMEM.   Thread: any. */
RV_API int rv_off(rv_engine *engine, const char *id, rv_error *err);

/* Wait until the listeners of the run's manifest (`listeners:`) have been told of everything that has happened so far, or
 * nobody tries to tell them any more; for so long (negative: without limit). An answer to `suspend` has decided by then. A run
 * without such listeners: at once. Errors: RV_ETIMEDOUT, RV_ECLOSED, RV_EINVAL.   Thread: any but a step's or a listener's. */
RV_API int rv_listeners_wait(rv_engine *engine, const char *run_id, int64_t timeout_ms,
                             rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Logs and nodes of a run */

/* Which lines of a run's log. With nothing set: all of them, from the first. */
typedef struct rv_log_query {
    size_t size;      /* filled in by RV_LOG_QUERY */
    const char *step; /* alias; NULL = all steps */
    int level;        /* enum rv_log_level: this level and above; 0 = all */
    const char *text; /* text in the message; ASCII letters match in either case */
    uint64_t after;   /* rv_log_list.next of the previous page; 0 = from the first */
    size_t limit;     /* 0 = 100; at most 1000 */
    const char
        *path;   /* only the node at this path, with all nodes and iterations in it; NULL = all */
    int attempt; /* only this attempt, from 1; in an agent of a state: of that state. 0 = all */
    bool
        for_agents; /* without lines that agents may not see: those with `public: false` in their metadata */
} rv_log_query;
#define RV_LOG_QUERY(...) (&(rv_log_query){ .size = sizeof(rv_log_query), __VA_ARGS__ })
RV_API void rv_log_query_init(rv_log_query *query);

typedef struct rv_log_line {
    uint64_t id; /* the seq of its event in the feed */
    int64_t at;  /* ms since 1970 */
    int level;   /* enum rv_log_level */
    int attempt;
    const char *step; /* alias */
    const char *path; /* with iterations */
    const char *message;
    const char *metadata; /* JSON; "" = none */
    const char *
        kind; /* "" = an ordinary line; "stream": a piece of an answer, gone once that is recorded */
} rv_log_line;

typedef struct rv_log_list {
    size_t count;
    const rv_log_line *lines; /* in the order in which they were recorded */
    uint64_t next;            /* for `after`; also at the end of the log, to continue from there */
} rv_log_list;

/* Read a page of a run's log from disk. To follow a growing log, call again with `after`, or open the feed of
 * the run: its `log` events are the same lines, and an event's seq is a line's id. Fewer lines than `limit`
 * means that there are no more yet. Free *ret with rv_log_list_free().
 * Errors: RV_ENOTFOUND, RV_EINVAL, RV_ENOMEM, RV_ESTORE. */
RV_API int rv_logs(rv_engine *engine, const char *run_id, const rv_log_query *query,
                   rv_log_list **ret, rv_error *err);
RV_API void rv_log_list_free(rv_log_list *list); /* NULL is allowed */

/* What an execution, an attempt of a state, can read of its run through its scope. */
enum rv_read_what {
    RV_READ_LOGS = 1,    /* the log of its run; with `for_agents` */
    RV_READ_ATTACHMENTS, /* the list of attachments, without results */
    RV_READ_ATTACHMENT,  /* the one called `name`, with its result */
    RV_READ_RUN,         /* anything else; `name` says what, for the record: "nodes", "plan" … */
};
typedef struct rv_read {
    size_t size; /* filled in by RV_READ */
    const char *run_id;
    int what;            /* enum rv_read_what */
    const char *name;    /* of RV_READ_ATTACHMENT and RV_READ_RUN */
    const char *through; /* the interface, for the record: "http", "cli"; NULL = not recorded */
} rv_read;
#define RV_READ(...)    (&(rv_read){ .size = sizeof(rv_read), __VA_ARGS__ })
#define RV_TOKEN_PREFIX "rvx_" /* what the token of an execution begins with */
RV_API void rv_read_init(rv_read *read);

/* May the execution that has this token read that? Ask before you show it. A command that is the agent of a state has
 * the token in RIVAL_TOKEN; it is valid while the attempt runs. When this returns RV_OK, the read is on disk, with its
 * time: `rival audit` lists it. An engine that attaches asks the process that drives the store.
 * Errors: RV_EDENIED (the scope does not allow it), RV_ENOTFOUND (no attempt of this run that is under way has the token),
 * RV_EINVAL, RV_ESTATE (nobody drives the store), RV_ENOMEM, RV_ECLOSED.   Thread: any. */
RV_API int rv_read_as(rv_engine *engine, const char *token, const rv_read *read, rv_error *err);

/* Set the address of this engine's server, once: commands that are agents of states get it in RIVAL_URL, and read there
 * with their token. Without it they get the store in RIVAL_STORE, if the engine has `control`.
 * Errors: RV_EINVAL, RV_ESTATE (it is set already), RV_ENOMEM.   Thread: any. */
RV_API int rv_engine_set_url(rv_engine *engine, const char *url, rv_error *err);

/* Which attachments of a run. With nothing set: the first hundred of all. */
typedef struct rv_attachment_query {
    size_t size;        /* filled in by RV_ATTACHMENT_QUERY */
    const char *id;     /* exactly this one; NULL = all */
    const char *stage;  /* alias; NULL = all stages */
    const char *state;  /* alias; NULL = all states */
    const char *status; /* "init", "running", "finished", "errored", "skipped"; NULL = all */
    bool latest;        /* only the last one of each state of each stage that is not superseded */
    size_t last;        /* only the last N that have ended and are not superseded; 0 = all */
    bool incomplete;    /* only those that have not ended */
    int64_t older_than_ms; /* only those that began at least this long ago */
    bool results;          /* include `result` and `error`; else they are "" */
    size_t offset, limit;  /* limit 0 = 100; at most 1000, or 100 with `results` */
} rv_attachment_query;
#define RV_ATTACHMENT_QUERY(...) \
    (&(rv_attachment_query){ .size = sizeof(rv_attachment_query), __VA_ARGS__ })
RV_API void rv_attachment_query_init(rv_attachment_query *query);

/* The record of one attempt of a state of a stage. */
typedef struct rv_attachment {
    const char *id; /* [stage][state][agent]_YYMMDDTHHMMSS_attempt, unique in its run */
    const char *stage, *state, *agent;
    const char *path;   /* of the state, including the iterations around its stage */
    int attempt;        /* from 0 */
    const char *status; /* "init", "running", "finished", "errored", "skipped" */
    /* By the agent, else the start of its result or error (2,000 bytes, then "…"); "" = none. A list has the
     * first 200 bytes; whole if results are requested. */
    const char *description;
    int64_t started_at, completed_at; /* ms since 1970; 0 = not yet */
    bool superseded;                  /* its stage was started again later */
    const char *result;               /* JSON; "" = none, or not requested */
    const char *error;                /* as `result` */
} rv_attachment;

typedef struct rv_attachment_list {
    size_t count;
    const rv_attachment *attachments; /* in the order in which they ended; unfinished ones last */
    size_t total;                     /* that match the query, without `offset` and `limit` */
} rv_attachment_list;

/* The records of the attempts of a run's states, from disk. If `id` is set and does not exist, the list is
 * empty. Takes time linear in the number of attachments of the run. Free *ret with rv_attachment_list_free().
 * Errors: RV_ENOTFOUND (no such run), RV_EINVAL, RV_ENOMEM, RV_ESTORE.   Thread: any. */
RV_API int rv_attachments(rv_engine *engine, const char *run_id, const rv_attachment_query *query,
                          rv_attachment_list **ret, rv_error *err);
RV_API void rv_attachment_list_free(rv_attachment_list *list); /* NULL is allowed */

/* Counts of the iterations of a forEach or a loop. An iteration that waits for a free place is in `total` only. */
typedef struct rv_iterations {
    size_t total; /* how many there will be; 0 = not known: a loop, or items not evaluated yet */
    size_t running, completed, failed, cancelled;
} rv_iterations;

/* A node of a run, or a sequence inside one: an iteration, a path of a branch, a child. Times in ms since 1970,
 * 0 = not yet. */
typedef struct rv_node {
    const char *path;  /* also for rv_node_query.parent, to list its children */
    const char *alias; /* the last part of the path: an alias, "iter3", "then", "onError" */
    const char *kind; /* "step", "workflow", "branch", "loop", "forEach", "concurrent"; "iteration",
                          "path", "child": a sequence inside one of those; "handler" */
    /* "pending" …; "skipped" also for nodes on the path that was not taken; "suspended" while the run is
     * suspended because of it */
    const char *status;
    int64_t started_at, completed_at;
    int64_t duration_ms; /* from start to end, or until now while it runs */
    int64_t queue_ms;    /* how long it was ready and waited for a free place; over all attempts */
    int64_t due_at;      /* when its timer fires; 0 = it does not wait for one */
    int attempt;         /* the last one, from 1; 0 = none yet */
    int retry_count;     /* attempts after the first */
    int crashes;         /* times it was lost in a crash of its process or of the engine's */
    char module[RV_MODULE_SIZE]; /* of its last attempt: see rv_attempt */
    const char *error; /* {message, …}, the last one, even if it was retried since; "" = none */
    int error_attempt; /* the attempt with that error */
    int64_t error_at;  /* and its time */
    const char *description;  /* from rv_describe() or its `description`; at most 500 bytes */
    size_t children;          /* how many nodes rv_nodes() would list below it */
    rv_iterations iterations; /* of a forEach or a loop */
    /* Of an iteration of a forEach, each at most 200 bytes and "…": its item (a string as it is, anything else as
     * JSON), and its `label`, for the first 10,000 iterations. "" = none. */
    const char *item, *label;
} rv_node;

typedef struct rv_node_list {
    size_t count, total; /* in this window; in all, with the same `status` */
    const rv_node *nodes;
} rv_node_list;

typedef struct rv_node_query {
    size_t size;        /* filled in by RV_NODE_QUERY */
    const char *parent; /* path of the node whose children to list; NULL or "": the top level */
    const char *status; /* only children in this status, also in `total`; NULL = all */
    size_t offset;      /* children to skip */
    size_t limit;       /* 0 = 100; at most 1000 */
} rv_node_query;
#define RV_NODE_QUERY(...) (&(rv_node_query){ .size = sizeof(rv_node_query), __VA_ARGS__ })
RV_API void rv_node_query_init(rv_node_query *query);

/* List a window of the children of a node, in order; query NULL: the first ones of the top level. Nodes that have
 * not been reached are listed too, as "pending"; of a forEach or a loop, only iterations that have started. Reads
 * the store: the first call for a run reads its whole journal, later calls only what was added, as long as the run
 * is among the last ones read. The cost depends on the size of the window, and hardly on its place or on the number
 * of children. Free *ret with rv_node_list_free().
 * Errors: RV_ENOTFOUND (run or node), RV_ETOOBIG (more than some millions of nodes), RV_EINVAL, RV_ENOMEM,
 * RV_ESTORE. */
RV_API int rv_nodes(rv_engine *engine, const char *run_id, const rv_node_query *query,
                    rv_node_list **ret, rv_error *err);
RV_API void rv_node_list_free(rv_node_list *list); /* NULL is allowed */

/* One attempt of a step, or one wait of a delay or a signal. Times as in rv_node. */
typedef struct rv_attempt {
    int attempt; /* from 1; the attempt after a lost one has the same number */
    /* "running", "completed", "failed", "skipped", "cancelled", "lost" (its process died) */
    const char *outcome;
    int64_t started_at, completed_at;
    int64_t queue_ms;  /* how long it was ready and waited for a free place */
    int64_t due_at;    /* failed: when the next one is or was due; a wait: its end; 0 = none */
    const char *error; /* {message, …}; "" = none */
    char module[RV_MODULE_SIZE]; /* which build of a C file its function is from; "" = none */
    /* Its input, {name: value, …}, "" = none: `argv`, `stdin`, `env`, `cwd` of a command; `method`, `url`,
     * `headers`, `body` of a request; `delay`, `signal`; and the values that its function or expressions read, by
     * path (".input.id", ".steps.find.result", ".loop.item"). Secrets are masked. At most RV_GIVEN_BYTES: a long
     * value is replaced by a text with its beginning and its size. It is on disk when the attempt has ended; while
     * the attempt runs, within 200 ms. */
    const char *input;
    int64_t
        down_since; /* lost in a crash of the engine: when that was last seen alive; 0 = not lost */
} rv_attempt;
enum { RV_GIVEN_BYTES = 16384 };

/* One node with all details. Texts are JSON and belong to it; "" = none. */
typedef struct rv_node_detail {
    rv_node node;
    const char *input;  /* of a nested workflow that has its own input */
    const char *result; /* of a step; the results of a supervisor are in its children */
    const char *state;  /* of a step: {description, …} */
    size_t attempt_count;
    const rv_attempt *attempts; /* in order */
    size_t earlier;             /* earlier attempts: only the last thousand are listed */
} rv_node_detail;

/* Read one node, by its path. Reads the run's journal, so it is meant for one node, not for all of them. Free *ret
 * with rv_node_detail_free(). Errors: as rv_nodes(). */
RV_API int rv_node_get(rv_engine *engine, const char *run_id, const char *path,
                       rv_node_detail **ret, rv_error *err);
RV_API void rv_node_detail_free(rv_node_detail *detail); /* NULL is allowed */

/* The plan that a run started with and keeps, or the plan that new runs of a workflow use. *ret is JSON, as
 * `rival plan` prints it, for rv_free().
 * Errors: RV_ENOTFOUND, RV_EINVAL, RV_ECLOSED (only rv_plan_of_workflow), RV_ENOMEM, RV_ESTORE. */
RV_API int rv_plan_of_run(rv_engine *engine, const char *run_id, char **ret, rv_error *err);
RV_API int rv_plan_of_workflow(rv_engine *engine, const char *workflow, char **ret, rv_error *err);

/* Why a run makes no progress. *ret is JSON, for rv_free():
 *   {runId, status, waits: [{reason, count, since, message, step?, …, nodes: [{path, since, …}]}]}
 * Every active node of the run has exactly one reason. Nodes of one step with the same reason form a group, the
 * oldest group first, with the first ten nodes of each:
 *   running      it runs on `executor`: "thread", "host" (a process for C files), "command", "http",
 *                "evaluator"; "function" if the engine only reads and cannot tell thread from host;
 *                `evaluating` says which condition, items or input is evaluated
 *   place        ready, but `executor` has no free place among its `limitSize`; `limit` says which places:
 *                "workers", "hosts", "io" (commands), "connections" (http), "evaluator"
 *   concurrency  iterations held back by the `limitSize` of their forEach
 *   timer, retry (`attempt`)   until `dueAt`
 *   signal, handle   waits for a signal or an rv_complete() of that `name`, until `dueAt` if there is one; the
 *                `asks` of a node, {message, schema, url?}, is what its tool asks a person
 *   worker       no process here has its `function`; it continues when that is registered
 *   decision     the run is suspended: `cause` says why
 *   turn         not waiting: it continues at once
 * If the run has ended and nothing is active, `waits` is empty; a failed run has `failedPath`.
 * Errors: RV_ENOTFOUND, RV_EINVAL, RV_ECLOSED, RV_ENOMEM, RV_ESTORE. */
RV_API int rv_why(rv_engine *engine, const char *run_id, char **ret, rv_error *err);
RV_API void rv_free(void *text); /* frees text that the library returned; NULL is allowed */

/* The engine's metrics, in the text format of Prometheus. *ret is for rv_free(). Counters start at 0 when the
 * engine is opened. Steps are labelled by workflow and alias, up to 500 pairs; the rest is
 * workflow="other",alias="other".
 * Errors: RV_EINVAL, RV_ECLOSED, RV_ENOMEM, RV_ESTORE. */
RV_API int rv_metrics(rv_engine *engine, char **ret, rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Workers on other machines (docs/worker-protocol.md)
 *
 * Processes that offer functions connect to the socket beside the store (`control`), or to a TCP address. */

typedef struct rv_workers_opts {
    size_t size;        /* filled in by RV_WORKERS_OPTS */
    const char *listen; /* HOST:PORT; port 0 = a free one */
    /* PEM files; with them every connection uses TLS. Required unless the address is a loopback address. */
    const char *tls_cert, *tls_key;
    /* May this worker connect? `token` is the one in its hello, "" if there is none; `from` is its address, for a
     * log. It must not block, since all connections wait for it. NULL: every worker may connect, which is allowed
     * on loopback addresses only. Thread: one of the engine's, one call at a time. */
    bool (*admits)(void *arg, const char *token, const char *from);
    void *arg;
    /* With a store that several engines share: how workers of the others reach this one, "tls://HOST:PORT" or
     * "tcp://HOST:PORT"; port 0 = that of `listen`. NULL: `listen`, with the name of the machine if it is every
     * address; a loopback address is not told. */
    const char *url;
} rv_workers_opts;
#define RV_WORKERS_OPTS(...) (&(rv_workers_opts){ .size = sizeof(rv_workers_opts), __VA_ARGS__ })
RV_API void rv_workers_opts_init(rv_workers_opts *opts);

/* Accept workers on a TCP address, until the engine closes. *ret_port (may be NULL) is the port. Keeps no reference
 * to the texts of `opts`. Errors: RV_EINVAL (a bad address or certificate, or no TLS or `admits` beyond loopback),
 * RV_EBUSY (the address is in use), RV_EEXIST (the engine listens already), RV_ESTATE (this engine runs no steps),
 * RV_ECLOSED, RV_ENOMEM, RV_ESYS; after an error it does not listen. Thread: any, one at a time. */
RV_API int rv_workers_listen(rv_engine *engine, const rv_workers_opts *opts, uint16_t *ret_port,
                             rv_error *err);

/* Check all workers again, after the answers of `admits` have changed: every worker that connected to the TCP address
 * is disconnected, and `admits` is called again when it reconnects. Well-behaved workers reconnect at once, and their
 * steps continue. Errors: RV_EINVAL. Thread: any. */
RV_API int rv_workers_again(rv_engine *engine, rv_error *err);

/* Where workers can connect, and which are connected. *ret is JSON, for rv_free(): {protocol, listen: {host, port, tls}
 * or null, socket: the path beside the store, or null, connections: [{name, credits, busy, local}]}.
 * Errors: RV_EINVAL, RV_ECLOSED, RV_ENOMEM. */
RV_API int rv_workers(rv_engine *engine, char **ret, rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Writing a worker: a program without an engine that offers functions to an engine elsewhere
 *
 *     rv_worker_new(RV_WORKER_OPTS(.address = "tls://rival.example.org:7070", .token = token), &worker, &err);
 *     rv_worker_offer(worker, workflow, &err);
 *     rv_worker_run(worker, stop, &err);         // until `stop` fires
 *
 * Its step functions take an rv_ctx as everywhere. If the process dies, its steps are attempted again. See
 * examples/worker.c. */

typedef struct rv_worker rv_worker;

typedef struct rv_worker_opts {
    size_t size; /* filled in by RV_WORKER_OPTS */
    /* "STORE.sock", the socket beside a store; or "tls://HOST:PORT", "tcp://HOST:PORT" */
    const char *address;
    const char *token;   /* a token with the role worker; NULL = none */
    const char *trusted; /* tls: a PEM file of certificates to trust; NULL = the system's */
    const char *name;    /* for people, at most 100 bytes; NULL = none */
    uint32_t credits;    /* steps at once, each on its own thread; 0 = 16 */
    /* Only connect to `address`. Else, if several engines share the store there, connect to all of them: `credits` are
     * divided among them, at least one each. The token must be valid at all of them. */
    bool one_engine;
} rv_worker_opts;
#define RV_WORKER_OPTS(...) (&(rv_worker_opts){ .size = sizeof(rv_worker_opts), __VA_ARGS__ })
RV_API void rv_worker_opts_init(rv_worker_opts *opts);

/* Make a worker. It does not connect yet. Free *ret with rv_worker_free(). Errors: RV_EINVAL (a bad address or bad
 * certificates), RV_ENOMEM, RV_ESYS. */
RV_API int rv_worker_new(const rv_worker_opts *opts, rv_worker **ret, rv_error *err);

/* Offer a workflow with its functions. Offer workflows that it nests by name first. The workflow stays the caller's,
 * and must outlive the worker. Do not call it while the worker runs. Errors: RV_EINVAL (what is wrong with it),
 * RV_ENOMEM. */
RV_API int rv_worker_offer(rv_worker *worker, const rv_workflow *workflow, rv_error *err);
/* Offer a function that any workflow file can `call`. Errors: RV_EINVAL, RV_ENOMEM. */
RV_API int rv_worker_function(rv_worker *worker, const char *name, rv_step_fn fn, rv_error *err);

/* Connect, run the steps that the engine sends, and reconnect when the connection is lost, until `stop` fires. Then
 * running functions may finish: after 10 s they are asked to stop (rv_ctx_cancelled); 10 s later their steps are left
 * to be attempted elsewhere. Returns when all functions have returned.
 * Errors: RV_EINVAL (nothing is offered; the token is wrong; the engine refuses an offer: the message says why),
 * RV_EEXIST (the engine has its own workflow of that name), RV_ENOMEM, RV_ESYS. Thread: one, its own. */
RV_API int rv_worker_run(rv_worker *worker, rv_cancel *stop, rv_error *err);

/* Returns 1 if the worker is connected and the engine has accepted it. Else returns 0, and *ret_why (may be NULL) is
 * the reason; code 0: no reason is known. Thread: any. */
RV_API int rv_worker_state(rv_worker *worker, rv_error *ret_why);

RV_API void rv_worker_free(rv_worker *worker); /* it must not be running; NULL is allowed */

/* ------------------------------------------------------------------------------------------
 * Retention */

typedef struct rv_retain_opts {
    size_t size;        /* filled in by RV_RETAIN_OPTS */
    int64_t max_age_ms; /* remove runs that ended longer ago than this; 0 = no limit */
    uint64_t max_runs;  /* how many finished runs to keep; 0 = no limit */
    uint64_t
        max_bytes; /* of the store, with unfinished runs, which are never removed; 0 = no limit */
    bool dry_run;  /* only count them; with max_bytes an estimate from the average size of a run */
} rv_retain_opts;
#define RV_RETAIN_OPTS(...) (&(rv_retain_opts){ .size = sizeof(rv_retain_opts), __VA_ARGS__ })
RV_API void rv_retain_opts_init(rv_retain_opts *opts);

/* Remove finished runs with everything that belongs to them (journal, results, logs), now, oldest first. NULL opts:
 * by the engine's own limits, which it also applies by itself, some time after they are exceeded. Other runs
 * continue meanwhile. A run that someone is waiting for or reading is kept this time. Feeds that have not read the
 * events of a removed run yet get RV_ENOTFOUND, and so do feeds opened at a position there. Returns when it is done;
 * *ret (may be NULL) is the number of removed runs.
 * Errors: RV_EINVAL, RV_ECLOSED, RV_ESTORE. */
RV_API int rv_retain(rv_engine *engine, const rv_retain_opts *opts, uint64_t *ret, rv_error *err);

/* How much the store contains. */
typedef struct rv_usage {
    uint64_t runs;     /* all runs */
    uint64_t finished; /* runs that rv_retain() may remove */
    uint64_t bytes;    /* of all data, without free space: the file does not shrink, but new data
                          reuses the space of removed runs */
} rv_usage;
/* Works with read_only. Errors: RV_EINVAL, RV_ENOMEM, RV_ESTORE. */
RV_API int rv_store_usage(rv_engine *engine, rv_usage *ret, rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Export and backup: a run as a file, a store as a file
 *
 * Both read a consistent snapshot of the store while runs continue, in this process or in another, so they work with
 * read_only. A file appears under its name only when it is complete and on disk. Only its owner may read it.
 * docs/guide/keeping.md says when to use which. */

typedef struct rv_export_opts {
    size_t size;      /* filled in by RV_EXPORT_OPTS */
    const char *path; /* the file to create; or NULL, and `write`: */
    bool replace;     /* replace the file if it exists */
    /* Called with the text in pieces, after the whole run has been checked. Return 0 to continue; anything else
     * stops with RV_ECANCELED. */
    int (*write)(void *arg, const char *bytes, size_t count);
    void *arg;
} rv_export_opts;
#define RV_EXPORT_OPTS(...) (&(rv_export_opts){ .size = sizeof(rv_export_opts), __VA_ARGS__ })
RV_API void rv_export_opts_init(rv_export_opts *opts);

/* Write one run with everything that belongs to it: definition, input, history, logs. The format is lines of JSON, see
 * docs/reference/export-format.md. The run stays in the store and continues; imported elsewhere, it would continue
 * there too. So export runs that have ended, or cancel the run here before you import it there. Memory use does not
 * depend on the size of the run.
 * Errors: RV_ENOTFOUND, RV_EINVAL, RV_EEXIST (the file exists), RV_ESYS (it cannot be written: no space,
 * …), RV_ECANCELED, RV_ENOMEM, RV_ESTORE. */
RV_API int rv_export(rv_engine *engine, const char *run_id, const rv_export_opts *opts,
                     rv_error *err);

typedef struct rv_import_opts {
    size_t size;      /* filled in by RV_IMPORT_OPTS */
    const char *path; /* the file to read; or NULL, and `read`: */
    /* Writes up to `room` bytes to `into` and returns how many; 0 = end of the text; negative stops with
     * RV_ECANCELED. */
    long (*read)(void *arg, char *into, size_t room);
    void *arg;
} rv_import_opts;
#define RV_IMPORT_OPTS(...) (&(rv_import_opts){ .size = sizeof(rv_import_opts), __VA_ARGS__ })
RV_API void rv_import_opts_init(rv_import_opts *opts);

/* Import a run that rv_export() wrote, under the same id, in one transaction: all of it or nothing. Its whole history
 * is checked as untrusted input. The run continues where it was, as soon as an engine drives the store and its
 * functions are registered; this engine does so at once, unless it is idle. Timers keep their times; those that are
 * overdue fire once. An attempt that was in flight is made again and not counted as a crash. Its events come last in
 * the feed. Other runs wait during the import, about as long as SQLite needs to write the data: a second or two for
 * each hundred thousand small turns, ten for turns of 2 KB.
 * Errors: RV_EEXIST (the store has a run with that id), RV_EPARSE (the text is cut, altered, or not an export;
 * the message has the line), RV_EINVAL (written by a newer version of Rival), RV_ESYS (the file
 * cannot be read), RV_ESTATE (this engine only reads, or is for another run), RV_ECLOSED, RV_ECANCELED, RV_ENOMEM,
 * RV_ESTORE. */
RV_API int rv_import(rv_engine *engine, const rv_import_opts *opts, rv_run_info *ret,
                     rv_error *err);

typedef struct rv_backup_opts {
    size_t size;      /* filled in by RV_BACKUP_OPTS */
    const char *path; /* the file to create */
    bool replace;     /* replace the file if it exists, once the new one is complete */
    /* Called from time to time with the progress, in pages of the store. Return 0 to continue; anything else stops
     * with RV_ECANCELED. NULL: no progress is reported. */
    int (*progress)(void *arg, uint64_t done, uint64_t total);
    void *arg;
} rv_backup_opts;
#define RV_BACKUP_OPTS(...) (&(rv_backup_opts){ .size = sizeof(rv_backup_opts), __VA_ARGS__ })
RV_API void rv_backup_opts_init(rv_backup_opts *opts);

/* Copy the whole store into one file, verify the copy, and then give it its name. The copy is a store: open it, or
 * put it in place of the old one while no engine has that open.
 * Errors: RV_EINVAL, RV_EEXIST (the file is there), RV_ESYS (it cannot be made), RV_ECANCELED, RV_ESTATE
 * (a test engine has no store to copy), RV_ENOMEM, RV_ESTORE (no space; the store or its
 * copy is damaged). */
RV_API int rv_backup(rv_engine *engine, const rv_backup_opts *opts, rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Instances */

/* A handle for one run, for several calls about it. */
typedef struct rv_instance rv_instance;
RV_API rv_instance *rv_instance_new(rv_engine *engine, const char *workflow, const char *run_id);
RV_API void rv_instance_free(rv_instance *instance); /* NULL is allowed; the run continues */
RV_API int rv_instance_run(rv_instance *instance, const char *input, rv_run_info *ret,
                           rv_error *err);
RV_API int rv_instance_wait(rv_instance *instance, const rv_wait_opts *opts, rv_outcome **ret,
                            rv_error *err);
RV_API int rv_instance_cancel(rv_instance *instance, rv_error *err);
RV_API int rv_instance_state(rv_instance *instance, rv_run_state **ret, rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Inside a step
 *
 * Text that these functions return is valid until the step's function returns. */

/* Set the result. `format` is that of Jansson's json_pack(): "{s:s, s:i}", "key", "text", "n", 5; or JSON text.
 * Return its value from the step function: 0, or a code if the format is bad, the text is not JSON, or it is larger
 * than 64 MB. */
RV_API int rv_return(rv_ctx *ctx, const char *format, ...);
RV_API int rv_return_json(rv_ctx *ctx, const char *json);
RV_API int rv_return_bool(rv_ctx *ctx, bool value); /* for conditions */
/* The step is not done: it waits, durably, until rv_complete() is called with this handle. It is not run again. */
RV_API int rv_return_pending(rv_ctx *ctx, const char *handle);

/* The step failed. The step function returns the value of these calls. An error from rv_fail() is retried while
 * attempts are left, and then stops the workflow. */
RV_API int rv_fail(rv_ctx *ctx, const char *fmt, ...) RV_PRINTF(2, 3);
/* Stop the workflow; do not retry. */
RV_API int rv_stop(rv_ctx *ctx, const char *fmt, ...) RV_PRINTF(2, 3);
/* Continue with the next node: this one is `failed`, and is not retried. */
RV_API int rv_continue(rv_ctx *ctx, const char *fmt, ...) RV_PRINTF(2, 3);
/* Retry, up to this many attempts; if the step's own options allow fewer, up to those. */
typedef struct rv_retry_opts {
    size_t size;      /* filled in by RV_RETRY_OPTS */
    int max_attempts; /* 0 = as the step's options say */
    int backoff;      /* RV_LINEAR, RV_EXPONENTIAL; 0 = as the step's options say */
} rv_retry_opts;
#define RV_RETRY_OPTS(...) (&(rv_retry_opts){ .size = sizeof(rv_retry_opts), __VA_ARGS__ })
RV_API void rv_retry_opts_init(rv_retry_opts *opts);
RV_API int rv_retry(rv_ctx *ctx, const rv_retry_opts *opts, const char *fmt, ...) RV_PRINTF(3, 4);

/* The state of the step: a description for people; any JSON value by key; skipped (the result is then null).
 * RV_EINVAL: not JSON; RV_ETOOBIG: the state would be larger than 1 MB, and the step fails for that. */
RV_API void rv_describe(rv_ctx *ctx, const char *fmt, ...) RV_PRINTF(2, 3);
RV_API int rv_set_state(rv_ctx *ctx, const char *key, const char *json);
RV_API int rv_skip(rv_ctx *ctx); /* returns 0, for the step function to return */

/* Read values by path, written as in workflow files: ".input.id", ".steps.find.result.list[0]",
 * ".steps[\"find-tree\"].result", ".lastStep.result", ".loop.item". These values exist:
 *
 *   .input          the run's input
 *   .steps.ALIAS    a node that ran before, in scope: .result, .state, .status, .error
 *   .lastStep       the node before: .result, .state ({} for the first), .alias, .stepName
 *   .loop           in an iteration: .item, .items (forEach), .index, .parent (the enclosing iteration). In
 *                   the condition of a loop .index is that of the next iteration (while) or of the one that
 *                   has just ended (until)
 *   .run            .runId, .workflowName, .stepName, .path, .attempt, .executionId, .idempotencyKey
 *   .error, .failedStep, .workflowState   in a handler (onError): the error, {message, …}; the node that failed,
 *                   {result, state, alias, stepName, status}; {input, steps, status, …}
 *   .               all of this at once, for rv_json(); can be large
 *
 * An index in brackets counts from 0, or from the end if it is negative. A key that is not a plain word is written
 * in brackets and quotes. If the value is missing, null or of another type, the function returns NULL or the
 * fallback. If it is of another type, the step's log gets a warning.
 *
 * A path that can never lead to a value is a bug in the step. A path that cannot be parsed, or names something that
 * does not exist (".inptu", ".steps.find.reslt"), fails the step when its function returns, and the step is not
 * retried. For a node that this step can never see, the step's log gets an error.
 *
 * Each call scans the JSON text. To read many values of one large result, call rv_json() once and parse that. */
RV_API const char *rv_str(rv_ctx *ctx, const char *path);               /* strings, unquoted */
RV_API int64_t rv_int(rv_ctx *ctx, const char *path, int64_t fallback); /* written as an integer */
RV_API double rv_num(rv_ctx *ctx, const char *path, double fallback);
RV_API bool rv_bool(rv_ctx *ctx, const char *path, bool fallback);
RV_API const char *rv_json(rv_ctx *ctx, const char *path); /* any value as JSON text, also "null" */

/* Which run and step this is. */
RV_API const char *rv_ctx_run_id(rv_ctx *ctx);
RV_API const char *rv_ctx_workflow(rv_ctx *ctx);
RV_API const char *rv_ctx_step(rv_ctx *ctx);
RV_API const char *rv_ctx_path(rv_ctx *ctx);
RV_API int rv_ctx_attempt(rv_ctx *ctx);              /* from 1 */
RV_API const char *rv_ctx_execution_id(rv_ctx *ctx); /* of this attempt, unique in its run */
/* A key for requests that must not take effect twice. It is the same in every attempt of this step, and no other step
 * ever has it: no run in another store, and no run that reuses the id of a removed run. */
RV_API const char *rv_ctx_idempotency_key(rv_ctx *ctx);
RV_API rv_engine *rv_ctx_engine(rv_ctx *ctx); /* to start or signal other runs */

/* Should the step stop? (It was cancelled or timed out, or the engine closes.) Poll this, or pass the token on. */
RV_API bool rv_ctx_cancelled(rv_ctx *ctx);
RV_API rv_cancel *rv_ctx_token(
    rv_ctx *ctx); /* do not free it, or use it after the step has ended */

/* Write to the step's log, which is stored with the run. */
enum rv_log_level { RV_DEBUG = 0, RV_INFO = 1, RV_WARN = 2, RV_ERROR = 3 };
RV_API void rv_log(rv_ctx *ctx, int level, const char *metadata_json, const char *fmt, ...)
    RV_PRINTF(4, 5);
#define rv_log_debug(ctx, ...) rv_log(ctx, RV_DEBUG, NULL, __VA_ARGS__)
#define rv_log_info(ctx, ...)  rv_log(ctx, RV_INFO, NULL, __VA_ARGS__)
#define rv_log_warn(ctx, ...)  rv_log(ctx, RV_WARN, NULL, __VA_ARGS__)
#define rv_log_error(ctx, ...) rv_log(ctx, RV_ERROR, NULL, __VA_ARGS__)

/* ------------------------------------------------------------------------------------------
 * Testing workflows
 *
 * A test engine is the real engine with a store in memory, a clock that you control, and steps that run one at a
 * time in an order derived from the seed. All functions above work with it. rv_wait() runs everything that can run
 * and skips time to the next timer, up to its timeout_ms; the other calls return without running a step. Nothing
 * happens between calls. So a workflow that takes days is tested in milliseconds, and the same seed always gives the
 * same run.
 * Thread: one at a time; steps may call it too. */
typedef struct rv_test_opts {
    size_t size;           /* filled in by RV_TEST_OPTS */
    uint64_t seed;         /* for the order of steps, jitter and crashes */
    int64_t start_ms;      /* wall clock at the start; 0 = 2026-01-01 00:00 UTC */
    uint32_t crash_one_in; /* one commit in this many crashes, before or after it; 0 = none */
    uint32_t workers;      /* steps in flight at once; 0 = 256 */
    uint32_t
        max_crashes; /* as in rv_engine_opts, but 0 = no limit: steps do not cause these crashes */
} rv_test_opts;
#define RV_TEST_OPTS(...) (&(rv_test_opts){ .size = sizeof(rv_test_opts), __VA_ARGS__ })
RV_API void rv_test_opts_init(rv_test_opts *opts);
/* Errors: RV_EINVAL, RV_ENOMEM. *ret is for rv_engine_free(). */
RV_API int rv_test_engine_new(const rv_test_opts *opts, rv_engine **ret, rv_error *err);

/* Advance the clock, and do everything that falls due. 0: only what can be done now. */
RV_API int rv_test_advance(rv_engine *engine, int64_t ms, rv_error *err);
RV_API int64_t rv_test_now(rv_engine *engine); /* its clock, ms since 1970 */

/* Run `fn` instead of steps with this alias, of any kind, in every workflow; NULL: undo that. */
RV_API int rv_test_replace(rv_engine *engine, const char *alias, rv_step_fn fn, rv_error *err);
/* In a step: its result arrives this much later by the engine's clock, so that a time-out may fire first. */
RV_API void rv_test_takes(rv_ctx *ctx, int64_t ms);

/* Simulate the death of the process, and a new one that opens the store: what was on disk continues, attempts in
 * flight are made again. Registered workflows and replaced steps stay. Do not call it from a step. */
RV_API int rv_test_crash(rv_engine *engine, rv_error *err);
RV_API int64_t rv_test_crashes(rv_engine *engine); /* how many crashes so far, of both kinds */

/* The main function of a test engine for a program in another language, which listens on the Unix socket
 * argv[1]. `rival kit` calls it, for the npm package. The process ends with that program. */
RV_API int rv_kit_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
