/* documents.c: what the documents of the API consist of, described once. /openapi.json is made from this, and with it
 * the types of the web UI; the command line reads answers by the same tables. Tests compare real answers with it.
 *
 * A document that is read into a struct is a table of members; any other is the text of its schema. Texts of schemas
 * have ' for " (none contains either). */
#include "server/api.h"

/* clang-format off */
#define TIME     "{'type':'integer','minimum':0,'description':'Milliseconds since 1970.'}"
#define MS       "{'type':'integer','minimum':0,'description':'Milliseconds.'}"
#define TIME_YET "{'type':['integer','null'],'minimum':0,'description':'Milliseconds since 1970; null: not yet.'}"
#define MS_YET   "{'type':['integer','null'],'minimum':0,'description':'Milliseconds; null: not over yet.'}"
#define COUNT    "{'type':'integer','minimum':0}"
#define TEXT     "{'type':'string'}"
#define SAYS(of) "{'type':'string','description':'" of "'}"
#define CURSOR   "{'type':['string','null']}"
#define REF(of)  "{'$ref':'#/components/schemas/" of "'}"
#define LIST(of) "{'type':'array','items':" REF(of) "}"
#define LEVELS   "{'enum':['debug','info','warn','error']}"
#define OBJECT(required, fields) \
    "{'type':'object','required':[" required "],'properties':{" fields "},'additionalProperties':false}"
#define FAILED_PATH SAYS("The deepest node that failed.")
#define OF_SIGNAL   SAYS("Of the signal.")
#define TOO_LARGE \
    "{'type':'integer','minimum':1,'description':'Bytes of the results, if these are more than " \
    "64 MB: then results is {}, and they are read node by node.'}"

/* A member that is always there, or may be, or is in the document only. `schema` NULL: as usual for its kind. */
#define MUST(key, kind, type, field, schema) { key, schema, RV__MEMBER_##kind, true, offsetof(type, field), 0, NULL }
#define MAY(key, kind, type, field, schema)  { key, schema, RV__MEMBER_##kind, false, offsetof(type, field), 0, NULL }
#define MUST_ONLY(key, schema)               { key, schema, RV__MEMBER_UNREAD, true, 0, 0, NULL }
#define MAY_ONLY(key, schema)                { key, schema, RV__MEMBER_UNREAD, false, 0, 0, NULL }
#define LIST_OF(key, type, field, count, of) \
    { key, NULL, RV__MEMBER_LIST, true, offsetof(type, field), offsetof(type, count), &(of) }
#define END { NULL, NULL, RV__MEMBER_UNREAD, false, 0, 0, NULL }
#define DOCUMENT(doc, name, type, says, ...) \
    const struct rv__document doc = { name, says, sizeof(type), { __VA_ARGS__ }, NULL }
#define DOCUMENT_LACKING(doc, name, type, lacks, ...) \
    const struct rv__document doc = { name, NULL, sizeof(type), { __VA_ARGS__ }, lacks }

/* ------------------------------------------------------------------------------------- runs --- */

