#!/usr/bin/env bash
# chat-files.sh: files in prompts (`attach`), with the scripted endpoint (model.py), whose model `sees` answers what it was
# sent: from disk, as base64, from saveTo, in workflows and manifests; limits, refusals, and what is told of them.
. "$(dirname "$0")/tap.sh"
start_model
cat >rival.yaml <<EOF
providers:
  oa: { kind: openai, baseUrl: "http://127.0.0.1:$port", model: sees }
  an: { kind: anthropic, baseUrl: "http://127.0.0.1:$port", model: sees }
EOF
mkdir flows
printf '\x89PNG\r\n\x1a\n12345' >flows/photo.png
printf '%%PDF-1.4 x' >flows/bill.pdf
printf 'one\ntwo' >flows/notes.txt
png=$(sha256sum flows/photo.png | cut -c1-8)
pdf=$(sha256sum flows/bill.pdf | cut -c1-8)
field() { printf %s "$out" | jq -r "$1"; }
# chat PROVIDER ATTACH [STEPS-BEFORE] [MORE-OF-CHAT]: its outcome is in $out.
chat() {
    printf 'name: w\nsteps:\n%s  - ask: { chat: { provider: %s, prompt: go, attach: %s%s } }\n' "${3:-}" "$1" "$2" "${4:-}" >flows/w.yaml
    rm -f w.db* requests
    run "$rival" exec flows/w.yaml --store w.db --config rival.yaml --run-id r1 --input "{\"png\":\"$(base64 -w0 flows/photo.png)\"}"
}
unsent() { test -e requests || echo nothing sent; }

chat oa '[photo.png, bill.pdf, notes.txt]'
is "openai: an image, a file and a text" "$rc $(field .results.ask.result)" \
    "0 image_url image/png - $png; file application/pdf bill.pdf $pdf; text notes.txt:
one
two; text go"
run "$rival" audit r1 --store w.db
like "audit names them, with their hashes" "$(tr '\n' ' ' <<<"$out")" \
    "user +go .*file +photo.png, image/png, 13 bytes, sha256 $png.*bill.pdf, application/pdf, 10 bytes.*notes.txt, text/plain, 7 bytes"
run "$rival" audit r1 --store w.db --json
is "also as JSON" "$(jq -rs '[.. | .attached? // empty][0] | map(.name + " " + (.bytes | tostring)) | join(", ")' <<<"$out")" "photo.png 13, bill.pdf 10, notes.txt 7"
chat an '[photo.png, bill.pdf, { file: notes.txt, type: text/markdown, name: my notes }]'
is "anthropic: an image and documents" "$rc $(field .results.ask.result)" \
    "0 image image/png - $png; document application/pdf bill.pdf $pdf; document text/plain my notes one
two; text go"

chat an '[{ data: "${ .steps.read.result }" }]' '  - read: { command: [cat, photo.png], output: base64 }
'
is "base64 of a step" "$rc $(field .results.ask.result)" "0 image image/png - $png; text go"
chat oa '[{ data: "data:image/png;base64,${ .input.png }" }]'
is "a data URL" "$rc $(field .results.ask.result)" "0 image_url image/png - $png; text go"
chat an '[{ data: "${ .steps.folded.result }", name: folded }]' '  - folded: { command: [base64, -w, "4", bill.pdf] }
'
is "base64 in lines" "$rc $(field .results.ask.result)" "0 document application/pdf folded $pdf; text go"
chat oa '["${ .steps.got.result }", { file: "${ .steps.got.result }", name: again.pdf }]' '  - got: { command: [cat, bill.pdf], saveTo: saved.pdf }
'
is "what saveTo returned" "$rc $(field .results.ask.result)" "0 file application/pdf saved.pdf $pdf; file application/pdf again.pdf $pdf; text go"
mkdir flows/sub
cp flows/bill.pdf flows/sub/
cp flows/bill.pdf 'flows/sub/my "bill".pdf'
chat oa '[sub/bill.pdf, "sub/my \"bill\".pdf", { file: sub/bill.pdf, name: "${ .input.png[0:0] }" }]'
is "the name of a file in a folder" "$rc $(field .results.ask.result)" \
    "0 file application/pdf bill.pdf $pdf; file application/pdf my \"bill\".pdf $pdf; file application/pdf bill.pdf $pdf; text go"
chat oa '"${ [{data: .input.png}, {data: .input.png, name: \"b.png\"}] }"'
is "a list that is computed" "$rc $(field '.results.ask.result | split("; ") | length')" "0 3"
chat oa '[]' '' ', model: plain'
is "none" "$rc $(jq -c '.body.messages[0].content' requests)" '0 "go"'

