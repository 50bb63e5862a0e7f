/* test_api.c: request -> status and document, for src/server/. */
#include "unit/test.h"

#include "define/workflow.h"
#include "unit/server/api_world.h"

static int later(rv_ctx *c)
{
    return rv_return_pending(c, "h1");
}

static const struct row {
    const char *says, *line, *body;
    int status;
    const char *expected;
} rows[] = {
    /* the system */
    { "it lives", "GET /healthz", NULL, 200, "{'status':'ok'}" },
    { "it is ready", "GET /readyz", NULL, 200, "{'status':'ok','workflows':3}" },
    { "HEAD is as GET", "HEAD /healthz", NULL, 200, "{'status':'ok'}" },

    /* routing */
    { "what is not there is a problem", "GET /nowhere", NULL, 404,
      "{'type':'about:blank','title':'Not found','status':404,'detail':'*'}" },
    { "a slash too many is another address", "GET /api/v1/runs/", NULL, 404, "{}" },
    { "no name is no address", "GET /api/v1/runs//why", NULL, 404, "{}" },
    { "dots lead nowhere", "GET /api/v1/../v1/runs", NULL, 404, "{}" },
    { "an encoded slash stays in its part", "GET /api/v1/workflows/a%2Fb", NULL, 404,
      "{'detail':'there is no workflow \\u0027a/b\\u0027'}" },
    { "a wrong method is told the right ones", "DELETE /api/v1/runs/done", NULL, 405,
      "{'detail':'this address takes GET and HEAD'}" },
    { "and so is a GET where one posts", "GET /api/v1/runs/done/cancel", NULL, 405,
      "{'detail':'this address takes POST'}" },
    { "half an escape is refused", "GET /api/v1/runs/%4", NULL, 400, "{}" },
    { "a NUL is refused", "GET /api/v1/runs/a%00b", NULL, 400, "{}" },
    { "what is not UTF-8 is refused", "GET /api/v1/runs/%ff", NULL, 400, "{}" },

    /* parameters */
    { "an unknown parameter is named, with the known ones", "GET /api/v1/runs?statsu=running", NULL,
      400,
      "{'detail':'unknown parameter \\u0027statsu\\u0027 (did you mean \\u0027status\\u0027?); "
      "known: workflow, status, waiting, rerunOf, since, until, q, limit, cursor'}" },
    { "twice is once too often", "GET /api/v1/runs?q=a&q=b", NULL, 400,
      "{'detail':'parameter \\u0027q\\u0027 is given twice'}" },
    { "a number has to be one", "GET /api/v1/runs?limit=ten", NULL, 400,
      "{'detail':'parameter \\u0027limit\\u0027 is \\u0027ten\\u0027, but must be an integer "
      "from "
      "1 to 1000'}" },
    { "within its bounds", "GET /api/v1/runs?limit=1001", NULL, 400, "{}" },
    { "not with a fraction", "GET /api/v1/runs?limit=1.5", NULL, 400, "{}" },
    { "a choice has to be one", "GET /api/v1/runs?status=ended", NULL, 400,
      "{'detail':'parameter \\u0027status\\u0027 is \\u0027ended\\u0027, but must be one of "
      "running, "
      "suspended, completed, failed, cancelled'}" },
    { "a cursor that is none is refused", "GET /api/v1/runs?cursor=zzz", NULL, 400, "{}" },
    { "what is needed is asked for", "GET /api/v1/runs/done/node", NULL, 400,
      "{'detail':'parameter \\u0027path\\u0027 is missing: The path of the node.'}" },
    { "where there are none, none is known", "GET /healthz?x=1", NULL, 400,
      "{'detail':'unknown parameter \\u0027x\\u0027; known: none'}" },
    { "a query that is not UTF-8 is refused", "GET /api/v1/runs?q=%c3%28", NULL, 400, "{}" },

    /* workflows */
    { "workflows are listed", "GET /api/v1/workflows", NULL, 200,
      "{'workflows':[{'name':'ask'},{'name':'fails'},{'name':'greet','description':'Greets',"
      "'version':'*','source':'','stepCount':3,'inputSchema':{'required':['name']}}]}" },
    { "one comes with its plan", "GET /api/v1/workflows/ask", NULL, 200,
      "{'name':'ask','plan':{'name':'ask','steps':[{'type':'step','alias':'go'}]}}" },
    { "what comes from no file has no source", "GET /api/v1/workflows/ask/source", NULL, 404,
      "{'detail':'workflow \\u0027ask\\u0027 comes from a program, not from a file'}" },
    { "nor has what is not there", "GET /api/v1/workflows/nix/source", NULL, 404, "{}" },
    { "one that is not there", "GET /api/v1/workflows/nix", NULL, 404,
      "{'detail':'there is no workflow \\u0027nix\\u0027'}" },

    /* runs: looking */
    { "runs are listed, the newest first", "GET /api/v1/runs", NULL, 200,
      "{'runs':[{'runId':'waits','status':'running'},{'runId':'failed','status':'failed','error':"
      "{'message':'it "
      "broke','path':'broken'},'failedStep':'broken','failedPath':'broken'},{'runId':'done','"
      "workflow':'greet','version':'*',"
      "'status':'completed','createdAt':1767225600000,'startedAt':1767225600000,"
      "'completedAt':1767225600120,'duration':120}],'nextCursor':null}" },
    { "a page has a cursor", "GET /api/v1/runs?limit=1&status=running", NULL, 200,
      "{'runs':[{'runId':'waits'}],'nextCursor':null}" },
    { "by workflow", "GET /api/v1/runs?workflow=greet", NULL, 200, "{'runs':[{'runId':'done'}]}" },
    { "they are counted", "GET /api/v1/counts", NULL, 200,
      "{'running':1,'suspended':0,'completed':1,'failed':1,'cancelled':0,'waiting':1}" },
    { "all of them have to be meant", "POST /api/v1/bulk/cancel", NULL, 400,
      "{'detail':'no filter is given: all=1 selects all runs'}" },
    { "a piece has a bound", "POST /api/v1/bulk/again?all=1&limit=1001", NULL, 400, "{}" },
    { "by text", "GET /api/v1/runs?q=Ad%61", NULL, 200, "{'runs':[{'runId':'done'}]}" },
    { "those that wait for somebody", "GET /api/v1/runs?waiting=somebody", NULL, 200,
      "{'runs':[{'runId':'waits','waiting':'somebody'}],'nextCursor':null}" },
    { "nobody else is waited for", "GET /api/v1/runs?waiting=nobody", NULL, 400, "{}" },
    { "a line of the input", "GET /api/v1/runs?workflow=greet", NULL, 200,
      "{'runs':[{'inputSummary':'{\\u0022name\\u0022:\\u0022Ada\\u0022}','waiting':'-'}]}" },
    { "that it waits is there", "GET /api/v1/runs/waits", NULL, 200, "{'waiting':'somebody'}" },
    { "by time", "GET /api/v1/runs?until=1767225600500", NULL, 200, "{'runs':[{'runId':'done'}]}" },
    { "0 is a time: nothing was before it", "GET /api/v1/runs?until=0", NULL, 200, "{'runs':[]}" },
    { "until a time is before it", "GET /api/v1/runs?until=1767225600000", NULL, 200,
      "{'runs':[]}" },
    { "since a time is from it on", "GET /api/v1/runs?since=1767225600000&limit=1000", NULL, 200,
      "{'runs':['*','*','*']}" },
    { "what is given empty is not given",
      "GET /api/v1/runs?workflow=&status=&since=&until=&q=&limit=&cursor=", NULL, 200,
      "{'runs':['*','*','*']}" },
    { "not where it is needed, either", "GET /api/v1/runs/done/node?path=", NULL, 400,
      "{'detail':'parameter \\u0027path\\u0027 is missing: The path of the node.'}" },
    { "a run comes whole", "GET /api/v1/runs/done", NULL, 200,
      "{'runId':'done','input':{'name':'Ada'},'results':{'hello':{'result':{'text':'hi'},'state':"
      "{'description':'greeted Ada'},'status':'completed'},'flaky':{'result':7}},'steps':[{'path':"
      "'hello','kind':'step','status':'completed','attempt':1,'description':'greeted Ada'},{'path':"
      "'flaky','attempt':2,'retryCount':1,'error':{'message':'not yet','attemptNumber':1,"
      "'occurredAt':1767225600010}},{'path':'each','kind':'forEach','children':3}]}" },
    { "or without results", "GET /api/v1/runs/done?results=0", NULL, 200,
      "{'runId':'done','input':{'name':'Ada'},'steps':['*','*','*']}" },
    { "one that is not there", "GET /api/v1/runs/nix", NULL, 404,
      "{'detail':'there is no run \\u0027nix\\u0027; GET /api/v1/runs lists all runs'}" },
    { "one that cannot be there", "GET /api/v1/runs/a%20b", NULL, 404, "{'detail':'*'}" },
    { "its plan is the one it began with", "GET /api/v1/runs/waits/plan", NULL, 200,
      "{'name':'ask','steps':[{'alias':'go'}]}" },
    { "why it waits", "GET /api/v1/runs/waits/why", NULL, 200,
      "{'runId':'waits','status':'running','waits':[{'reason':'signal','name':'go','count':1}]}" },
    { "nodes at the top", "GET /api/v1/runs/done/nodes?limit=1&offset=1", NULL, 200,
      "{'nodes':[{'path':'flaky','alias':'flaky','startedAt':1767225600000,'completedAt':"
      "1767225600120,'duration':120,'queueMs':0}],'total':3,'offset':1}" },
    { "nodes below", "GET /api/v1/runs/done/nodes?parent=each%3Aiter1", NULL, 200,
      "{'nodes':[{'path':'each:iter1:node0:again'}],'total':1,'offset':0}" },
    { "in one status", "GET /api/v1/runs/failed/nodes?status=failed", NULL, 200,
      "{'nodes':[{'path':'broken','status':'failed'}],'total':1,'offset':0}" },
    { "iterations too", "GET /api/v1/runs/done/nodes?parent=each&status=completed&offset=1", NULL,
      200, "{'nodes':[{'path':'each:iter1'},{'path':'each:iter2'}],'total':3,'offset':1}" },
    { "or none is", "GET /api/v1/runs/done/nodes?parent=each&status=failed", NULL, 200,
      "{'nodes':[],'total':0,'offset':0}" },
    { "a status has to be one", "GET /api/v1/runs/done/nodes?status=broken", NULL, 400,
      "{'detail':'parameter \\u0027status\\u0027 is \\u0027broken\\u0027, but must be one of "
      "pending, running, waiting_retry, completed, failed, skipped, cancelled, suspended'}" },
    { "below nothing", "GET /api/v1/runs/done/nodes?parent=nix", NULL, 404,
      "{'detail':'the run has no node \\u0027nix\\u0027'}" },
    { "a node with its attempts", "GET /api/v1/runs/done/node?path=flaky", NULL, 200,
      "{'path':'flaky','status':'completed','result':7,'attempts':[{'attempt':1,'outcome':'failed',"
      "'startedAt':1767225600000,'completedAt':1767225600010,'queueMs':0,'dueAt':1767225600110,"
      "'error':{'message':'not yet'}},{'attempt':2,'outcome':'completed','startedAt':1767225600110,"
      "'completedAt':1767225600120}]}" },
    { "with its state", "GET /api/v1/runs/done/node?path=hello", NULL, 200,
      "{'result':{'text':'hi'},'state':{'description':'greeted Ada'},'attempts':[{'attempt':1,"
      "'input':{'.input.name':'Ada'}}]}" },
    { "without what is long", "GET /api/v1/runs/done/node?path=hello&results=0", NULL, 200,
      "{'attempts':[{'attempt':1,'outcome':'completed','startedAt':'*','completedAt':'*','queueMs':"
      "'*',"
      "'input':'-'}]}" },
    { "one that waits has no result", "GET /api/v1/runs/waits/node?path=go", NULL, 200,
      "{'status':'running','attempts':[{'attempt':1,'outcome':'running'}]}" },
    { "a node that is not there", "GET /api/v1/runs/done/node?path=nix", NULL, 404, "{}" },
    { "what the steps said", "GET /api/v1/runs/done/logs?limit=2", NULL, 200,
      "{'logs':[{'id':'*','level':'info','message':'hello there','timestamp':1767225600000,"
      "'runId':'done','stepName':'hello','path':'hello','attempt':1},{'level':'debug'}],'next'"
      ":"
      "'*'}" },
    { "from a level on", "GET /api/v1/runs/done/logs?level=info&step=hello", NULL, 200,
      "{'logs':[{'level':'info'}]}" },
    { "of a node and what is in it", "GET /api/v1/runs/done/logs?path=hello&limit=1", NULL, 200,
      "{'logs':[{'path':'hello'}]}" },
    { "but not of one whose name begins so", "GET /api/v1/runs/done/logs?path=hell", NULL, 200,
      "{'logs':[]}" },
    { "of an attempt", "GET /api/v1/runs/done/logs?attempt=7", NULL, 200, "{'logs':[]}" },
    { "with a text", "GET /api/v1/runs/done/logs?q=QUIET&step=hello", NULL, 200,
      "{'logs':[{'message':'quietly'}]}" },

    /* runs: waiting */
    { "what has ended is told at once", "GET /api/v1/runs/failed/wait", NULL, 200,
      "{'runId':'failed','status':'failed','results':{'broken':{'status':'failed','error':"
      "{'message':'it broke','path':'broken'}}},'error':{'message':'it broke','path':'broken'},"
      "'failedStep':'broken','failedPath':'broken'}" },
    { "what has not is not waited for here", "GET /api/v1/runs/waits/wait?timeoutMs=0", NULL, 408,
      "{'title':'Request timeout','runStatus':'running','detail':'run \\u0027waits\\u0027 of "
      "workflow "
      "\\u0027ask\\u0027 has not ended after 0 ms'}" },

    /* beginning */
    { "a run begins", "POST /api/v1/workflows/ask/runs", "{\"runId\":\"new\",\"input\":[1]}", 202,
      "{'runId':'new','status':'running'}" },
    { "the same again is the same run", "POST /api/v1/workflows/ask/runs",
      "{\"input\": [1], \"runId\":\"new\"}", 202, "{'runId':'new'}" },
    { "with another input it is a conflict", "POST /api/v1/workflows/ask/runs",
      "{\"runId\":\"new\",\"input\":[2]}", 409, "{'title':'Conflict'}" },
    { "nothing need be said", "POST /api/v1/workflows/ask/runs", NULL, 202, "{'runId':'*'}" },
    { "of what is not there", "POST /api/v1/workflows/nix/runs", "{}", 404, "{'detail':'*'}" },
    { "an input is held to the schema, all of it", "POST /api/v1/workflows/greet/runs",
      "{\"input\":{\"name\":\"A\",\"n\":1.5}}", 422,
      "{'title':'Unprocessable content','in':'input','violations':[{'path':'/name','message':'*'},"
      "{'path':'/n','message':'*'}]}" },
    { "an id has to be one", "POST /api/v1/workflows/ask/runs", "{\"runId\":\"a b\"}", 422,
      "{'in':'body','violations':[{'path':'/runId','message':'*'}]}" },
    { "a member has its type", "POST /api/v1/workflows/ask/runs", "{\"runId\":5}", 422,
      "{'in':'body','violations':[{'path':'/runId','message':'must be a text'}]}" },
    { "null is as if it were not there", "POST /api/v1/workflows/ask/runs", "{\"runId\":null}", 202,
      "{'runId':'*'}" },
    { "and a name that is known", "POST /api/v1/workflows/ask/runs", "{\"inputs\":{}}", 422,
      "{'violations':[{'path':'/inputs','message':'is unknown; known: input, runId, rerunOf, "
      "maxConcurrency'}]}" },
    { "a body is an object", "POST /api/v1/workflows/ask/runs", "[]", 422,
      "{'violations':[{'path':'','message':'must be an object'}]}" },
    { "a body is JSON", "POST /api/v1/workflows/ask/runs", "{\"input\":", 400, "{'detail':'*'}" },
    { "one JSON", "POST /api/v1/workflows/ask/runs", "{} {}", 400, "{}" },
    { "in UTF-8", "POST /api/v1/workflows/ask/runs", "{\"input\":\"\xff\"}", 400, "{}" },

    /* telling */
    { "a decision needs an action", "POST /api/v1/runs/waits/decide", "{}", 422,
      "{'violations':[{'path':'/action','message':'is missing'}]}" },
    { "null is none", "POST /api/v1/runs/waits/decide", "{\"action\":null}", 422,
      "{'violations':[{'path':'/action','message':'is missing'}]}" },
    { "that there is", "POST /api/v1/runs/waits/decide", "{\"action\":\"go\"}", 422,
      "{'violations':[{'path':'/action','message':'must be one of resume, abort, skip, "
      "restart_stage'}]}" },
    { "for a run that is suspended", "POST /api/v1/runs/waits/decide", "{\"action\":\"resume\"}",
      409, "{'detail':'*','paths':[]}" },
    { "skipping is for stages", "POST /api/v1/runs/waits/decide",
      "{\"action\":\"skip\",\"path\":\"a\"}", 409, "{'detail':'*','paths':[]}" },
    { "of a run that is there", "POST /api/v1/runs/nix/decide", "{\"action\":\"abort\"}", 404,
      "{}" },
    { "a signal that nobody waits for is not taken", "POST /api/v1/runs/waits/signals/other",
      "{\"yes\":1}", 409, "{'code':'unwanted','detail':'*'}" },
    { "unless it is to be", "POST /api/v1/runs/waits/signals/other?force=true", "{\"yes\":1}", 200,
      "{'runId':'waits','status':'running'}" },
    { "without a payload too", "POST /api/v1/runs/waits/signals/other?force=1", NULL, 200, "{}" },
    { "which is a yes or a no", "POST /api/v1/runs/waits/signals/other?force=perhaps", "1", 400,
      "{}" },
    { "not by what has ended", "POST /api/v1/runs/done/signals/go", "1", 409, "{}" },
    { "nor by nobody", "POST /api/v1/runs/nix/signals/go", "1", 404, "{}" },
    { "cancel ends it", "POST /api/v1/runs/waits/cancel", NULL, 200,
      "{'runId':'waits','status':'cancelled'}" },
    { "again changes nothing", "POST /api/v1/runs/waits/cancel", "{}", 200,
      "{'status':'cancelled'}" },
    { "what has ended stays as it is", "POST /api/v1/runs/done/cancel", NULL, 200,
      "{'status':'completed'}" },
    { "what it was doing was cancelled", "GET /api/v1/runs/waits/node?path=go", NULL, 200,
      "{'status':'cancelled','attempts':[{'attempt':1,'outcome':'cancelled','completedAt':'*'}]}" },
};

