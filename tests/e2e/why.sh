#!/usr/bin/env bash
# why.sh: `rival why` of a run that waits in every way a file can ask for, driven by another process.
. "$(dirname "$0")/tap.sh"
pid=
cleanup() { [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null; }
cd "$tmp" || exit 1

cat >all.yaml <<'Y'
name: all
steps:
  - block:
      concurrent:
        works: { command: [sleep, "600"] }
        naps: { delay: 1h }
        asks: { signal: { name: approve, timeout: 2h } }
        waits: { signal: { name: "go on" } }
        again: { command: ["false"], maxAttempts: 5, backoffBaseMs: 600000, maxBackoffMs: 600000 }
        few:
          - slowly:
              forEach: "${ [range(20)] }"
              parallel: true
              concurrency: 2
              run: [ { parcel: { command: [sleep, "600"] } } ]
        many:
          - each:
              forEach: "${ [range(20)] }"
              parallel: true
              run: [ { tick: { delay: 1h } } ]
        crunches: { call: crunch }
Y
cat >fns.c <<'C'
#include <rival/rival.h>
#include <unistd.h>
static int crunch(rv_ctx *c)
{
    while (!rv_ctx_cancelled(c))
        usleep(1000);
    return rv_fail(c, "stopped");
}
RV_WORKFLOW("fns", .steps = RV_STEPS(RV_STEP(crunch)))
C
"$rival" exec all.yaml --run-id r1 --json >out.json 2>err.txt &
pid=$!
groups() { "$rival" why r1 --json 2>/dev/null | jq "$1" 2>/dev/null; }
for _ in $(seq 400); do
    [ "$(groups '[.waits[] | select(.step == "again" and .reason == "retry"), select(.step == "tick" and .count == 20),
        select(.step == "parcel" and .count == 2), select(.executor == "host")] | length')" = 4 ] && break
    sleep 0.05
done

json=$("$rival" why r1 --json)
get() { printf '%s' "$json" | jq -r "$1"; }
is "each reason, with what belongs to it" "$(get '[.waits[] | [.step, .reason, .count, .executor // .name // .limitSize // .attempt // ""] |
    map(tostring) | join(" ")] | sort | .[]')" "again retry 1 2
asks signal 1 approve
crunches running 1 host
naps timer 1 
parcel running 2 command
slowly concurrency 18 2
tick timer 20 
waits signal 1 go on
works running 1 command"
is "no node has two reasons" "$(get '[.waits[].nodes[].path] | group_by(.) | map(select(length > 1)) | length')" 0
is "all that is alive is counted" "$(get '[.waits[].count] | add')" 46
is "the oldest first" "$(get '[.waits[].since] == ([.waits[].since] | sort)')" true
is "until when, for those that have a time" "$(get '[.waits[] | select(.dueAt) | .step] | sort | join(" ")')" "again asks naps tick"
is "of many nodes ten are named" "$(get '[.waits[] | select(.step == "tick") | .nodes[]] | length')" 10

text=$("$rival" why r1)
like "a command" "$text" "^'works' runs as a command, for [0-9.]+m?s"
like "a function of a C file" "$text" "^'crunches' runs in a host process, for "
like "a timer, with its time" "$text" "^'naps' waits for its time, for .*, until .* \(in 59m"
like "a retry, with which attempt" "$text" "^'again' waits for attempt 2, for .*, until .* \(in "
like "a signal with a time-out" "$text" "^'asks' waits for the signal 'approve', for .*, until "
like "and how to send it" "$text" "^  => rival signal r1 approve$"
like "with quotes where a shell needs them" "$text" "^  => rival signal r1 'go on'$"
like "iterations that their forEach holds back" "$text" "^18 more iterations of 'slowly' wait: at most 2 run at once, for "
is "nodes of one group are told together, the first of them by path" \
    "$(printf '%s\n' "$text" | sed -n "/^'tick'/,/more/p" | tail -n +2)" "  block:many:node0:each:iter0:node0:tick
  block:many:node0:each:iter1:node0:tick
  block:many:node0:each:iter2:node0:tick
  ... and 17 more"
unlike "nothing is said of a driver that is there" "$text" "no process"
is "it is as short as there are groups" "$(printf '%s\n' "$text" | grep -c "^[^ ]")" 9

# Nobody drives it any more.
kill -9 $pid
wait $pid 2>/dev/null
pid=
text=$("$rival" why r1)
like "without a driver that is said" "$text" "^nobody drives it"
like "and how to go on" "$text" "rival exec FILE --run-id r1"
like "the rest is as it was left" "$text" "^'naps' waits for its time"

# Each iteration waits for a signal of its own.
cat >each.yaml <<'Y'
name: each
steps:
  - all:
      forEach: "${ [range(12)] }"
      parallel: true
      run: [ { ask: { signal: { name: "ask-${ .loop.index }" } } } ]
