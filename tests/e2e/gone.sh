#!/usr/bin/env bash
# gone.sh: a store that is deleted or replaced while it is in use: nothing goes on as if it were recorded.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
pids=
cleanup() { for p in $pids; do kill -9 "$p" 2>/dev/null; done; }
ended() { ! kill -0 "$1" 2>/dev/null; }
cat >two.yaml <<'YAML'
name: two
steps:
  - first: { command: [sh, -c, "touch began; while [ ! -e go ]; do sleep 0.05; done"] }
  - second: { command: [touch, second] }
  - more: { signal: more }
YAML

for how in deleted replaced wal; do
    mkdir $how && cd $how || exit 1
    "$rival" exec ../two.yaml --run-id r --store s.db >out 2>err </dev/null &
    pid=$!
    pids="$pids $pid"
    ok "$how: the first step runs" eventually test -e ../began
    rm -f ../began
    case $how in
    deleted) rm s.db ;;
    replaced) cp s.db new && mv new s.db ;;
    wal) rm s.db-wal ;;
    esac
    touch ../go
    ok "$how: exec ends" eventually ended $pid
    wait $pid
    is "with a code of its own" "$?" 5
    like "and says why" "$(cat err)" "store .*s.db.* was deleted or replaced while this process used it"
    is "what would follow is not begun" "$(ls ../second second 2>/dev/null)" ""
    rm -f ../go
    cd ..
done

"$rival" serve two.yaml --store t.db --listen 127.0.0.1:0 2>serve.err &
pid=$!
pids="$pids $pid"
ok "a server" eventually grep -q serving serve.err
run "$rival" run two --run-id a --store t.db
is "takes runs" "$rc" 0
ok "which run" eventually test -e began
mv t.db elsewhere.db
ok "it ends, though it has nothing to write" eventually ended $pid
wait $pid
is "with that code as well" "$?" 5
like "and its reason" "$(cat serve.err)" "the store is gone.*deleted or replaced"
done_testing
