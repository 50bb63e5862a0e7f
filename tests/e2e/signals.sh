#!/usr/bin/env bash
# signals.sh: the payload of a signal is held to its schema, whoever sends it.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
pid=
cleanup() { [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; }
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY

mkdir flows
cat >flows/ask.yaml <<'Y'
name: ask
steps:
  - ask:
      signal:
        name: approve
        schema: { type: object, required: [approved], properties: { approved: { type: boolean } } }
  - late: { signal: { name: never, timeout: 50ms, default: { approved: false } } }
Y
"$rival" serve flows --listen 127.0.0.1:0 >serve.out 2>&1 &
pid=$!
ok "it serves" eventually grep -q 'http://127' serve.out
at=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' serve.out | head -1)
post() { curl -s -o body -w '%{http_code}' -X POST -H 'Content-Type: application/json' "$at$1" -d "$2"; }
is "a run waits" "$(post /api/v1/workflows/ask/runs '{"runId": "r"}')" 202
is "HTTP: what does not fit is 422" "$(post /api/v1/runs/r/signals/approve '{"approved": "yes"}')" 422
is "… with its violations" "$(jq -c '[.in, .violations]' body)" '["body",[{"path":"/approved","message":"must be a boolean, is a string"}]]'
is "the plan has the schema, for who draws a form" \
    "$(curl -s "$at/api/v1/runs/r/plan" | jq -c '.steps[0].with.schema.required // .plan.steps[0].with.schema.required')" '["approved"]'
is "HTTP: the list of runs that wait for somebody" "$(curl -s "$at/api/v1/runs?waiting=somebody" | jq -c '[.runs[] | [.runId, .waiting]]')" '[["r","somebody"]]'
for where in "--server $at" '--store rival.db'; do
    # shellcheck disable=SC2086
    run "$rival" list --waiting somebody --json $where
    is "list --waiting somebody $where" "$(printf %s "$out" | jq -c '[.runs[] | [.runId, .waiting]]')" '[["r","somebody"]]'
done
is "HTTP: its source, as it was written" "$(curl -s "$at/api/v1/workflows/ask/source" | jq -r '.text + .language')" "$(cat flows/ask.yaml; echo yaml)"
run "$rival" signal r approve '{}' --server "$at"
is "the command, by a server" "$rc $err" "1 rival: the payload of signal 'approve' is refused: /approved: is required"
run "$rival" signal r approve 5 --store rival.db
is "the command, by the store" "$rc $err" "1 rival: the payload of signal 'approve' is refused: must be an object, is a number"
run "$rival" signal r approve '{"approved": true}' --server "$at"
is "what fits is taken" "$rc" 0
run "$rival" wait r --server "$at" --json
is "… and a time-out has the default as its result" "$(printf %s "$out" | jq -c '[.results[].result]')" '[{"approved":true},{"approved":false}]'
is "nobody is waited for any more" "$(curl -s "$at/api/v1/runs?waiting=somebody" | jq -c .runs)" '[]'
done_testing