static const struct rv__member run_members[] = {
    MUST("runId", RUN_ID, rv_run_state, run_id, NULL),
    MUST("workflow", NAME, rv_run_state, workflow, NULL),
    MUST("version", NAME, rv_run_state, version, NULL),
    MUST("status", STATUS, rv_run_state, status, NULL),
    MUST("createdAt", INT64, rv_run_state, created_at, TIME),
    MAY("startedAt", INT64, rv_run_state, started_at, TIME_YET),
    MAY("completedAt", INT64, rv_run_state, completed_at, TIME_YET),
    MAY("duration", INT64, rv_run_state, duration_ms, MS_YET),
    MAY("error", JSON, rv_run_state, error, REF("Error")),
    MAY("failedStep", NAME, rv_run_state, failed_step, NULL),
    MAY("failedPath", NAME, rv_run_state, failed_path, FAILED_PATH),
    MAY("suspension", JSON, rv_run_state, suspension, REF("Error")),
    MAY("waiting", NAME, rv_run_state, waiting,
        "{'enum':['somebody'],'description':'It waits for a signal or a decision.'}"),
    MAY("rerunOf", NAME, rv_run_state, rerun_of, SAYS("The id of the run that it repeats.")),
    MAY("suspensions", JSON, rv_run_state, suspensions, LIST("Suspension")),
    END,
};
static const struct rv__member run_row_members[] = {
    MAY_ONLY("inputSummary", SAYS("The beginning of its input, as text.")),
    END,
};
static const struct rv__member run_detail_members[] = {
    MUST("input", JSON, rv_run_state, input, NULL),
    MAY("results", JSON, rv_run_state, results, REF("Results")),
    MAY("resultsTooLarge", INT64, rv_run_state, results_too_large, TOO_LARGE),
    MUST_ONLY("steps", LIST("Node")),
    END,
};
static DOCUMENT_LACKING(run_document, "Run", rv_run_state, run_detail_members, run_members, run_row_members);
DOCUMENT(rv__doc_run_detail, "RunDetail", rv_run_state, NULL, run_members, run_detail_members);

static const struct rv__member run_list_members[] = {
    LIST_OF("runs", rv_run_list, runs, count, run_document),
    MUST("nextCursor", TEXT, rv_run_list, next, CURSOR),
    END,
};
DOCUMENT(rv__doc_run_list, "RunList", rv_run_list, NULL, run_list_members);

static const struct rv__member run_ref_members[] = {
    MUST("runId", RUN_ID, struct rv__run_ref, info.run_id, NULL),
    MUST("status", STATUS, struct rv__run_ref, info.status, NULL),
    MAY("validated", TEXT, struct rv__run_ref, validated,
        "{'const':'schema','description':'Of a start: the worker that validates inputs of this workflow was not "
        "connected; only the JSON Schema was checked.'}"),
    END,
};
DOCUMENT(rv__doc_run_ref, "RunRef", struct rv__run_ref, NULL, run_ref_members);

/* ------------------------------------------------------------------------------------ nodes --- */

static const struct rv__member iterations_members[] = {
    MAY("total", SIZE, rv_iterations, total, NULL),
    MUST("running", SIZE, rv_iterations, running, NULL),
    MUST("completed", SIZE, rv_iterations, completed, NULL),
    MUST("failed", SIZE, rv_iterations, failed, NULL),
    MUST("cancelled", SIZE, rv_iterations, cancelled, NULL),
    END,
};
static DOCUMENT(iterations_document, "Iterations", rv_iterations, NULL, iterations_members);

static const struct rv__member node_members[] = {
    MUST("path", NAME, rv_node, path, NULL),
    MUST("alias", NAME, rv_node, alias, NULL),
    MUST("kind", NAME, rv_node, kind,
         "{'enum':['step','workflow','branch','loop','forEach','concurrent','stage','iteration','path',"
         "'child','state','handler']}"),
    MUST("status", NAME, rv_node, status,
         "{'enum':['pending','running','waiting_retry','completed','failed','skipped','cancelled','suspended']}"),
    MAY("startedAt", INT64, rv_node, started_at, TIME),
    MAY("completedAt", INT64, rv_node, completed_at, TIME),
    MAY("duration", INT64, rv_node, duration_ms, MS),
    MAY("queueMs", INT64, rv_node, queue_ms, MS),
    MAY("dueAt", INT64, rv_node, due_at, TIME),
    MAY("attempt", INT, rv_node, attempt, NULL),
    MAY("retryCount", INT, rv_node, retry_count, NULL),
    MAY("crashes", INT, rv_node, crashes, NULL),
    MAY("module", MODULE, rv_node, module, NULL),
    MAY("error", JSON, rv_node, error, REF("Error")),
    MAY("errorAttempt", INT, rv_node, error_attempt, NULL),
    MAY("errorAt", INT64, rv_node, error_at, TIME),
    MAY("description", TEXT, rv_node, description, NULL),
    MUST("children", SIZE, rv_node, children, NULL),
    MAY("label", TEXT, rv_node, label, SAYS("Of an iteration: what it is called.")),
    MAY("itemSummary", TEXT, rv_node, item, SAYS("Of an iteration of a forEach: its item, as short text.")),
    { "iterations", NULL, RV__MEMBER_STRUCT, false, offsetof(rv_node, iterations), 0, &iterations_document },
    END,
};
static const struct rv__member node_detail_members[] = {
    MAY_ONLY("input", REF("Any")),
    MAY_ONLY("result", REF("Any")),
    MAY_ONLY("state", "{'type':'object'}"),
    MUST_ONLY("attempts", LIST("Attempt")),
    MAY_ONLY("earlierAttempts", COUNT),
    END,
};
static DOCUMENT(node_document, "Node", rv_node, NULL, node_members);
static DOCUMENT(node_detail_document, "NodeDetail", rv_node, NULL, node_members, node_detail_members);

