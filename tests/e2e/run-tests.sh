#!/usr/bin/env bash
# run-tests.sh: scripts/run-tests counts what really ran, whatever a test program does.
. "$(dirname "$0")/tap.sh"

# fake SHELL-CODE [TIMEOUT]: a build whose only test runs that. A meson of our own lists it.
mkdir "$tmp/bin" "$tmp/build"
printf '#!/bin/sh\ncat "%s/tests.json"\n' "$tmp" >"$tmp/bin/meson"
chmod +x "$tmp/bin/meson"
fake() {
    printf '%s\n' "$1" >"$tmp/test.sh"
    cat >"$tmp/tests.json" <<JSON
[{"name": "fake", "suite": ["rival:unit"], "cmd": ["bash", "$tmp/test.sh"], "env": {},
  "workdir": null, "timeout": ${2:-30}}]
JSON
    run env PATH="$tmp/bin:$PATH" "$RIVAL_SOURCE/scripts/run-tests" --release "$tmp/build"
    last=$(printf '%s\n' "$out" | tail -n 1)
}

fake 'echo 1..2; echo "ok 1 - a"; echo "ok 2 - b"'
is "good results are counted" "$last, rc $rc" "2 passed, 0 failed, rc 0"
fake 'echo "ok 1 - a"; echo "ok 2 - b # SKIP no such thing here"; echo 1..2'
is "skipped ones by themselves, and the plan may come last" "$last, rc $rc" "1 passed, 0 failed, 1 skipped, rc 0"
fake 'echo 1..2; echo "ok 1 - a"; echo "not ok 2 # SKIP b"'
is "also as cmocka spells it" "$last, rc $rc" "1 passed, 0 failed, 1 skipped, rc 0"
fake 'echo 1..2; echo "ok 1 - a"; echo "not ok 2 - b"; exit 1'
is "a bad one fails the run" "$last, rc $rc" "1 passed, 1 failed, rc 1"
like "and its output is shown" "$out" "^not ok 2 - b"
fake 'echo 1..2; echo "not ok 1 - a"; echo "ok 2 - b"'
is "also when the program forgets to return so" "$last, rc $rc" "1 passed, 1 failed, rc 1"
fake 'echo 1..5; echo "ok 1 - a"; echo "ok 2 - b"; kill -SEGV $$'
is "a program that dies midway fails what it had planned" "$last, rc $rc" "2 passed, 3 failed, rc 1"
fake 'echo 1..2; echo "ok 1 - a"; echo "ok 2 - b"; exit 99'
is "one that ends badly after good results (a sanitizer) fails once" "$last, rc $rc" "2 passed, 1 failed, rc 1"
fake 'echo 1..3; echo "ok 1 - a"; echo "not ok 2 - b"; exit 99'
is "a missing result is counted besides a bad one" "$last, rc $rc" "1 passed, 2 failed, rc 1"
fake 'echo "ok 1 - a"'
is "one without a plan fails" "$last, rc $rc" "1 passed, 1 failed, rc 1"
fake 'echo "all is well"'
is "so does one that speaks no TAP" "$last, rc $rc" "0 passed, 1 failed, rc 1"
fake 'exit 0'
is "and one that says nothing" "$last, rc $rc" "0 passed, 1 failed, rc 1"
fake 'echo 1..1; echo "ok 1 - a"; echo "ok 2 - b"'
is "more results than planned is a failure too" "$last, rc $rc" "2 passed, 1 failed, rc 1"
fake "echo 1..2; echo 'ok 1 - a'; sleep 600 & echo \$! >'$tmp/child'; wait" 1
is "a program that hangs is ended, with its children" "$last, rc $rc" "1 passed, 1 failed, rc 1"
like "and the reason is told" "$out" "still running after 1 s"
child_is_gone() { ! kill -0 "$(cat "$tmp/child")"; }
ok "nothing of it is left" eventually child_is_gone

# A test whose program is not there, and one that follows it.
cat >"$tmp/tests.json" <<JSON
[{"name": "unbuilt", "suite": ["rival:unit"], "cmd": ["$tmp/build/no-such-test"], "env": {}, "workdir": null, "timeout": 5},
 {"name": "built", "suite": ["rival:unit"], "cmd": ["printf", "1..1\nok 1 - a\n"], "env": {}, "workdir": null, "timeout": 5}]
JSON
run env PATH="$tmp/bin:$PATH" "$RIVAL_SOURCE/scripts/run-tests" --release "$tmp/build"
is "a program that was not built is a failure, and the others run" "$(printf '%s\n' "$out" | tail -n 1), rc $rc" "1 passed, 1 failed, rc 1"
like "and the reason is told" "$out" "was not built: .*no-such-test"

# What stands in for programs that could not be built (tests/meson.build).
fake "exec '$RIVAL_SOURCE/tests/not-built.sh' libcmocka-dev"
is "a stand-in for one fails" "$last, rc $rc" "0 passed, 1 failed, rc 1"

# Each test file belongs to a test.
unlisted=
for file in "$RIVAL_SOURCE"/tests/unit/*/test_*.c; do
    name=${file##*/test_} folder=${file%/*}
    grep -q "'${folder##*/}': .*'${name%.c}'" "$RIVAL_SOURCE/tests/meson.build" || unlisted="$unlisted $file"
done
is "every file of tests/unit is built" "$unlisted" ""

echo '[]' >"$tmp/tests.json"
run env PATH="$tmp/bin:$PATH" "$RIVAL_SOURCE/scripts/run-tests" --release "$tmp/build"
is "a run of nothing is no success" "$out, rc $rc" "0 passed, 0 failed, rc 1"

done_testing