static void requests_get_their_answers(void **state)
{
    struct api_world *w = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        api_ask(w, rows[i].line, rows[i].body);
        api_expect(w, rows[i].says, rows[i].status, rows[i].expected);
        assert_string_equal(w->answer.type,
                            rows[i].status < 400 ? "application/json" : "application/problem+json");
        if (rows[i].status == 405)
            assert_non_null(w->answer.allow);
    }
}

static const struct row attachment_rows[] = {
    { "what states left", "GET /api/v1/runs/staged/attachments?latest=1", NULL, 200,
      "{'attachments':[{'id':'[g][a][asker]_260101T000002_0','stage':'g','state':'a','agent':'"
      "asker',"
      "'path':'g:a','attempt':0,'status':'finished','description':'*','startedAt':1767225602000,"
      "'completedAt':'*','superseded':'-','result':'-'}],'total':1,'offset':0}" },
    { "one of them",
      "GET /api/v1/runs/staged/attachments/%5Bg%5D%5Ba%5D%5Basker%5D_260101T000002_0", NULL, 200,
      "{'id':'[g][a][asker]_260101T000002_0','result':{'text':'hi'},'error':'-'}" },
    { "one that is not there", "GET /api/v1/runs/staged/attachments/nix", NULL, 404, "{}" },
    { "where there are no states", "GET /api/v1/runs/done/attachments", NULL, 200,
      "{'attachments':[],'total':0}" },
    { "of no run", "GET /api/v1/runs/nix/attachments", NULL, 404, "{}" },
    { "in no such status", "GET /api/v1/runs/staged/attachments?status=done", NULL, 400, "{}" },
};

