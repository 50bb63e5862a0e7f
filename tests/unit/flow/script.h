/* script.h: what the tests of flow share beyond the rig: plans in few words, messages in one call. */
#ifndef RV_TESTS_FLOW_SCRIPT_H
#define RV_TESTS_FLOW_SCRIPT_H

#include "unit/flow/rig.h"

/* JSON with ' for its quotes. The text lives until the call after the next seven. */
static inline const char *J(const char *text)
{
    static char buffers[8][32768];
    static unsigned turn;
    char *out = buffers[turn++ % 8];
    assert_true(strlen(text) < sizeof buffers[0]);
    for (size_t i = 0; (out[i] = text[i] == '\'' ? '"' : text[i]) != '\0'; i++)
        ;
    return out;
}

#define S(alias)          "{'type':'step','alias':'" alias "','name':'" alias "'}"
#define STEP(alias, more) "{'type':'step','alias':'" alias "','name':'" alias "'," more "}"
#define DELAY(alias, ms)  "{'type':'step','alias':'" alias "','kind':'delay','with':" ms "}"
#define TIMED_DELAY(alias, ms, more) \
    "{'type':'step','alias':'" alias "','kind':'delay','with':" ms "," more "}"
#define SIGNAL(alias, name) \
    "{'type':'step','alias':'" alias "','kind':'signal','with':{'name':'" name "'}}"
#define OUT(result, status) "{'result':" result ",'state':{},'status':'" status "'}"
#define DONE(result)        OUT(result, "completed")

static inline struct rig *rig_of(const char *steps, const char *input)
{
    char plan[32000];
    snprintf(plan, sizeof plan, "{'name':'t','steps':[%s]}", steps);
    return rig_new(J(plan), input != NULL ? J(input) : NULL);
}

/* A message about the work at `path`; what it holds stays the caller's. The rc of the send. */
static inline int rig_tell(struct rig *rig, const char *path, struct rv__msg msg)
{
    struct rig_work *work = rig_at(rig, path);
    msg.actor = work->effect.actor;
    msg.token = work->effect.token;
    return rig_turn(rig, &msg);
}

static inline void rig_park(struct rig *rig, const char *path, const char *handle, int64_t due_ms)
{
    struct rv__msg msg = { .kind = MSG_PARK, .name = rv__str(handle), .due_ms = due_ms };
    assert_int_equal(rig_tell(rig, path, msg), RV_OK);
}

static inline void rig_lose(struct rig *rig, const char *path, bool blame, bool shared)
{
    struct rv__msg msg = {
        .kind = MSG_LOST, .crash = blame || shared, .blame = blame, .shared = shared
    };
    assert_int_equal(rig_tell(rig, path, msg), RV_OK);
}

/* Its own process died, with this as the error. */
static inline void rig_kill(struct rig *rig, const char *path, const char *json)
{
    struct rv__blob *error = rv__blob_new(rv__str(json));
    struct rv__msg msg = { .kind = MSG_LOST, .blame = true, .crash = true, .error = error };
    assert_non_null(error);
    assert_int_equal(rig_tell(rig, path, msg), RV_OK);
    rv__blob_unref(error);
}

/* So often that nobody tries it again: its run is suspended; or, after the run's end, it fails. */
static inline void rig_poison(struct rig *rig, const char *path)
{
    for (int n = 0; n <= RV__MAX_CRASHES; n++)
        rig_kill(rig, path, "{\"message\":\"the host exited\"}");
}

/* The run as a whole, for this reason. */
static inline int rig_suspend(struct rig *rig, const char *json)
{
    struct rv__msg msg = { .kind = MSG_SUSPEND, .error = rv__blob_new(rv__str(json)) };
    assert_non_null(msg.error);
    int rc = rig_turn(rig, &msg);
    rv__blob_unref(msg.error);
    return rc;
}

static inline int rig_say(struct rig *rig, enum rv__msg_kind kind)
{
    struct rv__msg msg = { .kind = kind };
    return rig_turn(rig, &msg);
}

/* A decision about what is suspended there. */
static inline int rig_say_at(struct rig *rig, enum rv__msg_kind kind, const char *path)
{
    struct rv__msg msg = { .kind = kind, .name = rv__str(path) };
    return rig_turn(rig, &msg);
}

static inline int rig_signal_by(struct rig *rig, const char *name, const char *payload, bool force)
{
    struct rv__msg msg = { .kind = MSG_SIGNAL, .name = rv__str(name), .force = force };
    msg.result = payload != NULL ? rv__blob_new(rv__str(payload)) : NULL;
    int rc = rig_turn(rig, &msg);
    rv__blob_unref(msg.result);
    return rc;
}

static inline int rig_signal(struct rig *rig, const char *name, const char *payload)
{
    return rig_signal_by(rig, name, payload, false);
}

static inline int rig_answer(struct rig *rig, const char *handle, const char *result,
                             const char *error)
{
    struct rv__msg msg = { .kind = MSG_ANSWER, .name = rv__str(handle) };
    msg.result = result != NULL ? rv__blob_new(rv__str(result)) : NULL;
    msg.error = error != NULL ? rv__blob_new(rv__str(error)) : NULL;
    int rc = rig_turn(rig, &msg);
    rv__blob_unref(msg.result);
    rv__blob_unref(msg.error);
    return rc;
}

/* What the work at `path` sees; to be given to rv__view_done(). */
static inline struct rv__view rig_view(struct rig *rig, const char *path)
{
    struct rig_work *work = rig_at(rig, path);
    struct rv__view view;
    assert_int_equal(rv__cell_view(rig->cell, work->effect.actor, work->effect.token, &view),
                     RV_OK);
    return view;
}

/* One place in a lane, and the effects of that. What rv__flow_grant() said. */
static inline int rig_grant(struct rig *rig, enum rv__lane lane)
{
    rv_error err = { 0 };
    int rc = rv__flow_grant(rig->cell, lane, rig->now_ms, &rig->facts, &err);
    rig_turn(rig, NULL);
    return rc;
}

static inline void rig_give(struct rig *rig, bool places) /* in every lane, or in none */
{
    memset(rig->grants, places, sizeof rig->grants);
}

#endif
