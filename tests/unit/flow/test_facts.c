/* test_facts.c: facts as text, whole and damaged. For src/flow/fact.c, check.c and evolve.c. */
#include "base/json.h"
#include "flow/cell.h"
#include "unit/flow/zoo.h"

enum { MAX_FACTS = 400 };

/* A run of the zoo, as its journal: the facts one by one, and the state before each of them. */
struct story {
    struct rig *rig;
    struct rv__str facts[MAX_FACTS];
    struct rv__buf states[MAX_FACTS + 1]; /* as saved */
    size_t count;
};

static struct rv__cell *empty_cell(struct rig *rig)
{
    struct rv__cell_opts opts = { .plan = rig->plan };
    struct rv__cell *cell = NULL;
    assert_int_equal(rv__cell_empty(&opts, &cell, NULL), RV_OK);
    return cell;
}

static struct story *story_new(uint64_t seed, int moves)
{
    struct story *story = calloc(1, sizeof *story);
    uint64_t dice = seed * 48271;
    story->rig = zoo_run(seed % ZOO);
    story->rig->replay = false;
    for (int n = 0; n < moves && zoo_move(story->rig, &dice); n++)
        ;
    const char *at = story->rig->journal.text, *end = at + story->rig->journal.len;
    while (at < end && story->count < MAX_FACTS) {
        const char *next = rv__json_skip(at, end);
        story->facts[story->count++] = (struct rv__str){ at, (size_t)(next - at) };
        at = next + 1;
    }
    struct rv__cell *cell = empty_cell(story->rig);
    for (size_t i = 0; i <= story->count; i++) {
        rv__buf_init(&story->states[i], 1u << 24);
        assert_int_equal(rv__cell_save(cell, &story->states[i], NULL), RV_OK);
        if (i < story->count)
            assert_int_equal(rv__cell_replay_json(cell, story->facts[i], NULL), RV_OK);
    }
    rv__cell_free(cell);
    return story;
}

static void story_free(struct story *story)
{
    for (size_t i = 0; i <= story->count; i++)
        rv__buf_done(&story->states[i]);
    rig_free(story->rig);
    free(story);
}

/* The cell before the i-th fact. */
static struct rv__cell *story_cell(struct story *story, size_t i)
{
    struct rv__cell_opts opts = { .plan = story->rig->plan };
    struct rv__cell *cell = NULL;
    rv_error err;
    if (i == 0) /* what has not begun has no snapshot */
        return empty_cell(story->rig);
    if (rv__cell_load(&opts, rv__buf_view(&story->states[i]), &cell, &err) < 0)
        fail_msg("%s: %s", err.message, story->states[i].text);
    return cell;
}

/* ------------------------------------------------------------------------------ whole ones --- */

static void what_is_written_is_read_and_written_the_same(void **state)
{
    bool seen[FACT_KINDS] = { false };
    (void)state;
    for (uint64_t seed = 1; seed <= 60 * ZOO; seed++) {
        struct story *story = story_new(seed, 60);
        struct rv__cell *cell = empty_cell(story->rig);
        struct rv__buf out;
        rv__buf_init(&out, 1u << 20);
        for (size_t i = 0; i < story->count; i++) {
            struct rv__fact fact = { 0 };
            rv_error err;
            int rc;
            TORTURE(rc, rv__fact_read(story->facts[i], &fact, &err), assert_null(fact.result));
            assert_int_equal(rc, RV_OK);
            seen[fact.kind] = true;
            rv__buf_reset(&out);
            rv__fact_write(cell, &fact, &out);
            if (!rv__str_eq(rv__buf_view(&out), story->facts[i]))
                fail_msg("read  %.*s\nwrote %s", RV__ARG(story->facts[i]), out.text);
            assert_int_equal(rv__cell_replay(cell, &fact, &err), RV_OK);
            rv__fact_done(&fact);
        }
        rv__buf_done(&out);
        rv__cell_free(cell);
        story_free(story);
    }
    for (int kind = 0; kind < FACT_KINDS; kind++)
        if (!seen[kind])
            fail_msg("the zoo never says %s", rv__fact_kind_name((enum rv__fact_kind)kind));
}

