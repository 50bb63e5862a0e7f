#!/usr/bin/env bash
# keep.sh: runs as files, stores as files, and what goes: export, import, backup, retain.
. "$(dirname "$0")/tap.sh"
unset NO_COLOR
cd "$tmp" || exit 1
jq_() { printf '%s' "$out" | jq -r "$1"; }
pids=""
cleanup() { for p in $pids; do kill -9 "$p" 2>/dev/null; done; }

cat >waits.yaml <<'YAML'
name: waits
steps:
  - once: { command: [sh, -c, "echo ran >> once.txt; echo said >&2; echo '{\"n\": 7}'"] }
  - each: { forEach: [1, 2, 3], run: [ { twice: { value: "${ .loop.item * 2 }" } } ] }
  - nap: { delay: 10s }
  - after: { value: "${ .steps.once.result.n }" }
YAML
cat >retries.yaml <<'YAML'
name: retries
steps:
  - flaky: { command: [sh, -c, "echo $RIVAL_ATTEMPT >> flaky.txt; test $RIVAL_ATTEMPT -ge 2"], maxAttempts: 3, backoffBaseMs: 5000 }
YAML
cat >signals.yaml <<'YAML'
name: signals
steps:
  - go: { signal: go }
YAML

# In a delay: exported beside the process that drives it, which then dies.
"$rival" exec waits.yaml --run-id d --store a.db >/dev/null 2>&1 &
pid=$! pids="$pids $pid"
in_nap() { "$rival" why d --store a.db | grep -q "waits for its time"; }
ok "a run comes to its delay" eventually in_nap
run "$rival" export d d.jsonl --store a.db
is "it is exported while another process drives it" "$rc:$out" "0:"
like "and that is said" "$err" '^exported d to d.jsonl$'
is "only its owner may read it" "$(stat -c %a d.jsonl)" 600
is "the first line says what it is" "$(head -1 d.jsonl | jq -r '.rival | [.format, .runId, .workflow, .status] | map(tostring) | join("|")')" "1|d|waits|running"
is "each line is JSON" "$(jq -c 'keys[0]' d.jsonl | sort | uniq -c | awk '{print $2}' | xargs)" "definition end log rival run turn"
run "$rival" export d d.jsonl --store a.db
is "a file that is there stays" "$rc" 1
like "and how to replace it is said" "$err" '\-\-force replaces it'
ok "with --force it gives way" "$rival" export d d.jsonl --store a.db --force
"$rival" export d --store a.db >d2.jsonl
is "on stdout it is the same" "$(sed 's/"exportedAt":[0-9]*//; /"end":/d' d2.jsonl)" "$(sed 's/"exportedAt":[0-9]*//; /"end":/d' d.jsonl)"
run "$rival" backup live.db --store a.db
is "the store is backed up meanwhile" "$rc" 0
{ kill -9 "$pid"; wait "$pid"; } 2>/dev/null
run "$rival" import d.jsonl --store b.db --json
is "it is imported elsewhere" "$rc:$(jq_ .status)" "0:running"
is "into a store that is made, and nothing beside it" "$(echo b.db*)" "b.db"
run "$rival" show d --store b.db --json
is "where it was" "$(jq_ '.nodes | map(.alias + ":" + .status) | join(",")')" "once:completed,each:completed,nap:running,after:pending"
run "$rival" import d.jsonl --store b.db
is "a second time it is refused" "$rc" 1
like "for what" "$err" "there is a run 'd' already"
run "$rival" exec waits.yaml --run-id d --store b.db --json
is "and goes on to its end" "$rc:$(jq_ '[.status, .results.after.result, .results.each.result.iterations[2].results.twice.result] | map(tostring) | join("|")')" "0:completed|7|6"
is "what was done was not done again" "$(cat once.txt)" ran
run "$rival" logs d --store b.db
like "its log came along" "$out" 'once  said$'
run "$rival" exec waits.yaml --run-id d --store live.db --json
is "the backup goes on too" "$rc:$(jq_ .status)" "0:completed"
run "$rival" exec waits.yaml --run-id d --store a.db --json
is "and the first one" "$rc:$(jq_ .status)" "0:completed"

# Completed: through a pipe, and the same in all that is told.
"$rival" export d --store b.db | "$rival" import - --store c.db >/dev/null
is "an export is piped into an import" "${PIPESTATUS[*]}" "0 0"
for what in show logs; do
    is "the same to $what" "$("$rival" $what d --store c.db --json)" "$("$rival" $what d --store b.db --json)"
