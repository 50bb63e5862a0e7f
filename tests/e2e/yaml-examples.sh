#!/usr/bin/env bash
# yaml-examples.sh: the workflows of examples/yaml are good, run to their end, do what they say, clean up,
# and go on after a kill -9 without leaving a process behind.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
examples=$tmp/yaml
cp -r "$RIVAL_SOURCE/examples/yaml" "$examples"
rm -rf "$examples"/*/out
cd "$examples" || exit 1
stores=$tmp/stores
mkdir "$stores"

# exec_file FILE ARGUMENT...: run it in a store of its own; the outcome is in $out.
exec_file() {
    local file=$1
    shift
    run "$rival" exec "$file" --store "$stores/$(basename "$file" .yaml).db" "$@"
}

# get EXPRESSION: of the outcome `r` (a Python expression; `res` is r["results"]).
get() {
    printf %s "$out" | python3 -c '
import json, sys
r = json.load(sys.stdin)
res = r["results"]
value = eval(sys.argv[1])
print(value if isinstance(value, str) else json.dumps(value))' "$1"
}

leftovers() { # files that were not there, but for the products
    (cd "$examples" && find . -type f | sort | grep -v '/out/' | comm -13 "$tmp/files" -)
}
(cd "$examples" && find . -type f | sort) >"$tmp/files"

run "$rival" check "$examples"
is "all of them are good" "$rc:$err" "0:"
is "each folder has its workflow, and a row in the README" \
    "$(ls -d */ | tr -d /)" "$(sed -nE 's/^\| \[([a-z]+)\].*/\1/p' README.md | sort)"
for folder in */; do
    name=${folder%/}
    like "$name tells at its top what it is" "$(head -n 1 "$name/$name.yaml")" '^# [A-Z].*[.!]$'
    like "how to run it" "$(sed -n '2,/^[^#]/p' "$name/$name.yaml")" "^#   rival exec $name.yaml"
    like "and what it shows" "$(sed -n '2,/^[^#]/p' "$name/$name.yaml")" '^# Shows: '
    like "and it is tried below" "$(cat "$here/yaml-examples.sh")" "exec_file $name/$name.yaml"
done

# mirror, of a server of its own
mkfifo "$tmp/served"
python3 -u -m http.server --bind 127.0.0.1 --directory mirror/pages 0 >"$tmp/served" 2>/dev/null &
server=$!
cleanup() { kill "$server" 2>/dev/null; }
read -r line <"$tmp/served"
port=$(expr "$line" : '.* port \([0-9]*\)')
exec_file mirror/mirror.yaml --input "{\"from\": \"http://127.0.0.1:$port\"}"
is "mirror completes" "$rc $(get 'r["status"]')" "0 completed"
is "it says what it kept, and what was not there" "$(get 'res["summary"]["result"]')" \
    '{"kept": ["oak.txt", "elm.txt"], "missing": ["ash.txt"]}'
ok "the pages are as they were" sh -c 'for p in oak elm; do cmp mirror/pages/$p.txt mirror/out/$p.txt || exit 1; done'
kill "$server"
wait "$server" 2>/dev/null
exec_file mirror/mirror.yaml --input "{\"from\": \"http://127.0.0.1:$port\"}"
is "where nobody serves it fails" "$rc $(get 'r["failedStep"]') $(get 'r["error"]["code"]')" "1 index refused"

# backup
exec_file backup/backup.yaml --run-id monday
is "backup completes" "$rc $(get 'r["status"]')" "0 completed"
is "it says what it made" "$(get 'res["summary"]["result"]["archive"] + " %d" % res["summary"]["result"]["files"]')" \
    "out/backup-monday.tar.gz 3"
ok "the archive has the folder in it" sh -c \
    'mkdir "$0/back" && tar -xzf backup/out/backup-monday.tar.gz -C "$0/back" && diff -r backup/photos "$0/back"' "$tmp"
for day in tuesday wednesday thursday; do exec_file backup/backup.yaml --run-id "$day"; done
is "the newest three stay" "$(ls backup/out | xargs)" \
    "backup-thursday.tar.gz backup-tuesday.tar.gz backup-wednesday.tar.gz"
