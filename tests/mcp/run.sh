#!/usr/bin/env bash
# run.sh clients|conformance|as-client|everything: MCP with public packages on the other side, as TAP: our server with
# clients and the official suite; our client with the client scenarios of that suite, and with a public server. They are installed once for
# a build, by the lock file.
. "$(dirname "$0")/../e2e/tap.sh"
. "$RIVAL_SOURCE/tests/packages.sh"
from=$RIVAL_SOURCE/tests/mcp
servers=
cleanup() { for pid in $servers; do kill "$pid" 2>/dev/null && wait "$pid"; done; }

packages mcp

if [ "$1" = clients ]; then
    cd "$at" || exit 1
    RIVAL=$rival FLOWS=$from/workflows exec "$node" --test --test-reporter=tap mcp.test.mjs
fi

cd "$tmp" || exit 1
suite=$at/node_modules/@modelcontextprotocol/conformance/dist/index.js
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY
if [ "$1" = as-client ]; then
    export RIVAL=$rival
    for revision in 2025-11-25 2026-07-28; do
        "$node" "$suite" client --command "bash $from/client.sh" --requirements "$revision" --timeout 240000 \
            --expected-failures "$from/client-$revision.yaml" >"$revision.out" 2>&1
        rc=$?
        # That one measures how soon we come back to a stream: a loaded machine is late. tools.sh and unit tests have the rest.
        unexpected=$(sed -n '/not in baseline/,/^$/p' "$revision.out" | sed -n 's/^ *✗ *//p' | tr '\n' ' ')
        [ "$unexpected" != "sse-retry " ] || rc=0
        [ "$rc" = 0 ] || sed -n 's/^/# /; /=== SUITE SUMMARY/,$p' "$revision.out"
        is "$revision: all but what is listed" "$rc" 0
        like "$revision: the suite has run" "$(cat "$revision.out")" '^Total: [1-9][0-9]* passed'
        grep '^Total' "$revision.out" | sed 's/^/# /'
    done
    done_testing
fi

if [ "$1" = everything ]; then
    printf 'mcpServers: { every: { command: ["%s", "%s", stdio], env: { COLOUR: green } } }\n' "$node" \
        "$at/node_modules/@modelcontextprotocol/server-everything/dist/index.js" >rival.yaml
    cat >every.yaml <<'EOF'
name: every
steps:
  - echo: { tool: { server: every, name: echo, arguments: { message: hello } } }
  - sum: { tool: { server: every, name: get-sum, arguments: { a: 1, b: 2 } } }
  - image: { tool: { server: every, name: get-tiny-image } }
  - weather: { tool: { server: every, name: get-structured-content, arguments: { location: Chicago } } }
  - long: { tool: { server: every, name: trigger-long-running-operation, arguments: { duration: 0.2, steps: 2 } } }
  - env: { tool: { server: every, name: get-env } }
  - wrong: { tool: { server: every, name: get-sum, arguments: { a: one } }, continueOnError: true }
EOF
    run "$rival" exec every.yaml --store every.db
    field() { printf %s "$out" | jq -r "$1"; }
    is "its tools are called" "$rc $(field '[.results.echo.result, .results.sum.result] | join("; ")')" "0 Echo: hello; The sum of 1 and 2 is 3."
    is "pictures are in the list of what it said" "$(field '[.results.image.result[] | select(.type == "image") | .mimeType] | join(" ")')" image/png
    is "a value is one" "$(field '.results.weather.result | keys | join(" ")')" "conditions humidity temperature"
    is "it has the environment of its configuration" "$(field '.results.env.result | fromjson | .COLOUR')" green
    is "what it refuses fails its step" "$(field .results.wrong.status)" failed
    run "$rival" logs "$(field .runId)" --store every.db --step long
    like "its progress is in the log" "$out" 'progress 2 of 2'
    done_testing
fi

for revision in 2025-11-25 2026-07-28; do
    "$rival" serve "$from/workflows" --store "$revision.db" --listen 127.0.0.1:0 --log-level error >"$revision.url" & servers="$servers $!"
done
for revision in 2025-11-25 2026-07-28; do
    eventually test -s "$revision.url"
    "$node" "$suite" server --url "$(head -n1 "$revision.url")/mcp" \
        --requirements "$revision" --expected-failures "$from/conformance-$revision.yaml" >"$revision.out" 2>&1 &
    eval "pid_${revision%%-*}=$!"
done
for revision in 2025-11-25 2026-07-28; do
    pid=pid_${revision%%-*}
    wait "${!pid}"
    rc=$?
    [ "$rc" = 0 ] || sed -n 's/^/# /; /=== SUMMARY/,$p' "$revision.out"
    is "$revision: all but what is listed" "$rc" 0
    like "$revision: the suite has run" "$(cat "$revision.out")" '^Total: [1-9][0-9]+ passed'
    grep '^Total' "$revision.out" | sed 's/^/# /'
done
done_testing
