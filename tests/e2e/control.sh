#!/usr/bin/env bash
# control.sh: telling a run something while another process drives it, through the socket beside its store.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
pids=
cleanup() { for p in $pids; do kill -9 "$p" 2>/dev/null; done; }
jq_() { printf '%s' "$out" | jq -r "$1"; }
why_says() { "$rival" why "$1" --store "${3:-rival.db}" | grep -q "$2"; }
exec_() { # ID FILE ARGS...: in the background, with its pid in $pid
    local id=$1
    shift
    "$rival" exec "$@" --run-id "$id" >"$id.out" 2>"$id.err" </dev/null &
    pid=$!
    pids="$pids $pid"
}

cat >approval.yaml <<'YAML'
name: approval
steps:
  - answer: { signal: { name: approval, timeout: 1h, default: { by: nobody } } }
  - then: { value: "by ${ .steps.answer.result.by }" }
YAML
cat >slow.yaml <<'YAML'
name: slow
steps:
  - nap: { command: [sleep, "600"] }
YAML
cat >pill.c <<'C'
#include <rival/rival.h>
#include <stdlib.h>
static int kills(rv_ctx *c)
{
    (void)c;
    abort();
}
RV_WORKFLOW("fns", .steps = RV_STEPS(RV_STEP(kills)))
C
printf 'name: pill\nsteps:\n  - it: { call: kills }\n' >pill.yaml

# A person decides, in another terminal.
exec_ a approval.yaml
ok "the run waits for somebody" eventually why_says a "signal 'approval'"
is "the socket is beside the store, for its owner" "$(stat -c %A:%F rival.db.sock)" "srw-------:socket"
run "$rival" signal a aproval '{"by": "kim"}'
is "a name that nobody waits for is refused" "$rc:$out" "1:"
like "with the names there are" "$err" "no step of this run waits for the signal 'aproval'; known signals: approval"
like "and what to do" "$err" "--force"
run "$rival" signal a aproval --force
is "unless it is meant so" "$rc:$out" "0:signalled a"
run "$rival" signal a approval '{"by": "kim"}'
is "signal reaches it" "$rc:$out:$err" "0:signalled a:"
wait $pid
like "who sent it is told" "$(cat a.err)" "signal approval by $(id -un)"
is "and it goes on where it is" "$?:$(jq -r .results.then.result a.out)" "0:by kim"
is "the socket is gone with its process" "$(ls rival.db.sock 2>/dev/null)" ""

# What runs where is known there.
exec_ b slow.yaml
ok "why says that it runs, and since when" eventually why_says b "'nap' runs as a command, for"
run "$rival" why b --json
is "as JSON" "$(jq_ '.waits[0].reason')" running
run "$rival" decide b resume
is "what the run refuses is told" "$rc:$out" "1:"
like "with its reason" "$err" "running|not suspended"

# The process drives one run: others are told so.
run "$rival" signal a approval
is "about another run: exit code 1" "$rc:$out" "1:"
like "and who drives what" "$err" "process $pid has the store and drives only run 'b'"
run "$rival" run approval
is "nor is another begun there" "$rc:$out" "1:"
like "for the same reason" "$err" "drives only run 'b'"
"$rival" wait b >wait.out 2>&1 &
waiter=$!
pids="$pids $waiter"
run "$rival" cancel b
is "cancel reaches it" "$rc:$out" "0:cancelled b"
wait $pid
is "exec ends with it" "$?" 3
wait $waiter
is "and wait is told" "$?:$(jq -r .status wait.out)" "3:cancelled"

# Suspended, and decided from elsewhere.
exec_ d pill.yaml --on-suspend wait
suspended() { [ "$("$rival" list --json --status suspended | jq -r '.runs[0].runId')" = d ]; }
ok "a run is suspended" eventually suspended
run "$rival" decide d abort --reason "not today"
is "decide reaches it" "$rc:$out" "0:aborted d"
wait $pid
is "and it fails" "$?" 1

# A process that was killed leaves a socket that nobody answers at.
exec_ e approval.yaml
ok "a run waits" eventually why_says e "signal 'approval'"
kill -9 $pid
wait $pid 2>/dev/null
is "its socket stays" "$(ls rival.db.sock)" rival.db.sock
run "$rival" signal e approval '{"by": "ada"}'
is "signal writes by itself then" "$rc:$out" "0:signalled e"
run "$rival" exec approval.yaml --run-id e --json
is "and the next process goes on" "$rc:$(jq_ .results.then.result)" "0:by ada"
is "having put its own socket in that place" "$(ls rival.db.sock 2>/dev/null)" ""

# Many at once.
exec_ f approval.yaml
ok "a run waits" eventually why_says f "signal 'approval'"
many=
for i in $(seq 20); do "$rival" signal f "other-$i" "$i" --force >"sig$i.out" 2>&1 & many="$many $!"; done
good=0
for p in $many; do wait "$p" && good=$((good + 1)); done
is "twenty tell it something at the same time" "$good" 20
run "$rival" signal f approval '{"by": "all"}'
wait $pid
is "and it goes on" "$?" 0
many= good=0
for i in $(seq 5); do
    "$rival" run approval --run-id "free$i" >/dev/null 2>&1 &
    many="$many $!"
done
for p in $many; do wait "$p" && good=$((good + 1)); done
is "where nobody drives the store, they wait for each other" "$good" 5

# A store that is far away.
deep=$(printf 'd%.0s' $(seq 100))/$(printf 'e%.0s' $(seq 100))
mkdir -p "$deep"
exec_ g approval.yaml --store "$deep/rival.db"
ok "a path longer than an address of a socket" eventually why_says g "signal 'approval'" "$deep/rival.db"
run "$rival" signal g approval '{"by": "far"}' --store "$deep/rival.db"
is "is reached too" "$rc:$out" "0:signalled g"
wait $pid
is "and goes on" "$?" 0
ln -s "$deep/rival.db" near.db
exec_ h approval.yaml --store near.db
ok "by another name of the store" eventually why_says h "signal 'approval'" "$deep/rival.db"
run "$rival" signal h approval '{"by": "far"}' --store "$deep/rival.db"
wait $pid
is "it is the same socket" "$rc:$?" "0:0"

is "nothing is left behind" "$(ls -A | grep sock)" ""
done_testing
