#!/usr/bin/env bash
# exec.sh: `rival exec`: outcomes and exit codes, inputs, death and going on, Ctrl-C, the live view.
. "$(dirname "$0")/tap.sh"
unset NO_COLOR
esc=$(printf '\033')
cd "$tmp" || exit 1
jq_() { printf '%s' "$out" | jq -r "$1"; }

cat >good.yaml <<'YAML'
name: good
input: { type: object, required: [who], properties: { who: { type: string }, n: { type: integer, minimum: 1 } } }
steps:
  - greet: { value: "Hello, ${ .input.who }!" }
  - say: { command: [sh, -c, "echo saying it >&2; echo '${ .steps.greet.result }'"], description: "said ${ .result }" }
YAML
run "$rival" exec good.yaml --input '{"who": "you"}' --run-id g1
is "a completed run: exit code 0" "$rc" 0
is "the outcome is JSON on stdout" "$(jq_ '[.runId, .status, .results.say.result, .results.say.state.description] | join("|")')" \
    "g1|completed|Hello, you!|said Hello, you!"
is "one line of it" "$(printf '%s\n' "$out" | wc -l)" 1
like "progress goes to stderr, with times" "$err" '^[0-9]{2}:[0-9]{2}:[0-9]{2}  started    greet$'
like "with descriptions" "$err" 'completed  say: said Hello, you!$'
like "with what steps log" "$err" 'log        say: saying it$'
like "and ends with how it went" "$err" '^good completed after .*\(run g1\)$'
unlike "no colours in a pipe" "$err" "$esc"
ok "the store is made here" test -f rival.db
first=$out
run "$rival" exec good.yaml --run-id g1
is "the same again prints its outcome" "$out" "$first"
is "and exits with its code" "$rc" 0
run "$rival" exec good.yaml --run-id g1 --input '{"who":"you"}'
is "also with the same input" "$rc:$out" "0:$first"
run "$rival" exec good.yaml --run-id g1 --input '{"who":"me"}'
is "another input: refused" "$rc:$out" "2:"
like "as what it is" "$err" "run 'g1' exists already.*with another input"
run "$rival" exec good.yaml --json --input '{"who":"x"}'
is "--json: nothing but the outcome" "$rc:$err:$(jq_ .status)" "0::completed"
like "a run id is made, that sorts by time" "$(jq_ .runId)" '^[0-9a-z]{26}$'

# Every kind of step has its handler, a condition that fails included; descriptions come behind waits.
cat >handled.yaml <<'YAML'
name: handled
steps:
  - all:
      concurrent:
        v: { value: "${ error(\"no\") }", onError: { value: 1 } }
        d: { delay: "${ \"x\" }", onError: { value: 1 } }
        s: { signal: { name: never, timeout: 5ms }, onError: { value: 1 } }
        c: { command: ["false"], onError: { value: 1 } }
        f: { call: missing, timeout: 5ms, when: "${ error(\"no\") }", onError: { value: 1 } }
      onFailure: collect
      description: "${ [.result[] | select(.status == \"failed\")] | length } failed"
YAML
run "$rival" exec handled.yaml
is "every kind of step has its handler" "$(printf '%s\n' "$err" | grep -oE 'completed  all:[a-z]:onError' | sort | tr '\n' ' ')" \
    "completed  all:c:onError completed  all:d:onError completed  all:f:onError completed  all:s:onError completed  all:v:onError "
like "a supervisor is described when it has ended" "$err" 'described  all: 5 failed$'

# Inputs.
echo '{"who": "file"}' >in.json
run "$rival" exec good.yaml --json --input @in.json
is "the input from a file" "$(jq_ .results.greet.result)" "Hello, file!"
out=$("$rival" exec good.yaml --json --input=- <in.json)
is "the input from stdin" "$(jq_ .results.greet.result)" "Hello, file!"
run "$rival" exec good.yaml --input '{"n": 0}' --run-id refused
is "a refused input: exit code 2" "$rc:$out" "2:"
like "each violation by its pointer" "$err" "^  /n: "
like "all of them" "$err" "who"
run "$rival" show refused
is "and there is no run" "$rc" 1
run "$rival" exec good.yaml --input '{"who": }'
is "input that is not JSON: exit code 2" "$rc" 2
like "with the place" "$err" "not JSON: --input: line 1, column 9"
run "$rival" exec good.yaml --input @nowhere.json
is "a file that is not there: exit code 2" "$rc" 2
like "and it says so" "$err" "nowhere.json: No such file"

