#!/usr/bin/env bash
# workers.sh: a worker in Python (examples/python) beside a server: it is killed, the server is killed, and every run
# completes, each step once where nobody died of it.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
server= worker=
cleanup() { for p in $server $worker; do kill -9 "$p" 2>/dev/null; done; }
serve() {
    "$rival" serve --store rival.db --listen 127.0.0.1:0 >server.out 2>server.err </dev/null &
    server=$!
}
work() {
    python3 "$RIVAL_SOURCE/examples/python/rival_worker.py" rival.db.sock >>worker.out 2>&1 </dev/null &
    worker=$!
}
why_says() { "$rival" why "$1" --store rival.db | grep -q "$2"; }
knows_tree() { "$rival" workflows --store rival.db | grep -q '^tree'; }
kill_hard() {
    kill -9 "$1"
    wait "$1" 2>/dev/null
}

serve
ok "a server listens beside its store" eventually test -S rival.db.sock
work
ok "a worker brings its workflow" eventually knows_tree
run "$rival" run tree -i '{"kind":"oak"}' --run-id a --store rival.db --wait --json
is "its steps run in the worker" "$(jq -c '[.status, .results.find.result, .results.chop.result]' <<<"$out")" \
    '["completed",{"treeId":"oak-123"},{"pieces":10,"of":"oak-123"}]'
is "they have a state" "$(jq -r .results.chop.state.description <<<"$out")" "chopped oak-123"
like "and logs" "$("$rival" logs a --store rival.db)" "looking for oak"
run "$rival" run tree -i '{"blunt":true}' --run-id b --store rival.db --wait --json
is "a step error says what to do" "$(jq -c '[.status, .failedStep, .error.message]' <<<"$out")" \
    '["failed","chop","the axe is blunt"]'

run "$rival" run tree -i '{"kind":"elm"}' --run-id bad --store rival.db
is "a worker judges inputs before a run exists" "$rc" 2
like "and says what is wrong, and where" "$err" "/kind.*must be oak, ash or yew"
url=$(head -1 server.out)
start() { curl -s -w '%{http_code}' "$url/api/v1/workflows/tree/runs" -d "$1"; }
is "by HTTP, too" "$(start '{"input":{"kind":"elm"},"runId":"bad"}' | sed 's/}422$/}/' | jq -c '[.status, .in, .violations]')" \
    '[422,"input",[{"path":"/kind","message":"must be oak, ash or yew"}]]'
run "$rival" show bad --store rival.db --json
is "there is no such run" "$rc" 1
run "$rival" run tree -i '{}' --run-id judged --store rival.db --wait --json
is "what it returns is the run's input" "$(curl -s "$url/api/v1/runs/judged" | jq -c .input)" '{"kind":"oak"}'
run "$rival" run tree -i '{}' --run-id judged --store rival.db --json
is "a start that is repeated is the same run" "$(jq -c . <<<"$out")" '{"runId":"judged","status":"completed"}'

kill_hard "$worker"
is "without its worker the schema judges, and the answer says so" \
    "$(start '{"input":{"kind":"elm"},"runId":"unjudged"}')" '{"runId":"unjudged","status":"running","validated":"schema"}202'
run "$rival" run tree -i '{}' --run-id unjudged2 --store rival.db --json
is "and so it is at the command line" "$(jq -r .validated <<<"$out")" schema
run "$rival" run tree -i '{}' --run-id unjudged3 --store rival.db
like "in words" "$err" "its worker is not connected"
run "$rival" run tree -i '{}' --run-id c --store rival.db
ok "without a worker a run waits, and why says so" eventually why_says c worker
work
run "$rival" wait c --store rival.db --json
is "and goes on when one comes" "$(jq -r .status <<<"$out")" completed

kill_hard "$server"
rm -f rival.db.sock
serve
run "$rival" run tree -i '{}' --run-id d --store rival.db # the worker comes back by itself
for _ in $(seq 100); do
    [ "$rc" = 0 ] && break
    sleep 0.2
    run "$rival" run tree -i '{}' --run-id d --store rival.db
done
run "$rival" wait d --store rival.db --json
is "a worker finds the next server" "$(jq -r .status <<<"$out")" completed

# Many runs, while the worker is killed again and again.
for i in $(seq 40); do
    "$rival" run tree -i '{}' --run-id "many$i" --store rival.db >/dev/null 2>&1
    if [ $((i % 8)) = 0 ]; then
        kill_hard "$worker"
        work
    fi
done
completed() { [ "$("$rival" list --store rival.db --workflow tree --limit 100 --json | jq '[.runs[] | select(.status == "completed")] | length')" = 47 ]; }
ok "all of them complete, and nobody is blamed" eventually completed
kill_hard "$worker"
worker=
kill "$server"
wait "$server"
is "the server ends as always" $? 0
server=
done_testing
