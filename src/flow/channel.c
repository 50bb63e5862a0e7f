/* channel.c: signals by name, and handles: those that nobody took yet, and the steps that wait for one. */
#include <string.h>

#include "base/alloc.h"
#include "flow/cell.h"

static size_t bucket_of(struct rv__str name)
{
    return rv__str_hash(RV__HASH_START, name) % CHANNEL_BUCKETS;
}

static struct rv__channel **channel_bucket(struct rv__cell *cell, struct rv__str name)
{
    return &cell->channels[bucket_of(name)];
}

struct rv__channel *rv__channel_get(struct rv__cell *cell, struct rv__str name, bool handle,
                                    bool make)
{
    struct rv__channel **bucket = channel_bucket(cell, name);
    for (struct rv__channel *c = *bucket; c != NULL; c = c->next)
        if (c->handle == handle && rv__str_eq(c->name, name))
            return c;
    if (!make)
        return NULL;

    struct rv__channel *c = rv__zalloc(1, sizeof *c + name.len + 1);
    if (c == NULL)
        return NULL;
    memcpy(c->text, name.at, name.len);
    c->name = (struct rv__str){ c->text, name.len };
    c->handle = handle;
    c->order = cell->channel_order++;
    c->next = *bucket;
    *bucket = c;
    cell->bytes += sizeof *c + name.len + 1;
    return c;
}

struct rv__str rv__cell_asked(const struct rv__cell *cell, struct rv__str name)
{
    const struct rv__channel *c = cell->channels[bucket_of(name)];
    while (c != NULL && (c->handle || !rv__str_eq(c->name, name)))
        c = c->next;
    bool asks = c != NULL && c->first_waiter != NULL && c->first_signal == NULL; /* else answered */
    return asks ? rv__blob_str(c->first_waiter->step.note) : (struct rv__str){ NULL, 0 };
}

void rv__channel_drop_if_empty(struct rv__cell *cell, struct rv__channel *channel)
{
    if (channel->first_waiter != NULL || channel->first_signal != NULL)
        return;
    struct rv__channel **at = channel_bucket(cell, channel->name);
    while (*at != channel)
        at = &(*at)->next;
    *at = channel->next;
    cell->bytes -= sizeof *channel + channel->name.len + 1;
    rv__free(channel);
}

void rv__channel_join(struct rv__cell *cell, struct rv__channel *channel, struct rv__actor *actor)
{
    cell->signal_waiters += !channel->handle;
    actor->step.channel = channel;
    actor->step.wait_next = NULL;
    actor->step.wait_prev = channel->last_waiter;
    if (channel->last_waiter != NULL)
        channel->last_waiter->step.wait_next = actor;
    else
        channel->first_waiter = actor;
    channel->last_waiter = actor;
}

void rv__channel_leave(struct rv__cell *cell, struct rv__actor *actor)
{
    struct rv__channel *channel = actor->step.channel;
    cell->signal_waiters -= !channel->handle;
    if (actor->step.wait_prev != NULL)
        actor->step.wait_prev->step.wait_next = actor->step.wait_next;
    else
        channel->first_waiter = actor->step.wait_next;
    if (actor->step.wait_next != NULL)
        actor->step.wait_next->step.wait_prev = actor->step.wait_prev;
    else
        channel->last_waiter = actor->step.wait_prev;
    actor->step.channel = NULL;
    if (channel->first_waiter != NULL)
        rv__actor_place(cell, channel->first_waiter); /* the first may take what is there */
    rv__channel_drop_if_empty(cell, channel);
}
