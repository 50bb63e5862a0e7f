#!/usr/bin/env bash
# attachments.sh: what the states of a run leave, the log of each attempt, and who did and saw what: by the command and
# by HTTP.
. "$(dirname "$0")/tap.sh"
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
pid=
cleanup() { [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; }
cd "$tmp" || exit 1

get() { printf %s "$out" | jq -rc "$1"; }

cat >once.sh <<'S'
#!/bin/sh
# once.sh FILE: fail the first time.
cat >/dev/null
echo "looking at $1" >&2
[ -e "$1" ] || { : >"$1"; exit 1; }
echo '{"found": 3}'
S
chmod +x once.sh
cat >m.yaml <<'Y'
name: review
stages:
  triage:
    - { name: gather, agent_id: looker, priority: 300, max_retry: 1 }
    - { name: sum, agent_id: adder, accessibility: explicit, depends_on: { in: { state: gather } } }
    - { name: alone, agent_id: adder, accessibility: none, depends_on: { in: { state: gather } } }
agents:
  - { id: looker, command: [./once.sh, mark] }
  - { id: adder, command: [sh, -c, "cat >/dev/null; echo 7"] }
Y
run "$rival" exec m.yaml --store a.db --run-id r1 --json
is "the run completes" "$rc $(get .status)" "0 completed"
last=$(get .results.triage.result.gather.attachmentId)
like "a stage's result names the attachment" "$last" '^\[triage\]\[gather\]\[looker\]_[0-9]{6}T[0-9]{6}_1$'
run "$rival" attachments r1 --store a.db --json
is "each attempt of each state left one" "$(get '[.attachments[] | .state + "#" + (.attempt|tostring) + " " + .status] | sort | join(",")')" \
    "alone#0 finished,gather#0 errored,gather#1 finished,sum#0 finished"
run "$rival" attachments r1 --store a.db --state gather --latest --json
is "by state the latest wins" "$(get '[.attachments[].id] | join(",")')" "$last"
run "$rival" attachments r1 "$last" --store a.db --json
is "one of them has its result" "$(get '.result, .agent')" '{"found":3}
looker'
run "$rival" attachments r1 "$last" --store a.db
like "… and reads well" "$out" 'result +."found": ?3'
run "$rival" attachments r1 --store a.db
like "a table for people" "$out" 'ID +STATUS +TOOK +DESCRIPTION'
run "$rival" attachments r1 nothing --store a.db
like "one that is not there" "$rc $err" "^1 .*run 'r1' has no attachment 'nothing'"
run "$rival" attachments r1 --store a.db --last many
like "a number that is none" "$rc $err" "^2 .*--last 'many' must be 1 or more"
run "$rival" logs r1 --store a.db --step gather --attempt 2 --json
is "each attempt has a log of its own" "$(get '[.attempt, .path] | tostring')" '[2,"triage:gather"]'
run "$rival" logs r1 --store a.db --step triage:gather --json
is "… and all of them one by path" "$(printf '%s\n' "$out" | jq -s length)" 2
run "$rival" logs r1 --store a.db --attempt 0
like "attempts count from 1" "$rc $err" "^2 .*--attempt '0' must be 1 or more"

run "$rival" audit r1 --store a.db --json
is "audit: who began it" "$(get '[.entries[] | select(.action == "start") | .by] | join(",")')" "$(id -un)"
is "… what a state with the scope explicit was given" "$(get '.entries[] | select(.path == "triage:sum") | [.scope, .saw.in]')" \
    "[\"explicit\",\"$last\"]"
is "… and one with the scope none was not" "$(get '.entries[] | select(.path == "triage:alone") | [.scope, (.saw | length)]')" \
    '["none",0]'
run "$rival" audit r1 --store a.db
like "… for people" "$out" "see  triage:sum  explicit  in="

# ---- the same from a server
"$rival" serve --store a.db --listen 127.0.0.1:0 >serve.out 2>serve.log &
pid=$!
for _ in $(seq 300); do
    url=$(grep -ao 'http://127.0.0.1:[0-9]*' serve.log | head -1)
    [ -n "$url" ] && break
    sleep 0.1
done
run curl -sg "$url/api/v1/runs/r1/attachments?state=sum"
is "HTTP: a list" "$(get '.total, .attachments[0].status' | paste -sd' ')" "1 finished"
run curl -sg "$url/api/v1/runs/r1/attachments/$(jq -rn --arg s "$last" '$s|@uri')"
is "HTTP: one of them" "$(get .result)" '{"found":3}'
run "$rival" attachments r1 "$last" --server "$url" --json
is "the command by the server" "$(get .result)" '{"found":3}'
run "$rival" audit r1 --server "$url" --json
is "audit by the server" "$(get '[.entries[] | select(.action == "see")] | length')" 4
kill "$pid"
wait "$pid" 2>/dev/null
pid=
done_testing