cat >flows/change.yaml <<'EOF'
name: change
steps: [ { go: { command: [sh, -c, "printf longer >>notes.txt"] } } ]
EOF
chat oa '[photo.png]' '' ', model: sees-twice, tools: [change]'
is "each request has them" "$rc $(field .results.ask.result) $(jq '.body.messages[0].content | length' requests | tr '\n' ' ')" "0 image_url image/png - $png; text go 2 2 "
chat oa '[notes.txt]' '' ', model: sees-twice, tools: [change]'
is "one that changes in the midst of a conversation fails it" "$rc $(field .error.code) $(wc -l <requests)" "1 badAttachment 1"
like "and says so" "$(field .error.message)" "has changed since the conversation began"

# manifest ACCESS: the chat of a state that depends on another one's picture.
manifest() {
    cat >flows/m.yaml <<EOF
name: m
stages:
  look:
    - { name: shoot, agent_id: camera, priority: 200 }
    - { name: judge, agent_id: eye, accessibility: $1, depends_on: { picture: { state: shoot } }, parameters: { user_prompt: see } }
agents:
  - { id: camera, command: [cat, photo.png], output: base64, describe: a photo }
  - { id: eye, chat: { provider: an, attach: [{ data: "\${ .inputs.picture }", name: shot }] } }
EOF
    rm -f w.db* requests
    run "$rival" exec flows/m.yaml --store w.db --config rival.yaml
}
for access in explicit all; do
    manifest $access
    is "a state's chat sees what it depends on ($access)" "$rc $(field .results.look.result.judge.result)" "0 image image/png - $png; text see

picture: a photo"
done
manifest none
is "but not without access" "$(field .results.look.result.judge.status) $(unsent)" "failed nothing sent"
rm flows/m.yaml

head -c 10485761 /dev/zero | tr '\0' x >flows/long.txt
printf 'PK\3\4\0' >flows/a.zip
: >flows/empty.txt
mkfifo flows/pipe
while IFS='|' read -r files words; do
    chat oa "$files"
    like "refused before anything is sent: $files" "$rc $(field '[.error.code, .error.message] | join(" ")') $(unsent)" "^1 badAttachment .*$words.* nothing sent$"
done <<'ROWS'
[nowhere.png]|file 1 of 'attach' \(nowhere.png\): it cannot be read: No such file
[photo.png, a.zip]|file 2 of 'attach' \(a.zip\): it is none of what models take: images \(png
[{ file: bill.pdf, type: image/png }]|its type is said to be image/png, but it is application/pdf
[{ data: no! }]|its 'data' is not base64
[{ data: "${ null }" }]|neither a 'file' nor 'data'
["${ .input.nothing }"]|must be the path of a file, or \{file\} or \{data\}, and came to null
[long.txt]|it has more than 10 MiB
[empty.txt]|it is empty
[pipe]|it is not a file
[.]|it is not a file
"${ [range(21)] }"|has 21 files: at most 20
"${ 7 }"|'attach' must be a list, and came to 7
ROWS
head -c 9000000 flows/long.txt >flows/nine.txt
chat oa '[nine.txt, nine.txt, nine.txt, nine.txt]'
is "all together are bounded by the size of a request" "$rc $(field .error.code) $(unsent)" "1 tooLarge nothing sent"
chat an '[long2.txt]' '  - cut: { command: [head, -c, "10485760", long.txt], saveTo: long2.txt }
' ', model: plain'
is "a file of the most bytes is sent" "$rc $(jq '.body.messages[0].content[0].source.data | length' requests)" "0 10485760"

while IFS='|' read -r files words; do
    printf 'name: bad\nsteps:\n  - ask: { chat: { provider: p, prompt: x, attach: %s } }\n' "$files" >bad.yaml
    run "$rival" check bad.yaml
    like "check refuses $files" "$rc $(tr '\n' ' ' <<<"$out$err")" "^1 .*bad.yaml:3:.*$words"
done <<'ROWS'
photo.png|invalid attach 'photo.png': must be a list of files
[7]|a file of 'attach' is a path, or a mapping with 'file' or 'data'
[{ name: x }]|has either 'file' or 'data'
[{ file: a, data: b }]|has either 'file' or 'data'
[{ file: a, typ: b }]|unknown key 'typ' of a file of 'attach'; did you mean 'type'
[{ file: a, type: video/mp4 }]|models take no 'video/mp4': images
ROWS

done_testing
