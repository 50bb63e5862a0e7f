#!/usr/bin/env bash
# chat.sh: chats of a workflow file, with a scripted endpoint (model.py) that speaks the protocols of both kinds of
# provider: tools, values, bounds, busy and broken servers, streams, keys.
. "$(dirname "$0")/tap.sh"
start_model
export CHAT_KEY=sk-very-secret-key
cat >rival.yaml <<EOF
providers:
  oa: { kind: openai, baseUrl: "http://127.0.0.1:$port", model: plain, keyEnv: CHAT_KEY, prices: { input: 100000, output: 200000 } }
  an: { kind: anthropic, baseUrl: "http://127.0.0.1:$port/", model: plain, keyEnv: CHAT_KEY }
  keyless: { kind: openai, baseUrl: "http://127.0.0.1:$port", model: plain, keyEnv: NOT_SET_ANYWHERE }
  quiet: { kind: openai, baseUrl: "http://127.0.0.1:$port", model: plain, stream: false }
  words: { kind: openai, baseUrl: "http://127.0.0.1:$port", model: plain, structuredOutput: prompt }
  minute: { kind: openai, baseUrl: "http://127.0.0.1:$port", model: plain, limits: { requestsPerMinute: 1 } }
  tokens: { kind: openai, baseUrl: "http://127.0.0.1:$port", model: plain, limits: { tokens: 1500 } }
  narrow: { kind: openai, baseUrl: "http://127.0.0.1:$port", model: plain, limits: { requests: 1 } }
EOF
cat >add.yaml <<'EOF'
name: add
description: Add two numbers
input: { type: object, required: [a, b], properties: { a: { type: integer }, b: { type: integer } } }
steps:
  - pause: { delay: 20ms }
  - sum: { value: "${ .input.a + .input.b }" }
EOF
field() { printf %s "$out" | jq -r "$1"; }
# chat MAPPING [MORE-KEYS]: one chat; its outcome is in $out.
chat() {
    printf 'name: w\nsteps:\n  - ask: { chat: { %s }%s }\n' "$1" "${2:+, $2}" >w.yaml
    rm -f w.db* requests
    run "$rival" exec w.yaml --store w.db --input '{"q":"2+3"}'
}
asked() { jq -r "$1" requests; }

for provider in oa an; do
    chat "provider: $provider, system: Be brief, prompt: \"What is \${ .input.q }?\""
    is "$provider: an answer is the result" "$rc $(field '.results.ask | [.result, .state.turns, .state.model, .state.usage.inputTokens, .state.usage.outputTokens, .state.usage.totalTokens] | join(" ")')" \
        "0 hello 1 plain 10 5 15"
    chat "provider: $provider, model: tools, prompt: go, tools: [add]"
    is "$provider: tools are called, and told" "$rc $(field '.results.ask.result') $(field .results.ask.state.turns)" "0 hello 2"
    told=$(asked '.body.messages[] | if .role == "tool" then .content elif .role == "user" and (.content | type) == "array" then (.content[] | .content) else empty end')
    is "$provider: what a tool said is sent" "$(sed -n 1p <<<"$told")" 5
    is "$provider: and that there is no such tool" "$(sed -n 2p <<<"$told")" 'there is no tool "nobody"; there are: add'
    like "$provider: and why one could not be called" "$(sed -n 3p <<<"$told")" "input of workflow 'add' is refused"
    run "$rival" show "$(field .runId)" --store w.db
    like "$provider: turns and calls are in the tree" "$(tr '\n' ' ' <<<"$out")" 'turn1 .*add .*turn2 '
    chat "provider: $provider, model: value, prompt: go, returnType: { type: object, required: [n], properties: { n: { type: integer } } }"
    is "$provider: a value of a schema" "$rc $(field '.results.ask.result.n')" "0 7"
    chat "provider: $provider, model: wrong-once, prompt: go, returnType: { type: object, properties: { n: { type: integer } } }"
    is "$provider: one that does not fit is asked for again" "$rc $(field '[.results.ask.result.n, .results.ask.state.turns] | join(" ")')" "0 7 2"
    like "$provider: and told what is wrong" "$(asked '.body.messages[-1].content' | tail -1)" 'does not fit the JSON Schema: /n .*integer'
