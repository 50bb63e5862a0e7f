/* bugs.h: deliberate bugs, to prove that the simulator finds bugs. tests/sim/README.md lists them.
 *
 * A build with -DRV__BUG_NUMBER=n has the n-th one; one with -DRV__BUG_CHOSEN has all of them, and its
 * program chooses one when it starts. Every other build has none, and the compiler removes the tests
 * for them. */
#ifndef RV_BASE_BUGS_H
#define RV_BASE_BUGS_H

#if defined(RV__BUG_CHOSEN)
extern int rv__bug_number;
#define RV__BUG_NUMBER rv__bug_number
#elif !defined(RV__BUG_NUMBER)
#define RV__BUG_NUMBER 0
#endif
#define RV__BUG(n) (RV__BUG_NUMBER == (n))

#endif
