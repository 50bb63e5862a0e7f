#!/usr/bin/env bash
# openapi.sh: /openapi.json pleases a public linter. What it says is held to real answers in unit/server.
. "$(dirname "$0")/tap.sh"
lint=$RIVAL_BUILD/openapi-lint from=$RIVAL_SOURCE/tests/conformance/openapi

# Installed once for a build, by the lock file. Two copies of this may run: the second finds it done.
if command -v npm >/dev/null && ! cmp -s "$from/package-lock.json" "$lint/package-lock.json"; then
    mkdir "$tmp/lint" && cp "$from"/package*.json "$from/lint.mjs" "$tmp/lint" &&
        (cd "$tmp/lint" && npm ci --ignore-scripts --no-audit --no-fund >"$tmp/npm.log" 2>&1) &&
        rm -rf "$lint" && mv "$tmp/lint" "$lint"
fi
if [ ! -d "$lint/node_modules" ]; then
    echo "1..0 # SKIP the linter is not there: npm ci in tests/conformance/openapi failed"
    exit 0
fi
cp "$from/lint.mjs" "$lint"

ok "it is printed" sh -c "'$RIVAL_BUILD/tests/print_openapi' >'$tmp/openapi.json'"
run node "$lint/lint.mjs" "$tmp/openapi.json"
is "the linter finds nothing" "$rc $out$err" "0 "
sed 's/"operationId":"getRun",//' "$tmp/openapi.json" >"$tmp/worse.json"
run node "$lint/lint.mjs" "$tmp/worse.json"
like "and would find something" "$out" "operationId"
done_testing