done
chat 'provider: oa, prompt: x'
is "openai: the key is in its header" "$(asked '.key + " " + .path')" "Bearer $CHAT_KEY /v1/chat/completions"
chat 'provider: an, prompt: x'
is "anthropic: the key and the version are in its headers" "$(asked '[.key, .version, .path] | join(" ")')" "$CHAT_KEY 2023-06-01 /v1/messages"
chat 'provider: oa, model: value, prompt: x, returnType: { type: object }'
is "openai: the schema is sent as its format" "$(asked .body.response_format.json_schema.schema.type)" object
chat 'provider: an, model: value, prompt: x, returnType: { type: object, required: [n], properties: { n: { type: integer } } }'
is "anthropic: so it is there, with no other members" "$rc $(field .results.ask.result.n) $(asked '[.body.output_config.format.type, .body.output_config.format.schema.additionalProperties, .body.system] | tojson')" \
    '0 7 ["json_schema",false,null]'
chat 'provider: an, model: value, prompt: x, returnType: { type: object, required: [n], properties: { n: { type: integer, minimum: 3 } } }'
is "anthropic: what the format cannot say is left out of it" "$(asked '.body.output_config.format.schema.properties.n | tojson')" '{"type":"integer"}'
like "anthropic: and said in words" "$(asked .body.system)" 'must fit this JSON Schema: .*"minimum":3'
chat 'provider: an, model: value, prompt: x, returnType: { type: object }'
is "anthropic: a schema that it cannot take is only said in words" "$rc $(asked '(.body.system | test("JSON Schema: ")), .body.output_config' | tr '\n' ' ')" "0 true null "
chat 'provider: words, model: value, prompt: x, returnType: { type: object }'
is "structuredOutput: prompt says it in words" "$rc $(asked '(.body.messages[0].content | test("JSON Schema: ")), .body.response_format' | tr '\n' ' ')" "0 true null "

chat 'provider: oa, model: wrong, prompt: go, returnType: { type: object }'
is "an answer that does not fit twice fails" "$rc $(field .error.code) $(field .failedPath)" "1 badAnswer ask:turn2"
chat 'provider: oa, model: no-json, prompt: go, tools: [add]'
like "arguments that are no JSON are the model's to hear of" "$rc $(asked '.body.messages[-1].content' | tail -1)" "^0 the arguments of a tool must be a JSON object"
while read -r model code words; do
    chat "provider: oa, model: $model, prompt: go"
    is "$model is told as $code" "$rc $(field .error.code) $(field .failedPath)" "1 $code ask:turn1"
    like "$model: in words" "$(field .error.message)" "$words"
done <<'ROWS'
html badAnswer cannot be read: it is not JSON
empty badAnswer has no 'choices'
cut dropped ended before the answer did
refuses status status 401
ROWS
for provider in oa an; do
    while read -r model code words; do
        chat "provider: $provider, model: $model, prompt: go"
        is "$provider: $model is told as $code" "$rc $(field .error.code) $(field .failedPath)" "1 $code ask:turn1"
        like "$provider: $model: in words" "$(field .error.message)" "$words"
    done <<'ROWS'
stream-cut badAnswer the stream ends before the answer does: 4 events came, and no (.DONE.|message_stop)
stream-mid badAnswer the stream ends before the answer does: 4 events came
stream-dropped dropped ended before the answer did
stream-bad badAnswer event 5 of the stream is not JSON
stream-list badAnswer event 5 of the stream is not a JSON object
stream-error badAnswer after 4 events the provider reports: it broke
ROWS
    chat "provider: $provider, model: stream-busy, prompt: go"
    is "$provider: a stream that ends for being busy is asked for again later" "$rc $(field .results.ask.result) $(wc -l <requests)" "0 hello 2"

    # An answer is in the log as it comes, and is gone from there when it is recorded.
    printf 'name: w\nsteps:\n  - ask: { chat: { provider: %s, model: gated, prompt: go } }\n' $provider >w.yaml
    rm -f w.db* requests go
    "$rival" exec w.yaml --store w.db --run-id r1 >exec.out 2>/dev/null &
    pid=$!
    first_came() { "$rival" logs r1 --store w.db --json | grep -q first; }
    eventually first_came
    "$rival" logs r1 --store w.db --json >before
    is "$provider: a piece of an answer is a line of kind stream" "$(jq -r '[.kind, .path, .level] | join(" ")' before | sort -u)" "stream ask:turn1 info"
    like "$provider: it is what has come of it" "$(jq -rj .message before)" '^first'
    mkfifo heard
    "$rival" logs r1 --store w.db -f >heard 2>/dev/null &
    follower=$!
    exec 7<heard
    read -r -t 60 line <&7
    like "$provider: logs -f shows it" "$line" 'ask:turn1  first'
    touch go
    wait $pid
    is "$provider: the answer is whole" "$? $(jq -r .results.ask.result exec.out)" "0 first half, second half"
    cat <&7 >rest
    exec 7<&-
    wait $follower
    rm heard
    run "$rival" logs r1 --store w.db --json
    is "$provider: then the pieces are gone" "$rc $out" "0 "