printf '#!/bin/sh\necho changed\n' >backup/checksums-of-archive
exec_file backup/backup.yaml --run-id friday
is "what does not compare is an error" "$rc $(get 'r["failedStep"]')" "1 verdict"
like "that says why" "$(get 'r["error"]["message"]')" 'what was packed is not what is there'
is "and leaves no archive that would lie" "$(ls backup/out | grep -c friday)" 0

# build
exec_file build/build.yaml
is "build completes" "$rc $(get 'r["status"]')" "0 completed"
is "it compiles everything, and the tests pass" "$(get 'res["verdict"]["result"]')" \
    '{"compiled": 4, "passed": 3, "failed": []}'
is "the program works" "$(build/out/calc '2*3+4')" 10
printf '1+1\n3\n' >build/tests/wrong.test
exec_file build/build.yaml
is "a failing test is told, and does not hide the others" "$rc $(get 'res["verdict"]["result"]')" \
    '0 {"compiled": 4, "passed": 3, "failed": ["tests/wrong.test"]}'
is "with the reason at the test" \
    "$(get '[i["results"]["test"]["state"] for i in res["tests"]["result"]["iterations"]][-1]["description"]')" "1+1 is not 2"
echo 'int main(void) { return }' >build/src/sum.c
exec_file build/build.yaml
is "a file that does not compile fails the build" "$rc $(get 'r["failedStep"]')" "1 compile"
like "with what the compiler said" "$(get 'r["error"]["message"]')" 'error: expected expression'
is "no object file stays behind" "$(ls build/out)" calc
rm build/tests/wrong.test

# convert
exec_file convert/convert.yaml
is "convert completes, though a note is bad" "$rc $(get 'r["status"]')" "0 completed"
is "it says which" "$(get 'res["summary"]["result"]')" \
    '{"completed": ["bread.txt", "garden.txt", "unfinished.txt"], "failed": ["empty.txt"]}'
is "the unfinished one took a second attempt" \
    "$(get 'res["pages"]["result"]["iterations"][3]["results"]["page"]["state"]["description"]')" "3 lines, attempt 2"
is "the pages are pages" "$(cat convert/out/garden.html)" '<h1>The garden</h1>

<p>Plant the oak before winter.</p>
<p>Roses &amp; ivy: cut back &lt;50 cm.</p>'
touch -d '1 hour ago' convert/notes/*
exec_file convert/convert.yaml
is "the second time there is nothing to do" "$rc $(get 'res["summary"]["result"]')" \
    '0 {"failed": ["empty.txt"], "skipped": ["bread.txt", "garden.txt", "unfinished.txt"]}'

# nightly
mkdir -p nightly/out
exec_file nightly/nightly.yaml --run-id good
is "nightly completes, with what failed collected" "$rc $(get 'res["verdict"]["result"]')" \
    '0 {"asked": "completed", "statistics": "failed", "bad": ["links"]}'
is "it has cleaned up" "$(ls nightly/out) $(cat nightly/out/ended)" "ended completed"
exec_file nightly/nightly.yaml --run-id bad --input '{"fail": true}'
is "after a failure, too" "$rc $(ls nightly/out | tr '\n' ' ')$(cat nightly/out/ended)" "1 ended failure failed"
like "and it has told why" "$(cat nightly/out/failure)" "^report failed: "

# healthy
gone() { ! kill -0 "$1" 2>/dev/null; }
exec_file healthy/healthy.yaml
is "healthy completes, and has stopped its service" \
    "$rc $(get '[res["verdict"]["result"][k] for k in ("service", "answer")]')" '0 ["cancelled", 42]'
like "it has looked more than once" "$(get 'res["verdict"]["result"]["looks"] > 1')" true
is "the service has cleaned up" "$(ls healthy/out)" ""

# healthy, killed: its service goes with it, and the same run goes on.
input='{"readyAfter": 1, "every": 20}'
"$rival" exec healthy/healthy.yaml --store "$stores/killed.db" --run-id killed --input "$input" >/dev/null 2>&1 &
engine=$!
ok "the service is there" eventually test -s healthy/out/pid
service=$(cat healthy/out/pid)
ok "it runs" kill -0 "$service"
kill -9 "$engine"
wait "$engine" 2>/dev/null
ok "a killed engine leaves no service behind" eventually gone "$service"
run "$rival" exec healthy/healthy.yaml --store "$stores/killed.db" --run-id killed --input "$input"
is "the run goes on" "$rc $(get '[r["runId"], r["status"], res["verdict"]["result"]["answer"]]')" '0 ["killed", "completed", 42]'
is "and no command is left" "$(ls -l /proc/[0-9]*/cwd 2>/dev/null | grep -F "$examples/")" ""