static const struct rv__member node_list_members[] = {
    LIST_OF("nodes", rv_node_list, nodes, count, node_document),
    MUST("total", SIZE, rv_node_list, total, NULL),
    MUST_ONLY("offset", COUNT),
    END,
};
DOCUMENT(rv__doc_node_list, "NodeList", rv_node_list, NULL, node_list_members);

/* -------------------------------------------------------------------------------------- why --- */

static const struct rv__member waiting_node_members[] = {
    MUST("path", NAME, struct rv__waiting_node, path, NULL),
    MAY_ONLY("since", TIME),
    MAY_ONLY("dueAt", TIME),
    MAY_ONLY("attempt", COUNT),
    MAY("name", TEXT, struct rv__waiting_node, name, OF_SIGNAL),
    MAY_ONLY("asks", "{'type':'object','description':'What a tool asks a person: the signal is the answer.',"
                     "'required':['message','schema'],'properties':{'message':" TEXT ",'url':" TEXT
                     ",'schema':{'type':'object'}}}"),
    END,
};
static DOCUMENT(waiting_node_document, "WaitingNode", struct rv__waiting_node, NULL, waiting_node_members);

static const struct rv__member wait_members[] = {
    MUST("reason", NAME, struct rv__wait_told, reason, NULL),
    MUST("count", INT64, struct rv__wait_told, count, COUNT),
    MAY("since", INT64, struct rv__wait_told, since, TIME),
    MAY("dueAt", INT64, struct rv__wait_told, due_at, TIME),
    MUST("message", TEXT, struct rv__wait_told, message, NULL),
    MAY_ONLY("step", TEXT),
    MAY("name", TEXT, struct rv__wait_told, name, SAYS("Of the signal, or of the handle.")),
    MAY_ONLY("executor", TEXT),
    MAY("function", NAME, struct rv__wait_told, function, SAYS("Nobody offers it.")),
    MAY("secret", NAME, struct rv__wait_told, secret, SAYS("It has no value.")),
    MAY_ONLY("limit", TEXT),
    MAY_ONLY("limitSize", COUNT),
    MAY_ONLY("evaluating", TEXT),
    MAY_ONLY("attempt", COUNT),
    MAY("cause", JSON, struct rv__wait_told, cause, REF("Error")),
    LIST_OF("nodes", struct rv__wait_told, nodes, node_count, waiting_node_document),
    END,
};
static DOCUMENT(wait_document, "Wait", struct rv__wait_told, "Nodes that wait for the same.", wait_members);

static const struct rv__member why_members[] = {
    MUST_ONLY("runId", REF("RunId")),
    MUST("status", NAME, struct rv__why_told, status, REF("RunStatus")),
    MAY_ONLY("failedPath", FAILED_PATH),
    LIST_OF("waits", struct rv__why_told, waits, count, wait_document),
    MAY("others", INT64, struct rv__why_told, others,
        "{'type':'integer','minimum':0,'description':'Waits beyond those that are told.'}"),
    END,
};
DOCUMENT(rv__doc_why, "Why", struct rv__why_told, NULL, why_members);

/* --------------------------------------------------------------------- logs and attachments --- */

