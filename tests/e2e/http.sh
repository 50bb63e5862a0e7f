#!/usr/bin/env bash
# http.sh: http steps of a workflow file, against a server that does not mean well, with TLS and without.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
cleanup() { exec 8>&- 9<&-; }
cd "$tmp" || exit 1
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY SSL_CERT_FILE

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout key.pem -out cert.pem \
    -subj /CN=localhost -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' 2>/dev/null
mkfifo stdin stdout
python3 "$here/hostile.py" "$tmp" <stdin >stdout &
exec 8>stdin 9<stdout
read -r port tls <&9
at=http://127.0.0.1:$port

# get URL-OR-MAPPING [MORE-KEYS]: one http step; its outcome is in $out.
get() {
    printf 'name: w\nsteps:\n  - get: { http: %s%s }\n' "$1" "${2:+, $2}" >w.yaml
    rm -f w.db*
    run "$rival" exec w.yaml --store w.db
}
field() { printf %s "$out" | jq -r "$1"; }

get "\"$at/ok\""
is "an answer is the result" "$rc $(field '.results.get.result | [.status, .statusText, .data.pieces, .headers["content-type"]] | join(" ")')" \
    "0 200 OK 10 application/json"
while read -r path code timeout words; do
    get "{ url: \"$at$path\", timeout: $timeout }"
    is "$path is told as $code" "$rc $(field .error.code)" "1 $code"
    like "$path: in words" "$(field .error.message)" "^GET $at$path: .*$words"
done <<'ROWS'
/missing status 20s status 404 \(Not Found\): no such tree
/drop dropped 20s ended before the answer did
/stall timeout 500ms after 500 ms: no answer had arrived
/chunks badAnswer 20s not HTTP
/headers tooLarge 20s headers of the answer have more than 65536 bytes
/bomb tooLarge 20s more than 16777216 bytes
/circle redirect 20s more than 10 times
ROWS
get "\"http://127.0.0.1:1/\""
is "where nobody listens it is refused" "$(field .error.code)" refused
get "\"https://127.0.0.1:$port/ok\""
is "where no TLS is spoken there is none" "$(field .error.code)" tls

get "\"https://127.0.0.1:$tls/ok\""
is "a certificate that nobody trusts is not taken" "$rc $(field .error.code)" "1 tls"
like "and the error says so" "$(field .error.message)" 'no trusted connection \(TLS\).*certificate'
export SSL_CERT_FILE=$tmp/cert.pem
get "\"https://127.0.0.1:$tls/ok\""
is "SSL_CERT_FILE names those to trust" "$rc $(field .results.get.result.data.pieces)" "0 10"
get "\"https://other.localhost:$tls/ok\""
is "but a certificate of another name is not good" "$rc $(field .error.code)" "1 tls"
unset SSL_CERT_FILE

export http_proxy=http://127.0.0.1:1
get "\"http://nobody.test/\""
is "a proxy of the environment is used" "$rc $(field .error.code)" "1 refused"
unset http_proxy

# A wait that the server asks for is on disk: the process may go.
printf 'name: w\nsteps:\n  - get: { http: "%s/busy", maxAttempts: 3 }\n' "$at" >w.yaml
rm -f w.db*
"$rival" exec w.yaml --store w.db --run-id a >/dev/null 2>&1 &
pid=$!
until "$rival" why a --store w.db --json 2>/dev/null | grep -q '"reason":"retry"'; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
done
kill -9 "$pid"
wait "$pid" 2>/dev/null
run "$rival" why a --store w.db --json
is "Retry-After is a durable wait" \
    "$(printf %s "$out" | jq -r --argjson now "$(date +%s)" '.waits[0] | [.reason, (.dueAt / 1000 - $now | . > 3500 and . <= 3601)] | join(" ")')" \
    "retry true"

run "$rival" plan w.yaml --format text
like "the plan shows where it goes" "$out" "http $at/busy"
printf 'name: w\nsteps:\n  - get: { http: { url: "ftp://x/", metod: GET } }\n' >bad.yaml
run "$rival" check bad.yaml
like "check tells an address that is none" "$err$out" "invalid url 'ftp://x/'"
like "and a key that is none" "$err$out" "did you mean 'method'"

done_testing
