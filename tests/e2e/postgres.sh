#!/usr/bin/env bash
# postgres.sh: the program on a store in PostgreSQL: a real server of this test's own, killed and started again.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
cd "$tmp" || exit 1
. "$here/database.sh"
export XDG_RUNTIME_DIR=$tmp/runtime
mkdir -m 700 runtime

cat >wf.yaml <<'YAML'
name: wf
steps:
  - first: { command: [sh, -c, "echo x >>first; echo 1"] }
  - gate: { command: [sh, -c, "touch began; while [ ! -e go ]; do sleep 0.05; done"] }
  - each: { forEach: "${ [range(30)] }", parallel: true, run: [ { one: { value: "${ .loop.item * 2 }" } } ] }
  - ask: { signal: answer }
YAML

# ---- a crash: what is recorded is not done again
"$rival" exec wf.yaml --run-id a --store "$store" >out 2>err </dev/null &
pid=$!
pids="$pids $pid"
ok "a run begins" eventually test -e began
run "$rival" list --store "$store" --json
like "others see it" "$out" '"runId":"a".*"status":"running"'
kill -9 $pid
wait $pid 2>/dev/null
rm began
touch go
"$rival" exec wf.yaml --run-id a --store "$store" >out 2>err </dev/null &
pid=$!
pids="$pids $pid"
waits() { "$rival" why "$1" --store "$store" | grep -q answer; }
ok "it goes on after kill -9" eventually waits a
is "the step that was recorded ran once" "$(cat first)" "x"

# ---- the process that drives it is asked by others on this machine
run "$rival" run wf --run-id b --store "$store"
is "a process that drives its own run takes no others by 'run'" "$rc" 1
run "$rival" signal a answer '{"n":12345678901234567890}' --store "$store"
is "a signal reaches it" "$rc" 0
wait $pid
is "the run completes" "$?" 0
like "with its results" "$(cat out)" '"status":"completed".*"item":29.*"n":12345678901234567890'
run "$rival" exec wf.yaml --run-id a --store "$store"
is "the same command again prints the outcome" "$rc:$(printf '%s' "$out" | jq -r .status)" "0:completed"
run "$rival" show a --store "$store"
like "its nodes are shown" "$out" "each +completed"

# ---- a server; the database goes away and comes back
rm -f go began first
"$rival" serve wf.yaml --store "$store" --listen 127.0.0.1:0 >url 2>serve.err &
pid=$!
pids="$pids $pid"
ok "a server" eventually grep -q '"serving"\|serving' serve.err
url=$(cat url)
run "$rival" run wf --run-id c --server "$url"
is "takes a run" "$rc" 0
ok "which begins" eventually test -e began
ok "the database is killed" database stop -m immediate
touch go
refused() { curl -s "$url/metrics" | grep -q . && "$rival" show c --server "$url" 2>&1 | grep -q "database"; }
ok "that is told" eventually refused
ok "the database is started again" database start
waits_there() { "$rival" why c --server "$url" | grep -q answer; }
ok "the run goes on by itself" eventually waits_there
is "and repeats nothing" "$(cat first)" "x"
run "$rival" signal c answer '1' --store "$store"
is "the socket of the process is found by the address of the store" "$rc" 0
run "$rival" wait c --server "$url" --json
is "the run completes" "$(printf '%s' "$out" | jq -r .status)" completed
run "$rival" retain --keep 1 --store "$store"
is "who else wants to write is told who does" "$rc" 1
like "by name" "$err" "process $pid on .* writes to this store"

