#!/usr/bin/env bash
# valgrind.sh: the task group's own tests, with thousands of tasks, under valgrind's memory check.
. "$(dirname "$0")/tap.sh"
export RIVAL_UNDER_VALGRIND=1 CMOCKA_MESSAGE_OUTPUT=TAP

for test in base_cancel group_group; do
    run valgrind --quiet --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all \
        --error-exitcode=9 --child-silent-after-fork=yes --fair-sched=yes \
        "$RIVAL_BUILD/tests/test_$test"
    is "test_$test: no bad access, nothing leaked" "$rc" 0
    [ "$rc" = 0 ] || printf '%s\n' "$out" "$err" | sed 's/^/# /'
done
done_testing