static void a_replay_survives_without_memory(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2 * ZOO; seed++) {
        struct story *story = story_new(seed, 40);
        struct rv__cell *cell = empty_cell(story->rig);
        struct rv__buf out;
        rv__buf_init(&out, 1u << 24);
        for (size_t i = 0; i < story->count; i++) {
            rv_error err;
            int rc;
            TORTURE(rc, rv__cell_replay_json(cell, story->facts[i], &err),
                    (rv__test_fail_alloc_after(-1), rv__buf_reset(&out),
                     (void)rv__cell_save(cell, &out, NULL),
                     assert_string_equal(out.text, story->states[i].text)));
            assert_int_equal(rc, RV_OK);
        }
        rv__buf_done(&out);
        rv__cell_free(cell);
        story_free(story);
    }
}

/* ---------------------------------------------------------------------------- damaged ones --- */

static const struct {
    const char *says,
        *fact; /* said to a cell that runs the step 'a' (actor 2) of the outermost (1) */
    int rc;
} table[] = {
    { "a fact", "{'k':'step.completed','a':2,'n':0,'at':5}", RV_OK },
    { "no object", "7", RV_ESTORE },
    { "nothing", "{}", RV_ESTORE },
    { "no kind", "{'a':2,'n':0,'at':5}", RV_ESTORE },
    { "a kind that is no text", "{'k':7,'a':2,'n':0,'at':5}", RV_ESTORE },
    { "an unknown kind", "{'k':'step.dreamt','a':2,'n':0,'at':5}", RV_ESTORE },
    { "an unknown field", "{'k':'step.completed','a':2,'n':0,'at':5,'zz':1}", RV_ESTORE },
    { "its attempt", "{'k':'step.completed','a':2,'n':0,'at':5,'attempt':1}", RV_OK },
    { "another attempt", "{'k':'step.completed','a':2,'n':0,'at':5,'attempt':2}", RV_ESTORE },
    { "another attempt that failed", "{'k':'step.failed','a':2,'n':0,'at':5,'attempt':7}",
      RV_ESTORE },
    { "a field of another kind", "{'k':'step.completed','a':2,'n':0,'at':5,'due':1}", RV_ESTORE },
    { "no actor", "{'k':'step.completed','n':0,'at':5}", RV_ESTORE },
    { "no node", "{'k':'step.completed','a':2,'at':5}", RV_ESTORE },
    { "another node", "{'k':'step.completed','a':2,'n':1,'at':5}", RV_ESTORE },
    { "a node that is not there", "{'k':'step.completed','a':2,'n':99,'at':5}", RV_ESTORE },
    { "a node beyond all", "{'k':'step.completed','a':2,'n':4294967296,'at':5}", RV_ESTORE },
    { "an actor that is not there", "{'k':'step.completed','a':9,'n':0,'at':5}", RV_ESTORE },
    { "actor nought", "{'k':'step.completed','a':0,'n':0,'at':5}", RV_ESTORE },
    { "an actor below nought", "{'k':'step.completed','a':-2,'n':0,'at':5}", RV_ESTORE },
    { "an actor with a fraction", "{'k':'step.completed','a':2.5,'n':0,'at':5}", RV_ESTORE },
    { "an actor as text", "{'k':'step.completed','a':'2','n':0,'at':5}", RV_ESTORE },
    { "a frame where a step is meant", "{'k':'step.completed','a':1,'n':0,'at':5}", RV_ESTORE },
    { "a time as text", "{'k':'step.completed','a':2,'n':0,'at':'5'}", RV_ESTORE },
    { "a signal it cannot take", "{'k':'step.completed','a':2,'n':0,'at':5,'signal':true}",
      RV_ESTORE },
    { "a signal as number", "{'k':'step.completed','a':2,'n':0,'at':5,'signal':1}", RV_ESTORE },
    { "a timer that is not set", "{'k':'timer.fired','a':2,'n':0,'at':5}", RV_ESTORE },
    { "a start of what runs", "{'k':'step.started','a':2,'n':0,'at':5,'attempt':1}", RV_ESTORE },
    { "no attempt", "{'k':'step.started','a':3,'o':1,'n':0,'at':5}", RV_ESTORE },
    { "a second child", "{'k':'step.started','a':3,'o':1,'n':1,'at':5,'attempt':1}", RV_ESTORE },
    { "a number out of turn", "{'k':'step.started','a':7,'o':1,'n':1,'at':5,'attempt':1}",
      RV_ESTORE },
    { "an owner that is not there", "{'k':'step.started','a':3,'o':8,'n':1,'at':5,'attempt':1}",
      RV_ESTORE },
    { "a step that begins as a supervisor", "{'k':'node.started','a':3,'o':1,'n':0,'at':5}",
      RV_ESTORE },
    { "a body of a step", "{'k':'body.started','a':3,'o':2,'n':0,'at':5,'x':0}", RV_ESTORE },
    { "an end that begins", "{'k':'node.completed','a':3,'o':1,'n':0,'at':5}", RV_ESTORE },
    { "an end of a sequence that goes on",
      "{'k':'body.ended','a':1,'n':0,'at':5,'x':0,'status':'completed'}", RV_ESTORE },
    { "a second beginning", "{'k':'run.started','a':3,'at':5,'nonce':'00000000000000a1'}",
      RV_ESTORE },
    { "a resume of what runs", "{'k':'run.resumed','at':5}", RV_ESTORE },
    { "a suspension by nobody", "{'k':'run.suspended','a':9,'n':0,'at':5}", RV_ESTORE },
    { "a signal without a name", "{'k':'signal.received','at':5,'result':1}", RV_ESTORE },
    { "a signal without its payload", "{'k':'signal.received','at':5,'name':'go'}", RV_ESTORE },
    { "a name that is no text", "{'k':'signal.received','at':5,'name':5,'result':1}", RV_ESTORE },
    { "an unknown evaluation", "{'k':'eval.started','a':2,'n':0,'at':5,'eval':'why'}", RV_ESTORE },
    { "an evaluation nobody wants", "{'k':'eval.started','a':2,'n':0,'at':5,'eval':'when'}",
      RV_ESTORE },
    { "the end of an evaluation that never was",
      "{'k':'eval.completed','a':2,'n':0,'at':5,'eval':'when'}", RV_ESTORE },
    { "an unknown status", "{'k':'body.ended','a':1,'n':0,'at':5,'x':0,'status':'gone'}",
      RV_ESTORE },
    { "truth as text", "{'k':'step.failed','a':2,'n':0,'at':5,'hard':'yes'}", RV_ESTORE },
    { "a field there twice", "{'k':'step.completed','a':2,'n':0,'at':5,'result':1,'result':2}",
      RV_ESTORE },
    { "a detached scope that is none", "{'k':'detached.ended','a':1,'n':0,'at':5}", RV_ESTORE },
    { "the last attempt there is",
      "{'k':'step.lost','a':2,'n':0,'at':5,'suspect':true,'blame':true,'deaths':2}", RV_OK },
    { "a death too many to be one", "{'k':'step.lost','a':2,'n':0,'at':5,'deaths':1000001}",
      RV_ESTORE },
    { "an attempt that was lost with its process",
      "{'k':'step.lost','a':2,'n':0,'at':5,'crash':true}", RV_OK },
    { "a step that is cut like a delay", "{'k':'step.parked','a':2,'n':0,'at':5,'cut':true}",
      RV_ESTORE },
    { "an escaped name", "{'k':'signal.received','at':5,'name':'\\u0041\\n','result':1}", RV_OK },
};

