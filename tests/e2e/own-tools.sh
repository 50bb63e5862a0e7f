#!/usr/bin/env bash
# own-tools.sh: tools of a chat that need no server: those that read its run, from each scope, set_outputs, and skills.
. "$(dirname "$0")/tap.sh"
start_model
printf 'providers: { oa: { kind: openai, baseUrl: "http://127.0.0.1:%s", model: calls } }\n' "$port" >rival.yaml
field() { printf %s "$out" | jq -r "$1"; }
offered() { jq -sr '.[0].body.tools // [] | map(.function.name) | join(" ")' requests; }
# What the N-th call of the first turn was answered with.
told() { jq -sr --argjson n "$1" '.[1].body.messages | map(select(.role == "tool"))[$n].content' requests; }
all='context_logs_head, context_logs_tail, context_logs_search, context_attachment_list, context_attachment_get, context_attachment_exists, set_outputs'
logs='context_logs_head context_logs_tail context_logs_search context_attachment_list context_attachment_exists set_outputs'
calls='[["context_logs_tail", {"max_lines": 1}], ["context_attachment_list", {}], ["context_attachment_get", {"state": "gather"}], ["context_attachment_exists", {"state": "gather"}], ["context_logs_search", {"query": "SECOND"}], ["context_logs_head", {"max_lines": 1, "skip_lines": 1}]]'

# ---- a plain workflow: none, unless it says more
plain() {
    cat >w.yaml <<EOS
name: w
steps:
  - before: { command: [sh, -c, "echo first line >&2; echo second line >&2; echo third line >&2; echo seen"] }
  - ask: { chat: { provider: oa, prompt: "\${ .input | tojson } \${ .steps.before.result }", tools: [$all]$1 } }
EOS
    rm -f w.db* requests
    run "$rival" exec w.yaml --store w.db --run-id r --input "$calls"
}
plain ''
is "in a plain workflow a chat is offered nothing that reads its run" "$rc $(offered)" "0 set_outputs"
is "its prompt is what its author wrote" "$(jq -sr '.[0].body.messages[0].content' requests | tail -c 5)" seen
for n in 0 1 2 3 4 5; do
    like "and what it calls all the same is refused ($n)" "$(told $n)" "the scope 'none' does not allow context_"
done
for scope in logs explicit; do
    plain ", access: $scope"
    is "$scope: what it is offered" "$rc $(offered)" "0 $logs"
    is "$scope: the log from its end, from its beginning, by a text" \
        "$(for n in 0 4 5; do told $n | jq -r '.lines[] | .path + ": " + .message'; done)" \
        "before: third line
before: second line
before: second line"
    is "$scope: the list of attachments" "$(told 1 | jq -c .)" '{"attachments":[],"total":0}'
    like "$scope: not one of them" "$(told 2)" "does not allow context_attachment_get"
done
plain ', access: all'
is "all: everything is offered" "$rc $(offered)" "0 ${all//,/}"
like "all: there is no such attachment" "$(told 2)" "there is no such attachment"
run "$rival" audit r --store w.db --json
is "each read is recorded with its tool" "$(jq -r '.. | objects | select(.through? != null) | .through' <<<"$out" | sort -u | grep context_ | tr '\n' ' ')" \
    "context_attachment_exists context_attachment_get context_attachment_list context_logs_head context_logs_search context_logs_tail "
plain ', access: everything'
like "a scope that there is not" "$rc $err" "2 .*w.yaml:4:.*unknown access .everything.: must be all, logs, explicit or none"

# What it calls reads through its scope, too: a workflow with a command, which has a token.
cat >peek.yaml <<EOS
name: peek
input: { type: object }
steps:
  - look: { command: [sh, -c, "'$rival' logs r | grep -c line; '$rival' show r >/dev/null && echo run; true"] }
EOS
for row in "none 0" "logs 3" "explicit 3" "all 3 run"; do
    printf 'name: w\nsteps:\n  - before: { command: [sh, -c, "echo a line >&2; echo b line >&2; echo c line >&2"] }\n  - ask: { chat: { provider: oa, prompt: "[[\\"peek\\", {}]]", tools: [./peek.yaml], access: %s } }\n' "${row%% *}" >w.yaml
    rm -f w.db* requests
    run "$rival" exec w.yaml --store w.db --run-id r
    is "${row%% *}: so does a command in a workflow that it calls" "$rc $(told 0 | xargs)" "0 ${row#* }"
done