# report
exec_file report/report.yaml
is "report completes" "$rc $(get 'res["write"]["result"]')" "0 out/report.md"
is "the page is right" "$(cat report/out/report.md)" '# Sales

8 sales, 422 in all.

| region | units | revenue | share |
|---|---:|---:|---:|
| north | 12 | 164 | 39 % |
| south | 51 | 150 | 36 % |
| west | 21 | 108 | 26 % |

## Best sellers

1. tea: 34
2. spoons: 30
3. cups: 16'
printf 'date,region,product,units,price\n2024-03-01,north\n' >"$tmp/bad.csv"
exec_file report/report.yaml --input "{\"csv\": \"$tmp/bad.csv\"}"
is "a line that lacks columns fails it" "$rc $(get 'r["failedStep"]')" "1 rows"
like "and is named" "$(get 'r["error"]["message"]')" 'bad.csv:2: 2 columns, not 5'

# order
basket='{"customer": "Ada", "items": [{"name": "kettle", "price": 40}, {"name": "cup", "price": 6, "count": 30}]}'
exec_file order/order.yaml --run-id one --input "$basket"
is "order completes" "$rc $(get 'r["status"]')" "0 completed"
is "everything was done" "$(get 'res["thanks"]["result"]')" \
    '{"text": "Thank you, Ada!", "receipt": "R-1", "boxes": ["1 x kettle", "30 x cup"], "days": 3}'
is "it is dear: insured, and with a gift" "$(get '[res["insurance"]["result"]["taken"], res["gift"]["status"]]')" '["then", "completed"]'
exec_file order/order.yaml --run-id one --input "$basket"
is "the same run again is the same outcome" "$rc $(get 'res["thanks"]["result"]["receipt"]')" "0 R-1"
is "and nothing was charged twice" "$(wc -l <order/out/ledger.csv)" 1
exec_file order/order.yaml --run-id two --input '{"customer": "Bob", "items": [{"name": "spoon", "price": 1}]}'
is "a small one is neither" "$rc $(get '[res["insurance"]["result"]["taken"], res["gift"]["status"]]')" '0 ["else", "skipped"]'
exec_file order/order.yaml --run-id three --input '{"customer": "Eve", "card": "stolen", "items": [{"name": "tv", "price": 900}]}'
is "a stolen card fails it at once" "$rc $(get 'r["failedStep"]')" "1 pay"
like "and the handler says sorry" "$(cat order/out/apology.txt)" '^Dear Eve, we are sorry: the card is stolen'
exec_file order/order.yaml --run-id four --input '{"customer": "", "items": []}'
unlike "a bad input is no run" "$rc" '^0$'
like "each violation is told: customer" "$out$err" '/customer'
like "and items" "$out$err" '/items'

# order, killed between the charge and our note of it: the bank books it once.
cp -r order "$tmp/order" && rm -rf "$tmp/order/out"
cat >"$tmp/order/bank" <<BANK
#!/bin/sh
"$examples/order/bank" "\$@"
[ "\$1" = authorise ] || [ -e "$tmp/charged" ] || { touch "$tmp/charged"; sleep 60; }
BANK
(cd "$tmp" && exec "$rival" exec order/order.yaml --store "$stores/order-killed.db" --run-id five --input "$basket") >/dev/null 2>&1 &
engine=$!
ok "the bank has booked" eventually test -e "$tmp/charged"
kill -9 "$engine"
wait "$engine" 2>/dev/null
run "$rival" exec "$tmp/order/order.yaml" --store "$stores/order-killed.db" --run-id five --input "$basket"
is "killed after the charge, it goes on" "$rc $(get 'res["thanks"]["result"]["receipt"]')" "0 R-1"
is "the bank was asked twice and booked once" "$(wc -l <"$tmp/order/out/ledger.csv")" 1

