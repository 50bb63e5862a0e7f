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
        [ "$rc" = 0 ] || sed -n 's/^/# /; /=== SUITE SUMMARY/,$p' "$revision.out"
        is "$revision: all but what is listed" "$rc" 0
        like "$revision: the suite has run" "$(cat "$revision.out")" '^Total: [1-9][0-9]* passed'
        grep '^Total' "$revision.out" | sed 's/^/# /'
    done
    done_testing
fi

if [ "$1" = everything ]; then
    every=$at/node_modules/@modelcontextprotocol/server-everything/dist/index.js
    # everything PORT: the server by HTTP; 0: any port. It is in the file `port` once it listens.
    everything() {
        rm -f port
        PORT=$1 PORT_FILE=$PWD/port "$node" --import "$from/loopback.mjs" "$every" streamableHttp >http.log 2>&1 & http=$!
        servers="$servers $http"
        eventually test -s port
    }
    everything 0
    cat >rival.yaml <<EOF
mcpServers:
  every: { command: ["$node", "$every", stdio], env: { COLOUR: green } }
  http: { url: "http://127.0.0.1:$(cat port)/mcp" }
EOF
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

    # Its tools that ask a person, and the one that is a task, by both transports.
    mkdir flows
    for server in every http; do
        while read -r name tool arguments; do
            printf 'name: %s-%s\nsteps:\n  - call: { tool: { server: %s, name: %s, arguments: %s } }\n' "$name" "$server" "$server" "$tool" "$arguments" >"flows/$name-$server.yaml"
        done <<'EOF'
echo echo { message: hello }
form trigger-elicitation-request {}
url trigger-url-elicitation { url: "https://example.org/open" }
first trigger-url-elicitation { url: "https://example.org/then", errorPath: true }
refused trigger-url-elicitation { url: "https://example.org/never", errorPath: true }
research simulate-research-query { topic: python }
unclear simulate-research-query { topic: python, ambiguous: true }
EOF
    done
    begin() {
        rm -f url
        "$rival" serve flows --store s.db --config rival.yaml --listen 127.0.0.1:0 --log-level error >url 2>serve.err & engine=$!
        servers="$servers $engine"
        eventually test -s url
    }
    why() { "$rival" why "$1" --store s.db --json; }
    asks() { why "$1" | jq -en 'input | .waits[] | select(.reason == "signal")' >/dev/null; }
    asked() { eventually asks "$1"; why "$1" | jq -rc ".waits[0].nodes[0].asks | $2"; }
    answer() { "$rival" signal "$1" elicit:call "$2" --store s.db >/dev/null; }
    ended() { case $("$rival" show "$1" --store s.db --json | jq -r .status) in completed | failed | cancelled) ;; *) false ;; esac; }
    result() { eventually ended "$1"; "$rival" show "$1" --store s.db --json | jq -r '.results.call | .result // .error.message'; }
    begin
    for server in every http; do
        for flow in form url first refused research unclear; do
            "$rival" run "$flow-$server" --store s.db --run-id "$flow-$server" >/dev/null
            # By pipes nothing says which call a question belongs to: one call at a time.
            case $flow in research) ;; *) eventually asks "$flow-$server" ;; esac
        done
        is "$server: a form to fill in is a question" "$(asked "form-$server" '.message, (.schema.properties.content.required | join(" "))' | tr '\n' ' ')" "Please provide inputs for the following fields: name "
        answer "form-$server" '{"action": "accept", "content": {"name": "Kim", "check": true}}'
        like "$server: and is filled in" "$(result "form-$server")" 'Name: Kim'
        is "$server: an address to open is a question" "$(asked "url-$server" .url)" "https://example.org/open"
        like "$server: and stands where a person reads the question" "$("$rival" why "url-$server" --store s.db)" 'elicit:call.*complete this action. \(https://example.org/open\)'
        answer "url-$server" '{"action": "decline"}'
        like "$server: which may be declined" "$(result "url-$server")" 'declined to open the URL'
        is "$server: what has to be opened before the call (-32042) is asked first" "$(asked "first-$server" .url)" "https://modelcontextprotocol.io"
        answer "first-$server" '{"action": "accept"}'
        second() { [ "$(why "first-$server" | jq -r '.waits[0].nodes[0].asks.url')" = "https://example.org/then" ]; }
        ok "$server: then the call is made again" eventually second
        answer "first-$server" '{"action": "accept"}'
        like "$server: and ends well" "$(result "first-$server")" 'User completed the URL elicitation flow'
        answer "refused-$server" '{"action": "decline"}'
        like "$server: who declines to open it has no call" "$(result "refused-$server")" 'refused the call: a person has to open "https://modelcontextprotocol.io" first, and declined'
        like "$server: a task is polled until it has its result" "$(result "research-$server")" 'Research Report: python$'
        like "$server: a task that wants input asks for it" "$(asked "unclear-$server" .message)" 'could have multiple interpretations'
        answer "unclear-$server" '{"action": "accept", "content": {"interpretation": "snake"}}'
        like "$server: and gets it" "$(result "unclear-$server")" 'Research Report: python .snake.'
    done
    "$rival" run echo-http --store s.db --run-id e1 >/dev/null
    is "by HTTP it is called" "$(result e1)" "Echo: hello"
    port=$(cat port)
    kill -9 "$http" && wait "$http" 2>/dev/null
    everything "$port"
    "$rival" run echo-http --store s.db --run-id e2 >/dev/null
    is "also after it has lost its sessions" "$(result e2)" "Echo: hello"
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
