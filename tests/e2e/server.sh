#!/usr/bin/env bash
# server.sh: rival serve over HTTP: the way a person and a program meet it, and strangers.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
pid=
locker=
drip=
cleanup() { [ -z "$pid$locker$drip" ] || kill -9 $pid $locker $drip 2>/dev/null; }
serve() { # ARGS...: until it is ready; then $url, $port
    : >log
    "$rival" serve flows --store s.db --log-format json "$@" >serve.out 2>log </dev/null &
    pid=$!
    eventually grep -q '"serving"' log || return 1
    url=$(head -n 1 serve.out) port=${url##*:}
}
stop() {
    kill "-$1" "$pid"
    wait "$pid"
    rc=$?
    pid=
}
get() { curl -sS --max-time 60 "$@"; }
status() { get -o /dev/null -w '%{http_code}' "$@"; }
post() { get -H 'Content-Type: application/json' -X POST "$@"; }
stream_until() { # TEXT CURL-ARGS...: what comes, up to that, in the file `seen`
    local text=$1 stream
    shift
    : >seen
    get -N "$@" >seen 2>/dev/null &
    stream=$!
    eventually grep -q "$text" seen
    kill "$stream"
    wait "$stream" 2>/dev/null
}
memory() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status"; }

mkdir flows
cat >flows/three.yaml <<'YAML'
name: three
input: { type: object, properties: { n: { type: integer } } }
steps:
  - a: { value: 1 }
  - b: { value: 2 }
  - c: { value: 3 }
YAML
cat >flows/approval.yaml <<'YAML'
name: approval
steps:
  - answer: { signal: approval }
YAML
cat >flows/slow.yaml <<'YAML'
name: slow
steps:
  - a: { command: [sh, -c, "touch ../begun; until test -e ../go; do sleep 0.05; done"] }
YAML

cat >flows/fetch.yaml <<'YAML'
name: fetch
steps:
  - get: { http: { url: "${ .input }", throwOnError: false }, maxAttempts: 3 }
YAML

# ------------------------------------------------------------------------------ a person, a program

ok "it serves at a free port" serve --listen 127.0.0.1:0
like "and says where" "$url" '^http://127\.0\.0\.1:[0-9]+$'
like "the page is there" "$(get "$url/")" '<html'
is "a run is launched" "$(post -d '{"input":{"n":1},"runId":"r1"}' "$url/api/v1/workflows/three/runs")" '{"runId":"r1","status":"running"}'
like "and waited for" "$(get "$url/api/v1/runs/r1/wait")" '"status":"completed"'
like "violations are told" "$(post -d '{"input":{"n":"x"}}' "$url/api/v1/workflows/three/runs")" '"violations":\[\{"path":"/n"'
post -d '{"runId":"a1"}' "$url/api/v1/workflows/approval/runs" >/dev/null
get -N "$url/api/v1/runs/a1/events" >events 2>/dev/null &
stream=$!
eventually grep -q retry events
get "$url/api/v1/runs/a1/wait" >waited &
waiter=$!
post -d '{"by":"me"}' "$url/api/v1/runs/a1/signals/approval" >/dev/null
wait "$waiter"
like "who waits hears of the end" "$(cat waited)" '"status":"completed"'
ok "and so does who follows" eventually grep -q '^event: run.completed' events
is "an event's id is its position" "$(grep -c '^id: [0-9]*\.[0-9]*$' events)" "$(grep -c '^id' events)"
last=$(grep '^id:' events | tail -n 3 | head -n 1 | cut -d' ' -f2)
stream_until '^event: run.completed' -H "Last-Event-ID: $last" "$url/api/v1/runs/a1/events"
is "a stream goes on behind what was seen" "$(grep -c '^event:' seen)" 2
get "$url/api/v1/runs/r1/wait?timeoutMs=1" >/dev/null
stop TERM
is "SIGTERM ends it in order" "$rc" 0
wait "$stream" 2>/dev/null
like "and the stream's last words say so" "$(tail -n 2 events)" '^: the server is shutting down'

# While steps end, whoever looks is answered, and nothing begins.
ok "started, with time for steps to end" serve --listen 127.0.0.1:0 --grace 5m
post -d '{"runId":"slow1"}' "$url/api/v1/workflows/slow/runs" >/dev/null
eventually test -e begun
get -N --max-time 100 "$url/api/v1/events" >events 2>/dev/null &
stream=$!
eventually grep -q retry events
get --max-time 100 -w '%{http_code}' "$url/api/v1/runs/slow1/wait" >waited &
waiter=$!
kill -TERM "$pid"
not_ready() { [ "$(status "$url/readyz")" = 503 ]; }
ok "told to end, it is not ready" eventually not_ready
is "but alive" "$(status "$url/healthz")" 200
is "and shows its runs" "$(get "$url/api/v1/runs?q=slow1" | jq -r '.runs[0].status')" running
is "nothing new begins" "$(status -X POST -H 'Content-Type: application/json' -d '{}' "$url/api/v1/workflows/three/runs")" 503
touch go
wait "$pid"
is "it ends when they have" "$?" 0
pid=
wait "$waiter"
like "who waits is told to come again" "$(cat waited)" '"status":503.*503$'
wait "$stream" 2>/dev/null
like "and streams tell to the end" "$(cat events)" '^event: step.completed'
like "with the same last words" "$(tail -n 2 events)" '^: the server is shutting down'

# ------------------------------------------------------------------------------------ who may come in

run "$rival" serve flows --store s.db --listen 0.0.0.0:0
is "an address that others can reach needs a token" "$rc" 2
like "and that is said, with what to do" "$err" '\-\-token-file FILE'
printf 'viewer %s\nadmin %s\n' viewer-0123456789 admin-0123456789 >tokens
run "$rival" serve flows --store s.db --listen 0.0.0.0:0 --token-file tokens
like "a token file that others can read is refused there" "$err" 'chmod 600'
chmod 600 tokens
ok "with tokens" serve --listen 127.0.0.1:0 --token-file tokens --log-level debug
is "nobody comes in without" "$(status "$url/api/v1/runs")" 401
is "a viewer looks" "$(status -H 'Authorization: Bearer viewer-0123456789' "$url/api/v1/runs")" 200
is "and does nothing" "$(status -X POST -H 'Content-Type: application/json' -H 'Authorization: Bearer viewer-0123456789' -d '{}' "$url/api/v1/workflows/three/runs")" 403
post -c jar -d '{"token":"admin-0123456789"}' "$url/api/v1/login" >/dev/null
is "who logs in is somebody" "$(get -b jar "$url/api/v1/session")" '{"role":"admin","authRequired":true}'
is "and acts" "$(status -b jar -X POST -H 'Content-Type: application/json' -d '{}' "$url/api/v1/workflows/three/runs")" 202
is "but not for another site" "$(status -b jar -X POST -H 'Origin: http://evil.example' -H 'Content-Type: application/json' -d '{}' "$url/api/v1/workflows/three/runs")" 403
is "nor by another name" "$(status -H 'Host: evil.example' "$url/")" 403
get -b jar -N "$url/api/v1/events" >events 2>/dev/null &
stream=$!
eventually grep -q retry events
printf 'root %s\n' admin-0123456789 >tokens
kill -HUP "$pid"
ok "a token file that will not do is told at SIGHUP, with its line" \
    eventually grep -q '"the token file is broken: the old tokens stay valid".*tokens:1: ' log
is "and changes nothing" "$(status -b jar "$url/api/v1/runs")" 200
printf 'admin %s\n' admin-0123456789 >tokens
kill -HUP "$pid"
ok "one that will is read again" eventually grep -q '"tokens loaded again"' log
is "a token that is not in it any more opens nothing" "$(status -H 'Authorization: Bearer viewer-0123456789' "$url/api/v1/runs")" 401
is "the others do as before" "$(status -b jar "$url/api/v1/runs")" 200
post -b jar -c jar "$url/api/v1/logout" >/dev/null
wait "$stream" 2>/dev/null
like "the stream of who logs out ends" "$(tail -n 2 events)" '^: the session has ended'
is "who logs out is nobody" "$(status -b jar "$url/api/v1/runs")" 401
unlike "no token, and no cookie, is in the log" "$(cat log)" '0123456789|rival_session'
stop TERM

# At an address that others can reach: a warning without TLS, and http steps stay out of what only we can reach.
fetches() { # URL: the code of the error, or "completed"
    post -H 'Authorization: Bearer admin-0123456789' -d "{\"input\":\"$1\"}" "http://127.0.0.1:$port/api/v1/workflows/fetch/runs" |
        jq -r .runId >id
    get -H 'Authorization: Bearer admin-0123456789' "http://127.0.0.1:$port/api/v1/runs/$(cat id)/wait" |
        jq -r '.error.code // .status'
}
ok "where others can reach it" serve --listen 0.0.0.0:0 --token-file tokens
like "tokens without TLS are warned of" "$(cat log)" '"warn".*tokens cross the network in clear text'
is "an http step does not reach this machine" "$(fetches "http://127.0.0.1:$port/healthz")" denied
is "nor by its name" "$(fetches "http://localhost:$port/healthz")" denied
is "nor a cloud's metadata" "$(fetches http://169.254.169.254/latest/meta-data)" denied
stop TERM
ok "unless that is wanted" serve --listen 0.0.0.0:0 --token-file tokens --http-allow-private
is "then it does" "$(fetches "http://127.0.0.1:$port/healthz")" completed
stop TERM
ok "on this machine alone" serve --listen 127.0.0.1:0 --token-file tokens
unlike "there is nothing to warn of" "$(cat log)" 'clear text'
is "and a step may" "$(fetches "http://127.0.0.1:$port/healthz")" completed
stop TERM
ok "or may not" serve --listen 127.0.0.1:0 --token-file tokens --http-deny-private
is "if that is said" "$(fetches "http://127.0.0.1:$port/healthz")" denied
stop TERM

if command -v openssl >/dev/null; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 1 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost >/dev/null 2>&1
    chmod 600 key.pem
    printf 'viewer %s\nadmin %s\n' viewer-0123456789 admin-0123456789 >tokens
    ok "with TLS" serve --listen 127.0.0.1:0 --tls-cert cert.pem --tls-key key.pem --token-file tokens
    like "the address says so" "$url" '^https://'
    is "and it is" "$(status --cacert cert.pem "https://localhost:$port/healthz")" 200
    like "cookies are for TLS only" "$(post -D - --cacert cert.pem -d '{"token":"admin-0123456789"}' "https://localhost:$port/api/v1/login")" 'Set-Cookie: .*; Secure'
    get --cacert cert.pem -N -H 'Authorization: Bearer viewer-0123456789' "https://localhost:$port/api/v1/events" >events 2>/dev/null &
    stream=$!
    eventually grep -q retry events
    post --cacert cert.pem -H 'Authorization: Bearer admin-0123456789' -d '{}' "https://localhost:$port/api/v1/workflows/three/runs" >/dev/null
    ok "streams too" eventually grep -q '^event: run.completed' events
    is "what is no TLS is not answered" "$(status "http://localhost:$port/healthz" 2>/dev/null)" 000
    stop TERM
    wait "$stream" 2>/dev/null
    run "$rival" serve flows --store s.db --listen 127.0.0.1:0 --tls-cert cert.pem --tls-key tokens
    is "a key that is none is refused" "$rc" 2
fi

# ------------------------------------------------------------------------------------------ strangers

ok "it serves again" serve --listen 127.0.0.1:0
before=$(memory)
crowd() { python3 "$RIVAL_SOURCE/tests/e2e/crowd.py" "$port" "$@"; }
crowd drip 300 0 >dripping 2>dripped & # takes the ten seconds that a head may take: meanwhile, the others
drip=$!
eventually grep -q there dripped
kept=$(crowd silent 5000 512 2>/dev/null)
ok "of 5,000 silent connections some hundred stay ($kept)" [ "$kept" -le 512 ]
is "a request comes through as soon as they are gone" "$(status --retry 20 --retry-all-errors --retry-delay 1 "$url/healthz")" 200
kept=$(crowd noise 5000 50 2>/dev/null)
ok "of 5,000 that talk nonsense next to none stays ($kept)" [ "$kept" -le 50 ]
is "requests are answered all the while" "$(status "$url/api/v1/runs")" 200

# A store that refuses: who writes waits, everybody else is answered.
cat >lock.py <<'PY'
import signal, sqlite3
db = sqlite3.connect("s.db", isolation_level=None)
db.execute("BEGIN IMMEDIATE")
open("locked", "w").close()
signal.pause()
PY
python3 lock.py &
locker=$!
eventually test -f locked
for i in $(seq 20); do post -d "{\"runId\":\"stuck$i\"}" "$url/api/v1/workflows/three/runs" >>launched 2>&1 & launches[i]=$!; done
ok "while the store refuses it is not ready" eventually not_ready
is "but alive" "$(status "$url/healthz")" 200
is "and reads" "$(status "$url/api/v1/runs")" 200
kill "$locker"
wait "$locker" "${launches[@]}" 2>/dev/null
locker=
ready() { [ "$(status "$url/readyz")" = 200 ]; }
ok "then it is again" eventually ready
unlike "and every launch was answered" "$(cat launched)" 'curl'
like "with a run, or that it cannot be had now" "$(cat launched)" '"status":("running"|503)'

wait "$drip"
drip=
is "who drips is cut off in time" "$(cat dripping)" 0
after=$(memory)
ok "memory stays flat ($before MB, then $after MB)" [ "$after" -le $((before + 48)) ]
like "what was refused is logged" "$(cat log)" '"connection refused".*too many connections from this address'
like "and what was slow" "$(cat log)" '"connections cut off"'
ok "but not ten thousand times" [ "$(grep -c refused log)" -le 100 ]
stop TERM
is "and it ends in order" "$rc" 0

# A crash in the middle: clients come back to where they were.
ok "started" serve --listen 127.0.0.1:0
post -d '{"runId":"crash1"}' "$url/api/v1/workflows/approval/runs" >/dev/null
get -N "$url/api/v1/events" >events 2>/dev/null &
stream=$!
eventually grep -q retry events
last=$(grep '^id:' events | tail -n 1 | cut -d' ' -f2)
kill -9 "$pid"
wait "$pid" "$stream" 2>/dev/null
ok "killed, it is started again" serve --listen 127.0.0.1:0
post -d '1' "$url/api/v1/runs/crash1/signals/approval" >/dev/null
get "$url/api/v1/runs/crash1/wait" >/dev/null
stream_until '^event: run.completed' -H "Last-Event-ID: $last" "$url/api/v1/events"
like "a stream that had seen nothing yet has missed nothing" "$(cat seen)" '^event: signal.received'
stop INT
is "Ctrl-C ends it too" "$rc" 0

# Under load: what is said of it at full size is for `make bench`.
run "$RIVAL_BUILD/bench/bench_server" --quick --json
is "200 streams and 500 launches a second: no error, nothing lost" "$rc $(printf '%s' "$out" | jq -r .met)" "0 true"
echo "# $(printf '%s' "$out" | jq -r '[.figures[] | select(.unit != "") | "\(.name): \(.value) \(.unit)"] | join("; ")')"
is "and nothing is left behind" "$(ls -d bench-server-* 2>/dev/null)" ""
done_testing
