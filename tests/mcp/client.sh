#!/usr/bin/env bash
# client.sh URL: what the conformance suite runs as its client: a workflow whose `tool` steps call the server there.
# The suite says in MCP_CONFORMANCE_SCENARIO what it is about, and in MCP_CONFORMANCE_CONTEXT which calls it wants.
set -eu
url=${!#}
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cd "$at"
calls=$(printf %s "${MCP_CONFORMANCE_CONTEXT:-null}" | jq -c '.toolCalls // empty')
if [ -z "$calls" ]; then
    case ${MCP_CONFORMANCE_SCENARIO:-} in
    tools_call) calls='[{"name":"add_numbers","arguments":{"a":5,"b":3}}]' ;;
    http-invalid-tool-headers) calls='[{"name":"valid_tool","arguments":{}}]' ;;
    elicitation-sep1034-client-defaults) calls='[{"name":"test_client_elicitation_defaults"}]' ;;
    sep-2322-client-request-state) calls='[{"name":"test_mrtr_echo_state"},{"name":"test_mrtr_unrelated"},{"name":"test_mrtr_no_state"},{"name":"test_mrtr_no_result_type"}]' ;;
    sse-retry) calls='[{"name":"test_reconnection","arguments":{}}]' ;;
    *) calls='[{"name":"test","arguments":{}}]' ;;
    esac
fi
printf 'mcpServers: { suite: { url: "%s" } }\n' "$url" >rival.yaml
jq -n --argjson calls "$calls" '{name: "client", steps: [$calls | to_entries[] | {("call\(.key)"): {tool: {server: "suite", name: .value.name, arguments: (.value.arguments // {})}, continueOnError: true}}]}' >client.json
"$RIVAL" exec client.json --store client.db --run-id r & engine=$!
# Somebody who says yes to every question, with what the server proposes.
while kill -0 "$engine" 2>/dev/null; do
    "$RIVAL" why r --store client.db --json 2>/dev/null |
        jq -c '.waits[] | select(.reason == "signal").nodes[] | [.name, {action: "accept", content: ([.asks.schema.properties.content.properties // {} | to_entries[] | select(.value | has("default")) | {(.key): .value.default}] | add // {})}]' |
        while read -r asked; do
            "$RIVAL" signal r "$(jq -r '.[0]' <<<"$asked")" "$(jq -c '.[1]' <<<"$asked")" --store client.db >&2 || true
        done
    sleep 0.1
done
wait "$engine"