# deploy
printf 'DEPLOY_KEY=not-a-real-key\n' >"$tmp/deploy.secrets"
chmod 600 "$tmp/deploy.secrets"
exec_file deploy/deploy.yaml --secrets "$tmp/deploy.secrets"
is "deploy sends what it packed, with its key" "$rc $(get 'res["send"]["result"]')" "0 sent with ***"
ok "the pack is there" tar -tf deploy/out/deployed.tar site/index.html
unlike "nobody is shown the key" "$out$err" not-a-real-key
is "and the store does not have it" "$(cat "$stores"/deploy.db* | grep -ac not-a-real-key)" 0

# approval
exec_file approval/approval.yaml --input '{"patience": "50ms"}'
is "nobody answers: held back" "$rc $(get '[res["answer"]["result"]["by"], res["decide"]["result"]["taken"]]')" '0 ["nobody", "else"]'
release="exec approval/approval.yaml --store $stores/release.db --run-id release-7"
waits() { "$rival" why release-7 --store "$stores/release.db" | grep -q "signal 'approval'"; }
"$rival" $release --input '{"patience": "1h"}' >/dev/null 2>&1 &
engine=$!
ok "the run waits for somebody" eventually waits
kill -INT "$engine"
wait "$engine"
is "Ctrl-C ends the process, not the run" "$?" 130
run "$rival" signal release-7 approval '{"approved": "yes"}' --store "$stores/release.db"
is "an answer that is none is refused" "$rc" 1
ok "the answer comes while nobody is there" \
    "$rival" signal release-7 approval '{"approved": true, "by": "Ada"}' --store "$stores/release.db"
run "$rival" $release
is "the run goes on with it, and releases" "$rc $(cat approval/out/releases)" "0 version 1.0, approved by Ada"
"$rival" exec approval/approval.yaml --store "$stores/release.db" --run-id release-8 \
    --input '{"patience": "1h", "version": "1.1"}' >"$stores/second.out" 2>/dev/null &
engine=$!
waits() { "$rival" why release-8 --store "$stores/release.db" | grep -q "signal 'approval'"; }
ok "another one waits" eventually waits
ok "the answer comes from a second terminal" \
    "$rival" signal release-8 approval '{"approved": false, "by": "Bob"}' --store "$stores/release.db"
wait "$engine"
is "and is acted upon where the run is" "$? $(jq -r '[.results.answer.result.by, .results.decide.result.taken] | join(" ")' "$stores/second.out")" \
    "0 Bob else"

is "nothing is left behind but the products" "$(leftovers | grep -v -e '/tests/wrong.test')" ""

# The example of the specification (as check.sh has it), with commands and a server that stand in, and C files that
# have the function it calls and the workflow it nests. Only the port is another, and the rest shorter.
mkdir "$tmp/tree" && cd "$tmp/tree" || exit 1
cat >server.py <<'PY'
import http.server, json, os
class Chop(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_POST(self):
        tree = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["tree"]
        Chop.asked += 1
        good = self.path == "/chop" and Chop.asked > 1 # the first time it is out of order
        answer = json.dumps({"pieces": 10, "tree": tree}).encode()
        self.send_response(200 if good else 503)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Chop)
open("port.new", "w").write(str(server.server_address[1]))
os.rename("port.new", "port")
server.serve_forever()
PY
python3 server.py &
server=$!
cleanup() { kill "$server" 2>/dev/null; }
ok "a server stands in" eventually test -s port
awk '/<<.YAML.$/ { inside = 1; next } /^YAML$/ { exit } inside' "$here/check.sh" |
    sed -e "s|127.0.0.1:8080|127.0.0.1:$(cat port)|" -e 's|delay: 5s|delay: 50ms|' >tree.yaml
