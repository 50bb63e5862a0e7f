#!/usr/bin/env bash
# unread.sh: clients that ask for much and read nothing: what they make the server hold has a bound.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
pid=
crowd=
cleanup() { [ -z "$pid$crowd" ] || kill -9 $pid $crowd 2>/dev/null; }
status() { curl -sS --max-time 60 -o /dev/null -w '%{http_code}' "$@"; }
memory() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status"; }
peak() { awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$pid/status"; }

mkdir flows
cat >flows/large.yaml <<'YAML'
name: large
steps:
  - a: { command: [python3, -c, "print('x' * 15000000)"], output: text }
YAML
cat >flows/small.yaml <<'YAML'
name: small
steps:
  - a: { value: "${ [range(6000)] | tostring }" }
YAML
"$rival" serve flows --store s.db --listen 127.0.0.1:0 --log-format json >serve.out 2>log </dev/null &
pid=$!
eventually grep -q '"serving"' log
url=$(head -n 1 serve.out) port=${url##*:}
for name in large small; do
    curl -sS -X POST -d "{\"runId\":\"$name\"}" "$url/api/v1/workflows/$name/runs" >/dev/null
    is "the $name run is there" "$(status "$url/api/v1/runs/$name/wait")" 200
done
is "a long answer comes whole" "$(curl -sS "$url/api/v1/runs/large" | jq -r '.results.a.result | length')" 15000000
is "also by wait" "$(curl -sS "$url/api/v1/runs/large/wait" | jq -r '.results.a.result | length')" 15000000
is "and as a node" "$(curl -sS "$url/api/v1/runs/large/node?path=a" | jq -r '.result | length')" 15000000
before=$(memory)

unread() { # ARGS of unread.py: until they have been answered; then $answers $refused $well $streams $turned_away
    rm -f hold answered
    mkfifo hold
    python3 "$RIVAL_SOURCE/tests/e2e/unread.py" "$port" "$@" <hold >answered 2>unread.err &
    crowd=$!
    exec 9>hold
    for _ in 1 2 3; do test -s answered || eventually test -s answered; done # many long answers take their time
    read -r answers refused well streams turned_away <answered
}
leave() {
    exec 9>&-
    wait "$crowd"
    crowd=
}

unread 90 0 /api/v1/runs/large /
held=$(memory)
is "90 clients that do not read: each is answered" "$((answers + refused))" 90
ok "some with the run ($answers)" [ "$answers" -ge 50 ]
is "the others that there is no room, and when to come again" "$well" "$refused"
ok "which holds little ($before MB, then $held MB)" [ "$held" -le $((before + 150)) ]
is "who asks for something small is answered meanwhile" "$(status "$url/api/v1/runs")" 200
leave
room_again() { [ "$(status "$url/api/v1/runs/large")" = 200 ]; }
ok "when they are gone there is room again" eventually room_again

unread 20 980 /api/v1/runs/large /api/v1/events
echo "# => 20 unread answers of 15 MB ($refused refused) and 980 unread streams: $before MB before, $(memory) MB, peak $(peak) MB"
is "20 long answers and 980 streams, unread: each is answered" "$((answers + refused + streams + turned_away))" 1000
is "every stream begins" "$streams" 980
ok "memory has its bound (peak $(peak) MB, goal 320)" [ "$(peak)" -le 320 ]
leave
ok "when they are gone there is room again" eventually room_again

unread 500 500 /api/v1/runs/small "/api/v1/runs/small/events?from=oldest"
is "1,000 that fit are all served" "$answers $streams" "500 500"
ok "and memory has its bound (peak $(peak) MB)" [ "$(peak)" -le 320 ]
is "who acts is answered" "$(status -X POST -d '{}' "$url/api/v1/workflows/small/runs")" 202
leave
kill -TERM "$pid"
wait "$pid"
is "it ends in order" "$?" 0
pid=
done_testing
