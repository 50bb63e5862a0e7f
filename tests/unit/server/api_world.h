/* api_world.h: requests handed to src/server/ without a connection, on an engine of the testing kit: its
 * time moves when told, so documents can be compared to the millisecond. */
#ifndef RV_TESTS_UNIT_SERVER_API_WORLD_H
#define RV_TESTS_UNIT_SERVER_API_WORLD_H

#include <jansson.h>

#include "server/server.h"

struct api_world {
    rv_engine *engine;
    struct rv__room *room; /* NULL: answers have no bound */
    char *kept;            /* freed at the end */
    const char *by;        /* what the token that asks is called */
    struct rv__api_answer answer;
    json_t *document;
    rv_error err;
};

/* Three workflows (greet, ask, fails); a completed run (done), a failed one (failed), and one that waits for
 * a signal (waits). */
int api_setup(void **state);
int api_teardown(void **state);
#define API_TEST(test) cmocka_unit_test_setup_teardown(test, api_setup, api_teardown)

int api_hello(rv_ctx *c); /* a step: logs twice, describes itself, returns {text} */
void api_put(struct api_world *w, rv_workflow *workflow); /* register and free it */
void api_begin(struct api_world *w, const char *workflow, const char *id, const char *input);

/* Ask "GET /path?query", with a body or none; the answer is in w->answer, its JSON in w->document. */
void api_ask(struct api_world *w, const char *line, const char *body); /* as admin */
void api_ask_as(struct api_world *w, enum rv__role role, const char *line, const char *body);
/* Fill w->document from w->answer. */
void api_read_answer(struct api_world *w, const char *line);
/* The last answer has this status and everything in `quoted`, JSON with ' for ": "*" is anything, "-" is not there. */
void api_expect(struct api_world *w, const char *says, int status, const char *quoted);

#endif
