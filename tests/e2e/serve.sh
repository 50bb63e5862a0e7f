#!/usr/bin/env bash
# serve.sh: rival serve: all runs of a store, its files as they change, its end.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
pid=
cleanup() { [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; }
jq_() { printf '%s' "$out" | jq -r "$1"; }
said() { # a jq condition on a line of the log
    jq -e -n "[inputs | select($1)] | length > 0" log >/dev/null 2>&1
}
count_said() { jq -n "[inputs | select($1)] | length" log; }
serve() { # ARGS...: until it is ready
    : >log
    "$rival" serve --listen none "$@" >serve.out 2>log </dev/null &
    pid=$!
    eventually said '.message == "serving"'
}
stop() { # SIGNAL: its exit code in $rc
    kill "-$1" "$pid"
    wait "$pid"
    rc=$?
    pid=
}

mkdir flows
cat >flows/hello.yaml <<'YAML'
name: hello
input: { type: object, required: [who], properties: { who: { type: string } } }
steps:
  - say: { value: "hello ${ .input.who }" }
YAML
cat >flows/approval.yaml <<'YAML'
name: approval
steps:
  - answer: { signal: approval }
  - then: { value: "by ${ .steps.answer.result.by }" }
YAML
cat >flows/work.yaml <<'YAML'
name: work
input: { type: object, properties: { ms: { type: string, default: "0.2" } } }
steps:
  - a: { command: [sh, -c, "echo $$ >../step; echo a >>../ran; sleep ${ .input.ms }; echo a-done >>../ran"] }
  - b: { command: [sh, -c, "echo b >>../ran"] }
YAML
printf 'name: broken\nsteps:\n  - a: { delay: soon }\n' >flows/broken.yaml

ok "it starts" serve flows --store s.db
run cat log
like "every line of its log is JSON" "$(jq -e -s 'length > 0' log)" true
ok "it says what it serves" said '.message == "serving" and .workflows == 3 and .store == "s.db" and .pid == '"$pid"
ok "a broken file is told with its place" said '.level == "error" and .file == "flows/broken.yaml" and .line == 3'
ok "and the good ones are served" said '.message == "workflow registered" and .workflow == "hello"'

# Runs, from other processes, by name: they need no files.
mkdir elsewhere && cd elsewhere || exit 1
run "$rival" run hello --input '{"who": "kim"}' --run-id h1 --store ../s.db
is "run begins one there" "$rc:$out" "0:h1"
run "$rival" wait h1 --store ../s.db
is "which it drives" "$rc:$(jq_ .results.say.result)" "0:hello kim"
run "$rival" run hello --run-id h2 --store ../s.db
is "a refused input: exit code 2" "$rc:$out" "2:"
like "with all that is wrong" "$err" "/who: is required"
run "$rival" run nobody --store ../s.db
is "an unknown name: exit code 2" "$rc" 2
like "and which there are" "$err" "registered: .*hello"
run "$rival" run hello --input '{"who": "kim"}' --run-id h1 --store ../s.db
is "the same start again is the same run" "$rc:$out" "0:h1"
run "$rival" run hello --input '{"who": "eve"}' --run-id h1 --store ../s.db
is "another one of that name is refused" "$rc" 2
run "$rival" run work --wait --json --run-id w1 --store ../s.db
is "run --wait waits for it" "$rc:$(jq_ .status)" "0:completed"
run "$rival" run approval --run-id p1 --store ../s.db
run "$rival" signal p1 approval '{"by": "ada"}' --store ../s.db
is "signal" "$rc:$out" "0:signalled p1"
run "$rival" wait p1 --store ../s.db
is "goes through" "$(jq_ .results.then.result)" "by ada"
cd .. || exit 1
ok "the log says when a run begins" said '.message == "run started" and .run == "p1" and .workflow == "approval"'
ok "and when it ends" eventually said '.message == "run completed" and .run == "p1"'
run "$rival" run work --run-id w2 --input '{"ms": "600"}' --store s.db
run "$rival" cancel w2 --store s.db
ok "a cancelled run" eventually said '.message == "run cancelled" and .run == "w2"'

run "$rival" workflows --store s.db --json
is "workflows says what it serves" "$(jq_ '[.workflows[].name] | sort | join(",")')" "approval,hello,work"
run "$rival" workflows --store s.db
like "also as a table" "$out" '^hello +flows/hello.yaml +who'

# One process drives a store.
run "$rival" serve flows --store s.db --listen none
is "a second one: exit code 1" "$rc" 1
like "is told who has it" "$err" "held by process $pid "

# Files are loaded again when told.
cat >flows/new.yaml <<'YAML'
name: new
steps: [ { it: { value: 1 } } ]
YAML
kill -HUP "$pid"
ok "SIGHUP loads the files again" eventually said '.message == "workflow registered" and .workflow == "new"'
is "what was broken is told once" "$(count_said '.file == "flows/broken.yaml"')" 1
rm flows/broken.yaml

# A name belongs to one file, over all paths that are served. It may move to another file.
mkdir more
printf 'name: new\nsteps:\n  - say: { value: "another" }\n' >more/again.yaml
printf 'name: twice\nsteps: [ { it: { value: 1 } } ]\n' >more/twice.yaml
cat >more/twice.c <<'C'
#include <rival/rival.h>
static int it(rv_ctx *c) { (void)c; return 0; }
RV_WORKFLOW("twice", .steps = RV_STEPS(RV_STEP(it)))
C
stop TERM
ok "a second path is served" serve flows more --store s.db
ok "a name that another file has is refused, with that file" said '.file == "more/again.yaml" and (.problem | test("already registered.*flows/new.yaml"))'
ok "and so is a second one in the same path, in C" said '.file == "more/twice.c" and (.problem | test("already registered.*more/twice.yaml"))'
sed -i 's/name: new/name: newer/' flows/new.yaml
kill -HUP "$pid"
ok "the other file gives the name up" eventually said '.message == "workflow registered" and .workflow == "newer"'
ok "and this one has it" eventually said '.message == "workflow changed" and .workflow == "new" and .file == "more/again.yaml"'
sed -i 's/name: newer/name: new/' flows/new.yaml
rm -r more
stop TERM
ok "back to one path" serve flows --store s.db

# It dies, and the next one goes on.
rm -f ran
run "$rival" run work --run-id w3 --input '{"ms": "0.5"}' --store s.db
ok "a step runs" eventually grep -q '^a$' ran
run "$rival" run approval --run-id p2 --store s.db
kill -9 "$pid"
wait "$pid" 2>/dev/null
ok "killed, it is started again" serve flows --store s.db --watch
ok "and says what it found" said '.message == "serving" and .running == 2 and .watching'
run "$rival" wait w3 --timeout 60s --store s.db
is "the run that was in a step goes on" "$rc:$(jq_ .status)" "0:completed"
run "$rival" signal p2 approval '{"by": "bob"}' --store s.db
run "$rival" wait p2 --timeout 60s --store s.db
is "and so does the one that waited" "$rc:$(jq_ .results.then.result)" "0:by bob"

# Watching.
run "$rival" run approval --run-id p3 --store s.db
sed 's/by \${/decided by ${/' flows/approval.yaml >flows/.approval.tmp
mv flows/.approval.tmp flows/approval.yaml
ok "a file that is replaced" eventually said '.message == "workflow changed" and .workflow == "approval"'
run "$rival" run approval --run-id p4 --store s.db
for id in p3 p4; do run "$rival" signal $id approval '{"by": "me"}' --store s.db; done
run "$rival" wait p3 --timeout 60s --store s.db
is "a run keeps the version it began with" "$(jq_ .results.then.result)" "by me"
run "$rival" wait p4 --timeout 60s --store s.db
is "a new one takes the new version" "$(jq_ .results.then.result)" "decided by me"
echo '  - oops: { delay: never }' >>flows/approval.yaml
ok "a broken edit is told" eventually said '.level == "error" and .file == "flows/approval.yaml" and .line == 5'
run "$rival" run approval --run-id p5 --store s.db
is "and changes nothing" "$rc" 0
mkdir -p flows/sub/deeper
printf 'name: late\nsteps: [ { it: { value: 1 } } ]\n' >flows/sub/deeper/late.yaml
ok "a file in a new folder" eventually said '.message == "workflow registered" and .workflow == "late"'
sed -i 's/name: late/name: later/' flows/sub/deeper/late.yaml
ok "another name in it" eventually said '.message == "workflow registered" and .workflow == "later"'
ok "and the old one goes" eventually said '.message == "workflow gone" and .workflow == "late"'
rm -r flows/sub
ok "a folder that is removed" eventually said '.message == "workflow gone" and .workflow == "later"'
run "$rival" run later --store s.db
is "cannot be run any more" "$rc" 2
mv flows moved && mkdir flows
ok "even all of it" eventually said '.message == "workflow gone" and .workflow == "hello"'
rmdir flows && mv moved flows
back() { [ "$(count_said '.message == "workflow registered" and .workflow == "hello"')" = 2 ]; }
ok "and back" eventually back

# The end: what runs may end, nothing new is begun, the rest is the next process's.
rm -f ran
run "$rival" run work --run-id w5 --input '{"ms": "0.5"}' --store s.db
ok "a step runs" eventually grep -q '^a$' ran
stop TERM
is "SIGTERM: exit code 0" "$rc" 0
is "the step has ended, and the next was not begun" "$(tr '\n' ' ' <ran)" "a a-done "
ok "it says so" said '.message | test("^stopping")'
is "the socket is gone" "$(ls s.db.sock 2>/dev/null)" ""
run "$rival" show w5 --store s.db --json
is "what it did is kept" "$(jq_ '.nodes | map(.alias + ":" + .status) | join(",")')" "a:completed,b:pending"
ok "started again" serve flows --store s.db --grace 100ms
run "$rival" wait w5 --timeout 60s --store s.db
is "it goes on" "$rc:$(tr '\n' ' ' <ran)" "0:a a-done b "
rm -f ran
run "$rival" run work --run-id w6 --input '{"ms": "600"}' --store s.db
ok "a step that takes long" eventually grep -q '^a$' ran
stop INT
is "is given up after the grace time, exit code 0" "$rc" 0
run "$rival" show w6 --store s.db --json
is "and is handed back" "$(jq_ '.status + " " + (.nodes[0].crashes // 0 | tostring)')" "running 0"
ok "started again" serve flows --store s.db
again() { [ "$(grep -c "^a$" ran)" = 2 ]; }
ok "it is attempted again" eventually again
kill -TERM "$pid"
ok "it waits for that step" eventually said '.message | test("^stopping")'
run "$rival" signal p5 approval --store s.db
is "while it is ending, nothing can be told" "$rc" 1
like "and it says why" "$err" "process $pid, which drives the store, is ending"
stop TERM
is "a second signal: at once" "$rc" 130
gone() { ! kill -0 "$(cat step)" 2>/dev/null; }
ok "and its command goes with it" eventually gone

# One that does not heed SIGTERM is not waited for: it is killed when the process goes.
cat >flows/deaf.yaml <<'YAML'
name: deaf
steps: [ { a: { command: [sh, -c, "trap '' TERM; echo $$ >../step; while :; do sleep 0.1; done"] } } ]
YAML
rm -f step
ok "started again" serve flows --store deaf.db --grace 100ms
run "$rival" run deaf --run-id d1 --store deaf.db
ok "a command that does not heed SIGTERM" eventually test -s step
stop TERM
is "does not hold it up: exit code 0" "$rc" 0
like "that it stopped is its last word" "$(tail -n 1 log)" '"stopped;.*"stepsLeft":1'
ok "and the command is killed with it" eventually gone
rm flows/deaf.yaml

# Without descriptors it does not spin, and is well when there are some again.
cat >"$tmp/starve.py" <<'PY'
import os, resource, socket, sys, time
pid = int(sys.argv[1])
def ticks():
    fields = open(f"/proc/{pid}/stat").read().split()
    return int(fields[13]) + int(fields[14])
limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
used = max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd")) + 1
resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, limits[1]))
callers = [socket.socket(socket.AF_UNIX) for _ in range(used + 3)]
for caller in callers:
    caller.connect("s.db.sock")
