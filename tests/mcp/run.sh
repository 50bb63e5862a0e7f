#!/usr/bin/env bash
# run.sh clients|conformance: the MCP server with public packages on the other side, as TAP. They are installed once for
# a build, by the lock file.
. "$(dirname "$0")/../e2e/tap.sh"
. "$RIVAL_SOURCE/tests/packages.sh"
from=$RIVAL_SOURCE/tests/mcp
servers=
cleanup() { for pid in $servers; do kill "$pid" 2>/dev/null && wait "$pid"; done; }

packages mcp

if [ "$1" = clients ]; then
    cd "$at" || exit 1
    RIVAL=$rival FLOWS=$from/workflows exec "$node" --test --test-reporter=tap mcp.test.mjs
fi

cd "$tmp" || exit 1
for revision in 2025-11-25 2026-07-28; do
    "$rival" serve "$from/workflows" --store "$revision.db" --listen 127.0.0.1:0 --log-level error >"$revision.url" & servers="$servers $!"
done
for revision in 2025-11-25 2026-07-28; do
    eventually test -s "$revision.url"
    "$node" "$at/node_modules/@modelcontextprotocol/conformance/dist/index.js" server --url "$(head -n1 "$revision.url")/mcp" \
        --requirements "$revision" --expected-failures "$from/conformance-$revision.yaml" >"$revision.out" 2>&1 &
    eval "pid_${revision%%-*}=$!"
done
for revision in 2025-11-25 2026-07-28; do
    pid=pid_${revision%%-*}
    wait "${!pid}"
    rc=$?
    [ "$rc" = 0 ] || sed -n 's/^/# /; /=== SUMMARY/,$p' "$revision.out"
    is "$revision: all but what is listed" "$rc" 0
    like "$revision: the suite has run" "$(cat "$revision.out")" '^Total: [1-9][0-9]+ passed'
    grep '^Total' "$revision.out" | sed 's/^/# /'
done
done_testing