# ---- states: theirs, or less
state() {
    cat >m.yaml <<EOS
name: m
stages:
  one:
    - { name: gather, agent_id: g, priority: 300 }
    - { name: other, agent_id: g, priority: 200 }
    - { name: judge, agent_id: j, depends_on: { found: { state: gather }, after: { state: other } }, accessibility: $1, resources: { tools: [$all] } }
agents:
  - { id: g, command: [sh, -c, "echo first line >&2; echo second line >&2; echo third line >&2; echo '{\"n\": 7}'"], describe: found it }
  - { id: j, chat: { provider: oa, prompt: '$calls'${2-} } }
EOS
    rm -f w.db* requests
    run "$rival" exec m.yaml --store w.db --run-id r
}
state none
is "a state without access: nothing" "$rc $(offered)" "0 set_outputs"
state logs
is "logs: the log and the list" "$rc $(offered) $(told 1 | jq -r '[.attachments[] | select(.status == "finished") | .state] | sort | join(" ")')" "0 $logs gather other"
like "logs: no result is in it" "$(told 1 | jq -c '[.attachments[] | has("result")] | unique')" '^\[false\]$'
state explicit
is "explicit: as logs; what it depends on is given to it" "$rc $(offered) $(told 3 | jq -c .)" "0 $logs {\"exists\":true}"
like "explicit: it gets none" "$(told 2)" "the scope 'explicit' does not allow context_attachment_get"
state all
is "all: the attachment with its result" "$rc $(offered) $(told 2 | jq -c '[.state, .status, .result, .description]')" "0 ${all//,/} [\"gather\",\"finished\",{\"n\":7},\"found it\"]"
state all ', access: logs'
is "its chat may have less than its state" "$rc $(offered)" "0 $logs"
state logs ', access: all'
is "and not more" "$rc $(offered)" "0 $logs"

# ---- what is set is the result
outputs() {
    printf 'name: w\nsteps:\n  - ask: { chat: { provider: oa, prompt: "${ .input | tojson }", tools: [set_outputs]%s } }\n' "$1" >w.yaml
    rm -f w.db* requests
    run "$rival" exec w.yaml --store w.db --input "$2"
}
outputs '' '[["set_outputs", {"a": 1, "b": "x"}], ["set_outputs", {"b": {"c": null}}]]'
is "what is set is the result" "$rc $(field '.results.ask.result | tojson')" '0 {"a":1,"b":{"c":null}}'
outputs '' '[["nobody", {}]]'
is "without it the text is" "$rc $(field .results.ask.result)" "0 hello"
outputs ', returnType: { type: object, required: [n] }' '[["set_outputs", {"n": 1}]]'
is "it is held to the returnType" "$rc $(field '.results.ask.result | tojson')" '0 {"n":1}'
outputs ', returnType: { type: object, required: [n] }' '[["set_outputs", {"m": 1}]]'
like "and asked for again" "$rc $(field .error.code) $(jq -sr '.[2].body.messages[-1].content' requests)" '1 badAnswer .*does not fit the JSON Schema: .*set_outputs'

# ---- skills
mkdir -p skills/letters/scripts skills/letters/more
cat >skills/letters/SKILL.md <<'EOS'
---
name: letters
description: >
  Counts letters.