static void what_states_left_is_told(void **state)
{
    struct api_world *w = *state;
    rv_workflow *staged = NULL;
    static const char plan[] = "{\"name\":\"staged\",\"steps\":[{\"type\":\"stage\",\"alias\":"
                               "\"g\",\"states\":[{\"alias\":"
                               "\"a\",\"agentId\":\"asker\",\"agent\":{\"type\":\"step\",\"alias\":"
                               "\"x\",\"name\":\"hello\"}}"
                               "]}]}";
    assert_int_equal(rv__workflow_read(rv__str(plan), &staged, &w->err), RV_OK);
    rv_workflow_function(staged, "hello", api_hello);
    api_put(w, staged);
    api_begin(w, "staged", "staged", NULL);
    rv_test_advance(w->engine, 1000, NULL);
    for (size_t i = 0; i < sizeof attachment_rows / sizeof *attachment_rows; i++) {
        const struct row *row = &attachment_rows[i];
        api_ask(w, row->line, row->body);
        api_expect(w, row->says, row->status, row->expected);
    }
}

static void a_node_may_come_without_its_values(void **state)
{
    struct api_world *w = *state;
    api_ask(w, "GET /api/v1/runs/done/node?path=hello&results=0", NULL);
    api_expect(w, "without values", 200,
               "{'path':'hello','description':'greeted Ada','attempts':['*']}");
    assert_null(json_object_get(w->document, "result"));
    assert_null(json_object_get(w->document, "state"));
    api_ask(w, "GET /api/v1/runs/done/node?path=hello&results=1", NULL);
    assert_non_null(json_object_get(w->document, "result"));
}

