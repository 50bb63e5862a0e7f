#!/usr/bin/env bash
# examples.sh: every program of examples/ does what it says.
. "$(dirname "$0")/tap.sh"
examples=$RIVAL_BUILD/examples

is "each example is built, and tried below" \
    "$(cd "$RIVAL_SOURCE/examples" && ls ./*.c | sed 's|^\./||; s|\.c$||')" \
    "$(sed -nE 's/^(run|#also) .*\$examples"?\/([a-z_]+).*/\2/p' "$0" | sort -u)"

run "$examples/worker"
like "worker wants to know where to connect (workers-tcp.sh has the rest)" "$err" "usage: worker STORE.sock"

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
like "killed, it goes on where it was" "$rc $out" '^0 completed: .*"delayedMs":([2-9][0-9]{2}|[0-9]{4,}),'

tree="findTree    a fine oak, with 5 branches
chopTree    the axe slips; another blow, soon
chopTree    attempt 2: timber!
alert       oaks are rare: the forester is told
planks      5 branches, four at a time: 20 planks
notify      email: completed, sms: failed
pay         80 in the till
poll        look 1 for the lorry
poll        look 2 for the lorry
poll        look 3 for the lorry
finishTree  oak: done
oak: completed"
run "$examples/tree"
is "tree does it all, in order" "$rc $out$err" "0 $tree"
run "$examples/tree"
is "and nothing twice" "$rc $out$err" "0 oak: completed"
run "$examples/tree" pine
is "another tree is another run, without the alert" "$rc $out$err" \
    "0 $(printf '%s\n' "$tree" | sed '/^alert/d; s/oak/pine/')"

run "$examples/order"
is "order takes every kind of node" "$rc $out$err" "0 check    Ada orders for 105
pay      authorised at attempt 3
pay      the bank is asked, and calls back
pay      charged: receipt R-77
approve  by Grace
route    dear: insured
pack     kettle cups tea
tell     email completed, sms failed
track    day 1: in the van
track    day 2: at the neighbour's
track    day 3: at the door
review   not asked for: the review site is down
thank    thank you, Ada
order-1: completed"

run "$examples/first"
is "first greets" "$rc $out$err" "0 good morning, Ada!
completed"
run "$examples/guide"
is "guide plays what the guide shows" "$rc $out$err" "0 provider: charges 12
fetch: there at attempt 3
decorate: left out: no ribbon left
print: sent
hangUp: 2 pages
remind: answered {\"by\":\"Ada\"}
poster-1: completed
again: it is completed
another amount: RV_EEXIST
wrap: 500 g, stamped by hand
wrap: 500 g, stamped by machine
remind: answered {\"by\":\"nobody\"}
test: good"

run "$examples/resume"
key=$(printf '%s\n' "$out" | sed -n 's/.*with the key //p')
like "a key has its run, a nonce and its step" "$key" '^sunday/[0-9a-f]{16}/4$'
is "resume is killed at its third step" "$rc $out" "137 first start: mix    flour, water, salt, yeast
first start: knead  ten minutes of it
first start: bake   with the key $key"
run "$examples/resume"
is "and goes on with that step, under the same key" "$rc $out$err" \
    "0 second start: bake   with the key $key
second start: serve  a loaf of 720 g
sunday: completed"
run "$examples/resume"
is "then it is done" "$rc $out$err" "0 sunday: completed"
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

export XDG_CACHE_HOME=$tmp/cache RIVAL_HOST=$RIVAL_BUILD/rival
files=$RIVAL_SOURCE/examples/files
is "each workflow file is tried below" "$(cd "$files" && ls ./*.c | sed 's|^\./||')" \
    "$(sed -nE 's/^run .* "\$files\/([a-z_]+\.c)".*/\1/p' "$0" | sort -u)"
mkdir -p "$tmp/sizes/a" "$tmp/sizes/b/c" && head -c 1000 /dev/zero >"$tmp/sizes/a/x"
head -c 5000 /dev/zero >"$tmp/sizes/b/c/y"
run "$examples/run_file" "$files/disk_usage.c" disk-usage "{\"folder\":\"$tmp/sizes\"}"
like "disk_usage measures folders in host processes" "$rc $out" \
    '^0 completed: .*"report":\{"result":\{"bytes":6000,"largest":"[^"]*/sizes/b"\}'
run "$examples/run_file" "$files/disk_usage.c" disk-usage '{"folder":1}'
is "and has a schema" "$rc" 1
run "$examples/run_file" "$files/copy_folder.c" copy-folder "{\"from\":\"$tmp/sizes/a\",\"to\":\"$tmp/copy\"}"
is "copy_folder copies" "$rc $(cmp "$tmp/sizes/a/x" "$tmp/copy/x" && echo same)" "0 same"
run "$examples/run_file" "$files/tree.c" chop-tree
like "tree is chopped" "$rc $out" '^0 completed: .*"description":"Chopped oak-123"'
run "$examples/run_file" "$files/stock.c" stock '{}'
like "stock orders what runs out" "$rc $out" \
    '^0 completed: .*"description":"2 run out".*"name":"tea","amount":8.*"name":"kettle","amount":10.*"praise":\{"result":null'
run "$RIVAL_BUILD/rival" exec "$files/shout.yaml" --json --input '{"text": "timber!"}' --store "$tmp/shout.db"
like "a library of steps is called from YAML" "$rc $out" '^0 .*"result":"TIMBER!".*"letters":6'
run "$RIVAL_BUILD/rival" exec "$files/texts.c"
like "and is no workflow" "$rc $err" '^2 .*texts.c declares functions .RV_FUNCTIONS., but no workflow to run'

done_testing