# Wrong use makes no run, and no store.
mkdir clean && cd clean || exit 1
printf 'name: broken\nsteps:\n  - one: { comand: [ls] }\n' >broken.yaml
run "$rival" exec broken.yaml
is "a broken file: exit code 2" "$rc:$out" "2:"
like "with line and suggestion" "$err" "broken.yaml:3:12: error: .*did you mean 'command'\?"
run "$rival" exec nowhere.yaml
is "no file: exit code 2" "$rc" 2
run "$rival" exec
is "no argument: exit code 2" "$rc" 2
run "$rival" exec ../good.yaml --run-id 'a b'
is "a bad run id: exit code 2" "$rc" 2
run "$rival" exec ../good.yaml --on-suspend perhaps
is "a bad choice: exit code 2" "$rc" 2
run "$rival" exec ../good.yaml --runid x
like "an option with a slip" "$err" "did you mean '--run-id'\?"
is "none of that made a store" "$(ls)" "broken.yaml"
cd ..

# Failure.
cat >bad.yaml <<'YAML'
name: bad
steps:
  - one: { value: 1 }
  - two: { forEach: "${ [1, 2, 3] }", run: [ { inner: { command: [sh, -c, "test ${ .loop.item } != 2 || { for i in 1 2; do echo cannot find $i >&2; done; exit 3; }"] } } ] }
  - three: { value: 3 }
YAML
run "$rival" exec bad.yaml --run-id b1
is "a failed run: exit code 1" "$rc" 1
is "its outcome says what failed" "$(jq_ '[.status, .failedStep, (.error.message | split("\n")[0])] | join("|")')" \
    "failed|two|'sh' failed with exit code 3; stderr ended with:"
like "the record names the step" "$err" '^two:iter1:node0:inner failed: .*exit code 3'
like "and has the tail of its log" "$err" '^  [|│] cannot find 2$'
is "the outcome says where" "$(jq_ '[.failedPath, .error.code, .error.exitCode, .results.two.error.path, .results.two.result.iterations[1].results.inner.error.exitCode] | map(tostring) | join("|")')" \
    "two:iter1:node0:inner|exit|3|two:iter1:node0:inner|3"
run "$rival" list --json
is "so does the list" "$(jq_ '.runs[] | select(.runId == "b1") | .failedPath')" "two:iter1:node0:inner"
run "$rival" show b1
like "show says it" "$out" '^failed at +two:iter1:node0:inner$'
run "$rival" why b1
like "why says it" "$out" '^  two:iter1:node0:inner: '
run "$rival" why b1 --json
is "and in JSON" "$(jq_ .failedPath)" "two:iter1:node0:inner"
run "$rival" exec bad.yaml --run-id b1
is "again: the same code" "$rc" 1

# What failed and was allowed to is seen by later nodes, in order. A long message keeps its end.
cat >errors.yaml <<'YAML'
name: errors
steps:
  - z: { command: [sh, -c, "exit 3"], continueOnError: true }
  - a: { command: [sh, -c, "yes é | head -n 20000 | tr -d '\\n' >&2; echo ' the end' >&2; exit 4"], continueOnError: true }
  - path: { value: "${ .steps.z.error.path }" }
  - code: { value: "${ .steps.z.error.exitCode }" }
  - none: { value: "${ .steps.path.error }" }
  - order: { value: "${ .steps | keys_unsorted }" }
  - all: { value: "${ [.steps[] | select(.error) | .error.code] }" }
  - tail: { value: "${ .steps.a.error.message[-8:] }" }
YAML
run "$rival" exec errors.yaml --run-id errors-1
is "the workflow goes on" "$rc" 0
is "its errors are seen" "$(jq_ '.results | [.path, .code, .none, .order, .all, .tail] | map(.result) | tojson')" \
    '["z",3,null,["z","a","path","code","none"],["exit","exit"]," the end"]'