static void a_damaged_fact_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct rig *rig = rig_of(S("a") ",{'type':'branch','alias':'b','if':true,'then':[]}", NULL);
        struct rv__buf before, after;
        rv_error err = { 0 };
        rv__buf_init(&before, 1u << 20);
        rv__buf_init(&after, 1u << 20);
        (void)rv__cell_save(rig->cell, &before, NULL);
        int rc = rv__cell_replay_json(rig->cell, rv__str(J(table[i].fact)), &err);
        (void)rv__cell_save(rig->cell, &after, NULL);
        if (rc != table[i].rc || (rc < 0 && err.message[0] == '\0'))
            fail_msg("%s: rc %d, '%s'", table[i].says, rc, err.message);
        if (rc < 0 && strcmp(before.text, after.text) != 0)
            fail_msg("%s: changed\n%s\n%s", table[i].says, before.text, after.text);
        rv__buf_done(&before);
        rv__buf_done(&after);
        rig_free(rig);
    }
    struct rig *rig = rig_of(S("a"), NULL); /* before the beginning nothing fits */
    struct rv__cell *cell = empty_cell(rig);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_int_equal(rv__cell_replay_json(cell, rv__str(J(table[i].fact)), NULL), RV_ESTORE);
    rv__cell_free(cell);
    rig_free(rig);
}

/* clang-format off: a line each */

