/* openapi.c: /openapi.json, made from the table of routes and the description of the documents, so that it matches
 * the checks and what is read. */
#include "server/api.h"

#define REF(of) "{'$ref':'#/components/schemas/" of "'}"

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

/* What is usual for the kind of a member. */
static void put_usual(struct rv__buf *out, const struct rv__member *member)
{
    switch (member->kind) {
    case RV__MEMBER_UNREAD:
    case RV__MEMBER_JSON: put_quoted(out, REF("Any")); break;
    case RV__MEMBER_TEXT:
    case RV__MEMBER_NAME:
    case RV__MEMBER_MODULE: put_quoted(out, "{'type':'string'}"); break;
    case RV__MEMBER_INT:
    case RV__MEMBER_INT64:
    case RV__MEMBER_SIZE:
    case RV__MEMBER_UINT64: put_quoted(out, "{'type':'integer','minimum':0}"); break;
    case RV__MEMBER_BOOL: put_quoted(out, "{'type':'boolean'}"); break;
    case RV__MEMBER_RUN_ID: put_quoted(out, REF("RunId")); break;
    case RV__MEMBER_STATUS: put_quoted(out, REF("RunStatus")); break;
    case RV__MEMBER_LEVEL: put_quoted(out, "{'enum':['debug','info','warn','error']}"); break;
    case RV__MEMBER_STRUCT:
        rv__buf_fmt(out, "{\"$ref\":\"#/components/schemas/%s\"}", member->of->name);
        break;
    case RV__MEMBER_LIST:
        rv__buf_fmt(out, "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/%s\"}}",
                    member->of->name);
        break;
    }
}

static void put_required(struct rv__buf *out, const struct rv__document *of)
{
    bool first = true;
    rv__buf_text(out, ",\"required\":[");
    for (int i = 0; i < RV__DOCUMENT_PARTS && of->parts[i] != NULL; i++)
        for (const struct rv__member *m = of->parts[i]; m->key != NULL; m++)
            if (m->required) {
                rv__buf_fmt(out, "%s\"%s\"", first ? "" : ",", m->key);
                first = false;
            }
    rv__buf_char(out, ']');
}

static void put_document(struct rv__buf *out, const struct rv__document *of)
{
    rv__buf_text(out, "{\"type\":\"object\"");
    if (of->says != NULL)
        rv__put_text(out, "description", of->says);
    put_required(out, of);
    rv__buf_text(out, ",\"properties\":{");
    for (int i = 0; i < RV__DOCUMENT_PARTS && of->parts[i] != NULL; i++)
        for (const struct rv__member *m = of->parts[i]; m->key != NULL; m++) {
            rv__buf_fmt(out, "%s\"%s\":", m == of->parts[0] ? "" : ",", m->key);
            if (m->schema != NULL)
                put_quoted(out, m->schema);
            else
                put_usual(out, m);
        }
    rv__buf_text(out, "},\"additionalProperties\":false}");
}

static void put_schema(struct rv__buf *out, bool first, const struct rv__schema *schema)
{
    const struct rv__document *of = schema->document;
    rv__buf_fmt(out, "%s\"%s\":", first ? "" : ",", of != NULL ? of->name : schema->name);
    if (of != NULL)
        put_document(out, of);
    else
        put_quoted(out, schema->text);
}

static void put_components(struct rv__buf *out)
{
    static const int problems[] = { 400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 429, 503 };
    rv__buf_text(out, "},\"components\":{\"schemas\":{");
    for (size_t i = 0; i < rv__schema_count; i++)
        put_schema(out, i == 0, &rv__schemas[i]);
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
