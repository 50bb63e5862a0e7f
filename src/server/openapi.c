/* openapi.c: /openapi.json, made from the table of routes, so that it matches the checks.
 *
 * The table does not have the schemas of answers. They are written here, with ' for " (no text contains either),
 * and tests compare real answers with them. */
#include "server/api.h"

/* clang-format off */
#define TIME     "{'type':'integer','minimum':0,'description':'Milliseconds since 1970.'}"
#define MS       "{'type':'integer','minimum':0,'description':'Milliseconds.'}"
#define TIME_YET "{'type':['integer','null'],'minimum':0,'description':'Milliseconds since 1970; null: not yet.'}"
#define MS_YET   "{'type':['integer','null'],'minimum':0,'description':'Milliseconds; null: not over yet.'}"
#define TOO_LARGE                                                                              \
    "{'type':'integer','minimum':1,'description':'Bytes of the results, if these are more than " \
    "64 MB: then results is {}, and they are read node by node.'}"
#define COUNT    "{'type':'integer','minimum':0}"
#define TEXT     "{'type':'string'}"
#define REF(of)  "{'$ref':'#/components/schemas/" of "'}"
#define LIST(of) "{'type':'array','items':" REF(of) "}"
#define OBJECT(required, fields) \
    "{'type':'object','required':[" required "],'properties':{" fields "},'additionalProperties':false}"

#define FAILED_PATH "{'type':'string','description':'The deepest node that failed.'}"
#define RUN_FIELDS \
    "'runId':" REF("RunId") ",'workflow':" TEXT ",'version':" TEXT ",'status':" REF("RunStatus") \
    ",'createdAt':" TIME ",'startedAt':" TIME_YET ",'completedAt':" TIME_YET ",'duration':" MS_YET \
    ",'error':" REF("Error") ",'failedStep':" TEXT ",'failedPath':" FAILED_PATH ",'suspension':" REF("Error") \
    ",'waiting':{'enum':['somebody'],'description':'It waits for a signal or a decision.'}" \
    ",'rerunOf':{'type':'string','description':'The id of the run that it repeats.'}" \
    ",'suspensions':" LIST("Suspension")
#define BULK_REQUIRED "'matched','done','unchanged','failed','nextCursor'"
#define BULK_FIELDS \
    "'matched':" COUNT ",'done':" COUNT ",'unchanged':" COUNT ",'failed':{'type':'array','items':" \
    OBJECT("'runId','detail'", "'runId':" REF("RunId") ",'detail':" TEXT) \
    "},'nextCursor':{'type':['string','null']}"
#define NODE_KINDS \
    "{'enum':['step','workflow','branch','loop','forEach','concurrent','stage','iteration','path'," \
    "'child','state','handler']}"
#define NODE_STATUSES \
    "{'enum':['pending','running','waiting_retry','completed','failed','skipped','cancelled'," \
    "'suspended']}"
#define NODE_FIELDS \
    "'path':" TEXT ",'alias':" TEXT ",'kind':" NODE_KINDS ",'status':" NODE_STATUSES \
    ",'startedAt':" TIME ",'completedAt':" TIME ",'duration':" MS ",'queueMs':" MS ",'dueAt':" TIME \
    ",'attempt':" COUNT ",'retryCount':" COUNT ",'crashes':" COUNT ",'module':" TEXT ",'error':" REF("Error") \
    ",'errorAttempt':" COUNT ",'errorAt':" TIME ",'description':" TEXT ",'children':" COUNT \
    ",'label':{'type':'string','description':'Of an iteration: what it is called.'}" \
    ",'itemSummary':{'type':'string','description':'Of an iteration of a forEach: its item, as short text.'}" \
    ",'iterations':" REF("Iterations")
#define WORKFLOW_FIELDS \
    "'name':" TEXT ",'description':" TEXT ",'version':" TEXT ",'source':{'type':'string','description':'Its file; empty: registered by a program.'},'stepCount':" COUNT ",'cannotStart':{'type':'string'," \
    "'description':'Why no run can be started now, such as a secret without a value.'},'inputSchema':" REF("Any")