/* The same in states further on: what a run has said, and a fact that does not fit it then. */
static const struct {
    const char *says, *steps, *story, *fact;
    int rc;
} misfits[] = {
#define BEGUN "{'k':'run.started','a':1,'at':1,'nonce':'00000000000000a1'},"
#define WF    "{'type':'workflow','alias':'w','name':'w','steps':[" S("p") "]}"
#define BR    "{'type':'branch','alias':'b','if':true,'then':[" S("p") "],'else':[]}"
#define LO    "{'type':'loop','alias':'l','until':true,'body':[" S("p") "]}"
#define LW    "{'type':'loop','alias':'l','while':true,'body':[" S("p") "]}"
#define FE    "{'type':'forEach','alias':'e','items':[],'parallel':true,'run':[" S("p") "]}"
#define CO    "{'type':'concurrent','alias':'c','steps':[" S("p") "," S("q") "]}"
#define DE    "{'type':'concurrent','alias':'c','continueOn':'detached','steps':[" S("p") "]}"
#define NODE2 BEGUN "{'k':'node.started','a':2,'o':1,'n':0,'at':1}"
#define EVAL2(what, value)                                        \
    NODE2 ",{'k':'eval.started','a':2,'n':0,'at':1,'eval':'" what \
          "'},{'k':'eval.completed','a':2,'n':0,'at':1,'eval':'" what "','result':" value "}"
#define BODY3 NODE2 ",{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':0}"
    { "a workflow's body", WF, NODE2, "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':0}",
      RV_OK },
    { "a workflow has one body", WF, NODE2, "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':1}",
      RV_ESTORE },
    { "and has it once", WF, BODY3, "{'k':'body.started','a':4,'o':2,'n':0,'at':1,'x':0}",
      RV_ESTORE },
    { "a body's end is the workflow's", WF, BODY3,
      "{'k':'body.ended','a':3,'n':0,'at':1,'x':0,'status':'completed'}", RV_ESTORE },
    { "a workflow that has not run", WF, NODE2, "{'k':'node.completed','a':2,'n':0,'at':1}",
      RV_ESTORE },
    { "a workflow that has not run cannot fail", WF, NODE2,
      "{'k':'node.failed','a':2,'n':0,'at':1}", RV_ESTORE },
    { "a body of another node", WF, NODE2, "{'k':'body.started','a':3,'o':2,'n':1,'at':1,'x':0}",
      RV_ESTORE },
    { "a body of a sequence", WF, NODE2, "{'k':'body.started','a':3,'o':1,'n':0,'at':1,'x':0}",
      RV_ESTORE },
    { "a node of a supervisor", WF, NODE2,
      "{'k':'step.started','a':3,'o':2,'n':1,'at':1,'attempt':1}", RV_ESTORE },
    { "a node that is not the next", WF "," S("z"),
      BEGUN "{'k':'signal.received','at':1,'name':'x','result':1}",
      "{'k':'step.started','a':2,'o':1,'n':2,'at':1,'attempt':1}", RV_ESTORE },
    { "a path before its condition", BR, NODE2,
      "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':0}", RV_ESTORE },
    { "a path", BR, EVAL2("if", "true"), "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':1}",
      RV_OK },
    { "a third path", BR, EVAL2("if", "true"),
      "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':2}", RV_ESTORE },
    { "a branch that took none", BR, EVAL2("if", "true"),
      "{'k':'node.completed','a':2,'n':0,'at':1}", RV_ESTORE },
    { "a branch that is skipped by its condition", BR, EVAL2("if", "true"),
      "{'k':'node.skipped','a':2,'n':0,'at':1}", RV_ESTORE },
    { "another evaluation", BR, NODE2, "{'k':'eval.started','a':2,'n':0,'at':1,'eval':'while'}",
      RV_ESTORE },
    { "a when nobody has", BR, BEGUN "{'k':'signal.received','at':1,'name':'x','result':1}",
      "{'k':'eval.started','a':2,'o':1,'n':0,'at':1,'eval':'when'}", RV_ESTORE },
    { "an evaluation that begins a node, and is no when", BR,
      BEGUN "{'k':'signal.received','at':1,'name':'x','result':1}",
      "{'k':'eval.started','a':2,'o':1,'n':0,'at':1,'eval':'if'}", RV_ESTORE },
    { "an iteration", LO, NODE2, "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':0}", RV_OK },
    { "an iteration that is not the next", LO, NODE2,
      "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':1}", RV_ESTORE },
    { "two iterations at once", LO, BODY3, "{'k':'body.started','a':4,'o':2,'n':0,'at':1,'x':0}",
      RV_ESTORE },
    { "an iteration that has not ended", LO,
      BODY3 ",{'k':'step.started','a':4,'o':3,'n':1,'at':1,'attempt':1}",
      "{'k':'body.ended','a':3,'n':0,'at':1,'x':0,'status':'completed'}", RV_ESTORE },
    { "an iteration that is skipped", LO, BODY3,
      "{'k':'body.ended','a':3,'n':0,'at':1,'x':0,'status':'skipped'}", RV_ESTORE },
    { "an iteration before its condition", LW, NODE2,
      "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':0}", RV_ESTORE },
    { "an iteration by its condition", LW, EVAL2("while", "1"),
      "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':0}", RV_OK },
    { "an item", FE, EVAL2("items", "[1]"), "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':0}",
      RV_OK },
    { "an item that is not the next", FE, EVAL2("items", "[1,2]"),
      "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':1}", RV_ESTORE },
    { "an item too many", FE, EVAL2("items", "[]"),
      "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':0}", RV_ESTORE },
    { "an item of no array", FE, EVAL2("items", "{}"),
      "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':0}", RV_ESTORE },
    { "no array, and completed", FE, EVAL2("items", "{}"),
      "{'k':'node.completed','a':2,'n':0,'at':1}", RV_ESTORE },
    { "a child", CO, NODE2, "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':0}", RV_OK },
    { "a child that is not the next", CO, NODE2,
      "{'k':'body.started','a':3,'o':2,'n':0,'at':1,'x':1}", RV_ESTORE },
    { "a child too many", CO, BODY3 ",{'k':'body.started','a':4,'o':2,'n':0,'at':1,'x':1}",
      "{'k':'body.started','a':5,'o':2,'n':0,'at':1,'x':2}", RV_ESTORE },
    { "a loss of what is no work", CO, NODE2, "{'k':'step.lost','a':2,'n':0,'at':1}", RV_ESTORE },
    { "a child's end as a detached scope's", CO, BODY3, "{'k':'detached.ended','a':3,'n':0,'at':1}",
      RV_ESTORE },
    { "a detached scope that is not done", DE, NODE2 ",{'k':'node.completed','a':2,'n':0,'at':1}",
      "{'k':'detached.ended','a':3,'n':0,'at':1}", RV_ESTORE },
    { "a detached scope that ends as a body", DE,
      NODE2 ",{'k':'node.completed','a':2,'n':0,'at':1}",
      "{'k':'body.ended','a':3,'n':0,'at':1,'x':0,'status':'completed'}", RV_ESTORE },
    { "a node below a detached scope", DE "," S("z"),
      NODE2 ",{'k':'node.completed','a':2,'n':0,'at':1}",
      "{'k':'step.started','a':4,'o':3,'n':2,'at':1,'attempt':1}", RV_ESTORE },
    { "a node behind the last", DE, NODE2 ",{'k':'node.completed','a':2,'n':0,'at':1}",
      "{'k':'node.started','a':4,'o':1,'n':0,'at':1}", RV_ESTORE },
    { "a delay that is parked again", DELAY("d", "5"),
      BEGUN "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1,'due':5}",
      "{'k':'step.parked','a':2,'n':0,'at':1}", RV_ESTORE },
    { "a signal that did not come", SIGNAL("s", "go"),
      BEGUN "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1}",
      "{'k':'step.completed','a':2,'n':0,'at':1,'signal':true}", RV_ESTORE },
    { "a supervisor that begins as a step", CO,
      BEGUN "{'k':'signal.received','at':1,'name':'x','result':1}",
      "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1}", RV_ESTORE },
    { "a handler of what did not fail", STEP("a", "'onError':{'name':'h'}"),
      BEGUN "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1}",
      "{'k':'step.started','a':3,'o':2,'n':1,'at':1,'attempt':1}", RV_ESTORE },
    { "a handler of another",
      STEP("a", "'onError':{'name':'h'}") "," STEP("b", "'onError':{'name':'h'}"),
      BEGUN "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1},{'k':'step.failed','a':2,'n'"
            ":0,'at':1,'hard':true}",
      "{'k':'step.started','a':3,'o':2,'n':3,'at':1,'attempt':1}", RV_ESTORE },
    { "a node behind a failure", S("a") "," S("b"),
      BEGUN "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1},{'k':'step.failed','a':2,'n'"
            ":0,'at':1,'hard':true}",
      "{'k':'step.started','a':3,'o':1,'n':1,'at':1,'attempt':1}", RV_ESTORE },
    { "a second suspension", CO, BODY3 ",{'k':'run.suspended','a':0,'at':1,'error':{}}",
      "{'k':'run.suspended','a':0,'at':1,'error':{}}", RV_ESTORE },
    { "a suspension of all for the sake of a node", S("a"),
      BEGUN "{'k':'signal.received','at':1,'name':'x','result':1}",
      "{'k':'run.suspended','a':0,'n':0,'at':1,'error':{}}", RV_ESTORE },
    { "a suspension that nobody explains", S("a"),
      BEGUN "{'k':'signal.received','at':1,'name':'x','result':1}",
      "{'k':'run.suspended','a':0,'at':1}", RV_ESTORE },
    { "a suspension for the sake of what runs", S("a"),
      BEGUN "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1}",
      "{'k':'run.suspended','a':2,'n':0,'at':1,'error':{}}", RV_ESTORE },
    { "a suspension for the sake of what waits", S("a"),
      BEGUN "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1},{'k':'step.lost','a':2,'n':"
            "0,'at':1}",
      "{'k':'run.suspended','a':2,'n':0,'at':1,'error':{}}", RV_OK },
    { "a suspension of all", S("a"), BEGUN "{'k':'signal.received','at':1,'name':'x','result':1}",
      "{'k':'run.suspended','a':0,'at':1,'error':{}}", RV_OK },
    { "a cancel with its author", S("a"),
      BEGUN "{'k':'signal.received','at':1,'name':'x','result':1,'by':'ana'}",
      "{'k':'run.cancelled','at':1,'by':'bo'}", RV_OK },
    { "an author that is no text", S("a"),
      BEGUN "{'k':'signal.received','at':1,'name':'x','result':1}",
      "{'k':'run.cancelled','at':1,'by':7}", RV_ESTORE },
    { "an author of what happens by itself", S("a"),
      BEGUN "{'k':'signal.received','at':1,'name':'x','result':1}",
      "{'k':'run.completed','at':1,'by':'ana'}", RV_ESTORE },
    { "a second end", S("a"), BEGUN "{'k':'run.cancelled','at':1}", "{'k':'run.completed','at':1}",
      RV_ESTORE },
    { "a signal after the end", S("a"), BEGUN "{'k':'run.cancelled','at':1}",
      "{'k':'signal.received','at':1,'name':'x','result':1}", RV_ESTORE },
    { "a resume after the end", S("a"), BEGUN "{'k':'run.cancelled','at':1}",
      "{'k':'run.resumed','at':1}", RV_ESTORE },
    { "an abort of what is not suspended", S("a"),
      BEGUN "{'k':'signal.received','at':1,'name':'x','result':1}",
      "{'k':'run.aborted','at':1,'error':{}}", RV_ESTORE },
    { "a state there twice", S("a"),
      BEGUN "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1}",
      "{'k':'step.completed','a':2,'n':0,'at':1,'state':{},'state':{}}", RV_ESTORE },
    { "an error there twice", S("a"),
      BEGUN "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1}",
      "{'k':'step.failed','a':2,'n':0,'at':1,'error':{},'error':{}}", RV_ESTORE },
    { "a name there twice", S("a"),
      BEGUN "{'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1}",
      "{'k':'step.parked','a':2,'n':0,'at':1,'name':'a','name':'b'}", RV_ESTORE },
    { "white space between facts", S("a"),
      BEGUN " {'k':'step.started','a':2,'o':1,'n':0,'at':1,'attempt':1} ",
      "{'k':'step.completed','a':2,'n':0,'at':1}", RV_OK },
};
/* clang-format on */