static const struct rv__member log_line_members[] = {
    MUST("id", UINT64, rv_log_line, id, NULL),
    MUST("level", LEVEL, rv_log_line, level, NULL),
    MUST("message", TEXT, rv_log_line, message, NULL),
    MUST("timestamp", INT64, rv_log_line, at, TIME),
    MAY("metadata", JSON, rv_log_line, metadata, NULL),
    MUST_ONLY("runId", REF("RunId")),
    MUST("stepName", NAME, rv_log_line, step, NULL),
    MUST("path", NAME, rv_log_line, path, NULL),
    MUST("attempt", INT, rv_log_line, attempt, NULL),
    MAY("kind", NAME, rv_log_line, kind, SAYS("stream: a piece of an answer, gone once that is recorded.")),
    END,
};
static DOCUMENT(log_line_document, "LogLine", rv_log_line, NULL, log_line_members);

static const struct rv__member log_list_members[] = {
    LIST_OF("logs", rv_log_list, lines, count, log_line_document),
    MUST("next", UINT64, rv_log_list, next, NULL),
    END,
};
DOCUMENT(rv__doc_log_list, "LogList", rv_log_list, NULL, log_list_members);

static const struct rv__member attachment_members[] = {
    MUST("id", NAME, rv_attachment, id, SAYS("[stage][state][agent]_YYMMDDTHHMMSS_attempt")),
    MUST("stage", NAME, rv_attachment, stage, NULL),
    MUST("state", NAME, rv_attachment, state, NULL),
    MUST("agent", NAME, rv_attachment, agent, NULL),
    MUST("path", NAME, rv_attachment, path, NULL),
    MUST("attempt", INT, rv_attachment, attempt, "{'type':'integer','minimum':0,'description':'From 0.'}"),
    MUST("status", NAME, rv_attachment, status, "{'enum':['init','running','finished','errored','skipped']}"),
    MUST("description", TEXT, rv_attachment, description, NULL),
    MUST("startedAt", INT64, rv_attachment, started_at, TIME),
    MUST("completedAt", INT64, rv_attachment, completed_at, "{'type':['integer','null']}"),
    MAY("superseded", BOOL, rv_attachment, superseded,
        "{'const':true,'description':'Its stage was started again later.'}"),
    END,
};
static const struct rv__member attachment_detail_members[] = {
    MAY("result", JSON, rv_attachment, result, NULL),
    MAY("error", JSON, rv_attachment, error, REF("Error")),
    END,
};
static DOCUMENT_LACKING(attachment_document, "Attachment", rv_attachment, attachment_detail_members,
                        attachment_members);
DOCUMENT(rv__doc_attachment_detail, "AttachmentDetail", rv_attachment, NULL, attachment_members,
         attachment_detail_members);

static const struct rv__member attachment_list_members[] = {
    LIST_OF("attachments", rv_attachment_list, attachments, count, attachment_document),
    MUST("total", SIZE, rv_attachment_list, total, NULL),
    MUST_ONLY("offset", COUNT),
    END,
};
DOCUMENT(rv__doc_attachment_list, "AttachmentList", rv_attachment_list, NULL, attachment_list_members);

/* ------------------------------------------------------------- workflows, members, problems --- */

static const struct rv__member workflow_members[] = {
    MUST("name", NAME, rv_workflow_info, name, NULL),
    MUST("description", TEXT, rv_workflow_info, description, NULL),
    MUST("version", NAME, rv_workflow_info, version, NULL),
    MUST("source", NAME, rv_workflow_info, source, SAYS("Its file; empty: registered by a program.")),
    MUST("stepCount", INT, rv_workflow_info, step_count, NULL),
    MAY("cannotStart", TEXT, rv_workflow_info, cannot_start,
        SAYS("Why no run can be started now, such as a secret without a value.")),
    MAY("inputSchema", JSON, rv_workflow_info, input_schema, NULL),
    END,
};
static const struct rv__member workflow_detail_members[] = {
    MUST_ONLY("plan", REF("Plan")),
    END,
};
static DOCUMENT(workflow_document, "Workflow", rv_workflow_info, NULL, workflow_members);
static DOCUMENT(workflow_detail_document, "WorkflowDetail", rv_workflow_info, NULL, workflow_members,
                workflow_detail_members);