---
# Letters
Run scripts/count.sh with a word.
EOS
echo "a, b, c" >skills/letters/more/alphabet.md
printf '#!/bin/sh\nprintf "%%s: %%s" "$1" "${#1}"; cat; pwd >&2\n' >skills/letters/scripts/count.sh
chmod +x skills/letters/scripts/count.sh
echo 'import sys; sys.exit("no such word")' >skills/letters/scripts/fail.py
echo 'sleep 60' >skills/letters/scripts/slow.sh
echo secret >outside.txt
ln -s ../../outside.txt skills/letters/link.txt
ln -s ../.. skills/letters/up
ln -s scripts skills/letters/inner
mkfifo skills/letters/pipe
head -c 300000 /dev/zero | tr '\0' x >skills/letters/long.md
printf '\377\376' >skills/letters/bytes.bin
skill() { # [KEYS] CALLS
    printf 'name: w\nsteps:\n  - ask: { chat: { provider: oa, prompt: "${ .input | tojson }", skills: [%s] } }\n' "$1" >w.yaml
    rm -f w.db* requests
    run "$rival" exec w.yaml --store w.db --run-id r --input "$2"
}
act() { jq -cn --arg a "$1" --arg p "$2" '["letters", {action: $a, path: $p}]'; }
skill ./skills/letters '[["letters", {"action": "readme"}], ["letters", {"action": "reference", "path": "more/alphabet.md"}], ["letters", {"action": "script", "path": "scripts/count.sh", "args": ["hello"], "stdin": " (5)"}], ["letters", {"action": "script", "path": "scripts/fail.py"}]]'
is "a skill is offered with its description" "$rc $(jq -sr '.[0].body.tools[0].function | .name + ": " + .description' requests)" "0 letters: Counts letters."
like "readme" "$(told 0)" "^Run scripts/count.sh with a word."
is "reference" "$(told 1)" "a, b, c"
is "script, with its arguments and its stdin" "$(told 2)" "hello: 5 (5)"
like "a script that fails" "$(told 3)" 'failed with exit code 1: no such word'
run "$rival" logs r --store w.db
like "a script runs in the folder of its skill" "$out" "$(realpath skills/letters)"
bad=(../../outside.txt /etc/passwd link.txt up/outside.txt inner/count.sh more/../more/alphabet.md ./more/alphabet.md more//alphabet.md more pipe "" . .. "more/" long.md bytes.bin nobody.md)
for action in reference script; do
    input=$(for path in "${bad[@]}"; do act $action "$path"; done | jq -sc .)
    skill ./skills/letters "$input"
    n=0
    for path in "${bad[@]}"; do
        like "$action: '$path' is refused" "$rc $(told $n)" "^0 (.*: )?(the path must lead from|the skill has no such file|the file (has more|is no text|is no script))"
        n=$((n + 1))
    done
    unlike "$action: nothing from outside was told" "$(cat requests)" "secret|root:"
done
skill ./skills/letters '[["letters", {"action": "reference", "path": "more/alphabet.md\u0000.txt"}], ["letters", {"action": "eat"}], ["letters", {"action": "script", "path": "scripts/count.sh", "args": "x"}]]'
like "NUL is refused" "$(told 0)" "the path must lead from"
like "another action, too" "$(told 1)" "must be readme, reference or script"
like "and arguments that are no list" "$(told 2)" "must be a list of texts"
skill '{ skill: ./skills/letters, name: l, timeout: 200ms }' '[["l", {"action": "script", "path": "scripts/slow.sh"}]]'
like "a skill has its own name and its own time" "$rc $(told 0)" "0 .*'l' timed out after 200 ms"
mkdir elsewhere
for keys in ./skills/letters '{ skill: ./skills/letters, approve: true }'; do
    printf 'name: w\nsteps:\n  - ask: { chat: { provider: oa, prompt: "${ .input | tojson }", skills: [%s] } }\n' "$keys" >w.yaml
    rm -f w.db* requests
    (cd elsewhere && "$rival" exec ../w.yaml --store ../w.db --config ../rival.yaml --run-id r1 --input '[["letters", {"action": "reference", "path": "more/alphabet.md"}]]' >out.json 2>/dev/null) &
    pid=$!
    if [[ $keys == *approve* ]]; then
        eventually "$rival" signal r1 approve:ask:turn1:call0:letters '{"approved": true}' --store w.db
    fi
    wait $pid
    is "its folder is relative to the workflow's file: $keys" "$? $(told 0)" "0 a, b, c"
done
skill ./skills/nobody '[["nobody", {"action": "readme"}]]'
like "a folder that is not there" "$rc $(told 0)" "0 .*the skill's folder cannot be opened: No such file"
# Parts of its path are exchanged for links to the outside, over and over, while it is read.
mkdir swap && mkdir skills/letters/deep && printf inside >skills/letters/deep/outside.txt && ln -s ../.. swap/link
(while [ ! -e enough ]; do
    mv skills/letters/deep swap/real && cp -P swap/link skills/letters/deep
    rm skills/letters/deep && mv swap/real skills/letters/deep
done) & pid=$!
skill ./skills/letters "$(for _ in $(seq 90); do act reference deep/outside.txt; done | jq -sc .)"
touch enough
wait $pid
is "what is exchanged meanwhile does not lead outside" "$rc $(jq -sr '.[1].body.messages[] | select(.role == "tool").content' requests | grep -vc -e '^inside$' -e 'the path must lead from' -e 'has no such file')" "0 0"
state2='resources: { skills: [./skills/letters] }'
cat >m.yaml <<EOS
name: m
stages: { one: [ { name: judge, agent_id: j, $state2 } ] }
agents: [ { id: j, chat: { provider: oa, prompt: '[["letters", {"action": "readme"}]]' } } ]
EOS
rm -f w.db* requests
run "$rival" exec m.yaml --store w.db
like "a state's skills are its chat's" "$rc $(told 0 | sed -n 6p)" "0 # Letters"
done_testing
