#!/usr/bin/env bash
# members.sh: three servers share a store in PostgreSQL; one is stopped past its lease and continued, one is killed, one
# ends in order: nothing is lost, nothing recorded is done again, and any of them answers for all runs.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
cd "$tmp" || exit 1
. "$here/database.sh"

cat >wf.yaml <<'YAML'
name: wf
input: { type: object, properties: { n: { type: integer } } }
steps:
  - first: { command: [sh, -c, "echo $RIVAL_RUN_ID >>first"] }
  - nap: { delay: 50ms }
  - gate: { command: [sh, -c, "echo $RIVAL_RUN_ID >>began; while [ ! -e go ]; do sleep 0.05; done"] }
  - ask: { signal: answer }
YAML

# Each has a folder for its socket, as on a machine of its own.
member() { # number [file]
    mkdir -p -m 700 "run$1"
    XDG_RUNTIME_DIR=$tmp/run$1 "$rival" serve "${2:-wf.yaml}" --store "$store" --lease 5s --grace 100ms --listen 127.0.0.1:0 \
        >"url$1" 2>"err$1" &
    eval "pid$1=$!"
    pids="$pids $!"
}
for i in 1 2 3; do member $i; done
serving() { grep -q '"serving"\|serving' "err$1"; }
for i in 1 2 3; do ok "member $i serves" eventually serving $i; done
url1=$(cat url1) url2=$(cat url2) url3=$(cat url3)
url() { eval "echo \$url$1"; }
members() { "$rival" members --store "$store" --json | jq -r '.members | length'; }
are() { [ "$(members)" = "$1" ]; }
ok "three members share the store" eventually are 3
run curl -s "$url2/api/v1/members"
is "and each tells so" "$(printf '%s' "$out" | jq -c '[.members[] | [.runs, .version, .leaseUntil > 0, .process != ""]] | unique | length')" 1
is "and which one it is itself" "$(printf '%s' "$out" | jq -r '[.members[] | select(.self)] | length')" 1
run "$rival" members --store "$store"
like "people read a table" "$out" "^MEMBER +PROCESS +VERSION +RUNS"

# ---- runs begin everywhere
for n in $(seq 1 10); do
    for i in 1 2 3; do "$rival" run wf --run-id "r$i-$n" --input "{\"n\":$n}" --server "$(url $i)" >>ids; done
done
is "thirty runs begin" "$(sort -u ids | wc -l)" 30
begun() { [ "$(sort -u began 2>/dev/null | wc -l)" = "$1" ]; }
ok "and reach their gate" eventually begun 30
run "$rival" run wf --run-id r1-1 --input '{"n":1}' --server "$url2"
is "the same start at another member is that run" "$rc:$out" "0:r1-1"
run "$rival" run wf --run-id r1-1 --input '{"n":2}' --server "$url3"
is "with another input it is refused" "$rc" 2
like "and says why" "$err" "exists already"
for i in 1 2 3; do "$rival" run wf --run-id same --input '{"n":0}' --server "$(url $i)" >"same$i" 2>&1 & eval "same$i=$!"; done
wait $same1 && wait $same2 && wait $same3
is "three that begin the same run at once agree" "$?:$(cat same1 same2 same3 | sort -u)" "0:same"
ok "and it begins" eventually begun 31
cp first recorded # what comes after this step has begun

# ---- any member answers for any run
for i in 1 2 3; do
    run "$rival" why r2-3 --server "$(url $i)"
    like "member $i knows why a run waits" "$out" "gate"
    run "$rival" show r3-1 --server "$(url $i)"
    like "and shows another" "$out" "first +completed"
    (cd "$tmp" && exec curl -sN "$(url $i)/api/v1/runs/r$i-10/events" >"events$i" 2>/dev/null) &
    pids="$pids $!"
done
for i in 1 2 3; do ok "member $i has followers" eventually grep -q started "events$i"; done
for i in 1 2 3; do
    run "$rival" cancel "r$i-10" --server "$(url $((i % 3 + 1)))"
    is "a run is cancelled at the next member" "$rc" 0
    run "$rival" wait "r$i-10" --server "$(url $(((i + 1) % 3 + 1)))" --json
    is "which the third one sees" "$(printf '%s' "$out" | jq -r .status)" cancelled
    ok "and who follows is told" eventually grep -q cancelled "events$i"
