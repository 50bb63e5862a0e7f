#!/usr/bin/env bash
# chat-kills.sh [KILLS]: kill -9 in the midst of conversations that call tools, KILLS times (5), each after some requests:
# the scripted endpoint (model.py) sees no recorded turn again, and every conversation comes to its end.
. "$(dirname "$0")/tap.sh"
kills=${1:-5} turns=40
start_model
printf 'providers: { oa: { kind: openai, baseUrl: "http://127.0.0.1:%s", model: plain } }\n' "$port" >rival.yaml
cat >add.yaml <<'EOF'
name: add
input: { type: object, required: [a, b], properties: { a: { type: integer }, b: { type: integer } } }
steps:
  - pause: { delay: 5ms }
  - sum: { value: "${ .input.a + .input.b }" }
EOF
printf 'name: w\nsteps:\n  - ask: { chat: { provider: oa, model: counts-%s, prompt: "${ .input }", tools: [add], maxTurns: 100 } }\n' $turns >w.yaml
touch requests
asked() { wc -l <requests; }
# How many answers of this run are recorded.
recorded() {
    python3 - "$1" <<'PY'
import re, sqlite3, sys
rows = sqlite3.connect("file:w.db?mode=ro", uri=True).execute(
    "select j.facts from journal j join runs r on r.key = j.run where r.id = ?", (sys.argv[1],)).fetchall()
print(sum(len(re.findall(r',"turn":\{', row[0])) for row in rows))
PY
}
again=0 ended=0 done=0 number=1
while [ $done -lt "$kills" ]; do
    before=$(asked)
    "$rival" exec w.yaml --store w.db --run-id "r$number" --input "\"r$number\"" >out.json 2>/dev/null &
    pid=$!
    until [ "$(asked)" -gt $((before + RANDOM % 5)) ] || ! kill -0 $pid 2>/dev/null; do sleep 0.005; done
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    code=$?
    if [ $code = 0 ]; then # it was quicker: the next conversation
        [ "$(jq -r '.results.ask.state.turns' out.json)" = $((turns + 1)) ] && ended=$((ended + 1))
        number=$((number + 1))
        continue
    fi
    done=$((done + 1))
    # What this life and those before it have recorded must not be asked for by the next one.
    known=$(recorded "r$number" 2>/dev/null) after=$(asked)
    "$rival" exec w.yaml --store w.db --run-id "r$number" --input "\"r$number\"" >out.json 2>/dev/null &
    pid=$!
    until [ "$(asked)" -gt "$after" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.005; done
    first=$(tail -n +$((after + 1)) requests | head -1 | jq '[.body.messages[] | select(.role == "assistant")] | length')
    [ -z "$first" ] || [ "$first" -ge "${known:-0}" ] || again=$((again + 1))
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? = 0 ] || done=$((done + 1))
done
run "$rival" exec w.yaml --store w.db --run-id "r$number" --input "\"r$number\""
is "after $kills kills the conversation comes to its end" "$rc $(jq -r '[.results.ask.result, .results.ask.state.turns] | join(" ")' <<<"$out")" "0 hello $((turns + 1))"
is "so did all before it" "$ended" "$((number - 1))"
is "no recorded turn is asked again" "$again" 0
# Of each run a turn is asked once more at most for each death that it was in flight in.
echo "# $(asked) requests for $((number * (turns + 1))) turns"
done_testing
