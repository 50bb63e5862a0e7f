#!/usr/bin/env bash
# secrets.sh: secrets go out with attempts, and never into anything that is kept or shown.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
pid='' server=''
cleanup() {
    [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
    [ -z "$server" ] || kill "$server" 2>/dev/null
}
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
secret='s3cr3t/+"key" of mine' other=0123456789
printf '# two secrets\n\nAPI_KEY=%s\nPIN=%s\n' "$secret" "$other" >secrets
chmod 600 secrets
field() { printf %s "$out" | jq -r "$1"; }

# An echo: whatever comes back, in every form a server may choose.
cat >echo.py <<'PY'
import base64, http.server, json, sys, urllib.parse
class Echo(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        key = self.headers.get("X-Key", "")
        status = 500 if self.path.startswith("/fail") else 200
        answer = json.dumps({"key": key, "b64": base64.b64encode(("x" + key).encode()).decode(), "url": urllib.parse.quote(key),
                             "sent": body, "path": self.path, "digits": int("9" + "0123456789"), "ok": bool(key)})
        if status == 500:
            answer = "." * 1015 + key
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status == 200 else "text/plain")
        self.send_header("X-Echo", urllib.parse.quote_plus(key))
        self.end_headers()
        self.wfile.write(answer.encode())
    def log_message(self, *a): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Echo)
print(server.server_port, flush=True)
server.serve_forever()
PY
python3 echo.py >port &
server=$!
eventually test -s port
at=http://127.0.0.1:$(cat port)

cat >slowly.py <<'PY'
import sys, time
for c in sys.argv[1] + "\n":
    sys.stderr.write(c)
    sys.stderr.flush()
    time.sleep(0.01)
PY
cat >all.yaml <<'Y'
name: all
secrets: [API_KEY, PIN]
steps:
  - say:
      command: [sh, -c, 'printf "%s\n" "$1"; for x in "" x xx; do printf "%s%s" "$x" "$1" | base64; done; cat', sh, "${ .secrets.API_KEY }"]
      stdin: "${ {pin: .secrets.PIN, key: .secrets.API_KEY} }"
      description: "${ .result[0:40] }"
  - env: { command: [sh, -c, 'printf "{\"k\": 1%s, \"pid\": 1}" "$PIN"; echo "$PIN" >&2'], env: { PIN: "${ .secrets.PIN }" } }
  - slowly: { command: [python3, slowly.py, "${ .secrets.API_KEY }"] }
  - control:
      command: [sh, -c, 'printf "{\"description\": \"%s\", \"state\": {\"pin%s\": [\"%s\"]}}" "$1" "$1" "$1" >"$RIVAL_CONTROL"', sh, "${ .secrets.PIN }"]
  - http:
      http:
        url: "AT/ok?k=${ .secrets.API_KEY | @uri }"
        headers: { X-Key: "${ .secrets.API_KEY }" }
        body: { pin: "${ .secrets.PIN }", "n": 1 }
  - failing:
      concurrent:
        answer: { http: { url: "AT/fail?${ .secrets.PIN }", method: POST, headers: { X-Key: "${ .secrets.API_KEY }" } } }
        command: { command: [sh, -c, 'echo "no $1" >&2; exit 3', sh, "${ .secrets.API_KEY }"] }
        missing: { command: ["./${ .secrets.PIN }"] }
        jq: { command: [echo, "${ .secrets.API_KEY + 1 }"] }
        url: { http: { url: "http://127.0.0.1:1/${ .secrets.PIN }" } }
        sees: { command: [echo, "${ .secrets.PIN | length }", "${ keys | tojson }", "${ . as $x | $x.secrets | tojson }"] }
      onFailure: collect