#define HANDLER "{'oneOf':[" LIST("PlanNode") "," REF("PlanNode") "]}"

#define ATTACHMENT_REQUIRED \
    "'id','stage','state','agent','path','attempt','status','description','startedAt','completedAt'"
#define ATTACHMENT_FIELDS \
    "'id':{'type':'string','description':'[stage][state][agent]_YYMMDDTHHMMSS_attempt'},'stage':" TEXT \
    ",'state':" TEXT ",'agent':" TEXT ",'path':" TEXT \
    ",'attempt':{'type':'integer','minimum':0,'description':'From 0.'}" \
    ",'status':{'enum':['init','running','finished','errored','skipped']},'description':" TEXT \
    ",'startedAt':" TIME ",'completedAt':{'type':['integer','null']},'superseded':{'const':true,'description':'Its stage was started again later.'}"
static const struct {
    const char *name, *schema;
} schemas[] = {
    { "Any", "{'description':'Any JSON.'}" },
    { "RunId", "{'type':'string','pattern':'^[A-Za-z0-9._:-]{1,128}$'}" },
    { "RunStatus", "{'enum':['running','suspended','completed','failed','cancelled']}" },
    { "Error",
      "{'type':'object','description':'What went wrong.','required':['message'],'properties':"
      "{'message':" TEXT ",'code':{'description':'A short stable word: see the reference of errors.'}"
      ",'exitCode':{'type':'integer','description':'Of a command.'}"
      ",'path':{'type':'string','description':'The node that failed; of a supervisor, the deepest in it.'}"
      ",'cause':{'type':'object','description':'Of an aborted run: why it had been suspended.','properties':{'message':" TEXT "}}"
      ",'stack':" TEXT ",'attemptNumber':" COUNT ",'occurredAt':" TIME "}}" },
    { "Suspension",
      "{'type':'object','description':'What waits for a decision; without a path the run as a whole.',"
      "'required':['reason','since','actions'],'properties':{'path':" TEXT ",'reason':" REF("Error")
      ",'since':" TIME ",'actions':{'type':'array','items':{'enum':['resume','skip','abort','restart_stage']}}}}" },
    { "RunRef",
      OBJECT("'runId','status'", "'runId':" REF("RunId") ",'status':" REF("RunStatus")
             ",'validated':{'const':'schema','description':'Of a start: the worker that validates inputs of this workflow was not connected; only the JSON Schema was checked.'}") },
    { "Run",
      OBJECT("'runId','workflow','version','status','createdAt'",
             RUN_FIELDS ",'inputSummary':{'type':'string','description':'The beginning of its input, as text.'}") },
    { "RunList",
      OBJECT("'runs','nextCursor'", "'runs':" LIST("Run") ",'nextCursor':{'type':['string','null']}") },
    { "RunCounts",
      OBJECT("'running','suspended','completed','failed','cancelled','waiting'",
             "'running':" COUNT ",'suspended':" COUNT ",'completed':" COUNT ",'failed':" COUNT
             ",'cancelled':" COUNT ",'waiting':" COUNT) },
    { "Fared",
      OBJECT("'ended','failed'", "'ended':" COUNT ",'failed':" COUNT) },
    { "WorkflowFared",
      OBJECT("'workflow','ended','failed','hours'",
             "'workflow':" TEXT ",'ended':" COUNT ",'failed':" COUNT
             ",'medianMs':{'type':'integer','minimum':0,'description':'Half of those that completed took about this long or less.'}"
             ",'slowest':" OBJECT("'runId','duration'", "'runId':" REF("RunId") ",'duration':" MS)
             ",'hours':{'type':'array','description':'24, the oldest first; the last one is under way.','items':" REF("Fared") "}") },
    { "LongWaiting",
      OBJECT("'runId','workflow','status','createdAt'",
             "'runId':" REF("RunId") ",'workflow':" TEXT ",'status':" REF("RunStatus") ",'createdAt':" TIME
             ",'suspension':" REF("Error")) },
    { "Overview",
      OBJECT("'from','to','complete','others','workflows','oldestWaiting','counts','health'",
             "'from':" TIME ",'to':" TIME
             ",'complete':{'type':'boolean','description':'False: not all that has ended is counted yet. Ask again.'}"
             ",'others':{'type':'integer','minimum':0,'description':'Runs that ended of workflows beyond the first 200.'}"
             ",'workflows':" LIST("WorkflowFared") ",'oldestWaiting':" LIST("LongWaiting") ",'counts':" REF("RunCounts")
             ",'health':" REF("StoreHealth")) },
    { "Members",
      OBJECT("'members'",
             "'members':{'type':'array','description':'None, where one process drives the store.','items':"
             OBJECT("'id','process','version','runs','since','leaseUntil'",
                    "'id':" TEXT ",'process':{'type':'string','description':'Its number and machine.'},'version':" TEXT
                    ",'runs':" COUNT ",'since':" TIME ",'leaseUntil':" TIME
                    ",'self':{'type':'boolean','description':'It answers this request.'}") "}") },
    { "StoreHealth",
      OBJECT("'ok','bytes'",
             "'ok':{'type':'boolean','description':'The store takes writes.'},'since':" TIME ",'attempts':" COUNT
             ",'reason':" TEXT ",'bytes':{'type':'integer','minimum':0,'description':'Of all that is in the store.'}") },
    { "Bulk", OBJECT(BULK_REQUIRED, BULK_FIELDS) },
    { "BulkAgain",
      OBJECT(BULK_REQUIRED ",'started'",
             BULK_FIELDS ",'started':{'type':'array','items':"
             OBJECT("'runId','rerunOf'", "'runId':" REF("RunId") ",'rerunOf':" REF("RunId")) "}") },
    { "Source",
      OBJECT("'name','source','language','text'",
             "'name':" TEXT ",'source':{'type':'string','description':'Its file.'},'language':{'enum':"
             "['yaml','json','c','typescript','javascript','text']},'text':" TEXT) },
    { "RunDetail",
      OBJECT("'runId','workflow','version','status','createdAt','input','steps'",
             RUN_FIELDS ",'input':" REF("Any") ",'results':" REF("Results") ",'resultsTooLarge':" TOO_LARGE ",'steps':" LIST("Node")) },
    { "Results",
      "{'type':'object','description':'By alias, the top-level nodes that were reached.',"
      "'additionalProperties':{'type':'object','required':['status'],'properties':"
      "{'result':{},'state':{'type':'object'},'status':" TEXT ",'error':" REF("Error") "}}}" },
    { "Outcome",
      OBJECT("'runId','status','results'",
             "'runId':" REF("RunId") ",'status':{'enum':['completed','failed','cancelled']}"
             ",'results':" REF("Results") ",'resultsTooLarge':" TOO_LARGE ",'error':" REF("Error") ",'failedStep':" TEXT ",'failedPath':" FAILED_PATH) },
    { "Iterations",
      OBJECT("'running','completed','failed','cancelled'",
             "'total':" COUNT ",'running':" COUNT ",'completed':" COUNT ",'failed':" COUNT
             ",'cancelled':" COUNT) },
    { "Node", OBJECT("'path','alias','kind','status','children'", NODE_FIELDS) },
    { "NodeList",
      OBJECT("'nodes','total','offset'", "'nodes':" LIST("Node") ",'total':" COUNT ",'offset':" COUNT) },
    { "NodeDetail",
      OBJECT("'path','alias','kind','status','children','attempts'",
             NODE_FIELDS ",'input':" REF("Any") ",'result':" REF("Any") ",'state':{'type':'object'}"
             ",'attempts':" LIST("Attempt") ",'earlierAttempts':" COUNT) },
    { "Attempt",
      OBJECT("'attempt','outcome','startedAt','queueMs'",
             "'attempt':" COUNT ",'outcome':{'enum':['running','completed','failed','skipped',"
             "'cancelled','lost']},'startedAt':" TIME ",'completedAt':" TIME ",'queueMs':" MS
             ",'downSince':{'type':'integer','minimum':0,'description':'Lost with the engine: when that was last heard of.'}"
             ",'dueAt':" TIME ",'module':{'type':'string','description':'Of a function of a C file: the "
             "hash of what was loaded.'},'error':" REF("Error")
             ",'input':{'type':'object','description':'What it was given: argv, stdin, env, cwd; method, url, "
             "headers, body; delay, signal; values by path (.input.id). Secrets masked, at most 16 KB.'}") },
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
      "}}" },
    { "PlanState",
      "{'type':'object','description':'A state of a stage.','required':['alias'],'properties':{'alias':" TEXT
      ",'priority':{'type':'integer','description':'100 if it is left out.'},'critical':{'type':'boolean'},'final':"
      "{'type':'boolean'},'maxRetry':" COUNT ",'timeout':" MS
      ",'onFailure':{'type':'string','description':'The state that runs before a retry.'},'access':"
      "{'type':'string','enum':['none','logs','explicit','all'],'description':'all if it is left out.'},'agentId':" TEXT
      ",'dependsOn':{'type':'object','additionalProperties':{'type':'object','required':['state'],'properties':"
      "{'state':" TEXT ",'stage':" TEXT ",'field':" TEXT "}}},'agent':" REF("PlanNode") "}}" },
    { "Plan",
      "{'type':'object','required':['type','alias','name','steps'],'properties':{'type':"
      "{'const':'workflow'},'alias':" TEXT ",'name':" TEXT ",'description':" REF("Any") ",'inputSchema':" REF("Any")
      ",'steps':" LIST("PlanNode") ",'onError':" HANDLER ",'finally':" HANDLER "}}" },
    { "WaitingNode",
      OBJECT("'path'", "'path':" TEXT ",'since':" TIME ",'dueAt':" TIME ",'attempt':" COUNT
             ",'name':{'type':'string','description':'Of the signal.'}") },
    { "Wait",
      "{'type':'object','description':'Nodes that wait for the same.','required':"
      "['reason','count','message','nodes'],'properties':{'reason':" TEXT ",'count':" COUNT
      ",'since':" TIME ",'dueAt':" TIME ",'message':" TEXT ",'step':" TEXT
      ",'name':{'type':'string','description':'Of the signal.'},'executor':" TEXT
      ",'function':{'type':'string','description':'Nobody offers it.'}"
      ",'limit':" TEXT ",'limitSize':" COUNT ",'evaluating':" TEXT ",'attempt':" COUNT
      ",'cause':" REF("Error") ",'nodes':" LIST("WaitingNode") "}}" },
    { "Why",
      "{'type':'object','required':['runId','status','waits'],'properties':{'runId':" REF("RunId")
      ",'status':" REF("RunStatus") ",'failedPath':" FAILED_PATH ",'waits':" LIST("Wait")
      ",'others':{'type':'integer','minimum':0,'description':'Waits beyond those that are told.'}}}" },
    { "LogLine",
      OBJECT("'id','level','message','timestamp','workflowId','stepName','path','attempt'",
             "'id':" COUNT ",'level':{'enum':['debug','info','warn','error']},'message':" TEXT
             ",'timestamp':" TIME ",'metadata':" REF("Any") ",'workflowId':" REF("RunId")
             ",'stepName':" TEXT ",'path':" TEXT ",'attempt':" COUNT
             ",'kind':{'type':'string','description':'stream: a piece of an answer, gone once that is recorded.'}") },
    { "LogList", OBJECT("'logs','next'", "'logs':" LIST("LogLine") ",'next':" COUNT) },
    { "Attachment", OBJECT(ATTACHMENT_REQUIRED, ATTACHMENT_FIELDS) },
    { "AttachmentList",
      OBJECT("'attachments','total','offset'",
             "'attachments':" LIST("Attachment") ",'total':" COUNT ",'offset':" COUNT) },
    { "AttachmentDetail",
      OBJECT(ATTACHMENT_REQUIRED, ATTACHMENT_FIELDS ",'result':" REF("Any") ",'error':" REF("Error")) },
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
      ",'failedStep':" TEXT ",'failedPath':" FAILED_PATH ",'name':{'type':'string','description':'Of the signal.'}"
      ",'payload':" REF("Any") ",'payloadBytes':" COUNT ",'succeed':{'type':'boolean'},'next':" TEXT ",'to':" TEXT
      ",'level':{'enum':['debug','info','warn','error']},'message':" TEXT ",'metadata':" REF("Any") ",'stepName':" TEXT
      ",'stream':{'type':'boolean','description':'The line is a piece of an answer, gone once that is recorded.'}"
      "},'additionalProperties':false}" },
    { "History",
      OBJECT("'events','next','more'",
             "'events':" LIST("Event") ",'next':{'type':['string','null'],'description':'`after` of the next page.'}"
             ",'more':{'type':'boolean','description':'False: that was all, as of now.'}") },
    { "Workflow", OBJECT("'name','description','version','source','stepCount'", WORKFLOW_FIELDS) },
    { "WorkflowDetail",
      OBJECT("'name','description','version','source','stepCount','plan'",
             WORKFLOW_FIELDS ",'plan':" REF("Plan")) },
    { "WorkflowList", OBJECT("'workflows'", "'workflows':" LIST("Workflow")) },
    { "Session",
      OBJECT("'role','authRequired'", "'role':{'enum':['none','worker','viewer','operator','admin']},"
             "'name':{'type':'string','description':'Of the owner of the token.'},"
             "'authRequired':{'type':'boolean','description':'There is a token file.'}") },
    { "Health", OBJECT("'status'", "'status':{'const':'ok'},'workflows':" COUNT) },
    { "Worker",
      OBJECT("'name','credits','busy','local'",
             "'name':{'type':'string','description':'As it calls itself; may be empty.'},'credits':"
             "{'type':'integer','minimum':0,'description':'Steps that it takes at once.'},'busy':"
             "{'type':'integer','minimum':0,'description':'Steps that it has.'},'local':{'type':'boolean',"
             "'description':'It is a process of the same machine.'}") },
    { "Workers",
      OBJECT("'protocol','listen','socket','connections'",
             "'protocol':{'const':2},'listen':{'description':'The TCP address; null: there is none.','oneOf':"
             "[{'type':'null'}," OBJECT("'host','port','tls'", "'host':" TEXT ",'port':" COUNT ",'tls':{'type':'boolean'}")
             "]},'socket':{'type':['string','null'],'description':'The Unix socket beside the store, for callers on the "
             "same machine.'},'connections':" LIST("Worker")) },
    { "Problem",
      "{'type':'object','description':'RFC 9457.','required':['type','title','status','detail'],"
      "'properties':{'type':" TEXT ",'title':" TEXT ",'status':" COUNT ",'detail':" TEXT
      ",'in':{'enum':['input','body'],'description':'422: what the paths point into.'}"
      ",'violations':{'type':'array','items':"
      OBJECT("'path','message'", "'path':" TEXT ",'message':" TEXT)
      "},'paths':{'type':'array','description':'409: what waits for a decision.','items':" TEXT "},'code':" TEXT
      ",'omitted':" COUNT ",'runStatus':" REF("RunStatus") ",'since':" TIME ",'attempts':" COUNT
      "}}" },
};
/* clang-format on */