is "and are in the outcome" "$(jq_ '.results.z | tojson')" \
    '{"result":null,"state":{},"status":"failed","error":{"message":"'"'sh' failed with exit code 3"'","code":"exit","exitCode":3,"path":"z"}}'

# Death in the middle. What was done is not done again.
cat >slow.yaml <<'YAML'
name: slow
steps:
  - one: { command: [sh, -c, "echo one >>did"] }
  - two: { command: [sh, -c, "echo begin >>did; test -e go || sleep 60; echo two >>did"] }
  - three: { command: [sh, -c, "echo three >>did"] }
YAML
begun() { grep -q begin did; }
"$rival" exec slow.yaml --run-id s1 >/dev/null 2>&1 &
pid=$!
eventually begun
kill -9 $pid
{ wait $pid; } 2>/dev/null
touch go
run "$rival" exec slow.yaml --run-id s1
is "killed, and called again: it goes on" "$rc:$(jq_ .status)" "0:completed"
is "what was done is not done again" "$(grep -c one did)" 1
rm -f go did

# Only its own run: another that died is left as it is.
"$rival" exec slow.yaml --run-id s2 >/dev/null 2>&1 &
pid=$!
eventually begun
kill -9 $pid
{ wait $pid; } 2>/dev/null
touch go
run "$rival" exec good.yaml --json --input '{"who":"z"}'
is "another run beside it" "$rc" 0
run "$rival" list --status running --json
is "leaves the one that died alone" "$(jq_ '[.runs[].runId] | join(",")')" "s2"
is "it was not attempted" "$(grep -c begin did)" 1
run "$rival" exec slow.yaml --run-id s2
is "until it is asked for" "$rc:$(jq_ .status)" "0:completed"
rm -f go did

# Two at once on one store: the first runs both (together.sh has more of that).
"$rival" exec slow.yaml --run-id s3 >first.out 2>first.err &
pid=$!
eventually begun
run "$rival" exec good.yaml --input '{"who":"z"}'
is "a store that another process drives: that one runs it" "$rc:$(jq_ .status)" "0:completed"
run "$rival" exec good.yaml --run-id g1
is "one that has ended is only read: its outcome, its code" "$rc:$out" "0:$first"
run "$rival" exec good.yaml --run-id g1 --input '{"who":"you"}'
is "also with its input" "$rc:$out" "0:$first"
run "$rival" exec good.yaml --run-id g1 --input '{"who":"me"}'
is "but not with another" "$rc:$out" "2:"
run "$rival" exec slow.yaml --run-id g1
is "nor for another workflow" "$rc:$out" "2:"
like "which is told" "$err" "run 'g1' is of workflow 'good', not of 'slow'"
run "$rival" exec good.yaml --input '{"who":"z"}' --store own.db --json
is "another store is free" "$rc" 0
kill -INT $pid
wait $pid
is "SIGINT once: exit code 130" $? 130
like "it says how to go on" "$(cat first.err)" '^to continue: rival exec slow.yaml --run-id s3$'
is "and prints no outcome" "$(cat first.out)" ""
is "a step that does not end is told to, and handed back" "$(grep -c two did)" 0
touch go
run "$rival" exec slow.yaml --run-id s3
is "that command goes on" "$rc:$(jq_ .status)" "0:completed"
rm -f go did

# Once: what runs may end, and is recorded; nothing new is begun. The step itself is who presses Ctrl-C.
cat >ends.yaml <<'YAML'
name: ends
steps:
  - one: { command: [sh, -c, "until test -s pid; do sleep 0.05; done; kill -INT $(cat pid); sleep 1; echo one >>did"] }
  - two: { command: [sh, -c, "echo two >>did"] }
