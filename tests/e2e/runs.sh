#!/usr/bin/env bash
# runs.sh: the commands about runs: beginning, looking, telling; alone and beside a process that drives.
. "$(dirname "$0")/tap.sh"
unset NO_COLOR
esc=$(printf '\033')
cd "$tmp" || exit 1
jq_() { printf '%s' "$out" | jq -r "$1"; }

# A file to begin with.
run "$rival" new hello
is "new makes a file" "$rc:$(ls)" "0:hello.yaml"
run "$rival" new hello
is "and does not overwrite it" "$rc" 2
like "but says so" "$err" "hello.yaml already exists"
ok "check accepts it" "$rival" check hello.yaml
run "$rival" new 'no name'
is "a bad name: exit code 2" "$rc" 2
sed -i 's/delay: 2s/delay: 1ms/' hello.yaml
run "$rival" exec hello.yaml --run-id hello-1 --json
is "exec runs it" "$rc:$(jq_ .results.say.result)" "0:Hello, world!"

# Looking.
cat >order.yaml <<'YAML'
name: order
description: Wait for an approval, then ship
input: { type: object, required: [item], properties: { item: { type: string } } }
steps:
  - check: { command: [sh, -c, "echo looking for ${ .input.item } >&2"], description: "found ${ .input.item }" }
  - flaky: { command: [sh, -c, "test $RIVAL_ATTEMPT -ge 2 || { echo not yet >&2; exit 1; }"], maxAttempts: 3, backoffBaseMs: 1 }
  - approval: { signal: approved, timeout: 1h }
  - each: { forEach: "${ [range(30)] }", run: [ { item: { value: "${ .loop.item }" } } ] }
  - ship: { value: { by: "${ .steps.approval.result.by }" } }
YAML
"$rival" exec order.yaml --input '{"item":"desk"}' --run-id order-1 >order.out 2>order.err &
pid=$!
waits() { "$rival" why order-1 | grep -q "signal 'approved'"; }
ok "why, while another process drives it" eventually waits
run "$rival" why order-1 --json
is "as JSON" "$(jq_ '[.status, .waits[0].reason, .waits[0].name] | join("|")')" "running|signal|approved"
run "$rival" show order-1
is "show, meanwhile" "$rc" 0
like "with the run" "$out" '^order  order-1  running$'
like "its input" "$out" '^input      \{"item":"desk"\}$'
like "a step, its status, time and description" "$out" '^. *✓? ?check +completed +[0-9.]+m?s  found desk$|check +completed .* found desk$'
like "attempts" "$out" 'flaky +completed .* attempt 2$'
like "what it waits for" "$out" 'approval +running .* until .*, in 59m'
like "what is to come" "$out" 'ship +pending$'
run "$rival" show order-1 --json
is "as JSON" "$(jq_ '[.workflow, .input.item, (.nodes | map(.alias + ":" + .status) | join(","))] | join("|")')" \
    "order|desk|check:completed,flaky:completed,approval:running,each:pending,ship:pending"
run "$rival" logs order-1
like "logs" "$out" '^[0-9:.]{12}  info +check  looking for desk$'
run "$rival" logs order-1 --step flaky
unlike "of one step" "$out" check
like "that one" "$out" 'flaky  not yet$'
run "$rival" logs order-1 --level error
is "of a level" "$rc:$out" "0:"
run "$rival" logs order-1 --json --step check
is "as JSON" "$(jq_ '[.level, .stepName, .message, .attempt] | map(tostring) | join("|")')" "info|check|looking for desk|1"
run "$rival" list
like "list" "$out" '^order-1 +order +running '
like "with a head" "$out" '^RUN +WORKFLOW +STATUS +STARTED +TIME'
unlike "no colours in a pipe" "$out" "$esc"

# Telling it something meanwhile goes by that process (control.sh).
run "$rival" decide order-1 resume
is "what it refuses: exit code 1" "$rc:$out" "1:"
run "$rival" wait order-1 --timeout 100ms
is "wait gives up, with an exit code of its own" "$rc:$out" "124:"
like "and says what to ask" "$err" "has not ended after 100ms"
"$rival" wait order-1 >wait.out 2>&1 &
waiter=$!
"$rival" logs order-1 -f >logs.out 2>&1 &
follower=$!
kill -INT $pid
wait $pid

# Telling a store that nobody holds: recorded, and nothing is begun.
run "$rival" signal order-1 approved '{"by": '
is "a payload that is not JSON: exit code 2" "$rc" 2
like "and what is wrong with it" "$err" "the signal's payload is not JSON: line 1, column"
unlike "in words of signal" "$err" "input"
printf '{"by"' >payload.json
run "$rival" signal order-1 approved @payload.json
like "in a file, too" "$rc:$err" "^2:.*the signal's payload is not JSON: payload.json: line 1, column"
run "$rival" signal order-1 approved @nowhere.json
like "one that is not there" "$rc:$err" "^2:.*cannot read the signal's payload from nowhere.json: No such file"
run "$rival" signal order-1 approved '{"by": "kim"}'
is "signal" "$rc:$out" "0:signalled order-1"
run "$rival" show order-1 --json
is "is taken, and nothing goes on" "$(jq_ '.nodes | map(.alias + ":" + .status) | join(",")')" \
    "check:completed,flaky:completed,approval:completed,each:pending,ship:pending"
