#!/usr/bin/env bash
# together.sh: several `exec` on one store: one process drives it, the others hand their runs to it, follow them,
# and take over when it ends.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
pids=
cleanup() { for p in $pids; do kill -9 "$p" 2>/dev/null; done; }
why_says() { "$rival" why "$1" --store "${3:-rival.db}" | grep -q "$2"; }
exec_() { # ID FILE ARGS...: in the background, with its pid in $pid
    local id=$1
    shift
    "$rival" exec "$@" --run-id "$id" >"$id.out" 2>"$id.err" </dev/null &
    pid=$!
    pids="$pids $pid"
}
result() { jq -r ".results.$2.result" "$1.out"; }
has() { [ -e "$1" ]; }

# A step that says that it has begun, and ends when it may.
cat >gate.sh <<'SH'
#!/bin/sh
echo "$RIVAL_ATTEMPT" >>"begun.$RIVAL_RUN_ID.$1"
while [ ! -e "go.$RIVAL_RUN_ID.$1" ]; do sleep 0.02; done
echo "$1 of $RIVAL_RUN_ID"
SH
chmod +x gate.sh
cat >gate.yaml <<'YAML'
name: gate
steps:
  - one: { command: [./gate.sh, one] }
  - two: { command: [./gate.sh, two] }
YAML
cat >approval.yaml <<'YAML'
name: approval
steps:
  - answer: { signal: { name: approval, timeout: 1h, default: { by: nobody } } }
  - then: { value: "by ${ .steps.answer.result.by }" }
YAML

# ------------------------------------------------------------------------------------ one drives both
exec_ a approval.yaml
a=$pid
ok "a first one drives the store" eventually why_says a "signal 'approval'"
mkdir -p elsewhere
cat >elsewhere/greet.yaml <<'YAML'
name: greet
input: { type: object, required: [who], properties: { who: { type: string } } }
steps:
  - say: { command: [sh, -c, 'echo "$GREETING $(cat name) $PWD"; echo heard >&2'] }
  - env: { value: "${ .env.GREETING }" }
YAML
echo kim >elsewhere/name
(cd elsewhere && GREETING=hello "$rival" exec greet.yaml --store ../rival.db --run-id b --allow-env GREETING \
    --input '{"who":"x"}' >../b.out 2>../b.err)
is "a second one's run is run there" "$?" 0
is "with its environment and its folder" "$(result b say)" "hello kim $tmp/elsewhere"
is "also in expressions" "$(result b env)" hello
like "it shows the run as if it drove it" "$(cat b.err)" "completed  run b of greet"
like "with its log" "$("$rival" logs b)" "heard"
is "the first one goes on" "$(kill -0 $a && echo yes)" yes
run "$rival" exec elsewhere/greet.yaml --input '{}' --run-id bad
is "a bad input is refused, by the process that drives" "$rc:$out" "2:"
like "with what is wrong" "$err" "'who'|who"
run "$rival" exec elsewhere/greet.yaml --input '{"who":"y"}' --run-id b
is "another input for a run that exists is refused" "$rc" 2
printf 'name: bad\nsteps:\n  - it: { command: [sh, -c, "exit 3"] }\n' >fails.yaml
run "$rival" exec fails.yaml --json
is "a run that fails: its exit code" "$rc:$(printf '%s' "$out" | jq -r .status)" "1:failed"
is "nothing of the environment is in the store" "$(cat rival.db rival.db-wal 2>/dev/null | grep -c GREETING=)" 0
unlike "a run that was handed over is driven" "$("$rival" list)" "nobody drives it"

# Its secrets are those of the process that brought it.
cat >secret.yaml <<'YAML'
name: secret
secrets: [API_KEY, OTHER_KEY]
steps:
  - send: { command: [sh, -c, 'echo "$(printf %s "$A" | wc -c) $(printf %s "$B" | wc -c) $A"'], env: { A: "${ .secrets.API_KEY }", B: "${ .secrets.OTHER_KEY }" } }
YAML
echo 'OTHER_KEY=from-the-file' >keys
chmod 600 keys
API_KEY=very-secret-1 run "$rival" exec secret.yaml --run-id sec --secrets keys
is "secrets are those of the second one, and hidden" "$rc:$(printf '%s' "$out" | jq -r .results.send.result | cut -d' ' -f1,2)" "0:13 13"
unlike "in what is recorded" "$out" very-secret

# Two versions of one name, at the same time.
mkdir -p v1 v2
for v in 1 2; do
    cp gate.sh v$v/
    cat >v$v/same.yaml <<YAML
name: same
steps:
  - one: { command: [./gate.sh, one] }
  - two: { command: [sh, -c, "echo version $v"] }
YAML
done
exec_ v1 v1/same.yaml
v1=$pid
exec_ v2 v2/same.yaml
v2=$pid
ok "two versions of one workflow run at the same time" eventually eval 'has v1/begun.v1.one && has v2/begun.v2.one'
touch v2/go.v2.one
wait $v2
is "the later one ends as it is written" "$?:$(result v2 two)" "0:version 2"
touch v1/go.v1.one
wait $v1
is "and the earlier one as it was" "$?:$(result v1 two)" "0:version 1"