static void numbers_keep_their_digits(void **state)
{
    struct api_world *w = *state;
    api_ask(w, "GET /api/v1/runs/waits", NULL);
    assert_non_null(strstr(w->answer.body, "\"input\":{\"id\":12345678901234567890}"));
}

static void pages_follow_each_other(void **state)
{
    struct api_world *w = *state;
    char line[1024] = "GET /api/v1/runs?limit=1", seen[200] = "";
    for (int i = 0; i < 4 && *line != '\0'; i++) {
        api_ask(w, line, NULL);
        json_t *first = json_array_get(json_object_get(w->document, "runs"), 0);
        if (first != NULL)
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s ",
                     json_string_value(json_object_get(first, "runId")));
        const char *next = json_string_value(json_object_get(w->document, "nextCursor"));
        line[0] = '\0';
        if (next != NULL)
            snprintf(line, sizeof line, "GET /api/v1/runs?limit=1&cursor=%s", next);
    }
    assert_string_equal(seen, "waits failed done ");
}

static void a_run_and_its_repeats_are_linked(void **state)
{
    struct api_world *w = *state;
    api_ask(w, "POST /api/v1/workflows/greet/runs",
            "{\"input\":{\"name\":\"Bob\"},\"runId\":\"again\",\"rerunOf\":\"done\"}");
    api_expect(w, "it begins", 202, "{'runId':'again'}");
    rv_test_advance(w->engine, 1000, NULL);
    api_ask(w, "GET /api/v1/runs/again", NULL);
    api_expect(w, "it says what it repeats", 200, "{'rerunOf':'done','input':{'name':'Bob'}}");
    api_ask(w, "GET /api/v1/runs?rerunOf=done", NULL);
    api_expect(w, "and is found from there", 200,
               "{'runs':[{'runId':'again','rerunOf':'done'}],'nextCursor':null}");
    api_ask(w, "POST /api/v1/workflows/greet/runs",
            "{\"input\":{\"name\":\"Bob\"},\"rerunOf\":\"no id\"}");
    api_expect(w, "an id is an id", 400, "{}");
    api_ask(w, "POST /api/v1/runs/waits/signals/go", "1");
    api_ask(w, "GET /api/v1/runs?waiting=somebody", NULL);
    api_expect(w, "nobody is waited for any more", 200, "{'runs':[]}");
}

