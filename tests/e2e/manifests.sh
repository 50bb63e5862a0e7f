#!/usr/bin/env bash
# manifests.sh: stage schedules as users have them: the examples, each rule of a schedule by a manifest, decisions
# by the command and by HTTP, and a suspended run that survives kill -9.
. "$(dirname "$0")/tap.sh"
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
pid=
cleanup() { [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; }
cp -r "$RIVAL_SOURCE/examples/manifests" "$tmp/examples"
cd "$tmp" || exit 1

# get FILTER: of the outcome in $out.
get() { printf %s "$out" | jq -rc "$1"; }

# ---- the examples do their work
run "$rival" check examples
is "the examples are good" "$rc:$err" "0:"
cd examples/aggregate || exit 1
run "$rival" exec aggregate.yaml --store "$tmp/a.db" --json
is "aggregate: named inputs of two states" "$rc $(get .results.executing.result.aggregator.result)" "0 398 in all; 1 row(s) left out"
is "… a description by the agent's describe" "$(get .results.executing.result.validator.description)" "3 good rows, 1 bad ones"
run "$rival" exec aggregate.yaml --store "$tmp/a.db" --json --input '{"file": "missing.csv"}'
like "an errored dependency is the value that its dependents get" "$(get .results.executing.result.aggregator.result)" '^no report: .*missing.csv'
is "… and the run goes on: the state is failed, its attempts are told" "$rc $(get '.status, .results.executing.result.parser.status, .results.executing.result.parser.attempts' | paste -sd' ')" "0 completed failed 2"
cd ../weather || exit 1
run "$rival" exec weather.yaml --store "$tmp/w.db"
like "a file of several manifests: which one?" "$rc $err" "^2 .*say which with --workflow NAME \(weather, lake-only\)"
run "$rival" exec weather.yaml --store "$tmp/w.db" --workflow lake --json
like "… and it must be one of them" "$rc $err" "^2 .*has no workflow 'lake'; it has weather, lake-only"
run "$rival" exec weather.yaml --store "$tmp/w.db" --workflow weather --input '{"user_prompt": "So?"}'
is "weather: stages, a redirect, parameters under the input" "$rc $(get .results.report.result.say.result)" "0 So? Lake 14, hill 6 degrees."
like "… the redirect is told" "$err" "redirect +triage:gather_hill to repair"
is "… its target ran again" "$(get .results.triage.result.repair.attempts)" 2
run "$rival" plan weather.yaml --workflow weather --format text
like "plan: priorities and dependencies as text" "$out" "gather_hill: .*\[priority 200, after prepare, 2 retries after repair, at most 30s\]"
run "$rival" plan weather.yaml --workflow weather --format mermaid
like "plan: dependencies are edges" "$out" 'n1 -->\|"copy"\| n3'
like "… redirects and earlier stages are dotted" "$out" 'n4 -\.->\|"on failure"\| n2'
run "$rival" plan weather.yaml --workflow weather
is "plan: JSON has the stages" "$(get '[.steps[].alias]')" '["triage","report"]'
cd "$tmp" || exit 1

# ---- each rule of a schedule
# agents: log NAME appends to a file; fail N fails until it was called N times.
cat >agent.sh <<'S'
#!/bin/sh
# agent.sh FILE NAME [FAILS]: note that NAME begins; fail as often; note that it ends.
cat >/dev/null
echo "$2" >>"$1"
calls=$(grep -cx "$2" "$1")
if [ "$calls" -le "${3:-0}" ]; then
    echo "$2 fails" >&2
    exit 1
fi
echo "$2!" >>"$1"
echo "\"$2\""
S
chmod +x agent.sh
# manifest NAME STATES...: one stage, a line for each state; all have the agent of that name.
manifest() {
    local name=$1
    shift
    {
        echo "name: $name"
        [ -z "${head:-}" ] || printf '%s\n' "$head"
        echo "stages:"
        printf '%s\n' "$@"
        echo "agents:"
        echo "  - { id: a, command: [./agent.sh, $name.log, \"\${ .state.name }\", \"\${ .parameters.fails // 0 | tostring }\"] }"
        echo "  - { id: see, command: [cat] }"
        echo "  - { id: slow, command: [sleep, '30'], stdin: none }"
    } >"$name.yaml"
}
exec_manifest() {
    local name=$1
    shift
    rm -f "$name.log"
    run "$rival" exec "$name.yaml" --store "$name.db" --json "$@"
}
states() { get "[.results | to_entries[] | .value.result // {} | to_entries[] | \"\\(.key)=\\(.value.status)/\\(.value.attempts)\"] | join(\" \")"; }

head='max_concurrency: 1' manifest priority '  s:' '  - { name: low, agent_id: a, priority: 10 }' '  - { name: high, agent_id: a, priority: 900 }' '  - { name: middle, agent_id: a }'
exec_manifest priority
is "the ready queue goes by priority, then by order" "$(paste -sd' ' priority.log)" "high high! middle middle! low low!"

manifest after '  s:' '  - { name: late, agent_id: a, priority: 1, depends_on: { x: { state: early } } }' '  - { name: early, agent_id: a, parameters: { fails: 1 } }'
exec_manifest after
is "a dependency that failed counts as completed: dependents go on" "$rc $(paste -sd' ' after.log) $(states)" "0 early late late! late=completed/1 early=failed/1"

manifest order '  one:' '  - { name: x, agent_id: a }' '  two:' '  - { name: y, agent_id: a }'
exec_manifest order
is "stages run in order" "$(paste -sd' ' order.log)" "x x! y y!"

cat >meet.sh <<'S'
#!/bin/sh
# meet.sh MINE OTHERS: say that it is here, and wait for the other one.
cat >/dev/null
touch "$1"
while ! test -e "$2"; do sleep 0.05; done
S
chmod +x meet.sh
cat >meet.yaml <<'Y'
name: meet
stages:
  s:
    - { name: a, agent_id: meet, timeout: 60, parameters: { mine: met-a, others: met-b } }
    - { name: b, agent_id: meet, timeout: 60, parameters: { mine: met-b, others: met-a } }
agents:
  - { id: meet, command: [./meet.sh, "${ .parameters.mine }", "${ .parameters.others }"] }
Y
exec_manifest meet
is "two agents that wait for each other run at once" "$rc $(states)" "0 a=completed/1 b=completed/1"

manifest retry '  s:' '  - { name: r, agent_id: a, max_retry: 2, parameters: { fails: 2 } }'
exec_manifest retry
is "a failure goes back into the queue while retries are left" "$(paste -sd' ' retry.log) $(states)" "r r r r! r=completed/3"

manifest redirect '  s:' '  - { name: r, agent_id: a, priority: 5, max_retry: 1, on_failure: fix, parameters: { fails: 1 } }' '  - { name: fix, agent_id: a }'
head='max_concurrency: 1' manifest redirect '  s:' '  - { name: r, agent_id: a, priority: 5, max_retry: 1, on_failure: fix, parameters: { fails: 1 } }' '  - { name: fix, agent_id: a }'
exec_manifest redirect
is "on_failure: its target runs again first, then the retry" "$(paste -sd' ' redirect.log)" "fix fix! r fix fix! r r!"

head='max_concurrency: 1' manifest final '  s:' '  - { name: end, agent_id: a, priority: 500, final: true }' '  - { name: more, agent_id: a }' '  t:' '  - { name: never, agent_id: a }'
exec_manifest final
is "final: nothing new is dispatched, later stages are skipped" "$rc $(paste -sd' ' final.log) $(states)" "0 end end! end=completed/1 more=skipped/0"
is "… a skipped stage is skipped, not failed" "$(get .results.t.status)" skipped

manifest timeout '  s:' '  - { name: t, agent_id: slow, timeout: 0.2, max_retry: 1 }'
exec_manifest timeout
is "a timeout, in seconds, is a failure like any other" "$rc $(states) $(get .results.s.result.t.error.code)" "0 t=failed/2 timeout"

manifest sees '  one:' '  - { name: src, agent_id: a }' '  two:' \
    '  - { name: all, agent_id: see, depends_on: { x: { state: src, stage: one } }, parameters: { k: 1 } }' \
    '  - { name: explicit, agent_id: see, accessibility: explicit, depends_on: { x: { state: src, stage: one } } }' \
    '  - { name: logs, agent_id: see, accessibility: logs, depends_on: { x: { state: src, stage: one } } }' \
    '  - { name: none, agent_id: see, accessibility: none, depends_on: { x: { state: src, stage: one } } }'
exec_manifest sees --input '{"p": 5}'
seen() { get "[.results.two.result.$1.result | keys_unsorted[]] | sort | join(\" \")"; }
is "all: inputs, parameters, state, run, steps and env on stdin" "$(seen all)" "env input inputs parameters run state steps"
for scope in explicit logs none; do
    is "$scope: no steps, no env" "$(seen $scope)" "input inputs parameters run state"
done
is "explicit and all are given what they depend on, the others only wait for it" \
    "$(get '[.results.two.result[].result.inputs]')" '[{"x":"src"},{"x":"src"},{},{}]'
is "parameters: the input, over which the state's lie" "$(get '.results.two.result.all.result.parameters')" '{"p":5,"k":1}'
is "state and run say who it is" "$(get '.results.two.result.all.result | [.state, .run.path, .run.attempt]')" \
    '[{"name":"all","stage":"two","priority":100,"attempt":0},"two:all",1]'

manifest pool '  s:' '  - { name: a, agent_id: a }' '  - { name: b, agent_id: a }' '  - { name: c, agent_id: a }'
exec_manifest pool --max-concurrency 1
is "--max-concurrency: one at a time" "$(paste -sd' ' pool.log)" "a a! b b! c c!"
run "$rival" exec pool.yaml --store pool.db --max-concurrency none
like "… a number" "$rc $err" "^2 .*--max-concurrency 'none' must be a number of 1 or more"

# ---- written back
printf 'name: w\nstages:\n    s: # one\n    -   name: a\n        agentId: x\nagents: []\n' >fmt.yaml
run "$rival" manifest fmt fmt.yaml
is "fmt: printed in the usual layout, with its comments" "$rc $out" "0 $(printf 'name: w\nstages:\n  s: # one\n    - name: a\n      agent_id: x\nagents: []')"
run "$rival" manifest fmt fmt.yaml --check
like "--check: it is not formatted" "$rc $err" "^1 fmt.yaml is not formatted"
run "$rival" manifest fmt fmt.yaml --write
run "$rival" manifest fmt fmt.yaml --check
is "--write: now it is" "$rc:$err" "0:"
for file in examples/*/*.yaml; do
    run "$rival" manifest fmt "$file" --check
    is "$file is formatted" "$rc" 0
done
printf 'a: [' >bad.yaml
run "$rival" manifest fmt bad.yaml --write
like "what is no YAML stays what it is" "$rc $(cat bad.yaml)" '^1 a: \[$'

# ---- suspended, and decided
cat >critical.yaml <<'Y'
name: critical
stages:
  s:
    - { name: must, agent_id: bad, priority: 500, critical: true, max_retry: 1 }
    - { name: held, agent_id: ok, priority: 100 }
    - { name: then, agent_id: see, priority: 50, depends_on: { m: { state: must } } }
agents:
  - { id: ok, command: [sh, -c, "echo \"$1\" >>critical.log", x, "${ .state.name }"], stdin: none }
  - { id: bad, command: [sh, -c, "echo must >>critical.log; echo sorry >&2; test -e good"], stdin: none }
  - { id: see, command: [cat] }
Y
suspend() {
    rm -f good critical.log
    run "$rival" exec critical.yaml --store c.db --run-id "$1" --json
}
suspend r1
is "critical and out of attempts: exec without a terminal leaves it suspended" "$rc $(get '.status')" "4 suspended"
run "$rival" exec critical.yaml --store c.db --run-id r1
like "… and says how to decide" "$err" "^to decide and continue: rival exec critical.yaml --run-id r1 --store c.db --on-suspend resume"
is "why shows each decision that can be made" \
    "$("$rival" why r1 --store c.db | sed -n 's/^  => rival decide r1 \([a-z_]*\) --store c.db$/\1/p' | tr '\n' ' ')" \
    "resume skip abort restart_stage "
is "… what is of lower priority was held back" "$(paste -sd' ' critical.log)" "must must"
run "$rival" why r1 --store c.db --json
is "… why says that it waits for a decision" "$(get '[.waits[].reason]')" '["decision"]'
run "$rival" show r1 --store c.db --json
is "… the state is suspended; its stage is running, in the nodes and in the results" \
    "$(get '[.nodes[0].status, .results.s.status, .nodes[0].nodes[0].status]')" '["running","running","suspended"]'
is "… the actions are listed" "$(get '.suspensions[0] | [.path, .actions]')" '["s:must",["resume","skip","abort","restart_stage"]]'
touch good
run "$rival" decide r1 resume --store c.db --reason "repaired by hand"
is "resume: fresh attempts" "$rc" 0
run "$rival" show r1 --store c.db --json
is "… the state is queued again" "$(get '[.nodes[0].nodes[] | [.alias, .status, .attempt]][0]')" '["must","waiting_retry",2]'
run "$rival" show r1 --store c.db
like "… show says who decided, what and why" "$out" "decided +by $(id -un), .*: resume s:must, repaired by hand"
run "$rival" exec critical.yaml --store c.db --run-id r1 --json
is "… and it completes" "$rc $(states)" "0 must=completed/3 held=completed/1 then=completed/1"
run "$rival" decide r1 resume --store c.db
like "a decision twice acts once" "$rc $err" "^1 .*completed"
suspend r2
run "$rival" decide r2 skip --store c.db
run "$rival" exec critical.yaml --store c.db --run-id r2 --json
is "skip: recorded as failed, the stage goes on" "$rc $(states)" "0 must=failed/2 held=completed/1 then=completed/1"
like "… dependents get the error" "$(get '.results.s.result.then.result.inputs.m.error.message')" "sorry"
is "… with the attachment that has it" "$(get '.results.s.result.then.result.inputs.m.error.attachmentId == .results.s.result.must.attachmentId')" true
suspend r3
run "$rival" decide r3 restart_stage --store c.db
run "$rival" show r3 --store c.db --json
is "restart_stage: what it left before counts no more" "$(get '[.nodes[0].nodes[] | .status] | unique')" '["pending"]'
touch good
run "$rival" exec critical.yaml --store c.db --run-id r3 --json
is "restart_stage: the stage runs anew" "$rc $(paste -sd' ' critical.log)" "0 must must must held"
suspend r4
run "$rival" decide r4 abort --store c.db --reason "no more"
run "$rival" exec critical.yaml --store c.db --run-id r4 --json
is "abort: the run failed, in that state of that stage" "$rc $(get '[.status, .failedStep, .failedPath]')" '1 ["failed","s","s:must"]'
is "… what never ran is skipped, which is not failed" "$(states)" "must=failed/2 held=skipped/0 then=skipped/0"
like "… why it was suspended is kept beside the reason" "$(get '.error | [.message, .cause.message] | join("|")')" "no more\|.*must.*"
cat >later.yaml <<'Y'
stages:
  one:
    - { name: must, agent_id: bad, critical: true, priority: 200 }
  two:
    - { name: next, agent_id: ok }
agents:
  - { id: ok, command: [true] }
  - { id: bad, command: [false] }
Y
for decided in abort cancel; do
    run "$rival" exec later.yaml --store c.db --run-id "later-$decided" --json
    if [ "$decided" = abort ]; then
        run "$rival" decide later-abort abort --store c.db
        run "$rival" exec later.yaml --store c.db --run-id later-abort --json
    else
        run "$rival" cancel later-cancel --store c.db
    fi
    run "$rival" show "later-$decided" --store c.db --json
    is "… so are the states of a stage that never began ($decided)" \
        "$(get '[.nodes[1] | .status, .nodes[0].status]')" '["skipped","skipped"]'
done
for what in abort:1 skip:0; do
    rm -f good
    run "$rival" exec critical.yaml --store c.db --json --on-suspend "${what%:*}"
    is "--on-suspend ${what%:*}" "$rc" "${what#*:}"
done

# On a terminal it asks: inspect, and again; then skip.
cat >ask.py <<'P'
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], ["rival", "exec", "critical.yaml", "--store", "c.db"])
said, asked, answers, end = b"", 0, [b"i\n", b"s\n"], time.time() + 60
while time.time() < end:
    if select.select([fd], [], [], 0.2)[0]:
        try:
            got = os.read(fd, 65536)
        except OSError:
            break
        if not got:
            break
        said += got
    if asked < 2 and said.count(b"/i/q]") > asked:
        os.write(fd, answers[asked])
        asked += 1
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
P
rm -f good
run python3 ask.py "$rival"
is "a terminal gets a menu, and skip goes on" "$rc" 0
like "… which names the state and what may be decided" "$out" "^.*s:must: resume .*skip.*abort, restart_stage, inspect"
like "… inspect shows the attachment, and asks again" "$out" "\[s\]\[must\]\[bad\]_[0-9T]+_1 +errored +.*sorry"

# ---- several at once, by HTTP, and a kill
mkdir flows
cat >flows/two.yaml <<'Y'
name: two
stages:
  s:
    - { name: a, agent_id: fails, priority: 9, critical: true }
    - { name: b, agent_id: late, priority: 9, depends_on: {} }
  t:
    - { name: c, agent_id: fails }
agents:
  - { id: fails, command: ["false"], stdin: none }
  - { id: late, command: ["true"], stdin: none }
Y
"$rival" check flows/two.yaml >check.out 2>&1
like "check: critical states have their priority to themselves" "$(cat check.out)" "two.yaml:4:.*the priority of a critical state must be unique"
sed -i 's/name: b, agent_id: late, priority: 9, depends_on: {}/name: b, agent_id: fails, priority: 20, critical: true/' flows/two.yaml
"$rival" serve flows --listen 127.0.0.1:0 --store two.db >serve.out 2>&1 &
pid=$!
ok "it serves manifests" eventually grep -q 'http://127' serve.out
at=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' serve.out | head -1)
post() { curl -s -o body -w '%{http_code}' -X POST -H 'Content-Type: application/json' "$at$1" -d "$2"; }
status() { curl -s "$at/api/v1/runs/k" | jq -r .status; }
suspended() { [ "$(status)" = suspended ]; }
is "HTTP: maxConcurrency is a number from 1" "$(post /api/v1/workflows/two/runs '{"maxConcurrency": 0}')" 422
is "a manifest is started like any workflow" "$(post /api/v1/workflows/two/runs '{"runId": "k", "maxConcurrency": 1}')" 202
ok "it is suspended" eventually suspended
kill -9 "$pid"
wait "$pid" 2>/dev/null
"$rival" serve flows --listen 127.0.0.1:0 --store two.db >serve2.out 2>&1 &
pid=$!
ok "after kill -9 it serves again" eventually grep -q 'http://127' serve2.out
at=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' serve2.out | head -1)
is "the suspension survived" "$(curl -s "$at/api/v1/runs/k" | jq -c '[.status, .suspensions[].path]')" '["suspended","s:b"]'
is "HTTP: decide skip" "$(post /api/v1/runs/k/decide '{"action": "skip", "reason": "not needed"}')" 200
second() { [ "$(curl -s "$at/api/v1/runs/k" | jq -c '[.suspensions[]?.path]')" = '["s:a"]' ]; }
ok "then the next critical state waits" eventually second
is "HTTP: a path that is not suspended is refused" "$(post /api/v1/runs/k/decide '{"action": "skip", "path": "s:b"}')" 409
run "$rival" decide k skip --path s:a --server "$at"
is "the command, by a server" "$rc" 0
run "$rival" wait k --server "$at" --json
is "decided after the kill, it completes" "$rc $(states)" "0 a=failed/1 b=failed/1 c=failed/1"
done_testing
