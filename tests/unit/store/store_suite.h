/* store_suite.h: what every store must do. A store's own test file hands itself in, and adds what is
 * special about it. */
#ifndef RV_TESTS_UNIT_STORE_SUITE_H
#define RV_TESTS_UNIT_STORE_SUITE_H

#include "store/store.h"

/* The longest row that a store of the suite is made to accept. */
enum { STORE_SUITE_MAX = 6 << 20 };

/* How the suite gets a store. Fails by cmocka's assertions. */
struct store_maker {
    /* A new, empty store. */
    struct rv__store *(*open)(struct store_maker *maker);
    /* The process ends without a word (the store is not closed) and a new one opens the same data. */
    struct rv__store *(*reopen)(struct store_maker *maker, struct rv__store *store);
    /* Make the next commit fail. NULL: it cannot be made to. */
    void (*fail_next)(struct store_maker *maker, struct rv__store *store);
    /* The row of a run cannot be read any more; the store, then. NULL: that cannot be arranged. */
    struct rv__store *(*damage)(struct store_maker *maker, struct rv__store *store,
                                const char *run);
    /* Gone, with its data. */
    void (*remove)(struct store_maker *maker, struct rv__store *store);
    /* One more member of the store at hand, which nobody has alone; and the end of a lease, though nobody has
     * noticed it yet. NULL: it has no members. */
    struct rv__store *(*join)(struct store_maker *maker);
    void (*lapse)(struct store_maker *maker, int64_t member);
};

/* Runs all of it as a cmocka group; the number of failed tests. */
int store_suite(struct store_maker *maker);

#endif