YAML
"$rival" exec ends.yaml --run-id e1 --json >first.out 2>first.err &
pid=$!
echo $pid >pid
wait $pid
is "SIGINT with --json: exit code 130, no outcome" "$?:$(cat first.out)" "130:"
like "how to go on is told all the same" "$(cat first.err)" '^to continue: rival exec ends.yaml --run-id e1$'
is "the step that ran has ended, and the next was not begun" "$(tr '\n' ' ' <did)" "one "
run "$rival" show e1 --json
is "what it did is recorded" "$(jq_ '.nodes | map(.alias + ":" + .status) | join(",")')" "one:completed,two:pending"
run "$rival" exec ends.yaml --run-id e1
is "and not done again" "$rc:$(tr '\n' ' ' <did)" "0:one two "
rm -f did pid
sed -i '/two:/d' ends.yaml
"$rival" exec ends.yaml --run-id e2 >first.out 2>first.err &
pid=$!
echo $pid >pid
wait $pid
is "SIGINT in the last step: exit code 130" $? 130
like "what happened meanwhile is shown" "$(cat first.err)" 'completed  one$'
like "and that it has ended" "$(cat first.err)" '^the run has ended; all completed work is recorded$'
rm -f did pid

# Twice: at once. The first waits for a step that does not heed TERM.
cat >deaf.yaml <<'YAML'
name: deaf
steps:
  - deaf: { command: [sh, -c, "trap '' TERM; echo begin >>did; while :; do sleep 0.1; done"] }
YAML
"$rival" exec deaf.yaml --run-id d1 >/dev/null 2>deaf.err &
pid=$!
eventually begun
kill -INT $pid
eventually grep -q "Ctrl-C again" deaf.err
kill -INT $pid
wait $pid
is "SIGINT twice: exit code 130" $? 130
unlike "at once" "$(cat deaf.err)" "stopped"
rm -f did

# A store that refuses, as on a full disk: it is told, with --json too, and it goes on when that is over.
mkdir full && cd full || exit 1
trap '' XFSZ # a file that may not grow is an error, not the end
cat >full.yaml <<'YAML'
name: full
steps:
  - one: { command: [sh, -c, "echo begin >did; until test -e go; do sleep 0.05; done"] }
  - two: { value: 2 }
YAML
room() { prlimit --pid "$pid" --fsize="$1:unlimited"; }
refuses() { grep -q "^rival: the store cannot be written, so the run waits: " "$1"; }
"$rival" exec full.yaml --run-id f1 --json >f1.out 2>f1.err &
pid=$!
eventually begun
room 4096
touch go
ok "a full disk is told" eventually refuses f1.err
room unlimited
wait $pid
is "with room again the run goes on" "$?:$(jq -r .status f1.out)" "0:completed"
is "which is told as well" "$(sed -n '$p' f1.err)" "the store works again: the run continues"
printf '"%*s"' 100000 x >big.json # more than there is room for, so that the run cannot begin
(ulimit -S -f 40 && exec timeout 60 "$rival" exec full.yaml --run-id f2 --input @big.json) >f2.out 2>f2.err
is "a run that cannot begin is an error" "$?:$(cat f2.out)" "1:"
like "with the reason" "$(cat f2.err)" "^rival: .*(full|limit|write|disk)"
like "and nothing was changed" "$(cat f2.err)" "nothing was changed"
run "$rival" exec full.yaml --run-id f2 --input @big.json
is "with room it begins" "$rc:$(jq_ .status)" "0:completed"
trap - XFSZ
cd ..