# The first one ends while another's step runs.
exec_ c gate.yaml
c=$pid
ok "a step of another run is running there" eventually has begun.c.one
run "$rival" signal a approval '{"by":"kim"}'
ok "the driver has printed its outcome" eventually grep -q '"by kim"' a.out
sleep 0.5
is "it lets that step finish" "$(kill -0 $a && echo yes)" yes
touch go.c.one
wait $a
is "and ends with the code of its own run" "$?:$(result a then)" "0:by kim"
like "having said what it waits for" "$(cat a.err)" "waiting for their running steps"
ok "the follower has taken over" eventually has begun.c.two
like "and says so" "$(cat c.err)" "this one continues it"
touch go.c.two
wait $c
is "its run completes" "$?:$(result c one):$(result c two)" "0:one of c:two of c"
is "no attempt was lost or doubled" "$(cat begun.c.one begun.c.two)" "1
1"

# ------------------------------------------------------------------------------------------- kill -9
exec_ d approval.yaml
d=$pid
ok "another one drives the store" eventually why_says d "signal 'approval'"
exec_ e gate.yaml
e=$pid
exec_ f gate.yaml
f=$pid
ok "with the runs of two others" eventually eval 'has begun.e.one && has begun.f.one'
kill -9 $d
{ wait $d; } 2>/dev/null
touch go.e.one go.f.one go.e.two go.f.two
wait $e
is "the driver is killed: the first of them ends" "$?:$(result e two)" "0:two of e"
wait $f
is "and so does the second" "$?:$(result f two)" "0:two of f"
run "$rival" list --status running --json
is "the run of the killed one waits for its exec" "$(printf '%s' "$out" | jq -r '.runs[].runId')" d
exec_ d approval.yaml
d=$pid
ok "which goes on with it" eventually why_says d "signal 'approval'"

# -------------------------------------------------------------------------------------------- Ctrl-C
exec_ g gate.yaml
g=$pid
ok "a run is handed to it" eventually has begun.g.one
kill -INT $g
ok "Ctrl-C in the follower: its step may finish" eventually grep -q 'running steps have .* to finish' g.err
touch go.g.one
wait $g
is "then it ends: exit code 130" "$?" 130
unlike "no step was given up" "$(cat g.err)" "did not finish"
like "it says how to go on" "$(cat g.err)" '^to continue: rival exec gate.yaml --run-id g$'
is "the step that ran has been recorded" "$("$rival" show g --json | jq -r '.nodes[0].status')" completed
sleep 0.5
is "and nothing more is begun" "$(has begun.g.two && echo begun)" ""
run "$rival" list --json
is "it stays running, and nobody drives it" "$("$rival" list | grep -c 'g .*nobody drives it')" 1
touch go.g.two
run "$rival" exec gate.yaml --run-id g
is "the same command goes on" "$rc:$(printf '%s' "$out" | jq -r .results.two.result)" "0:two of g"
is "with what was left" "$(cat begun.g.one begun.g.two)" "1
1"
exec_ h gate.yaml
h=$pid
ok "another run is handed over" eventually has begun.h.one
kill -9 $h
{ wait $h; } 2>/dev/null
unheld() { "$rival" list | grep -q 'h .*nobody drives it'; }
ok "its follower is killed: its step ends, and nobody drives it" eventually unheld
is "the driver goes on" "$(kill -0 $d && echo yes)" yes
touch go.h.one go.h.two
run "$rival" exec gate.yaml --run-id h
is "and the run with the next exec" "$rc:$(printf '%s' "$out" | jq -r .status)" "0:completed"

# Told from elsewhere.
exec_ i approval.yaml
i=$pid
ok "a run that was handed over waits" eventually why_says i "signal 'approval'"
run "$rival" signal i approval '{"by":"ada"}'
is "signal reaches it" "$rc" 0
wait $i
is "and it ends" "$?:$(result i then)" "0:by ada"
exec_ k approval.yaml
k=$pid
ok "another waits" eventually why_says k "signal 'approval'"
run "$rival" cancel k
wait $k
is "cancel reaches it: exit code 3" "$?" 3

# The same run twice: the second only follows.
exec_ dd approval.yaml
dd=$pid
ok "a run is handed over" eventually why_says dd "signal 'approval'"
"$rival" exec approval.yaml --run-id dd >dd2.out 2>dd2.err &
dd2=$!
pids="$pids $dd2"
connected() { find "/proc/$dd2/fd" -lname 'socket:*' | grep -q .; }
eventually connected # it prints nothing that says so
sleep 0.3
kill -INT $dd2
wait $dd2
is "a second exec of the same run can leave" "$?" 130
like "the run stays where it is" "$(cat dd2.err)" "the run continues where it is served"
run "$rival" signal dd approval '{"by":"both"}'
wait $dd
is "and the first has its end" "$?:$(result dd then)" "0:by both"

