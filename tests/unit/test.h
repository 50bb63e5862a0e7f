/* test.h: what every unit test includes: cmocka, the failing allocator, and a main. */
#ifndef RV_TESTS_UNIT_TEST_H
#define RV_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "host_program.h"

__attribute__((constructor)) static void test_names_host_program(void)
{
    name_host_program();
}

/* Run `call` (an expression that yields an rc) with the 1st, 2nd, 3rd ... allocation failing until
 * it succeeds. `check` runs after each failure, and undoes what the try left behind. Ends with
 * the rc of the last, successful try in `rc`. */
#define TORTURE(rc, call, check)                                                          \
    do {                                                                                  \
        for (long torture_n = 0;; torture_n++) {                                          \
            rv__test_fail_alloc_after(torture_n);                                         \
            (rc) = (call);                                                                \
            int torture_hit = rv__test_alloc_failed();                                    \
            rv__test_fail_alloc_after(-1);                                                \
            if (!torture_hit)                                                             \
                break;                                                                    \
            if ((rc) >= 0)                                                                \
                fail_msg("allocation %ld failed and the call did not notice", torture_n); \
            assert_int_equal((rc), RV_ENOMEM);                                            \
            check;                                                                        \
        }                                                                                 \
    } while (0)

#define assert_str(actual, expected) /* an rv__str against a C string */        \
    do {                                                                        \
        struct rv__str assert_a = (actual);                                     \
        const char *assert_e = (expected);                                      \
        if (!rv__str_is(assert_a, assert_e))                                    \
            fail_msg("got '%.*s', expected '%s'", RV__ARG(assert_a), assert_e); \
    } while (0)

#endif
