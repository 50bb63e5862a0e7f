#!/usr/bin/env bash
# workers-tcp.sh: workers that come over TCP, with TLS and a token (serve --workers): good ones and strangers.
. "$(dirname "$0")/tap.sh"
cd "$tmp" || exit 1
server= worker= crowd= holder= at=127.0.0.1:0
cleanup() { for p in $server $worker $crowd $holder; do kill -9 "$p" 2>/dev/null; done; }
certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.pem" -days 2 -subj "/CN=$1" \
        -addext "subjectAltName=DNS:$1,IP:127.0.0.1" >/dev/null 2>&1
    chmod 600 "$1.key"
}
certificate localhost
printf 'worker worker-token-0123456789 w1\nviewer viewer-token-0123456789\nadmin admin-token-0123456789a\n' >tokens
chmod 600 tokens
serve() {
    : >server.err
    "$rival" serve --store rival.db --listen 127.0.0.1:0 --workers "$at" --log-format json "$@" >server.out 2>server.err </dev/null &
    server=$!
    eventually grep -q '"serving"' server.err || return 1
    port=$(jq -r 'select(.message == "listening for workers" or .msg == "listening for workers") | .port' server.err)
    url=$(head -1 server.out)
}
work() {
    RIVAL_WORKER_TOKEN=$2 RIVAL_CA=$3 python3 "$RIVAL_SOURCE/examples/python/rival_worker.py" "$1" >>worker.out 2>&1 </dev/null &
    worker=$!
}
end() {
    kill "$1" && wait "$1" 2>/dev/null
    return 0
}
stranger() { python3 "$RIVAL_SOURCE/tests/e2e/stranger.py" "$port" "$@" 2>&1; }
api() { curl -s --cacert localhost.pem -H 'Authorization: Bearer admin-token-0123456789a' "${url/127.0.0.1/localhost}$1"; }
runs_tree() { [ "$("$rival" run tree -i '{}' --run-id "$1" --store rival.db --wait --json 2>/dev/null | jq -r .status)" = completed ]; }

# What is refused at the start.
run "$rival" serve --store x.db --listen none --workers 0.0.0.0:0 --token-file tokens
is "beyond loopback TLS is needed" "$rc" 2
like "and that is said" "$err" "workers need TLS there.*--tls-cert"
run "$rival" serve --store x.db --listen none --workers 0.0.0.0:0 --tls-cert localhost.pem --tls-key localhost.key
like "and so are tokens" "$err" "workers need a token there.*--token-file"
printf 'admin short\nworker tiny\n' >weak; chmod 600 weak
run "$rival" serve --store x.db --listen none --workers 0.0.0.0:0 --tls-cert localhost.pem --tls-key localhost.key --token-file weak
like "which cannot be guessed" "$err" "can be guessed"
printf 'viewer viewer-token-0123456789\n' >viewers; chmod 600 viewers
run "$rival" serve --store x.db --listen none --workers 127.0.0.1:0 --token-file viewers
like "a token file without a worker's token is of no use" "$err" "no token for workers in 'viewers'"
run "$rival" serve --store x.db --listen none --workers nowhere
like "an address has a port" "$err" "use HOST:PORT"
run "$rival" serve --store x.db --listen none --workers 127.0.0.1:0 --tls-cert localhost.pem --tls-key tokens
like "a key that is none is named" "$err" "the certificate 'localhost.pem' and the key 'tokens' cannot be used"
chmod 644 localhost.key
run "$rival" serve --store x.db --listen none --workers 127.0.0.1:0 --tls-cert localhost.pem --tls-key localhost.key
like "and so is a key that others can read" "$err" "others may read or change 'localhost.key'"
chmod 600 localhost.key

# TLS and tokens.
serve --token-file tokens --tls-cert localhost.pem --tls-key localhost.key
ok "a server listens for workers" test -n "$port"
is "it says where" "$(api /api/v1/workers | jq -c '[.protocol, .listen.host, .listen.port, .listen.tls, (.connections | length)]')" \
    "[2,\"127.0.0.1\",$port,true,0]"
work "tls://localhost:$port" worker-token-0123456789 localhost.pem
ok "a worker with a token comes by TLS, and its steps run" eventually runs_tree a
is "it is listed" "$(api /api/v1/workers | jq -c '[.connections[] | [(.name | startswith("python:")), .credits, .local]]')" '[[true,8,false]]'
is "no token: out" "$(stranger localhost.pem no-token)" "the hello has no 'token': a token of role worker is needed here"
is "a wrong token: out" "$(stranger localhost.pem wrong-token)" "there is no such token of role worker"
is "a token that is no text: out" "$(stranger localhost.pem odd-token)" "there is no such token of role worker"
is "a viewer's token: out" "$(stranger localhost.pem viewer-token viewer-token-0123456789)" "there is no such token of role worker"
like "clients are sent to the HTTP API" "$(stranger localhost.pem client admin-token-0123456789a)" "this address is for workers.*HTTP API"
is "a worker may not call here" "$(stranger localhost.pem call worker-token-0123456789)" "a worker may not say 'call' here"
is "plain frames are told to use TLS" "$(stranger localhost.pem plain)" "this port speaks TLS: connect with TLS"
is "so is HTTP" "$(stranger localhost.pem http)" "this port speaks TLS: connect with TLS"
like "a worker that does not know the certificate leaves" "$(stranger localhost.pem untrusted)" "refused: CERTIFICATE_VERIFY_FAILED"
is "TLS 1.1 is not spoken" "$(stranger localhost.pem old)" refused
is "what only looks like TLS gets nothing" "$(stranger localhost.pem garbage)" nothing
is "a hello of 48 MiB is not waited for" "$(stranger localhost.pem huge)" "not a frame: a length of 50331648 bytes"
is "a hello that comes byte by byte is heard" "$(stranger localhost.pem drip worker-token-0123456789)" hello
like "refusals are logged, without the token" "$(cat server.err)" 'worker refused.*127.0.0.1'
unlike "nowhere is a token" "$(cat server.err)" 'not-a-token-at-all'
mkfifo hold
python3 "$RIVAL_SOURCE/tests/e2e/stranger.py" "$port" localhost.pem crowd <hold >crowd.out 2>&1 &
crowd=$!
exec 9>hold
ok "a hundred strangers who say nothing are there" eventually grep -q held crowd.out
ok "the worker goes on" runs_tree b
run "$rival" workflows --store rival.db
is "and so does the socket beside the store" "$rc" 0
exec 9>&-
wait "$crowd"
crowd=

