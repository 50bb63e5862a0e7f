/* api.h: inside the API: the table of routes, and what their handlers use. */
#ifndef RV_SERVER_API_H
#define RV_SERVER_API_H

#include "base/arena.h"
#include "base/json.h"
#include "base/outfile.h"
#include "server/server.h"

enum {
    RV__API_PATH_BYTES = 4096,
    RV__API_QUERY_BYTES = 16384,
    RV__API_PARTS = 8,   /* of a path; more than any route has */
    RV__API_PARAMS = 16, /* of a query; as many as any route has */
    RV__API_MEMBERS = 4  /* of a body */
};

enum rv__param_kind {
    PARAM_TEXT,
    PARAM_INT,
    PARAM_FLAG,   /* 0, 1, false, true */
    PARAM_CHOICE, /* `number` is the index */
    PARAM_JSON,   /* a member of a body: any value */
};

/* A parameter of a query or a member of a body. The checks and the documentation both come from this. */
struct rv__param {
    const char *name; /* NULL: the end of the list */
    enum rv__param_kind kind;
    const char *says;           /* one sentence for the documentation */
    int64_t min, max, fallback; /* PARAM_INT; PARAM_FLAG: fallback */
    const char *const *choices; /* PARAM_CHOICE; ends in NULL */
    bool required;
};

enum rv__body_kind {
    BODY_NONE,   /* only an empty object is allowed */
    BODY_OBJECT, /* of `members` */
    BODY_ANY,    /* any JSON; empty: null */
};

struct rv__api_call;

struct rv__route {
    const char *method; /* one route for each method of a path */
    const char *path;   /* "{name}" matches one part */
    enum rv__role role;
    void (*handle)(struct rv__api_call *call);
    const char *id, *tag, *summary;
    const struct rv__param *params; /* NULL = none */
    enum rv__body_kind body;
    const struct rv__param *members; /* BODY_OBJECT */
    int status;                      /* of success */
    const char *schema;              /* of the answer; NULL: not JSON */
    const char *type;                /* NULL: application/json */
    int problems[8];                 /* error statuses of its own, ends with 0 */
    int reads; /* enum rv_read_what, for an execution that reads its run; 0: not allowed */
};
extern const struct rv__route rv__routes[];
extern const size_t rv__route_count;

/* The documents, by name (documents.c). */
struct rv__schema {
    const char *name, *text;             /* with ' for "; NULL: it is … */
    const struct rv__document *document; /* … described by this */
};
extern const struct rv__schema rv__schemas[];
extern const size_t rv__schema_count;

/* A parameter of the request. */
struct rv__given {
    bool given;
    const char *text; /* decoded */
    int64_t number;   /* PARAM_INT, _FLAG, _CHOICE */
    struct rv__str json;
};

struct rv__api_call {
    rv_engine *engine;
    const struct rv__api_request *request;
    const struct rv__route *route;
    struct rv__arena arena; /* for decoded texts */
    const char *names[RV__API_PARTS];
    struct rv__given params[RV__API_PARAMS];
    struct rv__given members[RV__API_MEMBERS];
    struct rv__str body;           /* BODY_ANY: checked JSON; empty: none */
    struct rv__buf out;            /* the document; if it is long, what is not in the file yet */
    struct rv__outfile file;       /* -1: the document is short */
    size_t in_file;                /* bytes */
    struct rv__api_answer *answer; /* written if the answer is not that document */
    bool answered;                 /* `answer` is complete */
};

/* The value of a parameter or member, by its name in the route's table. `_text`: NULL = not given. */
const struct rv__given *rv__api_param(const struct rv__api_call *call, const char *name);
const struct rv__given *rv__api_member(const struct rv__api_call *call, const char *name);
const char *rv__api_text(const struct rv__api_call *call, const char *name);
int64_t rv__api_int(const struct rv__api_call *call, const char *name); /* or the fallback */

