/* json_test.h: what the tests of base/json_*.c share: an arena, two buffers, and texts. */
#ifndef RV_TEST_JSON_TEST_H
#define RV_TEST_JSON_TEST_H

#include "unit/test.h"

#include <time.h>

#include "base/arena.h"
#include "base/json.h"

#define MANY(array) (sizeof(array) / sizeof *(array))

static struct rv__arena arena;
static struct rv__buf out, more;

static inline int setup(void **state)
{
    (void)state;
    rv__arena_init(&arena, SIZE_MAX); /* a test may use what it likes */
    rv__buf_init(&out, SIZE_MAX);
    rv__buf_init(&more, SIZE_MAX);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    rv__test_fail_alloc_after(-1);
    rv__arena_done(&arena);
    rv__buf_done(&out);
    rv__buf_done(&more);
    return 0;
}

/* Text in memory of exactly its size, so that AddressSanitizer sees any step past its end. */
static inline struct rv__str exact(struct rv__str text)
{
    static char *last;
    free(last);
    last = malloc(text.len ? text.len : 1);
    assert_non_null(last);
    memcpy(last, text.at, text.len);
    return (struct rv__str){ last, text.len };
}

static inline struct rv__str checked(const char *text)
{
    struct rv__str value;
    rv_error err = { 0 };
    if (rv__json_check(rv__str(text), RV__JSON_MAX_DEPTH, &value, &err) != RV_OK)
        fail_msg("%s: %s", text, err.message);
    return value;
}

static inline void nest(size_t depth, const char *open, const char *inner, const char *close)
{
    rv__buf_reset(&out);
    for (size_t i = 0; i < depth; i++)
        rv__buf_text(&out, open);
    rv__buf_text(&out, inner);
    for (size_t i = 0; i < depth; i++)
        rv__buf_text(&out, close);
    assert_int_equal(rv__buf_err(&out, NULL), RV_OK);
}

/* Of this thread, since bounds on cost tell n from n², not one machine from another. */
static inline double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