/* Inputs may be long: a list has only their beginnings, and run again takes the whole. */
static void a_long_input_is_not_in_a_list(void **state)
{
    struct api_world *w = *state;
    char input[3000], line[3100];
    memset(input, 'x', sizeof input);
    memcpy(input, "{\"name\":\"", 9);
    memcpy(input + sizeof input - 4, "é\"}", 4);
    snprintf(line, sizeof line, "{\"input\":%.*s,\"runId\":\"long\"}", (int)sizeof input, input);
    api_ask(w, "POST /api/v1/workflows/greet/runs", line);
    api_expect(w, "it begins", 202, "{'runId':'long'}");
    rv_test_advance(w->engine, 1000, NULL);

    rv_run_list *list = NULL;
    assert_int_equal(rv_list(w->engine, RV_QUERY(.limit = 1), &list, NULL), RV_OK);
    assert_string_equal(list->runs[0].run_id, "long");
    assert_int_equal(strlen(list->runs[0].input), RV_LIST_INPUT_BYTES);
    rv_run_list_free(list);
    assert_int_equal(rv_list(w->engine, RV_QUERY(.run_id = "long"), &list, NULL), RV_OK);
    assert_memory_equal(list->runs[0].input, input, sizeof input);
    rv_run_list_free(list);

    api_ask(w, "POST /api/v1/bulk/again?q=long", NULL);
    api_expect(w, "again", 200, "{'matched':1,'done':1,'failed':[]}");
    api_ask(w, "GET /api/v1/runs?rerunOf=long", NULL);
    json_t *one = json_array_get(json_object_get(w->document, "runs"), 0);
    const char *id = json_string_value(json_object_get(one, "runId"));
    assert_int_equal(rv_list(w->engine, RV_QUERY(.run_id = id), &list, NULL), RV_OK);
    assert_memory_equal(list->runs[0].input, input, sizeof input);
    rv_run_list_free(list);
}

/* Piece by piece; what has ended is left as it is, and what is refused is told. */
static void many_runs_are_told_at_once(void **state)
{
    struct api_world *w = *state;
    api_ask(w, "POST /api/v1/bulk/again?status=failed", NULL);
    api_expect(w, "the failed one again", 200,
               "{'matched':1,'done':1,'unchanged':0,'failed':[],'started':[{'runId':'*','rerunOf':"
               "'failed'}],'nextCursor':null}");
    api_ask(w, "GET /api/v1/runs?rerunOf=failed", NULL);
    api_expect(w, "it is there, and linked", 200,
               "{'runs':[{'workflow':'fails','rerunOf':'failed'}]}");
    rv_test_advance(w->engine, 1000, NULL);
    api_begin(w, "ask", "waits2", "2");
    api_begin(w, "ask", "waits3", "3");
    rv_test_advance(w->engine, 1000, NULL);
    api_ask(w, "POST /api/v1/bulk/again?workflow=ask", NULL);
    api_expect(w, "what runs is not begun again", 200, "{'matched':3,'done':0,'unchanged':3}");
    api_ask(w, "POST /api/v1/bulk/cancel?waiting=somebody&limit=2", NULL);
    api_expect(w, "a piece", 200,
               "{'matched':2,'done':2,'unchanged':0,'failed':[],'started':'-','nextCursor':'*'}");
    char line[600];
    snprintf(line, sizeof line, "POST /api/v1/bulk/cancel?waiting=somebody&limit=2&cursor=%s",
             json_string_value(json_object_get(w->document, "nextCursor")));
    api_ask(w, line, NULL);
    api_expect(w, "and the rest", 200, "{'matched':1,'done':1,'nextCursor':null}");
    api_ask(w, "GET /api/v1/counts", NULL);
    api_expect(w, "none is left", 200, "{'running':0,'cancelled':3,'waiting':0,'failed':2}");
    api_ask(w, "POST /api/v1/bulk/cancel?all=1", NULL);
    api_expect(w, "what has ended stays so", 200, "{'done':0,'unchanged':6}");
    api_ask_as(w, RV__ROLE_VIEWER, "POST /api/v1/bulk/cancel?all=1", NULL);
    assert_int_equal(w->answer.status, 403);
    api_ask_as(w, RV__ROLE_VIEWER, "POST /api/v1/bulk/again?all=1", NULL);
    assert_int_equal(w->answer.status, 403);
}