before = ticks()
time.sleep(1)
spent = ticks() - before
resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
print("calm" if spent < 10 else f"{spent} ticks")
PY
ok "started again" serve flows --store s.db
is "without descriptors it is calm" "$(python3 starve.py "$pid")" calm
run "$rival" run new --wait --json --store s.db
is "and with some again, well" "$rc:$(jq_ .status)" "0:completed"
stop TERM

# A manager of services is told; and so is everybody, when the store refuses.
cat >"$tmp/notified.py" <<'PY'
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("notify")
s.settimeout(30)
open("bound", "w").close()
print(s.recv(99).decode(), s.recv(99).decode())
PY
python3 notified.py >notified &
notified=$!
eventually test -e bound
export NOTIFY_SOCKET=$tmp/notify
ok "started by a manager of services" serve flows --store n.db
cat >"$tmp/lock.py" <<'PY'
import os, sqlite3, time
c = sqlite3.connect("n.db", isolation_level=None)
c.execute("BEGIN IMMEDIATE")
open("locked", "w").close()
while not os.path.exists("unlock"):
    time.sleep(0.02)
c.execute("ROLLBACK")
PY
python3 lock.py &
locker=$!
eventually test -e locked
"$rival" run new --store n.db --run-id late >late.out 2>&1 &
late=$!
ok "a store that refuses is told" eventually said '.level == "error" and (.message | test("the store cannot be written")) and (.why | test("locked"))'
: >unlock
wait $late
is "and nothing is lost" "$?:$(cat late.out)" "0:late"
ok "nor is it silent about the end of it" eventually said '.message == "the store works again"'
wait $locker
stop TERM
unset NOTIFY_SOCKET
wait $notified
is "the manager knows when it was ready, and when it stopped" "$(cat notified)" "READY=1 STOPPING=1"

