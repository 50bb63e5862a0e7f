/* chain.h: intrusive lists: add at the end, remove anywhere, in O(1). An item is in one list at a time. */
#ifndef RV_BASE_CHAIN_H
#define RV_BASE_CHAIN_H

#include <assert.h>
#include <stddef.h>

/* The link of an item; all zero: in no list. */
struct rv__link {
    struct rv__link *next, **at;
};

struct rv__chain {
    struct rv__link *first, **end;
};

static inline void rv__chain_init(struct rv__chain *chain)
{
    chain->first = NULL;
    chain->end = &chain->first;
}

static inline void rv__chain_add(struct rv__chain *chain, struct rv__link *link)
{
    link->next = NULL;
    link->at = chain->end;
    *chain->end = link;
    chain->end = &link->next;
}

static inline void rv__chain_remove(struct rv__chain *chain, struct rv__link *link)
{
    assert(link->at != NULL); /* it must be in this list */
    *link->at = link->next;
    if (link->next != NULL)
        link->next->at = link->at;
    else
        chain->end = link->at;
    link->at = NULL;
}

/* Move all of `from` to the end of `to`. */
static inline void rv__chain_move(struct rv__chain *to, struct rv__chain *from)
{
    if (from->first == NULL)
        return;
    *to->end = from->first;
    from->first->at = to->end;
    to->end = from->end;
    rv__chain_init(from);
}

#endif
