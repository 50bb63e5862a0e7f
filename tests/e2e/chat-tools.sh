#!/usr/bin/env bash
# chat-tools.sh: tools of MCP servers in chats: one, all of a server, with limits; and calls that a person approves.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
pids=
cleanup() { for pid in $pids; do kill "$pid" 2>/dev/null; done; }
start_model
mkdir s
cat >rival.yaml <<EOS
providers: { oa: { kind: openai, baseUrl: "http://127.0.0.1:$port", model: calls }, an: { kind: anthropic, baseUrl: "http://127.0.0.1:$port", model: calls } }
mcpServers:
  web: { command: [python3, $here/mcp_server.py, s, pipe, 2026-07-28] }
  gone: { command: [sh, -c, "exit 1"] }
EOS
cat >add.yaml <<'EOS'
name: add
description: Add two numbers
input: { type: object, required: [a, b], properties: { a: { type: integer }, b: { type: integer } } }
steps:
  - sum: { value: "${ .input.a + .input.b }" }
EOS
field() { printf %s "$out" | jq -r "$1"; }
asked() { jq -r "$1" requests; }
# chat PROVIDER TOOLS CALLS: one chat that calls these; its outcome is in $out.
write_chat() {
    printf 'name: w\nsteps:\n  - ask: { chat: { provider: %s, prompt: "${ .input | tojson }", tools: %s } }\n' "$1" "$2" >w.yaml
    rm -f w.db* requests
}
chat() {
    write_chat "$1" "$2"
    run "$rival" exec w.yaml --store w.db --input "$3"
}
told() { asked '.body.messages[] | if .role == "tool" then .content elif .role == "user" and (.content | type) == "array" then (.content[] | .content // empty) else empty end'; }

for provider in oa an; do
    chat $provider '[web/echo, add]' '[["echo", {"text": "from the server"}], ["add", {"a": 2, "b": 3}]]'
    is "$provider: a tool of a server, beside a workflow" "$rc $(field .results.ask.status) $(told | tr '\n' ' ')" "0 completed from the server 5 "
done
is "the model is told what the server says of it" "$(jq -sr '.[0].body.tools | map(.name + ": " + .description) | join(", ")' requests)" "echo: does echo, add: Add two numbers"
run "$rival" show "$(field .runId)" --store w.db
like "the call is in the tree" "$(tr '\n' ' ' <<<"$out")" 'turn1 .*echo .*turn2 '
cat >branches.yaml <<'EOS'
name: branches
steps:
  - first: { value: 1 }
  - second: { workflow: add, input: { a: 2, b: 3 } }
  - which: { if: "${ true }", then: [ { inner: { value: 7 } } ] }
EOS
cat >nests.yaml <<'EOS'
name: nests
steps:
  - first: { value: 1 }
  - second: { workflow: add, input: { a: 2, b: 3 } }
EOS
chat oa '[branches, nests]' '[["branches", {}], ["nests", {}]]'
run "$rival" audit "$(field .runId)" --store w.db --json
is "audit tells the result of a call only if its last node has one" "$(jq -c '[.entries[] | select(.action == "call")] | sort_by(.path) | [.[].result]' <<<"$out")" "[null,5]"
chat oa '["web/*"]' '[["web_value", {"n": 7}], ["web_nobody", {}], ["other", {}]]'
is "all tools of a server, with its name before theirs" "$(told | sed -n 1p)" '{"n": 7}'
like "one that it does not have is refused by the server" "$(told | sed -n 2p)" "refused the call: there is no tool nobody"
like "another is none" "$(told | sed -n 3p)" 'there is no tool "other"; there are: web'
is "all of them are offered" "$(jq -sr '.[0].body.tools | map(.function.name) | .[:3] + .[-1:] | join(" ")' requests)" "web_echo web_value web_mixed web_twisted"
chat oa '[{ tool: web/hang, name: wait, timeout: 200ms }]' '[["wait", {}]]'
like "a tool has its own name and its own time" "$rc $(told)" "0 .*'wait' timed out after 200 ms"
chat oa '[gone/x]' '[]'
like "a server that is not there fails the turn" "$rc $(field .error.message)" "1 .*MCP server 'gone' cannot be used: it exited with code 1"
chat oa '[nobody/x]' '[]'
like "one that the configuration does not have, too" "$rc $(field .error.code)" "1 noServer"

# approve CALL PAYLOAD: a chat with an approval, answered with this.
approve() {
    rm -f s/asked
    write_chat oa "$1"
    "$rival" exec w.yaml --store w.db --run-id r --input "$2" >exec.out 2>exec.err & pid=$!
    eventually sh -c "'$rival' why r --store w.db --json | grep -q '\"approve:'"
    run "$rival" why r --store w.db --json
}
approve '[{ tool: web/echo, approve: true }]' '[["echo", {"text": "dangerous"}]]'
is "a call that needs a person waits for the signal of its path" "$(field '.waits[] | [.reason, .name] | join(" ")')" "signal approve:ask:turn1:call0:echo"
is "and is not made before" "$(grep -c tools/call s/asked)" 0
run "$rival" audit r --store w.db
like "audit tells a chat that goes on: what was asked, and what the model wants" "$(tr -s '\n ' ' ' <<<"$out")" \
    'chat ask ask:turn1 user \[\["echo",.*chat answer ask:turn1 calls calls echo \{"text": "dangerous"\} tokens 10 in, 5 out'