/* All that happened, page by page, each event once. */
/* `workflow`: ended, failed and how many hours something ended in; -1: it is not told. */
static void fared(struct api_world *w, const char *workflow, int ended, int failed, int hours)
{
    json_t *one, *hour;
    size_t i, k;
    int found[3] = { -1, -1, 0 };
    api_ask(w, "GET /api/v1/overview", NULL);
    api_expect(w, "an overview", 200, "{'complete':true,'health':{'ok':true},'others':0}");
    json_array_foreach (json_object_get(w->document, "workflows"), i, one) {
        if (strcmp(json_string_value(json_object_get(one, "workflow")), workflow) != 0)
            continue;
        found[0] = (int)json_number_value(json_object_get(one, "ended"));
        found[1] = (int)json_number_value(json_object_get(one, "failed"));
        assert_int_equal(json_array_size(json_object_get(one, "hours")), 24);
        json_array_foreach (json_object_get(one, "hours"), k, hour)
            found[2] += json_number_value(json_object_get(hour, "ended")) > 0;
    }
    if (found[0] != ended || found[1] != failed || found[2] != hours)
        fail_msg("%s: %d ended, %d failed, in %d hours: %s", workflow, found[0], found[1], found[2],
                 w->answer.body);
}

static void an_overview_tells_how_the_last_day_was(void **state)
{
    struct api_world *w = *state;
    char id[40];
    fared(w, "greet", 1, 0, 1);
    fared(w, "fails", 1, 1, 1);
    fared(w, "ask", -1, -1, 0);
    api_expect(w, "who waits", 200,
               "{'oldestWaiting':[{'runId':'waits','workflow':'ask','status':'running'}],"
               "'counts':{'waiting':1}}");
    api_begin(w, "fails", "failed2", NULL);
    rv_test_advance(w->engine, 500, NULL);
    fared(w, "fails", 2, 2, 1); /* within what may still change its order */
    fared(w, "fails", 2, 2, 1);
    rv_test_advance(w->engine, 10000, NULL);
    fared(w, "fails", 2, 2, 1);
    for (int i = 0; i < 1200; i++) { /* more than are read at a time */
        snprintf(id, sizeof id, "again-%d", i);
        api_begin(w, "fails", id, NULL);
        if (i % 400 == 0) {
            rv_test_advance(w->engine, 1000, NULL);
            fared(w, "fails", 2 + i + 1, 2 + i + 1, 1);
        }
    }
    rv_test_advance(w->engine, 3600000, NULL);
    api_begin(w, "greet", "later", "{\"name\":\"Bo\"}");
    rv_test_advance(w->engine, 1000, NULL);
    fared(w, "fails", 1202, 1202, 1);
    fared(w, "greet", 2, 0, 2);
    assert_true(json_number_value(json_object_get(
                    json_array_get(json_object_get(w->document, "workflows"), 0), "medianMs")) >=
                0);
    for (int i = 0; i < 23; i++)
        rv_test_advance(w->engine, 3600000, NULL);
    fared(w, "fails", -1, -1, 0); /* that was yesterday */
    fared(w, "greet", 1, 0, 1);
}

static void the_history_of_a_run_comes_in_pages(void **state)
{
    struct api_world *w = *state;
    char line[200], seen[2000] = "", at[64] = "";
    for (bool more = true; more;) {
        snprintf(line, sizeof line, "GET /api/v1/runs/failed/history?limit=2%s%s",
                 at[0] != '\0' ? "&after=" : "", at);
        api_ask(w, line, NULL);
        api_expect(w, "a page", 200, "{'events':'*','next':'*','more':'*'}");
        json_t *event;
        size_t i;
        json_array_foreach (json_object_get(w->document, "events"), i, event)
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s ",
                     json_string_value(json_object_get(event, "kind")));
        snprintf(at, sizeof at, "%s", json_string_value(json_object_get(w->document, "next")));
        more = json_is_true(json_object_get(w->document, "more"));
    }
    assert_string_equal(seen, "run.started step.started step.failed run.failed ");
    snprintf(line, sizeof line, "GET /api/v1/runs/failed/history?after=%s", at);
    api_ask(w, line, NULL);
    api_expect(w, "behind the last is nothing", 200, "{'events':[],'more':false,'next':'*'}");
    api_ask(w, "GET /api/v1/runs/failed/history?after=x", NULL);
    api_expect(w, "a position is one", 400, "{}");
    api_ask(w, "GET /api/v1/runs/nix/history", NULL);
    api_expect(w, "of nothing", 404, "{}");
}

static void roles_say_who_may_do_what(void **state)
{
    static const struct {
        enum rv__role role;
        const char *line;
        int status;
    } tries[] = {
        { RV__ROLE_NONE, "GET /healthz", 200 },
        { RV__ROLE_NONE, "GET /readyz", 200 },
        { RV__ROLE_NONE, "GET /api/v1/runs", 401 },
        { RV__ROLE_NONE, "GET /metrics", 401 },
        { RV__ROLE_VIEWER, "GET /api/v1/runs", 200 },
        { RV__ROLE_VIEWER, "GET /metrics", 200 },
        { RV__ROLE_VIEWER, "POST /api/v1/runs/waits/cancel", 403 },
        { RV__ROLE_VIEWER, "POST /api/v1/runs/nix/cancel", 403 },
        { RV__ROLE_OPERATOR, "POST /api/v1/runs/waits/cancel", 200 },
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        api_ask_as(*state, tries[i].role, tries[i].line, NULL);
        if (((struct api_world *)*state)->answer.status != tries[i].status)
            fail_msg("%s: %d", tries[i].line, ((struct api_world *)*state)->answer.status);
    }
}

