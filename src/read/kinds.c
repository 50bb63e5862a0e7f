/* kinds.c: the table of node kinds for readers. */
#include "read/kinds.h"

static int64_t one_place(const struct rv__node *node, int64_t limit)
{
    (void)node;
    (void)limit;
    return 1;
}

static int64_t no_bound(const struct rv__node *node, int64_t limit)
{
    (void)node;
    (void)limit;
    return 0;
}

static int64_t foreach_places(const struct rv__node *node, int64_t limit)
{
    (void)limit;
    return node->foreach.parallel ? node->foreach.concurrency : 1;
}

static bool concurrent_detached(const struct rv__node *node)
{
    return node->concurrent.detached;
}

/* Cancels children that are not needed any more. Others end when everything below them has ended. */
static bool concurrent_cancels(const struct rv__node *node, bool failed)
{
    return failed || node->concurrent.join != RV__JOIN_ALL;
}

/* A second cancel ends a running `finally`. */
static bool sequence_cancels(const struct rv__node *node, bool failed)
{
    (void)node;
    return failed;
}

static int64_t stage_places(const struct rv__node *node, int64_t limit)
{
    return limit > 0 ? limit : node->stage.concurrency;
}

/* An abort of a detached stage cancels; a final state lets running attempts finish. */
static bool stage_cancels(const struct rv__node *node, bool failed)
{
    (void)node;
    return failed;
}

/* Cancels by its time-out, or when its conversation is given up. */
static bool chat_cancels(const struct rv__node *node, bool failed)
{
    (void)node;
    return failed;
}

static const struct rv__read_kind kinds[NODE_KINDS] = {
    [NODE_STEP] = { .places = one_place },
    [NODE_WORKFLOW] = { .body = "workflow", .places = one_place },
    [NODE_BRANCH] = { .body = "path", .takes_one = true, .places = one_place },
    [NODE_LOOP] = { .body = "iteration", .lists_bodies = true, .places = one_place },
    [NODE_FOREACH] = { .body = "iteration", .lists_bodies = true, .places = foreach_places },
    [NODE_CONCURRENT] = { .body = "child",
                          .lists_bodies = true,
                          .places = no_bound,
                          .detached = concurrent_detached,
                          .cancels = concurrent_cancels },
    [NODE_STAGE] = { .body = "state",
                     .lists_bodies = true,
                     .places = stage_places,
                     .cancels = stage_cancels },
    [NODE_CHAT] = { .body = "turn",
                    .lists_bodies = true,
                    .places = no_bound,
                    .cancels = chat_cancels },
    [NODE_SEQUENCE] = { .body = "handler", .places = one_place, .cancels = sequence_cancels },
};

const struct rv__read_kind *rv__read_kind(const struct rv__node *node)
{
    return &kinds[node->kind];
}