# Cancelled and suspended.
printf 'name: waits\nsteps:\n  - ok: { signal: go, timeout: 1h }\n' >waits.yaml
run "$rival" run waits --run-id w1
"$rival" cancel w1 >/dev/null
run "$rival" exec waits.yaml --run-id w1
is "a cancelled run: exit code 3" "$rc:$(jq_ .status)" "3:cancelled"
printf 'name: missing\nsteps:\n  - it: { call: nobodyHasIt }\n' >missing.yaml
run "$rival" exec missing.yaml --run-id m0
is "a function that nobody has, without a terminal: exit code 4" "$rc:$(jq_ .status)" "4:running"
like "and it says which" "$err" 'no process here has the function "nobodyHasIt"'
mkdir pill && cd pill || exit 1
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
run "$rival" exec pill.yaml --run-id m1
is "suspended without a terminal: it stays so, exit code 4" "$rc:$(jq_ .status)" "4:suspended"
like "and it says why" "$err" "suspended.*'it' was to blame"
like "and how to go on" "$err" "rival exec pill.yaml --run-id"
is "on disk, too" "$("$rival" list --json | jq -r '.runs[] | select(.workflow == "pill") | .status' | head -n 1)" suspended
run "$rival" exec pill.yaml --run-id m1a --on-suspend abort
is "aborted if that was asked for" "$rc:$(jq_ .status)" "1:failed"
like "with the cause in its error" "$(jq_ '.error | .message, .cause.message' | tr '\n' ' ')" "suspended, and aborted: --on-suspend abort .*'it' was to blame"
run "$rival" exec pill.yaml --run-id m1b --on-suspend skip
is "what cannot be skipped stays suspended: exit code 4" "$rc" 4
run "$rival" exec pill.yaml --run-id m2 --on-suspend resume
is "resumed in vain: left suspended, exit code 4" "$rc:$(jq_ .status)" "4:suspended"
"$rival" exec pill.yaml --run-id m3 --on-suspend wait >m3.out 2>m3.err &
pid=$!
eventually grep -q "^suspended:" m3.err
kill -INT $pid
wait $pid
is "waiting for a decision, and Ctrl-C: exit code 4" $? 4
is "with the run as it is" "$(jq -r .status m3.out)" suspended
cd ..

# What a run detached is waited for.
cat >detached.yaml <<'YAML'
name: detached
steps:
  - later: { concurrent: { slow: { command: [sh, -c, "sleep 0.5; echo late >>did"] } }, continueOn: detached }
  - end: { value: 1 }
YAML
run "$rival" exec detached.yaml --json
is "detached children are waited for" "$rc:$(cat did)" "0:late"
rm -f did

# C: a file of its own, and functions for a YAML file beside it.
export XDG_CACHE_HOME=$tmp/cache
mkdir c && cd c || exit 1
run "$rival" new greet --c
sed -i 's/RV_DELAY(2000/RV_DELAY(1/' greet.c
run "$rival" exec greet.c --json
is "a C file" "$rc:$(jq_ '.results.greet.result.who + ", " + .results.say.state.description')" "0:world, said hello to world"
cache=$XDG_CACHE_HOME/rival
touch -d '2 hours ago' "$cache/new-killed.i" && touch "$cache/new-atwork.i" && touch -d '31 days ago' "$cache/unused.so"
run "$rival" exec greet.c --json
is "what a killed one left in the cache goes" "$(cd "$cache" && echo new-* unused.so)" "new-atwork.i unused.so"
for i in $(seq 256); do : >"$cache/used$i.so"; done
run "$rival" exec greet.c --json
is "and, when it is large, what nobody asks for" "$(cd "$cache" && ls unused.so used*.so 2>/dev/null | wc -l)" 256
printf 'name: calls\nsteps:\n  - greet: { call: greet }\n' >calls.yaml
run "$rival" exec calls.yaml --json --input '{"who": "you"}' --run-id c1
is "a function of a C file beside it" "$rc:$(jq_ .results.greet.result.who)" "0:you"
echo 'int x = ;' >greet.c
run "$rival" exec calls.yaml --json --run-id c1
is "of a run that has ended nothing is compiled" "$rc:$err" "0:"
echo 'int x = ;' >wrong.c
run "$rival" exec wrong.c
is "C that does not compile: exit code 2" "$rc:$out" "2:"
like "as the compiler says it" "$err" "wrong.c:1:9: error: expected expression"
cd ..

# Environment: only what is allowed.
printf 'name: env\nsteps:\n  - it: { value: "${ .env.SECRET }" }\n' >env.yaml
SECRET=s run "$rival" exec env.yaml --json
is "expressions do not see the environment" "$(jq_ .results.it.result)" null
SECRET=s run "$rival" exec env.yaml --json --allow-env HOME,SECRET
is "but what is allowed" "$(jq_ .results.it.result)" s

