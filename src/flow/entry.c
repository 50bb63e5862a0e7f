/* entry.c: outcomes of finished nodes, in memory.
 *
 * Entries are shared by everything that sees them, and by executors on other threads; so they are
 * reference-counted and never change. A result exists once: a supervisor's entry refers to its children. As
 * JSON: write.c. */
#include "base/alloc.h"
#include "flow/cell.h"

/* Caches need a key for an entry that is never used again, as an address would be. This counter is the only thing
 * that cells share, and it reveals nothing about other cells. */
static atomic_ullong serials;

uint64_t rv__serial_next(void)
{
    return atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
}

struct rv__entry *rv__entry_new(const struct rv__node *node, enum rv__status status)
{
    struct rv__entry *entry = rv__zalloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    atomic_init(&entry->refs, 1);
    entry->node = node;
    entry->status = (uint8_t)status;
    entry->serial = rv__serial_next();
    return entry;
}

struct rv__entry *rv__entry_copy(const struct rv__entry *entry)
{
    struct rv__entry *copy = rv__entry_new(entry->node, (enum rv__status)entry->status);
    if (copy == NULL)
        return NULL;
    copy->result = rv__blob_ref(entry->result);
    copy->state = rv__blob_ref(entry->state);
    copy->description = rv__blob_ref(entry->description);
    copy->error = rv__blob_ref(entry->error);
    copy->inner = rv__inner_ref(entry->inner);
    return copy;
}

struct rv__entry *rv__entry_ref(struct rv__entry *entry)
{
    if (entry != NULL)
        atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    return entry;
}

/* Iterative along the chain, which may be long; recursive into `inner`, whose depth is that of the plan. */
void rv__entry_unref(struct rv__entry *entry)
{
    while (entry != NULL && atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) == 1) {
        struct rv__entry *outer = entry->outer;
        rv__blob_unref(entry->result);
        rv__blob_unref(entry->state);
        rv__blob_unref(entry->description);
        rv__blob_unref(entry->error);
        rv__inner_unref(entry->inner);
        rv__free(entry);
        entry = outer;
    }
}

struct rv__inner *rv__inner_new(uint32_t children)
{
    struct rv__inner *inner = rv__zalloc(1, sizeof *inner +
                                                (size_t)children * sizeof inner->children[0]);
    if (inner != NULL) {
        atomic_init(&inner->refs, 1);
        inner->child_count = children;
        inner->index = -1;
        for (uint32_t i = 0; i < children; i++)
            inner->children[i].status = STATUS_CANCELLED; /* the default */
    }
    return inner;
}

struct rv__inner *rv__inner_of_body(const struct rv__actor *frame, struct rv__entry *scope,
                                    int64_t index)
{
    struct rv__inner *inner = rv__inner_new(1);
    if (inner == NULL) {
        rv__entry_unref(scope);
        return NULL;
    }
    inner->index = index;
    inner->base = rv__entry_ref(frame->frame.base);
    inner->children[0].scope = scope;
    inner->children[0].status = frame->frame.failed ? STATUS_FAILED : STATUS_COMPLETED;
    return inner;
}

struct rv__inner *rv__inner_ref(struct rv__inner *inner)
{
    if (inner != NULL)
        atomic_fetch_add_explicit(&inner->refs, 1, memory_order_relaxed);
    return inner;
}

void rv__inner_unref(struct rv__inner *inner)
{
    if (inner == NULL || atomic_fetch_sub_explicit(&inner->refs, 1, memory_order_acq_rel) != 1)
        return;
    rv__blob_unref(inner->key);
    for (uint32_t i = 0; i < inner->child_count; i++) {
        rv__entry_unref(inner->children[i].scope);
        rv__blob_unref(inner->children[i].error);
        rv__blob_unref(inner->children[i].attachment);
    }
    rv__entry_unref(inner->base);
    rv__free(inner);
}

struct rv__blob *rv__inner_error(const struct rv__inner *inner, uint32_t child)
{
    const struct rv__child *c = &inner->children[child];
    if (c->status != STATUS_FAILED)
        return NULL;
    return c->scope != NULL && c->scope != inner->base ? c->scope->error : c->error;
}

/* ------------------------------------------------------------------------------- reading --- */

struct rv__str rv__entry_alias(const struct rv__entry *entry)
{
    return entry->node->alias;
}

int64_t rv__entry_number(const struct rv__entry *entry)
{
    return entry->number;
}

const struct rv__node *rv__entry_node(const struct rv__entry *entry)
{
    return entry->node;
}

enum rv__status rv__entry_status(const struct rv__entry *entry)
{
    return (enum rv__status)entry->status;
}

bool rv__entry_state_here(const struct rv__entry *entry, struct rv__str *ret)
{
    if (entry->description != NULL || rv__blob_is_reference(entry->state))
        return false;
    *ret = rv__blob_str(entry->state);
    return true;
}

struct rv__blob *rv__entry_blob(const struct rv__entry *entry)
{
    return entry->inner == NULL ? entry->result : NULL;
}

bool rv__entry_assembled(const struct rv__entry *entry)
{
    return entry->inner != NULL;
}

struct rv__blob *rv__entry_error(const struct rv__entry *entry)
{
    return entry->error;
}

uint64_t rv__entry_serial(const struct rv__entry *entry)
{
    return entry->serial;
}
