#!/usr/bin/env bash
# worker-members.sh: several servers share a store; a worker, in Python or TypeScript, that is given the address of one connects to all
# of them, also to one that comes later, and stays when the one that it was given goes. A TypeScript program may start its own member.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
cd "$tmp" || exit 1
. "$here/database.sh"
printf 'worker worker-token-0123456789 w1\nadmin admin-token-0123456789a\n' >tokens
chmod 600 tokens
mkdir none

# Each has a folder for its socket, as on a machine of its own.
member() { # number
    mkdir -p -m 700 "run$1"
    XDG_RUNTIME_DIR=$tmp/run$1 "$rival" serve none --store "$store" --lease 5s --grace 100ms --listen 127.0.0.1:0 --token-file tokens \
        --workers 127.0.0.1:0 --workers-url tcp://127.0.0.1:0 --log-format json >"url$1" 2>"err$1" &
    eval "pid$1=$!"
    pids="$pids $!"
    eventually grep -q '"serving"' "err$1" || return 1
    eval "port$1=$(jq -r 'select(.message == "listening for workers" or .msg == "listening for workers") | .port' "err$1")"
    eval "url$1=$(cat "url$1")"
}
url() { eval "echo \$url$1"; }
export RIVAL_TOKEN=admin-token-0123456789a
connected() { # member, connections
    [ "$(curl -s -H "Authorization: Bearer $RIVAL_TOKEN" "$(url "$1")/api/v1/workers" | jq '.connections | length')" = "$2" ]
}
runs() { # member, workflow
    [ "$("$rival" run "$2" --server "$(url "$1")" --wait --json </dev/null | jq -r .status)" = completed ]
}
member 1
member 2
run "$rival" members --server "$url1" --json
is "members say where workers reach them" "$(printf '%s' "$out" | jq -c '[.members[].workers] | sort')" \
    "$(printf '%s\n' "$port1" "$port2" | jq -cR '"tcp://127.0.0.1:" + .' | jq -cs sort)"

RIVAL_WORKER_TOKEN=worker-token-0123456789 python3 "$RIVAL_SOURCE/examples/python/rival_worker.py" "tcp://127.0.0.1:$port1" >python.out 2>&1 </dev/null &
python=$!
pids="$pids $python"
for i in 1 2; do ok "the worker in Python comes to member $i" eventually connected $i 1; done
for i in 1 2; do ok "and serves its runs" runs $i tree; done

cat >worker.mjs <<JS
import { createWorkflow, rival } from "$RIVAL_SOURCE/sdk/node/dist/index.js";
const engine = rival({ url: process.argv[2], token: "admin-token-0123456789a", workerToken: "worker-token-0123456789" },
  createWorkflow("node").step("greet", () => "hello").build());
await engine.ready();
process.stdin.resume();
JS
node worker.mjs "$url2" >node.out 2>&1 < <(sleep 600) &
node=$!
pids="$pids $node"
for i in 1 2; do ok "the worker in TypeScript comes to member $i" eventually connected $i 2; done
for i in 1 2; do ok "and serves its runs" runs $i node; done

member 3
ok "a member that comes later has them, too" eventually connected 3 2
for w in tree node; do ok "and its runs are served" runs 3 $w; done

kill $pid1
wait $pid1
run "$rival" members --server "$url2" --json
is "the member that one of them was given goes" "$(printf '%s' "$out" | jq '.members | length')" 2
for w in tree node; do ok "the others are served all the same" runs 2 $w; done
for i in 2 3; do ok "and keep both" connected $i 2; done

mkdir -m 700 run4
cat >own.mjs <<JS
import { createWorkflow, rival } from "$RIVAL_SOURCE/sdk/node/dist/index.js";
const engine = rival({ store: process.argv[2], bin: process.argv[3] }, createWorkflow("own").step("greet", () => "hello").build());
const { runId } = await engine.run("own", undefined, "own-1");
const { status, results } = await engine.wait("own", runId);
console.log(status, results.greet.result);
await engine.close();
JS
run env XDG_RUNTIME_DIR="$tmp/run4" node own.mjs "$store" "$rival"
is "a TypeScript program with the store's address has an engine that is a member" "$rc:$out" "0:completed hello"
is "another member has its run" "$("$rival" show own-1 --server "$url2" --json | jq -r .status)" completed
done_testing