done
chat 'provider: quiet, model: gated, prompt: go'
is "a provider that is not to stream is asked for the whole" "$(asked .body.stream)" null
chat 'provider: oa, model: stream-cut, prompt: go'
run "$rival" logs "$(field .runId)" --store w.db --json
is "of an answer that broke off, the pieces stay" "$(jq -rj 'select(.kind == "stream").message' <<<"$out")" "one two three"
chat "provider: oa, model: tells-key, prompt: go"
is "a key in an answer is not shown" "$(field .results.ask.result)" "your key: Bearer ******************, is it not?"
is "a key that comes back is not shown" "$(grep -c "$CHAT_KEY" <<<"$out")" 0
is "nor is it in the store" "$(cat w.db* | grep -c "$CHAT_KEY")" 0
chat 'provider: oa, model: slow, prompt: go' 'timeout: 300ms'
is "a conversation that is too slow times out" "$rc $(field .error.code) $(field .failedPath)" "1 timeout ask"

chat 'provider: oa, model: busy, prompt: go'
is "a busy model is asked again later, without using up an attempt" "$rc $(field .results.ask.result) $(wc -l <requests)" "0 hello 3"
chat 'provider: oa, model: broken, prompt: go'
is "a broken one fails" "$rc $(field .error.code)" "1 status"
chat 'provider: oa, model: broken-once, prompt: go' 'maxAttempts: 2, backoffBaseMs: 1'
is "maxAttempts begins a new conversation" "$rc $(field .results.ask.result) $(wc -l <requests)" "0 hello 2"
chat 'provider: an, model: refuses, prompt: go' 'maxAttempts: 3, backoffBaseMs: 1'
is "what would fail again is not tried again" "$rc $(wc -l <requests)" "1 1"

chat 'provider: oa, model: never, prompt: go, tools: [add], maxTurns: 2'
is "maxTurns bounds a conversation" "$rc $(field .error.code) $(field .results.ask.state.turns) $(wc -l <requests)" "1 maxTurns 2 2"
chat 'provider: oa, model: never, prompt: go, tools: [add], budget: { tokens: 30 }'
is "a budget bounds it, too" "$rc $(field .error.code) $(field .results.ask.state.usage.totalTokens)" "1 budget 30"

chat 'provider: oa, model: never, prompt: go, tools: [add], budget: { cost: 3.5 }'
is "so does one by cost" "$rc $(field .error.code) $(field .results.ask.state.usage.cost) $(field .error.message)" \
    "1 budget 4 ask: a cost of 4 is reached, its budget is 3.5"
chat 'provider: an, prompt: go, budget: { cost: 1 }'
like "a cost needs prices, also to be registered" "$rc $(tr '\n' ' ' <<<"$err") $(cat requests 2>/dev/null)" \
    "^[12] .*w.yaml: ask: the budget has a cost, but provider 'an' has no prices in the configuration: add 'prices', or bound its 'tokens' only"
chat 'provider: "${ \"an\" }", prompt: go, budget: { cost: 1 }'
is "one whose name is computed is refused when it would be asked" "$rc $(field .error.code) $(field .error.message) $(cat requests 2>/dev/null)" \
    "1 noPrices the budget has a cost, but provider 'an' has no prices in the configuration: add 'prices', or bound its 'tokens' only "
printf 'name: w\nbudget: { tokens: 40 }\nsteps:\n  - all: { forEach: "${ [range(6)] }", parallel: true, concurrency: 1, onFailure: collect, run: [ { ask: { chat: { provider: oa, prompt: hi } } } ] }\n' >w.yaml
rm -f w.db* requests
run "$rival" exec w.yaml --store w.db
is "the budget of a workflow bounds all its chats" "$rc $(field '[.results.all.result.iterations[].results.ask.status] | join(" ")') $(wc -l <requests)" \
    "0 completed completed completed failed failed failed 3"
like "and says whose it is" "$(field '.results.all.result.iterations[5].results.ask.error.message')" "45 tokens are used up, the budget of workflow 'w' is 40"
printf 'name: w\nbudget: { tokens: none }\nsteps:\n  - a: { value: 1 }\n' >w.yaml
run "$rival" check w.yaml
like "a budget that is none is refused" "$rc $out$err" '1 .*w.yaml:2:.*invalid budget .*must be'