# Expressions have a limit of CPU time.
printf 'name: slow\nsteps:\n  - it: { value: "${ last(range(1e18)) }" }\n' >slow.yaml
run "$rival" exec slow.yaml --json --eval-time 200ms
is "an expression that does not end fails" "$rc:$(jq_ .status)" "1:failed"
like "and names its limit" "$(jq_ .error.message)" "longer than the 200 ms of CPU time it may"
run "$rival" exec slow.yaml --eval-time soon
is "a time that is none: exit code 2" "$rc" 2

# On a terminal; each has a server of its own, since one that ends may still be there for the next.
terminals=0
on_terminal() { # columns, rows, shell command
    cleanup
    terminals=$((terminals + 1))
    terminal=(tmux -S "$tmp/tmux$terminals" -f /dev/null)
    "${terminal[@]}" new-session -d -x "$1" -y "$2" "$3; echo \"exit=\$?\"; sleep 60"
}
cleanup() { [ "$terminals" = 0 ] || "${terminal[@]}" kill-server 2>/dev/null; }
terminal_shows() { "${terminal[@]}" capture-pane -p | grep -qE "$1"; }
{
    printf 'name: big\nsteps:\n'
    for i in $(seq 12); do printf '  - before%s: { value: %s }\n' "$i" "$i"; done
    cat <<'YAML'
  - each:
      forEach: "${ [range(200)] }"
      run: [ { work: { command: [sh, -c, "echo at ${ .loop.index } >&2; test ${ .loop.index } -lt 199 || while ! test -e go; do sleep 0.05; done"] } } ]
YAML
    for i in $(seq 16); do printf '  - after%s: { value: %s }\n' "$i" "$i"; done
} >big.yaml
on_terminal 80 20 "LC_ALL=C.UTF-8 '$rival' exec big.yaml --run-id t1 >t1.out"
eventually terminal_shows 'work: at 199'
screen=$("${terminal[@]}" capture-pane -p)
like "live: the run" "$screen" '^big  t1  [0-9.ms]+'
like "what is finished is one line" "$screen" '^… 12 finished$'
like "iterations that went well are counted" "$screen" 'each .* 199 completed'
like "the one that runs is shown" "$screen" '^    .+ work '
like "what is to come, as far as there is room" "$screen" '^… [0-9]+ to come$'
like "the tail of the log" "$screen" '^│ each:iter199:node0:work: at 199$'
is "and it fits the screen" "$(printf '%s\n' "$screen" | grep -c '^big  t1')" 1
like "with colours" "$("${terminal[@]}" capture-pane -p -e)" "$esc\[[0-9;]*m"
"${terminal[@]}" resize-window -x 40 -y 10
once() { [ "$("${terminal[@]}" capture-pane -p | grep -c 'big  t1')" = 1 ]; }
ok "smaller: it is drawn anew" eventually once
"${terminal[@]}" resize-window -x 100 -y 40
touch go
eventually terminal_shows 'exit=0'
screen=$("${terminal[@]}" capture-pane -p)
like "it ends as a record" "$screen" '^✓ after16 '
like "with a last line" "$screen" '^big completed after '
# What a terminal got back from above when it grew is not ours.
unlike "without what moves" "$(printf '%s\n' "$screen" | sed -n '/^✓ before1 /,$p')" '⠋|⠙|⠹|to come'
rm -f go

on_terminal 100 30 "LC_ALL=C NO_COLOR=1 '$rival' exec big.yaml --run-id t2"
eventually terminal_shows 'iter199'
unlike "NO_COLOR: none" "$("${terminal[@]}" capture-pane -p -e)" "$esc\[[0-9;]*3[0-9]m"
unlike "an ASCII locale: nothing else" "$("${terminal[@]}" capture-pane -p | tr -d '\n' | LC_ALL=C grep -o '[^ -~]')" .
"${terminal[@]}" send-keys C-c
eventually terminal_shows 'exit='
screen=$("${terminal[@]}" capture-pane -p)
like "Ctrl-C in a terminal: how to go on" "$screen" '^to continue: rival exec big.yaml --run-id t2'
like "and its exit code" "$screen" '^exit=130'
touch go