static void put_quoted(struct rv__buf *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\'')
            rv__buf_char(out, '"');
        else
            rv__buf_char(out, *text);
}

static const char *means(int status)
{
    switch (status) {
    case 400: return "The request is malformed.";
    case 401: return "The token is missing or unknown.";
    case 403: return "The token's role does not allow this.";
    case 404: return "Not found.";
    case 408: return "The run has not ended in that time; runStatus has its status.";
    case 409: return "Not possible in the run's present state; or another run has this id.";
    case 410: return "Retention has removed the next events.";
    case 413: return "The body is too large.";
    case 415: return "The body is not JSON.";
    case 422: return "The input is refused; violations lists every reason with its place.";
    case 429: return "A limit is reached; try again later.";
    case 503: return "The store cannot be written, or the server is shutting down.";
    default: return "An error.";
    }
}

/* Without the closing brace. */
static void put_schema_of(struct rv__buf *out, const struct rv__param *param)
{
    switch (param->kind) {
    case PARAM_TEXT: rv__buf_text(out, "{\"type\":\"string\""); break;
    case PARAM_INT:
        rv__buf_fmt(out, "{\"type\":\"integer\",\"minimum\":%lld,\"maximum\":%lld",
                    (long long)param->min, (long long)param->max);
        if (param->fallback != 0)
            rv__put_int(out, "default", param->fallback);
        break;
    case PARAM_FLAG:
        rv__buf_fmt(out, "{\"enum\":[0,1,true,false],\"default\":%d", (int)param->fallback);
        break;
    case PARAM_CHOICE:
        rv__buf_text(out, "{\"type\":\"string\",\"enum\":[");
        for (int i = 0; param->choices[i] != NULL; i++)
            rv__buf_fmt(out, "%s\"%s\"", i > 0 ? "," : "", param->choices[i]);
        rv__buf_char(out, ']');
        break;
    case PARAM_JSON: put_quoted(out, "{'$ref':'#/components/schemas/Any'"); break;
    }
}

