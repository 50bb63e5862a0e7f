#!/usr/bin/env bash
# remote.sh: the commands about runs, against a server: they print what they print about its store, follow
# what happens there, over a restart too, and say clearly when there is no server, or it refuses.
. "$(dirname "$0")/tap.sh"
unset RIVAL_STORE
server=
cleanup() { [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server"; }
mkdir "$tmp/flows" "$tmp/elsewhere" && cd "$tmp/elsewhere" || exit 1

cat >"$tmp/flows/order.yaml" <<'Y'
name: order
description: Wait for an approval, then ship
input: { type: object, required: [item], properties: { item: { type: string }, n: { type: integer } } }
steps:
  - check: { command: [sh, -c, 'echo "looking for $1" >&2', sh, "${ .input.item }"], description: "found ${ .input.item }" }
  - flaky: { command: [sh, -c, 'test "$RIVAL_ATTEMPT" -gt 1'], maxAttempts: 2, backoffBaseMs: 1 }
  - approval: { signal: { name: approved } }
  - each: { forEach: "${ [1, 2, 3] }", run: [ { one: { value: "${ .loop.item }" } } ] }
Y
cat >"$tmp/flows/leaver.yaml" <<'Y'
name: leaver
steps:
  - side: { concurrent: { late: { command: [sh, -c, 'until test -e go; do sleep 0.05; done'] } }, continueOn: detached }
Y
printf 'name: quick\nsteps: [ { a: { value: 7 } } ]\n' >"$tmp/flows/quick.yaml"

# start [OPTIONS]: a server on the same store; at the same port, once it has one.
port=0
start() {
    rm -f "$tmp/serve.log"
    "$rival" serve "$tmp/flows" --store "$tmp/s.db" --listen "127.0.0.1:$port" --log-format json "$@" \
        >/dev/null 2>"$tmp/serve.log" &
    server=$!
    eventually grep -q '"url"' "$tmp/serve.log" || { cat "$tmp/serve.log" >&2; exit 1; }
    export RIVAL_URL=$(jq -r 'select(.url) | .url' "$tmp/serve.log" | head -n1)
    port=${RIVAL_URL##*:}
}
stop() { kill "$server"; wait "$server"; server=; }
jq_() { printf '%s' "$out" | jq -r "$1"; }
start

# What can be run, and beginning it.
run "$rival" workflows
like "the server's workflows" "$out" '^order +.*/order.yaml +item +Wait for an approval, then ship$'
run "$rival" run order --input '{"n": 1.5}'
is "an input that is refused: exit code 2" "$rc:$out" "2:"
like "with all that is wrong" "$err" '^  /item: is required$'
like "each with its place" "$err" '^  /n: '
run "$rival" run nothing
is "of no workflow: exit code 2" "$rc" 2
like "and it says so" "$err" "nothing"
run "$rival" run order --input '{"item": "desk"}' --run-id order-1
is "a run begins" "$rc:$out" "0:order-1"
run "$rival" run order --input '{"item": "lamp"}' --run-id order-1
is "another of that id: exit code 2" "$rc" 2
run "$rival" run quick --wait --json
is "and is waited for" "$rc:$(jq_ '.status + " " + (.results.a.result | tostring)')" "0:completed 7"
run "$rival" run quick --wait --run-id q1
like "shown meanwhile" "$err" "completed +run q1 of quick"
is "with its outcome at the end" "$(jq_ .runId)" q1

# Looking: the same as the store itself.
eventually sh -c "'$rival' why order-1 | grep -q approved"
for command in "list" "list --json" "list --status running --workflow order" "list --text desk --json" \
    "show order-1 --json" "logs order-1" "logs order-1 --json --level debug" "show q1" "show q1 --json" \
    "why q1 --json" "wait q1"; do
    run "$rival" $command
    here=$out
    run "$rival" $command --store "$tmp/s.db"
    # What runs gets older between the two.
    strip='s/"duration":[0-9]*//g; s/[0-9.]*m\?s\b//g'
    is "$command: as the store has it" "$(printf '%s' "$here" | sed "$strip")" "$(printf '%s' "$out" | sed "$strip")"
done
run "$rival" list --limit 1 --json
is "pages have cursors" "$(jq_ '.runs | length')" 1
run "$rival" list --json --cursor "$(jq_ .nextCursor)"
is "that go on" "$(jq_ '[.runs[].runId] | index("order-1") != null')" true
run "$rival" list --cursor zz
is "a cursor that is none: exit code 2" "$rc" 2
run "$rival" why order-1
like "why it waits" "$out" "waits for the signal 'approved'"
run "$rival" show ord
like "an id may be cut" "$out" '^order  order-1  running$'
run "$rival" show nix
is "one that is not there: exit code 1" "$rc" 1
like "and where it was looked for" "$err" "there is no run 'nix' at $RIVAL_URL"

# Following, over a restart.
"$rival" wait order-1 >"$tmp/waited" 2>"$tmp/wait.err" & waiting=$!
"$rival" logs order-1 -f >"$tmp/followed" 2>/dev/null & following=$!
"$rival" run order --wait --input '{"item": "lamp"}' --run-id lamp-1 >"$tmp/ran" 2>"$tmp/run.err" & running=$!
connected() { ls -l "/proc/$1/fd" 2>/dev/null | grep -q socket; }
eventually connected $waiting
eventually grep -q "looking for desk" "$tmp/followed"
eventually grep -q "started" "$tmp/run.err" # it follows
stop
eventually grep -q lost "$tmp/wait.err"
like "a server that goes is missed" "$(cat "$tmp/wait.err")" "the connection to $RIVAL_URL is lost"
start
run "$rival" signal order-1 aproved
like "a signal that nobody waits for is refused" "$rc:$err" "^1:.*known signals: approved"
like "which --force is for" "$err" "--force"
run "$rival" signal order-1 aproved --force
is "and does" "$rc:$out" "0:signalled order-1"
run "$rival" signal order-1 approved '{"by": "kim"}'
is "signal" "$rc:$out" "0:signalled order-1"
run "$rival" signal lamp-1 approved '{"by": "kim"}'
wait $waiting
is "wait goes on when it is back, and ends with the run" \
    "$?:$(jq -r '.status + " " + .results.approval.result.by' "$tmp/waited")" "0:completed kim"
wait $following
is "and so does logs -f" "$?:$(grep -c 'looking for desk' "$tmp/followed")" "0:1"
wait $running
is "and run --wait" "$?:$(jq -r .status "$tmp/ran")" "0:completed"
run "$rival" wait order-1 --timeout 1s
is "what has ended is told at once" "$rc:$(jq_ .status)" "0:completed"

# What a run left behind is waited for in the same way.
stop
start --grace 10ms
timeout 60 "$rival" run leaver --wait --run-id l1 >"$tmp/ran" 2>"$tmp/run.err" & running=$!
eventually sh -c "'$rival' list --status completed --json | grep -q l1"
stop
eventually grep -q lost "$tmp/run.err"
start
ok "run --wait is still there" kill -0 $running
touch "$tmp/flows/go"
wait $running
is "run --wait goes on for what outlives the run" "$?:$(jq -r .status "$tmp/ran")" "0:completed"

# Ids that a path would fold.
for id in . ..; do
    run "$rival" run quick --wait --json --run-id $id
    is "a run may be called $id" "$rc:$(jq_ .runId)" "0:$id"
    run "$rival" show $id --json
    is "and be looked at" "$rc:$(jq_ .runId)" "0:$id"
    run "$rival" logs $id -f
    is "and followed" "$rc" 0
done

# Telling.
run "$rival" run order --input '{"item": "pen"}' --run-id order-2
run "$rival" wait order-2 --timeout 100ms
is "wait gives up, with an exit code of its own" "$rc:$out" "124:"
like "and says so" "$err" "has not ended after 100ms"
run "$rival" decide order-2 resume
is "nothing to decide: exit code 1" "$rc" 1
like "and why" "$err" "running"
run "$rival" cancel order-2 --json
is "cancel" "$rc:$out" '0:{"runId":"order-2","status":"cancelled"}'
run "$rival" cancel q1
is "what has ended stays" "$out" "already completed: q1"
run "$rival" signal order-2 approved
is "a signal to what has ended: exit code 1" "$rc" 1

# Tokens.
stop
printf 'viewer look-only-0123456789abcdef\noperator do-it-0123456789abcdef0123 kim\n' >"$tmp/tokens"
chmod 600 "$tmp/tokens"
start --token-file "$tmp/tokens"
run "$rival" list
is "without a token: exit code 1" "$rc:$out" "1:"
like "and what is missing, as it is given here" "$err" "needs a token: RIVAL_TOKEN, or --token-file FILE"
RIVAL_TOKEN=look-only-0123456789abcdef run "$rival" list --json
is "with one, from the environment" "$rc:$(jq_ '.runs | length > 0')" "0:true"
RIVAL_TOKEN=look-only-0123456789abcdef run "$rival" cancel q1
is "a viewer's does not cancel" "$rc" 1
like "and it is said why" "$err" "operator"
printf "operator do-it-0123456789abcdef0123 kim\n" >"$tmp/mine"
run "$rival" cancel q1 --token-file "$tmp/mine"
is "one from a file" "$rc:$out" "0:already completed: q1"
run "$rival" run quick --wait --run-id q2 --token-file "$tmp/mine"
run "$rival" show q2 --token-file "$tmp/mine"
like "show says who started it: the name of the token" "$out" "started .* by kim"
RIVAL_TOKEN=wrong run "$rival" list
is "a wrong one: exit code 1" "$rc" 1
like "and that it is wrong" "$err" "does not know this token: RIVAL_TOKEN, or --token-file FILE"
unlike "it is running, so that is not asked" "$err" "is it running"
run "$rival" list --token-file "$tmp/none"
is "a file that is not there: exit code 2" "$rc" 2

# Something else at that address.
stop
cat >"$tmp/other.py" <<'P'
import http.server
class Other(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        good = self.path == "/healthz" or self.path.startswith("/api/v1/runs")
        self.send_response(404 if "evil" in self.path else 200 if good else 403)
        self.end_headers()
        if "evil" in self.path:
            self.wfile.write(b'{"detail":"\\u001b]0;evil\\u0007"}')
        elif self.path.startswith("/api/v1/runs?"):
            self.wfile.write(b'{"runs":[{"runId":"\\u001b[2J","workflow":"\\u001b[31mw","status":7,"createdAt":"x",'
                             b'"error":{"message":"\\u001b[31m"},"failedStep":[1]},8],"nextCursor":null}')
        else:
            self.wfile.write(b"<html>\0 hello")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
print(server.server_port, flush=True)
server.serve_forever()
P
python3 "$tmp/other.py" >"$tmp/other.port" & server=$!
eventually grep -q . "$tmp/other.port"
other=http://127.0.0.1:$(cat "$tmp/other.port")
run timeout 20 "$rival" workflows --server "$other"
is "what is no server of ours: exit code 1" "$rc" 1
like "and it says so" "$err" "not a server of Rival"
run timeout 20 "$rival" show r --server "$other/"
is "what is not JSON: exit code 1" "$rc:$out" "1:"
run timeout 20 "$rival" list --server "$other"
is "nonsense in a list is shown as nothing" "$rc" 0
is "and no escapes" "$(printf '%s%s' "$out" "$err" | tr -d -c '\033\007')" ""
run timeout 20 "$rival" wait evil --server "$other"
is "nor from an error" "$rc:$(printf '%s%s' "$out" "$err" | tr -d -c '\033\007')" "1:"

# No server.
stop
run "$rival" list
is "nobody answers: exit code 1" "$rc" 1
like "where" "$err" "no server answers at $RIVAL_URL"
like "and what to do" "$err" "--store FILE"
run "$rival" list --server nonsense
is "an address that is none: exit code 2" "$rc" 2
like "and it says so" "$err" "'nonsense' is not the address of a server"
run "$rival" list --server http://127.0.0.1:1 --store x.db
is "a store and a server: exit code 2" "$rc" 2
like "which of the two?" "$err" "not both"
RIVAL_STORE=$tmp/s.db run "$rival" list --json
is "RIVAL_URL before RIVAL_STORE" "$rc" 1
unset RIVAL_URL
RIVAL_STORE=$tmp/s.db run "$rival" list --json
is "RIVAL_STORE names a store" "$rc:$(jq_ '.runs | length > 0')" "0:true"

# Nothing named, and nobody at the usual address (if so: it may be somebody else's).
if ! (exec 3<>/dev/tcp/127.0.0.1/7400) 2>/dev/null; then
    run "$rival" list
    is "no usual server, no store here: exit code 1" "$rc" 1
    like "and how to get one" "$err" "rival serve"
    run "$rival" run quick
    is "a run would be nobody's: exit code 1" "$rc" 1
    cp "$tmp/s.db" rival.db
    run "$rival" list --json
    is "the store here is looked into" "$rc:$(jq_ '.runs | length > 0')" "0:true"
fi
done_testing