chat 'provider: nobody, prompt: go'
like "a provider that is not there" "$(field .error.message)" "no provider 'nobody'.*there are: oa, an, keyless, quiet, words, minute, tokens, narrow"
chat 'provider: keyless, prompt: go'
like "a key that is not set" "$(field .error.message)" "key of provider 'keyless' is not set: give NOT_SET_ANYWHERE"
printf 'providers: { x: { kind: other, baseUrl: "http://a" } }\n' >other.yaml
run "$rival" exec w.yaml --store w.db --config other.yaml
like "a configuration that is wrong is refused" "$rc $err" "other.yaml: provider 'x': 'kind' must be openai or anthropic"
rm other.yaml

printf 'name: w\nsteps:\n  - all: { forEach: "${ [range(5)] }", parallel: true, run: [ { ask: { chat: { provider: narrow, prompt: hi } } } ] }\n' >w.yaml
rm -f w.db* requests
run "$rival" exec w.yaml --store w.db
is "a limit of a provider is kept, and all are answered" "$rc $(field '[.results.all.result.iterations[].results.ask.result] | join(" ")')" \
    "0 hello hello hello hello hello"

printf 'name: w\nsteps:\n  - ask: { chat: { provider: "${ .input }", prompt: hi } }\n' >w.yaml
run "$rival" exec w.yaml --store w.db --input '"narrow"'
like "one with limits must be named: they are kept before a request begins" "$rc $(field .error.message)" "^1 provider 'narrow' has limits: a chat must name it, not compute its name"

# What waits for a limit has not begun: nothing is recorded of it, and `why` names the limit.
three() { printf 'name: w\nsteps:\n  - all: { forEach: "${ [range(3)] }", parallel: true, run: [ { ask: { chat: { provider: %s, model: gated, prompt: hi } } } ] }\n' "$1" >w.yaml; }
waits() { "$rival" why r1 --store w.db --json | jq -c "[.waits[] | select(.reason == \"limit\" and .limit == \"provider:$1\").count]" | grep -qx '\[2\]'; }
begun() { "$rival" show r1 --store w.db | grep -c turn1; }
three narrow
rm -f w.db* requests go
"$rival" exec w.yaml --store w.db --run-id r1 >exec.out 2>/dev/null &
pid=$!
eventually waits narrow
eventually test -s requests
ok "why says limit, and its name" waits narrow
run "$rival" why r1 --store w.db
like "also to people" "$out" "'all' waits for the limit 'provider:narrow'"
is "only the one that has its place has begun" "$(begun) $(wc -l <requests)" "1 1"
kill -9 $pid
wait $pid 2>/dev/null
"$rival" exec w.yaml --store w.db --run-id r1 >exec.out 2>/dev/null &
pid=$!
eventually waits narrow
ok "after a restart they wait again" waits narrow
touch go
wait $pid
is "and go on when there is room" "$? $(jq -r '[.results.all.result.iterations[].results.ask.result] | unique | join(" ")' exec.out) $(begun)" "0 first half, second half 3"

three minute
rm -f w.db* requests
"$rival" exec w.yaml --store w.db --run-id r1 >exec.out 2>/dev/null &
pid=$!
eventually waits minute
eventually test -s requests
is "a limit by the minute says until when" "$("$rival" why r1 --store w.db --json | jq '[.waits[] | select(.reason == "limit") | .dueAt - now * 1000 | . > 0 and . < 61000]' -c) $(wc -l <requests)" "[true] 1"
run "$rival" cancel r1 --store w.db
wait $pid
is "what waits for a limit is cancelled at once" "$? $(begun)" "3 1"
three tokens
rm -f w.db* requests go
"$rival" exec w.yaml --store w.db --run-id r1 >exec.out 2>/dev/null &
pid=$!
eventually waits tokens
eventually test -s requests
is "tokens at once are a limit, too, before any answer" "$(begun) $(wc -l <requests)" "1 1"
touch go
wait $pid
is "and all are answered" "$? $(wc -l <requests)" "0 3"

while IFS='|' read -r says words; do
    printf 'name: bad\nsteps:\n  - ask: { chat: %s }\n' "$says" >bad.yaml
    run "$rival" check bad.yaml
    like "check refuses $says" "$rc $out$err" "$words"
done <<'ROWS'
{ prompt: x }|a chat needs a 'provider'
{ provider: p }|a chat needs a 'prompt'
{ provider: p, prompt: x, tool: [a] }|unknown key 'tool' of a chat; did you mean 'tools'
{ provider: p, prompt: x, maxTurns: 0 }|invalid maxTurns 0
{ provider: p, prompt: x, tools: [nope] }|there is no workflow 'nope'
ROWS
rm bad.yaml

done_testing