# The driver is stopped: steps of others go on elsewhere.
exec_ l approval.yaml
l=$pid
ok "a run waits there" eventually why_says l "signal 'approval'"
kill -INT $d
wait $d
is "Ctrl-C in the driver" "$?" 130
ok "who followed it drives now" eventually grep -q "this one continues it" l.err
run "$rival" signal l approval '{"by":"new"}'
wait $l
is "and its run ends there" "$?:$(result l then)" "0:by new"

# ---------------------------------------------------------------------------------------- a crowd
mkdir crowd
cp gate.sh crowd/
printf 'name: job\nsteps:\n  - work: { command: [sh, -c, "sleep 2; echo $JOB"] }\n  - more: { command: [sh, -c, "echo again $JOB"] }\n' \
    >crowd/job.yaml
crowd=
for n in $(seq 10); do
    (cd crowd && JOB=$n exec "$rival" exec job.yaml --run-id "job$n" >"$n.out" 2>"$n.err" </dev/null) &
    crowd="$crowd $!"
done
good=0
for p in $crowd; do wait "$p" && good=$((good + 1)); done
is "ten at once, on a store that is not there yet: all end well" "$good" 10
own=0
for n in $(seq 10); do
    [ "$(jq -r '.results.work.result, .results.more.result' "crowd/$n.out")" = "$n
again $n" ] && own=$((own + 1))
done
is "each with its own output" "$own" 10
is "each attempted once" "$(cd crowd && "$rival" list --json --limit 50 | jq '[.runs[]] | length')" 10
crowd=
for n in $(seq 10); do
    (cd crowd && JOB=$n exec "$rival" exec job.yaml --run-id "again$n" >"$n.out" 2>"$n.err" </dev/null) &
    crowd="$crowd $!"
done
all_begun() { [ "$(cd crowd && "$rival" list --json --status running | jq '.runs | length')" = 10 ]; }
ok "ten more" eventually all_begun
driver=$(tr -dc '0-9 \n' <crowd/rival.db.lock | grep -oE '[0-9]+' | head -n 1)
kill -9 "$driver"
good=0
for p in $crowd; do wait "$p" 2>/dev/null && good=$((good + 1)); done
is "the driver is killed: the nine others end well" "$good" 9

# ------------------------------------------------------------------------------------------- serve
mkdir served
cp gate.sh gate.yaml served/
printf 'name: same\nsteps:\n  - it: { value: served }\n' >served/same.yaml
"$rival" serve served --store serve.db --listen 127.0.0.1:0 >serve.out 2>serve.err &
server=$!
pids="$pids $server"
ok "a server drives a store" eventually has serve.db.sock
touch v1/go.s1.one
WHO=me run "$rival" exec v1/same.yaml --store serve.db --run-id s1
is "it takes a run with its own file" "$rc:$(printf '%s' "$out" | jq -r .results.two.result)" "0:version 1"
run "$rival" run same --wait --store serve.db
is "and keeps its own workflow of that name" "$rc:$(printf '%s' "$out" | jq -r .results.it.result)" "0:served"
exec_ s2 v2/same.yaml --store serve.db
s2=$pid
ok "a run is handed to it" eventually has v2/begun.s2.one
kill -INT $server
touch v2/go.s2.one
wait $server
wait $s2
is "it ends: the follower takes over" "$?:$(result s2 two)" "0:version 2"

# ------------------------------------------------------------------------------------- another version
for protocol in 1 2; do
    python3 "$RIVAL_SOURCE/tests/e2e/older.py" rival.db $protocol >older.out &
    older=$!
    pids="$pids $older"
    ok "a process of another version drives the store" eventually grep -q drives older.out
    touch "go.old$protocol.one" "go.old$protocol.two"
    exec_ "old$protocol" gate.yaml
    ok "exec says so, and waits (protocol $protocol)" eventually grep -q "process $older drives the store with version 0.0.1.*waiting" "old$protocol.err"
    is "nothing is begun meanwhile" "$(has "begun.old$protocol.one" && echo begun)" ""
    kill $older
    { wait $older; } 2>/dev/null
    wait "$pid"
    is "it runs when the store is free" "$?:$(result "old$protocol" two)" "0:two of old$protocol"
    : >older.out
done

# -------------------------------------------------------------------------------- where it cannot be
exec_ m approval.yaml
m=$pid
ok "somebody drives the store" eventually why_says m "signal 'approval'"
mkdir mine
cp approval.yaml mine/mine.yaml
run sh -c "cd mine && exec \"$rival\" exec /proc/self/cwd/mine.yaml --store ../rival.db --run-id n"
is "a file that the driver cannot read: exit code 2" "$rc:$out" "2:"
like "and why" "$err" "process $m drives the store, but cannot load this workflow: .*mine.yaml"
run "$rival" list --json
is "nothing was begun" "$(printf '%s' "$out" | jq '[.runs[] | select(.runId == "n")] | length')" 0
run "$rival" signal m approval
wait $m

done_testing