# A token that is withdrawn.
printf 'worker other-token-0123456789 w2\nadmin admin-token-0123456789a\n' >tokens
kill -HUP "$server"
nobody() { [ "$(api /api/v1/workers | jq '.connections | length')" = 0 ]; }
ok "whose token is withdrawn is out" eventually nobody
end "$worker"
work "tls://localhost:$port" other-token-0123456789 localhost.pem
ok "and the next one is in" eventually runs_tree c

# Nobody is blamed for the death of a remote worker.
for i in 1 2 3 4 5 6; do
    kill -9 "$worker" && wait "$worker" 2>/dev/null
    "$rival" run tree -i '{}' --run-id "d$i" --store rival.db >/dev/null
    work "tls://localhost:$port" other-token-0123456789 localhost.pem
    ok "worker $i is killed, and the run completes" test "$("$rival" wait "d$i" --store rival.db --json | jq -r .status)" = completed
done
end "$worker"
end "$server"

# A worker in C (examples/worker.c). A port that two servers have one after the other is held: nobody else is given it meanwhile.
mkfifo hold2
python3 -c 'import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
sys.stdin.read()' <hold2 >held &
holder=$!
exec 8>hold2
eventually test -s held
at=127.0.0.1:$(cat held)
serve --token-file tokens --tls-cert localhost.pem --tls-key localhost.key
in_c() { RIVAL_WORKER_TOKEN=$2 RIVAL_CA=$3 "$RIVAL_BUILD/examples/worker" "$1" 2>&1; }
certificate elsewhere
like "in C: a certificate that is not trusted" "$(in_c "tls://localhost:$port" other-token-0123456789 elsewhere.pem)" \
    "the server's certificate is not accepted.*NOT trusted"
openssl req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 2 -subj /CN=other.example \
    -addext subjectAltName=DNS:other.example >/dev/null 2>&1
like "a wrong token" "$(in_c "tls://localhost:$port" worker-token-0123456789 localhost.pem)" "no such token of role worker"
like "no TLS where TLS is spoken" "$(in_c "tcp://localhost:$port" other-token-0123456789 "")" "this port speaks TLS"
RIVAL_WORKER_TOKEN=other-token-0123456789 RIVAL_CA=localhost.pem "$RIVAL_BUILD/examples/worker" "tls://localhost:$port" >worker.out 2>&1 &
worker=$!
runs_planks() { [ "$("$rival" run planks -i '{"trees":3}' --run-id "$1" --store rival.db --wait --json 2>/dev/null | jq -c '[.status, .results.saw.result.planks, .results.saw.state.description]')" = '["completed",48,"sawed 6 logs"]' ]; }
ok "a worker in C comes by TLS, and its steps run" eventually runs_planks f
kill -9 "$worker" && wait "$worker" 2>/dev/null
"$rival" run planks -i '{"trees":3}' --run-id g --store rival.db >/dev/null
RIVAL_WORKER_TOKEN=other-token-0123456789 RIVAL_CA=localhost.pem "$RIVAL_BUILD/examples/worker" "tls://localhost:$port" >worker.out 2>&1 &
worker=$!
ok "the next one goes on" runs_planks g
end "$server"
serve_again() { # at the same port
    "$rival" serve --store rival.db --listen 127.0.0.1:0 --workers "127.0.0.1:$port" --token-file tokens --tls-cert other.pem --tls-key other.key \
        --log-format json >server.out 2>server.err </dev/null &
    server=$!
    eventually grep -q '"serving"' server.err
}
ok "a server with another name's certificate comes in its place" serve_again
gone() { ! kill -0 "$worker" 2>/dev/null; }
ok "the worker does not speak with it" eventually gone
wait "$worker"
is "and says so by its end" $? 1
like "in words" "$(cat worker.out)" "the server's certificate is not accepted"
worker=
end "$server"
exec 8>&-
wait "$holder"
holder= at=127.0.0.1:0

# Plain TCP on this machine.
serve
is "without a certificate there is no TLS" "$(curl -s "$url/api/v1/workers" | jq -c '[.listen.tls, (.socket | endswith("rival.db.sock"))]')" '[false,true]'
work "tcp://127.0.0.1:$port" "" ""
ok "a worker of this machine needs no token where there is no token file" eventually runs_tree e
is "who speaks TLS there is told nothing it could read" "$(stranger localhost.pem no-token 2>&1 | tail -1 | grep -c SSL)" 1
end "$worker"
worker=
end "$server"
server=
done_testing
