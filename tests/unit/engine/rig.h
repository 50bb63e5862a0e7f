/* rig.h: what the tests of the reading side share: an engine on a store of its own, and shorthands. */
#ifndef RV_TEST_ENGINE_RIG_H
#define RV_TEST_ENGINE_RIG_H

#include "unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <rival/rival.h>

struct rig {
    char folder[64];
    char store[96];
    char host[32]; /* "": none */
    rv_engine *engine;
    rv_feed *feed;
    rv_error err;
    char *text; /* what a test puts together; freed with the rig */
    size_t len;
};

int rig_setup(void **state);
int rig_teardown(void **state);
void rig_open(struct rig *rig, const rv_engine_opts *opts); /* NULL: eight workers */
void rig_close(struct rig *rig);
void rig_put(struct rig *rig, rv_workflow *workflow); /* registered, and freed */
void rig_run(struct rig *rig, const char *workflow, const char *run_id, const char *input);
int rig_wait(struct rig *rig, const char *run_id); /* its status at the end */

/* A file with one workflow "w" of these steps, registered; rig->host for HOST. Opens the engine. */
void rig_define(struct rig *rig, const char *steps);
rv_outcome *rig_outcome(struct rig *rig, const char *run_id,
                        const char *input); /* of a run of it */
/* The same, and `part` is in its results or its error. */
void rig_gives(struct rig *rig, const char *run_id, const char *input, const char *part);

/* Follow the feed until an event of `kind` of the run has come; all that came is in rig->text, as
 * "kind path;" each. Fails after 20 s. */
void rig_follow(struct rig *rig, const rv_feed_opts *opts);
void rig_until(struct rig *rig, const char *kind, const char *run_id);
void rig_saw(struct rig *rig, const char *expected); /* and forget it */
void rig_add(struct rig *rig, const char *fmt, ...) RV_PRINTF(2, 3);

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

#endif