run "$rival" signal r approve:ask:turn1:call0:echo '{"approved": true}' --store w.db
wait $pid
is "after a yes it is made" "$? $(told)" "0 dangerous"
said() { jq -c '[.entries[] | select(.action != "start") | [.action, .path // .name, .text // .result // .prompt // .payload // .error.message]]' <<<"$1"; }
talk='[["ask","ask:turn1","[[\"echo\",{\"text\":\"dangerous\"}]]"],["answer","ask:turn1",null],["signal","approve:ask:turn1:call0:echo",{"approved":true}],["call","ask:turn1:call0:echo","dangerous"],["answer","ask:turn2","hello"]]'
run "$rival" audit r --store w.db --json
is "audit tells it as a conversation, with the decision and the result" "$(said "$out")" "$talk"
"$rival" serve w.yaml --listen 127.0.0.1:0 --store w.db >serve.out 2>serve.err & pids="$pids $!"
eventually grep -q http://127 serve.out
run "$rival" audit r --server "$(head -1 serve.out)" --json
is "and so does a server" "$(said "$out")" "$talk"
kill "$!"; wait "$!" 2>/dev/null
approve '[{ workflow: add, approve: true }, { tool: "web/*", approve: true }]' '[["add", {"a": 1, "b": 1}], ["web_echo", {"text": "x"}]]'
is "each call has its own" "$(field '[.waits[].name] | sort | join(" ")')" "approve:ask:turn1:call0:add approve:ask:turn1:call1:web"
kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
"$rival" exec w.yaml --store w.db --run-id r --input '[["add", {"a": 1, "b": 1}], ["web_echo", {"text": "x"}]]' >exec.out 2>exec.err & pid=$!
eventually "$rival" signal r approve:ask:turn1:call0:add '{"approved": false, "reason": "too dear"}' --store w.db
eventually "$rival" signal r approve:ask:turn1:call1:web '{"approved": true}' --store w.db
wait $pid
is "a no is told to the model, and a crash meanwhile changes nothing" "$? $(told | sed 's/^.*a person/a person/' | tr '\n' ' ')" "0 a person did not approve this call: too dear x "
is "the model was asked no turn twice" "$(wc -l <requests)" 2

# The examples, with the scripted model.
cp -r "$RIVAL_SOURCE/examples/agents" agents
sed -e "s|http://127.0.0.1:8000|http://127.0.0.1:$port|; s|model: llama|model: first-tool|; s|\[rival, mcp|[$rival, mcp|" agents/rival.yaml >agents/test.yaml
rm -f requests
run "$rival" exec agents/research.yaml --config agents/test.yaml --store agents/a.db --input '{"question": "How old do oaks become?"}'
is "the research agent has looked it up" "$rc $(field .results.answer.state.turns) $(jq -sr '.[0].body.tools[0].function.name' requests)" "0 2 look-up"
like "with the tool of its server" "$(told)" 'Oaks live for centuries'
rm -f requests
"$rival" exec agents/review.yaml --config agents/test.yaml --store agents/a.db --run-id review --input '{"text": "A poem"}' >exec.out 2>exec.err & pid=$!
eventually "$rival" signal review approve:review:turn1:call0:publish '{"approved": true}' --store agents/a.db
wait $pid
is "the reviewer has published with approval" "$? $(told)" "0 published: oak"

jq -nc '{documents: [range(1; 1001) | "Invoice \(.): \(. * 2) EUR"]}' >documents.json
sed -i 's|model: first-tool|model: invoice|' agents/test.yaml
rm -f requests
run "$rival" exec agents/extract.yaml --config agents/test.yaml --store agents/b.db --input @documents.json
is "a batch of a thousand documents is extracted" "$rc $(field '[.results.sum.result.invoices, .results.sum.result.total, .results.left.result] | join(" ")') $(wc -l <requests)" \
    "0 1000 1001000 0 1000"
sed -i 's|tokens: 200000|tokens: 12000|' agents/extract.yaml # the 800th answer, of 15 tokens, reaches it
rm -f requests
run "$rival" exec agents/extract.yaml --config agents/test.yaml --store agents/c.db --input @documents.json
invoices=$(field .results.sum.result.invoices)
is "a limit of tokens ends it, what is in flight apart" "$rc $((invoices >= 800 && invoices < 820)) $(field .results.left.result)" "0 1 $((1000 - invoices))"
is "and the rest is not asked" "$(wc -l <requests)" "$invoices"
is "for that reason" "$(field '[.results.each.result.iterations[].results.invoice.error.code | values] | unique | join(" ")')" budget

cat >bad.yaml <<'EOS'
name: bad
steps:
  - a: { chat: { provider: oa, prompt: x, tools: [{ tool: echo }] } }
  - b: { chat: { provider: oa, prompt: x, tools: [{ tool: web/echo, aprove: true }] } }
EOS
cat >twice.yaml <<'EOS'
name: twice
steps:
  - c: { chat: { provider: oa, prompt: x, tools: [web/echo, { tool: web/other, name: echo }] } }
EOS
run "$rival" check bad.yaml twice.yaml
like "check: what a tool is" "$out$err" "bad.yaml:3:.*a tool of a chat is \{ tool: server/tool"
like "check: an unknown key" "$out$err" "bad.yaml:4:.*unknown key 'aprove' of a tool of a chat; did you mean 'approve'"
like "check: two of one name" "$out$err" "twice.yaml:3:.*duplicate tool 'echo'"
done_testing