static const struct rv__member workflow_list_members[] = {
    LIST_OF("workflows", rv_workflow_list, items, count, workflow_document),
    END,
};
DOCUMENT(rv__doc_workflow_list, "WorkflowList", rv_workflow_list, NULL, workflow_list_members);

static const struct rv__member store_member_members[] = {
    MUST("id", NAME, struct rv__store_member, id, NULL),
    MUST("process", NAME, struct rv__store_member, process, SAYS("Its number and machine.")),
    MUST("version", NAME, struct rv__store_member, version, NULL),
    MUST("runs", INT64, struct rv__store_member, runs, COUNT),
    MUST("since", INT64, struct rv__store_member, since, TIME),
    MUST("leaseUntil", INT64, struct rv__store_member, lease_until, TIME),
    MAY_ONLY("workers", SAYS("Where workers reach it.")),
    MAY_ONLY("self", "{'type':'boolean','description':'It answers this request.'}"),
    END,
};
static DOCUMENT(store_member_document, "Member", struct rv__store_member, NULL, store_member_members);

static const struct rv__member store_members_members[] = {
    LIST_OF("members", struct rv__store_members, items, count, store_member_document),
    END,
};
DOCUMENT(rv__doc_members, "Members", struct rv__store_members,
         "The processes that share the store; none, where one process drives it.", store_members_members);

static const struct rv__member violation_members[] = {
    MUST("path", NAME, rv_violation, path, NULL),
    MUST("message", TEXT, rv_violation, message, NULL),
    END,
};
static DOCUMENT(violation_document, "Violation", rv_violation, NULL, violation_members);

static const struct rv__member problem_members[] = {
    MUST_ONLY("type", TEXT),
    MUST_ONLY("title", TEXT),
    MUST_ONLY("status", COUNT),
    MUST_ONLY("detail", TEXT),
    MAY("in", NAME, struct rv__problem, in, "{'enum':['input','body'],'description':'422: what the paths point into.'}"),
    { "violations", NULL, RV__MEMBER_LIST, false, offsetof(struct rv__problem, violations.items),
      offsetof(struct rv__problem, violations.count), &violation_document },
    MAY_ONLY("paths", "{'type':'array','description':'409: what waits for a decision.','items':" TEXT "}"),
    MAY("code", NAME, struct rv__problem, code, NULL),
    MAY("omitted", SIZE, struct rv__problem, violations.dropped, NULL),
    MAY_ONLY("runStatus", REF("RunStatus")),
    MAY_ONLY("since", TIME),
    MAY_ONLY("attempts", COUNT),
    END,
};
DOCUMENT(rv__doc_problem, "Problem", struct rv__problem, "RFC 9457.", problem_members);

/* ------------------------------------------------------------------------------ all of them --- */

#define BULK_REQUIRED "'matched','done','unchanged','failed','nextCursor'"
#define BULK_FIELDS \
    "'matched':" COUNT ",'done':" COUNT ",'unchanged':" COUNT ",'failed':{'type':'array','items':" \
    OBJECT("'runId','detail'", "'runId':" REF("RunId") ",'detail':" TEXT) \
    "},'nextCursor':" CURSOR
#define HANDLER "{'oneOf':[" LIST("PlanNode") "," REF("PlanNode") "]}"