run "$rival" exec order.yaml --run-id order-1 --json
is "until the run is driven" "$rc:$(jq_ .results.ship.result.by)" "0:kim"
wait $waiter
is "wait ends with it, and has its code" "$?:$(cat wait.out)" "0:$out"
wait $follower
is "and so does logs -f" "$?:$(grep -c 'not yet' logs.out)" "0:1"
run "$rival" show order-1
like "many iterations are counted" "$out" 'each +completed .* 30 completed$'
like "show says who started it" "$out" "started .* by $(id -un)"
like "and who signalled it, what" "$out" "signalled +by $(id -un), .*: approved"
run "$rival" show order-1 --json
is "as JSON: the events of what somebody did" "$(jq_ '[.acts[] | .kind + "=" + .by] | unique | join(" ")')" \
    "run.started=$(id -un) signal.received=$(id -un)"
run "$rival" why order-1
is "why of a run that has ended" "$out" "not waiting: the run has completed"
run "$rival" signal order-1 approved
is "a signal to it: exit code 1" "$rc" 1
run "$rival" cancel order-1
is "cancelling it changes nothing" "$rc:$out" "0:already completed: order-1"
run "$rival" decide order-1 resume
is "nothing to decide: exit code 1" "$rc" 1
run "$rival" decide order-1 perhaps
is "not a decision: exit code 2" "$rc" 2

# By name.
run "$rival" workflows
like "workflows of this folder" "$out" '^order +order.yaml +item +Wait for an approval, then ship$'
run "$rival" workflows --json
is "as JSON" "$(jq_ '[.workflows[].name] | sort | join(",")')" "hello,order"
run "$rival" run order --input '{"item":"lamp"}' --run-id order-2
is "run begins one by its name" "$rc:$out" "0:order-2"
run "$rival" show order-2 --json
is "which is recorded, and not begun here" "$(jq_ '.status + " " + .nodes[0].status')" "running pending"
run "$rival" run order --run-id order-3
is "run with a refused input: exit code 2" "$rc:$out" "2:"
run "$rival" run nobody
is "run of an unknown name: exit code 2" "$rc" 2
like "and which there are" "$err" "no workflow 'nobody'; registered: .*order"
run "$rival" run hello --wait --json --run-id hello-2
is "run --wait drives it" "$rc:$(jq_ .status)" "0:completed"
run "$rival" cancel order-2 --json
is "cancel" "$rc:$out" '0:{"runId":"order-2","status":"cancelled"}'
run "$rival" wait order-2
is "wait for a cancelled run: exit code 3" "$rc:$(jq_ .status)" "3:cancelled"

# Suspended, and decided.
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
run "$rival" exec pill.yaml --run-id m1 --on-suspend resume --json
is "a suspended run" "$rc" 4
run "$rival" why m1
like "why says what it was" "$out" "decision.*'it' was to blame"
run "$rival" decide m1 abort --reason "not today"
is "decide abort" "$rc:$out" "0:aborted m1"
run "$rival" wait m1
is "fails it" "$rc:$(jq_ .status)" "1:failed"

# Lists.
run "$rival" list --json
is "list --json" "$(jq_ '[(.runs | map(.runId) | join(",")), (.nextCursor | tostring)] | join("|")')" \
    "m1,hello-2,order-2,order-1,hello-1|null"
is "a run has its times" "$(jq_ '.runs[0] | (.completedAt - .startedAt == .duration) | tostring')" true
run "$rival" list --json --limit 2
next=$(jq_ .nextCursor)
run "$rival" list --cursor zz
is "a cursor that is none: exit code 2" "$rc" 2
run "$rival" list --json --limit 2 --cursor "$next"
is "page by page" "$(jq_ '.runs | map(.runId) | join(",")')" "order-2,order-1"
run "$rival" list --json --status cancelled
is "by status" "$(jq_ '.runs | map(.runId) | join(",")')" "order-2"
run "$rival" list --json --workflow hello
is "by workflow" "$(jq_ '.runs | map(.runId) | join(",")')" "hello-2,hello-1"
run "$rival" list --json --since 1h
is "by time" "$(jq_ '.runs | length')" 5
run "$rival" list --json --since 2199-01-01
is "none then" "$(jq_ '.runs | length')" 0
run "$rival" list --status runing
is "a status that is none: exit code 2" "$rc" 2
like "with a suggestion" "$err" "did you mean 'running'\?"
run "$rival" list --limit none
is "a limit that is none: exit code 2" "$rc" 2
run "$rival" list --since yesterdayish
is "a time that is none: exit code 2" "$rc" 2

# Which run? By the beginning of its id.
run "$rival" show m
like "the only one that begins so" "$out" '^pill  m1  failed$'
run "$rival" show order
is "of several: exit code 1" "$rc" 1
like "and which" "$err" "order-2, order-1"
run "$rival" show nobody
is "of none: exit code 1" "$rc" 1
like "with a hint" "$err" "rival list"
run "$rival" list --store nowhere.db
is "a store that is not there: exit code 1" "$rc:$out" "1:"
like "and it says so" "$err" "there is no store 'nowhere.db'"
is "nor is it made" "$(ls nowhere.db 2>/dev/null)" ""
echo "this is not a store, whatever its name says" >text.db
run "$rival" list --store text.db
is "a file that is no store: exit code 1" "$rc" 1

# What a step says cannot play with the terminal.
printf 'name: evil\nsteps:\n  - it: { command: [printf, "x"], description: "a\\u001b[31mb\\u202Ec" }\n' >evil.yaml
run "$rival" exec evil.yaml --run-id evil
unlike "no escapes from a description" "$err$out" "$esc"
run "$rival" show evil
unlike "nor in show" "$out" "$esc"

# Looking changes nothing: no journal and no index of one stay beside a store that is at rest.
for command in "list" "show evil" "logs evil" "why evil" "wait evil"; do
    "$rival" $command >/dev/null
done
is "looking leaves nothing behind" "$(ls rival.db*)" "$(printf 'rival.db\nrival.db.lock')"

done_testing