Y
sed -i "s|AT/|$at/|" all.yaml
run "$rival" exec all.yaml --run-id all --secrets secrets --json
is "it runs" "$rc" 0
is "as it stands, as base64, as JSON" "$(field .results.say.result)" '***
***
eH***Q==
eHh***U=
{"pin":"***","key":"***"}'
is "a description of it" "$(field .results.say.state.description | head -1)" '***'
is "a number" "$(field '.results.env.result | tojson')" '{"k":"***","pid":1}'
is "the state and description of a command" "$(field '.results.control.state | tojson')" '{"pin***":["***"],"description":"***"}'
is "an answer" "$(field '.results.http.result.data | [.key, .b64, .url, (.sent | fromjson | .pin), .digits, .ok] | join(" ")')" \
    '*** eH***Q== *** *** *** true'
is "its headers" "$(field '.results.http.result.headers["x-echo"]')" '***'
is "it was sent: the server knew" "$(field .results.http.result.data.path)" '/ok?k=***'
is "who takes the whole has no secrets" "$(field .results.failing.result.sees.result)" \
    '10 ["env","input","lastStep","run","steps"] null'
"$rival" logs all >logs 2>&1
like "stderr, as it came" "$(cat logs)" 'slowly +\*\*\*$'
"$rival" export all all.jsonl 2>/dev/null
"$rival" show all >shown 2>&1
"$rival" show all --json >>shown 2>&1
printf '%s\n%s\n' "$out" "$err" >printed
forms() { # the secret in each form, and beginnings of it
    printf '%s\n' "$secret" "$other" 's3cr3t/' '01234567' 's3cr3t%2F%2B%22key' 's3cr3t\\/+' 's3cr3t/+\"key'
    for before in '' x xx; do printf %s%s "$before" "$secret" | base64 -w0 | cut -c$((${#before} + 2))-24; done
    for before in '' x xx; do printf %s%s "$before" "$other" | base64 -w0 | cut -c$((${#before} + 2))-12; done
}
forms >forms
is "there is something to look at" "$(grep -alF '***' rival.db all.jsonl logs shown printed | wc -l)" 5
is "nothing of it is in the store, its log, an export, or shown" "$(grep -aclFf forms rival.db* all.jsonl logs shown printed)" ""

# ------------------------------------------------------------------------------ where they come from
chmod 644 secrets
run "$rival" exec all.yaml --run-id no --secrets secrets
is "a file that others may read is refused" "$rc" 2
like "… and says why" "$err" "others may read or change the secrets file 'secrets' \(mode 644\): chmod 600 it"
chmod 600 secrets
printf 'API_KEY=x\nno equals sign, but hunter2-secret\n' >bad
chmod 600 bad
run "$rival" exec all.yaml --secrets bad
like "a bad line is named by its number" "$err" "bad:2: a line must be NAME=value"
unlike "… and not shown" "$err" hunter2
run "$rival" exec all.yaml --secrets nowhere
like "a file that is not there" "$rc $err" "2 .*cannot read the secrets file 'nowhere'"
run env -u API_KEY -u PIN "$rival" exec all.yaml
is "without values nothing runs" "$rc" 2
like "… and all are named" "$err" "API_KEY has no value, PIN has no value"
run env API_KEY="$secret" PIN=1234567 "$rival" exec all.yaml
like "a short one is refused" "$rc $err" "2 .*PIN has fewer than 8 bytes"
printf 'name: one\nsecrets: [A_KEY]\nsteps:\n  - a: { command: [sh, -c, "[ $1 = from-the-file ]", sh, "${ .secrets.A_KEY }"] }\n' >one.yaml
printf 'A_KEY=from-the-file' >one.secrets
chmod 600 one.secrets
run env A_KEY=from-the-environment "$rival" exec one.yaml --secrets one.secrets
is "the file comes before the environment" "$rc" 0
run env A_KEY=from-the-file "$rival" exec one.yaml
is "the environment does" "$rc" 0

# ----------------------------------------------------------------------------------- after a crash
printf 'name: two\nsecrets: [A_KEY]\nsteps:\n  - a: { command: [sh, -c, "echo $1 >>sent; [ -e go ] || sleep 60", sh, "${ .secrets.A_KEY }"] }\n' >two.yaml
A_KEY=the-old-value "$rival" exec two.yaml --run-id crash >/dev/null 2>&1 &
pid=$!
eventually grep -q old sent
kill -9 "$pid"
wait "$pid" 2>/dev/null
pid=
touch go
run env -u A_KEY "$rival" exec two.yaml --run-id crash
is "without its secret the run waits" "$rc" 4
run env -u A_KEY "$rival" why crash --json
is "… as it was" "$(field .status)" running
run env A_KEY=the-new-value "$rival" exec two.yaml --run-id crash
is "a retry after a crash sends the value of now" "$rc $(cat sent)" "0 the-old-value
the-new-value"

# -------------------------------------------------------------------------------------------- serve
mkdir flows
cp one.yaml flows
run timeout 20 "$rival" serve flows --listen 127.0.0.1:0 --secrets bad --store s.db
is "serve refuses a bad file" "$rc" 2
"$rival" serve flows --listen 127.0.0.1:0 --secrets one.secrets --store s.db >serve.out 2>&1 &
pid=$!
ok "serve takes the file" eventually "$rival" workflows --store s.db
run "$rival" run one --store s.db --wait
is "… and sends what is in it" "$rc" 0
kill "$pid"
wait "$pid"
"$rival" serve flows --listen 127.0.0.1:0 --store s2.db >serve.out 2>&1 &
pid=$!
ok "a workflow without its secrets is served all the same" eventually grep -q 'workflow registered.*one' serve.out
ok "… with a warning" eventually grep -q '"level":"warn".*workflow cannot be started.*A_KEY has no value' serve.out
is "… and nothing worse" "$(grep -c '"level":"error"' serve.out)" 0
ok "it is served" eventually grep -q '"serving"' serve.out
run "$rival" workflows --store s2.db --json
like "the list says why it cannot be started" "$out" '"cannotStart":"its secrets cannot be used: A_KEY has no value; set them in'
run "$rival" run one --store s2.db
like "a run of it is refused" "$rc $err" "2 .*workflow 'one' cannot be started: its secrets cannot be used: A_KEY has no value"
kill "$pid"
wait "$pid"

# A run that began with its secret, and a server that has lost it: it waits, and goes on with the next one that has it.
cp two.yaml flows
A_KEY=the-old-value "$rival" serve flows --listen 127.0.0.1:0 --store s3.db >serve.out 2>&1 &
pid=$!
ok "a server has the secret" eventually grep -q '"serving"' serve.out
ok "it runs it" "$rival" run two --run-id kept --store s3.db
ok "… with its secret" eventually grep -q old flows/sent
kill -9 "$pid"
wait "$pid" 2>/dev/null
touch flows/go
"$rival" serve flows --listen 127.0.0.1:0 --store s3.db >serve.out 2>&1 &
pid=$!
waits() { "$rival" why kept --store s3.db --json | jq -en 'input | .waits[0] | .reason == "worker" and .secret == "A_KEY"' >/dev/null; }
ok "without it the run waits, and why says for what" eventually waits
"$RIVAL_BUILD/tests/print_openapi" >openapi.json
is "… with nothing that /openapi.json does not describe" "$("$rival" why kept --store s3.db --json |
    jq -c --slurpfile api openapi.json '[.waits[] | keys[]] - ($api[0].components.schemas.Wait.properties | keys)')" '[]'
"$rival" why kept --store s3.db >why.out
like "… in words" "$(head -n 1 why.out)" "'a' waits for a value of the secret A_KEY, for "
like "… and what to do" "$(tail -n 1 why.out)" '=> set A_KEY in the environment of the engine or in its --secrets file, and restart it'

kill "$pid"
wait "$pid"
A_KEY=the-new-value "$rival" serve flows --listen 127.0.0.1:0 --store s3.db >serve.out 2>&1 &
pid=$!
ok "the next server has it" eventually grep -q '"serving"' serve.out
run "$rival" wait kept --store s3.db --timeout 60s
is "with it, it goes on" "$rc $(cat flows/sent)" "0 the-old-value
the-new-value"
kill "$pid"
wait "$pid"
pid=
done_testing
