#!/usr/bin/env bash
# openapi.sh: /openapi.json tells what a server answers, operation by operation (their documents are held to it
# in unit/server), and pleases a public linter.
. "$(dirname "$0")/tap.sh"
server=
cleanup() { [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server"; }

mkdir "$tmp/flows" && cd "$tmp" || exit 1
printf 'name: quick\nsteps: [ { a: { value: 7 } }, { go: { signal: { name: go } } } ]\n' >flows/quick.yaml
"$rival" serve flows --listen 127.0.0.1:0 --log-format json >/dev/null 2>serve.log & server=$!
eventually grep -q '"url"' serve.log
url=$(jq -r 'select(.url) | .url' serve.log | head -n1)
run "$rival" run quick --run-id r --server "$url"
ok "it is served" curl -sf "$url/openapi.json" -o served.json
jq -r '.paths | to_entries[] | .key as $path | .value | to_entries[] | .key + " " + $path' served.json >operations
while read -r method path; do
    at=$(printf '%s' "$path" | sed 's/{id}/r/; s|signals/{name}|signals/go|; s/{name}/quick/')
    case $path in */node) at="$at?path=a" ;; */wait) at="$at?timeoutMs=0" ;; esac
    body=; [ "$method" = post ] && body='{}'
    case $path in */login) body='{"token":"any"}' ;; esac
    got=$(curl -s -m 2 -X "${method^^}" "$url$at" -H 'Content-Type: application/json' ${body:+-d "$body"} \
        -o /dev/null -w '%{http_code} %{content_type}')
    says=$(jq -r --arg p "$path" --arg m "$method" --arg s "${got%% *}" '. as $all | .paths[$p][$m].responses[$s]
        | if has("$ref") then $all.components.responses[$s] else . end | $s + " " + (.content | keys[0])' served.json)
    is "$method $path answers as it says" "$got" "$says"
done <operations
is "all of them" "$(wc -l <operations)" 34
kill "$server" && wait "$server"
server=
lint=$RIVAL_BUILD/openapi-lint from=$RIVAL_SOURCE/tests/conformance/openapi

# Installed once for a build, by the lock file. Two copies of this may run: the second finds it done.
if command -v npm >/dev/null && ! cmp -s "$from/package-lock.json" "$lint/package-lock.json"; then
    mkdir "$tmp/lint" && cp "$from"/package*.json "$from/lint.mjs" "$tmp/lint" &&
        (cd "$tmp/lint" && npm ci --ignore-scripts --no-audit --no-fund >"$tmp/npm.log" 2>&1) &&
        rm -rf "$lint" && mv "$tmp/lint" "$lint"
fi
if [ ! -d "$lint/node_modules" ]; then
    # Elsewhere than in CI there may be no network.
    [ "${CI:-}" != true ] || ok "the linter is installed: npm ci in tests/conformance/openapi" false
    echo "# => SKIPPED: the OpenAPI linter; npm ci in tests/conformance/openapi failed"
    done_testing
fi
cp "$from/lint.mjs" "$lint"

ok "it is printed" sh -c "'$RIVAL_BUILD/tests/print_openapi' >'$tmp/openapi.json'"
run node "$lint/lint.mjs" "$tmp/openapi.json"
is "the linter finds nothing" "$rc $out$err" "0 "
sed 's/"operationId":"getRun",//' "$tmp/openapi.json" >"$tmp/worse.json"
run node "$lint/lint.mjs" "$tmp/worse.json"
like "and would find something" "$out" "operationId"
done_testing
