#!/usr/bin/env bash
# chat-manifest.sh: chats as agents of a manifest, with the scripted endpoint (model.py): how prompts are composed,
# what a retry is told and sent again, and tools of a state.
. "$(dirname "$0")/tap.sh"
start_model
cat >rival.yaml <<EOF
providers:
  oa: { kind: openai, baseUrl: "http://127.0.0.1:$port", model: plain }
  an: { kind: anthropic, baseUrl: "http://127.0.0.1:$port", model: plain }
EOF
cat >add.yaml <<'EOF'
name: add
input: { type: object, required: [a, b], properties: { a: { type: integer }, b: { type: integer } } }
steps:
  - sum: { value: "${ .input.a + .input.b }" }
EOF
field() { printf %s "$out" | jq -r "$1"; }
# manifest STATE-KEYS AGENT [INPUT]: a state that depends on another; its outcome is in $out.
manifest() {
    cat >m.yaml <<EOF
name: m
parameters: { user_prompt: "How is it?" }
stages:
  triage:
    - { name: gather, agent_id: g, priority: 200 }
    - { name: judge, agent_id: j, depends_on: { found: { state: gather } }, $1 }
agents:
  - { id: g, command: [echo, sunny], describe: "It is \${ .result }" }
  - { id: j, $2 }
EOF
    rm -f w.db* requests
    run "$rival" exec m.yaml --store w.db --input "${3:-null}"
}
# The messages of the N-th request, one a line: "role: content".
sent() { sed -n "$1p" requests | jq -r '.body.messages[] | "\(.role): \(.content)"'; }
judged() { field '.results.triage.result.judge | [.status, .result, .attempts] | map(tostring) | join(" ")'; }

manifest 'description: You judge., parameters: { system_prompt: Be short. }' 'chat: { provider: oa }'
is "a chat is an agent" "$rc $(judged)" "0 completed hello 1"
is "its system prompt is the description, and what parameters append" "$(sent 1 | head -3)" "system: You judge.

Be short."
is "its prompt is the parameter, and what it depends on" "$(sent 1 | tail -3)" "user: How is it?

found: It is sunny"
run "$rival" show "$(field .runId)" --store w.db
like "its turns are in the tree" "$(tr '\n' ' ' <<<"$out")" 'judge .*turn1 '
manifest 'accessibility: none' 'chat: { provider: an }' '{"user_prompt":"Why?"}'
is "without access it is told nothing of them; the input overlays parameters" "$rc $(judged) $(sent 1)" "0 completed hello 1 user: Why?"
manifest 'parameters: { return_type: { type: object, required: [n] } }' 'chat: { provider: oa, model: value, prompt: "It is ${ .inputs.found }" }'
is "a return_type makes a value" "$rc $(judged)" '0 completed {"n":7} 1'
like "the agent's own prompt comes first" "$(sent 1)" 'user: It is sunny$'
manifest 'resources: { tools: [./add.yaml] }' 'chat: { provider: oa, model: tools }'
is "a state's tools are its chat's" "$rc $(judged) $(sed -n 1p requests | jq -r '.body.tools[0].function.name')" "0 completed hello 1 add"

manifest 'max_retry: 1' 'chat: { provider: oa, model: broken-a }'
is "a retry begins anew" "$rc $(judged) $(wc -l <requests)" "0 completed hello 2 2"
like "and is told the last error" "$(sent 2 | tail -1)" 'The last attempt failed: .*500'
manifest 'max_retry: 1, append_errors_to_chat: false' 'chat: { provider: oa, model: broken-b }'
unlike "unless its state says no" "$(sent 2)" 'failed'

# Turns that are kept: the second request of each attempt is of a model that breaks once, after a call.
manifest 'max_retry: 1, parameters: { keep_turns: true }, resources: { tools: [./add.yaml] }' 'chat: { provider: oa, model: breaks-second }'
is "kept turns: it passes in its second attempt" "$rc $(judged)" "0 completed hello 2"
is "kept turns: the conversation goes on" "$(sent 3 | grep -oE '^(user|assistant|tool):' | tr -d '\n')" "user:assistant:tool:user:"
manifest 'max_retry: 1, resources: { tools: [./add.yaml] }' 'chat: { provider: an, model: breaks-second }'
is "else it does not" "$(sent 3 | grep -cE '^(user|assistant|tool): ')" 1
manifest 'parameters: { keep_turns: true }, clear_chat_on_pass: false, priority: 50' 'chat: { provider: oa }'
cat >m.yaml <<'EOF'
name: m
parameters: { user_prompt: "How is it?", keep_turns: true }
stages:
  one:
    - { name: ask, agent_id: j, priority: 200, clear_chat_on_pass: KEEP }
    - { name: shaky, agent_id: s, max_retry: 1, on_failure: ask, depends_on: { it: { state: ask } } }
agents:
  - { id: j, chat: { provider: oa } }
  - { id: s, command: [sh, -c, "mkdir once 2>/dev/null && exit 1 || echo good"] }
EOF
sed 's/KEEP/false/' m.yaml >k.yaml
rm -rf w.db* requests once
run "$rival" exec k.yaml --store w.db
is "a state that runs again goes on where it passed, if its turns are not cleared" "$rc $(sed -n 2p requests | jq -r '[.body.messages[].role] | join(" ")')" "0 user assistant user"
sed 's/KEEP/true/' m.yaml >k.yaml
rm -rf w.db* requests once
run "$rival" exec k.yaml --store w.db
is "and begins anew if they are" "$rc $(sed -n 2p requests | jq -r '[.body.messages[].role] | join(" ")')" "0 user"

printf 'name: m\nstages: { one: [ { name: ask, agent_id: j } ] }\nagents: [ { id: j, chat: { provider: oa } } ]\n' >m.yaml
rm -f w.db*
run "$rival" exec m.yaml --store w.db
like "a chat without any prompt says so" "$rc $(field '.results.one.result.ask.error.message')" 'there is no prompt'
done_testing