const struct rv__schema rv__schemas[] = {
    { "Any", "{'description':'Any JSON.'}", NULL },
    { "RunId", "{'type':'string','pattern':'^[A-Za-z0-9._:-]{1,128}$'}", NULL },
    { "RunStatus", "{'enum':['running','suspended','completed','failed','cancelled']}", NULL },
    { "Error",
      "{'type':'object','description':'What went wrong.','required':['message'],'properties':"
      "{'message':" TEXT ",'code':{'description':'A short stable word: see the reference of errors.'}"
      ",'exitCode':{'type':'integer','description':'Of a command.'}"
      ",'path':{'type':'string','description':'The node that failed; of a supervisor, the deepest in it.'}"
      ",'cause':{'type':'object','description':'Of an aborted run: why it had been suspended.','properties':{'message':" TEXT "}}"
      ",'stack':" TEXT ",'attemptNumber':" COUNT ",'occurredAt':" TIME "}}", NULL },
    { "Suspension",
      "{'type':'object','description':'What waits for a decision; without a path the run as a whole.',"
      "'required':['reason','since','actions'],'properties':{'path':" TEXT ",'reason':" REF("Error")
      ",'since':" TIME ",'actions':{'type':'array','items':{'enum':['resume','skip','abort','restart_stage']}}}}", NULL },
    { NULL, NULL, &rv__doc_run_ref },
    { NULL, NULL, &run_document },
    { NULL, NULL, &rv__doc_run_list },
    { "RunCounts",
      OBJECT("'running','suspended','completed','failed','cancelled','waiting'",
             "'running':" COUNT ",'suspended':" COUNT ",'completed':" COUNT ",'failed':" COUNT
             ",'cancelled':" COUNT ",'waiting':" COUNT), NULL },
    { "Fared",
      OBJECT("'ended','failed'", "'ended':" COUNT ",'failed':" COUNT), NULL },
    { "WorkflowFared",
      OBJECT("'workflow','ended','failed','hours'",
             "'workflow':" TEXT ",'ended':" COUNT ",'failed':" COUNT
             ",'medianMs':{'type':'integer','minimum':0,'description':'Half of those that completed took about this long or less.'}"
             ",'slowest':" OBJECT("'runId','duration'", "'runId':" REF("RunId") ",'duration':" MS)
             ",'hours':{'type':'array','description':'24, the oldest first; the last one is under way.','items':" REF("Fared") "}"), NULL },
    { "LongWaiting",
      OBJECT("'runId','workflow','status','createdAt'",
             "'runId':" REF("RunId") ",'workflow':" TEXT ",'status':" REF("RunStatus") ",'createdAt':" TIME
             ",'suspension':" REF("Error")), NULL },
    { "Overview",
      OBJECT("'from','to','complete','others','workflows','oldestWaiting','counts','health'",
             "'from':" TIME ",'to':" TIME
             ",'complete':{'type':'boolean','description':'False: not all that has ended is counted yet. Ask again.'}"
             ",'others':{'type':'integer','minimum':0,'description':'Runs that ended of workflows beyond the first 200.'}"
             ",'workflows':" LIST("WorkflowFared") ",'oldestWaiting':" LIST("LongWaiting") ",'counts':" REF("RunCounts")
             ",'health':" REF("StoreHealth")), NULL },
    { NULL, NULL, &store_member_document },
    { NULL, NULL, &rv__doc_members },
    { "StoreHealth",
      OBJECT("'ok','bytes'",
             "'ok':{'type':'boolean','description':'The store takes writes.'},'since':" TIME ",'attempts':" COUNT
             ",'reason':" TEXT ",'bytes':{'type':'integer','minimum':0,'description':'Of all that is in the store.'}"), NULL },
    { "Bulk", OBJECT(BULK_REQUIRED, BULK_FIELDS), NULL },
    { "BulkAgain",
      OBJECT(BULK_REQUIRED ",'started'",
             BULK_FIELDS ",'started':{'type':'array','items':"
             OBJECT("'runId','rerunOf'", "'runId':" REF("RunId") ",'rerunOf':" REF("RunId")) "}"), NULL },
    { "Source",
      OBJECT("'name','source','language','text'",
             "'name':" TEXT ",'source':{'type':'string','description':'Its file.'},'language':{'enum':"
             "['yaml','json','c','typescript','javascript','text']},'text':" TEXT), NULL },
    { NULL, NULL, &rv__doc_run_detail },
    { "Results",
      "{'type':'object','description':'By alias, the top-level nodes that were reached.',"
      "'additionalProperties':{'type':'object','required':['status'],'properties':"
      "{'result':{},'state':{'type':'object'},'status':" TEXT ",'error':" REF("Error") "}}}", NULL },
    { "Outcome",
      OBJECT("'runId','status','results'",
             "'runId':" REF("RunId") ",'status':{'enum':['completed','failed','cancelled']}"
             ",'results':" REF("Results") ",'resultsTooLarge':" TOO_LARGE ",'error':" REF("Error") ",'failedStep':" TEXT ",'failedPath':" FAILED_PATH), NULL },
    { NULL, NULL, &iterations_document },
    { NULL, NULL, &node_document },
    { NULL, NULL, &rv__doc_node_list },
    { NULL, NULL, &node_detail_document },
    { "Attempt",
      OBJECT("'attempt','outcome','startedAt','queueMs'",
             "'attempt':" COUNT ",'outcome':{'enum':['running','completed','failed','skipped',"
             "'cancelled','lost']},'startedAt':" TIME ",'completedAt':" TIME ",'queueMs':" MS
             ",'downSince':{'type':'integer','minimum':0,'description':'Lost with the engine: when that was last heard of.'}"
             ",'dueAt':" TIME ",'module':{'type':'string','description':'Of a function of a C file: the "
             "hash of what was loaded.'},'error':" REF("Error")
             ",'input':{'type':'object','description':'What it was given: argv, stdin, env, cwd; method, url, "
             "headers, body; delay, signal; values by path (.input.id). Secrets masked, at most 16 KB.'}"), NULL },
    { "PlanNode",
      "{'type':'object','description':'A node of a plan; which members it has follows from its type; a sequence in a concurrent block "
      "has none.','properties':{'type':{'enum':['step','workflow','branch','loop','forEach',"
      "'concurrent','stage','chat']},'alias':" TEXT ",'description':" REF("Any") ",'when':" REF("Any")
      ",'kind':{'type':'string','description':'Of a step: function, command, http, delay, value, call, signal, …'}"
      ",'name':{'type':'string','description':'Of a step: the function; of a workflow: which.'},'with':" REF("Any")
      ",'if':" REF("Any") ",'then':" LIST("PlanNode") ",'else':" LIST("PlanNode")
      ",'body':" LIST("PlanNode") ",'while':" REF("Any") ",'until':" REF("Any") ",'maxIterations':" COUNT
      ",'items':" REF("Any") ",'label':" REF("Any") ",'run':{'oneOf':[" LIST("PlanNode") "," REF("PlanNode") "]},'parallel':{'type':'boolean'}"
      ",'concurrency':" COUNT ",'onFailure':" REF("Any") ",'input':" REF("Any") ",'inputSchema':" REF("Any")
      ",'steps':" LIST("PlanNode") ",'nodes':" LIST("PlanNode") ",'states':" LIST("PlanState") ",'onError':" HANDLER
      "}}", NULL },
    { "PlanState",
      "{'type':'object','description':'A state of a stage.','required':['alias'],'properties':{'alias':" TEXT
      ",'priority':{'type':'integer','description':'100 if it is left out.'},'critical':{'type':'boolean'},'final':"
      "{'type':'boolean'},'maxRetry':" COUNT ",'timeout':" MS
      ",'onFailure':{'type':'string','description':'The state that runs before a retry.'},'access':"
      "{'type':'string','enum':['none','logs','explicit','all'],'description':'all if it is left out.'},'agentId':" TEXT
      ",'dependsOn':{'type':'object','additionalProperties':{'type':'object','required':['state'],'properties':"
      "{'state':" TEXT ",'stage':" TEXT ",'field':" TEXT "}}},'agent':" REF("PlanNode") "}}", NULL },
    { "Plan",
      "{'type':'object','required':['type','alias','name','steps'],'properties':{'type':"
      "{'const':'workflow'},'alias':" TEXT ",'name':" TEXT ",'description':" REF("Any") ",'inputSchema':" REF("Any")
      ",'steps':" LIST("PlanNode") ",'onError':" HANDLER ",'finally':" HANDLER "}}", NULL },
    { NULL, NULL, &waiting_node_document },
    { NULL, NULL, &wait_document },
    { NULL, NULL, &rv__doc_why },
    { NULL, NULL, &log_line_document },
    { NULL, NULL, &rv__doc_log_list },
    { NULL, NULL, &attachment_document },
    { NULL, NULL, &rv__doc_attachment_list },
    { NULL, NULL, &rv__doc_attachment_detail },
    { "Event",
      "{'type':'object','required':['seq','index','kind','runId','workflow','at'],'properties':{'seq':" COUNT
      ",'index':" COUNT ",'kind':" TEXT ",'runId':" REF("RunId") ",'workflow':" TEXT ",'at':" TIME
      ",'path':" TEXT ",'status':" REF("RunStatus") ",'attempt':" COUNT ",'error':" REF("Error") ",'dueAt':" TIME
      ",'by':{'type':'string','description':'Who did it: the name of the token, or the user.'}"
      ",'reason':" REF("Error") ",'decision':{'enum':['resume','skip','restart_stage','abort']}"
      ",'version':" TEXT ",'input':" REF("Any") ",'inputBytes':" COUNT ",'result':" REF("Any") ",'resultBytes':" COUNT
      ",'state':{'type':'object'},'stateBytes':" COUNT ",'errorBytes':" COUNT ",'reasonBytes':" COUNT
      ",'description':" REF("Any") ",'descriptionBytes':" COUNT
      ",'stops':{'type':'boolean','description':'The failure fails its sequence.'}"
      ",'failedStep':" TEXT ",'failedPath':" FAILED_PATH ",'name':" OF_SIGNAL ""
      ",'payload':" REF("Any") ",'payloadBytes':" COUNT ",'succeed':{'type':'boolean'},'next':" TEXT ",'to':" TEXT
      ",'level':" LEVELS ",'message':" TEXT ",'metadata':" REF("Any") ",'stepName':" TEXT
      ",'stream':{'type':'boolean','description':'The line is a piece of an answer, gone once that is recorded.'}"
      "},'additionalProperties':false}", NULL },
    { "History",
      OBJECT("'events','next','more'",
             "'events':" LIST("Event") ",'next':{'type':['string','null'],'description':'`after` of the next page.'}"
             ",'more':{'type':'boolean','description':'False: that was all, as of now.'}"), NULL },
    { NULL, NULL, &workflow_document },
    { NULL, NULL, &workflow_detail_document },
    { NULL, NULL, &rv__doc_workflow_list },
    { "Session",
      OBJECT("'role','authRequired'", "'role':{'enum':['none','worker','viewer','operator','admin']},"
             "'name':{'type':'string','description':'Of the owner of the token.'},"
             "'authRequired':{'type':'boolean','description':'There is a token file.'}"), NULL },
    { "Health", OBJECT("'status'", "'status':{'const':'ok'},'workflows':" COUNT), NULL },
    { "Worker",
      OBJECT("'name','credits','busy','local'",
             "'name':{'type':'string','description':'As it calls itself; may be empty.'},'credits':"
             "{'type':'integer','minimum':0,'description':'Steps that it takes at once.'},'busy':"
             "{'type':'integer','minimum':0,'description':'Steps that it has.'},'local':{'type':'boolean',"
             "'description':'It is a process of the same machine.'}"), NULL },
    { "Workers",
      OBJECT("'protocol','listen','socket','connections'",
             "'protocol':{'const':2},'listen':{'description':'The TCP address; null: there is none.','oneOf':"
             "[{'type':'null'}," OBJECT("'host','port','tls'", "'host':" TEXT ",'port':" COUNT ",'tls':{'type':'boolean'}")
             "]},'socket':{'type':['string','null'],'description':'The Unix socket beside the store, for callers on the "
             "same machine.'},'connections':" LIST("Worker")), NULL },
    { NULL, NULL, &violation_document },
    { NULL, NULL, &rv__doc_problem },
};
/* clang-format on */
const size_t rv__schema_count = sizeof rv__schemas / sizeof *rv__schemas;