static void a_body_says_that_it_is_json(void **state)
{
    struct api_world *w = *state;
    static const struct {
        const char *type;
        int status;
    } tries[] = { { "application/json; charset=utf-8", 200 },
                  { "Application/JSON", 200 },
                  { "application/merge-patch+json", 200 },
                  { "text/plain", 415 },
                  { "application/jsonx", 415 },
                  { "", 415 },
                  { NULL, 200 } }; /* nobody says */
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        const struct rv__api_request request = { .method = "POST",
                                                 .path = "/api/v1/runs/waits/signals/a",
                                                 .query = "force=true",
                                                 .content_type = tries[i].type,
                                                 .body = "1",
                                                 .body_length = 1,
                                                 .role = RV__ROLE_ADMIN };
        rv__api_answer_done(&w->answer);
        rv__api_handle(w->engine, &request, &w->answer);
        assert_int_equal(w->answer.status, tries[i].status);
    }
}

static void events_are_for_the_transport(void **state)
{
    struct api_world *w = *state;
    api_ask(w, "GET /api/v1/runs/done/events?logs=0", NULL);
    assert_int_equal(w->answer.kind, RV__ANSWER_EVENTS);
    assert_string_equal(w->answer.run_id, "done");
    assert_string_equal(w->answer.type, "text/event-stream");
    assert_true(w->answer.no_logs);
    api_ask(w, "GET /api/v1/events", NULL);
    assert_int_equal(w->answer.kind, RV__ANSWER_EVENTS);
    assert_string_equal(w->answer.run_id, "");
    assert_false(w->answer.no_logs);
    api_ask(w, "GET /api/v1/runs/nix/events", NULL);
    assert_int_equal(w->answer.status, 404);
    api_ask(w, "GET /api/v1/events?logs=2", NULL);
    assert_int_equal(w->answer.status, 400);
}

static void waiting_is_for_the_transport(void **state)
{
    struct api_world *w = *state;
    api_ask(w, "GET /api/v1/runs/waits/wait?timeoutMs=500", NULL);
    assert_int_equal(w->answer.kind, RV__ANSWER_WAIT);
    assert_string_equal(w->answer.run_id, "waits");
    assert_int_equal(w->answer.timeout_ms, 500);
    api_ask(w, "GET /api/v1/runs/waits/wait", NULL);
    assert_int_equal(w->answer.timeout_ms, 300000);
    rv__api_answer_done(&w->answer);
    rv__api_waited(w->engine, "waits", 500, NULL, &w->answer);
    assert_int_equal(w->answer.status, 408);
    assert_non_null(strstr(w->answer.body, "after 500 ms\",\"runStatus\":\"running\""));
    rv_signal(w->engine, "waits", "go", "5", NULL);
    rv_test_advance(w->engine, 0, NULL);
    rv__api_answer_done(&w->answer);
    rv__api_waited(w->engine, "waits", 700, NULL, &w->answer);
    assert_int_equal(w->answer.status, 200);
    assert_non_null(strstr(w->answer.body, "\"go\":{\"result\":5,"));
    rv__api_answer_done(&w->answer);
    rv__api_waited(w->engine, "nix", 700, NULL, &w->answer);
    assert_int_equal(w->answer.status, 404);
}

static void a_step_is_completed_by_its_handle(void **state)
{
    static const struct row steps[] = {
        { "no such handle", "POST /api/v1/runs/p1/handles/h9", "{}", 404, "{}" },
        { "no such run", "POST /api/v1/runs/nix/handles/h1", "{}", 404, "{}" },
        { "not both", "POST /api/v1/runs/p1/handles/h1", "{\"result\":1,\"error\":\"x\"}", 422,
          "{'violations':[{'path':'/error','message':'*'}]}" },
        { "an error is text", "POST /api/v1/runs/p1/handles/h1", "{\"error\":1}", 422, "{}" },
        { "a result", "POST /api/v1/runs/p1/handles/h1", "{\"result\":{\"n\":7}}", 200,
          "{'runId':'p1','status':'*'}" },
        { "once", "POST /api/v1/runs/p1/handles/h1", "{\"result\":2}", 404, "{}" },
        { "it is there", "GET /api/v1/runs/p1", NULL, 200,
          "{'status':'completed','results':{'later':{'result':{'n':7}}}}" },
        { "an error", "POST /api/v1/runs/p2/handles/h1", "{\"error\":\"declined\"}", 200, "{}" },
        { "it failed by it", "GET /api/v1/runs/p2", NULL, 200,
          "{'status':'failed','error':{'message':'declined'}}" },
        { "nothing is null", "POST /api/v1/runs/p3/handles/h1", NULL, 200, "{}" },
        { "and done", "GET /api/v1/runs/p3", NULL, 200, "{'status':'completed'}" },
    };
    struct api_world *w = *state;
    rv_workflow *parks = rv_workflow_new("parks");
    rv_add_step(rv_workflow_body(parks), "later", later, NULL);
    api_put(w, parks);
    api_begin(w, "parks", "p1", NULL);
    api_begin(w, "parks", "p2", NULL);
    api_begin(w, "parks", "p3", NULL);
    rv_test_advance(w->engine, 10, NULL);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        api_ask(w, steps[i].line, steps[i].body);
        api_expect(w, steps[i].says, steps[i].status, steps[i].expected);
        rv_test_advance(w->engine, 10, NULL);
    }
    api_ask_as(w, RV__ROLE_VIEWER, "POST /api/v1/runs/p1/handles/h1", "{}");
    assert_int_equal(w->answer.status, 403);
}

