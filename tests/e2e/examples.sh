#!/usr/bin/env bash
# examples.sh: every program of examples/ does what it says.
. "$(dirname "$0")/tap.sh"
examples=$RIVAL_BUILD/examples

is "each example is built, and tried below" \
    "$(cd "$RIVAL_SOURCE/examples" && ls ./*.c | sed 's|^\./||; s|\.c$||')" \
    "$(sed -nE 's/^(run|#also) .*\$examples"?\/([a-z_]+).*/\2/p' "$0" | sort -u)"

run "$examples/group_basic"
is "group_basic counts primes" "$rc $(printf '%s\n' "$out" | sort -n | xargs)" \
    "0 95 primes below 500 1007 primes below 8000 4203 primes below 40000"

run "$examples/group_limit" 20000
is "group_limit takes every result" "$rc $out" "0 20000 numbers, the longest chain has 278 steps"

echo one >"$tmp/a" && echo two >"$tmp/b"
run "$examples/group_errors" "$tmp/a" "$tmp/b"
is "group_errors succeeds where all can be read" "$rc$out" 0
run "$examples/group_errors" "$tmp/a" "$tmp/none" "$tmp/b"
is "the first error is the verdict" "$rc $out" "1 failed: $tmp/none: No such file or directory"
run "$examples/group_errors" --all "$tmp/a" "$tmp/none" "$tmp/b"
is "or one among the results" "$rc $(printf '%s\n' "$out" | sort | xargs)" \
    "1 failed: $tmp/none: No such file or directory ok: $tmp/a ok: $tmp/b"

cd "$tmp"
run "$examples/lumber"
like "lumber runs its workflow" "$rc $out" '^0 completed: .*"chop":\{"result":\{"pieces":10\},"state":\{"description":"chopped oak-123"\}'
first=$out
run "$examples/lumber"
is "and finds it done the next time" "$rc $out" "0 $first"
rm lumber.db*
"$examples/lumber" >/dev/null & # killed in the midst of its delay, it goes on
sleep 0.1
kill -9 $! && wait $! 2>/dev/null
run "$examples/lumber"
like "killed, it goes on where it was" "$rc $out" '^0 completed: .*"delayedMs":2[0-9][0-9]'
cd "$OLDPWD"

run "$examples/observe"
is "observe sees everything, and in order" "$rc $out" "0 run.started 
step.started plant
log plant
step.retrying plant
timer.armed plant
step.started plant
log plant
step.completed plant
run.completed 
plant: completed, attempt 2, last error: {\"message\":\"the ground is frozen\"}
plant: planting on plant
plant: planting on plant
{\"runId\":\"spring\",\"status\":\"completed\",\"waits\":[]}"

run "$examples/group_timeout"
is "group_timeout ends well" "$rc" 0
like "what is quick is done" "$out" '^10 ms: done$'
like "what is too slow is stopped" "$out" '^60000 ms: stopped$'
like "a sign of life comes in between" "$out" '^still working$'
like "the verdict has the reason" "$out" '^verdict: took longer than allowed$'

run "$examples/group_children"
is "group_children: an error goes up, the cancel down" "$rc $out" "0 closed: the kitchen 'hot': a cut finger"

run "$examples/group_panic"
is "group_panic: the bug stays with its task" "$rc $(printf '%s\n' "$out" | xargs)" \
    "0 10 a bug: index 7 is not in the table 30"

mkdir -p "$tmp/tree/x/y"
echo "one two three" >"$tmp/tree/a"
printf 'four\n\tfive ' >"$tmp/tree/x/y/b"
ln -s ../.. "$tmp/tree/x/loop"
run "$examples/group_words" "$tmp/tree"
is "group_words counts below a folder" "$rc $out" "0 5 words in 2 files in 3 folders"
run "$examples/group_words" --limit 1 "$tmp/tree"
is "also one at a time" "$rc $out" "0 5 words in 2 files in 3 folders"
run "$examples/group_words" "$tmp/none"
is "and fails with the reason" "$rc $err" "1 group_words: $tmp/none: No such file or directory"
run "$examples/group_words" --limit -1 "$tmp/tree"
is "a limit below zero is refused" "$rc" 2
cp -r "$RIVAL_SOURCE/src" "$tmp/src"
words=$(find "$tmp/src" -type f -exec cat {} + | python3 -c 'import sys; print(len(sys.stdin.buffer.read().split()))')
run "$examples/group_words" --limit 32 "$tmp/src"
is "it agrees with another way of counting about our sources" "${out%% *}" "$words"

done_testing
