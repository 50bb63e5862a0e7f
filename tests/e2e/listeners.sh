#!/usr/bin/env bash
# listeners.sh: `listeners:` of manifests: commands and webhooks are told what happens, decide about suspensions, are told
# again what failed, and after a restart what was left.
. "$(dirname "$0")/tap.sh"
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
pid= hooks=
cleanup() {
    [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
    [ -z "$hooks" ] || kill -9 "$hooks" 2>/dev/null
}
cd "$tmp" || exit 1
get() { printf %s "$out" | jq -rc "$1"; }

# hear.sh FILE [ANSWER [FAILS]]: keep the event; fail so often; then answer.
cat >hear.sh <<'S'
#!/bin/sh
event=$(cat)
printf '%s\n' "$event" >>"$1"
[ "$(wc -l <"$1")" -gt "${3:-0}" ] || { echo "not yet" >&2; exit 1; }
printf '%s' "${2:-}"
S
cat >agent.sh <<'S'
#!/bin/sh
# agent.sh FAILS MARK: fail until it was called so often.
cat >/dev/null
echo x >>"$2"
[ "$(wc -l <"$2")" -gt "$1" ] || exit 1
echo '"ok"'
S
chmod +x ./*.sh
# manifest NAME STATE LISTENERS
manifest() {
    printf 'name: %s\nstages:\n  s:\n    - %s\nlisteners:\n%s\nagents:\n  - { id: good, command: [./agent.sh, "0", %s.mark] }\n  - { id: once, command: [./agent.sh, "1", %s.mark] }\n  - { id: bad, command: [./agent.sh, "99", %s.mark] }\n' \
        "$1" "$2" "$3" "$1" "$1" "$1" >"$1.yaml"
}

# ---- commands
manifest all '{ name: a, agent_id: good, final: true }' '  - { on: [dispatch, state_completed, stage_completed, final, completed, aborted], command: [./hear.sh, all.txt] }'
run "$rival" check all.yaml
is "listeners are taken without a warning" "$rc:$err" "0:"
run "$rival" exec all.yaml --store a.db --run-id r1 --json
is "the run completes" "$rc" 0
is "a command is told each event that it asked for, in order" "$(jq -r .type all.txt | paste -sd' ')" "dispatch state_completed final stage_completed completed"
is "… as JSON with flat fields" "$(jq -c 'select(.type == "state_completed") | {runId, workflow, stage, state, attempt, succeed}' all.txt)" \
    '{"runId":"r1","workflow":"all","stage":"s","state":"a","attempt":0,"succeed":true}'
like "… and the attachment" "$(jq -r 'select(.type == "state_completed") | .attachmentId' all.txt)" '^\[s\]\[a\]\[good\]_'
# How far listeners were told: "name seq" of each mark of a store.
marks() { python3 -c 'import sqlite3, sys; [print(*row) for row in sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True).execute("SELECT name, seq FROM marks ORDER BY name")]' "$1"; }
is "nothing is left to be told" "$(marks a.db)" ""

manifest decides '{ name: a, agent_id: once, critical: true }' "  - { on: [suspend], command: [./hear.sh, decides.txt, '{\"action\": \"resume\", \"reason\": \"try again\"}'] }"
run "$rival" exec decides.yaml --store a.db --run-id r2 --json
is "a command decides about a suspension by what it prints" "$rc $(get .status)" "0 completed"
run "$rival" audit r2 --store a.db --json
is "… and is named with its reason" "$(get '[.entries[] | select(.action == "decide") | [.by, .decision, .reason.message]] | tostring')" '[["listener","resume","try again"]]'
manifest silent '{ name: a, agent_id: bad, critical: true }' '  - { on: [suspend], command: [./hear.sh, silent.txt] }'
run "$rival" exec silent.yaml --store a.db --run-id r3 --json
is "one that says nothing decides nothing" "$rc $(wc -l <silent.txt)" "4 1"
manifest fails '{ name: a, agent_id: once, critical: true }' "  - { on: [suspend], command: [./hear.sh, fails.txt, '{\"action\": \"skip\"}', '2'] }"
run "$rival" exec fails.yaml --store a.db --run-id r4 --json
is "what fails is told again, until it is told" "$rc $(get .results.s.result.a.status) $(wc -l <fails.txt)" "0 failed 3"

# ---- webhooks, under serve
cat >hooks.py <<'P'
import http.server, json, sys
seen = {}
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open("hooks.txt", "a") as f:
            f.write(self.path + " " + self.headers["Content-Type"] + " " + event["type"] + " " + event["runId"] + "\n")
        n = seen[self.path] = seen.get(self.path, 0) + 1
        busy = self.path == "/busy" and n < 3
        body = b'{"action": "abort", "reason": "by hook"}' if event["type"] == "suspend" else b""
        self.send_response(503 if busy else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 0), H)
print(s.server_port, flush=True)
s.serve_forever()
P
python3 hooks.py >port &
hooks=$!
eventually test -s port
port=$(cat port)
mkdir files
cp ./*.sh files/
manifest hook '{ name: a, agent_id: bad, critical: true }' "  - { on: [suspend, aborted], webhook: \"http://127.0.0.1:$port/busy\" }"
mv hook.yaml files/
"$rival" serve files --store s.db --listen 127.0.0.1:0 >url 2>serve.err &
pid=$!
eventually grep -q http url
url=$(cat url)
curl -s -X POST "$url/api/v1/workflows/hook/runs" -H 'Content-Type: application/json' -d '{"runId":"w1"}' -o started
eventually curl -sf "$url/api/v1/runs/w1/wait?timeoutMs=50000" -o outcome
out=$(cat outcome)
is "a webhook decides by its answer" "$(get '.status, .error.message' | paste -sd' ')" "failed by hook"
eventually grep -q aborted hooks.txt
is "… is asked again after a 503, and told what follows" "$(sed 's/ .* / /' hooks.txt | paste -sd,)" "/busy w1,/busy w1,/busy w1,/busy w1"
is "… with JSON" "$(cut -d' ' -f2,3 hooks.txt | sort -u | paste -sd,)" "application/json aborted,application/json suspend"

# ---- over a death: what was not told is told by the next process; what is undecided, too
kill -9 "$hooks"
wait "$hooks" 2>/dev/null
hooks=
manifest late '{ name: a, agent_id: good }' '  - { on: [completed], command: [sh, -c, "cat >>late.txt; echo >>late.txt; test -e go"] }'
manifest open '{ name: a, agent_id: bad, critical: true }' '  - { on: [suspend], command: [./hear.sh, open.txt] }'
mv late.yaml open.yaml files/
kill -9 "$pid"
wait "$pid" 2>/dev/null
"$rival" serve files --store s.db --listen 127.0.0.1:0 >url2 2>serve2.err &
pid=$!
eventually grep -q http url2
url=$(cat url2)
for w in late open; do curl -s -X POST "$url/api/v1/workflows/$w/runs" -H 'Content-Type: application/json' -d "{\"runId\":\"$w\"}" -o started; done
eventually test -s files/late.txt
eventually test -s files/open.txt
kill -9 "$pid"
wait "$pid" 2>/dev/null
touch files/go
told=$(wc -l <files/late.txt) asked=$(wc -l <files/open.txt)
"$rival" serve files --store s.db --listen 127.0.0.1:0 >url3 2>serve3.err &
pid=$!
more() { [ "$(wc -l <"$1")" -gt "$2" ]; }
ok "after a death: what had failed is told again" eventually more files/late.txt "$told"
ok "… and what is undecided" eventually more files/open.txt "$asked"
is "… the same event" "$(jq -r '.type + " " + .runId' files/late.txt | sort -u)" "completed late"
kept() { marks s.db | grep -q '^workflow:late [1-9]'; }
ok "how far they were told is kept in the store" eventually kept
is "… for each workflow with listeners" "$(marks s.db | cut -d' ' -f1 | paste -sd' ')" "workflow:hook workflow:late workflow:open"
done_testing