done
ok "a pipe by its name" bash -c "'$rival' import <('$rival' export d --store b.db) --store pipe.db"

# In a retry wait.
"$rival" exec retries.yaml --run-id r --store a.db >/dev/null 2>&1 &
pid=$! pids="$pids $pid"
in_retry() { "$rival" why r --store a.db --json | jq -r '.waits[0].reason' | grep -qx retry; }
ok "a run comes to its retry wait" eventually in_retry
"$rival" export r r.jsonl --store a.db 2>/dev/null
{ kill -9 "$pid"; wait "$pid"; } 2>/dev/null
"$rival" import r.jsonl --store b.db >/dev/null
run "$rival" exec retries.yaml --run-id r --store b.db --json
is "elsewhere its next attempt is the second" "$rc:$(xargs <flaky.txt)" "0:1 2"

# Suspended, by a step that kills its process each time.
cat >dies.c <<'C'
#include <stdlib.h>
#include <rival/rival.h>
static int die(rv_ctx *c)
{
    (void)c;
    abort();
}
RV_WORKFLOW("dies", .steps = RV_STEPS(RV_STEP(die)))
C
"$rival" exec dies.c --run-id x --store a.db --on-suspend wait >/dev/null 2>&1 &
pid=$! pids="$pids $pid"
suspended() { "$rival" why x --store a.db --json | jq -r .status | grep -qx suspended; }
ok "a run is suspended" eventually suspended
"$rival" export x x.jsonl --store a.db 2>/dev/null
{ kill -9 "$pid"; wait "$pid"; } 2>/dev/null
run "$rival" import x.jsonl --store b.db
is "elsewhere it is so too" "$out" "imported x (suspended)"
is "for the same reason" "$("$rival" why x --store b.db --json | jq -c '[.status, .waits[0].cause]')" "$("$rival" why x --store a.db --json | jq -c '[.status, .waits[0].cause]')"
run "$rival" decide x abort --store b.db
run "$rival" wait x --store b.db --timeout 60s
is "and is decided there" "$rc:$(jq_ .status)" "1:failed"

# Waiting for a signal.
"$rival" exec signals.yaml --run-id s --store a.db >/dev/null 2>&1 &
pid=$! pids="$pids $pid"
in_signal() { "$rival" why s --store a.db | grep -q "signal 'go'"; }
ok "a run comes to its signal" eventually in_signal
"$rival" export s s.jsonl --store a.db 2>/dev/null
{ kill -9 "$pid"; wait "$pid"; } 2>/dev/null
"$rival" import s.jsonl --store b.db >/dev/null
run "$rival" signal s go '{"by":"kim"}' --store b.db
run "$rival" exec signals.yaml --run-id s --store b.db --json
is "elsewhere it takes its signal" "$rc:$(jq_ .results.go.result.by)" "0:kim"

# Bad files.
refuse() { # says pattern
    run "$rival" import bad.jsonl --store bad.db
    is "$1 is refused" "$rc" 1
    like "and why is said" "$err" "$2"
    is "and nothing is left behind, not even a store" "$(echo bad.db*)" "bad.db*"
    run "$rival" import bad.jsonl --store b.db
    is "nor comes it into a store that is there" "$rc:$("$rival" list --store b.db --json | jq '.runs | length')" "1:$runs"
}
runs=$("$rival" list --store b.db --json | jq '.runs | length')
head -c -1 d.jsonl >bad.jsonl && refuse "a file that lost its last byte" "cut off"
head -n -1 d.jsonl >bad.jsonl && refuse "a file that lost its last line" "incomplete"
sed 's/"n": 7/"n": 8/' d.jsonl >bad.jsonl && refuse "an altered file" "the file was altered"
sed 's/"format":1/"format":99/' d.jsonl >bad.jsonl && refuse "a file of a newer version" "format 99, this program knows 1"
: >bad.jsonl && refuse "an empty file" "it is empty"
head -c 100000 /dev/urandom >bad.jsonl && refuse "a file of noise" "line 1"
run "$rival" import nowhere.jsonl --store bad.db
like "a file that is not there" "$err" "cannot read 'nowhere.jsonl'"
is "makes no store either" "$(echo bad.db*)" "bad.db*"
run "$rival" export nobody --store b.db
is "a run that is not there" "$rc" 1

# A large run; a process that is killed in the midst leaves all or nothing.
cat >many.yaml <<'YAML'
name: many
steps:
  - each: { forEach: "${ [range(3000)] }", parallel: true, run: [ { item: { value: "${ .loop.item }" } } ] }