static void a_fact_that_does_not_fit_the_state_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
        char plan[2000];
        struct rv__plan *compiled = NULL;
        struct rv__cell *cell = NULL;
        rv_error err = { 0 };
        snprintf(plan, sizeof plan, "{'name':'t','steps':[%s]}", misfits[i].steps);
        assert_int_equal(rv__plan_read(rv__str(J(plan)), &compiled, &err), RV_OK);
        struct rv__cell_opts opts = { .plan = compiled };
        assert_int_equal(rv__cell_empty(&opts, &cell, &err), RV_OK);
        if (rv__cell_replay_json(cell, rv__str(J(misfits[i].story)), &err) < 0)
            fail_msg("%s: its story: %s", misfits[i].says, err.message);
        int rc = rv__cell_replay_json(cell, rv__str(J(misfits[i].fact)), &err);
        if (rc != misfits[i].rc)
            fail_msg("%s: rc %d, '%s'", misfits[i].says, rc, err.message);
        zoo_behave(cell);
        rv__cell_free(cell);
        rv__plan_free(compiled);
    }
}

static size_t tried, refused;

/* A fact said to a cell: it fits, and the cell behaves; or it does not, and nothing has changed. */
static int try_fact(struct story *story, size_t at, struct rv__str text)
{
    rv_error err = { 0 };
    struct rv__str checked;
    if (rv__json_check(text, RV__JSON_MAX_DEPTH, &checked, &err) < 0)
        return RV_ESTORE;
    struct rv__cell *cell = story_cell(story, at);
    int rc = rv__cell_replay_json(cell, checked, &err);
    tried++;
    if (rc == RV_OK) {
        zoo_behave(cell);
    } else {
        struct rv__buf after;
        refused++;
        rv__buf_init(&after, 1u << 24);
        (void)rv__cell_save(cell, &after, NULL);
        if (rc != RV_ESTORE || !rv__str_eq(rv__buf_view(&after), rv__buf_view(&story->states[at])))
            fail_msg("rc %d by %.*s\nbefore %s\nafter  %s", rc, RV__ARG(text),
                     story->states[at].text, after.text);
        rv__buf_done(&after);
    }
    rv__cell_free(cell);
    return rc;
}

