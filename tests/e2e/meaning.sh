#!/usr/bin/env bash
# meaning.sh: commands that change a run mean exactly one; a store that cannot be written is told, not waited for.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
pid=
locker=
cleanup() { [ -z "$pid$locker" ] || kill -9 $pid $locker 2>/dev/null; }
cat >wait.yaml <<'YAML'
name: wait
steps:
  - answer: { signal: go }
YAML
cat >later.c <<'C'
#include <rival/rival.h>
static int pay(rv_ctx *c) { return rv_return_pending(c, "pay-7"); }
RV_WORKFLOW("later", .steps = RV_STEPS(RV_STEP(pay)))
C
cat >lock.py <<'PY'
import signal, sqlite3
db = sqlite3.connect("rival.db", isolation_level=None)
db.execute("BEGIN IMMEDIATE")
open("locked", "w").close()
signal.pause()
PY
begin() { # ID FILE: driven in the background until it waits
    "$rival" exec "$2" --run-id "$1" >"$1.out" 2>"$1.err" </dev/null &
    pid=$!
    waits() { "$rival" why "$1" --store rival.db | grep -q waits; }
    eventually waits "$1"
}
leave() {
    kill -INT "$pid"
    wait "$pid" 2>/dev/null
    pid=
}

# ------------------------------------------------------------------------------------------ exact ids

begin order-1 wait.yaml
is "a run that is driven is not marked" "$("$rival" list | grep -c 'nobody drives it')" 0
for what in "cancel order" "signal order go" "decide order abort" "complete order h 1"; do
    run "$rival" $what # words
    is "$what: the beginning of an id will not do" "$rc:$out" "1:"
    like "and the whole one is told" "$err" "needs the whole id; these match: order-1"
done
run "$rival" show order --json
is "to look, it will" "$rc:$(printf '%s' "$out" | jq -r .runId)" "0:order-1"
leave

# --------------------------------------------------------------------------------- nobody drives it

like "list marks a run that nobody drives" "$("$rival" list)" "order-1 .*running .*nobody drives it"
is "also as JSON" "$("$rival" list --json | jq -r '.runs[0] | "\(.status) \(.driven)"')" "running false"
like "so does show" "$("$rival" show order-1 | head -n 1)" "running  \(nobody drives it\)"
like "and why says what to do" "$("$rival" why order-1)" "^nobody drives it; this run continues when a process does:"

# ------------------------------------------------------------------------------------------- handles

begin late-1 later.c
like "why names the handle, and what to type" "$("$rival" why late-1)" "=> rival complete late-1 pay-7"
run "$rival" complete late-1 pay-8 1
is "another handle is refused" "$rc" 1
run "$rival" complete late-1 pay-7 1 --error no
is "a result and an error: exit code 2" "$rc" 2
run "$rival" complete late-1 pay-7 '{"paid": true}'
is "the result is delivered" "$rc:$out" "0:completed a step of late-1"
wait "$pid"
is "and the run goes on" "$?:$(jq -c .results.pay.result late-1.out)" '0:{"paid":true}'
begin late-2 later.c
run "$rival" complete late-2 pay-7 --error "card declined"
is "or the failure" "$rc:$out" "0:failed a step of late-2"
wait "$pid"
is "with its message" "$?:$(jq -r .error.message late-2.out)" "1:card declined"
pid=
"$rival" serve . --listen 127.0.0.2:0 --log-format json >serve.out 2>serve.log </dev/null &
pid=$!
eventually grep -q '"serving"' serve.log
url=$(head -n 1 serve.out)
export http_proxy=http://127.0.0.1:9 # where nobody is
run "$rival" list --server "$url"
is "a server elsewhere is reached by the proxy" "$rc" 1
for name in no_proxy NO_PROXY; do
    run env "$name=127.0.0.2" "$rival" list --server "$url"
    is "unless $name names it" "$rc" 0
done
unset http_proxy
"$rival" run later --run-id late-3 --server "$url" >/dev/null
parked() { "$rival" why late-3 --server "$url" | grep -q pay-7; }
eventually parked
run "$rival" complete late-3 pay-7 '[1]' --server "$url"
is "by a server, too" "$rc:$out" "0:completed a step of late-3"
is "which the run has" "$("$rival" wait late-3 --server "$url" | jq -c .results.pay.result)" '[1]'

# ---------------------------------------------------------------------- a store that cannot be written

python3 lock.py &
locker=$!
eventually test -f locked
curl -sS -m 60 -X POST -d '{}' "$url/api/v1/workflows/wait/runs" >/dev/null 2>&1 & # waits for it
asks=$!
refuses() { "$rival" list --store rival.db 2>&1 >/dev/null | grep -q "the runs here do not continue: .*locked"; }
ok "list tells that the store cannot be written, and why" eventually refuses
like "so does show" "$("$rival" show order-1 --store rival.db 2>&1 >/dev/null)" "the runs here do not continue: .*locked"
like "and why" "$("$rival" why order-1 --store rival.db 2>&1 >/dev/null)" "the runs here do not continue: .*locked"
like "also by the server" "$("$rival" list --server "$url" 2>&1 >/dev/null)" "the runs here do not continue: the store cannot be written"
kill -9 "$pid" "$asks"
wait "$pid" "$asks" 2>/dev/null
pid=
for what in "exec wait.yaml --run-id new" "cancel order-1" "signal order-1 go"; do
    SECONDS=0
    run timeout 60 "$rival" $what # words
    is "${what%% *} of a store that stays locked is an error" "$rc" 1
    ok "within seconds ($SECONDS)" [ "$SECONDS" -le 20 ]
    like "with the reason" "$err" "locked by another program"
    like "and that nothing was changed" "$err" "nothing was changed"
done
kill "$locker"
wait "$locker" 2>/dev/null
locker=
is "nor was it" "$("$rival" list --json | jq -r '[.runs[] | select(.runId == "new")] | length')" 0
done_testing