Y
"$rival" exec each.yaml --store each.db --run-id e1 --json >/dev/null 2>&1 &
pid=$!
asked() { [ "$("$rival" why e1 --store each.db --json | jq '.waits[0] | select(.reason == "signal") | .count')" = 12 ]; }
eventually asked
is "of many signals the first are named, and the rest is counted" "$("$rival" why e1 --store each.db | tail -n +2)" \
    "  all:iter0:node0:ask
  all:iter1:node0:ask
  all:iter2:node0:ask
  ... and 9 more
  => rival signal e1 ask-0 --store each.db
  => rival signal e1 ask-1 --store each.db
  => rival signal e1 ask-2 --store each.db"
is "in JSON ten are listed, and all are counted" \
    "$("$rival" why e1 --store each.db --json | jq -c '.waits[0] | [.count, (.nodes | length), .nodes[9].name]')" '[12,10,"ask-9"]'
kill -INT $pid
wait $pid
pid=

# What is missing, and what somebody has to decide.
printf 'name: lost\nsteps: [ { s: { signal: { name: go } } }, { f: { call: crunch } } ]\n' >lost.yaml
"$rival" run lost --store lost.db --run-id l1 >/dev/null 2>&1
rm fns.c
"$rival" signal l1 go --store lost.db >/dev/null
"$rival" exec lost.yaml --store lost.db --run-id l1 --on-suspend wait --json >/dev/null 2>&1 &
pid=$!
for _ in $(seq 400); do
    text=$("$rival" why l1 --store lost.db 2>/dev/null)
    case $text in *"waits for a worker"*) break ;; esac
    sleep 0.05
done
like "a function that nobody has is named" "$text" "^'f' waits for a worker that offers 'crunch'"
is "in JSON too" "$("$rival" why l1 --store lost.db --json | jq -r '.waits[0] | .reason + " " + .function')" "worker crunch"
kill -INT $pid
wait $pid
cat >pill.c <<'C'
#include <rival/rival.h>
#include <stdlib.h>
static int crunch(rv_ctx *c)
{
    (void)c;
    abort();
}
RV_WORKFLOW("fns", .steps = RV_STEPS(RV_STEP(crunch)))
C
"$rival" exec lost.yaml --store lost.db --run-id l1 --on-suspend wait --json >/dev/null 2>&1 &
pid=$!
for _ in $(seq 400); do
    text=$("$rival" why l1 --store lost.db 2>/dev/null)
    case $text in *decision*) break ;; esac
    sleep 0.05
done
like "a decision, with its cause" "$text" "^'f' waits for a decision, for .*: .*'f' was to blame"
like "and how to decide, in the same store" "$text" "^  => rival decide l1 resume --store lost.db$"
like "one way or the other" "$text" "^  => rival decide l1 abort --store lost.db$"
is "in JSON the cause is an object" "$("$rival" why l1 --store lost.db --json | jq -r '.waits[0] | .reason + " " + (.cause | type)')" "decision object"
"$rival" decide l1 abort --store lost.db >/dev/null
wait $pid
pid=
text=$("$rival" why l1 --store lost.db)
is "a run that has ended waits for nothing" "$(printf '%s\n' "$text" | head -n 1)" "not waiting: the run has failed"
like "and of one that failed the error is said" "$text" "^  f: .*'f' was to blame"
like "and where to read on" "$text" "^  => rival logs l1 --store lost.db$"

# Two that wait for a decision: each with its own cause, and since it was suspended. Each fails once the other runs,
# since nothing starts in a suspended run.
for name in "left a b" "right b a"; do
    set -- $name
    cat >"$1.yaml" <<Y
stages: { s: [ { name: $2, agent_id: fails, critical: true } ] }
agents:
  - id: fails
    command: [sh, -c, 'touch \$1; until [ -e \$2 ]; do sleep 0.01; done; echo "about \$1" >&2; exit 1', sh, $2, $3]
Y
done
printf 'name: both\nsteps:\n  - both: { concurrent: { l: { workflow: left }, r: { workflow: right } } }\n' >both.yaml
"$rival" exec both.yaml --store both.db --run-id b1 --json >/dev/null 2>&1
is "(two suspensions)" "$?" 4
"$rival" show b1 --store both.db --json | jq -c '[.suspensions[] | [.path, .reason, .since]] | sort' >suspensions
"$rival" why b1 --store both.db --json | jq -c '[.waits[] | [.nodes[0].path, .cause, .since]] | sort' >waits
is "each decision has its own cause and time" "$(cat waits)" "$(cat suspensions)"
is "… two of them" "$(jq -c '[.[][1].message | sub(".*about "; "")] | sort' waits)" '["a","b"]'

# A name may have anything in it; a terminal gets none of its control characters.
printf 'name: odd\nsteps:\n  - it: { signal: "go\\e]0;x\\a" }\n' >odd.yaml
"$rival" exec odd.yaml --store odd.db --run-id o1 --json >/dev/null 2>&1 &
pid=$!
for _ in $(seq 400); do
    text=$("$rival" why o1 --store odd.db 2>/dev/null)
    case $text in *"rival signal"*) break ;; esac
    sleep 0.05
done
is "the command escapes them" "$(printf '%s\n' "$text" | sed -n 's/^  => //p')" "rival signal o1 \$'go\x1b]0;x\x07' --store odd.db"
eval "\"$rival\" ${text##*=> rival }" >/dev/null
wait $pid
is "and sends that name when it is typed" "$?" 0
pid=

done_testing