done

# ---- one is stopped past its lease, and continued
kill -STOP $pid2
ok "a member of which nothing is heard is one no more" eventually are 2
none_of_2() { [ "$("$rival" members --store "$store" --json | jq '[.members[].runs] | add')" = 28 ]; }
ok "the others have its runs" eventually none_of_2
kill -CONT $pid2
ok "it joins anew" eventually are 3
run "$rival" why r2-3 --server "$url2"
like "and answers" "$out" "gate"

# ---- one is killed
kill -9 $pid1
wait $pid1 2>/dev/null
ok "a member that died is one no more" eventually are 2
ok "the others have its runs" eventually none_of_2

# ---- one ends in order
kill $pid3
wait $pid3
is "a member ends in order" "$?" 0
ok "and is one no more" eventually are 1
ok "the last one has all runs" eventually none_of_2
member 4
ok "a new one comes" eventually serving 4
url4=$(cat url4)

# ---- they all go on, to their end
touch go
asks() { [ "$("$rival" list --store "$store" --waiting somebody --json --limit 100 | jq '.runs | length')" = 28 ]; }
ok "all runs go on" eventually asks
for n in $(seq 1 9); do
    for i in 1 2 3; do "$rival" signal "r$i-$n" answer "$n" --server "$(url $(((i + n) % 2 * 2 + 2)))" >>signalled; done
done
"$rival" signal same answer 0 --server "$url4" >>signalled
is "each takes its signal, at whichever member" "$(wc -l <signalled)" 28
completed() { [ "$("$rival" list --store "$store" --status completed --json --limit 100 | jq '.runs | length')" = 28 ]; }
ok "and completes" eventually completed
is "what was recorded was not done again" "$(cmp first recorded):$(sort -u first | wc -l)" ":31"
"$rival" show r1-5 --server "$url4" --json >there
is "with its results" "$(jq -r '.results.ask.result' there)" 5
# ---- commands go to a member that has the file of their workflow
cat >other.yaml <<'YAML'
name: other
steps:
  - nothing: { value: "{{ 1 }}" }
YAML
cat >asks.yaml <<'YAML'
name: asks
steps:
  - ask: { signal: answer }
  - gone: { command: [sh, -c, "echo $RIVAL_RUN_ID >>gone"] }
YAML
member 5 other.yaml
member 6 asks.yaml
for i in 5 6; do ok "member $i serves" eventually serving $i; done
url5=$(cat url5) url6=$(cat url6)
for n in 1 2; do "$rival" run asks --run-id "c$n" --server "$url6" >>ids; done
asking() { "$rival" why "$1" --server "$url6" --json | grep -q '"signal"'; }
for n in 1 2; do ok "a run waits for its signal" eventually asking "c$n"; done
run "$rival" signal c1 answer 1 --server "$url5"
is "a member without the file takes its signal" "$rc" 0
run "$rival" wait c1 --server "$url5" --json
is "one with the file runs its command" "$(printf '%s' "$out" | jq -r .status):$(cat gone)" "completed:c1"
kill $pid6
wait $pid6
run "$rival" signal c2 answer 1 --server "$url5"
is "the next run has no such member" "$rc" 0
none_has() { "$rival" why c2 --server "$url5" | grep -q "waits for a member with the file of workflow 'asks': none has it"; }
ok "which any member tells" eventually none_has
member 7 asks.yaml
again() { [ "$(sort -u gone)" = "$(printf 'c1\nc2')" ]; }
ok "a member that comes with the file continues it" eventually again
run "$rival" wait c2 --server "$url5" --json
is "to its end" "$(printf '%s' "$out" | jq -r .status)" completed
run curl -s "$url5/metrics"
like "hand-overs are counted" "$out" "rival_member_handed_over_total [12]"

run "$rival" retain --keep 1 --store "$store"
is "who wants the store alone is told" "$rc" 1
like "that it is shared" "$err" "process .* writes to this store, .*members"
done_testing