YAML
"$rival" exec many.yaml --run-id m --store m.db --json >m.out 2>&1
"$rival" export m m.jsonl --store m.db 2>/dev/null
halves=0
for i in 1 2 4 6 8; do
    rm -f k.db*
    "$rival" import m.jsonl --store k.db >/dev/null 2>&1 &
    pid=$! pids="$pids $pid"
    sleep "0.0$i"
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    "$rival" import m.jsonl --store k.db >/dev/null 2>k.err || grep -q "there is a run 'm' already" k.err || halves=$((halves + 1))
    [ "$("$rival" show m --store k.db --json | jq '.nodes[0].children | length')" = 3000 ] ||
        [ "$("$rival" exec many.yaml --run-id m --store k.db --json)" = "$(cat m.out)" ] || halves=$((halves + 1))
    rm -f killed.db*
    "$rival" backup killed.db --store m.db >/dev/null 2>&1 &
    pid=$! pids="$pids $pid"
    sleep "0.0$i"
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    [ ! -e killed.db ] || "$rival" list --store killed.db >/dev/null || halves=$((halves + 1))
done
is "killed imports and backups leave all or nothing" "$halves" 0
rm -f killed.db.partial-* k.db.partial-* # what is killed cannot tidy up
"$rival" import m.jsonl --store two.db >one.out 2>&1 &
a=$!
"$rival" import d.jsonl --store two.db >other.out 2>&1 &
b=$!
wait $a; ra=$?
wait $b; rb=$?
is "of two imports at once each is done, or told who is there" "$(( ra + rb <= 1 ))" 1
"$rival" backup same.db --store m.db 2>/dev/null &
a=$!
"$rival" backup same.db --store m.db 2>/dev/null &
b=$!
wait $a; ra=$?
wait $b; rb=$?
is "of two backups to one file one is told that it is there" "$(( ra + rb ))" 1
is "and no part of one is left" "$(ls | grep -c partial)" 0
run "$rival" backup same.db --store m.db
like "--force is named" "$err" '\-\-force replaces it'
run "$rival" backup same.db --store m.db --force --json
is "and replaces it" "$rc:$(jq_ '.bytes > 0')" "0:true"
run "$rival" backup nowhere/x.db --store m.db
is "where nothing can be made" "$rc" 1
run "$rival" backup x.db --store none.db
is "of no store" "$rc" 1
if [ -c /dev/full ]; then
    "$rival" export m --store m.db >/dev/full 2>full.err
    like "a full disk behind stdout" "$?:$(cat full.err)" "^1:rival: cannot write all of the output"
fi

# What goes.
printf 'name: quick\nsteps:\n  - one: { value: 1 }\n' >quick.yaml
for i in 1 2 3 4 5; do "$rival" exec quick.yaml --run-id w$i --store ret.db >/dev/null 2>&1; done
left=$("$rival" list --store ret.db --json | jq '.runs | length')
run "$rival" retain --store ret.db
is "retain wants a bound" "$rc" 2
run "$rival" retain --keep 0 --store ret.db
is "that is a number" "$rc" 2
run "$rival" retain --max-bytes 1X --store ret.db
is "or a size" "$rc" 2
run "$rival" retain --keep 2 --dry-run --store ret.db --json
is "--dry-run says how many would go" "$(jq_ '[.removed, .left, .dryRun] | map(tostring) | join("|")')" "$((left - 2))|2|true"
is "and removes none" "$("$rival" list --store ret.db --json | jq '.runs | length')" "$left"
run "$rival" retain --keep 2 --store ret.db --json
is "they go" "$(jq_ '[.removed, .left] | map(tostring) | join("|")')" "$((left - 2))|2"
is "but for the last" "$("$rival" list --store ret.db --json | jq -r '[.runs[].runId] | join(" ")')" "w5 w4"
run "$rival" retain --older-than 1h --store ret.db
like "none is that old" "$out" '^removed 0 runs, 2 stay; '
"$rival" exec signals.yaml --run-id held --store ret.db >/dev/null 2>&1 &
pid=$! pids="$pids $pid"
held() { "$rival" why held --store ret.db | grep -q "signal 'go'"; }
eventually held
run "$rival" retain --keep 1 --store ret.db
is "while another process drives the store, it cannot be done" "$rc" 1
like "and who that is is said" "$err" "held by process $pid"
{ kill -9 "$pid"; wait "$pid"; } 2>/dev/null
done_testing