/* `fact` with one member's value replaced, or (NULL) without the member. */
static int try_member(struct story *story, size_t at, struct rv__str key, struct rv__str value,
                      const char *instead)
{
    struct rv__str fact = story->facts[at];
    struct rv__buf buf;
    const char *from = instead != NULL ? value.at : key.at - 1; /* with the comma before it */
    rv__buf_init(&buf, 1u << 20);
    rv__buf_add(&buf, fact.at, (size_t)(from - fact.at));
    rv__buf_text(&buf, instead != NULL ? instead : "");
    rv__buf_add(&buf, value.at + value.len, (size_t)(fact.at + fact.len - value.at - value.len));
    int rc = try_fact(story, at, rv__buf_view(&buf));
    rv__buf_done(&buf);
    return rc;
}

static void each_field_is_checked(void **state)
{
    static const char *const others[] = {
        "null",
        "true",
        "false",
        "-1",
        "0",
        "1",
        "2",
        "3",
        "5",
        "9",
        "1.5",
        "2147483647",
        "9223372036854775807",
        "-9223372036854775808",
        "99999999999999999999",
        "\"x\"",
        "\"when\"",
        "\"items\"",
        "\"input\"",
        "\"until\"",
        "\"completed\"",
        "\"failed\"",
        "\"skipped\"",
        "[]",
        "{}",
    };
    (void)state;
    tried = refused = 0;
    for (uint64_t seed = 1; seed <= ZOO; seed++) {
        struct story *story = story_new(seed, 15);
        for (size_t i = 0; i < story->count; i++) {
            struct rv__json_iter it;
            struct rv__str key, value, kind;
            bool begins = rv__json_get(story->facts[i], "k", &kind) &&
                          rv__str_is(kind, "\"step.started\"");
            rv__json_iter_init(&it, story->facts[i]);
            while (rv__json_next(&it, &key, &value)) {
                if (rv__str_is(key, "\"k\""))
                    continue;
                int rc = try_member(story, i, key, value, NULL);
                bool needed = rv__str_is(key, "\"a\"") || rv__str_is(key, "\"x\"") ||
                              rv__str_is(key, "\"eval\"") || rv__str_is(key, "\"status\"") ||
                              (begins && rv__str_is(key, "\"attempt\""));
                if (needed && rc != RV_ESTORE)
                    fail_msg("%.*s without %.*s", RV__ARG(story->facts[i]), RV__ARG(key));
                for (size_t n = 0; n < sizeof others / sizeof *others; n++)
                    (void)try_member(story, i, key, value, others[n]);
            }
        }
        story_free(story);
    }
    print_message("# %zu facts with another field, %zu refused\n", tried, refused);
}