on_terminal 100 30 "LC_ALL=C.UTF-8 '$rival' exec pill/pill.yaml --run-id t3 >/dev/null"
eventually terminal_shows '\[r/a/i/q\]'
"${terminal[@]}" send-keys i Enter
eventually terminal_shows 'signal 6'
ok "suspended in a terminal: it asks, and shows the log" terminal_shows 'signal 6'
"${terminal[@]}" send-keys q Enter
eventually terminal_shows 'exit='
like "quit leaves it suspended" "$("${terminal[@]}" capture-pane -p)" '^exit=4'

# Which build of a C file an attempt ran.
mkdir module && cd module || exit 1
mod() { printf '#include <rival/rival.h>\nstatic int one(rv_ctx *c) { return rv_return(c, "i", %s); }\nRV_WORKFLOW("mod", .steps = RV_STEPS(RV_STEP(one)))\n' "$1" >mod.c; }
hash_of() { "$rival" show "$1" --json | jq -r '.nodes[0].module'; }
printf 'name: calls\nsteps:\n  - it: { call: one }\n  - not: { value: 1 }\n' >calls.yaml
mod 1
"$rival" exec mod.c --run-id m1 >/dev/null 2>&1
like "an attempt has the hash of its module" "$(hash_of m1)" '^[0-9a-f]{16}$'
first=$(hash_of m1)
"$rival" exec calls.yaml --run-id c1 >/dev/null 2>&1
is "so has one that calls it" "$(hash_of c1)" "$first"
is "and no other" "$("$rival" show c1 --json | jq -r '.nodes[1].module')" null
mod 2
"$rival" exec mod.c --run-id m2 >/dev/null 2>&1
is "another build is another" "$(hash_of m1) $([ "$(hash_of m2)" != "$first" ] && echo differs)" "$first differs"
"$rival" serve mod.c --listen 127.0.0.1:0 >url 2>/dev/null &
served=$!
eventually test -s url
is "the API tells it with each attempt" \
    "$(curl -s "$(cat url)/api/v1/runs/m1/node?path=one" | jq -r '.attempts[0].module')" "$first"
is "and a remote show" "$("$rival" show m1 --server "$(cat url)" --json | jq -r '.nodes[0].module')" "$first"
kill $served
wait $served
cd ..

# ------------------------------------------------------------------------------- a store in memory
mkdir memory && cd memory || exit 1
cat >kept.yaml <<'YAML'
name: kept
steps:
  - once: { command: [sh, -c, "test $RIVAL_ATTEMPT = 2"], maxAttempts: 2, backoffBaseMs: 1 }
  - each: { forEach: [1, 2], parallel: true, run: [ { it: { value: "${ .loop.item }" } } ] }
YAML
printf 'stages: { s: [ { name: a, agent_id: no, critical: true } ] }\nagents: [ { id: no, command: ["false"] } ]\n' >stuck.yaml
run "$rival" exec kept.yaml --store :memory: --run-id r1
is "a store in memory is one" "$rc $(jq_ '[.status, (.results.each.result.iterations | length)] | join(" ")')" "0 completed 2"
run "$rival" run kept --wait --store :memory: --run-id r1
is "that nothing was kept in" "$rc $(jq_ '.runId + " " + .status')" "0 r1 completed"
run "$rival" run kept --store :memory:
like "a run that nobody would drive is refused" "$rc $err" "^2 rival: no other process can use a store in memory"
run "$rival" exec stuck.yaml --store :memory:
like "one that is left is gone, which is said" "$rc $err" "the store was in memory: the run cannot be continued"
unlike "… without a way to continue" "$err" "to (decide and )?continue:"
"$rival" serve . --store :memory: --listen 127.0.0.1:0 >url 2>/dev/null &
served=$!
eventually test -s url
curl -s -X POST "$(cat url)/api/v1/workflows/kept/runs" -H 'Content-Type: application/json' -d '{"runId": "h1"}' >/dev/null
is "a server has one too" "$(curl -s "$(cat url)/api/v1/runs/h1/wait" | jq -r .status)" completed
kill $served
wait $served
is "no file was made" "$(find . -name '*memory*' | wc -l)" 0
cd ..

done_testing