/* Every event that has a `by`, and no other: "kind=name ". */
static void who_did(struct api_world *w, const char *run, char *text, size_t room)
{
    char line[200];
    json_t *event;
    size_t i;
    snprintf(line, sizeof line, "GET /api/v1/runs/%s/history?by=1", run);
    api_ask(w, line, NULL);
    text[0] = '\0';
    json_array_foreach (json_object_get(w->document, "events"), i, event) {
        const char *by = json_string_value(json_object_get(event, "by"));
        snprintf(text + strlen(text), room - strlen(text), "%s=%s ",
                 json_string_value(json_object_get(event, "kind")), by != NULL ? by : "nobody");
    }
}

static void who_did_it_is_recorded(void **state)
{
    struct api_world *w = *state;
    char who[400], name[RV_BY_BYTES + 2];
    rv_workflow *parks = rv_workflow_new("parks");
    rv_add_step(rv_workflow_body(parks), "later", later, NULL);
    api_put(w, parks);
    w->by = "ana";
    api_ask(w, "POST /api/v1/workflows/ask/runs", "{\"runId\":\"asked\"}");
    api_ask(w, "POST /api/v1/workflows/ask/runs", "{\"runId\":\"dropped\"}");
    api_ask(w, "POST /api/v1/workflows/parks/runs", "{\"runId\":\"parked\"}");
    rv_test_advance(w->engine, 10, NULL);
    w->by = "bo \"the\" second";
    api_ask(w, "POST /api/v1/runs/asked/signals/go", "1");
    api_ask(w, "POST /api/v1/runs/dropped/cancel", NULL);
    api_ask(w, "POST /api/v1/runs/parked/handles/h1", "{\"result\":1}");
    rv_test_advance(w->engine, 10, NULL);
    who_did(w, "asked", who, sizeof who);
    assert_string_equal(who, "run.started=ana signal.received=bo \"the\" second ");
    who_did(w, "dropped", who, sizeof who);
    assert_string_equal(who, "run.started=ana run.cancelled=bo \"the\" second ");
    who_did(w, "parked", who, sizeof who);
    assert_string_equal(who, "run.started=ana step.completed=bo \"the\" second ");
    api_ask(w, "POST /api/v1/bulk/again?status=cancelled", NULL);
    api_expect(w, "a repeat", 200, "{'done':1}");
    who_did(w,
            json_string_value(json_object_get(
                json_array_get(json_object_get(w->document, "started"), 0), "runId")),
            who, sizeof who);
    assert_string_equal(who, "run.started=bo \"the\" second ");
    w->by = ""; /* a token without a name */
    api_ask(w, "POST /api/v1/runs/waits/signals/go", "1");
    who_did(w, "waits", who, sizeof who);
    assert_string_equal(who, "");

    assert_int_equal(rv_test_crash(w->engine, &w->err), RV_OK); /* journals with names are read */
    w->by = "ana";
    who_did(w, "asked", who, sizeof who);
    assert_string_equal(who, "run.started=ana signal.received=bo \"the\" second ");

    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(rv_cancel_run_with(w->engine, "asked", RV_CANCEL_OPTS(.by = name), &w->err),
                     RV_EINVAL);
    assert_int_equal(rv_run(w->engine, "ask", NULL, RV_RUN_OPTS(.by = "\xff"), NULL, &w->err),
                     RV_EINVAL);
}

static void logging_in_is_for_the_transport(void **state)
{
    struct api_world *w = *state;
    api_ask_as(w, RV__ROLE_NONE, "POST /api/v1/login", "{\"token\":\"s\\u0065cret\"}");
    assert_int_equal(w->answer.kind, RV__ANSWER_LOGIN);
    assert_string_equal(w->answer.body, "secret");
    assert_int_equal(w->answer.length, 6);
    api_ask_as(w, RV__ROLE_NONE, "POST /api/v1/login", "{}");
    api_expect(w, "without a token", 422,
               "{'violations':[{'path':'/token','message':'is missing'}]}");
    api_ask_as(w, RV__ROLE_NONE, "POST /api/v1/logout", NULL);
    assert_int_equal(w->answer.kind, RV__ANSWER_LOGOUT);
    api_ask_as(w, RV__ROLE_NONE, "GET /api/v1/session", NULL);
    assert_int_equal(w->answer.kind, RV__ANSWER_SESSION);
    rv__api_session(RV__ROLE_VIEWER, "", true, &w->answer);
    assert_string_equal(w->answer.body, "{\"role\":\"viewer\",\"authRequired\":true}");
    assert_true(rv__api_is_open("/api/v1/login") && rv__api_is_open("/healthz"));
    assert_false(rv__api_is_open("/api/v1/runs") || rv__api_is_open("/api/v1/login/"));
}

static void metrics_are_text(void **state)
{
    struct api_world *w = *state;
    api_ask(w, "GET /metrics", NULL);
    assert_int_equal(w->answer.status, 200);
    assert_string_equal(w->answer.type, "text/plain; version=0.0.4; charset=utf-8");
    assert_non_null(strstr(w->answer.body, "# TYPE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(requests_get_their_answers),
        API_TEST(what_states_left_is_told),
        API_TEST(a_node_may_come_without_its_values),
        API_TEST(numbers_keep_their_digits),
        API_TEST(pages_follow_each_other),
        API_TEST(many_runs_are_told_at_once),
        API_TEST(a_long_input_is_not_in_a_list),
        API_TEST(the_history_of_a_run_comes_in_pages),
        API_TEST(a_run_and_its_repeats_are_linked),
        API_TEST(roles_say_who_may_do_what),
        API_TEST(a_body_says_that_it_is_json),
        API_TEST(events_are_for_the_transport),
        API_TEST(waiting_is_for_the_transport),
        API_TEST(a_step_is_completed_by_its_handle),
        API_TEST(who_did_it_is_recorded),
        API_TEST(an_overview_tells_how_the_last_day_was),
        API_TEST(logging_in_is_for_the_transport),
        API_TEST(metrics_are_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