/* Any fact of a run at any other moment of it: too early, too late, twice. */
static void a_fact_out_of_its_order_does_no_harm(void **state)
{
    (void)state;
    tried = refused = 0;
    for (uint64_t seed = 1; seed <= ZOO; seed++) {
        struct story *story = story_new(seed, 18);
        for (size_t at = 0; at <= story->count; at++)
            for (size_t i = 0; i < story->count; i++)
                if (i != at)
                    (void)try_fact(story, at, story->facts[i]);
        story_free(story);
    }
    print_message("# %zu facts out of order, %zu refused\n", tried, refused);
    assert_true(refused > tried / 2);
}

/* Every kind, about every actor there is, at any moment. */
static void a_fact_about_another_actor_does_no_harm(void **state)
{
    static const char *const tails[] = {
        "",
        ",'eval':'when'",
        ",'eval':'items'",
        ",'eval':'input'",
        ",'eval':'until'",
        ",'x':0",
        ",'x':1",
        ",'x':0,'status':'completed'",
        ",'x':0,'status':'failed'",
        ",'attempt':1",
        ",'due':5",
        ",'name':'go'",
        ",'signal':true",
        ",'hard':true",
    };
    (void)state;
    tried = refused = 0;
    for (uint64_t seed = 1; seed <= ZOO; seed++) {
        struct story *story = story_new(seed, 18);
        for (size_t at = 1; at <= story->count; at += 23) {
            struct rv__cell *cell = story_cell(story, at);
            for (uint64_t id = 1; id <= cell->next_id; id++) {
                const struct rv__actor *actor = rv__cell_find(cell, id);
                for (int kind = 0; kind < FACT_KINDS; kind++) {
                    for (size_t t = 0; t < sizeof tails / sizeof *tails; t++) {
                        char text[300], owner[32] = "";
                        uint32_t node = actor != NULL && actor->node != NULL ? actor->node->id : 0;
                        if (actor == NULL && t % 2) /* a new one, of the newest there is */
                            snprintf(owner, sizeof owner, ",'o':%llu",
                                     (unsigned long long)(id - 1));
                        snprintf(text, sizeof text, "{'k':'%s','a':%llu%s,'n':%u,'at':5%s}",
                                 rv__fact_kind_name((enum rv__fact_kind)kind),
                                 (unsigned long long)id, owner, node, tails[t]);
                        (void)try_fact(story, at, rv__str(J(text)));
                    }
                }
            }
            rv__cell_free(cell);
        }
        story_free(story);
    }
    print_message("# %zu facts about others, %zu refused\n", tried, refused);
}