# ---- a second server shares the runs, and continues those of the first (members.sh has more)
"$rival" serve wf.yaml --store "$store" --listen 127.0.0.1:0 >url2 2>serve2.err &
second=$!
pids="$pids $second"
ok "a second server" eventually grep -q '"serving"\|serving' serve2.err
rm -f go began first
run "$rival" run wf --run-id e --server "$url"
ok "a run begins on the first" eventually test -e began
kill -9 $pid
wait $pid 2>/dev/null
touch go
url=$(eventually test -s url2 && cat url2) pid=$second
waits_for_e() { "$rival" why e --server "$url" | grep -q answer; }
ok "and goes on at the second" eventually waits_for_e
is "what was recorded is not done again" "$(cat first)" "x"
run "$rival" cancel e --server "$url"
is "it is cancelled there" "$rc" 0

# ---- one run as a file, there and back
run "$rival" export c c.run --store "$store"
is "a run is exported" "$rc" 0
run "$rival" import c.run --store other.db
is "and imported into SQLite" "$rc" 0
run "$rival" show c --store other.db --json
is "as it was" "$(printf '%s' "$out" | jq -r .status)" completed
kill $pid
wait $pid
is "the server stops" "$?" 0

# ---- a server stands by while another process has the store alone
rm -f go began
"$rival" exec wf.yaml --run-id a2 --store "$store" >out 2>err </dev/null &
alone=$!
pids="$pids $alone"
ok "a process drives its own run" eventually test -e began
"$rival" serve wf.yaml --store "$store" --listen 127.0.0.1:0 >url3 2>serve3.err &
third=$!
pids="$pids $third"
ok "a server stands by meanwhile" eventually grep -q "standing by" serve3.err
like "and says for whom" "$(cat serve3.err)" "process $alone on"
kill -9 $alone
wait $alone 2>/dev/null
ok "it takes over when that one ends" eventually grep -q "taking over" serve3.err
touch go
url=$(eventually test -s url3 && cat url3)
waits_for_a2() { "$rival" why a2 --server "$url" | grep -q answer; }
ok "and continues its run" eventually waits_for_a2
kill $third
wait $third
is "and ends when it is told to" "$?" 0
run "$rival" import c.run --store "$store"
is "an id that is there is refused" "$rc" 1
run "$rival" backup copy.db --store "$store"
is "a backup is refused" "$rc" 1
like "and says what to use" "$err" "pg_dump"
run "$rival" list --store "$store" --json
is "all runs are listed" "$(printf '%s' "$out" | jq -c '[.runs[].runId] | sort')" '["a","a2","c","e"]'

# ---- a whole store, there and back
run "$rival" copy other.db "$store"
is "what is there is left as it is" "$rc:$out" "0:copied 0 of 1 runs; 1 were there already"
run "$rival" copy "$store" back.db --json
is "a store is copied" "$rc:$out" '0:{"runs":4,"copied":4,"alreadyThere":0}'
# Where its events stand in the feed is each store's own.
for id in a c e; do
    "$rival" show $id --store "$store" --json | jq -S 'del(.driven, .acts[]?.seq)' >there
    "$rival" show $id --store back.db --json | jq -S 'del(.driven, .acts[]?.seq)' >here
    ok "and run $id is the same in both" cmp there here
done
run "$rival" copy nothing.db back.db
is "a store that is not there is an error" "$rc" 1
is "and makes none" "$(ls nothing.db 2>/dev/null)" ""

# ---- what is wrong with an address
run "$rival" list --store "postgres://rival:not-to-be-seen@/postgres?host=$tmp/nothing"
is "an address where nobody answers is an error" "$rc" 1
like "that says so" "$err" "the database cannot be reached"
run "$rival" list --store "postgres://rival:not-to-be-seen%zz@/postgres?host=$tmp/pg"
is "an address that is none, too" "$rc" 1
is "no password is shown" "$(cat err serve.err out url "$tmp"/.err | grep -c not-to-be-seen)" 0
run sh -c "echo 'CREATE DATABASE empty' | '$programs/psql' -h '$tmp/pg' -U rival postgres"
run "$rival" list --store "postgres://rival@/empty?host=$tmp/pg"
is "a database without a store is not made into one by looking" "$rc" 1
like "it says what to do" "$err" "no store|not there|rival exec"
done_testing
