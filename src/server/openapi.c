/* openapi.c: /openapi.json, made from the table of routes, so that it says what is checked.
 *
 * What the table does not have are the shapes of answers. They are written here, with ' for " (none of
 * them has either in a text), and the tests hold real answers to them. */
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

#define RUN_FIELDS \
    "'runId':" REF("RunId") ",'workflow':" TEXT ",'version':" TEXT ",'status':" REF("RunStatus") \
    ",'createdAt':" TIME ",'startedAt':" TIME_YET ",'completedAt':" TIME_YET ",'duration':" MS_YET \
    ",'error':" REF("Error") ",'failedStep':" TEXT ",'suspension':" REF("Error")
#define NODE_KINDS \
    "{'enum':['step','workflow','branch','loop','forEach','concurrent','stage','iteration','path'," \
    "'child','handler']}"
#define NODE_STATUSES \
    "{'enum':['pending','running','waiting_retry','completed','failed','skipped','cancelled'," \
    "'suspended']}"
#define NODE_FIELDS \
    "'path':" TEXT ",'alias':" TEXT ",'kind':" NODE_KINDS ",'status':" NODE_STATUSES \
    ",'startedAt':" TIME ",'completedAt':" TIME ",'duration':" MS ",'queueMs':" MS ",'dueAt':" TIME \
    ",'attempt':" COUNT ",'retryCount':" COUNT ",'crashes':" COUNT ",'error':" REF("Error") \
    ",'errorAttempt':" COUNT ",'errorAt':" TIME ",'description':" TEXT ",'children':" COUNT \
    ",'iterations':" REF("Iterations")
#define WORKFLOW_FIELDS \
    "'name':" TEXT ",'description':" TEXT ",'version':" TEXT ",'source':{'type':'string'," \
    "'description':'Its file; empty: the program.'},'stepCount':" COUNT ",'inputSchema':" REF("Any")

static const struct {
    const char *name, *schema;
} schemas[] = {
    { "Any", "{'description':'Any JSON.'}" },
    { "RunId", "{'type':'string','pattern':'^[A-Za-z0-9._:-]{1,128}$'}" },
    { "RunStatus", "{'enum':['running','suspended','completed','failed','cancelled']}" },
    { "Error",
      "{'type':'object','description':'What went wrong.','required':['message'],'properties':"
      "{'message':" TEXT ",'stack':" TEXT ",'attemptNumber':" COUNT ",'occurredAt':" TIME "}}" },
    { "RunRef", OBJECT("'runId','status'", "'runId':" REF("RunId") ",'status':" REF("RunStatus")) },
    { "Run", OBJECT("'runId','workflow','version','status','createdAt'", RUN_FIELDS) },
    { "RunList",
      OBJECT("'runs','nextCursor'", "'runs':" LIST("Run") ",'nextCursor':{'type':['string','null']}") },
    { "RunDetail",
      OBJECT("'runId','workflow','version','status','createdAt','input','steps'",
             RUN_FIELDS ",'input':" REF("Any") ",'results':" REF("Results") ",'resultsTooLarge':" TOO_LARGE ",'steps':" LIST("Node")) },
    { "Results",
      "{'type':'object','description':'By alias, the top-level nodes that were reached.',"
      "'additionalProperties':{'type':'object','required':['status'],'properties':"
      "{'result':{},'state':{'type':'object'},'status':" TEXT "}}}" },
    { "Outcome",
      OBJECT("'runId','status','results'",
             "'runId':" REF("RunId") ",'status':{'enum':['completed','failed','cancelled']}"
             ",'results':" REF("Results") ",'resultsTooLarge':" TOO_LARGE ",'error':" REF("Error") ",'failedStep':" TEXT) },
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
             ",'dueAt':" TIME ",'error':" REF("Error")) },
    { "Plan",
      "{'type':'object','required':['type','alias','name','steps'],'properties':{'type':"
      "{'const':'workflow'},'alias':" TEXT ",'name':" TEXT ",'steps':"
      "{'type':'array','items':{'type':'object'}}}}" },
    { "Why",
      "{'type':'object','required':['runId','status','waits'],'properties':{'runId':" REF("RunId")
      ",'status':" REF("RunStatus") ",'waits':{'type':'array','items':{'type':'object','required':"
      "['reason','count','message','nodes'],'properties':{'reason':" TEXT ",'count':" COUNT
      ",'since':" TIME ",'message':" TEXT ",'nodes':{'type':'array','items':{'type':'object'}}}}}}}" },
    { "LogLine",
      OBJECT("'id','level','message','timestamp','workflowId','stepName','path','attempt'",
             "'id':" COUNT ",'level':{'enum':['debug','info','warn','error']},'message':" TEXT
             ",'timestamp':" TIME ",'metadata':" REF("Any") ",'workflowId':" REF("RunId")
             ",'stepName':" TEXT ",'path':" TEXT ",'attempt':" COUNT) },
    { "LogList", OBJECT("'logs','next'", "'logs':" LIST("LogLine") ",'next':" COUNT) },
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
    { "Problem",
      "{'type':'object','description':'RFC 9457.','required':['type','title','status','detail'],"
      "'properties':{'type':" TEXT ",'title':" TEXT ",'status':" COUNT ",'detail':" TEXT
      ",'in':{'enum':['input','body'],'description':'422: what the paths point into.'}"
      ",'violations':{'type':'array','items':"
      OBJECT("'path','message'", "'path':" TEXT ",'message':" TEXT)
      "},'untold':" COUNT ",'runStatus':" REF("RunStatus") ",'since':" TIME ",'attempts':" COUNT
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
    case 400: return "The request is not as it should be.";
    case 401: return "A token is missing, or not known.";
    case 403: return "The token's role does not allow it.";
    case 404: return "There is no such thing.";
    case 408: return "It has not ended in that time; runStatus says how it is.";
    case 409: return "It is not in a state for this; or that id is another run's.";
    case 410: return "Retention has removed what came next.";
    case 413: return "The body is too large.";
    case 415: return "The body is not JSON.";
    case 422: return "What was given is refused; violations says why, each with its place.";
    case 429: return "A limit is reached; try again later.";
    case 503: return "The store refuses, or the engine closes.";
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
               "{'openapi':'3.1.0','info':{'title':'Rival','version':'" RV_VERSION "',"
               "'description':'Durable workflows: start, watch, signal, decide, cancel.',"
               "'license':{'name':'MIT','identifier':'MIT'}},'servers':[{'url':'/'}],"
               "'security':[{'token':[]},{'session':[]},{}],'tags':["
               "{'name':'workflows','description':'What can be run.'},"
               "{'name':'runs','description':'What is running, or has.'},"
               "{'name':'nodes','description':'What a run is made of.'},"
               "{'name':'logs','description':'What its steps said.'},"
               "{'name':'events','description':'What happens, as server-sent events: id is the "
               "position, Last-Event-ID resumes.'},"
               "{'name':'session','description':'Browsers that log in.'},"
               "{'name':'system','description':'How the server is.'}],"
               "'paths':{");
    for (size_t i = 0; i < rv__route_count; i++) {
        if (i > 0)
            rv__buf_char(out, ',');
        put_route(out, &rv__routes[i]);
    }
    put_components(out);
}