/* Allow the bytes in `out` to be moved to the file: call it between the items of a list. */
void rv__api_piece(struct rv__api_call *call);
/* Write ,"key":json as rv__put_json() does, for a value that may be long. */
void rv__api_put_value(struct rv__api_call *call, const char *key, const char *json);

/* Answer with this problem; `out` is dropped. */
void rv__api_refuse(struct rv__api_call *call, int status, const char *fmt, ...) RV_PRINTF(3, 4);
/* Answer with the problem for an engine's error: the status by its code, its message as the detail. */
void rv__api_error(struct rv__api_call *call, const rv_error *err);
int rv__api_status(int code); /* of an engine's error */
/* Answer 422 with all violations. `in` says what the paths refer to: "input", "body". */
void rv__api_violations(struct rv__api_call *call, const char *in, const char *detail,
                        const rv_violations *bad);

/* A problem with more members after the usual ones: `more` is ,"name":value … */
void rv__api_problem_more(int status, const char *title, const char *detail, struct rv__str more,
                          struct rv__api_answer *ret);

/* The row of the run in the path; free with rv_run_list_free(). NULL: not found, and the answer is complete. */
rv_run_list *rv__api_run(struct rv__api_call *call);
bool rv__api_run_exists(struct rv__api_call *call); /* if not, the answer is complete */
/* Write {runId, status} of the run in the path. */
void rv__api_put_status(struct rv__api_call *call);

/* The filters of a list of runs; and ,"nextCursor":… for its next page. */
rv_query rv__api_query(const struct rv__api_call *call);
void rv__api_put_next(struct rv__api_call *call, const rv_run_list *list);

/* Parse; on failure the answer is complete. */
bool rv__api_read_query(struct rv__api_call *call);
bool rv__api_read_body(struct rv__api_call *call);
/* Percent-decoded, in the arena, NUL-terminated; NULL: not well-formed, not UTF-8, or no memory. */
const char *rv__api_decode(struct rv__arena *arena, struct rv__str text, bool plus_is_space);

/* The handlers. */
void rv__api_healthz(struct rv__api_call *call);
void rv__api_readyz(struct rv__api_call *call);
void rv__api_metrics(struct rv__api_call *call);
void rv__api_workers(struct rv__api_call *call);
void rv__api_members(struct rv__api_call *call);
void rv__api_openapi(struct rv__api_call *call);
void rv__api_workflows(struct rv__api_call *call);
void rv__api_workflow(struct rv__api_call *call);
void rv__api_start(struct rv__api_call *call);
void rv__api_source(struct rv__api_call *call);
void rv__api_counts(struct rv__api_call *call);
void rv__api_overview(struct rv__api_call *call);
void rv__api_bulk_cancel(struct rv__api_call *call);
void rv__api_bulk_again(struct rv__api_call *call);
void rv__api_runs(struct rv__api_call *call);
void rv__api_run_get(struct rv__api_call *call);
void rv__api_plan(struct rv__api_call *call);
void rv__api_nodes(struct rv__api_call *call);
void rv__api_node(struct rv__api_call *call);
void rv__api_why(struct rv__api_call *call);
void rv__api_wait(struct rv__api_call *call);
void rv__api_cancel(struct rv__api_call *call);
void rv__api_decide(struct rv__api_call *call);
void rv__api_signal(struct rv__api_call *call);
void rv__api_complete(struct rv__api_call *call);
void rv__api_logs(struct rv__api_call *call);
void rv__api_attachments(struct rv__api_call *call);
void rv__api_attachment(struct rv__api_call *call);
void rv__api_events(struct rv__api_call *call);
void rv__api_history(struct rv__api_call *call);
void rv__api_login(struct rv__api_call *call);
void rv__api_logout(struct rv__api_call *call);
void rv__api_session_get(struct rv__api_call *call);

extern const char *const rv__status_names[];
extern const char *const rv__waiting_names[];     /* ends in NULL */
extern const char *const rv__node_status_names[]; /* ends in NULL */
extern const char *const rv__attachment_status_names[];
extern const char *const rv__action_names[]; /* of decide; the first two as enum rv_decision */

#endif