/* Bytes and whole words of a journal changed at random, then all of it replayed. */
static void a_damaged_journal_does_no_harm(void **state)
{
    static const char *const words[] = { "step.completed", "step.failed",    "body.started",
                                         "node.failed",    "node.completed", "eval.completed",
                                         "body.ended",     "step.lost" };
    (void)state;
    for (uint64_t seed = 1; seed <= 4 * ZOO; seed++) {
        struct story *story = story_new(seed, 40);
        uint64_t dice = seed * 69621;
        struct rv__str journal = rv__buf_view(&story->rig->journal);
        for (int n = 0; n < 60; n++) {
            struct rv__buf text;
            struct rv__str checked;
            rv__buf_init(&text, 1u << 24);
            rv__buf_char(&text, '[');
            rv__buf_str(&text, journal);
            rv__buf_char(&text, ']');
            for (uint64_t k = zoo_roll(&dice, 3) + 1; k > 0; k--) {
                size_t at = 1 + zoo_roll(&dice, journal.len);
                const char *word = words[zoo_roll(&dice, 8)];
                char *kind = zoo_roll(&dice, 3) ? NULL : strstr(text.text + at, "\"k\":\"");
                if (kind != NULL && kind[5 + strlen(word)] == '"') {
                    memcpy(kind + 5, word, strlen(word));
                    continue;
                }
                while (at + 1 < text.len && (text.text[at] < '0' || text.text[at] > '9'))
                    at++;
                text.text[at] = (char)(zoo_roll(&dice, 8) ? '0' + zoo_roll(&dice, 10) : ' ');
            }
            if (rv__json_check(rv__buf_view(&text), RV__JSON_MAX_DEPTH, &checked, NULL) == RV_OK) {
                struct rv__cell *cell = empty_cell(story->rig);
                rv_error err;
                int rc = rv__cell_replay_json(
                    cell, (struct rv__str){ checked.at + 1, checked.len - 2 }, &err);
                assert_true(rc == RV_OK || rc == RV_ESTORE);
                if (cell->started)
                    zoo_behave(cell);
                rv__cell_free(cell);
            }
            rv__buf_done(&text);
        }
        story_free(story);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST_VALUES(what_is_written_is_read_and_written_the_same),
        RIG_TEST_VALUES(a_replay_survives_without_memory),
        RIG_TEST_VALUES(a_damaged_fact_is_refused_and_changes_nothing),
        RIG_TEST_VALUES(a_fact_that_does_not_fit_the_state_is_refused),
        RIG_TEST_VALUES(each_field_is_checked),
        RIG_TEST_VALUES(a_fact_out_of_its_order_does_no_harm),
        RIG_TEST_VALUES(a_fact_about_another_actor_does_no_harm),
        RIG_TEST_VALUES(a_damaged_journal_does_no_harm),
    };
    return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