run "$rival" workflows --store n.db
is "nobody serves: exit code 1" "$rc:$out" "1:"
like "and who would" "$err" "rival serve"

# How it is asked.
run "$rival" serve nowhere --store s.db
is "a folder that is not there: exit code 2" "$rc" 2
for bad in "--grace soon" "--log-level loud" "--retain-runs 0" "--retain-age old" "--log-format xml"; do
    run "$rival" serve flows --store s.db $bad
    is "$bad: exit code 2" "$rc" 2
done
ok "logs as text" eval '"$rival" serve flows --store t.db --listen none --log-format text >serve.out 2>text.log & pid=$!; eventually grep -q "INFO  serving  store=t.db" text.log'
stop TERM
mkdir empty && cd empty || exit 1
: >log
"$rival" serve --listen none --log-level debug 2>log &
pid=$!
ok "this folder, if none is named; also without workflows" eventually said '.message == "serving" and .workflows == 0'
stop TERM
# A store that another process holds for a moment, as `rival signal` does: serve waits for it.
python3 -c 'import fcntl, sys, time
lock = open("held.db.lock", "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(1)' >held.out &
holder=$!
ok "a store is held" eventually grep -q held held.out
ok "serve waits a moment for it" serve ../flows --store held.db
wait "$holder"
stop TERM
is "and serves it" "$rc" 0

# Whoever started it with a pipe as its input may die as it likes.
mkfifo input
: >log
"$rival" serve --listen none --stop-with-stdin 2>log <input &
pid=$!
sleep 600 >input &
holder=$!
ok "with --stop-with-stdin it serves while its input is open" eventually said '.message == "serving"'
kill -9 $holder
wait "$pid"
is "and ends in order when it is closed" "$?" 0
pid=
ok "saying why" said '.message | startswith("stopping")'
done_testing
