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
    sse-retry) calls='[{"name":"test_reconnection","arguments":{}}]' ;;
    *) calls='[{"name":"test","arguments":{}}]' ;;
    esac
fi
printf 'mcpServers: { suite: { url: "%s" } }\n' "$url" >rival.yaml
jq -n --argjson calls "$calls" '{name: "client", steps: [$calls | to_entries[] | {("call\(.key)"): {tool: {server: "suite", name: .value.name, arguments: (.value.arguments // {})}, continueOnError: true}}]}' >client.json
"$RIVAL" exec client.json --store client.db