static void put_parameter(struct rv__buf *out, bool first, struct rv__str name, const char *in,
                          bool required)
{
    rv__buf_text(out, first ? "{\"name\":" : ",{\"name\":");
    rv__buf_json_str(out, name);
    rv__put_text(out, "in", in);
    rv__buf_fmt(out, ",\"required\":%s", required ? "true" : "false");
}

static void put_parameters(struct rv__buf *out, const struct rv__route *route)
{
    bool first = true;
    rv__buf_text(out, ",\"parameters\":[");
    for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at + 1, '{')) {
        put_parameter(out, first, (struct rv__str){ at + 1, strcspn(at + 1, "}") }, "path", true);
        first = false;
        rv__buf_text(out, ",\"schema\":{\"type\":\"string\",\"minLength\":1}}");
    }
    for (const struct rv__param *p = route->params; p != NULL && p->name != NULL; p++) {
        put_parameter(out, first, rv__str(p->name), "query", p->required);
        first = false;
        rv__put_text(out, "description", p->says);
        rv__buf_text(out, ",\"schema\":");
        put_schema_of(out, p);
        rv__buf_text(out, "}}");
    }
    rv__buf_char(out, ']');
}

static void put_body(struct rv__buf *out, const struct rv__route *route)
{
    if (route->body == BODY_NONE)
        return;
    rv__buf_text(out, ",\"requestBody\":{\"content\":{\"application/json\":{\"schema\":");
    if (route->body == BODY_ANY) {
        put_quoted(out, REF("Any") "}}}");
        return;
    }
    bool required = false;
    rv__buf_text(out, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    for (const struct rv__param *p = route->members; p->name != NULL; p++) {
        rv__buf_fmt(out, "%s\"%s\":", p != route->members ? "," : "", p->name);
        put_schema_of(out, p);
        rv__put_text(out, "description", p->says);
        rv__buf_char(out, '}');
        required |= p->required;
    }
    rv__buf_char(out, '}');
    for (const struct rv__param *p = route->members; p->name != NULL; p++)
        if (p->required) /* there is one at most */
            rv__buf_fmt(out, ",\"required\":[\"%s\"]", p->name);
    rv__buf_fmt(out, "}}},\"required\":%s}", required ? "true" : "false");
}

static void put_answers(struct rv__buf *out, const struct rv__route *route)
{
    static const int usual[] = { 400, 401, 403 };
    rv__buf_fmt(out, ",\"responses\":{\"%d\":{\"description\":", route->status);
    rv__buf_json_str(out, rv__str(route->summary));
    rv__buf_text(out, ",\"content\":{");
    rv__buf_json_str(out, rv__str(route->type != NULL ? route->type : "application/json"));
    rv__buf_text(out, ":{\"schema\":");
    if (route->schema != NULL)
        rv__buf_fmt(out, "{\"$ref\":\"#/components/schemas/%s\"}", route->schema);
    else
        rv__buf_text(out, "{\"type\":\"string\"}");
    rv__buf_text(out, "}}}");
    for (size_t i = 0; i < 3 && route->role != RV__ROLE_NONE; i++)
        rv__buf_fmt(out, ",\"%d\":{\"$ref\":\"#/components/responses/%d\"}", usual[i], usual[i]);
    for (const int *status = route->problems; *status != 0; status++)
        rv__buf_fmt(out, ",\"%d\":{\"$ref\":\"#/components/responses/%d\"}", *status, *status);
    if (route->role == RV__ROLE_NONE)
        rv__buf_text(out, ",\"400\":{\"$ref\":\"#/components/responses/400\"}");
    rv__buf_char(out, '}');
}

static void put_route(struct rv__buf *out, const struct rv__route *route)
{
    rv__buf_json_str(out, rv__str(route->path));
    rv__buf_fmt(out, ":{\"%s\":{\"operationId\":\"%s\",\"tags\":[\"%s\"]",
                strcmp(route->method, "GET") == 0 ? "get" : "post", route->id, route->tag);
    rv__put_text(out, "summary", route->summary);
    rv__put_text(out, "x-role", rv__role_name(route->role));
    if (route->role == RV__ROLE_NONE)
        rv__buf_text(out, ",\"security\":[]");
    put_parameters(out, route);
    put_body(out, route);
    put_answers(out, route);
    rv__buf_text(out, "}}");
}

static void put_components(struct rv__buf *out)
{
    static const int problems[] = { 400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 429, 503 };
    rv__buf_text(out, "},\"components\":{\"schemas\":{");
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        rv__buf_fmt(out, "%s\"%s\":", i > 0 ? "," : "", schemas[i].name);
        put_quoted(out, schemas[i].schema);
    }
    rv__buf_text(out, "},\"responses\":{");
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        rv__buf_fmt(out, "%s\"%d\":{\"description\":", i > 0 ? "," : "", problems[i]);
        rv__buf_json_str(out, rv__str(means(problems[i])));
        put_quoted(out, ",'content':{'application/problem+json':{'schema':" REF("Problem") "}}}");
    }
    put_quoted(out, "},'securitySchemes':{'token':{'type':'http','scheme':'bearer'},"
                    "'session':{'type':'apiKey','in':'cookie','name':'rival_session'}}}}");
}

void rv__api_openapi(struct rv__api_call *call)
{
    struct rv__buf *out = &call->out;
    put_quoted(out,
               "{'openapi':'3.1.0','info':{'title':'Rival','version':'" RV_VERSION
               "','description':'Durable workflows: start, watch, signal, decide, "
               "cancel.','license':{'name':'MIT','identifier':'MIT'}},'servers':[{'url':'/"
               "'}],'security':[{'token':[]},{'session':[]},{}],'tags':[{'name':'workflows','"
               "description':'What can be run.'},{'name':'runs','description':'Runs: present and "
               "past.'},{'name':'nodes','description':'What a run is made "
               "of.'},{'name':'logs','description':'What its steps "
               "said.'},{'name':'events','description':'What happens, as server-sent events: id is "
               "the position, Last-Event-ID resumes.'},{'name':'session','description':'Browsers "
               "that log in.'},{'name':'system','description':'How the server is.'}],'paths':{");
    for (size_t i = 0; i < rv__route_count; i++) {
        if (i > 0)
            rv__buf_char(out, ',');
        put_route(out, &rv__routes[i]);
    }
    put_components(out);
}