cat >pay.c <<'C'
#include <rival/rival.h>
static int charge(rv_ctx *c) { return rv_return(c, "{s:b}", "paid", 1); }
RV_WORKFLOW("payment", .steps = RV_STEPS(RV_STEP(charge)))
C
cat >finish.c <<'C'
#include <rival/rival.h>
static int finishTree(rv_ctx *c) { return rv_return_json(c, rv_json(c, ".steps.sum.result.pieces")); }
RV_WORKFLOW("finishing", .steps = RV_STEPS(RV_STEP(finishTree)))
C
run "$rival" check --load tree.yaml
is "a YAML file may nest a workflow of a C file" "$rc:$(grep -c ^ok <<<"$out")" "0:2"
script() { # NAME: what it does is on stdin
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}
script find-tree <<<'echo "{\"id\": \"$1-123\", \"branches\": [1, 2, 3, 4, 5]}"'
script alert <<<'echo told'
script saw <<<'echo "plank $1"'
script email <<<'echo sent'
script sms <<<'echo "no credit" >&2; exit 1'
script look <<<'echo x >>looks; echo "{\"done\": $([ $(wc -l <looks) -ge 3 ] && echo true || echo false)}"'
script tell-team <<<'echo "the tree failed" >told'
exec_file tree.yaml --input '{"treeType": "oak"}'
is "the example of the specification runs" "$rc $(get 'r["status"]')" "0 completed"
is "chopped at the second attempt" "$(get '[res["chopTree"]["state"]["description"], res["sum"]["result"]["pieces"]]')" '["Chopped oak-123", 10]'
is "told, as it is an oak" "$(get 'res["alert"]["result"]')" told
is "sawn, in order" "$(get '[i["results"]["saw"]["result"] for i in res["planks"]["result"]["iterations"]]')" \
    '["plank 1", "plank 2", "plank 3", "plank 4", "plank 5"]'
is "a message that fails is collected" "$(get '[res["notify"]["status"]] + [c["status"] for c in res["notify"]["result"].values()]')" \
    '["completed", "completed", "failed"]'
is "paid" "$(get '[res["decide"]["result"]["taken"], res["decide"]["result"]["results"]["pay"]["result"]["paid"]]')" '["then", true]'
is "a function of a C file has ended it" "$(get 'res["finish"]["result"]')" '10'
is "looked for three times" "$(get 'len(res["poll"]["result"]["iterations"])')" 3
is "and nobody had to be told" "$(ls told 2>/dev/null)" ""
exec_file tree.yaml --input '{"treeType": "pine"}'
is "another tree is no alert" "$rc $(get 'res["alert"]["status"]')" "0 skipped"
script find-tree <<<'echo "no tree here" >&2; exit 1'
exec_file tree.yaml --input '{"treeType": "oak"}'
is "without a tree it fails" "$rc $(get 'r["failedStep"]')" "1 findTree"
is "and the team is told" "$(cat told)" "the tree failed"
cd "$examples" || exit 1

# As `make run` serves them: the first thing a newcomer sees.
line=$(sed -n 's/^\t@\(.*rival serve examples.*\)/\1/p' "$RIVAL_SOURCE/Makefile")
like "make run gives the examples their secret" "$line" '^DEPLOY_KEY='
folders=$(printf '%s' "$line" | grep -o 'examples[a-z/]*')
cd "$RIVAL_SOURCE" || exit 1
like "it serves TypeScript, too" "$folders" '^examples/typescript/workflows$'
[ -f sdk/node/dist/.built ] || folders=${folders/examples\/typescript\/workflows/} # as it does where Node.js is missing
# shellcheck disable=SC2086  # several folders
DEPLOY_KEY=not-a-real-key timeout 60 "$rival" serve $folders --store "$stores/run.db" --listen none 2>"$stores/serve.err" &
pid=$!
ok "they are served" eventually grep -q '"serving"' "$stores/serve.err"
is "without an error or a warning" "$(grep -E '"level":"(warn|error)"' "$stores/serve.err")" ""
kill "$pid"
wait "$pid"

done_testing
